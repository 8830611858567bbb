"""Radau IIA of order 5: implicit Runge-Kutta with three stages, for stiff problems.

In: y' = fun(t, y), a place and a length. Out: the value at the end of the step, its error, the coefficients of a
polynomial, as of explicit methods.

    y' = -1000 (y - cos t)          steps as long as cos asks for; an explicit method needs some 500 for a unit of t

It is L-stable and stiffly accurate, and keeps its order for equations that become algebraic, which BDF of higher orders
is not (A-stable only to order 2). A Rosenbrock method needs no iteration, but differentiates the Jacobian in its
adjoint; here the derivative of a step is that of its equation z = h A fun(t + c h, y + z), by one linear system with
the exact Jacobians at the stages, of any order. The iteration, the estimate and the choice of steps are those of
Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8, as SciPy has them; the Jacobian is made anew for
each attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.autodiff import jacobian
from graphc.control.functional import while_loop
from graphc.ir.node import Node, variable
from graphc.ir.walk import substitute
from graphc.lax.solving import custom_root
from graphc.ops.elementwise import as_node, cast
from graphc.scipy.integrate.steps import MAX_FACTOR, MIN_FACTOR, Attempt, Derivative, Place, Tolerances, norm
from graphc.startup.record import record
from graphc.tensor.elementary import stop_gradient

ROOT = 6**0.5
C = np.array([(4 - ROOT) / 10, (4 + ROOT) / 10, 1])
A = np.array(
    [
        [(88 - 7 * ROOT) / 360, (296 - 169 * ROOT) / 1800, (-2 + 3 * ROOT) / 225],
        [(296 + 169 * ROOT) / 1800, (88 + 7 * ROOT) / 360, (-2 - 3 * ROOT) / 225],
        [(16 - ROOT) / 36, (16 + ROOT) / 36, 1 / 9],
    ]
)
ERROR = np.array([-13 - 7 * ROOT, -13 + 7 * ROOT, -1]) / 3
REAL = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)
PAIR = 3 + 0.5 * (3 ** (1 / 3) - 3 ** (2 / 3)), -0.5 * (3 ** (5 / 6) + 3 ** (7 / 6))
"""The eigenvalues of the inverse of A: one real, and the real and imaginary part of a pair."""
BACK = np.array(
    [
        [0.09443876248897524, -0.14125529502095421, 0.03002919410514742],
        [0.25021312296633332, 0.20412935229379994, -0.38294211275726192],
        [1, 1, 0],
    ]
)
INTO = np.array(
    [
        [4.17871859155190428, 0.32768282076106237, 0.52337644549944951],
        [-4.17871859155190428, -0.32768282076106237, 0.47662355450055044],
        [0.50287263494578682, -2.57192694985560522, 0.59603920482822492],
    ]
)
"""To the coordinates in which the inverse of A is a number and a block of two, and back."""
POWERS = np.array(
    [
        [13 / 3 + 7 * ROOT / 3, -23 / 3 - 22 * ROOT / 3, 10 / 3 + 5 * ROOT],
        [13 / 3 - 7 * ROOT / 3, -23 / 3 + 22 * ROOT / 3, 10 / 3 - 5 * ROOT],
        [1 / 3, -8 / 3, 10 / 3],
    ]
)
"""Of the polynomial through the stages, a column for each power."""
ITERATIONS = 6


@record(eq=False)
class IterationFactors:
    """The factors of the two matrices of the iteration. The pair is one real system of twice the size, for there are no
    complex dtypes."""

    real: tuple[Node, Node]
    pair: tuple[Node, Node]

    def solve(self, right: Node, h: Node) -> Node:
        """Return the three rows of the solution, from those of the right-hand side."""
        count = right.shape[1]
        both = T.linalg.lu_solve(self.pair, T.concatenate([right[1], right[2]]), on_error="nan")
        one = T.linalg.lu_solve(self.real, right[0], on_error="nan")
        return T.stack([one, both[:count], both[count:]])


def systems(slope: Node, h: Node) -> IterationFactors:
    """Return the factors for a Jacobian and a length."""
    unit = T.eye(slope.shape[0], dtype=slope.type.dtype)
    along, across = (part / h for part in PAIR)
    block = along * unit - slope
    upper, lower = [block, -across * unit], [across * unit, block]
    whole = T.concatenate([T.concatenate(row, axis=1) for row in (upper, lower)], axis=0)
    return IterationFactors(T.linalg.lu_factor((REAL / h) * unit - slope), T.linalg.lu_factor(whole))


class Radau:
    """The method. Its memory: the coefficients of the step before, its length, its error; the length is 0 where there
    is none."""

    order = 3

    def start(self, y: Node) -> tuple[Node, ...]:
        """Return the memory of the first attempt."""
        nothing = T.zeros((), dtype=y.type.dtype)
        return T.zeros((3, y.shape[0]), dtype=y.type.dtype), nothing, nothing + 1

    def attempt(self, fun: Derivative, at: Place, h: Node, tolerances: Tolerances) -> Attempt:
        """Make a step of length `h`."""
        coefficients, last, error_before = at.memory
        kind = at.y.type.dtype
        length = cast(h, kind)
        t, y, f, step = (stop_gradient(each) for each in (at.t, at.y, at.f, length))
        times = [t + c * stop_gradient(h) for c in C]
        made = systems(slope_of(fun, t, y), step)
        scale = stop_gradient(tolerances.scale(y))
        ratio = step / T.switch(T.eq(last, 0), 1.0, last)
        x = 1 + ratio * as_node(C.astype(kind))
        guess = T.stack([polynomial(coefficients, x[row]) - polynomial(coefficients, 1.0) for row in range(3)])
        guess = T.switch(T.eq(last, 0), 0.0, guess)
        tolerance = T.maximum(10 * np.finfo(kind).eps / tolerances.rtol, T.minimum(0.03, tolerances.rtol**0.5))
        found, converged, rounds = iterate(fun, times, y, step, guess, scale, tolerance, made)
        z = differentiable(fun, at, h, stop_gradient(found))
        after = at.y + z[2]
        end = stop_gradient(after)
        error, more = self.error_of(fun, at, (t, y, f, step), found, end, made, tolerances)
        safety = 0.9 * (2 * ITERATIONS + 1) / (2 * ITERATIONS + rounds)
        length_now = abs(step)
        multiplier = length_now / T.switch(T.eq(last, 0), 1.0, abs(last)) * (error_before / positive(error)) ** 0.25
        multiplier = T.switch(T.eq(last, 0) | T.eq(error, 0), 1.0, multiplier)
        factor = safety * T.minimum(1.0, multiplier) * positive(error) ** -0.25
        accepted = converged & (error < 1)
        grown = T.switch(T.eq(error, 0), MAX_FACTOR, T.minimum(MAX_FACTOR, factor))
        grown = T.switch(at.rejected, T.minimum(1.0, grown), grown)
        shrunk = T.switch(converged & ~T.isnan(error), T.maximum(MIN_FACTOR, factor), 0.5)
        powers = [T.dot(as_node(column.astype(kind)), z) for column in POWERS.T]
        whole = T.stack(powers)
        memory = tuple(
            stop_gradient(T.switch(accepted, new, old))
            for new, old in ((whole, coefficients), (step, last), (positive(error), error_before))
        )
        return Attempt(
            after, fun(at.t + h, after), accepted, T.switch(accepted, grown, shrunk), whole, memory,
            (3 * rounds + more + 1, 1),
        )  # fmt: skip

    def error_of(
        self,
        fun: Derivative,
        at: Place,
        known: tuple[Node, Node, Node, Node],
        z: Node,
        end: Node,
        made: IterationFactors,
        tolerances: Tolerances,
    ) -> tuple[Node, int]:
        """Return the norm of the error; after a rejected attempt that of the filtered estimate (IV.8, 8.19 and 8.20),
        which does not see what decays within the step."""
        t, y, f, step = known
        part = T.dot(as_node(ERROR.astype(y.type.dtype)), z) / step
        scale = tolerances.scale(y, end)
        error = T.linalg.lu_solve(made.real, f + part, on_error="nan")
        again = T.linalg.lu_solve(made.real, fun(t, y + error) + part, on_error="nan")
        plain = norm(error / scale)
        return T.switch(at.rejected & (plain > 1), norm(again / scale), plain), 1

    def between(self, x: Node, h: Node, start: Node, end: Node, coefficients: Node) -> Node:
        """Return values at fractions `x` of steps."""
        return start + x * (coefficients[:, 0] + x * (coefficients[:, 1] + x * coefficients[:, 2]))


def polynomial(coefficients: Node, x: Node | float) -> Node:
    """Return the polynomial of a step, less its value at the beginning."""
    return x * (coefficients[0] + x * (coefficients[1] + x * coefficients[2]))


def positive(error: Node) -> Node:
    """Return an error, which is not 0."""
    return T.maximum(error, np.finfo(error.type.dtype).tiny)


def slope_of(fun: Derivative, t: Node, y: Node) -> Node:
    """Return the Jacobian of `fun` by y."""
    slope: Node = jacobian(fun(t, y), y, disconnected_inputs="ignore")
    return slope


def iterate(
    fun: Derivative,
    times: list[Node],
    y: Node,
    h: Node,
    guess: Node,
    scale: Node,
    tolerance: Node,
    made: IterationFactors,
) -> tuple[Node, Node, Node]:
    """Return the stages z, whether the simplified Newton iteration converged, and its rounds."""
    kind = y.type.dtype
    into, back = (as_node(table.astype(kind)) for table in (INTO, BACK))
    along, across = PAIR

    def go_on(state: tuple[Node, ...]) -> Node:
        _, _, rounds, converged, failed = state
        return (rounds < ITERATIONS) & ~converged & ~failed

    def again(state: tuple[Node, ...]) -> tuple[Node, ...]:
        w, size_before, rounds, _, _ = state
        z = T.dot(back, w)
        f = T.stack([fun(time, y + z[row]) for row, time in enumerate(times)])
        turned = T.stack([REAL * w[0], along * w[1] - across * w[2], across * w[1] + along * w[2]]) / h
        change = made.solve(T.dot(into, f) - turned, h)
        size = norm(T.flatten(change / scale))
        is_first = T.eq(rounds, 0)
        rate = T.switch(is_first, 0.0, size / T.switch(T.eq(size_before, 0), 1.0, size_before))
        rest = 1 - T.minimum(rate, 0.999999)
        slow = ~is_first & ((rate >= 1) | (rate ** (ITERATIONS - rounds) / rest * size > tolerance))
        failed = slow | T.isnan(size) | T.isinf(size)
        close = T.eq(size, 0) | (~is_first & (rate / rest * size < tolerance))
        w = T.switch(failed, w, w + change)
        return w, size, rounds + 1, close & ~failed, failed

    first = T.dot(into, guess), T.zeros((), dtype=kind), T.zeros((), dtype=kind), T.constant(False), T.constant(False)
    w, _, rounds, converged, _ = while_loop(go_on, again, first)
    return T.dot(back, w), converged, rounds


def differentiable(fun: Derivative, at: Place, h: Node, found: Node) -> Node:
    """Return the stages with the derivatives of the equation that they solve."""
    kind = found.type.dtype
    length = cast(h, kind)

    def equation(z: Node) -> Node:
        f = T.stack([fun(at.t + c * h, at.y + z[row]) for row, c in enumerate(C)])
        return z - length * T.dot(as_node(A.astype(kind)), f)

    def tangent(linear: Callable[[Node], Node], right: Node) -> Any:
        flat = T.flatten(right)
        own = variable(flat.type.dtype, flat.type.shape)
        matrix = jacobian(T.flatten(linear(T.reshape(own, right.shape, ndim=2))), own, disconnected_inputs="ignore")
        matrix = substitute([matrix], {own: T.zeros_like(flat)})[0]
        return T.reshape(T.linalg.solve(matrix, flat), right.shape, ndim=2)

    solved: Node = custom_root(equation, found, lambda f, guess: guess, tangent)
    return solved
