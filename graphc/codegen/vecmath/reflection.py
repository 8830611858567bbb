"""A formula for negative arguments that costs the others little more than a comparison.

In: an argument, the result that holds for the rest, and the formula. Out: the result for every argument.

The formula is computed for a whole vector where any lane is negative, in a function that is called there alone. A loop
is vectorised around the function that decides it (`vector_variants`).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from graphc.codegen.vecmath.abi import define_guarded, define_pure, define_variants
from graphc.codegen.vecmath.floats import Block, Format, Real, of_one, widen
from graphc.codegen.vecmath.lanes import LANE, call_in_parts, lanes_at, lanes_from, vector_of

Formula = Callable[[Real, Real], Real]


def join_negative(x: Real, result: Real, name: str, formula: Formula) -> Real:
    """`formula(x, result)` where x < 0, else `result`; `name` tells formulas apart."""
    block, module = x.block, x.block.builder.module
    symbol = f"gc_negative_{name}_{x.format.name}"

    def define(each: str, lanes: int) -> ir.Function:
        cold = _define_cold(module, f"{symbol}_cold", block, formula)
        return _define_variant(module, each, cold, of_one(block.format), lanes)

    function = define_variants(module, symbol, block, define)
    return Real(block, block.builder.call(function, [x.value, result.value]))


def _define_variant(module: ir.Module, symbol: str, cold: ir.Function, format: Format, lanes: int) -> ir.Function:
    """The cold function: it computes lanes with x < 0, and returns its second argument where there is no such lane."""

    def is_negative(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        return builder.fcmp_ordered("<", x, ir.Constant(x.type, 0.0))

    builder, below = define_guarded(module, symbol, vector_of(format.type, lanes), 2, is_negative)
    given = builder.function.args
    wide = cold.args[0].type
    if lanes > wide.count:
        result = call_in_parts(builder, cold, given)
    else:
        result = _take(builder, builder.call(cold, [_extend(builder, value, wide) for value in given]), lanes)
    builder.ret(builder.select(below, result, given[1]))
    return builder.function


def _define_cold(module: ir.Module, symbol: str, block: Block, formula: Formula) -> ir.Function:
    """The formula for the widest vector of the CPU."""
    if symbol in module.globals:
        return module.globals[symbol]
    format = widen(of_one(block.format), max(block.widths) // block.format.width)
    function = define_pure(module, symbol, format.type, 2)
    function.attributes.add("cold")
    wide = Block(ir.IRBuilder(function.append_basic_block()), format, block.has_fma, block.widths)
    wide.builder.ret(formula(*(Real(wide, argument) for argument in function.args)).value)
    return function


def _extend(builder: ir.IRBuilder, value: ir.Value, type: ir.VectorType) -> ir.Value:
    """A number or vector as the first lanes of a wider one, with zeros."""
    if not isinstance(value.type, ir.VectorType):
        return builder.insert_element(ir.Constant(type, None), value, LANE(0))
    zeros = [value.type.count] * (type.count - value.type.count)
    return builder.shuffle_vector(value, ir.Constant(value.type, None), lanes_at([*range(value.type.count), *zeros]))


def _take(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """The first lanes, or the first one, of a vector."""
    if lanes == 1:
        return builder.extract_element(value, LANE(0))
    return builder.shuffle_vector(value, value, lanes_from(0, lanes))
