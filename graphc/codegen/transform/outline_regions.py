"""The parts of a large kernel that become functions of their own.

In: the statements of a kernel. Out: its nests (outermost loops) and blocks (runs of scalars) as `Part`, by the place of
their last statement: see `outline`. The statements of a branch, and of a loop around nests, are looked at as a kernel's
are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from graphc.arrays.dtypes import itemsize
from graphc.codegen.threads.settings import MOST_COLUMNS
from graphc.codegen.transform.parallelize import Shares, columns_of, instead_of_columns, neutral, shares_of, targets_of
from graphc.codegen.transform.simplify import inline_once
from graphc.loopir import ir, operators, visit
from graphc.startup.record import record, replace

OUTLINE_ABOVE = 12
"""A kernel of more outermost loops than this calls them: below, one function compiles as fast and runs faster."""
BLOCK_OPS = 120
"""A kernel with more operators than this outside loops calls blocks of about this many."""
LEAST_BLOCK_OPS = 30
"""Fewer operators than this stay in the kernel."""
LARGE_OPS = 40
"""A nest of more operators than this is a function: the compile process lowers one while this process compiles another,
and beside its work a call costs nothing."""
LEAST_NESTS = 2
"""The nests in a loop above which they become functions and not the loop: so many are enough to be shared by threads,
as in a kernel that calls them. A loop over rows, too, is around a few."""

MOST_COLUMN_BYTES = 24
"""The most bytes of a column's elements in all buffers that are read or written by column: MOST_COLUMNS columns of more
would fill a nearest cache of 32 KiB, two thirds of one of 48."""

Path: TypeAlias = "tuple[int, ...]"
"""The place of a statement: for each that it stands in, from the outermost one, its place and which of its bodies, and
then the place in its own body."""

FAILED = 1
"""The status that the function of a nest returns where its check fails; the kernel knows which check it was."""

BEGIN, END = ir.Var("begin", ir.INDEX), ir.Var("end", ir.INDEX)
COPIED = ir.Var("copied", ir.INDEX)
"""1 where a nest adds into copies, 0 where it does into the buffers themselves."""
FIRST, LAST, LEFT, RIGHT = (ir.Var(name, ir.INDEX) for name in ("first", "last", "left", "right"))
"""The rows and columns of a nest that may be shared out by either."""
STRIP, STRIP_BEGIN, STRIP_END = (ir.Var(name, ir.INDEX) for name in ("strip", "strip_begin", "strip_end"))
PLACE = ir.Var("c", ir.INDEX)
"""In a copy."""
FIXED_NAMES = frozenset(
    var.name for var in (BEGIN, END, COPIED, FIRST, LAST, LEFT, RIGHT, STRIP, STRIP_BEGIN, STRIP_END, PLACE)
)
"""The names that functions of parts use for things of their own, whatever else there is in the kernel: no other name is
one of these."""


@record()
class Part:
    """Statements that become a function, the scalars they make for the kernel, and the remark above them.

    A nest has the `extent` of its loop, which itself runs from BEGIN to END; `code` is the number of its check,
    if it has one, and `shares` says how threads may share it.
    """

    body: tuple[ir.Stmt, ...]
    results: tuple[ir.Var, ...]
    note: ir.Note
    extent: ir.Expr | None = None
    code: int = 0
    shares: Shares | None = None
    kind: str = "nest"
    """The word that its function is named after."""
    columns: Columns | None = None
    at_once: int = 1
    """The number of rows that an iteration takes."""
    limits: frozenset[ir.Var] = frozenset()
    """Integers that the function computes, as the kernel may."""


@record()
class Columns:
    """The other way to share a nest: by its columns, `extent` of them."""

    extent: ir.Expr
    work: ir.Expr


def find_parts(
    body: Sequence[ir.Stmt], always: bool, begun: Collection[ir.Var] = (), within: Path = (), are_many: bool = False
) -> dict[Path, Part]:
    """The parts by the place of their last statement: nests that are large or that threads may share, all where there
    are many; blocks where they are large; and those of branches and of loops around nests. `begun`: the scalars that
    have a value before `body`, the statements of the loop or branch `within` which they stand; `are_many`: there are
    many nests around."""
    are_many = are_many or sum(isinstance(stmt, ir.Loop) for stmt in visit.in_line(body)) > OUTLINE_ABOVE
    ops = sum(map(scalar_ops, body))
    parts = find_nests(body, begun)
    known = {*begun, *(stmt.var for stmt in body if isinstance(stmt, ir.Set))}
    least = LEAST_NESTS if always else OUTLINE_ABOVE + 1
    around = [place for place, stmt in enumerate(body) if is_around(least, stmt, parts.get(place), known)]
    if are_many and not within:
        named = limits_of(body)
        parts = {place: with_limits(part, named) for place, part in parts.items()}
    if not (always or are_many):
        parts = {place: part for place, part in parts.items() if part.shares is not None or is_large(part.body)}
    if always or ops > BLOCK_OPS:
        parts |= find_blocks(body, 1 if always else LEAST_BLOCK_OPS)
    inside = {(*within, place): part for place, part in parts.items() if place not in around}
    for place in around:
        for number, inner in enumerate(visit.bodies(body[place])):
            of_branch = are_many and isinstance(body[place], ir.If)
            inside |= find_parts(inner, always, known, (*within, place, number), of_branch)
    return inside


def with_limits(part: Part, known: Mapping[ir.Var, ir.Let]) -> Part:
    """A nest that threads cannot share, whose function computes the limits of its loops itself, as those of equal nests
    do: of the integers that its kernel names, which computes them too where others read them."""
    if part.shares is not None or part.extent is None:
        return part
    limits: dict[ir.Var, ir.Let] = {}
    pending = [
        *visit.read_vars(part.body),
        *(each for each in ir.subexpressions(part.extent) if isinstance(each, ir.Var)),
    ]
    while pending:
        var = pending.pop()
        if var in known and var not in limits:
            limits[var] = known[var]
            pending += [each for each in ir.subexpressions(known[var].value) if isinstance(each, ir.Var)]
    if not limits:
        return part
    whole = [
        replace(stmt, begin=ir.ZERO, size=part.extent) if isinstance(stmt, ir.Loop) and stmt.size == END else stmt
        for stmt in part.body
    ]
    ordered = (let for var, let in known.items() if var in limits)
    return replace(part, body=inline_once((*ordered, *whole)), extent=None, limits=frozenset(limits))


def limits_of(body: Sequence[ir.Stmt]) -> dict[ir.Var, ir.Let]:
    """Return integers of a kernel that are computed of its parameters and of one another alone. A function may compute
    those anywhere; of others a function of scalars may have the only value."""
    defined, named = visit.defined(body), dict[ir.Var, ir.Let]()
    for stmt in body:
        if not isinstance(stmt, ir.Let) or stmt.var.dtype != ir.INDEX:
            continue
        parts = [*ir.subexpressions(stmt.value)]
        of_sizes = all(part in named or part not in defined for part in parts if isinstance(part, ir.Var))
        if of_sizes and all(isinstance(part, ir.Var | ir.Const | ir.Apply) for part in parts):
            named[stmt.var] = stmt
    return named


def is_around(least: int, stmt: ir.Stmt, part: Part | None, begun: Collection[ir.Var]) -> bool:
    """True where a statement has branches, or is a loop whose iterations follow one another, and each carries out at
    least as many nests, some of which threads may share; or around such a loop."""
    if not isinstance(stmt, ir.Loop) or (part is not None and part.shares is not None):
        return isinstance(stmt, ir.If)
    if is_of_columns(stmt) or is_of_blocks(stmt):
        return True
    loops = [inner for inner in visit.in_line(stmt.body) if isinstance(inner, ir.Loop)]
    if len(loops) < least:
        return any(inner.conflicts is None and is_around(least, inner, None, begun) for inner in loops)
    return sum(nest.shares is not None for nest in all_nests(stmt.body, begun)) >= LEAST_NESTS


def is_large(body: Sequence[ir.Stmt]) -> bool:
    """True where statements are a function's worth of operators."""
    return sum(map(visit.op_count, visit.own_expressions(visit.statements(body)))) > LARGE_OPS


def is_of_columns(loop: ir.Loop) -> bool:
    """True where a loop carries out steps part by part, with a safepoint after each, and threads may share the
    columns of a part."""
    match loop.body:
        case (ir.Loop() as steps, ir.If()):
            return columns_of(steps) is not None
    return False


def is_of_blocks(loop: ir.Loop) -> bool:
    """True where a loop goes by blocks, of each of which a function makes something that loops then read."""
    by_blocks = isinstance(loop.size, ir.Apply) and loop.size.op is operators.BLOCKS
    return by_blocks and any(isinstance(stmt, ir.Invoke) for stmt in loop.body)


def all_nests(body: Sequence[ir.Stmt], begun: Collection[ir.Var]) -> Iterator[Part]:
    """The nests, those of branches too."""
    yield from find_nests(body, begun).values()
    known = {*begun, *(stmt.var for stmt in body if isinstance(stmt, ir.Set))}
    for stmt in body:
        if isinstance(stmt, ir.If):
            for branch in visit.bodies(stmt):
                yield from all_nests(branch, known)


def find_nests(body: Sequence[ir.Stmt], begun: Collection[ir.Var] = ()) -> dict[int, Part]:
    """The outermost loops, but those that accumulate what does not start anew with them, or make several checks."""
    starts = {var: start for var, start in accumulators(body).items() if var not in begun}
    outer = {*begun, *(stmt.var for stmt in body if isinstance(stmt, ir.Set))}
    parts: dict[int, Part] = {}
    for place, (stmt, note) in enumerate(zip(body, remarks(body), strict=True)):
        if not isinstance(stmt, ir.Loop):
            continue
        if stmt.begin != ir.ZERO:
            steps = None if set_vars(stmt.body) else columns_of(stmt)
            parts |= {} if steps is None else {place: of_columns(stmt, note, *steps, None)}
            continue
        carried = [var for var in set_vars(stmt.body) if var in outer]
        codes = {
            inner.code
            for inner in visit.statements(stmt.body)
            if isinstance(inner, ir.Check | ir.Invoke) and inner.code
        }
        if starts.keys() >= set(carried) and len(codes) <= 1:
            loop = replace(stmt, size=END, body=with_code(stmt.body, FAILED), begin=BEGIN)
            first = tuple(starts[var] for var in carried)
            code = codes.pop() if codes else 0
            if not all(isinstance(start.value, ir.Const) for start in first):  # a state: no chunk may begin with it
                parts[place] = Part((*first, loop), tuple(carried), note, stmt.size, code)
                continue
            shares = shares_of(stmt, carried, rows=True)
            columns = None if carried or shares is not None else columns_of(stmt)
            if columns is None:
                shares = shares or shares_of(stmt, carried, True, targets_of(stmt))
                fills = filling(shares) if shares is not None else ()
                parts[place] = Part((*first, *fills, loop), tuple(carried), note, stmt.size, code, shares)
            else:
                at_once = rows_of_iteration(stmt.size, body)
                by_rows = shares_of(stmt, (), False, instead_of_columns(targets_of(stmt), at_once))
                part = of_columns(stmt, note, *columns, by_rows)
                parts[place] = replace(part, at_once=max(at_once, 1))
    return parts


def rows_of_iteration(iterations: ir.Expr, body: Sequence[ir.Stmt]) -> int:
    """The number of rows that an iteration of a loop of `iterations` takes; 0 where they are only what whole blocks
    leave."""
    values = {stmt.var: stmt.value for stmt in body if isinstance(stmt, ir.Let)}
    match values.get(iterations, iterations) if isinstance(iterations, ir.Var) else iterations:
        case ir.Apply(operators.FLOORDIV, (_, ir.Const(text))):
            return int(text)
        case ir.Apply(operators.MOD, (_, ir.Const())):
            return 0
    return 1


def of_columns(loop: ir.Loop, note: ir.Note, inner: ir.Loop, columns: Shares, rows: Shares | None) -> Part:
    """A nest of which threads may share the columns; or its rows, where it adds them to copies: BEGIN to END are rows
    where COPIED is 1."""
    if rows is None:
        part = replace(inner, size=END, begin=BEGIN)
        return Part((replace(loop, body=(*loop.body[:-1], part)),), (), note, inner.size, 0, columns)
    by_rows = ir.apply(operators.GT, COPIED, ir.ZERO)
    limits = (
        ir.Let(FIRST, ir.apply(operators.SELECT, by_rows, BEGIN, ir.ZERO)),
        ir.Let(LAST, ir.apply(operators.SELECT, by_rows, END, loop.size)),
        ir.Let(LEFT, ir.apply(operators.SELECT, by_rows, ir.ZERO, BEGIN)),
        ir.Let(RIGHT, ir.apply(operators.SELECT, by_rows, inner.size, END)),
    )
    part = replace(inner, size=RIGHT, begin=LEFT)
    nest = replace(loop, size=LAST, body=(*loop.body[:-1], part), begin=FIRST)
    over_rows = in_strips(nest, part) if wants_strips(inner) else nest
    body: tuple[ir.Stmt, ...] = (*filling(rows), *limits, over_rows)
    return Part(body, (), note, loop.size, 0, rows, columns=Columns(inner.size, columns.work))


def wants_strips(inner: ir.Loop) -> bool:
    """True where a loop along rows should go over some columns only before the next row: where buffers by column would
    not stay in the nearest cache."""
    size = ir.int_value(inner.size)
    if size is not None and size <= MOST_COLUMNS:
        return False
    loads = {expr for expr in visit.all_expressions(inner.body) if isinstance(expr, ir.Load)}
    stores = {stmt for stmt in inner.body if isinstance(stmt, ir.Store)}
    by_column = {each.buffer for each in loads | stores if each.index == inner.var}
    return sum(itemsize(buffer.dtype) for buffer in by_column) > MOST_COLUMN_BYTES


def in_strips(nest: ir.Loop, part: ir.Loop) -> ir.Loop:
    """A nest over rows, of which `part` is the loop along one, for one strip of columns after the other."""
    length = ir.integer(MOST_COLUMNS)
    limits = (
        ir.Let(STRIP_BEGIN, ir.add(part.begin, ir.multiply(STRIP, length))),
        ir.Let(STRIP_END, ir.apply(operators.MINIMUM, part.size, ir.add(STRIP_BEGIN, length))),
    )
    rows = replace(nest, body=(*nest.body[:-1], replace(part, begin=STRIP_BEGIN, size=STRIP_END)))
    return ir.Loop(STRIP, ir.apply(operators.BLOCKS, ir.subtract(part.size, part.begin), length), (*limits, rows))


def filling(shares: Shares) -> Iterator[ir.Loop]:
    """The loops that begin the copies of a chunk; of no iteration where a nest adds into the buffers themselves."""
    for length, buffers in by_length(shares).items():
        starts = (ir.Store(buffer, PLACE, neutral(shares.sums[buffer][1], buffer.dtype)) for buffer in buffers)
        yield ir.Loop(PLACE, ir.multiply(length, COPIED), tuple(starts), conflicts=())


def by_length(shares: Shares) -> dict[ir.Expr, list[ir.Buffer]]:
    """The buffers that iterations add into, those of one length together."""
    result: dict[ir.Expr, list[ir.Buffer]] = {}
    for buffer, (target, _) in shares.sums.items():
        result.setdefault(target.length, []).append(buffer)
    return result


def find_blocks(body: Sequence[ir.Stmt], least: int) -> dict[int, Part]:
    """Runs of scalars, named or stored, of at least `least` operators, cut where they have BLOCK_OPS."""
    parts: dict[int, Part] = {}
    readers: dict[ir.Var, int] = {}
    for place, stmt in enumerate(body):
        readers.update(dict.fromkeys(visit.read_vars([stmt]), place))
    run: list[ir.Stmt] = []
    ops = 0
    for place, (stmt, note) in enumerate(zip(body, remarks(body), strict=True)):
        if run and isinstance(stmt, ir.Note):
            run.append(stmt)
            continue
        if isinstance(stmt, ir.Let | ir.Store):
            run.append(stmt)
            ops += scalar_ops(stmt)
            if ops < BLOCK_OPS and goes_on(body, place + 1):
                continue
        if ops >= least:
            results = tuple(let.var for let in run if isinstance(let, ir.Let) and readers.get(let.var, -1) > place)
            parts[place] = Part(tuple(run), results, note, kind="scalars")
        run, ops = [], 0
    return parts


def goes_on(body: Sequence[ir.Stmt], place: int) -> bool:
    """True where the next statement but for remarks is a scalar that is named or stored."""
    after = next((stmt for stmt in islice(body, place, None) if not isinstance(stmt, ir.Note)), None)
    return isinstance(after, ir.Let | ir.Store)


def scalar_ops(stmt: ir.Stmt) -> int:
    """The operators of a scalar that is named or stored; 0 of any other statement."""
    return visit.op_count(stmt.value) if isinstance(stmt, ir.Let | ir.Store) else 0


def remarks(body: Sequence[ir.Stmt]) -> Iterator[ir.Note]:
    """For each statement the remark it stands under: the first of several lines."""
    note: ir.Note = ir.Note("", "part")
    before: ir.Stmt | None = None
    for stmt in body:
        if isinstance(stmt, ir.Note):
            first = note if isinstance(before, ir.Note) else stmt
            note = ir.Note(first.text or stmt.text, first.subject)
        before = stmt
        yield note


def accumulators(body: Sequence[ir.Stmt]) -> dict[ir.Var, ir.Set]:
    """The scalars that start with a literal, that of a state written with its dtype, and are then set by exactly one of
    the outermost loops and in no branch, before which nothing reads them."""
    starts = [(place, stmt) for place, stmt in enumerate(body) if isinstance(stmt, ir.Set)]
    started = Counter(stmt.var for _, stmt in starts)
    inside = Counter(var for stmt in body for inner in visit.bodies(stmt) for var in set_vars(inner))
    return {
        stmt.var: stmt
        for place, stmt in starts
        if is_literal(stmt.value) and started[stmt.var] == inside[stmt.var] == 1
        if is_set_before_read(stmt.var, body[place + 1 :])
    }


def is_literal(expr: ir.Expr) -> bool:
    """True where an expression is made of literals alone."""
    return all(isinstance(part, ir.Const | ir.Apply) for part in ir.subexpressions(expr))


def is_set_before_read(var: ir.Var, body: Sequence[ir.Stmt]) -> bool:
    """True where the first statement that has to do with a name is a loop that sets it."""
    for stmt in body:
        if isinstance(stmt, ir.Loop) and var in set_vars(stmt.body):
            return True
        if var in visit.read_vars([stmt]):
            return False
    return False


def set_vars(body: Sequence[ir.Stmt]) -> dict[ir.Var, None]:
    """The names that statements set, in order."""
    return dict.fromkeys(stmt.var for stmt in visit.statements(body) if isinstance(stmt, ir.Set))


def with_code(body: Sequence[ir.Stmt], code: int) -> tuple[ir.Stmt, ...]:
    """Statements whose checks have another number."""
    fails = (isinstance(stmt, ir.Check | ir.Invoke) and stmt.code > 0 for stmt in body)
    numbered = (replace(stmt, code=code) if fail else stmt for stmt, fail in zip(body, fails, strict=True))
    return tuple(visit.map_bodies(stmt, lambda inner: with_code(inner, code)) for stmt in numbered)
