"""Probabilities and losses: Theano's softmax family, crossentropies, connectionist temporal classification.

In: tensors of scores, probabilities and classes. Out: nodes. Integers are computed in the float dtype that `sigmoid`
has for them, floats in their own. The softmax family subtracts the maximum first: no score overflows, and as its value
does not depend on what is subtracted, derivatives of any order are right.
"""

from __future__ import annotations

import math
from typing import Any

from graphc.arrays.dtypes import INTEGERS, is_float, promote
from graphc.control.functional import scan
from graphc.errors import GraphTypeError, RankError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.facts import BROADCASTS, scalar_number
from graphc.ir.node import Node, describe, make
from graphc.ir.walk import as_size_node
from graphc.ops import index, shape as layout
from graphc.ops.derivative import zero_grad
from graphc.ops.elementwise import as_node, cast, elementwise, in_floats
from graphc.ops.identity import checked
from graphc.tensor import elementary as el
from graphc.tensor.creation import arange, full, one_hot, ones, zeros
from graphc.tensor.indexing import getitem, set_subtensor, take
from graphc.tensor.joining import concatenate, stack
from graphc.tensor.keys import positions
from graphc.tensor.products import dot
from graphc.tensor.reductions import all, cumsum, shift_of, sum
from graphc.tensor.selecting import take_along_axis
from graphc.tensor.shaping import as_size, broadcast_to, label_operand, normalise_axes, reshape

__all__ = [
    "binary_crossentropy", "categorical_crossentropy", "confusion_matrix", "crossentropy_categorical_1hot",
    "crossentropy_categorical_1hot_grad",
    "prepend_0_to_each_row", "prepend_1_to_each_row", "prepend_scalar_to_each_row", "sigmoid_binary_crossentropy",
    "to_one_hot",
]  # fmt: skip


# --- softmax --------------------------------------------------------------------------------------------------------


def _softmax_axes(name: str, x: Node, axis: Any) -> tuple[int, ...]:
    if x.ndim == 0:
        raise RankError(f"{name} of {describe(x)} of type {x.type}: a scalar has no axis")
    return tuple(sorted(normalise_axes(axis, x.ndim, label_operand(name, x))))


def softmax(x: Any, axis: Any = -1) -> Node:
    """exp(x) / sum(exp(x)) over `axis` (the last one; None: all), without overflow; NaN where all scores are -inf.

    Floats keep their dtype. Raises AxisError for a wrong axis.

        >>> T.softmax(T.constant([0.0, 0.0])).eval()
        array([0.5, 0.5])
    """
    node = in_floats(x)
    axes = _softmax_axes("softmax", node, axis)
    powers = el.exp(el.sub(node, shift_of(node, axes)))
    return el.true_div(powers, sum(powers, axes, keepdims=True))


def log_softmax(x: Any, axis: Any = -1) -> Node:
    """log(softmax(x)) over `axis`, accurate where the softmax itself is too small to be held.

    >>> T.log_softmax(T.constant([0.0, 0.0])).eval()
    array([-0.69314718, -0.69314718])
    """
    node = in_floats(x)
    axes = _softmax_axes("log_softmax", node, axis)
    shifted = el.sub(node, shift_of(node, axes))
    return el.sub(shifted, el.log(sum(el.exp(shifted), axes, keepdims=True)))


# --- losses ---------------------------------------------------------------------------------------------------------


def _class_of_each(scores: Node, classes: Node) -> Node:
    """The element of the last axis of `scores` that `classes` names. A class below 0 is an error: it stands for no
    label in many data sets, and an index that counts from the end would take it for the last class."""
    if not classes.type.dtype.startswith("u"):
        named = cast(all(el.greater_equal(classes, 0)), "int64")
        classes = checked(classes, [named], f"a class of {describe(classes)} is below 0", "index")
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
    while total.op.name in BROADCASTS:
        around.append(total)
        total = total.args[0]
    if total.op.name != "sum" or total.args[0] is not powers:
        return None
    logarithm = el.log(total)
    for node in reversed(around):
        logarithm = make(node.op, (logarithm, *node.args[1:]), node.attrs)
    return el.sub(powers.args[0], logarithm)


def categorical_crossentropy(coding_dist: Any, true_dist: Any) -> Node:
    """-sum(true * log(coding)) over the last axis: one loss for each row of probabilities.

    `true_dist` holds an integer class for each row, or a distribution of the shape of `coding_dist` (one-hot rows,
    say). A class whose true probability is 0 adds nothing, whatever its coding probability. Raises RankError for other
    ranks; a call raises IndexOutOfBounds for a class below 0 or beyond the last.

        >>> T.nnet.categorical_crossentropy(T.constant([[0.5, 0.5]]), [0]).eval()
        array([0.69314718])
    """
    coding, true = in_floats(coding_dist), as_node(true_dist)
    logarithm = _log_softmax_of(coding)
    if coding.ndim and true.ndim == coding.ndim - 1 and true.type.dtype in INTEGERS:
        if logarithm is None:
            return el.neg(el.log(_class_of_each(coding, true)))
        return el.neg(_class_of_each(logarithm, true))
    if true.ndim == coding.ndim and coding.ndim:
        if logarithm is None:
            return el.neg(sum(el.xlogy(true, coding), -1))
        impossible = el.logical_and(el.equal(true, 0), el.equal(logarithm, -math.inf))
        return el.neg(sum(el.where(impossible, 0, el.mul(true, logarithm)), -1))
    raise RankError(
        f"categorical_crossentropy of {describe(coding)} of type {coding.type}: {describe(true)} of type {true.type} "
        "is neither an integer class for each row nor a distribution of its shape"
    )


def crossentropy_categorical_1hot(coding_dist: Any, true_one_of_n: Any) -> Node:
    """`categorical_crossentropy` for a vector of integer classes."""
    classes = as_node(true_one_of_n)
    if classes.type.dtype not in INTEGERS:
        raise GraphTypeError(
            f"crossentropy_categorical_1hot: classes {describe(classes)} are {classes.type.dtype}, not integers"
        )
    return categorical_crossentropy(coding_dist, classes)


def crossentropy_categorical_1hot_grad(g_y: Any, coding_dist: Any, true_one_of_n: Any) -> Node:
    """The derivative of `crossentropy_categorical_1hot` by the matrix `coding_dist`, given that by its result, a
    vector: -g_y / p where the class of each row stands, else 0."""
    coding, classes = in_floats(coding_dist), as_node(true_one_of_n)
    if coding.ndim != 2 or classes.ndim != 1 or classes.type.dtype not in INTEGERS:
        held = f"{describe(coding)} of type {coding.type} and {describe(classes)} of type {classes.type}"
        raise GraphTypeError(f"crossentropy_categorical_1hot_grad takes a matrix and a vector of integers, not {held}")
    steep = el.neg(el.true_div(as_node(g_y), _class_of_each(coding, classes)))
    places = (layout.iota(coding.type.shape[0]), classes)
    return index.inc_gather(
        layout.zeros(coding.type.dtype, coding.type.shape), cast(steep, coding.type.dtype), places, 0
    )


def _score_of(probability: Node) -> Node | None:
    """x where `probability` is sigmoid(x), also written as 1 / (1 + exp(-x)), else None."""
    if probability.op.name == "sigmoid":
        return probability.args[0]
    if probability.op.name != "true_div" or scalar_number(probability.args[0]) != 1:
        return None
    divisor = probability.args[1]
    if divisor.op.name == "add":
        for one, power in (divisor.args, divisor.args[::-1]):
            if scalar_number(one) == 1 and power.op.name == "exp":
                return el.neg(power.args[0])
    return None


def binary_crossentropy(output: Any, target: Any) -> Node:
    """-(target * log(output) + (1 - target) * log(1 - output)), element by element.

    The two broadcast.

        >>> T.nnet.binary_crossentropy(T.constant([0.5]), [1.0]).eval()
        array([0.69314718])
    """
    probability = in_floats(output)
    score = _score_of(probability)
    if score is not None:
        return sigmoid_binary_crossentropy(score, target)
    expected = as_node(target)
    expected = expected if is_float(expected.type.dtype) else cast(expected, probability.type.dtype)
    missed = elementwise("xlog1py", el.sub(1, expected), el.neg(probability))
    return el.neg(el.add(el.xlogy(expected, probability), missed))


def sigmoid_binary_crossentropy(output: Any, target: Any) -> Node:
    """`binary_crossentropy` of sigmoid(output), accurate for scores of any size."""
    score = in_floats(output)
    expected = as_node(target)
    expected = expected if is_float(expected.type.dtype) else cast(expected, score.type.dtype)
    return el.add(el.mul(expected, el.softplus(el.neg(score))), el.mul(el.sub(1, expected), el.softplus(score)))


def to_one_hot(y: Any, nb_class: Any, dtype: Any = None) -> Node:
    """For each integer of `y` a row of `nb_class` zeros with a one at that position, from the end where it is negative.
    A call raises IndexOutOfBounds for a class that is none of these."""
    classes, count = as_node(y), as_size(nb_class, "to_one_hot: the number of classes")
    if is_float(classes.type.dtype) or classes.type.dtype == "bool":
        return one_hot(classes, count, dtype)  # which refuses them
    return one_hot(take(arange(as_size_node(count)), classes), count, dtype)


def confusion_matrix(actual: Any, pred: Any) -> tuple[Node, Node]:
    """The number of times that each class was taken for each other one, and the classes in ascending order (Theano's).

    Both arguments are vectors. Row i and column j count where `actual` is class i and `pred` class j.
    """
    given = [as_node(one) for one in (actual, pred)]
    for node in given:
        if node.ndim != 1:
            raise RankError(f"confusion_matrix of {describe(node)} of type {node.type}: no vector")
    dtype = promote(*(node.type.dtype for node in given))
    found, taken = (cast(node, dtype) for node in given)
    both = concatenate([found, taken])
    rank = count_less(both, both)
    # The places that the least element of each class has among all, in ascending order.
    first = index.set_gather(zeros((both.shape[0],), "bool"), ones((both.shape[0],), "bool"), (rank,), 0)
    starts = positions(first)
    order = take(index.set_gather(zeros((both.shape[0],), dtype), both, (rank,), 0), starts)
    rows, columns = (
        cast(el.equal(layout.expand(node, (0,)), layout.expand(order, (1,))), "int64") for node in (found, taken)
    )
    return dot(rows, layout.dimshuffle(columns, (1, 0))), order


def count_less(x: Node, among: Node) -> Node:
    """For each element of a vector, how many of another one are below it."""
    return sum(cast(elementwise("less", layout.expand(among, (0,)), layout.expand(x, (1,))), "int64"), 1)


# --- rows -----------------------------------------------------------------------------------------------------------


def prepend_scalar_to_each_row(val: Any, mat: Any) -> Node:
    """The matrix `mat` with a first column of the scalar `val` (Theano's)."""
    matrix, value = as_node(mat), as_node(val)
    if matrix.ndim != 2 or value.ndim:
        raise RankError(f"prepend_scalar_to_each_row: {describe(value)} to {describe(matrix)} of {matrix.type}")
    column = layout.filled(cast(value, matrix.type.dtype), (matrix.type.shape[0], 1))
    return layout.concatenate([column, matrix], 1)


def prepend_0_to_each_row(mat: Any) -> Node:
    """The matrix `mat` with a first column of zeros (Theano's)."""
    return prepend_scalar_to_each_row(0, mat)


def prepend_1_to_each_row(mat: Any) -> Node:
    """The matrix `mat` with a first column of ones (Theano's)."""
    return prepend_scalar_to_each_row(1, mat)


# --- connectionist temporal classification ----------------------------------------------------------------------------
# The forward recursion over the labels with blanks between them, in logarithms, is a scan over time; its derivative is
# the backward recursion (Graves et al., Connectionist Temporal Classification, 2006).


NOTHING = -1e30
"""The logarithm of a probability of 0: finite, so that derivatives are."""
ALL = slice(None)


def ctc(activations: Any, labels: Any, input_lengths: Any) -> Node:
    """-log of the probability that each sequence reads as its labels, repeated symbols and blanks left out.

    activations: (time, batch, symbols), scores of which the softmax is taken; symbol 0 is the blank. labels: integers
    (batch, most labels), of which negative ones are no labels. input_lengths: integers (batch,), how many times of each
    sequence count. Returns a vector (batch,), inf where there are more labels than times. Integers may have any dtype;
    the result has that of the activations.

        >>> scores, labels, lengths = T.dtensor3("scores"), T.lmatrix("labels"), T.lvector("lengths")
        >>> cost = T.nnet.ctc.ctc(scores, labels, lengths).mean()
    """
    scores, marks, lengths = in_floats(activations), as_node(labels), as_node(input_lengths)
    what = label_operand("ctc", scores)
    if scores.ndim != 3:
        raise RankError(f"{what}: it has {scores.ndim} axes, not 3: (time, batch, symbols)")
    for node, rank in ((marks, 2), (lengths, 1)):
        if node.ndim != rank or node.type.dtype not in INTEGERS:
            raise RankError(f"{what}: {describe(node)} of type {node.type} should be integers of {rank} axes")
    times, batch = scores.type.shape[:2]
    symbols, count = _with_blanks(marks)
    before = concatenate([zeros((batch, 2), "int64"), symbols[:, :-2]], 1)[:, : symbols.shape[1]]
    skips = el.logical_and(el.not_equal(symbols, 0), el.not_equal(symbols, before))
    spread = broadcast_to(getitem(symbols, (None,)), (times, batch, symbols.type.shape[1]))
    emitted = take_along_axis(log_softmax(scores, -1), spread, 2)
    nothing = full((batch, 2), NOTHING, scores.type.dtype)

    def step(states: Node, element: tuple[Node, Node]) -> tuple[Node, None]:
        emission, time = element
        padded = concatenate([nothing, states], 1)
        stays = [states, padded[:, 1:-1], el.where(skips, padded[:, :-2], NOTHING)]
        following = el.add(emission, _log_of_sum(stays))
        return el.where(getitem(el.greater(lengths, time), (ALL, None)), following, states), None

    start = set_subtensor(getitem(full(symbols.shape, NOTHING, scores.type.dtype), (ALL, 0)), 0)
    last, _ = scan(step, start, (emitted, arange(scores.shape[0])))
    rows, end = arange(marks.shape[0]), el.mul(count, 2)
    blank = getitem(last, (rows, end))
    label = el.where(el.greater(count, 0), getitem(last, (rows, el.maximum(el.sub(end, 1), 0))), NOTHING)
    loss = el.neg(_log_of_sum([blank, label]))
    return el.where(el.greater(loss, -0.5 * NOTHING), math.inf, loss)


def _with_blanks(labels: Node) -> tuple[Node, Node]:
    """The labels of each row with blanks around them, those that are none left out; and how many there are."""
    batch, most = labels.type.shape
    there = elementwise("greater_equal", labels, 0)
    place = el.where(there, el.sub(cumsum(cast(there, "int64"), 1), 1), cast(as_node(labels.shape[1]), "int64"))
    rows = getitem(arange(labels.shape[0]), (ALL, None))
    whole = zeros((batch, labels.shape[1] + 1), "int64")
    packed = getitem(set_subtensor(getitem(whole, (rows, place)), cast(labels, "int64")), (ALL, slice(None, -1)))
    blanks = zeros((batch, most), "int64")
    pairs = reshape(stack([blanks, packed], 2), (labels.shape[0], labels.shape[1] * 2))
    return concatenate([pairs, zeros((batch, 1), "int64")], 1), sum(cast(there, "int64"), 1)


def _log_of_sum(parts: list[Node]) -> Node:
    """log(sum(exp(part))), element by element."""
    highest = parts[0]
    for part in parts[1:]:
        highest = el.maximum(highest, part)
    highest = zero_grad(highest)
    total = el.exp(el.sub(parts[0], highest))
    for part in parts[1:]:
        total = el.add(total, el.exp(el.sub(part, highest)))
    return el.add(highest, el.log(total))


explain_all(globals())
