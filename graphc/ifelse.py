"""Theano's place for `ifelse`: `from theano.ifelse import ifelse`, where graphc is imported as theano."""

from graphc.control.branch import ifelse
from graphc.ir.called import explain_all

__all__ = ["ifelse"]


explain_all(globals())
vars(ifelse).update(ifelse=ifelse)  # in Theano theano.ifelse is this module: theano.ifelse.ifelse(...)
