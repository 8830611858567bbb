"""What `graphc.loopir.syntax` prints of the program of loops, read back.

In: the text of functions. Out: functions that are equal to the printed ones.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from graphc.errors import ParseError
from graphc.loopir.ir import (
    CONSTANTS,
    INDEX,
    ZERO,
    Apply,
    Break,
    Buffer,
    Check,
    Const,
    Expr,
    Function,
    If,
    Invoke,
    Launch,
    Let,
    Load,
    Loop,
    Note,
    Pointer,
    Set,
    Stmt,
    Store,
    Target,
    Var,
)
from graphc.loopir.syntax import Declared, expected_dtype, literal_dtype, read_operator

_HEAD = re.compile(r"def (\w+)\((.*)\):")
_PARAMS = re.compile(r", (?=\w+: )")
_PARAM = re.compile(r"(\w+): (\w+)(\*?)( temporary)?(?: row (.+?))?(?: (target|table) (.+) pays (.+))?")
_NAMED = re.compile(r"(let )?(\w+)(?:: (\w+))? = (.*)")


Numbered = tuple[int, str]
"""A line and its number."""


def parse_functions(text: str) -> tuple[Function, ...]:
    """The functions of a text. Raises ParseError, naming the line."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    functions = []
    while lines:
        number, line = lines.pop(0)
        head = _HEAD.fullmatch(line.strip())
        if head is None:
            raise ParseError(f"line {number}: {line.strip()!r} is no head of a function")
        params = tuple(map(_parse_param, _PARAMS.split(head[2]))) if head[2] else ()
        margin = _margin(line)
        own = []
        while lines and _margin(lines[0][1]) > margin:
            own.append(lines.pop(0))
        doc = ""
        if own and own[0][1].strip()[0] in "'\"":
            doc = ast.literal_eval(own.pop(0)[1].strip())
        functions.append(Function(head[1], params, _parse_body(own, Declared(params)), doc))
    return tuple(functions)


def _parse_param(text: str) -> Var | Buffer:
    found = _PARAM.fullmatch(text)
    if found is None:
        raise ParseError(f"{text!r} is no parameter")
    name, dtype, star, temporary, row, kind, length, pays = found.groups()
    if not star:
        return Var(name, dtype)
    names = Declared(())
    target = Target(_parse(length, names), _parse(pays, names), kind == "table") if kind else None
    return Buffer(name, dtype, bool(temporary), _parse(row, names) if row else None, target)


def parse_function(text: str) -> Function:
    (function,) = parse_functions(text)
    return function


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parse_body(lines: Sequence[tuple[int, str]], names: Declared) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    rest = list(lines)
    while rest:
        number, line = rest.pop(0)
        inner = _inside(line, rest)
        branches = rest and line.lstrip().startswith("if ") and rest[0][1].rstrip() == f"{' ' * _margin(line)}else:"
        orelse = _inside(rest.pop(0)[1], rest) if branches else []
        try:
            result.append(_parse_line(line.strip(), inner, orelse, names))
        except ParseError:
            raise
        except (SyntaxError, ValueError, IndexError, KeyError) as error:
            raise ParseError(f"line {number}: {line.strip()!r} cannot be read: {error}") from error
    return tuple(result)


def _inside(line: str, rest: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines that follow one further in, which are taken from the rest."""
    inner = []
    while rest and _margin(rest[0][1]) > _margin(line):
        inner.append(rest.pop(0))
    return inner


def _parse_line(
    line: str, inner: Sequence[tuple[int, str]], orelse: Sequence[tuple[int, str]], names: Declared
) -> Stmt:
    word, _, rest = line.partition(" ")
    if inner and word not in ("for", "if"):
        raise ValueError("it has no body")
    if named := _NAMED.fullmatch(line):
        is_let, name, value = bool(named[1]), named[2], _parse(named[4], names)
        dtype = names.scalars[name] = named[3] or names.expected(name, value, is_let)
        return (Let if is_let else Set)(Var(name, dtype), value)
    match word:
        case "for":
            return _parse_loop(rest, inner, names)
        case "if":
            condition = _parse(rest.removesuffix(":"), names)
            return If(condition, _parse_body(inner, names), _parse_body(orelse, names))
        case "break" if not rest:
            return Break()
        case "check":
            code, _, holds = rest.partition(": ")
            return Check(_parse(holds, names), int(code))
        case "call" | "launch":
            return _parse_call(word, rest, names)
        case "note":
            said = ast.literal_eval(f"({rest},)")
            return Note(*said)
    match ast.parse(line).body:
        case [ast.Assign([ast.Subscript(ast.Name(buffer), index)], stored)]:
            return Store(names.buffer(buffer), _read(index, names), _read(stored, names))
    raise ValueError("it is no statement")


def _parse_loop(rest: str, inner: Sequence[tuple[int, str]], names: Declared) -> Loop:
    head, _, bounds = rest.removesuffix(":").partition(" in ")
    name, _, kind = head.partition(": ")
    conflicts: tuple[Buffer, ...] | None = None
    safepoint: Expr | None = None
    disjoint: tuple[Buffer, ...] = ()
    match ast.parse(bounds, mode="eval").body:
        case ast.Call(ast.Name("range" | "independent" | "abreast" as kind_of), [*begin, last], words) if (
            len(begin) < 2
        ):
            conflicts = None if kind_of == "range" else ()
        case _:
            raise ValueError("it goes over no range")
    for word in words:
        match word:
            case ast.keyword("safepoint", after):
                safepoint = _read(after, names)
            case ast.keyword("but", ast.List(met)) if conflicts is not None:
                conflicts = tuple(names.buffer(each.id) for each in met if isinstance(each, ast.Name))
            case ast.keyword("disjoint", ast.List(own)) if conflicts is None:
                disjoint = tuple(names.buffer(each.id) for each in own if isinstance(each, ast.Name))
            case _:
                raise ValueError("it goes over no range")
    first = _read(begin[0], names) if begin else ZERO
    size = _read(last, names)
    var = Var(name, kind or INDEX)
    names.scalars[name] = var.dtype
    body = _parse_body(inner, names)
    return Loop(var, size, body, first, conflicts, safepoint, disjoint, kind_of == "abreast")


def _parse_call(word: str, text: str, names: Declared) -> Stmt:
    code, colon, call = text.partition(": ")
    match ast.parse(call if colon else text, mode="eval").body:
        case ast.Call(ast.Name(function), operands, []):
            args = tuple(_read(operand, names) for operand in operands)
            if word == "launch":
                return Launch(function, args[0], args[1], args[2:])
            return Invoke(function, args, int(code) if colon else 0)
    raise ValueError("it calls nothing")


def _parse(text: str, names: Declared) -> Expr:
    return _read(ast.parse(text, mode="eval").body, names)


def _read(node: ast.expr, names: Declared) -> Expr:
    match node:
        case ast.BinOp(inner, ast.MatMult(), ast.Name(dtype)):
            return _read_as(inner, dtype, names)
    return _read_as(node, None, names)


def _read_as(node: ast.expr, dtype: str | None, names: Declared) -> Expr:
    """The expression of a node, of a dtype that is written, or the one to be expected."""
    text = _literal_text(node)
    if text is not None:
        return Const(text, dtype or literal_dtype(text))
    match node:
        case ast.Name(name):
            return Var(name, dtype or names.scalar(name))
        case ast.Subscript(ast.Name(buffer), ast.Slice(lower)) if lower is not None:
            return Pointer(names.buffer(buffer), _read(lower, names))
        case ast.Subscript(ast.Name(buffer), index):
            return Load(names.buffer(buffer), _read(index, names))
    op, operands = read_operator(node)
    args = tuple(_read(operand, names) for operand in operands)
    return Apply(op, args, dtype or expected_dtype(op, args))


def _literal_text(node: ast.expr) -> str | None:
    """The text of a literal; None of anything else."""
    match node:
        case ast.Constant(bytes() as value):
            return value.decode()
        case ast.Constant(bool() | int() | float()):
            return ast.unparse(node)
        case ast.Name(name) if name in CONSTANTS or name in ("True", "False"):
            return name
        case ast.UnaryOp(ast.USub(), ast.Name("inf" | "nan") | ast.Constant(int() | float()) as operand):
            return f"-{_literal_text(operand)}"
    return None
