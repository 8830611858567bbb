"""Scans, branches and loops in JAX's form: `from graphc import lax`.

In: functions and arrays, or trees of them. Out: arrays, where no argument is a tensor, none is used from outside and no
function is traced; else tensors, as `control/functional.py` makes them, which has the functions.

    lax.scan(lambda total, x: (total + x, total), 0.0, np.ones(3))     (np.float64(3.0), array([0., 1., 2.]))
    lax.scan(step, 0.0, T.dvector("xs"))                               tensors

A loop or branch of arrays is compiled once for the types of its arguments and for what its functions compute; a new
size, and another function that computes the same, compile nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.control import functional
from graphc.ir.at_once import all_at_once
from graphc.ir.call_errors import explain_all

if TYPE_CHECKING:
    from graphc.control.functional import *  # noqa: F403

__all__ = [*functional.__all__]  # noqa: PLE0604 - the names are those of the functions
globals().update({name: getattr(functional, name) for name in __all__})

if not TYPE_CHECKING:  # which know the names

    def __getattr__(name: str) -> Any:
        return getattr(functional, name)  # whose error says what to use instead


all_at_once(globals())
explain_all(globals())
