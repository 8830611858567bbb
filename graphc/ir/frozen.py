"""Equal nodes as one object: constant arrays compared by their contents, and the interning table of nodes.

In: an array; keys, nodes. Out: an immutable copy that is compared and hashed by its contents, of which those of a large
array are read once, for their digest; the one node of a key, while it is referenced. `watch` installs a callback for
each node made by changing the table's class; without one, `make` pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from graphc.arrays.dtypes import name_of
from graphc.startup.digest import digest_of
from graphc.startup.record import record

Array = np.ndarray[Any, np.dtype[Any]]


LARGE_BYTES = 2**16
"""A larger array is compared by the digest of its bytes."""


@record(eq=False)
class FrozenArray:
    """The value of a constant, compared and hashed by dtype, shape and bits. `key` holds the bits, or their digest."""

    value: Array
    key: tuple[str, tuple[int, ...], bytes]

    @classmethod
    def of(cls, value: Array) -> FrozenArray:
        dtype = np.dtype(
            name_of(value.dtype)
        )  # NumPy's own object, which native code knows; a pickled array has another
        frozen = np.array(value, dtype, order="C", copy=True).view(dtype)
        frozen.flags.writeable = False
        large = frozen.nbytes > LARGE_BYTES
        bits = digest_of(frozen.reshape(-1).view(np.uint8).data).encode() if large else frozen.tobytes()
        return cls(frozen, (name_of(frozen.dtype), frozen.shape, bits))

    @property
    def digest(self) -> str | None:
        """The hexadecimal digest of a large array's bits; None for a small array."""
        return self.key[2].decode() if self.value.nbytes > LARGE_BYTES else None

    def __repr__(self) -> str:
        return f"FrozenArray({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenArray) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


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
