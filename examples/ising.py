"""Magnets on a grid (Ising 1925): Metropolis' rule on the black and white fields of a board in turn, with keys.

Writes ising.png, or the file that is named.
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

SIZE, SWEEPS = 96, 300
CRITICAL = 2 / np.log(1 + np.sqrt(2))  # Onsager 1944
BOARD = np.indices((SIZE, SIZE)).sum(axis=0) % 2


@graphc.jit
def settle(spins: Any, temperature: Any, key: Any) -> Any:
    """The spins after SWEEPS sweeps, and the mean magnetisation after each."""

    def sweep(spins: Any, number: Any) -> Any:
        for colour in (0, 1):
            around = jnp.roll(spins, 1, 0) + jnp.roll(spins, -1, 0) + jnp.roll(spins, 1, 1) + jnp.roll(spins, -1, 1)
            chance = jnp.exp(-2 * spins * around / temperature)
            drawn = graphc.random.uniform(graphc.random.fold_in(key, 2 * number + colour), (SIZE, SIZE))
            spins = jnp.where((drawn < chance) & (colour == BOARD), -spins, spins)
        return spins, spins.mean()

    return lax.scan(sweep, spins, np.arange(SWEEPS))


def exact(temperature: float) -> float:
    """The magnetisation of an endless grid (Yang 1952)."""
    return (1 - np.sinh(2 / temperature) ** -4) ** 0.125 if temperature < CRITICAL else 0.0


temperatures = (1.5, 2.0, CRITICAL, 4.0)
up = np.ones((SIZE, SIZE))
key = graphc.random.key(0)
figure, panels = plt.subplots(1, 4, figsize=(13, 3.6))
for axes, temperature in zip(panels, temperatures, strict=True):
    spins, means = settle(up, temperature, key)
    found = means[SWEEPS // 2 :].mean()
    print(f"temperature {temperature:.2f}: magnetisation {found:6.3f}, of an endless grid {exact(temperature):.3f}")
    if temperature != CRITICAL:
        assert abs(found - exact(temperature)) < 0.03
    axes.imshow(spins, cmap="gray", interpolation="nearest")
    axes.set(title=f"temperature {temperature:.2f}", xticks=[], yticks=[])
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "ising.png", dpi=80)
print(f"away from the critical temperature within 0.03; plotted in {target}")
