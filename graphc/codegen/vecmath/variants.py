"""Functions that a loop can be vectorised around though they branch.

In: a function of one element and the same for vectors of the lengths that the CPU has. Out: the attributes that make
LLVM's loop vectoriser, which gives up on a loop with a branch or a scalar call in it, call the one for its vectors:
those of its vector function ABI (https://llvm.org/docs/LangRef.html, "vector-function-abi-variant").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from llvmlite import ir

from graphc.codegen.llvm.values import array_elements, remove_global, set_attribute
from graphc.codegen.vecmath.floats import (
    LANE,
    Block,
    Float,
    Format,
    as_struct,
    call_in_parts,
    find_any,
    lanes_at,
    lanes_from,
    of_one,
    vector_of,
    widen,
)


def define_variants(
    module: ir.Module, symbol: str, block: Block, define: Callable[[str, int], ir.Function]
) -> ir.Function:
    """The function `symbol` for a block's values, which `define(name, lanes)` gives for `lanes` at a time: for vectors
    the one of their length, for single numbers that of one, with a variant for each vector that a loop may have.
    """
    name = symbol if block.format.lanes == 1 else f"{symbol}_x{block.format.lanes}"
    if name in module.globals:
        return module.globals[name]
    if block.format.lanes > 1:
        return define(name, block.format.lanes)
    variants = {
        lanes: define(f"{symbol}_x{lanes}", lanes) for lanes in (width // block.format.width for width in block.widths)
    }
    function = define(symbol, 1)
    add_variants(function, variants)
    return function


def add_variants(function: ir.Function, variants: Mapping[int, ir.Function]) -> None:
    """Let loops that call a function be vectorised: for vectors of each length in `variants` another one is called."""
    if not variants:
        return
    marks = "v" * len(function.args)
    names = (f"_ZGV_LLVM_N{lanes}{marks}_{function.name}({variant.name})" for lanes, variant in variants.items())
    set_attribute(function, f'"vector-function-abi-variant"="{",".join(names)}"')
    _keep(function.module, [function, *variants.values()])


def define_pure(module: ir.Module, symbol: str, type: ir.Type, arity: int = 1) -> ir.Function:
    """A function without side effects, from values of a type to one, not inlined."""
    function = declare_pure(module, symbol, type, arity)
    function.linkage = "internal"
    return function


def declare_pure(
    module: ir.Module, symbol: str, type: ir.Type, arity: int, result: ir.Type | None = None
) -> ir.Function:
    """The same, defined elsewhere. `result`: the type of what it gives, where that is another one."""
    function = ir.Function(module, ir.FunctionType(result or type, [type] * arity), symbol)
    for attribute in ("noinline", "nounwind", "readnone", "willreturn"):
        set_attribute(function, attribute)
    return function


def define_guarded(
    module: ir.Module, symbol: str, type: ir.Type, needs: Callable[[ir.IRBuilder, ir.Value], ir.Value]
) -> tuple[ir.IRBuilder, ir.Value]:
    """Begin a pure function of two arguments, which returns the second where the first needs no more in any lane; the
    builder, where it is to go on, and which lanes do."""
    function = define_pure(module, symbol, type, 2)
    builder = ir.IRBuilder(function.append_basic_block())
    slow, common = function.append_basic_block("slow"), function.append_basic_block("common")
    condition = needs(builder, function.args[0])
    builder.cbranch(find_any(builder, condition), slow, common)
    builder.position_at_end(common)
    builder.ret(function.args[1])
    builder.position_at_end(slow)
    return builder, condition


def call_for_one(builder: ir.IRBuilder, function: ir.Function, arguments: Sequence[ir.Value]) -> ir.Value:
    """A function of vectors for single numbers, each beside zeros, which no guard finds rare."""
    zeros = ir.Constant(function.args[0].type, None)
    vectors = [builder.insert_element(zeros, argument, LANE(0)) for argument in arguments]
    result = builder.call(function, vectors)
    if not isinstance(result.type, ir.LiteralStructType):
        return builder.extract_element(result, LANE(0))
    parts = (builder.extract_value(result, place) for place in range(len(result.type.elements)))
    return as_struct(builder, [builder.extract_element(part, LANE(0)) for part in parts])


def limit_vectors(module: ir.Module, bits: int) -> None:
    """Let no function have longer vectors. How vectors are passed depends on it: callers and callees must agree."""
    for function in module.functions:
        if not function.is_declaration:
            set_attribute(function, f'"min-legal-vector-width"="{bits}"')


def _keep(module: ir.Module, functions: Sequence[ir.Function]) -> None:
    """Keep functions that nothing calls until the loop vectoriser has run."""
    name, pointer = "llvm.compiler.used", ir.PointerType()
    kept = [ir.Constant(pointer, function.get_reference()) for function in functions]
    if name in module.globals:
        kept = [*array_elements(module.globals[name]), *kept]
        remove_global(module, name)
    type = ir.ArrayType(pointer, len(kept))
    used = ir.GlobalVariable(module, type, name)
    used.linkage, used.section = "appending", "llvm.metadata"
    used.initializer = ir.Constant(type, kept)


# --- reflection -------------------------------------------------------------------------------------------------------
# A formula for negative arguments that costs the others little more than a comparison.
#
# In: an argument, the result that holds for the rest, and the formula. Out: the result for every argument.
#
# The formula is computed for a whole vector where any lane is negative, in a function that is called there alone. A
# loop is vectorised around the function that decides it (`vector_variants`).


Formula = Callable[[Float, Float], Float]


def join_negative(x: Float, result: Float, name: str, formula: Formula) -> Float:
    """`formula(x, result)` where x < 0, else `result`; `name` tells formulas apart."""
    block, module = x.block, x.block.builder.module
    symbol = f"gc_negative_{name}_{x.format.name}"

    def define(each: str, lanes: int) -> ir.Function:
        cold = _define_cold(module, f"{symbol}_cold", block, formula)
        return _define_variant(module, each, cold, of_one(block.format), lanes)

    function = define_variants(module, symbol, block, define)
    return Float(block, block.builder.call(function, [x.value, result.value]))


def _define_variant(module: ir.Module, symbol: str, cold: ir.Function, format: Format, lanes: int) -> ir.Function:
    """The cold function: it computes lanes with x < 0, and returns its second argument where there is no such lane."""

    def is_negative(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        return builder.fcmp_ordered("<", x, ir.Constant(x.type, 0.0))

    builder, below = define_guarded(module, symbol, vector_of(format.type, lanes), is_negative)
    args = builder.function.args
    wide = cold.args[0].type
    if lanes > wide.count:
        result = call_in_parts(builder, cold, args)
    else:
        result = _take(builder, builder.call(cold, [_extend(builder, value, wide) for value in args]), lanes)
    builder.ret(builder.select(below, result, args[1]))
    return builder.function


def _define_cold(module: ir.Module, symbol: str, block: Block, formula: Formula) -> ir.Function:
    """The formula for the widest vector of the CPU."""
    if symbol in module.globals:
        return module.globals[symbol]
    format = widen(of_one(block.format), max(block.widths) // block.format.width)
    function = define_pure(module, symbol, format.type, 2)
    function.attributes.add("cold")
    wide = Block(ir.IRBuilder(function.append_basic_block()), format, block.has_fma, block.widths)
    wide.builder.ret(formula(*(Float(wide, argument) for argument in function.args)).value)
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
