"""The names of `np.linalg`, as far as graphc has them.

In: what NumPy's functions of these names take. Out: what NumPy gives of arrays; tensors of tensors and in traced
functions. Type checkers read `linalg_names.pyi`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.call_errors import explain_all
from graphc.numpy.named import has_function, named

if TYPE_CHECKING:
    from graphc.numpy.linalg_names import *  # noqa: F403

_FOUND = {
    name: named(name, function)
    for name, function in vars(np.linalg).items()
    if name[0] != "_" and has_function(function)
}
globals().update(_FOUND)
__all__ = sorted(_FOUND)  # noqa: PLE0605 - the names are NumPy's


if not TYPE_CHECKING:  # which know the names

    def __getattr__(name: str) -> Any:
        if name[0] != "_" and hasattr(np.linalg, name):
            raise AttributeError(f"np.linalg.{name} is not in graphc: graphc.numpy.linalg has no {name!r}")
        raise AttributeError(f"module 'graphc.numpy.linalg' has no attribute {name!r}")


explain_all(globals())
