"""A sigmoid taken to pieces (Flennerhag, Deep learning from scratch I): every intermediate value on a grid, plotted.

Writes sigmoid_surface.png, or the file that is named.
"""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import graphc
import graphc.tensor as T

mpl.use("Agg")  # no screen is needed

points = np.linspace(-10, 10, 25)
first, second = np.meshgrid(points, points, indexing="ij")

x = T.dmatrix("x")
W, b, c = graphc.shared([3.0, 1.0], name="W"), graphc.shared(0.0, name="b"), graphc.shared(1.0, name="c")
z1 = T.dot(x, W)
z2 = z1 + b
z3 = T.exp(-z2)
z4 = z3 + c
z5 = T.inv(z4)
slope = T.grad(z5.sum(), x)

surface = graphc.function([x], {"z1": z1, "z2": z2, "z3": z3, "z4": z4, "z5": z5, "slope": slope}, name="surface")
values = surface(np.stack([first.ravel(), second.ravel()], axis=1))

exponent = (3 * first + second).ravel()
expected = 1 / (1 + np.exp(-exponent))
np.testing.assert_allclose(values["z5"], expected, rtol=1e-13)
np.testing.assert_allclose(values["z3"], np.exp(-values["z1"]), rtol=1e-13)
np.testing.assert_allclose(values["slope"], np.outer(expected / (1 + np.exp(exponent)), [3, 1]), rtol=1e-12)

panels = {
    "z1: linear": values["z1"],
    "log10 of z4: 1 + exponential": np.log10(values["z4"]),
    "z5: sigmoid": values["z5"],
    "slope of z5 along x0": values["slope"][:, 0],
}
figure = plt.figure(figsize=(14, 4))
for number, (title, height) in enumerate(panels.items(), 1):
    axes = figure.add_subplot(1, len(panels), number, projection="3d")
    axes.plot_surface(first, second, height.reshape(first.shape), cmap="viridis", rstride=1, cstride=1)
    axes.set(title=title, xlabel="$x_0$", ylabel="$x_1$")
    axes.view_init(elev=25, azim=-60)
figure.tight_layout()
target = sys.argv[1] if sys.argv[1:] else "sigmoid_surface.png"
figure.savefig(target, dpi=80)
print(f"the sigmoid is right at all {len(expected)} points; plotted in {target}")
