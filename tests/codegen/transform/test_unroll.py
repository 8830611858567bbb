"""Steps over a few elements, written out: which, and that they compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.transform.unroll import unroll_steps
from graphc.ir.node import Node
from graphc.loopir.ir import INDEX, Var
from graphc.loopir.syntax import Names, print_functions
from graphc.options import options
from tests.support.generated import code
from tests.support.loop_text import parse_functions
from tests.support.watched import check_passes, check_text, watch

STEP = Var("step", INDEX)
FEW = """
def kernel(x: float64*, s: float64* temporary, n: int64):
    for i in range(2):
        s[i] = 0.0
    for step in range(n):
        for i in range(2):
            let row = i * 2
            for j in range(2):
                let v = x[row + j] * s[j]
                s[i] = s[i] + v
"""


def unrolled(text: str) -> str:
    (function,) = parse_functions(text)
    body = unroll_steps(function.body, {STEP}, Names({"v", "row"}).fresh)
    return print_functions([type(function)(function.name, function.params, body, function.doc)])


def printed(text: str) -> str:
    return print_functions(parse_functions(text))


def test_steps_over_few_elements_are_written_out() -> None:
    text = unrolled(FEW)
    assert "for i" not in text and "for j" not in text and "row" not in text
    assert [line.split(" = ")[1] for line in text.splitlines() if " = x[" in line] == [
        "x[0] * s[0]",
        "x[1] * s[1]",
        "x[2] * s[0]",
        "x[3] * s[1]",
    ]


@pytest.mark.parametrize(
    "change",
    [
        ("range(2):\n            let row", "range(n):\n            let row"),
        ("for j in range(2)", "for j in range(9)"),
        ("for step", "for other"),
    ],
)
def test_others_are_left_as_they_are(change: tuple[str, str]) -> None:
    text = FEW.replace(*change)
    assert unrolled(text) == printed(text)


def filter_of_three(dtype: str) -> tuple[list[Node], list[Node]]:
    x, w = T.matrix("x", dtype=dtype), T.matrix("w", dtype=dtype, shape=(3, 3))
    v = T.vector("v", dtype=dtype, shape=(3,))

    def step(each: Node, mean: Node, spread: Node) -> list[Any]:
        gain = T.dot(spread, each) / (T.dot(each, T.dot(spread, each)) + 1)
        mean = T.dot(w, mean + gain * (each[0] - T.dot(each, mean)))
        return [mean, T.dot(T.dot(w, spread - T.outer(gain, T.dot(spread, each))), w.T)]

    means, spreads = graphc.scan(step, x, [v, w])[0]
    cost = (means**2).sum() + spreads.sum()
    return [x, w, v], [means, cost, *graphc.grad(cost, [x, w, v])]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_filter_of_three_states(dtype: str) -> None:
    inputs, outputs = filter_of_three(dtype)
    generator = np.random.default_rng(1)
    for steps in (0, 1, 5):
        given = [generator.normal(size=shape).astype(dtype) * 0.5 for shape in ((steps, 3), (3, 3), (3,))]
        want = graphc.function(inputs, outputs, mode="interpreted")(*given)
        for mode in ("python", "compiled"):
            got = graphc.function(inputs, outputs, mode=mode)(*given)
            for one, other in zip(got, want, strict=True):
                np.testing.assert_allclose(one, other, rtol=3e-4 if dtype == "float32" else 1e-12, atol=1e-6)
    source = code(graphc.function(inputs, outputs, mode="python").source)
    steps_ = source.partition("for step2 in")[2].partition("\n    if ")[0]
    assert "carry" in steps_


@pytest.mark.slow
def test_every_pass_keeps_what_few_elements_compute() -> None:
    inputs, outputs = filter_of_three("float64")
    options.verify = True
    found = watch(lambda: graphc.function(inputs, outputs, mode="python"))
    check_text(found)
    generator = np.random.default_rng(2)
    check_passes(found, [generator.normal(size=shape) * 0.5 for shape in ((2, 3), (3, 3), (3,))])
