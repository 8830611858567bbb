"""Changed copies under JAX's names: `x.at[key].set(v)`, `.add(v)`, `.get()` and their kin.

In: a tensor, and a key in any of NumPy's forms. Out: a copy of which the selected part is changed; `x` stays.

    x.at[1:3].set(0.0)                     set_subtensor(x[1:3], 0.0)
    x.at[i].add(v)                         inc_subtensor(x[i], v): where an index repeats, all are added
    x.at[i].multiply(v)                    a loop over the elements of i, which may repeat
    x.at[i].get(mode="fill")               x[i], NaN where i is out of bounds

Without `mode`, keys have NumPy's meaning: an index out of bounds is an error. "promise_in_bounds" is the same; "clip"
moves an index into the bounds; "drop" and "fill" leave out what is beyond: it is not written, and reads as a value that
is told. Such updates go to the elements in a row, with one more at the end that takes what is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np

from graphc.arrays.array import ndarray
from graphc.arrays.dtypes import INTEGERS, absent
from graphc.control.functional import scan
from graphc.errors import GraphTypeError, GraphValueError, IndexOutOfBounds
from graphc.ir import sizes
from graphc.ir.at_once import is_plain, public
from graphc.ir.call_errors import explained_class
from graphc.ir.node import FUNCTIONS, Node, constant_value, describe, literal
from graphc.ir.source_lines import TRACE
from graphc.ir.walk import as_size_node
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.shape import broadcast_to, concatenate, expand, iota, reshape, zeros
from graphc.startup.hooks import HOOKS
from graphc.tensor.indexing import getitem, inc_subtensor, set_subtensor
from graphc.tensor.keys import holds_node

MODES = (None, "promise_in_bounds", "clip", "drop", "fill")


class Updates:
    """`x.at`: `x.at[key]` selects a part of `x` that a changed copy is made of."""

    def __init__(self, x: Any) -> None:
        self.x = as_node(x)

    def __getitem__(self, key: Any) -> Selected:
        return Selected(self.x, key)

    def __repr__(self) -> str:
        return f"<the parts of {describe(self.x)}>"


class Selected:
    """A part of a tensor, of which changed copies are made. Each method returns a tensor of the type of the whole.

    All take `mode` ("promise_in_bounds", "clip", "drop", "fill"; see `x.at`), and unique_indices: True says that no
    element is selected twice, so that no loop is needed. indices_are_sorted changes nothing. Values broadcast to the
    part, and are cast to its dtype where that keeps their kind.

    Raise IndexOutOfBounds where an index is out of bounds, GraphTypeError for values of another kind, ShapeError for
    values that do not fit.
    """

    def __init__(self, x: Node, key: Any) -> None:
        self.x, self.key = x, key

    def __repr__(self) -> str:
        return f"<a part of {describe(self.x)}>"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        fill_value: Any = None,
    ) -> Node:
        """Return the part itself. fill_value: what mode "fill" (and "drop") gives for an index out of bounds; by
        default NaN for floats, the smallest number of signed integers, the largest of unsigned ones, and True.

            >>> T.constant([1.0, 2.0]).at[[1, 5]].get(mode="fill", fill_value=-1).eval()
            array([ 2., -1.])
        """
        if _checked(mode) in (None, "promise_in_bounds") or not _has_indices(self.x, self.key):
            return getitem(self.x, self.key)
        key, valid = bounded(self.x, self.key)
        part = getitem(self.x, key)
        if mode == "clip":
            return part
        fill = literal(absent(part.type.dtype), part.type.dtype) if fill_value is None else fill_value
        return elementwise("where", valid, part, _cast("get", self.x, as_node(fill), fill))

    def set(self, values: Any, **how: Any) -> Node:
        """Return a copy in which the part is `values`; where an index repeats, the last one holds.

        >>> T.zeros(3).at[1].set(5.0).eval()
        array([0., 5., 0.])
        """
        return self._written("set", values, set_subtensor, how)

    def add(self, values: Any, **how: Any) -> Node:
        """Return a copy in which `values` are added to the part; where an index repeats, all of them.

        >>> T.zeros(3).at[[0, 0, 2]].add(1.0).eval()
        array([2., 0., 1.])
        """
        return self._written("add", values, inc_subtensor, how)

    def subtract(self, values: Any, **how: Any) -> Node:
        """Return a copy in which `values` are subtracted from the part; where an index repeats, all of them."""
        return self._written(
            "subtract", values, lambda part, value: inc_subtensor(part, elementwise("neg", value)), how
        )

    def multiply(self, values: Any, **how: Any) -> Node:
        """Return a copy in which the part is multiplied by `values`; where an index repeats, by all of them.

        >>> T.ones(3).at[[0, 0, 2]].multiply([2.0, 3.0, 4.0]).eval()
        array([6., 1., 4.])
        """
        return self.folded("multiply", values, lambda part, value: elementwise("mul", part, value), how)

    mul = multiply

    def divide(self, values: Any, **how: Any) -> Node:
        """Return a copy in which the part is divided by `values`; where an index repeats, by all of them."""
        return self.folded("divide", values, lambda part, value: elementwise("true_div", part, value), how)

    div = divide

    def power(self, values: Any, **how: Any) -> Node:
        """Return a copy in which the part is raised to the power of `values`."""
        return self.folded("power", values, lambda part, value: elementwise("pow", part, value), how)

    def min(self, values: Any, **how: Any) -> Node:
        """Return a copy in which the part is the smaller of itself and `values`."""
        return self.folded("min", values, lambda part, value: elementwise("minimum", part, value), how)

    def max(self, values: Any, **how: Any) -> Node:
        """Return a copy in which the part is the larger of itself and `values`.

        >>> T.zeros(3).at[[0, 0, 2]].max([1.0, 3.0, -1.0]).eval()
        array([3., 0., 0.])
        """
        return self.folded("max", values, lambda part, value: elementwise("maximum", part, value), how)

    def apply(self, func: Callable[[Any], Any], **how: Any) -> Node:
        """Return a copy in which the part is `func` of itself, a function of single elements; where an index repeats,
        it is applied as often.

        >>> T.constant([1.0, 4.0]).at[1].apply(T.sqrt).eval()
        array([1., 2.])
        """
        return self.folded("apply", 0, lambda part, value: as_node(func(part)), how)

    # --- how --------------------------------------------------------------------------------------------------------

    def _written(self, name: str, values: Any, write: Callable[..., Node], how: dict[str, Any]) -> Node:
        """Return the copy that a write of NumPy's kind makes."""
        mode, _ = _options(name, how)
        value = _cast(name, self.x, as_node(values), values)
        if mode in ("drop", "fill") and _has_indices(self.x, self.key):
            flat, places = self._row(mode)
            written: Node = write(getitem(flat, places), value)
            return self._whole(written)
        key = bounded(self.x, self.key)[0] if mode == "clip" and _has_indices(self.x, self.key) else self.key
        return write(getitem(self.x, key), value)

    def folded(self, name: str, values: Any, change: Callable[[Node, Node], Node], how: dict[str, Any]) -> Node:
        """Return the copy in which each selected element is changed, as often as it is selected."""
        mode, is_unique = _options(name, how)
        value = as_node(values)

        def changed(part: Node, value: Any) -> Node:
            value_after = change(part, value)
            return _cast(name, self.x, value_after, value_after)

        operand = values if value.ndim == 0 and not isinstance(values, Node) else value  # a number has no dtype
        if is_unique or _selects_once(self.x, self.key):
            part = self.get(mode="clip" if mode in ("drop", "fill") else mode)
            return self.set(changed(part, operand), mode=mode)
        flat, places = self._row(mode)
        count = sizes.product(places.type.shape)
        spread = broadcast_to(expand(value, range(places.ndim - value.ndim)), places.type.shape)
        rows = reshape(places, (count,)), reshape(spread, (count,))

        def step(row: Node, pair: Any) -> tuple[Node, None]:
            place, part_value = pair
            part = getitem(row, place)
            return set_subtensor(part, changed(part, operand if value.ndim == 0 else part_value)), None

        last, _ = scan(step, flat, rows)
        return self._whole(last)

    def _row(self, mode: str | None) -> tuple[Node, Node]:
        """Return the elements in a row, and the places in it that the key selects. With modes that leave out what is
        out of bounds, there is one more element at the end, which takes it."""
        size = sizes.product(self.x.type.shape)
        flat, numbers = reshape(self.x, (size,)), reshape(iota(size), self.x.type.shape)
        if mode in (None, "promise_in_bounds") or not _has_indices(self.x, self.key):
            return flat, getitem(numbers, self.key)
        key, valid = bounded(self.x, self.key)
        places = getitem(numbers, key)
        if mode == "clip":
            return flat, places
        one_more = concatenate([flat, zeros(self.x.type.dtype, (1,))], 0)
        return one_more, elementwise("where", valid, places, as_size_node(size))

    def _whole(self, row: Node) -> Node:
        size = sizes.product(self.x.type.shape)
        return reshape(getitem(row, slice(0, size)), self.x.type.shape)


def _checked(mode: Any) -> str | None:
    if mode not in MODES:
        raise GraphValueError(f"at: mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
    return mode


def _options(name: str, how: dict[str, Any]) -> tuple[str | None, bool]:
    """Return the mode, and whether no element is selected twice."""
    unknown = how.keys() - {"mode", "unique_indices", "indices_are_sorted", "wrap_negative_indices", "out_sharding"}
    if unknown or how.get("wrap_negative_indices", True) is not True:
        names = ", ".join(sorted(unknown)) or "wrap_negative_indices"
        raise GraphValueError(f"at[...].{name} does not take {names}; it takes mode and unique_indices")
    return _checked(how.get("mode")), bool(how.get("unique_indices"))


def _cast(name: str, x: Node, value: Node, operand: Any) -> Node:
    """Return a value in the dtype of the whole. Raises GraphTypeError where that is of another kind."""
    dtype = x.type.dtype
    is_weak = isinstance(operand, bool | int | float | list | tuple) and not holds_node(operand)
    source = np.result_type(np.dtype(dtype), operand) if is_weak and value.ndim == 0 else np.dtype(value.type.dtype)
    if not np.can_cast(source, dtype, "same_kind"):
        raise GraphTypeError(
            f"at[...].{name}: {describe(value)} of type {value.type} does not fit into {describe(x)} of type {x.type}; "
            "cast one of them"
        )
    return as_node(operand, dtype)


# --- keys -------------------------------------------------------------------------------------------------------------


def _parts(x: Node, key: Any) -> list[Any]:
    """Return the parts of a key, with a slice for each axis that it does not name."""
    parts = list(key) if isinstance(key, tuple) else [key]
    taken = sum(_axes(part) for part in parts)
    if taken > x.ndim:
        raise IndexOutOfBounds(f"index of {describe(x)} of type {x.type}: {taken} indices for {x.ndim} axes")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    place = next(place for place, part in enumerate(parts) if part is Ellipsis)
    return [*parts[:place], *[slice(None)] * (x.ndim - taken), *parts[place + 1 :]]


def _axes(part: Any) -> int:
    """Return the number of axes that a part of a key stands for."""
    if part is None or part is Ellipsis:
        return 0
    return as_node(part).ndim if _is_mask(part) else 1


def _is_mask(part: Any) -> bool:
    return not isinstance(part, slice) and part is not None and part is not Ellipsis and as_node(part).dtype == "bool"


def _is_index(part: Any) -> bool:
    return not (part is None or part is Ellipsis or isinstance(part, slice))


def _has_indices(x: Node, key: Any) -> bool:
    """Return True where a key has integers or arrays of them, which may be out of bounds."""
    return any(_is_index(part) and not _is_mask(part) for part in _parts(x, key))


def _selects_once(x: Node, key: Any) -> bool:
    """Return True where a key is known to select no element twice: it has no arrays of integers but one of constants
    that are all different and count from one end."""
    arrays = [as_node(part) for part in _parts(x, key) if _is_index(part) and not _is_mask(part)]
    arrays = [each for each in arrays if each.ndim]
    if not arrays:
        return True
    values = [constant_value(each) for each in arrays]
    if any(value is None or not ((value >= 0).all() or (value < 0).all()) for value in values):
        return False
    columns = np.stack([each.ravel() for each in np.broadcast_arrays(*values)])  # type: ignore[arg-type]
    return bool(np.unique(columns, axis=1).shape[1] == columns.shape[1])


def bounded(x: Node, key: Any) -> tuple[tuple[Any, ...], Node]:
    """Return a key of which all indices are in bounds, and where those of `key` are: bools that broadcast to what is
    selected. Raises GraphTypeError for a mask among them."""
    parts, axis, valid = _parts(x, key), 0, as_node(True)
    indices: list[Any] = []
    ranks: list[int] = []
    places = [place for place, part in enumerate(parts) if _is_index(part)]
    for part in parts:
        if not _is_index(part):
            indices.append(part)
            axis += part is not None
            continue
        index = as_node(part)
        if index.type.dtype not in INTEGERS:
            raise GraphTypeError(f"at: {describe(index)} of dtype {index.type.dtype} has no mode: it is no index")
        length = as_size_node(x.type.shape[axis])
        index = cast(index, "int64")
        counted = elementwise("where", elementwise("less", index, 0), elementwise("add", index, length), index)
        for inside in (elementwise("greater_equal", counted, 0), elementwise("less", counted, length)):
            valid = elementwise("logical_and", valid, inside)
        indices.append(elementwise("maximum", elementwise("minimum", counted, elementwise("sub", length, 1)), 0))
        ranks.append(index.ndim)
        axis += 1
    # The axes of index arrays stand where the arrays do if these are side by side, else before all others.
    adjacent = all(after == before + 1 for before, after in pairwise(places))
    behind = parts[places[-1] + 1 :] if adjacent else parts
    after = sum(not _is_index(part) for part in behind) if max(ranks, default=0) else 0
    return tuple(indices), expand(valid, range(valid.ndim, valid.ndim + after))


explained_class(Updates)
explained_class(Selected)


# --- of arrays --------------------------------------------------------------------------------------------------------

WRITES = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
"""The functions of NumPy's that change the elements of an array for each index."""


class ArrayUpdates(Updates):
    """`x.at` of an array: copies are computed at once, unless a function is traced or the key holds a tensor."""

    def __init__(self, x: Any) -> None:
        self.array = np.asarray(x)

    @property
    def x(self) -> Node:  # type: ignore[override]
        return as_node(self.array)

    def __getitem__(self, key: Any) -> Any:
        return ArraySelected(self.array, key) if is_plain((key,), {}) else Selected(self.x, key)


class ArraySelected:
    """A part of an array, of which changed copies are made by the methods of `Selected`."""

    def __init__(self, array: Any, key: Any) -> None:
        self.array, self.key = array, key

    def __repr__(self) -> str:
        return f"<a part of {self.array!r}>"

    def __getattr__(self, name: str) -> Any:
        method = getattr(Selected, name)

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not is_plain(args, kwargs):
                return method(Selected(as_node(self.array), self.key), *args, **kwargs)
            if kwargs.get("mode") in (None, "promise_in_bounds") and len(args) == 1 and len(kwargs) < 2:
                copy = self.written(NAMES.get(name, name), args[0])
                if copy is not None:
                    return copy.view(ndarray)
            result = method(Selected(as_node(self.array), self.key), *args, **kwargs)
            return public(FUNCTIONS["eval"](result, mode="interpreted"))

        return call

    def written(self, name: str, values: Any) -> Any:
        """The changed copy, as NumPy makes it; None where graphc's rules differ: of other kinds of dtypes."""
        array, dtype = self.array, self.array.dtype
        is_plain_number = type(values) in (int, float)
        value_dtype = np.result_type(dtype, values) if is_plain_number else np.asarray(values).dtype
        if name not in (*WRITES, "set") or dtype.kind not in "fc" or not np.can_cast(value_dtype, dtype, "same_kind"):
            return None
        copy, key = array.copy(), self.key
        if isinstance(key, list):
            key = np.asarray(key)
        if name == "set":
            copy[key] = values
        else:
            with np.errstate(all="ignore"):
                WRITES[name].at(copy, key, np.asarray(values, dtype))
        return copy


NAMES = {"mul": "multiply", "div": "divide"}


def updates_of(x: Any) -> Updates:
    """`x.at` of an array or a tensor."""
    return ArrayUpdates(x) if isinstance(x, np.ndarray) and not TRACE.depth else Updates(x)


HOOKS.at = updates_of
