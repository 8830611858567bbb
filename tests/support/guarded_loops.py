"""Loops between pages that nobody may touch: states, sequences, outputs and temporaries of steps, with derivatives.

A process of its own, since an access out of bounds ends it. Run with a kind of poison, it compares programs with
the interpreter, all or those of the names that follow, for several numbers of steps, and prints each before it is run.
"""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

import graphc
import graphc.tensor as T
from graphc.functions.native import Guarded
from graphc.ir.node import Node
from graphc.options import options

Build = Callable[[Node, Node, Node], Any]
"""A program over a matrix of elements, a square one and a vector: what it computes."""


def taps(x: Node, w: Node, v: Node) -> Any:
    """States and sequences of several distances, one of which only later steps read."""
    begin = T.stack([v, v * 2, v - 1])

    def step(before: Any, here: Any, after: Any, old: Any, last: Any, other: Any) -> Any:
        new = T.tanh(old * here + last - before * 0.5)
        return new, other * 0.5 + after + new

    info = [{"initial": begin, "taps": [-3, -1]}, v]
    return graphc.scan(step, {"input": x, "taps": [-1, 0, 1]}, info)[0]


def places(x: Node, w: Node, v: Node) -> Any:
    """States that change places, one that stays, an output that is an element, and a matrix as a state."""

    def step(e: Any, a: Any, b: Any, m: Any) -> Any:
        return b, T.sin(a) + e, T.dot(m, w) * 0.1 + T.outer(e, a), e

    return graphc.scan(step, x, [v, v * 2, T.ones_like(w), None])[0]


def reverse(x: Node, w: Node, v: Node) -> Any:
    last, rows = graphc.lax.scan(lambda c, e: (T.tanh(T.dot(c, w) + e), (c, e[0])), v, x, reverse=True)
    return [last, *rows]


def backwards(x: Node, w: Node, v: Node) -> Any:
    return graphc.scan(lambda e, c: T.tanh(T.dot(c, w) + e), x, v, go_backwards=True)[0]


def blocks(x: Node, w: Node, v: Node) -> Any:
    one = graphc.scan(lambda e, c: T.tanh(T.dot(c, w) + e), x, v, checkpoint=2)[0]
    return [one[-1:], graphc.scan(lambda e, c: T.sin(c + e), x, v, checkpoint="sqrt")[0]]


def ends(x: Node, w: Node, v: Node) -> Any:
    return graphc.scan(lambda e, c: (T.tanh(T.dot(c, w) + e), graphc.until(e[0] > 0.9)), x, v)[0]


def truncated(x: Node, w: Node, v: Node) -> Any:
    return graphc.scan(lambda e, c: T.tanh(T.dot(c, w) + e), x, v, truncate_gradient=2)[0]


def nested(x: Node, w: Node, v: Node) -> Any:
    def step(e: Any, c: Any) -> Any:
        inner = graphc.scan(lambda a, s: T.tanh(s * a + e), w, c)[0]
        return inner[-1] * 0.5 + inner.sum(axis=0) * 0.1

    return graphc.scan(step, x, v)[0]


def nested_ends(x: Node, w: Node, v: Node) -> Any:
    def step(e: Any, c: Any) -> Any:
        inner = graphc.scan(lambda a, s: (T.tanh(s * a + e), graphc.until(s[0] > e[0])), w, c)[0]
        return inner[-1] * 0.5 + inner.mean(axis=0)

    return graphc.scan(step, x, v)[0]


def branches(x: Node, w: Node, v: Node) -> Any:
    def step(e: Any, c: Any) -> Any:
        long = T.concatenate([e, c])
        return graphc.ifelse(e[0] > 0, T.tanh(T.dot(c, w)) + e, T.cumsum(long)[: e.shape[0]] * long[1:][: e.shape[0]])

    return graphc.scan(step, x, v)[0]


def indices(x: Node, w: Node, v: Node) -> Any:
    def step(e: Any, place: Any, c: Any) -> Any:
        return (place * 2 + 1) % w.shape[0], T.set_subtensor(c[place], e[place]) + w[place]

    return graphc.scan(step, x, [T.constant(0), v])[0]


def rows(x: Node, w: Node, v: Node) -> Any:
    return graphc.map(lambda e: T.nnet.softmax(T.outer(e, v)).sum(axis=0) + T.dot(e, w), x)[0]


def while_loop(x: Node, w: Node, v: Node) -> Any:
    def on(carry: Any) -> Any:
        return carry[0] < x.shape[0]

    return graphc.while_loop(on, lambda carry: (carry[0] + 1, T.tanh(carry[1] + x[carry[0]])), (T.constant(0), v))


PROGRAMS: dict[str, Build] = {
    build.__name__: build
    for build in (
        taps, places, reverse, backwards, blocks, ends, truncated, nested, nested_ends, branches, indices, rows,
        while_loop,
    )
}  # fmt: skip
STEPS = (0, 1, 2, 5, 40)


def run(name: str, poison: Literal["on", "guard"]) -> None:
    """Compare a program, and its derivatives but of the one without a number of steps, with the interpreter."""
    x, w, v = T.dmatrix("x"), T.dmatrix("w"), T.dvector("v")
    found = PROGRAMS[name](x, w, v)
    results = list(found) if isinstance(found, list | tuple) else [found]
    if name != "while_loop":
        cost = sum((T.sin(each).sum() for each in results if each.dtype == "float64"), T.constant(0.0))
        results += graphc.grad(cost, [x, w, v], disconnected_inputs="ignore")
    specification = graphc.function([x, w, v], results, mode="interpreted", on_unused_input="ignore")
    with options.change(poison=poison):
        call = graphc.function([x, w, v], results, mode="compiled", on_unused_input="ignore")
    assert poison == "on" or all(isinstance(stage, Guarded) for stage in getattr(call, "stages", [call]))
    rng = np.random.default_rng(3)
    for steps in STEPS:
        for size in (1, 3):
            size = max(size, 2) if name == "branches" else size
            arrays = (
                rng.normal(size=(steps + 2 * (name == "taps"), size)),
                rng.normal(size=(size, size)),
                rng.normal(size=size),
            )
            if name == "blocks" and steps == 0:
                continue  # there is no last row
            for got, wanted in zip(call(*arrays), specification(*arrays), strict=True):
                np.testing.assert_allclose(
                    got, wanted, rtol=1e-9, atol=1e-11, err_msg=f"{name}, {steps} steps of {size}"
                )


if __name__ == "__main__":
    faulthandler.enable()
    kind, *names = sys.argv[1:]
    for each in names or PROGRAMS:
        print(each, flush=True)
        run(each, "guard" if kind == "guard" else "on")
