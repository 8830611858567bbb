"""The calling convention of a function, and checks of the arguments in Python.

In: `In` and `Out` records; the values of a call. Out: a `Convention`; each argument as an array of its input's type, or
an error that names the input. Native code checks arguments itself: this runs where it refuses them, and in other modes.

    x = T.fvector("x")
    name_positions([In(x)])      {"x": 0}
    convert([1, 2], In(x))       array([1., 2.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import as_array, refuse_masked
from graphc.errors import ArgumentError, GraphTypeError, RankError, ShapeError
from graphc.ir.node import Array, Node, describe
from graphc.startup.record import record
from graphc.trees import leaves


class _Required:
    def __bool__(self) -> bool:
        return False  # as Theano's None

    def __repr__(self) -> str:
        return "required"

    def __reduce__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()
"""The default of an input without one: every call must give its value."""


@record(eq=False)
class In:
    """An input of a function with its options.

    variable: the variable, or a tree of them. name: its keyword in calls; by default that of the variable, unless
    autoname is False. value: its default. update: the value after each call, a node of the variable's type. The input
    is then a state, which the function keeps between calls: it begins as `value`, `f[variable]` reads and sets it, and
    a call may give it. implicit: a call must not give the state; True by default where `value` is a container
    (`f.container[variable]`, `shared.container`), which both functions then share. strict: refuse any conversion.
    allow_downcast: True allows lossy casts, False none, None only those of Python numbers to floats. mutable: a call
    may overwrite its argument and return it as a result of the same dtype and shape; its contents afterwards are not
    specified. An array that is read-only, not contiguous, of another dtype, or overlaps another argument is copied
    first; a default is never overwritten. borrow, shared: accepted for Theano's sake.

    Raises GraphTypeError for a name that is no string, an update of another type, and an implicit input without a
    value.

        >>> n = T.iscalar("n")
        >>> count = graphc.function([graphc.In(n, value=0, update=n + 1)], n)
        >>> count().item(), count().item()
        (0, 1)
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
        own = (self.variable.type.dtype, self.variable.ndim) if isinstance(self.variable, Node) else None
        if new is not None and own and not (isinstance(new, Node) and (new.type.dtype, new.ndim) == own):
            what = f"{describe(new)} of type {new.type}" if isinstance(new, Node) else repr(new)
            raise GraphTypeError(f"the update of {describe(self.variable)} must be {self.variable.type}, not {what}")

    @property
    def may_be_written(self) -> bool:
        """True where a call may overwrite its array: mutable, of rank above 0, without a default to be kept."""
        return bool(self.mutable) and self.value is REQUIRED and self.variable.ndim > 0

    @property
    def is_state(self) -> bool:
        """True where the function keeps the value between calls."""
        return self.update is not None or bool(self.implicit) or hasattr(self.value, "storage")


def from_tuple(item: Any) -> Any:
    """An input that a Theano program writes as a tuple, `(x, value)`, `((x, update), value)`, `(name, x)` or
    `(name, x, value)`, as an `In`. Anything else, such as a tree of variables, is returned as it is."""
    if type(item) is not tuple or len(item) not in (2, 3):
        return item
    name, (variable, *rest) = (item[0], item[1:]) if isinstance(item[0], str) else (None, item)
    variable, update = variable if type(variable) is tuple and len(variable) == 2 else (variable, None)
    values = leaves(rest)
    if not isinstance(variable, Node) or len(rest) > 1 or any(isinstance(each, Node | In) for each in values):
        return item
    return In(variable, name, rest[0] if rest else REQUIRED, update) if values or name else item


@record(eq=False)
class Out:
    """An output of a function. borrow: accepted for Theano's sake; every call returns new arrays."""

    variable: Any
    borrow: bool = False


@record()
class Convention:
    """The calling convention of a function: its inputs, {keyword: position}, and the keys of a dict of outputs."""

    inputs: tuple[In, ...]
    positions: Mapping[str, int]
    keys: tuple[str, ...] | None


def name_positions(records: Sequence[In]) -> dict[str, int]:
    """Return {keyword: position of its input}; a name that two inputs have is no keyword."""
    names = [record.name or (record.variable.name if record.autoname else None) for record in records]
    return {name: position for position, name in enumerate(names) if name is not None and names.count(name) == 1}


# --- checks of arguments ----------------------------------------------------------------------------------------------

SEARCH = 10_000
"""Limit of work (`max_work`) in which NumPy looks for an element that two arrays have in common."""


def label(record: In) -> str:
    """The name of an input in messages."""
    if record.variable.name or not record.name:
        return describe(record.variable).replace("an unnamed input", "without a name")
    return repr(record.name)


def list_inputs(records: Sequence[In]) -> str:
    """The names of all inputs in messages."""
    return ", ".join(map(label, records)) or "none"


def convert(value: Any, record: In) -> Array:
    """Return an argument as an aligned, C-contiguous array of its input's type. Errors name the input."""
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
    """Raise RankError for another rank than that of `node`, ShapeError for another static size."""
    if len(shape) != node.ndim:
        raise RankError(f"{what} must have {node.ndim} dimensions ({node.type}); got shape {shape}")
    for axis, size in enumerate(node.type.shape):
        if isinstance(size, int) and shape[axis] != size:
            raise ShapeError(f"{what} must have size {size} along axis {axis} ({node.type}); got shape {shape}")


def stand_in(shape: Any, record: In) -> Array:
    """Return an array of this shape and the input's dtype without memory (strides 0). Errors name the input."""
    node, what = record.variable, f"the shape of {label(record)}"
    sizes = shape if isinstance(shape, tuple | list) else np.shape(shape)
    if not all(isinstance(size, int | np.integer) and size >= 0 for size in sizes):
        raise ArgumentError(f"{what} must be a tuple of sizes; got {shape!r}")
    check_shape(tuple(sizes), node, what)
    return np.broadcast_to(np.zeros((), node.dtype), tuple(map(int, sizes)))


def results_given(out: Any, outputs: Sequence[Node], keys: Sequence[str] | None, single: bool) -> list[Array | None]:
    """Return the argument `out` of a call as an array or None for each output.

    out: one array for a single output; a tuple or list of arrays and None for several; a dict by some of `keys` where
    the function returns a dict. Raises ArgumentError for another form, another dtype, a read-only array, and two arrays
    that share memory.
    """
    given = _given_in_order(out, len(outputs), keys, single)
    for number, (array, node) in enumerate(zip(given, outputs, strict=True)):
        if array is None:
            continue
        what = f"out[{number}] for {describe(node)}"
        _check_given(array, node, what)
        for other, before in enumerate(given[:number]):
            if before is not None and (before is array or _share_memory(before, array)):
                raise ArgumentError(f"{what} shares memory with out[{other}]; each result needs an array of its own")
    return given


def _given_in_order(out: Any, count: int, keys: Sequence[str] | None, single: bool) -> list[Any]:
    """The argument `out` as one item for each of `count` outputs, unchecked."""
    if keys is not None and isinstance(out, Mapping):
        if not set(out) <= set(keys):
            raise ArgumentError(f"out must be a dict with keys of {', '.join(keys)}; got {_kind(out)}")
        return [out.get(key) for key in keys]
    if single:
        return [out[0] if isinstance(out, tuple) and len(out) == 1 else out]
    if not isinstance(out, tuple | list) or len(out) != count:
        raise ArgumentError(f"out must be a tuple of {count} arrays or None; got {_kind(out)}")
    return list(out)


def _check_given(array: Any, node: Node, what: str) -> None:
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{what} must be an array; got {_kind(array)}")
    refuse_masked(array, what)
    if array.dtype != node.type.dtype:
        raise ArgumentError(f"{what} must have dtype {node.type.dtype}; got {array.dtype}")
    if not array.flags.writeable:
        raise ArgumentError(f"{what} is read-only")


def _share_memory(left: Array, right: Array) -> bool:
    """True where an element is in both arrays, or NumPy cannot tell within SEARCH."""
    try:
        return np.shares_memory(left, right, max_work=SEARCH)  # type: ignore[arg-type]  # the stubs know 0 and -1
    except np.exceptions.TooHardError:
        return True


def check_shapes(given: Sequence[Array | None], shapes: Sequence[tuple[int, ...]], outputs: Sequence[Node]) -> None:
    """Raise ShapeError where an array given for a result does not have its shape."""
    for number, (array, shape, node) in enumerate(zip(given, shapes, outputs, strict=True)):
        if array is not None and array.shape != shape:
            raise ShapeError(f"out[{number}] for {describe(node)} must have shape {shape}; got {array.shape}")


def write_results(given: Sequence[Array | None], results: Sequence[Array]) -> list[Array]:
    """Copy each result to the array given for it, and return the results of the call. A result that shares memory with
    any of these arrays is copied apart first, so that no write changes another result."""
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
