"""Systems of equations: `root`, `fixed_point`.

In: a function from a vector to a vector as long, a guess. Out: SciPy's result, whose `x` has derivatives by `args` and
by what the function takes from around it (`equations.py`).

    root(lambda x: [x[0] + x[1] - 3, x[0] * x[1] - 2], [0.0, 4.0]).x       array([1., 2.])
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
from graphc.scipy.optimize import driven
from graphc.scipy.optimize.equations import Function, as_float, called, packed, slope, solved
from graphc.scipy.optimize.packing import arguments
from graphc.scipy.results import Result
from graphc.tensor.elementary import stop_gradient
from graphc.tracing.programs import run

CONVERGED, TOO_MANY, STUCK = 1, 2, 4
MESSAGES = {
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
    found = Result({"x": restored(x)}, MESSAGES)
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
    step: Node = T.switch(length(newton) <= radius, newton, bent)
    return step


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


__all__ = ["fixed_point", "root"]

vars(root)["of_arrays"] = partial(driven.root, root)
all_at_once(globals())
explain_all(globals())
