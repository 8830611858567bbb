"""Functions of plain Python, traced: called once with variables in place of arrays, to see what they compute.

In: functions of arrays and numbers, or of trees of them. Out: functions of the same arguments, compiled (`jit`), their
derivatives (`grad` and its kin), the same for many elements at once (`vmap`, `vectorize`). Read arguments.py, then
traced.py; derivatives.py and batches.py say what the transformed functions compute, of nodes.
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
