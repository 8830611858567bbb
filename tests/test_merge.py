"""Loops along a row that become one, and sums of float32 rows that are carried in float32 for some rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from bounds import assert_within
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.copies import row_sum
from graphc.codegen.merge import merge_rows
from graphc.codegen.narrow import narrow_sums
from graphc.codegen.simplify import statements
from graphc.ir.loops import (
    BLOCK,
    INDEX,
    ROWS,
    ZERO,
    Apply,
    Check,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Set,
    Stmt,
    Store,
    Var,
    add,
    blocks_of,
    integer,
    multiply,
    turns_in_block,
)
from graphc.ir.node import Node
from graphc.record import replace
from graphc.tensor import tensor

Array = NDArray[Any]
TURN, J, K, N, M, ROW, BLOCK_VAR, R = (Var(name, INDEX) for name in ("i", "j", "k", "n", "m", "row", "block", "r"))
TOTAL, PART = Var("total", "float64"), Var("part", "float64")


def load(buffer: str, index: Expr) -> Load:
    return Load(buffer, index, "float64")


def doubled(value: Expr) -> Expr:
    return Apply("_0 + _0", (value,), "float64")


def accumulated(into: Var, term: Expr) -> Set:
    return Set(into, Apply("accumulate(_0, _1)", (into, term), into.dtype))


def loop(var: Var, *body: Stmt, size: Expr = M) -> Loop:
    return Loop(var, size, body)


def in_blocks(term: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """The sum of a row by blocks."""
    first = Var("first", INDEX)
    turn = loop(R, accumulated(PART, term(add(first, R))), size=turns_in_block(M, BLOCK_VAR))
    zero = Const("0.0", "float64")
    begin = Let(first, multiply(BLOCK_VAR, integer(BLOCK)))
    return Set(TOTAL, zero), Loop(BLOCK_VAR, blocks_of(M), (begin, Set(PART, zero), turn, accumulated(TOTAL, PART)))


def loops_left(*body: Stmt) -> int:
    """How many loops directly inside a loop over rows are left."""
    (rows,) = merge_rows([Loop(TURN, N, body)])
    assert isinstance(rows, Loop)
    return sum(isinstance(stmt, Loop) for stmt in rows.body)


MAKES = loop(J, Store("a", J, doubled(load("x", J))))
ZERO_TOTAL = Set(TOTAL, Const("0.0", "float64"))
MERGED: dict[str, tuple[Stmt, ...]] = {
    "a sum reads what is made": (MAKES, ZERO_TOTAL, loop(K, accumulated(TOTAL, load("a", K)))),
    "a value is read and made again": (MAKES, loop(K, Store("a", K, doubled(load("a", K))))),
    "nothing in common": (MAKES, loop(K, Store("b", K, load("y", K)))),
    "the same operand, read at any place": (MAKES, loop(K, Store("b", K, load("x", add(K, integer(1)))))),
    "a name between that both may follow": (MAKES, Let(ROW, multiply(TURN, M)), loop(K, Store("b", K, load("y", ROW)))),
    "what comes between may come later": (
        MAKES,
        Store("c", TURN, load("a", ZERO)),
        loop(K, Store("b", K, load("y", K))),
    ),
    "into blocks": (MAKES, *in_blocks(lambda place: load("a", place))),
    "out of blocks": (*in_blocks(lambda place: load("x", place)), MAKES),
}
APART: dict[str, tuple[Stmt, ...]] = {
    "other sizes": (MAKES, loop(K, Store("b", K, load("a", K)), size=N)),
    "the element after": (MAKES, loop(K, Store("b", K, load("a", add(K, integer(1)))))),
    "the first element": (MAKES, loop(K, Store("b", K, load("a", ZERO)))),
    "an element that is overwritten": (loop(J, Store("b", J, load("a", ZERO))), loop(K, Store("a", K, load("x", K)))),
    "the sum of all": (
        ZERO_TOTAL,
        loop(J, accumulated(TOTAL, load("x", J))),
        loop(K, Store("a", K, TOTAL)),
    ),
    "what is computed from the sum": (
        *in_blocks(lambda place: load("x", place)),
        Let(Var("mean", "float64"), doubled(TOTAL)),
        loop(K, Store("a", K, Var("mean", "float64"))),
    ),
    "an element that is stored between": (
        MAKES,
        Store("c", TURN, load("a", ZERO)),
        Let(PART, load("c", TURN)),
        loop(K, Store("b", K, PART)),
    ),
    "a name that is set again behind its reader": (
        MAKES,
        Let(ROW, load("a", ZERO)),
        Store("c", ROW, TOTAL),
        ZERO_TOTAL,
        loop(K, accumulated(TOTAL, load("y", K))),
    ),
    "a check": (
        MAKES,
        Check(Apply("_0 < _1", (load("a", ZERO), TOTAL), "bool"), 1),
        loop(K, Store("b", K, load("y", K))),
    ),
    "an element between": (MAKES, Let(PART, load("a", ZERO)), loop(K, Store("b", K, PART))),
    "a carry": (MAKES, ZERO_TOTAL, loop(K, accumulated(TOTAL, load("a", K)), Store("b", K, TOTAL))),
    "a sum of another block": (MAKES, *in_blocks(lambda place: load("a", add(place, integer(1))))),
    "a sum that begins again": (
        loop(J, accumulated(TOTAL, load("x", J))),
        ZERO_TOTAL,
        loop(K, accumulated(TOTAL, load("y", K))),
    ),
}


@pytest.mark.parametrize("name", MERGED)
def test_loops_that_meet_only_in_the_same_turn_are_one(name: str) -> None:
    assert loops_left(*MERGED[name]) == 1


@pytest.mark.parametrize("name", APART)
def test_loops_that_need_more_stay_apart(name: str) -> None:
    assert loops_left(*APART[name]) == 2


def test_the_outermost_loops_are_left_alone() -> None:
    body = [MAKES, loop(K, Store("b", K, load("a", K)))]
    assert merge_rows(body) == tuple(body)


# Rows in float32 -----------------------------------------------------------------------------------------------------


def column_sum(term: Expr) -> Loop:
    total = Apply("accumulate(_0, _1)", (load("sums", J), Apply("float64(_0)", (term,), "float64")), "float64")
    return loop(TURN, loop(J, Store("sums", J, total)), size=N)


def test_sums_of_float32_rows_are_narrowed() -> None:
    targets = {"sums": row_sum(7, 5, integer(5))}
    term = Load("x", add(multiply(TURN, M), J), "float32")
    found = narrow_sums([column_sum(term)], targets, lambda name: f"new_{name}")
    assert found.narrow == {"new_few_rows": "sums"}
    assert found.targets["sums"].turns == 1 and (7 + ROWS - 1) // ROWS == 1
    stored = [stmt.buffer for stmt in statements(found.body) if isinstance(stmt, Store)]
    assert stored == ["new_few_rows", "new_few_rows", "sums"]
    for other in (
        column_sum(Load("x", J, "int32")),
        replace(column_sum(term), size=integer(ROWS)),
        loop(TURN, *column_sum(term).body, Store("out", TURN, load("sums", ZERO))),
    ):
        kept = narrow_sums([other], targets, lambda name: f"new_{name}")
        assert kept.body == (other,) and not kept.narrow and kept.targets == targets


def test_small_sums_of_known_size_keep_to_one_thread() -> None:
    x = tensor("float32", (100, 20), "x")
    y = x - x.mean(axis=1, keepdims=True)
    assert "parallel(" not in graphc.function([x], [y, (y * x).sum(axis=0)]).source


def programs() -> dict[str, Callable[[Node, Node], Sequence[Node]]]:
    def normal(x: Node, y: Node) -> list[Node]:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + 1e-3)
        return [scaled * y, (scaled * y).sum(axis=0), y.sum(axis=0), (scaled + y).sum(axis=1)]

    def soft(x: Node, y: Node) -> list[Node]:
        z = T.nnet.softmax(x, axis=1)
        return [z, *graphc.grad((T.sqr(z) * y).sum(), [x, y]), z.sum(axis=0)]

    def chained(x: Node, y: Node) -> list[Node]:
        a = T.exp(-T.sqr(x)) + y.sum(axis=1, keepdims=True)
        b = a * a.max(axis=1, keepdims=True)
        return [a, b, (a * b).sum(axis=1), (a > b).any(axis=1), b.sum(axis=0), b.sum()]

    return {"normal": normal, "soft": soft, "chained": chained}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", programs())
def test_merged_rows_compute_what_the_interpreter_computes(name: str, dtype: str) -> None:
    """Over sizes around those of blocks of elements and of rows."""
    x, y = T.matrix("x", dtype=dtype), T.matrix("y", dtype=dtype)
    outputs = programs()[name](x, y)
    call = graphc.function([x, y], outputs)
    rng = np.random.default_rng(6)
    for shape in [(1, 1), (0, 4), (2, 255), (31, 256), (32, 257), (33, 3), (65, 513)]:
        values = rng.normal(size=(2, *shape)).astype(dtype)
        assert_within(call(*values), outputs, {x: values[0], y: values[1]})
    special = rng.normal(size=(2, 40, 300)).astype(dtype)
    special[0, 3, 7], special[1, 20, 299], special[1, 39, 0] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        assert_within(call(*special), outputs, {x: special[0], y: special[1]})


def test_loops_of_a_layer_norm_and_its_gradient() -> None:
    """A row is gone over for its mean, for its variance, for its own results and sums, and for the gradient by x."""
    x, g = T.fmatrix("x"), T.fmatrix("g")
    scale, shift = T.fvector("scale"), T.fvector("shift")
    centred = x - x.mean(axis=1, keepdims=True)
    y = centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + 1e-5) * scale + shift
    source = graphc.function([x, scale, shift, g], [y, *graphc.grad((y * g).sum(), [x, scale, shift])]).source
    rows = source[source.index("for i_in in") : source.index("return 0")]
    loops = rows.split("\n" + " " * 12 + "for ")[1:]
    assert ["out[" in loop for loop in loops] == [False, False, True, False] and "few_rows" in rows


def error(got: Array, terms: Array) -> Array:
    """Of sums over the last axis, in units of the sum of magnitudes."""
    exact = terms.astype("float64").sum(axis=-1)
    result: Array = np.abs(got - exact) / np.maximum(np.abs(terms).sum(axis=-1, dtype="float64"), 1e-30)
    return result


@pytest.mark.parametrize("size", [8, 100, 256, 257, 1000, 5000])
def test_sums_of_float32_are_about_as_accurate_as_numpys_and_better_where_long(size: int) -> None:
    rng = np.random.default_rng(size)
    x = T.fmatrix("x")
    call = graphc.function([x], x.sum(axis=1))
    shape = (200, size)
    half = rng.normal(size=shape) * 1e4
    draws = {
        "uniform": rng.random(shape),
        "normal": rng.normal(size=shape),
        "magnitudes": rng.normal(size=shape) * 10.0 ** rng.uniform(-6, 6, shape),
        "constant": np.full(shape, 0.1),
        "shifted": rng.normal(size=shape) + 1e4,
        "sorted": np.sort(rng.random(shape)),
        "cancelling": rng.permuted(np.concatenate([half, -half], axis=1), axis=1),
    }
    for name, terms in draws.items():
        values = terms.astype("float32")
        ours, numpys = (np.sqrt(np.square(error(got, values)).mean()) for got in (call(values), values.sum(axis=1)))
        # Rows that are all alike are one draw of what rounding does, not two hundred: one of the result more or less.
        slack = np.finfo("float32").eps if name == "constant" else 1e-9
        assert ours <= 1.5 * numpys + slack, name


def test_sums_of_float32_columns_are_more_accurate_than_numpys() -> None:
    rng = np.random.default_rng(0)
    x = T.fmatrix("x")
    outputs = [T.exp(-T.sqr(x)).sum(axis=1), (x * T.sqr(x.max(axis=1, keepdims=True) * 0 + 1)).sum(axis=0)]
    call = graphc.function([x], outputs)
    assert "few_rows" in call.source
    for terms in (rng.random((3000, 5)), rng.normal(size=(3000, 5)) + 100, np.full((3000, 5), 0.1)):
        values = terms.astype("float32")
        ours, numpys = (error(got, values.T).max() for got in (call(values)[1], values.sum(axis=0)))
        assert ours <= numpys and ours < 1e-6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(None, 5, 1), (2, 5, 1), (None, 5, 1, 1), (None, None, 5, 1)])
@pytest.mark.parametrize("mode", ["python", "compiled"])
def test_short_rows_of_known_sizes_are_normalised_by_their_own_sums(
    mode: str, sizes: tuple[int | None, ...], dtype: str
) -> None:
    """Sums that are written out term by term, between loops over the elements that they are sums of."""
    x = tensor(dtype, sizes, "x")
    axis = sizes.index(5)
    values: Array = np.random.default_rng(0).uniform(0.5, 1.5, [size or 3 for size in sizes]).astype(dtype)
    axes: dict[str, Any] = {"axis": axis, "keepdims": True}
    powers = np.exp(values)
    normalised: list[tuple[Node, Array]] = [
        (T.softmax(x, axis=axis), powers / powers.sum(**axes)),
        (T.log_softmax(x, axis=axis), values - np.log(powers.sum(**axes))),
        (x - x.mean(**axes), values - values.mean(**axes)),
        (x / x.max(**axes), values / values.max(**axes)),
        (x * x.prod(**axes), values * values.prod(**axes)),
    ]
    for output, expected in normalised:
        close = 20 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(graphc.function([x], output, mode)(values), expected, rtol=close, atol=close)
