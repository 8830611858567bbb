"""Ops of the user that numba compiles: values, errors and speed against the same in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.call.callback import source_of
from graphc.errors import GraphTypeError
from graphc.ir.node import Type


@graphc.op("native_longest_run", native=True, infer=lambda x, above: Type("int64", ()))
def longest_run(x: Any, above: Any) -> Any:
    """How many elements in a row are above a number, at most."""
    if above < 0:
        raise ValueError("a negative bound")
    most = run = 0
    for value in x:
        run = run + 1 if value > above else 0
        most = max(most, run)
    return most


@graphc.op("native_square", native=True, vjp=lambda node, cotangent: 2 * node.args[0] * cotangent)
def square(x: Any) -> Any:
    return x * x


@graphc.op("native_text", native=True)
def text(x: Any) -> Any:
    return str(x)


@graphc.op("native_half", native=True, infer=lambda x: Type("int64", x.shape))
def half(x: Any) -> Any:
    return x * 0.5


@pytest.mark.slow
def test_native_ops() -> None:
    x, above = T.dvector("x"), T.dscalar("above")
    outputs = [longest_run(x, above), square(x) + 1, graphc.grad(square(x).sum(), x)]
    f, g, h = (graphc.function([x, above], outputs, mode) for mode in ("compiled", "interpreted", "python"))
    for given in ([1.0, 2.0, -1.0, 3.0], [], [np.nan, np.inf, 1.0]):
        for one, other, third in zip(f(given, 0.5), g(given, 0.5), h(given, 0.5), strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(one, third)
            assert one.dtype == other.dtype
    for call in (f, g, h):
        with pytest.raises(ValueError, match="negative bound"):
            call([1.0], -1.0)
    values = np.ones(100_000)
    assert f(values, 0.5)[0] == 100_000
    for op, message in ((text, "native_text|finds that it makes"), (half, "where int64")):
        with pytest.raises(GraphTypeError, match=message):
            graphc.function([x], op(x))


def test_the_source_takes_numbers_where_there_are_no_axes() -> None:
    source = source_of((("float64", 1), ("int64", 0), ("bool", 2)))
    assert "compute(a0, a1[0])" in source and "def call(p0, p1, p2, n0_0, n2_0, n2_1):" in source
