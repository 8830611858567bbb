"""From statements to Python source.

In: a function: its name, parameters and statements. Out: its text, which numba compiles and CPython can run.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from graphc.loops import operators
from graphc.loops.build import written_out
from graphc.loops.ir import (
    ZERO,
    Apply,
    Const,
    Expr,
    Load,
    Opaque,
    Pointer,
    Var,
)
from graphc.loops.syntax import node_of

INDENT = "    "


def to_ast(expr: Expr) -> ast.expr:
    match expr:
        case Var(name, _):
            return ast.Name(name)
        case Const():
            return _literal(const_text(expr))
        case Load(buffer, index):
            return ast.Subscript(ast.Name(buffer.name), to_ast(index))
        case Pointer(buffer, index):
            begin = ast.Name(buffer.name)
            return begin if index == ZERO else ast.Call(ast.Name("advance"), [begin, to_ast(index)], [])
        case Apply(op, args, _):
            if op is operators.BLOCK_LENGTH:
                return to_ast(written_out(expr))
            return node_of(op, [to_ast(arg) for arg in args])
        case Opaque():
            raise AssertionError("what is opaque has no source")


@lru_cache(maxsize=512)
def _literal(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def const_text(const: Const) -> str:
    """A literal as source: of the dtype, or converted to it where Python has no such literal."""
    if const.dtype in ("bool", "int64", "float64"):
        return const.text
    return f"{const.dtype}({const.text})"


def text_of(expr: Expr) -> str:
    return ast.unparse(to_ast(expr))
