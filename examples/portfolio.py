"""Markowitz's portfolios (1952): the least risk for each return, with bounds and linear constraints by name.

Writes portfolio.png, or the file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import graphc.numpy as jnp
from graphc.scipy.optimize import minimize

mpl.use("Agg")  # no screen is needed

rng = np.random.default_rng(1)
FACTORS = rng.normal(size=(6, 3)) * [0.15, 0.08, 0.05]
COVARIANCE = FACTORS @ FACTORS.T + np.diag(rng.uniform(0.01, 0.04, 6))  # of yearly returns
MEANS = np.array([0.03, 0.05, 0.06, 0.08, 0.10, 0.12])


def risk(shares: Any) -> Any:
    """The variance of a year's return."""
    return shares @ COVARIANCE @ shares


def best(wanted: float) -> Any:
    """The shares of least risk with a wanted mean return: none below 0, all together 1."""
    constraints = [
        {"type": "eq", "fun": lambda shares: jnp.sum(shares) - 1},
        {"type": "eq", "fun": lambda shares: shares @ MEANS - wanted},
    ]
    found = minimize(risk, np.full(6, 1 / 6), method="SLSQP", bounds=[(0, 1)] * 6, constraints=constraints, tol=1e-12)
    return found.x


wanted = np.linspace(0.04, 0.115, 12)
shares = np.array([best(each) for each in wanted])
np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-8)
np.testing.assert_allclose(shares @ MEANS, wanted, atol=1e-8)
assert shares.min() > -1e-9
risks = np.sqrt([risk(each) for each in shares])
others = rng.dirichlet(np.full(6, 0.5), size=4000)
spread, mean = np.sqrt((others @ COVARIANCE * others).sum(axis=1)), others @ MEANS
limit = np.interp(mean, wanted, risks)
inside = (mean > wanted[0]) & (mean < wanted[-1])
assert (spread[inside] > limit[inside] - 2e-3).all()  # nothing that is drawn at random is better

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.plot(spread, mean, ".", color="0.8", markersize=2)
left.plot(risks, wanted, "C0o-")
left.set(xlabel="deviation of a year's return", ylabel="mean of a year's return")
right.stackplot(wanted, shares.T, labels=[f"asset {k + 1}" for k in range(6)])
right.set(xlabel="mean of a year's return", ylabel="shares")
right.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "portfolio.png", dpi=80)
print(f"{len(wanted)} portfolios, none of 4000 drawn ones has less risk; plotted in {target}")
