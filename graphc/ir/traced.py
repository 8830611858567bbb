"""Values that functions are traced with: variables in place of arguments, and what follows from them.

In: a node. Out: what errors say where the program asks for its value, which is not known while a function is traced
(`graphc.tracing`).
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary

from graphc.ir.where import PACKAGE

TRACED: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Variables that stand for arguments while a function is traced, and what messages call them."""


def traced_from(node: Any) -> str | None:
    """What messages call the argument that a value follows from; None where there is none."""
    pending, seen = [node], set[Any]()
    while pending and TRACED:
        found = pending.pop()
        if found in TRACED:
            return str(TRACED[found])
        if found not in seen:
            seen.add(found)
            pending += found.args
    return None


def traced_hint(node: Any) -> str:
    """What an error about a value that is not known says of the function that is traced."""
    traced = traced_from(node)
    how = "is" if node in TRACED else "follows from"
    return "" if traced is None else f"; it {how} {traced}, whose value only static_argnames would make known"


def asked_by_user() -> bool:
    """Whether a user's function called the one of graphc's that asks this, or Python did for it."""
    return not sys._getframe(2).f_code.co_filename.startswith(PACKAGE)
