"""From statements to Python source.

In: functions: their names, parameters and statements. Out: the text, which numba compiles and CPython runs, with what
is many statements and one idea as one call (recognize.py), and the definitions of what is called so (constructs.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from graphc.codegen.frontend.constructs import needed_by
from graphc.codegen.frontend.recognize import Term, Use, recognize
from graphc.loopir import ir, operators
from graphc.loopir.operators import NE
from graphc.loopir.unparse import INDENT, text_of
from graphc.loopir.visit import statements

WIDTH = 110
"""Of lines, where an expression has a place to break them."""
MOST_JOINED = 5
"""Stores that stand in one line."""


def emit_source(functions: Iterable[ir.Function]) -> str:
    """The source of a program: its functions, then the definitions of the constructs that they use."""
    source = "\n".join(map(emit_function, functions))
    return source + needed_by(source)


def emit_function(function: ir.Function, constructs: bool = True) -> str:
    """The source of a function. One that may fail returns 0, or the number of the check that failed."""
    params = ", ".join(param.name for param in function.params)
    checks = (
        isinstance(stmt, ir.Check) or (isinstance(stmt, ir.Invoke) and stmt.code) for stmt in statements(function.body)
    )
    lines = [f"def {function.name}({params}):"]
    if function.doc:
        lines.append(f'{INDENT}"""{one_line(function.doc)}"""')
    lines += emit_statements(function.body, INDENT, constructs, {*function.doc.splitlines(), ""})
    if any(checks) or len(lines) < 3:
        lines.append(f"{INDENT}return 0")
    return "".join(f"{part}\n" for line in lines for part in wrapped(line))


def emit_statements(body: Sequence[ir.Stmt], pad: str, constructs: bool, said: set[str]) -> Iterator[str]:
    """Lines of source; what is `said` already is not said again."""
    at = 0
    while at < len(body):
        stmt = body[at]
        count, use = (recognize(body, at) if constructs else None) or (1, None)
        if use is not None:
            yield from emit_use(use, pad)
        elif constructs and (count := joinable(body, at, WIDTH - len(pad))) > 1:
            yield pad + joined(body[at : at + count])
        elif isinstance(stmt, ir.Note):
            new = [line for line in stmt.text.splitlines() if line not in said]
            yield from (f"{pad}# {one_line(line)}" for line in new)
            said.update(new)
        elif isinstance(stmt, ir.Loop):
            bounds = text_of(stmt.size) if stmt.begin == ir.ZERO else f"{text_of(stmt.begin)}, {text_of(stmt.size)}"
            yield f"{pad}for {stmt.var.name} in {'independent' if stmt.is_independent else 'range'}({bounds}):"
            yield from emit_statements(stmt.body, pad + INDENT, constructs, said)
        elif isinstance(stmt, ir.If):
            yield f"{pad}if {text_of(stmt.condition)}:"
            yield from emit_branch(stmt.then, pad + INDENT, constructs, said)
            if stmt.orelse:
                yield f"{pad}else:"
                yield from emit_branch(stmt.orelse, pad + INDENT, constructs, said)
        else:
            yield pad + emit_statement(stmt)
        at += count


def emit_branch(body: Sequence[ir.Stmt], pad: str, constructs: bool, said: set[str]) -> Iterator[str]:
    yield from emit_statements(body, pad, constructs, said)
    if all(isinstance(stmt, ir.Note) for stmt in body):
        yield f"{pad}pass"


def emit_statement(stmt: ir.Stmt) -> str:
    match stmt:
        case ir.Break():
            return "break"
        case ir.Let() | ir.Set() | ir.Store():
            return " = ".join(assignment(stmt))
        case ir.Check(ir.Apply(operators.EQ, (left, right)), code) if left.dtype == ir.INDEX:
            return f"if {text_of(ir.Apply(NE, (left, right), 'bool'))}: return {code}"
        case ir.Check(condition, code):
            return f"if not ({text_of(condition)}): return {code}"
        case ir.Invoke(function, args, code):
            call = f"{function}({', '.join(map(text_of, args))})"
            return f"if {call} != 0: return {code}" if code else call
        case ir.Launch(function, count, size, args):
            return f"parallel({', '.join([function, *map(text_of, (count, size, *args))])})"
    raise AssertionError(f"{stmt} is more than a line")


def assignment(stmt: ir.Stmt) -> tuple[str, str]:
    """What a statement assigns to, and what it assigns."""
    match stmt:
        case ir.Let(var, value) | ir.Set(var, value):
            return var.name, text_of(value)
        case ir.Store(buffer, index, value):
            return f"{buffer.name}[{text_of(index)}]", text_of(value)
    raise AssertionError(f"{stmt} assigns nothing")


def joined(body: Sequence[ir.Stmt]) -> str:
    """Assignments as one."""
    pairs = [assignment(each) for each in body]
    return f"{', '.join(left for left, _ in pairs)} = {', '.join(right for _, right in pairs)}"


def joinable(body: Sequence[ir.Stmt], at: int, width: int) -> int:
    """How many statements from a place on are one line: what sums start with; stores of what is in names, to one place
    of several buffers; stores to one place after the other."""
    for count in range(1, min(MOST_JOINED, len(body) - at)):
        first, stmt = body[at], body[at + count]
        match first, stmt:
            case ir.Set(_, ir.Const() as start), ir.Set(_, ir.Const() as other):
                fits = start == other
            case ir.Store(buffer, index, ir.Var()), ir.Store(other, again, ir.Var()) if buffer != other:
                fits = index == again
            case ir.Store(buffer, ir.Const(), value), ir.Store(other, ir.Const(), wanted) if buffer == other:
                reads = (isinstance(part, ir.Load) for each in (value, wanted) for part in ir.subexpressions(each))
                fits = not any(reads)
            case _:
                fits = False
        if not fits or len(joined(body[at : at + count + 1])) > width:
            return count
    return min(MOST_JOINED, len(body) - at)


def emit_use(use: Use, pad: str) -> Iterator[str]:
    args = []
    for arg in use.args:
        match arg:
            case str():
                args.append(arg)
            case Term(place, (), value):
                args.append(f"lambda {place.name}: {text_of(value)}")
            case Term(place, named, value):
                yield f"{pad}def term({place.name}):"
                yield from (f"{pad}{INDENT}{emit_statement(let)}" for let in named)
                yield f"{pad}{INDENT}return {text_of(value)}"
                args.append("term")
            case _:
                args.append(text_of(arg))
    targets = f"{', '.join(var.name for var in use.targets)} = " if use.targets else ""
    yield f"{pad}{targets}{use.construct}({', '.join(args)})"


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
