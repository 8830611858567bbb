"""Calls of functions from outside the source: matrix products, factorisations, and the user's functions.

In: a nest of kind `call` and the `Lowerer` that writes the kernel. Out: statements at the end of a scope. What a
function takes, the record `Call` of its op says, in order. Some take pointers and element strides, so that a transposed
or sliced operand is read where it stands. As an example, of the product of `x.T` and `y` into `out`:

    call dgemm(x_1, y_1, x_0, 1.0, x[0:], 1, x_1, y[0:], y_1, 1, 0.0, out[0:], y_1, 1)
"""

from __future__ import annotations

from collections.abc import Container, Iterator

import numpy as np

from graphc.codegen.call.callback import CALLBACK
from graphc.codegen.lower.elements import Lowerer
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.lower.small_matrices import inline_routine
from graphc.codegen.schedule.nodes import buffer_view, call_node, call_of, is_product, loop_vars
from graphc.codegen.schedule.plan import Nest
from graphc.ir.body import outputs_of
from graphc.ir.lowering import ByValue, Call, Extent, Number, Passed, Result, Strided, Whole, Workspace
from graphc.ir.node import Index, Node, constant_value
from graphc.loopir.ir import ONE, ZERO, Expr, Invoke, Load, Pointer, Store, add, apply, integer, literal_const, multiply
from graphc.loopir.operators import MUL
from graphc.startup.record import record


@record()
class CallSite:
    """The place of a call: the nodes whose buffers its results go to, the loops around it, the factor of what it adds
    to, and the rows that it computes where these are not all."""

    results: tuple[Node, ...]
    loops: Index
    factor: Expr
    block: Block | None = None


@record()
class Block:
    """Some rows of a result: the first, and how many."""

    begin: Expr
    count: Expr


def lower_call(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """The call that computes the results of a nest."""
    node = call_node(nest.roots[0])
    if is_product(node):
        _add_products(lowerer, nest, node, scope)
    else:
        _invoke(lowerer, nest, node, tuple(outputs_of(node)), ZERO, scope)


def lower_block(lowerer: Lowerer, nest: Nest, block: Block, scope: Scope) -> None:
    """The call that computes some rows of the result of a nest."""
    (node,) = nest.roots
    factor = _number(0, node.type.dtype) if is_product(node) else ZERO
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


def _begin(lowerer: Lowerer, root: Node, product: Node, there: bool, outer: Scope) -> Expr:
    """Bring the operand that a product is added to into the result's buffer, unless it is `there`, and return the
    factor that still applies to it. A factor known only at the call is applied here, because BLAS skips a product with
    0."""
    one, added = _number(1, root.type.dtype), _call(product).added(product)
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
        scope.body.append(Store(buffer, where, _scaled(beta, Load(buffer, where))))
        lowerer.scopes.leave(scope, outer)
    else:
        index = loop_vars(root.ndim)
        scope = lowerer.scopes.enter_all(outer, index, lowerer.extents(shape))
        value = lowerer.element(operand, index)
        scope.body.append(
            Store(buffer, lowerer.buffer_position(root, index), value if beta == one else _scaled(beta, value))
        )
        lowerer.scopes.leave(scope, outer)
    lowerer.finish(outer)
    return one


def _number(value: float, dtype: str) -> Expr:
    return literal_const(np.array(value, dtype)[()], dtype)


def _is_nonzero(node: Node) -> bool:
    value = constant_value(node)
    return value is not None and bool(value != 0)


def _scaled(factor: Expr, value: Expr) -> Expr:
    return apply(MUL, factor, value)


def _invoke(
    lowerer: Lowerer,
    nest: Nest,
    node: Node,
    results: tuple[Node, ...],
    factor: Expr,
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
    args: list[Expr] = []
    for passed in call.passed(node):
        if isinstance(passed, Workspace):
            args.append(Pointer(next(workspaces), ZERO))
        else:
            args.extend(_pass(lowerer, passed, site, moving))
    if block is not None:
        args[0] = block.count
    name = call.symbol(node)
    if call.is_python:
        name = f"{CALLBACK}{len(lowerer.callbacks)}"
        lowerer.callbacks[name] = node
    if block is not None or not inline_routine(lowerer.scopes, scope, node, args, nest.number + 1):
        scope.body.append(Invoke(name, tuple(args), nest.number + 1 if call.may_fail else 0))
    lowerer.scopes.leave(scope, outer)


def _pass(lowerer: Lowerer, passed: Passed, site: CallSite, moving: Container[Node]) -> Iterator[Expr]:
    """The arguments of a function for one record. moving: operands of which it takes the rows of a block."""
    match passed:
        case Extent(size):
            yield lowerer.size(size)
        case Number(value, dtype):
            yield _number(value, dtype)
        case ByValue(scalar):
            yield lowerer.element(scalar, ())
        case Whole(operand):
            yield Pointer(lowerer.operand_buffer(operand), lowerer.in_buffer(operand, ZERO))
        case Strided(operand, axes):
            begin = site.block.begin if site.block is not None and operand in moving else None
            pointer, steps = _view(lowerer, operand, site.loops, begin)
            yield pointer
            yield from (ZERO if axis is None else steps[axis] for axis in axes)
        case Result(position, axes):
            node = site.results[position]
            extents = lowerer.extents(node.type.shape)
            start: Index = (*site.loops, *(ZERO for _ in extents[len(site.loops) :]))
            if site.block is not None and node not in lowerer.storage.block_rows:
                start = (site.block.begin, *start[1:])
            yield Pointer(lowerer.storage.buffers[node], lowerer.buffer_position(node, start))
            yield from (ZERO if axis is None else _stride(lowerer, extents[axis + 1 :]) for axis in axes)
        case _:
            yield site.factor


def _stride(lowerer: Lowerer, inner: tuple[Expr, ...]) -> Expr:
    """The stride of an axis, from the extents of those inside it."""
    count: Expr = ONE
    for extent in inner:
        count = multiply(count, extent)
    return lowerer.scopes.hoist(count)


def _view(lowerer: Lowerer, operand: Node, loops: Index, begin: Expr | None) -> tuple[Pointer, list[Expr]]:
    """The first element of an operand and the strides of its axes. `loops` select a part along the first axes; `begin`
    selects the rows from there on."""
    view = buffer_view(operand, lowerer.sizes.sizing)
    extents = lowerer.extents(view.shape)
    steps: list[Expr] = [ZERO] * operand.ndim
    index: list[Expr] = []
    stride: Expr = ONE
    for part, extent in zip(reversed(view.along), reversed(extents), strict=True):
        start = lowerer.size(part.start)
        if part.axis is not None and part.axis < len(loops):
            start = add(start, multiply(integer(part.step), loops[part.axis]))
        elif part.axis is not None:
            steps[part.axis] = multiply(integer(part.step), stride)
            if part.axis == 0 and begin is not None:
                start = add(start, multiply(integer(part.step), begin))
        index.insert(0, start)
        stride = multiply(stride, extent)
    place = lowerer.in_buffer(view.base, lowerer.position(tuple(index), view.shape))
    return Pointer(lowerer.operand_buffer(view.base), place), [*map(lowerer.scopes.hoist, steps)]
