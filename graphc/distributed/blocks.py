"""Compiled functions over the blocks of `dask.array` and the columns of `dask.dataframe`.

In: a function of arrays, dask's arrays or frames. Out: dask's arrays or series, lazy as dask's own. Each function here
is the one of dask with that name, but for what it does itself: the function is compiled before anything is sent, dtypes
and ranks of results follow from the graph, and the kernel is one node of dask's graph (`kernels.py`).

    x = da.random.normal(size=(10**6, 8), chunks=(10**5, 8))
    map_blocks(lambda b: jnp.tanh(b) * 2, x)            dask.array of the same chunks
    reduction(x, jnp.sum, axis=0)                       sums of blocks, then of these, in the order of blocks
    map_columns(lambda a, b: a * b, frame, ["a", "b"])  dask.dataframe's Series
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

import graphc
from graphc.distributed.kernels import Kernel, call, example_of, kernel_of, node_of
from graphc.errors import ArgumentError, GraphcError
from graphc.functions.callables import Function

SPLIT = 8
"""The number of partial results that a node of a tree of sums has."""


def map_blocks(function: Callable[..., Any], *arrays: Any, chunks: Any = None, **keywords: Any) -> da.Array:
    """Return dask's array of `function(*blocks)` for the blocks at each place, as `dask.array.map_blocks`.

    function: of arrays, with one array as result. arrays: dask's, aligned as NumPy broadcasts; numbers and NumPy's
    arrays as dask takes them. chunks: the sizes of the results where they are not those of the arguments; keywords:
    `drop_axis`, `new_axis`, `name` as dask's. Raises GraphcError for a function with updates, and where the function
    does not fit the blocks, before anything runs.

        >>> map_blocks(lambda b: b * 2.0, da.arange(6, chunks=3)).compute().tolist()
        [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    kernel, made = _prepared("map_blocks", function, [block_of(each) for each in arrays])
    return da.map_blocks(call, *arrays, kernel=node_of(kernel), chunks=chunks, meta=made, **keywords)


def blockwise(function: Callable[..., Any], out: Any, *pairs: Any, **keywords: Any) -> da.Array:
    """Return a contraction or product of blocks by indices, as `dask.array.blockwise`.

    function: of the blocks; where an index of an argument is none of the result, its blocks are concatenated along it.
    out: the indices of the result; pairs: arrays, each followed by its indices. keywords: as dask's, but `concatenate`.

        >>> x = da.ones((4, 6), chunks=(2, 3))
        >>> blockwise(lambda a, b: a @ b, "ik", x, "ij", x.T, "jk").compute()[0].tolist()
        [6.0, 6.0, 6.0, 6.0]
    """
    arrays, indices = pairs[::2], pairs[1::2]
    examples = [
        example_of([c[0] if i in out else sum(c) for c, i in zip(each.chunks, places, strict=True)], each.dtype)
        if places is not None
        else each
        for each, places in zip(arrays, indices, strict=True)
    ]
    kernel, made = _prepared("blockwise", function, examples)
    if made.ndim != len(tuple(out)):
        raise ArgumentError(f"blockwise: {kernel.name} gives {made.ndim} axes, and {out!r} names {len(tuple(out))}")
    return da.blockwise(call, out, *pairs, kernel=node_of(kernel), concatenate=True, meta=made, **keywords)


def reduction(
    x: da.Array,
    chunk: Callable[..., Any],
    combine: Callable[..., Any] | None = None,
    aggregate: Callable[..., Any] | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    split_every: int = SPLIT,
) -> da.Array:
    """Return a reduction over blocks by a tree in their order, as `dask.array.reduction`.

    chunk(block, axis=, keepdims=True): the partial result of a block, of size 1 along the axes. combine: of several
    partial results, concatenated along the axes, by default as `chunk`; aggregate: the last step, by default as
    `combine`. The tree depends on the number of blocks and on `split_every` alone, so that the result is the same to
    the bit wherever and whenever its parts are computed.

        >>> float(reduction(da.arange(10.0, chunks=3), jnp.max).compute())
        9.0
    """
    given = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    if split_every < 2 or any(not -x.ndim <= each < x.ndim for each in given):
        raise ArgumentError(f"reduction: an array of {x.ndim} axes has not axis {axis!r}, or split_every is below 2")
    axes = tuple(each % x.ndim for each in given)
    combine = combine or chunk
    partial = _reduced(x, chunk, axes)
    while max(partial.numblocks[each] for each in axes) > split_every:
        partial = _reduced(partial.rechunk(dict.fromkeys(axes, split_every)), combine, axes)
    whole = _reduced(partial.rechunk(dict.fromkeys(axes, -1)), aggregate or combine, axes)
    return whole if keepdims else da.squeeze(whole, axis=axes)


def _reduced(x: da.Array, step: Callable[..., Any], axes: tuple[int, ...]) -> da.Array:
    """Return an array of one element for each block along the axes."""
    kernel, made = _prepared("reduction", _Reducing(step, axes), [block_of(x)])
    if made.ndim != x.ndim:
        raise ArgumentError(f"reduction: {kernel.name} gives {made.ndim} axes of {x.ndim}: it has to keep them")
    places = tuple(range(x.ndim))
    ones = dict.fromkeys(axes, 1)
    return da.blockwise(call, places, x, places, kernel=node_of(kernel), adjust_chunks=ones, meta=made)


class _Reducing:
    """A step of a reduction as a function of blocks alone."""

    def __init__(self, step: Callable[..., Any], axes: tuple[int, ...]) -> None:
        self.step, self.axes = step, axes
        self.__name__ = str(getattr(step, "__name__", "step"))

    def __call__(self, block: Any) -> Any:
        return self.step(block, axis=self.axes, keepdims=True)


def apply_gufunc(function: Callable[..., Any], signature: str, *arrays: Any, **keywords: Any) -> Any:
    """Return a generalised ufunc of dask's arrays, as `dask.array.apply_gufunc`.

    function: of arrays with the axes that `signature` names, "(i,j),(j)->(i)"; it is applied along all other axes,
    which broadcast, in one compiled loop for each block. A tuple of arrays for several results. keywords: as dask's,
    but for `vectorize`, `output_dtypes` and `output_sizes`, which follow from the graph.

        >>> x = da.ones((6, 4), chunks=(2, 4))
        >>> apply_gufunc(lambda row: jnp.sum(row), "(i)->()", x).compute().tolist()
        [4.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    """
    given, wanted = _signature(signature)
    if len(given) != len(arrays):
        raise ArgumentError(f"apply_gufunc: {signature!r} has {len(given)} arguments, and {len(arrays)} are given")
    examples = [block_of(each) for each in map(da.asarray, arrays)]
    kernel = kernel_of(graphc.vectorize(function, signature=signature), *examples)
    shapes = graphc.tree.leaves(graphc.eval_shape(kernel.function(), *examples))
    known = {name for each in given for name in each}
    sizes: dict[str, int] = {}
    for names, result in zip(wanted, shapes, strict=True):
        core = result.shape[len(result.shape) - len(names) :]
        sizes.update({name: size for name, size in zip(names, core, strict=True) if name not in known})
    metas = [_empty(each) for each in shapes]
    meta = tuple(metas) if len(metas) > 1 else metas[0]
    return da.apply_gufunc(call, signature, *arrays, kernel=node_of(kernel), output_sizes=sizes, meta=meta, **keywords)


def _signature(text: str) -> tuple[list[list[str]], list[list[str]]]:
    """Return the names of the axes of arguments and of results."""
    sides = text.replace(" ", "").split("->")
    if len(sides) != 2 or not all(side.startswith("(") and side.endswith(")") for side in sides):
        raise ArgumentError(f'apply_gufunc: {text!r} is no signature such as "(i,j),(j)->(i)"')
    named = [[[name for name in each.split(",") if name] for each in side[1:-1].split("),(")] for side in sides]
    return named[0], named[1]


def map_columns(
    function: Callable[..., Any], frame: dd.DataFrame, columns: Sequence[str], name: Any = None
) -> dd.Series:
    """Return the series of `function(*columns)` for each partition of a frame, with the index of the frame.

    function: of one vector for each column, with a vector of the same length. name: of the series.

        >>> frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]}), npartitions=2)
        >>> map_columns(lambda a, b: a * b, frame, ["a", "b"]).compute().tolist()
        [3.0, 10.0]
    """
    missing = [each for each in columns if each not in frame.columns]
    if missing:
        raise ArgumentError(f"map_columns: the frame has no column {missing[0]!r}; it has {list(frame.columns)}")
    examples = [example_of([2], frame.dtypes[each]) for each in columns]
    kernel, made = _prepared("map_columns", function, examples)
    if made.ndim != 1:
        raise ArgumentError(f"map_columns: {kernel.name} gives {made.ndim} axes, not one number for each row")
    return frame.map_partitions(_column, list(columns), name, kernel=node_of(kernel), meta=(name, made.dtype))


def _column(part: Any, columns: list[str], name: Any, kernel: Kernel) -> Any:
    found = kernel(*(part[each].to_numpy() for each in columns))
    return pd.Series(found, index=part.index, name=name)


def rows_of(data: Any) -> da.Array:
    """Return dask's array of a frame, a series or an array, whose first axis is that of the rows."""
    if isinstance(data, (dd.DataFrame, dd.Series)):
        return data.to_dask_array()
    if isinstance(data, da.Array) and data.ndim:
        return data
    given = type(data).__name__
    raise ArgumentError(f"rows are those of an array or a frame of dask's, not of {given}: da.from_array makes one")


def block_of(array: Any) -> Any:
    """Return an example of a block of dask's array; anything else as it is."""
    return example_of([each[0] for each in array.chunks], array.dtype) if isinstance(array, da.Array) else array


def _prepared(what: str, function: Callable[..., Any], examples: Sequence[Any]) -> tuple[Kernel, Any]:
    """Return the kernel of a function, and an empty array like its result."""
    if isinstance(function, Function):
        if function.kernel.updates:
            raise GraphcError(
                f"{what}: {function.label} has updates, which blocks in no order would make: `sweep` returns states"
            )
        result = function.kernel.outputs[0].type
        return kernel_of(function), np.empty((0,) * result.ndim, result.dtype)
    kernel = kernel_of(function, *examples)
    shapes = graphc.tree.leaves(graphc.eval_shape(kernel.function(), *examples))
    if len(shapes) != 1:
        raise ArgumentError(f"{what}: {kernel.name} returns {len(shapes)} arrays, not one")
    return kernel, _empty(shapes[0])


def _empty(shape: Any) -> Any:
    return np.empty((0,) * len(shape.shape), shape.dtype)
