"""How much work a function does, counted and not timed."""

from __future__ import annotations

from collections.abc import Callable
from cProfile import Profile


def calls_made(work: Callable[[], object]) -> int:
    """How many calls, of Python's functions and of C's, `work` makes in this thread."""
    profile = Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def assert_linear(work: Callable[[int], Callable[[], object]], size: int) -> None:
    """Check that `work(2 * size)` makes at most a fifth more than twice the calls of `work(size)`."""
    once, twice = calls_made(work(size)), calls_made(work(2 * size))
    assert twice <= 2.4 * once, f"{once} calls for {size}, {twice} for {2 * size}"
