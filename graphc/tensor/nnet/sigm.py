"""Theano's path of the sigmoids in graphc.tensor.nnet."""

from graphc.tensor.elementary import sigmoid, softplus
from graphc.tensor.nnet.activations import hard_sigmoid, sigmoid_inplace, ultra_fast_sigmoid, ultra_fast_sigmoid_inplace

__all__ = [
    "hard_sigmoid", "sigmoid", "sigmoid_inplace", "softplus", "ultra_fast_sigmoid", "ultra_fast_sigmoid_inplace",
]  # fmt: skip
