"""Values that a process has once, whichever thread asks first.

In: what makes such a value. Out: what gives it. `functools.cache` may let two threads make one each, of which one is
dropped: wrong for what machine code knows by its address, and for types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def once(make: Callable[[], T]) -> Callable[[], T]:
    """A function that gives what `make` gave first, in all threads.

    >>> @once
    ... def table() -> list[int]:
    ...     return [0] * 8
    >>> table() is table()
    True
    """
    found: dict[None, T] = {}

    def value() -> T:
        return found[None] if found else found.setdefault(None, make())

    value.__name__, value.__qualname__, value.__doc__ = make.__name__, make.__qualname__, make.__doc__
    value.__module__ = make.__module__
    return value
