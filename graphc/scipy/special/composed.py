"""Functions of `scipy.special` that are composed of others.

    logsumexp(x, axis=0, b=weights)       of the largest term and of the sum of the others over it

In: tensors, arrays and numbers. Out: tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir.node import Array, Node, describe
from graphc.ops.elementwise import as_node, cast, in_floats
from graphc.scipy.special import addressed as by
from graphc.tensor import elementary as el, reductions, special as sp
from graphc.tensor.nnet import losses
from graphc.tensor.shaping import squeeze


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b exp(a))) over `axis`, all axes where it is None, without overflow. It is NaN where the sum is negative;
    with `return_sign` the logarithm of its size, and its sign.

        >>> logsumexp(T.constant([1000.0, 1000.0])).eval()
        array(1000.69314718)

    Raises AxisError for a wrong axis.
    """
    if b is None and not return_sign:
        return reductions.logsumexp(a, axis, keepdims)
    terms, weights = in_floats(a), as_node(1.0 if b is None else b)
    terms = el.where(el.equal(weights, 0), -math.inf, terms) if b is not None else terms
    top = reductions.max(terms, axis=axis, keepdims=True)
    top = el.stop_gradient(el.where(el.isfinite(top), top, 0))
    total = reductions.sum(el.mul(weights, el.exp(el.sub(terms, top))), axis=axis, keepdims=True)
    sign = el.sign(total)
    result = el.add(el.log(el.abs(total) if return_sign else total), top)
    if not keepdims:
        axes = tuple(range(result.ndim)) if axis is None else axis
        result, sign = squeeze(result, axes), squeeze(sign, axes)
    return (result, sign) if return_sign else result


def softmax(x: Any, axis: Any = None) -> Node:
    """exp(x) / sum(exp(x)) over `axis`, all axes where it is None, without overflow.

    Raises AxisError for a wrong axis.
    """
    return _of_axes(losses.softmax, x, axis)


def log_softmax(x: Any, axis: Any = None) -> Node:
    """log(softmax(x)) over `axis`, all axes where it is None, accurate where the softmax is too small to be held.

    Raises AxisError for a wrong axis.
    """
    return _of_axes(losses.log_softmax, x, axis)


def _of_axes(function: Callable[..., Node], x: Any, axis: Any) -> Node:
    """A function over axes, of a number as of one element."""
    node = as_node(x)
    return function(node, axis) if node.ndim else function(node[None], axis)[0]


# --- information, losses, logarithms ----------------------------------------------------------------------------------


def entr(x: Any) -> Node:
    """-x log(x), 0 at 0 and -inf below."""
    x = in_floats(x)
    return el.where(el.less(x, 0), -math.inf, -el.xlogy(x, x))


def rel_entr(x: Any, y: Any) -> Node:
    """x log(x / y), 0 where x is 0 and y not negative; inf where either is negative, and where y alone is 0."""
    x, y = sp.in_one_dtype(x, y)
    inside, at_zero = (x > 0) & (y > 0), (x == 0) & (y >= 0)
    ratio = el.where(inside, x, 1) / el.where(inside, y, 1)
    value = el.where(at_zero, 0, el.where(inside, x * el.log(ratio), math.inf))
    return el.where(el.isnan(x) | el.isnan(y), math.nan, value)


def kl_div(x: Any, y: Any) -> Any:
    """x log(x / y) - x + y, y where x is 0, and inf where rel_entr is."""
    x, y = sp.in_one_dtype(x, y)
    return rel_entr(x, y) + (y - x)


def huber(delta: Any, r: Any) -> Node:
    """r**2 / 2 where abs(r) <= delta, else delta (abs(r) - delta / 2); inf for delta below 0."""
    delta, r = sp.in_one_dtype(delta, r)
    size = el.abs(r)
    value = el.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return el.where(delta < 0, math.inf, value)


def log_expit(x: Any) -> Node:
    """log(expit(x)), exact where expit is 0 or 1."""
    return -el.softplus(-as_node(x))


def exp10(x: Any) -> Node:
    """10**x."""
    return el.pow(10.0, x)


def round(x: Any) -> Node:
    """x to the nearest whole number, halves to the even one; it has no slope."""
    return el.rint(x)


def radian(d: Any, m: Any, s: Any) -> Node:
    """Degrees, minutes and seconds as radians."""
    return el.deg2rad(in_floats(d) + in_floats(m) / 60 + in_floats(s) / 3600)


def diric(x: Any, n: int) -> Node:
    """sin(n x / 2) / (n sin(x / 2)), Dirichlet's kernel, of a whole number n; NaN for n below 1."""
    if n < 1:
        return el.mul(in_floats(x), math.nan)
    half = 0.5 * in_floats(x)
    bottom = el.sin(half)
    turns = el.abs(bottom) < 1e-9
    ends = el.cos(el.rint(half / math.pi) * (math.pi * (n - 1)))
    return el.where(turns, ends, el.sin(n * half) / (n * el.where(turns, 1, bottom)))


# --- of the gamma function --------------------------------------------------------------------------------------------


def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the gamma function of d dimensions."""
    a = in_floats(a)
    parts: Any = sum(el.gammaln(a - 0.5 * j) for j in range(d))
    return 0.25 * d * (d - 1) * math.log(math.pi) + parts


def _not_exact(name: str, exact: Any) -> None:
    if exact:
        raise GraphValueError(f"{name} of a tensor: exact=True gives Python's integers; exact=False gives in_floats")


def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Node:  # noqa: N803 - SciPy's name
    """The combinations of N things taken k at a time, 0 for k above N and for numbers below 0. Raises GraphValueError
    for exact=True."""
    _not_exact("comb", exact)
    if repetition:
        return comb(in_floats(N) + k - 1, k)
    n, k = sp.in_one_dtype(N, k)
    valid = (k <= n) & (n >= 0) & (k >= 0)
    return el.where(valid, by.binom(el.where(valid, n, 1), el.where(valid, k, 1)), 0)


def perm(N: Any, k: Any, exact: bool = False) -> Node:  # noqa: N803 - SciPy's name
    """The permutations of k out of N things, 0 for k above N and for numbers below 0. Raises GraphValueError for
    exact=True."""
    _not_exact("perm", exact)
    n, k = sp.in_one_dtype(N, k)
    valid = (k <= n) & (n >= 0) & (k >= 0)
    n, k = el.where(valid, n, 1), el.where(valid, k, 1)
    return el.where(valid, by.poch(n - k + 1, k), 0)


def factorial(n: Any, exact: bool = False) -> Node:
    """gamma(n + 1), 0 for n below 0. Raises GraphValueError for exact=True."""
    _not_exact("factorial", exact)
    n = in_floats(n)
    return el.where(n < 0, 0, sp.gamma(el.where(n < 0, 0, n) + 1))


# --- derivatives of Bessel functions ----------------------------------------------------------------------------------


def _derivative_of(function: Callable[..., Node], name: str, sign: int, doc: str) -> Callable[..., Node]:
    """The derivative of order n: a sum over neighbours (DLMF 10.6.7, 10.29.5)."""

    def derivative(v: Any, z: Any, n: int = 1) -> Any:
        if not isinstance(n, int) or n < 0:
            raise GraphTypeError(f"{name}: the order n of the derivative is a whole number of Python's, not {n!r}")
        v, z = in_floats(v), as_node(z)
        terms = [sign**k * math.comb(n, k) * function(v - n + 2 * k, z) for k in range(n + 1)]
        total: Any = sum(terms[1:], terms[0])
        return total * ((-1) ** n if name == "kvp" else 1) * 0.5**n

    derivative.__name__ = derivative.__qualname__ = name
    derivative.__doc__ = doc
    return derivative


jvp = _derivative_of(sp.jv, "jvp", -1, "The derivative of order n of jv(v, z) by z.")
yvp = _derivative_of(sp.yv, "yvp", -1, "The derivative of order n of yv(v, z) by z.")
ivp = _derivative_of(sp.iv, "ivp", 1, "The derivative of order n of iv(v, z) by z.")
kvp = _derivative_of(sp.kv, "kvp", 1, "The derivative of order n of kv(v, z) by z.")


def _spherical(name: str, doc: str) -> Callable[..., Node]:
    """A function of a whole order n. Where SciPy's addresses take no z below 0, it is of -z by parity, i_n even or odd,
    and k_n what is left of a sum with pi i_n."""
    of_positive = getattr(by, name)

    def value(n: Node, z: Node) -> Any:
        if name[-2] in "jy":
            return of_positive(n, z)
        size, sign = el.abs(z), el.where(el.equal(el.mod(n, 2), 0), 1.0, -1.0)
        found = of_positive(n, size)
        if name == "spherical_in":
            return el.where(z < 0, sign * found, found)
        below = -sign * found - math.pi * by.spherical_in(n, size)
        return el.where(z < 0, below, found)

    def function(n: Any, z: Any, derivative: bool = False) -> Any:
        order, z = as_node(n), in_floats(z)
        if is_float(order.type.dtype):
            raise GraphTypeError(f"{name}: the order n is of dtype {order.type.dtype}, not an integer")
        n = cast(order, z.type.dtype)
        if not derivative:
            return value(n, z)
        down, up = {"j": (1, -1), "y": (1, -1), "i": (1, 1), "k": (-1, -1)}[name[-2]]
        return (down * n * value(el.maximum(n - 1, 0), z) + up * (n + 1) * value(n + 1, z)) / (2 * n + 1)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


spherical_jn, spherical_yn, spherical_in, spherical_kn = (
    _spherical(f"spherical_{kind}n", f"The spherical Bessel function {kind} of a whole order n, or its derivative.")
    for kind in "jyik"
)

# --- several results --------------------------------------------------------------------------------------------------


def _several(name: str, count: int, doc: str) -> Callable[..., tuple[Node, ...]]:
    parts = [getattr(by, f"{name}_{place}") for place in range(count)]

    def function(*args: Any) -> tuple[Node, ...]:
        return tuple(part(*args) for part in parts)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


airy = _several("airy", 4, "Airy's functions and their derivatives: Ai, Ai', Bi, Bi'.")
airye = _several("airye", 4, "Airy's functions and their derivatives, scaled by exp(2/3 z**1.5).")
itairy = _several("itairy", 4, "Integrals of Airy's functions: of Ai and Bi from 0 to x, and from -x to 0.")
ellipj = _several("ellipj", 4, "Jacobi's elliptic functions sn, cn, dn and the amplitude; by m without a derivative.")
fresnel = _several("fresnel", 2, "Fresnel's integrals of the sine and of the cosine.")
sici = _several("sici", 2, "The sine and the cosine integral.")
shichi = _several("shichi", 2, "The hyperbolic sine and cosine integrals.")
iti0k0 = _several("iti0k0", 2, "The integrals of i0 and k0 from 0 to x.")
itj0y0 = _several("itj0y0", 2, "The integrals of j0 and y0 from 0 to x.")
it2i0k0 = _several("it2i0k0", 2, "The integrals of (i0(t) - 1) / t from 0, and of k0(t) / t from x on.")
it2j0y0 = _several("it2j0y0", 2, "The integrals of (1 - j0(t)) / t from 0, and of y0(t) / t from x on.")
pbdv = _several("pbdv", 2, "The parabolic cylinder function D, and its derivative.")
pbvv = _several("pbvv", 2, "The parabolic cylinder function V, and its derivative.")
pbwa = _several("pbwa", 2, "The parabolic cylinder function W, and its derivative.")

# --- distributions ----------------------------------------------------------------------------------------------------


def _halves(function: Callable[..., Node], v: Any, x: Any) -> Node:
    v, x = sp.in_one_dtype(v, x)
    return function(0.5 * v, 0.5 * x)


def chdtr(v: Any, x: Any) -> Node:
    """The probability that a chi-squared variable of v degrees of freedom is below x."""
    return _halves(sp.gammainc, v, x)


def chdtrc(v: Any, x: Any) -> Node:
    """The probability that a chi-squared variable of v degrees of freedom is above x."""
    return _halves(sp.gammaincc, v, x)


def chdtri(v: Any, p: Any) -> Node:
    """The x whose chdtrc(v, x) is p."""
    v, p = sp.in_one_dtype(v, p)
    return 2 * sp.gammainccinv(0.5 * v, p)


def gdtr(a: Any, b: Any, x: Any) -> Node:
    """The probability that a gamma variable of rate a and shape b is below x."""
    return sp.gammainc(b, in_floats(a) * x)


def gdtrc(a: Any, b: Any, x: Any) -> Node:
    """The probability that a gamma variable of rate a and shape b is above x."""
    return sp.gammaincc(b, in_floats(a) * x)


def _at_most(k: Any) -> tuple[Any, Any]:
    """k rounded down, 0 where it is negative; and the condition that it is not."""
    whole = el.floor(in_floats(k))
    return el.maximum(whole, 0), whole >= 0


def pdtr(k: Any, m: Any) -> Node:
    """The probability that a Poisson variable of mean m is at most k; k is rounded down, NaN below 0."""
    whole, possible = _at_most(k)
    return el.where(possible, sp.gammaincc(whole + 1, m), math.nan)


def pdtrc(k: Any, m: Any) -> Node:
    """The probability that a Poisson variable of mean m is above k; k is rounded down, NaN below 0."""
    whole, possible = _at_most(k)
    return el.where(possible, sp.gammainc(whole + 1, m), math.nan)


def pdtri(k: Any, y: Any) -> Node:
    """The mean m whose pdtr(k, m) is y; k is rounded down."""
    return sp.gammainccinv(el.floor(in_floats(k)) + 1, y)


def bdtr(k: Any, n: Any, p: Any) -> Node:
    """The probability of at most k successes of probability p in n trials; k is rounded down, n towards 0. NaN for k
    below 0 or above n."""
    n, p = sp.in_one_dtype(n, p)
    n, (k, possible) = el.trunc(n), _at_most(k)
    inside = k < n
    value = el.where(inside, sp.betainc(el.where(inside, n - k, 1), k + 1, 1 - p), 1)
    return el.where(possible & (k <= n) & (p >= 0) & (p <= 1), value, math.nan)


def bdtrc(k: Any, n: Any, p: Any) -> Node:
    """The probability of more than k successes of probability p in n trials; k is rounded down, n towards 0. 1 for k
    below 0, NaN for k above n."""
    n, p = sp.in_one_dtype(n, p)
    n, (k, possible) = el.trunc(n), _at_most(k)
    inside = k < n
    value = el.where(inside, sp.betainc(k + 1, el.where(inside, n - k, 1), p), 0)
    value = el.where(possible | el.isnan(k), value, 1)
    return el.where((k <= n) & (p >= 0) & (p <= 1), value, math.nan)


def bdtri(k: Any, n: Any, y: Any) -> Any:
    """The p whose bdtr(k, n, p) is y; k is rounded down, n towards 0."""
    k = el.floor(in_floats(k))
    return 1 - sp.betaincinv(el.trunc(in_floats(n)) - k, k + 1, y)


def _whole(k: Any, n: Any) -> tuple[Any, Any]:
    """Failures and successes, rounded towards 0; NaN for less than 0 and 1."""
    k, n = el.trunc(in_floats(k)), el.trunc(in_floats(n))
    return el.where(k >= 0, k, math.nan), el.where(n >= 1, n, math.nan)


def nbdtri(k: Any, n: Any, y: Any) -> Node:
    """The p whose nbdtr(k, n, p) is y; k and n are rounded towards 0."""
    k, n = _whole(k, n)
    return sp.betaincinv(n, k + 1, y)


def nbdtr(k: Any, n: Any, p: Any) -> Node:
    """The probability of at most k failures before the n-th success of probability p; k and n are rounded towards 0."""
    k, n = _whole(k, n)
    return sp.betainc(n, k + 1, p)


def nbdtrc(k: Any, n: Any, p: Any) -> Node:
    """The probability of more than k failures before the n-th success of probability p; k, n are rounded towards 0."""
    k, n = _whole(k, n)
    return sp.betainc(k + 1, n, 1 - in_floats(p))


def fdtr(dfn: Any, dfd: Any, x: Any) -> Node:
    """The probability that an F variable of dfn and dfd degrees of freedom is below x."""
    dfn, dfd = sp.in_one_dtype(dfn, dfd)
    top = dfn * x
    return sp.betainc(0.5 * dfn, 0.5 * dfd, top / (dfd + top))


def fdtrc(dfn: Any, dfd: Any, x: Any) -> Node:
    """The probability that an F variable of dfn and dfd degrees of freedom is above x."""
    dfn, dfd = sp.in_one_dtype(dfn, dfd)
    return sp.betainc(0.5 * dfd, 0.5 * dfn, dfd / (dfd + dfn * x))


def fdtri(dfn: Any, dfd: Any, p: Any) -> Any:
    """The x whose fdtr(dfn, dfd, x) is p."""
    dfn, dfd = sp.in_one_dtype(dfn, dfd)
    y = sp.betaincinv(0.5 * dfn, 0.5 * dfd, p)
    return dfd * y / (dfn * (1 - y))


# --- functions that Python computes -----------------------------------------------------------------------------------


_hurwitz: Any = by.python_row(
    "zeta",
    "Hurwitz' zeta function.",
    lambda x, q: import_module("scipy.special").zeta(x, q),
    sp.unknown,
    lambda z, x, q: -x * _hurwitz(x + 1, q),
)


def zeta(x: Any, q: Any = None) -> Node:
    """Hurwitz' zeta function of x and q, Riemann's where q is None; by x it has no derivative here."""
    return by.zetac(x) + 1 if q is None else _hurwitz(x, q)


def _lambert(k: int) -> Callable[..., Node]:
    def compute(x: Array) -> Array:
        found = import_module("scipy.special").lambertw(x, k)
        is_real = (found.imag == 0) & ((k == 0) | (x <= 0))
        return np.asarray(np.where(is_real, found.real, math.nan))

    doc = f"The branch {k} of Lambert's W on the real line."
    return by.python_row(f"lambertw_{-k}", doc, compute, lambda w, x: el.exp(-w) / (1 + w))


_BRANCHES = {0: _lambert(0), -1: _lambert(-1)}


def lambertw(z: Any, k: int = 0, tol: float = 1e-8) -> Node:
    """The w of w exp(w) = z, of the branches k = 0 and -1, where it is real; NaN elsewhere. SciPy's is complex.

    Raises GraphValueError for another branch.
    """
    if k not in (0, -1):
        raise GraphValueError(f"lambertw: the branch {k!r} has no real values; 0 and -1 have")
    return _BRANCHES[k](z)


def real_lambertw(z: Any, k: int = 0, tol: float = 1e-8) -> Any:
    """lambertw of arrays."""
    found = np.asarray(import_module("scipy.special").lambertw(z, k, tol))
    return np.where(found.imag == 0, found.real, math.nan)[()]


vars(lambertw)["of_arrays"] = real_lambertw


# --- orthogonal polynomials -------------------------------------------------------------------------------------------
# SciPy's recurrence for integers as degrees, the hypergeometric function that SciPy takes for others. Derivatives by
# x are polynomials of the next kind (DLMF 18.9); by the degree and by parameters there are none: to ask for one is an
# error.

Below = Callable[..., Any]
"""The polynomial of a name, of the degree below n: `below("gegenbauer", n, alpha, x)`."""

_INTEGERS: dict[str, Callable[..., Node]] = {}
_FLOATS: dict[str, Callable[..., Node]] = {}


def _family(name: str, doc: str, slope: Callable[..., Any], parameters: int = 0) -> Callable[..., Node]:
    """`eval_<name>`: ops of integers and of floats as degrees. slope(below, n, *parameters, x): the derivative by x."""

    def below_integer(name: str, n: Node, *rest: Any) -> Any:
        return el.where(el.greater(n, 0), _INTEGERS[name](el.maximum(n - 1, 0), *rest), 0)

    def below_float(name: str, n: Node, *rest: Any) -> Any:
        return _FLOATS[name](n - 1, *rest)

    is_whole = name.startswith("hermite")  # SciPy has these of integers alone
    unknowns = [sp.unknown] * (parameters + 1)
    _INTEGERS[name] = by.row(
        f"eval_{name}" if is_whole else f"eval_{name}_n", doc, *unknowns, lambda z, *args: slope(below_integer, *args)
    )
    if not is_whole:
        _FLOATS[name] = by.row(f"eval_{name}", doc, *unknowns, lambda z, *args: slope(below_float, *args))

    def evaluate(n: Any, *rest: Any) -> Node:
        degree = as_node(n)
        if not is_float(degree.type.dtype):
            return _INTEGERS[name](n, *rest)
        if is_whole:
            raise GraphTypeError(f"eval_{name}: the degree {describe(degree)} is {degree.type.dtype}, not an integer")
        return _FLOATS[name](n, *rest)

    evaluate.__name__ = evaluate.__qualname__ = f"eval_{name}"
    evaluate.__doc__ = doc
    return evaluate


eval_legendre = _family(
    "legendre", "Legendre's polynomial of degree n at x.", lambda below, n, x: below("gegenbauer", n, 1.5, x)
)
eval_chebyt = _family(
    "chebyt",
    "Chebyshev's polynomial of the first kind of degree n at x.",
    lambda below, n, x: n * below("chebyu", n, x),
)
eval_chebyu = _family(
    "chebyu",
    "Chebyshev's polynomial of the second kind of degree n at x.",
    lambda below, n, x: 2 * below("gegenbauer", n, 2.0, x),
)
eval_laguerre = _family(
    "laguerre", "Laguerre's polynomial of degree n at x.", lambda below, n, x: -below("genlaguerre", n, 1.0, x)
)
eval_genlaguerre = _family(
    "genlaguerre",
    "Laguerre's generalised polynomial of degree n and parameter alpha at x.",
    lambda below, n, alpha, x: -below("genlaguerre", n, alpha + 1, x),
    1,
)
eval_gegenbauer = _family(
    "gegenbauer",
    "Gegenbauer's polynomial of degree n and parameter alpha at x.",
    lambda below, n, alpha, x: 2 * alpha * below("gegenbauer", n, alpha + 1, x),
    1,
)
eval_jacobi = _family(
    "jacobi",
    "Jacobi's polynomial of degree n and parameters alpha and beta at x.",
    lambda below, n, alpha, beta, x: 0.5 * (n + alpha + beta + 1) * below("jacobi", n, alpha + 1, beta + 1, x),
    2,
)
eval_hermite = _family(
    "hermite", "Hermite's polynomial of degree n at x.", lambda below, n, x: 2 * n * below("hermite", n, x)
)
eval_hermitenorm = _family(
    "hermitenorm",
    "Hermite's polynomial of degree n at x, of leading coefficient 1.",
    lambda below, n, x: n * below("hermitenorm", n, x),
)


def eval_chebyc(n: Any, x: Any) -> Node:
    """2 eval_chebyt(n, x / 2)."""
    return 2.0 * eval_chebyt(n, 0.5 * as_node(x))


def eval_chebys(n: Any, x: Any) -> Node:
    """eval_chebyu(n, x / 2)."""
    return eval_chebyu(n, 0.5 * as_node(x))


def eval_sh_legendre(n: Any, x: Any) -> Node:
    """eval_legendre(n, 2 x - 1)."""
    return eval_legendre(n, 2 * as_node(x) - 1)


def eval_sh_chebyt(n: Any, x: Any) -> Node:
    """eval_chebyt(n, 2 x - 1)."""
    return eval_chebyt(n, 2 * as_node(x) - 1)


def eval_sh_chebyu(n: Any, x: Any) -> Node:
    """eval_chebyu(n, 2 x - 1)."""
    return eval_chebyu(n, 2 * as_node(x) - 1)


def eval_sh_jacobi(n: Any, p: Any, q: Any, x: Any) -> Node:
    """eval_jacobi(n, p - q, q - 1, 2 x - 1) / by.binom(2 n + p - 1, n)."""
    p, q = as_node(p), as_node(q)
    return eval_jacobi(n, p - q, q - 1, 2 * as_node(x) - 1) / by.binom(2 * as_node(n) + p - 1, n)


def assoc_laguerre(x: Any, n: Any, k: Any = 0.0) -> Node:
    """eval_genlaguerre(n, k, x)."""
    return eval_genlaguerre(n, k, x)
