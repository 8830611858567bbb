"""Functions that a loop can be vectorised around though they branch.

In: a function of one element and the same for vectors of the lengths that the CPU has. Out: the attributes that make
LLVM's loop vectoriser, which gives up on a loop with a branch or a scalar call in it, call the one for its vectors:
those of its vector function ABI (https://llvm.org/docs/LangRef.html, "vector-function-abi-variant").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from llvmlite import ir

from graphc.codegen.llvm.unsupported import array_elements, remove_global, set_attribute
from graphc.codegen.vecmath.floats import Block, find_any
from graphc.codegen.vecmath.lanes import LANE, as_struct


def define_variants(
    module: ir.Module, symbol: str, block: Block, define: Callable[[str, int], ir.Function]
) -> ir.Function:
    """The function `symbol` for a block's values, which `define(name, lanes)` gives for `lanes` at a time: for vectors
    the one of their length, for single numbers that of one, with a variant for each vector that a loop may have.
    """
    own = symbol if block.format.lanes == 1 else f"{symbol}_x{block.format.lanes}"
    if own in module.globals:
        return module.globals[own]
    if block.format.lanes > 1:
        return define(own, block.format.lanes)
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
    module: ir.Module, symbol: str, type: ir.Type, arity: int, needs: Callable[[ir.IRBuilder, ir.Value], ir.Value]
) -> tuple[ir.IRBuilder, ir.Value]:
    """Begin a pure function that returns its last argument where its first needs no more in any lane; the builder,
    where it is to go on, and which lanes do."""
    function = define_pure(module, symbol, type, arity)
    builder = ir.IRBuilder(function.append_basic_block())
    slow, common = function.append_basic_block("slow"), function.append_basic_block("common")
    found = needs(builder, function.args[0])
    builder.cbranch(find_any(builder, found), slow, common)
    builder.position_at_end(common)
    builder.ret(function.args[-1])
    builder.position_at_end(slow)
    return builder, found


def call_for_one(builder: ir.IRBuilder, function: ir.Function, arguments: Sequence[ir.Value]) -> ir.Value:
    """A function of vectors for single numbers, each beside zeros, which no guard finds rare."""
    zeros = ir.Constant(function.args[0].type, None)
    vectors = [builder.insert_element(zeros, argument, LANE(0)) for argument in arguments]
    found = builder.call(function, vectors)
    if not isinstance(found.type, ir.LiteralStructType):
        return builder.extract_element(found, LANE(0))
    parts = (builder.extract_value(found, place) for place in range(len(found.type.elements)))
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
