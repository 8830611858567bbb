"""How source is laid out, and what its blocks are."""

from __future__ import annotations

import ast

import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.frontend.language import bind_source
from graphc.loopir import syntax
from tests.support.loop_text import parse_function


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 1000])
def test_blocks_have_all_elements_once(size: int) -> None:
    function = parse_function("""
def f(lengths: int64*, n: int64):
    for b in range(blocks(n, 256)):
        lengths[b] = block_length(n, b, 256)
""")
    lengths = [0] * 5
    assert bind_source(syntax.emit_function(function))["f"](lengths, size) == 0
    assert sum(lengths) == size and all(length <= 256 for length in lengths)


def test_long_lines_are_broken_within_brackets() -> None:
    params = ", ".join(f"a_long_parameter_{n}: int64" for n in range(12))
    names = ", ".join(f"a_long_parameter_{n}" for n in range(12))
    call = parse_function(f"def f({params}):\n    call other({names}, 1 + 2 * a_long_parameter_3)\n")
    text = syntax.emit_function(call)
    assert max(map(len, text.splitlines())) <= syntax.WIDTH
    assert ast.unparse(ast.parse(text)) == ast.unparse(ast.parse(text.replace("\n            ", " ")))


def test_values_are_called_what_the_program_calls_them() -> None:
    x = T.matrix("x")
    eta = T.exp(x) / 2
    weights = (eta + 1).sum(axis=0)
    call = graphc.function([x], [eta, weights, T.dot(eta, eta.T)], mode="python")
    assert "eta = 0.5 * exp(" in call.source or "eta = exp(" in call.source
    functions = call.source.split("\n\n")
    assert max(each.count("eta = T.exp(x) / 2") for each in functions) == 1, "a function shows a line once"
    assert " eta: float64" in call.explain() and " weights: float64" in call.explain()
