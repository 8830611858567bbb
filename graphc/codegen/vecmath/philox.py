"""Random words and numbers made of them, two of each block of Philox 4x32-10 (numerics.py says which).

In: counters, a draw and a key, numbers of 64 bits or vectors of them. Out: a word or a number of each counter; of
counters that follow on one another, from an even one on, both halves of half as many blocks, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from llvmlite import ir

from graphc.arrays import portable
from graphc.arrays.numerics import PHILOX_BUMPS, PHILOX_ROUNDS
from graphc.codegen.llvm.values import join_words, philox_begun, philox_block, philox_round
from graphc.codegen.vecmath.floats import F64, LANE, Bits, Block, Float, in_double, lanes_at, vector_of

# --- portable functions -----------------------------------------------------------------------------------------------
# Functions that have the same bits on every machine, in LLVM IR (graphc/arrays/portable.py has the formulas).
#
# In: values of `real`, or words of `bits`. Out: the same. The formulas multiply and add in two steps on every
# processor, and no instruction carries a flag under which LLVM could join these: so they need no word of the
# processor.

Halves = Callable[[Bits, Bits], tuple[ir.Value, ir.Value]]


def portable_log(x: Float) -> Float:
    """The natural logarithm, 1 ulp."""
    found: Float = portable.log(x) if not x.format.is_single else in_double(portable_log, x)
    return found


def portable_exp(x: Float) -> Float:
    """e**x, 2 ulp."""
    found: Float = portable.exp(x) if not x.format.is_single else in_double(portable_exp, x)
    return found


def portable_arccos(x: Float) -> Float:
    """The inverse cosine, 3 ulp."""
    found: Float = portable.arccos(x) if not x.format.is_single else in_double(portable_arccos, x)
    return found


def normals(low: Bits, high: Bits) -> tuple[ir.Value, ir.Value]:
    """Two normal numbers of two words."""
    cosine, sine = portable.normals(low, high)
    return cosine.value, sine.value


def of_each(function: Callable[[Bits], Float]) -> Halves:
    """A number of each of two words."""
    return lambda low, high: (function(low).value, function(high).value)


DRAWN: dict[str, Halves] = {
    "philoxnormal": normals,
    "philoxexponential": of_each(portable.exponential),
    "philoxgumbel": of_each(portable.gumbel),
    "philoxlogistic": of_each(portable.logistic),
    "philoxlaplace": of_each(portable.laplace),
    "philoxcauchy": of_each(portable.cauchy),
}
"""The numbers made of the two words of a block, by the names of functions of counters."""


# --- philox -----------------------------------------------------------------------------------------------------------


def _words(low: Bits, high: Bits) -> tuple[ir.Value, ir.Value]:
    return low.value, high.value


def _units(low: Bits, high: Bits) -> tuple[ir.Value, ir.Value]:
    """Two numbers in [0, 1), of 53 bits."""
    block = low.block
    first, second = (block.builder.sitofp((word >> 11).value, block.format.type) for word in (low, high))
    return tuple((Float(block, number) * 2.0**-53).value for number in (first, second))


COUNTED: dict[str, Halves] = {"philox": _words, "philoxunit": _units, **DRAWN}
"""Functions of a counter, a draw and a key, by what they make of the two words of a block."""


def number_type(name: str) -> ir.Type:
    """The type of the result for a counter."""
    return F64.integer if COUNTED[name] is _words else F64.type


def each_counter(name: str, block: Block, index: ir.Value, draw: ir.Value, key: ir.Value) -> ir.Value:
    """The numbers of any counters: a block for each."""
    builder, counters = block.builder, Bits(block, index)
    first, second = _halves(name, block, (counters >> 1).value, draw, key)
    return builder.select(counters.bit(0).value, second, first)


def in_order(name: str, block: Block, first: ir.Value, draw: ir.Value, key: ir.Value) -> ir.Value:
    """Return the words of the counters from `first` on, an even one: two for each number of the block's format."""
    builder, lanes = block.builder, block.format.lanes
    half = builder.lshr(first, F64.integer(1))
    if lanes == 1:
        pair = ir.Constant(vector_of(number_type(name), 2), ir.Undefined)
        for place, number in enumerate(_halves(name, block, half, draw, key)):
            pair = builder.insert_element(pair, number, LANE(place))
        return pair
    begun = repeated(builder, half, lanes)
    index = builder.add(begun, ir.Constant(begun.type, [*range(lanes)]))
    halves = _halves(name, block, index, repeated(builder, draw, lanes), key)
    return builder.shuffle_vector(*halves, lanes_at(place // 2 + place % 2 * lanes for place in range(2 * lanes)))


def _halves(name: str, block: Block, *counter: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The numbers made of the two halves of each block."""

    def number(value: int) -> ir.Value:
        return block.bits(value).value

    blocks = philox_block if block.format.lanes == 1 else _looped_words
    words = blocks(block.builder, counter, number)
    join = partial(join_words, number=number) if block.format.lanes == 1 else _joined_words
    low, high = (Bits(block, join(block.builder, some)) for some in (words[:2], words[2:]))
    return COUNTED[name](low, high)


def _joined_words(builder: ir.IRBuilder, words: Sequence[ir.Value]) -> ir.Value:
    """The numbers of two words of 32 bits each, which stand in the first halves of those of 64: said with shifts, LLVM
    would multiply by more."""
    count = words[0].type.count
    first, second = (builder.bitcast(word, vector_of(LANE, 2 * count)) for word in words)
    places = (2 * (place // 2) + place % 2 * 2 * count for place in range(2 * count))
    return builder.bitcast(builder.shuffle_vector(first, second, lanes_at(places)), words[0].type)


def _looped_words(
    builder: ir.IRBuilder, counter: Sequence[ir.Value], number: Callable[[int], ir.Value]
) -> list[ir.Value]:
    """The words of blocks, by a loop over rounds: of vectors it is as fast as rounds one after another, and compiled in
    a part of the time. One key of all blocks is carried as a number."""
    index, draw, key = counter
    is_one = key.type != index.type
    of_key = F64.integer if is_one else number
    begins = (*philox_begun(builder, (index, draw), number), key, builder.lshr(key, of_key(32)))
    before, body, after = builder.block, builder.append_basic_block("round"), builder.append_basic_block("rounds_done")
    builder.branch(body)
    builder.position_at_end(body)
    step, *given = (builder.phi(each.type) for each in (F64.integer(0), *begins))
    keys = [repeated(builder, each, index.type.count) for each in given[4:]] if is_one else given[4:]
    words = philox_round(builder, given[:4], keys, number)
    bumped = [builder.add(each, of_key(bump)) for each, bump in zip(given[4:], PHILOX_BUMPS, strict=True)]
    following = builder.add(step, F64.integer(1))
    ends = (following, *words, *bumped)
    for phi, begin, end in zip((step, *given), (F64.integer(0), *begins), ends, strict=True):
        phi.add_incoming(begin, before)
        phi.add_incoming(end, body)
    builder.cbranch(builder.icmp_unsigned("<", following, F64.integer(PHILOX_ROUNDS)), body, after)
    builder.position_at_end(after)
    return words


def repeated(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A number in each lane of a vector."""
    one = builder.insert_element(ir.Constant(vector_of(value.type, lanes), ir.Undefined), value, LANE(0))
    return builder.shuffle_vector(one, one, lanes_at([0] * lanes))
