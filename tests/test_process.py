"""The state of a process is one object: what starts afresh, and what a forked child keeps and forgets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.server.client import CompileServer
from graphc.startup.hooks import once
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


STARTS = {
    "nothing": ("", True),
    "functions, numbers, NumPy": ("import numpy\nscale = {'a': [1.0, 2.0]}\ndef twice(x): return 2 * x\n", True),
    "a file in a circle": (
        "made = {'file': open(PLACE, 'w')}\nmade['self'] = made\nmade['file'].write('here')\n", False
    ),
    "an object in a circle": (
        "import weakref\nclass Own: pass\nown = Own()\nown.self, gone = own, weakref.ref(own)\n", False
    ),
    "a generator": ("def each():\n  yield 1\nmade = each()\nnext(made)\n", False),
    "frozen by the program": ("import gc\ngc.freeze()\n", False),
    "much done": ("all = [[n] for n in range(60_000)]\n", False),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_imports_freeze_objects_where_the_program_has_none(name: str, tmp_path: Path) -> None:
    """A frozen circle is never released: a file in it would lose what is not written, an array would stay."""
    before, is_frozen = STARTS[name]
    program = f"""
import sys
PLACE = {str(tmp_path / "file")!r}
{before}
import gc
before = gc.get_freeze_count()
import graphc
import graphc.tensor as T
graphc.function([x := T.dvector()], x + 1)([1.0])
after = gc.get_freeze_count()
if "gone" in dir():
    del own
    gc.collect()
    assert gone() is None
assert after >= before - 20, "what the program froze stays frozen"
print(after > before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{is_frozen}\n"
    if "file" in name:
        assert (tmp_path / "file").read_text() == "here"


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
