"""Passes over loops: what they make, and that it computes what the graph as written does, derivatives included."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import graphc.tensor as T
from graphc.autodiff import grad
from graphc.errors import GraphcError
from graphc.ir.interpret import interpret
from graphc.ir.node import Array, Node
from graphc.ir.verify import verify
from graphc.ir.walk import Graph, nodes_of
from graphc.ops.scan import Loop, loop_of
from graphc.rewrite import PIPELINE, rewrite
from graphc.rewrite.loops import LOOPS

CLOSE = ("batch_products", "sum_of_products", "recurrence")
"""The passes that take sums in another order."""
RULES_OFF = [step.name for step in PIPELINE]


def only(*names: str) -> list[str]:
    """What to exclude for these passes alone."""
    return [*RULES_OFF, *(name for name in LOOPS if name not in names)]


def loops(outputs: Sequence[Node]) -> list[Loop]:
    return [loop_of(node.args, node.attrs) for node in nodes_of(outputs) if node.op.name == "scan"]


def rewritten(inputs: Sequence[Node], outputs: Sequence[Node], excluding: Sequence[str] = ()) -> tuple[Graph, set[str]]:
    graph, fired = rewrite(Graph(tuple(inputs), tuple(outputs)), excluding=excluding)
    verify(graph)
    return graph, {each.rule for each in fired}


def check(inputs: Sequence[Node], outputs: Sequence[Node], values: Sequence[Array]) -> Graph:
    """The rewritten graph, which computes what the one as written does: to the bit by the exact passes alone."""
    graph = Graph(tuple(inputs), tuple(outputs))
    given_ = dict(zip(inputs, values, strict=True))
    try:
        want = interpret(graph, given_)
    except GraphcError:  # guards are those of the graph as it was written
        return rewritten(inputs, outputs)[0]
    exact, _ = rewritten(inputs, outputs, [*RULES_OFF, *CLOSE])
    for got, value in zip(interpret(exact, given_), want, strict=True):
        assert got.dtype == value.dtype
        np.testing.assert_array_equal(got, value)
    for excluding in (RULES_OFF, ()):
        after, _ = rewritten(inputs, outputs, excluding)
        for got, value in zip(interpret(after, given_), want, strict=True):
            assert got.dtype == value.dtype and got.shape == value.shape
            scale = np.max(np.abs(value[np.isfinite(value)]), initial=1.0)
            np.testing.assert_allclose(got, value, rtol=1e-9, atol=1e-9 * scale)
    return after


def with_gradients(outputs: Sequence[Node], wrt: Sequence[Node], twice: bool = True) -> list[Node]:
    """The outputs, the gradients of the sum of their squares, and of the sum of the squares of these."""
    cost = sum((T.sqr(out).sum() for out in outputs if out.dtype == "float64"), T.constant(0.0))
    first = grad(cost, list(wrt), disconnected_inputs="ignore")
    if not twice:
        return [*outputs, *first]
    again = sum((T.sqr(each).sum() for each in first), T.constant(0.0))
    return [*outputs, *first, *grad(again, list(wrt), disconnected_inputs="ignore")]
