"""Questions that planning and lowering ask about one node, and which sizes of a graph are equal.

In: a node, an index, sizes. Out: its lowering, loop variables, the axes that are reduced; for an operand of an external
function the buffer that it is a view of. As an example, `x.T` of a matrix `x` that is an input is a view of the buffer
of `x` with its axes exchanged:

    buffer_view(x.T, sizing) == BufferView(base=x, shape=x.type.shape, along=(AxisView(1, 1, 0), AxisView(0, 1, 0)))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.ir import sizes
from graphc.ir.body import ITEM
from graphc.ir.lowering import Call, Fold, Iota, SegmentNumber, View
from graphc.ir.node import LEAVES, PARAM, SIZE, Guard, Index, Node, Size, constant_value
from graphc.ir.walk import as_size_node, nodes_of, reachable, rebuilt, type_sizes
from graphc.loopir import ir
from graphc.ops.linalg.products import is_in_memory
from graphc.startup.record import fresh, record

MOST_AXES = 64
"""Loop variables reserved: NumPy has no arrays of more axes."""


def lowering_of(node: Node) -> object:
    """The way in which a node becomes loops; None of a leaf."""
    return None if node.op in LEAVES else node.op.lower(node)


def call_node(node: Node) -> Node:
    """The node of which a call computes all results: the node itself, or the one whose item it is."""
    return node.args[0] if node.op is ITEM else node


def call_of(node: Node) -> Call | None:
    """The external function that computes a node."""
    lowering = lowering_of(call_node(node))
    return lowering if isinstance(lowering, Call) else None


def is_product(node: Node) -> bool:
    """Tell whether a function computes a node that may add to its result."""
    call = call_of(node)
    return call is not None and call.is_product


def call_fails(node: Node) -> bool:
    """Tell whether a function computes a node that may say that it failed."""
    call = call_of(node)
    return call is not None and call.may_fail


def is_bufferless(leaf: Node) -> bool:
    """Tell whether a leaf is written into the source: a size, a scalar that a body is given, or a constant of one
    element."""
    value = constant_value(leaf)
    return leaf.op in (SIZE, PARAM) if value is None else value.size == 1


def variables_of(exprs: Iterable[ir.Expr]) -> set[ir.Var]:
    variables: set[ir.Var] = set()
    for expr in exprs:
        if isinstance(expr, ir.Var):  # as most indices are
            variables.add(expr)
        elif not isinstance(expr, ir.Const):
            variables.update(part for part in ir.subexpressions(expr) if isinstance(part, ir.Var))
    return variables


def loop_vars(count: int) -> tuple[ir.Var, ...]:
    """i, j, k, l for up to four loops, numbered beyond."""
    return tuple(ir.Var("ijkl"[n] if n < 4 else f"i{n}", ir.INDEX) for n in range(count))


def fold_vars(node: Node, fold: Fold) -> tuple[ir.Var, ...]:
    """The loop variables of an inline reduction: the same ones whenever the node is asked."""
    return tuple(ir.Var(f"r{node.serial}_{axis}", ir.INDEX) for axis in range(len(fold.sizes(node))))


def index_element(node: Node, index: Index) -> ir.Expr:
    """An element of an array by which others are indexed: the loop's variable where it counts with a loop, as that of
    `arange(n)[:, None]` does."""
    source, place = node, index
    while source.op.name in ("dimshuffle", "broadcast_to"):
        view = lowering_of(source)
        assert isinstance(view, View)
        position, place = view.index(source, place, opaque_element)
        source = source.args[position]
    counting = lowering_of(source)
    return place[counting.axis] if isinstance(counting, Iota) else opaque_element(node, index)


def opaque_element(node: Node, index: Index) -> ir.Expr:
    """An element of which nothing is known but where it is."""
    return ir.Opaque(node, index, node.type.dtype)


def segment_count(starts: Node) -> Size:
    """The number of segments that begin and end at the elements of a vector."""
    return sizes.subtract(starts.type.shape[0], 1)


def segment_var(node: Node) -> ir.Var:
    """The loop variable over the rows of a segment."""
    return ir.Var(f"r{node.serial}", ir.INDEX)


def is_by_segment(place: ir.Expr) -> bool:
    """Tell whether a place follows from the number of a segment."""
    nodes = (part.of for part in ir.subexpressions(place) if isinstance(part, ir.Opaque) and isinstance(part.of, Node))
    return any(isinstance(lowering_of(node), SegmentNumber) for node in nodes)


def first_reduced(node: Node) -> int:
    """The outermost loop over a reduction's operand that is reduced."""
    fold = lowering_of(node)
    assert isinstance(fold, Fold)
    return fold.axes[0] if node.ndim else 0


MOST_UNROLLED = 4
"""Iterations of a loop that is written out one by one, where their number is known."""
MOST_IN_ROWS = 16
"""Terms of a reduction that is written out, where there are many of them: the loop over these then runs over vectors
(codegen/vectorize/legality.py)."""
MANY = 64


def unrolls(iterations: Sequence[Size | None], most: int = MOST_UNROLLED) -> bool:
    """Tell whether loops of these numbers of iterations, where they are known, are written out one by one."""
    count = 1
    for size in iterations:
        if not isinstance(size, int):
            return False
        count *= size
    return 0 < count <= most


def is_written_out(node: Node, iterations: Sequence[Size | None]) -> bool:
    """Tell whether a reduction of so many terms, where that is known, is written out term by term. It is not where
    elements of rows would be read one by one: such rows are reduced abreast (transform/abreast.py)."""
    is_many = any(not isinstance(size, int) or size >= MANY for size in node.type.shape)
    fold, length = lowering_of(node), iterations[-1] if iterations else 0
    is_row = isinstance(fold, Fold) and node.args[0].ndim - 1 in fold.axes
    if is_many and is_row and isinstance(length, int) and not ir.has_columns(length):
        return False
    return unrolls(iterations, MOST_IN_ROWS if is_many else MOST_UNROLLED)


def split_axes(loops: Index, reduced: Sequence[int]) -> tuple[Index, Index]:
    """The loops over an operand as (kept axes, reduced axes)."""
    return (
        tuple(var for axis, var in enumerate(loops) if axis not in reduced),
        tuple(var for axis, var in enumerate(loops) if axis in reduced),
    )


def reach(index: Index, path: tuple[ir.Var, ...]) -> tuple[ir.Var, ...]:
    """The loops that enclose the computation of an element at `index`: those down to the innermost it depends on."""
    wanted = variables_of(index)
    inside = [position for position, var in enumerate(path) if var in wanted]
    return path[: inside[-1] + 1] if inside else ()


def any_index(count: int) -> Index:
    """A placeholder index of `count` axes, for questions whose answer does not depend on the index."""
    return tuple(ir.ZERO for _ in range(count))


def index_of(variables: Sequence[ir.Var], space: Sequence[Size]) -> Index:
    """The index of the element at hand: the loops' variables, 0 where a loop has one iteration."""
    return tuple(ir.ZERO if size == 1 else var for var, size in zip(variables, space, strict=True))


# Operands of external functions ---------------------------------------------------------------------------------------


@record()
class AxisView:
    """The part of an axis of a buffer that an operand is: from `start` on, by `step` for each step along the
    operand's own `axis` (None: at `start` alone)."""

    axis: int | None
    step: int
    start: Size


@record(eq=False)
class BufferView:
    """`base` is the node whose buffer it is, seen as an array of `shape`, one `AxisView` for each of its axes."""

    base: Node
    shape: tuple[Size, ...]
    along: tuple[AxisView, ...]


def buffer_view(operand: Node, sizing: Sizing) -> BufferView:
    """The buffer that an operand is a view of: its own, where it has to be computed for the call.

    A reshape to sizes that guards say it has already only states that they are equal.
    """
    node, along = operand, tuple(AxisView(axis, 1, 0) for axis in range(operand.ndim))
    keep = is_in_memory(operand)
    while True:
        match node.op.name:
            case "dimshuffle":
                order = node.attrs["order"]
                axes = range(node.args[0].ndim)
                along = tuple(along[order.index(axis)] if axis in order else AxisView(None, 0, 0) for axis in axes)
            case "broadcast_to":
                source = node.args[0]
                spread = zip(source.broadcastable, node.broadcastable, along, strict=True)
                along = tuple(AxisView(None, 0, 0) if was and not now else part for was, now, part in spread)
            case "subtensor" if keep:
                starts = map(sizes.as_size, node.args[1 : node.ndim + 1])
                along = tuple(map(_within, along, starts, node.attrs["steps"]))
            case "reshape" if sizing.shape(node) == sizing.shape(node.args[0]):
                pass
            case _:
                break
        node = node.args[0]
    shape = node.type.shape
    while node.op.name == "reshape":
        node = node.args[0]
    if node.op in LEAVES and is_bufferless(node):
        return BufferView(operand, operand.type.shape, tuple(AxisView(axis, 1, 0) for axis in range(operand.ndim)))
    return BufferView(node, shape, along)


def _within(part: AxisView, start: Size, step: int) -> AxisView:
    """A part of a region that itself begins at `start` and goes by `step`."""
    return AxisView(part.axis, part.step * step, sizes.add(start, sizes.multiply(part.start, step)))


# --- the sizes that are equal, and the guards that must be checked before a run ---------------------------------------
# In: a graph. Out: `Sizing`: the guards that remain to be checked at run time, and for every size its one
# representative, so that the scheduler sees equal loops as equal. As an example, of `x + y` for vectors there is one
# guard, `x.shape[0] == y.shape[0]`, and `sizing.of(y.shape[0])` is `x.shape[0]`. A size proved equal by a guard may
# stand for the other everywhere, because no kernel runs before its guards have been checked.


@record()
class Sizing:
    """`checks` in the order in which the `sizes` function makes them; `same` maps sizes to their representatives."""

    checks: tuple[Guard, ...]
    same: dict[Node, Node]
    _memo: dict[Node, Node] = fresh(factory=dict)
    _shapes: dict[Node, tuple[Size, ...]] = fresh(factory=dict)

    def of(self, size: Size) -> Size:
        """The representative of `size`, a number where it is known."""
        if isinstance(size, int):
            return size
        node = _rebuilt(self._memo, size)
        value = constant_value(node)
        return node if value is None else int(value)

    def shape(self, node: Node) -> tuple[Size, ...]:
        """The representatives of a node's sizes."""
        shape = self._shapes.get(node)
        if shape is None:
            shape = self._shapes[node] = tuple([self.of(size) for size in node.type.shape])
        return shape


def _rebuilt(memo: dict[Node, Node], size: Node) -> Node:
    """A size in terms of representatives. What loops and branches leave stays: with other sizes as operands they would
    be others, which nobody carries out."""
    if size not in memo:
        parts = reachable([size], lambda node: () if node.op is ITEM else node.args)
        memo.update({node: node for node in parts if node.op is ITEM and node not in memo})
    return rebuilt(memo, size)


def _rank(node: Node) -> tuple[int, int]:
    """Order of preference for a representative: numbers, then sizes of leaves, then the oldest expression."""
    return (0 if constant_value(node) is not None else 1 if node.op is SIZE else 2, node.serial)


def _holds(left: Node, relation: str, right: Node) -> bool:
    a, b = constant_value(left), constant_value(right)
    if a is None or b is None:
        return left is right and relation != "<"
    return bool({"==": a == b, "<=": a <= b, "<": a < b}[relation])


def size_up(written: Iterable[Node], made: Iterable[Node] = ()) -> Sizing:
    """The sizing of a graph, given all its nodes in topological order. `made`: nodes that rewriting added. They exist
    wherever the nodes that they replace exist, so only the sizes that they equate count, not their checks: the maximum
    taken out of a softmax does not forbid empty rows."""
    same: dict[Node, Node] = {}
    memo: dict[Node, Node] = {}
    checks: list[Guard] = []
    checked: set[tuple[Node, str, Node]] = set()
    guards = [guard for node in written for guard in node.op.guards(node)]
    guards += [guard for node in made for guard in node.op.guards(node) if guard.relation == "=="]
    for guard in guards:
        left, right = (_rebuilt(memo, as_size_node(side)) for side in (guard.left, guard.right))
        if _holds(left, guard.relation, right) or (left, guard.relation, right) in checked:
            continue
        checked.add((left, guard.relation, right))
        checks.append(guard)
        if guard.relation == "==":
            keep, drop = sorted((left, right), key=_rank)
            if constant_value(drop) is None:
                same = {old: _rebuilt({drop: keep}, new) for old, new in same.items()} | {drop: keep}
            memo = dict(same)
    return Sizing(without_implied(checks), same, dict(same))


def without_implied(checks: Sequence[Guard]) -> tuple[Guard, ...]:
    """Drop the checks that another check implies: of numbers below one size, only the largest is checked."""
    most: dict[tuple[str, Size], int] = {}
    for guard in checks:
        if isinstance(guard.left, int) and isinstance(guard.right, Node) and guard.relation != "==":
            known = most.get((guard.relation, guard.right))
            most[guard.relation, guard.right] = guard.left if known is None else max(guard.left, known)
    return tuple(g for g in checks if g.left == most.get((g.relation, g.right), g.left))


def all_nodes(outputs: Sequence[Node]) -> list[Node]:
    """Every node that `outputs` need, those that only sizes of types need included, in topological order."""
    roots = list(outputs)
    while True:
        nodes = nodes_of(roots)
        sizes = dict.fromkeys(size for node in nodes for size in type_sizes(node) if size.op is not SIZE)
        known = set(nodes)
        missing = [size for size in sizes if size not in known]
        if not missing:
            return nodes
        roots = [*roots, *missing]
