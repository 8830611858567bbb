"""Time series: steps of 10 to 500 operations, each from the last one's result."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.sweep.program import Kind, Numbers

# --- hidden Markov model: the likelihood of a series ------------------------------------------------------------------


def hmm_data(rng: Numbers, states: int, steps: int) -> tuple[Any, ...]:
    return np.log(rng.dirichlet(np.ones(states), states)), rng.normal(size=(steps, states))


def hmm_logsumexp(lib: Any, moves: Any, seen: Any) -> Any:
    def step(alpha: Any, row: Any) -> Any:
        return lib.special.logsumexp(alpha[:, None] + moves, axis=0) + row, None

    return lib.special.logsumexp(lib.lax.scan(step, seen[0], seen[1:])[0])


def hmm_maximum(lib: Any, moves: Any, seen: Any) -> Any:
    def total(x: Any) -> Any:
        most = lib.np.max(x, axis=0)
        return most + lib.np.log(lib.np.sum(lib.np.exp(x - most), axis=0))

    def step(alpha: Any, row: Any) -> Any:
        return total(alpha[:, None] + moves) + row, None

    return total(lib.lax.scan(step, seen[0], seen[1:])[0])


def hmm_rows(lib: Any, moves: Any, seen: Any) -> Any:
    turned = moves.T

    def step(t: Any, alpha: Any) -> Any:
        return lib.special.logsumexp(turned + alpha, axis=1) + seen[t]

    return lib.special.logsumexp(lib.lax.fori_loop(1, seen.shape[0], step, seen[0]))


def hmm_loops(moves: Any, seen: Any) -> Any:
    steps, k = seen.shape
    alpha, new = seen[0].copy(), seen[0].copy()
    for t in range(1, steps):
        for j in range(k):
            most = -np.inf
            for i in range(k):
                most = max(most, alpha[i] + moves[i, j])
            total = 0.0
            for i in range(k):
                total += np.exp(alpha[i] + moves[i, j] - most)
            new[j] = np.log(total) + most + seen[t, j]
        alpha[:] = new
    most = alpha.max()
    total = 0.0
    for i in range(k):
        total += np.exp(alpha[i] - most)
    return np.log(total) + most


def hmm_slopes(moves: Any, seen: Any) -> Any:
    steps, k = seen.shape
    alpha, weights = np.empty_like(seen), np.empty((steps, k, k), seen.dtype)
    alpha[0] = seen[0]
    for t in range(1, steps):
        for j in range(k):
            most = -np.inf
            for i in range(k):
                most = max(most, alpha[t - 1, i] + moves[i, j])
            total = 0.0
            for i in range(k):
                weights[t, i, j] = np.exp(alpha[t - 1, i] + moves[i, j] - most)
                total += weights[t, i, j]
            for i in range(k):
                weights[t, i, j] /= total
            alpha[t, j] = np.log(total) + most + seen[t, j]
    most = alpha[steps - 1].max()
    slope = np.exp(alpha[steps - 1] - most)
    total = slope.sum()
    slope /= total
    to_moves, to_seen, before = np.zeros_like(moves), np.zeros_like(seen), np.empty_like(slope)
    for t in range(steps - 1, 0, -1):
        to_seen[t] = slope
        for i in range(k):
            back = 0.0
            for j in range(k):
                part = weights[t, i, j] * slope[j]
                to_moves[i, j] += part
                back += part
            before[i] = back
        slope[:] = before
    to_seen[0] = slope
    return np.log(total) + most, to_moves, to_seen


# --- Kalman filter: the likelihood of a series ------------------------------------------------------------------------


def kalman_data(rng: Numbers, states: int, observed: int, steps: int) -> tuple[Any, ...]:
    move = 0.9 * np.eye(states) + 0.1 * np.eye(states, k=1)
    look = np.eye(observed, states) + 0.1 * rng.normal(size=(observed, states))
    return move, 0.1 * np.eye(states), look, 0.2 * np.eye(observed), rng.normal(size=(steps, observed))


def kalman(lib: Any, gain: Any, logdet: Any, move: Any, noise: Any, look: Any, blur: Any, seen: Any) -> Any:
    """The filter with a given way to solve and to take the logarithm of a determinant."""

    def step(carry: Any, row: Any) -> Any:
        mean, cov, total = carry
        mean, cov = move @ mean, move @ cov @ move.T + noise
        off, spread = row - look @ mean, look @ cov @ look.T + blur
        turned, weighted = gain(spread, look @ cov, off)
        new = (mean + turned.T @ off, cov - turned.T @ look @ cov, total + off @ weighted + logdet(spread))
        return new, None

    n = move.shape[0]
    start = (lib.np.zeros(n, move.dtype), lib.np.eye(n, dtype=move.dtype), lib.np.zeros((), move.dtype))
    return -0.5 * lib.lax.scan(step, start, seen)[0][2]


def kalman_solve(lib: Any, *arguments: Any) -> Any:
    solve = lib.np.linalg.solve
    return kalman(lib, lambda s, hp, v: (solve(s, hp), solve(s, v)), lambda s: lib.np.linalg.slogdet(s)[1], *arguments)


def kalman_inverse(lib: Any, *arguments: Any) -> Any:
    def gain(spread: Any, turned: Any, off: Any) -> Any:
        inverse = lib.np.linalg.inv(spread)
        return inverse @ turned, inverse @ off

    return kalman(lib, gain, lambda s: lib.np.log(lib.np.linalg.det(s)), *arguments)


def kalman_loops(move: Any, noise: Any, look: Any, blur: Any, seen: Any) -> Any:  # noqa: C901, PLR0912
    """In one function, as numba wants it: a product by a product, a solution, an update."""
    n, m = move.shape[0], look.shape[0]
    mean, cov, total = np.zeros(n), np.eye(n), 0.0
    ahead, half, wide = np.empty(n), np.empty((n, n)), np.empty((n, n))
    off, turned, spread, solved = np.empty(m), np.empty((m, n)), np.empty((m, m)), np.empty((m, n + 1))
    for t in range(seen.shape[0]):
        for i in range(n):
            value = 0.0
            for k in range(n):
                value += move[i, k] * mean[k]
            ahead[i] = value
            for j in range(n):
                value = 0.0
                for k in range(n):
                    value += move[i, k] * cov[k, j]
                half[i, j] = value
        for i in range(n):
            for j in range(n):
                value = noise[i, j]
                for k in range(n):
                    value += half[i, k] * move[j, k]
                wide[i, j] = value
        for i in range(m):
            value = seen[t, i]
            for k in range(n):
                value -= look[i, k] * ahead[k]
            off[i] = value
            for j in range(n):
                value = 0.0
                for k in range(n):
                    value += look[i, k] * wide[k, j]
                turned[i, j] = value
        for i in range(m):
            for j in range(m):
                value = blur[i, j]
                for k in range(n):
                    value += turned[i, k] * look[j, k]
                spread[i, j] = value
            solved[i, :n] = turned[i]
            solved[i, n] = off[i]
        for i in range(m):  # Gauss without exchange of rows: the matrix is positive definite
            total += np.log(spread[i, i])
            for j in range(i + 1, m):
                factor = spread[j, i] / spread[i, i]
                for k in range(i, m):
                    spread[j, k] -= factor * spread[i, k]
                for k in range(n + 1):
                    solved[j, k] -= factor * solved[i, k]
        for i in range(m - 1, -1, -1):
            for k in range(n + 1):
                value = solved[i, k]
                for j in range(i + 1, m):
                    value -= spread[i, j] * solved[j, k]
                solved[i, k] = value / spread[i, i]
        for i in range(m):
            total += off[i] * solved[i, n]
        for i in range(n):
            value = ahead[i]
            for k in range(m):
                value += solved[k, i] * off[k]
            mean[i] = value
            for j in range(n):
                value = wide[i, j]
                for k in range(m):
                    value -= solved[k, i] * turned[k, j]
                cov[i, j] = value
    return -0.5 * total


# --- GARCH(1, 1) ------------------------------------------------------------------------------------------------------


def garch_data(rng: Numbers, steps: int) -> tuple[Any, ...]:
    return np.array([0.1, 0.1, 0.8]), rng.normal(size=steps)


def garch_outputs(lib: Any, p: Any, returns: Any) -> Any:
    def step(variance: Any, x: Any) -> Any:
        variance = p[0] + p[1] * x * x + p[2] * variance
        return variance, lib.np.log(variance) + x * x / variance

    return lib.np.sum(lib.lax.scan(step, lib.np.ones((), p.dtype), returns)[1])


def garch_carry(lib: Any, p: Any, returns: Any) -> Any:
    constant, alpha, beta = p[0], p[1], p[2]

    def step(carry: Any, x: Any) -> Any:
        variance, total = carry
        variance = constant + alpha * x**2 + beta * variance
        return (variance, total + lib.np.log(variance) + x**2 / variance), None

    start = (lib.np.ones((), p.dtype), lib.np.zeros((), p.dtype))
    return lib.lax.scan(step, start, returns)[0][1]


def garch_variances(lib: Any, p: Any, returns: Any) -> Any:
    squares = returns**2

    def step(variance: Any, x: Any) -> Any:
        variance = p[0] + p[1] * x + p[2] * variance
        return variance, variance

    variances = lib.lax.scan(step, lib.np.ones((), p.dtype), squares)[1]
    return lib.np.sum(lib.np.log(variances) + squares / variances)


def garch_loops(p: Any, returns: Any) -> Any:
    variance, total = 1.0, 0.0
    for x in returns:
        variance = p[0] + p[1] * x * x + p[2] * variance
        total += np.log(variance) + x * x / variance
    return total


def garch_slopes(p: Any, returns: Any) -> Any:
    variance, total, slopes = 1.0, 0.0, np.zeros(3)
    first, second, third = 0.0, 0.0, 0.0
    for x in returns:
        first, second, third = 1.0 + p[2] * first, x * x + p[2] * second, variance + p[2] * third
        variance = p[0] + p[1] * x * x + p[2] * variance
        total += np.log(variance) + x * x / variance
        outer = 1 / variance - x * x / (variance * variance)
        slopes[0] += outer * first
        slopes[1] += outer * second
        slopes[2] += outer * third
    return total, slopes


# --- double exponential smoothing of several series -------------------------------------------------------------------


def smoothing_data(rng: Numbers, series: int, steps: int) -> tuple[Any, ...]:
    return np.array(0.3), np.array(0.1), np.cumsum(rng.normal(size=(steps, series)), axis=0)


def smoothing_pair(lib: Any, a: Any, b: Any, x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        level, trend = carry
        new = a * row + (1 - a) * (level + trend)
        return (new, b * (new - level) + (1 - b) * trend), row - level - trend

    off = lib.lax.scan(step, (x[0], lib.np.zeros_like(x[0])), x[1:])[1]
    return lib.np.mean(off**2)


def smoothing_error(lib: Any, a: Any, b: Any, x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        level, trend = carry
        off = row - (level + trend)
        return (level + trend + a * off, trend + a * b * off), lib.np.sum(off * off)

    sums = lib.lax.scan(step, (x[0], 0 * x[0]), x[1:])[1]
    return lib.np.sum(sums) / x[1:].size


def smoothing_loops(a: Any, b: Any, x: Any) -> Any:
    level, trend, total = x[0].copy(), np.zeros_like(x[0]), 0.0
    for t in range(1, x.shape[0]):
        for k in range(x.shape[1]):
            off = x[t, k] - level[k] - trend[k]
            total += off * off
            level[k] += trend[k] + a[()] * off
            trend[k] += a[()] * b[()] * off
    return total / ((x.shape[0] - 1) * x.shape[1])


# --- a gated recurrent unit -------------------------------------------------------------------------------------------


def gru_data(rng: Numbers, units: int, inputs: int, steps: int) -> tuple[Any, ...]:
    w, u = rng.normal(size=(inputs, 3 * units)), rng.normal(size=(units, 3 * units))
    return 0.3 * w, 0.3 * u, 0.1 * rng.normal(size=3 * units), rng.normal(size=(steps, inputs))


def gru_slices(lib: Any, w: Any, u: Any, b: Any, xs: Any) -> Any:
    n = u.shape[0]

    def step(h: Any, x: Any) -> Any:
        g = x @ w + b
        update = 1 / (1 + lib.np.exp(-(g[:n] + h @ u[:, :n])))
        reset = 1 / (1 + lib.np.exp(-(g[n : 2 * n] + h @ u[:, n : 2 * n])))
        new = lib.np.tanh(g[2 * n :] + (reset * h) @ u[:, 2 * n :])
        return (1 - update) * new + update * h, None

    return lib.np.sum(lib.lax.scan(step, lib.np.zeros(n, u.dtype), xs)[0] ** 2)


def gru_ahead(lib: Any, w: Any, u: Any, b: Any, xs: Any) -> Any:
    n = u.shape[0]
    both, last = u[:, : 2 * n], u[:, 2 * n :]

    def step(h: Any, g: Any) -> Any:
        gates = lib.special.expit(g[: 2 * n] + h @ both)
        update, reset = gates[:n], gates[n:]
        h = h + (1 - update) * (lib.np.tanh(g[2 * n :] + (reset * h) @ last) - h)
        return h, None

    return lib.np.sum(lib.lax.scan(step, lib.np.zeros(n, u.dtype), xs @ w + b)[0] ** 2)


def gru_loops(w: Any, u: Any, b: Any, xs: Any) -> Any:
    n = u.shape[0]
    h, g = np.zeros(n, u.dtype), np.empty(3 * n, u.dtype)
    update, reset, new = np.empty_like(h), np.empty_like(h), np.empty_like(h)
    for t in range(xs.shape[0]):
        for j in range(3 * n):
            value = b[j]
            for k in range(xs.shape[1]):
                value += xs[t, k] * w[k, j]
            g[j] = value
        for j in range(n):
            one, other = g[j], g[n + j]
            for k in range(n):
                one += h[k] * u[k, j]
                other += h[k] * u[k, n + j]
            update[j] = 1 / (1 + np.exp(-one))
            reset[j] = 1 / (1 + np.exp(-other))
        for j in range(n):
            value = g[2 * n + j]
            for k in range(n):
                value += reset[k] * h[k] * u[k, 2 * n + j]
            new[j] = np.tanh(value)
        for j in range(n):
            h[j] = (1 - update[j]) * new[j] + update[j] * h[j]
    return (h * h).sum()


# --- a particle filter, its random numbers given ----------------------------------------------------------------------


def particles_data(rng: Numbers, particles: int, steps: int) -> tuple[Any, ...]:
    return rng.normal(size=steps), rng.normal(size=(steps, particles)), rng.uniform(size=steps)


def particles_search(lib: Any, seen: Any, noise: Any, offsets: Any) -> Any:
    n = noise.shape[1]
    places = lib.np.arange(n)

    def step(carry: Any, row: Any) -> Any:
        x, total = carry
        y, move, offset = row
        x = 0.9 * x + move
        weights = lib.np.exp(-0.5 * (y - x) ** 2)
        sums = lib.np.cumsum(weights)
        picked = lib.np.searchsorted(sums, (places + offset) / n * sums[-1])
        return (x[lib.np.minimum(picked, n - 1)], total + lib.np.log(sums[-1] / n)), None

    return lib.lax.scan(step, (noise[0], lib.np.zeros((), noise.dtype)), (seen, noise, offsets))[0][1]


def particles_loops(seen: Any, noise: Any, offsets: Any) -> Any:
    steps, n = noise.shape
    x, new, sums, total = noise[0].copy(), np.empty(n), np.empty(n), 0.0
    for t in range(steps):
        weight = 0.0
        for i in range(n):
            x[i] = 0.9 * x[i] + noise[t, i]
            weight += np.exp(-0.5 * (seen[t] - x[i]) ** 2)
            sums[i] = weight
        total += np.log(weight / n)
        k = 0
        for i in range(n):
            while k < n - 1 and sums[k] < (i + offsets[t]) / n * weight:
                k += 1
            new[i] = x[k]
        x[:] = new
    return total


KINDS = (
    Kind(
        "hmm",
        {"states": (2, 24), "steps": (50, 1000)},
        hmm_data,
        {"logsumexp": hmm_logsumexp, "maximum": hmm_maximum, "rows": hmm_rows},
        hmm_loops,
        hmm_slopes,
        wrt=(0, 1),
    ),
    Kind(
        "kalman",
        {"states": (2, 6), "observed": (1, 3), "steps": (50, 1000)},
        kalman_data,
        {"solve": kalman_solve, "inverse": kalman_inverse},
        kalman_loops,
        wrt=(0, 1, 3),
        dtypes=("float64",),
    ),
    Kind(
        "garch",
        {"steps": (100, 5000)},
        garch_data,
        {"outputs": garch_outputs, "carry": garch_carry, "variances": garch_variances},
        garch_loops,
        garch_slopes,
        wrt=(0,),
    ),
    Kind(
        "smoothing",
        {"series": (1, 50), "steps": (50, 1000)},
        smoothing_data,
        {"pair": smoothing_pair, "error": smoothing_error},
        smoothing_loops,
        wrt=(0, 1),
        dtypes=("float64",),
    ),
    Kind(
        "gru",
        {"units": (4, 16), "inputs": (2, 16), "steps": (20, 500)},
        gru_data,
        {"slices": gru_slices, "ahead": gru_ahead},
        gru_loops,
        wrt=(0, 1, 2),
    ),
    Kind(
        "particles",
        {"particles": (20, 1000), "steps": (20, 200)},
        particles_data,
        {"search": particles_search},
        particles_loops,
        dtypes=("float64",),
    ),
)
