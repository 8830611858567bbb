"""Calls of functions from outside the source: matrix products, factorisations (small ones written out), the user's.

In: a nest of kind `call` and the `Lowerer` that writes the kernel. Out: statements at the end of a scope. What a
function takes, the record `Call` of its op says, in order. Some take pointers and element strides, so that a transposed
or sliced operand is read where it stands. As an example, of the product of `x.T` and `y` into `out`:

    call dgemm(x_1, y_1, x_0, 1.0, x[0:], 1, x_1, y[0:], y_1, 1, 0.0, out[0:], y_1, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np

from graphc.codegen.call.callback import CALLBACK
from graphc.codegen.lower.elements import Lowerer
from graphc.codegen.lower.scopes import Scope, Scopes
from graphc.codegen.schedule.nodes import buffer_view, call_node, call_of, is_product, loop_vars
from graphc.codegen.schedule.plan import Nest
from graphc.ir.body import outputs_of
from graphc.ir.lowering import ByValue, Call, Extent, Number, Passed, Result, Strided, Whole, Workspace
from graphc.ir.node import Index, Node, constant_value
from graphc.loopir import ir, operators
from graphc.ops.linalg.routine import ON_ERROR, ROUTINES
from graphc.startup.record import record, replace


@record()
class CallSite:
    """The place of a call: the nodes whose buffers its results go to, the loops around it, the factor of what it adds
    to, and the rows that it computes where these are not all."""

    results: tuple[Node, ...]
    loops: Index
    factor: ir.Expr
    block: Block | None = None


@record()
class Block:
    """Some rows of a result: the first, and how many."""

    begin: ir.Expr
    count: ir.Expr


def lower_call(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """The call that computes the results of a nest."""
    node = call_node(nest.roots[0])
    if is_product(node):
        _add_products(lowerer, nest, node, scope)
    else:
        _invoke(lowerer, nest, node, tuple(outputs_of(node)), ir.ZERO, scope)


def lower_block(lowerer: Lowerer, nest: Nest, block: Block, scope: Scope) -> None:
    """The call that computes some rows of the result of a nest."""
    (node,) = nest.roots
    factor = _number(0, node.type.dtype) if is_product(node) else ir.ZERO
    _invoke(lowerer, nest, node, (node,), factor, scope, block)


def _add_products(lowerer: Lowerer, nest: Nest, node: Node, outer: Scope) -> None:
    """A product, or a sum of products that begins with the innermost, in the result's buffer."""
    pending = [node]
    while (added := _call(pending[-1]).added(pending[-1])) is not None:
        operand, _ = added
        if not is_product(operand) or operand in lowerer.storage.buffers:
            break
        pending.append(operand)
    for each in reversed(pending):
        there = nest.in_place or each is not pending[-1]
        _invoke(lowerer, nest, each, (node,), _begin(lowerer, node, each, there, outer), outer)


def _call(node: Node) -> Call:
    call = call_of(node)
    assert call is not None
    return call


def _begin(lowerer: Lowerer, root: Node, product: Node, there: bool, outer: Scope) -> ir.Expr:
    """Bring the operand that a product is added to into the result's buffer, unless it is `there`, and return the
    factor that still applies to it. A factor known only at the call is applied here, because BLAS skips a product with
    0."""
    unit, added = _number(1, root.type.dtype), _call(product).added(product)
    if added is None:
        return _number(0, root.type.dtype)
    operand, factor = added
    beta = lowerer.element(factor, ())
    if there and _is_nonzero(factor):
        return beta
    buffer, shape = lowerer.storage.buffers[root], root.type.shape
    if there:
        var = loop_vars(lowerer.scopes.depth(outer) + 1)[-1]
        scope = lowerer.scopes.enter(outer, var, lowerer.count(lowerer.extents(shape)))
        where = lowerer.in_buffer(root, var)
        scope.body.append(ir.Store(buffer, where, _scaled(beta, ir.Load(buffer, where))))
        lowerer.scopes.leave(scope, outer)
    else:
        index = loop_vars(root.ndim)
        scope = lowerer.scopes.enter_all(outer, index, lowerer.extents(shape))
        value = lowerer.element(operand, index)
        scope.body.append(
            ir.Store(buffer, lowerer.buffer_position(root, index), value if beta == unit else _scaled(beta, value))
        )
        lowerer.scopes.leave(scope, outer)
    lowerer.finish(outer)
    return unit


def _number(value: float, dtype: str) -> ir.Expr:
    return ir.literal_const(np.array(value, dtype)[()], dtype)


def _is_nonzero(node: Node) -> bool:
    value = constant_value(node)
    return value is not None and bool(value != 0)


def _scaled(factor: ir.Expr, value: ir.Expr) -> ir.Expr:
    return ir.apply(operators.MUL, factor, value)


def _invoke(
    lowerer: Lowerer,
    nest: Nest,
    node: Node,
    results: tuple[Node, ...],
    factor: ir.Expr,
    outer: Scope,
    block: Block | None = None,
) -> None:
    """The function of a node, in the loops that go around it; where it may fail, its status decides."""
    call = _call(node)
    loops = loop_vars(call.loops(node))
    scope = lowerer.scopes.enter_all(outer, loops, lowerer.extents(results[0].type.shape[: len(loops)]))
    site = CallSite(results, loops, factor, block)
    by_rows = call.by_rows(node) if block is not None else None
    moving = by_rows.moving if by_rows is not None else ()
    workspaces = iter(lowerer.storage.workspaces.get(node, ()))
    args: list[ir.Expr] = []
    for passed in call.passed(node):
        if isinstance(passed, Workspace):
            args.append(ir.Pointer(next(workspaces), ir.ZERO))
        else:
            args.extend(_pass(lowerer, passed, site, moving))
    if block is not None:
        args[0] = block.count
    name = call.symbol(node)
    if call.is_python:
        name = f"{CALLBACK}{len(lowerer.callbacks)}"
        lowerer.callbacks[name] = node
    if block is not None or not inline_routine(lowerer.scopes, scope, node, args, nest.number + 1):
        scope.body.append(ir.Invoke(name, tuple(args), nest.number + 1 if call.may_fail else 0))
    lowerer.scopes.leave(scope, outer)


def _pass(lowerer: Lowerer, passed: Passed, site: CallSite, moving: Container[Node]) -> Iterator[ir.Expr]:
    """The arguments of a function for one record. moving: operands of which it takes the rows of a block."""
    match passed:
        case Extent(size):
            yield lowerer.size(size)
        case Number(value, dtype):
            yield _number(value, dtype)
        case ByValue(scalar):
            yield lowerer.element(scalar, ())
        case Whole(operand):
            yield ir.Pointer(lowerer.operand_buffer(operand), lowerer.in_buffer(operand, ir.ZERO))
        case Strided(operand, axes):
            begin = site.block.begin if site.block is not None and operand in moving else None
            pointer, steps = _view(lowerer, operand, site.loops, begin)
            yield pointer
            yield from (ir.ZERO if axis is None else steps[axis] for axis in axes)
        case Result(position, axes):
            node = site.results[position]
            extents = lowerer.extents(node.type.shape)
            start: Index = (*site.loops, *(ir.ZERO for _ in extents[len(site.loops) :]))
            if site.block is not None and node not in lowerer.storage.block_rows:
                start = (site.block.begin, *start[1:])
            yield ir.Pointer(lowerer.storage.buffers[node], lowerer.buffer_position(node, start))
            yield from (ir.ZERO if axis is None else _stride(lowerer, extents[axis + 1 :]) for axis in axes)
        case _:
            yield site.factor


def _stride(lowerer: Lowerer, inner: tuple[ir.Expr, ...]) -> ir.Expr:
    """The stride of an axis, from the extents of those inside it."""
    count: ir.Expr = ir.ONE
    for extent in inner:
        count = ir.multiply(count, extent)
    return lowerer.scopes.hoist(count)


def _view(lowerer: Lowerer, operand: Node, loops: Index, begin: ir.Expr | None) -> tuple[ir.Pointer, list[ir.Expr]]:
    """The first element of an operand and the strides of its axes. `loops` select a part along the first axes; `begin`
    selects the rows from there on."""
    view = buffer_view(operand, lowerer.sizes.sizing)
    extents = lowerer.extents(view.shape)
    steps: list[ir.Expr] = [ir.ZERO] * operand.ndim
    index: list[ir.Expr] = []
    stride: ir.Expr = ir.ONE
    for part, extent in zip(reversed(view.along), reversed(extents), strict=True):
        start = lowerer.size(part.start)
        if part.axis is not None and part.axis < len(loops):
            start = ir.add(start, ir.multiply(ir.integer(part.step), loops[part.axis]))
        elif part.axis is not None:
            steps[part.axis] = ir.multiply(ir.integer(part.step), stride)
            if part.axis == 0 and begin is not None:
                start = ir.add(start, ir.multiply(ir.integer(part.step), begin))
        index.insert(0, start)
        stride = ir.multiply(stride, extent)
    place = lowerer.in_buffer(view.base, lowerer.position(tuple(index), view.shape))
    return ir.Pointer(lowerer.operand_buffer(view.base), place), [*map(lowerer.scopes.hoist, steps)]


# --- factorisations of small matrices, written out in the place of a call ---------------------------------------------
# In: the node of a routine (`ops/linalg/routine.py`), and the arguments of its function, in which the sizes of a
# matrix are constants up to LARGEST. Out: statements over scalars, in a loop over the matrices where there are
# several. A call costs more than what it does for two rows, the compiler cannot keep in registers what goes through
# memory, and the loop over matrices is vectorised. As an example, the solution of a lower system of two rows with one
# right side:
#
#     check a[0] != 0, a[3] != 0
#     x = b[0] / a[0]
#     x2 = multiply_add(-a[2], x, b[1]) / a[3]
#
# Pivots are chosen by comparison and `select`, of equal ones the first, as `codegen/lapack/elimination.py` does.

LARGEST = 4
"""Rows. A matrix of more is in memory anyway: there are 32 registers at most."""
COLUMNS = 16
"""Right sides at most: each is as many statements again."""

Entries: TypeAlias = "dict[tuple[int, int], ir.Expr]"
"""Values by row and column."""


@record()
class Writer:
    """Statements at the end of a scope. matrix: the number of the matrix at hand. code: that of the check that fails
    with the routine; 0 where the results are NaN then. failed: in a loop, what becomes 1 where it fails."""

    scopes: Scopes
    scope: Scope
    dtype: str
    code: int
    matrix: ir.Expr = ir.ZERO
    failed: ir.Var | None = None

    def name(self, expr: ir.Expr, hint: str) -> ir.Expr:
        return self.scopes.bind_in(self.scope, expr, hint)

    def number(self, value: float) -> ir.Expr:
        return ir.literal_const(np.array(value, self.dtype)[()], self.dtype)

    def load(self, matrix: Sequence[ir.Expr], places: Iterable[tuple[int, int]], hint: str) -> Entries:
        """Entries of an operand: a pointer, the stride of a batch, and those of rows and columns."""
        pointer, stride, row, column = matrix
        assert isinstance(pointer, ir.Pointer)
        begin = ir.add(pointer.index, ir.multiply(self.matrix, stride))
        return {
            (i, j): self.name(ir.Load(pointer.buffer, _moved(begin, (i, row), (j, column))), hint) for i, j in places
        }

    def store(self, result: ir.Expr, values: Sequence[ir.Expr]) -> None:
        """Store a result, in order. Everything has been loaded before: it may lie where an operand lies."""
        assert isinstance(result, ir.Pointer)
        begin = ir.add(result.index, ir.multiply(self.matrix, ir.integer(len(values))))
        for place, value in enumerate(values):
            self.scope.body.append(ir.Store(result.buffer, ir.add(begin, ir.integer(place)), value))

    def less(self, value: ir.Expr, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        """value - left * right."""
        return ir.apply(operators.MULTIPLY_ADD, ir.apply(operators.NEG, left), right, value)

    def required(self, conditions: Sequence[ir.Expr], values: Sequence[ir.Expr]) -> list[ir.Expr]:
        """The values, where all conditions hold; otherwise the call fails, or all values are NaN."""
        whole = conditions[0]
        for condition in conditions[1:]:
            whole = ir.apply(operators.AND, whole, condition)
        if self.failed is not None:
            fails = ir.apply(operators.SELECT, whole, ir.ZERO, ir.ONE)
            self.scope.body.append(ir.Set(self.failed, ir.apply(operators.ACCUMULATE_MAXIMUM, self.failed, fails)))
            return list(values)
        if self.code:
            self.scope.body.append(ir.Check(whole, self.code))
            return list(values)
        holds = self.name(whole, "holds")
        return [ir.apply(operators.SELECT, holds, value, self.number(np.nan)) for value in values]


def _moved(begin: ir.Expr, *steps: tuple[int, ir.Expr]) -> ir.Expr:
    for count, stride in steps:
        begin = ir.add(begin, ir.multiply(ir.integer(count), stride))
    return begin


def _cholesky(writer: Writer, sizes: Sequence[int], flags: Sequence[int], args: Iterator[ir.Expr]) -> None:
    (n,) = sizes
    a = writer.load([next(args) for _ in range(4)], [(i, j) for i in range(n) for j in range(i + 1)], "a")
    factor: Entries = {}
    positive: list[ir.Expr] = []
    for i in range(n):
        for j in range(i + 1):
            value = a[i, j]
            for p in range(j):
                value = writer.less(value, factor[i, p], factor[j, p])
            value = writer.name(value, "l")
            if i == j:
                positive.append(ir.apply(operators.INVERT, ir.apply(operators.LE, value, writer.number(0))))
                factor[i, i] = writer.name(ir.apply(operators.CALLS["sqrt"], value), "l")
            else:
                factor[i, j] = writer.name(ir.apply(operators.DIV, value, factor[j, j]), "l")
    values = [factor.get((i, j), writer.number(0)) for i in range(n) for j in range(n)]
    writer.store(next(args), writer.required(positive, values))


def _triangular_solve(writer: Writer, sizes: Sequence[int], flags: Sequence[int], args: Iterator[ir.Expr]) -> None:
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
            values[i, column] = writer.name(value if unit else ir.apply(operators.DIV, value, a[i, i]), "x")
    results = [values[i, column] for i in range(n) for column in range(k)]
    if not unit:
        results = writer.required([ir.apply(operators.NE, a[i, i], writer.number(0)) for i in range(n)], results)
    writer.store(next(args), results)


def _lu(writer: Writer, sizes: Sequence[int], flags: Sequence[int], args: Iterator[ir.Expr]) -> None:
    (n,) = sizes
    a = writer.load([next(args) for _ in range(4)], product(range(n), range(n)), "a")
    order: list[ir.Expr] = [ir.integer(i) for i in range(n)]
    pivots: list[ir.Expr] = []
    for k in range(n):
        best: ir.Expr = ir.integer(k)
        most: ir.Expr = ir.apply(operators.CALLS["abs_"], a[k, k])
        for i in range(k + 1, n):
            size = writer.name(ir.apply(operators.CALLS["abs_"], a[i, k]), "size")
            # a NaN is no pivot where there is another
            larger = writer.name(
                ir.apply(operators.OR, ir.apply(operators.GT, size, most), _is_nan_beside(most, size)), "larger"
            )
            best = writer.name(ir.apply(operators.SELECT, larger, ir.integer(i), best), "pivot")
            most = writer.name(ir.apply(operators.SELECT, larger, size, most), "most")
        pivots.append(best)
        for i in range(k + 1, n):
            here = writer.name(ir.apply(operators.EQ, best, ir.integer(i)), "here")
            for j in range(n):
                up, down = a[i, j], a[k, j]
                a[k, j] = writer.name(ir.apply(operators.SELECT, here, up, down), "a")
                a[i, j] = writer.name(ir.apply(operators.SELECT, here, down, up), "a")
            order[k], order[i] = (
                writer.name(ir.apply(operators.SELECT, here, order[i], order[k]), "row"),
                writer.name(ir.apply(operators.SELECT, here, order[k], order[i]), "row"),
            )
        zero = ir.apply(operators.EQ, a[k, k], writer.number(0))
        for i in range(k + 1, n):
            factor = writer.name(ir.apply(operators.DIV, a[i, k], a[k, k]), "factor")
            for j in range(k + 1, n):
                a[i, j] = writer.name(
                    ir.apply(operators.SELECT, zero, a[i, j], writer.less(a[i, j], factor, a[k, j])), "a"
                )
            a[i, k] = writer.name(ir.apply(operators.SELECT, zero, a[i, k], factor), "a")
    writer.store(next(args), [a[i, j] for i in range(n) for j in range(n)])
    writer.store(next(args), order)
    writer.store(next(args), pivots)


def _is_nan_beside(value: ir.Expr, other: ir.Expr) -> ir.Expr:
    """True where a value is NaN and the other one is not."""
    return ir.apply(operators.AND, ir.apply(operators.NE, value, value), ir.apply(operators.EQ, other, other))


_Rule: TypeAlias = Callable[[Writer, Sequence[int], Sequence[int], Iterator[ir.Expr]], None]
_RULES: Mapping[str, _Rule] = {"cholesky": _cholesky, "triangular_solve": _triangular_solve, "lu": _lu}


def inline_routine(scopes: Scopes, scope: Scope, node: Node, args: Sequence[ir.Expr], code: int) -> bool:
    """Write a routine out at the end of a scope; False where its function has to be called. code: of the check that
    fails with it."""
    rule = _RULES.get(node.op.name)
    if rule is None:
        return False
    routine = ROUTINES[node.op.name]
    sizes = [ir.int_value(arg) for arg in args[1 : 1 + len(routine.letters)]]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or not 0 < known[0] <= LARGEST or not 0 < max(known) <= COLUMNS:
        return False
    flags = [node.attrs[name] for name in routine.flags]
    first = 1 + len(sizes) + len(flags) + bool(routine.failures)
    code = 0 if node.attrs.get(ON_ERROR) == "nan" else code
    writer = Writer(scopes, scope, node.args[0].type.dtype, code)
    if ir.int_value(args[0]) == 1:
        rule(writer, known, flags, iter(args[first:]))
        return True
    failed, matrix = scopes.var("failed") if routine.failures and code else None, scopes.var("matrix")
    if failed is not None:
        scope.body.append(ir.Set(failed, ir.ZERO))
    inner = scopes.enter(scope, matrix, args[0])
    if failed is not None:
        scopes.know(inner, failed)
    rule(replace(writer, scope=inner, matrix=matrix, failed=failed), known, flags, iter(args[first:]))
    scopes.leave(inner, scope)
    if failed is not None:
        scopes.know(scope, failed)
        scope.body.append(ir.Check(ir.apply(operators.EQ, failed, ir.ZERO), code))
    return True
