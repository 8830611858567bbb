"""The outer planets for 500 years: the forces between all pairs, and leapfrog, which keeps the energy.

Writes planets.png, or the file that is named.
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

NAMES = ("Sun", "Jupiter", "Saturn", "Uranus", "Neptune")
MASSES = np.array([1.0, 9.548e-4, 2.859e-4, 4.366e-5, 5.151e-5])  # of the Sun
GRAVITY = 4 * np.pi**2  # astronomical units^3 / year^2 / mass of the Sun
RADII = np.array([0.0, 5.203, 9.537, 19.19, 30.07])  # astronomical units
STEP, EVERY, ROWS = 0.05, 20, 500  # years; steps between rows


def potential(places: Any) -> Any:
    """The energy between all pairs, by the mass of the Sun."""
    apart = places[:, None] - places[None]
    distance = jnp.sqrt((apart**2).sum(axis=2) + np.eye(5))  # 1 on the diagonal, which does not count
    return -GRAVITY / 2 * (MASSES[:, None] * MASSES * (1 - np.eye(5)) / distance).sum()


def leap(state: Any) -> Any:
    """A step of leapfrog (Verlet 1967)."""
    places, speeds = state
    force = graphc.grad(potential)
    speeds = speeds - STEP / 2 * force(places) / MASSES[:, None]
    places = places + STEP * speeds
    return places, speeds - STEP / 2 * force(places) / MASSES[:, None]


@graphc.jit
def travel(places: Any, speeds: Any) -> Any:
    """Places and energies, a row for every year."""

    def year(state: Any, _: Any) -> Any:
        state = lax.fori_loop(0, EVERY, lambda _, each: leap(each), state)
        energy = (MASSES[:, None] * state[1] ** 2).sum() / 2 + potential(state[0])
        return state, (state[0], energy)

    return lax.scan(year, (places, speeds), None, length=ROWS)[1]


angles = np.array([0.0, 0.5, 2.1, 4.0, 5.2])
places = RADII[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
pace = np.concatenate([[0.0], np.sqrt(GRAVITY / RADII[1:])])
speeds = pace[:, None] * np.stack([-np.sin(angles), np.cos(angles)], axis=1)
speeds[0] = -(MASSES[1:, None] * speeds[1:]).sum(axis=0)
rows, energies = travel(places, speeds)
drift = np.abs(energies / energies[0] - 1).max()
assert drift < 1e-4

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5))
for k, name in enumerate(NAMES):
    left.plot(*rows[:, k].T, ".", markersize=2, label=name)
left.set(aspect="equal", xlabel="astronomical units")
left.legend(markerscale=5, frameon=False)
right.plot(energies / energies[0] - 1, "k", linewidth=0.6)
right.set(xlabel="years", title="relative change of the energy")
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "planets.png", dpi=80)
print(f"{ROWS * EVERY} steps keep the energy to {drift:.0e}; plotted in {target}")
