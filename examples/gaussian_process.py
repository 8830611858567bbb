"""A Gaussian process fitted to noisy points with a gap between them: scales by L-BFGS, then predictions.

The marginal likelihood and its gradient are one function with one Cholesky factor. Writes gaussian_process.png, or the
file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from scipy.optimize import minimize

import graphc
import graphc.tensor as T

mpl.use("Agg")  # no screen is needed


def truth(t: Any) -> Any:
    return np.sin(2 * np.pi * t) + 0.4 * t - 0.03 * t**2


rng = np.random.default_rng(4)
times = np.sort(np.concatenate([rng.uniform(0, 5, 40), rng.uniform(7, 10, 30)]))  # a gap between
observed = truth(times) + rng.normal(scale=0.2, size=times.size)


def kernel(a: Any, b: Any, logs: Any) -> Any:
    """A slow trend, and waves of period 1 that change slowly."""
    apart = a[:, None] - b[None, :]
    trend = T.exp(2 * logs[0] - apart**2 / (2 * T.exp(2 * logs[1])))
    waves = -2 * T.sin(np.pi * apart) ** 2 / T.exp(2 * logs[3]) - apart**2 / (2 * 5.0**2)
    return trend + T.exp(2 * logs[2] + waves)


t, y, at, logs = T.dvector("t"), T.dvector("y"), T.dvector("at"), T.dvector("logs")
covariance = kernel(t, t, logs) + T.exp(2 * logs[4]) * T.eye(t.size)
lower = T.linalg.cholesky(covariance)
half = T.linalg.solve_triangular(lower, y, lower=True)
misfit = (half**2).sum() / 2 + T.log(T.diag(lower)).sum() + t.size * np.log(2 * np.pi) / 2
cost = graphc.function([logs, t, y], [misfit, graphc.grad(misfit, logs)], name="marginal_likelihood")

cross = T.linalg.solve_triangular(lower, kernel(t, at, logs), lower=True)
mean = cross.T @ half
deviation = T.sqrt(T.diag(kernel(at, at, logs)) - (cross**2).sum(0))
predict = graphc.function([logs, t, y, at], [mean, deviation], name="predict")

guess = np.log([1.0, 2.0, 1.0, 1.0, 0.5])
found = minimize(cost, guess, args=(times, observed), jac=True, method="L-BFGS-B")
points = np.linspace(-0.5, 11, 600)
curve, width = predict(found.x, times, observed, points)
noise = np.exp(found.x[4])
print(f"minus log likelihood {cost(guess, times, observed)[0]:.1f} -> {found.fun:.1f} in {found.nfev} calls")
print(f"noise {noise:.3f}, of which 0.200 was added")

figure, axes = plt.subplots(figsize=(9, 4))
axes.fill_between(points, curve - 2 * width, curve + 2 * width, color="C0", alpha=0.2, label="two deviations")
axes.plot(points, truth(points), "k--", lw=1, label="truth")
axes.plot(points, curve, color="C0", label="mean")
axes.plot(times, observed, "o", ms=3, color="C3", label="observed")
axes.legend(ncols=4, frameon=False, loc="upper left")
axes.set_xlabel("time")
axes.set_ylim(-2, 5)
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "gaussian_process.png", dpi=80)
inside = np.abs(curve - truth(points)) < 3 * width
assert inside[(points > 0) & (points < 10)].mean() > 0.95
assert abs(noise - 0.2) < 0.05
print(f"the truth lies within three deviations; plotted in {target}")
