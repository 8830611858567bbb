"""Constant arrays as attributes of nodes.

In: an array. Out: an immutable copy that is compared and hashed by its contents. The contents of a large array are read
once, for their digest.
"""

from __future__ import annotations

from typing import Any

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
        frozen = np.array(value, order="C", copy=True)
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
