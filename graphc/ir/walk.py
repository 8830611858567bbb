"""Traversals and rebuilding of graphs, none of them recursive; tags of variables, which rebuilding keeps.

In: nodes (or anything else with predecessors). Out: topological orders, consumers, dependents, rebuilt nodes.

    nodes_of([exp(x) * 2])                      [x, exp(x), 2, exp(x) * 2]
    substitute([exp(x) * 2], {x: y})            [exp(y) * 2]

A tag is what a user notes at a variable (`x.tag.name = ...`). Nodes that stand for others have their tags. A body is
shared by all equal loops, so the tags inside it are stored on the node of each loop.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, KeysView, Mapping, Sequence
from operator import attrgetter, is_
from typing import Any, TypeVar

from graphc.arrays.array import Arrays
from graphc.errors import CycleError
from graphc.ir.node import SIZE, Body, Node, Size, literal, remade
from graphc.startup.record import record

Arrays.others = (Node,)

T = TypeVar("T", bound=Hashable)
V = TypeVar("V")

args_of = attrgetter("args")


@record()
class Graph:
    """Outputs, and the leaves they are computed from. `inputs` are in the order of a call's arguments."""

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def reachable(roots: Iterable[T], predecessors: Callable[[T], Iterable[T]]) -> list[T]:
    """`roots` and everything they depend on, in depth-first order of discovery."""
    return list(_needs(roots, predecessors))


def _needs(roots: Iterable[T], predecessors: Callable[[T], Iterable[T]]) -> dict[T, tuple[T, ...]]:
    """The predecessors of all that `roots` depend on, in order of discovery; one call of `predecessors` for each."""
    graph: dict[T, tuple[T, ...]] = {}
    pending = list(roots)[::-1]
    while pending:
        item = pending.pop()
        if item not in graph:
            needs = graph[item] = tuple(predecessors(item))
            pending += needs[::-1]
    return graph


def computed(table: dict[T, V], root: T, operands: Callable[[T], Iterable[T]], compute: Callable[[T], V]) -> V:
    """The value of `root`. A value that `table` lacks is computed after those of its operands, and noted there."""
    pending = [root]
    while pending:
        item = pending[-1]
        missing = [] if item in table else [each for each in operands(item) if each not in table]
        if not missing:
            pending.pop()
            if item not in table:
                table[item] = compute(item)
        pending += missing
    return table[root]


def toposort(
    roots: Iterable[T], predecessors: Callable[[T], Iterable[T]], describe: Callable[[T], str] = str
) -> list[T]:
    """`roots` and everything they depend on, in topological order (Kahn 1962). The order depends on the graph alone.

    Raises CycleError, which names the members of a cycle by `describe`.
    """
    needs = _needs(roots, predecessors)
    waiting: dict[T, int] = {}
    successors: dict[T, list[T]] = {item: [] for item in needs}
    for item, before in needs.items():
        once = dict.fromkeys(before) if len(before) > 1 else before
        waiting[item] = len(once)
        for need in once:
            successors[need].append(item)
    ready = [item for item in reversed(needs) if not waiting[item]]
    order: list[T] = []
    while ready:
        item = ready.pop()
        order.append(item)
        for successor in reversed(successors[item]):
            waiting[successor] -= 1
            if not waiting[successor]:
                ready.append(successor)
    if len(order) < len(needs):
        raise CycleError("the graph has a cycle: " + " -> ".join(map(describe, _cycle(waiting, predecessors))))
    return order


def _cycle(waiting: Mapping[T, int], predecessors: Callable[[T], Iterable[T]]) -> list[T]:
    """One cycle among the items that never became ready; its first item is repeated at the end."""
    blocked = {item for item, count in waiting.items() if count}
    path: dict[T, None] = {}
    item = next(iter(blocked))
    while item not in path:
        path[item] = None
        item = next(p for p in predecessors(item) if p in blocked)
    members = list(path)
    return [*members[members.index(item) :], item][::-1]


def nodes_of(outputs: Iterable[Node]) -> list[Node]:
    """All nodes that `outputs` depend on, in topological order."""
    return toposort(outputs, args_of, lambda node: node.op.name)


def node_set(outputs: Iterable[Node]) -> KeysView[Node]:
    """All nodes that `outputs` depend on, in no particular order: a third of the cost of `nodes_of`."""
    return _needs(outputs, args_of).keys()


def nodes_since(outputs: Iterable[Node], since: int) -> list[Node]:
    """The nodes that `outputs` depend on, in topological order, down to those with serial numbers below `since`."""
    return toposort(outputs, lambda node: node.args if node.serial >= since else (), lambda node: node.op.name)


def dependents(order: Iterable[Node], roots: Iterable[Node]) -> set[Node]:
    """`roots`, and the nodes of a topological order that depend on them."""
    dependent = set(roots)
    for node in order:
        if not dependent.isdisjoint(node.args):
            dependent.add(node)
    return dependent


def mention(nodes: Iterable[Node]) -> None:
    """Mark `nodes` and their dependencies as used by the program, for answers that do not contain them: static sizes,
    or the derivative of 3 * x. Each node is visited once in its life."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if not node.mentioned:
            node.mentioned = True
            pending += node.args


def type_sizes(node: Node) -> list[Node]:
    """The sizes of a node's type that are nodes."""
    return [size for size in node.type.shape if isinstance(size, Node)]


def consumers(outputs: Iterable[Node]) -> dict[Node, list[tuple[Node, int]]]:
    """For each node that `outputs` depend on: the nodes that take it, and the position of that argument."""
    order = nodes_of(outputs)
    taken: dict[Node, list[tuple[Node, int]]] = {node: [] for node in order}
    for node in order:
        for position, arg in enumerate(node.args):
            taken[arg].append((node, position))
    return taken


def leaf_sizes(before: Node, after: Node) -> dict[Node, Node]:
    """The size leaves of `before`, mapped to the sizes of `after`, which replaces it."""
    return {
        old: as_size_node(new)
        for old, new in zip(before.type.shape, after.type.shape, strict=True)
        if isinstance(old, Node) and old.op is SIZE and old is not new
    }


def as_size_node(size: Size) -> Node:
    """A size as a node: a number becomes an int64 constant."""
    return size if isinstance(size, Node) else literal(size, "int64")


def substitute(outputs: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """`outputs` with nodes replaced. Types are inferred anew; replacing a leaf also replaces its size leaves."""
    done: dict[Node, Node] = dict(replacements)
    for before, after in replacements.items():
        if not before.args and before.op is not SIZE and before.ndim == after.ndim:
            done |= {old: new for old, new in leaf_sizes(before, after).items() if old not in replacements}
    return [rebuilt(done, node) for node in outputs]


def rebuilt(done: dict[Node, Node], root: Node, since: int = 0) -> Node:
    """`root` rebuilt over the replacements in `done`, which memoises. Nodes older than `since` are kept as they are."""
    pending = [root]
    while pending:
        node = pending[-1]
        if node in done:
            pending.pop()
            continue
        if node.serial < since:
            done[pending.pop()] = node
            continue
        missing = [arg for arg in node.args if arg not in done]
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        args = tuple([done[arg] for arg in node.args])
        done[node] = node if all(map(is_, args, node.args)) else renamed(remade(node, args), node)
    return done[root]


def renamed(new: Node, old: Node) -> Node:
    """`new` with the name of `old` if it has none, and with its user line unless its own has the words of a check."""
    if new.args and new.name is None and old.name is not None:
        new.name = old.name
    if old.where is not None and (new.where is None or new.where.words is None):
        new.where = old.where
    return new


# --- tags -------------------------------------------------------------------------------------------------------------


WITHIN = "_tags_within"
"""The attribute of a loop's node that stores the tags of the nodes in its body."""


def tags_of(node: Node) -> dict[str, Any]:
    """The tags of a node without its test value, which is recomputed."""
    kept = vars(node.tag) if "tag" in node.__dict__ else {}
    return {name: value for name, value in kept.items() if name != "test_value"}


def _carry(old: Node, new: Node) -> None:
    """Copy the tags of the replaced node to its replacement, which keeps its own tags of the same name."""
    if kept := tags_of(old):
        vars(new.tag).update({**kept, **vars(new.tag)})
    if WITHIN in old.__dict__:
        new.__dict__.setdefault(WITHIN, old.__dict__[WITHIN])


def with_tags(outputs: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """`outputs` with nodes replaced; rebuilt nodes keep the tags of the nodes they replace."""
    order = nodes_of(outputs)
    replaced = dict(zip(order, substitute(order, replacements), strict=True))
    for old, new in replaced.items():
        if new is not old and old not in replacements:
            _carry(old, new)
    return [replaced[node] for node in outputs]


def store_step_tags(loop: Node, results: Sequence[Node], body: Body) -> None:
    """Store on a loop's node the tags of its step as the program wrote it. `results` of the step correspond to the
    results of `body`."""
    originals: dict[Node, Node] = {}
    seen: set[Node] = set()
    pending = list(zip(results, body.results, strict=True))
    while pending:
        old, new = pending.pop()
        if old in seen or old.op is not new.op or len(old.args) != len(new.args):
            continue
        seen.add(old)
        pending += zip(old.args, new.args, strict=True)
        if tags_of(old) or WITHIN in old.__dict__:
            originals[new] = old
    if originals:
        loop.__dict__[WITHIN] = {new: (tags_of(old), old.__dict__.get(WITHIN)) for new, old in originals.items()}


def restore_step_tags(loop: Node, operands: Mapping[Node, Node], since: int) -> None:
    """Give the nodes of an opened step the tags stored on the loop's node. `operands` replace the body's parameters;
    nodes older than serial number `since` are left alone."""
    kept = loop.__dict__.get(WITHIN, {})
    for new, (tags, within) in zip(substitute([*kept], operands), kept.values(), strict=True):
        if new.serial < since:
            continue
        vars(new.tag).update({**tags, **vars(new.tag)})
        if within is not None:
            new.__dict__.setdefault(WITHIN, within)
