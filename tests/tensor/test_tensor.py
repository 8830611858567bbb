"""The user-level functions against NumPy's: values, dtypes, and what a bad call says.

A row of the tables is a name, the graphc expression, the NumPy one, and the arrays both are given. Each row is run
twice: with the arrays' sizes known while the graph is built, and with sizes known only at the call (but for sizes of 1,
which must be known to broadcast).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import graphc.tensor as T
from graphc.autodiff import grad
from graphc.errors import GraphTypeError, GraphValueError, IndexOutOfBounds, ShapeError
from graphc.functions.function import function
from graphc.ir.interpret import interpret
from graphc.ir.node import Array, Node, constant_value, variable
from graphc.ir.walk import Graph
from graphc.options import options
from graphc.tensor import nnet

Row = tuple[str, Callable[..., Any], Callable[..., Any], tuple[Array, ...]]

random = np.random.default_rng(20)
VECTOR = random.normal(size=5)
MATRIX = random.normal(size=(3, 4))
SQUARE = random.normal(size=(4, 4))
CUBE = random.normal(size=(2, 3, 4))
TALL = random.normal(size=(5, 1))
INTS = random.integers(-5, 6, size=(3, 4))
SMALL = random.integers(-5, 6, size=(3, 4)).astype("int8")
BOOLS = random.random((3, 4)) < 0.5
SINGLE = MATRIX.astype("float32")
INDEX = np.array([2, 0, -1, 2])
NAN = np.array([1.0, np.nan, -np.inf, np.inf, -0.0, 2.0])
NOTHING = np.zeros((0, 4))
THREE = np.array(3)


def evaluate(results: Any, inputs: dict[Node, Array]) -> Any:
    """The values of a node, or of a list of nodes."""
    nodes = list(results) if isinstance(results, (list, tuple)) else [results]
    nodes = [T.as_tensor(node) for node in nodes]
    values = interpret(Graph(tuple(inputs), tuple(nodes)), inputs)
    for node, value in zip(nodes, values, strict=True):
        assert (value.dtype.name, value.ndim) == (node.dtype, node.ndim)
        assert all(s == v for s, v in zip(node.type.shape, value.shape, strict=True) if isinstance(s, int))
    return values if isinstance(results, (list, tuple)) else values[0]


def variables_for(arrays: tuple[Array, ...], static: bool) -> list[Node]:
    return [
        variable(array.dtype.name, [n if static or n == 1 else None for n in array.shape], "xyzuvw"[position])
        for position, array in enumerate(arrays)
    ]


def check(build: Callable[..., Any], expect: Callable[..., Any], arrays: tuple[Array, ...], static: bool) -> None:
    nodes = variables_for(arrays, static)
    with np.errstate(all="ignore"):
        wanted = expect(*arrays)
    found = evaluate(build(*nodes), dict(zip(nodes, arrays, strict=True)))
    pairs = list(zip(found, wanted, strict=True)) if isinstance(wanted, (list, tuple)) else [(found, wanted)]
    for value, want in pairs:
        expected = np.asarray(want)
        assert value.dtype == expected.dtype
        tolerance = 1e-5 if expected.dtype == "float32" else 1e-12
        np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance, strict=True)


def rows(*table: Row) -> pytest.MarkDecorator:
    cases = [
        pytest.param(row[1], row[2], row[3], static, id=f"{row[0]}-{'static' if static else 'open'}")
        for row in table
        for static in (True, False)
    ]
    return pytest.mark.parametrize(("build", "expect", "arrays", "static"), cases)


ELEMENTARY: tuple[Row, ...] = (
    ("x + y", lambda x, y: x + y, lambda x, y: x + y, (MATRIX, MATRIX)),
    ("matrix + row", lambda x, y: x + y, lambda x, y: x + y, (MATRIX, MATRIX[0])),
    ("column * row", lambda x, y: x * y, lambda x, y: x * y, (TALL, MATRIX[0])),
    ("array on the left", lambda x: MATRIX - x, lambda x: MATRIX - x, (MATRIX,)),
    ("scalar on the left", lambda x: 2 / x, lambda x: 2 / x, (MATRIX,)),
    ("list", lambda x: x * [1, 2, 3, 4], lambda x: x * [1, 2, 3, 4], (MATRIX,)),
    ("python int is weak", lambda x: x + 1, lambda x: x + 1, (SMALL,)),
    ("python float is weak", lambda x: x * 0.5, lambda x: x * np.float32(0.5), (SINGLE,)),
    ("int and float", lambda x, y: x + y, lambda x, y: x + y, (INTS, SINGLE)),
    ("quotient of ints", lambda x: x / 4, lambda x: x / 4, (INTS,)),
    ("x // y", lambda x: x // 3, lambda x: x // 3, (INTS,)),
    ("x % y", lambda x: x % 3, lambda x: x % 3, (INTS,)),
    ("divmod", lambda x: divmod(x, 3), lambda x: divmod(x, 3), (INTS,)),
    ("rdivmod", lambda x: divmod(7, x), lambda x: divmod(7, x), (INTS * 2 + 1,)),
    ("x ** 2", lambda x: x**2, lambda x: x**2, (MATRIX,)),
    ("2 ** x", lambda x: 2.0**x, lambda x: 2.0**x, (MATRIX,)),
    ("-x", lambda x: -x, lambda x: -x, (SMALL,)),
    ("+x", lambda x: +x, lambda x: +x, (MATRIX,)),
    ("abs", abs, abs, (MATRIX,)),
    ("~x", lambda x: ~x, lambda x: ~x, (BOOLS,)),
    ("bits", lambda x: (x & 6) | 1 ^ x, lambda x: (x & 6) | 1 ^ x, (INTS,)),
    ("shifts", lambda x: (x << 2) >> 1, lambda x: (x << 2) >> 1, (INTS,)),
    ("comparison", lambda x, y: (x < y) & (x >= 0), lambda x, y: (x < y) & (x >= 0), (MATRIX, MATRIX * 0.5)),
    ("eq and neq", lambda x: T.eq(x, 2) | T.neq(x, 1), lambda x: (x == 2) | (x != 1), (INTS,)),
    ("switch", lambda x: T.switch(x > 0, x, 0), lambda x: np.where(x > 0, x, 0), (MATRIX,)),
    ("add of many", lambda x: T.add(x, x, 1), lambda x: x + x + 1, (MATRIX,)),
    ("mul of one", T.mul, lambda x: x, (MATRIX,)),
    ("clip", lambda x: T.clip(x, -0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5), (MATRIX,)),
    ("clip below", lambda x: x.clip(0), lambda x: x.clip(0), (MATRIX,)),
    ("clip above", lambda x: x.clip(max=0), lambda x: x.clip(max=0), (INTS,)),
    ("round", round, np.round, (MATRIX * 3,)),
    ("round halves", T.round, np.round, (np.array([0.5, 1.5, 2.5, -0.5, -1.5]),)),
    ("round decimals", lambda x: x.round(2), lambda x: x.round(2), (MATRIX,)),
    ("round to tens", lambda x: T.round(x, -1), lambda x: np.round(x, -1), (INTS * 7,)),
    (
        "round away",
        lambda x: T.round(x, mode="half_away_from_zero"),
        lambda x: np.array([1.0, 2.0, 3.0, -1.0]),
        (np.array([0.5, 1.5, 2.5, -0.5]),),
    ),
    ("astype", lambda x: x.astype("int32"), lambda x: x.astype("int32"), (MATRIX * 9,)),
    ("cast", lambda x: T.cast(x, "float32"), lambda x: x.astype("float32"), (INTS,)),
    (
        "isclose",
        lambda x: T.isclose(x, [1.0, np.nan, -np.inf, 0, 0, 2 + 1e-9]),
        lambda x: np.isclose(x, [1.0, np.nan, -np.inf, 0, 0, 2 + 1e-9]),
        (NAN,),
    ),
    ("isclose nan", lambda x: T.isclose(x, x, equal_nan=True), lambda x: np.isclose(x, x, equal_nan=True), (NAN,)),
    ("allclose", lambda x: T.allclose(x, x + 1e-10), lambda x: np.allclose(x, x + 1e-10), (MATRIX,)),
    ("nan_to_num", T.nan_to_num, np.nan_to_num, (NAN,)),
    (
        "nan_to_num given",
        lambda x: T.nan_to_num(x, 1, 2, 3),
        lambda x: np.nan_to_num(x, nan=1, posinf=2, neginf=3),
        (NAN,),
    ),
    ("logit", T.logit, lambda x: np.log(x / (1 - x)), (np.array([0.1, 0.5, 0.99]),)),
    ("log1mexp", T.log1mexp, lambda x: np.log(1 - np.exp(x)), (np.array([-0.1, -0.7, -3.0]),)),
    ("inv of integers", lambda x: T.inv(T.cast(x, "int32") * 0 + 4), lambda x: x * 0 + 0.25, (MATRIX,)),
    ("inv, sgn, sqr", lambda x: [T.inv(x), T.sgn(x), T.sqr(x)], lambda x: [1 / x, np.sign(x), x * x], (MATRIX,)),
    ("stop_gradient", T.disconnected_grad, lambda x: x, (MATRIX,)),
)

REDUCTIONS: tuple[Row, ...] = (
    ("sum", lambda x: x.sum(), np.sum, (CUBE,)),
    ("sum axis", lambda x: x.sum(axis=1), lambda x: x.sum(axis=1), (CUBE,)),
    ("sum axes", lambda x: x.sum(axis=(0, -1)), lambda x: x.sum(axis=(0, -1)), (CUBE,)),
    ("sum keepdims", lambda x: x.sum(axis=-1, keepdims=True), lambda x: x.sum(axis=-1, keepdims=True), (CUBE,)),
    ("sum no axes", lambda x: x.sum(axis=()), lambda x: x.sum(axis=()), (CUBE,)),
    ("sum of bools", T.sum, np.sum, (BOOLS,)),
    ("sum of int8", T.sum, np.sum, (SMALL,)),
    ("sum as float32", lambda x: T.sum(x, dtype="float32"), lambda x: np.sum(x, dtype="float32"), (INTS,)),
    ("sum of float32", lambda x: T.sum(x, 0), lambda x: np.sum(x, 0), (SINGLE,)),
    ("sum of nothing", lambda x: x.sum(0), lambda x: x.sum(0), (NOTHING,)),
    ("sum of a scalar", T.sum, np.sum, (np.array(2.5),)),
    ("prod", lambda x: x.prod(1), lambda x: x.prod(1), (MATRIX,)),
    ("prod of ints", T.prod, np.prod, (INTS,)),
    ("mean", lambda x: x.mean(axis=0), lambda x: x.mean(axis=0), (MATRIX,)),
    ("mean of ints", T.mean, np.mean, (INTS,)),
    ("mean of float32", lambda x: T.mean(x, 1, keepdims=True), lambda x: np.mean(x, 1, keepdims=True), (SINGLE,)),
    ("mean of nothing", lambda x: x.mean(0), lambda x: np.full(4, np.nan), (NOTHING,)),
    ("var", lambda x: x.var(axis=1), lambda x: x.var(axis=1), (MATRIX,)),
    ("var ddof", lambda x: x.var(axis=0, ddof=1), lambda x: x.var(axis=0, ddof=1), (MATRIX,)),
    ("std", lambda x: T.std(x, keepdims=True), lambda x: np.std(x, keepdims=True), (INTS,)),
    ("average", lambda x: T.average(x, 0, [1, 2, 3]), lambda x: np.average(x, 0, [1, 2, 3]), (MATRIX,)),
    ("max", lambda x: x.max(), np.max, (MATRIX,)),
    ("max axis", lambda x: x.max(-1), lambda x: x.max(-1), (CUBE,)),
    ("max of nan", T.max, np.max, (NAN,)),
    ("max of no rows", lambda x: x.max(1), lambda x: x.max(1), (NOTHING,)),
    ("min", lambda x: x.min((0, 1), keepdims=True), lambda x: x.min((0, 1), keepdims=True), (INTS,)),
    ("min of bools", lambda x: x.min(0), lambda x: x.min(0), (BOOLS,)),
    ("ptp", lambda x: x.ptp(1), lambda x: np.ptp(x, 1), (MATRIX,)),
    ("argmax", lambda x: x.argmax(), np.argmax, (CUBE,)),
    ("argmax axis", lambda x: x.argmax(1), lambda x: x.argmax(1), (CUBE,)),
    ("argmax keepdims", lambda x: T.argmax(x, -1, True), lambda x: np.argmax(x, -1, keepdims=True), (INTS,)),
    ("argmax of nan", T.argmax, np.argmax, (NAN,)),
    ("argmin", lambda x: x.argmin(0), lambda x: x.argmin(0), (INTS,)),
    ("argmin of bools", T.argmin, np.argmin, (BOOLS,)),
    ("argmax of a scalar", T.argmax, np.argmax, (np.array(2.0),)),
    ("any, all", lambda x: [x.any(0), x.all()], lambda x: [x.any(0), x.all()], (BOOLS,)),
    ("any of floats", lambda x: T.any(x, 1), lambda x: np.any(x, 1), (INTS,)),
    ("all of nothing", lambda x: T.all(x, 0), lambda x: np.all(x, 0), (NOTHING,)),
    ("count_nonzero", lambda x: T.count_nonzero(x, 0), lambda x: np.count_nonzero(x, 0), (INTS,)),
    ("norm", lambda x: x.norm(), np.linalg.norm, (MATRIX,)),
    ("norm 1", lambda x: x.norm(1, axis=0), lambda x: np.linalg.norm(x, 1, axis=0), (MATRIX,)),
    ("norm 3", lambda x: T.norm(x, 3), lambda x: np.linalg.norm(x, 3), (VECTOR,)),
    ("norm inf", lambda x: T.norm(x, np.inf), lambda x: np.linalg.norm(x, np.inf), (VECTOR,)),
    ("norm 0", lambda x: T.norm(x, 0), lambda x: np.linalg.norm(x, 0), (VECTOR,)),
    ("max_and_argmax", lambda x: T.max_and_argmax(x, 1), lambda x: [x.max(1), x.argmax(1)], (MATRIX,)),
    ("logsumexp", lambda x: T.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1)), (MATRIX,)),
    ("logsumexp of much", T.logsumexp, lambda x: x.max() + np.log(2), (np.array([1000.0, 1000.0, -1000.0]),)),
    ("logsumexp of -inf", T.logsumexp, lambda x: -np.inf, (np.array([-np.inf, -np.inf]),)),
    ("logsumexp of inf", T.logsumexp, lambda x: np.inf, (np.array([1.0, np.inf]),)),
    ("cumsum", lambda x: x.cumsum(1), lambda x: x.cumsum(1), (MATRIX,)),
    ("cumsum of all", T.cumsum, np.cumsum, (INTS,)),
    ("cumsum of int8", lambda x: T.cumsum(x, 0), lambda x: np.cumsum(x, 0), (SMALL,)),
    ("cumprod", lambda x: T.cumprod(x, 0), lambda x: np.cumprod(x, 0), (CUBE,)),
)

SHAPING: tuple[Row, ...] = (
    ("shape", lambda x: x.shape, lambda x: np.array(x.shape), (CUBE,)),
    ("shape item", lambda x: x.shape[1], lambda x: np.array(x.shape[1]), (CUBE,)),
    ("shape slice", lambda x: x.shape[1:], lambda x: np.array(x.shape[1:]), (CUBE,)),
    ("size", lambda x: x.size, lambda x: np.array(x.size), (CUBE,)),
    ("product of shape", lambda x: T.prod(x.shape[:2]), lambda x: np.array(6), (CUBE,)),
    ("reshape", lambda x: x.reshape((4, 3)), lambda x: x.reshape(4, 3), (MATRIX,)),
    ("reshape arguments", lambda x: x.reshape(2, 6), lambda x: x.reshape(2, 6), (MATRIX,)),
    ("reshape -1", lambda x: x.reshape((-1, 2)), lambda x: x.reshape(-1, 2), (MATRIX,)),
    ("reshape by Theano's name", lambda x: T.reshape(x, newshape=(4, 3)), lambda x: x.reshape(4, 3), (MATRIX,)),
    ("reshape by NumPy's name", lambda x: x.reshape(shape=(4, 3)), lambda x: x.reshape(4, 3), (MATRIX,)),
    ("reshape all", lambda x: x.reshape(-1), lambda x: x.reshape(-1), (CUBE,)),
    ("reshape symbolic", lambda x: x.reshape((x.shape[1], x.shape[0])), lambda x: x.reshape(4, 3), (MATRIX,)),
    ("reshape rest", lambda x: x.reshape((x.shape[0], -1)), lambda x: x.reshape(2, 12), (CUBE,)),
    ("reshape join", lambda x: x.reshape((x.shape[0] * x.shape[1], x.shape[2])), lambda x: x.reshape(6, 4), (CUBE,)),
    ("reshape to shape", lambda x, y: x.reshape(y.shape), lambda x, y: x.reshape(y.shape), (MATRIX, MATRIX.T)),
    ("reshape vector", lambda x, s: T.reshape(x, s, ndim=2), lambda x, s: x.reshape(s), (MATRIX, np.array([2, 6]))),
    ("reshape nothing", lambda x: x.reshape((2, 0)), lambda x: x.reshape((2, 0)), (NOTHING,)),
    ("flatten", lambda x: x.flatten(), lambda x: x.flatten(), (CUBE,)),
    ("flatten ndim", lambda x: T.flatten(x, 2), lambda x: x.reshape(2, 12), (CUBE,)),
    ("ravel", lambda x: x.T.ravel(), lambda x: x.T.ravel(), (MATRIX,)),
    ("T", lambda x: x.T, lambda x: x.T, (CUBE,)),
    ("dimshuffle", lambda x: x.dimshuffle(1, "x", 0), lambda x: x.T[:, None], (MATRIX,)),
    ("dimshuffle tuple", lambda x: x.dimshuffle((1, 0)), lambda x: x.T, (MATRIX,)),
    ("dimshuffle drops", lambda x: x.dimshuffle(0), lambda x: x[:, 0], (TALL,)),
    ("transpose", lambda x: x.transpose(2, 0, 1), lambda x: x.transpose(2, 0, 1), (CUBE,)),
    ("transpose tuple", lambda x: T.transpose(x, (0, -1, 1)), lambda x: np.transpose(x, (0, -1, 1)), (CUBE,)),
    ("swapaxes", lambda x: x.swapaxes(0, -1), lambda x: x.swapaxes(0, -1), (CUBE,)),
    ("moveaxis", lambda x: T.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), (CUBE,)),
    ("moveaxis several", lambda x: T.moveaxis(x, (0, 1), (-1, 0)), lambda x: np.moveaxis(x, (0, 1), (-1, 0)), (CUBE,)),
    ("expand_dims", lambda x: T.expand_dims(x, -1), lambda x: np.expand_dims(x, -1), (MATRIX,)),
    ("expand_dims several", lambda x: T.expand_dims(x, (0, 2)), lambda x: np.expand_dims(x, (0, 2)), (MATRIX,)),
    ("squeeze", lambda x: x.squeeze(), lambda x: x.squeeze(), (TALL,)),
    ("squeeze axis", lambda x: T.squeeze(x, -1), lambda x: np.squeeze(x, -1), (TALL,)),
    ("padleft", lambda x: T.shape_padleft(x, 2), lambda x: x[None, None], (MATRIX,)),
    ("padright", T.shape_padright, lambda x: x[..., None], (MATRIX,)),
    ("padaxis", lambda x: T.shape_padaxis(x, 1), lambda x: x[:, None], (MATRIX,)),
    ("atleast_1d", T.atleast_1d, np.atleast_1d, (np.array(2.0),)),
    ("atleast_2d", T.atleast_2d, np.atleast_2d, (VECTOR,)),
    ("atleast_3d", T.atleast_3d, np.atleast_3d, (VECTOR, MATRIX)),
    ("broadcast_to", lambda x: T.broadcast_to(x, (2, 5, 3)), lambda x: np.broadcast_to(x, (2, 5, 3)), (TALL,)),
    (
        "broadcast_to symbolic",
        lambda x, y: T.broadcast_to(x, (y.shape[1], y.shape[0], 1)),
        lambda x, y: np.broadcast_to(x, (4, 3, 1)),
        (TALL[:3], MATRIX),
    ),
    ("broadcast_arrays", T.broadcast_arrays, np.broadcast_arrays, (TALL, MATRIX[0])),
    ("specify_shape", lambda x: T.specify_shape(x, (3, None)) + T.ones((3, 1)), lambda x: x + 1, (MATRIX,)),
    (
        "addbroadcast",
        lambda x: T.addbroadcast(x[:1], 0) + T.zeros((2, 4)),
        lambda x: x[:1] + np.zeros((2, 4)),
        (MATRIX,),
    ),
    ("patternbroadcast", lambda x: T.patternbroadcast(x, (False, False)), lambda x: x, (MATRIX,)),
    ("unbroadcast", lambda x: T.unbroadcast(x, 0), lambda x: x, (MATRIX,)),
    ("item", lambda x: x[:1, :1].reshape((1, 1)).item(), lambda x: x[0, 0], (MATRIX,)),
)

JOINING: tuple[Row, ...] = (
    ("concatenate", lambda x, y: T.concatenate([x, y]), lambda x, y: np.concatenate([x, y]), (MATRIX, SQUARE)),
    (
        "concatenate axis",
        lambda x, y: T.concatenate([x, y], axis=-1),
        lambda x, y: np.concatenate([x, y], -1),
        (MATRIX, INTS),
    ),
    ("concatenate list", lambda x: T.concatenate([x, [1.0, 2.0]]), lambda x: np.concatenate([x, [1, 2]]), (VECTOR,)),
    ("join", lambda x: T.join(1, x, x), lambda x: np.concatenate([x, x], 1), (MATRIX,)),
    ("stack", lambda x, y: T.stack([x, y], axis=1), lambda x, y: np.stack([x, y], axis=1), (MATRIX, MATRIX)),
    ("stack last", lambda x, y: T.stack((x, y), -1), lambda x, y: np.stack((x, y), -1), (MATRIX, MATRIX)),
    ("stack as Theano's", T.stack, lambda x, y: np.stack([x, y]), (VECTOR, VECTOR)),
    ("stack scalars", lambda x: T.stack([x, x, 1.0]), lambda x: np.stack([x, x, 1.0]), (np.array(2.0),)),
    ("list of scalars", lambda x: T.as_tensor([x[0], 2.0]), lambda x: np.array([x[0], 2.0]), (VECTOR,)),
    ("hstack", lambda x, y: T.hstack((x, y)), lambda x, y: np.hstack((x, y)), (VECTOR, VECTOR)),
    ("hstack matrices", lambda x, y: T.hstack((x, y)), lambda x, y: np.hstack((x, y)), (MATRIX, MATRIX)),
    ("vstack", lambda x, y: T.vstack((x, y)), lambda x, y: np.vstack((x, y)), (VECTOR, VECTOR)),
    ("dstack", lambda x, y: T.dstack((x, y)), lambda x, y: np.dstack((x, y)), (MATRIX, MATRIX)),
    ("column_stack", lambda x, y: T.column_stack((x, y)), lambda x, y: np.column_stack((x, y)), (VECTOR, TALL)),
    ("split Theano", lambda x: T.split(x, [1, 3], 2, axis=1), lambda x: [x[:, :1], x[:, 1:]], (MATRIX,)),
    ("split symbolic", lambda x, s: T.split(x, s, 2), lambda x, s: [x[:2], x[2:]], (VECTOR, np.array([2, 3]))),
    ("split equally", lambda x: T.split(x, 2, axis=1), lambda x: np.split(x, 2, axis=1), (MATRIX,)),
    ("split at", lambda x: T.split(x, [1, 3]), lambda x: np.split(x, [1, 3]), (VECTOR,)),
    ("array_split", lambda x: T.array_split(x, 3), lambda x: np.array_split(x, 3), (VECTOR,)),
    ("tile", lambda x: T.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), (MATRIX,)),
    ("tile more axes", lambda x: T.tile(x, (2, 1, 2)), lambda x: np.tile(x, (2, 1, 2)), (MATRIX,)),
    ("tile fewer axes", lambda x: T.tile(x, 2), lambda x: np.tile(x, 2), (MATRIX,)),
    ("tile symbolic", lambda x, n: T.tile(x, (n, 1)), lambda x, n: np.tile(x, (3, 1)), (MATRIX, THREE)),
    ("repeat", lambda x: x.repeat(2), lambda x: x.repeat(2), (MATRIX,)),
    ("repeat axis", lambda x: T.repeat(x, 3, axis=1), lambda x: np.repeat(x, 3, axis=1), (MATRIX,)),
    ("repeat symbolic", lambda x, n: T.repeat(x, n, 0), lambda x, n: np.repeat(x, 3, 0), (MATRIX, THREE)),
    ("roll", lambda x: T.roll(x, 2), lambda x: np.roll(x, 2), (MATRIX,)),
    ("roll axis", lambda x: T.roll(x, -1, axis=1), lambda x: np.roll(x, -1, axis=1), (MATRIX,)),
    ("roll axes", lambda x: T.roll(x, (1, 7), axis=(0, 1)), lambda x: np.roll(x, (1, 7), axis=(0, 1)), (MATRIX,)),
    ("roll symbolic", lambda x, n: T.roll(x, n, 0), lambda x, n: np.roll(x, 3, 0), (VECTOR, THREE)),
    ("diff", T.diff, np.diff, (MATRIX,)),
    ("diff twice", lambda x: T.diff(x, 2, axis=0), lambda x: np.diff(x, 2, axis=0), (INTS,)),
    (
        "pad",
        lambda x: T.pad(x, ((1, 2), (0, 1)), constant_values=7),
        lambda x: np.pad(x, ((1, 2), (0, 1)), constant_values=7),
        (MATRIX,),
    ),
)

CREATION: tuple[Row, ...] = (
    ("zeros", lambda x: T.zeros((2, x.shape[0])), lambda x: np.zeros((2, 3)), (MATRIX,)),
    ("zeros of a shape", lambda x: T.zeros(x.shape, "int8"), lambda x: np.zeros(x.shape, "int8"), (MATRIX,)),
    ("zeros of a number", lambda: T.zeros(3), lambda: np.zeros(3), ()),
    ("ones", lambda n: T.ones((n, 2), dtype="float32"), lambda n: np.ones((3, 2), "float32"), (THREE,)),
    ("full", lambda x: T.full((2, 3), x), lambda x: np.full((2, 3), x), (np.array(2.5),)),
    ("full of a row", lambda x: T.full((3, 4), x), lambda x: np.full((3, 4), x), (MATRIX[0],)),
    ("zeros_like", lambda x: x.zeros_like(), np.zeros_like, (INTS,)),
    ("ones_like", lambda x: T.ones_like(x, dtype="bool"), lambda x: np.ones_like(x, "bool"), (MATRIX,)),
    ("full_like", lambda x: T.full_like(x, 2), lambda x: np.full_like(x, 2), (SINGLE,)),
    ("alloc", lambda x: T.alloc(1.5, x.shape[0], 2), lambda x: np.full((3, 2), 1.5), (MATRIX,)),
    ("fill", lambda x: x.fill(2.0), lambda x: np.full(x.shape, 2.0), (INTS,)),
    ("arange", lambda: T.arange(5), lambda: np.arange(5), ()),
    ("arange 3 to 10", lambda: T.arange(3, 10, 2), lambda: np.arange(3, 10, 2), ()),
    ("arange down", lambda: T.arange(10, 0, -3), lambda: np.arange(10, 0, -3), ()),
    ("arange of none", lambda: T.arange(5, 2), lambda: np.arange(5, 2), ()),
    ("arange of floats", lambda: T.arange(0.1, 1.0, 0.1), lambda: np.arange(0.1, 1.0, 0.1), ()),
    ("arange dtype", lambda: T.arange(4, dtype="float32"), lambda: np.arange(4, dtype="float32"), ()),
    ("arange symbolic", T.arange, lambda n: np.arange(3), (THREE,)),
    ("arange symbolic down", lambda n: T.arange(n, -n, -1), lambda n: np.arange(3, -3, -1), (THREE,)),
    ("arange symbolic step", lambda n: T.arange(-4, 5, n), lambda n: np.arange(-4, 5, 3), (THREE,)),
    ("arange step down", lambda n: T.arange(5, -4, -n), lambda n: np.arange(5, -4, -3), (THREE,)),
    ("arange of a float", T.arange, np.arange, (np.array(2.5),)),
    ("arange of a size", lambda x: T.arange(x.shape[0]), lambda x: np.arange(3), (MATRIX,)),
    ("linspace", lambda: T.linspace(1, 3, 7), lambda: np.linspace(1, 3, 7), ()),
    (
        "linspace open",
        lambda x: T.linspace(0, x, 4, endpoint=False),
        lambda x: np.linspace(0, x, 4, False),
        (np.array(2.0),),
    ),
    ("linspace of one", lambda: T.linspace(1, 3, 1), lambda: np.linspace(1, 3, 1), ()),
    ("logspace", lambda: T.logspace(0, 2, 3), lambda: np.logspace(0, 2, 3), ()),
    ("eye", lambda: T.eye(3), lambda: np.eye(3), ()),
    ("eye n m k", lambda n: T.eye(n, 4, 1, "int32"), lambda n: np.eye(3, 4, 1, "int32"), (THREE,)),
    ("identity_like", T.identity_like, lambda x: np.eye(3, 4), (MATRIX,)),
    ("tri", lambda: T.tri(3, 4, -1), lambda: np.tri(3, 4, -1), ()),
    ("tril", lambda x: T.tril(x, 1), lambda x: np.tril(x, 1), (MATRIX,)),
    ("triu", T.triu, np.triu, (CUBE,)),
    ("meshgrid", T.meshgrid, np.meshgrid, (VECTOR, MATRIX[0])),
    (
        "meshgrid ij",
        lambda x, y: T.meshgrid(x, y, indexing="ij"),
        lambda x, y: np.meshgrid(x, y, indexing="ij"),
        (VECTOR, MATRIX[0]),
    ),
    ("one_hot", lambda x: T.one_hot(x, 3), lambda x: np.eye(3)[x], (np.array([2, 0, 1, 2]),)),
)

KEYS: tuple[tuple[str, Any], ...] = (
    ("an integer", np.s_[1]),
    ("a negative integer", np.s_[-1]),
    ("two integers", np.s_[1, 2]),
    ("three integers", np.s_[1, -1, 2]),
    ("the last axis", np.s_[..., 0]),
    ("a slice", np.s_[:, 1:]),
    ("a slice to", np.s_[:, :2]),
    ("a slice to the last", np.s_[:, :-1]),
    ("the last two", np.s_[..., -2:]),
    ("between", np.s_[:, :, 1:-1]),
    ("from the end to the end", np.s_[:, :, -3:-1]),
    ("beyond the end", np.s_[:, 1:100, 50:]),
    ("before the start", np.s_[:, -100:2]),
    ("backwards bounds", np.s_[:, 2:1]),
    ("every other", np.s_[:, ::2, 1::2]),
    ("reversed", np.s_[::-1, :, ::-1]),
    ("down from", np.s_[:, 1::-1, 2:0:-1]),
    ("down to a negative", np.s_[:, :, :-3:-1]),
    ("down from beyond", np.s_[:, :, 100:-100:-2]),
    ("down from a negative", np.s_[:, :, -2::-1]),
    ("new axes", np.s_[None, :, None, 1]),
    ("an ellipsis and a new axis", np.s_[..., None]),
    ("everything", np.s_[:]),
    ("an ellipsis alone", np.s_[...]),
    ("a list", np.s_[[1, 0, 1]]),
    ("an array in the middle", np.s_[:, np.array([[2, 0], [1, -1]])]),
    ("an array at the end", np.s_[..., [3, 0, 0]]),
    ("two arrays", np.s_[[0, 1], [2, 0]]),
    ("arrays that broadcast", np.s_[[[0], [1]], [2, 0, 1]]),
    ("arrays apart", np.s_[[0, 1], :, [2, 0]]),
    ("arrays apart by a new axis", np.s_[[0, 1], None, [2, 0]]),
    ("an array and an integer", np.s_[1, [2, 0]]),
    ("an array and an integer apart", np.s_[1, :, [2, 0]]),
    ("an array and slices", np.s_[::-1, [2, 0], 1:3]),
    ("arrays at the end", np.s_[:, [0, 2], [1, 3]]),
    ("arrays and new axes", np.s_[None, :, [0, 2], None, 1:]),
    ("no elements", np.s_[[]]),
    ("a mask", np.s_[np.array([True, False])]),
    ("a wide mask", np.s_[np.array([[True, False, True], [False, False, True]])]),
    ("a mask and a slice", np.s_[:, np.array([True, False, True]), ::2]),
)

INDEXING: tuple[Row, ...] = (
    *((f"x[{name}]", lambda x, key=key: x[key], lambda x, key=key: x[key], (CUBE,)) for name, key in KEYS),
    ("x[i]", lambda x, i: x[i], lambda x, i: x[i], (MATRIX, np.array(2))),
    ("x[-i]", lambda x, i: x[-i, 1], lambda x, i: x[-i, 1], (MATRIX, np.array(2))),
    ("x[i] of int32", lambda x, i: x[i], lambda x, i: x[i], (MATRIX, np.array(-1, "int32"))),
    ("x[i:]", lambda x, i: x[i:], lambda x, i: x[i:], (VECTOR, np.array(2))),
    ("x[i:] negative", lambda x, i: x[i:], lambda x, i: x[i:], (VECTOR, np.array(-2))),
    ("x[i:] beyond", lambda x, i: x[i:], lambda x, i: x[i:], (VECTOR, np.array(9))),
    ("x[:i]", lambda x, i: x[:i], lambda x, i: x[:i], (VECTOR, np.array(2))),
    ("x[:i] negative", lambda x, i: x[:i], lambda x, i: x[:i], (VECTOR, np.array(-2))),
    ("x[:i] far negative", lambda x, i: x[:i], lambda x, i: x[:i], (VECTOR, np.array(-9))),
    ("x[i:j]", lambda x, i, j: x[i:j], lambda x, i, j: x[i:j], (VECTOR, np.array(1), np.array(4))),
    ("x[i:j:-1]", lambda x, i, j: x[i:j:-1], lambda x, i, j: x[i:j:-1], (VECTOR, np.array(4), np.array(1))),
    ("x[i::-2]", lambda x, i: x[i::-2], lambda x, i: x[i::-2], (VECTOR, np.array(-1))),
    ("x[:i:-1]", lambda x, i: x[:i:-1], lambda x, i: x[:i:-1], (VECTOR, np.array(-3))),
    ("x[::s]", lambda x, s: x[::s], lambda x, s: x[::s], (VECTOR, np.array(2))),
    ("x[::-s]", lambda x, s: x[::s], lambda x, s: x[::s], (VECTOR, np.array(-2))),
    ("x[1:4:s]", lambda x, s: x[:, 1:4:s], lambda x, s: x[:, 1:4:s], (MATRIX, np.array(2))),
    ("x[:, ::s][array]", lambda x, s: x[[1, 0], ::s], lambda x, s: x[[1, 0], ::s], (CUBE, np.array(-1))),
    ("x[index]", lambda x, i: x[i], lambda x, i: x[i], (MATRIX, INDEX)),
    ("x[:, index]", lambda x, i: x[:, i], lambda x, i: x[:, i], (MATRIX, INDEX)),
    ("x[rows, index]", lambda x, i: x[T.arange(3), i], lambda x, i: x[np.arange(3), i], (MATRIX, INDEX[:3])),
    ("x[uint8]", lambda x, i: x[i], lambda x, i: x[i], (MATRIX, np.array([2, 0], "uint8"))),
    ("x[i, index]", lambda x, i, j: x[i, :, j], lambda x, i, j: x[i, :, j], (CUBE, np.array(1), INDEX)),
    ("take", lambda x, i: x.take(i, axis=0), lambda x, i: x.take(i, axis=0), (MATRIX, INDEX)),
    ("take of all", lambda x: T.take(x, [[5, 0]]), lambda x: np.take(x, [[5, 0]]), (MATRIX,)),
    ("take wrap", lambda x: T.take(x, [5, -7], 1, "wrap"), lambda x: np.take(x, [5, -7], 1, mode="wrap"), (MATRIX,)),
    ("take clip", lambda x: T.take(x, [5, -7], 1, "clip"), lambda x: np.take(x, [5, -7], 1, mode="clip"), (MATRIX,)),
    ("diagonal", lambda x: x.diagonal(), lambda x: x.diagonal(), (MATRIX,)),
    ("diagonal offset", lambda x: T.diagonal(x, -1), lambda x: np.diagonal(x, -1), (MATRIX,)),
    ("diagonal axes", lambda x: T.diagonal(x, 1, 2, 0), lambda x: np.diagonal(x, 1, 2, 0), (CUBE,)),
    ("diag of a vector", T.diag, np.diag, (VECTOR,)),
    ("diag of a vector, offset", lambda x: T.diag(x, -2), lambda x: np.diag(x, -2), (VECTOR,)),
    ("diag of a matrix", lambda x: T.diag(x, 1), lambda x: np.diag(x, 1), (MATRIX,)),
    ("trace", lambda x: x.trace(), np.trace, (SQUARE,)),
    ("flip", T.flip, np.flip, (CUBE,)),
    ("flip axis", lambda x: T.flip(x, (0, -1)), lambda x: np.flip(x, (0, -1)), (CUBE,)),
    ("fliplr, flipud", lambda x: [T.fliplr(x), T.flipud(x)], lambda x: [np.fliplr(x), np.flipud(x)], (MATRIX,)),
    ("iteration", lambda x: list(T.specify_shape(x, (3, 4))), list, (MATRIX,)),
)


def updated(x: Array, key: Any, y: Any, add: bool) -> Array:
    """NumPy's result of an update."""
    result = x.copy()
    if add:
        np.add.at(result, key, y)
    else:
        result[key] = y
    return result


UPDATES: tuple[Row, ...] = (
    *(
        row
        for name, key in KEYS
        for row in (
            (
                f"set x[{name}]",
                lambda x, key=key: T.set_subtensor(x[key], 7),
                lambda x, key=key: updated(x, key, 7, False),
                (CUBE,),
            ),
            (
                f"inc x[{name}]",
                lambda x, key=key: T.inc_subtensor(x[key], 7),
                lambda x, key=key: updated(x, key, 7, True),
                (CUBE,),
            ),
        )
    ),
    (
        "set an array",
        lambda x, y: T.set_subtensor(x[1:, ::-1], y),
        lambda x, y: updated(x, np.s_[1:, ::-1], y, False),
        (MATRIX, MATRIX[:2] * 2),
    ),
    (
        "set a row",
        lambda x, y: T.set_subtensor(x[1:], y),
        lambda x, y: updated(x, np.s_[1:], y, False),
        (MATRIX, MATRIX[0]),
    ),
    (
        "set a column",
        lambda x, y: T.set_subtensor(x[:, 1], y),
        lambda x, y: updated(x, np.s_[:, 1], y, False),
        (MATRIX, VECTOR[:3]),
    ),
    ("set of a transpose", lambda x: T.set_subtensor(x.T[0], 0), lambda x: updated(x.T, 0, 0, False), (MATRIX,)),
    ("set of a slice", lambda x: T.set_subtensor(x[1:][0], 0), lambda x: updated(x[1:], 0, 0, False), (MATRIX,)),
    (
        "set points of a slice",
        lambda x: T.set_subtensor(x[1:][[0, 1], [2, 3]], 0),
        lambda x: updated(x[1:], ([0, 1], [2, 3]), 0, False),
        (MATRIX,),
    ),
    ("inc repeated", lambda x, i: T.inc_subtensor(x[i], 1), lambda x, i: updated(x, i, 1, True), (MATRIX, INDEX)),
    (
        "set symbolic",
        lambda x, i: T.set_subtensor(x[i:], 0),
        lambda x, i: updated(x, np.s_[2:], 0, False),
        (VECTOR, np.array(2)),
    ),
    (
        "inc every s",
        lambda x, s: T.inc_subtensor(x[::s], 1),
        lambda x, s: updated(x, np.s_[::-2], 1, True),
        (VECTOR, np.array(-2)),
    ),
    (
        "inc every s, array",
        lambda x, s: T.inc_subtensor(x[[1, 1], ::s], 1),
        lambda x, s: updated(x, np.s_[[1, 1], ::-2], 1, True),
        (CUBE, np.array(-2)),
    ),
    *(
        (
            f"{name} of wider numbers",
            lambda x, y, write=write: write(x[1:], y),
            lambda x, y, name=name: updated(x, slice(1, None), y.astype(x.dtype), name == "inc"),
            (whole, part),
        )
        for name, write in (("set", T.set_subtensor), ("inc", T.inc_subtensor))
        for whole, part in ((SMALL, INTS[0] * 1000), (SINGLE, MATRIX[0]))
    ),
    ("set diagonal", lambda x: T.set_subtensor(x.diagonal(), 0), lambda x: x * (1 - np.eye(4)), (SQUARE,)),
    ("set method", lambda x: x[0].set(1), lambda x: updated(x, 0, 1, False), (MATRIX,)),
    ("inc method", lambda x: x[0].inc(1), lambda x: updated(x, 0, 1, True), (MATRIX,)),
    (
        "set int into float",
        lambda x, y: T.set_subtensor(x[0], y[0]),
        lambda x, y: updated(x, 0, y[0], False),
        (MATRIX, SMALL),
    ),
    (
        "set in zeros",
        lambda x: T.set_subtensor(T.zeros(x.shape)[1:], x[1:]),
        lambda x: updated(x, 0, 0, False),
        (MATRIX,),
    ),
    (
        "set in a constant",
        lambda x: T.set_subtensor(T.constant([1, 2, 3])[1], x),
        lambda x: np.array([1, 3, 3]),
        (THREE,),
    ),
)

PRODUCTS: tuple[Row, ...] = (
    *(
        (f"dot {a.ndim} {b.ndim}", T.dot, np.dot, (a, b))
        for a, b in (
            (VECTOR, VECTOR),
            (MATRIX, SQUARE),
            (MATRIX, MATRIX[0]),
            (VECTOR[:3], MATRIX),
            (np.array(2.0), MATRIX),
            (CUBE, SQUARE),
            (CUBE, MATRIX[0]),
            (MATRIX, CUBE.transpose(0, 2, 1)),
            (VECTOR[:3], CUBE),
            (CUBE, CUBE.transpose(0, 2, 1)),
        )
    ),
    *(
        (f"matmul {a.shape} {b.shape}", lambda a, b: a @ b, np.matmul, (a, b))
        for a, b in (
            (VECTOR, VECTOR),
            (MATRIX, SQUARE),
            (MATRIX, MATRIX[0]),
            (VECTOR[:3], MATRIX),
            (CUBE, SQUARE),
            (CUBE, MATRIX[0]),
            (SQUARE[:, :3], CUBE),
            (VECTOR[:3], CUBE),
            (CUBE, CUBE.transpose(0, 2, 1)),
            (CUBE[:, None], CUBE.transpose(0, 2, 1)),
            (CUBE[:1], CUBE.transpose(0, 2, 1)),
        )
    ),
    ("dot of ints", T.dot, np.dot, (INTS, INTS.T)),
    ("dot of int8", T.dot, np.dot, (SMALL, SMALL.T)),
    ("dot of bools", T.dot, np.dot, (BOOLS, BOOLS.T)),
    ("dot of dtypes", lambda x, y: x.dot(y), np.dot, (SINGLE, INTS.T)),
    ("array @ node", lambda x: MATRIX @ x, lambda x: MATRIX @ x, (SQUARE,)),
    ("outer", T.outer, np.outer, (VECTOR, MATRIX)),
    ("inner", T.inner, np.inner, (MATRIX, CUBE)),
    ("inner of vectors", T.inner, np.inner, (VECTOR, VECTOR)),
    ("vdot", T.vdot, np.vdot, (MATRIX, MATRIX)),
    ("tensordot", T.tensordot, np.tensordot, (CUBE, CUBE[0].reshape(3, 4))),
    ("tensordot 1", lambda x, y: T.tensordot(x, y, 1), lambda x, y: np.tensordot(x, y, 1), (CUBE, SQUARE)),
    ("tensordot 0", lambda x, y: T.tensordot(x, y, 0), lambda x, y: np.tensordot(x, y, 0), (VECTOR, MATRIX)),
    (
        "tensordot axes",
        lambda x, y: T.tensordot(x, y, [[0, 2], [2, 0]]),
        lambda x, y: np.tensordot(x, y, ([0, 2], [2, 0])),
        (CUBE, CUBE.T),
    ),
    (
        "tensordot one axis",
        lambda x, y: T.tensordot(x, y, (1, 0)),
        lambda x, y: np.tensordot(x, y, (1, 0)),
        (CUBE, MATRIX),
    ),
    ("batched_dot", T.batched_dot, np.matmul, (CUBE, CUBE.transpose(0, 2, 1))),
    ("batched_dot of rows", T.batched_dot, lambda x, y: np.einsum("bi,bij->bj", x, y), (CUBE[:, :, 0], CUBE)),
    ("batched_dot of pairs", T.batched_dot, lambda x, y: np.einsum("bi,bi->b", x, y), (MATRIX, MATRIX)),
    ("kron", T.kron, np.kron, (MATRIX, CUBE[0])),
    *(
        (
            f"einsum {text}",
            lambda *xs, text=text: T.einsum(text, *xs),
            lambda *xs, text=text: np.einsum(text, *xs),
            arrays,
        )
        for text, arrays in (
            ("ij,jk->ik", (MATRIX, SQUARE)),
            ("ij,jk", (MATRIX, SQUARE)),
            ("ij->ji", (MATRIX,)),
            ("ij->", (MATRIX,)),
            ("ii->i", (SQUARE,)),
            ("ii", (SQUARE,)),
            ("ij,ij->j", (MATRIX, MATRIX)),
            ("i,j->ij", (VECTOR, VECTOR)),
            ("bij,bjk->bik", (CUBE, CUBE.transpose(0, 2, 1))),
            ("bij,kj->bki", (CUBE, SQUARE)),
            ("i,i", (VECTOR, VECTOR)),
            ("ij,jk,kl->il", (MATRIX, SQUARE, SQUARE)),
            ("bij,j->b", (CUBE, MATRIX[0])),
            ("aij,ij->aj", (CUBE, MATRIX)),
        )
    ),
)


def floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of the arguments as float64, its result in the dtype of the first."""

    def apply(x: Array, *more: Array) -> Any:
        return np.asarray(function(x.astype("float64"), *more)).astype(x.dtype)

    return apply


def relu(x: Array, alpha: Any = 0) -> Any:
    return np.where(x > 0, x, alpha * x)


CLASSES = np.array([1, 0, 3])
CHANCES = scipy.special.softmax(MATRIX, axis=1)
ONE_HOT = np.eye(4)[CLASSES]
HUGE = np.array([[1000.0, 0.0, -1000.0], [-np.inf, 2.0, 3.0], [-1e300, 1e300, 0.0]])

NNET: tuple[Row, ...] = (
    ("sigmoid", nnet.sigmoid, scipy.special.expit, (HUGE,)),
    ("softplus", nnet.softplus, lambda x: np.logaddexp(0, x), (MATRIX,)),
    ("hard_sigmoid", nnet.hard_sigmoid, lambda x: np.clip(0.2 * x + 0.5, 0, 1), (MATRIX * 4,)),
    ("softmax", nnet.softmax, lambda x: scipy.special.softmax(x, axis=-1), (MATRIX,)),
    ("softmax of a vector", T.softmax, scipy.special.softmax, (VECTOR,)),
    ("softmax axis", lambda x: nnet.softmax(x, axis=1), lambda x: scipy.special.softmax(x, axis=1), (CUBE,)),
    ("softmax of all", lambda x: T.softmax(x, axis=None), scipy.special.softmax, (CUBE,)),
    ("softmax of much", nnet.softmax, lambda x: scipy.special.softmax(x, axis=1), (HUGE,)),
    ("softmax of float32", nnet.softmax, floats(lambda x: scipy.special.softmax(x, axis=1)), (SINGLE,)),
    ("log_softmax", nnet.log_softmax, lambda x: scipy.special.log_softmax(x, axis=1), (MATRIX,)),
    ("log_softmax of much", nnet.logsoftmax, lambda x: scipy.special.log_softmax(x, axis=1), (HUGE,)),
    ("logsumexp of much", lambda x: nnet.logsumexp(x, 1), lambda x: scipy.special.logsumexp(x, 1), (HUGE,)),
    ("relu", nnet.relu, relu, (MATRIX,)),
    ("relu of nan", nnet.relu, lambda x: np.maximum(x, 0), (NAN,)),
    ("relu of ints", nnet.relu, lambda x: np.maximum(x, 0), (INTS,)),
    ("relu alpha", lambda x: nnet.relu(x, 0.1), lambda x: relu(x, 0.1), (MATRIX,)),
    ("leaky_relu", nnet.leaky_relu, lambda x: relu(x, 0.01), (MATRIX,)),
    ("prelu", nnet.prelu, relu, (MATRIX, MATRIX[0])),
    ("relu6", nnet.relu6, lambda x: np.clip(x, 0, 6), (MATRIX * 5,)),
    ("elu", nnet.elu, lambda x: np.where(x > 0, x, np.expm1(x)), (MATRIX,)),
    (
        "elu alpha",
        lambda x: nnet.elu(x, 2),
        lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0))),
        (MATRIX * 400,),
    ),
    ("celu", lambda x: nnet.celu(x, 2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2)), (MATRIX,)),
    ("selu", nnet.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), (MATRIX,)),
    ("gelu", nnet.gelu, lambda x: x * scipy.special.ndtr(x), (MATRIX,)),
    (
        "gelu by tanh",
        lambda x: nnet.gelu(x, approximate=True),
        lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        (MATRIX,),
    ),
    ("silu", nnet.swish, lambda x: x * scipy.special.expit(x), (MATRIX,)),
    ("softsign", nnet.softsign, lambda x: x / (1 + abs(x)), (MATRIX,)),
    (
        "categorical_crossentropy of classes",
        nnet.categorical_crossentropy,
        lambda p, y: -np.log(p[np.arange(3), y]),
        (CHANCES, CLASSES),
    ),
    (
        "categorical_crossentropy of a distribution",
        nnet.categorical_crossentropy,
        lambda p, y: -(y * np.log(p)).sum(1),
        (CHANCES, CHANCES[::-1].copy()),
    ),
    (
        "categorical_crossentropy one-hot",
        nnet.categorical_crossentropy,
        lambda p, y: -(y * np.log(p)).sum(1),
        (CHANCES, ONE_HOT),
    ),
    (
        "categorical_crossentropy of no chance",
        nnet.categorical_crossentropy,
        lambda p, y: np.zeros(3),
        (ONE_HOT, ONE_HOT),
    ),
    ("crossentropy of one row", nnet.categorical_crossentropy, lambda p, y: -np.log(p[y]), (CHANCES[0], np.array(2))),
    (
        "crossentropy_categorical_1hot",
        nnet.crossentropy_categorical_1hot,
        lambda p, y: -np.log(p[np.arange(3), y]),
        (CHANCES, CLASSES),
    ),
    (
        "binary_crossentropy",
        nnet.binary_crossentropy,
        lambda p, y: -(y * np.log(p) + (1 - y) * np.log1p(-p)),
        (CHANCES, CHANCES[::-1].copy()),
    ),
    ("binary_crossentropy of certainty", nnet.binary_crossentropy, lambda p, y: np.zeros((3, 4)), (ONE_HOT, ONE_HOT)),
    (
        "binary_crossentropy of bools",
        nnet.binary_crossentropy,
        lambda p, y: -np.log(np.where(y, p, 1 - p)),
        (CHANCES, BOOLS),
    ),
    (
        "sigmoid_binary_crossentropy",
        nnet.sigmoid_binary_crossentropy,
        lambda x, y: np.logaddexp(0, x) - x * y,
        (MATRIX, ONE_HOT),
    ),
    (
        "sigmoid_binary_crossentropy of much",
        lambda x: nnet.sigmoid_binary_crossentropy(x, [1.0, 0.0, 1.0]),
        lambda x: np.array([0.0, 0.0, 1000.0]),
        (np.array([1000.0, -1000.0, -1000.0]),),
    ),
    ("to_one_hot", lambda y: nnet.to_one_hot(y, 4, dtype="int8"), lambda y: np.eye(4, dtype="int8")[y], (CLASSES,)),
)


def test_derivatives_where_pieces_meet() -> None:
    """The slope at 0 of what is made of pieces is that of both."""
    x = T.dvector("x")
    points = np.array([0.0, -0.0, 1e-9, -1e-9])
    np.testing.assert_allclose(evaluate(grad(nnet.ultra_fast_sigmoid(x).sum(), x), {x: points}), 0.375)
    np.testing.assert_array_equal(evaluate(grad(T.modf(x)[0].sum(), x), {x: np.append(points, [2.0, -2.0, 2.5])}), 1.0)


def test_ultra_fast_sigmoid_is_near_the_sigmoid() -> None:
    x = T.dvector("x")
    points = np.linspace(-10, 10, 200)
    found = evaluate(nnet.ultra_fast_sigmoid(x), {x: points})
    assert np.abs(found - scipy.special.expit(points)).max() < 0.028
    np.testing.assert_allclose(found + found[::-1], 1)


@pytest.mark.slow
@rows(*ELEMENTARY, *REDUCTIONS, *SHAPING, *JOINING, *CREATION, *INDEXING, *UPDATES, *PRODUCTS, *NNET)
def test_agrees_with_numpy(
    build: Callable[..., Any], expect: Callable[..., Any], arrays: tuple[Array, ...], static: bool
) -> None:
    check(build, expect, arrays, static)


# --- derivatives ----------------------------------------------------------------------------------------------------

DERIVATIVES: tuple[tuple[str, Callable[..., Any], Array], ...] = (
    ("x[array]", lambda x: x[[2, 0, 2], 1:] ** 3, MATRIX),
    ("x[::-2]", lambda x: x[::-2] ** 3, MATRIX),
    ("set_subtensor", lambda x: T.set_subtensor(x[1:], x[:-1] ** 2) ** 2, MATRIX),
    ("set repeated", lambda x: T.set_subtensor(x[[0, 0, 1]], x**2) ** 2, MATRIX[:3, :3]),
    ("inc_subtensor", lambda x: T.inc_subtensor(x[[0, 0, 1], ::-1], x**2) ** 2, MATRIX),
    ("tile and repeat", lambda x: T.tile(x, (2, 2)) * T.repeat(T.repeat(x, 2, 0), 2, 1), MATRIX),
    ("roll", lambda x: T.roll(x, 3) * x**2, MATRIX),
    ("cumsum", lambda x: x.cumsum(1) ** 2, MATRIX),
    ("cumprod", lambda x: T.cumprod(x, 0), np.array([[1.0, 2.0], [0.0, 3.0], [2.0, 0.0]])),
    ("prod with a zero", lambda x: x.prod(1), np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 5.0, 6.0]])),
    ("prod over two axes", lambda x: x.prod((0, 2)), CUBE),
    ("var", lambda x: x.var(0) ** 2, MATRIX),
    ("norm", lambda x: x.norm(3, axis=1), MATRIX),
    ("softmax", lambda x: nnet.softmax(x) ** 2, MATRIX),
    ("softmax axis", lambda x: nnet.softmax(x, (0, 2)) ** 2, CUBE),
    ("log_softmax", lambda x: nnet.log_softmax(x, 0) ** 2, MATRIX),
    ("logsumexp", lambda x: T.logsumexp(x, 1) ** 2, MATRIX),
    ("elu, selu, celu", lambda x: nnet.elu(x) + nnet.selu(x) * nnet.celu(x, 0.5), MATRIX),
    ("gelu", lambda x: nnet.gelu(x) * nnet.gelu(x, approximate=True), MATRIX),
    ("crossentropy", lambda x: nnet.categorical_crossentropy(nnet.softmax(x), CLASSES), MATRIX),
    ("logits", lambda x: nnet.sigmoid_binary_crossentropy(x, ONE_HOT), np.zeros((3, 4))),
    ("einsum", lambda x: T.einsum("bij,bkj->bik", x, x**2), CUBE),
    ("tensordot", lambda x: T.tensordot(x, x**2, [[0, 2], [0, 2]]), CUBE),
    ("matmul of a batch and a matrix", lambda x: x @ x[0].T @ x[1], CUBE),
    ("diagonal", lambda x: T.diag(x.diagonal() ** 2, 1), SQUARE),
    ("tril", lambda x: T.tril(x) ** 3, SQUARE),
    ("split and join", lambda x: T.concatenate(T.split(x, 2, axis=1)[::-1], axis=1) ** 3 * x, MATRIX),
    ("max", lambda x: x.max(1) ** 3, MATRIX),
    ("clip", lambda x: T.clip(x, -0.5, 0.5) ** 3, MATRIX),
)


@pytest.mark.slow
@pytest.mark.parametrize(("build", "point"), [pytest.param(b, p, id=name) for name, b, p in DERIVATIVES])
@pytest.mark.parametrize("static", [True, False])
def test_derivatives_to_second_order(build: Callable[..., Any], point: Array, static: bool) -> None:
    (x,) = variables_for((point,), static)
    generator = np.random.default_rng(3)
    y = build(x)
    weights = generator.uniform(0.5, 1.5, evaluate(y, {x: point}).shape)
    cost = T.sum(y * weights)
    for order in (1, 2):
        gradient = grad(cost, x, disconnected_inputs="ignore")
        direction = generator.normal(size=point.shape)
        slope = T.sum(gradient * direction)
        step = 1e-5
        ahead, behind = (evaluate(cost, {x: point + sign * step * direction}) for sign in (1, -1))
        np.testing.assert_allclose(
            evaluate(slope, {x: point}), (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6, err_msg=f"order {order}"
        )
        cost = slope


def test_derivatives_of_prod_at_zeros_to_third_order() -> None:
    """d3(a b c)/da db dc = 1, also where all three are 0."""
    x = T.dvector("x")
    first = grad(x.prod(), x)
    second = grad(first[0], x)
    third = grad(second[1], x)
    values = evaluate([first, second, third], {x: np.zeros(3)})
    np.testing.assert_array_equal(values, [[0, 0, 0], [0, 0, 0], [0, 0, 1]])


# --- variables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "dtype", "broadcastable"),
    [
        (T.dscalar("x"), "float64", ()),
        (T.fvector("x"), "float32", (False,)),
        (T.imatrix(), "int32", (False, False)),
        (T.lrow("x"), "int64", (True, False)),
        (T.wcol("x"), "int16", (False, True)),
        (T.btensor3("x"), "int8", (False,) * 3),
        (T.tensor4("x"), "float64", (False,) * 4),
        (T.matrix(name="x", dtype="float32", shape=(None, 1)), "float32", (False, True)),
        (T.TensorType("float64", (True, False))("x"), "float64", (True, False)),
        (T.TensorType("int8", broadcastable=(False,))("x"), "int8", (False,)),
        (T.tensor("bool", (None, 3, 1), "x"), "bool", (False, False, True)),
        (T.dmatrices("x y")[1], "float64", (False, False)),
        (T.ivectors("x", "y")[0], "int32", (False,)),
        (T.scalars(2)[1], "float64", ()),
    ],
)
def test_variables(node: Node, dtype: str, broadcastable: tuple[bool, ...]) -> None:
    assert (node.dtype, node.broadcastable) == (dtype, broadcastable)
    assert node is not T.tensor(dtype, node.broadcastable)


def test_names_of_variables() -> None:
    assert [node.name for node in T.dmatrices("x y")] == ["x", "y"]
    assert T.dmatrix("weights").name == "weights"
    assert T.matrix().name is None


def test_floatx_is_the_dtype_of_what_has_none() -> None:
    with options.change(floatX="float32"):
        assert T.matrix("x").dtype == "float32"
        assert T.zeros(3).dtype == "float32"
        assert T.constant(1.5).dtype == "float32"
        assert T.cast(T.ivector("i"), "floatX").dtype == "float32"
        assert T.arange(0.0, 1.0, 0.5).dtype == "float32"
        assert (T.fvector("x") * 1.5).dtype == "float32"
    assert T.matrix("x").dtype == "float64"


def test_constants_keep_values_and_dtypes() -> None:
    value = constant_value(T.constant([[1, 2], [3, 4]], dtype="int8"))
    assert value is not None
    np.testing.assert_array_equal(value, np.array([[1, 2], [3, 4]], "int8"), strict=True)
    assert T.as_tensor_variable(2.0, ndim=2).type.shape == (1, 1)
    x = T.dvector("x")
    assert T.as_tensor(x) is x


def test_static_sizes_are_folded_while_the_graph_is_built() -> None:
    x = T.matrix("x", shape=(3, 4))
    assert constant_value(x.shape[0]) == 3
    assert constant_value(x.size) == 12
    assert T.zeros((x.shape[0] * 2, x.shape[1] - 1)).type.shape == (6, 3)
    assert x[1:, ::-2].type.shape == (2, 2)
    assert x.reshape((-1, 6)).type.shape == (2, 6)
    assert T.arange(x.shape[0]).type.shape == (3,)
    y = T.matrix("y")
    assert y.shape[0] is y.type.shape[0]
    assert y[::-1].type.shape == y.type.shape
    assert y.reshape((y.shape[0], 1, -1)).type.shape == (y.type.shape[0], 1, y.type.shape[1])
    assert (y[1:] - y[:-1]).type.shape == y[1:].type.shape


# --- bad calls ------------------------------------------------------------------------------------------------------

X = T.matrix("weights", shape=(3, 4))
V = T.vector("bias")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: X + T.matrix("y", shape=(2, 4)), ShapeError, "weights.*y"),
        (lambda: X + "no", GraphTypeError, "'no'"),
        (lambda: float(X), GraphTypeError, "weights.*symbolic"),
        (lambda: X.sum(axis=2), np.exceptions.AxisError, "weights.*axis 2 is out of bounds"),
        (lambda: X.sum(axis=(0, 0)), np.exceptions.AxisError, "weights.*named twice"),
        (lambda: X.sum(axis=0.5), GraphTypeError, "weights.*0.5"),
        (lambda: T.mean(X, dtype="int32"), GraphTypeError, "weights.*int32"),
        (lambda: T.max(T.zeros((0, 3)), 0), ShapeError, "zero-size"),
        (lambda: X.reshape((5, 2)), ShapeError, "weights.*12 elements"),
        (lambda: X.reshape((5, -1)), ShapeError, "weights.*divided"),
        (lambda: X.reshape((-1, -1)), ShapeError, "weights.*one size"),
        (lambda: X.reshape((-2, -6)), ShapeError, "weights.*negative"),
        (lambda: X.reshape((1.5, 8)), GraphTypeError, "weights.*1.5"),
        (lambda: T.reshape(X, T.lvector("s")), GraphTypeError, "weights.*ndim"),
        (lambda: X.dimshuffle(0), GraphValueError, "weights.*axis 1"),
        (lambda: X.dimshuffle(0, 0), GraphValueError, "weights.*twice"),
        (lambda: X.dimshuffle(0, 5), np.exceptions.AxisError, "weights.*5"),
        (lambda: X.transpose(0), GraphValueError, "weights"),
        (lambda: X.squeeze(0), ShapeError, "weights.*size 3, not 1"),
        (lambda: T.broadcast_to(X, (2, 4)), ShapeError, "weights"),
        (lambda: T.specify_shape(X, (2, None)), ShapeError, "weights"),
        (lambda: T.concatenate([X, V]), ShapeError, "weights.*bias"),
        (lambda: T.concatenate([X, T.zeros((3, 5))]), ShapeError, "weights.*4 and 5"),
        (lambda: T.concatenate([]), GraphValueError, "at least one"),
        (lambda: T.stack([X, V]), ShapeError, "weights.*bias"),
        (lambda: T.split(X, [1, 1], 2), ShapeError, "weights.*add up"),
        (lambda: T.split(X, 2), ShapeError, "weights.*2 equal parts"),
        (lambda: T.tile(X, (-1, 2)), ShapeError, "weights.*negative"),
        (lambda: T.repeat(X, [1, 2], 0), ShapeError, "weights.*2 repeats"),
        (lambda: X[3], IndexOutOfBounds, "index 3.*weights.*size 3"),
        (lambda: X[:, -5], IndexOutOfBounds, "index -5.*weights.*size 4"),
        (lambda: X[[0, 3]], IndexOutOfBounds, "index 3.*weights"),
        (lambda: X[0, 0, 0], IndexOutOfBounds, "weights.*3 indices for 2 axes"),
        (lambda: X[..., ...], GraphTypeError, "weights.*Ellipsis"),
        (lambda: X[1.0], GraphTypeError, "weights.*1.0"),
        (lambda: X[V], GraphTypeError, "weights.*bias.*float64"),
        (lambda: X["a"], GraphTypeError, "weights.*'a'"),
        (lambda: X[::0], ShapeError, "weights.*step"),
        (lambda: X[np.array([True, False])], ShapeError, "weights.*3 and 2"),
        (lambda: T.set_subtensor(X, 1), GraphTypeError, "set_subtensor.*weights"),
        (lambda: T.set_subtensor(X[0] * 2, 1), GraphTypeError, "set_subtensor.*indexing"),
        (lambda: T.inc_subtensor(X[0], T.zeros(3)), ShapeError, "3 and 4"),
        (lambda: T.set_subtensor(X[0], T.zeros((2, 4))), ShapeError, "axes"),
        (lambda: T.set_subtensor(T.imatrix("n")[0], V), GraphTypeError, "bias.*float64.*int32"),
        (lambda: T.set_subtensor(T.imatrix("n")[0], 1.5), GraphTypeError, "1.5.*int32"),
        (lambda: T.take(X, V), GraphTypeError, "bias"),
        (lambda: T.dot(X, T.zeros((3, 2))), ShapeError, "weights.*4 and 3"),
        (lambda: X @ 2, GraphTypeError, "weights.*scalar"),
        (lambda: T.tensordot(X, X, 3), GraphValueError, "weights"),
        (lambda: T.einsum("ij,jk", X), GraphValueError, "weights"),
        (lambda: T.einsum("ij->k", X), GraphValueError, "result"),
        (lambda: T.einsum("i.j->i", X), GraphValueError, "einsum"),
        (lambda: T.arange(0, 5, 0), ShapeError, "step"),
        (lambda: T.arange(V), GraphTypeError, "bias"),
        (lambda: T.zeros((2, -1)), ShapeError, "negative"),
        (lambda: T.zeros(2.5), GraphTypeError, "2.5"),
        (lambda: T.zeros(3, dtype="float16"), GraphTypeError, "float16"),
        (lambda: T.matrix(3), GraphTypeError, "name.*3"),  # type: ignore[arg-type]
        (lambda: T.matrix("x", shape=(3,)), GraphValueError, "x.*1 axes"),
        (lambda: T.row("x", shape=(2, 3)), GraphValueError, "row x"),
        (lambda: T.dmatrix("x", dtype="int8"), GraphTypeError, "float64, not int8"),
        (lambda: T.vector("x", shape=(-1,)), ShapeError, "x.*negative"),
        (lambda: T.TensorType("float64", ("a",)), GraphTypeError, "'a'"),
        (lambda: T.constant(X), GraphTypeError, "weights"),
        (lambda: T.as_tensor(object()), GraphTypeError, "object"),
        (lambda: T.as_tensor([[1, 2], [3]]), GraphValueError, "lengths"),
        (lambda: T.round(X, mode="up"), GraphValueError, "weights.*'up'"),
        (lambda: nnet.softmax(T.dscalar("s")), GraphTypeError, "s.*scalar"),
        (lambda: nnet.softmax(X, axis=2), np.exceptions.AxisError, "weights.*axis 2"),
        (lambda: nnet.categorical_crossentropy(X, V), GraphTypeError, "weights.*bias"),
        (lambda: nnet.crossentropy_categorical_1hot(X, V), GraphTypeError, "bias.*float64"),
        (lambda: T.one_hot(V, 3), GraphTypeError, "bias.*float64"),
        (lambda: X.nothing, AttributeError, "nothing"),  # type: ignore[attr-defined]
    ],
)
def test_bad_calls_say_what_is_wrong(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("build", "arrays", "error", "message"),
    [
        (lambda x, y: x + y, (MATRIX, MATRIX[:2]), ShapeError, "x.*y.*3 and 2"),
        (lambda x: x.reshape((5, -1)), (MATRIX,), ShapeError, "x.*12"),
        (lambda x: x.reshape((7, 2)), (MATRIX,), ShapeError, "x.*12 elements cannot become 14"),
        (lambda x: x[7], (MATRIX,), IndexOutOfBounds, "x.*index 7.*axis 0.*size is 3"),
        (lambda x, i: x[i], (MATRIX, np.array(3)), IndexOutOfBounds, "x.*index 3, y.*axis 0.*size is 3"),
        (lambda x, i: x[:, i], (MATRIX, np.array(-5)), IndexOutOfBounds, "x.*index -5, y.*begins at -4"),
        (lambda x, i: x[i], (MATRIX, np.array([0, 3])), IndexOutOfBounds, "3"),
        (lambda x, i: T.set_subtensor(x[i], 0), (MATRIX, np.array([0, -4])), IndexOutOfBounds, "4"),
        (lambda x: x.max(1), (np.zeros((3, 0)),), ShapeError, "x.*zero-size"),
        (lambda x: x.argmin(), (np.zeros((3, 0)),), ShapeError, "x.*zero-size"),
        (T.dot, (MATRIX, MATRIX), ShapeError, "x.* and y.*4 and 3"),
        (lambda x, y: T.concatenate([x, y]), (MATRIX, SQUARE[:, :2]), ShapeError, "x.* and y.*4 and 2"),
        (T.zeros, (np.array(-2),), ShapeError, "-2.*negative"),
        (lambda n: T.arange(0, 5, n), (np.array(0),), ShapeError, "step, x .*, is 0"),
        (lambda x: T.specify_shape(x, (2, None)), (MATRIX,), ShapeError, "x.*3, not 2"),
        (lambda x: T.addbroadcast(x, 0), (MATRIX,), ShapeError, "x.*3, not 1"),
        (lambda x: T.split(x, [1, 1], 2), (MATRIX,), ShapeError, "x.*3, not 2"),
        (lambda x: T.split(x, 2), (MATRIX,), ShapeError, "x.*3, not 2"),
        (lambda x, y: T.set_subtensor(x[1:], y), (MATRIX, MATRIX), ShapeError, "y.*3, not 2"),
    ],
)
def test_what_is_known_only_at_the_call_is_checked_there(
    build: Callable[..., Any], arrays: tuple[Array, ...], error: type[Exception], message: str
) -> None:
    nodes = variables_for(arrays, static=False)
    with pytest.raises(error) as caught:
        evaluate(build(*nodes), dict(zip(nodes, arrays, strict=True)))
    assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
@pytest.mark.parametrize("outside", ["raise", "clip", "wrap"])
@pytest.mark.parametrize("static", [True, False])
def test_take_along_an_empty_axis(static: bool, outside: str, mode: str) -> None:
    index = T.lvector("i")
    for shape, axis in (((0,), 0), ((2, 0), 1), ((3, 0, 2), 1), ((0, 0), 1)):
        x = T.tensor("float64", shape if static else (None,) * len(shape), name="x")
        f = function([x, index], T.take(x, index, axis, outside), mode)
        assert f(np.ones(shape), np.zeros(0, "int64")).shape == shape
        with pytest.raises(IndexOutOfBounds, match=f"along axis {axis} of x .*size is 0"):
            f(np.ones(shape), np.array([1, 2]))
    x = T.tensor("float64", (2, 0) if static else (None, None), name="x")
    f = function([x, index], T.take(x, index, 0, outside), mode)
    assert f(np.ones((2, 0)), np.array([1, 0])).shape == (2, 0)
    if outside == "raise":
        with pytest.raises(IndexOutOfBounds, match="index 2 of i .*size is 2"):
            f(np.ones((2, 0)), np.array([1, 2]))
    else:
        assert f(np.ones((2, 0)), np.array([1, 2])).shape == (2, 0)


def test_arange_of_python_floats() -> None:
    """Python's numbers leave it to floatX, as everywhere; NumPy's and variables decide."""
    whole = T.iscalar("whole")
    with options.change(floatX="float32"):
        made = [T.arange(3.0), T.arange(0, 1, 0.1), T.arange(T.fscalar("x"), step=2)]
        wide = [T.arange(np.float64(3)), T.arange(T.dscalar("x")), T.arange(whole, step=0.5), T.arange(1.0, whole)]
        assert T.arange(3).dtype == "int64"
    assert {each.dtype for each in made} == {"float32"} and {each.dtype for each in wide} == {"float64"}
    np.testing.assert_allclose(made[1].eval(mode="interpreted"), np.arange(0.0, 1.0, 0.1), rtol=2e-7)
