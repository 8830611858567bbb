"""Hares and lynxes: the differential equation of Lotka (1925) and Volterra (1926), fitted to noisy counts of both.

The solution is a loop of Runge-Kutta steps; L-BFGS follows the derivative through all of them. Writes
lotka_volterra.png, or the file that is named.
"""

from __future__ import annotations

import sys
from timeit import timeit
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import graphc
import graphc.tensor as T

mpl.use("Agg")  # no screen is needed

YEARS, PER_YEAR = 20, 25  # steps; both are counted once a year
NAMES = ("birth of hares", "hunting", "death of lynxes", "birth of lynxes", "hares at first", "lynxes at first")
TRUTH = np.array([0.55, 0.028, 0.84, 0.026, 33.0, 6.0])
GUESS = np.array([0.4, 0.02, 0.6, 0.02, 40.0, 10.0])


def growth(state: Any, rates: Any) -> Any:
    """The derivatives of both by time."""
    hares, lynxes = state[0], state[1]
    return T.stack([hares * (rates[0] - rates[1] * lynxes), lynxes * (rates[3] * hares - rates[2])])


def runge_kutta(state: Any, rates: Any) -> Any:
    """The state a step later (Kutta 1901)."""
    step = 1 / PER_YEAR
    first = growth(state, rates)
    second = growth(state + step / 2 * first, rates)
    third = growth(state + step / 2 * second, rates)
    return state + step / 6 * (first + 2 * second + 2 * third + growth(state + step * third, rates))


logs, counts = T.dvector("logs"), T.dmatrix("counts")
parameters = T.exp(logs)  # all are positive
steps = YEARS * PER_YEAR
states, _ = graphc.scan(runge_kutta, outputs_info=parameters[4:], non_sequences=parameters[:4], n_steps=steps)
misfit = T.sqr(T.log(states[PER_YEAR - 1 :: PER_YEAR] / counts)).sum()
cost = graphc.function([logs, counts], [misfit, graphc.grad(misfit, logs)], name="cost")
solve = graphc.function([logs], states, name="solve")

times = np.arange(1, steps + 1) / PER_YEAR
truth = solve(np.log(TRUTH))
slope = graphc.function([state := T.dvector("state")], growth(state, TRUTH), name="slope")
reference = solve_ivp(lambda _, y: slope(y), (0, YEARS), TRUTH[4:], t_eval=times, rtol=1e-9)
np.testing.assert_allclose(truth, reference.y.T, rtol=1e-5)

observed = truth[PER_YEAR - 1 :: PER_YEAR] * np.random.default_rng(1).lognormal(sigma=0.15, size=(YEARS, 2))
found = minimize(cost, np.log(GUESS), args=(observed,), jac=True, method="L-BFGS-B")
seconds = timeit(lambda: cost(found.x, observed), number=200) / 200
print(f"{found.nfev} times {len(truth)} steps and their derivative, which take {seconds * 1e6:.0f} us")
for name, true, guess, fitted in zip(NAMES, TRUTH, GUESS, np.exp(found.x), strict=True):
    print(f"{name:16} {true:7.3f}, from {guess:6.3f} fitted as {fitted:7.3f}")

fit = solve(found.x)
figure, panels = plt.subplots(2, sharex=True, figsize=(8, 6))
for column, (axes, label) in enumerate(zip(panels, ("hares (thousands)", "lynxes (thousands)"), strict=True)):
    axes.plot(times, truth[:, column], "k--", label="truth")
    axes.plot(times, solve(np.log(GUESS))[:, column], ":", color="0.6", label="first guess")
    axes.plot(times, fit[:, column], color="C0", label="fit")
    axes.plot(times[PER_YEAR - 1 :: PER_YEAR], observed[:, column], "o", color="C3", label="counted")
    axes.set_ylabel(label)
panels[0].legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.2), frameon=False)
panels[1].set_xlabel("time (years)")
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "lotka_volterra.png", dpi=80)
np.testing.assert_allclose(np.exp(found.x), TRUTH, rtol=0.1)
assert found.fun <= cost(np.log(TRUTH), observed)[0]
print(f"every parameter within 10% of the truth; plotted in {target}")
