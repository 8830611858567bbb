"""The smaller and the larger of two floats: signs of zeros, NaN, and the order of operands."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.llvm.extremes import with_short_extremes

NUMBERS = (0.0, -0.0, 1.0, -1.5, 1e-310, -1e-310, float("inf"), float("-inf"), float("nan"), 3.0)
IR = """
  %".3" = call double @llvm.minimum.f64(double %"a", double %".2")
  %c = call float @llvm.maximum.f32(float %a, float %b), !dbg !3
  %7 = tail call double @llvm.minimum.f64(double %5, double %.i.6) #4
  %k = call double @llvm.minimum.f64(double %a, double 0x3ff0000000000000)
  %z = call nsz double @llvm.minimum.f64(double %a, double %b)
  %v = call <4 x double> @llvm.minimum.v4f64(<4 x double> %p, <4 x double> %q)
"""


def test_calls_for_two_floats_alone_are_replaced() -> None:
    made = with_short_extremes(IR)
    assert re.findall(r"(%\S+) = call", made) == ["%k", "%z", "%v"]
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
