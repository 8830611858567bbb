"""A decay curve through data with outliers: least squares, and losses that forgive.

Writes outliers.png, or the file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import graphc.numpy as jnp
from graphc.scipy.optimize import least_squares

mpl.use("Agg")  # no screen is needed

TRUTH = {"height": 4.0, "rate": 0.7, "floor": 0.5}
LOSSES = ("linear", "huber", "cauchy")


def decay(p: Any, t: Any) -> Any:
    return p["height"] * jnp.exp(-p["rate"] * t) + p["floor"]


def misfit(p: Any, t: Any, y: Any) -> Any:
    return (decay(p, t) - y) / 0.1


rng = np.random.default_rng(0)
t = np.linspace(0, 8, 60)
y = np.asarray(decay(TRUTH, t)) + rng.normal(scale=0.1, size=t.size)
wrong = rng.choice(t.size, 9, replace=False)
y[wrong] += rng.uniform(1.0, 3.0, wrong.size)

figure, axes = plt.subplots(figsize=(7, 4.5))
axes.plot(t, y, "k.", label="measured")
axes.plot(t[wrong], y[wrong], "C3o", fillstyle="none", label="outliers")
errors = {}
for loss in LOSSES:
    found = least_squares(misfit, dict.fromkeys(TRUTH, 1.0), args=(t, y), loss=loss)
    errors[loss] = max(abs(found.x[name] / TRUTH[name] - 1) for name in TRUTH)
    told = ", ".join(f"{name} {found.x[name]:.2f}" for name in TRUTH)
    print(f"{loss:7} {told}; at most {errors[loss]:.0%} from the truth")
    axes.plot(t, np.asarray(decay(found.x, t)), label=loss)
assert errors["cauchy"] < 0.15 < errors["linear"]
axes.plot(t, np.asarray(decay(TRUTH, t)), "k--", linewidth=0.8, label="truth")
axes.set(xlabel="t")
axes.legend(frameon=False)
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "outliers.png", dpi=80)
print(f"Cauchy's loss forgives the outliers; plotted in {target}")
