"""Orders: sorted elements, the places that sort them, the first of these, and places among sorted elements.

In: arrays. Out: op records, and functions that make their nodes. NaN is the largest of all numbers, and equal elements
stay in order. Code for one line of elements is native (codegen/sort), and lines are shared by threads.

    gc_order_sort_<dtype>(count, n, across, x and its three strides, result, workspace)
    gc_order_argsort_<dtype>(the same)
    gc_order_top_<dtype>(count, n, k, x and its two strides, wanted, result, workspace)
    gc_order_argtop_<dtype>(the same)
    gc_order_lexorder_<dtype>(n, m, x and its two strides, result)
    gc_order_searchsorted_<side>_<dtype>(n, m, x and its stride, the m values and their stride, result)

The first two are of three axes, along the second, so that whatever axis an array is sorted along is that one after a
reshape; the next two are of rows, the next is of a matrix of n rows, the
last of a sorted vector. Each returns 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.lowering import Call, Extent, Passed, Result, Strided, Whole, Workspace
from graphc.ir.node import OPS, Array, Attributes, Guard, Node, Op, Size, Type, define_op, describe, literal, make
from graphc.ir.samples import Argument, Sample, Samples
from graphc.ops.index import set_gather
from graphc.ops.shape import broadcast_to, expand, iota, label_op, reshape, zeros

LONGEST = 2**31
"""Elements of a line at most of which places are found: they share 64 bits with a part of the elements."""
SORTED_WORK = 20
"""Additions that take the time of one element in a sort."""
SEARCHED_WORK = 30
"""Additions that take the time of one search among some hundred elements."""
SIDES = ("left", "right")


def sort(x: Node) -> Node:
    """The elements along the second of three axes in rising order. Equal ones are one as good as another."""
    return make(OPS["sort"], (x,))


def argsort(x: Node) -> Node:
    """The places of the elements along the second of three axes in rising order, int64."""
    return make(OPS["argsort"], (x,))


def top(rows: Node, wanted: Node) -> Node:
    """Return as many elements of each row as the vector `wanted` has: the largest, the largest first, or where that is
    negative the smallest."""
    return make(OPS["top"], (rows, wanted))


def argtop(rows: Node, wanted: Node) -> Node:
    """The places of these, int64; of equal elements the first come first."""
    return make(OPS["argtop"], (rows, wanted))


def lexorder(rows: Node) -> Node:
    """The order of the rows of a matrix, by their first elements, of equal ones by the second, and so on: int64."""
    return make(OPS["lexorder"], (rows,))


def searchsorted(x: Node, values: Node, side: str) -> Node:
    """The places of a vector's elements among those of a sorted vector, of one dtype, int64: before equal elements for
    the side "left", after them for "right"."""
    return make(OPS[f"searchsorted_{side}"], (x, values))


# --- types and values -------------------------------------------------------------------------------------------------


def _same_type(args: Sequence[Node], attrs: Attributes) -> Type:
    (x,) = args
    if x.ndim != 3:
        raise GraphTypeError(f"sorting is along the second of three axes, not of {describe(x)} of type {x.type}")
    return x.type


def _first_type(args: Sequence[Node], attrs: Attributes) -> Type:
    rows, wanted = args
    if rows.ndim != 2 or wanted.ndim != 1 or wanted.type.dtype != "int64":
        held = f"{describe(rows)} of type {rows.type} and {describe(wanted)} of type {wanted.type}"
        raise GraphTypeError(f"the first are those of a matrix and a vector of int64, not of {held}")
    return Type(rows.type.dtype, (rows.type.shape[0], wanted.type.shape[0]))


def _row_places_type(args: Sequence[Node], attrs: Attributes) -> Type:
    (rows,) = args
    if rows.ndim != 2:
        raise GraphTypeError(f"the order is that of the rows of a matrix, not of {describe(rows)} of type {rows.type}")
    return Type("int64", rows.type.shape[:1])


def _searched_type(args: Sequence[Node], attrs: Attributes) -> Type:
    x, values = args
    if x.ndim != 1 or values.ndim != 1 or x.type.dtype != values.type.dtype:
        held = f"{describe(x)} of type {x.type} and {describe(values)} of type {values.type}"
        raise GraphTypeError(f"searched are two vectors of one dtype, not {held}")
    return Type("int64", values.type.shape)


def order_of_rows(rows: Array) -> Array:
    """The value of `lexorder`."""
    return np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))


def sorted_along(x: Array) -> Array:
    """The value of `sort`."""
    return np.sort(x, axis=1)


def order_along(x: Array) -> Array:
    """The value of `argsort`."""
    return np.argsort(x, axis=1, kind="stable")


def first_places(rows: Array, wanted: Array) -> Array:
    """The value of `argtop`."""
    count, size = wanted.size, rows.shape[-1]
    if count and wanted[0] < 0:
        return order_along(rows[..., None])[:, :count, 0]
    # of equal elements the first are the last of a line that is turned around
    found: Array = size - 1 - order_along(rows[:, ::-1, None])[:, ::-1, 0][:, :count]
    return found


def first_elements(rows: Array, wanted: Array) -> Array:
    """The value of `top`."""
    found: Array = np.take_along_axis(rows, first_places(rows, wanted), -1)
    return found


def places_left(x: Array, values: Array) -> Array:
    """The value of `searchsorted_left`."""
    return np.searchsorted(x, values)


def places_right(x: Array, values: Array) -> Array:
    """The value of `searchsorted_right`."""
    return np.searchsorted(x, values, "right")


def _evaluate(compute: Callable[..., Array]) -> Callable[..., Array]:
    return lambda node, *values: np.ascontiguousarray(compute(*values))


# --- derivatives and batches ------------------------------------------------------------------------------------------


def _coordinates(shape: Sequence[Size], axis: int) -> Node:
    """The coordinate along an axis of every element of an array of `shape`."""
    line = expand(iota(shape[axis]), [other for other in range(len(shape)) if other != axis])
    return broadcast_to(line, shape)


def _at(places: Node, shape: Sequence[Size], axis: int) -> list[Node]:
    """Places along an axis, with the coordinates along all others."""
    return [places if other == axis else _coordinates(shape, other) for other in range(len(shape))]


def _sort_vjp(node: Node, cotangent: Node) -> list[Node | None]:
    """The cotangent where the elements came from."""
    shape = node.type.shape
    return [set_gather(zeros(node.type.dtype, shape), cotangent, _at(argsort(node.args[0]), shape, 1), 0)]


def _top_vjp(node: Node, cotangent: Node) -> list[Node | None]:
    rows, wanted = node.args
    keys = _at(argtop(rows, wanted), node.type.shape, 1)
    return [set_gather(zeros(node.type.dtype, rows.type.shape), cotangent, keys, 0), None]


def _no_vjp(node: Node, cotangent: Node) -> list[None]:
    return [None] * len(node.args)


def _batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node | None:
    """More lines. Of a batch of what is wanted each is carried out by itself."""
    if any(batched[1:]):
        return None
    x = args[0]
    outer, *inner = x.type.shape[1:]
    made = make(node.op, (reshape(x, (sizes.multiply(size, outer), *inner)), *args[1:]))
    return reshape(made, (size, outer, *made.type.shape[1:]))


def _searched_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node | None:
    """More values among the same elements."""
    (x, values), (inner,) = args, node.type.shape
    if batched[0]:
        return None
    made = make(node.op, (x, reshape(values, (sizes.multiply(size, inner),))))
    return reshape(made, (size, inner))


# --- calls ------------------------------------------------------------------------------------------------------------


def symbol(name: str, dtype: str) -> str:
    """The function of an op."""
    return f"gc_order_{name}_{dtype}"


def _symbol(node: Node) -> str:
    return symbol(node.op.name, node.args[0].type.dtype)


def _along(node: Node) -> list[Passed]:
    (x,) = node.args
    count, length, across = x.type.shape
    space = 0 if across == 1 else sizes.product((count, length, across))  # rows are sorted where they go
    return [
        *map(Extent, x.type.shape),
        Strided(x, (0, 1, 2)),
        Result(),
        Workspace(node.type.dtype, (space,)),
    ]


def _of_rows(node: Node) -> list[Passed]:
    rows, wanted = node.args
    return [
        *map(Extent, (*rows.type.shape, wanted.type.shape[0])),
        Strided(rows, (0, 1)),
        Whole(wanted),
        Result(),
        Workspace(node.type.dtype, rows.type.shape),
    ]


def _of_matrix(node: Node) -> list[Passed]:
    (rows,) = node.args
    return [*map(Extent, rows.type.shape), Strided(rows, (0, 1)), Result()]


def _of_searched(node: Node) -> list[Passed]:
    x, values = node.args
    return [*map(Extent, (*x.type.shape, *values.type.shape)), Strided(x, (0,)), Strided(values, (0,)), Result()]


def _work(node: Node) -> list[Size]:
    return [*node.args[0].type.shape, SORTED_WORK]


def _length_guards(node: Node) -> Sequence[Guard]:
    size = node.args[0].type.shape[0 if node.op.name == "lexorder" else 1]
    if isinstance(size, int) and size < LONGEST:
        return ()
    return [Guard(size, "<=", LONGEST - 1, f"{label_op(node)}: a line of {{left}} elements is too long")]


def _enough_guards(node: Node) -> Sequence[Guard]:
    rows, wanted = node.args
    count, size = wanted.type.shape[0], rows.type.shape[1]
    if isinstance(count, int) and isinstance(size, int) and count <= size:
        return ()
    return [Guard(count, "<=", size, f"{label_op(node)}: {{left}} of a line of {{right}} elements are wanted")]


ALONG = Call(_symbol, _along, _work, overwritten=(0, 0))
PLACES = Call(_symbol, _along, _work)
FIRST = Call(_symbol, _of_rows, _work)
ROWS = Call(_symbol, _of_matrix, _work)
SEARCHED = Call(_symbol, _of_searched, lambda node: [*node.type.shape, SEARCHED_WORK])


def _wants(count: int) -> Node:
    return literal(np.full(abs(count), count), "int64")


def _samples(function: Callable[[Node], Node], differentiable: bool) -> Samples:
    shapes = ((1, 6, 1), (3, 5, 1), (2, 4, 3), (1, 1, 2), (2, 0, 2))
    return Samples(
        lambda: [
            *(Sample(f"of {shape}", function, (Argument(shape),), differentiable) for shape in shapes),
            Sample("of integers", function, (Argument((2, 5, 2), "int", -3, 3),), False),
            Sample("of booleans", function, (Argument((2, 5, 2), "bool"),), False),
        ]
    )


def _first_samples(function: Callable[[Node, Node], Node], differentiable: bool) -> Samples:
    def first(count: int) -> Callable[[Node], Node]:
        return lambda rows: function(rows, _wants(count))

    return Samples(
        lambda: [
            *(Sample(f"{n} of rows", first(n), (Argument((3, 6)),), differentiable) for n in (2, -4)),
            Sample("of integers", first(3), (Argument((2, 5), "int", -3, 3),), False),
            Sample("none", first(0), (Argument((2, 5)),), False),
        ]
    )


def _row_samples() -> Samples:
    given = Argument((4, 3)), Argument((7, 2), "int", -1, 1), Argument((6, 3), "bool"), Argument((3, 0))
    return Samples(lambda: [Sample(f"{each.category} {each.shape}", lexorder, (each,), False) for each in given])


def _searched_samples(side: str) -> Samples:
    given = [((5,), (3, 7)), ((1,), (4,)), ((0,), (2,)), ((6,), (0,))]
    kinds: tuple[tuple[Any, ...], ...] = ((), ("int", -2, 2), ("bool",))

    def found(x: Node, values: Node) -> Node:
        ranked = reshape(sort(reshape(x, (1, *x.type.shape, 1))), x.type.shape)
        return searchsorted(ranked, reshape(values, (sizes.product(values.type.shape),)), side)

    return Samples(
        lambda: [
            Sample(f"{many} among {few} {kind[:1]}", found, (Argument(few, *kind), Argument(many, *kind)), False)
            for few, many in given
            for kind in kinds
        ]
    )


def _define(name: str, compute: Callable[..., Array], call: Call, doc: str, **own: Any) -> Op:
    return define_op(name, eval=_evaluate(compute), lower=lambda node: call, cost=100.0, doc=doc, **own)


_define("sort", sorted_along, ALONG, "Elements along the second of three axes in rising order.",
        infer=_same_type, vjp=_sort_vjp, batch=_batch, samples=_samples(sort, True))  # fmt: skip
_define("argsort", order_along, PLACES, "Places of elements along the second of three axes in rising order.",
        infer=lambda args, attrs: Type("int64", _same_type(args, attrs).shape), vjp=_no_vjp,
        guards=_length_guards, batch=_batch, samples=_samples(argsort, False))  # fmt: skip
_define("top", first_elements, FIRST, "The largest elements of rows, or the smallest, in order.",
        infer=_first_type, vjp=_top_vjp, guards=_enough_guards, batch=_batch,
        samples=_first_samples(top, True))  # fmt: skip
_define("argtop", first_places, FIRST, "Places of the largest elements of rows, or of the smallest, in order.",
        infer=lambda args, attrs: Type("int64", _first_type(args, attrs).shape), vjp=_no_vjp,
        guards=lambda node: [*_enough_guards(node), *_length_guards(node)], batch=_batch,
        samples=_first_samples(argtop, False))  # fmt: skip
_define("lexorder", order_of_rows, ROWS, "The order of the rows of a matrix, by their first elements, then the second.",
        infer=_row_places_type, vjp=_no_vjp, guards=_length_guards, samples=_row_samples())  # fmt: skip
for _side, _places in zip(SIDES, (places_left, places_right), strict=True):
    _define(f"searchsorted_{_side}", _places, SEARCHED, "Places of elements among those of a sorted vector.",
            infer=_searched_type, vjp=_no_vjp, batch=_searched_batch, samples=_searched_samples(_side))  # fmt: skip
