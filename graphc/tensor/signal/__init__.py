"""Functions of signals: Theano's tensor.signal, and convolutions as SciPy's.

In: signals and images without channels. Out: nodes.
"""

from __future__ import annotations

from graphc.startup.lazy import lazily, names_of

LAZY = {"conv": "convolve1d convolve2d"}
"""The modules of this package and the names of each: imported when one is asked for."""

__all__ = [*names_of(LAZY)]  # noqa: PLE0604
__getattr__ = lazily("graphc.tensor.signal", LAZY)


def __dir__() -> list[str]:
    return [*__all__, *LAZY]
