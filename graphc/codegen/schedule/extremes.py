"""The most that a size may be which changes from step to step, so that memory for it can be had before the loop.

In: the graph of a step, and sizes in it. Out: sizes of the graph around that are no less in any step. The values of
int64 nodes, elements of arrays too, lie between a least and a most, which follow from those of their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from graphc.arrays.dtypes import INTEGERS
from graphc.codegen.schedule.plan import BranchGraph, Range, Ranges, StepGraph, lowering_of
from graphc.ir import sizes
from graphc.ir.body import ITEM
from graphc.ir.lowering import Scalar
from graphc.ir.node import CONSTANT, INPUT, LEAVES, SHARED, SIZE, Node, Size, constant_value
from graphc.ir.walk import node_set, toposort
from graphc.ops.given import SAME, bounding_operands, bounds_of, is_taken, results_of


def step_ranges(graph: StepGraph, around: Ranges) -> Ranges:
    """The ranges of what a step is given, from those of leaves of the graph around."""
    last = sizes.maximum(sizes.add(graph.most, -1), 0)
    states = dict.fromkeys(graph.states, (None, None))
    return {**_given(graph.sources, graph.scalars, around), graph.number: (0, last), **states}


def branch_ranges(graph: BranchGraph, around: Ranges) -> Ranges:
    """The ranges of what the bodies of a branch are given, from those of leaves of the graph around."""
    return _given(graph.sources, graph.scalars, around)


def _given(sources: Mapping[Node, Node], scalars: Mapping[Node, Node], around: Ranges) -> Ranges:
    outside = {leaf: node for leaf, node in (*scalars.items(), *sources.items()) if node.dtype in INTEGERS}
    known = _ranges([*outside.values()], around, _exact(outside.values()))
    return {**around, **{leaf: known[node] for leaf, node in outside.items()}}


def most_of(known: Ranges) -> Callable[[Size], Size]:
    """What tells the most that a size may be, given ranges of what it is computed from; sizes of which nothing is known
    are left as they are."""

    def most(size: Size) -> Size:
        if isinstance(size, int):
            return size
        bound = _ranges([size], known, _exact([size]))[size][1]
        return size if bound is None else sizes.maximum(bound, 0)

    return most


def _exact(nodes: Iterable[Node]) -> dict[Node, Range]:
    """The scalars that these are computed from."""
    leaves = [node for node in _bounding(nodes) if node.op in LEAVES and not node.ndim]
    return {leaf: (sizes.as_size(leaf), sizes.as_size(leaf)) for leaf in leaves if leaf.dtype in INTEGERS}


def _ranges(nodes: Sequence[Node], known: Ranges, fixed: Mapping[Node, Range] = {}) -> dict[Node, Range]:
    """The ranges of nodes and of what bounds them, from those of leaves: of what a body is given, and of what is the
    same in and around it."""
    found = {**fixed, **known}
    for node in _bounding(nodes):
        if node not in found:
            exact = _is_given(node, known)
            size = sizes.as_size(node) if exact else None
            found[node] = (size, size) if exact else _range(node, [found[arg] for arg in bounds_of(node)])
    return found


def _is_given(node: Node, known: Ranges) -> bool:
    """Whether a scalar is computed from arguments of the kernel, element by element, and from nothing else."""
    if node.dtype != "int64" or node.ndim:
        return False
    for each in node_set([node]):
        leaf = each.op in (SIZE, CONSTANT, INPUT, SHARED) and each not in known and not each.ndim
        if not (leaf or (each.args and isinstance(lowering_of(each), Scalar))):
            return False
    return True


def _bounding(nodes: Iterable[Node]) -> list[Node]:
    """What nodes are bounded by, each after what it is bounded by itself."""
    return toposort([*nodes], bounds_of, lambda node: node.op.name)


def _range(node: Node, args: Sequence[Range]) -> Range:
    value = constant_value(node)
    if node.dtype not in INTEGERS:
        return None, None
    if value is not None:
        return (int(value.min()), int(value.max())) if value.size else (0, 0)
    name = node.op.name
    if node.op is ITEM:
        return (0, args[0][1]) if is_taken(node) else _of_results(node, args)
    if name == "iota":
        return 0, _both(sizes.maximum, _both(sizes.add, args[0][1], -1), 0)
    if name in SAME or (name == "cast" and node.dtype == "int64"):
        return args[0]
    return _computed(name, args) if node.dtype == "int64" else (None, None)  # others may overflow


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
