"""The names of `np.fft`.

In: what NumPy's functions of these names take. Out: what NumPy gives of arrays, and of tensors nodes
(tensor/spectra.py). Type checkers read `fft_names.pyi`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ir.call_errors import explain_all
from graphc.numpy.named import offered

if TYPE_CHECKING:
    from graphc.numpy.fft_names import *  # noqa: F403

__all__ = offered(np.fft, globals())  # noqa: PLE0605 - the names are NumPy's


explain_all(globals())
