"""How a function is called: its inputs and outputs.

In: `In` and `Out` records. Out: a `Convention`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.values import as_array, refuse_masked
from graphc.errors import ArgumentError, GraphTypeError, RankError, ShapeError
from graphc.ir.node import Array, Node, describe
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
    return left.type.dtype == right.type.dtype and left.ndim == right.ndim


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


# --- check arguments --------------------------------------------------------------------------------------------------
# The arguments of a call, checked in Python: where native code refuses them, and in the other modes.
#
# In: the values of a call and the `In` of each. Out: each argument as an array of its input's type, or an error that
# names the input; the same for arrays that are given for results.


SEARCH = 10_000
"""Steps in which NumPy may look for an element that two arrays have in common."""


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
    array = as_array(
        value,
        node.dtype,
        what,
        strict=record.strict,
        allow_downcast=record.allow_downcast,
        allowed_by="make the function with allow_input_downcast=True",
    )
    check_shape(array.shape, node, what)
    return array


def check_shape(shape: tuple[int, ...], node: Node, what: str) -> None:
    """GraphTypeError for another rank than a variable's, ShapeError for another static size."""
    if len(shape) != node.ndim:
        raise RankError(f"{what} must have {node.ndim} dimensions ({node.type}); got shape {shape}")
    for axis, size in enumerate(node.type.shape):
        if isinstance(size, int) and shape[axis] != size:
            raise ShapeError(f"{what} must have size {size} along axis {axis} ({node.type}); got shape {shape}")


def stand_in(shape: Any, record: In) -> Array:
    """An array of the shape and dtype of an argument that takes no memory; an error that names the input."""
    node, what = record.variable, f"the shape of {label(record)}"
    sizes = shape if isinstance(shape, tuple | list) else np.shape(shape)
    if not all(isinstance(size, int | np.integer) and size >= 0 for size in sizes):
        raise ArgumentError(f"{what} must be a tuple of sizes; got {shape!r}")
    check_shape(tuple(sizes), node, what)
    return np.broadcast_to(np.zeros((), node.dtype), tuple(map(int, sizes)))


def results_given(out: Any, outputs: Sequence[Node], keys: Sequence[str] | None, single: bool) -> list[Array | None]:
    """The argument `out` of a call as an array or None for each output: one array for a single output, a tuple or list
    of arrays and None for several; where the function returns a dict, also a dict of some of its keys. ArgumentError
    otherwise."""
    if keys is not None and isinstance(out, Mapping):
        if not set(out) <= set(keys):
            raise ArgumentError(f"out must be a dict with keys of {', '.join(keys)}; got {_kind(out)}")
        given = [out.get(key) for key in keys]
    elif single:
        given = [out[0] if isinstance(out, tuple) and len(out) == 1 else out]
    else:
        if not isinstance(out, tuple | list) or len(out) != len(outputs):
            raise ArgumentError(f"out must be a tuple of {len(outputs)} arrays or None; got {_kind(out)}")
        given = list(out)
    for number, (array, node) in enumerate(zip(given, outputs, strict=True)):
        what = f"out[{number}] for {describe(node)}"
        if array is None:
            continue
        if not isinstance(array, np.ndarray):
            raise ArgumentError(f"{what} must be an array; got {_kind(array)}")
        refuse_masked(array, what)
        if array.dtype != node.type.dtype:
            raise ArgumentError(f"{what} must have dtype {node.type.dtype}; got {array.dtype}")
        if not array.flags.writeable:
            raise ArgumentError(f"{what} is read-only")
        for other, before in enumerate(given[:number]):
            if before is not None and (before is array or _share_memory(before, array)):
                raise ArgumentError(f"{what} shares memory with out[{other}]; each result needs an array of its own")
    return given


def _share_memory(left: Array, right: Array) -> bool:
    """Whether an element is in both arrays; where that takes long to find out, yes."""
    try:
        return np.shares_memory(left, right, max_work=SEARCH)  # type: ignore[arg-type]  # the stubs know 0 and -1
    except np.exceptions.TooHardError:
        return True


def check_shapes(given: Sequence[Array | None], shapes: Sequence[tuple[int, ...]], outputs: Sequence[Node]) -> None:
    """ShapeError where an array given for a result has not its shape."""
    for number, (array, shape, node) in enumerate(zip(given, shapes, outputs, strict=True)):
        if array is not None and array.shape != shape:
            raise ShapeError(f"out[{number}] for {describe(node)} must have shape {shape}; got {array.shape}")


def write_results(given: Sequence[Array | None], results: Sequence[Array]) -> list[Array]:
    """Copy each result to the array given for it, as if none of them overlapped; the results as they are returned."""
    targets = [array for array in given if array is not None]
    apart = [
        result.copy() if any(np.may_share_memory(result, target) for target in targets) else result
        for result in results
    ]
    for array, result in zip(given, apart, strict=True):
        if array is not None:
            np.copyto(array, result)
    return [result if array is None else array for array, result in zip(given, apart, strict=True)]


def _kind(value: Any) -> str:
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, tuple | list) else type(value).__name__
