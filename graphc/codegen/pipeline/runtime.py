"""Code that is compiled once for a machine and used by the functions of every graph, matrix products among it.

In: the name of a part: ENTRY_POINTS, PARALLEL, a matrix product, large products, or an elementary function. Out: its
code, from the files that come with graphc, the cache or the compiler; and from how many chunks of a loop on threads
pay, which is measured once for a machine.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key, fingerprint, made_fingerprint
from graphc.codegen.cache.shipped import has_part, shipped_part
from graphc.codegen.gemm import (
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
from graphc.codegen.threads.settings import (
    DEFAULT_CROSSOVER,
    PARALLEL,
    SETTINGS,
    Pool,
    Words,
    available_processors,
    load_pool,
    measure_crossover,
    settings_of,
)
from graphc.options import options
from graphc.startup.hooks import HOOKS
from graphc.startup.process import PROCESS
from graphc.startup.record import record

ENTRY_POINTS = "entry points"
"""The part that the entry points of all functions call. It is an object, linked into each of them, as elementary
functions are into kernels; others are loaded beside."""

OUT_OF_LINE_OPT = 1
"""LLVM's level for it: no loop in it gains from more."""


def part_key(name: str) -> Key:
    """All that decides the code of a part."""
    return Key(name, {"poison": "on"} if options.poison != "off" else {}, fingerprint())


def find_part(name: str) -> bytes | None:
    """The code of a part where it is there already. What comes with graphc is taken before what the cache has."""
    if name not in PROCESS.parts:
        code = shipped_part(name)
        if code is None:
            entry = store.find(part_key(name))
            if entry is None:
                return None
            code = entry.object
        PROCESS.parts[name] = code
    return PROCESS.parts[name]


def missing_parts(names: Iterable[str]) -> list[str]:
    """Return the parts that are yet to be compiled."""
    return [name for name in names if find_part(name) is None]


def keep_part(name: str, code: bytes) -> None:
    """Keep the code of a part, here and in the cache."""
    PROCESS.parts[name] = code
    store.store(store.Entry(part_key(name), "", "", {"name": name}, code))


def begin_entry_points() -> Callable[[], bytes] | None:
    """Start the compilation of the shared part of entry points, if it is missing, in the compile process, while this
    process imports the rest. Returns a function that waits for the code."""
    if options.compile != "process" or find_part(ENTRY_POINTS) is not None:
        return None
    ir = import_module("graphc.codegen.call.entry").out_of_line_ir()
    finish: Callable[[], bytes] = import_module("graphc.codegen.server.client").compile_ahead(ir, OUT_OF_LINE_OPT)
    return finish


def ready_part(name: str) -> None:
    """See that the code of a part is here or in the cache."""
    if name not in PROCESS.parts and not has_part(name) and not store.holds(part_key(name)):
        part_code(name)


def part_code(name: str) -> bytes:
    """The code of a part, compiled where it is missing."""
    code = find_part(name)
    if code is None:
        code = HOOKS.compiled_part(name)
        keep_part(name, code)
    return code


def ready_pool() -> tuple[Pool, int]:
    """The thread pool, and the number of chunks from which parallel loops pay. The number is measured at the end of the
    first process that needs it: measuring takes 80 ms and is unreliable while the process and its compiler are busy.
    Until then a typical number is used."""
    if PROCESS.crossover:
        known: Pool = PROCESS.pool
        return known, PROCESS.crossover
    pool = load_pool(part_code(PARALLEL))
    key = Key("crossover", {"processors": "several" if available_processors() > 1 else "one"}, made_fingerprint())
    entry = store.find(key)
    PROCESS.crossover = DEFAULT_CROSSOVER if entry is None else int(entry.metadata["crossover"])
    if entry is None:
        atexit.register(_measure, pool, key, os.getpid())
    return pool, PROCESS.crossover


def _measure(pool: Pool, key: Key, process: int) -> None:
    if os.getpid() == process:  # the pool of a forked child has no workers
        metadata = {"name": "crossover of threads", "crossover": measure_crossover(pool)}
        store.store(store.Entry(key, "", "", metadata, b""), quiet=True)  # nobody asked for it


# --- the matrix products and routines that kernels call, loaded once for all functions of a process -------------------
# In: their names, as an entry of the cache has them. Out: their addresses.
#
#     product_parts(["gc_gemm_f64"])              the parts that it needs: those that it calls, the pool of threads
#     product_addresses(["gc_gemm_f64"], None)    {"gc_gemm_f64": 140...}; settings say how many threads they use


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
    callees = with_all_callees(names)
    suffixes = [name.removeprefix(gemm) for name in callees if name.startswith(gemm := "gc_gemm_")]
    vectors = [vector_name(suffix) for suffix in suffixes]
    users = [name.rpartition("_")[2] for name in callees if name.startswith(LARGE_USERS)]
    large = [blocks_name(suffix) for suffix in users if suffix in SUFFIXES]
    return list(dict.fromkeys([*callees, *vectors, *large, *([PARALLEL] if names else [])]))


def product_addresses(names: Sequence[str], threads: int | str | None) -> dict[str, int]:
    """The addresses of the matrix products that a kernel calls. Products that are not loaded yet are loaded here with
    all that they need, so that no call compiles anything."""
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
