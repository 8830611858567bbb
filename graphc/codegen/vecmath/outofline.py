"""Elementary functions that a loop calls, where they would be a part of it otherwise.

In: the functions that a loop calls as its source does. Out: whether they should be apart from it, what a loop over
vectors then calls (vectorize/widen.py), and the IR of that, which is compiled once for a machine (`parts`).

A loop of one or two functions gains from holding them. One of more holds more instructions than registers
suffice for, and LLVM takes most of a compilation for them. A function that is called takes four vectors at a time, as
many as keep the processor busy with the one chain of instructions that it is, and has all registers to itself.
Measured on 32 registers of 64 bytes: three functions of 1000 elements take 0.97 of the time, the price of an option
with its derivatives, six functions, 0.85 to 0.93; its kernel is compiled in a quarter to a third of the time. A call
costs about a nanosecond: a chain of 69 functions over 100 elements takes 1.05 to 1.07 of the time.

Functions of one name and format have all their variants in one part, which every kernel that calls them holds: a
compiled graph needs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from llvmlite import ir

from graphc.codegen.llvm.target import has_fma, usual_width, vector_widths
from graphc.codegen.vecmath.abi import call_for_one, declare_pure, limit_vectors
from graphc.codegen.vecmath.floats import F64, Block, Format, widen
from graphc.codegen.vecmath.lanes import call_in_parts
from graphc.codegen.vecmath.philox import COUNTED, in_order, repeated
from graphc.codegen.vecmath.table import Symbol, argument_type, arity_of, fill, read_symbol, result_type
from graphc.startup.record import replace

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


def parts_called(module: ir.Module) -> list[str]:
    """The names of the parts that a module calls: each has all variants of one function."""
    symbols = (read_symbol(function.name) for function in module.functions)
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
    to, *given = function.args
    entry, even, odd = map(function.append_basic_block, ("entry", "even", "odd"))
    builder = ir.IRBuilder(entry)
    builder.cbranch(builder.trunc(given[0], ir.IntType(1)), odd, even)
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
    builder.call(paired, [to, *given])
    builder.ret_void()
    builder.position_at_end(odd)
    begun, *rest = (repeated(builder, each, symbol.lanes) for each in given)
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
    called = define(module, replace(symbol, lanes=vector if lanes == 1 else pair))
    call = call_for_one if lanes == 1 else call_in_parts
    builder.ret(call(builder, called, function.args))
    return function
