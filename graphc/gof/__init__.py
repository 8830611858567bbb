"""Theano's `gof`: ops of the user, and graphs to look at. `op` has `Op` and `Apply`, `fg` a graph with its inputs and
outputs, `test_values` what tensors are while a graph is built."""

from graphc.errors import CycleError, MissingInputError
from graphc.gof.fg import FunctionGraph
from graphc.gof.op import Apply, Op
from graphc.ir.node import Node as Variable
from graphc.shared import Container

InconsistencyError = CycleError
PureOp = Op

__all__ = ["Apply", "Container", "FunctionGraph", "InconsistencyError", "MissingInputError", "Op", "PureOp", "Variable"]
