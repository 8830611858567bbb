"""Transforms of every kind of length: NumPy's in long double, within the bound that codegen/fourier derives.

One compiled function of a dtype transforms all of them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.fft

import graphc
from graphc.errors import ShapeError
from graphc.ir.node import Type
from graphc.ops.lines import LONGEST_TRANSFORM as LONGEST, RADICES, fourier, is_factored, transformed
from graphc.options import options
from graphc.tensor import TensorType

LENGTHS = [*range(1, 70), 121, 169, 243, 256, 1009, 1024, 2197, 4096, 6007, 10007, 30030]


@cache
def function(dtype: str, poison: str = "off", mode: str = "compiled") -> Any:
    x = TensorType(dtype, (None, None, 2))("x")
    with options.change(poison=poison):
        return graphc.function([x], fourier(x), mode=mode)


def bound(n: int) -> float:
    """The relative error of a line in the 2-norm. A convolution may have up to 5 n / 2 numbers, of radices 2 and 4, and
    two of 3 or 5."""
    if not is_factored(n):
        return float(12 * (9 / 2 * np.log2(5 * n / 2) + 8 + 72) * 2.0**-53)
    total = 0.0
    for radix in RADICES:
        while n % radix == 0:
            n //= radix
            total += {2: 8.0, 4: 9.0}.get(radix, float(np.sqrt(2 * radix) * (radix + 13) / 2 + 7))
    return total * 2.0**-53


def complexes(x: Any) -> Any:
    return x.view("complex128")[..., 0]


@pytest.mark.slow
def test_values_are_within_the_bound_and_lines_do_not_depend_on_others() -> None:
    rng = np.random.default_rng(0)
    for n in LENGTHS:
        x = rng.normal(size=(7, n, 2))
        x[1] = 0
        x[1, n // 3] = 1  # a wave
        x[2] *= 1e-200
        found = function("float64")(x)
        exact = scipy.fft.fft(complexes(x).astype("clongdouble"), axis=1)
        error = np.linalg.norm(abs(complexes(found) - exact).astype("float64"), axis=1)
        assert (error <= bound(n) * np.linalg.norm(exact.astype("complex128"), axis=1)).all(), n
        for first in (0, 2, 6):
            np.testing.assert_array_equal(function("float64")(x[first:]), found[first:])
        few = x.astype("float32")
        np.testing.assert_array_equal(
            function("float32")(few), function("float64")(few.astype("float64")).astype("float32")
        )


@pytest.mark.slow
def test_layouts_empty_lines_and_what_is_not_finite() -> None:
    rng = np.random.default_rng(1)
    f = function("float64", poison="on")
    for n in (1, 12, 17):
        x = rng.normal(size=(9, 3 * n, 2))
        np.testing.assert_array_equal(f(x[::-2, ::3, ::-1]), f(x[::-2, ::3, ::-1].copy()))
        turned = np.moveaxis(np.asfortranarray(x), 0, 1)
        np.testing.assert_allclose(f(turned), transformed(turned), rtol=0, atol=1e-12)
        for value in (np.nan, np.inf, -np.inf):
            one = x[:6, ::3].copy()
            one[4, n // 2] = value
            found = f(one)
            assert (~np.isfinite(found[4])).any(axis=-1).all()
            np.testing.assert_array_equal(np.delete(found, 4, 0), np.delete(f(x[:6, ::3]), 4, 0))
    for shape in ((0, 5, 2), (3, 0, 2), (0, 0, 2)):
        assert f(np.ones(shape)).shape == shape == transformed(np.ones(shape)).shape
    with pytest.raises(ShapeError, match="a line of .* numbers is too long"):
        f(np.broadcast_to(0.0, (0, LONGEST + 1, 2)))


def test_the_python_mode_has_numpys_values() -> None:
    x = np.random.default_rng(2).normal(size=(3, 6, 2))
    np.testing.assert_array_equal(function("float64", mode="python")(x[::-1]), transformed(x[::-1]))
    with pytest.raises(TypeError, match="a transform is of floats"):
        fourier(Type("int64", (2, 2, 2))("x"))
