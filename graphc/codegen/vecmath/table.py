"""Elementary functions in LLVM IR that a loop can be vectorised around.

In: a module, a function's name, a floating-point type, whether the CPU has fused multiply-add and how long its vectors
are. Out: a small internal function `gc_<name>_<f32|f64>` in that module, straight-line code to be inlined into the loop
that calls it; or, where that loop should call it (`math_calls`), one for vectors.

Every function is branch-free: both sides of a case are computed and one is selected. Only what few arguments need and
takes long, huge angles (`huge`) and log_gamma of negative numbers (`negative`), is left to a function that looks
whether a vector has such an argument; loops are vectorised around its calls. Special values are those of C99, Annex F.
The error bounds that each names are in units in the last place (ulp) of the result, over the whole domain, with fused
multiply-add or without, measured against 160 bits; `tests` assert them. No instruction may carry a fast-math flag: with
`reassoc` LLVM folds the constants that these formulas add and subtract for the sake of rounding.

Sources of the methods: Cody and Waite, Software Manual for the Elementary Functions (1980); Tang, Table-driven
implementation of the exponential and logarithm functions (ACM TOMS 15, 1989; 16, 1990; 18, 1992), here with polynomials
instead of tables; Sun's fdlibm (1993); Muller, Elementary Functions (3rd ed., 2016). The coefficients are our own, see
`coefficients`.

Each function stands in `exponential`, `trigonometric` or `gamma`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from inspect import signature
from typing import Any

from llvmlite import ir

from graphc.arrays import portable
from graphc.arrays.numerics import PHILOX_BUMPS, PHILOX_ROUNDS
from graphc.codegen.llvm.target import has_fma, usual_width, vector_widths
from graphc.codegen.llvm.values import join_words, philox_begun, philox_block, philox_round, remove_global
from graphc.codegen.vecmath.exponential import (
    acosh,
    asinh,
    atanh,
    cbrt,
    cosh,
    exp,
    exp2,
    expm1,
    hypot,
    log,
    log1p,
    log2,
    log10,
    pow,
    sigmoid,
    sinh,
    softplus,
    tanh,
)
from graphc.codegen.vecmath.floats import (
    F32,
    F64,
    LANE,
    Bits,
    Block,
    Float,
    Format,
    as_struct,
    call_in_parts,
    find_format,
    in_double,
    lanes_at,
    vector_of,
    widen,
)
from graphc.codegen.vecmath.gamma import digamma, erf, erfc, erfcx, gammaln, trigamma
from graphc.codegen.vecmath.trigonometric import acos, asin, atan, atan2, cos, sin, sincos, tan
from graphc.codegen.vecmath.variants import call_for_one, declare_pure, limit_vectors
from graphc.startup.record import record, replace

# --- portable functions -----------------------------------------------------------------------------------------------
# Functions that have the same bits on every machine, in LLVM IR (graphc/arrays/portable.py has the formulas).
#
# In: values of `real`, or words of `bits`. Out: the same. The formulas multiply and add in two steps on every
# processor, and no instruction carries a flag under which LLVM could join these: so they need no word of the
# processor.

Kernel = Callable[..., Float]
Halves = Callable[[Bits, Bits], tuple[ir.Value, ir.Value]]


def _in_float64(formula: Callable[[Any], Any]) -> Kernel:
    return lambda x: in_double(formula, x) if x.format.is_single else formula(x)


PORTABLE: dict[str, Kernel] = {
    "portable_log": _in_float64(portable.log),  # 1 ulp
    "portable_exp": _in_float64(portable.exp),  # 2 ulp
    "portable_arccos": _in_float64(portable.arccos),  # 3 ulp
}


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


# --- random words: Philox ---------------------------------------------------------------------------------------------
# In: counters, a draw and a key, numbers of 64 bits or vectors of them. Out: a word or a number of each counter; of
# counters that follow on one another, from an even one on, both halves of half as many blocks, one after the other.


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
    step, *phis = (builder.phi(each.type) for each in (F64.integer(0), *begins))
    keys = [repeated(builder, each, index.type.count) for each in phis[4:]] if is_one else phis[4:]
    words = philox_round(builder, phis[:4], keys, number)
    bumped = [builder.add(each, of_key(bump)) for each, bump in zip(phis[4:], PHILOX_BUMPS, strict=True)]
    following = builder.add(step, F64.integer(1))
    ends = (following, *words, *bumped)
    for phi, begin, end in zip((step, *phis), (F64.integer(0), *begins), ends, strict=True):
        phi.add_incoming(begin, before)
        phi.add_incoming(end, body)
    builder.cbranch(builder.icmp_unsigned("<", following, F64.integer(PHILOX_ROUNDS)), body, after)
    builder.position_at_end(after)
    return words


def repeated(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A number in each lane of a vector."""
    first_lane = builder.insert_element(ir.Constant(vector_of(value.type, lanes), ir.Undefined), value, LANE(0))
    return builder.shuffle_vector(first_lane, first_lane, lanes_at([0] * lanes))


# --- elementary functions ---------------------------------------------------------------------------------------------


@record()
class Symbol:
    """The meaning of a function's name in a module: how many numbers it takes at a time, whether it is compiled out of
    line, and whether its arguments are counters in order, of which it takes the first."""

    name: str
    format: Format
    relaxed: bool
    lanes: int = 1
    out_of_line: bool = False
    in_order: bool = False

    def __str__(self) -> str:
        relaxed = "_relaxed" if self.relaxed else ""
        mark = "c" if self.in_order else "x"
        lanes = f"_{mark}{self.lanes}" if self.out_of_line else f"_v{self.lanes}" if self.lanes > 1 else ""
        return f"gc_{self.name}_{self.format.name}{relaxed}{lanes}"


SYMBOL = re.compile(r"gc_([a-z0-9_]+?)_(f32|f64)(_relaxed)?(?:_([vxc])(\d+))?")


def read_symbol(text: str) -> Symbol | None:
    """The meaning of a name; None for that of another function."""
    match = SYMBOL.fullmatch(text)
    if match is None or not any(match[1] in names for names in (VECTOR_MATH, TOGETHER, COUNTED)):
        return None
    name, format, relaxed, mark, lanes = match.groups()
    out_of_line, in_order = mark in ("x", "c"), mark == "c"
    return Symbol(name, F32 if format == "f32" else F64, bool(relaxed), int(lanes or 1), out_of_line, in_order)


def arity_of(name: str) -> int:
    if name in COUNTED:
        return 3
    return len(signature(VECTOR_MATH[TOGETHER.get(name, (name,))[0]]).parameters)


def argument_type(symbol: Symbol) -> ir.Type:
    """The type of each of a function's arguments."""
    return vector_of(symbol.format.integer if symbol.name in COUNTED else symbol.format.type, symbol.lanes)


def result_type(symbol: Symbol) -> ir.Type:
    """The type of a function's result: numbers, or a struct of them where it computes several."""
    if symbol.name in COUNTED:
        return vector_of(number_type(symbol.name), symbol.lanes)
    type = vector_of(symbol.format.type, symbol.lanes)
    return ir.LiteralStructType([type] * len(TOGETHER[symbol.name])) if symbol.name in TOGETHER else type


def refer(module: ir.Module, name: str, type: ir.Type, relaxed: bool = False) -> ir.Function:
    """The function `gc_<name>_<f32|f64>` of `module`, added at the first request: internal, always inlined, without
    side effects. `define_called` gives it its body.

    `name` is a key of VECTOR_MATH, `type` float or double. `relaxed` gives the variant of fast math,
    `gc_<name>_<f32|f64>_relaxed`. Raises KeyError for an unknown name and TypeError for another type.
    """
    return refer_inline(module, Symbol(name, find_format(type), relaxed))


def refer_inline(module: ir.Module, symbol: Symbol) -> ir.Function:
    """The same of a symbol: for several numbers, of vectors."""
    arity = arity_of(symbol.name)
    if str(symbol) in module.globals:
        return module.globals[str(symbol)]
    type = ir.FunctionType(result_type(symbol), [argument_type(symbol)] * arity)
    function = ir.Function(module, type, str(symbol))
    function.linkage = "internal"
    for attribute in ("alwaysinline", "nounwind"):
        function.attributes.add(attribute)
    return function


def define_called(module: ir.Module, has_fma: bool, widths: tuple[int, ...]) -> None:
    """Give the functions of `refer` their bodies, and remove those that nothing calls any more.

    With `has_fma` false the code multiplies and adds in two steps; `widths` are the bits of the vectors that loops
    around it that are not written over vectors may have.
    """
    used = {callee for function in module.functions for block in function.blocks for callee in callees(block)}
    for function in list(module.functions):
        symbol = read_symbol(function.name)
        if symbol is None or symbol.out_of_line or not function.is_declaration:
            continue
        if function in used:
            fill(function, has_fma, widths)
        else:
            remove_global(module, function.name)


def callees(block: ir.Block) -> Iterator[ir.Value]:
    """The functions that a block calls."""
    return (each.callee for each in block.instructions if isinstance(each, ir.CallInstr))


def fill(function: ir.Function, has_fma: bool, widths: tuple[int, ...]) -> None:
    """Write the body of a function, for as many numbers as its name says."""
    symbol = read_symbol(function.name)
    assert symbol is not None, function.name
    format = symbol.format if symbol.lanes == 1 else widen(symbol.format, symbol.lanes)
    builder = ir.IRBuilder(function.append_basic_block())
    block = Block(builder, format, has_fma, widths, symbol.relaxed)
    if symbol.name in COUNTED:
        builder.ret(each_counter(symbol.name, block, *function.args))
        return
    arguments = [Float(block, argument) for argument in function.args]
    if symbol.name in TOGETHER:
        results = JOINT_MATH[symbol.name](*arguments)
        builder.ret(as_struct(builder, [result.value for result in results]))
    else:
        builder.ret(VECTOR_MATH[symbol.name](*arguments).value)


VECTOR_MATH: dict[str, Kernel] = {
    kernel.__name__: kernel
    for kernel in (
        *(exp, exp2, expm1, log, log2, log10, log1p, softplus, sigmoid),
        *(sin, cos, tan, asin, acos, atan, atan2),
        *(sinh, cosh, tanh, asinh, acosh, atanh),
        *(cbrt, hypot, pow, erf, erfc, erfcx, gammaln, digamma, trigamma),
    )
} | PORTABLE
TOGETHER: dict[str, tuple[str, ...]] = {"sincos": ("sin", "cos")}
"""Functions of one argument that share most of their work: loops that call them apart call one that computes all."""
JOINT_MATH: dict[str, Callable[..., tuple[Float, ...]]] = {"sincos": sincos}


# --- outofline --------------------------------------------------------------------------------------------------------
# Elementary functions that a loop calls, where they would be a part of it otherwise.
#
# In: the functions that a loop calls as its source does. Out: whether they should be apart from it, what a loop over
# vectors then calls (vectorize/widen.py), and the IR of that, which is compiled once for a machine (`parts`).
#
# A loop of one or two functions gains from holding them. One of more holds more instructions than registers suffice
# for, and LLVM takes most of a compilation for them. A function that is called takes four vectors at a time, as many
# as keep the processor busy with the one chain of instructions that it is, and has all registers to itself. Measured
# on 32 registers of 64 bytes: three functions of 1000 elements take 0.97 of the time, the price of an option with its
# derivatives, six functions, 0.85 to 0.93; its kernel is compiled in a quarter to a third of the time. A call costs
# about a nanosecond: a chain of 69 functions over 100 elements takes 1.05 to 1.07 of the time.
#
# Functions of one name and format have all their variants in one part, which every kernel that calls them holds: a
# compiled graph needs nothing but itself.


VECTORS = 4
"""Vectors that a function takes at a time."""
MOST_HELD = 2
"""Functions that a loop holds, by their `WEIGHT`."""
WEIGHT = {"pow": 2, **dict.fromkeys(("erfc", "erfcx", "sin", "cos", "tan", "gammaln", "digamma", "trigamma"), 3)}
"""The weights of functions that take LLVM longer than others: one of 3 is always called, as are those of counters."""
MOST_IN_ORDER = 4 * VECTORS
COUNTERS = 64
"""Vectors that a function takes at a time of counters that follow on one another, at most, and how many counters: half
as many blocks, of which each is four numbers that wait for each other in registers."""
IN_PAIRS = frozenset(("gammaln", "digamma", "trigamma"))
"""Functions of many instructions, which take these vectors by two."""


def one_vector(format: Format) -> int:
    """The numbers in a vector."""
    return usual_width() // format.width


def vectors_in_order() -> int:
    """The vectors that a function of counters in order takes at a time."""
    return min(MOST_IN_ORDER, COUNTERS // one_vector(F64))


def called_symbol(each: ir.Instruction) -> Symbol | None:
    """The elementary function of ours that an instruction calls as the source does; None for others."""
    symbol = read_symbol(each.callee.name) if isinstance(each, ir.CallInstr) else None
    return symbol if symbol is not None and not symbol.out_of_line else None


def are_many(calls: Iterable[Symbol]) -> bool:
    """True if a loop should call these functions."""
    return sum(3 if takes_counters(call) else WEIGHT.get(call.name, 1) for call in calls) > MOST_HELD


def refer_out_of_line(module: ir.Module, symbol: Symbol) -> ir.Function:
    """The function that is compiled once for a machine, declared."""
    return declare(module, replace(symbol, out_of_line=True))


def takes_counters(symbol: Symbol) -> bool:
    """True if a function has a variant for counters that follow on one another."""
    return symbol.name in COUNTED


def declare(module: ir.Module, symbol: Symbol) -> ir.Function:
    if str(symbol) in module.globals:
        return module.globals[str(symbol)]
    return declare_pure(module, str(symbol), argument_type(symbol), arity_of(symbol.name), result_type(symbol))


def parts_called(functions: Iterable[ir.Function]) -> list[str]:
    """The names of the parts that the functions of a module are of: each has all variants of one function."""
    symbols = (read_symbol(function.name) for function in functions)
    names = (
        str(replace(symbol, lanes=1, out_of_line=False))
        for symbol in symbols
        if symbol is not None and symbol.out_of_line
    )
    return list(dict.fromkeys(names))


def math_ir(name: str) -> str:
    """The IR of a part."""
    symbol = read_symbol(name)
    assert symbol is not None, name
    module, lanes = ir.Module(name), one_vector(symbol.format)
    for count in (1, lanes, VECTORS * lanes):
        define(module, replace(symbol, lanes=count, out_of_line=True))
    for count in (lanes, vectors_in_order() * lanes) if symbol.name in COUNTED else ():
        define_in_order(module, replace(symbol, lanes=count, out_of_line=True, in_order=True))
    limit_vectors(module, usual_width())
    return str(module)


def define_in_order(module: ir.Module, symbol: Symbol) -> None:
    """The function of counters that follow on one another, of which the first is given, and where the numbers go: from
    an even one on, two of each block. That has vectors as long as may be, so no vector comes or goes in registers."""
    function = refer_in_order(module, symbol)
    to, *args = function.args
    entry, even, odd = map(function.append_basic_block, ("entry", "even", "odd"))
    builder = ir.IRBuilder(entry)
    builder.cbranch(builder.trunc(args[0], ir.IntType(1)), odd, even)
    paired = ir.Function(module, function.type.pointee, f"{symbol}_paired")
    paired.linkage = "internal"
    for attribute in ("noinline", "nounwind"):
        paired.attributes.add(attribute)
    within = ir.IRBuilder(paired.append_basic_block())
    format = widen(F64, symbol.lanes // 2) if symbol.lanes > 2 else F64
    block = Block(within, format, has_fma(), vector_widths())
    keep_vector(within, in_order(symbol.name, block, *paired.args[1:]), paired.args[0])
    within.ret_void()
    builder.position_at_end(even)
    builder.call(paired, [to, *args])
    builder.ret_void()
    builder.position_at_end(odd)
    begun, *rest = (repeated(builder, each, symbol.lanes) for each in args)
    counters = builder.add(begun, ir.Constant(begun.type, [*range(symbol.lanes)]))
    single = declare(module, replace(symbol, in_order=False, lanes=min(symbol.lanes, VECTORS * one_vector(F64))))
    keep_vector(builder, call_in_parts(builder, single, [counters, *rest]), to)
    builder.ret_void()


def keep_vector(builder: ir.IRBuilder, vector: ir.Value, to: ir.Value) -> None:
    builder.store(vector, to).align = F64.width // 8


def refer_in_order(module: ir.Module, symbol: Symbol) -> ir.Function:
    """The function of counters that follow on one another: of where the numbers go, the first counter, the draw and the
    key."""
    if str(symbol) in module.globals:
        return module.globals[str(symbol)]
    number = symbol.format.integer
    type = ir.FunctionType(ir.VoidType(), [result_type(symbol).as_pointer(), *[number] * arity_of(symbol.name)])
    function = ir.Function(module, type, str(symbol))
    function.attributes.add("nounwind")
    return function


def define(module: ir.Module, symbol: Symbol) -> ir.Function:
    """The function of as many numbers as `symbol` says. That of one, which is for what does not fill a vector, is that
    of a vector."""
    function = declare(module, symbol)
    if not function.is_declaration:
        return function
    lanes, vector, pair = symbol.lanes, one_vector(symbol.format), 2 * one_vector(F64)
    if lanes > 1 and (lanes <= pair or symbol.name not in IN_PAIRS):
        fill(function, has_fma(), vector_widths())
        return function
    builder = ir.IRBuilder(function.append_basic_block())
    callee = define(module, replace(symbol, lanes=vector if lanes == 1 else pair))
    call = call_for_one if lanes == 1 else call_in_parts
    builder.ret(call(builder, callee, function.args))
    return function
