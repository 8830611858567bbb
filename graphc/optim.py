"""Optimisers: from a cost to the updates of `function` that make it smaller.

In: a scalar cost, or a list of gradients, and the shared variables to update. Out: a dict of updates, {shared variable:
its value after one step}, with the optimiser's own state, which begins at zero. Dicts of several optimisers can be
merged, and entries changed before `function` gets them.

    w = graphc.shared(3.0, "w")
    step = graphc.function([], w, updates=sgd(w**2, w, learning_rate=0.1))
    step(), w.get_value()     # 3.0, then 3.0 - 0.1 * 6.0 = 2.4

Common to all: `learning_rate` is a number, a symbolic scalar, or a shared scalar that changes between steps. With
`l2`, each step is that of cost + l2/2 * (sum of the squares of all parameters). Wrong arguments raise GraphTypeError,
ArgumentError or UpdateError; `grad` has its own errors. In the formulas p is a parameter, g its gradient, r the
learning rate; all operations are elementwise.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from graphc.autodiff import grad
from graphc.errors import GraphTypeError, GraphValueError, RankError, UpdateError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe
from graphc.shared import SharedVariable, shared
from graphc.tensor.elementary import cast, maximum, sqr, sqrt

__all__ = [
    "adadelta", "adagrad", "adam", "clip", "clip_norm", "cosine", "exponential", "momentum", "nesterov", "norm",
    "piecewise", "rmsprop", "sgd",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


Cost: TypeAlias = "Node | Sequence[Node]"
Params: TypeAlias = "SharedVariable | Sequence[SharedVariable]"
Number: TypeAlias = "float | Node"
Updates: TypeAlias = dict[SharedVariable, Node]


@dataclass(frozen=True, slots=True)
class _Step:
    """A parameter with its gradient and its learning rate: the operands of the formulas."""

    param: SharedVariable
    gradient: Node
    rate: Number

    def state(self, word: str) -> SharedVariable:
        """Return a new shared variable of the parameter's shape and dtype, zero before the first step."""
        name = f"{self.param.name}_{word}" if self.param.name else word
        return shared(np.zeros_like(self.param.get_value(borrow=True)), name, shape=self.param.sizes)


def sgd(cost: Cost, params: Params, learning_rate: Number = 0.01, *, l2: Number = 0.0) -> Updates:
    """Gradient descent: p - r*g.

    Raises CostError for a cost that is no floating scalar, GraphTypeError for a parameter that is no shared
    variable.
    """
    return {step.param: step.param - step.rate * step.gradient for step in _steps(cost, params, learning_rate, l2)}


def momentum(
    cost: Cost, params: Params, learning_rate: Number = 0.01, momentum: float = 0.9, *, l2: Number = 0.0
) -> Updates:
    """The heavy ball: v' = momentum*v - r*g; p + v'.

    Polyak 1964; in this form Sutskever et al., ICML 2013, equations 1 and 2. Raises the errors of `sgd`.
    """
    updates: Updates = {}
    for step in _steps(cost, params, learning_rate, l2):
        velocity = step.state("velocity")
        updates[velocity] = momentum * velocity - step.rate * step.gradient
        updates[step.param] = step.param + updates[velocity]
    return updates


def nesterov(
    cost: Cost, params: Params, learning_rate: Number = 0.01, momentum: float = 0.9, *, l2: Number = 0.0
) -> Updates:
    """Accelerated gradient: v' = momentum*v - r*g; p + momentum*v' - r*g.

    Nesterov 1983, with the gradient taken at p, which stands for the point looked ahead to: Bengio et al.,
    arXiv:1212.0901, equation 7. Raises the errors of `sgd`.
    """
    updates: Updates = {}
    for step in _steps(cost, params, learning_rate, l2):
        velocity = step.state("velocity")
        move = step.rate * step.gradient
        updates[velocity] = momentum * velocity - move
        updates[step.param] = step.param + momentum * updates[velocity] - move
    return updates


def rmsprop(
    cost: Cost,
    params: Params,
    learning_rate: Number = 0.001,
    decay: float = 0.9,
    epsilon: float = 1e-7,
    *,
    l2: Number = 0.0,
) -> Updates:
    """a' = decay*a + (1 - decay)*g^2; p - r*g / (sqrt(a') + epsilon). Tieleman and Hinton 2012, lecture 6.5.

    Raises the errors of `sgd`.
    """
    updates: Updates = {}
    for step in _steps(cost, params, learning_rate, l2):
        average = step.state("square_average")
        updates[average] = decay * average + (1.0 - decay) * sqr(step.gradient)
        updates[step.param] = step.param - step.rate * step.gradient / (sqrt(updates[average]) + epsilon)
    return updates


def adagrad(
    cost: Cost, params: Params, learning_rate: Number = 0.01, epsilon: float = 1e-7, *, l2: Number = 0.0
) -> Updates:
    """a' = a + g^2; p - r*g / (sqrt(a') + epsilon). Duchi, Hazan and Singer, JMLR 12 (2011), figure 1 (diagonal
    matrices). Raises the errors of `sgd`.
    """
    updates: Updates = {}
    for step in _steps(cost, params, learning_rate, l2):
        total = step.state("square_sum")
        updates[total] = total + sqr(step.gradient)
        updates[step.param] = step.param - step.rate * step.gradient / (sqrt(updates[total]) + epsilon)
    return updates


def adadelta(
    cost: Cost,
    params: Params,
    learning_rate: Number = 1.0,
    decay: float = 0.95,
    epsilon: float = 1e-6,
    *,
    l2: Number = 0.0,
) -> Updates:
    """a' = decay*a + (1 - decay)*g^2; d = g * sqrt(b + epsilon) / sqrt(a' + epsilon); b' = decay*b + (1 - decay)*d^2; p
    - r*d.

    Zeiler, arXiv:1212.5701, algorithm 1, which has r = 1. Raises the errors of `sgd`.
    """
    updates: Updates = {}
    for step in _steps(cost, params, learning_rate, l2):
        average, moved = step.state("square_average"), step.state("moved_square_average")
        updates[average] = decay * average + (1.0 - decay) * sqr(step.gradient)
        move = step.gradient * sqrt(moved + epsilon) / sqrt(updates[average] + epsilon)
        updates[moved] = decay * moved + (1.0 - decay) * sqr(move)
        updates[step.param] = step.param - step.rate * move
    return updates


def adam(
    cost: Cost,
    params: Params,
    learning_rate: Number = 0.001,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
    *,
    l2: Number = 0.0,
) -> Updates:
    """Adaptive moments, with betas = (b, c): t' = t + 1; m' = b*m + (1 - b)*g; v' = c*v + (1 - c)*g^2;
    p - r * (m' / (1 - b^t')) / (sqrt(v' / (1 - c^t')) + epsilon).

    Kingma and Ba, arXiv:1412.6980, algorithm 1. Raises the errors of `sgd`.
    """
    steps = _steps(cost, params, learning_rate, l2)
    count = shared(0, "adam_count")
    updates: Updates = {count: count + 1}
    time = cast(updates[count], "float64")
    for step in steps:
        mean, square = step.state("mean"), step.state("square_mean")
        mean_weight, square_weight = (cast(1.0 - beta**time, step.param.type.dtype) for beta in betas)
        updates[mean] = betas[0] * mean + (1.0 - betas[0]) * step.gradient
        updates[square] = betas[1] * square + (1.0 - betas[1]) * sqr(step.gradient)
        size = sqrt(updates[square] / square_weight) + epsilon
        updates[step.param] = step.param - step.rate * (updates[mean] / mean_weight) / size
    return updates


# --- gradients and learning rates -----------------------------------------------------------------------------------


def norm(tensors: Sequence[Node]) -> Node:
    """Return the Euclidean norm of the elements of all tensors, as of one vector; a scalar. Raises GraphValueError for
    none."""
    if not tensors:
        raise GraphValueError("norm: there are no tensors")
    total: Node = sqr(tensors[0]).sum()
    for tensor in tensors[1:]:
        total = total + sqr(tensor).sum()
    return sqrt(total)


def clip_norm(gradients: Sequence[Node], limit: Number) -> list[Node]:
    """Scale gradients by one factor, so that the norm of all is at most `limit`. Give the result to an optimiser in
    place of the cost. Pascanu et al., ICML 2013. A gradient that is not finite stays so.

        gradients = clip_norm(graphc.grad(cost, params), 1.0)
        updates = adam(gradients, params)
    """
    whole = norm(gradients)
    factor = _scalar(limit, whole.type.dtype, "limit") / maximum(whole, limit)
    return [gradient * cast(factor, gradient.type.dtype) for gradient in gradients]


def clip(gradients: Sequence[Node], limit: Number) -> list[Node]:
    """Clip each element of the gradients to [-limit, limit]."""
    return [gradient.clip(-limit, limit) for gradient in gradients]


Schedule: TypeAlias = "Callable[[int], float]"
"""A function from the number of a step, from 0, to its learning rate: for a `Trainer`, or to set a shared rate."""


def exponential(rate: float, factor: float = 0.95, every: int = 100, staircase: bool = False) -> Schedule:
    """Return the schedule rate * factor**(step / every); staircase: round the exponent down. The schedule raises
    ZeroDivisionError for `every=0`."""
    return lambda step: rate * factor ** (step // every if staircase else step / every)


def cosine(rate: float, steps: int, warmup: int = 0, least: float = 0.0) -> Schedule:
    """Return a schedule that rises linearly to `rate` in `warmup` steps, then falls along half a cosine to `least` at
    step number `steps`. Loshchilov and Hutter, ICLR 2017. Raises no error."""

    def schedule(step: int) -> float:
        if step < warmup:
            return rate * (step + 1) / warmup
        part = min((step - warmup) / max(steps - warmup, 1), 1.0)
        return least + (rate - least) * (1.0 + math.cos(math.pi * part)) / 2.0

    return schedule


def piecewise(rates: Sequence[float], ends: Sequence[int]) -> Schedule:
    """Return a schedule of constant pieces: rates[0] before step ends[0], rates[1] before ends[1], and so on. Raises
    GraphValueError unless the ends ascend and there is one rate more."""
    if len(rates) != len(ends) + 1 or list(ends) != sorted(ends):
        raise GraphValueError(
            f"piecewise: {len(rates)} rates for ends {list(ends)}, of which there is one fewer, rising"
        )
    return lambda step: rates[bisect_right(ends, step)]


def _steps(cost: Cost, params: Params, learning_rate: Number, l2: Number) -> list[_Step]:
    """Return for each parameter its gradient with weight decay, and the learning rate in its dtype."""
    variables = [params] if isinstance(params, Node) else list(params)
    for number, variable in enumerate(variables):
        if not isinstance(variable, SharedVariable):
            raise GraphTypeError(f"parameter {number} is no shared variable: {variable!r}")
        if variable in variables[:number]:
            raise UpdateError(f"{describe(variable)} is twice among the parameters")
    steps = []
    for variable, gradient in zip(variables, _gradients(cost, variables), strict=True):
        decayed = (
            gradient + _scalar(l2, variable.type.dtype, "l2") * variable
            if isinstance(l2, Node) or l2 != 0
            else gradient
        )
        steps.append(_Step(variable, decayed, _scalar(learning_rate, variable.type.dtype, "learning_rate")))
    return steps


def _gradients(cost: Cost, variables: list[SharedVariable]) -> list[Node]:
    if isinstance(cost, Node):
        return grad(cost, variables)
    gradients = list(cost)
    if len(gradients) != len(variables):
        raise GraphValueError(f"there are {len(gradients)} gradients for {len(variables)} parameters")
    for variable, gradient in zip(variables, gradients, strict=True):
        if not isinstance(gradient, Node) or (gradient.type.dtype, gradient.ndim) != (
            variable.type.dtype,
            variable.ndim,
        ):
            raise GraphTypeError(f"the gradient of {describe(variable)} must be a {variable.type}, not {gradient!r}")
    return gradients


def _scalar(value: Number, dtype: str, name: str) -> Number:
    """Return a Python number as it is, for it does not widen dtypes; a symbolic scalar cast to `dtype`."""
    if isinstance(value, Node):
        if value.ndim:
            raise RankError(f"{name} must be a scalar, not {describe(value)} of type {value.type}")
        return cast(value, dtype)
    if np.ndim(value) or isinstance(value, (str, bytes)):
        raise GraphTypeError(f"{name} must be a number or a symbolic scalar, not {value!r}")
    return float(value)


explain_all(globals())
