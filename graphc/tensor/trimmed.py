"""Coefficients of NumPy's polynomials in a traced program.

    q = np.poly1d(np.polyfit(t, y, 2))        NumPy's own class, with a tensor as its coefficients
    np.polynomial.Polynomial(c) ** 2

NumPy drops the coefficients of the highest powers that are 0, so the number of coefficients depends on their values. In
a traced program it drops none, and each call checks that there is none to drop: else `len(q)` and `q.coef` would not be
NumPy's. In: NumPy's functions, which `creations.replace` puts others in place of. Out: what NumPy's own give where no
tensor is among their arguments, or all that they hold is known; else nodes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ir.node import Node
from graphc.ir.source_lines import NUMPY, OWN_FILES, TRACE, program_line
from graphc.ops.again import EFFECTS
from graphc.ops.elementwise import as_node
from graphc.tensor import boundary
from graphc.tensor.calculus import full
from graphc.tensor.handles import UNKNOWN, known

POLYNOMIALS = f"{NUMPY}polynomial{os.sep}"
"""The modules of NumPy's polynomials."""
FIT_FILE = f"{POLYNOMIALS}<fit>"
"""The file of the function in place of `_fit`: what it calls asks who called, and it is NumPy."""
OWN_FILES[FIT_FILE] = False


def _is_open(value: Any) -> bool:
    """True for a tensor of a traced program whose elements are not known."""
    return bool(TRACE.depth) and isinstance(value, Node) and known(value) is UNKNOWN


def _kept(coefficients: Node, place: int) -> Any:
    """The coefficients, where the one of the highest power, at that place, is not 0."""
    if len(coefficients) < 2:
        return coefficients
    made = full(as_node(boundary.given(coefficients)), place, f" (at {program_line()})")
    if EFFECTS.frames:  # results that need the number of coefficients alone are checked too
        EFFECTS.frames[-1].found.append(made[place])
    return boundary.owned(made, (), True)


def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """`np.trim_zeros`, as `np.poly1d` calls it."""
    return _kept(filt, 0) if _is_open(filt) and trim == "f" else TRIM_ZEROS(filt, trim, axis)


def _trimseq(own: Callable[..., Any]) -> Callable[..., Any]:
    """`trimseq`, as the functions of `np.polynomial` call it."""
    return lambda seq: _kept(seq, -1) if _is_open(seq) else own(seq)


def _fit(own: Callable[..., Any]) -> Callable[..., Any]:
    """`_fit`, of which the fits of `np.polynomial` are made; NumPy's asks for the rank of the matrix, to warn of it."""

    def fit(
        vander: Callable[..., Any], x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None
    ) -> Any:
        if full or np.ndim(deg) or not any(map(_is_open, (x, y, w))):
            return own(vander, x, y, deg, rcond, full, w)
        columns, values = vander(x + 0.0, deg), np.asarray(y) + 0.0
        if w is not None:
            columns, values = columns * np.asarray(w)[:, None], (values.T * w).T
        norms = np.sqrt(np.square(columns).sum(0))
        norms = np.where(norms == 0, 1, norms)
        return (np.linalg.lstsq(columns / norms, values, rcond)[0].T / norms).T

    fit.__code__ = fit.__code__.replace(co_filename=FIT_FILE)
    return fit


def _make_poly1d(self: Any, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
    """`np.poly1d(c_or_r)`, also of a list of tensors."""
    if TRACE.depth and isinstance(c_or_r, (list, tuple)) and any(isinstance(each, Node) for each in c_or_r):
        c_or_r = boundary.owned(as_node(boundary.given(c_or_r)), (), True)
    MAKE_POLY1D(self, c_or_r, r, variable)


IMPL: Any = sys.modules["numpy.lib._polynomial_impl"]
"""The module in which `np.poly1d` looks up the names of functions."""
TRIM_ZEROS, MAKE_POLY1D = IMPL.trim_zeros, np.poly1d.__init__
OF_POLY1D: tuple[tuple[Any, str, Any, Any], ...] = (
    (IMPL, "trim_zeros", TRIM_ZEROS, _trim_zeros),
    (np.poly1d, "__init__", MAKE_POLY1D, _make_poly1d),
)
"""The replacements for `np.poly1d`: the place, the name, NumPy's own, and what takes its place."""


def of_polynomials(module: Any) -> list[tuple[Any, str, Any, Any]]:
    """The replacements in `numpy.polynomial.polyutils`, in the same form."""
    return [
        (module, "trimseq", module.trimseq, _trimseq(module.trimseq)),
        (module, "_fit", module._fit, _fit(module._fit)),
    ]
