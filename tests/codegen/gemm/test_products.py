"""Matrix products as users write them: one call where one is enough, no copies of operands, NumPy's results."""

# ruff: noqa: N803, N806 - matrices have capital letters
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import tensor as T
from graphc.ir.node import Node, variable
from tests.support.bounds import assert_specified, assert_within

SIZES = [(3, 5, 4), (1, 1, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0), (70, 40, 65), (1, 30, 20), (30, 1, 20)]
"""Rows, columns and summed size."""


def calls(f: Any) -> list[str]:
    """The lines of a kernel that call a product."""
    return [line.strip() for line in f.source.splitlines() if line.strip().startswith("gc_")]


def temporaries(f: Any) -> int:
    return int(f.explain().count("temporary "))


A, B, C, D = (T.dmatrix(name) for name in "ABCD")
u, v, c = T.dvector("u"), T.dvector("v"), T.dvector("c")
s = T.dscalar("s")

Build = Callable[..., Any]

ONE_CALL: list[tuple[str, list[Node], Build, Build, Callable[[int, int, int], list[tuple[int, ...]]]]] = [
    ("plain", [A, B], lambda A, B: A @ B, np.matmul, lambda m, n, k: [(m, k), (k, n)]),
    (
        "added",
        [A, B, C],
        lambda A, B, C: A @ B + C,
        lambda A, B, C: A @ B + C,
        lambda m, n, k: [(m, k), (k, n), (m, n)],
    ),
    (
        "scaled",
        [A, B, C, s],
        lambda A, B, C, s: s * C - 0.5 * (A.T @ B),
        lambda A, B, C, s: s * C - 0.5 * (A.T @ B),
        lambda m, n, k: [(k, m), (k, n), (m, n), ()],
    ),
    ("negated", [A, B], lambda A, B: -(A @ B.T), lambda A, B: -(A @ B.T), lambda m, n, k: [(m, k), (n, k)]),
    ("mean", [A, B], lambda A, B: (A @ B) / 7, lambda A, B: (A @ B) / 7, lambda m, n, k: [(m, k), (k, n)]),
    ("transposed", [A, B], lambda A, B: (A @ B).T, lambda A, B: (A @ B).T, lambda m, n, k: [(m, k), (k, n)]),
    (
        "slices",
        [A, B],
        lambda A, B: A[:, 1:] @ B[::-1, ::2],
        lambda A, B: A[:, 1:] @ B[::-1, ::2],
        lambda m, n, k: [(m, k + 1), (k, n)],
    ),
    ("with itself", [A], lambda A: A.T @ A, lambda A: A.T @ A, lambda m, n, k: [(m, k)]),
    ("a vector", [A, v], lambda A, v: A @ v, np.matmul, lambda m, n, k: [(m, k), (k,)]),
    ("from the left", [v, A], lambda v, A: v @ A, np.matmul, lambda m, n, k: [(k,), (k, n)]),
    (
        "a vector added",
        [A, v, c],
        lambda A, v, c: c - 2 * (A.T @ v),
        lambda A, v, c: c - 2 * (A.T @ v),
        lambda m, n, k: [(k, m), (k,), (m,)],
    ),
]


def is_near(f: graphc.Function, arrays: Sequence[Any], wanted: Any) -> None:
    """The one result of a function is within the bound of the arithmetic of what NumPy computes."""
    values = dict(zip(f.graph.inputs, arrays, strict=True))
    assert_within([f(*arrays)], f.graph.outputs, values, [wanted])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "build", "numpy", "shapes"), [case[1:] for case in ONE_CALL], ids=[c[0] for c in ONE_CALL]
)
def test_one_call_without_copies(inputs: list[Node], build: Build, numpy: Build, shapes: Any) -> None:
    f = graphc.function(inputs, build(*inputs), mode="compiled")
    assert len(calls(f)) == 1 and not temporaries(f), f.source
    rng = np.random.default_rng(0)
    for m, n, k in SIZES:
        arrays = [np.asarray(rng.normal(size=shape)) for shape in shapes(m, n, k)]
        is_near(f, arrays, numpy(*arrays))


def test_a_sum_of_products_is_made_in_its_result() -> None:
    f = graphc.function([A, B, C, D], A @ B - 2 * (C @ D.T), mode="compiled")
    assert len(calls(f)) == 2 and not temporaries(f)
    rng = np.random.default_rng(1)
    a, b, c_, d = (rng.normal(size=shape) for shape in ((5, 3), (3, 4), (5, 6), (4, 6)))
    is_near(f, [a, b, c_, d], a @ b - 2 * (c_ @ d.T))


UPDATES: list[tuple[str, Build, int]] = [
    ("step", lambda W, a: W - 0.1 * (a.T @ a), 0),
    ("decay", lambda W, a: 0.9 * W - a.T @ a / 3, 0),
    ("two products", lambda W, a: (W - 0.1 * (a.T @ a)) + 0.2 * (a[1:].T @ a[1:]), 0),
    ("its own operand", lambda W, a: W - 0.1 * (W @ W), 1),
    ("its own transpose", lambda W, a: W.T + a.T @ a, 1),
    ("read by another nest", lambda W, a: W + a.T @ (a @ W), 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "update", "copies"), UPDATES, ids=[case[0] for case in UPDATES])
def test_updates_in_place(name: str, update: Build, copies: int) -> None:
    """A variable that is only added to takes the product in its buffer; one that is read as well does not."""
    rng = np.random.default_rng(2)
    start, array = rng.normal(size=(6, 6)), rng.normal(size=(4, 6))
    W = graphc.shared(start.copy(), "W")
    f = graphc.function([A], [], updates={W: update(W, A)}, mode="compiled", on_unused_input="ignore")
    expected = start
    for _ in range(3):
        before = W.get_value()
        f(array)
        assert_specified(f, [W.get_value()], [array], [before])
        expected = update(expected, array)
        assert np.allclose(W.get_value(), expected)  # three steps on
    assert (temporaries(f) > 0) == bool(copies), f.explain()


def test_a_factor_of_zero_keeps_what_is_not_a_number() -> None:
    """BLAS does not look at what it multiplies by 0; the graph says to."""
    f = graphc.function([A, B, C, s], s * C + A @ B, mode="compiled")
    g = graphc.function([A, B, s], s * (A @ B), mode="compiled")
    one, bad = np.ones((2, 2)), np.array([[np.nan, 1.0], [np.inf, 2.0]])
    for size in (2, 70):
        wide, wrong = np.ones((size, size)), np.ones((size, size))
        wrong[:2, :2] = bad
        assert np.isnan(f(wide, wide, wrong, 0.0)).sum() == 2
        assert np.isnan(g(wrong, wide, 0.0)).sum() == 2 * size
    assert np.isnan(f(bad, one, one, 1.0)).any()


@pytest.mark.slow
@pytest.mark.parametrize("order", ["bhtd,bhsd->bhts", "bthd,bshd->bhts", "bhts,bshd->bthd", "bij,bjk->bik"])
def test_batches_are_not_copied(order: str) -> None:
    left, right, _ = order.replace("->", ",").split(",")
    sizes = dict(zip("bhtsdijk", (2, 3, 4, 5, 6, 7, 8, 9), strict=True))
    x, y = variable("float64", (None,) * len(left), "x"), variable("float64", (None,) * len(right), "y")
    f = graphc.function([x, y], T.einsum(order, x, y), mode="compiled")
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=[sizes[k] for k in letters]) for letters in (left, right))
    is_near(f, [a, b], np.einsum(order, a, b))
    assert len(calls(f)) == 1 and temporaries(f) <= (order == "bhts,bshd->bthd")


@pytest.mark.slow
def test_constant_operands_are_sums() -> None:
    gradients = graphc.grad((A @ B).sum(), [A, B])
    f = graphc.function([A, B], gradients, mode="compiled")
    assert not calls(f)
    a, b = np.random.default_rng(4).normal(size=(2, 3, 3))
    assert_within(f(a, b), f.graph.outputs, {A: a, B: b}, (np.ones((3, 3)) @ b.T, a.T @ np.ones((3, 3))))


def test_chains_multiply_the_fewest_numbers() -> None:
    shapes = [(10, 100), (100, 5), (5, 50), (50, 2)]
    factors = [variable("float64", shape, f"m{n}") for n, shape in enumerate(shapes)]
    with graphc.options.change(fast_math=True):
        f = graphc.function(factors, factors[0] @ factors[1] @ factors[2] @ factors[3], mode="compiled")
        g = graphc.function([A, B, v, u], u @ ((A @ B) @ v), mode="compiled")
    sizes = [tuple(map(int, call.split("(")[1].split(",")[:3])) for call in calls(f)]
    assert sizes == [(5, 2, 50), (100, 2, 5), (10, 2, 100)]  # 500 + 1000 + 2000, the least of the five orders
    arrays = [np.random.default_rng(n).normal(size=shape) for n, shape in enumerate(shapes)]
    is_near(f, arrays, np.linalg.multi_dot(arrays))
    assert all("gemv" in call for call in calls(g))
    # a vector between matrices belongs to neither chain
    h = graphc.function([A, v, B], (A @ v) @ B, mode="compiled")
    a, x, b = np.ones((3, 4)), np.arange(4.0), np.ones((3, 2))
    np.testing.assert_allclose(h(a, x, b), (a @ x) @ b)


@pytest.mark.slow
def test_one_pass_where_a_matrix_is_read_twice() -> None:
    """A linear model and its gradient are one loop over the rows, not two calls that read the matrix twice."""
    w = graphc.shared(np.linspace(-1, 1, 4), "w")
    residual = A @ w - c
    f = graphc.function([A, c], residual @ A, mode="compiled")
    assert not calls(f)
    a, y = np.random.default_rng(5).normal(size=(6, 4)), np.arange(6.0)
    assert_specified(f, [f(a, y)], [a, y], [w.get_value()])


@pytest.mark.slow
def test_integer_products() -> None:
    for dtype in ("int64", "int32", "uint8", "uint64"):
        x, y = T.matrix("x", dtype=dtype), T.matrix("y", dtype=dtype)
        f = graphc.function([x, y], x @ y.T, mode="compiled")
        a, b = np.random.default_rng(6).integers(0, 100, (2, 33, 20)).astype(dtype)
        np.testing.assert_array_equal(f(a, b), a @ b.T, strict=True)


@pytest.mark.slow
def test_second_order_through_calls() -> None:
    """The compiled gradient of a gradient norm, through sums of products and a vector, against the interpreter's."""
    cost = T.tanh(A @ B - 0.5 * (C @ B) + 2).sum() + T.sqr(c - 3 * (A @ v)).sum()
    slopes = graphc.grad(cost, [A, B, v])
    curved = graphc.grad(sum((T.sqr(slope).sum() for slope in slopes), T.sqr(s)), [A, B, C, v])
    inputs = [A, B, C, v, c, s]
    rng = np.random.default_rng(7)
    arrays = [rng.normal(size=shape) / 3 for shape in ((3, 4), (4, 2), (3, 4), (4,), (3,))] + [np.float64(1.0)]
    compiled = graphc.function(inputs, curved, mode="compiled", on_unused_input="ignore")
    assert_specified(compiled, compiled(*arrays), arrays)
