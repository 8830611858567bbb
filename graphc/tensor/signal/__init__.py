"""Theano's package of functions of signals: convolution and pooling.

In: tensors. Out: nodes. Its modules are imported when one is asked for.
"""

from __future__ import annotations

from graphc.startup.lazy import lazily

LAZY = {"downsample": "", "pool": ""}
"""The modules of this package."""

__getattr__ = lazily("graphc.tensor.signal", LAZY)


def __dir__() -> list[str]:
    return [*LAZY]
