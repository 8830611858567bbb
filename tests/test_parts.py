"""What is compiled once for a machine: by this process or the compile process alike, kept, and found again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen import cache, parts, produce
from graphc.codegen.chunks import PARALLEL
from graphc.codegen.image import MAGIC
from graphc.codegen.parts import ENTRY_POINTS
from graphc.options import options

NAMES = (ENTRY_POINTS, PARALLEL, "gc_gemv_f64")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(parts, "_kept", {})
    with options.change(cache=True, cache_dir=tmp_path, cache_shared=(), cache_require=False):
        yield tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_both_processes_compile_the_same(name: str) -> None:
    ir, effort = produce.part_ir(name)
    assert produce.emit_here(ir, effort) == produce.emit_beside(ir, effort)


def test_a_part_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts.missing_parts(NAMES) == list(NAMES)
    code = parts.part_code(PARALLEL)
    assert code.startswith(MAGIC) and parts.missing_parts(NAMES) == [ENTRY_POINTS, "gc_gemv_f64"]
    monkeypatch.setattr(parts, "_kept", {})  # as another process finds it
    monkeypatch.setattr(produce, "compile_part", None)
    with options.change(cache_require=True):
        assert parts.part_code(PARALLEL) == code


def stored() -> list[str]:
    return sorted(entry.metadata["name"] for entry in cache.list_entries())


@pytest.mark.parametrize("how", ["process", "inline"])
def test_a_first_function_brings_the_parts_that_it_needs(how: str) -> None:
    a = np.arange(6.0).reshape(2, 3)
    with options.change(compile=how):
        x = T.dmatrix("x")
        np.testing.assert_allclose(graphc.function([x], x + 1.0, name="sum")(a), a + 1.0)
        assert stored() == sorted([ENTRY_POINTS, PARALLEL, "sum"])
        np.testing.assert_allclose(graphc.function([x], T.dot(x, x.T), name="square")(a), a @ a.T)
        assert stored() == sorted([ENTRY_POINTS, PARALLEL, "sum", "square", "gc_gemm_f64", "gc_gemv_f64"])


def test_a_kernel_that_cannot_be_compiled_is_an_error_whatever_parts_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise graphc.GraphcError("not today")

    monkeypatch.setattr(produce, "compile_source", refuse)
    x = T.dvector("x")
    with pytest.raises(graphc.GraphcError, match="not today"):
        graphc.function([x], x - 1.0)
    assert "function" not in stored()


ELSEWHERE = """
import numpy as np
import graphc, graphc.tensor as T
from graphc.codegen import produce
from graphc.codegen.image import join
produce.link = lambda objects, exports: join(objects)
x, w = T.dmatrix("x"), graphc.shared(np.full((3, 2), 0.5), name="w")
f = graphc.function([x], T.exp(T.dot(x, w)).sum(axis=1), updates=[(w, w * 2.0)], threads=2)
a = np.random.default_rng(0).normal(size=(400, 3))
for factor in (0.5, 1.0):
    np.testing.assert_allclose(f(a), np.exp(a @ np.full((3, 2), factor)).sum(axis=1))
again = graphc.function([x], T.exp(T.dot(x, w)).sum(axis=1), updates=[(w, w * 2.0)], threads=2)
assert again.built.report.origin == "cache"
np.testing.assert_allclose(again(a), np.exp(a @ np.full((3, 2), 2.0)).sum(axis=1))
"""


def test_where_nothing_can_be_linked_all_is_loaded_by_llvm(folder: Path) -> None:
    """As on another processor: the kernel, products, the pool."""
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(folder)}
    program = [sys.executable, "-c", ELSEWHERE]
    done = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
