"""Matrix products: tiles in registers, packing and blocks, and BLAS where it is better.

In: dtypes, sizes and strides at run time. Out: api.py: the functions that kernels call, symbols and addresses;
dispatch.py: their IR, which chooses by size among small.py (and batches), gemv.py (products with a vector) and
blocked.py (large products), all made of tiles.py, which also has the words that threads get.
"""
