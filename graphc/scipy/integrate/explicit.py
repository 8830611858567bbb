"""Explicit Runge-Kutta methods with an error estimate: RK23, RK45, DOP853.

In: y' = fun(t, y), a place and a length. Out: the value at the end of the step, its error, the coefficients of a
polynomial in the fraction of the step.

    k1 = f;  k2 = fun(t + c2 h, y + h a21 k1);  ...       y + h (b1 k1 + b2 k2 + ...)

RK23: Bogacki and Shampine, Appl. Math. Lett. 2 (1989). RK45: Dormand and Prince, J. Comp. Appl. Math. 6 (1980), with
the interpolant of Shampine, Math. Comp. 46 (1986). DOP853: Hairer, Norsett and Wanner, II.10; the coefficients are
those of SciPy's class.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.ir.node import Node
from graphc.ops.elementwise import cast
from graphc.scipy.integrate.steps import (
    MAX_FACTOR,
    MIN_FACTOR,
    SAFETY,
    Attempt,
    Derivative,
    Method,
    Place,
    Tolerances,
    norm,
)


class Explicit:
    """A method by its table. a, b, c: the stages; the last one is at the end of the step. error: the weights of the
    estimate. between: those of the polynomial, a column for each power."""

    def __init__(self, order: int, a: Any, b: Any, c: Any, error: Any, powers: Any) -> None:
        self.order, self.a, self.b, self.c, self.error, self.powers = order, a, b, c, error, np.asarray(powers)

    def start(self, y: Node) -> tuple[Node, ...]:
        """There is no memory."""
        return ()

    def attempt(self, fun: Derivative, at: Place, h: Node, tolerances: Tolerances) -> Attempt:
        """Make a step of length `h`."""
        length = cast(h, at.y.type.dtype)
        stages = [at.f]
        for row, c in list(zip(self.a, self.c, strict=True))[1:]:
            stages.append(fun(at.t + c * h, at.y + combined(row, stages) * length))
        y = at.y + length * combined(self.b, stages)
        f = fun(at.t + h, y)
        stages.append(f)
        error = self.error_of(stages, length, tolerances.scale(at.y, y))
        accepted = error < 1
        by = SAFETY * T.switch(error > 0, error, 1.0) ** (-1 / (self.order + 1))
        grown = T.switch(T.eq(error, 0), MAX_FACTOR, T.minimum(MAX_FACTOR, by))
        grown = T.switch(at.rejected, T.minimum(1.0, grown), grown)
        shrunk = T.switch(T.isnan(error), MIN_FACTOR, T.maximum(MIN_FACTOR, by))
        coefficients, more = self.coefficients(fun, at, h, stages, y)
        return Attempt(y, f, accepted, T.switch(accepted, grown, shrunk), coefficients, (), (len(self.c) + more, 0))

    def error_of(self, stages: Sequence[Node], h: Node, scale: Node) -> Node:
        """Return the norm of the error."""
        return norm(combined(self.error, stages) * h / scale)

    def coefficients(self, fun: Derivative, at: Place, h: Node, stages: Sequence[Node], y: Node) -> tuple[Node, int]:
        """Return the coefficients of the polynomial, and the number of further evaluations of `fun`."""
        return T.stack([combined(column, stages) for column in self.powers.T]), 0

    def between(self, x: Node, h: Node, start: Node, end: Node, coefficients: Node) -> Node:
        """Return values at fractions `x` of steps of lengths `h`."""
        value = coefficients[:, -1]
        for power in range(self.powers.shape[1] - 2, -1, -1):
            value = coefficients[:, power] + x * value
        return start + h * (x * value)


class DOP853(Explicit):
    """DOP853: an estimate from two of orders 5 and 3, and three more stages for the polynomial."""

    def __init__(self, table: Any) -> None:
        super().__init__(7, table.A, table.B, table.C, table.E5, table.D.T)
        self.third, self.more = table.E3, list(zip(table.A_EXTRA, table.C_EXTRA, strict=True))

    def error_of(self, stages: Sequence[Node], h: Node, scale: Node) -> Node:
        """Return the norm of the error (Hairer, Norsett and Wanner, II.10, 10.17)."""
        fifth = T.mean((combined(self.error, stages) / scale) ** 2)
        third = T.mean((combined(self.third, stages) / scale) ** 2)
        total = fifth + 0.01 * third
        return abs(h) * fifth / T.sqrt(T.switch(T.eq(total, 0), 1.0, total))

    def coefficients(self, fun: Derivative, at: Place, h: Node, stages: Sequence[Node], y: Node) -> tuple[Node, int]:
        """Return those of a polynomial in x and 1 - x by turns."""
        length, known = cast(h, y.type.dtype), list(stages)
        for row, c in self.more:
            known.append(fun(at.t + c * h, at.y + combined(row, known) * length))
        step, first, last = y - at.y, known[0], stages[-1]
        parts = [step, length * first - step, 2 * step - length * (last + first)]
        return T.stack([*parts, *(length * combined(row, known) for row in self.powers.T)]), len(self.more)

    def between(self, x: Node, h: Node, start: Node, end: Node, coefficients: Node) -> Node:
        """Return values at fractions `x` of steps."""
        value = T.zeros_like(start)
        for place, power in enumerate(range(6, -1, -1)):
            value = (value + coefficients[:, power]) * (1 - x if place % 2 else x)
        return start + value


def combined(weights: Sequence[float], stages: Sequence[Node]) -> Node:
    """Return the sum of stages times weights, without those of weight zero."""
    terms = [float(weight) * stage for weight, stage in zip(weights, stages, strict=False) if weight]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def explicit(name: str) -> Method:
    """Return the method of that name."""
    return RK45 if name == "RK45" else RK23 if name == "RK23" else DOP853(import_module("scipy.integrate").DOP853)


RK23 = Explicit(
    2,
    [[], [1 / 2], [0, 3 / 4]],
    [2 / 9, 1 / 3, 4 / 9],
    [0, 1 / 2, 3 / 4],
    [5 / 72, -1 / 12, -1 / 9, 1 / 8],
    [[1, -4 / 3, 5 / 9], [0, 1, -2 / 3], [0, 4 / 3, -8 / 9], [0, -1, 1]],
)
RK45 = Explicit(
    4,
    [
        [],
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    ],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1],
    [-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40],
    [
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ],
)
