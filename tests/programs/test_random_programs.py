"""Random programs: compiled = generated source under CPython = interpreted: values, gradients, updates, sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from bounds import assert_specified, assert_within
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.ir import sizes
from graphc.ir.node import Node
from graphc.options import options
from graphc.startup.process import PROCESS

Array = NDArray[Any]
SHAPES = ((3, 4), (1, 4), (3, 1), (5, 2))
"""Sizes (n, m) of the inputs that one compiled program runs on."""

UNARY: Sequence[Callable[[Node], Node]] = (
    T.tanh,
    T.sigmoid,
    T.neg,
    T.sqr,
    abs,
    T.sin,
    T.softplus,
    lambda a: T.exp(-T.sqr(a)),
    lambda a: T.log1p(T.sqr(a)),
    lambda a: a * 0.5 + 1.0,
    lambda a: T.maximum(a, 0.0),
    lambda a: T.where(a > 0.1, a, T.sin(a)),
    lambda a: T.cast(T.cast(a, "float32"), "float64"),
    lambda a: T.cast(T.floor(a), "int64") * 0.25,
    lambda a: T.clip(a, -0.5, 0.5),
)
BINARY: Sequence[Callable[[Node, Node], Node]] = (
    T.add,
    T.sub,
    T.mul,
    T.maximum,
    T.minimum,
    lambda a, b: T.arctan2(a, b + 0.125),  # a close rewrite may change the sign of a zero, which is half a turn here
    lambda a, b: a / (1.0 + T.sqr(b)),
    lambda a, b: T.where(a < b, a, b),
)
SHAPING: Sequence[Callable[[Node], Node]] = (
    lambda a: a.T,
    lambda a: a.flatten(),
    lambda a: a[..., None],
    lambda a: T.stack([a, T.tanh(a)]),
)
SHAPING_OF_ARRAYS: Sequence[Callable[[Node], Node]] = (
    lambda a: a[::-1],
    lambda a: a[:-1],
    lambda a: a[1:] * 2.0,
    lambda a: T.concatenate([a, -a], axis=-1),
    lambda a: T.set_subtensor(a[:1], 0.5),
    lambda a: T.inc_subtensor(a[::-1], a),
    lambda a: a[T.arange(a.shape[0]) // 2],
    lambda a: T.repeat(a, 2, axis=0),
)
REDUCING: Sequence[Callable[[Node], Node]] = (
    lambda a: a.sum(),
    lambda a: a.mean(axis=0),
    lambda a: a.sum(axis=-1),
    lambda a: a - a.mean(axis=-1, keepdims=True),
    lambda a: a.var(axis=0),
    lambda a: T.logsumexp(a, axis=0),
    lambda a: T.cumsum(a, axis=0),
    T.nnet.softmax,
    lambda a: T.dot(a, a.T) if a.ndim < 3 else a.prod(axis=0),
)
KINDS = (UNARY, BINARY, SHAPING, SHAPING_OF_ARRAYS, REDUCING)
INSTRUCTION = st.tuples(st.integers(0, len(KINDS) - 1), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))


def build(instructions: Sequence[tuple[int, int, int, int]], leaves: Sequence[Node]) -> list[Node]:
    """All values of the program; an instruction names its operands by position modulo what there is."""
    pool = list(leaves)
    for kind, which, first, second in instructions:
        a, b = pool[-1 - first % min(len(pool), 5)], pool[second % len(pool)]
        if a.ndim > 3:
            a = a.sum(axis=0)
        if KINDS[kind] is BINARY:
            new = BINARY[which % len(BINARY)](a, matching(a, b))
        elif a.ndim or kind < KINDS.index(SHAPING_OF_ARRAYS):
            new = KINDS[kind][which % len(KINDS[kind])](a)  # type: ignore[call-arg]
        else:
            new = T.tanh(a)
        pool.append(new)
    return pool


def matching(a: Node, b: Node) -> Node:
    """`b` where it has the sizes of `a`, else its mean."""
    return b if have_the_same_sizes(a, b) else b.mean()


def have_the_same_sizes(a: Node, b: Node) -> bool:
    """Whether the sizes are known to be the same."""
    return a.ndim == b.ndim and all(map(sizes.equal, a.type.shape, b.type.shape))


def arrays(rows: int, columns: int, rng: np.random.Generator) -> list[Array]:
    return [rng.normal(size=(rows, columns)), rng.normal(size=columns), rng.normal(size=())]


def outcome(call: Callable[..., Any], values: Sequence[Array]) -> Any:
    """What a call gives, or the kind of error it raises."""
    try:
        return call(*values)
    except graphc.GraphcError as error:
        return type(error)


@pytest.mark.slow
@given(instructions=st.lists(INSTRUCTION, min_size=1, max_size=14), seed=st.integers(0, 2**32 - 1))
@example(instructions=[(2, 3, 0, 0), *[(0, 0, 0, 0)] * 3, (3, 6, 0, 0)], seed=0)  # a slot that holds two dtypes
@example(instructions=[(0, 0, 44, 0), (2, 90, 0, 0), (3, 19, 0, 0), (0, 0, 0, 0)], seed=0)  # a row's element at 0
@example(instructions=[(0, 0, 74, 0), (2, 42, 66, 0), (1, 0, 0, 97), (1, 61, 0, 97)], seed=0)  # sum at 3514
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
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
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
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


def compare_with_state(
    found: Any, want: Any, call: graphc.Function, values: Sequence[Array], weight: graphc.SharedVariable, start: Array
) -> None:
    """The same of a call that updates a variable; one that fails leaves it alone."""
    if isinstance(found, type):
        np.testing.assert_array_equal(weight.get_value(), start)
        compare(found, want, call, values)
    else:
        compare([*found, weight.get_value()], want, call, values, [start])


def compare(
    found: Any, want: Any, call: graphc.Function, values: Sequence[Array], shared: Sequence[Array] = ()
) -> None:
    """What a call gives, or leaves in its variables, is what the interpreter gives, as near as arithmetic promises: in
    some of these programs rounding decides on which side of a comparison a value falls."""
    if isinstance(want, type) or isinstance(found, type):
        assert found is want, call.source
        return
    assert_specified(call, found, values, shared, least=0.0)


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
