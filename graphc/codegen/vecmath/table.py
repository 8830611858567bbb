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

Each function stands in `exponential`, `circular`, `gamma` or `log_gamma`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from inspect import signature

from llvmlite import ir

from graphc.codegen.llvm.unsupported import remove_global
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
from graphc.codegen.vecmath.floats import F32, F64, Block, Format, Real, find_format, widen
from graphc.codegen.vecmath.gamma import digamma, erf, erfc, erfcx, trigamma
from graphc.codegen.vecmath.lanes import as_struct, vector_of
from graphc.codegen.vecmath.log_gamma import gammaln
from graphc.codegen.vecmath.philox import COUNTED, each_counter, number_type
from graphc.codegen.vecmath.portable import portable_arccos, portable_exp, portable_log
from graphc.codegen.vecmath.trigonometric import acos, asin, atan, atan2, cos, sin, sincos, tan
from graphc.startup.record import record

Kernel = Callable[..., Real]


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
        kind = "c" if self.in_order else "x"
        lanes = f"_{kind}{self.lanes}" if self.out_of_line else f"_v{self.lanes}" if self.lanes > 1 else ""
        return f"gc_{self.name}_{self.format.name}{relaxed}{lanes}"


SYMBOL = re.compile(r"gc_([a-z0-9_]+?)_(f32|f64)(_relaxed)?(?:_([vxc])(\d+))?")


def read_symbol(text: str) -> Symbol | None:
    """The meaning of a name; None for that of another function."""
    found = SYMBOL.fullmatch(text)
    if found is None or not any(found[1] in names for names in (VECTOR_MATH, TOGETHER, COUNTED)):
        return None
    name, format, relaxed, kind, lanes = found.groups()
    out_of_line, in_order = kind in ("x", "c"), kind == "c"
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
    called = {callee for function in module.functions for block in function.blocks for callee in callees(block)}
    for function in list(module.functions):
        symbol = read_symbol(function.name)
        if symbol is None or symbol.out_of_line or not function.is_declaration:
            continue
        if function in called:
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
    arguments = [Real(block, argument) for argument in function.args]
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
        *(cbrt, hypot, pow, erf, erfc, erfcx, gammaln, digamma, trigamma, portable_log, portable_exp, portable_arccos),
    )
}
TOGETHER: dict[str, tuple[str, ...]] = {"sincos": ("sin", "cos")}
"""Functions of one argument that share most of their work: loops that call them apart call one that computes all."""
JOINT_MATH: dict[str, Callable[..., tuple[Real, ...]]] = {"sincos": sincos}
