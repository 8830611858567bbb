"""Ops of the user made of a Python function of arrays, `as_op`, and ops that give what they are given, `ViewOp`.

In: a function, and the types of its arguments and results; subclasses with a derivative. Out: functions of nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from graphc.gof.op import Apply, Op, derivative_of
from graphc.gof.opclasses import Rebroadcast, Shape, Shape_i, SpecifyShape
from graphc.ir.apply import apply_of
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Array
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node
from graphc.tensor.shaping import shape, specify_shape


class FromFunctionOp(Op):
    """The op of a Python function of arrays; two of one function and the same types are equal."""

    __props__ = ("fn", "itypes", "otypes", "infer_shape_fn")

    def __init__(
        self,
        fn: Callable[..., Any],
        itypes: Sequence[Any],
        otypes: Sequence[Any],
        infer_shape: Callable[..., Any] | None = None,
    ) -> None:
        self.fn, self.itypes, self.otypes, self.infer_shape_fn = fn, tuple(itypes), tuple(otypes), infer_shape
        if infer_shape is not None:
            self.infer_shape = infer_shape
        self.__name__ = getattr(fn, "__name__", "function")
        self.__module__ = fn.__module__
        self.__doc__ = fn.__doc__

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """The function's value: one array, or as many as there are types."""
        results = self.fn(*inputs)
        if len(output_storage) == 1 and not (isinstance(results, list | tuple) and len(results) == 1):
            results = [results]
        if len(results) != len(output_storage):
            raise ValueError(f"{self} gives {len(results)} results where its types say {len(output_storage)}")
        for cell, result in zip(output_storage, results, strict=True):
            cell[0] = result

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A pickle has the name, where it is that of the op and no longer the function's, as below `@as_op`."""
        found = getattr(sys.modules.get(self.fn.__module__), self.__name__, None)
        return self.__name__ if found is self else super().__reduce_ex__(protocol)

    def __str__(self) -> str:
        return f"FromFunctionOp{{{self.__name__}}}"


def as_op(
    itypes: Any, otypes: Any, infer_shape: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], FromFunctionOp]:
    """A decorator: a Python function of arrays becomes an op, without a derivative.

    itypes, otypes: the types of the arguments and of the results, as `T.dmatrix` or `x.type`, or lists of them.
    infer_shape(node, input_shapes): the sizes of each result, where they are to be known before.
    Raises GraphTypeError when it is applied to other types.

        >>> @as_op(itypes=[T.dmatrix, T.dmatrix], otypes=[T.dmatrix])
        ... def product(a, b):
        ...     return np.dot(a, b)
    """
    kinds = [tuple(kind) if isinstance(kind, list | tuple) else (kind,) for kind in (itypes, otypes)]

    def make_op(fn: Callable[..., Any]) -> FromFunctionOp:
        return FromFunctionOp(fn, kinds[0], kinds[1], infer_shape)

    return make_op


class ViewOp(Op):
    """An op whose value is its argument. Subclasses say what its derivative is; compiled code does nothing for it.

    >>> class Clipped(ViewOp):
    ...     def grad(self, args, g_outs):
    ...         return [T.clip(g, -1, 1) for g in g_outs]
    >>> T.grad(Clipped()(x) ** 2, x)  # clip(2 * x, -1, 1)
    """

    __props__: tuple[str, ...] | None = None  # each is its own unless a subclass says more
    view_map = {0: [0]}  # noqa: RUF012 - Theano's way to say so

    def make_node(self, *inputs: Any) -> Apply:
        """The op applied to a tensor; called back where a subclass has a `perform` of its own."""
        (x,) = map(as_node, inputs)
        if type(self).perform is not ViewOp.perform:
            return Apply(self, [x], [x.type()])
        return apply_of(overridden([x], [x], derivative_of(self))[0])

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """The array itself."""
        output_storage[0][0] = inputs[0]

    def infer_shape(self, node: Apply, input_shapes: Sequence[Any]) -> Sequence[Any]:
        """The argument's sizes."""
        return input_shapes

    def grad(self, args: Sequence[Any], g_outs: Sequence[Any]) -> Sequence[Any]:
        """The cotangent itself."""
        return g_outs


class DeepCopyOp(ViewOp):
    """The same: where a copy is needed, graphc makes one."""


view_op, deep_copy_op = ViewOp(), DeepCopyOp()

__all__ = [
    "DeepCopyOp", "FromFunctionOp", "Rebroadcast", "Shape", "Shape_i", "SpecifyShape", "ViewOp", "as_op",
    "deep_copy_op", "shape", "specify_shape", "view_op",
]  # fmt: skip

explain_all(globals())
