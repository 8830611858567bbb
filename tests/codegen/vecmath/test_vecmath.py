"""The vector math against mpmath: accuracy over all exponents, special values of C99's Annex F, and that loops
vectorise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from llvmlite import ir
from numpy.typing import NDArray

from graphc.codegen.vecmath.floats import F32, F64, find_format
from graphc.codegen.vecmath.table import VECTOR_MATH, Symbol, define_called, read_symbol, refer
from graphc.codegen.vecmath.trigonometric import argument_bound
from tests.support.thorough import some
from tests.support.vecmath_loop import TYPES, Loop, compile_loop
from tests.support.vecmath_values import PORTABLE, SPECIALS

INF, NAN = math.inf, math.nan
DTYPES = ("float32", "float64")
PRECISION = {"float32": 24, "float64": 53}
EXPONENTS = {"float32": (-149, 127), "float64": (-1074, 1023)}
CASES = [(name, dtype) for name in VECTOR_MATH for dtype in DTYPES]
compiled: Callable[..., Loop] = cache(compile_loop)

# The bound in ulp where it is not 2, with fused multiply-add and without. expm1 rounds its polynomial, the product with
# the power of two and the difference, each by half an ulp.
BOUNDS = {"expm1": 1.5, "pow": 4.0, "tan": 4.0, "gammaln": 4.0, "digamma": 4.0, "trigamma": 4.0}


def _sigmoid(x: Any) -> Any:
    return mpmath.exp(x) / (1 + mpmath.exp(x)) if x < 0 else 1 / (1 + mpmath.exp(-x))


def _softplus(x: Any) -> Any:
    return max(x, mpmath.mpf(0)) + mpmath.log1p(mpmath.exp(-abs(x)))


def _erfc(x: Any) -> Any:
    # mpmath's own fails beyond what its series can count.
    return mpmath.erfc(x) if abs(x) < 1000 else mpmath.mpf(0 if x > 0 else 2)


def _erfcx(x: Any) -> Any:
    if x > 1000:  # the asymptotic series to 160 bits
        return sum((-1) ** k * mpmath.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(12)) / (
            x * mpmath.sqrt(mpmath.pi)
        )
    return mpmath.exp(min(x * x, mpmath.mpf(10) ** 6)) * _erfc(x)


def _log_gamma(x: Any) -> Any:
    return mpmath.log(abs(mpmath.gamma(x))) if x < 100 else mpmath.loggamma(x)


def _trigamma(x: Any) -> Any:
    # mpmath's own, psi(1, x), takes minutes for large and for tiny arguments.
    if x <= 0:
        if x == mpmath.floor(x):
            raise ValueError("a pole")
        return (mpmath.pi / mpmath.sin(mpmath.pi * x)) ** 2 - _trigamma(1 - x)
    total = mpmath.mpf(0)
    while x < 40:
        total, x = total + 1 / x**2, x + 1
    return total + 1 / x + 1 / (2 * x * x) + sum(mpmath.bernoulli(2 * k) / x ** (2 * k + 1) for k in range(1, 30))


REFERENCES: dict[str, Callable[..., Any]] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "log1p": mpmath.log1p,
    "tanh": mpmath.tanh,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "erf": mpmath.erf,
    "erfc": _erfc,
    "erfcx": _erfcx,
    "pow": mpmath.power,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "atan": mpmath.atan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "gammaln": _log_gamma,
    "digamma": mpmath.digamma,
    "trigamma": _trigamma,
    "atan2": mpmath.atan2,
    "hypot": mpmath.hypot,
}

# Intervals where cancellation, a change of formula, or a threshold of over- or underflow is.
REGIONS: dict[str, list[tuple[float, float]]] = {
    "exp": [(-1, 1), (-104, 89), (-746, 711)],
    "exp2": [(-1, 1), (-150, 129), (-1076, 1025)],
    "expm1": [(-0.5, 0.5), (-1.5, 1.5), (-40, 90), (700, 711)],
    "log": [(0.99, 1.01), (0.3, 3), (0, 1000)],
    "log2": [(0.99, 1.01), (0.3, 3), (0, 1000)],
    "log10": [(0.99, 1.01), (0.3, 3), (0, 1000)],
    "log1p": [(-0.01, 0.01), (-1, 1), (0, 30)],
    "tanh": [(-0.1, 0.1), (-1.2, 1.2), (-21, 21)],
    "sigmoid": [(-5, 5), (-110, 40), (-750, 40)],
    "softplus": [(-3, 3), (-110, 40), (-750, 40)],
    "sin": [(-7, 7), (-(2.0**18), 2.0**18), (-(2.0**31), 2.0**31)],
    "cos": [(-7, 7), (-(2.0**18), 2.0**18), (-(2.0**31), 2.0**31)],
    "tan": [(-7, 7), (-(2.0**18), 2.0**18), (-(2.0**31), 2.0**31)],
    "erf": [(-0.1, 0.1), (-1.3, 1.3), (-6.5, 6.5)],
    "erfc": [(-1, 1), (-6, 6), (0, 10.5), (0, 28)],
    "erfcx": [(-0.1, 0.1), (-2, 2), (-6, 6), (-27, 28), (10, 11), (27, 29), (20, 1000)],
    "cbrt": [(-10, 10)],
    "atan": [(-1, 1), (-4, 4), (-100, 100)],
    "asin": [(-1, 1), (-0.55, 0.55)],
    "acos": [(-1, 1), (0.9, 1)],
    "sinh": [(-1, 1), (-10, 10), (-90, 90), (-711, 711)],
    "cosh": [(-1, 1), (-10, 10), (-90, 90), (-711, 711)],
    "asinh": [(-0.1, 0.1), (-1, 1), (-10, 10)],
    "acosh": [(1, 1.1), (1, 2), (1, 100)],
    "atanh": [(-0.1, 0.1), (-1, 1)],
    "gammaln": [(0, 4), (0.9, 1.1), (1.9, 2.1), (2, 20), (3, 200), (20, 1e6), (-4, 0), (-30, 0), (-1000, 0)],
    "digamma": [(1.4, 1.5), (0, 4), (2, 100)],
    "trigamma": [(0, 4), (2, 100)],
}

# Arguments close to an overflow, an underflow, a multiple of pi/2 or the end of a domain; neighbours are tested too.
HARD: dict[str, list[float]] = {
    "exp": [709.782712893384, -708.3964185322641, -745.1332191019411, 88.72283905206835, -87.33654475, -103.972077],
    "exp2": [1024, -1022, -1074, -1075, 128, -126, -149, -150],
    "expm1": [709.782712893384, 88.72283905206835, -37.0, 0.34657359, -0.34657359, 1.03972],
    "log": [1, math.sqrt(0.5), math.sqrt(2), 2**-1022, 2**-126],
    "log2": [1, math.sqrt(0.5), math.sqrt(2), 2**-1022, 2**-126],
    "log10": [1, math.sqrt(0.5), math.sqrt(2), 2**-1022, 2**-126],
    "log1p": [-1, 0.41421356, -0.29289322, 2.0**53, 2.0**55, 2.0**24, 2.0**26, 2.0**1023],
    "tanh": [0.55, 19.06, 20, 9.01, 10],
    "sigmoid": [-745.1332191019411, -708.3964185322641, -103.972, -87.3365, 36.7368, 709.78],
    "softplus": [-745.1332191019411, -708.3964185322641, -103.972, -87.3365, -0.8813735870195430, 709.78],
    "sin": [math.pi * k / 2 for k in (1, 2, 3, 4, 355, 710, 2**20, 2**29)]
    # Doubles and floats that come closest to a multiple of pi/2 (Muller, Elementary Functions, table 11.1).
    + [6381956970095103.0 * 2.0**797, 16367173.0 * 2.0**72, 2.0**18, 2.0**20, 2.0**30, 1e22, 2.0**120],
    "erf": [1, 0.84375, 5.9215871957945, 6, 3.91920590, 4.2],
    "erfcx": [-26.6287357137514, -9.3824138641357, 10.5, 28, 2.0**1023, 2.0**127, 2.0**-27, 1],
    "erfc": [26.543258, 27.226017111108366, 9.194554, 10.054448, 28, -6, -4],
    "cosh": [710.4758600739439, 89.4159],
    "sinh": [710.4758600739439, 89.4159],
    "gammaln": [1, 2, 2.55e305, 4.08e36, 171.6],
    "asin": [0.5, 1],
    "acos": [0.5, -0.5, 1, -1],
    "atanh": [1, 0.5],
    "acosh": [1, 2.0**27, 2.0**511],
    "asinh": [2.0**27, 2.0**511, 2.0**-26],
}
HARD["cos"] = HARD["tan"] = HARD["sin"]

for _name, _other in PORTABLE.items():
    REFERENCES[_name], REGIONS[_name] = REFERENCES[_other], REGIONS[_other]
    HARD[_name] = HARD[_other]


def _arguments(name: str, dtype: str) -> NDArray[Any]:
    """Every exponent with both signs at random significands, the regions, the hard cases and their neighbours."""
    random = np.random.default_rng(sum(map(ord, name)))
    low, high = EXPONENTS[dtype]
    exponents = np.resize(np.arange(low, high + 1), max(1100, high + 1 - low))
    with np.errstate(over="ignore", under="ignore"):
        spread = (
            np.ldexp(random.uniform(1, 2, exponents.size), exponents) * random.choice([-1, 1], exponents.size)
        ).astype(dtype)
        hard = np.array(HARD.get(name, [1.0])).astype(dtype)
    hard = np.concatenate([hard, np.nextafter(hard, _infinity(dtype)), np.nextafter(hard, -_infinity(dtype))])
    regions = [random.uniform(a, b, 300).astype(dtype) for a, b in REGIONS[name]]
    return np.concatenate([spread, hard, -hard, *regions])


def _infinity(dtype: str) -> Any:
    """Infinity as a scalar of `dtype`."""
    return np.dtype(dtype).type(INF)


def _argument_pairs(name: str, dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Pairs that spread over the results, and some of any size."""
    random = np.random.default_rng(7)
    low, high = EXPONENTS[dtype]
    size = 700
    wild = [np.ldexp(random.uniform(1, 2, size), random.integers(low, high, size)) for _ in range(2)]
    x, y = (value * random.choice([-1, 1], size) for value in wild)
    if name == "pow":
        x = abs(x)
        base = np.exp2(random.uniform(low, high, size))
        near = 1 + np.ldexp(random.uniform(-1, 1, size), -random.integers(1, 20, size))
        xs = [x, base, near, random.integers(2, 30, size).astype(float), -random.integers(2, 9, size).astype(float)]
        span = random.uniform(low, high, (4, size))
        ys = [random.uniform(-2, 2, size), span[0] / np.log2(base), span[1] / np.log2(near), span[2] / np.log2(xs[3])]
        ys.append(np.rint(span[3] / 4))
    else:
        xs, ys = [x, random.normal(size=size), x], [y, random.normal(size=size), x * random.uniform(0.25, 4, size)]
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate(xs).astype(dtype), np.concatenate(ys).astype(dtype)


@cache
def _cases(name: str, dtype: str) -> tuple[tuple[NDArray[Any], ...], list[Any]]:
    """Arguments and mpmath's results; where the function is not real the result is None."""
    if name in ("pow", "hypot", "atan2"):
        arguments: tuple[NDArray[Any], ...] = _argument_pairs(name, dtype)
    else:
        arguments = (_arguments(name, dtype),)
    arguments = tuple(array[np.all(np.isfinite(arguments), axis=0)] for array in arguments)
    with mpmath.workprec(160):
        return arguments, [_evaluate(name, values) for values in zip(*arguments, strict=True)]


def _evaluate(name: str, values: tuple[Any, ...]) -> Any:
    try:
        result = REFERENCES[name](*(mpmath.mpf(float(value)) for value in values))
    except (ValueError, ZeroDivisionError):
        return None
    return result if isinstance(result, mpmath.mpf) else None


def _error(result: float, exact: Any, dtype: str) -> float:
    """The distance in ulp of the exact value; infinity counts as the power of two after the largest number."""
    top = EXPONENTS[dtype][1] + 1
    limit = mpmath.ldexp(1, top)
    if math.isnan(result):
        return INF
    value = mpmath.mpf(result) if math.isfinite(result) else math.copysign(1, result) * limit
    exact = max(-limit, min(limit, exact))
    if exact == 0:
        return 0.0 if value == 0 else INF
    exponent = int(mpmath.frexp(exact)[1]) - PRECISION[dtype]
    ulp = mpmath.ldexp(1, min(max(exponent, EXPONENTS[dtype][0]), top - PRECISION[dtype]))
    return float(abs(value - exact) / ulp)


@pytest.mark.slow
@pytest.mark.parametrize("has_fma", [True, False], ids=["fma", "plain"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_accuracy(name: str, dtype: str, has_fma: bool) -> None:
    bound = BOUNDS.get(name, 2.0)
    arguments, exact = _cases(name, dtype)
    results = compiled(name, dtype, has_fma)(*arguments)
    errors = []
    with mpmath.workprec(160):
        for result, reference in zip(results.tolist(), exact, strict=True):
            undefined = reference is None or mpmath.isnan(reference)
            errors.append(0.0 if undefined else _error(result, reference, dtype))
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, (
        f"{errors[worst]:.3f} ulp at {[array[worst] for array in arguments]}, got {results[worst]}"
    )


def _is_ordinary(name: str, dtype: str, has_fma: bool, arguments: tuple[Any, ...], exact: Any) -> bool:
    """Whether the relaxed functions promise anything: nothing subnormal, the result below the last binade, no angle
    that a few operations cannot reduce.
    """
    info = np.finfo(dtype)
    if exact is None or mpmath.isnan(exact) or not info.smallest_normal <= abs(exact) <= info.max / 2:
        return False
    if name in ("sin", "cos", "tan"):
        format = find_format(TYPES[dtype])
        return bool(abs(arguments[0]) < argument_bound(format, has_fma))
    return all(abs(argument) >= info.smallest_normal for argument in arguments)


@pytest.mark.slow
@pytest.mark.parametrize("has_fma", some([True, False]), ids=["fma", "plain"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_relaxed_accuracy(name: str, dtype: str, has_fma: bool) -> None:
    arguments, exact = _cases(name, dtype)
    results = compiled(name, dtype, has_fma, True)(*arguments).tolist()
    rows = list(zip(zip(*arguments, strict=True), results, exact, strict=True))
    ordinary = [row for row in rows if _is_ordinary(name, dtype, has_fma, row[0], row[2])]
    assert len(ordinary) > 400
    with mpmath.workprec(160):
        errors = [_error(result, reference, dtype) for _, result, reference in ordinary]
    worst = int(np.argmax(errors))
    assert errors[worst] <= 4.0, f"{errors[worst]:.3f} ulp at {ordinary[worst]}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_relaxed_special_values(name: str, dtype: str) -> None:
    """NaN, infinities and zeros stay, but for the sign of zero; subnormal numbers need not."""
    tiny = np.finfo(dtype).smallest_normal
    rows = np.array(SPECIALS[name] + ([] if compiled(name, dtype).arity > 1 else [(NAN, NAN)]), dtype)
    rows = rows[~np.any((rows != 0) & (abs(rows) < tiny), axis=1)]
    *arguments, expected = rows.T
    np.testing.assert_array_equal(compiled(name, dtype, True, True)(*arguments), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_relaxed_angle_out_of_range_is_nan(name: str, dtype: str) -> None:
    bound = argument_bound(find_format(TYPES[dtype]), True)
    results = compiled(name, dtype, True, True)(np.array([bound, -bound, 1e30, np.nextafter(bound, 0, dtype=dtype)]))
    np.testing.assert_array_equal(np.isnan(results), [True, True, True, False])


@pytest.mark.slow
@pytest.mark.parametrize("has_fma", [True, False], ids=["fma", "plain"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_special_values(name: str, dtype: str, has_fma: bool) -> None:
    loop = compiled(name, dtype, has_fma)
    rows = SPECIALS[name] + ([] if loop.arity > 1 else [(NAN, NAN)])
    *arguments, expected = np.array(rows, dtype).T
    # Every case at every position: the vector body and the scalar remainder.
    for shift in (0, 1, 5):
        copies = [np.resize(np.roll(array, shift), 131) for array in [*arguments, expected]]
        results = loop(*copies[:-1])
        np.testing.assert_array_equal(results, copies[-1])
        zero = results == 0
        np.testing.assert_array_equal(np.signbit(results[zero]), np.signbit(copies[-1][zero]))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_nan_stays(name: str, dtype: str) -> None:
    loop = compiled(name, dtype, True)
    x = np.full(64, NAN)
    if name != "pow":
        assert np.isnan(loop(*[x] * loop.arity)).all()
    else:
        assert np.isnan(loop(x, np.full(64, 2.0))).all()


@pytest.mark.slow
@pytest.mark.parametrize("has_fma", [True, False], ids=["fma", "plain"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_loop_vectorizes(name: str, dtype: str, has_fma: bool) -> None:
    loop = compiled(name, dtype, has_fma)
    scalar = {"float32": "float", "float64": "double"}[dtype]
    assert re.search(rf"store <\d+ x {scalar}>", loop.optimized), "the loop stores one element at a time"
    if "x86" in loop.optimized:
        assert re.search(r"\bv?mulp[sd]\b|\bvfn?m(add|sub)\d+p[sd]\b", loop.assembly), "no packed instruction"


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_has_no_call(dtype: str) -> None:
    assert not re.search(r"\bcall", compiled("exp", dtype, True).assembly)


def test_huge_sine_in_any_lane() -> None:
    loop = compiled("sin", "float64", True)
    for lane in range(33):
        x = np.linspace(-3, 3, 33)
        x[lane] = 6381956970095103.0 * 2.0**797
        exact = float(mpmath.sin(mpmath.mpf(x[lane])))
        result = loop(x)
        assert result[lane] == pytest.approx(exact, rel=5e-16)
        np.testing.assert_allclose(np.delete(result, lane), np.sin(np.delete(x, lane)), rtol=5e-16)


def _negative_arguments(dtype: str) -> NDArray[Any]:
    """Between the poles, close to them, and close to the first zeros of gammaln and digamma."""
    random = np.random.default_rng(3)
    zeros = [-2.4570247382208006, -2.7476826467274127, -3.1435808883499797, -3.955294284858598]
    zeros += [-0.5040830082644554, -1.5734984731623905, -2.6107208684441447, -3.6352933664369010]
    close = -random.integers(1, 30, 300) + random.choice([-1, 1], 300) * 10.0 ** random.uniform(-5, -1, 300)
    beside = np.array(zeros) + np.linspace(-1e-3, 1e-3, 41)[:, np.newaxis]
    values = np.concatenate([random.uniform(-40, 0, 2000), close, beside.ravel()]).astype(dtype)
    kept: NDArray[Any] = values[values != np.rint(values)]
    return kept


@cache
def _log_gamma_cases(dtype: str) -> tuple[NDArray[Any], list[Any]]:
    """Arguments beside the zeros of log|gamma| and between them, with mpmath's results.

    Of each pole from -2 down and either side: the numbers nearest to the zero, those close to it, and those that are
    closer to the pole or further from it by any factor.
    """
    random = np.random.default_rng(4)
    precision = PRECISION[dtype]
    arguments = [_negative_arguments(dtype), random.uniform(-2.8, -2.4, 4000), random.uniform(-2, 0, 2000)]
    for pole in range(2, 25):
        for side in (-1, 1):
            with mpmath.workprec(200):
                distance = _distance_of_zero(pole, side)
                zero = np.array([float(-pole + side * distance)], dtype)
            steps = np.concatenate([np.arange(-40, 41), random.integers(-(2**12), 2**12, 20)])
            beside = zero + steps * np.spacing(zero)
            # The nearest numbers to a pole are single steps from it.
            factors = 2.0 ** random.uniform(-precision, precision, 40)
            scaled = -pole + side * np.minimum(float(distance) * factors, 0.5)
            arguments += [beside, scaled, -pole + side * np.arange(1, 9) * np.spacing(float(pole))]
    values = np.concatenate(arguments).astype(dtype)
    values = values[values != np.rint(values)]
    with mpmath.workprec(200):
        return values, [_log_gamma(mpmath.mpf(float(value))) for value in values]


def _distance_of_zero(pole: int, side: int) -> Any:
    """Of a zero of log|gamma| from the pole at -pole; where there is none on that side, what it would be."""
    if pole == 2 and side > 0:
        return mpmath.mpf(0.5)
    guess = 1 / mpmath.factorial(pole)
    return guess * mpmath.exp(mpmath.findroot(lambda u: _log_gamma(-pole + side * guess * mpmath.exp(u)), 0))


@pytest.mark.slow
@pytest.mark.parametrize("relaxed", [False, True], ids=["strict", "relaxed"])
@pytest.mark.parametrize("has_fma", [True, False], ids=["fma", "plain"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_log_gamma_beside_its_zeros(dtype: str, has_fma: bool, relaxed: bool) -> None:
    x, exact = _log_gamma_cases(dtype)
    results = compiled("gammaln", dtype, has_fma, relaxed)(x).tolist()
    assert min(abs(value) for value in exact) < 2.0 ** (-20 if dtype == "float32" else -45)
    with mpmath.workprec(200):
        errors = [_error(result, value, dtype) for result, value in zip(results, exact, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= 4.0, f"{errors[worst]:.3f} ulp at {x[worst]!r}, got {results[worst]!r}"


@pytest.mark.parametrize("has_fma", [True, False], ids=["fma", "plain"])
def test_log_gamma_of_one_negative_in_any_lane(has_fma: bool) -> None:
    """The other lanes keep their results, and those of a vector that has no such lane."""
    loop = compiled("gammaln", "float64", has_fma)
    x = np.linspace(0.1, 30, 37)
    expected = loop(x)
    for lane in range(37):
        mixed = x.copy()
        mixed[lane] = -2.5
        results = loop(mixed)
        assert results[lane] == pytest.approx(-0.056243716497674054, rel=1e-15)
        np.testing.assert_array_equal(np.delete(results, lane), np.delete(expected, lane))


@pytest.mark.parametrize("has_fma", [True, False], ids=["fma", "plain"])
def test_log_gamma_does_not_depend_on_the_other_lanes(has_fma: bool) -> None:
    """Rows whose products are of different lengths, and some with arguments that have none."""
    loop, random = compiled("gammaln", "float64", has_fma), np.random.default_rng(5)
    others = [-1e300, -(2.0**60), -22.5, -22.499, -0.0, -1e-300, 0.3, 7.5, 1e300, -INF, INF, NAN]
    x = np.array([*random.uniform(-30, 5, 300), *random.uniform(-3, 0, 100), *others])
    expected = np.array([loop(x[i : i + 1])[0] for i in range(x.size)])
    for _ in range(10):
        order = random.permutation(x.size)
        np.testing.assert_array_equal(loop(x[order]), expected[order])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_digamma_between_poles(dtype: str) -> None:
    x = _negative_arguments(dtype)
    results = compiled("digamma", dtype, True)(x).tolist()
    with mpmath.workprec(160):
        values = [mpmath.mpf(float(value)) for value in x]
        exact = [mpmath.digamma(value) for value in values]
        poles = [mpmath.pi / abs(mpmath.tan(mpmath.pi * value)) for value in values]
        scales = [max(1, abs(e), pole) for e, pole in zip(exact, poles, strict=True)]
        errors = [abs(result - e) / scale for result, e, scale in zip(results, exact, scales, strict=True)]
    assert float(max(errors)) <= 4 * float(np.finfo(dtype).eps)


def test_a_module_has_the_functions_that_it_calls_once() -> None:
    module, double = ir.Module(), ir.DoubleType()
    first = refer(module, "exp", double)
    assert refer(module, "exp", double) is first
    assert first.name == "gc_exp_f64"
    assert refer(module, "exp", double, relaxed=True).name == "gc_exp_f64_relaxed"
    with pytest.raises(TypeError, match="float and double"):
        refer(module, "exp", ir.IntType(64))
    with pytest.raises(KeyError):
        refer(module, "exponential", double)
    caller = ir.Function(module, ir.FunctionType(double, [double]), "caller")
    builder = ir.IRBuilder(caller.append_basic_block())
    builder.ret(builder.call(first, caller.args))
    define_called(module, True, (256,))
    assert [function.name for function in module.functions if not function.is_declaration] == [first.name, "caller"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize(("lanes", "apart"), [(1, False), (8, False), (1, True), (64, True)])
@pytest.mark.parametrize("name", VECTOR_MATH)
def test_the_name_of_a_function_says_what_it_is(name: str, lanes: int, apart: bool, relaxed: bool, dtype: str) -> None:
    symbol = Symbol(name, F32 if dtype == "float32" else F64, relaxed, lanes, apart)
    assert read_symbol(str(symbol)) == symbol
    assert read_symbol(f"{symbol}_cold") is None and read_symbol(f"gc_huge_{name}_f64_x8") is None


@pytest.mark.parametrize("has_fma", [True, False], ids=["fma", "plain"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_number_has_a_cube_root(dtype: str, has_fma: bool) -> None:
    """Its cube may round to infinity."""
    info = np.finfo(dtype)
    x = np.array([info.max, -info.max, np.nextafter(info.max, 0, dtype=dtype)] * 11, dtype)
    np.testing.assert_allclose(compiled("cbrt", dtype, has_fma)(x), np.cbrt(x), rtol=4 * float(info.eps))
