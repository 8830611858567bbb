"""Arguments that `jax.numpy` has besides NumPy's.

    jnp.nonzero(mask, size=4)                  four places, the last ones 0 where there are fewer
    jnp.unique(x, size=4, fill_value=-1)       four values
    jnp.sum(x, where=None)                     of all elements: to NumPy None means none of them
    jnp.matmul(a, b, precision="highest")      products are as precise as their dtype anyway
    jnp.sort(x, descending=True)               the greatest first, and NaN before it
    jnp.take(x, i, mode="fill", fill_value=0)  0 where an index is out of bounds

In: a function of arrays and of tensors under NumPy's name. Out: the function with these arguments. A known `size` makes
the shape of a selection known, so that it can be a batch's, and the carry of a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from graphc import tensor as T
from graphc.arrays.dtypes import absent
from graphc.errors import GraphValueError
from graphc.ir.at_once import is_plain, public
from graphc.ops.elementwise import as_node
from graphc.tracing.callbacks import ShapeDtypeStruct

Function = Callable[..., Any]

UNUSED = {
    "assume_unique_indices", "indices_are_sorted", "out_sharding", "precision", "unique_indices",
    "upcast_f16_for_computation",
}  # fmt: skip
"""Arguments that change nothing here."""
WAYS = {"isin": "method", "polyval": "unroll", "searchsorted": "method", "slogdet": "method"}
"""Functions of which JAX lets the program choose the way that they are computed, and by which argument."""
SYMMETRIC = {"cholesky", "eigh", "eigvalsh"}


def without_jaxs(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments that NumPy's function takes, and means the same by."""
    known = {name: v for name, v in kwargs.items() if name not in UNUSED and not (name == "where" and v is None)}
    if isinstance(known.get("axis"), list | range):
        known["axis"] = tuple(known["axis"])
    return known


def symmetrized(a: Any) -> Any:
    """The mean of matrices and their conjugate transposes."""
    module = np if is_plain((a,), {}) else T
    return (a + module.conj(module.swapaxes(a, -1, -2))) / 2


def interp(call: Function, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """`np.interp`, where "extrapolate" for `left` or `right` goes on along the first or the last line."""
    sides = {"left": (left, 0), "right": (right, -1)}
    told = {name: None if isinstance(side, str) else side for name, (side, _) in sides.items()}
    for name, (side, _) in sides.items():
        if isinstance(side, str) and side != "extrapolate":
            raise GraphValueError(f"interp: {name}={side!r} is no number and not 'extrapolate'")
    made = call(x, xp, fp, **told, period=period)
    plain = is_plain((x, xp, fp), {})
    module = np if plain else T
    x, xp, fp = (np.asarray(each) if plain else as_node(each) for each in (x, xp, fp))
    for side, end in sides.values() if period is None else ():
        if side == "extrapolate":
            inner = 1 if end == 0 else -2
            line = fp[end] + (x - xp[end]) * ((fp[inner] - fp[end]) / (xp[inner] - xp[end]))
            made = module.where(x < xp[0] if end == 0 else x > xp[-1], line, made)
    return made


def cut(values: Any, size: int, fill: Any) -> Any:
    """The first `size` elements of an array along its first axis, and the value `fill` where there are fewer."""
    found = np.asarray(values)
    rest = np.full((max(size - len(found), 0), *found.shape[1:]), fill, found.dtype)
    return np.concatenate([found[:size], rest])


def _places(marked: Any, size: Any, fill: Any) -> Any:
    """The first `size` places of a vector of bools that are true, `fill` where there are fewer."""
    own = T.where(marked, T.cumsum(marked) - 1, size)
    return T.full((size,), fill, "int64").at[own].set(T.arange(marked.shape[0]), mode="drop", unique_indices=True)


def nonzero(a: Any, *, size: Any, fill_value: Any = None) -> tuple[Any, ...]:
    """`np.nonzero` of `size` places. fill_value: a number, or one for each axis; 0 otherwise."""
    if is_plain((a, size, fill_value), {}):
        found = np.nonzero(a)
        fills = _for_each(fill_value, len(found))
        return tuple(cut(each, size, fill) for each, fill in zip(found, fills, strict=True))
    node = as_node(a)
    marked = T.neq(node, 0).ravel()
    place, shape = _places(marked, size, 0), node.shape
    is_there = T.lt(T.arange(size), marked.sum())
    places = []
    for axis in reversed(range(node.ndim)):
        places.append(place % shape[axis] if axis else place)
        place = place // shape[axis]
    fills = _for_each(fill_value, node.ndim)
    return tuple(T.where(is_there, each, fill) for each, fill in zip(reversed(places), fills, strict=True))


def _for_each(fill: Any, count: int) -> tuple[Any, ...]:
    return tuple(fill) if isinstance(fill, tuple | list) else (0 if fill is None else fill,) * count


def where(condition: Any, x: Any = None, y: Any = None, *, size: Any, fill_value: Any = None) -> Any:
    """`nonzero` under the name of `where`."""
    return nonzero(condition, size=size, fill_value=fill_value)


def flatnonzero(a: Any, *, size: Any, fill_value: Any = None) -> Any:
    """`np.flatnonzero` of `size` places."""
    flat = np.ravel(a) if is_plain((a, size, fill_value), {}) else as_node(a).ravel()
    return nonzero(flat, size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: Any, fill_value: Any = None) -> Any:
    """`np.argwhere` of `size` rows."""
    found = nonzero(a, size=size, fill_value=fill_value)
    return np.stack(found, 1) if is_plain(found, {}) else T.stack(found, 1)


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: Any, fill_value: Any = None, sorted: bool = True,
) -> Any:  # fmt: skip
    """`np.unique` of `size` values. fill_value: what stands behind fewer values; the least one otherwise. What is not
    there has the count 0 and the place of the least value."""
    flags = (return_index, return_inverse, return_counts)
    if is_plain((ar, size, fill_value), {}):
        values, index, inverse, counts = np.unique(ar, True, True, True, axis, equal_nan=equal_nan)
        along = values if axis is None else np.moveaxis(values, axis, 0)
        if size and not len(along) and fill_value is None:
            raise GraphValueError(f"unique of no elements with size={size}: fill_value says what stands there")
        filled = cut(along, size, along[:1] if fill_value is None else fill_value)
        filled = filled if axis is None else np.moveaxis(filled, 0, axis)
        several = cut(index, size, index[0] if len(index) else 0), inverse, cut(counts, size, 0)
    else:
        if axis is not None and as_node(ar).ndim > 1:
            raise GraphValueError(
                "unique with size= along an axis takes arrays, and no tensors; without axis it takes both"
            )
        x = as_node(ar)
        flat = x.ravel()
        count = flat.shape[0]
        order = T.argsort(flat, kind="stable")
        ordered = flat[order]
        differs = T.neq(ordered[1:], ordered[:-1])
        if equal_nan and np.dtype(x.dtype).kind == "f":
            differs = differs & ~(T.isnan(ordered[1:]) & T.isnan(ordered[:-1]))
        begins = T.concatenate([T.full((T.minimum(count, 1),), True, "bool"), differs])
        starts = _places(begins, size, count)
        is_there = T.lt(starts, count)
        padded = T.concatenate([ordered, T.zeros((1,), x.dtype)])
        least = padded[0] if fill_value is None else T.cast(fill_value, x.dtype)
        filled = T.where(is_there, padded[starts], least)
        places = T.concatenate([order, T.zeros((1,), "int64")])
        index = T.where(is_there, places[starts], places[0])
        inverse = T.zeros((count,), "int64").at[order].set(T.cumsum(begins) - 1, unique_indices=True)
        ends = _places(begins, size + 1, count)
        several = index, inverse.reshape(x.shape), ends[1:] - ends[:-1]
    rest = [each for each, flag in zip(several, flags, strict=True) if flag]
    return (filled, *rest) if rest else filled


def union1d(ar1: Any, ar2: Any, *, size: Any, fill_value: Any = None) -> Any:
    """`np.union1d` of `size` values."""
    joined = np if is_plain((ar1, ar2, size, fill_value), {}) else T
    both = joined.concatenate([joined.ravel(ar1), joined.ravel(ar2)])
    return unique(both, size=size, fill_value=fill_value)


def repeat(a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: Any) -> Any:
    """`np.repeat` of `total_repeat_length` elements: the last one of `a` goes on where there are fewer."""
    if is_plain((a, repeats, total_repeat_length), {}):
        length = np.size(a) if axis is None else np.shape(a)[axis]
        places = np.repeat(np.arange(length), repeats)
        return np.take(a, cut(places, total_repeat_length, length - 1), axis)
    node = as_node(a).ravel() if axis is None else as_node(a)
    along = axis or 0
    count = node.shape[along]
    ends = T.cumsum(T.zeros((count,), "int64") + as_node(repeats))
    of_each = T.searchsorted(ends, T.arange(total_repeat_length), side="right")
    return T.take(node, T.minimum(of_each, count - 1), axis=along)


def bincount(x: Any, weights: Any = None, minlength: Any = 0, *, length: Any) -> Any:
    """`np.bincount` of `length` numbers: what is beyond is not counted, and what is below 0 counts as 0."""
    if is_plain((x, weights, length), {}):
        return cut(np.bincount(np.maximum(x, 0), weights, length), length, 0)
    place = T.maximum(as_node(x), 0)
    what = T.ones_like(place, "int64") if weights is None else as_node(weights)
    return T.zeros((length,), what.dtype).at[place].add(what, mode="drop")


def sort(call: Function, a: Any, axis: Any = -1, **kwargs: Any) -> Any:
    """`np.sort` with the greatest first, and NaN before it."""
    module = np if is_plain((a,), {}) else T
    return module.flip(call(a, axis, **kwargs), 0 if axis is None else axis)


def argsort(call: Function, a: Any, axis: Any = -1, *, kind: Any = None, stable: Any = None) -> Any:
    """`np.argsort` with the greatest first. Equal elements keep their order."""
    module, array = (np, np.asarray(a)) if is_plain((a,), {}) else (T, as_node(a))
    array, along = (array.ravel(), 0) if axis is None else (array, axis)
    return array.shape[along] - 1 - module.flip(call(module.flip(array, along), along, kind="stable"), along)


def _found(dtype: Any, index: Any, size: Any, fill: Any, plain: bool) -> tuple[Any, Any, Any]:
    """Places that are all in bounds, where an index was so, and a value of the dtype for where it was not."""
    place = np.where(index < 0, index + size, index) if plain else T.where(index < 0, index + size, index)
    fill = absent(str(dtype)) if fill is None else fill
    is_there = (place >= 0) & (place < size)
    return place * is_there, is_there, np.asarray(fill, dtype) if plain else T.cast(fill, dtype)


def take(call: Function, a: Any, indices: Any, axis: int | None = None, *, fill_value: Any = None) -> Any:
    """`np.take` with `fill_value` for indices out of bounds; unless given NaN, or the least integer."""
    plain = is_plain((a, indices, fill_value), {})
    array, index = (np.asarray(a), np.asarray(indices)) if plain else (as_node(a), as_node(indices))
    array, along = (array.ravel(), 0) if axis is None else (array, axis % array.ndim)
    place, is_there, fill = _found(array.dtype, index, array.shape[along], fill_value, plain)
    is_there = is_there[(..., *(None,) * (array.ndim - along - 1))]
    return (np if plain else T).where(is_there, call(array, place, along), fill)


def take_along_axis(call: Function, arr: Any, indices: Any, axis: int | None = -1, *, fill_value: Any = None) -> Any:
    """`np.take_along_axis` with `fill_value` for indices out of bounds; unless given NaN, or the least integer."""
    plain = is_plain((arr, indices, fill_value), {})
    array, index = (np.asarray(arr), np.asarray(indices)) if plain else (as_node(arr), as_node(indices))
    array, along = (array.ravel(), 0) if axis is None else (array, axis)
    place, is_there, fill = _found(array.dtype, index, array.shape[along], fill_value, plain)
    return (np if plain else T).where(is_there, call(array, place, along), fill)


FILLED = {"take": take, "take_along_axis": take_along_axis}
SORTED = {"argsort": argsort, "sort": sort}


def _ordered_or_filled(name: str, call: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of `sort`, `take` and their kin: NumPy's own unless another order or mode is asked for."""
    if name in SORTED:
        return SORTED[name](call, *args, **kwargs) if kwargs.pop("descending", False) else call(*args, **kwargs)
    mode = kwargs.get("mode", "fill" if "fill_value" in kwargs else None)
    if mode in ("fill", "promise_in_bounds", None):
        kwargs.pop("mode", None)
    return FILLED[name](call, *args, **kwargs) if mode == "fill" else call(*args, **kwargs)


SIZED: dict[str, Function] = {
    "argwhere": argwhere, "bincount": bincount, "flatnonzero": flatnonzero, "nonzero": nonzero, "repeat": repeat,
    "union1d": union1d, "unique": unique, "where": where,
}  # fmt: skip
"""Functions whose results have as many elements as the values say, unless the program says how many."""
SIZES = {"bincount": "length", "repeat": "total_repeat_length"}
"""The argument that says how many, where it is not `size`."""
PRODUCTS = {"dot", "einsum", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"}


LIKE = {"empty_like": 0, "full_like": None, "ones_like": 1, "zeros_like": 0}
"""Functions that ask an array for its shape and dtype alone, and what they fill it with."""


def like_described(
    name: str, described: ShapeDtypeStruct, *args: Any, shape: Any = None, dtype: Any = None, **kwargs: Any
) -> Any:
    """`zeros_like` and its kin of a shape and a dtype. NumPy's own would make an array of objects."""
    fill = LIKE[name]
    if fill is None:
        fill, args = (kwargs["fill_value"], args) if "fill_value" in kwargs else (args[0], args[1:])
    dtype = args[0] if args else dtype
    size = described.shape if shape is None else shape
    module = np if is_plain((size, fill), {}) else T
    return module.full(size, fill, described.dtype if dtype is None else dtype)


AXES_SECOND = set(
    "all amax amin any count_nonzero expand_dims flip max mean min nanmax nanmean nanmin nanprod nanstd nansum nanvar "
    "prod ptp squeeze std sum var".split()
)
"""Functions whose second argument is an axis, or several."""


def _between(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of `clip` with both bounds, of which NumPy lets none be absent."""
    rest = dict(kwargs)
    given = list(args) or [rest.pop("a", rest.pop("arr", None))]
    for place, names in ((1, ("a_min", "min")), (2, ("a_max", "max"))):
        told = [rest.pop(name) for name in names if name in rest]
        if len(given) == place:
            given.append(next((bound for bound in told if bound is not None), None))
    return tuple(given), rest


def extended(name: str, call: Function) -> Function:
    """A function under NumPy's name that takes the arguments of `jax.numpy` too."""
    size = SIZES.get(name, "size")

    @wraps(call)
    def extend(*args: Any, **kwargs: Any) -> Any:
        if name in AXES_SECOND and len(args) > 1 and isinstance(args[1], list | range):
            args = (args[0], tuple(args[1]), *args[2:])
        if name in LIKE and args and isinstance(args[0], ShapeDtypeStruct):
            return public(like_described(name, *args, **kwargs))
        if name == "clip":
            args, kwargs = _between(args, kwargs)
        if not kwargs:
            return call(*args)
        known = without_jaxs(kwargs)
        known.pop(WAYS.get(name, ""), None)
        if name in SYMMETRIC and known.pop("symmetrize_input", False):
            args = (symmetrized(args[0]), *args[1:])
        if name == "interp" and any(isinstance(known.get(side), str) for side in ("left", "right")):
            return public(interp(call, *args, **known))
        if name in PRODUCTS:
            dtype = known.pop("preferred_element_type", None)
            return call(*args, **known) if dtype is None else call(*args, **known).astype(dtype)
        if name in FILLED or name in SORTED:
            return public(_ordered_or_filled(name, call, args, known))
        if name not in SIZED:
            return call(*args, **known)
        if known.get(size) is not None:
            return public(SIZED[name](*args, **known))
        return call(*args, **{key: value for key, value in known.items() if key not in (size, "fill_value")})

    return extend
