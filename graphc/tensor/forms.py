"""NumPy's functions in the forms that `graphc.tensor` lacks, or has under another meaning.

    np.where(mask)                  the places where a mask is true
    np.nansum(x, where=mask)        of the elements that are marked
    np.packbits(mask)               eight bools to a byte

In: arguments as NumPy's function takes them. Out: nodes. `OWN` has them by NumPy's names; `dispatch.py` asks it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from graphc import tensor
from graphc.arrays.dtypes import is_float
from graphc.errors import GraphTypeError, ShapeError
from graphc.ir.node import Node, describe
from graphc.ir.source_lines import TRACE, traced_hint
from graphc.ir.symbol import asked
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import WEAK, as_node, cast, is_number
from graphc.ops.questions import asked_equal, plain_shape
from graphc.startup.hooks import HOOKS
from graphc.tensor import spectra

Function = Callable[..., Any]


def tensors_in(value: Any) -> Iterator[Node]:
    """The tensors among arguments."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def name_tensor(*values: Any) -> str:
    """The first tensor among arguments, for a message."""
    found = next(tensors_in(values), None)
    return describe(found) if found is not None else "a tensor"


def refuse(name: str, given: Any, why: str) -> NoReturn:
    told = name_tensor(given)
    hint = traced_hint(next(tensors_in(given), None))
    raise GraphTypeError(f"{name} of {told}, which is symbolic: {why}{hint}{asked(told)}")


def shape_of(a: Any) -> Any:
    """The sizes of all axes: a tuple in a traced function; elsewhere an integer vector, which can be unpacked."""
    return plain_shape(as_node(a)) if TRACE.depth else tensor.shape(a)


def size_of(a: Any, axis: Any = None) -> Node:
    """The number of elements, or the size of one axis. Raises IndexError for an axis that is not there."""
    node = as_node(a)
    return tensor.size(node) if axis is None else as_size_node(node.type.shape[range(node.ndim)[axis]])


def where(condition: Any, *values: Any) -> Any:
    """Elements of one array where a condition holds, of another elsewhere; of a condition alone its `nonzero`."""
    return tensor.where(condition, *values) if values else tensor.nonzero(condition)


def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None) -> Node:
    """Arrays joined along `axis`; with `axis=None` their elements in C order, as one vector."""
    joined = tensor.concatenate([tensor.flatten(a) for a in arrays], 0) if axis is None else None
    result = tensor.concatenate(list(arrays), axis) if joined is None else joined
    return result if dtype is None else tensor.cast(result, dtype)


def atleast_1d(*arys: Any) -> Any:
    """An array of one axis or more: a number becomes a vector of one element. Several arguments give a list.

    A variable of a class of the program's own, as PyMC3's, is an element of an array of objects, as Theano's variables
    were to NumPy: another node would not have its attributes."""
    if len(arys) == 1 and not TRACE.depth and not type(arys[0]).__module__.startswith("graphc."):
        objects = np.empty(1, object)
        objects[0] = arys[0]
        return objects
    return tensor.atleast_1d(*arys)


def stack(arrays: Any, axis: int = 0, dtype: Any = None) -> Node:
    """Arrays of one shape joined along a new axis; of one tensor its rows."""
    result = tensor.stack(list(arrays), axis=axis)
    return result if dtype is None else tensor.cast(result, dtype)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Node]:
    """A list of parts along `axis`: as many equal parts as a number says, or cut at the indices of a list.

    This is NumPy's function; `tensor.split` is Theano's. Raises ShapeError where equal parts are not possible."""
    node = as_node(ary)
    if not isinstance(indices_or_sections, list | tuple | np.ndarray):
        indices_or_sections = sections = int(indices_or_sections)
        size = node.type.shape[range(node.ndim)[axis]]
        if isinstance(size, int) and sections and size % sections:
            raise ShapeError(
                f"np.split of {describe(node)} of type {node.type}: axis {axis} cannot be divided equally into "
                f"{sections} parts"
            )
        if not isinstance(size, int) and sections > 0:
            shape = list(node.type.shape)
            shape[axis] = tensor.mul(tensor.floor_div(size, sections), sections)
            node = tensor.specify_shape(node, tuple(shape))
    return tensor.array_split(node, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Node]:
    """`split` along the second axis, of a vector along its only one."""
    return split(ary, indices_or_sections, 1 if as_node(ary).ndim > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Node]:
    """`split` along the first axis."""
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Node]:
    """`split` along the third axis."""
    return split(ary, indices_or_sections, 2)


def unstack(x: Any, axis: int = 0) -> tuple[Node, ...]:
    """The arrays along `axis`, as a tuple. The size of the axis must be known."""
    return tuple(tensor.moveaxis(x, axis, 0))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Node:
    """The numbers from `start` to `stop` in steps of `step`, float64 where one is uint64 and no dtype is given."""
    ends = [as_node(value) for value in (start, stop, step) if value is not None]
    wide = dtype is None and any(node.type.dtype == "uint64" for node in ends)
    return tensor.arange(start, stop, step, "float64" if wide else dtype)


def filled(value: Any) -> Function:
    """A function that fills an array like another one with `value`: `zeros_like`, `ones_like` and `empty_like`."""

    def like(a: Any, dtype: Any = None, shape: Any = None) -> Node:
        node = as_node(a)
        wanted = node.type.dtype if dtype is None else dtype
        return tensor.full(tensor.shape(node) if shape is None else shape, value, dtype=wanted)

    return like


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Node:
    """An array of the shape and dtype of `a` with `fill_value` everywhere; `dtype` and `shape` replace those of `a`."""
    if isinstance(a, Node) and shape is None:
        return tensor.full_like(a, fill_value, dtype=dtype)
    made: Node = filled(fill_value)(a, dtype, shape)
    return made


def real(val: Any) -> Node:
    """The real part; a real array itself."""
    return tensor.real(val)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that NumPy gives to a result of these arrays and dtypes. It needs no value, so it is no tensor."""
    return np.result_type(*map(weight, arrays_and_dtypes))


def weight(x: Any) -> Any:
    """Return the stand-in of a value in NumPy's promotion: of a tensor its dtype, of a Python number another one."""
    if not isinstance(x, Node):
        return x
    return WEAK[x.type.dtype] if is_number(x) else np.dtype(x.type.dtype)


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Tell whether a dtype, or that of a tensor, can be cast to another one by the rule `casting`."""
    return bool(np.can_cast(np.dtype(getattr(from_, "dtype", from_)), to, casting))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Node:
    """Tell whether two arrays have one shape and the same elements. Sizes that are at hand are asked.

    With `equal_nan` NaN equals NaN. Raises GraphTypeError for a tensor and a value that is no array of numbers."""
    left, right = as_node(a1), as_node(a2)
    sizes = zip(left.type.shape, right.type.shape, strict=False)
    differ = left.ndim == right.ndim and any(asked_equal(a, b) is False for a, b in sizes)
    if left.ndim != right.ndim or differ:
        return as_node(False)
    made: Node = tensor.array_equal(left, right, equal_nan)
    return made


def along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """The results of a function of vectors, for all vectors along an axis. The function is traced once."""
    node = as_node(arr)
    rows, place = tensor.moveaxis(node, axis, -1), range(node.ndim)[axis]
    others = node.ndim - 1

    def mapped(row: Any) -> Any:
        return func1d(row, *args, **kwargs)

    for _ in range(others):
        mapped = HOOKS.of_functions.vmap(mapped)
    made = as_node(mapped(rows))
    new = range(made.ndim - others)
    return tensor.moveaxis(made, [others + k for k in new], [place + k for k in new]) if new else made


def shifted(inverse: bool) -> Function:
    """A function that moves the frequency 0 to the middle of each axis, or back: `fftshift`, `ifftshift`."""

    def shift(x: Any, axes: Any = None) -> Node:
        node = as_node(x)
        chosen = range(node.ndim) if axes is None else [axes] if isinstance(axes, int | np.integer) else axes
        for axis in chosen:
            half = node.shape[axis] // 2
            node = tensor.roll(node, -half if inverse else half, axis)
        return node

    return shift


def frequencies(n: Any, d: Any = 1.0, device: Any = None) -> Node:
    """The frequencies of `fft` of `n` samples at distance `d`: those from 0 on first, then the negative ones."""
    rising = [tensor.arange(0, (n - 1) // 2 + 1), tensor.arange(-(n // 2), 0)]
    return tensor.mul(tensor.concatenate(rising), 1.0 / (n * d))


def real_frequencies(n: Any, d: Any = 1.0, device: Any = None) -> Node:
    """The frequencies of `rfft` of `n` samples at distance `d`."""
    return tensor.mul(tensor.arange(0, n // 2 + 1), 1.0 / (n * d))


def windows(x: Any, window_shape: Any, axis: Any = None) -> Node:
    """The windows of a shape at all places of an array, with new axes at the end."""
    node = as_node(x)
    lengths = window_shape if isinstance(window_shape, tuple | list) else (window_shape,)
    axes = range(node.ndim) if axis is None else [axis] if isinstance(axis, int | np.integer) else axis
    for place, length in zip(axes, lengths, strict=True):
        size, place = node.type.shape[range(node.ndim)[place]], range(node.ndim)[place]
        starts = tensor.arange(size - length + 1)
        node = tensor.moveaxis(tensor.take(node, starts[:, None] + tensor.arange(length), place), place + 1, -1)
    return node


def bessel(x: Any) -> Node:
    """The modified Bessel function of the first kind of order 0; integers give float64."""
    node = as_node(x)
    return tensor.i0(node if is_float(node.type.dtype) else cast(node, "float64"))


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """The weighted mean over `axis`; with `returned` a pair of it and the sum of the weights."""
    node = as_node(a)
    made = tensor.average(node, axis, weights, keepdims)
    if not returned:
        return made
    spread = tensor.ones_like(node) if weights is None else as_node(weights)
    if spread.ndim != node.ndim:
        spread = tensor.expand_dims(spread, [k for k in range(node.ndim) if k != range(node.ndim)[axis]])
    total = tensor.sum(tensor.broadcast_to(spread, tensor.shape(node)), axis, keepdims=keepdims)
    return made, cast(total, made.type.dtype)


def packbits(a: Any, axis: Any = None, bitorder: str = "big") -> Node:
    """Truths packed into the bits of uint8, eight to a number along `axis`; missing ones are 0."""
    node = tensor.moveaxis(tensor.flatten(a) if axis is None else as_node(a), -1 if axis is None else axis, -1)
    count, others = node.shape[-1], tuple(node.shape[k] for k in range(node.ndim - 1))
    bits = cast(tensor.neq(node, 0), "uint8")
    bits = tensor.concatenate([bits, tensor.zeros((*others, -count % 8), "uint8")], -1)
    weights = 1 << np.arange(8, dtype="uint8")
    eights = tensor.reshape(bits, (*others, (count + 7) // 8, 8), ndim=node.ndim + 1)
    packed = tensor.sum(eights * (weights[::-1] if bitorder == "big" else weights), -1, dtype="uint8")
    return tensor.moveaxis(packed, -1, -1 if axis is None else axis)


def unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: str = "big") -> Node:
    """The bits of uint8 as numbers 0 and 1 along `axis`. Raises GraphTypeError for another dtype."""
    node = as_node(a)
    if node.type.dtype != "uint8":
        raise GraphTypeError(f"np.unpackbits of {describe(node)} of type {node.type}: it takes uint8")
    node = tensor.moveaxis(tensor.flatten(node) if axis is None else node, -1 if axis is None else axis, -1)
    others, size = tuple(node.shape[k] for k in range(node.ndim - 1)), node.shape[-1] * 8
    shifts = np.arange(8, dtype="uint8")
    bits = (node[..., None] >> (shifts[::-1] if bitorder == "big" else shifts)) & np.uint8(1)
    bits = tensor.reshape(bits, (*others, size), ndim=node.ndim)
    if count is not None:
        more = tensor.maximum(count - size, 0)
        bits = tensor.concatenate([bits[..., :count], tensor.zeros((*others, more), "uint8")], -1)
    return tensor.moveaxis(bits, -1, -1 if axis is None else axis)


def common_type(*arrays: Any) -> Any:
    """The inexact type, a class of NumPy, that all arrays can be cast to. It needs no value, so it is no tensor."""
    return np.common_type(*(np.empty(0, as_node(each).type.dtype) for each in arrays))


def min_scalar_type(a: Any) -> Any:
    """The dtype of an array. Raises GraphTypeError for a tensor without axes, whose value decides."""
    if not as_node(a).ndim:
        refuse("np.min_scalar_type", a, "the dtype depends on its value")
    return np.dtype(as_node(a).type.dtype)


OWN: dict[str, Function] = {
    "np.shape": shape_of, "np.size": size_of, "np.where": where, "np.concatenate": concatenate,
    "np.concat": concatenate, "np.stack": stack, "np.atleast_1d": atleast_1d,
    "np.split": split, "np.hsplit": hsplit, "np.vsplit": vsplit, "np.dsplit": dsplit,
    "np.unstack": unstack, "np.arange": arange, "np.i0": bessel,
    # Python's numbers are arrays to NumPy's products, which have a dtype
    "np.dot": lambda a, b: tensor.dot(as_node(a), as_node(b)),
    "np.inner": lambda a, b: tensor.inner(as_node(a), as_node(b)),
    "np.zeros_like": filled(0), "np.ones_like": filled(1), "np.empty_like": filled(0), "np.full_like": full_like,
    "np.real": real, "np.result_type": result_type, "np.can_cast": can_cast, "np.array_equal": array_equal,
    "np.apply_along_axis": along_axis,
    "np.fft.fftshift": shifted(False), "np.fft.ifftshift": shifted(True),
    "np.fft.fftfreq": frequencies, "np.fft.rfftfreq": real_frequencies,
    **{f"np.fft.{name}": getattr(spectra, name) for name in spectra.TRANSFORMS},
    "np.lib.stride_tricks.sliding_window_view": windows,
    "np.average": average, "np.packbits": packbits,
    "np.unpackbits": unpackbits, "np.common_type": common_type, "np.min_scalar_type": min_scalar_type,
    "np.linalg.trace": lambda x, offset=0, dtype=None: tensor.trace(x, offset, -2, -1, dtype),
    "np.linalg.diagonal": lambda x, offset=0: tensor.diagonal(x, offset, -2, -1),
}  # fmt: skip
"""Stand-ins for NumPy's functions where the function of that name in `tensor` is another one or lacks a form."""
