"""The bodies of scans and branches as graphs that are planned like any other, and the upper bounds of their sizes.

In: the node of a scan or branch. Out: a `ScanGraph` or `BranchGraph`: the bodies over variables. What lies in memory is
a variable, which lowering gives the buffer; an element of a sequence is a view of one, at the row of the step; sizes
are those of the graph around, so that what is known of them holds inside. As an example, of the scan
`scan(lambda x, s: s + x * w, sequences=xs, outputs_info=s0, non_sequences=w)` over vectors the graph is

    sources = {xs': xs, w': w}    states = (s',)    results = (s' + xs'[step] * w',)

Memory for a size that changes from step to step must be had before the loop. `upper_bound_of` gives a size of the graph
around that it never exceeds: integer nodes lie in ranges that follow from those of their arguments, so `step + 1` lies
between 1 and the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from graphc.arrays.dtypes import INTEGERS
from graphc.codegen.schedule.cost import work_of
from graphc.codegen.schedule.nodes import is_bufferless, lowering_of
from graphc.codegen.schedule.plan import BranchBody, BranchGraph, Range, Ranges, ScanGraph
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir import sizes
from graphc.ir.body import ITEM, guard_sides, guards_of, opened, split_guards
from graphc.ir.lowering import Scalar
from graphc.ir.node import (
    CONSTANT,
    INPUT,
    LEAVES,
    PARAM,
    SHARED,
    SIZE,
    Body,
    Guard,
    Node,
    Size,
    constant_value,
    make,
    size_leaf,
    variable,
)
from graphc.ir.walk import dependents, node_set, nodes_of, substitute, toposort, type_sizes
from graphc.ops.branch import SAME, bounding_operands, bounds_of, given_sizes, is_counted, is_taken, results_of
from graphc.ops.index import subtensor
from graphc.ops.scan import loop_of, outside_shape
from graphc.ops.shape import drop
from graphc.startup.record import fresh, record, replace

VIEWS = ("dimshuffle", "broadcast_to", "subtensor")
"""Ops that show a part of what lies in memory."""


COUNTING = ("cast", "reshape")
"""Ops of an iota of which an element costs no more than the iota's: random numbers are functions of such."""


@record(frozen=False)
class StandIns:
    """Variables that stand in a body for what it takes from outside. Their sizes are numbers where `sizing` knows them:
    products of small matrices are then no calls."""

    sizing: Sizing
    sources: dict[Node, Node] = fresh(factory=dict)
    scalars: dict[Node, Node] = fresh(factory=dict)
    made: dict[Node, Node] = fresh(factory=dict)

    def of(self, operand: Node) -> Node:
        """The variable that stands for an operand."""
        if operand not in self.made:
            self.made[operand] = self._array(operand) if operand.ndim else self._scalar(operand)
        return self.made[operand]

    def _scalar(self, operand: Node) -> Node:
        if is_size(operand):
            return operand
        leaf = Node(PARAM, (), {"type": operand.type, "natural": False}, operand.type, operand.name)
        self.scalars[leaf] = operand
        return leaf

    def _array(self, operand: Node) -> Node:
        if operand.op.name in VIEWS:
            return make(operand.op, [self.of(arg) for arg in operand.args], operand.attrs)
        counted = operand
        while counted.op.name in COUNTING:
            counted = counted.args[0]
        if counted.op.name == "iota" or (operand.op is CONSTANT and is_bufferless(operand)):
            return operand
        source = operand
        while source.op.name == "reshape":
            source = source.args[0]
        if source.op in LEAVES and is_bufferless(source):
            source = operand
        leaf = variable(operand.type.dtype, known_sizes(operand.type.shape, self.sizing), operand.name)
        self.sources[leaf] = source
        return leaf


def known_sizes(shape: Sequence[Size], sizing: Sizing) -> tuple[Size, ...]:
    """A shape, with numbers for the sizes that must be equal to one."""
    known = [sizing.of(size) for size in shape]
    return tuple(each if isinstance(each, int) else size for each, size in zip(known, shape, strict=True))


def is_size(node: Node) -> bool:
    """Tell whether a scalar is computed from sizes and numbers alone: it means the same in a body as outside."""
    nodes = node_set([node])
    return all(is_counted(each) if each.args else each.op in (SIZE, CONSTANT) for each in nodes)


def scan_graph(node: Node, sizing: Sizing) -> ScanGraph:
    """The graph of one step of a scan."""
    loop, number, outer = loop_of(node.args, node.attrs), size_leaf("step", 0), StandIns(sizing)
    known = [size for size in given_sizes(node) if all(each.op is not ITEM for each in node_set([size]))]

    def inner(operand: Node) -> Node:
        return operand if operand in known else outer.of(operand)

    most = _most_steps(loop.count, loop.limit)
    row: Size = number
    if loop.repeat.reverse:
        count = _most_steps(inner(loop.count), None if loop.limit is None else inner(loop.limit))
        row = sizes.subtract(sizes.add(count, -1), number)
    elements = [_row(outer.of(sequence), row) for sequence in loop.sequences]
    shapes = [known_sizes(outside_shape(loop, state), sizing) for state in loop.states]
    states = tuple(variable(s.type.dtype, shape, s.name) for s, shape in zip(loop.states, shapes, strict=True))
    operands = (*elements, *states, *map(inner, loop.constants))
    _, checks = split_guards(loop.body, (*loop.elements, *loop.states))
    needed = (each for node_, guard in checks for each in (node_, *guard_sides(guard)))
    wanted = list(dict.fromkeys((*loop.body.results, *needed)))
    inside = dict(zip(wanted, substitute(wanted, dict(zip(loop.body.params, operands, strict=True))), strict=True))
    guarded: dict[Node, tuple[Guard, ...]] = {}
    for each, guard in checks:
        left, right = (sizes.as_size(inside[s]) if isinstance(s, Node) else s for s in (guard.left, guard.right))
        guarded[inside[each]] = (*guarded.get(inside[each], ()), replace(guard, left=left, right=right))
    results = tuple(inside[result] for result in loop.body.results)
    work = work_of(results, (number, *states, *outer.sources, *outer.scalars))
    return ScanGraph(node, loop, number, most, row, outer.sources, outer.scalars, states, results, guarded, work)


def _most_steps(count: Node, limit: Node | None) -> Size:
    """The number of steps that there are at most."""
    most = sizes.as_size(count)
    return most if limit is None else sizes.maximum(sizes.minimum(most, sizes.as_size(limit)), 0)


def _row(sequence: Node, row: Size) -> Node:
    """A row of a sequence, as a view."""
    rest = sequence.type.shape[1:]
    part = subtensor(sequence, (row, *(0 for _ in rest)), (1, *rest), tuple(1 for _ in sequence.type.shape))
    return drop(part, (0,))


def scan_sizes(graph: ScanGraph) -> list[Node]:
    """The sizes that a scan needs: of its steps, and of what a step computes as far as these are known outside."""
    loop = graph.loop
    own = (graph.most, loop.limit, None if graph.is_short else graph.interval)
    inside = (graph.number, *graph.states, *graph.sources, *graph.scalars)
    return [*(size for size in own if isinstance(size, Node)), *known_outside(sizes_within(graph.results), inside)]


def known_outside(sizes_: Sequence[Node], inside: Sequence[Node]) -> list[Node]:
    """The sizes that depend on none of a body's variables."""
    varying = dependents(nodes_of(sizes_), inside)
    return [size for size in sizes_ if size not in varying]


def sizes_within(results: Sequence[Node]) -> list[Node]:
    """The sizes of all that results need."""
    return list(dict.fromkeys(size for node in nodes_of(results) for size in type_sizes(node) if size.op is not SIZE))


def branch_graph(node: Node, sizing: Sizing) -> BranchGraph:
    """The graphs of both bodies of a branch."""
    outer, sizes_ = StandIns(sizing), given_sizes(node)
    operands = [operand if operand in sizes_ else outer.of(operand) for operand in node.args[1:]]

    def side(body: Body) -> BranchBody:
        checks = guards_of(body) if body.checks is None else body.checks
        sides = list(dict.fromkeys(each for guard in checks for each in guard_sides(guard)))
        replaced = dict(zip(body.params, operands, strict=True))
        results, compared = opened(body, operands), dict(zip(sides, substitute(sides, replaced), strict=True))

        def inside(size: Size) -> Size:
            return sizes.as_size(compared[size]) if isinstance(size, Node) else size

        guards = (replace(guard, left=inside(guard.left), right=inside(guard.right)) for guard in checks)
        return BranchBody(tuple(results), tuple(guard for guard in guards if not _holds(guard, sizing)))

    return BranchGraph(node, outer.sources, outer.scalars, (side(node.attrs["then"]), side(node.attrs["orelse"])))


def _holds(guard: Guard, sizing: Sizing) -> bool:
    """Tell whether a guard is known to hold."""
    left, right = sizing.of(guard.left), sizing.of(guard.right)
    if isinstance(left, int) and isinstance(right, int):
        return {"==": left == right, "<=": left <= right, "<": left < right}[guard.relation]
    return guard.relation != "<" and sizes.equal(left, right)


def branch_sizes(graph: BranchGraph) -> list[Node]:
    """The sizes of what the bodies compute, and those that they compare, as far as these are known outside."""
    compared = [each for side in graph.sides for guard in side.checks for each in guard_sides(guard)]
    computed = [size for side in graph.sides for size in sizes_within(side.results)]
    return known_outside([*computed, *compared], (*graph.sources, *graph.scalars))


# Upper bounds --------------------------------------------------------------------------------------------------------


def step_ranges(graph: ScanGraph, around: Ranges) -> Ranges:
    """The ranges of the variables of a step, from those of leaves of the graph around."""
    last = sizes.maximum(sizes.add(graph.most, -1), 0)
    states = dict.fromkeys(graph.states, (None, None))
    return {**_ranges_outside(graph.sources, graph.scalars, around), graph.number: (0, last), **states}


def branch_ranges(graph: BranchGraph, around: Ranges) -> Ranges:
    """The ranges of the variables of a branch, from those of leaves of the graph around."""
    return _ranges_outside(graph.sources, graph.scalars, around)


def _ranges_outside(sources: Mapping[Node, Node], scalars: Mapping[Node, Node], around: Ranges) -> Ranges:
    """The ranges of variables that stand for integers outside."""
    outside = {leaf: node for leaf, node in (*scalars.items(), *sources.items()) if node.type.dtype in INTEGERS}
    known = _ranges([*outside.values()], around, _exact(outside.values()))
    return {**around, **{leaf: known[node] for leaf, node in outside.items()}}


def upper_bound_of(known: Ranges) -> Callable[[Size], Size]:
    """A function from a size to its upper bound, which follows from the ranges of what it is computed from; a size of
    which nothing is known stays as it is."""

    def bound_of(size: Size) -> Size:
        if isinstance(size, int):
            return size
        bound = _ranges([size], known, _exact([size]))[size][1]
        return size if bound is None else sizes.maximum(bound, 0)

    return bound_of


def _exact(nodes: Iterable[Node]) -> dict[Node, Range]:
    """The scalars that these are computed from."""
    leaves = [node for node in _bounding(nodes) if node.op in LEAVES and not node.ndim]
    return {leaf: (sizes.as_size(leaf), sizes.as_size(leaf)) for leaf in leaves if leaf.type.dtype in INTEGERS}


def _ranges(nodes: Sequence[Node], known: Ranges, fixed: Mapping[Node, Range] = {}) -> dict[Node, Range]:
    """The ranges of nodes and of what bounds them, from those of leaves: of the variables of a body, and of what is the
    same in and around it."""
    found = {**fixed, **known}
    for node in _bounding(nodes):
        if node not in found:
            exact = _is_argument(node, known)
            size = sizes.as_size(node) if exact else None
            found[node] = (size, size) if exact else _range(node, [found[arg] for arg in bounds_of(node)])
    return found


def _is_argument(node: Node, known: Ranges) -> bool:
    """Tell whether a scalar is computed from arguments of the kernel, element by element, and from nothing else."""
    if node.type.dtype != "int64" or node.ndim:
        return False
    for each in node_set([node]):
        leaf = each.op in (SIZE, CONSTANT, INPUT, SHARED) and each not in known and not each.ndim
        if not (leaf or (each.args and isinstance(lowering_of(each), Scalar))):
            return False
    return True


def _bounding(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that bound some nodes, each after those that bound it itself."""
    return toposort([*nodes], bounds_of, lambda node: node.op.name)


def _range(node: Node, args: Sequence[Range]) -> Range:
    """The range of a node, from those of the nodes that bound it."""
    value = constant_value(node)
    if node.type.dtype not in INTEGERS:
        return None, None
    if value is not None:
        return (int(value.min()), int(value.max())) if value.size else (0, 0)
    name = node.op.name
    if node.op is ITEM:
        return (0, args[0][1]) if is_taken(node) else _of_results(node, args)
    if name == "iota":
        return 0, _both(sizes.maximum, _both(sizes.add, args[0][1], -1), 0)
    if name in SAME or (name == "cast" and node.type.dtype == "int64"):
        return args[0]
    return _computed(name, args) if node.type.dtype == "int64" else (None, None)  # others may overflow


def _of_results(node: Node, args: Sequence[Range]) -> Range:
    """The range of a result of a loop or branch, from those of what bounds it."""
    results = results_of(node)
    if not results:
        return None, None
    known = dict(zip((param for param, _ in bounding_operands(node)), args, strict=True))
    found = _ranges(results, known)
    least, most = found[results[0]]
    for other in [(0, 0), *(found[each] for each in results[1:])]:
        least, most = _both(sizes.minimum, least, other[0]), _both(sizes.maximum, most, other[1])
    return least, most


def _computed(name: str, args: Sequence[Range]) -> Range:
    """The range of the result of an op on int64, from those of its arguments."""
    match name, args:
        case "add", [(a, b), (c, d)]:
            return _both(sizes.add, a, c), _both(sizes.add, b, d)
        case "sub", [(a, b), (c, d)]:
            return _both(sizes.subtract, a, d), _both(sizes.subtract, b, c)
        case "minimum", [(a, b), (c, d)]:
            return _both(sizes.minimum, a, c), _either(sizes.minimum, b, d)
        case "maximum", [(a, b), (c, d)]:
            return _either(sizes.maximum, a, c), _both(sizes.maximum, b, d)
        case "where", [(a, b), (c, d)]:
            return _both(sizes.minimum, a, c), _both(sizes.maximum, b, d)
        case "mul", [(a, b), (c, d)] if _is_natural(a) and _is_natural(c):
            return _both(sizes.multiply, a, c), _both(sizes.multiply, b, d)
        case "sqr", [(a, b)] if _is_natural(a):
            return _both(sizes.multiply, a, a), _both(sizes.multiply, b, b)
        case "floor_div", [(a, b), (int(c), int(d))] if c == d > 0:
            return _both(sizes.floor_divide, a, c), _both(sizes.floor_divide, b, c)
        case "mod", [(c, d)] if _is_natural(c):  # bounded by what it is divided by alone
            return 0, d
    return None, None


def _is_natural(size: Size | None) -> bool:
    return size is not None and sizes.known_nonnegative(size)


def _both(op: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Size | None:
    return None if left is None or right is None else op(left, right)


def _either(op: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Size | None:
    return op(left, right) if left is not None and right is not None else right if left is None else left
