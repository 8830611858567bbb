"""Loops of which several turns are carried out at a time: which they are, and that no element is another for it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen import interleave
from graphc.codegen.interleave import CHAINS, FEWER
from graphc.codegen.math_calls import VECTORS, one_vector
from graphc.codegen.numba_lowering import lower_source
from graphc.codegen.prototype import Prototype
from graphc.codegen.real import F64
from graphc.codegen.target import has_avx512, optimize

FLAT = """
    for i in range(n):
        x[i] = exp(x[i]) + 1.0
"""
LONG = "    for i in range(n):\n        v = x[i]\n" + "        v = exp(v) * 0.5 + v\n" * 60 + "        x[i] = v\n"
"""CPython's jump out of so long a loop takes two instructions, and two blocks."""
PAIR = """
    for i in range(n):
        x[i] = exp(x[i] + 1.0) + log(x[i])
"""
"""Two functions of which none waits for the other."""
APART = """
    for i in range(n):
        v = x[i]
        w = exp(v)
        x[i] = log(w) + exp(v * w) * exp(v + 1.0)
"""
"""Four functions, of which one waits for another."""
BRANCHED = """
    for i in range(n):
        if x[i] > 0.0:
            x[i] = exp(x[i])
"""
PLAIN = """
    for i in range(n):
        x[i] = x[i] * x[i] + 1.0
"""
SUM = """
    total = 0.0
    for i in range(n):
        total = accumulate(total, exp(x[i]))
    x[0] = total
"""
CARRY = """
    last = 0.0
    for i in range(n):
        last = exp(last) * x[i]
        x[i] = last
"""
ROWS = """
    for i in range(n):
        for j in range(n):
            x[i * n + j] = exp(x[i * n + j])
"""
BESIDE_ROWS = """
    for i in range(n):
        x[i] = x[i] + 1.0
        for j in range(n):
            x[j] = x[j] * 2.0
"""
SUM_IN_ROWS = """
    for i in range(n):
        total = 0.0
        for j in range(n):
            total = accumulate(total, x[i * n + j])
        x[i] = total
"""
RUNNING = """
    total = 0.0
    for i in range(n):
        total = accumulate(total, x[i])
        x[i] = total
"""
"""Whose order cannot be changed, though the addition says it can: so it does of all additions with fast_math."""
CASES: dict[str, tuple[str, list[int], list[int]]] = {
    "flat": (FLAT, [CHAINS], [CHAINS, 1]),
    "two": (FLAT + FLAT, [CHAINS, CHAINS], [CHAINS, 1, CHAINS, 1]),
    "pair": (PAIR, [FEWER], [FEWER, 1]),
    "apart": (APART, [VECTORS, 1], [VECTORS, 1]),
    "long": (LONG, [VECTORS, 1], [VECTORS, 1]),
    "long ones": (LONG + ROWS + APART, [VECTORS, 1, VECTORS, 1], [VECTORS, 1, CHAINS, 1, VECTORS, 1]),
    "branched": (BRANCHED, [], []),
    "plain": (PLAIN, [], []),
    "sum": (SUM, [FEWER, 1], [FEWER, 1]),
    "sum in rows": (SUM_IN_ROWS, [CHAINS, 1], [CHAINS, 1]),
    "carry": (CARRY, [], []),
    "running sum": (RUNNING, [], []),
    "rows": (ROWS, [], [CHAINS, 1]),
    "after rows": (ROWS + FLAT + BESIDE_ROWS + FLAT, [CHAINS, CHAINS], [CHAINS, 1, CHAINS, 1, CHAINS, 1]),
}
"""The vectors at a time of each marked loop, two for one that is cut: without masks, and with them."""


def lowered(body: str, fast_math: bool = False, dtype: str = "float64") -> str:
    source = f"def f(x, n):\n{body}\n    return 0\n"
    return lower_source(source, [Prototype("f", (f"{dtype}*", "int64"))], {}, fast_math)


def marks(text: str) -> list[tuple[int, bool]]:
    """Of each marked loop: the vectors at a time, and whether they may be masked. A loop that calls functions of
    several vectors takes one of that length at a time."""
    found = []
    unrolled = re.findall(r'^(!\d+) = !{ !"llvm.loop.unroll.disable", i1 1 }$', text, re.MULTILINE)
    numbers = re.findall(r"^  br .*, !llvm\.loop !(\d+)$", text, re.MULTILINE)
    assert len(set(numbers)) == len(numbers)
    for number in numbers:
        loop = re.search(rf"^!{number} = !{{ !{number}, (.*) }}$", text, re.MULTILINE)
        assert loop is not None
        properties = {}
        if loop[1] in unrolled:
            continue
        for each in loop[1].split(", "):
            said = re.search(rf'^{each} = !{{ !"llvm.loop.([a-z.]+)", i\d+ (\d+) }}$', text, re.MULTILINE)
            assert said is not None
            properties[said[1]] = int(said[2])
        vectors = properties.pop("interleave.count")
        if width := properties.pop("vectorize.width", None):
            assert vectors == 1
            vectors = width // one_vector(F64)
        found.append((vectors, properties == {"vectorize.predicate.enable": 1}))
        assert not properties or found[-1][1]
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("masks", [False, True])
def test_marked_loops(name: str, fast_math: bool, masks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleave, "has_avx512", lambda: masks)
    monkeypatch.setattr(interleave, "has_fma", lambda: True)
    body, without, with_masks = CASES[name]
    found = marks(lowered(body, fast_math))
    assert sorted(vectors for vectors, _ in found) == sorted(with_masks if masks else without)
    # Of a loop that is cut, the first part has no vector to mask; the second has where elements take long.
    cut = sum(vectors == 1 for vectors, _ in found)
    assert sum(masked for _, masked in found) == cut * (2 if masks and "exp" in body else 1)
    assert len(set(re.findall(r"gc_exp_f64_x\d+", lowered(body)))) == (3 if "apart" in name or "long" in name else 0)


def test_loops_that_wait_for_themselves_are_not_unrolled() -> None:
    """Where they stand in a function does not matter."""
    loop = "    last = 0.0\n    for i in range(n):\n        last = last * 0.5 + x[i]\n        x[i] = last\n"
    for body in (loop, "    if n > 3:\n        x[0] = 1.0\n" + loop):
        text = lowered(body)
        assert len(re.findall(r"^  br .*, !llvm\.loop", text, re.MULTILINE)) == 1
        assert str(optimize([text])).count(" = fadd ") == 1
        assert str(optimize([text.replace("unroll.disable", "unknown")])).count(" = fadd ") > 1


def test_several_sums_give_the_same_text_again() -> None:
    sums = [f"total{number}" for number in range(8)]
    start = "".join(f"    {name} = 0.0\n" for name in sums)
    turn = "".join(f"        {name} = accumulate({name}, x[i] * {number}.0)\n" for number, name in enumerate(sums))
    end = f"    x[0] = {' + '.join(sums)}\n"
    assert len({lowered(f"{start}    for i in range(n):\n{turn}{end}") for _ in range(20)}) == 1


@pytest.mark.parametrize("name", ["sum", "sum in rows"])
def test_without_fused_arithmetic_only_sums_are_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for feature in ("has_avx512", "has_fma"):
        monkeypatch.setattr(interleave, feature, lambda: False)
    assert len(marks(lowered(CASES[name][0]))) == 2
    assert not marks(lowered(FLAT))


@pytest.mark.skipif(not has_avx512(), reason="vectors are not masked")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["flat", "pair", "apart", "sum", "rows", "sum in rows"])
def test_nothing_of_a_cut_loop_is_left_for_single_elements(name: str, dtype: str) -> None:
    """All that is loaded and stored in a loop over elements is vectors, and those that are masked are stored once; but
    for sums of what is there, of which there is one loop over elements."""
    whole = str(optimize([lowered(CASES[name][0], dtype=dtype)]))
    size, kind = 64 // np.dtype(dtype).itemsize, "float" if dtype == "float32" else "double"
    vector = re.compile(rf"<({size}|{VECTORS * size}) x {kind}>")
    loops = [part for part in re.split(r"^\S+:.*$", whole, flags=re.MULTILINE) if "!llvm.loop" in part]
    assert sum(vector.search(loop) is not None for loop in loops) == 2
    assert len(loops) == 2 if name != "sum in rows" else len(loops) > 2
    stores = len(re.findall(r"call void @llvm\.masked\.store", whole))
    assert stores == (0 if "sum" in name else 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elements_do_not_depend_on_how_many_there_are(dtype: str) -> None:
    x = T.vector("x", dtype=dtype)
    y = T.tanh(T.exp(-x * x) + T.log1p(x * x))
    f = graphc.function([x], [y, y + x])
    values = np.random.default_rng(3).normal(size=300).astype(dtype)
    whole = f(values)
    for length in (*range(140), 255, 256, 257):
        for result, all_of_them in zip(f(values[:length]), whole, strict=True):
            np.testing.assert_array_equal(result, all_of_them[:length])
    np.testing.assert_allclose(whole[0], np.tanh(np.exp(-values * values) + np.log1p(values * values)), 1e-5)
