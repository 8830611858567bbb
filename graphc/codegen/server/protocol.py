"""The protocol of the pipe to the compile process.

In: the target and a `Request`, pickled. Out: messages, each a length and as many bytes. An answer is a pair: (True,
bytes) or (False, error text). A request for modules gets one answer for each module as soon as it is lowered, then
(True, None).
"""

from __future__ import annotations

import struct
from typing import IO, Literal

from graphc.codegen.llvm.module import IR, Prototype
from graphc.startup.record import record

Wanted = Literal["object", "assembly", "modules"]


@record()
class Request:
    """One compilation: functions defined in `source`, IR in `modules`, and elementary functions by name, whose IR the
    compile process writes. wanted: "object"; "assembly", as text; or "modules", the IR of the functions, an answer for
    each."""

    source: str = ""
    functions: tuple[Prototype, ...] = ()
    externals: tuple[tuple[str, Prototype], ...] = ()
    modules: tuple[IR, ...] = ()
    elementary: tuple[str, ...] = ()
    opt: int = 3
    fast_math: bool = False
    wanted: Wanted = "object"


ELEMENTARY_OPT = 1
"""LLVM's optimisation level for elementary functions: they have no loops that would gain from more."""

_LENGTH = struct.Struct("<Q")


def write_message(stream: IO[bytes], message: bytes) -> None:
    """Write one message to a stream."""
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes | None:
    """Read one message; None where the other end is closed."""
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
