"""Scalars in LLVM's registers: their types, constants, casts, and calls of functions on them.

In: dtypes and llvmlite values. Out: llvmlite types and values. A dtype is one of arrays/dtypes.py, or a literal's that
adapts to the other operand as NumPy's weak scalars do: "int" and "float". A bool is an `i1` here and one byte (0 or 1)
in memory.

    llvm_type("uint8")                                      i8
    constant("float32", 0.5)                                float 0x3fe0000000000000
    emit_cast(builder, "uint8", "float64", x)               uitofp i8 %x to double
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from graphc.arrays.dtypes import FLOATS, SIGNED, UNSIGNED
from graphc.arrays.numerics import PHILOX_BUMPS, PHILOX_FACTORS, PHILOX_ROUNDS

Builder = Any
Value = Any
Emit = Callable[[Builder, str, Sequence[Value]], Value]

WEAK = {"int": "int64", "float": "float64"}
FLOAT_TYPES = {32: ir.FloatType(), 64: ir.DoubleType()}


def llvm_type(dtype: str) -> ir.Type:
    """The LLVM type of a value of `dtype` in a register."""
    dtype = WEAK.get(dtype, dtype)
    return FLOAT_TYPES[width(dtype)] if dtype in FLOATS else ir.IntType(1 if dtype == "bool" else width(dtype))


def width(dtype: str) -> int:
    """Bits of a number of a dtype."""
    return int(dtype.lstrip("uintfloa"))


def constant(dtype: str, value: float) -> Value:
    """A constant of `dtype`."""
    return ir.Constant(llvm_type(dtype), value)


# --- casts ----------------------------------------------------------------------------------------------------------


def emit_cast(builder: Builder, source: str, target: str, value: Value) -> Value:
    """`value` of dtype `source` as `target`, as NumPy's astype gives it."""
    source = WEAK.get(source, source)
    if source == target:
        return value
    if target == "bool":
        return is_nonzero(builder, source, value)
    if source in FLOATS:
        return _float_resize(builder, target, value) if target in FLOATS else _float_to_int(builder, target, value)
    if target in FLOATS:
        convert = builder.sitofp if source in SIGNED else builder.uitofp
        return convert(value, llvm_type(target))
    return _int_resize(builder, source, target, value)


def is_nonzero(builder: Builder, dtype: str, value: Value) -> Value:
    """The bool of a number, True for NaN."""
    if dtype in FLOATS:
        return builder.fcmp_unordered("!=", value, constant(dtype, 0.0))
    return builder.icmp_unsigned("!=", value, constant(dtype, 0))


def _float_resize(builder: Builder, target: str, value: Value) -> Value:
    convert = builder.fptrunc if target == "float32" else builder.fpext
    return convert(value, llvm_type(target))


def _int_resize(builder: Builder, source: str, target: str, value: Value) -> Value:
    before = 1 if source == "bool" else width(source)
    if width(target) == before:
        return value
    if width(target) < before:
        return builder.trunc(value, llvm_type(target))
    extend = builder.sext if source in SIGNED else builder.zext
    return extend(value, llvm_type(target))


def _float_to_int(builder: Builder, target: str, value: Value) -> Value:
    """Through int32 or int64 as C compilers convert on x86; outside their range the lowest value of those."""
    if target == "uint64":
        middle = ir.Constant(value.type, 2.0**63)
        big = builder.fcmp_ordered(">=", value, middle)
        low = _truncate_in_range(builder, "int64", value)
        high = _truncate_in_range(builder, "int64", builder.fsub(value, middle))
        return builder.select(big, builder.xor(high, constant("int64", -(2**63))), low)
    carrier = "int64" if target in ("int64", "uint32") else "int32"
    return _int_resize(builder, carrier, target, _truncate_in_range(builder, carrier, value))


def _truncate_in_range(builder: Builder, target: str, value: Value) -> Value:
    lowest = -(2.0 ** (width(target) - 1))
    # In double there are fractions between int32's lowest value and the next integer below, and they truncate into
    # range.
    if target == "int32" and isinstance(value.type, ir.DoubleType):
        above = builder.fcmp_ordered(">", value, ir.Constant(value.type, lowest - 1.0))
    else:
        above = builder.fcmp_ordered(">=", value, ir.Constant(value.type, lowest))
    below = builder.fcmp_ordered("<", value, ir.Constant(value.type, -lowest))
    # The unfit value's poison stays behind the select.
    return builder.select(
        builder.and_(above, below), builder.fptosi(value, llvm_type(target)), constant(target, int(lowest))
    )


# --- calls ----------------------------------------------------------------------------------------------------------


def call_llvm(builder: Builder, name: str, args: Sequence[Value], flags: tuple[str, ...] = ()) -> Value:
    """A call of the intrinsic `llvm.name` of the arguments' type."""
    type_ = args[0].type
    function = declare(builder.module, f"llvm.{name}.{suffix_of(type_)}", type_, len(args))
    return builder.call(function, args, fastmath=flags)


def suffix_of(type_: ir.Type) -> str:
    """The part of the names of LLVM's functions that stands for a scalar type."""
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    return next(f"f{bits}" for bits, each in FLOAT_TYPES.items() if each == type_)


def declare(module: ir.Module, name: str, type_: ir.Type, arity: int) -> ir.Function:
    """The declaration of a function of `arity` arguments of one type, which is the result's too."""
    if name in module.globals:
        return module.globals[name]
    return ir.Function(module, ir.FunctionType(type_, [type_] * arity), name)


def call_libm(builder: Builder, name: str, dtype: str, args: Sequence[Value]) -> Value:
    """A call of the function `name` of C's mathematical library, of the float type `dtype`."""
    function = declare(builder.module, name + ("f" if dtype == "float32" else ""), llvm_type(dtype), len(args))
    function.attributes.add("nounwind")
    return builder.call(function, args)


# --- integers ---------------------------------------------------------------------------------------------------------
# Quotients, remainders, shifts, powers and divisors in LLVM IR.
#
# In: a builder, a dtype and llvmlite values of it. Out: the value of the result. Integers wrap, dividing one by zero
# gives 0, and a shift by the width or more gives 0 (-1 for a negative value shifted right): nothing traps.


def _safe_divisor(builder: Builder, dtype: str, args: Sequence[Value]) -> tuple[Value, Value]:
    """True if the divisor is 0, and a divisor that cannot trap: 1 in its place and where lowest / -1 would overflow."""
    a, b = args
    zero = builder.icmp_unsigned("==", b, constant(dtype, 0))
    trap = zero
    if dtype in SIGNED:
        lowest = builder.icmp_signed("==", a, constant(dtype, -(2 ** (width(dtype) - 1))))
        minus = builder.icmp_signed("==", b, constant(dtype, -1))
        trap = builder.or_(zero, builder.and_(lowest, minus))
    return zero, builder.select(trap, constant(dtype, 1), b)


def _signed_quotient(builder: Builder, dtype: str, args: Sequence[Value]) -> tuple[Value, Value]:
    """Quotient rounded down and remainder with the divisor's sign; 0 and 0 for a divisor of 0."""
    a, b = args
    zero, divisor = _safe_divisor(builder, dtype, args)
    quotient, remainder = builder.sdiv(a, divisor), builder.srem(a, divisor)
    inexact = builder.icmp_signed("!=", remainder, constant(dtype, 0))
    opposite = builder.icmp_signed("<", builder.xor(remainder, b), constant(dtype, 0))
    shift = builder.and_(inexact, opposite)
    quotient = builder.select(shift, builder.sub(quotient, constant(dtype, 1)), quotient)
    remainder = builder.select(shift, builder.add(remainder, b), remainder)
    return builder.select(zero, constant(dtype, 0), quotient), remainder


def _power_of_two(value: Value) -> int | None:
    """The exponent where a divisor is known to be a power of two, as most are that sizes are divided by."""
    number = value.constant if isinstance(value, ir.Constant) else 0
    return number.bit_length() - 1 if isinstance(number, int) and number > 0 and not number & (number - 1) else None


def signed_floordiv(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    exponent = _power_of_two(args[1])
    if exponent is not None:  # one instruction, of some fifteen
        return builder.ashr(args[0], constant(dtype, exponent))
    return _signed_quotient(builder, dtype, args)[0]


def signed_mod(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    exponent = _power_of_two(args[1])
    if exponent is not None:
        return builder.and_(args[0], constant(dtype, 2**exponent - 1))
    return _signed_quotient(builder, dtype, args)[1]


def unsigned_floordiv(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    zero, divisor = _safe_divisor(builder, dtype, args)
    return builder.select(zero, constant(dtype, 0), builder.udiv(args[0], divisor))


def unsigned_mod(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    return builder.urem(args[0], _safe_divisor(builder, dtype, args)[1])


def signed_fmod(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    return builder.srem(args[0], _safe_divisor(builder, dtype, args)[1])


def _float_quotient(builder: Builder, dtype: str, args: Sequence[Value]) -> tuple[Value, Value]:
    """Floor quotient and remainder of floats, as numpy's npy_divmod computes them."""
    a, b = args
    zero = constant(dtype, 0.0)
    remainder = call_libm(builder, "fmod", dtype, [a, b])
    quotient = builder.fdiv(builder.fsub(a, remainder), b)
    inexact = builder.fcmp_unordered("!=", remainder, zero)
    opposite = builder.xor(builder.fcmp_ordered("<", b, zero), builder.fcmp_ordered("<", remainder, zero))
    shift = builder.and_(inexact, opposite)
    quotient = builder.select(shift, builder.fsub(quotient, constant(dtype, 1.0)), quotient)
    exact = call_llvm(builder, "copysign", [zero, b])
    remainder = builder.select(inexact, builder.select(shift, builder.fadd(remainder, b), remainder), exact)
    floor = call_llvm(builder, "floor", [quotient])
    above = builder.fcmp_ordered(">", builder.fsub(quotient, floor), constant(dtype, 0.5))
    floor = builder.select(above, builder.fadd(floor, constant(dtype, 1.0)), floor)
    plain = builder.fdiv(a, b)
    nothing = call_llvm(builder, "copysign", [zero, plain])
    floor = builder.select(builder.fcmp_unordered("!=", quotient, zero), floor, nothing)
    by_zero = builder.fcmp_ordered("==", b, zero)
    return builder.select(by_zero, plain, floor), builder.select(by_zero, constant(dtype, math.nan), remainder)


def float_floordiv(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    return _float_quotient(builder, dtype, args)[0]


MOST_EXPONENT = 65
"""Of powers of two by which floats are divided without a call: far from where numbers overflow."""


def float_mod(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    """The remainder of a floor division, as numpy's. By a power of two from 1 on it is a - floor(a / b) * b: only the
    subtraction rounds, as numpy's addition of the divisor does. The quotient of a negative number near 0 may be -0.0;
    the remainder is then rounded to b."""
    a, b = args
    literal = b.operands[0] if isinstance(b, ir.CastInstr) else b  # as of float32
    number = literal.constant if isinstance(literal, ir.Constant) else 0.0
    mantissa, exponent = math.frexp(number) if isinstance(number, float) else (0.0, 0)
    if mantissa == 0.5 and 0 < exponent <= MOST_EXPONENT:
        floor = call_llvm(builder, "floor", [builder.fmul(a, constant(dtype, 1.0 / number))])
        remainder = builder.fsub(a, builder.fmul(floor, b))
        negative = builder.fcmp_ordered("<", remainder, constant(dtype, 0.0))
        return builder.select(negative, b, remainder)
    return _float_quotient(builder, dtype, args)[1]


def shift_left(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    fits = builder.icmp_unsigned("<", args[1], constant(dtype, width(dtype)))
    return builder.select(fits, builder.shl(*args), constant(dtype, 0))


def shift_right(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    fits = builder.icmp_unsigned("<", args[1], constant(dtype, width(dtype)))
    if dtype in UNSIGNED:
        return builder.select(fits, builder.lshr(*args), constant(dtype, 0))
    beyond = builder.ashr(args[0], constant(dtype, width(dtype) - 1))
    return builder.select(fits, builder.ashr(*args), beyond)


def integer_power(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    return builder.call(_define_power(builder.module, dtype), args)


def _define_power(module: ir.Module, dtype: str) -> ir.Function:
    """base ** exponent by squaring, wrapping; a negative exponent gives 1 for 1, +-1 for -1, 0 otherwise."""
    name, type_ = f"ipow_{dtype}", llvm_type(dtype)
    if name in module.globals:
        return module.globals[name]
    function = _begin_loop(module, name, type_)
    entry, head, body, done = function.blocks
    zero, one = constant(dtype, 0), constant(dtype, 1)
    base, exponent = function.args
    builder = ir.IRBuilder(entry)
    start, times = one, exponent
    if dtype in SIGNED:
        negative = builder.icmp_signed("<", exponent, zero)
        is_one = builder.icmp_signed("==", base, one)
        is_minus = builder.icmp_signed("==", base, constant(dtype, -1))
        inverse = builder.select(builder.or_(is_one, is_minus), one, zero)
        start = builder.select(negative, inverse, one)
        odd = builder.select(is_minus, builder.and_(exponent, one), zero)
        times = builder.select(negative, odd, exponent)
    builder.branch(head)
    builder.position_at_end(head)
    result, square, left = (builder.phi(type_) for _ in range(3))
    builder.cbranch(builder.icmp_unsigned("!=", left, zero), body, done)
    builder.position_at_end(body)
    bit = builder.trunc(left, ir.IntType(1))
    following = (
        builder.select(bit, builder.mul(result, square), result),
        builder.mul(square, square),
        builder.lshr(left, one),
    )
    builder.branch(head)
    for phi, first, next_value in zip((result, square, left), (start, base, times), following, strict=True):
        phi.add_incoming(first, entry)
        phi.add_incoming(next_value, body)
    builder.position_at_end(done)
    builder.ret(result)
    return function


def philox_low(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    """The first two words of a block of Philox 4x32-10 (numerics.py)."""
    return join_words(builder, _block_of_bits(builder, args)[:2], partial(constant, "uint64"))


def philox_high(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    """The last two."""
    return join_words(builder, _block_of_bits(builder, args)[2:], partial(constant, "uint64"))


def _block_of_bits(builder: Builder, args: Sequence[Value]) -> Sequence[Value]:
    """The words of a block, written once for both halves where these stand in one basic block of a source: what a loop
    over vectors makes of two LLVM would no longer find to be the same."""
    before = builder.block.instructions
    marked = f"philox of {' '.join(str(_source_of(arg)) for arg in args)}"
    for place, each in enumerate(before):
        words = getattr(each, "philox", None)
        if words is not None and words[0] == marked:
            changed = {str(later.operands[1]) for later in before[place:] if isinstance(later, ir.StoreInstr)}
            if not changed & {str(_source_of(arg)) for arg in args}:
                return list(words[1])
    bits = philox_block(builder, args, partial(constant, "uint64"))
    builder.block.instructions[-1].philox = marked, bits
    return bits


def _source_of(value: Value) -> Value:
    """The local variable that a value was read from; else the value."""
    return value.operands[0] if isinstance(value, ir.LoadInstr) else value


def philox_block(builder: Builder, args: Sequence[Value], number: Callable[[int], Value]) -> list[Value]:
    """Four words of 32 bits, each the low half of one of 64: so products of halves are what vectors have. `number`
    makes a constant of what the arguments are."""
    words, key = philox_begun(builder, args[:2], number), args[2]
    keys = [key, builder.lshr(key, number(32))]
    for step in range(PHILOX_ROUNDS):
        now = [builder.add(each, number(step * bump)) for each, bump in zip(keys, PHILOX_BUMPS, strict=True)]
        words = philox_round(builder, words, now, number)
    return words


def philox_begun(builder: Builder, counter: Sequence[Value], number: Callable[[int], Value]) -> list[Value]:
    """The words before the first round, of an index and a draw."""
    return [part for word in counter for part in (word, builder.lshr(word, number(32)))]


def philox_round(
    builder: Builder, words: Sequence[Value], keys: Sequence[Value], number: Callable[[int], Value]
) -> list[Value]:
    """The words after a round."""
    half, low = map(number, (32, 2**32 - 1))
    sides = zip(words[::2], PHILOX_FACTORS, strict=True)
    products = [builder.mul(builder.and_(word, low), number(factor)) for word, factor in sides]
    high = [builder.lshr(product, half) for product in products]
    first, third = (builder.xor(builder.xor(high[1 - side], words[2 * side + 1]), keys[side]) for side in (0, 1))
    return [first, products[1], third, products[0]]


def join_words(builder: Builder, words: Sequence[Value], number: Callable[[int], Value]) -> Value:
    """The number of 64 bits of two words of a block."""
    half, low = map(number, (32, 2**32 - 1))
    return builder.or_(builder.and_(words[0], low), builder.shl(words[1], half))


def gcd(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    magnitudes = [_magnitude(builder, dtype, arg) for arg in args]
    return builder.call(_define_gcd(builder.module, dtype), magnitudes)


def lcm(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    """|a| / gcd * |b|, wrapping; 0 where either is 0."""
    a, b = (_magnitude(builder, dtype, arg) for arg in args)
    zero, one = constant(dtype, 0), constant(dtype, 1)
    divisor = builder.call(_define_gcd(builder.module, dtype), [a, b])
    safe = builder.select(builder.icmp_unsigned("==", divisor, zero), one, divisor)
    return builder.mul(builder.udiv(a, safe), b)


def _begin_loop(module: ir.Module, name: str, type_: ir.Type) -> ir.Function:
    """A function of two numbers with the blocks of a loop, all empty: entry, head, body and done."""
    function = ir.Function(module, ir.FunctionType(type_, [type_, type_]), name)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    for label in ("entry", "head", "body", "done"):
        function.append_basic_block(label)
    return function


def _magnitude(builder: Builder, dtype: str, value: Value) -> Value:
    """|value| as an unsigned number."""
    return value if dtype in UNSIGNED else signed_absolute(builder, dtype, [value])


def _define_gcd(module: ir.Module, dtype: str) -> ir.Function:
    """Euclid's algorithm on unsigned numbers."""
    name, type_ = f"gcd_{dtype}", llvm_type(dtype)
    if name in module.globals:
        return module.globals[name]
    function = _begin_loop(module, name, type_)
    entry, head, body, done = function.blocks
    ir.IRBuilder(entry).branch(head)
    builder = ir.IRBuilder(head)
    a, b = builder.phi(type_), builder.phi(type_)
    builder.cbranch(builder.icmp_unsigned("!=", b, constant(dtype, 0)), body, done)
    builder.position_at_end(body)
    remainder = builder.urem(a, b)
    builder.branch(head)
    for phi, first, following in ((a, function.args[0], b), (b, function.args[1], remainder)):
        phi.add_incoming(first, entry)
        phi.add_incoming(following, body)
    ir.IRBuilder(done).ret(a)
    return function


def signed_absolute(builder: Builder, dtype: str, args: Sequence[Value]) -> Value:
    negative = builder.icmp_signed("<", args[0], constant(dtype, 0))
    return builder.select(negative, builder.neg(args[0]), args[0])


# --- what llvmlite has no function for --------------------------------------------------------------------------------
# Its internals are touched here only.


def literal(type: ir.Type, text: str) -> ir.Constant:
    """A constant in a form of LLVM's that llvmlite does not write itself."""
    constant = ir.FormattedConstant(type, "0")
    constant.constant = text
    return constant


def set_attribute(function: ir.Function, attribute: str) -> None:
    """Add an attribute that llvmlite's own list, which `add` checks, lacks."""
    set.add(function.attributes, attribute)


def remove_global(module: ir.Module, name: str) -> None:
    """Take a function or a variable out of a module, so that another one may have its name."""
    del module.globals[name]
    module.scope._useset.discard(name)


def array_elements(variable: ir.GlobalVariable) -> list[ir.Constant]:
    """The constants that an array was initialised with."""
    return [*variable.initializer.constant]


def append_copy(
    builder: ir.IRBuilder, like: ir.Instruction, type: ir.Type, operands: Sequence[ir.Value]
) -> ir.Instruction:
    """An instruction once more at the end of a block, upon other operands, with a result of another type."""
    new = copy.copy(like)
    new.type = type
    new.operands, new.metadata, new.parent, new.name = list(operands), {}, builder.block, ""
    new._clear_string_cache()
    vars(new).pop("_StringReferenceCaching__cached_refstr", None)
    return append(builder, new)


def append(builder: ir.IRBuilder, instruction: ir.Instruction) -> ir.Instruction:
    """Put an instruction at the end of a block."""
    builder.block.instructions.append(instruction)
    builder.position_at_end(builder.block)
    return instruction


def loop_id(module: ir.Module, properties: Sequence[ir.MDValue]) -> ir.MDValue:
    """The metadata of one loop: by LLVM's rule its first operand is itself, so that no two loops share one."""
    loop_id = ir.MDValue(module, (), name=str(len(module.metadata)))
    loop_id.operands = (loop_id, *properties)
    return loop_id
