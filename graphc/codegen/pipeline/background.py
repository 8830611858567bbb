"""Kernels that are built in other processes, which leave them in the cache, while the program goes on.

In: a kernel, a target. Out: a process, or a `Job`, which waits for its turn where all processors are busy. When it has
ended, the kernel is a hit of the cache, or could not be made there.

    job = QUEUE.add(kernel, "native")     None where another process cannot build it
    job.poll()                            False: it waits or runs; each call begins what has its turn
    job.error                             "" where the kernel is in the cache, else the last line of its complaint
"""

from __future__ import annotations

import atexit
import pickle
import subprocess
import sys
from _thread import RLock
from collections import deque
from collections.abc import Mapping, Sequence
from importlib import import_module
from time import monotonic, perf_counter, sleep
from typing import Any

from graphc.codegen.llvm.cpu import lacking
from graphc.codegen.pipeline.build import build_native, look_up
from graphc.codegen.pipeline.kernel import Kernel, parts_of
from graphc.codegen.server.process import scratch_file
from graphc.codegen.threads.settings import available_processors
from graphc.ir.text import print_graph
from graphc.ir.walk import Graph, node_set
from graphc.options import options
from graphc.startup.process import PROCESS
from graphc.startup.record import replace

PAUSE = 0.005
"""The seconds between two looks at processes that are waited for."""
BOOT = """
import sys
sys.path[:] = {path!r}
from {module} import main
main()
"""


def command(module: str) -> list[str]:
    """Return the command of a process that runs `main` of one of graphc's modules."""
    return [sys.executable, "-I", "-S", "-c", BOOT.format(path=sys.path, module=module)]


def settings_for(target: str) -> dict[str, Any]:
    """Return the options of a process that compiles for a target, as `apply_options` takes them."""
    return {**vars(options), "compile": "inline", "target": target}


def apply_options(settings: Mapping[str, Any], triple: str = "") -> None:
    """In the process: take the options. triple: LLVM's name of the target where it is another kind of processor."""
    for name, value in settings.items():
        setattr(options, name, value)
    PROCESS.is_foreign = bool(lacking(options.target))
    PROCESS.triple = triple


def complaint(said: bytes) -> str:
    """Return the last line that a process wrote to standard error, "" for none."""
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def build_in_background(kernel: Kernel) -> subprocess.Popen[bytes] | None:
    """The process that builds a kernel; None where none can: without a cache, with ops of the user, or where the system
    gives no process."""
    if not can_build(kernel):
        return None
    try:
        return _start(kernel, options.target, subprocess.DEVNULL)
    except OSError:
        return None


def can_build(kernel: Kernel) -> bool:
    """True where another process can build a kernel: it gets no Python functions, and leaves code in the cache."""
    is_temporary = any(node.op.version for node in node_set(kernel.results))
    return options.cache and not options.cache_require and bool(sys.executable) and not is_temporary


def _start(kernel: Kernel, target: str, complaints: Any) -> subprocess.Popen[bytes]:
    # A file, not a pipe: a graph may be more than a pipe holds before the process reads it.
    with scratch_file() as request:
        pickle.dump((settings_for(target), *describe(kernel)), request)
        request.seek(0)
        process = subprocess.Popen(command(__name__), stdin=request, stdout=subprocess.DEVNULL, stderr=complaints)
    if not PROCESS.background:
        PROCESS.forgetting.append(PROCESS.background.clear)
        atexit.register(_end)
    PROCESS.background.append(process)
    return process


class Job:
    """A kernel that another process builds for a target, or will. error: why it could not, "" before and otherwise.
    seconds: how long the process ran."""

    def __init__(self, queue: Queue, kernel: Kernel, target: str) -> None:
        self.queue, self.kernel, self.target = queue, kernel, target
        self.process: subprocess.Popen[bytes] | None = None
        self.complaints: Any = None
        self.is_done, self.error, self.seconds, self.began = False, "", 0.0, 0.0

    def start(self) -> None:
        self.complaints, self.began = scratch_file(), perf_counter()
        try:
            self.process = _start(self.kernel, self.target, self.complaints)
        except OSError as error:
            self.finish(str(error))

    def finish(self, error: str) -> None:
        self.is_done, self.error = True, error
        if self.complaints is not None:
            self.seconds = perf_counter() - self.began
            self.complaints.close()

    def look(self) -> None:
        """Note the end of the process."""
        if self.process is not None and not self.is_done and self.process.poll() is not None:
            self.complaints.seek(0)
            said, code = complaint(self.complaints.read()), self.process.returncode
            self.finish("" if code == 0 else said or f"the process ended with code {code}")

    def poll(self) -> bool:
        """Return whether it is done."""
        if not self.is_done:
            self.queue.advance()
        return self.is_done

    def cancel(self) -> None:
        """Give it up."""
        with self.queue.lock:
            if not self.is_done:
                if self.process is not None:
                    self.process.kill()
                    self.process.wait()
                self.finish("cancelled")
        self.queue.advance()

    def forget(self) -> None:
        """In the child of a fork: the process belongs to the parent."""
        if self.process is not None:
            self.process.returncode = 0  # nothing to wait for, and no warning that it still runs
        self.process = self.complaints = None


class Queue:
    """Jobs in order. As many run at a time as there are processors. Safe with threads, and after a fork."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []

    def add(self, kernel: Kernel, target: str) -> Job | None:
        """Return a new job; None where another process cannot build the kernel."""
        if not can_build(kernel):
            return None
        job = Job(self, kernel, target)
        with self.lock:
            self.waiting.append(job)
        self.advance()
        return job

    def advance(self) -> None:
        """Note which processes have ended, and begin those that have their turn."""
        with self.lock:
            for job in self.running:
                job.look()
            self.running = [job for job in self.running if not job.is_done]
            while self.waiting and len(self.running) < available_processors():
                job = self.waiting.popleft()
                if not job.is_done:
                    job.start()
                    self.running.append(job)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all jobs are done, at most `timeout` seconds. Return whether they are."""
        end = None if timeout is None else monotonic() + timeout
        self.advance()
        while self.waiting or self.running:
            if end is not None and monotonic() >= end:
                return False
            sleep(PAUSE)
            self.advance()
        return True

    def forget(self) -> None:
        """In the child of a fork: what ran in processes of the parent begins anew."""
        self.lock = RLock()
        for job in self.running:
            job.forget()
        self.waiting.extendleft(reversed(self.running))
        self.running = []


QUEUE = Queue()
PROCESS.forgetting.append(QUEUE.forget)


def _end() -> None:
    """Nobody waits for what is not ready yet."""
    for process in PROCESS.background:
        process.kill()
        process.wait()


def describe(kernel: Kernel) -> tuple[Any, ...]:
    """A kernel as text and numbers, for `read_kernel` in another process."""
    places = {leaf: place for place, leaf in enumerate(kernel.shared)}
    updated = [places[leaf] for leaf in kernel.updated]
    flags = kernel.name, kernel.returns, kernel.mutable, kernel.fast_math
    return print_graph(kernel.whole), len(kernel.shared), updated, *flags


def read_kernel(
    text: str,
    variables: int,
    updated: Sequence[int],
    name: str,
    returns: str,
    mutable: tuple[int, ...],
    fast_math: bool | None,
) -> Kernel:
    """The kernel that was described, over fresh leaves."""
    graph: Graph = import_module("graphc.ir.parse").parse_graph(text)
    results, shared, news = parts_of(graph, variables, len(updated))
    updates = tuple((shared[number], new) for number, new in zip(updated, news, strict=True))
    kernel = Kernel(name, graph.inputs, tuple(shared), tuple(results), updates, returns)
    return replace(kernel, mutable=mutable, fast_math=fast_math)


def main() -> None:
    """In the process: build the kernel on standard input, and leave it in the cache."""
    settings, *described = pickle.load(sys.stdin.buffer)
    apply_options(settings)
    kernel = read_kernel(*described)
    build_native(kernel, look_up(kernel))
