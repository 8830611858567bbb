"""NumPy's names and signatures, of arrays and of tensors: `import graphc.numpy as jnp`.

In: tensors, arrays, numbers and lists, as NumPy's function of that name takes them. Out: what NumPy's own function
gives, where no argument is a tensor and no function is being traced; else tensors: what NumPy's function gives of these
(`tensor/dispatch.py`). Names of NumPy's that have no meaning for tensors, or that graphc has not, are not here;
`linalg` has those of `np.linalg`.

    jnp.sum(np.ones(3))          np.float64(3.0)
    jnp.zeros((3,))              an array; a tensor in a traced function
    jnp.sum(T.dvector("x"))      a tensor

Type checkers read `names.pyi`, which is written from this module (tests/test_stubs.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.arrays.dtypes import DTYPES
from graphc.ir.call_errors import explain_all, explained
from graphc.ir.node import Node
from graphc.numpy import linalg as linalg
from graphc.numpy.named import Indexed, Ufunc, has_function, instead_of, named, ndarray as ndarray
from graphc.ops.elementwise import as_node, elementwise
from graphc.startup.lazy import nearest
from graphc.tensor import selecting
from graphc.tensor.dispatch import ufunc_target
from graphc.tensor.inspection import index_exp as index_exp, s_ as s_
from graphc.tracing import vectorize as vectorize

if TYPE_CHECKING:
    from graphc.numpy.names import *  # noqa: F403


e, euler_gamma, inf, nan, newaxis, pi = np.e, np.euler_gamma, np.inf, np.nan, np.newaxis, np.pi
dtype, finfo, iinfo, isdtype, issubdtype = np.dtype, np.finfo, np.iinfo, np.isdtype, np.issubdtype
integer, floating, number, signedinteger, unsignedinteger = (
    np.integer, np.floating, np.number, np.signedinteger, np.unsignedinteger
)  # fmt: skip
c_, r_ = Indexed(np.c_, selecting.c_), Indexed(np.r_, selecting.r_)
mgrid, ogrid = Indexed(np.mgrid, selecting.mgrid), Indexed(np.ogrid, selecting.ogrid)


@instead_of(np.array)
def array(object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", ndmin: int = 0) -> Any:
    """NumPy's `array`; in traced functions, and of lists that hold tensors, a tensor: `copy` and `order` change nothing
    there."""
    node = as_node(object, None if dtype is None else str(np.dtype(dtype)))
    return node[(None,) * (ndmin - node.ndim)] if ndmin > node.ndim else node


@instead_of(np.asarray)
def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None) -> Any:
    """NumPy's `asarray`; a tensor as `array` makes it, for tensors never change."""
    return array(a, dtype)


@instead_of(np.asanyarray)
def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None) -> Any:
    """NumPy's `asanyarray`; else `asarray`."""
    return array(a, dtype)


@instead_of(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """NumPy's `ascontiguousarray`; else `array`, with one axis or more."""
    return array(a, dtype, ndmin=1)


@instead_of(np.from_dlpack)
def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """The array of an array of another library; in traced functions a tensor."""
    return array(np.from_dlpack(x, device=device, copy=copy))


def compared(relation: str, doc: str) -> Any:
    """`equal` or `not_equal` of tensors: of elements, while `np.equal` of two tensors may compare these themselves."""

    def compare(x1: Any, x2: Any, /) -> Node:
        return elementwise(relation, x1, x2)

    compare.__name__ = compare.__qualname__ = relation
    compare.__doc__ = doc
    return explained(compare, __name__)


equal = Ufunc("equal", np.equal, compared("equal", "x1 == x2; NaN equals nothing."))
not_equal = Ufunc("not_equal", np.not_equal, compared("not_equal", "x1 != x2; NaN differs from all."))

_OWN = {
    "Any", "DTYPES", "Indexed", "Node", "TYPE_CHECKING", "Ufunc", "as_node", "compared", "elementwise", "explain_all",
    "explained", "has_function", "instead_of", "named", "nearest", "np", "selecting", "ufunc_target",
}  # fmt: skip
"""Names of this module that are none of NumPy's."""


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
    return sorted({name for name in scope if name[0] != "_"} - _OWN - {"annotations"})


__all__ = _offer()  # noqa: PLE0605 - the names are NumPy's


if not TYPE_CHECKING:  # which know the names

    def __getattr__(name: str) -> Any:
        if name == "bool":  # in this module Python's
            return np.bool
        if name[0] != "_" and hasattr(np, name):
            raise AttributeError(f"np.{name} is not in graphc: graphc.numpy has no {name!r}")
        near = nearest(name, __all__)
        raise AttributeError(f"module 'graphc.numpy' has no attribute {name!r}{near and '; '}{near}")


explain_all(globals())
