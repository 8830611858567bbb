"""The log-density of a hierarchical model with its gradient, as a sampler calls it.

Radon in houses (Gelman and Hill 2007, chapter 12): one intercept for each of 85 counties, drawn from a common normal
distribution and written without centring, a slope for the floor, normal errors, 919 houses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload


def houses(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """`size`: counties, houses. The parameters come first: mu, log tau, raw intercepts, slope, log sigma."""
    counties, count = size
    raw, county = rng.normal(size=counties), rng.integers(counties, size=count)
    floor = rng.integers(2, size=count) * 1.0
    radon = 1.3 + 0.3 * raw[county] - 0.6 * floor + 0.7 * rng.normal(size=count)
    scalars = [np.array(value) for value in (1.2, -1.0, -0.5, -0.3)]
    return Data((scalars[0], scalars[1], raw * 0.9, scalars[2], scalars[3], county, floor, radon))


def build_numpy(library: Any, data: Data) -> Program:
    def call(
        mu: Array, log_tau: Array, raw: Array, slope: Array, log_sigma: Array, county: Array, floor: Array, y: Array
    ) -> Any:
        tau, sigma = np.exp(log_tau), np.exp(log_sigma)
        errors = (y - (mu + tau * raw)[county] - slope * floor) / sigma
        square = errors @ errors
        density = -0.5 * square - len(y) * log_sigma - 0.5 * (raw @ raw)
        density -= 0.5 * (mu * mu + tau * tau + slope * slope + sigma * sigma) - log_tau - log_sigma
        pulls = errors / sigma
        by_county = np.bincount(county, pulls, len(raw))
        return (
            density,
            by_county.sum() - mu,
            tau * (by_county @ raw) - tau * tau + 1,
            tau * by_county - raw,
            pulls @ floor - slope,
            square - len(y) - sigma * sigma + 1,
        )

    return Program(call)


def log_density(exp: Any, mu: Any, log_tau: Any, raw: Any, slope: Any, log_sigma: Any, *houses: Any) -> Any:
    """Up to a constant; the parameters have standard normal priors, tau and sigma half-normal ones."""
    county, floor, y = houses
    tau, sigma = exp(log_tau), exp(log_sigma)
    errors = (y - (mu + tau * raw)[county] - slope * floor) / sigma
    likelihood = -0.5 * (errors**2).sum() - y.shape[0] * log_sigma - 0.5 * (raw**2).sum()
    return likelihood - 0.5 * (mu**2 + tau**2 + slope**2 + sigma**2) + log_tau + log_sigma


def build_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    params = [T.dscalar("mu"), T.dscalar("log_tau"), T.dvector("raw"), T.dscalar("slope"), T.dscalar("log_sigma")]
    inputs = [*params, T.lvector("county"), T.dvector("floor"), T.dvector("y")]
    density = log_density(T.exp, *inputs)
    return Program(library.function(inputs, [density, *library.grad(density, params)]))


def build_jax(library: Any, data: Data) -> Program:
    def call(*inputs: Any) -> Any:
        density = library.jax.value_and_grad(lambda *all_: log_density(library.numpy.exp, *all_), range(5))
        value, gradients = density(*inputs)
        return value, *gradients

    return Program(library.jit(call))


def build_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    compiled = library.compile(lambda *inputs: log_density(torch.exp, *inputs))

    def call(*inputs: Any) -> Any:
        params = [x.requires_grad_() for x in inputs[:5]]
        density = compiled(*params, *inputs[5:])
        return density.detach(), *torch.autograd.grad(density, params)

    return Program(call)


WORKLOADS = (
    Workload(
        "hierarchical-density",
        "log-density of a hierarchical model with its gradient: 85 counties, 919 houses, float64",
        houses,
        (85, 919),
        (3, 11),
        {"numpy": build_numpy, "symbolic": build_symbolic, "jax": build_jax, "torch": build_torch},
    ),
)
