"""NumPy's functions that write to their first argument, of tensors: its new value.

np.fill_diagonal(a, 1)     WRITERS[np.fill_diagonal] gives the node that `a` stands for from then on
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Node
from graphc.ops.elementwise import as_node, cast
from graphc.ops.shape import iota, reshape
from graphc.tensor.handles import assigned, fitted
from graphc.tensor.indexing import put_item


def _copyto(dst: Node, src: Any, casting: str = "same_kind", where: Any = True) -> Node:
    value = as_node(src) if not isinstance(src, (bool, int, float)) else assigned(src, dst)
    new = fitted(value, dst, "np.copyto(x, y)", casting=casting)
    return new if where is True else as_node(FUNCTIONS["where"](where, new, dst))


def _put(a: Node, ind: Any, v: Any, mode: str = "raise") -> Node:
    flat, value = FUNCTIONS["flatten"](a), FUNCTIONS["flatten"](assigned(v, a) if np.isscalar(v) else as_node(v))
    places = FUNCTIONS["flatten"](as_node(ind))
    if mode != "raise":
        size = FUNCTIONS["size"](a)
        places = places % size if mode == "wrap" else FUNCTIONS["clip"](places, 0, size - 1)
    value = cast(_cycled(value, places.type.shape[0]), a.type.dtype)
    return reshape(put_item(flat, places, value), a.type.shape)


def _cycled(values: Node, count: Any) -> Node:
    """The first `count` elements of a vector that begins again where it ends."""
    if sizes.equal(values.type.shape[0], count) or sizes.equal(values.type.shape[0], 1):
        return values
    return values.part(iota(count) % values.type.shape[0])


def _place(arr: Node, mask: Any, vals: Any) -> Node:
    values, chosen = FUNCTIONS["flatten"](as_node(vals, arr.type.dtype)), cast(as_node(mask), "bool")
    flat = FUNCTIONS["flatten"](chosen)
    number = FUNCTIONS["cumsum"](flat) - 1
    return _where(chosen, values.part(FUNCTIONS["maximum"](number, 0) % values.type.shape[0]), arr)


def _putmask(a: Node, mask: Any, values: Any) -> Node:
    given = FUNCTIONS["flatten"](as_node(values, a.type.dtype))
    return _where(cast(as_node(mask), "bool"), _cycled(given, sizes.product(a.type.shape)), a)


def _where(mask: Node, flat: Node, a: Node) -> Node:
    """`a` with the elements of a vector, in C order, where the mask is true."""
    wide = reshape(flat, a.type.shape) if not sizes.equal(flat.type.shape[0], 1) else flat.part(0)
    made: Node = FUNCTIONS["where"](mask, cast(wide, a.type.dtype), a)
    return made


def _put_along_axis(arr: Node, indices: Any, values: Any, axis: Any = -1) -> Node:
    if axis is None:
        return reshape(put_item(FUNCTIONS["flatten"](arr), indices, as_node(values)), arr.type.shape)
    places, axis = as_node(indices), range(arr.ndim)[axis]
    key: list[Any] = []
    for each in range(arr.ndim):
        line = iota(places.type.shape[each])
        key.append(
            places if each == axis else line.part((None,) * each + (slice(None),) + (None,) * (arr.ndim - 1 - each))
        )
    return put_item(arr, tuple(key), partial(assigned, values))


def _fill_diagonal(a: Node, val: Any, wrap: bool = False) -> Node:
    if wrap and a.ndim == 2:
        step = slice(None, None, sizes.add(a.type.shape[1], 1))
        return reshape(put_item(FUNCTIONS["flatten"](a), step, partial(assigned, val)), a.type.shape)
    part = FUNCTIONS["diagonal"](a) if a.ndim == 2 else a
    filled: Node = FUNCTIONS["later"]("fill_diagonal")(a, assigned(val, part))
    return filled


WRITERS: dict[Any, tuple[str, Callable[..., Node]]] = {
    np.copyto: ("dst src casting where", _copyto), np.put: ("a ind v mode", _put), np.place: ("arr mask vals", _place),
    np.putmask: ("a mask values", _putmask), np.fill_diagonal: ("a val wrap", _fill_diagonal),
    np.put_along_axis: ("arr indices values axis", _put_along_axis),
}  # fmt: skip
"""NumPy's functions that write to their first argument: their parameters, and the function that gives its new value."""
