"""Theano's place for scalar ops: `theano.scalar.basic.upcast`, where graphc is imported as theano."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc import scalar
from graphc.scalar import *  # noqa: F403


def round_half_away_from_zero_vec(a: Any) -> Any:
    """The values of an array rounded, halves away from zero, as `round_half_away_from_zero` rounds those of tensors.

    >>> round_half_away_from_zero_vec(np.array([0.5, -1.5, 2.4]))
    array([ 1., -2.,  2.])
    """
    whole = np.trunc(a)
    with np.errstate(invalid="ignore"):  # an infinity is whole
        half = np.abs(a - whole) >= 0.5
    return np.where(half, whole + np.sign(a), whole)


round_half_away_from_zero_ = round_half_away_from_zero_vec


def __getattr__(name: str) -> Any:
    return getattr(scalar, name)
