"""Functions of arrays under JAX's names: against NumPy, and against what XLA's semantics say, element by element."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, RankError, ShapeError


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Any:
    with graphc.options.change(mode=request.param):
        yield request.param


RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4))
N = RNG.integers(-9, 10, size=(3, 4))


def check(pairs: dict[str, tuple[Any, Any]], inputs: Any, values: Any, **how: Any) -> None:
    """Compare what tensors give with arrays, all in one function."""
    made = {name: found for name, (found, _) in pairs.items()}
    for name, found in graphc.function(inputs, made)(*values).items():
        expected = np.asarray(pairs[name][1])
        assert found.shape == expected.shape and found.dtype == expected.dtype, name
        npt.assert_allclose(found, expected, err_msg=name, **{"rtol": 1e-13, "atol": 1e-14, **how})


# --- single elements --------------------------------------------------------------------------------------------------


def test_functions_of_elements() -> None:
    x, n = T.dmatrix("x"), T.lmatrix("n")
    b = T.cast(n, "int8")
    small = N.astype("int8")
    unsigned = small.astype("uint8")
    bits = np.array([[bin(v).count("1") for v in row] for row in unsigned], "int8")
    zeros = np.array([[8 - int(v).bit_length() for v in row] for row in unsigned], "int8")
    check(
        {
            "clamp": (lax.clamp(-0.5, x, 0.5), np.clip(X, -0.5, 0.5)),
            "select": (lax.select(x > 0, x, -2.0 * x), np.where(X > 0, X, -2 * X)),
            "select_n": (lax.select_n(n, x, 2 * x, 3 * x), X * (1 + np.clip(N, 0, 2))),
            "select_n of bools": (lax.select_n(x > 0, x, -x), np.where(X > 0, -X, X)),
            "div": (lax.div(n, 4), np.trunc(N / 4).astype("int64")),
            "div by a negative": (lax.div(n, -4), np.trunc(N / -4).astype("int64")),
            "div of floats": (lax.div(x, 4.0), X / 4),
            "rem": (lax.rem(n, 4), np.fmod(N, 4)),
            "rsqrt": (lax.rsqrt(x * x), 1 / np.abs(X)),
            "integer_pow": (lax.integer_pow(x, 3), X**3),
            "round": (lax.round(x * 4), np.sign(X) * np.floor(np.abs(X * 4) + 0.5)),
            "round to even": (lax.round(x * 4, lax.RoundingMethod.TO_NEAREST_EVEN), np.round(X * 4)),
            "population_count": (lax.population_count(b), bits),
            "clz": (lax.clz(b), zeros),
            "shift_right_logical": (lax.shift_right_logical(b, 2), (unsigned >> 2).astype("int8")),
            "shift_right_arithmetic": (lax.shift_right_arithmetic(b, 2), small >> 2),
            "max": (lax.max(x, 0.0), np.maximum(X, 0)),
            "atan2": (lax.atan2(x, 2.0), np.arctan2(X, 2)),
            "logistic": (lax.logistic(x), 1 / (1 + np.exp(-X))),
            "ne": (lax.ne(n, 0), N != 0),
            "nextafter": (lax.nextafter(x, 9.0), np.nextafter(X, 9)),
        },
        [x, n],
        [X, N],
    )
    assert lax.lgamma(5.0) == pytest.approx(np.log(24)) and isinstance(lax.lgamma(5.0), float)
    npt.assert_allclose(lax.digamma(1.0), -np.euler_gamma)
    npt.assert_allclose(lax.erf_inv(lax.erf(0.3)), 0.3)
    limits = T.constant(np.array([-(2**63), 2**63 - 1, 0, 1]))
    npt.assert_array_equal(lax.clz(limits).eval(), [0, 1, 64, 63])
    npt.assert_array_equal(lax.population_count(limits).eval(), [1, 63, 0, 1])


# --- shapes, sums, orders ---------------------------------------------------------------------------------------------


def test_shapes() -> None:
    x = T.dmatrix("x")
    check(
        {
            "broadcast": (lax.broadcast(x, (2, 1)), np.broadcast_to(X, (2, 1, 3, 4))),
            "broadcast_in_dim": (lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), np.broadcast_to(X[:, None], (3, 2, 4))),
            "broadcast_to_rank": (lax.broadcast_to_rank(x, 4), X[None, None]),
            "broadcasted_iota": (lax.broadcasted_iota("int32", (2, 3), 0), np.indices((2, 3))[0].astype("int32")),
            "full": (lax.full((2, x.shape[0]), 3), np.full((2, 3), 3)),
            "full_like": (lax.full_like(x, 3), np.full((3, 4), 3.0)),
            "iota": (lax.iota("float32", x.shape[1]), np.arange(4, dtype="float32")),
            "convert": (lax.convert_element_type(x, np.int32), X.astype("int32")),
            "reshape": (lax.reshape(x, (2, 6), (1, 0)), X.T.reshape(2, 6)),
            "collapse": (lax.collapse(lax.broadcast(x, (2,)), 0, 2), np.tile(X, (2, 1))),
            "squeeze": (lax.squeeze(x[:1], (0,)), X[0]),
            "expand_dims": (lax.expand_dims(x, (0, -1)), X[None, ..., None]),
            "transpose": (lax.transpose(x, (1, 0)), X.T),
            "rev": (lax.rev(x, (0, 1)), X[::-1, ::-1]),
            "concatenate": (lax.concatenate([x, x], 1), np.concatenate([X, X], 1)),
            "split": (lax.split(x, (1, 3), axis=1)[1], X[:, 1:]),
            "empty": (lax.empty((2,)), np.zeros(2)),
        },
        [x],
        [X],
    )
    assert lax.broadcast_shapes((3, 1), (1, 4)) == (3, 4)


def test_reductions() -> None:
    x, n = T.dmatrix("x"), T.imatrix("n")
    whole = N.astype("int32")
    bits = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    check(
        {
            "sum": (lax.reduce_sum(n, (0,)), whole.sum(0, dtype="int32")),
            "prod": (lax.reduce_prod(x, (0, 1)), X.prod()),
            "max": (lax.reduce_max(x, (1,)), X.max(1)),
            "min": (lax.reduce_min(n, (1,)), whole.min(1)),
            "all": (lax.reduce_and(n > 0, (0,)), (whole > 0).all(0)),
            "any": (lax.reduce_or(n > 0, (0,)), (whole > 0).any(0)),
            "odd": (lax.reduce_xor(n > 0, (0,)), np.bitwise_xor.reduce(whole > 0, 0)),
            **{name: (getattr(lax, f"reduce_{name}")(n, (0,)), ufunc.reduce(whole, 0)) for name, ufunc in bits.items()},
            "argmax": (lax.argmax(x, 1, "int32"), X.argmax(1).astype("int32")),
            "argmin": (lax.argmin(x, 0), X.argmin(0)),
            "reduce": (lax.reduce(x, 1.0, lambda a, b: a * b, (1,)), X.prod(1)),
            "reduce all": (lax.reduce(x, 0.0, jnp.maximum, (0, 1)), np.maximum(X.max(), 0)),
            "reduce a tree": (
                lax.reduce((x, n), (0.0, 0), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))[1],
                whole.sum(0, dtype="int32"),
            ),
        },
        [x, n],
        [X, whole],
    )


def test_running_values() -> None:
    x, n = T.dmatrix("x"), T.imatrix("n")
    whole = N.astype("int32")
    back = np.s_[:, ::-1]
    logs = np.logaddexp.accumulate(X, 0)
    check(
        {
            "cumsum": (lax.cumsum(n), whole.cumsum(0, dtype="int32")),
            "cumsum back": (lax.cumsum(x, 1, reverse=True), X[back].cumsum(1)[back]),
            "cumprod": (lax.cumprod(x, axis=-1), X.cumprod(1)),
            "cummax": (lax.cummax(n, axis=1), np.maximum.accumulate(whole, 1)),
            "cummin back": (lax.cummin(x, 1, True), np.minimum.accumulate(X[back], 1)[back]),
            "cumlogsumexp": (lax.cumlogsumexp(x), logs),
            "associative": (lax.associative_scan(lambda a, b: a * b, x), X.cumprod(0)),
            "associative back": (
                lax.associative_scan(jnp.maximum, x, reverse=True, axis=1), np.maximum.accumulate(X[back], 1)[back],
            ),
        },
        [x, n],
        [X, whole],
    )  # fmt: skip
    affine = graphc.jit(
        lambda a, b: lax.associative_scan(lambda l, r: (r[0] * l[0], r[0] * l[1] + r[1]), (a, b))[1]  # noqa: E741
    )
    a, b = RNG.uniform(size=5), RNG.uniform(size=5)
    wanted, level = [], 0.0
    for slope, offset in zip(a, b, strict=True):
        level = slope * level + offset
        wanted.append(level)
    npt.assert_allclose(affine(a, b), wanted)
    npt.assert_allclose(affine(a[:1], b[:1]), wanted[:1])
    assert affine(a[:0], b[:0]).shape == (0,)
    npt.assert_allclose(graphc.grad(lambda x: (lax.cumlogsumexp(x) * T.arange(3)).sum())(X[:, 0]).sum(), 3.0)


def test_orders() -> None:
    x, n = T.dmatrix("x"), T.lmatrix("n")
    few = N % 3
    order = np.argsort(X, 1)
    both = [np.lexsort((X[row], few[row])) for row in range(3)]
    check(
        {
            "sort": (lax.sort(x, dimension=0), np.sort(X, 0)),
            "by keys": (lax.sort_key_val(x, n)[1], np.take_along_axis(few, order, 1)),
            "several": (lax.sort((n, x), num_keys=2)[1], np.stack([X[row][both[row]] for row in range(3)])),
            "top_k": (lax.top_k(x, 2)[0], -np.sort(-X, 1)[:, :2]),
            "top places": (lax.top_k(x, 2)[1], np.argsort(-X, 1)[:, :2]),
            "top of columns": (lax.approx_max_k(x, 1, 0)[0], X.max(0, keepdims=True)),
            "least": (lax.approx_min_k(x, 2)[0], np.sort(X, 1)[:, :2]),
        },
        [x, n],
        [X, few],
    )


def test_products() -> None:
    a, b = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(4, 2, 6, 5))
    x, y = T.dtensor4("x"), T.dtensor4("y")
    check(
        {
            "general": (lax.dot_general(x, y, (((3,), (3,)), ((0, 2), (1, 0)))), np.einsum("abcd,caed->acbe", a, b)),
            "two sums": (lax.dot_general(x, y, (((3, 0), (3, 1)), ((), ()))), np.einsum("abcd,eafd->bcef", a, b)),
            "none": (lax.dot_general(x[0, 0, 0], y[0, 0, 0], (((), ()), ((), ()))), np.outer(a[0, 0, 0], b[0, 0, 0])),
            "dot": (lax.dot(x[0, 0], y[0, 0].T), a[0, 0] @ b[0, 0].T),
            "batch": (lax.batch_matmul(x[0], y[:3, 0].transpose(0, 2, 1)), a[0] @ b[:3, 0].transpose(0, 2, 1)),
            "wider": (
                lax.dot(T.cast(x[0, 0], "float32"), T.cast(y[0, 0].T, "float32"), preferred_element_type="float64"),
                a[0, 0].astype("float32").astype("float64") @ b[0, 0].T.astype("float32").astype("float64"),
            ),
        },
        [x, y],
        [a, b],
        rtol=1e-12,
    )


# --- slices -----------------------------------------------------------------------------------------------------------


def test_slices() -> None:
    x, i = T.dmatrix("x"), T.lscalar("i")
    part = np.full((2, 2), 7.0)
    for place in (-9, -1, 0, 2, 9):
        row = np.clip(place + 3 if place < 0 else place, 0, 1)
        last = np.clip(place + 3 if place < 0 else place, 0, 2)
        written, one = X.copy(), X.copy()
        written[row : row + 2, 1:3] = part
        one[last] = 1.0
        rows = X.copy()
        rows[row : row + 2] = 7.0
        check(
            {
                "slice": (lax.slice(x, (0, 1), (3, 4), (2, 1)), X[::2, 1:]),
                "in dim": (lax.slice_in_dim(x, 1, None, 2, axis=1), X[:, 1::2]),
                "index": (lax.index_in_dim(x, -1, 1), X[:, -1:]),
                "index dropped": (lax.index_in_dim(x, 1, keepdims=False), X[1]),
                "dynamic": (lax.dynamic_slice(x, (i, 1), (2, 2)), X[row : row + 2, 1:3]),
                "dynamic in dim": (lax.dynamic_slice_in_dim(x, i, 2), X[row : row + 2]),
                "dynamic index": (lax.dynamic_index_in_dim(x, i, keepdims=False), X[last]),
                "update": (lax.dynamic_update_slice(x, T.constant(part), (i, 1)), written),
                "update in dim": (lax.dynamic_update_slice_in_dim(x, x[:2] * 0 + 7.0, i, 0), rows),
                "update index": (lax.dynamic_update_index_in_dim(x, x[0] * 0 + 1.0, i, 0), one),
            },
            [x, i],
            [X, place],
        )  # fmt: skip
    starts = T.lvector("s")
    f = graphc.function([x, starts], lax.dynamic_slice(x, starts, (1, 2)))
    npt.assert_array_equal(f(X, [1, 3]), X[1:2, 2:4])
    slope = graphc.grad(lambda x: (lax.dynamic_slice(x, (1, 9), (2, 2)) ** 2).sum())(X)
    expected = np.zeros_like(X)
    expected[1:, 2:] = 2 * X[1:, 2:]
    npt.assert_allclose(slope, expected)


def padded(x: Any, value: Any, config: Any) -> Any:
    """lax.pad, element by element."""
    sizes = [max(0, lo + hi + n + max(n - 1, 0) * inner) for n, (lo, hi, inner) in zip(x.shape, config, strict=True)]
    found = np.full(sizes, value, x.dtype)
    for place in np.ndindex(x.shape):
        target = [lo + k * (inner + 1) for k, (lo, _, inner) in zip(place, config, strict=True)]
        if all(0 <= k < size for k, size in zip(target, sizes, strict=True)):
            found[tuple(target)] = x[place]
    return found


def test_padding() -> None:
    x = T.dmatrix("x")
    configs = [
        ((1, 2, 0), (0, 0, 0)), ((0, 0, 2), (1, -1, 1)), ((-1, -1, 0), (-2, 3, 0)), ((-2, 0, 1), (0, -7, 2)),
        ((-9, 2, 0), (0, 0, 0)),
    ]  # fmt: skip
    check({str(c): (lax.pad(x, -1.0, c), padded(X, -1.0, c)) for c in configs}, [x], [X])
    empty = X[:0]
    check({str(c): (lax.pad(x, -1.0, c), padded(empty, -1.0, c)) for c in configs[:2]}, [x], [empty])


def gathered(x: Any, indices: Any, how: Any, sizes: Any, clip: bool) -> Any:
    """XLA's Gather, element by element."""
    outer = indices.shape[:-1]
    kept = [k for k in range(x.ndim) if k not in how.collapsed_slice_dims]
    rank = len(outer) + len(kept)
    batch_axes = [k for k in range(rank) if k not in how.offset_dims]
    shape = [0] * rank
    for axis, size in zip(batch_axes, outer, strict=True):
        shape[axis] = size
    for axis, own in zip(how.offset_dims, kept, strict=True):
        shape[axis] = sizes[own]
    found = np.full(shape, np.nan)
    for place in np.ndindex(*shape):
        index = indices[tuple(place[axis] for axis in batch_axes)]
        start = np.zeros(x.ndim, int)
        start[list(how.start_index_map)] = index
        last = np.array(x.shape) - sizes
        if clip:
            start = np.clip(start, 0, last)
        if ((start < 0) | (start > last)).any():
            continue
        offset = np.zeros(x.ndim, int)
        offset[kept] = [place[axis] for axis in how.offset_dims]
        found[place] = x[tuple(start + offset)]
    return found


GATHERS = [
    (lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4), [[0], [2], [5], [-1]]),
    (lax.GatherDimensionNumbers((0,), (1,), (1,)), (3, 1), [[1], [3], [4]]),
    (lax.GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1), [[0, 1], [2, 3], [2, 9]]),
    (lax.GatherDimensionNumbers((0, 2), (), (1, 0)), (2, 2), [[0, 1], [2, 0], [3, 0]]),
    (lax.GatherDimensionNumbers((2,), (0,), (0,)), (1, 2), [[[0], [2]], [[1], [7]]]),
    (lax.GatherDimensionNumbers((0, 1), (), (0,)), (2, 3), [1]),
]


def test_gather_and_scatter() -> None:
    """The same windows read and written, of which some are out of bounds."""
    x = T.dmatrix("x")
    pairs = {}
    for number, (how, sizes, listed) in enumerate(GATHERS):
        indices = np.array(listed)
        for clip in (True, False):
            mode = "clip" if clip else None
            expected = gathered(X, indices, how, sizes, clip)
            pairs[f"gather {number} {clip}"] = lax.gather(x, indices, how, sizes, mode=mode), expected
            back = lax.ScatterDimensionNumbers(how.offset_dims, how.collapsed_slice_dims, how.start_index_map)
            updates = RNG.uniform(1.0, 2.0, size=expected.shape)
            # Which elements a gather reads is told by a gather of their numbers.
            numbers = gathered(np.arange(12.0).reshape(3, 4), indices, how, sizes, clip)
            inside = ~np.isnan(numbers)
            places, values = numbers[inside].astype(int), updates[inside]
            for name, ufunc in {"add": np.add, "mul": np.multiply, "max": np.maximum, "sub": np.subtract}.items():
                flat = X.ravel().copy()
                ufunc.at(flat, places, values)
                made = getattr(lax, f"scatter_{name}")(x, indices, updates, back, mode=mode)
                pairs[f"{name} {number} {clip}"] = made, flat.reshape(3, 4)
            if len(np.unique(places)) == len(places):
                flat = X.ravel().copy()
                flat[places] = values
                pairs[f"set {number} {clip}"] = lax.scatter(x, indices, updates, back, mode=mode), flat.reshape(3, 4)
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    expected = X.copy()
    expected[[0, 2]] = np.exp(X[[0, 2]])
    made = lax.scatter_apply(x, np.array([[0], [2]]), jnp.exp, rows, update_shape=(2, 4))
    pairs["apply"] = made, expected
    pairs["take"] = lax.index_take(x, (np.array([0, 9]), np.array([1, 2])), (0, 1)), X[[0, 2], [1, 2]]
    check(pairs, [x], [X])


# --- windows ----------------------------------------------------------------------------------------------------------


def convolved(x: Any, w: Any, strides: Any, pads: Any, spread: Any, apart: Any, groups: int) -> Any:
    """A convolution of images (batch, channels, rows, columns), element by element."""
    x = padded(x, 0.0, [(0, 0, 0)] * 2 + [(lo, hi, s - 1) for (lo, hi), s in zip(pads, spread, strict=True)])
    extents = [(k - 1) * step + 1 for k, step in zip(w.shape[2:], apart, strict=True)]
    counts = [(n - e) // s + 1 for n, e, s in zip(x.shape[2:], extents, strides, strict=True)]
    found = np.zeros((x.shape[0], w.shape[0], *counts))
    channels, results = w.shape[1], w.shape[0] // groups
    for b, o, i, j in np.ndindex(found.shape):
        first = o // results * channels
        window = x[b, first : first + channels, i * strides[0] :, j * strides[1] :]
        window = window[:, : extents[0] : apart[0], : extents[1] : apart[1]]
        found[b, o, i, j] = (window * w[o]).sum()
    return found


def same(n: int, extent: int, stride: int) -> tuple[int, int]:
    total = max((-(-n // stride) - 1) * stride + extent - n, 0)
    return total // 2, total - total // 2


@pytest.mark.slow
def test_convolutions() -> None:
    images, kernels = RNG.normal(size=(2, 4, 7, 6)), RNG.normal(size=(6, 2, 3, 2))
    x, w = T.dtensor4("x"), T.dtensor4("w")
    pairs = {}
    for strides, pads, spread, apart in (
        ((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
        ((2, 1), ((1, 2), (0, 1)), (1, 1), (1, 2)),
        ((1, 2), ((2, 1), (-1, 1)), (2, 3), (2, 1)),
    ):
        expected = convolved(images, kernels, strides, pads, spread, apart, 2)
        name = f"{strides} {pads} {spread} {apart}"
        made = lax.conv_general_dilated(x, w, strides, pads, spread, apart, feature_group_count=2)
        pairs[name] = made, expected
        last = lax.conv_general_dilated(
            x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), strides, pads, spread, apart, ("NHWC", "HWIO", "NHWC"), 2
        )
        pairs[f"{name} last"] = last, expected.transpose(0, 2, 3, 1)
    around = [same(n, k, s) for n, k, s in zip((7, 6), (3, 2), (2, 2), strict=True)]
    whole = np.concatenate([kernels, kernels], 1)
    own = T.concatenate([w, w], 1)
    pairs["same"] = lax.conv(x, own, (2, 2), "SAME"), convolved(images, whole, (2, 2), around, (1, 1), (1, 1), 1)
    lower = [pair[::-1] for pair in around]
    pairs["same, lower"] = (
        lax.conv_general_dilated(x, own, (2, 2), "SAME_LOWER"),
        convolved(images, whole, (2, 2), lower, (1, 1), (1, 1), 1),
    )
    plain = convolved(images, whole, (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1)
    pairs["valid"] = lax.conv_with_general_padding(x, own, (1, 1), "VALID", None, None), plain
    check(pairs, [x, w], [images, kernels], rtol=1e-11, atol=1e-12)


@pytest.mark.slow
def test_transposed_convolutions() -> None:
    """With the kernel transposed it is the derivative of the convolution by its images."""
    images, kernels = RNG.normal(size=(2, 6, 6, 3)), RNG.normal(size=(3, 3, 3, 4))
    numbers = ("NHWC", "HWIO", "NHWC")
    for stride, padding in product((1, 2, 3), ("SAME", "VALID")):

        def forward(x: Any, stride: int = stride, padding: str = padding) -> Any:
            return lax.conv_general_dilated(x, kernels, (stride, stride), padding, dimension_numbers=numbers)

        value, pull = graphc.vjp(forward, images)
        g = RNG.normal(size=value.shape)
        found = graphc.jit(
            lambda g, s=stride, p=padding: lax.conv_transpose(g, T.constant(kernels), (s, s), p, transpose_kernel=True)
        )(g)
        expected = pull(g)[0]
        if found.shape == expected.shape:
            npt.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        else:  # a border that no window reached
            assert padding == "VALID" and stride > 1
            npt.assert_allclose(found, expected[:, : found.shape[1], : found.shape[2]], rtol=1e-10, atol=1e-12)


def test_windows() -> None:
    x, pairs = T.dmatrix("x"), {}
    values = RNG.normal(size=(7, 6))
    for window, strides, pads, spread, apart in (
        ((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
        ((3, 2), (2, 3), ((1, 1), (0, 2)), (1, 1), (1, 2)),
        ((2, 2), (1, 2), ((0, 1), (1, 0)), (2, 1), (2, 1)),
    ):
        for name, begin, fold, ufunc in (("sum", 0.0, lax.add, np.add), ("max", -np.inf, lax.max, np.maximum)):
            config = [(lo, hi, s - 1) for (lo, hi), s in zip(pads, spread, strict=True)]
            whole = padded(values, begin, config)
            extents = [(k - 1) * step + 1 for k, step in zip(window, apart, strict=True)]
            counts = [(n - e) // s + 1 for n, e, s in zip(whole.shape, extents, strides, strict=True)]
            expected = np.zeros(counts)
            for i, j in np.ndindex(*counts):
                part = whole[i * strides[0] :, j * strides[1] :][: extents[0] : apart[0], : extents[1] : apart[1]]
                expected[i, j] = ufunc.reduce(part, axis=None)
            made = lax.reduce_window(x, begin, fold, window, strides, pads, spread, apart)
            pairs[f"{name} {window} {strides}"] = made, expected
    pooled = np.array([values[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max() for i in range(4) for j in range(3)])
    pairs["same"] = lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "SAME"), pooled.reshape(4, 3)
    check(pairs, [x], [values], rtol=1e-12)
    slope = graphc.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2)).sum())(values)
    assert slope.sum() == 9.0 and set(np.unique(slope)) == {0.0, 1.0}


def test_plain_arrays_are_computed_at_once() -> None:
    found: Any = lax.cummax(np.array([1, 3, 2]))
    assert isinstance(found, np.ndarray) and list(found) == [1, 3, 3]
    assert lax.broadcast_shapes((2, 1), (3,)) == (2, 3)
    npt.assert_array_equal(lax.dynamic_slice(np.arange(5), (4,), (2,)), [3, 4])
    npt.assert_array_equal(lax.sort_key_val([3, 1], [30, 10])[1], [10, 30])
    npt.assert_array_equal(lax.reduce_window(X[0], -np.inf, lax.max, (2,)), np.maximum(X[0, 1:], X[0, :-1]))
    npt.assert_array_equal(lax.associative_scan(jnp.add, np.arange(4)), [0, 1, 3, 6])
    assert lax.top_k(X[0], 1)[0][0] == X[0].max() and lax.reduce_sum(X, (0, 1)) == pytest.approx(X.sum())
    w = T.dscalar("w")  # of a variable that a function uses it is a graph
    made = lax.reduce(X[0], 0.0, lambda a, b: a + w * b, (0,))
    assert graphc.function([w], made)(2.0) == pytest.approx(2 * X[0].sum())


# --- what is refused --------------------------------------------------------------------------------------------------


def test_calls_that_do_not_fit() -> None:
    x, n = T.dmatrix("x"), T.lmatrix("n")
    two: Any = 2.0
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    cases: list[tuple[Any, type[GraphcError], str]] = [
        (lambda: lax.select(n, x, x), GraphTypeError, "must be of bools"),
        (lambda: lax.select_n(x, x, x), GraphTypeError, "is no number of a case"),
        (lambda: lax.select_n(x > 0, x, x, x), GraphValueError, "3 cases"),
        (lambda: lax.integer_pow(x, two), GraphTypeError, "must be a Python integer"),
        (lambda: lax.clz(x), GraphTypeError, "has no bits"),
        (lambda: lax.reduce_xor(x, (0,)), GraphTypeError, "neither of bools nor of integers"),
        (lambda: lax.reduce(x, x, lax.add, (0,)), RankError, "is no scalar"),
        (lambda: lax.reduce(x, 0.0, lambda a, b: (a, b), (0,)), GraphTypeError, "must return what is like"),
        (lambda: lax.broadcast_in_dim(x, (2, 2), (1, 0)), RankError, "broadcast_dimensions"),
        (lambda: lax.broadcast_to_rank(x, 1), RankError, "more than 1 axes"),
        (lambda: lax.broadcast_shapes((2,), (3,)), ShapeError, "broadcast_shapes"),
        (lambda: lax.split(T.zeros(4), (1, 2)), ShapeError, "are 3 together"),
        (lambda: lax.slice(x, (0,), (1, 1)), RankError, "start_indices has 1 numbers"),
        (lambda: lax.dynamic_slice(T.zeros(3), (0,), (4,)), ShapeError, "a part of 4 elements"),
        (lambda: lax.dynamic_update_slice(x, n, (0, 0)), GraphTypeError, "is int64"),
        (lambda: lax.dynamic_update_slice(x, x[0], (0, 0)), RankError, "has 1 axes"),
        (lambda: lax.pad(x, 0.0, [(0, 0, -1), (0, 0, 0)]), GraphValueError, "less than no elements"),
        (lambda: lax.gather(x, n, rows, (1, 4), mode="wrap"), GraphValueError, "mode is one of"),
        (lambda: lax.gather(x, n, rows._replace(operand_batching_dims=(0,)), (1, 4)), GraphValueError, "vmap has"),
        (lambda: lax.sort((x, x), num_keys=3), GraphValueError, "num_keys=3"),
        (lambda: lax.dot_general(x, x, (((0,), ()), ((), ()))), RankError, "are not as many"),
        (lambda: lax.reduce_window(x, 0.0, lax.add, (2,)), RankError, "1 numbers"),
        (lambda: lax.reduce_window(x, 0.0, lax.add, (2, 2), padding="full"), GraphValueError, "padding is 'SAME'"),
        (lambda: lax.conv_general_dilated(T.dtensor4(), T.dtensor4(), (1, 1), "VALID", batch_group_count=2),
         GraphValueError, "batch_group_count"),
        (lambda: lax.conv_dimension_numbers((1,) * 4, (1,) * 4, ("NHWC", "HWIO", "NHW")), GraphValueError, "three"),
    ]  # fmt: skip
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
    f = graphc.function([x], lax.dynamic_slice(x, (0, 0), (2, 9)))
    with pytest.raises(GraphcError):
        f(X)


@pytest.mark.parametrize("count", [1, -1])
def test_a_branch_with_an_operand_of_its_own(count: int) -> None:
    def program(x: Any, y: Any) -> Any:
        return lax.cond(x.sum() > 0, (x, y), lambda pair: pair[0] - pair[1], y, lambda only: 3 * only)  # type: ignore[arg-type]

    x, y = count * np.ones(3), np.arange(3.0)
    wanted = x - y if count > 0 else 3 * y
    for f in (program, graphc.jit(program, mode="interpreted")):
        npt.assert_array_equal(f(x, y), wanted)
