"""Readers-writer locks of shared variables: a call shares what it reads, and has what it updates for itself.

In: the locks that a call needs. Out: the result of the call, which runs while no other thread changes what it reads, or
reads what it changes. A call gets all its locks at once, in the order of arrival.

    run({w.lock: True, x.lock: False}, False, f, 3)     f(3), with w exclusive and x shared

A native call that keeps the GIL cannot be disturbed: it only tests that its variables are free. A native call that
releases the GIL marks its variables before, and takes the marks back after. The entry point does both
(codegen/call/objects.py) in words that the GIL protects:

    Lock.words    0: the sum of the marks of native calls, READER or WRITER each; only native code changes it
                  1: not 0 while a call from Python has the lock or waits for it: native calls then come to `run` too
    activity      0: the number of native calls with marks; 1: the number of calls from Python, and FORKING
                  2, 3: how many of each have begun so far

Every call that runs Python in between (other modes, ops of the user, setting and copying of values) goes through `run`.
A thread that holds a lock holds it also for nested calls, of an op's function or a signal handler. Nested calls do not
queue; where threads would wait for each other for ever, `run` raises.

The state follows from `PROCESS.calls` and which of them run, so that an exception at any point (Ctrl-C) leaves nothing
locked. If it loses a wake-up, waiters notice within POLL seconds.
"""

from __future__ import annotations

import os
from _thread import RLock, allocate_lock, get_ident
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from graphc.errors import GraphcError
from graphc.startup.process import PROCESS

READER, WRITER = 1, -(2**40)
FORKING = 2**40
POLL = 0.05

Words = np.ndarray[Any, np.dtype[np.int64]]
T = TypeVar("T")

activity: Words = np.zeros(4, np.int64)
ACTIVITY = memoryview(activity)  # type: ignore[arg-type]
"""`activity` for Python. Where words 0 and 1 are 0, no call is under way, and one C operation that keeps the GIL may
follow at once, without `run`: CPython switches threads at the end of calls and loop iterations, not in between."""

CLOSED: Words = np.array([0, 1, 0, 0], np.int64)
"""Words in place of a lock's, or of `activity`, with which every native call comes to `run`."""

OPEN: Words = np.zeros(2, np.int64)
"""The words of a constant, which nobody updates."""


class Lock:
    """The lock of one variable: its `words`, and a `view` of them for Python."""

    __slots__ = ("view", "words")

    def __init__(self) -> None:
        self.words: Words = np.zeros(2, np.int64)
        self.view = memoryview(self.words)  # type: ignore[arg-type]


Wanted = Mapping[Lock, bool]
"""The locks that a call needs: True for exclusive, False for shared."""


class _Use:
    """A call that holds its locks (`granted`) or waits for them. wanted: None for all locks of the process. foreign:
    the call runs functions of the user, which may wait for anything."""

    __slots__ = ("foreign", "granted", "running", "thread", "turn", "wanted")

    def __init__(self, wanted: Wanted | None, foreign: bool) -> None:
        self.wanted = wanted
        self.foreign = foreign
        self.thread = get_ident()
        self.granted = False
        self.running = allocate_lock()
        self.turn = allocate_lock()


_mutex = RLock()
"""For changes of `PROCESS.calls`. Re-entrant: a signal handler may call in the midst of them."""


def run(wanted: Wanted, foreign: bool, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Return call(*args, **kwargs), run with these locks. Raises GraphcError for a deadlock between nested calls."""
    use = _Use(wanted, foreign)
    try:
        with use.running:  # of C: no exception comes between entering and leaving it
            _begin(use)
            return call(*args, **kwargs)
    finally:
        wake()


def wake() -> None:
    """Give the locks of calls that have ended to those that wait for them."""
    with _mutex:
        ended = [use for use in PROCESS.calls if not use.running.locked()]
        _forget(ended)
        if PROCESS.calls:
            _grant()


def _begin(use: _Use) -> None:
    with _mutex:
        PROCESS.calls.append(use)
        for lock in use.wanted or ():
            lock.view[1] = 1
        ACTIVITY[3] += 1
        _count()
        use.granted = _may_run(use)
        if use.granted:
            return
        use.turn.acquire()
        if _is_stuck(use):
            raise GraphcError(
                "calls within calls wait for each other: the functions of two ops, in two threads, call functions "
                "that use the shared variables of each other's callers"
            )
    while not use.granted and not use.turn.acquire(timeout=POLL):
        wake()


def _forget(ended: list[_Use]) -> None:
    if not ended:
        return
    PROCESS.calls[:] = [use for use in PROCESS.calls if use not in ended]
    for lock in [lock for use in ended for lock in use.wanted or ()]:
        lock.view[1] = any(lock in (use.wanted or ()) for use in PROCESS.calls)
    _count()


def _count() -> None:
    ACTIVITY[1] = len(PROCESS.calls) + (FORKING if PROCESS.forks else 0)


def _grant() -> None:
    for use in (*PROCESS.calls,):  # a signal handler may change them
        if not use.granted and _may_run(use):
            use.granted = True
            use.turn.release()


def _may_run(use: _Use) -> bool:
    if use.wanted is None:
        if ACTIVITY[0]:
            return False
    elif ACTIVITY[0]:
        for lock, alone in use.wanted.items():
            if lock.view[0] != 0 if alone else lock.view[0] < 0:
                return False
    if len(PROCESS.calls) == 1:
        return True
    within = any(other.granted and other.thread == use.thread for other in PROCESS.calls)
    ahead = True
    for other in PROCESS.calls:
        ahead = ahead and other is not use
        if (other.granted or (ahead and not within)) and _is_hindered(use, other):
            return False
    return True


def _is_hindered(use: _Use, other: _Use) -> bool:
    """True where two calls must not run at once. A fork does not wait for functions of the user: they may wait for
    it."""
    if use.thread == other.thread:
        return False
    if use.wanted is None or other.wanted is None:
        return not (use.foreign or other.foreign)
    theirs = other.wanted
    return any(lock in theirs and (alone or theirs[lock]) for lock, alone in use.wanted.items())


def _is_stuck(use: _Use) -> bool:
    """True where a call is in a deadlock: the threads that it waits for wait, in the end, for its own."""
    waiters, seen = [use], {id(use)}
    for waiting in waiters:
        holders = {other.thread for other in PROCESS.calls if other.granted and _is_hindered(waiting, other)}
        if use.thread in holders:
            return True
        behind = [
            other for other in PROCESS.calls if not other.granted and other.thread in holders and id(other) not in seen
        ]
        seen.update(map(id, behind))
        waiters += behind
    return False


# Processes that fork: the child has the variables, but not the threads that change them. -----------------------------


def _before_fork() -> None:
    """Wait until no other thread's call is under way."""
    use = _Use(None, foreign=False)
    use.running.acquire()
    PROCESS.forks.append(use)
    try:
        with suppress(GraphcError):  # what would have to end first waits for this thread
            _begin(use)
    finally:
        _mutex.acquire()


def _after_fork() -> None:
    if PROCESS.forks:
        PROCESS.forks.pop().running.release()
    _mutex.release()
    wake()


def _after_fork_in_child() -> None:
    me = get_ident()
    _forget([use for use in PROCESS.calls if use.thread != me])
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
