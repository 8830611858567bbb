"""Initial value problems: `solve_ivp` with SciPy's arguments, `odeint` with JAX's.

In: y' = fun(t, y), times, what the solution begins with, as arrays or tensors. Out: the solution at times, with
derivatives by the initial values, by all that `fun` is given or takes from around it, and by the times.

    solve_ivp(lambda t, y: -y, (0, 1), [1.0], t_eval=[0.5, 1.0]).y       array([[0.6065, 0.3678]])
    odeint(lambda y, t: -y, np.ones(1), np.array([0.0, 0.5, 1.0]))       a row for each time

The loop is in steps.py. The derivative is the discrete adjoint, in a loop back over the steps, for which those of one
call keep their states and what of `fun` costs more to compute again: memory grows with the number of steps. It is the
derivative of the numbers that are returned, with the lengths of steps held, so its error is of the order of the
tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.control.functional import while_loop
from graphc.control.loop import title
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir.at_once import all_at_once
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.ir.source_lines import program_line
from graphc.lax.solving import custom_root
from graphc.ops.elementwise import as_node, cast
from graphc.scipy.integrate.steps import (
    DOP853,
    RK23,
    RK45,
    STOPPED,
    Derivative,
    Event,
    Method,
    Path,
    Radau,
    Tolerances,
    integrate,
)
from graphc.scipy.named import Result
from graphc.scipy.optimize.equations import as_float
from graphc.tensor.elementary import stop_gradient
from graphc.tracing.programs import nodes_in, run
from graphc.tree import ravel_pytree
from graphc.trees import leaves, like, map_leaves, outline, structure

MAX_STEPS = 4096
MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    1: "A termination event occurred.",
    -1: "Required step size is less than spacing between numbers.",
    -2: "The solver made max_steps attempts before it reached the end of the integration interval.",
}
METHODS: dict[str, Method] = {"RK23": RK23, "RK45": RK45, "Radau": Radau()}
INSTEAD = {
    "BDF": 'method="Radau" is the one for stiff problems, of order 5 and L-stable',
    "LSODA": 'it is Fortran code that changes between methods; method="Radau" is the one for stiff problems',
}
SINGLE = "*"


class State:
    """A tree as one vector of floats. tree: the initial values, as tensors. vector: all of their elements."""

    def __init__(self, tree: Any) -> None:
        if isinstance(tree, list) and not any(isinstance(leaf, dict) for leaf in tree):
            tree = as_node(tree)
        self.tree = map_leaves(as_float, tree)
        self.vector, self.restore = ravel_pytree(self.tree)
        self.vector = as_node(self.vector)

    def derivative(self, fun: Callable[..., Any], args: Sequence[Any], by: str, turned: bool = False) -> Derivative:
        """Return a function of time and vector that calls the program's. turned: the state is its first argument."""

        def call(t: Node, vector: Node) -> Node:
            y = self.restore(vector)
            made = run(by, fun, [y, t, *args] if turned else [t, y, *args])
            if structure(self.tree) == SINGLE and isinstance(made, list | tuple):
                made = as_node(list(made))
            if structure(made) != structure(self.tree):
                raise GraphTypeError(
                    f"{by}: {title(fun)} must return what is like the state, {outline(self.tree)}, not {outline(made)}"
                )
            parts = [self.fitted(by, fun, *pair) for pair in zip(nodes_in(fun, made), leaves(self.tree), strict=True)]
            return self.joined(parts, vector)

        return call

    def joined(self, parts: Sequence[Node], vector: Node) -> Node:
        """Return the elements of all parts as a vector of the size of `vector`, which the parts' sizes do not show."""
        if len(parts) == 1:
            return parts[0] if parts[0].ndim == 1 else T.reshape(parts[0], vector.shape, ndim=1)
        whole, begin = T.zeros_like(vector), as_node(0)
        for part in parts:
            end = begin + part.size
            whole = T.set_subtensor(whole[begin:end], cast(T.flatten(part), vector.type.dtype))
            begin = end
        return whole

    def fitted(self, by: str, fun: Callable[..., Any], node: Node, own: Node) -> Node:
        """Return a derivative in the dtype of its part of the state. Raises RankError where it has another rank."""
        if node.ndim != own.ndim:
            raise RankError(
                f"{by}: {title(fun)} returns an array of type {node.type} for a part of the state of type {own.type}"
            )
        return cast(node, own.type.dtype)

    def along(self, rows: Node, last: bool) -> Any:
        """Return the tree of which each part has an axis of times, first or last; from a vector in each row."""
        parts = []
        begin: Any = 0
        for leaf in leaves(self.tree):
            end = begin + leaf.size
            part = T.reshape(
                rows[:, begin:end],
                (rows.shape[0], *(leaf.shape[axis] for axis in range(leaf.ndim))),
                ndim=leaf.ndim + 1,
            )
            part = cast(part, leaf.type.dtype)
            parts.append(T.moveaxis(part, 0, -1) if last else part)
            begin = end
        return like(self.tree, parts)


def method_of(name: Any) -> Method:
    """Return the method of a name. Raises GraphValueError for one that is not there, with the reason."""
    if name == "DOP853":
        return DOP853(import_module("scipy.integrate").DOP853)
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    reason = INSTEAD.get(name, "there are RK45, RK23, DOP853 and Radau") if isinstance(name, str) else "give its name"
    raise GraphValueError(f"solve_ivp: method {name!r} is not here: {reason}")


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    *,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    max_step: Any = np.inf,
    first_step: Any = None,
    max_steps: Any = MAX_STEPS,
) -> Result:
    """Solve y' = fun(t, y, *args), y(t_span[0]) = y0, with adaptive steps; SciPy's `solve_ivp`, with derivatives.

    fun: a function of arrays that returns what is like `y0`. t_span: the first and the last time, which may be the
    smaller one. y0: a vector; or an array of other rank, or a tree of arrays. method: "RK45", "RK23" or "DOP853", which
    choose SciPy's steps; "Radau" for stiff problems. t_eval: times at which the solution is wanted, between those of
    `t_span`; None for all steps. events: a function of (t, y, *args) with the attribute `terminal`, or several: the
    first time at which one is zero ends the integration; its `direction` is that of the crossing. rtol, atol: the
    error of a step is at most atol + rtol * abs(y); `atol` may be a vector. max_step, first_step: lengths of steps.
    max_steps: the most attempts, which bounds time and memory.

    Returns a result with `t`; `y`, like `y0` with a last axis of times; `nfev`, `njev`, `nlu`; `t_events` and
    `y_events`, for each event the time and the state, or empty; `status`: 0 at the end, 1 at an event, -1 where steps
    became too small, -2 where there were `max_steps`; `success`, `message`. Values at times of `t_eval` that were not
    reached are NaN.

    Derivatives by y0, args, what `fun` takes from around it, and times are those of the numerical solution with the
    steps that were chosen, in both modes and of any order. Raises GraphValueError for what is not there (dense_output,
    events that do not end the integration, other methods).

        >>> def decay(rate):
        ...     return solve_ivp(lambda t, y: -rate * y, (0, 1), np.ones(1), t_eval=[1.0], rtol=1e-8, atol=1e-8).y[0, 0]
        >>> graphc.grad(decay)(2.0).round(6)            # -exp(-2)
        np.float64(-0.135335)
    """
    if dense_output or vectorized:
        raise GraphValueError("solve_ivp: dense_output and vectorized are not here: give the times as t_eval")
    extra = () if args is None else tuple(args)
    if not isinstance(t_span, Node) and len(t_span) != 2:
        raise GraphValueError(f"solve_ivp: t_span has the first and the last time, not {len(t_span)} numbers")
    begin, end = (as_float(t_span[place]) for place in range(2))
    for time in (begin, end):
        if time.ndim:
            raise RankError(f"a time is a number, not an array of type {time.type}")
    state, solver = State(y0), method_of(method)
    several = [] if events is None else [events] if callable(events) else events
    known = [_event(event, state, extra) for event in several]
    least = 100 * np.finfo(state.vector.type.dtype).eps
    tolerances = Tolerances(T.maximum(rtol, least), T.as_tensor_variable(atol))
    derivative = state.derivative(fun, extra, "solve_ivp")
    path = integrate(derivative, (begin, end), state.vector, solver, tolerances, first_step, max_step, max_steps, known)
    stop, at_stop = _stop(path, known) if known else (path.end, path.last)
    if t_eval is None:
        times, rows = _all_steps(path, begin, state.vector, (stop, at_stop))
    else:
        times, rows = _at_times(path, t_eval, (begin, end))
        if known:
            rows = T.switch(((times - stop) * path.direction > 0)[:, None], np.nan, rows)
    found = Result({"t": times, "y": state.along(rows, last=True), "sol": None}, MESSAGES)
    found["t_events"], found["y_events"] = _events_met(path, state, stop, at_stop) if known else (None, None)
    found["nfev"] = path.counts[0] + (2 if first_step is None else 1)
    found["njev"], found["nlu"] = path.counts[1], 2 * path.counts[1]
    found["status"], found["success"] = path.status, path.status >= 0
    return found


def _events_met(path: Path, state: State, stop: Node, at_stop: Node) -> tuple[list[Node], list[Any]]:
    """Return for each event the time at which it ended the integration, and the state; or nothing of either."""
    counts = [cast(hit & T.eq(path.status, STOPPED), "int64") for hit in path.crossed]
    states = [state.along(at_stop[None][:count], last=False) for count in counts]
    return [stop[None][:count] for count in counts], states


def _all_steps(path: Path, begin: Node, vector: Node, end: tuple[Node, Node]) -> tuple[Node, Node]:
    """Return the times of the accepted steps, of which the last is at `end`, and the states there."""
    taken = T.nonzero(path.accepted)[0]  # rows that are not taken are False
    ends = T.eq(T.arange(taken.shape[0]), taken.shape[0] - 1)
    times = T.switch(ends, end[0], path.t[taken])
    rows = T.switch(ends[:, None], end[1], path.y[taken])
    return T.concatenate([begin[None], times]), T.concatenate([vector[None], rows])


def _at_times(path: Path, t_eval: Any, ends: tuple[Node, Node]) -> tuple[Node, Node]:
    """Return the times that are asked for, held to the span, and the states there."""
    times = as_float(t_eval)
    if times.ndim != 1:
        raise RankError(f"solve_ivp: t_eval is a vector of times, not an array of type {times.type}")
    inside = T.all((times >= T.minimum(*ends)) & (times <= T.maximum(*ends)))
    times = T.Assert("solve_ivp: times of t_eval are not within t_span")(times, inside)
    return times, path(times)


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *more: Any,
    args: Any = (),
    tfirst: bool = False,
    rtol: Any = 1.4e-8,
    atol: Any = 1.4e-8,
    mxstep: Any = MAX_STEPS,
    hmax: Any = np.inf,
) -> Any:
    """Return the solution of y' = func(y, t, *more) at times, the first of which is that of `y0`; JAX's `odeint`.

    func: a function of arrays that returns what is like `y0`. y0: an array, or a tree of arrays. t: a vector of times,
    increasing or decreasing. args: SciPy's form of `more`, a tuple, which is also accepted in its place if `func` takes
    as many arguments. tfirst: `func` takes the time first. rtol, atol: bounds of the error of a step. mxstep: the most
    attempts; times that were not reached have NaN. hmax: the longest step. Each part of the result has a first axis of
    times. The steps are those of RK45; derivatives are as of `solve_ivp`. Raises RankError if `t` is no vector.

        >>> odeint(lambda y, t: -y, 1.0, np.array([0.0, 1.0]))
        array([1.        , 0.36787944])
    """
    times, state = as_float(t), State(y0)
    if times.ndim != 1:
        raise RankError(f"odeint: t is a vector of times, not an array of type {times.type}")
    if len(more) == 1 and isinstance(more[0], tuple) and _takes(func, 2 + len(more[0])):
        more = more[0]
    path = integrate(
        state.derivative(func, (*more, *args), "odeint", turned=not tfirst),
        (times[0], times[-1]),
        state.vector,
        RK45,
        Tolerances(T.as_tensor_variable(rtol), T.as_tensor_variable(atol)),
        None,
        hmax,
        mxstep,
    )
    return state.along(path(times), last=False)


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Tell whether a function can be called with so many arguments by position."""
    try:
        signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def scipys_odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Any = (),
    *,
    tfirst: bool = False,
    rtol: Any = None,
    atol: Any = None,
    mxstep: int = 0,
    hmax: float = 0.0,
    **others: Any,
) -> Node:
    """Return what `scipy.integrate.odeint` returns, where a traced program calls it: the state is a vector. Raises
    GraphTypeError for other options."""
    if any(others.values()):
        names = ", ".join(f"{name}=" for name in others)
        raise GraphTypeError(f"scipy.integrate.odeint of a traced function has no {names} (called at {program_line()})")
    given = {"rtol": rtol, "atol": atol, "mxstep": mxstep or None, "hmax": hmax or None}
    args = args if isinstance(args, tuple) else (args,)
    y0 = T.atleast_1d(as_node(y0))
    solution: Node = odeint(func, y0, t, args=args, tfirst=tfirst, **{k: v for k, v in given.items() if v is not None})
    return solution


# --- events -----------------------------------------------------------------------------------------------------------


def _event(event: Any, state: State, args: Sequence[Any]) -> Event:
    if getattr(event, "terminal", False) not in (True, 1):
        raise GraphValueError(
            f"solve_ivp: the event {title(event)} does not end the integration, so that how often it occurs would be "
            "known after it only; set its attribute terminal = True"
        )

    def value(t: Node, vector: Node) -> Node:
        return cast(run("solve_ivp", event, [t, state.restore(vector), *args]), vector.type.dtype)

    return Event(value, float(getattr(event, "direction", 0)))


def _stop(path: Path, events: Sequence[Event]) -> tuple[Node, Node]:
    """Return the time at which the path ends, and the state: of the first event in the last step, or its end. The time
    is found by bisection of the polynomial, and its derivative is that of the root."""
    begin, end = path.starts[path.taken - 1], path.end
    times = []
    for event, hit in zip(events, path.crossed, strict=True):
        root = _root(event, path, begin, end)
        times.append(T.switch(hit, root * path.direction, np.inf))
    first = T.min(T.stack(times)) * path.direction
    stop = T.switch(T.eq(path.status, STOPPED), first, end)
    return stop, path(stop[None])[0]


def _root(event: Event, path: Path, begin: Node, end: Node) -> Node:
    def value(t: Node) -> Node:
        return event.function(t, path(t[None])[0])

    def bisect(f: Callable[[Node], Node], guess: Node) -> Any:
        low_sign = T.sgn(f(begin))

        def halve(state: tuple[Node, ...]) -> tuple[Node, ...]:
            low, high, count = state
            middle = 0.5 * (low + high)
            is_low = T.eq(T.sgn(f(middle)), low_sign)
            return T.switch(is_low, middle, low), T.switch(is_low, high, middle), count + 1

        def go_on(state: tuple[Node, ...]) -> Node:
            low, high, count = state
            return (count < 64) & (abs(high - low) > 4 * np.finfo("float64").eps * T.maximum(abs(high), abs(low)))

        return while_loop(go_on, halve, (begin, end, T.constant(0)))[1]

    found: Node = custom_root(value, stop_gradient(end), bisect, lambda g, y: y / g(T.ones_like(y)))
    return found


__all__ = ["odeint", "solve_ivp"]

all_at_once(globals())
explain_all(globals())
