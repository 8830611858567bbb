"""Elementary functions in LLVM IR that a loop can be vectorised around.

In: a module, a function's name, a floating-point type, whether the CPU has fused multiply-add and how long its vectors
are. Out: a small internal function `gc_<name>_<f32|f64>` in that module, straight-line code to be inlined into the loop
that calls it.

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

from collections.abc import Callable
from inspect import signature

from llvmlite import ir

from graphc.codegen.circular import acos, asin, atan, atan2, cos, sin, tan
from graphc.codegen.exponential import (
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
from graphc.codegen.gamma import digamma, erf, erfc, trigamma
from graphc.codegen.log_gamma import gammaln
from graphc.codegen.real import Block, Real, find_format

Kernel = Callable[..., Real]


def define(
    module: ir.Module, name: str, type: ir.Type, has_fma: bool, widths: tuple[int, ...], relaxed: bool = False
) -> ir.Function:
    """The function `gc_<name>_<f32|f64>` of `module`, added at the first request: internal, always inlined, without
    side effects.

    `name` is a key of VECTOR_MATH, `type` float or double. With `has_fma` false the code multiplies and adds in two
    steps; `widths` are the bits of the vectors that loops around it may have. `relaxed` gives the variant of fast math,
    `gc_<name>_<f32|f64>_relaxed`. Raises KeyError for an unknown name and TypeError for another type.
    """
    kernel, format = VECTOR_MATH[name], find_format(type)
    symbol = f"gc_{name}_{format.name}" + ("_relaxed" if relaxed else "")
    if symbol in module.globals:
        return module.globals[symbol]
    arity = len(signature(kernel).parameters)
    function = ir.Function(module, ir.FunctionType(type, [type] * arity), symbol)
    function.linkage = "internal"
    for attribute in ("alwaysinline", "nounwind"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    block = Block(builder, format, has_fma, widths, relaxed)
    builder.ret(kernel(*(Real(block, argument) for argument in function.args)).value)
    return function


VECTOR_MATH: dict[str, Kernel] = {
    kernel.__name__: kernel
    for kernel in (
        *(exp, exp2, expm1, log, log2, log10, log1p, softplus, sigmoid),
        *(sin, cos, tan, asin, acos, atan, atan2),
        *(sinh, cosh, tanh, asinh, acosh, atanh),
        *(cbrt, hypot, pow, erf, erfc, gammaln, digamma, trigamma),
    )
}
