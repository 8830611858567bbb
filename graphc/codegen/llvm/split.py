"""Functions of LLVM IR as several modules, so that two processes can compile them.

In: functions (functions.py). Out: texts whose objects, linked, are that of the whole. A function that was internal is
hidden instead: nothing beyond the link sees it. What is always inlined is in every module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.codegen.llvm.functions import Function, module_text, reached, write_module


def split(functions: Sequence[Function[Any, Any]], count: int, poison: bool = False) -> list[str]:
    """`count` modules, of about the same length, or fewer where there are fewer functions."""
    every = reached(functions, poison=poison)
    written = [each for each in every if each.body is not None]
    inlined = [each for each in written if each.attributes == "alwaysinline"]
    others = [each for each in written if each.attributes != "alwaysinline"]
    count = min(count, max(len(others), 1))
    if count == 1:
        return [module_text(functions, poison=poison)]
    groups = balanced([len(each.definition(poison).blocks) for each in others], count)
    linkage = {each.name: "hidden " for each in others if each.is_internal}
    linkage |= {each.name: "internal " for each in inlined}
    modules = []
    for group in groups:
        defined = [*inlined, *(others[place] for place in sorted(group))]
        modules.append(write_module(every, {each.name for each in defined}, linkage, poison))
    return modules


def balanced(sizes: Sequence[int], count: int) -> list[list[int]]:
    """The places of sizes in `count` groups of about the same sum: the largest first, each to the smallest group."""
    groups: list[list[int]] = [[] for _ in range(count)]
    sums = [0] * count
    for place in sorted(range(len(sizes)), key=lambda place: (-sizes[place], place)):
        smallest = sums.index(min(sums))
        groups[smallest].append(place)
        sums[smallest] += sizes[place]
    return groups
