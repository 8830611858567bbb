"""Rosenbrock's curved valley (1960): the ways of several methods, each given the derivatives that it wants.

Writes valley.png, or the file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from graphc.scipy.optimize import minimize

mpl.use("Agg")  # no screen is needed

METHODS = ("Nelder-Mead", "CG", "BFGS", "Newton-CG", "trust-exact")
START = np.array([-1.3, 1.6])


def height(p: Any) -> Any:
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2


x, y = np.meshgrid(np.linspace(-1.7, 1.5, 200), np.linspace(-0.6, 2.2, 200))
figure, panels = plt.subplots(1, len(METHODS), figsize=(15, 3.4), sharey=True)
for axes, method in zip(panels, METHODS, strict=True):
    way = [START]
    found = minimize(height, START, method=method, callback=lambda at, way=way: way.append(np.array(at)))
    np.testing.assert_allclose(found.x, 1.0, atol=1e-3)
    print(f"{method:12} {found.scipy.nit:4} iterations, {found.scipy.nfev:4} values, at the end {found.fun:.1e}")
    axes.contourf(x, y, np.log(height((x, y)) + 0.1), levels=20, cmap="Blues")
    axes.plot(*np.transpose(way), "k.-", markersize=3, linewidth=0.8)
    axes.plot(1, 1, "C3*", markersize=10)
    axes.set(title=f"{method}: {len(way) - 1} steps", xticks=[-1, 0, 1])
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "valley.png", dpi=80)
print(f"all methods end at (1, 1); plotted in {target}")
