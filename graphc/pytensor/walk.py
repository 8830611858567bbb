"""PyTensor's graphs as graphs of nodes, and what they cannot hold between them.

In: a graph of PyTensor's: inputs and outputs. Out: `Stage` by stage, a graph of nodes, which becomes one function, and
the Applys that PyTensor computes after it, whose results the next stage takes. A graph that has no such Apply is one
stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.ir.node import Node
from graphc.pytensor.table import Table, applys, constant
from graphc.pytensor.tensors import CHECKED
from graphc.pytensor.unknown import Unknown


class Stage:
    """A graph of nodes: PyTensor's variables that it takes and those that are asked of it, each with its node; and the
    Applys that come after it."""

    def __init__(self) -> None:
        self.leaves: dict[Any, Node] = {}
        self.values: dict[Any, Any] = {}
        self.asked: dict[Any, Node] = {}
        self.left: list[Any] = []


class Walk:
    """The stages of a graph.

    refused: for each kind of op that is left to PyTensor, why. checks: the exceptions of checks by their messages.
    """

    def __init__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], strict: bool = False, table: Table = CHECKED
    ) -> None:
        self.stages = [Stage()]
        self.stage_of = dict.fromkeys(inputs, 0)
        self.refused: dict[str, str] = {}
        self.checks: dict[str, type[Exception]] = {}
        self.strict, self.table = strict, table
        for apply in applys(inputs, outputs):
            self._add(apply)
        for out in outputs:
            self._ask(out)

    def _add(self, apply: Any) -> None:
        number = max((self.stage_of[arg] for arg in apply.inputs if arg in self.stage_of), default=0)
        stage = self.stages[number]
        if hasattr(apply.op, "exc_type"):
            self.checks[apply.op.msg] = apply.op.exc_type
        try:
            results = self.table.convert(apply, [self._value(arg, number) for arg in apply.inputs])
        except (Unknown, GraphcError) as error:
            if self.strict:
                raise
            self.refused[type(apply.op).__name__] = str(error)
        else:
            for out, value in zip(apply.outputs, results, strict=True):
                stage.values[out] = value
                self.stage_of[out] = number
            return
        for arg in apply.inputs:
            self._ask(arg)
        stage.left.append(apply)
        if len(self.stages) == number + 1:
            self.stages.append(Stage())
        self.stage_of.update(dict.fromkeys(apply.outputs, number + 1))

    def _value(self, variable: Any, number: int) -> Any:
        """What stands for a variable in a stage."""
        if variable not in self.stage_of:
            return constant(variable)
        stage = self.stages[number]
        if variable not in stage.values:
            if self.stage_of[variable] < number:
                self._ask(variable)
            stage.values[variable] = stage.leaves[variable] = leaf(variable)
        return stage.values[variable]

    def _ask(self, variable: Any) -> None:
        """Have the stage that computes a variable give it, if one does."""
        stage = self.stages[self.stage_of.get(variable, 0)]
        value = stage.values.get(variable)
        if value is not None and variable not in stage.leaves:
            if not isinstance(value, Node):
                raise Unknown(f"{variable} is no tensor")
            stage.asked[variable] = value


def leaf(variable: Any) -> Node:
    """An input of a graph of nodes."""
    kind = variable.type
    if not hasattr(kind, "dtype") or hasattr(kind, "format"):
        raise Unknown(f"{variable}, of type {kind}, is no tensor")
    node: Node = T.tensor(kind.dtype, getattr(kind, "shape", ()), name=variable.name)
    return node
