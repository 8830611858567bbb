"""Adaptive steps of an initial value problem, as one loop that has derivatives; RK23, RK45, DOP853 and Radau.

In: y' = fun(t, y), a vector y at t0, the end t1, tolerances, a method. Out: `Path`, the accepted and the rejected
attempts, a row for each, and what the polynomials between them need.

    y' = -y, y(0) = 1, to t = 1      rows t = [0.0001, 0.0011, ..., 1.0], y = [0.9999, ...]

An attempt is a step of the loop, which ends when `t1` is reached, an event stops it, a step becomes too small, or
`max_steps` attempts are made. The choice of steps is SciPy's (`solve_ivp`), so that results agree to rounding for the
explicit methods. The derivative is the discrete adjoint: that of the numerical solution with the steps as they were
chosen (stop_gradient), but for the last one, which ends at `t1`. What a rejected attempt computes is behind a branch,
which derivatives do not go through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import graphc.tensor as T
from graphc.autodiff import jacobian
from graphc.control.functional import cond, traced_step, while_loop
from graphc.control.loop import Returned, State, flat, make_loop
from graphc.ir import sizes
from graphc.ir.node import Node, next_serial, variable
from graphc.ir.walk import substitute
from graphc.lax.solving import custom_root
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.startup.record import record
from graphc.tensor.elementary import stop_gradient

Derivative = Callable[[Node, Node], Node]
"""(t, y) -> y'."""
MIN_FACTOR, MAX_FACTOR, SAFETY = 0.2, 10.0, 0.9
"""Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, II.4: how fast steps shrink and grow."""
FINISHED, STOPPED, TOO_SMALL, TOO_MANY = 0, 1, -1, -2


@record(eq=False)
class Tolerances:
    """The bound that the error of a step is compared with: atol + rtol * abs(y)."""

    rtol: Node
    atol: Node

    def scale(self, y: Node, other: Node | None = None) -> Node:
        """Return the error that is allowed for each element of `y`."""
        size = abs(y) if other is None else T.maximum(abs(y), abs(other))
        return self.atol + size * self.rtol


@record(eq=False)
class Attempt:
    """A step of a method. y, f: at its end, with the derivative there. accepted: whether its error is allowed. factor:
    by which the next step is longer. coefficients: of the polynomial between its ends. memory: what the method hands on
    to its next attempt. counts: evaluations of `fun` and of its Jacobian."""

    y: Node
    f: Node
    accepted: Node
    factor: Node
    coefficients: Node
    memory: tuple[Node, ...]
    counts: tuple[Any, Any]


class Method(Protocol):
    """A way to make a step. order: that of the error estimate."""

    order: int

    def start(self, y: Node) -> tuple[Node, ...]:
        """Return the memory of the first attempt."""

    def attempt(self, fun: Derivative, at: Place, h: Node, tolerances: Tolerances) -> Attempt:
        """Make a step of length `h`."""

    def between(self, x: Node, h: Node, start: Node, end: Node, coefficients: Node) -> Node:
        """Return values at fractions `x` of steps, a row for each."""


@record(eq=False)
class Place:
    """The state of the loop. rejected: whether the attempt before failed here. memory: the method's."""

    t: Node
    y: Node
    f: Node
    rejected: Node
    memory: tuple[Node, ...]


@record(eq=False)
class Event:
    """A function of (t, y) that ends the integration where it crosses zero; direction: 1 upwards, -1 downwards, 0."""

    function: Callable[[Node, Node], Node]
    direction: float

    def crossed(self, before: Node, after: Node) -> Node:
        """Return whether the sign changes between two values."""
        up, down = (before <= 0) & (after >= 0), (before >= 0) & (after <= 0)
        return up if self.direction > 0 else down if self.direction < 0 else up | down


@record(eq=False)
class Path:
    """The course of the loop: a row for each attempt, and rows of zeros up to `max_steps`. starts, t: the ends of
    attempts; those of one that is rejected are the same. y: at `t`, before: at `starts`. taken: the number of attempts.
    end, last: the time and the state at the end. crossed: for each event, whether it ended the last step."""

    method: Method
    direction: Node
    starts: Node
    t: Node
    before: Node
    y: Node
    accepted: Node
    coefficients: Node
    taken: Node
    end: Node
    last: Node
    status: Node
    counts: Sequence[Node]
    crossed: Sequence[Node]

    def __call__(self, times: Node) -> Node:
        """Return the solution at times, a row for each; NaN beyond the end."""
        order = T.switch(T.arange(self.t.shape[0]) < self.taken, self.t * self.direction, np.inf)
        return self.at(T.minimum(T.searchsorted(order, times * self.direction), self.taken - 1), times)

    def at(self, row: Node, times: Node) -> Node:
        """Return the solution at times of which the attempts are known."""
        length = self.t[row] - self.starts[row]
        empty = T.eq(length, 0)
        x = T.switch(empty, 0.0, (times - self.starts[row]) / T.switch(empty, 1.0, length))
        kind = self.y.type.dtype
        x, length = cast(x, kind), cast(length, kind)
        parts = self.before[row], self.y[row], self.coefficients[row]
        found = self.method.between(x[:, None], length[:, None], *parts)
        beyond = (times - self.end) * self.direction > 0
        return T.switch(beyond[:, None], np.nan, found)


def norm(x: Node) -> Node:
    """Return the root of the mean of squares."""
    return T.sqrt(T.mean(x * x))


def first_step(
    fun: Derivative, ends: Sequence[Node], y: Node, f: Node, method: Method, tolerances: Tolerances, longest: Any
) -> Node:
    """Return the length of the first step (Hairer, Norsett and Wanner, II.4, as SciPy has it)."""
    begin, end = ends
    direction, length = T.switch(end >= begin, 1.0, -1.0), abs(end - begin)
    scale = tolerances.scale(y)
    d0, d1 = norm(y / scale), norm(f / scale)
    tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h = T.minimum(T.switch(tiny, 1e-6, 0.01 * d0 / T.switch(tiny, 1.0, d1)), length)
    step = cast(h * direction, y.type.dtype)
    d2 = norm((fun(begin + h * direction, y + step * f) - f) / scale) / T.switch(T.eq(h, 0), 1.0, h)
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    most = T.switch(flat, 1.0, T.maximum(d1, d2))
    other = T.switch(flat, T.maximum(1e-6, h * 1e-3), (0.01 / most) ** (1 / (method.order + 1)))
    return T.minimum(T.minimum(100 * h, other), T.minimum(length, longest))


def integrate(
    fun: Derivative,
    ends: Sequence[Node],
    y: Node,
    method: Method,
    tolerances: Tolerances,
    step: Any,
    longest: Any,
    max_steps: Any,
    events: Sequence[Event] = (),
) -> Path:
    """Solve y' = fun(t, y) between two times. step: the length of the first step, or None. longest: of any step."""
    begin, end = ends
    f = fun(begin, y)
    direction = T.switch(end >= begin, 1.0, -1.0)
    first = first_step(fun, ends, y, f, method, tolerances, longest) if step is None else step
    first = stop_gradient(cast(T.as_tensor_variable(first), begin.type.dtype))
    memory, since = method.start(y), next_serial()

    def advance(past: list[list[Node]]) -> Returned:
        t, y, f, length, rejected, nfev, njev, _, *more = flat(past)
        memory_before, values_before = more[: len(memory)], more[len(memory) : len(memory) + len(events)]
        least = 10 * abs(elementwise("nextafter", t, direction * np.inf) - t)
        length = T.switch(rejected, length, T.maximum(T.minimum(length, longest), least))
        too_small = rejected & (length < least)
        after = t + cast(length * direction, t.type.dtype)
        after = T.switch(direction * (after - end) > 0, end, after)
        attempt = method.attempt(fun, Place(t, y, f, rejected, tuple(memory_before)), after - t, tolerances)
        accepted = attempt.accepted & ~too_small
        next_length = cast(stop_gradient(abs(after - t) * attempt.factor), t.type.dtype)
        new = (after, attempt.y, attempt.f, attempt.coefficients)
        old = (t, y, f, T.zeros_like(attempt.coefficients))
        t_next, y_next, f_next, coefficients = cond(accepted, lambda: new, lambda: old)
        values = [event.function(t_next, y_next) for event in events]
        pairs = zip(values_before, values, strict=True)
        crossed = [accepted & event.crossed(*pair) for event, pair in zip(events, pairs, strict=True)]
        arrived = accepted & (direction * (after - end) >= 0)
        stopped = T.any(T.stack(crossed)) if crossed else T.constant(False)
        status = T.switch(stopped, STOPPED, T.switch(arrived, FINISHED, T.switch(too_small, TOO_SMALL, TOO_MANY)))
        counts = [cast(n + more, "int64") for n, more in zip((nfev, njev), attempt.counts, strict=True)]
        state = [t_next, y_next, f_next, next_length, ~accepted, *counts, cast(status, "int64"), *attempt.memory]
        state += [*map(stop_gradient, values), *crossed]
        rows = [t, t_next, y, y_next, accepted, coefficients]
        return Returned([*state, *rows], {}, arrived | too_small | stopped, "integrate")

    zero, no = T.constant(np.int64(0)), T.constant(False)
    values = [event.function(begin, y) for event in events]
    initial = [begin, y, f, first, no, zero, zero, zero, *memory, *values, *[no] * len(events)]
    one_attempt, initial = traced_step([], [State(each, (-1,)) for each in initial], advance, since)
    loop = make_loop(one_attempt, sizes.as_size(cast(as_node(max_steps), "int64")), [], initial)
    assert loop.taken is not None
    starts, t, before, y, accepted, coefficients = loop.stacked
    t_end, y_end, _, _, _, *counts, status = loop.last[:8]
    crossed = loop.last[8 + len(memory) + len(events) :]
    return Path(
        method, direction, starts, t, before, y, accepted, coefficients, loop.taken,
        t_end, y_end, status, counts, crossed,
    )  # fmt: skip


# --- explicit methods -------------------------------------------------------------------------------------------------
# RK23: Bogacki and Shampine, Appl. Math. Lett. 2 (1989). RK45: Dormand and Prince, J. Comp. Appl. Math. 6 (1980), with
# the interpolant of Shampine, Math. Comp. 46 (1986). DOP853: Hairer, Norsett and Wanner, II.10; the coefficients are
# those of SciPy's class.
#
#     k1 = f;  k2 = fun(t + c2 h, y + h a21 k1);  ...       y + h (b1 k1 + b2 k2 + ...)


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


# --- Radau IIA of order 5 ---------------------------------------------------------------------------------------------
# Implicit Runge-Kutta with three stages, for stiff problems.
#
#     y' = -1000 (y - cos t)          steps as long as cos asks for; an explicit method needs some 500 for a unit of t
#
# It is L-stable and stiffly accurate, and keeps its order for equations that become algebraic, which BDF of higher
# orders is not (A-stable only to order 2). A Rosenbrock method needs no iteration, but differentiates the Jacobian in
# its adjoint; here the derivative of a step is that of its equation z = h A fun(t + c h, y + z), by one linear system
# with the exact Jacobians at the stages, of any order. The iteration, the estimate and the choice of steps are those of
# Hairer and Wanner, Solving Ordinary Differential Equations II, IV.8, as SciPy has them; the Jacobian is made anew for
# each attempt.

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


Factors = tuple[Node, Node]
"""An LU factorisation."""


def systems(slope: Node, h: Node) -> tuple[Factors, Factors]:
    """Return the factors of the two matrices of the iteration. The complex pair is one real system of twice the size,
    for there are no complex dtypes."""
    unit = T.eye(slope.shape[0], dtype=slope.type.dtype)
    along, across = (part / h for part in PAIR)
    block = along * unit - slope
    upper, lower = [block, -across * unit], [across * unit, block]
    whole = T.concatenate([T.concatenate(row, axis=1) for row in (upper, lower)], axis=0)
    return T.linalg.lu_factor((REAL / h) * unit - slope), T.linalg.lu_factor(whole)


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
        factors = systems(jacobian(fun(t, y), y, disconnected_inputs="ignore"), step)
        scale = stop_gradient(tolerances.scale(y))
        ratio = step / T.switch(T.eq(last, 0), 1.0, last)
        x = 1 + ratio * as_node(C.astype(kind))
        guess = T.stack([polynomial(coefficients, x[row]) - polynomial(coefficients, 1.0) for row in range(3)])
        guess = T.switch(T.eq(last, 0), 0.0, guess)
        tolerance = T.maximum(10 * np.finfo(kind).eps / tolerances.rtol, T.minimum(0.03, tolerances.rtol**0.5))
        found, converged, rounds = iterate(fun, times, y, step, guess, (scale, tolerance), factors)
        z = differentiable(fun, at, h, stop_gradient(found))
        after = at.y + z[2]
        part = T.dot(as_node(ERROR.astype(kind)), found) / step
        scale = tolerances.scale(y, stop_gradient(after))
        raw = T.linalg.lu_solve(factors[0], f + part, on_error="nan")
        filtered = T.linalg.lu_solve(factors[0], fun(t, y + raw) + part, on_error="nan")
        error = norm(raw / scale)
        # the filtered estimate (IV.8, 8.19 and 8.20) does not see what decays within the step
        error = T.switch(at.rejected & (error > 1), norm(filtered / scale), error)
        safety = 0.9 * (2 * ITERATIONS + 1) / (2 * ITERATIONS + rounds)
        multiplier = abs(step) / T.switch(T.eq(last, 0), 1.0, abs(last)) * (error_before / positive(error)) ** 0.25
        multiplier = T.switch(T.eq(last, 0) | T.eq(error, 0), 1.0, multiplier)
        factor = safety * T.minimum(1.0, multiplier) * positive(error) ** -0.25
        accepted = converged & (error < 1)
        grown = T.switch(T.eq(error, 0), MAX_FACTOR, T.minimum(MAX_FACTOR, factor))
        grown = T.switch(at.rejected, T.minimum(1.0, grown), grown)
        shrunk = T.switch(converged & ~T.isnan(error), T.maximum(MIN_FACTOR, factor), 0.5)
        whole = T.stack([T.dot(as_node(column.astype(kind)), z) for column in POWERS.T])
        memory = tuple(
            stop_gradient(T.switch(accepted, new, old))
            for new, old in ((whole, coefficients), (step, last), (positive(error), error_before))
        )
        longer, counts = T.switch(accepted, grown, shrunk), (3 * rounds + 2, 1)
        return Attempt(after, fun(at.t + h, after), accepted, longer, whole, memory, counts)

    def between(self, x: Node, h: Node, start: Node, end: Node, coefficients: Node) -> Node:
        """Return values at fractions `x` of steps."""
        return start + x * (coefficients[:, 0] + x * (coefficients[:, 1] + x * coefficients[:, 2]))


def polynomial(coefficients: Node, x: Node | float) -> Node:
    """Return the polynomial of a step, less its value at the beginning."""
    return x * (coefficients[0] + x * (coefficients[1] + x * coefficients[2]))


def positive(error: Node) -> Node:
    """Return an error, which is not 0."""
    return T.maximum(error, np.finfo(error.type.dtype).tiny)


def iterate(
    fun: Derivative, times: list[Node], y: Node, h: Node, guess: Node, limits: tuple[Node, Node],
    factors: tuple[Factors, Factors],
) -> tuple[Node, Node, Node]:  # fmt: skip
    """Return the stages z, whether the simplified Newton iteration converged, and its rounds. limits: the scale of the
    error and the tolerance."""
    kind, count = y.type.dtype, y.shape[0]
    (scale, tolerance), (real, pair) = limits, factors
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
        right = T.dot(into, f) - turned
        both = T.linalg.lu_solve(pair, T.concatenate([right[1], right[2]]), on_error="nan")
        one = T.linalg.lu_solve(real, right[0], on_error="nan")
        change = T.stack([one, both[:count], both[count:]])
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
