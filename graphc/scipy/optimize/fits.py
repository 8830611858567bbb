"""Least squares: `least_squares`, `curve_fit`.

In: a function from a vector to residuals, a guess; or a model, data. Out: SciPy's results, whose parameters have
derivatives by the data, by `args` and by what the function takes from around it: those of the root of the gradient
(`equations.py`).

    popt, pcov = curve_fit(lambda x, a, b: a * jnp.exp(-b * x), x, y)
    graphc.jacobian(lambda y: curve_fit(model, x, y)[0])(y)          how each datum moves the parameters

The method is Levenberg's and Marquardt's with the exact Jacobian: a step solves (J'J + m D) p = -J'r, where m follows
how well the linear model told the decrease (Nielsen, Damping parameter in Marquardt's method, 1999).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.autodiff import pulled_back
from graphc.control.functional import while_loop
from graphc.errors import GraphValueError
from graphc.ir.at_once import all_at_once
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.ir.walk import substitute
from graphc.ops.elementwise import cast
from graphc.scipy.named import Result
from graphc.scipy.optimize import driven
from graphc.scipy.optimize.driven import parameters_of
from graphc.scipy.optimize.equations import (
    Function,
    TracedParameters,
    as_float,
    called,
    clipped,
    slope,
    solved,
    stand_in,
)
from graphc.scipy.optimize.parameters import Names, arguments
from graphc.tensor.elementary import stop_gradient
from graphc.tracing.programs import run

TOO_MANY, GRADIENT, VALUE, STEP = 0, 1, 2, 3
MESSAGES = {
    TOO_MANY: "The maximum number of function evaluations is exceeded.",
    GRADIENT: "`gtol` termination condition is satisfied.",
    VALUE: "`ftol` termination condition is satisfied.",
    STEP: "`xtol` termination condition is satisfied.",
}


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = None,
    method: str | None = None,
    ftol: Any = 1e-8,
    xtol: Any = 1e-8,
    gtol: Any = 1e-8,
    loss: Any = "linear",
    max_nfev: Any = None,
    args: Any = (),
    *,
    callback: Any = None,
    progress: bool = False,
    **options: Any,
) -> Result:
    """Return x for which half the sum of squares of fun(x, *args) is least, as SciPy's `least_squares`: of arrays by
    SciPy's algorithm, with the exact Jacobian; in a traced function, or where an argument is a tensor, by a native loop
    that has derivatives.

    fun: returns residuals, an array or a tree of arrays. x0: a vector, or a tree, as for `minimize`. jac: a function
    that returns the Jacobian; text, as SciPy has it, for the derivative of `fun`. method: "trf", "dogbox" or "lm"; None
    for "lm" where it can, which is without bounds, callback and other losses. ftol, xtol, gtol: the relative change of
    the cost, that of `x`, and the largest element of the gradient, one of which ends the search. max_nfev: 100 for each
    element of `x0`. bounds: by name or for each element, as for `minimize`; or (low, high), of which each is a number,
    a vector or like `x0`. loss, and options (`f_scale`, `x_scale`, which may be like `x0`, `tr_solver`, `verbose`, …):
    as SciPy has them. callback: called with the tree at each step; True ends the search. progress: write a line of text
    to stderr.

    Returns a result with `x`, like `x0`; `cost`, `fun`, `jac`, `grad`, `optimality`, `nfev`, `njev`, `status` (0:
    `max_nfev` was reached; 1, 2, 3: by gtol, ftol, xtol), `success` and `message`; of arrays `scipy`, SciPy's own, and
    `covariance`, by name: the inverse of J'J times the sum of squares over the degrees of freedom that are left. Of
    tensors, derivatives of `x` are by bounds too, NaN where it has not succeeded; another loss or method raises
    GraphValueError.

        >>> least_squares(lambda x: [10 * (x[1] - x[0] ** 2), 1 - x[0]], [-1.2, 1.0]).x.round(6)
        array([1., 1.])
    """
    if loss != "linear" or callback is not None or progress or options:
        raise GraphValueError(
            "least_squares: of tensors, robust losses, a callback and options are not here: write the loss in fun"
        )
    if method not in (None, "lm", "trf") or (method == "lm" and bounds is not None):
        raise GraphValueError(f'least_squares: of tensors, method {method!r} is not here: "lm" is, with bounds "trf"')
    extra, x = arguments(args), TracedParameters("least_squares", x0)
    residuals = called("least_squares", fun, extra, 1, x.restored)
    slopes = called("least_squares", jac, extra, 2, x.restored) if callable(jac) else lambda x: slope(residuals, x)
    most = 100 * x.vector.shape[0] if max_nfev is None else max_nfev
    found = _fitted(residuals, slopes, x.vector, x.ends(bounds), (ftol, xtol, gtol), most)
    found["x"] = x.restored(found["x"])
    return found


Ends = tuple[Node, Node] | None
"""The lower and the upper bounds of a vector."""


def _fitted(
    residuals: Function, slopes: Function, guess: Node, ends: Ends, tolerances: tuple[Any, Any, Any], most: Any
) -> Result:
    x, status, calls, jacobians = _marquardt(residuals, slopes, guess, ends, tolerances, most)

    def gradient(x: Node) -> Node:
        own = stand_in(x)
        value = residuals(own)
        found: Node = substitute(pulled_back({value: value}, [own]), {own: x})[0]
        return found if ends is None else x - clipped(x - found, *ends)

    found = Result({}, MESSAGES)
    found["x"] = solved(gradient, x, status > 0)
    found["fun"], found["jac"] = residuals(found["x"]), slopes(found["x"])
    found["cost"] = T.sum(found["fun"] * found["fun"]) / 2
    found["grad"] = T.dot(found["jac"].T, found["fun"])
    found["optimality"] = T.max(abs(found["grad"]))
    found["nfev"], found["njev"] = calls, jacobians
    found["status"], found["success"] = status, status > 0
    return found


def _marquardt(
    residuals: Function, slopes: Function, guess: Node, ends: Ends, tolerances: tuple[Any, Any, Any], most: Any
) -> tuple[Node, Node, Node, Node]:
    """Return the solution, the status, the numbers of calls of the function and of its Jacobian. What is at a bound and
    would leave is held, and a step ends on the bounds that it would cross (see minima.py)."""
    ftol, xtol, gtol = tolerances
    kind = guess.type.dtype
    tiny = np.finfo(kind).tiny

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        x, value, scale, damping, growth, _, calls, count = state
        matrix = slopes(x)
        gradient, square = T.dot(matrix.T, value), T.dot(matrix.T, matrix)
        diagonal = T.diagonal(square)
        scale = T.switch(diagonal > 0, diagonal, T.maximum(scale, tiny))
        damped = square + T.diag(damping * scale)
        if ends is None:
            move = T.linalg.solve(damped, -gradient, on_error="nan")
            after, top = x + move, T.max(abs(gradient))
            predicted = T.sum(move * (damping * scale * move - gradient)) / 2
        else:
            free = cast(~(((x <= ends[0]) & (gradient > 0)) | ((x >= ends[1]) & (gradient < 0))), kind)
            within = damped * free * free[:, None] + T.diag(1 - free)
            after = clipped(x + T.linalg.solve(within, -gradient * free, on_error="nan"), *ends)
            move, top = after - x, T.max(abs(x - clipped(x - gradient, *ends)))
            predicted = -T.sum(gradient * move) - T.sum(T.dot(matrix, move) ** 2) / 2
        at = residuals(after)
        cost, cost_after = T.sum(value * value) / 2, T.sum(at * at) / 2
        actual = cost - cost_after
        gain = actual / T.maximum(predicted, tiny)
        taken = (gain > 0) & (actual >= 0)
        shrink = T.maximum(1 / 3, 1 - (2 * gain - 1) ** 3)
        damping, growth = (
            T.switch(taken, damping * shrink, damping * growth), T.switch(taken, 2.0, 2 * growth)
        )  # fmt: skip
        size = T.sqrt(T.sum(x * x))
        small = T.sqrt(T.sum(move * move)) < xtol * (xtol + size)
        flat = (abs(actual) <= ftol * cost) & (predicted <= ftol * cost) & ~T.isnan(actual)
        status = T.switch(top < gtol, GRADIENT, T.switch(flat, VALUE, T.switch(small, STEP, -1)))
        status = T.switch(T.lt(status, 0) & (calls + 1 >= most), TOO_MANY, status)
        x, value = T.switch(taken, after, x), T.switch(taken, at, value)
        more = cast(damping, kind), cast(growth, kind), cast(status, "int64")
        return x, value, cast(scale, kind), *more, calls + 1, count + 1

    guess = guess if ends is None else clipped(guess, *ends)
    at, zero, one = residuals(guess), T.constant(np.int64(0)), T.ones((), dtype=kind)
    start = (guess, at, T.zeros_like(guess), 1e-3 * one, 2 * one, zero - 1, zero + 1, zero)
    x, _, _, _, _, status, calls, count = map(stop_gradient, while_loop(lambda state: T.eq(state[5], -1), step, start))
    return x, status, calls, count


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool = True,
    bounds: Any = None,
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    ftol: Any = 1e-8,
    xtol: Any = 1e-8,
    gtol: Any = 1e-8,
    maxfev: Any = None,
    progress: bool = False,
    **options: Any,
) -> tuple[Any, Any]:
    """Return the parameters that fit a model to data by least squares, and their covariance, as SciPy's `curve_fit`: of
    arrays by SciPy's algorithm, with the exact Jacobian; in a traced function, or where an argument is a tensor, by a
    native loop that has derivatives.

    f: called as f(xdata, *parameters); returns an array like `ydata`. p0: the guess; None for ones, as many as `f` has
    parameters; a dict for f(xdata, **parameters), whose parameters may be arrays: then the first result is such a dict,
    the second a `Covariance`, by name. bounds: by the names of the parameters, {"b": (0, None)}, or SciPy's (low,
    high). sigma: the standard deviations of the data, or their covariance. absolute_sigma: `sigma` is taken as it is;
    else the covariance is scaled so that the residuals fit it. method: "lm", "trf" or "dogbox"; None for "lm" without
    bounds. jac: a function called as `f` that returns the Jacobian. full_output, maxfev (200 for each parameter) and
    options: as SciPy has them. progress: write a line of text to stderr.

    Of arrays raises RuntimeError where no minimum is found, as SciPy does. Of tensors both results are NaN there, and
    jac, a dict as p0, `full_output` and other methods than "lm" and "trf" raise GraphValueError.

        >>> x = np.linspace(0, 2, 9)
        >>> curve_fit(lambda x, a, b: a * jnp.exp(-b * x), x, 3 * np.exp(-0.5 * x))[0].round(6)
        array([3. , 0.5])
    """
    if method not in (None, "lm", "trf") or (method == "lm" and bounds is not None):
        raise GraphValueError(f'curve_fit: of tensors, method {method!r} is not here: "lm" is, with bounds "trf"')
    if callable(jac) or full_output or progress or options:
        raise GraphValueError("curve_fit: of tensors, jac, full_output, progress and options are not here")
    if isinstance(p0, dict):
        raise GraphValueError("curve_fit: of tensors, p0 is a vector: see least_squares for a tree")
    is_array = hasattr(xdata, "__array__") or isinstance(xdata, Node | list | tuple)
    data, target = as_float(xdata) if is_array else xdata, as_float(ydata)
    x = TracedParameters("curve_fit", np.ones(len(parameters_of(f))) if p0 is None else p0)
    guess = x.vector
    count = guess.type.shape[0]
    if not isinstance(count, int):
        count = len(parameters_of(f))
    weight = _weights(sigma)

    def residuals(p: Node) -> Node:
        made = cast(as_float(run("curve_fit", f, [data, *(p[place] for place in range(count))])), p.type.dtype)
        return weight(T.flatten(made - target))

    most = 200 * guess.shape[0] if maxfev is None else maxfev
    ends = x.ends(_in_order(f, bounds) if isinstance(bounds, dict) else bounds)
    found = _fitted(residuals, lambda p: slope(residuals, p), guess, ends, (ftol, xtol, gtol), most)
    known, matrix = found["success"], found["jac"]
    spread = T.linalg.inv(T.dot(matrix.T, matrix))
    if not absolute_sigma:
        rest = T.flatten(target).shape[0] - guess.shape[0]
        spread = T.switch(rest > 0, spread * (2 * found["cost"] / T.maximum(rest, 1)), np.inf)
    return T.switch(known, found["x"], np.nan), T.switch(known, spread, np.nan)


def _in_order(f: Callable[..., Any], bounds: dict[str, Any]) -> list[Any]:
    """Return a pair for each parameter. Raises GraphValueError for a name that no parameter has."""
    names = parameters_of(f)
    for _ in Names("curve_fit", names).by_name("bounds", bounds):
        pass
    return [bounds.get(name, (None, None)) for name in names]


def _weights(sigma: Any) -> Callable[[Node], Node]:
    """Return a function that weighs residuals."""
    if sigma is None:
        return lambda residuals: residuals
    known = as_float(sigma)
    if known.ndim == 2:
        factor = T.linalg.cholesky(known)
        return lambda residuals: T.linalg.solve_triangular(factor, residuals, lower=True)
    return lambda residuals: residuals / known


__all__ = ["curve_fit", "least_squares"]

vars(curve_fit)["of_arrays"] = partial(driven.curve_fit, curve_fit)
vars(least_squares)["of_arrays"] = partial(driven.least_squares, least_squares)
all_at_once(globals())
explain_all(globals())
