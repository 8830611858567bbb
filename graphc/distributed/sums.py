"""Sums of a loss over rows that are spread over workers: value, gradient, products with the Hessian.

In: loss(params, *blocks), the sum over the rows of a block; parameters; arrays or frames of dask's with the same rows.
Out: the sum over all rows and its derivatives by the parameters.

    def loss(w, x, y):
        return jnp.sum((x @ w - y) ** 2)

    value_and_grad(loss)(np.zeros(8), x, y)        (value, gradient)

A shard is a block of rows. Its task gives one vector: the value, the number of rows, the gradient. dask adds these
vectors up by a tree of 8 that follows the order of the shards. So neither the number of workers nor the time at which
one is done, nor a worker that is lost, changes a bit of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

HEAD = 2
"""The elements of a shard's vector before the derivative: the value and the number of rows."""


class Total:
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
    known: dict[Any, Total] = {}

    def summed(params: Any, *data: Any) -> tuple[Any, Any]:
        if not data:
            raise ArgumentError("value_and_grad: there are no rows: give arrays or frames of dask's")
        rows = [rows_of(each) for each in data]
        flat, unravel = raveled(params, "value_and_grad")
        shapes = [np.shape(each) for each in graphc.tree.leaves(params)]
        form = graphc.tree.structure(params), str(shapes), flat.dtype, *((each.dtype, each.ndim) for each in rows)
        if form not in known:
            known[form] = Total(loss, params, rows)
        value, slope, _ = known[form].value_and_grad(flat, rows)
        return value, unravel(slope)

    return summed
