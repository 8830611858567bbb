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

from graphc.arrays.dtypes import FLOATS
from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key, key_of_text
from graphc.codegen.call.bind import EXPORTS, Library
from graphc.codegen.pipeline.kernel import Built, Kernel, Report, repeated_line, report_when_slow
from graphc.codegen.pipeline.restore import (
    Code,
    Lookup,
    codes,
    identity,
    large_constants,
    loader,
    restored,
    settings_of_key,
)
from graphc.codegen.pipeline.runtime import (
    ENTRY_POINTS,
    begin_entry_points,
    keep_part,
    missing_parts,
    part_code,
    product_parts,
)
from graphc.codegen.threads.settings import PARALLEL
from graphc.errors import CompileError
from graphc.ir.body import ITEM, nodes_within
from graphc.ir.lowering import Call
from graphc.ir.node import LEAVES, Array, Node
from graphc.ir.text import graph_key_text
from graphc.ir.walk import node_set
from graphc.ops.branch import given_sizes, is_counted
from graphc.options import NATIVE, options
from graphc.startup.process import PROCESS, importing
from graphc.startup.versions import wrong_versions


def generation() -> ModuleType:
    """The module that makes a source of a graph. Not an import statement: it would double the warm start."""
    with importing():
        return import_module("graphc.codegen.pipeline.program")


def compilation() -> ModuleType:
    """Return the module that compiles generated source."""
    with importing():
        return import_module("graphc.codegen.pipeline.compilation")


def start_compiler() -> None:
    """Start the compile process, which imports numba while this process imports the rest and rewrites the graph. Raises
    GraphcError if this machine cannot run code for the target."""
    if options.target != NATIVE:
        import_module("graphc.codegen.llvm.target").processor(options.target)
    if options.compile == "process":
        import_module("graphc.codegen.server.client").SERVER.start()


def key_of(kernel: Kernel) -> Key:
    """Everything that decides the code of a kernel, as the key of the cache. The number of results needs no mention:
    all other outputs are the shared variables, which the text lists, and one new value for each update."""
    return key_of_text(graph_key_text(kernel.whole), settings_of_key(kernel))


def is_stored(kernel: Kernel) -> bool:
    """True where the cache has the code of a kernel."""
    return store.holds(key_of(kernel))


def stages_of(kernel: Kernel) -> tuple[Kernel, ...]:
    """The kernels that a function runs one after the other: several if sizes follow from computed values (stages.py),
    else one. The search visits all nodes; a kernel found in the cache is a single stage and needs no search."""
    if all(node.op in LEAVES or is_counted(node) for node in node_set(computed_sizes(kernel.results))):
        return (kernel,)
    stages: tuple[Kernel, ...] = import_module("graphc.codegen.pipeline.stages").split_stages(kernel)
    return stages


def computed_sizes(roots: Sequence[Node]) -> list[Node]:
    """The nodes that compute sizes and positions, and possibly other integers. Every new function runs this, so the
    search keeps no order and no table."""
    sizes: list[Node] = []
    seen: set[Node] = set()
    pending = list(roots)
    while pending:
        node = pending.pop()
        if node in seen or not node.args:
            continue
        seen.add(node)
        pending += node.args
        if node.op is ITEM:
            sizes += [size for size in node.type.shape if isinstance(size, Node) and size.args]
        elif node.is_tuple:
            sizes += [arg for arg in given_sizes(node) if arg.args]
        elif node.type.shape:
            sizes += [size for size in node.type.shape if isinstance(size, Node) and size.args]
            sizes += [arg for arg in node.args if not arg.type.shape and arg.args and arg.type.dtype == "int64"]
    return sizes


def build_python(kernel: Kernel) -> Built:
    """The generated source, for the `python` mode; nothing is compiled."""
    built: Built = generation().build_python(kernel)
    return built


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


def build_native(kernel: Kernel, lookup: Lookup) -> tuple[Built, Callable[[Mapping[str, int]], Library]]:
    """The code of a kernel, which was looked up, from the cache or the compiler; and a function that loads it given
    callbacks' addresses. Raises CacheMissError where `options.cache_require` wants it to be in the cache."""
    there = restored(kernel, lookup)
    if there is not None:
        return there
    if lookup.entry is None and options.cache_require:
        import_module("graphc.codegen.cache.manage").refuse_miss(lookup.key, kernel.name)
    with report_when_slow(lookup.report, work_of(kernel), partial(repeated_line, kernel)):
        try:
            return compile_native(kernel, lookup.key, lookup.report)
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
    matmuls = [
        node for node in (*nodes, *nodes_within(nodes)) if node.op.name == "matmul" and node.type.dtype in FLOATS
    ]
    calls = [(node, node.op.lower(node)) for node in matmuls]
    return list(dict.fromkeys(call.symbol(node) for node, call in calls if isinstance(call, Call)))


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


def stored_constants(kernel: Kernel, constants: Sequence[Array]) -> list[tuple[str, tuple[int, ...], str | bytes]]:
    """The constants in the form of a cache entry: dtype, sizes and bytes. A large constant of the graph as written is
    stored by its digest only: whoever looks for the entry has the graph."""
    digests = {id(value): digest for digest, value in large_constants(kernel).items()}
    return [(each.dtype.name, each.shape, digests.get(id(each)) or each.tobytes()) for each in constants]
