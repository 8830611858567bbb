"""The chunks of a loop, which threads share out and a reduction combines in order.

In: the iterations of a loop, the work of each. Out: the iterations of a chunk. Nothing else decides, neither how many
threads there are nor how fast, so that a result is the same to the bit for any number of them; but for columns, which
do not meet in a result.
"""

from __future__ import annotations

CHUNK_WORK = 2**17
"""Work of a chunk at least, in units of an addition: some microseconds, against the tenth of one that a claim takes."""
MOST_CHUNKS = 256
LEAST_COLUMNS, MOST_COLUMNS = 256, 1024
"""Columns of which a thread goes over all rows. Parts of rows of fewer elements than the first are slow to read, for
hardware fetches ahead within a page of memory only; more than the second make no difference."""
LINE = 64
"""Iterations of which a large chunk is a multiple, so that two threads seldom write to one cache line."""

PARALLEL, STREAM, CHUNK, COLUMNS, SETTINGS = "gc_parallel", "gc_stream", "gc_chunk", "gc_columns", "gc_settings"
"""The symbols that a kernel with parallel loops needs: four functions of the pool (pool.py), and the settings of
the kernel's function, five int64: threads, the least number of chunks for several of them, the least work of a chunk,
the back-off (pool.py), the least bytes for non-temporal stores (nontemporal.py)."""
SETTINGS_WORDS = 5
NONTEMPORAL = "by non-temporal stores"
"""A plan's word for a result that non-temporal stores may write."""
THREADS, LEAST_CHUNKS, LEAST_WORK, BACK_OFF_WORD, LEAST_STREAMED = range(5)
"""Their places."""
BACK_OFF = 20
"""Threads lose at most one part in this many, whatever else the machine does."""
MOST_WORDS = 64
"""The words of the context of a loop whose result non-temporal stores write: it is copied to the stack."""


def columns_size(count: int, work: int, parts: int, least: int = CHUNK_WORK) -> int:
    """The number of `count` columns of this work each that a thread takes at a time. Columns do not meet, and no bit of
    a result depends on this: it is the share of each of `parts`, as many as there are threads, but no fewer than
    several threads are started for."""
    share = min(-(-count // parts // LINE) * LINE, MOST_COLUMNS)
    return max(chunk_size(count, work, least), share, LEAST_COLUMNS)


def chunk_size(count: int, work: int, least: int = CHUNK_WORK) -> int:
    """The number of `count` iterations of this work each that make a chunk; all of them where it would not be worth
    two."""
    chunks = min(max(count * work // least, 1), MOST_CHUNKS)
    size = -(-count // chunks)
    return max(-(-size // LINE) * LINE if size >= 16 * LINE else size, 1)
