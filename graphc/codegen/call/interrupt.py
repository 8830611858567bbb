"""Safepoints: the places in long loops where a kernel ends when the handler of a signal raises, as that of Ctrl-C does.

In: nothing. Out: the names of the functions that a safepoint calls (signals.py), and the work between two safepoints.
A loop is left where the function returns anything but 0. The exception is then set in the thread, as C functions of
Python's leave it, and the entry point returns no result.

Threads that share a loop nest call STOPPED with one address for all of them: once one thread got an answer other than
0, all do, so that the chunks that are left end quickly. The kernel asks once more when all threads have ended.

A handler may use the shared variables of the call that it interrupts, or make that call itself. So a call with
safepoints takes its locks from Python (locks.py), which knows of calls within calls.
"""

from __future__ import annotations

INTERRUPTED = "gc_interrupted"
STOPPED = "gc_stopped"
KINDS: dict[str, tuple[str, ...]] = {INTERRUPTED: (), STOPPED: ("int64*",)}
"""The parameter types of these functions."""

POLLED = 5 * 10**7
"""Work between two safepoints of a scan (schedule/cost.py): some milliseconds, at worst a tenth of a second.
Threads that share the work between two safepoints are started anew for each."""
LONG = 3
"""A loop nest without steps has safepoints where it goes over this many sizes."""
PATIENT = POLLED // 8
"""Work of loops up to which a call reaches no safepoint."""


def answer_no(*_: object) -> int:
    """The safepoint of generated source under CPython, which handles signals itself: 0."""
    return 0
