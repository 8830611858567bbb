"""Theano's op classes over scalar ops: `Elemwise(scalar.add)(x, y)`, `CAReduce(scalar.mul)(x)`.

In: a scalar op (`graphc.scalar.add`, a name, or a function of tensors), axes. Out: callables of tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir.node import FUNCTIONS, Node, Op, describe
from graphc.ops import shape as layout
from graphc.ops.elementwise import ROWS, as_node, cast
from graphc.ops.questions import asked_size
from graphc.tensor import reductions
from graphc.tensor.shaping import dimshuffle, normalise_axes

__all__ = ["All", "Any", "CAReduce", "CAReduceDtype", "DimShuffle", "Elemwise", "Prod", "ScalarOp", "Sum"]


class Family(type):
    """The class of Theano's classes of ops: ops of graphc, or scalar ops, with one of its names are instances."""

    ops: frozenset[str] = frozenset()

    def __instancecheck__(cls, instance: object) -> bool:
        named = isinstance(instance, Op) or type(instance) is ScalarOp
        return type.__instancecheck__(cls, instance) or (named and getattr(instance, "name", None) in cls.ops)


class ScalarOp:
    """A function of single elements: what `Elemwise` applies to every element and `CAReduce` folds with."""

    def __init__(self, name: str, function: Callable[..., Node]) -> None:
        self.name = self.__name__ = name
        self.function = function
        self.__doc__ = function.__doc__

    def __call__(self, *operands: object) -> Node:
        """The function of operands, broadcast."""
        return self.function(*operands)

    def __eq__(self, other: object) -> bool:
        return getattr(other, "__wrapped__", other) is self.function or (
            isinstance(other, ScalarOp) and other.name == self.name
        )

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return self.name


def scalar_op(op: object) -> ScalarOp:
    """The scalar op that an op, a name or a function stands for. Raises GraphTypeError for another thing."""
    if isinstance(op, ScalarOp):
        return op
    name = op if isinstance(op, str) else getattr(op, "__name__", "")
    if callable(op):
        return ScalarOp(name or str(op), op)
    if name in ROWS:
        return ScalarOp(name, FUNCTIONS[name])
    raise GraphTypeError(f"{op!r} is no scalar op")


class Elemwise(metaclass=Family):
    """`scalar_op` applied to the elements of tensors, which broadcast. `inplace_pattern` means nothing here."""

    ops = frozenset({*ROWS, "cast", "where"})

    def __init__(
        self, scalar_op_: object = None, inplace_pattern: object = None, name: str | None = None, **given: object
    ):
        self.scalar_op = scalar_op(given.pop("scalar_op", scalar_op_))
        self.name = name or self.scalar_op.name

    def __call__(self, *operands: object) -> Node:
        """The op of operands."""
        return self.scalar_op(*operands)

    @staticmethod
    def of(op: Op) -> ScalarOp:
        """The function that an op of a graph applies to each element. Raises AttributeError of one that is not
        elementwise."""
        if op.name not in Elemwise.ops:
            raise AttributeError(f"op {op} is not elementwise and has no scalar_op")
        return ScalarOp(op.name, FUNCTIONS[op.name])

    def __repr__(self) -> str:
        return f"Elemwise{{{self.name}}}"


_FOLDS: dict[str, Callable[..., Node]] = {
    "add": reductions.sum, "mul": reductions.prod, "maximum": reductions.max, "minimum": reductions.min,
    "and_": reductions.all, "bitwise_and": reductions.all, "or_": reductions.any, "bitwise_or": reductions.any,
    "logical_and": reductions.all, "logical_or": reductions.any,
}  # fmt: skip
"""The reduction that folds with each scalar op; `and_` and `or_` where elements are bools."""


class CAReduce(metaclass=Family):
    """The elements of a tensor over `axis` (all) folded with a commutative and associative scalar op of two elements.

    Sum, product, extremes and, of bools, and, or are reductions; bits of integers and other ops are folded in halves.
    """

    ops = frozenset({"sum", "prod", "max", "min", "any", "all"})

    def __init__(self, scalar_op_: object = None, axis: object = None, **given: object) -> None:
        self.scalar_op = scalar_op(given.pop("scalar_op", scalar_op_))
        self.axis = axis

    def __call__(self, x: object) -> Node:
        """The fold of `x`. Raises GraphTypeError for axes of unknown size where the op has no reduction."""
        node = as_node(x)
        name = self.scalar_op.name
        bits = name in ("and_", "or_", "bitwise_and", "bitwise_or") and node.type.dtype != "bool"
        if name in _FOLDS and not bits:
            made = _FOLDS[name](node, self.axis)
            return cast(made, node.type.dtype) if name in ("add", "mul") and node.type.dtype != "bool" else made
        for axis in sorted(normalise_axes(self.axis, node.ndim, f"CAReduce of {describe(node)}"), reverse=True):
            node = self._folded(node, axis)
        return node

    def _folded(self, x: Node, axis: int) -> Node:
        count = asked_size(x.type.shape[axis])
        if not isinstance(count, int) or count < 1:
            raise GraphValueError(
                f"{self!r} of {describe(x)} of type {x.type}: axis {axis} has no known size of at least 1, "
                "and the op no reduction"
            )
        parts = [x[(*(slice(None),) * axis, position)] for position in range(count)]
        while len(parts) > 1:
            rest = parts[-1:] if len(parts) % 2 else []
            parts = [*(self.scalar_op(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)), *rest]
        return parts[0]

    def __repr__(self) -> str:
        return f"CAReduce{{{self.scalar_op.name}}}"


class CAReduceDtype(metaclass=Family):
    """`Sum` and `Prod`: a reduction over `axis`, carried in `acc_dtype`, as `dtype`."""

    ops = frozenset({"sum", "prod"})

    fold: Callable[..., Node] = staticmethod(reductions.sum)

    def __init__(self, axis: object = None, dtype: object = None, acc_dtype: object = None) -> None:
        self.axis, self.dtype, self.acc_dtype = axis, dtype, acc_dtype

    def __call__(self, x: object) -> Node:
        """The reduction of `x`."""
        return self.fold(x, self.axis, dtype=self.dtype, acc_dtype=self.acc_dtype)


class Sum(CAReduceDtype):
    """The sum over `axis`."""

    ops = frozenset({"sum"})


class Prod(CAReduceDtype):
    """The product over `axis`."""

    ops = frozenset({"prod"})

    fold = staticmethod(reductions.prod)

    def __init__(
        self, axis: object = None, dtype: object = None, acc_dtype: object = None, no_zeros_in_input: bool = False
    ) -> None:
        super().__init__(axis, dtype, acc_dtype)
        self.no_zeros_in_input = no_zeros_in_input  # Theano's; the derivative is right at zeros at no cost


class All(CAReduce):
    """True where all elements over `axis` are not 0."""

    ops = frozenset({"all"})

    def __init__(self, axis: object = None) -> None:
        super().__init__("logical_and", axis)


class Any(CAReduce):
    """True where any element over `axis` is not 0."""

    ops = frozenset({"any"})

    def __init__(self, axis: object = None) -> None:
        super().__init__("logical_or", axis)


class DimShuffle(metaclass=Family):
    """Axes in a new order, "x" for new ones, of tensors with this pattern of sizes that are 1."""

    ops = frozenset({"dimshuffle"})

    def __init__(
        self, input_broadcastable: Sequence[bool], new_order: Sequence[int | str], inplace: bool = True
    ) -> None:
        self.input_broadcastable, self.new_order = tuple(input_broadcastable), tuple(new_order)

    def __call__(self, x: object) -> Node:
        """The axes of `x` in the new order. Raises GraphTypeError for another rank."""
        node = as_node(x)
        if node.ndim != len(self.input_broadcastable):
            raise RankError(f"DimShuffle of {describe(node)} of type {node.type}: {len(self.input_broadcastable)} axes")
        dropped = [k for k, is_one in enumerate(self.input_broadcastable) if is_one and k not in self.new_order]
        shape = [1 if k in dropped else size for k, size in enumerate(node.type.shape)]
        return dimshuffle(layout.broadcast_to(node, shape), *self.new_order)
