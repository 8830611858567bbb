"""The examples in the documentation of NumPy's and SciPy's linear algebra, and polynomials; singular, empty, single and
huge matrices: each function with the same arguments here and there.

All rows are results of one function, interpreted; compiled code has its own tests against the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError, GraphTypeError, ShapeError
from graphc.functions.function import function

la: Any = T.linalg
N: Any = np.linalg
S: Any = sl
Row = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]


def both(name: str, *arguments: Any, **options: Any) -> Row:
    """A function of the same name here, and in NumPy or SciPy."""
    mine = getattr(la, name, None) or getattr(T, name)
    theirs = next(getattr(module, name) for module in (N, S, np) if hasattr(module, name))
    return (lambda *given: mine(*given, **options), lambda *given: theirs(*given, **options), arguments)


def scipys(name: str, *arguments: Any, **options: Any) -> Row:
    mine, theirs = getattr(la, name), getattr(S, name)
    return (lambda *given: mine(*given, **options), lambda *given: theirs(*given, **options), arguments)


NINE = np.arange(9.0).reshape(3, 3) - 4
COUPLED = np.array([[3.0, 2.0, 0.0], [1.0, -1.0, 0.0], [0.0, 5.0, 1.0]])
STACK = np.array([[[1.0, 2], [3, 4]], [[1, 2], [2, 1]], [[1, 3], [3, 1]]])
TIMES, LINE = np.array([0.0, 1, 2, 3]), np.array([-1, 0.2, 0.9, 2.1])
BANDS = np.array([[0.0, 0, -1, -1, -1], [0, 2, 2, 2, 2], [5, 4, 3, 2, 1], [1, 1, 1, 1, 0]])
POSITIVE_BANDS = np.array([[0.0, 0, 1, 1, 1, 1], [0, -1, -1, -1, -1, -1], [9, 8, 7, 6, 5, 4]])
STABLE = np.array([[-0.5, 0.3], [0.1, 0.2]])
HUGE = np.array([[1e150, 2e149], [3e149, 4e150]])
TINY = HUGE * 1e-300
SINE = np.array([0.0, 0.8, 0.9, 0.1, -0.8, -1.0])

EXAMPLES: Mapping[str, Row] = {
    "multi_dot": (la.multi_dot, N.multi_dot, ([STACK[0], STACK[1], STACK[2]],)),
    "matrix_power": both("matrix_power", np.array([[0.0, 1], [-1, 0]]), n=3),
    "matrix_power -3": both("matrix_power", np.array([[0.0, 1], [-1, 0]]), n=-3),
    "cholesky": both("cholesky", np.array([[1.0, 0.5], [0.5, 2.0]])),
    "cholesky upper": scipys("cholesky", np.array([[9.0, 2], [2, 7]]), lower=False),
    "cho_solve": (
        lambda a, b: la.cho_solve(la.cho_factor(a), b),
        lambda a, b: S.cho_solve(S.cho_factor(a), b),
        (np.array([[9.0, 3, 1, 5], [3, 7, 5, 1], [1, 5, 9, 2], [5, 1, 2, 6]]), np.ones(4)),
    ),
    "lu": (
        lambda a: [*la.lu(a)],
        lambda a: [*S.lu(a)],
        (np.array([[2.0, 5, 8, 7], [5, 2, 2, 8], [7, 5, 6, 6], [5, 4, 4, 8]]),),
    ),
    "qr": (
        lambda a: [abs(x) for x in la.qr(a)],
        lambda a: [abs(x) for x in N.qr(a)],
        (np.array([[0.0, 1], [1, 1], [1, 1], [2, 1]]),),
    ),
    "svdvals": scipys("svdvals", np.array([[1.0, 0], [1, 2]])),
    "svdvals zeros": scipys("svdvals", np.zeros((4, 3))),
    "eigvalsh": both("eigvalsh", np.array([[5.0, 2], [2, 8]])),
    "eigvals": both("eigvals", np.diag([-1.0, 1.0])),
    "eigh of stacks": both("eigvalsh", STACK + STACK.swapaxes(-1, -2)),
    "norm": both("norm", NINE),
    **{f"norm {k}": both("norm", NINE, ord=k) for k in ("fro", np.inf, -np.inf, 1, -1, 2, -2, "nuc")},
    **{
        f"norm {k} of a vector": both("norm", np.arange(9.0) - 4, ord=k)
        for k in (np.inf, -np.inf, 1, -1, 2, -2, 3, -3, 0)
    },
    "norm axis": both("norm", np.array([[1.0, 2, 3], [-1, 1, 4]]), ord=1, axis=1),
    "norm axes": both("norm", np.arange(8.0).reshape(2, 2, 2), axis=(1, 2)),
    **{
        f"cond {p}": both("cond", np.array([[1.0, 0, -1], [0, 1, 0], [1, 0, 1]]), p=p)
        for p in (None, "fro", np.inf, -np.inf, 1, -1, 2, -2)
    },
    "det": both("det", STACK),
    "slogdet": (lambda a: [*la.slogdet(a)], lambda a: [*N.slogdet(a)], (STACK,)),
    "slogdet of what underflows": (lambda a: [*la.slogdet(a)], lambda a: [*N.slogdet(a)], (np.eye(500) * 0.1,)),
    "matrix_rank": both("matrix_rank", np.diag([1.0, 1, 1, 0])),
    "matrix_rank of a vector": both("matrix_rank", np.zeros(4)),
    "solve": both("solve", np.array([[1.0, 2], [3, 5]]), np.array([1.0, 2])),
    "solve scipy": scipys("solve", COUPLED, np.array([2.0, 4, -1])),
    "tensorsolve": both("tensorsolve", np.eye(24).reshape(6, 4, 2, 3, 4), np.arange(24.0).reshape(6, 4)),
    "tensorinv": both("tensorinv", np.eye(24).reshape(4, 6, 8, 3), ind=2),
    "lstsq": (
        lambda x, y: [*la.lstsq(T.stack([x, T.ones(4)], 1), y)],
        lambda x, y: [*N.lstsq(np.stack([x, np.ones(4)], 1), y, None)],
        (TIMES, LINE),
    ),
    "inv": both("inv", STACK),
    "pinv": both("pinv", np.arange(54.0).reshape(9, 6) % 7),
    "solve_triangular": scipys(
        "solve_triangular",
        np.array([[3.0, 0, 0, 0], [2, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]),
        np.array([4.0, 2, 4, 2]),
        lower=True,
    ),
    "solve_banded": (
        lambda ab, b: la.solve_banded((1, 2), ab, b),
        lambda ab, b: S.solve_banded((1, 2), ab, b),
        (BANDS, np.arange(5.0)),
    ),
    "solveh_banded": scipys("solveh_banded", POSITIVE_BANDS, np.array([1.0, 2, 2, 3, 3, 3])),
    "solve_toeplitz": (
        lambda c, r, b: la.solve_toeplitz((c, r), b),
        lambda c, r, b: S.solve_toeplitz((c, r), b),
        (np.array([1.0, 3, 6, 10]), np.array([1.0, -1, -2, -3]), np.array([1.0, 2, 2, 5])),
    ),
    "solve_circulant": scipys("solve_circulant", np.array([2.0, 2, 4]), np.array([1.0, 2, 3])),
    "solve_sylvester": scipys(
        "solve_sylvester",
        np.array([[-3.0, -2, 0], [-1, -1, 3], [3, -5, -1]]),
        np.array([[1.0]]),
        np.array([[1.0], [2], [3]]),
    ),
    "solve_continuous_lyapunov": scipys("solve_continuous_lyapunov", np.array([[-2.0, 1], [0.5, -3]]), np.eye(2)),
    "solve_discrete_lyapunov": scipys("solve_discrete_lyapunov", STABLE, np.eye(2)),
    "expm of zeros": scipys("expm", np.zeros((2, 2))),
    "expm": scipys("expm", np.array([[1.0, 2], [-1, 3]])),
    "logm": scipys("logm", np.array([[1.0, 3.0], [1.0, 4.0]])),
    "sqrtm": scipys("sqrtm", np.array([[1.0, 3.0], [1.0, 4.0]])),
    "polar": (lambda a: [*la.polar(a)], lambda a: [*S.polar(a)], (np.array([[1.0, -1], [2, 4]]),)),
    "kron": both("kron", np.array([1.0, 10, 100]), np.array([5.0, 6, 7])),
    "toeplitz": scipys("toeplitz", np.array([1.0, 2, 3]), np.array([1.0, 4, 5, 6])),
    "hankel": scipys("hankel", np.array([1.0, 2, 3, 4]), np.array([4.0, 7, 7, 8, 9])),
    "circulant": scipys("circulant", np.array([1.0, 2, 3])),
    "companion": scipys("companion", np.array([1.0, -10, 31, -30])),
    "block_diag": scipys("block_diag", np.eye(2), np.arange(3.0, 9).reshape(2, 3), np.array([[7.0]])),
    "poly": both("poly", np.array([0.0, 0, 0])),
    "poly of roots": both("poly", np.array([-0.5, 0, 0.5])),
    "poly of a matrix": both("poly", np.array([[0.0, 1.0 / 3], [-0.5, 0]])),
    "roots": both("roots", np.array([1.0, -6, 11, -6])),
    "roots and zeros": both("roots", np.array([0.0, 0, 1, -3, 2, 0, 0])),
    "roots of nothing": both("roots", np.zeros(3)),
    "roots of a number": both("roots", np.array([5.0])),
    "roots_parts": (
        lambda p: [*T.roots_parts(p)],
        lambda p: [np.roots(p).real, np.roots(p).imag],
        (np.array([3.2, 2, 1]),),
    ),
    "polyfit": both("polyfit", np.arange(6.0), SINE, deg=3),
    "polyfit of columns": both("polyfit", np.arange(6.0), np.stack([SINE, SINE**2], 1), deg=2),
    "polyfit weighed": both("polyfit", np.arange(6.0), SINE, deg=1, w=np.array([1.0, 2, 3, 3, 2, 1])),
    "polyfit full": (
        lambda x, y: [*T.polyfit(x, y, 2, full=True)],
        lambda x, y: [*np.polyfit(x, y, 2, full=True)],
        (np.arange(6.0), SINE),
    ),
    **{
        f"polyfit cov {cov}": (
            lambda x, y, cov=cov: [*T.polyfit(x, y, 1, cov=cov)],
            lambda x, y, cov=cov: [*np.polyfit(x, y, 1, cov=cov)],
            (np.arange(6.0), SINE),
        )
        for cov in (True, "unscaled")
    },
    "polydiv": (
        lambda: [*T.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])],
        lambda: [*np.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])],
        (),
    ),
    "polydiv exactly": (
        lambda: [*T.polydiv([1.0, -3, 2], [1.0, -1])],
        lambda: [*np.polydiv([1.0, -3, 2], [1.0, -1])],
        (),
    ),
    "polydiv by a longer one": (
        lambda: [*T.polydiv([1.0, 2], [1.0, 2, 3])],
        lambda: [*np.polydiv([1.0, 2], [1.0, 2, 3])],
        (),
    ),
    "polyval of a fit": (
        lambda x, y: T.polyval(T.polyfit(x, y, 2), x),
        lambda x, y: np.polyval(np.polyfit(x, y, 2), x),
        (np.arange(6.0), SINE),
    ),
}
HARD: Mapping[str, Row] = {
    **{
        f"{name} of {kind}": both(name, value)
        for name in ("inv", "det", "eigvalsh", "pinv", "cond", "expm", "svdvals", "matrix_rank", "norm")
        for kind, value in {"huge": HUGE, "tiny": TINY, "one": np.array([[4.0]])}.items()
        if not (name == "expm" and kind == "huge")
    },
    **{f"{name} of nothing": both(name, np.zeros((0, 0))) for name in ("inv", "det", "eigvalsh", "expm", "eigvals")},
    **{
        f"{name} of no matrices": both(name, np.zeros((0, 3, 3)))
        for name in ("inv", "det", "eigvalsh", "expm", "pinv", "svdvals")
    },
    "slogdet of a singular one": (lambda a: [*la.slogdet(a)], lambda a: [*N.slogdet(a)], (np.ones((3, 3)),)),
    "solve of huge": both("solve", HUGE, np.array([1e150, 1.0])),
    "cholesky of tiny": both("cholesky", TINY @ np.diag([1e150, 1e150]) * np.eye(2)),
    "lstsq of no rank": (
        lambda a, b: la.lstsq(a, b)[0],
        lambda a, b: N.lstsq(a, b, None)[0],
        (np.ones((3, 2)), np.arange(3.0)),
    ),
    "sqrtm of one": scipys("sqrtm", np.array([[4.0]])),
    "logm of one": scipys("logm", np.array([[4.0]])),
    "det of NaN": both("det", np.full((2, 2), np.nan)),
}


@pytest.mark.slow
@pytest.mark.parametrize("table", [EXAMPLES, HARD], ids=["examples", "hard"])
def test_documented_examples(table: Mapping[str, Row]) -> None:
    outputs, leaves, values, wanted = list[Any](), list[Any](), list[Any](), list[Any]()
    for name, (mine, theirs, arguments) in table.items():
        first = arguments[0] if arguments else None
        own = [T.tensor("float64", (None,) * each.ndim) for each in (first if isinstance(first, list) else arguments)]
        made = mine(own) if isinstance(first, list) else mine(*own)
        leaves += own
        values += first if isinstance(first, list) else arguments
        with np.errstate(all="ignore"):
            expected = theirs(*arguments)
        parts = expected if isinstance(expected, list) else [expected]
        outputs += made if isinstance(made, list) else [made]
        wanted += [(f"{name} {place}", part) for place, part in enumerate(parts)]
    found = function(leaves, outputs, mode="interpreted")(*values)
    wrong = []
    for one, (name, expected) in zip(found, wanted, strict=True):
        scale = float(np.abs(expected).max(initial=1e-300)) if np.isfinite(expected).all() else 1.0
        if np.shape(one) != np.shape(expected) or not np.allclose(one, expected, 1e-9, 1e-12 * min(scale, 1.0), True):
            wrong.append((name, one, expected))
    assert not wrong


@pytest.mark.slow
def test_polynomials_compiled() -> None:
    p, x, y = T.dvector("p"), T.dvector("x"), T.dvector("y")
    outputs = [*T.roots_parts(p), T.poly(x), T.polyfit(x, y, 2), *T.polydiv([2.0, 3, 4], [1.0, 2])]
    compiled = function([p, x, y], outputs)
    slopes = function([p, x, y], [graphc.grad(T.roots_parts(p)[0].sum(), p), graphc.grad(T.polyfit(x, y, 1)[0], y)])
    given = np.array([0.0, 1, -6, 11, -6, 0]), np.array([1.0, 2, 4]), np.array([1.0, 3, -2])
    wanted = [np.roots(given[0]), np.zeros(4), np.poly(given[1]), np.polyfit(*given[1:], 2), [2, -1], [6]]
    for one, want in zip(compiled(*given), wanted, strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-9, atol=1e-9)
    of_p, of_y = slopes(*given)
    np.testing.assert_allclose(of_p[1:3], [-6, -1], atol=1e-9)  # the sum of the roots is -p[2] / p[1]
    apart = given[1] - given[1].mean()
    np.testing.assert_allclose(of_y, apart / (apart @ apart), atol=1e-12)


def test_misused_polynomials() -> None:
    p = T.dvector("p")
    with pytest.raises(GraphcError, match=r"roots of p.*complex roots, whose parts roots_parts gives"):
        function([p], T.roots(p), mode="interpreted")(np.array([1.0, 0, 1]))
    with pytest.raises(ShapeError, match="deg=-1"):
        T.polyfit(p, p, -1)
    with pytest.raises(GraphTypeError, match="polydiv: p .*no known number"):
        T.polydiv(p, p)
    with pytest.raises(GraphTypeError, match="roots: .* is no vector"):
        T.roots(T.dmatrix("m"))
