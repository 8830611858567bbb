"""Scalar ops of the user in Theano's form: a class with `impl`, a Python function of numbers, and where wanted `grad`.

In: a subclass of `ScalarOp`, applied to tensors. Out: what `impl` makes of each of their elements, broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import floating, is_float, promote
from graphc.errors import GraphTypeError
from graphc.gof.op import Apply, MethodNotDefined, Op, not_computed
from graphc.ir.node import Array, Type, variable
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes
from graphc.startup.record import record

Kinds = Sequence[Type]
"""Types of results."""


def upgrade_to_float(*types: Type) -> Kinds:
    """The preference of results in floats: the smallest float dtype that the types are computed in."""
    return [Type(promote(*(floating(kind.dtype) for kind in types)), ())]


def upgrade_to_float64(*types: Type) -> Kinds:
    """The preference of results in float64."""
    return [Type("float64", ())]


def same_out(kind: Type) -> Kinds:
    """The preference of results in the type of the argument."""
    return [kind]


def same_out_float_only(kind: Type) -> Kinds:
    """The preference of results in the type of the argument. Raises TypeError where that is no float."""
    if not is_float(kind.dtype):
        raise GraphTypeError(f"only floats are taken, not {kind}")
    return [kind]


def upcast_out(*types: Type) -> Kinds:
    """The preference of results in the common dtype of the arguments."""
    return [Type(promote(*(kind.dtype for kind in types)), ())]


def upcast_out_nobool(*types: Type) -> Kinds:
    """The preference of results in the common dtype of the arguments. Raises TypeError where that is bool."""
    found = upcast_out(*types)
    if found[0].dtype == "bool":
        raise GraphTypeError("an op of bools has no bool result")
    return found


def upcast_out_min8(*types: Type) -> Kinds:
    """The preference of results in the common dtype of the arguments, int8 in place of bool."""
    return [Type("int8", ()) if kind.dtype == "bool" else kind for kind in upcast_out(*types)]


def same_out_nobool(kind: Type) -> Kinds:
    """The preference of results in the type of the argument. Raises TypeError where that is bool."""
    return upcast_out_nobool(kind)


def same_out_min8(kind: Type) -> Kinds:
    """The preference of results in the type of the argument, int8 in place of bool."""
    return upcast_out_min8(kind)


@record()
class specific_out:  # noqa: N801 - Theano's name
    """The preference of results of these types whatever the arguments are: `specific_out(scalar.float32)`."""

    spec: tuple[Any, ...]

    def __init__(self, *spec: Any) -> None:
        object.__setattr__(self, "spec", spec)

    def __call__(self, *types: Type) -> Kinds:
        """The types that were given."""
        return list(self.spec)


def int_out(*types: Type) -> Kinds:
    """The preference of results in int64."""
    return [Type("int64", ())]


def float_out(*types: Type) -> Kinds:
    """The preference of results in float64."""
    return [Type("float64", ())]


class ScalarOp(Op):
    """The base of a user's scalar ops. A subclass has `impl(x, ...)`, of Python numbers, and for a derivative
    `grad(inputs, output_grads)`, of tensors. output_types_preference: from the types of scalars to a list of those of
    the results; `upgrade_to_float` where None. The operands are broadcast; each element costs a call of Python. With
    `nout` results `impl` gives a tuple of as many. A subclass need not call this `__init__`.

    Two ops without `__props__` of their own are equal where their class and all their attributes are.

        >>> class Xlogx(UnaryScalarOp):
        ...     def impl(self, x):
        ...         return x * math.log(x) if x else 0.0
        ...     def grad(self, inputs, output_grads):
        ...         return [output_grads[0] * (1 + T.log(inputs[0]))]
        >>> y = Xlogx()(T.dmatrix("x"))
    """

    __props__: tuple[str, ...] = ("output_types_preference", "name")
    nin: int | None = None
    nout: int = 1
    name: str | None = None
    output_types_preference: Any = staticmethod(upgrade_to_float)

    def __init__(self, output_types_preference: Any = None, name: str | None = None) -> None:
        if output_types_preference is not None:
            self.output_types_preference = output_types_preference
        self.name = name

    def impl(self, *values: Any) -> Any:
        """The value for numbers; subclasses say it."""
        raise MethodNotDefined(f"scalar op {self} has no impl")

    def output_types(self, types: Sequence[Type]) -> Sequence[Any]:
        """The types of the results for arguments of these types. Raises GraphTypeError for another number than
        `nout`."""
        found = list(self.output_types_preference(*types))
        if len(found) != self.nout:
            raise GraphTypeError(f"scalar op {self} has {self.nout} results; its output types are {found}")
        return found

    def make_node(self, *inputs: Any) -> Apply:
        """The op on each element of tensors."""
        nodes = [as_node(value) for value in inputs]
        if self.nin is not None and self.nin >= 0 and len(nodes) != self.nin:
            raise GraphTypeError(f"scalar op {self} takes {self.nin} operands; got {len(nodes)}")
        kinds = self.output_types([Type(node.dtype, ()) for node in nodes])
        shape = broadcast_sizes(str(self), nodes)
        static = [n if isinstance(n, int) else None for n in shape]
        operands = [broadcast_node(node, shape) for node in nodes]
        return Apply(self, operands, [variable(kind.dtype, static) for kind in kinds])

    def infer_shape(self, node: Apply, input_shapes: Sequence[Any]) -> list[Any]:
        """The shape of the operands, which is one."""
        return [input_shapes[0]] * self.nout

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """`impl` of each element."""
        if type(self).impl is ScalarOp.impl:
            raise not_computed(self, "impl", node)
        rows = zip(*(array.ravel().tolist() for array in inputs), strict=True)
        values = [self.impl(*row) for row in rows]
        columns = [values] if self.nout == 1 else [list(column) for column in zip(*values, strict=True)]
        for place, storage in enumerate(output_storage):
            made = np.array(columns[place] if values else [], node.outputs[place].dtype)
            storage[0] = made.reshape(inputs[0].shape)

    def _identity(self) -> tuple[Any, ...] | None:
        if type(self).__props__ is not ScalarOp.__props__:
            return super()._identity()
        rest = sorted(name for name in vars(self) if name not in ScalarOp.__props__)
        said = (type(self), *self._props(), *((name, vars(self)[name]) for name in rest))
        try:
            hash(said)
        except TypeError:
            return None
        return said

    def __str__(self) -> str:
        told = [f"{name}={value}" for name, value in vars(self).items() if name not in ScalarOp.__props__]
        return self.name or type(self).__name__ + (f"{{{', '.join(told)}}}" if told else "")


class UnaryScalarOp(ScalarOp):
    """A scalar op of one operand."""

    nin = 1


class BinaryScalarOp(ScalarOp):
    """A scalar op of two operands."""

    nin = 2


__all__ = [
    "BinaryScalarOp", "ScalarOp", "UnaryScalarOp", "float_out", "int_out", "same_out", "same_out_float_only",
    "same_out_min8", "same_out_nobool", "specific_out", "upcast_out", "upcast_out_min8", "upcast_out_nobool",
    "upgrade_to_float", "upgrade_to_float64",
]  # fmt: skip
