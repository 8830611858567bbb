"""Theano's place for `ifelse`: `from theano.ifelse import ifelse`, where graphc is imported as theano."""

from graphc.control.branch import ifelse

__all__ = ["ifelse"]

vars(ifelse).update(ifelse=ifelse)  # in Theano theano.ifelse is this module: theano.ifelse.ifelse(...)
