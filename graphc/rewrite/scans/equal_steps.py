"""Equal steps of a graph, as a loop leaves them that was written out where the graph was made, a filter's over time.

In: the results of a graph. Out: its nodes in an order in which equal steps follow one another, and the runs of them.

Each node is a token: its op, attributes and type. Steps are where tokens repeat at a fixed distance. From one step to
the next an argument of a node may be

    the same node
    a node of the same step, at the same place in all steps
    a node of an earlier step, the same distance before and at the same place in all
    another node in each step: numbers, or what each step of another run has made, from the first on or from the last

A graph is no sequence, and what is equal in two steps may stand anywhere in an order that respects arguments. So the
first run that is found, whose steps hand something on, is a clock: what depends on its step k, and on no later one,
follows that step, and the runs are looked for again, with longer steps. What only the steps of another clock need stays
with those.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

from graphc.ir.lowering import Iota, Scalar, View
from graphc.ir.node import CONSTANT, LEAVES, Node, literal, made
from graphc.ir.signs import scalar_constant
from graphc.ir.sizes import known_most
from graphc.startup.record import record

LEAST_STEPS = 8
LEAST_NODES = 64
"""Fewer equal steps, or fewer nodes in all of them, stay as they are."""
ALIKE = 6
"""How many of the nodes that occur again are looked at as the beginning of a step."""
PERIODS = 8
"""How many of the places where they occur again are tried."""
FARTHEST = 8
"""Steps take nothing from earlier ones that are farther away."""
SHORT, LONGEST = 64, 4096
"""Steps that make longer arrays are none: loops over their elements may be what they share with others. They share none
where each step needs the whole of such an array; but those that are longer still are threads' to share."""
CLOCKS = 8
"""How many runs at most order what depends on them."""
MOST_LEFT = 10
"""No more clocks are looked for in what is left, if it is less than this part of the graph."""
PARTS = ("subtensor", "dimshuffle", "inc_subtensor", "set_subtensor")
"""Ops that read or change a part of an array, which may be long."""


@record()
class Role:
    """What an argument is in every step. `kind`: same, own (of the same step), before, column (another node in each
    step). `row`: the place in its step of what the steps make; `distance`: how many steps before."""

    kind: str
    row: int = 0
    distance: int = 0


SAME, COLUMN = Role("same"), Role("column")
Roles: TypeAlias = Sequence[Sequence[Role]]
"""Of the arguments of each row of a step."""


@record(eq=False)
class Run:
    """`count` equal steps of `period` nodes each, from place `start` of the order on; what the arguments of the nodes
    of a step are."""

    start: int
    period: int
    count: int
    roles: Roles

    @property
    def end(self) -> int:
        return self.start + self.period * self.count

    @property
    def hands_on(self) -> bool:
        """Whether a step takes something from an earlier one."""
        return any(role.kind == "before" for roles in self.roles for role in roles)

    def at(self, step: int, row: int) -> int:
        """The place of a node in the order."""
        return self.start + step * self.period + row

    def found_at(self, place: int) -> tuple[int, int]:
        """The step and the row of a place."""
        return divmod(place - self.start, self.period)


@record(eq=False)
class Text:
    """Nodes in an order, each after its arguments, with their places; their tokens; the places of their arguments, -1
    for leaves."""

    order: Sequence[Node]
    place: Mapping[Node, int]
    tokens: Sequence[int]
    args: Sequence[Sequence[int]]


class Tokens:
    """Numbers for nodes that are equal but for their arguments."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.known: dict[Node, int] = {}

    def of(self, node: Node) -> int:
        found = self.known.get(node)
        if found is None:
            shape = tuple([size if isinstance(size, int) else (id(size),) for size in node.type.shape])
            attrs = tuple(sorted(node.attrs.items(), key=lambda item: item[0]))
            key = (node.op.name, attrs, node.type.dtype, shape, len(node.args))
            found = self.known[node] = self.numbers.setdefault(key, len(self.numbers))
        return found

    def text(self, order: Sequence[Node]) -> Text:
        place = {node: number for number, node in enumerate(order)}
        tokens = [self.of(node) for node in order]
        return Text(order, place, tokens, [[place.get(arg, -1) for arg in node.args] for node in order])


def equal_steps(outputs: Sequence[Node]) -> tuple[Text, list[Run]]:
    """The nodes that `outputs` need, but for leaves, and the runs of equal steps among them."""
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
    """The first run from a place on whose steps hand something on."""
    return next((run for run in find_runs(text, start, len(text.order), known) if run.hands_on), None)


def needed(roots: Iterable[Node]) -> list[Node]:
    """All that nodes need but for leaves, each after its arguments, from the first root on."""
    found: dict[Node, bool] = {}
    order: list[Node] = []
    for root in roots:
        pending = [root]
        while pending:
            node = pending.pop()
            if found.get(node):
                continue
            if node in found:  # its arguments are there
                found[node] = True
                order.append(node)
            elif node.args:
                found[node] = False
                pending.append(node)
                pending += [arg for arg in reversed(node.args) if arg not in found]
            elif node.op not in LEAVES:
                found[node] = True
                order.append(node)
    return order


def in_time(text: Text, clock: Run, outputs: Iterable[Node]) -> Iterator[Node]:
    """The nodes that depend on a run, in the order of the last step on which they do, up to the end of that run; but
    for those that nothing needs before two steps later, which wait until they are needed."""
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
    """The nodes of a run, and of equal steps before and after it that stand elsewhere."""
    steps = [[text.order[run.at(step, row)] for row in range(run.period)] for step in range(run.count)]
    while (found := step_before(text, run.roles, steps)) is not None:
        steps.insert(0, found)
    while (found := step_after(text, run.roles, steps)) is not None:
        steps.append(found)
    for step in steps:
        yield from step


def step_after(text: Text, roles: Roles, steps: Steps) -> list[Node] | None:
    """The nodes of one more step; none where the graph has no such step."""
    before = {
        (row, number): steps[-role.distance][role.row]
        for row, here in enumerate(roles)
        for number, role in enumerate(here)
        if role.kind == "before"
    }
    return completed(text, roles, {}, before, steps[-2], steps[-1])


def step_before(text: Text, roles: Roles, steps: Steps) -> list[Node] | None:
    """The nodes of one step before the others, as far as it is told from what these take; none where there is none."""
    found: dict[int, Node] = {}
    for row, here in enumerate(roles):
        for number, role in enumerate(here):
            if role.kind == "before":
                arg = steps[role.distance - 1][row].args[number]
                if found.setdefault(role.row, arg) is not arg:
                    return None
    for row in reversed(range(len(roles))):
        node, like = found.get(row), steps[0][row]
        if node is None:
            continue
        if node.op is not like.op or node.attrs != like.attrs or len(node.args) != len(like.args):
            return None
        for role, arg in zip(roles[row], node.args, strict=True):
            if role.kind == "own" and found.setdefault(role.row, arg) is not arg:
                return None
    return completed(text, roles, found, {}, steps[1], steps[0])


def completed(
    text: Text,
    roles: Roles,
    found: Mapping[int, Node],
    before: Mapping[tuple[int, int], Node],
    one: Sequence[Node],
    other: Sequence[Node],
) -> list[Node] | None:
    """The nodes of the step that comes after two neighbouring ones in either direction: those that are found by their
    arguments, as equal nodes are one node. `before`: arguments from earlier steps."""
    nodes: list[Node] = []
    for row, here in enumerate(roles):
        args: list[Node] = []
        for number, role in enumerate(here):
            if role.kind == "own":
                arg: Node | None = nodes[role.row]
            elif role.kind == "before":
                arg = before.get((row, number), found[row].args[number] if row in found else None)
            else:
                arg = beyond(text, one[row].args[number], other[row].args[number])
            if arg is None:
                return None
            args.append(arg)
        node = made(other[row].op, args, other[row].attrs)
        if node is None or node not in text.place or found.get(row, node) is not node:
            return None
        nodes.append(node)
    return nodes


def beyond(text: Text, one: Node, other: Node) -> Node | None:
    """What comes after two arguments of neighbouring steps in the next one."""
    if one is other:
        return one
    if one.op is CONSTANT and other.op is CONSTANT and one.type.dtype == other.type.dtype == "int64" and not one.ndim:
        return literal(2 * int(other.attrs["value"].value) - int(one.attrs["value"].value))
    if one in text.place and other in text.place:
        place = 2 * text.place[other] - text.place[one]
        if 0 <= place < len(text.order) and text.tokens[place] == text.tokens[text.place[one]]:
            return text.order[place]
    return None


# --- runs -------------------------------------------------------------------------------------------------------------


def find_runs(text: Text, start: int, end: int, known: Iterable[Run]) -> Iterator[Run]:
    """The runs of equal steps between two places, in order; `known` are those before."""
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
    """Looks for runs from the first node on. `step_of`: the run of each place that is in one."""

    def __init__(self, text: Text, end: int) -> None:
        self.text, self.end = text, end
        self.step_of: dict[int, Run] = {}
        self.tried: dict[int, int] = {}
        """By period: before which place no run begins."""

    def add(self, run: Run) -> None:
        self.step_of.update((place, run) for place in range(run.start, run.end))

    def run_at(self, place: int, others: Sequence[int]) -> Run | None:
        """The run that begins at a place, or soon after; `others`: where the same tokens are again."""
        tokens = self.text.tokens
        for other in others:
            period = other - place
            if place < self.tried.get(period, 0):
                continue
            end = place
            while end + period < self.end and tokens[end] == tokens[end + period]:
                end += 1
            count = (end - place) // period + 1
            run = self.checked(place, period, count)
            if run is not None:
                return run
            self.tried[period] = end + 1
        return None

    def checked(self, start: int, period: int, count: int) -> Run | None:
        """The longest run among steps of equal tokens, if it is long enough."""
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
        """The run of the steps around a step and the next one, as far as they are alike."""
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
                    return None  # by a number that is known it may be something else than a power
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
        """Whether nothing of a run is taken but as roles say."""
        for row, roles in enumerate(run.roles):
            for number, role in enumerate(roles):
                steps = {"same": range(1), "column": range(run.count), "before": range(role.distance), "own": range(0)}
                for step in steps[role.kind]:
                    if run.start <= self.text.args[run.at(step, row)][number] < run.end:
                        return False
                if role.kind == "before" and not begins_alike(self.text, run, row, number, role):
                    return False
        return True

    def column(self, value: Arguments, middle: int) -> Column | None:
        """What stands in one place of all steps, if it may be told in one line."""
        one, other = value.node(middle), value.node(middle + 1)
        if one.op is CONSTANT and other.op is CONSTANT:
            return Column(value, one)
        places = value.place(middle), value.place(middle + 1)
        run = self.step_of.get(places[0])
        if run is None or run is not self.step_of.get(places[1]):
            return None
        (step, row), (after, same) = map(run.found_at, places)
        if row != same or after == step:
            return None
        return Column(value, one, run, row, step - middle * (after - step), after - step)


def begins_alike(text: Text, run: Run, row: int, number: int, role: Role) -> bool:
    """Whether what a step before the first would have left is of the type of what the steps leave."""
    kind = text.order[run.at(0, role.row)].type
    begins = [text.order[run.at(step, row)].args[number].type for step in range(role.distance)]
    return all((each.dtype, each.shape) == (kind.dtype, kind.shape) for each in begins)


@record(eq=False)
class Arguments:
    """The arguments of one number of the nodes at one place of all steps."""

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
        """What they are in a step and the next."""
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
        """Whether that is what they are in another step."""
        if role.kind == "same":
            same = self.node(step)
            return lambda step: self.node(step) is same
        shift = role.row - role.distance * self.period
        return lambda step: self.place(step) == self.start + step * self.period + shift


@record(eq=False)
class Column:
    """Nodes that differ from step to step, `one` of them: constants; or of row `row` of another run, of step `first`
    and every `by`th from there on."""

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
    """Whether a node is a few elements, or an array of which a part is read or changed."""
    if node.is_tuple or node.op.name in PARTS:
        return not node.is_tuple
    return is_bounded(node, SHORT)


def is_bounded(node: Node, most: int = LONGEST) -> bool:
    """Whether a node is known to have at most `most` elements."""
    if node.is_tuple:
        return False
    shape = [size for size in map(known_most, node.type.shape) if size is not None]
    return len(shape) == node.ndim and prod(shape) <= most


def ends_loops(node: Node) -> bool:
    """Whether elements of what is made of a long array need more of it than their own."""
    if node.op in LEAVES or isinstance(node.op.lower(node), Scalar | View | Iota):
        return False
    return not all(map(is_short, (node, *node.args)))
