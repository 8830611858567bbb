"""One shared Cholesky factor for each matrix known to be positive definite.

In: the nodes of a graph. Out: `SHARED`, a pass. `solve(a, b, assume_a="pos")` declares that `a` is positive definite;
so does `cholesky(a)` if the graph proves that `a` is symmetric (otherwise it reads one triangle and says nothing about
the rest). Other solves with `a`, its inverse and its determinants then use that factor. If `a` is not positive definite
at run time, the error is that of the declaring op, or NaN under its on_error="nan".
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir.facts import BROADCASTS, scalar_constant
from graphc.ir.lowering import Scalar
from graphc.ir.node import Node, constant_value
from graphc.ops.elementwise import elementwise
from graphc.ops.linalg import factor
from graphc.ops.linalg.matrices import solve
from graphc.ops.linalg.routine import ON_ERROR
from graphc.ops.shape import expand
from graphc.rewrite.rules.engine import CLOSE, AnyRule, Transformation, Uses
from graphc.rewrite.rules.matrices import OF_DIAGONAL, diagonal_of, shape_of, untransposed
from graphc.startup.record import record

# --- what is symmetric ------------------------------------------------------------------------------------------------

EVEN = frozenset({"abs", "sqr", "cos", "cosh"})
ODD = frozenset({"neg", "sin", "tan", "sinh", "tanh", "arctan", "arcsin", "erf"})
SIGNED = frozenset({"mul", "true_div"})
COMMUTATIVE = frozenset({"add", "mul", "equal", "not_equal", "maximum", "minimum"})
DIAGONAL = frozenset({"cast", "where", "set_gather"})
"""Ops that can build diagonal matrices."""
DEEPEST = 24
"""The search depth."""


def is_symmetric(node: Node) -> bool:
    """True if the graph proves that matrices are symmetric, bit by bit or up to the order of sums."""
    return node.ndim > 1 and _parity(node, (node.ndim - 2, node.ndim - 1), DEEPEST) == 1


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
        return _of_axes(node, axes, depth)
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


def is_elementwise(node: Node) -> bool:
    """True if each element depends only on the arguments' elements at the same index."""
    return (
        bool(node.args) and all(arg.ndim == node.ndim for arg in node.args) and isinstance(node.op.lower(node), Scalar)
    )


def _of_axes(node: Node, axes: tuple[int, int], depth: int) -> int:
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
    found = [_parity(arg, axes, depth) for arg in args]
    if 0 in found:
        return 0
    if all(each == 1 for each in found) or name in EVEN or (name == "pow" and _is_even(args[1])):
        return 1
    if name in ODD or (name in ("add", "sub") and found == [-1, -1]):
        return -1
    return found[0] * found[1] if name in SIGNED else 0


def _is_even(exponent: Node) -> bool:
    value = scalar_constant(exponent)
    return value is not None and float(value) % 2 == 0


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


# --- what the graph says ----------------------------------------------------------------------------------------------


@record()
class Declared:
    """A declared positive definite matrix: the operand to factorise (it or its transpose), and the error policy."""

    operand: Node
    on_error: str


def _base(node: Node) -> Node:
    before = untransposed(node)
    return node if before is None else before


def declared_positive(nodes: Sequence[Node]) -> dict[Node, Declared]:
    """The matrices that a graph declares positive definite."""
    sources: dict[Node, list[Node]] = {}
    for node in nodes:
        if node.op.name == "cholesky" or (node.op.name == "solve" and node.attrs["structure"] == "positive"):
            sources.setdefault(_base(node.args[0]), []).append(node)
    found: dict[Node, Declared] = {}
    for matrix, named in sources.items():
        factors = [node for node in named if node.op.name == "cholesky"]
        if len(factors) == len(named) and not is_symmetric(matrix):
            continue
        operand = (factors or named)[0].args[0]
        strict = any(node.attrs[ON_ERROR] == "raise" for node in named)
        found[matrix] = Declared(operand, "raise" if strict else "nan")
    return found


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
    found = elementwise("add" if name == "logabsdet" else "mul", diagonal, diagonal)
    if node.op.name != "cofactors":
        return found
    return elementwise("mul", factor.inverse_of_factor(lower), expand(found, (found.ndim, found.ndim + 1)))


SHARED: tuple[AnyRule, ...] = (
    Transformation(
        "shared_factor",
        ("cholesky", "solve", "inverse", "cofactors", *OF_DIAGONAL),
        _shared_factor,
        CLOSE,
        survey=declared_positive,
    ),
)
