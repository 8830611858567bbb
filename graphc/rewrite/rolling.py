"""Loop rerolling: runs of equal steps become scans, so that later passes handle one step.

In: a graph. Out: an equal graph in which the runs found by `equal_steps.py` are scans, and what fired:

    h = h0
    for i in range(12):                          scan(count=12, states=[h0], sequences=[x[0:12]],
        h = sin(h) * x[i] + exp(h)                    body: h, x_i -> sin(h) * x_i + exp(h))

Values from earlier steps become states. Constants that differ between steps, elements at such positions, and results of
other runs become sequences. Outside, the last state or rows of an output replace the nodes of the steps. Every step
performs the same operations in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from graphc.ir.body import close, item, make_body
from graphc.ir.node import Node, Size, literal, make, remade, variable
from graphc.ir.sizes import as_size
from graphc.ir.walk import Graph, renamed
from graphc.ops.elementwise import elementwise
from graphc.ops.index import subtensor
from graphc.ops.scan import scan_node
from graphc.ops.shape import dimshuffle, drop, expand, iota, reshape
from graphc.rewrite.engine import RuleUse, tell
from graphc.rewrite.equal_steps import LEAST_STEPS, Role, Run, Text, equal_steps
from graphc.startup.record import fresh, record

ROLLED = "equal_steps"
"""The name of the pass."""
VIEWS = ("dimshuffle", "broadcast_to")
"""Ops that are repeated in a step, instead of reading their rows from another run."""


class NotAlikeError(Exception):
    """A type changes when a constant becomes loop-varying. The graph is then left unrolled."""


def roll_steps(graph: Graph) -> tuple[Graph, list[RuleUse]]:
    """The graph with runs of equal steps as scans."""
    text, runs = equal_steps(graph.outputs)
    if not runs:
        return graph, []
    roller = Roller(text, runs, graph.outputs)
    try:
        after = Graph(graph.inputs, roller.rolled(graph.outputs))
    except NotAlikeError:
        return graph, []
    tell(ROLLED, graph, after)
    return after, roller.fired


@record()
class Source:
    """The origin of a column: row `row` of another run, from step `first` on, every `by`-th; or constants, if `run` is
    None. views: nodes between that row and the argument, to be repeated in the step, the last one first."""

    run: Run | None
    row: int
    first: int
    by: int
    views: tuple[Node, ...] = ()


@record(frozen=False)
class Loop:
    """A run that becomes a scan. values: the node of each row in the body. elements: variable and sequence, by origin.
    states: the chain of variables, by role and initial values, the previous step's first. rows: the row that updates a
    state. initial: the initial value of each state variable."""

    run: Run
    values: list[Node] = fresh(factory=list)
    elements: dict[object, tuple[Node, Node]] = fresh(factory=dict)
    states: dict[object, list[Node]] = fresh(factory=dict)
    rows: dict[Node, int] = fresh(factory=dict)
    initial: dict[Node, Node] = fresh(factory=dict)

    def after(self, state: Node) -> Node:
        """The next value of a state."""
        for states in self.states.values():
            if state in states[1:]:
                return states[states.index(state) - 1]
        return self.values[self.rows[state]]


class Roller:
    """Rebuilds a graph with runs as scans. taken: for each run, the rows used outside and the steps they are used from.
    done: the replacement of each node. results: for each run its scan, and the result numbers of last states and of
    stacked rows."""

    def __init__(self, text: Text, runs: Sequence[Run], outputs: Sequence[Node]) -> None:
        self.text, self.runs = text, runs
        self.run_of = {place: run for run in runs for place in range(run.start, run.end)}
        self.starts = {run.start: run for run in runs}
        self.done: dict[Node, Node] = {}
        self.taken: dict[Run, dict[int, set[int]]] = {run: {} for run in runs}
        self.results: dict[Run, tuple[Node, dict[int, int], dict[int, int]]] = {}
        self.fired: list[RuleUse] = []
        for node in self.asked(outputs):
            self.take(node)

    # uses of runs from outside

    def asked(self, outputs: Sequence[Node]) -> Iterator[Node]:
        """The nodes used outside of steps: by outputs, by nodes outside runs, and as constants or initial values of
        runs. Also records the rows that other runs read."""
        yield from outputs
        for place, node in enumerate(self.text.order):
            run = self.run_of.get(place)
            if run is None:
                yield from node.args
                continue
            step, row = run.found_at(place)
            for role, arg in zip(run.roles[row], node.args, strict=True):
                if step < (role.distance if role.kind == "before" else role.kind == "same"):
                    yield arg
            if not step:
                for source in self.sources(run, row):
                    if source.run is not None:
                        self.taken[source.run].setdefault(source.row, set()).update(range(source.run.count))

    def take(self, node: Node) -> None:
        place = self.text.place.get(node, -1)
        run = self.run_of.get(place)
        if run is not None:
            step, row = run.found_at(place)
            self.taken[run].setdefault(row, set()).add(step)

    def sources(self, run: Run, row: int) -> Iterator[Source]:
        for number, role in enumerate(run.roles[row]):
            if role.kind == "column":
                yield self.source(run, row, number)

    def source(self, run: Run, row: int, number: int) -> Source:
        """The origin of a column of arguments."""
        first, second = (self.text.args[run.at(step, row)][number] for step in range(2))
        other = self.run_of.get(first)
        if other is None:
            return Source(None, 0, 0, 0)
        (begin, at), (after, _) = other.found_at(first), other.found_at(second)
        views: list[Node] = []
        while True:
            node = self.text.order[other.at(begin, at)]
            inner, *rest = other.roles[at]
            if node.op.name not in VIEWS or inner.kind != "own" or any(role.kind != "same" for role in rest):
                return Source(other, at, begin, after - begin, tuple(views))
            views.append(node)
            at = inner.row

    # writing

    def rolled(self, outputs: Sequence[Node]) -> tuple[Node, ...]:
        place = 0
        while place < len(self.text.order):
            run = self.starts.get(place)
            if run is not None:
                self.roll(run)
                place = run.end
                continue
            node = self.text.order[place]
            if node.op.name == "concatenate" and node.attrs["axis"] == 0:
                args = list(self.joined(node.args))
            else:
                args = [self.value(arg) for arg in node.args]
            same = len(args) == len(node.args) and all(map(lambda a, b: a is b, args, node.args))
            if len(args) == 1 and node.op.name == "concatenate":
                self.done[node] = args[0]
            else:
                self.done[node] = node if same else renamed(remade(node, tuple(args)), node)
            place += 1
        return tuple([self.value(output) for output in outputs])

    def joined(self, args: Sequence[Node]) -> Iterator[Node]:
        """The arguments of a concatenation; consecutive steps of a run become one reshaped block of rows."""
        number = 0
        while number < len(args):
            place = self.text.place.get(args[number], -1)
            run = self.run_of.get(place)
            count = 0
            if run is not None:
                while number + count < len(args) and run.start <= place < run.end:
                    if self.text.place.get(args[number + count], -1) != place + count * run.period:
                        break
                    count += 1
            if run is None or count < LEAST_STEPS:
                yield self.value(args[number])
                number += 1
                continue
            step, row = run.found_at(place)
            count = min(count, run.count - step)
            rows = self.rows(run, row, step, count, 1)
            length = args[number].type.shape[0]
            assert isinstance(length, int)
            yield reshape(rows, (count * length, *args[number].type.shape[1:]))
            number += count

    def value(self, node: Node) -> Node:
        """The replacement of a node."""
        if node in self.done:
            return self.done[node]
        place = self.text.place.get(node)
        if place is None:
            return node
        run = self.run_of[place]
        step, row = run.found_at(place)
        scan, last, _ = self.results[run]
        if step == run.count - 1 and row in last:
            row_value = item(scan, last[row])
        else:
            row_value = drop(self.rows(run, row, step, 1, 1), (0,))
        self.done[node] = row_value
        return row_value

    def rows(self, run: Run, row: int, first: int, count: int, by: int) -> Node:
        """The values of a row in `count` steps, from step `first` on, every `by`-th."""
        scan, _, places = self.results[run]
        stacked = item(scan, places[row])
        rest = stacked.type.shape[1:]
        return subtensor(stacked, (first, *(0 for _ in rest)), (count, *rest), (by, *(1 for _ in rest)))

    def roll(self, run: Run) -> None:
        """Turn a run into a scan."""
        loop = Loop(run)
        for row in range(run.period):
            node = self.text.order[run.at(0, row)]
            value = self.element_at(loop, row)
            loop.values.append(self.computed(loop, row) if value is None else value)
            if loop.values[-1].type != node.type:
                raise NotAlikeError
        taken = self.taken[run]
        final = {loop.rows[states[0]]: states[0] for states in loop.states.values()}
        steps = {row for row, steps in taken.items() if steps != {run.count - 1} or row not in final}
        states = [state for chain in loop.states.values() for state in chain]
        after = [loop.after(state) for state in states]
        elements = [element for element, _ in loop.elements.values()]
        outputs = sorted(steps)
        body, captured = close([*elements, *states], [*after, *(loop.values[row] for row in outputs)])
        scan = scan_node(
            run.count,
            make_body(body.params, body.results, ()),  # guards were checked for each step
            [sequence for _, sequence in loop.elements.values()],
            [loop.initial[state] for state in states],
            captured,
        )
        node = self.text.order[run.at(0, run.period - 1)]
        renamed(scan, node)
        last = {row: states.index(state) for row, state in final.items() if row in taken}
        self.results[run] = scan, last, {row: len(states) + number for number, row in enumerate(outputs)}
        self.fired.append(RuleUse(ROLLED, f"{run.count} steps of {run.period} nodes", node.where))

    def computed(self, loop: Loop, row: int) -> Node:
        """The node of a row in the body."""
        node = self.text.order[loop.run.at(0, row)]
        args = [self.argument(loop, row, number, role) for number, role in enumerate(loop.run.roles[row])]
        return renamed(make(node.op, args, node.attrs), node)

    def argument(self, loop: Loop, row: int, number: int, role: Role) -> Node:
        if role.kind == "own":
            return loop.values[role.row]
        if role.kind == "same":
            return self.value(self.text.order[loop.run.at(0, row)].args[number])
        if role.kind == "before":
            return self.state(loop, row, number, role)
        source = self.source(loop.run, row, number)
        if source.run is None:
            return self.number(loop, row, number)
        element = self.element(loop, source)
        for node in reversed(source.views):
            element = make(node.op, (element, *map(self.value, node.args[1:])), node.attrs)
        return element

    def state(self, loop: Loop, row: int, number: int, role: Role) -> Node:
        """The state variable for a value from an earlier step. Its initial values are the arguments of the first
        steps."""
        run = loop.run
        begins = tuple(self.value(self.text.order[run.at(step, row)].args[number]) for step in range(role.distance))
        key = role, begins
        if key not in loop.states:
            node = self.text.order[run.at(0, role.row)]
            loop.states[key] = [variable(node.type.dtype, node.type.shape, node.name) for _ in begins]
            loop.initial.update(zip(loop.states[key], reversed(begins), strict=True))
            loop.rows[loop.states[key][0]] = role.row
        return loop.states[key][-1]

    def element(self, loop: Loop, source: Source) -> Node:
        """The element variable for a row of another run."""
        assert source.run is not None
        key = source.run, source.row, source.first, source.by
        if key not in loop.elements:
            sequence = self.rows(source.run, source.row, source.first, loop.run.count, source.by)
            loop.elements[key] = variable(sequence.type.dtype, sequence.type.shape[1:]), sequence
        return loop.elements[key][0]

    def constants(self, run: Run, row: int, number: int) -> np.ndarray:
        nodes = (self.text.order[run.at(step, row)].args[number] for step in range(run.count))
        return np.stack([node.attrs["value"].value for node in nodes])

    def number(self, loop: Loop, row: int, number: int) -> Node:
        """The constant of a step: an affine function of the step number if possible, else an element of a constant
        array."""
        values = self.constants(loop.run, row, number)
        if line := affine(values):
            first, by = line
            step = self.sequence(loop, iota(loop.run.count))
            return elementwise("add", elementwise("mul", step, literal(by)), literal(first))
        return self.sequence(loop, literal(values))

    def sequence(self, loop: Loop, sequence: Node) -> Node:
        if sequence not in loop.elements:
            loop.elements[sequence] = variable(sequence.type.dtype, sequence.type.shape[1:]), sequence
        return loop.elements[sequence][0]

    def element_at(self, loop: Loop, row: int) -> Node | None:
        """An element variable, if the row reads consecutive parts of one array; else None."""
        run, node = loop.run, self.text.order[loop.run.at(0, row)]
        roles = run.roles[row]
        if node.op.name != "subtensor" or roles[0].kind != "same":
            return None
        moving = [number for number, role in enumerate(roles) if role.kind != "same"]
        axis = moving[0] - 1 if len(moving) == 1 else node.ndim
        if axis >= node.ndim or roles[moving[0]].kind != "column" or node.type.shape[axis] != 1:
            return None
        if self.source(run, row, moving[0]).run is not None:
            return None
        line = affine(self.constants(run, row, moving[0]))
        if line is None:
            return None
        array, *numbers = (self.value(arg) for arg in node.args)
        starts: list[Size] = [as_size(each) for each in numbers[: node.ndim]]
        starts[axis] = line[0]
        shape = [run.count if k == axis else size for k, size in enumerate(node.type.shape)]
        steps = [line[1] if k == axis else step for k, step in enumerate(node.attrs["steps"])]
        part = subtensor(array, starts, shape, steps)
        sequence = dimshuffle(part, (axis, *(k for k in range(node.ndim) if k != axis)))
        return renamed(expand(self.sequence(loop, sequence), (axis,)), node)


def affine(values: np.ndarray) -> tuple[int, int] | None:
    """(first, difference) of an arithmetic progression of integers, with nonzero difference; None otherwise."""
    if values.dtype != np.int64 or values.ndim != 1:
        return None
    by = values[1] - values[0]
    return (int(values[0]), int(by)) if by and (np.diff(values) == by).all() else None
