"""A convolutional network tells scikit-learn's digits, 99% of those that it has not seen; its picture shows how.

Three convolutions with batch normalisation, pooling and dropout, then two dense layers, trained by Adam.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from graphc import optim
from graphc.layers import Sequential
from graphc.train import Trainer, plots

BATCH = 32

images, labels = load_digits(return_X_y=True)
images = (images / 16).reshape(-1, 1, 8, 8)
split = train_test_split(images, labels, test_size=0.25, stratify=labels, random_state=0)
train, test, train_labels, test_labels = split

net = Sequential(input_shape=(1, 8, 8), seed=0)
net.add_conv(1, 32, 3, "relu", border="same", normalize=True)
net.add_conv(32, 32, 3, "relu", border="same", normalize=True, pool=2, dropout=0.2)
net.add_conv(32, 64, 3, "relu", border="same", normalize=True, pool=2, dropout=0.2)
net.add_flatten()
net.add_fc(None, 128, "relu", dropout=0.4)
net.add_fc(None, 10)
net.add_cost("softmax")


def draw(trainer: Trainer) -> None:
    """The training, the first layer's filters, and the test images of which the network is least sure."""
    figure: Any = Figure(figsize=(12, 8), layout="constrained")
    above, below = figure.subfigures(2, 1)
    plots.panels(above, trainer.history)
    left, right = below.subfigures(1, 2)
    for panel, values in zip(left.subplots(4, 8).flat, net.params[0].get_value()[:, 0], strict=True):
        panel.imshow(values, cmap="coolwarm")
        panel.set_axis_off()
    chances = net.predict_probabilities(test)
    sure = chances[np.arange(len(test)), test_labels]
    for panel, number in zip(right.subplots(3, 6).flat, np.argsort(sure), strict=False):
        panel.imshow(test[number, 0], cmap="gray_r")
        panel.set_title(f"{test_labels[number]}, told {chances[number].argmax()}: {sure[number]:.0%}", fontsize=7)
        panel.set_axis_off()
    figure.savefig("convolutional_digits.png", dpi=90)


epochs = int(sys.argv[1]) if sys.argv[1:] else 20
steps = -(-len(train) // BATCH)
trainer = Trainer(net, optim.adam, optim.cosine(3e-3, epochs * steps, warmup=steps), BATCH, clip_norm=5.0)
trainer.train(train, train_labels, epochs, validation=(test, test_labels))
accuracy = np.mean(net.predict(test) == test_labels)
draw(trainer)
assert accuracy >= (0.99 if epochs >= 20 else 0.5)
print(f"{accuracy:.2%} of {len(test)} test images; the training, filters and hard ones are in convolutional_digits.png")
