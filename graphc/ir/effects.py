"""Nodes that are computed for what they do, not for a value: what `graphc.debug` prints and calls.

    with EFFECTS.frame(anchor) as found:       around each call of a function with tensors
        made = f(x)                            f calls debug.print("{}", x): a node, which found has then
    made = attached(made, found)               made is computed only when the node is (`ops/again.py`)

A node that nothing needs is not computed. So the results of the call are made to need it; they are results of a step of
a loop, of a branch, of an element of a batch, and what holds for them holds for the effect.
"""

from __future__ import annotations

from _thread import _local
from typing import Any


class Frame:
    """The effects of one call. anchor: a value of the step of a loop, or of the branch, that the call is."""

    def __init__(self, anchor: Any) -> None:
        self.anchor = anchor
        self.found: list[Any] = []

    def __enter__(self) -> list[Any]:
        EFFECTS.frames.append(self)
        return self.found

    def __exit__(self, *error: object) -> None:
        EFFECTS.frames.pop()


class Effects(_local):
    """The calls of functions with tensors that a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def frame(self, anchor: Any = None) -> Frame:
        """Return a context manager around a call, which gives the list of its effects."""
        return Frame(anchor)


EFFECTS = Effects()
