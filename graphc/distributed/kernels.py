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
import distributed
import numpy as np
from dask.delayed import Delayed

import graphc
from graphc import cache
from graphc.errors import GraphcError, GraphTypeError
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


def kernel_of(function: Callable[..., Any], *examples: Any) -> Kernel:
    """Return the kernel of a function: a plain one, one of `jit` and its kin, or one of `graphc.function`.

    examples: arguments for which it is compiled here, before anything is sent: an error names the user's line now and
    not on a worker. Without any, it is compiled where it is first called.
    """
    compiled = function if isinstance(function, Function) else None
    if compiled is None and examples:
        compiled = graphc.jit(function).function_for(*examples)
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
    made: Delayed = node if found is None else found.persist(node)
    return made


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
    return flat, Unravel(graphc.tree.map(lambda each: _form(np.asarray(each)), params))


def _form(leaf: Any) -> Any:
    return graphc.ShapeDtypeStruct(leaf.shape, leaf.dtype)


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
