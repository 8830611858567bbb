"""Likelihoods of time series with their gradients: a scalar recurrence, and a filter whose states are matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

# --- GARCH(1, 1) ------------------------------------------------------------------------------------------------------


def returns(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: steps. omega, alpha, beta, then returns, one more than there are steps."""
    shocks = rng.normal(size=size[0] + 1)
    r, variance = np.empty_like(shocks), 1.0
    for t, shock in enumerate(shocks):
        r[t] = np.sqrt(variance) * shock
        variance = 0.1 + 0.08 * r[t] ** 2 + 0.85 * variance
    return Data((*(np.array(value) for value in (0.12, 0.1, 0.8)), r))


def garch_numpy(library: Any, data: Data) -> Program:
    def call(omega: Array, alpha: Array, beta: Array, r: Array) -> Any:
        squares, n = r * r, len(r)
        variances = np.empty_like(r)
        variances[0] = squares.mean()
        for t in range(1, n):
            variances[t] = omega + alpha * squares[t - 1] + beta * variances[t - 1]
        h, square = variances[1:], squares[1:]
        pulls = 0.5 * (1 / h - square / (h * h))
        for t in reversed(range(n - 2)):
            pulls[t] += beta * pulls[t + 1]
        gradients = pulls.sum(), pulls @ squares[:-1], pulls @ variances[:-1]
        return 0.5 * (np.log(h) + square / h).sum(), *gradients

    return Program(call)


def garch_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    omega, alpha, beta, r = T.dscalar("omega"), T.dscalar("alpha"), T.dscalar("beta"), T.dvector("r")
    h = library.scan(
        lambda before, h: omega + alpha * before**2 + beta * h, sequences=r[:-1], outputs_info=(r**2).mean()
    )
    cost = 0.5 * (T.log(h) + r[1:] ** 2 / h).sum()
    return Program(library.function([omega, alpha, beta, r], [cost, *library.grad(cost, [omega, alpha, beta])]))


def garch_jax(library: Any, data: Data) -> Program:
    def cost(omega: Any, alpha: Any, beta: Any, r: Any) -> Any:
        def step(h: Any, before: Any) -> Any:
            h = omega + alpha * before**2 + beta * h
            return h, h

        _, h = library.jax.lax.scan(step, (r**2).mean(), r[:-1])
        return 0.5 * (library.numpy.log(h) + r[1:] ** 2 / h).sum()

    def call(*inputs: Any) -> Any:
        value, gradients = library.jax.value_and_grad(cost, range(3))(*inputs)
        return value, *gradients

    return Program(library.jit(call))


def garch_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    step = library.compile(lambda omega, alpha, beta, before, h: omega + alpha * before**2 + beta * h)

    def call(*inputs: Any) -> Any:
        params, r = [x.requires_grad_() for x in inputs[:3]], inputs[3]
        h, variances = (r**2).mean(), []
        for before in r[:-1]:
            h = step(*params, before, h)
            variances.append(h)
        h = torch.stack(variances)
        cost = 0.5 * (torch.log(h) + r[1:] ** 2 / h).sum()
        return cost.detach(), *torch.autograd.grad(cost, params)

    return Program(call)


# --- a structural model: level, slope and a cycle, by the Kalman filter -----------------------------------------------


def observed(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: steps. Logarithms of four variances, what a step does to the states, what is seen of them, the first
    states and their covariance, and observations."""
    move, seen = np.array([[0.99, 1, 0], [0, 0.9, 0.1], [0, -0.1, 0.8]]), np.array([1.0, 0, 0.5])
    state, y = np.zeros(3), np.empty(size[0])
    for t in range(len(y)):
        y[t] = seen @ state + 0.5 * rng.normal()
        state = move @ state + np.array([0.3, 0.1, 0.2]) * rng.normal(size=3)
    return Data((np.log([0.1, 0.02, 0.05, 0.3]), move, seen, np.zeros(3), np.eye(3), y))


def kalman_numpy(library: Any, data: Data) -> Program:
    def call(logs: Array, move: Array, seen: Array, mean: Array, spread: Array, y: Array) -> Any:
        variances, cost, kept = np.exp(logs), 0.0, []
        for now in y:
            error, shared = now - seen @ mean, spread @ seen
            total = seen @ shared + variances[3]
            kept.append((error, shared, total))
            cost += 0.5 * (np.log(total) + error * error / total)
            mean = move @ (mean + shared * (error / total))
            spread = move @ (spread - np.outer(shared, shared) / total) @ move.T + np.diag(variances[:3])
        to_mean, to_spread, to_variances = np.zeros(3), np.zeros((3, 3)), np.zeros(4)
        for error, shared, total in reversed(kept):
            to_variances[:3] += np.diag(to_spread)
            a, to_spread = move.T @ to_mean, move.T @ to_spread @ move
            along = a @ shared
            to_error = (along + error) / total
            bent = to_spread @ shared
            to_total = (0.5 - (along * error + 0.5 * error * error - shared @ bent) / total) / total
            to_shared = (a * error - (bent + to_spread.T @ shared)) / total + seen * to_total
            to_variances[3] += to_total
            to_mean = a - seen * to_error
            to_spread = to_spread + np.outer(to_shared, seen)
        return cost, to_variances * variances

    return Program(call)


def kalman_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    logs, move, seen, y = T.dvector("logs"), T.dmatrix("move"), T.dvector("seen"), T.dvector("y")
    mean, spread = T.dvector("mean"), T.dmatrix("spread")
    added, noise = T.exp(logs[:3]) * np.eye(3), T.exp(logs[3])

    def step(now: Any, mean: Any, spread: Any) -> Any:
        error, shared = now - T.dot(seen, mean), T.dot(spread, seen)
        total = T.dot(seen, shared) + noise
        gain = shared / total
        mean = T.dot(move, mean + gain * error)
        spread = T.dot(T.dot(move, spread - T.outer(gain, shared)), move.T) + added
        return mean, spread, 0.5 * (T.log(total) + error**2 / total)

    costs = library.scan(step, sequences=y, outputs_info=[mean, spread, None])[2]
    cost = costs.sum()
    return Program(library.function([logs, move, seen, mean, spread, y], [cost, library.grad(cost, logs)]))


def kalman_step(log: Any, outer: Any, move: Any, seen: Any, added: Any, noise: Any) -> Any:
    """Written alike for JAX and PyTorch."""

    def step(now: Any, mean: Any, spread: Any) -> Any:
        error, shared = now - seen @ mean, spread @ seen
        total = seen @ shared + noise
        gain = shared / total
        mean = move @ (mean + gain * error)
        spread = move @ (spread - outer(gain, shared)) @ move.T + added
        return mean, spread, 0.5 * (log(total) + error**2 / total)

    return step


def kalman_jax(library: Any, data: Data) -> Program:
    jnp = library.numpy

    def cost(logs: Any, move: Any, seen: Any, mean: Any, spread: Any, y: Any) -> Any:
        variances = jnp.exp(logs)
        step = kalman_step(jnp.log, jnp.outer, move, seen, variances[:3] * jnp.eye(3), variances[3])

        def carried(states: Any, now: Any) -> Any:
            *states, one = step(now, *states)
            return tuple(states), one

        return library.jax.lax.scan(carried, (mean, spread), y)[1].sum()

    return Program(library.jit(library.jax.value_and_grad(cost)))


def kalman_torch(library: Any, data: Data) -> Program:
    torch = library.torch

    def one(now: Any, mean: Any, spread: Any, *others: Any) -> Any:
        return kalman_step(torch.log, torch.outer, *others)(now, mean, spread)

    compiled, eye = library.compile(one), torch.eye(3, dtype=torch.float64)

    def call(logs: Any, move: Any, seen: Any, mean: Any, spread: Any, y: Any) -> Any:
        variances, cost = torch.exp(logs.requires_grad_()), logs.new_zeros(())
        added, noise = variances[:3] * eye, variances[3]
        for now in y:
            mean, spread, more = compiled(now, mean, spread, move, seen, added, noise)
            cost = cost + more
        return cost.detach(), *torch.autograd.grad(cost, [logs])

    return Program(call)


WORKLOADS = (
    Workload(
        "garch-gradient",
        "likelihood of 1,000 steps of GARCH(1, 1) with its gradient, float64",
        returns,
        (1000,),
        (6,),
        {"numpy": garch_numpy, "symbolic": garch_symbolic, "jax": garch_jax, "torch": garch_torch},
    ),
    Workload(
        "kalman-gradient",
        "likelihood of a structural time series, 300 steps of a Kalman filter of 3 states, with its gradient, float64",
        observed,
        (300,),
        (5,),
        {"numpy": kalman_numpy, "symbolic": kalman_symbolic, "jax": kalman_jax, "torch": kalman_torch},
    ),
)
