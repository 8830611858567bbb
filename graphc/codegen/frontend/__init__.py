"""Generated source to LLVM IR by numba, and to functions that CPython runs.

In: source text (loopir/syntax.py) and prototypes. Out: language.py: Python functions over scalars, the meaning of the
language; intrinsics.py: the same names in LLVM IR; primitives.py: what else kernels call, typed for numba; lowering.py:
a `Module` of IR. The last three import numba or llvmlite; only the compile process imports them.
"""
