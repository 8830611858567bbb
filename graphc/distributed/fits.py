"""Training on more rows than fit into memory: `fit`; many runs of one function: `minimize`, `sweep`.

In: loss(params, *blocks), the sum over the rows of a block; parameters; arrays or frames of dask's. Out: a `Fit`: the
parameters that minimise the mean over all rows plus a penalty, and the state from which another call goes on.

    found = fit(loss, np.zeros(8), x, y)                                        L-BFGS, by all rows at each step
    found = fit(loss, np.zeros(8), x, y, method="newton")                       products with the exact Hessian
    found = fit(loss, np.zeros(8), x, y, method=graphc.optimizers.adam(0.1), epochs=3, batch=4)

The steps are taken here, by SciPy or by an optimiser; the shards' sums are the workers' (`SummedLoss`). Each step reads
the shards that it needs again: dask holds few at a time, unless they are persisted. A worker that is lost costs the
shards that it had, no step: the parameters and the state are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed

import graphc
from graphc import numpy as jnp
from graphc.distributed.kernels import SPLIT, Kernel, compute, example_of, kernel_of, node_of, raveled, rows_of
from graphc.errors import ArgumentError
from graphc.functions.callables import Function
from graphc.optimizers import Optimizer, apply_updates
from graphc.scipy import optimize
from graphc.scipy.optimize import driven
from graphc.scipy.optimize.minima import OPTIONS as NATIVE
from graphc.scipy.optimize.parameters import Packing, read_constraints
from graphc.startup.record import record

METHODS = {name: name for name in "L-BFGS-B BFGS CG trust-ncg trust-krylov".split()}
METHODS |= {"l-bfgs": "L-BFGS-B", "newton": "trust-ncg"}
"""Names of methods, and what SciPy calls them."""
Callback = Callable[[int, float], Any]


@record(eq=False)
class Fit:
    """The result of `fit`. params: a tree as it was given. value: the mean loss over all rows plus the penalty, or of
    an optimiser that of the last step before it. steps: how many were taken. success, message: whether and why it
    ended. history: the value at each step. state: what `fit(..., state=)` goes on from."""

    params: Any
    value: float
    steps: int
    success: bool
    message: str
    history: tuple[float, ...]
    state: State


@record(eq=False)
class State:
    """The state of a fit by an optimiser. params: the parameters as a vector; optimizer: the optimiser's state; epoch:
    how many were made. Of other methods only `params` is used."""

    params: Any
    optimizer: Any = None
    epoch: int = 0


def fit(
    loss: Callable[..., Any],
    params: Any,
    *data: Any,
    method: str | Optimizer = "l-bfgs",
    penalty: Callable[[Any], Any] | None = None,
    steps: int = 200,
    tol: float = 1e-6,
    epochs: int = 1,
    batch: int = 1,
    seed: int = 0,
    state: State | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Return the parameters that minimise the mean of a loss over all rows.

    loss(params, *blocks): the sum over the rows of a block, a number. params: a tree of floats, where the fit begins.
    data: arrays, frames or series of dask's, whose first axis is that of the rows. penalty(params): a number that is
    added to the mean.

    method: "l-bfgs" (Byrd, Lu, Nocedal and Zhu 1995) or "newton" (trust regions with conjugate gradients, Steihaug
    1983), or by their names in SciPy, "L-BFGS-B" and "trust-ncg", "BFGS", "CG" and "trust-krylov"; all over all rows at
    each of at most `steps` steps, until the largest or the norm of the gradient is below `tol`; or an optimiser of
    `graphc.optimizers`, which makes a step for each `batch` shards, `epochs` times through all shards in an order that
    `seed` and the number of the epoch decide. callback(step, value) is called after each step. state: of an earlier
    fit, to go on from.

    Results are the same to the bit on any number of workers, and on threads without a cluster. Raises ArgumentError for
    an unknown method, and where a search over all shards would begin with NaN.

        >>> x = da.arange(8.0, chunks=2)
        >>> found = fit(lambda w, x: jnp.sum((w * x - 3 * x) ** 2), 0.0, x)
        >>> round(float(found.params), 6), found.success
        (3.0, True)
    """
    if not data:
        raise ArgumentError("fit: there are no rows: give arrays or frames of dask's")
    rows = [rows_of(each) for each in data]
    mean = _Mean(SummedLoss(loss, params, rows), penalty)
    begin = mean.total.flat if state is None else state.params
    if isinstance(method, Optimizer):
        return _stochastic(mean, rows, method, epochs, batch, seed, state or State(begin), callback)
    if method not in METHODS:
        raise ArgumentError(f"fit: method {method!r} is none of {list(METHODS)} and no optimiser of graphc.optimizers")
    return _full(mean, rows, METHODS[method], begin, steps, tol, callback)


class _Mean:
    """The mean loss over rows plus a penalty, of the vector of all parameters."""

    def __init__(self, total: SummedLoss, penalty: Callable[[Any], Any] | None) -> None:
        self.total = total
        self.rows: float | None = None
        self.penalty, self.curvature = None, None
        if penalty is not None:
            added = lambda flat: penalty(total.unravel(flat))  # noqa: E731
            self.penalty = graphc.value_and_grad(added)
            self.curvature = graphc.jit(lambda flat, vector: graphc.jvp(graphc.grad(added), (flat,), (vector,))[1])

    def value_and_grad(self, flat: Any, data: Sequence[da.Array]) -> tuple[float, Any]:
        value, slope, self.rows = self.total.value_and_grad(flat, data)
        if not self.rows:
            raise ArgumentError("fit: the arrays have no rows")
        value, slope = value / self.rows, slope / self.rows
        if self.penalty is None:
            return value, slope
        more, steeper = self.penalty(np.asarray(flat, self.total.flat.dtype))
        return value + float(more), slope + steeper

    def product(self, flat: Any, vector: Any, data: Sequence[da.Array]) -> Any:
        if self.rows is None:
            self.value_and_grad(flat, data)
        product, kind = self.total.product(flat, vector, data) / self.rows, self.total.flat.dtype
        if self.curvature is None:
            return product
        return product + self.curvature(np.asarray(flat, kind), np.asarray(vector, kind))


def _full(
    mean: _Mean, rows: Sequence[da.Array], method: str, begin: Any, steps: int, tol: float, callback: Callback | None
) -> Fit:
    history: list[float] = []

    def after(intermediate_result: Any) -> None:
        history.append(float(intermediate_result.fun))
        if callback is not None:
            callback(len(history), history[-1])

    known: dict[str, Any] = {"options": {"maxiter": steps, "gtol": tol}}
    if method in driven.PRODUCTS:
        known["hessp"] = lambda flat, vector: mean.product(flat, vector, rows)
    elif method == METHODS["l-bfgs"]:
        known["options"]["ftol"] = 0.0

    def objective(flat: Any) -> tuple[float, Any]:
        value, slope = mean.value_and_grad(flat, rows)
        if np.isnan(value) and np.array_equal(flat, begin):
            raise ArgumentError("fit: the loss is NaN for the parameters that it begins with")
        return value, slope

    found = import_module("scipy.optimize").minimize(objective, begin, jac=True, method=method, callback=after, **known)
    params = mean.total.unravel(found.x)
    return Fit(params, float(found.fun), found.nit, bool(found.success), found.message, tuple(history), State(found.x))


def _stochastic(
    mean: _Mean,
    rows: Sequence[da.Array],
    method: Optimizer,
    epochs: int,
    batch: int,
    seed: int,
    state: State,
    callback: Callback | None,
) -> Fit:
    if batch < 1 or epochs < 1:
        raise ArgumentError(f"fit: batch={batch} and epochs={epochs} must be 1 or more")
    flat = np.asarray(state.params, mean.total.flat.dtype)
    inner = method.init(flat) if state.optimizer is None else state.optimizer
    shards = _alike(rows)
    history: list[float] = []
    for epoch in range(state.epoch, state.epoch + epochs):
        for chosen in _batches(shards[0].numblocks[0], batch, seed, epoch):
            some = [each.blocks[chosen] for each in shards]
            value, slope = mean.value_and_grad(flat, some)
            updates, inner = method.update(np.asarray(slope, flat.dtype), inner, flat)
            flat = np.asarray(apply_updates(flat, updates))
            history.append(value)
            if callback is not None:
                callback(len(history), value)
    message = f"{epochs} epochs were made"
    done = State(flat, inner, state.epoch + epochs)
    return Fit(mean.total.unravel(flat), history[-1], len(history), True, message, tuple(history), done)


def _alike(rows: Sequence[da.Array]) -> list[da.Array]:
    """Return arrays whose shards have the same rows."""
    if len({each.chunks[0] for each in rows}) > 1 and not any(
        np.isnan(size) for each in rows for size in each.chunks[0]
    ):
        return [each.rechunk({0: rows[0].chunks[0]}) for each in rows]
    if len({each.numblocks[0] for each in rows}) > 1:
        raise ArgumentError(f"fit: the arrays have {[each.numblocks[0] for each in rows]} blocks of rows")
    return list(rows)


def _batches(count: int, batch: int, seed: int, epoch: int) -> Iterator[list[int]]:
    """Yield the numbers of the shards of each step of an epoch."""
    order = np.random.default_rng([seed, epoch]).permutation(count).tolist()
    for begin in range(0, count, batch):
        yield order[begin : begin + batch]


# --- sums of a loss over shards ---------------------------------------------------------------------------------------
# Sums of a loss over rows that are spread over workers: value, gradient, products with the Hessian.
#
# In: loss(params, *blocks), the sum over the rows of a block; parameters; arrays or frames of dask's with the same
# rows. Out: the sum over all rows and its derivatives by the parameters.
#
#     def loss(w, x, y):
#         return jnp.sum((x @ w - y) ** 2)
#
#     value_and_grad(loss)(np.zeros(8), x, y)        (value, gradient)
#
# A shard is a block of rows. Its task gives one vector: the value, the number of rows, the gradient. dask adds these
# vectors up by a tree of 8 that follows the order of the shards. So neither the number of workers nor the time at which
# one is done, nor a worker that is lost, changes a bit of the sum.

HEAD = 2
"""The elements of a shard's vector before the derivative: the value and the number of rows."""


class SummedLoss:
    """A loss summed over rows, as a function of one vector of all parameters.

    flat: the parameters as a vector; unravel: makes the tree of a vector. Each method takes arrays of rows.
    """

    def __init__(self, loss: Callable[..., Any], params: Any, data: Sequence[da.Array]) -> None:
        self.flat, self.unravel = raveled(params, "value_and_grad")
        self.loss = loss
        self.blocks = [example_of([each.chunks[0][0], *each.shape[1:]], each.dtype) for each in data]
        known = [size for each in data for size in (each.chunks[0][0], *each.shape[1:])]
        self.is_sized = not np.isnan(known).any() and len({each.chunks[0][0] for each in data}) == 1
        self.gradients: tuple[Kernel, Delayed] | None = None
        self.curvatures: tuple[Kernel, Delayed] | None = None

    def value_and_grad(self, flat: Any, data: Sequence[da.Array]) -> tuple[float, Any, float]:
        """Return the sum, its gradient as a vector of float64, and the number of rows."""
        if self.gradients is None:
            self.gradients = self._sent(_Slopes(self.loss, self.unravel), self.flat, *self.blocks)
        found = self._summed(self.gradients, [flat], data)
        return float(found[0]), found[HEAD:], float(found[1])

    def product(self, flat: Any, vector: Any, data: Sequence[da.Array]) -> Any:
        """Return the exact product of the Hessian with a vector, summed over rows."""
        if self.curvatures is None:
            self.curvatures = self._sent(_Products(self.loss, self.unravel), self.flat, self.flat, *self.blocks)
        return self._summed(self.curvatures, [flat, vector], data)[HEAD:]

    def _sent(self, program: Callable[..., Any], *examples: Any) -> tuple[Kernel, Delayed]:
        kernel = kernel_of(program, *examples, is_sized=self.is_sized)
        return kernel, node_of(kernel)

    def _summed(self, sent: tuple[Kernel, Delayed], vectors: Sequence[Any], data: Sequence[da.Array]) -> Any:
        """Return the sum of the vectors of all shards."""
        given = [np.asarray(each, self.flat.dtype) for each in vectors]
        point = dask.delayed(given, name=f"graphc-point-{tokenize(given)}", traverse=False)
        pairs = [part for each in data for part in (each, ("rows", *(f"{id(each)}-{k}" for k in range(1, each.ndim))))]
        parts = da.blockwise(
            _shard,
            ("rows", "vector"),
            *pairs,
            kernel=sent[1],
            point=point,
            new_axes={"vector": HEAD + self.flat.size},
            adjust_chunks={"rows": lambda size: 1},
            concatenate=True,
            meta=np.empty((0, 0)),
        )
        (total,) = compute([parts.sum(axis=0, split_every=SPLIT)])
        return total


def _shard(*blocks: Any, kernel: Kernel, point: list[Any]) -> Any:
    return kernel(*point, *blocks)[None]


class _Slopes:
    """The vector of a shard: the value, the number of rows, the gradient."""

    def __init__(self, loss: Callable[..., Any], unravel: Callable[[Any], Any]) -> None:
        self.loss, self.unravel = loss, unravel
        self.__name__ = f"slopes_of_{getattr(loss, '__name__', 'loss')}"

    def __call__(self, flat: Any, *blocks: Any) -> Any:
        value, slope = graphc.value_and_grad(lambda v: self.loss(self.unravel(v), *blocks))(flat)
        return _vector(value, blocks, slope)


class _Products(_Slopes):
    """The same with a product of the Hessian in place of the gradient."""

    def __call__(self, flat: Any, vector: Any, *blocks: Any) -> Any:
        product = graphc.jvp(graphc.grad(lambda v: self.loss(self.unravel(v), *blocks)), (flat,), (vector,))[1]
        return _vector(jnp.zeros(()), blocks, product)


def _vector(value: Any, blocks: Sequence[Any], derivative: Any) -> Any:
    head = jnp.stack([jnp.asarray(value, "float64"), jnp.asarray(blocks[0].shape[0], "float64")])
    return jnp.concatenate([head, derivative.astype("float64")])


def value_and_grad(loss: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Return a function of (params, *data) that gives the sum of a loss over all rows, and its gradient.

    loss(params, *blocks): the sum over the rows of a block, a number. params: a tree of floats. data: arrays, frames or
    series of dask's whose first axis is that of the rows; the blocks of each along other axes are joined. The value is
    a float64, the gradient a tree like the parameters. Sums are those of float64, and the same to the bit on any number
    of workers. Raises GraphTypeError for parameters that are no floats.

        >>> x = da.arange(6.0, chunks=2)
        >>> value_and_grad(lambda w, x: jnp.sum((w * x) ** 2))(2.0, x)
        (220.0, array(220.))
    """
    known: dict[Any, SummedLoss] = {}

    def summed(params: Any, *data: Any) -> tuple[Any, Any]:
        if not data:
            raise ArgumentError("value_and_grad: there are no rows: give arrays or frames of dask's")
        rows = [rows_of(each) for each in data]
        flat, unravel = raveled(params, "value_and_grad")
        shapes = [np.shape(each) for each in graphc.tree.leaves(params)]
        form = graphc.tree.structure(params), str(shapes), flat.dtype, *((each.dtype, each.ndim) for each in rows)
        if form not in known:
            known[form] = SummedLoss(loss, params, rows)
        value, slope, _ = known[form].value_and_grad(flat, rows)
        return value, unravel(slope)

    return summed


# --- many runs of one function ----------------------------------------------------------------------------------------
# Results are in the order in which starts or points were given, whichever was done first.
#
#     minimize(fun, starts).params                           the best minimum of all
#     sweep(f, grid(rate=[0.1, 0.2], depth=[2, 3])).results  four results


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
        more: dict[str, Any] = {"constraints": [self._of_vector(each) for each in self.limits]} if self.limits else {}
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
    limits = read_constraints(packing, constraints)
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
    if kind in driven.VALUES:
        return [kernel_of(value, flat)]
    both = kernel_of(graphc.value_and_grad(value), flat)
    if kind in driven.MATRICES:
        return [both, kernel_of(graphc.hessian(value), flat)]
    if kind in driven.PRODUCTS:
        slope = graphc.grad(value)
        return [both, kernel_of(lambda v, along: graphc.jvp(slope, (v,), (along,))[1], flat, flat)]
    return [both]


def _searched(flat: Any, both: Kernel, more: Kernel | None = None, *, method: str, **settings: Any) -> Any:
    """Search from one start by a method of SciPy's: the task."""
    kind = method.lower()
    known: dict[str, Any] = {} if kind in driven.VALUES else {"jac": True}
    if more is not None:
        known["hess" if kind in driven.MATRICES else "hessp"] = more
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
    """Return all combinations of values by name, the last name fastest. Raises ArgumentError for values that cannot be
    iterated over.

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
