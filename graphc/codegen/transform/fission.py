"""Functions of elements in a loop of their own, before the recurrence that takes their values (loop fission).

In: the statements of a function, as outlined. Out: a loop whose iterations wait for each other, and which computes an
elementary function of what does not wait, becomes two. The first fills the array that the second writes:

    for i in range(n):                        for i in independent(n):
        total = carry + exp(x[i])                 out[i] = exp(x[i])
        out[i] = total                        for i in range(n):
        carry = total                             total = carry + out[i]
                                                  out[i] = total
                                                  carry = total

The first loop runs over vectors. It needs no memory: each element of `out` is written once, in the order of the
iterations, and nothing else in the loop reads it. Values have the bits that they have where the function stands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphc.codegen.transform.abreast import DEAR, NOT_OF_VECTORS
from graphc.loopir import ir, visit
from graphc.startup.record import replace

FEW = 8
"""Iterations up to which a loop stays one, where their number is known."""
LARGEST = 64
"""Expressions in a value that is written out. Values of values grow exponentially."""


def functions_before_recurrences(body: Sequence[ir.Stmt], fresh: Callable[[str], str]) -> tuple[ir.Stmt, ...]:
    """Statements in which recurrences find the functions of elements computed; `fresh` gives names."""
    result: list[ir.Stmt] = []
    for stmt in body:
        parts = parted(stmt, fresh) if isinstance(stmt, ir.Loop) else None
        if parts is not None:
            result += parts
        elif isinstance(stmt, ir.Loop) and stmt.abreast:
            result.append(stmt)
        else:
            result.append(visit.map_bodies(stmt, lambda inner: functions_before_recurrences(inner, fresh)))
    return tuple(result)


def parted(loop: ir.Loop, fresh: Callable[[str], str]) -> tuple[ir.Loop, ir.Loop] | None:
    """The two loops; None where a loop stays one."""
    few = ir.int_value(loop.size)
    if loop.is_independent or loop.abreast or loop.safepoint is not None or (few is not None and few <= FEW):
        return None
    if not all(isinstance(stmt, ir.Let | ir.Set | ir.Store | ir.Note) for stmt in loop.body):
        return None
    waiting = {stmt.var for stmt in loop.body if isinstance(stmt, ir.Set)}
    stored, values = visit.stored_buffers(loop.body), dict[ir.Var, ir.Expr]()
    weights: dict[ir.Expr, int] = {}  # of names: the expressions in their written out values
    for stmt in loop.body:
        if isinstance(stmt, ir.Let):
            weight = sum(weights.get(part, 1) for part in ir.subexpressions(stmt.value))
            depends = not waiting.isdisjoint(visit.read_vars([stmt])) or not stored.isdisjoint(
                visit.read_buffers([stmt])
            )
            if depends or weight > LARGEST:
                waiting.add(stmt.var)
            else:
                values[stmt.var], weights[stmt.var] = visit.replace_vars(stmt.value, values), weight
    stores = [stmt for stmt in loop.body if isinstance(stmt, ir.Store)]
    for store in stores:
        index = visit.replace_vars(store.index, values)
        alone = sum(each.buffer == store.buffer for each in stores) == 1 and store.buffer not in visit.read_buffers(
            loop.body
        )
        if not alone or not waiting.isdisjoint(ir.subexpressions(index)) or visit.stride(index, loop.var, {}) != 1:
            continue
        value = dear(loop, store.buffer.dtype, values, waiting | {loop.var}, stored)
        if value is not None:
            return taken_apart(loop, ir.Store(store.buffer, index, value), values, fresh)
    return None


def dear(
    loop: ir.Loop,
    dtype: str,
    values: Mapping[ir.Var, ir.Expr],
    waiting: set[ir.Var],
    stored: set[ir.Buffer],
) -> ir.Expr | None:
    """The largest expression of a dtype that waits for nothing, has elements in order and computes a function of them.
    waiting: names that change from iteration to iteration."""
    carried = waiting - {loop.var}

    def found(expr: ir.Expr) -> ir.Expr | None:
        whole = visit.replace_vars(expr, values)
        parts = [*ir.subexpressions(whole)]
        calls = [part.op for part in parts if isinstance(part, ir.Apply) and part.op.cost >= DEAR]
        loads = [part for part in parts if isinstance(part, ir.Load)]
        is_alone = carried.isdisjoint(parts) and stored.isdisjoint(load.buffer for load in loads)
        is_in_order = loads and all(visit.stride(load.index, loop.var, {}) in (0, 1) for load in loads)
        if whole.dtype == dtype and is_alone and is_in_order and calls and NOT_OF_VECTORS.isdisjoint(calls):
            return whole
        return next((one for child in ir.children(expr) if (one := found(child)) is not None), None)

    for stmt in loop.body:
        if isinstance(stmt, ir.Let) and stmt.var in values:
            continue
        for expr in visit.expressions(stmt):
            if (one := found(expr)) is not None:
                return one
    return None


def taken_apart(
    loop: ir.Loop, store: ir.Store, values: Mapping[ir.Var, ir.Expr], fresh: Callable[[str], str]
) -> tuple[ir.Loop, ir.Loop]:
    """A loop that stores the value of an element, and the loop that reads it there."""
    own = ir.Var(fresh(loop.var.name), ir.INDEX)
    first = ir.Store(store.buffer, *(visit.replace_vars(each, {loop.var: own}) for each in (store.index, store.value)))
    name = ir.Var(fresh("value"), store.value.dtype)

    def with_name(expr: ir.Expr) -> ir.Expr:
        if visit.replace_vars(expr, values) == store.value:
            return name
        if isinstance(expr, ir.Apply):
            return replace(expr, args=tuple(map(with_name, expr.args)))
        return expr

    rest = [
        stmt if isinstance(stmt, ir.Let) and stmt.var in values else visit.map_own_expressions(stmt, with_name)
        for stmt in loop.body
    ]
    second = [ir.Let(name, ir.Load(store.buffer, store.index)), *rest]
    used = {part for expr in visit.all_expressions(second) for part in ir.subexpressions(expr)}
    while len(kept := [stmt for stmt in second if not isinstance(stmt, ir.Let) or stmt.var in used]) < len(second):
        second = kept
        used = {part for expr in visit.all_expressions(second) for part in ir.subexpressions(expr)}
    return replace(loop, var=own, body=(first,), conflicts=(), disjoint=()), replace(loop, body=tuple(second))
