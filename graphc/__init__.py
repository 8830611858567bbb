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

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphc.codegen.server.prestart import start_if_expected
from graphc.startup.hooks import ALIASES, HOOKS, install, nearest
from graphc.startup.process import import_numpy, importing
from graphc.startup.versions import VERSION, warn_of_versions

HOOKS.modules = {
    "pairs": "graphc.ops.pairs",
    "complexes": "graphc.tensor.linalg.complexes",
    "orders": "graphc.tensor.orders",
    "absent": "graphc.theano.paths",
    "array_function": "graphc.tensor.dispatch",
    "array_method": "graphc.numpy.methods",
    "at": "graphc.control.updates",
    "compiled_part": "graphc.codegen.pipeline.compilation",
    "creations": "graphc.tensor.creations",
    "expression": "graphc.ir.expression",
    "find_spec": "graphc.theano.paths",
    "get_setting": "graphc.theano.flags",
    "handles": "graphc.tensor.boundary",
    "label": "graphc.ir.expression",
    "late_op": "graphc.scipy.special.addressed",
    "maker": "graphc.theano.compile",
    "names": "graphc.theano.paths",
    "of_functions": "graphc.tracing",
    "owner": "graphc.theano.owners",
    "plain_calls": "graphc.tracing.plain_calls",
    "retraced": "graphc.tracing.by_text",
    "reduced": "graphc.ir.pickling",
    "scipys": "graphc.scipy.exchange",
    "set_setting": "graphc.theano.flags",
    "shared_generator": "graphc.random.streams",
    "shared_matrix": "graphc.sparse",
    "states": "graphc.functions.states",
    "save": "graphc.functions.saved",
    "export": "graphc.functions.exported",
    "pointer": "graphc.functions.pointer",
    "as_numba": "graphc.functions.numba_calls",
    "as_ufunc": "graphc.functions.ufuncs",
    "restored_jitted": "graphc.tracing.saved_calls",
    "restored_network": "graphc.functions.saved_networks",
    "restored_trainer": "graphc.functions.saved_networks",
    "resumed_trainer": "graphc.train.trainer",
    "ufunc": "graphc.tensor.dispatch",
}
"""The module that fills each hook; it is imported when the hook is first used."""

with importing():
    warn_of_versions()
    install()
    start_if_expected()
    import_numpy()
    from graphc.codegen.pipeline.kernel import on_phase
    from graphc.errors import GraphcError
    from graphc.functions.callables import Function
    from graphc.functions.convention import In, Out
    from graphc.ir.call_errors import explained
    from graphc.ir.node import FUNCTIONS, OPS, Constant, Node
    from graphc.ir.walk import Graph
    from graphc.options import options
    from graphc.shared import SharedVariable, shared
    from graphc.startup.process import PROCESS

OPS.rest = "graphc.ops"
FUNCTIONS.rest = "graphc.tensor"
FUNCTIONS.later |= {
    "choose_among": "graphc.control.branch",
    "cond_vjps": "graphc.control.branch",
    "eval": "graphc.functions.function",
    "scan_vjps": "graphc.control.derivative",
}

if TYPE_CHECKING:
    from graphc import (
        distributed as distributed,
        lax as lax,
        numpy as numpy,
        optim as optim,
        printing as printing,
        random as random,
        scipy as scipy,
        session as session,
        tensor as tensor,
    )
    from graphc.arrays.array import Array as Array
    from graphc.autodiff import (
        Lop as Lop,
        Rop as Rop,
        hessian as hessian,
        hessian_vector_product as hessian_vector_product,
        jacobian as jacobian,
        jvp as jvp,
        subgraph_grad as subgraph_grad,
        vjp as vjp,
    )
    from graphc.codegen.cache import manage as cache
    from graphc.control import scan as scan_utils
    from graphc.control.branch import ifelse as ifelse
    from graphc.control.functional import (
        cond as cond,
        fori_loop as for_loop,
        switch as switch_case,
        while_loop as while_loop,
    )
    from graphc.control.scan import (
        OrderedUpdates as OrderedUpdates,
        foldl as foldl,
        foldr as foldr,
        map as map,
        reduce as reduce,
        scan as scan,
        until as until,
    )
    from graphc.functions.background import wait as wait
    from graphc.functions.debug_modes import DebugMode as DebugMode, NanGuardMode as NanGuardMode
    from graphc.functions.function import function as function
    from graphc.functions.loaded import load as load
    from graphc.inspection import inspect as inspect
    from graphc.ir.text import print_graph as print_graph
    from graphc.ops.custom import custom_op as custom_op, op as op
    from graphc.printing import pp as pp
    from graphc.tensor import Variable as Variable, get_scalar_constant_value as get_scalar_constant_value, nnet as nnet
    from graphc.tensor.products import dot as dot
    from graphc.theano import compile as compile, flags as configdefaults, gradient as gradient, scalar as scalar
    from graphc.theano.compile import (
        FunctionMaker as FunctionMaker,
        Mode as Mode,
        OpFromGraph as OpFromGraph,
        Param as Param,
        as_op as as_op,
    )
    from graphc.theano.flags import change_flags as change_flags
    from graphc.theano.gradient import sparse_grad as sparse_grad
    from graphc.theano.graphs import (
        FunctionGraph as FunctionGraph,
        clone_replace as clone_replace,
        graph_replace as graph_replace,
        is_same_graph as is_same_graph,
        map_variables as map_variables,
    )
    from graphc.theano.owners import Apply as Apply
    from graphc.theano.paths import install_as_theano as install_as_theano
    from graphc.theano.user_ops import Op as Op
    from graphc.tracing import (
        Jitted as Jitted,
        ShapeDtypeStruct as ShapeDtypeStruct,
        checkpoint as checkpoint,
        checkpoint_name as checkpoint_name,
        checkpoint_policies as checkpoint_policies,
        custom_gradient as custom_gradient,
        custom_jvp as custom_jvp,
        custom_vjp as custom_vjp,
        debug as debug,
        disable_jit as disable_jit,
        eval_shape as eval_shape,
        hvp as hvp,
        jacfwd as jacfwd,
        jacrev as jacrev,
        jit as jit,
        linearize as linearize,
        make_graph as make_graph,
        pure_callback as pure_callback,
        remat as remat,
        stop_gradient as stop_gradient,
        vectorize as vectorize,
        vmap as vmap,
    )
    from graphc.tracing.gradients import grad as grad, value_and_grad as value_and_grad

    configparser = configdefaults
    clone = clone_replace
    gof: Any
    updates: Any
    sandbox: Any
    scan_module: Any

__version__ = VERSION
config: Any = options
"""Theano's name for the options; it has Theano's settings too, which `graphc.theano.flags` lists."""


def parse_graph(text: str) -> Graph:
    """The graph of a text that `print_graph` made, with fresh leaves. Raises ParseError, naming the line."""
    return import_module("graphc.ir.parse").parse_graph(text)  # hardly any program reads graphs


def compilations() -> int:
    """Return the number of graphs that this process has compiled so far. What the cache has, a second function of an
    equal graph, and a call with other sizes add nothing to it; a function whose sizes follow from values counts each of
    its stages, and a large array of another layout may have code of its own compiled. Raises no error."""
    return PROCESS.compilations


_MODULES = """
    autodiff autograd cache control distributed flatten_util inspection lax layers nn numpy ops optim optimizers
    preprocess printing random scan_utils scipy session sparse tensor theano tracing train tree tree_util
""".split()
"""Modules that a program with a loaded function does without: imported when one is first named."""
_NAMES = {
    "arrays.array": "Array",
    "autodiff": "Lop Rop grad hessian hessian_vector_product jacobian jvp subgraph_grad value_and_grad vjp",
    "control.branch": "ifelse",
    "control.functional": "cond for_loop switch_case while_loop",
    "control.scan": "OrderedUpdates foldl foldr map reduce scan until",
    "functions.background": "wait",
    "functions.function": "function",
    "functions.loaded": "load",
    "functions.debug_modes": "DebugMode NanGuardMode",
    "inspection": "inspect",
    "ir.text": "print_graph",
    "ops.custom": "custom_op op",
    "printing": "pp pprint",
    "tensor": "Variable dot get_scalar_constant_value nnet",
    "theano.paths": "install_as_theano",
    "tracing": """
        Jitted ShapeDtypeStruct checkpoint checkpoint_name checkpoint_policies custom_gradient custom_jvp custom_vjp
        debug disable_jit eval_shape hvp jacfwd jacrev jit linearize make_graph pure_callback remat stop_gradient
        vectorize vmap
    """,
}
_OWN_NAMES = {"for_loop": "fori_loop", "switch_case": "switch"}
"""Names that differ here from those in their modules."""
_LATE = {
    **{name: name for name in _MODULES},
    **{name: module for module in _NAMES for name in _NAMES[module].split()},
}
"""Every name that is there when it is first asked for, with the module that has it."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        place = _LATE.get(name)
        if place is not None:
            with importing():
                module = import_module(f"graphc.{ALIASES.get(place, place)}")
                found = module if name == place else getattr(module, _OWN_NAMES.get(name, name))
        elif any(os.path.exists(f"{__path__[0]}/{name}{end}") for end in ("", ".py")):
            raise AttributeError(f"graphc.{name} is not imported yet")  # `from graphc import it` asks first
        else:
            found, why = HOOKS.absent("graphc", name)
            if found is None:
                why = why or nearest(name, __dir__())
                raise AttributeError(f"{name!r} is not in graphc{why and '; '}{why}")
        found = globals()[name] = explained(found, "graphc")
        if name == "ifelse":
            found.ifelse = found  # in Theano theano.ifelse is a module: theano.ifelse.ifelse(...)
        return found


__all__ = [
    "Constant", "Function", "Graph", "GraphcError", "In", "Lop", "Node", "Out", "Rop", "SharedVariable", "Variable",
    "compilations", "cond", "config", "custom_op", "dot", "foldl", "foldr", "for_loop", "function", "grad",
    "hessian", "hessian_vector_product", "ifelse", "jacobian", "jvp", "map", "nnet", "on_phase", "op", "options",
    "parse_graph", "print_graph", "reduce", "scan", "scan_utils", "shared", "subgraph_grad",
    "switch_case", "tensor", "until", "value_and_grad", "vjp", "while_loop",
]  # fmt: skip


for _name in {*__all__} - {*_LATE}:
    globals()[_name] = explained(globals()[_name], "graphc")


__all__ += [
    "Apply", "FunctionGraph", "Mode", "Op", "OpFromGraph", "OrderedUpdates", "Param", "as_op", "cache", "change_flags",
    "clone", "compile", "configdefaults", "gof", "gradient", "lax", "pp", "printing", "scalar", "sparse",
    "sparse_grad", "theano",
]  # fmt: skip
"""And what `from theano import *` gives besides, loaded when it is asked for."""


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATE, *HOOKS.names("graphc")})


if "THEANO_FLAGS" in os.environ:
    import_module("graphc.theano.flags").read_flags(os.environ["THEANO_FLAGS"])
