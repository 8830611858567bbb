"""Facts about tensors while a graph is built, conversions of arguments, checks of values, and constants of Python.

    get_scalar_constant_value(T.constant(3.0))      3.0
    Assert("n is positive")(x, n > 0)               x, held to the condition at each call

In: tensors, arrays, numbers. Out: numbers, bools, sizes; nodes with no work of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.arrays.dtypes import COMPLEX, DTYPES, FLOATS, INTEGERS, UNSIGNED, is_inexact
from graphc.errors import GraphcError, GraphTypeError, IndexOutOfBounds, ShapeError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.facts import scalar_number
from graphc.ir.interpret import interpret
from graphc.ir.node import CONSTANT, Array, Node, describe, literal
from graphc.ir.walk import Graph, as_size_node, node_set
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, broadcast_sizes, cast
from graphc.ops.identity import checked
from graphc.ops.questions import asked_size
from graphc.tensor.elementary import equal, isnan, logical_and, logical_or
from graphc.tensor.indexing import getitem
from graphc.tensor.reductions import all as all_of
from graphc.tensor.shaping import as_shape, atleast_nd, expand_dims, normalise_axes, of_rank
from graphc.tensor.variables import as_tensor

__all__ = [
    "AdvancedIndexingError", "AsTensorError", "Assert", "EmptyConstantError", "NotScalarConstantError",
    "ShapeError", "all_dtypes", "apply_over_axes", "array", "array_equal", "array_equiv", "asanyarray", "asarray",
    "ascontiguousarray", "asfortranarray", "assert_", "assert_op", "broadcast_shapes", "complex_dtypes",
    "continuous_dtypes", "discrete_dtypes", "e", "euler_gamma", "extract_constant", "float_dtypes",
    "get_scalar_constant_value", "get_vector_length", "index_exp", "inf", "int_dtypes", "integer_dtypes", "is_flat",
    "isscalar", "makeKeepDims", "nan", "ndim", "newaxis", "pi", "python_all", "python_any", "require", "s_",
    "scalar_from_tensor", "tensor_from_scalar", "transfer", "uint_dtypes",
]  # fmt: skip

AsTensorError, AdvancedIndexingError = GraphTypeError, IndexOutOfBounds

# --- values that are known ------------------------------------------------------------------------------------------


class NotScalarConstantError(GraphcError, ValueError):
    """A tensor of which it is not known that it is one number (Theano's)."""


class EmptyConstantError(NotScalarConstantError):
    """A constant without elements (Theano's)."""


def get_scalar_constant_value(
    v: Any, elemwise: bool = True, only_process_constants: bool = False, max_recur: int = 10
) -> Array:
    """The number that a tensor is known to be, or to hold everywhere, as an array of no axes.

    Whatever depends on constants alone is known; with `only_process_constants` constants alone are. `elemwise` and
    `max_recur` are Theano's and mean nothing. Raises NotScalarConstantError for another tensor.
    """
    node = as_node(v)
    number = scalar_number(node)
    if number is not None and not only_process_constants:
        return np.asarray(number, dtype=node.type.dtype)
    known = node.op is CONSTANT or not only_process_constants
    if known and all(leaf.op is CONSTANT for leaf in node_set([node]) if not leaf.args):
        (value,) = interpret(Graph((), (node,)), {})
        if value.size == 0:
            raise EmptyConstantError(f"{describe(node)} has no elements")
        if (value == value.flat[0]).all():
            return np.asarray(value.flat[0])
    raise NotScalarConstantError(f"{describe(node)} of type {node.type} is not known to be one number")


def extract_constant(x: Any, elemwise: bool = True, only_process_constants: bool = False) -> Any:
    """The number that `x` is known to be, or `x` itself (Theano's)."""
    try:
        return get_scalar_constant_value(x, elemwise, only_process_constants)
    except NotScalarConstantError:
        return x


def get_vector_length(v: Any) -> int:
    """The size of a vector. Raises ShapeError where it is not known, GraphTypeError for what is no vector."""
    node = of_rank(v, "get_vector_length of {}: it is no vector", 1, 1)
    size = asked_size(node.type.shape[0])
    if not isinstance(size, int):
        raise ShapeError(f"the length of {describe(node)} of type {node.type} is not known")
    return size


def is_flat(var: Any, ndim: int | None = None, outdim: int | None = None) -> bool:
    """Tell whether `var` has `ndim` axes, one by default (Theano's, which also says `outdim`)."""
    wanted = ndim if ndim is not None else outdim if outdim is not None else 1
    return as_node(var).ndim == wanted


def ndim(a: Any) -> int:
    """The number of axes."""
    return as_node(a).ndim


def isscalar(element: Any) -> bool:
    """Tell whether `element` is a number, or a tensor of no axes. Raises no error."""
    return element.ndim == 0 if isinstance(element, Node) else bool(np.isscalar(element))


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """The shape to which shapes broadcast, a tuple of numbers and, where a size is not known, scalars."""
    leaves = [layout.zeros("bool", as_shape(one, "broadcast_shapes")) for one in shapes]
    if not leaves:
        return ()
    return tuple(
        size if isinstance(size, int) else as_size_node(size) for size in broadcast_sizes("broadcast_shapes", leaves)
    )


# --- comparisons of whole arrays ------------------------------------------------------------------------------------


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Node:
    """Tell whether two arrays have the same shape and elements; NaN equals NaN if `equal_nan`."""
    left, right = as_node(a1), as_node(a2)
    pairs = list(zip(left.type.shape, right.type.shape, strict=False))
    if sizes.shapes_differ(left.type.shape, right.type.shape):
        return literal(False)
    key, same = [], literal(True)
    for a, b in pairs:  # what both have is compared, and sizes
        least = sizes.minimum(a, b)
        key.append(slice(None, least if isinstance(least, int) else as_size_node(least)))
        same = logical_and(same, equal(as_size_node(a), as_size_node(b)))
    shape = tuple(sizes.minimum(a, b) for a, b in pairs)
    left, right = (layout.broadcast_to(getitem(node, tuple(key)), shape) for node in (left, right))
    alike = equal(left, right)
    if equal_nan and is_inexact(left.type.dtype) and is_inexact(right.type.dtype):
        alike = logical_or(alike, logical_and(isnan(left), isnan(right)))
    return logical_and(same, all_of(alike))


def array_equiv(a1: Any, a2: Any) -> Node:
    """Tell whether two arrays broadcast, by what is known of their sizes, and have the same elements then. Raises
    GraphTypeError for a tensor and a value that is no array of numbers."""
    left, right = as_node(a1), as_node(a2)
    try:
        broadcast_sizes("array_equiv", [left, right])
    except ShapeError:
        return literal(False)
    return all_of(equal(left, right))


# --- other forms ----------------------------------------------------------------------------------------------------


def array(object: Any, dtype: Any = None, *, copy: Any = None, order: str = "K", ndmin: int = 0) -> Node:
    """`object` as a tensor of `dtype`, with axes of size 1 in front until there are `ndmin`. Nodes need no copy."""
    node = as_tensor(object)
    return atleast_nd(node if dtype is None else node.astype(dtype), ndmin)


def asarray(a: Any, dtype: Any = None, order: Any = None) -> Node:
    """`a` as a tensor of `dtype`; `order` is NumPy's and means nothing: every result is in C order."""
    return array(a, dtype)


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None) -> Node:
    """`a` as a tensor of at least one axis."""
    return array(a, dtype, ndmin=1)


def asfortranarray(a: Any, dtype: Any = None) -> Node:
    """`a` as a tensor of at least one axis: graphc decides on the order of memory itself."""
    return array(a, dtype, ndmin=1)


def require(a: Any, dtype: Any = None, requirements: Any = None) -> Node:
    """`a` as a tensor of `dtype`: graphc decides on memory itself."""
    return array(a, dtype)


def scalar_from_tensor(x: Any) -> Node:
    """`x`, which has no axes: graphc has one kind of scalars (Theano's)."""
    return of_rank(x, "scalar_from_tensor of {}: it has axes", 0, 0)


def tensor_from_scalar(x: Any) -> Node:
    """`x`, which has no axes: graphc has one kind of scalars (Theano's)."""
    return scalar_from_tensor(x)


def transfer(var: Any, target: str) -> Node:
    """`var`: there is one kind of memory (Theano's)."""
    return as_node(var)


def makeKeepDims(x: Any, y: Any, axis: Any) -> Node:  # noqa: N802 - Theano's name
    """`y`, a reduction of `x` over `axis`, with the axes that it lost as axes of size 1 (Theano's)."""
    node = as_node(x)
    return layout.expand(as_node(y), sorted(normalise_axes(axis, node.ndim, f"makeKeepDims of {describe(node)}")))


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Node:
    """`func(a, axis)` for one axis after the other; a result that has an axis less gets it back with size 1."""
    node = as_node(a)
    for axis in normalise_axes(axes, node.ndim, f"apply_over_axes of {describe(node)}"):
        made = as_node(func(node, axis))
        if made.ndim == node.ndim - 1:
            made = expand_dims(made, axis)
        if made.ndim != node.ndim:
            raise ShapeError(f"apply_over_axes of {describe(node)}: the function gave {made.type}")
        node = made
    return node


# --- assertion --------------------------------------------------------------------------------------------------------
# Checks of values that a graph makes when it runs.
#
# In: a message, then a tensor and conditions. Out: the tensor, held to them.


class Assert:
    """`Assert(msg)(x, cond, …)` is `x`; a call whose conditions are not all true raises AssertionFailed with `msg`.

    Conditions are checked before anything is computed, wherever the result is needed.
    """

    def __init__(self, msg: str = "an assertion failed") -> None:
        self.msg = msg

    def __call__(self, x: Any, *conds: Any) -> Node:
        """`x`, held to conditions, of which all elements must be true."""
        return checked(as_node(x), [cast(all_of(cond), "int64") for cond in conds], self.msg)


assert_ = assert_op = Assert()


# --- constants --------------------------------------------------------------------------------------------------------
# Numbers, keys and lists of dtypes that NumPy and Theano keep beside their functions.
#
# In: nothing. Out: constants of Python.


python_all, python_any = all, any
e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
euler_gamma = float(np.euler_gamma)
newaxis = None
index_exp, s_ = np.index_exp, np.s_
"""A key as a value: `s_[1:, ::2]`; bounds may be nodes."""

all_dtypes, float_dtypes, integer_dtypes, uint_dtypes = DTYPES, FLOATS, INTEGERS, UNSIGNED
int_dtypes = tuple(dtype for dtype in INTEGERS if dtype not in UNSIGNED)
discrete_dtypes, continuous_dtypes = INTEGERS, FLOATS
complex_dtypes: tuple[str, ...] = tuple(COMPLEX)


explain_all(globals())
