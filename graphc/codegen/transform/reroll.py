"""Equal steps that follow one another become a loop over steps (loop rerolling).

In: the statements of a kernel, and how long its temporaries are where that is known. Out: the same computation, in
which every run of steps that differ in nothing but names and positions, each by the same distance from one step to the
next, is a loop; and the buffers that it needs.

A loop that was unrolled where the graph was written, such as that of a filter over time, comes as many equal steps,
forwards and, of its gradient, backwards. Each statement is spelled as a token and its operands (spelling.py); steps are
where tokens repeat at a fixed distance. From one step to the next an operand may be

    an integer          that grows by the same number, such as a position
    a temporary         one row of a buffer that holds all temporaries of its dtype and length
    a name of the step  made in the same step
    another name        of a value made elsewhere: it is kept in an element of a buffer, and loaded from there
    anything else       that is the same in all steps

The order of what is carried out does not change, and so no bit of a result does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from graphc.codegen.transform.spelling import Affine, Operand, Places, Respelling, Spelling
from graphc.loops import ir
from graphc.loops.visit import read_buffers, statements, stored_buffers
from graphc.startup.record import fresh, record

LEAST_STEPS = 8
LEAST_STATEMENTS = 24
"""Fewer equal steps, or fewer statements in all of them, stay as they are."""
ALIKE = 6
"""So many statements that occur again are looked at as the beginning of a step."""
PERIODS = 4
"""How many of the places where they occur again are tried."""
LONGEST = 4096
"""Longer temporaries keep buffers of their own."""
MARGIN = 4
"""Free elements around those of values of a run, for what was before the first and comes after the last."""


@record()
class Rerolled:
    """`buffers`: the new ones, with their lengths; `steps`: the variables of the loops over steps."""

    body: tuple[ir.Stmt, ...]
    buffers: Mapping[ir.Buffer, int] = fresh(factory=dict)
    steps: frozenset[ir.Var] = frozenset()

    def beside(self, earlier: Rerolled) -> Rerolled:
        """With what was made earlier of the same statements."""
        return Rerolled(self.body, {**earlier.buffers, **self.buffers}, earlier.steps | self.steps)


def reroll(body: Sequence[ir.Stmt], lengths: Mapping[ir.Buffer, int], name: Callable[[str], str]) -> Rerolled:
    """Statements with equal steps in loops. `lengths`: of the temporaries that may be parts of larger buffers; `name`
    gives free names."""
    places, sizes = pooled(lengths, name)
    text = Text.of(body, places)
    roller = Roller(text, Homes(name))
    runs = tuple(roller.runs())
    if not runs:
        return Rerolled(tuple(body))
    loops = {run: roller.loop(run, ir.Var(name("step"), ir.INDEX)) for run in runs}
    after = tuple(roller.statements(loops))
    held = read_buffers(after) | stored_buffers(after)
    made = {**sizes, **roller.homes.lengths()}
    steps = frozenset(loop.var for loop in loops.values())
    return Rerolled(after, {buffer: length for buffer, length in made.items() if buffer in held}, steps)


def pooled(lengths: Mapping[ir.Buffer, int], name: Callable[[str], str]) -> tuple[Places, dict[ir.Buffer, int]]:
    """A place for each temporary in a buffer of all that are of its dtype and length, one after the other; how long
    those buffers are."""
    alike: dict[tuple[str, int], list[ir.Buffer]] = {}
    for buffer, length in lengths.items():
        if 0 < length <= LONGEST:
            alike.setdefault((buffer.dtype, length), []).append(buffer)
    places: dict[ir.Buffer, tuple[ir.Buffer, int]] = {}
    sizes: dict[ir.Buffer, int] = {}
    for (dtype, length), members in alike.items():
        if len(members) >= LEAST_STEPS:
            pool = ir.Buffer(name(f"arrays{length}_{dtype}"), dtype, is_temporary=True)
            sizes[pool] = length * len(members)
            places |= {buffer: (pool, number * length) for number, buffer in enumerate(members)}
    return places, sizes


# Text ---------------------------------------------------------------------------------------------------------------


@record(eq=False)
class Text:
    """A kernel's statements but for its notes: as they are, their tokens, operands and targets; the notes above
    each. `uses`: how often each name is an operand but no target; `set_at`: the first and the last statement that
    defines a name."""

    body: Sequence[ir.Stmt]
    notes: Mapping[int, Sequence[ir.Note]]
    tokens: Sequence[int]
    operands: Sequence[Sequence[Operand]]
    targets: Sequence[Sequence[int]]
    uses: Counter[ir.Var]
    set_at: Mapping[ir.Var, tuple[int, int]]
    places: Places

    @staticmethod
    def of(body: Sequence[ir.Stmt], places: Places) -> Text:
        kept: list[ir.Stmt] = []
        notes: dict[int, list[ir.Note]] = {}
        tokens: list[int] = []
        numbers: dict[tuple[object, ...], int] = {}
        spelled: list[Spelling] = []
        uses: Counter[ir.Var] = Counter()
        set_at: dict[ir.Var, tuple[int, int]] = {}
        for stmt in body:
            if isinstance(stmt, ir.Note):
                notes.setdefault(len(kept), []).append(stmt)
                continue
            spelling = Spelling([stmt], ir.int_value, places)
            uses.update([operand for operand in spelling.operands if isinstance(operand, ir.Var)])
            for number in spelling.targets:
                var = spelling.operands[number]
                assert isinstance(var, ir.Var)
                uses[var] -= 1
                set_at[var] = set_at.get(var, (len(kept),))[0], len(kept)
            kept.append(stmt)
            tokens.append(numbers.setdefault((object(),) if is_alone(stmt) else tuple(spelling.key), len(numbers)))
            spelled.append(spelling)
        operands, targets = [each.operands for each in spelled], [each.targets for each in spelled]
        return Text(kept, notes, tokens, operands, targets, uses, set_at, places)


def is_alone(stmt: ir.Stmt) -> bool:
    """Whether a statement is equal to no other: it leaves the function, asks whether the call must end, or is for
    threads."""
    return any(
        isinstance(inner, ir.Check | ir.Launch)
        or (isinstance(inner, ir.Invoke) and inner.code)
        or getattr(inner, "asks", None)
        for inner in statements([stmt])
    )


# Runs ---------------------------------------------------------------------------------------------------------------


@record(eq=False)
class Run:
    """`count` equal steps of `period` statements each, from statement `start` on. `numbers`: the operands of the first
    step, by statement and place, that grow from step to step; `homes`: where its values that are not its own names
    are kept, and those that it makes for others."""

    start: int
    period: int
    count: int
    numbers: Mapping[tuple[int, int], Affine] = fresh(factory=dict)
    homes: Mapping[tuple[int, int], tuple[ir.Buffer, Affine]] = fresh(factory=dict)

    def rows(self, step: int) -> range:
        """The statements of a step."""
        return range(self.start + step * self.period, self.start + (step + 1) * self.period)

    def __contains__(self, place: int) -> bool:
        return self.start <= place < self.start + self.count * self.period

    def beside(self, place: int) -> range:
        """The statements of the same step."""
        return self.rows((place - self.start) // self.period)


class Homes:
    """Where values are kept that steps make for others: an element of a buffer of their dtype for each."""

    def __init__(self, name: Callable[[str], str]) -> None:
        self.name = name
        self.buffers: dict[str, ir.Buffer] = {}
        self.place: dict[ir.Var, int] = {}
        self.owner: dict[tuple[str, int], ir.Var] = {}
        self.end: Counter[str] = Counter()

    def copy(self) -> Homes:
        other = Homes(self.name)
        other.buffers, other.place = self.buffers, dict(self.place)
        other.owner, other.end = dict(self.owner), Counter(self.end)
        return other

    def buffer(self, dtype: str) -> ir.Buffer:
        if dtype not in self.buffers:
            self.buffers[dtype] = ir.Buffer(self.name(f"values_{dtype}"), dtype, is_temporary=True)
        return self.buffers[dtype]

    def lengths(self) -> dict[ir.Buffer, int]:
        return {buffer: self.end[dtype] for dtype, buffer in self.buffers.items()}

    def keep(self, values: Sequence[ir.Var]) -> tuple[Affine, int]:
        """Elements for values, one of each step, and of how many of these they lie at equal distances."""
        dtype = values[0].dtype
        known = [(k, self.place[var]) for k, var in enumerate(values) if var in self.place]
        if not known:
            line = Affine(self.end[dtype] + MARGIN, 1)
            self.end[dtype] += len(values) + 2 * MARGIN
        elif len(known) == 1:
            (k, place), *_ = known
            lines = [Affine(place - k * by, by) for by in (1, -1)]
            line = max(lines, key=lambda each: self.fitting(each, values))
        else:
            (k, place), (later, other), *_ = known
            if (other - place) % (later - k):
                return Affine(0, 0), later
            by = (other - place) // (later - k)
            line = Affine(place - k * by, by)
        count = self.fitting(line, values)
        for k, var in enumerate(values[:count]):
            self.place[var] = line.first + k * line.by
            self.owner[dtype, line.first + k * line.by] = var
        return line, count

    def fitting(self, line: Affine, values: Sequence[ir.Var]) -> int:
        """How many of the values lie on a line, or may: each in one place."""
        met: set[ir.Var] = set()
        for k, var in enumerate(values):
            place = line.first + k * line.by
            if var in met or self.place.get(var, place) != place or self.owner.get((var.dtype, place), var) != var:
                return k
            if not 0 <= place < self.end[var.dtype]:
                return k
            met.add(var)
        return len(values)


def is_worth_it(count: int, period: int) -> bool:
    return count >= LEAST_STEPS and count * period >= LEAST_STATEMENTS


class Roller:
    """Finds the runs of a text, and writes it with them as loops."""

    def __init__(self, text: Text, homes: Homes) -> None:
        self.text, self.homes = text, homes
        self.tried: dict[int, int] = {}
        """By period: before which statement no run begins."""
        self.until: dict[int, int] = {}
        """By period: the first statement, from the one asked for last on, that is not as the one a period later."""

    def runs(self) -> Iterator[Run]:
        """The runs, in order."""
        tokens = self.text.tokens
        again: dict[tuple[int, ...], list[int]] = {}
        for place in range(len(tokens) - ALIKE + 1):
            again.setdefault(tuple(tokens[place : place + ALIKE]), []).append(place)
        place = 0
        while place < len(tokens) - ALIKE:
            found = self.run_at(place, again[tuple(tokens[place : place + ALIKE])])
            if found is None:
                place += 1
            else:
                yield found
                place += found.period * found.count

    def run_at(self, place: int, others: Sequence[int]) -> Run | None:
        """The run that begins with a statement; `others`: where its like are, and those after it."""
        after = bisect_right(others, place)
        for other in others[after : after + PERIODS]:
            period = other - place
            if place < self.tried.get(period, 0):
                continue
            count = (self.matched(place, period) - place) // period + 1
            while is_worth_it(count, period):
                run, count, again = self.rolled(Run(place, period, count))
                if run is not None:
                    return run
                self.tried[period] = again
        return None

    def matched(self, place: int, period: int) -> int:
        tokens = self.text.tokens
        end = max(self.until.get(period, 0), place)
        while end + period < len(tokens) and tokens[end] == tokens[end + period]:
            end += 1
        self.until[period] = end
        return end

    def rolled(self, run: Run) -> tuple[Run | None, int, int]:
        """The run with what is known of its operands; or of how many steps all may be as they must, and where a run
        may begin next."""
        numbers, outer, count = self.lines_of(run)
        if count < run.count:
            return None, count, run.start + max(count - 1, 1) * run.period
        homes = self.homes.copy()
        found: dict[tuple[int, int], tuple[ir.Buffer, Affine]] = {}
        for where in (*self.needed(run), *outer):
            values = self.column(run, where)
            is_read = where in outer
            for k, var in enumerate(values):
                first, last = self.text.set_at.get(var, (-1, -1))
                if is_read and last >= run.start + k * run.period + where[0]:  # it is to have another value
                    return None, 0, run.start + 1
                if last < 0:  # no value of the kernel's own
                    return None, 0, run.start + 1
                if last in run and first not in run.beside(last):  # a step is to begin where it is set first
                    return None, 0, run.start + (first - run.start) % run.period
            line, fits = homes.keep(values)
            if fits < run.count:
                return None, fits, run.start + max(fits, 1) * run.period
            found[where] = homes.buffer(values[0].dtype), line
        self.homes = homes
        return Run(run.start, run.period, run.count, numbers, found), run.count, run.start

    def column(self, run: Run, where: tuple[int, int]) -> list[ir.Var]:
        """The name that stands in this place of each step."""
        row, number = where
        operands = [self.text.operands[run.start + k * run.period + row][number] for k in range(run.count)]
        return [var for var in operands if isinstance(var, ir.Var)]

    def lines_of(self, run: Run) -> tuple[dict[tuple[int, int], Affine], list[tuple[int, int]], int]:
        """The integers that grow, the places of names that are made elsewhere, and of how many steps from the first on
        every operand is what it may be."""
        text = self.text
        owns = [self.own(run, k) for k in range(2)]
        numbers: dict[tuple[int, int], Affine] = {}
        same: list[tuple[int, int, Operand]] = []
        local: list[tuple[int, int, tuple[int, int]]] = []
        outer: list[tuple[int, int]] = []
        for row in range(run.period):
            targets = text.targets[run.start + row]
            pairs = zip(text.operands[run.start + row], text.operands[run.start + run.period + row], strict=True)
            for number, (first, second) in enumerate(pairs):
                if isinstance(first, int) and isinstance(second, int):
                    numbers[row, number] = Affine(first, second - first)
                elif first == second:
                    if number in targets and self.is_accumulated(run.start + row, first):
                        return {}, [], 1
                    if (first in owns[0]) != (second in owns[1]):  # what the first step makes for all
                        return {}, [], 1
                    same.append((row, number, first))
                elif first in owns[0] or second in owns[1]:
                    if owns[0].get(first) != owns[1].get(second):
                        return {}, [], 1
                    local.append((row, number, owns[0][first]))
                else:
                    outer.append((row, number))
        for k in range(2, run.count):
            own = self.own(run, k)
            begin = run.start + k * run.period
            if not (
                all(text.operands[begin + row][n] == line.first + k * line.by for (row, n), line in numbers.items())
                and all(text.operands[begin + row][n] == var for row, n, var in same)
                and all(own.get(text.operands[begin + row][n]) == at for row, n, at in local)
                and all(text.operands[begin + row][n] not in own for row, n in outer)
            ):
                return {}, [], k
        return numbers, outer, run.count

    def own(self, run: Run, step: int) -> dict[Operand, tuple[int, int]]:
        """The names that a step makes, with the place where it does first."""
        found: dict[Operand, tuple[int, int]] = {}
        for row, place in enumerate(run.rows(step)):
            for number in self.text.targets[place]:
                found.setdefault(self.text.operands[place][number], (row, number))
        return found

    def is_accumulated(self, place: int, var: Operand) -> bool:
        """Whether a name is set in several steps, and is no variable of loops."""
        inner = statements([self.text.body[place]])
        return any(isinstance(stmt, ir.Let | ir.Set) and stmt.var == var for stmt in inner)

    def needed(self, run: Run) -> Iterator[tuple[int, int]]:
        """The names that a step makes and that are read outside of it, by their places in it."""
        text = self.text
        wanted: dict[tuple[int, int], None] = {}
        for k in range(run.count):
            own = self.own(run, k)
            within: Counter[Operand] = Counter()
            for place in run.rows(k):
                within.update(text.operands[place])
                within.subtract([text.operands[place][number] for number in text.targets[place]])
            for var, where in own.items():
                if isinstance(var, ir.Var) and text.uses[var] > within[var] and self.is_value(run, where, var):
                    wanted[where] = None
        yield from wanted

    def is_value(self, run: Run, where: tuple[int, int], var: ir.Var) -> bool:
        """Whether a target is a value, and not the variable of a loop."""
        inner = statements([self.text.body[run.start + where[0]]])
        first = self.text.operands[run.start + where[0]][where[1]]
        return not any(isinstance(stmt, ir.Loop) and stmt.var == first for stmt in inner)

    # writing

    def loop(self, run: Run, step: ir.Var) -> ir.Loop:
        """A run as a loop: its first step, with the operands of all. Values for others are kept where they are
        final."""
        text = self.text
        kept: dict[int, list[ir.Stmt]] = {}
        for (row, number), (buffer, line) in run.homes.items():
            if number in text.targets[run.start + row]:
                var = text.operands[run.start + row][number]
                assert isinstance(var, ir.Var)
                kept.setdefault(text.set_at[var][1], []).append(ir.Store(buffer, line.at(step), var))
        body: list[ir.Stmt] = []
        for row, place in enumerate(run.rows(0)):
            body += text.notes.get(place + run.period, ())
            operands = text.operands[place]
            new = (self.operand(run, (row, number), operand, step) for number, operand in enumerate(operands))
            body.append(Respelling(new, ir.int_value, text.places).statement(text.body[place]))
            body += kept.get(place, ())
        return ir.Loop(step, ir.integer(run.count), tuple(body))

    def operand(self, run: Run, where: tuple[int, int], operand: Operand, step: ir.Var) -> ir.Expr:
        """An operand of the first step as all steps have it."""
        if isinstance(operand, int):
            return run.numbers[where].at(step)
        row, number = where
        if where in run.homes and number not in self.text.targets[run.start + row]:
            buffer, line = run.homes[where]
            return ir.Load(buffer, line.at(step))
        return operand

    def statements(self, loops: Mapping[Run, ir.Loop]) -> Iterator[ir.Stmt]:
        """The whole text with its runs as loops. Of the larger buffers, those that no loop needs are not used."""
        text, homes = self.text, self.homes
        pools = read_buffers(loops.values()) | stored_buffers(loops.values())
        starts = {run.start: run for run in loops}
        inside = {place for run in loops for place in range(run.start, run.start + run.count * run.period)}

        def value(operand: Operand) -> ir.Expr:
            if isinstance(operand, int):
                return ir.integer(operand)
            if operand in homes.place and text.set_at[operand][1] in inside:
                return ir.Load(homes.buffer(operand.dtype), ir.integer(homes.place[operand]))
            return operand

        for place, stmt in enumerate(text.body):
            if place in starts:
                yield loops[starts[place]]
            if place in inside:
                continue
            yield from text.notes.get(place, ())
            yield Respelling(map(value, text.operands[place]), ir.int_value, text.places, pools).statement(stmt)
            for number in text.targets[place]:
                var = text.operands[place][number]
                if isinstance(var, ir.Var) and var in homes.place and text.set_at[var][1] == place:
                    yield ir.Store(homes.buffer(var.dtype), ir.integer(homes.place[var]), var)
        yield from text.notes.get(len(text.body), ())
