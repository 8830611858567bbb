"""Functions of `scipy.special` that are composed of others.

    logsumexp(x, axis=0, b=weights)       of the largest term and of the sum of the others over it

In: tensors, arrays and numbers. Out: tensors.
"""

from __future__ import annotations

import math
from typing import Any

from graphc.arrays.dtypes import floating, is_float
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node, cast
from graphc.tensor import elementary as el, reductions
from graphc.tensor.nnet import losses
from graphc.tensor.shaping import squeeze


def floats(x: Any) -> Node:
    """An operand as a tensor of floats."""
    node = as_node(x)
    return node if is_float(node.type.dtype) else cast(node, floating(node.type.dtype))


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b exp(a))) over `axis`, all axes where it is None, without overflow. It is NaN where the sum is negative;
    with `return_sign` the logarithm of its size, and its sign.

        >>> logsumexp(T.constant([1000.0, 1000.0])).eval()
        array(1000.69314718)

    Raises AxisError for a wrong axis.
    """
    if b is None and not return_sign:
        return reductions.logsumexp(a, axis, keepdims)
    terms, weights = floats(a), as_node(1.0 if b is None else b)
    terms = el.where(el.equal(weights, 0), -math.inf, terms) if b is not None else terms
    top = reductions.max(terms, axis=axis, keepdims=True)
    top = el.stop_gradient(el.where(el.isfinite(top), top, 0))
    total = reductions.sum(el.mul(weights, el.exp(el.sub(terms, top))), axis=axis, keepdims=True)
    sign = el.sign(total)
    result = el.add(el.log(el.abs(total) if return_sign else total), top)
    if not keepdims:
        axes = tuple(range(result.ndim)) if axis is None else axis
        result, sign = squeeze(result, axes), squeeze(sign, axes)
    return (result, sign) if return_sign else result


def softmax(x: Any, axis: Any = None) -> Node:
    """exp(x) / sum(exp(x)) over `axis`, all axes where it is None, without overflow.

    Raises AxisError for a wrong axis.
    """
    return losses.softmax(x, axis)


def log_softmax(x: Any, axis: Any = None) -> Node:
    """log(softmax(x)) over `axis`, all axes where it is None, accurate where the softmax is too small to be held.

    Raises AxisError for a wrong axis.
    """
    return losses.log_softmax(x, axis)
