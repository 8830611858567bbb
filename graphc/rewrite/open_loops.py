"""Open loops: a scan as a graph over variables, which passes modify, and the scan rebuilt from it.

In: a scan, and those of its results that are used. Out: an `OpenLoop`; after passes, replacements of the results:

    scan(lambda x, h: tanh(dot(x, W) + h), X, s0)[-1]       is opened to

    elements  {x: X}         x, h are variables; W is the operand itself, so loop-invariant nodes are ordinary nodes
    states    {h: s0}
    after     {h: tanh(dot(x, W) + h)}
    rows      {r: tanh(dot(x, W) + h)}        r is a variable that stands for the stacked output
    wanted    {item(scan, 1): r}

and `batch_products` turns it into elements {p: dot(X, W)}, after {h: tanh(p + h)}. Closing a loop drops unused
operands, states and results. The module also has what the passes share.

Nodes depend only on older ones. So every node that depends on a loop's variables has a serial number of at least
`OpenLoop.since`, and no search goes into the graph around the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from graphc.ir import sizes
from graphc.ir.body import close, item, opened
from graphc.ir.facts import scalar_constant
from graphc.ir.node import OPS, Node, Size, Type, literal, make, next_serial, variable
from graphc.ir.walk import dependents, nodes_since, rebuilt, renamed, toposort
from graphc.ops.index import subtensor
from graphc.ops.linalg.products import matmul
from graphc.ops.reduce import reduce_sum
from graphc.ops.scan import Loop, is_recomputed, loop_of, outside_shape, scan_node
from graphc.ops.shape import broadcast_to, dimshuffle, drop, expand, filled, reshape, transpose
from graphc.rewrite.engine import is_elementwise
from graphc.startup.record import record


@record(frozen=False)
class OpenLoop:
    """A scan over variables, which passes modify in place.

    elements: for each element variable, its sequence. states: for each state variable, its initial value. after: its
    next value. rows, last: stand-ins for the results outside; each stacked output by its node in the step, each final
    value by its state. condition: the stop condition. taken: the stand-in for the trip count. wanted: for each result
    of the original scan that is used, its replacement over stand-ins. since: nodes of the step have at least this
    serial number.
    """

    node: Node
    count: Size
    limit: Node | None
    reverse: bool
    elements: dict[Node, Node]
    states: dict[Node, Node]
    after: dict[Node, Node]
    rows: dict[Node, Node]
    last: dict[Node, Node]
    condition: Node | None
    taken: Node | None
    wanted: dict[Node, Node]
    since: int

    @property
    def is_whole(self) -> bool:
        """True if all steps are executed: there is neither a limit nor a stop condition."""
        return self.limit is None and self.condition is None

    @property
    def results(self) -> list[Node]:
        """The results of a step: next states, outputs, condition."""
        return [*self.after.values(), *self.rows.values(), *([] if self.condition is None else [self.condition])]

    def order(self) -> list[Node]:
        """The nodes of a step in topological order, including the outside nodes it reads."""
        return nodes_since(self.results, self.since)

    def varying(self, order: Iterable[Node]) -> set[Node]:
        """The loop-varying nodes."""
        return dependents(order, (*self.elements, *self.states))

    def keeps_sizes(self, node: Node) -> bool:
        """True if the sizes of a node are loop-invariant, as they must be to be stacked."""
        sizes = [size for size in node.type.shape if isinstance(size, Node)]
        return {*self.elements, *self.states}.isdisjoint(nodes_since(sizes, self.since))

    def replace(self, known: Mapping[Node, Node]) -> None:
        """Replace nodes of the step."""
        done = dict(known)
        self.change_step(lambda node: rebuilt(done, node, self.since))

    def change_step(self, change: Callable[[Node], Node]) -> None:
        self.after = {state: change(node) for state, node in self.after.items()}
        self.rows = {stand_in: change(node) for stand_in, node in self.rows.items()}
        self.condition = None if self.condition is None else change(self.condition)

    def replace_results(self, known: Mapping[Node, Node]) -> None:
        """Replace stand-ins of results."""
        done = dict(known)
        self.wanted = {node: rebuilt(done, after, self.since) for node, after in self.wanted.items()}

    def move(self, done: dict[Node, Node]) -> None:
        """Apply the replacements of a graph that is being rebuilt."""
        self.change_step(lambda node: rebuilt(done, node))
        self.elements = {element: rebuilt(done, sequence) for element, sequence in self.elements.items()}
        self.states = {state: rebuilt(done, initial) for state, initial in self.states.items()}
        self.wanted = {node: rebuilt(done, after) for node, after in self.wanted.items()}
        self.count = self.count if isinstance(self.count, int) else sizes.as_size(rebuilt(done, self.count))
        self.limit = None if self.limit is None else rebuilt(done, self.limit)

    def element_of(self, sequence: Node) -> Node:
        """The element variable of a sequence, made if necessary."""
        for element, source in self.elements.items():
            if source is sequence:
                return element
        element = variable(sequence.type.dtype, sequence.type.shape[1:])
        self.elements[element] = sequence
        return element

    def rows_of(self, node: Node) -> Node:
        """The stacked values of a node of the step: its sequence if it is an element, else the stand-in of an output,
        added if necessary."""
        if node in self.elements:
            return whole(self.elements[node], self.count)
        for stand_in, output in self.rows.items():
            if output is node:
                return stand_in
        stand_in = variable(node.type.dtype, (self.count, *node.type.shape))
        self.rows[stand_in] = node
        return stand_in


def whole(sequence: Node, count: Size) -> Node:
    """The first `count` rows of a sequence."""
    return part_of(sequence, 0, count)


def part_of(sequence: Node, start: Size, count: Size) -> Node:
    """`count` rows of a sequence, from row `start` on."""
    starts = [start, *[0] * (sequence.ndim - 1)]
    return subtensor(sequence, starts, (count, *sequence.type.shape[1:]), [1] * sequence.ndim)


def open_loop(node: Node, items: Iterable[Node]) -> OpenLoop:
    """A scan as an OpenLoop. items: the results that are used; the others are dropped."""
    loop, since = loop_of(node.args, node.attrs), next_serial()
    known: dict[Node, Node] = dict(zip(loop.fixed, loop.constants, strict=True))
    elements: dict[Node, Node] = {}
    of_sequence: dict[Node, Node] = {}
    for param, sequence in zip(loop.elements, loop.sequences, strict=True):
        if sequence not in of_sequence:
            of_sequence[sequence] = _stand_in(loop, param, sequence.type.shape[1:])
            elements[of_sequence[sequence]] = sequence
        known[param] = of_sequence[sequence]
    states: dict[Node, Node] = {}
    for param, initial in zip(loop.states, loop.initial, strict=True):
        known[param] = _stand_in(loop, param, initial.type.shape)
        states[known[param]] = initial
    results = opened(loop.body, [known[param] for param in loop.body.params])
    kinds: tuple[Type, ...] = node.type.parts  # type: ignore[attr-defined]
    stand_ins = [variable(kind.dtype, kind.shape) for kind in kinds]
    carries, until = len(loop.initial), loop.repeat.until
    made = OpenLoop(
        node,
        sizes.as_size(loop.count),
        loop.limit,
        loop.repeat.reverse,
        elements,
        states,
        dict(zip(states, results, strict=False)),
        dict(zip(stand_ins[carries : len(kinds) - until], results[carries:], strict=False)),
        dict(zip(stand_ins, states, strict=False)),
        results[-1] if until else None,
        stand_ins[-1] if until else None,
        {part: stand_ins[part.attrs["index"]] for part in items},
        since,
    )
    prune(made)
    return made


def _stand_in(loop: Loop, param: Node, shape: Sequence[Size]) -> Node:
    """A variable for a parameter, with the sizes of its operand; a size known on either side is a number."""
    inner = outside_shape(loop, param)
    return variable(
        param.type.dtype, [b if isinstance(b, int) else a for a, b in zip(shape, inner, strict=True)], param.name
    )


def close_loop(loop: OpenLoop) -> dict[Node, Node]:
    """Build the scan again; returns the replacement of each wanted node."""
    prune(loop)
    if not loop.results and loop.taken is None:
        return loop.wanted
    states, elements = list(loop.states), list(loop.elements)
    stacked = list(dict.fromkeys(loop.rows.values()))
    until = [] if loop.condition is None else [loop.condition]
    results = [*loop.after.values(), *stacked]
    body, captured = close([*elements, *states], [*results, *until])
    node = scan_node(
        loop.count,
        body,
        [loop.elements[element] for element in elements],
        [loop.states[state] for state in states],
        captured,
        # Without states the order of steps is free: the forward one, so that equal loops are one node.
        loop.reverse and (bool(states) or not loop.is_whole),
        bool(until),
        loop.limit,
        is_recomputed(loop.node),
    )
    renamed(node, loop.node)
    places = {stand_in: states.index(state) for stand_in, state in loop.last.items()}
    places |= {stand_in: len(states) + stacked.index(output) for stand_in, output in loop.rows.items()}
    if loop.taken is not None:
        places[loop.taken] = len(results)
    done = {stand_in: fitted(item(node, place), stand_in.type) for stand_in, place in places.items()}
    return {before: rebuilt(done, after, loop.since) for before, after in loop.wanted.items()}


def prune(loop: OpenLoop) -> None:
    """Drop unused results, and states and elements that no result or used state depends on."""
    asked = set(nodes_since(loop.wanted.values(), loop.since))
    loop.rows = {stand_in: output for stand_in, output in loop.rows.items() if stand_in in asked}
    loop.last = {stand_in: state for stand_in, state in loop.last.items() if stand_in in asked}
    if not loop.rows and not loop.last and loop.taken not in asked:
        loop.condition = loop.taken = None
    needed: set[Node] = set()
    pending = [*loop.rows.values(), *loop.last.values(), *([] if loop.condition is None else [loop.condition])]
    while pending:
        node = pending.pop()
        if node not in needed:
            needed.add(node)
            if node in loop.after:
                pending.append(loop.after[node])
            elif node.serial >= loop.since:
                pending += node.args
    loop.elements = {element: sequence for element, sequence in loop.elements.items() if element in needed}
    loop.states = {state: initial for state, initial in loop.states.items() if state in needed}
    loop.after = {state: loop.after[state] for state in loop.states}


def fitted(node: Node, type: Type) -> Node:
    """`node` with the sizes that are numbers in `type`; they are the ones it has at run time."""
    pairs = list(zip(node.type.shape, type.shape, strict=True))
    if all(isinstance(old, int) or not isinstance(new, int) for old, new in pairs):
        return node
    return broadcast_to(node, [new if isinstance(new, int) else old for old, new in pairs])


def unbroadcast(node: Node) -> Node:
    """The node beneath broadcasts that only restate its sizes."""
    while node.op.name == "broadcast_to":
        before = node.args[0]
        pairs = zip(before.type.shape, node.type.shape, strict=True)
        if any(sizes.equal(old, 1) and not sizes.equal(new, 1) for old, new in pairs):
            break
        node = before
    return node


# --- lifting: a node for all steps at once ----------------------------------------------------------------------------


def liftable(roots: Iterable[Node], order: Iterable[Node], varying: set[Node], products: bool = False) -> set[Node]:
    """The loop-varying nodes that depend on the step only through `roots`, by elementwise ops and views; with
    `products`, also by products with a loop-invariant matrix and reductions between them. These can be computed for all
    steps at once."""
    liftable = set(roots)
    for node in order:
        if node in varying and node not in liftable and node.args:
            moved = [arg for arg in node.args if arg in varying]
            if liftable.issuperset(moved) and (_is_plain(node, varying) or (products and _is_summed(node, varying))):
                liftable.add(node)
    return liftable


_MOVING = ("broadcast_to", "dimshuffle", "reshape", "subtensor")


def _is_plain(node: Node, varying: set[Node]) -> bool:
    return varying.isdisjoint(node.args[1:]) if node.op.name in _MOVING else is_elementwise(node)


_REDUCING = (
    "sum", "prod", "max", "min", "supremum", "max_or_lowest", "min_or_highest", "any", "all", "argmax", "argmin"
)  # fmt: skip


def _is_summed(node: Node, varying: set[Node]) -> bool:
    return node.op.name in _REDUCING or _is_inner(node) or is_batch(node, varying)


def _is_inner(node: Node) -> bool:
    """True if a node is a product of two vectors."""
    return node.op.name == "matmul" and not node.ndim


def is_batch(node: Node, varying: set[Node]) -> bool:
    """True if the products of all steps combine into one matrix product."""
    if node.op.name != "matmul":
        return False
    a, b = node.args
    if a in varying:
        return b not in varying and a.ndim <= 2 and b.ndim <= 2 and a.ndim + b.ndim > 2
    return a.ndim == 2 and b.ndim == 1


def lifted(
    loop: OpenLoop, roots: Sequence[Node], varying: set[Node], given: Mapping[Node, Callable[[], Node]] | None = None
) -> list[Node]:
    """The stacked values of liftable nodes, one row for each step. given: functions that return the stacked values of
    further nodes."""
    own: Mapping[Node, Callable[[], Node]] = given or {}
    rows: dict[Node, Node] = {}

    def needs(node: Node) -> Sequence[Node]:
        return () if node in own or node.serial < loop.since else node.args

    for node in toposort(roots, needs):
        if node in loop.elements:
            rows[node] = whole(loop.elements[node], loop.count)
        elif node in own:
            rows[node] = own[node]()
        elif node in varying:
            rows[node] = _lift(loop.count, node, rows)
    return [rows[root] if root in rows else spread(loop.count, root) for root in roots]


def _lift(count: Size, node: Node, rows: Mapping[Node, Node]) -> Node:
    x = rows.get(node.args[0])
    numbers = [] if node.op.name not in _MOVING else [sizes.as_size(arg) for arg in node.args[1:]]
    match node.op.name, x:
        case "matmul", _:
            return _batch(count, node, rows)
        case "dimshuffle", Node():
            return dimshuffle(x, [0, *(axis if axis == "x" else axis + 1 for axis in node.attrs["order"])])
        case "broadcast_to", Node():
            return broadcast_to(x, [count, *numbers])
        case "reshape", Node():
            return reshape(x, [count, *numbers])
        case "subtensor", Node():
            starts, shape = numbers[: node.ndim], numbers[node.ndim :]
            return subtensor(x, [0, *starts], [count, *shape], [1, *node.attrs["steps"]])
        case name, Node() if name in _REDUCING:
            return make(node.op, [x], {"axes": tuple([axis + 1 for axis in node.attrs["axes"]])})
    return make(node.op, [rows[arg] if arg in rows else spread(count, arg) for arg in node.args], node.attrs)


def spread(count: Size, node: Node) -> Node:
    """A loop-invariant node, repeated for each step."""
    return broadcast_to(expand(node, (0,)), (count, *node.type.shape))


def _batch(count: Size, node: Node, rows: Mapping[Node, Node]) -> Node:
    """The products of all steps as one matrix product; inner products as a sum over an axis."""
    a, b = node.args
    if _is_inner(node):
        left, right = (rows[arg] if arg in rows else spread(count, arg) for arg in node.args)
        return reduce_sum(make(OPS["mul"], (left, right)), (1,))
    if a not in rows:
        return matmul(rows[b], transpose(a))
    product = matmul(flat(rows[a]) if a.ndim > 1 else rows[a], b)
    return reshape(product, (count, *node.type.shape)) if a.ndim > 1 else product


def flat(rows: Node) -> Node:
    """The first two axes merged: the rows of all steps, one after the other."""
    first, second, *rest = rows.type.shape
    return reshape(rows, (sizes.multiply(first, second), *rest))


def repeated(sequence: Node) -> Node | None:
    """The element of a sequence whose elements are all equal, else None."""
    number = scalar_constant(sequence)
    if number is not None:
        return filled(literal(number), sequence.type.shape[1:])
    if sequence.op.name != "broadcast_to" or not sizes.equal(sequence.args[0].type.shape[0], 1):
        return None
    return broadcast_to(drop(sequence.args[0], (0,)), sequence.type.shape[1:])


# --- shared by passes -------------------------------------------------------------------------------------------------


@record()
class LoopContext:
    """The graph around the loops. taken: for each node its consumers and the argument positions. outputs: the graph's
    outputs."""

    taken: Mapping[Node, Sequence[tuple[Node, int]]]
    outputs: frozenset[Node]


Change: TypeAlias = Callable[[OpenLoop, LoopContext], bool]


def uses_of(loop: OpenLoop, order: Iterable[Node]) -> Counter[Node]:
    """The number of uses of each node in a step, as an argument and as a result."""
    uses = Counter(loop.results)
    for node in order:
        uses.update(node.args)
    return uses


def replace_outputs(loop: OpenLoop, outputs: Mapping[Node, Node]) -> None:
    """Replace outputs of a loop by nodes computed outside, and remove them from the loop."""
    for stand_in in outputs:
        loop.rows.pop(stand_in, None)
    loop.replace_results({stand_in: fitted(node, stand_in.type) for stand_in, node in outputs.items()})
