"""The loop IR in words that mean the same to CPython, with NumPy's scalars, and to numba's own compiler.

In: functions of a program. Out: functions whose source names only Python's operators, casts, functions of NumPy and of
python_operators.py; `meaning` says what a name of it stands for. numba computes int8 + int8 in int64: narrow results
are cast. Launches of threads are loops over chunks; safepoints are left out.

    accumulate(total, x[i] * int8(2))      int8(total + int8(x[i] * int8(2)))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from graphc.arrays import numerics, portable
from graphc.arrays.dtypes import FLOATS, SIGNED, UNSIGNED
from graphc.codegen.call.callback import SAFEPOINT_CALLS
from graphc.codegen.pipeline import python_operators
from graphc.loopir import ir, operators
from graphc.startup.record import replace

SAME = {"accumulate": operators.ADD, "accumulate_in_order": operators.ADD, "accumulate_product": operators.MUL}
"""Operators that Python has without a name."""
OF_BOOLS = {
    **dict.fromkeys(("minimum", "accumulate_minimum", "accumulate_lowest", "fmin", "logical_and"), operators.AND),
    **dict.fromkeys(("maximum", "accumulate_maximum", "accumulate_highest", "fmax", "logical_or"), operators.OR),
    "logical_xor": operators.NE,
}
"""Operators of truth values."""
EXTREMES = {
    **dict.fromkeys(("minimum", "accumulate_minimum", "accumulate_lowest"), "minimum"),
    **dict.fromkeys(("maximum", "accumulate_maximum", "accumulate_highest"), "maximum"),
    "fmin": "fmin",
    "fmax": "fmax",
}
LEAST = {"minimum": "min", "fmin": "min", "maximum": "max", "fmax": "max"}
COMPOSED = ("multiply_add", "blocks", "block_length")
OF_FLOAT64 = frozenset("erf erfc erfcx gammaln digamma trigamma sign heaviside".split())
"""Functions of any number whose value is a float64."""
TYPED = frozenset("sum_error add_error select sigmoid softplus".split())
"""Functions whose value has the dtype of their operands."""
NARROW = frozenset({*SIGNED, *UNSIGNED} - {ir.INDEX})


def function_text(function: ir.Function) -> ir.Function:
    """A function in these words."""
    return replace(function, body=tuple(written_all(function.body)))


def written_all(body: Sequence[ir.Stmt]) -> Iterator[ir.Stmt]:
    for stmt in body:
        match stmt:
            case ir.Let(var, value) | ir.Set(var, value):
                yield ir.Set(var, written(value))
            case ir.Store(buffer, index, value):
                yield ir.Store(buffer, written(index), written(value))
            case ir.Loop(var, size, inner, begin):
                yield ir.Loop(var, written(size), tuple(written_all(inner)), written(begin))
            case ir.If(condition, then, orelse):
                yield ir.If(written(condition), tuple(written_all(then)), tuple(written_all(orelse)))
            case ir.Check(condition, code):
                yield ir.Check(written(condition), code)
            case ir.Invoke(name, args, code):
                if name not in SAFEPOINT_CALLS:
                    yield ir.Invoke(name, tuple(map(written, args)), code)
            case ir.Launch(name, count, size, args):
                yield from launched(name, written(count), written(size), tuple(map(written, args)))
            case _:
                yield stmt


def launched(name: str, count: ir.Expr, size: ir.Expr, args: tuple[ir.Expr, ...]) -> Iterator[ir.Stmt]:
    """A call for each chunk."""
    whole, length, part = (ir.Var(name, ir.INDEX) for name in ("_count", "_size", "_part"))
    yield ir.Set(whole, count)
    yield ir.Set(length, size)
    begin = ir.apply(operators.MUL, part, length)
    end = written(ir.apply(operators.MINIMUM, ir.apply(operators.ADD, begin, length), whole))
    yield ir.Loop(part, written(ir.apply(operators.BLOCKS, whole, length)), (ir.Invoke(name, (begin, end, *args)),))


def written(expr: ir.Expr) -> ir.Expr:
    """An expression in these words."""
    match expr:
        case ir.Load(buffer, index):
            return ir.Load(buffer, written(index))
        case ir.Pointer(buffer, index):
            return ir.Pointer(buffer, written(index))
        case ir.Apply(op, args, dtype):
            return applied(op, tuple(map(written, args)), args[-1].dtype, dtype)
        case _:
            return expr


def call(name: str, *args: ir.Expr, dtype: str) -> ir.Expr:
    """A call of a function of python_operators.py, or of Python's."""
    return ir.Apply(operators.Operator(f"_{name}", len(args)), args, dtype)


def cast(value: ir.Expr, dtype: str) -> ir.Expr:
    return ir.Apply(operators.CASTS[dtype], (value,), dtype)


def number(value: int, dtype: str) -> ir.Const:
    return ir.Const(repr(float(value)) if dtype in FLOATS else str(value), dtype)


def applied(op: operators.Operator, args: tuple[ir.Expr, ...], operand_dtype: str, dtype: str) -> ir.Expr:
    """An operator's value. kind: the dtype of its operands."""
    name = op.name
    if op in operators.CASTS.values():
        return converted(args[0], operand_dtype, dtype)
    if name in ("fills", "reads"):
        return args[0]
    if operand_dtype == "bool" and name in OF_BOOLS:
        return ir.Apply(OF_BOOLS[name], args, "bool")
    if operand_dtype == "bool" and name in ("~", "logical_not"):
        return ir.Apply(operators.EQ, (args[0], ir.Const("False", "bool")), "bool")
    if name in EXTREMES:
        stem = EXTREMES[name]
        return (
            call(stem, *args, dtype=dtype)
            if operand_dtype in FLOATS
            else narrowed(call(LEAST[stem], *args, dtype=dtype), dtype)
        )
    if name in COMPOSED:
        return composed(name, args, operand_dtype, dtype)
    op = SAME.get(name, op)
    if op.form == "call":
        return called(op, args, operand_dtype, dtype)
    if name in ("//", "%"):
        return called(operators.CALLS["floordiv" if name == "//" else "mod"], args, operand_dtype, dtype)
    return narrowed(ir.Apply(op, args, dtype), dtype)


def composed(name: str, args: tuple[ir.Expr, ...], operand_dtype: str, dtype: str) -> ir.Expr:
    """The value of an operator that is made of others."""
    if name == "multiply_add":
        return applied(
            operators.ADD, (applied(operators.MUL, args[:2], operand_dtype, dtype), args[2]), operand_dtype, dtype
        )
    if name == "blocks":
        count, size = args
        return applied(
            operators.FLOORDIV,
            (ir.Apply(operators.ADD, (count, ir.subtract(size, ir.ONE)), ir.INDEX), size),
            operand_dtype,
            dtype,
        )
    count, place, size = args
    return call(
        "min",
        size,
        ir.Apply(operators.SUB, (count, ir.Apply(operators.MUL, (size, place), ir.INDEX)), ir.INDEX),
        dtype=dtype,
    )


def narrowed(value: ir.Expr, dtype: str) -> ir.Expr:
    return cast(value, dtype) if dtype in NARROW else value


def called(op: operators.Operator, args: tuple[ir.Expr, ...], operand_dtype: str, dtype: str) -> ir.Expr:
    """A function's value."""
    name = op.name
    if name in ("floordiv", "mod", "fmod"):
        if operand_dtype in FLOATS:
            if name == "fmod":
                return ir.Apply(op, args, dtype)
            one = (number(1, operand_dtype),) if name == "floordiv" else ()
            return call("floor_divide" if name == "floordiv" else "modulo", *args, *one, dtype=dtype)
        quotient = name == "floordiv"
        if operand_dtype == ir.INDEX and name != "fmod" and (ir.int_value(args[1]) or 0) > 0:
            return ir.Apply(operators.FLOORDIV if quotient else operators.MOD, args, dtype)
        if operand_dtype in UNSIGNED:
            return cast(call("natural_divide" if quotient else "natural_modulo", *args, dtype=dtype), dtype)
        wide = [each if operand_dtype == ir.INDEX else cast(each, ir.INDEX) for each in args]
        words = {"floordiv": "whole_divide", "mod": "whole_modulo", "fmod": "whole_fmod"}
        return narrowed(call(words[name], *wide, dtype=ir.INDEX), dtype)
    if name == "ipow":
        carrier = "uint64" if operand_dtype in UNSIGNED else ir.INDEX
        wide = [each if operand_dtype == carrier else cast(each, carrier) for each in args]
        return narrowed(call("whole_power", *wide, number(1, carrier), dtype=carrier), dtype)
    if name in ("shift_left", "shift_right"):
        return narrowed(
            call(name, *args, number(np.dtype(operand_dtype).itemsize * 8 - 1, operand_dtype), dtype=dtype), dtype
        )
    if name == "pow" or (name == "lcm" and operand_dtype == ir.INDEX):
        return call("power" if name == "pow" else name, *args, dtype=dtype)
    if name in OF_FLOAT64:
        return cast(call(name, *args, dtype="float64"), dtype)
    if name in TYPED:
        return call(name, *args, dtype=dtype)
    if name.startswith("portable_"):
        return cast(ir.Apply(op, (cast(args[0], "float64"),), "float64"), dtype)
    return ir.Apply(op, args, dtype)


def converted(value: ir.Expr, operand_dtype: str, dtype: str) -> ir.Expr:
    """A number as one of another dtype."""
    if dtype == "bool":
        return value if operand_dtype == "bool" else ir.Apply(operators.NE, (value, number(0, operand_dtype)), "bool")
    if operand_dtype in FLOATS and dtype not in FLOATS:
        if dtype in ("int64", "uint64"):
            return call(f"to_{dtype}", value, dtype=dtype)
        return cast(call("to_int64" if dtype == "uint32" else "to_int32", value, dtype=ir.INDEX), dtype)
    if operand_dtype == ir.INDEX and dtype != ir.INDEX:
        return cast(cast(value, ir.INDEX), dtype)  # Python's own int raises where it does not fit
    return cast(value, dtype)


def meaning(name: str) -> str:
    """Return the expression of NumPy's that an operator's name stands for in source, "" for none."""
    op = operators.CALLS.get(name)
    if op is None:
        return {"_min": "min", "_max": "max"}.get(name, "")
    if op in operators.CASTS.values():
        return f"np.{name}"
    return f"np.{op.python.removeprefix('np.')}" if op.python.startswith("np.") else ""


def own(name: str) -> str:
    """The function of python_operators.py that a name stands for, "" for none."""
    stem = {"_divide": "divide", "pow": "power"}.get(name, name.removeprefix("_"))
    return stem if callable(getattr(python_operators, stem, None)) else ""


def routine_of(name: str) -> str:
    """The function of python_operators.py for a routine, "" for none: gc_gemm_f64 is gemm, gc_order_top_int8 top."""
    stem = name.removeprefix("gc_").removeprefix("order_").removeprefix("grouped_").rpartition("_")[0]
    return own(stem)


# --- functions of portable.py -----------------------------------------------------------------------------------------


class Text:
    """A number, its bits or a truth value of portable.py as a name of source, whose lines are in `lines`."""

    def __init__(self, lines: list[str], text: str, bits: bool = False) -> None:
        self.lines, self.bits_ = lines, bits
        self.text = text
        if not text.isidentifier():
            self.text = f"t{len(lines)}"
            lines.append(f"{self.text} = {text}")

    def operand(self, other: Any) -> str:
        if isinstance(other, Text):
            return other.text
        return f"np.uint64({other % 2**64})" if self.bits_ else literal(other)

    def with_other(self, symbol: str, other: Any, turned: bool = False) -> Text:
        sides = (self.text, self.operand(other))
        left, right = reversed(sides) if turned else sides
        return Text(self.lines, f"{left} {symbol} {right}", self.bits_)

    def __add__(self, other: Any) -> Text:
        return self.with_other("+", other)

    def __sub__(self, other: Any) -> Text:
        return self.with_other("-", other)

    def __mul__(self, other: Any) -> Text:
        return self.with_other("*", other)

    def __truediv__(self, other: Any) -> Text:
        return self.with_other("/", other)

    def __radd__(self, other: Any) -> Text:
        return self.with_other("+", other, True)

    def __rsub__(self, other: Any) -> Text:
        return self.with_other("-", other, True)

    def __rmul__(self, other: Any) -> Text:
        return self.with_other("*", other, True)

    def __neg__(self) -> Text:
        return Text(self.lines, f"-{self.text}")

    def __lt__(self, other: Any) -> Text:
        return self.with_other("<", other)

    def __gt__(self, other: Any) -> Text:
        return self.with_other(">", other)

    def __and__(self, other: Any) -> Text:
        return self.with_other("&", other)

    def __or__(self, other: Any) -> Text:
        return self.with_other("|", other)

    def __xor__(self, other: Any) -> Text:
        return self.with_other("^", other)

    def __lshift__(self, other: Any) -> Text:
        return self.with_other("<<", other)

    def __rshift__(self, other: Any) -> Text:
        return self.with_other(">>", other)

    def equals(self, other: Any) -> Text:
        return self.with_other("==", other)

    def root(self) -> Text:
        return Text(self.lines, f"np.sqrt({self.text})")

    def bits(self) -> Text:
        return Text(self.lines, f"np.float64({self.text}).view(np.uint64)", True)

    def real(self) -> Text:
        return Text(self.lines, f"np.uint64({self.text}).view(np.float64)")

    def bit(self, place: int) -> Text:
        return Text(self.lines, f"({self.text} & np.uint64({1 << place})) != np.uint64(0)")

    def select(self, true: Any, false: Any) -> Text:
        first, second = (
            each.text if isinstance(each, Text) else f"np.float64({literal(each)})" for each in (true, false)
        )
        return Text(self.lines, f"{first} if {self.text} else {second}")


def literal(value: float) -> str:
    return repr(float(value)) if np.isfinite(value) else {np.inf: "np.inf", -np.inf: "-np.inf"}.get(value, "np.nan")


def portable_text(name: str) -> str:
    """The source of a function of arrays/portable.py that an operator computes, "" for none: its operations one by one,
    in their order, so that numbers are the same to the bit."""
    lines: list[str] = []
    stem = name.removeprefix("philox_").removeprefix("portable_")
    if name == "philox_unit":
        return (
            "def philox_unit(index, draw, key):\n    word = philox(index, draw, key)\n"
            "    return np.float64(word >> np.uint64(11)) * 1.1102230246251565e-16\n"
        )
    if name == "philox_normal":
        first, second = (Text(lines, each, True) for each in ("first", "second"))
        cosine, sine = portable.normals(first, second)
        head = ["first, second = philox_words(index >> np.uint64(1), draw, key)"]
        tail = f"return {sine.text} if index & np.uint64(1) else {cosine.text}"
        params = "index, draw, key"
    elif name.startswith("philox_") and stem in numerics.DRAWN:
        tail = f"return {getattr(portable, stem)(Text(lines, 'word', True)).text}"
        head, params = ["word = philox(index, draw, key)"], "index, draw, key"
    elif name.startswith("portable_"):
        tail = f"return {getattr(portable, stem)(Text(lines, 'x')).text}"
        head, params = [], "x"
    else:
        return ""
    return f"def {name}({params}):\n" + "".join(f"    {line}\n" for line in (*head, *lines, tail))
