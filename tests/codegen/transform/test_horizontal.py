"""Many reductions over one range: in few loops, none of them large, which compute what each computes by itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.transform import simplify
from graphc.codegen.transform.simplify import MOST_ACCUMULATORS, MOST_OPS, accumulators_of, fuse_reductions
from graphc.ir.node import Node
from graphc.loopir.ir import INDEX, ZERO, Buffer, Const, Let, Load, Loop, Set, Stmt, Store, Var, apply
from graphc.loopir.operators import ACCUMULATE, ADD, MUL
from tests.support.bounds import assert_specified

N, M, ROW = Var("n", INDEX), Var("m", INDEX), Var("i", INDEX)
X, OUT = Buffer("x", "float64"), Buffer("out", "float64")
NOTHING = Const("0.0", "float64")


def total(number: int, size: Var = N, ops: int = 0) -> tuple[Var, tuple[Stmt, ...]]:
    """A sum by itself, of elements that take so many operators besides."""
    into, value = Var(f"sum{number}", "float64"), Load(X, ROW)
    for _ in range(ops):
        value = apply(MUL, value, Const(f"{number}.0", "float64"))  # type: ignore[assignment]
    return into, (Set(into, NOTHING), Loop(ROW, size, (Set(into, apply(ACCUMULATE, into, value)),)))


def loops(body: tuple[Stmt, ...]) -> list[Loop]:
    return [stmt for stmt in body if isinstance(stmt, Loop)]


@pytest.mark.parametrize("count", [2, 12, MOST_ACCUMULATORS, MOST_ACCUMULATORS + 1, 5 * MOST_ACCUMULATORS])
def test_sums_share_loops_of_bounded_size(count: int) -> None:
    fused = loops(fuse_reductions([stmt for number in range(count) for stmt in total(number)[1]]))
    sums = [accumulators_of(loop) for loop in fused]
    assert sum(sums) == count
    assert len(sums) == -(-count // MOST_ACCUMULATORS) and max(sums) <= MOST_ACCUMULATORS


def test_long_terms_share_loops_of_fewer_sums() -> None:
    fused = loops(fuse_reductions([stmt for number in range(12) for stmt in total(number, ops=MOST_OPS // 3)[1]]))
    assert [accumulators_of(loop) for loop in fused] == [2] * 6
    (alone,) = loops(fuse_reductions(total(0, ops=2 * MOST_OPS)[1]))
    assert accumulators_of(alone) == 1


def test_a_loop_passes_full_ones_and_those_of_other_sizes() -> None:
    full = [stmt for number in range(MOST_ACCUMULATORS) for stmt in total(number, M)[1]]
    fused = fuse_reductions([*total(100)[1], *full, *total(101)[1]])
    assert [(loop.size, accumulators_of(loop)) for loop in loops(fused)] == [(M, MOST_ACCUMULATORS), (N, 2)]


def test_a_loop_stays_behind_what_it_needs() -> None:
    first, begun = total(0)
    twice = Var("twice", "float64")
    into, then = total(1)
    terms = Loop(ROW, N, (Set(into, apply(ACCUMULATE, into, apply(MUL, Load(X, ROW), twice))),))
    body = (*begun, Let(twice, apply(ADD, first, first)), Set(into, NOTHING), terms)
    assert fuse_reductions(body) == body
    stored = (*begun, Store(X, ZERO, first), *then)
    assert fuse_reductions(stored) == stored
    beside = fuse_reductions((*begun, Store(OUT, ZERO, first), *then))
    assert [type(stmt) for stmt in beside] == [Set, Set, Loop, Store]


TERMS: list[Callable[[Any, Any, Any], Any]] = [
    lambda v, p, q: T.sqr(v - T.sin(p) * q),
    lambda v, p, q: T.exp(-T.sqr(v * p)) * T.tanh(q),
    lambda v, p, q: T.tanh(v + p) * v + q,
    lambda v, p, q: v * v * p,
]
REDUCTIONS: list[Callable[..., Any]] = [T.sum, T.sum, T.sum, T.mean, T.max, T.min]


def many_sums(seed: int) -> tuple[list[Node], list[Node]]:
    """A program of many reductions: of two lengths, of terms in common and their own, some of which need others, with
    arrays that are stored between them, and the gradients of them all."""
    draw = random.Random(seed)
    x, y, z = T.dvector("x"), T.dvector("y"), T.vector("z", dtype="float32")
    params = [T.dscalar(f"p{number}") for number in range(24)]
    scalars: list[Node] = list(params)
    outputs: list[Node] = []
    for number, param in enumerate(params):
        vector = draw.choice([x, x, y, z])
        other = draw.choice(scalars) if draw.random() < 0.2 else draw.choice(params)
        terms = draw.choice(TERMS)(vector, param, T.tanh(other))
        scalars.append(draw.choice(REDUCTIONS)(terms))
        if number % 9 == 8:
            outputs.append(terms * scalars[-1])
    cost = sum(T.tanh(scalar) * (number + 1.0) for number, scalar in enumerate(scalars[24:]))
    return [x, y, z, *params], [*outputs, cost, *scalars[24:], *graphc.grad(cost, [x, *params])]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_programs_of_many_sums_compute_what_they_mean(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed == 3:
        monkeypatch.setattr(simplify, "MOST_ACCUMULATORS", 3)
    inputs, outputs = many_sums(seed)
    function = graphc.function(inputs, outputs)
    rng = np.random.default_rng(seed)
    for sizes in ((20, 7, 300), (1000, 1, 2)):
        arrays: list[Any] = [rng.normal(size=size) for size in sizes]
        values = [*arrays[:2], arrays[2].astype("float32"), *(np.array(value) for value in rng.normal(size=24))]
        assert_specified(function, function(*values), values)
