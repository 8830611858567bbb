"""Loops along a row that become one, and sums of float32 rows that are carried in float32 for some rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.ir.node import Node
from graphc.tensor import tensor
from tests.support.bounds import assert_within
from tests.support.generated import code

Array = NDArray[Any]


def test_small_sums_of_known_size_keep_to_one_thread() -> None:
    x = tensor("float32", (100, 20), "x")
    y = x - x.mean(axis=1, keepdims=True)
    call = graphc.function([x], [y, (y * x).sum(axis=0)])
    assert "parallel(" not in call.source


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_loops_of_a_layer_norm_and_its_gradient() -> None:
    """A row is gone over for its mean, for its variance, for its own results and sums, and for the gradient by x."""
    x, g = T.fmatrix("x"), T.fmatrix("g")
    scale, shift = T.fvector("scale"), T.fvector("shift")
    centred = x - x.mean(axis=1, keepdims=True)
    y = centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + 1e-5) * scale + shift
    source = code(graphc.function([x, scale, shift, g], [y, *graphc.grad((y * g).sum(), [x, scale, shift])]).source)
    rows = source[source.index("for i_in in") : source.index("\n\n")]
    loops = rows.split("\n" + " " * 12 + "for ")[1:]
    assert rows.count(" in independent(blocks(") == 3, "the mean, the variance, all else"
    assert ["out[" in loop for loop in loops] == [False, False, True, False] and "few_rows" in rows


def error(got: Array, terms: Array) -> Array:
    """Of sums over the last axis, in units of the sum of magnitudes."""
    exact = terms.astype("float64").sum(axis=-1)
    result: Array = np.abs(got - exact) / np.maximum(np.abs(terms).sum(axis=-1, dtype="float64"), 1e-30)
    return result


@pytest.mark.slow
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


@pytest.mark.slow
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
