"""The printed form of the program of loops, for whoever debugs a pass; `tests/support/loop_text.py` reads it back.

In: functions. Out: their text.

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
buffers: `independent(n, but=[out])`; over `range(n, safepoint=64)` where there is a safepoint after each 64;
over `range(n, disjoint=[out])` where each writes a part of its own of a buffer.
Expressions are Python's, of the operators of the table; A dtype is
written, `0.0 @ float32`, where it is not the one that declarations and `operators.result_dtype` tell: 0 is an int64,
0.0 a float64, and an undeclared name an int64.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from graphc.loopir import ir
from graphc.loopir.operators import NEG, OperandError, Operator, result_dtype
from graphc.loopir.syntax import node_of

INDENT = "    "
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
    return "\n".join([*head, *_print_body(function.body, names, INDENT), ""])


def _print_param(param: ir.Var | ir.Buffer, names: Declared) -> str:
    words = [f"{param.name}: {param.kind}"]
    if isinstance(param, ir.Buffer):
        words += ["temporary"] if param.is_temporary else []
        words += [f"row {_text(names, param.row)}"] if param.row is not None else []
        if param.target is not None:
            kind = "table" if param.target.is_table else "target"
            words += [f"{kind} {_text(names, param.target.length)} pays {_text(names, param.target.pays)}"]
    return " ".join(words)


def _text(names: Declared, *exprs: ir.Expr) -> str:
    return ", ".join(ast.unparse(_to_ast(expr, names)) for expr in exprs)


def print_statement(stmt: ir.Stmt) -> str:
    """The first line of a statement, for messages."""
    return next(_print_body([stmt], Declared(()), ""))


def _print_body(body: Iterable[ir.Stmt], names: Declared, pad: str) -> Iterator[str]:
    for stmt in body:
        yield pad + _print_line(stmt, names)
        if isinstance(stmt, ir.Loop):
            names.scalars[stmt.var.name] = stmt.var.dtype
            yield from _print_body(stmt.body, names, pad + INDENT)
        elif isinstance(stmt, ir.If):
            yield from _print_body(stmt.then, names, pad + INDENT)
            if stmt.orelse:
                yield f"{pad}else:"
                yield from _print_body(stmt.orelse, names, pad + INDENT)


def _print_line(stmt: ir.Stmt, names: Declared) -> str:
    text = partial(_text, names)
    match stmt:
        case ir.Let(var, value) | ir.Set(var, value):
            is_let = isinstance(stmt, ir.Let)
            kind = "" if var.dtype == names.expected(var.name, value, is_let) else f": {var.dtype}"
            line = f"{'let ' if is_let else ''}{var.name}{kind} = {text(value)}"
            names.scalars[var.name] = var.dtype
            return line
        case ir.Store(buffer, index, value):
            return f"{buffer.name}[{text(index)}] = {text(value)}"
        case ir.Loop(var, size, _, begin, conflicts, safepoint, disjoint):
            kind = "" if var.dtype == ir.INDEX else f": {var.dtype}"
            bounds = text(size) if begin == ir.ZERO else text(begin, size)
            but = "".join(
                f", {word}=[{', '.join(buffer.name for buffer in buffers)}]"
                for word, buffers in (("but", conflicts), ("disjoint", disjoint))
                if buffers
            )
            after = f", safepoint={text(safepoint)}" if safepoint is not None else ""
            return f"for {var.name}{kind} in {'range' if conflicts is None else 'independent'}({bounds}{but}{after}):"
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
            return _literal(text), literal_dtype(text)
        case ir.Load(buffer, index):
            return ast.Subscript(ast.Name(buffer.name), _to_ast(index, names)), buffer.dtype
        case ir.Pointer(buffer, index):
            return ast.Subscript(ast.Name(buffer.name), ast.Slice(_to_ast(index, names))), buffer.dtype
        case ir.Apply(op, args, _):
            nodes = [_to_ast(arg, names) for arg in args]
            if op is NEG and isinstance(args[0], ir.Const):  # -2.0 is a literal
                nodes = [_of_dtype(_literal(args[0].text), args[0].dtype)]
            return node_of(op, nodes), expected_dtype(op, args)
        case ir.Opaque(of, args, dtype):
            return ast.Call(ast.Constant(str(of)), [_to_ast(arg, names) for arg in args], []), dtype


def expected_dtype(op: Operator, args: Sequence[ir.Expr]) -> str:
    try:
        return result_dtype(op, [arg.dtype for arg in args])
    except OperandError:
        return ir.INDEX


def _literal(text: str) -> ast.expr:
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
