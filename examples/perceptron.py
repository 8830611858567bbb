"""A perceptron between two clouds of points (Sabinasz, Deep learning from scratch II to IV), trained by sessions."""

from __future__ import annotations

import numpy as np

import graphc.session as ts

ts.Graph().as_default()
session = ts.Session()

# One point: the weights (1, 1) say that (3, 2) is on the red side.
x = ts.placeholder(name="x")
chance = ts.sigmoid(ts.add(ts.matmul(ts.Variable([1, 1]), x), ts.Variable(0)))
print("chance of (3, 2) to be red:", session.run(chance, {x: [3, 2]}))
np.testing.assert_allclose(session.run(chance, {x: [3, 2]}), 0.993307149076, rtol=1e-12)

# Two clouds of 50 points each, and the chances of both classes by a softmax.
rng = np.random.default_rng(0)
blue, red = rng.normal(2, 1, size=(50, 2)), rng.normal(-2, 1, size=(50, 2))
points = np.concatenate([blue, red])
classes = [[1, 0]] * len(blue) + [[0, 1]] * len(red)

X, c = ts.placeholder(name="X"), ts.placeholder(name="c")
W, b = ts.Variable(rng.normal(size=(2, 2)), name="W"), ts.Variable(rng.normal(size=2), name="b")
p = ts.softmax(ts.add(ts.matmul(X, W), b))
J = ts.negative(ts.reduce_sum(ts.reduce_sum(ts.multiply(c, ts.log(p)), axis=1)))
minimization = ts.train.GradientDescentOptimizer(learning_rate=0.01).minimize(J)
by_scores = ts.train.compute_gradients(J)[p.input_nodes[0]]

feed_dict = {X: points, c: classes}
chances, gradient = session.run([p, by_scores], feed_dict)
np.testing.assert_allclose(gradient, chances - classes, atol=1e-12)

losses = []
for step in range(100):
    losses.append(session.run([J, minimization], feed_dict)[0])
    if step % 10 == 0:
        print(f"step {step:2}  loss {losses[-1]:.4f}")
print("W =", *session.run(W), " b =", session.run(b))

predicted = session.run(p, {X: points}).argmax(axis=1)
print(f"{np.mean(predicted == np.argmax(classes, axis=1)):.0%} of the points are classified rightly")
assert losses[0] > 100 and losses[-1] < 1
assert session.run(p, {X: [[2, 2]]})[0, 0] > 0.99 and session.run(p, {X: [[-2, -2]]})[0, 1] > 0.99
