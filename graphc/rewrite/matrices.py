"""Structured linear algebra, and factorisations for the rest.

In: nodes of `ops/linalg/matrices.py`. Out: `MATRICES`, rules that exploit structure the graph proves (no inverse where
a solve suffices; triangular, diagonal and orthogonal matrices; determinants without overflow):

    inverse(a) @ b                 ->  solve(a, b)
    solve(tril(a), b)              ->  triangular_solve(tril(a), b)
    log(abs(det(a)))               ->  logabsdet(a)

and `FACTORS`, rules that express what is left by factorisations, which equal uses share. Results are as accurate as
before but round differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from graphc.ir import sizes
from graphc.ir.facts import BROADCASTS, below_broadcasts, scalar_constant
from graphc.ir.node import OPS, Array, Node, Size, constant_value, literal, make
from graphc.ops.elementwise import elementwise
from graphc.ops.index import gather
from graphc.ops.linalg import factor
from graphc.ops.linalg.derivatives import places
from graphc.ops.linalg.matrices import detsign, inverse, logabsdet, solve
from graphc.ops.linalg.products import matmul
from graphc.ops.linalg.routine import ON_ERROR
from graphc.ops.reduce import reduce_sum, reduction
from graphc.ops.shape import broadcast_to, dimshuffle, drop, expand, iota, transpose
from graphc.rewrite.engine import CLOSE, AnyRule, Transformation, Uses, is_elementwise
from graphc.startup.record import record

Shape = Literal["lower", "upper", "diagonal", "orthogonal", ""]
"""The proved structure of a square matrix; "" for none."""

TRANSPOSED: dict[Shape, Shape] = {
    "lower": "upper", "upper": "lower", "diagonal": "diagonal", "orthogonal": "orthogonal", "": ""
}  # fmt: skip
DEEPEST = 12
"""The search depth for structure."""


# --- what a matrix is -------------------------------------------------------------------------------------------------


def shape_of(node: Node, depth: int = DEEPEST) -> Shape:
    """The structure of a matrix that the graph proves, for all values of its inputs."""
    if not depth or node.ndim < 2:
        return ""
    turned = untransposed(node)
    if turned is not None:
        return TRANSPOSED[shape_of(turned, depth - 1)]
    value = constant_value(node)
    if value is not None:
        return _of_value(value)
    look = _SHAPES.get(node.op.name)
    return look(node, depth - 1) if look is not None else ""


def untransposed(node: Node) -> Node | None:
    """The matrices that a node is the transpose of, or None."""
    swapped = (*range(node.ndim - 2), node.ndim - 1, node.ndim - 2)
    if node.ndim > 1 and node.op.name == "dimshuffle" and node.attrs["order"] == swapped:
        return node.args[0] if node.args[0].ndim == node.ndim else None
    return None


def _of_value(value: Array) -> Shape:
    if value.shape[-1] != value.shape[-2]:
        return ""
    is_lower, is_upper = (not (value - part(value)).any() for part in (np.tril, np.triu))
    return "diagonal" if is_lower and is_upper else "lower" if is_lower else "upper" if is_upper else ""


def _base(node: Node) -> Node:
    """The matrices that a node is the transpose of, or the node itself."""
    before = untransposed(node)
    return node if before is None else before


def is_square(node: Node) -> bool:
    """True if the matrices are known to be square."""
    node = _base(node)
    return node.op.name in ("cholesky", "inverse") or sizes.equal(*node.type.shape[-2:])


def _joint(left: Shape, right: Shape) -> Shape:
    """The structure of a sum or product of two matrices."""
    kinds = {left, right}
    if "" in kinds or "orthogonal" in kinds or kinds == {"lower", "upper"}:
        return ""
    return left if right == "diagonal" else right


def _of_sum(node: Node, depth: int) -> Shape:
    return _joint(*(shape_of(arg, depth) for arg in node.args))


def _of_elementwise_product(node: Node, depth: int) -> Shape:
    """Zeros stay zeros, except times NaN or infinity, where a solve returns NaN anyway."""
    structures = [shape_of(arg, depth) for arg in node.args]
    kinds = {kind for kind in structures if kind not in ("", "orthogonal")}
    if "diagonal" in kinds or kinds == {"lower", "upper"}:
        return "diagonal"
    return kinds.pop() if kinds else ""


def _of_quotient(node: Node, depth: int) -> Shape:
    structure = shape_of(node.args[0], depth)
    return structure if structure != "orthogonal" else ""


def _of_operand(node: Node, depth: int) -> Shape:
    return shape_of(node.args[0], depth)


def _of_product(node: Node, depth: int) -> Shape:
    left, right = (shape_of(arg, depth) for arg in node.args)
    return left if left == right == "orthogonal" else _joint(left, right)


def _of_item(node: Node, depth: int) -> Shape:
    (whole,), place = node.args, node.attrs["index"]
    square = sizes.equal(*node.type.shape[-2:])
    match whole.op.name, place:
        case "qr", 1:
            return "upper"
        case ("eigh", 1) | ("qr_complete", 0) | ("svd_full", 0 | 2):
            return "orthogonal"
        case ("qr", 0) | ("svd", 0 | 2):
            return "orthogonal" if square else ""
    return ""


def _is_zero(node: Node) -> bool:
    value = constant_value(below_broadcasts(node))
    return value is not None and value.size > 0 and bool((value == 0).all())


_BELOW = ("less_equal", "less")
_ABOVE = ("greater_equal", "greater")


def _of_choice(node: Node, depth: int) -> Shape:
    """where(column <= row, x, 0), as built by `tril`, `triu` and `eye`."""
    condition, kept, other = node.args
    if not _is_zero(other):
        return ""
    of_mask = _of_mask(condition)
    inner = shape_of(kept, depth)
    if of_mask and inner:
        return "diagonal" if {of_mask, inner} == {"lower", "upper"} or "diagonal" in (of_mask, inner) else of_mask
    return of_mask


def _of_cast(node: Node, depth: int) -> Shape:
    return _of_mask(node.args[0]) if node.args[0].type.dtype == "bool" else shape_of(node.args[0], depth)


def _of_mask(mask: Node) -> Shape:
    """The structure of a mask that compares row and column numbers."""
    while mask.op.name == "broadcast_to" or _only_adds_axes(mask):
        mask = mask.args[0]
    relation = mask.op.name
    if mask.ndim < 2 or relation not in ("equal", *_BELOW, *_ABOVE):
        return ""
    left, right = (_axis_of(arg) for arg in mask.args)
    if left is None or right is None or left[0] == right[0]:
        return ""
    (axis, first), (_, second) = left, right
    shift = second - first  # left's place <= right's place + shift
    if axis == mask.ndim - 2:  # rows stand on the left
        one, other = ("less", "greater") if relation in _BELOW else ("greater", "less")
        relation, shift = relation.replace(one, other), -shift
    if relation == "equal":
        return "diagonal" if shift == 0 else "lower" if shift < 0 else "upper"
    if relation in _BELOW:
        return "lower" if shift <= (0 if relation == "less_equal" else 1) else ""
    return "upper" if shift >= (0 if relation == "greater_equal" else -1) else ""


def _axis_of(node: Node) -> tuple[int, int] | None:
    """(axis, offset) if the node counts offset, offset + 1, … along one of its last two axes; else None."""
    shift, rank = 0, node.ndim
    order: list[int] | None = None
    while True:
        match node.op.name:
            case "broadcast_to":
                node = node.args[0]
            case "cast":
                node = node.args[0]
            case "add":
                numbers = [_number(arg) for arg in node.args]
                place = 0 if numbers[0] is not None else 1
                if numbers[place] is None:
                    return None
                shift, node = shift + int(numbers[place] or 0), node.args[1 - place]
            case "dimshuffle":
                order = [axis for axis, source in enumerate(node.attrs["order"]) if source != "x"]
                if len(order) != 1 or node.ndim != rank:
                    return None
                node = node.args[0]
            case "iota":
                if order is None:
                    return (rank - 1, shift) if rank == 1 else None
                return (order[0], shift) if order[0] >= rank - 2 else None
            case _:
                return None


def _number(node: Node) -> int | None:
    value = scalar_constant(node)
    return int(value) if value is not None and value.dtype.kind in "iu" else None


def _of_scatter(node: Node, depth: int) -> Shape:
    """A vector scattered to the diagonal of zeros, as `diag` builds it."""
    base, _, *indices = node.args
    if node.ndim == 2 and len(indices) == 2 and _is_zero(base) and indices[0] is indices[1]:
        return "diagonal"
    return ""


def _of_spread(node: Node, depth: int) -> Shape:
    """A matrix broadcast along leading axes."""
    (x, *_) = node.args
    known = x.ndim == node.ndim and all(
        sizes.equal(a, b) for a, b in zip(x.type.shape[-2:], node.type.shape[-2:], strict=True)
    )
    return shape_of(x, depth) if known else ""


def _of_axes(node: Node, depth: int) -> Shape:
    """A matrix with new leading axes."""
    return shape_of(node.args[0], depth) if _only_adds_axes(node) else ""


def _only_adds_axes(node: Node) -> bool:
    """True if a dimshuffle adds only axes before the last two."""
    if node.op.name != "dimshuffle":
        return False
    rank, order = node.args[0].ndim, node.attrs["order"]
    kept = tuple(axis for axis in order if axis != "x")
    return rank > 1 and kept == tuple(range(rank)) and order[-2:] == (rank - 2, rank - 1)


_SHAPES: dict[str, Callable[[Node, int], Shape]] = {
    "add": _of_sum, "sub": _of_sum, "mul": _of_elementwise_product, "true_div": _of_quotient, "neg": _of_operand,
    "matmul": _of_product, "inverse": _of_operand, "item": _of_item, "where": _of_choice, "cast": _of_cast,
    "set_gather": _of_scatter, "broadcast_to": _of_spread, "dimshuffle": _of_axes,
    "cholesky": lambda node, depth: "lower",
}  # fmt: skip


# --- products with inverses -------------------------------------------------------------------------------------------


def _inverse_of(node: Node) -> tuple[Node, bool] | None:
    """(inverse node, is transposed) if the node is an inverse or its transpose; else None."""
    base = _base(node)
    return (base, base is not node) if base.op.name == "inverse" else None


def _without_inverse(node: Node, uses: Uses) -> Node | None:
    """a^-1 b becomes solve(a, b); b a^-1 becomes the transpose of solve(a', b')."""
    left, right = node.args
    inverse = _inverse_of(left) if left.ndim > 1 else None
    if inverse is not None:
        of, turned = inverse
        b = right if right.ndim > 1 else expand(right, (1,))
        solution = solve(of.args[0], b, transposed=turned, on_error=of.attrs["on_error"])
        return solution if right.ndim > 1 else drop(solution, (1,))
    inverse = _inverse_of(right) if right.ndim > 1 else None
    if inverse is None:
        return None
    of, turned = inverse
    b = transpose(left) if left.ndim > 1 else expand(left, (1,))
    solution = solve(of.args[0], b, transposed=not turned, on_error=of.attrs["on_error"])
    return transpose(solution) if left.ndim > 1 else drop(solution, (1,))


# --- structured systems -----------------------------------------------------------------------------------------------


def diagonal_of(a: Node) -> Node:
    """The diagonals of square matrices."""
    count = iota(a.type.shape[-1])
    if a.ndim == 2:
        return gather(a, (count, count), 0)
    moved = dimshuffle(a, (a.ndim - 2, a.ndim - 1, *range(a.ndim - 2)))
    diagonal = gather(moved, (count, count), 0)
    return dimshuffle(diagonal, (*range(1, diagonal.ndim), 0))


def _structured_solve(node: Node, uses: Uses) -> Node | None:
    """A solve with a triangular, diagonal or orthogonal matrix."""
    a, b = node.args
    attrs = node.attrs
    if attrs["structure"] != "general":
        return None
    before = untransposed(a)
    if before is not None:  # as the other system, so that both have one factorisation
        return solve(before, b, transposed=not attrs["transposed"], on_error=attrs["on_error"])
    structure = shape_of(a)
    if structure == "orthogonal":
        return matmul(a if attrs["transposed"] else transpose(a), b)
    if structure == "diagonal":
        rows = expand(b, (b.ndim - 1,))
        diagonal_system = expand(diagonal_of(a), (a.ndim - 1, a.ndim))
        return drop(factor.triangular_solve(diagonal_system, rows, on_error=attrs["on_error"]), (b.ndim - 1,))
    if not structure:
        return None
    return factor.triangular_solve(
        a, b, lower=structure == "lower", transposed=attrs["transposed"], on_error=attrs["on_error"]
    )


def identity(a: Node) -> Node:
    """Identity matrices of the sizes of `a`."""
    count = iota(a.type.shape[-1])
    eye = make(OPS["cast"], (elementwise("equal", expand(count, (1,)), expand(count, (0,))),), {"dtype": a.type.dtype})
    return broadcast_to(expand(eye, range(a.ndim - 2)), a.type.shape)


def _structured_inverse(node: Node, uses: Uses) -> Node | None:
    (a,) = node.args
    if (before := untransposed(a)) is not None:
        return transpose(inverse(before, node.attrs["on_error"]))
    found = shape_of(a)
    if found == "orthogonal":
        return transpose(a)
    return _inverse_by_solve(node, uses) if found else None


def _inverse_by_solve(node: Node, uses: Uses) -> Node:
    (a,) = node.args
    return solve(a, identity(a), on_error=node.attrs["on_error"])


# --- determinants -----------------------------------------------------------------------------------------------------


def _product(x: Node) -> Node:
    return reduction("prod", x, (x.ndim - 1,))


OF_DIAGONAL: dict[str, Callable[[Node], Node]] = {
    "det": _product,
    "logabsdet": lambda diagonal: reduce_sum(elementwise("log", elementwise("abs", diagonal)), (diagonal.ndim - 1,)),
    "detsign": lambda diagonal: _product(elementwise("sign", diagonal)),
}
"""The determinant ops of a triangular matrix, as functions of its diagonal."""
_OF_FACTORS = {"det": "mul", "logabsdet": "add", "detsign": "mul"}


def _structured_determinant(node: Node, uses: Uses) -> Node | None:
    """The determinant of a triangular matrix from its diagonal; of a product with one as a product of determinants; of
    a transpose as that of the matrix."""
    (a,), name = node.args, node.op.name
    before = untransposed(a)
    if before is not None:
        return make(node.op, (before,))
    structure = shape_of(a)
    if structure in ("lower", "upper", "diagonal"):
        return OF_DIAGONAL[name](diagonal_of(a))
    if a.op.name != "matmul" or min(arg.ndim for arg in a.args) < 2 or not any(map(is_square, a.args)):
        return None
    if not any(shape_of(arg) in ("lower", "upper", "diagonal") for arg in a.args):
        return None
    left, right = (make(node.op, (arg,)) for arg in a.args)
    return elementwise(_OF_FACTORS[name], left, right)


def _log_of_determinant(node: Node, uses: Uses) -> Node | None:
    """log(abs(det(a))) becomes logabsdet(a); log(det(a)) too, with NaN for a negative determinant."""
    (x,) = node.args
    if x.op.name == "det":
        negative = elementwise("less", detsign(x.args[0]), literal(0, x.type.dtype))
        return elementwise("where", negative, literal(np.nan, x.type.dtype), logabsdet(x.args[0]))
    if x.op.name == "abs" and x.args[0].op.name == "det":
        return logabsdet(x.args[0].args[0])
    return None


MATRICES: tuple[AnyRule, ...] = (
    Transformation("product_with_inverse", ("matmul",), _without_inverse, CLOSE, ("inverse", "dimshuffle")),
    Transformation("structured_solve", ("solve",), _structured_solve, CLOSE),
    Transformation("structured_inverse", ("inverse",), _structured_inverse, CLOSE),
    Transformation("structured_determinant", tuple(OF_DIAGONAL), _structured_determinant, CLOSE),
    Transformation(
        "log_of_determinant", ("log",), _log_of_determinant, CLOSE, ("det", "abs")
    ),
)  # fmt: skip


# --- factorisations ---------------------------------------------------------------------------------------------------


def _sized(x: Node, size: Size, axes: tuple[int, ...]) -> Node:
    """`x` with a known size along `axes`, taken from the solution's type."""
    shape = list(x.type.shape)
    for axis in axes:
        shape[axis] = size if isinstance(size, int) else shape[axis]
    return broadcast_to(x, shape) if tuple(shape) != x.type.shape else x


def _solve_by_factors(node: Node, uses: Uses) -> Node | None:
    """A general solve by LU, a positive definite one by Cholesky."""
    rows = node.type.shape[-2]
    a, b = (_sized(x, rows, axes) for x, axes in zip(node.args, ((-2, -1), (-2,)), strict=True))
    on_error = node.attrs["on_error"]
    if node.attrs["structure"] == "positive":
        lower = factor.cholesky(a, on_error=on_error)
        half = factor.triangular_solve(lower, b, on_error=on_error)
        return factor.triangular_solve(lower, half, transposed=True, on_error=on_error)
    packed, order, _ = factor.lu(a)
    return _solved(packed, order, b, node.attrs["transposed"], on_error)


def _solved(packed: Node, order: Node, b: Node, turned: bool, on_error: str) -> Node:
    if not turned:
        half = factor.triangular_solve(packed, factor.permuted(b, order), unit=True, on_error=on_error)
        return factor.triangular_solve(packed, half, lower=False, on_error=on_error)
    half = factor.triangular_solve(packed, b, lower=False, transposed=True, on_error=on_error)
    whole = factor.triangular_solve(packed, half, transposed=True, unit=True, on_error=on_error)
    return factor.permuted(whole, order, inverse=True)


def _permutation_sign(pivots: Node, dtype: str) -> Node:
    """The sign of a pivot permutation: 1 or -1."""
    moved = elementwise("not_equal", pivots, iota(pivots.type.shape[-1]))
    signs = elementwise("where", moved, literal(-1, dtype), literal(1, dtype))
    return _product(signs)


def _determinant_by_factors(node: Node, uses: Uses) -> Node | None:
    (a,), name = node.args, node.op.name
    packed, _, pivots = factor.lu(a)
    diagonal = diagonal_of(packed)
    determinant = OF_DIAGONAL[name](diagonal)
    return determinant if name == "logabsdet" else determinant * _permutation_sign(pivots, a.type.dtype)


def _cofactors_by_factors(node: Node, uses: Uses) -> Node | None:
    """det(a) a^-1' by LU. Zero pivots cancel in this product, so they are replaced by a number of rounding-error size,
    which changes the cofactors by no more than that."""
    (a,) = node.args
    packed, order, pivots = factor.lu(a)
    row, column = places(packed)
    axes, info = (packed.ndim - 2, packed.ndim - 1), np.finfo(a.type.dtype)
    size = reduction("supremum", elementwise("abs", packed), axes)
    eps, tiny, zero = (literal(x, a.type.dtype) for x in (info.eps, info.tiny, 0))
    least = size * eps
    least = elementwise("where", elementwise("greater", least, zero), least, tiny)
    vanishes = elementwise("logical_and", elementwise("equal", row, column), elementwise("equal", packed, zero))
    safe = elementwise("where", vanishes, expand(least, axes), packed)
    whole = _product(diagonal_of(safe)) * _permutation_sign(pivots, a.type.dtype)
    return _solved(safe, order, identity(a), True, "nan") * expand(whole, axes)


FACTORS: tuple[AnyRule, ...] = (
    Transformation("solve_by_factors", ("solve",), _solve_by_factors, CLOSE),
    Transformation("inverse_by_factors", ("inverse",), _inverse_by_solve, CLOSE),
    Transformation("determinant_by_factors", tuple(OF_DIAGONAL), _determinant_by_factors, CLOSE),
    Transformation("cofactors_by_factors", ("cofactors",), _cofactors_by_factors, CLOSE),
)


# --- what is symmetric ------------------------------------------------------------------------------------------------

EVEN = frozenset({"abs", "sqr", "cos", "cosh"})
ODD = frozenset({"neg", "sin", "tan", "sinh", "tanh", "arctan", "arcsin", "erf"})
SIGNED = frozenset({"mul", "true_div"})
COMMUTATIVE = frozenset({"add", "mul", "equal", "not_equal", "maximum", "minimum"})
DIAGONAL = frozenset({"cast", "where", "set_gather"})
"""Ops that can build diagonal matrices."""
DEEPEST_PARITY = 24
"""The search depth."""


def is_symmetric(node: Node) -> bool:
    """True if the graph proves that matrices are symmetric, bit by bit or up to the order of sums."""
    return node.ndim > 1 and _parity(node, (node.ndim - 2, node.ndim - 1), DEEPEST_PARITY) == 1


def _parity(node: Node, axes: tuple[int, int], depth: int) -> int:
    """The factor, 1 or -1, that exchanging two axes of a node amounts to; 0 if none is proved."""
    value = constant_value(node)
    if value is not None:
        turned = value.swapaxes(*axes)
        same = turned.shape == value.shape and bool((turned == value).all())
        return 1 if same else 0
    if not depth:
        return 0
    name, depth = node.op.name, depth - 1
    if name in BROADCASTS:
        return _parity_of_axes(node, axes, depth)
    if name == "sum":
        kept = [axis for axis in range(node.args[0].ndim) if axis not in node.attrs["axes"]]
        return _parity(node.args[0], (kept[axes[0]], kept[axes[1]]), depth)
    if name == "matmul":
        left, right = node.args
        last = axes == (node.ndim - 2, node.ndim - 1) and min(left.ndim, right.ndim) > 1
        return 1 if last and are_exchanged(left, right, axes, depth) else 0
    if name in DIAGONAL and axes == (node.ndim - 2, node.ndim - 1) and shape_of(node) == "diagonal":
        return 1
    return _of_elements(node, axes, depth) if is_elementwise(node) else 0


def _parity_of_axes(node: Node, axes: tuple[int, int], depth: int) -> int:
    (x, *_) = node.args
    if node.op.name == "broadcast_to":
        if x.ndim != node.ndim:
            return 0
        spread = [x.type.shape[axis] == 1 for axis in axes]
        return 1 if all(spread) else 0 if any(spread) else _parity(x, axes, depth)
    sources = [node.attrs["order"][axis] for axis in axes]
    if sources == ["x", "x"]:
        return 1
    return 0 if "x" in sources else _parity(x, (sources[0], sources[1]), depth)


def _of_elements(node: Node, axes: tuple[int, int], depth: int) -> int:
    name, args = node.op.name, node.args
    if len(args) == 2 and name in ("sub", *COMMUTATIVE) and are_exchanged(args[0], args[1], axes, depth):
        return -1 if name == "sub" else 1
    parities = [_parity(arg, axes, depth) for arg in args]
    if 0 in parities:
        return 0
    value = scalar_constant(args[1]) if name == "pow" else None
    is_even = name in EVEN or (value is not None and float(value) % 2 == 0)
    if is_even or all(each == 1 for each in parities):
        return 1
    if name in ODD or (name in ("add", "sub") and parities == [-1, -1]):
        return -1
    return parities[0] * parities[1] if name in SIGNED else 0


def are_exchanged(left: Node, right: Node, axes: tuple[int, int], depth: int) -> bool:
    """True if one node is proved to be the other with two axes exchanged."""
    if not depth:
        return False
    depth -= 1
    if left is right:
        return _parity(left, axes, depth) == 1
    swapped = list(range(left.ndim))
    swapped[axes[0]], swapped[axes[1]] = axes[1], axes[0]
    for one, other in ((left, right), (right, left)):
        if one.op.name == "dimshuffle" and one.args[0] is other and one.attrs["order"] == tuple(swapped):
            return True
    if left.op is not right.op or left.ndim != right.ndim:
        return False
    if left.op.name == "dimshuffle":
        order = left.attrs["order"]
        return left.args[0] is right.args[0] and tuple(order[axis] for axis in swapped) == right.attrs["order"]
    if left.op.name == "broadcast_to":
        return left.args[0].ndim == left.ndim and are_exchanged(left.args[0], right.args[0], axes, depth)
    if not is_elementwise(left) or left.attrs != right.attrs:
        return False
    return all(are_exchanged(one, other, axes, depth) for one, other in zip(left.args, right.args, strict=True))


# --- positive definite matrices ---------------------------------------------------------------------------------------
# `SHARED`: one Cholesky factor for each matrix known to be positive definite. `solve(a, b, assume_a="pos")` declares
# that `a` is; so does `cholesky(a)` if the graph proves that `a` is symmetric (otherwise it reads one triangle and says
# nothing about the rest). Other solves with `a`, its inverse and its determinants then use that factor. If `a` is not
# positive definite at run time, the error is that of the declaring op, or NaN under its on_error="nan".


@record()
class Declared:
    """A declared positive definite matrix: the operand to factorise (it or its transpose), and the error policy."""

    operand: Node
    on_error: str


def declared_positive(nodes: Sequence[Node]) -> dict[Node, Declared]:
    """The matrices that a graph declares positive definite."""
    sources: dict[Node, list[Node]] = {}
    for node in nodes:
        if node.op.name == "cholesky" or (node.op.name == "solve" and node.attrs["structure"] == "positive"):
            sources.setdefault(_base(node.args[0]), []).append(node)
    declared: dict[Node, Declared] = {}
    for matrix, named in sources.items():
        factors = [node for node in named if node.op.name == "cholesky"]
        if len(factors) == len(named) and not is_symmetric(matrix):
            continue
        operand = (factors or named)[0].args[0]
        strict = any(node.attrs[ON_ERROR] == "raise" for node in named)
        declared[matrix] = Declared(operand, "raise" if strict else "nan")
    return declared


def _shared_factor(known: dict[Node, Declared], node: Node, uses: Uses) -> Node | None:
    """A solve, inverse or determinant of a declared matrix, expressed by its Cholesky factor."""
    said = known.get(_base(node.args[0]))
    if said is None:
        return None
    match node.op.name:
        case "cholesky":
            return factor.cholesky(said.operand, said.on_error)
        case "solve":
            return solve(said.operand, node.args[1], "positive", on_error=said.on_error)
        case "inverse":
            return factor.inverse_of_factor(factor.cholesky(said.operand, said.on_error))
    name = "det" if node.op.name == "cofactors" else node.op.name
    lower = factor.cholesky(said.operand, said.on_error)
    diagonal = OF_DIAGONAL[name](diagonal_of(lower))
    squared = elementwise("add" if name == "logabsdet" else "mul", diagonal, diagonal)
    if node.op.name != "cofactors":
        return squared
    return factor.inverse_of_factor(lower) * expand(squared, (squared.ndim, squared.ndim + 1))


SHARED: tuple[AnyRule, ...] = (
    Transformation(
        "shared_factor",
        ("cholesky", "solve", "inverse", "cofactors", *OF_DIAGONAL),
        _shared_factor,
        CLOSE,
        survey=declared_positive,
    ),
)
