"""Adaptive steps of an initial value problem, as one loop that has derivatives.

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
from graphc.control.functional import cond, traced_step
from graphc.control.loop import Returned, State, flat, make_loop
from graphc.ir import sizes
from graphc.ir.node import Node, next_serial
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
    memory = method.start(y)
    kept, since = len(memory), next_serial()

    def advance(past: list[list[Node]]) -> Returned:
        t, y, f, h, rejected, nfev, njev, _, *more = flat(past)
        at = Place(t, y, f, rejected, tuple(more[:kept]))
        least = 10 * abs(elementwise("nextafter", t, direction * np.inf) - t)
        h = T.switch(rejected, h, T.maximum(T.minimum(h, longest), least))
        failed = rejected & (h < least)
        after = t + cast(h * direction, t.type.dtype)
        after = T.switch(direction * (after - end) > 0, end, after)
        made = method.attempt(fun, at, after - t, tolerances)
        accepted = made.accepted & ~failed
        longer = cast(stop_gradient(abs(after - t) * made.factor), t.type.dtype)
        new = (after, made.y, made.f, made.coefficients)
        old = (t, y, f, T.zeros_like(made.coefficients))
        t_next, y_next, f, coefficients = cond(accepted, lambda: new, lambda: old)
        values = [event.function(t_next, y_next) for event in events]
        before = more[kept : kept + len(events)]
        hits = [accepted & each.crossed(*pair) for each, *pair in zip(events, before, values, strict=True)]
        arrived = accepted & (direction * (after - end) >= 0)
        stopped = T.any(T.stack(hits)) if hits else T.constant(False)
        status = T.switch(stopped, STOPPED, T.switch(arrived, FINISHED, T.switch(failed, TOO_SMALL, TOO_MANY)))
        counts = [cast(count + more, "int64") for count, more in zip((nfev, njev), made.counts, strict=True)]
        state = [t_next, y_next, f, longer, ~accepted, *counts, cast(status, "int64"), *made.memory]
        events_now = [*map(stop_gradient, values), *hits]
        rows = [t, t_next, y, y_next, accepted, coefficients]
        return Returned([*state, *events_now, *rows], {}, arrived | failed | stopped, "integrate")

    zero, no = T.constant(np.int64(0)), T.constant(False)
    values = [event.function(begin, y) for event in events]
    initial = [begin, y, f, first, no, zero, zero, zero, *memory, *values, *[no] * len(events)]
    step, initial = traced_step([], [State(each, (-1,)) for each in initial], advance, since)
    done = make_loop(step, sizes.as_size(cast(as_node(max_steps), "int64")), [], initial)
    assert done.taken is not None
    starts, t, before, y, accepted, coefficients = done.stacked
    return Path(
        method, direction, starts, t, before, y, accepted, coefficients, done.taken, done.last[0], done.last[1],
        done.last[7], done.last[5:7], done.last[len(done.last) - len(events) :],
    )  # fmt: skip
