"""Edges of a picture by convolutions (Sobel), and a sharper picture by the derivative of a blur.

Writes edges.png, or the file that is named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from scipy import ndimage

import graphc
import graphc.numpy as jnp
from graphc.scipy.signal import convolve2d

mpl.use("Agg")  # no screen is needed

SOBEL = np.outer([1.0, 2.0, 1.0], [1.0, 0.0, -1.0])
BELL = np.exp(-(np.arange(-3, 4) ** 2) / 4.0)
BLUR = np.outer(BELL, BELL) / BELL.sum() ** 2


def scene(size: int = 96) -> np.ndarray:
    """A disc, a frame and a wedge, with values from 0 to 1."""
    y, x = np.mgrid[:size, :size]
    picture = ((x - 30) ** 2 + (y - 34) ** 2 < 400) * 0.9
    picture[55:90, 50:90] = 0.5
    picture[62:83, 57:83] = 0.0
    picture[(x > 60) & (y < 40) & (x - 60 > y)] = 0.7
    return np.asarray(picture)


@graphc.jit
def edges(picture: Any) -> Any:
    across, down = convolve2d(picture, SOBEL, mode="valid"), convolve2d(picture, SOBEL.T, mode="valid")
    return jnp.sqrt(across**2 + down**2)


def misfit(picture: Any, seen: Any) -> Any:
    """Squares between a blurred picture and one that was seen; neighbours should be alike."""
    rough = jnp.sum(jnp.diff(picture, axis=0) ** 2) + jnp.sum(jnp.diff(picture, axis=1) ** 2)
    return jnp.sum((convolve2d(picture, BLUR, mode="same") - seen) ** 2) + 3e-4 * rough


@graphc.jit
def sharpen(picture: Any, seen: Any) -> Any:
    return picture - 0.45 * graphc.grad(misfit)(picture, seen)


truth = scene()
reference = np.hypot(ndimage.sobel(truth, 0, mode="constant"), ndimage.sobel(truth, 1, mode="constant"))
np.testing.assert_allclose(edges(truth), reference[1:-1, 1:-1], rtol=1e-10, atol=1e-10)

seen = ndimage.convolve(truth, BLUR, mode="constant") + np.random.default_rng(0).normal(scale=0.003, size=truth.shape)
sharp = seen
for _ in range(1000):
    sharp = sharpen(sharp, seen)
before, after = np.abs(seen - truth).mean(), np.abs(sharp - truth).mean()
assert after < 0.9 * before

figure, panels = plt.subplots(1, 4, figsize=(13, 3.6))
for axes, values, title in zip(
    panels, (truth, edges(truth), seen, sharp), ("scene", "edges", "blurred", "sharper"), strict=True
):
    axes.imshow(values, cmap="gray")
    axes.set(title=title, xticks=[], yticks=[])
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "edges.png", dpi=80)
print(f"edges as SciPy finds them; the error falls from {before:.3f} to {after:.3f}; plotted in {target}")
