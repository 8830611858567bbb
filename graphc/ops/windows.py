"""Windows that slide over the last axes of an array, and the sum of what windows hold: each other's derivative.

In: a node, and a `Sliding` for each of its last axes. Out: op records, and functions that make their nodes. Element
(…, o, …, w, …) of the windows is element (…, o * stride + w * step, …): the axes of places come first, in the
order of the axes that they slide over, then those within a window. Nothing is copied: whoever reads a window reads the
array where it stands. Windows that reach beyond an array are those of a larger one, which is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from graphc import loopir
from graphc.arrays.dtypes import INTEGERS, accumulated_in, accumulator
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir import sizes
from graphc.ir.lowering import Element, SegmentNumber, Segments, View, Write, Writes
from graphc.ir.node import (
    OPS,
    Array,
    Attributes,
    Guard,
    Index,
    Node,
    Size,
    Type,
    define_op,
    describe,
    lazy_text,
    literal,
    make,
)
from graphc.ir.types import Row, samples
from graphc.ir.walk import as_size_node
from graphc.ops import shape as shapes
from graphc.ops.elementwise import cast, elementwise, repeated
from graphc.ops.identity import checked
from graphc.ops.index import gather, inc_subtensor, set_subtensor, subtensor
from graphc.startup.record import record

MOST_TAPS = 8
"""Elements of windows that are added to one after the other in one iteration."""


@record()
class Sliding:
    """The windows along an axis: `count` of them, of `width` elements each, `step` apart, each `stride` after the
    one before, the first from the first element on."""

    count: Size
    width: Size
    stride: Size = 1
    step: Size = 1

    @property
    def reach(self) -> Size:
        """The number of elements that the windows reach over, the first and last among them, where there are any."""
        pairs = (self.count, self.stride), (self.width, self.step)
        places, within = (sizes.multiply(sizes.subtract(number, 1), each) for number, each in pairs)
        return sizes.add(sizes.add(places, within), 1)

    @property
    def is_apart(self) -> bool:
        """Tell whether windows are known to follow one another without overlap or gap."""
        return sizes.equal(self.stride, self.width) and sizes.equal(self.step, 1)


def _slidings(node: Node) -> list[Sliding]:
    return _parts(node.op.name, node.args, node.attrs)


def _parts(name: str, args: Sequence[Node], attrs: Attributes) -> list[Sliding]:
    rank: int = attrs["axes"]
    counted = () if name == "windows" else args[1].type.shape[args[1].ndim - 2 * rank :]
    numbers = (*counted, *shapes.as_sizes(args[1 if name == "windows" else 2 :], name))
    return list(map(Sliding, *(numbers[place * rank : (place + 1) * rank] for place in range(4))))


def _check(name: str, x: Node, slidings: Sequence[Sliding]) -> None:
    what = lazy_text(lambda: f"{name} of {describe(x)} of type {x.type}")
    if len(slidings) > x.ndim or not slidings:
        raise GraphTypeError(f"{what}: windows over {len(slidings)} axes")
    shapes.check_naturals([size for sliding in slidings for size in (sliding.count, sliding.width)], what)
    for axis, sliding in enumerate(slidings, x.ndim - len(slidings)):
        for word, size in (("stride", sliding.stride), ("step", sliding.step)):
            if isinstance(size, int) and size < 1 and not sizes.equal(sliding.width, 0):
                raise GraphValueError(f"{what}: the {word} along axis {axis} is {size}, not positive")


def _guards_of(what: str, x: Node, slidings: Sequence[Sliding]) -> list[Guard]:
    guards = shapes.naturals_guard([size for sliding in slidings for size in (sliding.count, sliding.width)], what)
    for axis, sliding in enumerate(slidings, x.ndim - len(slidings)):
        length = x.type.shape[axis]
        # Windows of nothing, and none, are right anywhere: the reach is multiplied by 0.
        some = sizes.multiply(sizes.minimum(sliding.count, 1), sizes.minimum(sliding.width, 1))
        for word, size in (("stride", sliding.stride), ("step", sliding.step)):
            if not isinstance(size, int):
                text = f"{what}: the {word} along axis {axis} is {{right}}, not positive"
                guards.append(Guard(some, "<=", size, text))
        reach = sizes.multiply(some, sliding.reach)
        if not (isinstance(reach, int) and isinstance(length, int) and reach <= length):
            text = f"{what} of {shapes.label(x)}: windows reach to {{left}} along axis {axis}, whose size is {{right}}"
            guards.append(Guard(reach, "<=", length, text))
    return guards


def _positions(numbers: Sequence[Sequence[int]]) -> tuple[Any, ...]:
    """NumPy's indices of the last axes, for windows of these counts, widths, strides and steps."""
    rank = len(numbers[0])
    index: list[Any] = [...]
    for axis, (count, width, stride, step) in enumerate(zip(*numbers, strict=True)):
        place = np.arange(count)[:, None] * stride + np.arange(width) * step
        index.append(np.expand_dims(place, [k for k in range(2 * rank) if k not in (axis, rank + axis)]))
    return tuple(index)


def _columns(values: Sequence[Array], rank: int) -> list[list[int]]:
    return [[int(value) for value in values[k : k + rank]] for k in range(0, len(values), rank)]


def _source(slidings: Sequence[Sliding], index: Index, element: Element) -> Index:
    """The place of element `index` of the windows in the array."""
    rank = len(slidings)
    outer, places, within = index[: -2 * rank], index[-2 * rank : -rank], index[-rank:]
    position = (
        loopir.add(
            loopir.multiply(place, shapes.size_expr(sliding.stride, element)),
            loopir.multiply(inner, shapes.size_expr(sliding.step, element)),
        )
        for sliding, place, inner in zip(slidings, places, within, strict=True)
    )
    return (*outer, *position)


# --- windows --------------------------------------------------------------------------------------------------------


def _windows_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    x, slidings = args[0], _parts("windows", args, attrs)
    _check("windows", x, slidings)
    outer = x.type.shape[: x.ndim - len(slidings)]
    return Type(x.type.dtype, (*outer, *(each.count for each in slidings), *(each.width for each in slidings)))


def _windows_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    x, slidings = node.args[0], _slidings(node)
    nothing = shapes.zeros(cotangent.type.dtype, x.type.shape)
    if not all(sliding.is_apart for sliding in slidings):
        whole = inc_windows(nothing, cotangent, slidings)
    else:
        whole = join_windows(cotangent, len(slidings))
        if not all(map(sizes.equal, whole.type.shape, x.type.shape)):
            # That the windows end before the axis does is a guard, which loops do not know.
            begin, step, cut = (0,) * x.ndim, (1,) * x.ndim, map(sizes.minimum, x.type.shape, whole.type.shape)
            whole = inc_subtensor(nothing, subtensor(whole, begin, tuple(cut), step), begin, step)
    return (whole, *(None for _ in node.args[1:]))


def windows(x: Node, slidings: Sequence[Sliding]) -> Node:
    """The windows that slide over the last axes of `x`: the axes of places, then those within a window."""
    numbers = (getattr(sliding, name) for name in ("count", "width", "stride", "step") for sliding in slidings)
    return make(WINDOWS, (x, *map(as_size_node, numbers)), {"axes": len(slidings)})


def filled_windows(x: Node, slidings: Sequence[Sliding], before: Sequence[Size | None], fill: Any) -> Node:
    """The windows of `x` where the first begins `before` elements before each of the last axes, and the last may end
    beyond it, with a number for what is not there; None where no window leaves the axis."""
    if all(number is None for number in before):
        return windows(x, slidings)
    first = x.ndim - len(slidings)
    shape, begins = list(x.type.shape), [0] * first + [0 if number is None else number for number in before]
    for axis, (sliding, number) in enumerate(zip(slidings, before, strict=True), first):
        if number is not None:
            shape[axis] = sizes.maximum(sizes.add(shape[axis], number), sliding.reach)
    around = shapes.filled(literal(np.array(fill).astype(x.type.dtype)), shape)
    return windows(set_subtensor(around, x, begins, (1,) * x.ndim), slidings)


# --- join_windows ---------------------------------------------------------------------------------------------------


def _join_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    (y,) = args
    rank: int = attrs["axes"]
    if not 1 <= rank <= y.ndim // 2:
        raise GraphTypeError(f"join_windows of {describe(y)} of type {y.type}: no windows over {rank} axes")
    outer, places, within = y.type.shape[: -2 * rank], y.type.shape[-2 * rank : -rank], y.type.shape[-rank:]
    return Type(y.type.dtype, (*outer, *map(sizes.multiply, places, within)))


def _join_eval(node: Node, y: Array) -> Array:
    rank = node.attrs["axes"]
    first = y.ndim - 2 * rank
    turned = y.transpose(*range(first), *(first + axis + part for axis in range(rank) for part in (0, rank)))
    joined = [y.shape[first + axis] * y.shape[first + rank + axis] for axis in range(rank)]
    return turned.reshape((*y.shape[:first], *joined))


def _join_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    shape, rank = node.args[0].type.shape, node.attrs["axes"]
    slidings = [Sliding(o, w, w) for o, w in zip(shape[-2 * rank : -rank], shape[-rank:], strict=True)]
    return (windows(cotangent, slidings),)


def _join_index(node: Node, index: Index, element: Element) -> tuple[int, Index]:
    rank = node.attrs["axes"]
    widths = [shapes.size_expr(size, element) for size in node.args[0].type.shape[-rank:]]
    joined = index[-rank:]
    places = (loopir.quotient(position, width) for position, width in zip(joined, widths, strict=True))
    within = (loopir.remainder(position, width) for position, width in zip(joined, widths, strict=True))
    return 0, (*index[:-rank], *places, *within)


def join_windows(y: Node, axes: int) -> Node:
    """Windows over the last `axes` axes, each beginning where the one before ends, as the array that they were of."""
    return make(JOIN_WINDOWS, (y,), {"axes": axes})


# --- inc_windows ----------------------------------------------------------------------------------------------------


def _inc_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    x, y = args[:2]
    rank: int = attrs["axes"]
    if x.type.dtype != y.type.dtype or y.ndim != x.ndim + rank or rank > x.ndim:
        described = f"{describe(y)} of type {y.type}"
        raise GraphTypeError(
            f"inc_windows: {described} are no windows over {rank} axes of {describe(x)} of type {x.type}"
        )
    _check("inc_windows", x, _parts("inc_windows", args, attrs))
    return x.type


def _inc_eval(node: Node, x: Array, y: Array, *rest: Array) -> Array:
    rank: int = node.attrs["axes"]
    result = x.copy(order="C")
    numbers = [list(y.shape[y.ndim - 2 * rank : y.ndim - rank]), list(y.shape[y.ndim - rank :]), *_columns(rest, rank)]
    with np.errstate(all="ignore"):
        np.add.at(result, _positions(numbers), y)
    return result


def _inc_writes(node: Node) -> Sequence[Write]:
    """The last axis of places is the innermost loop, whose iterations write to different elements. Where windows
    overlap, as many elements as there are from one to the next are taken at a time, so that they are read and written
    in order."""
    x, y = node.args[:2]
    slidings, last = _slidings(node), y.ndim - node.attrs["axes"] - 1
    others = [axis for axis in range(y.ndim - 1) if axis != last]
    width, stride, step = slidings[-1].width, slidings[-1].stride, slidings[-1].step
    order, parts = (*others, y.ndim - 1, last), [(0, 0, width)]
    if isinstance(width, int) and isinstance(stride, int) and step == 1 and 1 < stride < width <= MOST_TAPS:
        order, firsts = (*others, last, y.ndim - 1), range(0, width, stride)
        parts = [(first, first // stride, min(stride, width - first)) for first in firsts]

    def added(first: int, later: int, count: Size) -> Write:
        """The elements of windows from `first` on, which are the first ones of windows that come so much later."""

        def back(index: Index) -> list[loopir.Expr]:
            return [index[order.index(axis)] for axis in range(y.ndim)]

        def target(index: Index, element: Element) -> Index:
            position = back(index)
            position[last] = loopir.add(position[last], loopir.integer(later))
            return _source(slidings, tuple(position), element)

        def value(index: Index) -> tuple[int, Index]:
            position = back(index)
            position[-1] = loopir.add(position[-1], loopir.integer(first))
            return 1, tuple(position)

        extents = (*y.type.shape[:-1], count)
        return Write(tuple(extents[axis] for axis in order), target, value, accumulate=True)

    whole = Write(x.type.shape, lambda index, element: index, lambda index: (0, index), is_copy=True)
    return [whole, *(added(*part) for part in parts)]


def _inc_guards(node: Node) -> Sequence[Guard]:
    (x, y), slidings, what = node.args[:2], _slidings(node), shapes.label_op(node)
    outer = x.ndim - len(slidings)
    text = "{}: axis {axis} of {} has size {{left}}, not {{right}} as in {}"
    guards = shapes.shape_guards(
        y.type.shape[:outer], x.type.shape[:outer], text, what, shapes.label(y), shapes.label(x)
    )
    return [*_guards_of(what, x, slidings), *guards]


def _inc_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node | None:
    return None if any(batched[2:]) else make(node.op, (*repeated(args[:2], batched[:2], size), *args[2:]), node.attrs)


def inc_windows(x: Node, y: Node, slidings: Sequence[Sliding]) -> Node:
    """`x` with `y`, which has the axes that `windows` would give, added to those elements: where windows overlap, all
    are. The counts and widths are those of `y`."""
    numbers = (getattr(sliding, name) for name in ("stride", "step") for sliding in slidings)
    return make(INC_WINDOWS, (x, y, *map(as_size_node, numbers)), {"axes": len(slidings)})


# --- the records ----------------------------------------------------------------------------------------------------

_CASES: tuple[tuple[str, tuple[int, ...], tuple[tuple[int, ...], ...]], ...] = (
    ("of a vector", (5,), ((3, 3),)),
    ("apart", (2, 7), ((3, 2, 2),)),
    ("two axes, apart", (2, 4, 5), ((2, 2, 2), (1, 3, 3))),
    ("two axes, overlapping", (5, 6), ((2, 3, 2), (4, 3))),
    ("dilated", (2, 7), ((2, 3, 2, 2),)),
    ("with gaps", (7,), ((3, 1, 3),)),
    ("no places", (2, 2), ((0, 3, 1),)),
    ("of no rows", (0, 4), ((2, 2, 2),)),
)
"""Names, shapes, and for each of the last axes the numbers of a `Sliding`."""


def _windows_of(x: Node, numbers: Sequence[tuple[int, ...]]) -> Node:
    return windows(x, [Sliding(*each) for each in numbers])


def _added_to(x: Node, y: Node, numbers: Sequence[tuple[int, ...]]) -> Node:
    return inc_windows(x, y, [Sliding(*each) for each in numbers])


WINDOWS = define_op(
    "windows",
    infer=_windows_infer,
    eval=lambda node, x, *rest: np.asarray(x[_positions(_columns(rest, node.attrs["axes"]))]),
    lower=lambda node: View(lambda node, index, element: (0, _source(_slidings(node), index, element))),
    vjp=_windows_vjp,
    guards=lambda node: _guards_of(shapes.label_op(node), node.args[0], _slidings(node)),
    cost=0.0,
    samples=samples(*((name, partial(_windows_of, numbers=own), shape) for name, shape, own in _CASES)),
    doc="Windows that slide over the last axes, with strides and steps: places first, then what is within.",
    batch=lambda node, args, batched, size: None if any(batched[1:]) else make(node.op, args, node.attrs),
)
JOIN_WINDOWS = define_op(
    "join_windows",
    infer=_join_infer,
    eval=_join_eval,
    lower=lambda node: View(_join_index),
    vjp=_join_vjp,
    cost=0.0,
    samples=samples(
        ("a vector", lambda y: join_windows(y, 1), (3, 2)),
        ("rows", lambda y: join_windows(y, 1), (2, 2, 3)),
        ("two axes", lambda y: join_windows(y, 2), (2, 2, 3, 3, 2)),
        ("no windows", lambda y: join_windows(y, 1), (2, 0, 3)),
        ("windows of nothing", lambda y: join_windows(y, 1), (2, 3, 0)),
    ),
    doc="Windows that follow one another, as the array that they were of.",
    batch=lambda node, args, batched, size: make(node.op, args, node.attrs),
)
INC_WINDOWS = define_op(
    "inc_windows",
    infer=_inc_infer,
    eval=_inc_eval,
    lower=lambda node: Writes(_inc_writes),
    vjp=lambda node, cotangent: (cotangent, windows(cotangent, _slidings(node)), *(None for _ in node.args[2:])),
    guards=_inc_guards,
    samples=samples(
        *(
            (name, partial(_added_to, numbers=own), shape, (*shape[: -len(own)], *(n[k] for k in (0, 1) for n in own)))
            for name, shape, own in _CASES
        )
    ),
    doc="The first argument with the second added to the windows of its last axes; where they overlap, all are added.",
    batch=_inc_batch,
)


# --- segments ---------------------------------------------------------------------------------------------------------
# In: an array and a vector of integers, one longer than the result. Out: two op records and functions that make their
# nodes. Element i of `segment_sum` is the sum of the rows starts[i] to starts[i + 1]; `segment_of` gives the number of
# the segment that each row lies in. A product with a sparse matrix in rows is such a sum of what its entries give; one
# in columns adds to places what its entries give, each times the element of a vector at the number of its segment.
# Starts ascend from 0 to the size of the axis, which is checked: each row lies in one segment. Terms of a vector are
# added in the accumulator's dtype (`dtypes.accumulated_in`), rows of more axes in their own, as in a matrix product.


def segment_sum(x: Node, starts: Node) -> Node:
    """result[i] = sum of x[starts[i] : starts[i + 1]] along the first axis; `x` has its accumulator's dtype."""
    return checked_sum(x, ascending(starts, x.type.shape[0], f"starts {shapes.label(starts)}"))


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
        described = f"{describe(x)} of type {x.type} at {describe(starts)} of type {starts.type}"
        raise GraphTypeError(f"segment_sum takes an array and a vector of integers, not {described}")
    if accumulator(x.type.dtype) != x.type.dtype:
        raise GraphTypeError(
            f"segment_sum of {describe(x)}: {x.type.dtype} is to be cast to {accumulator(x.type.dtype)} first"
        )
    return Type(x.type.dtype, (sizes.subtract(starts.type.shape[0], 1), *x.type.shape[1:]))


def _guards(node: Node) -> Sequence[Guard]:
    size = node.args[1].type.shape[0]
    segments = f"{shapes.label_op(node)}: {shapes.label(node.args[1])}"
    what = f"{segments} has {{right}} elements, where a segment has a start and an end"
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
    last = checked_sum(shapes.dimshuffle(x, (1, *range(2, x.ndim), 0)), args[1])
    return shapes.dimshuffle(last, (last.ndim - 1, *range(last.ndim - 1)))


def _sample(name: str, starts: Sequence[int], *columns: int, of: bool = False) -> Row:
    """A sum of segments, or the numbers of segments. The last of the starts is whatever size there is, for others that
    are beyond it too."""

    def build(x: Node) -> Node:
        count = x.type.shape[0]
        inside = elementwise("minimum", literal(np.array([*starts[:-1], 2**30]), "int64"), as_size_node(count))
        return segment_of(ascending(inside, count, "starts"), count) if of else segment_sum(x, inside)

    return name, build, (starts[-1], *columns)


define_op(
    "segment_sum",
    infer=_infer,
    eval=_eval,
    lower=lambda node: Segments(accumulated_in(node.type.dtype) if node.ndim == 1 else node.type.dtype),
    vjp=_vjp,
    guards=_guards,
    samples=samples(
        _sample("a vector", (0, 2, 2, 5)),
        _sample("one row", (0, 9)),
        _sample("rows", (0, 5, 5, 6, 15), 3),
        _sample("planes", (0, 1, 5), 2, 3),
        _sample("no columns", (0, 1, 5), 0),
        _sample("nothing", (0, 0, 0), 2),
    ),
    batch=_batch,
    doc="The sum of each segment of the first axis, which begin at the second argument's elements and end at the next.",
)


def _of_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    starts, count = args
    if starts.ndim != 1 or starts.type.dtype not in INTEGERS:
        described = f"{describe(starts)} of type {starts.type}"
        raise GraphTypeError(f"segment_of takes a vector of integers and a size, not {described}")
    return Type("int64", shapes.as_sizes((count,), "segment_of"))


define_op(
    "segment_of",
    infer=_of_infer,
    eval=lambda node, starts, count: np.repeat(np.arange(len(starts) - 1, dtype="int64"), np.diff(starts)),
    lower=lambda node: SegmentNumber(),
    vjp=lambda node, cotangent: (None, None),
    samples=samples(
        others=[
            _sample("some empty", (0, 0, 2, 2, 5), of=True),
            _sample("one", (0, 3), of=True),
            _sample("nothing", (0, 0), of=True),
        ]
    ),
    doc="For each position the number of the segment that it lies in: they begin at the first argument's elements.",
)
