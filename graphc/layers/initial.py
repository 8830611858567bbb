"""Initialisers: functions that draw the initial values of weights.

In: a shape and a generator of NumPy's. Out: an array of float64, which a layer rounds to its dtype. A matrix is
(inputs, outputs); filters are (outputs, channels, rows, columns). fan_in is the number of inputs of an output, fan_out
the number of outputs of an input.

    he_normal()((64, 10), np.random.default_rng(0)).std()      about (2 / 64) ** 0.5
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod, sqrt
from typing import Any, TypeAlias

import numpy as np

from graphc.errors import GraphValueError
from graphc.ir.call_errors import explain_all

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Initialiser: TypeAlias = "Callable[[Sequence[int], np.random.Generator], Array]"


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return fan_in and fan_out of weights of a shape."""
    if len(shape) < 2:
        return (shape[0] if shape else 1,) * 2
    if len(shape) == 2:
        return shape[0], shape[1]
    field = prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _normal(std: float, mean: float, shape: Sequence[int], rng: np.random.Generator) -> Array:
    return rng.normal(mean, std, shape)


def normal(std: float = 0.01, mean: float = 0.0) -> Initialiser:
    """Normal distribution with this standard deviation and mean."""
    return partial(_normal, std, mean)


def _uniform(low: float, high: float, shape: Sequence[int], rng: np.random.Generator) -> Array:
    return rng.uniform(low, high, shape)


def uniform(low: float = -0.05, high: float = 0.05) -> Initialiser:
    """Uniform distribution on [low, high)."""
    return partial(_uniform, low, high)


def _constant(value: float, shape: Sequence[int], rng: np.random.Generator) -> Array:
    return np.full(shape, float(value))


def constant(value: float) -> Initialiser:
    """The same value everywhere."""
    return partial(_constant, value)


def zeros(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Zeros everywhere: an initialiser itself, without arguments."""
    return np.zeros(shape)


def _scaled(gain: float, of_both: bool, is_normal: bool, shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Draw with mean 0 and variance gain**2 / fan_in; of_both: divide by the mean of fan_in and fan_out instead."""
    into, out = fans(shape)
    std = gain / sqrt(max((into + out) / 2 if of_both else into, 1))
    return rng.normal(0.0, std, shape) if is_normal else rng.uniform(-sqrt(3) * std, sqrt(3) * std, shape)


def glorot_uniform(gain: float = 1.0) -> Initialiser:
    """Variance gain**2 * 2 / (fan_in + fan_out), uniform. Glorot and Bengio, AISTATS 2010."""
    return partial(_scaled, gain, True, False)


def glorot_normal(gain: float = 1.0) -> Initialiser:
    """Variance gain**2 * 2 / (fan_in + fan_out), normal."""
    return partial(_scaled, gain, True, True)


def he_uniform(gain: float = 1.0) -> Initialiser:
    """Variance gain**2 * 2 / fan_in, uniform: for rectifiers. He et al., ICCV 2015."""
    return partial(_scaled, sqrt(2) * gain, False, False)


def he_normal(gain: float = 1.0) -> Initialiser:
    """Variance gain**2 * 2 / fan_in, normal."""
    return partial(_scaled, sqrt(2) * gain, False, True)


def fan_in(gain: float = 1.0) -> Initialiser:
    """Variance gain**2 / fan_in, normal (LeCun et al., 1998)."""
    return partial(_scaled, gain, False, True)


def _orthogonal(gain: float, shape: Sequence[int], rng: np.random.Generator) -> Array:
    if len(shape) < 2:
        raise GraphValueError(f"orthogonal: weights of shape {tuple(shape)} are no matrix")
    rows, columns = shape[0], prod(shape[1:])
    q, r = np.linalg.qr(rng.normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.sign(np.diag(r))
    return gain * (q if rows >= columns else q.T).reshape(shape)


def orthogonal(gain: float = 1.0) -> Initialiser:
    """An orthonormal matrix times `gain`: its rows are orthonormal, or its columns where there are fewer. Filters count
    as a matrix with a row for each output. Saxe et al., ICLR 2014. Drawing a vector raises GraphValueError."""
    return partial(_orthogonal, gain)


explain_all(globals())
