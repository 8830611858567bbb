"""Values computed once in a process, whichever thread asks first.

In: a function that makes the value. Out: a function that returns it. `functools.cache` may let two threads make one
each and drop one: wrong for objects that machine code refers to by address, and for types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def once(make: Callable[[], T]) -> Callable[[], T]:
    """A function that returns the value `make` returned first, in all threads.

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
