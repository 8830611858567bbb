"""Complex tensors: ops of pairs of real ones.

    z = T.zvector("z")      complex(re, im), where re and im are elements [:, 0] and [:, 1] of an input of floats
    z * w                   complex(re * w.re - im * w.im, re * w.im + im * w.re)
    z.sum()                 complex(re.sum(), im.sum())
    abs(z)                  hypot(re, im)

In: an op, of whose arguments one is a node of `complex`. Out: nodes of real ops on the parts; where the result is
complex, the pair of them. A node of `complex` is thus never an argument of another node: passes, loops and generated
code see real tensors alone. Leaves, and whatever crosses the border of a function or of a loop, are floats with a last
axis of two (`parts_of`, `from_parts`), in which a complex array of NumPy's lies in memory.

The formulas are those of NumPy's functions, where another is not named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphc import trees
from graphc.arrays.dtypes import COMPLEX, NUMPY_DTYPES, is_float
from graphc.errors import GraphTypeError, RankError
from graphc.ir import sizes
from graphc.ir.facts import below_broadcasts
from graphc.ir.node import (
    LEAVES,
    OPS,
    SHARED,
    Array,
    Attributes,
    Complex,
    Node,
    Op,
    Size,
    constant_value,
    describe,
    literal,
    make,
    pair,
    plain,
    variable,
)
from graphc.ir.pairs import is_pair
from graphc.ops.elementwise import broadcast_node, broadcast_sizes, cast as cast_real, elementwise, narrowed
from graphc.ops.index import subtensor
from graphc.ops.shape import concatenate, dimshuffle, expand, iota, reshape, zeros
from graphc.startup.hooks import HOOKS

# --- parts ------------------------------------------------------------------------------------------------------------


def real_of(x: Node) -> Node:
    """The real part of a node."""
    x = plain(x)
    return x.args[0] if type(x) is Complex else x


def imag_of(x: Node) -> Node:
    """The imaginary part of a node; zeros of a real one."""
    x = plain(x)
    return x.args[1] if type(x) is Complex else zeros(x.type.dtype, x.type.shape)


def from_parts(parts: Node) -> Node:
    """The complex tensor whose real and imaginary parts lie along the last axis of a tensor of floats."""
    axis, shape = parts.ndim - 1, parts.type.shape[:-1]
    last = [subtensor(parts, (*[0] * axis, place), (*shape, 1), (1,) * parts.ndim) for place in (0, 1)]
    whole = pair(*[dimshuffle(part, range(axis)) for part in last])
    whole.__dict__.setdefault("_parts", parts)
    if whole.name is None and parts.name is not None:
        whole.name = parts.name
        for part, word in zip(whole.args, ("real", "imag"), strict=True):
            part.name = f"{parts.name}.{word}"
    return whole


def _source(x: Node) -> Node | None:
    """The tensor of floats whose parts a complex one has, where it was restored from a file; None of a computed one."""
    part = x.args[0]
    source = part.args[0] if part.op.name == "dimshuffle" else part
    whole = source.args[0] if source.op.name == "subtensor" else part
    is_whole = whole.ndim == x.ndim + 1 and whole.type.shape[-1] == 2 and is_float(whole.type.dtype)
    return whole if is_whole and from_parts(whole) is x else None


def parts_of(x: Node) -> Node:
    """The tensor of floats in whose last axis the parts of a complex one lie."""
    known: Any = x.__dict__.get("_parts", x)
    if known is x and (source := _source(x)) is not None:
        known = x.__dict__["_parts"] = source
    if known is x:
        known = x.__dict__["_parts"] = concatenate([expand(part, (x.ndim,)) for part in x.args], x.ndim)
    return known


def shared_parts(x: Node) -> Any:
    """The shared variable that holds the parts of a complex one. Raises AttributeError for another tensor."""
    parts = x.__dict__.get("_parts")
    if not isinstance(parts, Node) or parts.op is not SHARED:
        raise AttributeError(f"{describe(x)} is no shared variable")
    return parts


def complex_variable(dtype: str, shape: Sequence[Size | None], name: str | None = None) -> Node:
    """A fresh complex input."""
    return from_parts(variable(COMPLEX[dtype], (*shape, 2), name))


class Pairs(np.ndarray[Any, np.dtype[Any]]):
    """The parts of a complex array, along a last axis of two: a view of its memory where that can be."""

    of_complex = True


def parts_in(array: Array) -> Array:
    """The floats of a complex array, with a last axis of two: a view where its memory allows."""
    whole = np.array(array, array.dtype.newbyteorder("="), order="C", copy=None)
    return whole[..., None].view(_SINGLE[whole.dtype])


_SINGLE = {NUMPY_DTYPES[name]: NUMPY_DTYPES[part] for name, part in COMPLEX.items()}


def value_of(value: Any, dtype: str | None = None) -> Complex:
    """The stand-in for a complex array, or a number, among trees: its only leaf has its parts."""
    return _shell(parts_in(np.asarray(value, dtype)).view(Pairs))


def children(x: Node) -> tuple[dict[str, Any], str | None]:
    """The leaf of a complex tensor in trees, and whether it is a number of Python's, which has no dtype of its own."""
    node = plain(x)
    return {"": parts_of(node)}, "number" if "_is_number" in node.__dict__ else None


def restored(rest: Any, parts: list[Any]) -> Any:
    """The complex tensor, or array, of its leaf in trees. Around another leaf it is a stand-in, so that the tree keeps
    its structure."""
    (value,) = parts
    if isinstance(value, Node):
        value = plain(value)
        if not is_float(value.type.dtype) or not value.ndim:
            return _shell(value)
        number = from_parts(value)
        if rest is not None:
            number.__dict__["_is_number"] = True
        return number
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim and value.shape[-1] == 2:
        double = np.dtype("complex64" if value.dtype.itemsize == 4 else "complex128")
        array = np.ascontiguousarray(value).view(np.ndarray).view(double)[..., 0]
        return array[()] if isinstance(value, Pairs) else array
    return _shell(value)


def _shell(leaf: Any) -> Complex:
    """A stand-in for a complex tensor among trees: whatever leaf it has."""
    shell: Complex = object.__new__(Complex)
    shell.__dict__["_parts"] = leaf
    return shell


def taken(tree: Any) -> Any:
    """A tree of arguments in which `value_of` stands for complex arrays and numbers."""
    if not any(is_complex_value(leaf) for leaf in trees.leaves(tree)):
        return tree
    return trees.map_leaves(lambda leaf: _taken(leaf) if is_complex_value(leaf) else leaf, tree)


def _taken(leaf: Any) -> Complex:
    if isinstance(leaf, (complex, np.ndarray, np.generic)):
        number = value_of(leaf)
        if type(leaf) is complex:
            number.__dict__["_is_number"] = True
        return number
    return _shell(type(leaf)((*leaf.shape, 2), COMPLEX[leaf.dtype.name]))


def taken_as(x: Complex, value: Any) -> Any:
    """A value for a complex tensor in a call. Raises GraphTypeError for what is no array of numbers, RankError for one
    with other axes."""
    if isinstance(value, Node):
        is_real = value.type.dtype not in COMPLEX and value.type.dtype != "bool"
        return cast(plain(value), x.type.dtype) if is_real and not value.is_tuple else value
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise GraphTypeError(
            f"argument {describe(x)}: {value!r} of type {type(value).__name__} is not an array of numbers"
        )
    if array.ndim != x.ndim:
        raise RankError(f"argument {describe(x)} must have {x.ndim} dimensions ({x.type}); got shape {array.shape}")
    return value_of(array, x.type.dtype if array.dtype.kind in "biuf" else None)


def is_complex_value(value: Any) -> bool:
    """True for an array or a number with a dtype of `COMPLEX`, or for a description of one (ShapeDtypeStruct)."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, complex) or (isinstance(dtype, np.dtype) and dtype.name in COMPLEX)


def _owner(x: Complex) -> Any:
    """As of other tensors: None of an input and of a shared variable."""
    return None if parts_of(x).op in LEAVES else HOOKS.owner(x)


def _get_value(x: Complex, borrow: bool = False, return_internal_type: bool = False) -> Any:
    """The value of a shared variable. Raises AttributeError for another tensor."""
    return restored(None, [shared_parts(x).get_value(borrow)])


def _set_value(x: Complex, new_value: Any, borrow: bool = False) -> None:
    """Change the value of a shared variable. Raises AttributeError for another tensor."""
    shared_parts(x).set_value(parts_in(np.asarray(new_value, x.type.dtype)), borrow)


_METHODS = {"owner": property(_owner), "get_value": _get_value, "set_value": _set_value, "__taken__": taken_as}
for _name, _method in _METHODS.items():
    setattr(Complex, _name, _method)


def conjugated(tree: Any) -> Any:
    """A tree in which each complex tensor is its conjugate."""
    if is_pair(tree):
        known = tree.__dict__.get("_parts")
        if isinstance(known, np.ndarray):
            return value_of(np.conj(restored(None, [known])))
        return conj(plain(tree))
    children = trees.children(tree)
    return tree if not children else trees.with_children(tree, [conjugated(part) for part in children])


# --- dtypes -----------------------------------------------------------------------------------------------------------


def cast(x: Node, dtype: str) -> Node:
    """`x` in another dtype, where one of both is complex. Raises GraphTypeError for a real dtype but bool."""
    x = plain(x)
    if dtype in COMPLEX:
        re = cast_real(real_of(x), COMPLEX[dtype])
        return pair(
            re, cast_real(x.args[1], COMPLEX[dtype]) if type(x) is Complex else zeros(re.type.dtype, re.type.shape)
        )
    if dtype == "bool":
        return elementwise("logical_or", elementwise("not_equal", x.args[0], 0), elementwise("not_equal", x.args[1], 0))
    raise GraphTypeError(
        f"{describe(x)} of type {x.type} cannot become {dtype} without the loss of its imaginary part: x.real is the "
        "real part"
    )


def has(name: str) -> bool:
    """True for an op of elements that takes complex ones."""
    return name in ELEMENTS or name == "where"


def apply(name: str, operands: Sequence[Node]) -> Node:
    """An op of elements of complex operands, which are broadcast."""
    function = ELEMENTS.get(name)
    nodes = narrowed([*map(plain, operands)])
    shape = broadcast_sizes(name, nodes)
    wide = [broadcast_node(node, shape) for node in nodes]
    return function(*wide) if function is not None else _by_parts(OPS["where"], wide, {})


# --- ops that are none of elements ------------------------------------------------------------------------------------


def on(op: Op, args: Sequence[Node], attrs: Attributes) -> Node:
    """The result of an op on complex arguments, for `make`. Raises GraphTypeError where there is none."""
    rule = RULES.get(op.name)
    if op.name in ELEMENTS:
        return ELEMENTS[op.name](*args)
    if rule is None:
        first = next(arg for arg in args if type(arg) is Complex)
        raise GraphTypeError(
            f"{op.name} of {describe(first)} of type {first.type}: there is no {op.name} of complex numbers"
        )
    return rule(op, args, attrs)


def _by_parts(op: Op, args: Sequence[Node], attrs: Attributes) -> Node:
    """An op that is linear in its floats, of each part by itself."""
    return pair(
        make(op, [real_of(arg) for arg in args], attrs),
        make(op, [imag_of(arg) if type(arg) is Complex or is_float(arg.type.dtype) else arg for arg in args], attrs),
    )


def _bilinear(op: Op, args: Sequence[Node], attrs: Attributes) -> Node:
    """A product of two arguments."""
    of = partial(make, op, attrs=attrs)
    (x, y), rest = args[:2], args[2:]
    if type(y) is not Complex:
        return pair(*(of((part, y, *rest)) for part in x.args))
    if type(x) is not Complex:
        return pair(*(of((x, part, *rest)) for part in y.args))
    (a, b), (c, d) = x.args, y.args
    return pair(
        elementwise("sub", of((a, c, *rest)), of((b, d, *rest))),
        elementwise("add", of((a, d, *rest)), of((b, c, *rest))),
    )


def _of_truth(op: Op, args: Sequence[Node], attrs: Attributes) -> Node:
    return make(op, [cast(arg, "bool") if type(arg) is Complex else arg for arg in args], attrs)


# Matrices: [[a, -b], [b, a]] stands for a + bi, and sums, products, inverses and Cholesky factors of such blocks are
# those of the numbers.


def embedded(x: Node) -> Node:
    """Matrices (..., n, m) as real ones (..., 2n, 2m), with a block of 2 x 2 for each element."""
    a, b = x.args if type(x) is Complex else (x, zeros(x.type.dtype, x.type.shape))
    last = x.ndim
    columns = [
        concatenate([expand(part, (last,)) for part in row], last) for row in ((a, elementwise("neg", b)), (b, a))
    ]  # two of (..., n, m, 2)
    whole = concatenate([expand(each, (last - 1,)) for each in columns], last - 1)  # (..., n, 2, m, 2)
    n, m = x.type.shape[-2:]
    return reshape(whole, (*x.type.shape[:-2], sizes.multiply(n, 2), sizes.multiply(m, 2)))


def stacked_rows(x: Node) -> Node:
    """Matrices (..., n, k) as real ones (..., 2n, k), the first column of each block."""
    a, b = x.args if type(x) is Complex else (x, zeros(x.type.dtype, x.type.shape))
    n, k = x.type.shape[-2:]
    whole = concatenate([expand(part, (x.ndim - 1,)) for part in (a, b)], x.ndim - 1)
    return reshape(whole, (*x.type.shape[:-2], sizes.multiply(n, 2), k))


def _unstacked(x: Node, n: Size) -> Node:
    """The matrices (..., n, k) whose `stacked_rows` are given."""
    whole = reshape(x, (*x.type.shape[:-2], n, 2, x.type.shape[-1]))
    return pair(*(whole.part((..., place, slice(None))) for place in (0, 1)))


def _solved(op: Op, args: Sequence[Node], attrs: Attributes) -> Node:
    """Systems of equations. The transpose of blocks stands for the conjugate transpose."""
    matrix, right = args
    if type(matrix) is not Complex:
        return pair(*(make(op, (matrix, part), attrs) for part in right.args))
    if attrs["structure"] == "positive":
        matrix = _hermitian(matrix)
    if attrs["transposed"]:
        matrix = conj(matrix)
    return _unstacked(make(op, (embedded(matrix), stacked_rows(right)), attrs), matrix.type.shape[-1])


def _solved_triangle(op: Op, args: Sequence[Node], attrs: Attributes) -> Node:
    """Triangular systems, as general ones: the blocks on the diagonal are no triangles."""
    matrix, right = args
    if type(matrix) is not Complex:
        return _solved(op, args, attrs)
    n = matrix.type.shape[-1]
    down, along = expand(iota(n), (1,)), expand(iota(n), (0,))
    strictly = "greater" if attrs["lower"] else "less"
    inside = elementwise(strictly if attrs["unit"] else f"{strictly}_equal", down, along)
    whole = elementwise("where", inside, matrix, 0)
    if attrs["unit"]:
        whole = elementwise("where", elementwise("equal", down, along), 1, whole)
    known = {"structure": "general", "transposed": attrs["transposed"], "on_error": attrs.get("on_error", "raise")}
    return make(OPS["solve"], (whole, right), known)


def _hermitian(x: Node) -> Node:
    """Matrices of which one triangle is read, and of the diagonal the real part."""
    n = x.type.shape[-1]
    is_diagonal = elementwise("equal", expand(iota(n), (1,)), expand(iota(n), (0,)))
    return pair(x.args[0], elementwise("where", is_diagonal, literal(0, x.args[1].type.dtype), x.args[1]))


def _of_blocks(op: Op, args: Sequence[Node], attrs: Attributes) -> Node:
    (x,) = args
    n = x.type.shape[-1]
    return unembedded(make(op, (embedded(_hermitian(x) if op.name == "cholesky" else x),), attrs), n, n)


def unembedded(embedding: Node, n: Size, m: Size) -> Node:
    """The matrices (..., n, m) whose `embedded` ones are given."""
    whole = reshape(embedding, (*embedding.type.shape[:-2], n, 2, m, 2))
    return pair(*(whole.part((..., place, slice(None), 0)) for place in (0, 1)))


def _each_second(op: Op, args: Sequence[Node], attrs: Attributes) -> Node:
    """Real numbers of a matrix that its blocks have twice, in order."""
    (x,) = args
    count = sizes.minimum(*x.type.shape[-2:])
    doubled = make(op, (embedded(_hermitian(x) if op.name == "eigvalsh" else x),), attrs)
    return reshape(doubled, (*doubled.type.shape[:-1], count, 2)).part((..., 0))


def _by_order(op: Op, args: Sequence[Node], attrs: Attributes) -> Node:
    ordered: Node = HOOKS.orders.FUNCTIONS[op.name](*args, **attrs)
    return ordered


RULES: dict[str, Callable[[Op, Sequence[Node], Attributes], Node]] = {
    **dict.fromkeys(
        "broadcast_to dimshuffle reshape concatenate assemble subtensor set_subtensor inc_subtensor gather set_gather "
        "inc_gather windows inc_windows join_windows sum running_sum segment_sum checked computed_after "
        "checkpoint_name kept_connected stop_gradient zero_grad undefined_grad named again where".split(),
        _by_parts,
    ),
    **dict.fromkeys(("matmul", "conv"), _bilinear),
    **dict.fromkeys(("all", "any"), _of_truth),
    "solve": _solved,
    "triangular_solve": _solved_triangle,
    **dict.fromkeys(("inverse", "cholesky"), _of_blocks),
    **dict.fromkeys(("eigvalsh", "svdvals"), _each_second),
    **dict.fromkeys(
        "argmax argmin argsort lexorder max min searchsorted_left searchsorted_right sort".split(), _by_order
    ),
}
"""The meaning of ops that are none of elements, by name."""


# --- elements ---------------------------------------------------------------------------------------------------------


def _op(name: str) -> Callable[..., Node]:
    return partial(elementwise, name)


_add, _sub, _mul, _div, _neg, _abs = map(_op, ("add", "sub", "mul", "true_div", "neg", "abs"))
_where, _hypot, _atan2, _exp, _log, _log1p, _sqrt = map(
    _op, ("where", "hypot", "arctan2", "exp", "log", "log1p", "sqrt")
)
_sin, _cos, _sinh, _cosh, _copysign = map(_op, ("sin", "cos", "sinh", "cosh", "copysign"))
_equal, _less, _and, _or = map(_op, ("equal", "less", "logical_and", "logical_or"))


def _parts(x: Node) -> tuple[Node, Node]:
    return real_of(x), imag_of(x)


def add(x: Node, y: Node) -> Node:
    (a, b), (c, d) = _parts(x), _parts(y)
    return pair(_add(a, c), _add(b, d))


def sub(x: Node, y: Node) -> Node:
    (a, b), (c, d) = _parts(x), _parts(y)
    return pair(_sub(a, c), _sub(b, d))


def mul(x: Node, y: Node) -> Node:
    (a, b), (c, d) = _parts(x), _parts(y)
    return pair(_sub(_mul(a, c), _mul(b, d)), _add(_mul(a, d), _mul(b, c)))


def div(x: Node, y: Node) -> Node:
    """Smith's quotient: the larger part of the divisor is divided by."""
    (a, b), (c, d) = _parts(x), _parts(y)
    is_wide = _op("greater_equal")(_abs(c), _abs(d))
    large, small = _where(is_wide, c, d), _where(is_wide, d, c)
    is_zero = _equal(large, 0)
    ratio = _div(small, _where(is_zero, 1, large))
    scale = _div(1, _where(is_zero, 0, _add(large, _mul(small, ratio))))
    first, second = _where(is_wide, a, b), _where(is_wide, b, a)
    across = _sub(second, _mul(first, ratio))
    return pair(_mul(_add(first, _mul(second, ratio)), scale), _mul(_where(is_wide, across, _neg(across)), scale))


def neg(x: Node) -> Node:
    return pair(*map(_neg, x.args))


def conj(x: Node) -> Node:
    """The conjugate."""
    return pair(x.args[0], _neg(x.args[1]))


def absolute(x: Node) -> Node:
    return _hypot(*x.args)


def reciprocal(x: Node) -> Node:
    return div(one_like(x), x)


def one_like(x: Node) -> Node:
    """A one, broadcast to a shape."""
    return cast(broadcast_node(literal(1, x.args[0].type.dtype), x.type.shape), x.type.dtype)


def times_i(x: Node) -> Node:
    return pair(_neg(x.args[1]), x.args[0])


def over_i(x: Node) -> Node:
    return pair(x.args[1], _neg(x.args[0]))


def exp(x: Node) -> Node:
    a, b = x.args
    size = _exp(a)
    is_real = _equal(b, 0)
    return pair(_where(is_real, size, _mul(size, _cos(b))), _where(is_real, b, _mul(size, _sin(b))))


def expm1(x: Node) -> Node:
    a, b = x.args
    half = _sin(_mul(b, 0.5))
    return pair(
        _sub(_mul(_op("expm1")(a), _cos(b)), _mul(2, _mul(half, half))), _where(_equal(b, 0), b, _mul(_exp(a), _sin(b)))
    )


def log(x: Node) -> Node:
    """The logarithm; of the absolute value by log1p where that is near 1."""
    a, b = map(_abs, x.args)
    large, small = _op("maximum")(a, b), _op("minimum")(a, b)
    size = _hypot(a, b)
    is_near = _and(_less(0.5, size), _less(size, 2))
    excess = _add(_mul(_sub(large, 1), _add(large, 1)), _mul(small, small))
    near = _mul(_log1p(_where(is_near, excess, 0)), 0.5)
    return pair(_where(is_near, near, _log(size)), _atan2(x.args[1], x.args[0]))


def log1p(x: Node) -> Node:
    a, b = x.args
    above = _add(a, 1)
    size = _hypot(above, b)
    is_near = _and(_less(0.5, size), _less(size, 2))
    near = _mul(_log1p(_where(is_near, _add(_mul(a, _add(a, 2)), _mul(b, b)), 0)), 0.5)
    return pair(_where(is_near, near, _log(size)), _atan2(b, above))


def _scaled(function: Callable[[Node], Node], after: float) -> Callable[[Node], Node]:
    return lambda x: pair(*(_mul(part, after) for part in function(x).args))


def sqrt(x: Node) -> Node:
    """The root with a real part that is not negative."""
    a, b = x.args
    root = _sqrt(_mul(_add(_abs(a), _hypot(a, b)), 0.5))
    is_zero = _equal(root, 0)
    other = _div(_abs(b), _mul(2, _where(is_zero, 1, root)))
    is_left = _less(a, 0)
    re, im = _where(is_left, other, root), _copysign(_where(is_left, root, other), b)
    is_infinite = _op("isinf")(b)
    return pair(_where(is_infinite, _abs(b), re), _where(is_infinite, b, im))


def sqr(x: Node) -> Node:
    return mul(x, x)


def sin(x: Node) -> Node:
    a, b = x.args
    return pair(_mul(_sin(a), _cosh(b)), _mul(_cos(a), _sinh(b)))


def cos(x: Node) -> Node:
    a, b = x.args
    return pair(_mul(_cos(a), _cosh(b)), _neg(_mul(_sin(a), _sinh(b))))


def sinh(x: Node) -> Node:
    a, b = x.args
    return pair(_mul(_sinh(a), _cos(b)), _mul(_cosh(a), _sin(b)))


def cosh(x: Node) -> Node:
    a, b = x.args
    return pair(_mul(_cosh(a), _cos(b)), _mul(_sinh(a), _sin(b)))


_FLAT = 22.0
"""The hyperbolic tangent of a larger number is 1 in double precision."""


def tanh(x: Node) -> Node:
    """Kahan's formula (Branch cuts for complex elementary functions, 1987)."""
    a, b = x.args
    is_flat = _less(_FLAT, _abs(a))
    slope = _op("tan")(b)
    beta = _add(1, _mul(slope, slope))
    s = _sinh(_where(is_flat, 0, a))
    rho = _sqrt(_add(1, _mul(s, s)))
    below = _add(1, _mul(beta, _mul(s, s)))
    tail = _mul(4, _mul(_mul(_sin(b), _cos(b)), _exp(_mul(_abs(a), -2))))
    return pair(
        _where(is_flat, _copysign(1, a), _div(_mul(_mul(beta, rho), s), below)),
        _where(is_flat, tail, _div(slope, below)),
    )


def _roots(x: Node) -> tuple[Node, Node]:
    """The roots of 1 - x and 1 + x. The sign of an imaginary part of 0 says on which side of a cut a number lies."""
    a, b = x.args
    return sqrt(pair(_sub(1, a), _neg(b))), sqrt(pair(_add(1, a), b))


def _far(x: Node, near: Node, of_far: Callable[[Node, Node], tuple[Node, Node]]) -> Node:
    """A function near 0 and, of the directions of numbers with an infinite part, far from it: C99's values. A direction
    has parts of sizes 0 and 1."""
    infinite = [_op("isinf")(part) for part in x.args]
    directions = [
        _where(_equal(part, part), _copysign(_where(is_far, literal(1, part.type.dtype), 0), part), part)
        for is_far, part in zip(infinite, x.args, strict=True)
    ]
    return _choose(_or(*infinite), pair(*of_far(*directions)), near)


def _finite(x: Node) -> Node:
    """Numbers, with 0 in place of those with an infinite part."""
    is_far = _or(*(_op("isinf")(part) for part in x.args))
    return pair(*(_where(is_far, literal(0, part.type.dtype), part) for part in x.args))


def _infinite(sign: Node) -> Node:
    return _copysign(np.inf, sign)


def arcsin(x: Node) -> Node:
    """Kahan's formula, as the other inverses."""
    near = _finite(x)
    left, right = _roots(near)
    result = pair(_atan2(near.args[0], real_of(mul(left, right))), _op("arcsinh")(imag_of(mul(conj(left), right))))
    return _far(x, result, lambda a, b: (_atan2(a, _abs(b)), _infinite(x.args[1])))


def arccos(x: Node) -> Node:
    left, right = _roots(_finite(x))
    result = pair(_mul(2, _atan2(left.args[0], right.args[0])), _op("arcsinh")(imag_of(mul(conj(right), left))))
    return _far(x, result, lambda a, b: (_atan2(_abs(b), a), _neg(_infinite(x.args[1]))))


def arccosh(x: Node) -> Node:
    a, b = _finite(x).args
    left, right = sqrt(pair(_sub(a, 1), b)), sqrt(pair(_add(a, 1), b))
    result = pair(_op("arcsinh")(real_of(mul(conj(left), right))), _mul(2, _atan2(left.args[1], right.args[0])))
    return _far(x, result, lambda a, b: (_abs(_infinite(a)), _atan2(b, a)))


def arctanh(x: Node) -> Node:
    near = _near_arctanh(_finite(x))
    return _far(x, near, lambda a, b: (_copysign(0.0, a), _where(_equal(b, b), _copysign(np.pi / 2, b), b)))


def _near_arctanh(x: Node) -> Node:
    a, b = x.args
    to_one, square = _sub(1, a), _mul(b, b)
    above = _mul(4, a)
    size = _mul(_log1p(_div(above, _add(_mul(to_one, to_one), square))), 0.25)
    return pair(size, _mul(_atan2(_mul(2, b), _sub(_mul(to_one, _add(1, a)), square)), 0.5))


def power(x: Node, y: Node) -> Node:
    """NumPy's: whole exponents below 100 that are known by products, others by the logarithm."""
    exponent = [constant_value(below_broadcasts(part)) for part in _parts(y)]
    if all(each is not None and each.size == 1 for each in exponent) and exponent[1].item() == 0:  # type: ignore[union-attr]
        whole: float = exponent[0].item()  # type: ignore[union-attr]
        if whole == int(whole) and -100 < whole < 100:
            return _whole_power(x, int(whole))
    (c, d), is_zero = _parts(y), elementwise("logical_not", cast(x, "bool"))
    result = exp(mul(y, log(_choose(is_zero, one_like(x), x))))
    none = _and(_equal(c, 0), _equal(d, 0))
    one, zero, nan = (literal(number, c.type.dtype) for number in (1, 0, np.nan))
    at_zero = _where(none, one, _where(_and(_less(0, c), _equal(d, 0)), zero, nan))
    return pair(
        _where(is_zero, at_zero, result.args[0]),
        _where(is_zero, _where(_equal(at_zero, at_zero), zero, nan), result.args[1]),
    )


def _whole_power(x: Node, number: int) -> Node:
    product, square, left = one_like(x), x, abs(number)
    is_first = True
    while left:
        if left & 1:
            product, is_first = (square if is_first else mul(product, square)), False
        left >>= 1
        square = mul(square, square) if left else square
    return reciprocal(product) if number < 0 else product


def _choose(mask: Node, x: Node, y: Node) -> Node:
    return pair(*(_where(mask, a, b) for a, b in zip(_parts(x), _parts(y), strict=True)))


def sign(x: Node) -> Node:
    """x / abs(x), 0 of 0, and a direction of a number with one infinite part."""
    size = absolute(x)
    is_zero = _equal(size, 0)
    unit = pair(*(_div(part, _where(is_zero, 1, size)) for part in x.args))
    first, second = (_op("isinf")(part) for part in x.args)
    is_one = _op("not_equal")(first, second)
    far = [_where(is_far, _copysign(1, part), 0) for is_far, part in zip((first, second), x.args, strict=True)]
    return _choose(is_one, pair(*far), unit)


def equal(x: Node, y: Node) -> Node:
    (a, b), (c, d) = _parts(x), _parts(y)
    return _and(_equal(a, c), _equal(b, d))


def _ordered(name: str, strictly: str) -> Callable[[Node, Node], Node]:
    """A comparison by real parts first, then by imaginary ones, which have to be numbers."""

    def compare(x: Node, y: Node) -> Node:
        (a, b), (c, d) = _parts(x), _parts(y)
        numbers = _and(_equal(b, b), _equal(d, d))
        return _or(_and(_op(strictly)(a, c), numbers), _and(_equal(a, c), _op(name)(b, d)))

    return compare


greater_equal, less_equal = _ordered("greater_equal", "greater"), _ordered("less_equal", "less")


def _any_part(name: str) -> Callable[[Node], Node]:
    return lambda x: _or(*(elementwise(name, part) for part in x.args))


isnan = _any_part("isnan")


def _extreme(compare: Callable[[Node, Node], Node], first_nan: bool) -> Callable[[Node, Node], Node]:
    def extreme(x: Node, y: Node) -> Node:
        return _choose(_or(isnan(x if first_nan else y), compare(x, y)), x, y)

    return extreme


maximum, minimum = _extreme(greater_equal, True), _extreme(less_equal, True)
ELEMENTS: dict[str, Callable[..., Node]] = {
    "add": add, "sub": sub, "mul": mul, "true_div": div, "neg": neg, "positive": lambda x: x, "abs": absolute,
    "reciprocal": reciprocal, "exp": exp, "expm1": expm1, "log": log, "log1p": log1p, "sqrt": sqrt, "sqr": sqr,
    "exp2": lambda x: exp(pair(*(_mul(part, float(np.log(2))) for part in x.args))),
    "log2": _scaled(log, float(np.log2(np.e))), "log10": _scaled(log, float(np.log10(np.e))),
    "sin": sin, "cos": cos, "tan": lambda x: over_i(tanh(times_i(x))), "sinh": sinh, "cosh": cosh, "tanh": tanh,
    "arcsin": arcsin, "arccos": arccos, "arctan": lambda x: over_i(arctanh(times_i(x))),
    "arcsinh": lambda x: over_i(arcsin(times_i(x))), "arccosh": arccosh, "arctanh": arctanh,
    "pow": power, "sign": sign, "equal": equal, "not_equal": lambda x, y: elementwise("logical_not", equal(x, y)),
    "greater_equal": greater_equal, "less_equal": less_equal, "less": _ordered("less", "less"),
    "greater": _ordered("greater", "greater"), "isnan": isnan, "isinf": _any_part("isinf"),
    "isfinite": lambda x: _and(*(elementwise("isfinite", part) for part in x.args)),
    "maximum": maximum, "minimum": minimum,
    "clip": lambda x, low, high: minimum(maximum(x, low), high),
    "fmax": lambda x, y: _choose(isnan(x), y, _choose(isnan(y), x, maximum(x, y))),
    "fmin": lambda x, y: _choose(isnan(x), y, _choose(isnan(y), x, minimum(x, y))),
    "rint": lambda x: pair(*(elementwise("rint", part) for part in x.args)),
    "sigmoid": lambda x: reciprocal(add(one_like(x), exp(neg(x)))),
}  # fmt: skip
"""The functions of elements, by the names of their ops: of operands that are complex and of one shape."""


HOOKS.pairs = sys.modules[__name__]
