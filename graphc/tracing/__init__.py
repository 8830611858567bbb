"""Transformations of plain Python functions by tracing: a call with variables in place of arrays records the graph.

In: a function of arrays and numbers, or of trees of them. Out: a function of the same arguments: compiled (`jit`), its
derivatives (`grad`, `jacrev`, `jacfwd`, `hessian`), mapped over an axis (`vmap`, `vectorize`). Read arguments.py, then
traced.py; derivatives.py and batches.py build the graphs of derivatives and of mapped functions.
"""

import sys

from graphc.startup.hooks import HOOKS
from graphc.tracing.batches import vectorize, vmap
from graphc.tracing.derivatives import grad, hessian, jacfwd, jacobian, jacrev, value_and_grad
from graphc.tracing.traced import Jitted, jit

__all__ = [
    "Jitted", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jit", "value_and_grad", "vectorize", "vmap",
]  # fmt: skip

HOOKS.of_functions = sys.modules[__name__]
