"""Code that is there: from an entry of the cache, or of a file, to a library in memory.

In: a `Kernel` that was looked up. Out: `Built`, what is needed to bind native code, and a function that loads it. What
is not there build.py compiles.

    restored(kernel, found)     (Built, load_kernel); load_kernel({}) is a Library

A process that only loads functions imports this and no graphs' ops: hence nothing here rewrites, prints or compiles.
runtime.py has the matrix products that kernels call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key
from graphc.codegen.call.bind import Library, load
from graphc.codegen.call.signature import Signature
from graphc.codegen.llvm.cpu import keep_target
from graphc.codegen.pipeline.kernel import Built, Kernel, Report
from graphc.codegen.pipeline.runtime import ready_pool
from graphc.codegen.server.prestart import note_hit
from graphc.codegen.threads.settings import CHUNK, COLUMNS, PARALLEL, SETTINGS, STREAM, settings_of
from graphc.errors import GraphcError
from graphc.ir.node import CONSTANT, Array, Node
from graphc.ir.walk import nodes_of
from graphc.options import options
from graphc.startup.process import PROCESS
from graphc.startup.record import record, replace


@record(eq=False)
class Lookup:
    """The result of looking up a kernel in the cache: its entry, or nothing. A kernel of several stages has no entry.
    constants: large constants by digest, if they are known without the graph."""

    key: Key
    report: Report
    entry: store.Loaded | None
    constants: Mapping[str, Array] | None = None


def settings_of_key(kernel: Kernel) -> dict[str, str]:
    """Everything that decides the code of a kernel besides its graph."""
    places = {leaf: place for place, leaf in enumerate(kernel.shared)}
    return {
        "name": kernel.name,
        "fast_math": str(kernel.is_fast),
        "returns": kernel.returns,
        "updates": ",".join(str(places[leaf]) for leaf in kernel.updated),
        "mutable": ",".join(map(str, kernel.mutable)),
    }


class Code:
    """The code of a graph, shared by all functions of equal graphs while one of them lives: the data of its cache
    entry; its bytes, if no cache has them; and the loaded libraries, one for each setting that decides the number of
    threads."""

    def __init__(self, metadata: Mapping[str, Any], code: bytes) -> None:
        self.metadata = metadata
        self.object = code
        self.loaded: dict[Any, tuple[ref[Any], Library]] = {}

    def library(self, settings: Any) -> Library | None:
        """The library for these settings, while somebody uses it."""
        owner, library = self.loaded.get(settings, (None, None))
        alive = owner() if owner is not None else None
        return replace(library, owner=alive, code=self) if library is not None and alive is not None else None

    def keep(self, settings: Any, library: Library) -> None:
        """Remember a library for as long as its code is in memory."""
        self.loaded[settings] = ref(library.owner), replace(library, owner=None, code=None)


def codes() -> WeakValueDictionary[str, Code]:
    """The code of the functions that live, by the digests of their keys."""
    if PROCESS.codes is None:
        PROCESS.codes = WeakValueDictionary()
    loaded: WeakValueDictionary[str, Code] = PROCESS.codes
    return loaded


def restored(kernel: Kernel, lookup: Lookup) -> tuple[Built, Callable[[Mapping[str, int]], Library]] | None:
    """The code of a kernel after its lookup, from the cache or from a living function, and a function that loads it
    given the addresses of callbacks. None if there is no code, or if it does not fit."""
    report, entry = lookup.report, lookup.entry
    code = codes().get(report.key)
    linked = code.object if entry is None and code is not None else b"" if entry is None else entry.object
    if entry is not None and (code is None or code.metadata != entry.metadata):
        code = Code(entry.metadata, b"" if entry.folder else entry.object)  # what a file has may be saved again
    if code is None or not linked:
        return None
    built = restore(kernel, code.metadata, report, lookup.constants)
    if built is None:
        return None
    if entry is not None:
        note_hit()
    else:
        report.origin = "memory"
    codes()[report.key] = code
    return built, loader(kernel, code, linked, report)


def loader(kernel: Kernel, code: Code, linked: bytes, report: Report) -> Callable[[Mapping[str, int]], Library]:
    """Return a function that loads the code of a kernel, given the addresses of the user's functions. Without such
    functions, all functions of equal graphs share one copy in memory."""

    def load_kernel(symbols: Mapping[str, int]) -> Library:
        keep_target()
        wanted = threads_of(kernel)
        known = None if symbols else code.library(wanted)
        with report.phase("load"):
            library = known or load_code_of(kernel, code, linked, symbols)
        if not symbols and known is None:
            code.keep(wanted, library)
        return library

    return load_kernel


def load_code_of(kernel: Kernel, code: Code, linked: bytes, symbols: Mapping[str, int]) -> Library:
    """The code of a kernel, brought into memory."""
    addresses = dict(symbols)
    if code.metadata["products"]:
        products = import_module("graphc.codegen.pipeline.runtime")
        addresses |= products.product_addresses(code.metadata["products"], kernel.threads)
    settings = None
    if code.metadata["parallel"]:
        pool, crossover = ready_pool()
        settings = settings_of(kernel.threads, crossover)
        functions = {PARALLEL: pool.parallel, STREAM: pool.stream, CHUNK: pool.chunk, COLUMNS: pool.columns}
        addresses |= functions | {SETTINGS: settings.ctypes.data}
    return replace(load(linked, addresses, settings), code=code)


def threads_of(kernel: Kernel) -> int | str:
    """The number of threads that the calls of a kernel may use."""
    return options.threads if kernel.threads is None else kernel.threads


def restore(
    kernel: Kernel, metadata: Mapping[str, Any], report: Report, large: Mapping[str, Array] | None = None
) -> Built | None:
    """Bind a cache entry to the nodes of this graph. Returns None if it does not fit; the graph is then compiled.
    large: large constants by digest; without it those of the graph."""
    try:
        signature = Signature.from_fields(metadata["signature"])
        constants = tuple(restored_constants(kernel, metadata["constants"], large))
        wanted = metadata["calls"]
        calls: list[Node] = []
        if wanted:
            nodes = nodes_of(kernel.results)
            within = import_module("graphc.ir.body").nodes_within(nodes)
            by_identity = {tuple(identity(node)): node for node in (*within, *nodes) if node.op.version}
            calls = [by_identity[tuple(call)] for call in wanted]
    except (KeyError, ValueError, TypeError, GraphcError):
        return None
    report.origin, report.fired = "cache", list(metadata["fired"])
    report.plan = ""
    return Built(signature, "", constants, tuple(calls), report)


def restored_constants(
    kernel: Kernel, stored: Sequence[tuple[str, tuple[int, ...], str | bytes]], large: Mapping[str, Array] | None
) -> list[Array]:
    """The constants of an entry. Raises KeyError where the graph lacks one."""
    is_large = any(isinstance(data, str) for _, _, data in stored)
    by_digest = large if large is not None else large_constants(kernel) if is_large else {}
    return [
        by_digest[data] if isinstance(data, str) else np.frombuffer(data, dtype).reshape(shape)
        for dtype, shape, data in stored
    ]


def large_constants(kernel: Kernel) -> dict[str, Array]:
    """The large constants of a graph as it is written, by their digests."""
    nodes = nodes_of(kernel.results)
    within = import_module("graphc.ir.body").nodes_within(nodes)
    values = (node.attrs["value"] for node in (*nodes, *within) if node.op is CONSTANT)
    return {value.digest: value.value for value in values if value.digest is not None}


def identity(node: Node) -> list[Any]:
    """The identity of a user's op and the types it is applied to, as far as they are known without a call."""
    shapes = [[size if isinstance(size, int) else None for size in n.type.shape] for n in (*node.args, node)]
    dtypes = [n.type.dtype for n in (*node.args, node)]
    attrs = [f"{name}={value!r}" for name, value in sorted(node.attrs.items())]
    kinds = [f"{dtype}{shape}" for dtype, shape in zip(dtypes, shapes, strict=True)]
    return [node.op.name, node.op.version, *attrs, *kinds]
