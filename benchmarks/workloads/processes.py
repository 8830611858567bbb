"""Gaussian processes: the marginal likelihood of noisy values, with its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)


def points(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: points, their coordinates. Points, values, and logarithms of amplitude, length and noise."""
    x = rng.uniform(0, 4, size)
    y = np.sin(x).sum(-1) + 0.1 * rng.normal(size=size[0])
    return Data((x, y, np.array([0.1, 0.2, -1.5])))


def likelihood_numpy(library: Any, data: Data) -> Program:
    def call(x: Array, y: Array, logs: Array) -> Any:
        amplitude, length, noise = np.exp(2 * logs)
        apart = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
        smooth = amplitude * np.exp(-0.5 * apart / length)
        lower = np.linalg.cholesky(smooth + noise * np.eye(len(y)))
        inverse = np.linalg.inv(lower)
        inverse = inverse.T @ inverse
        weights = inverse @ y
        value = 0.5 * y @ weights + np.log(np.diag(lower)).sum() + len(y) * HALF_LOG_TAU
        pull = inverse - np.outer(weights, weights)
        slope = [(pull * smooth).sum(), 0.5 * (pull * smooth * apart).sum() / length, noise * np.trace(pull)]
        return value, np.array(slope)

    return Program(call)


def likelihood_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    x, y, logs = T.dmatrix("x"), T.dvector("y"), T.dvector("logs")
    apart = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
    smooth = T.exp(2 * logs[0] - 0.5 * apart / T.exp(2 * logs[1]))
    covariance = smooth + T.exp(2 * logs[2]) * T.eye(y.shape[0])
    weights = T.linalg.solve(covariance, y, assume_a="pos")
    value = 0.5 * T.dot(y, weights) + 0.5 * T.linalg.slogdet(covariance)[1] + y.shape[0] * HALF_LOG_TAU
    return Program(library.function([x, y, logs], [value, library.grad(value, logs)]))


def likelihood_jax(library: Any, data: Data) -> Program:
    np_, linalg = library.numpy, library.jax.scipy.linalg

    def value(logs: Any, x: Any, y: Any) -> Any:
        apart = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
        smooth = np_.exp(2 * logs[0] - 0.5 * apart / np_.exp(2 * logs[1]))
        lower = linalg.cholesky(smooth + np_.exp(2 * logs[2]) * np_.eye(len(y)), lower=True)
        half = linalg.solve_triangular(lower, y, lower=True)
        return 0.5 * (half**2).sum() + np_.log(np_.diagonal(lower)).sum() + len(y) * HALF_LOG_TAU

    return Program(library.jit(lambda x, y, logs: library.jax.value_and_grad(value)(logs, x, y)))


def likelihood_torch(library: Any, data: Data) -> Program:
    torch = library.torch

    def value(x: Any, y: Any, logs: Any) -> Any:
        apart = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
        smooth = torch.exp(2 * logs[0] - 0.5 * apart / torch.exp(2 * logs[1]))
        lower = torch.linalg.cholesky(smooth + torch.exp(2 * logs[2]) * torch.eye(len(y), dtype=y.dtype))
        half = torch.linalg.solve_triangular(lower, y[:, None], upper=False)
        return 0.5 * (half**2).sum() + torch.log(torch.diagonal(lower)).sum() + len(y) * HALF_LOG_TAU

    value = library.compile(value)

    def call(x: Any, y: Any, logs: Any) -> Any:
        logs = logs.detach().requires_grad_()
        found = value(x, y, logs)
        return found.detach(), *torch.autograd.grad(found, (logs,))

    return Program(call)


WORKLOADS = (
    Workload(
        "gaussian-process",
        "marginal likelihood of a Gaussian process over 200 points, with gradient, float64",
        points,
        (200, 3),
        (9, 2),
        {
            "numpy": likelihood_numpy,
            "symbolic": likelihood_symbolic,
            "jax": likelihood_jax,
            "torch": likelihood_torch,
        },
        tolerance=1e-7,
    ),
)
