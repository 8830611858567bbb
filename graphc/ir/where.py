"""Lines of the user's program.

In: the frames of a call. Out: the innermost one outside graphc.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from types import FrameType

from graphc.startup.record import record

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@record()
class Words:
    """How a check is told that a node makes for another (`ops.shape.held_to`): a guard's message, in which {left} is
    the size that the node's argument has, or, where it is `turned`, the one that it ought to have."""

    message: str
    turned: bool


@record()
class Where:
    """A line of the user's program; of a node that makes a check for another, also how that is told."""

    file: str
    line: int
    words: Words | None = None

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


def user_line() -> Where | None:
    """The line of the innermost frame outside graphc."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in _own_files:
            if not file.startswith(PACKAGE):
                return _where(file, frame.f_lineno)
            _own_files.add(file)
        frame = frame.f_back
    return None


_own_files: set[str] = set()
"""The files of this package that have been met: looked up for each frame of each node."""
_where = lru_cache(maxsize=1024)(Where)
