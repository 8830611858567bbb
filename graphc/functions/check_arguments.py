"""The arguments of a call, checked in Python: where native code refuses them, and in the other modes.

In: the values of a call and the `In` of each. Out: each argument as an array of its input's type, or an error that
names the input; the same for arrays that are given for results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.values import as_array, refuse_masked
from graphc.errors import ArgumentError, RankError, ShapeError
from graphc.functions.convention import In
from graphc.ir.node import Array, Node, describe

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
        if array.dtype != node.dtype:
            raise ArgumentError(f"{what} must have dtype {node.dtype}; got {array.dtype}")
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
