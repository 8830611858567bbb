"""The interning table of nodes, and a callback for each node made.

In: keys, nodes. Out: the one node of a key, while it is referenced. `watch` installs a callback by changing the table's
class; without one, `make` pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakValueDictionary

Note = Callable[[Any], None]


class Interned(WeakValueDictionary[Hashable, Any]):
    """Nodes by key, weakly referenced. `make` uses `get`, which reports to the callback; all others use `find`."""

    note: Note | None = None
    find = WeakValueDictionary.get

    def watch(self, note: Note | None) -> Note | None:
        """Call `note` with each node that `make` returns, new or interned before; None removes the callback. Returns
        the previous one."""
        before, self.note = self.note, note
        self.__class__ = Interned if note is None else Watched
        return before


class Watched(Interned):
    """The table while a callback is installed."""

    def get(self, key: Hashable, default: Any = None) -> Any:
        found = self.find(key, default)
        if found is not None and self.note is not None:
            self.note(found)
        return found

    def __setitem__(self, key: Hashable, node: Any) -> None:
        super().__setitem__(key, node)
        if self.note is not None:
            self.note(node)
