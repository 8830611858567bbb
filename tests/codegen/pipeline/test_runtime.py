"""What is compiled once for a machine: by this process or the compile process alike, kept, and found again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.cache import manage, shipped, store
from graphc.codegen.gemm import dispatch
from graphc.codegen.link.elf import link
from graphc.codegen.link.image import MAGIC
from graphc.codegen.llvm.functions import module_text, reached, split
from graphc.codegen.llvm.module import Module
from graphc.codegen.llvm.target import emit_object
from graphc.codegen.pipeline import compilation, program, runtime
from graphc.codegen.pipeline.kernel import Report
from graphc.codegen.pipeline.runtime import ENTRY_POINTS
from graphc.codegen.server import client as compiler, process
from graphc.codegen.server.client import CompileServer
from graphc.codegen.server.protocol import Request
from graphc.codegen.threads.settings import PARALLEL
from graphc.options import options
from graphc.startup.process import PROCESS

NAMES = (ENTRY_POINTS, PARALLEL, "gc_gemv_f64")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(PROCESS, "parts", {})
    monkeypatch.setattr(PROCESS, "shipped", {})
    monkeypatch.setattr(shipped, "FOLDER", str(tmp_path / "none"))
    with options.change(cache=True, cache_dir=tmp_path, cache_shared=(), cache_require=False):
        yield tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_both_processes_compile_the_same(name: str) -> None:
    compilation.emit_here(Module("define i64 @seven() {\n  ret i64 7\n}", is_straight=True), 3)  # sets switches
    texts, opt = compilation.part_ir(name)
    for ir in texts:
        assert compilation.emit_here(ir, opt) == compilation.emit_beside(ir, opt)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gc_gemm_f64", "gc_gemv_f32", "gc_batched_gemm_i64"])
@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_modules_of_a_part_are_the_whole(name: str, count: int) -> None:
    """Each function is defined in one of them, or in all where it is always inlined, and declared in the others."""
    functions = dispatch.functions([name])
    whole, texts = module_text(functions), split(functions, count)
    written = [each for each in reached(functions) if each.body is not None]
    assert 1 <= len(texts) <= min(count, len(written)) and split(functions, count) == texts
    assert len({*texts}) == len(texts) and (count == 1) == (texts == [whole])
    for each in written:
        head = each.head(names=True)
        found = sum(f"{head} {each.attributes} {{" in text for text in texts)
        assert found == 1 or (each.attributes == "alwaysinline" and found == len(texts)), head
        assert count == 1 or not each.is_internal or found > 1 or any(f"define hidden {head}" in text for text in texts)
    code = link([emit_object([text], 1) for text in texts], [name])
    assert code.startswith(MAGIC)


def test_a_part_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtime.missing_parts(NAMES) == list(NAMES)
    code = runtime.part_code(PARALLEL)
    assert code.startswith(MAGIC) and runtime.missing_parts(NAMES) == [ENTRY_POINTS, "gc_gemv_f64"]
    PROCESS.start_afresh()
    monkeypatch.setattr(compilation, "compile_part", None)
    with options.change(cache_require=True):
        assert runtime.part_code(PARALLEL) == code


def stored() -> list[str]:
    return sorted(entry.metadata["name"] for entry in manage.list_entries())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["process", "inline"])
def test_a_first_function_brings_the_parts_that_it_needs(how: str) -> None:
    a = np.arange(6.0).reshape(2, 3)
    with options.change(compile=how):
        x = T.dmatrix("x")
        np.testing.assert_allclose(graphc.function([x], x + 1.0, name="sum")(a), a + 1.0)
        assert stored() == sorted([ENTRY_POINTS, PARALLEL, "sum"])
        np.testing.assert_allclose(graphc.function([x], T.dot(x, x.T), name="square")(a), a @ a.T)
        needed = ["gc_gemm_f64", "gc_gemv_f64", "gc_blocks_f64"]  # at some size
        assert stored() == sorted([ENTRY_POINTS, PARALLEL, "sum", "square", *needed])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
def test_products_with_a_vector_are_loaded_when_a_matrix_is_one(dtype: str) -> None:
    suffix = {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32"}[dtype]
    rng = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PROCESS, "products", {})
        x, y = T.matrix("x", dtype=dtype), T.matrix("y", dtype=dtype)
        call = graphc.function([x, y], T.dot(x, y))
        for shape, names in (((4, 5, 3), []), ((4, 5, 1), ["gemv"]), ((1, 5, 3), ["gemv"]), ((1, 4, 1), ["gemv"])):
            m, k, n = shape
            a, b = rng.integers(0, 9, (m, k)).astype(dtype), rng.integers(0, 9, (k, n)).astype(dtype)
            np.testing.assert_array_equal(call(a, b), a @ b)
            ((_, dispatch),) = PROCESS.products.items()
            assert sorted(dispatch.loaded) == sorted(f"gc_{name}_{suffix}" for name in ["gemm", *names])


@pytest.mark.slow
def test_matrices_go_on_where_there_are_no_products_with_a_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    """What their compilation raises is a warning, once; loops serve."""
    monkeypatch.setattr(PROCESS, "products", {})
    x, y = T.dmatrix("x"), T.dmatrix("y")
    call = graphc.function([x, y], T.dot(x, y))

    def refuse(name: str) -> bytes:
        raise graphc.GraphcError("not today")

    monkeypatch.setattr(runtime, "part_code", refuse)
    a, b = np.random.default_rng(0).normal(size=(2, 300, 300))
    with pytest.warns(RuntimeWarning, match="goes on without faster products.*not today"):
        np.testing.assert_allclose(call(a, b[:, :1]), a @ b[:, :1], rtol=1e-11)
    np.testing.assert_allclose(call(a[:1], b), a[:1] @ b, rtol=1e-11)


def test_a_kernel_that_cannot_be_compiled_is_an_error_whatever_parts_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise graphc.GraphcError("not today")

    monkeypatch.setattr(compilation, "lower_source", refuse)
    x = T.dvector("x")
    with pytest.raises(graphc.GraphcError, match="not today"):
        graphc.function([x], x - 1.0)
    assert "function" not in stored()


# The modules of a kernel


FUNCTIONS = ("exp", "tanh", "log1p", "sinh", "cbrt", "arctan")


def many_nests() -> graphc.Function:
    """A function whose kernel has several modules."""
    inputs = [T.dmatrix(name) for name in FUNCTIONS]
    values = [
        getattr(T, name)(x * x + 0.5).sum(n % 2) for n, (name, x) in enumerate(zip(FUNCTIONS, inputs, strict=True))
    ]
    with options.change(outline="always"):
        return graphc.function(inputs, [*values, T.dot(inputs[0], inputs[1].T)])


def code_of(function: graphc.Function) -> bytes:
    (entry,) = (entry for entry in manage.list_entries() if entry.metadata["name"] == function.name)
    return Path(entry.folder, store.OBJECT).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("who", ["here", "beside", "whoever is free"])
def test_code_does_not_depend_on_who_compiles_a_module(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    here, beside = compilation.emit_here, compilation.emit_beside
    is_kernel = threading.Event()

    def emit_here(ir: str, opt: int) -> bytes:
        if opt == compilation.KERNEL_OPT:
            compiled.append("here")
            if who == "beside":
                is_kernel.wait(20)  # the other takes all that are left
        return here(ir, opt)

    def emit_beside(ir: str, opt: int) -> bytes:
        compiled.append("beside")
        if who == "here":
            is_kernel.wait(20)
        return beside(ir, opt)

    def take(work: compilation.Work, last: bool, take: Any = compilation.Work.take) -> compilation.Job | None:
        job: compilation.Job | None = take(work, last)
        if job is None:
            is_kernel.set()
        return job

    monkeypatch.setattr(compilation, "emit_here", emit_here)
    monkeypatch.setattr(compilation, "emit_beside", emit_beside)
    monkeypatch.setattr(compilation.Work, "take", take)
    function = many_nests()
    arrays = np.random.default_rng(0).normal(size=(len(FUNCTIONS), 5, 7))
    *results, product = function(*arrays)
    np.testing.assert_allclose(product, arrays[0] @ arrays[1].T, rtol=1e-12)
    for n, (name, x, result) in enumerate(zip(FUNCTIONS, arrays, results, strict=True)):
        np.testing.assert_allclose(result, getattr(np, name)(x * x + 0.5).sum(n % 2), rtol=1e-12)
    if who != "whoever is free":
        assert compiled.count(who) > 1
    found = CODES.setdefault("code", code_of(function))
    assert code_of(function) == found


CODES: dict[str, bytes] = {}
"""What the first of the tests above got: the same for all."""


def lowered(server: CompileServer, request: Request) -> list[Module]:
    modules: list[Module] = []

    def take(number: int, module: Module) -> None:
        modules[number:] = [module]

    server.lower(request, take)
    return modules


def request_of(function: graphc.Function) -> Request:
    made = program.generate_program(function.kernel, Report("f"))
    return Request(made.source, made.prototypes, tuple(made.externals.items()), wanted="modules")


@pytest.mark.slow
def test_an_interrupt_while_the_worker_starts_leaves_none_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    x = T.dvector("x")
    made = program.generate_program(graphc.function([x], x + 1, mode="interpreted").kernel, Report("f"))
    begin, begun = threading.Thread.start, list[threading.Thread]()

    def interrupted(worker: threading.Thread) -> None:
        begun.append(worker)
        begin(worker)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compilation.compile_program(made, (), False, compilation.Ahead(()))
    assert len(begun) == 1 and not begun[0].is_alive()
    assert compilation.compile_program(made, (), False, compilation.Ahead(())).objects


@pytest.mark.slow
def test_an_interrupted_lowering_does_not_answer_the_next() -> None:
    request = request_of(many_nests())
    server = CompileServer()

    def interrupt(number: int, module: Module) -> None:
        if number == 1:
            raise KeyboardInterrupt

    try:
        modules = lowered(server, request)
        assert len(modules) > 2
        with pytest.raises(KeyboardInterrupt):
            server.lower(request, interrupt)
        assert lowered(server, request) == modules
    finally:
        server.close()


@pytest.mark.slow
def test_a_lowering_that_fails_half_way_begins_again_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    request = request_of(many_nests())
    broken = """w = import_worker({lean})
if {lean}:
    lower = w.lower_modules
    def fail(*args):
        yield next(lower(*args)) + "; half"
        raise RuntimeError("missing")
    w.lower_modules = fail
w"""
    first, second = CompileServer(), CompileServer()
    try:
        modules = lowered(first, request)
        monkeypatch.setattr(process, "BOOT", process.BOOT.replace("import_worker(lean={lean})", broken))
        assert lowered(second, request) == modules
        monkeypatch.setattr(compiler, "SERVER", CompileServer())
        x = T.dvector("x")
        np.testing.assert_equal(graphc.function([x], x * 3.0)(np.ones(2)), [3.0, 3.0])
    finally:
        for server in (first, second, compiler.SERVER):
            server.close()


ELSEWHERE = """
import numpy as np
import graphc, graphc.tensor as T
from graphc.codegen.pipeline import compilation
from graphc.codegen.link.image import join
compilation.link = lambda objects, exports: join(objects)
x, w = T.dmatrix("x"), graphc.shared(np.full((3, 2), 0.5), name="w")
f = graphc.function([x], T.exp(T.dot(x, w)).sum(axis=1), updates=[(w, w * 2.0)], threads=2)
a = np.random.default_rng(0).normal(size=(400, 3))
for factor in (0.5, 1.0):
    np.testing.assert_allclose(f(a), np.exp(a @ np.full((3, 2), factor)).sum(axis=1))
again = graphc.function([x], T.exp(T.dot(x, w)).sum(axis=1), updates=[(w, w * 2.0)], threads=2)
assert again.built.report.origin == "cache"
np.testing.assert_allclose(again(a), np.exp(a @ np.full((3, 2), 2.0)).sum(axis=1))
"""


@pytest.mark.slow
def test_where_nothing_can_be_linked_all_is_loaded_by_llvm(folder: Path) -> None:
    """As on another processor: the kernel, dispatch, the pool."""
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(folder)}
    program = [sys.executable, "-c", ELSEWHERE]
    done = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
