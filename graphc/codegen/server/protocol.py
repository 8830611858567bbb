"""What crosses the pipe to the compile process, and how.

In: the target and a request, the source text with all that decides its object. Out: messages, each a length and as
many bytes. An answer is a pair: whether it succeeded, and the bytes or what went wrong. Where modules are asked for,
one answer comes for each as soon as it is lowered, and None at the end.
"""

from __future__ import annotations

import struct
from typing import IO, Literal

from graphc.codegen.llvm.module import IR, Prototype
from graphc.startup.record import record

Wanted = Literal["object", "assembly", "modules"]


@record()
class Request:
    """One compilation: functions that `source` defines, `modules`, and the elementary functions of these names, whose
    IR the compile process writes. `wanted` is what is asked for: an object, its assembly as text, or the modules of the
    functions, each an answer of its own."""

    source: str = ""
    functions: tuple[Prototype, ...] = ()
    externals: tuple[tuple[str, Prototype], ...] = ()
    modules: tuple[IR, ...] = ()
    elementary: tuple[str, ...] = ()
    opt: int = 3
    fast_math: bool = False
    wanted: Wanted = "object"


ELEMENTARY_OPT = 1
"""LLVM's level for elementary functions: no loop gains from more."""

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
