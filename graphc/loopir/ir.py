"""The program of loops: what lowering makes of a graph and what the emitter prints. Plain data.

Expressions are typed trees of operators (operators.py) over named locals and flat buffers; statements nest:

    Expr := Var | Const | Load(buffer, index) | Apply(op, args) | Pointer(buffer, index) | Opaque(of, args)
    Stmt := Let(var, value) | Set(var, value) | Store(buffer, index, value) | Loop(var, size, body)
          | If(condition, then, orelse) | Break()
          | Check(condition, code) | Invoke(function, args) | Launch(function, count, size, args) | Note(text)
    Function := name, params, body

`Let` names a value that never changes; `Set` gives an accumulator its next value. A name that a body of a loop or of
an `If` begins is forgotten at its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.loopir import operators
from graphc.startup.record import record

INDEX = "int64"

CONSTANTS = {"inf": math.inf, "nan": math.nan}
"""Names for the floats that Python has no literals for."""


@record(deep=True)
class Var:
    """A local name: a loop variable, a size, an accumulator or a named value."""

    name: str
    dtype: str

    @property
    def kind(self) -> str:
        return self.dtype


@record(deep=True)
class Const:
    """A literal. `text` is the Python literal (NaN and infinities by name), so that equal means the same bits."""

    text: str
    dtype: str


MOST_COPIES = 32
"""Chunks of a loop that adds into copies of a target at most, and so threads that may share it."""
PADDING = 16
"""Copies begin a multiple of this number of elements after each other: threads seldom write to one line of memory."""


@record()
class Target:
    """A buffer that loops add into: it may have copies of its `length`, one for each chunk of a loop,
    of which each should have as many iterations as `pays`. Of a table an iteration adds to one place of several."""

    length: Expr
    pays: Expr
    is_table: bool = False


@record(deep=True)
class Buffer:
    """Flat memory, a parameter of functions, and what is known of it.

    `is_temporary`: nothing reads it after the kernel. `row`: the length of what it holds where that is one row at a
    time, which an iteration of an outermost loop fills before it is read: threads need one each. `target`: of what
    loops add into.
    """

    name: str
    dtype: str
    is_temporary: bool = False
    row: Expr | None = None
    target: Target | None = None

    @property
    def kind(self) -> str:
        return f"{self.dtype}*"


@record(deep=True)
class Load:
    """The element of a buffer."""

    buffer: Buffer
    index: Expr

    @property
    def dtype(self) -> str:
        return self.buffer.dtype


@record(deep=True)
class Apply:
    """An operator's value."""

    op: operators.Operator
    args: tuple[Expr, ...]
    dtype: str


@record(deep=True)
class Pointer:
    """The address of element `index` of a buffer: an argument of a call."""

    buffer: Buffer
    index: Expr

    @property
    def dtype(self) -> str:
        return self.buffer.dtype


@record(deep=True)
class Opaque:
    """A value of which only this is known: what it is `of`, and what it depends on. It stands in what is compared,
    never in a program."""

    of: object
    args: tuple[Expr, ...]
    dtype: str


Expr: TypeAlias = Var | Const | Load | Apply | Pointer | Opaque


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
    buffer: Buffer
    index: Expr
    value: Expr


@record()
class Loop:
    """`for var in range(size)`; `range(begin, size)` where a function runs a part of the loop.

    A loop that a `Break` of its own may leave has `size - begin` iterations at most.

    `conflicts`: the buffers in which one iteration may touch what another one writes; None where nothing is known of
    that, or where the order of iterations matters otherwise: a scalar goes on from one to the next, though not by
    accumulation only, a function is called or left, or the loop is.

    `safepoint`: the number of iterations between two safepoints, at which the loop asks whether the call must end,
    until a pass has written them out.

    `disjoint`: buffers of which each iteration writes a part of its own by the meaning of what is written, which need
    not be seen from positions; until `conflicts` are known.

    `abreast`: several iterations may be carried out at a time, each in a lane, and any of them once more: the loops
    inside have the same sizes in all of them, and what one writes none reads, but for a row of its own.
    """

    var: Var
    size: Expr
    body: tuple[Stmt, ...]
    begin: Expr = Const("0", "int64")
    conflicts: tuple[Buffer, ...] | None = None
    safepoint: Expr | None = None
    disjoint: tuple[Buffer, ...] = ()
    abreast: bool = False

    @property
    def is_independent(self) -> bool:
        """True where iterations may be carried out in any order, and at the same time: what one writes to memory no
        other one touches, and the scalars that go on from one to the next are only accumulated."""
        return self.conflicts == ()


@record()
class If:
    """Carry out the statements of one branch only: what the other one reads need not be there."""

    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@record()
class Break:
    """Leave the innermost loop."""


@record()
class Check:
    """Leave the function with `code` unless the condition holds."""

    condition: Expr
    code: int


@record()
class Invoke:
    """Call a function for its effect: an external one, or another of the same source. With a `code` the function says
    whether it failed, and the caller is then left with that."""

    function: str
    args: tuple[Expr, ...]
    code: int = 0


@record()
class Launch:
    """Call a function of the same source as function(begin, end, *args) for all chunks of `size` iterations that 0 ..
    count falls into: in any order, on several threads where that pays."""

    function: str
    count: Expr
    size: Expr
    args: tuple[Expr, ...]


@record()
class Note:
    """A comment line; `subject` names what the statements after it compute."""

    text: str
    subject: str = ""


Stmt: TypeAlias = Let | Set | Store | Loop | If | Break | Check | Invoke | Launch | Note


@record()
class Function:
    """A generated function: its scalars and buffers. It returns 0, or the number of the check that failed."""

    name: str
    params: tuple[Var | Buffer, ...]
    body: tuple[Stmt, ...]
    doc: str


def apply(op: operators.Operator, *args: Expr) -> Apply:
    """An operator's value, of the dtype that its operands give."""
    return Apply(op, args, operators.result_dtype(op, [arg.dtype for arg in args]))


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
    return Apply(operators.ADD, (left, right), INDEX)


def subtract(left: Expr, right: Expr) -> Expr:
    a, b = int_value(left), int_value(right)
    if a is not None and b is not None:
        return integer(a - b)
    return left if b == 0 else Apply(operators.SUB, (left, right), INDEX)


def multiply(left: Expr, right: Expr) -> Expr:
    """left * right of indices, folded where a literal allows it."""
    a, b = int_value(left), int_value(right)
    if a is not None and b is not None:
        return integer(a * b)
    if a == 0 or b == 0:
        return ZERO
    if a == 1:
        return right
    return left if b == 1 else Apply(operators.MUL, (left, right), INDEX)


def sum_of(terms: Mapping[Expr, int]) -> Expr:
    """The sum of indices, each taken as often as its number says."""
    total: Expr = ZERO
    for term, count in terms.items():
        total = add(total, multiply(integer(count), term))
    return total


def quotient(left: Expr, right: Expr) -> Expr:
    """left // right of indices that are not negative."""
    a, b = int_value(left), int_value(right)
    if a is not None and b is not None and b > 0:
        return integer(a // b)
    if a == 0:
        return ZERO
    return left if b == 1 else Apply(operators.FLOORDIV, (left, right), INDEX)


def remainder(left: Expr, right: Expr) -> Expr:
    """left % right of indices that are not negative."""
    a, b = int_value(left), int_value(right)
    if a is not None and b is not None and b > 0:
        return integer(a % b)
    return ZERO if a == 0 or b == 1 else Apply(operators.MOD, (left, right), INDEX)


BLOCK = 256
"""Elements of a row that are reduced at a time where the order of additions or the place of an extreme matters: long
enough for vectors, and with 16 partial sums at most 16 additions one after the other."""
TILE = 8
"""Iterations of either loop of a tile, in which operands are read in different orders: a line of memory holds eight
float64, and the lines of eight rows fit even where they compete for the same places of a cache."""

ROWS = 32
"""Rows that are added in float32 one after the other, before their sums are added in float64."""
LANES = 8
"""Iterations of an `abreast` loop at a time, on all processors: it has no fewer."""
SHORT = 16
"""The most elements of a row that is written out."""
KEPT = 32
"""Room for a row that such an iteration keeps for itself, a power of 2."""
SHORT_READ = 24
"""The most elements of a row along which the loops inside such a loop go."""
SHORT_DEAR = 48
"""The same where elements cost more than to be read: a function is computed of each, or the row is searched, for which
vectors along it read it twice."""
MOST_ODD = 11
"""The most elements of a row, of an odd number, whose columns are read by whole vectors: the column of an odd stride
takes a shuffle for each vector of the row (codegen/vectorize/legality.py)."""


def has_columns(length: int) -> bool:
    """Tell whether a row of a few elements is written out: a loop over rows then runs over vectors of its columns."""
    return length <= (MOST_ODD if length % 2 else SHORT)


def blocks_of(length: Expr, block: int = BLOCK) -> Expr:
    """The number of blocks of an axis, the last of which may be shorter."""
    return Apply(operators.BLOCKS, (length, integer(block)), INDEX)


def iterations_in_block(length: Expr, number: Expr, block: int = BLOCK) -> Expr:
    """The number of elements in one block of an axis."""
    return Apply(operators.BLOCK_LENGTH, (length, number, integer(block)), INDEX)


def most_iterations_in_block(size: Expr) -> int | None:
    """The most elements in a block where `size` is the number of those in one; None of any other number."""
    if not isinstance(size, Apply) or size.op is not operators.BLOCK_LENGTH:
        return None
    return min((most for arg in (size.args[0], size.args[2]) if (most := int_value(arg)) is not None), default=None)


def upper_bound(size: Expr, values: Mapping[Var, Expr], names: int = 4) -> int | None:
    """The most that an integer may be; None where nothing bounds it. values: what names stand for, of which `names` are
    followed, one after the other."""
    match size:
        case Var() if size in values and names:
            return upper_bound(values[size], values, names - 1)
        case Apply(operators.MINIMUM, args):
            bounds = [upper_bound(arg, values, names) for arg in args]
            return min((bound for bound in bounds if bound is not None), default=None)
        case Apply(operators.MOD, (_, Const(text))) if int(text) > 0:
            return int(text) - 1
    return most_iterations_in_block(size) or int_value(size)


def length_of_blocks(count: Expr) -> Expr | None:
    """The length of the axis of which `count` is the number of blocks of BLOCK elements; None of any other number."""
    if not isinstance(count, Apply) or count.op is not operators.BLOCKS:
        return None
    length, block = count.args
    return length if int_value(block) == BLOCK else None


def _rejoin(left: Expr, right: Expr) -> Expr | None:
    """(f // n) * n + f % n is f: what is left of a reshape or of collapsed loops over contiguous data, by themselves or
    within a row."""
    match left, right:
        case (
            Apply(operators.MUL, (Apply(operators.ADD, (row, Apply(operators.FLOORDIV) as part)), stride)),
            Apply(operators.MOD),
        ):
            whole = _rejoin(Apply(operators.MUL, (part, stride), INDEX), right)
            return None if whole is None else add(multiply(row, stride), whole)
        case (
            Apply(operators.MUL, (Apply(operators.FLOORDIV, (whole, size)), stride)),
            Apply(operators.MOD, (again, modulus)),
        ) if whole == again and size == stride == modulus:
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


INDEXED, _OF_ARGS = (Load, Pointer), (Apply, Opaque)
_LEAVES = frozenset((Var, Const))


def children(expr: Expr) -> tuple[Expr, ...]:
    # Not a match statement: the passes over statements spend most of their time here.
    if isinstance(expr, _OF_ARGS):
        return expr.args
    return (expr.index,) if isinstance(expr, INDEXED) else ()


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """`expr` and all below it, from left to right, without recursion."""
    if type(expr) in _LEAVES:
        yield expr
        return
    pending = [expr]
    while pending:
        current = pending.pop()
        yield current
        if type(current) in _LEAVES:
            continue
        if isinstance(current, _OF_ARGS):
            pending.extend(reversed(current.args))
        elif isinstance(current, INDEXED):
            pending.append(current.index)


def rebuild(expr: Expr, replace: Callable[[Expr], Expr | None]) -> Expr:
    """`expr` with every subexpression for which `replace` gives something, replaced by it (outermost first)."""
    replaced = replace(expr)
    if replaced is not None:
        return replaced
    match expr:
        case Apply(op, args, dtype):
            new = tuple(rebuild(a, replace) for a in args)
            return expr if new == args else Apply(op, new, dtype)
        case Load(buffer, index):
            return Load(buffer, rebuild(index, replace))
        case Pointer(buffer, index):
            return Pointer(buffer, rebuild(index, replace))
        case _:
            return expr


# --- casts, literals, sums --------------------------------------------------------------------------------------------
# What lowering makes expressions of, from dtypes and NumPy's scalars.


def cast(expr: Expr, dtype: str) -> Expr:
    return expr if expr.dtype == dtype else convert(expr, dtype)


def convert(expr: Expr, dtype: str) -> Expr:
    """`expr` as a number of `dtype`, written out even where it has that dtype."""
    return apply(operators.CASTS[dtype], expr)


def within(index: Expr, size: Expr) -> Expr:
    """True where an index, which may count from the end, lies within an axis."""
    return apply(
        operators.AND, apply(operators.GE, index, apply(operators.NEG, size)), apply(operators.LT, index, size)
    )


def same_value(a: Expr, b: Expr) -> Expr:
    """True where two numbers are equal, or both NaN."""
    if not is_float(a.dtype):
        return apply(operators.EQ, a, b)
    return apply(
        operators.OR,
        apply(operators.EQ, a, b),
        apply(operators.AND, apply(operators.NE, a, a), apply(operators.NE, b, b)),
    )


def literal_const(value: object, dtype: str) -> Const:
    """The literal of a NumPy scalar, exact to the bit (but for the payload of a NaN)."""
    number = np.asarray(value)[()]
    if dtype == "bool":
        return Const(str(bool(number)), dtype)
    if is_float(dtype):
        return Const(repr(float(number)), dtype)
    return Const(str(int(number)), dtype)


def start_const(text: str, dtype: str) -> Const:
    """The literal an accumulator starts with."""
    if dtype == "bool":
        return Const(str(text in ("True", "1")), dtype)
    if is_float(dtype):
        return Const(repr(float(text)), dtype)
    return Const(text, dtype)


def add_compensated(sum: Var, error: Var, part: Expr) -> tuple[Set, Set]:
    """The steps of a compensated sum that add `part`: `error` takes what the addition to `sum` rounds away."""
    total_error = apply(operators.ACCUMULATE, error, apply(operators.SUM_ERROR, sum, part))
    return Set(error, total_error), Set(sum, apply(operators.ACCUMULATE_IN_ORDER, sum, part))


def safepoint_in_blocks(safepoint: Expr | None, block: int) -> Expr | None:
    """The number of iterations between two safepoints as a number of blocks of them."""
    if safepoint is None:
        return None
    known = int_value(safepoint)
    if known is not None:
        return integer(max(known // block, 1))
    return apply(operators.MAXIMUM, quotient(safepoint, integer(block)), ONE)
