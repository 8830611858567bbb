"""Independent iterations: found out once, and written on every loop.

In: the statements of a kernel, after the passes that make loops and before those that share them out. Out: the same
statements, whose loops say in which buffers iterations conflict (`Loop.conflicts`). Threads share loops by that
(parallelize.py), the generated source says it, and loops are written over vectors where it does (vectorize/).

Iterations do not conflict in a buffer that they only read, nor in one of which iteration i touches no more than a
region of i's own. A position has such a region where it is built around i as positions of arrays are:

    i                   the element i
    P * n + q           P has a region of i's own, and q lies within 0 .. n
    P + c, P * n        c and n the same in every iteration
    q * n + i           the loop has n iterations

Within 0 .. n lie the variable of a loop of no more than n iterations, numbers below n, remainders by n, and quotients
of what lies within 0 .. n * c by c. All positions in one buffer must be built alike, those in branches too. Or who
wrote the loop says so (`Loop.disjoint`), as of windows that are added to rows of their own. For a loop
inside others, what these count and name is the same in every iteration. A loop that an iteration may leave has an
order. A loop of steps that threads may share has no safepoints (safepoints.py), as its steps are no
more than there are elements in memory, but where loops within it do.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

from graphc.loopir import ir, operators, visit
from graphc.startup.record import record, replace

Region: TypeAlias = "tuple[tuple[str, Hashable], ...]"
"""The steps by which a position is built around a loop's variable, from the inside out."""
Known: TypeAlias = "ChainMap[ir.Var, ir.Expr]"
"""The values that are known of names, or the trip count of a loop's variable."""


MOST_ALONE = 1
"""A loop of no more iterations is left as it is: it gains nothing by threads or vectors, and both take time to compile.
`x[:1]` and `x[-1:]` of an open axis are such loops."""


def mark_independent(
    body: Sequence[ir.Stmt], outer: Collection[ir.Var] = (), known: Mapping[ir.Var, ir.Expr] | None = None
) -> tuple[ir.Stmt, ...]:
    """Statements in which every loop says in which buffers its iterations conflict. `outer`: the scalars that have a
    value before them; `known`: what names given before them stand for."""
    begun, values = {*outer}, dict(known or {})
    result: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Set):
            begun.add(stmt.var)
        if isinstance(stmt, ir.Let) and stmt.var.dtype == ir.INDEX:
            values[stmt.var] = stmt.value
        if isinstance(stmt, ir.Loop):
            result.append(mark_nest(stmt, begun, values))
        else:
            result.append(visit.map_bodies(stmt, lambda inner: mark_independent(inner, begun, values)))
    return tuple(result)


def mark_nest(nest: ir.Loop, begun: Collection[ir.Var] = (), known: Mapping[ir.Var, ir.Expr] | None = None) -> ir.Loop:
    """The same of an outermost loop and those inside it. `begun`: the scalars that have a value before it; `known`:
    what names stand for."""
    return _Nest(nest, begun).mark(nest, ChainMap(dict(known or {})), ChainMap()).loop


@record(eq=False)
class Access:
    """An element that is read or written, and what is known of names there."""

    buffer: ir.Buffer
    index: ir.Expr
    values: Known
    sizes: Known


@record(eq=False, frozen=False)
class _Marked:
    """A loop, and what there is in it: accesses to buffers that its nest writes, names that it gives and scalars that
    it sets, whether it calls nothing and does not leave the function, but where it asks whether the call must end, and
    whether it does."""

    loop: ir.Loop
    accesses: list[Access]
    names: set[ir.Var]
    sets: dict[ir.Var, None]
    is_plain: bool = True
    safepoint: bool = False


class _Nest:
    """An outermost loop while it is marked: the buffers that it writes, the names that it gives and the scalars that it
    sets; the scalars that have a value so far."""

    __slots__ = ("begun", "names", "sets", "stored")

    def __init__(self, nest: ir.Loop, begun: Collection[ir.Var]) -> None:
        inside = [*visit.statements([nest])]
        self.stored = {stmt.buffer for stmt in inside if isinstance(stmt, ir.Store)}
        self.sets = {stmt.var for stmt in inside if isinstance(stmt, ir.Set)}
        self.names = self.sets | {stmt.var for stmt in inside if isinstance(stmt, ir.Let | ir.Loop)}
        self.begun = {var for var in self.sets if var in begun}

    def mark(self, loop: ir.Loop, values: Known, sizes: Known) -> _Marked:
        """A loop marked, inside others that give names these values and numbers of iterations."""
        if loop.begin == ir.ZERO:
            sizes = sizes.new_child({loop.var: loop.size})
        marked = _Marked(loop, [], {loop.var}, {})
        body = self.marked(loop.body, marked, values, sizes)
        carried = [var for var in marked.sets if var in self.begun]
        conflicts = None
        if marked.is_plain and not visit.is_left(loop) and all(accumulations(carried, loop).values()):
            conflicts = self.conflicts(loop.var, marked)
        safepoint = loop.safepoint
        if safepoint is not None and (conflicts is None or any(buffer.row is None for buffer in conflicts)):
            conflicts = None
        elif not marked.safepoint:
            safepoint = None
        if (ir.upper_bound(loop.size, values) or MOST_ALONE + 1) <= MOST_ALONE:
            conflicts = None
        marked.safepoint = marked.safepoint or safepoint is not None
        return replace(marked, loop=replace(loop, body=body, conflicts=conflicts, safepoint=safepoint, disjoint=()))

    def marked(self, body: Sequence[ir.Stmt], outer: _Marked, values: Known, sizes: Known) -> tuple[ir.Stmt, ...]:
        """The statements of a loop, or of a branch in it, with what there is in them noted in `outer`."""
        result: list[ir.Stmt] = []
        begun: list[ir.Var] = []
        for stmt in body:
            if isinstance(stmt, ir.Store):
                outer.accesses.append(Access(stmt.buffer, stmt.index, values, sizes))
            for expr in visit.expressions(stmt):
                outer.accesses.extend(
                    Access(part.buffer, part.index, values, sizes)
                    for part in ir.subexpressions(expr)
                    if isinstance(part, ir.Load) and part.buffer in self.stored
                )
            match stmt:
                case ir.Loop():
                    inner = self.mark(stmt, values.new_child(), sizes)
                    outer.accesses.extend(inner.accesses)
                    outer.names.update(inner.names)
                    outer.sets.update(inner.sets)
                    outer.is_plain = outer.is_plain and inner.is_plain
                    outer.safepoint = outer.safepoint or inner.safepoint
                    stmt = inner.loop
                case ir.If():
                    stmt = visit.map_bodies(stmt, lambda branch: self.marked(branch, outer, values.new_child(), sizes))
                case ir.Let(var, value):
                    outer.names.add(var)
                    if var.dtype == ir.INDEX:
                        values[var] = value
                case ir.Set(var):
                    outer.names.add(var)
                    outer.sets[var] = None
                    if var not in self.begun:
                        self.begun.add(var)
                        begun.append(var)
                case ir.Check() | ir.Invoke() | ir.Launch():
                    outer.is_plain = False
            result.append(stmt)
        self.begun.difference_update(begun)
        return tuple(result)

    def conflicts(self, var: ir.Var, inside: _Marked) -> tuple[ir.Buffer, ...]:
        """The buffers of which iterations have no regions of their own."""
        common: dict[ir.Buffer, set[Region]] = {}
        written = {stmt.buffer for stmt in visit.statements(inside.loop.body) if isinstance(stmt, ir.Store)}
        written.difference_update(inside.loop.disjoint)
        for each in inside.accesses:
            if each.buffer in written and common.get(each.buffer, True):
                scope = Scope(var, each.values, each.sizes, inside.names, self.names, self.sets)
                regions = {*scope.regions(each.index)}
                common[each.buffer] = common.get(each.buffer, regions) & regions
        return tuple(buffer for buffer, regions in common.items() if not regions)


def accumulations(variables: Collection[ir.Var], loop: ir.Loop) -> dict[ir.Var, operators.Operator | None]:
    """For each of the scalars that a loop sets, the step that combines its values of two parts of the loop, or None
    where the loop uses it otherwise."""
    ops: dict[ir.Var, operators.Operator | None] = dict.fromkeys(variables)
    refused: set[ir.Var] = set()
    for stmt in visit.statements(loop.body):
        reads: Counter[ir.Var] = Counter()
        for expr in visit.expressions(stmt):
            count_reads(expr, ops, reads)
        target = stmt.var if isinstance(stmt, ir.Set) and stmt.var in ops else None
        refused.update(var for var in reads if var != target)
        match stmt:
            case ir.Set(var, ir.Apply(op, (first, *_))) if var is target:
                known = op.accumulates and ops[var] in (None, op)
                if not known or first != var or reads[var] > 1:
                    refused.add(var)
                ops[var] = op
            case ir.Set(var) if var is target:
                refused.add(var)
    return {var: None if var in refused else op for var, op in ops.items()}


def count_reads(expr: ir.Expr, variables: Collection[ir.Var], reads: Counter[ir.Var]) -> None:
    """Count how often an expression reads each of some scalars, but for the error of an addition to it: that is another
    number for every way in which a sum is taken apart, and right for each."""
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, ir.Apply) and part.op is operators.SUM_ERROR and part.args[0] in variables:
            pending.append(part.args[1])
        elif isinstance(part, ir.Var):
            if part in variables:
                reads[part] += 1
        else:
            pending.extend(ir.children(part))


# Regions ------------------------------------------------------------------------------------------------------------


@record(eq=False)
class Scope:
    """Facts about names at a place inside a loop: its variable, values of names, sizes of loops around the place,
    all names that may differ from iteration to iteration; all that are given in the nest, what others stand for being
    sizes; and those of them that are set, and so stand for one value after the other."""

    loop: ir.Var
    values: Known
    sizes: Known
    changing: Collection[ir.Var]
    inside: Collection[ir.Var]
    sets: Collection[ir.Var]

    def resolve(self, expr: ir.Expr) -> ir.Expr:
        while isinstance(expr, ir.Var) and expr in self.values:
            expr = self.values[expr]
        return expr

    def is_constant(self, expr: ir.Expr) -> bool:
        """True where an expression has one value in all iterations."""
        for part in ir.subexpressions(expr):
            if isinstance(part, ir.Load):
                return False
            if part in self.changing and (part not in self.values or not self.is_constant(self.resolve(part))):
                return False
        return True

    def is_within(self, expr: ir.Expr, size: ir.Expr) -> bool:
        """True where an expression is known to lie within 0 .. size."""
        expr, size = self.resolve(expr), self.resolve(size)
        if isinstance(expr, ir.Var):
            return expr in self.sizes and self.is_at_most(self.sizes[expr], size)
        if isinstance(expr, ir.Apply) and expr.op is operators.ADD:
            return self.is_in_block(expr.args[0], expr.args[1], size)
        if isinstance(expr, ir.Apply) and expr.op is operators.FLOORDIV and (ir.int_value(expr.args[1]) or 0) > 0:
            scaled = ir.multiply(size, expr.args[1])
            return self.is_within(expr.args[0], size) or self.is_within(expr.args[0], scaled)
        low, high = ir.int_value(expr), ir.int_value(size)
        if low is not None:
            return high is not None and 0 <= low < high
        return isinstance(expr, ir.Apply) and expr.op is operators.MOD and self.resolve(expr.args[1]) == size

    def is_at_most(self, iterations: ir.Expr, size: ir.Expr) -> bool:
        """True where a loop's number of iterations is known to be no more than a size."""
        iterations, most = self.resolve(iterations), ir.most_iterations_in_block(iterations)
        if isinstance(iterations, ir.Apply) and iterations.op is operators.MINIMUM:
            return any(self.is_at_most(part, size) for part in iterations.args)
        return iterations == size or (most is not None and ir.integer(most) == size)

    def is_in_block(self, begin: ir.Expr, iteration: ir.Expr, size: ir.Expr) -> bool:
        """True where begin + iteration is a place in a block of an axis of that size: number * block + iteration."""
        begin, iterations = self.resolve(begin), self.sizes.get(iteration) if isinstance(iteration, ir.Var) else None
        most = ir.most_iterations_in_block(iterations) if iterations is not None else None
        if most is None or not isinstance(iterations, ir.Apply):
            return False
        length, number, _ = iterations.args
        return self.resolve(length) == size and begin == ir.multiply(number, ir.integer(most))

    def regions(self, position: ir.Expr) -> Iterator[Region]:
        """The ways in which a position is built around the loop's variable; none where another iteration may reach it
        too."""
        position = self.resolve(position)
        if position == self.loop:
            yield ()
        if not isinstance(position, ir.Apply) or position.dtype != ir.INDEX:
            return
        if position.op is operators.MUL:
            yield from self.scaled(*position.args)
        if position.op is not operators.ADD:
            return
        for base, rest in (position.args, position.args[::-1]):
            row = self.resolve(base)
            if isinstance(row, ir.Apply) and row.op is operators.MUL:
                for outer, size in (row.args, row.args[::-1]):
                    if self.is_within(rest, size):
                        if self.resolve(rest) == self.loop and self.is_constant(size):
                            yield (("%", self.resolve(size)),)
                        yield from self.scaled(outer, size)
            if self.is_constant(rest):
                yield from self.shifted(base, rest)

    def is_size(self, expr: ir.Expr) -> bool:
        """True where an expression is a size, which is 0 only where there are no elements, or a product of sizes."""
        if self.is_given(expr):
            return True
        expr = self.resolve(expr)
        if isinstance(expr, ir.Apply) and expr.op is operators.MUL:
            return all(map(self.is_size, expr.args))
        value = ir.int_value(expr)
        return value > 0 if value is not None else self.is_given(expr)

    def is_given(self, expr: ir.Expr) -> bool:
        """True where an expression is a name that was given before the nest: such stand for sizes."""
        return isinstance(expr, ir.Var) and expr not in self.inside

    def scaled(self, inner: ir.Expr, size: ir.Expr) -> Iterator[Region]:
        """The ways in which inner * size is built."""
        if self.is_size(size):
            for region in self.regions(inner):
                yield (*region, ("*", self.resolve(size)))

    def shifted(self, inner: ir.Expr, constant: ir.Expr) -> Iterator[Region]:
        """The ways in which inner + constant is built: several constants are one, in whatever order they are added."""
        added = terms(ir.rebuild(constant, self.value))
        for region in self.regions(inner):
            total = Counter(added)
            if region and region[-1][0] == "+":
                total.update(dict(region[-1][1]))  # type: ignore[call-overload]
                region = region[:-1]
            yield (*region, ("+", frozenset(total.items())))

    def value(self, name: ir.Expr) -> ir.Expr | None:
        """The value of a name that is given in the nest, where that is the same wherever it is written. A name given
        before is a size like any other: with those that it is made of it may be long."""
        bound = self.values.get(name) if isinstance(name, ir.Var) and name in self.inside else None
        if bound is None or any(isinstance(part, ir.Load) or part in self.sets for part in ir.subexpressions(bound)):
            return None
        return ir.rebuild(bound, self.value)


def terms(total: ir.Expr) -> Counter[ir.Expr]:
    """The terms of a sum, each with the number of times that it is added."""
    if isinstance(total, ir.Apply) and total.op is operators.ADD:
        result = terms(total.args[0])
        result.update(terms(total.args[1]))
        return result
    value = ir.int_value(total)
    return Counter({total: 1}) if value is None else Counter({ir.ONE: value})
