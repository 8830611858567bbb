"""Native bodies for the pool of threads to run, and the pool itself, for tests and the processes they start.

A body has an array of int64 as its context:

    count   adds 1 to every element of its chunk
    doze    the same, after two milliseconds' sleep
    nest    launches `count` over the eight elements from 8 * begin on, for chunks of one iteration
    name    writes the number of its thread to every element, after as much sleep
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphc.codegen.link.elf import link
from graphc.codegen.link.image import load
from graphc.codegen.llvm.target import emit_object
from graphc.codegen.threads.pool import pool_ir
from graphc.codegen.threads.settings import PARALLEL, POOL_EXPORTS, load_pool

LOOP = """
define void @%s(ptr %%data, i64 %%begin, i64 %%end) {
start:
  %s
  br label %%iteration
iteration:
  %%i = phi i64 [%%begin, %%start], [%%next, %%iteration]
  %%at = getelementptr i64, ptr %%data, i64 %%i
  %%old = load i64, ptr %%at
  %s
  store i64 %%new, ptr %%at
  %%next = add i64 %%i, 1
  %%more = icmp slt i64 %%next, %%end
  br i1 %%more, label %%iteration, label %%done
done:
  ret void
}
"""
ADD = "%new = add i64 %old, 1"
BODIES = (
    """
declare i32 @usleep(i32)
declare i64 @pthread_self()
declare void @gc_parallel(ptr, ptr, i64, i64, ptr)
@settings = internal constant [4 x i64] [i64 4, i64 2, i64 1, i64 0]
define void @nest(ptr %data, i64 %begin, i64 %end) {
  %at = mul i64 %begin, 64
  %here = getelementptr i8, ptr %data, i64 %at
  call void @gc_parallel(ptr @count, ptr %here, i64 8, i64 2, ptr @settings)
  ret void
}
"""
    + LOOP % ("count", "", ADD)
    + LOOP % ("doze", "call i32 @usleep(i32 2000)", ADD)
    + LOOP % ("name", "call i32 @usleep(i32 2000)\n  %self = call i64 @pthread_self()", "%new = add i64 %self, 0")
)
NAMES = ("count", "doze", "nest", "name")

pool = load_pool(link([emit_object([pool_ir()], 0)], POOL_EXPORTS))
_loaded = load(link([emit_object([BODIES])], NAMES), {PARALLEL: pool.parallel}, NAMES)
_launch: Callable[..., None] = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p)(
    pool.parallel
)


def launch(
    body: str, data: NDArray[Any], count: int, size: int, threads: int, least: int = 2, back_off: int = 0
) -> None:
    """One launch, with the GIL released."""
    settings = np.array([threads, least, 1, back_off, 0], np.int64)
    _launch(_loaded.addresses[body], data.ctypes.data, count, size, settings.ctypes.data)
