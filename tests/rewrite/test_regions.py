"""Arrays one after the other, and the regions they are cut into: what is read of one part is that part, and what is
written to all parts of an array of zeros is stored once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.ir import sizes
from graphc.ir.node import INPUT, Node
from graphc.ir.walk import nodes_of
from graphc.options import options
from tests.support.generated import code

SIZES = ((2, 3, 4), (1, 1, 1), (0, 3, 2), (3, 0, 0), (0, 0, 0))


def outcomes(inputs: list[Node], results: list[Any], values: list[Any]) -> list[list[Any]]:
    modes: tuple[Any, ...] = ("interpreted", "python", "compiled")
    return [[np.asarray(each) for each in graphc.function(inputs, results, mode)(*values)] for mode in modes]


def same_bits(one: Any, other: Any) -> bool:
    return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())


@pytest.mark.slow
def test_parts_of_joined_vectors_are_the_vectors() -> None:
    inputs = [T.dvector(name) for name in "abc"]
    joined = T.concatenate(inputs)
    n, m = inputs[0].shape[0], inputs[1].shape[0]
    results = [joined[:n] * 2, joined[n : n + m] - 1, joined[n + m :], joined[n:][:m], joined[m : n + m].sum()]
    source = code(graphc.function(inputs, results[:4], "python").source)
    assert "concatenate" not in source and "minimum" not in source
    for lengths in SIZES:
        rng = np.random.default_rng(sum(lengths))
        want, *others = outcomes(inputs, results, [rng.normal(size=length) for length in lengths])
        for got in others:
            for one, other in zip(got[:4], want[:4], strict=True):
                assert same_bits(one, other)
            np.testing.assert_allclose(got[4], want[4])


@pytest.mark.slow
def test_gradient_of_joined_parameters_is_cut_without_a_copy() -> None:
    x, y = T.dvector("x"), T.dvector("y")
    theta = T.concatenate([x, y])
    n = x.shape[0]
    cost = T.exp(theta[:n]).sum() + T.sqr(theta[n:]).sum() * theta[:n].sum()
    results = graphc.grad(cost, [x, y])
    source = code(graphc.function([x, y], results, "python").source)
    assert "concatenate" not in source and "inc_subtensor" not in source
    for lengths in ((2, 3), (1, 0), (0, 2)):
        want, *others = outcomes([x, y], results, [np.linspace(0.1, 1.0, length) for length in lengths])
        for got in others:
            for one, other in zip(got, want, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_regions_that_are_all_of_an_array_are_stored_once(dtype: str) -> None:
    pieces = [T.tensor(dtype, shape=(size,), name=f"x{size}") for size in (2, 1, 3)]
    whole = T.zeros((6,), dtype)
    for start, piece in zip((4, 3, 0), pieces, strict=True):
        whole = T.inc_subtensor(whole[start : start + piece.type.shape[0]], piece)
    source = code(graphc.function(pieces, whole, "python").source)
    assert "= 0" not in source and "out[i] = out" not in source
    values = [np.array([-0.0, 1]), np.array([2.0]), np.array([-0.0, 0.0, -3])]
    want, *others = outcomes(pieces, [whole], [value.astype(dtype) for value in values])
    for got in others:
        assert same_bits(got[0], want[0])


@pytest.mark.slow
@pytest.mark.parametrize("starts", [(0, 1), (0, 3), (3, 0), (2, 2)])
def test_regions_that_overlap_or_leave_something_are_added_to_zeros(starts: tuple[int, int]) -> None:
    x, y = (T.tensor("float64", shape=(2,), name=name) for name in "xy")
    whole = T.zeros((5,))
    for start, piece in zip(starts, (x, y), strict=True):
        whole = T.inc_subtensor(whole[start : start + 2], piece)
    want, *others = outcomes([x, y], [whole], [np.array([-0.0, 1.0]), np.array([np.nan, 2.0])])
    for got in others:
        np.testing.assert_array_equal(got[0], want[0])
        assert "concatenate" not in graphc.function([x, y], whole, "python").text


def test_regions_of_matrices_and_what_is_read_back() -> None:
    x = T.tensor("float64", shape=(4, 3), name="x")
    cost = T.exp(x[:, :2]).sum() + (x[:, 2] * x[:, 2]).sum()
    gradient = graphc.grad(cost, x)
    results = [gradient, gradient[:, :2] * 2, gradient[:, 2]]
    assert "= 0.0" not in code(graphc.function([x], gradient, "python").source)
    want, *others = outcomes([x], results, [np.linspace(-1, 1, 12).reshape(4, 3)])
    for got in others:
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


def test_a_step_of_descent_adds_to_the_parameters_in_place() -> None:
    w = graphc.shared(np.arange(5.0), name="w")
    x = T.dscalar("x")
    part = T.sqr(w[:2]).sum() * x + T.exp(w[2:]).sum()
    step = graphc.function([x], [], updates=[(w, w - 0.1 * graphc.grad(part, w))])
    step(0.5)
    first = np.arange(5.0)
    first[:2] -= 0.1 * first[:2]
    first[2:] -= 0.1 * np.exp(np.arange(2.0, 5.0))
    np.testing.assert_allclose(w.get_value(), first, rtol=1e-14)


@pytest.mark.slow
def test_what_is_read_of_the_last_states_is_added_to_one_array_of_zeros() -> None:
    x = T.dmatrix("x")
    rows = graphc.scan(lambda row, state: T.tanh(state + row), sequences=x[1:], outputs_info=x[0])[0]
    results = [graphc.grad(rows[-1, -1] * rows[-1, -2] + rows[-1, 0], x)]
    source = code(graphc.function([x], results, "python").source)
    assert source.count("= 0.0") == 2, source  # of all states; of the row of x that is no step's
    want, *others = outcomes([x], results, [np.linspace(-1, 1, 12).reshape(4, 3)])
    for got in others:
        np.testing.assert_allclose(got[0], want[0], rtol=1e-12)


def test_arithmetic_of_sizes() -> None:
    n, m = (T.dvector(name).type.shape[0] for name in "nm")
    both = sizes.add(n, m)
    assert sizes.subtract(both, n) is m
    assert sizes.subtract(sizes.add(both, 2), sizes.add(m, n)) == 2
    assert sizes.subtract(sizes.add(n, 5), 5) is n
    assert sizes.minimum(n, both) is n and sizes.minimum(sizes.add(both, 1), m) is m
    assert sizes.maximum(both, m) is both and sizes.maximum(n, -1) is n
    low = sizes.minimum(n, m)
    assert isinstance(low, Node) and low.op.name == "minimum"
    start = T.lscalar("k")
    assert isinstance(start, Node)
    high = sizes.maximum(sizes.add(n, start), n)  # of which it is not known that it is positive
    assert isinstance(high, Node) and high.op.name == "maximum"


def slices(x: Any, k: int) -> list[Any]:
    """The named parts of a vector of parameters, all of it."""
    return [x[0:3], x[3:7], x[7:]]


def with_gaps(x: Any, k: int) -> list[Any]:
    return [x[8:9], x[1:3], x[4:6]]


def many_gaps(x: Any, k: int) -> list[Any]:
    return [x[3 * t] for t in range(12)]


def long_chain(x: Any, k: int) -> list[Any]:
    return [x[t] for t in range(70)]


def sized(x: Any, k: int) -> list[Any]:
    """Cut at sizes that only a call tells."""
    a, b = T.dvector("a"), T.dvector("b")
    n, m = a.shape[0], b.shape[0]
    return [x[:n], x[n : n + m], x[n + m :] * (a.sum() + b.sum())]


def columns(x: Any, k: int) -> list[Any]:
    return [x[:, 4:], x[:, 1:2], x[:, 2:4]]


def rows(x: Any, k: int) -> list[Any]:
    return [x[t] for t in range(5)]


STORED: dict[str, tuple[Any, int, tuple[int, ...]]] = {
    # what is taken, of how many axes, and how long an axis may be
    "slices": (slices, 1, (12, 7, 5, 2, 0)),
    "with_gaps": (with_gaps, 1, (12, 9, 5, 0)),
    "many_gaps": (many_gaps, 1, (34, 40)),
    "long_chain": (long_chain, 1, (70, 75)),
    "sized": (sized, 1, (9, 5, 4, 0)),
    "columns": (columns, 2, (7, 4, 1)),
    "rows": (rows, 2, (5, 6)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STORED)
def test_regions_of_arrays_of_unknown_sizes_are_stored(name: str) -> None:
    """The gradient is one buffer, in which each region is stored where it goes; what none reaches is zero."""
    cut, rank, lengths = STORED[name]
    x = T.dvector("x") if rank == 1 else T.dmatrix("x")
    parts = cut(x, 0)
    cost = T.add(*[(T.sqr(part) * (k + 0.5)).sum() * T.sqr(part).sum() for k, part in enumerate(parts)])
    inputs = [x, *(leaf for leaf in leaves_of(cost) if leaf is not x)]
    gradient = graphc.grad(cost, x)
    with options.change(excluding="equal_steps"):  # of which a loop would be made
        call = graphc.function(inputs, gradient)
    assert "store_regions" in call.explain()
    interpreted = graphc.function(inputs, gradient, "interpreted")
    for length in lengths:
        given = [np.random.default_rng(length).normal(size=(length,) if rank == 1 else (length, 7)[: x.ndim])]
        if name == "columns":
            given[0] = given[0].T.copy()
        given += [np.ones(3), np.ones(2)][: len(inputs) - 1]
        given[0][:1] = -0.0
        got, want = call(*given), interpreted(*given)
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert (np.signbit(got) == np.signbit(want)).all()


def leaves_of(node: Node) -> list[Node]:
    return [each for each in nodes_of([node]) if each.op is INPUT]


@pytest.mark.slow
@pytest.mark.parametrize(
    "take",
    [
        lambda x: [x[0:4], x[3:6]],
        lambda x: [x[0:4], x[-2:]],
        lambda x: [x[::2], x[1::2]],
        lambda x: [x[2], x[-1]],
    ],
)
def test_regions_that_may_overlap_are_added(take: Any) -> None:
    x = T.dvector("x")
    gradient = graphc.grad(T.add(*[(T.exp(part) * (k + 1)).sum() for k, part in enumerate(take(x))]), x)
    assert "store_regions" not in graphc.function([x], gradient, "python").explain()
    for length in (3, 5, 8):
        want, *others = outcomes([x], [gradient], [np.linspace(0.1, 1.0, length)])
        for got in others:
            np.testing.assert_allclose(got[0], want[0], rtol=1e-14)


@pytest.mark.slow
def test_a_gradient_of_rows_takes_no_more_memory_than_they_do() -> None:
    """And no more for each step than the one before."""

    def arena(steps: int) -> int:
        x, s = T.dmatrix("x"), T.dvector("s")
        value: Any = s
        for t in range(steps):
            value = T.tanh(value * 0.9 + x[t])
        call = graphc.function([x, s], graphc.grad(value.sum(), x), "python")
        return int(call.memory((steps, 1000), (1000,)).arena)

    assert arena(24) - arena(16) <= 8 * (2 * 8000 + 1024)
