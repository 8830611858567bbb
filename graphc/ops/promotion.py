"""The dtypes in which ops of single elements compute: NumPy's promotion.

In: what is known of operands, the names of their dtypes or Python numbers. Out: the one dtype that they are cast to.

    ANY.compute(["int8", 2])            "int8": a Python number has a kind, and no dtype
    FLOAT.compute(["int8"])             "float32": the smallest float that holds it
    QUOTIENT.compute(["int8", "int8"])  "float64", as NumPy's true_divide
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.arrays.dtypes import BOOL, DISCRETE, DTYPES, FLOATS, INTEGERS, Scalar, floating, is_float, promote
from graphc.options import options
from graphc.startup.record import record

Operand = str | Scalar
"""The facts that promotion knows of an operand: the name of its dtype (strong), or a Python number of its kind
(weak)."""


@record()
class Rule:
    """The dtypes of an op.

    compute(operands): the one dtype its arguments are cast to. accepts: the dtypes it exists for. result: the dtype of
    the result where it is not that of the arguments. leading: dtypes of first arguments that do not take part.
    """

    compute: Callable[[Sequence[Operand]], str]
    accepts: tuple[str, ...]
    result: str | None = None
    leading: tuple[str, ...] = ()


def _common(operands: Sequence[Operand]) -> str:
    return promote(*operands)


def _number(operands: Sequence[Operand]) -> str:
    """Promote as NumPy's ufuncs without a bool loop: bools count as int8."""
    dtype = promote(*operands)
    return "int8" if dtype == "bool" else dtype


def _float(operands: Sequence[Operand]) -> str:
    """The smallest float dtype that NumPy finds a loop for: each operand asks for its own."""
    numbers = [o for o in operands if not isinstance(o, str)]
    strong = [o for o in operands if isinstance(o, str)]
    if not strong:
        return options.floatX
    if any(map(is_float, strong)):
        return promote(*map(floating, strong))
    return promote(*(floating(promote(dtype, *numbers)) for dtype in strong))


def _quotient(operands: Sequence[Operand]) -> str:
    """Promote as NumPy's true_divide: quotients of integers are float64 (floatX where all are Python numbers)."""
    if not any(isinstance(o, str) for o in operands):
        return options.floatX
    dtype = promote(*operands)
    return dtype if is_float(dtype) else "float64"


def _always(dtype: str) -> Callable[[Sequence[Operand]], str]:
    def compute(operands: Sequence[Operand]) -> str:
        return dtype

    return compute


ANY = Rule(_common, DTYPES)
NO_BOOL = Rule(_common, INTEGERS + FLOATS)
NUMBER = Rule(_number, INTEGERS + FLOATS)
INTEGER = Rule(_common, INTEGERS)
SHIFT = Rule(_number, INTEGERS)
BITS = Rule(_common, DISCRETE)
BITS64 = Rule(_common, ("uint64",))
DRAWN = Rule(_common, ("uint64",), "float64")
FLOAT = Rule(_float, FLOATS)
QUOTIENT = Rule(_quotient, FLOATS)
DOUBLE = Rule(_always("float64"), ("float64",))
COMPARISON = Rule(_common, DTYPES, "bool")
FLOAT_TEST = Rule(_float, FLOATS, "bool")
LOGIC = Rule(_always("bool"), BOOL)
CHOICE = Rule(_common, DTYPES, leading=("bool",))
