"""The progress of a search, as one line of text on stderr that is written over.

    minimize: step 12, value 3.41274, 0.4 s
    minimize: [#####               ] 50 of 200, value 3.41274, 1.2 s

In: a call for each step. Out: text, at most ten times a second, and at the end.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

__all__ = ["Progress"]

WIDTH, SECONDS = 20, 0.1


class Progress:
    """The line of one search. by: its name. most: the steps after which it ends, where they are known."""

    def __init__(self, by: str, most: int | None) -> None:
        self.by, self.most = by, most
        self.count, self.longest = 0, 0
        self.value: Any = None
        self.begin = self.last = perf_counter()

    def step(self, value: Any) -> None:
        """Count a step."""
        self.count, self.value = self.count + 1, value
        if perf_counter() - self.last >= SECONDS:
            self.last = perf_counter()
            self._write("")

    def end(self) -> None:
        """Write the line a last time, and end it."""
        self._write("\n")

    def _write(self, end: str) -> None:
        place = f"step {self.count}"
        if self.most:
            done = min(WIDTH, WIDTH * self.count // self.most)
            place = f"[{'#' * done}{' ' * (WIDTH - done)}] {self.count} of {self.most}"
        value = "" if self.value is None else f", value {float(self.value):.6g}"
        line = f"{self.by}: {place}{value}, {perf_counter() - self.begin:.1f} s"
        self.longest = max(self.longest, len(line))
        sys.stderr.write(f"\r{line:<{self.longest}}{end}")
        sys.stderr.flush()
