"""By hand: states in registers, or in two rows that take turns; gradients by the adjoint equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from benchmarks.by_hand.compile import inlined, serial, threaded
from benchmarks.by_hand.vecmath import sine_and_cosine
from benchmarks.workload import Array, Data, Program

# --- Lotka and Volterra's equations, by Runge and Kutta ---------------------------------------------------------------

STEP = 0.01
HALF, SIXTH, THIRD = STEP / 2, STEP / 6, STEP / 3


@inlined
def field(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
    both = x * y
    return a * x - b * both, c * both - d * y


@inlined
def pull(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any, p: Any, q: Any) -> Any:
    """The cotangents of x and y; then those of the rates, whose sums go over all stages."""
    both = x * y
    return p * (a - b * y) + q * c * y, q * (c * x - d) - p * b * x, p * x, p * both, q * both, q * y


@serial
def lotka(rates: Any, x0: Any, y0: Any, seen_x: Any, seen_y: Any, xs: Any, ys: Any) -> Any:
    a, b, c, d = rates[0], rates[1], rates[2], rates[3]
    n = seen_x.size
    x, y = x0[()], y0[()]
    xs[0], ys[0] = x, y
    for t in range(n):
        p1, q1 = field(a, b, c, d, x, y)
        p2, q2 = field(a, b, c, d, x + HALF * p1, y + HALF * q1)
        p3, q3 = field(a, b, c, d, x + HALF * p2, y + HALF * q2)
        p4, q4 = field(a, b, c, d, x + STEP * p3, y + STEP * q3)
        x += SIXTH * (p1 + p4) + THIRD * (p2 + p3)
        y += SIXTH * (q1 + q4) + THIRD * (q2 + q3)
        xs[t + 1], ys[t + 1] = x, y
    cost = 0.0
    to_x, to_y = 0.0, 0.0
    to_a, to_b, to_c, to_d = 0.0, 0.0, 0.0, 0.0
    factor = 2.0 / n
    for back in range(n):
        t = n - 1 - back
        error, other = xs[t + 1] - seen_x[t], ys[t + 1] - seen_y[t]
        cost += error * error + other * other
        to_x += factor * error
        to_y += factor * other
        x, y = xs[t], ys[t]
        p1, q1 = field(a, b, c, d, x, y)
        x2, y2 = x + HALF * p1, y + HALF * q1
        p2, q2 = field(a, b, c, d, x2, y2)
        x3, y3 = x + HALF * p2, y + HALF * q2
        p3, q3 = field(a, b, c, d, x3, y3)
        x4, y4 = x + STEP * p3, y + STEP * q3
        u4, v4, a4, b4, c4, d4 = pull(a, b, c, d, x4, y4, SIXTH * to_x, SIXTH * to_y)
        u3, v3, a3, b3, c3, d3 = pull(a, b, c, d, x3, y3, THIRD * to_x + STEP * u4, THIRD * to_y + STEP * v4)
        u2, v2, a2, b2, c2, d2 = pull(a, b, c, d, x2, y2, THIRD * to_x + HALF * u3, THIRD * to_y + HALF * v3)
        u1, v1, a1, b1, c1, d1 = pull(a, b, c, d, x, y, SIXTH * to_x + HALF * u2, SIXTH * to_y + HALF * v2)
        to_x += (u1 + u2) + (u3 + u4)
        to_y += (v1 + v2) + (v3 + v4)
        to_a += (a1 + a2) + (a3 + a4)
        to_b -= (b1 + b2) + (b3 + b4)
        to_c += (c1 + c2) + (c3 + c4)
        to_d -= (d1 + d2) + (d3 + d4)
    return cost / n, np.array((to_a, to_b, to_c, to_d))


def build_lotka(library: Any, data: Data) -> Program:
    xs, ys = np.empty((2, data.arguments[3].size + 1))

    def call(*arguments: Array) -> Any:
        return lotka(*arguments, xs, ys)

    return Program(call)


# --- double pendulums, by leapfrog ------------------------------------------------------------------------------------

PENDULUM_STEP = 0.002
GRAVITY = 9.81
TOGETHER = 64
"""Pendulums that go through all steps before others do: some vectors, whose operations overlap."""


@serial
def swing(a: Any, b: Any, v: Any, w: Any, steps: int) -> None:
    for _ in range(steps):
        for i in range(a.size):
            turn, fall = sine_and_cosine(a[i] - b[i])
            sine, cosine = sine_and_cosine(a[i])
            other, _ = sine_and_cosine(a[i] - 2.0 * b[i])
            inverse = 1.0 / (2.0 + 2.0 * turn * turn)
            v2, w2 = v[i] * v[i], w[i] * w[i]
            up = (-3.0 * GRAVITY * sine - GRAVITY * other - 2.0 * turn * (w2 + v2 * fall)) * inverse
            down = 2.0 * turn * (2.0 * v2 + 2.0 * GRAVITY * cosine + w2 * fall) * inverse
            v[i] += PENDULUM_STEP * up
            w[i] += PENDULUM_STEP * down
            a[i] += PENDULUM_STEP * v[i]
            b[i] += PENDULUM_STEP * w[i]


@threaded
def swing_all(a: Any, b: Any, v: Any, w: Any, steps: int) -> None:
    for chunk in prange((a.size + TOGETHER - 1) // TOGETHER):
        here = slice(chunk * TOGETHER, (chunk + 1) * TOGETHER)
        swing(a[here], b[here], v[here], w[here], steps)


def build_pendulums(library: Any, data: Data) -> Program:
    def call(*arguments: Array) -> Any:
        *state, steps = arguments
        state = [array.copy() for array in state]
        swing_all(*state, int(steps))
        return state

    return Program(call)


# --- a front ----------------------------------------------------------------------------------------------------------


@serial
def advance(rate: Any, growth: Any, u: Any, new: Any) -> None:
    """One step into another row, the two cells at the ends by themselves."""
    last = u.size - 1
    new[0] = u[0] + rate * (u[last] + u[1] - 2.0 * u[0]) + growth * u[0] * (1.0 - u[0])
    for i in range(1, last):
        new[i] = u[i] + rate * (u[i - 1] + u[i + 1] - 2.0 * u[i]) + growth * u[i] * (1.0 - u[i])
    new[last] = u[last] + rate * (u[last - 1] + u[0] - 2.0 * u[last]) + growth * u[last] * (1.0 - u[last])


@serial
def front(rate: Any, growth: Any, u: Any, steps: Any) -> Any:
    one, other = u.copy(), np.empty_like(u)
    for _ in range(steps[()] // 2):
        advance(rate[()], growth[()], one, other)
        advance(rate[()], growth[()], other, one)
    if steps[()] % 2:
        advance(rate[()], growth[()], one, other)
        return other
    return one


@inlined
def edge(rate: Any, growth: Any, u: Any, pulls: Any, new: Any, i: int, before: int, after: int) -> Any:
    new[i] = pulls[i] * (1.0 - 2.0 * rate + growth * (1.0 - 2.0 * u[i])) + rate * (pulls[before] + pulls[after])
    return pulls[i] * (u[before] + u[after] - 2.0 * u[i]), pulls[i] * u[i] * (1.0 - u[i])


@serial
def retreat(rate: Any, growth: Any, u: Any, pulls: Any, new: Any) -> Any:
    """The cotangents before a step, and what it adds to those of both rates."""
    last = u.size - 1
    to_rate, to_growth = 0.0, 0.0
    before, here, after = u[:-2], u[1:-1], u[2:]
    pull, inner = pulls[1:-1], new[1:-1]
    pull_before, pull_after = pulls[:-2], pulls[2:]
    for i in range(here.size):
        to_rate += pull[i] * (before[i] + after[i] - 2.0 * here[i])
        to_growth += pull[i] * (here[i] * (1.0 - here[i]))
        kept = 1.0 - 2.0 * rate + growth * (1.0 - 2.0 * here[i])
        inner[i] = pull[i] * kept + rate * (pull_before[i] + pull_after[i])
    one = edge(rate, growth, u, pulls, new, 0, last, 1)
    other = edge(rate, growth, u, pulls, new, last, last - 1, 0)
    return to_rate + one[0] + other[0], to_growth + one[1] + other[1]


@serial
def front_gradient(rate: Any, growth: Any, u: Any, steps: Any) -> Any:
    """The first state of each block is kept, and the states of the block that is gone through backward."""
    n = steps[()]
    size = max(1, int(np.sqrt(n)))
    blocks = (n + size - 1) // size
    firsts, states = np.empty((blocks + 1, u.size)), np.empty((size + 1, u.size))
    firsts[0] = u
    for block in range(blocks):
        states[0] = firsts[block]
        count = min(size, n - block * size)
        for t in range(count):
            advance(rate[()], growth[()], states[t], states[t + 1])
        firsts[block + 1] = states[count]
    end = firsts[blocks]
    cost, to_rate, to_growth = 0.0, 0.0, 0.0
    pulls, other = np.empty_like(u), np.empty_like(u)
    for i in range(u.size):
        cost += end[i] * end[i]
        pulls[i] = 2.0 / u.size * end[i]
    for back in range(blocks):
        block = blocks - 1 - back
        states[0] = firsts[block]
        count = min(size, n - block * size)
        for t in range(count - 1):
            advance(rate[()], growth[()], states[t], states[t + 1])
        for t in range(count):
            more, other_more = retreat(rate[()], growth[()], states[count - 1 - t], pulls, other)
            to_rate += more
            to_growth += other_more
            pulls, other = other, pulls
    return cost / u.size, to_rate, to_growth


BUILDERS = {
    "lotka-volterra-gradient": build_lotka,
    "double-pendulums": build_pendulums,
    "front-last": lambda library, data: Program(front),
    "front-checkpoint": lambda library, data: Program(front_gradient),
}
