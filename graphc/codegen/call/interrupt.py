"""Long loops that end when a signal's handler raises, as that of Ctrl-C does.

In: nothing. Out: the names of what asks, and how much work goes by between two questions; signals.py has the function.
A kernel's loops of steps ask from time to time, and are left where the answer is not 0. The exception is then set in
the thread, as a C function of Python's leaves it, and the entry point returns no result.

Threads that share a nest with such loops ask STOPPED, which is given an address for all of them: once the answer to
one is not 0, it is to none, so that the chunks that are left run out quickly, and the kernel asks once more when all
have ended.

A handler may use the shared variables of the call that it interrupts, or make that call itself. So a call with loops
that may ask has its locks from Python (locks.py), which knows of calls within calls.
"""

from __future__ import annotations

INTERRUPTED = "gc_interrupted"
STOPPED = "gc_stopped"
KINDS: dict[str, tuple[str, ...]] = {INTERRUPTED: (), STOPPED: ("int64*",)}
"""What they take."""

POLLED = 5 * 10**7
"""Work after which a scan asks (schedule/cost.py): some milliseconds, and a tenth of a second where all is
misjudged. Threads that share the work between two questions are started anew for each."""
LONG = 3
"""Sizes over which a nest without steps goes that asks as well."""
PATIENT = POLLED // 8
"""Work of loops up to which none of a call can ask."""


def answer_no(*_: object) -> int:
    """The same where CPython runs the source: it looks at signals itself."""
    return 0
