"""Parts of arrays, read and written: subtensor, gather, and their set_ and inc_ counterparts.

In: nodes; for the subtensor family int64 scalar starts and sizes with constant steps, already normalised; for the
gather family integer arrays of one shape. Out: op records, and functions that make their nodes. Reading a part and
adding to it are each other's derivatives.

    x[2:5]                   subtensor(x, 2, 3; steps=(1,))          start, size, step, for x of float64[9]
    x.at[2:5].add(y)         inc_subtensor(x, y, 2; steps=(1,))      the size is that of y
    x[i]                     gather(x, i; axis=0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc import loopir
from graphc.arrays.dtypes import INTEGERS
from graphc.errors import GraphTypeError, GraphValueError, IndexOutOfBounds, RankError
from graphc.ir import sizes
from graphc.ir.lowering import Element, View, Write, Writes
from graphc.ir.node import (
    OPS,
    Array,
    Attributes,
    Guard,
    Index,
    Infer,
    Node,
    Size,
    Type,
    constant_value,
    define_op,
    describe,
    lazy_format,
    lazy_text,
    literal,
    make,
)
from graphc.ir.types import Argument, samples
from graphc.ir.walk import as_size_node
from graphc.ops import shape as shapes
from graphc.ops.elementwise import elementwise, repeated

if TYPE_CHECKING:
    from graphc.loopir.ir import Expr

# --- regions of the subtensor family --------------------------------------------------------------------------------


def _check_region(name: str, x: Node, starts: Sequence[Size], shape: Sequence[Size], steps: Sequence[int]) -> None:
    what = lazy_text(lambda: f"{name} of {describe(x)} of type {x.type}")
    if not len(starts) == len(shape) == len(steps) == x.ndim:
        raise GraphTypeError(f"{what}: {len(starts)} starts, {len(shape)} sizes, {len(steps)} steps for {x.ndim} axes")
    if 0 in steps:
        raise GraphValueError(f"{what}: a step is 0")
    shapes.check_naturals(shape, what)
    for axis, (start, size, step) in enumerate(zip(starts, shape, steps, strict=True)):
        length = x.type.shape[axis]
        if isinstance(start, int) and isinstance(size, int) and isinstance(length, int) and size:
            for position in (start, start + step * (size - 1)):
                if not 0 <= position < length:
                    message = f"{what}: index {position} is out of bounds for axis {axis} with size {length}"
                    raise IndexOutOfBounds(message)


def _region_guards(
    name: str, x: Node, starts: Sequence[Size], shape: Sequence[Size], steps: Sequence[int]
) -> list[Guard]:
    """Bounds of integer indices and of other regions of fixed size; slices are cut to the axis when they are made."""
    what = lazy_format("{} of {}", name, shapes.label(x))
    guards: list[Guard] = shapes.naturals_guard(shape, what)
    for axis, (start, size, step) in enumerate(zip(starts, shape, steps, strict=True)):
        length = x.type.shape[axis]
        if not isinstance(size, int) or not size or (isinstance(start, int) and isinstance(length, int)):
            continue
        if size == 1:
            guards += _position_guards(what, axis, start, length)
            continue
        last = sizes.add(start, step * (size - 1))
        low, high = (start, last) if step > 0 else (last, start)
        if not (isinstance(low, int) and low >= 0):
            before = lazy_format("{}: {{right}} is before the start of axis {}", what, axis)
            guards.append(Guard(0, "<=", low, before, "index"))
        message = lazy_format("{}: index {{left}} is out of bounds for axis {}, whose size is {{right}}", what, axis)
        guards.append(Guard(high, "<", length, message, "index"))
    return guards


def _position_guards(what: str, axis: int, start: Size, length: Size) -> list[Guard]:
    """Bounds of an integer index, told as the user wrote it: before it was counted from the start of the axis."""
    text = lazy_format("{}: index {{right}} is before the start of axis {}", what, axis)
    below = Guard(0, "<=", start, text, "index")
    outside = "{}: index {{left}}{} is out of bounds for axis {}, whose size is {{right}}"
    if isinstance(start, int):
        above = Guard(start, "<", length, lazy_format(outside, what, "", axis), "index")
        return [above] if start >= 0 else [below, above]
    if start.op is OPS["add"] and start.args[0] is length and (number := constant_value(start.args[1])) is not None:
        wanted = int(number)
        text = lazy_format("{}: index {} is out of bounds for axis {}, whose size is {{right}}", what, wanted, axis)
        return [Guard(-wanted, "<=", length, text, "index"), Guard(start, "<", length, text, "index")]
    is_counted = start.op is OPS["where"] and start.args[0].op is OPS["less"] and start.args[0].args[0] is start.args[2]
    named = start.args[2] if is_counted else start  # a start that counts negative indices from the end
    source = lazy_format(", {},", shapes.label_origin(named))
    above = Guard(start, "<", length, lazy_format(outside, what, source, axis), "index")
    if named is start:
        return [below, above]
    outside = "{}: index {{right}}{} is out of bounds for axis {}, which begins at {{left}}"
    return [Guard(sizes.subtract(0, length), "<=", named, lazy_format(outside, what, source, axis), "index"), above]


def _slices(starts: Sequence[Any], shape: Sequence[Any], steps: Sequence[int]) -> tuple[slice, ...]:
    """NumPy's slices for a region."""
    key: list[slice] = []
    for start, size, step in zip(map(int, starts), map(int, shape), steps, strict=True):
        stop = start + step * size
        key.append(slice(start, None if stop < 0 else stop, step) if size else slice(0, 0, step))
    return tuple(key)


def _region_index(starts: Sequence[Size], steps: Sequence[int], index: Index, element: Element) -> Index:
    """The place of element `index` of a region in the whole."""
    return tuple(
        loopir.add(shapes.size_expr(start, element), loopir.multiply(loopir.integer(step), position))
        for start, step, position in zip(starts, steps, index, strict=True)
    )


def _axes_first(x: Node, axes: Sequence[int], lead: int = 1) -> Node:
    """`x` with some of its axes moved to its front, after `lead` axes of a batch."""
    return shapes.dimshuffle(x, (*range(lead), *axes, *(axis for axis in range(lead, x.ndim) if axis not in axes)))


def _axes_back(x: Node, axes: Sequence[int]) -> Node:
    """`x` with its first axes, after that of a batch, moved to where `_axes_first` took them from."""
    order = (0, *axes, *(axis for axis in range(1, x.ndim) if axis not in axes))
    return shapes.dimshuffle(x, [order.index(axis) for axis in range(x.ndim)])


def _points(
    axes: Sequence[int],
    starts: Sequence[Node],
    batched: Sequence[bool],
    shape: Sequence[Size],
    lengths: Sequence[Size],
    steps: Sequence[int],
    size: Size,
) -> list[Node]:
    """Integer arrays for element start + step*i of each of `axes`, those of a batch first, for starts of which those
    that `batched` marks are one for each element of the batch."""
    wide = (size, *(shape[axis] for axis in axes))
    indices = [shapes.broadcast_to(shapes.expand(shapes.iota(size), range(1, len(wide))), wide)]
    for place, axis in enumerate(axes, 1):
        start = shapes.expand(starts[axis], range(1, len(wide)) if batched[axis] else range(len(wide)))
        counted = elementwise("mul", shapes.iota(shape[axis]), literal(steps[axis], "int64"))
        counted = shapes.expand(counted, [k for k in range(len(wide)) if k != place])
        position = elementwise("add", shapes.broadcast_to(start, wide), shapes.broadcast_to(counted, wide))
        # A start before the first element is an error here, and no count from the end.
        outside = elementwise("sub", position, as_size_node(lengths[axis]))
        indices.append(elementwise("where", elementwise("less", position, 0), outside, position))
    return indices


# --- subtensor ------------------------------------------------------------------------------------------------------


def _subtensor_parts(args: Sequence[Node]) -> tuple[Node, tuple[Size, ...], tuple[Size, ...]]:
    x, *rest = args
    numbers = shapes.as_sizes(rest, lazy_text(lambda: f"subtensor of {describe(x)}"))
    return x, numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]


def _subtensor_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    x, starts, shape = _subtensor_parts(args)
    _check_region("subtensor", x, starts, shape, attrs["steps"])
    return Type(x.type.dtype, shape)


def _subtensor_eval(node: Node, x: Array, *rest: Array) -> Array:
    half = len(rest) // 2
    return x[_slices(rest[:half], rest[half:], node.attrs["steps"])]


def _subtensor_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    x, starts, _ = _subtensor_parts(node.args)
    whole = inc_subtensor(shapes.zeros(cotangent.type.dtype, x.type.shape), cotangent, starts, node.attrs["steps"])
    return (whole, *(None for _ in node.args[1:]))


def _subtensor_index(node: Node, index: Index, element: Element) -> tuple[int, Index]:
    _, starts, _ = _subtensor_parts(node.args)
    return 0, _region_index(starts, node.attrs["steps"], index, element)


def _subtensor_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    x, *rest = args
    half, steps = len(rest) // 2, node.attrs["steps"]
    starts, shape, varying = rest[:half], shapes.as_sizes(rest[half:], "subtensor"), batched[1 : 1 + half]
    if not any(varying):
        return subtensor(x, (0, *shapes.as_sizes(starts, "subtensor")), (size, *shape), (1, *steps))
    axes, lead = [axis for axis in range(half) if varying[axis]], int(batched[0])
    lengths = x.type.shape[lead:]
    fixed = [(0, lengths[k], 1) if varying[k] else (sizes.as_size(starts[k]), shape[k], steps[k]) for k in range(half)]
    parts = zip(*[(0, size, 1)] * lead, *fixed, strict=True) if lead else zip(*fixed, strict=True)
    part = subtensor(x, *map(tuple, parts))
    indices = _points(axes, starts, varying, shape, lengths, steps, size)
    rows = _axes_first(part, [axis + lead for axis in axes], lead)
    return _axes_back(gather(rows, indices[1 - lead :], 0), [axis + 1 for axis in axes])


def subtensor(x: Node, starts: Sequence[Size], shape: Sequence[Size], steps: Sequence[int]) -> Node:
    """Element start + step*i of each axis for i below its size."""
    whole = all(step == 1 for step in steps) and all(sizes.equal(start, 0) for start in starts)
    if whole and all(map(sizes.equal, shape, x.type.shape)):
        return x
    return make(OPS["subtensor"], (x, *map(as_size_node, (*starts, *shape))), {"steps": tuple(steps)})


define_op(
    "subtensor",
    infer=_subtensor_infer,
    eval=_subtensor_eval,
    lower=lambda node: View(_subtensor_index),
    vjp=_subtensor_vjp,
    guards=lambda node: _region_guards(shapes.label_op(node), *_subtensor_parts(node.args), node.attrs["steps"]),
    cost=0.0,
    samples=samples(
        ("front", lambda x: subtensor(x, (0,), (3,), (1,)), (5,)),
        ("every other", lambda x: subtensor(x, (1, 0), (2, 3), (2, 1)), (4, 3)),
        ("reversed", lambda x: subtensor(x, (4,), (5,), (-1,)), (5,)),
        ("backwards", lambda x: subtensor(x, (3, 2), (2, 2), (-2, -1)), (4, 3)),
        ("one row", lambda x: subtensor(x, (2, 0), (1, 3), (1, 1)), (4, 3)),
        ("nothing", lambda x: subtensor(x, (0,), (0,), (1,)), (5,)),
    ),
    doc="A region with constant steps: element start + step*i of each axis.",
    batch=_subtensor_batch,
)


# --- set_subtensor and inc_subtensor --------------------------------------------------------------------------------


def _update_infer(name: str) -> Infer:
    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        x, y, *rest = args
        if x.type.dtype != y.type.dtype or x.ndim != y.ndim:
            described = f"{describe(y)} of type {y.type}"
            raise GraphTypeError(f"{name}: a region of {describe(x)} of type {x.type} cannot hold {described}")
        _check_region(name, x, shapes.as_sizes(rest, name), y.type.shape, attrs["steps"])
        return x.type

    return infer


def _update_eval(node: Node, x: Array, y: Array, *places: Array) -> Array:
    result, axis = x.copy(order="C"), node.attrs.get("axis")
    key: Any = _slices(places, y.shape, node.attrs["steps"]) if axis is None else _numpy_key(places, axis)
    with np.errstate(all="ignore"):
        if node.op.name == "inc_gather":
            np.add.at(result, key, y)
        elif node.op.name == "inc_subtensor":
            result[key] += y
        else:
            result[key] = y
    return result


def _update_writes(node: Node) -> Sequence[Write]:
    x, y, *rest = node.args
    axis = node.attrs.get("axis")

    def target(index: Index, element: Element) -> Index:
        if axis is None:
            return _region_index(shapes.as_sizes(rest, node.op.name), node.attrs["steps"], index, element)
        return _source_index(x, rest, axis, index, element)

    return [
        Write(x.type.shape, lambda index, element: index, lambda index: (0, index), is_copy=True),
        Write(y.type.shape, target, lambda index: (1, index), accumulate=node.op.name.startswith("inc")),
    ]


def _update_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    _, y, *rest = node.args
    starts, steps = shapes.as_sizes(rest, node.op.name), node.attrs["steps"]
    before = cotangent
    if node.op.name == "set_subtensor":
        before = set_subtensor(cotangent, shapes.zeros(cotangent.type.dtype, y.type.shape), starts, steps)
    return (before, subtensor(cotangent, starts, y.type.shape, steps), *(None for _ in rest))


def _update_guards(node: Node) -> Sequence[Guard]:
    x, y, *rest = node.args
    return _region_guards(
        shapes.label_op(node), x, shapes.as_sizes(rest, node.op.name), y.type.shape, node.attrs["steps"]
    )


def _update_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    (x, y), starts, varying, steps = repeated(args[:2], batched[:2], size), args[2:], batched[2:], node.attrs["steps"]
    if not any(varying):
        return make(node.op, (x, y, as_size_node(0), *starts), {"steps": (1, *steps)})
    whole, part = x.type.shape[1:], y.type.shape[1:]
    axes = [
        axis
        for axis, (start, has) in enumerate(zip(starts, varying, strict=True))
        if has
        or steps[axis] != 1
        or not sizes.equal(sizes.as_size(start), 0)
        or not sizes.equal(whole[axis], part[axis])
    ]
    indices, moved = _points(axes, starts, varying, part, whole, steps, size), [axis + 1 for axis in axes]
    scatter = set_gather if node.op.name == "set_subtensor" else inc_gather
    return _axes_back(scatter(_axes_first(x, moved), _axes_first(y, moved), indices, 0), moved)


def set_subtensor(x: Node, y: Node, starts: Sequence[Size], steps: Sequence[int]) -> Node:
    """`x` with the region at `starts`, of the sizes of `y`, replaced by `y`."""
    return make(OPS["set_subtensor"], (x, y, *map(as_size_node, starts)), {"steps": tuple(steps)})


def inc_subtensor(x: Node, y: Node, starts: Sequence[Size], steps: Sequence[int]) -> Node:
    """`x` with `y` added to the region at `starts`, of the sizes of `y`."""
    return make(OPS["inc_subtensor"], (x, y, *map(as_size_node, starts)), {"steps": tuple(steps)})


for _name, _update, _doc in (
    ("set_subtensor", set_subtensor, "The first argument with a region replaced by the second."),
    ("inc_subtensor", inc_subtensor, "The first argument with the second added to a region."),
):
    define_op(
        _name,
        infer=_update_infer(_name),
        eval=_update_eval,
        lower=lambda node: Writes(_update_writes),
        vjp=_update_vjp,
        guards=_update_guards,
        samples=samples(
            ("front", lambda x, y, f=_update: f(x, y, (0,), (1,)), (5,), (3,)),
            ("every other", lambda x, y, f=_update: f(x, y, (1, 0), (2, 1)), (4, 3), (2, 3)),
            ("backwards", lambda x, y, f=_update: f(x, y, (3, 2), (-2, -1)), (4, 3), (2, 2)),
            ("one row", lambda x, y, f=_update: f(x, y, (2, 0), (1, 1)), (4, 3), (1, 3)),
            ("nothing", lambda x, y, f=_update: f(x, y, (0,), (1,)), (5,), (0,)),
            ("by itself", lambda x, f=_update: f(x, x, (1,), (-1,)), (2,)),
        ),
        doc=_doc,
        batch=_update_batch,
    )


# --- regions of the gather family -----------------------------------------------------------------------------------


def _check_indices(name: str, x: Node, indices: Sequence[Node], axis: int) -> tuple[Size, ...]:
    """The indices' common sizes."""
    what = lazy_text(lambda: f"{name} of {describe(x)} of type {x.type}")
    if not indices or not 0 <= axis <= x.ndim - len(indices):
        raise GraphTypeError(f"{what}: {len(indices)} indices for the axes from {axis} on")
    shape = list(indices[0].type.shape)
    for index in indices:
        if index.type.dtype not in INTEGERS:
            raise GraphTypeError(f"{what}: the index {describe(index)} is of dtype {index.type.dtype}, not an integer")
        if index.ndim != len(shape):
            raise RankError(f"{what}: indices of {len(shape)} and {index.ndim} axes")
        shape = [sizes.common(a, b, what, ": indices") for a, b in zip(shape, index.type.shape, strict=True)]
    return tuple(shape)


def _gathered_shape(x: Node, shape: Sequence[Size], axis: int, count: int) -> tuple[Size, ...]:
    return (*x.type.shape[:axis], *shape, *x.type.shape[axis + count :])


def _index_guards(node: Node, indices: Sequence[Node]) -> list[Guard]:
    message = lazy_format(
        "{} of {}: indices of sizes {{left}} and {{right}}", shapes.label_op(node), shapes.label(node.args[0])
    )
    first, *rest = (index.type.shape for index in indices)
    return [
        g for shape in rest for a, b in zip(first, shape, strict=True) for g in shapes.equality_guard(a, b, message)
    ]


def _numpy_key(indices: Sequence[Array], axis: int) -> tuple[Any, ...]:
    return (*(slice(None) for _ in range(axis)), *(index.astype(np.int64) for index in indices))


def _wrapped(index: Node, position: Index, size: Size, element: Element) -> Expr:
    """An element of an index array, counted from the end where it is negative."""
    value = element(index, position)
    if index.type.dtype != loopir.INDEX:
        value = loopir.apply(loopir.operators.CASTS[loopir.INDEX], value)
    if index.type.dtype in ("uint8", "uint16", "uint32") or never_negative(index):
        return value
    from_end = loopir.apply(loopir.operators.ADD, value, shapes.size_expr(size, element))
    return loopir.apply(loopir.operators.SELECT, loopir.apply(loopir.operators.LT, value, loopir.ZERO), from_end, value)


def never_negative(index: Node) -> bool:
    """Tell whether an index array is known to count from the front: positions, counts, remainders, or constants, chosen
    and placed."""
    pending, seen = [index], set[Node]()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        deciding = _deciding(node)
        if deciding is None:
            return False
        pending += deciding
    return True


DECIDING = {
    **dict.fromkeys(("dimshuffle", "broadcast_to", "reshape", "stop_gradient", "subtensor"), slice(1)),
    "where": slice(1, None), "clip": slice(1, None), "set_gather": slice(2),
    **dict.fromkeys(
        "iota segment_of argmax argmin argsort argtop lexorder lu searchsorted_left searchsorted_right".split(),
        slice(0),
    ),
}  # fmt: skip
"""The operands of ops whose results are not negative if none of these is."""


def _deciding(node: Node) -> Sequence[Node] | None:
    """The operands by which an integer is not negative if none of them is; None if it may be."""
    value = constant_value(node)
    if value is not None:
        return None if (value < 0).any() else ()
    name = node.args[0].op.name if node.op.name == "item" else node.op.name
    if name in DECIDING:
        return node.args[DECIDING[name]]
    if name in ("add", "minimum", "floor_div") and node.type.dtype == "int64":
        return node.args
    if name == "maximum":
        constants = [value for arg in node.args if (value := constant_value(arg)) is not None]
        return () if any((value >= 0).all() for value in constants) else node.args
    if name == "mod":
        return node.args[1:]  # by whose sign that of the remainder goes
    if name == "running_sum":
        (counted,) = node.args[:1]
        return () if counted.op.name == "cast" and counted.args[0].type.dtype == "bool" else None
    return () if node.ndim == 0 and node.type.dtype == "int64" and sizes.known_nonnegative(node) else None


def _source_index(x: Node, indices: Sequence[Node], axis: int, index: Index, element: Element) -> Index:
    """The place of element `index` of a gather in the whole."""
    rank = indices[0].ndim
    position = index[axis : axis + rank]
    inner = (_wrapped(node, position, x.type.shape[axis + k], element) for k, node in enumerate(indices))
    return (*index[:axis], *inner, *index[axis + rank :])


def _repeated_indices(indices: Sequence[Node], batched: Sequence[bool], size: Size) -> list[Node]:
    """Indices for all elements of a batch, before them those of the elements themselves."""
    wide = repeated(indices, batched, size)
    rows = shapes.broadcast_to(
        shapes.expand(shapes.iota(size), range(1, wide[0].ndim)), (size, *wide[0].type.shape[1:])
    )
    return [rows, *wide]


# --- gather ---------------------------------------------------------------------------------------------------------


def _gather_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    x, *indices = args
    shape = _check_indices("gather", x, indices, attrs["axis"])
    return Type(x.type.dtype, _gathered_shape(x, shape, attrs["axis"], len(indices)))


def _gather_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    x, *indices = node.args
    whole = inc_gather(shapes.zeros(cotangent.type.dtype, x.type.shape), cotangent, indices, node.attrs["axis"])
    return (whole, *(None for _ in indices))


def _gather_index(node: Node, index: Index, element: Element) -> tuple[int, Index]:
    x, *indices = node.args
    return 0, _source_index(x, indices, node.attrs["axis"], index, element)


def _gather_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    (x, *indices), axis, rank = args, node.attrs["axis"], node.args[1].ndim
    if not any(batched[1:]):
        return gather(x, indices, axis + 1)
    wide, first = _repeated_indices(indices, batched[1:], size), axis + 1
    if not batched[0]:
        return _axes_first(gather(x, wide[1:], axis), [axis], 0)
    rows = _axes_first(x, range(first, first + len(indices)))
    return _axes_back(gather(rows, wide, 0), range(first, first + rank))


def gather(x: Node, indices: Sequence[Node], axis: int) -> Node:
    """The elements of `x` at integer arrays of one shape, which index the axes from `axis` on."""
    return make(OPS["gather"], (x, *indices), {"axis": axis})


def _fixed(*values: Any) -> tuple[Node, ...]:
    return tuple(literal(value, "int64") for value in values)


define_op(
    "gather",
    infer=_gather_infer,
    eval=lambda node, x, *indices: np.asarray(x[_numpy_key(indices, node.attrs["axis"])]),
    lower=lambda node: View(_gather_index),
    vjp=_gather_vjp,
    guards=lambda node: _index_guards(node, node.args[1:]),
    samples=samples(
        ("rows", lambda x: gather(x, _fixed([2, 0, 2]), 0), (3, 4)),
        ("columns", lambda x: gather(x, _fixed([[1, -1], [0, 1]]), 1), (3, 4)),
        ("points", lambda x: gather(x, _fixed([0, 1, 2], [3, -4, 3]), 0), (3, 4)),
        ("inner axes", lambda x: gather(x, _fixed([1, 0], [0, 0]), 1), (2, 3, 4)),
        ("one", lambda x: gather(x, _fixed(1), 0), (3, 4)),
        ("given", lambda x, i: gather(x, (i,), 0), (3, 4), Argument((5,), "index", 0, 2)),
        ("nothing", lambda x: gather(x, _fixed(np.zeros((0, 2))), 0), (3, 4)),
    ),
    doc="Elements at integer arrays; negative indices count from the end; bounds are checked.",
    batch=_gather_batch,
)


# --- set_gather and inc_gather --------------------------------------------------------------------------------------


def _scatter_infer(name: str) -> Infer:
    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        x, y, *indices = args
        shape = _gathered_shape(x, _check_indices(name, x, indices, attrs["axis"]), attrs["axis"], len(indices))
        if x.type.dtype != y.type.dtype or y.ndim != len(shape):
            described = f"{describe(y)} of type {y.type}"
            raise GraphTypeError(f"{name}: elements of {describe(x)} of type {x.type} cannot hold {described}")
        for axis, (have, want) in enumerate(zip(y.type.shape, shape, strict=True)):
            sizes.common(have, want, f"{name}: axis {axis} of {describe(y)} and of the elements of {describe(x)}")
        return x.type

    return infer


def _last_writers(x: Node, y: Node, indices: Sequence[Node], axis: int) -> Node:
    """For each element of `y`, whether no later one is written to the same place."""
    shape, count = indices[0].type.shape, len(indices)
    serial = shapes.reshape(shapes.iota(sizes.product(shape)), shape)
    written = set_gather(shapes.zeros("int64", x.type.shape[axis : axis + count]), serial, indices, 0)
    last = elementwise("equal", gather(written, indices, 0), serial)
    outer = [*range(axis), *range(axis + len(shape), y.ndim)]
    return shapes.broadcast_to(shapes.expand(last, outer), y.type.shape)


def _scatter_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    x, y, *indices = node.args
    axis: int = node.attrs["axis"]
    read = gather(cotangent, indices, axis)
    if node.op.name == "inc_gather":
        return (cotangent, read, *(None for _ in indices))
    nothing = shapes.zeros(cotangent.type.dtype, y.type.shape)
    kept = elementwise("where", _last_writers(x, y, indices, axis), read, nothing)
    return (set_gather(cotangent, nothing, indices, axis), kept, *(None for _ in indices))


def _scatter_guards(node: Node) -> Sequence[Guard]:
    x, y, *indices = node.args
    wanted = _gathered_shape(x, indices[0].type.shape, node.attrs["axis"], len(indices))
    text = "{}: axis {axis} of {} has size {{left}}, not {{right}} as in {}"
    guards = shapes.shape_guards(y.type.shape, wanted, text, shapes.label_op(node), shapes.label(y), shapes.label(x))
    return [*_index_guards(node, indices), *guards]


def _scatter_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    (x, y), indices, axis = repeated(args[:2], batched[:2], size), args[2:], node.attrs["axis"]
    if not any(batched[2:]):
        return make(node.op, (x, y, *indices), {"axis": axis + 1})
    indexed, read = (range(axis + 1, axis + 1 + count) for count in (len(indices), indices[0].ndim - batched[2]))
    wide = _repeated_indices(indices, batched[2:], size)
    scattered = make(node.op, (_axes_first(x, indexed), _axes_first(y, read), *wide), {"axis": 0})
    return _axes_back(scattered, indexed)


def set_gather(x: Node, y: Node, indices: Sequence[Node], axis: int) -> Node:
    """`x` with the elements that `gather` would read replaced by `y`; where indices repeat, the last one wins."""
    return make(OPS["set_gather"], (x, y, *indices), {"axis": axis})


def inc_gather(x: Node, y: Node, indices: Sequence[Node], axis: int) -> Node:
    """`x` with `y` added to the elements that `gather` would read; where indices repeat, all are added."""
    return make(OPS["inc_gather"], (x, y, *indices), {"axis": axis})


for _name, _scatter, _doc in (
    ("set_gather", set_gather, "The first argument with elements at integer arrays replaced; the last write wins."),
    (
        "inc_gather",
        inc_gather,
        "The first argument with the second added at integer arrays; where indices repeat, all are added.",
    ),
):
    define_op(
        _name,
        infer=_scatter_infer(_name),
        eval=_update_eval,
        lower=lambda node: Writes(_update_writes),
        vjp=_scatter_vjp,
        guards=_scatter_guards,
        samples=samples(
            ("rows, repeated", lambda x, y, f=_scatter: f(x, y, _fixed([2, 0, 2]), 0), (3, 4), (3, 4)),
            ("columns", lambda x, y, f=_scatter: f(x, y, _fixed([[1, -1], [0, 1]]), 1), (3, 4), (3, 2, 2)),
            ("points, repeated", lambda x, y, f=_scatter: f(x, y, _fixed([0, 1, 0], [3, -4, -1]), 0), (3, 4), (3,)),
            ("inner axes", lambda x, y, f=_scatter: f(x, y, _fixed([1, 0], [0, 0]), 1), (2, 3, 4), (2, 2)),
            ("given", lambda x, y, i, f=_scatter: f(x, y, (i,), 0), (3, 4), (5, 4), Argument((5,), "index", 0, 2)),
            ("nothing", lambda x, y, f=_scatter: f(x, y, _fixed(np.zeros((0,))), 0), (3, 4), (0, 4)),
        ),
        doc=_doc,
        batch=_scatter_batch,
    )
