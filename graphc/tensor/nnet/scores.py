"""Softmax and losses of scores as Theano's nnet has them, classes in two levels, and products of blocks.

In: scores, matrices of scores, biases, vectors of integer classes. Out: nodes. A vector is a row to softmax where no
axis is named. What Theano fuses by hand is composed of softmax and the losses, which share their loops when they are
compiled.
"""

from __future__ import annotations

from typing import Any

from graphc.arrays.dtypes import INTEGERS
from graphc.errors import GraphTypeError, RankError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe
from graphc.ir.walk import mention
from graphc.ops.elementwise import as_node, cast
from graphc.ops.shape import expand
from graphc.tensor.creation import arange, zeros
from graphc.tensor.elementary import add, floor_div, mod, mul
from graphc.tensor.indexing import getitem, inc_subtensor, take
from graphc.tensor.nnet import losses
from graphc.tensor.nnet.losses import categorical_crossentropy
from graphc.tensor.products import dot, tensordot
from graphc.tensor.reductions import argmax, max_and_argmax, sum
from graphc.tensor.shaping import reshape

__all__ = [
    "crossentropy_softmax_1hot", "crossentropy_softmax_1hot_with_bias", "crossentropy_softmax_1hot_with_bias_dx",
    "crossentropy_softmax_argmax_1hot_with_bias", "crossentropy_softmax_max_and_argmax_1hot",
    "crossentropy_softmax_max_and_argmax_1hot_with_bias", "h_softmax", "log_softmax", "logsoftmax",
    "logsoftmax_op", "softmax", "softmax_graph", "softmax_op", "softmax_with_bias", "sparse_block_dot",
    "sparse_block_gemv", "sparse_block_outer",
]  # fmt: skip


def _row(x: Any, axis: Any) -> tuple[Node, Any]:
    """A vector of which no axis is named as a row."""
    node = as_node(x)
    if axis is not None:
        return node, axis
    return (expand(node, (0,)) if node.ndim == 1 else node), -1


def softmax(x: Any, axis: Any = None) -> Node:
    """exp(x) / sum(exp(x)) over `axis`, the last one by default, without overflow; a vector gives a row (Theano's).

    x: a tensor of one or more axes. The result has its shape, and is a float. Raises RankError for a scalar, AxisError
    for a wrong axis.

        >>> T.nnet.softmax(T.constant([[0.0, 0.0]])).eval()
        array([[0.5, 0.5]])
    """
    return losses.softmax(*_row(x, axis))


def log_softmax(x: Any, axis: Any = None) -> Node:
    """log(softmax(x)) over `axis`, the last one by default; a vector gives a row (Theano's)."""
    return losses.log_softmax(*_row(x, axis))


logsoftmax = logsoftmax_op = log_softmax
softmax_graph = softmax_op = softmax


# --- losses of scores -------------------------------------------------------------------------------------------------


def _biased(name: str, x: Any, b: Any) -> Node:
    scores, bias = as_node(x), as_node(b)
    if scores.ndim != 2 or bias.ndim != 1:
        pair = f"{describe(scores)} of type {scores.type} and {describe(bias)} of type {bias.type}"
        raise RankError(f"{name} of {pair}: it takes a matrix of scores and a vector of biases")
    return add(scores, bias)


def softmax_with_bias(x: Any, b: Any) -> Node:
    """softmax(x + b) of each row of a matrix; b is a vector (Theano's)."""
    return softmax(_biased("softmax_with_bias", x, b))


def _classes(name: str, y: Any) -> Node:
    classes = as_node(y)
    if classes.ndim != 1 or classes.type.dtype not in INTEGERS:
        raise RankError(f"{name}: classes {describe(classes)} of type {classes.type} are no vector of integers")
    return classes


def crossentropy_softmax_argmax_1hot_with_bias(x: Any, b: Any, y_idx: Any, **_how: Any) -> tuple[Node, Node, Node]:
    """-log(softmax(x + b)) at the class of each row, that softmax, and the class whose score is highest (Theano's).

    x: a matrix; b: a vector; y_idx: a vector of integers, whose dtype the classes found have.
    """
    name = "crossentropy_softmax_argmax_1hot_with_bias"
    scores, classes = _biased(name, x, b), _classes(name, y_idx)
    mention([classes])  # which Theano's op takes, whichever of its results is used
    probabilities = softmax(scores)
    loss = categorical_crossentropy(probabilities, classes)
    return loss, probabilities, cast(argmax(scores, 1), classes.type.dtype)


def crossentropy_softmax_1hot_with_bias(x: Any, b: Any, y_idx: Any, **_how: Any) -> tuple[Node, Node]:
    """-log(softmax(x + b)) at the class of each row, and that softmax (Theano's)."""
    return crossentropy_softmax_argmax_1hot_with_bias(x, b, y_idx)[:2]


def crossentropy_softmax_1hot(x: Any, y_idx: Any, **_how: Any) -> tuple[Node, Node]:
    """-log(softmax(x)) at the class of each row, and that softmax (Theano's)."""
    classes, probabilities = _classes("crossentropy_softmax_1hot", y_idx), softmax(x)
    return categorical_crossentropy(probabilities, classes), probabilities


def crossentropy_softmax_max_and_argmax_1hot_with_bias(
    x: Any, b: Any, y_idx: Any, **_how: Any
) -> tuple[Node, Node, Node, Node]:
    """The loss and softmax of `crossentropy_softmax_1hot_with_bias`, the highest probability and where it is."""
    loss, probabilities = crossentropy_softmax_1hot_with_bias(x, b, y_idx)
    return loss, probabilities, *max_and_argmax(probabilities, -1)


def crossentropy_softmax_max_and_argmax_1hot(x: Any, y_idx: Any, **_how: Any) -> tuple[Node, Node, Node, Node]:
    """The loss and softmax of `crossentropy_softmax_1hot`, the highest probability and where it is."""
    loss, probabilities = crossentropy_softmax_1hot(x, y_idx)
    return loss, probabilities, *max_and_argmax(probabilities, -1)


def crossentropy_softmax_1hot_with_bias_dx(dnll: Any, sm: Any, y_idx: Any) -> Node:
    """The gradient of the loss by the scores, from that by the loss and from the softmax: dnll * (sm - one_hot(y_idx))
    (Theano's)."""
    slope, probabilities = as_node(dnll), as_node(sm)
    classes = _classes("crossentropy_softmax_1hot_with_bias_dx", y_idx)
    by_row = slope if slope.ndim == 0 else getitem(slope, (slice(None), None))
    rows = arange(classes.shape[0])
    return inc_subtensor(getitem(mul(by_row, probabilities), (rows, classes)), mul(slope, -1))


def h_softmax(
    x: Any,
    batch_size: Any,
    n_outputs: Any,
    n_classes: Any,
    n_outputs_per_class: Any,
    W1: Any,  # noqa: N803 - Theano's names
    b1: Any,
    W2: Any,  # noqa: N803
    b2: Any,
    target: Any = None,
) -> Node:
    """A softmax in two levels (Goodman 2001): of `n_classes` classes, and of `n_outputs_per_class` outputs of each.

    x: (batch_size, features). W1: (features, n_classes), b1: (n_classes,), W2: (n_classes, features,
    n_outputs_per_class), b2: (n_classes, n_outputs_per_class). Without `target`, the probabilities (batch_size,
    n_outputs) of all outputs, in the order of their classes; with it, integers (batch_size,) or (batch_size, 1), those
    of the targets alone, a vector, at the cost of one class.
    """
    node = as_node(x)
    classes = softmax(add(dot(node, W1), b1))
    if target is None:
        scores = add(tensordot(node, W2, (1, 1)), b2)
        wide = batch_size, n_classes, n_outputs_per_class
        within = reshape(softmax(reshape(scores, (-1, n_outputs_per_class))), wide)
        both = mul(getitem(classes, (slice(None), slice(None), None)), within)
        both = reshape(both, (batch_size, n_classes * n_outputs_per_class))
        return getitem(both, (slice(None), slice(None, n_outputs)))
    wanted = reshape(as_node(target), (-1,))
    own, place = floor_div(wanted, n_outputs_per_class), mod(wanted, n_outputs_per_class)
    first = zeros((node.shape[0], 1), "int32")
    weights = getitem(as_node(W2), (None,))
    column = getitem(own, (slice(None), None))
    scores = sparse_block_dot(weights, getitem(node, (slice(None), None)), first, b2, column)
    rows = arange(node.shape[0])
    within = getitem(softmax(getitem(scores, (slice(None), 0))), (rows, place))
    return mul(getitem(classes, (rows, own)), within)


# --- blocksparse ------------------------------------------------------------------------------------------------------
# Products of some blocks of vectors with some blocks of a matrix, with Theano's names and layouts.
#
# In: blocks and which of them are wanted. Out: nodes. Blocks are gathered where they are read.


ALL = slice(None)


def sparse_block_gemv(o: Any, W: Any, h: Any, inputIdx: Any, outputIdx: Any) -> Node:  # noqa: N803 - Theano's names
    """o[b, j] + the sum over i of h[b, i] @ W[inputIdx[b, i], outputIdx[b, j]].

    o: (batch, blocks wanted, size of a result), W: (blocks in, blocks out, size of a block, size of a result), h:
    (batch, blocks given, size of a block), inputIdx: (batch, blocks given), outputIdx: (batch, blocks wanted).
    """
    weights, blocks, given, wanted = as_node(W), as_node(h), as_node(inputIdx), as_node(outputIdx)
    for node, rank in ((weights, 4), (blocks, 3), (given, 2), (wanted, 2)):
        if node.ndim != rank:
            raise RankError(f"sparse_block_gemv: {describe(node)} of type {node.type} should have {rank} axes")
    chosen = getitem(weights, (getitem(given, (ALL, ALL, None)), getitem(wanted, (ALL, None))))
    factors = getitem(blocks, (ALL, ALL, None, ALL, None))
    return add(o, sum(mul(factors, chosen), (1, 3)))


def sparse_block_outer(o: Any, x: Any, y: Any, xIdx: Any, yIdx: Any, alpha: Any = None) -> Node:  # noqa: N803
    """`o` with the outer products of x[b, i] and y[b, j] added at its blocks (xIdx[b, i], yIdx[b, j]), times `alpha`.

    o: (blocks, blocks, size, size), x: (batch, blocks, size), y: (batch, blocks, size), xIdx, yIdx: (batch, blocks).
    """
    left, right, rows, columns = as_node(x), as_node(y), as_node(xIdx), as_node(yIdx)
    products = mul(getitem(left, (ALL, ALL, None, ALL, None)), getitem(right, (ALL, None, ALL, None)))
    products = products if alpha is None else mul(products, alpha)
    at = (getitem(rows, (ALL, ALL, None)), getitem(columns, (ALL, None)))
    return inc_subtensor(getitem(as_node(o), at), products)


def sparse_block_dot(W: Any, h: Any, inputIdx: Any, b: Any, outputIdx: Any) -> Node:  # noqa: N803
    """The blocks `outputIdx` of the product of a matrix of blocks and of vectors of which only some blocks are not 0.

    W: (blocks in, blocks out, size in, size out), h: (batch, blocks given, size in) or without batch, inputIdx: (batch,
    blocks given), b: (blocks out, size out), outputIdx: (batch, blocks wanted). Returns (batch, blocks wanted, size
    out): b of each, plus the sum of its products.
    """
    blocks, given, wanted = as_node(h), as_node(inputIdx), as_node(outputIdx)
    if given.ndim != blocks.ndim - 1 or wanted.ndim != given.ndim:
        raise GraphTypeError(
            f"sparse_block_dot: {describe(given)} or {describe(wanted)} is no index of {describe(blocks)}"
        )
    if blocks.ndim == 2:
        blocks, given, wanted = (getitem(each, (None,)) for each in (blocks, given, wanted))
    return sparse_block_gemv(take(as_node(b), wanted, 0), W, blocks, given, wanted)


explain_all(globals())
