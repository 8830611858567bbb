"""Sine, cosine, tangent and their inverses in a few straight operations.

In: values of `real`. Out: the same, computed to the bound that each function names. Contracts and sources: see
`vecmath`; angles too large for a few operations: see `huge`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from llvmlite import ir

from graphc.codegen.llvm.values import set_attribute
from graphc.codegen.vecmath import coefficients as table
from graphc.codegen.vecmath.coefficients import PIO2_FMA, TWO_OVER_PI, TWO_OVER_PI_POINT
from graphc.codegen.vecmath.exponential import keep_tiny, round_scaled
from graphc.codegen.vecmath.floats import (
    F64,
    Bits,
    Block,
    Float,
    Format,
    Mask,
    add_exactly,
    find_any,
    fma,
    horner,
    in_double,
    multiply_exactly,
    of_one,
    polynomial,
    widen,
)
from graphc.codegen.vecmath.variants import define_guarded, define_pure, define_variants

# --- huge angles ------------------------------------------------------------------------------------------------------
# Circular functions of arguments too large to reduce in a few operations.
#
# In: an argument, the results that hold below the bound, and what to do with a reduced argument for each. Out: the
# results for every argument.
#
# Beyond the bound the argument is reduced as by Payne and Hanek (SIGNUM Newsletter 18, 1983): the bits of 2/pi that
# matter for its exponent, times its significand, in integers. That stands behind a function that returns at once
# where no lane needs it, and a loop is vectorised around a call of it (`vector_variants`).

Finish = Callable[[Float, Bits], Float]

WIDE = ir.IntType(128)
TABLE_BYTES = TWO_OVER_PI_POINT // 8 + 40


def argument_bound(format: Format, has_fma: bool) -> float:
    """The bound of |x| below which Cody and Waite's reduction by three or four parts of pi/2 is exact enough."""
    if format.name == "f32":
        return 2.0**18
    return 2.0**30 if has_fma else 2.0**20


def join_huge(x: Float, results: Sequence[tuple[str, Finish, Float]]) -> list[Float]:
    """Each of `results` where |x| is below the bound, else its `finish(r, quarters)` with x = quarters*pi/2 + r; NaN at
    infinities. The names tell functions of different `finish` apart.
    """
    block, builder = x.block, x.block.builder
    functions = [_define_guard(builder.module, name, block, finish) for name, finish, _ in results]
    values = [result.value for *_, result in results]

    def call_all() -> list[ir.Value]:
        return [builder.call(function, [x.value, value]) for function, value in zip(functions, values, strict=True)]

    if x.format.lanes == 1:  # a loop is vectorised around the calls, as it is not around a branch
        return [Float(block, value) for value in call_all()]
    before = builder.block
    with builder.if_then(find_any(builder, _are_huge(x).value), likely=False):
        joined, then = call_all(), builder.block
    merged = []
    for value, other in zip(values, joined, strict=True):
        both = builder.phi(x.value.type)
        both.add_incoming(value, before)
        both.add_incoming(other, then)
        merged.append(Float(block, both))
    return merged


def _are_huge(x: Float) -> Mask:
    """A mask: |x| is not below the bound, or is NaN."""
    return (x.magnitude() < argument_bound(x.format, x.block.has_fma)).negate()


def _define_guard(module: ir.Module, name: str, block: Block, finish: Finish) -> ir.Function:
    symbol, format = f"gc_huge_{name}_{block.format.name}", of_one(block.format)

    def define(each: str, lanes: int) -> ir.Function:
        cold = _define_cold(module, f"{symbol}_cold", format, block.has_fma, finish)
        return _define_variant(module, each, cold, block, lanes)

    return define_variants(module, symbol, block, define)


def _define_variant(module: ir.Module, symbol: str, cold: ir.Function, block: Block, lanes: int) -> ir.Function:
    """The cold function of lanes whose first argument is huge; the second argument of others."""
    format = widen(of_one(block.format), lanes) if lanes > 1 else of_one(block.format)

    def is_huge(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        return _are_huge(Float(Block(builder, format, block.has_fma, ()), x)).value

    builder, huge = define_guarded(module, symbol, format.type, is_huge)
    x, result = builder.function.args
    rest = builder.call(cold, [x]) if lanes == 1 else _call_lanes(builder, cold, x, lanes)
    builder.ret(builder.select(huge, rest, result))
    return builder.function


def _call_lanes(builder: ir.IRBuilder, cold: ir.Function, x: ir.Value, lanes: int) -> ir.Value:
    """The cold function of every lane, one after another through memory: short code, for it is hardly ever run."""
    index, type = ir.IntType(64), cold.return_value.type
    with builder.goto_entry_block():
        place = builder.alloca(type, size=lanes)
        place.align = 64
    whole = builder.bitcast(place, x.type.as_pointer())
    builder.store(x, whole)
    before, lane_block, done = builder.block, builder.append_basic_block("lane"), builder.append_basic_block("done")
    builder.branch(lane_block)
    builder.position_at_end(lane_block)
    lane = builder.phi(index)
    here = builder.gep(place, [lane], source_etype=type)
    builder.store(builder.call(cold, [builder.load(here, typ=type)]), here)
    following = builder.add(lane, index(1))
    lane.add_incoming(index(0), before)
    lane.add_incoming(following, lane_block)
    builder.cbranch(builder.icmp_unsigned("<", following, index(lanes)), lane_block, done)
    builder.position_at_end(done)
    return builder.load(whole, typ=x.type)


def _define_cold(module: ir.Module, symbol: str, format: Format, has_fma: bool, finish: Finish) -> ir.Function:
    """The function of one argument of any size, computed in float64."""
    if symbol in module.globals:
        return module.globals[symbol]
    function = define_pure(module, symbol, format.type)
    # It takes LLVM as long to optimise as all else in a small kernel.
    set_attribute(function, "optnone")
    builder = ir.IRBuilder(function.append_basic_block())
    x = Float(Block(builder, format, has_fma, ()), function.args[0]).convert(F64)
    r, quarters = _reduce(module, x)
    result = (x.magnitude() < math.inf).select(finish(r, quarters), math.nan)
    builder.ret(result.convert(format).value)
    return function


def _reduce(module: ir.Module, x: Float) -> tuple[Float, Bits]:
    """r and quarters with x = quarters*pi/2 + r, |r| <= pi/4, for 2**18 <= |x| < inf; quarters modulo 4."""
    builder = x.block.builder
    turns = _turns(module, x.magnitude().bits())
    # Half a quarter is added and subtracted again so that the fraction comes out signed.
    nearest = builder.add(turns, WIDE(1 << 125))
    quarters = Bits(x.block, builder.trunc(builder.lshr(nearest, WIDE(126)), F64.integer))
    fraction = builder.sub(builder.shl(nearest, WIDE(2)), WIDE(1 << 127))
    r = _fraction_of_quarter(module, x.block, fraction)
    negative = x < 0.0
    turned = Bits(x.block, builder.select(negative.value, (0 - quarters).value, quarters.value))
    return negative.select(-r, r), turned


def _turns(module: ir.Module, encoding: Bits) -> ir.Value:
    """|x| in whole turns, without the integer part, times 2**128."""
    builder, word = encoding.block.builder, F64.integer
    significand = (encoding & ((1 << 52) - 1)) | (1 << 52)
    exponent = (encoding >> 52) - (F64.bias + 52)
    # Bits of 2/pi that weigh 4 or more once multiplied by 2**exponent count whole turns. 185 bits below that mark are
    # enough for the closest approach of a float64 to a multiple of pi/2, which is 2**-61.
    mark = TWO_OVER_PI_POINT + 2 - exponent
    start = (mark - (192 - 7)) >> 3
    # Lanes that are not huge come here too: they may read anything in the table.
    inside = builder.icmp_unsigned("<", start.value, word(TABLE_BYTES - 24))
    first = Bits(encoding.block, builder.select(inside, start.value, word(0)))
    table = _two_over_pi(module)
    factor = builder.zext(significand.value, WIDE)
    low, middle, high = (
        builder.mul(
            builder.zext(
                builder.load(
                    builder.gep(table, [(first + offset).value], source_etype=ir.IntType(8)), typ=word, align=1
                ),
                WIDE,
            ),
            factor,
        )
        for offset in (0, 8, 16)
    )
    product = builder.add(builder.add(builder.shl(high, WIDE(64)), middle), builder.lshr(low, WIDE(64)))
    excess = (start << 3) + 192 - mark
    return builder.shl(product, builder.zext((excess & 7).value, WIDE))


def _fraction_of_quarter(module: ir.Module, block: Block, fraction: ir.Value) -> Float:
    """fraction * 2**-128 * pi/2, a signed integer's, with one rounding but for 2**-57 of it."""
    builder, word = block.builder, F64.integer
    negative = builder.icmp_signed("<", fraction, WIDE(0))
    size = builder.select(negative, builder.neg(fraction), fraction)
    count_zeros = module.declare_intrinsic("llvm.ctlz", [WIDE], ir.FunctionType(WIDE, [WIDE, ir.IntType(1)]))
    zeros = builder.call(count_zeros, [size, ir.IntType(1)(0)])
    top = Bits(block, builder.trunc(builder.lshr(builder.shl(size, zeros), WIDE(64)), word))
    high = Float(block, builder.uitofp((top & -(1 << 11)).value, F64.type))
    low = Float(block, builder.uitofp((top & ((1 << 11) - 1)).value, F64.type))
    first, second, _ = PIO2_FMA["f64"]
    product, error = multiply_exactly(high, block.real(first))
    value = product + fma(low, first, fma(high, second, error))
    # The top bit weighs 2**63 in `value` and 2**(-1 - zeros) in the fraction.
    scale = ((F64.bias - 64 - Bits(block, builder.trunc(zeros, word))) << F64.precision).real()
    scaled = value * scale
    return Float(block, builder.select(negative, (-scaled).value, scaled.value))


def _two_over_pi(module: ir.Module) -> ir.GlobalVariable:
    """The bits of 2/pi as a constant, the least byte first, with room for a window that reaches above the point."""
    name = "gc_two_over_pi"
    if name in module.globals:
        return module.globals[name]
    digits = bytearray(TWO_OVER_PI.to_bytes(TABLE_BYTES, "little"))
    data = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8), len(digits)), name)
    data.linkage, data.global_constant, data.initializer = "internal", True, ir.Constant(data.value_type, digits)
    return data


# --- trigonometric ----------------------------------------------------------------------------------------------------


# --- circular functions ---------------------------------------------------------------------------------------------


def _subtract_quarters(x: Float, j: Float) -> Float:
    """x - j*pi/2, correctly rounded but for 0.01 ulp where |x| is below the bound of `join_huge` (Cody and Waite).

    x itself for j = 0, -0 too, as all parts of pi/2 are positive and j is +0.
    """
    if x.block.has_fma:
        first, second, third = table.PIO2_FMA[x.format.name]
        begun = fma(j, -first, x)  # exact: a multiple of the last place of `first`, below 1
        return fma(j, -third, fma(j, -second, begun))
    parts = table.PIO2_SHORT[x.format.name]
    r, error = add_exactly(x - j * parts[0], j * -parts[1])
    r, rest = add_exactly(r, j * -parts[2])
    return keep_tiny(x, r + (error + rest - j * parts[3]))


def reduced_sine(r: Float) -> Float:
    """sin(r) for |r| <= pi/4: odd polynomial of degree 13 (float32: 7)."""
    z = r * r
    sine = fma(r * z, polynomial(z, table.SIN[r.format.name]), r)
    if r.block.relaxed:
        return sine
    sign = r.bits() & (1 << (r.format.width - 1))
    return (sine.bits() | sign).real()  # of -0 the sum is 0


def reduced_cosine(r: Float) -> Float:
    """cos(r) for |r| <= pi/4: even polynomial of degree 14 (float32: 8)."""
    z = r * r
    return fma(z, fma(z, polynomial(z, table.COS[r.format.name]), -0.5), 1.0)


def sine_of_half_turns(d: Float) -> Float:
    """sin(pi*d) for 0 <= d <= 1/2."""
    upper = d > 0.25
    return upper.select(reduced_cosine((0.5 - d) * math.pi), reduced_sine(d * math.pi))


def _reduce_quarter(x: Float) -> tuple[Bits, Float]:
    """k, in the low bits, and r with x = k*pi/2 + r, |r| <= pi/4."""
    bits, k = round_scaled(x, 2.0 / math.pi)
    return bits, _subtract_quarters(x, k)


def _turned_sine(r: Float, quarters: Bits) -> Float:
    """sin(r + quarters*pi/2)."""
    value = quarters.bit(0).select(reduced_cosine(r), reduced_sine(r))
    return (value.bits() ^ ((quarters >> 1) << (r.format.width - 1))).real()


def _turned_cosine(r: Float, quarters: Bits) -> Float:
    """cos(r + quarters*pi/2)."""
    return _turned_sine(r, quarters + 1)


def _circular(x: Float, **finishes: Finish) -> list[Float]:
    """The results of these functions for a reduced argument; the names tell them apart."""
    quarters, r = _reduce_quarter(x)
    results = [(name, finish, finish(r, quarters)) for name, finish in finishes.items()]
    if x.block.relaxed:
        small = x.magnitude() < argument_bound(x.format, x.block.has_fma)
        return [small.select(result, math.nan) for *_, result in results]
    return join_huge(x, results)


def sin(x: Float) -> Float:
    """The sine, 2 ulp: +-sin(r) or +-cos(r), r = x - k*pi/2; for huge |x| see `huge`."""
    if x.format.is_single and not x.block.has_fma:
        return in_double(sin, x)
    return _circular(x, sin=_turned_sine)[0]


def cos(x: Float) -> Float:
    """The cosine, 2 ulp: the sine a quarter turn on."""
    if x.format.is_single and not x.block.has_fma:
        return in_double(cos, x)
    return _circular(x, cos=_turned_cosine)[0]


def sincos(x: Float) -> tuple[Float, ...]:
    """The sine and the cosine, which share all but their last operations."""
    if x.format.is_single and not x.block.has_fma:
        return sin(x), cos(x)
    return tuple(_circular(x, sin=_turned_sine, cos=_turned_cosine))


def _tangent(r: Float, quarters: Bits) -> Float:
    """tan(r + quarters*pi/2)."""
    sine, cosine, odd = reduced_sine(r), reduced_cosine(r), quarters.bit(0)
    return odd.select(-cosine, sine) / odd.select(sine, cosine)


def tan(x: Float) -> Float:
    """The tangent, 3 ulp: sin(r) / cos(r) or -cos(r) / sin(r); for huge |x| see `huge`."""
    if x.format.is_single and not x.block.has_fma:
        return in_double(tan, x)
    return _circular(x, tan=_tangent)[0]


# --- inverse circular functions -------------------------------------------------------------------------------------


def _below(turn: float, x: Float, format: Format) -> Float:
    """turn * pi/2 - x, the constant in two parts."""
    high, low, _ = table.PIO2_FMA[format.name]
    return turn * high - (x - turn * low)


def _atan_of_quotient(t: Float) -> Float:
    """atan(t) for 0 <= t <= 1: odd polynomial of degree 41 (float32: 19)."""
    z = t * t
    return fma(t * z, horner(z, table.ATAN[t.format.name]), t)


def atan(x: Float) -> Float:
    """The inverse tangent, 2 ulp: for |x| > 1 as pi/2 - atan(1/|x|)."""
    size = x.magnitude()
    steep = size > 1.0
    angle = _atan_of_quotient(steep.select(1.0 / size, size))
    return steep.select(_below(1.0, angle, x.format), angle).with_sign(x)


def atan2(y: Float, x: Float) -> Float:
    """The angle of the point (x, y), 2 ulp: atan of the lesser size over the greater, then by octants."""
    rise, run = y.magnitude(), x.magnitude()
    steep = rise > run
    less, more = steep.select(run, rise), steep.select(rise, run)
    t = less.equals(more).select(more.equals(0.0).select(0.0, 1.0), less / more)
    angle = _atan_of_quotient(t)
    angle = steep.select(_below(1.0, angle, x.format), angle)
    left = x.bits().bit(x.format.width - 1)
    return left.select(_below(2.0, angle, x.format), angle).with_sign(y)


def _asin_parts(x: Float) -> tuple[Mask, Float]:
    """True if |x| > 0.545, and asin(|x|), or there asin(sqrt((1-|x|)/2)) = pi/4 - asin(|x|)/2: odd polynomial of degree
    29 (float32: 13).
    """
    size = x.magnitude()
    near_one = size > 0.545
    z = near_one.select(fma(size, -0.5, 0.5), x * x)
    s = near_one.select(z.root(), size)
    return near_one, fma(s * z, polynomial(z, table.ASIN[x.format.name]), s)


def asin(x: Float) -> Float:
    """The inverse sine, 2 ulp: for |x| > 0.545 as pi/2 - 2 asin(sqrt((1-|x|)/2)), fdlibm's way."""
    near_one, angle = _asin_parts(x)
    return near_one.select(_below(1.0, angle + angle, x.format), angle).with_sign(x)


def acos(x: Float) -> Float:
    """The inverse cosine, 2 ulp: 2 asin(sqrt((1-x)/2)) for x > 0.545, pi less that for x < -0.545, else pi/2 - asin."""
    near_one, angle = _asin_parts(x)
    double = angle + angle
    outer = (x < 0.0).select(_below(2.0, double, x.format), double)
    return near_one.select(outer, _below(1.0, angle.with_sign(x), x.format))
