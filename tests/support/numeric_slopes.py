"""Derivatives of functions of float64 by differences, each with a bound of its error that follows from the values.

    slope, bound = numeric_slope(scipy.special.gamma, [np.array([1.5])], 0)

In: a function of arrays, arguments, the number of one. Out: the derivative by it, element by element, and a bound: of
what the next term of Richardson's extrapolation changes, and of the rounding of values that are right to `units` units
in the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def numeric_slope(
    function: Callable[..., Any], args: Sequence[Any], position: int, step: float = 2e-3, units: float = 64.0
) -> tuple[Any, Any]:
    x = np.asarray(args[position], "float64")

    def at(shift: Any) -> Any:
        return np.asarray(function(*args[:position], x + shift, *args[position + 1 :]), "float64")

    def differences(h: float) -> Any:
        return (at(h) - at(-h)) / (2 * h)

    rough, half, quarter = (differences(step / k) for k in (1, 2, 4))
    first, second = (4 * half - rough) / 3, (4 * quarter - half) / 3
    best = (16 * second - first) / 15
    size = np.maximum(np.abs(at(step)), np.abs(at(-step)))
    return best, np.abs(second - first) + units * np.finfo("float64").eps * (size / (step / 4) + np.abs(best))
