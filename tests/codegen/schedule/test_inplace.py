"""Values that are written one after the other into one buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.ir.node import Node
from tests.support.bounds import assert_specified
from tests.support.thorough import some


def recurrent(steps: int) -> tuple[list[Node], list[Node]]:
    """A recurrence written out, and its derivatives."""
    x, u = T.dtensor3("x"), T.dmatrix("u")
    h = x[0]
    for step in range(1, steps):
        h = T.tanh(x[step] + T.dot(h, u))
    return [x, u], graphc.grad(h.sum(), [x, u])


def slices(count: int) -> tuple[list[Node], list[Node]]:
    """A vector of parameters cut into pieces, of which two overlap, and its gradient."""
    theta = T.dvector("theta")
    pieces = [theta[2 * n : 2 * n + 2 + (n == 1)] for n in range(count)]
    cost = sum((T.sqr(piece).sum() * (n + 1) for n, piece in enumerate(pieces)), T.exp(theta[0]))
    return [theta], [graphc.grad(cost, theta)]


def read_between(count: int) -> tuple[list[Node], list[Node]]:
    """Writes one after the other, of which each result is read as well: each has an array of its own."""
    x = T.dvector("x")
    found = [x]
    for n in range(count):
        found.append(T.set_subtensor(found[-1][n], found[-1].sum()))
    return [x], [found[-1], found[-2][::-1] + found[2]]


def looked_up(count: int) -> tuple[list[Node], list[Node]]:
    """The gradient of a table of which rows are looked up several times."""
    table, indices = T.dmatrix("table"), T.lvector("indices")
    cost = sum((T.sqr(table[indices + n]).sum() for n in range(count)), T.sin(table[-1]).sum())
    return [table, indices], [graphc.grad(cost, table)]


def joined() -> tuple[list[Node], list[Node]]:
    """A block matrix: what is joined begins with its first part, and is longer."""
    x, y = T.dmatrix("x"), T.dmatrix("y")
    block = T.concatenate([T.concatenate([x.T, -y], 1), T.concatenate([y, x.T], 1)], 0)
    return [x, y], [T.dot(block, block)]


CHAINS: dict[str, tuple[list[Node], list[Node], list[Any]]] = {
    "recurrent": (*recurrent(4), [(6, 3, 5), (5, 5)]),
    "slices": (*slices(4), [(9,)]),
    "read between": (*read_between(3), [(5,)]),
    "joined": (*joined(), [(4, 4), (4, 4)]),
    "looked up": (*looked_up(3), [(7, 4), [0, 2, 2, 4]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("poison", ["off", "on"])
def test_values_written_one_after_the_other(name: str, poison: str) -> None:
    inputs, outputs, given = CHAINS[name]
    rng = np.random.default_rng(3)
    values = [np.array(each) if isinstance(each, list) else rng.normal(size=each) for each in given]
    with graphc.options.change(poison=poison):
        for mode in ("compiled", "python"):
            call = graphc.function(inputs, outputs, mode)
            for _ in range(2):
                assert_specified(call, call(*values), values)


@pytest.mark.slow
def test_a_gradient_by_steps_is_written_into_one_array() -> None:
    few, many = (graphc.function(*recurrent(steps)) for steps in (4, 8))
    needs = [call.memory((8, 3, 5), (5, 5)).total for call in (few, many)]
    assert needs[1] - needs[0] <= 4 * 3 * 5 * 8 * 3, "a few rows for each step, no array of all"
    assert "assemble: float64[x_0, x_1, x_2] -> out: a result" in many.explain()


def test_nests_without_results() -> None:
    """A nest may only add up what others take: nothing of it stands where something was."""
    x, y = T.dmatrix("x"), T.ivector("y")
    w, v = (graphc.shared(np.eye(3), name=name) for name in "wv")
    p = T.nnet.softmax(T.dot(T.tanh(T.dot(x, w)), v))
    loss = -T.mean(T.log(p)[T.arange(y.shape[0]), y])
    steps = [(each, each - slope) for each, slope in zip((w, v), graphc.grad(loss, [w, v]), strict=True)]
    step = graphc.function([x, y], loss, updates=steps, mode="python")
    assert step(np.zeros((2, 3)), np.array([0, 2], np.int32)) == pytest.approx(np.log(3.0))


# --- parts of an array that are read while others are written ---------------------------------------------------------

Part = tuple[slice, slice]


def parts(rng: np.random.Generator) -> list[tuple[Part, list[Part], int, bool]]:
    """Writes into a matrix of 6 x 7: to a part, from parts of its size or of one row or column, in one of three ways;
    of some the matrix before is read later."""

    def piece(size: int, length: int) -> slice:
        begin = int(rng.integers(0, size - length + 1))
        return slice(begin, begin + length)

    found = []
    for _ in range(int(rng.integers(2, 7))):
        rows, columns = int(rng.integers(1, 6)), int(rng.integers(1, 7))
        to = piece(6, rows), piece(7, columns)
        froms = [
            (piece(6, rows), piece(7, columns)),
            to,
            (piece(6, rows), piece(7, 1)),
            (piece(6, 1), piece(7, columns)),
        ]
        chosen = [froms[0], *(froms[int(rng.integers(4))] for _ in range(rng.integers(3)))]
        found.append((to, chosen, int(rng.integers(3)), bool(rng.random() < 0.3)))
    return found


def written(x: Any, program: list[tuple[Part, list[Part], int, bool]]) -> list[Any]:
    a, kept = x.copy(), []
    for to, froms, way, is_kept in program:
        if is_kept:
            kept.append(a.copy())
        value = sum((0.5 * a[part] for part in froms[1:]), a[froms[0]])
        a[to] = (value, a[to] + value, a[to] - value * value)[way]
    return [a, *(old[1:3].sum(axis=0) for old in kept)]


@pytest.mark.parametrize("seed", some(range(24), every=3))
def test_parts_that_are_written_one_after_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program, x = parts(rng), rng.integers(-4, 5, (6, 7)).astype("float64")
    f = graphc.jit(lambda x: tuple(written(x, program)), mode="python")
    for got, wanted in zip(f(x), written(x, program), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_an_elimination_has_one_matrix() -> None:
    """Columns and rows of it are read for what is written to others."""

    def factors(a: Any) -> Any:
        a = a.copy()
        for k in range(3):
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k : k + 1, k + 1 :]
        return a

    x = np.random.default_rng(1).normal(size=(5, 6)) + 5 * np.eye(5, 6)
    f = graphc.jit(factors, mode="python")
    np.testing.assert_allclose(f(x), factors(x), rtol=1e-14)
    (plan,) = (text.partition("plan:")[2] for text in [f.explain(x)])
    assert plan.count("built by several writes") == plan.count("over its first operand") == 5, plan
