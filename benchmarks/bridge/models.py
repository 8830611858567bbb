"""The six models of the comparison: functions that, within a model of PyMC's, make its variables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc


def eight_schools() -> None:
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sigma = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    mu, tau = pymc.Normal("mu", 0, 5), pymc.HalfCauchy("tau", 5)
    theta = pymc.Deterministic("theta", mu + tau * pymc.Normal("z", 0, 1, shape=8))
    pymc.Normal("y", theta, sigma, observed=y)


def radon() -> None:
    rng = np.random.default_rng(0)
    county, floor, y = rng.integers(0, 85, 919), rng.integers(0, 2, 919).astype(float), rng.normal(size=919)
    mu_a, sd_a = pymc.Normal("mu_a", 0, 10), pymc.HalfCauchy("sd_a", 5)
    mu_b, sd_b = pymc.Normal("mu_b", 0, 10), pymc.HalfCauchy("sd_b", 5)
    a = pymc.Deterministic("a", mu_a + pymc.Normal("z_a", 0, 1, shape=85) * sd_a)
    b = pymc.Deterministic("b", mu_b + pymc.Normal("z_b", 0, 1, shape=85) * sd_b)
    pymc.Normal("y", a[county] + b[county] * floor, pymc.HalfCauchy("eps", 5), observed=y)


def gaussian_process() -> None:
    x = np.linspace(0, 10, 50)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=50)
    kernel = pymc.HalfCauchy("eta", 5) ** 2 * pymc.gp.cov.Matern52(1, pymc.Gamma("ell", 2, 1))
    pymc.gp.Marginal(cov_func=kernel).marginal_likelihood("y", X=x, y=y, sigma=pymc.HalfCauchy("sigma", 5))


def mixture() -> None:
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(-2, 0.5, 100), rng.normal(0, 1, 100), rng.normal(3, 0.7, 100)])
    weights, ordered = pymc.Dirichlet("w", np.ones(3)), pymc.distributions.transforms.ordered
    means = pymc.Normal("means", 0, 10, shape=3, transform=ordered, initval=[-2.0, 0.0, 3.0])
    pymc.NormalMixture("y", weights, means, sigma=pymc.HalfNormal("sd", 2, shape=3), observed=y)


def correlated() -> None:
    y = np.random.default_rng(0).multivariate_normal(np.zeros(3), np.eye(3) + 0.5, 200)
    sd = pymc.Exponential.dist(1.0)
    factor, _, _ = pymc.LKJCholeskyCov("factor", n=3, eta=2.0, sd_dist=sd, compute_corr=True)
    pymc.MvNormal("y", pymc.Normal("mu", 0, 10, shape=3), chol=factor, observed=y)


def autoregression() -> None:
    rng, y = np.random.default_rng(0), np.zeros(200)
    for t in range(2, 200):
        y[t] = 0.5 * y[t - 1] - 0.2 * y[t - 2] + rng.normal()
    first, sd = pymc.Normal.dist(0, 10), pymc.HalfNormal("s", 1)
    pymc.AR("y", pymc.Normal("rho", 0, 1, shape=2), sigma=sd, init_dist=first, observed=y)


MODELS: dict[str, Callable[[], None]] = {
    "eight schools": eight_schools,
    "radon": radon,
    "gaussian process": gaussian_process,
    "mixture": mixture,
    "correlated (LKJ)": correlated,
    "AR(2)": autoregression,
}
SAMPLED = ("eight schools", "radon")
"""Those that nutpie samples."""
