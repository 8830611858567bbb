"""The loss of connectionist temporal classification (Graves et al. 2006), as Theano's nnet.ctc has it.

In: scores of each symbol at each time, labels. Out: a node. The forward recursion over the labels with blanks between
them, in logarithms, is a scan over time; its derivative is the backward recursion.
"""

from __future__ import annotations

import math
from typing import Any

from graphc.arrays.dtypes import INTEGERS
from graphc.control.functional import scan
from graphc.errors import RankError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe, told
from graphc.ops.derivative import zero_grad
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.tensor.creation import arange, full, zeros
from graphc.tensor.elementary import add, exp, greater, log, logical_and, maximum, mul, neg, not_equal, sub, where
from graphc.tensor.indexing import getitem, set_subtensor
from graphc.tensor.joining import concatenate, stack
from graphc.tensor.nnet.activations import in_floats
from graphc.tensor.nnet.losses import log_softmax
from graphc.tensor.reductions import cumsum, sum
from graphc.tensor.selecting import take_along_axis
from graphc.tensor.shaping import broadcast_to, reshape

__all__ = ["ctc"]

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
    what = told(lambda: f"ctc of {describe(scores)} of type {scores.type}")
    if scores.ndim != 3:
        raise RankError(f"{what}: it has {scores.ndim} axes, not 3: (time, batch, symbols)")
    for node, rank in ((marks, 2), (lengths, 1)):
        if node.ndim != rank or node.type.dtype not in INTEGERS:
            raise RankError(f"{what}: {describe(node)} of type {node.type} should be integers of {rank} axes")
    times, batch = scores.type.shape[:2]
    symbols, count = _with_blanks(marks)
    before = concatenate([zeros((batch, 2), "int64"), symbols[:, :-2]], 1)[:, : symbols.shape[1]]
    skips = logical_and(not_equal(symbols, 0), not_equal(symbols, before))
    spread = broadcast_to(getitem(symbols, (None,)), (times, batch, symbols.type.shape[1]))
    emitted = take_along_axis(log_softmax(scores, -1), spread, 2)
    nothing = full((batch, 2), NOTHING, scores.type.dtype)

    def step(states: Node, element: tuple[Node, Node]) -> tuple[Node, None]:
        emission, time = element
        padded = concatenate([nothing, states], 1)
        stays = [states, padded[:, 1:-1], where(skips, padded[:, :-2], NOTHING)]
        following = add(emission, _log_of_sum(stays))
        return where(getitem(greater(lengths, time), (ALL, None)), following, states), None

    start = set_subtensor(getitem(full(symbols.shape, NOTHING, scores.type.dtype), (ALL, 0)), 0)
    last, _ = scan(step, start, (emitted, arange(scores.shape[0])))
    rows, end = arange(marks.shape[0]), mul(count, 2)
    blank = getitem(last, (rows, end))
    label = where(greater(count, 0), getitem(last, (rows, maximum(sub(end, 1), 0))), NOTHING)
    loss = neg(_log_of_sum([blank, label]))
    return where(greater(loss, -0.5 * NOTHING), math.inf, loss)


def _with_blanks(labels: Node) -> tuple[Node, Node]:
    """The labels of each row with blanks around them, those that are none left out; and how many there are."""
    batch, most = labels.type.shape
    there = elementwise("greater_equal", labels, 0)
    place = where(there, sub(cumsum(cast(there, "int64"), 1), 1), cast(as_node(labels.shape[1]), "int64"))
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
        highest = maximum(highest, part)
    highest = zero_grad(highest)
    total = exp(sub(parts[0], highest))
    for part in parts[1:]:
        total = add(total, exp(sub(part, highest)))
    return add(highest, log(total))


explain_all(globals())
