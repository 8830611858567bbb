"""JAX's `nn`: activations and functions of scores, under its names and with its defaults: `from graphc import nn`.

In: arrays, numbers and tensors. Out: tensors, where an argument is one or a function is traced; else arrays.
`graphc.tensor.nnet` has these functions under Theano's names, and losses, normalizations and convolutions besides.
initializers.py has initial values of weights.

    nn.softmax(np.zeros(2))              array([0.5, 0.5]): along the last axis, as JAX's
    nn.gelu(x)                           approximated by tanh, as JAX's; approximate=False is exact
    nn.one_hot(np.array([0, 5]), 3)      a row of zeros for the 5, as JAX's
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.lax import as_public
from graphc.ops.elementwise import as_node, cast, elementwise, in_floats
from graphc.scipy.special import composed
from graphc.startup.hooks import lazily
from graphc.tensor import elementary as el, reductions
from graphc.tensor.contraction import einsum
from graphc.tensor.creation import arange, ones_like
from graphc.tensor.nnet import activations, losses
from graphc.tensor.nnet.activations import celu, elu, glu, hard_tanh, log_sigmoid, mish, relu6, selu, silu, squareplus
from graphc.tensor.shaping import expand_dims

if TYPE_CHECKING:
    from graphc.nn import initializers as initializers

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish",
    "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus",
    "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip


def identity(x: Any) -> Any:
    """`x` itself, as a tensor."""
    return as_node(x)


def relu(x: Any) -> Any:
    """max(x, 0); the derivative at 0 is 0.

    >>> nn.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return activations.relu(as_node(x))


def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """`x`, or `negative_slope` * x where x is below 0."""
    return activations.leaky_relu(as_node(x), negative_slope)


def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal distribution's cdf of x; by its approximation with tanh, unless `approximate` is False."""
    return activations.gelu(x, approximate)


def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6: straight pieces in place of the sigmoid."""
    return el.true_div(relu6(el.add(in_floats(x), 3.0)), 6.0)


def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x)."""
    return el.mul(in_floats(x), hard_sigmoid(x))


hard_swish = hard_silu
swish = silu


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return el.sigmoid(x)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return el.softplus(x)


def soft_sign(x: Any) -> Any:
    """x / (1 + |x|)."""
    return activations.softsign(x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return el.tanh(x)


def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) of x above 0, accurate for small and large x."""
    node = in_floats(x)
    return el.where(
        el.less(node, float(np.log(2))), el.log(el.neg(el.expm1(el.neg(node)))), el.log1p(el.neg(el.exp(el.neg(node))))
    )


def sparse_plus(x: Any) -> Any:
    """A softplus that is 0 up to -1, x from 1 on, and (x + 1)**2 / 4 between.

    >>> nn.sparse_plus(np.array([-2.0, 0.0, 2.0]))
    array([0.  , 0.25, 2.  ])
    """
    node = in_floats(x)
    square = el.true_div(el.sqr(el.add(node, 1)), 4)
    return el.where(el.less_equal(node, -1), 0, el.where(el.greater_equal(node, 1), node, square))


def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2 between 0 and 1: the slope of `sparse_plus`.

    >>> nn.sparse_sigmoid(np.array([-2.0, 0.0, 2.0]))
    array([0. , 0.5, 1. ])
    """
    return el.clip(el.true_div(el.add(in_floats(x), 1), 2), 0, 1)


def softmax(x: Any, axis: Any = -1, where: Any = None, initial: Any = None) -> Any:
    """exp(x) / sum(exp(x)) over `axis` (None: all), without overflow; over the elements that `where` chooses alone, the
    others are 0. initial: a lower bound of the largest score, as older programs of JAX give it: it changes nothing.
    Raises AxisError for a wrong axis.

        >>> nn.softmax(np.zeros(2))
        array([0.5, 0.5])
    """
    if where is None:
        return losses.softmax(x, axis)
    return el.where(where, losses.softmax(_among(x, where), axis), 0)


def log_softmax(x: Any, axis: Any = -1, where: Any = None, initial: Any = None) -> Any:
    """log(softmax(x)) over `axis` (None: all); over the elements that `where` chooses alone, the others are -inf.
    initial: as of `softmax`. Raises AxisError for a wrong axis.
    """
    if where is None:
        return losses.log_softmax(x, axis)
    return el.where(where, losses.log_softmax(_among(x, where), axis), -np.inf)


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """log(sum(b exp(a))) over `axis`, all axes where it is None, without overflow; with `return_sign` the logarithm of
    its size, and its sign. Elements that `where` does not choose count as 0. Raises AxisError for a wrong axis.
    """
    return composed.logsumexp(a if where is None else _among(a, where), axis, b, keepdims, return_sign)


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(exp(x))) over `axis`, all axes where it is None, without overflow, of the elements that `where` chooses.

    >>> nn.logmeanexp(np.array([1000.0, 1000.0]))
    np.float64(1000.0)
    """
    node = in_floats(x)
    chosen = ones_like(node) if where is None else el.where(where, ones_like(node), 0)
    count = reductions.sum(chosen, axis=axis, keepdims=keepdims)
    return el.sub(logsumexp(node, axis, keepdims=keepdims, where=where), el.log(count))


def _among(x: Any, where: Any) -> Any:
    return el.where(where, in_floats(x), -np.inf)


def one_hot(x: Any, num_classes: Any, *, dtype: Any = None, axis: int = -1) -> Any:
    """Vectors of `num_classes` elements along a new `axis`: 1 at the place that an integer of `x` says, else 0; all 0
    for an integer out of bounds. They are floats, unless `dtype` says another one.

        >>> nn.one_hot(np.array([0, 2, 5]), 3)
        array([[1., 0., 0.],
               [0., 0., 1.],
               [0., 0., 0.]])
    """
    places = as_node(x)
    rank = places.ndim + 1
    new = axis + rank if axis < 0 else axis
    classes = arange(num_classes).reshape([-1 if place == new else 1 for place in range(rank)])
    equal = elementwise("equal", expand_dims(places, new), classes)
    return cast(equal, str(np.dtype(float if dtype is None else dtype)))


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: Any = None, is_causal: bool = False,
    query_seq_lengths: Any = None, key_value_seq_lengths: Any = None, local_window_size: Any = None,
    implementation: Any = None,
) -> Any:  # fmt: skip
    """softmax(query @ key.T * scale + bias) @ value, for each head (Vaswani et al., "Attention is all you need", 2017).

    query: float[batch, times, heads, width], or without the batch; key, value: float[batch, others, groups, width], of
    which each group serves heads / groups heads. Returns an array like the query. scale: 1 / sqrt(width), unless given.
    bias, mask: broadcast to [batch, heads, times, others]; scores where the mask is False count as the least number.
    is_causal: a time sees no later one. local_window_size: how many times to the left and to the right it sees, one
    number for both. query_seq_lengths, key_value_seq_lengths: int[batch], how many times are there; results of the
    others are 0. implementation changes nothing. Raises ShapeError where sizes disagree.

        >>> q = np.ones((1, 2, 1, 4))
        >>> nn.dot_product_attention(q, q, np.arange(8.0).reshape(1, 2, 1, 4), is_causal=True)[0, :, 0]
        array([[0., 1., 2., 3.],
               [2., 3., 4., 5.]])
    """
    q, k, v = (in_floats(each) for each in (query, key, value))
    is_batch = q.ndim == 4
    if not is_batch:
        q, k, v = (expand_dims(each, 0) for each in (q, k, v))
    (batch, times, heads, width), (_, others, groups, _) = q.shape, k.shape
    split = q.reshape((batch, times, groups, heads // groups, width))
    scores = einsum("btkgh,bskh->bkgts", split, k).reshape((batch, heads, times, others))
    scores = scores * (1 / el.sqrt(cast(width, q.dtype)) if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    now, seen = arange(times).reshape((-1, 1)), arange(others).reshape((1, -1))
    masks = [] if mask is None else [as_node(mask)]
    if is_causal:
        masks.append(el.ge(now, seen))
    if local_window_size is not None:
        left, right = local_window_size if isinstance(local_window_size, tuple) else (local_window_size,) * 2
        masks.append(el.logical_and(el.ge(now + right, seen), el.le(now - left, seen)))
    for lengths, place in ((query_seq_lengths, now), (key_value_seq_lengths, seen)):
        if lengths is not None:
            masks.append(el.lt(place, as_node(lengths).reshape((-1, 1, 1, 1))))
    for each in masks:
        scores = el.where(each, scores, -0.7 * float(np.finfo(q.dtype).max))
    weights = losses.softmax(scores, -1).reshape((batch, groups, heads // groups, times, others))
    made = einsum("bkgts,bskh->btkgh", weights, v).reshape((batch, times, heads, v.shape[-1]))
    if query_seq_lengths is not None:
        made = made * el.lt(arange(times).reshape((1, -1, 1, 1)), as_node(query_seq_lengths).reshape((-1, 1, 1, 1)))
    return made if is_batch else made[0]


def standardize(
    x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5, where: Any = None
) -> Any:
    """(x - mean) / sqrt(variance + epsilon) over `axis`; the mean and the variance are those of x along it, of the
    elements that `where` chooses, unless they are given. Raises AxisError for a wrong axis.
    """
    node = in_floats(x)
    if mean is None:
        mean = _mean(node, axis, where)
    if variance is None:
        variance = el.sub(_mean(el.sqr(node), axis, where), el.sqr(mean))
    return el.mul(el.sub(node, mean), el.true_div(1.0, el.sqrt(el.add(variance, epsilon))))


def _mean(x: Any, axis: Any, where: Any) -> Any:
    if where is None:
        return reductions.mean(x, axis=axis, keepdims=True)
    count = reductions.sum(el.where(where, ones_like(x), 0), axis=axis, keepdims=True)
    return el.true_div(reductions.sum(el.where(where, x, 0), axis=axis, keepdims=True), count)


for _name in __all__:
    globals()[_name] = as_public(globals()[_name], __name__)

if not TYPE_CHECKING:  # which know the module
    __getattr__ = lazily(__name__, {"initializers": ""})

    def __dir__() -> list[str]:
        return [*__all__, "initializers"]
