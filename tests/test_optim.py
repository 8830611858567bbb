"""Optimisers: fifty steps of each are those of its formula in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import optim
from graphc.errors import GraphTypeError, GraphValueError, UpdateError
from graphc.ir.node import literal
from graphc.options import options
from graphc.shared import SharedVariable, shared

STEPS = 50
RATE = 0.05
Moves = Generator[Any, Any, None]
"""A replay of one parameter: it is sent gradients, and gives what each step adds to the parameter."""


def replay_sgd() -> Moves:
    g = yield
    while True:
        g = yield -RATE * g


def replay_momentum(mu: float = 0.8) -> Moves:
    g, v = (yield), 0.0
    while True:
        v = mu * v - RATE * g
        g = yield v


def replay_nesterov(mu: float = 0.8) -> Moves:
    """In the form of two velocities: (1 + mu) v' - mu v."""
    g, v = (yield), 0.0
    while True:
        old, v = v, mu * v - RATE * g
        g = yield (1 + mu) * v - mu * old


def replay_rmsprop(decay: float = 0.9, epsilon: float = 1e-3) -> Moves:
    g, a = (yield), 0.0
    while True:
        a = decay * a + (1 - decay) * g * g
        g = yield -RATE * g / (np.sqrt(a) + epsilon)


def replay_adagrad(epsilon: float = 1e-3) -> Moves:
    g, a = (yield), 0.0
    while True:
        a = a + g * g
        g = yield -RATE * g / (np.sqrt(a) + epsilon)


def replay_adadelta(decay: float = 0.9, epsilon: float = 1e-3) -> Moves:
    g, a, b = (yield), 0.0, 0.0
    while True:
        a = decay * a + (1 - decay) * g * g
        d = np.sqrt(b + epsilon) / np.sqrt(a + epsilon) * g
        b = decay * b + (1 - decay) * d * d
        g = yield -RATE * d


def replay_adam(betas: tuple[float, float] = (0.8, 0.9), epsilon: float = 1e-3) -> Moves:
    g, m, v, t = (yield), 0.0, 0.0, 0
    while True:
        t += 1
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        g = yield -RATE * (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + epsilon)


Build = Callable[..., optim.Updates]
CASES: dict[str, tuple[Build, dict[str, Any], Callable[[], Any]]] = {
    "sgd": (optim.sgd, {}, replay_sgd),
    "momentum": (optim.momentum, {"momentum": 0.8}, replay_momentum),
    "nesterov": (optim.nesterov, {"momentum": 0.8}, replay_nesterov),
    "rmsprop": (optim.rmsprop, {"epsilon": 1e-3}, replay_rmsprop),
    "adagrad": (optim.adagrad, {"epsilon": 1e-3}, replay_adagrad),
    "adadelta": (optim.adadelta, {"decay": 0.9, "epsilon": 1e-3}, replay_adadelta),
    "adam": (optim.adam, {"betas": (0.8, 0.9), "epsilon": 1e-3}, replay_adam),
}

X = np.random.default_rng(0).normal(size=(8, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3


def least_squares(dtype: str) -> tuple[Any, list[SharedVariable]]:
    """The mean squared error of a line, which has a gradient one can write down."""
    w, b = shared(np.array([0.5, 0.1, -0.4], dtype), "w"), shared(np.array(0.2, dtype), "b")
    error = literal(X, dtype).dot(w) + b - literal(Y, dtype)
    return (error * error).mean(), [w, b]


def replay(moves: Callable[[], Any], l2: float) -> list[Any]:
    w, b = np.array([0.5, 0.1, -0.4]), np.array(0.2)
    of_w, of_b = moves(), moves()
    next(of_w), next(of_b)
    for _ in range(STEPS):
        error = X @ w + b - Y
        gradients = 2 * X.T @ error / len(Y) + l2 * w, 2 * error.mean() + l2 * b
        w, b = w + of_w.send(gradients[0]), b + of_b.send(gradients[1])
    return [w, b]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("name", CASES)
def test_fifty_steps_are_those_of_the_formula(name: str, l2: float, mode: str) -> None:
    build, arguments, moves = CASES[name]
    cost, params = least_squares("float64")
    step = graphc.function([], cost, updates=build(cost, params, RATE, **arguments, l2=l2), mode=mode)
    for _ in range(STEPS):
        step()
    for param, expected in zip(params, replay(moves, l2), strict=True):
        np.testing.assert_allclose(param.get_value(), expected, rtol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_state_has_the_dtype_of_its_parameter(name: str) -> None:
    build, arguments, moves = CASES[name]
    cost, params = least_squares("float32")
    updates = build(cost, params, RATE, **arguments)
    assert {variable.dtype for variable in updates} - {"int64"} == {"float32"}
    assert all(variable.dtype == value.dtype and variable.ndim == value.ndim for variable, value in updates.items())
    assert all(variable.name for variable in updates) and len({variable.name for variable in updates}) == len(updates)
    step = graphc.function([], cost, updates=updates, mode="interpreted")
    for _ in range(STEPS):
        step()
    for param, expected in zip(params, replay(moves, 0.0), strict=True):
        np.testing.assert_allclose(param.get_value(), expected, rtol=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_the_learning_rate_may_be_a_variable_and_the_gradients_be_given(name: str) -> None:
    build, arguments, moves = CASES[name]
    cost, params = least_squares("float64")
    rate = shared(0.0, "rate")
    updates = build(graphc.grad(cost, params), params, rate, **arguments)
    step = graphc.function([], cost, updates=updates, mode="interpreted")
    step()
    assert params[1].get_value() == 0.2
    for variable in updates:
        variable.set_value(np.zeros_like(variable.get_value()) if variable not in params else variable.get_value())
    rate.set_value(RATE)
    for _ in range(STEPS):
        step()
    for param, expected in zip(params, replay(moves, 0.0), strict=True):
        np.testing.assert_allclose(param.get_value(), expected, rtol=1e-10)


def test_a_wide_rate_does_not_widen_a_parameter() -> None:
    cost, params = least_squares("float32")
    rate, decay = shared(np.float64(0.1)), shared(np.float64(0.1))
    assert {value.dtype for value in optim.sgd(cost, params, rate, l2=decay).values()} == {"float32"}
    with options.change(floatX="float32"):
        cost, params = least_squares("float64")
        assert {value.dtype for value in optim.adam(cost, params).values()} == {"float64", "int64"}


def test_one_parameter_needs_no_list() -> None:
    cost, (w, _) = least_squares("float64")
    assert list(optim.sgd(cost, w)) == [w]


def test_wrong_arguments_are_named() -> None:
    cost, (w, b) = least_squares("float64")
    with pytest.raises(GraphTypeError, match="parameter 1 is no shared variable"):
        optim.sgd(cost, [w, cost])
    with pytest.raises(UpdateError, match="w .*twice"):
        optim.adam(cost, [w, b, w])
    with pytest.raises(GraphValueError, match="1 gradients for 2 parameters"):
        optim.sgd([w], [w, b])
    with pytest.raises(GraphTypeError, match="the gradient of w"):
        optim.sgd([b, b], [w, b])
    with pytest.raises(GraphTypeError, match="learning_rate must be a scalar"):
        optim.momentum(cost, [b], w)
    with pytest.raises(GraphTypeError, match="l2 must be a number"):
        optim.momentum(cost, [b], l2="0.1")  # type: ignore[arg-type]
