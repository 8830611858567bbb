"""Pooling against its definition and against Theano 1.0.5; its derivatives; NaN, integers, nothing, sizes that a call
tells, and what is refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError, GraphTypeError, GraphValueError
from graphc.ir.node import variable
from graphc.tensor.signal import downsample, pool
from graphc.testing import check_gradient

RECORDED = Path(__file__).with_name("theano_pooling.txt")
MODES = ("max", "sum", "average_inc_pad", "average_exc_pad")
CASES: list[Any] = [
    ((7,), (2,), True, None, None),
    ((7,), (2,), False, None, None),
    ((2, 3), (3,), True, (1,), (2,)),
    ((2, 4, 6), (2, 2), True, None, None),
    ((2, 5, 7), (2, 2), True, None, None),
    ((2, 5, 7), (3, 2), False, (2, 3), None),
    ((1, 2, 5, 5), (3, 3), True, (1, 2), (1, 1)),
    ((3, 4, 4), (2, 3), True, (3, 1), (1, 2)),
    ((1, 3, 4), (4, 2), True, (1, 1), (0, 1)),
    ((1, 3, 4), (4, 5), False, (1, 3), None),
    ((1, 4, 3, 5), (2, 2, 2), True, (1, 1, 2), (1, 0, 1)),
    ((4, 3, 5), (2, 2, 3), False, (2, 3, 2), None),
]
"""Sizes of the array; ws; ignore_border; stride; pad."""


def pooled(x: Any, ws: Any, ignore_border: bool, stride: Any, pad: Any, mode: str) -> Any:
    """The definition: windows of a padded array, of which those elements count that are there."""
    rank = len(ws)
    stride, pad = stride or ws, pad or (0,) * rank
    lengths = x.shape[x.ndim - rank :]
    counts = []
    for n, w, s, p in zip(lengths, ws, stride, pad, strict=True):
        begins = range(-p, n + p, s)
        whole = [b for b in begins if b + w <= n + p]
        # Without ignore_border there is one that reaches beyond, if elements are left that none has.
        partial = [b for b in begins if b not in whole and (b == 0 or s >= w or b - s + w < n)]
        counts.append(whole if ignore_border else [*whole, *partial])
    result: Any = np.zeros((*x.shape[: x.ndim - rank], *map(len, counts)), x.dtype)
    for place in itertools.product(*(range(len(count)) for count in counts)):
        starts = [count[k] for count, k in zip(counts, place, strict=True)]
        key = tuple(slice(max(b, 0), b + w) for b, w in zip(starts, ws, strict=True))
        part = x[(..., *key)]
        axes = tuple(range(x.ndim - rank, x.ndim))
        ends = [min(b + w, n + p) - b for b, w, n, p in zip(starts, ws, lengths, pad, strict=True)]
        match mode:
            case "max":
                found = part.max(axes)
            case "average_inc_pad":
                found = part.sum(axes) / np.prod(ends)
            case _:
                found = part.sum(axes) if mode == "sum" else part.mean(axes)
        result[(..., *place)] = found
    return result


def of(function: Any, x: Any, given: Any, mode: str) -> Any:
    """A function of the arguments of a case, after the sizes."""
    ws, ignore_border, stride, pad = given
    return function(x, ws, ignore_border, stride, pad, mode)


def draw(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    values = np.random.default_rng(3).normal(size=shape)
    return np.floor(values * 4).astype(dtype) if dtype.startswith("int") else values.astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_pooling_is_what_its_definition_says(static: bool, dtype: str) -> None:
    for shape, *given in CASES:
        x = variable(dtype, shape if static else [None] * len(shape), "x")
        nodes = [of(pool.pool, x, given, mode) for mode in MODES]
        value = draw(shape, dtype)
        if dtype != "int16":
            value.flat[3] = np.nan
        found = graphc.function([x], nodes, mode="interpreted")(value)
        for result, mode in zip(found, MODES, strict=True):
            expected = of(pooled, value, given, mode)
            assert result.dtype == dtype
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6, err_msg=f"{shape} {given} {mode}")


@pytest.mark.slow
def test_compiled_pooling_and_its_gradients_are_the_interpreters() -> None:
    xs, results = [], []
    for number, (shape, *given) in enumerate(CASES):
        x = variable("float64" if number % 2 else "float32", [None] * len(shape), f"x{number}")
        mode = MODES[number % 4]
        z = of(pool.pool, x, given, mode)
        results += [z, T.grad(T.sin(z).sum(), x)]
        most = of(pool.pool, x, given, "max")
        results.append(T.grad((most**2).sum(), x) if number % 4 else most)
        xs.append(x)
    values = [np.round(draw(shape, x.dtype)) for (shape, *_), x in zip(CASES, xs, strict=True)]
    expected = graphc.function(xs, results, mode="interpreted")(*values)
    for found, wanted in zip(graphc.function(xs, results)(*values), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_pooling_has_theanos_numbers() -> None:
    functions = {2: pool.pool_2d, 3: pool.pool_3d}
    rows = [line.split("; ") for line in RECORDED.read_text().splitlines() if not line.startswith("#")]
    for row in rows:
        shape, ws, stride, pad, sizes = (
            None if text == "-" else tuple(map(int, text.split(",")))
            for text in (row[0], row[1], row[3], row[4], row[6])
        )
        assert shape is not None and ws is not None and sizes is not None
        x = variable("float64", [None] * len(shape), "x")
        z = functions[len(ws)](x, ws, row[2] == "1", stride, pad, row[5])
        weights = np.arange(np.prod(sizes)).reshape(sizes) % 5 + 1.0
        f = graphc.function([x], [z, T.grad((z * weights).sum(), x)], mode="interpreted")
        found, gradient = f((np.arange(np.prod(shape)) * 7 % 11 % 6 - 2.0).reshape(shape))
        assert found.shape == sizes
        np.testing.assert_allclose(found.ravel(), [float(v) for v in row[7].split(",")], rtol=1e-9)
        if row[8] != "-":
            np.testing.assert_allclose(gradient.ravel(), [float(v) for v in row[8].split(",")], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_derivatives_to_second_order(case: Any) -> None:
    shape, *given = case
    distinct = np.random.default_rng(5).permutation(int(np.prod(shape))).reshape(shape) / 3.0
    for mode in ("max", "average_exc_pad"):
        check_gradient(lambda x, mode=mode: T.sin(of(pool.pool, x, given, mode)), distinct)


def test_what_is_special() -> None:
    x, ws, images = T.dmatrix("x"), T.lvector("ws"), T.ftensor4("images")
    size = T.iscalar("size")
    tied = np.array([[1.0, 1.0, 0.0], [1.0, 0.5, 2.0]])
    nodes = [
        T.grad(pool.pool_2d(x, (2, 2), ignore_border=True).sum(), x),
        downsample.max_pool_2d(x, (2, 2)),
        downsample.max_pool_2d_same_size(x, (2, 2)),
        pool.pool_2d(x, ds=(1, 2), st=(1, 1), ignore_border=True, padding=(0, 1)),
        pool.Pool(True, "sum")(x, (2, 3)),
        pool.pool_2d(x, ws, True),
        pool.pool_2d(x, (size, 2), False),
        T.grad(pool.pool_2d(x, (size, size), True).sum(), x),
        pool.global_pool(x),
        pool.global_pool(x, "average_exc_pad", 1),
        T.grad(pool.global_pool(x, axes=2).sum(), x),
    ]
    wanted: list[Any] = [
        [[1, 1, 0], [1, 0, 0]], [[1, 2]], [[1, 1, 0], [1, 0, 0]],
        [[1, 1, 1, 0], [1, 1, 2, 2]], [[5.5]], [[1, 1, 2]], [[1, 2]],
        [[1, 1, 0], [1, 0, 0]], [[2]], [[2 / 3], [3.5 / 3]], [[0, 0, 0], [0, 0, 1]],
    ]  # fmt: skip
    f = graphc.function([x, ws, size], nodes, mode="interpreted")
    for found, expected in zip(f(tied, [2, 1], 2), wanted, strict=True):
        np.testing.assert_allclose(found, expected)
    assert pool.Pool.out_shape((4, 3, 28, 25), (2, 2), False) == [4, 3, 14, 13]
    assert pool.Pool.out_shape((5, 25), (3, 2), True, (1, 1), (1, 0)) == [5, 24]
    empty = graphc.function([images], T.grad(pool.pool_2d(images, (2, 2), True).sum(), images), mode="interpreted")
    assert empty(np.zeros((0, 3, 4, 4), "f")).shape == (0, 3, 4, 4)
    assert not empty(np.ones((1, 1, 1, 1), "f")).any()  # no window


def test_what_cannot_be_is_refused() -> None:
    x = T.dmatrix("image")
    for wrong, words in [
        ({"ws": (2,)}, "ws has 1 numbers, not 2"),
        ({"ws": (2, 0)}, "ws is 0, not positive"),
        ({"ws": (2, 2), "pad": (1, 0)}, "padding needs ignore_border=True"),
        ({"ws": (2, 2), "pad": (2, 0), "ignore_border": True}, "padding 2"),
        ({"ws": (2, 2), "mode": "min"}, "mode 'min' is none of"),
        ({"ws": (2, 2), "stride": (0, 1)}, "stride is 0"),
    ]:
        with pytest.raises((GraphTypeError, GraphValueError), match=words) as raised:
            pool.pool_2d(x, **wrong)  # type: ignore[arg-type]
        assert "image" in str(raised.value)
    with pytest.raises(ValueError, match="two names of one argument"):
        pool.pool_2d(x, (2, 2), ds=(2, 2))
    with pytest.raises(GraphTypeError, match="fewer than 3 axes"):
        pool.pool_3d(x, (2, 2, 2))
    size = T.lscalar("size")
    f = graphc.function([x, size], pool.pool_2d(x, (2, 2), True, (size, 1)), mode="interpreted")
    with pytest.raises((GraphcError, ZeroDivisionError), match="positive|zero"):
        f(np.zeros((3, 3)), 0)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_theanos_classes_of_derivatives(mode: str) -> None:
    """They give what the derivatives of pools are, of first and second order, with windows that meet and padding."""
    x, v = T.dtensor3("x"), T.dtensor3("v")
    values = np.random.default_rng(5).permutation(60).reshape(2, 5, 6) / 10.0
    direction = np.cos(np.arange(60.0)).reshape(2, 5, 6)
    pairs: list[Any] = []
    for border, stride, pad in ((True, (2, 1), (1, 0)), (False, (1, 2), (0, 0)), (True, None, None)):
        given = (2, 3), stride, pad
        for kind in ("max", "sum", "average_inc_pad", "average_exc_pad"):
            out = pool.pool_2d(x, given[0], ignore_border=border, stride=stride, pad=pad or (0, 0), mode=kind)
            slope = T.sin(out)
            if kind != "max":
                made = pool.AveragePoolGrad(border, kind)(x, slope, *given)
                pairs.append((made, graphc.autodiff.vjp(out, x, slope)))
                continue
            made = pool.MaxPoolGrad(border)(x, out, slope, *given)
            pairs.append((made, graphc.autodiff.vjp(out, x, slope)))
            pairs.append((graphc.grad((made * v).sum(), x), graphc.grad((pairs[-1][1] * v).sum(), x)))
            forward = pool.DownsampleFactorMaxGradGrad(border)(x, out, v, *given), pool.MaxPoolRop(border)(x, v, *given)
            pairs += [(each, graphc.autodiff.jvp(out, x, v)) for each in forward]
            assert made.ndim == 3 and pool.MaxPoolGrad.out_shape((5, 6), (2, 3)) == pool.Pool.out_shape((5, 6), (2, 3))
    found = graphc.function([x, v], [node for pair in pairs for node in pair], mode=mode)(values, direction)
    for number, (got, want) in enumerate(zip(found[::2], found[1::2], strict=True)):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14, err_msg=str(number))
    ties = pool.MaxPoolGrad(True, ndim=1)(np.ones((1, 4)), np.ones((1, 2)), np.array([[2.0, 3.0]]), (2,)).eval(
        mode=mode
    )
    assert ties.tolist() == [[2.0, 2.0, 3.0, 3.0]]
    for wrong in (lambda: pool.AveragePoolGrad(True, "max"), lambda: pool.MaxPoolRop(True, "sum")):
        with pytest.raises(GraphValueError, match="mode"):
            wrong()
