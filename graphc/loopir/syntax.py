"""Expressions in Python's syntax: operators as Python writes them, the templates of scalar ops, source.

In: an operator and its operands as nodes of Python's syntax, such a node, or the template of an op (ir/node.py):
source with holes `_0`, `_1`, …; an expression of the loop IR. Out: a node; an operator with its operands; an expression
over what fills the holes; the source of expressions and functions, which numba compiles and CPython runs; the printed
form of functions. A template is parsed once, and nothing looks at its text afterwards.

    filled("exp(_0) * _1", (x, y), "float64")    Apply(MUL, (Apply(EXP, (x,)), y))
    text_of(Apply(MUL, (x, y), "float64"))       "x * y"
"""

from __future__ import annotations

import ast
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial, reduce
from typing import Any, TypeAlias

from graphc.arrays.dtypes import is_float
from graphc.loopir import ir, operators, visit
from graphc.startup.record import record


def _symbol(source: str) -> ast.AST:
    """The operator of an expression, as Python's parser writes it."""
    node: Any = ast.parse(source, mode="eval").body
    symbol: ast.AST = node.ops[0] if isinstance(node, ast.Compare) else node.op
    return symbol


_NODES = {op: _symbol(f"a {op.name} b") for op in operators.INFIX.values()}
_NODES |= {op: _symbol(f"{op.name}a") for op in operators.PREFIX.values()}
_SYMBOLS = {type(node): op for op, node in _NODES.items()}


def node_of(op: operators.Operator, args: Sequence[ast.expr]) -> ast.expr:
    """An operator between, before or around its operands."""
    match _NODES.get(op):
        case ast.operator() as symbol:
            return ast.BinOp(args[0], symbol, args[1])
        case ast.cmpop() as symbol:
            return ast.Compare(args[0], [symbol], [args[1]])
        case ast.unaryop() as symbol:
            return ast.UnaryOp(symbol, args[0])
    return ast.Call(ast.Name(op.name), list(args), [])


def read_operator(node: ast.expr) -> tuple[operators.Operator, list[ast.expr]]:
    """The operator of a node, and the nodes of its operands. Raises ValueError."""
    match node:
        case ast.UnaryOp(symbol, operand) if type(symbol) in _SYMBOLS:
            return _SYMBOLS[type(symbol)], [operand]
        case ast.BinOp(left, symbol, right) | ast.Compare(left, [symbol], [right]) if type(symbol) in _SYMBOLS:
            return _SYMBOLS[type(symbol)], [left, right]
        case ast.Call(ast.Name(name), operands, []) if name in operators.CALLS:
            return operators.CALLS[name], operands
    raise ValueError(f"{ast.unparse(node)!r} is not of the language")


# Templates ------------------------------------------------------------------------------------------------------------


@record()
class Part:
    """An operator of a template over parts of it: numbers of holes, literals, and other such."""

    op: operators.Operator
    parts: tuple[Tree, ...]


Tree: TypeAlias = int | ir.Const | Part


@lru_cache(maxsize=1024)
def parse(template: str) -> Tree:
    """A template as a tree. Raises ValueError."""
    return _tree(ast.parse(template, mode="eval").body)


def _tree(node: ast.expr) -> Tree:
    match node:
        case ast.Name(name) if name[0] == "_" and name[1:].isdigit():
            return int(name[1:])
        case ast.Call(ast.Name(dtype), [ast.Constant(int() | float() as value)], []) if dtype in operators.CASTS:
            return ir.Const(repr(float(value) if is_float(dtype) else value), dtype)
        case ast.Constant():
            raise ValueError(f"a literal of a template says its dtype: float64({ast.unparse(node)})")
    op, operands = read_operator(node)
    return Part(op, tuple(map(_tree, operands)))


def operator_of(template: str) -> operators.Operator | None:
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


def filled(template: str, args: Sequence[ir.Expr], dtype: str) -> ir.Expr:
    """A template over the expressions that fill its holes; `dtype` is that of its value."""
    tree = parse(template)
    if not isinstance(tree, Part):
        return _fill(tree, args)
    return ir.Apply(tree.op, tuple([_fill(part, args) for part in tree.parts]), dtype)


def _fill(tree: Tree, args: Sequence[ir.Expr]) -> ir.Expr:
    if isinstance(tree, int):
        return args[tree]
    if isinstance(tree, ir.Const):
        return tree
    operands = tuple([_fill(part, args) for part in tree.parts])
    return ir.Apply(tree.op, operands, operators.result_dtype(tree.op, [operand.dtype for operand in operands]))


# Source ---------------------------------------------------------------------------------------------------------------


INDENT = "    "


def to_ast(expr: ir.Expr) -> ast.expr:
    match expr:
        case ir.Var(name, _):
            return ast.Name(name)
        case ir.Const():
            return _literal(const_text(expr))
        case ir.Load(buffer, index):
            return ast.Subscript(ast.Name(buffer.name), to_ast(index))
        case ir.Pointer(buffer, index):
            begin = ast.Name(buffer.name)
            return begin if index == ir.ZERO else ast.Call(ast.Name("advance"), [begin, to_ast(index)], [])
        case ir.Apply(op, args, _):
            if expr.dtype == ir.INDEX and op in (operators.ADD, operators.MUL):
                return _chain(op, args)
            return node_of(op, [to_ast(arg) for arg in args])
        case ir.Opaque():
            raise AssertionError("what is opaque has no source")


def _chain(op: operators.Operator, args: tuple[ir.Expr, ...]) -> ast.expr:
    """A sum or product of integers from left to right, its literals as one."""
    pending, parts, literals = [*reversed(args)], [], []
    while pending:
        arg = pending.pop()
        value = ir.int_value(arg)
        if value is not None:
            literals.append(value)
        elif isinstance(arg, ir.Apply) and arg.op is op:
            pending.extend(reversed(arg.args))
        else:
            parts.append(to_ast(arg))
    if op is operators.MUL and len(literals) < 2:
        return _join(op, *map(to_ast, args))
    whole = sum(literals) if op is operators.ADD else math.prod(literals)
    if len(literals) == 1 and ir.int_value(args[0]) == whole >= 0:
        parts.insert(0, ast.Constant(whole))
    elif op is operators.ADD and whole < 0 and parts:
        return ast.BinOp(reduce(partial(_join, op), parts), ast.Sub(), ast.Constant(-whole))
    elif literals and (whole != (0 if op is operators.ADD else 1) or not parts):
        parts.append(ast.Constant(whole))
    return reduce(partial(_join, op), parts)


def _join(op: operators.Operator, left: ast.expr, right: ast.expr) -> ast.expr:
    return node_of(op, [left, right])


@lru_cache(maxsize=512)
def _literal(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def const_text(const: ir.Const) -> str:
    """A literal as source: of the dtype, or converted to it where Python has no such literal."""
    if const.dtype in ("bool", "int64", "float64"):
        return const.text
    return f"{const.dtype}({const.text})"


def text_of(expr: ir.Expr) -> str:
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


# --- text -------------------------------------------------------------------------------------------------------------
# The printed form of loops, for whoever debugs a pass; `tests/support/loop_text.py` reads it back.
#
# In: functions. Out: their text.
#
#     def scaled(x: float64*, out: float64*, n: int64):
#         'what the function is for'
#         note 'a remark', 'its subject'
#         let twice = float64(n) * 2.0
#         total = 0.0
#         for i in range(n):
#             out[i] = x[i] * twice
#             total = accumulate(total, x[i])
#         check 1: isfinite(total)
#         call other(out[n:], total)
#         call 2: another(total)
#         launch nest_other(n, chunk(n, 4), x[0:])
#         for j in independent(n):
#             out[j] = out[j] * 2.0
#         for k in range(n):
#             if out[k] < total:
#                 out[k] = total
#             else:
#                 break
#
# A buffer that something is known of says so: `t: float64* temporary row m`, `sums: float64* target m pays 8`, or
# `table`. `let` names a value, a plain assignment is a `Set`. `out[n:]` is a pointer. Where the function that is called
# says that it failed, `call 2` leaves with 2. A loop is over `independent(n)` where iterations are, or are but for some
# buffers: `independent(n, but=[out])`; over `range(n, safepoint=64)` where there is a safepoint after each 64;
# over `range(n, disjoint=[out])` where each writes a part of its own of a buffer; over `abreast(n)` where several are
# carried out at a time.
# Expressions are Python's, of the operators of the table; A dtype is
# written, `0.0 @ float32`, where it is not the one that declarations and `operators.result_dtype` tell: 0 is an int64,
# 0.0 a float64, and an undeclared name an int64.


FLOAT = "float64"


class Declared:
    """The dtypes of the names and buffers that are declared so far."""

    def __init__(self, params: Sequence[ir.Var | ir.Buffer]) -> None:
        self.buffers = {param.name: param for param in params if isinstance(param, ir.Buffer)}
        self.scalars = {param.name: param.dtype for param in params if isinstance(param, ir.Var)}

    def scalar(self, name: str) -> str:
        return self.scalars.get(name, ir.INDEX)

    def buffer(self, name: str) -> ir.Buffer:
        return self.buffers.get(name) or ir.Buffer(name, FLOAT)

    def expected(self, name: str, value: ir.Expr, is_let: bool) -> str:
        """The dtype of a name that is given a value: it may be known from before, unless it is a new one."""
        return value.dtype if is_let else self.scalars.get(name, value.dtype)


# Printing -------------------------------------------------------------------------------------------------------------


def print_functions(functions: Iterable[ir.Function]) -> str:
    return "\n\n".join(map(print_function, functions))


def print_function(function: ir.Function) -> str:
    names = Declared(function.params)
    params = ", ".join(_print_param(param, names) for param in function.params)
    head = [f"def {function.name}({params}):"]
    if function.doc:
        head.append(f"{INDENT}{function.doc!r}")
    return "\n".join([*head, *body_lines(function.body, INDENT, lambda stmt: [_print_line(stmt, names)]), ""])


def _print_param(param: ir.Var | ir.Buffer, names: Declared) -> str:
    words = [f"{param.name}: {param.kind}"]
    if isinstance(param, ir.Buffer):
        words += ["temporary"] if param.is_temporary else []
        words += [f"row {_text(names, param.row)}"] if param.row is not None else []
        if param.target is not None:
            role = "table" if param.target.is_table else "target"
            words += [f"{role} {_text(names, param.target.length)} pays {_text(names, param.target.pays)}"]
    return " ".join(words)


def _text(names: Declared, *exprs: ir.Expr) -> str:
    return ", ".join(ast.unparse(_to_ast(expr, names)) for expr in exprs)


def print_statement(stmt: ir.Stmt) -> str:
    """The first line of a statement, for messages."""
    return _print_line(stmt, Declared(()))


def body_lines(
    body: Iterable[ir.Stmt], pad: str, lines_of: Callable[[ir.Stmt], Iterable[str]], empty: str = ""
) -> Iterator[str]:
    """The lines of statements, those inside them indented. `lines_of` writes a statement without those inside it;
    `empty` follows where notes alone are inside one."""
    for stmt in body:
        yield from (pad + line for line in lines_of(stmt))
        for number, inner in enumerate(visit.bodies(stmt)):
            if number and inner:
                yield f"{pad}else:"
            yield from body_lines(inner, pad + INDENT, lines_of, empty)
            if empty and (inner or not number) and all(isinstance(each, ir.Note) for each in inner):
                yield f"{pad}{INDENT}{empty}"


def _print_line(stmt: ir.Stmt, names: Declared) -> str:
    text = partial(_text, names)
    match stmt:
        case ir.Let(var, value) | ir.Set(var, value):
            is_let = isinstance(stmt, ir.Let)
            dtype = "" if var.dtype == names.expected(var.name, value, is_let) else f": {var.dtype}"
            line = f"{'let ' if is_let else ''}{var.name}{dtype} = {text(value)}"
            names.scalars[var.name] = var.dtype
            return line
        case ir.Store(buffer, index, value):
            return f"{buffer.name}[{text(index)}] = {text(value)}"
        case ir.Loop(var, size, _, begin, conflicts, safepoint, disjoint, abreast):
            dtype = "" if var.dtype == ir.INDEX else f": {var.dtype}"
            bounds = text(size) if begin == ir.ZERO else text(begin, size)
            but = "".join(
                f", {word}=[{', '.join(buffer.name for buffer in buffers)}]"
                for word, buffers in (("but", conflicts), ("disjoint", disjoint))
                if buffers
            )
            after = f", safepoint={text(safepoint)}" if safepoint is not None else ""
            goes = "abreast" if abreast else "range" if conflicts is None else "independent"
            names.scalars[var.name] = var.dtype
            return f"for {var.name}{dtype} in {goes}({bounds}{but}{after}):"
        case ir.If(condition):
            return f"if {text(condition)}:"
        case ir.Break():
            return "break"
        case ir.Check(condition, code):
            return f"check {code}: {text(condition)}"
        case ir.Invoke(function, args, code):
            return f"call {f'{code}: ' if code else ''}{function}({text(*args)})"
        case ir.Launch(function, count, size, args):
            return f"launch {function}({text(count, size, *args)})"
        case ir.Note(note, subject):
            return f"note {note!r}" + (f", {subject!r}" if subject else "")


def _to_ast(expr: ir.Expr, names: Declared) -> ast.expr:
    node, expected = _unmarked(expr, names)
    return node if expr.dtype == expected else _of_dtype(node, expr.dtype)


def _of_dtype(node: ast.expr, dtype: str) -> ast.expr:
    return ast.BinOp(node, ast.MatMult(), ast.Name(dtype))


def _unmarked(expr: ir.Expr, names: Declared) -> tuple[ast.expr, str]:
    """An expression without its dtype, and the dtype that a reader would take it to have."""
    match expr:
        case ir.Var(name, _):
            return ast.Name(name), names.scalar(name)
        case ir.Const(text, _):
            return _printed_literal(text), literal_dtype(text)
        case ir.Load(buffer, index):
            return ast.Subscript(ast.Name(buffer.name), _to_ast(index, names)), buffer.dtype
        case ir.Pointer(buffer, index):
            return ast.Subscript(ast.Name(buffer.name), ast.Slice(_to_ast(index, names))), buffer.dtype
        case ir.Apply(op, args, _):
            nodes = [_to_ast(arg, names) for arg in args]
            if op is operators.NEG and isinstance(args[0], ir.Const):  # -2.0 is a literal
                nodes = [_of_dtype(_printed_literal(args[0].text), args[0].dtype)]
            return node_of(op, nodes), expected_dtype(op, args)
        case ir.Opaque(of, args, dtype):
            return ast.Call(ast.Constant(str(of)), [_to_ast(arg, names) for arg in args], []), dtype


def expected_dtype(op: operators.Operator, args: Sequence[ir.Expr]) -> str:
    try:
        return operators.result_dtype(op, [arg.dtype for arg in args])
    except operators.OperandError:
        return ir.INDEX


def _printed_literal(text: str) -> ast.expr:
    """A literal; as bytes where Python would write it otherwise."""
    bare = text.removeprefix("-")
    if bare in ir.CONSTANTS or (bare in ("True", "False") and bare == text):
        node: ast.expr = ast.Name(bare)
    else:
        try:
            value = ast.literal_eval(bare)
        except (ValueError, SyntaxError):
            value = None
        if type(value) not in (int, float) or ast.unparse(ast.Constant(value)) != bare:
            return ast.Constant(text.encode())
        node = ast.Constant(value)
    return node if bare == text else ast.UnaryOp(ast.USub(), node)


def literal_dtype(text: str) -> str:
    if text in ("True", "False"):
        return "bool"
    return ir.INDEX if text.removeprefix("-").isdigit() else FLOAT


# --- generated source -------------------------------------------------------------------------------------------------
#
#     Function("double", (x, n), (Loop(i, n, (Store(x, i, x[i] * 2.0),), conflicts=()),), "Twice as much.")
#
# becomes
#
#     def double(x, n):
#         "Twice as much."
#         for i in independent(n):
#             x[i] = x[i] * 2.0
#         return 0


WIDTH = 110
"""The columns of a line, where an expression has a place to break it."""


def emit_source(functions: Iterable[ir.Function]) -> str:
    """The source of a program."""
    return "\n".join(map(emit_function, functions))


def emit_function(function: ir.Function) -> str:
    """The source of a function, which returns 0, or the number of the check that failed."""
    params = ", ".join(param.name for param in function.params)
    lines = [f"def {function.name}({params}):"]
    if function.doc:
        lines.append(f'{INDENT}"""{one_line(function.doc)}"""')
    said = {*function.doc.splitlines(), ""}
    lines += body_lines(function.body, INDENT, partial(emit_lines, said=said), empty="pass")
    lines.append(f"{INDENT}return 0")
    return "".join(f"{part}\n" for line in lines for part in wrapped(line))


def emit_lines(stmt: ir.Stmt, said: set[str]) -> list[str]:
    """The source of a statement without those inside it; lines of a note that are `said` already are not repeated."""
    if not isinstance(stmt, ir.Note):
        return [emit_statement(stmt)]
    new = [line for line in stmt.text.splitlines() if line not in said]
    said.update(new)
    return [f"# {one_line(line)}" for line in new]


def emit_statement(stmt: ir.Stmt) -> str:
    match stmt:
        case ir.Break():
            return "break"
        case ir.Loop(var, size, _, begin):
            bounds = text_of(size) if begin == ir.ZERO else f"{text_of(begin)}, {text_of(size)}"
            iterations = "abreast" if stmt.abreast else "independent" if stmt.is_independent else "range"
            return f"for {var.name} in {iterations}({bounds}):"
        case ir.If(condition):
            return f"if {text_of(condition)}:"
        case ir.Let(var, value) | ir.Set(var, value):
            return f"{var.name} = {text_of(value)}"
        case ir.Store(buffer, index, value):
            return f"{buffer.name}[{text_of(index)}] = {text_of(value)}"
        case ir.Check(ir.Apply(operators.EQ, (left, right)), code) if left.dtype == ir.INDEX:
            return f"if {text_of(ir.Apply(operators.NE, (left, right), 'bool'))}: return {code}"
        case ir.Check(condition, code):
            return f"if not ({text_of(condition)}): return {code}"
        case ir.Invoke(function, args, code):
            call = f"{function}({', '.join(map(text_of, args))})"
            return f"if {call} != 0: return {code}" if code else call
        case ir.Launch(function, count, size, args):
            return f"parallel({', '.join([function, *map(text_of, (count, size, *args))])})"
    raise AssertionError(f"{stmt} has no source")


def one_line(text: str) -> str:
    """A user's words as part of a comment or a docstring."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def wrapped(line: str) -> Iterator[str]:
    """A line in pieces of at most WIDTH characters: broken after commas within brackets, the outermost there are."""
    pad = line[: len(line) - len(line.lstrip())] + 2 * INDENT
    depth = 0
    while len(line) > WIDTH and line.lstrip()[0] not in '#"':
        breaks: dict[int, int] = {}
        within = depth
        for place, letter in enumerate(line[:WIDTH]):
            within += (letter in "([{") - (letter in ")]}")
            if letter == "," and within and line[place + 1] == " " and place > len(pad):
                breaks[within] = place + 1
        if not breaks:
            break
        best = breaks[min(breaks)]
        depth += sum((letter in "([{") - (letter in ")]}") for letter in line[:best])
        yield line[:best]
        line = pad + line[best + 1 :]
    yield line
