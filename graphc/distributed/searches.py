"""Many runs of one function over workers: `minimize` from many starts, `sweep` over parameters.

In: a function, starts or points. Out: results in the order in which these were given, whichever was done first.

    minimize(fun, starts).params                           the best minimum of all
    sweep(f, grid(rate=[0.1, 0.2], depth=[2, 3])).results  four results
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import dask
import numpy as np

import graphc
from graphc.distributed.kernels import Kernel, compute, kernel_of, node_of, raveled
from graphc.errors import ArgumentError
from graphc.functions.callables import Function
from graphc.scipy import optimize
from graphc.scipy.optimize.constraints import read
from graphc.scipy.optimize.driven import MATRICES, PRODUCTS, VALUES
from graphc.scipy.optimize.minima import OPTIONS as NATIVE
from graphc.scipy.optimize.packing import Packing
from graphc.startup.record import record


@record(eq=False)
class Minima:
    """The result of `minimize`. params, value: of the least minimum, the first of several. all_params, values, success,
    steps: of every start, in their order."""

    params: Any
    value: float
    all_params: tuple[Any, ...]
    values: Any
    success: Any
    steps: Any


class _Minimum:
    """The minimum from one start by a native loop, as a function of the vector of all parameters. settings: the other
    arguments of `graphc.scipy.optimize.minimize`, of vectors."""

    def __init__(
        self, fun: Callable[..., Any], unravel: Callable[[Any], Any], settings: Mapping[str, Any], limits: Sequence[Any]
    ) -> None:
        self.fun, self.unravel, self.settings, self.limits = fun, unravel, settings, limits
        self.__name__ = f"minimum_of_{getattr(fun, '__name__', 'function')}"

    def __call__(self, flat: Any) -> Any:
        more: dict[str, Any] = (
            {} if not self.limits else {"constraints": [self._of_vector(each) for each in self.limits]}
        )
        found = optimize.minimize(lambda v: self.fun(self.unravel(v)), flat, **self.settings, **more)
        return found.x, found.fun, found.success, found.nit

    def _of_vector(self, each: Any) -> Any:
        if each.fun is None:
            return optimize.LinearConstraint(each.matrix, each.lb, each.ub)
        return optimize.NonlinearConstraint(lambda v: each.fun(self.unravel(v)), each.lb, each.ub)


def minimize(
    fun: Callable[[Any], Any], starts: Iterable[Any], *, method: str | None = None, bounds: Any = None,
    constraints: Any = (), tol: float | None = None, options: Mapping[str, Any] | None = None, **more: Any,
) -> Minima:  # fmt: skip
    """Return the least of the minima that are reached from many starts, each a task.

    fun(params): a number. starts: trees of floats of one form. bounds, constraints: as those of
    `graphc.scipy.optimize.minimize`, by name. method: None for "BFGS", with bounds "L-BFGS-B", with constraints
    "SLSQP", which are one compiled loop each; or another of SciPy's, whose steps are SciPy's and whose value and
    derivatives are compiled: these take no constraints. tol, options: of the method; options may be given by name, too.
    Raises ArgumentError without a start and for starts of several forms, GraphValueError for an option or a combination
    that is not there.

        >>> found = minimize(lambda x: jnp.cos(x) + 0.01 * x**2, [0.5, 4.0, -9.0])
        >>> round(float(found.params), 3), found.success.tolist()
        (3.08, [True, True, True])
        >>> minimize(lambda p: (p["a"] - 2.0) ** 2, [{"a": 0.5}], bounds={"a": (0.0, 1.0)}).params["a"].round(6)
        np.float64(1.0)
    """
    begin = list(starts)
    vectors = [raveled(each, "minimize") for each in begin]
    if not vectors:
        raise ArgumentError("minimize: there is no start")
    forms = [str(restored.forms) for _, restored in vectors]
    if odd := [place for place, form in enumerate(forms) if form != forms[0]]:
        raise ArgumentError(
            f"minimize: start {odd[0]} is {forms[odd[0]]}, and start 0 is {forms[0]}: they are of one form"
        )
    packing, (flat, unravel) = Packing("minimize", begin[0]), vectors[0]
    limits = read(packing, constraints)
    low_high = packing.pairs(bounds)
    settings: dict[str, Any] = {"method": method, "tol": tol, "options": {**(options or {}), **more}}
    if low_high is not None:
        settings["bounds"] = optimize.Bounds(*low_high)
    if method is None or method in NATIVE:
        program = _Minimum(fun, unravel, settings, limits)
        nodes = [node_of(kernel_of(program, flat))]
        task = dask.delayed(_reached, pure=False)
    elif limits:
        raise ArgumentError(f"minimize: method {method!r} has no constraints here, which 'SLSQP' has")
    else:
        nodes = [node_of(each) for each in _derivatives(fun, unravel, method, flat)]
        task = dask.delayed(partial(_searched, **settings), pure=False)
    found = compute([task(vector, *nodes) for vector, _ in vectors])
    params = tuple(restored(each[0]) for (_, restored), each in zip(vectors, found, strict=True))
    values = np.array([float(each[1]) for each in found])
    best = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
    success, steps = np.array([bool(each[2]) for each in found]), np.array([int(each[3]) for each in found])
    return Minima(params[best], float(values[best]), params, values, success, steps)


def _derivatives(fun: Callable[..., Any], unravel: Callable[[Any], Any], method: str, flat: Any) -> list[Kernel]:
    """Return the kernels of what a method of SciPy's takes: the value, alone or with its gradient, and second
    derivatives, or products with them."""

    def value(v: Any) -> Any:
        return fun(unravel(v))

    kind = method.lower()
    if kind in VALUES:
        return [kernel_of(value, flat)]
    both = kernel_of(graphc.value_and_grad(value), flat)
    if kind in MATRICES:
        return [both, kernel_of(graphc.hessian(value), flat)]
    if kind in PRODUCTS:
        slope = graphc.grad(value)
        return [both, kernel_of(lambda v, along: graphc.jvp(slope, (v,), (along,))[1], flat, flat)]
    return [both]


def _searched(flat: Any, both: Kernel, more: Kernel | None = None, *, method: str, **settings: Any) -> Any:
    """Search from one start by a method of SciPy's: the task."""
    kind = method.lower()
    known: dict[str, Any] = {} if kind in VALUES else {"jac": True}
    if more is not None:
        known["hess" if kind in MATRICES else "hessp"] = more
    if "bounds" in settings:
        given = settings.pop("bounds")
        settings["bounds"] = import_module("scipy.optimize").Bounds(given.lb, given.ub)
    found = import_module("scipy.optimize").minimize(both, flat, method=method, **known, **settings)
    return found.x, found.fun, found.success, found.get("nit", found.nfev)


def _reached(flat: Any, kernel: Kernel) -> Any:
    return kernel(flat)


def _call_kernel(kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return kernel(*args, **kwargs)


def grid(**values: Iterable[Any]) -> list[dict[str, Any]]:
    """Return all combinations of values by name, the last name fastest.

    >>> grid(a=[1, 2], b=[3])
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


@record(eq=False)
class Sweep:
    """The result of `sweep`: points, results and states, in one order. states: for each point the values of the shared
    variables by name after its calls; empty where the function has no updates."""

    points: tuple[Any, ...]
    results: tuple[Any, ...]
    states: tuple[dict[str, Any], ...]


def sweep(function: Callable[..., Any], points: Iterable[Any], calls: int = 1) -> Sweep:
    """Return the results of a function at many points, each a task.

    function: a plain one, one of `jit`, or one of `graphc.function`. points: the arguments of each call, a dict by
    name, a tuple by position, or one value. calls: how often it is called at a point; the result is that of the last
    call. A function with updates begins at each point with the values that its shared variables have here, which stay
    as they are; the values after the last call are returned. Its variables need names of their own.

        >>> sweep(lambda a, b: a * b, grid(a=[1.0, 2.0], b=[3.0])).results
        (np.float64(3.0), np.float64(6.0))
    """
    given = tuple(points)
    if isinstance(function, Function) and function.kernel.updates:
        names = [each.name for each in function.shared]
        if None in names or len(set(names)) < len(names):
            raise ArgumentError(f"sweep: the shared variables of {function.label} need names, each its own: {names}")
    split = [_arguments(each) for each in given]
    is_stated = isinstance(function, Function)
    kernel = kernel_of(function, *(split[0][0] if split and not split[0][1] else ()))
    node, task = node_of(kernel), dask.delayed(_repeated if is_stated else _call_kernel, pure=False)
    more = (calls,) if is_stated else ()
    if calls != 1 and not is_stated:
        raise ArgumentError("sweep: calls= is for functions of graphc.function, which have states")
    found = compute([task(node, args, kwargs, *more) for args, kwargs in split])
    if not is_stated:
        return Sweep(given, tuple(found), ({},) * len(given))
    return Sweep(given, tuple(each[0] for each in found), tuple(each[1] for each in found))


def _arguments(point: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(point, Mapping):
        return (), dict(point)
    return (point if isinstance(point, tuple) else (point,)), {}


def _repeated(kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any], calls: int) -> Any:
    """Call a copy of a function, whose states begin with the kernel's. Returns the result and the states."""
    function: Any = deepcopy(kernel.function())
    for _ in range(calls):
        result = function(*args, **kwargs)
    return result, {each.name: np.array(each.get_value()) for each in function.shared if function.kernel.updates}
