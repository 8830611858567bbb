"""Loops of which several turns are carried out at a time: which they are, and that no element is another for it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.interleave import CHAINS, FEWER
from graphc.codegen.numba_lowering import lower_source
from graphc.codegen.prototype import Prototype
from graphc.codegen.target import has_fma

FLAT = """
    for i in range(n):
        x[i] = exp(x[i]) + 1.0
"""
LONG = "    for i in range(n):\n        v = x[i]\n" + "        v = exp(v) * 0.5 + v\n" * 60 + "        x[i] = v\n"
"""CPython's jump out of so long a loop takes two instructions, and two blocks."""
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
CASES = {
    "flat": (FLAT, [CHAINS]),
    "two": (FLAT + FLAT, [CHAINS, CHAINS]),
    "apart": (APART, [FEWER]),
    "long": (LONG, [CHAINS]),
    "long ones": (LONG + ROWS + APART, [CHAINS, FEWER]),
    "branched": (BRANCHED, []),
    "plain": (PLAIN, []),
    "sum": (SUM, []),
    "carry": (CARRY, []),
    "rows": (ROWS, []),
    "after rows": (ROWS + FLAT + BESIDE_ROWS + FLAT, [CHAINS, CHAINS]),
}
"""The vectors at a time of each marked loop."""


@pytest.mark.skipif(not has_fma(), reason="without fused multiplication and addition nothing is gained")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fast_math", [False, True])
def test_marked_loops(name: str, fast_math: bool) -> None:
    body, expected = CASES[name]
    source = f"def f(x, n):\n{body}\n    return 0\n"
    text = lower_source(source, [Prototype("f", ("float64*", "int64"))], {}, fast_math)
    marked = re.findall(r"br label %\S+, !llvm\.loop !(\d+)", text)
    assert len(marked) == len(set(marked)) == len(expected)
    for number, vectors in zip(marked, expected, strict=True):
        properties = re.search(rf"^!{number} = !{{ !{number}, !(\d+) }}$", text, re.MULTILINE)
        assert properties is not None
        assert f'!{properties[1]} = !{{ !"llvm.loop.interleave.count", i32 {vectors} }}' in text


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
