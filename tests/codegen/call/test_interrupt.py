"""Loops of steps that are left: by Ctrl-C, and by whatever a handler of the user's raises."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.ir.body import close, item
from graphc.ir.node import Node, variable
from graphc.ops.elementwise import as_node
from graphc.ops.scan import scan_node

MODES = ("compiled", "python", "interpreted")
FOREVER = 10**12
AFTER = 0.1
"""Seconds, when a call is interrupted."""
WITHIN = 20.0
"""Seconds, when it must have ended."""


class Timeout(Exception):
    pass


def last(step: Callable[[Node], Any], initial: Any, n: Node, until: bool = False) -> Node:
    """The last state of a loop of n steps."""
    begin = as_node(initial)
    state = variable(begin.dtype, begin.type.shape, "state")
    results = step(state) if until else [step(state)]
    body, captured = close([state], [as_node(result) for result in results])
    return item(scan_node(n, body, [], [begin], captured, until=until), 0)


def scalar(n: Node, w: Node) -> Node:
    return last(lambda s: s * 0.5 + 1.0, 0.0, n)


def vector(n: Node, w: Node) -> Node:
    return last(lambda s: T.tanh(s + 0.5), w, n)


def matrix(n: Node, w: Node) -> Node:
    return last(lambda s: T.tanh(T.dot(s, s)), T.ones((200, 200)) * w[1], n)


def sized(n: Node, w: Node) -> Node:
    return last(lambda s: T.tanh(T.dot(s, s)), T.ones((3 * n, 3 * n)) * w[1], n * n * n * n)


def nested(n: Node, w: Node) -> Node:
    return last(lambda s: last(lambda t: t * 0.5 + s, s, n), 0.0, n)


def within_rows(n: Node, w: Node) -> Node:
    rows: Node = graphc.map(lambda r: last(lambda t: t * 0.5 + r, r, n), sequences=w)[0]
    return rows


def ended(n: Node, w: Node) -> Node:
    return last(lambda s: (s * 0.5 + 1.0, s > 3.0), 0.0, n, until=True)


def curved(n: Node, w: Node) -> Node:
    """Rows of a second derivative, which are computed at once."""
    x = w.sum() * T.arange(n) / n
    pairs = T.exp(-T.sqr(x[:, None] - x[None, :]))
    cost = (pairs * pairs.sum(axis=0)).sum()
    rows: Node = graphc.jacobian(graphc.grad(cost, x), x)
    return rows.sum(axis=0)[:4]


LOOPS = {each.__name__: each for each in (scalar, vector, matrix, sized, nested, within_rows, ended, curved)}


@contextmanager
def alarm(handler: Callable[..., object], seconds: float = AFTER, again: float = 0.0) -> Iterator[None]:
    """A block in which a handler is called after some time. What a handler raises within a callback of the garbage
    collector is lost (hypothesis leaves one behind), and with it the end of the block: nothing is collected here."""
    before = signal.signal(signal.SIGALRM, handler)
    gc.disable()
    signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


def give_up(*_: object) -> None:
    raise Timeout


def interrupted(call: Callable[[], object]) -> None:
    """Fails where a call does not end in time."""
    start = time.perf_counter()
    with pytest.raises(Timeout), alarm(give_up):
        call()
    assert time.perf_counter() - start < AFTER + WITHIN


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_left_with_the_state_before_the_call(name: str, mode: str) -> None:
    n = T.lscalar("n")
    w, v = (graphc.shared(np.arange(4.0), name=each) for each in "wv")
    result = LOOPS[name](n, w)
    more = result.sum() + vector(n, w).sum()
    f = graphc.function([n], result, updates=[(w, vector(n, w)), (v, v * 2.0 + more)], mode=mode)
    few, count = 3, {"sized": 200, "curved": 3000}.get(name, FOREVER)
    want, state = f(few), [each.get_value() for each in (w, v)]
    for leaf in (w, v):
        leaf.set_value(np.arange(4.0))
    for _ in range(2):
        interrupted(lambda: f(count))
        for leaf in (w, v):
            np.testing.assert_array_equal(leaf.get_value(), np.arange(4.0))
    np.testing.assert_array_equal(f(few), want)
    for leaf, value in zip((w, v), state, strict=True):
        np.testing.assert_array_equal(leaf.get_value(), value)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"outline": "always"}, {"poison": "on"}, {"poison": "guard"}])
def test_a_loop_is_left_however_it_is_compiled(options: dict[str, Any]) -> None:
    n, w = T.lscalar("n"), graphc.shared(np.arange(4.0), name="w")
    with graphc.options.change(**options):
        f = graphc.function([n], [scalar(n, w), ended(n, w)], updates=[(w, vector(n, w))])
        f(3)
        before = w.get_value()
        interrupted(lambda: f(FOREVER))
        np.testing.assert_array_equal(w.get_value(), before)
        assert f(3)[0] == 1.75


@pytest.mark.slow
def test_an_input_that_may_be_written_is_as_before() -> None:
    n, x = T.lscalar("n"), T.dvector("x")
    f = graphc.function([n, graphc.In(x, mutable=True)], [x * 2.0 + scalar(n, x), vector(n, x)])
    given = np.arange(4.0)
    interrupted(lambda: f(FOREVER, given))
    np.testing.assert_array_equal(given, np.arange(4.0))


@pytest.mark.slow
def test_references_balance_where_calls_are_interrupted() -> None:
    n, x = T.lscalar("n"), T.dmatrix("x")
    w = graphc.shared(np.arange(4.0), name="w")
    made = (vector(n, x), scalar(n, w))
    f, g = (graphc.function([n, x], made, updates=updates) for updates in ([(w, vector(n, w))], []))
    many, wide, out = FOREVER, np.ones((3, 4))[:, ::2], (np.empty((3, 2)), np.empty(()))
    watched: list[Any] = [many, wide, wide.base, *out, w.get_value(borrow=True), Timeout, f, g, np.dtype("float64")]
    counts = []
    for _ in range(3):
        for function in (f, g):
            with pytest.raises(Timeout), alarm(give_up, 0.05):
                function(many, wide)
            with pytest.raises(Timeout), alarm(give_up, 0.05):
                function(many, x=wide, out=out)
        counts.append([sys.getrefcount(each) for each in watched])
    assert counts[1] == counts[2]


@pytest.mark.slow
def test_a_handler_uses_the_variables_of_the_call() -> None:
    n, w = T.lscalar("n"), graphc.shared(np.arange(4.0), name="w")
    f = graphc.function([n], vector(n, w), updates=[(w, vector(n, w))])
    seen: list[Any] = []

    def handler(*_: object) -> None:
        steps: list[Callable[[], object]] = [w.get_value, lambda: f(2), lambda: w.set_value(np.zeros(4)), give_up]
        seen.append(steps[len(seen)]())

    with pytest.raises(Timeout), alarm(handler, 0.1, 0.1):
        f(FOREVER)
    np.testing.assert_array_equal(seen[0], np.arange(4.0))
    np.testing.assert_allclose(seen[1], np.tanh(np.tanh(np.arange(4.0) + 0.5) + 0.5))
    np.testing.assert_array_equal(w.get_value(), np.zeros(4))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_handler_that_raises_nothing_ends_nothing(mode: str) -> None:
    n, w = T.lscalar("n"), graphc.shared(np.zeros(4), name="w")
    f = graphc.function([n], [scalar(n, w), vector(n, w)], mode=mode)
    want, steps, seen = f(2), 1000, [0]

    def handler(*_: object) -> None:
        seen[0] += 1

    with alarm(handler, 0.01, 0.01):
        while seen[0] < 5:
            got = f(steps)
            steps *= 2 if mode == "compiled" else 1
    assert got[0] == 2.0 and want[0] == 1.5


@pytest.mark.slow
def test_threads_share_loops_that_ask() -> None:
    """They ask together, and the results are those of one thread."""
    n, x = T.lscalar("n"), T.dvector("x")
    rows = within_rows(n, x)
    one, two = (graphc.function([n, x], rows, threads=threads) for threads in (1, 2))
    assert "parallel(nest" in two.source and "gc_stopped" in two.source
    values = np.linspace(0.1, 3.0, 100)
    np.testing.assert_array_equal(one(20_000, values), two(20_000, values))
    np.testing.assert_array_equal(one(3, values[:2]), two(3, values[:2]))


@pytest.mark.slow
def test_a_call_of_another_thread_goes_on() -> None:
    """Python interrupts its main thread, though the loop of another one is under way."""
    n, m = T.lscalar("n"), 2 * 10**8
    f = graphc.function([n], scalar(n, n))
    results: list[Any] = []
    worker = threading.Thread(target=lambda: results.append(f(m)))
    f(3)
    worker.start()
    interrupted(lambda: f(FOREVER))
    worker.join()
    assert results == [2.0]


PROGRAM = """
import signal, sys, numpy as np, graphc, graphc.tensor as T
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have had ignored
sys.path.insert(0, sys.argv[3])
from test_interrupt import LOOPS, FOREVER
n, w = T.lscalar("n"), graphc.shared(np.arange(4.0), name="w")
f = graphc.function([n], LOOPS[sys.argv[1]](n, w), updates=[(w, LOOPS["vector"](n, w))], mode=sys.argv[2])
f(0)
print("ready", flush=True)
try:
    f(FOREVER)
except KeyboardInterrupt:
    print("left", w.get_value().tolist(), flush=True)
f(3)
print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), [("scalar", mode) for mode in MODES] + [("matrix", "compiled")])
def test_ctrl_c(name: str, mode: str) -> None:
    here = os.path.dirname(__file__)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, name, mode, here], stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdout is not None
        patience = threading.Timer(100, process.kill)
        patience.start()
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.3)
            start = time.perf_counter()
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "left [0.0, 1.0, 2.0, 3.0]\n"
            assert time.perf_counter() - start < WITHIN
            assert process.stdout.readline() == "done\n"
        finally:
            patience.cancel()
            process.kill()
