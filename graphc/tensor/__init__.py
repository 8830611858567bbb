"""What a user builds graphs with: NumPy's functions, and Theano's names for them.

In: symbolic tensors, NumPy arrays, numbers and lists. Out: nodes of the graph. Importing this fills `FUNCTIONS`, which
gives nodes their operators and methods. `import graphc.tensor as T` stands for `theano.tensor`: `T.dmatrix`, `T.dot`,
`T.nnet.sigmoid`, …
"""

# ruff: noqa: F403 - each module says in its __all__ what it offers
from __future__ import annotations

from importlib import import_module
from typing import Any

from graphc.autodiff import Lop as Lop
from graphc.autodiff import Rop as Rop
from graphc.autodiff import grad as grad
from graphc.autodiff import hessian as hessian
from graphc.autodiff import jacobian as jacobian
from graphc.ir.node import FUNCTIONS
from graphc.tensor import nnet as nnet
from graphc.tensor.creation import *
from graphc.tensor.elementary import *
from graphc.tensor.indexing import *
from graphc.tensor.joining import *
from graphc.tensor.masks import *
from graphc.tensor.masks import where as where
from graphc.tensor.nnet import log_softmax as log_softmax
from graphc.tensor.nnet import softmax as softmax
from graphc.tensor.products import *
from graphc.tensor.reductions import *
from graphc.tensor.shaping import *
from graphc.tensor.shaping import flatten
from graphc.tensor.variables import *
from graphc.tensor.variables import as_tensor, constructors, plural_constructors

scalar, vector, row, col, matrix, tensor3, tensor4, tensor5 = constructors("")
bscalar, bvector, brow, bcol, bmatrix, btensor3, btensor4, btensor5 = constructors("b")
wscalar, wvector, wrow, wcol, wmatrix, wtensor3, wtensor4, wtensor5 = constructors("w")
iscalar, ivector, irow, icol, imatrix, itensor3, itensor4, itensor5 = constructors("i")
lscalar, lvector, lrow, lcol, lmatrix, ltensor3, ltensor4, ltensor5 = constructors("l")
fscalar, fvector, frow, fcol, fmatrix, ftensor3, ftensor4, ftensor5 = constructors("f")
dscalar, dvector, drow, dcol, dmatrix, dtensor3, dtensor4, dtensor5 = constructors("d")
scalars, vectors, rows, cols, matrices, tensor3s, tensor4s, tensor5s = plural_constructors("")
bscalars, bvectors, brows, bcols, bmatrices, btensor3s, btensor4s, btensor5s = plural_constructors("b")
wscalars, wvectors, wrows, wcols, wmatrices, wtensor3s, wtensor4s, wtensor5s = plural_constructors("w")
iscalars, ivectors, irows, icols, imatrices, itensor3s, itensor4s, itensor5s = plural_constructors("i")
lscalars, lvectors, lrows, lcols, lmatrices, ltensor3s, ltensor4s, ltensor5s = plural_constructors("l")
fscalars, fvectors, frows, fcols, fmatrices, ftensor3s, ftensor4s, ftensor5s = plural_constructors("f")
dscalars, dvectors, drows, dcols, dmatrices, dtensor3s, dtensor4s, dtensor5s = plural_constructors("d")

as_tensor_variable = as_tensor
outdim = flatten

_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "true_div", "floor_divide": "floor_div",
    "power": "pow", "remainder": "mod", "matmul": "matmul", "less": "less", "less_equal": "less_equal",
    "greater": "greater", "greater_equal": "greater_equal",
}  # fmt: skip
"""NumPy's operators: a warm start, which may have one before a tensor, imports nothing for it."""


def _array_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    known = _OPERATORS.get(ufunc.__name__) if method == "__call__" and not kwargs else None
    if known is not None:
        return FUNCTIONS[known](*inputs)
    return import_module("graphc.tensor.dispatch").call_ufunc(ufunc, method, inputs, kwargs)


def _array_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return import_module("graphc.tensor.dispatch").call_function(function, args, kwargs)


FUNCTIONS.update(array_ufunc=_array_ufunc, array_function=_array_function)

_INTERNAL = """
Any FUNCTIONS import_module
annotations constructors creation elementary indexing joining keys masks plural_constructors products reductions shaping
variables
"""
__all__ = [name for name in globals() if name[0] != "_" and name not in _INTERNAL.split()]


def __dir__() -> list[str]:
    return __all__
