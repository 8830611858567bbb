"""From statements to Python source.

In: a function: its name, parameters and statements. Out: its text, which numba compiles and CPython can run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from graphc.loops.build import written_out
from graphc.loops.ir import (
    ZERO,
    Apply,
    Check,
    Const,
    Expr,
    Function,
    Invoke,
    Launch,
    Let,
    Load,
    Loop,
    Note,
    Opaque,
    Pointer,
    Set,
    Stmt,
    Store,
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
            if op.form == "idiom":
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


def emit_statements(body: Sequence[Stmt], level: int = 1) -> Iterator[str]:
    pad = INDENT * level
    for stmt in body:
        match stmt:
            case Let(var, value) | Set(var, value):
                yield f"{pad}{var.name} = {text_of(value)}"
            case Store(buffer, index, value):
                yield f"{pad}{buffer.name}[{text_of(index)}] = {text_of(value)}"
            case Loop(var, size, inner, begin):
                bounds = text_of(size) if begin == ZERO else f"{text_of(begin)}, {text_of(size)}"
                yield f"{pad}for {var.name} in {'independent' if stmt.is_independent else 'range'}({bounds}):"
                yield from emit_statements(inner, level + 1)
            case Check(condition, code):
                yield f"{pad}if not ({text_of(condition)}):"
                yield f"{pad}{INDENT}return {code}"
            case Invoke(function, args, code):
                call = f"{function}({', '.join(map(text_of, args))})"
                yield f"{pad}if not ({call} == 0):\n{pad}{INDENT}return {code}" if code else f"{pad}{call}"
            case Launch(function, count, size, args):
                yield f"{pad}parallel({', '.join([function, *map(text_of, (count, size, *args))])})"
            case Note(text, _):
                yield f"{pad}# {one_line(text)}"


def one_line(text: str) -> str:
    """A user's names as part of a comment or a docstring."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def emit_function(function: Function) -> str:
    """The source of a function that returns 0, or the number of the check that failed."""
    params = ", ".join(param.name for param in function.params)
    head = [f"def {function.name}({params}):", f'{INDENT}"""{one_line(function.doc)}"""']
    return "\n".join([*head, *emit_statements(function.body), f"{INDENT}return 0", ""])
