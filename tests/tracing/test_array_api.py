"""What the array API standard (2024.12) asks of a namespace, against NumPy 2, which conforms: names, keywords, dtypes
of results, special values.

A line of a table is an expression of `xp`, the namespace, and of arrays; all lines of a table are one function.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.errors import GraphcError

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0, -2.0, 3.0, np.pi / 2, 1e30, 1e-40, np.inf, -np.inf]

UNARY = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil cos cosh exp expm1 floor imag isfinite isinf isnan
log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan
tanh trunc
""".split()
BINARY = """
add atan2 bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide greater greater_equal hypot
less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal
remainder subtract
""".split()

SIGNED = {*UNARY, *BINARY} - {"maximum", "minimum"}
"""Functions whose zeros have signs that the standard, or IEEE, says."""

NAMES = """
arange asarray empty empty_like eye full full_like linspace meshgrid ones ones_like tril triu zeros zeros_like
astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type clip conj pow bitwise_left_shift
bitwise_right_shift take take_along_axis matmul matrix_transpose tensordot vecdot concat expand_dims flip
moveaxis permute_dims repeat reshape roll squeeze stack tile unstack argmax argmin count_nonzero nonzero
searchsorted where unique_all unique_counts unique_inverse unique_values argsort sort cumulative_prod
cumulative_sum max mean min prod std sum var all any diff e inf nan newaxis pi int8 int16 int32 int64 uint8
uint16 uint32 uint64 float32 float64
""".split()
LINALG = """
cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose
outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
""".split()

STATISTICS = """
xp.sum(x)
xp.sum(x, axis=0)
xp.sum(x, axis=(0, -1), keepdims=True)
xp.sum(x, axis=1, dtype=xp.float32)
xp.sum(x, axis=())
xp.sum(i8)
xp.sum(u8, axis=1)
xp.sum(b, axis=0)
xp.sum(f)
xp.sum(none, axis=0)
xp.sum(none, axis=1)
xp.prod(x, axis=-1)
xp.prod(i8, axis=0, keepdims=True)
xp.prod(u8)
xp.prod(none)
xp.mean(x)
xp.mean(x, axis=(0, 2), keepdims=True)
xp.mean(f, axis=0)
xp.mean(x, axis=())
xp.var(x, axis=0)
xp.var(x, correction=1)
xp.var(x, axis=(0, 1), correction=0.5, keepdims=True)
xp.std(x, axis=-1, correction=1.0)
xp.std(f, axis=0, keepdims=True)
xp.max(x, axis=(0, 1))
xp.max(n, axis=0)
xp.min(n)
xp.min(i8, axis=1, keepdims=True)
xp.min(u8)
xp.max(b)
xp.cumulative_sum(v)
xp.cumulative_sum(x, axis=1)
xp.cumulative_sum(x, axis=-1, include_initial=True)
xp.cumulative_sum(i8, axis=0, include_initial=True)
xp.cumulative_sum(i8, axis=0, dtype=xp.float64)
xp.cumulative_prod(v, include_initial=True)
xp.cumulative_prod(x, axis=0)
xp.cumulative_prod(u8, axis=1)
xp.all(b)
xp.all(b, axis=0)
xp.all(x, axis=(0, 1), keepdims=True)
xp.all(none)
xp.any(none, axis=0)
xp.any(n)
xp.any(b, axis=-1, keepdims=True)
xp.diff(x)
xp.diff(x, axis=0, n=2)
xp.diff(v, prepend=v[:1], append=v[-1:])
xp.diff(i8, axis=0)
"""

SEARCHING = """
xp.argmax(x)
xp.argmax(x, axis=0)
xp.argmax(x, axis=-1, keepdims=True)
xp.argmax(n, axis=1)
xp.argmin(x, axis=1)
xp.argmin(n)
xp.argmin(u8, axis=0)
xp.count_nonzero(x)
xp.count_nonzero(b, axis=0)
xp.count_nonzero(i8, axis=1, keepdims=True)
xp.count_nonzero(n, axis=(0, 1))
xp.nonzero(b)[0]
xp.nonzero(b)[1]
xp.nonzero(v)[0]
xp.searchsorted(s, v)
xp.searchsorted(s, v, side="right")
xp.searchsorted(v, s, sorter=xp.argsort(v))
xp.where((v[:3] > 0), i8, f)
xp.where((v[:3] > 0), i8, 0)
xp.where(v > 0, v, -v)
xp.sort(xp.unique_values(u8))
xp.sort(xp.unique_values(v))
xp.unique_counts(u8)[0]
xp.unique_counts(u8)[1]
xp.unique_inverse(u8)[0]
xp.unique_inverse(u8)[1]
xp.unique_inverse(u8).inverse_indices
xp.unique_all(i8)[0]
xp.unique_all(i8)[1]
xp.unique_all(i8).inverse_indices
xp.unique_all(i8).counts
xp.sort(x)
xp.sort(x, axis=0)
xp.sort(n, axis=-1)
xp.sort(v, stable=True)
xp.argsort(x, axis=1)
xp.argsort(v)
xp.argsort(u8, axis=0, stable=True)
xp.sort(none, axis=0)
"""

SHAPES = """
xp.broadcast_arrays(x, v)[1]
xp.broadcast_to(v, (2, 3, 4))
xp.concat([x, x], axis=1)
xp.concat([i8, f], axis=None)
xp.concat([u8, i8])
xp.concat((v, s), axis=0)
xp.expand_dims(x, axis=1)
xp.expand_dims(x, axis=(0, -1))
xp.flip(x)
xp.flip(x, axis=(0, 2))
xp.flip(x, axis=-1)
xp.moveaxis(x, 0, -1)
xp.moveaxis(x, (0, 1), (-1, 0))
xp.permute_dims(x, (2, 0, 1))
xp.permute_dims(x, axes=(-1, 0, 1))
xp.repeat(v, 2)
xp.repeat(x, 3, axis=1)
xp.repeat(v, xp.asarray([0, 1, 2, 3]))
xp.reshape(x, (4, -1))
xp.reshape(x, (24,), copy=True)
xp.reshape(x, shape=(2, 12), copy=None)
xp.reshape(none, (0, 5))
xp.roll(x, 1)
xp.roll(x, (1, -2), axis=(0, 2))
xp.roll(v, shift=-1, axis=0)
xp.squeeze(x[:, :1], axis=1)
xp.squeeze(x[:1, :, :1], axis=(0, 2))
xp.stack([v, v])
xp.stack([x, x], axis=-1)
xp.tile(v, (2, 2))
xp.tile(x, (2,))
xp.unstack(x)[1]
xp.unstack(x, axis=-1)[3]
xp.take(x, xp.asarray([1, 0]), axis=2)
xp.take(v, xp.asarray([0, -1]))
xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1)
xp.take_along_axis(x, xp.argsort(x))
xp.tril(f)
xp.tril(x, k=1)
xp.triu(f, k=-1)
xp.meshgrid(v, s)[0]
xp.meshgrid(v, s, indexing="ij")[1]
xp.astype(x, xp.float32)
xp.astype(v, xp.int8, copy=False)
xp.astype(i8, xp.bool)
xp.zeros_like(i8)
xp.ones_like(x, dtype=xp.int16)
xp.full_like(f, 7)
xp.full_like(i8, fill_value=2.5, dtype=xp.float64)
xp.matrix_transpose(x)
x.mT
x.T if x.ndim == 2 else f.T
x[..., 0]
x[None, 1, ::-1]
x[:, xp.asarray([0, 2]), 1:3]
v[v > 0]
x[b[:, 0]]
x[1, 2, 3]
v[xp.asarray([True, False, True, False])]
"""

MADE = """
xp.arange(5)
xp.arange(2, 9, 3)
xp.arange(1.0, 2.0, 0.25)
xp.arange(5, dtype=xp.uint8)
xp.arange(3, 0, -1)
xp.arange(0)
xp.asarray(1)
xp.asarray(True)
xp.asarray([1, 2], dtype=xp.float32)
xp.asarray([[1.0, 2.0]], copy=True)
xp.eye(3)
xp.eye(2, 4, k=1)
xp.eye(3, k=-1, dtype=xp.int8)
xp.full((2, 2), 1)
xp.full(3, 1.5)
xp.full((), True)
xp.full((2,), 3, dtype=xp.float32)
xp.linspace(0, 1, 5)
xp.linspace(0.0, 1.0, num=4, endpoint=False)
xp.linspace(0, 1, 3, dtype=xp.float32)
xp.linspace(1, 2, 1)
xp.ones((2, 3))
xp.ones(2, dtype=xp.bool)
xp.zeros((0, 2))
xp.zeros(3, dtype=xp.int64)
"""

LINEAR = """
xp.matmul(f, m)
f @ m
xp.matmul(x, m4)
xp.matmul(m, m[0])
xp.tensordot(x, m4, axes=1)
xp.tensordot(x, x, axes=((0, 1), (0, 1)))
xp.tensordot(v, s, axes=0)
xp.vecdot(x, v)
xp.vecdot(x, x, axis=1)
xp.linalg.cholesky(spd)
xp.linalg.cholesky(spd, upper=True)
xp.linalg.cross(m, m.T)
xp.linalg.cross(m, m.T, axis=0)
xp.linalg.det(m)
xp.linalg.diagonal(x)
xp.linalg.diagonal(x, offset=1)
xp.linalg.eigh(spd)[0]
xp.linalg.eigh(spd).eigenvalues
xp.linalg.eigvalsh(spd)
xp.linalg.inv(m)
xp.linalg.matrix_norm(m)
xp.linalg.matrix_norm(x, ord="nuc", keepdims=True)
xp.linalg.matrix_norm(m, ord=2)
xp.linalg.matrix_norm(m, ord=-1)
xp.linalg.matrix_power(m, 3)
xp.linalg.matrix_power(m, -2)
xp.linalg.matrix_power(m, 0)
xp.linalg.matrix_rank(m)
xp.linalg.matrix_rank(m, rtol=0.5)
xp.linalg.matrix_transpose(x)
xp.linalg.outer(v, s)
xp.linalg.pinv(x)
xp.linalg.pinv(m, rtol=1e-3)
xp.abs(xp.linalg.qr(m).R)
xp.abs(xp.linalg.qr(x, mode="complete")[1])
xp.linalg.slogdet(m).sign
xp.linalg.slogdet(m).logabsdet
xp.linalg.solve(m, m[0])
xp.linalg.solve(m, m.T)
xp.linalg.svd(m).S
xp.linalg.svd(x, full_matrices=False)[1]
xp.linalg.svdvals(x)
xp.linalg.tensordot(m, m, axes=1)
xp.linalg.trace(x)
xp.linalg.trace(x, offset=1, dtype=xp.float32)
xp.linalg.trace(i8)
xp.linalg.vecdot(m, m)
xp.linalg.vector_norm(x)
xp.linalg.vector_norm(x, axis=1)
xp.linalg.vector_norm(x, axis=(0, 2), keepdims=True)
xp.linalg.vector_norm(x, ord=1)
xp.linalg.vector_norm(x, ord=xp.inf, axis=-1)
xp.linalg.vector_norm(x, ord=0, axis=0)
xp.linalg.vector_norm(v, ord=3.5)
"""

REFUSED = """
xp.sum(x, axis=3)
xp.max(x, axis=(0, 0))
xp.argmax(x, axis=7)
xp.concat([x, x], axis=5)
xp.expand_dims(x, axis=9)
xp.permute_dims(x, (0, 1))
xp.permute_dims(x, (0, 0, 1))
xp.squeeze(x, axis=0)
xp.stack([x, v])
xp.reshape(x, (5, -1))
xp.moveaxis(x, 0, 8)
xp.roll(x, 1, axis=4)
xp.flip(x, axis=3)
xp.matmul(x, m)
xp.tensordot(x, v, axes=((0,), (0,)))
xp.linalg.cholesky(v)
xp.linalg.det(v)
xp.linalg.inv(x)
xp.sort(x, axis=3)
xp.cumulative_sum(x)
xp.cumulative_sum(x, axis=4)
xp.unstack(x, axis=3)
xp.take(x, xp.asarray([0]), axis=4)
xp.repeat(x, 2, axis=4)
xp.diff(x, axis=4)
xp.broadcast_to(x, (2, 2))
xp.meshgrid(v, indexing='no')
xp.searchsorted(s, v, side='middle')
xp.bitwise_and(x, x)
xp.bitwise_invert(x)
xp.linalg.matrix_power(m, 1.5)
xp.linalg.qr(m, mode='no')
xp.tril(v[0])
xp.vecdot(x, s[:3])
xp.concat([x, v])
x[5]
x[0, 0, 0, 0]
x['a']
x[1.5]
"""

TABLES = {"statistics": STATISTICS, "searching": SEARCHING, "shapes": SHAPES, "made": MADE, "linear algebra": LINEAR}


def arrays() -> dict[str, Any]:
    """What the expressions use."""
    rng = np.random.default_rng(0)
    m = rng.normal(size=(3, 3))
    x = rng.normal(size=(2, 3, 4)).round(1)
    return {
        "x": x,
        "v": np.array([0.5, -1.5, 0.0, 0.5]),
        "s": np.array([-1.5, 0.0, 0.25, 2.0]),
        "f": rng.normal(size=(3, 3)).astype("float32"),
        "n": np.array([[1.0, np.nan, 3.0], [np.nan, -1.0, 0.0]]),
        "i8": np.array([[1, -2, 3], [100, 100, -128], [0, 3, 1]], "int8"),
        "u8": np.array([[1, 200, 200], [0, 3, 1]], "uint8"),
        "b": np.array([[True, False, True], [False, False, True], [True, True, True]])[:2],
        "none": np.zeros((0, 3)),
        "m": m,
        "m4": rng.normal(size=(4, 2)),
        "spd": m @ m.T + np.eye(3),
    }


def lines(table: str) -> list[str]:
    return [line for line in table.splitlines() if line]


def values(dtype: str) -> Any:
    """Numbers of a dtype, with those at its ends and all that IEEE knows."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype.startswith("float"):
        return np.array([*SPECIAL, np.nan], dtype)
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, info.max, info.max - 1, *([-1, -2, info.min] if info.min else [])], dtype)


def differences(labels: Sequence[str], wanted: Sequence[Any], found: Sequence[Any]) -> list[str]:
    """Where results have not NumPy's dtype, shape, values or signs of zeros."""
    wrong = []
    for label, want, got in zip(labels, map(np.asarray, wanted), map(np.asarray, found), strict=True):
        narrow = np.dtype("float32") if want.dtype == "float16" else want.dtype  # graphc has no float16
        if got.dtype != narrow or got.shape != want.shape:
            wrong.append(f"{label}: {got.dtype}{got.shape} for {want.dtype}{want.shape}")
        elif want.dtype.kind == "f":
            tolerance = {"float16": 1e-2, "float32": 1e-5}.get(want.dtype.name, 1e-11)
            near = np.isclose(got, want, rtol=tolerance, atol=tolerance / 100, equal_nan=True)
            signs = (np.signbit(got) == np.signbit(want)) | (want != 0) | np.isnan(want)
            if not near.all() or not (signs.all() or label.split()[0] not in SIGNED):
                wrong.append(f"{label}: {got} for {want}")
        elif not (got == want).all():
            wrong.append(f"{label}: {got} for {want}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("table", TABLES)
def test_a_table(table: str, mode: str) -> None:
    given = arrays()
    leaves = {name: T.TensorType(str(value.dtype), (None,) * value.ndim)(name) for name, value in given.items()}
    for name in ("m", "v", "x"):
        leaves[name] = T.tensor("float64", given[name].shape, name)  # as functions of known axes want
    own = {name: leaf if table != "made" else given[name] for name, leaf in leaves.items()}
    text = lines(TABLES[table])[:: 1 if mode == "interpreted" else 3]  # compiled, some of them
    wanted = [eval(line, {"xp": np, **given}) for line in text]
    results = [eval(line, {"xp": jnp, **own}) for line in text]
    function = graphc.function([*leaves.values()], results, mode=mode, on_unused_input="ignore")
    assert not differences(text, wanted, function(*given.values()))


def elementwise_cases() -> tuple[list[str], list[Any], list[Any], dict[str, Any]]:
    """Every elementwise function of every dtype, and of a third of the pairs."""
    leaves = {dtype: T.TensorType(dtype, (None,))(dtype) for dtype in DTYPES}
    labels: list[str] = []
    wanted: list[Any] = []
    results: list[Any] = []
    for name, dtype in product(UNARY, DTYPES):
        add(labels, wanted, results, f"{name} {dtype}", name, [values(dtype)], [leaves[dtype]])
    for name, (place, one), (other, two) in product(BINARY, enumerate(DTYPES), enumerate(DTYPES)):
        if one == two or (place + other) % 3 == 0:
            a, b = values(one), values(two)
            pair = [np.repeat(a, len(b)), np.tile(b, len(a))]
            own = [jnp.repeat(leaves[one], len(b)), jnp.tile(leaves[two], len(a))]
            add(labels, wanted, results, f"{name} {one} {two}", name, pair, own)
    return labels, wanted, results, leaves


def add(labels: Any, wanted: Any, results: Any, label: str, name: str, given: Any, own: Any) -> None:
    """What both make of it, or that both refuse it."""
    try:
        want = getattr(np, name)(*given)
    except TypeError:
        with pytest.raises(TypeError):
            getattr(jnp, name)(*own)
        return
    labels.append(label)
    wanted.append(want)
    results.append(getattr(jnp, name)(*own))


@pytest.mark.slow
def test_elementwise_functions() -> None:
    """Dtypes of results and special values: of all dtypes interpreted, compiled of float64."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        labels, wanted, results, leaves = elementwise_cases()
        found = graphc.function([*leaves.values()], results, mode="interpreted")(*map(values, DTYPES))
    assert len(labels) > 1300 and not differences(labels, wanted, found)
    kept = [place for place, label in enumerate(labels) if label.endswith(" float64") and label.count("64") in (1, 2)]
    kept = [place for place in kept if labels[place].split()[1] == "float64"]
    compiled = graphc.function([leaves["float64"]], [results[place] for place in kept])(values("float64"))
    assert not differences([labels[place] for place in kept], [wanted[place] for place in kept], compiled)


def test_powers_and_shifts() -> None:
    """Of exponents and distances that have a value."""
    labels: list[str] = []
    wanted: list[Any] = []
    results: list[Any] = []
    for name, dtype in product(("pow", "bitwise_left_shift", "bitwise_right_shift"), DTYPES[1:]):
        by = np.array(
            [0.0, -0.0, 1, 2, 3, -1, np.inf, -np.inf, np.nan, 0.5] if "float" in dtype else [0, 1, 2, 3], dtype
        )
        pair = [np.repeat(values(dtype), len(by)), np.tile(by, len(values(dtype)))]
        with np.errstate(all="ignore"):
            add(labels, wanted, results, f"{name} {dtype}", name, pair, list(map(jnp.asarray, pair)))
    assert not differences(labels, wanted, graphc.function([], results, mode="interpreted")())


def test_names_and_constants() -> None:
    assert [name for name in (*NAMES, *UNARY, *BINARY) if not hasattr(jnp, name)] == []
    assert [name for name in LINALG if not hasattr(jnp.linalg, name)] == []
    assert (jnp.pi, jnp.e, jnp.inf, jnp.newaxis) == (np.pi, np.e, np.inf, None) and np.isnan(jnp.nan)


def test_promotion() -> None:
    """`result_type`, what a product has, `can_cast`, kinds of dtypes."""
    for one, two in product(DTYPES, DTYPES):
        wanted = np.result_type(one, two)
        assert jnp.result_type(jnp.dtype(one), jnp.dtype(two)) == wanted
        assert (T.TensorType(one, ())() * T.TensorType(two, ())()).dtype == wanted
        assert jnp.can_cast(jnp.dtype(one), two) == np.can_cast(one, two)
    assert [jnp.isdtype(jnp.dtype(one), "integral") for one in DTYPES] == [
        one[-1] in "8624" and "i" in one for one in DTYPES
    ]


@pytest.mark.parametrize(
    "expression",
    lines(REFUSED),
)
def test_what_numpy_refuses(expression: str) -> None:
    """Is refused with an error of NumPy's class, which names the function or the tensor."""
    given = arrays()
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - of whatever class
        eval(expression, {"xp": np, **given})
    own = {name: T.tensor(str(value.dtype), value.shape, name) for name, value in given.items()}
    with pytest.raises(GraphcError) as ours:
        eval(expression, {"xp": jnp, **own})
    kinds = (ValueError, IndexError, TypeError)
    assert any(isinstance(theirs.value, kind) and isinstance(ours.value, kind) for kind in kinds), ours.value
