"""Algebraic rules: constant folding, identities, inverses, signs, powers and constant factors.

In: nothing. Out: `PRUNE`, `FOLD`, `LAWS` and `ALGEBRA`. Rules that follow from the registered laws of ops are
transformations over all ops; most others are pairs of graphs, one line each.

    x * 1 + 2 * (3 * x)      ->  7 * x            identity, join_factors, collect
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from graphc.arrays.dtypes import DTYPES, FLOATS, INTEGERS, can_cast_safely, is_float
from graphc.ir import sizes
from graphc.ir.facts import BROADCASTS, is_never_zero, scalar_constant
from graphc.ir.lowering import Scalar
from graphc.ir.node import CONSTANT, OPS, SIZE, Array, Laws, Node, literal, make
from graphc.ir.walk import node_set
from graphc.ops.custom import PYTHON
from graphc.ops.derivative import IDENTITIES
from graphc.ops.scalar import cast, elementwise
from graphc.ops.shape import filled
from graphc.rewrite.engine import (
    BETTER,
    CLOSE,
    EXACT,
    NUMBERS,
    REAL,
    AnyRule,
    Transformation,
    Uses,
    constant_factor,
    hole,
    is_number,
    rule,
    scalar_function,
    scaled,
)

_NUMBER = INTEGERS + FLOATS


def _argument(node: Node, uses: Uses) -> Node:
    return node.args[0]


# --- prune ------------------------------------------------------------------------------------------------------------


def _checked_by_sizes(node: Node, uses: Uses) -> Node | None:
    """Remove checks of the sizes of arguments: these checks are made of the graph as written, before a kernel
    runs."""
    leaves = (each for each in node_set(node.args[1:]) if not each.args)
    return node.args[0] if all(each.op is SIZE or each.op is CONSTANT for each in leaves) else None


PRUNE: tuple[AnyRule, ...] = (
    Transformation("stop_gradient", ("stop_gradient", *IDENTITIES), _argument, EXACT),
    Transformation("positive", ("positive",), _argument, EXACT),
    Transformation("checked_sizes", ("checked",), _checked_by_sizes, EXACT),
)


# --- fold -------------------------------------------------------------------------------------------------------------

_VIEWS = (*BROADCASTS, "iota")
_SMALL = 64
"""Results with at most this many elements are always folded."""


def _fold_constants(node: Node, uses: Uses) -> Node | None:
    """The value of a node with constant arguments, unless it is larger than they are. A large array in another shape is
    left: it is a view, and its value would be a second copy."""
    if node.op.name == "reshape" and node.args[0].op is CONSTANT and node.args[0].attrs["value"].digest is not None:
        return None
    if not node.args or node.op.name in _VIEWS or any(arg.op is not CONSTANT for arg in node.args):
        return None
    if node.is_tuple or node.op.lower(node) == PYTHON or not all(isinstance(size, int) for size in node.type.shape):
        return None
    values: list[Array] = [arg.attrs["value"].value for arg in node.args]
    if sizes.product(node.type.shape) > max(_SMALL, sum(value.size for value in values)):
        return None
    with np.errstate(all="ignore"):
        try:
            return literal(np.asarray(node.op.eval(node, *values)), node.type.dtype)
        except IndexError:  # the run will report it
            return None


def _fold_numbers(node: Node, uses: Uses) -> Node | None:
    """A scalar op of broadcast numbers becomes the broadcast of its value."""
    if not node.ndim or not node.args:
        return None
    values = [scalar_constant(arg) for arg in node.args]
    if any(value is None for value in values) or not isinstance(node.op.lower(node), Scalar):
        return None
    with np.errstate(all="ignore"):
        return filled(literal(np.asarray(node.op.eval(node, *values)), node.type.dtype), node.type.shape)


FOLD: tuple[AnyRule, ...] = (
    Transformation("fold_constants", (), _fold_constants, CLOSE, operands=("constant",)),
    Transformation("fold_numbers", (), _fold_numbers, CLOSE, operands=NUMBERS),
)


# --- the laws of ops --------------------------------------------------------------------------------------------------


def _obeying(test: Callable[[Laws], Any]) -> tuple[str, ...]:
    """The ops whose laws satisfy `test`."""
    return tuple(op.name for op in OPS.values() if test(op.laws))


def _is_identity(node: Node, position: int, exactly: bool) -> bool:
    """True if the argument at `position` is the identity of the op. exactly: for all IEEE values.

    -0.0 + 0.0 is 0.0: for floats only -0.0 is an identity of addition, and only 0.0 of subtraction.
    """
    laws = node.op.laws
    identity = laws.left_identity if position == 0 and not laws.commutative else laws.identity
    if identity is None:
        return False
    if exactly and node.op.name == "add" and is_float(node.type.dtype):
        return is_number(node.args[position], -0.0)
    return is_number(node.args[position], identity) or (not exactly and is_number(node.args[position], -identity))


def _drop_identity(exactly: bool, node: Node, uses: Uses) -> Node | None:
    if len(node.args) != 2:
        return None
    return next((node.args[1 - k] for k in (1, 0) if _is_identity(node, k, exactly)), None)


def _absorb(exactly: bool, node: Node, uses: Uses) -> Node | None:
    """f(x, z) = z. For floats only as real numbers, since 0 * inf is NaN and 0 * -1 is -0.0."""
    zero = node.op.laws.zero
    if zero is None or is_float(node.type.dtype) is exactly:
        return None
    return next((arg for arg in node.args if is_number(arg, zero)), None)


def _twice(node: Node, uses: Uses) -> Node | None:
    """f(f(x)) becomes f(x) or x."""
    inner = node.args[0]
    if inner.op is not node.op:
        return None
    if node.op.laws.idempotent:
        return inner
    return inner.args[0] if node.op.laws.involution and node.op.name in _EXACT_INVOLUTIONS else None


_EXACT_INVOLUTIONS = ("neg", "invert", "logical_not")
_INJECTIVE = ("exp", "exp2", "expm1", "sinh", "arcsinh", "tanh", "deg2rad", "rad2deg")
"""Total and injective functions: g(f(x)) = x holds for every x."""


def _undo(everywhere: bool, node: Node, uses: Uses) -> Node | None:
    """g(f(x)) becomes x. everywhere: for functions f that are total."""
    inner = node.args[0]
    undoes = inner.args and inner.op.laws.inverse == node.op.name and (inner.op.name in _INJECTIVE) is everywhere
    return inner.args[0] if undoes else None


_INVERSES = tuple(op.laws.inverse for op in tuple(OPS.values()) if op.laws.inverse is not None)

LAWS: tuple[AnyRule, ...] = (
    Transformation(
        "identity",
        _obeying(lambda laws: laws.identity is not None or laws.left_identity is not None),
        partial(_drop_identity, True),
        EXACT,
        operands=NUMBERS,
    ),
    Transformation("identity_of_reals", ("add", "sub"), partial(_drop_identity, False), REAL, operands=NUMBERS),
    Transformation(
        "zero", _obeying(lambda laws: laws.zero is not None), partial(_absorb, True), EXACT, operands=NUMBERS
    ),
    Transformation("zero_of_reals", ("mul",), partial(_absorb, False), REAL, operands=NUMBERS),
    Transformation("twice", _obeying(lambda laws: laws.idempotent or laws.involution), _twice, EXACT),
    Transformation(
        "inverse",
        _INVERSES,
        partial(_undo, True),
        BETTER,
        mends="the inner function overflows, or reaches a pole of the outer one",
    ),
    Transformation("inverse_of_reals", _INVERSES, partial(_undo, False), REAL),
)


# --- arithmetic -------------------------------------------------------------------------------------------------------


absolute, cos, cosh, exp, sqr, sqrt, where = map(scalar_function, ("abs", "cos", "cosh", "exp", "sqr", "sqrt", "where"))
invert, logical_not, maximum, minimum, equal = map(
    scalar_function, ("invert", "logical_not", "maximum", "minimum", "equal")
)
x, y = hole("x"), hole("y")
c = hole("c", "bool")

ARITHMETIC: tuple[AnyRule, ...] = (
    # signs
    rule("add_neg", x + -y, x - y, EXACT, _NUMBER),
    rule("sub_neg", x - -y, x + y, EXACT, _NUMBER),
    rule("mul_neg_neg", -x * -y, x * y, EXACT, _NUMBER),
    rule("mul_neg", -x * y, -(x * y), EXACT, _NUMBER),
    rule("mul_minus_one", x * -1, -x, EXACT),
    rule("div_neg_neg", -x / -y, x / y, EXACT),
    rule("neg_div", -x / y, -(x / y), EXACT),
    rule("div_neg", x / -y, -(x / y), EXACT),
    rule("sqr_neg", sqr(-x), sqr(x), EXACT, _NUMBER),
    rule("sqr_abs", sqr(absolute(x)), sqr(x), EXACT),
    rule("abs_neg", absolute(-x), absolute(x), EXACT),
    rule("abs_sqr", absolute(sqr(x)), sqr(x), EXACT),
    rule("cos_neg", cos(-x), cos(x), EXACT),
    rule("cosh_neg", cosh(-x), cosh(x), EXACT),
    # an argument twice
    rule("sub_self", x - x, 0, EXACT, INTEGERS),
    rule("sub_self_of_reals", x - x, 0, REAL),
    rule("div_self_of_reals", x / x, 1, REAL),
    rule("maximum_self", maximum(x, x), x, EXACT, DTYPES),
    rule("minimum_self", minimum(x, x), x, EXACT, DTYPES),
    rule("mul_self", x * x, sqr(x), EXACT, _NUMBER),
    # powers
    rule("pow_zero", x**0, 1, EXACT, _NUMBER),
    rule("pow_two", x**2, sqr(x), CLOSE, _NUMBER),
    rule("pow_three", x**3, sqr(x) * x, CLOSE, _NUMBER),
    rule("pow_four", x**4, sqr(sqr(x)), CLOSE, _NUMBER),
    rule("pow_minus_one", x**-1.0, 1 / x, CLOSE),
    rule("pow_minus_two", x**-2.0, sqr(1 / x), CLOSE),
    # NumPy takes the root of an array where the exponent is one number; to libm pow(-0.0, 0.5) is 0.0
    rule("pow_half", x**0.5, sqrt(x), EXACT),
    rule("pow_minus_half", x**-0.5, where(equal(x, -np.inf), 0.0, 1 / (sqrt(x) + 0.0)), CLOSE),
    rule("pow_three_halves", x**1.5, where(equal(x, -np.inf), np.inf, x * sqrt(x)), CLOSE),
    rule("pow_minus_three_halves", x**-1.5, (inverse := 1 / (x + 0.0)) * sqrt(inverse), CLOSE),
    rule("sqrt_sqr", sqrt(sqr(x)), absolute(x), BETTER, mends="x * x overflows"),
    rule("sqr_sqrt_of_reals", sqr(sqrt(x)), x, REAL),
    # quotients
    rule("mul_div_of_reals", x / y * y, x, REAL),
    rule("div_div_of_reals", x / y / y, x / sqr(y), REAL),
    # choices
    rule("where_same", where(c, x, x), x, EXACT, DTYPES),
    rule("where_not", where(logical_not(c), x, y), where(c, y, x), EXACT, DTYPES),
    rule("where_invert", where(invert(c), x, y), where(c, y, x), EXACT, DTYPES),
)


def _choose(node: Node, uses: Uses) -> Node | None:
    """`where` with a constant condition."""
    condition = scalar_constant(node.args[0])
    return None if condition is None else node.args[1 if condition else 2]


def _weaken(node: Node, uses: Uses) -> Node | None:
    """strong_mul becomes mul if the cotangent is provably nonzero."""
    return make(OPS["mul"], node.args) if is_never_zero(node.args[0]) else None


def _usable(number: Array) -> bool:
    """True if a constant has full precision: it is normal, not zero and not infinite."""
    if number.dtype.kind != "f":
        return True
    return bool(np.isfinite(number)) and abs(number) >= np.finfo(number.dtype).tiny


MODEST = 2.0**10


def _is_joinable(a: Array, b: Array) -> bool:
    """True if a * (b * x) and (a * b) * x overflow and underflow alike, up to a factor of `MODEST`: both |a| and |b|
    are at least 1, or both at most 1, or both are moderate."""
    if a.dtype.kind != "f":
        return True
    least, most = sorted((abs(float(a)), abs(float(b))))
    return least >= 1 or most <= 1 or (least >= 1 / MODEST and most <= MODEST)


def _join_factors(node: Node, uses: Uses) -> Node | None:
    """a * (b * x) becomes (a * b) * x."""
    outer = constant_factor(node)
    inner = constant_factor(outer[1]) if outer else None
    if outer is None or inner is None or not _is_joinable(outer[0], inner[0]):
        return None
    with np.errstate(all="ignore"):
        number = np.asarray(outer[0] * inner[0])
    return scaled(number, inner[1]) if _usable(number) else None


def _cancel_factors(node: Node, uses: Uses) -> Node | None:
    """(a * x) * (b * y) becomes x * y or -(x * y), for powers of two with a * b = 1 or -1."""
    first, second = map(_split_factor, node.args)
    if first is None or second is None or not is_float(node.type.dtype):
        return None
    (a, x), (b, y) = first, second
    if abs(np.frexp(a)[0]) != 0.5 or abs(a * b) != 1 or not _is_joinable(a, b):
        return None
    product = elementwise("mul", x, y)
    return product if a * b == 1 else elementwise("neg", product)


def _split_factor(node: Node) -> tuple[Array, Node] | None:
    """(c, x) if the node is c * x for a number c, or a broadcast of that."""
    factored = constant_factor(node)
    if factored is not None or node.op.name not in BROADCASTS:
        return factored
    inner = _split_factor(node.args[0])
    return None if inner is None else (inner[0], make(node.op, (inner[1], *node.args[1:]), node.attrs))


def _negate_factor(node: Node, uses: Uses) -> Node | None:
    """-(a * x) becomes (-a) * x."""
    inner = constant_factor(node.args[0])
    return scaled(-inner[0], inner[1]) if inner and uses(node.args[0]) == 1 else None


def _collect(node: Node, uses: Uses) -> Node | None:
    """a * x + b * x becomes (a + b) * x, for numbers a, b of equal sign, so that nothing cancels."""
    one = np.asarray(1, node.type.dtype)
    parts = [constant_factor(arg) or (one, arg) for arg in node.args]
    (a, first), (b, second) = parts
    if first is not second or scalar_constant(first) is not None or node.type.dtype == "bool":
        return None
    if all(arg.op.name != "mul" for arg in node.args):
        return None
    with np.errstate(all="ignore"):
        number = np.asarray(a + b)
    if node.type.dtype in FLOATS and (
        bool(np.signbit(a)) != bool(np.signbit(b)) or not all(map(_usable, (a, b, number)))
    ):
        return None
    return scaled(number, first)


WIDE = 16
"""The largest exponent of which a power is written as products, where no rounding of these matters."""
NARROW = range(-4, 10)
"""Exponents of which the products of float64 are within the error of a close rule: n - 1 roundings, or 2n - 1 where the
reciprocal comes first."""


def _multiplied(of_reals: bool, node: Node, uses: Uses) -> Node | None:
    """x**6 becomes sqr(sqr(x) * x). float32 is multiplied in float64, and integers are exact."""
    number, base = scalar_constant(node.args[1]), node.args[0]
    if number is None or not float(number).is_integer() or abs(number) > WIDE or abs(number) < 3:
        return None
    dtype, exponent = node.type.dtype, int(number)
    if is_float(dtype) and not (of_reals or dtype == "float32" or exponent in NARROW):
        return None
    wide = cast(base, "float64" if dtype == "float32" else dtype)
    if exponent < 0:
        wide = elementwise("reciprocal", wide)
    return cast(_whole_power(wide, abs(exponent)), dtype)


def _whole_power(base: Node, exponent: int) -> Node:
    if exponent == 1:
        return base
    square = elementwise("sqr", _whole_power(base, exponent // 2))
    return elementwise("mul", square, base) if exponent % 2 else square


def _divide_by_constant(exactly: bool, node: Node, uses: Uses) -> Node | None:
    """x / c becomes x * (1 / c), which is exact if c is a power of two."""
    number = scalar_constant(node.args[1])
    if number is None or not _usable(number):
        return None
    with np.errstate(all="ignore"):
        reciprocal = np.asarray(1 / number, number.dtype)
    power_of_two = abs(np.frexp(number)[0]) == 0.5
    return scaled(reciprocal, node.args[0]) if _usable(reciprocal) and bool(power_of_two) is exactly else None


def _join_quotients(node: Node, uses: Uses) -> Node | None:
    """c / x - y / x becomes (c - y) / x for a moderate number c, so that c - y does not overflow."""
    left, right = node.args
    if left is right or any(arg.op.name != "true_div" or uses(arg) > 1 for arg in node.args):
        return None
    (a, divisor), (b, other) = left.args, right.args
    number = next((found for found in map(scalar_constant, (a, b)) if found is not None), None)
    if divisor is not other or number is None or not abs(number) <= 2.0**10:
        return None
    return elementwise("true_div", elementwise(node.op.name, a, b), divisor)


def _cast_twice(node: Node, uses: Uses) -> Node | None:
    """Two casts become one if the inner one is lossless; a cast to the same dtype is dropped."""
    inner = node.args[0]
    if inner.type.dtype == node.type.dtype:
        return inner
    if inner.op.name != "cast":
        return None
    source = inner.args[0]
    exact = can_cast_safely(source.type.dtype, inner.type.dtype) and not (
        is_float(inner.type.dtype) and source.type.dtype in _LARGE
    )
    # a float outside an integer dtype has no value there, an integer wraps
    differs = is_float(inner.type.dtype) and source.type.dtype in INTEGERS and node.type.dtype in INTEGERS
    return (
        cast(source, node.type.dtype)
        if exact and (not differs or can_cast_safely(source.type.dtype, node.type.dtype))
        else None
    )


_LARGE = ("int64", "uint64")
"""Integer dtypes that float64 may round, although NumPy calls the cast safe."""


NUMERIC: tuple[AnyRule, ...] = (
    Transformation("where_known", ("where",), _choose, EXACT, operands=NUMBERS),
    Transformation("weak_product", ("strong_mul",), _weaken, EXACT),
    Transformation(
        "join_factors",
        ("mul",),
        _join_factors,
        BETTER,
        operands=("mul",),
        mends="the inner product overflows, by a factor below 2**10",
    ),
    Transformation(
        "cancel_factors",
        ("mul",),
        _cancel_factors,
        BETTER,
        operands=("mul", "broadcast_to", "dimshuffle"),
        mends="an operand overflows, by a factor below 2**10",
    ),
    Transformation("negate_factor", ("neg",), _negate_factor, EXACT, operands=("mul",)),
    Transformation("collect", ("add",), _collect, BETTER, operands=("mul",)),
    Transformation(
        "join_quotients", ("add", "sub"), _join_quotients, BETTER, operands=("true_div",), mends="a quotient overflows"
    ),
    Transformation("pow_whole", ("pow",), partial(_multiplied, False), CLOSE, operands=NUMBERS),
    Transformation("pow_whole_of_reals", ("pow",), partial(_multiplied, True), REAL, operands=NUMBERS),
    Transformation("div_power_of_two", ("true_div",), partial(_divide_by_constant, True), EXACT, operands=NUMBERS),
    Transformation("div_constant", ("true_div",), partial(_divide_by_constant, False), REAL, operands=NUMBERS),
    Transformation("cast_twice", ("cast",), _cast_twice, EXACT),
)


ALGEBRA: tuple[AnyRule, ...] = LAWS + ARITHMETIC + NUMERIC
