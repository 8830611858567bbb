"""Power spectra: `periodogram`, `welch`, `spectrogram`.

In: real signals. Out: SciPy's own results of arrays; of tensors frequencies and powers, with derivatives by signals.

    welch(x, fs=100.0, nperseg=64)      frequencies (33,), powers (33,)

The transform of a segment is a product with a matrix of cosines and one of sines: `nperseg` is a number, and some
hundred for most signals.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.errors import GraphValueError
from graphc.ir.node import Node
from graphc.ops.at_hand import asked_size
from graphc.scipy.named import offer
from graphc.scipy.signal.filters import as_float, detrend as detrended


def periodogram(
    x: Any, fs: Any = 1.0, window: Any = "boxcar", nfft: Any = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1,
) -> tuple[Node, Node]:  # fmt: skip
    """Return frequencies and powers of a whole signal, whose size must be known. Arguments are as of `welch`."""
    size = as_float(x).type.shape[axis]
    return welch(x, fs, window, size, 0, nfft, detrend, return_onesided, scaling, axis)


def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Node, Node]:
    """Return frequencies and the powers there, averaged over segments that overlap (Welch's method).

    x: a real signal along `axis`. fs: samples for each unit of time. window: a name that SciPy's `get_window` knows, or
    weights. nperseg: samples of a segment (256, or all); noverlap: those it shares with the next (half). nfft: a
    segment is filled up with zeros to it. detrend: "constant", "linear" or False. scaling: "density" or "spectrum".
    Raises GraphValueError of tensors for medians and for spectra of two sides.
    """
    if average != "mean":
        raise GraphValueError("welch: of tensors the average is the mean")
    frequencies, _, powers = _powers(x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis)
    return frequencies, T.moveaxis(T.mean(powers, axis=0), 0, axis)


def spectrogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = ("tukey", 0.25),
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> tuple[Node, Node, Node]:
    """Return frequencies, times, and the powers of each segment, of which the last axis is that of times. Arguments are
    as of `welch`; segments share an eighth. Raises GraphValueError of tensors for a mode but "psd"."""
    if mode != "psd":
        raise GraphValueError('spectrogram: of tensors mode is "psd", for graphc has no complex dtypes')
    signal = as_float(x)
    size = _segment(signal.type.shape[axis], nperseg)
    shared = size // 8 if noverlap is None else noverlap
    found = _powers(signal, fs, window, size, shared, nfft, detrend, return_onesided, scaling, axis)
    frequencies, times, powers = found
    return frequencies, times, T.moveaxis(T.moveaxis(powers, 0, -1), 0, axis - 1 if axis < 0 else axis)


def _segment(size: Any, nperseg: Any) -> int:
    known = asked_size(size)
    length = nperseg if nperseg is not None else min(256, known) if isinstance(known, int) else 256
    length = asked_size(length)
    if not isinstance(length, int):
        raise GraphValueError("the number of samples of a segment must be known: give nperseg, or the signal a size")
    return min(length, known) if isinstance(known, int) else length


def _powers(
    x: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any, one_sided: bool, scaling: str,
    axis: int,
) -> tuple[Node, Node, Node]:  # fmt: skip
    """Return frequencies, times, and powers (segments, frequencies, ...)."""
    if not one_sided or scaling not in ("density", "spectrum"):
        raise GraphValueError("of tensors spectra are one-sided, and scaling is 'density' or 'spectrum'")
    rows = T.moveaxis(as_float(x), axis, 0)
    size = _segment(rows.type.shape[0], nperseg)
    step = size - (size // 2 if noverlap is None else int(noverlap))
    length = size if nfft is None else int(nfft)
    weights = _window(window, size)
    places = T.arange((rows.shape[0] - size) // step + 1)[:, None] * step + np.arange(size)[None, :]
    segments = rows[places]
    if detrend is not False:
        segments = detrended(segments, 1, detrend)
    segments = segments * weights.reshape(-1, *[1] * (rows.ndim - 1))
    angles = 2 * np.pi * np.outer(np.arange(length // 2 + 1), np.arange(size)) / length
    parts = [T.tensordot(table, segments, axes=([1], [1])) for table in (np.cos(angles), np.sin(angles))]
    scale = 1 / (fs * (weights**2).sum()) if scaling == "density" else 1 / weights.sum() ** 2
    twice = np.full(length // 2 + 1, 2.0)
    twice[0] = 1
    if length % 2 == 0:
        twice[-1] = 1
    powers = (parts[0] ** 2 + parts[1] ** 2) * scale * twice.reshape(-1, *[1] * rows.ndim)
    times = (T.arange((rows.shape[0] - size) // step + 1) * step + size / 2) / fs
    return T.constant(np.arange(length // 2 + 1) / length) * fs, times, T.moveaxis(powers, 1, 0)


def _window(window: Any, size: int) -> Any:
    if isinstance(window, str | tuple):
        return import_module("scipy.signal").get_window(window, size)
    return np.asarray(window)


__all__ = ["periodogram", "spectrogram", "welch"]

offer(globals())
