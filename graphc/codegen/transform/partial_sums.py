"""Sums of float32 down the columns of rows: a few rows are added in float32, and their sums in float64.

In: the statements of a kernel; the float64 buffers that loops over rows add a row to in every turn. Out: the
statements with such loops cut into blocks of ROWS rows, and for each of these buffers one of float32 that holds the
sums of a block. A loop that adds in float64 goes over half as many elements at a time as one in float32; adding so few
rows one after the other loses less than NumPy, which adds all rows so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphc.codegen.schedule.accumulators import Target
from graphc.codegen.transform.privatize import added_into
from graphc.ir import sizes
from graphc.loops import operators
from graphc.loops.ir import (
    INDEX,
    ONE,
    ROWS,
    Apply,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
    add,
    apply,
    blocks_of,
    int_value,
    integer,
    multiply,
    turns_in_block,
)
from graphc.loops.operators import ACCUMULATE, CASTS
from graphc.loops.visit import statements
from graphc.startup.record import fresh, record, replace

WIDEN = CASTS["float64"]


@record()
class Narrowed:
    """`targets`: the buffers that may be copied, those that loops now add blocks of rows to with the number of blocks;
    `narrow`: the new buffers of float32, each with the one whose elements it holds for a block."""

    body: tuple[Stmt, ...]
    targets: Mapping[str, Target]
    narrow: Mapping[str, str] = fresh(factory=dict)


def narrow_sums(body: Sequence[Stmt], targets: Mapping[str, Target], fresh: Callable[[str], str]) -> Narrowed:
    """A kernel's statements with sums of rows narrowed, in the buffers of which that is true of all loops: `Target`
    says how many turns they have. `fresh` gives names."""
    result: list[Stmt] = []
    changed, names = dict(targets), dict[str, str]()
    narrow = [narrow_targets(stmt, targets) if isinstance(stmt, Loop) else [] for stmt in body]
    loops = [(stmt, found) for stmt, found in zip(body, narrow, strict=True) if isinstance(stmt, Loop)]
    wide = {buffer for loop, found in loops for buffer in added_into(loop, targets) if buffer not in found}
    for stmt, candidates in zip(body, narrow, strict=True):
        found = [buffer for buffer in candidates if buffer not in wide]
        if not isinstance(stmt, Loop) or not found:
            result.append(stmt)
            continue
        held = {buffer: fresh("few_rows") for buffer in found}
        result.append(by_blocks(stmt, held, {buffer: targets[buffer].length for buffer in found}, fresh))
        for buffer, name in held.items():
            blocks = sizes.floor_divide(sizes.add(targets[buffer].turns, ROWS - 1), ROWS)
            changed[buffer] = replace(targets[buffer], turns=blocks, least=1, pays=ONE)
            names[name] = buffer
    return Narrowed(tuple(result), changed, names)


def narrow_targets(loop: Loop, targets: Mapping[str, Target]) -> list[str]:
    """The buffers that a loop over rows only adds float32 numbers to, in loops inside it; none of few rows."""
    count = int_value(loop.size)
    if count is not None and count <= ROWS:
        return []
    if not any(isinstance(stmt, Loop) and stores_to(stmt, targets) for stmt in loop.body):
        return []
    added = added_into(loop, targets)
    wide = {
        stmt.buffer
        for stmt in statements(loop.body)
        if isinstance(stmt, Store) and stmt.buffer in added and narrow_term(stmt) is None
    }
    return [buffer for buffer in added if buffer not in wide]


def stores_to(loop: Loop, targets: Mapping[str, Target]) -> bool:
    return any(isinstance(stmt, Store) and stmt.buffer in targets for stmt in statements(loop.body))


def narrow_term(stmt: Store) -> Expr | None:
    """The float32 number that a store adds to an element of float64; None of any other store."""
    match stmt.value:
        case Apply(operators.ACCUMULATE, (Load(), Apply(widen, (term,)))) if widen is WIDEN:
            return term if term.dtype == "float32" else None
    return None


def by_blocks(loop: Loop, held: Mapping[str, str], lengths: Mapping[str, Expr], fresh: Callable[[str], str]) -> Loop:
    """A loop over rows by blocks of rows: begin the sums of a block, add its rows, add the sums to the buffers."""
    block, turn, place = (Var(fresh(name), INDEX) for name in ("rows", f"{loop.var.name}_in", "c"))
    zero = Const("0.0", "float32")
    starts: dict[Expr, list[Stmt]] = {}
    ends: dict[Expr, list[Stmt]] = {}
    for buffer, name in held.items():
        sums = apply(WIDEN, Load(name, place, "float32"))
        total = apply(ACCUMULATE, Load(buffer, place, "float64"), sums)
        starts.setdefault(lengths[buffer], []).append(Store(name, place, zero))
        ends.setdefault(lengths[buffer], []).append(Store(buffer, place, total))
    first, last = ([Loop(place, length, tuple(body)) for length, body in part.items()] for part in (starts, ends))
    row = Let(loop.var, add(multiply(block, integer(ROWS)), turn))
    rows = Loop(turn, turns_in_block(loop.size, block, ROWS), (row, *narrowed(loop.body, held)))
    count = int_value(loop.size)
    blocks = blocks_of(loop.size, ROWS) if count is None else integer(-(-count // ROWS))
    return Loop(block, blocks, (*first, rows, *last))


def narrowed(body: Sequence[Stmt], held: Mapping[str, str]) -> tuple[Stmt, ...]:
    """Statements that add to the narrow buffers."""
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop):
            stmt = replace(stmt, body=narrowed(stmt.body, held))
        elif isinstance(stmt, Store) and stmt.buffer in held and (term := narrow_term(stmt)) is not None:
            name = held[stmt.buffer]
            total = apply(ACCUMULATE, Load(name, stmt.index, "float32"), term)
            stmt = Store(name, stmt.index, total)
        result.append(stmt)
    return tuple(result)
