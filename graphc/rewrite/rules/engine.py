"""Rewriting: rules, matching, and one bottom-up pass that applies rules to a fixed point.

In: a graph and rules. Out: an equal graph, and what fired. A `Rule` is a pair of ordinary graphs over holes. A
`Transformation` is a function from a node to its replacement, for what no pair of graphs can say.

How a pattern stands for more than it says:

    a hole of rank 0         any value; all of them of one rank and one dtype (a bool hole matches bools only)
    a number                 that number, whatever its dtype and however it is broadcast
    a hole of rank 1         in patterns with reductions: a value of any rank; rank 0 is then what reducing it leaves
    sum(x), max(x)           the reduction over any axes, everywhere in the pattern the same
    a reduction, broadcast   the reduction with its axes back in place, broadcast to the sizes before it

Each rule has its class of truth, for which the tests hold it to account:

    exact    the same bits for all IEEE values, NaN payloads aside
    close    within a few units in the last place, infinities and NaN the same
    better   as accurate or more so, and right where the original overflows or cancels
    real     true of real numbers; done only with fast_math

The first three hold over the whole range of a dtype, from the smallest subnormal to the largest number:

- A finite result stays finite, and one that is not 0 does not become 0, unless its class's error reaches so far.
- An infinity, or a NaN that finite arguments lead to, becomes a number only by a rule that says so: `mends` is the
  phrase, and docs/numerics.md the list of them.

- A zero keeps its sign, but by the few rules that docs/numerics.md lists; none of them is exact.

Where a rule changes the order or the grouping of the terms of a sum, units are those of the sum of the terms'
magnitudes, and this holds where that sum is finite: beyond, whether a partial sum overflows is a matter of order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from graphc.arrays.dtypes import FLOATS, is_float
from graphc.errors import GraphcError
from graphc.ir import sizes
from graphc.ir.node import (
    CONSTANT,
    INPUT,
    LEAVES,
    OPS,
    Array,
    Node,
    Size,
    Where,
    describe,
    literal,
    make,
    next_serial,
    remade,
    told,
    variable,
)
from graphc.ir.signs import BROADCASTS, scalar_constant
from graphc.ir.verify import Step, passed, verify, watched
from graphc.ir.walk import Graph, node_set, nodes_of, renamed
from graphc.ops.shape import broadcast_to, expand, filled
from graphc.startup.record import record

Truth: TypeAlias = Literal["exact", "close", "better", "real"]
EXACT: Truth = "exact"
CLOSE: Truth = "close"
BETTER: Truth = "better"
REAL: Truth = "real"

Uses: TypeAlias = Callable[[Node], int]
"""How often a node is taken: by other nodes, and as a result."""

NUMBERS = ("constant", *BROADCASTS)
"""The ops of nodes that may be a number."""


@record()
class Match:
    """The nodes that parts of a pattern stand for, and for reductions the axes and the sizes before reducing."""

    nodes: Mapping[Node, Node]
    axes: tuple[int, ...] | None = None
    shape: tuple[Size, ...] = ()


_NOTHING = Match({})


@record(eq=False)
class Rule:
    """A pattern, what it is replaced by, and how true that is.

    `when` is asked the nodes of the holes, by name. `once` names parts of the pattern that nothing else may take: what
    replaces the pattern would be computed beside them, not in their place. `mends` says of what finite arguments it
    makes a number where the pattern makes an infinity or NaN; empty where of none.
    """

    name: str
    pattern: Node
    replacement: Node
    truth: Truth
    dtypes: tuple[str, ...] = FLOATS
    when: Callable[[Mapping[str, Node]], bool] | None = None
    once: tuple[Node, ...] = ()
    mends: str = ""

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops at the root of what the rule replaces."""
        return (self.pattern.op.name,)

    def over(self, nodes: Sequence[Node]) -> Rule:
        """The rule in a graph of these nodes."""
        return self

    def fits(self, operands: Collection[str]) -> bool:
        """Whether the pattern may match a node whose arguments are of these ops."""
        return all(
            part.op is INPUT
            or part.op.name in operands
            or (part.op is CONSTANT and any(op in operands for op in NUMBERS))
            for part in self.pattern.args
        )

    def apply(self, node: Node, uses: Uses) -> Node | None:
        """What replaces `node`, or None where the pattern does not match."""
        for match in matches(self.pattern, node, _NOTHING):
            if self._allows(match, uses):
                return instantiate(self.replacement, match, node)
        return None

    def _allows(self, match: Match, uses: Uses) -> bool:
        holes = {part: node for part, node in match.nodes.items() if part.op is INPUT}
        return (
            all(part.type.dtype == "bool" or node.type.dtype in self.dtypes for part, node in holes.items())
            and all(uses(match.nodes[part]) == 1 for part in self.once)
            and (self.when is None or self.when({part.name or "": node for part, node in holes.items()}))
        )


@record(eq=False)
class Transformation:
    """A rewrite as a function.

    It is asked about nodes of `ops` that take one of `operands`; where there are none, of any. `mends` as in a rule.
    survey: what it makes of all nodes of a graph, before its pass, `apply` is given first.
    """

    name: str
    ops: tuple[str, ...]
    apply: Callable[..., Node | None]
    truth: Truth
    operands: tuple[str, ...] = ()
    mends: str = ""
    survey: Callable[[Sequence[Node]], Any] | None = None

    def over(self, nodes: Sequence[Node]) -> Transformation:
        """The rewrite in a graph of these nodes."""
        if self.survey is None:
            return self
        apply = partial(self.apply, self.survey(nodes))
        return Transformation(self.name, self.ops, apply, self.truth, self.operands, self.mends)

    def fits(self, operands: Collection[str]) -> bool:
        """Whether it may fire on a node whose arguments are of these ops."""
        return not self.operands or any(op in operands for op in self.operands)


AnyRule: TypeAlias = Rule | Transformation


@record()
class Fired:
    """A rule was applied to the node of this description."""

    rule: str
    node: str
    where: Where | None

    @staticmethod
    def at(rule: str, node: Node) -> Fired:
        """The node is described when the text is read."""
        return Fired(rule, told(lambda: describe(node)), node.where)

    def __str__(self) -> str:
        return f"{self.rule}: {self.node}"


MOST_TOLD = 200
"""How many applications of rules are told of one by one."""


def tell_of(fired: Sequence[Fired]) -> list[str]:
    """What fired, in order, each line once; after the first MOST_TOLD only how often, for each rule."""
    first, rest = Counter(map(str, fired[:MOST_TOLD])), Counter(each.rule for each in fired[MOST_TOLD:])
    lines = [line if count == 1 else f"{line}, {count} times" for line, count in first.items()]
    return [*lines, *(f"{rule}: {count} times more" for rule, count in rest.items())]


# --- building rules ---------------------------------------------------------------------------------------------------


def hole(name: str, dtype: str = "float64", rank: int = 0) -> Any:
    """A place in a pattern where any value may stand."""
    return variable(dtype, (None,) * rank, name)


def rule(
    name: str,
    pattern: Node,
    replacement: Any,
    truth: Truth,
    dtypes: tuple[str, ...] = FLOATS,
    when: Callable[[Mapping[str, Node]], bool] | None = None,
    once: tuple[Node, ...] = (),
    mends: str = "",
) -> Rule:
    """A rule; a replacement may be a number."""
    after = replacement if isinstance(replacement, Node) else literal(replacement)
    return Rule(name, pattern, after, truth, dtypes, when, once, mends)


# --- matching ---------------------------------------------------------------------------------------------------------


def is_number(node: Node, number: float) -> bool:
    """Whether a node is this number everywhere. -0.0 is not 0.0."""
    value = scalar_constant(node)
    if value is None:
        return False
    wanted = np.asarray(number).astype(value.dtype)
    return bool(value == wanted) and (value.dtype.kind != "f" or bool(np.signbit(value) == np.signbit(wanted)))


def constant_factor(node: Node) -> tuple[Array, Node] | None:
    """(c, x) where the node is c * x for a number c."""
    if node.op.name == "mul":
        for k in (0, 1):
            number = scalar_constant(node.args[k])
            if number is not None:
                return number, node.args[1 - k]
    return None


def scaled(number: Any, node: Node) -> Node:
    """number * node, the number of the node's dtype."""
    return make(OPS["mul"], (filled(literal(number, node.type.dtype), node.type.shape), node))


def plus_zero(value: Node) -> Node:
    """`value`, with 0.0 for -0.0: a sum of floats begins with 0.0."""
    if not is_float(value.type.dtype):
        return value
    return make(OPS["add"], (value, filled(literal(0.0, value.type.dtype), value.type.shape)))


def keeps_axes(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """`(r, axes)` where the node is r with the reduced `axes` back in place and broadcast, else None."""
    if node.op.name != "broadcast_to" or node.args[0].op.name != "dimshuffle":
        return None
    shuffled = node.args[0]
    order: tuple[int | str, ...] = shuffled.attrs["order"]
    kept = [axis for axis in order if axis != "x"]
    if kept != list(range(shuffled.args[0].ndim)):
        return None
    return shuffled.args[0], tuple(axis for axis, source in enumerate(order) if source == "x")


def matches(pattern: Node, node: Node, found: Match) -> Iterator[Match]:
    """All ways in which `node` is what `pattern` says, given what is found already."""
    if pattern.op is INPUT:
        yield from _match_hole(pattern, node, found)
        return
    if found.nodes.get(pattern) is node:
        yield found
        return
    number = scalar_constant(pattern)
    if number is not None:
        if is_number(node, float(number)):
            yield found
        return
    spread = keeps_axes(pattern)
    if spread is not None:
        seen = keeps_axes(node)
        if seen is not None and found.axes in (None, seen[1]):
            yield from matches(spread[0], seen[0], Match(found.nodes, seen[1], node.type.shape))
        return
    if node.op is not pattern.op or len(node.args) != len(pattern.args):
        return
    if "axes" in pattern.attrs:
        axes, shape = node.attrs["axes"], node.args[0].type.shape
        if found.axes not in (None, axes):
            return
    elif node.attrs != pattern.attrs:
        return
    else:
        axes, shape = found.axes, found.shape
    found = Match({**found.nodes, pattern: node}, axes, shape)
    yield from _match_all(pattern.args, node.args, found)
    if node.op.laws.commutative and node.args[0] is not node.args[1]:
        yield from _match_all(pattern.args, node.args[::-1], found)


def _match_hole(pattern: Node, node: Node, found: Match) -> Iterator[Match]:
    bound = found.nodes.get(pattern)
    if bound is node:
        yield found
    elif bound is None and (pattern.type.dtype != "bool" or node.type.dtype == "bool"):
        yield Match({**found.nodes, pattern: node}, found.axes, found.shape)


def _match_all(patterns: Sequence[Node], nodes: Sequence[Node], found: Match) -> Iterator[Match]:
    if not patterns:
        yield found
        return
    for first in matches(patterns[0], nodes[0], found):
        yield from _match_all(patterns[1:], nodes[1:], first)


def instantiate(pattern: Node, match: Match, root: Node) -> Node:
    """The graph that `pattern` stands for; `root` gives dtype and sizes where the pattern is a mere number."""
    number = scalar_constant(pattern)
    if number is not None:
        return filled(literal(number, root.type.dtype), root.type.shape)
    return _instantiate(pattern, match, {})


def _instantiate(pattern: Node, match: Match, done: dict[Node, Node]) -> Node:
    if pattern in match.nodes:
        return match.nodes[pattern]
    if pattern in done:
        return done[pattern]
    spread = keeps_axes(pattern)
    if spread is not None:
        assert match.axes is not None
        result = broadcast_to(expand(_instantiate(spread[0], match, done), match.axes), match.shape)
    elif "axes" in pattern.attrs:
        result = make(pattern.op, (_instantiate(pattern.args[0], match, done),), {"axes": match.axes})
    else:
        result = make(pattern.op, _instantiate_args(pattern, match, done), pattern.attrs)
    done[pattern] = result
    return result


def _instantiate_args(pattern: Node, match: Match, done: dict[Node, Node]) -> list[Node]:
    """The arguments; numbers get the dtype and sizes of the argument they stand beside."""
    numbers = [scalar_constant(arg) for arg in pattern.args]
    others = [
        None if number is not None else _instantiate(arg, match, done)
        for arg, number in zip(pattern.args, numbers, strict=True)
    ]
    beside = [(arg.type.dtype, other) for arg, other in zip(pattern.args, others, strict=True) if other is not None]
    args: list[Node] = []
    for arg, number, other in zip(pattern.args, numbers, others, strict=True):
        if other is None:
            other = next((n for dtype, n in beside if dtype == arg.type.dtype), beside[0][1])
            dtype = other.type.dtype if arg.type.dtype != "bool" else "bool"
            other = filled(literal(number, dtype), other.type.shape)
        args.append(other)
    return args


# --- the pass ---------------------------------------------------------------------------------------------------------


def apply_in_turn(
    graph: Graph, passes: Iterable[tuple[str, Sequence[AnyRule]]], varying: Sequence[Node] = ()
) -> tuple[Graph, list[Fired]]:
    """The graph after several passes, each with its name and the rules that are applied until none applies; and what
    fired, in order. `varying`: of the body of a loop, the leaves that change from step to step (`Held`).

    Nodes are brought to their final form after their arguments; what a rule makes is itself rewritten.
    """
    visit, fired = Visit.of(graph.outputs), list[Fired]()
    held = Held(varying) if varying else None
    if held is not None and not any(map(held.of, graph.outputs)):
        held = None
    for name, rules in passes:
        after, more = _apply_table(graph, _by_op(rules), visit, held)
        if more:
            tell(name, graph, after)
            graph, visit = after, Visit.of(after.outputs)
            fired += more
    return graph, fired


def tell(name: str, before: Graph, after: Graph) -> None:
    """Say to whoever watches what a pass has made."""
    if watched():
        leaves = tuple(node for node in nodes_of(before.outputs) if node.op in LEAVES)
        passed(Step(name, before, after), partial(verify, Graph((*before.inputs, *leaves), after.outputs)))


@record()
class Visit:
    """A graph's nodes, each after its arguments, and how often each is taken: as an argument, and as an output."""

    order: tuple[Node, ...]
    uses: Mapping[Node, int]

    @staticmethod
    def of(outputs: Iterable[Node]) -> Visit:
        """The nodes that `outputs` need, depth first."""
        uses: dict[Node, int] = {}
        order: list[Node] = []
        for output in outputs:
            pending: list[Node | None] = [output]
            while pending:
                node = pending.pop()
                if node is None:  # the node below it has all its arguments
                    complete = pending.pop()
                    assert complete is not None
                    order.append(complete)
                elif node in uses:
                    uses[node] += 1
                elif node.args:
                    uses[node] = 1
                    pending += (node, None, *node.args)
                else:
                    uses[node] = 1
                    order.append(node)
        return Visit(tuple(order), uses)


class Held:
    """What must hold of sizes that change from step to step of a loop. Other guards are those of the graph as it was
    written, checked before anything is computed; these are read off the body as it was rewritten. So no rule may make
    something of nodes that ask for less: what is left would read and write as if they had been asked."""

    def __init__(self, varying: Sequence[Node]) -> None:
        self.varying = frozenset(varying)
        self.of_nodes: dict[Node, frozenset[Hashable]] = {}
        self.of_sizes: dict[Node, bool] = {}

    def of(self, root: Node) -> frozenset[Hashable]:
        """What a node and all that it needs ask for."""
        known = self.of_nodes
        pending = [root]
        while pending:
            node = pending[-1]
            missing = [arg for arg in node.args if arg not in known] if node not in known else []
            if missing:
                pending += missing
                continue
            pending.pop()
            if node not in known:
                known[node] = self._own(node).union(*[known[arg] for arg in node.args])
        return known[root]

    def _own(self, node: Node) -> frozenset[Hashable]:
        guards = node.op.guards(node) if node.args else ()
        asked = [(guard.relation, guard.left, guard.right) for guard in guards]
        return frozenset(
            (relation, frozenset((left, right)) if relation == "==" else (left, right))
            for relation, left, right in asked
            if (self._varies(left) or self._varies(right)) and not (relation != "<" and sizes.equal(left, right))
        )

    def _varies(self, size: Size) -> bool:
        if isinstance(size, int):
            return False
        found = self.of_sizes.get(size)
        if found is None:
            found = self.of_sizes[size] = not self.varying.isdisjoint(node_set([size]))
        return found


def _apply_table(
    graph: Graph, table: dict[str, list[AnyRule]], visit: Visit, held: Held | None
) -> tuple[Graph, list[Fired]]:
    if not any(node.op.name in table for node in visit.order):
        return graph, []
    table = {name: [item.over(visit.order) for item in items] for name, items in table.items()}
    rewriter = _Rewriter(table, dict(visit.uses), {}, set(), {}, [], held)
    for node in visit.order:
        rewriter.finish(node)
    outputs = tuple(rewriter.final[output] for output in graph.outputs)
    return Graph(graph.inputs, outputs), rewriter.fired


def _by_op(rules: Sequence[AnyRule]) -> dict[str, list[AnyRule]]:
    table: dict[str, list[AnyRule]] = {}
    for item in rules:
        for name in item.ops or tuple(OPS):
            table.setdefault(name, []).append(item)
    return table


@record(frozen=False)
class _Rewriter:
    """`moved` are the nodes whose `final` form is another; `fitting` remembers which rules fit an op with arguments of
    given ops."""

    rules: dict[str, list[AnyRule]]
    uses: dict[Node, int]
    final: dict[Node, Node]
    moved: set[Node]
    fitting: dict[tuple[str, ...], list[AnyRule]]
    fired: list[Fired]
    held: Held | None

    def finish(self, root: Node) -> None:
        """Find the final form of a node whose arguments have theirs, and of all that rules make on the way, without
        recursion."""
        final = self.final
        if root in final:
            return
        first = self._next(root)
        if first is root:  # as of most nodes
            final[root] = root
            return
        following = {root: first}
        pending = [root]
        while pending:
            node = pending[-1]
            if node in final:
                pending.pop()
                continue
            after = following.get(node)
            if after is None:
                missing = [arg for arg in node.args if arg not in final]
                if missing:
                    pending += missing
                    continue
                after = self._next(node)
                if after is not node:
                    following[node] = after
                    self._check_progress(node, following)
            if after is node or after in final:
                result = final[node] = final.get(after, after)
                if result is not node:
                    self.moved.add(node)
                pending.pop()
            else:
                pending.append(after)

    def _check_progress(self, node: Node, following: Mapping[Node, Node]) -> None:
        after = following[node]
        while after in following:
            after = following[after]
            if after is node:
                names = ", ".join(dict.fromkeys(fired.rule for fired in self.fired[-10:]))
                raise GraphcError(f"rewrite rules undo each other at {describe(node)}: among {names}")

    def _next(self, node: Node) -> Node:
        """The node over its final arguments, or what a rule makes of it, or itself where it is final."""
        if not self.moved.isdisjoint(node.args):
            return self._inherit(node, remade(node, tuple([self.final[arg] for arg in node.args])))
        if node.op.name not in self.rules:
            return node
        before = next_serial()
        for item in self._fitting(node):
            after = item.apply(node, self._uses)
            if after is not None and after is not node and _same_type(node, after) and self._keeps(node, after):
                self.fired.append(Fired.at(item.name, node))
                place_new(after, node.where, before)
                return self._inherit(node, after)
        return node

    def _keeps(self, node: Node, after: Node) -> bool:
        """Whether what a rule has made asks for no less."""
        return self.held is None or self.held.of(node) <= self.held.of(after)

    def _fitting(self, node: Node) -> list[AnyRule]:
        """The rules that a look at the ops does not rule out: few of many."""
        key = (node.op.name, *[arg.op.name for arg in node.args])
        found = self.fitting.get(key)
        if found is None:
            found = self.fitting[key] = [item for item in self.rules[key[0]] if item.fits(key[1:])]
        return found

    def _inherit(self, node: Node, after: Node) -> Node:
        """`after`, if it is new, with the user's name and line of `node`; and taken where `node` was."""
        taken = self.uses.get(node, 1)
        for arg in node.args:
            if arg is after:
                taken -= 1
                break
        self.uses[after] = self.uses.get(after, 0) + taken
        return renamed(after, node) if after.serial > node.serial else after

    def _uses(self, node: Node) -> int:
        return self.uses.get(node, 1)


def place_new(node: Node, where: Where | None, serial: int) -> None:
    """Say of the nodes of a graph that are not older than a serial number that a line of the user's made them."""
    pending = [node]
    while pending:
        node = pending.pop()
        if node.serial > serial and node.where is not where and (node.where is None or node.where.words is None):
            node.where = where
            pending += node.args


def _same_type(before: Node, after: Node) -> bool:
    """Whether `after` can stand for `before`: the same dtype and rank, and no size known before and unknown after."""
    return (
        after.type.dtype == before.type.dtype
        and after.ndim == before.ndim
        and all(a == b for b, a in zip(before.type.shape, after.type.shape, strict=True) if isinstance(b, int))
    )
