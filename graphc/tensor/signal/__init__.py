"""Theano's package of functions of signals, convolution and pooling, and convolutions as SciPy's.

In: tensors. Out: nodes. Its modules are imported when one is asked for.
"""

from __future__ import annotations

from graphc.ir.call_errors import explain_all
from graphc.startup.hooks import lazily, names_of

LAZY = {"conv": "convolve1d convolve2d", "pool": ""}
"""The modules of this package, and the names that they give it."""

__all__ = [*names_of(LAZY)]  # noqa: PLE0604
__getattr__ = lazily("graphc.tensor.signal", LAZY)


def __dir__() -> list[str]:
    return [*__all__, *LAZY]


explain_all(globals())
