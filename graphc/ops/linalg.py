"""Products of matrices: matmul and gemm.

In: nodes of one dtype, int or float. Out: op records, and functions that make their nodes. Products with a vector are
folds of the loops around them; products of matrices are calls of BLAS.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.dtypes import accumulated_in, is_float
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.node import (
    OPS,
    Argument,
    Array,
    Attributes,
    Call,
    Fold,
    Guard,
    Index,
    Lowering,
    Node,
    Op,
    Sample,
    Size,
    Type,
    describe,
    make,
    register,
)
from graphc.ops.elementwise import elementwise
from graphc.ops.reduce import reduce_sum
from graphc.ops.shape import broadcast_to, dimshuffle, equality_guard, filled, label, label_op, label_origin, transpose

# --- matmul ---------------------------------------------------------------------------------------------------------


def _check_alike(name: str, *operands: Node) -> None:
    first = operands[0]
    for operand in operands:
        if operand.dtype != first.dtype or operand.dtype == "bool":
            what = " and ".join(f"{describe(o)} of type {o.type}" for o in (first, operand))
            raise GraphTypeError(f"{name}: {what}: the operands should be numbers of one dtype")


def _matmul_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    a, b = args
    what = f"matmul of {describe(a)} of type {a.type} and {describe(b)} of type {b.type}"
    _check_alike("matmul", a, b)
    if not a.ndim or not b.ndim or (a.ndim != b.ndim and max(a.ndim, b.ndim) > 2):
        raise GraphTypeError(f"{what}: the ranks should be 1 or 2, or equal")
    sizes.common(a.type.shape[-1], b.type.shape[-2 if b.ndim > 1 else 0], f"{what}, the summed axis")
    batch = zip(a.type.shape[:-2], b.type.shape[:-2], strict=True) if a.ndim > 2 else ()
    outer = [sizes.common(left, right, f"{what}, axis {axis}") for axis, (left, right) in enumerate(batch)]
    rows = a.type.shape[-2:-1] if a.ndim > 1 else ()
    columns = b.type.shape[-1:] if b.ndim > 1 else ()
    return Type(a.dtype, (*outer, *rows, *columns))


def _matmul_eval(node: Node, a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(a, b))


def _matmul_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    a, b = node.args
    match a.ndim, b.ndim:
        case 1, 1:
            wide = filled(cotangent, a.type.shape)
            return elementwise("mul", wide, b), elementwise("mul", wide, a)
        case 1, _:
            return matmul(b, cotangent), outer(a, cotangent)
        case _, 1:
            return outer(cotangent, b), matmul(cotangent, a)
        case _:
            return matmul(cotangent, transpose(b)), matmul(transpose(a), cotangent)


def _operands(node: Node, index: Index, reduced: Index) -> Sequence[tuple[int, Index]]:
    """The two elements of a term; the matrix first where a vector is multiplied by it from the left."""
    a, b = node.args
    match a.ndim, b.ndim:
        case 1, 1:
            return [(0, reduced), (1, reduced)]
        case 1, _:
            return [(1, (*reduced, *index)), (0, reduced)]
        case _, 1:
            return [(0, (*index, *reduced)), (1, reduced)]
        case _:
            return [(0, (*index[:-1], *reduced)), (1, (*index[:-2], *reduced, index[-1]))]


def _summed_sizes(node: Node) -> tuple[Size, ...]:
    return node.args[0].type.shape[-1:]


def _matmul_lower(node: Node) -> Lowering:
    a, b = node.args
    if a.ndim > 1 and b.ndim > 1 and is_float(node.dtype):
        return Call("matmul")
    wide = accumulated_in(node.dtype)
    term = "_0 * _1" if wide == node.dtype else f"{wide}(_0) * {wide}(_1)"
    start = "0.0" if is_float(wide) else "0"
    axes = (0 if a.ndim == 1 else a.ndim - 1,)
    return Fold(_summed_sizes, _operands, term, (start,), ("accumulate(_0, _1)",), (wide,), axes=axes)


def _matmul_guards(node: Node) -> Sequence[Guard]:
    a, b = node.args
    what = f"{label_op(node)} of {label_origin(a)} and {label_origin(b)}"
    summed = b.type.shape[-2 if b.ndim > 1 else 0]
    guards = equality_guard(a.type.shape[-1], summed, f"{what}: the summed axis has sizes {{left}} and {{right}}")
    if a.ndim > 2:
        for axis, (left, right) in enumerate(zip(a.type.shape[:-2], b.type.shape[:-2], strict=True)):
            guards += equality_guard(left, right, f"{what}: axis {axis} has sizes {{left}} and {{right}}")
    return guards


def matmul(a: Node, b: Node) -> Node:
    """The matrix product of ranks 1 and 2, or a batch of them of equal ranks and batch sizes."""
    return make(OPS["matmul"], (a, b))


def outer(a: Node, b: Node) -> Node:
    """The products of every element of vector `a` with every element of vector `b`."""
    shape = (a.type.shape[0], b.type.shape[0])
    rows, columns = broadcast_to(dimshuffle(a, (0, "x")), shape), broadcast_to(dimshuffle(b, ("x", 0)), shape)
    return elementwise("mul", rows, columns)


register(
    Op(
        "matmul",
        _matmul_infer,
        _matmul_eval,
        _matmul_lower,
        _matmul_vjp,
        _matmul_guards,
        cost=8.0,
        samples=(
            Sample("vectors", matmul, (Argument((4,)), Argument((4,)))),
            Sample("vector and matrix", matmul, (Argument((4,)), Argument((4, 3)))),
            Sample("matrix and vector", matmul, (Argument((3, 4)), Argument((4,)))),
            Sample("matrices", matmul, (Argument((3, 4)), Argument((4, 2)))),
            Sample("a transpose", lambda a, b: matmul(transpose(a), b), (Argument((4, 3)), Argument((4, 2)))),
            Sample("a square", lambda a: matmul(a, a), (Argument((3, 3)),)),
            Sample("a batch", matmul, (Argument((2, 3, 4)), Argument((2, 4, 5)))),
            Sample("two batches", matmul, (Argument((2, 2, 1, 3)), Argument((2, 2, 3, 2)))),
            Sample("nothing summed", matmul, (Argument((3, 0)), Argument((0, 2)))),
            Sample("no rows", matmul, (Argument((0, 3)), Argument((3, 2)))),
            Sample("ints", matmul, (Argument((3, 4), "int"), Argument((4, 2), "int")), differentiable=False),
        ),
        doc="The matrix product, of ranks 1 and 2 in any mix, or of batches of equal rank.",
    )
)


# --- gemm -----------------------------------------------------------------------------------------------------------


def _gemm_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    c, alpha, a, b, beta = args
    _check_alike("gemm", *args)
    if (c.ndim, alpha.ndim, a.ndim, b.ndim, beta.ndim) != (2, 0, 2, 2, 0) or not is_float(c.dtype):
        raise GraphTypeError(
            f"gemm of {', '.join(str(arg.type) for arg in args)}: not three float matrices and two scalars"
        )
    what = f"gemm of {describe(a)} and {describe(b)}"
    sizes.common(a.type.shape[1], b.type.shape[0], f"{what}, the summed axis")
    rows = sizes.common(c.type.shape[0], a.type.shape[0], f"{what}, the rows")
    columns = sizes.common(c.type.shape[1], b.type.shape[1], f"{what}, the columns")
    return Type(c.dtype, (rows, columns))


def _gemm_eval(node: Node, c: Array, alpha: Array, a: Array, b: Array, beta: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(alpha * np.matmul(a, b) + beta * c)


def _gemm_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    c, alpha, a, b, beta = node.args
    scaled = elementwise("mul", filled(alpha, cotangent.type.shape), cotangent)
    return (
        elementwise("mul", filled(beta, cotangent.type.shape), cotangent),
        reduce_sum(elementwise("mul", cotangent, matmul(a, b)), (0, 1)),
        matmul(scaled, transpose(b)),
        matmul(transpose(a), scaled),
        reduce_sum(elementwise("mul", cotangent, c), (0, 1)),
    )


def _gemm_guards(node: Node) -> Sequence[Guard]:
    c, _, a, b, _ = node.args
    what = f"gemm of {label(a)} and {label(b)}"
    return [
        *equality_guard(a.type.shape[1], b.type.shape[0], f"{what}: the summed axis has sizes {{left}} and {{right}}"),
        *equality_guard(c.type.shape[0], a.type.shape[0], f"{what}: {label(c)} has {{left}} rows, not {{right}}"),
        *equality_guard(c.type.shape[1], b.type.shape[1], f"{what}: {label(c)} has {{left}} columns, not {{right}}"),
    ]


def gemm(c: Node, alpha: Node, a: Node, b: Node, beta: Node) -> Node:
    """alpha * a @ b + beta * c for matrices a, b, c and scalars alpha, beta."""
    return make(OPS["gemm"], (c, alpha, a, b, beta))


_GEMM = (Argument((3, 2)), Argument(()), Argument((3, 4)), Argument((4, 2)), Argument(()))

register(
    Op(
        "gemm",
        _gemm_infer,
        _gemm_eval,
        lambda node: Call("gemm"),
        _gemm_vjp,
        _gemm_guards,
        cost=8.0,
        samples=(
            Sample("matrices", gemm, _GEMM),
            Sample("transposes", lambda c, s, a, b, t: gemm(transpose(c), s, transpose(b), transpose(a), t), _GEMM),
            Sample(
                "nothing summed",
                gemm,
                (Argument((3, 2)), Argument(()), Argument((3, 0)), Argument((0, 2)), Argument(())),
            ),
        ),
        doc="alpha * a @ b + beta * c; made by a rewrite.",
    )
)
