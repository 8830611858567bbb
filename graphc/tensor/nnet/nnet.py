"""Theano's path of the functions in graphc.tensor.nnet."""

from graphc.tensor.nnet import *  # noqa: F403 - it says in its __all__ what it offers
