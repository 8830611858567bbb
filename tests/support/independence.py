"""Memory that tells whether the iterations of loops are as independent as their source says.

In: functions of generated source, as CPython runs them, and their arrays. Out: what they compute; Dependence where two
iterations of one `independent` loop, or two chunks of a launch, touch the same element and one of them writes it. The
vectoriser takes these words for true (vectorize/loopinfo.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from graphc.codegen.frontend import language

Array = NDArray[Any]


class Dependence(AssertionError):
    """Two iterations that should be independent touch the same element."""


class Running:
    """A loop that runs: its iteration, and by address which iteration has touched an element, and whether one wrote."""

    def __init__(self) -> None:
        self.iteration = -1
        self.touched: dict[int, tuple[int, bool]] = {}

    def touch(self, address: int, writes: bool) -> None:
        before, written = self.touched.get(address, (self.iteration, False))
        if before != self.iteration and (written or writes):
            raise Dependence(f"iterations {before} and {self.iteration} touch one element")
        self.touched[address] = self.iteration, written or writes


class Loops(local):
    """The loops that run in a thread, from the outermost to the innermost."""

    def __init__(self) -> None:
        self.running: list[Running] = []


LOOPS = Loops()


class Recorded(np.ndarray[Any, Any]):
    """A flat array that tells the loops that run which elements are read and written."""

    def __array_finalize__(self, whole: Any) -> None:
        self.start = int(self.__array_interface__["data"][0])

    def touch(self, index: Any, writes: bool) -> None:
        if LOOPS.running and isinstance(index, int | np.integer):
            for loop in LOOPS.running:
                loop.touch(self.start + int(index) * self.itemsize, writes)

    def __getitem__(self, index: Any) -> Any:
        self.touch(index, False)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.touch(index, True)
        super().__setitem__(index, value)


def iterations(values: range) -> Iterator[int]:
    loop = Running()
    LOOPS.running = [*LOOPS.running, loop]
    try:
        for loop.iteration in values:
            yield loop.iteration
    finally:
        LOOPS.running = [other for other in LOOPS.running if other is not loop]


def independent(*bounds: int) -> Iterator[int]:
    return iterations(range(*map(int, bounds)))


def parallel(function: Callable[..., Any], count: int, size: int, *args: Any) -> None:
    for begin in iterations(range(0, int(count), int(size))):
        function(begin, min(begin + size, count), *args)


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with arrays that report what is done with them. A loop that an error leaves runs no longer."""

    def call(*args: Any) -> Any:
        outer = LOOPS.running
        try:
            return function(*(arg.view(Recorded) if isinstance(arg, np.ndarray) and arg.ndim else arg for arg in args))
        finally:
            LOOPS.running = outer

    return call


def bind_recorded(*args: Any) -> dict[str, Any]:
    """The functions of a source, by its text, a name and what it calls from outside."""
    return {name: recorded(function) for name, function in language.bind_source(*args).items()}


@contextmanager
def watched() -> Iterator[None]:
    """Functions of mode `python` that are made meanwhile look after their loops."""
    words = {**language.PRELUDE, "independent": independent, "parallel": parallel}
    with (
        mock.patch.object(language, "PRELUDE", words),
        mock.patch("graphc.codegen.pipeline.program.bind_source", bind_recorded),
    ):
        yield
