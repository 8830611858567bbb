"""A formula for negative arguments that costs the others little more than a comparison.

In: an argument, the result that holds for the rest, and the formula. Out: the result for every argument.

The formula is computed for a whole vector where any lane is negative, in a function that is called there alone. A loop
is vectorised around the function that decides it (`vector_variants`).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from graphc.codegen.real import Block, Format, Real
from graphc.codegen.vector_variants import (
    WIDTHS,
    define_pure,
    define_variants,
    find_any,
    set_attribute,
    splat,
    vector_of,
)

Formula = Callable[[Real, Real], Real]
INDEX = ir.IntType(64)


def join_negative(x: Real, result: Real, name: str, formula: Formula) -> Real:
    """`formula(x, result)` where x < 0, else `result`; `name` tells formulas apart."""
    block, module = x.block, x.block.builder.module
    symbol = f"gc_negative_{name}_{x.format.name}"
    if symbol not in module.globals:
        cold = _define_cold(module, f"{symbol}_cold", block, formula)
        define_variants(module, symbol, block, lambda each, lanes: _define_variant(module, each, cold, block, lanes))
    return Real(block, block.builder.call(module.globals[symbol], [x.value, result.value]))


def _define_variant(module: ir.Module, symbol: str, cold: ir.Function, block: Block, lanes: int) -> ir.Function:
    """What the cold function makes of lanes with x < 0; the second argument where there is no such lane."""
    function = define_pure(module, symbol, vector_of(block.format.type, lanes), 2)
    x, result = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    slow, common = function.append_basic_block("slow"), function.append_basic_block("common")
    below = builder.fcmp_ordered("<", x, splat(block.format.type, 0.0, lanes))
    builder.cbranch(find_any(builder, below, lanes), slow, common)
    builder.position_at_end(common)
    builder.ret(result)
    builder.position_at_end(slow)
    row = _row_type(block)
    with builder.goto_entry_block():
        places = [builder.alloca(row) for _ in function.args]
    vectors = [builder.bitcast(place, x.type.as_pointer()) for place in places]
    for value, place, vector in zip(function.args, places, vectors, strict=True):
        if lanes < row.count:
            builder.store(ir.Constant(row, None), place)
        builder.store(value, vector, align=_alignment(block.format))
    builder.call(cold, [builder.bitcast(place, ir.PointerType()) for place in places])
    found = builder.load(vectors[1], align=_alignment(block.format))
    builder.ret(builder.select(below, found, result))
    return function


def _define_cold(module: ir.Module, symbol: str, block: Block, formula: Formula) -> ir.Function:
    """The formula of the widest vector's lanes in memory, in place of the second arguments: a loop for LLVM to
    vectorise.
    """
    row, format = _row_type(block), block.format
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.PointerType()] * 2), symbol)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", "willreturn", "cold"):
        set_attribute(function, attribute)
    for argument in function.args:
        argument.add_attribute("noalias")
    before, lane_block, done = (function.append_basic_block(label) for label in ("before", "lane", "done"))
    ir.IRBuilder(before).branch(lane_block)
    builder = ir.IRBuilder(lane_block)
    lane = builder.phi(INDEX)
    x, result = (
        Real(Block(builder, format, block.has_fma), builder.load(place, typ=format.type))
        for place in (builder.gep(argument, [lane], source_etype=format.type) for argument in function.args)
    )
    there = builder.gep(function.args[1], [lane], source_etype=format.type)
    builder.store(formula(x, result).value, there)
    following = builder.add(lane, INDEX(1))
    lane.add_incoming(INDEX(0), before)
    lane.add_incoming(following, lane_block)
    builder.cbranch(builder.icmp_unsigned("<", following, INDEX(row.count)), lane_block, done)
    ir.IRBuilder(done).ret_void()
    return function


def _row_type(block: Block) -> ir.ArrayType:
    """The elements of the widest vector."""
    return ir.ArrayType(block.format.type, max(WIDTHS[block.has_fma]) // block.format.width)


def _alignment(format: Format) -> int:
    """That of an element in bytes: an alignment of vectors would have to be made on entry, for every argument."""
    return format.width // 8
