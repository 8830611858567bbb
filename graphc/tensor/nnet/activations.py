"""Activations: Theano's, and those that came after it.

In: tensors. Out: nodes of the same shape. Integers are computed in the float dtype that `sigmoid` has for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.arrays.dtypes import floating
from graphc.ir import sizes
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node, in_floats
from graphc.ops.shape import reshape
from graphc.tensor import elementary as el
from graphc.tensor.indexing import getitem
from graphc.tensor.shaping import label_operand, normalise_axis

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_tanh", "leaky_relu", "log_sigmoid", "mish", "prelu", "relu",
    "relu6", "selu", "sigmoid_inplace", "silu", "softsign", "squareplus", "swish", "ultra_fast_sigmoid",
    "ultra_fast_sigmoid_inplace",
]  # fmt: skip


def hard_sigmoid(x: Any) -> Node:
    """0.2 * x + 0.5 held between 0 and 1: straight pieces in place of the sigmoid."""
    return el.clip(el.add(el.mul(in_floats(x), 0.2), 0.5), 0, 1)


def ultra_fast_sigmoid(x: Any) -> Node:
    """The sigmoid to within 0.028, by Theano's approximation of tanh(x / 2) in pieces up to |x| = 3.4, 6 and beyond."""
    node = in_floats(x)
    half = el.mul(node, 0.5)
    size = el.abs(half)
    inner = el.true_div(el.mul(half, 1.5), el.add(size, 1.0))
    outer = el.add(el.mul(el.sub(size, 1.7), 0.0458812946797165), 0.935409070603099)
    flat = el.where(el.less_equal(size, 3.0), outer, 0.99505475368673)
    steps = el.where(el.less_equal(size, 1.7), inner, el.where(el.greater(half, 0), flat, el.neg(flat)))
    return el.add(el.mul(steps, 0.5), 0.5)


def _is_value(*operands: Any) -> bool:
    """Tell whether operands are arrays or numbers. Theano's functions that are arithmetic give arrays of arrays."""
    return all(isinstance(each, (np.ndarray, np.generic, int, float)) for each in operands)


def relu(x: Any, alpha: Any = 0) -> Any:
    """max(x, 0), or `alpha` * x where x is below 0; `alpha` may be a tensor. The derivative at 0 is that below it.
    Of arrays and numbers it is an array.

        >>> T.nnet.relu(T.constant([-1.0, 2.0])).eval()
        array([0., 2.])
    """
    if _is_value(x, alpha):
        return np.where(np.less_equal(x, 0), np.multiply(alpha, x) if np.any(alpha) else np.zeros_like(x), x)
    node = as_node(x)
    if isinstance(alpha, (int, float)) and alpha == 0:
        return el.where(el.less_equal(node, 0), 0, node)  # NaN stays
    return el.where(el.greater(node, 0), node, el.mul(alpha, node))


def _negative_part(x: Node) -> Node:
    """x below 0, else 0; the derivative at 0 is 1."""
    return el.where(el.greater(x, 0), 0, x)


def leaky_relu(x: Any, alpha: Any = 0.01) -> Any:
    """`relu` with a small slope below 0."""
    return relu(x, alpha)


def prelu(x: Any, alpha: Any) -> Node:
    """`relu` with a slope below 0 that is learnt: a tensor that broadcasts to `x`."""
    made: Node = relu(as_node(x), alpha)
    return made


def relu6(x: Any) -> Node:
    """x held between 0 and 6."""
    return el.clip(in_floats(x), 0, 6)


def elu(x: Any, alpha: Any = 1) -> Node:
    """x above 0, `alpha` * (exp(x) - 1) below (Clevert et al. 2015)."""
    node = in_floats(x)
    return el.where(el.greater(node, 0), node, el.mul(alpha, el.expm1(_negative_part(node))))


def celu(x: Any, alpha: Any = 1) -> Node:
    """max(x, 0) + min(0, `alpha` * (exp(x / alpha) - 1)), smooth at 0 for every alpha (Barron 2017)."""
    node = in_floats(x)
    return el.where(el.greater(node, 0), node, el.mul(alpha, el.expm1(el.true_div(_negative_part(node), alpha))))


def selu(x: Any) -> Node:
    """The scaled `elu` that keeps mean and variance (Klambauer et al. 2017)."""
    return el.mul(elu(x, 1.6732632423543772), 1.0507009873554805)


def gelu(x: Any, approximate: bool = False) -> Node:
    """x times the standard normal distribution function of x (Hendrycks & Gimpel 2016), or its tanh approximation."""
    node = in_floats(x)
    if approximate:
        cubic = el.mul(node, el.add(el.mul(node, node, 0.044715), 1.0))
        return el.mul(node, 0.5, el.add(el.tanh(el.mul(cubic, 0.7978845608028654)), 1.0))
    return el.mul(node, 0.5, el.add(el.erf(el.mul(node, 0.7071067811865476)), 1.0))


def silu(x: Any) -> Node:
    """x * sigmoid(x), also called swish."""
    node = in_floats(x)
    return el.mul(node, el.sigmoid(node))


swish = silu


def softsign(x: Any) -> Any:
    """x / (1 + |x|); of an array or a number an array."""
    if _is_value(x):
        value = np.asarray(x)
        value = value.astype(value.dtype if value.dtype.kind == "f" else floating(value.dtype.name))
        return value / (1 + np.abs(value))
    node = in_floats(x)
    return el.true_div(node, el.add(el.abs(node), 1))


def glu(x: Any, axis: int = -1) -> Node:
    """The first half of `x` along `axis` times the sigmoid of the second (Dauphin et al. 2017). The axis should have an
    even size: an odd one is an error, at the call where it is not known before."""
    node = in_floats(x)
    place = normalise_axis(axis, node.ndim, label_operand("glu", node))
    shape = node.type.shape
    halves = reshape(node, (*shape[:place], 2, sizes.floor_divide(shape[place], 2), *shape[place + 1 :]))
    before = (slice(None),) * place
    return el.mul(getitem(halves, (*before, 0)), el.sigmoid(getitem(halves, (*before, 1))))


def hard_tanh(x: Any) -> Node:
    """x held between -1 and 1."""
    return el.clip(in_floats(x), -1, 1)


def log_sigmoid(x: Any) -> Node:
    """log(sigmoid(x)), accurate where the sigmoid is near 0 or 1."""
    return el.neg(el.softplus(el.neg(in_floats(x))))


def mish(x: Any) -> Node:
    """x * tanh(log(1 + exp(x))) (Misra 2019)."""
    node = in_floats(x)
    return el.mul(node, el.tanh(el.softplus(node)))


def squareplus(x: Any, b: Any = 4) -> Node:
    """(x + sqrt(x**2 + b)) / 2, a smooth `relu` without exponentials (Barron 2021)."""
    node = in_floats(x)
    return el.mul(el.add(node, el.sqrt(el.add(el.sqr(node), b))), 0.5)


sigmoid_inplace, ultra_fast_sigmoid_inplace = el.sigmoid, ultra_fast_sigmoid
