"""Roots and minima of functions of one number: `root_scalar`, `brentq`, `bisect`, `newton`, `minimize_scalar`.

In: a function of a number, a bracket or a guess. Out: the number, with derivatives by `args` and by what the function
takes from around it (implicit function theorem; `equations.py`).

    brentq(lambda x: x**2 - 2, 0.0, 2.0)                               1.414...
    graphc.grad(lambda a: brentq(lambda x: x**2 - a, 0.0, 9.0))(4.0)   0.25

The loops are SciPy's, step by step; Newton's takes the derivative of the function where none is given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.control.functional import while_loop
from graphc.errors import GraphValueError, RankError
from graphc.ir.at_once import all_at_once
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.ops.elementwise import cast
from graphc.scipy.optimize import driven
from graphc.scipy.optimize.equations import Function, as_float, called, solved, with_gradient
from graphc.scipy.optimize.packing import arguments
from graphc.scipy.results import Result
from graphc.startup.hooks import HOOKS

XTOL, RTOL, MAXITER = 2e-12, 8.881784197001252e-16, 100
MESSAGES = {0: "converged", 1: "convergence error", 2: "f(a) and f(b) have equal signs"}
MINIMUM = {0: "Solution found.", 1: "Maximum number of iterations was exceeded."}
INSTEAD = {
    "halley": 'of tensors, method="newton" is here',
    **dict.fromkeys(("ridder", "brenth", "toms748"), 'of tensors, method="brentq" is here'),
}


def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: Any = None,
    rtol: Any = None,
    maxiter: Any = None,
) -> Result:
    """Return a root of a function of one number, as SciPy's `root_scalar`.

    f: called as f(x, *args). method: "brentq" or "bisect", with a `bracket`, two numbers where f has different signs;
    "newton", from `x0`, with the derivative `fprime` or that of `f`; "secant", from `x0` and `x1`: native loops, which
    take SciPy's steps and have derivatives; of arrays SciPy's "ridder", "brenth", "toms748", and "halley", with both
    derivatives of `f`, too. None takes what the others ask for. xtol, rtol: the root is known to xtol + rtol * abs(x).
    Returns a result with `root`, `iterations`, `function_calls`, `converged`, `status` and `message`. The root is NaN
    where the signs are equal; where `maxiter` steps did not find it, it is the last number, whose derivatives are NaN.

        >>> root_scalar(lambda x, a: x**3 - a, args=(8.0,), bracket=(0.0, 5.0)).root.round(9)
        np.float64(2.0)
    """
    if fprime2 is not None:
        raise GraphValueError("root_scalar: fprime2 is not needed: method='halley' has it from f, of arrays")
    if method is None:
        method = "brentq" if bracket is not None else "secant" if x1 is not None else "newton"
    options = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter}
    given = {name: value for name, value in options.items() if value is not None}
    if method in ("brentq", "bisect"):
        if bracket is None:
            raise GraphValueError(f"root_scalar: method={method!r} needs a bracket")
        return _bracketed(method, f, bracket[0], bracket[1], args, **given)
    if method in ("newton", "secant"):
        if x0 is None:
            raise GraphValueError(f"root_scalar: method={method!r} needs x0")
        tol = given.pop("xtol", 1.48e-8)
        return _from_guess(f, x0, fprime if method == "newton" else None, x1, args, tol, method=method, **given)
    raise GraphValueError(f"root_scalar: method {method!r} is not here: {INSTEAD.get(method, 'brentq is')}")


def brentq(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = XTOL,
    rtol: Any = RTOL,
    maxiter: Any = MAXITER,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Return a root of f(x, *args) between `a` and `b`, where `f` has different signs, by Brent's method; NaN where the
    signs are equal. full_output: return the result of `root_scalar` too. Other arguments are as there.

        >>> brentq(lambda x: x**2 - 2, 0.0, 2.0).round(9)
        np.float64(1.414213562)
    """
    found = _bracketed("brentq", f, a, b, args, xtol, rtol, maxiter)
    return (found["root"], found) if full_output else _known(found)


def bisect(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = XTOL,
    rtol: Any = RTOL,
    maxiter: Any = MAXITER,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Return a root of f(x, *args) between `a` and `b` by bisection; arguments are as of `brentq`."""
    found = _bracketed("bisect", f, a, b, args, xtol, rtol, maxiter)
    return (found["root"], found) if full_output else _known(found)


def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: Any = 1.48e-8,
    maxiter: Any = 50,
    fprime2: Any = None,
    x1: Any = None,
    rtol: Any = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Return a root of func(x, *args) near `x0`, by Newton's method with the derivative `fprime`, or else that of
    `func`; with `x1` by the secant method. NaN where `maxiter` steps do not find it. Other arguments are as of
    `root_scalar`. For an array of guesses, `graphc.vmap` it.

        >>> newton(lambda x: x**3 - 1, 1.5).round(9)
        np.float64(1.0)
    """
    if fprime2 is not None:
        raise GraphValueError("newton: fprime2 is for Halley's method, which is not here")
    method = "newton" if x1 is None else "secant"
    found = _from_guess(func, x0, fprime, x1, args, tol, rtol, maxiter, method=method)
    return (found["root"], found) if full_output else _known(found)


def _known(found: Result) -> Node:
    """Return the root, NaN where it was not found."""
    root: Node = T.switch(T.eq(found["status"], 0), found["root"], np.nan)
    return root


def _number(by: str, name: str, value: Any) -> Node:
    node = as_float(value)
    if node.ndim:
        raise RankError(f"{by}: {name} is a number, not an array of type {node.type}: graphc.vmap takes many")
    return node


def _result(f: Function, method: str, x: Node, status: Node, iterations: Node, calls: Node) -> Result:
    found = Result({}, MESSAGES)
    found["root"] = solved(f, x, T.eq(status, 0))
    found["iterations"], found["function_calls"] = iterations, calls
    found["converged"], found["status"] = T.eq(status, 0), status
    return found


def _bracketed(
    method: str, f: Callable[..., Any], a: Any, b: Any, args: Any, xtol: Any = XTOL, rtol: Any = RTOL,
    maxiter: Any = MAXITER,
) -> Result:  # fmt: skip
    value = called(method, f, arguments(args), 0)
    low, high = _number(method, "a", a), _number(method, "b", b)
    low, high = low + 0 * high, high + 0 * low  # of one dtype
    at_low, at_high = value(low), value(high)
    differ = T.lt(T.sgn(at_low) * T.sgn(at_high), 0)
    search = _brent if method == "brentq" else _halves
    x, done, count = search(value, (low, at_low), (high, at_high), differ, (xtol, rtol, maxiter))
    x = T.switch(T.eq(at_low, 0), low, T.switch(T.eq(at_high, 0), high, x))
    exact = T.eq(at_low, 0) | T.eq(at_high, 0)
    status = T.switch(exact | (differ & done), 0, T.switch(differ, 1, 2))
    x = T.switch(exact | differ, x, np.nan)
    return _result(value, method, x, cast(status, "int64"), count, count + 2)


Point = tuple[Node, Node]
"""A number and the value of the function there."""


def _brent(f: Function, first: Point, second: Point, go: Node, limits: tuple[Any, Any, Any]) -> tuple[Node, Node, Node]:
    """Return Brent's root, whether it was found, the number of steps (Brent, Algorithms for Minimization without
    Derivatives, 1973, chapter 4, as SciPy has it)."""
    xtol, rtol, maxiter = limits
    zero = T.zeros_like(first[0])

    def prepared(state: tuple[Node, ...]) -> tuple[Node, ...]:
        """Put the bracket around the best number."""
        xpre, fpre, xcur, fcur, xblk, fblk, spre, scur = state
        turns = T.lt(T.sgn(fpre) * T.sgn(fcur), 0)
        xblk, fblk = T.switch(turns, xpre, xblk), T.switch(turns, fpre, fblk)
        spre, scur = T.switch(turns, xcur - xpre, spre), T.switch(turns, xcur - xpre, scur)
        swap = abs(fblk) < abs(fcur)
        xpre, xcur, xblk = T.switch(swap, xcur, xpre), T.switch(swap, xblk, xcur), T.switch(swap, xcur, xblk)
        fpre, fcur, fblk = T.switch(swap, fcur, fpre), T.switch(swap, fblk, fcur), T.switch(swap, fcur, fblk)
        return xpre, fpre, xcur, fcur, xblk, fblk, spre, scur

    def is_done(state: tuple[Node, ...]) -> Node:
        _, _, xcur, fcur, xblk, *_ = state
        done: Node = T.eq(fcur, 0) | (abs((xblk - xcur) / 2) < (xtol + rtol * abs(xcur)) / 2)
        return done

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        xpre, fpre, xcur, fcur, xblk, fblk, spre, scur = state[:8]
        delta, sbis = (xtol + rtol * abs(xcur)) / 2, (xblk - xcur) / 2
        dpre, dblk = (fpre - fcur) / (xpre - xcur), (fblk - fcur) / (xblk - xcur)
        secant = -fcur * (xcur - xpre) / (fcur - fpre)
        inverse = -fcur * (fblk * dblk - fpre * dpre) / (dblk * dpre * (fblk - fpre))
        trial = T.switch(T.eq(xpre, xblk), secant, inverse)
        short = 2 * abs(trial) < T.minimum(abs(spre), 3 * abs(sbis) - delta)
        taken = (abs(spre) > delta) & (abs(fcur) < abs(fpre)) & short
        spre, scur = T.switch(taken, scur, sbis), T.switch(taken, trial, sbis)
        move = T.switch(abs(scur) > delta, scur, T.switch(sbis > 0, delta, -delta))
        after = xcur + move
        new = prepared((xcur, fcur, after, f(after), xblk, fblk, spre, scur))
        return (*new, state[8] + 1)

    begin = prepared((*first, *second, zero, zero, zero, zero))
    found = while_loop(
        lambda state: go & ~is_done(state) & (state[8] < maxiter), step, (*begin, T.constant(np.int64(0)))
    )
    return found[2], is_done(found), found[8]


def _halves(
    f: Function, first: Point, second: Point, go: Node, limits: tuple[Any, Any, Any]
) -> tuple[Node, Node, Node]:
    """Return the root by bisection, whether it was found, the number of steps."""
    xtol, rtol, maxiter = limits
    low, at_low = first

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        begin, width, _, count, _ = state
        half = width / 2
        middle = begin + half
        value = f(middle)
        begin = T.switch(T.sgn(value) * T.sgn(at_low) >= 0, middle, begin)
        return begin, half, middle, count + 1, T.eq(value, 0) | (abs(half) < xtol + rtol * abs(middle))

    start = (low, second[0] - low, low, T.constant(np.int64(0)), T.constant(False))
    found = while_loop(lambda state: go & ~state[4] & (state[3] < maxiter), step, start)
    return found[2], found[4], found[3]


def _from_guess(
    f: Callable[..., Any], x0: Any, fprime: Any, x1: Any, args: Any, tol: Any, rtol: Any = 0.0, maxiter: Any = 50,
    method: str = "newton",
) -> Result:  # fmt: skip
    extra = arguments(args)
    value, guess = called(method, f, extra, 0), _number(method, "x0", x0)
    both = with_gradient(value)
    given = called(method, fprime, extra, 0) if callable(fprime) else None
    near = guess * (1 + 1e-4) + T.switch(guess >= 0, 1e-4, -1e-4) if x1 is None else _number(method, "x1", x1)
    start = (guess, value(guess)) if method == "secant" else (guess, guess)
    current = near if method == "secant" else guess

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        before, at_before, x, count, _ = state
        if method == "secant":
            at = value(x)
            by = (at - at_before) / (x - before)
        else:
            at, by = (value(x), given(x)) if given is not None else both(x)
        after = T.switch(T.eq(at, 0), x, x - at / by)
        close = T.eq(at, 0) | (abs(after - x) <= tol + rtol * abs(after))
        return x, cast(at, x.type.dtype), after, count + 1, close

    state = (*start, current, T.constant(np.int64(0)), T.constant(False))
    found = while_loop(lambda state: ~state[4] & (state[3] < maxiter) & ~T.isnan(state[2]), step, state)
    x, count, close = found[2], found[3], found[4]
    status = cast(T.switch(close & ~T.isnan(x), 0, 1), "int64")
    return _result(value, method, x, status, count, count + (1 if method == "secant" else count))


# --- minima -----------------------------------------------------------------------------------------------------------


def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: str | None = None,
    tol: Any = None,
    options: Any = None,
) -> Result:
    """Return the minimum of a function of one number, as SciPy's `minimize_scalar`: between `bounds` by Brent's method,
    in a native loop that has derivatives and takes SciPy's steps; of arrays by SciPy's "brent" and "golden" too, with
    a `bracket` or without.

    tol: the error of the place (1e-5). options: `maxiter` (500), `xatol`. Returns a result with `x`, `fun`, `nfev`,
    `nit`, `status`, `success` and `message`. The derivative of `x` is that of the root of the derivative of `fun`, for
    a minimum between the bounds. Of tensors raises GraphValueError without bounds.

        >>> minimize_scalar(lambda x: (x - 2) ** 2, bounds=(0.0, 5.0)).x.round(6)
        np.float64(2.0)
    """
    if bracket is not None or method not in (None, "bounded") or bounds is None:
        raise GraphValueError(
            'minimize_scalar: of tensors, method="bounded" with bounds is here; else minimize of a vector of one'
        )
    known = options or {}
    xatol = known.get("xatol", 1e-5 if tol is None else tol)
    value = called("minimize_scalar", fun, arguments(args), 0)
    low, high = (_number("minimize_scalar", "a bound", each) for each in (bounds[0], bounds[1]))
    x, _, count, done = _golden(value, low, high, xatol, known.get("maxiter", 500))
    both = with_gradient(value)
    x = solved(lambda x: both(x)[1], x, done)
    found = Result({}, MINIMUM)
    found["x"], found["fun"], found["nfev"], found["nit"] = x, value(x), count, count
    found["status"] = cast(T.switch(done, 0, 1), "int64")
    found["success"] = done
    return found


def _golden(f: Function, low: Node, high: Node, xatol: Any, most: Any) -> tuple[Node, Node, Node, Node]:
    """Return the place, the value, the number of calls, whether it was found (Brent 1973, chapter 5, as SciPy's
    `fminbound`)."""
    golden, root = 0.5 * (3.0 - 5.0**0.5), 1.4901161193847656e-08

    def limits(state: tuple[Node, ...]) -> tuple[Node, Node, Node]:
        a, b, x = state[0], state[1], state[4]
        near = root * abs(x) + xatol / 3
        return 0.5 * (a + b), near, 2 * near

    def is_done(state: tuple[Node, ...]) -> Node:
        middle, _, wide = limits(state)
        return abs(state[4] - middle) <= wide - 0.5 * (state[1] - state[0])

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        a, b, v, w, x, at_v, at_w, at_x, rat, e, count = state
        middle, near, wide = limits(state)
        r, q = (x - w) * (at_x - at_v), (x - v) * (at_x - at_w)
        p, q = (x - v) * q - (x - w) * r, 2 * (q - r)
        p, q = T.switch(q > 0, -p, p), abs(q)
        fits = (abs(e) > near) & (abs(p) < abs(0.5 * q * e)) & (p > q * (a - x)) & (p < q * (b - x))
        parabola = p / T.switch(T.eq(q, 0), 1.0, q)
        place = x + parabola
        edge = ((place - a) < wide) | ((b - place) < wide)
        sign = T.switch(middle >= x, 1.0, -1.0)
        parabola = T.switch(edge, near * sign, parabola)
        side = T.switch(x >= middle, a - x, b - x)
        e, rat = T.switch(fits, rat, side), T.switch(fits, parabola, golden * side)
        place = x + T.switch(rat >= 0, 1.0, -1.0) * T.maximum(abs(rat), near)
        at = f(place)
        better = at <= at_x
        a = T.switch(better, T.switch(place >= x, x, a), T.switch(place < x, place, a))
        b = T.switch(better, T.switch(place >= x, b, x), T.switch(place < x, b, place))
        second = (at <= at_w) | T.eq(w, x)
        third = (at <= at_v) | T.eq(v, x) | T.eq(v, w)
        keeps = T.switch(second, w, T.switch(third, place, v)), T.switch(second, at_w, T.switch(third, at, at_v))
        v, at_v = T.switch(better, w, keeps[0]), T.switch(better, at_w, keeps[1])
        w, at_w = (
            T.switch(better, x, T.switch(second, place, w)), T.switch(better, at_x, T.switch(second, at, at_w))
        )  # fmt: skip
        return (
            a, b, v, w, T.switch(better, place, x), at_v, at_w, T.switch(better, at, at_x), rat, e, count + 1,
        )  # fmt: skip

    begin = low + golden * (high - low)
    at, zero = f(begin), T.zeros_like(begin)
    start = (low + zero, high + zero, begin, begin, begin, at, at, at, zero, zero, T.constant(np.int64(1)))
    found = while_loop(lambda state: ~is_done(state) & (state[10] < most), step, start)
    return found[4], found[7], found[10], is_done(found)


__all__ = ["bisect", "brentq", "minimize_scalar", "newton", "root_scalar"]

for own, of_arrays in ((minimize_scalar, driven.minimize_scalar), (root_scalar, driven.root_scalar)):
    vars(own)["of_arrays"] = partial(of_arrays, own, HOOKS.plain_calls(own))
all_at_once(globals())
explain_all(globals())
