"""Records that one stage of the back end hands to the next: signatures of C functions, words of C structs, modules.

In: nothing. Out: records, which cross the pipe to the compile process as they are. No module of llvmlite is imported.
"""

from __future__ import annotations

from typing import TypeAlias

from graphc.startup.record import record

AHEAD = "graphc compiles ahead"
"""The name of a thread that only waits for the compile process: it imports nothing meanwhile."""


POISON = 0x7FFADEAD
"""The word that memory is filled with under `options.poison`: NaN as float32 and, two of them, as float64; as an
integer of 32 or 64 bits a number above all sizes and indices. A loop over so many elements leaves the memory it reads,
where one over a negative number would have no iterations, and look as if it were done."""


@record()
class Prototype:
    """A C function: its symbol, the types of its arguments, and of its result.

    A type is "bool", "int8" ... "int64", "uint8" ... "uint64", "float32" or "float64", with "*" appended for a
    pointer to elements of it; a result may also be "void". A bool is one byte that holds 0 or 1.
    """

    name: str
    args: tuple[str, ...]
    returns: str = "int64"


class PointerField(int):
    """A word of a struct, by its offset in bytes: an address."""

    __slots__ = ()


class HalfField(int):
    """An integer of 32 bits in a struct, by its offset in bytes."""

    __slots__ = ()


class LongField(int):
    """An integer of 64 bits in a struct, by its offset in bytes."""

    __slots__ = ()


@record()
class Module:
    """LLVM IR as text. `calls`: the elementary functions that it calls, each compiled once for a machine, not with it
    (vecmath/table.py). `is_vectorized`: no loop is left for LLVM to vectorise or unroll. `is_straight`: it has no loops
    at all, or none that matter. `is_rare`: straight code that runs once for a call or a launch of threads.
    `is_ordered`: it was written by hand in the order in which it should run. `in_registers`: its values lie in
    registers at level 0 too."""

    ir: str
    calls: tuple[str, ...] = ()
    is_vectorized: bool = False
    is_straight: bool = False
    is_rare: bool = False
    is_ordered: bool = False
    in_registers: bool = False


IR: TypeAlias = str | Module
"""A module, or the text of one of which nothing more is known."""
