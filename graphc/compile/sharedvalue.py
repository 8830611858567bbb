"""Theano's place for shared variables: `theano.compile.sharedvalue`, where graphc is imported as theano."""

from graphc.shared import Container, SharedVariable, shared

__all__ = ["Container", "SharedVariable", "shared"]
