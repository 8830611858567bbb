"""THE TABLE of the loop IR's operators: whatever anybody has to know of one is a column.

In: nothing. Out: `INFIX`, `PREFIX` and `CALLS`, the operators by how Python writes them, and names for those that the
compiler itself writes. `codegen/frontend/language.py` makes of the column `python` what CPython runs,
`codegen/frontend/intrinsics.py` of the column `llvm` what machine code does.

Operands have one dtype, which is that of the result, but for what the columns say. An operator is compared by
identity.

    Operator("hypot", takes=FLOATS, python="np.hypot", llvm="math", cost=20.0)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

from graphc.arrays.dtypes import BOOL, DISCRETE, DTYPES, FLOATS, INTEGERS, NUMBERS
from graphc.arrays.numerics import DRAWN
from graphc.startup.record import record

Form: TypeAlias = Literal["infix", "prefix", "call"]
"""The form of an operator in generated source: between its operands, before its operand, or as a call."""
Neutral: TypeAlias = Literal["", "zero", "one", "lowest", "highest"]


@record(eq=False)
class Operator:
    """A row.

    `takes`: the dtypes of operands. `result`: the dtype of the result where it is not that of the operands. `leading`:
    the dtypes of first operands that do not take part in that. `cost`: in units of an addition. `neutral`: the operand
    that leaves the other as it is, of operators by which parts of a sequence may be combined in any order; "" of
    others. `accumulates`: whether a scalar may go on by it from iteration to iteration of a loop that is shared out or
    vectorised. `by_known`: whether it is much cheaper where its right operand is a literal.

    `python` says what CPython computes: "np.x", a ufunc of NumPy; "math.x", a function of Python's numbers;
    "numerics.x", one of ours on scalars, "arrays.x" on arrays, "drawn.x" of numbers drawn (arrays/numerics.py); "op",
    the NumPy meaning of the scalar op of the same name (ops/scalar.py); "x", a function of language.py. Of Python's own
    operators it is the name in the module `operator`.

    `llvm` says what is written in LLVM IR: "llvm.x", a call of that intrinsic; "math", the elementary function of the
    operator's name, from vecmath or C's library; "x", a row of intrinsics.BUILDERS. Where it is "" the name is typed
    and written by primitives.py.
    """

    name: str
    arity: int = 2
    form: Form = "call"
    takes: tuple[str, ...] = NUMBERS
    result: str = ""
    leading: tuple[str, ...] = ()
    cost: float = 1.0
    neutral: Neutral = ""
    accumulates: bool = False
    by_known: bool = False
    python: str = ""
    llvm: str = ""

    def __repr__(self) -> str:
        return f"<{self.name}>"


class OperandError(ValueError):
    """Operands that an operator does not take."""


def result_dtype(op: Operator, operands: Sequence[str]) -> str:
    """The dtype of an operator's value, of the dtypes of its operands. Raises OperandError."""
    if len(operands) != op.arity:
        raise OperandError(f"{op.name} takes {op.arity} operands, not {len(operands)}")
    computed = operands[len(op.leading) :]
    if op.leading and tuple(operands[: len(op.leading)]) != op.leading:
        raise OperandError(f"{op.name} asks for the truth of {operands[0]}")
    if any(dtype != computed[0] for dtype in computed):
        raise OperandError(f"{op.name} of {' and '.join(sorted(set(computed)))}")
    return op.result or computed[0]


# Python's operators ---------------------------------------------------------------------------------------------------


def _infix(name: str, python: str, llvm: str, takes: tuple[str, ...] = NUMBERS, **columns: Any) -> Operator:
    return Operator(name, 2, "infix", takes, python=python, llvm=llvm, **columns)


ADD = _infix("+", "add", "add", neutral="zero")
SUB = _infix("-", "sub", "subtract")
MUL = _infix("*", "mul", "multiply")
XOR = _infix("^", "xor", "xor", DISCRETE)
DIV = _infix("/", "truediv", "divide", cost=4.0)
FLOORDIV = _infix("//", "floordiv", "floordiv", cost=20.0, by_known=True)
MOD = _infix("%", "mod", "mod", cost=20.0, by_known=True)
AND = _infix("&", "and_", "and", DISCRETE, neutral="highest", accumulates=True)
OR = _infix("|", "or_", "or", DISCRETE, neutral="zero", accumulates=True)
EQ, NE, LT, LE, GT, GE = (
    _infix(name, python, name, DTYPES, result="bool")
    for name, python in zip("== != < <= > >=".split(), "eq ne lt le gt ge".split(), strict=True)
)
NEG = Operator("-", 1, "prefix", python="neg", llvm="negate")
INVERT = Operator("~", 1, "prefix", DISCRETE, python="invert", llvm="not")

INFIX = {op.name: op for op in (ADD, SUB, MUL, DIV, FLOORDIV, MOD, AND, OR, XOR, EQ, NE, LT, LE, GT, GE)}
PREFIX = {op.name: op for op in (NEG, INVERT)}

# Functions ------------------------------------------------------------------------------------------------------------


def _binary(name: str, python: str, llvm: str, takes: tuple[str, ...] = NUMBERS, **columns: Any) -> Operator:
    return Operator(name, 2, "call", takes, python=python, llvm=llvm, **columns)


def _unary(name: str, python: str, llvm: str, takes: tuple[str, ...] = FLOATS, **columns: Any) -> Operator:
    return Operator(name, 1, "call", takes, python=python, llvm=llvm, **columns)


SELECT = Operator("select", 3, takes=DTYPES, leading=BOOL, python="select", llvm="select")
MINIMUM = _binary("minimum", "numerics.minimum", "minimum", DTYPES)
MAXIMUM = _binary("maximum", "numerics.maximum", "maximum", DTYPES)
ISFINITE = _unary("isfinite", "np.isfinite", "isfinite", DTYPES, result="bool")
LOGICAL_AND = _binary("logical_and", "np.logical_and", "and", BOOL, result="bool", neutral="highest")
LOGICAL_OR = _binary("logical_or", "np.logical_or", "or", BOOL, result="bool", neutral="zero")

ACCUMULATE = _binary("accumulate", "np.add", "add in any order", neutral="zero", accumulates=True)
"""Additions whose order is the compiler's to choose."""
ACCUMULATE_IN_ORDER = _binary("accumulate_in_order", "np.add", "add in order", accumulates=True)
MULTIPLY_ADD = Operator("multiply_add", 3, python="multiply_add", llvm="multiply_add")
"""a * b + c, rounded once where the processor can."""
SUM_ERROR = _binary("sum_error", "sum_error", "sum_error", FLOATS)
"""The error term of an addition of two floats, what it rounds away: for compensated sums (`ir.add_compensated`)."""
ACCUMULATE_MINIMUM = _binary(
    "accumulate_minimum", "numerics.minimum", "minimum", DTYPES, neutral="highest", accumulates=True
)
ACCUMULATE_MAXIMUM = _binary(
    "accumulate_maximum", "numerics.maximum", "maximum", DTYPES, neutral="lowest", accumulates=True
)

ADD_ERROR = _binary("add_error", "add_error", "add_error", FLOATS)
"""A sum with its error, what its additions have rounded away. An infinite sum has no error: it stays as it is."""

BLOCKS = _binary("blocks", "blocks", "blocks", ("int64",), by_known=True)
"""Into how many blocks of a size a number of elements falls, the last of which may be shorter."""
BLOCK_LENGTH = Operator("block_length", 3, takes=("int64",), python="block_length", llvm="block_length", by_known=True)
"""The number of elements of one block, from all elements, the block's number and the size of blocks."""

CHUNK, COLUMNS = (_binary(name, name, "", ("int64",)) for name in ("chunk", "columns"))
"""The iterations that a thread takes at a time, or those of a loop over columns, from their number and the work of
each."""
FILLS, READS = (_unary(name, name, "", DTYPES) for name in ("fills", "reads"))
"""A pointer of which iteration i fills element i, or reads it."""

CASTS = {dtype: _unary("bool_" if dtype == "bool" else dtype, "cast", "cast", DTYPES, result=dtype) for dtype in DTYPES}

_OF_NUMPY = {
    1.0: "deg2rad rad2deg",
    20.0: "cbrt exp exp2 expm1 log log2 log10 log1p sin cos",
    25.0: "sinh cosh tanh",
    30.0: "tan asin acos atan asinh acosh atanh",
}
"""Elementary functions of a float that NumPy has under the same name, by their cost."""


def _functions() -> Iterator[Operator]:
    yield from (SELECT, MINIMUM, MAXIMUM, ISFINITE, LOGICAL_AND, LOGICAL_OR, CHUNK, COLUMNS, FILLS, READS)
    yield from (ADD_ERROR, BLOCKS, BLOCK_LENGTH)
    yield from (ACCUMULATE, ACCUMULATE_IN_ORDER, MULTIPLY_ADD, SUM_ERROR, ACCUMULATE_MINIMUM, ACCUMULATE_MAXIMUM)
    yield from CASTS.values()
    for cost, names in _OF_NUMPY.items():
        yield from (_unary(name, f"np.{name}", "math", cost=cost) for name in names.split())
    yield _unary("sigmoid", "op", "math", cost=25.0)
    yield from (_unary(name, f"math.{name}", "math", cost=30.0) for name in ("erf", "erfc"))
    yield _unary("gammaln", "arrays.gammaln", "math", cost=40.0)
    yield _unary("softplus", "op", "math", cost=40.0)
    yield from (_unary(name, f"arrays.{name}", "math", cost=40.0) for name in ("digamma", "trigamma", "erfcx"))
    for name in ("portable_log", "portable_exp", "portable_arccos"):
        yield _unary(name, f"numerics.{name}", "math", cost=20.0)
    yield _binary("atan2", "np.atan2", "math", FLOATS, cost=40.0)
    yield from (_binary(name, f"np.{name}", "math", FLOATS, cost=40.0) for name in ("logaddexp", "logaddexp2"))
    yield _binary("hypot", "np.hypot", "math", FLOATS, cost=20.0)
    yield _binary("nextafter", "np.nextafter", "math", FLOATS, cost=5.0)
    yield _binary("pow", "pow_", "pow", FLOATS, cost=40.0, by_known=True)
    # Signs, orders, roundings
    yield _unary("abs_", "np.absolute", "absolute", DTYPES)
    yield _unary("fabs", "np.fabs", "llvm.fabs")
    yield _unary("sign", "np.sign", "sign", NUMBERS, cost=2.0)
    yield _unary("sqrt", "np.sqrt", "llvm.sqrt", cost=5.0)
    yield from (_unary(name, f"np.{name}", f"llvm.{name}") for name in ("floor", "ceil", "trunc", "rint"))
    yield _binary("copysign", "np.copysign", "llvm.copysign", FLOATS)
    yield _binary("heaviside", "np.heaviside", "heaviside", FLOATS)
    yield from (_binary(name, f"numerics.{name}", name, DTYPES) for name in ("fmin", "fmax"))
    yield from (_unary(name, f"np.{name}", name, DTYPES, result="bool") for name in ("isnan", "isinf"))
    yield _unary("signbit", "np.signbit", "signbit", result="bool")
    yield _unary("logical_not", "np.logical_not", "not", BOOL, result="bool")
    yield _binary("logical_xor", "np.logical_xor", "xor", BOOL, result="bool")
    yield _binary("accumulate_product", "np.multiply", "multiply in any order", neutral="one", accumulates=True)
    yield _binary("accumulate_lowest", "np.minimum", "lowest", DTYPES, neutral="highest", accumulates=True)
    yield _binary("accumulate_highest", "np.maximum", "highest", DTYPES, neutral="lowest", accumulates=True)
    # Integers, quotients
    yield _binary("floordiv", "np.floor_divide", "floordiv", cost=20.0, by_known=True)
    yield _binary("mod", "np.remainder", "mod", cost=20.0, by_known=True)
    yield _binary("fmod", "np.fmod", "fmod", cost=20.0, by_known=True)
    yield _binary("shift_left", "np.left_shift", "shift_left", INTEGERS)
    yield _binary("shift_right", "np.right_shift", "shift_right", INTEGERS)
    yield _binary("ipow", "ipow", "ipow", INTEGERS, cost=40.0, by_known=True)
    yield _binary("gcd", "np.gcd", "gcd", INTEGERS, cost=60.0)
    yield _binary("lcm", "np.lcm", "lcm", INTEGERS, cost=80.0)
    # Random words of an index, a draw and a key, and numbers made of them
    for name in ("philox_low", "philox_high"):
        yield Operator(name, 3, takes=("uint64",), python=f"numerics.{name}", llvm=name, cost=30.0)
    yield Operator("philox", 3, takes=("uint64",), python="numerics.philox", llvm="drawn", cost=15.0)
    for name in DRAWN:
        cost = 15.0 if name == "unit" else 40.0
        yield Operator(
            f"philox_{name}", 3, takes=("uint64",), result="float64", python=f"drawn.{name}", llvm="drawn", cost=cost
        )


CALLS = {op.name: op for op in _functions()}
