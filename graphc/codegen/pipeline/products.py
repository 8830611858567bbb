"""The matrix products and routines that kernels call, loaded once for all functions of a process.

In: their names, as an entry of the cache has them. Out: their addresses.

    product_parts(["gc_gemm_f64"])              the parts that it needs: those that it calls, the pool of threads
    product_addresses(["gc_gemm_f64"], None)    {"gc_gemm_f64": 140...}; settings say how many threads they use
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

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
from graphc.codegen.pipeline.runtime import part_code, ready_part, ready_pool
from graphc.codegen.threads.settings import DEFAULT_CROSSOVER, PARALLEL, SETTINGS, Pool, Words, settings_of
from graphc.startup.process import PROCESS
from graphc.startup.record import record


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
