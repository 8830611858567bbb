"""Functions of single elements that few programs need: SciPy's special functions, and rare ones of NumPy.

    gammainc(2.0, x)    SciPy's function, called by its address in a kernel
    sinc(x)             composed of functions of elementary.py

In: nodes, arrays, numbers. Out: nodes of ops whose elements SciPy's function of the same name gives: compiled code
calls it by its address. SciPy is imported when such code is loaded. Derivatives are graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, UNSIGNED, floating, is_float, promote
from graphc.arrays.incomplete import betainc_by, gammainc_by_k, stdtr_by_df
from graphc.errors import GraphTypeError
from graphc.ir.node import Array, Complex, Node, describe
from graphc.ops.custom import PREFIX, custom_op, not_implemented, special_op
from graphc.ops.elementwise import as_node, cast, elementwise, is_number
from graphc.ops.recur import times_power
from graphc.ops.scalar import polygamma, strong, strong_product
from graphc.tensor import elementary as el
from graphc.tensor.joining import stack
from graphc.tensor.reductions import max, min

__all__ = [
    "angle", "betainc", "betaincinv", "betaln", "bitwise_count", "ceil_intdiv", "chi2sf", "default", "erfcinv",
    "erfinv", "frexp", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammal", "gammau",
    "hyp2f1", "i0", "i0e", "i1", "i1e", "iscomplex", "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj",
    "iv", "ive", "j0", "j1", "jv", "k0", "k0e", "k1", "k1e", "kv", "kve", "largest", "ldexp", "log_ndtr",
    "mod_check", "modf", "ndtr", "ndtri", "owens_t", "polygamma", "real_if_close", "sinc", "smallest", "spacing",
    "stdtr", "xlogx", "y0", "y1", "yv",
]  # fmt: skip

Function = Callable[..., Node]

Partial = Callable[[Node, Node, Sequence[Node]], Any]
"""(cotangent, node, args) -> the cotangent of an argument."""


def in_one_dtype(*operands: Any) -> list[Node]:
    """Operands in one dtype of floats, to which Python's numbers add nothing, as in NumPy."""
    nodes = [as_node(operand) for operand in operands]
    own = [node for node, operand in zip(nodes, operands, strict=True) if not is_number(operand)]
    dtype = promote(*(floating(node.type.dtype) for node in own or nodes))
    return [cast(node, dtype) for node in nodes]


def scipy_function(name: str, doc: str, *partials: Partial) -> Callable[..., Node]:
    """A function of `SOURCES` (ops/custom.py), with the cotangent of each argument."""

    def vjp(node: Node, cotangent: Node) -> list[Any]:
        parts = (strong(cotangent, partial, node, node.args) for partial in partials)
        return [
            cast(part, arg.type.dtype) if isinstance(part, Node) else part
            for part, arg in zip(parts, node.args, strict=True)
        ]

    made = special_op(name, doc, vjp)

    def function(*operands: Any) -> Node:
        if len(operands) != len(partials):
            raise GraphTypeError(f"{name}() takes {len(partials)} arguments, not {len(operands)}")
        nodes = in_one_dtype(*operands)
        return made(*nodes)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def unknown(position: int) -> Partial:
    """The derivative by an argument for which there is no formula: asking for it is an error."""
    return lambda g, z, args: not_implemented(z.op.name.removeprefix(PREFIX), position, args[position])


_HALF_ROOT_PI = math.sqrt(math.pi) / 2

erfinv: Function = scipy_function(
    "erfinv", "The inverse of erf.", lambda g, z, args: g * (_HALF_ROOT_PI * el.exp(z * z))
)
erfcinv: Function = scipy_function(
    "erfcinv", "The inverse of erfc.", lambda g, z, args: g * (-_HALF_ROOT_PI * el.exp(z * z))
)
ndtri: Function = scipy_function(
    "ndtri",
    "The inverse of the standard normal distribution function.",
    lambda g, z, args: g * (math.sqrt(2 * math.pi) * el.exp(0.5 * z * z)),
)
gamma: Function = scipy_function("gamma", "The gamma function.", lambda g, z, args: g * z * el.digamma(args[0]))


def gamma_density(k: Node, x: Node) -> Node:
    """The derivative of the regularised lower incomplete gamma function with respect to x."""
    return el.exp(el.xlogy(k - 1, x) - x - el.gammaln(k))


def python_function(name: str, doc: str, compute: Callable[..., Array], *partials: Partial) -> Function:
    """A derivative of a function by its parameters, which Python computes."""

    def vjp(z: Node, g: Node) -> list[Any]:
        return [strong(g, partial, z, z.args) for partial in partials]

    def of_arrays(*arrays: Array) -> Array:
        return compute(*(array.astype("float64") for array in arrays))

    of_arrays.__doc__ = doc
    return custom_op(f"{PREFIX}{name}", of_arrays, vjp=vjp, own=True)


def _gamma_slopes(k: Node, x: Node) -> tuple[Node, Node]:
    """The derivatives of the density of x by k, the first and the second, over the density."""
    first = el.log(x) - el.digamma(k)
    return first, el.sqr(first) - polygamma(1, k)


_gammainc_by_kk: Function = python_function(
    "gammainc_by_kk",
    "The second derivative of gammainc by k.",
    lambda k, x: gammainc_by_k(k, x, 2),
    unknown(0),
    lambda g, z, args: g * gamma_density(*args) * _gamma_slopes(*args)[1],
)
gammainc_by_k_of: Function = python_function(
    "gammainc_by_k",
    "The derivative of gammainc by k.",
    lambda k, x: gammainc_by_k(k, x, 1),
    lambda g, z, args: g * _gammainc_by_kk(*args),
    lambda g, z, args: g * gamma_density(*args) * _gamma_slopes(*args)[0],
)
gammainc: Function = scipy_function(
    "gammainc",
    "The regularised lower incomplete gamma function of k and x.",
    lambda g, z, args: g * gammainc_by_k_of(*args),
    lambda g, z, args: g * gamma_density(*args),
)
gammaincc: Function = scipy_function(
    "gammaincc",
    "The regularised upper incomplete gamma function of k and x.",
    lambda g, z, args: -g * gammainc_by_k_of(*args),
    lambda g, z, args: -g * gamma_density(*args),
)


def _bessel(stem: str, doc: str, of_first: Callable[..., Node], of_others: Callable[..., Node]) -> list[Function]:
    """The functions of orders 0, 1 and v. stem: "j", or "ie" for i0e. doc: what they are, "{}" for the order. of_first:
    the cotangent of the argument at order 0, of (cotangent, value, argument, function of order 1). of_others: the same
    of other orders, with the functions of the orders before and after; at order 1, of 0 and 2."""
    letter, end = stem[0], stem[1:]
    zero = scipy_function(
        f"{letter}0{end}", f"{doc.format(0)}.", lambda g, z, args: of_first(g, z, args[0], one(args[0]))
    )
    one = scipy_function(
        f"{letter}1{end}",
        f"{doc.format(1)}.",
        lambda g, z, args: of_others(g, z, args[0], zero(args[0]), other(2, args[0])),
    )
    other = scipy_function(
        f"{letter}v{end}",
        f"{doc.format('v' if end else 'v at x')}. It has no derivative by `v`.",
        unknown(0),
        lambda g, z, args: of_others(g, z, args[1], other(args[0] - 1, args[1]), other(args[0] + 1, args[1])),
    )
    return [zero, one, other]


def _falling(g: Node, z: Node, x: Node, first: Node) -> Node:
    return -g * first


def _between(g: Node, z: Node, x: Node, before: Node, after: Node) -> Node:
    return g * 0.5 * (before - after)


j0, j1, jv = _bessel("j", "The Bessel function of the first kind of order {}", _falling, _between)
y0, y1, yv = _bessel("y", "The Bessel function of the second kind of order {}", _falling, _between)
i0, i1, iv = _bessel(
    "i",
    "The modified Bessel function of order {}",
    lambda g, z, x, first: g * first,
    lambda g, z, x, before, after: g * 0.5 * (before + after),
)
i0e, i1e, ive = _bessel(
    "ie",
    "i{} over exp(abs(x))",
    lambda g, z, x, first: g * (first - el.sgn(x) * z),
    lambda g, z, x, before, after: g * (0.5 * (before + after) - el.sgn(x) * z),
)
k0, k1, kv = _bessel(
    "k",
    "The modified Bessel function of the second kind of order {}",
    _falling,
    lambda g, z, x, before, after: -0.5 * g * (before + after),
)
k0e, k1e, kve = _bessel(
    "ke",
    "k{} times exp(x)",
    lambda g, z, x, first: g * (z - first),
    lambda g, z, x, before, after: g * (z - 0.5 * (before + after)),
)


def beta_density(a: Node, b: Node, x: Node) -> Node:
    """The derivative of the regularised incomplete beta function with respect to x."""
    return el.exp(el.xlogy(a - 1, x) + el.xlog1py(b - 1, -x) - betaln(a, b))


betaln: Function = scipy_function(
    "betaln",
    "The logarithm of the beta function.",
    lambda g, z, args: g * (el.digamma(args[0]) - el.digamma(args[0] + args[1])),
    lambda g, z, args: g * (el.digamma(args[1]) - el.digamma(args[0] + args[1])),
)


def _beta_slope(args: Sequence[Node], by: str) -> Node:
    """The derivative of the density of x by the parameters that `by` names, over the density."""
    a, b, x = args
    whole = a + b
    first = {"a": el.log(x) - el.digamma(a) + el.digamma(whole), "b": el.log1p(-x) - el.digamma(b) + el.digamma(whole)}
    if len(by) == 1:
        return first[by]
    bent = polygamma(1, whole)
    return first[by[0]] * first[by[1]] + (bent if by == "ab" else bent - polygamma(1, a if by == "aa" else b))


def _betainc_twice(by: str) -> Function:
    """A second derivative of betainc by its parameters; the mixed one from those in three directions."""

    def compute(a: Array, b: Array, x: Array) -> Array:
        if by != "ab":
            return betainc_by(a, b, x, float(by == "aa"), float(by == "bb"), 2)
        both, *each = (betainc_by(a, b, x, *way, 2) for way in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0)))
        return 0.5 * (both - each[0] - each[1])

    return python_function(
        f"betainc_by_{by}",
        f"The second derivative of betainc by {' and '.join(by)}.",
        compute,
        unknown(0),
        unknown(1),
        lambda g, z, args: g * beta_density(*args) * _beta_slope(args, by),
    )


_betainc_by_aa, _betainc_by_ab, _betainc_by_bb = map(_betainc_twice, ("aa", "ab", "bb"))
betainc_by_a: Function = python_function(
    "betainc_by_a",
    "The derivative of betainc by a.",
    lambda a, b, x: betainc_by(a, b, x, 1.0, 0.0, 1),
    lambda g, z, args: g * _betainc_by_aa(*args),
    lambda g, z, args: g * _betainc_by_ab(*args),
    lambda g, z, args: g * beta_density(*args) * _beta_slope(args, "a"),
)
betainc_by_b: Function = python_function(
    "betainc_by_b",
    "The derivative of betainc by b.",
    lambda a, b, x: betainc_by(a, b, x, 0.0, 1.0, 1),
    lambda g, z, args: g * _betainc_by_ab(*args),
    lambda g, z, args: g * _betainc_by_bb(*args),
    lambda g, z, args: g * beta_density(*args) * _beta_slope(args, "b"),
)
betainc: Function = scipy_function(
    "betainc",
    "The regularised incomplete beta function of a, b and x.",
    lambda g, z, args: g * betainc_by_a(*args),
    lambda g, z, args: g * betainc_by_b(*args),
    lambda g, z, args: g * beta_density(*args),
)


def held_place(slope: Node, density: Node) -> Node:
    """The derivative of an inverse function by a parameter: what keeps the place in the distribution. The place stays
    at the ends, where both are 0."""
    is_end = el.equal(slope, 0)
    return el.where(is_end, 0, -slope / el.where(is_end, 1, density))


betaincinv: Function = scipy_function(
    "betaincinv",
    "The x whose betainc(a, b, x) is y.",
    lambda g, z, args: g * held_place(betainc_by_a(*args[:2], z), beta_density(args[0], args[1], z)),
    lambda g, z, args: g * held_place(betainc_by_b(*args[:2], z), beta_density(args[0], args[1], z)),
    lambda g, z, args: g / beta_density(args[0], args[1], z),
)
gammaincinv: Function = scipy_function(
    "gammaincinv",
    "The x whose gammainc(k, x) is y.",
    lambda g, z, args: g * held_place(gammainc_by_k_of(args[0], z), gamma_density(args[0], z)),
    lambda g, z, args: g / gamma_density(args[0], z),
)
gammainccinv: Function = scipy_function(
    "gammainccinv",
    "The x whose gammaincc(k, x) is y.",
    lambda g, z, args: g * held_place(gammainc_by_k_of(args[0], z), gamma_density(args[0], z)),
    lambda g, z, args: -g / gamma_density(args[0], z),
)
hyp2f1: Function = scipy_function(
    "hyp2f1",
    "Gauss's hypergeometric function of a, b, c at z; by a, b and c it has no derivative.",
    *map(unknown, range(3)),
    lambda g, z, args: g * strong_product(args[0] * args[1] / args[2], hyp2f1(*(arg + 1 for arg in args[:3]), args[3])),
)
owens_t: Function = scipy_function(
    "owens_t",
    "Owen's T: the probability that a standard normal variable is above h, and another between 0 and a times it.",
    lambda g, z, args: (
        g
        * (-0.5 / math.sqrt(2 * math.pi))
        * el.exp(-0.5 * el.sqr(args[0]))
        * el.erf(args[0] * args[1] * math.sqrt(0.5))
    ),
    lambda g, z, args: (
        g * el.exp(-0.5 * el.sqr(args[0]) * (1 + el.sqr(args[1]))) / (2 * math.pi * (1 + el.sqr(args[1])))
    ),
)


def student_density(df: Node, t: Node) -> Node:
    """The density of Student's t, the derivative of its distribution function by t."""
    return el.exp(-betaln(0.5 * df, 0.5) - 0.5 * (el.log(df) + (df + 1) * el.log1p(el.sqr(t) / df)))


def _student_slope(df: Node, t: Node) -> Node:
    """The derivative of the density of Student's t by df, over the density."""
    square = el.sqr(t)
    change = el.digamma(0.5 * df + 0.5) - el.digamma(0.5 * df) - 1 / df - el.log1p(square / df)
    return 0.5 * (change + (df + 1) * square / (df * (df + square)))


def _stdtr_by_df_twice(df: Node, t: Node) -> Node:
    """The second derivative of stdtr by df, by the chain rule from that of betainc (arrays/incomplete.py)."""
    a, square, density = 0.5 * df, el.sqr(t), student_density(df, t) * t / df
    bent = _student_slope(df, t) - 1 / df + 0.5 * (el.digamma(a + 0.5) - el.digamma(a) - el.log1p(square / df))
    low = _betainc_by_aa(a, 0.5, df / (df + square))
    high = -_betainc_by_bb(0.5, a, square / (df + square))
    return -0.125 * el.sgn(t) * el.where(square < df, high, low) - 0.5 * density * bent


stdtr_by_df_of: Function = python_function(
    "stdtr_by_df",
    "The derivative of stdtr by df.",
    stdtr_by_df,
    lambda g, z, args: g * _stdtr_by_df_twice(*args),
    lambda g, z, args: g * student_density(*args) * _student_slope(*args),
)
stdtr: Function = scipy_function(
    "stdtr",
    "The probability that a variable with Student's t distribution of df degrees of freedom is below t.",
    lambda g, z, args: g * stdtr_by_df_of(*args),
    lambda g, z, args: g * student_density(*args),
)


def ndtr(x: Any) -> Node:
    """The standard normal distribution function."""
    return 0.5 * el.erfc(-math.sqrt(0.5) * as_node(x))


def log_ndtr(x: Any) -> Node:
    """The logarithm of the standard normal distribution function, precise in both tails."""
    x = as_node(x)
    scaled = math.sqrt(0.5) * x
    return el.where(x < -1, el.log(0.5 * el.erfcx(-scaled)) - el.sqr(scaled), el.log1p(-0.5 * el.erfc(scaled)))


def gammal(k: Any, x: Any) -> Node:
    """The lower incomplete gamma function of k and x (Theano's)."""
    return gammainc(k, x) * gamma(k)


def gammau(k: Any, x: Any) -> Node:
    """The upper incomplete gamma function of k and x (Theano's)."""
    return gammaincc(k, x) * gamma(k)


def chi2sf(x: Any, k: Any) -> Node:
    """The probability that a chi-squared variable of `k` degrees of freedom is above `x` (Theano's)."""
    return gammaincc(el.true_div(k, 2.0), el.true_div(x, 2.0))


def xlogx(x: Any) -> Node:
    """x * log(x), 0 where x is 0 (Theano's)."""
    return el.xlogy(x, x)


vars(xlogx).update(xlogx=xlogx, xlogy0=el.xlogy)  # T.xlogx is a module in Theano: T.xlogx.xlogy0(x, y)


# --- arithmetic -------------------------------------------------------------------------------------------------------
# Functions of single elements that few programs need, all composed of those of elementary.py.
#
# In: nodes, arrays, numbers or lists of them. Out: nodes of the broadcast shape, with NumPy's dtypes.


def ceil_intdiv(a: Any, b: Any) -> Node:
    """`a` / `b` rounded up, in the dtype of `a` // `b`: exact for integers, for floats their floor quotient and 1 where
    there is a remainder (Theano's)."""
    left, right = as_node(a), as_node(b)
    quotient = elementwise("floor_div", left, right)
    return el.add(quotient, cast(elementwise("not_equal", elementwise("mod", left, right), 0), quotient.type.dtype))


def mod_check(x: Any, y: Any) -> Node:
    """`x` % `y` (Theano's)."""
    return elementwise("mod", x, y)


def angle(z: Any, deg: bool = False) -> Node:
    """The angle of numbers in the complex plane, in radians, or degrees with `deg`. Of a real number it is 0, or pi
    (180) where it is below 0 or -0.0; NaN of NaN.

        >>> T.angle(T.constant([1j, -1 + 0j]), deg=True).eval()
        array([ 90., 180.])
    """
    node = as_node(z)
    if type(node) is Complex:
        turn = el.arctan2(node.args[1], node.args[0])
        return el.mul(turn, 180 / math.pi) if deg else turn
    node = cast(node, "float64" if node.type.dtype == "bool" else floating(node.type.dtype))
    half = 180.0 if deg else math.pi
    return el.where(el.equal(node, node), cast(el.where(el.signbit(node), half, 0.0), node.type.dtype), node)


def bitwise_count(x: Any) -> Node:
    """The number of ones among the bits of the absolute value of integers, as uint8."""
    node = as_node(x)
    node = cast(node, "uint8") if node.type.dtype == "bool" else node
    if node.type.dtype not in INTEGERS:
        raise GraphTypeError(f"bitwise_count of {describe(node)} of dtype {node.type.dtype}: it is no integer")
    if (
        node.type.dtype not in UNSIGNED
    ):  # the absolute value of the least number is a number of the unsigned dtype alone
        node = cast(el.abs(node), f"u{node.type.dtype}")
    bits = cast(node, "uint64")

    def sums(value: Node, mask: int, shift: int) -> Node:
        pattern = np.uint64(mask)
        return el.add((value & pattern), (value >> np.uint64(shift)) & pattern)

    for mask, shift in (
        (0x5555555555555555, 1), (0x3333333333333333, 2), (0x0F0F0F0F0F0F0F0F, 4),
        (0x00FF00FF00FF00FF, 8), (0x0000FFFF0000FFFF, 16), (0x00000000FFFFFFFF, 32),
    ):  # fmt: skip
        bits = sums(bits, mask, shift)
    return cast(bits, "uint8")


def isneginf(x: Any) -> Node:
    """True where `x` is minus infinity."""
    return el.logical_and(el.isinf(x), el.less(x, 0))


def isposinf(x: Any) -> Node:
    """True where `x` is plus infinity."""
    return el.logical_and(el.isinf(x), el.greater(x, 0))


def isreal(x: Any) -> Node:
    """True where the imaginary part is 0."""
    return el.equal(el.imag(x), 0)


def iscomplex(x: Any) -> Node:
    """True where the imaginary part is not 0."""
    return el.not_equal(el.imag(x), 0)


def isrealobj(x: Any) -> bool:
    """True of a real dtype."""
    return type(as_node(x)) is not Complex


def iscomplexobj(x: Any) -> bool:
    """True of a complex dtype."""
    return not isrealobj(x)


def real_if_close(a: Any, tol: float = 100) -> Node:
    """`a` itself, if it is real. Raises GraphTypeError for complex numbers: NumPy decides by their values."""
    node = as_node(a)
    if type(node) is Complex:
        raise GraphTypeError(f"real_if_close of {describe(node)}: its values are not known; x.real is its real part")
    return node


def modf(x: Any) -> tuple[Node, Node]:
    """The fractional and the whole part, both with the sign of `x`."""
    node = as_node(x)
    node = cast(node, floating(node.type.dtype))
    return el.where(el.isinf(node), el.copysign(0.0, node), el.fmod(node, 1.0)), el.trunc(node)


def ldexp(x: Any, i: Any) -> Node:
    """x * 2**i for integers `i`."""
    node, power = as_node(x), as_node(i)
    if is_float(power.type.dtype) or power.type.dtype == "uint64":
        raise GraphTypeError(
            f"ldexp: the exponent {describe(power)} is of dtype {power.type.dtype}, not a signed integer"
        )
    return times_power(cast(node, "float64" if is_number(x) else floating(node.type.dtype)), power)


def frexp(x: Any) -> tuple[Node, Node]:
    """Mantissa m and int32 exponent e of x = m * 2**e with 0.5 <= |m| < 1; what is not finite, and 0, is its own m."""
    node = as_node(x)
    node = cast(node, floating(node.type.dtype))
    size = el.abs(node)
    known = el.logical_and(el.isfinite(node), el.logical_not(el.equal(node, 0)))
    # The logarithm is rounded, so the exponent may be one off beside a power of 2.
    guess = cast(el.add(el.floor(el.log2(el.where(known, size, 1.0))), 1), "int64")
    mantissa = ldexp(node, elementwise("neg", guess))
    above, below = el.greater(el.abs(mantissa), 1), el.less(el.abs(mantissa), 0.5)
    above = elementwise("logical_or", above, el.equal(el.abs(mantissa), 1))
    exponent = el.add(guess, el.sub(cast(above, "int64"), cast(below, "int64")))
    mantissa = el.where(above, el.true_div(mantissa, 2), el.where(below, el.mul(mantissa, 2), mantissa))
    return el.where(known, mantissa, node), cast(el.where(known, exponent, 0), "int32")


def spacing(x: Any) -> Node:
    """The distance of `x` to the next number away from 0, with its sign, that of zeros above 0; NaN of infinity."""
    node = as_node(x)
    node = cast(node, floating(node.type.dtype))
    beyond = cast(el.where(el.less(node, 0), -math.inf, math.inf), node.type.dtype)
    return el.where(el.isfinite(node), el.sub(el.nextafter(node, beyond), node), math.nan)


def sinc(x: Any) -> Node:
    """sin(pi x) / (pi x), 1 at 0; beside it a series, for the sake of derivatives."""
    turned = el.mul(as_node(x), math.pi)
    small = el.less(el.abs(turned), 0.5)
    away, square = el.where(small, 1.0, turned), el.where(small, el.mul(turned, turned), 0.0)
    series: Any = 0.0
    for k in range(7, -1, -1):
        series = el.add(el.mul(series, square), (-1) ** k / math.factorial(2 * k + 1))
    return el.where(small, series, el.true_div(el.sin(away), away))


def default(x: Any, value: Any) -> Node:
    """`x`, or `value` where `x` is None (Theano's)."""
    return as_node(value if x is None else x)


def _extreme(args: Iterable[Any], two: Callable[..., Node], several: Callable[..., Node]) -> Node:
    nodes = list(args)
    return two(*nodes) if len(nodes) == 2 else several(stack(nodes), 0)


def largest(*args: Any) -> Node:
    """The largest of several values, element by element (Theano's)."""
    return _extreme(args, el.maximum, max)


def smallest(*args: Any) -> Node:
    """The smallest of several values, element by element (Theano's)."""
    return _extreme(args, el.minimum, min)
