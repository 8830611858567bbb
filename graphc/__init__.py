"""graphc compiles symbolic tensor graphs to native CPU kernels.

    import graphc
    import graphc.tensor as T

    x = T.dmatrix("x")
    w = graphc.shared([0.5, -0.5], name="w")
    cost = T.sqr(T.dot(x, w)).mean()
    step = graphc.function([x], cost, updates=[(w, w - 0.1 * graphc.grad(cost, w))])

`function` makes a callable; `shared` a variable that keeps its value; `grad` and its kin differentiate; `tensor` and
`nnet` hold the functions of tensors, `optim` the optimisers, `session` a TensorFlow-1-like front end; `options` (also
`config`, Theano's name) the settings; `cache` the compiled graphs on disk; `on_phase` tells how far a compilation is;
`op` makes an op of a Python function.
Importing graphc imports neither numba nor SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphc.codegen.server.prestart import start_if_expected
from graphc.startup.garbage import uncollected
from graphc.startup.idle_blas import import_numpy

with uncollected():
    start_if_expected()
    import_numpy()
    import graphc.ops  # noqa: F401 - fills the table of ops
    from graphc import tensor
    from graphc.autodiff import Lop, Rop, grad, hessian, hessian_vector_product, jacobian, jvp, value_and_grad, vjp
    from graphc.codegen.cache import store as cache
    from graphc.codegen.pipeline.kernel import on_phase
    from graphc.control import functional as lax
    from graphc.control import scan as scan_module
    from graphc.control import scan as scan_utils
    from graphc.control.functional import fori_loop as for_loop
    from graphc.control.functional import while_loop
    from graphc.control.scan import foldl, foldr, map, reduce, scan, until
    from graphc.errors import GraphcError
    from graphc.function import function
    from graphc.functions.callables import Function
    from graphc.functions.convention import In, Out
    from graphc.ifelse import ifelse
    from graphc.ir.node import Constant, Node
    from graphc.ir.text import print_graph
    from graphc.ir.walk import Graph
    from graphc.ops.custom import custom_op, op
    from graphc.options import options
    from graphc.shared import SharedVariable, shared
    from graphc.tensor import nnet

__version__ = "0.1.0"
config = options
Variable = Node

if TYPE_CHECKING:
    from graphc import gof as gof
    from graphc.gof.graph import clone_replace as clone_replace
    from graphc.gof.graph import graph_replace as graph_replace
    from graphc.gof.graph import is_same_graph as is_same_graph
    from graphc.inspection import inspect as inspect
    from graphc.ir.apply import Apply as Apply

    clone = clone_replace

_LATE: dict[str, Callable[[], Any]] = {
    "Apply": lambda: import_module("graphc.ir.apply").Apply,
    "clone": lambda: import_module("graphc.gof.graph").clone_replace,
    "clone_replace": lambda: import_module("graphc.gof.graph").clone_replace,
    "gof": lambda: import_module("graphc.gof"),
    "graph_replace": lambda: import_module("graphc.gof.graph").graph_replace,
    "inspect": lambda: import_module("graphc.inspection").inspect,
    "is_same_graph": lambda: import_module("graphc.gof.graph").is_same_graph,
}
"""Names that few programs use: the modules that have them are imported when one is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'graphc' has no attribute {name!r}")
    found = globals()[name] = _LATE[name]()
    return found


def parse_graph(text: str) -> Graph:
    """The graph of a text that `print_graph` made, with fresh leaves. Raises ParseError, naming the line."""
    graph: Graph = import_module("graphc.ir.parse").parse_graph(text)  # hardly any program reads graphs
    return graph


__all__ = [
    "Apply", "Constant", "Function", "Graph", "GraphcError", "In", "Lop", "Node", "Out", "Rop", "SharedVariable",
    "Variable", "cache", "clone", "clone_replace", "config", "custom_op", "foldl", "foldr", "for_loop", "function",
    "gof", "grad", "graph_replace", "hessian", "hessian_vector_product", "ifelse", "inspect", "is_same_graph",
    "jacobian", "jvp", "lax", "map", "nnet", "on_phase", "op", "options", "parse_graph", "print_graph", "reduce",
    "scan", "scan_module", "scan_utils", "shared", "tensor", "until", "value_and_grad", "vjp", "while_loop",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
