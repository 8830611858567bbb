"""Transformations of plain Python functions by tracing: a call with variables in place of arrays records the graph.

In: a function of arrays and numbers, or of trees of them. Out: a function of the same arguments: compiled (`jit`), its
derivatives (`grad`, `jacrev`, `jacfwd`, `hessian`), mapped over an axis (`vmap`, `vectorize`). Read arguments.py, then
traced.py; derivatives.py and batches.py build the graphs of derivatives and of mapped functions.
"""

import sys

from graphc.startup.hooks import HOOKS
from graphc.tracing.batches import vectorize, vmap
from graphc.tracing.callbacks import ShapeDtypeStruct, debug, pure_callback
from graphc.tracing.custom import (
    checkpoint,
    checkpoint_name,
    checkpoint_policies,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    remat,
)
from graphc.tracing.derivatives import grad, hessian, jacfwd, jacobian, jacrev, value_and_grad
from graphc.tracing.looking import disable_jit, eval_shape, make_graph
from graphc.tracing.products import hvp, jvp, linearize, stop_gradient, vjp
from graphc.tracing.traced import Jitted, jit

__all__ = [
    "Jitted", "ShapeDtypeStruct", "checkpoint", "checkpoint_name", "checkpoint_policies", "custom_gradient",
    "custom_jvp", "custom_vjp", "debug", "disable_jit", "eval_shape", "grad", "hessian", "hvp", "jacfwd", "jacobian",
    "jacrev", "jit", "jvp", "linearize", "make_graph", "pure_callback", "remat", "stop_gradient", "value_and_grad",
    "vectorize", "vjp", "vmap",
]  # fmt: skip

HOOKS.of_functions = sys.modules[__name__]
