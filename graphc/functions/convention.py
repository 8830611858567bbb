"""How a function is called: its inputs and outputs.

In: `In` and `Out` records. Out: a `Convention`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.ir.node import Node
from graphc.startup.record import record


class _Required:
    def __repr__(self) -> str:
        return "required"

    def __reduce__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()
"""The default of an input that every call must give."""


@record(eq=False)
class In:
    """An input with more to say: a default `value`, a `name` for keyword calls, whether a lossy cast is allowed.

    `strict` refuses any conversion. mutable: a call may write the array it is given, and return it as a result of the
    same dtype and sizes; what it holds afterwards is not specified. An array that is read-only, not contiguous, of
    another dtype, or overlaps another argument is copied first; a default is never written. `borrow` is accepted for
    Theano's sake and changes nothing.
    """

    variable: Node
    value: Any = REQUIRED
    name: str | None = None
    allow_downcast: bool | None = None
    strict: bool = False
    borrow: bool = False
    mutable: bool = False

    @property
    def may_be_written(self) -> bool:
        """Whether a call may write the array: a default must be the same at the next."""
        return self.mutable and self.value is REQUIRED and self.variable.ndim > 0


@record(eq=False)
class Out:
    """An output. `borrow` is accepted for Theano's sake: every call returns arrays of its own."""

    variable: Any
    borrow: bool = False


@record()
class Convention:
    """How a function is called: its inputs, the position of each name, and the keys of a dict of outputs."""

    inputs: tuple[In, ...]
    positions: Mapping[str, int]
    keys: tuple[str, ...] | None


def name_positions(records: Sequence[In]) -> dict[str, int]:
    """The keyword of each input; a name two inputs share is no keyword."""
    names = [record.name or record.variable.name for record in records]
    return {name: position for position, name in enumerate(names) if name is not None and names.count(name) == 1}
