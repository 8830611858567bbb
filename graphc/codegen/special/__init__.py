"""Special functions of SciPy's, called by address.

In: dtypes, and how many elements there are at run time. Out: api.py: the functions that kernels call, and where SciPy's
are; batch.py: all elements.
"""
