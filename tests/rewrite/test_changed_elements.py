"""Reads of arrays that were changed one element after the other: each becomes what was written there last."""

from __future__ import annotations

import numpy as np

import graphc.tensor as T
from graphc.autodiff import grad
from graphc.ir.interpret import interpret
from graphc.ir.node import Node
from graphc.ir.walk import Graph
from graphc.rewrite import rewrite

COUNT = 60


def chain(array: Node, rng: np.random.Generator) -> list[Node]:
    """Arrays that are each made of the one before: elements are set, or increased, by others; a slice now and then."""
    made = [array]
    for number in range(COUNT):
        before = made[-1]
        part = before[int(rng.integers(20))]
        if number % 25 == 24:
            part, value = before[3:5], before[int(rng.integers(20))]
        else:
            value = before[int(rng.integers(20))] / 2
        made.append((T.inc_subtensor if rng.random() < 0.3 else T.set_subtensor)(part, value))
    return made


def test_each_element_is_what_was_written_last() -> None:
    rng, a = np.random.default_rng(5), T.dvector("a")
    made = chain(a, rng)
    forked = [T.set_subtensor(made[number][2], 7.0) for number in (20, 40)]  # other arrays of the same ones
    parts = [each[int(at)] for each in (*made[::6], *forked) for at in rng.integers(20, size=4)]
    results = [*parts, grad((made[-1] ** 2).sum() + sum(parts), a)]
    graph, fired = rewrite(Graph((a,), tuple(results)))
    assert sum(each.rule == "subtensor_of_changed" for each in fired) > COUNT
    start = rng.normal(size=20)
    wanted, found = (interpret(each, {a: start}) for each in (Graph((a,), tuple(results)), graph))
    for want, got in zip(wanted, found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
