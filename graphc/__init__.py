"""graphc compiles symbolic tensor graphs to native CPU kernels.

    import graphc
    import graphc.tensor as T

    x = T.dmatrix("x")
    w = graphc.shared([0.5, -0.5], name="w")
    cost = T.sqr(T.dot(x, w)).mean()
    step = graphc.function([x], cost, updates=[(w, w - 0.1 * graphc.grad(cost, w))])

`function` makes a callable; `shared` a variable that keeps its value; `grad` and its kin differentiate; `jit`, `vmap`
and the derivatives of functions take plain functions of arrays; `tensor` and
`nnet` hold the functions of tensors, `optim` the optimisers, `session` a TensorFlow-1-like front end; `options` (also
`config`, Theano's name) the settings; `cache` the compiled graphs on disk; `on_phase` tells how far a compilation is;
`op` makes an op of a Python function.
Importing graphc imports neither numba nor SciPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from graphc.codegen.server.prestart import start_if_expected
from graphc.startup.finder import install
from graphc.startup.garbage import uncollected
from graphc.startup.idle_blas import import_numpy
from graphc.startup.lazy import at_path, nearest
from graphc.startup.versions import VERSION, warn_of_versions

with uncollected():
    warn_of_versions()
    install()
    start_if_expected()
    import_numpy()
    import graphc.ops  # noqa: F401 - fills the table of ops
    from graphc import tensor
    from graphc.autodiff import (
        Lop,
        Rop,
        grad,
        hessian,
        hessian_vector_product,
        jacobian,
        jvp,
        subgraph_grad,
        value_and_grad,
        vjp,
    )
    from graphc.codegen.cache import store as cache
    from graphc.codegen.pipeline.kernel import on_phase
    from graphc.control import functional as lax, scan as scan_utils
    from graphc.control.functional import cond, fori_loop as for_loop, switch as switch_case, while_loop
    from graphc.control.scan import foldl, foldr, map, reduce, scan, until
    from graphc.errors import GraphcError
    from graphc.function import function
    from graphc.functions.callables import Function
    from graphc.functions.convention import In, Out
    from graphc.ifelse import ifelse
    from graphc.ir.call_errors import explained
    from graphc.ir.node import Constant, Node
    from graphc.ir.text import print_graph
    from graphc.ir.walk import Graph
    from graphc.ops.custom import custom_op, op
    from graphc.options import options
    from graphc.shared import SharedVariable, shared
    from graphc.startup.process import PROCESS
    from graphc.tensor import nnet
    from graphc.tensor.products import dot

if TYPE_CHECKING:
    from graphc import (
        compile as compile,
        configdefaults as configdefaults,
        configparser as configparser,
        gof as gof,
        gradient as gradient,
        numpy as numpy,
        optim as optim,
        printing as printing,
        random as random,
        scalar as scalar,
        session as session,
        updates as updates,
    )
    from graphc.compile import (
        FunctionMaker as FunctionMaker,
        Mode as Mode,
        OpFromGraph as OpFromGraph,
        Param as Param,
        as_op as as_op,
    )
    from graphc.configdefaults import change_flags as change_flags
    from graphc.functions.checked import DebugMode as DebugMode, NanGuardMode as NanGuardMode
    from graphc.gof import Apply as Apply, FunctionGraph as FunctionGraph, Op as Op
    from graphc.gof.graph import (
        clone_replace as clone_replace,
        graph_replace as graph_replace,
        is_same_graph as is_same_graph,
    )
    from graphc.gof.replacing import map_variables as map_variables
    from graphc.gradient import sparse_grad as sparse_grad
    from graphc.inspection import inspect as inspect
    from graphc.printing import pp as pp
    from graphc.tensor import get_scalar_constant_value as get_scalar_constant_value
    from graphc.tracing import (
        Jitted as Jitted,
        jacfwd as jacfwd,
        jacrev as jacrev,
        jit as jit,
        vectorize as vectorize,
        vmap as vmap,
    )
    from graphc.updates import OrderedUpdates as OrderedUpdates

    clone = clone_replace
    sandbox: Any
    scan_module: Any

__version__ = VERSION
config: Any = options
"""Theano's name for the options; it has Theano's settings too, which `graphc.configdefaults` lists."""
Variable = tensor.Variable


def parse_graph(text: str) -> Graph:
    """The graph of a text that `print_graph` made, with fresh leaves. Raises ParseError, naming the line."""
    graph: Graph = import_module("graphc.ir.parse").parse_graph(text)  # hardly any program reads graphs
    return graph


def compilations() -> int:
    """How many graphs this process has compiled so far. What the cache has, a second function of an equal graph, and a
    call with other sizes add nothing to it; a function whose sizes follow from values counts each of its stages, and a
    large array of another layout may have code of its own compiled.
    """
    return PROCESS.compilations


_MODULES: dict[str, Callable[[], ModuleType]] = {
    "compile": lambda: import_module("graphc.compile"),
    "configdefaults": lambda: import_module("graphc.configdefaults"),
    "configparser": lambda: import_module("graphc.configparser"),
    "gof": lambda: import_module("graphc.gof"),
    "gof.graph": lambda: import_module("graphc.gof.graph"),
    "gof.replacing": lambda: import_module("graphc.gof.replacing"),
    "gradient": lambda: import_module("graphc.gradient"),
    "functions.checked": lambda: import_module("graphc.functions.checked"),
    "inspection": lambda: import_module("graphc.inspection"),
    "layers": lambda: import_module("graphc.layers"),
    "numpy": lambda: import_module("graphc.numpy"),
    "optim": lambda: import_module("graphc.optim"),
    "preprocess": lambda: import_module("graphc.preprocess"),
    "printing": lambda: import_module("graphc.printing"),
    "random": lambda: import_module("graphc.random"),
    "sandbox": lambda: import_module("graphc.sandbox"),
    "scalar": lambda: import_module("graphc.scalar"),
    "scan_module": lambda: import_module("graphc.scan_module"),
    "session": lambda: import_module("graphc.session"),
    "sparse": lambda: import_module("graphc.sparse"),
    "tracing": lambda: import_module("graphc.tracing"),
    "train": lambda: import_module("graphc.train"),
    "tensor": lambda: tensor,
    "updates": lambda: import_module("graphc.updates"),
}
"""Modules under Theano's names, which few programs need: loaded when one is first named."""
_NAMES = {
    "compile": "FunctionMaker Mode OpFromGraph Param SymbolicInput SymbolicOutput as_op predefined_linkers "
    "predefined_modes predefined_optimizers",
    "configdefaults": "change_flags",
    "gof": "Apply Container FunctionGraph InconsistencyError Op",
    "gof.graph": "clone clone_replace graph_replace is_same_graph",
    "gof.replacing": "map_variables",
    "gradient": "sparse_grad",
    "functions.checked": "DebugMode NanGuardMode",
    "inspection": "inspect",
    "tracing": "Jitted jacfwd jacrev jit vectorize vmap",
    "printing": "pp",
    "tensor": "get_scalar_constant_value",
    "updates": "OrderedUpdates",
}
_RENAMED = {"clone": "clone_replace"}
_LATE = {
    **{name: name for name in _MODULES if "." not in name},
    **{name: module for module in _NAMES for name in _NAMES[module].split()},
}
"""Every name that is there when it is first asked for, with the module that has it."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        place = _LATE.get(name)
        if name == "_asarray":  # Theano's programs use it, and nobody is shown it
            return import_module("graphc.gof.tensor_basic")._asarray
        if name == "theano":  # from theano import theano, tensor
            return sys.modules[__name__]
        if place is None and (path := at_path("graphc", name)) is not None:
            return path
        if place is None:
            paths = import_module("graphc.startup.paths")
            meant = paths.why_name(name) or paths.why(name) or nearest(name, __dir__())
            raise AttributeError(f"{name!r} is not in graphc{meant and '; '}{meant}")
        module = _MODULES[place]()
        found = globals()[name] = (
            module if name == place else explained(getattr(module, _RENAMED.get(name, name)), "graphc")
        )
        return found


__all__ = [
    "Constant", "Function", "Graph", "GraphcError", "In", "Lop", "Node", "Out", "Rop", "SharedVariable", "Variable",
    "cache", "compilations", "cond", "config", "custom_op", "dot", "foldl", "foldr", "for_loop", "function", "grad",
    "hessian", "hessian_vector_product", "ifelse", "jacobian", "jvp", "lax", "map", "nnet", "on_phase", "op", "options",
    "parse_graph", "print_graph", "reduce", "scan", "scan_utils", "shared", "subgraph_grad",
    "switch_case", "tensor", "until", "value_and_grad", "vjp", "while_loop",
]  # fmt: skip


for _name in __all__:
    globals()[_name] = explained(globals()[_name], "graphc")


__all__ += [
    "Apply", "FunctionGraph", "Mode", "Op", "OpFromGraph", "OrderedUpdates", "Param", "as_op", "change_flags", "clone",
    "compile", "configdefaults", "gof", "gradient", "pp", "printing", "scalar", "sparse",
    "sparse_grad", "theano",
]  # fmt: skip
"""And what `from theano import *` gives besides, loaded when it is asked for."""


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATE})
