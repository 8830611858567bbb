"""A function's graph to a loaded library: found in the store, or generated, compiled and stored.

In: a `Kernel` as the user wrote it. Out: `Built`: what is needed to bind native code, and a report of how it came
about.
On a hit nothing is rewritten, generated or compiled, and the modules that could are not even imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from graphc.arrays.dtypes import FLOATS
from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key, make_key
from graphc.codegen.call.bind import EXPORTS, Library, load
from graphc.codegen.call.signature import Signature
from graphc.codegen.gemm.api import (
    FINDER,
    LARGE_USERS,
    PRODUCT_WORDS,
    SUFFIXES,
    VECTOR_FINDERS,
    VECTORS,
    blas_symbols,
    blocks_name,
    defer,
    defer_word,
    load_blocks,
    vector_name,
    with_callees,
)
from graphc.codegen.link.image import load as load_code
from graphc.codegen.llvm.cpu import keep_target
from graphc.codegen.pipeline.kernel import Built, Kernel, Report, told_when_slow
from graphc.codegen.pipeline.runtime import (
    ENTRY_POINTS,
    begin_entry_points,
    keep_part,
    missing_parts,
    part_code,
    ready_part,
    ready_pool,
)
from graphc.codegen.server.prestart import note_hit
from graphc.codegen.threads.chunking import CHUNK, PARALLEL, SETTINGS, STREAM
from graphc.codegen.threads.settings import DEFAULT_CROSSOVER, Pool, Words, settings_of
from graphc.errors import CompileError, GraphcError
from graphc.ir.body import ITEM, nodes_within
from graphc.ir.lowering import Call
from graphc.ir.node import CONSTANT, LEAVES, Array, Node
from graphc.ir.walk import Graph, node_set, nodes_of
from graphc.ops.branch import given_sizes, is_counted
from graphc.options import NATIVE, options
from graphc.startup.imports import uncollected
from graphc.startup.process import PROCESS
from graphc.startup.record import record, replace
from graphc.startup.versions import wrong_versions


def generation() -> ModuleType:
    """The module that makes a source of a graph. Not an import statement: it would double the warm start."""
    with uncollected():
        return import_module("graphc.codegen.pipeline.program")


def compilation() -> ModuleType:
    """Return the module that compiles generated source."""
    with uncollected():
        return import_module("graphc.codegen.pipeline.compilation")


def start_compiler() -> None:
    """Let the compile process import numba while this one imports the rest and rewrites the graph. Raises
    GraphcError where this machine does not run the target."""
    if options.target != NATIVE:
        import_module("graphc.codegen.llvm.target").processor(options.target)
    if options.compile == "process":
        import_module("graphc.codegen.server.client").SERVER.start()


def key_of(kernel: Kernel) -> Key:
    """All that decides the code of a kernel. How many of the graph's outputs are its results follows: the others are
    its shared variables, which the text lists, and a new value for each update."""
    news = tuple(new for _, new in kernel.updates)
    places = {leaf: place for place, leaf in enumerate(kernel.shared)}
    settings = {
        "name": kernel.name,
        "fast_math": str(kernel.is_fast),
        "returns": kernel.returns,
        "updates": ",".join(str(places[leaf]) for leaf, _ in kernel.updates),
        "mutable": ",".join(map(str, kernel.mutable)),
    }
    return make_key(Graph(kernel.inputs, (*kernel.outputs, *kernel.shared, *news)), settings)


def is_stored(kernel: Kernel) -> bool:
    """True where the cache has the code of a kernel."""
    return store.holds(key_of(kernel))


def stages_of(kernel: Kernel) -> tuple[Kernel, ...]:
    """The kernels that a function runs one after the other: one, but where sizes follow from values that have to be
    computed (stages.py). All nodes are visited: not for a kernel that is in the cache, which is one."""
    if all(node.op in LEAVES or is_counted(node) for node in node_set(computed_sizes(kernel.results))):
        return (kernel,)
    stages: tuple[Kernel, ...] = import_module("graphc.codegen.pipeline.stages").split_stages(kernel)
    return stages


def computed_sizes(roots: Sequence[Node]) -> list[Node]:
    """The nodes that compute sizes and positions, and maybe other integers. Every new function comes here, hence no
    order and no table."""
    found: list[Node] = []
    seen: set[Node] = set()
    pending = list(roots)
    while pending:
        node = pending.pop()
        if node in seen or not node.args:
            continue
        seen.add(node)
        pending += node.args
        if node.op is ITEM:
            found += [size for size in node.type.shape if isinstance(size, Node) and size.args]
        elif node.is_tuple:
            found += [arg for arg in given_sizes(node) if arg.args]
        elif node.type.shape:
            found += [size for size in node.type.shape if isinstance(size, Node) and size.args]
            found += [arg for arg in node.args if not arg.type.shape and arg.args and arg.type.dtype == "int64"]
    return found


def build_python(kernel: Kernel) -> Built:
    """The generated source, for the `python` mode; nothing is compiled."""
    built: Built = generation().build_python(kernel)
    return built


@record(eq=False)
class Lookup:
    """The answer of the cache for a kernel: nothing, or its entry. There is none for a kernel of several stages."""

    key: Key
    report: Report
    entry: store.Loaded | None


class Code:
    """The code of a graph, which all functions of equal graphs share while one of them lives: what an entry of the
    cache says of it, the bytes where no cache has them, and, by what decides how many threads they use, the library
    that it was loaded as."""

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
    found: WeakValueDictionary[str, Code] = PROCESS.codes
    return found


def look_up(kernel: Kernel, known: Key | None = None) -> Lookup:
    """Look for a kernel in the cache; `known` is its key, or that of one that differs in nothing but names."""
    report = Report(kernel.name)
    with report.phase("key"):
        key = known or key_of(kernel)
        report.key = key.digest
    with report.phase("cache"):
        entry = store.find(key)
        if options.cache:
            store.count_lookup(entry is not None)
        return Lookup(key, report, entry)


def build_native(kernel: Kernel, found: Lookup) -> tuple[Built, Callable[[Mapping[str, int]], Library]]:
    """The code of a kernel, which was looked up, from the cache or the compiler; and a function that loads it given
    callbacks' addresses. Raises CacheMissError where `options.cache_require` wants it to be in the cache."""
    key, report, entry = found.key, found.report, found.entry
    code = codes().get(report.key)
    linked = code.object if entry is None and code is not None else b"" if entry is None else entry.object
    if entry is not None and (code is None or code.metadata != entry.metadata):
        code = Code(entry.metadata, b"")
    if code is not None and linked:
        built = restore(kernel, code.metadata, report)
        if built is not None:
            if entry is not None:
                note_hit()
            else:
                report.origin = "memory"
            codes()[report.key] = code
            return built, loader(kernel, code, linked, report)
    if entry is None and options.cache_require:
        import_module("graphc.codegen.cache.manage").refuse_miss(key)
    with told_when_slow(report, work_of(kernel)):
        try:
            return compile_native(kernel, key, report)
        except (CompileError, ImportError, AttributeError) as error:
            if not wrong_versions():
                raise
            raise CompileError(f"{wrong_versions()} ({error})") from error


def work_of(kernel: Kernel) -> int:
    """The number of nodes that are to be compiled, those of loops included."""
    nodes = node_set(kernel.results)
    return len(nodes) + sum(1 for _ in nodes_within(nodes))


def compile_native(kernel: Kernel, key: Key, report: Report) -> tuple[Built, Callable[[Mapping[str, int]], Library]]:
    """The code of a kernel that is not in the cache."""
    start_compiler()
    ahead = begin_entry_points()
    compiler = compilation()
    begun = compiler.Ahead(missing_parts(product_parts(likely_products(kernel))))
    try:
        program = generation().generate_program(kernel, report)
    finally:
        begun.stop()
    products = compiler.products_of(program)
    parts = [*product_parts(products), *([PARALLEL] if program.parallel else []), *([] if ahead else [ENTRY_POINTS])]
    with report.phase("compile"):
        PROCESS.compilations += 1
        compiled = compiler.compile_program(program, missing_parts(dict.fromkeys(parts)), kernel.is_fast, begun)
        if ahead:
            keep_part(ENTRY_POINTS, ahead())
        for name, part in compiled.parts.items():
            keep_part(name, part)
        others = [part_code(name) for name in (*compiled.called, ENTRY_POINTS)]
        linked = compiler.link([*compiled.objects, *others], EXPORTS)
    with report.phase("store"):
        metadata = metadata_of(kernel, program, products, report)
        kept = store.store(store.Entry(key, program.plan, program.source, metadata, linked))
    codes()[report.key] = code = Code(metadata, b"" if kept else linked)
    built = Built(program.signature, program.source, program.constants, program.calls, report)
    return built, loader(kernel, code, linked, report)


def likely_products(kernel: Kernel) -> list[str]:
    """The products of matrices of floats that a graph as it is written would call."""
    nodes = node_set(kernel.results)
    found = [node for node in (*nodes, *nodes_within(nodes)) if node.op.name == "matmul" and node.type.dtype in FLOATS]
    calls = [(node, node.op.lower(node)) for node in found]
    return list(dict.fromkeys(call.symbol(node) for node, call in calls if isinstance(call, Call)))


def threads_of(kernel: Kernel) -> int | str:
    """The number of threads that the calls of a kernel may use."""
    return options.threads if kernel.threads is None else kernel.threads


@record(eq=False)
class Products:
    """Loaded matrix products: the settings they read at each call; of each the address and the owner of its code."""

    settings: Words
    loaded: dict[str, tuple[int, Any]]


def with_all_callees(names: Sequence[str]) -> list[str]:
    """Products and those that they call, each after all that it calls itself."""
    return list(dict.fromkeys(part for name in names for part in with_callees(name)))


def product_parts(names: Sequence[str]) -> list[str]:
    """The parts that products need at any size: those that they call, products with a vector, large ones, the pool."""
    called = with_all_callees(names)
    suffixes = [name.removeprefix(gemm) for name in called if name.startswith(gemm := "gc_gemm_")]
    vectors = [vector_name(suffix) for suffix in suffixes]
    users = [name.rpartition("_")[2] for name in called if name.startswith(LARGE_USERS)]
    large = [blocks_name(suffix) for suffix in users if suffix in SUFFIXES]
    return list(dict.fromkeys([*called, *vectors, *large, *([PARALLEL] if names else [])]))


def product_addresses(names: Sequence[str], threads: int | str | None) -> dict[str, int]:
    """The addresses of the matrix products that a kernel calls, loaded where they are not yet. What these load at their
    first need is there then: no call compiles anything."""
    if not names:
        return {}
    for part in product_parts(names):
        ready_part(part)
    defer(ready_blocks, products_pool)
    settings = settings_of(threads, DEFAULT_CROSSOVER)
    known = tuple(settings.tolist())
    if known not in PROCESS.products:
        PROCESS.products.setdefault(known, new_products(settings))  # another thread may have been faster
    products: Products = PROCESS.products[known]
    for name in with_all_callees(names):
        load_product(products, name)
    return {name: products.loaded[name][0] for name in names}


def new_products(settings: Words) -> Products:
    """Products of which none is loaded. Those with a vector are when machine code first asks for them."""
    words = np.zeros(PRODUCT_WORDS, np.int64)
    words[: len(settings)] = settings
    products = Products(words, {})
    for suffix, word in VECTORS.items():
        defer_word(words, word, VECTOR_FINDERS[suffix], partial(load_product, products, vector_name(suffix)))
    return products


def load_product(products: Products, name: str) -> int:
    """The address of a product, which is loaded where it is not yet: those that it calls are."""
    if name not in products.loaded:
        others = {other: address for other, (address, _) in products.loaded.items()}
        routines = import_module("graphc.codegen.routines")
        needed = {**blas_symbols(), **others, SETTINGS: products.settings.ctypes.data}
        needed |= routines.routine_symbols(name)
        _, *free = exports = routines.routine_exports(name)
        loaded = load_code(part_code(name), needed, exports)
        mine = loaded.addresses[name], loaded.owner
        if products.loaded.setdefault(name, mine) is mine:  # another thread may have been faster
            PROCESS.givers += [FINDER(loaded.addresses[each]) for each in free]
    return products.loaded[name][0]


def products_pool() -> Pool:
    """The pool, for products: from now on they know from how much work on it pays."""
    pool, crossover = ready_pool()
    for products in PROCESS.products.values():
        if products.settings[1] == DEFAULT_CROSSOVER:
            products.settings[1] = crossover
    return pool


def ready_blocks(suffix: str) -> int:
    """The address of large products of a dtype, 0 where BLAS computes them."""
    code = part_code(blocks_name(suffix))
    return load_blocks(suffix, code, products_pool()) if code else 0


def loader(kernel: Kernel, code: Code, linked: bytes, report: Report) -> Callable[[Mapping[str, int]], Library]:
    """A function that loads the code of a kernel, given the addresses of the user's functions. Where there are none,
    functions of equal graphs have it in memory once."""

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
    addresses = {**symbols, **product_addresses(code.metadata["products"], kernel.threads)}
    settings = None
    if code.metadata["parallel"]:
        pool, crossover = ready_pool()
        settings = settings_of(kernel.threads, crossover)
        functions = {PARALLEL: pool.parallel, STREAM: pool.stream, CHUNK: pool.chunk}
        addresses |= functions | {SETTINGS: settings.ctypes.data}
    return replace(load(linked, addresses, settings), code=code)


def metadata_of(kernel: Kernel, program: Any, products: Sequence[str], report: Report) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "signature": program.signature.to_fields(),
        "products": list(products),
        "parallel": program.parallel,
        "calls": [identity(node) for node in program.calls],
        "constants": stored_constants(kernel, program.constants),
        "fired": report.fired,
    }


def large_constants(kernel: Kernel) -> dict[str, Array]:
    """The large constants of a graph as it is written, by their digests."""
    nodes = nodes_of(kernel.results)
    values = (node.attrs["value"] for node in (*nodes, *nodes_within(nodes)) if node.op is CONSTANT)
    return {value.digest: value.value for value in values if value.digest is not None}


def stored_constants(kernel: Kernel, constants: Sequence[Array]) -> list[tuple[str, tuple[int, ...], str | bytes]]:
    """The constants as an entry of the cache has them: dtype, sizes, and the bytes; of a large one that the graph has
    as it is written, the digest, since who looks for the entry has the graph."""
    digests = {id(value): digest for digest, value in large_constants(kernel).items()}
    return [(each.dtype.name, each.shape, digests.get(id(each)) or each.tobytes()) for each in constants]


def restored_constants(kernel: Kernel, stored: Sequence[tuple[str, tuple[int, ...], str | bytes]]) -> list[Array]:
    """The constants of an entry. Raises KeyError where the graph lacks one."""
    own = large_constants(kernel) if any(isinstance(data, str) for _, _, data in stored) else {}
    return [
        own[data] if isinstance(data, str) else np.frombuffer(data, dtype).reshape(shape)
        for dtype, shape, data in stored
    ]


def identity(node: Node) -> list[Any]:
    """The identity of a user's op and the types it is applied to, as far as they are known without a call."""
    shapes = [[size if isinstance(size, int) else None for size in n.type.shape] for n in (*node.args, node)]
    dtypes = [n.type.dtype for n in (*node.args, node)]
    attrs = [f"{name}={value!r}" for name, value in sorted(node.attrs.items())]
    kinds = [f"{dtype}{shape}" for dtype, shape in zip(dtypes, shapes, strict=True)]
    return [node.op.name, node.op.version, *attrs, *kinds]


def restore(kernel: Kernel, metadata: Mapping[str, Any], report: Report) -> Built | None:
    """A cache entry bound to this graph's nodes; None where it does not fit, which compiles anew."""
    try:
        signature = Signature.from_fields(metadata["signature"])
        constants = tuple(restored_constants(kernel, metadata["constants"]))
        wanted = metadata["calls"]
        calls: list[Node] = []
        if wanted:
            nodes = nodes_of(kernel.results)
            own = {tuple(identity(node)): node for node in (*nodes_within(nodes), *nodes) if node.op.version}
            calls = [own[tuple(call)] for call in wanted]
    except (KeyError, ValueError, TypeError, GraphcError):
        return None
    report.origin, report.fired = "cache", list(metadata["fired"])
    report.plan = ""
    return Built(signature, "", constants, tuple(calls), report)
