"""Equal parts of a kernel are one function: those that differ in names and literals alone.

In: a part (outline_regions.py). Out: its operands, and a key that equal parts share; and the part with literals
replaced by parameters.

    for i in range(n): y[i] = x[i] * 2.0        one function nest(begin, end, x, y, value), called with (x, y, 2.0)
    for j in range(m): b[j] = a[j] * 3.0        and with (a, b, 3.0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphc.codegen.transform.outline_regions import BEGIN, COPIED, END, Part
from graphc.loopir import ir
from graphc.loopir.visit import expressions, map_bodies, map_own_expressions, statements
from graphc.startup.record import fresh, record


@record()
class Interface:
    """The operands of a part (names of scalars, buffers), its literals in order, and a key that equal parts share."""

    operands: tuple[ir.Var | ir.Buffer, ...]
    literals: tuple[ir.Const, ...]
    key: tuple[object, ...]


def interface(part: Part) -> Interface:
    """The operands of a part, in the order in which it names them; the key holds numbers in place of names."""
    spelling = Spelling()
    for stmt in statements(part.body):
        spelling.statement(stmt)
    for var in part.results:
        spelling.name(var)
    own = {BEGIN, END, COPIED}
    own |= {stmt.var for stmt in statements(part.body) if isinstance(stmt, ir.Let | ir.Set | ir.Loop)}
    operands = tuple(operand for operand in spelling.numbers if operand not in own)
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
        for expr in expressions(stmt):
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
            stmt = map_own_expressions(stmt, lambda expr: ir.rebuild(expr, change))
        return map_bodies(stmt, lambda inner: tuple(map(changed, inner)))

    return map(changed, body) if values else body
