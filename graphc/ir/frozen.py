"""Arrays that never change, as attributes of nodes.

In: an array. Out: one that is compared and hashed by its contents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.arrays.dtypes import name_of
from graphc.startup.record import record

Array = np.ndarray[Any, np.dtype[Any]]


@record(eq=False)
class FrozenArray:
    """The value of a constant, compared and hashed by dtype, shape and bits."""

    value: Array
    key: tuple[str, tuple[int, ...], bytes]

    @classmethod
    def of(cls, value: Array) -> FrozenArray:
        frozen = np.array(value, order="C", copy=True)
        frozen.flags.writeable = False
        return cls(frozen, (name_of(frozen.dtype), frozen.shape, frozen.tobytes()))

    def __repr__(self) -> str:
        return f"FrozenArray({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenArray) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)
