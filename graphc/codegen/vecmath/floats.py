"""Arithmetic written as formulas, emitted as LLVM IR.

In: an llvmlite builder and values of type float or double. Out: the same values wrapped so that `a * b + 1.0`, `a < b`
and `mask.select(a, b)` append one instruction each to the builder's block. No instruction carries a fast-math flag: the
formulas of `vecmath` depend on the exact order of rounding.

`Float` is a floating-point value, `Bits` the integer of the same width, `Mask` an i1. A Python number beside one of
them becomes a constant of its type. In a format that `widen` made, all are vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from llvmlite import ir

from graphc.codegen.llvm.target import usual_width
from graphc.codegen.llvm.values import literal
from graphc.startup.record import record

# --- lanes ------------------------------------------------------------------------------------------------------------
# Vectors that are parts of longer ones.
#
# In: an llvmlite builder, values. Out: those of other lengths.

LANE = ir.IntType(32)


def lanes_from(first: int, count: int) -> ir.Constant:
    """`count` lanes of a vector, in order."""
    return lanes_at(range(first, first + count))


def lanes_at(places: Iterable[int]) -> ir.Constant:
    """Lanes of a vector, for those of another one."""
    lanes = [LANE(place) for place in places]
    return ir.Constant(ir.VectorType(LANE, len(lanes)), lanes)


def vector_of(type: ir.Type, lanes: int) -> ir.Type:
    """The vector type, or for one lane the type itself."""
    return type if lanes == 1 else ir.VectorType(type, lanes)


def join_vectors(builder: ir.IRBuilder, vectors: Sequence[ir.Value]) -> ir.Value:
    """One vector of the lanes of several."""
    while len(vectors) > 1:
        whole = lanes_from(0, 2 * vectors[0].type.count)
        vectors = [builder.shuffle_vector(*pair, whole) for pair in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def call_in_parts(
    builder: ir.IRBuilder, function: ir.Function, arguments: Sequence[ir.Value], fixed: Sequence[ir.Value] = ()
) -> ir.Value:
    """A function of vectors for longer ones, called for some of their numbers after the other; `fixed`: what it takes
    besides each time."""
    lanes, at_once = arguments[0].type.count, function.args[0].type.count
    results = []
    for first in range(0, lanes, at_once):
        some = lanes_from(first, at_once)
        parts = [builder.shuffle_vector(argument, argument, some) for argument in arguments]
        results.append(builder.call(function, [*parts, *fixed]))
    if not isinstance(results[0].type, ir.LiteralStructType):
        return join_vectors(builder, results)
    places = range(len(results[0].type.elements))
    return as_struct(
        builder, [join_vectors(builder, [builder.extract_value(e, place) for e in results]) for place in places]
    )


def as_struct(builder: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """Several values as one."""
    whole: ir.Value = ir.Constant(ir.LiteralStructType([value.type for value in values]), ir.Undefined)
    for place, value in enumerate(values):
        whole = builder.insert_value(whole, value, place)
    return whole


# --- floats -----------------------------------------------------------------------------------------------------------


@record()
class Format:
    """An IEEE 754 binary format: `precision` counts the stored significand bits, `bias` is the exponent's."""

    name: str
    type: ir.Type
    integer: ir.Type
    precision: int
    bias: int

    @property
    def width(self) -> int:
        """The number of bits."""
        return int(_element(self.integer).width)

    @property
    def lanes(self) -> int:
        """The numbers in a value: more than one in a format that `widen` made."""
        return int(self.integer.count) if isinstance(self.integer, ir.VectorType) else 1

    @property
    def is_single(self) -> bool:
        """True if it is binary32's, or that of vectors of it."""
        return self.name == "f32"

    @property
    def rounder(self) -> float:
        """1.5 * 2**precision: adding it to |x| < 2**(precision-1) rounds to an integer, found in the low bits of the
        sum.
        """
        return 1.5 * 2.0**self.precision

    @property
    def rounder_bits(self) -> int:
        """The encoding of `rounder`."""
        return ((self.bias + self.precision) << self.precision) | (1 << (self.precision - 1))

    @property
    def one_bits(self) -> int:
        """The encoding of 1.0."""
        return self.bias << self.precision

    @property
    def smallest_normal(self) -> float:
        """The least positive number of full precision."""
        return 2.0 ** (1 - self.bias)


AVX512 = 512
"""The bits of vectors that only processors with AVX-512 have."""
CURRENT_ROUNDING = 4
"""Says to its intrinsics that the rounding mode is the one that is set."""
F32 = Format("f32", ir.FloatType(), ir.IntType(32), 23, 127)
F64 = Format("f64", ir.DoubleType(), ir.IntType(64), 52, 1023)


def _element(type: ir.Type) -> ir.Type:
    """The element type of a vector; another type itself."""
    return type.element if isinstance(type, ir.VectorType) else type


def widen(format: Format, lanes: int) -> Format:
    """The format of a vector of `lanes` numbers."""
    real, integer = (ir.VectorType(type, lanes) for type in (format.type, format.integer))
    return Format(format.name, real, integer, format.precision, format.bias)


def of_one(format: Format) -> Format:
    """The format of the numbers of a vector."""
    return F32 if format.is_single else F64


def find_format(type: ir.Type) -> Format:
    """The format of an LLVM type. Raises TypeError for anything but float and double."""
    for format in (F32, F64):
        if type == format.type:
            return format
    raise TypeError(f"vector math is defined for float and double, not for {type}")


@record()
class Block:
    """The end of the code so far: its builder, the format of its values, whether the CPU multiplies and adds with one
    rounding, the bits of the vectors that a loop may have there, and whether the formulas may be those of fast math.
    """

    builder: ir.IRBuilder
    format: Format
    has_fma: bool
    widths: tuple[int, ...]
    relaxed: bool = False

    def real(self, value: Float | float) -> Float:
        """The value itself, or a floating-point constant."""
        return value if isinstance(value, Float) else Float(self, splat(self.format.type, float(value)))

    def bits(self, value: Bits | int) -> Bits:
        """The value itself, or an integer constant, reduced to the width."""
        if isinstance(value, Bits):
            return value
        return Bits(self, splat(self.format.integer, value % (1 << self.format.width)))

    @property
    def scales(self) -> bool:
        """True if an instruction multiplies the block's vectors by powers of two: AVX-512's. Single numbers do without,
        since LLVM vectorises no loop around such an instruction."""
        return AVX512 in self.widths and self.format.lanes * self.format.width >= 128

    def intrinsic(self, name: str, arity: int) -> ir.Function:
        """LLVM's function of this name for the block's type."""
        type, module = self.format.type, self.builder.module
        signature = ir.FunctionType(type, [type] * arity)
        if not isinstance(type, ir.VectorType):
            return module.declare_intrinsic(name, [type], signature)
        symbol = f"{name}.v{type.count}f{self.format.width}"
        return module.globals.get(symbol) or ir.Function(module, signature, symbol)


def splat(type: ir.Type, value: float) -> ir.Constant:
    """A number, in every lane of a vector."""
    if not isinstance(type, ir.VectorType):
        return ir.Constant(type, value)
    # Spelt out, the number would be repeated for every lane.
    return literal(type, f"splat ({ir.Constant(type.element, value)})")


def _real_operation(opcode: str) -> tuple[Callable[[Float, Float | float], Float], Callable[[Float, float], Float]]:
    """An operation of two floating-point values, and of a constant and one."""

    def emit(block: Block, left: Float | float, right: Float | float) -> Float:
        return Float(block, getattr(block.builder, opcode)(block.real(left).value, block.real(right).value))

    return (lambda self, other: emit(self.block, self, other)), (lambda self, other: emit(self.block, other, self))


def _relation(relation: str) -> Callable[[Float, Float | float], Mask]:
    def compare(self: Float, other: Float | float) -> Mask:
        return Mask(self.block, self.block.builder.fcmp_ordered(relation, self.value, self.block.real(other).value))

    return compare


def _bits_operation(opcode: str) -> Callable[[Bits, Bits | int], Bits]:
    def emit(self: Bits, other: Bits | int) -> Bits:
        return Bits(self.block, getattr(self.block.builder, opcode)(self.value, self.block.bits(other).value))

    return emit


@record(eq=False)
class Float:
    """A floating-point value in a block."""

    block: Block
    value: ir.Value

    @property
    def format(self) -> Format:
        """The format of the block."""
        return self.block.format

    __add__, __radd__ = _real_operation("fadd")
    __sub__, __rsub__ = _real_operation("fsub")
    __mul__, __rmul__ = _real_operation("fmul")
    __truediv__, __rtruediv__ = _real_operation("fdiv")
    __lt__, __le__ = _relation("<"), _relation("<=")
    __gt__, __ge__ = _relation(">"), _relation(">=")
    equals = _relation("==")
    """True where the two are equal; never for NaN."""

    def __neg__(self) -> Float:
        return Float(self.block, self.block.builder.fneg(self.value))

    def at_most(self, bound: float) -> Float:
        """The lesser of the value and a constant; NaN stays."""
        return (self > bound).select(bound, self)

    def at_least(self, bound: float) -> Float:
        """The greater of the value and a constant; NaN stays."""
        return (self < bound).select(bound, self)

    def magnitude(self) -> Float:
        """|x|."""
        return self._call("llvm.fabs")

    def root(self) -> Float:
        """The square root, correctly rounded."""
        return self._call("llvm.sqrt")

    def with_sign(self, sign: Float) -> Float:
        """The value with the sign bit of another."""
        return self._call("llvm.copysign", sign)

    def scaled(self, k: Float) -> Float:
        """x * 2**k for whole k, rounded once, where `block.scales`."""
        return Float(self.block, scale_vectors(self.block, self.value, k.value))

    def _call(self, name: str, *others: Float) -> Float:
        intrinsic = self.block.intrinsic(name, 1 + len(others))
        return Float(self.block, self.block.builder.call(intrinsic, [self.value, *(other.value for other in others)]))

    def bits(self) -> Bits:
        """The encoding as an integer."""
        return Bits(self.block, self.block.builder.bitcast(self.value, self.format.integer))

    def convert(self, format: Format) -> Float:
        """The value in another format; that of one number stands for vectors of as many as this one has."""
        if format.width == self.format.width:
            return self
        builder, lanes = self.block.builder, self.format.lanes
        if format.lanes != lanes:
            format = widen(format, lanes)
        block = Block(builder, format, self.block.has_fma, self.block.widths, self.block.relaxed)
        cast = builder.fpext if format.width > self.format.width else builder.fptrunc
        return Float(block, cast(self.value, format.type))


@record(eq=False)
class Bits:
    """An integer of the format's width in a block; arithmetic wraps."""

    block: Block
    value: ir.Value

    __add__ = _bits_operation("add")
    __sub__ = _bits_operation("sub")
    __and__ = _bits_operation("and_")
    __or__ = _bits_operation("or_")
    __xor__ = _bits_operation("xor")
    __lshift__ = _bits_operation("shl")
    __rshift__ = _bits_operation("lshr")
    """A logical shift: AVX2 has no arithmetic one for 64 bits."""

    def __rsub__(self, other: int) -> Bits:
        return self.block.bits(other) - self

    def bit(self, position: int) -> Mask:
        """True if a bit is set."""
        return Mask(
            self.block, self.block.builder.icmp_unsigned("!=", (self & (1 << position)).value, self.block.bits(0).value)
        )

    def real(self) -> Float:
        """The value with this encoding."""
        return Float(self.block, self.block.builder.bitcast(self.value, self.block.format.type))


@record(eq=False)
class Mask:
    """A truth value in a block."""

    block: Block
    value: ir.Value

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.block, self.block.builder.and_(self.value, other.value))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.block, self.block.builder.or_(self.value, other.value))

    def negate(self) -> Mask:
        """True where the mask is not."""
        return Mask(self.block, self.block.builder.not_(self.value))

    def select(self, true: Float | float, false: Float | float) -> Float:
        """`true` where the mask holds, else `false`; both are computed."""
        left, right = self.block.real(true), self.block.real(false)
        return Float(self.block, self.block.builder.select(self.value, left.value, right.value))


def scale_vectors(block: Block, x: ir.Value, k: ir.Value) -> ir.Value:
    """x * 2**k by AVX-512's instruction, for vectors as long as loops have, one after the other."""
    builder, format = block.builder, block.format
    lanes = min(format.lanes, usual_width() // format.width)
    bits, one = lanes * format.width, ir.VectorType(of_one(format).type, lanes)
    symbol = f"llvm.x86.avx512.mask.scalef.p{'s' if format.is_single else 'd'}.{bits}"
    fixed = [ir.Constant(one, ir.Undefined), ir.IntType(max(lanes, 8))(-1)]
    if bits == AVX512:
        fixed.append(LANE(CURRENT_ROUNDING))
    signature = ir.FunctionType(one, [one, one, *(each.type for each in fixed)])
    function = builder.module.globals.get(symbol) or ir.Function(builder.module, signature, symbol)
    if lanes == format.lanes:
        return builder.call(function, [x, k, *fixed])
    return call_in_parts(builder, function, [x, k], fixed)


def look_up(index: Bits, name: str, values: tuple[float, ...]) -> Float:
    """values[index] in every lane, from a constant of this name in the module."""
    builder, type = index.block.builder, _element(index.block.format.type)
    module, row = builder.module, ir.ArrayType(type, len(values))
    if name not in module.globals:
        data = ir.GlobalVariable(module, row, name)
        data.linkage, data.global_constant, data.initializer = "internal", True, ir.Constant(row, values)

    def load(place: ir.Value) -> ir.Value:
        return builder.load(builder.gep(module.globals[name], [place], source_etype=type), typ=type)

    if not isinstance(index.value.type, ir.VectorType):
        return Float(index.block, load(index.value))
    entries = index.block.real(0.0).value
    for lane in map(ir.IntType(32), range(index.value.type.count)):
        entries = builder.insert_element(entries, load(builder.extract_element(index.value, lane)), lane)
    return Float(index.block, entries)


def find_any(builder: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    """True if a truth value holds, of a vector any."""
    if not isinstance(mask.type, ir.VectorType):
        return mask
    bits = ir.IntType(mask.type.count)
    return builder.icmp_unsigned("!=", builder.bitcast(mask, bits), bits(0))


def repeat(
    start: int, last: Float, first: tuple[Float, ...], step: Callable[[Float, tuple[Float, ...]], tuple[Float, ...]]
) -> tuple[Float, ...]:
    """In each lane `first` after `step` with start, start + 1 and so on up to `last`, by a loop that ends when all
    lanes have.
    """
    block, builder = last.block, last.block.builder
    before, body, after = builder.block, builder.append_basic_block("step"), builder.append_basic_block("after")
    builder.branch(body)
    builder.position_at_end(body)
    begins = (block.real(float(start)), *first)
    number, *values = (Float(block, builder.phi(block.format.type)) for _ in begins)
    stepped, goes_on = step(number, tuple(values)), last >= number
    following = number + 1.0
    ends = (following, *(goes_on.select(new, old) for new, old in zip(stepped, values, strict=True)))
    for phi, begin, end in zip((number, *values), begins, ends, strict=True):
        phi.value.add_incoming(begin.value, before)
        phi.value.add_incoming(end.value, body)
    builder.cbranch(find_any(builder, (last >= following).value), body, after)
    builder.position_at_end(after)
    return ends[1:]


def nearest_whole(x: Float) -> Float:
    """The whole number nearest to x, of two the even one, for -0.25 <= x < 2**precision."""
    whole = 2.0**x.format.precision
    return (x + whole) - whole


def in_double(function: Callable[[Float], Float], x: Float) -> Float:
    """A function of a value computed in float64."""
    return function(x.convert(F64)).convert(x.format)


def fma(a: Float, b: Float | float, c: Float | float) -> Float:
    """a * b + c, rounded once where the CPU can and twice elsewhere: there `llvm.fma` would be a slow call to libm."""
    left, right, addend = a, a.block.real(b), a.block.real(c)
    if not a.block.has_fma:
        return left * right + addend
    return left._call("llvm.fma", right, addend)


def polynomial(x: Float, coefficients: tuple[float, ...]) -> Float:
    """The sum of coefficients[i] * x**i: even and odd powers by Horner's rule side by side, the first added last."""
    first, *rest = coefficients
    if len(rest) < 4:
        return horner(x, coefficients)
    square = x * x
    return fma(fma(horner(square, tuple(rest[1::2])), x, horner(square, tuple(rest[0::2]))), x, first)


def horner(x: Float, coefficients: tuple[float, ...]) -> Float:
    """`polynomial` in one chain: more exact where even and odd powers cancel."""
    total = x.block.real(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = fma(total, x, coefficient)
    return total


def horner_with_slope(x: Float, y: Float, coefficients: tuple[float, ...]) -> tuple[Float, Float]:
    """A polynomial P at x, and its difference quotient (P(x) - P(y)) / (x - y), or at x = y its derivative."""
    value, slope = x.block.real(coefficients[-1]), x.block.real(0.0)
    for coefficient in reversed(coefficients[:-1]):
        value, slope = fma(value, x, coefficient), fma(slope, y, value)
    return value, slope


def add_exactly(a: Float, b: Float) -> tuple[Float, Float]:
    """The rounded sum and its exact error (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B)."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def add_lesser(a: Float, b: Float) -> tuple[Float, Float]:
    """`add_exactly` where |a| >= |b| or a is 0, in half as many steps."""
    total = a + b
    return total, b - (total - a)


def residual(total: Float, a: Float, b: Float) -> Float:
    """total - a * b, exact where `total` is the rounded product or close to it."""
    if a.block.has_fma:
        return fma(-a, b, total)
    product, error = multiply_exactly(a, b)
    return (total - product) - error


def multiply_exactly(a: Float, b: Float) -> tuple[Float, Float]:
    """The rounded product and its exact error, barring over- and underflow (Dekker, Numer. Math. 18, 1971, where there
    is no FMA).
    """
    product = a * b
    if a.block.has_fma:
        return product, fma(a, b, -product)
    a_high, a_low = split_bits(a)
    b_high, b_low = split_bits(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def split_bits(x: Float) -> tuple[Float, Float]:
    """The leading half of the significand's bits and the rest: their sum is x, and the products of halves are exact."""
    high = (x.bits() & -(1 << (x.format.precision // 2 + 1))).real()
    return high, x - high


# --- double -----------------------------------------------------------------------------------------------------------
# Numbers as sums of two floating-point values, the second of which is what rounding took from the first.
#
# In: values of `real`, barring over- and underflow. Out: pairs whose sum is right to about twice the precision
# (Dekker, Numer. Math. 18, 1971).


Pair = tuple[Float, Float]


def add_pairs(a: Pair, b: Pair) -> Pair:
    """a + b."""
    total, error = add_exactly(a[0], b[0])
    return total, error + (a[1] + b[1])


def multiply_pairs(a: Pair, b: Pair) -> Pair:
    """a * b."""
    product, error = multiply_exactly(a[0], b[0])
    return product, fma(a[0], b[1], fma(a[1], b[0], error))


def scale_pair(a: Pair, factor: Float) -> Pair:
    """a * factor."""
    product, error = multiply_exactly(a[0], factor)
    return product, fma(a[1], factor, error)


def divide_pairs(a: Pair, b: Pair) -> Pair:
    """a / b."""
    inverse = 1.0 / b[0]
    quotient = a[0] * inverse
    rest = residual(a[0], quotient, b[0]) + fma(-quotient, b[1], a[1])
    return quotient, rest * inverse
