"""Mandelbrot's set: how long z * z + c stays bounded, for each point c of a picture, with a loop in compiled code.

Writes mandelbrot.png, or the file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import graphc
import graphc.numpy as jnp
from graphc import lax

mpl.use("Agg")  # no screen is needed

STEPS, WIDTH, HEIGHT = 200, 450, 300


@graphc.jit
def escape_time(real: Any, imaginary: Any) -> Any:
    """The number of steps in which each point stays within a circle of radius 2, at most STEPS."""

    def step(_: Any, state: Any) -> Any:
        x, y, count = state
        inside = x * x + y * y <= 4
        x, y = x * x - y * y + real, 2 * x * y + imaginary
        return jnp.where(inside, x, 3.0), jnp.where(inside, y, 3.0), count + inside

    start = jnp.zeros_like(real), jnp.zeros_like(real), jnp.zeros_like(real)
    return lax.fori_loop(0, STEPS, step, start)[2]


def by_hand(c: complex) -> int:
    """The same for one point in Python."""
    z, count = 0j, 0
    while count < STEPS and abs(z) <= 2:
        z, count = z * z + c, count + 1
    return count


across, up = np.linspace(-2.2, 0.8, WIDTH), np.linspace(-1.0, 1.0, HEIGHT)
real, imaginary = (grid.copy() for grid in np.broadcast_arrays(across[None], up[:, None]))
counts = escape_time(real, imaginary)

points = np.random.default_rng(0).integers(0, (HEIGHT, WIDTH), size=(200, 2))
same = sum(by_hand(complex(real[i, j], imaginary[i, j])) == counts[i, j] for i, j in points)
assert same >= 195  # rounding decides near the border, and complex products round in another order

figure, axes = plt.subplots(figsize=(7.5, 5))
axes.imshow(np.log(counts + 1), extent=(-2.2, 0.8, -1.0, 1.0), origin="lower", cmap="magma")
axes.set(xlabel="real part", ylabel="imaginary part")
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "mandelbrot.png", dpi=80)
print(f"{(counts == STEPS).mean():.1%} of the picture stays bounded, as in Python; plotted in {target}")
