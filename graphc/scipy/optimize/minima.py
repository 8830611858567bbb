"""Minima of functions of a vector: `minimize`, `line_search`.

In: a function of a vector or a tree to a number, a guess. Out: SciPy's result, whose `x` has derivatives by `args` and
by what the function takes from around it: those of the root of its gradient (`equations.py`).

    minimize(lambda x: jnp.sum((x - 3) ** 2), np.zeros(2)).x                  array([3., 3.])

Of arrays, `driven.py` has SciPy's algorithms. The loops here are native; the gradient is that of the graph. A step
satisfies Wolfe's strong conditions (Nocedal and Wright, Numerical Optimization, 3.1), which a bracket and its
interpolation find.
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
from graphc.scipy.optimize.bounded import (
    DONE,
    INFEASIBLE,
    NOT_A_NUMBER,
    STUCK,
    TOO_MANY,
    Both,
    Settings,
    augmented,
    clipped,
    projected,
)
from graphc.scipy.optimize.equations import Function, as_float, called, packed, solved, with_gradient
from graphc.scipy.optimize.packing import arguments
from graphc.scipy.optimize.traced_limits import Limits, TracedParameters
from graphc.scipy.results import Result
from graphc.tensor.elementary import stop_gradient

MESSAGES = {
    DONE: "Optimization terminated successfully.",
    TOO_MANY: "Maximum number of iterations has been exceeded.",
    STUCK: "Desired error not necessarily achieved due to precision loss.",
    NOT_A_NUMBER: "NaN result encountered.",
    INFEASIBLE: "The constraints are not met: the factor of what is missed has grown without end.",
}
TRIALS = 40
"""The most values of the function that one line search asks for."""


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
        return _free(value, both, x, known)
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


def _free(value: Function, both: Both, x: TracedParameters, known: dict[str, Any]) -> Result:
    """Return the minimum without bounds."""
    most = 200 * x.vector.shape[0] if known["maxiter"] is None else known["maxiter"]
    place, inverse, status, rounds, calls = _bfgs(both, x.vector, known["gtol"], most, known["c1"], known["c2"])
    found = _result(value, both, x, solved(lambda x: both(x)[1], place, T.eq(status, DONE)), status, rounds, calls)
    found["hess_inv"] = inverse
    return found


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
    made: Node = vectors[0] if len(vectors) == 1 else T.concatenate(vectors)
    return made


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
        _, after, at, slope, found, tried = _search(
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


def _search(
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
    a, _, new, slope, found, tried = _search(both, x, way, at, gradient, T.constant(1.0), c1, c2)
    return T.switch(found, a, np.nan), tried + 1, tried + 1, new, at, T.sum(slope * way)


__all__ = ["line_search", "minimize"]

vars(minimize)["of_arrays"] = partial(driven.minimize, minimize)
all_at_once(globals())
explain_all(globals())
