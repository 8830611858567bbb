"""Programs of autograd's and JAX's examples, in small: under `jit` they give what they give as plain NumPy, for several
sizes, and their gradients are the differences of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
from graphc import lax
from graphc.flatten_util import ravel_pytree

Case = tuple[Callable[..., Any], list[tuple[Any, ...]]]


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with graphc.options.change(mode="interpreted"):
        yield


def draws(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def logsumexp(x: Any, axis: int, keepdims: bool = False) -> Any:
    top = jnp.max(x, axis=axis, keepdims=True)
    whole = top + jnp.log(jnp.sum(jnp.exp(x - top), axis=axis, keepdims=True))
    return whole if keepdims else jnp.squeeze(whole, axis=axis)


def moved_smoke(speeds: Any, smoke: Any) -> Any:
    """Autograd's fluidsim: a field is moved along its speeds, by indices that wrap around."""
    vx, vy = speeds
    rows, columns = smoke.shape
    ys, xs = jnp.meshgrid(jnp.arange(columns), jnp.arange(rows))
    center_xs, center_ys = (xs - vx).ravel(), (ys - vy).ravel()
    left, top = jnp.floor(center_xs).astype(int), jnp.floor(center_ys).astype(int)
    right_part, low_part = center_xs - left, center_ys - top
    left, top = jnp.mod(left, rows), jnp.mod(top, columns)
    right, low = jnp.mod(left + 1, rows), jnp.mod(top + 1, columns)
    field = jnp.asarray(smoke)
    flat = (1 - right_part) * ((1 - low_part) * field[left, top] + low_part * field[left, low])
    flat += right_part * ((1 - low_part) * field[right, top] + low_part * field[right, low])
    moved = jnp.reshape(flat, (rows, columns))
    return jnp.mean((moved - jnp.roll(smoke, 1, axis=0)) ** 2)


def posterior(params: Any, inputs: Any, targets: Any) -> Any:
    """Autograd's neural_net."""
    flat, _ = ravel_pytree(params)
    for weights, bias in params:
        outputs = jnp.dot(inputs, weights) + bias
        inputs = jnp.tanh(outputs)
    outputs = outputs - logsumexp(outputs, 1, keepdims=True)
    return jnp.sum(outputs * targets) - 0.1 * jnp.dot(flat, flat)


def mixture(params: Any, data: Any) -> Any:
    """Autograd's gmm, with a loop over the components."""
    rows = []
    for proportion, mean, root in zip(params["log proportions"], params["means"], params["roots"], strict=True):
        covariance, apart = jnp.dot(root.T, root) + jnp.eye(len(mean)), data - mean
        fit = jnp.sum(apart * jnp.linalg.solve(covariance, apart.T).T, axis=1)
        rows.append(proportion - 0.5 * fit - 0.5 * jnp.linalg.slogdet(covariance)[1])
    return jnp.sum(logsumexp(jnp.vstack(rows), 0))


def chain(params: Any, *series: Any) -> Any:
    """Autograd's hmm_em: the log partition function of several series."""
    start, steps, outputs = params
    total = 0.0
    for observed in series:
        level = start
        for item in observed:
            level = logsumexp(level[:, None] + steps, 0) + outputs[:, item]
        total += logsumexp(level, 0)
    return total


def cells(params: Any, inputs: Any) -> Any:
    """Autograd's lstm."""

    def product(weights: Any, *parts: Any) -> Any:
        return jnp.dot(jnp.hstack((*parts, jnp.ones((parts[0].shape[0], 1)))), weights)

    hidden = jnp.repeat(params["hidden"], inputs.shape[1], axis=0)
    level = jnp.zeros_like(hidden)
    rest = 0.0
    for each in inputs:
        gate = 0.5 * (jnp.tanh(product(params["gate"], each, hidden)) + 1)
        level = level * gate + (1 - gate) * jnp.tanh(product(params["change"], each, hidden))
        hidden = gate * jnp.tanh(level)
        rest += jnp.sum(hidden**2)
    return rest / (inputs.shape[0] * inputs.shape[1])


class Kernels:
    """Autograd's rkhs: a sum of kernels, which is called as a function."""

    def __init__(self, weights: dict[float, Any]) -> None:
        self.weights = weights

    def __call__(self, x: Any) -> Any:
        return sum([weight * jnp.exp(-((x - place) ** 2)) for place, weight in self.weights.items()], 0.0)

    def __add__(self, other: Kernels) -> Kernels:
        places = sorted({*self.weights, *other.weights})
        return Kernels({each: self.weights.get(each, 0) + other.weights.get(each, 0) for each in places})


def fitted(weights: Any, xs: Any) -> Any:
    f = Kernels(dict(zip([0.0, 1.0], weights, strict=True)))
    f = f + f + Kernels({2.0: weights[0]})
    return sum((f(x) - x) ** 2 for x in xs)


def pooled(filters: Any, images: Any) -> Any:
    """Autograd's convnet: a convolution and a pool by reshapes."""
    x = lax.conv(images, filters, (1, 1), "VALID")
    shape = x.shape[:2]
    for axis in (2, 3):
        shape += (2, x.shape[axis] // 2)
    x = jnp.max(jnp.max(x.reshape(shape), axis=2), axis=3)
    return jnp.mean(jnp.tanh(x.reshape((x.shape[0], jnp.prod(x.shape[1:])))) ** 2)


def recurrent(params: Any, xs: Any) -> Any:
    """JAX's scan, with writes and questions about sizes in its step."""

    def step(level: Any, x: Any) -> Any:
        row = jnp.zeros(x.shape[0] + 1)
        row[0] = level.sum()
        for k in range(x.shape[0]):
            row[k + 1] = row[k] * 0.5 + x[k]
        if x.shape[0] > 2:
            row[1:] *= 2
        level = jnp.tanh(params["w"] @ level + row[-1])
        return level, row

    level, rows = lax.scan(step, jnp.zeros(2), xs)
    return level.sum() + rows.sum() + (params["w"] ** 2).sum()


def bootstrapped(weights: Any, state: Any, reward: Any, after: Any) -> Any:
    """JAX's TD(0): the target has no derivative."""
    target = reward + jnp.dot(weights, after)
    own = jnp.dot(weights, state)
    return -own * (lax.stop_gradient(target - own))


def decayed(rates: Any, inputs: Any) -> Any:
    """JAX's associative_scan: a linear recurrence."""
    _, levels = lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (rates, inputs))
    return (levels**2).sum()


LAYERS = [(draws(0, 3, 4), draws(1, 4)), (draws(2, 4, 2), draws(3, 2))]
MIXTURE = {"log proportions": draws(0, 2), "means": draws(1, 2, 3), "roots": draws(2, 2, 3, 3)}
CHAIN = draws(0, 2), draws(1, 2, 2), draws(2, 2, 3)
CELLS = {"hidden": draws(0, 1, 2), "gate": draws(1, 6, 2), "change": draws(2, 6, 2)}
CASES: dict[str, Case] = {
    "fluid": (moved_smoke, [(0.3 * draws(0, 2, n, m), draws(1, n, m)) for n, m in ((3, 4), (5, 2))]),
    "net": (posterior, [(LAYERS, draws(n, n, 3), np.eye(2)[[k % 2 for k in range(n)]]) for n in (1, 5)]),
    "mixture": (mixture, [(MIXTURE, draws(n, n, 3)) for n in (1, 6)]),
    "chain": (chain, [(CHAIN, np.array([0, 2, 1]), np.array([1])), (CHAIN, np.array([2]), np.array([0, 1]))]),
    "cells": (cells, [(CELLS, draws(n, n, 4, 3)) for n in (1, 3)]),
    "kernels": (fitted, [(draws(0, 2), draws(n, n)) for n in (1, 3)]),
    "pool": (pooled, [(draws(0, 2, 1, 2, 2), draws(n, 2, 1, n, 5)) for n in (3, 7)]),
    "recurrent": (recurrent, [({"w": draws(0, 2, 2)}, draws(n, 3, n)) for n in (1, 2, 4)]),
    "recurrence": (decayed, [(draws(0, n), draws(1, n)) for n in (1, 6)]),
}


@pytest.mark.parametrize("name", CASES)
def test_known_programs(name: str) -> None:
    function, calls = CASES[name]
    fast, slope = graphc.jit(function), graphc.jit(graphc.grad(function))
    for params, *rest in calls:
        plain = function(params, *rest)
        found = fast(params, *rest)
        npt.assert_allclose(found, plain, rtol=1e-10)
        assert np.asarray(found).dtype == np.asarray(plain).dtype
        flat, whole = ravel_pytree(params)
        along = draws(7, *flat.shape)
        exact = np.dot(ravel_pytree(slope(params, *rest))[0], along)
        step = 1e-5  # the differences err by its square times third derivatives, and by rounding over it
        ends = [function(whole(flat + sign * step * along), *rest) for sign in (1, -1)]
        npt.assert_allclose((ends[0] - ends[1]) / (2 * step), exact, rtol=1e-5, atol=1e-6)


def test_gradients_of_elements() -> None:
    rows = draws(0, 3), draws(1, 4, 3), draws(2, 4), draws(3, 4, 3)
    found = graphc.jit(graphc.vmap(graphc.grad(bootstrapped), in_axes=(None, 0, 0, 0)))(*rows)
    for k in range(4):
        weights, state, reward, after = rows[0], *(each[k] for each in rows[1:])
        npt.assert_allclose(found[k], -(reward + weights @ after - weights @ state) * state, rtol=1e-12)
