"""Factorisations of matrices: loops for small ones, LAPACK for others, shared by threads over a batch.

In: dtypes, sizes and strides at run time. Out: api.py: the functions that kernels call; batch.py: what they have in
common; elimination.py: Cholesky, triangular systems and LU; orthogonal.py: QR, eigenvalues and singular values,
and how routines of LAPACK are called; equations.py: bands, constant diagonals, Schur's form.
"""
