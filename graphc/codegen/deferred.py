"""What the machine code of matrix products asks for when it first needs it: large products, and the pool of threads.

In: functions that make and load it. Out: addresses in the slots of `blas.blas_table`. A slot begins with a function of
Python that loads the real one, puts that in its place, and calls it: so what is seldom needed costs nothing before.
"""

from __future__ import annotations

import ctypes
import warnings
from _thread import interrupt_main
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from graphc.codegen.blas import ENTRIES, OUTDATED, blas_table, blocks_name, openblas_kernels
from graphc.codegen.chunks import CHUNK_WORK, PARALLEL, PATIENCE
from graphc.codegen.image import load
from graphc.codegen.pool import Pool, thread_count

SUFFIXES = {"f64": ctypes.c_double, "f32": ctypes.c_float}
MEASURED_SIDE, MEASURED_ROUNDS = 512, 5
"""Of the products by which BLAS is compared where it is not known."""
_kept: list[Any] = []
"""The functions whose addresses stand in slots. Never taken out again."""

_SIZE, _POINTER = ctypes.c_int64, ctypes.c_void_p
LAUNCH = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _SIZE, _SIZE, _POINTER)
"""gc_parallel (pool_ir.py)."""


@cache
def blocks_type(suffix: str) -> Any:
    """gc_blocks_<t> (product_blocks.py)."""
    number, matrix = SUFFIXES[suffix], (_POINTER, _SIZE, _SIZE)
    return ctypes.CFUNCTYPE(_SIZE, _POINTER, *[_SIZE] * 4, number, *matrix, *matrix, number, *matrix)


def fill_slots(blocks: Callable[[str], int], pool: Callable[[], Pool]) -> None:
    """Put what loads them into the slots of the large products of each dtype and of the pool. `blocks` gives the
    address of large products of a dtype, 0 where BLAS is to compute them."""
    if _kept:
        return
    _kept.append(LAUNCH(lambda *launch: _first_launch(pool, launch)))
    _fill("parallel", _kept[-1])
    for suffix in SUFFIXES:
        _kept.append(blocks_type(suffix)(_first_product(suffix, blocks)))
        _fill(f"blocks {suffix}", _kept[-1])


def _fill(slot: str, function: Any) -> None:
    blas_table()[ENTRIES.index(slot)] = function if isinstance(function, int) else ctypes.cast(function, _POINTER).value


def _first_launch(pool: Callable[[], Pool], launch: tuple[Any, ...]) -> None:
    address = _attempt(lambda: pool().parallel)
    if address:
        _fill("parallel", address)
        LAUNCH(address)(*launch)
        return
    body, context, count, size, _ = launch
    run = ctypes.CFUNCTYPE(None, _POINTER, _SIZE, _SIZE)(body)
    for begin in range(0, count, size):
        run(context, begin, min(begin + size, count))


def _first_product(suffix: str, blocks: Callable[[str], int]) -> Callable[..., int]:
    def first(*arguments: Any) -> int:
        address = _attempt(lambda: blocks(suffix))
        _fill(f"blocks {suffix}", address)
        return int(blocks_type(suffix)(address)(*arguments)) if address else 1

    return first


def _attempt(find: Callable[[], int]) -> int:
    """The address, 0 where there is a problem: machine code waits for the answer, and takes no exception."""
    try:
        return find()
    except KeyboardInterrupt:
        interrupt_main()
    except BaseException as problem:
        warnings.warn(f"graphc goes on without faster products: {problem!r}", RuntimeWarning, stacklevel=1)
    return 0


def load_blocks(suffix: str, code: bytes, pool: Pool) -> int:
    """Load the code of `product_blocks.blocks_ir`; the address of its function."""
    name = blocks_name(suffix)
    loaded = load(code, {PARALLEL: pool.parallel}, [name])
    _kept.append(loaded.owner)
    return loaded.addresses[name]


def blocks_win(suffix: str, address: int) -> bool:
    """Whether large products of our own are faster than those of the BLAS that NumPy has loaded: known where that does
    not use the CPU's registers, else measured."""
    if openblas_kernels()[0] in OUTDATED or not blas_table()[0]:
        return True
    side = MEASURED_SIDE
    number = np.dtype(SUFFIXES[suffix])
    a, b, c = np.random.default_rng(0).random((3, side, side)).astype(number)
    settings = np.array([thread_count(), 1, CHUNK_WORK, PATIENCE], np.int64)
    operands = [word for matrix in (a, b) for word in (matrix.ctypes.data, side, 1)]
    own, other = [], []
    for _ in range(MEASURED_ROUNDS):
        begin = perf_counter()
        blocks_type(suffix)(address)(
            settings.ctypes.data, 0, side, side, side, 1.0, *operands, 0.0, c.ctypes.data, side, 1
        )
        middle = perf_counter()
        np.matmul(a, b, out=c)
        own.append(middle - begin)
        other.append(perf_counter() - middle)
    return min(own) < min(other)
