"""Calls of functions from outside the source: matrix products, and the user's functions.

In: a nest of kind `call` and the `Lowerer` that writes the kernel. Out: statements at the end of a scope.
A matrix product takes pointers and element strides, so that a transposed or sliced operand is read where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from graphc.codegen.call.callback import CALLBACK
from graphc.codegen.gemm.api import ALONG, DTYPES, vector_name
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.schedule.plan import CONVOLUTION, PRODUCTS, Nest, call_kind, loop_vars
from graphc.codegen.schedule.strided import strided
from graphc.ir.node import Index, Node, constant_value
from graphc.loops.build import literal_const
from graphc.loops.ir import ONE, ZERO, Expr, Invoke, Load, Pointer, Store, add, apply, integer, multiply
from graphc.loops.operators import MUL
from graphc.ops.conv import MOST_SPATIAL, axes_of
from graphc.ops.linalg import Product, as_product

SUFFIXES = {dtype: suffix for suffix, dtype in DTYPES.items()}


def lower_call(lowerer: Lowerer, nest: Nest, scope: Scope) -> None:
    """The call that computes a nest's one result."""
    (node,) = nest.roots
    if call_kind(node) in PRODUCTS:
        _add_products(lowerer, nest, node, scope)
    elif call_kind(node) == CONVOLUTION:
        _convolve(lowerer, node, scope)
    else:
        _call_python(lowerer, nest, node, scope)


def _add_products(lowerer: Lowerer, nest: Nest, node: Node, outer: Scope) -> None:
    """A product, or a sum of products that begins with the innermost, in the result's buffer."""
    (root,) = nest.roots
    pending = [as_product(node.args)]
    while (c := pending[-1].c) is not None and call_kind(c) in PRODUCTS and c not in lowerer.buffers:
        pending.append(as_product(c.args))
    for parts in reversed(pending):
        there = nest.in_place or parts is not pending[-1]
        _product(lowerer, root, parts, _begin(lowerer, root, parts, there, outer), outer)


def _begin(lowerer: Lowerer, root: Node, parts: Product, there: bool, outer: Scope) -> Expr:
    """What a product is added to, brought to the result's buffer unless it is `there`; the factor it still needs.

    A factor known at the call only is applied here: BLAS does not look at what it multiplies by 0.
    """
    one = _number(1, root)
    if parts.c is None or parts.beta is None:
        return _number(0, root)
    beta = lowerer.element(parts.beta, ())
    if there and _is_nonzero(parts.beta):
        return beta
    buffer, shape = lowerer.buffers[root], root.type.shape
    if there:
        place = partial(lowerer.in_buffer, root)
        lowerer.fill(buffer, shape, outer, lambda where: _scaled(beta, Load(buffer, where)), place)
    else:
        index = loop_vars(root.ndim)
        scope = lowerer.enter_all(outer, index, lowerer.extents(shape))
        value = lowerer.element(parts.c, index)
        scope.body.append(Store(buffer, lowerer.place(root, index), value if beta == one else _scaled(beta, value)))
        lowerer.leave(scope, outer)
    lowerer.finish(outer)
    return one


def _number(value: int, like: Node) -> Expr:
    return literal_const(np.array(value, like.dtype)[()], like.dtype)


def _is_nonzero(node: Node) -> bool:
    value = constant_value(node)
    return value is not None and bool(value != 0)


def _scaled(factor: Expr, value: Expr) -> Expr:
    return apply(MUL, factor, value)


def _product(lowerer: Lowerer, root: Node, parts: Product, beta: Expr, outer: Scope) -> None:
    """root = alpha * a @ b + beta * root, for every matrix of a batch: one call for the last axis of the batch."""
    a, b, suffix = parts.a, parts.b, SUFFIXES[root.dtype]
    alpha = _number(1, root) if parts.alpha is None else lowerer.element(parts.alpha, ())
    loops = loop_vars(max(root.ndim - 3, 0))
    scope = lowerer.enter_all(outer, loops, lowerer.extents(root.type.shape[: len(loops)]))
    a_start, a_steps = _place(lowerer, a, loops)
    b_start, b_steps = _place(lowerer, b, loops)
    inner = lowerer.size(a.type.shape[-1])
    extents = lowerer.extents(root.type.shape)
    start: Index = (*loops, *(ZERO for _ in extents[len(loops) :]))
    c = Pointer(lowerer.buffers[root], lowerer.place(root, start))
    if a.ndim == 1:
        down, along = b_steps
        args = (extents[0], inner, alpha, b_start, along, down, a_start, *a_steps, beta, c, ONE)
        name = vector_name(suffix)
    elif b.ndim == 1:
        args = (extents[0], inner, alpha, a_start, *a_steps, b_start, *b_steps, beta, c, ONE)
        name = vector_name(suffix)
    elif root.ndim == 2:
        args = (*extents, inner, alpha, a_start, *a_steps, b_start, *b_steps, beta, c, extents[1], ONE)
        name = f"gc_gemm_{suffix}"
    else:
        count, rows, columns = extents[-3:]
        apart = lowerer.hoist(multiply(rows, columns))
        args = (
            *(count, rows, columns, inner, alpha, a_start, *a_steps, b_start, *b_steps),
            *(beta, c, apart, columns, ONE),
        )
        name = f"gc_batched_gemm_{suffix}"
    scope.body.append(Invoke(name, args))
    lowerer.leave(scope, outer)


def _convolve(lowerer: Lowerer, node: Node, outer: Scope) -> None:
    """A convolution, of as many spatial axes as the function has: those in front have one element."""
    missing = MOST_SPATIAL - (node.ndim - 3)

    def filled(steps: Sequence[Expr]) -> tuple[Expr, ...]:
        return (*steps[:3], *(ZERO,) * missing, *steps[3:])

    scope = lowerer.enter_all(outer, (), ())
    x, w = node.args[:2]
    x_start, x_steps = _place(lowerer, x, ())
    w_start, w_steps = _place(lowerer, w, ())
    shape = lowerer.extents(node.type.shape)
    y_steps: list[Expr] = [ONE]
    for extent in reversed(shape[1:]):
        y_steps.insert(0, lowerer.hoist(multiply(extent, y_steps[0])))
    y = Pointer(lowerer.buffers[node], lowerer.place(node, tuple(ZERO for _ in shape)))
    along: list[Expr] = []
    for axis in axes_of(node):
        steps = map(integer, (axis.stride, axis.dilation, axis.spread))
        along += [*map(lowerer.size, (axis.size, axis.taps, axis.count)), *steps, lowerer.size(axis.low)]
    none = (*(ONE,) * (len(ALONG) - 1), ZERO)
    args = (
        *(*shape[:3], lowerer.size(x.type.shape[2])),
        *(x_start, *filled(x_steps), w_start, *filled(w_steps), y, *filled(y_steps), *none * missing, *along),
    )
    scope.body.append(Invoke(f"gc_conv_{SUFFIXES[node.dtype]}", args))
    lowerer.leave(scope, outer)


def _place(lowerer: Lowerer, operand: Node, loops: Index) -> tuple[Pointer, tuple[Expr, ...]]:
    """Where an operand begins for the matrices of `loops`, its first axes, and the strides of its other axes."""
    view = strided(operand, lowerer.sizing)
    extents = lowerer.extents(view.shape)
    steps: list[Expr] = [ZERO] * operand.ndim
    index: list[Expr] = []
    apart: Expr = ONE
    for part, extent in zip(reversed(view.along), reversed(extents), strict=True):
        start = lowerer.size(part.start)
        if part.axis is not None and part.axis < len(loops):
            start = add(start, multiply(integer(part.step), loops[part.axis]))
        elif part.axis is not None:
            steps[part.axis] = multiply(integer(part.step), apart)
        index.insert(0, start)
        apart = multiply(apart, extent)
    place = lowerer.in_buffer(view.base, lowerer.position(tuple(index), view.shape))
    pointer = Pointer(lowerer.buffers[view.base], place)
    return pointer, tuple(map(lowerer.hoist, steps[len(loops) :]))


def _call_python(lowerer: Lowerer, nest: Nest, node: Node, scope: Scope) -> None:
    """A call back into Python: it gets every operand and the result as pointers, then all their sizes."""
    operands = [*node.args, node]
    pointers = [Pointer(lowerer.buffers[n], lowerer.in_buffer(n, ZERO)) for n in operands]
    extents = [lowerer.size(size) for n in operands for size in n.type.shape]
    name = f"{CALLBACK}{len(lowerer.callbacks)}"
    lowerer.callbacks[name] = node
    scope.body.append(Invoke(name, (*pointers, *extents), nest.number + 1))
