"""The table that makes equal nodes one object, and who is told of the nodes that are made.

In: keys of nodes, nodes. Out: the one node of a key, while anybody holds it. Nobody is told of nodes unless `watch` was
called: then the table is of another class, and `make` does the same as before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakValueDictionary

Note = Callable[[Any], None]


class Interned(WeakValueDictionary[Hashable, Any]):
    """Nodes by what they are made of. `get` is for `make`, whose nodes are told of; `find` for all others."""

    note: Note | None = None
    find = WeakValueDictionary.get

    def watch(self, note: Note | None) -> Note | None:
        """Call `note` with each node that is made from now on, also with one that there was already; None: call
        nothing. Returns what was called before."""
        before, self.note = self.note, note
        self.__class__ = Interned if note is None else Watched
        return before


class Watched(Interned):
    """The same, where `note` is called."""

    def get(self, key: Hashable, default: Any = None) -> Any:
        found = self.find(key, default)
        if found is not None and self.note is not None:
            self.note(found)
        return found

    def __setitem__(self, key: Hashable, node: Any) -> None:
        super().__setitem__(key, node)
        if self.note is not None:
            self.note(node)
