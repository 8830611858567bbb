"""The program of loops: what lowering makes of a graph and what the emitter prints. Plain data.

Expressions are typed trees over named locals and flat buffers; statements nest. An expression's operator is a Python
template whose holes are `_0`, `_1`, …, so that the same text means the same in generated source and under CPython:

    Expr := Var | Const | Load(buffer, index) | Apply(template, args)
    Stmt := Let(var, value) | Set(var, value) | Store(buffer, index, value) | Loop(var, size, body)
          | Check(condition, code) | Invoke(function, args) | Launch(function, count, size, args) | Note(text)
    Function := name, params, body

`Let` names a value that never changes; `Set` gives an accumulator its next value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

from graphc.startup.record import record

INDEX = "int64"

CONSTANTS = {"inf": math.inf, "nan": math.nan}
"""Names for the floats that Python has no literals for."""


@record()
class Var:
    """A local name: a loop variable, a size, an accumulator or a named value."""

    name: str
    dtype: str


@record()
class Const:
    """A literal. `text` is the Python literal (NaN and infinities by name), so that equal means the same bits."""

    text: str
    dtype: str


@record(deep=True)
class Load:
    """The element of a flat buffer."""

    buffer: str
    index: Expr
    dtype: str


@record(deep=True)
class Apply:
    """A Python expression over the arguments."""

    template: str
    args: tuple[Expr, ...]
    dtype: str


@record(deep=True)
class Pointer:
    """The address of element `index` of a buffer: an argument of `Invoke`."""

    buffer: str
    index: Expr
    dtype: str


Expr: TypeAlias = Var | Const | Load | Apply | Pointer


@record()
class Let:
    var: Var
    value: Expr


@record()
class Set:
    var: Var
    value: Expr


@record()
class Store:
    buffer: str
    index: Expr
    value: Expr


@record()
class Loop:
    """`for var in range(size)`; `range(begin, size)` where a function runs a part of the loop."""

    var: Var
    size: Expr
    body: tuple[Stmt, ...]
    begin: Expr = Const("0", "int64")


@record()
class Check:
    """Leave the function with `code` unless the condition holds."""

    condition: Expr
    code: int


@record()
class Invoke:
    """Call a function for its effect: an external one, or another of the same source."""

    function: str
    args: tuple[Expr, ...]


@record()
class Launch:
    """Call a function of the same source as function(begin, end, *args) for all chunks of `size` turns that 0 .. count
    falls into: in any order, on several threads where that pays."""

    function: str
    count: Expr
    size: Expr
    args: tuple[Expr, ...]


@record()
class Note:
    """A comment line; `subject` names what the statements after it compute."""

    text: str
    subject: str = ""


Stmt: TypeAlias = Let | Set | Store | Loop | Check | Invoke | Launch | Note


@record()
class Param:
    """A parameter: a scalar of a dtype, or a pointer to elements of it ("float64*")."""

    name: str
    kind: str


@record()
class Function:
    """A generated function. It returns 0, or the number of the check that failed."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    doc: str


ZERO = Const("0", INDEX)
ONE = Const("1", INDEX)


def integer(value: int) -> Const:
    return Const(str(value), INDEX)


def int_value(expr: Expr) -> int | None:
    """The value of an integer literal, or None."""
    return int(expr.text) if isinstance(expr, Const) and expr.dtype == INDEX else None


def add(left: Expr, right: Expr) -> Expr:
    """left + right of indices, folded where a literal allows it."""
    a, b = int_value(left), int_value(right)
    if a is not None and b is not None:
        return integer(a + b)
    if a == 0:
        return right
    if b == 0:
        return left
    if joined := _rejoin(left, right):
        return joined
    return Apply("_0 + _1", (left, right), INDEX)


def subtract(left: Expr, right: Expr) -> Expr:
    a, b = int_value(left), int_value(right)
    if a is not None and b is not None:
        return integer(a - b)
    return left if b == 0 else Apply("_0 - _1", (left, right), INDEX)


def multiply(left: Expr, right: Expr) -> Expr:
    """left * right of indices, folded where a literal allows it."""
    a, b = int_value(left), int_value(right)
    if a is not None and b is not None:
        return integer(a * b)
    if a == 0 or b == 0:
        return ZERO
    if a == 1:
        return right
    return left if b == 1 else Apply("_0 * _1", (left, right), INDEX)


def quotient(left: Expr, right: Expr) -> Expr:
    """left // right of indices that are not negative."""
    a, b = int_value(left), int_value(right)
    if a is not None and b is not None and b > 0:
        return integer(a // b)
    if a == 0:
        return ZERO
    return left if b == 1 else Apply("_0 // _1", (left, right), INDEX)


def remainder(left: Expr, right: Expr) -> Expr:
    """left % right of indices that are not negative."""
    a, b = int_value(left), int_value(right)
    if a is not None and b is not None and b > 0:
        return integer(a % b)
    return ZERO if a == 0 or b == 1 else Apply("_0 % _1", (left, right), INDEX)


BLOCK = 256
"""Elements of a row that are reduced at a time where the order of additions or the place of an extreme matters: long
enough for vectors, and with 16 partial sums at most 16 additions one after the other."""
TILE = 8
"""Turns of either loop of a tile, in which operands are read in different orders: a line of memory holds eight float64,
and the lines of eight rows fit even where they compete for the same places of a cache."""

ROWS = 32
"""Rows that are added in float32 one after the other, before their sums are added in float64."""


def _blocks(block: int) -> str:
    return f"(_0 + {block - 1}) // {block}"


def _turns(block: int) -> str:
    return f"minimum({block}, _0 - {block} * _1)"


_MOST_TURNS = {_turns(block): block for block in (BLOCK, TILE, ROWS)}


def blocks_of(length: Expr, block: int = BLOCK) -> Expr:
    """The number of blocks of an axis, the last of which may be shorter."""
    return Apply(_blocks(block), (length,), INDEX)


def turns_in_block(length: Expr, number: Expr, block: int = BLOCK) -> Expr:
    """The number of elements in one block of an axis."""
    return Apply(_turns(block), (length, number), INDEX)


def most_turns_in_block(size: Expr) -> int | None:
    """The number of elements in a whole block where `size` is that of one block; None of any other number."""
    return _MOST_TURNS.get(size.template) if isinstance(size, Apply) else None


def length_of_blocks(count: Expr) -> Expr | None:
    """The length of the axis of which `count` is the number of blocks of BLOCK elements; None of any other number."""
    return count.args[0] if isinstance(count, Apply) and count.template == _blocks(BLOCK) else None


def _rejoin(left: Expr, right: Expr) -> Expr | None:
    """(f // n) * n + f % n is f: what is left of a reshape or of collapsed loops over contiguous data."""
    match left, right:
        case Apply("_0 * _1", (Apply("_0 // _1", (whole, size), _), stride), _), Apply("_0 % _1", (again, modulus), _):
            if whole == again and size == stride == modulus:
                return whole
    return None


def ravel(index: tuple[Expr, ...], sizes: tuple[Expr, ...]) -> Expr:
    """The flat position of `index` in a C-contiguous array of `sizes`, by Horner's rule."""
    flat: Expr = ZERO
    for position, size in zip(index, sizes, strict=True):
        flat = add(multiply(flat, size), position)
    return flat


def unravel(flat: Expr, sizes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index whose flat position in a C-contiguous array of `sizes` is `flat`."""
    index: list[Expr] = []
    for size in reversed(sizes[1:]):
        index.append(remainder(flat, size))
        flat = quotient(flat, size)
    return (*((flat,) if sizes else ()), *reversed(index))


def children(expr: Expr) -> tuple[Expr, ...]:
    # Not a match statement: the passes over statements spend most of their time here.
    if isinstance(expr, Apply):
        return expr.args
    return (expr.index,) if isinstance(expr, Load | Pointer) else ()


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """`expr` and all below it, from left to right, without recursion."""
    pending = [expr]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Apply):
            pending.extend(reversed(current.args))
        elif isinstance(current, Load | Pointer):
            pending.append(current.index)


def rebuild(expr: Expr, replace: Callable[[Expr], Expr | None]) -> Expr:
    """`expr` with every subexpression for which `replace` gives something, replaced by it (outermost first)."""
    found = replace(expr)
    if found is not None:
        return found
    match expr:
        case Apply(template, args, dtype):
            new = tuple(rebuild(a, replace) for a in args)
            return expr if new == args else Apply(template, new, dtype)
        case Load(buffer, index, dtype):
            return Load(buffer, rebuild(index, replace), dtype)
        case Pointer(buffer, index, dtype):
            return Pointer(buffer, rebuild(index, replace), dtype)
        case _:
            return expr
