"""Theano's inputs and outputs: `In`, `Out`, and `Param`, the old name for `In`."""

from __future__ import annotations

from typing import Any
from warnings import warn

from graphc.functions.convention import In, Out
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node
from graphc.shared import SharedVariable

SymbolicInput = In
SymbolicOutput = Out


def Param(  # noqa: N802 - Theano's name
    variable: Node,
    default: Any = None,
    name: str | None = None,
    mutable: bool = False,
    strict: bool = False,
    allow_downcast: bool | None = None,
    implicit: bool | None = None,
    borrow: bool | None = None,
) -> In:
    """`In` under its old name, with `default` for its value; it says once that it is old."""
    warn("Param is Theano's old name: In(variable, value=...) says the same", DeprecationWarning, stacklevel=2)
    return In(
        variable, name, default, None, mutable, strict, allow_downcast=allow_downcast, implicit=implicit, borrow=borrow
    )


__all__ = ["In", "Out", "Param", "SharedVariable", "SymbolicInput", "SymbolicOutput"]

explain_all(globals())
