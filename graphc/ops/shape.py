"""Ops that move elements without looking at them: broadcast_to, dimshuffle, reshape, concatenate, iota,
assemble.

In: nodes, sizes (numbers or int64 scalar nodes). Out: op records, and one function for each that makes its node, or
gives back the argument where there is nothing to do. Lowered, all but concatenate and assemble are maps of indices.

    dimshuffle(x, (1, 0))            float64[x.1, x.0]       element (i, j) is x[j, i]
    broadcast_to(v, (n, v.0))        float64[n, v.0]         element (i, j) is v[0, j], for v of float64[1, v.0]
    reshape(x, (6,))                 float64[6]              element i is x[i // 3, i % 3], for x of float64[2, 3]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc import loopir
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.lowering import Element, Iota, View, Write, Writes
from graphc.ir.node import (
    CONSTANT,
    OPS,
    SIZE,
    Array,
    Attributes,
    Guard,
    Index,
    Node,
    Size,
    Type,
    Words,
    define_op,
    describe,
    lazy_format,
    lazy_text,
    literal,
    make,
    user_line,
)
from graphc.ir.types import Argument, samples
from graphc.ir.walk import as_size_node, node_set
from graphc.ops.elementwise import describe_origin, shifted
from graphc.startup.record import replace

if TYPE_CHECKING:
    from graphc.loopir.ir import Expr


Order = tuple["int | str", ...]
Axes = tuple[tuple[int, "Expr"], ...]
"""Axes with their sizes."""

# --- sizes of arguments ---------------------------------------------------------------------------------------------


def as_sizes(nodes: Sequence[Node], what: str) -> tuple[Size, ...]:
    """Scalar int64 arguments as sizes."""
    for node in nodes:
        if node.ndim or node.type.dtype != "int64":
            raise GraphTypeError(f"{what}: {describe(node)} of type {node.type} should be an int64 scalar")
    return tuple(sizes.as_size(node) for node in nodes)


def size_expr(size: Size, element: Element) -> Expr:
    """A size within an index expression."""
    return loopir.integer(size) if isinstance(size, int) else element(size, ())


def size_exprs(shape: Sequence[Size], element: Element) -> tuple[Expr, ...]:
    return tuple(size_expr(size, element) for size in shape)


def escaped(text: str) -> str:
    """A text as part of the message of a guard, whose braces mean something."""
    return text.replace("{", "{{").replace("}", "}}")


def label(node: Node) -> str:
    """`describe(node)` for the text of a guard."""
    return lazy_text(lambda: escaped(describe(node)))


def label_origin(node: Node) -> str:
    """`label` of what the user wrote, without the casts and new axes that graphc put around it."""
    return lazy_text(lambda: escaped(describe_origin(node)))


def label_op(node: Node) -> str:
    """The label of `node` in messages: the user's name for the result, else the op, with the user's line."""
    name, where = node.name or node.op.name, node.where
    return lazy_text(lambda: escaped(f"{name} ({where})" if where else name))


def label_call(name: str) -> str:
    """A function that the user calls, with the line, for the text of a guard."""
    where = user_line()
    return escaped(f"{name} ({where})" if where else name)


def label_size(size: Size) -> str:
    """The variable or expression that a size comes from, for the text of a guard; nothing for a number."""
    return lazy_format(", {},", label_origin(size)) if isinstance(size, Node) else ""


def equality_guard(left: Size, right: Size, message: str) -> list[Guard]:
    """The guard that two sizes are equal, where that is not known already."""
    return [] if sizes.equal(left, right) else [Guard(left, "==", right, message)]


def shape_guards(
    left: Sequence[Size], right: Sequence[Size], text: str, *words: object, besides: int | None = None
) -> list[Guard]:
    """Guards that sizes are equal along each axis, but for one. text: with `{}` for each of the words, and `{axis}`."""
    guards: list[Guard] = []
    for axis, (one, other) in enumerate(zip(left, right, strict=True)):
        if axis != besides:
            guards += equality_guard(one, other, lazy_text(partial(text.format, *words, axis=axis)))
    return guards


OF_OTHER_SIZES = "{}: axis {axis} has sizes {{left}} and {{right}}"


def naturals_guard(shape: Sequence[Size], what: str) -> list[Guard]:
    """Guards that sizes are not negative, where that is not known already."""
    text = "{}: the size of axis {}{} is {{right}}, which is negative"
    unknown = [(axis, size) for axis, size in enumerate(shape) if not sizes.known_nonnegative(size)]
    negative = [Guard(0, "<=", size, lazy_format(text, what, axis, label_size(size))) for axis, size in unknown]
    return [*products_guard(shape, what), *negative]


LARGEST = 2**63 - 1


def products_guard(shape: Sequence[Size], what: str) -> list[Guard]:
    """Guards that the products in sizes are what 64 bits can hold, where a factor may be any number: int64 wraps, and a
    size of 2**64 would be none. They are exact where one factor is a number, or both are positive."""
    guards: list[Guard] = []
    for axis, size in enumerate(shape):
        message = lazy_format("{}: the size of axis {}{} does not fit 64 bits", what, axis, label_size(size))
        pending = [] if isinstance(size, int) or _is_of_arrays(size) else [size]
        seen: set[Node] = set()
        while pending:
            node = pending.pop()
            if node in seen or node.op.name not in ("mul", "add", "sub", "maximum", "minimum"):
                continue
            seen.add(node)
            pending.extend(node.args)
            if node.op.name == "mul" and not all(map(_is_of_arrays, node.args)):
                left, right = map(sizes.as_size, node.args)
                if isinstance(right, int):
                    most = LARGEST // max(abs(right), 1)
                    guards += [Guard(-most, "<=", left, message), Guard(left, "<=", most, message)]
                else:
                    positive = sizes.maximum(left, 1)
                    whole = sizes.multiply(positive, right)
                    guards.append(Guard(sizes.floor_divide(whole, positive), "==", right, message))
    return guards


def _is_of_arrays(node: Node) -> bool:
    """Tell whether a size is made of sizes of arrays alone, which memory bounds."""
    leaves = (leaf for leaf in node_set([node]) if not leaf.args)
    return all(leaf.op in (SIZE, CONSTANT) or sizes.is_natural(leaf) for leaf in leaves)


MOST_ELEMENTS = 2**58
"""No array has more, whatever the dtype: an int64 holds the number with room for arithmetic."""


def check_naturals(shape: Sequence[Size], what: str) -> None:
    """An error where a size is known to be negative."""
    for axis, size in enumerate(shape):
        if isinstance(size, int) and size < 0:
            raise ShapeError(f"{what}: the size of axis {axis} is {size}, which is negative")
    known = [size for size in shape if isinstance(size, int)]
    if prod(known) > MOST_ELEMENTS and 0 not in known:
        raise ShapeError(f"{what}: an array of sizes {', '.join(map(str, known))} is more than any memory holds")


def factors(shape: Sequence[Size]) -> Counter[Size]:
    """The factors of the element count: size nodes, products taken apart, and one number."""
    counts: Counter[Size] = Counter()
    number = 1
    pending = list(shape)
    while pending:
        size = pending.pop()
        if isinstance(size, Node) and size.op.name == "mul":
            pending.extend(sizes.as_size(arg) for arg in size.args)
        elif isinstance(size, int):
            number *= size
        else:
            counts[size] += 1
    counts[number] += 1
    return counts


# --- broadcast_to ---------------------------------------------------------------------------------------------------


def _broadcast_to_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    x, *rest = args
    what = lazy_text(lambda: f"broadcast_to of {describe(x)}")
    target = as_sizes(rest, what)
    if len(target) != x.ndim:
        raise GraphTypeError(f"{what} of type {x.type}: {len(target)} sizes for {x.ndim} axes")
    check_naturals(target, what)
    shape = (
        new if sizes.equal(old, 1) else sizes.common(old, new, what, f", axis {axis}")
        for axis, (old, new) in enumerate(zip(x.type.shape, target, strict=True))
    )
    return Type(x.type.dtype, tuple(shape))


def _broadcast_to_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    before = node.args[0].type.shape
    axes = tuple(axis for axis, size in enumerate(node.type.shape) if sizes.equal(before[axis], 1) and size != 1)
    summed = expand(make(OPS["sum"], (cotangent,), {"axes": axes}), axes) if axes else cotangent
    return (summed, *(None for _ in node.args[1:]))


def _broadcast_to_index(node: Node, index: Index, element: Element) -> tuple[int, Index]:
    shape = node.args[0].type.shape
    return 0, tuple(loopir.ZERO if sizes.equal(size, 1) else i for size, i in zip(shape, index, strict=True))


def _broadcast_to_guards(node: Node) -> Sequence[Guard]:
    x, *rest = node.args
    what, words = label_op(node), node.where.words if node.where else None
    guards: list[Guard] = []
    for axis, (old, target) in enumerate(zip(x.type.shape, rest, strict=True)):
        new = sizes.as_size(target)
        if sizes.equal(old, 1):  # words that came along with a line, as rules pass them on, ask for nothing
            guards += naturals_guard((*(1,) * axis, new), what)
        elif words is not None:
            guards += equality_guard(*((new, old) if words.turned else (old, new)), words.message)
        else:
            message = lazy_format("{}: axis {} of {} has size {{left}}, not {{right}}", what, axis, label(x))
            guards += equality_guard(old, new, message)
    return guards


def _in_front(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node | None:
    """The `batch` of ops of an array and the sizes of the result."""
    x, *shape = args
    return None if any(batched[1:]) else make(node.op, (x, as_size_node(size), *shape))


def broadcast_to(x: Node, shape: Sequence[Size]) -> Node:
    """`x` with its axes of static size 1 expanded to `shape`; its other axes must have that size already."""
    if len(shape) == x.ndim and all(map(sizes.equal, x.type.shape, shape)):
        return x
    return make(OPS["broadcast_to"], (x, *map(as_size_node, shape)))


def with_static_sizes(variable: Node, value: Node, what: str) -> Node:
    """`value`, checked at each call to have the static sizes of `variable`; `what` it is of that, for messages."""
    pairs = zip(variable.type.shape, value.type.shape, strict=True)
    target = tuple(size if isinstance(size, int) else own for size, own in pairs)
    if target == value.type.shape:
        return value
    checked = broadcast_to(value, target)
    checked.name = checked.name or f"{what} of {variable.name or 'an unnamed variable'}"
    return checked


def guard_axis(x: Node, axis: int, guard: Guard) -> Node:
    """Return `x` with the size of one axis replaced by the other side of a guard. Each call checks the guard, in its
    own words."""
    shape = x.type.shape
    turned = not sizes.equal(shape[axis], guard.left)
    target = (*shape[:axis], guard.left if turned else guard.right, *shape[axis + 1 :])
    if sizes.equal(shape[axis], 1):
        return reshape(x, target)  # a broadcast would expand it
    guarded = broadcast_to(x, target)
    if guarded.where is not None and guarded.where.words is None:
        guarded.where = replace(guarded.where, words=Words(guard.message, turned))
    return guarded


define_op(
    "broadcast_to",
    infer=_broadcast_to_infer,
    eval=lambda node, x, *shape: np.broadcast_to(x, tuple(int(size) for size in shape)),
    lower=lambda node: View(_broadcast_to_index),
    vjp=_broadcast_to_vjp,
    guards=_broadcast_to_guards,
    cost=0.0,
    samples=samples(
        ("rows", lambda x: broadcast_to(x, (3, 4)), (1, 4)),
        ("columns", lambda x: broadcast_to(x, (3, 4)), (3, 1)),
        ("both", lambda x: broadcast_to(x, (3, 4)), (1, 1)),
        ("middle", lambda x: broadcast_to(x, (2, 5, 3)), (2, 1, 3)),
        ("to nothing", lambda x: broadcast_to(x, (0, 4)), (1, 4)),
        others=[("int", lambda x: broadcast_to(x, (2, 3)), Argument((1, 3), "int"))],
    ),
    doc="Axes of static size 1 expanded to the given sizes; the other axes keep theirs.",
    batch=_in_front,
)


# --- dimshuffle -----------------------------------------------------------------------------------------------------


def _dimshuffle_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    (x,) = args
    order: Order = attrs["order"]
    kept = [axis for axis in order if axis != "x"]
    what = lazy_text(lambda: f"dimshuffle of {describe(x)} of type {x.type} to {order}")
    if len(set(kept)) < len(kept):
        raise GraphValueError(f"{what}: an axis is named twice")
    for axis in kept:
        if not isinstance(axis, int) or not 0 <= axis < x.ndim:
            raise GraphValueError(f"{what}: {axis!r} is neither an axis of it nor 'x'")
    for axis, size in enumerate(x.type.shape):
        if axis not in kept and not sizes.equal(size, 1):
            raise GraphValueError(f"{what}: axis {axis} may only be left out if its size is 1 in the type")
    return Type(x.type.dtype, tuple(1 if axis == "x" else x.type.shape[int(axis)] for axis in order))


def _dimshuffle_eval(node: Node, x: Array) -> Array:
    order: Order = node.attrs["order"]
    kept = [int(axis) for axis in order if axis != "x"]
    dropped = [axis for axis in range(x.ndim) if axis not in kept]
    moved = x.transpose(*kept, *dropped)
    moved = moved.reshape(moved.shape[: len(kept)])
    key: tuple[Any, ...] = tuple(None if axis == "x" else slice(None) for axis in order)
    return np.asarray(moved[key])


def _dimshuffle_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    order: Order = node.attrs["order"]
    return (dimshuffle(cotangent, [order.index(k) if k in order else "x" for k in range(node.args[0].ndim)]),)


def _dimshuffle_index(node: Node, index: Index, element: Element) -> tuple[int, Index]:
    order: Order = node.attrs["order"]
    return 0, tuple(index[order.index(k)] if k in order else loopir.ZERO for k in range(node.args[0].ndim))


def _dimshuffle_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    order: Order = node.attrs["order"]
    return dimshuffle(args[0], (0, *("x" if axis == "x" else int(axis) + 1 for axis in order)))


def dimshuffle(x: Node, order: Sequence[int | str]) -> Node:
    """The axes of `x` in `order`; "x" makes a new axis of size 1; axes left out must have static size 1."""
    if tuple(order) == tuple(range(x.ndim)):
        return x
    return make(OPS["dimshuffle"], (x,), {"order": tuple(order)})


def expand(x: Node, axes: Sequence[int]) -> Node:
    """New axes of size 1 at the positions `axes` of the result."""
    old = iter(range(x.ndim))
    return dimshuffle(x, ["x" if axis in axes else next(old) for axis in range(x.ndim + len(axes))])


def drop(x: Node, axes: Sequence[int]) -> Node:
    """`x` without `axes`, whose sizes are statically 1."""
    return dimshuffle(x, [axis for axis in range(x.ndim) if axis not in axes])


def transpose(x: Node) -> Node:
    """The last two axes exchanged."""
    return dimshuffle(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def filled(value: Node, shape: Sequence[Size]) -> Node:
    """An array of `shape` whose elements are the scalar `value`."""
    return broadcast_to(dimshuffle(value, ["x"] * len(shape)), shape)


def zeros(dtype: str, shape: Sequence[Size]) -> Node:
    """An array of zeros."""
    return filled(literal(0, dtype), shape)


define_op(
    "dimshuffle",
    infer=_dimshuffle_infer,
    eval=_dimshuffle_eval,
    lower=lambda node: View(_dimshuffle_index),
    vjp=_dimshuffle_vjp,
    cost=0.0,
    samples=samples(
        ("transpose", lambda x: dimshuffle(x, (1, 0)), (3, 4)),
        ("rotate", lambda x: dimshuffle(x, (2, 0, 1)), (2, 3, 4)),
        ("new axes", lambda x: dimshuffle(x, ("x", 1, "x", 0)), (3, 4)),
        ("drop", lambda x: dimshuffle(broadcast_to(x, (1, 4)), (1,)), (1, 4)),
        ("of a scalar", lambda x: dimshuffle(x, ("x",)), ()),
        ("of nothing", lambda x: dimshuffle(x, (1, 0)), (0, 4)),
    ),
    doc="Axes in another order; 'x' is a new axis of size 1; axes left out have static size 1.",
    batch=_dimshuffle_batch,
)


# --- reshape --------------------------------------------------------------------------------------------------------


def _reshape_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    x, *rest = args
    what = lazy_text(lambda: f"reshape of {describe(x)} of type {x.type}")
    shape = as_sizes(rest, what)
    check_naturals(shape, what)
    before, after = sizes.product(x.type.shape), sizes.product(shape)
    if isinstance(before, int) and isinstance(after, int) and before != after:
        raise ShapeError(f"{what}: {before} elements cannot become {shape}, which has {after}")
    return Type(x.type.dtype, shape)


def _reshape_index(node: Node, index: Index, element: Element) -> tuple[int, Index]:
    """Axes with as many elements before as after are taken by themselves: (2 * h, 2 * w) becomes (h, 2, w, 2) without a
    division."""
    inner: list[Expr] = []
    for old, new in _parts(node.args[0].type.shape, node.type.shape, element):
        flat = loopir.ravel(tuple(index[axis] for axis, _ in new), tuple(size for _, size in new))
        inner += loopir.unravel(flat, tuple(size for _, size in old))
    return 0, tuple(inner)


def _parts(before: Sequence[Size], after: Sequence[Size], element: Element) -> Iterator[tuple[Axes, Axes]]:
    """The least runs of axes of a reshape, before and after, that are known to have as many elements each."""
    old, new = (list(zip(shape, size_exprs(shape, element), strict=True)) for shape in (before, after))
    first = second = 0
    while first < len(old) or second < len(new):
        ends = product(range(first, len(old) + 1), range(second, len(new) + 1))
        for i, j in sorted(ends, key=sum)[1:]:
            if (i, j) == (len(old), len(new)) or _are_as_many(old[first:i], new[second:j]):
                yield (
                    tuple((axis, old[axis][1]) for axis in range(first, i)),
                    tuple((axis, new[axis][1]) for axis in range(second, j)),
                )
                first, second = i, j
                break


def _are_as_many(old: Sequence[tuple[Size, Expr]], new: Sequence[tuple[Size, Expr]]) -> bool:
    """True if two runs of axes have as many elements by their sizes, or are one axis of one size."""
    is_one = len(old) == len(new) == 1 and old[0][1] == new[0][1]
    return is_one or factors([size for size, _ in old]) == factors([size for size, _ in new])


def _reshape_guards(node: Node) -> Sequence[Guard]:
    before, after = node.args[0].type.shape, node.type.shape
    what = lazy_format("{} of {}", label_op(node), label(node.args[0]))
    guards = naturals_guard(after, what)
    if factors(before) != factors(after):
        guards += _count_guards(after, what)
        message = lazy_format("{}: {{left}} elements cannot become {{right}}", what)
        guards += equality_guard(sizes.product(before), sizes.product(after), message)
    return guards


def _count_guards(shape: Sequence[Size], what: str) -> list[Guard]:
    """Guards that the number of elements does not wrap: sizes that are computed may be anything."""
    guards: list[Guard] = []
    count: Size = 1
    for axis, size in enumerate(shape):
        if axis and not (isinstance(count, int) and isinstance(size, int)):
            most = sizes.floor_divide(MOST_ELEMENTS, sizes.maximum(size, 1))
            text = lazy_format("{}: the sizes up to axis {} make more elements than there can be", what, axis)
            guards.append(Guard(count, "<=", most, text))
        count = sizes.multiply(count, size)
    return guards


def reshape(x: Node, shape: Sequence[Size]) -> Node:
    """The elements of `x` in C order as an array of `shape`, which must have as many elements."""
    if len(shape) == x.ndim and all(map(sizes.equal, x.type.shape, shape)):
        return x
    return make(OPS["reshape"], (x, *map(as_size_node, shape)))


define_op(
    "reshape",
    infer=_reshape_infer,
    eval=lambda node, x, *shape: x.reshape(tuple(int(size) for size in shape)),
    lower=lambda node: View(_reshape_index),
    vjp=lambda node, cotangent: (reshape(cotangent, node.args[0].type.shape), *(None for _ in node.args[1:])),
    guards=_reshape_guards,
    cost=0.0,
    samples=samples(
        ("flat", lambda x: reshape(x, (12,)), (3, 4)),
        ("fold", lambda x: reshape(x, (2, 2, 3)), (3, 4)),
        ("two axes in two each", lambda x: reshape(x, (2, 2, 1, 3, 2)), (4, 6)),
        ("three axes", lambda x: reshape(x, (6, 2, 2, 1)), (2, 3, 4)),
        ("of a vector", lambda x: reshape(x, (3, 1, 2)), (6,)),
        ("to a scalar", lambda x: reshape(x, ()), (1, 1)),
        ("of a scalar", lambda x: reshape(x, (1, 1)), ()),
        ("of nothing", lambda x: reshape(x, (4, 0)), (0, 3)),
        ("of a transpose", lambda x: reshape(dimshuffle(x, (1, 0)), (6,)), (2, 3)),
        ("to a known size", lambda x: reshape(x, (x.type.shape[1], x.type.shape[0])), (2, 3)),
    ),
    doc="The elements in C order, as an array of other sizes.",
    batch=_in_front,
)


# --- concatenate ----------------------------------------------------------------------------------------------------


def _concatenate_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    axis: int = attrs["axis"]
    first, *rest = args
    if not 0 <= axis < first.ndim:
        raise RankError(f"concatenate: {describe(first)} of type {first.type} has no axis {axis}")
    shape = list(first.type.shape)
    for arg in rest:
        if arg.ndim != first.ndim or arg.type.dtype != first.type.dtype:
            pair = f"{describe(first)} of type {first.type} and {describe(arg)} of type {arg.type}"
            raise RankError(f"concatenate: {pair} differ in rank or dtype")
        what = f"concatenate of {describe(first)} and {describe(arg)} along axis {axis}"
        for k, size in enumerate(arg.type.shape):
            shape[k] = sizes.add(shape[k], size) if k == axis else sizes.common(shape[k], size, what, f", axis {k}")
    return Type(first.type.dtype, tuple(shape))


def _concatenate_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    axis: int = node.attrs["axis"]
    parts: list[Node | None] = []
    for arg, begin in zip(node.args, _begins(node), strict=True):
        starts: list[Size] = [0] * arg.ndim
        starts[axis] = begin
        shape = (*map(as_size_node, starts), *map(as_size_node, arg.type.shape))
        parts.append(make(OPS["subtensor"], (cotangent, *shape), {"steps": (1,) * arg.ndim}))
    return parts


def _begins(node: Node) -> Sequence[Size]:
    """The place along the axis where each part begins: each is a sum of the one before and a size, so that many parts
    take no sums of many terms."""
    lengths: list[Size] = [arg.type.shape[node.attrs["axis"]] for arg in node.args[:-1]]
    return [*accumulate([0, *lengths], sizes.add)]


def _side_by_side(node: Node, begins: Sequence[Size]) -> list[Write]:
    """Each argument written from where it begins along the axis."""
    axis: int = node.attrs["axis"]

    def write(position: int, begin: Size) -> Write:
        def target(index: Index, element: Element) -> Index:
            return (*index[:axis], loopir.add(size_expr(begin, element), index[axis]), *index[axis + 1 :])

        return Write(node.args[position].type.shape, target, lambda index: (position, index))

    return [write(*each) for each in enumerate(begins)]


def _concatenate_guards(node: Node) -> Sequence[Guard]:
    what, (first, *rest) = label_op(node), node.args
    text, axis = "{} of {} and {}: axis {axis} has sizes {{left}} and {{right}}", node.attrs["axis"]
    guards: list[Guard] = []
    for arg in rest:
        words = what, label_origin(first), label_origin(arg)
        guards += shape_guards(first.type.shape, arg.type.shape, text, *words, besides=axis)
    return guards


def concatenate(parts: Sequence[Node], axis: int) -> Node:
    """Arrays of one dtype and rank, and equal sizes but along `axis`, one after the other."""
    if not parts:
        raise GraphValueError("concatenate: at least one array is needed")
    return parts[0] if len(parts) == 1 else make(OPS["concatenate"], parts, {"axis": axis})


define_op(
    "concatenate",
    infer=_concatenate_infer,
    eval=lambda node, *arrays: np.concatenate(arrays, axis=node.attrs["axis"]),
    lower=lambda node: Writes(lambda node: _side_by_side(node, _begins(node))),
    vjp=_concatenate_vjp,
    guards=_concatenate_guards,
    samples=samples(
        ("vectors", lambda x, y, z: concatenate((x, y, z), 0), (2,), (3,), (1,)),
        ("rows", lambda x, y: concatenate((x, y), 0), (2, 3), (1, 3)),
        ("columns", lambda x, y: concatenate((x, y), 1), (2, 3), (2, 2)),
        ("the same twice", lambda x: concatenate((x, x), 1), (2, 3)),
        ("with nothing", lambda x, y: concatenate((x, y), 0), (0, 3), (2, 3)),
    ),
    doc="Arrays one after the other along an axis.",
    batch=shifted("axis"),
)


# --- iota -----------------------------------------------------------------------------------------------------------


def _iota_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    shape = as_sizes(args, "iota")
    if len(shape) != 1:
        raise GraphTypeError(f"iota: {len(shape)} sizes; it takes one")
    check_naturals(shape, "range")
    return Type("int64", shape)


def _iota_guards(node: Node) -> Sequence[Guard]:
    """A step of 0 is told by the size -1, which ranges and slices of a computed step have then."""
    (size,) = node.type.shape
    what = f"range ({node.where})" if node.where else "range"
    if isinstance(size, Node) and size.op.name == "where" and (last := size.args[2]).op.name == "where":
        return [Guard(0, "<=", size, lazy_format("{}: its step, {}, is 0", what, label(last.args[0].args[0])))]
    return naturals_guard(node.type.shape, what)


def iota(size: Size) -> Node:
    """The int64 vector 0, 1, …, size-1."""
    return make(OPS["iota"], (as_size_node(size),))


define_op(
    "iota",
    infer=_iota_infer,
    eval=lambda node, size: np.arange(int(size), dtype=np.int64),
    lower=lambda node: Iota(),
    vjp=lambda node, cotangent: (None,),
    guards=_iota_guards,
    cost=0.0,
    samples=samples(
        others=[
            ("fixed", lambda: iota(5)),
            ("none", lambda: iota(0)),
            ("as long as", lambda x: iota(x.type.shape[0]), (4,)),
        ]
    ),
    doc="The int64 vector 0, 1, …, size-1.",
)


# --- assemble -------------------------------------------------------------------------------------------------------
# In: parts, all elements of an array between them, where each begins along one axis, and the sizes of the array. Out:
# the array. Unlike `concatenate` it may be told sizes of which only a call shows that they add up; where parts overlap,
# the later one stays.


def assemble(parts: Sequence[Node], starts: Sequence[Size], shape: Sequence[Size], axis: int) -> Node:
    """Arrays as one of this shape, each from its start along an axis on; they must be all of it between them."""
    return make(ASSEMBLE, (*parts, *map(as_size_node, (*starts, *shape))), {"axis": axis})


def parts_of(args: Sequence[Node]) -> tuple[Sequence[Node], tuple[Size, ...], tuple[Size, ...]]:
    """The parts, where they begin, and the shape of the whole."""
    rank = args[0].ndim if args else 0
    count = (len(args) - rank) // 2
    numbers = as_sizes(args[count:], "assemble")
    return args[:count], numbers[:count], numbers[count:]


def _assemble_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    parts, starts, shape = parts_of(args)
    axis = attrs["axis"]
    if not parts or len(starts) != len(parts) or not 0 <= axis < len(shape):
        wanted = f"parts, their starts along axis {axis}, and sizes"
        raise GraphTypeError(f"assemble: {len(args)} arguments are not {wanted}")
    for part in parts:
        if part.type.dtype != parts[0].type.dtype or part.ndim != len(shape):
            raise GraphTypeError(f"assemble: {describe(part)} of type {part.type} is no part of {describe(parts[0])}")
    return Type(parts[0].type.dtype, shape)


def _assemble_guards(node: Node) -> Sequence[Guard]:
    what, (parts, _, shape), axis = label_op(node), parts_of(node.args), node.attrs["axis"]
    text = "{}: a part has {{left}} elements along axis {axis}, the whole {{right}}"
    return [guard for part in parts for guard in shape_guards(part.type.shape, shape, text, what, besides=axis)]


def _assemble_eval(node: Node, *arrays: Array) -> Array:
    axis, count = node.attrs["axis"], len(parts_of(node.args)[0])
    result = np.empty([int(size) for size in arrays[2 * count :]], node.type.dtype)
    for part, start in zip(arrays[:count], arrays[count:], strict=False):
        result[(slice(None),) * axis + (slice(int(start), int(start) + part.shape[axis]),)] = part
    return result


ASSEMBLE = define_op(
    "assemble",
    infer=_assemble_infer,
    eval=_assemble_eval,
    lower=lambda node: Writes(lambda node: _side_by_side(node, parts_of(node.args)[1])),
    guards=_assemble_guards,
    samples=samples(
        others=[
            ("vectors", lambda x, y: assemble((y, x), (3, 0), (5,), 0), (3,), (2,)),
            ("columns, some of them twice", lambda x, y: assemble((x, y), (0, 1), (2, 3), 1), (2, 3), (2, 1)),
            ("with nothing", lambda x, y: assemble((x, y), (0, 2), (2, 3), 0), (2, 3), (0, 3)),
        ]
    ),
    doc="Parts of an array, each written where it begins.",
)
