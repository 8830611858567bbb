"""What fast math may change, and what not: compiled functions beside mpmath, the flags in the IR, the cache's key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.frontend.lowering import lower_source
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.llvm.target import optimize
from graphc.startup.process import PROCESS

Array = NDArray[Any]

SOFTMAX_ROW = """
def kernel(x, out, n):
    shift = -inf
    for i in independent(n):
        shift = accumulate_maximum(shift, x[i])
    total = 0.0
    for i in independent(n):
        total = accumulate(total, exp(x[i] - shift))
    for i in independent(n):
        out[i] = exp(x[i] - shift) / total
    out[n] = shift + log(total)
    return 0
"""
PROTOTYPE = Prototype("kernel", ("float64*", "float64*", "int64"))


def _functions(text: str) -> dict[str, str]:
    """The bodies of the functions of a module by name."""
    return {match[1]: match[2] for match in re.finditer(r'define [^@]*@"?([\w.]+)"?\([^{]*\{(.*?)\n\}', text, re.S)}


@pytest.mark.parametrize("fast_math", [False, True])
def test_no_flag_reaches_the_elementary_functions(fast_math: bool) -> None:
    bodies = _functions(lower_source(SOFTMAX_ROW, [PROTOTYPE], {}, fast_math).ir)
    elementary = {name: body for name, body in bodies.items() if name.startswith("gc_")}
    assert {name.split("_")[1] for name in elementary} == {"exp", "log"}
    for body in elementary.values():
        assert "fadd" in body or "fma" in body
        assert not re.search(r"\b(fast|reassoc|nnan|ninf|nsz|arcp|contract|afn)\b", body)


def test_only_the_accumulating_add_is_reassociated() -> None:
    optimized = str(optimize([lower_source(SOFTMAX_ROW, [PROTOTYPE], {}, False).ir]))
    flagged = [line for line in optimized.splitlines() if re.search(r"\b(reassoc|fast|contract)\b", line)]
    assert flagged
    # The add itself, once for each vector accumulator and the rest, whose last vector is masked, the sum of the
    # accumulators, and no product.
    adds = r"fadd reassoc|select reassoc <\d+ x i1>|@llvm\.vector\.reduce\.fadd"
    assert all(re.search(adds, line) for line in flagged)
    # What it adds has been through the last step of exp, which adds 1.0 to a polynomial; that add carries no flag.
    assert re.search(r"fadd (<\d+ x )?double", optimized)


@pytest.mark.slow
@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_and_logsumexp_are_accurate(dtype: str, scale: float, fast_math: bool) -> None:
    values = (np.random.default_rng(5).normal(size=(3, 203)) * scale).astype(dtype)
    x = T.tensor(dtype, (None, None), "x")
    with graphc.options.change(fast_math=fast_math):
        probabilities, logarithm = graphc.function([x], [T.softmax(x), T.logsumexp(x, axis=1)])(values)
    eps = float(np.finfo(dtype).eps)
    with mpmath.workprec(120):
        for row, got, sum_got in zip(values.tolist(), probabilities.tolist(), logarithm.tolist(), strict=True):
            exact = [mpmath.exp(mpmath.mpf(v) - max(row)) for v in row]
            total = mpmath.fsum(exact)
            # x - max(x) is rounded, and so is what it is a power of: half an ulp of the difference, which is absolute.
            for value, e, result in zip(row, exact, got, strict=True):
                if e / total > np.finfo(dtype).smallest_normal:
                    assert abs(result * total / e - 1) <= (10 + (max(row) - value) / 2) * eps
            assert abs(sum_got - (max(row) + mpmath.log(total))) <= 8 * eps * max(1, abs(sum_got))


def test_fast_math_keeps_nan_and_infinity() -> None:
    x = T.dvector("x")
    values = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0])
    with graphc.options.change(fast_math=True):
        exponential, logarithm, logistic = graphc.function([x], [T.exp(x), T.log(x), T.sigmoid(x)])(values)
    np.testing.assert_array_equal(np.isnan(exponential), [True, False, False, False, False])
    np.testing.assert_array_equal(exponential[1:4], [np.inf, 0.0, 1.0])
    np.testing.assert_array_equal(logarithm[:4], [np.nan, np.inf, np.nan, -np.inf])
    np.testing.assert_array_equal(logistic[:4], [np.nan, 1.0, 0.0, 0.5])


def test_fast_math_has_entries_of_its_own_in_the_cache(tmp_path: Path) -> None:
    x = T.dvector("x")
    angle = np.array([2.0**40])
    with graphc.options.change(cache_dir=tmp_path):
        exact = graphc.function([x], T.sin(x))
        before = PROCESS.compilations
        with graphc.options.change(fast_math=True):
            relaxed = graphc.function([x], T.sin(x))
            assert np.isnan(relaxed(angle)).all()
        assert PROCESS.compilations == before + 1
        np.testing.assert_allclose(exact(angle), np.sin(angle), rtol=1e-15)
        graphc.function([x], T.sin(x))
        with graphc.options.change(fast_math=True):
            graphc.function([x], T.sin(x))
        assert PROCESS.compilations == before + 1


@pytest.mark.slow
def test_one_function_may_be_fast() -> None:
    x = T.dvector("x")

    def values(process: bool, fast: bool | None) -> Array:
        with graphc.options.change(fast_math=process):
            f = graphc.function([x], T.sin(x), fast_math=fast)
        result: Array = f(np.array([2.0**40]))
        return result

    chosen = ((False, None), (False, True), (True, None), (True, False))
    assert [bool(np.isnan(values(*pair)[0])) for pair in chosen] == [False, True, True, False]
    with pytest.raises(graphc.errors.GraphValueError, match="fast_math='no'"):
        graphc.function([x], x, fast_math="no")  # type: ignore[arg-type]
