"""Random arrays, in JAX's functional form: `graphc.random.normal(key, (3, n))`; the bits that they are made of.

In: a key, a scalar of 64 bits that names a sequence of blocks (ops `philox_low` and `philox_high`); parameters that
broadcast, a shape that may be symbolic (None: that of the parameters). Out: nodes of which every element is a function
of the key and of its own index alone: so the numbers are the same in every mode, on every machine, for every number of
threads, however loops are fused. Those that are functions of uniform or normal numbers have derivatives by their
parameters, as have gamma numbers and what is made of them; whole numbers have none.

The counter of a block is (index, draw): `draw` says what the bits are for. An element whose number needs 64 bits has
one half of a block, so that two neighbours share one (ops `philox`, `philox_normal` and others); where more are needed,
the block is its own, and `index` its place in the array. The last numbers of draws are kept for making keys of keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS, is_float
from graphc.arrays.incomplete import Jet, inverse, plus, times
from graphc.control.functional import cond, map, while_loop
from graphc.errors import GraphTypeError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Array, Node, Size, describe, literal
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast, elementwise, elementwise as E
from graphc.ops.identity import checked
from graphc.ops.scalar import stop_gradient
from graphc.ops.shape import iota, reshape
from graphc.options import options
from graphc.tensor import reductions
from graphc.tensor.shaping import as_shape

SPLITTING, FOLDING = 2**64 - 1, 2**64 - 2
"""The draws by which keys are made of keys."""


def word(number: int) -> Node:
    """A constant of 64 bits."""
    return literal(np.uint64(number), "uint64")


def as_key(value: Any) -> Node:
    """A key: a scalar of uint64. A vector of two uint32, as JAX's older keys are, is the number that these words make.
    GraphTypeError for anything else."""
    node = as_node(value)
    if node.ndim == 1 and node.type.dtype == "uint32":
        high, low = (cast(node[place], "uint64") for place in (0, 1))
        return elementwise("bitwise_or", elementwise("left_shift", high, word(32)), low)
    if node.ndim or node.type.dtype != "uint64":
        raise GraphTypeError(
            f"a key is a uint64 scalar, as graphc.random.key(seed) makes it; {describe(node)} has type {node.type}"
        )
    return node


def key(seed: Any) -> Node:
    """Return the key of a seed: a whole number or an integer scalar. Different seeds give independent numbers."""
    node = as_node(int(seed) % 2**64 if isinstance(seed, int | np.integer) and not isinstance(seed, bool) else seed)
    if node.ndim or is_float(node.type.dtype) or node.type.dtype == "bool":
        raise GraphTypeError(f"a seed is a whole number; {describe(node)} has type {node.type}")
    return elementwise("philox_low", cast(node, "uint64"), word(FOLDING), word(0))


def split(key: Any, num: int | Node = 2) -> Node:
    """Return a vector of `num` new keys, made from `key`. Do not use `key` itself again."""
    return elementwise("philox_low", places((sizes.as_size(as_node(num)),)), word(SPLITTING), as_key(key))


def fold_in(key: Any, data: Any) -> Node:
    """Return a new key, made from a key and a whole number, for example the number of a step."""
    return elementwise("philox_low", cast(as_node(data), "uint64"), word(FOLDING), as_key(key))


def places(shape: Sequence[Size]) -> Node:
    """The place of each element in its array."""
    count = cast(iota(sizes.product(shape)), "uint64")
    return count if len(shape) == 1 else reshape(count, tuple(shape))


def words(key: Node, shape: Sequence[Size]) -> Node:
    """64 random bits for each element."""
    return elementwise("philox", places(shape), word(0), key)


def blocks(key: Node, index: Node, draw: int | Node = 0) -> tuple[Node, Node]:
    """The two words of the block of a counter."""
    counter = word(draw) if isinstance(draw, int) else cast(draw, "uint64")
    low, high = (elementwise(name, index, counter, key) for name in ("philox_low", "philox_high"))
    return low, high


def unit(bits: Node, dtype: str, above_zero: bool = False) -> Node:
    """Numbers in [0, 1): multiples of 2**-53, of 2**-24 in float32. Or in (0, 1], of 32 bits in float32, of which small
    ones keep their digits: the logarithm of such a number has its tail."""
    if dtype == "float64":
        count = elementwise("right_shift", bits, word(11))
        whole = elementwise("add", count, word(1)) if above_zero else count
        return elementwise("mul", cast(cast(whole, "int64"), "float64"), literal(2.0**-53, "float64"))
    if above_zero:
        count = elementwise("add", elementwise("right_shift", bits, word(32)), word(1))
        return elementwise("mul", cast(cast(count, "int64"), "float32"), literal(np.float32(2.0**-32), "float32"))
    count = elementwise("right_shift", bits, word(40))
    return elementwise("mul", cast(cast(count, "int64"), "float32"), literal(np.float32(2.0**-24), "float32"))


def units(key: Node, shape: Sequence[Size], dtype: str) -> Node:
    """A number in [0, 1) for each element."""
    if dtype == "float64":
        return elementwise("philox_unit", places(shape), word(0), key)
    return unit(words(key, shape), dtype)


def below(bits: Node, count: Node) -> Node:
    """Whole numbers from 0 to below `count`, of 64 bits each; no number is more likely than another by more than one
    part in 2**64 / count."""
    return cast(elementwise("mod", bits, cast(count, "uint64")), "int64")


# --- distributions ----------------------------------------------------------------------------------------------------


Shape = Any


def sized(name: str, shape: Shape, *parameters: Any) -> tuple[tuple[Size, ...], list[Node]]:
    """The shape of a draw and the parameters in it. A size that is -1 is that of the parameters along its axis.
    ShapeError where a parameter has more axes than the shape, or none has the axis of such a size."""
    nodes = [as_node(each) for each in parameters]
    if shape is None:
        own: Sequence[Size] = broadcast_sizes(name, nodes) if nodes else ()
    else:
        own = as_shape((shape,) if isinstance(shape, int | np.integer) else shape, name, instead="give ndim=")
        for each in nodes:
            if each.ndim > len(own):
                raise ShapeError(f"{name}: {describe(each)} of type {each.type} has more axes than the shape")
        own = _without_gaps(name, own, broadcast_sizes(name, nodes) if nodes else ())
    return tuple(own), [broadcast_node(each, own) for each in nodes]


def _without_gaps(name: str, shape: Sequence[Size], known: Sequence[Size]) -> list[Size]:
    """A shape with the sizes of parameters, as they broadcast, in place of -1."""
    missing = len(shape) - len(known)
    if any(isinstance(size, int) and size == -1 for size in shape[:missing]):
        raise ShapeError(f"{name}: a size of -1 is that of a parameter, and no parameter has axis {shape.index(-1)}")
    return [known[axis - missing] if isinstance(size, int) and size == -1 else size for axis, size in enumerate(shape)]


def float_of(name: str, dtype: Any, *parameters: Node) -> str:
    """The dtype of a draw of floats: the one asked for, else that of the parameters, else floatX."""
    real = np.dtype(dtype).name if dtype is not None else None
    if real is None:
        dtypes = {each.type.dtype for each in parameters if is_float(each.type.dtype)}
        strong = dtypes - {"float64"} if options.floatX == "float32" else dtypes
        real = "float64" if "float64" in strong else "float32" if strong else options.floatX
    if not is_float(real):
        raise GraphTypeError(f"{name}: numbers of dtype {real} are asked for; these are float32 or float64")
    return real


def bits(key: Any, shape: Shape = (), dtype: Any = "uint64") -> Node:
    """Draw whole numbers of an unsigned dtype, all equally likely."""
    own, _ = sized("bits", shape)
    return cast(words(as_key(key), own), np.dtype(dtype).name)


def uniform(key: Any, shape: Shape = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Node:
    """Draw uniform numbers of the interval [minval, maxval): minval + (maxval - minval) * u, where u is a multiple of
    2**-53 (in float32 of 2**-24).

    Raises GraphTypeError for a dtype that is no float, ShapeError where a parameter has more axes than `shape`.

        >>> graphc.random.uniform(graphc.random.key(0), (2, 3)).shape
        (2, 3)
    """
    own, (low, high) = sized("uniform", shape, minval, maxval)
    real = float_of("uniform", dtype, low, high)
    number = units(as_key(key), own, real)
    if _is_number(minval, 0) and _is_number(maxval, 1):
        return number
    low, high = cast(low, real), cast(high, real)
    return low + (high - low) * number


def normal(key: Any, shape: Shape = (), dtype: Any = None) -> Node:
    """Draw standard normal numbers, by the method of Box and Muller (1958).

    Raises GraphTypeError for a dtype that is no float.

        >>> graphc.random.normal(graphc.random.key(0), (2, 3), "float32").dtype
        dtype('float32')
    """
    return _standard("normal", key, shape, dtype)


def _standard(name: str, key: Any, shape: Shape, dtype: Any) -> Node:
    """Numbers of a distribution without parameters; those of float32 are those of float64, rounded."""
    own, _ = sized(name, shape)
    return cast(E(f"philox_{name}", places(own), word(0), as_key(key)), float_of(name, dtype))


def log1p(x: Node) -> Node:
    """log(1 + x), of the same bits on every machine: what 1 + x loses of x is made good by a factor
    (Hewlett-Packard, HP-15C Advanced Functions Handbook, 1982)."""
    above = x + 1.0
    is_lost = E("equal", above, 1.0)
    return E("where", is_lost, x, E("portable_log", above) * (x / E("where", is_lost, 1.0, above - 1.0)))


def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: Any = "int64") -> Node:
    """Draw whole numbers from `minval` to below `maxval`, equally likely up to a part in 2**64 / (maxval - minval).

    Raises GraphTypeError for limits that are no whole numbers.

        >>> graphc.random.randint(graphc.random.key(0), (1000,), 0, 6).max()
        np.int64(5)
    """
    own, (low, high) = sized("randint", shape, minval, maxval)
    for each in (low, high):
        if each.type.dtype not in INTEGERS:
            raise GraphTypeError(f"randint: {describe(each)} of type {each.type}: the limits are whole numbers")
    low, high = cast(low, "int64"), cast(high, "int64")
    number = low + below(words(as_key(key), own), high - low)
    return cast(number, np.dtype(dtype).name)


def bernoulli(key: Any, p: Any = 0.5, shape: Shape = None) -> Node:
    """Return True with probability `p`, and False otherwise. A `p` above 1 gives True. A `p` below 0, or NaN, gives
    False: a bool has no value for an invalid probability.

        >>> graphc.random.bernoulli(graphc.random.key(0), 0.5, (3,)).dtype
        dtype('bool')
    """
    own, (chance,) = sized("bernoulli", shape, p)
    real = float_of("bernoulli", None, chance)
    return E("less", units(as_key(key), own, real), cast(chance, real))


def require(x: Node, condition: Node, message: str) -> Node:
    """`x` where a condition holds, else an error of values."""
    return checked(x, (cast(condition, "int64"),), message, "value")


def categorical(key: Any, logits: Any, axis: int = -1, shape: Shape = None) -> Node:
    """Draw categories: indices along `axis`, with probabilities proportional to exp(logits). Each is the index of the
    largest logit after Gumbel noise was added. A call raises GraphValueError if a logit is NaN, or all along `axis` are
    -infinity.

        >>> graphc.random.categorical(graphc.random.key(0), T.log([0.0, 1.0])).eval()
        array(1)
    """
    scores = as_node(logits)
    if not scores.ndim:
        raise RankError(f"categorical: {describe(scores)} of type {scores.type} has no axis of categories")
    place = axis % scores.ndim
    largest = reductions.max(scores, place)
    message = f"categorical: {describe(scores)} has a logit that is NaN, or no category of a chance above 0"
    return most_likely(key, require(scores, E("greater", largest, -np.inf).all(), message), place, shape)


def most_likely(key: Any, scores: Node, place: int, shape: Shape = None) -> Node:
    """`categorical` of logits along axis `place`, of which some are above -infinity."""
    if shape is not None:
        rest = [size for number, size in enumerate(scores.type.shape) if number != place]
        wanted = as_shape(shape, "categorical")
        front = wanted[: len(wanted) - len(rest)]
        full = (*front, *scores.type.shape)
        return (broadcast_node(scores, full) + gumbel(key, full, scores.type.dtype)).argmax(axis=len(front) + place)
    return (scores + gumbel(key, scores.type.shape, scores.type.dtype)).argmax(axis=place)


def exponential(key: Any, shape: Shape = (), dtype: Any = None) -> Node:
    """Draw exponential numbers of mean 1: -log(u), where u is uniform."""
    return _standard("exponential", key, shape, dtype)


def gumbel(key: Any, shape: Shape = (), dtype: Any = None) -> Node:
    """Draw standard Gumbel numbers: -log(-log(u)), where u is uniform."""
    return _standard("gumbel", key, shape, dtype)


def logistic(key: Any, shape: Shape = (), dtype: Any = None) -> Node:
    """Draw standard logistic numbers: log(u / (1 - u)), where u is uniform."""
    return _standard("logistic", key, shape, dtype)


def laplace(key: Any, shape: Shape = (), dtype: Any = None) -> Node:
    """Draw standard Laplace numbers: exponential numbers with a random sign."""
    return _standard("laplace", key, shape, dtype)


def cauchy(key: Any, shape: Shape = (), dtype: Any = None) -> Node:
    """Draw standard Cauchy numbers: the tangent of a uniform angle."""
    return _standard("cauchy", key, shape, dtype)


def not_negative(x: Any, kind: str) -> Node:
    """A parameter, NaN where it is none."""
    number = cast(x, kind)
    return E("where", E("less", number, 0.0), literal(np.dtype(kind).type(np.nan), kind), number)


def lognormal(key: Any, sigma: Any = 1.0, shape: Shape = (), dtype: Any = None) -> Node:
    """Draw log-normal numbers: exp(sigma * z), where z is standard normal."""
    own, (width,) = sized("lognormal", shape, sigma)
    real = float_of("lognormal", dtype, width)
    return E("portable_exp", not_negative(width, real) * normal(key, own, real))


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw Weibull numbers: scale * e ** (1 / concentration), where e is exponential of mean 1."""
    own, (factor, power) = sized("weibull_min", shape, scale, concentration)
    real = float_of("weibull_min", dtype, factor, power)
    return not_negative(factor, real) * E("portable_exp", -gumbel(key, own, real) / not_negative(power, real))


def pareto(key: Any, b: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw Pareto numbers of shape `b`, which are at least 1: exp(e / b), where e is exponential of mean 1."""
    own, (power,) = sized("pareto", shape, b)
    real = float_of("pareto", dtype, power)
    return E("portable_exp", exponential(key, own, real) / not_negative(power, real))


def geometric(key: Any, p: Any, shape: Shape = None, dtype: Any = "int64") -> Node:
    """Draw the number of trials up to the first success, which has probability `p`: ceil(log(u) / log(1 - p)), where u
    is uniform. An invalid `p` gives -1."""
    own, (chance,) = sized("geometric", shape, p)
    real = float_of("geometric", None, chance)
    waited = -exponential(key, own, real) / log1p(-cast(chance, real))
    is_chance = E("logical_and", E("greater", chance, 0), E("less_equal", chance, 1))
    return whole(E("maximum", E("ceil", waited), literal(np.dtype(real).type(1), real)), is_chance, dtype)


def whole(number: Node, holds: Node, dtype: Any) -> Node:
    """A drawn number as a whole one; -1, as in JAX, where its parameters are none of the distribution's, and where it
    is more than 63 bits hold."""
    fits = E("logical_and", E("greater_equal", number, 0.0), E("less", number, 2.0**63))
    exact = cast(E("where", E("logical_and", holds, fits), number, -1.0), "int64")
    return cast(exact, np.dtype(dtype).name)


def wald(key: Any, mean: Any, scale: Any = 1.0, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw inverse Gaussian numbers (Michael, Schucany and Haas, The American Statistician 30, 1976), in a form that
    does not cancel: the smaller root of their quadratic is mean**2 over the larger one. Which root is taken depends on
    the parameters, so that derivatives are those of `by_its_place`."""
    own, (middle, width) = sized("wald", shape, mean, scale)
    real = float_of("wald", dtype, middle, width)
    parameters = [cast(middle, real), cast(width, real)]
    middle, width = (stop_gradient(each) for each in parameters)
    square = E("sqr", normal(fold_in(key, 0), own, real)) * middle / (2.0 * width)
    large = middle * (1.0 + square + E("sqrt", square * (2.0 + square)))
    small = middle * middle / large
    number = uniform(fold_in(key, 1), own, real)
    drawn = E("where", E("less_equal", number * (middle + small), middle), small, large)
    return by_its_place(drawn, parameters, wald_by_parameters)


def rayleigh(key: Any, scale: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw Rayleigh numbers: scale * sqrt(2 e), where e is exponential of mean 1.

    >>> graphc.random.rayleigh(graphc.random.key(0), 2.0, (5,)).shape
    (5,)
    """
    own, (factor,) = sized("rayleigh", shape, scale)
    real = float_of("rayleigh", dtype, factor)
    return not_negative(factor, real) * E("sqrt", 2.0 * exponential(key, own, real))


def rademacher(key: Any, shape: Shape = (), dtype: Any = "int64") -> Node:
    """Draw 1 and -1, both equally likely.

    >>> graphc.random.rademacher(graphc.random.key(0), (5,)).shape
    (5,)
    """
    return cast(2 * cast(bernoulli(key, 0.5, shape), "int64") - 1, np.dtype(dtype).name)


def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw numbers of the triangular density from `left` to `right` with its top at `mode`: quantiles of uniform ones.

    >>> graphc.random.triangular(graphc.random.key(0), 0.0, 1.0, 3.0, (5,)).shape
    (5,)
    """
    own, ends = sized("triangular", shape, left, mode, right)
    real = float_of("triangular", dtype, *ends)
    low, top, high = (cast(end, real) for end in ends)
    u = units(as_key(key), own, real)
    rising = E("less", u, (top - low) / (high - low))
    place = E("sqrt", E("where", rising, u * (top - low), (1.0 - u) * (high - top)) * (high - low))
    return E("where", rising, low + place, high - place)


def _is_number(value: Any, number: float) -> bool:
    return isinstance(value, int | float) and value == number


# --- derivatives by parameters ----------------------------------------------------------------------------------------
# Of numbers and parameters, of one shape: von Mises, truncated normal, inverse Gaussian, gamma. They are composed of
# elementary functions, so that they have some themselves. A number is a function of the parameters and of its place in
# the distribution, which stays: dx/dp = -F_p / f, as for gamma numbers below. Integrals are by Gauss' and Legendre's
# rule, over intervals that end where the integrand has fallen by e**-40. Right to 1e-11.

NODES = 32
FALLEN = 40.0
"""The exponent by which an integrand may fall before it is left out."""
FAR = 1e3
"""Deviations beyond which a limit of the normal distribution is none."""


@cache
def _rule() -> tuple[Array, Array]:
    """Places between 0 and 1, and weights."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


def _integral(function: Callable[..., Node], begin: Node, end: Node, *operands: Node) -> Node:
    """The integral of function(t, *given) over t, for each element."""
    nodes, weights = (literal(each, "float64") for each in _rule())
    first, width, *others = (each.dimshuffle(*range(each.ndim), "x") for each in (begin, end - begin, *operands))
    summed: Node = (function(first + width * nodes, *others) * weights).sum(axis=-1)
    return summed * (end - begin)


def by_its_place(number: Node, parameters: Sequence[Node], slopes: Callable[..., Node | tuple[Node, ...]]) -> Node:
    """A number with the derivatives that slopes(number, *parameters) gives; these are computed in float64."""

    def rule(inputs: Sequence[Node], results: Sequence[Node], cotangents: Any, wanted: Any) -> list[Node]:
        wide = [cast(each, "float64") for each in (results[0], *inputs)]
        derivative = slopes(*wide)
        parts = derivative if isinstance(derivative, tuple) else (derivative,)
        return [cotangents[0] * cast(part, number.type.dtype) for part in parts]

    return overridden([number], parameters, rule)[0]


# --- angles -----------------------------------------------------------------------------------------------------------


def _versine(t: Node) -> Node:
    return 2.0 * E("sqr", E("sin", 0.5 * t))


def _last_angle(x: Node, kappa: Node) -> Node:
    """The angle at which exp(kappa cos t) has fallen from its value at x, or pi."""
    square = E("sqr", E("sin", 0.5 * x)) + 0.5 * FALLEN / E("maximum", kappa, 0.5 * FALLEN)
    is_within = E("less", square, 1.0)
    return E("where", is_within, 2.0 * E("arcsin", E("sqrt", E("where", is_within, square, 0.5))), math.pi)


def angle_by_concentration(angle: Node, kappa: Node) -> Node:
    """Return the derivative by kappa of an angle about 0, from -pi to pi:

        exp(-kappa cos x) * integral of (cos t - A) exp(kappa cos t) over t from |x| to pi

    with A the mean of the cosine, which is minus the integral from 0 to |x|; each where its integrand has one sign.
    """
    x = abs(angle)
    top = _last_angle(x * 0.0, kappa)

    def weight(t: Node, kappa: Node) -> Node:
        return E("exp", -kappa * _versine(t))

    above = _integral(lambda t, kappa: _versine(t) * weight(t, kappa), x * 0.0, top, kappa)
    lack = above / _integral(weight, x * 0.0, top, kappa)
    is_inner = E("less", _versine(x), lack)

    def density(t: Node, x: Node, kappa: Node, lack: Node) -> Node:
        fall = 2.0 * kappa * E("sin", 0.5 * (t + x)) * E("sin", 0.5 * (t - x))
        return (lack - _versine(t)) * E("exp", -fall)

    begin, end = E("where", is_inner, 0.0, x), E("where", is_inner, x, _last_angle(x, kappa))
    integral = _integral(density, begin, end, x, kappa, lack)
    return E("sign", angle) * E("where", is_inner, -integral, integral)


# --- parts of the normal distribution ---------------------------------------------------------------------------------


def _area(low: Node, high: Node) -> tuple[Node, Node]:
    """The integral of exp(-t**2 / 2) between limits, as s and q of exp(-s) q: no limit is too far for that."""
    is_below = E("less", high, 0.0)
    left, right = E("where", is_below, -high, low), E("where", is_below, -low, high)
    is_tail = E("greater_equal", left, 0.0)
    begin = E("maximum", left, 0.0)
    width = E("minimum", right - begin, 2.0 * FALLEN / (begin + E("sqrt", begin * begin + 2.0 * FALLEN)))
    tail = _integral(lambda t, begin: E("exp", -t * (begin + 0.5 * t)), width * 0.0, width, begin)
    half = math.sqrt(0.5)
    whole = math.sqrt(0.5 * math.pi) * (E("erf", right * half) - E("erf", left * half))
    return E("where", is_tail, 0.5 * left * left, 0.0), E("where", is_tail, tail, whole)


def truncated_by_limits(x: Node, lower: Node, upper: Node) -> tuple[Node, Node]:
    """Return the derivatives of a standard normal number between two limits, by these: f(a) / f(x) times what is beyond
    x of the whole, and f(b) / f(x) times what is before."""
    a = E("maximum", lower, E("minimum", upper, 0.0) - FAR)
    b = E("minimum", upper, E("maximum", lower, 0.0) + FAR)
    shift, whole = _area(a, b)
    derivatives = []
    for limit, (part, size) in ((a, _area(x, b)), (b, _area(a, x))):
        derivatives.append(E("exp", 0.5 * (x - limit) * (x + limit) - part + shift) * size / whole)
    return derivatives[0], derivatives[1]


def wald_by_parameters(x: Node, mean: Node, scale: Node) -> tuple[Node, Node]:
    """Return the derivatives of an inverse Gaussian number by its mean and its scale, with M = (1 - Phi(b)) / phi(b)
    and b = sqrt(scale / x) (x / mean + 1): 2 scale / mean**2 * M * r, and x / scale - 2 / mean * M * r, where r =
    sqrt(x**3 / scale)."""
    b = E("sqrt", scale / x) * (x / mean + 1.0)
    _, mills = _area(b, b + FAR)
    part = 2.0 * mills * E("sqrt", x / scale) * x / mean
    return part * scale / mean, x / scale - part


# --- implicit ---------------------------------------------------------------------------------------------------------
# The derivative of a gamma number by its shape parameter.
#
# In: logarithms of gamma numbers, and shape parameters. Out: that derivative, which has one itself. A number is a
# function of alpha and of its place p in the distribution, which stays: F(x, alpha) = p, so dx/dalpha = -F_alpha / f
# (Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, NeurIPS 2018). With y = log x and h = dy/dalpha,
#
#     h = -((y - digamma(alpha + 1)) S + S') / alpha,     S = sum of x**n / ((alpha + 1) ... (alpha + n))
#     h = (y - digamma(alpha)) C + C',      C = 1 / (x + 1 - alpha - 1 (1 - alpha) / (x + 3 - alpha - ...))
#     dh/dy = digamma(alpha) - y - h (alpha - x)
#
# from the series of F and the continued fraction of 1 - F (Abramowitz and Stegun 6.5.29 and 6.5.31), ' the derivative
# by alpha. The first up to four deviations above the mean, the second beyond; above `LARGE` the expansion of x by the
# normal number of the same place (Cornish and Fisher; Abramowitz and Stegun 26.2.49). Right to 1e-9, the second
# derivative to 1e-7.


LARGE = 1000.0
ENOUGH = 1e-18
"""Terms below this part of what they are added to change nothing."""


def slope(logs: Node, alpha: Node) -> Node:
    """The derivative of the logarithm of a gamma number by alpha; its own by both."""
    y, a = cast(logs, "float64"), cast(alpha, "float64")

    def rule(inputs: Sequence[Node], results: Sequence[Node], cotangents: Any, wanted: Any) -> list[Node]:
        (y, a), h = inputs, results[0]
        by_log = E("digamma", a) - y - h * (a - E("exp", y))
        return [cotangents[0] * by_log, cotangents[0] * _derivative(y, a, 2)]

    return cast(overridden([_derivative(y, a, 1)], [y, a], rule)[0], logs.type.dtype)


def _derivative(y: Node, alpha: Node, order: int) -> Node:
    """The derivative of that order by alpha of y, of the second with y held where the first is taken."""
    count = sizes.product(y.type.shape)
    flat = tuple(reshape(each, (count,)) for each in (y, alpha))
    made: Node = map(lambda elements: _of_one(elements[0], elements[1], order), flat)
    return reshape(made, y.type.shape)


def _of_one(y: Node, a: Node, order: int) -> Node:
    x = E("exp", y)
    is_above = E("greater", x, a + 4.0 * E("sqrt", a) + 4.0)

    def moderate() -> Node:
        chosen: Node = cond(is_above, lambda: _by_fraction(y, x, a, order), lambda: _by_series(y, x, a, order))
        return chosen

    drawn: Node = cond(E("greater", a, LARGE), lambda: _by_expansion(x, a, order), moderate)
    return drawn


def _by_series(y: Node, x: Node, a: Node, order: int) -> Node:
    def step(carry: tuple[Node, Jet, Jet]) -> tuple[Node, Jet, Jet]:
        n, term, total = carry
        ratio = x / (a + n)
        term = times(term, (ratio, -ratio / (a + n), 2.0 * ratio / E("sqr", a + n))[: order + 1])
        return n + 1.0, term, plus(total, term)

    begin = _constant(1.0, order)
    total: tuple[Node, ...] = while_loop(lambda c: _matters(c[1], c[2]), step, (_number(1.0), begin, begin))[2]
    away = y - E("digamma", a + 1.0)
    first = away * total[0] + total[1]
    if order == 1:
        return -first / a
    second = away * total[1] + total[2] - E("trigamma", a + 1.0) * total[0]
    return (first / a - second) / a


def _by_fraction(y: Node, x: Node, a: Node, order: int) -> Node:
    """Steed's way of taking a continued fraction from the front."""

    def step(carry: tuple[Node, Node, Jet, Jet, Jet]) -> tuple[Node, Node, Jet, Jet, Jet]:
        n, low, part, term, total = carry
        under = (low, -_number(1.0), _number(0.0))[: order + 1]
        above = (n * (a - n), n, _number(0.0))[: order + 1]
        part = inverse(plus(under, times(above, part)))
        left = times(under, part)
        term = times(term, (left[0] - 1.0, *left[1:]))
        return n + 1.0, low + 2.0, part, term, plus(total, term)

    low = x + 1.0 - a
    begin = inverse((low, -_number(1.0), _number(0.0))[: order + 1])
    total: tuple[Node, ...] = while_loop(
        lambda c: _matters(c[3], c[4]), step, (_number(1.0), low + 2.0, begin, begin, begin)
    )[4]
    away = y - E("digamma", a)
    if order == 1:
        return away * total[0] + total[1]
    return away * total[1] + total[2] - E("trigamma", a) * total[0]


def _by_expansion(x: Node, a: Node, order: int) -> Node:
    """x = r**2 + r z + sum of p_k(z) / r**k with r = sqrt(alpha); z by Newton's method."""
    r = E("sqrt", a)
    z = (x - a) / r
    for _ in range(4):
        z = z - (_place(z, r) - x) / _place_by_z(z, r)
    by_a = _place_by_r(z, r) / (2.0 * r)
    if order == 1:
        return by_a / x
    # with y, and so x, held: z goes back by x_a / x_z
    by_z = _place_by_z(z, r)
    back = -by_a / by_z
    p = _cubic(z)
    mixed = 1.0 - (3.0 * z * z - 7.0) / (36.0 * a)
    twice = -(z / r) / (4.0 * a) + p / (48.0 * a * a * r)
    return (twice + back * mixed / (2.0 * r)) / x


def _cubic(z: Node) -> Node:
    return z * (z * z - 7.0)


def _quartic(z: Node) -> Node:
    return (3.0 * z * z + 7.0) * z * z - 16.0


def _quintic(z: Node) -> Node:
    return z * ((9.0 * z * z + 256.0) * z * z - 433.0)


def _place(z: Node, r: Node) -> Node:
    tail = (_cubic(z) / 36.0 + (_quintic(z) / (38880.0 * r) - _quartic(z) / 810.0) / r) / r
    return r * (r + z) + (z * z - 1.0) / 3.0 + tail


def _place_by_z(z: Node, r: Node) -> Node:
    square = z * z
    tail = ((45.0 * square + 768.0) * square - 433.0) / (38880.0 * r) - (12.0 * square + 14.0) * z / 810.0
    return r + 2.0 * z / 3.0 + ((3.0 * square - 7.0) / 36.0 + tail / r) / r


def _place_by_r(z: Node, r: Node) -> Node:
    tail = (_cubic(z) / 36.0 + (_quintic(z) / (12960.0 * r) - _quartic(z) / 405.0) / r) / (r * r)
    return 2.0 * r + z - tail


# Values with derivatives ----------------------------------------------------------------------------------------------


def _number(value: float) -> Node:
    return literal(np.float64(value), "float64")


def _constant(value: float, order: int) -> Jet:
    return (_number(value), *(_number(0.0) for _ in range(order)))


def _matters(term: Jet, total: Jet) -> Node:
    size = abs(term[0])
    for each in term[1:]:
        size = size + abs(each)
    return E("greater", size, ENOUGH * abs(total[0]))
