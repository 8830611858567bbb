"""Kernels that are built beside the program, which goes on meanwhile: by a process that leaves them in the cache.

In: a kernel. Out: a process; when it has ended, the kernel is a hit of the cache, or could not be made there.
"""

from __future__ import annotations

import atexit
import pickle
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from graphc.codegen.pipeline.build import build_native, look_up
from graphc.codegen.pipeline.kernel import Kernel
from graphc.codegen.server.process import scratch_file
from graphc.ir.text import print_graph
from graphc.ir.walk import Graph, node_set
from graphc.options import options
from graphc.startup.process import PROCESS

BOOT = """
import sys
sys.path[:] = {path!r}
from graphc.codegen.pipeline.background import main
main()
"""


def build_in_background(kernel: Kernel) -> subprocess.Popen[bytes] | None:
    """The process that builds a kernel; None where none can: without a cache, with ops of the user, or where the system
    gives no process."""
    if (
        not options.cache
        or options.cache_require
        or not sys.executable
        or any(node.op.version for node in node_set(kernel.results))
    ):
        return None
    # A file, not a pipe: a graph may be more than a pipe holds before the process reads it.
    with scratch_file() as request:
        pickle.dump((vars(options), *describe(kernel)), request)
        request.seek(0)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", BOOT.format(path=sys.path)],
                stdin=request,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return None
    if not PROCESS.background:
        PROCESS.forgetting.append(PROCESS.background.clear)
        atexit.register(_end)
    PROCESS.background.append(process)
    return process


def _end() -> None:
    """Nobody waits for what is not ready yet."""
    for process in PROCESS.background:
        process.kill()
        process.wait()


def describe(kernel: Kernel) -> tuple[Any, ...]:
    """A kernel as text and numbers, for `read_kernel` in another process."""
    news = [new for _, new in kernel.updates]
    graph = Graph(kernel.inputs, (*kernel.outputs, *kernel.shared, *news))
    places = {leaf: place for place, leaf in enumerate(kernel.shared)}
    updated = [places[leaf] for leaf, _ in kernel.updates]
    return print_graph(graph), len(kernel.shared), updated, kernel.name, kernel.returns, kernel.mutable


def read_kernel(
    text: str, variables: int, updated: Sequence[int], name: str, returns: str, mutable: tuple[int, ...]
) -> Kernel:
    """The kernel that was described, over fresh leaves. Of the graph's outputs the last are the new values of updated
    variables; before them stand the variables themselves, and first the results."""
    graph: Graph = import_module("graphc.ir.parse").parse_graph(text)
    results = len(graph.outputs) - len(updated) - variables
    shared, news = graph.outputs[results : results + variables], graph.outputs[results + variables :]
    updates = tuple((shared[number], new) for number, new in zip(updated, news, strict=True))
    outputs = graph.outputs[:results]
    return Kernel(name, graph.inputs, shared, outputs, updates, returns, mutable=mutable)


def main() -> None:
    """In the process: build the kernel on standard input, and leave it in the cache."""
    settings, *described = pickle.load(sys.stdin.buffer)
    for name, value in settings.items():
        setattr(options, name, value)
    kernel = read_kernel(*described)
    build_native(kernel, look_up(kernel))
