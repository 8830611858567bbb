"""An epidemic in the SIR model (Kermack and McKendrick 1927): its rates from daily counts, and what a lockdown changes.

Writes epidemic.png, or the file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import graphc
import graphc.numpy as jnp
from graphc.scipy.integrate import solve_ivp
from graphc.scipy.optimize import minimize
from graphc.scipy.special import gammaln

mpl.use("Agg")  # no screen is needed

PEOPLE = 50_000.0
DAYS = np.arange(1.0, 91.0)
TRUTH = {"contacts": 0.45, "lockdown": 0.12, "recovery": 0.1, "infected": 20.0}


def infected(p: Any) -> Any:
    """The number of infected people at the end of each day; contacts change on day 40."""

    def change(day: Any, state: Any) -> Any:
        contacts = jnp.where(day < 40, p["contacts"], p["lockdown"])
        new = contacts * state[0] * state[1] / PEOPLE
        return jnp.stack([-new, new - p["recovery"] * state[1]])

    start = jnp.stack([PEOPLE - p["infected"], p["infected"]])
    return solve_ivp(change, (0.0, 90.0), start, t_eval=DAYS, rtol=1e-7, atol=1e-7, max_step=1.0).y[1]


def surprise(logs: Any, counts: Any) -> Any:
    """Minus the logarithm of Poisson's likelihood of the counts; each person is counted with probability 0.1."""
    mean = 0.1 * infected({name: jnp.exp(value) for name, value in logs.items()})
    return -(counts * jnp.log(mean) - mean - gammaln(counts + 1)).sum()


truth = np.asarray(graphc.jit(infected)(TRUTH))
counts = np.random.default_rng(4).poisson(0.1 * truth).astype(float)
guess = {"contacts": np.log(0.3), "lockdown": np.log(0.2), "recovery": np.log(0.2), "infected": np.log(50.0)}
bounds = {name: (value - 3, value + 3) for name, value in guess.items()}
found = minimize(surprise, guess, args=(counts,), method="L-BFGS-B", bounds=bounds)
for name, value in found.x.items():
    low, high = np.exp(value + 2 * found.covariance.errors[name] * np.array([-1, 1]))
    print(f"{name:9} {np.exp(value):8.3f}, two deviations {low:.3f} to {high:.3f}, in truth {TRUTH[name]}")
    assert abs(value - np.log(TRUTH[name])) < 3 * found.covariance.errors[name]

rates = {name: float(np.exp(value)) for name, value in found.x.items()}
figure, axes = plt.subplots(figsize=(7.5, 4.5))
axes.plot(DAYS, counts, "k.", label="counted")
axes.plot(DAYS, 0.1 * np.asarray(graphc.jit(infected)(rates)), "C0", label="fitted")
open_ = rates | {"lockdown": rates["contacts"]}
axes.plot(DAYS, 0.1 * np.asarray(graphc.jit(infected)(open_)), "C3--", label="without a lockdown")
axes.axvline(40, color="0.7", linewidth=0.8)
axes.set(xlabel="days", ylabel="infected people who are counted")
axes.legend(frameon=False)
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "epidemic.png", dpi=80)
print(f"all rates within three deviations of the truth; plotted in {target}")
