"""Sums: those of one term that is not 0, without a loop; and partial sums in float32 (below).

Where all terms but one are 0, that term is added, and no loop looks for it. Extremes of the same kind are found so too.

In: the statements of a function, as outlined. Out: a loop whose iterations add a number at a place that is chosen, and
0 at all others, becomes that addition:

    for j in independent(n):                                    if (0 <= k) & (k < n):
        out[j] = accumulate(out[j], select(k == j, x, 0.0))         out[k] = accumulate(out[k], x)

So sums by group that are written as comparisons, `where(group[:, None] == arange(n), x[:, None], 0).sum(axis=0)`, take
time for each row, not for each row and group. No bit changes: a sum begins with 0.0, so it is never -0.0, and 0.0 added
to any other number is that number. The partial sums of threads begin with -0.0, and are added to such a sum. The
largest of numbers that are -inf but at one place, and the smallest of such, are found in the same way.

A comparison may be a factor, `(group[:, None] == arange(n)) * x[:, None]`. The product is 0 where `x` is finite; for a
row with another number the loop stays:

    if isfinite(x):
        ...
    else:
        for j in independent(n):
            out[j] = accumulate(out[j], float64(k == j) * x)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TypeAlias

from graphc.arrays.dtypes import is_float
from graphc.codegen.transform.abreast import computes_functions
from graphc.codegen.transform.parallelize import added_into, targets_of
from graphc.loopir import ir, operators, visit
from graphc.startup.record import fresh, record, replace

MOST_OPS = 64
"""The most operators of a number whose 0 is looked for."""


def add_where_chosen(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Statements in which no loop adds 0 everywhere but at one place."""
    result: list[ir.Stmt] = []
    for stmt in body:
        inside = visit.map_bodies(stmt, add_where_chosen)
        added = _additions(inside) if isinstance(inside, ir.Loop) and inside.is_independent else ()
        result.extend(added or (inside,))
    return tuple(result)


def _additions(loop: ir.Loop) -> tuple[ir.Stmt, ...]:
    """The additions that a loop makes of numbers that change something, in its order; () for other loops."""
    values: dict[ir.Var, ir.Expr] = {}
    by_place: dict[ir.Expr, list[ir.Stmt]] = {}
    finite: dict[ir.Expr, None] = {}
    stored = visit.stored_buffers(loop.body)
    for stmt in loop.body:
        if isinstance(stmt, ir.Let):
            value = visit.replace_vars(stmt.value, values)
            if visit.op_count(value) > MOST_OPS:
                return ()
            values[stmt.var] = value
            continue
        if not isinstance(stmt, ir.Store | ir.Set):
            return ()
        step, terms = _terms(stmt)
        last = 0
        if step is None:
            return ()
        for term in (visit.replace_vars(term, values) for term in terms):
            chosen = _chosen(term, loop.var, step)
            if chosen is None or not stored.isdisjoint(visit.read_buffers([ir.Let(loop.var, term)])):
                return ()
            place, value, factors = chosen
            finite |= dict.fromkeys(factors)
            by_place.setdefault(place, []).append(_addition(stmt, step, value, {**values, loop.var: place}))
            order = [*by_place].index(place)
            if order < last:
                return ()  # two places may be one
            last = order
    added = tuple(
        ir.If(
            ir.apply(
                operators.AND, ir.apply(operators.GE, place, loop.begin), ir.apply(operators.LT, place, loop.size)
            ),
            tuple(additions),
        )
        for place, additions in by_place.items()
    )
    if not finite:
        return added
    return (
        ir.If(
            reduce(partial(ir.apply, operators.AND), (ir.apply(operators.ISFINITE, factor) for factor in finite)),
            added,
            (loop,),
        ),
    )


NEUTRAL = {operators.ACCUMULATE: (), operators.ACCUMULATE_MAXIMUM: ("-inf",), operators.ACCUMULATE_MINIMUM: ("inf",)}
"""The steps that are known, with the numbers that change nothing; a sum's are computed in several ways (`_zero`)."""


def _terms(stmt: ir.Store | ir.Set) -> tuple[operators.Operator | None, list[ir.Expr]]:
    """The step by which a statement changes a number, and what it takes into it, one after the other; no step where the
    statement does something else."""
    target = ir.Load(stmt.buffer, stmt.index) if isinstance(stmt, ir.Store) else stmt.var
    value, terms = stmt.value, list[ir.Expr]()
    step = value.op if isinstance(value, ir.Apply) and value.op in NEUTRAL else None
    while isinstance(value, ir.Apply) and value.op is step:
        value, term = value.args
        terms.append(term)
    return (step, terms[::-1]) if value == target else (None, [])


def _addition(
    stmt: ir.Store | ir.Set, step: operators.Operator, value: ir.Expr, at: Mapping[ir.Var, ir.Expr]
) -> ir.Stmt:
    """One step where names stand for these values."""
    value = visit.replace_vars(value, at)
    if isinstance(stmt, ir.Set):
        return ir.Set(stmt.var, ir.apply(step, stmt.var, value))
    index = visit.replace_vars(stmt.index, at)
    return ir.Store(stmt.buffer, index, ir.apply(step, ir.Load(stmt.buffer, index), value))


Factors: TypeAlias = frozenset[ir.Expr]
"""Numbers that have to be finite."""


def _chosen(term: ir.Expr, var: ir.Var, step: operators.Operator) -> tuple[ir.Expr, ir.Expr, Factors] | None:
    """The iteration of a loop in which a term changes something, the term there, and the numbers that must be finite
    for this; None where there is no such iteration."""
    for part in ir.subexpressions(term) if visit.op_count(term) <= MOST_OPS else ():
        if isinstance(part, ir.Apply) and part.op is operators.EQ and part.args[0].dtype == ir.INDEX:
            for one, other in (part.args, part.args[::-1]):
                place = _place(one, other, var)
                factors = None if place is None else _zero(term, part, NEUTRAL[step] or ZEROS)
                if place is None or factors is None or any(var in ir.subexpressions(factor) for factor in factors):
                    continue
                return place, _where_true(term, part), factors
    return None


def _place(counting: ir.Expr, number: ir.Expr, var: ir.Var) -> ir.Expr | None:
    """The iteration in which what counts with the loop is a number."""
    if visit.stride(counting, var, {}) != 1 or var in ir.subexpressions(number):
        return None
    return ir.subtract(number, visit.replace_vars(counting, {var: ir.ZERO}))


ZEROS = ("0", "0.0", "-0.0", "False")
NOTHING: Factors = frozenset()


def _zero(expr: ir.Expr, condition: ir.Expr, neutral: Sequence[str]) -> Factors | None:
    """The numbers that must be finite for an expression to be neutral, of a sum either zero, if a condition does not
    hold; None where it may be another number."""
    if expr == condition:
        return NOTHING
    if isinstance(expr, ir.Const):
        return NOTHING if expr.text in neutral else None
    if not isinstance(expr, ir.Apply):
        return None
    if expr.op is operators.SELECT:
        fails = _zero(expr.args[0], condition, ZEROS)
        parts = [_zero(arg, condition, neutral) for arg in expr.args[1:]]
        return parts[1] if fails == NOTHING else _all(parts)
    if neutral is not ZEROS:
        return None
    parts = [_zero(arg, condition, neutral) for arg in expr.args]
    if expr.op is operators.AND:
        return NOTHING if NOTHING in parts else None
    if (
        expr.op is operators.MUL
        and None in parts
        and (zero := next(filter(lambda part: part is not None, parts), None)) is not None
    ):
        (factor,) = (arg for arg, part in zip(expr.args, parts, strict=True) if part is None)
        return zero | {factor} if is_float(expr.dtype) else zero
    return (
        _all(parts)
        if expr.op in (operators.ADD, operators.MUL, operators.NEG) or expr.op in operators.CASTS.values()
        else None
    )


def _all(parts: Sequence[Factors | None]) -> Factors | None:
    """The union of what all parts ask for; None where one asks for something else."""
    factors = [part for part in parts if part is not None]
    return NOTHING.union(*factors) if len(factors) == len(parts) else None


def _where_true(expr: ir.Expr, condition: ir.Expr) -> ir.Expr:
    """An expression where a condition holds."""
    if expr == condition:
        return ir.start_const("True", "bool")
    if not isinstance(expr, ir.Apply):
        return expr
    args = tuple(_where_true(arg, condition) for arg in expr.args)
    holds = isinstance(args[0], ir.Const) and args[0].text == "True"
    if holds and expr.op in (operators.SELECT, operators.AND):
        return args[1]
    if holds and expr.op in operators.CASTS.values():
        return ir.start_const("1", expr.dtype)
    if expr.op is operators.MUL:
        ones = [arg == ir.start_const("1", expr.dtype) for arg in args]
        if any(ones):
            return args[1] if ones[0] else args[0]
    return ir.Apply(expr.op, args, expr.dtype)


# --- partial sums -----------------------------------------------------------------------------------------------------
# Partial sums: float32 rows are added up a few at a time in float32, and these sums in float64.
#
# In: the statements of a kernel. Out: the statements with loops that add rows cut into blocks of ROWS rows, and for
# each buffer that they add into one of float32, which holds the sums of a block.
#
#     for i in range(n):                                  for rows in range(blocks(n, 32)):
#         for j in range(m):                                  for c in range(m): few[c] = 0.0
#             sums[j] = sums[j] + float64(x[i * m + j])       for i_in in range(block_length(n, rows, 32)):
#                                                                 for j in range(m): few[j] = few[j] + x[...]
#                                                             for c in range(m): sums[c] = sums[c] + float64(few[c])
#
# A loop that adds in float64 goes over half as many elements at a time as one in float32. Adding ROWS rows one after
# the other loses less than NumPy does, which adds all rows so. A loop that computes a function stays: that takes longer
# than the sum, and short rows fill fewer vectors of float32 (a model of items takes 1.1 to 1.3 of the time).

WIDEN = operators.CASTS["float64"]


@record()
class Narrowed:
    """`narrow`: the new buffers of float32, each with the one whose elements it holds for a block; `changed`: those as
    they were known before, when every row was added to them."""

    body: tuple[ir.Stmt, ...]
    narrow: Mapping[ir.Buffer, ir.Buffer] = fresh(factory=dict)
    changed: Mapping[ir.Buffer, ir.Buffer] = fresh(factory=dict)


def narrow_sums(body: Sequence[ir.Stmt], fresh: Callable[[str], str]) -> Narrowed:
    """A kernel's statements with sums of rows narrowed, in the targets of which that is true of all loops. `fresh`
    gives names."""
    result: list[ir.Stmt] = []
    narrow: dict[ir.Buffer, ir.Buffer] = {}
    changed: dict[ir.Buffer, ir.Buffer] = {}
    candidates = [narrow_targets(stmt) if isinstance(stmt, ir.Loop) else [] for stmt in body]
    loops = [(stmt, targets) for stmt, targets in zip(body, candidates, strict=True) if isinstance(stmt, ir.Loop)]
    wide = {buffer for loop, targets in loops for buffer in added_into(loop, targets_of(loop)) if buffer not in targets}
    wide.update(buffer for stmt in body if isinstance(stmt, ir.If) for buffer in targets_of(stmt))
    for stmt, some in zip(body, candidates, strict=True):
        targets = {
            buffer: target for buffer, target in targets_of(stmt).items() if buffer in some and buffer not in wide
        }
        if not isinstance(stmt, ir.Loop) or not targets:
            result.append(stmt)
            continue
        partials = {b: ir.Buffer(fresh("few_rows"), "float32", True, target.length) for b, target in targets.items()}
        result.append(by_blocks(stmt, partials, fresh))
        for buffer, few in partials.items():
            changed[buffer] = replace(buffer, target=replace(targets[buffer], pays=ir.ONE))
            narrow[few] = changed[buffer]
    return Narrowed(visit.moved_buffers(result, {old: (new, ir.ZERO) for old, new in changed.items()}), narrow, changed)


def narrow_targets(loop: ir.Loop) -> list[ir.Buffer]:
    """The buffers that a loop over rows only adds float32 numbers to, in loops inside it that compute no function; none
    of few rows, and none where the loop may be left."""
    count = ir.int_value(loop.size)
    if (count is not None and count <= ir.ROWS) or visit.is_left(loop):
        return []
    if not any(isinstance(stmt, ir.Loop) and targets_of(stmt) for stmt in loop.body):
        return []
    added = added_into(loop, targets_of(loop))
    wide = {
        stmt.buffer
        for stmt in visit.statements(loop.body)
        if isinstance(stmt, ir.Store) and stmt.buffer in added and narrow_term(stmt) is None
    }
    wide |= {
        buffer
        for inner in visit.statements(loop.body)
        if isinstance(inner, ir.Loop) and computes_functions(inner.body)
        for buffer in visit.stored_buffers(inner.body)
    }
    return [buffer for buffer in added if buffer not in wide]


def narrow_term(stmt: ir.Store) -> ir.Expr | None:
    """The float32 number that a store adds to an element of float64; None of any other store."""
    match stmt.value:
        case ir.Apply(operators.ACCUMULATE, (ir.Load(), ir.Apply(widen, (term,)))) if widen is WIDEN:
            return term if term.dtype == "float32" else None
    return None


def by_blocks(loop: ir.Loop, partials: Mapping[ir.Buffer, ir.Buffer], fresh: Callable[[str], str]) -> ir.Loop:
    """A loop over rows by blocks of rows: begin the sums of a block, add its rows, add the sums to the buffers."""
    block, iteration, place = (ir.Var(fresh(name), ir.INDEX) for name in ("rows", f"{loop.var.name}_in", "c"))
    zero = ir.Const("0.0", "float32")
    starts: dict[ir.Expr, list[ir.Stmt]] = {}
    ends: dict[ir.Expr, list[ir.Stmt]] = {}
    for buffer, few in partials.items():
        assert few.row is not None
        total = ir.apply(operators.ACCUMULATE, ir.Load(buffer, place), ir.apply(WIDEN, ir.Load(few, place)))
        starts.setdefault(few.row, []).append(ir.Store(few, place, zero))
        ends.setdefault(few.row, []).append(ir.Store(buffer, place, total))
    first, last = ([ir.Loop(place, length, tuple(body)) for length, body in part.items()] for part in (starts, ends))
    row = ir.Let(loop.var, ir.add(ir.multiply(block, ir.integer(ir.ROWS)), iteration))
    rows = ir.Loop(iteration, ir.iterations_in_block(loop.size, block, ir.ROWS), (row, *narrowed(loop.body, partials)))
    count = ir.int_value(loop.size)
    blocks = ir.blocks_of(loop.size, ir.ROWS) if count is None else ir.integer(-(-count // ir.ROWS))
    return ir.Loop(block, blocks, (*first, rows, *last), safepoint=ir.safepoint_in_blocks(loop.safepoint, ir.ROWS))


def narrowed(body: Sequence[ir.Stmt], partials: Mapping[ir.Buffer, ir.Buffer]) -> tuple[ir.Stmt, ...]:
    """Statements that add to the narrow buffers."""
    result: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Store) and stmt.buffer in partials and (term := narrow_term(stmt)) is not None:
            few = partials[stmt.buffer]
            stmt = ir.Store(few, stmt.index, ir.apply(operators.ACCUMULATE, ir.Load(few, stmt.index), term))
        result.append(visit.map_bodies(stmt, lambda inner: narrowed(inner, partials)))
    return tuple(result)
