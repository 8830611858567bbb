"""Functions of a vector as C functions, called by their addresses."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.call.c_interface import BAD_GRADIENT, BAD_VALUE, FAILED, REFUSED
from graphc.errors import ArgumentError
from graphc.functions.pointer import Pointer

ROWS, LENGTH = 40, 6
DATA = np.random.default_rng(1).normal(size=(ROWS, LENGTH))


def density() -> Any:
    """A log-density with a product, a factorisation, a loop, temporaries, and a check of its values."""
    q, data = T.tensor("float64", (LENGTH,), name="q"), T.dmatrix("data")
    margin = T.dot(data, T.exp(q))
    gram = T.dot(data.T, data) + T.exp(q[0]) * T.eye(LENGTH)
    states, _ = graphc.scan(lambda s, r: 0.5 * s + r, sequences=margin, outputs_info=q[1])
    value = T.sum(T.log(T.diagonal(T.linalg.cholesky(gram)))) - T.sum(T.tanh(states)) - T.sum(q * q)
    value = T.opt.assert_op(value, q[2] < 100.0)
    return graphc.function([q, data], [value, graphc.grad(value, q)], name="density")


def ask(pointer: Pointer, q: np.ndarray[Any, Any], length: int | None = None) -> tuple[int, float, Any]:
    """What a pointer answers, from memory that is aligned as float64 are, and no more."""
    room = np.full(2 * LENGTH + 4, 7.0)
    room[1 : 1 + LENGTH] = q
    at = room.ctypes.data
    status = pointer.ctypes(
        LENGTH if length is None else length, at + 8, at + 8 * (2 + LENGTH), at + 8 * (LENGTH + 1), 0
    )
    assert room[0] == room[-1] == room[-2] == 7.0
    return status, room[LENGTH + 1], room[LENGTH + 2 : 2 * LENGTH + 2]


@pytest.mark.slow
def test_a_density_by_its_address_in_threads_that_share_it() -> None:
    f = density()
    pointer = Pointer("density", f, [DATA])
    points = np.random.default_rng(2).normal(size=(60, LENGTH))
    wanted = [f(q, DATA) for q in points]
    problems: list[Any] = []

    def work(first: int) -> None:
        for _ in range(20):
            for number in range(first, len(points), 4):
                status, value, gradient = ask(pointer, points[number])
                same = value == wanted[number][0] and np.array_equal(gradient, wanted[number][1])
                if status or not same:
                    problems.append((number, status))

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


@pytest.mark.slow
def test_what_is_refused_and_what_fails() -> None:
    pointer = Pointer("density", density(), [DATA])
    q = np.zeros(LENGTH)
    assert ask(pointer, q)[0] == 0
    assert ask(pointer, q, LENGTH + 1)[0] == ask(pointer, q, 0)[0] == REFUSED
    out, value = np.zeros(LENGTH), np.zeros(1)
    x, g, v = q.ctypes.data, out.ctypes.data, value.ctypes.data
    for vectors in (
        (0, g, v),
        (x, 0, v),
        (x, g, 0),
        (x, x, v),
        (x, x + 8, v),
        (x, g, g),
        (x, g, x + 8),
        (x, g, g + 40),
    ):
        assert pointer.ctypes(LENGTH, *vectors, None) == REFUSED
    assert ask(pointer, q + 200.0 * np.eye(LENGTH)[2])[0] == FAILED
    assert ask(pointer, q + np.nan)[0] in (FAILED, BAD_GRADIENT)
    x0 = T.tensor("float64", (2,), name="x")
    root = graphc.function([x0], [T.sum(T.sqrt(x0)), graphc.grad(T.sum(T.sqrt(x0)), x0)])
    steep = Pointer("density", root)
    level = Pointer("density", graphc.function([x0], [T.log(x0[0]), T.zeros_like(x0)]))
    pair, slope = np.zeros(2), np.zeros(2)
    given = (pair.ctypes.data, slope.ctypes.data, value.ctypes.data, None)
    assert steep.ctypes(2, *given) == BAD_GRADIENT
    assert level.ctypes(2, *given) == BAD_VALUE


def test_a_vector_of_values_over_copied_data() -> None:
    q, data = T.tensor("float64", (3,), name="q"), T.fvector("data")
    f = graphc.function([q, data], T.concatenate([q, T.exp(q), T.cumsum(data) * q[0]]))
    held = np.array([1.0, 2.0], "float32")
    pointer = Pointer("vector", f, [held])
    x, out = np.array([0.5, -1.0, 2.0]), np.zeros(8)
    want = f(x, held)
    held[:] = 9.0
    assert pointer.ctypes(3, 8, x.ctypes.data, out.ctypes.data, None) == 0
    np.testing.assert_array_equal(out, want)
    assert pointer.ctypes(3, 7, x.ctypes.data, out.ctypes.data, None) == REFUSED


@pytest.mark.slow
def test_functions_that_have_no_address_in_c() -> None:
    q, free = T.tensor("float64", (3,), name="q"), T.dvector("free")
    value = T.sum(q * q)
    cases: list[tuple[Any, list[Any], str]] = [
        (graphc.function([q], [value, 2 * q], mode="interpreted"), [], "compiled as one kernel"),
        (graphc.function([free], [T.sum(free), free * 2]), [], "a vector of float64 whose length is known"),
        (graphc.function([q], [value, T.cast(q, "float32")]), [], "a density is wanted"),
        (graphc.function([q], [value + graphc.shared(np.ones(3)).sum(), 2 * q]), [], "shared variables"),
        (graphc.function([q, free], [value + free.sum(), 2 * q]), [], "0 values are given for 1 inputs"),
    ]  # fmt: skip
    for function, others, message in cases:
        with pytest.raises(ArgumentError, match=message):
            Pointer("density", function, others)


def test_sizes_that_follow_from_the_vector_may_not_change() -> None:
    q = T.tensor("float64", (4,), name="q")
    count = T.cast(q[0], "int64")
    pointer = Pointer("vector", graphc.function([q], T.exp(q[:count])))
    out = np.full(4, 7.0)
    answers = [pointer.ctypes(4, 0, np.full(4, number).ctypes.data, out.ctypes.data, None) for number in (0.0, 3.0)]
    assert answers == [0, FAILED] and out[0] == 7.0


PROGRAM = """
import ctypes, gc, threading
import numpy as np, graphc, graphc.tensor as T
from graphc.functions.pointer import Pointer
q = T.tensor("float64", (50,), name="q")
value = -T.sum(T.dot(T.outer(q, T.sin(q)), q))
made = [Pointer("density", graphc.function([q], [value, graphc.grad(value, q)])) for _ in range(3)]
calls = [pointer.ctypes for pointer in made]
del made
gc.collect()
def work():
    x, g, v = np.linspace(0, 1, 50), np.zeros(50), np.zeros(1)
    for k in range(3000):
        assert calls[k % 3](50, x.ctypes.data, g.ctypes.data, v.ctypes.data, None) == 0
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
calls.clear(); gc.collect(); print("done")
"""
LONG = """
import signal
import numpy as np, graphc, graphc.tensor as T
from graphc.functions.pointer import Pointer
q = T.tensor("float64", (2,), name="q")
steps = T.lscalar("steps")
last = graphc.scan(lambda s: T.tanh(s) + 0.1, outputs_info=q[0], n_steps=steps)[0][-1]
f = graphc.function([q, steps], [last, 2 * q])
assert f.built.signature.has_safepoints
call = Pointer("density", f, [30_000_000]).ctypes
x, g, v = np.ones(2), np.zeros(2), np.zeros(1)
def handler(*_): raise KeyError("from the handler")
signal.signal(signal.SIGALRM, handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    call(2, x.ctypes.data, g.ctypes.data, v.ctypes.data, None)
    for _ in range(10**9): pass
except KeyError:
    print("done", v[0] > 0)
"""


@pytest.mark.slow
def test_code_lives_as_long_as_its_function() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


@pytest.mark.slow
def test_no_handler_of_pythons_raises_within_a_call() -> None:
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "done True"), done.stderr
