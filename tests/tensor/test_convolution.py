"""Convolutions against a direct definition: every combination of the arguments, derivatives to second order, names."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError, GraphValueError, ShapeError
from graphc.ir.node import Node
from graphc.tensor import signal
from graphc.tensor.nnet import abstract_conv, conv as first_years, conv as old
from graphc.tensor.signal import conv as signal_conv

Pads = list[tuple[int, int]]


def direct(x: Any, w: Any, stride: Any, pads: Pads, dilation: Any, groups: int, flip: bool) -> NDArray[Any]:
    """The definition, element by element of the padded image."""
    rank = x.ndim - 2
    wide = np.pad(x, [(0, 0), (0, 0), *pads])
    w = w[(..., *(slice(None, None, -1),) * rank)] if flip else w
    room = [s - (k - 1) * d - 1 for s, k, d in zip(wide.shape[2:], w.shape[2:], dilation, strict=True)]
    counts = [r // s + 1 for r, s in zip(room, stride, strict=True)]
    y = np.zeros((len(x), len(w), *counts), np.result_type(x, w))
    channels, outs = w.shape[1], len(w) // groups
    for o, place in product(range(len(w)), np.ndindex(*counts)):
        mine = slice(o // outs * channels, (o // outs + 1) * channels)
        window = tuple(
            slice(p * s, p * s + (k - 1) * d + 1, d)
            for p, s, k, d in zip(place, stride, w.shape[2:], dilation, strict=True)
        )
        y[(slice(None), o, *place)] = (wide[(slice(None), mine, *window)] * w[o]).sum(tuple(range(1, x.ndim)))
    return y


def pads_of(padding: Any, sizes: Any, taps: Any, stride: Any, dilation: Any) -> Pads:
    extents = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
    match padding:
        case "valid":
            return [(0, 0) for _ in extents]
        case "full":
            return [(e - 1, e - 1) for e in extents]
        case "half":
            return [(e // 2, e // 2) for e in extents]
        case "same":
            missing = [max((-(-n // s) - 1) * s + e - n, 0) for n, s, e in zip(sizes, stride, extents, strict=True)]
            return [(m // 2, m - m // 2) for m in missing]
    return [each if isinstance(each, tuple) else (each, each) for each in padding]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    rank = draw(st.integers(1, 3))
    most = 7 if rank < 3 else 4

    def many(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(rank)]

    taps, dilation, stride = many(1, 3), many(1, 2), many(1, 3)
    groups, channels, outs = (draw(st.integers(1, 3)) for _ in range(3))
    least = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
    sizes = [draw(st.integers(low, max(low, most))) for low in least]
    numbers = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(rank)]
    padding = draw(st.sampled_from(["valid", "full", "half", "same", numbers, [before for before, _ in numbers]]))
    return {
        "images": (draw(st.integers(0, 3)), groups * channels, *sizes), "kernels": (groups * outs, channels, *taps),
        "stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "flip": draw(st.booleans()),
        "last": draw(st.booleans()),
    }  # fmt: skip


def arrays(case: dict[str, Any], dtype: str = "float64") -> tuple[NDArray[Any], NDArray[Any]]:
    generator = np.random.default_rng(sum(case["images"]) + 7 * sum(case["kernels"]))
    x, w = (generator.normal(size=case[name]) * 3 for name in ("images", "kernels"))
    return x.astype(dtype), w.astype(dtype)


def wanted(case: dict[str, Any], x: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
    how = case["stride"], pads_of(case["padding"], x.shape[2:], w.shape[2:], case["stride"], case["dilation"])
    return direct(x, w, *how, case["dilation"], case["groups"], case["flip"])


def made(case: dict[str, Any], x: Node, w: Node) -> Node:
    names = ("stride", "padding", "dilation", "groups", "flip")
    how = {name: case[name] for name in names}
    if not case["last"]:
        return T.nnet.convolution(x, w, **how)
    spatial = range(2, x.ndim)
    moved = x.dimshuffle(0, *spatial, 1), w.dimshuffle(*spatial, 1, 0)
    y = T.nnet.convolution(*moved, **how, channels_last=True)
    return y.dimshuffle(0, y.ndim - 1, *range(1, y.ndim - 1))


def leaf(array: NDArray[Any]) -> Any:
    return T.tensor(str(array.dtype), (False,) * array.ndim)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(cases())
def test_is_what_the_definition_says(case: dict[str, Any]) -> None:
    x, w = arrays(case)
    a, b = leaf(x), leaf(w)
    f = graphc.function([a, b], made(case, a, b), mode="interpreted")
    np.testing.assert_allclose(f(x, w), wanted(case, x, w), rtol=1e-10, atol=1e-10)


def drawn(count: int, seed: int) -> list[dict[str, Any]]:
    """Cases of many arguments, the same at each run."""
    found: list[dict[str, Any]] = []
    generator = np.random.default_rng(seed)

    def one(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    while len(found) < count:
        rank = one(1, 3)
        taps, dilation, stride = ([one(1, high) for _ in range(rank)] for high in (3, 2, 3))
        groups = one(1, 2) * one(0, 1) + 1
        paddings: list[Any] = ["valid", "full", "half", "same", [(one(0, 2), one(0, 3)) for _ in range(rank)]]
        found.append({
            "images": (one(0, 3), groups * one(1, 3), *(one(5, 9) for _ in range(rank))),
            "kernels": (groups * one(1, 20), 0, *taps), "stride": stride, "dilation": dilation, "groups": groups,
            "padding": paddings[one(0, 4)], "flip": bool(one(0, 1)), "last": bool(one(0, 1)),
        })  # fmt: skip
        last = found[-1]
        last["kernels"] = (last["kernels"][0], last["images"][1] // groups, *taps)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_compiled_as_defined_with_derivatives(dtype: str) -> None:
    """Many convolutions in one function; the derivatives as the interpreter has them, which is held to differences."""
    inputs: list[Any] = []
    results: list[Any] = []
    values: list[Any] = []
    checks: list[Any] = []
    for case in drawn(10, 3):
        x, w = arrays(case, dtype)
        a, b = leaf(x), leaf(w)
        y = made(case, a, b)
        inputs += [a, b]
        values += [x, w]
        checks.append(wanted(case, x, w))
        results.append(y)
        if dtype != "int32":
            results += graphc.grad((y * y * T.sin(y)).sum(), [a, b])
    got, plain = (graphc.function(inputs, results, mode=mode)(*values) for mode in ("compiled", "interpreted"))
    tolerance = {"float32": 2e-4, "float64": 1e-10, "int32": 0}[dtype]
    for mine, other in zip(got, plain, strict=True):
        scale = max(float(np.abs(other).max(initial=0)), 1.0)
        np.testing.assert_allclose(mine, other, rtol=0, atol=tolerance * scale)
    for mine, other in zip(got[:: 1 if dtype == "int32" else 3], checks, strict=True):
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance * 100)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_ones_are_what_small_ones_are(dtype: str) -> None:
    """Sizes at which panels, parts of tiles, lines and threads are used, with special values."""
    generator, close = np.random.default_rng(0), 1e-9 if dtype == "float64" else 1e-3
    x, w = T.tensor4("x", dtype), T.tensor4("w", dtype)
    modes: list[Any] = ["valid", "full", "half"]
    ys = [T.nnet.conv2d(x, w, border_mode=mode) for mode in modes]
    f = graphc.function([x, w], [*ys, *graphc.grad((ys[0] * ys[0]).sum(), [x, w])])
    g = graphc.function([x, w], graphc.grad((ys[0] * ys[0]).sum(), [x, w]), mode="interpreted")
    for shape, kernel in [
        ((3, 17, 20, 23), (37, 17, 3, 3)),
        ((2, 3, 30, 18), (33, 3, 5, 4)),
        ((5, 40, 9, 8), (8, 40, 1, 1)),
        ((2, 3, 6, 71), (2, 3, 3, 4)),
        ((33, 2, 18, 18), (9, 2, 3, 3)),
    ]:
        a, b = (generator.normal(size=size).astype(dtype) for size in (shape, kernel))
        b[0, 0, 0, 0] = 0
        a[0, 0, 4, 5], a[-1, 1, 2, 2] = np.inf, np.nan
        got = f(a, b)
        for mode, mine in zip(modes, got, strict=False):
            half = [k // 2 for k in kernel[2:]]
            pads = {"valid": [0, 0], "full": [k - 1 for k in kernel[2:]], "half": half}[mode]
            with np.errstate(invalid="ignore"):
                other = direct(a, b, (1, 1), [(p, p) for p in pads], (1, 1), 1, True)
            np.testing.assert_allclose(mine, other, rtol=close, atol=close)
        a = generator.normal(size=shape).astype(dtype)
        for mine, other in zip(f(a, b)[3:], g(a, b), strict=True):
            np.testing.assert_allclose(mine, other, rtol=close, atol=close * 10)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", [False, True])
def test_groups_are_lanes(dtype: str, last: bool) -> None:
    """Depthwise kernels in both orders of axes, with their derivatives, for whole panels of groups and others, and
    lines of as many results as a block, fewer, and more."""
    generator, close = np.random.default_rng(8), 1e-9 if dtype == "float64" else 1e-3
    x, w = T.tensor4("x", dtype), T.tensor4("w", dtype)
    cases = [(1, 1, "same", False, 37, 2), (2, 1, "same", True, 70, 1), (3, 2, [(2, 1), (0, 3)], True, 8, 1)]
    for stride, dilation, padding, flip, groups, outs in cases:
        how: dict[str, Any] = {"stride": stride, "dilation": dilation, "padding": padding, "flip": flip}
        moved = (x.dimshuffle(0, 2, 3, 1), w.dimshuffle(2, 3, 1, 0)) if last else (x, w)
        y = T.nnet.convolution(*moved, **how, groups=groups, channels_last=last)
        y = y.dimshuffle(0, 3, 1, 2) if last else y
        results = [y, *graphc.grad((y * T.sin(y)).sum(), [x, w])]
        f, g = (graphc.function([x, w], results, mode=mode) for mode in ("compiled", "interpreted"))
        for size, taps in [((19, 22), (3, 3)), ((5, 23), (2, 20))]:
            a = generator.normal(size=(2, groups, *size)).astype(dtype)
            b = generator.normal(size=(groups * outs, 1, *taps)).astype(dtype)
            if dilation * (taps[1] - 1) > size[1]:
                b = b[..., :4]
            if last:
                a = np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
                b = np.ascontiguousarray(b.transpose(2, 3, 1, 0)).transpose(3, 2, 0, 1)
            for mine, other in zip(f(a, b), g(a, b), strict=True):
                np.testing.assert_allclose(mine, other, rtol=close, atol=close * np.abs(other).max())


@pytest.mark.slow
@pytest.mark.parametrize("last", [False, True])
def test_special_values_stay_in_their_groups(last: bool) -> None:
    """A NaN or an infinity, of the image or of a kernel, is in its own group alone, and where it meets an element."""
    x, w = T.tensor4("x"), T.tensor4("w")
    moved = (x.dimshuffle(0, 2, 3, 1), w.dimshuffle(2, 3, 1, 0)) if last else (x, w)
    y = T.nnet.convolution(*moved, stride=2, padding="same", groups=20, channels_last=last)
    f = graphc.function([x, w], y.dimshuffle(0, 3, 1, 2) if last else y)
    a, b = np.ones((1, 20, 6, 9)), np.ones((20, 1, 3, 3))
    a[0, 3, 2, 2], b[7, 0, 0, 0] = np.nan, np.inf
    pads = pads_of("same", (6, 9), (3, 3), (2, 2), (1, 1))
    with np.errstate(invalid="ignore"):
        other = direct(a, np.where(np.isinf(b), 1.0, b), (2, 2), pads, (1, 1), 20, False)
    other[0, 7, :, 1:] = np.inf
    np.testing.assert_array_equal(f(a, b), other)


@pytest.mark.slow
def test_what_is_around_an_image_adds_nothing() -> None:
    """An infinity of a kernel counts only where it meets an element."""
    for size, outs in [(3, 1), (16, 24)]:
        x, w = np.ones((1, outs, size)), np.ones((outs, outs, 3))
        w[0, 0, 0] = np.inf
        a, b = T.tensor3("a"), T.tensor3("b")
        for mode in ("compiled", "interpreted"):
            y = graphc.function([a, b], T.nnet.convolution(a, b, padding="same"), mode=mode)(x, w)
            assert y[0, 0, 0] == 2 * outs
            assert np.isposinf(y[0, 0, 1:]).all()
            assert np.isfinite(y[0, 1:]).all()


@pytest.mark.slow
def test_second_derivatives() -> None:
    x, w = T.tensor3("x"), T.tensor3("w")
    a, b, da, db = (np.random.default_rng(k).normal(size=s) for k, s in enumerate([(2, 4, 7), (4, 2, 3)] * 2))
    y = T.nnet.convolution(x, w, stride=2, padding=[(1, 2)], dilation=2, groups=2, flip=True)
    first = graphc.grad((y**3).sum(), [x, w])
    inner = sum((g * g).sum() for g in first)
    f = graphc.function([x, w], [inner, *graphc.grad(inner, [x, w])])
    _, gx, gw = f(a, b)
    step = 1e-5
    slope = (f(a + step * da, b + step * db)[0] - f(a - step * da, b - step * db)[0]) / (2 * step)
    np.testing.assert_allclose((gx * da).sum() + (gw * db).sum(), slope, rtol=1e-6)


def test_layouts_of_operands_are_read_where_they_stand() -> None:
    x, w = T.tensor4("x"), T.tensor4("w")
    f = graphc.function([x, w], [T.nnet.conv2d(x[:, ::-1, 1:, ::2], w.dimshuffle(1, 0, 3, 2)[:, :, ::-1])])
    whole = np.random.default_rng(0).normal(size=(9, 16, 6, 4)).transpose(3, 2, 1, 0)
    b = np.random.default_rng(1).normal(size=(6, 5, 2, 3))
    for a in (whole, whole.copy(), np.asfortranarray(whole)):
        other = direct(
            whole[:, ::-1, 1:, ::2], b.transpose(1, 0, 3, 2)[:, :, ::-1], (1, 1), [(0, 0)] * 2, (1, 1), 1, True
        )
        np.testing.assert_allclose(f(a, b)[0], other, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_transposed_is_the_derivative_by_images() -> None:
    x, w, v = T.tensor4("x"), T.tensor4("w"), T.tensor4("v")
    generator = np.random.default_rng(4)
    results, values = [], generator.normal(size=(2, 4, 9, 8))
    kernels = generator.normal(size=(6, 2, 3, 2))
    for padding in ("valid", "same", "half", [(1, 0), (0, 1)]):
        how: dict[str, Any] = {"stride": (2, 2), "padding": padding, "dilation": (1, 2), "groups": 2}
        y = T.nnet.convolution(x, w, **how)
        (gx,) = graphc.grad((y * T.sin(y)).sum(), [x])
        (top,) = graphc.grad((y * T.sin(y)).sum(), [y])
        pads = pads_of(padding, (9, 8), (3, 2), (2, 2), (1, 2))
        more = [(s + sum(p) - (k - 1) * d - 1) % 2 for s, p, k, d in zip((9, 8), pads, (3, 2), (1, 2), strict=True)]
        if padding == "same":
            how["padding"] = pads
        results.append((gx, T.nnet.transposed_convolution(top, w, **how, more=more)))
    flat = [each for pair in results for each in pair]
    got = graphc.function([x, w], flat)(values, kernels)
    for mine, other in zip(got[::2], got[1::2], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)
    same = graphc.function([v, w], T.nnet.transposed_convolution(v, w, stride=3, padding="same"))
    assert same(np.ones((1, 6, 5, 4)), kernels).shape == (1, 2, 15, 12)


def test_names_of_theano() -> None:
    x, w = T.tensor4("x"), T.tensor4("w")
    generator = np.random.default_rng(5)
    a, b = generator.normal(size=(2, 4, 7, 8)), generator.normal(size=(6, 4, 3, 2))
    nnet = T.nnet
    y = nnet.conv2d(x, w, (None, 4, None, 8), (6, 4, 3, 2), ((1, 0), 2), (2, 1), filter_dilation=(1, 2))
    by_images, by_weights = graphc.grad((y * T.sin(y)).sum(), [x, w])
    (top,) = graphc.grad((y * T.sin(y)).sum(), [y])
    how: dict[str, Any] = {"border_mode": ((1, 0), 2), "subsample": (2, 1), "filter_dilation": (1, 2)}
    shared = nnet.conv2d(x, T.alloc(w.dimshuffle(0, "x", "x", 1, 2, 3), 6, 3, 10, 4, 3, 2), unshared=True, **how)
    deep = w[:4, :1]
    results = {
        "images": (nnet.conv2d_grad_wrt_inputs(top, w, x.shape, **how), by_images),
        "weights": (nnet.conv2d_grad_wrt_weights(x, top, w.shape, **how), by_weights),
        "unshared": (shared, y),
        "old": (old.conv2d(x, w, border_mode="full"), nnet.conv2d(x, w, border_mode="full")),
        "transpose": (
            nnet.conv2d_transpose(top, w, x.shape, None, ((1, 0), 2), (2, 1), filter_dilation=(1, 2)),
            by_images,
        ),
        "abstract": (
            abstract_conv.conv2d(x, w, None, None, "half", (1, 1), False),
            nnet.convolution(x, w, padding="half"),
        ),
        "volume": (
            nnet.conv3d(x.dimshuffle(0, 1, "x", 2, 3), w.dimshuffle(0, 1, "x", 2, 3))[:, :, 0],
            nnet.conv2d(x, w),
        ),
        "separable": (
            nnet.separable_conv2d(x, deep, w[:, :, :1, :1], 4),
            nnet.conv2d(nnet.conv2d(x, deep, num_groups=4), w[:, :, :1, :1]),
        ),
        "causal": (
            nnet.causal_conv1d(x[:, :, 0], w[:, :, :, 0], (6, 4, 3), filter_dilation=2),
            nnet.convolution(x[:, :, 0], w[:, :, :, 0], flip=True, dilation=2, padding=[(4, 0)]),
        ),
        "signal": (
            signal_conv.conv2d(x[0], w[0, 0]),
            T.stack([nnet.conv2d(x[:1, k : k + 1], w[:1, :1])[0, 0] for k in range(4)]),
        ),
        "filters": (
            signal_conv.conv2d(x[0, 0], w[0]),
            T.stack([nnet.conv2d(x[:1, :1], w[:1, k : k + 1])[0, 0] for k in range(4)]),
        ),
    }
    flat = [each for pair in results.values() for each in pair]
    got = graphc.function([x, w], flat, mode="interpreted")(a, b)
    for name, mine, other in zip(results, got[::2], got[1::2], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-10, err_msg=name)


def test_films() -> None:
    s, w = (T.TensorType("float64", (None,) * 5)(name) for name in "sw")
    mixed = first_years.conv3d(s, w, (1, 4, 2, 5, 5), (3, 2, 2, 3, None), ("full", "half", "valid"))
    f = graphc.function([s, w], [first_years.conv3d(s, w), mixed], mode="interpreted")
    film, filters = (np.random.default_rng(1).normal(size=shape) for shape in ((1, 4, 2, 5, 5), (3, 2, 2, 3, 2)))
    pads = ((0, 0), (1, 1), (0, 0), (1, 1), (0, 0))
    for found, wide in zip(f(film, filters), (film, np.pad(film, pads)), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(wide, (2, 3, 2), (1, 3, 4))
        np.testing.assert_allclose(found, np.einsum("ntchwijk,oicjk->ntohw", windows, filters[:, ::-1, :, ::-1, ::-1]))
    with pytest.raises(GraphValueError, match="not valid, full or half"):
        first_years.conv3d(s, w, border_mode="same")


@pytest.mark.slow
def test_as_scipy() -> None:
    x, w = T.dmatrix("x"), T.dmatrix("w")
    generator = np.random.default_rng(6)
    a, b = generator.normal(size=(7, 6)), generator.normal(size=(3, 4))
    modes = ("full", "same", "valid")
    plain = [signal.convolve2d(x, w, mode) for mode in modes]
    around = [signal.convolve2d(x, w, mode, bound, 2.5) for mode in modes for bound in ("wrap", "symm", "fill")]
    rows = [signal.convolve1d(x, w[0], mode) for mode in modes]
    got = graphc.function([x, w], [*plain, *around, *rows])(a, b)
    want = [scipy.signal.convolve2d(a, b, mode) for mode in modes]
    want += [scipy.signal.convolve2d(a, b, mode, bound, 2.5) for mode in modes for bound in ("wrap", "symm", "fill")]
    want += [np.stack([scipy.signal.convolve(row, b[0], mode) for row in a]) for mode in modes]
    for mine, other in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-10)


def test_shapes_of_theano() -> None:
    shape = abstract_conv.get_conv_output_shape((None, 3, 8, 9), (5, 3, 3, 2), ("half", (1, 2)), (2, 1), (1, 2))
    assert shape == (None, 5, 4, 10)
    assert abstract_conv.get_conv_gradinputs_shape((5, 3, 3, 2), (2, 5, 4, 4), "full", (1, 1)) == (2, 3, 2, 3)
    assert abstract_conv.get_conv_gradweights_shape((2, 3, 8, 9), (2, 5, 6, 8), "valid", (1, 1)) == (5, 3, 3, 2)
    assert abstract_conv.border_mode_to_pad((1, (0, 2)), 2, (3, 3)) == ((1, 1), (0, 2))


X3, W3, X4, W4 = (
    T.TensorType("float64", (False,) * rank)(name) for rank, name in ((3, "X"), (3, "W"), (4, "X"), (4, "W"))
)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a rank": (lambda: T.nnet.convolution(X3, W4), GraphTypeError, "one rank"),
    "no axis": (lambda: T.nnet.convolution(X3[0], W3[0]), GraphTypeError, "X.* has not 1 to 3 spatial"),
    "strides": (lambda: T.nnet.convolution(X4, W4, stride=(1, 2, 3)), GraphTypeError, "3 numbers for 2 spatial"),
    "a stride": (lambda: T.nnet.convolution(X4, W4, stride=0), GraphTypeError, "at least 1"),
    "a padding": (lambda: T.nnet.convolution(X4, W4, padding="some"), GraphTypeError, "'some'"),
    "less": (lambda: T.nnet.convolution(X4, W4, padding=-1), GraphTypeError, "negative"),
    "groups": (lambda: T.nnet.convolution(np.ones((1, 5, 4)), W3, groups=2), GraphTypeError, "no multiple of 2"),
    "a kernel": (lambda: T.nnet.convolution(np.ones((1, 2, 4)), np.ones((1, 2, 5))), ShapeError, "takes 5 .*has 4"),
    "channels": (lambda: T.nnet.convolution(np.ones((1, 2, 4)), np.ones((1, 3, 2))), ShapeError, "channels"),
    "a border": (lambda: old.conv2d(X4, W4, border_mode="half"), GraphTypeError, "'half'"),
    "a boundary": (lambda: signal.convolve2d(X4, W4, boundary="none"), GraphTypeError, "'none'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name: str) -> None:
    build, error, words = REFUSED[name]
    with pytest.raises((error, GraphValueError), match=words):
        build()


@pytest.mark.slow
def test_sizes_are_checked_at_the_call() -> None:
    y = T.nnet.convolution(X4, W4, groups=2)
    for mode in ("compiled", "interpreted"):
        f = graphc.function([X4, W4], [y, graphc.grad(y.sum(), X4)], mode=mode)
        with pytest.raises(ShapeError, match=r"X.* with W.*the kernel takes 4 elements along spatial axis 1, .* has 3"):
            f(np.ones((1, 4, 3, 3)), np.ones((2, 2, 3, 4)))
        with pytest.raises(ShapeError, match="X.* has 3 channels, which are no multiple of 2 groups"):
            f(np.ones((1, 3, 3, 3)), np.ones((2, 2, 1, 1)))
        with pytest.raises(ShapeError, match="the images have 3 channels in a group, the kernels 2"):
            f(np.ones((1, 6, 3, 3)), np.ones((2, 2, 1, 1)))


# --- numbers of others ----------------------------------------------------------------------------------------------

RECORDS = Path(__file__).parent


def records(name: str) -> list[Any]:
    """What was recorded: the arguments, then of a convolution and its derivatives the shape, a sum and an element."""
    return [ast.literal_eval(line) for line in (RECORDS / f"{name}_convolutions.txt").read_text().splitlines()]


def wave(shape: Any, step: float) -> NDArray[Any]:
    return np.sin(np.arange(np.prod(shape)) * step + 0.5 * step).reshape(shape)


def is_as_recorded(y: Node, x: Node, w: Node, a: NDArray[Any], b: NDArray[Any], recorded: Any) -> None:
    results = [y, *graphc.grad((y * T.sin(y)).sum(), [x, w])]
    for mine, (shape, total, element) in zip(
        graphc.function([x, w], results, mode="interpreted")(a, b), recorded, strict=True
    ):
        assert list(mine.shape) == shape
        weights = np.cos(np.arange(mine.size)).reshape(shape)
        np.testing.assert_allclose((mine * weights).sum(), total, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(mine.ravel()[mine.size // 3], element, rtol=1e-9, atol=1e-10)


def test_as_theano_1_0_5() -> None:
    """Its Python implementation, on a two-dimensional convolution written in NumPy."""
    for name, mode, subsample, flip, dilation, groups, recorded in records("theano"):
        sizes: Any = ((2, 4, 7, 6), (4, 4 // groups, 3, 2)) if name == "conv2d" else ((1, 2, 5, 4, 6), (3, 2, 2, 2, 3))
        a, b = wave(sizes[0], 1.0), wave(sizes[1], 1.7)
        x, w = leaf(a), leaf(b)
        how = {"border_mode": mode, "subsample": subsample, "filter_flip": flip, "filter_dilation": dilation}
        y = getattr(T.nnet, name)(x, w, *sizes, **how, num_groups=groups)
        is_as_recorded(y, x, w, a, b, recorded)


@pytest.mark.slow
def test_as_pytorch_2_13() -> None:
    for is_transposed, images, kernels, stride, padding, dilation, groups, more, recorded in records("torch"):
        a, b = wave(images, 1.0), wave(kernels, 1.7)
        x, w = leaf(a), leaf(b)
        how: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        y = T.nnet.transposed_convolution(x, w, **how, more=more) if is_transposed else T.nnet.convolution(x, w, **how)
        is_as_recorded(y, x, w, a, b, recorded)


# --- memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_beside_the_operands_is_touched() -> None:
    """Between pages that nobody may touch, with memory that begins as NaN."""
    chosen = "test_large_ones or test_layouts"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__, "-k", chosen]
    environment = {**os.environ, "GRAPHC_POISON": "guard"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_memory_is_given_back_and_threads_change_no_bit() -> None:
    """Of so many images that some are copied at a time."""
    x, w = T.ftensor4("x"), T.ftensor4("w")
    generator = np.random.default_rng(8)
    a, b = (generator.normal(size=size).astype("float32") for size in ((9, 32, 60, 60), (24, 32, 3, 3)))
    f, plain = (
        graphc.function([x, w], T.nnet.convolution(x, w, padding="same"), mode=mode)
        for mode in ("compiled", "interpreted")
    )
    first = f(a, b)
    f.free()
    np.testing.assert_array_equal(f(a, b), first)
    np.testing.assert_allclose(first, plain(a, b), rtol=1e-3, atol=1e-3)
    alone = graphc.function([x, w], T.nnet.convolution(x, w, padding="same"), threads=1)
    np.testing.assert_array_equal(alone(a, b), first)


def test_shapes_that_are_held() -> None:
    n, x = T.lscalar("n"), T.dmatrix("x")
    check = abstract_conv.check_conv_gradinputs_shape
    images, kernels = (8, 3, 9, 9), (4, 3, 3, 3)
    assert check(images, kernels, (8, 4, 7, 7), "valid", (1, 1)) and check(
        images, kernels, (8, 4, None, n), "half", (2, 2)
    )
    assert not check(images, kernels, (8, 4, 6, 7), "valid", (1, 1))
    assert not check(images, kernels, (8, 4, 7), "valid", (1, 1)) and not check(images, kernels, images, "full", (1,))
    assert not check(images, kernels, (8, 4, 7, 7), "valid", (1, 1), (2, 1))
    images, three, rows = abstract_conv.assert_conv_shape((0, 3, n))
    f = graphc.function([n], rows * 2, mode="interpreted")
    assert (images, three) == (0, 3) and f(1) == 2
    with pytest.raises(AssertionError, match="size 2 should be 1 at least"):
        f(0)
    for wrong in ((-1, 3, 4), (1, 3, 0)):
        with pytest.raises(ValueError, match="should be"):
            abstract_conv.assert_conv_shape(wrong)
    g = graphc.function([x, n], abstract_conv.assert_shape(x, (None, n), "too narrow") * 2, mode="interpreted")
    assert g(np.ones((2, 3)), 3).sum() == 12
    with pytest.raises(AssertionError, match="too narrow"):
        g(np.ones((2, 3)), 4)
    assert abstract_conv.assert_shape(x, None) is x and abstract_conv.assert_shape(x, (None, None)) is x
