"""Roots: `root_scalar`, `brentq`, `bisect`, `newton` of a function of one number, `root`, `fixed_point` of systems.

In: a function of a number, a bracket or a guess; or one from a vector to a vector as long, a guess. Out: SciPy's
results, with derivatives by `args` and by what the function takes from around it (`equations.py`).

    brentq(lambda x: x**2 - 2, 0.0, 2.0)                                   1.414...
    root(lambda x: [x[0] + x[1] - 3, x[0] * x[1] - 2], [0.0, 4.0]).x       array([1., 2.])

The loops of one number are SciPy's, step by step; Newton's takes the derivative of the function where none is given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.control.functional import while_loop
from graphc.errors import GraphValueError
from graphc.ir.at_once import all_at_once
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.ops.elementwise import cast
from graphc.scipy.named import Result
from graphc.scipy.optimize import driven
from graphc.scipy.optimize.equations import Function, as_float, called, packed, scalar, slope, solved, with_gradient
from graphc.scipy.optimize.parameters import arguments
from graphc.startup.hooks import HOOKS
from graphc.tensor.elementary import stop_gradient
from graphc.tracing.programs import run

XTOL, RTOL, MAXITER = 2e-12, 8.881784197001252e-16, 100
MESSAGES = {0: "converged", 1: "convergence error", 2: "f(a) and f(b) have equal signs"}
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
    Returns a result with `root`, `iterations`, `function_calls`, `converged`, `status` and `message`. Where the signs
    are equal, this is ValueError of arrays, and of tensors the root NaN; where `maxiter` steps did not find it, it is
    the last number, whose derivatives are NaN.

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
    """Return a root of f(x, *args) between `a` and `b`, where `f` has different signs, by Brent's method. full_output:
    return the result of `root_scalar` too. disp: of arrays, raise RuntimeError where `maxiter` steps do not find it.
    Other arguments are as of `root_scalar`. Where the signs are equal, this is ValueError of arrays, NaN of tensors.

        >>> brentq(lambda x: x**2 - 2, 0.0, 2.0).round(9)
        np.float64(1.414213562)
    """
    return _root_of(_bracketed("brentq", f, a, b, args, xtol, rtol, maxiter), full_output)


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
    return _root_of(_bracketed("bisect", f, a, b, args, xtol, rtol, maxiter), full_output)


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
    `func`; with `x1` by the secant method. Where `maxiter` steps do not find it, this is RuntimeError of arrays with
    `disp`, else NaN. Other arguments are as of `root_scalar`. For an array of guesses, `graphc.vmap` it.

        >>> newton(lambda x: x**3 - 1, 1.5).round(9)
        np.float64(1.0)
    """
    if fprime2 is not None:
        raise GraphValueError("newton: fprime2 is for Halley's method, which is not here")
    method = "newton" if x1 is None else "secant"
    found = _from_guess(func, x0, fprime, x1, args, tol, rtol, maxiter, method=method)
    return _root_of(found, full_output)


def _root_of(found: Result, full_output: bool) -> Any:
    """Return the root, NaN where it was not found; or the root and the result."""
    if full_output:
        return found["root"], found
    return T.switch(T.eq(found["status"], 0), found["root"], np.nan)


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
    low, high = scalar(method, "a", a), scalar(method, "b", b)
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
    value, guess = called(method, f, extra, 0), scalar(method, "x0", x0)
    both = with_gradient(value)
    given = called(method, fprime, extra, 0) if callable(fprime) else None
    near = guess * (1 + 1e-4) + T.switch(guess >= 0, 1e-4, -1e-4) if x1 is None else scalar(method, "x1", x1)
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


# --- systems of equations ---------------------------------------------------------------------------------------------

CONVERGED, TOO_MANY, STUCK = 1, 2, 4
SYSTEM_MESSAGES = {
    CONVERGED: "The solution converged.",
    TOO_MANY: "The number of calls to function has reached maxfev.",
    STUCK: "The iteration is not making good progress.",
}


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
    progress: bool = False,
) -> Result:
    """Return a root of fun(x, *args), as many values as `x0` has elements, as SciPy's `root`: of arrays by SciPy's
    algorithm, with exact Jacobians; in a traced function, or where an argument is a tensor, by a native loop that has
    derivatives.

    x0: a vector, or a tree, as for `minimize`. fun: returns an array, or a tree of arrays. method: one of SciPy's; of
    tensors "hybr", Powell's method: the Jacobian, exact at each step, within a trust region. jac: a function that
    returns the Jacobian; None for the derivative of `fun`. tol: the relative error of `x` (1.49e-8). callback: called
    with the tree and the values, by methods without a Jacobian. options: SciPy's; of tensors `xtol`, `maxfev`.
    progress: write a line of text to stderr. Returns a result with `x`, `fun`, `nfev`, `njev`, `status` (1: converged),
    `success` and `message`; of arrays `scipy` too. Of tensors, derivatives of `x` are NaN where it has not converged.
    Raises ShapeError where `fun` returns another number of values than `x0` has, ValueError for an unknown method.

        >>> found = root(lambda x, a: [x[0] ** 2 - a, x[1] - x[0]], [1.0, 1.0], args=(4.0,))
        >>> found.x.round(9), found.message
        (array([2., 2.]), 'The solution converged.')
    """
    if method != "hybr":
        raise GraphValueError(
            f'root: of tensors, method {method!r} is not here: method="hybr" is, and optimize.least_squares is '
            "Levenberg's and Marquardt's"
        )
    if callback is not None or progress:
        raise GraphValueError("root: of tensors, a callback is not here: graphc.debug.callback in fun is called")
    known, extra = options or {}, arguments(args)
    guess, restored = packed(x0)
    value = called("root", fun, extra, 1, restored)
    xtol = known.get("xtol", 1.49012e-08 if tol is None else tol)
    most = known.get("maxfev", 100 * (guess.shape[0] + 1))
    slopes = called("root", jac, extra, 2, restored) if callable(jac) else lambda x: slope(value, x)
    x, status, calls, jacobians = _trusted(value, slopes, guess, xtol, most)
    x = solved(value, x, T.eq(status, CONVERGED))
    found = Result({"x": restored(x)}, SYSTEM_MESSAGES)
    found["fun"], found["nfev"], found["njev"] = value(x), calls, jacobians
    found["status"], found["success"] = status, T.eq(status, CONVERGED)
    return found


def length(x: Node) -> Node:
    """Return the Euclidean norm, which has no derivative here."""
    return T.sqrt(T.sum(x * x))


def _trusted(f: Function, slopes: Function, guess: Node, xtol: Any, most: Any) -> tuple[Node, Node, Node, Node]:
    """Return the root, the status, the numbers of calls of `f` and of its Jacobian: Powell's dogleg (Nocedal and
    Wright, Numerical Optimization, 4.1 and 11.2)."""
    kind = guess.type.dtype
    tiny = np.finfo(kind).tiny

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        x, value, radius, _, calls, count = state
        matrix = slopes(x)
        newton = T.linalg.solve(matrix, -value, on_error="nan")
        gradient = T.dot(matrix.T, value)
        size = length(gradient)
        along = T.dot(matrix, gradient)
        steepest = -gradient * (size * size / T.maximum(T.sum(along * along), tiny))
        singular = ~T.all(abs(newton) < np.inf)
        newton = T.switch(singular, steepest, newton)
        move = _dogleg(newton, steepest, radius)
        after = x + move
        at = f(after)
        predicted = T.sum(value * value) - T.sum((value + T.dot(matrix, move)) ** 2)
        gained = (T.sum(value * value) - T.sum(at * at)) / T.maximum(predicted, tiny)
        gained = T.switch(T.isnan(gained), -1.0, gained)
        far = length(move)
        radius = T.switch(gained < 0.25, far / 4, T.switch(gained > 0.75, T.maximum(radius, 2 * far), radius))
        taken = gained > 1e-4
        x, value = T.switch(taken, after, x), T.switch(taken, at, value)
        near = xtol * T.maximum(length(x), xtol)
        done = T.eq(T.sum(value * value), 0) | (~singular & (length(newton) <= near))
        stuck = (radius <= near * np.finfo(kind).eps) | T.eq(size, 0)
        status = T.switch(done, CONVERGED, T.switch(stuck, STUCK, T.switch(calls + 1 >= most, TOO_MANY, 0)))
        return x, value, cast(radius, kind), cast(status, "int64"), calls + 1, count + 1

    at, zero = f(guess), T.constant(np.int64(0))
    there = T.eq(T.sum(at * at), 0)
    radius = 100 * T.switch(T.eq(length(guess), 0), 1.0, length(guess))
    start = (guess, at, cast(radius, kind), cast(T.switch(there, CONVERGED, 0), "int64"), zero + 1, zero)
    x, _, _, status, calls, count = map(stop_gradient, while_loop(lambda state: T.eq(state[3], 0), step, start))
    return x, status, calls, count


def _dogleg(newton: Node, steepest: Node, radius: Node) -> Node:
    """Return the step to the end of the path from 0 by `steepest` to `newton`, or to where it leaves the region."""
    rest = newton - steepest
    a, b = T.sum(rest * rest), 2 * T.sum(steepest * rest)
    c = T.sum(steepest * steepest) - radius * radius
    part = (-b + T.sqrt(T.maximum(b * b - 4 * a * c, 0))) / T.switch(a > 0, 2 * a, 1.0)
    short = length(steepest)
    outside = short >= radius
    bent = T.switch(outside, steepest * (radius / T.switch(outside, short, 1.0)), steepest + part * rest)
    return T.switch(length(newton) <= radius, newton, bent)


def fixed_point(
    func: Callable[..., Any], x0: Any, args: Any = (), xtol: Any = 1e-8, maxiter: Any = 500, method: str = "del2"
) -> Node:
    """Return x with func(x, *args) = x, as SciPy's `fixed_point`; NaN where `maxiter` steps do not find it.

    func: a function from an array to one of its shape. x0: a number or a vector. method: "del2", with Steffensen's
    acceleration, or "iteration".

        >>> fixed_point(lambda x: jnp.cos(x), 1.0).round(6)
        np.float64(0.739085)
    """
    if method not in ("del2", "iteration"):
        raise GraphValueError(f"fixed_point: method is 'del2' or 'iteration', not {method!r}")
    guess = as_float(x0)
    extra = arguments(args)

    def f(x: Node) -> Node:
        return cast(as_float(run("fixed_point", func, [x, *extra])), x.type.dtype)

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        x, count, _ = state
        once = f(x)
        after = once
        if method == "del2":
            twice = f(once)
            bend = twice - 2 * once + x
            flat = T.eq(bend, 0)
            after = T.switch(flat, twice, x - (once - x) ** 2 / T.switch(flat, 1.0, bend))
        zero = T.eq(x, 0)
        error = T.switch(zero, after, (after - x) / T.switch(zero, 1.0, x))
        return after, count + 1, T.all(abs(error) < xtol)

    start = (guess, T.constant(np.int64(0)), T.constant(False))
    x, _, done = while_loop(lambda state: ~state[2] & (state[1] < maxiter), step, start)
    return T.switch(done, solved(lambda x: x - f(x), x, done), np.nan)


__all__ = ["bisect", "brentq", "fixed_point", "newton", "root", "root_scalar"]

vars(root_scalar)["of_arrays"] = partial(driven.root_scalar, root_scalar, HOOKS.plain_calls(root_scalar))
vars(root)["of_arrays"] = partial(driven.root, root)
for _search in (bisect, brentq, newton):
    vars(_search)["of_arrays"] = driven.root_of_number(_search, HOOKS.plain_calls(_search))
all_at_once(globals())
explain_all(globals())
