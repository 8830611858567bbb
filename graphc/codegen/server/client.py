"""Generated source to object code.

In: the source text of one or more functions over raw pointers and sizes, their prototypes, and IR text to link in.
Out: the bytes of a relocatable object that exports the functions as C symbols. The same text gives the same bytes.

numba and its memory stay in a compile process, started at the first request or by `SERVER.start()` and reused; it
ends with this process, or when it was idle for some minutes. With `options.compile == "inline"`, and where no process
can be started, the work is done here.
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
from graphc.startup.process import PROCESS

__all__ = [
    "SERVER", "CompileServer", "Prototype", "Request", "compile_ahead", "compile_assembly",
    "compile_request", "lower_source",
]  # fmt: skip

T = TypeVar("T")


_INLINE = threading.Lock()


def compile_ahead(ir: IR, opt: int) -> Callable[[], bytes]:
    """Begin to compile IR in the compile process; the function that is returned waits for the object, or raises
    what compiling did."""
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
    """The assembly text of `functions`, which `source` defines, for a reader. Raises CompileError as `lower_source`."""
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
    """The LLVM IR of `functions`, which `source` defines in the generated language, in modules of a few of them.

    The functions may call each other, and by the names in `externals` the C functions of those prototypes. What two
    pointer arguments of a call point to must not overlap where one of them is written. `fast_math` lets arithmetic be
    reassociated and contracted; NaN and infinities keep their meaning.

    `take` is given the number and the module of each as soon as it is there, in the order of the numbers. Where a
    compile process fails, it is given them again from the first on, of which the last are to be taken. Objects of the
    modules at level 3, linked in their order, are the program.

    Raises CompileError for source that does not parse or type, and IR that LLVM refuses.
    """
    request = Request(source, tuple(functions), tuple(externals.items()), fast_math=fast_math, wanted="modules")
    if options.compile == "process" and SERVER.start():
        SERVER.lower(request, take)
        return
    with _INLINE:
        for number, module in enumerate(import_module("graphc.codegen.server.worker").lower_request(request)):
            take(number, module)


def compile_request(request: Request) -> bytes:
    """The answer to a request, from the compile process or from this one as the options say; raises CompileError."""
    if options.compile == "process" and SERVER.start():
        return SERVER.compile(request)
    # Not an import statement: a process that never compiles must not load numba. numba is not safe with threads.
    with _INLINE:
        return bytes(import_module("graphc.codegen.server.worker").compile_request(request))


class CompileServer:
    """The compile process of this process: at most one, started when needed, safe with threads and after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._lean = True
        self._complaints: IO[bytes] | None = None
        PROCESS.forgetting.append(self._forget)
        atexit.register(self.close)

    def start(self) -> bool:
        """Start the process unless it runs, without waiting for numba's import; False where none can be started."""
        with self._lock:
            return self._running() is not None

    def compile(self, request: Request) -> bytes:
        """The object of a request; raises CompileError with the compiler's message.

        What fails in a process with the lean numba, which may lack what the request needs, is tried once more in one
        with the whole, which then stays.
        """
        message = pickle.dumps((options.target, request))
        return bytes(self._insist(lambda: self._answer(message)))

    def lower(self, request: Request, take: Callable[[int, Module], object]) -> None:
        """Give each module of a request to `take`, with its number. Errors as of `compile`, after which `take` is given
        them again."""
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
        """The answer to a message, or the next one where that is empty; CompileError where it says what went wrong."""
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
        """Send a message, or none where it is empty; the next answer, or None where the process is gone without a
        fault. One that crashes is an error."""
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
        """End a process that was interrupted half-way: the next answer in the pipe would be that of an old request."""
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
        self._lock = threading.Lock()
        if process is not None:
            forget(process)


def _read_tail(stream: IO[bytes] | None) -> str:
    if stream is None:
        return ""
    with stream:
        stream.seek(0)
        return stream.read().decode(errors="replace")[-4000:]


SERVER = CompileServer()
