"""The functions that Theano and NumPy have beside the common ones, against NumPy's: values, dtypes, derivatives.

A row of the table is a name, the graphc expression, the NumPy one, and the arrays both are given. Each is run with
the arrays' sizes known while the graph is built, and with sizes known only at the call; where a result is of floats
its derivatives are checked to second order; and all rows are compiled, several in one function.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import graphc.tensor as T
import graphc.theano.scalar
from graphc.arrays.dtypes import is_float
from graphc.autodiff import grad
from graphc.errors import AssertionFailed, GraphcError, GraphTypeError, GraphValueError, IndexOutOfBounds, ShapeError
from graphc.functions.function import function
from graphc.ir.interpret import interpret
from graphc.ir.node import Array, Node, variable
from graphc.ir.walk import Graph, nodes_of
from graphc.tensor import nnet
from graphc.testing import check_gradient

Row = tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]

random = np.random.default_rng(17)
V = random.normal(size=5)
W = random.normal(size=3)
M = random.normal(size=(3, 4))
S = random.normal(size=(4, 4))
C = random.normal(size=(2, 3, 4))
SINGLE = M.astype("float32")
INTS = random.integers(-5, 6, size=(3, 4))
SMALL = INTS.astype("int8")
BITS = random.integers(0, 200, size=(3, 4)).astype("uint8")
EXTREMES = np.array([-32768, -32767, 32767, 0, 1, -1], "int16")
BOOLS = random.random((3, 4)) < 0.5
ROWS = np.array([True, False, True])
ODD = np.array([1.0, np.nan, -np.inf, np.inf, -0.0, 2.0, -3.5])
HOLES = np.where(random.random((3, 4)) < 0.3, np.nan, M)
HOLES[0] = np.nan
NONE = np.zeros((0, 4))
EMPTY = np.zeros(0)
TWO = np.array(2)
NUMBER = np.array(0.7)
INDEX = np.array([2, 0, 1, 2])
PLACES = np.array([[0, 2, 1, 1], [2, 2, 0, 1]])
TIMES = np.array([2, 0, 3])
UP = np.cumsum(random.random(5))
UNIT = random.random((3, 4)) * 1.8 - 0.9
POSITIVE = random.random((3, 4)) * 3 + 0.2
X3, Y3 = random.normal(size=(4, 3)), random.normal(size=(4, 3))


def both(name: str, *arrays: Any, **given: Any) -> Row:
    """A function of one name in both, of arrays alone."""
    return (
        f"{name} {given or ''}".strip(),
        lambda *x: getattr(T, name)(*x, **given),
        lambda *x: getattr(np, name)(*x, **given),
        arrays,
    )


def average_of_rows(module: Any) -> Callable[..., Any]:
    return lambda x, weights: module.average(x, axis=1, weights=weights)


def scipys(name: str, *arrays: Any) -> Row:
    return (name, getattr(T, name), getattr(scipy.special, name), arrays)


def of_last(name: str, *numbers: float, array: Any) -> Row:
    """A function of SciPy's whose derivative is known with respect to its last argument alone."""
    mine, own = getattr(T, name), getattr(scipy.special, name)
    return (name, lambda x: mine(*numbers, x), lambda x: own(*numbers, x), (array,))


def put(x: Array, key: Any, y: Any, add: bool = False) -> Array:
    """NumPy's assignment, of a copy."""
    changed = x.copy()
    if add:
        changed[key] += y
    else:
        changed[key] = y
    return changed


ARITHMETIC: tuple[Row, ...] = (
    ("angle", T.angle, lambda x: np.where(np.isnan(x), x, np.angle(x)), (ODD,)),
    both("angle", SINGLE),
    both("bitwise_count", INTS),
    both("bitwise_count", BITS),
    *(
        both("bitwise_count", np.array([np.iinfo(kind).min, -1, 0, 7], kind))
        for kind in ("int8", "int16", "int32", "int64")
    ),
    both("isclose", EXTREMES, EXTREMES[::-1].copy()),
    both("isclose", EXTREMES.astype("int32") * 2**16, EXTREMES.astype("uint8")),
    both("isclose", BOOLS, ~BOOLS),
    both("isneginf", ODD),
    both("isposinf", ODD),
    both("isreal", M),
    both("iscomplex", M),
    both("real", M),
    both("imag", INTS),
    both("conjugate", M),
    both("modf", ODD),
    both("modf", M),
    both("ldexp", M, INTS),
    both("ldexp", SINGLE, SMALL),
    both(
        "ldexp",
        np.array([0.0, -0.0, np.inf, 1.0, -1e-30], "float32"),
        np.array([999, 32767, -32768, -140, 200], "int16"),
    ),
    both("frexp", ODD),
    both("frexp", np.ldexp(1.0, np.arange(-1074, 1020, 60))),
    both("frexp", SINGLE),
    both("spacing", ODD),
    ("the sign of spacing", lambda x: T.spacing(x) > 0, lambda x: np.spacing(x) > 0, (ODD,)),
    both("sinc", np.append(V, [0.0, 2.0])),
    both("true_divide", M, POSITIVE),
    both("floor_divide", INTS, TWO),
    both("around", M * 9),
    both("bitwise_invert", INTS),
    both("bitwise_left_shift", INTS, TWO),
    both("bitwise_right_shift", INTS, TWO),
    ("ceil_intdiv", T.ceil_intdiv, lambda x, y: -(-x // y), (INTS, TWO)),
    ("ceil_intdiv of bytes", T.ceil_intdiv, lambda x, y: np.uint8(-(-x.astype(int) // y)), (BITS, np.uint8(7))),
    ("ceil_intdiv of floats", T.ceil_intdiv, lambda x, y: np.ceil(x / y), (np.array([3.0, 4.5, -3, 0.5]), TWO * 1.0)),
    ("mod_check", T.mod_check, np.mod, (INTS, TWO)),
    (
        "iround",
        lambda x: T.iround(x, "half_away_from_zero"),
        lambda x: np.array([1, 2, -3]),
        (np.array([0.5, 1.5, -2.5]),),
    ),
    ("round_half_to_even", T.round_half_to_even, np.round, (np.array([0.5, 1.5, -2.5]),)),
    ("round_half_away", T.round_half_away_from_zero, lambda x: np.array([1.0, 2, -3]), (np.array([0.5, 1.5, -2.5]),)),
    (
        "round by mode",
        lambda x: T.round(x, "half_away_from_zero"),
        lambda x: np.array([1.0, 2.0]),
        (np.array([0.5, 1.5]),),
    ),
    ("largest", T.largest, np.maximum, (M, C)),
    ("smallest of three", T.smallest, lambda x, y, z: np.minimum(np.minimum(x, y), z), (V, V[::-1].copy(), UP)),
    ("default", lambda x: T.default(None, x), lambda x: x, (M,)),
    ("second", T.second, lambda x, y: np.broadcast_to(y, (3, 4)), (np.zeros((3, 1)), M)),
    ("fill with more axes", T.fill, lambda x, y: y, (M, C)),
    ("copy with a name", lambda x: x.copy(name="c") * 2, lambda x: x * 2, (M,)),
    ("flatten outdim", lambda x: T.flatten(x, outdim=2), lambda x: x.reshape(2, 12), (C,)),
    ("norm L", lambda x: x.norm(L=1), lambda x: np.abs(x).sum(), (M,)),
    ("an axis as an array", lambda x: x.sum(axis=np.array(1)), lambda x: x.sum(1), (M,)),
    ("an axis as a constant", lambda x: x.mean(axis=T.constant(0)), lambda x: x.mean(0), (M,)),
    ("axes as an array", lambda x: x.sum(axis=np.array([0, 2])), lambda x: x.sum((0, 2)), (C,)),
    (
        "a shape of arrays",
        lambda x: T.zeros((np.array(2), x.shape[0], T.constant(3))),
        lambda x: np.zeros((2, 3, 3)),
        (M,),
    ),
)

SELECTING: tuple[Row, ...] = (
    ("x[mask]", lambda x, m: x[m], lambda x, m: x[m], (M, BOOLS)),
    ("x[rows]", lambda x, m: x[m], lambda x, m: x[m], (C[0], ROWS)),
    ("x[:, mask]", lambda x, m: x[:, m, ::2], lambda x, m: x[:, m, ::2], (C, ROWS)),
    ("x[..., mask]", lambda x, m: x[..., m], lambda x, m: x[..., m], (C, BOOLS)),
    ("x[None, mask, None]", lambda x, m: x[None, m, None], lambda x, m: x[None, m, None], (C[0], ROWS)),
    ("x[mask, index]", lambda x, m, i: x[m, i], lambda x, m, i: x[m, i], (M, ROWS, np.array([3, 0]))),
    ("x[mask, 1]", lambda x, m: x[m, 1], lambda x, m: x[m, 1], (M, ROWS)),
    ("x[1, :, mask]", lambda x, m: x[1, :, m], lambda x, m: x[1, :, m], (C.transpose(0, 2, 1), ROWS)),
    ("x[x > 0]", lambda x: x[x > 0], lambda x: x[x > 0], (M,)),
    ("x[mask] of nothing", lambda x, m: x[m], lambda x, m: x[m], (NONE, NONE.astype(bool))),
    ("x[mask], none true", lambda x, m: x[m], lambda x, m: x[m], (M, M > 99)),
    ("mask in a row", lambda x, m: x[m], lambda x, m: x[m], (M[:1], BOOLS[:1])),
    (
        "two arrays and slices",
        lambda x, i, j: x[i, :, j],
        lambda x, i, j: x[i, :, j],
        (C, np.array([1, 0]), np.array([[3], [0]])),
    ),
    (
        "set mask",
        lambda x, m, y: T.set_subtensor(x[m], y),
        put,
        (M, BOOLS, random.normal(size=BOOLS.sum())),
    ),
    (
        "inc mask",
        lambda x, m, y: T.inc_subtensor(x[m], y),
        lambda x, m, y: put(x, m, y, True),
        (M, BOOLS, random.normal(size=BOOLS.sum())),
    ),
    (
        "set mask to a number",
        lambda x, m, y: T.set_subtensor(x[m], y),
        put,
        (M, BOOLS, NUMBER),
    ),
    ("inc mask by a number", lambda x, m: T.inc_subtensor(x[m], 2.0), lambda x, m: put(x, m, 2.0, True), (M, BOOLS)),
    ("set rows", lambda x, m, y: T.set_subtensor(x[m], y), put, (M, ROWS, M[0])),
    (
        "set rows each",
        lambda x, m, y: T.set_subtensor(x[m, 1:], y),
        lambda x, m, y: put(x, (m, slice(1, None)), y),
        (M, ROWS, random.normal(size=(2, 3))),
    ),
    (
        "inc columns",
        lambda x, m, y: T.inc_subtensor(x[:, m], y),
        lambda x, m, y: put(x, (slice(None), m), y, True),
        (C, ROWS, random.normal(size=(2, 2, 4))),
    ),
    ("set mask and index", lambda x, m: T.set_subtensor(x[m, 1], 0.0), lambda x, m: put(x, (m, 1), 0.0), (M, ROWS)),
    both("nonzero", BOOLS),
    both("nonzero", INTS),
    both("nonzero", EMPTY),
    both("argwhere", INTS),
    both("flatnonzero", INTS),
    both("where", BOOLS),
    both("where", BOOLS, M, INTS),
    ("nonzero as a matrix", lambda x: T.nonzero(x, return_matrix=True), lambda x: np.array(np.nonzero(x)), (INTS,)),
    ("nonzero_values", T.nonzero_values, lambda x: x[x != 0], (INTS,)),
    ("compress", lambda c, x: T.compress(c, x, axis=0), lambda c, x: np.compress(c, x, axis=0), (ROWS, M)),
    (
        "compress, a short condition",
        lambda c, x: T.compress(c, x, axis=1),
        lambda c, x: np.compress(c, x, axis=1),
        (ROWS, M),
    ),
    both("compress", ROWS, M),
    both("extract", BOOLS, M),
    (
        "choose",
        lambda i, x, y, z: T.choose(i, [x, y, z]),
        lambda i, x, y, z: np.choose(i, [x, y, z]),
        (INDEX, S, V[:4], INTS[:1]),
    ),
    ("choose of an array", T.choose, np.choose, (np.array([1, 0, 1]), C[:, :, 0])),
    ("choose wrap", lambda i, x: T.choose(i, x, mode="wrap"), lambda i, x: np.choose(i, x, mode="wrap"), (INTS, C)),
    ("choose clip", lambda i, x: T.choose(i, x, mode="clip"), lambda i, x: np.choose(i, x, mode="clip"), (INTS, C)),
    (
        "select",
        lambda x: T.select([x > 1, x < 0], [x, x * x], 7.0),
        lambda x: np.select([x > 1, x < 0], [x, x * x], 7.0),
        (M,),
    ),
    (
        "piecewise",
        lambda x: T.piecewise(x, [x < 0, x > 1], [lambda v: -v, 2.0, lambda v: v * v]),
        lambda x: np.piecewise(x, [x < 0, x > 1], [lambda v: -v, 2.0, lambda v: v * v]),
        (M,),
    ),
    ("take_along_axis", lambda x, i: T.take_along_axis(x, i, 0), lambda x, i: np.take_along_axis(x, i, 0), (M, PLACES)),
    (
        "take_along_axis last",
        T.take_along_axis,
        lambda x, i: np.take_along_axis(x, i, -1),
        (M, np.array([[0], [-1], [2]])),
    ),
    (
        "take_along_axis flat",
        lambda x, i: T.take_along_axis(x, i, None),
        lambda x, i: np.take_along_axis(x, i, None),
        (M, INDEX),
    ),
    (
        "take_along_axis spread",
        lambda x, i: T.take_along_axis(x, i, 1),
        lambda x, i: np.take_along_axis(x, i, 1),
        (C, np.array([[[1], [0]]])),
    ),
    (
        "permute_row_elements",
        T.permute_row_elements,
        lambda x, y: np.take_along_axis(x, np.broadcast_to(y, (3, 4)), 1),
        (M, np.array([[2, 0, 3, 1]])),
    ),
    (
        "permuted back",
        lambda x, y: T.permute_row_elements(T.permute_row_elements(x, y), y, inverse=True),
        lambda x, y: x,
        (M[:2], np.array([[2, 0, 3, 1], [0, 3, 1, 2]])),
    ),
    ("inverse_permutation", T.inverse_permutation, np.argsort, (np.array([2, 0, 3, 1]),)),
    (
        "inverse_permutation rows",
        T.inverse_permutation,
        lambda x: np.argsort(x, 1),
        (np.array([[2, 0, 1], [0, 2, 1]]),),
    ),
    (
        "inverse_permutation of int16",
        T.inverse_permutation,
        lambda x: np.argsort(x).astype("int16"),
        (np.array([2, 0, 3, 1], "int16"),),
    ),
    (
        "ravel_multi_index",
        lambda i, j: T.ravel_multi_index((i, j), (3, 5)),
        lambda i, j: np.ravel_multi_index((i, j), (3, 5)),
        (INDEX, np.array([4, 0, 1, 2])),
    ),
    (
        "ravel_multi_index F",
        lambda i, j: T.ravel_multi_index((i, j), (3, 5), order="F"),
        lambda i, j: np.ravel_multi_index((i, j), (3, 5), order="F"),
        (INDEX, np.array([4, 0, 1, 2])),
    ),
    (
        "ravel_multi_index modes",
        lambda i, j: T.ravel_multi_index((i, j), (3, 5), ("wrap", "clip")),
        lambda i, j: np.ravel_multi_index((i, j), (3, 5), ("wrap", "clip")),
        (INTS, INTS + 1),
    ),
    (
        "unravel_index",
        lambda i: T.unravel_index(i, (3, 4, 5)),
        lambda i: np.unravel_index(i, (3, 4, 5)),
        (np.array([[0, 59], [17, 23]]),),
    ),
    (
        "unravel_index F",
        lambda i: T.unravel_index(i, (3, 4, 5), "F"),
        lambda i: np.unravel_index(i, (3, 4, 5), "F"),
        (np.array([0, 59, 17]),),
    ),
    (
        "unravel_index dims",
        lambda i, x: T.unravel_index(i, dims=x.shape, shape=None),
        lambda i, x: np.unravel_index(i, x.shape),
        (INDEX, M),
    ),
    ("diag_indices", lambda x: x[T.diag_indices(3)], lambda x: x[np.diag_indices(3)], (M,)),
    ("diag_indices_from", lambda x: x[T.diag_indices_from(x)], lambda x: x[np.diag_indices_from(x)], (S,)),
    ("tril_indices", lambda x: x[T.tril_indices(3, 1, 4)], lambda x: x[np.tril_indices(3, 1, 4)], (M,)),
    ("tril_indices_from", lambda x: x[T.tril_indices_from(x, -1)], lambda x: x[np.tril_indices_from(x, -1)], (M,)),
    ("triu_indices_from", lambda x: x[T.triu_indices_from(x, 1)], lambda x: x[np.triu_indices_from(x, 1)], (M,)),
    (
        "mask_indices",
        lambda n: T.mask_indices(n, T.triu, 1),
        lambda n: np.mask_indices(int(n), np.triu, 1),
        (np.array(3),),
    ),
    ("fill_diagonal", T.fill_diagonal, lambda x, y: put(x, np.diag_indices(3), y), (M, NUMBER)),
    ("fill_diagonal tall", T.fill_diagonal, lambda x, y: put(x, np.diag_indices(3), y), (M.T.copy(), NUMBER)),
    (
        "fill_diagonal cube",
        lambda x: T.fill_diagonal(x, 2.0),
        lambda x: put(x, np.diag_indices(2, 3), 2.0),
        (C[:, :2, :2].copy(),),
    ),
    (
        "fill_diagonal_offset",
        lambda x, y: T.fill_diagonal_offset(x, y, 1),
        lambda x, y: put(x, ([0, 1, 2], [1, 2, 3]), y),
        (M, NUMBER),
    ),
    (
        "fill_diagonal_offset below",
        lambda x, y: T.fill_diagonal_offset(x, y, -1),
        lambda x, y: put(x, ([1, 2], [0, 1]), y),
        (M, NUMBER),
    ),
    ("repeat each", lambda x, n: T.repeat(x, n, 0), lambda x, n: np.repeat(x, n, 0), (M, TIMES)),
    ("repeat each, one number", lambda x, n: T.repeat(x, n, 1), lambda x, n: np.repeat(x, n, 1), (M, np.array([2]))),
    ("repeat each of bytes", T.repeat, np.repeat, (W, TIMES.astype("uint8"))),
)

ARRANGING: tuple[Row, ...] = (
    both("append", M, V),
    ("append rows", lambda x, y: T.append(x, y, 0), lambda x, y: np.append(x, y, 0), (M, S)),
    (
        "block",
        lambda x, y: T.block([[x, T.zeros((3, 2))], [T.ones((4, 2)), y]]),
        lambda x, y: np.block([[x, np.zeros((3, 2))], [np.ones((4, 2)), y]]),
        (M, S),
    ),
    ("block of vectors", lambda x, y: T.block([x, y, 1.0]), lambda x, y: np.block([x, y, 1.0]), (V, W)),
    ("concat", lambda x, y: T.concat([x, y], axis=None), lambda x, y: np.concat([x, y], axis=None), (M, V)),
    ("row_stack", lambda x, y: T.row_stack([x, y]), lambda x, y: np.vstack([x, y]), (V, V)),
    ("horizontal_stack", T.horizontal_stack, lambda x, y: np.hstack([x, y]), (M, M)),
    ("vertical_stack", T.vertical_stack, lambda x, y: np.vstack([x, y]), (M, S)),
    ("stacklists", lambda x, y: T.stacklists([[x, y], [y, x]]), lambda x, y: np.array([[x, y], [y, x]]), (V, UP)),
    ("hsplit", lambda x: T.hsplit(x, 2), lambda x: np.hsplit(x, 2), (M,)),
    ("hsplit at", lambda x: T.hsplit(x, [1, 3]), lambda x: np.hsplit(x, [1, 3]), (V,)),
    ("vsplit", lambda x: T.vsplit(x, [1]), lambda x: np.vsplit(x, [1]), (M,)),
    ("dsplit", lambda x: T.dsplit(x, 2), lambda x: np.dsplit(x, 2), (C,)),
    ("insert", lambda x, y: T.insert(x, 1, y, axis=1), lambda x, y: np.insert(x, 1, y, axis=1), (M, W)),
    ("insert flat", lambda x: T.insert(x, 3, 9.0), lambda x: np.insert(x, 3, 9.0), (M,)),
    ("insert from the end", lambda x: T.insert(x, -1, 9.0, 0), lambda x: np.insert(x, -1, 9.0, 0), (M,)),
    (
        "insert a column",
        lambda x, y: T.insert(x, 1, y, axis=1),
        lambda x, y: np.insert(x, 1, y, axis=1),
        (M, random.normal(size=(2, 3))),
    ),
    (
        "insert several",
        lambda x: T.insert(x, [3, 1, 1], [7.0, 8.0, 9.0]),
        lambda x: np.insert(x, [3, 1, 1], [7.0, 8.0, 9.0]),
        (V,),
    ),
    ("delete", lambda x: T.delete(x, 1, 0), lambda x: np.delete(x, 1, 0), (M,)),
    ("delete the last", lambda x: T.delete(x, -1, 1), lambda x: np.delete(x, -1, 1), (M,)),
    ("delete several", lambda x: T.delete(x, [0, -1], 1), lambda x: np.delete(x, [0, -1], 1), (M,)),
    ("delete a slice", lambda x: T.delete(x, np.s_[::2]), lambda x: np.delete(x, np.s_[::2]), (V,)),
    ("delete symbolic", T.delete, np.delete, (M, TWO)),
    ("delete by a mask", lambda x, m: T.delete(x, m, 0), lambda x, m: np.delete(x, m, 0), (M, ROWS)),
    ("resize", lambda x: T.resize(x, (3, 5)), lambda x: np.resize(x, (3, 5)), (M,)),
    ("resize nothing", lambda x: T.resize(x, 2), lambda x: np.resize(x, 2), (EMPTY,)),
    both("trim_zeros", np.array([0, 0, 1.0, 0, 2, 0])),
    both("trim_zeros", np.array([0, 0, 1.0, 0]), trim="f"),
    both("trim_zeros", np.array([0, 0, 1.0, 0]), trim="b"),
    both("trim_zeros", np.zeros(3)),
    both("trim_zeros", EMPTY),
    both("trim_zeros", np.zeros(3), trim="b"),
    *(both("rot90", C, k=k, axes=axes) for k in (0, 1, 2, 3) for axes in ((0, 1), (2, 0))),
    *(both("rollaxis", C, axis=a, start=b) for a in (0, 1, -1) for b in (0, 1, 2, 3)),
    both("permute_dims", C),
    both("permute_dims", C, axes=(1, 2, 0)),
    both("matrix_transpose", C),
    both("diagflat", M),
    both("ediff1d", M),
    both("ediff1d", V, to_end=[1.0, 2.0], to_begin=9.0),
)

PADDING: tuple[Row, ...] = (
    *(
        both("pad", M, pad_width=((1, 2), (3, 0)), mode=mode)
        for mode in (
            "constant",
            "edge",
            "linear_ramp",
            "maximum",
            "mean",
            "median",
            "minimum",
            "reflect",
            "symmetric",
            "wrap",
        )
    ),
    *(
        both("pad", V, pad_width=(13, 7), mode=mode, reflect_type=kind)
        for mode in ("reflect", "symmetric")
        for kind in ("even", "odd")
    ),
    *(
        both("pad", x, pad_width=3, mode=mode)
        for mode in ("edge", "reflect", "symmetric", "wrap", "mean", "linear_ramp")
        for x in (M[:1], INTS, SMALL)
    ),
    *(
        both("pad", np.array([True, False]), pad_width=2, mode=mode)
        for mode in ("linear_ramp", "maximum", "mean", "median")
    ),
    both("pad", V, pad_width=17, mode="wrap"),
    both("pad", M, pad_width=2, mode="constant", constant_values=((1, 2), (3, 4))),
    both("pad", M, pad_width=((2, 1), (0, 2)), mode="linear_ramp", end_values=((5, -4), (1, 2))),
    *(both("pad", M, pad_width=2, mode=mode, stat_length=2) for mode in ("maximum", "mean", "median", "minimum")),
    both("pad", M, pad_width={1: (1, 2)}, mode="edge"),
    *(both("pad", BOOLS, pad_width=2, mode=mode) for mode in ("linear_ramp", "mean", "median", "maximum", "edge")),
    *(
        (f"{name} in F", own, own, (x,))
        for name, own in (
            ("reshape", lambda x: x.reshape(2, -1, order="F")),
            ("flatten", lambda x: x.flatten("F")),
            ("ravel", lambda x: x.ravel(order="F")),
        )
        for x in (M, np.arange(24).reshape(2, 3, 4))
    ),
    both("pad", BOOLS, pad_width=3, mode="linear_ramp", end_values=1),
    both("pad", C, pad_width=1, mode="symmetric"),
    ("pad by a scalar", lambda x, n: T.pad(x, (n, 1), "reflect"), lambda x, n: np.pad(x, (2, 1), "reflect"), (M, TWO)),
)

GRIDS: tuple[Row, ...] = (
    ("mgrid", lambda: T.mgrid[0:3, 1:5:2], lambda: np.mgrid[0:3, 1:5:2], ()),
    ("mgrid of one", lambda: T.mgrid[-1:1:5j], lambda: np.mgrid[-1:1:5j], ()),
    ("ogrid", lambda: T.ogrid[0:3, 0:1:4j], lambda: np.ogrid[0:3, 0:1:4j], ()),
    ("mgrid symbolic", lambda n: T.mgrid[0:n, 0:3], lambda n: np.mgrid[0:2, 0:3], (TWO,)),
    ("indices", lambda n: T.indices((n, 3)), lambda n: np.indices((2, 3)), (TWO,)),
    ("indices sparse", lambda: T.indices((2, 3), sparse=True), lambda: np.indices((2, 3), sparse=True), ()),
    ("ix_", lambda x, i: x[T.ix_(i, [1, 3])], lambda x, i: x[np.ix_(i, [1, 3])], (M, np.array([2, 0]))),
    ("ix_ of a mask", lambda x, m: x[T.ix_(m, [1, 3])], lambda x, m: x[np.ix_(m, [1, 3])], (M, ROWS)),
    (
        "fromfunction",
        lambda: T.fromfunction(lambda i, j: i * 10 + j, (2, 3)),
        lambda: np.fromfunction(lambda i, j: i * 10 + j, (2, 3)),
        (),
    ),
    (
        "meshgrid sparse",
        lambda x, y: T.meshgrid(x, y, sparse=True),
        lambda x, y: np.meshgrid(x, y, sparse=True),
        (V, W),
    ),
    both("vander", V),
    both("vander", W, N=4, increasing=True),
    both("vander", np.arange(4)),
    ("geomspace", lambda: T.geomspace(1.0, 1000.0, 4), lambda: np.geomspace(1.0, 1000.0, 4), ()),
    (
        "geomspace below 0",
        lambda: T.geomspace(-2.0, -32, 5, endpoint=False),
        lambda: np.geomspace(-2.0, -32, 5, endpoint=False),
        (),
    ),
    *(
        (f"{name} {n}", lambda m, f=name: getattr(T, f)(m), lambda m, f=name: getattr(np, f)(int(m)), (np.array(n),))
        for name in ("bartlett", "blackman", "hamming", "hanning")
        for n in (0, 1, 2, 7)
    ),
    *((f"kaiser {n}", lambda m: T.kaiser(m, 5.0), lambda m: np.kaiser(int(m), 5.0), (np.array(n),)) for n in (0, 1, 6)),
    ("r_", lambda x: T.r_[x, 0.0, 1:3], lambda x: np.r_[x, 0.0, 1:3], (V,)),
    ("c_", lambda x, y: T.c_[x, y], lambda x, y: np.c_[x, y], (V, UP)),
    ("arange of scalars", T.arange, np.arange, (np.array(-5.0), np.array(1.1), np.array(0.2))),
)

SELECTED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sum", {"axis": 0, "initial": 2.5}), ("sum", {"dtype": "float32"}), ("prod", {"axis": 1, "initial": 2.0}),
    ("max", {"initial": -0.3}), ("min", {"axis": 1, "initial": 0.25, "keepdims": True}), ("mean", {"axis": (0, 1)}),
    ("mean", {"axis": 1, "keepdims": True}), ("var", {"axis": 1, "ddof": 1}), ("std", {}), ("any", {"axis": 0}),
    ("all", {"axis": 1}),
)  # fmt: skip
"""Reductions by `where=`: names of methods, and arguments."""


def of_selected(name: str, given: dict[str, Any], x: Array, mask: Array) -> Row:
    """A method of tensors and of arrays."""
    return (
        f"{name} by where {given} {mask.shape}",
        lambda x, mask: getattr(x, name)(where=mask, **given),
        lambda x, mask: getattr(x, name)(where=mask, **given),
        (x, mask),
    )


STATISTICS: tuple[Row, ...] = (
    *(of_selected(name, given, M, BOOLS) for name, given in SELECTED),
    *(of_selected(name, {"axis": 0}, SMALL, BOOLS[1]) for name in ("sum", "prod", "mean", "var", "any")),
    of_selected("sum", {"initial": 3}, INTS, np.zeros((3, 4), bool)),
    of_selected("prod", {"initial": 3, "axis": 1}, SINGLE, np.zeros((3, 4), bool)),
    of_selected("max", {"initial": 3, "axis": 1}, INTS, BOOLS),
    ("sum with initial", lambda x: T.sum(x, 0, initial=1), lambda x: np.sum(x, 0, initial=1), (M,)),
    ("max with initial", lambda x: T.max(x, 0, initial=1), lambda x: np.max(x, 0, initial=1), (NONE,)),
    ("norm of nothing", lambda x: T.norm(x, np.inf), lambda x: np.linalg.norm(x, np.inf), (EMPTY,)),
    ("norm of columns", lambda x: T.norm(x, np.inf, 0), lambda x: np.linalg.norm(x, np.inf, 0), (NONE,)),
    ("median of nothing", T.median, np.median, (EMPTY,)),
    ("average of nothing", T.average, np.average, (EMPTY,)),
    (
        "bincount of float32",
        lambda x: T.bincount(np.arange(12) % 5, x.flatten()),
        lambda x: np.bincount(np.arange(12) % 5, x.flatten()),
        (SINGLE,),
    ),
    both("cov", M),
    both("cov", V),
    both("cov", M, rowvar=False),
    both("cov", V, UP),
    both("cov", M, bias=True),
    both("cov", SINGLE),
    (
        "cov weighted",
        lambda x: T.cov(x, fweights=[1, 2, 0, 3], aweights=[0.5, 1, 2, 1]),
        lambda x: np.cov(x, fweights=[1, 2, 0, 3], aweights=[0.5, 1, 2, 1]),
        (M,),
    ),
    (
        "cov by aweights",
        lambda x: T.cov(x, aweights=[0.5, 1, 2, 1], ddof=2),
        lambda x: np.cov(x, aweights=[0.5, 1, 2, 1], ddof=2),
        (M,),
    ),
    both("corrcoef", M),
    both("corrcoef", V, UP),
    both("corrcoef", V),
    *(
        both(f"nan{name}", HOLES, axis=axis)
        for name in ("sum", "prod", "max", "min", "mean", "var", "std", "cumsum", "cumprod")
        for axis in (None, 0, 1)
    ),
    *(both(f"nan{name}", INTS) for name in ("sum", "max", "mean", "var", "argmax", "cumsum")),
    both("nanargmax", HOLES, axis=0),
    both("nanargmin", HOLES),
    both("nansum", HOLES, axis=0, keepdims=True),
    both("nanvar", HOLES, axis=0, ddof=1),
    both("cumulative_sum", V, include_initial=True),
    both("cumulative_prod", M, axis=1),
    both("cumulative_sum", SMALL, axis=0, include_initial=True),
    both("amax", M, axis=1),
    both("amin", M),
)

CALCULUS: tuple[Row, ...] = (
    both("diff", M),
    both("diff", INTS, n=2, axis=0),
    both("diff", V, prepend=0.0, append=[1.0, 2.0]),
    both("diff", BOOLS),
    both("diff", M, n=0),
    both("gradient", V),
    both("gradient", V, edge_order=2),
    both("gradient", V, 0.5),
    both("gradient", V, UP),
    both("gradient", V, UP, edge_order=2),
    both("gradient", C, axis=1, edge_order=2),
    ("gradient of all", lambda x: T.gradient(x, 2.0, 0.5), lambda x: np.gradient(x, 2.0, 0.5), (M,)),
    both("gradient", INTS, axis=0),
    both("unwrap", V * 5),
    both("unwrap", INTS * 3, period=7),
    both("unwrap", INTS * 3, period=6, axis=0),
    both("unwrap", V * 5, discont=4.0),
    *(
        (f"average of {x.dtype} by {w.dtype}", average_of_rows(T), average_of_rows(np), (x, w))
        for x in (np.array([[-128, -7, 100], [1, 127, 100]], "int8"), np.array([[250, 7, 100]], "uint8"), BOOLS[:, :3])
        for w in (np.array([100, 3, 120], "int8"), np.array([1, 0.5, 2], "float32"), np.array([True, False, True]))
    ),
    *(
        (f"average of float32 by {w.dtype}", average_of_rows(T), average_of_rows(np), (M[:, :3].astype("float32"), w))
        for w in (np.array([100, 3, 120], "int8"), np.array([100, 3, 120]))
    ),
    both("trapezoid", V),
    both("trapezoid", M, dx=0.5, axis=0),
    both("trapezoid", V, UP),
    both("trapezoid", M, UP[:4]),
    both("trapezoid", M, W, axis=0),
    both("trapezoid", INTS),
    both("interp", M * 2, UP, V),
    both("interp", np.append(UP, ODD), UP, V),
    both("interp", M, UP, V, left=-1.0, right=9.0),
    both("interp", M, UP[:1], V[:1]),
    *(
        both("interp", np.array([-1, -0.0, 0.5, 1, 1.5, 2, 3, 4, 5, np.inf, -np.inf, np.nan]), x, np.array(y))
        for x in (np.array([0.0, 1, 2, 4]), np.array([-np.inf, 0, 1, np.inf]))
        for y in ([-0.0, -0.0, 0.0, -0.0], [-np.inf, 0, 1, np.inf], [np.inf, np.inf, 3, np.nan], [1e308, -1e308, 1, 2])
    ),
    (
        "interp with a period",
        lambda x, y: T.interp(x, UP, y, period=2.0),
        lambda x, y: np.interp(x, UP, y, period=2.0),
        (M * 3, V),
    ),
    *(
        both(name, a, b, mode=mode)
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
        for a, b in ((V, W), (W, V), (V, V[:4]), (V[:4], V), (V, V))
    ),
    both("convolve", INTS[0], SMALL[1]),
    both("convolve", V, NUMBER),
    both("cross", X3, Y3),
    both("cross", X3.T.copy(), Y3, axisa=0),
    both("cross", X3, Y3[0], axisc=0),
    ("cross in a plane", T.cross, lambda x, y: x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0], (X3[:, :2], Y3[:, :2])),
    ("cross of 2 and 3", T.cross, lambda x, y: np.cross(np.c_[x, np.zeros(4)], y), (X3[:, :2], Y3)),
    both("poly", V),
    both("polyadd", V, W),
    both("polysub", W, V),
    both("polymul", V, W),
    ("polymul of zeros", T.polymul, np.polymul, (np.array([0, 1.0, 2]), W)),
    both("polyval", V, M),
    both("polyval", INTS[0], INTS),
    both("polyval", SMALL[0], SMALL),
    both("polyval", SMALL[0], INTS),
    both("polyder", V),
    both("polyder", V, m=2),
    both("polyint", V),
    both("polyint", V, m=2, k=[1.0, 2.0]),
    both("polyint", INTS[0]),
    both("polyder", INTS[0]),
)

E3 = random.normal(size=(3, 4, 2))
PRODUCTS: tuple[Row, ...] = (
    *(
        (text, lambda *x, s=text: T.einsum(s, *x), lambda *x, s=text: np.einsum(s, *x), arrays)
        for text, arrays in (
            ("ij,jk->ik", (M, S)),
            ("ij,jk", (M, S)),
            ("ij->ji", (M,)),
            ("ij->", (M,)),
            ("ii->i", (S,)),
            ("ii", (S,)),
            ("i,j->ij", (V, W)),
            ("ij,jk,kl->il", (M, S, S)),
            ("ij,jk,kl,lm,im->", (M, S, S, S, M)),
            ("...ij,...jk->...ik", (C, S)),
            ("...i->...", (C,)),
            ("i...,i...", (C, C)),
            ("...", (M,)),
            ("abc,cd,b->ad", (C, S, W)),
            ("ab,ab->ab", (M, M[:1])),
            ("ab,cb->ac", (M[:, :1], M)),
            ("aij,ajk,akl->il", (C, C.transpose(0, 2, 1), C)),
            ("ijk,jkl,m->lm", (C, E3, V)),
            ("i,i,i->i", (V, V, UP)),
            ("ij,kj->ik", (INTS, SMALL)),
            ("aab,b->a", (S.reshape(2, 2, 4), S[0])),
        )
    ),
    (
        "einsum of lists",
        lambda x, y: T.einsum(x, [0, 1], y, [1, 2], [0, 2]),
        lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [0, 2]),
        (M, S),
    ),
    (
        "einsum from left to right",
        lambda x, y: T.einsum("ij,jk,lk->il", x, y, x, optimize=False),
        lambda x, y: np.einsum("ij,jk,lk->il", x, y, x),
        (M, S),
    ),
    (
        "einsum by a path",
        lambda x, y: T.einsum("ij,jk,lk->il", x, y, x, optimize=["einsum_path", (1, 2), (0, 1)]),
        lambda x, y: np.einsum("ij,jk,lk->il", x, y, x),
        (M, S),
    ),
    (
        "einsum of ten",
        lambda x: T.einsum("ab,bc,cd,de,ef,fg,gh,hi,ij,jk->ak", *[x] * 10),
        lambda x: np.linalg.matrix_power(x, 10),
        (S / 2,),
    ),
    both("vecdot", C, M),
    both("vecdot", C, C, axis=1),
    both("matvec", C, S[0]),
    both("vecmat", W, C),
    both("vecmat", M, S),
    (
        "batched_dot of 4 and 3",
        T.batched_dot,
        lambda x, y: np.array([np.dot(a, b) for a, b in zip(x, y, strict=True)]),
        (random.normal(size=(2, 3, 5, 4)), random.normal(size=(2, 4, 3))),
    ),
    (
        "batched_dot of 2 and 4",
        T.batched_dot,
        lambda x, y: np.array([np.dot(a, b) for a, b in zip(x, y, strict=True)]),
        (M[:2], random.normal(size=(2, 3, 4, 2))),
    ),
    ("batched_dot of 1", T.batched_dot, lambda x, y: x[:, None] * y, (W, M)),
    (
        "batched_tensordot",
        lambda x, y: T.batched_tensordot(x, y, 1),
        lambda x, y: np.array([np.tensordot(a, b, 1) for a, b in zip(x, y, strict=True)]),
        (C, random.normal(size=(2, 4, 3))),
    ),
    (
        "batched_tensordot of lists",
        lambda x, y: T.batched_tensordot(x, y, [[1, 2], [2, 1]]),
        lambda x, y: np.einsum("aij,aji->a", x, y),
        (C, random.normal(size=(2, 4, 3))),
    ),
    *(
        (
            f"tensordot {axes}",
            lambda x, y, a=axes: T.tensordot(x, y, a),
            lambda x, y, a=axes: np.tensordot(x, y, a),
            arrays,
        )
        for axes, arrays in (
            (0, (M, W)),
            (1, (C, S)),
            (2, (C, E3)),
            ((-1, 1), (C, S)),
            (([1, 2], [0, 1]), (C, E3)),
            (np.array([[1], [0]]), (M, S)),
            ([[2, 1], [1, 0]], (C, E3)),
            (((0,), (0,)), (M, M)),
        )
    ),
)

SPECIAL: tuple[Row, ...] = (
    scipys("erfinv", UNIT),
    scipys("erfcinv", UNIT + 1),
    scipys("erfcx", M),
    scipys("gamma", POSITIVE),
    scipys("j0", M),
    scipys("j1", M),
    scipys("i0", M),
    scipys("i1", M),
    scipys("ndtri", (UNIT + 1) / 2),
    (
        "gammainc",
        lambda x: T.gammainc(POSITIVE[::-1], x),
        lambda x: scipy.special.gammainc(POSITIVE[::-1], x),
        (POSITIVE,),
    ),
    (
        "gammaincc",
        lambda x: T.gammaincc(POSITIVE[::-1], x),
        lambda x: scipy.special.gammaincc(POSITIVE[::-1], x),
        (POSITIVE,),
    ),
    scipys("erfinv", UNIT.astype("float32")),
    *(scipys(name, M) for name in ("i0e", "i1e", "ndtr", "log_ndtr")),
    *(scipys(name, POSITIVE) for name in ("y0", "y1", "k0", "k1", "k0e", "k1e")),
    ("far tails of log_ndtr", T.log_ndtr, scipy.special.log_ndtr, (np.array([-1e5, -40.0, -1.0, 1.0, 9.0, 40.0]),)),
    *(of_last(name, 1.5, array=POSITIVE) for name in ("ive", "yv", "kv", "kve")),
    of_last("betainc", 2.5, 0.7, array=(UNIT + 1) / 2),
    of_last("betaincinv", 2.5, 1.7, array=(UNIT + 1) / 2),
    of_last("gammaincinv", 2.5, array=(UNIT + 1) / 2),
    of_last("gammainccinv", 2.5, array=(UNIT + 1) / 2),
    of_last("hyp2f1", 1.5, 0.3, 2.7, array=UNIT / 2),
    ("betaln", T.betaln, scipy.special.betaln, (POSITIVE, POSITIVE[::-1])),
    ("owens_t", T.owens_t, scipy.special.owens_t, (M, M[::-1])),
    ("stdtr", T.stdtr, scipy.special.stdtr, (POSITIVE, POSITIVE[::-1] - 1.5)),
    ("jv", lambda x: T.jv(2, x), lambda x: scipy.special.jv(2, x), (M,)),
    ("iv", lambda x: T.iv(1.5, x), lambda x: scipy.special.iv(1.5, x), (POSITIVE,)),
    (
        "gammal",
        lambda x: T.gammal(2.5, x),
        lambda x: scipy.special.gammainc(2.5, x) * scipy.special.gamma(2.5),
        (POSITIVE,),
    ),
    (
        "gammau",
        lambda x: T.gammau(2.5, x),
        lambda x: scipy.special.gammaincc(2.5, x) * scipy.special.gamma(2.5),
        (POSITIVE,),
    ),
    ("chi2sf", lambda x: T.chi2sf(x, 3), lambda x: scipy.special.chdtrc(3, x), (POSITIVE,)),
)

NETS: tuple[Row, ...] = (
    ("softmax of a vector is a row", nnet.softmax, lambda x: scipy.special.softmax(x)[None], (V,)),
    ("softmax of an axis", lambda x: nnet.softmax(x, 0), lambda x: scipy.special.softmax(x, 0), (V,)),
    ("T.softmax of a vector", T.softmax, scipy.special.softmax, (V,)),
    ("logsoftmax of a vector is a row", nnet.logsoftmax, lambda x: scipy.special.log_softmax(x)[None], (V,)),
    ("prepend_0", nnet.prepend_0_to_each_row, lambda x: np.c_[np.zeros(3), x], (M,)),
    ("prepend_1", nnet.prepend_1_to_each_row, lambda x: np.c_[np.ones(3), x], (M,)),
    (
        "prepend_scalar",
        nnet.prepend_scalar_to_each_row,
        lambda y, x: np.c_[np.full(3, y), x],
        (NUMBER, M),
    ),
    (
        "confusion_matrix",
        nnet.confusion_matrix,
        lambda x, y: [np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1]]), np.array([-1, 2, 7])],
        (np.array([2, -1, 7, -1, 7]), np.array([2, 2, 7, -1, -1])),
    ),
    (
        "confusion_matrix of floats",
        nnet.confusion_matrix,
        lambda x, y: [np.array([[0, 2], [1, 0]]), np.array([0.5, 2.0], "float32")],
        (np.array([0.5, 2.0, 0.5], "float32"), np.array([2.0, 0.5, 2.0], "float32")),
    ),
    *(
        (f"{name} of int8", getattr(nnet, name), lambda x, f=name: reference(f, x.astype("float32")), (SMALL,))
        for name in ("hard_sigmoid", "softsign", "elu", "gelu")
    ),
    ("logsumexp of int8", T.logsumexp, lambda x: scipy.special.logsumexp(x.astype("float32")), (SMALL,)),
)


def reference(name: str, x: Array) -> Array:
    """Activations in the dtype of `x`."""
    values: dict[str, Callable[[], Any]] = {
        "hard_sigmoid": lambda: np.clip(0.2 * x + 0.5, 0, 1),
        "softsign": lambda: x / (1 + np.abs(x)),
        "elu": lambda: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        "gelu": lambda: x * 0.5 * scipy.special.erfc(-x / np.sqrt(2)),
    }
    return np.asarray(values[name](), x.dtype)


INSPECTION: tuple[Row, ...] = (
    both("array_equal", M, M),
    both("array_equal", M, M[:2]),
    both("array_equal", M, V),
    both("array_equal", HOLES, HOLES),
    both("array_equal", HOLES, HOLES, equal_nan=True),
    both("array_equal", M, M + 1),
    both("array_equiv", M, M[0]),
    both("array_equiv", M[0], np.broadcast_to(M[0], (3, 4))),
    both("array", M, dtype="float32", ndmin=3),
    both("asarray", INTS),
    both("ascontiguousarray", NUMBER),
    both("require", M),
    both("asfortranarray", M),
    both("asanyarray", M),
    (
        "apply_over_axes",
        lambda x: T.apply_over_axes(T.sum, x, (0, 1)),
        lambda x: np.apply_over_axes(np.sum, x, (0, 1)),
        (M,),
    ),
    ("makeKeepDims", lambda x: T.makeKeepDims(x, x.sum(1), 1), lambda x: x.sum(1, keepdims=True), (M,)),
    ("Elemwise", T.Elemwise(graphc.scalar.add), np.add, (M, V[:4])),
    ("CAReduce", T.CAReduce(graphc.scalar.add), np.sum, (M,)),
    ("CAReduce over an axis", T.CAReduce(graphc.scalar.maximum, axis=0), lambda x: x.max(0), (M,)),
    (
        "CAReduce keeps the dtype",
        T.CAReduce(graphc.scalar.mul, axis=1),
        lambda x: x.prod(1, dtype="int8"),
        (SMALL,),
    ),
    ("Sum", T.Sum(axis=1), lambda x: x.sum(1), (SMALL,)),
    ("DimShuffle", T.DimShuffle((False, False), (1, "x", 0)), lambda x: x.T[:, None], (M,)),
    ("Assert", lambda x: T.Assert("no")(x, x.shape[0] > 0, T.all(x < 99)) * 2, lambda x: x * 2, (M,)),
    ("Assert of a scalar", lambda x: T.opt.Assert("no")(x, x > 0), lambda x: x, (NUMBER,)),
)


TABLES = {
    "arithmetic": ARITHMETIC,
    "selecting": SELECTING,
    "arranging": ARRANGING,
    "padding": PADDING,
    "grids": GRIDS,
    "statistics": STATISTICS,
    "calculus": CALCULUS,
    "products": PRODUCTS,
    "special": SPECIAL,
    "nets": NETS,
    "inspection": INSPECTION,
}
CASES = [pytest.param(row, id=f"{table}: {row[0]}") for table, rows in TABLES.items() for row in rows]


def leaves(arrays: tuple[Any, ...], static: bool) -> list[Node]:
    values = [np.asarray(array) for array in arrays]
    return [
        variable(value.dtype.name, [n if static or n == 1 else None for n in value.shape], "xyzuvw"[position])
        for position, value in enumerate(values)
    ]


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def expected(row: Row) -> list[Array]:
    _, _, expect, arrays = row
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [np.asarray(one) for one in listed(expect(*arrays))]


def compare(found: Array, wanted: Array) -> None:
    assert found.dtype == wanted.dtype, (found.dtype, wanted.dtype)
    tolerance = 2e-5 if wanted.dtype == "float32" else 1e-11
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("static", [True, False], ids=["static", "open"])
@pytest.mark.parametrize("row", CASES)
def test_values_are_numpys(row: Row, static: bool) -> None:
    _, build, _, arrays = row
    if static is False and needs_sizes(row):
        return
    inputs = leaves(arrays, static)
    nodes = [T.as_tensor(node) for node in listed(build(*inputs))]
    values = interpret(
        Graph(tuple(inputs), tuple(nodes)), {x: np.asarray(a) for x, a in zip(inputs, arrays, strict=True)}
    )
    wanted = expected(row)
    assert len(values) == len(wanted)
    for node, value, want in zip(nodes, values, wanted, strict=True):
        assert (node.dtype, node.ndim) == (value.dtype.name, value.ndim)
        compare(value, want)


def needs_sizes(row: Row) -> bool:
    """Whether a function cannot do without a size that is known, or an array that broadcasts at run time."""
    return row[0].split()[0] in NEED_SIZES


def differentiable(row: Row) -> bool:
    """Tell whether derivatives are checked: of rows with floating arguments and results, all of finite float64."""
    arrays = [np.asarray(array) for array in row[3]]
    floats = [array for array in arrays if array.dtype == "float64"]
    wanted = expected(row)
    usual = all(np.isfinite(array).all() for array in floats) and all(array.size for array in floats)
    results = [one for one in wanted if is_float(one.dtype.name)]
    usual = usual and all(one.dtype == "float64" and np.isfinite(one).all() for one in results)
    return bool(floats) and usual and bool(results) and not row[0].startswith(ROUGH)


ROUGH = ("round", "frexp", "trim_zeros", "smallest", "polymul of zeros", "array {", "iround")
"""Beginnings of the names of rows at kinks and steps, or in float32."""


SMOOTH = [
    pytest.param(row, id=f"{table}: {row[0]}") for table, rows in TABLES.items() for row in rows if differentiable(row)
]


@pytest.mark.slow
@pytest.mark.parametrize("row", SMOOTH)
def test_derivatives_to_second_order(row: Row) -> None:
    def floating(*nodes: Node) -> list[Node]:
        if needs_sizes(row):
            nodes = tuple(T.specify_shape(x, np.shape(value)) for x, value in zip(nodes, row[3], strict=True))
        results = [T.as_tensor(node) for node in listed(row[1](*nodes))]
        return [node for node in results if is_float(node.dtype)]

    check_gradient(floating, *row[3])


TOGETHER = 24
CHUNKS = [
    pytest.param(list(rows[k : k + TOGETHER]), id=f"{table} from {k}")
    for table, rows in TABLES.items()
    for k in range(0, len(rows), TOGETHER)
]


@pytest.mark.slow
@pytest.mark.parametrize("rows", CHUNKS)
def test_all_are_compiled(rows: list[Row]) -> None:
    """Rows in one function, whose inputs are the arrays of all of them, against NumPy."""
    inputs = [leaves(row[3], needs_sizes(row)) for row in rows]
    results = [listed(row[1](*own)) for row, own in zip(rows, inputs, strict=True)]
    outputs = [T.as_tensor(one) for several in results for one in several]
    values = function([x for own in inputs for x in own], outputs, on_unused_input="ignore")(
        *(np.asarray(a) for row in rows for a in row[3])
    )
    wanted = [one for row in rows for one in expected(row)]
    for value, want in zip(values, wanted, strict=True):
        compare(value, want)


NEED_SIZES = ("poly", "cross", "array_equiv")


METHODS: tuple[tuple[str, Callable[[Node], Any], Callable[[Array], Any]], ...] = (
    ("choose", lambda x: (x > 0).astype("int64").choose([x, 9.0]), lambda x: np.choose((x > 0).astype(int), [x, 9.0])),
    ("compress", lambda x: x.compress([True, False, True], 0), lambda x: x.compress([True, False, True], 0)),
    ("nonzero_values", lambda x: x.nonzero_values(), lambda x: x[x != 0]),
    ("real", lambda x: x.real, lambda x: x.real),
    ("imag", lambda x: x.imag, lambda x: x.imag),
    ("conjugate", lambda x: x.conjugate(), lambda x: x.conj()),
    ("arctan", lambda x: x.arctan(), np.arctan),
    ("transfer", lambda x: x.transfer("cpu"), lambda x: x),
    ("trunc", lambda x: x.trunc(), np.trunc),
    ("flatten", lambda x: x.flatten(outdim=1), lambda x: x.ravel()),
    ("norm", lambda x: x.norm(L=2), np.linalg.norm),
)


@pytest.mark.parametrize(("build", "expect"), [pytest.param(*row[1:], id=row[0]) for row in METHODS])
def test_methods(build: Callable[[Node], Any], expect: Callable[[Array], Any]) -> None:
    (x,) = leaves((M,), False)
    (value,) = interpret(Graph((x,), (T.as_tensor(build(x)),)), {x: M})
    compare(value, np.asarray(expect(M)))


def test_what_is_known_while_a_graph_is_built() -> None:
    x, v = T.dmatrix("x"), T.dvector("v", shape=(3,))
    assert T.get_scalar_constant_value(T.constant(3) * 2 + 1) == 7
    assert T.get_scalar_constant_value(T.zeros((x.shape[0],))) == 0
    assert T.get_scalar_constant_value(T.ones((2, 2)) * 5) == 5
    assert T.extract_constant(x) is x and T.extract_constant(T.constant(2.5)) == 2.5
    assert T.get_vector_length(v) == 3 and T.get_vector_length(x.shape) == 2
    assert T.ndim(x) == 2 and T.isscalar(x.sum()) and T.isscalar(2) and not T.isscalar(x)
    assert T.is_flat(v) and not T.is_flat(x) and T.is_flat(x, outdim=2)
    assert T.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert T.isrealobj(x) and not T.iscomplexobj(x)
    assert T.scalar_from_tensor(x.sum()) is x.sum() and T.newaxis is None and T.s_[1:, 0] == np.s_[1:, 0]
    assert x.copy(name="named").name == "named" and (x + 1).copy() is x + 1
    (copied := x.copy()).name = "other"
    assert x.name == "x" and T.grad(copied.sum(), x).eval({x: S}, mode="interpreted").sum() == S.size
    path, text = T.einsum_path("ij,jk,kl,l->i", S, S, S, S[0])
    assert path == ["einsum_path", (2, 3), (1, 2), (0, 1)] and text.startswith("complete contraction")


def test_the_order_of_einsum_counts() -> None:
    """A chain that ends in a vector is products of matrices with vectors."""
    x, v = T.dmatrix("x"), T.dvector("v")
    chain = T.einsum("ij,jk,kl,lm,m->i", x, x, x, x, v)
    products = [node for node in nodes_of([chain]) if node.op.name == "matmul"]
    assert len(products) == 4 and all(min(arg.ndim for arg in node.args) == 1 for node in products)


X, P, J, E = T.dmatrix("x"), T.dvector("p"), T.lvector("i"), T.tensor("bool", (None,), "e")
BAD = {
    "only one choice of where": (lambda: T.where(E, X), GraphTypeError, "both x and y, or neither"),
    "nonzero of a scalar": (lambda: T.nonzero(X.sum()), GraphTypeError, "nonzero of.*scalar"),
    "a mask of too many axes": (lambda: P[X > 0], IndexOutOfBounds, "p.*2 indices for 1 axes"),
    "a mask of another size": (lambda: T.zeros((3, 2))[T.tensor("bool", (4,), "e")], ShapeError, "mask e.*3 and 4"),
    "compress by a matrix": (lambda: T.compress(X, X), GraphTypeError, "condition x.*vector"),
    "choose with out": (lambda: T.choose(J, [X], out=X), GraphTypeError, "there is no out"),  # type: ignore[arg-type]
    "choose by floats": (lambda: T.choose(P, [X]), GraphTypeError, "p.*float64"),
    "no choices": (lambda: T.choose(J, []), GraphTypeError, "no choices"),
    "take_along_axis of other ranks": (lambda: T.take_along_axis(X, J, 0), GraphTypeError, "x.*i.*rank"),
    "select of unequal lists": (lambda: T.select([E], []), ShapeError, "1 conditions and 0"),
    "a mode of ravel_multi_index": (lambda: T.ravel_multi_index((J,), (3,), "no"), GraphTypeError, "'no'"),
    "fill_diagonal of a vector": (lambda: T.fill_diagonal(P, 0), GraphTypeError, "p.*two axes"),
    "repeats of floats": (lambda: T.repeat(X, P, 0), GraphTypeError, "vector of integers, not p"),
    "a mode of pad": (lambda: T.pad(X, 1, "fold"), GraphTypeError, "x.*'fold'"),
    "a negative width": (lambda: T.pad(X, -1), ShapeError, "x.*negative"),
    "too many widths": (lambda: T.pad(X, [(1, 1)] * 3), ShapeError, "3 pairs for 2 axes"),
    "an ellipsis that is lost": (lambda: T.einsum("...i->i", X), GraphTypeError, "needs an ellipsis"),
    "subscripts of another rank": (lambda: T.einsum("ijk->i", X), GraphTypeError, "does not fit.*x"),
    "a result of nowhere": (lambda: T.einsum("ij->k", X), GraphTypeError, "occur once, and in an operand"),
    "digits in einsum": (lambda: T.einsum("i1->i", X), GraphTypeError, "letters and an ellipsis"),
    "sizes that differ in einsum": (lambda: T.einsum("ij,j", T.zeros((2, 3)), T.zeros(4)), ShapeError, "subscript j"),
    "a grid without an end": (lambda: T.mgrid[0:3, 1:], GraphTypeError, "slices with an end"),
    "a window of half a point": (lambda: T.hanning(2.5), GraphTypeError, "hanning.*whole number"),
    "gradient of too little": (lambda: T.gradient(T.zeros(1)), ShapeError, "less than 2"),
    "spacings for gradient": (lambda: T.gradient(X, 1.0, 2.0, 3.0), GraphTypeError, "3 spacings for 2 axes"),
    "cross of four": (lambda: T.cross(T.zeros((2, 4)), X), ShapeError, "2 or 3 elements"),
    "a mode of convolve": (lambda: T.convolve(P, P, "all"), GraphTypeError, "'all'"),
    "a scalar op of nothing": (lambda: T.Elemwise("nothing"), GraphTypeError, "'nothing'"),
    "a fold of unknown size": (lambda: T.CAReduce("hypot")(X), GraphTypeError, "hypot.*x.*known size"),
    "the length of a vector": (lambda: T.get_vector_length(P), ShapeError, "p.*not known"),
    "a constant that is none": (lambda: T.get_scalar_constant_value(P), T.NotScalarConstantError, "p"),
    "a constant without elements": (lambda: T.get_scalar_constant_value([]), T.EmptyConstantError, "no elements"),
    "batched_dot of a scalar": (lambda: T.batched_dot(X.sum(), X), GraphTypeError, "scalar"),
    "a directive of r_": (lambda: T.r_["c", X], GraphTypeError, "directives"),
}


@pytest.mark.parametrize(("call", "error", "message"), BAD.values(), ids=BAD)
def test_bad_calls_say_what_is_wrong(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises((error, GraphValueError), match=message) as caught:
        call()
    assert isinstance(caught.value, GraphcError)


LATER: tuple[tuple[str, Node, type[Exception], str, tuple[Any, ...]], ...] = (
    ("Assert", T.Assert("x is positive")(P, P > 0), AssertionFailed, "positive.*test_functions.py", ([1.0, -1.0],)),
    ("repeat", T.repeat(P, J), ShapeError, "repeats is negative", ([1.0, 2.0], [1, -1])),
    ("repeat of another size", T.repeat(P, J), ShapeError, "3.*2|2.*3", ([1.0, 2.0], [1, 1, 1])),
    ("unravel_index", T.unravel_index(J, (2, 3))[0], ShapeError, "outside the array", ([6],)),
    ("ravel_multi_index", T.ravel_multi_index((J,), (3,)), ShapeError, "outside its axis", ([-1],)),
    ("quantile", T.quantile(P, 0.5), IndexOutOfBounds, "quantile of p .*has no elements", ([],)),
    ("choose", T.choose(J, [1.0, 2.0]), IndexOutOfBounds, "index|taken|bounds", ([2],)),
    ("nanargmax", T.nanargmax(P), ShapeError, "p.*all elements are NaN", ([np.nan, np.nan],)),
    ("pad", T.pad(P, 1, "edge"), ShapeError, "no elements to repeat|index", ([],)),
    ("pad by means", T.pad(P, 1, "mean"), ShapeError, "no elements to repeat", ([],)),
    ("convolve", T.convolve(P, [1.0, 2.0]), ShapeError, "convolve: p .*has no elements", ([],)),
    ("convolve by nothing", T.convolve([1.0, 2.0], P), ShapeError, "convolve: p .*has no elements", ([],)),
    ("correlate", T.correlate([1.0, 2.0], P, "full"), ShapeError, "correlate: p .*has no elements", ([],)),
    ("gradient", T.gradient(P), ShapeError, "less than 2 elements", ([1.0],)),
    ("polyfit", T.polyfit(P, P, 1), ShapeError, "polyfit: p .*has no elements", ([],)),
    ("a mask of another size", P[E], ShapeError, "3.*2|2.*3", ([1.0, 2.0], [True, False, True])),
    ("values for a mask", T.set_subtensor(P[E], P[:2]), ShapeError, "size", ([1.0, 2.0, 3.0], [True, False, False])),
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize(("result", "error", "message", "values"), [pytest.param(*row[1:], id=row[0]) for row in LATER])
def test_calls_are_refused(
    result: Node, error: type[Exception], message: str, values: tuple[Any, ...], mode: str
) -> None:
    inputs = [x for x in (P, J, E) if x in nodes_of([result])]
    arrays = [np.asarray(value, x.dtype) for x, value in zip(inputs, values, strict=True)]
    with pytest.raises(error, match=message):
        function(inputs, result, mode=mode)(*arrays)


@pytest.mark.slow
def test_a_reduction_of_selected_elements_has_its_derivative() -> None:
    x = T.dmatrix("x")
    slope = function([x], grad((x[x > 0] ** 2).mean(), x))(M)
    np.testing.assert_allclose(slope, np.where(M > 0, 2 * M, 0) / (M > 0).sum())


@pytest.mark.parametrize("name", ["iv", "jv", "gammainc", "gammaincc", "erfinv"])
def test_special_functions_count_their_arguments(name: str) -> None:
    x = T.dvector("x")
    for given in ((), (x, x, x), (x,) if name != "erfinv" else (x, x)):
        with pytest.raises(GraphTypeError, match="takes [12] arguments?, not"):
            getattr(T, name)(*given)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gammaln_has_derivatives_of_any_order(dtype: str) -> None:
    x = T.vector("x", dtype=dtype)
    points = np.array([0.5, 2.0, -1.25, 7.0], dtype)
    value = T.gammaln(x)
    for order in range(6):
        value = grad(value.sum(), x)
        found = function([x], value, mode="interpreted")(points)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, scipy.special.polygamma(order, points), rtol=1e-5)


def test_derivatives_of_bessel_functions_have_the_dtype_of_their_argument() -> None:
    x = T.fvector("x")
    points = np.array([0.5, 2.0], "float32")
    for name, slope in (("j1", scipy.special.jvp), ("i1", scipy.special.ivp)):
        found = function([x], grad(getattr(T, name)(x).sum(), x), mode="interpreted")(points)
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, slope(1, points), rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        T.zeros,
        lambda size: T.full(size, 1.5),
        lambda size: T.alloc(1.5, size),
        lambda size: T.arange(3).reshape(size),
        lambda size: T.broadcast_to(1.5, size),
        lambda size: T.specify_shape(T.arange(3), size),
        lambda size: graphc.random.uniform(T.constant(graphc.random.key(0)), size),
        lambda size: graphc.numpy.full(size, T.constant(1.5)),
    ],
)
def test_a_size_may_be_an_array_without_axes(make: Callable[[Any], Any]) -> None:
    """As NumPy takes it: the same as the number, and as a tuple of it."""
    with graphc.options.change(mode="interpreted"):
        made = [make(size) for size in (np.array(3), np.int32(3), 3, (3,), np.array([3]))]
        given = [each if isinstance(each, np.ndarray) else each.eval() for each in made]
    assert all(value.shape == (3,) for value in given)
    assert all(np.array_equal(value, given[-1]) for value in given)


def test_a_static_size_may_be_an_array_without_axes() -> None:
    size: Any = np.array(3)
    assert T.tensor("float64", shape=size).type.shape == (3,)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_derivatives_of_interp_at_its_points(mode: str) -> None:
    x, xp, fp = T.dvectors("x", "xp", "fp")
    y = T.interp(x, xp, fp)
    at = np.array([-1, 0, 0.5, 1, 1.5, 2, 3, 4, 5.0])
    by_x, by_xp, by_fp = function([x, xp, fp], grad(y.sum(), [x, xp, fp]), mode=mode)(
        at, np.array([0, 1, 2, 4.0]), np.array([1, 2, 4, 7.0])
    )
    np.testing.assert_array_equal(by_x, [0, 1, 1, 2, 2, 1.5, 1.5, 1.5, 0])  # of the stretch above a point, but the last
    np.testing.assert_allclose(by_xp, [-1.5, -3.5, -3.25, -2.25])
    np.testing.assert_allclose(by_fp, [2.5, 2, 2, 2.5])
