"""Many runs of one function over workers: `minimize` from many starts, `sweep` over parameters.

In: a function, starts or points. Out: results in the order in which these were given, whichever was done first.

    minimize(fun, starts).params                           the best minimum of all
    sweep(f, grid(rate=[0.1, 0.2], depth=[2, 3])).results  four results
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any

import dask
import numpy as np

from graphc.distributed.kernels import Kernel, compute, kernel_of, node_of, raveled
from graphc.errors import ArgumentError
from graphc.functions.callables import Function
from graphc.scipy import optimize
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
    """The minimum from one start, as a function of the vector of all parameters."""

    def __init__(self, fun: Callable[..., Any], unravel: Callable[[Any], Any], options: Mapping[str, Any]) -> None:
        self.fun, self.unravel, self.options = fun, unravel, dict(options)
        self.__name__ = f"minimum_of_{getattr(fun, '__name__', 'function')}"

    def __call__(self, flat: Any) -> Any:
        found = optimize.minimize(lambda v: self.fun(self.unravel(v)), flat, method="BFGS", options=self.options)
        return found.x, found.fun, found.success, found.nit


def minimize(fun: Callable[[Any], Any], starts: Iterable[Any], **options: Any) -> Minima:
    """Return the least of the minima that are reached from many starts, each a task of one compiled loop.

    fun(params): a number. starts: trees of floats of one form. options: of `graphc.scipy.optimize.minimize` with the
    method BFGS: `gtol`, `maxiter`. Raises ArgumentError without a start.

        >>> found = minimize(lambda x: jnp.cos(x) + 0.01 * x**2, [0.5, 4.0, -9.0])
        >>> round(float(found.params), 3), found.success.tolist()
        (3.08, [True, True, True])
    """
    vectors = [raveled(each, "minimize") for each in starts]
    if not vectors:
        raise ArgumentError("minimize: there is no start")
    program = _Minimum(fun, vectors[0][1], options)
    kernel = kernel_of(program, vectors[0][0])
    node, task = node_of(kernel), dask.delayed(_called, pure=False)
    found = compute([task(node, (flat,), {}) for flat, _ in vectors])
    params = tuple(unravel(each[0]) for (_, unravel), each in zip(vectors, found, strict=True))
    values = np.array([float(each[1]) for each in found])
    best = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
    success, steps = np.array([bool(each[2]) for each in found]), np.array([int(each[3]) for each in found])
    return Minima(params[best], float(values[best]), params, values, success, steps)


def _called(kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
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
    node, task = node_of(kernel), dask.delayed(_repeated if is_stated else _called, pure=False)
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
