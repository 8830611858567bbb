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
import graphc.tensor as T
from graphc.errors import ShapeError
from graphc.ir.node import Type
from graphc.ops.lines import (
    LONGEST_TRANSFORM as LONGEST,
    RADICES,
    fourier,
    is_factored,
    real_backward,
    real_fourier,
    transformed,
)
from graphc.options import options
from graphc.tensor import TensorType

LENGTHS = [*range(1, 70), 121, 169, 243, 256, 1009, 1024, 2197, 4096, 6007, 10007, 30030]


@cache
def function(dtype: str, poison: str = "off", mode: str = "compiled") -> Any:
    x = TensorType(dtype, (None, None, 2))("x")
    with options.change(poison=poison):
        return graphc.function([x], fourier(x), mode=mode)


@cache
def real_functions(dtype: str, poison: str = "off", mode: str = "compiled") -> tuple[Any, Any]:
    x, y, n = TensorType(dtype, (None, None))("x"), TensorType(dtype, (None, None, 2))("y"), T.lscalar("n")
    with options.change(poison=poison):
        forward = graphc.function([x], real_fourier(x), mode=mode)
        return forward, graphc.function([y, n], real_backward(y, n), mode=mode)


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


def real_bound(n: int) -> float:
    """Of real lines, relative to the 2-norm of the whole spectrum, or of the values."""
    return bound(n) if n % 2 else bound(n // 2) + 10 * 2.0**-53


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


@pytest.mark.slow
def test_real_lines_are_within_the_bound_and_do_not_depend_on_others() -> None:
    rng = np.random.default_rng(3)
    forward, backward = real_functions("float64")
    for n in [*LENGTHS[:40], 202, 242, 256, 1009, 2018, 2048]:
        x = rng.normal(size=(7, n))
        x[1] = np.arange(n) == n // 3
        found, exact = complexes(forward(x)), scipy.fft.rfft(x.astype("longdouble"), axis=1)
        whole = np.sqrt(n) * np.linalg.norm(x, axis=1)
        assert (np.linalg.norm(abs(found - exact).astype("float64"), axis=1) <= real_bound(n) * whole).all(), n
        assert not found.imag[:, 0 :: max(1, n // 2) if n % 2 == 0 else n].any()
        spectrum = rng.normal(size=(7, n // 2 + 1, 2))
        values = backward(spectrum, n)
        exact = n * scipy.fft.irfft(complexes(spectrum).astype("clongdouble"), n, axis=1)
        error = np.linalg.norm((values - exact).astype("float64"), axis=1)
        assert (error <= real_bound(n) * np.linalg.norm(exact.astype("float64"), axis=1)).all(), n
        for first in (2, 6):
            np.testing.assert_array_equal(complexes(forward(x[first:])), found[first:])
            np.testing.assert_array_equal(backward(spectrum[first:], n), values[first:])
        few, of_few = x.astype("float32"), spectrum.astype("float32")
        np.testing.assert_array_equal(
            real_functions("float32")[0](few), forward(few.astype("float64")).astype("float32")
        )
        np.testing.assert_array_equal(
            real_functions("float32")[1](of_few, n), backward(of_few.astype("float64"), n).astype("float32")
        )


@pytest.mark.slow
def test_layouts_of_real_lines_and_what_is_not_finite() -> None:
    rng = np.random.default_rng(4)
    forward, backward = real_functions("float64", poison="on")
    for n in (1, 2, 12, 17, 34):
        x, y = rng.normal(size=(9, 3 * n)), rng.normal(size=(9, 3 * (n // 2 + 1), 2))
        np.testing.assert_array_equal(forward(x[::-2, ::3]), forward(x[::-2, ::3].copy()))
        np.testing.assert_array_equal(backward(y[::-2, ::3, ::-1], n), backward(y[::-2, ::3, ::-1].copy(), n))
        given, spectrum = x[:6, ::3].copy(), y[:6, ::3].copy()
        given[4, n // 2] = spectrum[4, n // 4, 0] = np.inf
        spectrum[:, 0, 1] = np.nan  # is not read
        with np.errstate(invalid="ignore"):
            for found, fine in (
                (forward(given), forward(x[:6, ::3])),
                (backward(spectrum, n), backward(y[:6, ::3], n)),
            ):
                assert not np.isfinite(found[4].reshape(len(found[4]), -1)[:, 0]).any()
                np.testing.assert_array_equal(np.delete(found, 4, 0), np.delete(fine, 4, 0))
    assert forward(np.ones((0, 5))).shape == (0, 3, 2) and backward(np.ones((0, 3, 2)), 5).shape == (0, 5)
    with pytest.raises(ShapeError, match="a line of 0 numbers has no spectrum"):
        forward(np.ones((3, 0)))
    with pytest.raises(ShapeError, match="a line of 0 numbers has no spectrum"):
        backward(np.ones((3, 1, 2)), 0)
    with pytest.raises(ShapeError, match="spectrum has 4 numbers, and should have 3"):
        backward(np.ones((3, 4, 2)), 5)


def test_the_python_mode_has_numpys_values() -> None:
    x = np.random.default_rng(2).normal(size=(3, 6, 2))
    np.testing.assert_array_equal(function("float64", mode="python")(x[::-1]), transformed(x[::-1]))
    forward, backward = real_functions("float64", mode="python")
    for n in (6, 7):
        lines, parts = np.ones((3, n)) + np.arange(n), np.ones((3, 4, 2))
        np.testing.assert_array_equal(complexes(forward(lines[::-1])), np.fft.rfft(lines[::-1]))
        np.testing.assert_array_equal(backward(parts, n), np.fft.irfft(complexes(parts), n, norm="forward"))
    with pytest.raises(TypeError, match="a real transform is of floats"):
        real_fourier(Type("int64", (2, 2))("x"))
    with pytest.raises(TypeError, match="a transform is of floats"):
        fourier(Type("int64", (2, 2, 2))("x"))
