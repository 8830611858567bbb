"""Recurrences wait less: for one minimum in each iteration, and for no function of elements (loop fission, below).

Recurrences of minima and maxima take the operand that comes from the iteration before last.

In: the statements of a kernel. Out: the same computation, in which an iteration waits for the one before it in one
minimum:

    for j in range(m):                                for j in range(m):
        t[j + 1] = minimum(                               t[j + 1] = minimum(
            minimum(u[j], t[j]) + 1.0, v[j])                  minimum(u[j] + 1.0, v[j]), t[j] + 1.0)

The rest is computed meanwhile. No bit changes. Minima may be taken in any order: -0.0 is below 0.0, and a NaN among the
operands is the result. A finite number other than 0.0 may be added to operands instead of their minimum: rounding keeps
the order of numbers, and no such sum is -0.0. That is done for floats alone, as integers wrap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

from graphc.arrays.dtypes import is_float
from graphc.codegen.transform.abreast import DEAR, NOT_OF_VECTORS
from graphc.loopir import ir, operators, visit
from graphc.startup.record import replace

EXTREMES = (operators.MINIMUM, operators.MAXIMUM)

Position: TypeAlias = "Counter[tuple[ir.Expr, ...]]"
"""A sum of products, each with the number of times that it is added."""


def shorten_recurrences(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Rewrite the minima and maxima in loops that pass values from one iteration to the next."""
    return tuple([_shortened(stmt) for stmt in body])


def _shortened(stmt: ir.Stmt) -> ir.Stmt:
    if isinstance(stmt, ir.Loop) and any(map(_has_tree, stmt.body)):
        stmt = replace(stmt, body=_Recurrence(stmt).body())
    return visit.map_bodies(stmt, shorten_recurrences)


def _has_tree(stmt: ir.Stmt) -> bool:
    """True where a statement stores or names a value that has several minima, or several maxima."""
    if not isinstance(stmt, ir.Let | ir.Set | ir.Store):
        return False
    extremes = [part.op for part in ir.subexpressions(stmt.value) if isinstance(part, ir.Apply) and part.op in EXTREMES]
    return len(extremes) > len({*extremes})


class _Recurrence:
    """A loop, and what its iterations get from the one before: the names that hold such values, and the positions that
    it stored in each buffer."""

    __slots__ = ("loop", "names", "stored", "values")

    def __init__(self, loop: ir.Loop) -> None:
        self.loop, self.names = loop, carried(loop)
        indices = [stmt for stmt in loop.body if isinstance(stmt, ir.Let) and stmt.var.dtype == ir.INDEX]
        self.values = {stmt.var: stmt.value for stmt in indices}
        before = ir.subtract(loop.var, ir.ONE)
        self.stored: dict[ir.Buffer, list[Position]] = {}
        for stmt in loop.body:
            if isinstance(stmt, ir.Store):
                position = place(stmt.index, {**self.values, loop.var: before}, loop.var)
                self.stored.setdefault(stmt.buffer, []).append(position)

    def body(self) -> tuple[ir.Stmt, ...]:
        result: list[ir.Stmt] = []
        for stmt in self.loop.body:
            match stmt:
                case ir.Let(var, value):
                    if self.is_late(value):
                        self.names.add(var)
                    stmt = ir.Let(var, self.shortened(value))
                case ir.Set(var, value):
                    stmt = ir.Set(var, self.shortened(value))
                case ir.Store(buffer, index, value):
                    stmt = ir.Store(buffer, index, self.shortened(value))
            result.append(stmt)
        return tuple(result)

    def is_late(self, expr: ir.Expr) -> bool:
        """True where a value needs one of the iteration before."""
        return any(map(self._comes_late, ir.subexpressions(expr)))

    def _comes_late(self, part: ir.Expr) -> bool:
        if isinstance(part, ir.Load):
            return part.buffer in self.stored and place(part.index, self.values) in self.stored[part.buffer]
        return part in self.names

    def shortened(self, value: ir.Expr) -> ir.Expr:
        """A value with the late operand of each tree of minima last."""
        return ir.rebuild(value, self._taken_last)

    def _taken_last(self, tree: ir.Expr) -> ir.Expr | None:
        if not isinstance(tree, ir.Apply) or tree.op not in EXTREMES:
            return None
        operands = [*self.operands(tree, tree.op)]
        late = [each for each in operands if self.is_late(each)]
        if len(late) != 1 or late[0] in tree.args:
            return None
        operands.remove(late[0])
        return ir.apply(tree.op, reduce(lambda left, right: ir.apply(tree.op, left, right), operands), late[0])

    def operands(self, expr: ir.Expr, op: operators.Operator) -> Iterator[ir.Expr]:
        """The operands of a tree; one that does not come late may be a tree itself."""
        if not isinstance(expr, ir.Apply) or not self.is_late(expr):
            yield expr
        elif expr.op is op:
            for each in expr.args:
                yield from self.operands(each, op)
        elif (taken := _under_number(expr, op)) is not None:
            for each in self.operands(expr.args[taken], op):
                yield replace(expr, args=(*expr.args[:taken], each, *expr.args[taken + 1 :]))
        else:
            yield expr


def carried(loop: ir.Loop) -> set[ir.Var]:
    """The scalars that an iteration reads before it sets them."""
    changing = {stmt.var for stmt in visit.statements(loop.body) if isinstance(stmt, ir.Set)}
    variables: set[ir.Var] = set()
    for stmt in loop.body if changing else ():
        read = visit.all_expressions([stmt])
        variables.update(part for part in read if isinstance(part, ir.Var) and part in changing)
        if isinstance(stmt, ir.Set):
            changing.discard(stmt.var)
    return variables


def _under_number(expr: ir.Apply, op: operators.Operator) -> int | None:
    """The place of a minimum among the operands of an expression that adds a number to it; None of another one."""
    if not is_float(expr.dtype) or expr.op not in (operators.ADD, operators.SUB):
        return None
    for taken in (0, 1) if expr.op is operators.ADD else (0,):
        number, tree = expr.args[1 - taken], expr.args[taken]
        if isinstance(number, ir.Const) and isinstance(tree, ir.Apply) and tree.op is op:
            value = float(number.text)
            return taken if math.isfinite(value) and value != 0.0 else None
    return None


def place(index: ir.Expr, values: Mapping[ir.Var, ir.Expr], once: ir.Var | None = None) -> Position:
    """A position in which names stand for their values, multiplied out; the value of `once` may hold it itself."""
    match index:
        case ir.Var() if index in values:
            inner = {var: value for var, value in values.items() if var != once} if index == once else values
            return place(values[index], inner, once)
        case ir.Apply(op, (left, right)) if op in (operators.ADD, operators.SUB, operators.MUL):
            first, second = place(left, values, once), place(right, values, once)
            total: Position = Counter()
            if op is operators.MUL:
                for (one, count), (other, times) in ((a, b) for a in first.items() for b in second.items()):
                    total[tuple(sorted((*one, *other), key=repr))] += count * times
            else:
                total.update(first)
                total.update(second) if op is operators.ADD else total.subtract(second)
            return Counter({term: count for term, count in total.items() if count})
    value = ir.int_value(index)
    return Counter({(index,): 1}) if value is None else Counter({(): value} if value else {})


# --- functions of elements before a recurrence (loop fission) ---------------------------------------------------------
# Functions of elements in a loop of their own, before the recurrence that takes their values (loop fission).
#
# In: the statements of a function, as outlined. Out: a loop whose iterations wait for each other, and which computes an
# elementary function of what does not wait, becomes two. The first fills the array that the second writes:
#
#     for i in range(n):                        for i in independent(n):
#         total = carry + exp(x[i])                 out[i] = exp(x[i])
#         out[i] = total                        for i in range(n):
#         carry = total                             total = carry + out[i]
#                                                   out[i] = total
#                                                   carry = total
#
# The first loop runs over vectors. It needs no memory: each element of `out` is written once, in the order of the
# iterations, and nothing else in the loop reads it. Values have the bits that they have where the function stands
# alone.

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
    i = ir.Var(fresh(loop.var.name), ir.INDEX)
    first = ir.Store(store.buffer, *(visit.replace_vars(each, {loop.var: i}) for each in (store.index, store.value)))
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
    return replace(loop, var=i, body=(first,), conflicts=(), disjoint=()), replace(loop, body=tuple(second))
