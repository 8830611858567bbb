"""Heat in a plate, as NumPy code that changes an array in place, and the derivative of the end by the beginning.

Where must a plate be warmer at first, so that a corner is warmer in the end? Writes heat.png, or the file that is
named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray

import graphc

mpl.use("Agg")  # no screen is needed

SIZE, STEPS, RATE = 50, 80, 0.24

Plate = NDArray[np.float64]


def heated(plate: Plate) -> Plate:
    """The temperatures after STEPS steps of the explicit method; the border keeps its temperature."""
    plate = plate.copy()
    for _ in range(STEPS):
        plate[1:-1, 1:-1] += RATE * (
            plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:] - 4 * plate[1:-1, 1:-1]
        )
    return plate


def in_the_corner(plate: Plate) -> Any:
    """The mean temperature near one corner in the end."""
    return heated(plate)[8:14, 8:14].mean()


plate = np.zeros((SIZE, SIZE))
plate[18:34, 10:40] = 100.0
end = graphc.jit(heated)(plate)
np.testing.assert_allclose(end, heated(plate), rtol=1e-12, atol=1e-12)  # NumPy runs the same text

influence = graphc.jit(graphc.grad(in_the_corner))(plate)
change = np.random.default_rng(0).normal(size=plate.shape)
np.testing.assert_allclose((influence * change).sum(), in_the_corner(plate + change) - in_the_corner(plate), rtol=1e-8)

figure, panels = plt.subplots(1, 3, figsize=(12, 3.8))
for axes, values, title in zip(panels, (plate, end, influence), ("at first", "in the end", "influence"), strict=True):
    picture = axes.imshow(values, cmap="inferno")
    axes.set(title=title, xticks=[], yticks=[])
    figure.colorbar(picture, ax=axes, shrink=0.8)
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "heat.png", dpi=80)
print(f"{STEPS} steps as NumPy makes them, and their derivative; plotted in {target}")
