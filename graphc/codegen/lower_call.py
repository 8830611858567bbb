"""Calls of functions from outside the source: matrix products, and the user's functions.

In: a nest of kind `call` and the `Lowerer` that writes the kernel. Out: statements at the end of the kernel's body.
A matrix product takes pointers and element strides, so that a transposed operand is read where it stands.
"""

from __future__ import annotations

import numpy as np

from graphc.codegen.callback import CALLBACK
from graphc.codegen.lower import Lowerer, literal_const
from graphc.codegen.plan import Nest, loop_vars, strided_base
from graphc.ir.loops import ONE, ZERO, Apply, Check, Expr, Invoke, Pointer, Store, Var, multiply
from graphc.ir.node import Call, Index, Node


def lower_call(lowerer: Lowerer, nest: Nest) -> None:
    """The call that computes a nest's one result."""
    (node,) = nest.roots
    lowering = node.op.lower(node)
    assert isinstance(lowering, Call)
    match lowering.kind:
        case "matmul":
            one, zero = (literal_const(np.array(v, node.dtype)[()], node.dtype) for v in (1, 0))
            _product(lowerer, node, node.args[0], node.args[1], one, zero)
        case "gemm":
            c, alpha, a, b, beta = node.args
            if not nest.taken_over:
                _copy_into(lowerer, node, c)
            _product(lowerer, node, a, b, lowerer.element(alpha, ()), lowerer.element(beta, ()))
        case _:
            _call_python(lowerer, nest, node)
    lowerer.forget()


def _copy_into(lowerer: Lowerer, node: Node, source: Node) -> None:
    index = loop_vars(node.ndim)
    scope = lowerer.enter_all(lowerer.top, index, lowerer.extents(node.type.shape))
    value = lowerer.element(source, index)
    scope.body.append(Store(lowerer.buffers[node], lowerer.position(index, node.type.shape), value))
    lowerer.leave(scope, lowerer.top)
    lowerer.forget()


def _product(lowerer: Lowerer, node: Node, a: Node, b: Node, alpha: Expr, beta: Expr) -> None:
    """node = alpha * a @ b + beta * node, for every matrix of a batch."""
    batch = loop_vars(node.ndim - 2)
    scope = lowerer.enter_all(lowerer.top, batch, lowerer.extents(node.type.shape[:-2]))
    rows, columns = lowerer.extents(node.type.shape[-2:])
    inner = lowerer.size(a.type.shape[-1])
    c = Pointer(lowerer.buffers[node], lowerer.position((*batch, ZERO, ZERO), node.type.shape), node.dtype)
    args = (
        *(rows, columns, inner, alpha),
        *_matrix(lowerer, a, batch),
        *_matrix(lowerer, b, batch),
        *(beta, c, columns, ONE),
    )
    scope.body.append(Invoke(f"gc_gemm_{'f32' if node.dtype == 'float32' else 'f64'}", args))
    lowerer.leave(scope, lowerer.top)


def _matrix(lowerer: Lowerer, operand: Node, batch: Index) -> tuple[Expr, Expr, Expr]:
    """An operand as (pointer, row stride, column stride), strides in elements."""
    base, index = strided_base(operand)
    path = loop_vars(operand.ndim)
    shape = lowerer.extents(base.type.shape)
    strides: list[Expr] = [ONE]
    for extent in reversed(shape[1:]):
        strides.insert(0, multiply(strides[0], extent))
    by_var = dict(zip(index, strides, strict=True)) if index else {}
    row, column = (by_var.get(path[axis], ZERO) for axis in (-2, -1))
    renamed = dict(zip(path, (*batch, ZERO, ZERO), strict=True))
    start = tuple(renamed[part] if isinstance(part, Var) else part for part in index)
    pointer = Pointer(lowerer.buffers[base], lowerer.position(start, base.type.shape), operand.dtype)
    return pointer, lowerer.hoist(row), lowerer.hoist(column)


def _call_python(lowerer: Lowerer, nest: Nest, node: Node) -> None:
    """A call back into Python: it gets every operand and the result as pointers, then all their sizes."""
    operands = [*node.args, node]
    pointers = [Pointer(lowerer.buffers[n], ZERO, n.dtype) for n in operands]
    extents = [lowerer.size(size) for n in operands for size in n.type.shape]
    name = f"{CALLBACK}{len(lowerer.callbacks)}"
    lowerer.callbacks[name] = node
    args = (*pointers, *extents)
    holes = ", ".join(f"_{n}" for n in range(len(args)))
    lowerer.top.body.append(Check(Apply(f"{name}({holes}) == 0", args, "bool"), nest.number + 1))
