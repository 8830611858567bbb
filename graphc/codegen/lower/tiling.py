"""Which loops of a nest are cut into tiles: those that read one operand by rows and write, or read, another by columns.

In: the statements of a nest without tiles, whose turns do not depend on one another. Out: the loop along which an
operand lies in memory that the innermost loop reads across. The lines of memory that a tile of both loops touches stay
in the nearest cache until all of each is used; a whole row of the innermost loop would drop them in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from graphc.loops import operators
from graphc.loops.ir import (
    TILE,
    Apply,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Opaque,
    Stmt,
    Store,
    Var,
    children,
    int_value,
    subexpressions,
)
from graphc.startup.record import record


def loop_across(body: Sequence[Stmt]) -> Var | None:
    """The loop that is to be cut into tiles together with the innermost one; None where no operand is read across, or
    where there is more to the nest than its loops, names and stores."""
    nest = read_nest(body)
    if nest is None or len(nest.loops) < 2:
        return None
    *outer, innermost = nest.loops
    across: Counter[Var] = Counter()
    for load in {part for expr in nest.exprs for part in subexpressions(expr) if isinstance(part, Load)}:
        if stride(load.index, innermost.var, nest.values) is None:
            along = (loop.var for loop in outer if stride(load.index, loop.var, nest.values) == 1)
            across.update(var for var in along if not is_short(nest.sizes[var]))
    return across.most_common(1)[0][0] if across and not is_short(innermost.size) else None


def is_short(size: Expr) -> bool:
    """Whether a loop is known to have no more turns than a tile."""
    turns = int_value(size)
    return turns is not None and turns <= TILE


@record()
class LoopNest:
    """Loops, outermost first; the values of names in them; what the innermost one computes."""

    loops: tuple[Loop, ...]
    values: Mapping[Var, Expr]
    exprs: tuple[Expr, ...]

    @property
    def sizes(self) -> dict[Var, Expr]:
        return {loop.var: loop.size for loop in self.loops}


def read_nest(body: Sequence[Stmt]) -> LoopNest | None:
    """One loop in another with nothing but names between them, and names and stores inside."""
    loops: list[Loop] = []
    values: dict[Var, Expr] = {}
    while True:
        values |= {stmt.var: stmt.value for stmt in body if isinstance(stmt, Let)}
        inner = [stmt for stmt in body if isinstance(stmt, Loop)]
        if not all(isinstance(stmt, Let | Loop | Store) for stmt in body) or len(inner) > 1:
            return None
        if not inner:
            return LoopNest(tuple(loops), values, tuple(values_of(body)))
        loops += inner
        body = inner[0].body


def values_of(body: Sequence[Stmt]) -> Iterator[Expr]:
    return (stmt.value for stmt in body if isinstance(stmt, Let | Store))


def stride(position: Expr, var: Var | Opaque, values: Mapping[Var, Expr]) -> int | None:
    """By how much a position grows from turn to turn of the loop of `var`: 0, 1 or (None) another number."""
    match position:
        case Var() | Opaque() if position == var:
            return 1
        case Var() if position in values:
            return stride(values[position], var, values)
        case Var() | Const():
            return 0
        case Apply(operators.ADD, (left, right)):
            steps = stride(left, var, values), stride(right, var, values)
            return sum(steps) if 0 in steps and None not in steps else None  # type: ignore[arg-type]
        case _:
            return None if any(stride(child, var, values) != 0 for child in children(position)) else 0
