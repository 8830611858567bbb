"""What crosses the pipe to the compile process, and how.

In: the target and a request, the source text with all that decides its object. Out: messages, each a length and as
many bytes. An answer is a pair: whether it succeeded, and the bytes or what went wrong. Where modules are asked for,
one answer comes for each as soon as it is lowered, and an empty one at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import IO, Literal

from graphc.record import record

AHEAD = "graphc compiles ahead"
"""The name of a thread that only waits for the compile process: it imports nothing meanwhile."""


@record()
class Prototype:
    """A C function: its symbol, the types of its arguments, and of its result.

    A type is "bool", "int8" ... "int64", "uint8" ... "uint64", "float32" or "float64", with "*" appended for a
    pointer to elements of it; a result may also be "void". A bool is one byte that holds 0 or 1.
    """

    name: str
    args: tuple[str, ...]
    returns: str = "int64"


Wanted = Literal["object", "assembly", "modules"]


@record()
class Request:
    """One compilation: the arguments of `compile.compile_source`. `wanted` is what is asked for: an object, its
    assembly as text, or the IR of its functions in modules, each an answer of its own."""

    source: str
    functions: tuple[Prototype, ...]
    extra_ir: tuple[str, ...]
    externals: tuple[tuple[str, Prototype], ...]
    opt: int
    fast_math: bool
    wanted: Wanted = "object"


CALLS = "; calls "
"""How the text of a module begins that calls functions which are compiled once for a machine."""


def with_calls(names: Sequence[str], ir: str) -> str:
    """A module's text that says which parts its functions call."""
    return f"{CALLS}{' '.join(names)}\n{ir}" if names else ir


def calls_of(ir: str) -> list[str]:
    """The names of the parts that a module's text says it calls."""
    return ir[len(CALLS) : ir.index("\n")].split() if ir.startswith(CALLS) else []


PART = "; part "
"""A text that begins so stands for the IR of an elementary function, which the process that compiles it writes."""


PART_EFFORT = 1
"""LLVM's level for it: no loop gains from more."""


def stand_for(name: str) -> str:
    return f"{PART}{name}\n"


def part_named(ir: str) -> str | None:
    """The name of the part that a text stands for; None for one that is IR."""
    return ir[len(PART) :].strip() if ir.startswith(PART) else None


_LENGTH = struct.Struct("<Q")


def write_message(stream: IO[bytes], message: bytes) -> None:
    """Send one message."""
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes | None:
    """Receive one message, or None where the other end is gone."""
    head = _read(stream, _LENGTH.size)
    return None if head is None else _read(stream, _LENGTH.unpack(head)[0])


def _read(stream: IO[bytes], count: int) -> bytes | None:
    parts = []
    while count:
        part = stream.read(count)
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
