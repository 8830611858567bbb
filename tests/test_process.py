"""The state of a process is one object: what starts afresh, and what a forked child keeps and forgets."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.server.client import CompileServer
from graphc.startup.lazy import once
from graphc.startup.process import PROCESS, Process


@pytest.fixture
def product() -> graphc.Function:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    return graphc.function([x, y], T.dot(T.exp(x), y) * 1.21, mode="compiled")


@pytest.fixture
def server() -> Iterator[CompileServer]:
    made = CompileServer()
    yield made
    made.close()


def test_afresh_is_as_another_process(product: graphc.Function) -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 5, 5))
    before = product(a, b)
    assert PROCESS.parts and PROCESS.products and PROCESS.compilations
    PROCESS.start_afresh()
    assert {name for name, value in vars(Process()).items() if value == vars(PROCESS)[name]} >= {
        "blocks", "compilations", "parts", "products", "warned",
    }  # fmt: skip
    again = graphc.function(product.graph.inputs, product.graph.outputs[0], mode="compiled")
    np.testing.assert_array_equal(again(a, b), before)
    np.testing.assert_array_equal(product(a, b), before)
    assert not PROCESS.compilations and PROCESS.products


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_has_the_code_and_no_processes(product: graphc.Function, server: CompileServer) -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 5, 5))
    expected, loaded = product(a, b), dict(PROCESS.products)
    assert server.start() and server._process is not None
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        code = 1
        try:
            kept = PROCESS.products == loaded and np.array_equal(product(a, b), expected)
            code = 0 if kept and server._process is None and not PROCESS.calls and not PROCESS.ahead else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert server._process is not None and server._process.poll() is None


def test_threads_that_ask_at_once_get_one_value() -> None:
    """All are within what makes the value before one has made it."""
    both = threading.Barrier(4)

    @once
    def value() -> list[int]:
        both.wait(60)
        return []

    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(value())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4 and all(each is found[0] for each in found) and value() is found[0]
