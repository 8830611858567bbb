"""The sizes that are equal, and the guards that must be checked before a run.

In: a graph. Out: `Sizing`: the guards that remain to be checked at run time, and for every size its one representative,
so that the scheduler sees equal loops as equal. As an example, of `x + y` for vectors there is one guard,
`x.shape[0] == y.shape[0]`, and `sizing.of(y.shape[0])` is `x.shape[0]`. A size proved equal by a guard may stand for
the other everywhere, because no kernel runs before its guards have been checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.ir.body import ITEM
from graphc.ir.node import SIZE, Guard, Node, Size, constant_value
from graphc.ir.walk import as_size_node, nodes_of, reachable, rebuilt, type_sizes
from graphc.startup.record import fresh, record


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
        found = self._shapes.get(node)
        if found is None:
            found = self._shapes[node] = tuple([self.of(size) for size in node.type.shape])
        return found


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
