"""Scalars in LLVM's registers: their types, constants, casts, and calls of functions on them.

In: dtypes and llvmlite values. Out: llvmlite types and values. A dtype is one of arrays/dtypes.py, or a literal's that
adapts to the other operand as NumPy's weak scalars do: "int" and "float". A bool is an `i1` here and one byte (0 or 1)
in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from graphc.arrays.dtypes import FLOATS, SIGNED

Builder = Any
Value = Any
Emit = Callable[[Builder, str, Sequence[Value]], Value]

WEAK = {"int": "int64", "float": "float64"}
FLOAT_TYPES = {32: ir.FloatType(), 64: ir.DoubleType()}


def llvm_type(dtype: str) -> ir.Type:
    """The LLVM type of a value of `dtype` in a register."""
    dtype = WEAK.get(dtype, dtype)
    return FLOAT_TYPES[width(dtype)] if dtype in FLOATS else ir.IntType(1 if dtype == "bool" else width(dtype))


def width(dtype: str) -> int:
    """Bits of a number of a dtype."""
    return int(dtype.lstrip("uintfloa"))


def constant(dtype: str, value: float) -> Value:
    """A constant of `dtype`."""
    return ir.Constant(llvm_type(dtype), value)


# --- casts ----------------------------------------------------------------------------------------------------------


def emit_cast(builder: Builder, source: str, target: str, value: Value) -> Value:
    """`value` of dtype `source` as `target`, as NumPy's astype gives it."""
    source = WEAK.get(source, source)
    if source == target:
        return value
    if target == "bool":
        return is_nonzero(builder, source, value)
    if source in FLOATS:
        return _float_resize(builder, target, value) if target in FLOATS else _float_to_int(builder, target, value)
    if target in FLOATS:
        convert = builder.sitofp if source in SIGNED else builder.uitofp
        return convert(value, llvm_type(target))
    return _int_resize(builder, source, target, value)


def is_nonzero(builder: Builder, dtype: str, value: Value) -> Value:
    """The bool of a number, True for NaN."""
    if dtype in FLOATS:
        return builder.fcmp_unordered("!=", value, constant(dtype, 0.0))
    return builder.icmp_unsigned("!=", value, constant(dtype, 0))


def _float_resize(builder: Builder, target: str, value: Value) -> Value:
    convert = builder.fptrunc if target == "float32" else builder.fpext
    return convert(value, llvm_type(target))


def _int_resize(builder: Builder, source: str, target: str, value: Value) -> Value:
    before = 1 if source == "bool" else width(source)
    if width(target) == before:
        return value
    if width(target) < before:
        return builder.trunc(value, llvm_type(target))
    extend = builder.sext if source in SIGNED else builder.zext
    return extend(value, llvm_type(target))


def _float_to_int(builder: Builder, target: str, value: Value) -> Value:
    """Through int32 or int64 as C compilers convert on x86; outside their range the lowest value of those."""
    if target == "uint64":
        middle = ir.Constant(value.type, 2.0**63)
        big = builder.fcmp_ordered(">=", value, middle)
        low = _truncate_in_range(builder, "int64", value)
        high = _truncate_in_range(builder, "int64", builder.fsub(value, middle))
        return builder.select(big, builder.xor(high, constant("int64", -(2**63))), low)
    carrier = "int64" if target in ("int64", "uint32") else "int32"
    return _int_resize(builder, carrier, target, _truncate_in_range(builder, carrier, value))


def _truncate_in_range(builder: Builder, target: str, value: Value) -> Value:
    lowest = -(2.0 ** (width(target) - 1))
    # In double there are fractions between int32's lowest value and the next integer below, and they truncate into
    # range.
    if target == "int32" and isinstance(value.type, ir.DoubleType):
        above = builder.fcmp_ordered(">", value, ir.Constant(value.type, lowest - 1.0))
    else:
        above = builder.fcmp_ordered(">=", value, ir.Constant(value.type, lowest))
    below = builder.fcmp_ordered("<", value, ir.Constant(value.type, -lowest))
    # The unfit value's poison stays behind the select.
    return builder.select(
        builder.and_(above, below), builder.fptosi(value, llvm_type(target)), constant(target, int(lowest))
    )


# --- calls ----------------------------------------------------------------------------------------------------------


def call_llvm(builder: Builder, name: str, args: Sequence[Value], flags: tuple[str, ...] = ()) -> Value:
    """A call of the intrinsic `llvm.name` of the arguments' type."""
    kind = args[0].type
    function = declare(builder.module, f"llvm.{name}.{suffix_of(kind)}", kind, len(args))
    return builder.call(function, args, fastmath=flags)


def suffix_of(kind: ir.Type) -> str:
    """The part of the names of LLVM's functions that stands for a scalar type."""
    return f"i{kind.width}" if isinstance(kind, ir.IntType) else "f32" if isinstance(kind, ir.FloatType) else "f64"


def declare(module: ir.Module, name: str, kind: ir.Type, arity: int) -> ir.Function:
    """The declaration of a function of `arity` arguments of one type, which is the result's too."""
    if name in module.globals:
        return module.globals[name]
    return ir.Function(module, ir.FunctionType(kind, [kind] * arity), name)


def call_libm(builder: Builder, name: str, dtype: str, args: Sequence[Value]) -> Value:
    """A call of the function `name` of C's mathematical library, of the float type `dtype`."""
    function = declare(builder.module, name + ("f" if dtype == "float32" else ""), llvm_type(dtype), len(args))
    function.attributes.add("nounwind")
    return builder.call(function, args)
