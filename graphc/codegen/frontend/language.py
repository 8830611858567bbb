"""The names that generated source may use, as CPython runs it.

In: NumPy scalars, Python numbers, and flat arrays in place of pointers. Out: NumPy scalars. `PRELUDE` maps each name
to its function; `bind_source` makes a source text runnable. Nothing here raises or warns on overflow, division by
zero or a value outside a function's domain: integers wrap, floats go to infinity or NaN, an integer divided by zero
is 0.

`intrinsics.INTRINSICS` holds the compiled meaning of the same names; both are columns of loopir/operators.py, where a
new name is a row. The generated language besides these names: `def` of functions whose parameters are pointers and
int64, assignments, `for ... in range(...)`, or over what is `independent(...)`, `while`, `if`, `break`, `continue`,
`return`, indexing a pointer by an int64, comparisons, and Python's operators on operands of one dtype, where the result
has that dtype. Python numbers adapt to the other operand's dtype, as in NumPy 2.
"""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from graphc.arrays import numerics
from graphc.arrays.numerics import Array
from graphc.codegen.threads.settings import chunk_size, columns_size
from graphc.loopir import ir, operators
from graphc.ops import scalar  # noqa: F401 - it fills ROWS
from graphc.ops.elementwise import ROWS

Scalar = Any
Function = Callable[..., Any]


def _quiet(function: Function) -> Function:
    @wraps(function)
    def silent(*args: Scalar) -> Scalar:
        with np.errstate(all="ignore"):
            return function(*args)

    return silent


def _ufunc(function: np.ufunc) -> Function:
    def call(*args: Scalar) -> Scalar:
        return function(*args)

    call.__name__ = function.__name__
    return _quiet(call)


def _cast(dtype: str) -> Function:
    def cast(value: Scalar) -> Scalar:
        return numerics.convert(np.asarray(value), dtype)[()]

    cast.__name__ = dtype
    return _quiet(cast)


def _elementwise(function: Callable[[float], float]) -> Function:
    """A function of Python's math module on a NumPy float, NaN outside its domain and infinite at a pole."""

    def call(x: Scalar) -> Scalar:
        type_ = type(x) if isinstance(x, np.floating) else np.float64
        try:
            return type_(function(float(x)))
        except ValueError:
            return type_(math.inf if math.isfinite(x) else math.nan)
        except OverflowError:
            return type_(math.inf)

    call.__name__ = function.__name__
    return _quiet(call)


def _special(function: Callable[..., Array]) -> Function:
    """A function of arrays on NumPy numbers."""

    def call(*args: Scalar) -> Scalar:
        return function(*map(np.asarray, args))[()]

    call.__name__ = function.__name__
    return _quiet(call)


def _alike(x: Scalar, y: Scalar) -> type[np.generic]:
    return np.result_type(x, y).type


@_quiet
def select(c: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """a where c, else b; both are computed."""
    type_ = _alike(a, b)
    return type_(a) if c else type_(b)


@_quiet
def ipow(a: Scalar, b: Scalar) -> Scalar:
    """a ** b of integers, wrapping; a negative exponent gives 1 for 1, +-1 for -1, 0 otherwise."""
    type_ = _alike(a, b)
    if b < 0:
        return type_(1 if a == 1 else (-1 if b % 2 else 1) if a == -1 else 0)
    modulus = 1 << (8 * type_().itemsize)
    return np.array(pow(int(a), int(b), modulus), dtype=np.uint64).astype(type_)[()]


@_quiet
def pow_(a: Scalar, b: Scalar) -> Scalar:
    """a ** b of floats, as np.power gives it for arrays: its short cut for a scalar 0.5 is wrong at -inf."""
    type_ = _alike(a, b)
    return np.power(np.array([a, a], type_), np.array([b, b], type_))[0]


@_quiet
def sum_error(a: Scalar, b: Scalar) -> Scalar:
    """The error of a + b: Knuth's two-sum."""
    total = np.add(a, b)
    of_b = total - a
    return (a - (total - of_b)) + (b - of_b)


@_quiet
def add_error(total: Scalar, error: Scalar) -> Scalar:
    """total + error, where the total is finite."""
    return select(np.isfinite(total), total + error, total)


@_quiet
def blocks(count: int, size: int) -> int:
    """The number of blocks of a size that some elements fall into."""
    return (count + (size - 1)) // size


@_quiet
def block_length(count: int, number: int, size: int) -> int:
    """The number of elements in one block of them; the last may be shorter."""
    return min(size, count - size * number)


@_quiet
def multiply_add(a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    """a * b + c. Compiled code rounds it once where the processor can."""
    return a * b + c


def advance(pointer: Array, count: int) -> Array:
    """The pointer to element `count`."""
    return pointer[count:]


def chunk(count: int, work: int) -> int:
    """The number of iterations, of `count` of this work each, that a thread takes at a time."""
    return chunk_size(int(count), int(work))


def columns(count: int, work: int) -> int:
    """The number of columns, of `count` of this work each, that a thread takes at a time; here there is one thread."""
    return columns_size(int(count), int(work), 1)


def parallel(function: Function, count: int, size: int, *args: Any) -> None:
    """function(begin, end, *args) for every chunk of `size` iterations, in order."""
    for begin in range(0, count, size):
        function(begin, min(begin + size, count), *args)


def independent(*bounds: int) -> range:
    """`range(*bounds)`, whose iterations may be carried out in any order and at the same time: what one writes to
    memory no other one touches, and what goes on from one to the next in a local name is only accumulated."""
    return range(*bounds)


def abreast(*bounds: int) -> range:
    """`range(*bounds)`, of 8 iterations or more: several may be carried out at a time, and each more than once."""
    return range(*bounds)


def fills(pointer: Array) -> Array:
    """The pointer, of which iteration i of the loop that is launched fills element i, and reads none: it may go past
    the caches."""
    return pointer


def reads(pointer: Array) -> Array:
    """The pointer, of which iteration i reads element i, and writes none."""
    return pointer


def _meaning(op: operators.Operator) -> Function:
    """The function that CPython calls for an operator (the column `python` of loopir/operators.py)."""
    module, _, name = op.python.rpartition(".")
    match module:
        case "np":
            return _ufunc(getattr(np, name))
        case "math":
            return _elementwise(getattr(math, name))
        case "arrays":
            return _special(getattr(numerics, name))
        case "numerics":
            return _quiet(getattr(numerics, name))
        case "drawn":
            return _quiet(numerics.DRAWN[name])
    if name == "op":
        return _special(ROWS[op.name].function)
    function: Function = _cast(op.result) if name == "cast" else globals()[name]
    return function


PRELUDE: dict[str, Function] = {name: _meaning(op) for name, op in operators.CALLS.items()}
PRELUDE |= {"advance": advance, "parallel": parallel, "independent": independent, "abreast": abreast}

_DIVIDE = "divide two numbers"  # no identifier: it cannot be a name of the source


def _divide(a: Scalar, b: Scalar) -> Scalar:
    """a / b as NumPy has it: Python's own floats, which literals are, would raise where b is 0."""
    return a / b if b else np.divide(a, b)


class _Division(ast.NodeTransformer):
    """Makes every `a / b` of a source a call of `_divide`, at the same place in the text."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        function = ast.Name(_DIVIDE, ast.Load())
        return ast.copy_location(ast.Call(function, [node.left, node.right], []), node)


def bind_source(
    source: str, name: str = "<generated source>", externals: Mapping[str, Function] = {}
) -> dict[str, Function]:
    """The functions that a generated source defines, run by CPython: pointers are flat arrays, sizes are ints.

    `externals` are the functions it calls besides the prelude's.

    Tracebacks and `pdb` show the source's lines under the file name `name`.
    """
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = PRELUDE | ir.CONSTANTS | dict(externals) | {_DIVIDE: _divide}
    known = {*scope, "__builtins__"}
    tree = ast.fix_missing_locations(_Division().visit(ast.parse(source, name)))
    exec(compile(tree, name, "exec"), scope)
    defined = scope.keys() - known
    return {key: _quiet(scope[key]) for key in sorted(defined)}
