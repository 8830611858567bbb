"""Every way to compute a matrix product, as a function of addresses: BLAS, loops, packed blocks, Python.

In: the name of a shim. Out: ctypes functions, with limits so short that small matrices meet every edge; views in every
layout.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from graphc.codegen.gemm import (
    ENTRIES,
    PRODUCT_WORDS,
    PROTOTYPES,
    PYTHON_SHIMS,
    VECTORS,
    blas_symbols,
    blocked,
    dispatch,
    gemv,
    gemv as gemv_kernels,
    load_blocks,
    small,
    tiles as microkernel,
    vector_name,
)
from graphc.codegen.gemm.blocked import blocks_ir
from graphc.codegen.gemm.dispatch import functions as definitions
from graphc.codegen.link.elf import link
from graphc.codegen.llvm.functions import Function, module_text
from graphc.codegen.llvm.target import emit_object
from graphc.codegen.threads.pool import pool_ir
from graphc.codegen.threads.settings import POOL_EXPORTS, SETTINGS, load_pool
from graphc.startup.record import replace

CTYPES: dict[str, Any] = {
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
}
SUFFIX = {"float64": "f64", "float32": "f32"}


@contextmanager
def written_anew() -> Iterator[pytest.MonkeyPatch]:
    """While the block runs, functions are written with the limits that it sets, and forgotten after it: a process
    writes each once, and a kernel of another test would have these limits, or this code those of that kernel."""
    texts: dict[Function[Any, Any], Any] = {}
    whole = Function.definition

    def definition(function: Function[Any, Any], poison: bool = False) -> Any:
        before, function.kept = function.kept, texts.setdefault(function, {})
        try:
            return whole(function, poison)
        finally:
            function.kept = before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Function, "definition", definition)
        yield patch


@cache
def code() -> bytes:
    """The dispatch, sent to BLAS, or packed, from a size on that tests can afford."""
    with written_anew() as patch:
        patch.setattr(dispatch, "SMALL_GEMM", 12**3)
        patch.setattr(dispatch, "SMALL_GEMV", 100)
        patch.setattr(dispatch, "has_threads", lambda: False)
        for name, number in SHORT_PIECES.items():
            patch.setattr(gemv, name, number)
        patch.setattr(dispatch, "SMALL_ANY", 10**3)
        patch.setattr(dispatch, "BLOCKED", 10**3)
        patch.setattr(dispatch, "BLOCKED_THIN", 10**3)
        patch.setattr(dispatch, "BLOCKED_SIDE", 3)
        for module, limits in SHORT_LOOPS.items():
            for name, number in limits.items():
                patch.setattr(module, name, number)
        return emit_object([module_text(definitions(PROTOTYPES))], 2, frozenset(PROTOTYPES))


SHORT = {
    "BLOCK_PANELS": 2,
    "SLAB": 64,
    "PANEL_BYTES": 2**14,
    "PACKED": 64,
}
"""Limits with which every edge of a block is met by small matrices."""
SHORT_LIMITS = {"depth": 16, "resident_a": 4096, "resident_b": 4096, "resident_columns": 4096}
SHORT_PIECES = {"SMALL": 60, "PIECE": 64, "TALL": 32, "MOST_PARTIAL": 200, "PART": 8}
"""The same for products with a vector, which fall into pieces and parts."""
SHORT_LOOPS: dict[Any, dict[str, int]] = {
    small: {"NARROW_ROWS": 8, "BESIDE_TERMS": 4, "LONG": 0, "MANY_ROWS": 3, "DEPTH": 16, "COPIED": 3},
}
"""And for loops over small matrices."""
SHARED = np.array([3, 2, 1, 0, 0], np.int64)
"""Settings with which every product of two chunks is shared by three threads."""


def short_blocks(suffix: str, narrow: bool = False) -> bytes:
    """Large products with short limits. narrow: as they are where registers have 32 bytes."""
    with written_anew() as patch:
        for name, number in SHORT.items():
            patch.setattr(blocked, name, number)
        own = blocked.AVX2 if narrow else blocked.limits()
        patch.setattr(blocked, "limits", lambda: replace(own, **SHORT_LIMITS))
        if narrow:
            patch.setattr(microkernel, "has_avx512", lambda: False)
        return emit_object([blocks_ir(suffix)], 1)


@cache
def blocks_table(narrow: bool = False) -> Any:
    """A table without BLAS, but with packed dispatch, whose depths, blocks and slabs are so short that all edges are
    met by matrices that tests can afford."""
    pool = load_pool(link([emit_object([pool_ir()], 0)], POOL_EXPORTS))
    table = (ctypes.c_void_p * len(ENTRIES))()
    table[ENTRIES.index("parallel")] = pool.parallel
    for suffix in SUFFIX.values():
        table[ENTRIES.index(f"blocks {suffix}")] = load_blocks(suffix, short_blocks(suffix, narrow), pool)
    return table


@cache
def narrow_code() -> bytes:
    """The products as they are where registers have 32 bytes."""
    with written_anew() as patch:
        for module in (microkernel, small, gemv_kernels):
            patch.setattr(module, "has_avx512", lambda: False)
        return emit_object([module_text(definitions(PROTOTYPES))], 2, frozenset(PROTOTYPES))


@cache
def linked(table: int, narrow: bool = False) -> tuple[Any, Any, dict[str, Callable[..., int]]]:
    """The shims as ctypes functions over the BLAS of a table; their owner must be kept. The narrow ones have no
    products with a vector beside them: those of matrices are computed by their own loops."""
    llvm.initialize_native_target()
    words = np.zeros(PRODUCT_WORDS, np.int64)
    words[: len(SHARED)] = SHARED
    jit = llvm.create_lljit_compiler(use_jit_link=True)
    builder = llvm.JITLibraryBuilder().add_object_img(narrow_code() if narrow else code()).add_current_process()
    builder.import_symbol("gc_blas", table).import_symbol(SETTINGS, words.ctypes.data)
    for name in PROTOTYPES:
        builder.export_symbol(name)
    tracker = builder.link(jit, "blas")
    functions: dict[str, Callable[..., int]] = {}
    for name, arguments in PROTOTYPES.items():
        types = [ctypes.c_void_p if argument.endswith("*") else CTYPES[argument] for argument in arguments]
        functions[name] = ctypes.CFUNCTYPE(CTYPES["int64"], *types)(tracker[name])
    if not narrow:
        for suffix, word in VECTORS.items():
            words[word] = tracker[vector_name(suffix)]
    return tracker, (jit, words), functions


NO_BLAS = (ctypes.c_void_p * len(ENTRIES))()


def implementations() -> Iterator[tuple[str, Callable[[str], Callable[..., int]]]]:
    yield "BLAS", lambda name: linked(blas_symbols()["gc_blas"])[2][name]
    yield "loops", lambda name: linked(ctypes.addressof(NO_BLAS))[2][name]
    yield "narrow loops", lambda name: linked(ctypes.addressof(NO_BLAS), narrow=True)[2][name]
    yield "blocks", lambda name: linked(ctypes.addressof(blocks_table()))[2][name]
    yield "narrow blocks", lambda name: linked(ctypes.addressof(blocks_table(narrow=True)))[2][name]
    yield "python", python_shim


def python_shim(name: str) -> Callable[..., int]:
    """The Python meaning, called with addresses as the compiled one is."""
    arguments = PROTOTYPES[name]

    def call(*values: Any) -> int:
        given = [
            POINTERS[value] if argument.endswith("*") else value
            for value, argument in zip(values, arguments, strict=True)
        ]
        return PYTHON_SHIMS[name](*given)

    return call


POINTERS: dict[int, Any] = {}
"""The flat arrays, by address of their first element, that python_shim is to find."""


def address(view: Any) -> int:
    """The address of a view's first element; remembered with the elements that follow in its buffer."""
    owner = owner_of(view)
    where: int = view.__array_interface__["data"][0]
    start = first_element(owner, view)
    POINTERS[where] = owner.reshape(-1)[start:] if start < owner.size else np.zeros(1, owner.dtype)
    return where


def owner_of(view: Any) -> Any:
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


def first_element(owner: Any, view: Any) -> int:
    """Where the view starts among the elements of its buffer."""
    start = view.__array_interface__["data"][0] - owner.reshape(-1).__array_interface__["data"][0]
    return int(start) // int(owner.itemsize)


def matrix(kind: str, rows: int, columns: int, dtype: str, rng: np.random.Generator) -> Any:
    """A view of `rows` by `columns` in a layout by name; the buffer around it is NaN."""

    def filled(*shape: int) -> Any:
        buffer = np.full((shape[0] + 2, shape[1] + 2), np.nan, dtype)
        inner = buffer[1:-1, 1:-1]
        inner[...] = rng.normal(size=shape)
        return inner

    match kind:
        case "plain":
            return rng.normal(size=(rows, columns)).astype(dtype)
        case "transposed":
            return rng.normal(size=(columns, rows)).astype(dtype).T
        case "inner":
            return filled(rows, columns)
        case "inner transposed":
            return filled(columns, rows).T
        case "strided":
            return filled(2 * rows + 1, 3 * columns + 1)[:-1:2, :-1:3]
        case "reversed":
            return filled(rows, columns)[::-1, ::-1]
        case "one row":
            return np.broadcast_to(rng.normal(size=(1, columns)).astype(dtype), (rows, columns))
        case "one column":
            return np.broadcast_to(rng.normal(size=(rows, 1)).astype(dtype), (rows, columns))
    raise ValueError(kind)


LAYOUTS = ("plain", "transposed", "inner", "inner transposed", "strided", "reversed", "one row", "one column")
WRITABLE = ("plain", "transposed", "inner", "inner transposed", "strided")
IMPLEMENTATIONS = dict(implementations())


def steps(view: Any) -> tuple[int, ...]:
    return tuple(stride // view.itemsize for stride in view.strides)
