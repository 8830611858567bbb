"""The ways in which hand-written kernels are compiled, as an expert would choose them.

`serial` for kernels below some 20 us, where starting threads costs more than it gains; `threaded` for the rest. Both
let sums be reassociated, without which no sum vectorises; `inlined`, for the functions of `vecmath`, does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from numba import njit

Compiler: TypeAlias = Callable[[Callable[..., Any]], Any]

RELAXED = {"reassoc", "contract", "nsz"}

inlined: Compiler = njit(forceinline=True, error_model="numpy", fastmath={"contract"}, cache=True)
serial: Compiler = njit(error_model="numpy", fastmath=RELAXED, cache=True)
threaded: Compiler = njit(error_model="numpy", fastmath=RELAXED, cache=True, parallel=True)
