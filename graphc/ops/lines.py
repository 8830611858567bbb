"""Work on lines of elements by native code: sorting, places among sorted elements, and Fourier transforms.

In: arrays. Out: op records, and functions that make their nodes. NaN is the largest of all numbers, and equal elements
stay in order. The routines are native (codegen/sort, codegen/fourier), threads share the lines, and each returns 0:

    gc_order_sort_<dtype>(count, n, across, x and its three strides, result, workspace)
    gc_order_argsort_<dtype>(the same)
    gc_order_top_<dtype>(count, n, k, x and its two strides, wanted, result, workspace)
    gc_order_argtop_<dtype>(the same)
    gc_order_lexorder_<dtype>(n, m, x and its two strides, result)
    gc_order_searchsorted_<side>_<dtype>(n, m, x and its stride, the m values and their stride, result)
    gc_fourier_<dtype>(lines, n, x and its three strides, result, workspace)
    gc_fourier_real_<dtype>(lines, n, x and its two strides, result, workspace)
    gc_fourier_back_<dtype>(lines, n, x and its three strides, result, workspace)

Sorts are along the second of three axes, so that a reshape gives an array of any rank this form. `top` and `argtop` are
of rows, `lexorder` is of a matrix of n rows, and `searchsorted` of a sorted vector. A transform is of complex lines
(lines, n, 2), whose real and imaginary parts lie along the last axis, or of real lines (lines, n), of
which the first half of the spectrum is (lines, n // 2 + 1, 2), or of that back. Every mode computes it in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.lowering import Call, Extent, Passed, Result, Strided, Whole, Workspace
from graphc.ir.node import OPS, Array, Attributes, Guard, Node, Op, Size, Type, define_op, describe, literal, make
from graphc.ir.types import Argument, Row, Samples, samples
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.index import set_gather, subtensor
from graphc.ops.shape import as_sizes, broadcast_to, check_naturals, expand, iota, label_op, reshape, zeros

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
        described = f"{describe(rows)} of type {rows.type} and {describe(wanted)} of type {wanted.type}"
        raise GraphTypeError(f"the first are those of a matrix and a vector of int64, not of {described}")
    return Type(rows.type.dtype, (rows.type.shape[0], wanted.type.shape[0]))


def _row_places_type(args: Sequence[Node], attrs: Attributes) -> Type:
    (rows,) = args
    if rows.ndim != 2:
        raise GraphTypeError(f"the order is that of the rows of a matrix, not of {describe(rows)} of type {rows.type}")
    return Type("int64", rows.type.shape[:1])


def _searched_type(args: Sequence[Node], attrs: Attributes) -> Type:
    x, values = args
    if x.ndim != 1 or values.ndim != 1 or x.type.dtype != values.type.dtype:
        described = f"{describe(x)} of type {x.type} and {describe(values)} of type {values.type}"
        raise GraphTypeError(f"searched are two vectors of one dtype, not {described}")
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
    places: Array = size - 1 - order_along(rows[:, ::-1, None])[:, ::-1, 0][:, :count]
    return places


def first_elements(rows: Array, wanted: Array) -> Array:
    """The value of `top`."""
    elements: Array = np.take_along_axis(rows, first_places(rows, wanted), -1)
    return elements


def places_left(x: Array, values: Array) -> Array:
    """The value of `searchsorted_left`."""
    return np.searchsorted(x, values)


def places_right(x: Array, values: Array) -> Array:
    """The value of `searchsorted_right`."""
    return np.searchsorted(x, values, "right")


# --- derivatives and batches ------------------------------------------------------------------------------------------


def _scattered(x: Node, cotangent: Node, places: Node) -> Node:
    """The cotangent of `x` where the result has its elements at `places` along the second axis."""
    shape, axes = places.type.shape, range(places.ndim)
    keys = [broadcast_to(expand(iota(shape[k]), [other for other in axes if other != k]), shape) for k in axes]
    keys[1] = places
    return set_gather(zeros(x.type.dtype, x.type.shape), cotangent, keys, 0)


def _top_vjp(node: Node, cotangent: Node) -> list[Node | None]:
    return [_scattered(node.args[0], cotangent, argtop(*node.args)), None]


def _no_vjp(node: Node, cotangent: Node) -> list[None]:
    return [None] * len(node.args)


def _batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node | None:
    """More lines. Of a batch of what is wanted each is carried out by itself."""
    if any(batched[1:]):
        return None
    x = args[0]
    outer, *inner = x.type.shape[1:]
    flat = make(node.op, (reshape(x, (sizes.multiply(size, outer), *inner)), *args[1:]))
    return reshape(flat, (size, outer, *flat.type.shape[1:]))


def _searched_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node | None:
    """More values among the same elements."""
    (x, values), (inner,) = args, node.type.shape
    if batched[0]:
        return None
    flat = make(node.op, (x, reshape(values, (sizes.multiply(size, inner),))))
    return reshape(flat, (size, inner))


# --- calls ------------------------------------------------------------------------------------------------------------


def symbol(name: str, dtype: str) -> str:
    """The function of an op."""
    return f"gc_order_{name}_{dtype}"


def _along(node: Node) -> list[Passed]:
    (x,) = node.args
    count, length, across = x.type.shape
    space = 0 if across == 1 else sizes.product((count, length, across))  # rows are sorted where they go
    return [*map(Extent, x.type.shape), Strided(x, (0, 1, 2)), Result(), Workspace(node.type.dtype, (space,))]


def _of_rows(node: Node) -> list[Passed]:
    rows, wanted = node.args
    lines = *map(Extent, (*rows.type.shape, wanted.type.shape[0])), Strided(rows, (0, 1))
    return [*lines, Whole(wanted), Result(), Workspace(node.type.dtype, rows.type.shape)]


def _of_matrix(node: Node) -> list[Passed]:
    (rows,) = node.args
    return [*map(Extent, rows.type.shape), Strided(rows, (0, 1)), Result()]


def _of_searched(node: Node) -> list[Passed]:
    x, values = node.args
    return [*map(Extent, (*x.type.shape, *values.type.shape)), Strided(x, (0,)), Strided(values, (0,)), Result()]


def _work(node: Node) -> list[Size]:
    return [*node.args[0].type.shape, SORTED_WORK]


def _at_most(node: Node, count: Size, most: Size, words: str) -> list[Guard]:
    """The guard that a size is at most another, where that is not known."""
    known = isinstance(count, int) and isinstance(most, int) and count <= most
    return [] if known else [Guard(count, "<=", most, f"{label_op(node)}: {words}")]


def _length_guards(node: Node) -> list[Guard]:
    size = node.args[0].type.shape[0 if node.op.name == "lexorder" else 1]
    return _at_most(node, size, LONGEST - 1, "a line of {left} elements is too long")


def _enough_guards(node: Node) -> list[Guard]:
    count, size = node.type.shape[1], node.args[0].type.shape[1]
    return _at_most(node, count, size, "{left} of a line of {right} elements are wanted")


def _call(
    passed: Callable[[Node], Sequence[Passed]], work: Callable[[Node], Sequence[Size]] = _work, **more: Any
) -> Call:
    return Call(lambda node: symbol(node.op.name, node.args[0].type.dtype), passed, work, **more)


ALONG, PLACES, FIRST, ROWS = _call(_along, overwritten=(0, 0)), _call(_along), _call(_of_rows), _call(_of_matrix)
SEARCHED = _call(_of_searched, lambda node: [*node.type.shape, SEARCHED_WORK])


def _samples(function: Callable[[Node], Node], differentiable: bool) -> Samples:
    rows: list[Row] = [
        (f"of {shape}", function, shape) for shape in ((1, 6, 1), (3, 5, 1), (2, 4, 3), (1, 1, 2), (2, 0, 2))
    ]
    others: list[Row] = [
        ("of integers", function, Argument((2, 5, 2), "int", -3, 3)),
        ("of booleans", function, Argument((2, 5, 2), "bool")),
    ]
    return samples(*rows, others=others) if differentiable else samples(others=[*rows, *others])


def _first_samples(function: Callable[[Node, Node], Node], differentiable: bool) -> Samples:
    def first(count: int) -> Callable[[Node], Node]:
        return lambda rows: function(rows, literal(np.full(abs(count), count), "int64"))

    rows: list[Row] = [(f"{n} of rows", first(n), (3, 6)) for n in (2, -4)]
    others: list[Row] = [("of integers", first(3), Argument((2, 5), "int", -3, 3)), ("none", first(0), (2, 5))]
    return samples(*rows, others=others) if differentiable else samples(others=[*rows, *others])


def _row_samples() -> Samples:
    arguments = Argument((4, 3)), Argument((7, 2), "int", -1, 1), Argument((6, 3), "bool"), Argument((3, 0))
    return samples(others=[(f"{each.category} {each.shape}", lexorder, each) for each in arguments])


def _searched_samples(side: str) -> Samples:
    def found(x: Node, values: Node) -> Node:
        ranked = reshape(sort(reshape(x, (1, *x.type.shape, 1))), x.type.shape)
        return searchsorted(ranked, reshape(values, (sizes.product(values.type.shape),)), side)

    shapes = (((5,), (3, 7)), ((1,), (4,)), ((0,), (2,)), ((6,), (0,)))
    kinds: tuple[tuple[Any, ...], ...] = ((), ("int", -2, 2), ("bool",))
    pairs = [(few, many, kind) for few, many in shapes for kind in kinds]
    return samples(
        others=[
            (f"{many} among {few} {kind[:1]}", found, Argument(few, *kind), Argument(many, *kind))
            for few, many, kind in pairs
        ]
    )


def _define(name: str, compute: Callable[..., Array], call: Call, doc: str, **own: Any) -> Op:
    return define_op(
        name,
        eval=lambda node, *values: np.ascontiguousarray(compute(*values)),
        lower=lambda node: call,
        cost=100.0,
        doc=doc,
        **own,
    )


_define("sort", sorted_along, ALONG, "Elements along the second of three axes in rising order.",
        infer=_same_type, batch=_batch, samples=_samples(sort, True),
        vjp=lambda node, cotangent: [_scattered(node.args[0], cotangent, argsort(node.args[0]))])  # fmt: skip
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


# --- transforms -------------------------------------------------------------------------------------------------------


RADICES = (4, 2, 3, 5, 7, 11, 13)
"""The factors of a length that transforms are made of. Another length is that of a convolution (Bluestein)."""
LANES = 4
"""Lines that are transformed together."""
LONGEST_TRANSFORM = 2**30
"""Numbers of a line at most: the square of a place is a whole number of 64 bits."""


def fourier(x: Node) -> Node:
    """The sums over j of x[:, j] e**(-2 pi i j k / n)."""
    return make(OPS["fourier"], (x,))


def backward(x: Node) -> Node:
    """The sums over j of x[:, j] e**(2 pi i j k / n): both parts change places before the transform and behind it."""

    def exchanged(x: Node) -> Node:
        return subtensor(x, (0, 0, 1), x.type.shape, (1, 1, -1))

    return exchanged(fourier(exchanged(x)))


def real_fourier(x: Node) -> Node:
    """The sums over j of x[:, j] e**(-2 pi i j k / n) of real lines, for k up to n // 2."""
    return make(OPS["real_fourier"], (x,))


def real_backward(x: Node, n: Size) -> Node:
    """The n real values, times n, of which `real_fourier` is `x`. The first imaginary part is not read, nor the last
    one where n is even."""
    return make(OPS["real_backward"], (x, as_size_node(n)))


def is_factored(n: int) -> bool:
    """True for a product of RADICES."""
    for radix in RADICES:
        while n > 1 and n % radix == 0:
            n //= radix
    return n == 1


def _transform_type(args: Sequence[Node], attrs: Attributes) -> Type:
    (x,) = args
    if x.ndim != 3 or x.type.shape[2] != 2 or not is_float(x.type.dtype):
        raise GraphTypeError(f"a transform is of floats (lines, n, 2), not of {describe(x)} of type {x.type}")
    return x.type


def transformed(x: Array) -> Array:
    """The value of `fourier`."""
    lines = np.ascontiguousarray(x, "float64").view("complex128")[..., 0]
    spectrum = np.fft.fft(lines, axis=1) if lines.shape[1] else lines
    return np.ascontiguousarray(spectrum)[..., None].view("float64").astype(x.dtype)


def real_transformed(x: Array) -> Array:
    """The value of `real_fourier`."""
    spectrum = np.fft.rfft(x.astype("float64"), axis=1)
    return np.ascontiguousarray(spectrum)[..., None].view("float64").astype(x.dtype)


def values_transformed(x: Array, n: int) -> Array:
    """The value of `real_backward`."""
    values: Array = np.fft.irfft(np.ascontiguousarray(x, "float64").view("complex128")[..., 0], n, 1, "forward")
    return values.astype(x.dtype)


def transform_symbol(dtype: str, form: str = "") -> str:
    """The routine of complex lines, of real ones ("real_") or of their spectra ("back_")."""
    return f"gc_fourier_{form}{dtype}"


def _transform_passed(node: Node, n: Size) -> list[Passed]:
    x, lines, is_real = node.args[0], node.type.shape[0], node.op.name != "fourier"
    space = Workspace("float64", (_space(lines, n // 2 if is_real and isinstance(n, int) and n % 2 == 0 else n),))
    return [*map(Extent, (lines, n)), Strided(x, tuple(range(x.ndim))), Result(), space]


def _space(lines: Size, n: Size) -> Size:
    """Room for 2 n numbers of roots, and for two complex arrays of lines that go together. A convolution has at most
    5/2 n + 16 places, and two arrays more."""
    together = sizes.multiply(sizes.minimum(lines, LANES), 4)
    if isinstance(n, int) and is_factored(n):
        return sizes.multiply(n, sizes.add(together, 4))
    places = sizes.add(sizes.multiply(n, 3), 16)
    return sizes.multiply(places, sizes.add(together, 6))


def _transform(form: str, length: Callable[[Node], Size], work: int, words: str, **own: Any) -> None:
    """The op of a transform of so many numbers, each of which takes the time of `work` additions."""
    call = Call(
        lambda node: transform_symbol(node.type.dtype, form),
        lambda node: _transform_passed(node, length(node)),
        lambda node: [node.type.shape[0], length(node), work],
    )

    def guards(node: Node) -> list[Guard]:
        n = length(node)
        guards = _at_most(node, n, LONGEST_TRANSFORM, "a line of {left} numbers is too long")
        if form and not (isinstance(n, int) and n > 0):
            guards.append(Guard(1, "<=", n, f"{label_op(node)}: a line of {{right}} numbers has no spectrum"))
        if form == "back_" and not sizes.equal(size := node.args[0].type.shape[1], _half(n)):
            words = f"{label_op(node)}: the first half of a spectrum has {{left}} numbers, and should have {{right}}"
            guards.append(Guard(size, "==", _half(n), words))
        return guards

    name = {"": "fourier", "real_": "real_fourier", "back_": "real_backward"}[form]
    define_op(name, lower=lambda node: call, guards=guards, cost=100.0, doc=words, **own)


def _weighted(x: Node, n: Size, middle: float) -> Node:
    """Numbers of the first half of a spectrum, those but for both ends times a factor: they stand for two of it all."""
    place = expand(iota(x.type.shape[1]), [0, 2])
    is_last = elementwise("equal", elementwise("mul", place, 2), as_size_node(n))
    factor = elementwise("where", elementwise("equal", place, 0), 1.0, elementwise("where", is_last, 1.0, middle))
    return elementwise("mul", x, cast(factor, x.type.dtype))


def _of_pairs(x: Node) -> Node:
    return fourier(subtensor(x, (0, 0, 0), (*x.type.shape[:2], 2), (1, 1, 1)))


def _back(n: int) -> Callable[[Node], Node]:
    return lambda x: real_backward(subtensor(x, (0, 0, 0), (*x.type.shape[:2], 2), (1, 1, 1)), n)


def _half(n: Size) -> Size:
    return sizes.add(sizes.floor_divide(n, 2), 1)


def _real_type(args: Sequence[Node], attrs: Attributes) -> Type:
    (x,) = args
    if x.ndim != 2 or not is_float(x.type.dtype):
        raise GraphTypeError(f"a real transform is of floats (lines, n), not of {describe(x)} of type {x.type}")
    return Type(x.type.dtype, (x.type.shape[0], _half(x.type.shape[1]), 2))


def _values_type(args: Sequence[Node], attrs: Attributes) -> Type:
    x, count = args
    (n,) = as_sizes((count,), "real_backward")
    check_naturals((n,), "real_backward")
    sizes.common(_transform_type((x,), attrs).shape[1], _half(n), "real_backward")
    return Type(x.type.dtype, (x.type.shape[0], n))


def _values_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node | None:
    return None if batched[1] else _batch(node, args, batched, size)


_transform(
    "",
    lambda node: node.type.shape[1],
    50,
    "Fourier transforms of complex lines.",
    infer=_transform_type,
    eval=lambda node, x: transformed(x),
    vjp=lambda node, cotangent: [backward(cotangent)],
    batch=_batch,
    samples=samples(
        *(
            (f"of {shape}", _of_pairs, shape)
            for shape in ((1, 1, 2), (5, 4, 2), (2, 6, 2), (3, 17, 2), (0, 3, 2), (2, 0, 2), (1, 13, 2))
        )
    ),
)
_transform(
    "real_",
    lambda node: node.args[0].type.shape[1],
    30,
    "The first halves of the Fourier transforms of real lines.",
    infer=_real_type,
    eval=lambda node, x: real_transformed(x),
    vjp=lambda node, cotangent: [
        real_backward(_weighted(cotangent, n := node.args[0].type.shape[1], 0.5), n),
    ],
    batch=_batch,
    samples=samples(
        *((f"of {shape}", real_fourier, shape) for shape in ((1, 1), (5, 4), (2, 6), (3, 17), (0, 3), (1, 34)))
    ),
)
_transform(
    "back_",
    lambda node: node.type.shape[1],
    30,
    "Real lines by the first halves of their Fourier transforms.",
    infer=_values_type,
    eval=lambda node, x, n: values_transformed(x, int(n)),
    vjp=lambda node, cotangent: [_weighted(real_fourier(cotangent), node.type.shape[1], 2.0), None],
    batch=_values_batch,
    samples=samples(
        *((f"{n} of {shape}", _back(n), shape) for n, shape in ((1, (1, 1, 2)), (4, (5, 3, 2)), (2, (2, 2, 2)),
          (17, (3, 9, 2)), (4, (0, 3, 2)), (34, (1, 18, 2))))
    ),
)  # fmt: skip
