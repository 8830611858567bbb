"""NumPy's names and signatures for tensors: `import graphc.numpy as jnp`.

In: tensors, arrays, numbers and lists, as NumPy's function of that name takes them. Out: tensors. What a name stands
for is what NumPy's own function gives of tensors (`tensor/dispatch.py`): `jnp.sum(x, axis=0)` is `np.sum(x, axis=0)`,
and may be called where no argument is a tensor yet. Names of NumPy's that have no meaning for tensors, or that graphc
has not, are not here; `linalg` has those of `np.linalg`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.arrays.dtypes import DTYPES
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.numpy import linalg as linalg
from graphc.numpy.named import Ufunc, has_function, named
from graphc.ops.elementwise import as_node, elementwise
from graphc.tensor.dispatch import ufunc_target
from graphc.tensor.inspection import index_exp as index_exp, s_ as s_
from graphc.tensor.selecting import c_ as c_, mgrid as mgrid, ogrid as ogrid, r_ as r_
from graphc.tracing import vectorize as vectorize

ndarray = Node
e, euler_gamma, inf, nan, newaxis, pi = np.e, np.euler_gamma, np.inf, np.nan, np.newaxis, np.pi
dtype, finfo, iinfo, isdtype, issubdtype = np.dtype, np.finfo, np.iinfo, np.isdtype, np.issubdtype
integer, floating, number, signedinteger, unsignedinteger = (
    np.integer, np.floating, np.number, np.signedinteger, np.unsignedinteger
)  # fmt: skip


def array(object: Any, dtype: Any = None, *, copy: Any = None, order: Any = None, ndmin: int = 0) -> Node:
    """A tensor of numbers, lists, arrays and tensors; lists may hold tensors. `copy` and `order` change nothing."""
    node = as_node(object, None if dtype is None else str(np.dtype(dtype)))
    return node[(None,) * (ndmin - node.ndim)] if ndmin > node.ndim else node


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None) -> Node:
    """`array`: tensors never change."""
    return array(a, dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Node:
    """The tensor of an array of another library."""
    return array(np.from_dlpack(x, device=device, copy=copy))


def equal(x1: Any, x2: Any, /) -> Node:
    """x1 == x2; NaN equals nothing."""
    return elementwise("equal", x1, x2)


def not_equal(x1: Any, x2: Any, /) -> Node:
    """x1 != x2; NaN differs from all."""
    return elementwise("not_equal", x1, x2)


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None) -> Node:
    """`array`, with one axis or more."""
    return array(a, dtype, ndmin=1)


_IMPORTED = {
    "Any", "DTYPES", "Node", "Ufunc", "as_node", "elementwise", "explain_all", "has_function", "named", "np",
    "ufunc_target",
}  # fmt: skip


def _offer() -> list[str]:
    """Define every name of NumPy's that graphc has a function for."""
    scope = globals()
    scope.update({name: getattr(np, name) for name in (*DTYPES, "bool_") if name != "bool"})
    for name, function in vars(np).items():
        if name[0] == "_" or name in scope:
            continue
        if isinstance(function, np.ufunc) and ufunc_target(function) is not None:
            scope[name] = Ufunc(name, function)
        elif has_function(function):
            scope[name] = named(name, function)
    return sorted({name for name in scope if name[0] != "_"} - _IMPORTED - {"annotations"})


__all__ = _offer()  # noqa: PLE0605 - the names are NumPy's


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name == "bool":  # in this module Python's
        return np.bool
    if name[0] != "_" and hasattr(np, name):
        raise AttributeError(f"np.{name} is not in graphc: graphc.numpy has no {name!r}")
    raise AttributeError(f"module 'graphc.numpy' has no attribute {name!r}")


explain_all(globals())
