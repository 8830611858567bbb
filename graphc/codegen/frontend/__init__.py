"""Generated source to LLVM IR by numba, and to functions that CPython runs.

In: source text and prototypes. Out: language.py: Python functions over NumPy scalars, the meaning of the language;
intrinsics.py: the same names in LLVM IR; primitives.py: what else kernels call, typed for numba; lowering.py: a
`Module` of IR. All but language.py import numba or llvmlite; only who compiles imports them.
"""
