"""Matrix products: micro-kernels, packing and blocks, and BLAS where it is better.

In: dtypes, sizes and strides at run time. Out: api.py: the functions that kernels call; dispatch.py: their IR, which
chooses by size among small.py, gemv.py, batched.py and blocked.py; microkernel.py and packing.py are what blocked
products are made of, gemv_kernels.py what products with a few rows are, context.py what threads get, lazy.py what is
loaded at the first large product.
"""
