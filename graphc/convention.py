"""How a function is called: its inputs and outputs, and what its arguments are made of.

In: `In` and `Out` records, and the values of a call. Out: a `Convention`, and each argument as an array of its input's
type, or an error that names the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.errors import GraphTypeError, ShapeError
from graphc.ir.node import Array, Node, describe
from graphc.record import record
from graphc.values import as_array


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()
"""The default of an input that every call must give."""


@record(eq=False)
class In:
    """An input with more to say: a default `value`, a `name` for keyword calls, whether a lossy cast is allowed.

    `strict` refuses any conversion. `borrow` and `mutable` are accepted for Theano's sake: graphc writes no input.
    """

    variable: Node
    value: Any = REQUIRED
    name: str | None = None
    allow_downcast: bool | None = None
    strict: bool = False
    borrow: bool = False
    mutable: bool = False


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


def label(record: In) -> str:
    """An input, for messages."""
    if record.variable.name or not record.name:
        return describe(record.variable).replace("an unnamed input", "without a name")
    return repr(record.name)


def list_inputs(records: Sequence[In]) -> str:
    """All inputs, for messages."""
    return ", ".join(map(label, records)) or "none"


def convert(value: Any, record: In) -> Array:
    """An argument as an aligned C-contiguous array of its input's type; an error that names the input where not."""
    node = record.variable
    what = f"argument {label(record)}"
    array = as_array(value, node.dtype, what, strict=record.strict, allow_downcast=record.allow_downcast)
    if array.ndim != node.ndim:
        raise GraphTypeError(f"{what} must have {node.ndim} dimensions ({node.type}); got shape {array.shape}")
    for axis, size in enumerate(node.type.shape):
        if isinstance(size, int) and array.shape[axis] != size:
            raise ShapeError(f"{what} must have size {size} along axis {axis} ({node.type}); got shape {array.shape}")
    return array
