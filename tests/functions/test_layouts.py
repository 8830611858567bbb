"""Arguments that are not contiguous: found in their bases, read where they stand, and equal to copies of them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.call.signature import MOST_COPIED
from graphc.errors import IndexOutOfBounds, ShapeError
from graphc.functions import variants
from graphc.functions.variants import find_base
from graphc.ir.node import Node
from graphc.startup.process import PROCESS
from tests.support.bounds import assert_specified, assert_within

Array = NDArray[Any]

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": lambda a: a,
    "Fortran": np.asfortranarray,
    "reversed rows": lambda a: a[::-1].copy()[::-1],
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "every other row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every other column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "part": lambda a: np.pad(a, 3)[3:-3, 3:-3],
    "part of a transpose": lambda a: np.pad(a.T, 2)[2:-2, 2:-2].T,
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
}


ROWS, COLUMNS = 90, 100
"""Of arrays that are too large to be copied on the spot."""
assert 8 * ROWS * COLUMNS > MOST_COPIED


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variants are compiled at the first call."""
    monkeypatch.setattr(variants, "COPIED_FIRST", 0)
    monkeypatch.setattr(variants.background(), "build_in_background", lambda kernel: None)


SLICES = st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from([1, 1, 2, 3, -1, -2]))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    cuts=st.lists(SLICES, min_size=4, max_size=4),
    order=st.integers(0, 23),
)
def test_an_array_is_a_region_of_its_base(shape: list[int], cuts: list[tuple[int, int, int]], order: int) -> None:
    whole = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    array: Array = whole
    for axis, (first, last, step) in enumerate(cuts[: whole.ndim]):
        array = np.moveaxis(array, axis, 0)[::step]
        array = np.moveaxis(array[first : max(first + 1, len(array) - last)], 0, axis)
    orders = list(permutations(range(array.ndim)))
    array = array.transpose(orders[order % len(orders)])
    if not array.size:
        return
    found = find_base(array)
    assert found is not None  # slices with steps of a contiguous array are such regions
    layout, base, sizes = found.layout, found.base, iter(found.sizes)
    assert base.flags.c_contiguous and base.ndim == array.ndim
    assert base.ctypes.data >= whole.ctypes.data
    counts = [base.shape[axis] if whole_ else next(sizes) for axis, whole_ in enumerate(layout.whole)]
    spots = [
        (np.arange(count) if step > 0 else np.arange(count)[::-1]) * abs(step)
        for count, step in zip(counts, layout.steps, strict=True)
    ]
    region = base[np.ix_(*spots)].transpose([layout.order.index(axis) for axis in range(array.ndim)])
    np.testing.assert_array_equal(region, array)


def test_what_has_no_base() -> None:
    a = np.arange(12.0).reshape(3, 4)
    assert find_base(np.broadcast_to(a[:1], (3, 4))) is None
    assert find_base(np.lib.stride_tricks.sliding_window_view(np.arange(9.0), 3)) is None
    unaligned = np.zeros(9 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(3, 3)[:, :2]
    assert unaligned.flags.aligned or find_base(unaligned) is None
    assert find_base(np.zeros(3, [("a", "i4"), ("b", "f8")])["b"]) is None


GRAPHS: dict[str, Callable[[Node, Node], list[Node]]] = {
    "elementwise": lambda x, y: [T.exp(x) * y, x + 1.0],
    "reductions": lambda x, y: [x.sum(axis=1), (x * y).sum(axis=0), (x - y).max()],
    "products": lambda x, y: [T.dot(x.T, y), T.dot(x, y.T), T.dot(x, y[0])],
    "softmax": lambda x, y: [T.nnet.softmax(x) * y],
    "sizes": lambda x, y: [T.zeros_like(x) + x.shape[1], y[::-1][:-1]],
    "gradient": lambda x, y: graphc.grad(T.sqr(T.tanh(x @ y.T)).sum(), [x, y]),
}


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.usefixtures("at_once")
def test_every_layout_gives_what_a_copy_gives(graph: str) -> None:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    outputs = GRAPHS[graph](x, y)
    f = graphc.function([x, y], outputs)
    rng = np.random.default_rng(0)
    for shape in ((ROWS, COLUMNS), (150, 70), *([(1, 9000)] if graph != "products" else [])):
        values = rng.normal(size=shape), rng.normal(size=shape)
        for a, b in zip(LAYOUTS, [*list(LAYOUTS)[1:], "Fortran"], strict=True):
            arrays = LAYOUTS[a](values[0]), LAYOUTS[b](values[1])
            before = [array.tobytes() for array in arrays]
            assert_within(f(*arrays), f.graph.outputs, {x: arrays[0], y: arrays[1]}, message=f"{a}, {b}", least=0.0)
            assert [array.tobytes() for array in arrays] == before
    compiled = PROCESS.compilations
    f(LAYOUTS["Fortran"](np.ones((99, 98))), LAYOUTS["reversed rows"](np.ones((99, 98))))  # as in the loop above
    assert PROCESS.compilations == compiled  # a new size is no new variant


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_orders_of_axes_in_three_dimensions() -> None:
    x = T.dtensor3("x")
    f = graphc.function([x], [x.sum(axis=(0, 2)), T.cumsum(x, axis=1), x * 2])
    value = np.random.default_rng(1).normal(size=(20, 30, 40))
    for order in permutations(range(3)):
        array = np.ascontiguousarray(value.transpose(order)).transpose(np.argsort(order))
        total, running, twice = f(array)
        assert_specified(f, [total, running, twice], [value])


@pytest.mark.usefixtures("at_once")
def test_one_order_throughout_needs_no_other_kernel() -> None:
    x, y, s = T.dmatrix("x"), T.dmatrix("y"), T.dscalar("s")
    f = graphc.function([x, y, s], T.exp(x) * s + y)
    a, b = (np.asfortranarray(np.random.default_rng(n).normal(size=(ROWS, COLUMNS))) for n in (0, 1))
    compiled = PROCESS.compilations
    result = f(a, b, 2)
    np.testing.assert_allclose(result, np.exp(a) * 2 + b)
    assert result.flags.f_contiguous and PROCESS.compilations == compiled
    with pytest.raises(ShapeError, match="y"):
        f(a, np.asfortranarray(b[:2]), 2)
    with pytest.raises(graphc.GraphcError, match="s"):
        f(a, b, "two")


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_failures_are_told_of_the_arguments_that_were_given() -> None:
    x, y = T.dmatrix("x"), T.dvector("y")
    f = graphc.function([x, y], T.dot(x, y))
    with pytest.raises(ShapeError, match="x"):
        f(np.asfortranarray(np.ones((COLUMNS, ROWS))), np.ones(COLUMNS))
    i = T.lvector("i")
    g = graphc.function([x, i], x[i].sum())
    with pytest.raises(IndexOutOfBounds):
        g(np.asfortranarray(np.ones((ROWS, COLUMNS))), np.array([ROWS]))


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_updates_results_given_and_mutable_inputs() -> None:
    x = T.dmatrix("x")
    memory = np.zeros((ROWS, COLUMNS))
    w = graphc.shared(memory, "w", borrow=True)
    f = graphc.function([x], [x.sum(axis=0), T.dot(x.T, w)], updates=[(w, w + x)])
    value = np.arange(float(ROWS * COLUMNS)).reshape(ROWS, COLUMNS)
    out = np.empty(COLUMNS)
    for iteration in range(3):
        total, product = f(np.asfortranarray(value), out=(out, None))
        assert total is out
        np.testing.assert_array_equal(out, value.sum(axis=0))
        np.testing.assert_allclose(product, value.T @ (iteration * value))
        np.testing.assert_array_equal(w.get_value(), (iteration + 1) * value)
    w.set_value(memory, borrow=True)
    memory[:] = value
    f(memory[::-1])  # an argument in the memory of what is updated
    np.testing.assert_array_equal(w.get_value(), value + value[::-1])
    g = graphc.function([graphc.In(x, mutable=True)], T.sqr(x).sum(axis=0) + x)
    given = np.asfortranarray(value)
    np.testing.assert_allclose(g(given), (value**2).sum(axis=0) + value)
    np.testing.assert_array_equal(given, value)


def test_variants_are_made_when_copies_have_cost_as_much() -> None:
    x = T.dmatrix("x")
    f = graphc.function([x], x.sum(axis=1) + 0.125)
    value = np.asfortranarray(np.ones((200, 100)))
    compiled = PROCESS.compilations
    for _ in range(3):
        np.testing.assert_array_equal(f(value), np.full(200, 100.125))
    assert PROCESS.compilations == compiled and "not copied" not in f.explain()


@pytest.mark.slow
def test_variants_are_built_beside_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "COPIED_FIRST", 0)
    x, w = T.dmatrix("x"), graphc.shared(np.zeros(()), name="w")
    f: Any = graphc.function([x], [x.sum(axis=1) + w, T.exp(x[0])], updates=[(w, w + 1)])
    value = np.asfortranarray(np.random.default_rng(0).normal(size=(ROWS, COLUMNS)))
    compiled, calls = PROCESS.compilations, 0
    while "not copied" not in f.explain():
        sums, _ = f(value)
        np.testing.assert_allclose(sums, value.sum(axis=1) + calls, rtol=0, atol=1e-12)
        calls += 1
        if calls == 3:  # the first ones found it under way
            assert "not copied" not in f.explain()
            f.variants.wait()
    assert calls <= 4 and PROCESS.compilations == compiled


@pytest.mark.slow
@pytest.mark.usefixtures("at_once")
def test_variants_leak_nothing() -> None:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    f = graphc.function([x, y], [x.sum(axis=1), T.dot(x, y.T)])
    a, b = np.asfortranarray(np.ones((ROWS, COLUMNS))), np.ones((ROWS, 200))[:, 10 : COLUMNS + 10]
    f(a, b)
    assert "not copied: x with its axes in memory as (1, 0); y part of a larger array" in f.explain()
    gc.collect()
    before = sys.getrefcount(a), sys.getrefcount(b)
    for _ in range(500):
        f(a, b)
    gc.collect()
    assert (sys.getrefcount(a), sys.getrefcount(b)) == before
    f.free()
    np.testing.assert_array_equal(f(a, b)[0], np.full(ROWS, float(COLUMNS)))
