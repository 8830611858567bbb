"""The worker: answers the requests of `client.py`, as functions, or in the loop of a process (`main`).

In: a `Request`. Out: an object, assembly, or modules. This module imports numba: only the compile process imports it,
and a process that compiles inline.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import traceback
from collections.abc import Iterator
from typing import BinaryIO

from graphc.codegen.frontend.lowering import lower_modules, lower_source
from graphc.codegen.llvm.module import IR, Module, Prototype
from graphc.codegen.llvm.target import emit_assembly, emit_object
from graphc.codegen.server.protocol import ELEMENTARY_OPT, Request, read_message, write_message
from graphc.codegen.vecmath.table import math_ir
from graphc.errors import CompileError
from graphc.options import options

# The memory of an idle compile process goes back to the system; the next miss starts another.
IDLE_SECONDS = 120.0

PATIENCE_SECONDS = 0.1
"""The time within which a process that was started ahead gets its first request; after it, the process warms up."""

GARBAGE = 200_000
"""The number of new objects before a garbage collection: most objects of a request live until its answer."""

# Compiled while no request has come by then: the first compilation of a process takes twice as long as the next.
WARM_UP = Request(
    "def warm_up(x, n):\n    for i in independent(n):\n        x[i] = exp(x[i]) + 1.0\n    return 0\n",
    (Prototype("warm_up", ("float64*", "int64")),),
)


def compile_request(request: Request) -> bytes:
    """Return the object of a request, or its assembly as UTF-8. Raises CompileError."""
    modules: list[IR] = [*request.modules, *map(math_ir, request.elementary)]
    elementary: list[str] = []
    if request.functions or not modules:
        lowered = lower_source(request.source, request.functions, dict(request.externals), request.fast_math)
        modules.insert(0, lowered)
        elementary += map(math_ir, lowered.calls)
    if request.wanted == "assembly":  # each as it is compiled for a program
        shown = [emit_assembly(modules, request.opt), *(emit_assembly([each], ELEMENTARY_OPT) for each in elementary)]
        return "\n".join(shown).encode()
    return emit_object([*modules, *elementary], request.opt)


def lower_request(request: Request) -> Iterator[Module]:
    """Yield the modules of a request as they are lowered. Raises CompileError."""
    return lower_modules(request.source, request.functions, dict(request.externals), request.fast_math)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the client closes the pipe, or sends none for IDLE_SECONDS."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not select.select([requests], [], [], PATIENCE_SECONDS)[0]:
        compile_request(WARM_UP)
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        message = read_message(requests)
        if message is None:
            return
        options.target, request = pickle.loads(message)
        for answer in _answers(request):
            write_message(answers, pickle.dumps(answer))


def _answers(request: Request) -> Iterator[tuple[bool, bytes | Module | str | None]]:
    try:
        if request.wanted == "modules":
            yield from ((True, module) for module in lower_request(request))
            yield True, None
        else:
            yield True, compile_request(request)
    except CompileError as error:
        yield False, str(error)
    except Exception:  # a defect of the compiler: its traceback is all that helps
        yield False, traceback.format_exc()


def main() -> None:
    """Serve on standard input and output; whatever else prints goes to standard error."""
    gc.freeze()  # what was imported stays, and no collection need look at it
    gc.set_threshold(GARBAGE)
    gc.enable()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(os.fdopen(os.dup(0), "rb", buffering=0), answers)
