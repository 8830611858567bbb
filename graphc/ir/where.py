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
    """A line of the user's program; of a node that makes a check for another, also how that is told.
    derivative: whether a derivative was taken there, of which the node is a part."""

    file: str
    line: int
    words: Words | None = None
    derivative: bool = False

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


def user_line() -> Where | None:
    """The line of the innermost frame outside graphc."""
    frame: FrameType | None = sys._getframe(1)
    derivative = False
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in _own_files:
            if not file.startswith(PACKAGE):
                return _where(file, frame.f_lineno, None, derivative)
            _own_files.add(file)
        elif file == DERIVATIVES:
            derivative = True
        frame = frame.f_back
    return None


DERIVATIVES = f"{PACKAGE}autodiff.py"
"""What takes derivatives."""
_own_files: set[str] = {DERIVATIVES}
"""The files of this package that have been met: looked up for each frame of each node."""
_where = lru_cache(maxsize=1024)(Where)
