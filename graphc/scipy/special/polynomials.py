"""Orthogonal polynomials of `scipy.special`: `eval_legendre(n, x)` and kin.

    eval_legendre(3, x)        SciPy's recurrence, for integers n
    eval_legendre(2.5, x)      the hypergeometric function that SciPy takes for other n

In: the degree, parameters and x. Out: tensors. Derivatives by x are polynomials of the next kind (DLMF 18.9); by the
degree and by parameters there are none: to ask for one is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.arrays.dtypes import is_float
from graphc.errors import GraphTypeError
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node
from graphc.scipy.special.addressed import binom, row
from graphc.tensor.elementary import greater, maximum, where
from graphc.tensor.special import unknown

Below = Callable[..., Any]
"""The polynomial of a name, of the degree below n: `below("gegenbauer", n, alpha, x)`."""

INTEGERS: dict[str, Callable[..., Node]] = {}
FLOATS: dict[str, Callable[..., Node]] = {}


def _below_integer(name: str, n: Node, *rest: Any) -> Any:
    return where(greater(n, 0), INTEGERS[name](maximum(n - 1, 0), *rest), 0)


def _below_float(name: str, n: Node, *rest: Any) -> Any:
    return FLOATS[name](n - 1, *rest)


def _family(name: str, doc: str, slope: Callable[..., Any], parameters: int = 0) -> Callable[..., Node]:
    """`eval_<name>`: ops of integers and of floats as degrees. slope(below, n, *parameters, x): the derivative by x."""
    is_whole = name.startswith("hermite")  # SciPy has these of integers alone
    unknowns = [unknown] * (parameters + 1)
    INTEGERS[name] = row(
        f"eval_{name}" if is_whole else f"eval_{name}_n", doc, *unknowns, lambda z, *args: slope(_below_integer, *args)
    )
    if not is_whole:
        FLOATS[name] = row(f"eval_{name}", doc, *unknowns, lambda z, *args: slope(_below_float, *args))

    def evaluate(n: Any, *rest: Any) -> Node:
        degree = as_node(n)
        if not is_float(degree.type.dtype):
            return INTEGERS[name](n, *rest)
        if is_whole:
            raise GraphTypeError(f"eval_{name}: the degree {describe(degree)} is {degree.type.dtype}, not an integer")
        return FLOATS[name](n, *rest)

    evaluate.__name__ = evaluate.__qualname__ = f"eval_{name}"
    evaluate.__doc__ = doc
    return evaluate


eval_legendre = _family(
    "legendre",
    "Legendre's polynomial of degree n at x.",
    lambda below, n, x: below("gegenbauer", n, 1.5, x),
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
    "laguerre",
    "Laguerre's polynomial of degree n at x.",
    lambda below, n, x: -below("genlaguerre", n, 1.0, x),
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
    """eval_jacobi(n, p - q, q - 1, 2 x - 1) / binom(2 n + p - 1, n)."""
    p, q = as_node(p), as_node(q)
    return eval_jacobi(n, p - q, q - 1, 2 * as_node(x) - 1) / binom(2 * as_node(n) + p - 1, n)


def assoc_laguerre(x: Any, n: Any, k: Any = 0.0) -> Node:
    """eval_genlaguerre(n, k, x)."""
    return eval_genlaguerre(n, k, x)
