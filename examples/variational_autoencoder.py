"""A variational autoencoder (Kingma and Welling, 2014) of scikit-learn's digits, and a page of what it draws.

Each image is told by two numbers. The page has the images for a lattice of these, as a normal distribution spaces it.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.datasets import load_digits

import graphc
import graphc.tensor as T
from graphc import layers, nnet, optim
from graphc.tensor.shared_randomstreams import RandomStreams

BATCH, HIDDEN, LATENT, PAGE = 64, 256, 2, 14

images = (load_digits().images.reshape(-1, 64) / 16).astype("float32")


def network(*sizes: int, seed: int) -> layers.Sequential:
    """Dense layers of these sizes, all but the last with rectifiers."""
    net = layers.Sequential(seed=seed)
    for place, (before, after) in enumerate(pairwise(sizes)):
        net.add_fc(before, after, "relu" if place < len(sizes) - 2 else None)
    return net


encoder = network(64, HIDDEN, HIDDEN, 2 * LATENT, seed=1)
decoder = network(LATENT, HIDDEN, HIDDEN, 64, seed=2)


def training(rate: graphc.SharedVariable) -> graphc.Function:
    """A step on some images, which gives the bound of their negative log likelihood, in nats an image."""
    x: Any = T.TensorType("float32", (None, 64))("x")
    told = encoder(x)
    mean, log_variance = told[:, :LATENT], told[:, LATENT:]
    noise = RandomStreams(seed=3).normal(mean.shape, dtype="float32")
    scores = decoder(mean + T.exp(0.5 * log_variance) * noise)
    misfit = nnet.sigmoid_binary_crossentropy(scores, x).sum(1)
    divergence = 0.5 * (T.exp(log_variance) + mean**2 - 1 - log_variance).sum(1)
    cost = (misfit + divergence).mean()
    updates = optim.adam(cost, [*encoder.params, *decoder.params], rate)
    return graphc.function([x], cost, updates=updates, name="train")


def drawing() -> graphc.Function:
    """Images of pairs of numbers."""
    pairs: Any = T.TensorType("float32", (None, LATENT))("pairs")
    return graphc.function([pairs], nnet.sigmoid(decoder(pairs)), name="draw")


epochs = int(sys.argv[1]) if sys.argv[1:] else 150
rate, rng = graphc.shared(np.float32(0), name="rate"), np.random.default_rng(0)
schedule = optim.cosine(2e-3, epochs, warmup=2)
train, draw = training(rate), drawing()
for epoch in range(epochs):
    rate.set_value(np.float32(schedule(epoch)))
    order = rng.permutation(len(images))
    bounds = [train(images[order[n : n + BATCH]]) for n in range(0, len(images), BATCH)]
    if epoch % 25 == 24 or epoch == epochs - 1:
        print(f"after {epoch + 1} epochs at most {np.mean(bounds):.2f} nats an image")

spots = norm.ppf(np.linspace(0.02, 0.98, PAGE)).astype("float32")
lattice = np.stack(np.meshgrid(spots, -spots), -1).reshape(-1, LATENT)
cells = np.pad(draw(lattice).reshape(PAGE, PAGE, 8, 8), ((0, 0), (0, 0), (1, 1), (2, 2)))
page = np.concatenate(np.concatenate(cells, axis=1), axis=1)  # the rows of cells below each other, then side by side
figure = Figure(figsize=(7, 7), layout="constrained")
figure.subplots().set_axis_off()
figure.axes[0].imshow(page, cmap="gray_r", interpolation="nearest")
figure.savefig("variational_autoencoder.png", dpi=100)
assert np.mean(bounds) < (45 if epochs < 150 else 24.5)
print("a page of digits is in variational_autoencoder.png")
