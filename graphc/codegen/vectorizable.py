"""Loops that LLVM is sure to vectorise.

In: a counted loop of a module of LLVM IR, before it is optimised. Out: whether every turn is independent of the others,
as far as that can be read off its text. LLVM finds more loops than these by itself; of one that it was told how to
vectorise, and cannot, it complains to standard error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

from llvmlite import ir

from graphc.codegen.vecmath import read_symbol
from graphc.codegen.whole_vectors import Counted, Flow, targets

Terms: TypeAlias = "Counter[Any]"
"""What is added up to an index: values that do not change from turn to turn, and `INDEX`."""
INDEX = "the loop's own index"


def is_surely_vectorizable(counted: Counted, flow: Flow, sums: Iterable[ir.AllocaInstr]) -> bool:
    """Whether all that a loop stores goes to the place of its own turn, is read by that one alone, and is computed by
    what has a form for vectors; `sums` may be added up."""
    body = counted.loop.body
    reader = Reader(counted, flow)
    stored: dict[ir.Value, Terms] = {}
    loaded: list[tuple[ir.Value, Terms | None]] = []
    for each in body.instructions:
        if isinstance(each, ir.CallInstr) and not has_vectors(each):
            return False
        if isinstance(each, ir.StoreInstr):
            if isinstance(each.operands[1], ir.AllocaInstr):
                reader.assign(each.operands[1], each.operands[0])
                continue
            base, terms = reader.place(each.operands[1])
            if base is None or terms is None or terms[INDEX] != 1 or stored.setdefault(base, terms) != terms:
                return False
        elif isinstance(each, ir.LoadInstr) and not isinstance(each.operands[0], ir.AllocaInstr):
            base, terms = reader.place(each.operands[0])
            if base is None:
                return False
            loaded.append((base, terms))
    others = reader.assigned.keys() - {*sums, counted.index}
    ending = targets(counted.loop.counting[-1])[1]
    return all(stored.get(base, terms) == terms for base, terms in loaded) and not are_read_after(ending, others)


def has_vectors(call: ir.CallInstr) -> bool:
    """Whether what is called is LLVM's own, or an elementary function."""
    name = call.callee.name
    return name.startswith("llvm.") or read_symbol(name) is not None


class Reader:
    """What a loop's addresses are made of, at the instruction that is looked at."""

    def __init__(self, counted: Counted, flow: Flow) -> None:
        self.counted, self.flow = counted, flow
        self.assigned: dict[ir.Value, Terms | None] = {}
        """What the loop's body has stored under a local name; None for another thing than a sum of what is known."""
        body = counted.loop.body
        self.inside = set(body.instructions)
        self.changes = {each.operands[1] for each in self.inside if isinstance(each, ir.StoreInstr)}

    def assign(self, name: ir.Value, value: ir.Value) -> None:
        self.assigned[name] = self.terms(value)

    def place(self, pointer: ir.Value) -> tuple[ir.Value | None, Terms | None]:
        """The argument of the function that a pointer belongs to, and its index there; None where they are not found.
        """
        if not isinstance(pointer, ir.GEPInstr) or len(pointer.indices) != 1:
            return None, None
        base: Any = pointer.pointer
        if isinstance(base, ir.LoadInstr) and base.operands[0] not in self.changes:
            base = self.flow.stored.get(base.operands[0])
        return (base if isinstance(base, ir.Argument) else None), self.terms(pointer.indices[0])

    def terms(self, value: Any) -> Terms | None:
        """What is added up to a number; None where that is not known, or changes from turn to turn."""
        match value:
            case ir.Constant():
                return Counter({value.constant: 1})
            case ir.LoadInstr() if value in self.inside:
                name = value.operands[0]
                if name is self.counted.index:
                    return Counter({INDEX: 1})
                if not isinstance(name, ir.AllocaInstr):
                    return None
                return self.assigned.get(name) if name in self.changes else Counter({name: 1})
            case ir.Instruction() if value in self.inside:
                parts = [self.terms(operand) for operand in value.operands]
                return combined(value.opname, parts)
            case _:
                return Counter({value: 1})


def combined(operation: str, parts: list[Terms | None]) -> Terms | None:
    """What an operation makes of sums: their sum, or one term where it is another one of what does not change."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if operation == "add":
        return sum(known, Counter())
    if operation not in ("mul", "sub") or any(part[INDEX] for part in known):
        return None
    return Counter({(operation, *(frozenset(part.items()) for part in known)): 1})


def are_read_after(ending: ir.Block, names: Iterable[ir.Value]) -> bool:
    """Whether something reads what was left under one of these local names, once a loop has come to its end."""
    left = [(ending, frozenset(names))]
    seen: dict[ir.Block, frozenset[ir.Value]] = {}
    while left:
        block, wanted = left.pop()
        wanted -= seen.get(block, frozenset())
        if not wanted:
            continue
        seen[block] = seen.get(block, frozenset()) | wanted
        written: set[ir.Value] = set()
        for each in block.instructions:
            if isinstance(each, ir.StoreInstr):
                written.add(each.operands[1])
            elif isinstance(each, ir.LoadInstr) and each.operands[0] in wanted - written:
                return True
        left += [(target, wanted - written) for target in targets(block)]
    return False
