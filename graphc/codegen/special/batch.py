"""A special function for all elements, one after the other.

In: the addresses behind the room's symbols. Out: those of PROTOTYPES in LLVM IR. Threads do not share elements:
where the program wants SciPy's warnings, its functions ask for the interpreter, which the waiting caller may hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, Global
from graphc.codegen.llvm.typed import F32, F64, I32, I64, Ptr
from graphc.codegen.special import FUNCTIONS, slot
from graphc.ops.custom import SOURCES

KINDS: dict[str, Any] = {"float64": F64, "float32": F32}


def functions(names: Sequence[str]) -> list[Function[..., Any]]:
    """These functions of the room's PROTOTYPES."""
    return [all_elements(name, *FUNCTIONS[name]) for name in sorted(names)]


def all_elements(symbol: str, name: str, dtype: str) -> Function[..., I64]:
    """The function of a dtype."""
    places = [f"x{place}" for place in range(len(SOURCES[name].operands))]
    kinds = {"count": I64, **dict.fromkeys([*places, "result"], Ptr)}
    return Function(symbol, I64, kinds, partial(_write, name, KINDS[dtype]), "noinline optsize")


def _write(name: str, element_type: Any, code: Code, count: I64, *places: Ptr) -> I64:
    *operands, result = places
    source = SOURCES[name]
    routine = Global(slot(name), "external global ptr")(code).load(Ptr)
    outputs = [code.local(F64) for _ in range(source.count if source.count > 1 else 0)]
    with code.count(0, count) as element:
        values: list[Any] = [operand.at(element, element_type).load(element_type).to(F64) for operand in operands]
        taken = [value if each == "d" else value.to(I64) for value, each in zip(values, source.operands, strict=True)]
        if source.count == 1:
            value = routine.call(F64, *taken, I32.of(0), *[Ptr(None, "null")] * source.options)
        else:
            routine.call(None, *taken, *outputs)
            value = outputs[source.place].load(F64)
        result.at(element, element_type).store(value.to(element_type))
    return I64.of(0)
