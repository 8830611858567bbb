"""Theano's `gof`: ops of the user, and graphs to look at. `op` has `Op` and `Apply`, `fg` a graph with its inputs and
outputs, `test_values` what tensors are while a graph is built."""

from typing import TYPE_CHECKING

from graphc.errors import CycleError, MissingInputError
from graphc.gof import fg, graph, null_type, op, type as type
from graphc.gof.fg import FunctionGraph
from graphc.gof.op import Apply, MethodNotDefined, Op, PureOp
from graphc.gof.type import Type
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Constant
from graphc.shared import Container
from graphc.startup.lazy import lazily
from graphc.tensor.variables import Variable

InconsistencyError = CycleError
OpenMPOp = Op

__all__ = [
    "Apply", "Constant", "Container", "FunctionGraph", "InconsistencyError", "MethodNotDefined", "MissingInputError",
    "Op", "OpenMPOp", "PureOp", "Type", "Variable", "fg", "graph", "null_type", "op", "type",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = lazily(
        "graphc.gof",
        {
            "optdb": "EquilibriumOptimizer LocalOptimizer MergeOptimizer OpRemove OpSub Optimizer PatternSub "
            "SeqOptimizer TopoOptimizer in2out local_optimizer out2in",
            "opt": "",
        },
    )

explain_all(globals())
