"""The names of `np.linalg`.

In: what NumPy's functions of these names take. Out: what NumPy gives of arrays; tensors of tensors and in traced
functions. Type checkers read `linalg_names.pyi`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphc.ir.call_errors import explain_all
from graphc.numpy.named import offered

if TYPE_CHECKING:
    from graphc.numpy.linalg_names import *  # noqa: F403

__all__ = offered(np.linalg, globals())  # noqa: PLE0605 - the names are NumPy's


explain_all(globals())
