"""NumPy's functions for building graphs, and Theano's names for them.

In: symbolic tensors, NumPy arrays, numbers and lists. Out: nodes of the graph. Importing this fills `FUNCTIONS`, which
gives nodes their operators and methods. `import graphc.tensor as T` stands for `theano.tensor`: `T.dmatrix`, `T.dot`,
`T.nnet.sigmoid`, …
"""

# ruff: noqa: F403 - each module says in its __all__ what it offers
from __future__ import annotations

import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any as Anything

from graphc.autodiff import Lop as Lop, Rop as Rop, grad as grad, hessian as hessian, jacobian as jacobian
from graphc.ir.call_errors import explained
from graphc.ir.node import FUNCTIONS
from graphc.startup.hooks import HOOKS, lazily, names_of
from graphc.tensor import nnet as nnet
from graphc.tensor.creation import *
from graphc.tensor.elementary import *
from graphc.tensor.indexing import *
from graphc.tensor.joining import *
from graphc.tensor.keys import *
from graphc.tensor.products import *
from graphc.tensor.reductions import *
from graphc.tensor.shaping import *
from graphc.tensor.shaping import flatten
from graphc.tensor.variables import *
from graphc.tensor.variables import as_tensor, constructors, plural_constructors

if TYPE_CHECKING:
    from graphc.tensor import linalg as linalg
    from graphc.tensor.arranging import *
    from graphc.tensor.calculus import *
    from graphc.tensor.contraction import *
    from graphc.tensor.elemwise import *
    from graphc.tensor.inspection import *
    from graphc.tensor.linalg.polynomials import *
    from graphc.tensor.nnet.losses import log_softmax as log_softmax, softmax as softmax
    from graphc.tensor.selecting import *
    from graphc.tensor.sorting import *
    from graphc.tensor.special import *
    from graphc.tensor.statistics import *
    from graphc.theano.opclasses import *

    __all__: list[str]
    nlinalg: Anything  # rooms that stand above this one
    slinalg: Anything
    opt: Anything

scalar, vector, row, col, matrix, tensor3, tensor4, tensor5, tensor6, tensor7 = constructors("")
bscalar, bvector, brow, bcol, bmatrix, btensor3, btensor4, btensor5, btensor6, btensor7 = constructors("b")
wscalar, wvector, wrow, wcol, wmatrix, wtensor3, wtensor4, wtensor5, wtensor6, wtensor7 = constructors("w")
iscalar, ivector, irow, icol, imatrix, itensor3, itensor4, itensor5, itensor6, itensor7 = constructors("i")
lscalar, lvector, lrow, lcol, lmatrix, ltensor3, ltensor4, ltensor5, ltensor6, ltensor7 = constructors("l")
fscalar, fvector, frow, fcol, fmatrix, ftensor3, ftensor4, ftensor5, ftensor6, ftensor7 = constructors("f")
dscalar, dvector, drow, dcol, dmatrix, dtensor3, dtensor4, dtensor5, dtensor6, dtensor7 = constructors("d")
cscalar, cvector, crow, ccol, cmatrix, ctensor3, ctensor4, ctensor5, ctensor6, ctensor7 = constructors("c")
zscalar, zvector, zrow, zcol, zmatrix, ztensor3, ztensor4, ztensor5, ztensor6, ztensor7 = constructors("z")
scalars, vectors, rows, cols, matrices, tensor3s, tensor4s, tensor5s, tensor6s, tensor7s = plural_constructors("")
bscalars, bvectors, brows, bcols, bmatrices, btensor3s, btensor4s, btensor5s, btensor6s, btensor7s = (
    plural_constructors("b")
)
wscalars, wvectors, wrows, wcols, wmatrices, wtensor3s, wtensor4s, wtensor5s, wtensor6s, wtensor7s = (
    plural_constructors("w")
)
iscalars, ivectors, irows, icols, imatrices, itensor3s, itensor4s, itensor5s, itensor6s, itensor7s = (
    plural_constructors("i")
)
lscalars, lvectors, lrows, lcols, lmatrices, ltensor3s, ltensor4s, ltensor5s, ltensor6s, ltensor7s = (
    plural_constructors("l")
)
fscalars, fvectors, frows, fcols, fmatrices, ftensor3s, ftensor4s, ftensor5s, ftensor6s, ftensor7s = (
    plural_constructors("f")
)
dscalars, dvectors, drows, dcols, dmatrices, dtensor3s, dtensor4s, dtensor5s, dtensor6s, dtensor7s = (
    plural_constructors("d")
)
cscalars, cvectors, crows, ccols, cmatrices, ctensor3s, ctensor4s, ctensor5s, ctensor6s, ctensor7s = (
    plural_constructors("c")
)
zscalars, zvectors, zrows, zcols, zmatrices, ztensor3s, ztensor4s, ztensor5s, ztensor6s, ztensor7s = (
    plural_constructors("z")
)

as_tensor_variable = as_tensor
outdim = flatten

LAZY = {
    "special": """
        angle betainc betaincinv betaln bitwise_count ceil_intdiv chi2sf default erfcinv erfinv frexp gamma
        gammainc gammaincc gammainccinv gammaincinv gammal gammau hyp2f1 i0 i0e i1 i1e iscomplex iscomplexobj
        isneginf isposinf isreal isrealobj iv ive j0 j1 jv k0 k0e k1 k1e kv kve largest ldexp log_ndtr mod_check
        modf ndtr ndtri owens_t polygamma real_if_close sinc smallest spacing stdtr xlogx y0 y1 yv
    """,
    "inspection": """
        AdvancedIndexingError AsTensorError Assert EmptyConstantError NotScalarConstantError ShapeError
        all_dtypes apply_over_axes array array_equal array_equiv asanyarray asarray ascontiguousarray
        asfortranarray assert_ assert_op broadcast_shapes complex_dtypes continuous_dtypes discrete_dtypes e
        euler_gamma extract_constant float_dtypes get_scalar_constant_value get_vector_length index_exp inf
        int_dtypes integer_dtypes is_flat isscalar makeKeepDims nan ndim newaxis pi python_all python_any
        require s_ scalar_from_tensor tensor_from_scalar transfer uint_dtypes
    """,
    "arranging": """
        append block concat delete dsplit horizontal_stack hsplit insert matrix_transpose pad permute_dims
        resize rollaxis rot90 row_stack stacklists trim_zeros unstack vertical_stack vsplit
    """,
    "calculus": """
        convolve correlate cross diff ediff1d gradient interp polyadd polyder polyint polymul polysub polyval
        trapezoid unwrap
    """,
    "contraction": "einsum einsum_path",
    "elemwise": "All Any CAReduce CAReduceDtype DimShuffle Elemwise Prod ScalarOp Sum",
    "selecting": """
        bartlett blackman c_ choose compress diag_indices diag_indices_from extract fill_diagonal
        fill_diagonal_offset fromfunction hamming hanning indices inverse_permutation ix_ kaiser mask_indices
        mgrid nonzero_values ogrid permute_row_elements piecewise r_ ravel_multi_index select take_along_axis
        tril_indices tril_indices_from triu_indices triu_indices_from unravel_index vander
    """,
    "sorting": """
        argpartition argsort argtopk digitize intersect1d isin lexsort partition searchsorted setdiff1d setxor1d
        sort topk topk_and_argtopk union1d unique unique_all unique_counts unique_inverse unique_values
    """,
    "statistics": """
        bincount corrcoef cov cumulative_prod cumulative_sum histogram histogram2d histogram_bin_edges histogramdd
        median nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod
        nanquantile nanstd nansum nanvar percentile quantile
    """,
    "linalg.polynomials": "poly polydiv polyfit roots roots_parts",
    "nnet.losses": "log_softmax softmax",
    "signal": "",
    "linalg": "",
}
"""Modules that hardly any program needs, and the names of each: imported when one is asked for."""

_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "true_div", "floor_divide": "floor_div",
    "power": "pow", "remainder": "mod", "matmul": "matmul", "less": "less", "less_equal": "less_equal",
    "greater": "greater", "greater_equal": "greater_equal",
}  # fmt: skip
"""NumPy's operators: a warm start, which may have one before a tensor, imports nothing for it."""


def _array_ufunc(ufunc: Anything, method: str, inputs: tuple[Anything, ...], kwargs: dict[str, Anything]) -> Anything:
    known = _OPERATORS.get(ufunc.__name__) if method == "__call__" and not kwargs else None
    if known is not None:
        return FUNCTIONS[known](*inputs)
    return HOOKS.ufunc(ufunc, method, inputs, kwargs)


def _array_function(function: Anything, args: tuple[Anything, ...], kwargs: dict[str, Anything]) -> Anything:
    return HOOKS.array_function(function, args, kwargs)


FUNCTIONS.update(array_ufunc=_array_ufunc, array_function=_array_function)

_INTERNAL = """
Anything FUNCTIONS FunctionType LAZY TYPE_CHECKING annotations constructors creation elementary explained
indexing joining keys sys
HOOKS lazily names_of plural_constructors products reductions shaping variables
"""
_OWN = [name for name in globals() if name[0] != "_" and name not in _INTERNAL.split()]


if not TYPE_CHECKING:  # which know the names
    _PLAIN = {name: globals().pop(name) for name in _OWN if isinstance(globals()[name], FunctionType)}
    FUNCTIONS["later"] = lazily("graphc.tensor", LAZY, public=explained)

    def __getattr__(name: str) -> Anything:
        if name == "__all__":
            found = globals()[name] = [*_OWN, *names_of(LAZY), *HOOKS.names("graphc.tensor")]
            return found
        if name in _PLAIN:
            found = globals()[name] = explained(_PLAIN[name], "graphc.tensor")
            return found
        return FUNCTIONS["later"](name)


def __dir__() -> list[str]:
    names: list[str] = sys.modules[__name__].__all__
    return names
