"""k-means (Lloyd 1957) as a function of arrays: a step is one compiled loop, repeated until no centre moves.

Writes clusters.png, or the file that is named.
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


def nearest(points: Any, centres: Any) -> Any:
    """For each point the number of its nearest centre."""
    return jnp.argmin(((points[:, None] - centres[None]) ** 2).sum(axis=2), axis=1)


def moved(points: Any, centres: Any) -> Any:
    """The mean of the points that belong to each centre; a centre without points stays."""
    mine = nearest(points, centres)
    counts = jnp.zeros(len(centres)).at[mine].add(1.0)
    sums = jnp.zeros_like(centres).at[mine].add(points)
    return jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1.0)[:, None], centres)


@graphc.jit
def cluster(points: Any, centres: Any) -> Any:
    """Centres that a step no longer moves, and the number of steps."""

    def goes_on(state: Any) -> Any:
        old, new, steps = state
        return (jnp.abs(new - old).max() > 0) & (steps < 100)

    def step(state: Any) -> Any:
        _, new, steps = state
        return new, moved(points, new), steps + 1

    _, centres, steps = lax.while_loop(goes_on, step, (centres, moved(points, centres), 1))
    return centres, steps


rng = np.random.default_rng(2)
truth = rng.uniform(-10, 10, size=(7, 2))
points = np.concatenate([centre + rng.normal(size=(700, 2)) for centre in truth])
starts = [points[rng.choice(len(points), 7, replace=False)] for _ in range(10)]
results = [cluster(points, start) for start in starts]
within = [((points - centres[nearest(points, centres)]) ** 2).sum() for centres, _ in results]
centres, steps = results[int(np.argmin(within))]
labels = np.asarray(nearest(points, centres))
for k in range(7):
    np.testing.assert_allclose(centres[k], points[labels == k].mean(axis=0), rtol=1e-9)
distance = np.sqrt(((truth[:, None] - centres[None]) ** 2).sum(axis=2)).min(axis=1)
assert distance.max() < 0.5

figure, axes = plt.subplots(figsize=(6, 5.5))
axes.scatter(points[:, 0], points[:, 1], c=labels, s=3, cmap="tab10")
axes.plot(*centres.T, "k+", markersize=14, markeredgewidth=2)
axes.set(aspect="equal")
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "clusters.png", dpi=80)
print(f"{int(steps)} steps; each centre within {distance.max():.2f} of the truth; plotted in {target}")
