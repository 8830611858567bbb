"""Functions of single elements: for each a graph of graphc's beside the same in NumPy with its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.ir.node import Node
from tests.support.corners import bounded as B
from tests.support.corners.bounded import Array, Bounded


@dataclass(frozen=True, slots=True)
class Pair:
    """A function in graphc and in NumPy."""

    name: str
    graph: Callable[..., Node]
    oracle: Callable[..., Bounded]
    smooth: bool = True


def monotone(name: str, function: Callable[[Array], Array], ulps: float = B.ELEMENTARY) -> Pair:
    graph = getattr(T, name)
    return Pair(name, graph, lambda x: B.monotone(x, function, ulps=ulps))


def _relu(x: Bounded) -> Bounded:
    return B.where(B.compared(np.less_equal, x, B.like(0, x)), B.like(0, x), x)


def _below(x: Bounded) -> Bounded:
    return B.where(B.compared(np.greater, x, B.like(0, x)), B.like(0, x), x)


def _elu(x: Bounded) -> Bounded:
    return B.where(B.compared(np.greater, x, B.like(0, x)), x, B.monotone(_below(x), np.expm1))


def _number(value: float, x: Bounded) -> Bounded:
    """A Python number that is none of the dtype: rounded to it, and known to half a place."""
    held = B.like(value, x)
    return Bounded(held.num, np.asarray(value, B.LONG), np.abs(held.ref - B.LONG(value)))


def _gelu(x: Bounded) -> Bounded:
    inner = B.mul(x, _number(0.7071067811865476, x))
    return B.mul(B.scaled(x, 0.5), B.add(B.monotone(inner, B.erf, ulps=16), B.like(1, x)))


def _clip(x: Bounded, low: float, high: float) -> Bounded:
    return B.extreme(np.minimum, B.extreme(np.maximum, x, B.like(low, x)), B.like(high, x))


def _nan_to_num(x: Bounded) -> Bounded:
    info = np.finfo(x.dtype)
    limits = [B.given(np.asarray(limit, x.dtype)) for limit in (info.max, info.min, 0.0)]
    positive = B.compared(np.greater, x, B.like(0, x))
    finite = B.where(B.tested(np.isinf, x), B.where(positive, limits[0], limits[1]), x)
    return B.where(B.tested(np.isnan, x), limits[2], finite)


def _one_plus_square(x: Bounded) -> Bounded:
    return B.add(B.like(1, x), B.sqr(x))


def better(naive: Bounded, right: Bounded) -> Bounded:
    """Where NumPy overflows on the way to a number, graphc may give that number: a rule of class better knows it."""
    return Bounded(naive.num, right.ref, right.err)


def _naive_softplus(x: Bounded) -> Bounded:
    return better(B.log(B.add(B.like(1, x), B.exp(x))), B.monotone(x, B.softplus, ulps=16))


def _remainder(x: Bounded, divisor: float) -> Bounded:
    """NumPy's, of a number that is known to the bit; else rounding decides."""
    num = np.mod(x.num, x.num.dtype.type(divisor))
    err = np.where((x.err == 0) | ~np.isfinite(num), x.err, np.inf) if x.exact else np.full(num.shape, np.inf)
    return B.settled(x.dtype, num, num.astype(B.LONG), err)


OF_FLOATS: Sequence[Pair] = (
    monotone("exp", np.exp), monotone("expm1", np.expm1), monotone("exp2", np.exp2),
    monotone("tanh", np.tanh), monotone("sigmoid", B.sigmoid), monotone("softplus", B.softplus, 16),
    monotone("arctan", np.arctan), monotone("sinh", np.sinh),
    monotone("arcsinh", np.arcsinh),
    monotone("log", np.log), monotone("log1p", np.log1p), monotone("sqrt", np.sqrt, B.BASIC),
    monotone("log2", np.log2), monotone("log10", np.log10), monotone("arctanh", np.arctanh),
    monotone("arcsin", np.arcsin), monotone("arccos", np.arccos),
    monotone("erf", B.erf, 16), monotone("deg2rad", np.deg2rad), monotone("rad2deg", np.rad2deg),
    Pair("cbrt", T.cbrt, lambda x: B.kinked(B.monotone(x, np.cbrt), x)),
    Pair("sin", T.sin, lambda x: B.lipschitz(x, np.sin)),
    Pair("cos", T.cos, lambda x: B.lipschitz(x, np.cos)),
    Pair("neg", T.neg, B.neg),
    Pair("abs", T.abs, B.absolute),
    Pair("sqr", T.sqr, B.sqr),
    Pair("reciprocal", T.reciprocal, lambda x: B.div(B.like(1, x), x)),
    Pair("relu", T.nnet.relu, _relu),
    Pair("leaky_relu", lambda x: T.nnet.leaky_relu(x, 0.25),
         lambda x: B.where(B.compared(np.greater, x, B.like(0, x)), x, B.scaled(x, 0.25))),
    Pair("elu", T.nnet.elu, _elu),
    Pair("gelu", T.nnet.gelu, _gelu),
    Pair("silu", T.nnet.silu, lambda x: B.mul(x, B.monotone(x, B.sigmoid))),
    Pair("softsign", T.nnet.softsign, lambda x: B.div(x, B.add(B.absolute(x), B.like(1, x)))),
    Pair("clip", lambda x: T.clip(x, -0.5, 0.5), lambda x: _clip(x, -0.5, 0.5)),
    Pair("nan_to_num", T.nan_to_num, _nan_to_num),
    Pair("v * 0.5 + 1", lambda x: x * 0.5 + 1.0, lambda x: B.add(B.scaled(x, 0.5), B.like(1, x))),
    Pair("1 - v", lambda x: 1 - x, lambda x: B.sub(B.like(1, x), x)),
    Pair("v ** 3", lambda x: x ** 3, lambda x: B.mul(x, B.sqr(x))),
    Pair("(1 + sqr) ** 1.5", lambda x: (1 + T.sqr(x)) ** 1.5,
         lambda x: B.monotone(_one_plus_square(x), lambda v: np.power(v, v.dtype.type(1.5)))),
    Pair("v * 2**100 * 2**-100", lambda x: x * 2.0**100 * 2.0**-100,
         lambda x: B.scaled(B.scaled(x, 2.0**100), 2.0**-100)),
    Pair("v * 2**-100 * 2**100", lambda x: x * 2.0**-100 * 2.0**100,
         lambda x: B.scaled(B.scaled(x, 2.0**-100), 2.0**100)),
    Pair("v ** 2", lambda x: x ** 2, B.sqr),
    Pair("v / 3", lambda x: x / 3.0, lambda x: B.div(x, B.like(3, x))),
    Pair("v % 2.5", lambda x: x % 2.5, lambda x: _remainder(x, 2.5), smooth=False),
    Pair("exp(-sqr)", lambda x: T.exp(-T.sqr(x)), lambda x: B.exp(B.neg(B.sqr(x)))),
    Pair("log1p(sqr)", lambda x: T.log1p(T.sqr(x)), lambda x: B.monotone(B.sqr(x), np.log1p)),
    Pair("sqrt(1 + sqr)", lambda x: T.sqrt(1.0 + T.sqr(x)), lambda x: B.sqrt(_one_plus_square(x))),
    Pair("1 / (1 + exp(-v))", lambda x: 1 / (1 + T.exp(-x)),
         lambda x: B.div(B.like(1, x), B.add(B.like(1, x), B.exp(B.neg(x))))),
    Pair("log(1 + exp(v))", lambda x: T.log(1 + T.exp(x)), _naive_softplus),
    Pair("floor", T.floor, lambda x: B.rounded(np.floor, x)),
    Pair("rint", T.rint, lambda x: B.rounded(np.rint, x)),
    Pair("sign", T.sign, lambda x: B.where(B.compared(np.greater, x, B.like(0, x)), B.like(1, x),
         B.where(B.compared(np.less, x, B.like(0, x)), B.like(-1, x), B.scaled(x, 0)))),
)  # fmt: skip
"""Of one float; floor to sign are decided by comparing."""

OF_TWO: Sequence[Pair] = (
    Pair("add", T.add, B.add),
    Pair("sub", T.sub, B.sub),
    Pair("mul", T.mul, B.mul),
    Pair("true_div", T.true_div, B.div),
    Pair("maximum", T.maximum, lambda a, b: B.extreme(np.maximum, a, b)),
    Pair("minimum", T.minimum, lambda a, b: B.extreme(np.minimum, a, b)),
    Pair("a / (1 + b**2)", lambda a, b: a / (1 + T.sqr(b)), lambda a, b: B.div(a, _one_plus_square(b))),
    Pair("a * 0.5 - b * 2", lambda a, b: a * 0.5 - b * 2.0, lambda a, b: B.sub(B.scaled(a, 0.5), B.scaled(b, 2.0))),
    Pair("where(a < b, a, b + 1)", lambda a, b: T.where(a < b, a, b + 1),
         lambda a, b: B.where(B.compared(np.less, a, b), a, B.add(b, B.like(1, b)))),
    Pair("tanh(a) * b", lambda a, b: T.tanh(a) * b, lambda a, b: B.mul(B.monotone(a, np.tanh), b)),
    Pair("hypot", T.hypot, lambda a, b: _hypot(*B.common(a, b))),
    Pair("logaddexp", T.logaddexp, lambda a, b: _logaddexp(*B.common(a, b))),
    Pair("fmax", T.fmax, lambda a, b: B.extreme(np.fmax, a, b)),
    Pair("fmin", T.fmin, lambda a, b: B.extreme(np.fmin, a, b)),
    Pair("clip(a, b, b + 1)", lambda a, b: T.clip(a, b, b + 1),
         lambda a, b: B.extreme(np.minimum, B.extreme(np.maximum, a, b), B.add(b, B.like(1, b)))),
    Pair("a * b - b", lambda a, b: a * b - b, lambda a, b: B.sub(B.mul(a, b), b)),
    Pair("a / b * b", lambda a, b: a / b * b, lambda a, b: B.mul(B.div(a, b), b)),
)  # fmt: skip


def _hypot(a: Bounded, b: Bounded) -> Bounded:
    ref = np.hypot(a.ref, b.ref)
    err = B.combined(ref, a.err + b.err, a, b)
    found = B.settled(a.dtype, np.hypot(a.num, b.num), ref, err, ulps=B.ELEMENTARY)
    return B.kinked(found, found)


def _logaddexp(a: Bounded, b: Bounded) -> Bounded:
    ref = np.logaddexp(a.ref, b.ref)
    err = B.combined(ref, a.err + b.err, a, b)
    size = np.abs(ref) + np.maximum(
        np.where(np.isfinite(a.ref), np.abs(a.ref), 0), np.where(np.isfinite(b.ref), np.abs(b.ref), 0)
    )
    return B.settled(a.dtype, np.logaddexp(a.num, b.num), ref, err, size, B.ELEMENTARY)


def integers(name: str, graph: Callable[..., Node], function: Callable[..., Any]) -> Pair:
    return Pair(name, graph, lambda *args: B.integral(function, *args), smooth=False)


OF_INTEGERS: Sequence[Pair] = (
    integers("neg", T.neg, np.negative),
    integers("abs", T.abs, np.abs),
    integers("v % 5", lambda x: x % 5, lambda x: x % 5),
    integers("v // 3", lambda x: x // 3, lambda x: x // 3),
    integers("v * 2 + 1", lambda x: x * 2 + 1, lambda x: x * 2 + 1),
    integers("v & 6", lambda x: x & 6, lambda x: x & 6),
    integers("sqr", T.sqr, np.square),
    integers("sign", T.sign, np.sign),
    integers("~v", lambda x: ~x, np.invert),
    integers("v << 3", lambda x: x << 3, lambda x: x << 3),
    integers("v >> 2", lambda x: x >> 2, lambda x: x >> 2),
    integers("maximum(v, 1)", lambda x: T.maximum(x, 1), lambda x: np.maximum(x, 1)),
    integers("v ** 3", lambda x: x ** 3, lambda x: x ** 3),
)  # fmt: skip
OF_TWO_INTEGERS: Sequence[Pair] = (
    integers("add", T.add, np.add),
    integers("sub", T.sub, np.subtract),
    integers("mul", T.mul, np.multiply),
    integers("maximum", T.maximum, np.maximum),
    integers("minimum", T.minimum, np.minimum),
    integers("a % b", lambda a, b: a % b, np.mod),
    integers("a // b", lambda a, b: a // b, np.floor_divide),
    integers("a ^ b", lambda a, b: a ^ b, np.bitwise_xor),
    integers("a | b", lambda a, b: a | b, np.bitwise_or),
    integers("where(a < b, a, b)", lambda a, b: T.where(a < b, a, b), lambda a, b: np.where(a < b, a, b)),
)  # fmt: skip


def _comparison(name: str) -> Pair:
    function = getattr(np, name)
    return Pair(name, getattr(T, name), lambda a, b: B.compared(function, a, b), smooth=False)


COMPARISONS = tuple(map(_comparison, ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")))
