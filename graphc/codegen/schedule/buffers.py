"""The buffer of every value: of results, temporaries, accumulators and workspaces.

In: nests that share loops, the values that share a buffer since each is made over the one before (inplace.py), and
where results go. Out: `Buffers`: results under their names, and what needs memory of the arena, with its life, which
memory.py lays out. As an example, of `out = (x @ w).sum(axis=0)` in float32 the product needs memory of the arena from
the call to the sum, the sum a row of float64 to add rows into, and `out` has a buffer of the caller.

A buffer that loops add rows into is known as a target (`Target`): threads then have copies of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from graphc.codegen.schedule.fusion import Sharing
from graphc.codegen.schedule.materialize import Nests
from graphc.codegen.schedule.memory import Added, Temporary, added_by_both
from graphc.codegen.schedule.nodes import call_node, call_of, first_reduced, lowering_of
from graphc.codegen.schedule.plan import Nest, nests_of
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir.lowering import Fold, Recur, Workspace, Writes
from graphc.ir.node import Node, Size
from graphc.loopir.ir import INDEX, ONE, Buffer, Expr, Target, Var, apply, integer, multiply
from graphc.loopir.operators import MAXIMUM
from graphc.startup.record import record

CHUNK_RATIO = 8
"""A chunk adds at least this multiple of the elements that its copy has: filling and combining copies takes a small
part of the time, and they of the memory that the loop reads."""


def row_sum(length: Expr) -> Target:
    """A buffer to which every iteration adds a row."""
    return Target(length, integer(CHUNK_RATIO))


def table_of_sums(length: Expr, places: Expr) -> Target:
    """A table of `places` rows, to one of which each iteration adds a row."""
    return Target(length, apply(MAXIMUM, multiply(integer(CHUNK_RATIO), places), ONE), is_table=True)


def added_by(node: Node, nest: Nest, size_names: Mapping[Node, str], sizing: Sizing) -> Added | None:
    """The target of loops that add a value of a nest, where threads may have copies of it."""
    match nest.kind:
        case "column reduction":
            return _added_row(node, nest, size_names, sizing)
        case "writes":
            return _table(node, size_names, sizing)
    return None


def _added_row(node: Node, nest: Nest, size_names: Mapping[Node, str], sizing: Sizing) -> Added | None:
    """The result of a column reduction to which every iteration of its outermost loop adds."""
    length = length_of(sizing.shape(node), size_names)
    return None if first_reduced(node) or length is None else (row_sum(length), nest.space[0])


def _table(node: Node, size_names: Mapping[Node, str], sizing: Sizing) -> Added | None:
    """A table to which rows are added at places of their own."""
    lowering, shape = node.op.lower(node), sizing.shape(node)
    assert isinstance(lowering, Writes)
    for region in lowering.regions(node):
        if not region.accumulate or not region.sizes:
            continue
        rows, *row = map(sizing.of, region.sizes)
        places = shape[: len(shape) - len(row)]
        length, count = length_of(shape, size_names), length_of(places, size_names)
        if (*places, *row) == shape and rows not in places and length is not None and count is not None:
            return table_of_sums(length, count), rows
    return None


def row_length(shape: Sequence[Size], size_names: Mapping[Node, str]) -> Expr | None:
    """The length of a row along one axis, where that is an argument of the kernel."""
    sides = [size for size in shape if size != 1]
    return length_of(sides, size_names) if len(sides) == 1 else None


def length_of(shape: Sequence[Size], size_names: Mapping[Node, str]) -> Expr | None:
    """A number of elements as a product of numbers and arguments of the kernel."""
    length: Expr = ONE
    for size in shape:
        if not isinstance(size, int) and size not in size_names:
            return None
        length = multiply(length, integer(size) if isinstance(size, int) else Var(size_names[size], INDEX))
    return length


# The buffers of a plan ------------------------------------------------------------------------------------------------


@record()
class Buffers:
    """The buffers of a plan before its arena is laid out.

    `temporaries`: what lies in the arena, and for each of them in `owners` the node, and the role: "value",
    "accumulator", or "workspace" with its number. `results`: the buffers of targets; `iterations`: for those that loops
    add into, how many iterations these have at most.
    """

    temporaries: Sequence[Temporary]
    owners: Sequence[tuple[Node, str]]
    results: Mapping[Node, Buffer]
    iterations: Mapping[Buffer, Size]


def buffers_of(
    nests: Nests,
    sharing: Sharing,
    chained: Mapping[Node, Sequence[Node]],
    whole: frozenset[Node],
    size_names: Mapping[Node, str],
) -> Buffers:
    """The buffers of what nests write. chained: for values that share a buffer all that do, in order; whole: values
    that keep a buffer of all their elements."""
    sizing, targets = nests.goals.sizing, nests.goals.targets
    position = {nest.number: place for place, part in enumerate(sharing.parts) for nest in nests_of(part)}
    temporaries: list[Temporary] = []
    owners: list[tuple[Node, str]] = []
    results: dict[Node, Buffer] = {}
    iterations: dict[Buffer, Size] = {}
    added_to: dict[Node, Added | None] = {}  # of a chain, by its first value

    def keep(node: Node, role: str, temporary: Temporary) -> None:
        temporaries.append(temporary)
        owners.append((node, role))

    ordered = [nest for part in sharing.parts for nest in nests_of(part)]
    writers = {node: nest for nest in ordered for node in nest.roots}
    for nest in ordered:
        now = position[nest.number]
        for node in nest.roots:
            chain = chained.get(node, (node,))
            depth, lowering = sharing.depths[node], lowering_of(node)
            shape = sizing.shape(node)[depth:]
            if node in sharing.blocks:
                shape = (sharing.blocks[node], *shape[1:])
            rows, row = (sizing.shape(node)[0], row_length(shape, size_names)) if depth else (None, None)
            if chain[0] not in added_to:
                writing = [each for each in chain if writers[each].kind == "writes"] or chain
                found = (added_by(each, writers[each], size_names, sizing) for each in writing)
                added_to[chain[0]] = reduce(added_by_both, found)
            added = added_to[chain[0]]
            wide = (
                lowering.dtypes[0]
                if isinstance(lowering, Fold) and nest.kind == "column reduction"
                else node.type.dtype
            )
            own = added if wide == node.type.dtype else None
            if chain[-1] in targets:
                results[node] = Buffer(targets[chain[-1]], node.dtype, target=own[0] if own else None)
                iterations.update({results[node]: own[1]} if own else {})
            elif node is chain[0] and not is_local(nest, node, depth, whole):
                uses = [position[use.nest] for use in nests.uses.of_stored[chain[-1]]]
                last = max([position[writers[chain[-1]].number], *uses])  # it is written, though nobody may read it
                keep(node, "value", Temporary(node.dtype, shape, now, last, rows, own, row))
            if wide != node.type.dtype:
                keep(node, "accumulator", Temporary(wide, shape, now, now, rows, added, row))
            if isinstance(lowering, Recur) and lowering.axis != node.ndim - 1:
                carry = Temporary(lowering.dtype, sizing.shape(node)[lowering.axis + 1 :], now, now)
                keep(node, "accumulator", carry)
        for number, space in enumerate(workspaces_of(nest)):
            shape = tuple(map(sizing.of, space.shape))
            keep(call_node(nest.roots[0]), f"workspace {number}", Temporary(space.dtype, shape, now, now))
    return Buffers(temporaries, owners, results, iterations)


def workspaces_of(nest: Nest) -> list[Workspace]:
    """The memory that the function of a call needs while it runs."""
    if nest.kind != "call":
        return []
    call, node = call_of(nest.roots[0]), call_node(nest.roots[0])
    return [] if call is None else [each for each in call.passed(node) if isinstance(each, Workspace)]


def is_local(nest: Nest, node: Node, depth: int, whole: frozenset[Node]) -> bool:
    """Tell whether a value is a name in the source: a scalar, or made and read in one iteration of all its loops."""
    if node in whole or nest.kind not in ("loops", "full reduction"):
        return False
    return not node.ndim or depth == node.ndim
