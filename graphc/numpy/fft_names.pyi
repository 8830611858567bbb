"""The functions of `graphc.numpy.fft` that are those of NumPy 2.4.

Written by `GRAPHC_UPDATE=1 pytest tests/test_stubs.py`, for editors and type checkers alone.
"""

from typing import Any

from numpy.fft import (
    fft2 as fft2,
    fftn as fftn,
    hfft as hfft,
    ifft as ifft,
    ifft2 as ifft2,
    ifftn as ifftn,
    ihfft as ihfft,
    irfft as irfft,
    irfft2 as irfft2,
    irfftn as irfftn,
    rfft as rfft,
    rfft2 as rfft2,
    rfftn as rfftn,
)

def fftfreq(n: Any, d: Any = ..., device: Any = ...) -> Any: ...
def fftshift(x: Any, axes: Any = ...) -> Any: ...
def ifftshift(x: Any, axes: Any = ...) -> Any: ...
def rfftfreq(n: Any, d: Any = ..., device: Any = ...) -> Any: ...
