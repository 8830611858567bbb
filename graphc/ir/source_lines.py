"""Lines of the user's program, and lazy texts for messages.

In: the frames of a call; functions that write a text. Out: the innermost frame outside graphc (`Where`); texts that are
formatted only when they are read (`lazy_text`, `lazy_format`).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from types import FrameType
from typing import Any

import numpy as np

from graphc.startup.record import record

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@record()
class Words:
    """The wording of a check that one node makes on behalf of another (`ops.shape.guard_axis`): a guard's message, in
    which {left} is the actual size of the argument, or, if `turned`, the required one."""

    message: str
    turned: bool


@record()
class Where:
    """A line of the user's program. words: the wording of the check that the node makes for another. derivative: the
    node was made while taking a derivative on that line."""

    file: str
    line: int
    words: Words | None = None
    derivative: bool = False

    def __str__(self) -> str:
        return written(self.file, self.line)


def written(file: str, line: int) -> str:
    """A line in messages: "program.py:3"; "cell 2, line 3" for the second cell that a notebook has run."""
    kernel = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(kernel, "compile", None), "format_code_name", lambda file: None)
    cell = "".join(filter(str.isdigit, str(name_of(file) or "")))  # of IPython's ("Cell", "In[2]")
    return f"cell {cell}, line {line}" if cell else f"{os.path.basename(file)}:{line}"


PLACED = r"(:|, line )\d+\)"
"""Matches a source line in a message."""


def user_line() -> Where | None:
    """The line of the innermost frame outside graphc."""
    frame: FrameType | None = sys._getframe(1)
    derivative = False
    while frame is not None:
        file = frame.f_code.co_filename
        known = OWN_FILES.get(file)
        if known:
            derivative = True
        elif known is None:
            if not file.startswith(PACKAGE):
                return _where(file, frame.f_lineno, None, True) if derivative else _where(file, frame.f_lineno)
            OWN_FILES[file] = False
        frame = frame.f_back
    return None


def program_line() -> Where | None:
    """Like `user_line`, but skips modules of Python and NumPy, which call on behalf of the program:
    `random.shuffle(x)`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) and not is_pythons(file):
            return _where(file, frame.f_lineno)
        frame = frame.f_back
    return None


def is_pythons(file: str) -> bool:
    """True if a file belongs to Python's standard library or to NumPy."""
    return file.startswith(NUMPY) or (file.startswith(STANDARD) and "site-packages" not in file)


STANDARD, NUMPY = (os.path.dirname(str(module.__file__)) + os.sep for module in (os, np))

OWN_FILES: dict[str, bool] = {f"{PACKAGE}autodiff.py": True}
"""graphc's files seen so far, looked up for each frame of each node; True for the file that takes derivatives."""
_where = lru_cache(maxsize=1024)(Where)


class LazyText:
    """A text that is formatted each time it is read."""

    __slots__ = ("write",)

    def __init__(self, write: Callable[[], str]) -> None:
        self.write = write

    def __str__(self) -> str:
        return self.write()

    def __format__(self, form: str) -> str:
        return self.write()

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (self.write(),)


def warn_user(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the line of the innermost frame outside graphc."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)


def lazy_text(write: Callable[[], str]) -> str:
    """A lazy text for messages. It can stand in f-strings of other lazy texts. Few messages are ever read, and until
    then it costs nothing."""
    lazy: Any = LazyText(write)
    text: str = lazy
    return text


def lazy_format(template: str, *parts: object) -> str:
    """`template.format(*parts)`, formatted when it is read."""
    return lazy_text(partial(template.format, *parts))


def error_line(error: Exception, without: str | None = None) -> tuple[str, int] | None:
    """The innermost line of the traceback that is not Python's own library, nor below the folder `without`: (file,
    line), None without one."""
    found, step = None, error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not is_pythons(file) and not (without and file.startswith(without)):
            found = file, step.tb_lineno
        step = step.tb_next
    return found
