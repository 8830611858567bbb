"""LLVM IR that reads a 0-d parameter, given as an array, a NumPy scalar or a Python number.

In: a dtype. Out: the definition of a function as text, over those of objects.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.call.bind import ALIGNED, ARRAY_DTYPE, ARRAY_FLAGS, ARRAY_RANK, OBJECT_TYPE, VALUE
from graphc.codegen.call.objects import Lines, field
from graphc.dtypes import DTYPES, FLOATS, can_cast_safely

LLVM_TYPES = {
    "bool": "i8",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
}


def scalar_function(dtype: str) -> str:
    """IR of the function that finds the element of a 0-d parameter: in the object itself, or converted into `room`;
    null to refuse.

    It takes what values.as_array takes: arrays of rank 0 and NumPy scalars whose dtype casts safely, and Python numbers
    that fit, floats rounded where they must be.
    """
    sources = [source for source in DTYPES if source != dtype and can_cast_safely(source, dtype)]
    return "\n".join(
        [
            f"define internal ptr @scalar_{dtype}(ptr %object, ptr %record, ptr %ndarray, ptr %room) noinline {{",
            *(line if line.endswith(":") else f"  {line}" for line in _scalar_lines(dtype, sources)),
            "}",
        ]
    )


def _scalar_lines(dtype: str, sources: Sequence[str]) -> Lines:
    yield f"%type.at = getelementptr i8, ptr %object, i64 {OBJECT_TYPE}"
    yield "%type = load ptr, ptr %type.at"
    yield f"%inside = getelementptr i8, ptr %object, i64 {VALUE}"
    yield "%is.array = icmp eq ptr %type, %ndarray"
    yield "br i1 %is.array, label %array, label %number"
    yield "array:"
    yield f"%rank.at = getelementptr i8, ptr %object, i64 {ARRAY_RANK}"
    yield f"%flags.at = getelementptr i8, ptr %object, i64 {ARRAY_FLAGS}"
    yield f"%descriptor.at = getelementptr i8, ptr %object, i64 {ARRAY_DTYPE}"
    yield "%rank = load i32, ptr %rank.at"
    yield "%flags = load i32, ptr %flags.at"
    yield "%descriptor = load ptr, ptr %descriptor.at"
    yield "%data = load ptr, ptr %inside"
    yield f"%aligned = and i32 %flags, {ALIGNED}"
    yield "%unaligned = icmp eq i32 %aligned, 0"
    yield "%axes = icmp ne i32 %rank, 0"
    yield "%unfit = or i1 %unaligned, %axes"
    yield "br i1 %unfit, label %refuse, label %array.own"
    yield "array.own:"
    yield from _match("array.is", "%descriptor", f"{dtype} descriptor", "element", "array.other")
    yield "element:"
    yield "ret ptr %data"
    yield "array.other:"
    yield from field("exact", "exact")
    yield "%inexact = icmp eq ptr %exact, null"
    yield "br i1 %inexact, label %array.cast, label %refuse"
    yield "array.cast:"
    yield from _dispatch("array", "%descriptor", "descriptor", sources)
    yield "number:"
    yield from field("exact.word", "exact")
    yield "%weak = icmp eq ptr %exact.word, null"
    yield "br i1 %weak, label %scalar, label %refuse"
    yield "scalar:"
    yield from _match("is.scalar", "%type", f"{dtype} scalar", "value", "python")
    yield "value:"
    yield "ret ptr %inside"
    yield from _python_cases(dtype)
    yield "scalar.other:"
    yield from _dispatch("scalar", "%type", "scalar", sources)
    for source in sources:
        yield f"from.{source}:"
        yield f"%{source}.at = phi ptr [%data, %array.{source}], [%inside, %scalar.{source}]"
        yield f"%{source}.value = load {LLVM_TYPES[source]}, ptr %{source}.at"
        yield from _converted(source, f"%{source}.value", source, dtype)
    yield "refuse:"
    yield "ret ptr null"


def _match(name: str, value: str, word: str, then: str, otherwise: str) -> Lines:
    """Branches on whether a value is a word of the record."""
    yield from field(f"{name}.word", word)
    yield f"%{name} = icmp eq ptr {value}, %{name}.word"
    yield f"br i1 %{name}, label %{then}, label %{otherwise}"


def _dispatch(name: str, value: str, words: str, sources: Sequence[str]) -> Lines:
    """To `from.<source>` by way of `<name>.<source>`, where the value is that dtype's word."""
    for source in sources:
        yield from _match(f"{name}.is.{source}", value, f"{source} {words}", f"{name}.{source}", f"{name}.not.{source}")
        yield f"{name}.{source}:"
        yield f"br label %from.{source}"
        yield f"{name}.not.{source}:"
    yield "br label %refuse"


def _converted(name: str, value: str, source: str, dtype: str) -> Lines:
    """Stores a value of dtype `source` as one of `dtype` in `room`, and returns that."""
    old, new = LLVM_TYPES[source], LLVM_TYPES[dtype]
    if dtype in FLOATS:
        signed = source.startswith("int")
        how = ("fptrunc" if dtype == "float32" else "fpext") if source in FLOATS else "sitofp" if signed else "uitofp"
    else:
        how = "sext" if source.startswith("int") else "zext"
    if old == new:
        yield f"store {new} {value}, ptr %room"
    else:
        yield f"%{name}.made = {how} {old} {value} to {new}"
        yield f"store {new} %{name}.made, ptr %room"
    yield "ret ptr %room"


def _python_cases(dtype: str) -> Lines:
    """A Python float for a parameter of floats, True and False for any, an int that fits for all but bools."""
    yield "python:"
    yield from field("true", "true")
    yield from field("false", "false")
    yield "%is.true = icmp eq ptr %object, %true"
    yield "%is.false = icmp eq ptr %object, %false"
    yield "%is.bool = or i1 %is.true, %is.false"
    yield f"br i1 %is.bool, label %truth, label %{'float' if dtype in FLOATS else 'int'}"
    yield "truth:"
    yield "%truth.value = zext i1 %is.true to i8"
    yield from _converted("truth", "%truth.value", "bool", dtype)
    if dtype in FLOATS:
        yield "float:"
        yield from _match("is.float", "%type", "float", "real", "int")
        yield "real:"
        if dtype == "float64":
            yield "ret ptr %inside"
        else:
            yield "%real.value = load double, ptr %inside"
            yield from _converted("real", "%real.value", "float64", dtype)
    yield "int:"
    if dtype == "bool":
        yield "br label %scalar.other"
        return
    yield from _match("is.int", "%type", "int", "integer", "scalar.other")
    yield "integer:"
    yield "%over.at = alloca i32"
    yield from field("convert", "PyLong_AsLongLongAndOverflow")
    yield "%integer.value = call i64 %convert(ptr %object, ptr %over.at)"
    yield "%over = load i32, ptr %over.at"
    yield "%within = icmp eq i32 %over, 0"
    yield "br i1 %within, label %integer.fits, label %refuse"
    yield "integer.fits:"
    if dtype in FLOATS:  # rounded to nearest even, as Python's float() does
        yield from _converted("integer", "%integer.value", "int64", dtype)
        return
    new = LLVM_TYPES[dtype]
    if new != "i64":
        yield f"%short = trunc i64 %integer.value to {new}"
        yield f"%long = {'sext' if dtype.startswith('int') else 'zext'} {new} %short to i64"
        yield "%same = icmp eq i64 %long, %integer.value"
        yield "br i1 %same, label %integer.store, label %refuse"
        yield "integer.store:"
        yield f"store {new} %short, ptr %room"
    else:
        yield f"%negative = icmp slt i64 %integer.value, {0 if dtype == 'uint64' else -(2**63)}"
        yield "br i1 %negative, label %refuse, label %integer.store"
        yield "integer.store:"
        yield "store i64 %integer.value, ptr %room"
    yield "ret ptr %room"
