"""Functions of neural networks: Theano's nnet, and the activations that came after it.

In: tensors of scores, probabilities and classes. Out: nodes. Integers are computed in float64, floats in their own
dtype. The softmax family subtracts the maximum first: no score overflows, and as its value does not depend on what is
subtracted, derivatives of any order are right.
"""

from __future__ import annotations

import math
from typing import Any

from graphc.dtypes import INTEGERS, is_float
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.node import Node, describe, make, told
from graphc.ops import index
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.scalar import scalar_constant
from graphc.tensor.creation import one_hot
from graphc.tensor.elementary import (
    abs,
    add,
    clip,
    equal,
    erf,
    exp,
    expm1,
    greater,
    less_equal,
    log,
    logical_and,
    mul,
    neg,
    sigmoid,
    softplus,
    sub,
    tanh,
    true_div,
    where,
    xlogy,
)
from graphc.tensor.reductions import logsumexp, shift_of, sum
from graphc.tensor.shaping import normalise_axes

__all__ = [
    "binary_crossentropy", "categorical_crossentropy", "celu", "crossentropy_categorical_1hot", "elu", "gelu",
    "hard_sigmoid", "leaky_relu", "log_softmax", "logsoftmax", "logsumexp", "one_hot", "prelu", "relu", "relu6", "selu",
    "sigmoid", "sigmoid_binary_crossentropy", "silu", "softmax", "softplus", "softsign", "swish", "to_one_hot",
    "ultra_fast_sigmoid",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def _floating(x: Any) -> Node:
    """`x` as a node of a float dtype."""
    node = as_node(x)
    return node if is_float(node.dtype) else cast(node, "float64")


# --- activations ----------------------------------------------------------------------------------------------------


def hard_sigmoid(x: Any) -> Node:
    """0.2 * x + 0.5 held between 0 and 1: straight pieces in place of the sigmoid."""
    return clip(add(mul(_floating(x), 0.2), 0.5), 0, 1)


def ultra_fast_sigmoid(x: Any) -> Node:
    """The sigmoid to within 0.028, by Theano's approximation of tanh(x / 2) in pieces up to |x| = 3.4, 6 and beyond."""
    node = _floating(x)
    half = mul(node, 0.5)
    size = abs(half)
    inner = true_div(mul(size, 1.5), add(size, 1.0))
    outer = add(mul(sub(size, 1.7), 0.0458812946797165), 0.935409070603099)
    steps = where(less_equal(size, 1.7), inner, where(less_equal(size, 3.0), outer, 0.99505475368673))
    return add(mul(where(greater(half, 0), steps, neg(steps)), 0.5), 0.5)


def relu(x: Any, alpha: Any = 0) -> Node:
    """max(x, 0), or `alpha` * x where x is below 0; `alpha` may be a tensor. The derivative at 0 is that below it."""
    node = as_node(x)
    if isinstance(alpha, (int, float)) and alpha == 0:
        return where(less_equal(node, 0), 0, node)  # NaN stays
    return where(greater(node, 0), node, mul(alpha, node))


def _negative_part(x: Node) -> Node:
    """x below 0, else 0; the derivative at 0 is 1."""
    return where(greater(x, 0), 0, x)


def leaky_relu(x: Any, alpha: Any = 0.01) -> Node:
    """`relu` with a small slope below 0."""
    return relu(x, alpha)


def prelu(x: Any, alpha: Any) -> Node:
    """`relu` with a slope below 0 that is learnt: a tensor that broadcasts to `x`."""
    return relu(x, as_node(alpha))


def relu6(x: Any) -> Node:
    """x held between 0 and 6."""
    return clip(_floating(x), 0, 6)


def elu(x: Any, alpha: Any = 1) -> Node:
    """x above 0, `alpha` * (exp(x) - 1) below (Clevert et al. 2015)."""
    node = _floating(x)
    return where(greater(node, 0), node, mul(alpha, expm1(_negative_part(node))))


def celu(x: Any, alpha: Any = 1) -> Node:
    """max(x, 0) + min(0, `alpha` * (exp(x / alpha) - 1)), smooth at 0 for every alpha (Barron 2017)."""
    node = _floating(x)
    return where(greater(node, 0), node, mul(alpha, expm1(true_div(_negative_part(node), alpha))))


def selu(x: Any) -> Node:
    """The scaled `elu` that keeps mean and variance (Klambauer et al. 2017)."""
    return mul(elu(x, 1.6732632423543772), 1.0507009873554805)


def gelu(x: Any, approximate: bool = False) -> Node:
    """x times the standard normal distribution function of x (Hendrycks & Gimpel 2016), or its tanh approximation."""
    node = _floating(x)
    if approximate:
        cubic = mul(node, add(mul(node, node, 0.044715), 1.0))
        return mul(node, 0.5, add(tanh(mul(cubic, 0.7978845608028654)), 1.0))
    return mul(node, 0.5, add(erf(mul(node, 0.7071067811865476)), 1.0))


def silu(x: Any) -> Node:
    """x * sigmoid(x), also called swish."""
    node = _floating(x)
    return mul(node, sigmoid(node))


swish = silu


def softsign(x: Any) -> Node:
    """x / (1 + |x|)."""
    node = _floating(x)
    return true_div(node, add(abs(node), 1))


# --- softmax --------------------------------------------------------------------------------------------------------


def _softmax_axes(name: str, x: Node, axis: Any) -> tuple[int, ...]:
    if x.ndim == 0:
        raise GraphTypeError(f"{name} of {describe(x)} of type {x.type}: a scalar has no axis")
    return tuple(sorted(normalise_axes(axis, x.ndim, told(lambda: f"{name} of {describe(x)} of type {x.type}"))))


def softmax(x: Any, axis: Any = -1) -> Node:
    """exp(x) / sum(exp(x)) over `axis` (the last one; None: all), without overflow; NaN where all scores are -inf."""
    node = _floating(x)
    axes = _softmax_axes("softmax", node, axis)
    powers = exp(sub(node, shift_of(node, axes)))
    return true_div(powers, sum(powers, axes, keepdims=True))


def log_softmax(x: Any, axis: Any = -1) -> Node:
    """log(softmax(x)) over `axis`, accurate where the softmax itself is too small to be held."""
    node = _floating(x)
    axes = _softmax_axes("log_softmax", node, axis)
    shifted = sub(node, shift_of(node, axes))
    return sub(shifted, log(sum(exp(shifted), axes, keepdims=True)))


logsoftmax = log_softmax

# --- losses ---------------------------------------------------------------------------------------------------------


def _class_of_each(scores: Node, classes: Node) -> Node:
    """The element of the last axis of `scores` that `classes` names."""
    columns = scores.type.shape[-1]
    outer = scores.type.shape[:-1]
    count = sizes.product(outer)
    rows = layout.reshape(scores, (count, columns))
    flat = layout.reshape(classes, (count,))
    return layout.reshape(index.gather(rows, (layout.iota(count), flat), 0), outer)


def _log_softmax_of(probabilities: Node) -> Node | None:
    """The logarithm of a softmax from its scores, or None where `probabilities` is no softmax.

    So the loss and its derivatives are right where a probability is too small to be held.
    """
    if probabilities.op.name != "true_div" or probabilities.args[0].op.name != "exp":
        return None
    powers, total = probabilities.args
    around: list[Node] = []
    while total.op.name in ("broadcast_to", "dimshuffle"):
        around.append(total)
        total = total.args[0]
    if total.op.name != "sum" or total.args[0] is not powers:
        return None
    logarithm = log(total)
    for node in reversed(around):
        logarithm = make(node.op, (logarithm, *node.args[1:]), node.attrs)
    return sub(powers.args[0], logarithm)


def categorical_crossentropy(coding_dist: Any, true_dist: Any) -> Node:
    """-sum(true * log(coding)) over the last axis: one loss for each row of probabilities.

    `true_dist` holds an integer class for each row, or a distribution of the shape of `coding_dist` (one-hot rows,
    say). A class whose true probability is 0 adds nothing, whatever its coding probability.
    """
    coding, true = _floating(coding_dist), as_node(true_dist)
    logarithm = _log_softmax_of(coding)
    if coding.ndim and true.ndim == coding.ndim - 1 and true.dtype in INTEGERS:
        if logarithm is None:
            return neg(log(_class_of_each(coding, true)))
        return neg(_class_of_each(logarithm, true))
    if true.ndim == coding.ndim and coding.ndim:
        if logarithm is None:
            return neg(sum(xlogy(true, coding), -1))
        impossible = logical_and(equal(true, 0), equal(logarithm, -math.inf))
        return neg(sum(where(impossible, 0, mul(true, logarithm)), -1))
    raise GraphTypeError(
        f"categorical_crossentropy of {describe(coding)} of type {coding.type}: {describe(true)} of type {true.type} "
        "is neither an integer class for each row nor a distribution of its shape"
    )


def crossentropy_categorical_1hot(coding_dist: Any, true_one_of_n: Any) -> Node:
    """`categorical_crossentropy` for a vector of integer classes."""
    classes = as_node(true_one_of_n)
    if classes.dtype not in INTEGERS:
        raise GraphTypeError(
            f"crossentropy_categorical_1hot: classes {describe(classes)} are {classes.dtype}, not integers"
        )
    return categorical_crossentropy(coding_dist, classes)


def _score_of(probability: Node) -> Node | None:
    """x where `probability` is sigmoid(x), also written as 1 / (1 + exp(-x)), else None."""
    if probability.op.name == "sigmoid":
        return probability.args[0]
    if probability.op.name != "true_div" or scalar_constant(probability.args[0]) != 1:
        return None
    divisor = probability.args[1]
    if divisor.op.name == "add":
        for one, power in (divisor.args, divisor.args[::-1]):
            if scalar_constant(one) == 1 and power.op.name == "exp":
                return neg(power.args[0])
    return None


def binary_crossentropy(output: Any, target: Any) -> Node:
    """-(target * log(output) + (1 - target) * log(1 - output)), element by element."""
    probability = _floating(output)
    score = _score_of(probability)
    if score is not None:
        return sigmoid_binary_crossentropy(score, target)
    expected = as_node(target)
    expected = expected if is_float(expected.dtype) else cast(expected, probability.dtype)
    missed = elementwise("xlog1py", sub(1, expected), neg(probability))
    return neg(add(xlogy(expected, probability), missed))


def sigmoid_binary_crossentropy(output: Any, target: Any) -> Node:
    """`binary_crossentropy` of sigmoid(output), accurate for scores of any size."""
    score = _floating(output)
    expected = as_node(target)
    expected = expected if is_float(expected.dtype) else cast(expected, score.dtype)
    return add(mul(expected, softplus(neg(score))), mul(sub(1, expected), softplus(score)))


def to_one_hot(y: Any, nb_class: Any, dtype: Any = None) -> Node:
    """For each integer of `y` a row of `nb_class` zeros with a one at that position."""
    return one_hot(y, nb_class, dtype)
