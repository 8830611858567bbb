"""What happens when graphc is imported: a compile process where one will be needed, and a BLAS that sleeps."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from graphc.codegen.llvm.module import Prototype
from graphc.codegen.server import prestart, process
from graphc.codegen.server.client import CompileServer
from graphc.options import options
from graphc.startup.process import PROCESS
from tests.support.compiled_source import compile_source

PROGRAM = """
import os, sys
from pathlib import Path
import graphc
import graphc.tensor as T
print(len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))
if "use" in sys.argv:
    x = T.dvector("x")
    print(graphc.function([x], x * 2.0)([1.0, 2.0]).tolist())
"""
needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are counted in /proc")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def children(path: Path, *arguments: str, **environment: str) -> int:
    """How many processes the program has when graphc is imported."""
    command = [sys.executable, "-W", "error", str(path), *arguments]
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(path.parent / "cache"), **environment}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    number, *results = done.stdout.split("\n", 1)
    assert results == (["[2.0, 4.0]\n"] if "use" in arguments else [""])
    return int(number)


@pytest.mark.slow
@needs_proc
def test_a_compiler_is_started_where_it_will_be_needed(program: Path) -> None:
    assert children(program) == 1, "nothing is cached yet"
    assert children(program, "use") == 1
    assert children(program, "use") == 0, "all is cached"
    os.utime(program, (2**31, 2**31))
    assert children(program) == 1, "the program was changed"
    os.utime(program)
    assert children(program, "use") == 1
    assert children(program, "use") == 0, "the change did not matter"


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("name", ["COMPILE=inline", "MODE=interpreted", "CACHE_REQUIRE=1", "CACHE_SHARED=/nowhere"])
def test_none_is_started_that_would_not_be_used(program: Path, name: str) -> None:
    option, _, value = name.partition("=")
    assert children(program, **{f"GRAPHC_{option}": value}) == 0


@pytest.mark.slow
@needs_proc
def test_one_is_started_where_nothing_is_kept(program: Path) -> None:
    assert children(program, "use") == 1
    assert children(program, "use", GRAPHC_CACHE="0") == 1


def test_who_types_is_going_to_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Path(options.cache_dir).mkdir(parents=True, exist_ok=True)
    Path(options.cache_dir, prestart.USAGE).touch()
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "gone.py"), raising=False)
    assert not prestart.is_expected()
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert prestart.is_expected()
    monkeypatch.setattr(sys, "argv", ["-m"])  # graphc's own command is imported
    assert not prestart.is_expected()


@pytest.mark.slow
def test_what_was_started_ahead_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROCESS, "ahead", [])
    process.start_ahead()
    ((child, _),) = PROCESS.ahead
    server = CompileServer()
    try:
        assert server.start() and process.take_ahead() is None
        assert server._process is not None and server._process is child
    finally:
        server.close()
    assert child.poll() is not None


def test_what_has_left_or_is_not_needed_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROCESS, "ahead", [])
    process.start_ahead()
    ((child, _),) = PROCESS.ahead
    child.kill()
    child.wait()
    assert process.take_ahead() is None and not PROCESS.ahead
    process.start_ahead()
    ((child, _),) = PROCESS.ahead
    process._end_ahead()
    assert child.poll() is not None and not PROCESS.ahead
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    process.start_ahead()
    assert not PROCESS.ahead
    assert compile_source("def kernel(x):\n    return 7\n", [Prototype("kernel", ("float64*",))])


@pytest.mark.slow
@needs_proc
def test_a_fork_leaves_the_process_to_its_parent(program: Path) -> None:
    program.write_text(
        textwrap.dedent("""
        import os
        import graphc
        import graphc.tensor as T
        from graphc.startup.process import PROCESS
        print(len(PROCESS.ahead))
        if os.fork() == 0:
            assert not PROCESS.ahead
            x = T.dvector("x")
            assert graphc.function([x], x + 1.0)([1.0]).tolist() == [2.0]
            os._exit(0)
        assert os.wait()[1] == 0
        """)
    )
    assert children(program) == 1


BLAS = """
import os
{before}
import graphc
print("OPENBLAS_THREAD_TIMEOUT" in os.environ)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("before", "set_after"), [("", False), ("import numpy", False), ("CHOSEN", True)])
def test_the_environment_is_as_it_was(before: str, set_after: bool) -> None:
    code = BLAS.format(before=before.replace("CHOSEN", "os.environ['OPENBLAS_THREAD_TIMEOUT'] = '20'"))
    environment = {name: value for name, value in os.environ.items() if "THREAD_TIMEOUT" not in name}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(set_after)


RESOURCES = """
import sys, threading
wait = threading.Event()
if {another}:
    threading.Thread(target=wait.wait).start()
from graphc.codegen.llvm.target import llvm
wait.set()
print("importlib.resources" in sys.modules, llvm.llvm_version_info[0] > 0)
import importlib.resources
importlib.resources.files("graphc")
"""


@pytest.mark.slow
@pytest.mark.parametrize("another", [False, True])
def test_llvmlite_is_imported_with_less_where_no_other_thread_sees_it(another: bool) -> None:
    code = RESOURCES.format(another=another)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(another), "True"]
