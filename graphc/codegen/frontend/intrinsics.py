"""The instructions in LLVM IR of each scalar name of the generated source.

In: operand dtypes and llvmlite values. Out: `INTRINSICS`, one `Intrinsic` for each operator of the table
in loopir/operators.py that Python writes as a call and that takes and gives scalars, and `OPERATORS`, those of Python
itself. What the column `llvm` names is here.

No operation has undefined behaviour: integers wrap, dividing an integer by zero gives 0, a shift by the width or more
gives 0 (-1 for a negative value shifted right), a float that does not fit an integer converts as x86's `cvttsd2si`
does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from llvmlite import ir

from graphc.arrays.dtypes import BOOL, FLOATS, INTEGERS, SIGNED
from graphc.codegen.llvm import values
from graphc.codegen.llvm.target import has_fma
from graphc.codegen.vecmath.table import VECTOR_MATH, refer
from graphc.loopir import operators
from graphc.startup.record import record

CONTRACT = ("contract",)
"""The flag of products: one that is accumulated, and nothing else, may be rounded with the sum. Where a product is an
operand of another addition it is rounded by itself, for that addition has no such flag."""
REASSOCIATE = ("reassoc", *CONTRACT)
FAST = ("reassoc", "nsz", "arcp", "contract", "afn")


Infer: TypeAlias = Callable[[tuple[str, ...]], tuple[tuple[str, ...], str]]


class InferenceError(TypeError):
    """Operands of dtypes that a name of the generated source does not take."""


@record()
class Intrinsic:
    """One scalar operation of the generated source.

    `infer` maps the operand dtypes to the dtypes they are converted to and the result's dtype, or raises
    InferenceError. `emit` builds the instructions from a builder, the dtype of the last operand and the converted
    operands.
    """

    name: str
    infer: Infer
    emit: values.Emit


class FastModule(ir.Module):  # type: ignore[misc]
    """A module in which Python's operators on floats carry `FAST`. The elementary functions never do: they are relaxed
    by formulas of their own.
    """


# --- inference ------------------------------------------------------------------------------------------------------


def promote(dtypes: tuple[str, ...]) -> str:
    """Return the common dtype of the operands: literals adapt, int64 (a size) and float64 give float64, nothing else
    mixes."""
    strong = sorted({dtype for dtype in dtypes if dtype not in values.WEAK})
    if not strong:
        return "float64" if "float" in dtypes else "int64"
    if strong == ["float64", "int64"]:
        return "float64"
    if len(strong) > 1:
        raise InferenceError(f"operands of dtypes {', '.join(dtypes)}: cast them to one dtype")
    dtype = strong[0]
    if "float" in dtypes and dtype not in FLOATS:
        if dtype == "int64":
            return "float64"
        raise InferenceError(f"a float literal meets {dtype}: cast one of them")
    return dtype


def _alike(dtypes: tuple[str, ...], count: int, allowed: tuple[str, ...]) -> str:
    if len(dtypes) != count:
        raise InferenceError(f"takes {count} operands, not {len(dtypes)}")
    dtype = promote(dtypes)
    if dtype not in allowed:
        raise InferenceError(f"takes no {dtype}")
    return dtype


def _same(count: int, allowed: tuple[str, ...], result: str = "") -> Infer:
    """Operands of one dtype, which the result has too unless another is named."""

    def infer(dtypes: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
        dtype = _alike(dtypes, count, allowed)
        return (dtype,) * count, result or dtype

    return infer


def _infer_select(dtypes: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    if len(dtypes) != 3 or dtypes[0] != "bool":
        raise InferenceError(f"takes a bool and two alike operands, not ({', '.join(dtypes)})")
    dtype = promote(dtypes[1:])
    return ("bool", dtype, dtype), dtype


def _infer_divide(dtypes: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    dtype = _alike(dtypes, 2, ("int32", "int64", "uint32", "uint64", *FLOATS))
    result = dtype if dtype in FLOATS else "float64"
    return (result, result), result


def _infer_cast(target: str, dtypes: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    if len(dtypes) != 1:
        raise InferenceError(f"takes one operand, not {len(dtypes)}")
    return dtypes, target


def _infer_of(op: operators.Operator) -> Infer:
    """The operands and the result of an operator, which take Python's numbers as they take their own dtypes."""
    if op.llvm == "cast":
        return partial(_infer_cast, op.result)
    if op.llvm == "divide":
        return _infer_divide
    return _infer_select if op.leading else _same(op.arity, op.takes, op.result)


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _by_kind(on_float: values.Emit, on_signed: values.Emit, on_unsigned: values.Emit | None = None) -> values.Emit:
    def emit(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
        if dtype in FLOATS:
            return on_float(builder, dtype, args)
        if dtype in SIGNED or on_unsigned is None:
            return on_signed(builder, dtype, args)
        return on_unsigned(builder, dtype, args)

    return emit


def _arithmetic(float_op: str, int_op: str, flags: tuple[str, ...] = ()) -> values.Emit:
    def emit(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
        if dtype in FLOATS:
            return getattr(builder, float_op)(*args, flags=(*flags, *_float_flags(builder, flags)))
        return getattr(builder, int_op)(*args)

    return emit


def _add_in_order(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    return builder.fadd(*args) if dtype in FLOATS else builder.add(*args)


def _float_flags(builder: values.Builder, known: Sequence[str] = ()) -> tuple[str, ...]:
    return tuple(flag for flag in FAST if flag not in known) if isinstance(builder.module, FastModule) else ()


def _multiply_add(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    multiply, add = _arithmetic("fmul", "mul", CONTRACT), _arithmetic("fadd", "add", CONTRACT)
    return add(builder, dtype, [multiply(builder, dtype, args[:2]), args[2]])


def _divide(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    return builder.fdiv(*args, flags=_float_flags(builder))


def _compare(symbol: str) -> values.Emit:
    def emit(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
        if dtype in FLOATS:
            compare = builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered
        else:
            compare = builder.icmp_signed if dtype in SIGNED else builder.icmp_unsigned
        return compare(symbol, *args)

    return emit


def _plain(method: str) -> values.Emit:
    return lambda builder, dtype, args: getattr(builder, method)(*args)


def _identity(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    return args[0]


def _fixed(answer: int) -> values.Emit:
    return lambda builder, dtype, args: values.constant("bool", answer)


# --- order and sign -------------------------------------------------------------------------------------------------


def _llvm_call(name: str, flags: tuple[str, ...] = ()) -> values.Emit:
    return lambda builder, dtype, args: values.call_llvm(builder, name, args, flags)


def _extreme(on_float: values.Emit, name: str) -> values.Emit:
    return _by_kind(on_float, _llvm_call(f"s{name}"), _llvm_call(f"u{name}"))


def _number_first(name: str) -> values.Emit:
    """An extreme to which a NaN gives way: it is replaced by the other operand."""

    def emit(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
        x, y = args
        chosen = [builder.select(_isnan(builder, dtype, [a]), b, a) for a, b in ((x, y), (y, x))]
        return values.call_llvm(builder, name, chosen)

    return emit


# 0.0 is above -0.0, so that no order of operands decides a sign
_MINIMUM = _extreme(_llvm_call("minimum"), "min")
_MAXIMUM = _extreme(_llvm_call("maximum"), "max")


def _step(below: float) -> values.Emit:
    """A number for x < 0, the second operand or 0 for x = 0, 1 for x > 0, NaN for NaN."""

    def emit(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
        x, zero = args[0], values.constant(dtype, 0.0)
        cases = (
            ("==", args[1] if len(args) > 1 else zero),
            ("<", values.constant(dtype, below)),
            (">", values.constant(dtype, 1.0)),
        )
        result = x
        for relation, value in cases:
            result = builder.select(builder.fcmp_ordered(relation, x, zero), value, result)
        return result

    return emit


def _unsigned_sign(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    return builder.zext(values.is_nonzero(builder, dtype, args[0]), values.llvm_type(dtype))


def _signed_sign(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    (x,), zero = args, values.constant(dtype, 0)
    below = builder.select(builder.icmp_signed("<", x, zero), values.constant(dtype, -1), zero)
    return builder.select(builder.icmp_signed(">", x, zero), values.constant(dtype, 1), below)


def _isnan(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    return builder.fcmp_unordered("uno", args[0], args[0])


def _to_infinity(relation: str) -> values.Emit:
    """A comparison of a number's magnitude with infinity."""
    return lambda builder, dtype, args: builder.fcmp_ordered(
        relation, values.call_llvm(builder, "fabs", args), values.constant(dtype, math.inf)
    )


def _signbit(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    type_ = ir.IntType(32 if dtype == "float32" else 64)
    return builder.icmp_signed("<", builder.bitcast(args[0], type_), ir.Constant(type_, 0))


def _sum_error(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    """The error of a + b: Knuth's two-sum (The Art of Computer Programming 2, 4.2.2, theorem B). Never
    reassociated: as real numbers it is 0."""
    a, b = args
    total = builder.fadd(a, b)
    of_b = builder.fsub(total, a)
    of_a = builder.fsub(total, of_b)
    return builder.fadd(builder.fsub(a, of_a), builder.fsub(b, of_b))


def _add_error(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    """A sum with its error, where it is finite."""
    total, error = args
    finite = BUILDERS["isfinite"](builder, dtype, [total])
    return builder.select(finite, BUILDERS["add"](builder, dtype, [total, error]), total)


def _blocks(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    """(count + (size - 1)) // size."""
    count, size = args
    return values.signed_floordiv(
        builder, dtype, [builder.add(count, builder.sub(size, values.constant(dtype, 1))), size]
    )


def _block_length(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    """min(size, count - size * number)."""
    count, number, size = args
    return _MINIMUM(builder, dtype, [size, builder.sub(count, builder.mul(size, number))])


# --- elementary functions -------------------------------------------------------------------------------------------

# Names whose libm function is called otherwise.
_LIBM = {"gammaln": "lgamma"}


def _math(builder: values.Builder, name: str, dtype: str, args: Sequence[values.Value]) -> values.Value:
    """The vector function where there is one; else the composition, else libm's scalar function."""
    if name in VECTOR_MATH:
        relaxed = isinstance(builder.module, FastModule)
        return builder.call(refer(builder.module, name, values.llvm_type(dtype), relaxed), args)
    if name in _COMPOSED:
        return _COMPOSED[name](builder, dtype, args)
    return values.call_libm(builder, _LIBM.get(name, name), dtype, args)


def _random_call(name: str) -> values.Emit:
    return lambda builder, dtype, args: builder.call(refer(builder.module, name, values.llvm_type("float64")), args)


WIDEST = 16
"""The largest whole exponent, known while code is generated, whose power is made of products."""


def _pow(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    exponent = args[1].constant if isinstance(args[1], ir.Constant) else None
    if dtype == "float64" and exponent is not None and 1 < abs(exponent) <= WIDEST and exponent % 1 == 0 and has_fma():
        return _whole_power(builder, args[0], int(exponent))
    return _math(builder, "pow", dtype, args)


def _whole_power(builder: values.Builder, x: values.Value, exponent: int) -> values.Value:
    """x**exponent within 1 ulp, in two parts: each product with what its rounding took from it (Dekker, Numer. Math.
    18, 1971), which is kept where it is a number and the power is not 0."""

    def product(left: Sequence[values.Value], right: Sequence[values.Value]) -> list[values.Value]:
        (a, *a_rest), (b, *b_rest) = left, right
        high = builder.fmul(a, b)
        low = values.call_llvm(builder, "fma", [a, b, builder.fneg(high)])
        for factor, rest in (*((b, each) for each in a_rest), *((a, each) for each in b_rest)):
            low = values.call_llvm(builder, "fma", [factor, rest, low])
        return [high, low]

    def power(count: int) -> list[values.Value]:
        if count == 1:
            return base
        half = power(count // 2)
        square = product(half, half)
        return product(square, base) if count % 2 else square

    base, one = [x], values.constant("float64", 1.0)
    if exponent < 0:
        inverse = builder.fdiv(one, x)
        base = [inverse, builder.fmul(inverse, values.call_llvm(builder, "fma", [builder.fneg(inverse), x, one]))]
    high, low = power(abs(exponent))
    total = builder.fadd(high, low)
    is_number = builder.fcmp_ordered("ord", total, total)
    return builder.select(
        builder.and_(is_number, builder.fcmp_ordered("!=", high, values.constant("float64", 0.0))), total, high
    )


def _math_call(name: str) -> values.Emit:
    return lambda builder, dtype, args: _math(builder, name, dtype, args)


def _sigmoid(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    """1 / (1 + exp(-|x|)), or exp(-|x|) times it for x < 0: exp cannot overflow."""
    (x,), one = args, values.constant(dtype, 1.0)
    decay = _math(builder, "exp", dtype, [builder.fneg(values.call_llvm(builder, "fabs", [x]))])
    above = builder.fcmp_unordered(">=", x, values.constant(dtype, 0.0))
    return builder.fdiv(builder.select(above, one, decay), builder.fadd(one, decay))


def _softplus(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
    """max(x, 0) + log1p(exp(-|x|))."""
    (x,) = args
    decay = _math(builder, "exp", dtype, [builder.fneg(values.call_llvm(builder, "fabs", [x]))])
    return builder.fadd(
        _MAXIMUM(builder, dtype, [x, values.constant(dtype, 0.0)]), _math(builder, "log1p", dtype, [decay])
    )


def _log_add(exponential: str, scale: float) -> values.Emit:
    """max(a, b) + log(1 + e**-|a - b|) in base e or 2; equal operands, infinite ones too, give a + log(2)."""

    def emit(builder: values.Builder, dtype: str, args: Sequence[values.Value]) -> values.Value:
        a, b = args
        gap = builder.fneg(values.call_llvm(builder, "fabs", [builder.fsub(a, b)]))
        decay = _math(builder, exponential, dtype, [gap])
        tail = builder.fmul(_math(builder, "log1p", dtype, [decay]), values.constant(dtype, scale))
        apart = builder.fadd(_MAXIMUM(builder, dtype, [a, b]), tail)
        equal = builder.fadd(a, values.constant(dtype, math.log(2.0) * scale))
        return builder.select(builder.fcmp_ordered("==", a, b), equal, apart)

    return emit


def _times(factor: float) -> values.Emit:
    return lambda builder, dtype, args: builder.fmul(args[0], values.constant(dtype, factor))


_COMPOSED: dict[str, values.Emit] = {
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "logaddexp": _log_add("exp", 1.0),
    "logaddexp2": _log_add("exp2", 1.0 / math.log(2.0)),
    "deg2rad": _times(math.pi / 180.0),
    "rad2deg": _times(180.0 / math.pi),
}


# --- the tables -----------------------------------------------------------------------------------------------------

BUILDERS: dict[str, values.Emit] = {
    "add": _arithmetic("fadd", "add"),
    "subtract": _arithmetic("fsub", "sub"),
    "multiply": _arithmetic("fmul", "mul", CONTRACT),
    "add in any order": _arithmetic("fadd", "add", REASSOCIATE),
    "multiply in any order": _arithmetic("fmul", "mul", REASSOCIATE),
    "add in order": _add_in_order,
    "multiply_add": _multiply_add,
    "sum_error": _sum_error,
    "add_error": _add_error,
    "blocks": _blocks,
    "block_length": _block_length,
    "divide": _divide,
    "floordiv": _by_kind(values.float_floordiv, values.signed_floordiv, values.unsigned_floordiv),
    "mod": _by_kind(values.float_mod, values.signed_mod, values.unsigned_mod),
    "fmod": _by_kind(_math_call("fmod"), values.signed_fmod, values.unsigned_mod),
    "pow": _pow,
    "negate": _by_kind(_plain("fneg"), _plain("neg")),
    "identity": _identity,
    "absolute": _by_kind(_llvm_call("fabs"), values.signed_absolute, _identity),
    "sign": _by_kind(_step(-1.0), _signed_sign, _unsigned_sign),
    "heaviside": _step(0.0),
    "select": _plain("select"),
    "and": _plain("and_"),
    "or": _plain("or_"),
    "xor": _plain("xor"),
    "not": _plain("not_"),
    "shift_left": values.shift_left,
    "shift_right": values.shift_right,
    "ipow": values.integer_power,
    "gcd": values.gcd,
    "lcm": values.lcm,
    "philox_low": values.philox_low,
    "philox_high": values.philox_high,
    "minimum": _MINIMUM,
    "maximum": _MAXIMUM,
    "lowest": _extreme(_llvm_call("minimum", ("nsz",)), "min"),  # either zero may come out, which takes half the time
    "highest": _extreme(_llvm_call("maximum", ("nsz",)), "max"),
    "fmin": _extreme(_number_first("minimum"), "min"),
    "fmax": _extreme(_number_first("maximum"), "max"),
    "isnan": _by_kind(_isnan, _fixed(0)),
    "isinf": _by_kind(_to_infinity("=="), _fixed(0)),
    "isfinite": _by_kind(_to_infinity("<"), _fixed(1)),
    "signbit": _signbit,
    **{symbol: _compare(symbol) for symbol in ("==", "!=", "<", "<=", ">", ">=")},
}
"""The builders that the column `llvm` of loopir/operators.py names."""


def _emit_of(op: operators.Operator) -> values.Emit:
    """The instructions of an operator."""
    module, _, name = op.llvm.rpartition(".")
    if module == "llvm":
        return _llvm_call(name)
    match name:
        case "math":
            return _math_call(op.name)
        case "drawn":
            return _random_call(op.name.replace("_", ""))
        case "cast":
            return _cast(op.result)
    return BUILDERS[name]


def _cast(target: str) -> values.Emit:
    return lambda builder, dtype, args: values.emit_cast(builder, dtype, target, args[0])


_OTHERS = (
    operators.Operator("+", 1, "prefix", python="pos", llvm="identity"),
    operators.Operator("not", 1, "prefix", BOOL, result="bool", python="not_", llvm="not"),
    operators.Operator("<<", 2, "infix", INTEGERS, python="lshift", llvm="shift_left"),
    operators.Operator(">>", 2, "infix", INTEGERS, python="rshift", llvm="shift_right"),
)
"""Python's operators that source may have and the loop IR has not."""


INTRINSICS: dict[str, Intrinsic] = {
    name: Intrinsic(name, _infer_of(op), _emit_of(op)) for name, op in operators.CALLS.items() if op.llvm
}
OPERATORS: dict[Callable[..., Any], Intrinsic] = {
    getattr(operator, op.python): Intrinsic(op.python, _infer_of(op), _emit_of(op))
    for op in (*operators.INFIX.values(), *operators.PREFIX.values(), *_OTHERS)
}
