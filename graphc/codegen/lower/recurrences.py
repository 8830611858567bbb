"""Recurrences along one axis: each element from the carry that the ones before it have left.

In: a nest of kind `recurrence` and the `Lowerer` that writes the kernel. Out: loops at the end of a scope.

Along the last axis the carry is a local of the innermost loop. Along another one it is a row, held in a temporary, so
that memory is walked in order and the loop along the row, whose iterations do not depend on each other, is innermost.
"""

from __future__ import annotations

from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import Nest
from graphc.ir.lowering import Recur
from graphc.ir.node import Index, Node
from graphc.loopir.build import cast, start_const
from graphc.loopir.ir import INDEX, ONE, Expr, Load, Set, Store, Var, subtract
from graphc.loopir.syntax import filled


def lower_recur(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """The loops of a nest's one recurrence."""
    (node,) = nest.roots
    recur = node.op.lower(node)
    assert isinstance(recur, Recur)
    if recur.axis == node.ndim - 1:
        _along_rows(lowerer, nest, node, recur, scope)
    else:
        _down_columns(lowerer, nest, node, recur, scope)


def _along_rows(lowerer: Lowerer, nest: Nest, node: Node, recur: Recur, around: Scope) -> None:
    *outer, step = nest.vars
    *sizes, length = lowerer.extents(nest.space)
    scope = lowerer.enter_all(around, outer, sizes)
    carry = Var(lowerer.names.fresh("carry"), recur.dtype)
    scalars = tuple(cast(lowerer.element(arg, ()), recur.dtype) for arg in node.args if not arg.ndim)
    start = filled(recur.start, scalars, recur.dtype) if scalars else start_const(recur.start, recur.dtype)
    scope.body.append(Set(carry, start))
    inner = lowerer.enter(scope, step, length)
    lowerer.scopes[carry] = inner
    value, following = _iteration(lowerer, node, recur, (*outer, _taken(lowerer, recur, step, length)), carry)
    inner.body.extend((value, Set(carry, following)))
    lowerer.leave(inner, around)


def _down_columns(lowerer: Lowerer, nest: Nest, node: Node, recur: Recur, around: Scope) -> None:
    axis, extents = recur.axis, lowerer.extents(nest.space)
    buffer = lowerer.accumulators[node]
    outer, step, row = nest.vars[:axis], nest.vars[axis], nest.vars[axis + 1 :]
    scope = lowerer.enter_all(around, outer, extents[:axis])
    first = Var(lowerer.names.fresh("n"), INDEX)
    start = lowerer.enter(scope, first, lowerer.count(extents[axis + 1 :]))
    start.body.append(Store(buffer, first, start_const(recur.start, recur.dtype)))
    lowerer.leave(start, scope)
    iteration = lowerer.enter(scope, step, extents[axis])
    taken = _taken(lowerer, recur, step, extents[axis])
    inner = lowerer.enter_all(iteration, row, extents[axis + 1 :])
    where = lowerer.position(row, nest.space[axis + 1 :])
    carry = lowerer.bind(Load(buffer, where), "carry")
    value, following = _iteration(lowerer, node, recur, (*outer, taken, *row), carry)
    inner.body.extend((value, Store(buffer, where, following)))
    lowerer.leave(inner, around)


def _taken(lowerer: Lowerer, recur: Recur, step: Var, length: Expr) -> Expr:
    """The index along the axis in an iteration."""
    return lowerer.bind(subtract(subtract(length, ONE), step), "back") if recur.reverse else step


def _iteration(lowerer: Lowerer, node: Node, recur: Recur, index: Index, carry: Expr) -> tuple[Store, Expr]:
    """The store of the element at `index`, and the next carry."""
    elements = tuple(cast(lowerer.element(arg, index), recur.dtype) for arg in node.args if arg.ndim)
    value = lowerer.bind(filled(recur.value, (carry, *elements), recur.dtype), lowerer.labels(node))
    following = filled(recur.carry, (carry, value, *elements), recur.dtype)
    store = Store(lowerer.buffers[node], lowerer.place(node, index), cast(value, node.dtype))
    return store, following
