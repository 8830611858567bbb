"""Sequences that are aligned: the distance of two by edits, a row after the other, and CTC's loss with its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

# --- edit distance ----------------------------------------------------------------------------------------------------


def words(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """Two sequences of four letters."""
    return Data(tuple(rng.integers(4, size=length) for length in size))


def edit_numpy(library: Any, data: Data) -> Program:
    def call(left: Array, right: Array) -> Any:
        row, places = np.arange(len(right) + 1), np.arange(len(right) + 1)
        for letter in left:
            row = np.append(row[0] + 1, np.minimum(row[1:] + 1, row[:-1] + (right != letter)))
            row = np.minimum.accumulate(row - places) + places
        return row[-1]

    return Program(call)


def edit_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    left, right = T.lvector("left"), T.lvector("right")

    def step(letter: Any, row: Any) -> Any:
        best, first = T.minimum(row[1:] + 1, row[:-1] + T.neq(right, letter)), row[0] + 1
        rest = library.scan(lambda one, before: T.minimum(one, before + 1), sequences=best, outputs_info=first)
        return T.concatenate([T.stack([first]), rest])

    rows = library.scan(step, sequences=left, outputs_info=T.arange(right.shape[0] + 1))
    return Program(library.function([left, right], rows[-1, -1]))


def edit_jax(library: Any, data: Data) -> Program:
    jnp, lax = library.numpy, library.jax.lax

    def call(left: Any, right: Any) -> Any:
        places = jnp.arange(len(right) + 1)

        def step(row: Any, letter: Any) -> Any:
            best = jnp.minimum(row[1:] + 1, row[:-1] + (right != letter))
            return lax.cummin(jnp.append(row[:1] + 1, best) - places) + places, None

        return lax.scan(step, places, left)[0][-1]

    return Program(library.jit(call))


def edit_torch(library: Any, data: Data) -> Program:
    torch = library.torch

    def one(letter: Any, right: Any, row: Any, places: Any) -> Any:
        best = torch.minimum(row[1:] + 1, row[:-1] + (right != letter))
        return torch.cummin(torch.cat([row[:1] + 1, best]) - places, 0).values + places

    step = library.compile(one)

    def call(left: Any, right: Any) -> Any:
        row = places = torch.arange(len(right) + 1)
        for letter in left:
            row = step(letter, right, row, places)
        return row[-1]

    return Program(call)


# --- connectionist temporal classification (Graves et al. 2006) -------------------------------------------------------

NEVER = -1e30
"""The logarithm of nothing, without the trouble that infinities make in a gradient."""


def speech(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: frames, classes, labels. Scores, and labels with blanks (class 0) around."""
    frames, classes, count = size
    labels = np.zeros(2 * count + 1, "int64")
    labels[1::2] = rng.integers(1, classes, size=count)
    return Data((rng.normal(size=(frames, classes)), labels))


def may_skip(xp: Any, labels: Any) -> Any:
    """Whether each place but the first two may follow the one two before."""
    return xp.logical_and(labels[2:] != 0, labels[2:] != labels[:-2])


def log_sum(xp: Any, *logs: Any) -> Any:
    """The logarithm of a sum of three, written alike for every array library `xp`."""
    a, b, c = logs
    highest = xp.maximum(xp.maximum(a, b), c)
    return highest + xp.log(xp.exp(a - highest) + xp.exp(b - highest) + xp.exp(c - highest))


def ctc_numpy(library: Any, data: Data) -> Program:
    def call(scores: Array, labels: Array) -> Any:
        logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        seen, skips, never = logs[:, labels], may_skip(np, labels), scores.dtype.type(NEVER)
        alphas, places = np.full_like(seen, never), len(labels)
        alphas[0, :2] = seen[0, :2]
        for t in range(1, len(scores)):
            before = alphas[t - 1]
            total = before.copy()
            total[1:] = np.logaddexp(total[1:], before[:-1])
            total[2:] = np.logaddexp(total[2:], np.where(skips, before[:-2], never))
            alphas[t] = total + seen[t]
        cost = -np.logaddexp(alphas[-1, -1], alphas[-1, -2])
        betas = np.full_like(seen, never)  # of what follows the frame
        betas[-1, -2:] = 0
        for t in reversed(range(len(scores) - 1)):
            after = betas[t + 1] + seen[t + 1]
            total = after.copy()
            total[:-1] = np.logaddexp(total[:-1], after[1:])
            total[:-2] = np.logaddexp(total[:-2], np.where(skips, after[2:], never))
            betas[t] = total
        chances = np.exp(alphas + betas + cost)
        gradient = np.exp(logs)
        for s in range(places):
            gradient[:, labels[s]] -= chances[:, s]
        return cost, gradient

    return Program(call)


def ctc_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    scores, labels = T.dmatrix("scores"), T.lvector("labels")
    seen = library.log_softmax(scores, axis=1)[:, labels]
    skips = T.and_(T.neq(labels[2:], 0), T.neq(labels[2:], labels[:-2]))
    nothing = np.full(2, NEVER)

    def step(seen: Any, alpha: Any) -> Any:
        one = T.concatenate([nothing[:1], alpha[:-1]])
        two = T.concatenate([nothing, T.switch(skips, alpha[:-2], NEVER)])
        return log_sum(T, alpha, one, two) + seen

    first = T.concatenate([seen[0, :2], NEVER + 0 * seen[0, 2:]])
    alphas = library.scan(step, sequences=seen[1:], outputs_info=first)
    cost = -T.logaddexp(alphas[-1, -1], alphas[-1, -2])
    return Program(library.function([scores, labels], [cost, library.grad(cost, scores)]))


def ctc_jax(library: Any, data: Data) -> Program:
    jnp, jax = library.numpy, library.jax

    def cost(scores: Any, labels: Any) -> Any:
        seen = jax.nn.log_softmax(scores, axis=1)[:, labels]
        skips, nothing = may_skip(jnp, labels), jnp.full(2, NEVER)

        def step(alpha: Any, seen: Any) -> Any:
            one = jnp.concatenate([nothing[:1], alpha[:-1]])
            two = jnp.concatenate([nothing, jnp.where(skips, alpha[:-2], NEVER)])
            return log_sum(jnp, alpha, one, two) + seen, None

        first = jnp.full(len(labels), NEVER).at[:2].set(seen[0, :2])
        last, _ = jax.lax.scan(step, first, seen[1:])
        return -jnp.logaddexp(last[-1], last[-2])

    return Program(library.jit(jax.value_and_grad(cost)))


def ctc_torch(library: Any, data: Data) -> Program:
    """Its own function, which is written in C++."""
    torch = library.torch

    def loss(scores: Any, labels: Any) -> Any:
        logs, sizes = torch.log_softmax(scores, 1), ((len(scores),), (len(labels),))
        return torch.nn.functional.ctc_loss(logs[:, None], labels[None], *sizes, reduction="sum")

    compiled = library.compile(loss)

    def call(scores: Any, labels: Any) -> Any:
        cost = compiled(scores.requires_grad_(), labels[1::2])
        return cost.detach(), *torch.autograd.grad(cost, [scores])

    return Program(call)


WORKLOADS = (
    Workload(
        "edit-distance",
        "how many edits make one sequence of 200 letters another, int64",
        words,
        (200, 200),
        (6, 8),
        {"numpy": edit_numpy, "symbolic": edit_symbolic, "jax": edit_jax, "torch": edit_torch},
    ),
    Workload(
        "ctc-gradient",
        "CTC's loss of 150 frames, 28 classes and 30 labels, with its gradient, float64",
        speech,
        (150, 28, 30),
        (9, 4, 3),
        {"numpy": ctc_numpy, "symbolic": ctc_symbolic, "jax": ctc_jax, "torch": ctc_torch},
    ),
)
