"""Loop fusion with alignment: loops that write parts of one array, shifted against each other, become one loop.

In: the statements of a function. Out: the same computation, where loops of the same length that follow one another
write to one array at a constant distance from their index. The gradient of slices of an array has such loops:

    for i in range(n):                    for k in range(2, n):
        t[i] = t[i] + a[i]                    t[k] = t[k] + a[k] + b[k - 2]
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

from collections.abc import Callable, Iterator, Mapping, Sequence

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
    notes: list[ir.Stmt] = []

    def close() -> None:
        result.extend(_fused(group, fresh) if len({each.shift for each in group}) > 1 else (e.loop for e in group))
        result.extend(notes)
        group.clear()
        notes.clear()

    for stmt in body:
        if group and isinstance(stmt, ir.Note):
            notes.append(stmt)
            continue
        one = _shifted(stmt)
        if one is None or not _may_join(group, one):
            close()
        if one is None:
            result.append(visit.map_bodies(stmt, lambda inner: fuse_aligned(inner, fresh)))
        else:
            notes.clear()
            group.append(one)
    close()
    return tuple(result)


def _may_join(group: Sequence[Shifted], one: Shifted) -> bool:
    if not group:
        return True
    shifts = [each.shift for each in (*group, one)]
    return (
        one.buffer == group[0].buffer
        and one.place.begin == group[0].place.begin
        and one.loop.size == group[0].loop.size
        and max(shifts) - min(shifts) <= WIDEST
        and sum(ops_of(each.loop.body) for each in (*group, one)) <= MOST_OPS
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
    for expr in visit.all_expressions(stmt.body):
        for part in ir.subexpressions(expr):
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
    yield ir.Loop(whole, ir.add(size, ir.integer(first)), tuple(_chain(group, whole, fresh)), ir.integer(last))
    border, place = ir.Var(fresh("border"), ir.INDEX), ir.Var(fresh("place"), ir.INDEX)
    beyond = ir.apply(operators.MAXIMUM, ir.subtract(size, width), ir.ZERO)
    number = ir.apply(operators.SELECT, ir.apply(operators.LT, border, width), border, ir.add(border, beyond))
    parts: list[ir.Stmt] = [ir.Let(place, ir.add(number, ir.integer(first)))]
    for each in group:
        inside: list[ir.Expr] = []
        if each.shift > first:
            inside.append(ir.apply(operators.GE, place, ir.integer(each.shift)))
        if each.shift < last:
            inside.append(ir.apply(operators.LT, place, ir.add(size, ir.integer(each.shift))))
        condition = inside[0] if len(inside) == 1 else ir.apply(operators.AND, *inside)
        parts.append(ir.If(condition, tuple(_chain([each], place, fresh)), ()))
    count = ir.apply(operators.MINIMUM, ir.integer(2 * (last - first)), ir.add(size, width))
    yield ir.Loop(border, count, tuple(parts))


def _chain(group: Sequence[Shifted], place: ir.Var, fresh: Callable[[str], str]) -> Iterator[ir.Stmt]:
    """What the loops of a group do to the element at `place`: each goes on from the value of the one before."""
    value: ir.Expr | None = None
    for each in group:
        values = _values(each.loop)
        names: dict[ir.Var, ir.Expr] = {each.loop.var: ir.add(place, ir.integer(-each.shift))}
        for stmt in each.loop.body:
            if isinstance(stmt, ir.Let | ir.Store):
                expr = _moved(stmt.value, each, place, values, names, value)
            if isinstance(stmt, ir.Let):
                if stmt.var.dtype == ir.INDEX and not any(isinstance(p, ir.Load) for p in ir.subexpressions(expr)):
                    names[stmt.var] = expr
                    continue
                names[stmt.var] = name = ir.Var(fresh(stmt.var.name), stmt.var.dtype)
                yield ir.Let(name, expr)
            elif isinstance(stmt, ir.Store):
                if each is group[-1]:
                    yield ir.Store(stmt.buffer, replace(each.place, shift=0).at(place), expr)
                else:
                    value = ir.Var(fresh("value"), each.buffer.dtype)
                    yield ir.Let(value, as_stored(expr))


def _moved(
    expr: ir.Expr,
    each: Shifted,
    place: ir.Var,
    values: Mapping[ir.Var, ir.Expr],
    names: Mapping[ir.Var, ir.Expr],
    value: ir.Expr | None,
) -> ir.Expr:
    """An expression of a loop's iteration in terms of the place that it writes. value: what stands there already."""

    def part(one: ir.Expr) -> ir.Expr | None:
        if isinstance(one, ir.Var):
            return names.get(one)
        if not isinstance(one, ir.Load):
            return None
        if one.buffer == each.buffer and value is not None:
            return value
        read = _split(resolved(one.index, values), each.loop.var)
        return None if read is None else ir.Load(one.buffer, replace(read, shift=read.shift - each.shift).at(place))

    return ir.rebuild(expr, part)
