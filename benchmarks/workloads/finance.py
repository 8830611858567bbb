"""The Black-Scholes price of European calls with delta and vega, by differentiation where the peer differentiates."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Data, Program, Size, Workload

RATE = 0.02


def calls(rng: np.random.Generator, size: Size, dtype: str) -> Data:
    """Spot price, strike, years to maturity, volatility."""
    bounds = ((80.0, 120.0), (80.0, 120.0), (0.2, 2.0), (0.1, 0.5))
    return Data(tuple(rng.uniform(low, high, size=size) for low, high in bounds))


def price(xp: Any, erf: Any, spot: Any, strike: Any, years: Any, volatility: Any) -> Any:
    """Black and Scholes 1973, equation 13, written alike for every array library `xp`."""
    spread = volatility * xp.sqrt(years)
    upper = (xp.log(spot / strike) + RATE * years) / spread + 0.5 * spread
    lower = upper - spread

    def normal(x: Any) -> Any:
        return 0.5 + 0.5 * erf(0.7071067811865476 * x)

    return spot * normal(upper) - strike * xp.exp(-RATE * years) * normal(lower)


def build_numpy(library: Any, data: Data) -> Program:
    def call(spot: Array, strike: Array, years: Array, volatility: Array) -> Any:
        root = np.sqrt(years)
        spread = volatility * root
        upper = (np.log(spot / strike) + RATE * years) / spread + 0.5 * spread
        delta = library.normal(upper)
        value = spot * delta - strike * np.exp(-RATE * years) * library.normal(upper - spread)
        vega = spot * root * np.exp(-0.5 * upper * upper) * 0.3989422804014327
        return value, delta, vega

    return Program(call)


def build_symbolic(library: Any, data: Data) -> Program:
    T = library.tensor  # noqa: N806 - as users write it
    inputs = [T.dvector(name) for name in ("spot", "strike", "years", "volatility")]
    value = price(T, T.erf, *inputs)
    return Program(library.function(inputs, [value, *library.grad(value.sum(), [inputs[0], inputs[3]])]))


def build_jax(library: Any, data: Data) -> Program:
    def total(spot: Any, strike: Any, years: Any, volatility: Any) -> Any:
        value = price(library.numpy, library.jax.scipy.special.erf, spot, strike, years, volatility)
        return value.sum(), value

    gradient = library.jax.grad(total, argnums=(0, 3), has_aux=True)

    def call(*inputs: Any) -> Any:
        (delta, vega), value = gradient(*inputs)
        return value, delta, vega

    return Program(library.jit(call))


def build_torch(library: Any, data: Data) -> Program:
    torch = library.torch
    compiled = library.compile(lambda *inputs: price(torch, torch.erf, *inputs))
    ones = torch.ones(data.arguments[0].shape, dtype=torch.float64)

    def call(spot: Any, strike: Any, years: Any, volatility: Any) -> Any:
        value = compiled(spot.requires_grad_(), strike, years, volatility.requires_grad_())
        return value.detach(), *torch.autograd.grad(value, [spot, volatility], ones)

    return Program(call)


WORKLOADS = (
    Workload(
        "black-scholes",
        "price, delta and vega of 1e6 options, float64",
        calls,
        (1_000_000,),
        (17,),
        {"numpy": build_numpy, "symbolic": build_symbolic, "jax": build_jax, "torch": build_torch},
        traffic=lambda size: 7 * 8 * size[0],
        tolerance=1e-8,
    ),
)
