"""Two double pendulums that begin a millionth of a degree apart: SciPy's solve_ivp inside a compiled function.

The derivative of the end by the beginning says how fast they part. Writes double_pendulum.png, or the file that is
named.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import graphc
import graphc.numpy as jnp
from graphc.scipy.integrate import solve_ivp

mpl.use("Agg")  # no screen is needed

GRAVITY = 9.81  # m / s^2; both rods are 1 m long, both masses 1 kg
TIMES = np.linspace(0.0, 12.0, 600)  # s


def motion(_: Any, state: Any) -> Any:
    """The derivatives by time of both angles and both angular velocities (Lagrange's equations)."""
    first, second, w1, w2 = state[0], state[1], state[2], state[3]
    apart = first - second
    below = 2 - jnp.cos(apart) ** 2
    a1 = (
        -jnp.sin(apart) * (w1**2 * jnp.cos(apart) + w2**2)
        + GRAVITY * (jnp.sin(second) * jnp.cos(apart) - 2 * jnp.sin(first))
    ) / below
    a2 = (
        jnp.sin(apart) * (2 * w1**2 + w2**2 * jnp.cos(apart))
        + 2 * GRAVITY * (jnp.sin(first) * jnp.cos(apart) - jnp.sin(second))
    ) / below
    return jnp.stack([w1, w2, a1, a2])


@graphc.jit
def solve(start: Any) -> Any:
    return solve_ivp(motion, (0.0, 12.0), start, t_eval=TIMES, rtol=1e-9, atol=1e-9).y


def energy(states: np.ndarray) -> np.ndarray:
    """Joules, above the lowest position of both masses."""
    first, second, w1, w2 = states
    kinetic = w1**2 + w2**2 / 2 + w1 * w2 * np.cos(first - second)
    height = 3 - 2 * np.cos(first) - np.cos(second)
    return np.asarray(kinetic + GRAVITY * height)


start = np.array([2.0, 2.5, 0.0, 0.0])
path, other = solve(start), solve(start + np.radians([1e-6, 0, 0, 0]))
np.testing.assert_allclose(energy(path), energy(path)[0], rtol=1e-5)
second_later = graphc.jit(lambda s: solve_ivp(motion, (0.0, 1.0), s, t_eval=[1.0], rtol=1e-9, atol=1e-9).y[:, 0])
slope = graphc.jacrev(second_later)(start)
step = np.array([1e-5, 0, 0, 0])
np.testing.assert_allclose(slope[:, 0], (second_later(start + step) - second_later(start - step)) / 2e-5, rtol=1e-4)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5))
for states, style in ((path, "C0"), (other, "C3")):
    x = np.sin(states[0]) + np.sin(states[1])
    y = -np.cos(states[0]) - np.cos(states[1])
    left.plot(x, y, style, linewidth=0.8)
left.set(aspect="equal", title="path of the lower mass", xlabel="m", ylabel="m")
right.semilogy(TIMES, np.degrees(np.abs(path[0] - other[0])) + 1e-9, "k")
right.set(title="distance of the upper angles", xlabel="seconds", ylabel="degrees")
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "double_pendulum.png", dpi=80)
apart = np.degrees(np.abs(path[0] - other[0])[-1])
print(f"energy is kept to 1e-5; after 12 s the angles are {apart:.2g} degrees apart; plotted in {target}")
