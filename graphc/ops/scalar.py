"""THE TABLE of scalar ops: one row for each, from which its op, user function, tests and documentation are made.

In: nothing. Out: `OPS` and `FUNCTIONS` hold every scalar op. A row reads

    name, NumPy function, Python source with holes `_0`, `_1`, …, dtype rule, cotangent of each argument, doc

and may add laws, cost (an addition being 1), where a derivative can be infinite (docs/numerics.md) and the intervals on
which it is tested. A cotangent is a function of the result's cotangent `g`, in which it is linear, the result `z` and
the arguments `x`, `y`; None stands for a derivative that is zero almost everywhere. At a tie, maximum and minimum halve
the cotangent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from graphc.arrays import numerics
from graphc.arrays.dtypes import FLOATS, INTEGERS, UNSIGNED, check_dtype, is_float
from graphc.errors import GraphTypeError, plural
from graphc.ir.facts import is_never_zero, is_not_negative, is_positive, scalar_number
from graphc.ir.lowering import Scalar
from graphc.ir.node import FUNCTIONS, Array, Attributes, Infer, Laws, Node, Type, define_op, make
from graphc.ir.types import Argument, Sample, Samples, samples
from graphc.ops.custom import custom_op, not_implemented
from graphc.ops.elementwise import (
    ANY,
    BITS,
    BITS64,
    CHOICE,
    COMPARISON,
    DOUBLE,
    DRAWN,
    FLOAT,
    FLOAT_TEST,
    INTEGER,
    LOGIC,
    NO_BOOL,
    NUMBER,
    QUOTIENT,
    ROWS,
    SHIFT,
    Partial,
    Row,
    Rule,
    aligned,
    alike,
    as_node,
    cast,
    common_shape,
    elementwise,
    equal_sizes,
    list_types,
)

__all__ = ["as_node", "cast", "elementwise", "stop_gradient"]

apply = elementwise

LN2 = math.log(2.0)
LN10 = math.log(10.0)


def define(row: Row) -> None:
    """Add a row: its op, and its user function among `FUNCTIONS`."""
    ROWS[row.name] = row
    define_op(
        row.name,
        infer=_infer(row),
        eval=_eval(row),
        lower=_lower(row),
        vjp=_vjp(row),
        guards=equal_sizes,
        laws=row.laws,
        cost=row.cost,
        samples=Samples(lambda: _samples(row)),
        doc=row.doc,
        batch=aligned,
    )

    def function(*operands: Any) -> Node:
        return elementwise(row.name, *operands)

    function.__name__ = function.__qualname__ = row.name
    function.__doc__ = row.doc
    FUNCTIONS[row.name] = function


def _infer(row: Row) -> Infer:
    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        if len(args) != row.arity:
            raise GraphTypeError(f"{row.name} takes {plural(row.arity, 'argument', 'arguments')}, not {len(args)}")
        if alike(row, args):
            first = args[0].type
            return first if row.rule.result is None else Type(row.rule.result, first.shape)
        dtype, leading = args[-1].type.dtype, row.rule.leading
        right = [arg.type.dtype for arg in args] == [*leading, *[dtype] * (row.arity - len(leading))]
        if not right or dtype not in row.rule.accepts:
            raise GraphTypeError(f"{row.name} has no loop for {list_types(args)}: cast the arguments")
        return Type(row.rule.result or dtype, common_shape(row.name, args))

    return infer


def _eval(row: Row) -> Callable[..., Array]:
    def evaluate(node: Node, *values: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(row.function(*values), dtype=node.type.dtype)

    return evaluate


def _lower(row: Row) -> Callable[[Node], Scalar]:
    template = row.template
    if isinstance(template, str):
        always = Scalar(template)
        return lambda node: always
    lowered: dict[str, Scalar] = {}

    def lower(node: Node) -> Scalar:
        dtype = node.args[-1].type.dtype
        if dtype not in lowered:
            lowered[dtype] = Scalar(template(dtype))
        return lowered[dtype]

    return lower


def _vjp(row: Row) -> Callable[[Node, Node], Sequence[Node | None]] | None:
    partials = row.partials
    if partials is None:
        return None

    def vjp(node: Node, cotangent: Node) -> list[Node | None]:
        has_pole = row.has_pole is not None and row.has_pole(*node.args)

        def passed_on(partial: Partial) -> Any:
            return strong(cotangent, partial, node, *node.args) if has_pole else partial(cotangent, node, *node.args)

        return [
            passed_on(partial) if partial is not None and is_float(arg.type.dtype) else None
            for partial, arg in zip(partials, node.args, strict=True)
        ]

    return vjp


def strong(cotangent: Node, partial: Partial, node: Node, *args: Any) -> Any:
    """Give partial(cotangent, node, *args), but 0 where the cotangent is 0, whatever the derivative is there. A partial
    is linear in its cotangent: the derivative is what it makes of 1. It is left as it is where no cotangent is 0."""
    derivative = None if is_never_zero(cotangent) else partial(1.0, node, *args)
    if not isinstance(derivative, Node):
        return partial(cotangent, node, *args)
    return elementwise("strong_mul", cotangent, cast(derivative, cotangent.type.dtype))


_SHAPE = (2, 3)


def _samples(row: Row) -> Iterator[Sample]:
    """One sample for each kind of argument that the op takes."""
    build, dtypes = partial(elementwise, row.name), row.rule.accepts
    leading = (Argument(_SHAPE, "bool"),) * len(row.rule.leading)
    count = row.arity - len(leading)
    if "float64" in dtypes:
        floats = tuple(Argument(_SHAPE, "float", *interval) for interval in row.domain or ((-2.0, 2.0),) * count)
        yield Sample(row.name, build, leading + floats, row.partials is not None)
    if not set(INTEGERS).isdisjoint(dtypes):
        ints = tuple(Argument(_SHAPE, "int", *interval) for interval in row.integers or ((-7, 7),) * count)

        def build_whole(*args: Node) -> Node:
            return build(*(args if "int64" in dtypes else [cast(arg, "uint64") for arg in args]))

        yield Sample(f"{row.name} of integers", build_whole, leading + ints, differentiable=False)
    if "bool" in dtypes:
        bools = (Argument(_SHAPE, "bool"),) * count
        yield Sample(f"{row.name} of bools", build, leading + bools, differentiable=False)


def _unary(name: str, function: Any, template: Any, rule: Rule, partial: Partial | None, doc: str, **more: Any) -> None:
    define(Row(name, function, template, rule, (partial,), doc, arity=1, **more))


def _binary(
    name: str, function: Any, template: Any, rule: Rule, x: Partial | None, y: Partial | None, doc: str, **more: Any
) -> None:
    define(Row(name, function, template, rule, (x, y), doc, arity=2, **more))


def _by_dtype(floats: str, integers: str, bools: str = "") -> Callable[[str], str]:
    """A template for each kind of dtype. `{dtype}` in it becomes the dtype's name."""

    def template(dtype: str) -> str:
        chosen = floats if dtype in FLOATS else bools if dtype == "bool" else integers
        return chosen.replace("{dtype}", dtype)

    return template


def _typed(template: str) -> Callable[[str], str]:
    return _by_dtype(template, template, template)


def choose(condition: Any, chosen: Any, other: Any) -> Any:
    return apply("where", condition, chosen, other)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _same(g: Node, z: Node, *args: Node) -> Node:
    return g


def _extreme(relation: str, skips_nan: bool = False) -> tuple[Partial, Partial]:
    """Cotangents of maximum ("greater") and minimum ("less"); of fmax and fmin, where a NaN leaves all to the other
    argument."""

    def cotangent(g: Any, mine: Node, other: Node) -> Any:
        share = choose(apply("equal", mine, other), 0.5 * g, g)
        wins = apply(f"{relation}_equal", mine, other)
        return choose(apply("logical_or", wins, apply("isnan", other)) if skips_nan else wins, share, 0.0)

    return (lambda g, z, x, y: cotangent(g, x, y)), (lambda g, z, x, y: cotangent(g, y, x))


def _power_base(g: Any, z: Node, x: Any, y: Any) -> Any:
    exponent = scalar_number(y)
    match exponent:
        case None:
            # at 0 ** 0 the formula below is 0 * inf
            origin = apply("logical_and", apply("equal", x, 0), apply("equal", y, 0))
            return g * strong_product(y, choose(origin, 1, x) ** (y - 1))
        case 0.0:
            return None
        case 1.0:
            return g
        case 2.0:
            return g * (2 * x)
        case _:
            return g * (exponent * x ** (exponent - 1))


def _power_has_pole(x: Node, y: Node) -> bool:
    exponent = scalar_number(y)
    return not (exponent is not None and (exponent == 0 or exponent >= 1)) and not is_positive(x)


def _by_x(x: Node) -> bool:
    return not is_positive(x)


def _by_y(x: Node, y: Node) -> bool:
    return not is_positive(y)


def _always(*args: Node) -> bool:
    return True


def _power_exponent(g: Any, z: Any, x: Any, y: Node) -> Any:
    return g * z * apply("log", choose(apply("equal", x, 0), 1, x))


def _hypot_partial(g: Any, z: Any, mine: Any) -> Any:
    return g * (mine / choose(apply("equal", z, 0), 1, z))


def _is_moved_with(x: Any, low: Any, high: Any) -> Any:
    """Tell whether clip follows x: between bounds that leave it room, and on these. Between equal bounds it is
    constant."""
    inside = apply("logical_and", x >= low, x <= high)
    first, last = scalar_number(low), scalar_number(high)
    has_room = first is not None and last is not None and first < last
    return inside if has_room else apply("logical_and", inside, low < high)


def _is_moved_with_high(x: Any, low: Any, high: Any) -> Any:
    """Tell whether clip follows the upper bound, as it does where all three are equal."""
    meet = apply("logical_and", apply("equal", low, high), apply("equal", x, high))
    return apply("logical_or", apply("maximum", x, low) > high, meet)


def strong_product(cotangent: Node, derivative: Node) -> Node:
    return apply("mul" if is_never_zero(cotangent) else "strong_mul", cotangent, derivative)


_GREATER, _LESS = _extreme("greater"), _extreme("less")
_FGREATER, _FLESS = _extreme("greater", skips_nan=True), _extreme("less", skips_nan=True)
_POSITIVE = (0.3, 3.0)
_ANYWHERE = (-2.0, 2.0)
_EXPONENTS = ((-4, 4), (0, 5))

# fmt: off
_binary("add", np.add, _by_dtype("_0 + _1", "_0 + _1", "logical_or(_0, _1)"), ANY, _same, _same, "Sum.",
        laws=Laws(identity=0.0, commutative=True))
_binary("sub", np.subtract, "_0 - _1", NO_BOOL, _same, lambda g, z, x, y: -g, "Difference.", laws=Laws(identity=0.0))
_binary("mul", np.multiply, _by_dtype("_0 * _1", "_0 * _1", "logical_and(_0, _1)"), ANY,
        lambda g, z, x, y: g * y, lambda g, z, x, y: g * x, "Product.",
        laws=Laws(identity=1.0, zero=0.0, commutative=True))
_binary("strong_mul", numerics.strong_multiply, _typed("_0 * select(_0 == {dtype}(0.0), {dtype}(1.0), _1)"), FLOAT,
        lambda g, z, x, y: strong_product(g, y), lambda g, z, x, y: strong_product(g, x),
        "Product of a cotangent and a derivative: 0 where the cotangent is 0, whatever the derivative is.", cost=3.0)
_binary("true_div", np.true_divide, "_0 / _1", QUOTIENT, lambda g, z, x, y: g / y, lambda g, z, x, y: -(g * z / y),
        "Quotient; of integers a float64.", laws=Laws(identity=1.0), cost=4.0, domain=(_ANYWHERE, _POSITIVE),
       has_pole=_by_y)
_binary("floor_div", np.floor_divide, "floordiv(_0, _1)", NUMBER, None, None,
        "Quotient rounded down; integers by 0 give 0.", cost=20.0, domain=(_ANYWHERE, _POSITIVE))
_binary("mod", np.mod, "mod(_0, _1)", NUMBER, _same, lambda g, z, x, y: -(g * apply("floor_div", x, y)),
        "Remainder of floor_div, with the sign of the divisor; integers by 0 give 0.", cost=20.0,
        domain=(_ANYWHERE, _POSITIVE), has_pole=_by_y)
_binary("fmod", np.fmod, "fmod(_0, _1)", NUMBER, _same, lambda g, z, x, y: -(g * apply("trunc", x / y)),
        "Remainder of the truncated quotient, with the sign of the dividend; integers by 0 give 0.", cost=20.0,
        domain=(_ANYWHERE, _POSITIVE), has_pole=_by_y)
_binary("pow", numerics.power, _by_dtype("pow(_0, _1)", "ipow(_0, _1)"), NUMBER, _power_base, _power_exponent,
        "Power. Of integers an integer: a negative exponent of these is an error, of the call if not before.",
        laws=Laws(identity=1.0), cost=40.0, domain=(_POSITIVE, _ANYWHERE), integers=_EXPONENTS,
        has_pole=_power_has_pole)
_binary("float_power", np.float_power, "pow(_0, _1)", DOUBLE, _power_base, _power_exponent, "Power in float64.",
        laws=Laws(identity=1.0), cost=40.0, domain=(_POSITIVE, _ANYWHERE), has_pole=_power_has_pole)
_unary("neg", np.negative, "-_0", NO_BOOL, lambda g, z, x: -g, "Negative.", laws=Laws(involution=True))
_unary("positive", np.positive, "_0", NO_BOOL, _same, "The argument itself.",
       laws=Laws(idempotent=True, involution=True))
_unary("abs", np.abs, _by_dtype("abs_(_0)", "abs_(_0)", "_0"), ANY, lambda g, z, x: g * apply("sign", x),
       "Absolute value.", laws=Laws(idempotent=True))
_unary("fabs", np.fabs, "fabs(_0)", FLOAT, lambda g, z, x: g * apply("sign", x), "Absolute value as a float.",
       laws=Laws(idempotent=True))
_unary("sign", np.sign, "sign(_0)", NO_BOOL, None, "-1, 0 or 1; NaN of NaN.", laws=Laws(idempotent=True), cost=2.0)
_unary("sqr", np.square, "_0 * _0", NUMBER, lambda g, z, x: g * (2 * x), "Square.")
_unary("sqrt", np.sqrt, "sqrt(_0)", FLOAT, lambda g, z, x: 0.5 * g / z, "Square root.", cost=5.0, domain=(_POSITIVE,),
       has_pole=_by_x)
_unary("cbrt", np.cbrt, "cbrt(_0)", FLOAT, lambda g, z, x: g / (3 * apply("sqr", z)), "Cube root.", cost=20.0,
       domain=(_POSITIVE,), has_pole=_by_x)
_unary("reciprocal", numerics.reciprocal,
       lambda dtype: f"{dtype}(1.0) / _0" if dtype in FLOATS
       else f"select(_0 == {dtype}(1), _0, {dtype}(0))" if dtype in UNSIGNED
       else f"select(abs_(_0) == {dtype}(1), _0, {dtype}(0))" if not numerics.of_zero(dtype)
       else f"select(abs_(_0) == {dtype}(1), _0, select(_0 == {dtype}(0), "
            f"{dtype}(0) - {dtype}({np.iinfo(dtype).max}) - {dtype}(1), {dtype}(0)))",
       NUMBER, lambda g, z, x: -(g * z / x), "1 / x; of integers truncated, of 0 as NumPy's.",
       laws=Laws(involution=True), cost=4.0, domain=(_POSITIVE,), has_pole=_by_x)
_binary("hypot", np.hypot, "hypot(_0, _1)", FLOAT, lambda g, z, x, y: _hypot_partial(g, z, x),
        lambda g, z, x, y: _hypot_partial(g, z, y), "sqrt(x**2 + y**2) without overflow.", laws=Laws(commutative=True),
        cost=20.0, domain=(_POSITIVE, _ANYWHERE))

# --- order and sign ---------------------------------------------------------------------------------------------------

_ORDER = Laws(commutative=True)
_binary("maximum", numerics.maximum, "maximum(_0, _1)", ANY, *_GREATER,
        "The larger, 0.0 of zeros; NaN where either is.", laws=_ORDER)
_binary("minimum", numerics.minimum, "minimum(_0, _1)", ANY, *_LESS,
        "The smaller, -0.0 of zeros; NaN where either is.", laws=_ORDER)
_binary("fmax", numerics.fmax, "fmax(_0, _1)", ANY, *_FGREATER, "The larger; a NaN gives way to a number.", laws=_ORDER)
_binary("fmin", numerics.fmin, "fmin(_0, _1)", ANY, *_FLESS, "The smaller; a NaN gives way to a number.", laws=_ORDER)
_binary("heaviside", np.heaviside, "heaviside(_0, _1)", FLOAT, None,
        lambda g, z, x, y: choose(apply("equal", x, 0), g, 0), "0, y or 1 for x below, at or above 0.")
_binary("copysign", np.copysign, "copysign(_0, _1)", FLOAT,
        lambda g, z, x, y: g * apply("copysign", apply("sign", x), apply("sign", x) * apply("copysign", 1, y)),
        None, "x with the sign of y.")
_binary("nextafter", np.nextafter, "nextafter(_0, _1)", FLOAT, _same, None, "The float next to x towards y.", cost=5.0)
_unary("signbit", np.signbit, "signbit(_0)", FLOAT_TEST, None, "True where the sign bit is set, as it is for -0.0.")
_unary("floor", np.floor, _by_dtype("floor(_0)", "_0", "_0"), ANY, None, "Rounded down.", laws=Laws(idempotent=True))
_unary("ceil", np.ceil, _by_dtype("ceil(_0)", "_0", "_0"), ANY, None, "Rounded up.", laws=Laws(idempotent=True))
_unary("trunc", np.trunc, _by_dtype("trunc(_0)", "_0", "_0"), ANY, None, "Rounded to zero.", laws=Laws(idempotent=True))
_unary("rint", np.rint, "rint(_0)", FLOAT, None, "Rounded to the nearest integer, halves to the even one.",
       laws=Laws(idempotent=True))
define(Row("clip", lambda x, low, high: numerics.minimum(numerics.maximum(x, low), high),
       "minimum(maximum(_0, _1), _2)", ANY,
       (lambda g, z, x, low, high: choose(_is_moved_with(x, low, high), g, 0),
        lambda g, z, x, low, high: choose(apply("logical_and", x < low, low <= high), g, 0),
        lambda g, z, x, low, high: choose(_is_moved_with_high(x, low, high), g, 0)),
       "x moved into [low, high]; high where low > high.", arity=3, cost=2.0,
       domain=(_ANYWHERE, (-1.5, -0.5), (0.5, 1.5))))

# --- exponentials and logarithms --------------------------------------------------------------------------------------

_unary("exp", np.exp, "exp(_0)", FLOAT, lambda g, z, x: g * z, "e**x.", laws=Laws(inverse="log"), cost=20.0)
_unary("exp2", np.exp2, "exp2(_0)", FLOAT, lambda g, z, x: g * (LN2 * z), "2**x.", laws=Laws(inverse="log2"), cost=20.0)
_unary("expm1", np.expm1, "expm1(_0)", FLOAT, lambda g, z, x: g * (z + 1), "e**x - 1, exact near 0.",
       laws=Laws(inverse="log1p"), cost=20.0)
_unary("log", np.log, "log(_0)", FLOAT, lambda g, z, x: g / x, "Natural logarithm.",
       laws=Laws(inverse="exp"), cost=20.0, domain=(_POSITIVE,), has_pole=_by_x)
_unary("log2", np.log2, "log2(_0)", FLOAT, lambda g, z, x: g / (LN2 * x), "Logarithm to base 2.",
       laws=Laws(inverse="exp2"), cost=20.0, domain=(_POSITIVE,), has_pole=_by_x)
_unary("log10", np.log10, "log10(_0)", FLOAT, lambda g, z, x: g / (LN10 * x), "Logarithm to base 10.", cost=20.0,
       domain=(_POSITIVE,), has_pole=_by_x)
_unary("log1p", np.log1p, "log1p(_0)", FLOAT, lambda g, z, x: g / (1 + x), "log(1 + x), exact near 0.",
       laws=Laws(inverse="expm1"), cost=20.0, domain=((-0.7, 3.0),),
        has_pole=lambda x: not is_not_negative(x))
_binary("logaddexp", np.logaddexp, "logaddexp(_0, _1)", FLOAT, lambda g, z, x, y: g * apply("sigmoid", x - y),
        lambda g, z, x, y: g * apply("sigmoid", y - x), "log(e**x + e**y) without overflow.",
        laws=Laws(commutative=True), cost=40.0)
_binary("logaddexp2", np.logaddexp2, "logaddexp2(_0, _1)", FLOAT,
        lambda g, z, x, y: g * apply("sigmoid", LN2 * (x - y)),
        lambda g, z, x, y: g * apply("sigmoid", LN2 * (y - x)), "log2(2**x + 2**y) without overflow.",
        laws=Laws(commutative=True), cost=40.0)
_unary("sigmoid", numerics.sigmoid, "sigmoid(_0)", FLOAT, lambda g, z, x: g * (z * (1 - z)), "1 / (1 + e**-x).",
       cost=25.0)
_unary("softplus", numerics.softplus, "softplus(_0)", FLOAT, lambda g, z, x: g * apply("sigmoid", x),
       "log(1 + e**x) without overflow.", cost=40.0)


# fmt: on
def _log_weight(shift: int) -> Partial:
    """Cotangent of y in x * log(shift + y): 0 rather than NaN where x = 0 at the pole."""

    def cotangent(g: Any, z: Any, x: Any, y: Any) -> Any:
        pole = apply("logical_and", apply("equal", x, 0), apply("equal", y, -shift))
        return g * (x / choose(pole, 1, shift + y if shift else y))

    return cotangent


# fmt: off
_binary("xlogy", numerics.xlogy,
        _typed("select(logical_and(_0 == {dtype}(0.0), _1 == _1), {dtype}(0.0), _0 * log(_1))"),
        FLOAT, lambda g, z, x, y: g * apply("log", y), _log_weight(0), "x * log(y), and 0 where x is 0.",
        cost=22.0, domain=(_ANYWHERE, _POSITIVE), has_pole=_by_y)
_binary("xlog1py", numerics.xlog1py,
        _typed("select(logical_and(_0 == {dtype}(0.0), _1 == _1), {dtype}(0.0), _0 * log1p(_1))"),
        FLOAT, lambda g, z, x, y: g * apply("log1p", y), _log_weight(1),
        "x * log(1 + y), and 0 where x is 0.", cost=22.0, domain=(_ANYWHERE, (-0.7, 3.0)),
        has_pole=lambda x, y: not is_not_negative(y))

# --- trigonometry -----------------------------------------------------------------------------------------------------

_unary("sin", np.sin, "sin(_0)", FLOAT, lambda g, z, x: g * apply("cos", x), "Sine.", cost=20.0)
_unary("cos", np.cos, "cos(_0)", FLOAT, lambda g, z, x: -(g * apply("sin", x)), "Cosine.", cost=20.0)
_unary("tan", np.tan, "tan(_0)", FLOAT, lambda g, z, x: g * (1 + apply("sqr", z)), "Tangent.", cost=30.0,
       domain=((-1.2, 1.2),))
# (1 - x) (1 + x) keeps its accuracy near +-1, where 1 - x**2 loses it
_unary("arcsin", np.arcsin, "asin(_0)", FLOAT, lambda g, z, x: g / apply("sqrt", (1 - x) * (1 + x)),
       "Inverse sine.", cost=30.0, domain=((-0.9, 0.9),), has_pole=_always)
_unary("arccos", np.arccos, "acos(_0)", FLOAT, lambda g, z, x: -(g / apply("sqrt", (1 - x) * (1 + x))),
       "Inverse cosine.", cost=30.0, domain=((-0.9, 0.9),), has_pole=_always)
_unary("arctan", np.arctan, "atan(_0)", FLOAT, lambda g, z, x: g / (1 + apply("sqr", x)), "Inverse tangent.", cost=30.0)
_binary("arctan2", np.arctan2, "atan2(_0, _1)", FLOAT,
        lambda g, z, x, y: g * y / (apply("sqr", x) + apply("sqr", y)),
        lambda g, z, x, y: -(g * x / (apply("sqr", x) + apply("sqr", y))),
        "Angle of the point (y, x): the inverse tangent of x / y in the right quadrant.", cost=40.0,
        domain=(_POSITIVE, _ANYWHERE),
        has_pole=lambda x, y: not (is_positive(x) or is_positive(y)))
_unary("sinh", np.sinh, "sinh(_0)", FLOAT, lambda g, z, x: g * apply("cosh", x), "Hyperbolic sine.",
       laws=Laws(inverse="arcsinh"), cost=25.0)
_unary("cosh", np.cosh, "cosh(_0)", FLOAT, lambda g, z, x: g * apply("sinh", x), "Hyperbolic cosine.", cost=25.0)
_unary("tanh", np.tanh, "tanh(_0)", FLOAT, lambda g, z, x: g * (1 - z * z), "Hyperbolic tangent.",
       laws=Laws(inverse="arctanh"), cost=25.0)
_unary("arcsinh", np.arcsinh, "asinh(_0)", FLOAT, lambda g, z, x: g / apply("hypot", x, 1),
       "Inverse hyperbolic sine.", laws=Laws(inverse="sinh"), cost=30.0)
_unary("arccosh", np.arccosh, "acosh(_0)", FLOAT, lambda g, z, x: g / apply("sqrt", (x - 1) * (x + 1)),
       "Inverse hyperbolic cosine.", laws=Laws(inverse="cosh"), cost=30.0, domain=((1.3, 4.0),), has_pole=_always)
_unary("arctanh", np.arctanh, "atanh(_0)", FLOAT, lambda g, z, x: g / ((1 - x) * (1 + x)),
       "Inverse hyperbolic tangent.", laws=Laws(inverse="tanh"), cost=30.0, domain=((-0.9, 0.9),), has_pole=_always)
_unary("deg2rad", np.deg2rad, "deg2rad(_0)", FLOAT, lambda g, z, x: math.pi / 180.0 * g, "Degrees to radians.",
       laws=Laws(inverse="rad2deg"))
_unary("rad2deg", np.rad2deg, "rad2deg(_0)", FLOAT, lambda g, z, x: 180.0 / math.pi * g, "Radians to degrees.",
       laws=Laws(inverse="deg2rad"))

# --- special functions ------------------------------------------------------------------------------------------------


# fmt: on
def _bell(x: Any) -> Any:
    """The derivative of erf."""
    return 2.0 / math.sqrt(math.pi) * apply("exp", -apply("sqr", x))


def _polygamma(order: Array, x: Array) -> Any:
    """Derivative `order`, a whole number, of digamma; it has none by the order."""
    return import_module("scipy.special").polygamma(order, x)


def _polygamma_vjp(node: Node, cotangent: Node) -> list[Any]:
    order, x = node.args
    return [not_implemented("polygamma", 0, order), strong_product(cotangent, polygamma(order + 1, x))]


_any_polygamma = custom_op("special_polygamma", _polygamma, vjp=_polygamma_vjp, own=True)


def polygamma(n: Any, x: Any) -> Node:
    """Derivative number `n` of digamma at `x`: digamma where `n` is 0, trigamma where it is 1, as SciPy's."""
    return _any_polygamma(n, x)


# fmt: off
_unary("erf", numerics.erf, "erf(_0)", FLOAT, lambda g, z, x: g * _bell(x), "Error function.", cost=30.0)
_unary("erfc", numerics.erfc, "erfc(_0)", FLOAT, lambda g, z, x: -(g * _bell(x)),
       "1 - erf(x), exact for large x.", cost=30.0)
_unary("erfcx", numerics.erfcx, "erfcx(_0)", FLOAT, lambda g, z, x: g * (2.0 * x * z - 2.0 / math.sqrt(math.pi)),
       "exp(x**2) * erfc(x), of which neither has to be finite nor other than 0.", cost=40.0)
_unary("gammaln", numerics.gammaln, "gammaln(_0)", FLOAT, lambda g, z, x: g * apply("digamma", x),
       "Logarithm of |gamma(x)|, -inf at -inf as SciPy's.", cost=40.0, domain=(_POSITIVE,), has_pole=_by_x)
_unary("digamma", numerics.digamma, "digamma(_0)", FLOAT, lambda g, z, x: g * apply("trigamma", x),
       "Derivative of gammaln.", cost=40.0, domain=(_POSITIVE,), has_pole=_by_x)
_unary("trigamma", numerics.trigamma, "trigamma(_0)", FLOAT, lambda g, z, x: g * cast(polygamma(2, x), x.dtype),
       "Derivative of digamma.", cost=40.0, domain=(_POSITIVE,), has_pole=_by_x)

# --- comparison and logic ---------------------------------------------------------------------------------------------

_SYMMETRIC = Laws(commutative=True)
_binary("equal", np.equal, "_0 == _1", COMPARISON, None, None, "x == y; NaN equals nothing.", laws=_SYMMETRIC)
_binary("not_equal", np.not_equal, "_0 != _1", COMPARISON, None, None, "x != y; NaN differs from all.", laws=_SYMMETRIC)
_binary("less", np.less, "_0 < _1", COMPARISON, None, None, "x < y.")
_binary("less_equal", np.less_equal, "_0 <= _1", COMPARISON, None, None, "x <= y.")
_binary("greater", np.greater, "_0 > _1", COMPARISON, None, None, "x > y.")
_binary("greater_equal", np.greater_equal, "_0 >= _1", COMPARISON, None, None, "x >= y.")
_binary("logical_and", np.logical_and, "logical_and(_0, _1)", LOGIC, None, None,
        "Both; numbers count as true unless 0.", laws=Laws(identity=1.0, zero=0.0, commutative=True))
_binary("logical_or", np.logical_or, "logical_or(_0, _1)", LOGIC, None, None, "Either.",
        laws=Laws(identity=0.0, zero=1.0, commutative=True))
_binary("logical_xor", np.logical_xor, "logical_xor(_0, _1)", LOGIC, None, None, "Exactly one.",
        laws=Laws(identity=0.0, commutative=True))
_unary("logical_not", np.logical_not, "logical_not(_0)", LOGIC, None, "Not.", laws=Laws(involution=True))
_unary("isnan", np.isnan, "isnan(_0)", COMPARISON, None, "True where x is NaN.")
_unary("isinf", np.isinf, "isinf(_0)", COMPARISON, None, "True where x is an infinity.")
_unary("isfinite", np.isfinite, "isfinite(_0)", COMPARISON, None, "True where x is neither NaN nor an infinity.")

# --- bits and integers ------------------------------------------------------------------------------------------------

_SHIFTS = ((-100, 100), (0, 7))
_binary("bitwise_and", np.bitwise_and, "_0 & _1", BITS, None, None, "Bits set in both; `and` of bools.",
        laws=Laws(zero=0.0, commutative=True))
_binary("bitwise_or", np.bitwise_or, "_0 | _1", BITS, None, None, "Bits set in either; `or` of bools.",
        laws=Laws(identity=0.0, commutative=True))
_binary("bitwise_xor", np.bitwise_xor, "_0 ^ _1", BITS, None, None, "Bits set in exactly one.",
        laws=Laws(identity=0.0, commutative=True))
_unary("invert", np.invert, _by_dtype("~_0", "~_0", "logical_not(_0)"), BITS, None, "All bits flipped; `not` of bools.",
       laws=Laws(involution=True))
_binary("left_shift", np.left_shift, "shift_left(_0, _1)", SHIFT, None, None, "Bits moved up; 0 beyond the width.",
        laws=Laws(identity=0.0), integers=_SHIFTS)
_binary("right_shift", np.right_shift, "shift_right(_0, _1)", SHIFT, None, None, "Bits moved down; the sign stays.",
        laws=Laws(identity=0.0), integers=_SHIFTS)
_binary("gcd", np.gcd, "gcd(_0, _1)", INTEGER, None, None, "Greatest common divisor.",
        laws=Laws(commutative=True), cost=60.0)
_binary("lcm", np.lcm, "lcm(_0, _1)", INTEGER, None, None, "Least common multiple.", laws=_SYMMETRIC, cost=80.0)

# Random bits: uniform, and independent for each counter and key.
define(Row("philox_low", numerics.philox_low, "philox_low(_0, _1, _2)", BITS64, (None, None, None),
           "64 random bits: the first half of the block of Philox 4x32-10 of a counter (index, draw) and a key.",
           arity=3, cost=30.0))
define(Row("philox_high", numerics.philox_high, "philox_high(_0, _1, _2)", BITS64, (None, None, None),
           "64 more random bits: the other half of that block.", arity=3, cost=30.0))
define(Row("philox", numerics.philox, "philox(_0, _1, _2)", BITS64, (None, None, None),
           "Word `index` of 64 bits of the blocks of Philox 4x32-10 of a draw and a key, two words to a block.",
           arity=3, cost=15.0))
for _name, _text in (
    ("unit", "The first 53 bits of word `index` as a number in [0, 1)."),
    ("normal", "Normal number `index` of a draw and a key, two numbers to a block of Philox 4x32-10."),
    *((each, f"Number `index` of a draw and a key, of the standard {each} distribution: its inverse, of a word.")
      for each in ("exponential", "gumbel", "logistic", "laplace", "cauchy")),
):
    define(Row(f"philox_{_name}", numerics.DRAWN[_name], f"philox_{_name}(_0, _1, _2)", DRAWN, (None, None, None),
               _text, arity=3, cost=15.0 if _name == "unit" else 40.0))
# What random numbers are computed with.
_unary("portable_log", numerics.portable_log, "portable_log(_0)", FLOAT, lambda g, z, x: g / x,
       "log(x), of the same bits in all modes and on every machine.", cost=20.0, domain=(_POSITIVE,), has_pole=_by_x)
_unary("portable_exp", numerics.portable_exp, "portable_exp(_0)", FLOAT, lambda g, z, x: g * z,
       "exp(x), of the same bits in all modes and on every machine.", cost=20.0)
_unary("portable_arccos", numerics.portable_arccos, "portable_arccos(_0)", FLOAT,
       lambda g, z, x: -(g / apply("sqrt", (1 - x) * (1 + x))),
       "arccos(x), of the same bits in all modes and on every machine.", cost=20.0, domain=((-0.8, 0.8),),
       has_pole=_always)

# --- choice and conversion --------------------------------------------------------------------------------------------

define(Row("where", np.where, "select(_0, _1, _2)", CHOICE,
       (None, lambda g, z, c, x, y: choose(c, g, 0), lambda g, z, c, x, y: choose(c, 0, g)),
       "x where the condition holds, y elsewhere.", arity=3))


# fmt: on
def _infer_cast(args: Sequence[Node], attrs: Attributes) -> Type:
    if set(attrs) != {"dtype"}:
        raise GraphTypeError("cast takes one attribute, dtype")
    return Type(check_dtype(attrs["dtype"]), args[0].type.shape)


def _eval_cast(node: Node, value: Array) -> Array:
    with np.errstate(all="ignore"):
        return numerics.convert(np.asarray(value), node.type.dtype)


def _vjp_cast(node: Node, cotangent: Node) -> list[Node | None]:
    source = node.args[0].type.dtype
    return [cast(cotangent, source) if is_float(source) and is_float(node.type.dtype) else None]


_REALS, _WHOLE = Argument((2, 3), "float", 0.0, 100.0), Argument((2, 3), "int", -100, 100)

define_op(
    "cast",
    infer=_infer_cast,
    eval=_eval_cast,
    lower=lambda node: Scalar("bool_(_0)" if node.type.dtype == "bool" else f"{node.type.dtype}(_0)"),
    vjp=_vjp_cast,
    samples=samples(
        ("cast to float64", lambda x: cast(x, "float64"), _WHOLE),
        others=[
            *((f"cast to {d}", lambda x, d=d: cast(x, d), _REALS) for d in ("bool", "uint8", "int64", "float32")),
            *((f"cast to {d}", lambda x, d=d: cast(x, d), _WHOLE) for d in ("bool", "int8", "uint64")),
        ],
    ),
    doc="x converted to a dtype as NumPy's astype does; floats beyond an integer's range are the same everywhere.",
    batch=aligned,
)


def stop_gradient(x: Any) -> Node:
    """`x` as a value that derivatives treat as constant."""
    return make(STOP_GRADIENT, (as_node(x),))


STOP_GRADIENT = define_op(
    "stop_gradient",
    infer=lambda args, attrs: args[0].type,
    eval=lambda node, value: value,
    lower=lambda node: Scalar("_0"),
    vjp=lambda node, cotangent: [None],
    cost=0.0,
    samples=samples(others=[("stop_gradient", stop_gradient, (2, 3))]),
    doc="x, held constant by differentiation.",
    batch=aligned,
)
