"""Expressions in Python's syntax: operators as Python writes them, the templates of scalar ops, source.

In: an operator and its operands as nodes of Python's syntax, such a node, or the template of an op (ir/node.py):
source with holes `_0`, `_1`, …; an expression of the loop IR. Out: a node; an operator with its operands; an expression
over what fills the holes; the text of an expression, which numba compiles and CPython runs. A template is parsed once,
and nothing looks at its text afterwards.

    filled("exp(_0) * _1", (x, y), "float64")    Apply(MUL, (Apply(EXP, (x,)), y))
    text_of(Apply(MUL, (x, y), "float64"))       "x * y"
"""

from __future__ import annotations

import ast
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial, reduce
from typing import Any, TypeAlias

from graphc.arrays.dtypes import is_float
from graphc.loopir import operators
from graphc.loopir.ir import INDEX, ZERO, Apply, Const, Expr, Load, Opaque, Pointer, Var, int_value
from graphc.loopir.operators import CALLS, CASTS, INFIX, PREFIX, Operator, result_dtype
from graphc.startup.record import record


def _symbol(source: str) -> ast.AST:
    """The operator of an expression, as Python's parser writes it."""
    node: Any = ast.parse(source, mode="eval").body
    symbol: ast.AST = node.ops[0] if isinstance(node, ast.Compare) else node.op
    return symbol


_NODES = {op: _symbol(f"a {op.name} b") for op in INFIX.values()}
_NODES |= {op: _symbol(f"{op.name}a") for op in PREFIX.values()}
_SYMBOLS = {type(node): op for op, node in _NODES.items()}


def node_of(op: Operator, args: Sequence[ast.expr]) -> ast.expr:
    """An operator between, before or around its operands."""
    match _NODES.get(op):
        case ast.operator() as symbol:
            return ast.BinOp(args[0], symbol, args[1])
        case ast.cmpop() as symbol:
            return ast.Compare(args[0], [symbol], [args[1]])
        case ast.unaryop() as symbol:
            return ast.UnaryOp(symbol, args[0])
    return ast.Call(ast.Name(op.name), list(args), [])


def read_operator(node: ast.expr) -> tuple[Operator, list[ast.expr]]:
    """The operator of a node, and the nodes of its operands. Raises ValueError."""
    match node:
        case ast.UnaryOp(symbol, operand) if type(symbol) in _SYMBOLS:
            return _SYMBOLS[type(symbol)], [operand]
        case ast.BinOp(left, symbol, right) | ast.Compare(left, [symbol], [right]) if type(symbol) in _SYMBOLS:
            return _SYMBOLS[type(symbol)], [left, right]
        case ast.Call(ast.Name(name), operands, []) if name in CALLS:
            return CALLS[name], operands
    raise ValueError(f"{ast.unparse(node)!r} is not of the language")


# Templates ------------------------------------------------------------------------------------------------------------


@record()
class Part:
    """An operator of a template over parts of it: numbers of holes, literals, and other such."""

    op: Operator
    parts: tuple[Tree, ...]


Tree: TypeAlias = int | Const | Part


@lru_cache(maxsize=1024)
def parse(template: str) -> Tree:
    """A template as a tree. Raises ValueError."""
    return _tree(ast.parse(template, mode="eval").body)


def _tree(node: ast.expr) -> Tree:
    match node:
        case ast.Name(name) if name[0] == "_" and name[1:].isdigit():
            return int(name[1:])
        case ast.Call(ast.Name(dtype), [ast.Constant(int() | float() as value)], []) if dtype in CASTS:
            return Const(repr(float(value) if is_float(dtype) else value), dtype)
        case ast.Constant():
            raise ValueError(f"a literal of a template says its dtype: float64({ast.unparse(node)})")
    op, operands = read_operator(node)
    return Part(op, tuple(map(_tree, operands)))


def operator_of(template: str) -> Operator | None:
    """The operator that a template says no more of than that it is applied to the holes in order."""
    tree = parse(template)
    return tree.op if isinstance(tree, Part) and tree.parts == tuple(range(tree.op.arity)) else None


def holes(template: str) -> set[int]:
    """The holes that a template has."""
    return _holes(parse(template))


def _holes(tree: Tree) -> set[int]:
    if isinstance(tree, Part):
        return set().union(*map(_holes, tree.parts))
    return {tree} if isinstance(tree, int) else set()


def filled(template: str, args: Sequence[Expr], dtype: str) -> Expr:
    """A template over the expressions that fill its holes; `dtype` is that of its value."""
    tree = parse(template)
    if not isinstance(tree, Part):
        return _fill(tree, args)
    return Apply(tree.op, tuple([_fill(part, args) for part in tree.parts]), dtype)


def _fill(tree: Tree, args: Sequence[Expr]) -> Expr:
    if isinstance(tree, int):
        return args[tree]
    if isinstance(tree, Const):
        return tree
    operands = tuple([_fill(part, args) for part in tree.parts])
    return Apply(tree.op, operands, result_dtype(tree.op, [operand.dtype for operand in operands]))


# Source ---------------------------------------------------------------------------------------------------------------


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


# --- names ------------------------------------------------------------------------------------------------------------


NOT_IDENTIFIER = re.compile(r"\W+")
LONGEST_NAME = 60


class Names:
    """Identifiers that are free: what is asked for, or that with a number."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.counts: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        stem = identifier(wanted)
        name, count = stem, self.counts.get(stem, 1)
        while name in self.taken:
            count += 1
            name = f"{stem}_{count}" if stem[-1].isdigit() else f"{stem}{count}"
        self.counts[stem] = count
        self.taken.add(name)
        return name

    def copy(self) -> Names:
        """The same names, of which more may be taken without a trace here."""
        other = Names(self.taken)
        other.counts.update(self.counts)
        return other


def identifier(wanted: str) -> str:
    """A Python identifier that reads like `wanted`, in the form in which Python compares identifiers (NFKC)."""
    stem = NOT_IDENTIFIER.sub("_", unicodedata.normalize("NFKC", wanted))[:LONGEST_NAME].strip("_")
    if not stem or not f"v{stem}".isidentifier():
        return "value"
    return stem if stem.isidentifier() else f"v{stem}"
