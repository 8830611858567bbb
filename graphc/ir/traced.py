"""Values that functions are traced with: variables in place of arguments, and what follows from them.

In: a node, the frame that asks. Out: whether a function is traced, what errors say where the program asks for a value,
which is not known then (`graphc.tracing`), and what an instruction of the program does.
"""

from __future__ import annotations

import sys
from _thread import _local
from opcode import opname
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from graphc.ir.where import PACKAGE, is_pythons

TRACED: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Variables that stand for arguments while a function is traced, and what messages call them."""


LEFT: WeakSet[Any] = WeakSet()
"""Those of them whose function has returned: what follows from them and is no result of it has no value any more."""


class Trace(_local):
    """What a thread traces: `depth`, the functions within one another that are called at this moment; `scalars`, the
    tensors of no axes that were made meanwhile, which the program cannot hash; `refused`, the last error about a value
    that is not known, with its line: NumPy drops such errors, and says something else."""

    def __init__(self) -> None:
        self.depth = 0
        self.refused: tuple[Any, Any] = (None, None)
        self.scalars: list[Any] = []

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if not self.depth:
            scalars, self.scalars = self.scalars, []
            for scalar in scalars:
                scalar.stand_back()


TRACE = Trace()
"""To be entered around each call of a function that is written for arrays, with tensors in their place."""


def traced_from(node: Any, by_sizes: bool = True) -> str | None:
    """What messages call the argument that a value follows from, None where there is none; `by_sizes`: be it from the
    sizes of the argument alone."""
    found = _argument(node, by_sizes)
    return None if found is None else str(TRACED[found])


def _argument(node: Any, by_sizes: bool = True) -> Any:
    """The variable that stands for the argument that a value follows from, or None."""
    pending, seen = [] if node is None else [node], set[Any]()
    while pending and TRACED:
        found = pending.pop()
        if by_sizes and found.op.name == "size":
            owner = found.sized()
            found = found if owner is None else owner
        if found in TRACED:
            return found
        if found not in seen:
            seen.add(found)
            pending += found.args
    return None


def traced_hint(node: Any) -> str:
    """What an error about a value that is not known says of the function that is traced."""
    found = _argument(node)
    if found is None:
        return ""
    why = "whose value only static_argnames would make known"
    if found in LEFT:
        why = "which has returned: what is used outside it must be among its results"
    return f"; it {'is' if node is found else 'follows from'} {TRACED[found]}, {why}"


def asked_by_user(depth: int = 2) -> bool:
    """Whether a user's function called the one of graphc's that asks this, or Python did for it."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(PACKAGE):
            return False
        if not is_pythons(file):
            return True
        frame = frame.f_back
    return True


def instruction(depth: int = 2) -> tuple[str, str]:
    """What a frame of the program is doing, and what it does next: the names of two instructions."""
    frame = sys._getframe(depth)
    code, place = frame.f_code.co_code, frame.f_lasti
    after = place + 2
    while after < len(code) and opname[code[after]] == "CACHE":
        after += 2
    return opname[code[place]], opname[code[after]] if after < len(code) else ""
