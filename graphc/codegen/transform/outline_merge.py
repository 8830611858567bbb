"""Which parts of a kernel are one function: those that are equal but for names and literals.

In: a part (outline_regions.py). Out: what its function is given, and a key that equal parts share; and the part with
literals replaced by parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from graphc.codegen.transform.outline_regions import BEGIN, COPIED, END, Part
from graphc.codegen.transform.spelling import Respelling, Spelling
from graphc.loops.ir import Buffer, Const, Let, Loop, Set, Stmt, Var
from graphc.loops.visit import statements
from graphc.startup.record import record


@record()
class Interface:
    """What a part is given (names of scalars, buffers), its literals in order, and a key that equal parts share."""

    operands: tuple[Var | Buffer, ...]
    literals: tuple[Const, ...]
    key: tuple[object, ...]


def interface(part: Part) -> Interface:
    """What a part is given, in the order in which it names it; the key holds numbers in place of names."""
    spelling = Spelling(part.body, as_parameter)
    named = [operand for operand in spelling.operands if not isinstance(operand, Const)]
    numbers: dict[Var | Buffer, int] = {}
    pattern = [numbers.setdefault(operand, len(numbers)) for operand in (*named, *part.results)]
    own = {BEGIN, END, COPIED} | {stmt.var for stmt in statements(part.body) if isinstance(stmt, Let | Set | Loop)}
    operands = tuple(operand for operand in numbers if operand not in own)
    literals = tuple(operand for operand in spelling.operands if isinstance(operand, Const))
    return Interface(operands, literals, (part.shares is not None, *spelling.key, *pattern))


def as_parameter(literal: Const) -> Const | None:
    """A literal, if it may become a parameter."""
    return None if literal.dtype == "bool" else literal


def varying(literals: Sequence[tuple[Const, ...]]) -> dict[int, int]:
    """The positions at which the literals of equal parts differ, each with the first that has the same ones."""
    first: dict[tuple[Const, ...], int] = {}
    columns = enumerate(zip(*literals, strict=True))
    return {place: first.setdefault(column, place) for place, column in columns if len(set(column)) > 1}


def with_literals(body: Sequence[Stmt], given: Mapping[int, Var]) -> Iterable[Stmt]:
    """Statements with the literals at these positions replaced."""
    if not given:
        return body
    operands = (each for each in Spelling(body, as_parameter).operands if not isinstance(each, Buffer))
    place = count()
    new = (given.get(next(place), each) if isinstance(each, Const) else each for each in operands)
    return map(Respelling(new, as_parameter).statement, body)
