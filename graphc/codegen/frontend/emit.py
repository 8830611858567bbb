"""From statements to Python source.

In: functions: their names, parameters and statements. Out: the text, which numba compiles and CPython runs.

    Function("double", (x, n), (Loop(i, n, (Store(x, i, x[i] * 2.0),), conflicts=()),), "Twice as much.")

becomes

    def double(x, n):
        "Twice as much."
        for i in independent(n):
            x[i] = x[i] * 2.0
        return 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from graphc.loopir import ir, operators
from graphc.loopir.syntax import INDENT, text_of

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
    lines += emit_statements(function.body, INDENT, {*function.doc.splitlines(), ""})
    lines.append(f"{INDENT}return 0")
    return "".join(f"{part}\n" for line in lines for part in wrapped(line))


def emit_statements(body: Sequence[ir.Stmt], pad: str, said: set[str]) -> Iterator[str]:
    """Lines of source; what is `said` already is not said again."""
    for stmt in body:
        if isinstance(stmt, ir.Note):
            new = [line for line in stmt.text.splitlines() if line not in said]
            yield from (f"{pad}# {one_line(line)}" for line in new)
            said.update(new)
        elif isinstance(stmt, ir.Loop):
            bounds = text_of(stmt.size) if stmt.begin == ir.ZERO else f"{text_of(stmt.begin)}, {text_of(stmt.size)}"
            kind = "abreast" if stmt.abreast else "independent" if stmt.is_independent else "range"
            yield f"{pad}for {stmt.var.name} in {kind}({bounds}):"
            yield from emit_statements(stmt.body, pad + INDENT, said)
        elif isinstance(stmt, ir.If):
            yield f"{pad}if {text_of(stmt.condition)}:"
            yield from emit_branch(stmt.then, pad + INDENT, said)
            if stmt.orelse:
                yield f"{pad}else:"
                yield from emit_branch(stmt.orelse, pad + INDENT, said)
        else:
            yield pad + emit_statement(stmt)


def emit_branch(body: Sequence[ir.Stmt], pad: str, said: set[str]) -> Iterator[str]:
    yield from emit_statements(body, pad, said)
    if all(isinstance(stmt, ir.Note) for stmt in body):
        yield f"{pad}pass"


def emit_statement(stmt: ir.Stmt) -> str:
    match stmt:
        case ir.Break():
            return "break"
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
    raise AssertionError(f"{stmt} is more than a line")


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
