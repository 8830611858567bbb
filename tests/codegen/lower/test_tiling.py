"""Nests that read operands in different orders: which are cut into tiles, and that tiles change no result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.lower.elements import loop_across
from graphc.codegen.pipeline import restore
from graphc.codegen.transform.independence import mark_nest
from graphc.codegen.transform.parallelize import shares_of
from graphc.ir.node import Node
from graphc.loopir.ir import INDEX, TILE, Buffer, Expr, Load, Loop, Store, Var, add, apply, integer, multiply
from graphc.loopir.operators import FLOORDIV
from graphc.loopir.visit import stride
from tests.support.bounds import assert_within

Array = NDArray[Any]
ITERATION, J, K, N, M = (Var(name, INDEX) for name in "ijknm")
ROW = Var("row", INDEX)
SIDES = (0, 1, TILE - 1, TILE, TILE + 1, 15, 16, 17, 33, 100)
MODES = ("compiled", "python")


def values(shape: Sequence[int], dtype: str = "float64") -> Array:
    """Different numbers, so that no two elements may be confused."""
    if dtype == "bool":
        thirds: Array = values(shape) % 3 == 0
        return thirds
    numbers: Array = np.arange(int(np.prod(shape))) % 101 - (0 if dtype.startswith("u") else 50)
    return numbers.astype(dtype).reshape(shape)


def check(result: Callable[..., Node], args: Sequence[Array], wanted: Array, modes: Sequence[str] = MODES) -> None:
    inputs = [T.tensor(a.dtype.name, (None,) * a.ndim) for a in args]
    output = result(*inputs)
    for mode in (*modes, "interpreted"):
        got = graphc.function(inputs, output, mode=mode)(*args)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted, err_msg=mode)


def tiled(inputs: Sequence[Node], output: Node) -> bool:
    return "_tile in range" in graphc.function(inputs, output).source


# Which loops ---------------------------------------------------------------------------------------------------------


X, OUT = Buffer("x", "float64"), Buffer("out", "float64")


def load(buffer: Buffer, index: Expr) -> Load:
    return Load(buffer, index)


HERE, ACROSS = add(ROW, J), add(multiply(J, N), ITERATION)


@pytest.mark.parametrize(
    ("position", "along_i", "along_j"),
    [
        (HERE, None, 1),
        (ACROSS, 1, None),
        (add(ITERATION, J), 1, 1),
        (add(ITERATION, ITERATION), None, 0),
        (multiply(ROW, K), None, 0),
        (Load(Buffer("x", INDEX), J), 0, None),
        (apply(FLOORDIV, add(ITERATION, K), N), None, 0),
        (integer(3), 0, 0),
    ],
)
def test_strides_of_positions(position: Expr, along_i: int | None, along_j: int | None) -> None:
    names = {ROW: multiply(ITERATION, M)}
    assert (stride(position, ITERATION, names), stride(position, J, names)) == (along_i, along_j)


def across(*positions: Expr, rows: Expr = N, columns: Expr = M) -> Var | None:
    return loop_across(positions, (ITERATION, J), (rows, columns))


def test_loops_read_across_are_found() -> None:
    assert across(ACROSS) == across(J, ACROSS) == ITERATION
    assert across(add(multiply(ITERATION, M), J)) is None
    assert across(J) is None
    assert across(multiply(J, N)) is None
    assert loop_across([ACROSS], (K, ITERATION, J), (N, N, M)) == ITERATION
    assert loop_across([J], (J,), (M,)) is None


def test_short_loops_are_left_alone() -> None:
    assert across(ACROSS, rows=integer(TILE)) is None
    assert across(ACROSS, columns=integer(3)) is None


@pytest.mark.slow
def test_only_nests_of_mixed_orders_go_by_tiles() -> None:
    x, y = T.matrix("x"), T.matrix("y")
    v = T.vector("v")
    assert tiled([x], x + x.T) and tiled([x, y], x.T * y) and tiled([x], x.T.copy())
    assert not tiled([x, y], x + y) and not tiled([x, v], x + v) and not tiled([x, y], (x.T + y.T).sum())


# Results -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rows", SIDES)
@pytest.mark.parametrize("columns", SIDES)
def test_transposes_of_every_remainder(rows: int, columns: int) -> None:
    x, y = values((rows, columns)), values((columns, rows))
    modes = MODES if rows * columns < 1200 else MODES[:1]
    check(lambda a: a.T.copy(), [x], x.T, modes)
    check(lambda a, b: a.T + 2 * b, [x, y], x.T + 2 * y, modes)


@pytest.mark.parametrize("size", SIDES)
def test_a_matrix_and_its_transpose(size: int) -> None:
    x = values((size, size))
    check(lambda a: a + a.T, [x], x + x.T, MODES if size < 40 else MODES[:1])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float32", "float64"])
def test_dtypes(dtype: str) -> None:
    x, y = values((19, 26), dtype), values((26, 19), dtype)
    check(lambda a: a.T.copy(), [x], x.T)
    check(lambda a, b: T.maximum(a.T, b), [x, y], np.maximum(x.T, y))


@pytest.mark.slow
@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("shape", [(9, 10, 17), (1, 16, 9), (33, 2, 8), (4, 0, 9)])
def test_axes_of_rank_3(order: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = values(shape, "float32")
    y = values(np.transpose(x, order).shape, "float32")
    check(lambda a, b: a.dimshuffle(*order) + b, [x, y], np.transpose(x, order) + y)


@pytest.mark.slow
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_axes_of_rank_4(order: tuple[int, ...]) -> None:
    x = values((3, 9, 2, 11))
    check(lambda a: a.dimshuffle(*order) * 2, [x], np.transpose(x, order) * 2)


def test_static_and_broadcast_axes() -> None:
    x = T.tensor("float64", shape=(17, 12))
    value, column = values((17, 12)), values((12, 1))
    f = graphc.function([x], x.T + 1)
    np.testing.assert_array_equal(f(value), value.T + 1)
    c = T.tensor("float64", shape=(12, 1))
    g = graphc.function([x, c], T.exp(c) + x.T)
    np.testing.assert_allclose(g(value, column), np.exp(column) + value.T, rtol=1e-14)


def test_indices_in_a_tile_are_numbers_of_their_dtype() -> None:
    """Under CPython a loop's variable is Python's integer, which never wraps."""
    x = values((20, 20), "int64")
    rows = np.arange(20)[:, None]

    def result(a: Any) -> Any:
        return a.T + T.arange(20).dimshuffle(0, "x") * np.int64(2**62) * 4

    check(result, [x], x.T + rows * np.int64(2**62) * np.int64(4))


@pytest.mark.slow
def test_updates_in_place_and_gradients() -> None:
    start, step = values((18, 18)), values((18, 18))[::-1].copy()
    s, y = graphc.shared(start.copy()), T.matrix("y")
    graphc.function([y], [], updates=[(s, s + y.T)])(step)
    np.testing.assert_array_equal(s.get_value(), start + step.T)
    graphc.function([], [], updates=[(s, s.T + s)])()
    np.testing.assert_array_equal(s.get_value(), (start + step.T) + (start + step.T).T)
    x = T.matrix("x")
    f = graphc.function([x], graphc.grad((x * x.T).sum(), x))
    np.testing.assert_array_equal(f(start), 2 * start.T)


# Threads -------------------------------------------------------------------------------------------------------------


def forced(threads: int | str | None, crossover: int) -> NDArray[np.int64]:
    """Settings with which every loop of two iterations is shared by three threads, and its results go past the
    caches."""
    return np.array([3, 2, 1, 0, 1], np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("order", [(1, 0), (2, 1, 0), (2, 0, 1), (0, 2, 1), (0, 3, 1, 2), (3, 1, 2, 0)])
def test_threads_share_tiles(order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "settings_of", forced)
    x = T.tensor("float64", (None,) * len(order))
    f = graphc.function([x], x.dimshuffle(*order) * 3)
    assert "parallel(" in f.source and "_tile in range" in f.source
    for side in (1, 9, 17):
        value = values(range(side, side + len(order)))
        np.testing.assert_array_equal(f(value), np.transpose(value, order) * 3)


def test_a_loop_over_a_middle_axis_keeps_to_itself() -> None:
    """Iterations write at (k n + i) m + j: for each i others, if i has no more than n iterations."""

    def over(iterations: Expr) -> Loop:
        where = add(multiply(add(multiply(K, N), ITERATION), M), J)
        nest = Loop(ITERATION, iterations, (Loop(K, Var("p", INDEX), (Loop(J, M, (Store(OUT, where, load(X, J)),)),)),))
        return mark_nest(nest)

    assert shares_of(over(N), []) is not None
    assert shares_of(over(Var("q", INDEX)), []) is None


# What is expensive is computed along rows -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 40), (33, 65)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_a_transpose_are_computed_in_its_order(dtype: str, shape: tuple[int, int]) -> None:
    """Across the rows no function is vectorised: what costs more than a store is computed first."""
    a, b = (values(side, dtype) / 50 for side in (shape, shape[::-1]))
    x, y = (T.matrix(name, dtype=dtype) for name in "xy")
    expensive = T.tanh(x.T * 2) * y
    outputs = [expensive, *graphc.grad(expensive.sum(), [x, y]), x.T * 2 + y]
    f = graphc.function([x, y], outputs)
    assert_within(f(a, b), outputs, {x: a, y: b})
    reason = "computed in order: its nest reads it strided"
    assert reason in graphc.function([x, y], expensive).explain()
    assert reason not in graphc.function([x, y], x.T * 2 + y).explain()
