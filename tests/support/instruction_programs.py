"""Random programs from lists of instructions, as hypothesis draws and shrinks them.

In: tuples (kind, which, first operand, second operand), leaves. Out: the values of the program; results of its calls,
compared with those of the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.ir import sizes
from graphc.ir.node import Node
from tests.support.bounds import assert_specified

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
