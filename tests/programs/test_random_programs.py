"""Random programs: compiled = generated source under CPython = interpreted: values, gradients, updates, sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

import graphc
import graphc.tensor as T
from graphc.options import options
from graphc.startup.process import PROCESS
from tests.support.bounds import assert_within
from tests.support.instruction_programs import (
    INSTRUCTION,
    KINDS,
    SHAPES,
    arrays,
    build,
    compare,
    compare_with_state,
    have_the_same_sizes,
    outcome,
)


@pytest.mark.slow
@given(instructions=st.lists(INSTRUCTION, min_size=1, max_size=14), seed=st.integers(0, 2**32 - 1))
@example(instructions=[(2, 3, 0, 0), *[(0, 0, 0, 0)] * 3, (3, 6, 0, 0)], seed=0)  # a slot that holds two dtypes
@example(instructions=[(0, 0, 44, 0), (2, 90, 0, 0), (3, 19, 0, 0), (0, 0, 0, 0)], seed=0)  # a row's element at 0
@example(instructions=[(0, 0, 74, 0), (2, 42, 66, 0), (1, 0, 0, 97), (1, 61, 0, 97)], seed=0)  # sum at 3514
@settings(max_examples=16, suppress_health_check=list(HealthCheck))
def test_random_programs(instructions: list[tuple[int, int, int, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    leaves = [T.dmatrix("x"), T.dvector("y"), T.dscalar("s")]
    pool = build(instructions, leaves)
    cost = sum((value.mean() for value in pool[3:]), start=T.sqr(pool[-1]).sum())
    weight = graphc.shared(rng.normal(size=(3,)), name="w")
    total = cost + T.sqr(weight).sum() * cost
    gradients = graphc.grad(total, [*leaves, weight], disconnected_inputs="ignore")
    outputs = [pool[-1], pool[len(pool) // 2], total, *gradients]
    updates = [(weight, weight - 0.1 * gradients[-1])]
    calls = {
        mode: graphc.function(leaves, outputs, mode, updates=updates, on_unused_input="ignore")
        for mode in ("interpreted", "python", "compiled")
    }
    compiled = PROCESS.compilations
    start = weight.get_value()
    for rows, columns in SHAPES:
        values = arrays(rows, columns, rng)
        before = [value.tobytes() for value in values]
        want = found = None
        for mode, call in calls.items():
            weight.set_value(start)
            found = outcome(call, values)
            assert [value.tobytes() for value in values] == before, mode
            if mode == "interpreted":
                want = found
                continue
            compare_with_state(found, want, call, values, weight, start)
    assert PROCESS.compilations == compiled


@pytest.mark.slow
@given(instructions=st.lists(INSTRUCTION, min_size=1, max_size=10), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_random_programs_that_may_write_their_inputs(instructions: list[tuple[int, int, int, int]], seed: int) -> None:
    """The results are those of a function that writes none, wherever they are made; the call of arrays that overlap
    too."""
    rng = np.random.default_rng(seed)
    x, z, y, s = T.dmatrix("x"), T.dmatrix("z"), T.dvector("y"), T.dscalar("s")
    pool = build(instructions, [x, y, s])
    near = [value for value in pool[3:] if have_the_same_sizes(value, x)]
    outputs = [pool[-1], *near[-2:], x - 0.1 * graphc.grad(T.sqr(pool[-1]).sum() + x.sum(), x), z * 2.0 + y.sum()]
    leaves = [x, z, y, s]
    given = [graphc.In(leaf, mutable=leaf is not y) for leaf in leaves]
    want = graphc.function(leaves, outputs, "interpreted", on_unused_input="ignore")
    calls = {mode: graphc.function(given, outputs, mode, on_unused_input="ignore") for mode in ("python", "compiled")}
    for rows, columns in SHAPES:
        matrix, vector, scalar = arrays(rows, columns, rng)
        expected = outcome(want, [matrix, matrix, vector, scalar])
        for call in calls.values():
            for second in (matrix.copy(), None):
                first, kept = matrix.copy(), vector.tobytes()
                found = outcome(call, [first, first if second is None else second, vector, scalar])
                compare(found, expected, call, [matrix, matrix, vector, scalar])
                assert vector.tobytes() == kept


@pytest.mark.slow
@pytest.mark.parametrize("outline", ["auto", "always", "never"])
def test_large_random_program(outline: str) -> None:
    """One long program, of several nests and hundreds of ops, in which rounding decides nothing; its nests in one
    function, and as functions."""
    rng = np.random.default_rng(16)
    instructions = [tuple(int(v) for v in (rng.integers(0, len(KINDS)), *rng.integers(0, 100, 3))) for _ in range(60)]
    leaves = [T.dmatrix("x"), T.dvector("y"), T.dscalar("s")]
    pool = build(instructions, leaves)  # type: ignore[arg-type]
    outputs = pool[-4:]
    values = arrays(4, 3, rng)
    with options.change(outline=outline):
        for mode in ("python", "compiled"):
            found = graphc.function(leaves, outputs, mode, on_unused_input="ignore")(*values)
            assert_within(found, outputs, dict(zip(leaves, values, strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_empty_sizes(rows: int, columns: int) -> None:
    x, y = T.dmatrix("x"), T.dvector("y")
    outputs = [
        *(T.exp(x) + y, x.sum(), x.sum(axis=0), x.mean(axis=1), T.dot(x, x.T), T.dot(x.T, x)),
        *(T.concatenate([x, x]), x[:, ::-1], T.nnet.softmax(x.T @ x)),
    ]
    values = [np.ones((rows, columns)), np.ones(columns)]
    for mode in ("python", "compiled"):
        assert_within(graphc.function([x, y], outputs, mode)(*values), outputs, {x: values[0], y: values[1]})
