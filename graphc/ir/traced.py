"""Values that functions are traced with: variables in place of arguments, and what follows from them.

In: a node. Out: what errors say where the program asks for its value, which is not known while a function is traced
(`graphc.tracing`).
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from graphc.ir.where import PACKAGE

TRACED: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Variables that stand for arguments while a function is traced, and what messages call them."""


LEFT: WeakSet[Any] = WeakSet()
"""Those of them whose function has returned: what follows from them and is no result of it has no value any more."""


def traced_from(node: Any) -> str | None:
    """What messages call the argument that a value follows from; None where there is none."""
    found = _argument(node)
    return None if found is None else str(TRACED[found])


def _argument(node: Any) -> Any:
    """The variable that stands for the argument that a value follows from, or None."""
    pending, seen = [node], set[Any]()
    while pending and TRACED:
        found = pending.pop()
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


def asked_by_user() -> bool:
    """Whether a user's function called the one of graphc's that asks this, or Python did for it."""
    return not sys._getframe(2).f_code.co_filename.startswith(PACKAGE)
