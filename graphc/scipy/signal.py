"""SciPy's `signal`: convolutions, filters, power spectra, with derivatives by signals and coefficients.

In: signals and coefficients, arrays or tensors. Out: SciPy's own results of arrays; tensors of tensors. Filters and
windows are designed by SciPy itself (`butter`, `firwin`, `get_window`): what they give is constant.

    sos = butter(4, 0.2, output="sos")                    an array
    graphc.jit(lambda x: sosfiltfilt(sos, x))

A filter with feedback is a loop over the samples, whose state is that of SciPy's (transposed direct form II). Sizes of
windows and orders are numbers; coefficients may be tensors whose sizes are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.tensor as T
from graphc.arrays.dtypes import COMPLEX as COMPLEX_DTYPES
from graphc.control import functional
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node, cast
from graphc.ops.questions import asked_size
from graphc.scipy.named import as_float, offer
from graphc.startup.hooks import lazily
from graphc.tensor.shaping import as_axis
from graphc.tensor.signal import convolve1d, convolve2d as images_convolved
from graphc.tensor.spectra import fft, ifft
from graphc.trees import leaves

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The functions of DESIGN, whose types SciPy does not tell."""


DESIGN = """
    bessel butter buttord cheb1ord cheb2ord cheby1 cheby2 ellip ellipord firls firwin firwin2 freqs freqz get_window
    iircomb iirdesign iirfilter iirnotch iirpeak kaiser_atten kaiser_beta kaiserord minimum_phase remez savgol_coeffs
    sos2tf sos2zpk sosfilt_zi tf2sos tf2zpk zpk2sos zpk2tf
"""
"""Functions of SciPy's that design filters and windows, of numbers."""
COMPLEX = "nobody has written it: graphc.numpy.fft has the transforms, or call scipy.signal's own with values"
INSTEAD = {
    **dict.fromkeys("hilbert2 csd coherence stft istft ShortTimeFFT check_COLA".split(), COMPLEX),
    **dict.fromkeys(
        "find_peaks find_peaks_cwt argrelextrema argrelmax argrelmin peak_prominences peak_widths".split(),
        "the size of what it returns depends on values: call scipy.signal's own with them",
    ),
    **dict.fromkeys(("resample", "czt", "zoom_fft"), "it needs complex transforms; decimate and lfilter are here"),
    "resample_poly": "convolve what is filled up with zeros, and take every n-th sample",
    "order_filter": "medfilt is here",
    "medfilt2d": "medfilt has vectors; graphc.tensor.nnet.images2neibs has the windows of images",
    "lombscargle": "write its sums out: they are products of cosines and sines with the samples",
}
"""Names of `scipy.signal` that do not exist here, with the reason and what to use instead."""


def _of_numbers(name: str) -> Any:
    """Return a function of SciPy's that takes no tensors."""
    own = getattr(import_module("scipy.signal"), name)

    @wraps(own)
    def design(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(leaf, Node) for leaf in leaves((args, kwargs))):
            raise GraphTypeError(f"{name}: a filter is designed of numbers, for which there is no derivative")
        return own(*args, **kwargs)

    return design


def _coefficients(by: str, value: Any) -> Node:
    """Return a vector of coefficients. Raises GraphValueError where their number is not known."""
    node = as_float(value)
    node = node[None] if node.ndim == 0 else node
    if node.ndim != 1 or not isinstance(asked_size(node.type.shape[0]), int):
        raise GraphValueError(f"{by}: the number of coefficients must be known: give the type of the vector a size")
    return node


def _count(node: Node) -> int:
    size = asked_size(node.type.shape[0])
    assert isinstance(size, int)
    return size


def _padded(b: Node, a: Node) -> tuple[list[Node], list[Node]]:
    """Return the coefficients, as many of either, divided by the first one of `a`."""
    order = max(_count(b), _count(a))

    def several(node: Node) -> list[Node]:
        zeros = [T.zeros_like(node[0])] * (order - _count(node))
        return [node[place] / a[0] for place in range(_count(node))] + zeros

    return several(b), several(a)


def _filtered(b: Node, a: Node, rows: Node, state: Sequence[Node]) -> tuple[Node, list[Node]]:
    """Return the filtered samples, which lie along the first axis, and the last state."""
    ahead, back = _padded(b, a)

    def step(state: list[Node], x: Node) -> tuple[list[Node], Node]:
        y = ahead[0] * x + (state[0] if state else 0)
        later = [*state[1:], T.zeros_like(y)]
        pairs = zip(ahead[1:], back[1:], later, strict=False)
        return [cast(before + up * x - down * y, y.type.dtype) for up, down, before in pairs], y

    last, filtered = functional.scan(step, list(state), rows)
    return filtered, last


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Return a signal filtered by the coefficients `b` and `a` along an axis; with the state `zi`, of as many values
    along the axis as the filter remembers, a pair of it and the last state.

        >>> lfilter([0.5], [1.0, -0.5], np.ones(3))
        array([0.5  , 0.75 , 0.875])
    """
    ahead, back, signal = _coefficients("lfilter", b), _coefficients("lfilter", a), as_float(x)
    rows = T.moveaxis(signal, axis, 0)
    kept = max(_count(ahead), _count(back)) - 1
    nothing = T.zeros_like(rows[0] * ahead[0] * back[0])
    if zi is None:
        return T.moveaxis(_filtered(ahead, back, rows, [nothing] * kept)[0], 0, axis)
    given = T.moveaxis(as_float(zi), axis, 0)
    filtered, last = _filtered(ahead, back, rows, [nothing + given[place] for place in range(kept)])
    after = T.stack(last) if last else given
    return T.moveaxis(filtered, 0, axis), T.moveaxis(after, 0, axis)


def lfilter_zi(b: Any, a: Any) -> Node:
    """Return the state of a filter that has seen ones for ever."""
    pair = _padded(_coefficients("lfilter_zi", b), _coefficients("lfilter_zi", a))
    ahead, back = pair
    matrix = T.eye(len(back) - 1, dtype=back[0].type.dtype)
    turned = T.concatenate([-T.stack(back[1:])[:, None], matrix[:, :-1]], axis=1)
    right = T.stack([up - down * ahead[0] for up, down in zip(ahead[1:], back[1:], strict=True)])
    found: Node = T.linalg.solve(matrix - turned, right)
    return found


def _extended(x: Node, edge: int, padtype: Any) -> Node:
    """Return samples, along the first axis, with `edge` more at either end."""
    if not edge or padtype is None:
        return x
    first, last = x[:1], x[-1:]
    before, after = x[edge:0:-1], x[-2 : -(edge + 2) : -1]
    if padtype == "odd":
        before, after = 2 * first - before, 2 * last - after
    elif padtype == "constant":
        before, after = first + 0 * before, last + 0 * after
    elif padtype != "even":
        raise GraphValueError(f"padtype is 'odd', 'even', 'constant' or None, not {padtype!r}")
    return T.concatenate([before, x, after])


def _both_ways(sections: Sequence[tuple[Node, Node, Node]], rows: Node, edge: int, padtype: Any) -> Node:
    """Return samples filtered forwards and backwards; sections: coefficients, and the state after ones for ever."""
    filtered = _extended(rows, edge, padtype)
    for _ in range(2):
        first = filtered[0]
        for b, a, state in sections:
            filtered, _ = _filtered(b, a, filtered, [state[place] * first for place in range(_count(state))])
        filtered = filtered[::-1]
    return filtered[edge : filtered.shape[0] - edge] if edge else filtered


def filtfilt(
    b: Any, a: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None, method: str = "pad",
    irlen: Any = None,
) -> Node:  # fmt: skip
    """Return a signal filtered forwards and backwards, so that nothing is late. padtype: how the ends go on: "odd",
    "even", "constant" or None; padlen: how far. Raises GraphValueError for another method."""
    if method != "pad":
        raise GraphValueError("filtfilt: of tensors the method is 'pad'")
    ahead, back = _coefficients("filtfilt", b), _coefficients("filtfilt", a)
    edge = 3 * max(_count(ahead), _count(back)) if padlen is None else int(padlen)
    rows = T.moveaxis(as_float(x), axis, 0)
    if max(_count(ahead), _count(back)) == 1:
        return T.moveaxis(rows * (ahead[0] / back[0]) ** 2, 0, axis)
    return T.moveaxis(
        _both_ways([(ahead, back, lfilter_zi(ahead, back))], rows, 0 if padtype is None else edge, padtype), 0, axis
    )


def _sections(by: str, sos: Any) -> list[tuple[Node, Node]]:
    node = as_float(sos)
    count = asked_size(node.type.shape[0])
    if node.ndim != 2 or not isinstance(count, int):
        raise GraphValueError(f"{by}: sos is a matrix of a known number of rows of six")
    return [(node[place, :3], node[place, 3:6]) for place in range(count)]


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Return a signal filtered by sections of second order, one after the other; with the states `zi` (sections, ...,
    2 along the axis, ...) a pair of it and the last states."""
    rows, after = T.moveaxis(as_float(x), axis, 0), []
    given = None if zi is None else T.moveaxis(as_float(zi), axis if axis < 0 else axis + 1, 1)
    for place, (b, a) in enumerate(_sections("sosfilt", sos)):
        nothing = T.zeros_like(rows[0] * b[0])
        state = [nothing] * 2 if given is None else [nothing + given[place, 0], nothing + given[place, 1]]
        rows, last = _filtered(b, a, rows, state)
        after.append(T.stack(last))
    filtered = T.moveaxis(rows, 0, axis)
    return filtered if zi is None else (filtered, T.moveaxis(T.stack(after), 1, axis if axis < 0 else axis + 1))


def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None) -> Node:
    """Return a signal filtered forwards and backwards by sections of second order; arguments are as of `filtfilt`. The
    coefficients are an array where `padlen` is not given, which depends on how many of them are zero."""
    parts = _sections("sosfiltfilt", sos)
    if padlen is None:
        if isinstance(sos, Node):
            raise GraphValueError("sosfiltfilt: padlen depends on which coefficients are 0: give it, or an array sos")
        known = np.asarray(sos)
        zeros = min((known[:, 2] == 0).sum(), (known[:, 5] == 0).sum())
        padlen = 3 * (2 * len(parts) + 1 - zeros)
    scale: Any = 1.0
    sections = []
    for b, a in parts:
        sections.append((b, a, scale * lfilter_zi(b, a)))
        scale = scale * T.sum(b) / T.sum(a)
    rows = T.moveaxis(as_float(x), axis, 0)
    return T.moveaxis(_both_ways(sections, rows, 0 if padtype is None else int(padlen), padtype), 0, axis)


def decimate(x: Any, q: int, n: Any = None, ftype: Any = "iir", axis: int = -1, zero_phase: bool = True) -> Node:
    """Return every `q`-th sample of a signal, filtered before by SciPy's filter of Chebyshev (of order `n`, 8). Raises
    GraphValueError for another `ftype` of tensors."""
    if ftype != "iir":
        raise GraphValueError("decimate: of tensors ftype is 'iir'; filter with lfilter, then take x[::q]")
    sos = import_module("scipy.signal").cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos")
    filtered = sosfiltfilt(sos, x, axis) if zero_phase else sosfilt(sos, x, axis)
    return T.moveaxis(T.moveaxis(filtered, axis, 0)[::q], 0, axis)


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Node:
    """Return a signal less its mean (type="constant") or less its line of least squares ("linear"). Raises
    GraphValueError for break points `bp` of tensors."""
    if type not in ("linear", "l", "constant", "c") or not isinstance(bp, int) or bp:
        raise GraphValueError("detrend: of tensors type is 'linear' or 'constant', and bp is 0")
    rows = T.moveaxis(as_float(data), axis, 0)
    found = rows - T.mean(rows, axis=0, keepdims=True)
    if type[0] == "l":
        places = cast(T.arange(rows.shape[0]), rows.type.dtype)
        centred = (places - T.mean(places))[(slice(None), *[None] * (rows.ndim - 1))]
        found = found - centred * T.sum(centred * found, axis=0) / T.sum(centred * centred)
    return T.moveaxis(found, 0, axis)


def savgol_filter(
    x: Any, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, axis: int = -1,
    mode: str = "interp", cval: float = 0.0,
) -> Node:  # fmt: skip
    """Return a signal smoothed by polynomials of order `polyorder` through `window_length` samples each (Savitzky and
    Golay), or their derivatives. mode: "interp" takes the polynomial of the first and the last window at the ends;
    "nearest" and "constant" (of `cval`) fill up."""
    if mode not in ("interp", "nearest", "constant") or window_length % 2 == 0:
        raise GraphValueError("savgol_filter: of tensors mode is interp, nearest or constant, and window_length odd")
    weights = import_module("scipy.signal").savgol_coeffs(window_length, polyorder, deriv, delta)[::-1]
    rows, half = T.moveaxis(as_float(x), axis, 0), window_length // 2
    if mode != "interp":
        first, last = rows[:1], rows[-1:]
        if mode == "constant":
            first, last = T.zeros_like(first) + cval, T.zeros_like(last) + cval
        rows = T.concatenate([*[first] * half, rows, *[last] * half])
    count = rows.shape[0] - window_length + 1
    found = T.add(*(weight * rows[place : count + place] for place, weight in enumerate(weights)), 0.0)
    if mode == "interp":
        fit = np.linalg.pinv(np.vander(np.arange(window_length) - half, polyorder + 1, increasing=True))
        places = np.vander(np.arange(window_length) - half, polyorder + 1, increasing=True)
        for _ in range(deriv):
            fit = np.arange(1, len(fit))[:, None] * fit[1:] / delta if len(fit) > 1 else 0 * fit
            places = places[:, : len(fit)]
        ends = places @ fit
        before = T.tensordot(ends[:half], rows[:window_length], 1)
        after = T.tensordot(ends[half + 1 :], rows[-window_length:], 1)
        found = T.concatenate([before, found, after])
    return T.moveaxis(found, 0, axis)


def medfilt(volume: Any, kernel_size: Any = None) -> Node:
    """Return the medians of windows of `kernel_size` samples (3), an odd number, of a vector; zeros are around it."""
    signal = as_node(volume)
    size = 3 if kernel_size is None else int(kernel_size)
    if signal.ndim != 1 or size % 2 == 0:
        raise GraphValueError("medfilt: of tensors there are vectors alone, and kernel_size is odd")
    none = T.zeros((size // 2,), dtype=signal.type.dtype)
    whole, count = T.concatenate([none, signal, none]), signal.shape[0]
    windows = T.stack([whole[place : count + place] for place in range(size)], axis=-1)
    return T.sort(windows, axis=-1)[:, size // 2]


# --- convolutions and correlations ------------------------------------------------------------------------------------
# In: signals of one or two axes, of equal rank. Out: SciPy's own results of arrays; tensors of tensors, by direct sums.
#
#     convolve(np.array([1.0, 2.0]), np.array([1.0, 1.0]))       array([1., 3., 2.])


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Node:
    """Return the convolution of two signals of one or two axes. mode: "full", "same" (of the size of `in1`) or "valid".
    method: of tensors all are direct sums. Raises RankError for other ranks.

        >>> convolve(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
        array([1., 3., 2.])
    """
    left, right = as_node(in1), as_node(in2)
    if left.ndim != right.ndim or left.ndim not in (1, 2):
        raise RankError(f"convolve: two signals of one or of two axes are needed, not {left.type} and {right.type}")
    found: Node = (convolve1d if left.ndim == 1 else images_convolved)(left, right, mode)
    return found


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Node:
    """Return the correlation of two signals; arguments are as of `convolve`."""
    return convolve(in1, _turned(as_node(in2)), mode)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Node:
    """Return the convolution of two signals; of tensors by direct sums, whose rounding is smaller and whose time is the
    product of the sizes. Raises GraphValueError for `axes` of tensors."""
    if axes is not None:
        raise GraphValueError("fftconvolve: axes are for arrays alone")
    return convolve(in1, in2, mode)


def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Node:
    """Return the convolution of two signals, as `fftconvolve`."""
    return fftconvolve(in1, in2, mode, axes)


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Node:
    """Return the convolution of two images. mode: as of `convolve`. boundary: what is around `in1`: "fill", of
    `fillvalue`, "wrap" or "symm"."""
    found: Node = images_convolved(in1, in2, mode, boundary, fillvalue)
    return found


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Node:
    """Return the correlation of two images; arguments are as of `convolve2d`."""
    left, right = as_node(in1), as_node(in2)
    if mode != "same":
        return convolve2d(left, _turned(right), mode, boundary, fillvalue)
    whole = convolve2d(left, _turned(right), "full", boundary, fillvalue)
    begins = [right.shape[axis] // 2 for axis in range(2)]  # the place that SciPy takes, of an even size another one
    parts = tuple(slice(begin, begin + left.shape[axis]) for axis, begin in enumerate(begins))
    return whole[parts]


def _turned(x: Node) -> Node:
    return x[(slice(None, None, -1),) * x.ndim]


# --- power spectra ----------------------------------------------------------------------------------------------------
# The transform of a segment is a product with a matrix of cosines and one of sines: `nperseg` is a number, and some
# hundred for most signals.


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
        raise GraphValueError('spectrogram: of tensors mode is "psd"')
    signal = as_float(x)
    size = _segment(signal.type.shape[axis], nperseg)
    shared = size // 8 if noverlap is None else noverlap
    found = _powers(signal, fs, window, size, shared, nfft, detrend, return_onesided, scaling, axis)
    frequencies, times, powers = found
    return frequencies, times, T.moveaxis(T.moveaxis(powers, 0, -1), 0, axis - 1 if axis < 0 else axis)


def hilbert(x: Any, N: Any = None, axis: int = -1) -> Node:  # noqa: N803 - SciPy's name
    """Return the analytic signal of real values: a complex one, whose real part is `x`, without negative frequencies.

    N: the number of values that are transformed; by default all. Raises GraphTypeError for complex values.
    """
    signal = as_float(x)
    if signal.type.dtype in COMPLEX_DTYPES:
        raise GraphTypeError(f"hilbert of {describe(signal)} of type {signal.type}: it takes real values")
    axis = range(signal.ndim)[axis]
    spectrum = fft(signal, N, axis)
    count = spectrum.shape[axis]
    places = as_axis(T.arange(count), axis, signal.ndim)
    once = T.or_(T.eq(places, 0), T.eq(2 * places, count))
    weight = T.switch(once, 1, T.switch(T.lt(2 * places, count), 2, 0))
    return ifft(spectrum * T.cast(weight, signal.type.dtype), axis=axis)


def _segment(size: Any, nperseg: Any) -> int:
    known = asked_size(size)
    length = nperseg if nperseg is not None else min(256, known) if isinstance(known, int) else 256
    length = asked_size(length)
    if not isinstance(length, int):
        raise GraphValueError("the number of samples of a segment must be known: give nperseg, or the signal a size")
    return min(length, known) if isinstance(known, int) else length


def _powers(
    x: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, trend: Any, one_sided: bool, scaling: str,
    axis: int,
) -> tuple[Node, Node, Node]:  # fmt: skip
    """Return frequencies, times, and powers (segments, frequencies, ...)."""
    if not one_sided or scaling not in ("density", "spectrum"):
        raise GraphValueError("of tensors spectra are one-sided, and scaling is 'density' or 'spectrum'")
    rows = T.moveaxis(as_float(x), axis, 0)
    size = _segment(rows.type.shape[0], nperseg)
    step = size - (size // 2 if noverlap is None else int(noverlap))
    length = size if nfft is None else int(nfft)
    by_name = isinstance(window, str | tuple)
    weights = import_module("scipy.signal").get_window(window, size) if by_name else np.asarray(window)
    places = T.arange((rows.shape[0] - size) // step + 1)[:, None] * step + np.arange(size)[None, :]
    segments = rows[places]
    if trend is not False:
        segments = detrend(segments, 1, trend)
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


__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "decimate", "detrend", "fftconvolve", "filtfilt", "hilbert",
    "lfilter", "lfilter_zi", "medfilt", "oaconvolve", "periodogram", "savgol_filter", "sosfilt", "sosfiltfilt",
    "spectrogram", "welch",
]  # fmt: skip

offer(globals())

if not TYPE_CHECKING:  # which know the names
    __all__.extend(DESIGN.split())
    _find = lazily(__name__, {}, lambda name: INSTEAD.get(name, ""))

    def __getattr__(name: str) -> Any:
        if name == "windows":
            return import_module("scipy.signal.windows")
        if name in DESIGN.split():
            made = globals()[name] = _of_numbers(name)
            return made
        return _find(name)

    def __dir__() -> list[str]:
        return sorted(__all__)
