"""Loop fusion with alignment: loops that write parts of one array, shifted against each other, become one loop.

In: the statements of a function. Out: the same computation, where loops of the same length that follow one another
write to one array at a constant distance from their index. The gradient of slices of an array has such loops:

    for i in range(n):                    for k in range(maximum(n - 2, 0)):
        t[i] = t[i] + a[i]                    t[k + 2] = t[k + 2] + a[k + 2] + b[k]
    for i in range(n):                    for border in range(minimum(4, n + 2)):
        t[i + 2] = t[i + 2] + b[i]            let k = select(border < 2, border, border + maximum(n - 2, 0))
                                              if k < n:
                                                  t[k] = t[k] + a[k]
                                              if k >= 2:
                                                  t[k] = t[k] + b[k - 2]

The first loop goes over the elements that all of the loops write, and the second over the others. Each element gets
the same values in the same order as before. A loop may join where its iterations do not depend on each other: it
stores to one place, reads the array that is written only there, and computes nothing else that lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from graphc.codegen.transform.forwarding import as_stored
from graphc.codegen.transform.merge_rows import MOST_OPS, ops_of, resolved
from graphc.loopir import ir, operators, visit
from graphc.startup.record import record, replace

WIDEST = 16
"""The largest distance between two loops: the elements at each end that not all of them write."""

LEAST = 16
"""Iterations of a number that is known up to which loops stay as they are."""


@record()
class Place:
    """A position that moves with the index of a loop: the sum of that index, of `shift`, and of `begin`, where a row
    begins."""

    begin: tuple[ir.Expr, ...]
    shift: int

    def at(self, index: ir.Expr) -> ir.Expr:
        place = ir.add(index, ir.integer(self.shift))
        for term in self.begin:
            place = ir.add(term, place)
        return place


@record()
class Shifted:
    """A loop that stores one element of a buffer in each iteration, at `place`."""

    loop: ir.Loop
    buffer: ir.Buffer
    place: Place

    @property
    def shift(self) -> int:
        return self.place.shift


def fuse_aligned(body: Sequence[ir.Stmt], fresh: Callable[[str], str]) -> tuple[ir.Stmt, ...]:
    """Statements in which loops that write shifted parts of an array are fused; `fresh` gives names."""
    result: list[ir.Stmt] = []
    group: list[Shifted] = []
    waiting: list[ir.Stmt] = []  # the loops of the group, and the remarks between and behind them

    def close() -> None:
        if len({each.shift for each in group}) > 1:
            end = 1 + max(place for place, stmt in enumerate(waiting) if isinstance(stmt, ir.Loop))
            waiting[:end] = _fused(group, fresh)
        result.extend(waiting)
        group.clear()
        waiting.clear()

    for stmt in body:
        if group and isinstance(stmt, ir.Note):
            waiting.append(stmt)
            continue
        candidate = _shifted(stmt)
        if candidate is None or not _may_join(group, candidate):
            close()
        if candidate is None:
            result.append(visit.map_bodies(stmt, lambda inner: fuse_aligned(inner, fresh)))
        else:
            group.append(candidate)
            waiting.append(stmt)
    close()
    return tuple(result)


def _may_join(group: Sequence[Shifted], candidate: Shifted) -> bool:
    if not group:
        return True
    shifts = [each.shift for each in (*group, candidate)]
    return (
        candidate.buffer == group[0].buffer
        and candidate.place.begin == group[0].place.begin
        and candidate.loop.size == group[0].loop.size
        and max(shifts) - min(shifts) <= WIDEST
        and sum(ops_of(each.loop.body) for each in (*group, candidate)) <= MOST_OPS
    )


def _shifted(stmt: ir.Stmt) -> Shifted | None:
    """A loop that may be fused with others; None of other statements."""
    if not isinstance(stmt, ir.Loop) or stmt.begin != ir.ZERO or stmt.safepoint is not None or stmt.abreast:
        return None
    count = ir.int_value(stmt.size)
    if count is not None and count <= LEAST:
        return None
    stores = [each for each in stmt.body if isinstance(each, ir.Store)]
    if len(stores) != 1 or not all(isinstance(each, ir.Let | ir.Store | ir.Note) for each in stmt.body):
        return None
    values = _values(stmt)
    (store,) = stores
    place = _split(resolved(store.index, values), stmt.var)
    if place is None:
        return None
    for part in visit.all_expressions(stmt.body):
        if not isinstance(part, ir.Load | ir.Pointer) or part.buffer != store.buffer:
            continue
        if isinstance(part, ir.Pointer) or _split(resolved(part.index, values), stmt.var) != place:
            return None
    return Shifted(stmt, store.buffer, place)


def _values(loop: ir.Loop) -> dict[ir.Var, ir.Expr]:
    """The indices that have names in a loop."""
    return {each.var: each.value for each in loop.body if isinstance(each, ir.Let) and each.var.dtype == ir.INDEX}


def _split(place: ir.Expr, var: ir.Var) -> Place | None:
    """A place as the sum of a loop's variable and of what stays the same in the loop; None of other places."""
    match place:
        case ir.Var() if place == var:
            return Place((), 0)
        case ir.Apply(op, (left, right)) if op is operators.ADD and visit.stride(left, var, {}) == 0:
            moved, other = _split(right, var), left
        case ir.Apply(op, (left, right)) if op in (operators.ADD, operators.SUB):
            moved, other = _split(left, var), right if op is operators.ADD else _negative(right)
        case _:
            return None
    if moved is None or visit.stride(other, var, {}) != 0:
        return None
    if (number := ir.int_value(other)) is not None:
        return replace(moved, shift=moved.shift + number)
    is_fixed = not any(isinstance(part, ir.Load) for part in ir.subexpressions(other))
    return replace(moved, begin=(*moved.begin, other)) if is_fixed else None


def _negative(expr: ir.Expr) -> ir.Expr:
    number = ir.int_value(expr)
    return ir.integer(-number) if number is not None else ir.apply(operators.NEG, expr)


def _fused(group: Sequence[Shifted], fresh: Callable[[str], str]) -> Iterator[ir.Stmt]:
    """The loop over the elements that all loops of a group write, and the one over the others."""
    shifts = [each.shift for each in group]
    first, last, size = min(shifts), max(shifts), group[0].loop.size
    width = ir.integer(last - first)
    whole = ir.Var(fresh(group[0].loop.var.name), ir.INDEX)
    yield from (note for each in group for note in each.loop.body if isinstance(note, ir.Note))
    between = ir.apply(operators.MAXIMUM, ir.subtract(size, width), ir.ZERO)
    yield ir.Loop(whole, between, tuple(_chain(group, whole, last, fresh)))
    border, place = ir.Var(fresh("border"), ir.INDEX), ir.Var(fresh("place"), ir.INDEX)
    number = ir.apply(operators.SELECT, ir.apply(operators.LT, border, width), border, ir.add(border, between))
    parts: list[ir.Stmt] = [ir.Let(place, ir.add(number, ir.integer(first)))]
    for each in group:
        inside: list[ir.Expr] = []
        if each.shift > first:
            inside.append(ir.apply(operators.GE, place, ir.integer(each.shift)))
        if each.shift < last:
            inside.append(ir.apply(operators.LT, place, ir.add(size, ir.integer(each.shift))))
        condition = inside[0] if len(inside) == 1 else ir.apply(operators.AND, *inside)
        parts.append(ir.If(condition, tuple(_chain([each], place, 0, fresh)), ()))
    count = ir.apply(operators.MINIMUM, ir.integer(2 * (last - first)), ir.add(size, width))
    yield ir.Loop(border, count, tuple(parts))


def _chain(group: Sequence[Shifted], index: ir.Var, ahead: int, fresh: Callable[[str], str]) -> Iterator[ir.Stmt]:
    """Do to element `index` + `ahead` what the loops of a group do, each from the value of the one before."""
    value: ir.Expr | None = None
    for each in group:
        if value is not None:
            value = as_stored(value)
            if _reads(each) > 1:
                name = ir.Var(fresh("value"), each.buffer.dtype)
                yield ir.Let(name, value)
                value = name
        named, value = _iteration(each, index, ahead, value, fresh)
        yield from named
    if value is not None:
        yield ir.Store(group[-1].buffer, replace(group[-1].place, shift=ahead).at(index), value)


def _iteration(
    each: Shifted, index: ir.Var, ahead: int, before: ir.Expr | None, fresh: Callable[[str], str]
) -> tuple[list[ir.Stmt], ir.Expr | None]:
    """The named values of an iteration, and the value that it stores. before: the element's value until then, if it is
    not in memory."""
    values = _values(each.loop)
    names: dict[ir.Var, ir.Expr] = {each.loop.var: ir.add(index, ir.integer(ahead - each.shift))}

    def moved(expr: ir.Expr) -> ir.Expr | None:
        if isinstance(expr, ir.Var):
            return names.get(expr)
        if not isinstance(expr, ir.Load):
            return None
        if expr.buffer == each.buffer and before is not None:
            return before
        place = _split(resolved(expr.index, values), each.loop.var)
        if place is None:
            return None
        return ir.Load(expr.buffer, replace(place, shift=place.shift - each.shift + ahead).at(index))

    named: list[ir.Stmt] = []
    value: ir.Expr | None = None
    for stmt in each.loop.body:
        if isinstance(stmt, ir.Store):
            value = ir.rebuild(stmt.value, moved)
        elif isinstance(stmt, ir.Let):
            expr = ir.rebuild(stmt.value, moved)
            if stmt.var in values and not any(isinstance(part, ir.Load) for part in ir.subexpressions(expr)):
                names[stmt.var] = expr
                continue
            names[stmt.var] = name = ir.Var(fresh(stmt.var.name), stmt.var.dtype)
            named.append(ir.Let(name, expr))
    return named, value


def _reads(each: Shifted) -> int:
    """Count the reads of the element that an iteration writes."""
    parts = visit.all_expressions(each.loop.body)
    return sum(isinstance(part, ir.Load) and part.buffer == each.buffer for part in parts)
