"""Optimisers as functions of trees: `init` makes a state, `update` turns gradients into steps.

    opt = graphc.optimizers.adam(1e-2)
    state = opt.init(params)
    steps, state = opt.update(gradients, state, params)        in a function that `jit` compiles, or not
    params = graphc.optimizers.apply_updates(params, steps)

In: trees of arrays. Out: trees like them. Nothing is kept but in the state, a named tuple of trees, so that `jit`,
`grad`, `vmap` and `scan` go through a step as through any function. `chain` does one after the other: clipping before
`adam`, for instance. Steps have the dtypes of the gradients. `graphc.optim` has the optimisers of graphs with shared
variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graphc import tree
from graphc.errors import GraphValueError
from graphc.ir.call_errors import explain_all

__all__ = [
    "Optimizer", "adagrad", "adam", "adamw", "apply_updates", "chain", "clip", "clip_by_global_norm", "global_norm",
    "momentum", "rmsprop", "scale", "sgd",
]  # fmt: skip

Rate = float | Callable[[Any], Any]


class Optimizer(NamedTuple):
    """An optimiser. init(params): the state at the beginning. update(gradients, state, params): the steps that are to
    be added to the parameters, and the next state; only some need `params`."""

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


class Count(NamedTuple):
    """The state of an optimiser that knows only how many steps it has made."""

    count: Any


class Moments(NamedTuple):
    """The state of an optimiser: how many steps it has made, and running means of gradients and of their squares."""

    count: Any
    mean: Any
    square: Any


def _rate(learning_rate: Rate, count: Any) -> Any:
    """Return the learning rate of a step. A function gets the number of steps before it."""
    return learning_rate(count) if callable(learning_rate) else learning_rate


def _none() -> Any:
    return np.zeros((), "int64")


def _zeros(params: Any) -> Any:
    return tree.map(np.zeros_like, params)


def _fitting(value: Any, gradient: Any) -> Any:
    """Return a step in the dtype of its gradient. Both are arrays, tensors or numbers."""
    dtype = getattr(gradient, "dtype", None) or np.asarray(gradient).dtype
    return value.astype(dtype) if hasattr(value, "astype") else np.asarray(value, dtype)


def apply_updates(params: Any, updates: Any) -> Any:
    """Return parameters with steps added to them, in their dtypes.

    >>> graphc.optimizers.apply_updates({"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])})["w"].tolist()
    [1.5, 1.5]
    """
    return tree.map(lambda p, u: _fitting(p + u, p), params, updates)


def sgd(learning_rate: Rate, momentum: float = 0.0, nesterov: bool = False) -> Optimizer:
    """Return gradient descent, whose step is -rate * gradient. learning_rate: a number, or a function of the number of
    earlier steps. momentum, nesterov: those of `momentum`. `update` raises TypeError for a rate that is no number."""
    if momentum:
        return _momentum(learning_rate, momentum, nesterov)

    def update(gradients: Any, state: Count, params: Any = None) -> tuple[Any, Count]:
        rate = _rate(learning_rate, state.count)
        return tree.map(lambda g: _fitting(-rate * g, g), gradients), Count(state.count + 1)

    return Optimizer(lambda params: Count(_none()), update)


class Velocity(NamedTuple):
    """The state of `momentum`."""

    count: Any
    velocity: Any


def momentum(learning_rate: Rate, mass: float = 0.9, nesterov: bool = False) -> Optimizer:
    """Return gradient descent with momentum: v = mass * v + gradient, and the step is -rate * v (Polyak 1964).
    nesterov: the step is -rate * (mass * v + gradient) (Nesterov 1983). `update` raises ValueError for gradients of
    other shapes than the parameters had in `init`, TypeError for a rate that is no number."""
    return _momentum(learning_rate, mass, nesterov)


def _momentum(learning_rate: Rate, mass: float, nesterov: bool) -> Optimizer:
    def update(gradients: Any, state: Velocity, params: Any = None) -> tuple[Any, Velocity]:
        rate = _rate(learning_rate, state.count)
        velocity = tree.map(lambda v, g: _fitting(mass * v + g, g), state.velocity, gradients)
        ahead = tree.map(lambda v, g: mass * v + g, velocity, gradients) if nesterov else velocity
        steps = tree.map(lambda v, g: _fitting(-rate * v, g), ahead, gradients)
        return steps, Velocity(state.count + 1, velocity)

    return Optimizer(lambda params: Velocity(_none(), _zeros(params)), update)


def adam(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """Return Adam (Kingma and Ba 2015): the step is -rate * m / (sqrt(v) + eps), of running means m of gradients and v
    of their squares, both divided by 1 - b**t, for the number t of the step. `update` raises ValueError for gradients
    of other shapes than the parameters had in `init`, TypeError for a rate that is no number."""
    return adamw(learning_rate, b1, b2, eps, weight_decay=0.0)


def adamw(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 1e-2
) -> Optimizer:
    """Return Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019): the step of `adam`, less rate
    * weight_decay * parameter. `update` needs the parameters; raises GraphValueError without.

        >>> opt = graphc.optimizers.adamw(0.1)
        >>> steps, state = opt.update(np.array([1.0, -2.0]), opt.init(np.zeros(2)), np.zeros(2))
        >>> np.asarray(steps).round(6).tolist()
        [-0.1, 0.1]
    """

    def update(gradients: Any, state: Moments, params: Any = None) -> tuple[Any, Moments]:
        count, rate = state.count + 1, _rate(learning_rate, state.count)
        mean = tree.map(lambda m, g: _fitting(b1 * m + (1 - b1) * g, g), state.mean, gradients)
        square = tree.map(lambda v, g: _fitting(b2 * v + (1 - b2) * g * g, g), state.square, gradients)
        first, second = 1 - b1**count, 1 - b2**count

        def step(m: Any, v: Any, g: Any) -> Any:
            return _fitting(-rate * (m / first) / (np.sqrt(v / second) + eps), g)

        steps = tree.map(step, mean, square, gradients)
        if weight_decay:
            if params is None:
                raise GraphValueError("adamw: update(gradients, state, params) needs the parameters, which decay")
            steps = tree.map(lambda s, p: _fitting(s - rate * weight_decay * p, s), steps, params)
        return steps, Moments(count, mean, square)

    return Optimizer(lambda params: Moments(_none(), _zeros(params), _zeros(params)), update)


class Squares(NamedTuple):
    """The state of `rmsprop` and `adagrad`."""

    count: Any
    square: Any


def rmsprop(learning_rate: Rate, decay: float = 0.9, eps: float = 1e-8) -> Optimizer:
    """Return RMSProp (Tieleman and Hinton 2012): the step is -rate * gradient / sqrt(v + eps), of a running mean v of
    squares of gradients. `update` raises ValueError for gradients of other shapes than the parameters had in `init`,
    TypeError for a rate that is no number."""
    return _by_squares(learning_rate, 0.0, lambda v, g: decay * v + (1 - decay) * g * g, eps)


def adagrad(learning_rate: Rate, initial: float = 0.1, eps: float = 1e-7) -> Optimizer:
    """Return Adagrad (Duchi, Hazan and Singer 2011): the step is -rate * gradient / sqrt(v + eps), of the sum v of
    squares of gradients so far, which begins with `initial`. `update` raises ValueError for gradients of other shapes
    than the parameters had in `init`, TypeError for a rate that is no number."""
    return _by_squares(learning_rate, initial, lambda v, g: v + g * g, eps)


def _by_squares(learning_rate: Rate, initial: float, add: Callable[[Any, Any], Any], eps: float) -> Optimizer:
    def update(gradients: Any, state: Squares, params: Any = None) -> tuple[Any, Squares]:
        rate = _rate(learning_rate, state.count)
        square = tree.map(lambda v, g: _fitting(add(v, g), g), state.square, gradients)
        steps = tree.map(lambda v, g: _fitting(-rate * g / np.sqrt(v + eps), g), square, gradients)
        return steps, Squares(state.count + 1, square)

    return Optimizer(lambda params: Squares(_none(), tree.map(lambda z: z + initial, _zeros(params))), update)


# --- before and after -------------------------------------------------------------------------------------------------


def scale(factor: float) -> Optimizer:
    """Return what multiplies gradients by a number. `update` raises TypeError for a factor that is no number."""

    def update(gradients: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        return tree.map(lambda g: _fitting(factor * g, g), gradients), state

    return Optimizer(lambda params: (), update)


def clip(limit: float) -> Optimizer:
    """Return what holds each element of gradients between -limit and limit. `update` raises TypeError for a limit that
    is no number."""

    def update(gradients: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        return tree.map(lambda g: _fitting(np.clip(g, -limit, limit), g), gradients), state

    return Optimizer(lambda params: (), update)


def global_norm(gradients: Any) -> Any:
    """Return the root of the sum of the squares of all elements of a tree.

    >>> float(graphc.optimizers.global_norm({"a": np.array([3.0]), "b": np.array(4.0)}))
    5.0
    """
    return np.sqrt(tree.reduce(lambda total, g: total + np.sum(np.square(g)), gradients, 0.0))


def clip_by_global_norm(limit: float) -> Optimizer:
    """Return what makes gradients shorter where their `global_norm` is above `limit` (Pascanu, Mikolov and Bengio
    2013): they are multiplied by limit / norm. `update` raises TypeError for a limit that is no number."""

    def update(gradients: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        norm = global_norm(gradients)
        factor = limit / np.maximum(norm, limit)
        return tree.map(lambda g: _fitting(g * factor, g), gradients), state

    return Optimizer(lambda params: (), update)


def chain(*optimizers: Optimizer) -> Optimizer:
    """Return optimisers one after the other: each gets the steps of the one before in place of gradients. The state is
    a tuple of theirs. Raises no error for what it is given: `init` raises AttributeError for what is no optimiser.

        >>> opt = graphc.optimizers.chain(graphc.optimizers.clip(1.0), graphc.optimizers.sgd(0.5))
        >>> np.asarray(opt.update(np.array([3.0, -0.5]), opt.init(np.zeros(2)))[0]).tolist()
        [-0.5, 0.25]
    """

    def update(gradients: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        after = []
        for each, own in zip(optimizers, state, strict=True):
            gradients, next_state = each.update(gradients, own, params)
            after.append(next_state)
        return gradients, tuple(after)

    return Optimizer(lambda params: tuple(each.init(params) for each in optimizers), update)


explain_all(globals())
