"""Functions of single elements: NumPy's names, and Theano's for the same.

In: nodes, arrays, numbers or lists of them. Out: nodes of the broadcast shape, dtypes as NumPy has them (NEP 50). The
functions themselves are rows of the table `graphc.ops.scalar`, of which `rows.pyi` tells editors and type checkers;
what is written out here is composed of them.
"""

# ruff: noqa: F403, F405 - rows.pyi says what the table has
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, floating, is_float, is_inexact, promote
from graphc.errors import GraphValueError
from graphc.ir.node import FUNCTIONS, INPUT, OPS, SHARED, Complex, Node, describe, make, pair
from graphc.ir.source_lines import TRACE
from graphc.ops import (
    scalar as _table,  # fills FUNCTIONS
    shape as layout,
)
from graphc.ops.elementwise import (
    FLOAT,
    ROWS,
    Row,
    as_node,
    broadcast_node,
    broadcast_sizes,
    cast as _cast,
    elementwise,
)
from graphc.ops.identity import checked
from graphc.tensor.variables import resolve_dtype

__all__ = [
    "abs", "abs_", "absolute", "acos", "acosh", "add", "and_", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "around", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "cast", "cbrt", "ceil", "clip", "complex", "complex_from_polar", "conj",
    "conjugate", "consider_constant", "copy", "copysign", "cos", "cosh",
    "deg2rad", "degrees", "digamma", "disconnected_grad", "div_proxy", "divide", "divmod", "eq", "equal", "erf",
    "erfc", "erfcx", "exp", "exp2", "expit", "expm1", "fabs", "fix", "float_power", "floor", "floor_div",
    "floor_divide", "fmax", "fmin", "fmod", "gammaln", "gcd", "ge", "greater", "greater_equal", "gt", "heaviside",
    "hypot", "imag", "int_div", "inv", "invert", "iround", "isclose", "isfinite", "isinf", "isinf_", "isnan",
    "isnan_", "lcm", "le", "left_shift", "less", "less_equal", "log", "log1mexp", "log1p", "log1pexp", "log2",
    "log10", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "lt",
    "maximum", "minimum", "mod", "mul", "multiply", "nan_to_num", "neg", "negative", "neq", "nextafter",
    "not_equal", "or_", "positive", "pow", "power", "psi", "rad2deg", "radians", "real", "reciprocal", "remainder",
    "right_shift", "rint", "round", "round_half_away_from_zero", "round_half_to_even", "sgn", "sigmoid", "sign",
    "signbit", "sin", "sinh", "softplus", "sqr", "sqrt", "square", "stop_gradient", "sub", "subtract", "switch",
    "tan", "tanh", "tensor_copy", "tri_gamma", "trigamma", "true_div", "true_divide", "trunc", "xlog1py", "xlogy",
    "xlogy0", "xor", "zero_grad",
]  # fmt: skip

stop_gradient = _table.stop_gradient


def _documentation(row: Row) -> str:
    """The docstring of a row's function, with an example of numbers within the domain of its arguments."""
    is_whole = "float64" not in row.rule.accepts
    result = "has the dtype that NumPy promotes the operands to" if row.rule.result is None else "has the dtype bool"
    if row.rule is FLOAT:
        result = "has a float dtype; integers give the smallest float dtype that holds them"
    ranges = row.integers if is_whole else row.domain
    numbers = [np.linspace(low, high, 5)[1:3].round(2) for low, high in ranges or ((0, 2), (0, 4), (0, 4))][: row.arity]
    numbers = [each.astype("int64" if is_whole else "float64") for each in numbers]
    with np.errstate(all="ignore"):
        value = np.asarray(row.function(*numbers))
    first, *others = [str(each.tolist()) for each in numbers]
    return f"""{row.doc}

    Takes tensors, arrays, numbers and lists, which broadcast. The result {result}.

        >>> T.{row.name}({", ".join([f"T.constant({first})", *others])}).eval()
        {value!r}

    Raises ShapeError for sizes that do not broadcast, GraphTypeError for dtypes that it does not take.
    """


if TYPE_CHECKING:
    from graphc.tensor.rows import *
else:
    globals().update({name: FUNCTIONS[name] for name in ROWS})
    for _name in ROWS:
        vars(FUNCTIONS[_name])["documentation"] = partial(_documentation, ROWS[_name])


def _fold(name: str, first: Any, others: tuple[Any, ...]) -> Node:
    for other in others:
        first = elementwise(name, first, other)
    return as_node(first)


def add(x: Any, *others: Any) -> Node:
    """The sum of all arguments, which broadcast, of the dtype that NumPy promotes them to.

        >>> T.add(T.constant([1, 2]), 3, [0.5, 0.5]).eval()
        array([4.5, 5.5])

    Raises ShapeError for sizes that do not fit.
    """
    return _fold("add", x, others)


def mul(x: Any, *others: Any) -> Node:
    """The product of all arguments, which broadcast, of the dtype that NumPy promotes them to.

        >>> T.mul(T.constant([1, 2]), 3).eval()
        array([3, 6])

    Raises ShapeError for sizes that do not fit.
    """
    return _fold("mul", x, others)


def divmod(x: Any, y: Any) -> tuple[Node, Node]:
    """x // y and x % y."""
    return floor_div(x, y), mod(x, y)


def cast(x: Any, dtype: Any) -> Node:
    """`x` converted to `dtype` as NumPy's astype does; "floatX" is `options.floatX`.

    Raises GraphTypeError for a dtype that graphc has not.

        >>> T.cast(T.constant([1.7, -1.7]), "int32").eval()
        array([ 1, -1], dtype=int32)
    """
    return _cast(as_node(x), resolve_dtype(dtype))


def copy(x: Any, name: str | None = None) -> Node:
    """A value equal to `x` that has this name. Without one it is `x` itself, as nodes never change; of an input or a
    shared variable another one, whose name and attributes a program may set without those of the variable."""
    node = as_node(x)
    if name is None and (TRACE.depth or node.op not in (INPUT, SHARED)):
        return node
    copied = checked(node, (), name or "copy")
    if name is not None:
        copied.name = name
    return copied


def complex(real: Any, imag: Any) -> Node:
    """The complex numbers of real and imaginary parts, which broadcast: complex64 of float32, else complex128.

    Raises GraphTypeError for parts that are complex.

        >>> T.complex(T.constant([1.0, 2.0]), 3.0).eval()
        array([1.+3.j, 2.+3.j])
    """
    left, right = as_node(real), as_node(imag)
    dtype = promote(*(floating(node.type.dtype) for node in (left, right)))
    shape = broadcast_sizes("complex", [left, right])
    return pair(*(layout.broadcast_to(broadcast_node(_cast(node, dtype), shape), shape) for node in (left, right)))


def complex_from_polar(abs: Any, angle: Any) -> Node:
    """The complex numbers of absolute values and angles in radians (Theano's).

    >>> T.complex_from_polar(2.0, T.constant(0.0)).eval()
    array(2.+0.j)
    """
    return complex(mul(abs, cos(angle)), mul(abs, sin(angle)))


def conj(x: Any) -> Node:
    """The complex conjugate: of real numbers themselves, of bools as int8. Raises GraphTypeError for what is no array
    of numbers.

    >>> T.conj(T.constant([1 + 2j])).eval()
    array([1.-2.j])
    """
    node = as_node(x)
    if type(node) is Complex:
        return pair(node.args[0], neg(node.args[1]))
    return _cast(node, "int8") if node.type.dtype == "bool" else node


def real(x: Any) -> Node:
    """The real part, of the float dtype of the parts.

    >>> T.real(T.constant([1 + 2j])).eval()
    array([1.])
    """
    node = as_node(x)
    return node.args[0] if type(node) is Complex else node


def imag(x: Any) -> Node:
    """The imaginary part; of real numbers 0 in their dtype.

    >>> T.imag(T.constant([1 + 2j])).eval()
    array([2.])
    """
    node = as_node(x)
    return node.args[1] if type(node) is Complex else layout.zeros(node.type.dtype, node.type.shape)


def clip(x: Any, min: Any = None, max: Any = None) -> Node:
    """`x` held between `min` and `max`, either of which may be None; `max` wins where they cross. For integers a
    Python integer that is beyond all numbers of their dtype, as far as it does nothing, is as None.

        >>> T.clip(T.constant([-1.0, 0.5, 3.0]), 0, 1).eval()
        array([0. , 0.5, 1. ])
    """
    dtype = getattr(x, "dtype", None)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        min = None if type(min) is int and min <= info.min else min
        max = None if type(max) is int and max >= info.max else max
    if min is None and max is None:
        return as_node(x)
    if min is None:
        return minimum(x, max)
    return maximum(x, min) if max is None else elementwise("clip", x, min, max)


def round(x: Any, decimals: int | str | None = 0, mode: str | None = None) -> Node:
    """`x` to the nearest multiple of 10**-decimals, halves to even; integers stay what they are for decimals >= 0.

    Bools become float32. mode "half_away_from_zero" is Theano's other one; it may stand in place of `decimals`. Raises
    GraphValueError for another mode, and for bools with decimals.

        >>> T.round(T.constant([0.5, 1.5, 2.345]), 2).eval()
        array([0.5 , 1.5 , 2.35])
    """
    node = as_node(x)
    if isinstance(decimals, str) or decimals is None:
        mode, decimals = mode or decimals, 0
    mode = mode or "half_to_even"
    if mode not in ("half_to_even", "half_away_from_zero") or (node.type.dtype == "bool" and decimals):
        given = f"mode {mode!r} and {decimals} decimals"
        raise GraphValueError(f"round of {describe(node)} of dtype {node.type.dtype} with {given}")
    if node.type.dtype == "bool":
        return rint(node)
    if type(node) is Complex:
        return pair(*(round(part, decimals, mode) for part in node.args))
    if not is_float(node.type.dtype):
        if decimals >= 0:
            return node
        scale = 10**-decimals
        return cast(mul(rint(true_div(node, scale)), scale), node.type.dtype)
    nearest = rint if mode == "half_to_even" else _round_away
    if decimals == 0:
        return nearest(node)
    scale = 10.0 ** float(np.abs(decimals))
    inner, outer = (mul, true_div) if decimals > 0 else (true_div, mul)
    return outer(nearest(inner(node, scale)), scale)


def _round_away(x: Node) -> Node:
    size = abs(x)
    whole = floor(size)  # not floor(size + 0.5), which is rounded: up to 1 of what is just below 0.5
    return copysign(where(greater_equal(sub(size, whole), 0.5), add(whole, 1), whole), x)


def round_half_to_even(x: Any) -> Node:
    """`x` to the nearest whole number, halves to even (Theano's name)."""
    return round(x)


def round_half_away_from_zero(x: Any) -> Node:
    """`x` to the nearest whole number, halves away from 0 (Theano's name)."""
    return round(x, mode="half_away_from_zero")


def iround(x: Any, mode: str | None = None) -> Node:
    """`round` as int64 (Theano's)."""
    return cast(round(x, 0, mode), "int64")


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Node:
    """NumPy's: |a - b| <= atol + rtol * |b|; infinities are close to themselves only, NaN to NaN if `equal_nan`.

    The result is bool.

        >>> T.isclose(T.constant([1.0, 2.0]), [1.0, 2.1]).eval()
        array([ True, False])
    """
    left, right = (node if is_inexact(node.type.dtype) else _cast(node, "float64") for node in map(as_node, (a, b)))
    near = logical_and(less_equal(abs(sub(left, right)), add(atol, mul(rtol, abs(right)))), isfinite(right))
    close = logical_or(near, equal(a, b))
    return logical_or(close, logical_and(isnan(left), isnan(right))) if equal_nan else close


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Node:
    """NaN replaced by `nan`, infinities by the dtype's largest and smallest finite number or by what is given.

    >>> T.nan_to_num(T.constant([np.nan, 1.0])).eval()
    array([0., 1.])
    """
    node = as_node(x)
    if type(node) is Complex:
        return pair(*(nan_to_num(part, nan, posinf, neginf) for part in node.args))
    if not is_float(node.type.dtype):
        return node
    info = np.finfo(node.type.dtype)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    infinite = where(isinf(node), where(greater(node, 0), high, low), node)
    return cast(where(isnan(node), nan, infinite), node.type.dtype)


def logit(x: Any) -> Node:
    """log(x / (1 - x)), the inverse of sigmoid."""
    return sub(log(x), log1p(neg(x)))


def log1mexp(x: Any) -> Node:
    """log(1 - exp(x)) for x <= 0, without cancellation (Maechler 2012).

    Its derivative at 0 is -inf: each branch is kept from where the other one is taken, and 0 from being -0.
    """
    least = -0.6931471805599453
    return where(less(x, least), log1p(neg(exp(minimum(x, least)))), log(sub(0.0, expm1(x))))


def inv(x: Any) -> Node:
    """1 / x in floating point, of integers too (Theano's); `reciprocal` keeps their dtype, as NumPy's does."""
    node = as_node(x)
    return reciprocal(node) if is_inexact(node.type.dtype) else true_div(1, node)


def disconnected_grad(x: Any) -> Node:
    """`x`, through which no derivative flows."""
    return make(OPS["stop_gradient"], (as_node(x),))


# Theano's and NumPy's other names.
consider_constant = zero_grad = disconnected_grad
astype = cast
tensor_copy = copy
subtract, multiply, divide, power, remainder = sub, mul, true_div, pow, mod
int_div = floor_divide = floor_div
true_divide = div_proxy = true_div
around, isnan_, isinf_ = round, isnan, isinf
conjugate = conj
bitwise_left_shift, bitwise_right_shift, bitwise_invert = left_shift, right_shift, invert
negative, absolute, abs_, sgn, square = neg, abs, abs, sign, sqr
fix = trunc
asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh
psi, tri_gamma, expit, log1pexp, xlogy0 = digamma, trigamma, sigmoid, softplus, xlogy
radians, degrees = deg2rad, rad2deg
eq, neq, lt, le, gt, ge = equal, not_equal, less, less_equal, greater, greater_equal
and_, or_, xor, bitwise_not = bitwise_and, bitwise_or, bitwise_xor, invert
switch = where

FUNCTIONS.update(astype=astype, clip=clip, conj=conj, copy=copy, divmod=divmod, imag=imag, real=real, round=round)
