"""Detection of unrolled loops: runs of equal steps in a graph, as a Python loop over time leaves them.

In: the outputs of a graph. Out: its nodes in an order in which equal steps are adjacent, and the runs:

    h = h0
    for i in range(12):                     Run(start=0, period=..., count=12): 12 steps of equal nodes; the role of h
        h = sin(h) * x[i] + exp(h)          is `before` at distance 1 (a state), of x `same`, of i `column` (0, 1, 2, …)

Each node is a token: its op, attributes and type. Steps are found where tokens repeat at a fixed distance. An argument
has the same role in all steps:

    same      one node for all steps
    own       a node of the same step, at a fixed row
    before    a node of an earlier step, at a fixed distance and row
    column    a different node in each step: constants, or the results of another run, forward or backward

A graph is not a sequence: equal nodes may be anywhere in a topological order. So the first run found whose steps depend
on earlier ones becomes a clock: nodes that depend on its step k, and on no later one, are moved after that step, and
the search is repeated, which finds longer steps. Nodes used only by the steps of another clock stay with those.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

from graphc.ir.facts import scalar_constant
from graphc.ir.lowering import Iota, Scalar, View
from graphc.ir.node import CONSTANT, LEAVES, Node, find_node, literal
from graphc.ir.sizes import known_most
from graphc.startup.record import record

LEAST_STEPS = 8
LEAST_NODES = 64
"""Runs with fewer steps, or fewer nodes in total, are left unrolled."""
ALIKE = 6
"""The length of the token sequence that is looked up to find the beginning of another step."""
PERIODS = 8
"""The number of repetitions of it that are tried as a period."""
FARTHEST = 8
"""The greatest distance, in steps, of a dependence on an earlier step."""
SHORT, LONGEST = 64, 4096
"""Limits on the elements of arrays in a step. Above SHORT, a step is rerolled only if its elementwise loops cannot be
fused with others anyway, because the step needs whole arrays; above LONGEST never, since threads may share such
loops."""
CLOCKS = 8
"""The number of runs, at most, that are used to reorder the nodes depending on them."""
MOST_LEFT = 10
"""Stop when fewer than one in MOST_LEFT of the nodes are left."""
PARTS = ("subtensor", "dimshuffle", "inc_subtensor", "set_subtensor")
"""Ops that read or change a part of an array, which may be long."""


@record()
class Role:
    """The kind of an argument, the same in every step. `same`: one node. `own`: made by row `row` of the same step.
    `before`: made by row `row`, `distance` steps before. `column`: a different node in each step."""

    kind: str
    row: int = 0
    distance: int = 0


SAME, COLUMN = Role("same"), Role("column")
Roles: TypeAlias = Sequence[Sequence[Role]]
"""The roles of the arguments, for each row (node) of a step."""


@record(eq=False)
class Run:
    """`count` equal steps of `period` nodes each, from position `start` of the order on, with the roles of their
    arguments."""

    start: int
    period: int
    count: int
    roles: Roles

    @property
    def end(self) -> int:
        return self.start + self.period * self.count

    @property
    def hands_on(self) -> bool:
        """True if a step depends on an earlier one."""
        return any(role.kind == "before" for roles in self.roles for role in roles)

    def at(self, step: int, row: int) -> int:
        """The position in the order of a row of a step."""
        return self.start + step * self.period + row

    def found_at(self, place: int) -> tuple[int, int]:
        """The step and row at a position."""
        return divmod(place - self.start, self.period)


@record(eq=False)
class Text:
    """Nodes in topological order, as a string of tokens. place: the position of each node. args: the positions of
    arguments, -1 for leaves."""

    order: Sequence[Node]
    place: Mapping[Node, int]
    tokens: Sequence[int]
    args: Sequence[Sequence[int]]


class Tokens:
    """Numbers for nodes: equal for nodes with equal op, attributes, type and number of arguments."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.known: dict[Node, int] = {}

    def of(self, node: Node) -> int:
        number = self.known.get(node)
        if number is None:
            shape = tuple([size if isinstance(size, int) else (id(size),) for size in node.type.shape])
            attrs = tuple(sorted(node.attrs.items(), key=lambda item: item[0]))
            key = (node.op.name, attrs, node.type.dtype, shape, len(node.args))
            number = self.known[node] = self.numbers.setdefault(key, len(self.numbers))
        return number

    def text(self, order: Sequence[Node]) -> Text:
        place = {node: number for number, node in enumerate(order)}
        tokens = [self.of(node) for node in order]
        return Text(order, place, tokens, [[place.get(arg, -1) for arg in node.args] for node in order])


def equal_steps(outputs: Sequence[Node]) -> tuple[Text, list[Run]]:
    """The nodes that `outputs` depend on, except leaves, reordered, and the runs of equal steps among them."""
    tokens = Tokens()
    text = tokens.text(needed(outputs))
    settled = 0
    runs: list[Run] = []
    for _ in range(CLOCKS):
        if len(text.order) - settled < max(LEAST_NODES, len(text.order) // MOST_LEFT):
            break
        clock = first_clock(text, settled, runs)
        if clock is None:
            break
        before = text.order[:settled]
        timed = tokens.text(needed([*before, *in_time(text, clock, outputs), *outputs]))
        longer = first_clock(timed, settled, runs)
        if longer is not None:
            text, clock = timed, longer
        steps = list(steps_around(text, clock))
        text = tokens.text(needed([*before, *text.order[settled : clock.start], *steps, *outputs]))
        runs += find_runs(text, settled, text.place[steps[-1]] + 1, runs)
        settled = text.place[steps[-1]] + 1
    return text, [*runs, *find_runs(text, settled, len(text.order), runs)]


def first_clock(text: Text, start: int, known: Sequence[Run]) -> Run | None:
    """The first run, from a position on, whose steps depend on earlier ones."""
    return next((run for run in find_runs(text, start, len(text.order), known) if run.hands_on), None)


def needed(roots: Iterable[Node]) -> list[Node]:
    """The nodes that `roots` depend on, except leaves, in topological order; those of the first root come first."""
    is_done: dict[Node, bool] = {}
    order: list[Node] = []
    for root in roots:
        pending = [root]
        while pending:
            node = pending.pop()
            if is_done.get(node):
                continue
            if node in is_done:  # its arguments are there
                is_done[node] = True
                order.append(node)
            elif node.args:
                is_done[node] = False
                pending.append(node)
                pending += [arg for arg in reversed(node.args) if arg not in is_done]
            elif node.op not in LEAVES:
                is_done[node] = True
                order.append(node)
    return order


def in_time(text: Text, clock: Run, outputs: Iterable[Node]) -> Iterator[Node]:
    """The nodes that depend on a run and are used soon after: each is placed after the last step that it depends on, up
    to the end of the run. A node first used two or more steps later is placed where it is used."""
    never, last = clock.count + FARTHEST, clock.count - 1
    latest = [-1] * len(text.order)
    for place, args in enumerate(text.args):
        latest[place] = max([latest[arg] for arg in args if arg >= 0], default=-1)
        if clock.start <= place < clock.end:
            latest[place] = clock.found_at(place)[0]
    wanted = [never] * len(text.order)
    for output in outputs:
        if output in text.place:
            wanted[text.place[output]] = latest[text.place[output]]
    groups: list[list[Node]] = [[] for _ in range(clock.count)]
    for place in reversed(range(len(text.order))):
        step = latest[place]
        when = wanted[place]
        if clock.start <= place < clock.end or (0 <= step < last and when - step <= 1):
            groups[step].append(text.order[place])
            when = step
        for arg in text.args[place]:
            if arg >= 0:
                wanted[arg] = min(wanted[arg], when)
    for group in groups:
        yield from reversed(group)


Steps: TypeAlias = Sequence[Sequence[Node]]


def steps_around(text: Text, run: Run) -> Iterator[Node]:
    """The nodes of a run, extended by equal steps before and after it that stand elsewhere in the order."""
    steps = [[text.order[run.at(step, row)] for row in range(run.period)] for step in range(run.count)]
    while (found := step_before(text, run.roles, steps)) is not None:
        steps.insert(0, found)
    while (found := step_after(text, run.roles, steps)) is not None:
        steps.append(found)
    for step in steps:
        yield from step


def step_after(text: Text, roles: Roles, steps: Steps) -> list[Node] | None:
    """The nodes of one more step after the last; None if the graph has none."""
    before = {
        (row, number): steps[-role.distance][role.row]
        for row, here in enumerate(roles)
        for number, role in enumerate(here)
        if role.kind == "before"
    }
    return completed(text, roles, {}, before, steps[-2], steps[-1])


def step_before(text: Text, roles: Roles, steps: Steps) -> list[Node] | None:
    """The nodes of one more step before the first, reconstructed from the arguments of the first steps; None if there
    is none."""
    known: dict[int, Node] = {}
    for row, here in enumerate(roles):
        for number, role in enumerate(here):
            if role.kind == "before":
                arg = steps[role.distance - 1][row].args[number]
                if known.setdefault(role.row, arg) is not arg:
                    return None
    for row in reversed(range(len(roles))):
        node, like = known.get(row), steps[0][row]
        if node is None:
            continue
        if node.op is not like.op or node.attrs != like.attrs or len(node.args) != len(like.args):
            return None
        for role, arg in zip(roles[row], node.args, strict=True):
            if role.kind == "own" and known.setdefault(role.row, arg) is not arg:
                return None
    return completed(text, roles, known, {}, steps[1], steps[0])


def completed(
    text: Text,
    roles: Roles,
    known: Mapping[int, Node],
    before: Mapping[tuple[int, int], Node],
    step: Sequence[Node],
    other: Sequence[Node],
) -> list[Node] | None:
    """The nodes of the next step after `step` and `other` in either direction, looked up by their arguments (nodes are
    interned). known: nodes known already, by row. before: arguments from earlier steps. None if such a step does not
    exist."""
    nodes: list[Node] = []
    for row, here in enumerate(roles):
        args: list[Node] = []
        for number, role in enumerate(here):
            if role.kind == "own":
                arg: Node | None = nodes[role.row]
            elif role.kind == "before":
                arg = before.get((row, number), known[row].args[number] if row in known else None)
            else:
                arg = beyond(text, step[row].args[number], other[row].args[number])
            if arg is None:
                return None
            args.append(arg)
        node = find_node(other[row].op, args, other[row].attrs)
        if node is None or node not in text.place or known.get(row, node) is not node:
            return None
        nodes.append(node)
    return nodes


def beyond(text: Text, arg: Node, other: Node) -> Node | None:
    """The argument that continues the progression of two neighbouring steps; None if there is none."""
    if arg is other:
        return arg
    if arg.op is CONSTANT and other.op is CONSTANT and arg.type.dtype == other.type.dtype == "int64" and not arg.ndim:
        return literal(2 * int(other.attrs["value"].value) - int(arg.attrs["value"].value))
    if arg in text.place and other in text.place:
        place = 2 * text.place[other] - text.place[arg]
        if 0 <= place < len(text.order) and text.tokens[place] == text.tokens[text.place[arg]]:
            return text.order[place]
    return None


# --- runs -------------------------------------------------------------------------------------------------------------


def find_runs(text: Text, start: int, end: int, known: Iterable[Run]) -> Iterator[Run]:
    """The runs of equal steps between two positions, in order. known: the runs before."""
    finder = Finder(text, end)
    for run in known:
        finder.add(run)
    again: dict[tuple[int, ...], list[int]] = {}
    tokens = text.tokens
    for place in range(start, end - ALIKE + 1):
        again.setdefault(tuple(tokens[place : place + ALIKE]), []).append(place)
    place = start
    while place < end - ALIKE:
        others = again[tuple(tokens[place : place + ALIKE])]
        after = bisect_right(others, place)
        found = finder.run_at(place, others[after : after + PERIODS])
        if found is None:
            place += 1
        else:
            finder.add(found)
            yield found
            place = found.end


class Finder:
    """Searches for runs from left to right. step_of: the run that each position belongs to."""

    def __init__(self, text: Text, end: int) -> None:
        self.text, self.end = text, end
        self.step_of: dict[int, Run] = {}
        self.searched: dict[int, int] = {}
        """For each period, the position before which no run begins."""

    def add(self, run: Run) -> None:
        self.step_of.update((place, run) for place in range(run.start, run.end))

    def run_at(self, place: int, others: Sequence[int]) -> Run | None:
        """The run that begins at a position or soon after; None if there is none. others: positions where the same
        tokens recur."""
        tokens = self.text.tokens
        for other in others:
            period = other - place
            if place < self.searched.get(period, 0):
                continue
            end = place
            while end + period < self.end and tokens[end] == tokens[end + period]:
                end += 1
            count = (end - place) // period + 1
            run = self.checked(place, period, count)
            if run is not None:
                return run
            self.searched[period] = end + 1
        return None

    def checked(self, start: int, period: int, count: int) -> Run | None:
        """The longest valid run among steps with equal tokens; None if it is too short to pay off."""
        if not is_worth_it(count, period):
            return None
        nodes = self.text.order[start : start + period]
        long = [node for node in nodes if not is_short(node)]
        if long and not (all(map(is_bounded, long)) and any(map(ends_loops, nodes))):
            return None
        for middle in dict.fromkeys((count // 2, count // 4, 3 * count // 4)):
            run = self.around(start, period, count, middle)
            if run is not None and is_worth_it(run.count, period):
                return run
        return None

    def around(self, start: int, period: int, count: int, middle: int) -> Run | None:
        """The run around step `middle` and the next one, as far as roles agree; None if it is invalid."""
        roles: list[list[Role]] = []
        columns: list[Column] = []
        first, last = 0, count - 1
        for row in range(period):
            here = self.text.order[start + middle * period + row]
            roles.append([])
            for number in range(len(here.args)):
                value = Arguments(self.text, start, period, row, number)
                role = value.role(middle)
                if role is not SAME and here.op.name == "pow" and scalar_constant(here.args[number]) is not None:
                    return None  # with a constant exponent, rules may replace the power
                if role is COLUMN:
                    column = self.column(value, middle)
                    if column is None:
                        return None
                    columns.append(column)
                    fits: Callable[[int], bool] = column.fits
                else:
                    fits = value.fitting(role, middle)
                step = middle
                while step > first and fits(step - 1):
                    step -= 1
                first = max(first, step - role.distance)
                step = middle + 1
                while step < last and fits(step + 1):
                    step += 1
                last = min(last, step)
                if last - first + 1 < LEAST_STEPS:
                    return None
                roles[-1].append(role)
        run = Run(start + first * period, period, last - first + 1, roles)
        return run if self.is_closed(run) else None

    def is_closed(self, run: Run) -> bool:
        """True if every use of a node of the run conforms to the roles."""
        for row, roles in enumerate(run.roles):
            for number, role in enumerate(roles):
                steps = {"same": range(1), "column": range(run.count), "before": range(role.distance), "own": range(0)}
                for step in steps[role.kind]:
                    if run.start <= self.text.args[run.at(step, row)][number] < run.end:
                        return False
                if role.kind == "before" and not initial_types_match(self.text, run, row, number, role):
                    return False
        return True

    def column(self, value: Arguments, middle: int) -> Column | None:
        """The column of an argument: constants, or an arithmetic progression of the steps of another run; None if it is
        neither."""
        first, other = value.node(middle), value.node(middle + 1)
        if first.op is CONSTANT and other.op is CONSTANT:
            return Column(value, first)
        places = value.place(middle), value.place(middle + 1)
        run = self.step_of.get(places[0])
        if run is None or run is not self.step_of.get(places[1]):
            return None
        (step, row), (after, same) = map(run.found_at, places)
        if row != same or after == step:
            return None
        return Column(value, first, run, row, step - middle * (after - step), after - step)


def initial_types_match(text: Text, run: Run, row: int, number: int, role: Role) -> bool:
    """True if the initial values of a state have the type of the value that a step makes."""
    wanted = text.order[run.at(0, role.row)].type
    begins = [text.order[run.at(step, row)].args[number].type for step in range(role.distance)]
    return all((each.dtype, each.shape) == (wanted.dtype, wanted.shape) for each in begins)


@record(eq=False)
class Arguments:
    """One argument of one row, over all steps."""

    text: Text
    start: int
    period: int
    row: int
    number: int

    def node(self, step: int) -> Node:
        return self.text.order[self.start + step * self.period + self.row].args[self.number]

    def place(self, step: int) -> int:
        return self.text.args[self.start + step * self.period + self.row][self.number]

    def role(self, step: int) -> Role:
        """Its role, from a step and the next one."""
        if self.node(step) is self.node(step + 1):
            return SAME
        place = self.place(step)
        if place < self.start or self.place(step + 1) - place != self.period:
            return COLUMN
        before, row = divmod(place - self.start - step * self.period, self.period)
        if -before > FARTHEST:
            return COLUMN
        return Role("before", row, -before) if before else Role("own", row)

    def fitting(self, role: Role, step: int) -> Callable[[int], bool]:
        """A predicate: True if the argument has this role in another step, too."""
        if role.kind == "same":
            same = self.node(step)
            return lambda step: self.node(step) is same
        shift = role.row - role.distance * self.period
        return lambda step: self.place(step) == self.start + step * self.period + shift


@record(eq=False)
class Column:
    """Nodes that differ between steps. one: an example. Without `run`: constants; otherwise row `row` of another run,
    from step `first` on, every `by`-th."""

    value: Arguments
    one: Node
    run: Run | None = None
    row: int = 0
    first: int = 0
    by: int = 0

    def fits(self, step: int) -> bool:
        if self.run is None:
            node = self.value.node(step)
            return node.op is CONSTANT and node.type.is_same(self.one.type) and is_short(node)
        source = self.first + step * self.by
        return 0 <= source < self.run.count and self.value.place(step) == self.run.at(source, self.row)


def is_worth_it(count: int, period: int) -> bool:
    return count >= LEAST_STEPS and count * period >= LEAST_NODES


def is_short(node: Node) -> bool:
    """True if a node has few elements, or reads or changes a part of an array."""
    if node.is_tuple or node.op.name in PARTS:
        return not node.is_tuple
    return is_bounded(node, SHORT)


def is_bounded(node: Node, most: int = LONGEST) -> bool:
    """True if a node has at most `most` elements, by a known upper bound."""
    if node.is_tuple:
        return False
    shape = [size for size in map(known_most, node.type.shape) if size is not None]
    return len(shape) == node.ndim and prod(shape) <= most


def ends_loops(node: Node) -> bool:
    """True if an element of a node depends on many elements of a long array, so that its loop cannot be fused."""
    if node.op in LEAVES or isinstance(node.op.lower(node), Scalar | View | Iota):
        return False
    return not all(map(is_short, (node, *node.args)))
