"""The rewriting engine: rules, matching, and a bottom-up pass that applies rules to a fixpoint.

In: a graph and rules. Out: an equal graph, and the rules that fired:

    x = hole("x")
    rule("softplus", log1p(exp(x)), softplus(x), BETTER, mends="exp overflows")

rewrites `log1p(exp(a + b))` to `softplus(a + b)`. A `Rule` is a pair of ordinary graphs over holes. A `Transformation`
is a function from a node to its replacement, for what a pair of graphs cannot express.

A pattern matches more than its literal form:

    a hole of rank 0         any value; all of them of one rank and one dtype (a bool hole matches bools only)
    a number                 that number, whatever its dtype and however it is broadcast
    a hole of rank 1         in patterns with reductions: a value of any rank; rank 0 is then what reducing it leaves
    sum(x), max(x)           the reduction over any axes, everywhere in the pattern the same
    a reduction, broadcast   the reduction with its axes back in place, broadcast to the sizes before it

Each rule has a class of truth, which the tests verify:

    exact    the same bits for all IEEE values, NaN payloads aside
    close    within a few units in the last place, infinities and NaN the same
    better   as accurate or more so, and right where the original overflows or cancels
    real     true of real numbers; applied only with fast_math

The first three hold over the whole range of a dtype, from the smallest subnormal to the largest number:

- A finite result stays finite, and a nonzero result stays nonzero, up to the error that the class permits.
- An infinity, or a NaN from finite arguments, becomes a number only by a rule that says so in `mends`; docs/numerics.md
  lists these rules.
- A zero keeps its sign, except for the few rules that docs/numerics.md lists; none of them is exact.

If a rule reorders or regroups the terms of a sum, errors are relative to the sum of the terms' magnitudes, and the
claims hold if that sum is finite: otherwise the order decides whether a partial sum overflows.
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
from graphc.ir.facts import BROADCASTS, scalar_constant
from graphc.ir.lowering import Scalar
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
    lazy_text,
    literal,
    make,
    next_serial,
    remade,
    variable,
)
from graphc.ir.verify import Step, passed, verify, watched
from graphc.ir.walk import Graph, args_of, computed, node_set, nodes_of, renamed
from graphc.ops.scalar import elementwise
from graphc.ops.shape import broadcast_to, expand, filled
from graphc.startup.record import record

Truth: TypeAlias = Literal["exact", "close", "better", "real"]
EXACT: Truth = "exact"
CLOSE: Truth = "close"
BETTER: Truth = "better"
REAL: Truth = "real"

Uses: TypeAlias = Callable[[Node], int]
"""The number of uses of a node: as an argument of other nodes, and as an output."""

NUMBERS = ("constant", *BROADCASTS)
"""The ops that a number may consist of: a constant, possibly broadcast."""


@record()
class Match:
    """A substitution: the node for each part of a pattern; for reductions also the axes and the sizes before
    reducing."""

    nodes: Mapping[Node, Node]
    axes: tuple[int, ...] | None = None
    shape: tuple[Size, ...] = ()


_NOTHING = Match({})


@record(eq=False)
class Rule:
    """A pattern, its replacement, and its class of truth.

    when: a predicate on the nodes of the holes, by name. once: parts of the pattern that must have no other use;
    otherwise the replacement would be computed in addition to them. mends: the finite arguments for which the rule
    turns an infinity or NaN into a number, in words; empty if there are none.
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
        """The op at the root of the pattern."""
        return (self.pattern.op.name,)

    def over(self, nodes: Sequence[Node]) -> Rule:
        """The rule for a graph of these nodes: itself."""
        return self

    def fits(self, operands: Collection[str]) -> bool:
        """False if the pattern cannot match a node whose arguments have these ops: a quick pre-check."""
        return all(
            part.op is INPUT
            or part.op.name in operands
            or (part.op is CONSTANT and any(op in operands for op in NUMBERS))
            for part in self.pattern.args
        )

    def apply(self, node: Node, uses: Uses) -> Node | None:
        """The replacement of `node`, or None if the pattern does not match."""
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
    """A rewrite rule as a function.

    apply(node, uses) returns the replacement or None. It is called for nodes of `ops` that have an argument among
    `operands`; an empty tuple stands for all ops. `mends` is as in `Rule`. survey: an analysis of all nodes of the
    graph, run once for each pass; its result becomes the first argument of `apply`.
    """

    name: str
    ops: tuple[str, ...]
    apply: Callable[..., Node | None]
    truth: Truth
    operands: tuple[str, ...] = ()
    mends: str = ""
    survey: Callable[[Sequence[Node]], Any] | None = None

    def over(self, nodes: Sequence[Node]) -> Transformation:
        """The transformation with its survey of these nodes bound."""
        if self.survey is None:
            return self
        apply = partial(self.apply, self.survey(nodes))
        return Transformation(self.name, self.ops, apply, self.truth, self.operands, self.mends)

    def fits(self, operands: Collection[str]) -> bool:
        """False if the arguments' ops rule it out: a quick pre-check."""
        return not self.operands or any(op in operands for op in self.operands)


AnyRule: TypeAlias = Rule | Transformation


@record()
class RuleUse:
    """One application of a rule: its name, and the node it replaced."""

    rule: str
    node: str
    where: Where | None

    @staticmethod
    def at(rule: str, node: Node) -> RuleUse:
        """The description of the node is formatted only when it is read."""
        return RuleUse(rule, lazy_text(lambda: describe(node)), node.where)

    def __str__(self) -> str:
        return f"{self.rule}: {self.node}"


MOST_TOLD = 200
"""The number of applications that `tell_of` lists one by one."""


def tell_of(fired: Sequence[RuleUse]) -> list[str]:
    """The applications in order, equal ones counted; after the first MOST_TOLD only a count for each rule."""
    first, rest = Counter(map(str, fired[:MOST_TOLD])), Counter(each.rule for each in fired[MOST_TOLD:])
    lines = [line if count == 1 else f"{line}, {count} times" for line, count in first.items()]
    return [*lines, *(f"{rule}: {count} times more" for rule, count in rest.items())]


# --- building rules ---------------------------------------------------------------------------------------------------


def hole(name: str, dtype: str = "float64", rank: int = 0) -> Any:
    """A pattern variable, which matches any value."""
    return variable(dtype, (None,) * rank, name)


def rule(name: str, pattern: Node, replacement: Any, truth: Truth, *more: Any, **named: Any) -> Rule:
    """A rule; the replacement may be a number."""
    after = replacement if isinstance(replacement, Node) else literal(replacement)
    return Rule(name, pattern, after, truth, *more, **named)


def scalar_function(name: str) -> Callable[..., Any]:
    """The scalar op `name` as a function of nodes, for writing patterns."""
    return lambda *operands: elementwise(name, *operands)


# --- matching ---------------------------------------------------------------------------------------------------------


def is_number(node: Node, number: float) -> bool:
    """True if all elements are the constant `number`. -0.0 and 0.0 differ."""
    value = scalar_constant(node)
    if value is None:
        return False
    wanted = np.asarray(number).astype(value.dtype)
    return bool(value == wanted) and (value.dtype.kind != "f" or bool(np.signbit(value) == np.signbit(wanted)))


def is_elementwise(node: Node) -> bool:
    """True if each element depends only on the arguments' elements at the same index."""
    return bool(node.args) and not node.is_tuple and isinstance(node.op.lower(node), Scalar)


def constant_factor(node: Node) -> tuple[Array, Node] | None:
    """(c, x) if the node is c * x for a number c, else None."""
    if node.op.name == "mul":
        for k in (0, 1):
            number = scalar_constant(node.args[k])
            if number is not None:
                return number, node.args[1 - k]
    return None


def scaled(number: Any, node: Node) -> Node:
    """number * node, in the node's dtype."""
    return make(OPS["mul"], (filled(literal(number, node.type.dtype), node.type.shape), node))


def plus_zero(value: Node) -> Node:
    """`value` with -0.0 replaced by 0.0, as a sum of floats does, since it starts with 0.0."""
    if not is_float(value.type.dtype):
        return value
    return make(OPS["add"], (value, filled(literal(0.0, value.type.dtype), value.type.shape)))


def keeps_axes(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """`(r, axes)` if the node is r with the reduced `axes` restored and broadcast, else None."""
    if node.op.name != "broadcast_to" or node.args[0].op.name != "dimshuffle":
        return None
    shuffled = node.args[0]
    order: tuple[int | str, ...] = shuffled.attrs["order"]
    kept = [axis for axis in order if axis != "x"]
    if kept != list(range(shuffled.args[0].ndim)):
        return None
    return shuffled.args[0], tuple(axis for axis, source in enumerate(order) if source == "x")


def matches(pattern: Node, node: Node, match: Match) -> Iterator[Match]:
    """All substitutions that extend `match` and make `pattern` equal to `node`."""
    if pattern.op is INPUT:
        yield from _match_hole(pattern, node, match)
        return
    if match.nodes.get(pattern) is node:
        yield match
        return
    number = scalar_constant(pattern)
    if number is not None:
        if is_number(node, float(number)):
            yield match
        return
    spread = keeps_axes(pattern)
    if spread is not None:
        seen = keeps_axes(node)
        if seen is not None and match.axes in (None, seen[1]):
            yield from matches(spread[0], seen[0], Match(match.nodes, seen[1], node.type.shape))
        return
    if node.op is not pattern.op or len(node.args) != len(pattern.args):
        return
    if "axes" in pattern.attrs:
        axes, shape = node.attrs["axes"], node.args[0].type.shape
        if match.axes not in (None, axes):
            return
    elif node.attrs != pattern.attrs:
        return
    else:
        axes, shape = match.axes, match.shape
    match = Match({**match.nodes, pattern: node}, axes, shape)
    yield from _match_all(pattern.args, node.args, match)
    if node.op.laws.commutative and node.args[0] is not node.args[1]:
        yield from _match_all(pattern.args, node.args[::-1], match)


def _match_hole(pattern: Node, node: Node, match: Match) -> Iterator[Match]:
    bound = match.nodes.get(pattern)
    if bound is node:
        yield match
    elif bound is None and (pattern.type.dtype != "bool" or node.type.dtype == "bool"):
        yield Match({**match.nodes, pattern: node}, match.axes, match.shape)


def _match_all(patterns: Sequence[Node], nodes: Sequence[Node], match: Match) -> Iterator[Match]:
    if not patterns:
        yield match
        return
    for first in matches(patterns[0], nodes[0], match):
        yield from _match_all(patterns[1:], nodes[1:], first)


def instantiate(pattern: Node, match: Match, root: Node) -> Node:
    """The replacement graph of a match. `root` gives dtype and sizes if the pattern is just a number."""
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
    """The arguments; a number takes the dtype and sizes of another argument."""
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
) -> tuple[Graph, list[RuleUse]]:
    """The graph after several passes, each a name and rules that are applied to a fixpoint, and what fired, in order.
    varying: for the body of a loop, its loop-varying leaves (`VaryingGuards`).

    A node is rewritten after its arguments; replacements are rewritten themselves.
    """
    visit, fired = Visit.of(graph.outputs), list[RuleUse]()
    guards = VaryingGuards(varying) if varying else None
    if guards is not None and not any(map(guards.of, graph.outputs)):
        guards = None
    for name, rules in passes:
        after, names = _apply_rules(graph, rules, visit, guards)
        if names:
            tell(name, graph, after)
            graph, visit = after, Visit.of(after.outputs)
            fired += names
    return graph, fired


def tell(name: str, before: Graph, after: Graph) -> None:
    """Verify the result of a pass and notify watchers, if there are any."""
    if watched():
        leaves = tuple(node for node in nodes_of(before.outputs) if node.op in LEAVES)
        passed(Step(name, before, after), partial(verify, Graph((*before.inputs, *leaves), after.outputs)))


@record()
class Visit:
    """The nodes of a graph in topological order, and the number of uses of each."""

    order: tuple[Node, ...]
    uses: Mapping[Node, int]

    @staticmethod
    def of(outputs: Iterable[Node]) -> Visit:
        """The nodes that `outputs` depend on, depth first."""
        uses: dict[Node, int] = {}
        order: list[Node] = []
        for output in outputs:
            pending: list[Node | None] = [output]
            while pending:
                node = pending.pop()
                if node is None:  # a marker: all arguments of the node below it are in `order`
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


class VaryingGuards:
    """The guards on loop-varying sizes in a body. Guards on loop-invariant sizes come from the graph as written and are
    checked before the loop. Guards on loop-varying sizes are read off the rewritten body, so a rule must not drop any:
    the code would access memory unchecked."""

    def __init__(self, varying: Sequence[Node]) -> None:
        self.varying = frozenset(varying)
        self.of_nodes: dict[Node, frozenset[Hashable]] = {}
        self.of_sizes: dict[Node, bool] = {}

    def of(self, root: Node) -> frozenset[Hashable]:
        """The guards on loop-varying sizes of a node and its dependencies, as hashable keys."""
        known = self.of_nodes
        return computed(known, root, args_of, lambda node: self._own(node).union(*[known[arg] for arg in node.args]))

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
        varies = self.of_sizes.get(size)
        if varies is None:
            varies = self.of_sizes[size] = not self.varying.isdisjoint(node_set([size]))
        return varies


def _apply_rules(
    graph: Graph, rules: Sequence[AnyRule], visit: Visit, guards: VaryingGuards | None
) -> tuple[Graph, list[RuleUse]]:
    ops = {node.op.name for node in visit.order}
    if not any(_is_for(item, op) for item in rules for op in ops):
        return graph, []
    surveyed = [item.over(visit.order) for item in rules]
    rewriter = _Rewriter(surveyed, dict(visit.uses), {}, set(), {}, {}, [], guards)
    for node in visit.order:
        rewriter.finish(node)
    outputs = tuple(rewriter.final[output] for output in graph.outputs)
    return Graph(graph.inputs, outputs), rewriter.fired


def _is_for(item: AnyRule, op: str) -> bool:
    """True where a rule may replace nodes of an op."""
    return op in item.ops if item.ops else op in OPS


@record(frozen=False)
class _Rewriter:
    """One pass to a fixpoint. final: the final form of each node. moved: the nodes whose final form is another node.
    of_op: the rules for an op, and fitting: those that fit it with arguments of given ops, both memoised."""

    rules: Sequence[AnyRule]
    uses: dict[Node, int]
    final: dict[Node, Node]
    moved: set[Node]
    of_op: dict[str, list[AnyRule]]
    fitting: dict[tuple[str, ...], list[AnyRule]]
    fired: list[RuleUse]
    guards: VaryingGuards | None

    def finish(self, root: Node) -> None:
        """Compute the final form of a node whose arguments are final, and of the replacements on the way, without
        recursion."""
        final = self.final
        if root in final:
            return
        first = self._next(root)
        if first is root:  # the usual case
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
        """One step of rewriting: the node over its final arguments, or a rule's replacement, or the node itself if it
        is final."""
        if not self.moved.isdisjoint(node.args):
            return self._inherit(node, remade(node, tuple([self.final[arg] for arg in node.args])))
        fitting = self._fitting(node)
        if not fitting:
            return node
        before = next_serial()
        for item in fitting:
            after = item.apply(node, self._uses)
            if after is not None and after is not node and _same_type(node, after) and self._keeps(node, after):
                self.fired.append(RuleUse.at(item.name, node))
                set_user_line(after, node.where, before)
                return self._inherit(node, after)
        return node

    def _keeps(self, node: Node, after: Node) -> bool:
        """True if a replacement keeps all guards on loop-varying sizes."""
        return self.guards is None or self.guards.of(node) <= self.guards.of(after)

    def _fitting(self, node: Node) -> list[AnyRule]:
        """The rules that pass the quick pre-check, memoised."""
        key = (node.op.name, *[arg.op.name for arg in node.args])
        fitting = self.fitting.get(key)
        if fitting is None:
            of_op = self.of_op.get(key[0])
            if of_op is None:
                of_op = self.of_op[key[0]] = [item for item in self.rules if _is_for(item, key[0])]
            fitting = self.fitting[key] = [item for item in of_op if item.fits(key[1:])]
        return fitting

    def _inherit(self, node: Node, after: Node) -> Node:
        """`after`, with the uses of `node`; a new node also gets its name and user line."""
        taken = self.uses.get(node, 1) - any(arg is after for arg in node.args)
        self.uses[after] = self.uses.get(after, 0) + taken
        return renamed(after, node) if after.serial > node.serial else after

    def _uses(self, node: Node) -> int:
        return self.uses.get(node, 1)


def set_user_line(node: Node, where: Where | None, serial: int) -> None:
    """Set the user line of the nodes newer than a serial number."""
    pending = [node]
    while pending:
        node = pending.pop()
        if node.serial > serial and node.where is not where and (node.where is None or node.where.words is None):
            node.where = where
            pending += node.args


def _same_type(before: Node, after: Node) -> bool:
    """True if `after` can replace `before`: same dtype and rank, and every known size is still known."""
    return (
        after.type.dtype == before.type.dtype
        and after.ndim == before.ndim
        and all(a == b for b, a in zip(before.type.shape, after.type.shape, strict=True) if isinstance(b, int))
    )
