"""The shape of a tensor in a function of arrays that is traced: a tuple, as NumPy's.

In: a node. Out: a `Shape`, whose elements are numbers where sizes are known and tensors elsewhere, which stand for
Python's integers.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

from graphc.ir.node import FUNCTIONS, Node, Scalar, Size
from graphc.ir.symbol import METHODS
from graphc.ops.elementwise import Number


class Shape(tuple[Any, ...]):
    """The sizes of a tensor, as a tuple. NumPy's functions take it for a vector: `np.prod(x.shape[1:])`; so do those of
    graphc, and it has the methods of a vector, as `x.shape` has in Theano's programs."""

    __slots__ = ()

    def vector(self) -> Node:
        """The sizes as an int64 vector."""
        made: Node = FUNCTIONS["as_tensor"](list(self), dtype="int64")
        return made

    def __add__(self, other: Any) -> Any:
        return Shape(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Shape(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Any:
        return Shape(tuple.__mul__(self, count)) if isinstance(count, int) else NotImplemented

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Shape(found) if isinstance(key, slice) else found

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"a shape, which is a tuple of sizes, has no attribute {name!r}")
        return getattr(self.vector(), name)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return FUNCTIONS["array_function"](function, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        given = [each.vector() if isinstance(each, Shape) else each for each in inputs]
        return FUNCTIONS["array_ufunc"](ufunc, method, given, kwargs)

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


def plain_shape(node: Node) -> Shape:
    """The sizes of a node as a tuple."""
    return Shape(map(_number, node.type.shape))


def _number(size: Size) -> Size:
    """A size, which takes part in arithmetic as Python's integers do."""
    if type(size) in (Node, Scalar):
        size.__class__ = Number
    return size


FUNCTIONS["plain_shape"] = plain_shape
