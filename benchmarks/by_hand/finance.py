"""By hand: price, delta and vega in one pass; vega shares the exponential of the distribution function."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from benchmarks.by_hand.compile import threaded
from benchmarks.by_hand.vecmath import exp, log, normal
from benchmarks.workload import Array, Data, Program

RATE = 0.02


@threaded
def price(spot: Any, strike: Any, years: Any, volatility: Any, value: Any, delta: Any, vega: Any) -> None:
    for i in prange(spot.size):
        root = np.sqrt(years[i])
        spread = volatility[i] * root
        upper = (log(spot[i] / strike[i]) + RATE * years[i]) / spread + 0.5 * spread
        below_upper, density = normal(upper)
        below_lower, _ = normal(upper - spread)
        value[i] = spot[i] * below_upper - strike[i] * exp(-RATE * years[i]) * below_lower
        delta[i] = below_upper
        vega[i] = spot[i] * root * density


def build(library: Any, data: Data) -> Program:
    def call(*inputs: Array) -> Any:
        results = tuple(np.empty_like(inputs[0]) for _ in range(3))
        price(*inputs, *results)
        return results

    return Program(call)


BUILDERS = {"black-scholes": build}
