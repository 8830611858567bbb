"""How a function is called: its inputs and outputs.

In: `In` and `Out` records. Out: a `Convention`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.errors import GraphTypeError
from graphc.ir.node import Node, describe
from graphc.startup.record import record


class _Required:
    def __bool__(self) -> bool:
        return False  # as Theano's None

    def __repr__(self) -> str:
        return "required"

    def __reduce__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()
"""The default of an input that every call must give."""


@record(eq=False)
class In:
    """An input with more to say: a `name` for keyword calls, a default `value`, whether a lossy cast is allowed.

    update: what the value is after each call: then the input is a state of the function, which keeps it between calls;
    it begins as `value`, is `f[variable]`, and may be given in a call. implicit: it may not; this is so by itself where
    `value` is the container of a state (`f.container[variable]`) or of a shared variable, which is then shared.
    `strict` refuses any conversion. mutable: a call may write the array it is given, and return it as a result of the
    same dtype and sizes; what it holds afterwards is not specified. An array that is read-only, not contiguous, of
    another dtype, or overlaps another argument is copied first; a default is never written. autoname: the name is the
    variable's where none is given. `borrow` and `shared` are accepted for Theano's sake and change nothing.

    Raises GraphTypeError for a name that is no string, for an update of another type, and for an implicit input without
    a value.
    """

    variable: Any
    name: str | None = None
    value: Any = REQUIRED
    update: Any = None
    mutable: bool | None = False
    strict: bool = False
    allow_downcast: bool | None = None
    autoname: bool = True
    implicit: bool | None = None
    borrow: bool | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise GraphTypeError(f"the name of an input is a string, not {self.name!r}")
        if self.value is None:
            object.__setattr__(self, "value", REQUIRED)
        if self.implicit and self.value is REQUIRED:
            raise GraphTypeError(f"an implicit input needs a value: {describe(self.variable)}")
        new = self.update
        is_tree = not isinstance(self.variable, Node)
        if new is not None and not is_tree and (not isinstance(new, Node) or not _of_one_type(new, self.variable)):
            what = f"{describe(new)} of type {new.type}" if isinstance(new, Node) else repr(new)
            raise GraphTypeError(f"the update of {describe(self.variable)} must be {self.variable.type}, not {what}")

    @property
    def may_be_written(self) -> bool:
        """Whether a call may write the array: a default must be the same at the next."""
        return bool(self.mutable) and self.value is REQUIRED and self.variable.ndim > 0

    @property
    def is_state(self) -> bool:
        """Whether the value is kept between calls."""
        return self.update is not None or bool(self.implicit) or hasattr(self.value, "storage")


def _of_one_type(left: Node, right: Node) -> bool:
    return left.dtype == right.dtype and left.ndim == right.ndim


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
    names = [record.name or (record.variable.name if record.autoname else None) for record in records]
    return {name: position for position, name in enumerate(names) if name is not None and names.count(name) == 1}
