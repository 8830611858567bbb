"""The printed form of the program of loops, which reads back: for tests of passes, and for whoever debugs one.

In: functions, or their text. Out: the text of functions, or functions that are equal to the printed ones.

    def scaled(x: float64*, out: float64*, n: int64):
        'what the function is for'
        note 'a remark', 'its subject'
        let twice = float64(n) * 2.0
        total = 0.0
        for i in range(n):
            out[i] = x[i] * twice
            total = accumulate(total, x[i])
        check 1: isfinite(total)
        call other(out[n:], total)
        call 2: another(total)
        launch nest_other(n, chunk(n, 4), x[0:])
        for j in independent(n):
            out[j] = out[j] * 2.0
        for k in range(n):
            if out[k] < total:
                out[k] = total
            else:
                break

A buffer that something is known of says so: `t: float64* temporary row m`, `sums: float64* target m pays 8`, or
`table`. `let` names a value, a plain assignment is a `Set`. `out[n:]` is a pointer. Where the function that is called
says that it failed, `call 2` leaves with 2. A loop is over `independent(n)` where iterations are, or are but for some
buffers: `independent(n, but=[out])`; over `range(n, asks=64)` where it asks after each 64 whether the call must end.
Expressions are Python's, of the operators of the table; idioms are calls, too: `block_length(n, i, 256)`. A dtype is
written, `0.0 @ float32`, where it is not the one that declarations and `operators.result_dtype` tell: 0 is an int64,
0.0 a float64, and an undeclared name an int64.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from graphc.errors import ParseError
from graphc.loops.ir import (
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
    Opaque,
    Pointer,
    Set,
    Stmt,
    Store,
    Target,
    Var,
)
from graphc.loops.operators import NEG, OperandError, Operator, result_dtype
from graphc.loops.syntax import node_of, read_operator

INDENT = "    "
FLOAT = "float64"
_HEAD = re.compile(r"def (\w+)\((.*)\):")
_PARAMS = re.compile(r", (?=\w+: )")
_PARAM = re.compile(r"(\w+): (\w+)(\*?)( temporary)?(?: row (.+?))?(?: (target|table) (.+) pays (.+))?")
_NAMED = re.compile(r"(let )?(\w+)(?:: (\w+))? = (.*)")


class _Names:
    """The dtypes of the names and buffers that are declared so far."""

    def __init__(self, params: Sequence[Var | Buffer]) -> None:
        self.buffers = {param.name: param for param in params if isinstance(param, Buffer)}
        self.scalars = {param.name: param.dtype for param in params if isinstance(param, Var)}

    def scalar(self, name: str) -> str:
        return self.scalars.get(name, INDEX)

    def buffer(self, name: str) -> Buffer:
        return self.buffers.get(name) or Buffer(name, FLOAT)

    def given(self, name: str, value: Expr, is_let: bool) -> str:
        """The dtype of a name that is given a value: it may be known from before, unless it is a new one."""
        return value.dtype if is_let else self.scalars.get(name, value.dtype)


# Printing -------------------------------------------------------------------------------------------------------------


def print_functions(functions: Iterable[Function]) -> str:
    return "\n\n".join(map(print_function, functions))


def print_function(function: Function) -> str:
    names = _Names(function.params)
    params = ", ".join(_print_param(param, names) for param in function.params)
    head = [f"def {function.name}({params}):"]
    if function.doc:
        head.append(f"{INDENT}{function.doc!r}")
    return "\n".join([*head, *_print_body(function.body, names, INDENT), ""])


def _print_param(param: Var | Buffer, names: _Names) -> str:
    words = [f"{param.name}: {param.kind}"]
    if isinstance(param, Buffer):
        words += ["temporary"] if param.is_temporary else []
        words += [f"row {_text(names, param.row)}"] if param.row is not None else []
        if param.target is not None:
            kind = "table" if param.target.is_table else "target"
            words += [f"{kind} {_text(names, param.target.length)} pays {_text(names, param.target.pays)}"]
    return " ".join(words)


def _text(names: _Names, *exprs: Expr) -> str:
    return ", ".join(ast.unparse(_to_ast(expr, names)) for expr in exprs)


def print_statement(stmt: Stmt) -> str:
    """The first line of a statement, for messages."""
    return next(_print_body([stmt], _Names(()), ""))


def _print_body(body: Iterable[Stmt], names: _Names, pad: str) -> Iterator[str]:
    for stmt in body:
        yield pad + _print_line(stmt, names)
        if isinstance(stmt, Loop):
            names.scalars[stmt.var.name] = stmt.var.dtype
            yield from _print_body(stmt.body, names, pad + INDENT)
        elif isinstance(stmt, If):
            yield from _print_body(stmt.then, names, pad + INDENT)
            if stmt.orelse:
                yield f"{pad}else:"
                yield from _print_body(stmt.orelse, names, pad + INDENT)


def _print_line(stmt: Stmt, names: _Names) -> str:
    text = partial(_text, names)
    match stmt:
        case Let(var, value) | Set(var, value):
            is_let = isinstance(stmt, Let)
            kind = "" if var.dtype == names.given(var.name, value, is_let) else f": {var.dtype}"
            line = f"{'let ' if is_let else ''}{var.name}{kind} = {text(value)}"
            names.scalars[var.name] = var.dtype
            return line
        case Store(buffer, index, value):
            return f"{buffer.name}[{text(index)}] = {text(value)}"
        case Loop(var, size, _, begin, conflicts, asks):
            kind = "" if var.dtype == INDEX else f": {var.dtype}"
            bounds = text(size) if begin == ZERO else text(begin, size)
            but = f", but=[{', '.join(buffer.name for buffer in conflicts)}]" if conflicts else ""
            after = f", asks={text(asks)}" if asks is not None else ""
            return f"for {var.name}{kind} in {'range' if conflicts is None else 'independent'}({bounds}{but}{after}):"
        case If(condition):
            return f"if {text(condition)}:"
        case Break():
            return "break"
        case Check(condition, code):
            return f"check {code}: {text(condition)}"
        case Invoke(function, args, code):
            return f"call {f'{code}: ' if code else ''}{function}({text(*args)})"
        case Launch(function, count, size, args):
            return f"launch {function}({text(count, size, *args)})"
        case Note(note, subject):
            return f"note {note!r}" + (f", {subject!r}" if subject else "")


def _to_ast(expr: Expr, names: _Names) -> ast.expr:
    node, expected = _unmarked(expr, names)
    return node if expr.dtype == expected else _of_dtype(node, expr.dtype)


def _of_dtype(node: ast.expr, dtype: str) -> ast.expr:
    return ast.BinOp(node, ast.MatMult(), ast.Name(dtype))


def _unmarked(expr: Expr, names: _Names) -> tuple[ast.expr, str]:
    """An expression without its dtype, and the dtype that a reader would take it to have."""
    match expr:
        case Var(name, _):
            return ast.Name(name), names.scalar(name)
        case Const(text, _):
            return _literal(text), _literal_dtype(text)
        case Load(buffer, index):
            return ast.Subscript(ast.Name(buffer.name), _to_ast(index, names)), buffer.dtype
        case Pointer(buffer, index):
            return ast.Subscript(ast.Name(buffer.name), ast.Slice(_to_ast(index, names))), buffer.dtype
        case Apply(op, args, _):
            nodes = [_to_ast(arg, names) for arg in args]
            if op is NEG and isinstance(args[0], Const):  # -2.0 is a literal
                nodes = [_of_dtype(_literal(args[0].text), args[0].dtype)]
            return node_of(op, nodes), _expected(op, args)
        case Opaque(of, args, dtype):
            return ast.Call(ast.Constant(str(of)), [_to_ast(arg, names) for arg in args], []), dtype


def _expected(op: Operator, args: Sequence[Expr]) -> str:
    try:
        return result_dtype(op, [arg.dtype for arg in args])
    except OperandError:
        return INDEX


def _literal(text: str) -> ast.expr:
    """A literal; as bytes where Python would write it otherwise."""
    bare = text.removeprefix("-")
    if bare in CONSTANTS or (bare in ("True", "False") and bare == text):
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


def _literal_dtype(text: str) -> str:
    if text in ("True", "False"):
        return "bool"
    return INDEX if text.removeprefix("-").isdigit() else FLOAT


# Reading --------------------------------------------------------------------------------------------------------------


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
        functions.append(Function(head[1], params, _parse_body(own, _Names(params)), doc))
    return tuple(functions)


def _parse_param(text: str) -> Var | Buffer:
    found = _PARAM.fullmatch(text)
    if found is None:
        raise ParseError(f"{text!r} is no parameter")
    name, dtype, star, temporary, row, kind, length, pays = found.groups()
    if not star:
        return Var(name, dtype)
    names = _Names(())
    target = Target(_parse(length, names), _parse(pays, names), kind == "table") if kind else None
    return Buffer(name, dtype, bool(temporary), _parse(row, names) if row else None, target)


def parse_function(text: str) -> Function:
    (function,) = parse_functions(text)
    return function


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parse_body(lines: Sequence[tuple[int, str]], names: _Names) -> tuple[Stmt, ...]:
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


def _parse_line(line: str, inner: Sequence[tuple[int, str]], orelse: Sequence[tuple[int, str]], names: _Names) -> Stmt:
    word, _, rest = line.partition(" ")
    if inner and word not in ("for", "if"):
        raise ValueError("it has no body")
    if named := _NAMED.fullmatch(line):
        is_let, name, value = bool(named[1]), named[2], _parse(named[4], names)
        dtype = names.scalars[name] = named[3] or names.given(name, value, is_let)
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


def _parse_loop(rest: str, inner: Sequence[tuple[int, str]], names: _Names) -> Loop:
    head, _, bounds = rest.removesuffix(":").partition(" in ")
    name, _, kind = head.partition(": ")
    conflicts: tuple[Buffer, ...] | None = None
    asks: Expr | None = None
    match ast.parse(bounds, mode="eval").body:
        case ast.Call(ast.Name("range" | "independent" as kind_of), [*begin, last], words) if len(begin) < 2:
            conflicts = () if kind_of == "independent" else None
        case _:
            raise ValueError("it goes over no range")
    for word in words:
        match word:
            case ast.keyword("asks", after):
                asks = _read(after, names)
            case ast.keyword("but", ast.List(met)) if conflicts is not None:
                conflicts = tuple(names.buffer(each.id) for each in met if isinstance(each, ast.Name))
            case _:
                raise ValueError("it goes over no range")
    first = _read(begin[0], names) if begin else ZERO
    size = _read(last, names)
    var = Var(name, kind or INDEX)
    names.scalars[name] = var.dtype
    return Loop(var, size, _parse_body(inner, names), first, conflicts, asks)


def _parse_call(word: str, text: str, names: _Names) -> Stmt:
    code, colon, call = text.partition(": ")
    match ast.parse(call if colon else text, mode="eval").body:
        case ast.Call(ast.Name(function), operands, []):
            args = tuple(_read(operand, names) for operand in operands)
            if word == "launch":
                return Launch(function, args[0], args[1], args[2:])
            return Invoke(function, args, int(code) if colon else 0)
    raise ValueError("it calls nothing")


def _parse(text: str, names: _Names) -> Expr:
    return _read(ast.parse(text, mode="eval").body, names)


def _read(node: ast.expr, names: _Names) -> Expr:
    match node:
        case ast.BinOp(inner, ast.MatMult(), ast.Name(dtype)):
            return _read_as(inner, dtype, names)
    return _read_as(node, None, names)


def _read_as(node: ast.expr, dtype: str | None, names: _Names) -> Expr:
    """The expression of a node, of a dtype that is written, or the one to be expected."""
    text = _literal_text(node)
    if text is not None:
        return Const(text, dtype or _literal_dtype(text))
    match node:
        case ast.Name(name):
            return Var(name, dtype or names.scalar(name))
        case ast.Subscript(ast.Name(buffer), ast.Slice(lower)) if lower is not None:
            return Pointer(names.buffer(buffer), _read(lower, names))
        case ast.Subscript(ast.Name(buffer), index):
            return Load(names.buffer(buffer), _read(index, names))
    op, operands = read_operator(node)
    args = tuple(_read(operand, names) for operand in operands)
    return Apply(op, args, dtype or _expected(op, args))


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
