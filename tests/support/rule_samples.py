"""Graphs on which each rule that is a function fires, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from graphc.ir import sizes
from graphc.ir.body import item
from graphc.ir.node import OPS, Argument, Node, Sample, Size, literal, make
from graphc.ir.walk import as_size_node
from graphc.ops.conv import convolve
from graphc.ops.elementwise import elementwise
from graphc.ops.identity import with_elements
from graphc.ops.index import inc_gather, inc_subtensor, set_subtensor, subtensor
from graphc.ops.linalg.derivatives import diagonal_matrix, triangle
from graphc.ops.linalg.factor import cholesky
from graphc.ops.linalg.matrices import cofactors, det, detsign, inverse, logabsdet, solve
from graphc.ops.linalg.products import matmul, scaled_matmul
from graphc.ops.recur import linear_recurrence, running_extreme, running_sum
from graphc.ops.reduce import reduce_max, reduce_min, reduce_sum, reduced_sizes, reduction, restore
from graphc.ops.scalar import cast, stop_gradient
from graphc.ops.shape import broadcast_to, concatenate, dimshuffle, expand, filled, iota, reshape, transpose, zeros
from graphc.tensor.elementary import where

Samples: TypeAlias = Mapping[str, Sequence[Sample]]


def sample(build: Callable[..., Node], *args: Argument) -> Sample:
    return Sample("", build, args)


# --- algebra -------------------------------------------------------------------------------------------------------

_SHAPE = (2, 3)
_FLOATS = Argument(_SHAPE)

_POSITIVE = Argument(_SHAPE, "float", 0.5, 2.0)
_INTS = Argument(_SHAPE, "int")

_BOOLS = Argument(_SHAPE, "bool")
_TWO = literal([1.5, -2.0])


def _power(exponent: int, x: Node) -> Node:
    return x**exponent


def _beside(x: Node, y: Node) -> Node:
    """An element of a vector beside each row of a matrix."""
    return broadcast_to(dimshuffle(x, (0, "x")), y.type.shape)


def _line(x: Node, w: Node) -> Node:
    """Signals (image, group, channel, element) convolved with kernels."""
    return convolve(x, w, (1,), (1,), (0,), (0,))


ALGEBRA: Samples = {
    "stop_gradient": [sample(stop_gradient, _FLOATS)],
    "positive": [sample(lambda x: +x, _FLOATS)],
    "checked_sizes": [sample(lambda x: with_elements(x, 0, 1, "rows") * 2, _FLOATS)],
    "fold_constants": [sample(lambda x: x + elementwise("exp", _TWO), Argument((2,)))],
    "fold_numbers": [sample(lambda x: x + elementwise("exp", filled(literal(2.0), x.type.shape)), _FLOATS)],
    "identity": [
        sample(lambda x: x * 1, _FLOATS),
        sample(lambda x: 1 * x, _FLOATS),
        sample(lambda x: x - 0, _FLOATS),
        sample(lambda x: x + -0.0, _FLOATS),
        sample(lambda x: x / 1, _FLOATS),
        sample(lambda x: x**1, _FLOATS),
        sample(lambda x: 0 + x, _INTS),
        sample(lambda x: x << 0, _INTS),
        sample(lambda x: x | False, _BOOLS),
    ],
    "identity_of_reals": [sample(lambda x: x + 0.0, _FLOATS), sample(lambda x: x - -0.0, _FLOATS)],
    "zero": [sample(lambda x: x * 0, _INTS), sample(lambda x: x & False, _BOOLS)],
    "zero_of_reals": [sample(lambda x: x * 0, _FLOATS)],
    "twice": [
        sample(lambda x: elementwise("neg", -x), _FLOATS),
        sample(lambda x: ~~x, _INTS),
        sample(lambda x: abs(abs(x)), _FLOATS),
        sample(lambda x: elementwise("floor", elementwise("floor", x)), _FLOATS),
    ],
    "inverse": [
        sample(lambda x: elementwise("log", elementwise("exp", x)), _FLOATS),
        sample(lambda x: elementwise("arctanh", elementwise("tanh", x)), _FLOATS),
        sample(lambda x: elementwise("sinh", elementwise("arcsinh", x)), _FLOATS),
        sample(lambda x: elementwise("deg2rad", elementwise("rad2deg", x)), _FLOATS),
    ],
    "inverse_of_reals": [sample(lambda x: elementwise("exp", elementwise("log", x)), _POSITIVE)],
    "where_known": [sample(lambda x, y: where(filled(literal(True), x.type.shape), x, y), _FLOATS, _FLOATS)],
    "weak_product": [sample(lambda x: elementwise("strong_mul", -0.5, x), _FLOATS)],
    "join_factors": [
        sample(lambda x: 3.0 * (x * 0.7), _FLOATS),
        sample(lambda x: 0.25 * (x * 3.0), _FLOATS),
        sample(lambda x: 1e-20 * (x * 0.3), _FLOATS),
        sample(lambda x: 3 * (x * 5), _INTS),
    ],
    "cancel_factors": [
        sample(lambda x, y: (x * 0.5) * (2.0 * y), _FLOATS, _FLOATS),
        sample(lambda x: (x * -4.0) * (0.25 * x), _FLOATS),
        sample(lambda x, y: _beside(x * 0.5, y) * (y * -2.0), Argument((2,)), _FLOATS),
    ],
    "negate_factor": [sample(lambda x: -(x * 3), _FLOATS)],
    "collect": [sample(lambda x: 3.0 * x + x * 0.7, _FLOATS), sample(lambda x: x + x * 5, _INTS)],
    "join_quotients": [
        sample(lambda x, y: 0.5 / x - y / x, _POSITIVE, _FLOATS),
        sample(lambda x, y: y / x + 3.0 / x, _POSITIVE, _FLOATS),
    ],
    "pow_whole": [
        *(sample(partial(_power, exponent), _FLOATS) for exponent in (5, 9, -3, -4)),
        sample(partial(_power, 7), _INTS),
    ],
    "pow_whole_of_reals": [sample(partial(_power, 12), _FLOATS), sample(partial(_power, -13), _POSITIVE)],
    "div_power_of_two": [sample(lambda x: x / 8, _FLOATS)],
    "div_constant": [sample(lambda x: x / 3, _FLOATS)],
    "cast_twice": [
        sample(lambda x: cast(cast(cast(x, "int8"), "float64"), "float32"), Argument(_SHAPE, "int", -100, 100)),
        sample(lambda x: cast(cast(cast(x, "int8"), "int32"), "int64"), _INTS),
        sample(lambda x: cast(cast(x > 0, "float32"), "float64"), _FLOATS),
    ],
}

# --- linear --------------------------------------------------------------------------------------------------------


def _positive(*shape: int) -> Argument:
    """Nothing cancels: rounding errors stay small beside the result."""
    return Argument(shape, "float", 0.5, 2.0)


_A, _B = _positive(3, 4), _positive(4, 2)


def _rows(v: Node) -> Node:
    """A matrix of three rows that are the same vector."""
    return broadcast_to(dimshuffle(v, ("x", 0)), (3, v.type.shape[0]))


def _columns(v: Node) -> Node:
    """A matrix of three columns that are the same vector."""
    return broadcast_to(dimshuffle(v, (0, "x")), (v.type.shape[0], 3))


LINEAR: Samples = {
    "product_with_a_number": [
        Sample("", lambda a: matmul(a, filled(literal(2.0, a.dtype), (a.type.shape[1], 3))), (_A,)),
        Sample("", lambda a: matmul(filled(literal(1.0, a.dtype), (a.type.shape[0],)), a), (_A,)),
        Sample("", lambda a: matmul(a, filled(literal(1.0, a.dtype), (a.type.shape[0], 3))), (_positive(4),)),
    ],
    "number_times_operand": [
        Sample("", lambda a, b: matmul(2.5 * transpose(a), b), (_positive(4, 3), _B)),
        Sample("", lambda a, b: matmul(a, -3 * b), (_A, _B)),
    ],
    "product_of_equal_rows": [
        Sample("", lambda v, b: matmul(_rows(v), b), (_positive(4), _B)),
        Sample("", lambda a, v: matmul(a, _columns(v)), (_A, _positive(4))),
    ],
    "transpose_of_product": [
        Sample("", lambda a, b: transpose(matmul(a, transpose(b))), (_A, _positive(2, 4))),
        Sample("", lambda a, b: transpose(matmul(transpose(a), b)), (_positive(2, 3, 4), _positive(2, 3, 5))),
    ],
    "outer_product": [
        Sample("", lambda a, b: matmul(expand(a, (1,)), expand(b, (0,))), (_positive(3), _positive(2))),
        Sample("", lambda a, b: matmul(expand(a, (2,)), expand(b, (1,))), (_positive(4, 3), _positive(4, 2))),
    ],
    "products_of_rows": [
        Sample("", lambda a, b: matmul(expand(a, (1,)), expand(b, (2,))), (_positive(4, 3), _positive(4, 3))),
    ],
    "order_of_products": [
        Sample("", lambda a, b, v: matmul(matmul(a, b), v), (_A, _B, _positive(2))),
        Sample("", lambda a, b, v: matmul(v, matmul(a, b)), (_A, _B, _positive(3))),
        Sample(
            "",
            lambda a, b, c: matmul(matmul(reshape(a, (3, 9)), reshape(b, (9, 8))), reshape(c, (8, 2))),
            (_positive(27), _positive(72), _positive(16)),
        ),
    ],
    "matrix_and_vector": [
        Sample("", matmul, (_A, _positive(4))),
        Sample("", lambda a, v: matmul(v, transpose(a)), (_A, _positive(4))),
    ],
    "scaled_product": [
        Sample("", lambda a, b: 2.5 * matmul(a, b), (_A, _B)),
        Sample("", lambda a, b, s: -(s * matmul(a, b)), (_A, _B, _positive())),
        Sample("", lambda a, b: matmul(transpose(a), b) / 8, (_positive(2, 3, 4), _positive(2, 3, 5))),
    ],
    "gemm": [
        Sample("", lambda a, b, c: matmul(a, b) + c, (_A, _B, _positive(3, 2))),
        Sample("", lambda a, b, c: c - 0.1 * matmul(a, b), (_A, _B, _positive(3, 2))),
        Sample("", lambda a, b, c, s: s * matmul(a, b) - 3 * c, (_A, _B, _positive(3, 2), _positive())),
        Sample("", lambda a, b, c: matmul(a, b) - matmul(a, c), (_A, _B, _positive(4, 2))),
        Sample("", lambda a, x, y: y - scaled_matmul(literal(0.2, a.dtype), a, x), (_A, _positive(4), _positive(3))),
    ],
}

# --- moments -------------------------------------------------------------------------------------------------------


def _as_number(size: Size, like: Node) -> Node:
    """A size as a number of the dtype and sizes of a node."""
    return filled(cast(as_size_node(size), like.dtype), like.type.shape)


def _spread(*axes: int) -> Sample:
    """Squared deviations from the mean of columns that lie far from 0, or of all elements."""

    def build(x: Node) -> Node:
        total = reduce_sum(x, axes)
        mean = elementwise("true_div", total, _as_number(sizes.product(reduced_sizes(total)), total))
        return reduce_sum(elementwise("sqr", elementwise("sub", x, restore(total, mean))), axes)

    return Sample(f"over {axes}", build, (Argument((100, 3), "float", 30.0, 32.0),))


def _normalised(*axes: int, sign: str = "add") -> Sample:
    """The sum of what a normalisation's gradient is made of: elements, and deviations times something of each row."""

    def build(x: Node, a: Node) -> Node:
        total = reduce_sum(x, axes)
        mean = elementwise("true_div", total, _as_number(sizes.product(reduced_sizes(total)), total))
        apart = elementwise("sub", x, restore(total, mean))
        slope = restore(total, reduce_sum(elementwise("mul", a, apart), axes))
        half = filled(literal(0.5, x.dtype), x.type.shape)
        terms = elementwise(sign, a, elementwise("mul", slope, elementwise("mul", half, apart)))
        return reduce_sum(elementwise("neg", terms), axes)

    positive = Argument((4, 3), "float", 1.0, 2.0)
    return Sample(f"over {axes}", build, (positive, positive))


MOMENTS: Samples = {
    "deviations_in_one_pass": (_spread(0), _spread(0, 1)),
    "sum_apart": (_normalised(1), _normalised(0, sign="sub"), _normalised(0, 1)),
}

# --- pairs ---------------------------------------------------------------------------------------------------------


def _squares(x: Node, y: Node) -> Node:
    """The squared differences of all pairs of rows."""
    shape = (x.type.shape[0], y.type.shape[0], x.type.shape[1])
    left, right = (broadcast_to(dimshuffle(*pair), shape) for pair in ((x, (0, "x", 1)), (y, ("x", 0, 1))))
    return elementwise("sqr", elementwise("sub", left, right))


def _pairs(*axes: int, least: bool = False) -> Sample:
    arguments: Sequence[Argument] = (Argument((4, 3), "float", 0.5, 2.0), Argument((5, 3), "float", 0.5, 2.0))
    reduce = reduce_min if least else reduce_sum
    return Sample(f"over {axes}", lambda x, y: reduce(_squares(x, y), axes), tuple(arguments))


def _of_one_array() -> Sample:
    """All pairs of elements of each row, of which one comes before the other."""

    def build(x: Node) -> Node:
        rows, count = x.type.shape
        position = cast(iota(count), x.dtype)
        down, right = (dimshuffle(position, order) for order in (("x", 0, "x"), ("x", "x", 0)))
        between = elementwise("sub", *(broadcast_to(one, (1, count, count)) for one in (down, right)))
        wide = [dimshuffle(x, (0, 1, "x")), dimshuffle(x, (0, "x", 1)), between]
        left, other, gap = (broadcast_to(one, (rows, count, count)) for one in wide)
        return reduce_sum(elementwise("mul", elementwise("sub", left, other), gap), (2,))

    return Sample("of one array", build, (Argument((4, 3), "float", 0.5, 2.0),))


def _of_transposes(op: str) -> Sample:
    """Each row of a transposed matrix, with a number for each of its elements."""

    def build(x: Node, a: Node) -> Node:
        turned = dimshuffle(x, (1, 0))
        wide = broadcast_to(dimshuffle(a, ("x", 0)), turned.type.shape)
        return reduction(op, elementwise("exp", elementwise("mul", turned, wide)), (1,))

    return Sample(op, build, (Argument((4, 3), "float", 0.5, 2.0), Argument((4,), "float", 0.5, 2.0)))


PAIRS: Samples = {
    "rows_of_transposes": (_of_transposes("sum"), _of_transposes("min")),
    "exchange_pairs": (_pairs(2), _pairs(1), _pairs(0), _pairs(2, least=True), _of_one_array()),
}

# --- scatter -------------------------------------------------------------------------------------------------------


def _step(op: str, factor: float) -> Sample:
    """A table, and rows added to it at indices that repeat."""

    def build(table: Node, rows: Node, indices: Node) -> Node:
        scattered = inc_gather(zeros(table.dtype, table.type.shape), rows, (indices,), 0)
        scaled = elementwise("mul", filled(literal(factor, table.dtype), table.type.shape), scattered)
        return elementwise(op, table, scattered if factor == 1.0 else scaled)

    table, rows = Argument((4, 3), "float", 0.5, 2.0), Argument((5, 3), "float", 0.1, 0.2)
    return Sample(f"{op} of {factor} times", build, (table, rows, Argument((5,), "index", 0, 3)))


def _pieces(x: Node, y: Node) -> Node:
    """Two regions that overlap, as the gradient of two slices has them."""
    first, then = (inc_subtensor(zeros(x.dtype, (5,)), piece, (at,), (1,)) for piece, at in ((x, 0), (y, 2)))
    return elementwise("add", first, then)


def _in_zeros(shape: tuple[int, ...], *regions: tuple[tuple[int, ...], tuple[int, ...]]) -> Sample:
    """Regions of an array of zeros: where they begin, and their sizes."""

    def build(*pieces: Node) -> Node:
        result = zeros(pieces[0].dtype, shape)
        for piece, (start, extents) in zip(pieces, regions, strict=True):
            result = inc_subtensor(result, reshape(piece, extents), start, (1,) * len(shape))
        return result

    return Sample("", build, tuple(Argument(extents) for _, extents in regions))


SCATTER: Samples = {
    "regions_of_zeros": (
        _in_zeros((5,), ((2,), (3,)), ((0,), (2,))),
        _in_zeros((2, 4), ((0, 3), (2, 1)), ((0, 0), (2, 3))),
        _in_zeros((3,), ((0,), (3,))),
    ),
    "scatter_into_sum": (
        _step("add", 1.0),
        _step("sub", 1.0),
        _step("sub", 0.25),
        _step("add", -0.5),
        Sample("regions", _pieces, (Argument((3,)), Argument((3,)))),
    ),
}

# --- stable --------------------------------------------------------------------------------------------------------

_WIDE = Argument((2, 3), "float", -50.0, 50.0)


def _sigmoid(x: Any) -> Any:
    return elementwise("sigmoid", x)


STABLE: Samples = {
    "sigmoid_poles": [
        sample(lambda x, g: (g / _sigmoid(x)) * (_sigmoid(x) * (1 - _sigmoid(x))), _WIDE, _FLOATS),
        sample(lambda x, g: -(g / (1 - _sigmoid(x))) * (_sigmoid(x) * _sigmoid(-x)), _WIDE, _FLOATS),
        sample(lambda x, g: g * (g / (1 + -_sigmoid(x))) * (_sigmoid(x) * (1 - _sigmoid(x))), _WIDE, _FLOATS),
        sample(
            lambda x, g, h: (g / _sigmoid(x) + -(h / (1 - _sigmoid(x))) + h) * (_sigmoid(x) * (1 - _sigmoid(x))),
            _WIDE,
            _FLOATS,
            _FLOATS,
        ),
        sample(
            lambda x, g, h: (g / _sigmoid(x) - (h / (1 - _sigmoid(x)) - g)) * (_sigmoid(x) * (1 - _sigmoid(x))),
            _WIDE,
            _FLOATS,
            _FLOATS,
        ),
    ],
}

# --- views ---------------------------------------------------------------------------------------------------------


def _changed(op: Callable[..., Node], *starts: int) -> Callable[..., Node]:
    """A part of an array of which these regions of two elements were changed."""

    def build(x: Node, y: Node) -> Node:
        for start in starts:
            x = op(x, reshape(y, (2,)), (start,), (1,))
        return subtensor(x, (2,), (2,), (1,))

    return build


def _matrix(x: Node, y: Node) -> list[Size]:
    return [y.type.shape[0], x.type.shape[0]]


def _outer(x: Node, y: Node) -> Node:
    return broadcast_to(dimshuffle(x, ("x", 0)), _matrix(x, y))


VIEWS: Samples = {
    "dimshuffle_twice": [
        sample(lambda x: transpose(transpose(x)), _FLOATS),
        sample(lambda x: dimshuffle(dimshuffle(x, (1, "x", 0)), (2, 0)), _FLOATS),
    ],
    "dimshuffle_of_broadcast": [
        sample(
            lambda x, y: transpose(broadcast_to(dimshuffle(x, ("x", 0)), _matrix(x, y))),
            Argument((3,)),
            Argument((2,)),
        )
    ],
    "broadcast_twice": [
        sample(
            lambda x, y: broadcast_to(
                broadcast_to(dimshuffle(x, ("x", "x")), [1, y.type.shape[0]]), [3, y.type.shape[0]]
            ),
            Argument(()),
            Argument((2,)),
        ),
    ],
    "expansion_last": [
        sample(lambda x: 2 * dimshuffle(x, (0, "x", 1)) + dimshuffle(-x, (0, "x", 1)), _FLOATS),
        sample(lambda x: cast(dimshuffle(x, ("x", "x")) > 1, "float64"), Argument(())),
    ],
    "reshape_twice": [
        sample(lambda x: reshape(reshape(x, (3, 2)), (6,)), _FLOATS),
        sample(lambda x: reshape(reshape(x, (6,)), x.type.shape), _FLOATS),
    ],
    "subtensor_twice": [
        sample(lambda x: subtensor(subtensor(x, (1,), (4,), (2,)), (3,), (2,), (-2,)), Argument((9,))),
        sample(lambda x: subtensor(subtensor(x, (4,), (5,), (-1,)), (4,), (5,), (-1,)), Argument((5,))),
    ],
    "subtensor_of_transpose": [
        sample(lambda x: subtensor(transpose(x), (1, 2), (2, 2), (1, -2)), Argument((4, 3))),
        sample(lambda x: subtensor(dimshuffle(x, (2, 0, 1)), (3, 0, 1), (2, 2, 1), (-3, 1, 2)), Argument((2, 3, 4))),
    ],
    "running_of_transpose": [
        sample(lambda x: running_sum(transpose(x), 0, True), Argument((4, 3))),
        sample(lambda x: running_extreme(dimshuffle(x, (2, 0, 1)), "minimum", 1), Argument((2, 3, 4))),
        sample(lambda x, y: linear_recurrence(transpose(x), transpose(y), 1), Argument((2, 5)), Argument((2, 5))),
    ],
    "subtensor_of_concatenation": [
        sample(
            lambda x, y: subtensor(concatenate((reshape(x, (3,)), reshape(y, (4,))), 0), (6,), (2,), (-2,)),
            Argument((3,)),
            Argument((4,)),
        ),
        sample(
            lambda x, y: subtensor(concatenate((x, y), 0), (x.type.shape[0],), y.type.shape, (1,)),
            Argument((3,)),
            Argument((4,)),
        ),
    ],
    "subtensor_of_changed": [
        sample(_changed(inc_subtensor, 2, 0, 4, 2), Argument((6,)), Argument((2,))),
        sample(_changed(set_subtensor, 0, 2), Argument((6,)), Argument((2,))),
    ],
    "transpose_last": [
        sample(lambda x: elementwise("exp", transpose(x)) * 2, _FLOATS),
        sample(lambda x: dimshuffle(x, (2, 0, 1)) - dimshuffle(x * x, (2, 0, 1)), Argument((2, 3, 2))),
    ],
    "conv_of_transpose": [
        sample(lambda x, w: transpose(_line(x, w)), Argument((2, 1, 2, 5)), Argument((1, 3, 2, 2))),
        sample(lambda x, w: dimshuffle(_line(x, w), (0, 2, "x", 3)), Argument((2, 1, 2, 5)), Argument((1, 3, 2, 2))),
    ],
    "reduction_of_transpose": [
        sample(lambda x: reduce_sum(transpose(x), (1,)), _FLOATS),
        sample(lambda x: reduce_max(dimshuffle(x, (2, 0, 1)), (1,)), Argument((2, 3, 2))),
        sample(lambda x: reduce_min(dimshuffle(x, (1, 2, 0)), (0, 2)), Argument((2, 3, 2), "int", -9, 9)),
    ],
    "reduce_twice": [
        sample(lambda x: reduce_sum(reduce_sum(x, (1,)), (0,)), Argument(_SHAPE, "float", 0.5, 2.0)),
        sample(lambda x: reduce_max(reduce_max(x, (0, 2)), (0,)), Argument((2, 3, 2))),
    ],
    "reduce_unit_axes": [sample(lambda x: reduce_sum(dimshuffle(x, (0, "x", 1)), (1,)), _FLOATS)],
    "sum_of_broadcast": [
        sample(lambda x, y: reduce_sum(_outer(x, y), (0,)), Argument((3,)), Argument((2,))),
        sample(lambda x, y: reduce_sum(_outer(x, y), (0, 1)), Argument((3,), "float", 0.5, 2.0), Argument((2,))),
        sample(lambda x: reduce_sum(filled(literal(1.0), x.type.shape), (0, 1)), _FLOATS),
        sample(lambda x: reduce_sum(filled(literal(-1.0), x.type.shape), (0, 1)), Argument((0, 3))),
    ],
    "extreme_of_broadcast": [
        sample(lambda x: reduce_max(broadcast_to(dimshuffle(x, (0, "x")), (x.type.shape[0], 4)), (1,)), Argument((3,)))
    ],
    "position_of_extreme": [
        sample(lambda x: reduction("argmax", x, (0,)), _FLOATS),
        sample(lambda x: reduction("argmin", x, (0, 2)), Argument((2, 3, 2))),
        sample(lambda x: reduction("argmax", x, (0,)), Argument((5, 2), "int", -2, 2)),
    ],
    "sum_scaled": [sample(lambda x: reduce_sum(3.0 * x, (0, 1)), _FLOATS)],
}


# --- matrices ------------------------------------------------------------------------------------------------------

_SQUARE, _BATCH, _RIGHT = Argument((3, 3)), Argument((2, 3, 3)), Argument((3, 2))


def _well(x: Node) -> Node:
    """Matrices moved away from singular ones."""
    return x + literal(4 * np.eye(3), x.dtype)


def _definite(x: Node) -> Node:
    return _well(matmul(x, transpose(x)))


def _beside_solution(function: Callable[[Node], Node], x: Node, y: Node) -> Node:
    """What a function makes of a matrix, beside a solution that says of it that it is positive definite."""
    solution, made = solve(_definite(x), y, "positive"), function(_definite(x))
    return solution + (made if made.ndim == x.ndim else expand(made, (made.ndim, made.ndim + 1)))


def _lower(x: Node) -> Node:
    return triangle(_well(x))


def _turning(x: Node) -> Node:
    return item(make(OPS["eigh"], (x,), {"lower": True, "on_error": "raise"}), 1)


_Unary: TypeAlias = Callable[[Node], Node]


def _determinants(build: _Unary) -> list[Sample]:
    return [
        sample(lambda x, f=f: f(build(x)), argument)
        for f, argument in ((det, _SQUARE), (detsign, _BATCH), (logabsdet, _BATCH))
    ]


MATRICES: Samples = {
    "product_with_inverse": [
        sample(lambda x, y: matmul(inverse(_well(x)), y), _SQUARE, _RIGHT),
        sample(lambda x, y: matmul(inverse(_well(x)), y), _SQUARE, Argument((3,))),
        sample(lambda x, y: matmul(y, inverse(_well(x))), _SQUARE, Argument((3,))),
        sample(lambda x, y: matmul(transpose(y), transpose(inverse(_well(x)))), _SQUARE, _RIGHT),
        sample(lambda x, y: matmul(inverse(_well(x)), y), _BATCH, Argument((2, 3, 1))),
    ],
    "structured_solve": [
        sample(lambda x, y: solve(_lower(x), y), _SQUARE, _RIGHT),
        sample(lambda x, y: solve(transpose(_lower(x)), y, transposed=True), _SQUARE, _RIGHT),
        sample(lambda x, y: solve(matmul(_lower(x), -_lower(x)) / 2.0, y), _SQUARE, _RIGHT),
        sample(lambda x, y: solve(diagonal_matrix(_well(x)[0]) * 2.0, y), _SQUARE, _RIGHT),
        sample(lambda x, y: solve(diagonal_matrix(_well(x)[:, 0]), y), _BATCH, Argument((2, 3, 2))),
        sample(lambda x, y: solve(_turning(x), y), _SQUARE, _RIGHT),
    ],
    "structured_inverse": [
        sample(lambda x: inverse(_lower(x)), _SQUARE),
        sample(lambda x: inverse(transpose(_well(x))), _BATCH),
        sample(lambda x: inverse(_turning(x)), _SQUARE),
    ],
    "structured_determinant": [
        *_determinants(_lower),
        *_determinants(lambda x: transpose(_well(x))),
        *_determinants(lambda x: matmul(transpose(inverse(_well(x))), _lower(x))),
    ],
    "log_of_determinant": [
        sample(lambda x: elementwise("log", det(_well(x))), _SQUARE),
        sample(lambda x: elementwise("log", abs(det(_well(x)))), _BATCH),
    ],
    "shared_factor": [
        sample(lambda x, y: _beside_solution(logabsdet, x, y), _SQUARE, _RIGHT),
        sample(lambda x, y: _beside_solution(detsign, x, y), _BATCH, Argument((2, 3, 1))),
        sample(lambda x, y: _beside_solution(cofactors, x, y), _BATCH, Argument((2, 3, 3))),
        sample(lambda x, y: matmul(inverse(_definite(x)), cholesky(_definite(x))) + y[0, 0], _SQUARE, _RIGHT),
        sample(lambda x, y: solve(_definite(x), y) + matmul(cholesky(_definite(x)), y), _SQUARE, _RIGHT),
    ],
    "solve_by_factors": [
        sample(lambda x, y: solve(_well(x), y), _SQUARE, _RIGHT),
        sample(lambda x, y: solve(_well(x), y, transposed=True), _BATCH, Argument((2, 3, 2))),
        sample(lambda x, y: solve(_well(x), y, "positive"), _SQUARE, _RIGHT),
    ],
    "inverse_by_factors": [sample(lambda x: inverse(_well(x)), _BATCH)],
    "determinant_by_factors": _determinants(_well),
    "cofactors_by_factors": [
        sample(lambda x: cofactors(_well(x)), _BATCH),
        sample(lambda x: cofactors(_well(x) * literal(np.diag([1.0, 1.0, 0.0]), x.dtype)), _SQUARE),
    ],
}


RULE_SAMPLES: Samples = {**ALGEBRA, **LINEAR, **MATRICES, **MOMENTS, **PAIRS, **SCATTER, **STABLE, **VIEWS}
