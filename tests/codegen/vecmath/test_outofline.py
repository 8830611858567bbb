"""Elementary functions that loops call: which do, that no bit is another for it, and that each is compiled once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.cache import manage, shipped, store
from graphc.codegen.frontend.lowering import lower_source
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.pipeline import compilation
from graphc.codegen.pipeline.runtime import ENTRY_POINTS
from graphc.codegen.threads.settings import PARALLEL
from graphc.codegen.vecmath import table as outofline
from graphc.codegen.vecmath.floats import F32, F64
from graphc.codegen.vecmath.table import TOGETHER, VECTOR_MATH, VECTORS, WEIGHT, arity_of, one_vector
from graphc.errors import CacheWarning
from graphc.options import options
from graphc.startup.process import PROCESS
from tests.support.bounds import assert_within
from tests.support.compiled_source import load
from tests.support.thorough import some
from tests.support.vecmath_values import SPECIALS

FORMATS = {"float32": F32, "float64": F64}
DTYPES = tuple(FORMATS)
THREE = "exp(x[i]) * log(x[i]) + tanh(x[i])"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty store, and a process that has found nothing in it; no parts came with graphc."""
    monkeypatch.setattr(PROCESS, "parts", {})
    monkeypatch.setattr(PROCESS, "shipped", {})
    monkeypatch.setattr(shipped, "FOLDER", str(tmp_path / "none"))
    with options.change(cache=True, cache_dir=tmp_path, cache_shared=(), cache_require=False):
        yield tmp_path


def arguments(name: str, dtype: str) -> list[NDArray[Any]]:
    """Special values, and numbers of all signs and sizes."""
    rng = np.random.default_rng(5)
    rows = np.array(SPECIALS[name], dtype)
    missing = 3 - len(rows) % 64  # of a vector that is not full
    some = [
        rng.normal(size=512 + missing) * 10.0 ** rng.integers(-3, 2, 512 + missing),
        rng.normal(size=64) * 10.0 ** rng.integers(-30, 30, 64),
        np.linspace(-760.0, 720.0, 64),  # exponentials of some are subnormal
        np.linspace(-105.0, 90.0, 64),
    ]
    return [np.concatenate([special, *some]).astype(dtype) for special in rows.T[: arity_of(name)]]


@pytest.mark.slow
@pytest.mark.parametrize("fast_math", some([False, True]))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VECTOR_MATH)
def test_called_or_held_each_bit_is_the_same(
    name: str, dtype: str, fast_math: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over vectors, the last of which is not full, and by single numbers."""
    arity = arity_of(name)
    pointers = ", ".join("xyz"[:arity])
    given = ", ".join(f"{pointer}[i]" for pointer in "xyz"[:arity])
    source = (
        f"def f({pointers}, out, n):\n    for i in independent(n):\n        out[i] = {name}({given})\n    return 0\n"
    )
    prototype = Prototype("f", (*[f"{dtype}*"] * (arity + 1), "int64"))
    results = []
    for most in (-1, 100):
        monkeypatch.setattr(outofline, "MOST_HELD", most)
        text = lower_source(source, [prototype], {}, fast_math).ir
        assert bool(re.search(rf"call .*@\"gc_{name}_f\d+(_relaxed)?_x", text)) == (most < 0)
        with options.change(compile="inline"):
            loaded = load(source, prototype, fast_math=fast_math)
        x = arguments(name, dtype)
        outs = [np.zeros(x[0].size + 1, dtype)]
        loaded.call("f", *x, outs[0], x[0].size)
        for length in (1, 2, 7, VECTORS * one_vector(FORMATS[dtype]) + 1):
            outs.append(np.zeros(length + 1, dtype))
            loaded.call("f", *(each[-length:].copy() for each in x), outs[-1], length)
        results.append(outs)
    assert x[0].size % one_vector(FORMATS[dtype]) == 3 % one_vector(FORMATS[dtype])
    for called, held in zip(*results, strict=True):
        np.testing.assert_array_equal(called, held)
        np.testing.assert_array_equal(np.signbit(called), np.signbit(held))


def calls(body: str, dtype: str = "float64", other: str = "float64") -> set[str]:
    """The functions apart that a loop calls."""
    source = f"def f(x, y, n):\n    for i in independent(n):\n        v = x[i]\n        x[i] = {body}\n    return 0\n"
    text = lower_source(source, [Prototype("f", (f"{dtype}*", f"{other}*", "int64"))], {}, False).ir
    return set(re.findall(r"call .*@\"?gc_([a-z0-9]+)_f\d+_x\d+\b", text))


@pytest.mark.parametrize("dtype", DTYPES)
def test_which_loops_call(dtype: str) -> None:
    assert not calls("exp(x[i])", dtype) and not calls("exp(x[i]) * tanh(x[i])", dtype)
    assert calls(THREE, dtype) == {"exp", "log", "tanh"}
    assert calls("exp(x[i]) * exp(x[i] + 1.0) * exp(x[i] + 2.0)", dtype) == {"exp"}
    assert not calls("pow(x[i], x[i])", dtype) and calls("pow(x[i], exp(x[i]))", dtype) == {"pow", "exp"}
    for name, weight in WEIGHT.items():
        if weight > 2:
            assert calls(f"{name}(x[i])", dtype) == {name}


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_that_share_their_work_are_one(dtype: str) -> None:
    assert calls("sin(v) * cos(v)", dtype) == {"sincos"}
    assert calls("sin(v) * cos(v + 1.0)", dtype) == {"sin", "cos"}
    assert calls("sin(v) * cos(v) + sin(v + 1.0)", dtype) == {"sincos", "sin"}


@pytest.mark.slow
@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("together", TOGETHER)
def test_together_or_alone_each_bit_is_the_same(together: str, dtype: str, fast_math: bool) -> None:
    names = TOGETHER[together]
    x = arguments(names[0], dtype)[0]
    prototype = Prototype("f", (f"{dtype}*", f"{dtype}*", f"{dtype}*", "int64"))

    def results(*bodies: str) -> list[NDArray[Any]]:
        lines = [f"    for i in independent(n):\n        v = x[i]\n        {body}\n" for body in bodies]
        source = f"def f(x, out, out2, n):\n{''.join(lines)}    return 0\n"
        assert (f"gc_{together}_" in lower_source(source, [prototype], {}, fast_math).ir) == (len(bodies) == 1)
        outs = [np.zeros_like(x) for _ in names]
        with options.change(compile="inline"):
            load(source, prototype, fast_math=fast_math).call("f", x, *outs, x.size)
        return outs

    one, other = (f"out{number}[i] = {name}(v)" for number, name in zip(("", "2"), names, strict=True))
    for found, alone in zip(results(f"{one}; {other}"), results(one, other), strict=True):
        np.testing.assert_array_equal(found, alone)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(alone))


def test_vectors_that_functions_lack_are_not_asked_for() -> None:
    """A loop has as many numbers in a vector as there are of the widest type."""
    assert not calls("exp(x[i]) * log(x[i]) * tanh(x[i]) * float32(y[i])", "float32", "float64")
    assert calls("float32(exp(float64(x[i])) * log(float64(x[i])) * tanh(float64(x[i])))", "float32", "float32")
    assert calls("exp(x[i]) * log(x[i]) * tanh(x[i]) * float64(y[i])", "float64", "float32")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_machine_code_calls_functions_of_vectors(dtype: str) -> None:
    x = T.vector("x", dtype=dtype)
    f: Any = graphc.function([x], T.exp(x) * T.log(x) + T.tanh(x))
    lanes = one_vector(FORMATS[dtype])
    called = set(re.findall(r"callq?\s+\*?\"?(gc_\w+?_f\d+_x\d+)", f.assembly))
    names = {f"gc_{name}_{FORMATS[dtype].name}_x{VECTORS * lanes}" for name in ("exp", "log", "tanh")}
    assert names <= called
    for size in (0, 1, lanes - 1, lanes, 4 * lanes, 4 * lanes + 3, 1000):
        values = np.random.default_rng(size).uniform(0.1, 3, size).astype(dtype)
        expected = np.exp(values) * np.log(values) + np.tanh(values)
        np.testing.assert_allclose(f(values), expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)


def stored() -> set[str]:
    return {entry.metadata["name"] for entry in manage.list_entries()}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["process", "inline"])
def test_functions_are_compiled_once_for_a_machine(folder: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = T.dvector("x"), T.dvector("y")
    a = np.random.default_rng(0).uniform(0.5, 2, (2, 100))
    with options.change(compile=how):
        f = graphc.function([x], T.exp(x) * T.log(x) + T.tanh(x), name="first")
        np.testing.assert_allclose(f(a[0]), np.exp(a[0]) * np.log(a[0]) + np.tanh(a[0]), rtol=1e-12)
        functions = {"gc_exp_f64", "gc_log_f64", "gc_tanh_f64"}
        assert stored() == functions | {ENTRY_POINTS, PARALLEL, "first"}
        PROCESS.start_afresh()

        class Refused:
            def __init__(self, name: str) -> None:
                raise AssertionError(f"{name} is there already")

        monkeypatch.setattr(outofline, "math_ir", Refused)
        monkeypatch.setattr(compilation, "Elementary", Refused)  # in the compile process too
        g = graphc.function([x, y], T.exp(x) * T.log(y) + T.tanh(x) * T.exp(y), name="second")
        np.testing.assert_allclose(g(*a), np.exp(a[0]) * np.log(a[1]) + np.tanh(a[0]) * np.exp(a[1]), rtol=1e-12)
        assert stored() == functions | {ENTRY_POINTS, PARALLEL, "first", "second"}


@pytest.mark.slow
def test_a_damaged_function_is_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = T.dvector("x")
    a = np.linspace(0.5, 2.0, 77)

    def build(shift: float) -> Any:
        return graphc.function([x], T.exp(x) * T.log(x) + T.tanh(x) + shift)

    build(1.0)
    for path in folder.rglob("kernel.o"):
        content = path.read_bytes()
        path.write_bytes(content[:100] + bytes(50) + content[150:])
    monkeypatch.setattr(PROCESS, "parts", {})
    with pytest.warns(CacheWarning, match="damaged"):
        f = build(2.0)
    np.testing.assert_allclose(f(a), np.exp(a) * np.log(a) + np.tanh(a) + 2.0, rtol=1e-12)


def metadata_of(entry: str) -> bytes:
    return Path(entry, "metadata").read_bytes()


def test_a_stored_kernel_needs_no_function_beside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds those that it calls: they may be removed."""
    x = T.dvector("x")
    a = np.linspace(0.5, 2.0, 77)

    def build() -> Any:
        return graphc.function([x], T.exp(x) * T.log(x) + T.tanh(x))

    expected = build()(a)
    removed = [entry for entry in store.entries(str(folder)) if re.search(rb"gc_[a-z]+_f64", metadata_of(entry))]
    assert len(removed) == 3
    for entry in removed:
        store.discard(entry)
    monkeypatch.setattr(PROCESS, "parts", {})
    with options.change(cache_require=True):
        np.testing.assert_array_equal(build()(a), expected)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1,), (3,), (8,), (33,), (3, 9), (None, 3), (3, None)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_known_sizes_are_right_and_llvm_says_nothing(
    dtype: str, shape: tuple[int | None, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a loop that it was told to vectorise, and cannot, it would complain to standard error."""
    x = T.tensor(dtype, shape, "x")
    a = np.random.default_rng(4).normal(size=[size or 5 for size in shape]).astype(dtype)
    y = T.exp(x) * T.log1p(x * x) + T.tanh(x)
    wanted = [y, y.sum(axis=0), y.sum(axis=-1), y[..., ::2], T.cumsum(y, axis=0)]
    with options.change(compile="inline"):
        for output in wanted:
            assert_within([graphc.function([x], output)(a)], [output], {x: a})
    assert not capfd.readouterr().err
