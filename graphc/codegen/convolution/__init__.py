"""Convolutions of float64, float32 and integers of any strides, dilations and groups.

In: dtypes, sizes and strides at run time. Out: api.py: the functions that kernels call; convolution.py: their IR, which
chooses among products by tiles (tiles.py), the forms for few channels (depthwise.py) and results one by one.
"""
