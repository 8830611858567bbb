"""Fourier transforms under the names of `scipy.fft`.

In: what SciPy's functions of these names take; of tensors, and in traced functions, `overwrite_x`, `workers` and `plan`
mean nothing. Out: what SciPy gives of arrays, nodes of tensors.

    fft.rfft(x)          complex128[x.0 // 2 + 1] of float64[x.0]
    fft.fft2(x)          of the last two axes
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphc.ir.node import Node
from graphc.scipy.named import offer
from graphc.startup.hooks import nearest
from graphc.tensor import forms, spectra


def _transform(name: str) -> Callable[..., Node]:
    own = getattr(spectra, name)
    if name[-1] in "2n":
        default = (-2, -1) if name[-1] == "2" else None

        def several(
            x: Any, s: Any = None, axes: Any = default, norm: Any = None, overwrite_x: bool = False,
            workers: Any = None, *, plan: Any = None,
        ) -> Node:  # fmt: skip
            made: Node = own(x, s, axes, norm)
            return made

        call: Callable[..., Node] = several
    else:

        def single(
            x: Any, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False, workers: Any = None,
            *, plan: Any = None,
        ) -> Node:  # fmt: skip
            made: Node = own(x, n, axis, norm)
            return made

        call = single
    call.__name__ = call.__qualname__ = name
    call.__doc__ = own.__doc__
    return call


globals().update({name: _transform(name) for name in spectra.TRANSFORMS})


def fftfreq(n: Any, d: Any = 1.0) -> Node:
    """Return the frequencies of `fft` of `n` values, `d` apart."""
    return forms.frequencies(n, d)


def rfftfreq(n: Any, d: Any = 1.0) -> Node:
    """Return the frequencies of `rfft` of `n` values, `d` apart."""
    return forms.real_frequencies(n, d)


def fftshift(x: Any, axes: Any = None) -> Node:
    """Return `x` with the frequency 0 in the middle of the axes, by default all."""
    made: Node = forms.shifted(False)(x, axes)
    return made


def ifftshift(x: Any, axes: Any = None) -> Node:
    """Return what `fftshift` makes `x` of."""
    made: Node = forms.shifted(True)(x, axes)
    return made


__all__ = sorted([*spectra.TRANSFORMS, "fftfreq", "fftshift", "ifftshift", "rfftfreq"])  # noqa: PLE0605 - SciPy's names

_INSTEAD = {
    **dict.fromkeys("dct dctn dst dstn idct idctn idst idstn".split(), "fft of values and their reverse has the parts"),
    **dict.fromkeys("fht fhtoffset ifht".split(), "nobody has written its derivative"),
    **dict.fromkeys("hfft2 hfftn ihfft2 ihfftn".split(), "hfft transforms along one axis"),
    **dict.fromkeys(
        "get_workers next_fast_len prev_fast_len register_backend set_backend set_global_backend set_workers "
        "skip_backend".split(),
        "it is about SciPy's own transforms: SciPy's serves",
    ),
}
"""Functions of `scipy.fft` that do not exist here, with the reason."""


if not TYPE_CHECKING:  # which know the names

    def __getattr__(name: str) -> Any:
        why = _INSTEAD.get(name) or nearest(name, __all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{why and ': '}{why}")


offer(globals())
