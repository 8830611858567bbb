"""Fourier, cosine and sine transforms under the names of `scipy.fft`.

In: what SciPy's functions of these names take; of tensors, and in traced functions, `overwrite_x`, `workers` and `plan`
mean nothing. Out: what SciPy gives of arrays, nodes of tensors.

    fft.rfft(x)          complex128[x.0 // 2 + 1] of float64[x.0]
    fft.fft2(x)          of the last two axes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import graphc.tensor as T
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir import sizes
from graphc.ir.node import Node, describe
from graphc.ir.walk import as_size_node
from graphc.ops.shape import iota
from graphc.scipy.named import as_float, offer
from graphc.startup.hooks import lazily, nearest
from graphc.tensor import forms, spectra
from graphc.tensor.shaping import as_axis, as_size, normalise_axis


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


# --- cosines and sines ------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A type of cosine or sine transforms: twice the sums over n of x[n] cos(pi (n + ahead) (k + across) / M), or of
    sines, where M is the number of values and `more`. once: the places (0 and -1) of values that count once, and are
    taken times the root of 2 where the matrix is to be orthogonal; halved: the places of results that are then divided
    by it."""

    ahead: float
    across: float
    more: int = 0
    once: tuple[int, ...] = ()
    halved: tuple[int, ...] = ()


KINDS = {
    ("dct", 1): Kind(0, 0, -1, (0, -1), (0, -1)), ("dct", 2): Kind(0.5, 0, halved=(0,)),
    ("dct", 3): Kind(0, 0.5, once=(0,)), ("dct", 4): Kind(0.5, 0.5),
    ("dst", 1): Kind(1, 1, 1), ("dst", 2): Kind(0.5, 1, halved=(-1,)), ("dst", 3): Kind(1, 0.5, once=(-1,)),
    ("dst", 4): Kind(0.5, 0.5),
}  # fmt: skip
INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
"""The type of the inverse of each type, but for a factor."""
OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward"}


def _by_turns(name: str, x: Node, type: Any, axis: int, norm: Any, orthogonalize: Any) -> Node:
    """A cosine or sine transform along an axis, by the Fourier transform of 2 M values."""
    kind = KINDS.get((name, type))
    if kind is None:
        raise GraphValueError(f"{name}: the types are 1, 2, 3 and 4, not {type!r}")
    if norm not in spectra.NORMS:
        raise GraphValueError(f"{name}: the norm {norm!r} is not one of 'backward', 'ortho' and 'forward'")
    is_orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    size, last = x.type.shape[axis], as_size_node(sizes.add(x.type.shape[axis], -1))
    places, half = as_axis(iota(size), axis, x.ndim), sizes.add(size, kind.more)
    marks = {0: T.eq(places, 0), -1: T.eq(places, last)}
    place, m = T.cast(places, x.type.dtype), T.cast(as_size_node(half), x.type.dtype)
    for end in kind.once if is_orthogonal else ():
        x = T.switch(marks[end], x * sqrt(2.0), x)
    # x e^(-i pi across n / M), whose transform is turned by e^(-i pi ahead (k + across) / M)
    turned = x if not kind.across else T.complex_from_polar(x, place * (-pi * kind.across) / m)
    found = spectra.part_of(spectra.fft(turned, sizes.multiply(half, 2), axis), axis, 0, size)
    if kind.ahead:
        found = found * T.complex_from_polar(1.0, (place + kind.across) * (-pi * kind.ahead) / m)
    made = 2 * T.real(found) if name == "dct" else -2 * T.imag(found)
    for end in kind.once:
        value = spectra.part_of(x, axis, 0 if end == 0 else sizes.add(size, -1), 1)
        made = made - (value if end == 0 else value * T.cast(1 - 2 * (places % 2), x.type.dtype))
    for end in kind.halved if is_orthogonal else ():
        made = T.switch(marks[end], made * sqrt(0.5), made)
    scale = {"ortho": 1 / T.sqrt(2 * m), "forward": 1 / (2 * m)}.get(norm)
    return made if scale is None else made * T.cast(scale, x.type.dtype)


def _turns(name: str) -> Callable[..., Node]:
    """The function of a name: dct, idst, dctn ..."""
    family, is_inverse = name.strip("in"), name[0] == "i"

    def along(x: Any, type: Any, sizes: Sequence[Any], axes: Sequence[int], norm: Any, orthogonalize: Any) -> Node:
        node = as_float(x)
        if not node.ndim:
            raise GraphTypeError(f"{name} of {describe(node)} of type {node.type}: it has no axis")
        for n, each in zip(sizes, axes, strict=True):
            axis = normalise_axis(each, node.ndim, name)
            node = node if n is None else spectra.fitted(node, axis, as_size(n, f"{name}: n"))
            kind, how = (INVERSE.get(type, type), OPPOSITE.get(norm, norm)) if is_inverse else (type, norm)
            node = _by_turns(family, node, kind, axis, how, orthogonalize)
        return node

    def single(
        x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, orthogonalize: Any = None,
    ) -> Node:  # fmt: skip
        return along(x, type, [n], [axis], norm, orthogonalize)

    def several(
        x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, *, orthogonalize: Any = None,
    ) -> Node:  # fmt: skip
        lengths, chosen = spectra.axes_of(name, as_float(x), s, axes)
        return along(x, type, lengths, chosen, norm, orthogonalize)

    call: Callable[..., Node] = several if name[-1] == "n" else single
    call.__name__ = call.__qualname__ = name
    what = "cosines" if family == "dct" else "sines"
    own, place = "inverse of the " if is_inverse else "", "axes, by default all" if name[-1] == "n" else "an axis"
    call.__doc__ = f"""Return the {own}transform by {what} of a type from 1 to 4, along {place}.

    norm: None or "backward", "ortho", "forward". orthogonalize: with the factors of an orthogonal matrix, by default
    for "ortho". Raises GraphValueError for another type and another norm, GraphTypeError for a scalar.
    """
    return call


TURNS = tuple("dct idct dst idst dctn idctn dstn idstn".split())
globals().update({name: _turns(name) for name in TURNS})

__all__ = sorted([*spectra.TRANSFORMS, *TURNS, "fftfreq", "fftshift", "ifftshift", "rfftfreq"])  # noqa: PLE0605 - SciPy's names

_INSTEAD = {
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
    __getattr__ = lazily(__name__, {}, lambda name: _INSTEAD.get(name) or nearest(name, __all__))


offer(globals())
