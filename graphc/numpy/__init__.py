"""NumPy's names and signatures, of arrays and of tensors: `import graphc.numpy as jnp`.

In: tensors, arrays, numbers and lists, as NumPy's function of that name takes them. Out: what NumPy's own function
gives, where no argument is a tensor and no function is being traced; else tensors: what NumPy's function gives of these
(`tensor/dispatch.py`). Every name of NumPy's is here, and the older names of NumPy 1: a function that graphc has not
takes arrays, and refuses tensors in a sentence; classes, constants and other modules are NumPy's own. `linalg` and
`fft` have the names of NumPy's modules.

    jnp.sum(np.ones(3))          np.float64(3.0)
    jnp.zeros((3,))              an array; a tensor in a traced function
    jnp.sum(T.dvector("x"))      a tensor

Type checkers read `names.pyi`, which is written from this module (tests/test_stubs.py).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.arrays.array import ndarray as ndarray
from graphc.arrays.dtypes import NUMPY_DTYPES
from graphc.ir.call_errors import explain_all, explained
from graphc.ir.node import Node
from graphc.numpy import linalg as linalg
from graphc.numpy.named import Indexed, ScalarClass, Ufunc, function_for, instead_of, scalar_class
from graphc.ops.elementwise import as_node, elementwise
from graphc.startup.hooks import nearest
from graphc.tensor import creations, selecting
from graphc.tensor.inspection import index_exp as index_exp, s_ as s_
from graphc.tracing import vectorize as vectorize

if TYPE_CHECKING:
    from graphc.numpy import fft as fft
    from graphc.numpy.names import *  # noqa: F403


c_, r_ = Indexed(np.c_, selecting.c_), Indexed(np.r_, selecting.r_)
mgrid, ogrid = Indexed(np.mgrid, selecting.mgrid), Indexed(np.ogrid, selecting.ogrid)


@instead_of(np.array)
def array(object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", ndmin: int = 0) -> Any:
    """NumPy's `array`; in traced functions, and of lists that hold tensors, a tensor: `copy` and `order` change nothing
    there."""
    node = as_node(object, None if dtype is None else str(np.dtype(dtype)))
    return node[(None,) * (ndmin - node.ndim)] if ndmin > node.ndim else node


def _asarray(a: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    """NumPy's `asarray`, which gives an array of this module's class back as it is."""
    return (np.asanyarray if type(a) is ndarray else np.asarray)(a, dtype, *args, **kwargs)


@instead_of(_asarray)
def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None) -> Any:
    """NumPy's `asarray`; a tensor as `array` makes it, for tensors never change."""
    return array(a, dtype)


@instead_of(np.asanyarray)
def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None) -> Any:
    """NumPy's `asanyarray` of arrays; of tensors as `asarray`."""
    return array(a, dtype)


@instead_of(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """NumPy's `ascontiguousarray` of arrays; of tensors as `array`, with one axis or more."""
    return array(a, dtype, ndmin=1)


@instead_of(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """NumPy's `fromiter`; in traced functions what it gives may be tensors."""
    return creations.from_iterator(iter, dtype, count)


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

OLD = {
    "Inf": "inf", "Infinity": "inf", "NaN": "nan", "alltrue": "all", "bool8": "bool_", "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64", "in1d": "isin", "infty": "inf", "product": "prod", "round_": "round", "row_stack": "vstack",
    "sometrue": "any", "trapz": "trapezoid",
}  # fmt: skip
"""Names of NumPy 1 that NumPy 2 has not, and the names that are left."""
SCALARS: dict[type, ScalarClass | None] = {dtype.type: None for dtype in NUMPY_DTYPES.values()}
"""NumPy's types of scalars that are dtypes of tensors, with those of this module, once they are asked for."""
NARROW = set(
    "bfloat16 float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
    "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int4 uint1 uint2 uint4".split()
)
"""Dtypes of JAX's that NumPy has not."""
AS_IT_IS = {"frompyfunc", "iterable", "printoptions"}
"""Functions of NumPy's that take no arrays, or ask tensors as they ask arrays."""


def _offer() -> list[str]:
    """Define the functions of NumPy's names. What else NumPy has is found when it is asked for."""
    scope = globals()
    names = {name for name, item in vars(np).items() if name[0] != "_" and not isinstance(item, ModuleType)}
    for name in names - scope.keys() - AS_IT_IS:
        found = function_for(name, vars(np)[name])
        if found is not None:
            scope[name] = found
    return sorted({*names, *OLD, "fft", "linalg", "random"})


__all__ = _offer()  # noqa: PLE0605 - the names are NumPy's


if not TYPE_CHECKING:  # which know the names

    def __getattr__(name: str) -> Any:
        if name == "fft":
            return import_module("graphc.numpy.fft")
        if name == "__array_namespace_info__":
            return np.__array_namespace_info__
        if (name[0] != "_" or name == "__version__") and hasattr(np, name):
            found = getattr(np, name)
            if isinstance(found, type) and found in SCALARS:
                found = SCALARS[found] = SCALARS[found] or scalar_class(found, array)
            globals()[name] = found
            return found
        if name in OLD:
            found = globals()[name] = getattr(sys.modules[__name__], OLD[name])
            return found
        if name == "ComplexWarning":
            return np.exceptions.ComplexWarning
        near = nearest(name, __all__) if name not in NARROW else "NumPy has no such dtype"
        raise AttributeError(f"module 'graphc.numpy' has no attribute {name!r}{near and '; '}{near}")


explain_all(globals())
