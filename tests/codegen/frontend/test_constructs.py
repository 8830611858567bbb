"""Constructs of generated source: what they expand to, what they compute, how source is laid out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.frontend import emit
from graphc.codegen.frontend.constructs import DEFINITIONS, DEFINITIONS_BEGIN, TEXTS, TREES, expand, needed_by
from graphc.codegen.frontend.language import PRELUDE, bind_source
from graphc.codegen.pipeline import program
from graphc.ir.node import Node
from graphc.loopir.ir import BLOCK, Function
from tests.support.loop_text import parse_function


class Renamed(ast.NodeTransformer):
    """The names of a function by the order in which they appear; a loop's variable is new in every loop."""

    def __init__(self, kept: set[str]) -> None:
        self.kept = kept
        self.names: dict[str, str] = {}
        self.count = 0

    def new(self, name: str) -> str:
        self.count += 1
        self.names[name] = f"v{self.count}"
        return self.names[name]

    def visit_For(self, node: ast.For) -> ast.For:
        assert isinstance(node.target, ast.Name)
        bounds = self.visit(node.iter)
        target = ast.Name(self.new(node.target.id))
        return ast.copy_location(ast.For(target, bounds, [self.visit(stmt) for stmt in node.body], []), node)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.kept:
            return node
        return ast.Name(self.names.get(node.id) or self.new(node.id), node.ctx)

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        """Sums of indices from left to right."""
        return ast.Subscript(self.visit(node.value), reduce(plus, terms(self.visit(node.slice))), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self.new(node.arg))


def terms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*terms(node.left), *terms(node.right)]
    return [node]


def plus(left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, ast.Add(), right)


def normal(source: str) -> list[str]:
    """The functions of a source without constructs, but for what their locals are called."""
    tree = expand(ast.parse(source))
    kept = {*PRELUDE, "range", *(each.name for each in tree.body if isinstance(each, ast.FunctionDef))}
    return [ast.unparse(Renamed(kept).visit(each)) for each in tree.body]


def graphs() -> Iterator[tuple[str, Callable[[Node, Node], Sequence[Node]]]]:
    def gradient(x: Node, w: Node) -> list[Node]:
        cost = T.log(1 + T.exp(T.dot(x, w))).mean() + 0.01 * T.sqr(w).sum()
        return [cost, *graphc.grad(cost, [x, w])]

    def moments(x: Node, w: Node) -> list[Node]:
        centred = x - x.mean(axis=0)
        return [centred / x.std(axis=0), x.var(axis=1), x.argmax(axis=1), (x * w).sum()]

    def softmax(x: Node, w: Node) -> list[Node]:
        y = T.softmax(x, axis=1)
        return [y, graphc.grad((y * w).sum(), x), y.max(axis=0)]

    yield from (("gradient", gradient), ("moments", moments), ("softmax", softmax))


GRAPHS = dict(graphs())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_printed_expands_to_the_statements(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Function] = []

    def keep(functions: Sequence[Function]) -> str:
        written.extend(functions)
        return emit.emit_source(functions)

    monkeypatch.setattr(program, "emit_source", keep)
    x, w = T.matrix("x", dtype=dtype), T.vector("w", dtype=dtype)
    source = graphc.function([x, w], GRAPHS[name](x, w), mode="python").source
    plain = "\n".join(emit.emit_function(function, constructs=False) for function in written)
    assert DEFINITIONS_BEGIN in source
    assert normal(source) == normal(plain)


def test_definitions_are_of_the_language() -> None:
    text = "".join(TEXTS.values())
    assert text.strip() == DEFINITIONS.strip()
    assert all(each in PRELUDE or each in TREES or each == "range" for each in called(text) - {"term"})
    assert f"minimum({BLOCK}, " in TEXTS["sum_blocks"] and f"minimum({BLOCK}, " in TEXTS["sum_blocks_float32"]


def called(text: str) -> set[str]:
    calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return {function.id for function in calls if isinstance(function, ast.Name)}


def test_definitions_come_with_those_that_they_need() -> None:
    assert called(needed_by("sum, lost = parallel_sum(f, n, 4, parts)")) >= {"sum_parts", "blocks", "chunk"}
    assert needed_by("def my_add(a): return a") == ""


def test_a_sum_by_blocks_is_right_in_both_meanings() -> None:
    source = """
def total(x, n, out):
    def term(r):
        twice = 2.0 * x[r]
        return twice * x[r]
    sum, lost = sum_blocks(0, blocks(n, 256), n, term)
    out[0] = compensated(sum, lost)
"""
    source += needed_by(source)
    x = np.random.default_rng(1).normal(size=1000)
    plain = ast.unparse(expand(ast.parse(source)))
    for text in (source, plain):
        out = np.empty(1)
        bind_source(text)["total"](x, 1000, out)
        exact = float(sum(2 * np.longdouble(each) ** 2 for each in x))
        assert abs(out[0] - exact) <= 300 * np.finfo(float).eps * exact
    assert "sum_blocks" not in plain


@pytest.mark.parametrize("values", ["a, b", "1, a", "b, 1", "a + 1, a + b", "a + b, b + 1"])
def test_values_are_assigned_when_no_other_needs_the_old(values: str) -> None:
    source = f"def f(a, b):\n    a, b = {values}\n    return a + 10 * b\n"
    plain = ast.unparse(expand(ast.parse(source)))
    assert ", b = " in source and ", b = " not in plain
    results = []
    for text in (source, plain):
        scope: dict[str, Callable[[int, int], int]] = {}
        exec(text, scope)
        results.append(scope["f"](3, 4))
    assert results[0] == results[1]


def test_a_swap_is_refused() -> None:
    with pytest.raises(AssertionError, match="each needs"):
        expand(ast.parse("def f(a, b):\n    a, b = b, a\n"))


def test_long_lines_are_broken_within_brackets() -> None:
    params = ", ".join(f"a_long_parameter_{n}: int64" for n in range(12))
    names = ", ".join(f"a_long_parameter_{n}" for n in range(12))
    call = parse_function(f"def f({params}):\n    call other({names}, 1 + 2 * a_long_parameter_3)\n")
    text = emit.emit_function(call)
    assert max(map(len, text.splitlines())) <= emit.WIDTH
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
