"""SciPy's `signal`: convolutions, filters, power spectra, with derivatives by signals and coefficients.

In: signals and coefficients, arrays or tensors. Out: SciPy's own results of arrays; tensors of tensors. filters.py has
convolutions and filters along an axis, spectra.py powers. Filters and windows are designed by SciPy itself
(`butter`, `firwin`, `get_window`): what they give is constant.

    sos = butter(4, 0.2, output="sos")                    an array
    graphc.jit(lambda x: sosfiltfilt(sos, x))
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphc.errors import GraphTypeError
from graphc.ir.node import Node
from graphc.startup.hooks import lazy_package
from graphc.trees import leaves

if TYPE_CHECKING:
    from graphc.scipy.signal.filters import *  # noqa: F403
    from graphc.scipy.signal.spectra import *  # noqa: F403

    def __getattr__(name: str) -> Any:
        """The functions of DESIGN, whose types SciPy does not tell."""


LAZY = {
    "filters": """
        convolve convolve2d correlate correlate2d decimate detrend fftconvolve filtfilt lfilter lfilter_zi medfilt
        oaconvolve savgol_filter sosfilt sosfiltfilt
    """,
    "spectra": "periodogram spectrogram welch",
}
DESIGN = """
    bessel butter buttord cheb1ord cheb2ord cheby1 cheby2 ellip ellipord firls firwin firwin2 freqs freqz get_window
    iircomb iirdesign iirfilter iirnotch iirpeak kaiser_atten kaiser_beta kaiserord minimum_phase remez savgol_coeffs
    sos2tf sos2zpk sosfilt_zi tf2sos tf2zpk zpk2sos zpk2tf
"""
"""Functions of SciPy's that design filters and windows, of numbers."""
COMPLEX = "graphc has no complex dtypes: call scipy.signal's own with values"
INSTEAD = {
    **dict.fromkeys("hilbert hilbert2 csd coherence stft istft ShortTimeFFT check_COLA".split(), COMPLEX),
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


if not TYPE_CHECKING:  # which know the names
    _find, __dir__ = lazy_package(__name__, LAZY, INSTEAD, DESIGN.split())

    def __getattr__(name: str) -> Any:
        if name == "windows":
            return import_module("scipy.signal.windows")
        if name in DESIGN.split():
            made = globals()[name] = _of_numbers(name)
            return made
        return _find(name)
