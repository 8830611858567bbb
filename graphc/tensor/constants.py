"""Numbers, keys and lists of dtypes that NumPy and Theano keep beside their functions.

In: nothing. Out: constants of Python.
"""

from __future__ import annotations

import math

import numpy as np

from graphc.arrays.dtypes import DTYPES, FLOATS, INTEGERS, UNSIGNED

__all__ = [
    "all_dtypes", "complex_dtypes", "continuous_dtypes", "discrete_dtypes", "e", "euler_gamma", "float_dtypes",
    "index_exp", "inf", "int_dtypes", "integer_dtypes", "nan", "newaxis", "pi", "python_all", "python_any", "s_",
    "uint_dtypes",
]  # fmt: skip

python_all, python_any = all, any
e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
euler_gamma = float(np.euler_gamma)
newaxis = None
index_exp, s_ = np.index_exp, np.s_
"""A key as a value: `s_[1:, ::2]`; bounds may be nodes."""

all_dtypes, float_dtypes, integer_dtypes, uint_dtypes = DTYPES, FLOATS, INTEGERS, UNSIGNED
int_dtypes = tuple(dtype for dtype in INTEGERS if dtype not in UNSIGNED)
discrete_dtypes, continuous_dtypes = INTEGERS, FLOATS
complex_dtypes: tuple[str, ...] = ()
