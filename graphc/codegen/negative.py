"""A formula for negative arguments that costs the others little more than a comparison.

In: an argument, the result that holds for the rest, and the formula. Out: the result for every argument.

The formula is computed for a whole vector where any lane is negative, in a function that is called there alone. A loop
is vectorised around the function that decides it (`vector_variants`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from graphc.codegen.real import Block, Real, widen
from graphc.codegen.vector_variants import define_guarded, define_pure, define_variants, vector_of

Formula = Callable[[Real, Real], Real]
LANE = ir.IntType(32)


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

    def is_negative(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        return builder.fcmp_ordered("<", x, ir.Constant(x.type, 0.0))

    builder, below = define_guarded(module, symbol, vector_of(block.format.type, lanes), 2, is_negative)
    given = builder.function.args
    whole = builder.call(cold, [_extend(builder, value, cold.args[0].type) for value in given])
    builder.ret(builder.select(below, _take(builder, whole, lanes), given[1]))
    return builder.function


def _define_cold(module: ir.Module, symbol: str, block: Block, formula: Formula) -> ir.Function:
    """The formula for the widest vector of the CPU."""
    format = widen(block.format, max(block.widths) // block.format.width)
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
    return builder.shuffle_vector(value, ir.Constant(value.type, None), _lanes([*range(value.type.count), *zeros]))


def _take(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """The first lanes, or the first one, of a vector."""
    if lanes == 1:
        return builder.extract_element(value, LANE(0))
    return builder.shuffle_vector(value, value, _lanes(range(lanes)))


def _lanes(places: Sequence[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(LANE, len(places)), [LANE(place) for place in places])
