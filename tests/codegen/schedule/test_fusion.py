"""Nests that share their outer loops: the same results as the interpreter, and the plans that were meant."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc import nnet
from graphc.codegen.pipeline import restore
from graphc.codegen.schedule.fusion import Access, why_not_allowed
from graphc.codegen.schedule.nodes import loop_vars
from graphc.codegen.schedule.plan import NestDraft
from graphc.ir.node import Node
from graphc.tensor import tensor
from tests.support.bounds import assert_specified, assert_within
from tests.support.generated import code
from tests.support.thorough import some

Array = NDArray[Any]
PROGRAMS = int(os.environ.get("GRAPHC_PROGRAMS", "40"))
"""How many random programs are run; a tenth of them compiled."""
SHAPES = ((3, 4), (5, 1), (1, 3), (2, 0), (0, 3), (9, 7))


# Random programs over rows --------------------------------------------------------------------------------------------

MATRIX: Sequence[Callable[[Node], Node]] = (
    T.exp,
    T.tanh,
    lambda a: a - a.mean(axis=1, keepdims=True),
    lambda a: a / (1.0 + T.sqr(a).sum(axis=1, keepdims=True)),
    lambda a: a - a.mean(axis=0, keepdims=True),
    nnet.softmax,
    nnet.log_softmax,
    lambda a: a * a.sum(),
    lambda a: T.cumsum(a, axis=1),
    lambda a: a[:, ::-1],
    lambda a: a[::-1],
    lambda a: a[T.arange(a.shape[0]) // 2],
    lambda a: T.maximum(a, 0.0) * 0.5,
    lambda a: T.inc_subtensor(a[::-1], a * 0.5),
    lambda a: T.cast(T.floor(a * 3.0), "int64") * 0.25,
)
ROWS: Sequence[Callable[[Node], Node]] = (
    lambda a: a.sum(axis=1),
    lambda a: T.sqr(a).mean(axis=1),
    lambda a: T.logsumexp(a, axis=1),
    lambda a: a.prod(axis=1),
    lambda a: T.cast((a > 0.2).sum(axis=1), "float64"),
    lambda a: T.cast(T.any(a > 1.0, axis=1), "float64"),
)
COLUMNS: Sequence[Callable[[Node], Node]] = (
    lambda a: a.sum(axis=0),
    lambda a: T.sqr(a).mean(axis=0),
    lambda a: T.exp(a * 0.1).sum(axis=0),
)
SCALARS: Sequence[Callable[[Node], Node]] = (
    lambda a: a.sum(),
    lambda a: T.sqr(a).mean(),
    lambda a: T.cast((a > 0.0).sum(), "float64"),
    lambda a: T.any(a > 2.0) * 1.0,
    lambda a: T.cast(T.cast(T.sqr(a), "float32").sum(), "float64"),  # nothing cancels: it has seven digits
)
JOINING: Sequence[Callable[[Node, Node], Node]] = (T.add, T.mul, T.maximum, T.sub)


class Pool:
    """Values of a program by their sizes: matrices, rows, columns, scalars."""

    def __init__(self, leaves: Sequence[Node]) -> None:
        x, columns, rows = leaves
        self.kinds: list[list[Node]] = [[x, T.tanh(x)], [rows], [columns], [rows.sum()]]

    def grow(self, draw: random.Random) -> None:
        matrices, rows, columns, scalars = self.kinds
        matrix = draw.choice(matrices[-4:])
        match draw.randrange(8):
            case 0 | 1:
                matrices.append(draw.choice(MATRIX)(matrix))
            case 2:
                matrices.append(draw.choice(JOINING)(matrix, draw.choice(matrices)))
            case 3:
                matrices.append(draw.choice(JOINING)(matrix, draw.choice(rows)[:, None]))
            case 4:
                matrices.append(draw.choice(JOINING)(matrix, draw.choice([*columns, *scalars])))
            case 5:
                rows.append(draw.choice(ROWS)(matrix))
            case 6:
                columns.append(draw.choice(COLUMNS)(matrix))
            case _:
                scalars.append(draw.choice(SCALARS)(draw.choice([matrix, rows[-1], columns[-1]])))


def random_program(seed: int) -> tuple[list[Node], list[Node], list[tuple[Any, Node]]]:
    """Inputs, outputs with a gradient among them, and an update of a matrix that is read by rows."""
    draw = random.Random(seed)
    leaves = [T.dmatrix("x"), T.dvector("y"), T.dvector("z")]
    weight = graphc.shared(np.zeros((0, 0)), name="w")
    pool = Pool(leaves)
    if draw.random() < 0.6:
        pool.kinds[0].append(leaves[0] + weight)
    for _ in range(draw.randrange(4, 14)):
        pool.grow(draw)
    outputs = [draw.choice(kind) for kind in pool.kinds] + [draw.choice(pool.kinds[0][1:])]
    cost = sum((kind[-1].sum() for kind in pool.kinds), start=T.sqr(pool.kinds[0][-1]).mean())
    outputs += graphc.grad(cost, leaves, disconnected_inputs="ignore") if draw.random() < 0.5 else [cost]
    like = [value for value in pool.kinds[0] if value.type.shape == leaves[0].type.shape]
    new = weight * 0.5 + draw.choice(like) * 0.1
    return leaves, outputs, [(weight, new)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(PROGRAMS)))
def test_random_programs_over_rows(seed: int) -> None:
    leaves, outputs, updates = random_program(seed)
    weight = updates[0][0]
    modes = ("interpreted", "python", "compiled") if seed % 10 == 0 else ("interpreted", "python")
    calls = [graphc.function(leaves, outputs, mode, updates=updates, on_unused_input="ignore") for mode in modes]
    rng = np.random.default_rng(seed)
    for rows, columns in SHAPES:
        values = [rng.normal(size=(rows, columns)), rng.normal(size=columns), rng.normal(size=rows)]
        start = rng.normal(size=(rows, columns))
        results = []
        for call in calls:
            weight.set_value(start)
            kept = [value.copy() for value in values]
            try:
                results.append([*call(*values), weight.get_value()])
            except graphc.GraphcError as error:
                results.append([type(error)])
            assert all(map(np.array_equal, kept, values))
        for call, found in zip(calls[1:], results[1:], strict=True):
            if isinstance(results[0][0], type):
                assert found == results[0], call.source
            else:
                assert_specified(call, found, values, [start] * len(call.shared))


@pytest.mark.slow
def test_threads_have_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small chunks for three threads: random programs over rows, and a softmax on many rows, equal to one thread's."""
    monkeypatch.setattr(restore, "settings_of", lambda threads, crossover: np.array([3, 2, 20, 0, 1], np.int64))
    shared = 0
    for seed in range(100, 112):
        leaves, outputs, updates = random_program(seed)
        call = graphc.function(leaves, outputs, updates=updates, on_unused_input="ignore")
        shared += "rows: for each" in call.explain() and "threads may share" in call.explain()
        rng = np.random.default_rng(seed)
        values = [rng.normal(size=(37, 11)), rng.normal(size=11), rng.normal(size=37)]
        for _ in range(5):
            updates[0][0].set_value(np.ones((37, 11)))
            found = [*call(*values), updates[0][0].get_value()]
            assert_specified(call, found, values, [np.ones((37, 11))])
    assert shared > 3
    x = T.dmatrix("x")
    value = np.random.default_rng(0).normal(size=(1000, 33))
    outputs = [nnet.softmax(x), nnet.log_softmax(x) * x.max(axis=1, keepdims=True)]
    call = graphc.function([x], outputs)
    assert "mine" in call.source
    first = call(value)
    assert_within(first, outputs, {x: value})
    for _ in range(50):
        for got, again in zip(call(value), first, strict=True):
            np.testing.assert_array_equal(got, again)


# Plans ----------------------------------------------------------------------------------------------------------------


def plan_of(inputs: Sequence[Node], outputs: Any, **more: Any) -> tuple[graphc.Function, list[str]]:
    call = graphc.function(inputs, outputs, "python", **more)
    text = call.explain()
    return call, text[text.index("plan:") :].splitlines()


def matches_numpy(call: graphc.Function, values: Sequence[Array], want: Sequence[Array]) -> None:
    for got, expected in zip(call(*values), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_a_row_used_twice_is_kept_as_a_row() -> None:
    x = T.dmatrix("x")
    e = T.exp(x)
    centred = e - e.mean(axis=1, keepdims=True)
    call, lines = plan_of([x], [centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True)), centred.sum(axis=0)])
    assert any("rows: for each of x_0" in line for line in lines)
    assert not any("x_0 * x_1" in line for line in lines if "temporary" in line)
    value = np.random.default_rng(0).normal(size=(5, 4))
    c = np.exp(value) - np.exp(value).mean(axis=1, keepdims=True)
    matches_numpy(call, [value], [c / np.sqrt((c**2).mean(axis=1, keepdims=True)), c.sum(axis=0)])


def test_totals_over_the_same_rows_join_what_they_read() -> None:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    distance = T.sqr(x[:, None, :] - y[None, :, :]).sum(axis=2)
    kernel = T.exp(-0.5 * distance).sum()
    call, lines = plan_of([x, y], [kernel, graphc.grad(kernel, x)])
    sizes = [line.split(": ")[1] for line in lines if "temporary" in line]
    assert set(sizes) == {"y_0 x float64", "(x_1 * y_0) x float64"}  # rows of pairs, and y in another order
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    k = np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(2))
    matches_numpy(call, [a, b], [np.array(k.sum()), -(k[:, :, None] * (a[:, None] - b[None])).sum(1)])


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 5, 3), (1, 6, 2), (0, 3, 3), (3, 0, 3), (3, 2, 0), (2, 1, 1), (7, 9, 5)])
def test_reductions_over_all_pairs(shape: tuple[int, int, int]) -> None:
    """Over features, and over the rows of either side; with gradients, and with an update of one side."""
    x, y = T.dmatrix("x"), T.dmatrix("y")
    apart = abs(x[:, None, :] - y[None, :, :])
    nearest = T.sqr(apart).sum(axis=2)
    weights = T.exp(-nearest)
    cost = weights.sum()
    outputs = [
        *(apart.max(axis=2) if shape[2] else apart.sum(axis=2), weights, cost, *graphc.grad(cost, [x, y])),
        *((weights[:, :, None] * apart).sum(axis=0), (apart > 0.5).any(axis=2), apart.prod(axis=1)),
    ]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(shape[0], shape[2])), rng.normal(size=(shape[1], shape[2]))]
    for mode in ("python", "compiled"):
        assert_within(graphc.function([x, y], outputs, mode)(*values), outputs, {x: values[0], y: values[1]})


def test_a_total_by_rows_is_as_exact_as_a_sum_of_fractions() -> None:
    """Ten thousand rows of one large and many small numbers: each row's sum is added without loss."""
    x, z = T.dmatrix("x"), T.dvector("z")
    scaled = x * z[:, None]
    call = graphc.function([x, z], [scaled.sum(axis=1), scaled.sum()], "compiled")
    assert "rows: for each of x_0" in call.explain()
    rng = np.random.default_rng(0)
    value = rng.normal(size=(10_000, 3)) + 1e8 * rng.choice([-1.0, 1.0], size=(10_000, 1))
    ones = np.ones(len(value))
    rows, total = call(value, ones)
    exact = float(sum(map(_fraction, rows)))
    assert abs(total - exact) <= np.spacing(abs(exact))
    value[7, 1] = np.inf
    assert call(value, ones)[1] == np.inf
    value[8, 1] = -np.inf
    assert np.isnan(call(value, ones)[1])


def _fraction(value: float) -> Any:
    return Fraction(float(value))


def test_a_reduction_over_rows_is_not_read_before_its_end() -> None:
    x = T.dmatrix("x")
    columns = T.exp(x).sum(axis=0)
    call, _ = plan_of([x], [x / columns, T.exp(x) / T.exp(x).sum(axis=1, keepdims=True)])
    value = np.random.default_rng(0).normal(size=(5, 4))
    e = np.exp(value)
    matches_numpy(call, [value], [value / e.sum(axis=0), e / e.sum(axis=1, keepdims=True)])


@pytest.mark.slow
def test_an_update_in_place_waits_for_all_rows_that_read_it() -> None:
    rng = np.random.default_rng(0)
    start, value = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    cases: Sequence[Callable[[Node, Node], tuple[Node, Node]]] = (
        lambda w, x: (T.exp(w[::-1]) + x.sum(axis=1, keepdims=True), w + x),
        lambda w, x: (nnet.softmax(w + x), w - nnet.softmax(w * x)),
        lambda w, x: (w.sum(axis=0) + x, w * w.sum(axis=1, keepdims=True)),
        lambda w, x: (w.T.sum(axis=0)[:, None] + x, w[[1, 0, 3, 2]] + x),
    )
    for case, mode in itertools.product(cases, ("python", "compiled")):
        found = []
        for each in ("interpreted", mode):
            w, x = graphc.shared(start, name="w"), T.dmatrix("x")
            output, new = case(w, x)
            call = graphc.function([x], output, each, updates=[(w, new)])
            found.append((call(value), w.get_value()))
        for want, got in zip(*found, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["python", "compiled"])
def test_a_step_of_an_embedding_changes_the_rows_it_looked_up(mode: str) -> None:
    rows, target = T.lvector("rows"), T.dmatrix("target")
    rng = np.random.default_rng(0)
    start = rng.normal(size=(6, 3))
    table = graphc.shared(start, name="table")
    cost = T.sqr(table[rows] - target).sum()
    call = graphc.function([rows, target], cost, mode, updates=[(table, table - 0.1 * graphc.grad(cost, table))])
    assert "table_0" not in "".join(line for line in call.explain().splitlines() if "temporary" in line)
    wanted = rng.normal(size=(4, 3))
    for indices in ([0, 2, 2, -1], [1, 1, 1, 1], [5, -6, 0, 3]):
        table.set_value(start)
        gradient = np.zeros_like(start)
        np.add.at(gradient, indices, 2.0 * (start[indices] - wanted))
        np.testing.assert_allclose(call(np.array(indices), wanted), np.square(start[indices] - wanted).sum())
        np.testing.assert_allclose(table.get_value(), start - 0.1 * gradient, rtol=1e-12)
    table.set_value(start)
    with pytest.raises(graphc.GraphcError):
        call(np.array([0, 1, 2, 6]), wanted)
    np.testing.assert_array_equal(table.get_value(), start)


def test_neighbours_that_are_not_joined_say_why() -> None:
    x = T.dmatrix("x")
    centred = x - x.mean(axis=0)
    _, lines = plan_of([x], [abs(centred).sum(axis=0) + x.sum(), T.exp(x).sum(axis=0)])
    assert any(line.endswith("apart from nest 0: true_div comes between") for line in lines), lines
    grown = T.exp(x)
    _, lines = plan_of([x], [grown, grown[::-1] * 2.0])
    assert any(line.endswith("it needs more of exp than the same iteration of the loop makes") for line in lines), lines


def draft(number: int, *space: int) -> NestDraft:
    return NestDraft(number, "loops", space, loop_vars(len(space)))


def test_only_loops_over_the_same_sizes_are_shared() -> None:
    alone = Access({0: (), 1: ()}, {}, {}, {}, frozenset())
    first, then = draft(0, 3, 4, 5), draft(1, 3, 6, 5)
    assert why_not_allowed(first, then, 1, alone) is None
    assert why_not_allowed(first, then, 2, alone) == why_not_allowed(draft(0, 3), draft(1, 4), 1, alone)
    assert why_not_allowed(first, then, 2, alone) == "they go over different sizes"


def test_a_column_reduction_that_takes_several_rows_at_a_time_keeps_their_loop() -> None:
    x = T.dtensor3("x")
    _, lines = plan_of([x], [nnet.softmax(x, axis=2), x.sum(1)])
    (reduction,) = (number for number, line in enumerate(lines) if " -> out1: a result" in line)
    inner = [number for number, line in enumerate(lines) if line.endswith("rows: for each of x_1 in turn")]
    assert inner and all(number > reduction for number in inner), lines


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 4), (33, 17)])
def test_rows_of_every_dtype(dtype: str, shape: tuple[int, int]) -> None:
    x = T.matrix("x", dtype=dtype)
    outputs = [x.sum(axis=0), x.sum(), x + x.sum(axis=1, keepdims=True), x.any(axis=1), T.sqr(x * 1).sum(axis=0)]
    value = (np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    for mode in ("python", "compiled"):
        assert_within(graphc.function([x], outputs, mode)(value), outputs, {x: value})


def test_shared_loops_of_three_axes() -> None:
    x = T.dtensor3("x")
    p = nnet.softmax(x)
    outputs = [p, p.sum(axis=0), p.sum(axis=1), (p * x).sum(axis=(1, 2)), (p * x).sum(), p - p.mean(axis=(0, 1))]
    call, lines = plan_of([x], outputs)
    assert sum("rows: for each of" in line for line in lines) >= 2
    for shape in ((2, 3, 4), (0, 3, 4), (2, 0, 4), (2, 3, 0), (1, 1, 1)):
        value = np.random.default_rng(0).normal(size=shape)
        assert_within(call(value), outputs, {x: value})


@pytest.mark.slow
def test_second_derivatives_through_rows() -> None:
    x, v = T.dmatrix("x"), T.dmatrix("v")
    centred = x - x.mean(axis=1, keepdims=True)
    normed = centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + 0.1)
    slope = graphc.grad((T.tanh(normed) * T.sqr(normed)).sum(), x)
    outputs = [slope, graphc.grad((slope * v).sum(), x)]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(4, 5)), rng.normal(size=(4, 5))]
    for mode in ("python", "compiled"):
        assert_within(graphc.function([x, v], outputs, mode)(*values), outputs, {x: values[0], v: values[1]})


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "python"])
@pytest.mark.parametrize("features", [1, 2, 3, 4, 5])
def test_few_features_of_all_pairs_are_unrolled(features: int, mode: str) -> None:
    """Distances in a plane or in space, whose number of coordinates is part of the type: no loop over them is left."""
    x, y = (tensor("float64", (None, features), name) for name in "xy")
    apart = x[:, None, :] - y[None, :, :]
    energy = T.exp(-0.5 * T.sqr(apart).sum(axis=2)).sum()
    nearest = T.sqr(apart).sum(axis=2).argmin(axis=1)
    call = graphc.function([x, y], [energy, graphc.grad(energy, x), nearest], mode)
    if mode == "python" and 1 < features < 5:
        assert f"({features}):" not in code(call.source).split("\n\n")[0]
    rng = np.random.default_rng(features)
    for left, right in ((7, 300), (1, 1), (5, 3), (0, 4)):
        a, b = rng.normal(size=(left, features)), rng.normal(size=(right, features))
        pairs = a[:, None] - b[None]
        squares = np.square(pairs).sum(2)
        k = np.exp(-0.5 * squares)
        matches_numpy(call, [a, b], [np.array(k.sum()), -(k[:, :, None] * pairs).sum(1), squares.argmin(1)])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "python"])
@pytest.mark.parametrize("dtype", some(["float32", "uint8", "bool", "float64", "int32"]))
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "argmax", "mean"])
def test_reductions_over_few_elements(name: str, dtype: str, mode: str) -> None:
    """Of a known number, along either axis of a matrix, and over both; with signed zeros and NaN."""
    rng = np.random.default_rng(8)
    reduce, numpy_reduce = getattr(T, name), getattr(np, name)
    wide, high, both = (tensor(dtype, shape, "x") for shape in ((None, 3), (2, None), (2, 2)))
    calls = [
        graphc.function([wide], [reduce(wide, axis=1), reduce(wide, axis=0)], mode),
        graphc.function([high], [reduce(high, axis=0), reduce(high, axis=1)], mode),
        graphc.function([both], [reduce(both), reduce(both, axis=0)], mode),
    ]
    for call, shape, axes in zip(calls, ((40, 3), (2, 40), (2, 2)), ((1, 0), (0, 1), (None, 0)), strict=True):
        value = (rng.normal(size=shape) * 3).astype(dtype)
        if value.dtype.kind == "f" and name != "argmax":
            value[0, 0], value[-1, -1] = np.nan, -0.0
        for found, axis in zip(call(value), axes, strict=True):
            np.testing.assert_allclose(found, numpy_reduce(value, axis=axis), rtol=1e-5)
