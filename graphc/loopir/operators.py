"""THE TABLE of the loop IR's operators: whatever a pass has to know of one is a column.

In: nothing. Out: `INFIX`, `PREFIX` and `CALLS`, the operators by how Python writes them, and names for those that the
compiler itself writes. What a name computes is said twice, in `codegen/frontend/language.py` for CPython and in
`codegen/frontend/intrinsics.py` for numba; tests hold the three together.

Operands have one dtype, which is that of the result, but for what the columns say. An operator is compared by
identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from graphc.arrays.dtypes import DTYPES
from graphc.startup.record import record

Form: TypeAlias = Literal["infix", "prefix", "call", "idiom"]
"""How generated source has an operator: between its operands, before its operand, as a call; or written out in terms
of others (`build.written_out`)."""
Neutral: TypeAlias = Literal["", "zero", "one", "lowest", "highest"]


@record(eq=False)
class Operator:
    """`result`: the dtype of the result where it is not that of the operands. `leading`: the dtypes of first operands
    that do not take part in that. `cost`: in units of an addition. `neutral`: the operand that leaves the other as it
    is, of operators by which parts of a sequence may be combined in any order; "" of others. `accumulates`: whether a
    scalar may go on by it from iteration to iteration of a loop that is shared out or vectorised. `by_known`: whether
    it is much cheaper where its right operand is a literal."""

    name: str
    arity: int = 2
    form: Form = "call"
    result: str = ""
    leading: tuple[str, ...] = ()
    cost: float = 1.0
    neutral: Neutral = ""
    accumulates: bool = False
    by_known: bool = False

    def __repr__(self) -> str:
        return f"<{self.name}>"


class OperandError(ValueError):
    """Operands that an operator does not take."""


def result_dtype(op: Operator, operands: Sequence[str]) -> str:
    """The dtype of an operator's value, of the dtypes of its operands. Raises OperandError."""
    if len(operands) != op.arity:
        raise OperandError(f"{op.name} takes {op.arity} operands, not {len(operands)}")
    own = operands[len(op.leading) :]
    if op.leading and tuple(operands[: len(op.leading)]) != op.leading:
        raise OperandError(f"{op.name} asks for the truth of {operands[0]}")
    if any(dtype != own[0] for dtype in own):
        raise OperandError(f"{op.name} of {' and '.join(sorted(set(own)))}")
    return op.result or own[0]


# Python's operators ---------------------------------------------------------------------------------------------------


ADD = Operator("+", form="infix", neutral="zero")
DIV = Operator("/", form="infix", cost=4.0)
FLOORDIV, MOD = (Operator(name, form="infix", cost=20.0, by_known=True) for name in ("//", "%"))
AND = Operator("&", form="infix", neutral="highest", accumulates=True)
OR = Operator("|", form="infix", neutral="zero", accumulates=True)
SUB, MUL, XOR = (Operator(name, form="infix") for name in "-*^")
EQ, NE, LT, LE, GT, GE = (Operator(name, form="infix", result="bool") for name in "== != < <= > >=".split())
NEG, INVERT = (Operator(name, 1, "prefix") for name in "-~")

INFIX = {op.name: op for op in (ADD, SUB, MUL, DIV, FLOORDIV, MOD, AND, OR, XOR, EQ, NE, LT, LE, GT, GE)}
PREFIX = {op.name: op for op in (NEG, INVERT)}

# Functions ------------------------------------------------------------------------------------------------------------

SELECT = Operator("select", 3, leading=("bool",))
MINIMUM, MAXIMUM = Operator("minimum"), Operator("maximum")
ISFINITE = Operator("isfinite", 1, result="bool")
LOGICAL_AND = Operator("logical_and", result="bool", neutral="highest")
LOGICAL_OR = Operator("logical_or", result="bool", neutral="zero")

ACCUMULATE = Operator("accumulate", neutral="zero", accumulates=True)
"""Additions whose order is the compiler's to choose."""
ACCUMULATE_IN_ORDER = Operator("accumulate_in_order", accumulates=True)
MULTIPLY_ADD = Operator("multiply_add", 3)
"""a * b + c, rounded once where the processor can."""
ROUNDING = Operator("rounding")
"""What an addition rounds away."""
ACCUMULATE_MINIMUM = Operator("accumulate_minimum", neutral="highest", accumulates=True)
ACCUMULATE_MAXIMUM = Operator("accumulate_maximum", neutral="lowest", accumulates=True)

CHUNK, COLUMNS = Operator("chunk"), Operator("columns")
"""How many iterations a thread takes at a time, or of a loop over columns, of their number and the work of each."""
FILLS, READS = Operator("fills", 1), Operator("reads", 1)
"""A pointer of which iteration i fills element i, or reads it."""

CASTS = {dtype: Operator("bool_" if dtype == "bool" else dtype, 1, "call", dtype) for dtype in DTYPES}

_COSTS = {
    "sign": 2.0,
    "sqrt nextafter": 5.0,
    "cbrt hypot exp exp2 expm1 log log2 log10 log1p sin cos floordiv mod fmod": 20.0,
    "sigmoid sinh cosh tanh": 25.0,
    "tan asin acos atan asinh acosh atanh erf erfc": 30.0,
    "pow ipow logaddexp logaddexp2 softplus atan2 gammaln digamma trigamma erfcx": 40.0,
    "gcd": 60.0,
    "lcm": 80.0,
    "philox_low philox_high": 30.0,
    "philox philox_unit": 15.0,
    "portable_log portable_exp portable_arccos": 20.0,
    "philox_normal philox_exponential philox_gumbel philox_logistic philox_laplace philox_cauchy": 40.0,
}
_COST = {name: cost for names, cost in _COSTS.items() for name in names.split()}
_UNARY = (
    "abs_ fabs sign floor ceil trunc rint sqrt exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh sigmoid softplus erf erfc erfcx gammaln digamma trigamma deg2rad rad2deg "
    "portable_log portable_exp portable_arccos"
).split()
_BINARY = (
    "fmin fmax copysign fmod floordiv mod shift_left shift_right ipow gcd lcm heaviside pow atan2 hypot logaddexp "
    "logaddexp2 nextafter"
).split()
_DRAWN = [f"philox_{name}" for name in "unit normal exponential gumbel logistic laplace cauchy".split()]
_BY_KNOWN = {"floordiv", "mod", "fmod", "pow", "ipow"}


def _functions() -> tuple[Operator, ...]:
    return (
        # By position, which takes half the time: every start makes this table.
        *(Operator(name, 1, "call", "", (), _COST.get(name, 1.0)) for name in _UNARY),
        *(Operator(name, 2, "call", "", (), _COST.get(name, 1.0), "", False, name in _BY_KNOWN) for name in _BINARY),
        *(Operator(name, 1, "call", "bool") for name in ("isnan", "isinf", "signbit", "logical_not")),
        Operator("logical_xor", result="bool"),
        *(Operator(name, 3, cost=_COST[name]) for name in ("philox_low", "philox_high", "philox")),
        *(Operator(name, 3, "call", "float64", cost=_COST[name]) for name in _DRAWN),
        Operator("accumulate_product", neutral="one", accumulates=True),
        Operator("accumulate_lowest", neutral="highest", accumulates=True),
        Operator("accumulate_highest", neutral="lowest", accumulates=True),
        *(SELECT, MINIMUM, MAXIMUM, ISFINITE, LOGICAL_AND, LOGICAL_OR),
        *(ACCUMULATE, ACCUMULATE_IN_ORDER, MULTIPLY_ADD, ROUNDING, ACCUMULATE_MINIMUM, ACCUMULATE_MAXIMUM),
        *(CHUNK, COLUMNS, FILLS, READS, *CASTS.values()),
    )


CALLS = {op.name: op for op in _functions()}

# Idioms ---------------------------------------------------------------------------------------------------------------

BLOCKS = Operator("blocks", form="idiom", by_known=True)
"""Into how many blocks of a size a number of elements falls, the last of which may be shorter."""
BLOCK_LENGTH = Operator("block_length", 3, form="idiom", by_known=True)
"""How many of a number of elements are in one block, of its number and the size of blocks."""
COMPENSATED = Operator("compensated", form="idiom")
"""A sum, with what its additions have rounded away. Where it is not finite, that is NaN and means nothing."""

IDIOMS = {op.name: op for op in (BLOCKS, BLOCK_LENGTH, COMPENSATED)}
