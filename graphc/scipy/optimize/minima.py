"""Minima of functions: `minimize`, `line_search` of a vector, `minimize_scalar` of a number.

In: a function of a vector or a tree to a number, a guess. Out: SciPy's result, whose `x` has derivatives by `args` and
by what the function takes from around it: those of the root of its gradient (`equations.py`).

    minimize(lambda x: jnp.sum((x - 3) ** 2), np.zeros(2)).x                  array([3., 3.])

Of arrays, `driven.py` has SciPy's algorithms. The loops here are native; the gradient is that of the graph. A step
without bounds satisfies Wolfe's strong conditions (Nocedal and Wright, Numerical Optimization, 3.1), which a bracket
and its interpolation find.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

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
from graphc.scipy.optimize.equations import (
    Function,
    Limits,
    TracedParameters,
    as_float,
    called,
    clipped,
    packed,
    scalar,
    solved,
    with_gradient,
)
from graphc.scipy.optimize.parameters import arguments
from graphc.startup.hooks import HOOKS
from graphc.tensor.elementary import stop_gradient

DONE, TOO_MANY, STUCK, NOT_A_NUMBER, INFEASIBLE = range(5)

MESSAGES = {
    DONE: "Optimization terminated successfully.",
    TOO_MANY: "Maximum number of iterations has been exceeded.",
    STUCK: "Desired error not necessarily achieved due to precision loss.",
    NOT_A_NUMBER: "NaN result encountered.",
    INFEASIBLE: "The constraints are not met: the factor of what is missed has grown without end.",
}
TRIALS = 40
"""The most values of the function that one line search asks for."""


Both = Callable[[Node], tuple[Node, Node]]
"""A function of a vector: its value and its gradient."""


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
    progress: bool = False,
) -> Result:
    """Return the minimum of fun(x, *args), as SciPy's `minimize`: of arrays by SciPy's algorithm, with the derivatives
    that it takes; in a traced function, or where an argument is a tensor, by a native loop that has derivatives.

    fun: returns a number. x0: a vector, or a tree of arrays, which `fun` is given as it is: a dict, a dataclass, a
    named tuple, a matrix. A number, and a list or tuple of numbers, is a vector. method: one of SciPy's; None for BFGS,
    with bounds L-BFGS-B, with constraints SLSQP. Value, gradient and constraints with their Jacobians are one kernel,
    and run once at each place; Newton-CG, trust-ncg, trust-krylov and trust-constr are given products with the second
    derivatives, dogleg and trust-exact these. jac, hess, hessp: the program's own derivatives in their place, functions
    of tensors; jac=True where `fun` returns the value and the gradient. bounds: {name: (low, high)}, None for no
    bound, numbers or arrays of the parameter's shape; the name of a part ("layers[0].w") or of all within it
    ("layers"); or a pair for each element; or `Bounds`. constraints: a `LinearConstraint`, a `NonlinearConstraint`,
    SciPy's dict, several in a list, or in a dict by name. callback: called with the tree at each step; True ends the
    search. progress: write a line of text to stderr. tol, options: SciPy's, with its names.

    Returns a result with `x`, like `x0`; `fun`, `jac`, `nit`, `nfev`, `status`, `success`, `message` and what else
    SciPy tells; `scipy`, SciPy's own; `covariance`, the inverse of the second derivatives at `x`, by name: the
    covariance of the parameters where `fun` is a negative log-likelihood. A parameter at a bound has none, and what
    constraints hold does not vary. It is computed when it is asked for. Raises GraphValueError for a name that no
    parameter has, and for a start at NaN; RankError where `fun` returns no number; ShapeError where bounds do not fit.

        >>> def valley(p):
        ...     return (1.0 - p["a"]) ** 2 + 100.0 * (p["b"] - p["a"] ** 2) ** 2
        >>> found = minimize(valley, {"a": -1.0, "b": 2.0}, bounds={"a": (None, 0.5)})
        >>> found.x["b"].round(4), found.success
        (np.float64(0.25), True)

    Traced, the methods are BFGS, with bounds L-BFGS-B, with constraints SLSQP; bounds and constraints may have tensors
    in them. options: of BFGS `gtol`, `maxiter` (200 for each element), `c1`, `c2`; of L-BFGS-B `gtol`, `ftol`,
    `maxiter`; of SLSQP `gtol`, for constraints too, and `maxiter`. The loop of L-BFGS-B projects its steps on the
    bounds; that of SLSQP is an augmented Lagrangian around it. The result has `x`, `fun`, `jac`, `nit`, `nfev`, `njev`,
    `status`, `success` and `message`, of BFGS `hess_inv`, of SLSQP `multipliers`. Derivatives of `x` are by `args`, by
    bounds and by what `fun` and constraints take from around them, NaN where it has not succeeded. A callback and other
    methods raise GraphValueError.

        >>> def nearest(a):
        ...     return minimize(lambda x: jnp.sum((x - a) ** 4 + x**2), np.zeros(2), tol=1e-9).x.sum()
        >>> graphc.grad(nearest)(3.0).round(6)                 # 4 (x - 3)^3 + 2 x = 0
        np.float64(1.714286)
    """
    if callback is not None or hess is not None or hessp is not None or progress:
        raise GraphValueError("minimize: of tensors, callback, hess, hessp and progress are not here")
    bounded, constrained = bounds is not None, constraints not in ((), None, [], {})
    kind = _kind(method, bounded, constrained)
    known, x = _read(kind, options, tol), TracedParameters("minimize", x0)
    value, both = _functions(fun, jac, arguments(args), x.restored)
    if kind == "BFGS":
        most = 200 * x.vector.shape[0] if known["maxiter"] is None else known["maxiter"]
        place, inverse, status, rounds, calls = _bfgs(both, x.vector, known["gtol"], most, known["c1"], known["c2"])
        place = solved(lambda x: both(x)[1], place, T.eq(status, DONE))
        return Result({**_result(value, both, x, place, status, rounds, calls), "hess_inv": inverse}, MESSAGES)
    return _within(value, both, x, x.pairs(bounds), x.limits(constraints) if constrained else [], known)


OPTIONS: dict[str, dict[str, Any]] = {
    "BFGS": {"gtol": 1e-5, "maxiter": None, "c1": 1e-4, "c2": 0.9},
    "L-BFGS-B": {"gtol": 1e-5, "ftol": 2.220446049250313e-09, "maxiter": 15000},
    "SLSQP": {"gtol": 1e-6, "maxiter": 15000},
}
"""The methods of tensors, with their options."""


def _kind(method: Any, bounded: bool, constrained: bool) -> str:
    """Return the method. Raises GraphValueError for one that is not here, or that has no bounds or constraints."""
    kind = ("SLSQP" if constrained else "L-BFGS-B" if bounded else "BFGS") if method is None else str(method)
    if kind not in OPTIONS:
        raise GraphValueError(f"minimize: of tensors, method {method!r} is not here: {', '.join(OPTIONS)} are")
    if constrained and kind != "SLSQP":
        raise GraphValueError(f'minimize: method {kind!r} has no constraints, which "SLSQP" has')
    if bounded and kind == "BFGS":
        raise GraphValueError('minimize: method "BFGS" has no bounds, which "L-BFGS-B" has')
    return kind


def _read(kind: str, options: Any, tol: Any) -> dict[str, Any]:
    """Return the options of a method. Raises GraphValueError for one that it has not."""
    given = {name: value for name, value in (options or {}).items() if name != "disp"}
    for name in given:
        if name not in OPTIONS[kind]:
            raise GraphValueError(f"minimize: of tensors, {kind} has no option {name!r}: {', '.join(OPTIONS[kind])}")
    known = OPTIONS[kind]
    return {**known, **({} if tol is None else {name: tol for name in ("gtol", "ftol") if name in known}), **given}


def _result(
    value: Function, both: Both, x: TracedParameters, place: Node, status: Node, rounds: Node, calls: Node
) -> Result:
    found = Result({"x": x.restored(place), "fun": value(place), "jac": x.restored(both(place)[1])}, MESSAGES)
    found["nit"], found["nfev"], found["njev"] = rounds, calls, calls
    found["status"], found["success"] = status, T.eq(status, DONE)
    return found


def _within(
    value: Function, both: Both, x: TracedParameters, ends: tuple[Node, Node], limits: list[Limits],
    known: dict[str, Any],
) -> Result:  # fmt: skip
    """Return the minimum within bounds and under constraints.

    There, x = clip(x - g(x) - m J(x), low, high) and c(x) = clip(c(x) + m, lower, upper): the equations of Karush, Kuhn
    and Tucker, of which `x` and the multipliers `m` have their derivatives."""
    low, high = ends
    settings = Settings(known["gtol"], known.get("ftol", 0.0), known["maxiter"])
    if not limits:
        found = projected(both, x.vector, low, high, settings)
        place, status, rounds, calls = map(stop_gradient, found)
        place = solved(lambda x: x - clipped(x - both(x)[1], low, high), place, T.eq(status, DONE))
        return _result(value, both, x, place, status, rounds, calls)

    def missed(place: Node) -> Node:
        return joined([each.value(place) for each in limits])

    lower, upper = joined([each.low for each in limits]), joined([each.high for each in limits])
    found, by = augmented(value, (missed, lower, upper), x.vector, low, high, settings)
    size = x.vector.shape[0]

    def equations(both: Node) -> Node:
        place, by = both[:size], both[size:]
        slope = with_gradient(lambda x: value(x) + T.sum(missed(x) * by))(place)[1]
        at = missed(place)
        return T.concatenate([place - clipped(place - slope, low, high), at - clipped(at + by, lower, upper)])

    whole = solved(equations, T.concatenate([found.x, by]), T.eq(found.status, DONE))
    made = _result(value, both, x, whole[:size], found.status, found.rounds, found.calls)
    made["multipliers"] = whole[size:]
    return made


def joined(vectors: list[Node]) -> Node:
    """Return vectors as one."""
    return vectors[0] if len(vectors) == 1 else T.concatenate(vectors)


def _functions(
    fun: Callable[..., Any], jac: Any, args: tuple[Any, ...], restored: Any = None
) -> tuple[Callable[[Node], Node], Both]:
    if jac is True:
        value = called("minimize", lambda x, *args: fun(x, *args)[0], args, 0, restored)
        gradient = called("minimize", lambda x, *args: fun(x, *args)[1], args, 1, restored)
    else:
        value = called("minimize", fun, args, 0, restored)
        if not callable(jac):
            return value, with_gradient(value)
        gradient = called("minimize", jac, args, 1, restored)
    return value, lambda x: (value(x), gradient(x))


def _bfgs(both: Both, guess: Node, gtol: Any, most: Any, c1: Any, c2: Any) -> tuple[Node, Node, Node, Node, Node]:
    """Return the minimum, the inverse Hessian, the status, the numbers of steps and of calls (Nocedal and Wright,
    6.1)."""
    kind, count = guess.type.dtype, guess.shape[0]
    unit = T.eye(count, dtype=kind)

    def status_of(value: Node, gradient: Node, found: Node, rounds: Node) -> Node:
        done = T.max(abs(gradient)) <= gtol
        bad = T.isnan(value) | T.any(T.isnan(gradient))
        rest = T.switch(found, T.switch(rounds >= most, TOO_MANY, -1), STUCK)
        return cast(T.switch(bad, NOT_A_NUMBER, T.switch(done, DONE, rest)), "int64")

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        x, value, gradient, inverse, _, rounds, calls = state
        way = -T.dot(inverse, gradient)
        first = T.minimum(1.0, 1.01 / T.sqrt(T.sum(gradient * gradient)))
        _, after, at, slope, found, tried = _wolfe_step(
            both, x, way, value, gradient, T.switch(T.eq(rounds, 0), first, 1.0), c1, c2
        )
        s, y = after - x, slope - gradient
        curved = T.sum(s * y)
        scale = T.switch(curved > 0, 1 / T.switch(curved > 0, curved, 1.0), 0.0)
        left = unit - scale * s[:, None] * y[None, :]
        updated = T.dot(T.dot(left, inverse), left.T) + scale * s[:, None] * s[None, :]
        inverse = T.switch(found & (curved > 0), updated, inverse)
        x, value = T.switch(found, after, x), T.switch(found, at, value)
        gradient = T.switch(found, slope, gradient)
        status = status_of(value, gradient, found, rounds + 1)
        return x, value, gradient, cast(inverse, kind), status, rounds + 1, calls + tried

    value, gradient = both(guess)
    zero = T.constant(np.int64(0))
    status = status_of(value, gradient, T.constant(True), zero)
    start = (guess, value, gradient, unit, status, zero, zero + 1)
    x, _, _, inverse, status, rounds, calls = map(
        stop_gradient, while_loop(lambda state: T.eq(state[4], -1), step, start)
    )
    return x, inverse, status, rounds, calls


def _wolfe_step(
    both: Both, x: Node, way: Node, value: Node, gradient: Node, first: Node, c1: Any, c2: Any
) -> tuple[Node, ...]:
    """Return the length of a step, where it ends, the value and the gradient there, whether Wolfe's conditions hold,
    and the number of calls.

    A length between `low` and `high` satisfies them: at `low` the value is small enough and falls, at `high` it is too
    large or rises. Rounding of the value, some eps of it, counts as no increase."""
    kind = x.type.dtype
    down = T.sum(gradient * way)
    slack = 10 * np.finfo(kind).eps * abs(value)

    def trial(state: tuple[Node, ...]) -> tuple[Node, ...]:
        low, high, at_low, down_low, a, *_, tried = state
        after = x + a * way
        at, slope = both(after)
        along = T.sum(slope * way)
        large = ~(at <= value + c1 * a * down + slack)
        rises = along > -c2 * down
        found = ~large & ~rises & (along >= c2 * down)
        is_high = large | rises
        width = T.switch(is_high, a - low, high - a)
        new_high = T.switch(is_high, a, high)
        bend = at - at_low - down_low * (a - low)
        place = -down_low * (a - low) ** 2 / (2 * T.switch(bend > 0, bend, 1.0))
        place = T.switch(large & (bend > 0), place, width / 2)
        inside = low + T.minimum(T.maximum(place, 0.1 * width), 0.9 * width)
        new_low, new_at, new_down = (
            T.switch(is_high, old, new) for old, new in ((low, a), (at_low, at), (down_low, along))
        )
        next_a = T.switch(is_high, inside, T.switch(high < np.inf, (a + high) / 2, 2 * a))
        return (
            new_low, new_high, new_at, new_down, T.switch(found, a, next_a), after, at, slope, found, tried + 1,
        )  # fmt: skip

    def go_on(state: tuple[Node, ...]) -> Node:
        return ~state[8] & (state[9] < TRIALS)

    zero = T.zeros((), dtype=kind)
    start = (
        zero, zero + np.inf, value, down, cast(first, kind), x, value, gradient, T.constant(False),
        T.constant(np.int64(0)),
    )  # fmt: skip
    _, _, _, _, a, after, at, slope, found, tried = while_loop(go_on, trial, start)
    return a, after, at, slope, found, tried


def line_search(
    f: Callable[..., Any],
    myfprime: Any,
    xk: Any,
    pk: Any,
    gfk: Any = None,
    old_fval: Any = None,
    old_old_fval: Any = None,
    args: Any = (),
    c1: Any = 1e-4,
    c2: Any = 0.9,
) -> tuple[Node, ...]:
    """Return a length of a step from `xk` along `pk` with Wolfe's strong conditions, as SciPy's `line_search`.

    f: a function of a vector; myfprime: one that returns its gradient, or None for the derivative of `f`. Returns the
    length (NaN where none is found), the numbers of values and of gradients, the value at the end of the step and at
    its beginning, and the derivative along `pk` at the end.

        >>> line_search(lambda x: jnp.sum(x**2), None, np.array([1.0]), np.array([-2.0]))[0]
        np.float64(0.5)
    """
    _, both = _functions(f, myfprime, arguments(args))
    x, way = packed(xk)[0], as_float(pk)
    at, gradient = both(x)
    a, _, new, slope, found, tried = _wolfe_step(both, x, way, at, gradient, T.constant(1.0), c1, c2)
    return T.switch(found, a, np.nan), tried + 1, tried + 1, new, at, T.sum(slope * way)


SCALAR_MESSAGES = {0: "Solution found.", 1: "Maximum number of iterations was exceeded."}


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
    low, high = (scalar("minimize_scalar", "a bound", each) for each in (bounds[0], bounds[1]))
    x, _, count, done = _golden(value, low, high, xatol, known.get("maxiter", 500))
    both = with_gradient(value)
    x = solved(lambda x: both(x)[1], x, done)
    found = Result({}, SCALAR_MESSAGES)
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


# --- loops within bounds and under constraints ------------------------------------------------------------------------
#
#     projected(both, x, low, high, settings)         the least of a function, low <= x <= high
#     augmented(f, limits, x, low, high, settings)    the same, and lower <= c(x) <= upper
#
# `projected` holds what is at a bound and would leave, and takes a quasi-Newton step in the rest, of the last PAIRS
# steps and changes of the gradient (L-BFGS: Byrd, Nocedal and Schnabel 1994, Representations of quasi-Newton matrices,
# theorem 2.2). A step ends on the bounds it would cross (two-metric projection: Bertsekas 1982, Projected Newton
# methods).
#
# `augmented` adds to the function what the constraints are missed by, squared, and the multipliers times it; the
# multipliers grow by what is missed (Nocedal and Wright, Numerical Optimization, 17.4). With s(x) = clip(c(x) + m / r,
# lower, upper) the added term is r / 2 |c(x) + m / r - s(x)|^2, and m becomes m + r (c(x) - s(x)).


GOING = -1
PAIRS = 10
"""The steps of which the second derivatives are estimated."""
BOUNDED_TRIALS = 30
"""The most values of the function along one step."""
ROUNDS = 60
"""The most changes of the multipliers."""
STEEPEST = 1e12
"""The factor of missed constraints above which there is no place that meets them."""


class Settings(NamedTuple):
    """gtol: the largest element of the projected gradient. ftol: the relative decrease of a step that ends the search.
    most: steps."""

    gtol: Node | float
    ftol: Node | float
    most: Node | int


class Minimum(NamedTuple):
    """A place, why the loop has ended, the numbers of steps and of values."""

    x: Node
    status: Node
    rounds: Node
    calls: Node


def rest(x: Node, gradient: Node, low: Node, high: Node) -> Node:
    """Return the largest element of the projected gradient, which is 0 at a minimum."""
    return T.max(abs(x - clipped(x - gradient, low, high)))


def _way(gradient: Node, free: Node, steps: Node, changes: Node) -> Node:
    """Return the quasi-Newton step of the free elements. steps, changes: of the last steps, the newest last; one that
    does not curve up among the free elements counts for nothing."""
    kind = gradient.type.dtype
    s, y = steps * free, changes * free
    curved = T.sum(s * y, axis=1)
    used = curved > np.finfo(kind).eps * T.sqrt(T.sum(s * s, axis=1) * T.sum(y * y, axis=1))
    s, y = (T.switch(used[:, None], each, 0.0) for each in (s, y))
    curved = T.switch(used, curved, 1.0)
    newest = T.max(T.switch(used, T.arange(PAIRS), -1))
    place = T.maximum(newest, 0)
    scale = T.switch(newest >= 0, curved[place] / T.maximum(T.sum(y[place] ** 2), np.finfo(kind).tiny), 1.0)
    scale = cast(T.switch(scale > 0, scale, 1.0), kind)
    upper = T.triu(T.dot(s, y.T), 1) + T.diagflat(curved)
    g = gradient * free
    first = T.linalg.solve_triangular(upper, T.dot(s, g), on_error="nan")
    inner = curved * first + scale * (T.dot(y, T.dot(y.T, first)) - T.dot(y, g))
    second = T.linalg.solve_triangular(upper, inner, trans=1, on_error="nan")
    return -(scale * g + T.dot(s.T, second) - scale * T.dot(y.T, first)) * free


def _armijo_step(
    both: Both, x: Node, way: Node, value: Node, gradient: Node, first: Node, low: Node, high: Node
) -> tuple[Node, ...]:
    """Return the end of a step, the value and the gradient there, whether the value is small enough, and the number of
    values (Armijo's condition along the projected way)."""
    kind = x.type.dtype
    slack = 10 * np.finfo(kind).eps * abs(value)

    def trial(state: tuple[Node, ...]) -> tuple[Node, ...]:
        a, *_, tried = state
        after = clipped(x + a * way, low, high)
        at, slope = both(after)
        down = T.sum(gradient * (after - x))
        found = at <= value + 1e-4 * down + slack
        bend = at - value - down
        shorter = T.switch(bend > 0, -down / (2 * T.switch(bend > 0, bend, 1.0)), 0.5)
        shorter = T.minimum(T.maximum(T.switch(T.isnan(shorter), 0.1, shorter), 0.1), 0.5)
        return cast(T.switch(found, a, a * shorter), kind), after, at, slope, found, tried + 1

    zero = T.constant(np.int64(0))
    start = (cast(first, kind), x, value, gradient, T.constant(False), zero)
    found: tuple[Node, ...] = while_loop(lambda state: ~state[4] & (state[5] < BOUNDED_TRIALS), trial, start)[1:]
    return found


def projected(both: Both, guess: Node, low: Node, high: Node, settings: Settings) -> Minimum:
    """Return the least of a function within bounds."""
    kind = guess.type.dtype

    def status_of(x: Node, value: Node, gradient: Node, before: Node, found: Node, rounds: Node) -> Node:
        flat = rest(x, gradient, low, high) <= settings.gtol
        scale = T.maximum(T.maximum(abs(before), abs(value)), 1.0)
        still = found & (before - value <= settings.ftol * scale)
        bad = T.isnan(value) | T.any(T.isnan(gradient))
        going = T.switch(rounds >= settings.most, TOO_MANY, GOING)
        return cast(T.switch(bad, NOT_A_NUMBER, T.switch(flat | still, DONE, going)), "int64")

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        x, value, gradient, steps, changes, _, rounds, calls = state
        held = ((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))
        free = cast(~held, kind)
        way = _way(gradient, free, steps, changes)
        known = T.any(T.neq(steps, 0.0))
        falls = T.sum(way * gradient) < 0
        way = T.switch(falls, way, -gradient * free)
        short = T.minimum(1.0, 1 / T.maximum(T.sum(abs(gradient * free)), np.finfo(kind).tiny))
        after, at, slope, found, tried = _armijo_step(
            both, x, way, value, gradient, T.switch(known & falls, 1.0, short), low, high
        )
        s, y = after - x, slope - gradient
        size = T.sqrt(T.sum(s * s) * T.sum(y * y))
        takes = found & (T.sum(s * y) > np.finfo(kind).eps * size)
        steps = T.switch(takes, T.concatenate([steps[1:], s[None]]), T.switch(found, steps, 0.0))
        changes = T.switch(takes, T.concatenate([changes[1:], y[None]]), T.switch(found, changes, 0.0))
        status = status_of(after, at, slope, value, found, rounds + 1)
        status = T.switch(found, status, T.switch(known, GOING, STUCK))  # without the old steps it is tried again
        x, value, gradient = (
            T.switch(found, new, old) for new, old in ((after, x), (at, value), (slope, gradient))
        )  # fmt: skip
        return x, value, gradient, steps, changes, cast(status, "int64"), rounds + 1, calls + tried

    x = clipped(guess, low, high)
    value, gradient = both(x)
    zero = T.constant(np.int64(0))
    memory = T.zeros((PAIRS, x.shape[0]), dtype=kind)
    status = status_of(x, value, gradient, value, T.constant(False), zero)
    start = (x, value, gradient, memory, memory, status, zero, zero + 1)
    found = while_loop(lambda state: T.eq(state[5], GOING), step, start)
    return Minimum(found[0], found[5], found[6], found[7])


def augmented(
    value: Function, limits: tuple[Function, Node, Node], guess: Node, low: Node, high: Node, settings: Settings
) -> tuple[Minimum, Node]:
    """Return the least of a function within bounds and under constraints, and the multipliers. limits: the function of
    the constraints, its least and its greatest values."""
    missed, lower, upper = limits
    kind = guess.type.dtype
    tiny = np.finfo(kind).tiny

    def step(state: tuple[Node, ...]) -> tuple[Node, ...]:
        x, by, factor, before, goal, _, rounds, calls = state

        def whole(x: Node) -> Node:
            moved = missed(x) + by / factor
            return value(x) + factor / 2 * T.sum((moved - clipped(moved, lower, upper)) ** 2)

        both = with_gradient(whole)
        found = projected(both, x, low, high, Settings(goal, 0.0, settings.most))
        at = missed(found.x)
        moved = at + by / factor
        after = factor * (moved - clipped(moved, lower, upper))
        by_how_much = T.max(abs(at - clipped(moved, lower, upper)))
        met = by_how_much <= settings.gtol
        # a step that rounding hides ends a search as well as a small gradient does
        flat = (goal <= settings.gtol) & (T.eq(found.status, DONE) | T.eq(found.status, STUCK))
        factor_after = T.switch(by_how_much > before / 4, 10 * factor, factor)
        status = T.switch(met & flat, DONE, T.switch(rounds + 1 >= ROUNDS, TOO_MANY, GOING))
        status = T.switch(factor_after > STEEPEST, INFEASIBLE, status)
        status = T.switch(T.isnan(by_how_much) | T.eq(found.status, NOT_A_NUMBER), NOT_A_NUMBER, status)
        goal = T.maximum(T.minimum(goal / 10, by_how_much), settings.gtol)
        return (
            found.x, after, cast(factor_after, kind), by_how_much, cast(goal, kind), cast(status, "int64"), rounds + 1,
            calls + found.calls,
        )  # fmt: skip

    x = clipped(guess, low, high)
    at = missed(x)
    far = at - clipped(at, lower, upper)
    size = T.sum(far * far)
    factor = T.minimum(T.maximum(2 * abs(value(x)) / T.maximum(size, tiny), 1.0), 1e3)
    zero = T.constant(np.int64(0))
    first = T.maximum(cast(T.constant(1e-2), kind), settings.gtol)
    start = (
        x, T.zeros_like(at), cast(factor, kind), T.max(abs(far)), cast(first, kind), zero + GOING, zero, zero,
    )  # fmt: skip
    x, by, _, _, _, status, rounds, calls = map(
        stop_gradient, while_loop(lambda state: T.eq(state[5], GOING), step, start)
    )
    return Minimum(x, status, rounds, calls), by


__all__ = ["line_search", "minimize", "minimize_scalar"]

vars(minimize)["of_arrays"] = partial(driven.minimize, minimize)
vars(minimize_scalar)["of_arrays"] = partial(
    driven.minimize_scalar, minimize_scalar, HOOKS.plain_calls(minimize_scalar)
)
all_at_once(globals())
explain_all(globals())
