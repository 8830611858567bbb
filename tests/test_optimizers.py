"""Optimisers of trees: their steps by hand, in compiled functions and outside of them, and that they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
from graphc import lax, optimizers, tree
from graphc.errors import GraphValueError


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Iterator[str]:
    with graphc.options.change(mode=request.param):
        yield request.param


G = [np.array([1.0, -2.0]), np.array([0.5, 4.0]), np.array([-1.0, 1.0])]


def by_hand(name: str) -> list[Any]:
    """The steps for the gradients G, written out in NumPy; parameters are zero."""
    steps, v, s = [], np.zeros(2), np.full(2, 0.1 if name == "adagrad" else 0.0)
    for t, g in enumerate(G, 1):
        if name in ("momentum", "nesterov"):
            v = 0.9 * v + g
            steps.append(-0.1 * (0.9 * v + g if name == "nesterov" else v))
        elif name == "adam":
            v, s = 0.9 * v + 0.1 * g, 0.999 * s + 0.001 * g**2
            steps.append(-0.1 * (v / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8))
        elif name in ("rmsprop", "adagrad"):
            s = 0.9 * s + 0.1 * g**2 if name == "rmsprop" else s + g**2
            steps.append(-0.1 * g / np.sqrt(s + (1e-8 if name == "rmsprop" else 1e-7)))
        elif name == "schedule":
            steps.append(-0.1 / t * g)
        else:
            steps.append(-0.1 * g)
    return steps


OPTIMIZERS = {
    "sgd": optimizers.sgd(0.1),
    "momentum": optimizers.momentum(0.1),
    "nesterov": optimizers.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": optimizers.adam(0.1),
    "rmsprop": optimizers.rmsprop(0.1),
    "adagrad": optimizers.adagrad(0.1),
    "schedule": optimizers.sgd(lambda count: 0.1 / (count + 1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_by_hand(name: str) -> None:
    opt, wanted = OPTIMIZERS[name], by_hand(name)
    update = graphc.jit(opt.update)
    plain = state = opt.init({"w": np.zeros(2)})
    for g, expected in zip(G, wanted, strict=True):
        steps, state = update({"w": g}, state)
        npt.assert_allclose(steps["w"], expected, rtol=1e-12)
        steps, plain = opt.update({"w": g}, plain)
        npt.assert_allclose(steps["w"], expected, rtol=1e-12)
    assert len(update.functions) == 1


@pytest.mark.parametrize("name", [*OPTIMIZERS, "adamw", "chain"])
def test_a_loop_of_steps_arrives(name: str) -> None:
    """A quadratic function of a tree of two dtypes, in one compiled loop."""
    known = {"adamw": optimizers.adamw(0.1, weight_decay=1e-4), "chain": optimizers.chain(
        optimizers.clip_by_global_norm(5.0), optimizers.clip(2.0), optimizers.scale(2.0), optimizers.sgd(0.1)
    )}  # fmt: skip
    opt = {**OPTIMIZERS, **known}[name]
    goal = {"w": np.array([1.0, -2.0], "float32"), "b": 0.5}

    def loss(p: Any) -> Any:
        return ((p["w"] - goal["w"]) ** 2).sum() + (p["b"] - goal["b"]) ** 2

    @graphc.jit
    def train(p: Any) -> Any:
        def step(_: Any, both: Any) -> Any:
            p, state = both
            steps, state = opt.update(graphc.grad(loss)(p), state, p)
            return optimizers.apply_updates(p, steps), state

        return lax.fori_loop(0, 400, step, (p, opt.init(p)))

    begin = {"w": np.zeros(2, "float32"), "b": np.float64(0.0)}
    found, state = train(begin)
    assert found["w"].dtype == "float32" and found["b"].dtype == "float64"
    assert [leaf.dtype.kind for leaf in tree.leaves(state)].count("i") == 1
    far = {"schedule": 1.2, "adagrad": 0.2, "rmsprop": 0.1, "adamw": 0.01, "adam": 0.01}.get(name, 1e-5)
    assert loss(found) < far


def test_gradients_that_are_clipped() -> None:
    g = {"a": np.array([3.0, 0.0]), "b": np.array(4.0)}
    opt = optimizers.clip_by_global_norm(1.0)
    steps, _ = opt.update(g, opt.init(g))
    npt.assert_allclose(steps["a"], [0.6, 0.0])
    assert steps["b"] == pytest.approx(0.8)
    same, _ = optimizers.clip_by_global_norm(10.0).update(g, ())
    npt.assert_array_equal(same["a"], g["a"])
    with pytest.raises(GraphValueError, match="needs the parameters, which decay"):
        optimizers.adamw(0.1).update(g, optimizers.adamw(0.1).init(g))
