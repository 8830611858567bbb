"""Shapes: what they are, and the same elements in another arrangement.

In: tensors; axes as NumPy takes them (negative ones count from the end); sizes as numbers, int64 scalars, tuples that
mix the two, or int64 vectors such as `x.shape`. Out: nodes. Everything is composed of dimshuffle, reshape and
broadcast_to; sizes known while the graph is built are folded, so that `x.shape[0]` of a static axis is a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, listed
from graphc.errors import ArgumentError, GraphcError, GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import (
    FUNCTIONS,
    OPS,
    Node,
    Scalar,
    Size,
    constant_value,
    describe,
    describe_size,
    lazy_text,
    literal,
    make,
)
from graphc.ir.source_lines import TRACE, program_line, traced_hint
from graphc.ir.walk import as_size_node, mention
from graphc.ops import shape as ops
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, describe_origin, narrowed
from graphc.ops.questions import Number, asked_equal, asked_number, asked_size, found

__all__ = [
    "addbroadcast", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "dimshuffle",
    "expand_dims", "flatten", "item", "moveaxis", "patternbroadcast", "ravel", "reshape", "shape", "shape_padaxis",
    "shape_padleft", "shape_padright", "size", "specify_shape", "squeeze", "swapaxes", "transpose", "unbroadcast",
]  # fmt: skip

# --- sizes and axes -------------------------------------------------------------------------------------------------

_SIZE_ARITHMETIC = {
    "add": sizes.add,
    "sub": sizes.subtract,
    "mul": sizes.multiply,
    "minimum": sizes.minimum,
    "maximum": sizes.maximum,
}


def _folded(node: Node) -> Size:
    """The size that a scalar integer expression is, by the arithmetic of sizes, without recursion."""
    done: dict[Node, Size] = {}
    pending = [node]
    while pending:
        current = pending[-1]
        rule = _SIZE_ARITHMETIC.get(current.op.name) if current.type.dtype == "int64" else None
        missing = [arg for arg in current.args if arg not in done] if rule else []
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        done[current] = rule(*(done[arg] for arg in current.args)) if rule else sizes.as_size(current)
    return done[node]


def as_size(value: Any, what: str = "a size") -> Size:
    """A whole number or integer scalar node as a size. Raises GraphTypeError for anything else."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu":
        return int(value)
    if isinstance(value, Node) and value.ndim == 0 and value.type.dtype in INTEGERS:
        return _folded(value)
    shown = f"{describe_origin(value)} of type {value.type}" if isinstance(value, Node) else repr(value)
    raise GraphTypeError(f"{what} should be a whole number or an integer scalar, not {shown}")


def vector_items(x: Node) -> list[Size] | None:
    """The elements of an integer vector that is put together from scalars, such as `x.shape`; None for another. All
    count as used, whichever of them are asked for."""
    value = constant_value(x)
    if x.ndim != 1 or x.type.dtype not in INTEGERS:
        return None
    if value is not None:
        return [int(item) for item in value]
    parts = x.args if x.op.name == "concatenate" else (x,)
    items: list[Size] = []
    for part in parts:
        if part.op.name == "dimshuffle" and part.args[0].ndim == 0:
            items.append(sizes.as_size(part.args[0]))
        elif (numbers := constant_value(part)) is not None:
            items.extend(int(number) for number in numbers)
        else:
            return None
    mention([x])
    return items


ONE_BY_ONE = "give the sizes one by one, as in (n[0], n[1])"


def as_shape(shape: Any, what: str, ndim: int | None = None, instead: str = "give ndim=") -> tuple[Size, ...]:
    """Sizes given as one size, a sequence of sizes, or an integer vector whose length is known (or given by `ndim`);
    `instead`: what to write where it is not."""
    if isinstance(shape, np.ndarray):
        shape = listed(shape)
    if isinstance(shape, Node) and shape.ndim == 1:
        items = vector_items(shape)
        length = len(items) if items is not None else asked_size(shape.type.shape[0]) if ndim is None else ndim
        if not isinstance(length, int):
            raise GraphTypeError(f"{what}: the length of {describe(shape)}, and so the rank, is not known: {instead}")
        if items is None:
            one, steps = literal(1, "int64"), {"steps": (1,)}
            parts = [make(OPS["subtensor"], (shape, literal(k, "int64"), one), steps) for k in range(length)]
            items = [_folded(ops.drop(part, (0,))) for part in parts]
        return tuple(items)
    if isinstance(shape, Iterable) and not isinstance(shape, (str, Node)):
        return tuple(as_size(size, lazy_text(lambda: f"{what}: a size")) for size in shape)
    return (as_size(shape, lazy_text(lambda: f"{what}: a size")),)


def vector_of(shape: Sequence[Size]) -> Node:
    """Sizes as an int64 vector."""
    if all(isinstance(size, int) for size in shape):
        return literal(list(shape), "int64")
    return ops.concatenate([ops.expand(as_size_node(size), (0,)) for size in shape], 0)


def shape(x: Any) -> Node:
    """The sizes of `x`, an int64 vector; `shape(x)[0]` is a scalar, and a constant where the size is known.

    >>> T.shape(T.ones((2, 3))).eval()
    array([2, 3])
    """
    node = as_node(x)
    mention([node])
    return vector_of(node.type.shape)


def size(x: Any) -> Node:
    """The number of elements of `x`, an int64 scalar.

    >>> T.size(T.ones((2, 3))).eval()
    array(6)
    """
    node = as_node(x)
    mention([node])
    result = as_size_node(sizes.product(node.type.shape))
    if type(result) in (Node, Scalar) and any(type(size) is Number for size in node.type.shape):
        result.__class__ = Number
    return result


class AxisError(GraphcError, np.exceptions.AxisError):
    """An axis that is not there, or is named twice: NumPy's error, a ValueError and an IndexError."""

    def __init__(self, axis: Any, ndim: int | None = None, msg_prefix: str | None = None) -> None:
        super().__init__(axis, ndim, msg_prefix)  # type: ignore[arg-type]
        self.args = (super().__str__(),)  # in words, which others may complete

    def __str__(self) -> str:
        return str(self.args[0])


def normalise_axis(axis: Any, ndim: int, what: str) -> int:
    """One axis, a number or a constant, counted from 0. Raises AxisError where it is not there, GraphTypeError for what
    is no whole number."""
    axis = known_number(axis)
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)):
        hint = traced_hint(axis) if isinstance(axis, Node) else ""
        raise GraphTypeError(f"{what}: an axis is a whole number, not {axis!r}{hint}")
    if not -ndim <= axis < ndim:
        raise AxisError(int(axis), ndim, what)
    return int(axis) % ndim


def known_number(value: Any) -> Any:
    """The integer that an array or a constant node of no axes holds, or that sizes at hand give, which is noted;
    anything else is itself."""
    held = constant_value(value) if isinstance(value, Node) else value
    if held is None and isinstance(number := asked_number(value), int):
        return number
    if isinstance(held, np.ndarray) and held.ndim == 0 and held.dtype.kind in "iu":
        return int(held)
    return value


def normalise_axes(axis: Any, ndim: int, what: str) -> tuple[int, ...]:
    """Axes as a tuple counted from 0, in the order given; None stands for all. AxisError for one twice."""
    axis = known_number(axis)
    if isinstance(axis, Node) and constant_value(axis) is not None:
        axis = constant_value(axis)
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, (tuple, list, range, np.ndarray)) else (axis,)
    axes = tuple(normalise_axis(one, ndim, what) for one in given)
    if len(set(axes)) < len(axes):
        raise AxisError(f"{what}: an axis is named twice in {given}")
    return axes


def label_operand(function: str, node: Node) -> str:
    """The first words of a message: a function and the node that it is applied to; made when they are read."""
    return lazy_text(lambda: f"{function} of {describe(node)} of type {node.type}")


def operand(function: str, x: Any) -> tuple[Node, str]:
    """An argument of a function as a node, and its label for messages."""
    node = as_node(x)
    return node, label_operand(function, node)


def of_rank(x: Any, message: str, least: int, most: int | None = None) -> Node:
    """`x` as a node of `least` to `most` axes. Raises RankError with the message, in which {} is the node."""
    node = as_node(x)
    if node.ndim < least or (most is not None and node.ndim > most):
        raise RankError(message.format(f"{describe(node)} of type {node.type}"))
    return node


def as_axis(vector: Node, axis: int, ndim: int) -> Node:
    """A vector along one of `ndim` axes, ready to broadcast."""
    return ops.expand(vector, [k for k in range(ndim) if k != axis])


def unpack(arguments: Sequence[Any]) -> Any:
    """`f(2, 3)` and `f((2, 3))` mean the same."""
    return arguments[0] if len(arguments) == 1 else tuple(arguments)


# --- reshape --------------------------------------------------------------------------------------------------------


def reshape(
    x: Any, *sizes: Any, ndim: int | None = None, newshape: Any = None, shape: Any = None, order: str = "C"
) -> Node:
    """The elements of `x` as an array of another shape: `reshape(x, (2, 3))` or `x.reshape(2, 3)`.

    newshape, shape: Theano's and NumPy's names of it. order: in "C" elements are counted along the last axis first, in
    "F" along the first; "A" is "C". One size may be -1: it is what remains. `ndim` tells the rank
    where the shape is a vector of unknown length. Raises ShapeError where the numbers of elements differ, at run time
    where they are not known before.

        >>> T.reshape(T.arange(4), (2, -1)).eval()
        array([[0, 1],
               [2, 3]])
    """
    node, what = operand("reshape", x)
    named = [each for each in (newshape, shape) if each is not None]
    if named and (sizes or len(named) > 1):
        raise ArgumentError(f"{what}: the shape is given more than once")
    given = tuple(named) or sizes
    if len(given) == 2 and (isinstance(given[0], (tuple, list)) or (isinstance(given[0], Node) and given[0].ndim)):
        ndim = given[1]
        given = (given[0],)
    target = as_shape(unpack(given), what, ndim)
    if ndim is not None and len(target) != ndim:
        raise GraphValueError(f"{what}: {len(target)} sizes, but ndim={ndim}")
    filled = _fill_in(node, target, what)
    _check_at_hand(node, target, filled, what)
    if _first_axis_first(order, what):
        return _reversed(ops.reshape(_reversed(node), filled[::-1]))
    return ops.reshape(node, filled)


def _first_axis_first(order: str, what: Any) -> bool:
    if order not in ("C", "F", "A", "K"):
        raise GraphValueError(f"{what}: order {order!r} is none of 'C', 'F', 'A', 'K'")
    return order == "F"


def _reversed(x: Node) -> Node:
    return ops.dimshuffle(x, range(x.ndim)[::-1])


def _fill_in(x: Node, target: tuple[Size, ...], what: str) -> tuple[Size, ...]:
    """`target` with its -1 replaced by the size that remains."""
    open_axes = [axis for axis, size in enumerate(target) if sizes.equal(size, -1)]
    if not open_axes:
        return target
    if len(open_axes) > 1:
        raise ShapeError(f"{what}: only one size can be -1, not {len(open_axes)}")
    given = [size for axis, size in enumerate(target) if axis not in open_axes]
    have, want = ops.factors(x.type.shape), ops.factors(given)
    symbols, wanted = _symbols(have), _symbols(want)
    number, divisor = _number(have), _number(want)
    if divisor and wanted <= symbols and number % divisor == 0:
        rest: Size = sizes.product([number // divisor, *(symbols - wanted).elements()])
    else:
        count, known = sizes.product(x.type.shape), sizes.product(given)
        if isinstance(known, int) and (known == 0 or (isinstance(count, int) and count % known)):
            raise ShapeError(f"{what}: it cannot be divided into {tuple(map(describe_size, target))}")
        rest = sizes.floor_divide(count, known)
    return tuple(rest if axis in open_axes else size for axis, size in enumerate(target))


def _check_at_hand(x: Node, target: Sequence[Size], filled: Sequence[Size], what: str) -> None:
    """Raise ShapeError where a traced program, which may catch it, asks for a shape that the sizes at hand do not fill.
    If they do, it is a question about sizes only where the shape is of numbers; else calls check it."""
    before, after = sizes.product(x.type.shape), sizes.product(filled)
    if TRACE.at_hand is None or sizes.equal(before, after):
        return
    values = [each if isinstance(each, int) else (found(each) or (None,))[0] for each in (before, after)]
    if None in values or (values[0] == values[1] and not all(isinstance(size, int) for size in target)):
        return
    if not asked_equal(before, after):
        told = ", ".join(map(describe_size, target))
        raise ShapeError(f"{what}: {values[0]} elements cannot become ({told}) (asked at {program_line()})")


def _symbols(factors: Any) -> Any:
    return type(factors)({size: times for size, times in factors.items() if isinstance(size, Node)})


def _number(factors: Any) -> int:
    return next(size for size in factors if isinstance(size, int))


def flatten(x: Any, ndim: Any = 1, *, outdim: int | None = None, order: str = "C") -> Node:
    """`x` with its trailing axes made one, so that `ndim` axes are left (Theano's flatten; `ndim=1` is NumPy's).

    `outdim` is Theano's older name of `ndim`. order: as of `reshape`; it may stand in the place of `ndim`, as in NumPy.
    Raises GraphValueError for a number of axes that `x` has not, and for more than one in order "F".

        >>> T.flatten(T.ones((2, 3, 4)), 2).eval().shape
        (2, 12)
    """
    node = as_node(x)
    ndim = 1 if ndim is None else ndim
    if outdim is not None:
        ndim = outdim
    if isinstance(ndim, str):
        ndim, order = 1, ndim
    what = label_operand("flatten", node)
    if _first_axis_first(order, what):
        if ndim != 1:
            raise GraphValueError(f"{what}: order 'F' makes a vector, not {ndim} axes")
        node = _reversed(node)
    if not 1 <= ndim <= max(node.ndim, 1):
        raise GraphValueError(f"{what}: it cannot have {ndim} axes")
    kept = node.type.shape[: ndim - 1]
    return ops.reshape(node, (*kept, sizes.product(node.type.shape[ndim - 1 :])))


def as_vector(name: str, value: Any) -> Node:
    """A number, a vector or one of NumPy's polynomials as a vector. Raises RankError for more axes."""
    value = value.coeffs if isinstance(value, np.poly1d) else value
    node = of_rank(value, f"{name}: {{}} is no vector", 0, 1)
    return flatten(node)


def ravel(x: Any, order: str = "C") -> Node:
    """`x` as a vector; order: as of `reshape`.

    >>> T.ravel(T.constant([[1, 2], [3, 4]])).eval()
    array([1, 2, 3, 4])
    """
    return flatten(x, order=order)


def item(x: Any, *place: Any) -> Node:
    """The only element of `x`, a scalar, and a ShapeError where there are more; with a place, in C order or by an index
    for each axis, the element there. In a traced function it is a number of Python's, as in NumPy."""
    node = as_node(x)
    if not place:
        made = ops.reshape(node, ())
    else:
        where = tuple(place[0]) if len(place) == 1 and isinstance(place[0], tuple) else place
        made = node.part(where) if len(where) == node.ndim else flatten(node).part(where)
    if not TRACE.depth or made.type.dtype == "uint64":
        return made
    wide = {"f": "float64", "b": "bool"}.get(np.dtype(made.type.dtype).kind, "int64")
    number: Node = make(OPS["cast"], (made,), {"dtype": wide})
    number.__class__ = Number
    return number


# --- axes in another order ------------------------------------------------------------------------------------------


def dimshuffle(x: Any, *pattern: Any) -> Node:
    """The axes of `x` in the order of `pattern`; 'x' makes a new axis of size 1; an axis left out must have size 1.

    Raises GraphValueError for a pattern that names an axis twice.

        >>> T.dimshuffle(T.ones((2, 3)), 1, "x", 0).eval().shape
        (3, 1, 2)
    """
    node = as_node(x)
    order = tuple(pattern[0]) if len(pattern) == 1 and isinstance(pattern[0], (tuple, list)) else pattern
    what = lazy_text(lambda: f"dimshuffle of {describe(node)} of type {node.type} to {order}")
    return ops.dimshuffle(node, [axis if axis == "x" else normalise_axis(axis, node.ndim, what) for axis in order])


def transpose(x: Any, axes: Any = None, *more: Any) -> Node:
    """The axes of `x` reversed, or in the order of `axes`, a sequence or several numbers.

    Raises AxisError for a wrong axis.

        >>> T.transpose(T.ones((2, 3, 4)), (1, 0, 2)).eval().shape
        (3, 2, 4)
    """
    node = as_node(x)
    order = None if axes is None else unpack((axes, *more))
    if order is None:
        return ops.dimshuffle(node, range(node.ndim)[::-1])
    positions = normalise_axes(order, node.ndim, label_operand("transpose", node))
    if len(positions) != node.ndim:
        raise GraphValueError(
            f"transpose of {describe(node)} of type {node.type}: axes {order} do not name each of its axes once"
        )
    return ops.dimshuffle(node, positions)


def swapaxes(x: Any, axis1: int, axis2: int) -> Node:
    """Two axes exchanged.

    Raises AxisError for a wrong axis.

        >>> T.swapaxes(T.ones((2, 3, 4)), 0, 2).eval().shape
        (4, 3, 2)
    """
    node, what = operand("swapaxes", x)
    first, second = normalise_axis(axis1, node.ndim, what), normalise_axis(axis2, node.ndim, what)
    order = list(range(node.ndim))
    order[first], order[second] = second, first
    return ops.dimshuffle(node, order)


def moveaxis(x: Any, source: Any, destination: Any) -> Node:
    """Axes `source` moved to positions `destination`; the others keep their order.

    Raises AxisError for a wrong axis.

        >>> T.moveaxis(T.ones((2, 3, 4)), 0, -1).eval().shape
        (3, 4, 2)
    """
    node, what = operand("moveaxis", x)
    origin, goal = normalise_axes(source, node.ndim, what), normalise_axes(destination, node.ndim, what)
    if len(origin) != len(goal):
        raise GraphValueError(f"{what}: {len(origin)} source axes, {len(goal)} destinations")
    order = [axis for axis in range(node.ndim) if axis not in origin]
    for position, axis in sorted(zip(goal, origin, strict=True)):
        order.insert(position, axis)
    return ops.dimshuffle(node, order)


def expand_dims(x: Any, axis: Any) -> Node:
    """New axes of size 1 at the positions `axis` of the result.

    Raises AxisError for a wrong axis.

        >>> T.expand_dims(T.ones(3), 0).eval().shape
        (1, 3)
    """
    node = as_node(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    return ops.expand(
        node, normalise_axes(axis, node.ndim + count, lazy_text(lambda: f"expand_dims of {describe(node)}"))
    )


def squeeze(x: Any, axis: Any = None) -> Node:
    """`x` without axes of size 1: all whose size is known to be 1, or those named, which must be.

    Raises AxisError for a wrong axis, ShapeError for one of another size.

        >>> T.squeeze(T.ones((1, 3, 1))).eval().shape
        (3,)
    """
    node, what = operand("squeeze", x)
    axes = normalise_axes(axis, node.ndim, what)
    if axis is None:
        axes = tuple(k for k in axes if asked_equal(node.type.shape[k], 1))
    for k in axes:
        if not asked_equal(node.type.shape[k], 1):
            length = describe_size(node.type.shape[k])
            raise ShapeError(
                f"{what}: axis {k} has size {length}, not 1; specify_shape() tells sizes that are not known"
            )
    held = ops.broadcast_to(node, [1 if k in axes else size for k, size in enumerate(node.type.shape)])
    return ops.drop(held, axes)


def shape_padleft(x: Any, n_ones: int = 1) -> Node:
    """`n_ones` new axes of size 1 in front."""
    node = as_node(x)
    return ops.expand(node, range(n_ones))


def shape_padright(x: Any, n_ones: int = 1) -> Node:
    """`n_ones` new axes of size 1 at the end."""
    node = as_node(x)
    return ops.expand(node, range(node.ndim, node.ndim + n_ones))


def shape_padaxis(x: Any, axis: int) -> Node:
    """A new axis of size 1 at position `axis` of the result."""
    return expand_dims(x, axis)


def atleast_nd(x: Any, ndim: int, left: bool = True) -> Node:
    """Axes of size 1 put in front (or at the end) until there are `ndim`."""
    node = as_node(x)
    missing = max(ndim - node.ndim, 0)
    return shape_padleft(node, missing) if left else shape_padright(node, missing)


def atleast_1d(*arrays: Any) -> Any:
    """Scalars as vectors of one element; a list for several arguments."""
    return unpack_list([atleast_nd(x, 1) for x in arrays])


def atleast_2d(*arrays: Any) -> Any:
    """Vectors as matrices of one row; a list for several arguments."""
    return unpack_list([atleast_nd(x, 2) for x in arrays])


def atleast_3d(*arrays: Any) -> Any:
    """NumPy's: vectors become 1 x n x 1, matrices m x n x 1; a list for several arguments."""
    nodes = [as_node(x) for x in arrays]
    return unpack_list([atleast_nd(atleast_nd(node, 2), 3, left=False) for node in nodes])


def unpack_list(results: list[Node]) -> Any:
    """One result as itself, several as a list."""
    return results[0] if len(results) == 1 else results


# --- broadcasting ---------------------------------------------------------------------------------------------------


def broadcast_to(x: Any, shape: Any) -> Node:
    """`x` expanded to `shape`: axes put in front, axes of size 1 repeated; a ShapeError where another size differs.

    >>> T.broadcast_to(T.constant([1, 2]), (2, 2)).eval()
    array([[1, 2],
           [1, 2]])
    """
    node, what = operand("broadcast_to", x)
    target = as_shape(shape, what, instead=ONE_BY_ONE)
    if len(target) < node.ndim:
        raise ShapeError(f"{what}: it has more axes than {tuple(map(describe_size, target))}")
    (node,) = narrowed([node], target)
    return ops.broadcast_to(ops.expand(node, range(len(target) - node.ndim)), target)


def broadcast_arrays(*arrays: Any) -> tuple[Node, ...]:
    """All arguments expanded to their common shape.

    Raises ShapeError where they have none.

        >>> [each.eval().shape for each in T.broadcast_arrays(T.ones((2, 1)), T.ones(3))]
        [(2, 3), (2, 3)]
    """
    nodes = narrowed([as_node(x) for x in arrays]) if arrays else []
    shape = broadcast_sizes("broadcast_arrays", nodes) if nodes else ()
    return tuple(broadcast_node(node, shape) for node in nodes)


def specify_shape(x: Any, shape: Any) -> Node:
    """`x` with some of its sizes made known: a tuple with None where nothing is said. Checked at each call.

    Raises ShapeError where they are known to be others, GraphValueError for another number of them.

        >>> T.specify_shape(T.dmatrix("x"), (None, 3)).type.shape[1]
        3
    """
    node, what = operand("specify_shape", x)
    given: Sequence[Any] = as_shape(shape, what, node.ndim) if isinstance(shape, Node) else listed(shape)
    if len(given) != node.ndim:
        raise GraphValueError(f"{what}: {len(given)} sizes for {node.ndim} axes")
    target = [
        old if new is None else as_size(new, lazy_text(lambda: f"{what}: a size"))
        for old, new in zip(node.type.shape, given, strict=True)
    ]
    for axis, (old, new) in enumerate(zip(node.type.shape, target, strict=True)):
        sizes.common(old, new, what, f": axis {axis}")
    return ops.broadcast_to(node, target)


def addbroadcast(x: Any, *axes: int) -> Node:
    """`x`, whose `axes` have size 1 and broadcast from here on; an error at run time where they have another size."""
    node = as_node(x)
    known = normalise_axes(axes, node.ndim, label_operand("addbroadcast", node))
    return specify_shape(node, [1 if axis in known else None for axis in range(node.ndim)])


def patternbroadcast(x: Any, broadcastable: Sequence[bool]) -> Node:
    """`x`, whose axes with a true flag have size 1 and broadcast from here on."""
    return specify_shape(x, [1 if flag else None for flag in broadcastable])


def unbroadcast(x: Any, *axes: int) -> Node:
    """`x` itself: Theano needs to be told where a size of 1 shall not broadcast, graphc does not."""
    return as_node(x)


FUNCTIONS.update(
    dimshuffle=dimshuffle, flatten=flatten, item=item, ravel=ravel, reshape=reshape, shape=shape, size=size,
    squeeze=squeeze, swapaxes=swapaxes, transpose=transpose,
)  # fmt: skip
