"""Theano's place for `ifelse`: `from theano.ifelse import ifelse`, where graphc is imported as theano."""

from graphc.control.branch import ifelse

__all__ = ["ifelse"]
