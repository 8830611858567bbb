"""By hand: one pass over the houses, one over the counties."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np

from benchmarks.by_hand.compile import serial
from benchmarks.workload import Program


@serial
def log_density(mu: Any, log_tau: Any, raw: Any, slope: Any, log_sigma: Any, county: Any, floor: Any, y: Any) -> Any:
    tau, sigma = exp(log_tau[()]), exp(log_sigma[()])
    inverse = 1.0 / sigma
    n = y.size
    to_raw = np.zeros_like(raw)
    intercepts = mu[()] + tau * raw
    square = 0.0
    to_slope = 0.0
    for i in range(n):
        error = (y[i] - intercepts[county[i]] - slope[()] * floor[i]) * inverse
        square += error * error
        to_slope += error * floor[i]
        to_raw[county[i]] += error
    to_mu = 0.0
    to_tau = 0.0
    raw_square = 0.0
    for j in range(raw.size):
        pull = to_raw[j] * inverse
        to_mu += pull
        to_tau += pull * raw[j]
        raw_square += raw[j] * raw[j]
        to_raw[j] = tau * pull - raw[j]
    density = -0.5 * (square + raw_square + mu[()] ** 2 + tau**2 + slope[()] ** 2 + sigma**2)
    density += log_tau[()] + log_sigma[()] * (1 - n)
    return (
        density,
        to_mu - mu[()],
        tau * to_tau - tau * tau + 1.0,
        to_raw,
        to_slope * inverse - slope[()],
        square - n - sigma * sigma + 1.0,
    )


BUILDERS = {"hierarchical-density": lambda library, data: Program(log_density)}
