r"""Compilation of generated source to object code, in another process.

In: the source text of functions over raw pointers and sizes, their prototypes, and LLVM IR to link in. Out: their LLVM
IR in modules (`lower_source`), or the bytes of a relocatable object that exports them as C symbols (`compile_request`).
The same text gives the same bytes.

    source = "def kernel(x, n):\n    for i in independent(n):\n        x[i] = x[i] + 1.0\n    return 0\n"
    prototype = Prototype("kernel", ("float64*", "int64"))
    compile_request(Request(source, (prototype,)))[:4]     b"\x7fELF"
    compile_assembly(source, [prototype])                  the same as text

numba and its memory stay in a compile process. It starts at the first request, or by `SERVER.start()`, serves all
requests, and ends with this process or after some minutes without a request. With `options.compile == "inline"`, and
where no process can be started, this process compiles.
"""

from __future__ import annotations

import atexit
import pickle
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import IO, Any, TypeVar

from graphc.codegen.llvm.module import AHEAD, IR, Module, Prototype
from graphc.codegen.server.process import close_pipes, forget, start_process, take_ahead
from graphc.codegen.server.protocol import Request, read_message, write_message
from graphc.errors import CompileError
from graphc.options import options
from graphc.startup.process import PROCESS, collected_after

__all__ = [
    "SERVER", "CompileServer", "Prototype", "Request", "compile_ahead", "compile_assembly",
    "compile_request", "lower_source",
]  # fmt: skip

T = TypeVar("T")


def compile_ahead(ir: IR, opt: int) -> Callable[[], bytes]:
    """Begin to compile IR in a thread. Returns a function that waits for the object and returns it, or raises the error
    of the compilation."""
    objects: list[bytes] = []
    problems: list[BaseException] = []

    def make() -> None:
        try:
            objects.append(compile_request(Request(modules=(ir,), opt=opt)))
        except BaseException as error:  # raised again below, in the thread that asks
            problems.append(error)

    def finish() -> bytes:
        worker.join()
        if problems:
            raise problems[0]
        return objects[0]

    worker = threading.Thread(target=make, name=AHEAD)
    worker.start()
    return finish


def compile_assembly(
    source: str, functions: Sequence[Prototype], *, externals: Mapping[str, Prototype] = {}, fast_math: bool = False
) -> str:
    """Return the assembly of `functions`, which `source` defines. Raises CompileError as `lower_source`."""
    request = Request(source, tuple(functions), tuple(externals.items()), fast_math=fast_math, wanted="assembly")
    return compile_request(request).decode()


def lower_source(
    source: str,
    functions: Sequence[Prototype],
    take: Callable[[int, Module], object],
    *,
    externals: Mapping[str, Prototype] = {},
    fast_math: bool = False,
) -> None:
    """Lower `functions`, which `source` defines in the generated language, to LLVM IR in modules of a few functions.

    take: called with the number and the module of each, in order, as soon as it is there. Where a compile process
    fails, it is called for all of them again: the last module of each number counts. The program is the objects of the
    modules at level 3, linked in order. externals: C functions that the source calls, by name. Memory behind two
    pointer arguments of a call must not overlap where one of them is written. fast_math: arithmetic may be reassociated
    and contracted; NaN and infinities keep their meaning.

    Raises CompileError for source that does not parse or type, and for IR that LLVM refuses.
    """
    request = Request(source, tuple(functions), tuple(externals.items()), fast_math=fast_math, wanted="modules")
    if options.compile == "process" and SERVER.start():
        SERVER.lower(request, take)
        return
    with SERVER.inline, collected_after():
        for number, module in enumerate(import_module("graphc.codegen.server.worker").lower_request(request)):
            take(number, module)


def compile_request(request: Request) -> bytes:
    """Return the object or assembly of a request, compiled in the compile process, or in this one by the options.
    Raises CompileError."""
    if options.compile == "process" and SERVER.start():
        return SERVER.compile(request)
    # Not an import statement: a process that never compiles must not load numba.
    with SERVER.inline, collected_after():
        return bytes(import_module("graphc.codegen.server.worker").compile_request(request))


class CompileServer:
    """The compile process of this process: at most one, started when needed. Safe with threads and after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inline = threading.Lock()
        """Of compilations in this process: numba is not safe with threads."""
        self._process: subprocess.Popen[bytes] | None = None
        self._lean = True
        self._complaints: IO[bytes] | None = None
        PROCESS.forgetting.append(self._forget)
        atexit.register(self.close)

    def start(self) -> bool:
        """Start the process unless it runs, without waiting for its import of numba. False where none can be
        started."""
        with self._lock:
            return self._running() is not None

    def compile(self, request: Request) -> bytes:
        """Return the object of a request. Raises CompileError with the compiler's message.

        A process with the lean numba may lack a module that the request needs. So a request that fails there is tried
        again in a process with the whole numba, which is kept.
        """
        message = pickle.dumps((options.target, request))
        return bytes(self._insist(lambda: self._answer(message)))

    def lower(self, request: Request, take: Callable[[int, Module], object]) -> None:
        """Call `take` with the number and the module of each module of a request. Errors as of `compile`; a second try
        calls `take` from the first module on again."""
        message = pickle.dumps((options.target, request))
        self._insist(lambda: self._stream(message, take))

    def _insist(self, ask: Callable[[], T]) -> T:
        with self._lock:
            try:
                return ask()
            except CompileError:
                if not self._lean:
                    raise
            self._lean = False
            self._stop()
            return ask()

    def close(self) -> None:
        """End the process; the next request starts another."""
        with self._lock:
            self._stop()

    def _running(self) -> subprocess.Popen[bytes] | None:
        if self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._process is None:
            try:
                self._process, self._complaints = (take_ahead() if self._lean else None) or start_process(self._lean)
            except OSError:
                return None
        return self._process

    def _stream(self, message: bytes, take: Callable[[int, Module], object]) -> None:
        number = 0
        try:
            module = self._answer(message)
            while module is not None:
                take(number, module)
                number += 1
                module = self._answer(b"")
        except CompileError:
            raise
        except BaseException:
            self._abandon()
            raise

    def _answer(self, message: bytes) -> Any:
        """Return the answer to a message; the next answer to the last one where `message` is empty. Raises CompileError
        for an answer that tells of an error."""
        answer = self._exchange(message)
        if answer is None and message:
            answer = self._exchange(message)  # the first process had just left for idleness
        if answer is None:
            raise CompileError("the compile process ended without an answer")
        succeeded, result = pickle.loads(answer)
        if not succeeded:
            raise CompileError(result)
        return result

    def _exchange(self, message: bytes) -> bytes | None:
        """Send a message, unless it is empty, and return the next answer. None where the process has ended in order;
        raises CompileError where it has crashed."""
        process = self._running() if message else self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            if message:
                write_message(process.stdin, message)
            answer = read_message(process.stdout)
        except BrokenPipeError:
            answer = None
        except BaseException:
            self._abandon()
            raise
        if answer is None:
            complaints, self._complaints = self._complaints, None
            code = self._stop()
            if code != 0:
                raise CompileError(f"the compile process ended with code {code}: {_read_tail(complaints)}")
        return answer

    def _abandon(self) -> None:
        """End a process in the midst of a request: the next answer in its pipe would belong to that request."""
        if self._process is not None:
            self._process.kill()
        self._stop()

    def _stop(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        close_pipes(process)
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None
        try:
            return process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _forget(self) -> None:
        """In the child of a fork: the process belongs to the parent, and its pipes must close when the parent ends."""
        process, self._process = self._process, None
        self._lock, self.inline = threading.Lock(), threading.Lock()
        if process is not None:
            forget(process)


def _read_tail(stream: IO[bytes] | None) -> str:
    if stream is None:
        return ""
    with stream:
        stream.seek(0)
        return stream.read().decode(errors="replace")[-4000:]


SERVER = CompileServer()
