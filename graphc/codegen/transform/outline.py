"""Parts of a large kernel as functions of their own.

In: the statements of a kernel. Out: statements that call functions, and these functions, each once: parts that are
equal but for names and literals are one function called with other arguments. Small functions compile in time linear
in their number, one large one does not, and equal layers of a network are compiled once.

A part is a nest (an outermost loop) or a block (a run of scalars). A loop around many nests that threads cannot
share itself stays where it is, and its statements are treated as a kernel's; so are those of branches. The function
of a nest has the form

    def nest_sum(begin, end, x, n, scale, sum_at):
        sum = 0.0
        for i in independent(begin, end):
            sum = accumulate(sum, x[i] * scale)
        sum_at[0] = sum
        return 0

- `begin` and `end` are the range of the outermost loop, so that several calls may share the work. A block has none.
  In a kernel of many nests one that threads cannot share has none either: it computes its limits itself, so that the
  kernel does not do so once for each of its equals.
- Then come the buffers, sizes and scalars that the part reads or writes, in the order in which it names them, and the
  literals in which it differs from its equals.
- A scalar that the loop accumulates (`sum`) starts anew in every call and leaves through a pointer (`sum_at`) to one
  element of the kernel's buffer of scalars, from where the kernel reads it. Calls that share the work are given
  different elements, and their results are combined by the operator of the accumulation. The scalars of a block leave
  it in the same way.
- The result is 0, or 1 where the nest's check failed.

All else that stands between the nests (few scalars, sizes, external functions) stays in the kernel.

A nest that threads may share (parallelize.py) is a function in every kernel, launched in chunks. A buffer that holds
one row at a time is as many rows long as there may be chunks, and each uses its own. The nest leaves its scalars at
the number of its chunk, `begin // size`, and the kernel combines them in order:

    parallel(nest_scale, n, chunk(n, 4), reads(x), fills(y))
    sum = 0.0
    size = chunk(n, 3)
    parallel(nest_sum, n, size, x, size, partial_float64)
    for part in independent((n + size - 1) // size):
        sum = accumulate(sum, partial_float64[part])

Iterations fill `fills(y)` element by element, and nothing else reads it, so that its stores may be non-temporal
(parallelize.py).

Of a loop over rows that keeps to its columns the columns are shared: its function goes over all rows, each from
`begin` to `end`; or over some rows, where it adds them into copies. Where the iterations of a loop add into a
buffer, each chunk adds into a copy (parallelize.py), which its function fills first; where there is one chunk, the
function adds into the buffer itself, and none is left for the launch:

    shared = select(n > size, n, 0)
    nest_sum(shared, n, x, total, size, 0)
    parallel(nest_sum, shared, size, x, copies_float64, size, minimum(shared, 1))
    for part in range((shared + size - 1) // size):
        for c in independent(m):
            total[c] = accumulate(total[c], copies_float64[part * m + c])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from graphc.codegen.call.callback import STOPPED
from graphc.codegen.threads.settings import MOST_CHUNKS, NONTEMPORAL
from graphc.codegen.transform.outline_regions import (
    BEGIN,
    COPIED,
    END,
    FAILED,
    PLACE,
    Part,
    Path,
    by_length,
    find_parts,
    with_code,
)
from graphc.codegen.transform.parallelize import copy_stride, describe_work, most_copies, stream_of
from graphc.codegen.transform.safepoints import poll_together
from graphc.codegen.transform.simplify import drop_unused
from graphc.loopir import ir, operators, visit
from graphc.loopir.syntax import Names, text_of
from graphc.startup.record import fresh, record, replace

# --- equal parts ------------------------------------------------------------------------------------------------------
# Parts that differ in names and literals alone are one function:
#
#     for i in range(n): y[i] = x[i] * 2.0        one function nest(begin, end, x, y, value), called with (x, y, 2.0)
#     for j in range(m): b[j] = a[j] * 3.0        and with (a, b, 3.0)


@record()
class Interface:
    """The operands of a part (names of scalars, buffers), its literals in order, and a key that equal parts share."""

    operands: tuple[ir.Var | ir.Buffer, ...]
    literals: tuple[ir.Const, ...]
    key: tuple[object, ...]


def interface(part: Part) -> Interface:
    """The operands of a part, in the order in which it names them; the key holds numbers in place of names."""
    spelling = Spelling()
    for stmt in visit.statements(part.body):
        spelling.statement(stmt)
    for var in part.results:
        spelling.name(var)
    defined = {BEGIN, END, COPIED}
    defined |= {stmt.var for stmt in visit.statements(part.body) if isinstance(stmt, ir.Let | ir.Set | ir.Loop)}
    operands = tuple(operand for operand in spelling.numbers if operand not in defined)
    return Interface(operands, tuple(spelling.literals), (part.shares is not None, *spelling.key))


@record(frozen=False, eq=False)
class Spelling:
    """Statements as a key with a number for each name; a literal that may become a parameter is left out of it."""

    key: list[object] = fresh(factory=list)
    numbers: dict[ir.Var | ir.Buffer, int] = fresh(factory=dict)
    literals: list[ir.Const] = fresh(factory=list)

    def name(self, name: ir.Var | ir.Buffer) -> None:
        self.key += (name.dtype, self.numbers.setdefault(name, len(self.numbers)))

    def statement(self, stmt: ir.Stmt) -> None:
        """A statement, but for those inside it, which come next."""
        self.key.append(type(stmt))
        match stmt:
            case ir.Let(var, _) | ir.Set(var, _):
                self.name(var)
            case ir.Store(buffer):
                self.name(buffer)
            case ir.Loop(var, _, body, begin, conflicts, safepoint):
                self.name(var)
                dtypes = None if conflicts is None else tuple(buffer.dtype for buffer in conflicts)
                self.key += (len(body), dtypes, begin is ir.ZERO, safepoint is None)
            case ir.If(_, then, orelse):
                self.key += (len(then), len(orelse))
            case ir.Invoke(function) | ir.Launch(function):
                self.key.append(function)
        for expr in visit.expressions(stmt):
            self.expression(expr, may_lift(stmt))

    def expression(self, expr: ir.Expr, lift: bool) -> None:
        pending = [(expr, lift)]
        while pending:
            part, lifted = pending.pop()
            pending.extend((child, lift and may_lift_from(part)) for child in reversed(ir.children(part)))
            match part:
                case ir.Apply(op, args, dtype):
                    self.key += (op, len(args), dtype)
                case ir.Load(buffer) | ir.Pointer(buffer):
                    self.key.append(type(part))
                    self.name(buffer)
                case ir.Var():
                    self.name(part)
                case ir.Const(_, dtype) if lifted and dtype != "bool":
                    self.key += (ir.Const, dtype)
                    self.literals.append(part)
                case _:
                    self.key.append(part)


def may_lift(stmt: ir.Stmt) -> bool:
    """True where a statement's literals may become parameters: not what an accumulator starts with, and not the size of
    a loop, which is unrolled where it is known."""
    return not isinstance(stmt, ir.Loop) and not (isinstance(stmt, ir.Set) and isinstance(stmt.value, ir.Const))


def may_lift_from(expr: ir.Expr) -> bool:
    """True where an expression's own literals may: division and powers are much cheaper by a number that is known."""
    return not (isinstance(expr, ir.Apply) and expr.op.by_known)


def varying(literals: Sequence[tuple[ir.Const, ...]]) -> dict[int, int]:
    """The positions at which the literals of equal parts differ, each with the first that has the same ones."""
    first: dict[tuple[ir.Const, ...], int] = {}
    columns = enumerate(zip(*literals, strict=True))
    return {place: first.setdefault(column, place) for place, column in columns if len(set(column)) > 1}


def with_literals(body: Iterable[ir.Stmt], values: Mapping[int, ir.Var]) -> Iterable[ir.Stmt]:
    """Statements with the literals at these positions replaced, which are counted as `interface` counts them."""
    count = 0

    def change(expr: ir.Expr) -> ir.Expr | None:
        nonlocal count
        if not may_lift_from(expr):
            assert isinstance(expr, ir.Apply)
            kept = tuple(arg if isinstance(arg, ir.Const) else ir.rebuild(arg, change) for arg in expr.args)
            return ir.Apply(expr.op, kept, expr.dtype)
        if not isinstance(expr, ir.Const) or expr.dtype == "bool":
            return None
        count += 1
        return values.get(count - 1, expr)

    def changed(stmt: ir.Stmt) -> ir.Stmt:
        if may_lift(stmt):
            stmt = visit.map_own_expressions(stmt, lambda expr: ir.rebuild(expr, change))
        return visit.map_bodies(stmt, lambda inner: tuple(map(changed, inner)))

    return map(changed, body) if values else body


# --- parts become functions -------------------------------------------------------------------------------------------


LAUNCHES_IN_KERNEL = 8
"""A kernel with more nests that threads may share calls functions that launch them: LLVM takes long for many
branches, and loops over what chunks left, in one function."""


@record()
class Outlined:
    """A kernel's statements, the functions they call, the buffers of scalars these need (dtype and length), and a line
    on every nest that threads may share."""

    body: tuple[ir.Stmt, ...]
    functions: tuple[ir.Function, ...]
    scalars: Mapping[ir.Buffer, int]
    launches: tuple[str, ...] = ()
    private: Mapping[ir.Buffer, int] = fresh(factory=dict)
    """Buffers of one row of which every chunk has its own, with the most chunks of their loops."""
    copies: Mapping[ir.Buffer, tuple[Copies, ...]] = fresh(factory=dict)
    """Buffers of the copies that chunks add into, each with what it has to hold in turn."""


@record()
class Copies:
    """The copies of a loop that takes `at_once` rows in an iteration. `copied`: the buffers of which these are, one for
    every chunk; `targets`: all that the loop adds into, with how many iterations are worth a copy of each."""

    copied: tuple[ir.Buffer, ...]
    targets: Mapping[ir.Buffer, ir.Target]
    at_once: int


def outline(body: Sequence[ir.Stmt], names: Names, policy: str = "auto") -> Outlined:
    """`body` with its parts outlined where the policy says so: "always", "never", or ("auto") where there are many,
    where they are large or where threads may share them."""
    parts = {} if policy == "never" else find_parts(body, policy == "always")
    caller = Caller(names, visit.read_buffers(body) if parts else ())
    parts = {path: caller.asking_together(part) for path, part in parts.items()}
    calls = call_parts(caller, parts)
    launches = {  # what chunks left is combined there, too
        place: Part(with_code(calls[place], FAILED), part.results, part.note, code=part.code, kind="launch")
        for place, part in parts.items()
        if part.shares is not None
    }
    if len(launches) > LAUNCHES_IN_KERNEL:
        calls |= call_parts(caller, launches)
    kept = with_calls(body, parts, calls, caller.alone)
    if any(part.limits for part in parts.values()):
        kept = drop_unused(kept)
    private: dict[ir.Buffer, int] = {}
    for shares in (part.shares for part in parts.values() if part.shares is not None):
        for buffer in shares.rows:
            private[buffer] = max(private.get(buffer, 1), ir.MOST_COPIES if shares.sums else MOST_CHUNKS)
    copies = {buffer: tuple(copied) for buffer, copied in caller.copies.items()}
    return Outlined(kept, tuple(caller.functions), caller.scalars, tuple(caller.launches), private, copies)


def with_calls(
    body: Sequence[ir.Stmt],
    parts: Mapping[Path, Part],
    calls: Mapping[Path, tuple[ir.Stmt, ...]],
    alone: Collection[Path],
    within: Path = (),
) -> tuple[ir.Stmt, ...]:
    """Statements that stand `within` a loop or branch, with calls in place of parts. What a function that is called
    once says in its docstring is not said above the call."""
    here = {path[-1]: part for path, part in parts.items() if path[:-1] == within}
    around = {path[len(within)] for path in parts if path[: len(within)] == within} - here.keys()
    named = ((part, stmt.var) for part in here.values() for stmt in part.body if isinstance(stmt, ir.Let | ir.Set))
    moved = {var for part, var in named if var not in part.limits}
    runs = {before for place, part in here.items() if part.kind == "scalars" for before in run_before(place, part)}
    kept: list[ir.Stmt] = []
    for place, stmt in enumerate(body):
        if place in here:
            if kept and isinstance(kept[-1], ir.Note) and (*within, place) in alone:
                kept.pop()
            kept.extend(calls[(*within, place)])
        elif place in around:
            inside = [
                with_calls(inner, parts, calls, alone, (*within, place, number))
                for number, inner in enumerate(visit.bodies(stmt))
            ]
            kept.append(visit.with_bodies(replace(stmt, conflicts=None) if isinstance(stmt, ir.Loop) else stmt, inside))
        elif not (place in runs or (isinstance(stmt, ir.Let | ir.Set) and stmt.var in moved)):
            kept.append(stmt)
    return tuple(kept)


def run_before(place: int, part: Part) -> range:
    """The places of the statements of a run of scalars before its last one."""
    return range(place - len(part.body) + 1, place)


def call_parts(caller: Caller, parts: Mapping[Path, Part]) -> dict[Path, tuple[ir.Stmt, ...]]:
    """The statements that call each part; those that are equal are one function."""
    interfaces = {place: interface(part) for place, part in parts.items()}
    equal: dict[tuple[object, ...], list[Path]] = {}
    for place, used in interfaces.items():
        equal.setdefault(used.key, []).append(place)
    calls: dict[Path, tuple[ir.Stmt, ...]] = {}
    for places in equal.values():
        lifted = varying([interfaces[place].literals for place in places])
        function = caller.define(parts[places[0]], interfaces[places[0]], lifted)
        if len(places) == 1:
            caller.alone.add(places[0])
        for place in places:
            calls[place] = tuple(caller.call(function, parts[place], interfaces[place], lifted))
    return calls


@record(frozen=False)
class Caller:
    """Writes the functions and calls of one kernel."""

    names: Names
    read: Collection[ir.Buffer]
    """The buffers that the kernel reads."""
    functions: list[ir.Function] = fresh(factory=list)
    own: dict[tuple[str, str], ir.Buffer] = fresh(factory=dict)
    """The kernel's own buffers, by what they are for and their dtypes."""
    scalars: dict[ir.Buffer, int] = fresh(factory=dict)
    launches: list[str] = fresh(factory=list)
    alone: set[Path] = fresh(factory=set)
    """The places of the parts of which no other is equal."""
    copies: dict[ir.Buffer, list[Copies]] = fresh(factory=dict)

    def define(self, part: Part, used: Interface, lifted: Mapping[int, int]) -> ir.Function:
        """The function of parts that are equal but for the literals at the positions of `lifted`."""
        rows = part.shares.rows if part.shares else {}
        sums = part.shares.sums if part.shares else {}
        chunk = [ir.Var(self.names.fresh("size"), ir.INDEX)] if part.shares and (part.results or rows or sums) else []
        firsts = dict.fromkeys(lifted.values())
        values = {place: ir.Var(self.names.fresh("value"), used.literals[place].dtype) for place in firsts}
        parameters = {place: values[first] for place, first in lifted.items()}
        outs = [(var, ir.Buffer(self.names.fresh(f"{var.name}_at"), var.dtype)) for var in part.results]
        params = (
            *((BEGIN, END) if part.extent is not None else ()),
            *(*used.operands, *values.values(), *chunk, *((COPIED,) if sums else ())),
            *(at for _, at in outs),
        )
        place = ir.quotient(BEGIN, chunk[0]) if chunk else ir.ZERO
        if part.columns is not None:
            place = ir.multiply(place, COPIED)
        body: tuple[ir.Stmt, ...] = (
            *with_literals(part.body, parameters),
            *(ir.Store(at, place, var) for var, at in outs),
        )
        lengths = dict(rows) | {buffer: copy_stride(target.length) for buffer, (target, _) in sums.items()}
        if lengths:
            begins = {length: ir.Var(self.names.fresh("mine"), ir.INDEX) for length in dict.fromkeys(lengths.values())}
            body = (
                *(ir.Let(begin, ir.multiply(place, length)) for length, begin in begins.items()),
                *visit.moved_buffers(body, {buffer: (buffer, begins[length]) for buffer, length in lengths.items()}),
            )
        function = ir.Function(self.names.fresh(f"{part.kind}_{part.note.subject}"), params, body, part.note.text)
        self.functions.append(function)
        return function

    def call(self, function: ir.Function, part: Part, used: Interface, lifted: Mapping[int, int]) -> Iterator[ir.Stmt]:
        """The statements that stand for a part: a call, and its scalars read from where it left them."""
        arguments = (
            *(operand if isinstance(operand, ir.Var) else ir.Pointer(operand, ir.ZERO) for operand in used.operands),
            *(used.literals[place] for place in dict.fromkeys(lifted.values())),
        )
        if part.shares is not None and part.extent is not None:
            flag = self.flag() if part.code else None
            yield from [] if flag is None else [ir.Store(flag.buffer, flag.index, ir.ZERO)]
            yield from self.launch(function, part, used, arguments)
            yield from [] if flag is None else [ir.Invoke(STOPPED, (flag,), part.code)]
            return
        places = [self.free_scalar(var.dtype) for var in part.results]
        outs = (ir.Pointer(buffer, ir.integer(place)) for buffer, place in places)
        args = (*((ir.ZERO, part.extent) if part.extent is not None else ()), *arguments, *outs)
        yield ir.Invoke(function.name, args, part.code)
        for var, (buffer, place) in zip(part.results, places, strict=True):
            yield ir.Let(var, ir.Load(buffer, ir.integer(place)))

    def asking_together(self, part: Part) -> Part:
        """A part whose loops ask whether the call must end, as threads that share it do."""
        if part.shares is None or not part.code:
            return part
        flag = self.flag()
        goes_on = ir.Check(ir.apply(operators.EQ, ir.Load(flag.buffer, flag.index), ir.ZERO), part.code)
        return replace(part, body=(goes_on, *poll_together(part.body, flag)))

    def flag(self) -> ir.Pointer:
        """The address where threads note that the call must end."""
        buffer = self.own_buffer("stopped", ir.INDEX)
        self.scalars[buffer] = 1
        return ir.Pointer(buffer, ir.ZERO)

    def launch(
        self, function: ir.Function, part: Part, used: Interface, arguments: tuple[ir.Expr, ...]
    ) -> Iterator[ir.Stmt]:
        """The statements that stand for a nest that threads may share: a launch, and its scalars combined from what the
        chunks left."""
        shares, count = part.shares, part.extent
        assert shares is not None and count is not None
        otherwise = ", or all into one by columns" if part.columns is not None else ""
        self.launches.append(f"{function.name}: {describe_work(count, shares, text_of)}{otherwise}")
        size = ir.apply(shares.chunk, count, shares.work)
        if not (part.results or shares.rows or shares.sums):
            yield ir.Launch(function.name, count, size, self.streamed(part, used, arguments))
            return
        chunk, iteration = ir.Var(self.names.fresh("size"), ir.INDEX), ir.Var(self.names.fresh("part"), ir.INDEX)
        places = self.partial_places([var.dtype for var in part.results])
        outs = tuple(ir.Pointer(buffer, ir.integer(place)) for buffer, place in places)
        if shares.sums:
            yield from self.launch_on_copies(function, part, size, chunk, used, arguments, outs)
        else:
            yield ir.Let(chunk, size)
            yield ir.Launch(function.name, count, chunk, (*arguments, chunk, *outs))
        yield from (stmt for stmt in part.body if isinstance(stmt, ir.Set))
        partials = [ir.Load(buffer, ir.add(iteration, ir.integer(place))) for buffer, place in places]
        terms = dict(zip(part.results, partials, strict=True))
        combined: list[ir.Stmt] = []
        for var, error in shares.errors.items():
            combined += ir.add_compensated(var, error, terms.pop(var))
        combined += (ir.Set(var, ir.apply(shares.steps[var], var, term)) for var, term in terms.items())
        if combined:
            yield ir.Loop(iteration, chunks_of(count, chunk), tuple(combined), conflicts=())

    def streamed(self, part: Part, used: Interface, arguments: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        """The arguments of the function of a nest, with a mark on what non-temporal stores may write."""
        loop, shares = part.body[-1], part.shares
        if not isinstance(loop, ir.Loop) or loop.size != END or shares is None:
            return arguments
        stream = stream_of(loop, shares.work, self.read)
        if stream is None:
            return arguments
        self.launches[-1] += f"; {stream.fills.name} {NONTEMPORAL} where it is large"
        words = {stream.fills: operators.FILLS, stream.reads: operators.READS}
        marked = (
            ir.apply(words[operand], pointer) if operand in words else pointer
            for operand, pointer in zip(used.operands, arguments, strict=False)
        )
        return (*marked, *arguments[len(used.operands) :])

    def launch_on_copies(
        self,
        function: ir.Function,
        part: Part,
        size: ir.Expr,
        chunk: ir.Var,
        used: Interface,
        arguments: tuple[ir.Expr, ...],
        outs: tuple[ir.Expr, ...],
    ) -> Iterator[ir.Stmt]:
        """A nest whose chunks add into copies, which are then combined in order; one chunk needs none."""
        shares, count = part.shares, part.extent
        assert shares is not None and count is not None
        targets = {buffer: target for buffer, (target, _) in shares.sums.items()}
        most, shared, iteration = (ir.Var(self.names.fresh(name), ir.INDEX) for name in ("most", "shared", "part"))
        yield ir.Let(
            most, ir.apply(operators.MAXIMUM, most_copies((target, count) for target in targets.values()), ir.ONE)
        )
        yield ir.Let(chunk, ir.apply(operators.MAXIMUM, size, chunks_of(count, most)))
        yield ir.Let(shared, ir.apply(operators.SELECT, ir.apply(operators.GT, count, chunk), count, ir.ZERO))
        if part.columns is None:
            yield ir.Invoke(function.name, (shared, count, *arguments, chunk, ir.ZERO, *outs))
        else:
            columns = ir.apply(operators.SELECT, ir.apply(operators.GT, shared, ir.ZERO), ir.ZERO, part.columns.extent)
            part_of_row = ir.apply(operators.COLUMNS, columns, part.columns.work)
            yield ir.Launch(function.name, columns, part_of_row, (*arguments, chunk, ir.ZERO, *outs))
        begins = self.copy_places(targets, part.at_once, most)
        replaced = dict(zip(used.operands, arguments, strict=False)) | begins
        copied = ir.apply(operators.MINIMUM, shared, ir.ONE)
        operands = (*(replaced[operand] for operand in used.operands), *arguments[len(used.operands) :])
        yield ir.Launch(function.name, shared, chunk, (*operands, chunk, copied, *outs))
        for length, buffers in by_length(shares).items():
            stores = []
            for buffer in buffers:
                begin, step = begins[buffer], shares.sums[buffer][1]
                start = ir.add(begin.index, ir.multiply(iteration, copy_stride(length)))
                copy = ir.Load(begin.buffer, ir.add(start, PLACE))
                whole = ir.apply(step, ir.Load(buffer, PLACE), copy)
                stores.append(ir.Store(buffer, PLACE, whole))
            along = ir.Loop(PLACE, length, tuple(stores), conflicts=())
            yield ir.Loop(iteration, chunks_of(shared, chunk), (along,), conflicts=tuple(buffers))

    def copy_places(
        self, targets: Mapping[ir.Buffer, ir.Target], at_once: int, most: ir.Var
    ) -> dict[ir.Buffer, ir.Pointer]:
        """The address where the copies of each buffer begin, `most` at most."""
        begins: dict[ir.Buffer, ir.Pointer] = {}
        for dtype in dict.fromkeys(buffer.dtype for buffer in targets):
            copies = self.own_buffer("copies", dtype)
            copied = tuple(buffer for buffer in targets if buffer.dtype == dtype)
            before: Counter[ir.Expr] = Counter()
            for buffer in copied:
                begins[buffer] = ir.Pointer(copies, ir.sum_of(before))
                before[ir.multiply(most, copy_stride(targets[buffer].length))] += 1
            self.copies.setdefault(copies, []).append(Copies(copied, targets, at_once))
        return begins

    def partial_places(self, dtypes: Sequence[str]) -> list[tuple[ir.Buffer, int]]:
        """For each scalar of a launch a row with an element for every chunk. The rows serve all launches in turn."""
        rows: Counter[str] = Counter()
        places = []
        for dtype in dtypes:
            buffer = self.own_buffer("partial", dtype)
            places.append((buffer, rows[dtype] * MOST_CHUNKS))
            rows[dtype] += 1
            self.scalars[buffer] = max(self.scalars.get(buffer, 0), rows[dtype] * MOST_CHUNKS)
        return places

    def free_scalar(self, dtype: str) -> tuple[ir.Buffer, int]:
        """A free element of the buffer of scalars of a dtype."""
        buffer = self.own_buffer("scalars", dtype)
        count = self.scalars.get(buffer, 0)
        self.scalars[buffer] = count + 1
        return buffer, count

    def own_buffer(self, purpose: str, dtype: str) -> ir.Buffer:
        """The kernel's buffer for a purpose."""
        if (purpose, dtype) not in self.own:
            self.own[purpose, dtype] = ir.Buffer(self.names.fresh(f"{purpose}_{dtype}"), dtype, is_temporary=True)
        return self.own[purpose, dtype]


def chunks_of(count: ir.Expr, size: ir.Expr) -> ir.Expr:
    """The number of chunks of a size that a loop has."""
    return ir.apply(operators.BLOCKS, count, size)
