"""From expressions to Python source.

In: an expression. Out: its syntax tree and text, which numba compiles and CPython can run.
"""

from __future__ import annotations

import ast
import math
from functools import lru_cache, partial, reduce

from graphc.loopir import operators
from graphc.loopir.ir import INDEX, ZERO, Apply, Const, Expr, Load, Opaque, Pointer, Var, int_value
from graphc.loopir.operators import Operator
from graphc.loopir.syntax import node_of

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
            if expr.dtype == INDEX and op in (operators.ADD, operators.MUL):
                return _chain(op, args)
            return node_of(op, [to_ast(arg) for arg in args])
        case Opaque():
            raise AssertionError("what is opaque has no source")


def _chain(op: Operator, args: tuple[Expr, ...]) -> ast.expr:
    """A sum or product of integers from left to right, its literals as one."""
    pending, parts, literals = [*reversed(args)], [], []
    while pending:
        arg = pending.pop()
        value = int_value(arg)
        if value is not None:
            literals.append(value)
        elif isinstance(arg, Apply) and arg.op is op:
            pending.extend(reversed(arg.args))
        else:
            parts.append(to_ast(arg))
    if op is operators.MUL and len(literals) < 2:
        return _join(op, *map(to_ast, args))
    whole = sum(literals) if op is operators.ADD else math.prod(literals)
    if len(literals) == 1 and int_value(args[0]) == whole >= 0:
        parts.insert(0, ast.Constant(whole))
    elif op is operators.ADD and whole < 0 and parts:
        return ast.BinOp(reduce(partial(_join, op), parts), ast.Sub(), ast.Constant(-whole))
    elif literals and (whole != (0 if op is operators.ADD else 1) or not parts):
        parts.append(ast.Constant(whole))
    return reduce(partial(_join, op), parts)


def _join(op: Operator, left: ast.expr, right: ast.expr) -> ast.expr:
    return node_of(op, [left, right])


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
