"""Operations on llvmlite's values that llvmlite has no function for: its internals are touched here only.

In: modules, functions and values of llvmlite.ir. Out: the same, changed.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from llvmlite import ir


def literal(type: ir.Type, text: str) -> ir.Constant:
    """A constant in a form of LLVM's that llvmlite does not write itself."""
    made = ir.FormattedConstant(type, "0")
    made.constant = text
    return made


def set_attribute(function: ir.Function, attribute: str) -> None:
    """Add an attribute that llvmlite's own list, which `add` checks, lacks."""
    set.add(function.attributes, attribute)


def remove_global(module: ir.Module, name: str) -> None:
    """Take a function or a variable out of a module, so that another one may have its name."""
    del module.globals[name]
    module.scope._useset.discard(name)


def array_elements(variable: ir.GlobalVariable) -> list[ir.Constant]:
    """The constants that an array was initialised with."""
    return [*variable.initializer.constant]


def append_copy(
    builder: ir.IRBuilder, like: ir.Instruction, type: ir.Type, operands: Sequence[ir.Value]
) -> ir.Instruction:
    """An instruction once more at the end of a block, upon other operands, with a result of another type."""
    made = copy.copy(like)
    made.type = type
    made.operands, made.metadata, made.parent, made.name = list(operands), {}, builder.block, ""
    made._clear_string_cache()
    vars(made).pop("_StringReferenceCaching__cached_refstr", None)
    return append(builder, made)


def append(builder: ir.IRBuilder, made: ir.Instruction) -> ir.Instruction:
    """Put an instruction at the end of a block."""
    builder.block.instructions.append(made)
    builder.position_at_end(builder.block)
    return made


def loop_id(module: ir.Module, properties: Sequence[ir.MDValue]) -> ir.MDValue:
    """The metadata of one loop: by LLVM's rule its first operand is itself, so that no two loops share one."""
    loop_id = ir.MDValue(module, (), name=str(len(module.metadata)))
    loop_id.operands = (loop_id, *properties)
    return loop_id
