"""Compiled functions as dask sends them: a `Kernel`, its place in dask's graphs, the client that is asked.

In: a function of arrays, examples of its arguments. Out: a node of dask's graph under the digest of the function. A
task that calls the function has this node among its arguments, so dask itself brings it to each worker that needs it,
once, from the client or from another worker, and makes it again where the worker that had it was lost.

    kernel = kernel_of(lambda x: x * 2, np.ones(3))
    kernel(np.ones(2))                       array([2., 2.]), here or on a worker
    node_of(kernel)                          Delayed('graphc-<lambda>-5f0c...')

A kernel holds the pickled program and the entries of the cache that the client compiled for it. A worker adds entries
that it lacks to its own cache and makes the function there: it is loaded, not compiled. Where the processor is another
one, it is compiled from the graph. A worker with other versions than the client's raises an error.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
from dask.delayed import Delayed

import graphc
from graphc import cache
from graphc.errors import ArgumentError, GraphcError, GraphTypeError
from graphc.functions.callables import Function
from graphc.options import options
from graphc.startup.record import record
from graphc.startup.versions import digest_of
from graphc.tree import ravel_pytree

SHOWN = 16
"""The digits of a digest in the key of a node."""
MOST_KEPT = 256
"""The functions that a process keeps between tasks."""


@record()
class Kernel:
    """A function as it is sent. name: for keys and messages. program: the pickled function. code: the pickled entries
    of the client's cache. versions: those that both sides must have."""

    name: str
    program: bytes
    code: bytes
    versions: str

    @property
    def key(self) -> str:
        """The key of its node in dask's graphs."""
        return f"graphc-{self.name}-{digest_of(self.program + self.versions.encode())[:SHOWN]}"

    def function(self) -> Callable[..., Any]:
        """Return the function, made in this process where it is not there yet."""
        with MAKING:
            return _load_program(self, threads_of_a_call())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function()(*args, **kwargs)


MAKING = Lock()
"""Held while a function is made: several threads of a process want the same one at the beginning."""


@lru_cache(MOST_KEPT)
def _load_program(kernel: Kernel, threads: int | str) -> Callable[..., Any]:
    found = versions()
    if found != kernel.versions:
        raise GraphcError(
            f"{kernel.name} was sent by a client with other versions than {_where()} has: {_difference(kernel, found)}"
        )
    for entry in pickle.loads(kernel.code):
        if options.cache and cache.find(entry.key) is None:
            cache.store(entry)
    with options.change(threads=threads):
        function = cloudpickle.loads(kernel.program)
    made: Callable[..., Any] = function
    return made if isinstance(function, Function) else graphc.jit(made, threads=threads)


def kernel_of(function: Callable[..., Any], *examples: Any, is_sized: bool = False) -> Kernel:
    """Return the kernel of a function: a plain one, one of `jit` and its kin, or one of `graphc.function`.

    examples: arguments for which it is compiled here, before anything is sent: an error names the user's line now and
    not on a worker. Without any, it is compiled where it is first called. is_sized: their sizes are those of calls,
    and are checked too.
    """
    compiled = function if isinstance(function, Function) else None
    if compiled is None and examples:
        compiled = graphc.jit(function).function_for(*examples)
        if is_sized and compiled.mode == "compiled":
            compiled.memory(*examples)
    code = _entries(compiled) if compiled is not None and client() is not None else []
    name = str(getattr(function, "__name__", None) or getattr(function, "name", "function"))
    try:
        program = cloudpickle.dumps(function)
    except Exception as error:
        raise GraphcError(f"{name} cannot be sent to a worker: {error}") from error
    return Kernel(name, program, pickle.dumps(code), versions())


def _entries(function: Function) -> list[cache.Entry]:
    """Return what the cache has of a function, to be stored elsewhere; nothing where it is off."""
    key: Any = getattr(function, "key", None)
    loaded = None if key is None else cache.find(key)
    if loaded is None:
        return []
    plan, source = loaded.text("plan"), loaded.text("source")
    if plan is None or source is None:
        return []
    return [cache.Entry(key, plan, source, loaded.metadata, loaded.object)]


def node_of(kernel: Kernel) -> Delayed:
    """Return the node of a kernel. With a client it is kept on the cluster for as long as the node is held."""
    return kept(dask.delayed(kernel, name=kernel.key, traverse=False))


def kept(node: Delayed) -> Delayed:
    """Return a node that the cluster computes once and keeps; the same where there is no cluster."""
    found = client()
    return node if found is None else found.persist(node)


def call(*args: Any, kernel: Kernel) -> Any:
    """Call a kernel: the function of tasks."""
    return kernel(*args)


def client() -> distributed.Client | None:
    """Return the client of dask's cluster that computations go to; None for the threads of this process."""
    if dask.config.get("scheduler", None) not in (None, "distributed", "dask.distributed"):
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def compute(collections: Sequence[Any]) -> list[Any]:
    """Return the values of dask's collections, from the cluster where there is one, else from threads."""
    if client() is None:
        scheduler = dask.config.get("scheduler", None) or "threads"
        return list(dask.compute(*collections, scheduler=scheduler))
    return list(dask.compute(*collections))


# Parameters


class Unravel:
    """Makes the tree of a vector of all parameters, on each side alike: it is sent as its shapes and dtypes."""

    def __init__(self, forms: Any) -> None:
        self.forms = forms
        empty = graphc.tree.map(lambda form: np.broadcast_to(np.zeros((), form.dtype), form.shape), forms)
        self.make: Callable[[Any], Any] = ravel_pytree(empty)[1]

    def __call__(self, flat: Any) -> Any:
        return self.make(flat)

    def __reduce__(self) -> Any:
        return Unravel, (self.forms,)


def raveled(params: Any, what: str) -> tuple[Any, Unravel]:
    """Return the parameters as a vector, and what makes a tree of one. Raises GraphTypeError where they are no floats;
    what: the function that is called."""
    flat, _ = ravel_pytree(params)
    if flat.dtype.kind != "f":
        raise GraphTypeError(f"{what}: parameters are floats, to be differentiated by, and these are {flat.dtype}")
    form = graphc.tree.map(lambda each: graphc.ShapeDtypeStruct(np.shape(each), np.asarray(each).dtype), params)
    return flat, Unravel(form)


# Threads and versions


def threads_of_a_call() -> int | str:
    """Return how many threads one call may use: one where dask runs several tasks of this process at once, else what
    graphc is told otherwise (`options.threads`, OMP_NUM_THREADS, which dask's nannies set to 1)."""
    try:
        at_once = distributed.get_worker().state.nthreads
    except ValueError:
        is_alone = dask.config.get("scheduler", None) in ("sync", "synchronous", "single-threaded")
        at_once = 1 if is_alone else dask.config.get("num_workers", None) or dask.system.CPU_COUNT
    return options.threads if at_once == 1 else 1


def versions() -> str:
    """Return the versions that decide what a function computes: graphc's with a digest of its sources, NumPy's,
    Python's binary interface."""
    return f"version {graphc.__version__}; {cache.package_fingerprint()}"


def _where() -> str:
    try:
        return f"the worker {distributed.get_worker().address}"
    except ValueError:
        return "this process"


def _difference(kernel: Kernel, found: str) -> str:
    pairs = zip(kernel.versions.split("; "), found.split("; "), strict=True)
    return "; ".join(f"{sent} was sent, {own} is there" for sent, own in pairs if sent != own)


def example_of(chunk: Sequence[float], dtype: Any) -> Any:
    """Return an array of the shape and dtype of a chunk, which takes no memory; an unknown size is 2."""
    return np.broadcast_to(np.zeros((), dtype), tuple(2 if size != size else int(size) for size in chunk))  # noqa: PLR0124


# --- blocks of arrays and columns of frames ---------------------------------------------------------------------------
# Each function here is the one of dask with that name, but for what it does itself: the function is compiled before
# anything is sent, dtypes and ranks of results follow from the graph, and the kernel is one node of dask's graph.
#
#     x = da.random.normal(size=(10**6, 8), chunks=(10**5, 8))
#     map_blocks(lambda b: jnp.tanh(b) * 2, x)            dask.array of the same chunks
#     reduction(x, jnp.sum, axis=0)                       sums of blocks, then of these, in the order of blocks
#     map_columns(lambda a, b: a * b, frame, ["a", "b"])  dask.dataframe's Series

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
    for each in columns:
        if not isinstance(frame.dtypes[each], np.dtype):
            raise ArgumentError(
                f"map_columns: column {each!r} is {frame.dtypes[each]}, not of a dtype of NumPy's: use `frame.astype`"
            )
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
