"""Training on more rows than fit into memory: `fit`, by all rows at each step or by some shards.

In: loss(params, *blocks), the sum over the rows of a block; parameters; arrays or frames of dask's. Out: a `Fit`: the
parameters that minimise the mean over all rows plus a penalty, and the state from which another call goes on.

    found = fit(loss, np.zeros(8), x, y)                                        L-BFGS
    found = fit(loss, np.zeros(8), x, y, method="newton")                       products with the exact Hessian
    found = fit(loss, np.zeros(8), x, y, method=graphc.optimizers.adam(0.1), epochs=3, batch=4)

The steps are taken here, by SciPy or by an optimiser; the shards' sums are the workers' (`SummedLoss`). Each step reads
the shards that it needs again: dask holds few at a time, unless they are persisted. A worker that is lost costs the
shards that it had, no step: the parameters and the state are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed

import graphc
from graphc import numpy as jnp
from graphc.distributed.blocks import SPLIT, block_of, rows_of
from graphc.distributed.kernels import Kernel, compute, kernel_of, node_of, raveled
from graphc.errors import ArgumentError
from graphc.optimizers import Optimizer, apply_updates
from graphc.startup.record import record

METHODS = {name: name for name in "L-BFGS-B BFGS CG trust-ncg trust-krylov".split()}
METHODS |= {"l-bfgs": "L-BFGS-B", "newton": "trust-ncg"}
"""Names of methods, and what SciPy calls them."""
PRODUCTS = "trust-ncg", "trust-krylov"
"""Methods of SciPy's that take products with the Hessian."""
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
    an unknown method.

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
    mean: _Mean,
    rows: Sequence[da.Array],
    method: str,
    begin: Any,
    steps: int,
    tol: float,
    callback: Callback | None,
) -> Fit:
    history: list[float] = []

    def after(intermediate_result: Any) -> None:
        history.append(float(intermediate_result.fun))
        if callback is not None:
            callback(len(history), history[-1])

    known: dict[str, Any] = {"options": {"maxiter": steps, "gtol": tol}}
    if method in PRODUCTS:
        known["hessp"] = lambda flat, vector: mean.product(flat, vector, rows)
    elif method == METHODS["l-bfgs"]:
        known["options"]["ftol"] = 0.0
    found = import_module("scipy.optimize").minimize(
        lambda flat: mean.value_and_grad(flat, rows), begin, jac=True, method=method, callback=after, **known
    )
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
        self.blocks = [block_of(each) for each in data]
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
        kernel = kernel_of(program, *examples)
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
            adjust_chunks={"rows": _one},
            concatenate=True,
            meta=np.empty((0, 0)),
        )
        (total,) = compute([parts.sum(axis=0, split_every=SPLIT)])
        return total


def _one(size: Any) -> int:
    return 1


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
