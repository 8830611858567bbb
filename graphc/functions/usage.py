"""What calls of a function take: memory, and where it is asked for, time.

In: numbers of bytes; the seconds of each call. Out: records that a user reads as `f.memory` and `f.profile`.
"""

from __future__ import annotations

import sys
from typing import Any

from graphc.startup.record import record


@record()
class Memory:
    """The bytes of a call: the arena of its temporaries, which is kept for the next, its results, and both."""

    arena: int
    outputs: int
    total: int


class Profile:
    """Calls of a function made with profile=True, the seconds they took, and the steps of its loops."""

    __slots__ = ("calls", "seconds", "steps")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.steps = 0

    def add(self, seconds: float) -> None:
        self.calls += 1
        self.seconds += seconds

    def summary(self, file: Any = None, **kwargs: Any) -> None:
        """Print what there is to say, to stderr or an open `file`. Other arguments are Theano's and change nothing."""
        print(self, file=file or sys.stderr)

    def __str__(self) -> str:
        each = self.seconds / self.calls * 1e6 if self.calls else 0.0
        loops = f", {self.steps} steps of loops" if self.steps else ""
        return f"{self.calls} calls, {self.seconds:.6f} s, {each:.2f} microseconds a call{loops}"
