"""Functions that a loop can be vectorised around though they branch.

In: a function of one element and the same for vectors of the lengths that the CPU has. Out: the attributes that make
LLVM's loop vectoriser, which gives up on a loop with a branch or a scalar call in it, call the one for its vectors:
those of its vector function ABI (https://llvm.org/docs/LangRef.html, "vector-function-abi-variant").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from graphc.codegen.real import Block, find_any


def define_variants(
    module: ir.Module, symbol: str, block: Block, define: Callable[[str, int], ir.Function]
) -> ir.Function:
    """The function `symbol`, which is `define(symbol, 1)`, with a variant `define(name, lanes)` for each vector."""
    variants = {
        lanes: define(f"{symbol}_x{lanes}", lanes)
        for lanes in (width // block.format.width for width in block.widths)
    }
    function = define(symbol, 1)
    marks = "v" * len(function.args)
    names = ",".join(f"_ZGV_LLVM_N{lanes}{marks}_{symbol}({variant.name})" for lanes, variant in variants.items())
    set_attribute(function, f'"vector-function-abi-variant"="{names}"')
    _keep(module, [function, *variants.values()])
    return function


def define_pure(module: ir.Module, symbol: str, type: ir.Type, arity: int = 1) -> ir.Function:
    """A function without side effects, from values of a type to one, not inlined."""
    function = ir.Function(module, ir.FunctionType(type, [type] * arity), symbol)
    function.linkage = "internal"
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


def vector_of(type: ir.Type, lanes: int) -> ir.Type:
    """The vector type, or for one lane the type itself."""
    return type if lanes == 1 else ir.VectorType(type, lanes)


def set_attribute(function: ir.Function, attribute: str) -> None:
    """Add an attribute that llvmlite's own list, which `add` checks, lacks."""
    set.add(function.attributes, attribute)


def _keep(module: ir.Module, functions: Sequence[ir.Function]) -> None:
    """Keep functions that nothing calls until the loop vectoriser has run."""
    name, pointer = "llvm.compiler.used", ir.PointerType()
    kept = [ir.Constant(pointer, function.get_reference()) for function in functions]
    if name in module.globals:
        kept = [*module.globals[name].initializer.constant, *kept]
        del module.globals[name]
        module.scope._useset.discard(name)
    type = ir.ArrayType(pointer, len(kept))
    used = ir.GlobalVariable(module, type, name)
    used.linkage, used.section = "appending", "llvm.metadata"
    used.initializer = ir.Constant(type, kept)
