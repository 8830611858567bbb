"""Memory that is filled before each call, and arrays between pages that nobody may touch: what is broken shows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.call.entry import entry_ir
from graphc.codegen.gemm.blocked import blocks_ir
from graphc.codegen.llvm.functions import poison as fill, split
from graphc.codegen.llvm.module import POISON
from graphc.codegen.llvm.target import emit_object
from graphc.codegen.pipeline import build, compilation
from graphc.codegen.threads.pool import pool_ir
from graphc.errors import GraphcError, ShapeError
from graphc.options import options
from graphc.startup.process import PROCESS
from tests.support.broken_kernels import KERNELS, argument, compile_broken, right_result

ROOT = Path(__file__).parents[2]
PROGRAMS = int(os.environ.get("GRAPHC_PROGRAMS", "60"))
LEFT_OUT = [name for name in KERNELS if name.endswith("left out")]
OUT_OF_BOUNDS = [name for name in KERNELS if name.split()[0] in ("temporary", "read", "write")]
PATTERN = np.array([POISON] * 2, "<u4").view(np.uint8)


def child(module: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"tests.support.{module}", *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEFT_OUT)
def test_an_element_that_is_not_written_has_the_pattern(name: str) -> None:
    with options.change(poison="on"):
        f = compile_broken(name)
    for _ in "ab":
        found = f(argument(name))
        assert found.tobytes()[: found.itemsize] == PATTERN.tobytes()[: found.itemsize]
        np.testing.assert_allclose(found.reshape(-1)[1:], right_result(name).reshape(-1)[1:], rtol=1e-5)
    into = np.ones_like(found)
    assert f(argument(name), out=into) is into
    assert into.tobytes() == found.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sum begun with anything", "operand not stored"])
def test_what_is_read_before_it_is_written_is_no_number(name: str) -> None:
    with options.change(poison="on"):
        f = compile_broken(name)
    for _ in "ab":  # the arena of the second call is that of the first
        assert np.isnan(f(argument(name))).all()


def test_the_pattern_is_no_number_and_above_all_sizes() -> None:
    assert np.isnan(PATTERN.view("<f8")).all() and np.isnan(PATTERN.view("<f4")).all()
    for dtype in ("<i8", "<i4"):
        assert (PATTERN.view(dtype) > 2**30).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LEFT_OUT, "sum begun with anything", "operand not stored", "NaN that does not show"])
def test_a_guarded_call_says_which_result_depends_on_unwritten_memory(name: str) -> None:
    with options.change(poison="guard"):
        f = compile_broken(name)
    with pytest.raises(GraphcError, match=f"element .* of out of broken: {name} depends on memory that was never"):
        f(argument(name))


@pytest.mark.slow
def test_a_guarded_call_ends_at_an_access_out_of_bounds() -> None:
    done = child("broken_kernels", *OUT_OF_BOUNDS, GRAPHC_POISON="guard")
    assert done.stdout.split() == [str(int(signal.SIGSEGV))] * len(OUT_OF_BOUNDS), done.stderr


@pytest.mark.slow
def test_random_programs_stay_within_their_arrays() -> None:
    done = child("guarded_programs", *map(str, range(0, PROGRAMS, 10)))
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}\n{done.stderr[-4000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("poison", ["on", "guard"])
def test_loops_stay_within_their_arrays(poison: str) -> None:
    done = child("guarded_loops", poison)
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}\n{done.stderr[-4000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("poison", ["on", "guard"])
@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_a_poisoned_function_is_a_function(mode: str, poison: str) -> None:
    x, v = T.dmatrix("x"), T.dvector("v")
    w = graphc.shared(np.zeros(3), name="w")
    with options.change(poison=poison):
        inputs, updates = [x, graphc.In(v, mutable=True)], [(w, w + x.sum(axis=0))]
        f = graphc.function(inputs, {"a": T.nnet.softmax(x), "b": v + 1}, mode, updates=updates)
    value, other = np.ones((4, 3)), np.arange(5.0)
    for iteration in (1, 2):
        found = f(value, v=other)
        np.testing.assert_allclose(found["a"], np.full((4, 3), 1 / 3))
        assert found["b"].tolist() == [iteration + k for k in range(5)]
        assert found["b"] is other
        assert w.get_value().tolist() == [4.0 * iteration] * 3
    into = {"a": np.empty((4, 3)), "b": np.empty(5)}
    assert f(value.T[:3].T, [0, 1, 2, 3, 4], out=into)["a"] is into["a"]
    assert into["b"].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(ShapeError):
        f(np.ones((4, 2)), other)


def test_poison_is_said_in_words() -> None:
    for given, meant in ((True, "on"), ("1", "on"), ("guard", "guard"), ("0", "off"), ("", "off"), ("off", "off")):
        with options.change(poison=given):
            assert options.poison == meant
    with pytest.raises(GraphcError, match="poison='arsenic'"):
        options.poison = "arsenic"


@pytest.mark.slow
def test_what_a_product_does_not_pack_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The panel of a product by loops, on the stack; it packs a right operand whose columns are not contiguous."""
    packs: list[int] = []

    def broken(*args: Any, **kwargs: Any) -> list[str]:
        texts = split(*args, **kwargs)
        packs.extend(text.count("call void @pack_f64(") for text in texts)
        return [re.sub(r"^ +call void @pack_f64\(.*\n", "", text, flags=re.MULTILINE) for text in texts]

    a, b = np.random.default_rng(0).random((2, 24, 24))
    x, y = T.dmatrix("x"), T.dmatrix("y")
    for make in (split, broken):
        monkeypatch.setattr(PROCESS, "codes", None)
        monkeypatch.setattr(PROCESS, "products", {})
        monkeypatch.setattr(PROCESS, "parts", {})
        monkeypatch.setattr(compilation, "split", make)
        with options.change(poison="on", cache=False):
            found = graphc.function([x, y], T.dot(x, y.T))(a, b)
        if make is split:
            np.testing.assert_allclose(found, a @ b.T)
        else:
            assert np.isnan(found).all()
    assert set(packs) == {0, 1}, "it is there, and once only"


@pytest.mark.parametrize("suffix", ["f64", "f32"])
def test_all_memory_of_large_products_is_filled(suffix: str) -> None:
    """What they keep is at each call, so that a product never finds what the last one left."""
    taking = re.compile(r"  (%[\w.]+) = (?:call ptr @(?:malloc|keep)\(|alloca \[\d+ x (?:float|double)\])")
    filling = re.compile(r"@poison\(ptr (%[\w.]+),")
    text = blocks_ir(suffix, poison=True)
    blocks, edge = (
        next(each for each in text.split("define ") if f" @{name}_" in each.partition("(")[0])
        for name in ("gc_blocks", "edge")
    )
    assert len(taking.findall(blocks)) == 2 and len(filling.findall(blocks)) == 1  # kept or borrowed, as it comes
    assert taking.findall(edge) == filling.findall(edge) != [] and "@poison(" not in blocks_ir(suffix)
    assert emit_object([text], 1)


def test_lines_for_nontemporal_stores_are_filled() -> None:
    filled = "call void @poison("
    text = pool_ir(poison=True)
    assert filled in text and filled not in pool_ir() and emit_object([text], 1)


def test_without_poison_the_entry_point_has_nothing_of_it() -> None:
    x = T.dmatrix("x")
    built = build.build_python(graphc.function([x], T.dot(T.exp(x), T.tanh(x).T), "interpreted").kernel)
    assert built.signature.temps
    plain, filled = (entry_ir(built.signature, poison=poison) for poison in (False, True))
    calls = [line for line in filled.splitlines() if "call void @poison(" in line]
    assert len(calls) == 3  # what sizes writes, a result, the arena
    assert fill.definition().text("internal ") in filled and "poison(" not in plain
