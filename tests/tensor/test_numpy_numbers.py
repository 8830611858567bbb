"""NumPy's functions against NumPy over all dtypes and small shapes: dtypes, shapes, values, signs of zeros; uint64
beside int64; powers of integers.

Programs are texts that are evaluated with NumPy's arrays and with variables. Where graphc differs,
`DIFFERENT` says why.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as gnp
import graphc.tensor as T
from graphc.arrays.dtypes import DTYPES
from graphc.errors import GraphcError, GraphTypeError, GraphValueError

Array = np.ndarray[Any, Any]
MODES = ("interpreted", "compiled", "python")
SHAPES = ((3,), (1,), (2, 3), (1, 3), (3, 1), (0,), (), (2, 0))
NEAR = {"float32": 3e-5, "float64": 1e-9}

OF_ONE = """
arccos arcsinh arctan bitwise_count cbrt ceil conj cos deg2rad exp exp2 expm1 fabs floor frexp invert isfinite isinf
isnan log log1p log2 logical_not modf negative positive rad2deg reciprocal rint sign signbit sin spacing sqrt square
tan tanh trunc cumsum cumprod nancumsum nancumprod diff flip trapezoid unwrap round nan_to_num real imag isreal i0 sinc
fix isneginf isposinf cov corrcoef ravel atleast_2d unique vander diagflat fliplr nonzero flatnonzero zeros_like
ones_like cumulative_sum cumulative_prod bincount histogram linalg.norm trace tril sort argsort
""".split()
OF_TWO = """
add subtract multiply divide floor_divide remainder fmod power float_power arctan2 bitwise_and bitwise_or bitwise_xor
copysign divmod equal fmax fmin gcd lcm greater less_equal heaviside hypot left_shift right_shift ldexp logaddexp
logical_and logical_xor maximum minimum nextafter dot matmul inner outer vdot kron convolve isin intersect1d union1d
setdiff1d searchsorted isclose append polyval polymul interp vecdot quantile percentile copysign
""".split()
REDUCTIONS = """
sum prod mean std var max min ptp any all argmax argmin count_nonzero median average nansum nanprod nanmean nanstd
nanvar nanmax nanmin nanmedian
""".split()
WIDE = ("sum", "prod", "nansum", "nanprod")
MORE = (
    "xp.where(x > 0, x, y)", "xp.concatenate([x, y])", "xp.stack([x, y])", "xp.select([x > 0, x < 0], [x, y])",
    "xp.add.accumulate(x)", "xp.multiply.accumulate(x, dtype='int16')", "xp.full_like(x, 3)", "xp.clip(x, -1, 3)",
    "xp.clip(x, 0, 300)", "xp.clip(x, -1, None)", "xp.clip(x, x, y)", "xp.cov(x, y)", "xp.cov(x, rowvar=False)",
    "xp.cov(x, bias=True)", "xp.cov(x, ddof=2)", "xp.cumsum(x, dtype='int8')", "xp.cumprod(x, dtype='float32')",
    "xp.cumsum(x, dtype=bool)", "xp.nancumsum(x, dtype='uint8')", "xp.sum(x, dtype='int8')",
    "xp.trace(x, dtype='int8')",
    "xp.quantile(x, 0.3)", "xp.quantile(x, [0.2, 0.5])", "xp.quantile(x, 1)", "xp.percentile(x, 30)",
    "xp.quantile(x, np.float32(0.25), method='hazen')", "xp.round(x, 1)", "xp.round(x, -1)", "xp.nanquantile(x, 0.5)",
    "xp.polyint(x)", "xp.polyder(x)", "xp.trapezoid(x, dx=2)", "xp.max(x, initial=3)", "xp.min(x, axis=0, initial=0)",
    "xp.max(x, initial=1, where=x > 0)", "xp.maximum.reduce(x, initial=2)", "xp.sum(x, initial=2, where=x > 1)",
)  # fmt: skip
"""Programs of one or two arrays."""

DIFFERENT = {
    "xp.argsort": "a scalar has no axis", "xp.tril": "a vector is no matrix", "xp.polyder": "a matrix is no polynomial",
    "xp.polyval": "a matrix is no polynomial", "xp.percentile": "parts that are not between 0 and 100",
    "xp.quantile(x,y)": "parts that are not between 0 and 1", "xp.setdiff1d": "uint64 and int64 are compared exactly",
    "xp.intersect1d": "uint64 and int64 are compared exactly", "xp.average": "it takes no axis by position",
    "xp.minimum": "0.0 is above -0.0", "xp.maximum": "0.0 is above -0.0", "xp.fmax": "0.0 is above -0.0",
    "xp.fmin": "0.0 is above -0.0", "xp.vdot": "BLAS multiplies single elements", "xp.dot(": "the same",
    "xp.vecdot": "the same", "xp.inner": "the same", "xp.convolve": "the same", "xp.trace": "a vector has no diagonal",
}  # fmt: skip
"""Programs of which some are refused, or whose zeros have another sign. The dtype of a value is NumPy's."""


def drawn(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.startswith("float"):
        plain = np.round(rng.normal(size=shape) * 2, 1)
        return np.asarray(np.where(rng.random(shape) < 0.25, rng.choice([0.0, -0.0, 1.0], shape), plain), dtype)
    return np.asarray(rng.integers(0 if dtype.startswith("u") else -4, 7, shape), dtype)


def shape(rng: np.random.Generator) -> tuple[int, ...]:
    return SHAPES[rng.integers(len(SHAPES))]


def reductions(rng: np.random.Generator) -> Iterator[tuple[str, dict[str, Array]]]:
    """Reductions along an axis or over all, with a dtype, from a number."""
    for name, dtype in itertools.product(REDUCTIONS, DTYPES):
        own, more = shape(rng), ""
        if own and rng.random() < 0.5:
            more += f",axis={rng.integers(len(own))}"
        if name in WIDE and rng.random() < 0.4:
            more += f",dtype='{rng.choice(DTYPES)}'"
        if name in ("sum", "prod", "max", "min") and rng.random() < 0.4:
            more += f",initial={rng.integers(0, 3)}"
        yield f"xp.{name}(x{more})", {"x": drawn(rng, dtype, own)}


def programs() -> Iterator[tuple[str, dict[str, Array]]]:
    """Texts, and the arrays that they name."""
    rng = np.random.default_rng(12)

    for name in OF_ONE:
        for dtype in DTYPES:
            yield f"xp.{name}(x)", {"x": drawn(rng, dtype, shape(rng))}
    for name in OF_TWO:
        for dtype in DTYPES:
            own = shape(rng)
            other = own if rng.random() < 0.6 else shape(rng)
            arrays = {"x": drawn(rng, dtype, own), "y": drawn(rng, str(rng.choice(DTYPES)), other)}
            yield f"xp.{name}(x,y)", arrays
            yield f"xp.{name}(x,{rng.choice(['2', '1.5', 'True', '0'])})", {"x": arrays["x"]}
    yield from reductions(rng)
    for text in MORE:
        for dtype in DTYPES:
            own = shape(rng)
            second = drawn(rng, str(rng.choice(DTYPES)), own)
            yield text, {"x": drawn(rng, dtype, own), "y": second}


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def in_numpy(text: str, arrays: Mapping[str, Array]) -> list[Array] | None:
    """The arrays that NumPy gives; None where it raises."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return [np.asarray(each) for each in as_list(eval(text, {"xp": np, "np": np, **arrays}))]
    except (TypeError, ValueError, IndexError, OverflowError, np.linalg.LinAlgError):
        return None


def in_graphc(text: str, arrays: Mapping[str, Array], mode: str = "interpreted", known: bool = True) -> list[Array]:
    variables = {
        name: T.tensor(a.dtype.name, a.shape if known else tuple(1 if n == 1 else None for n in a.shape), name)
        for name, a in arrays.items()
    }
    made = [T.as_tensor(each) for each in as_list(eval(text, {"xp": gnp, "np": np, **variables}))]
    f = graphc.function(list(variables.values()), made, mode=mode, on_unused_input="ignore")
    return [np.asarray(each) for each in f(*arrays.values())]


def difference(found: Array, wanted: Array) -> str:
    """How two arrays differ; nothing where they do not but for rounding. float16 is float32 in graphc."""
    kind = "float32" if wanted.dtype == np.float16 else wanted.dtype.name
    if found.dtype != kind:
        return f"dtype {found.dtype}, not {kind}"
    if found.shape != wanted.shape:
        return f"shape {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind != "f":
        return "" if np.array_equal(found, wanted) else f"{found}, not {wanted}"
    near = 4e-3 if wanted.dtype == np.float16 else NEAR[kind]
    if not np.allclose(found, wanted, rtol=near, atol=near, equal_nan=True):
        return f"{found}, not {wanted}"
    zero = (found == 0) & (wanted == 0)
    return "" if (np.signbit(found) == np.signbit(wanted))[zero].all() else f"zeros of {found}, not {wanted}"


@pytest.mark.slow
def test_functions_have_numpys_dtypes_shapes_values_and_signs() -> None:
    wrong, seen = [], 0
    for text, arrays in programs():
        wanted = in_numpy(text, arrays)
        if wanted is None:
            continue
        is_known = any(text.startswith(known) for known in DIFFERENT)
        seen += 1
        try:
            found = in_graphc(text, arrays)
        except GraphcError as error:
            told = f"{type(error).__name__}: {error}"
        else:
            told = next(filter(None, map(difference, found, wanted)), "")
            is_known = is_known and not told.startswith("dtype")
        if told and not is_known:
            wrong.append(f"{text} of {[(a.dtype.name, a.shape) for a in arrays.values()]}: {told}")
    assert seen > 1500
    assert not wrong, "\n".join(wrong)


def test_dtypes_that_are_not_numpys() -> None:
    """The rows of docs/numpy.md that differ between `graphc.tensor` and `graphc.numpy`."""
    u, b, f = T.scalar("u", dtype="uint64"), T.vector("b", dtype="uint8"), T.fvector("f")
    assert (T.arange(u).dtype, gnp.arange(u).dtype) == ("uint64", "float64")
    assert (T.i0(b).dtype, gnp.i0(b).dtype) == ("float32", "float64")
    assert (T.exp(b).dtype, gnp.exp(b).dtype) == ("float32", "float32")
    assert (T.dot(f, 2).dtype, gnp.dot(f, 2).dtype, np.dot(np.ones(1, "float32"), 2).dtype.name) == (
        "float32", "float64", "float64",
    )  # fmt: skip
    with graphc.options.change(floatX="float32", mode="interpreted"):
        traced = graphc.jit(lambda: gnp.linspace(0.0, 1.0, 3))().dtype
        assert (T.linspace(0.0, 1.0, 3).dtype, traced, gnp.linspace(0.0, 1.0, 3).dtype) == (
            "float32", "float32", "float64",
        )  # fmt: skip


# --- signs of zeros -------------------------------------------------------------------------------------------------

SIGNED = """
xp.sum(x, axis=0) | xp.sum(x, axis=1) | xp.sum(x) | xp.mean(x, axis=1) | xp.prod(x, axis=1) | xp.cumsum(x, axis=1)
x @ y | xp.dot(x, y) | xp.einsum('ij,jk->ik', x, y) | xp.einsum('ij->i', x) | xp.outer(x[:, 0], y[0])
xp.tensordot(x, y, 1)
xp.trace(x) | xp.dot(2.0, x) | xp.inner(x, 2.0) | xp.sum(xp.broadcast_to(x[:, 0][:, None], (3, 4)), axis=1) | x + 0.0
x - 0.0 | 0.0 - x | x * 0.0 | x - x | x * 1.0 | x / 1.0 | -x | xp.abs(x) | x ** 1 | x ** 2 | x ** 3 | xp.round(x)
xp.trunc(x) | xp.sqrt(x) | xp.sin(x) | xp.expm1(x) | xp.log1p(x) | xp.sign(x) | xp.sum(x * 2.0, axis=1)
xp.max(x, axis=1) | xp.min(x, axis=1) | xp.median(x, axis=1) | xp.average(x, axis=1)
xp.sum(x[:, :0], axis=1) | xp.sum(-x, axis=1)
x.T @ x | xp.sum(x.T, axis=0) | xp.where(x < 0, x, 0.0) | xp.nansum(x, axis=1) | xp.vecdot(x, x)
(x[:, None] * y.T[None]).sum(-1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("inner", [1, 2])
def test_zeros_have_one_sign_in_all_modes(inner: int) -> None:
    """With sizes that are known and that are not, of -0.0 alone and of both zeros; and as NumPy's."""
    rng = np.random.default_rng(7)
    texts = [text.strip() for text in SIGNED.replace("\n", "|").split("|") if text.strip()]
    for known in (True, False):
        variables = [T.tensor("float64", s if known else (None, None)) for s in ((3, inner), (inner, 4))]
        made = [eval(text, {"xp": gnp, "x": variables[0], "y": variables[1]}) for text in texts]
        functions = [graphc.function(variables, made, mode=mode) for mode in MODES]
        for zeros in ([-0.0], [0.0, -0.0]):
            x, y = (np.asarray(rng.choice([*zeros, *more], s)) for s, more in (((3, inner), ()), ((inner, 4), (2.0,))))
            found = [f(x, y) for f in functions]
            with np.errstate(all="ignore"):
                plain = [np.asarray(eval(text, {"xp": np, "x": x, "y": y})) for text in texts]
            for place, text in enumerate(texts):
                signs = [np.signbit(each[place]) for each in found]
                assert all(np.array_equal(signs[0], other) for other in signs[1:]), (text, known, x, y)
                if "max" not in text and "min" not in text:
                    assert np.array_equal(signs[0], np.signbit(plain[place])), (text, known, x, y)


# --- uint64 beside int64 --------------------------------------------------------------------------------------------

UNSIGNED_EDGES = np.array([0, 1, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1], "uint64")
SIGNED_EDGES = np.array([0, 1, -1, 5, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)], "int64")
EXACT = """
x + y | x - y | x * y | x / y | x // y | x % y | xp.fmod(x, y) | xp.minimum(x, y) | xp.maximum(x, y) | x < y | x <= y
x > y | x >= y | x == y | x != y | xp.where(x > y, x, y) | xp.clip(x, y[0], y[9]) | xp.isin(x, y[:9]) | xp.append(x, y)
xp.searchsorted(xp.sort(x), y) | xp.searchsorted(xp.sort(x), y, side='right') | xp.array_equal(x, y) | xp.sum(x)
xp.max(x) | xp.argmax(x) | xp.sort(x) | xp.cumsum(x) | xp.unique(x) | xp.diff(x) | xp.sign(x) | x > 2**63 | x == -1
x < 2**64 | -1 < x | xp.clip(x, 0, 2**63 - 1) | x == 9007199254740993.0 | x.astype('float64') | x.astype('int32')
x // 7 | xp.take(xp.arange(10), x[:1]) | (xp.arange(10) + 0 * y[0].astype('int64'))[x[:1]]
""".replace("\n", "|").split("|")


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_uint64_beside_int64_is_numpys(mode: str) -> None:
    left, right = (grid.ravel() for grid in np.meshgrid(UNSIGNED_EDGES, SIGNED_EDGES))
    for x, y in ((left, right), (right, left), (left, left[::-1].copy())):
        kept = [(text.strip(), in_numpy(text.strip(), {"x": x, "y": y})) for text in EXACT if text.strip()]
        variables = [T.vector("x", dtype=x.dtype.name), T.vector("y", dtype=y.dtype.name)]
        texts = [(text, wanted[0]) for text, wanted in kept if wanted is not None]
        scope = {"xp": gnp, "x": variables[0], "y": variables[1]}
        found = graphc.function(variables, [eval(text, dict(scope)) for text, _ in texts], mode=mode)(x, y)
        assert len(texts) > 30
        for (text, wanted), value in zip(texts, found, strict=True):
            assert np.asarray(value).dtype == wanted.dtype, (text, x.dtype, y.dtype)
            np.testing.assert_array_equal(value, wanted, err_msg=f"{text} of {x.dtype} and {y.dtype}")


# --- powers of integers ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_negative_power_of_integers_is_an_error_of_the_call(mode: str) -> None:
    x, y, k = T.lmatrix("x"), T.bvector("y"), T.iscalar("k")
    f = graphc.function([x, y, k], [x**y, x**k, gnp.power(x, T.cumsum(y)), x ** (y - k), T.sqr(x) ** y[0]], mode=mode)
    base, powers = np.array([[2, -3, 0], [1, -1, 7]]), np.array([1, 0, 3], "int8")
    wanted = [base**powers, base**0, base ** np.cumsum(powers), base**powers, base**2]
    for value, each in zip(f(base, powers, 0), wanted, strict=True):
        np.testing.assert_array_equal(value, each)
    for one, other, name in ((-powers, 0, "y"), (powers, -1, "k"), (powers, 1, "y - k")):
        with pytest.raises(GraphValueError, match=f"not allowed: {name}, the exponent of x.*test_numpy_numbers.py"):
            f(base, one, other)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_negative_powers_of_every_signed_dtype(dtype: str) -> None:
    x, y = T.vector("x", dtype=dtype), T.vector("y", dtype=dtype)
    f = graphc.function([x, y], x**y, mode="interpreted")
    assert f(np.array([2, 3], dtype), np.array([2, 0], dtype)).tolist() == [4, 1]
    with pytest.raises(ValueError, match="negative integer powers"):
        f(np.array([2, 3], dtype), np.array([2, -1], dtype))
    with pytest.raises(ValueError, match="negative integer powers"):
        x ** np.array([-1], dtype)


def test_negative_powers_within_loops_and_batches() -> None:
    n = T.lvector("n")
    rows, _ = graphc.scan(lambda k, s: s + 2**k, sequences=n, outputs_info=T.constant(np.int64(1)))
    for mode in MODES:
        f = graphc.function([n], rows, mode=mode)
        assert f([1, 2, 0]).tolist() == [3, 7, 8]
        with pytest.raises(ValueError, match="negative integer powers"):
            f([1, -2, 0])
    batch = graphc.vmap(lambda a, b: a**b)
    assert batch(np.array([2, 3]), np.array([2, 0])).tolist() == [4, 1]
    with pytest.raises(ValueError, match="negative integer powers"):
        batch(np.array([2, 3]), np.array([2, -1]))


# --- reductions that begin with a number, covariances ---------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_extremes_that_begin_with_a_number_take_nothing(mode: str) -> None:
    texts = (
        "xp.max(x, initial=5)",
        "xp.min(x, initial=5)",
        "xp.max(x, axis=0, initial=-0.0)",
        "xp.min(x, axis=1, initial=1)",
    )
    for dtype in ("float64", "float32", "int8", "uint16", "bool"):
        x = T.matrix("x", dtype=dtype)
        f = graphc.function([x], [eval(text, {"xp": gnp, "x": x}) for text in texts], mode=mode)
        for shape in ((0, 2), (2, 0), (0, 0), (2, 3)):
            array = drawn(np.random.default_rng(1), dtype, shape)
            for text, value in zip(texts, f(array), strict=True):
                assert not difference(np.asarray(value), np.asarray(eval(text, {"xp": np, "x": array}))), text


def test_the_start_of_an_extreme_is_a_scalar_that_its_dtype_holds() -> None:
    x = T.vector("x", dtype="int8")
    with pytest.raises(OverflowError, match="300"):
        gnp.max(x, initial=300)
    with pytest.raises(GraphTypeError, match="no scalar"):
        gnp.max(x, initial=[1, 2])


def test_the_derivative_of_an_extreme_that_begins_with_a_number() -> None:
    x = T.dvector("x")
    f = graphc.function([x], graphc.grad(gnp.max(x, initial=1.0), x))
    assert f([0.5, 3.0]).tolist() == [0.0, 1.0]
    assert f([0.5]).tolist() == [0.0]
    assert f([]).tolist() == []


@pytest.mark.parametrize("shape", [(None, None), (1, None), (1, 3)])
def test_covariances_of_one_observation(shape: tuple[int | None, ...]) -> None:
    m = np.array([[1.0, 2, 4]])
    x = T.tensor("float64", shape, "x")
    assert np.isnan(graphc.function([x], gnp.cov(x, rowvar=False), mode="interpreted")(m)).all()
    found = graphc.function([x], gnp.cov(x, rowvar=False, bias=True), mode="interpreted")(m)
    assert not difference(found, np.cov(m, rowvar=False, bias=True))


def test_covariances_with_weights() -> None:
    m = np.random.default_rng(2).normal(size=(3, 5))
    counts, sizes = np.array([1, 0, 2, 3, 1]), np.array([0.5, 1, 2, 0, 1])
    x, f, a = T.dmatrix("x"), T.lvector("f"), T.dvector("a")
    programs = (
        "xp.cov(x, fweights=f)", "xp.cov(x, aweights=a)", "xp.cov(x, fweights=f, aweights=a, ddof=0)",
        "xp.cov(x, fweights=f, aweights=a)", "xp.corrcoef(x)",
    )  # fmt: skip
    made = [eval(text, {"xp": gnp, "x": x, "f": f, "a": a}) for text in programs]
    found = graphc.function([x, f, a], made, mode="interpreted")(m, counts, sizes)
    for text, value in zip(programs, found, strict=True):
        assert not difference(value, eval(text, {"xp": np, "x": m, "f": counts, "a": sizes})), text
    refused = graphc.function([x, a], gnp.cov(x, aweights=a), mode="interpreted")
    with pytest.raises(ValueError, match="aweights a .* cannot be negative"):
        refused(m, -sizes)
    with pytest.raises(GraphcError, match="must be whole numbers"):
        graphc.function([x], gnp.cov(x, fweights=[0.5, 1, 1, 1, 1]), mode="interpreted")(m)
    with pytest.raises(ValueError, match="is not whole"):
        gnp.cov(x, ddof=0.5)
