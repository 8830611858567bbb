"""What only one branch needs is moved into it, so that it is computed only where that branch is taken.

In: nodes. Out: equal nodes, in which everything stands in the innermost bodies that need it.

A node is demanded where a root cannot be computed without it. Of a `cond` these are its condition and what both its
branches demand; whatever else a branch needs is computed within that branch, in each of several that need it. Branches
of one condition of which none needs another become one, and results that nobody needs go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from graphc.ir.body import ITEM, bodies_of, item, make_body, needed_of, opened
from graphc.ir.node import OPS, Body, Node, literal, make
from graphc.ir.walk import node_set, nodes_of, reachable, rebuilt, renamed, substitute, toposort, type_sizes
from graphc.ops.branch import AHEAD, COND, SUNK, cond_node, unpredictable
from graphc.ops.given import given_sizes
from graphc.startup.record import record


def sunk(roots: Sequence[Node]) -> list[Node]:
    """The roots, each body of a `cond` beneath them widened by what it alone needs."""
    if not any(node.is_tuple for node in node_set(roots)):
        return list(roots)
    return _sink(roots, set())


def without_unused(roots: Sequence[Node]) -> list[Node]:
    """The roots, beneath which branches have no results that nobody needs."""
    order = nodes_of(roots)
    used: dict[Node, list[int]] = {}
    for node in order:
        if node.op is ITEM:
            used.setdefault(node.args[0], []).append(node.attrs["index"])
    done: dict[Node, Node] = {}
    for node in order:
        if node.op is COND and len(used[node]) < len(node.attrs["then"].results):
            new = rebuilt(done, node)
            sides = [opened(new.attrs[name], new.args[1:]) for name in ("then", "orelse")]
            then, orelse = ([side[n] for n in used[node]] for side in sides)
            new = renamed(cond_node(new.args[0], then, orelse, new.args, new.attrs["state"]), node)
            done |= {item(node, n): item(new, place) for place, n in enumerate(used[node])}
    return [rebuilt(done, root) for root in roots]


def _sink(roots: Sequence[Node], at_hand: set[Node]) -> list[Node]:
    """The roots, computed from the nodes at hand, which stay as they are."""
    reach, roots = _joined(roots, at_hand)
    order = reach.order(roots)
    demanded = _demanded(roots, order, reach)
    own = [node for node in order if node not in at_hand and (node in demanded or _is_item_of(node, demanded))]
    used: dict[Node, list[int]] = {}
    for node in own:
        if node.op is ITEM:
            used.setdefault(node.args[0], []).append(node.attrs["index"])
    done: dict[Node, Node] = {}
    at_hand.update(own)
    for node in own:
        if node.op is COND:
            then, orelse = (_sink([side[n] for n in used[node]], at_hand) for side in reach.opened(node))
            state = AHEAD if node.attrs["state"] == AHEAD else SUNK
            new = _branch(node.args[0], then, orelse, at_hand, state)
            args = [_replaced(arg, done, at_hand) for arg in new.args]
            done[node] = renamed(make(COND, args, new.attrs), node)
        elif node.op is ITEM and node.args[0].op is COND:
            (whole,) = node.args
            if _is_size(node) and (size := _as_where(done[whole], used[whole].index(node.attrs["index"]))) is not None:
                done[node] = size
                continue
            done[node] = renamed(item(done[whole], used[whole].index(node.attrs["index"])), node)
        else:
            args = [done.get(arg, arg) for arg in node.args]
            attrs = {**node.attrs, **{name: _sunk_body(body) for name, body in bodies_of(node).items()}}
            same = args == [*node.args] and attrs == node.attrs
            done[node] = node if same else renamed(make(node.op, args, attrs), node)
    at_hand.difference_update(own)
    return [done.get(root, root) for root in roots]


def _is_size(node: Node) -> bool:
    return node.type.dtype == "int64" and not node.ndim


def _as_where(whole: Node, place: int) -> Node | None:
    """A result of a branch that follows from its operands by arithmetic, as the sizes of types do."""
    then, orelse = (opened(whole.attrs[name], whole.args[1:])[place] for name in ("then", "orelse"))
    if unpredictable([then, orelse], whole.args):
        return None
    return make(OPS["where"], (whole.args[0], then, orelse))


def _is_item_of(node: Node, several: Collection[Node]) -> bool:
    return node.op is ITEM and node.args[0] in several


def _joined(roots: Sequence[Node], at_hand: Collection[Node]) -> tuple[_Reach, Sequence[Node]]:
    """The roots, in which demanded branches of one condition that do not need each other are one."""
    while True:
        reach = _Reach(at_hand, {})
        order = reach.order(roots)
        present = set(reachable(roots, lambda node: () if node in at_hand else node.args)).difference(at_hand)
        same = _same_results(present, reach)
        if same:
            roots = substitute(roots, {**{node: node for node in order if node in at_hand}, **same})
            continue
        branches = [node for node in order if node.op is COND and node in present]
        groups = _alike(order, reach, _demanded(roots, order, reach) & present) if len(branches) > 1 else []
        if not groups:
            return reach, roots
        replaced = {node: node for node in order if node in at_hand}
        for group in groups:
            replaced |= _join(group, reach, order)
        roots = substitute(roots, replaced)


def _same_results(present: Collection[Node], reach: _Reach) -> dict[Node, Node]:
    """Results that both branches have alike, with these."""
    found: dict[Node, Node] = {}
    for node in present:
        if node.op is ITEM and node.args[0].op is COND and node.args[0] in present:
            then, orelse = (side[node.attrs["index"]] for side in reach.opened(node.args[0]))
            if then is orelse:
                found[node] = then
    return found


def _alike(order: Sequence[Node], reach: _Reach, demanded: Collection[Node]) -> list[list[Node]]:
    """Demanded branches of one condition and one level, the lowest at which there are several: those of one level need
    none of each other."""
    level: dict[Node, int] = {}
    groups: dict[tuple[int, Node, str], list[Node]] = {}
    for node in order:
        needs = reach.needs(node)
        level[node] = max((level[need] for need in needs), default=0) + (node.op is COND)
        if node.op is COND and needs and node in demanded:
            sized = all(map(_is_size, reach.opened(node)[0]))  # sizes are known before what has them
            groups.setdefault((level[node], node.args[0], node.attrs["state"] + " size" * sized), []).append(node)
    several = {key: group for key, group in groups.items() if len(group) > 1}
    lowest = min((key[0] for key in several), default=0)
    return [group for key, group in several.items() if key[0] == lowest]


def _join(group: Sequence[Node], reach: _Reach, order: Sequence[Node]) -> dict[Node, Node]:
    """The results of several branches, each with that of the one that they become."""
    results = list(dict.fromkeys(pair for node in group for pair in zip(*reach.opened(node), strict=True)))
    at_hand = {arg for node in group for arg in node.args}
    first = group[0]
    chosen, others = zip(*results, strict=True)
    whole = renamed(cond_node(first.args[0], chosen, others, at_hand, first.attrs["state"]), first)
    found: dict[Node, Node] = {}
    for node in order:
        if _is_item_of(node, group):
            then, orelse = reach.opened(node.args[0])
            place = node.attrs["index"]
            found[node] = item(whole, results.index((then[place], orelse[place])))
    return found


def _branch(condition: Node, then: Sequence[Node], orelse: Sequence[Node], at_hand: set[Node], state: str) -> Node:
    """The node that chooses between results. Sizes within them that cannot be told from what is at hand are computed
    ahead, each only where its branch is taken."""
    given = {size for node in needed_of(at_hand, [*then, *orelse]) for size in type_sizes(node)}
    sure = {*at_hand, *given}
    sides = [unpredictable(_sizes_within(results, at_hand), sure) for results in (then, orelse)]
    wanted = dict.fromkeys(size for side in sides for size in side)
    if not wanted:
        return cond_node(condition, then, orelse, at_hand, state)
    chosen, others = ([size if size in side else literal(0, size.type.dtype) for size in wanted] for side in sides)
    ahead = _branch(condition, chosen, others, at_hand, AHEAD)
    node = cond_node(condition, then, orelse, {*sure, *wanted}, state)
    computed = {size: item(ahead, place) for place, size in enumerate(wanted)}
    return make(COND, [computed.get(arg, arg) for arg in node.args], node.attrs)


def _sizes_within(results: Sequence[Node], at_hand: Collection[Node]) -> list[Node]:
    """The sizes of what is computed from the nodes at hand."""
    inside = reachable(results, lambda node: () if node in at_hand else node.args)
    found: list[Node] = []
    for node in inside:
        if node not in at_hand and node.args:
            found += given_sizes(node) if node.is_tuple else type_sizes(node)
    return found


def _replaced(node: Node, done: dict[Node, Node], at_hand: Collection[Node]) -> Node:
    """An operand: a node at hand, or a size of one. Results of a branch that only sizes need are of the branch as it
    was: the one at hand has lost them."""
    if node in done or node in at_hand or not node.args:
        return done.get(node, node)
    kept = {part: done.get(part, part) for part in nodes_of([node]) if part in at_hand and part.op is not COND}
    return rebuilt(kept, node)


def _sunk_body(body: Body) -> Body:
    return make_body(body.params, sunk(body.results))


@record(eq=False)
class _Reach:
    """What nodes need beyond what is at hand, with the bodies of `cond` opened."""

    at_hand: Collection[Node]
    results: dict[Node, tuple[list[Node], list[Node]]]

    def opened(self, node: Node) -> tuple[list[Node], list[Node]]:
        """The results of the two bodies of a `cond`, over its operands."""
        if node not in self.results:
            then, orelse = (opened(node.attrs[name], node.args[1:]) for name in ("then", "orelse"))
            self.results[node] = then, orelse
        return self.results[node]

    def order(self, roots: Sequence[Node]) -> list[Node]:
        """All that the roots need, each after what it needs itself."""
        return toposort(roots, self.needs, lambda node: node.op.name)

    def needs(self, node: Node) -> Sequence[Node]:
        if node in self.at_hand:
            return ()
        if node.op is not COND:
            return node.args
        then, orelse = self.opened(node)
        return (*_always(node), *then, *orelse)


def _demanded(roots: Sequence[Node], order: Sequence[Node], reach: _Reach) -> set[Node]:
    """The nodes without which the roots cannot be computed."""
    uses: dict[Node, int] = {}
    for node in order:
        for need in reach.needs(node):
            uses[need] = uses.get(need, 0) + 1
    shared = [node for node in order if uses.get(node, 0) > 1]  # two branches can meet in no others
    bits = {node: 1 << number for number, node in enumerate(shared)}
    closures: dict[Node, int] = {}
    both: dict[Node, int] = {}
    for node in order:
        needs = reach.needs(node)
        if needs and node.op is COND:
            then, orelse = (_united(results, closures) for results in reach.opened(node))
            both[node] = then & orelse
            closure = _united(_always(node), closures) | both[node]
        else:
            closure = _united(needs, closures)
        closures[node] = closure | bits.get(node, 0)
    found: set[Node] = set()
    pending = list(roots)
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += [*_always(node), *_members(both[node], shared)] if node in both else reach.needs(node)
    return found


def _always(node: Node) -> list[Node]:
    """The operands of a `cond` that are needed whichever branch is taken: sizes among them are computed ahead."""
    return [node.args[0], *(arg for arg in node.args[1:] if arg.op is ITEM and arg.args[0].attrs.get("state") == AHEAD)]


def _united(nodes: Sequence[Node], closures: dict[Node, int]) -> int:
    union = 0
    for node in nodes:
        union |= closures[node]
    return union


def _members(bits: int, numbered: Sequence[Node]) -> Iterator[Node]:
    while bits:
        lowest = bits & -bits
        yield numbered[lowest.bit_length() - 1]
        bits ^= lowest
