"""Scalar ops of the user in Theano's form: a class with `impl`, a Python function of numbers, and where wanted `grad`.

In: a subclass of `ScalarOp`, applied to tensors. Out: what `impl` makes of each of their elements, broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import floating, promote
from graphc.errors import GraphTypeError
from graphc.gof.op import Apply, MethodNotDefined, Op, not_computed
from graphc.ir.node import Array, Type, variable
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast


def upgrade_to_float(*types: Type) -> list[Type]:
    """The preference of results in floats: the smallest float dtype that the types are computed in."""
    return [Type(promote(*(floating(kind.dtype) for kind in types)), ())]


def same_out(kind: Type) -> list[Type]:
    """The preference of results in the type of the argument."""
    return [kind]


def upcast_out(*types: Type) -> list[Type]:
    """The preference of results in the common dtype of the arguments."""
    return [Type(promote(*(kind.dtype for kind in types)), ())]


class ScalarOp(Op):
    """The base of a user's scalar ops. A subclass has `impl(x, ...)`, of Python numbers, and for a derivative
    `grad(inputs, output_grads)`, of tensors. output_types_preference: from the types of scalars to a list of that of
    the result; `upgrade_to_float` where None. The operands are broadcast; each element costs a call of Python.

        >>> class Xlogx(UnaryScalarOp):
        ...     def impl(self, x):
        ...         return x * math.log(x) if x else 0.0
        ...     def grad(self, inputs, output_grads):
        ...         return [output_grads[0] * (1 + T.log(inputs[0]))]
        >>> y = Xlogx()(T.dmatrix("x"))
    """

    __props__: tuple[str, ...] = ("output_types_preference", "name")
    nin: int | None = None

    def __init__(self, output_types_preference: Any = None, name: str | None = None) -> None:
        self.output_types_preference = output_types_preference or upgrade_to_float
        self.name = name

    def impl(self, *values: Any) -> Any:
        """The value for numbers; subclasses say it."""
        raise MethodNotDefined(f"scalar op {self} has no impl")

    def make_node(self, *inputs: Any) -> Apply:
        """The op on each element of tensors."""
        nodes = [as_node(value) for value in inputs]
        if self.nin is not None and len(nodes) != self.nin:
            raise GraphTypeError(f"scalar op {self} takes {self.nin} operands; got {len(nodes)}")
        (kind,) = self.output_types_preference(*(Type(node.dtype, ()) for node in nodes))
        shape = broadcast_sizes(str(self), nodes)
        operands = [broadcast_node(cast(node, kind.dtype), shape) for node in nodes]
        return Apply(self, operands, [variable(kind.dtype, [n if isinstance(n, int) else None for n in shape])])

    def infer_shape(self, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        """The shape of the operands, which is one."""
        return [input_shapes[0]]

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """`impl` of each element."""
        if type(self).impl is ScalarOp.impl:
            raise not_computed(self, "impl", node)
        dtype = node.outputs[0].dtype
        rows = zip(*(array.ravel().tolist() for array in inputs), strict=True)
        values = [self.impl(*row) for row in rows]
        output_storage[0][0] = np.array(values, dtype).reshape(inputs[0].shape)

    def __str__(self) -> str:
        return self.name or type(self).__name__


class UnaryScalarOp(ScalarOp):
    """A scalar op of one operand."""

    nin = 1


class BinaryScalarOp(ScalarOp):
    """A scalar op of two operands."""

    nin = 2


__all__ = ["BinaryScalarOp", "ScalarOp", "UnaryScalarOp", "same_out", "upcast_out", "upgrade_to_float"]
