"""`graphc.nnet` for type checkers: the module is `graphc/tensor/nnet`."""

from graphc.tensor.nnet import *
