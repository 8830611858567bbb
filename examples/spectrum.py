"""Two tones in noise: a Fourier transform finds their frequencies, and least squares make them exact.

Writes spectrum.png, or the file that is named.
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

RATE, SECONDS = 1000.0, 2.0  # samples a second
TRUTH = {"frequency": np.array([50.3, 121.7]), "sine": np.array([1.0, 0.0]), "cosine": np.array([0.0, 0.6])}
times = np.arange(0, SECONDS, 1 / RATE)


def tones(p: Any) -> Any:
    """The sum of both tones at all times."""
    angle = 2 * np.pi * p["frequency"][:, None] * times
    return jnp.sum(p["sine"][:, None] * jnp.sin(angle) + p["cosine"][:, None] * jnp.cos(angle), axis=0)


signal = np.asarray(tones(TRUTH)) + np.random.default_rng(0).normal(scale=1.0, size=len(times))
power = np.abs(np.fft.rfft(signal)) ** 2
frequencies = np.fft.rfftfreq(len(times), 1 / RATE)
largest = np.argsort(power)[::-1]
first = largest[0]
second = next(k for k in largest if abs(k - first) > 5)
guess = {
    "frequency": np.sort(frequencies[[first, second]]),
    "sine": np.full(2, 0.5),
    "cosine": np.full(2, 0.5),
}
found = least_squares(lambda p: tones(p) - signal, guess)
fitted = found.x["frequency"]
deviation = found.covariance.errors["frequency"]
for k in range(2):
    print(f"{fitted[k]:8.3f} +- {deviation[k]:.3f} Hz, in truth {TRUTH['frequency'][k]}")
assert (np.abs(fitted - TRUTH["frequency"]) < 4 * deviation).all()

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
left.plot(times[:100], signal[:100], ".", color="0.6", label="measured")
left.plot(times[:100], np.asarray(tones(found.x))[:100], "C0", label="fitted")
left.set(xlabel="seconds")
left.legend()
right.semilogy(frequencies, power, "0.6")
for frequency in fitted:
    right.axvline(frequency, color="C3", linewidth=0.8)
right.set(xlabel="Hz", title="power")
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "spectrum.png", dpi=80)
print(f"both frequencies within four deviations; plotted in {target}")
