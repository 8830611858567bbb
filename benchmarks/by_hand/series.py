"""By hand: likelihoods forward, and their adjoint equations backward over what was kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.by_hand.compile import inlined, serial
from benchmarks.by_hand.vecmath import log
from benchmarks.workload import Array, Data, Program

# --- GARCH(1, 1) ------------------------------------------------------------------------------------------------------


@serial
def garch(omega: Any, alpha: Any, beta: Any, r: Any, squares: Any, h: Any, pulls: Any) -> Any:
    """The recurrences alone are loops with a carry, the logarithm and the division vectorise in between."""
    n = r.size
    total = 0.0
    for t in range(n):
        squares[t] = r[t] * r[t]
        total += squares[t]
        pulls[t] = omega[()] + alpha[()] * squares[t]
    h[0] = total / n
    carry = h[0]
    slope = beta[()]
    for t in range(1, n):
        carry = slope * carry + pulls[t - 1]
        h[t] = carry
    cost = 0.0
    for t in range(1, n):
        inverse = 1.0 / h[t]
        ratio = squares[t] * inverse
        cost += log(h[t]) + ratio
        pulls[t] = 0.5 * inverse * (1.0 - ratio)
    carry = 0.0
    to_omega = 0.0
    to_alpha = 0.0
    to_beta = 0.0
    for back in range(1, n):
        t = n - back
        carry = slope * carry + pulls[t]
        to_omega += carry
        to_alpha += carry * squares[t - 1]
        to_beta += carry * h[t - 1]
    return 0.5 * cost, to_omega, to_alpha, to_beta


def build_garch(library: Any, data: Data) -> Program:
    work = np.empty((3, data.arguments[3].size))
    return Program(lambda omega, alpha, beta, r: garch(omega, alpha, beta, r, work[0], work[1], work[2]))


# --- the Kalman filter ------------------------------------------------------------------------------------------------


@inlined
def times(m: Any, x: Any) -> Any:
    """A matrix of 3 x 3, row by row, times a vector."""
    return (
        m[0] * x[0] + m[1] * x[1] + m[2] * x[2],
        m[3] * x[0] + m[4] * x[1] + m[5] * x[2],
        m[6] * x[0] + m[7] * x[1] + m[8] * x[2],
    )


@inlined
def symmetric_times(s: Any, x: Any) -> Any:
    """A symmetric matrix, as the six elements from the diagonal on, times a vector."""
    return times((s[0], s[1], s[2], s[1], s[3], s[4], s[2], s[4], s[5]), x)


@inlined
def between(m: Any, s: Any) -> Any:
    """m s m' of a symmetric s."""
    a = symmetric_times(s, (m[0], m[1], m[2]))
    b = symmetric_times(s, (m[3], m[4], m[5]))
    c = symmetric_times(s, (m[6], m[7], m[8]))
    first, second = times(m, a), times(m, b)
    return first[0], first[1], first[2], second[1], second[2], times(m, c)[2]


@inlined
def rank_one(s: Any, x: Any, factor: Any) -> Any:
    """s + factor x x'."""
    a, b, c = factor * x[0], factor * x[1], factor * x[2]
    return s[0] + a * x[0], s[1] + a * x[1], s[2] + a * x[2], s[3] + b * x[1], s[4] + b * x[2], s[5] + c * x[2]


@serial
def kalman(logs: Any, move: Any, seen: Any, mean: Any, spread: Any, y: Any, kept: Any) -> Any:
    """Everything of three elements is in registers; `kept`: error, what it shares with the states, its variance."""
    variances = np.exp(logs)
    m = move[0, 0], move[0, 1], move[0, 2], move[1, 0], move[1, 1], move[1, 2], move[2, 0], move[2, 1], move[2, 2]
    z = seen[0], seen[1], seen[2]
    x = mean[0], mean[1], mean[2]
    s = spread[0, 0], spread[0, 1], spread[0, 2], spread[1, 1], spread[1, 2], spread[2, 2]
    q, noise = (variances[0], variances[1], variances[2]), variances[3]
    n = y.size
    for t in range(n):
        error = y[t] - (z[0] * x[0] + z[1] * x[1] + z[2] * x[2])
        g = symmetric_times(s, z)
        total = z[0] * g[0] + z[1] * g[1] + z[2] * g[2] + noise
        inverse = 1.0 / total
        kept[0, t], kept[1, t], kept[2, t], kept[3, t], kept[4, t] = error, total, g[0], g[1], g[2]
        gain = error * inverse
        x = times(m, (x[0] + g[0] * gain, x[1] + g[1] * gain, x[2] + g[2] * gain))
        s = between(m, rank_one(s, g, -inverse))
        s = s[0] + q[0], s[1], s[2], s[3] + q[1], s[4], s[5] + q[2]
    cost = 0.0
    for t in range(n):
        cost += log(kept[1, t]) + kept[0, t] * kept[0, t] / kept[1, t]
    turned = m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]
    to_x, to_s = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for back in range(n):
        t = n - 1 - back
        error, inverse, g = kept[0, t], 1.0 / kept[1, t], (kept[2, t], kept[3, t], kept[4, t])
        first += to_s[0]
        second += to_s[3]
        third += to_s[5]
        a, to_s = times(turned, to_x), between(turned, to_s)
        along = a[0] * g[0] + a[1] * g[1] + a[2] * g[2]
        bent = symmetric_times(to_s, g)
        quadratic = g[0] * bent[0] + g[1] * bent[1] + g[2] * bent[2]
        to_error = (along + error) * inverse
        to_total = (0.5 - (along * error + 0.5 * error * error - quadratic) * inverse) * inverse
        fourth += to_total
        u = (
            (a[0] * error - 2.0 * bent[0]) * inverse + z[0] * to_total,
            (a[1] * error - 2.0 * bent[1]) * inverse + z[1] * to_total,
            (a[2] * error - 2.0 * bent[2]) * inverse + z[2] * to_total,
        )
        to_x = a[0] - z[0] * to_error, a[1] - z[1] * to_error, a[2] - z[2] * to_error
        to_s = (
            to_s[0] + u[0] * z[0],
            to_s[1] + 0.5 * (u[0] * z[1] + u[1] * z[0]),
            to_s[2] + 0.5 * (u[0] * z[2] + u[2] * z[0]),
            to_s[3] + u[1] * z[1],
            to_s[4] + 0.5 * (u[1] * z[2] + u[2] * z[1]),
            to_s[5] + u[2] * z[2],
        )
    variances[0] *= first
    variances[1] *= second
    variances[2] *= third
    variances[3] *= fourth
    return 0.5 * cost, variances


def build_kalman(library: Any, data: Data) -> Program:
    kept = np.empty((5, data.arguments[5].size))

    def call(*arguments: Array) -> Any:
        return kalman(*arguments, kept)

    return Program(call)


BUILDERS = {"garch-gradient": build_garch, "kalman-gradient": build_kalman}
