"""Native loops that find minima within bounds and under constraints.

    projected(both, x, low, high, settings)         the least of a function, low <= x <= high
    augmented(f, limits, x, low, high, settings)    the same, and lower <= c(x) <= upper

`projected` holds what is at a bound and would leave, and takes a quasi-Newton step in the rest, of the last PAIRS steps
and changes of the gradient (L-BFGS: Byrd, Nocedal and Schnabel 1994, Representations of quasi-Newton matrices, theorem
2.2). A step ends on the bounds it would cross (two-metric projection: Bertsekas 1982, Projected Newton methods).

`augmented` adds to the function what the constraints are missed by, squared, and the multipliers times it; the
multipliers grow by what is missed (Nocedal and Wright, Numerical Optimization, 17.4). With s(x) = clip(c(x) + m / r,
lower, upper) the added term is r / 2 |c(x) + m / r - s(x)|^2, and m becomes m + r (c(x) - s(x)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import graphc.tensor as T
from graphc.control.functional import while_loop
from graphc.ir.node import Node
from graphc.ops.elementwise import cast
from graphc.scipy.optimize.equations import Function, with_gradient
from graphc.tensor.elementary import stop_gradient

__all__ = ["DONE", "INFEASIBLE", "NOT_A_NUMBER", "STUCK", "TOO_MANY", "Settings", "augmented", "clipped", "projected"]

DONE, TOO_MANY, STUCK, NOT_A_NUMBER, INFEASIBLE = range(5)
GOING = -1
PAIRS = 10
"""The steps of which the second derivatives are estimated."""
TRIALS = 30
"""The most values of the function along one step."""
ROUNDS = 60
"""The most changes of the multipliers."""
STEEPEST = 1e12
"""The factor of missed constraints above which there is no place that meets them."""

Both = Callable[[Node], tuple[Node, Node]]
"""A function of a vector: its value and its gradient."""


class Settings(NamedTuple):
    """gtol: the largest element of the projected gradient. ftol: the relative decrease of a step that ends the search.
    most: steps."""

    gtol: Node | float
    ftol: Node | float
    most: Node | int


class Minimum(NamedTuple):
    """A place, why the loop has ended, the numbers of steps and of values."""

    x: Node
    status: Node
    rounds: Node
    calls: Node


def clipped(x: Node, low: Node, high: Node) -> Node:
    """Return `x` within its bounds."""
    found: Node = T.minimum(T.maximum(x, low), high)
    return found


def rest(x: Node, gradient: Node, low: Node, high: Node) -> Node:
    """Return the largest element of the projected gradient, which is 0 at a minimum."""
    found: Node = T.max(abs(x - clipped(x - gradient, low, high)))
    return found


def _way(gradient: Node, free: Node, steps: Node, changes: Node) -> Node:
    """Return the quasi-Newton step of the free elements. steps, changes: of the last steps, the newest last; one that
    does not curve up among the free elements counts for nothing."""
    kind = gradient.type.dtype
    s, y = steps * free, changes * free
    curved = T.sum(s * y, axis=1)
    used = curved > np.finfo(kind).eps * T.sqrt(T.sum(s * s, axis=1) * T.sum(y * y, axis=1))
    s, y = (T.switch(used[:, None], each, 0.0) for each in (s, y))
    curved = T.switch(used, curved, 1.0)
    newest = T.max(T.switch(used, T.arange(PAIRS), -1))
    place = T.maximum(newest, 0)
    scale = T.switch(newest >= 0, curved[place] / T.maximum(T.sum(y[place] ** 2), np.finfo(kind).tiny), 1.0)
    scale = cast(T.switch(scale > 0, scale, 1.0), kind)
    upper = T.triu(T.dot(s, y.T), 1) + T.diagflat(curved)
    g = gradient * free
    first = T.linalg.solve_triangular(upper, T.dot(s, g), on_error="nan")
    inner = curved * first + scale * (T.dot(y, T.dot(y.T, first)) - T.dot(y, g))
    second = T.linalg.solve_triangular(upper, inner, trans=1, on_error="nan")
    found: Node = -(scale * g + T.dot(s.T, second) - scale * T.dot(y.T, first)) * free
    return found


def _search(
    both: Both, x: Node, way: Node, value: Node, gradient: Node, first: Node, low: Node, high: Node
) -> tuple[Node, ...]:
    """Return the end of a step, the value and the gradient there, whether the value is small enough, and the number of
    values (Armijo's condition along the projected way)."""
    kind = x.type.dtype
    slack = 10 * np.finfo(kind).eps * abs(value)

    def trial(state: tuple[Node, ...]) -> tuple[Node, ...]:
        a, *_, tried = state
        after = clipped(x + a * way, low, high)
        at, slope = both(after)
        down = T.sum(gradient * (after - x))
        found = at <= value + 1e-4 * down + slack
        bend = at - value - down
        shorter = T.switch(bend > 0, -down / (2 * T.switch(bend > 0, bend, 1.0)), 0.5)
        shorter = T.minimum(T.maximum(T.switch(T.isnan(shorter), 0.1, shorter), 0.1), 0.5)
        return cast(T.switch(found, a, a * shorter), kind), after, at, slope, found, tried + 1

    zero = T.constant(np.int64(0))
    start = (cast(first, kind), x, value, gradient, T.constant(False), zero)
    found: tuple[Node, ...] = while_loop(lambda state: ~state[4] & (state[5] < TRIALS), trial, start)[1:]
    return found


def projected(both: Both, guess: Node, low: Node, high: Node, settings: Settings) -> Minimum:
    """Return the least of a function within bounds."""
    kind = guess.type.dtype

    def status_of(x: Node, value: Node, gradient: Node, before: Node, found: Node, rounds: Node) -> Node:
        flat = rest(x, gradient, low, high) <= settings.gtol
        scale = T.maximum(T.maximum(abs(before), abs(value)), 1.0)
        still = found & (before - value <= settings.ftol * scale)
        bad = T.isnan(value) | T.any(T.isnan(gradient))
        going = T.switch(rounds >= settings.most, TOO_MANY, GOING)
        return cast(T.switch(bad, NOT_A_NUMBER, T.switch(flat | still, DONE, going)), "int64")

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        x, value, gradient, steps, changes, _, rounds, calls = state
        held = ((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))
        free = cast(~held, kind)
        way = _way(gradient, free, steps, changes)
        known = T.any(T.neq(steps, 0.0))
        falls = T.sum(way * gradient) < 0
        way = T.switch(falls, way, -gradient * free)
        short = T.minimum(1.0, 1 / T.maximum(T.sum(abs(gradient * free)), np.finfo(kind).tiny))
        after, at, slope, found, tried = _search(
            both, x, way, value, gradient, T.switch(known & falls, 1.0, short), low, high
        )
        s, y = after - x, slope - gradient
        size = T.sqrt(T.sum(s * s) * T.sum(y * y))
        takes = found & (T.sum(s * y) > np.finfo(kind).eps * size)
        steps = T.switch(takes, T.concatenate([steps[1:], s[None]]), T.switch(found, steps, 0.0))
        changes = T.switch(takes, T.concatenate([changes[1:], y[None]]), T.switch(found, changes, 0.0))
        status = status_of(after, at, slope, value, found, rounds + 1)
        status = T.switch(found, status, T.switch(known, GOING, STUCK))  # without the old steps it is tried again
        x, value, gradient = (
            T.switch(found, new, old) for new, old in ((after, x), (at, value), (slope, gradient))
        )  # fmt: skip
        return x, value, gradient, steps, changes, cast(status, "int64"), rounds + 1, calls + tried

    x = clipped(guess, low, high)
    value, gradient = both(x)
    zero = T.constant(np.int64(0))
    memory = T.zeros((PAIRS, x.shape[0]), dtype=kind)
    status = status_of(x, value, gradient, value, T.constant(False), zero)
    start = (x, value, gradient, memory, memory, status, zero, zero + 1)
    found = while_loop(lambda state: T.eq(state[5], GOING), step, start)
    return Minimum(found[0], found[5], found[6], found[7])


def augmented(
    value: Function, limits: tuple[Function, Node, Node], guess: Node, low: Node, high: Node, settings: Settings
) -> tuple[Minimum, Node]:
    """Return the least of a function within bounds and under constraints, and the multipliers. limits: the function of
    the constraints, its least and its greatest values."""
    missed, lower, upper = limits
    kind = guess.type.dtype
    tiny = np.finfo(kind).tiny

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        x, by, factor, before, goal, _, rounds, calls = state

        def whole(x: Node) -> Node:
            moved = missed(x) + by / factor
            return value(x) + factor / 2 * T.sum((moved - clipped(moved, lower, upper)) ** 2)

        both = with_gradient(whole)
        found = projected(both, x, low, high, Settings(goal, 0.0, settings.most))
        at = missed(found.x)
        moved = at + by / factor
        after = factor * (moved - clipped(moved, lower, upper))
        by_how_much = T.max(abs(at - clipped(moved, lower, upper)))
        met = by_how_much <= settings.gtol
        # a step that rounding hides ends a search as well as a small gradient does
        flat = (goal <= settings.gtol) & (T.eq(found.status, DONE) | T.eq(found.status, STUCK))
        factor_after = T.switch(by_how_much > before / 4, 10 * factor, factor)
        status = T.switch(met & flat, DONE, T.switch(rounds + 1 >= ROUNDS, TOO_MANY, GOING))
        status = T.switch(factor_after > STEEPEST, INFEASIBLE, status)
        status = T.switch(T.isnan(by_how_much) | T.eq(found.status, NOT_A_NUMBER), NOT_A_NUMBER, status)
        goal = T.maximum(T.minimum(goal / 10, by_how_much), settings.gtol)
        return (
            found.x, after, cast(factor_after, kind), by_how_much, cast(goal, kind), cast(status, "int64"), rounds + 1,
            calls + found.calls,
        )  # fmt: skip

    x = clipped(guess, low, high)
    at = missed(x)
    far = at - clipped(at, lower, upper)
    size = T.sum(far * far)
    factor = T.minimum(T.maximum(2 * abs(value(x)) / T.maximum(size, tiny), 1.0), 1e3)
    zero = T.constant(np.int64(0))
    first = T.maximum(cast(T.constant(1e-2), kind), settings.gtol)
    start = (
        x, T.zeros_like(at), cast(factor, kind), T.max(abs(far)), cast(first, kind), zero + GOING, zero, zero,
    )  # fmt: skip
    x, by, _, _, _, status, rounds, calls = map(
        stop_gradient, while_loop(lambda state: T.eq(state[5], GOING), step, start)
    )
    return Minimum(x, status, rounds, calls), by
