"""A network with one hidden layer (Minnaar's nn_regression) on scikit-learn's diabetes data, each step as in NumPy."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes

import graphc
import graphc.tensor as T
from graphc import nnet, optim

BATCH, EPOCHS, RATE, HIDDEN = 11, 20, 1e-2, 10

features, target = load_diabetes(return_X_y=True, scaled=False)
features = (features - features.mean(axis=0)) / features.std(axis=0)
target = (target / 100)[:, None]

rng = np.random.default_rng(0)
first = [rng.normal(size=(features.shape[1], HIDDEN)), np.zeros(HIDDEN), rng.normal(size=(HIDDEN, 1)), np.zeros(1)]

X, y = T.dmatrix("X"), T.dmatrix("y")
W1, b1, W2, b2 = params = [graphc.shared(v, name=name) for v, name in zip(first, ("W1", "b1", "W2", "b2"), strict=True)]
hidden = nnet.sigmoid(T.dot(X, W1) + b1)
cost = T.sqr(T.dot(hidden, W2) + b2 - y).mean()
step = graphc.function([X, y], cost, updates=optim.sgd(cost, params, RATE), name="step")


def replay(values: list[np.ndarray], rows: np.ndarray, wanted: np.ndarray) -> float:
    """The same step by hand: changes `values`, gives the loss before."""
    w_in, b_in, w_out, b_out = values
    inner = 1 / (1 + np.exp(-(rows @ w_in + b_in)))
    residue = inner @ w_out + b_out - wanted
    back = 2 * residue / len(rows)
    inner_back = back @ w_out.T * inner * (1 - inner)
    gradients = [rows.T @ inner_back, inner_back.sum(axis=0), inner.T @ back, back.sum(axis=0)]
    values[:] = [value - RATE * gradient for value, gradient in zip(values, gradients, strict=True)]
    return float(np.mean(residue**2))


values = list(first)
means = []
for epoch in range(1, EPOCHS + 1):
    losses = []
    for _ in range(len(features) // BATCH):
        batch = rng.integers(len(features), size=BATCH)
        losses.append(step(features[batch], target[batch]))
        np.testing.assert_allclose(losses[-1], replay(values, features[batch], target[batch]), rtol=1e-10)
    means.append(np.mean(losses))
    print(f"epoch {epoch:2}  loss {means[-1]:.4f}")

for param, value in zip(params, values, strict=True):
    np.testing.assert_allclose(param.get_value(), value, rtol=1e-9, atol=1e-12)
assert means[-1] < 0.6 * means[0]
print("every loss and every parameter as NumPy has it")
