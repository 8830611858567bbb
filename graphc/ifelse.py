"""Theano's place for `ifelse`: `from theano.ifelse import ifelse`, where graphc is imported as theano."""

from importlib import import_module
from typing import Any

from graphc.control.branch import ifelse
from graphc.ir.call_errors import explain_all

__all__ = ["ifelse"]


def __getattr__(name: str) -> Any:
    """Theano's class of the op, which `isinstance(node.op, IfElse)` asks for."""
    if name == "IfElse":
        return import_module("graphc.gof.opclasses").IfElse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


explain_all(globals())
vars(ifelse).update(ifelse=ifelse)  # in Theano theano.ifelse is this module: theano.ifelse.ifelse(...)
