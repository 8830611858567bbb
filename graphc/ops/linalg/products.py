"""Products of matrices: matmul and gemm.

In: nodes of one dtype, int or float. Out: op records, and functions that make their nodes. Products of matrices are
calls of `gc_gemm`, products with a vector are folds of the loops around them, unless a rewrite makes a gemm of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from graphc.arrays.dtypes import accumulated_in, accumulator, is_float
from graphc.errors import GraphTypeError, RankError
from graphc.ir import lowering, sizes
from graphc.ir.node import (
    LEAVES,
    OPS,
    Array,
    Attributes,
    Guard,
    Index,
    Lowering,
    Node,
    Size,
    Type,
    constant_value,
    define_op,
    describe,
    lazy_format,
    lazy_text,
    make,
)
from graphc.ir.types import Argument, samples
from graphc.ops import shape as shapes
from graphc.ops.elementwise import elementwise, repeated
from graphc.ops.reduce import reduce_sum
from graphc.startup.record import record

# --- matmul ---------------------------------------------------------------------------------------------------------


def _check_alike(name: str, *operands: Node) -> None:
    first = operands[0]
    for operand in operands:
        if operand.type.dtype != first.type.dtype or operand.type.dtype == "bool":
            what = " and ".join(f"{describe(o)} of type {o.type}" for o in (first, operand))
            raise GraphTypeError(f"{name}: {what}: the operands should be numbers of one dtype")


def _matmul_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    a, b = args
    what = lazy_text(lambda: f"matmul of {describe(a)} of type {a.type} and {describe(b)} of type {b.type}")
    _check_alike("matmul", a, b)
    if not a.ndim or not b.ndim or (a.ndim != b.ndim and max(a.ndim, b.ndim) > 2):
        raise RankError(f"{what}: the ranks should be 1 or 2, or equal")
    sizes.common(a.type.shape[-1], b.type.shape[-2 if b.ndim > 1 else 0], what, ", the summed axis")
    batch = zip(a.type.shape[:-2], b.type.shape[:-2], strict=True) if a.ndim > 2 else ()
    outer = [sizes.common(left, right, what, f", axis {axis}") for axis, (left, right) in enumerate(batch)]
    rows = a.type.shape[-2:-1] if a.ndim > 1 else ()
    columns = b.type.shape[-1:] if b.ndim > 1 else ()
    return Type(a.type.dtype, (*outer, *rows, *columns))


def _matmul_eval(node: Node, a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(a, b))


def _matmul_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    a, b = node.args
    match a.ndim, b.ndim:
        case 1, 1:
            wide = shapes.filled(cotangent, a.type.shape)
            return wide * b, wide * a
        case 1, _:
            return matmul(b, cotangent), outer(a, cotangent)
        case _, 1:
            return outer(cotangent, b), matmul(cotangent, a)
        case _:
            return matmul(cotangent, shapes.transpose(b)), matmul(shapes.transpose(a), cotangent)


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


def is_in_memory(node: Node) -> bool:
    """Tell whether a value stands in memory whatever becomes of it: a strided part of a variable, of an array constant,
    or of what a call or several writes make."""
    for views in ("dimshuffle", "subtensor"), ("reshape",):
        while node.op.name in views:
            node = node.args[0]
    if node.op in LEAVES:
        value = constant_value(node)
        return node.ndim > 0 and (value is None or value.size > 1)
    return isinstance(
        node.op.lower(node), lowering.Call | lowering.Recur | lowering.Segments | lowering.Writes | lowering.Part
    )


def _matmul_lower(node: Node) -> Lowering:
    """A call for matrices; a fold where there is a vector, whose loop others may share, or where it takes no longer
    than a call. As in BLAS a product with a matrix is summed in its own dtype."""
    a, b = node.args
    if a.ndim > 1 and b.ndim > 1 and a.type.dtype in lowering.SUFFIXES and not _is_tiny(a, b):
        return PRODUCT
    wide = accumulated_in(node.type.dtype) if a.ndim == b.ndim == 1 else node.type.dtype
    term = "_0 * _1" if wide == node.type.dtype else f"{wide}(_0) * {wide}(_1)"
    start = "0.0" if is_float(wide) else "0"
    axes = (0 if a.ndim == 1 else a.ndim - 1,)
    return lowering.Fold(_summed_sizes, _operands, term, (start,), ("accumulate(_0, _1)",), (wide,), axes=axes)


TINY = 64
"""Multiplications that take no longer than a call of a function."""


def _is_tiny(a: Node, b: Node) -> bool:
    """Tell whether matrices are known to be of very few elements."""
    sides = [size for size in (*a.type.shape[-2:], b.type.shape[-1]) if isinstance(size, int)]
    return len(sides) == 3 and prod(sides) <= TINY


def _matmul_guards(node: Node) -> Sequence[Guard]:
    a, b = node.args
    what = lazy_format("{} of {} and {}", shapes.label_op(node), shapes.label_origin(a), shapes.label_origin(b))
    summed = b.type.shape[-2 if b.ndim > 1 else 0]
    message = lazy_format("{}: the summed axis has sizes {{left}} and {{right}}", what)
    guards = shapes.equality_guard(a.type.shape[-1], summed, message)
    if a.ndim > 2:
        guards += shapes.shape_guards(a.type.shape[:-2], b.type.shape[:-2], shapes.OF_OTHER_SIZES, what)
    return guards


def matmul(a: Node, b: Node) -> Node:
    """The matrix product of ranks 1 and 2, or a batch of them of equal ranks and batch sizes."""
    return make(OPS["matmul"], (a, b))


def outer(a: Node, b: Node) -> Node:
    """The products of every element of vector `a` with every element of vector `b`."""
    shape = (a.type.shape[0], b.type.shape[0])
    rows, columns = (
        shapes.broadcast_to(shapes.dimshuffle(a, (0, "x")), shape),
        shapes.broadcast_to(shapes.dimshuffle(b, ("x", 0)), shape),
    )
    return rows * columns


def _matmul_batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    """One product of matrices where only one operand differs, else a batch of them, vectors as matrices of one row."""
    (a, b), (left, right) = args, node.args
    if left.ndim == right.ndim == 1 and accumulator(node.type.dtype) == node.type.dtype:
        return reduce_sum(elementwise("mul", *repeated(args, batched, size)), (1,))
    match left.ndim, right.ndim, *batched:
        case 1, _, True, False:
            return matmul(a, b)
        case 2, 1, False, True:
            return matmul(b, shapes.transpose(a))
        case 2, 1 | 2, True, False:
            _, count, length = a.type.shape
            rows = shapes.reshape(a, (sizes.multiply(size, count), length))
            return shapes.reshape(matmul(rows, b), (size, count, *b.type.shape[1:]))
    a, b = repeated(args, batched, size)
    a = shapes.expand(a, (1,)) if left.ndim == 1 else a
    b = shapes.expand(b, (2,)) if right.ndim == 1 else b
    return shapes.drop(matmul(a, b), [axis for axis, operand in ((1, left), (2, right)) if operand.ndim == 1])


define_op(
    "matmul",
    infer=_matmul_infer,
    eval=_matmul_eval,
    lower=_matmul_lower,
    vjp=_matmul_vjp,
    guards=_matmul_guards,
    cost=8.0,
    samples=samples(
        ("vectors", matmul, (4,), (4,)),
        ("vector and matrix", matmul, (4,), (4, 3)),
        ("matrix and vector", matmul, (3, 4), (4,)),
        ("matrices", matmul, (3, 4), (4, 2)),
        ("a transpose", lambda a, b: matmul(shapes.transpose(a), b), (4, 3), (4, 2)),
        ("a square", lambda a: matmul(a, a), (3, 3)),
        ("a batch", matmul, (2, 3, 4), (2, 4, 5)),
        ("two batches", matmul, (2, 2, 1, 3), (2, 2, 3, 2)),
        ("nothing summed", matmul, (3, 0), (0, 2)),
        ("no rows", matmul, (0, 3), (3, 2)),
        others=[("ints", matmul, Argument((3, 4), "int"), Argument((4, 2), "int"))],
    ),
    doc="The matrix product, of ranks 1 and 2 in any mix, or of batches of equal rank.",
    batch=_matmul_batch,
)


# --- gemm -----------------------------------------------------------------------------------------------------------


@record()
class Product:
    """alpha * a @ b + beta * c. A matmul has neither alpha nor c, a scaled product no c."""

    a: Node
    b: Node
    alpha: Node | None = None
    c: Node | None = None
    beta: Node | None = None


def as_product(args: Sequence[Node]) -> Product:
    """The arguments of a matmul or gemm."""
    match args:
        case [a, b]:
            return Product(a, b)
        case [alpha, a, b]:
            return Product(a, b, alpha)
        case [c, alpha, a, b, beta]:
            return Product(a, b, alpha, c, beta)
        case _:
            raise AssertionError(f"{len(args)} arguments")


def _product_symbol(node: Node) -> str:
    """gc_gemm, gc_gemv or gc_batched_gemm of the dtype (codegen/gemm/__init__.py)."""
    parts = as_product(node.args)
    routine = "gemv" if min(parts.a.ndim, parts.b.ndim) == 1 else "gemm" if node.ndim == 2 else "batched_gemm"
    return f"gc_{routine}_{lowering.SUFFIXES[node.type.dtype]}"


def _product_passed(node: Node) -> list[lowering.Passed]:
    """The operands of these functions, in order: a vector is the second factor to them."""
    parts = as_product(node.args)
    a, b = parts.a, parts.b
    axes = tuple(range(max(node.ndim - 3, 0), node.ndim))
    summed = lowering.Extent(a.type.shape[-1])
    alpha = lowering.Number(1, node.type.dtype) if parts.alpha is None else lowering.ByValue(parts.alpha)
    factors = [lowering.Strided(a, axes if a.ndim > 1 else (0,)), lowering.Strided(b, axes if b.ndim > 1 else (0,))]
    if a.ndim == 1:
        factors = [lowering.Strided(b, (1, 0)), factors[0]]
    elif b.ndim == 1:
        factors = [lowering.Strided(a, (0, 1)), factors[1]]
    return [
        *(lowering.Extent(node.type.shape[axis]) for axis in axes),
        summed,
        alpha,
        *factors,
        lowering.Factor(),
        lowering.Result(0, axes),
    ]


def _product_added(node: Node) -> tuple[Node, Node] | None:
    parts = as_product(node.args)
    return None if parts.c is None or parts.beta is None else (parts.c, parts.beta)


def _product_by_rows(node: Node) -> lowering.ByRows | None:
    """Some rows of a product that is added to nothing; its second factor is copied each time. Of a matrix times its own
    transpose only a triangle is computed, of all rows at once."""
    parts = as_product(node.args)
    left, right = (x.args[0] if x.op.name == "dimshuffle" else x for x in (parts.a, parts.b))
    if parts.c is not None or not parts.a.ndim == parts.b.ndim == 2 or left is right:
        return None
    return lowering.ByRows((parts.a,), sizes.product(parts.b.type.shape))


PRODUCT = lowering.Call(
    _product_symbol,
    _product_passed,
    lambda node: [*node.type.shape, as_product(node.args).a.type.shape[-1]],
    loops=lambda node: max(node.ndim - 3, 0),
    is_product=True,
    added=_product_added,
    by_rows=_product_by_rows,
)
"""The lowering of products of matrices, and of those with a vector that a rewrite has made."""


def _gemm_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    parts = as_product(args)
    c, what = parts.c, f"gemm of {describe(parts.a)} and {describe(parts.b)}"
    _check_alike("gemm", *args)
    scalars = [scalar for scalar in (parts.alpha, parts.beta) if scalar is not None]
    if any(scalar.ndim for scalar in scalars) or not is_float(parts.a.type.dtype) or parts.a.ndim + parts.b.ndim < 3:
        types = ", ".join(str(arg.type) for arg in args)
        raise GraphTypeError(f"gemm of {types}: not float matrices, or a matrix and a vector, and scalars")
    product = _matmul_infer((parts.a, parts.b), {})
    if c is None:
        return product
    if c.ndim != len(product.shape):
        raise RankError(f"{what}: {describe(c)} of type {c.type} has not the rank of the product")
    axes = enumerate(zip(c.type.shape, product.shape, strict=True))
    return Type(c.type.dtype, tuple(sizes.common(left, right, what, f", axis {axis}") for axis, (left, right) in axes))


def _gemm_eval(node: Node, *args: Array) -> Array:
    with np.errstate(all="ignore"):
        if len(args) == 3:
            return np.asarray(args[0] * np.matmul(args[1], args[2]))
        c, alpha, a, b, beta = args
        return np.asarray(alpha * np.matmul(a, b) + beta * c)


def _gemm_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    parts, axes, shape = as_product(node.args), tuple(range(node.ndim)), cotangent.type.shape
    assert parts.alpha is not None
    product = matmul(parts.a, parts.b)
    scaled = shapes.filled(parts.alpha, shape) * cotangent
    of_factors = (reduce_sum(cotangent * product, axes), *_matmul_vjp(product, scaled))
    if parts.c is None or parts.beta is None:
        return of_factors
    of_c = shapes.filled(parts.beta, shape) * cotangent
    return (of_c, *of_factors, reduce_sum(cotangent * parts.c, axes))


def _gemm_guards(node: Node) -> Sequence[Guard]:
    parts = as_product(node.args)
    product = matmul(parts.a, parts.b)
    guards = list(_matmul_guards(product))
    if parts.c is not None:
        text = "gemm of {} and {}: {} has size {{left}} along axis {axis}, not {{right}}"
        guards += shapes.shape_guards(
            parts.c.type.shape, product.type.shape, text, *map(shapes.label, (parts.a, parts.b, parts.c))
        )
    return guards


def gemm(c: Node, alpha: Node, a: Node, b: Node, beta: Node) -> Node:
    """alpha * a @ b + beta * c for floats a, b that have a product of the rank of c, and scalars alpha, beta."""
    return make(OPS["gemm"], (c, alpha, a, b, beta))


def scaled_matmul(alpha: Node, a: Node, b: Node) -> Node:
    """alpha * a @ b, as `gemm` without a third operand."""
    return make(OPS["gemm"], (alpha, a, b))


_GEMM = (Argument((3, 2)), Argument(()), Argument((3, 4)), Argument((4, 2)), Argument(()))

define_op(
    "gemm",
    infer=_gemm_infer,
    eval=_gemm_eval,
    lower=lambda node: PRODUCT,
    vjp=_gemm_vjp,
    guards=_gemm_guards,
    cost=8.0,
    samples=samples(
        ("matrices", gemm, *_GEMM),
        ("scaled", scaled_matmul, *_GEMM[1:4]),
        ("a vector", gemm, (3,), (), (3, 4), (4,), ()),
        ("a vector from the left", gemm, (4,), (), (3,), (3, 4), ()),
        ("a batch", gemm, (2, 3, 2), (), (2, 3, 4), (2, 4, 2), ()),
        (
            "transposes",
            lambda c, s, a, b, t: gemm(shapes.transpose(c), s, shapes.transpose(b), shapes.transpose(a), t),
            *_GEMM,
        ),
        ("nothing summed", gemm, (3, 2), (), (3, 0), (0, 2), ()),
    ),
    doc="alpha * a @ b + beta * c, or alpha * a @ b; made by a rewrite.",
)
