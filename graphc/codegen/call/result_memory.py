"""Reuse of the memory of large results, once nobody holds the result in it.

In: a number of bytes. Out: a block, an array of bytes whose memory a result may take. The C library maps a large array
anew and unmaps it when it goes, so that each fresh one costs the first touch of all its pages: a third of the time of a
call that memory limits. A block is a result's `base`; it is idle when only the list here holds it, and so needs no
finalizer.

Threads: a block is taken out of the deque before it is looked at, and put back when a local variable holds it, so that
no two calls find the same one idle.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from graphc.options import options
from graphc.startup.process import PROCESS

Block = np.ndarray[Any, np.dtype[np.uint8]]

LARGE = 2**25
"""Bytes above which a result lies in a block. Up to there glibc learns to keep the memory of arrays that are dropped:
its threshold for mappings of their own grows no further."""


def _references(block: Any) -> int:
    return sys.getrefcount(block)


def _idle() -> int:
    """The references to a block that one local variable holds, as `_references` counts them in this Python."""
    block = np.empty(0, np.uint8)
    return _references(block)


IDLE = _idle()


def block(size: int) -> Block:
    """Return an idle block of at least `size` bytes and at most a quarter more, or a new one.

    New blocks are kept within `options.results_megabytes`; the oldest go first. Raises MemoryError.
    """
    for _ in range(len(PROCESS.blocks)):
        try:
            found: Block = PROCESS.blocks.popleft()
        except IndexError:  # another thread has it
            break
        fits = size <= found.nbytes <= size + size // 4 and _references(found) == IDLE
        PROCESS.blocks.append(found)
        if fits:
            return found
    most = options.results_megabytes * 10**6
    _keep_within(most - size)
    made = np.empty(size, np.uint8)
    if size <= most:
        PROCESS.blocks.append(made)
    return made


def free() -> None:
    """Release all blocks: idle ones at once, others with their results."""
    PROCESS.blocks.clear()


def _keep_within(most: int) -> None:
    while PROCESS.blocks and sum(each.nbytes for each in list(PROCESS.blocks)) > most:
        try:
            PROCESS.blocks.popleft()
        except IndexError:
            return
