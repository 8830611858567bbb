"""Which parts of a kernel are one function: those that are equal but for names and literals.

In: a part (outline_regions.py). Out: what its function is given, and a key that equal parts share; and the part with
literals replaced by parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from graphc.codegen.transform.outline_regions import BEGIN, COPIED, END, Part
from graphc.loops.ir import (
    Apply,
    Break,
    Buffer,
    Check,
    Const,
    Expr,
    If,
    Invoke,
    Launch,
    Let,
    Load,
    Loop,
    Note,
    Opaque,
    Pointer,
    Set,
    Stmt,
    Store,
    Var,
    children,
    rebuild,
)
from graphc.loops.visit import expressions, map_bodies, map_own_expressions, statements
from graphc.startup.record import record


@record()
class Interface:
    """What a part is given (names of scalars, buffers), its literals in order, and a key that equal parts share."""

    operands: tuple[Var | Buffer, ...]
    literals: tuple[Const, ...]
    key: tuple[object, ...]


def interface(part: Part) -> Interface:
    """What a part is given, in the order in which it names it; the key holds numbers in place of names."""
    numbers: dict[Var | Buffer, int] = {}
    literals: list[Const] = []
    key: list[object] = [part.shares is not None]
    for stmt in statements(part.body):
        lift = may_lift(stmt)
        words = (word for expr in expressions(stmt) for word in expression_words(expr, lift))
        for word in (*statement_words(stmt), *words):
            if isinstance(word, Var | Buffer):
                key.extend((numbers.setdefault(word, len(numbers)), word.dtype))
            elif isinstance(word, Const):
                literals.append(word)
                key.append(("literal", word.dtype))
            else:
                key.append(word)
    own = {BEGIN, END, COPIED} | {stmt.var for stmt in statements(part.body) if isinstance(stmt, Let | Set | Loop)}
    key.extend(numbers[var] for var in part.results)
    operands = tuple(operand for operand in numbers if operand not in own)
    return Interface(operands, tuple(literals), tuple(key))


def statement_words(stmt: Stmt) -> Iterator[object]:
    """What tells a statement from others, but for its expressions and the statements inside it."""
    yield type(stmt)
    match stmt:
        case Let(var, _) | Set(var, _):
            yield var
        case Loop(var, _, body):
            yield var
            yield len(body)
            yield stmt.is_independent
        case If(_, then, orelse):
            yield len(then)
            yield len(orelse)
        case Store(buffer):
            yield buffer
        case Invoke(function, _, _) | Launch(function, _, _, _):
            yield function
        case Check() | Note() | Break():
            pass


def expression_words(expr: Expr, lift: bool) -> Iterator[object]:
    """An expression as a sequence of words, from which it could be put together again. A literal that may become a
    parameter is a Const."""
    pending = [(expr, lift)]
    while pending:
        part, lifted = pending.pop()
        pending.extend((child, lift and may_lift_from(part)) for child in reversed(children(part)))
        match part:
            case Var():
                yield part
            case Const(text, dtype):
                yield from (part,) if lifted and dtype != "bool" else (text, dtype)
            case Load(buffer) | Pointer(buffer):
                yield from (type(part), buffer)
            case Apply(op, args, dtype):
                yield from (op, len(args), dtype)
            case Opaque():
                yield part


def may_lift(stmt: Stmt) -> bool:
    """Whether a statement's literals may become parameters: not what an accumulator starts with, and not the size of
    a loop, which is unrolled where it is known."""
    return not isinstance(stmt, Loop | Note) and not (isinstance(stmt, Set) and isinstance(stmt.value, Const))


def may_lift_from(expr: Expr) -> bool:
    """Whether an expression's own literals may: division and powers are much cheaper by a number that is known."""
    return not (isinstance(expr, Apply) and expr.op.by_known)


def varying(literals: Sequence[tuple[Const, ...]]) -> dict[int, int]:
    """The positions at which the literals of equal parts differ, each with the first that has the same ones."""
    first: dict[tuple[Const, ...], int] = {}
    columns = enumerate(zip(*literals, strict=True))
    return {place: first.setdefault(column, place) for place, column in columns if len(set(column)) > 1}


def with_literals(body: Iterable[Stmt], given: Mapping[int, Var]) -> Iterator[Stmt]:
    """Statements with the literals at these positions replaced; they are counted as `interface` counts them."""
    count = 0

    def change(expr: Expr) -> Expr | None:
        nonlocal count
        if isinstance(expr, Apply) and not may_lift_from(expr):
            kept = tuple(arg if isinstance(arg, Const) else rebuild(arg, change) for arg in expr.args)
            return Apply(expr.op, kept, expr.dtype)
        if not isinstance(expr, Const) or expr.dtype == "bool":
            return None
        count += 1
        return given.get(count - 1, expr)

    def changed(stmt: Stmt) -> Stmt:
        if may_lift(stmt):
            stmt = map_own_expressions(stmt, lambda expr: rebuild(expr, change))
        return map_bodies(stmt, lambda inner: tuple(map(changed, inner)))

    return map(changed, body) if given else iter(body)
