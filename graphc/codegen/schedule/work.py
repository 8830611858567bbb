"""How much work a step of a loop is, so that long loops are left in time when a call is interrupted.

In: the results of a step, or of a kernel. Out: sizes: an addition in a loop over elements is 1, a tenth of a
nanosecond. They are estimates: what is computed again is counted once, what is fused is not known yet, and where a
number of elements or steps is known in the midst of the kernel only, it is taken to be GUESS.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from graphc.arrays.dtypes import INTEGERS, is_float
from graphc.codegen.call.interrupt import LONG
from graphc.codegen.schedule.plan import lowering_of
from graphc.ir import sizes
from graphc.ir.body import outside
from graphc.ir.lowering import Branch, Call, Fold, Part, Repeat, Scalar, Segments, View
from graphc.ir.node import CONSTANT, INPUT, SHARED, SIZE, Node, Size
from graphc.ir.walk import as_size_node, node_set, nodes_of
from graphc.ops.given import given_sizes
from graphc.ops.scan import loop_of

STEP = 20
"""Of a step that does nothing."""
SCALAR = 10
"""Of an op on one element, where elements come one after the other, over what it is in a vector."""
GUESS = 1000
MOST_STEPS = 2**20
"""Of a loop in a loop: more make no difference to that."""


def work_of(results: Sequence[Node], varying: Collection[Node] = (), known: Mapping[Node, Node] = {}) -> Size:
    """The work of a step with these results: `varying` are the leaves that change from step to step, `known` is what
    parameters in its sizes stand for."""
    parts: dict[Size, int] = {1: STEP}
    for node in nodes_of(results):
        has_bodies = node.is_tuple and not isinstance(lowering_of(node), Call)
        elements, cost = (_within(node, varying, known), 1) if has_bodies else _elements(node, varying, known)
        if isinstance(elements, int):
            elements, cost = 1, elements * cost
        parts[elements] = parts.get(elements, 0) + cost
    return _total(sizes.multiply(elements, cost) for elements, cost in parts.items())


def loops_of(results: Sequence[Node], known: Mapping[Node, Node] = {}, nests: bool = False) -> Size:
    """The work of the loops that results of a kernel need, but for what is in other loops; `nests`: and that of values
    that are computed over as many sizes as nests that ask go over."""
    found: list[Size] = []
    for node in nodes_of(results):
        lowering = lowering_of(node)
        if nests and _is_long(node):
            found.append(sizes.multiply(*_elements(node, (), known)))
        if isinstance(lowering, Branch):
            inside = _given(node, node.attrs["then"].params, node.args[1:], known)
            found += [loops_of(node.attrs[side].results, inside) for side in ("then", "orelse")]
        elif isinstance(lowering, Repeat):
            loop = loop_of(node.args, node.attrs)
            work = work_of(loop.body.results, (), _given(node, loop.body.params, loop.operands, known))
            count = _plain(sizes.as_size(loop.count), (), known)
            found.append(sizes.multiply(sizes.minimum(count, 2**31), sizes.minimum(work, 2**24)))
    return _total(found)


def _is_long(node: Node) -> bool:
    """Whether the elements of a value, and what each is made of, go over several sizes that only a call can tell."""
    if node.is_tuple:
        return False
    lowering = lowering_of(node)
    shape = (*node.type.shape, *(lowering.sizes(node) if isinstance(lowering, Fold) else ()))
    return sum(isinstance(size, Node) for size in shape) >= LONG


def _total(parts: Iterable[Size]) -> Size:
    total: Size = 0
    for part in parts:
        total = sizes.add(total, part)
    return total


def _given(
    node: Node, params: Sequence[Node], operands: Sequence[Node], known: Mapping[Node, Node]
) -> Mapping[Node, Node]:
    """What the parameters of a body that are sizes stand for. By a condition or a float a size is chosen or rounded: it
    is none itself, and what follows from it is taken to be GUESS."""
    given = {operand for operand in given_sizes(node) if operand.dtype in INTEGERS}
    pairs = zip(params, operands, strict=True)
    return {param: as_size_node(_plain(sizes.as_size(each), (), known)) for param, each in pairs if each in given}


def _within(node: Node, varying: Collection[Node], known: Mapping[Node, Node]) -> Size:
    """The work of a loop, or of both bodies of a branch."""
    if isinstance(lowering_of(node), Branch):
        inside = _given(node, node.attrs["then"].params, node.args[1:], known)
        return _total(work_of(node.attrs[side].results, varying, inside) for side in ("then", "orelse"))
    loop = loop_of(node.args, node.attrs)
    count = _plain(sizes.as_size(loop.count), varying, known)
    inside = _given(node, loop.body.params, loop.operands, known)
    return sizes.multiply(sizes.minimum(count, MOST_STEPS), work_of(loop.body.results, varying, inside))


def _elements(node: Node, varying: Collection[Node], known: Mapping[Node, Node]) -> tuple[Size, int]:
    """How many elements a node computes, and the work of each."""
    lowering, shape = lowering_of(node), node.type.shape
    cost = round(node.op.cost)
    if isinstance(lowering, View | Part | None):
        return 1, 0
    if isinstance(lowering, Fold):
        shape = (*shape, *lowering.sizes(node))
    elif isinstance(lowering, Segments):
        shape = node.args[0].type.shape
    elif isinstance(lowering, Call):
        shape, cost = tuple(lowering.work(node)), 1
    elements = sizes.product(_plain(size, varying, known) for size in shape)
    return elements, cost if shape else cost * SCALAR


def _plain(size: Size, varying: Collection[Node], known: Mapping[Node, Node]) -> Size:
    """A size of a body in terms of what its parameters stand for, where it is known before the loops begin."""
    if isinstance(size, int):
        return size
    inside = _is_arithmetic(size, {*known})
    outer = outside(size, known) if inside else GUESS
    return outer if isinstance(outer, int) or _is_arithmetic(outer, (), varying) else GUESS


def _is_arithmetic(size: Node, given: Collection[Node], varying: Collection[Node] = ()) -> bool:
    """Whether a size is computed from sizes and from numbers that are given, by arithmetic of integers."""
    for node in node_set([size]):
        leaf = node.op in (SIZE, CONSTANT, INPUT, SHARED) and node not in varying and not node.ndim
        computed = node.args and not is_float(node.dtype) and isinstance(lowering_of(node), Scalar)
        if not (leaf or computed or node in given):
            return False
    return True
