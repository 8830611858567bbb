"""Which loops of a nest are cut into tiles: those that read one operand by rows and write, or read, another by columns.

In: the loops of a nest whose iterations do not depend on one another, and the positions that are read in the innermost
one. Out: the loop along which an operand lies in memory that the innermost loop reads across. The lines of memory that
a tile of both loops touches stay in the nearest cache until all of each is used; a whole row of the innermost loop
would drop them in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from graphc.loopir import operators
from graphc.loopir.ir import TILE, Apply, Const, Expr, Opaque, Var, children, int_value


def loop_across(positions: Iterable[Expr], loops: Sequence[Var], extents: Sequence[Expr]) -> Var | None:
    """The loop that is to be cut into tiles together with the innermost one; None where no operand is read across."""
    if len(loops) < 2 or is_short(extents[-1]):
        return None
    long = [var for var, extent in zip(loops[:-1], extents, strict=False) if not is_short(extent)]
    across: Counter[Var] = Counter()
    for position in positions:
        if stride(position, loops[-1], {}) is None:
            across.update(var for var in long if stride(position, var, {}) == 1)
    return across.most_common(1)[0][0] if across else None


def is_short(size: Expr) -> bool:
    """Whether a loop is known to have no more iterations than a tile."""
    iterations = int_value(size)
    return iterations is not None and iterations <= TILE


def stride(position: Expr, var: Var | Opaque, values: Mapping[Var, Expr]) -> int | None:
    """By how much a position grows from iteration to iteration of the loop of `var`: 0, 1 or (None) another number."""
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
