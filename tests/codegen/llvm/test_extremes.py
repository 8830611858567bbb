"""The smaller and the larger of two floats: signs of zeros, NaN, and the order of operands."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.llvm.target import with_short_extremes

NUMBERS = (0.0, -0.0, 1.0, -1.5, 1e-310, -1e-310, float("inf"), float("-inf"), float("nan"), 3.0)
IR = """
  %".3" = call double @llvm.minimum.f64(double %"a", double %".2")
  %c = call float @llvm.maximum.f32(float %a, float %b), !dbg !3
  %7 = tail call double @llvm.minimum.f64(double %5, double %.i.6) #4
  %k = call double @llvm.minimum.f64(double %a, double 0x3ff0000000000000)
  %z = call nsz double @llvm.minimum.f64(double %a, double %b)
  %v = call <4 x double> @llvm.minimum.v4f64(<4 x double> %p, <4 x double> %q)
  %w = tail call <8 x float> @llvm.maximum.v8f32(<8 x float> %p, <8 x float> %".q")
  %u = call <4 x double> @llvm.maximum.v4f64(<4 x double> %p, <4 x double> zeroinitializer)
"""


def test_calls_without_constants_are_replaced() -> None:
    made = with_short_extremes(IR)
    assert re.findall(r"(%\S+) = (?:tail )?call", made) == ["%k", "%z", "%u"]
    assert "%w.m = select <8 x i1> %w.l, <8 x float> %w.x, <8 x float> %w.y" in made
    assert "%v.p = bitcast <4 x double> %v.m to <4 x i64>" in made
    assert '  %7 = bitcast i64 %"7.o" to double\n' in made
    assert '  %".3" = bitcast i64 %".3.o" to double' in made and "%c = fneg float %c.s, !dbg !3" in made


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_zeros_have_signs_and_nan_wins(dtype: str) -> None:
    x, y = T.scalar("x", dtype), T.scalar("y", dtype)
    f = graphc.function([x, y], [T.minimum(x, y), T.maximum(x, y), T.minimum(T.maximum(x, y) + 1, y)])
    for a, b in product(np.array(NUMBERS, dtype), repeat=2):
        least, most, both = f(a, b)
        if np.isnan(a) or np.isnan(b):
            assert np.isnan([least, most, both]).all()
            continue
        low, high = sorted((a, b), key=lambda v: (v, not np.signbit(v)))
        assert (least, np.signbit(least)) == (low, np.signbit(low))
        assert (most, np.signbit(most)) == (high, np.signbit(high))
        assert both == min(most + 1, b)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_vectors_have_the_extremes_of_their_numbers(dtype: str) -> None:
    """Element by element, down columns and along rows: each pair of numbers stands in the places of all lanes."""
    x, y, rows = T.vector("x", dtype), T.vector("y", dtype), T.matrix("rows", dtype)
    f = graphc.function([x, y, rows], [T.minimum(x, y), T.maximum(x, y), rows.min(axis=1), (-rows).T.max(axis=0)])
    a, b = np.array([*product(NUMBERS, repeat=2)], dtype).T
    for count in (2, 5, 20, 37):
        table = np.full((len(a), count), np.inf, dtype)
        table[:, 0], table[:, -1] = a, b
        for p, q in ((a, b), (b, a)):
            least, most, least_of_row, most_of_row = f(p, q, table)
            np.testing.assert_array_equal([least, least_of_row, -most_of_row], [np.minimum(a, b)] * 3)
            np.testing.assert_array_equal(most, np.maximum(a, b))
            zeros = (a == 0) & (b == 0)
            either, both = np.signbit(a) | np.signbit(b), np.signbit(a) & np.signbit(b)
            for found, expected in ((least, either), (least_of_row, either), (most, both)):
                np.testing.assert_array_equal(np.signbit(found[zeros]), expected[zeros])
