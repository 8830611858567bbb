"""Factorisations of small matrices, written out in the place of a call.

In: the node of a routine (`ops/linalg/routine.py`), and the arguments of its function, in which the sizes of a matrix
are constants up to LARGEST. Out: statements over scalars, in a loop over the matrices where there are several. A call
costs more than what it does for two rows, the compiler cannot keep in registers what goes through memory, and the loop
over matrices is vectorised. As an example, the solution of a lower system of two rows with one right side:

    check a[0] != 0, a[3] != 0
    x = b[0] / a[0]
    x2 = multiply_add(-a[2], x, b[1]) / a[3]

Pivots are chosen by comparison and `select`, of equal ones the first, as `codegen/lapack/elimination.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np

from graphc.codegen.lower.scopes import Scope, Scopes
from graphc.ir.node import Node
from graphc.loopir.ir import (
    ONE,
    ZERO,
    Check,
    Expr,
    Load,
    Pointer,
    Set,
    Store,
    Var,
    add,
    apply,
    int_value,
    integer,
    literal_const,
    multiply,
)
from graphc.loopir.operators import (
    ACCUMULATE_MAXIMUM,
    AND,
    CALLS,
    DIV,
    EQ,
    GT,
    INVERT,
    LE,
    MULTIPLY_ADD,
    NE,
    NEG,
    OR,
    SELECT,
)
from graphc.ops.linalg.routine import ON_ERROR, ROUTINES
from graphc.startup.record import record, replace

LARGEST = 4
"""Rows. A matrix of more is in memory anyway: there are 32 registers at most."""
COLUMNS = 16
"""Right sides at most: each is as many statements again."""

Entries: TypeAlias = "dict[tuple[int, int], Expr]"
"""Values by row and column."""


@record()
class Writer:
    """Statements at the end of a scope. matrix: the number of the matrix at hand. code: that of the check that fails
    with the routine; 0 where the results are NaN then. failed: in a loop, what becomes 1 where it fails."""

    scopes: Scopes
    scope: Scope
    dtype: str
    code: int
    matrix: Expr = ZERO
    failed: Var | None = None

    def name(self, expr: Expr, hint: str) -> Expr:
        return self.scopes.bind_in(self.scope, expr, hint)

    def number(self, value: float) -> Expr:
        return literal_const(np.array(value, self.dtype)[()], self.dtype)

    def load(self, matrix: Sequence[Expr], places: Iterable[tuple[int, int]], hint: str) -> Entries:
        """Entries of an operand: a pointer, the stride of a batch, and those of rows and columns."""
        pointer, stride, row, column = matrix
        assert isinstance(pointer, Pointer)
        begin = add(pointer.index, multiply(self.matrix, stride))
        return {(i, j): self.name(Load(pointer.buffer, _moved(begin, (i, row), (j, column))), hint) for i, j in places}

    def store(self, result: Expr, values: Sequence[Expr]) -> None:
        """Store a result, in order. Everything has been loaded before: it may lie where an operand lies."""
        assert isinstance(result, Pointer)
        begin = add(result.index, multiply(self.matrix, integer(len(values))))
        for place, value in enumerate(values):
            self.scope.body.append(Store(result.buffer, add(begin, integer(place)), value))

    def less(self, value: Expr, left: Expr, right: Expr) -> Expr:
        """value - left * right."""
        return apply(MULTIPLY_ADD, apply(NEG, left), right, value)

    def required(self, conditions: Sequence[Expr], values: Sequence[Expr]) -> list[Expr]:
        """The values, where all conditions hold; otherwise the call fails, or all values are NaN."""
        whole = conditions[0]
        for condition in conditions[1:]:
            whole = apply(AND, whole, condition)
        if self.failed is not None:
            fails = apply(SELECT, whole, ZERO, ONE)
            self.scope.body.append(Set(self.failed, apply(ACCUMULATE_MAXIMUM, self.failed, fails)))
            return list(values)
        if self.code:
            self.scope.body.append(Check(whole, self.code))
            return list(values)
        holds = self.name(whole, "holds")
        return [apply(SELECT, holds, value, self.number(np.nan)) for value in values]


def _moved(begin: Expr, *steps: tuple[int, Expr]) -> Expr:
    for count, stride in steps:
        begin = add(begin, multiply(integer(count), stride))
    return begin


def _cholesky(writer: Writer, sizes: Sequence[int], flags: Sequence[int], args: Iterator[Expr]) -> None:
    (n,) = sizes
    a = writer.load([next(args) for _ in range(4)], [(i, j) for i in range(n) for j in range(i + 1)], "a")
    found: Entries = {}
    positive: list[Expr] = []
    for i in range(n):
        for j in range(i + 1):
            value = a[i, j]
            for p in range(j):
                value = writer.less(value, found[i, p], found[j, p])
            value = writer.name(value, "l")
            if i == j:
                positive.append(apply(INVERT, apply(LE, value, writer.number(0))))
                found[i, i] = writer.name(apply(CALLS["sqrt"], value), "l")
            else:
                found[i, j] = writer.name(apply(DIV, value, found[j, j]), "l")
    values = [found.get((i, j), writer.number(0)) for i in range(n) for j in range(n)]
    writer.store(next(args), writer.required(positive, values))


def _triangular_solve(writer: Writer, sizes: Sequence[int], flags: Sequence[int], args: Iterator[Expr]) -> None:
    (n, k), (lower, transposed, unit) = sizes, flags
    read = [(i, j) for i in range(n) for j in range(n) if (i > j) == bool(lower) or i == j]
    a = writer.load([next(args) for _ in range(4)], [(i, j) for i, j in read if i != j or not unit], "a")
    values = writer.load([next(args) for _ in range(4)], product(range(n), range(k)), "b")
    if transposed:
        a = {(j, i): value for (i, j), value in a.items()}
    forwards = bool(lower) != bool(transposed)
    order = range(n) if forwards else range(n - 1, -1, -1)
    for i in order:
        for column in range(k):
            value = values[i, column]
            for p in range(i) if forwards else range(n - 1, i, -1):
                value = writer.less(value, a[i, p], values[p, column])
            values[i, column] = writer.name(value if unit else apply(DIV, value, a[i, i]), "x")
    results = [values[i, column] for i in range(n) for column in range(k)]
    if not unit:
        results = writer.required([apply(NE, a[i, i], writer.number(0)) for i in range(n)], results)
    writer.store(next(args), results)


def _lu(writer: Writer, sizes: Sequence[int], flags: Sequence[int], args: Iterator[Expr]) -> None:
    (n,) = sizes
    a = writer.load([next(args) for _ in range(4)], product(range(n), range(n)), "a")
    order: list[Expr] = [integer(i) for i in range(n)]
    pivots: list[Expr] = []
    for k in range(n):
        best: Expr = integer(k)
        most: Expr = apply(CALLS["abs_"], a[k, k])
        for i in range(k + 1, n):
            size = writer.name(apply(CALLS["abs_"], a[i, k]), "size")
            # a NaN is no pivot where there is another
            larger = writer.name(apply(OR, apply(GT, size, most), _is_nan_beside(most, size)), "larger")
            best = writer.name(apply(SELECT, larger, integer(i), best), "pivot")
            most = writer.name(apply(SELECT, larger, size, most), "most")
        pivots.append(best)
        for i in range(k + 1, n):
            here = writer.name(apply(EQ, best, integer(i)), "here")
            for j in range(n):
                up, down = a[i, j], a[k, j]
                a[k, j] = writer.name(apply(SELECT, here, up, down), "a")
                a[i, j] = writer.name(apply(SELECT, here, down, up), "a")
            order[k], order[i] = (
                writer.name(apply(SELECT, here, order[i], order[k]), "row"),
                writer.name(apply(SELECT, here, order[k], order[i]), "row"),
            )
        zero = apply(EQ, a[k, k], writer.number(0))
        for i in range(k + 1, n):
            factor = writer.name(apply(DIV, a[i, k], a[k, k]), "factor")
            for j in range(k + 1, n):
                a[i, j] = writer.name(apply(SELECT, zero, a[i, j], writer.less(a[i, j], factor, a[k, j])), "a")
            a[i, k] = writer.name(apply(SELECT, zero, a[i, k], factor), "a")
    writer.store(next(args), [a[i, j] for i in range(n) for j in range(n)])
    writer.store(next(args), order)
    writer.store(next(args), pivots)


def _is_nan_beside(value: Expr, other: Expr) -> Expr:
    """True where a value is NaN and the other one is not."""
    return apply(AND, apply(NE, value, value), apply(EQ, other, other))


_Rule: TypeAlias = Callable[[Writer, Sequence[int], Sequence[int], Iterator[Expr]], None]
_RULES: Mapping[str, _Rule] = {"cholesky": _cholesky, "triangular_solve": _triangular_solve, "lu": _lu}


def inline_routine(scopes: Scopes, scope: Scope, node: Node, args: Sequence[Expr], code: int) -> bool:
    """Write a routine out at the end of a scope; False where its function has to be called. code: of the check that
    fails with it."""
    rule = _RULES.get(node.op.name)
    if rule is None:
        return False
    routine = ROUTINES[node.op.name]
    sizes = [int_value(arg) for arg in args[1 : 1 + len(routine.letters)]]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or not 0 < known[0] <= LARGEST or not 0 < max(known) <= COLUMNS:
        return False
    flags = [node.attrs[name] for name in routine.flags]
    first = 1 + len(sizes) + len(flags) + bool(routine.failures)
    code = 0 if node.attrs.get(ON_ERROR) == "nan" else code
    writer = Writer(scopes, scope, node.args[0].type.dtype, code)
    if int_value(args[0]) == 1:
        rule(writer, known, flags, iter(args[first:]))
        return True
    failed, matrix = scopes.var("failed") if routine.failures and code else None, scopes.var("matrix")
    if failed is not None:
        scope.body.append(Set(failed, ZERO))
    inner = scopes.enter(scope, matrix, args[0])
    if failed is not None:
        scopes.know(inner, failed)
    rule(replace(writer, scope=inner, matrix=matrix, failed=failed), known, flags, iter(args[first:]))
    scopes.leave(inner, scope)
    if failed is not None:
        scopes.know(scope, failed)
        scope.body.append(Check(apply(EQ, failed, ZERO), code))
    return True
