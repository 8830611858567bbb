"""graphc.scipy.signal against SciPy: the same sums, in another order; those with feedback are stable filters, whose
rounding errors add up to some 1e3 of eps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.scipy import signal

RNG = np.random.default_rng(0)
X, SHORT = RNG.normal(size=(2, 90)), RNG.normal(size=4)
IMAGE, SMALL = RNG.normal(size=(6, 7)), RNG.normal(size=(2, 3))
B, A = scipy.signal.butter(3, 0.3)
SOS = scipy.signal.butter(5, 0.2, output="sos")


def several(module: Any, x: Any, short: Any, image: Any, small: Any, b: Any, a: Any) -> list[Any]:
    """The results of many functions."""
    row = x[0]
    found = []
    for mode in ("full", "same", "valid"):
        found += [
            module.convolve(row, short, mode),
            module.correlate(row, short, mode),
            module.fftconvolve(image, small, mode),
            module.correlate(image, small, mode),
            module.convolve2d(image, small, mode),
            module.correlate2d(image, small, mode),
            module.correlate2d(image, small[:, :2], mode, "symm"),
        ]
    zi = module.lfilter_zi(b, a)
    found += [
        module.lfilter(b, a, x),
        module.lfilter(b, a, x.T, axis=0),
        module.lfilter(b, a[:1], row),
        module.lfilter(b[:1], a, row),
        *module.lfilter(b, a, row, zi=zi * 2.0),
        module.filtfilt(b, a, x),
        module.filtfilt(b, a, x.T, axis=0, padtype="even", padlen=5),
        module.filtfilt(b, a, row, padtype="constant"),
        module.filtfilt(b, a, row, padtype=None),
        module.sosfilt(SOS, x),
        *module.sosfilt(SOS, row, zi=0.5 * np.ones((3, 2))),
        module.sosfiltfilt(SOS, x.T, axis=0),
        module.decimate(x, 3),
        module.decimate(row, 3, zero_phase=False),
        module.detrend(x),
        module.detrend(x, axis=0, type="constant"),
        module.savgol_filter(x, 7, 3),
        module.savgol_filter(x.T, 7, 3, deriv=2, delta=0.5, axis=0),
        module.savgol_filter(row, 5, 2, deriv=1, mode="nearest"),
        module.savgol_filter(row, 5, 2, mode="constant", cval=1.0),
        module.medfilt(row, 5),
        *module.welch(x, fs=10.0, nperseg=32),
        *module.welch(x.T, fs=10.0, nperseg=31, noverlap=7, axis=0, scaling="spectrum", detrend="linear"),
        *module.welch(row, nperseg=32, window="hamming", nfft=50, detrend=False),
        *module.periodogram(x[:, :64], fs=2.0),
        *module.spectrogram(x, fs=10.0, nperseg=32),
        *module.spectrogram(row, nperseg=16, noverlap=4),
    ]
    return found


def test_signals_are_scipys() -> None:
    args = (X, SHORT, IMAGE, SMALL, B, A)
    ours = graphc.jit(lambda *args: several(signal, *args), mode="interpreted")(*args)
    for place, (mine, known) in enumerate(zip(ours, several(scipy.signal, *args), strict=True)):
        np.testing.assert_allclose(mine, known, rtol=1e-9, atol=1e-10, err_msg=str(place))
    np.testing.assert_array_equal(signal.lfilter(B, A, X), scipy.signal.lfilter(B, A, X))  # of arrays SciPy's own
    np.testing.assert_array_equal(signal.butter(3, 0.3), (B, A))
    np.testing.assert_array_equal(signal.windows.hann(5), scipy.signal.windows.hann(5))


@pytest.mark.slow
def test_derivatives_of_filters() -> None:
    """A filter is linear in the signal: its derivative is the transpose, the filter of the signal turned round."""
    weights = RNG.normal(size=90)

    def total(x: Any, b: Any, a: Any) -> Any:
        return jnp.sum(weights * signal.lfilter(b, a, x))

    by_x, by_b, by_a = graphc.grad(total, argnums=(0, 1, 2))(X[0], B, A)
    np.testing.assert_allclose(by_x, scipy.signal.lfilter(B, A, weights[::-1])[::-1], rtol=1e-10, atol=1e-12)
    rest = scipy.signal.lfilter([1.0], A, X[0])  # the derivative by b[k] is the rest of the filter, k samples later
    np.testing.assert_allclose(by_b, [weights[k:] @ rest[: 90 - k] for k in range(4)], rtol=1e-9)
    again = -scipy.signal.lfilter(B, np.convolve(A, A), X[0])
    np.testing.assert_allclose(by_a, [weights[k:] @ again[: 90 - k] for k in range(4)], rtol=1e-9)

    def power(x: Any) -> Any:
        return jnp.sum(signal.welch(x, nperseg=32)[1])

    h = 1e-6
    change = h * (np.arange(90) == 40)
    slope = (np.sum(scipy.signal.welch(X[0] + change, nperseg=32)[1]) - np.sum(
        scipy.signal.welch(X[0] - change, nperseg=32)[1])) / (2 * h)  # fmt: skip
    assert abs(graphc.grad(power, mode="interpreted")(X[0])[40] - slope) < 1e-7


def test_what_signal_refuses() -> None:
    x = T.dvector("x")
    for call, said in (
        (lambda: signal.lfilter(x, [1.0], x), "number of coefficients"),
        (lambda: signal.butter(3, x), "of numbers"),
        (lambda: signal.medfilt(x, 4), "odd"),
        (lambda: signal.convolve(x, T.dmatrix()), "two signals"),
    ):
        with pytest.raises(GraphcError, match=said):
            call()
    for name, said in (("stft", "graphc.numpy.fft"), ("find_peaks", "depends on values"), ("lfiltr", "lfilter")):
        with pytest.raises(AttributeError, match=said):
            getattr(signal, name)
