"""An op with its inputs and outputs, as Theano's programs walk graphs: `x.owner`.

    T.exp(x).owner                    op exp, inputs [x]
    T.nnet.softmax(x).owner           op Softmax, inputs [x]: a division of exponentials by their sums here

In: a node. Out: the one `Apply` that stands for its op's application for as long as anybody holds it; where Theano has
one op for several here, that op on its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar
from weakref import ref

from graphc.ir.body import ITEM, items_of
from graphc.ir.node import SIZE, Node, Where, make, plain, size_owner
from graphc.startup.hooks import HOOKS


class Apply:
    """An op applied to inputs. Several results of one op have one owner."""

    __slots__ = ("__weakref__", "node")

    applied: ClassVar[type[Apply]]
    """The class of the applications that a program makes of an op of its own (`user_ops.Application`)."""

    def __new__(cls, op: Any, inputs: Sequence[Any] | None = None, outputs: Sequence[Any] = ()) -> Apply:
        """`Apply(op, inputs, outputs)` applies an op of the user's, as its `make_node` does."""
        return object.__new__(cls if inputs is None else Apply.applied)

    def __init__(self, op: Any, inputs: Sequence[Any] | None = None, outputs: Sequence[Any] = ()) -> None:
        self.node: Node = op

    @property
    def op(self) -> Any:
        """An op of graphc, or of the user."""
        return getattr(self.node.op.eval, "user", self.node.op)

    @property
    def inputs(self) -> list[Node]:
        """The nodes that the op takes."""
        return list(self.node.args[getattr(self.node.op.eval, "hidden", 0) :])

    @property
    def outputs(self) -> list[Node]:
        """The nodes that the op makes."""
        return items_of(self.node) if self.node.is_tuple else [self.node]

    @property
    def nin(self) -> int:
        """The number of inputs."""
        return len(self.inputs)

    @property
    def nout(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    @property
    def out(self) -> Node:
        """The only output, or the first."""
        return self.outputs[0]

    def default_output(self) -> Node:
        """The only output, or the first."""
        return self.outputs[0]

    def get_parents(self) -> list[Node]:
        """The inputs, as walks through variables and applications ask for them: a size stands for what it is of."""
        owners = [size_owner(node) if node.op is SIZE else None for node in self.inputs]
        return [node if owner is None else owner for node, owner in zip(self.inputs, owners, strict=True)]

    @property
    def tag(self) -> Any:
        """A place for the user's attributes."""
        return self.node.tag

    @property
    def where(self) -> Where | None:
        """The line of the program that made it."""
        return self.node.where

    def clone_with_new_inputs(self, inputs: Sequence[Node], strict: bool = True) -> Apply:
        """The same op on other inputs. Raises GraphTypeError where it does not take them."""
        if self.op is not self.node.op:
            made: Apply = self.op.make_node(*inputs)
            return made
        return apply_of(make(self.node.op, inputs, self.node.attrs))

    def clone(self) -> Apply:
        """This application itself: equal ones are one object."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Apply) and self.node is other.node

    def __hash__(self) -> int:
        return hash(self.node)

    def __reduce__(self) -> Any:
        return apply_of, (self.node,)

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.inputs))})"


class Composed(Apply):
    """An op of Theano that is put together from several here, with its inputs and its outputs."""

    __slots__ = ("composed_op", "given", "results")

    composed_op: Any
    given: list[Node]
    results: list[Node]

    @property
    def op(self) -> Any:
        """Theano's op."""
        return self.composed_op

    @property
    def inputs(self) -> list[Node]:
        """The inputs that Theano's op takes."""
        return list(self.given)

    @property
    def outputs(self) -> list[Node]:
        """The nodes that the op makes."""
        return list(self.results)


LAST = frozenset(
    "cast checked concatenate floor_div gather inc_gather mod neg reshape set_gather sub true_div where".split()
)
"""The ops that are the last of several which are one of Theano's (recognised.py)."""


def owner_of(node: Node) -> Apply:
    """`apply_of` as programs see it: what the last of several ops makes that are one op of Theano's is that op's."""
    kept: Any = node.__dict__.get("_owner") if node.op.name in LAST else False
    made: Composed | None = kept() if kept else None
    if kept is False or made is not None:  # it was found to be none, or the one that somebody has
        return made or apply_of(node)
    found = import_module("graphc.theano.recognised").recognised(node)
    if found is None:
        node.__dict__["_owner"] = False
        return apply_of(node)
    made = Composed(found[2][0])
    made.composed_op, made.given, made.results = found
    node.__dict__["_owner"] = ref(made)
    return made


def apply_of(node: Node) -> Apply:
    """The application that a node, or the one it is a result of, stands for; the existing one where somebody has it."""
    whole = node.args[0] if node.op is ITEM else plain(node)
    kept = whole.__dict__.get("_apply")
    found: Apply | None = kept() if kept is not None else None
    if found is None:
        found = Apply(whole)
        whole.__dict__["_apply"] = ref(found)
    return found


HOOKS.owner = owner_of
