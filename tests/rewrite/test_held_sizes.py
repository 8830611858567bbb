"""What a graph asks of sizes is all that it asks once it has been rewritten: products and their derivatives, over
matrices that are numbers and vectors repeated, for sizes that fit and sizes that do not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import ShapeError
from graphc.ir.interpret import interpret
from graphc.ir.node import Node
from graphc.ir.walk import Graph
from graphc.rewrite import rewrite

N, M, V, U, W = T.lscalar("n"), T.lscalar("m"), T.dvector("v"), T.dvector("u"), T.dmatrix("w")
LEAVES = (N, M, V, U, W)

LEFT: dict[str, Callable[[], Node]] = {
    "rows": lambda: T.ones((N, 4)) * V,
    "rows of a number": lambda: T.alloc(2.0, N, M) * V,
    "added": lambda: T.ones((N, 4)) + V,
    "an outer product": lambda: T.ones((N, 1)) * V,
    "columns": lambda: V[:, None] * T.ones((1, M)),
    "transposed": lambda: (T.ones((M, N)) * V).T,
}
RIGHT: dict[str, Callable[[], Node]] = {
    "a matrix": lambda: W,
    "a vector": lambda: U,
    "ones": lambda: T.ones((4, M)),
    "columns": lambda: T.ones((4, M)) * W,
    "transposed": lambda: W.T,
}
SIZES = [(3, 4, 4, 4, (4, 2)), (1, 4, 4, 4, (4, 4)), (4, 3, 4, 3, (3, 4)), (3, 4, 4, 2, (2, 4)), (0, 4, 4, 4, (4, 0))]


def outcome(graph: Graph, values: dict[Node, Any]) -> Any:
    try:
        return interpret(graph, values)
    except ShapeError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right"), list(product(LEFT, RIGHT)))
def test_products(left: str, right: str) -> None:
    result = T.dot(LEFT[left](), RIGHT[right]())
    costs = [result.sum(), T.sqr(result).sum()]
    slopes = [each for cost in costs for each in graphc.grad(cost, [V, U, W], disconnected_inputs="ignore")]
    before = Graph(LEAVES, (*costs, *slopes))
    after, _ = rewrite(before)
    for n, m, v, u, w in SIZES:
        arrays = (
            np.int64(n),
            np.int64(m),
            np.arange(1.0, v + 1),
            np.arange(2.0, u + 2),
            np.arange(np.prod(w)).reshape(w),
        )
        values = {leaf: np.asarray(array, leaf.dtype) for leaf, array in zip(LEAVES, arrays, strict=True)}
        wanted = outcome(before, values)
        if wanted is None:
            continue
        for got, value in zip(outcome(after, values), wanted, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_a_product_of_equal_rows(mode: str) -> None:
    """A check that a derivative makes for a product is no check of what stands in its place."""
    call = graphc.function([N, V, W], graphc.grad(T.dot(T.ones((N, 4)) * V, W).sum(), V), mode=mode)
    np.testing.assert_array_equal(call(3, np.ones(4), np.ones((4, 2))), np.full(4, 6.0))
    with pytest.raises(ShapeError, match="sizes 4 and 3"):
        call(3, np.ones(4), np.ones((3, 2)))


@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_one_row_that_is_held_to_a_number_of_steps(mode: str) -> None:
    x = T.TensorType("float64", shape=(1,))("x")
    call = graphc.function([x, N], graphc.lax.scan(lambda c, e: (c + e, e), 0.0, x, length=N)[0], mode=mode)
    assert float(call(np.ones(1), 1)) == 1.0
    for steps in (0, 3):
        with pytest.raises(ShapeError, match="x .*1 elements"):
            call(np.ones(1), steps)
