"""Theano's `compile`: how functions take their inputs, their modes, ops made of functions and of graphs.

`io` has `In`, `Out` and `Param`, `mode` the modes, `ops` has `as_op`, `builders` has `OpFromGraph`, `sharedvalue`
shared variables, `function_module` what a function was made of.
"""

from typing import TYPE_CHECKING

from graphc.compile.builders import OpFromGraph
from graphc.compile.debugmode import DebugMode
from graphc.compile.function_module import FunctionMaker
from graphc.compile.io import In, Out, Param, SymbolicInput, SymbolicOutput
from graphc.compile.mode import (
    FAST_COMPILE,
    FAST_RUN,
    Mode,
    get_default_mode,
    get_mode,
    predefined_linkers,
    predefined_modes,
    predefined_optimizers,
    register_mode,
)
from graphc.compile.nanguardmode import NanGuardMode
from graphc.compile.ops import DeepCopyOp, FromFunctionOp, ViewOp, as_op, deep_copy_op, shape, specify_shape, view_op
from graphc.errors import UnusedInputError
from graphc.function import function
from graphc.functions.callables import Function
from graphc.gof.graph import is_same_graph
from graphc.ir.call_errors import explain_all
from graphc.ops.missing import DisconnectedType, NullType
from graphc.options import options as config
from graphc.shared import SharedVariable, shared
from graphc.startup.lazy import lazily
from graphc.tensor.variables import Variable

pfunc = function

__all__ = [
    "FAST_COMPILE",
    "FAST_RUN",
    "DebugMode",
    "DeepCopyOp",
    "DisconnectedType",
    "FromFunctionOp",
    "Function",
    "FunctionMaker",
    "In",
    "Mode",
    "NanGuardMode",
    "NullType",
    "OpFromGraph",
    "Out",
    "Param",
    "SharedVariable",
    "SymbolicInput",
    "SymbolicOutput",
    "UnusedInputError",
    "Variable",
    "ViewOp",
    "as_op",
    "config",
    "deep_copy_op",
    "function",
    "get_default_mode",
    "get_mode",
    "is_same_graph",
    "pfunc",
    "predefined_linkers",
    "predefined_modes",
    "predefined_optimizers",
    "register_mode",
    "shape",
    "shared",
    "specify_shape",
    "view_op",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = lazily(
        "graphc.compile",
        {
            "ops": "Rebroadcast Shape Shape_i SpecifyShape",
            "graphc.gof.replacing": "rebuild_collect_shared",
            "graphc.printing.monitormode": "MonitorMode",
            "graphc.gof.optdb": "optdb",
        },
    )

explain_all(globals())
