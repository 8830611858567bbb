"""Branches: of two bodies the one that a condition chooses is carried out; nodes that one body needs move into it.

In: a condition, what the bodies need, and the bodies. Out: a node of several results, those of the body that was
carried out.

    args     condition (a bool scalar), operands
    params   of both bodies: what the operands stand for
    results  of the bodies: as many, of equal dtypes and ranks
    result   those of `then` where the condition holds, else those of `orelse`

Sizes within a body that take more than arithmetic are operands, computed ahead by another such node.

What a body refuses, this node refuses only where that body is carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from graphc.arrays.dtypes import is_float
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.body import ITEM, bodies_of, close_over, item, items_of, make_body, needed_of, opened, outside
from graphc.ir.facts import BROADCASTS
from graphc.ir.interpret import run_steps
from graphc.ir.lowering import Branch, Scalar
from graphc.ir.node import (
    FUNCTIONS,
    OPS,
    Array,
    Attributes,
    Body,
    Guard,
    Node,
    Size,
    Type,
    define_op,
    describe,
    literal,
    make,
    tuple_of,
)
from graphc.ir.walk import (
    as_size_node,
    dependents,
    node_set,
    nodes_of,
    reachable,
    rebuilt,
    renamed,
    substitute,
    toposort,
    type_sizes,
)
from graphc.ops.index import subtensor
from graphc.ops.scan import SCAN, fitting, loop_of, steps_of
from graphc.ops.shape import broadcast_to, label_op
from graphc.startup.record import record

SIZE_OPS = {"add", "sub", "mul", "floor_div", "minimum", "maximum", "where", "cast", "less", "less_equal", "equal"}
"""Ops that are cheaper to compute than to decide whether they are needed, and that refuse nothing."""


WRITTEN, SUNK, AHEAD = "written", "sunk", "ahead"
"""The states of a branch: as the program made it, its operands may be needed in one branch only; then they are needed
in both (`_sink`). Or it computes sizes within another branch of its condition."""


def cond_node(
    condition: Node, then: Sequence[Node], orelse: Sequence[Node], at_hand: Collection[Node], state: str = WRITTEN
) -> Node:
    """The node that chooses between results, which are computed within it from the nodes `at_hand`."""
    results = (*then, *orelse)
    body, operands = close_over((), needed_of(at_hand, results), results)
    bodies = {"then": body.results[: len(then)], "orelse": body.results[len(then) :]}
    attrs = {name: make_body(body.params, own) for name, own in bodies.items()}
    return make(COND, (condition, *operands), {**attrs, "state": state})


def sized(node: Node, shape: Sequence[Size]) -> Node:
    """A result of a branch, which has these sizes whichever is taken."""
    if node.op is not ITEM or node.args[0].op is not COND or all(map(sizes.equal, node.type.shape, shape)):
        return node
    whole, place = node.args[0], node.attrs["index"]
    then, orelse = (opened(whole.attrs[name], whole.args[1:]) for name in ("then", "orelse"))
    for side in (then, orelse):
        side[place] = resized(side[place], shape)
    at_hand = {*whole.args, *(size for size in shape if isinstance(size, Node))}
    return item(cond_node(whole.args[0], then, orelse, at_hand), place)


def resized(node: Node, shape: Sequence[Size]) -> Node:
    """A value under other sizes, which are held to be those that it has."""
    if all(map(sizes.equal, node.type.shape, shape)):
        return node
    return subtensor(broadcast_to(node, shape), [0] * node.ndim, shape, [1] * node.ndim)


# --- types ------------------------------------------------------------------------------------------------------------


def _infer(args: Sequence[Node], attrs: Attributes) -> Type:
    condition, operands = args[0], args[1:]
    then, orelse = attrs["then"], attrs["orelse"]
    if (condition.type.dtype, condition.ndim) != ("bool", 0):
        raise GraphTypeError(f"cond: the condition {describe(condition)} has type {condition.type}, not bool[]")
    if then.params != orelse.params or len(then.params) != len(operands):
        raise GraphTypeError(f"cond: {len(operands)} operands, {len(then.params)} and {len(orelse.params)} parameters")
    for operand, param in zip(operands, then.params, strict=True):
        if (operand.type.dtype, operand.ndim) != (param.dtype, param.ndim):
            raise GraphTypeError(f"cond: {describe(operand)} of type {operand.type} stands for {param.type}")
    if len(then.results) != len(orelse.results):
        raise GraphTypeError(f"cond: one body has {len(then.results)} results, the other {len(orelse.results)}")
    return tuple_of([_common(args, attrs, a, b) for a, b in zip(then.results, orelse.results, strict=True)])


def _common(args: Sequence[Node], attrs: Attributes, chosen: Node, other: Node) -> Type:
    """The type of a result, given what the two bodies have for it."""
    if (chosen.type.dtype, chosen.ndim) != (other.type.dtype, other.ndim):
        raise GraphTypeError(
            f"cond: the branches must have the same dtype and rank; one is {describe(chosen)} of type {chosen.type}, "
            f"the other {describe(other)} of type {other.type}"
        )
    pairs = zip(chosen.type.shape, other.type.shape, strict=True)
    return Type(chosen.type.dtype, tuple(_common_size(args, attrs, a, b) for a, b in pairs))


def _common_size(args: Sequence[Node], attrs: Attributes, chosen: Size, other: Size) -> Size:
    """The size that a result has, of the sizes within the bodies. A size that takes more than arithmetic is computed
    only where it is needed, as the results are."""
    condition, operands = args[0], args[1:]
    known = dict(zip(attrs["then"].params, operands, strict=True))
    left, right = outside(chosen, known), outside(other, known)
    if sizes.equal(left, right):
        return left
    then, orelse = as_size_node(left), as_size_node(right)
    if not unpredictable([then, orelse], () if attrs["state"] == WRITTEN else args):
        return make(OPS["where"], (condition, then, orelse))
    return item(cond_node(condition, [then], [orelse], operands), 0)


def unpredictable(sizes_: Iterable[Node], at_hand: Collection[Node] = ()) -> list[Node]:
    """The scalars that sizes are computed from by arithmetic of integers, and which are not at hand."""
    nodes: dict[Node, None] = {}
    pending, seen = list(sizes_), set[Node]()
    while pending:
        node = pending.pop()
        if node in seen or not node.args or node in at_hand:
            continue
        seen.add(node)
        if node.op.name in SIZE_OPS and not any(is_float(arg.type.dtype) for arg in node.args):
            pending += node.args
        else:
            nodes[node] = None
    return list(nodes)


def _guards(node: Node) -> Sequence[Guard]:
    params, operands, what = node.attrs["then"].params, node.args[1:], label_op(node)
    known = dict(zip(params, operands, strict=True))
    return [guard for x, param in known.items() for guard in fitting(what, param, param.type.shape, x, known)]


# --- NumPy's meaning --------------------------------------------------------------------------------------------------


def _eval(node: Node, condition: Array, *values: Array) -> Any:
    body: Body = node.attrs["then" if condition else "orelse"]
    return run_steps(steps_of(body), dict(zip(body.params, values, strict=True)))


COND = define_op(
    "cond",
    infer=_infer,
    eval=_eval,
    lower=lambda node: Branch(node.attrs["then"], node.attrs["orelse"]),
    guards=_guards,
    cost=100.0,
    doc="Of two bodies the one that a condition chooses.",
    vjps=lambda *args: FUNCTIONS["cond_vjps"](*args),  # noqa: PLW0108 - it is defined later
)


# --- given ------------------------------------------------------------------------------------------------------------
# What of the operands of loops and branches are sizes of what these compute.
#
# In: a node with bodies. Out: operands. Memory is laid out before a kernel runs, so they must be known before. Of a
# size that changes from step to step, what bounds it must be (`bounds_of`).


SAME = (*BROADCASTS, "reshape", "subtensor")
"""Ops whose elements are elements of their first argument."""
BOUNDED = ("iota", "add", "sub", "minimum", "maximum", "mul", "sqr", "floor_div")
"""Integer ops that are bounded where all their arguments are."""


def given_sizes(node: Node) -> list[Node]:
    """The operands of a loop or a branch from which sizes within it are computed."""
    if node.op is SCAN:
        loop = loop_of(node.args, node.attrs)
        sizes = size_params(loop.body, len(loop.sequences) + len(loop.initial))
        pairs = zip(loop.fixed, loop.constants, strict=True)
        return list(dict.fromkeys([loop.count, *(operand for param, operand in pairs if param in sizes)]))
    operands_of_sizes: list[Node] = []
    for body in bodies_of(node).values():
        operands = node.args[len(node.args) - len(body.params) :]
        sizes = size_params(body)
        operands_of_sizes += [operand for operand, param in zip(operands, body.params, strict=True) if param in sizes]
    return list(dict.fromkeys(operands_of_sizes))


@lru_cache(maxsize=1024)
def size_params(body: Body, varying: int = 0) -> frozenset[Node]:
    """The scalar parameters of a body from which sizes within it are computed, or what bounds those that depend on its
    first `varying` parameters."""
    sizes: list[Node] = []
    for node in (*body.params, *nodes_of(body.results)):
        sizes += given_sizes(node) if node.is_tuple else type_sizes(node)
    changing = dependents(nodes_of(sizes), body.params[:varying])
    needed = reachable(sizes, lambda node: bounds_of(node) if node in changing else node.args)
    return frozenset(node for node in needed if not node.ndim).intersection(body.params)


def bounds_of(node: Node) -> Sequence[Node]:
    """The operands that bound an integer; () where it has no bounds."""
    name = node.op.name
    if node.is_tuple or is_float(node.type.dtype):
        return ()
    if node.op is ITEM:
        (whole,) = node.args
        if not bodies_of(whole):
            return ()
        return [whole.args[0]] if is_taken(node) else [operand for _, operand in bounding_operands(node)]
    if name in SAME or name == "cast":
        return node.args[:1]
    return node.args[1:] if name in ("where", "mod") else node.args if name in BOUNDED else ()


def is_taken(node: Node) -> bool:
    """Tell whether a result of a loop or branch is how many steps it took."""
    (whole,) = node.args
    return whole.op is SCAN and whole.attrs["until"] and node.attrs["index"] == len(items_of(whole)) - 1


def results_of(node: Node) -> list[Node]:
    """The values of a result of a loop or branch within its bodies: any of these, or 0 where a step was not taken;
    nothing for a state."""
    (whole,), place = node.args, node.attrs["index"]
    if whole.op is SCAN:
        return [whole.attrs["body"].results[place]] if place >= whole.attrs["carries"] else []
    return [body.results[place] for body in bodies_of(whole).values()]


def bounding_operands(node: Node) -> list[tuple[Node, Node]]:
    """The parameters that bound a result of a loop or branch within its bodies, with the operands that they stand
    for; not the states, which may be anything."""
    (whole,) = node.args
    params = next(iter(bodies_of(whole).values())).params
    pairs = list(zip(params, whole.args[len(whole.args) - len(params) :], strict=True))
    if whole.op is SCAN:
        first = whole.attrs["sequences"]
        del pairs[first : first + whole.attrs["carries"]]
    needed = set(reachable(results_of(node), bounds_of))
    return [pair for pair in pairs if pair[0] in needed]


def is_counted(node: Node) -> bool:
    """Tell whether a scalar is computed from others in integers."""
    return not is_float(node.type.dtype) and isinstance(node.op.lower(node), Scalar)


# --- sinking ----------------------------------------------------------------------------------------------------------
# What only one branch needs is moved into it, so that it is computed only where that branch is taken.
#
# In: nodes. Out: equal nodes, in which everything stands in the innermost bodies that need it.
#
# A node is demanded where a root cannot be computed without it. Of a `cond` these are its condition and what both its
# branches demand; whatever else a branch needs is computed within that branch, in each of several that need it.
# Branches of one condition of which none needs another become one, and results that nobody needs go.


def sink_into_branches(roots: Sequence[Node]) -> list[Node]:
    """Move the nodes that only one body of a `cond` needs into that body, for each `cond` beneath the roots. Returns
    the roots over the wider bodies."""
    if not any(node.is_tuple for node in node_set(roots)):
        return list(roots)
    return _sink(roots, set())


def without_unused(roots: Sequence[Node]) -> list[Node]:
    """Drop the results of branches that nothing beneath the roots uses."""
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
    inside = [node for node in order if node not in at_hand and (node in demanded or _is_item_of(node, demanded))]
    used: dict[Node, list[int]] = {}
    for node in inside:
        if node.op is ITEM:
            used.setdefault(node.args[0], []).append(node.attrs["index"])
    done: dict[Node, Node] = {}
    at_hand.update(inside)
    for node in inside:
        if node.op is COND:
            then, orelse = (_sink([side[n] for n in used[node]], at_hand) for side in reach.opened(node))
            state = AHEAD if node.attrs["state"] == AHEAD else SUNK
            new = _branch(node.args[0], then, orelse, at_hand, state)
            args = [_replaced(arg, done, at_hand) for arg in new.args]
            done[node] = renamed(make(COND, args, new.attrs), node)
        elif node.op is ITEM and node.args[0].op is COND:
            (whole,) = node.args
            place = used[whole].index(node.attrs["index"])
            size = _as_where(done[whole], place) if _is_size(node) else None
            done[node] = renamed(item(done[whole], place), node) if size is None else size
        else:
            args = [done.get(arg, arg) for arg in node.args]
            bodies = {name: make_body(b.params, sink_into_branches(b.results)) for name, b in bodies_of(node).items()}
            attrs = {**node.attrs, **bodies}
            same = args == [*node.args] and attrs == node.attrs
            done[node] = node if same else renamed(make(node.op, args, attrs), node)
    at_hand.difference_update(inside)
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
    """The roots, with demanded branches of one condition merged where they do not need each other."""
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
    same: dict[Node, Node] = {}
    for node in present:
        if node.op is ITEM and node.args[0].op is COND and node.args[0] in present:
            then, orelse = (side[node.attrs["index"]] for side in reach.opened(node.args[0]))
            if then is orelse:
                same[node] = then
    return same


def _alike(order: Sequence[Node], reach: _Reach, demanded: Collection[Node]) -> list[list[Node]]:
    """Demanded branches of one condition and one level, at the lowest level that has several: branches of one level do
    not need each other."""
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
    items: dict[Node, Node] = {}
    for node in order:
        if _is_item_of(node, group):
            then, orelse = reach.opened(node.args[0])
            place = node.attrs["index"]
            items[node] = item(whole, results.index((then[place], orelse[place])))
    return items


def _branch(condition: Node, then: Sequence[Node], orelse: Sequence[Node], at_hand: set[Node], state: str) -> Node:
    """The node that chooses between results. Sizes within them that cannot be told from what is at hand are computed
    ahead, each only where its branch is taken."""
    needed = {size for node in needed_of(at_hand, [*then, *orelse]) for size in type_sizes(node)}
    sure = {*at_hand, *needed}
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
    sizes: list[Node] = []
    for node in inside:
        if node not in at_hand and node.args:
            sizes += given_sizes(node) if node.is_tuple else type_sizes(node)
    return sizes


def _replaced(node: Node, done: dict[Node, Node], at_hand: Collection[Node]) -> Node:
    """An operand: a node at hand, or a size of one. Results of a branch that only sizes need are of the branch as it
    was: the one at hand has lost them."""
    if node in done or node in at_hand or not node.args:
        return done.get(node, node)
    kept = {part: done.get(part, part) for part in nodes_of([node]) if part in at_hand and part.op is not COND}
    return rebuilt(kept, node)


@record(eq=False)
class _Reach:
    """The nodes that others need beyond those at hand, with the bodies of `cond` opened."""

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
        return (*_unconditional(node), *then, *orelse)


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

    def union(nodes: Sequence[Node]) -> int:
        return reduce(or_, map(closures.__getitem__, nodes), 0)

    for node in order:
        needs = reach.needs(node)
        if needs and node.op is COND:
            then, orelse = (union(results) for results in reach.opened(node))
            both[node] = then & orelse
            closure = union(_unconditional(node)) | both[node]
        else:
            closure = union(needs)
        closures[node] = closure | bits.get(node, 0)

    def demands(node: Node) -> Sequence[Node]:
        return [*_unconditional(node), *_members(both[node], shared)] if node in both else reach.needs(node)

    return set(reachable(roots, demands))


def _unconditional(node: Node) -> list[Node]:
    """The operands of a `cond` that are needed whichever branch is taken: the condition, and sizes that are computed
    ahead."""
    return [node.args[0], *(arg for arg in node.args[1:] if arg.op is ITEM and arg.args[0].attrs.get("state") == AHEAD)]


def _members(bits: int, numbered: Sequence[Node]) -> Iterator[Node]:
    while bits:
        lowest = bits & -bits
        yield numbered[lowest.bit_length() - 1]
        bits ^= lowest
