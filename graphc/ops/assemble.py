"""An array of parts that are written where they belong.

In: parts, all of its elements between them, where each begins along one axis, and the sizes of the array. Out: the
array. Unlike `concatenate` it may be told sizes of which only a call shows that they add up; where parts overlap, the
later one stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc import loopir
from graphc.errors import GraphTypeError
from graphc.ir.lowering import Element, Write, Writes
from graphc.ir.node import (
    Array,
    Attributes,
    Guard,
    Index,
    Lowering,
    Node,
    Size,
    Type,
    define_op,
    describe,
    lazy_format,
    make,
)
from graphc.ir.samples import samples
from graphc.ir.walk import as_size_node
from graphc.ops.shape import as_sizes, equality_guard, label_op, size_expr


def assemble(parts: Sequence[Node], starts: Sequence[Size], shape: Sequence[Size], axis: int) -> Node:
    """Arrays as one of this shape, each from its start along an axis on; they must be all of it between them."""
    return make(ASSEMBLE, (*parts, *map(as_size_node, (*starts, *shape))), {"axis": axis})


def parts_of(args: Sequence[Node]) -> tuple[Sequence[Node], tuple[Size, ...], tuple[Size, ...]]:
    """The parts, where they begin, and the shape of the whole."""
    rank = args[0].ndim if args else 0
    count = (len(args) - rank) // 2
    numbers = as_sizes(args[count:], "assemble")
    return args[:count], numbers[:count], numbers[count:]


def _infer(args: Sequence[Node], attrs: Attributes) -> Type:
    parts, starts, shape = parts_of(args)
    axis = attrs["axis"]
    if not parts or len(starts) != len(parts) or not 0 <= axis < len(shape):
        raise GraphTypeError(
            f"assemble: {len(args)} arguments are not parts, their starts along axis {axis}, and sizes"
        )
    for part in parts:
        if part.type.dtype != parts[0].type.dtype or part.ndim != len(shape):
            raise GraphTypeError(f"assemble: {describe(part)} of type {part.type} is no part of {describe(parts[0])}")
    return Type(parts[0].type.dtype, shape)


def _guards(node: Node) -> Sequence[Guard]:
    what, (parts, _, shape) = label_op(node), parts_of(node.args)
    guards: list[Guard] = []
    for part in parts:
        for axis, (size, whole) in enumerate(zip(part.type.shape, shape, strict=True)):
            if axis != node.attrs["axis"]:
                message = lazy_format("{}: a part has {{left}} elements along axis {}, the whole {{right}}", what, axis)
                guards += equality_guard(size, whole, message)
    return guards


def _eval(node: Node, *arrays: Array) -> Array:
    axis, count = node.attrs["axis"], len(parts_of(node.args)[0])
    result = np.empty([int(size) for size in arrays[2 * count :]], node.type.dtype)
    for part, start in zip(arrays[:count], arrays[count:], strict=False):
        result[(slice(None),) * axis + (slice(int(start), int(start) + part.shape[axis]),)] = part
    return result


def _write(node: Node, position: int) -> Write:
    parts, starts, _ = parts_of(node.args)
    axis, start = node.attrs["axis"], starts[position]

    def target(index: Index, element: Element) -> Index:
        return (*index[:axis], loopir.add(size_expr(start, element), index[axis]), *index[axis + 1 :])

    return Write(parts[position].type.shape, target, lambda index: (position, index))


def _lower(node: Node) -> Lowering:
    return Writes(lambda node: [_write(node, position) for position in range(len(parts_of(node.args)[0]))])


ASSEMBLE = define_op(
    "assemble",
    infer=_infer,
    eval=_eval,
    lower=_lower,
    guards=_guards,
    samples=samples(
        others=[
            ("vectors", lambda x, y: assemble((y, x), (3, 0), (5,), 0), (3,), (2,)),
            ("columns, some of them twice", lambda x, y: assemble((x, y), (0, 1), (2, 3), 1), (2, 3), (2, 1)),
            ("with nothing", lambda x, y: assemble((x, y), (0, 2), (2, 3), 0), (2, 3), (0, 3)),
        ]
    ),
    doc="Parts of an array, each written where it begins.",
)
