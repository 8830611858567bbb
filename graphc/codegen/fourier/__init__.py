"""Fourier transforms.

In: complex lines at run time. Out: api.py: the functions that kernels call; transform.py: their definitions.
"""
