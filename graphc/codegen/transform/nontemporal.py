"""Non-temporal stores: the result of a launch that may be written past the caches.

In: an outermost loop of which threads may share the iterations (parallelize.py), and the buffers that its kernel reads.
Out: the buffer that the iterations fill one after another, and one that they read so; or None.

A store to memory that is in no cache reads the line it goes to first, and puts out another one. Where an array is
larger than the cache it is gone before anybody reads it, and that was in vain: a quarter of what `x + y` moves, a third
of what a copy moves. Non-temporal (streaming) stores do neither; but they ask for aligned addresses, take longer for
what the cache would have held, and would be a second loop to compile in each nest. So the nest's function stays as it
is: where a launch writes much, it is called for some lines at a time, with memory of its thread's own in place of the
result, from where non-temporal stores take them (threads/nontemporal.py). That gains where memory is what a loop waits
for: one result, no narrower than what is read, since else it is a small part of what is moved, and little work for an
element; loops along rows gain nothing.
"""

from __future__ import annotations

from collections.abc import Collection

from graphc.arrays.dtypes import itemsize
from graphc.codegen.transform.fuse import resolved
from graphc.loopir.ir import Buffer, Expr, Let, Load, Loop, Store, int_value
from graphc.loopir.visit import all_expressions
from graphc.startup.record import record

MOST_WORK = 16
"""Of an iteration, in units of an addition: the arithmetic of more takes as long as memory does."""


@record()
class Stream:
    """Buffers of which iteration i touches element i only: one that it fills and the kernel does not read, and one that
    it reads."""

    fills: Buffer
    reads: Buffer


def stream_of(loop: Loop, work: Expr, read: Collection[Buffer]) -> Stream | None:
    """The buffer of an outermost loop that non-temporal stores may write, `work` in an iteration. `read`: the buffers
    that the kernel reads."""
    total = int_value(work)
    if total is None or total > MOST_WORK or not all(isinstance(stmt, Let | Store) for stmt in loop.body):
        return None
    values = {stmt.var: stmt.value for stmt in loop.body if isinstance(stmt, Let)}
    touched: list[Load | Store] = [part for part in all_expressions(loop.body) if isinstance(part, Load)]
    touched += [stmt for stmt in loop.body if isinstance(stmt, Store)]
    places: dict[Buffer, set[Expr]] = {}
    for each in touched:
        places.setdefault(each.buffer, set()).add(resolved(each.index, values))
    along = [buffer for buffer, found in places.items() if found == {loop.var}]
    filled = {stmt.buffer for stmt in loop.body if isinstance(stmt, Store)}
    results = [buffer for buffer in along if buffer in filled and buffer not in read]
    sources = [buffer for buffer in along if buffer not in filled]
    if len(filled) != 1 or not results or not sources:
        return None
    source = max(sources, key=lambda buffer: itemsize(buffer.dtype))
    return Stream(results[0], source) if itemsize(source.dtype) <= itemsize(results[0].dtype) else None
