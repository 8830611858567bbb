"""Ranges of integers: of index arrays, and of the variables of a body, whose checks and choices they decide.

In: the graph of a step or branch, and the ranges of what it takes from around it. Out: the ranges of its variables; a
function from a size to its upper bound; a step without what its ranges decide. As an example, for 0 <= i < n in

    a[i] where i < 0 is counted from the end, with a check that the place is below n

the step number's range is (0, n - 1): the place is `i`, and there is no check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from graphc.arrays.dtypes import INTEGERS, can_cast_safely
from graphc.codegen.schedule.nodes import Sizing, lowering_of, segment_count
from graphc.codegen.schedule.plan import BranchGraph, Range, Ranges, ScanGraph
from graphc.ir import sizes
from graphc.ir.body import ITEM, guard_sides
from graphc.ir.lowering import Scalar
from graphc.ir.node import CONSTANT, INPUT, LEAVES, SHARED, SIZE, Guard, Node, Size, constant_value
from graphc.ir.walk import node_set, nodes_of, reachable, rebuilt, toposort
from graphc.loopir import ir
from graphc.ops.branch import SAME, bounding_operands, bounds_of as bounding_args, is_taken, results_of
from graphc.ops.index import never_negative
from graphc.startup.record import replace

# --- index arrays: which are known to lie within their axis, and which two comparisons of sizes may tell --------------
# In: a gather or scatter, an index array. Out: the axes that it indexes; bounds of the elements as sizes, None where
# none is found. As an example, of an index that is kept within an axis of `n` elements, and of one that a search has
# found:
#
#     bounds_of(clip(i, 1, n - 1) - 1, sizing)     == (minimum(1, n - 1) - 1, n - 2)
#     bounds_of(searchsorted(x, values), sizing)   == (0, n)

UNKNOWN: Range = (None, None)
DEEPEST = 8
"""The nesting of sums and extremes that is looked through."""
SAME_ELEMENTS = ("dimshuffle", "broadcast_to", "reshape", "stop_gradient", "subtensor")
"""Ops whose result has no other elements than their first argument."""


def gathered(node: Node) -> list[tuple[Node, Size]]:
    """The index arrays of a gather or scatter, each with the size of the axis it indexes."""
    if node.op.name not in ("gather", "set_gather", "inc_gather"):
        return []
    axis = node.attrs["axis"]
    indices = node.args[1:] if node.op.name == "gather" else node.args[2:]
    return [(index, node.args[0].type.shape[axis + n]) for n, index in enumerate(indices)]


def in_range(index: Node, size: Size, sizing: Sizing) -> bool:
    """Tell whether every element of an index array is known to lie within an axis."""
    low, high = bounds_of(index, sizing)
    if high is None or not sizes.known_at_least(size, sizes.add(high, 1)):
        return False
    return never_negative(index) or (low is not None and sizes.known_at_least(sizes.add(low, size), 0))


def comparable_bounds(index: Node, sizing: Sizing) -> tuple[Size, Size] | None:
    """Range that a call can compare with the size of an axis: they follow from the sizes of its arguments."""
    low, high = bounds_of(index, sizing)
    if low is None or high is None:
        return None
    nodes = reachable([bound for bound in (low, high) if isinstance(bound, Node)], lambda node: node.args)
    known = all(node.args or node.op is SIZE or constant_value(node) is not None for node in nodes)
    return (low, high) if known else None


def bounds_of(index: Node, sizing: Sizing, deepest: int = DEEPEST) -> Range:
    """Range of the elements of an array of integers."""
    while index.op.name in SAME_ELEMENTS or (
        index.op.name == "cast" and can_cast_safely(index.args[0].type.dtype, index.type.dtype)
    ):
        index = index.args[0]
    value = constant_value(index)
    if value is not None:
        return (int(value.min()), int(value.max())) if value.size else (0, -1)
    if index.type.dtype != ir.INDEX or not deepest:
        return UNKNOWN
    if index.ndim == 0 and sizes.known_nonnegative(index):
        size = sizing.of(index)
        return size, size
    source = index.args[0] if index.op is ITEM else index
    name = source.op.name
    if name in PLACES:
        return 0, sizes.add(PLACES[name](source, sizing), -1)
    combine = COMBINED.get(name) or OF_INDICES.get(name)
    if combine is None:
        return UNKNOWN
    args = index.args[1:] if name == "where" else index.args
    return combine(*(bounds_of(arg, sizing, deepest - 1) for arg in args))


def _reduced(node: Node, sizing: Sizing) -> Size:
    """The number of elements among which a reduction chooses."""
    shape = sizing.shape(node.args[0])
    return sizing.of(sizes.product(shape[axis] for axis in node.attrs["axes"]))


PLACES: dict[str, Callable[[Node, Sizing], Size]] = {
    "iota": lambda node, sizing: sizing.of(sizes.as_size(node.args[0])),
    "segment_of": lambda node, sizing: sizing.of(segment_count(node.args[0])),
    "argmax": _reduced,
    "argmin": _reduced,
    "argsort": lambda node, sizing: sizing.shape(node.args[0])[1],
    "argtop": lambda node, sizing: sizing.shape(node.args[0])[1],
    "lexorder": lambda node, sizing: sizing.shape(node.args[0])[0],
    "lu": lambda node, sizing: sizing.shape(node.args[0])[-2],
    "searchsorted_left": lambda node, sizing: sizes.add(sizing.shape(node.args[0])[0], 1),
    "searchsorted_right": lambda node, sizing: sizes.add(sizing.shape(node.args[0])[0], 1),
}
"""Ops whose elements, or integers among their results, are places: how many there are to be had."""


def _both(combine: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Size | None:
    return None if left is None or right is None else combine(left, right)


def _either(combine: Callable[[Size, Size], Size], left: Size | None, right: Size | None) -> Size | None:
    return right if left is None else left if right is None else combine(left, right)


def _minimum(left: Range, right: Range) -> Range:
    return _both(sizes.minimum, left[0], right[0]), _either(sizes.minimum, left[1], right[1])


def _maximum(left: Range, right: Range) -> Range:
    return _either(sizes.maximum, left[0], right[0]), _both(sizes.maximum, left[1], right[1])


def _remainder(left: Range, right: Range) -> Range:
    """Return the bounds of a remainder by a size: of Python's, which is not negative. By 0 it is 0."""
    low, high = right
    if low is None or high is None or not sizes.equal(low, high) or not sizes.known_nonnegative(low):
        return UNKNOWN
    return 0, sizes.maximum(sizes.add(low, -1), 0)


def _quotient(left: Range, right: Range) -> Range:
    """Return the bounds of a quotient of a number that is not negative by a size. By 0 it is 0."""
    (least, most), (low, high) = left, right
    if least is None or most is None or not sizes.known_nonnegative(least):
        return UNKNOWN
    if low is None or high is None or not sizes.equal(low, high) or not sizes.known_nonnegative(low):
        return UNKNOWN
    return 0, sizes.floor_divide(most, sizes.maximum(low, 1))


COMBINED: dict[str, Callable[..., Range]] = {
    "add": lambda a, b: (_both(sizes.add, a[0], b[0]), _both(sizes.add, a[1], b[1])),
    "sub": lambda a, b: (_both(sizes.subtract, a[0], b[1]), _both(sizes.subtract, a[1], b[0])),
    "minimum": _minimum,
    "maximum": _maximum,
    "where": lambda a, b: (_both(sizes.minimum, a[0], b[0]), _both(sizes.maximum, a[1], b[1])),
}
"""Ranges of the results of ops, by those of their arguments."""
OF_INDICES: dict[str, Callable[..., Range]] = {
    "clip": lambda x, low, high: _minimum(_maximum(x, low), high),
    "mod": _remainder,
    "floor_div": _quotient,
}
"""Those of index arrays besides."""


# --- ranges of the integers of a body ---------------------------------------------------------------------------------


def step_ranges(graph: ScanGraph, around: Ranges) -> Ranges:
    """The ranges of the variables of a step, from those of leaves of the graph around."""
    last = sizes.add(_positive(graph.most), -1)
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
    ranges = {**fixed, **known}
    for node in _bounding(nodes):
        if node not in ranges:
            exact = _is_argument(node, known)
            size = sizes.as_size(node) if exact else None
            ranges[node] = (size, size) if exact else _range(node, [ranges[arg] for arg in bounding_args(node)])
    return ranges


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
    return toposort([*nodes], bounding_args, lambda node: node.op.name)


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
    ranges = _ranges(results, known)
    least, most = ranges[results[0]]
    for other in [(0, 0), *(ranges[each] for each in results[1:])]:
        least, most = _both(sizes.minimum, least, other[0]), _both(sizes.maximum, most, other[1])
    return least, most


def _computed(name: str, args: Sequence[Range]) -> Range:
    """The range of the result of an op on int64, from those of its arguments."""
    if name in COMBINED:
        return COMBINED[name](*args)
    match name, args:
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


# --- what ranges decide -----------------------------------------------------------------------------------------------


def decided(graph: ScanGraph, known: Ranges, sizing: Sizing) -> ScanGraph:
    """A step without the checks that hold by the ranges of its variables, and without choices between integers that
    these ranges decide, as that of an index below 0."""
    sides = [side for guards in graph.guarded.values() for guard in guards for side in guard_sides(guard)]
    nodes = nodes_of([*graph.results, *graph.guarded, *sides])
    choices = [node for node in nodes if node.op.name == "where" and node.type.dtype == "int64" and not node.ndim]
    if not choices and not graph.guarded:
        return graph
    done: dict[Node, Node] = {}
    for node in choices:
        holds = _comparison(rebuilt(done, node.args[0]), known, sizing)
        if holds is not None:
            done[node] = rebuilt(done, node.args[1] if holds else node.args[2])
    if done:
        results = tuple([rebuilt(done, result) for result in graph.results])
        guarded = {
            rebuilt(done, node): tuple(
                replace(guard, left=_rebuilt(done, guard.left), right=_rebuilt(done, guard.right)) for guard in guards
            )
            for node, guards in graph.guarded.items()
        }
        graph = replace(graph, results=results, guarded=guarded)
    left = {
        node: tuple(guard for guard in guards if not _holds(guard, known, sizing))
        for node, guards in graph.guarded.items()
    }
    return replace(graph, guarded={node: guards for node, guards in left.items() if guards})


def _rebuilt(done: dict[Node, Node], size: Size) -> Size:
    return size if isinstance(size, int) else sizes.as_size(rebuilt(done, size))


def _comparison(condition: Node, known: Ranges, sizing: Sizing) -> bool | None:
    """The value of a comparison of two integers by their ranges; None where these leave it open."""
    if condition.op.name != "less" or any(arg.type.dtype not in INTEGERS for arg in condition.args):
        return None
    (least, most), (other_least, other_most) = (_bounds(arg, known, sizing) for arg in condition.args)
    if least is not None and other_most is not None and sizes.known_at_least(least, other_most):
        return False
    if most is not None and other_least is not None and _is_below(most, other_least):
        return True
    return None


def _holds(guard: Guard, known: Ranges, sizing: Sizing) -> bool:
    """True if a check holds by the ranges of what it compares."""
    (_, most), (least, _) = (_bounds(side, known, sizing) for side in (guard.left, guard.right))
    if most is None or least is None or guard.relation == "==":
        return False
    return _is_below(most, least) if guard.relation == "<" else sizes.known_at_least(least, most)


def _bounds(size: Size, known: Ranges, sizing: Sizing) -> Range:
    """The range of a number, in terms of representatives of sizes."""
    if isinstance(size, int):
        return size, size
    least, most = _ranges([size], known, _exact([size]))[size]
    return None if least is None else sizing.of(least), None if most is None else sizing.of(most)


def _is_below(left: Size, right: Size) -> bool:
    return sizes.known_at_least(right, sizes.add(left, 1))


def _positive(size: Size) -> Size:
    """A number of steps, if there is one: `n` of max(n, 0)."""
    if isinstance(size, Node) and size.op.name == "maximum" and constant_value(size.args[1]) == 0:
        return sizes.as_size(size.args[0])
    return size
