"""Theano's `Composite`: a scalar op that is a graph of scalar ops.

In: scalar variables and what is computed of them. Out: a callable of tensors, which `Elemwise` takes as a scalar op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.arrays.dtypes import can_cast_safely, promote
from graphc.errors import GraphTypeError, MissingInputError
from graphc.gof.op import Op
from graphc.ir.apply import Apply
from graphc.ir.node import CONSTANT, INPUT, Node, describe, make
from graphc.ir.walk import toposort
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast, elementwise
from graphc.tensor.elemwise import Elemwise

__all__ = ["Composite"]


class Composite:
    """A function of single elements that is put together from others.

    inputs: variables of no axes. outputs: what is computed of them by elementwise ops and scalar ops of the user. Of
    operands that broadcast it gives the result for their elements, or the list of results where there are several;
    an operand whose dtype converts safely to that of its input is converted; with another one, all that is computed of
    it has a dtype that is wide enough. All is differentiated, fused and compiled as if it were written with the
    operands. Raises GraphTypeError for inputs with axes and for ops that are not of single elements, MissingInputError
    for a variable that is not among the inputs.

        >>> a, b = scalar.float64("a"), scalar.float64("b")
        >>> y = T.Elemwise(scalar.Composite([a, b], [a * b + scalar.exp(a)]))(T.dvector("x"), 2.0)
    """

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any], name: str | None = None) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(map(as_node, outputs))
        self.name = self.__name__ = name or "Composite"
        self.nin, self.nout = len(self.inputs), len(self.outputs)
        for node in self.inputs:
            if not isinstance(node, Node) or node.op is not INPUT or node.ndim:
                raise GraphTypeError(f"{self.name}: an input is a scalar variable, not {as_text(node)}")
        if not self.outputs:
            raise GraphTypeError(f"{self.name}: there is no output")
        self.order = toposort(self.outputs, _arguments, describe)
        for node in self.order:
            self._check(node)

    def _check(self, node: Node) -> None:
        if node.op is INPUT and node not in self.inputs:
            raise MissingInputError(f"{self.name} needs {describe(node)}, which is not among its inputs")
        if node.op in (INPUT, CONSTANT) and not node.ndim:
            return
        if node.ndim or not (node.op.name in Elemwise.ops or _user_op(node) is not None):
            raise GraphTypeError(
                f"{self.name}: {describe(node)} of type {node.type} is made by no op of single elements"
            )

    def __call__(self, *operands: Any) -> Any:
        """The outputs for operands, broadcast: one, or a list of several. Raises GraphTypeError for another number of
        operands, or for dtypes that an op within does not take."""
        if len(operands) != self.nin:
            raise GraphTypeError(f"{self.name} takes {self.nin} operands, not {len(operands)}")
        given = [_converted(own, as_node(value)) for own, value in zip(self.inputs, operands, strict=True)]
        done = dict(zip(self.inputs, given, strict=True))
        for node in self.order:
            if node not in done:
                done[node] = _applied(node, [done[arg] for arg in _arguments(node)])
        shape = broadcast_sizes(self.name, given) if given else ()
        results = [broadcast_node(done[node], shape) for node in self.outputs]
        return results[0] if self.nout == 1 else results

    def make_node(self, *operands: Any) -> Apply:
        """The application that gives the first output."""
        made = self(*operands)
        owner: Apply = (made if self.nout == 1 else made[0]).owner
        return owner

    def __eq__(self, other: object) -> bool:
        """Whether two are the same function: what they make of the same variables is one node."""
        if not isinstance(other, Composite) or [n.dtype for n in self.inputs] != [n.dtype for n in other.inputs]:
            return False
        theirs = other(*self.inputs)
        return len(self.outputs) == other.nout and all(
            one is two for one, two in zip(self.outputs, theirs if other.nout > 1 else [theirs], strict=True)
        )

    def __hash__(self) -> int:
        return hash((tuple(node.dtype for node in self.inputs), tuple(node.op.name for node in self.order)))

    def __repr__(self) -> str:
        return f"{self.name}{{{', '.join(map(str, self.outputs))}}}"


def as_text(value: Any) -> str:
    """How a message tells of what should be a variable."""
    return f"{describe(value)} of type {value.type}" if isinstance(value, Node) else repr(value)


def _user_op(node: Node) -> Callable[..., Any] | None:
    """The scalar op of the user that makes a node; None for another."""
    user = None if node.op in (INPUT, CONSTANT) else node.owner.op
    return user if isinstance(user, Op) and hasattr(user, "impl") else None


def _arguments(node: Node) -> list[Node]:
    return list(node.args) if _user_op(node) is None else node.owner.inputs


def _converted(own: Node, value: Node) -> Node:
    """An operand as its input takes it: of the dtype of that, unless its own one is wider."""
    return cast(value, own.dtype) if can_cast_safely(value.dtype, own.dtype) else value


def _applied(node: Node, args: Sequence[Node]) -> Node:
    """What makes a node, applied to other arguments, broadcast."""
    user = _user_op(node)
    if user is not None:
        place = next(place for place, each in enumerate(node.owner.outputs) if each is node)
        made: Node = user(*args, return_list=True)[place]
        return made
    if not args:
        return node
    if any(arg.dtype != own.dtype for arg, own in zip(args, node.args, strict=True)):
        return _widened(node, args)
    shape = broadcast_sizes(node.op.name, args)
    return make(node.op, [broadcast_node(arg, shape) for arg in args], node.attrs)


def _widened(node: Node, args: Sequence[Node]) -> Node:
    """What makes a node, applied to arguments of other dtypes. A conversion that loses nothing loses nothing of them
    either: it may be one that the op which takes it has asked for."""
    if node.op.name != "cast":
        return elementwise(node.op.name, *args)
    widens = can_cast_safely(node.args[0].dtype, node.dtype)
    return cast(args[0], promote(args[0].dtype, node.dtype) if widens else node.dtype)
