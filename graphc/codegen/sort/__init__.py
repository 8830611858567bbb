"""Orders of lines of elements: sorted ones, their places, the first of them; lines are shared by threads.

In: dtypes, sizes and strides at run time. Out: api.py: the functions that kernels call, and where NumPy's sorts are;
lines.py: one line, and all lines of an array.
"""
