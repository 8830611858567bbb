"""Nests of a large kernel as functions of their own.

In: the statements of a kernel. Out: statements that call functions, and these functions, each once: nests that are
equal but for names are one function called with other arguments. Small functions compile in time linear in their
number, one large one does not, and equal layers of a network are compiled once.

A nest is an outermost loop. Its function has the form

    def nest_sum(begin, end, x, n, scale, sum_at):
        sum = 0.0
        for i in range(begin, end):
            sum = accumulate(sum, x[i] * scale)
        sum_at[0] = sum
        return 0

- `begin` and `end` are the range of the outermost loop, so that several calls may share the work.
- Then come the buffers, sizes and scalars that the loop reads or writes, in the order in which it names them.
- A scalar that the loop accumulates (`sum`) starts anew in every call and leaves through a pointer (`sum_at`) to one
  element of the kernel's buffer of scalars, from where the kernel reads it. Calls that share the work are given
  different elements, and their results are combined by the operator of the accumulation.
- The result is 0, or 1 where the nest's check failed.

All that stands between the nests (scalars, sizes, external functions) stays in the kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graphc.codegen.lower import Names
from graphc.codegen.simplify import expressions, statements
from graphc.ir.loops import (
    INDEX,
    ZERO,
    Apply,
    Check,
    Const,
    Expr,
    Function,
    Invoke,
    Let,
    Load,
    Loop,
    Note,
    Param,
    Pointer,
    Set,
    Stmt,
    Store,
    Var,
    integer,
    subexpressions,
)
from graphc.record import replace

OUTLINE_ABOVE = 12
"""A kernel of more outermost loops than this calls them: below, one function compiles as fast and runs faster."""

FAILED = 1
"""What the function of a nest returns where its check fails; the kernel knows which check it was."""

BEGIN, END = Var("begin", INDEX), Var("end", INDEX)


@dataclass(frozen=True, slots=True)
class Outlined:
    """A kernel's statements, the functions they call, and the buffers of scalars these need: dtype and length."""

    body: tuple[Stmt, ...]
    functions: tuple[Function, ...]
    scalars: Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Nest:
    """An outermost loop, the scalars that it accumulates, each with the statement that starts it, and the remark above
    it."""

    loop: Loop
    starts: tuple[Set, ...]
    note: Note


@dataclass(slots=True)
class Outliner:
    """Collects the functions of one kernel. `buffers`: the dtype of each buffer."""

    names: Names
    buffers: Mapping[str, str]
    functions: dict[tuple[object, ...], Function] = field(default_factory=dict)
    scalars: dict[str, tuple[str, int]] = field(default_factory=dict)
    scalar_buffers: dict[str, str] = field(default_factory=dict)

    def call(self, nest: Nest) -> Iterator[Stmt]:
        """The statements that stand for a nest: a call of its function, and its scalars read from where it left
        them."""
        used = interface(nest, self.buffers)
        function = self.functions.get(used.key)
        if function is None:
            function = self.functions[used.key] = self.define(nest, used)
        places = [self.place(start.var.dtype) for start in nest.starts]
        args = (
            *(ZERO, nest.loop.size),
            *(operand if isinstance(operand, Var) else self.pointer(operand) for operand in used.operands),
            *(Pointer(buffer, integer(place), dtype) for buffer, place, dtype in places),
        )
        if codes := check_codes(nest.loop):
            holes = ", ".join(f"_{position}" for position in range(len(args)))
            yield Check(Apply(f"{function.name}({holes}) == 0", args, "bool"), codes.pop())
        else:
            yield Invoke(function.name, args)
        for start, (buffer, place, dtype) in zip(nest.starts, places, strict=True):
            yield Let(start.var, Load(buffer, integer(place), dtype))

    def define(self, nest: Nest, used: Interface) -> Function:
        loop = Loop(nest.loop.var, END, with_code(nest.loop.body, FAILED), BEGIN)
        outs = [(start.var, self.names.fresh(f"{start.var.name}_at")) for start in nest.starts]
        params = (
            *(Param(bound.name, INDEX) for bound in (BEGIN, END)),
            *(self.param(operand) for operand in used.operands),
            *(Param(at, f"{var.dtype}*") for var, at in outs),
        )
        body: tuple[Stmt, ...] = (*nest.starts, loop, *(Store(at, ZERO, var) for var, at in outs))
        return Function(self.names.fresh(f"nest_{nest.note.subject}"), params, body, nest.note.text)

    def param(self, operand: Var | str) -> Param:
        if isinstance(operand, Var):
            return Param(operand.name, operand.dtype)
        return Param(operand, f"{self.buffers[operand]}*")

    def pointer(self, buffer: str) -> Pointer:
        return Pointer(buffer, ZERO, self.buffers[buffer])

    def place(self, dtype: str) -> tuple[str, int, str]:
        """A free element of the buffer of scalars of a dtype."""
        buffer = self.scalar_buffers.get(dtype)
        if buffer is None:
            buffer = self.scalar_buffers[dtype] = self.names.fresh(f"scalars_{dtype}")
        _, count = self.scalars.get(buffer, (dtype, 0))
        self.scalars[buffer] = (dtype, count + 1)
        return buffer, count, dtype


def outline(body: Sequence[Stmt], names: Names, buffers: Mapping[str, str], policy: str = "auto") -> Outlined:
    """`body` with its nests outlined where the policy says so: "always", "never", or where there are many ("auto")."""
    loops = sum(isinstance(stmt, Loop) for stmt in body)
    if policy == "never" or (policy == "auto" and loops <= OUTLINE_ABOVE):
        return Outlined(tuple(body), (), {})
    outliner = Outliner(names, buffers)
    starts = accumulators(body)
    outer = {stmt.var for stmt in body if isinstance(stmt, Set)}
    note = Note("", "loop")
    result: list[Stmt] = []
    moved: set[Var] = set()
    for before, stmt in zip((None, *body), body, strict=False):
        if isinstance(stmt, Note) and not isinstance(before, Note):
            note = stmt
        carried = [var for var in set_vars(stmt) if var in outer] if isinstance(stmt, Loop) else []
        if not isinstance(stmt, Loop) or not starts.keys() >= set(carried) or len(check_codes(stmt)) > 1:
            result.append(stmt)
            continue
        moved.update(carried)
        result.extend(outliner.call(Nest(stmt, tuple(starts[var] for var in carried), note)))
    kept = tuple(stmt for stmt in result if not (isinstance(stmt, Set) and stmt.var in moved))
    return Outlined(kept, tuple(outliner.functions.values()), outliner.scalars)


@dataclass(frozen=True, slots=True)
class Interface:
    """What a nest's function is given (names of scalars, buffers), and a key that equal nests share."""

    operands: tuple[Var | str, ...]
    key: tuple[object, ...]


def interface(nest: Nest, buffers: Mapping[str, str]) -> Interface:
    """The operands of a nest in the order in which it names them; the key holds numbers in their place."""
    numbers: dict[Var | str, int] = {}
    key: list[object] = []
    body = (*nest.starts, *statements([replace(nest.loop, size=ZERO)]))
    for stmt in body:
        for word in (*statement_words(stmt), *(word for expr in expressions(stmt) for word in expression_words(expr))):
            if isinstance(word, Var):
                key.extend((numbers.setdefault(word, len(numbers)), word.dtype))
            elif isinstance(word, Buffer):
                key.extend((numbers.setdefault(word.name, len(numbers)), buffers[word.name]))
            else:
                key.append(word)
    own = {stmt.var for stmt in body if isinstance(stmt, Let | Set | Loop)}
    return Interface(tuple(operand for operand in numbers if operand not in own), tuple(key))


@dataclass(frozen=True, slots=True)
class Buffer:
    """The name of a buffer among the words of a nest."""

    name: str


def statement_words(stmt: Stmt) -> Iterator[object]:
    """What tells a statement from others, but for its expressions and the statements inside it."""
    yield type(stmt)
    match stmt:
        case Let(var, _) | Set(var, _):
            yield var
        case Loop(var, _, body):
            yield var
            yield len(body)
        case Store(buffer, _, _):
            yield Buffer(buffer)
        case Invoke(function, _):
            yield function
        case Check() | Note():
            pass


def expression_words(expr: Expr) -> Iterator[object]:
    """An expression as a sequence of words, from which it could be put together again."""
    for part in subexpressions(expr):
        match part:
            case Var():
                yield part
            case Const(text, dtype):
                yield from (text, dtype)
            case Load(buffer, _, _) | Pointer(buffer, _, _):
                yield from (type(part), Buffer(buffer))
            case Apply(template, args, dtype):
                yield from (template, len(args), dtype)


def accumulators(body: Sequence[Stmt]) -> dict[Var, Set]:
    """The scalars that start with a literal and are then accumulated by exactly one of the outermost loops."""
    starts = [stmt for stmt in body if isinstance(stmt, Set)]
    started = Counter(stmt.var for stmt in starts)
    loops = Counter(var for stmt in body if isinstance(stmt, Loop) for var in set_vars(stmt))
    return {
        stmt.var: stmt for stmt in starts if isinstance(stmt.value, Const) and started[stmt.var] == loops[stmt.var] == 1
    }


def set_vars(loop: Loop) -> dict[Var, None]:
    """The names that a loop sets, in order."""
    return dict.fromkeys(stmt.var for stmt in statements(loop.body) if isinstance(stmt, Set))


def check_codes(loop: Loop) -> set[int]:
    """The numbers of the checks that a loop makes."""
    return {stmt.code for stmt in statements(loop.body) if isinstance(stmt, Check)}


def with_code(body: Sequence[Stmt], code: int) -> tuple[Stmt, ...]:
    """Statements whose checks have another number."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop):
            stmt = replace(stmt, body=with_code(stmt.body, code))
        result.append(replace(stmt, code=code) if isinstance(stmt, Check) else stmt)
    return tuple(result)
