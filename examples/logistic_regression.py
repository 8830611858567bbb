"""Logistic regression by minibatches (Minnaar, Building a computational graph engine), on scikit-learn's diabetes data.

Which patients will be worse than the median after a year? The parameters follow a NumPy replay of the same steps.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes

import graphc
import graphc.tensor as T
from graphc import nnet

BATCH, EPOCHS, RATE = 17, 30, 0.1

features, progress = load_diabetes(return_X_y=True, scaled=False)
features = (features - features.mean(axis=0)) / features.std(axis=0)
worse = (progress > np.median(progress)).astype(float)

X, y = T.dmatrix("X"), T.dvector("y")
w, b = graphc.shared(np.zeros(features.shape[1]), name="w"), graphc.shared(0.0, name="b")
probability = nnet.sigmoid(T.dot(X, w) + b)
cost = nnet.binary_crossentropy(probability, y).mean()
gw, gb = graphc.grad(cost, [w, b])
step = graphc.function([X, y], cost, updates=[(w, w - RATE * gw), (b, b - RATE * gb)], name="step")
predict = graphc.function([X], probability > 0.5, name="predict")

weights, bias = np.zeros(features.shape[1]), 0.0  # of the replay
rng = np.random.default_rng(0)
means = []
for epoch in range(1, EPOCHS + 1):
    losses = []
    for batch in np.array_split(rng.permutation(len(features)), len(features) // BATCH):
        rows, labels = features[batch], worse[batch]
        chances = 1 / (1 + np.exp(-(rows @ weights + bias)))
        loss = -np.mean(labels * np.log(chances) + (1 - labels) * np.log(1 - chances))
        weights, bias = (
            weights - RATE * rows.T @ (chances - labels) / len(rows),
            bias - RATE * np.mean(chances - labels),
        )

        losses.append(step(rows, labels))
        np.testing.assert_allclose(losses[-1], loss, rtol=1e-10)
    means.append(np.mean(losses))
    if epoch % 5 == 0:
        print(f"epoch {epoch:2}  loss {means[-1]:.4f}")

np.testing.assert_allclose(w.get_value(), weights, rtol=1e-10)
np.testing.assert_allclose(b.get_value(), bias, rtol=1e-10)
accuracy = np.mean(predict(features) == worse)
print(f"{accuracy:.1%} of {len(features)} patients told rightly; every step as NumPy takes it")
assert means[-1] < means[0] < np.log(2)
assert accuracy > 0.7
