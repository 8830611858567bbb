"""A Kalman filter that follows a moving thing by noisy positions, and finds its own noise levels by likelihood.

Writes tracking.png, or the file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import graphc.numpy as jnp
from graphc import jit, lax
from graphc.scipy.optimize import minimize

mpl.use("Agg")  # no screen is needed

STEP = 0.1  # s; the state is (x, y, velocity in x, velocity in y)
MOVE = np.eye(4) + STEP * np.eye(4, k=2)
SEE = np.eye(2, 4)
PUSH = np.vstack([STEP**2 / 2 * np.eye(2), STEP * np.eye(2)])  # what an acceleration does in one step


def follow(logs: Any, seen: Any) -> tuple[Any, Any]:
    """The states after each position, and the logarithm of the likelihood (Kalman 1960).

    logs: logarithms of the deviations of accelerations (m / s^2) and of positions (m).
    """
    shaken = jnp.exp(2 * logs[0]) * (PUSH @ PUSH.T)
    noise = jnp.exp(2 * logs[1]) * np.eye(2)

    def step(carry: Any, position: Any) -> Any:
        mean, spread = carry
        mean, spread = MOVE @ mean, MOVE @ spread @ MOVE.T + shaken
        total = SEE @ spread @ SEE.T + noise
        surprise = position - SEE @ mean
        gain = jnp.linalg.solve(total, SEE @ spread).T
        fits = -(surprise @ jnp.linalg.solve(total, surprise) + jnp.linalg.slogdet(2 * np.pi * total)[1]) / 2
        mean, spread = mean + gain @ surprise, spread - gain @ SEE @ spread
        return (mean, spread), (mean, fits)

    start = jnp.concatenate([seen[0], np.zeros(2)]), 10.0 * np.eye(4)
    _, (states, fits) = lax.scan(step, start, seen[1:])
    return states, fits.sum()


rng = np.random.default_rng(3)
pushes = rng.normal(scale=2.0, size=(300, 2))
truth = np.zeros((301, 4))
for t, push in enumerate(pushes):
    truth[t + 1] = MOVE @ truth[t] + PUSH @ push
seen = truth[:, :2] + rng.normal(scale=0.5, size=(301, 2))

found = minimize(lambda logs, seen: -follow(logs, seen)[1], np.zeros(2), args=(seen,))
accelerations, positions = np.exp(found.x)
print(f"deviations found: {accelerations:.2f} m/s^2 (in truth 2) and {positions:.2f} m (in truth 0.5)")
np.testing.assert_allclose([accelerations, positions], [2.0, 0.5], rtol=0.25)
states, _ = jit(follow)(found.x, seen)
raw = np.sqrt(((seen[1:] - truth[1:, :2]) ** 2).mean())
error = np.sqrt(((states[:, :2] - truth[1:, :2]) ** 2).mean())
assert error < 0.6 * raw

figure, axes = plt.subplots(figsize=(6.5, 5))
axes.plot(*seen.T, ".", color="0.7", markersize=4, label="seen")
axes.plot(*truth[:, :2].T, "k--", label="truth")
axes.plot(*states[:, :2].T, "C0", label="filter")
axes.set(xlabel="m", ylabel="m", aspect="equal")
axes.legend()
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "tracking.png", dpi=80)
print(f"the error falls from {raw:.2f} to {error:.2f} m; plotted in {target}")
