"""The documented bounds of rounding (docs/numerics.md), in all modes, where terms cancel; and the signs of zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.ir.node import Array, Node, variable
from graphc.ops.elementwise import ROWS, elementwise

MODES = ("interpreted", "compiled", "python")
UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
BLOCK = 256
"""As many float32 are added in float32 at most; their sums are added in float64."""


@cache
def made(build: Callable[[Any], Node], dtype: str, rank: int, mode: str) -> graphc.Function:
    x = variable(dtype, (None,) * rank, "x")
    return graphc.function([x], build(x), mode=mode)


def steps(count: int, dtype: str) -> int:
    """The roundings that a sum of `count` terms is bound by."""
    return min(count, BLOCK) + 2 if dtype == "float32" else count


def cancelling(count: int, dtype: str, rng: np.random.Generator) -> Array:
    """Pairs that cancel, of many magnitudes, in any order, and what they leave."""
    half = count // 2
    large = np.ldexp(rng.uniform(1, 2, half), rng.integers(-4, 30, half))
    return rng.permutation(np.concatenate([large, -large, rng.uniform(-1, 1, count - 2 * half)])).astype(dtype)


def issue(dtype: str) -> Array:
    return np.asarray([1e8, 1, -1e8] if dtype == "float32" else [1e17, 1, -1e17], dtype)


def check(found: Any, terms: Array, allowed: float, what: str) -> None:
    """Compare a sum with the exact one of its terms, which are float64."""
    exact, most = math.fsum(terms), math.fsum(np.abs(terms))
    assert abs(float(found) - exact) <= allowed * most, f"{what}: {found} for {exact}, allowed {allowed * most}"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums(dtype: str, mode: str) -> None:
    rng = np.random.default_rng(3)
    unit = UNIT[dtype]
    for count in (3, 17, 255, 257, 1000, 5003):
        x = issue(dtype) if count == 3 else cancelling(count, dtype, rng)
        wide = x.astype("float64")
        check(made(T.sum, dtype, 1, mode)(x), wide, unit * steps(count, dtype), "sum")
        check(count * float(made(T.mean, dtype, 1, mode)(x)), wide, unit * (steps(count, dtype) + 2), "mean")
        matrix = np.stack([x, x[::-1], -x])
        for row, found in zip(matrix, made(_rows, dtype, 2, mode)(matrix), strict=True):
            check(found, row.astype("float64"), unit * steps(count, dtype), "rows")
        columns = np.ascontiguousarray(matrix.T)
        for row, found in zip(matrix, made(_columns, dtype, 2, mode)(columns), strict=True):
            check(found, row.astype("float64"), unit * steps(count, dtype), "columns")


def _rows(x: Any) -> Any:
    return x.sum(axis=1)


def _columns(x: Any) -> Any:
    return x.sum(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products(dtype: str, mode: str) -> None:
    """Each product is rounded once, or not at all, and the sum as many times as it has terms."""
    rng = np.random.default_rng(4)
    types = ((None,), (None,)), ((None, None), (None,)), ((None, None), (None, None))
    functions = []
    for shapes in types:
        a, b = (variable(dtype, shape, name) for shape, name in zip(shapes, "ab", strict=True))
        functions.append(graphc.function([a, b], T.dot(a, b), mode=mode))
    for count in (3, 40, 300, 2001):
        signs = cancelling(count, dtype, rng)
        factors = rng.uniform(0.5, 2, count).astype(dtype)
        terms, allowed = signs.astype("float64") * factors, UNIT[dtype] * (count + 1)
        if dtype == "float64":
            terms, allowed = (signs.astype("longdouble") * factors).astype("float64"), allowed + UNIT[dtype]
        rows, columns = np.stack([signs] * 3), np.stack([factors] * 2, axis=1)
        for f, operands in zip(functions, ((signs, factors), (rows, factors), (rows, columns)), strict=True):
            for found in np.ravel(f(*operands)):
                check(found, terms, allowed, "dot")


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_moments_and_norms(dtype: str, mode: str, axis: int | None) -> None:
    """Of numbers that are large beside their deviations."""
    unit, rng = UNIT[dtype], np.random.default_rng(5)
    for offset in (0.0, 50.0):
        x = (offset + rng.normal(size=(300, 7))).astype(dtype)
        wide = x.astype("longdouble")
        count = x.size if axis is None else x.shape[axis]
        variance = ((wide - wide.mean(axis=axis, keepdims=True)) ** 2).mean(axis=axis)
        # the mean's error enters squared, what is subtracted is rounded once, and pivots cost four binary digits
        of_mean = (steps(count, dtype) + 2) * unit * np.abs(wide).mean(axis=axis)
        allowed = 32 * (steps(count, dtype) + 8) * unit * variance + 2 * unit * np.abs(wide).max() * np.sqrt(variance)
        x_variance = graphc.function([v := variable(dtype, (None, None), "x")], T.var(v, axis=axis), mode=mode)(x)
        assert (np.abs(x_variance - variance) <= allowed + of_mean**2).all()
        squares = (wide**2).sum(axis=axis)
        norm = graphc.function([v], T.sqrt(T.sqr(v).sum(axis=axis)), mode=mode)(x)
        assert (np.abs(norm - np.sqrt(squares)) <= (steps(count, dtype) + 4) * unit * np.sqrt(squares)).all()


# --- zeros ------------------------------------------------------------------------------------------------------------

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
FLOAT_OPS = [row for row in ROWS.values() if "float64" in row.rule.accepts]


def same_zeros(left: Array, right: Array) -> bool:
    """Whether zeros are at the same places, of the same signs."""
    if left.dtype.kind != "f":
        return bool((left == right).all())
    return bool(((left == 0) == (right == 0)).all() and (np.signbit(left) == np.signbit(right))[left == 0].all())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [row.name for row in FLOAT_OPS])
def test_zeros_of_scalar_ops_have_one_sign_in_all_modes(name: str, dtype: str) -> None:
    row = ROWS[name]
    count = row.arity - len(row.rule.leading)
    values = [column.ravel().astype(dtype) for column in np.meshgrid(*[np.asarray(SPECIAL)] * count)]
    leaves = [variable(dtype, (None,), f"x{k}") for k in range(count)]
    if row.rule.leading:
        values.insert(0, np.arange(values[0].size) % 2 == 0)
        leaves.insert(0, variable("bool", (None,), "c"))
    output = elementwise(name, *leaves)
    interpreted, *others = (graphc.function(leaves, output, mode=mode)(*values) for mode in MODES)
    for other in others:
        assert same_zeros(interpreted, other)
    whole = [np.resize(value, value.size + 13) for value in values]
    assert same_zeros(graphc.function(leaves, output, mode="compiled")(*whole), np.resize(interpreted, whole[0].size))


def test_the_larger_zero_is_the_positive_one() -> None:
    for mode in MODES:
        for first, second in ((0.0, -0.0), (-0.0, 0.0)):
            for name, negative in (("maximum", False), ("fmax", False), ("minimum", True), ("fmin", True)):
                x, y = variable("float64", (), "x"), variable("float64", (), "y")
                found = graphc.function([x, y], elementwise(name, x, y), mode=mode)(first, second)
                assert np.signbit(found) == negative


FOLDS: list[Callable[[Any], Any]] = [T.sum, T.prod, T.max, T.min, T.cumsum, T.cumprod, T.mean, T.var]
ZEROS = [
    [-0.0],
    [-0.0] * 2,
    [-0.0] * 600,
    [-0.0, 0.0],
    [0.0, -0.0],
    [-0.0] * 9 + [0.0] + [-0.0] * 20,
    [0.0] * 17 + [-0.0] * 5,
    [-1.0, -0.0],
    [-0.0, 1.0, -1.0],
]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("fold", FOLDS, ids=lambda fold: fold.__name__)
def test_zeros_of_folds_have_one_sign_in_all_modes(fold: Callable[[Any], Any], dtype: str) -> None:
    for numbers in ZEROS:
        x = np.asarray(numbers, dtype)
        interpreted, *others = (np.asarray(made(fold, dtype, 1, mode)(x)) for mode in MODES)
        assert all(same_zeros(interpreted, other) for other in others), numbers
        if fold not in (T.max, T.min):  # NumPy's depend on the processor
            assert same_zeros(interpreted, np.asarray(getattr(np, fold.__name__)(x))), numbers


# --- derivatives ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_log1mexp_and_its_derivative_at_the_end_of_its_domain(mode: str) -> None:
    x = variable("float64", (None,), "x")
    y = T.log1mexp(x)
    at = np.asarray([0.0, -0.0, -1e-300, -0.3, -0.7, -800.0, -np.inf])
    value, slope = graphc.function([x], [y, graphc.grad(y.sum(), x)], mode=mode)(at)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(value, np.log(-np.expm1(at)), rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(slope, -np.exp(at) / (0.0 - np.expm1(at)), rtol=1e-14, atol=1e-300)
