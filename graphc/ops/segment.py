"""Sums of segments: element i of the result is the sum of the rows starts[i] to starts[i + 1] of an array; and the
number of the segment that each row lies in.

In: an array and a vector of integers, one longer than the result. Out: two op records and functions that make their
nodes. A product with a sparse matrix in rows is such a sum of what its entries give; one in columns adds to places
what its entries give, each times the element of a vector at the number of its segment. Starts ascend from 0 to the size
of the axis, which is checked: each row lies in one segment. Terms of a vector are added in the accumulator's dtype
(`dtypes.accumulated_in`), rows of more axes in their own, as in a matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from graphc.arrays.dtypes import INTEGERS, accumulated_in, accumulator
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.lowering import SegmentNumber, Segments
from graphc.ir.node import (
    OPS,
    Argument,
    Array,
    Attributes,
    Guard,
    Node,
    Sample,
    Samples,
    Size,
    Type,
    define_op,
    describe,
    literal,
    make,
)
from graphc.ir.walk import as_size_node
from graphc.ops.checked import checked
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.index import gather, subtensor
from graphc.ops.shape import as_sizes, dimshuffle, label, label_op


def segment_sum(x: Node, starts: Node) -> Node:
    """result[i] = sum of x[starts[i] : starts[i + 1]] along the first axis; `x` has its accumulator's dtype."""
    return checked_sum(x, ascending(starts, x.type.shape[0], f"starts {label(starts)}"))


def checked_sum(x: Node, starts: Node) -> Node:
    """The same for starts that `ascending` has checked already: what reads the rows relies on that."""
    return make(OPS["segment_sum"], (x, starts), {})


def ascending(starts: Node, count: Size, what: str) -> Node:
    """Starts as int64, checked: they ascend from 0 to `count`."""
    wide, length = cast(starts, "int64"), sizes.subtract(starts.type.shape[0], 1)
    ends = subtensor(wide, (1,), (length,), (1,))
    grows = elementwise("less_equal", subtensor(wide, (0,), (length,), (1,)), ends)
    first, last = (gather(wide, (as_size_node(place),), 0) for place in (0, length))
    whole = (make(OPS["all"], (grows,), {"axes": (0,)}), elementwise("equal", first, 0))
    conditions = (*whole, elementwise("equal", last, as_size_node(count)))
    message = f"{what} do not ascend from 0 to the number of elements"
    return checked(wide, [cast(condition, "int64") for condition in conditions], message, "index")


def segment_of(starts: Node, count: Size) -> Node:
    """For each of `count` positions the number of the segment that it lies in, an int64 vector; starts are what
    `ascending` has checked for that count."""
    return make(OPS["segment_of"], (starts, as_size_node(count)), {})


def _infer(args: Sequence[Node], attrs: Attributes) -> Type:
    x, starts = args
    if not x.ndim or starts.ndim != 1 or starts.type.dtype not in INTEGERS:
        held = f"{describe(x)} of type {x.type} at {describe(starts)} of type {starts.type}"
        raise GraphTypeError(f"segment_sum takes an array and a vector of integers, not {held}")
    if accumulator(x.type.dtype) != x.type.dtype:
        raise GraphTypeError(
            f"segment_sum of {describe(x)}: {x.type.dtype} is to be cast to {accumulator(x.type.dtype)} first"
        )
    return Type(x.type.dtype, (sizes.subtract(starts.type.shape[0], 1), *x.type.shape[1:]))


def _guards(node: Node) -> Sequence[Guard]:
    size = node.args[1].type.shape[0]
    what = f"{label_op(node)}: {label(node.args[1])} has {{right}} elements, where a segment has a start and an end"
    return () if isinstance(size, int) and size else [Guard(1, "<=", size, what)]


def _eval(node: Node, x: Array, starts: Array) -> Array:
    places = starts.tolist()
    wide = accumulated_in(node.type.dtype) if x.ndim == 1 else node.type.dtype
    result = np.empty((max(len(places) - 1, 0), *x.shape[1:]), x.dtype)
    with np.errstate(all="ignore"):
        for place, (begin, end) in enumerate(pairwise(places)):
            result[place] = x[begin:end].sum(0, dtype=wide)
    return result


def _vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """Each row the cotangent of the segment that it lies in."""
    x, starts = node.args
    return (gather(cotangent, (segment_of(starts, x.type.shape[0]),), 0), None)


def _batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node | None:
    """The elements of a batch are columns, where all have the same segments."""
    if batched[1]:
        return None
    x = args[0]
    last = checked_sum(dimshuffle(x, (1, *range(2, x.ndim), 0)), args[1])
    return dimshuffle(last, (last.ndim - 1, *range(last.ndim - 1)))


def _sample(name: str, starts: Sequence[int], *columns: int) -> Sample:
    """The last of the starts is whatever size there is, for others that are beyond it too."""

    def build(x: Node) -> Node:
        inside = literal(np.array([*starts[:-1], 2**30], "int64"), "int64")
        return segment_sum(x, elementwise("minimum", inside, as_size_node(x.type.shape[0])))

    return Sample(name, build, (Argument((starts[-1], *columns)),))


define_op(
    "segment_sum",
    _infer,
    _eval,
    lambda node: Segments(accumulated_in(node.type.dtype) if node.ndim == 1 else node.type.dtype),
    _vjp,
    _guards,
    samples=Samples(
        lambda: (
            _sample("a vector", (0, 2, 2, 5)),
            _sample("one row", (0, 9)),
            _sample("rows", (0, 5, 5, 6, 15), 3),
            _sample("planes", (0, 1, 5), 2, 3),
            _sample("no columns", (0, 1, 5), 0),
            _sample("nothing", (0, 0, 0), 2),
        )
    ),
    batch=_batch,
    doc="The sum of each segment of the first axis, which begin at the second argument's elements and end at the next.",
)


# --- numbers of segments --------------------------------------------------------------------------------------------


def _of_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    starts, count = args
    if starts.ndim != 1 or starts.type.dtype not in INTEGERS:
        held = f"{describe(starts)} of type {starts.type}"
        raise GraphTypeError(f"segment_of takes a vector of integers and a size, not {held}")
    return Type("int64", as_sizes((count,), "segment_of"))


def _of_eval(node: Node, starts: Array, count: Array) -> Array:
    return np.repeat(np.arange(len(starts) - 1, dtype="int64"), np.diff(starts))


def _of_sample(name: str, starts: Sequence[int]) -> Sample:
    def build(x: Node) -> Node:
        count = x.type.shape[0]
        inside = elementwise("minimum", literal(np.array([*starts[:-1], 2**30]), "int64"), as_size_node(count))
        return segment_of(ascending(inside, count, "starts"), count)

    return Sample(name, build, (Argument((starts[-1],)),), differentiable=False)


define_op(
    "segment_of",
    _of_infer,
    _of_eval,
    lambda node: SegmentNumber(),
    lambda node, cotangent: (None, None),
    samples=Samples(
        lambda: (
            _of_sample("some empty", (0, 0, 2, 2, 5)),
            _of_sample("one", (0, 3)),
            _of_sample("nothing", (0, 0)),
        )
    ),
    doc="For each position the number of the segment that it lies in: they begin at the first argument's elements.",
)
