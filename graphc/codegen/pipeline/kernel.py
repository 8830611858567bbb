"""The kernel that is handed to the code generator, and the report of how a callable came about.

In: a function's graph. Out: the records that the warm path, which finds code in the cache, and the cold one, which
makes it, share.
"""

from __future__ import annotations

import linecache
import sys
from _thread import LockType, allocate_lock, start_new_thread
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib import import_module
from time import perf_counter
from typing import Any, TypeVar, overload

from graphc.codegen.call.signature import Signature
from graphc.ir.node import LEAVES, SHARED, SIZE, Array, Node, size_owner
from graphc.ir.source_lines import written
from graphc.ir.walk import Graph, nodes_of
from graphc.options import options
from graphc.startup.process import PROCESS
from graphc.startup.record import record

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence that `make` builds when its first item is read. length: the number of items, if known. leaves: the
    variables of the updates that the sequence holds, if it holds updates."""

    def __init__(
        self, make: Callable[[], Iterable[T]], length: int | None = None, leaves: tuple[Node, ...] = ()
    ) -> None:
        self.make, self.length, self.leaves = make, length, leaves

    @cached_property
    def made(self) -> tuple[T, ...]:
        return tuple(self.make())

    def __len__(self) -> int:
        return len(self.made) if self.length is None else self.length

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        return self.made[place]


@record()
class Kernel:
    """A function's graph: leaves in the order of the kernel's parameters, results, and updates of shared variables.

    threads: how many its calls may use, None for `options.threads`; the code does not depend on it. mutable: the
    inputs, by number, whose arrays a call may write. fast_math: whether what is true of real numbers only may be done,
    None for `options.fast_math`.
    """

    name: str
    inputs: tuple[Node, ...]
    shared: tuple[Node, ...]
    outputs: tuple[Node, ...]
    updates: tuple[tuple[Node, Node], ...]
    returns: str
    threads: int | str | None = None
    mutable: tuple[int, ...] = ()
    fast_math: bool | None = None

    @property
    def is_fast(self) -> bool:
        return options.fast_math if self.fast_math is None else self.fast_math

    @property
    def results(self) -> tuple[Node, ...]:
        return (*self.outputs, *(new for _, new in self.updates))

    @property
    def updated(self) -> tuple[Node, ...]:
        """The shared variables that are updated."""
        return (
            self.updates.leaves if isinstance(self.updates, LazySequence) else tuple(leaf for leaf, _ in self.updates)
        )

    @property
    def whole(self) -> Graph:
        """The graph, whose last outputs are the shared variables and the new values: that of keys and of texts."""
        return Graph(self.inputs, (*self.outputs, *self.shared, *(new for _, new in self.updates)))


def parts_of(whole: Graph, variables: int, updates: int) -> tuple[list[Node], list[Node], list[Node]]:
    """Return the results, the shared variables and the new values of a graph of `Kernel.whole`."""
    first = len(whole.outputs) - updates - variables
    outputs = list(whole.outputs)
    return outputs[:first], outputs[first : first + variables], outputs[first + variables :]


class Report:
    """The history of function `name`: the time of each phase in seconds, the rules that fired, whether the cache had
    it."""

    __slots__ = ("current", "fired", "key", "name", "origin", "phases", "plan")

    def __init__(self, name: str, origin: str = "compiled") -> None:
        self.name = name
        self.origin = origin
        self.key = ""
        self.phases: dict[str, float] = {}
        self.fired: list[str] = []
        self.plan = ""
        self.current = ""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.current = name
        if PROCESS.listeners:
            PROCESS.listeners[-1](name)
        show(f"graphc: {self.name}: {name} … ")
        start = perf_counter()
        try:
            yield
        finally:
            seconds = perf_counter() - start
            self.phases[name] = self.phases.get(name, 0.0) + seconds
            show(f"{seconds * 1e3:.1f} ms\n")


def show(text: str) -> None:
    """Part of a line of progress, for people who wait."""
    if options.progress is True:
        write_error(text)


def write_error(text: str) -> None:
    """Write to standard error, if anybody reads it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # nobody reads it any more, or its encoding has not all letters
            sys.stderr.write(text)
            sys.stderr.flush()


PATIENCE, TICK = 2.0, 0.5
"""Seconds after which a build is told of; how often the line is written anew on a terminal."""


@contextmanager
def report_when_slow(report: Report, work: int, hint: Callable[[], str] = str) -> Iterator[None]:
    """A context manager around the building of a function: writes a line to standard error if the building takes long,
    and notes the seconds for forecasts of later graphs. work: the number of nodes. hint: called then for a line about
    how to make it faster."""
    start = perf_counter()
    report.current = "starting the compiler"
    done = allocate_lock()
    with done:
        if options.progress == "auto":
            start_new_thread(tell_of_build, (report, work, done, hint))
        yield
    durations().note(work, perf_counter() - start)


def tell_of_build(report: Report, work: int, done: LockType, hint: Callable[[], str]) -> None:
    """In a thread of its own: wait, then write the line, on a terminal again and again, until `done` is free."""
    start = perf_counter()
    wait, end = PATIENCE, "\n"
    while not done.acquire(timeout=wait):
        past = perf_counter() - start
        if wait == PATIENCE and (advice := hint()):
            write_error(f"graphc: {report.name}: {advice}\n")
        line = f"graphc: {report.name} is being built, {progress(past, work)} ({report.current})"
        if sys.stderr is None or not sys.stderr.isatty():
            write_error(f"{line}; GRAPHC_PROGRESS=0 leaves out this line\n")
            return
        wait, end = TICK, "\r"
        write_error(f"\r{line}  ")
    if end == "\r":
        write_error(f"\r{' ' * 79}\r")


OFTEN = 100
"""As many values of one op, made by one line, are told of in a slow build."""


def repeated_line(kernel: Kernel) -> str:
    """Name the line of the program that has made most of a graph's values by one op, and say how to write such a line
    so that it compiles faster. Empty if no line has made many. Values made by `grad` do not count."""
    counts = Counter(
        (node.where.file, node.where.line, node.op)
        for node in nodes_of(kernel.results)
        if node.where is not None and not node.where.derivative and node.op not in LEAVES
    )
    ((file, line, _), count) = max(counts.items(), key=lambda each: each[1], default=(("", 0, None), 0))
    if count < OFTEN:
        return ""
    text = linecache.getline(file, line).strip()
    said = f"{written(file, line)} ({text})" if text else written(file, line)
    how = "compiles faster as a loop of `scan` or `lax.fori_loop`, or as one operation on whole arrays"
    return f"{said} has made {count} values of one kind; such a line, repeated by Python, {how}"


def durations() -> Any:
    return import_module("graphc.codegen.cache.store")  # which what the cache has does without


def progress(past: float, work: int) -> str:
    """Return how long a build has taken, and how long it will where graphs of similar size were built before."""
    whole = durations().expected(work)
    if whole is None:
        return f"{past:.0f} s so far"
    if whole <= past:
        return f"{past:.0f} s so far, while graphs of its size took {whole:.0f} s"
    return f"{past:.0f} s so far of about {whole:.0f} s"


@contextmanager
def on_phase(listener: Callable[[str], object]) -> Iterator[None]:
    """While the block runs, `listener` is told the name of each phase of building a function as it starts. Raises no
    error of its own."""
    PROCESS.listeners.append(listener)
    try:
        yield
    finally:
        PROCESS.listeners.pop()


@record()
class Built:
    """`calls` are the nodes whose Python functions the code calls back, `failures` what those raised."""

    signature: Signature
    source: str
    constants: tuple[Array, ...]
    calls: tuple[Node, ...]
    report: Report


def shared_of(outputs: Sequence[Node], updates: Sequence[tuple[Node, Node]]) -> tuple[Node, ...]:
    """The shared variables of a function, in the order of the kernel's parameters."""
    roots = (*outputs, *(leaf for leaf, _ in updates), *(new for _, new in updates))
    leaves = (size_owner(node) if node.op is SIZE else node for node in nodes_of(roots))
    return tuple(dict.fromkeys(leaf for leaf in leaves if leaf is not None and leaf.op is SHARED))
