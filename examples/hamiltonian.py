"""A Bayesian regression sampled by Hamiltonian Monte Carlo (Duane and others 1987), itself one compiled function.

A scan of leapfrog steps within a scan of samples, with the gradient of the posterior and random numbers from streams:
labels of points in a plane, by a logistic curve. Writes hamiltonian.png, or the file named.
"""

from __future__ import annotations

import sys
from timeit import default_timer
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

import graphc
import graphc.tensor as T
from graphc.tensor.shared_randomstreams import RandomStreams

mpl.use("Agg")  # no screen is needed

TRUTH = np.array([-0.5, 1.5, -1.0])
generator = np.random.default_rng(2)
points = np.concatenate([np.ones((150, 1)), generator.normal(size=(150, 2))], axis=1)
outcomes = (generator.random(150) < 1 / (1 + np.exp(-points @ TRUTH))).astype(float)
STEPS, LENGTH = 12, 0.05

x, y, start, count = T.dmatrix("x"), T.dvector("y"), T.dvector("start"), T.lscalar("count")
streams = RandomStreams(seed=11)


def energy(w: Any) -> Any:
    """Minus the logarithm of the posterior: logistic likelihood, normal priors of deviation 3."""
    margin = (2 * y - 1) * (x @ w)
    return T.nnet.softplus(-margin).sum() + (w**2).sum() / (2 * 3.0**2)


def leap(w: Any, p: Any) -> Any:
    """A step of position and of momentum; half a step of momentum stands before the first and after the last."""
    w = w + LENGTH * p
    return w, p - LENGTH * graphc.grad(energy(w), w)


def sample(w: Any) -> Any:
    """One sample, and whether it was accepted (Metropolis)."""
    p = streams.normal((3,))
    (ends, momenta), _ = graphc.scan(leap, outputs_info=[w, p - LENGTH / 2 * graphc.grad(energy(w), w)], n_steps=STEPS)
    end = ends[-1]
    momentum = momenta[-1] + LENGTH / 2 * graphc.grad(energy(end), end)
    gained = energy(w) + (p**2).sum() / 2 - energy(end) - (momentum**2).sum() / 2
    accepted = T.log(streams.uniform(())) < gained
    return T.switch(accepted, end, w), T.cast(accepted, "float64")


(chain, accepted), updates = graphc.scan(sample, outputs_info=[start, None], n_steps=count)
run = graphc.function([x, y, start, count], [chain, accepted.mean()], updates=updates, name="hamiltonian")

began = default_timer()
samples, rate = run(points, outcomes, np.zeros(3), 4000)
seconds = default_timer() - began
samples = samples[500:]
mean, deviation = samples.mean(0), samples.std(0)
print(f"4000 samples of {STEPS} steps in {seconds:.2f} s, {rate:.0%} accepted")
for true, middle, spread in zip(TRUTH, mean, deviation, strict=True):
    print(f"{true:5.2f} sampled as {middle:5.2f} +- {spread:.2f}")

figure, panels = plt.subplots(1, 3, figsize=(11, 3.2))
panels[0].plot(samples[:600], lw=0.6)
for k, color in enumerate(("C0", "C1", "C2")):
    panels[1].hist(samples[:, k], bins=60, color=color, alpha=0.7)
    panels[1].axvline(TRUTH[k], color=color, ls="--")
panels[2].plot(samples[::5, 1], samples[::5, 2], ".", ms=2, color="0.3")
for axes, title in zip(panels, ("600 samples", "posterior, and truth", "two weights"), strict=True):
    axes.set_title(title)
figure.tight_layout()
figure.savefig(target := sys.argv[1] if sys.argv[1:] else "hamiltonian.png", dpi=80)
assert rate > 0.8 and (abs(mean - TRUTH) < 3 * deviation).all()
print(f"the truth lies within three deviations; plotted in {target}")
