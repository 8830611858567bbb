"""The price of an option (Black and Scholes 1973) and its sensitivities, as derivatives of the one formula.

Writes greeks.png, or the file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import norm

import graphc
import graphc.numpy as jnp
from graphc.scipy.special import ndtr

mpl.use("Agg")  # no screen is needed

STRIKE, RATE = 100.0, 0.02


def price(spot: Any, volatility: Any, years: Any) -> Any:
    """Of a European call."""
    spread = volatility * jnp.sqrt(years)
    d1 = (jnp.log(spot / STRIKE) + (RATE + volatility**2 / 2) * years) / spread
    return spot * ndtr(d1) - STRIKE * jnp.exp(-RATE * years) * ndtr(d1 - spread)


GREEKS = {
    "price": price,
    "delta": graphc.grad(price, 0),
    "gamma": graphc.grad(graphc.grad(price, 0), 0),
    "vega": graphc.grad(price, 1),
    "theta": lambda *of: -graphc.grad(price, 2)(*of),
    "vanna": graphc.grad(graphc.grad(price, 0), 1),
}


@graphc.jit
def table(spots: Any, volatility: Any, years: Any) -> Any:
    """All sensitivities for many prices, from one kernel."""
    return {name: graphc.vmap(f, (0, None, None))(spots, volatility, years) for name, f in GREEKS.items()}


spots = np.linspace(60, 140, 161)
figure, panels = plt.subplots(2, 3, figsize=(11, 6), sharex=True)
for years in (0.1, 0.5, 1.0):
    found = table(spots, 0.25, years)
    d1 = (np.log(spots / STRIKE) + (RATE + 0.25**2 / 2) * years) / (0.25 * np.sqrt(years))
    np.testing.assert_allclose(found["delta"], norm.cdf(d1), rtol=1e-9)
    np.testing.assert_allclose(found["gamma"], norm.pdf(d1) / (spots * 0.25 * np.sqrt(years)), rtol=1e-8)
    np.testing.assert_allclose(found["vega"], spots * norm.pdf(d1) * np.sqrt(years), rtol=1e-8)
    for axes, name in zip(panels.flat, GREEKS, strict=True):
        axes.plot(spots, found[name], label=f"{years} years")
        axes.set(title=name)
panels[0, 0].legend(frameon=False)
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "greeks.png", dpi=80)
print(f"{len(GREEKS)} sensitivities as their formulas give them; plotted in {target}")
