"""Transforms of real values against NumPy's, their derivatives against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.theano.fft import IRFFTOp, RFFTOp, irfft, irfft_op, rfft, rfft_op
from graphc.theano.gradient import verify_grad

SHAPES = [(2, 6), (3, 5), (2, 3, 4), (1, 4, 7), (2, 1), (0, 4)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_are_numpys(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = T.tensor(dtype=dtype, broadcastable=(False,) * len(shape))
    value = rng.normal(size=shape).astype(dtype)
    axes = tuple(range(1, len(shape)))
    near = 1e-5 if dtype == "float32" else 1e-12
    for norm in (None, "ortho"):
        there = rfft(x, norm)
        back = irfft(there, norm, is_odd=bool(shape[-1] % 2))
        f = graphc.function([x], [there, back], mode="interpreted")
        found, same = f(value)
        wanted = np.fft.rfftn(value, axes=axes, norm=norm)
        np.testing.assert_allclose(found, np.stack([wanted.real, wanted.imag], -1), rtol=near, atol=near)
        np.testing.assert_allclose(same, value, rtol=near, atol=near)
        assert found.dtype == same.dtype == dtype


@pytest.mark.slow
def test_compiled_as_interpreted() -> None:
    rng = np.random.default_rng(0)
    x = T.dmatrix("x")
    cost = (rfft(x)[:, 1:] ** 2).sum() + irfft(rfft(x, "no_norm"), "no_norm").sum()
    results = [cost, T.grad(cost, x)]
    value = rng.normal(size=(3, 8))
    for mine, other in zip(
        graphc.function([x], results)(value), graphc.function([x], results, mode="interpreted")(value), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-12)


@pytest.mark.parametrize("shape", [(2, 6), (2, 5), (2, 3, 4), (1, 2, 5)])
def test_derivatives_to_second_order(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    value = rng.normal(size=shape)
    odd = bool(shape[-1] % 2)

    def through(x: Any) -> Any:
        return irfft(rfft(x) ** 3, "ortho", is_odd=odd)

    verify_grad(through, [value], rng=np.random.RandomState(1), mode="interpreted")
    slope: Any = lambda x: graphc.grad((rfft(x) ** 3).sum(), x)  # noqa: E731
    verify_grad(slope, [value], rng=np.random.RandomState(1), mode="interpreted")


def test_a_spectrum_whose_last_axis_is_not_known_to_be_two() -> None:
    spectra = T.dtensor3("spectra")
    value = np.random.default_rng(0).normal(size=(3, 4, 2))
    f = graphc.function([spectra], irfft(spectra), mode="interpreted")
    np.testing.assert_allclose(f(value), np.fft.irfft(value[..., 0] + 1j * value[..., 1]), atol=1e-15)
    with pytest.raises(ShapeError, match="size 3, not 2"):
        f(np.zeros((3, 4, 3)))
    verify_grad(irfft, [value], rng=np.random.RandomState(1), mode="interpreted")


def test_sizes_of_an_op_and_its_errors() -> None:
    x = T.dmatrix("x")
    padded = graphc.function([x], rfft_op(x, [6]), mode="interpreted")([[1.0, 2.0], [3.0, 4.0]])
    wanted = np.fft.rfft([[1.0, 2.0], [3.0, 4.0]], 6)
    np.testing.assert_allclose(padded[..., 0] + 1j * padded[..., 1], wanted, rtol=1e-14)
    assert RFFTOp() == rfft_op and IRFFTOp() == irfft_op
    with pytest.raises(RankError, match="needs at least 2"):
        rfft(T.dvector())
    with pytest.raises(RankError, match="needs at least 3"):
        irfft(x)
    with pytest.raises(GraphTypeError, match="floating"):
        rfft(T.lmatrix())
    with pytest.raises(GraphTypeError, match="whole numbers"):
        rfft_op(x, [2.0])
    with pytest.raises(GraphValueError, match="norm"):
        rfft(x, "forward")
    with pytest.raises(GraphValueError, match="is_odd"):
        irfft(T.dtensor3(), is_odd=2)  # type: ignore[arg-type]
