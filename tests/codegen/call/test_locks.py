"""Calls from many threads over the same shared variables: each sees them, and leaves them, as if it were alone."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.call import locks
from graphc.errors import GraphcError
from graphc.startup.process import PROCESS

LARGE = 60_000
"""Elements that make a call give up the GIL."""
PATIENCE = 60.0
"""Seconds after which a thread that waits is taken to wait for ever."""


@pytest.fixture(autouse=True)
def nothing_stays_locked() -> Iterator[None]:
    yield
    locks.wake()
    assert PROCESS.calls == [] and locks.activity[:2].tolist() == [0, 0]


@contextmanager
def often_switched() -> Iterator[None]:
    """Threads change places after each few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def at_once(*works: Callable[[], object]) -> None:
    """Run all in threads of their own; raise what one of them raised."""
    problems: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        try:
            start.wait()
            work()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    with often_switched():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    if problems:
        raise problems[0]


def repeated(times: int, work: Callable[..., object], *args: Any) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            work(*args)

    return run


def counter(size: int, mode: str = "compiled", step: Any = 1.0) -> tuple[Any, Any]:
    """A variable and a function that adds to all its elements, in place where the plan can."""
    w = graphc.shared(np.zeros(size), "w")
    return w, graphc.function([], updates=[(w, w + step)], mode=mode)


@pytest.mark.parametrize(("mode", "size"), [("compiled", LARGE), ("compiled", 10), ("interpreted", 10), ("python", 10)])
def test_no_update_is_lost(mode: str, size: int) -> None:
    w, step = counter(size, mode)
    at_once(*[repeated(40, step)] * 8)
    assert (w.get_value() == 320.0).all()


def test_a_value_that_is_replaced_is_not_lost() -> None:
    w = graphc.shared(np.zeros(LARGE), "w")
    turn = graphc.function([], w.sum(), updates=[(w, w[::-1] + 1.0)])  # not in place
    at_once(*[repeated(40, turn)] * 8)
    assert (w.get_value() == 320.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_readers_see_no_half_of_an_update(mode: str) -> None:
    size = LARGE if mode == "compiled" else 300
    w, step = counter(size, mode)
    spread = graphc.function([], w.max() - w.min(), mode=mode)
    both = graphc.function([], [w * 1.0, w + 0.0], mode=mode)
    seen: list[float] = []

    def look() -> None:
        seen.append(float(spread()))
        value = w.get_value()
        seen.append(float(np.ptp(value)))
        seen.append(float(np.ptp(both())))

    at_once(*[repeated(30, step)] * 3, *[repeated(30, look)] * 3)
    assert set(seen) == {0.0}
    assert (w.get_value() == 90.0).all()


@pytest.mark.slow
def test_functions_over_overlapping_sets_of_variables() -> None:
    a, b, c = (graphc.shared(np.zeros(LARGE), name) for name in "abc")
    steps = [
        graphc.function([], updates=[(a, a + 1.0), (b, b + 1.0)]),
        graphc.function([], updates=[(b, b + 1.0), (c, c + 1.0)]),
        graphc.function([], updates=[(c, c + 1.0), (a, a + 1.0)]),
        graphc.function([], updates=[(a, a + 1.0), (b, b + 1.0), (c, c + 1.0)], mode="interpreted"),
    ]
    at_once(*[repeated(30, step) for step in steps * 2])
    assert [set(v.get_value()) for v in (a, b, c)] == [{180.0}] * 3


def test_values_that_are_set_are_not_overwritten_by_calls_that_began_before() -> None:
    w = graphc.shared(np.zeros(LARGE), "w")
    double = graphc.function([], updates=[(w, w[::-1] * 2.0)])
    zero = np.zeros(LARGE)

    def clear() -> None:
        w.set_value(zero)
        assert not w.get_value().any()

    at_once(repeated(100, clear), *[repeated(60, double)] * 3)


def test_sizes_may_change_between_calls() -> None:
    w = graphc.shared(np.zeros(LARGE), "w")
    n = graphc.shared(np.int64(3), "n")
    step = graphc.function([], [w.sum(), T.zeros((n * 20_000,)).sum()], updates=[(w, w + 1.0), (n, 7 - n)])

    def change(size: int) -> None:
        w.set_value(np.zeros(size))
        step()

    at_once(*[repeated(30, change, size) for size in (10, LARGE, 2 * LARGE, 1)])


@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_an_op_may_call_functions_of_the_same_variables(mode: str) -> None:
    w, inner = counter(10)
    n = graphc.shared(np.zeros(1), "n")

    @graphc.op(infer=lambda kind: kind)
    def meddle(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        inner()
        w.set_value(w.get_value() + 1.0)
        return x

    outer = graphc.function([], meddle(w).sum(), updates=[(n, n + 1.0)], mode=mode)
    at_once(*[repeated(20, outer)] * 4, repeated(20, inner))
    assert (w.get_value() == 4 * 20 * 2 + 20).all() and n.get_value() == 80.0


@pytest.mark.slow
def test_calls_that_would_wait_for_each_other_are_an_error() -> None:
    first, second = graphc.shared(np.zeros(3), "first"), graphc.shared(np.zeros(3), "second")
    both_inside = threading.Barrier(2)

    def crossed(own: Any, other: Any) -> Any:
        inner = graphc.function([], updates=[(other, other + 1.0)])

        @graphc.op(infer=lambda kind: kind)
        def cross(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            both_inside.wait(PATIENCE)
            inner()
            return x

        return graphc.function([], cross(own).sum())

    with pytest.raises(GraphcError, match="wait for each other"):
        at_once(crossed(first, second), crossed(second, first))
    at_once(*(repeated(5, graphc.function([], updates=[(v, v + 1.0)])) for v in (first, second)))


def test_a_call_that_fails_leaves_nothing_locked() -> None:
    w = graphc.shared(np.zeros(LARGE), "w")
    x = T.dvector("x")
    step = graphc.function([x], updates=[(w, w + x)])

    def fail() -> None:
        with pytest.raises(ValueError, match="differ"):
            step(np.ones(3))

    at_once(repeated(20, fail), *[repeated(20, step, np.ones(LARGE))] * 2, *[repeated(20, step, [1.0] * LARGE)] * 1)
    assert (w.get_value() == 60.0).all()


def test_a_failure_that_another_thread_has_mended_is_none() -> None:
    i = graphc.shared(np.int64(0), "i")
    x = T.dvector("x")
    read = graphc.function([x], x[i] + (x * 1.0).sum())
    data = np.ones(LARGE)

    def swing() -> None:
        i.set_value(10**9)
        i.set_value(0)

    def look() -> None:
        with suppress(IndexError):
            assert read(data) == LARGE + 1

    at_once(repeated(300, swing), *[repeated(100, look)] * 3)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell's background job inherits that interrupts are ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_leaves_nothing_locked() -> None:
    w, step = counter(LARGE)
    stop = threading.Event()
    threads = [threading.Thread(target=lambda: [step() for _ in iter(stop.is_set, True)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    interrupted = 0
    for number in range(60):
        timer = threading.Timer(0.0005 * (number % 7), _thread.interrupt_main)
        try:
            timer.start()
            while True:
                step()
                w.get_value()
        except KeyboardInterrupt:
            interrupted += 1
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert interrupted == 60
    step()
    assert np.ptp(w.get_value()) == 0.0


FORK = """
    import os, sys, threading, warnings
    import numpy as np
    import graphc
    warnings.simplefilter("ignore")
    w = graphc.shared(np.zeros(200_000), "w")
    step = graphc.function([], updates=[(w, w + 1.0)], mode=sys.argv[1])
    stop = threading.Event()
    def work():
        while not stop.is_set():
            step()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    wrong = 0
    for _ in range(15):
        child = os.fork()
        if not child:
            value = w.get_value()
            w.set_value(value * 0)
            os._exit(int(np.ptp(value) != 0 or w.get_value().any()))
        wrong += os.waitpid(child, 0)[1]
    stop.set()
    for thread in threads:
        thread.join()
    print("wrong:", wrong)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_a_child_has_whole_values_and_no_locks(mode: str) -> None:
    program = [sys.executable, "-c", textwrap.dedent(FORK), mode]
    done = subprocess.run(program, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert (done.stdout, done.stderr) == ("wrong: 0\n", "")


def test_readers_run_beside_each_other() -> None:
    w = graphc.shared(np.zeros(3), "w")
    both_inside = threading.Barrier(2)
    at_once(*[lambda: locks.run({w.lock: False}, False, both_inside.wait, PATIENCE)] * 2)
