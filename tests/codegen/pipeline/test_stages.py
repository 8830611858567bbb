"""Sizes and positions may follow from any value: what `sizes` cannot compute is computed by a stage before."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline import build, stages
from graphc.codegen.pipeline.build import computed_sizes, stages_of
from graphc.errors import ArgumentError, CacheMissError, GraphcError, GraphTypeError, IndexOutOfBounds, ShapeError
from graphc.functions.native import Lowered
from graphc.functions.wrappers import Staged
from graphc.ir.node import Node
from graphc.options import options
from graphc.startup.process import PROCESS

MODES = ("compiled", "python", "interpreted")


@graphc.op("largest_first", infer=lambda kind: kind)
def largest_first(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.sort(values)[::-1].copy()


def last(values: Node) -> Node:
    return T.cumsum(values)[-1]


def root(count: Node, dtype: str = "float64") -> Node:
    """The square root of an integer, rounded up."""
    return T.cast(T.ceil(T.sqrt(T.cast(count, dtype))), "int64")


Build = Callable[[Node, Node, Node], "Node | list[Node]"]


@pytest.mark.slow
def test_a_function_that_is_in_the_cache_is_not_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    x, i = T.dvector("x"), T.lvector("i")
    plain, staged = x[i[0] :] * 1.37, x[: last(i)] * 1.37
    for result in (plain, staged):
        graphc.function([x, i], result, mode="compiled")
    visited: list[object] = []

    def visit(roots: Sequence[Node]) -> list[Node]:
        visited.append(roots)
        return computed_sizes(roots)

    monkeypatch.setattr(build, "computed_sizes", visit)
    f = graphc.function([x, i], plain, mode="compiled")
    assert isinstance(f, Lowered) and f.built.report.origin == "cache" and not visited
    g = graphc.function([x, i], staged, mode="compiled")
    assert isinstance(g, Staged) and {stage.built.report.origin for stage in g.stages} == {"cache"} and visited
    with options.change(cache_require=True):
        graphc.function([x, i], staged, mode="compiled")
        with pytest.raises(CacheMissError, match="the graph, from line"):
            graphc.function([x, i], staged + 1.0, mode="compiled")


POSITIONS: dict[str, Build] = {
    "of a running sum": lambda x, i, j: x[last(i)],
    "of joined arrays": lambda x, i, j: x[T.concatenate([i, i]).sum()],
    "of a product": lambda x, i, j: x[T.dot(i, j)],
    "of a product of matrices": lambda x, i, j: x[T.dot(T.stack([i, j]), T.stack([i, j]).T)[0, 1]],
    "of a changed array": lambda x, i, j: x[T.set_subtensor(i[0], j[-1]).sum()],
    "of a scattered array": lambda x, i, j: x[T.inc_subtensor(i[j], 1).max()],
    "of a user's op": lambda x, i, j: x[largest_first(i)[0]],
    "of a gather": lambda x, i, j: x[T.take(T.cumsum(i), j).max()],
    "of rounded numbers": lambda x, i, j: x[T.cast(T.log(1 + T.exp(i[0] * 0.5)), "int64")],
    "written": lambda x, i, j: T.set_subtensor(x[last(i)], 9.0) * 2,
    "of a root": lambda x, i, j: x[root(i[0])],
    "of a narrow integer": lambda x, i, j: x[last(T.cast(i, "int32"))],
    "of a truth": lambda x, i, j: x[T.cast(T.eq(last(i), 3), "int64")],
    "of either side of a choice": lambda x, i, j: T.where(last(i) > 2, x[last(i)], x[last(j)]),
    "of a row": lambda x, i, j: T.outer(x, x)[last(i), last(j)],
    "differentiated": lambda x, i, j: T.grad(T.sqr(x[last(i)]) + x.sum() * x[last(j)], x),
}
SIZES: dict[str, Build] = {
    "slice": lambda x, i, j: x[: last(i)] * 2,
    "slice from the end": lambda x, i, j: T.exp(x[-last(i) :]),
    "slice between": lambda x, i, j: x[last(i) : T.concatenate([i, j]).sum() : 2],
    "zeros": lambda x, i, j: T.zeros((last(i),)) + 1,
    "arange": lambda x, i, j: T.arange(T.set_subtensor(i[:1], 2).sum()) * 2,
    "user's op": lambda x, i, j: T.ones((largest_first(i)[0], 2)),
    "temporary": lambda x, i, j: T.cumsum(x[: last(i)])[::-1] + 1,
    "reduction": lambda x, i, j: T.outer(x, T.arange(last(i)) * 1.0).sum(0),
    "reshape": lambda x, i, j: T.tile(x[: last(i)], 2).reshape((2, last(i))),
    "product": lambda x, i, j: T.dot(T.outer(x[: last(i)], x), T.outer(x, x[: last(j)])),
    "size of a size": lambda x, i, j: x[: last(i[: T.cumsum(j)[0]])],
    "size of a size of a size": lambda x, i, j: T.zeros(last(i[: last(j[: T.cumsum(i)[0]])])),
    "shared": lambda x, i, j: [x[: last(i)], T.zeros(last(i)), last(i), x[last(i)]],
    "rounded numbers": lambda x, i, j: [T.zeros((T.cast(x.mean(), "int64"),)), T.cast(x.mean(), "int64")],
    "root": lambda x, i, j: [T.exp(x[: root(i.sum())]), x[root(i.sum()) :]],
    "differentiated": lambda x, i, j: T.grad(T.sqr(x[: last(i)]).sum(), x),
    "differentiated twice": lambda x, i, j: T.grad(T.grad((x[: last(i)] ** 3).sum(), x)[last(j)], x),
}
PROGRAMS = {**{f"position {k}": v for k, v in POSITIONS.items()}, **{f"size by {k}": v for k, v in SIZES.items()}}

ARGUMENTS = [
    (np.arange(7.0), [1, 2], [2, 1]),
    (np.arange(7.0), [0, 0], [0, 0]),
    (np.arange(7.0), [-1, -2], [0, -1]),
    (np.arange(7.0), [4, 3], [1, 0]),
    (np.arange(7.0), [-3, -5], [-1, 1]),
    (np.arange(1.0), [1, -1, 0], [0, 2, 1]),
    (np.zeros(0), [0], [0]),
    (np.arange(7.0), [], []),
    (np.arange(7.0), [1, 2], [1]),
    (np.arange(30.0), [5, 1, 7], [1, 1, 2]),
]


def outcome(f: graphc.Function, *args: Any) -> Any:
    """What a call gives: arrays, or its error."""
    try:
        results = f(*args)
    except (GraphcError, MemoryError) as error:
        return type(error), str(error)
    return results if isinstance(results, list) else [results]


def assert_alike(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple) or isinstance(found, tuple):
        assert found == wanted
        return
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_modes_agree_on_values_and_errors(name: str) -> None:
    x, i, j = T.dvector("x"), T.lvector("i"), T.lvector("j")
    graph = PROGRAMS[name](x, i, j)
    specified, generated, compiled = (
        graphc.function([x, i, j], graph, mode, on_unused_input="ignore")
        for mode in ("interpreted", "python", "compiled")
    )
    before = PROCESS.compilations
    kinds = set()
    for values, *indices in ARGUMENTS:
        args = (values, *(np.array(index, "int64") for index in indices))
        wanted = outcome(specified, *args)
        assert_alike(outcome(generated, *args), wanted)
        assert_alike(outcome(compiled, *args), wanted)
        kinds.add(type(wanted))
    assert PROCESS.compilations == before, "sizes compile nothing"
    assert list in kinds


def test_only_what_needs_it_is_staged() -> None:
    x, i, j = T.dvector("x"), T.lvector("i"), T.lvector("j")

    def count(graph: Any, *inputs: Node) -> int:
        return len(stages_of(graphc.function(inputs, graph, "interpreted", on_unused_input="ignore").kernel))

    one = (
        x[i.max()],
        x[(i * j).sum() : x.shape[0] // 2],
        T.zeros(i.prod()),
        x[i[0]],
        x[T.cast(x[0], "int64")],
        x[i.argmax()],
        T.cumsum(i) * last(i),
        T.cumsum(x)[: i.sum()],
        T.grad(T.exp(x[: i.max()]).sum(), x),
        x[: root(i[0])],
    )
    assert [count(graph, x, i, j) for graph in one] == [1] * len(one)
    assert count(x[: root(i[0], "float32")], x, i) == 2, "of float32 fast_math may approximate it"
    n = T.dot(i, j)
    assert count(x[last(i)], x, i) == count([x[last(i)], x[last(i) - 1], x[last(j) :]], x, i, j) == 2
    assert count(x[last(i[:n])], x, i, j) == 2
    assert count(x[last(i[: last(j)])], x, i, j) == 3
    assert count(x[last(i[: last(j[: last(i)])])], x, i, j) == 4


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_errors_name_the_index_and_its_line(mode: str) -> None:
    x, i = T.dvector("x"), T.lvector("i")
    f = graphc.function([x, i], x[T.cumsum(i)[-1]], mode)
    with pytest.raises(
        IndexOutOfBounds, match=r"of x .*index 7, .*test_stages.*out of bounds for axis 0.* 5"
    ) as caught:
        f(np.arange(5.0), [3, 4])
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    with pytest.raises(IndexOutOfBounds, match=r"index -6, .*out of bounds"):
        f(np.arange(5.0), [-3, -3])
    with pytest.raises(ShapeError):
        graphc.function([i], T.zeros(last(i)), mode)([-1])
    with pytest.raises(GraphTypeError, match="argument x"):
        f(np.ones((2, 2)), [1])
    with pytest.raises(ArgumentError, match="argument i .*is missing"):
        f(np.ones(2))
    with pytest.raises(MemoryError):
        graphc.function([i], T.zeros((last(i), last(i), 8)), mode)([2**40])


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_what_is_rounded_has_one_value_in_a_call(mode: str) -> None:
    """A float32 sum in another order is another number: an array made for the one and filled up to the other would
    end too early."""
    x = T.fvector("x")
    total = T.cast(x.sum(), "int64")
    f = graphc.function([x], [T.zeros(total), total], mode)
    rng = np.random.default_rng(0)
    for _ in range(50 if mode == "python" else 2000):
        zeros, size = f((rng.integers(1, 9, rng.integers(3, 400)) * 0.1).astype("float32"))
        assert zeros.shape == (int(size),)


@pytest.mark.parametrize("mode", MODES)
def test_updates_see_the_values_before_them(mode: str) -> None:
    counts = graphc.shared(np.array([1, 2]), "counts")
    w = graphc.shared(np.arange(6.0), "w")
    n = last(counts)
    updates = [(w, T.concatenate([w[:n], T.zeros(n)])), (counts, counts[::-1] + 1)]
    f = graphc.function([], [w[n], n], mode, updates=updates)
    mirror, sizes = np.arange(6.0), np.array([1, 2])
    for _ in range(4):
        total = sizes.sum()
        value, size = f()
        assert value == mirror[total] and size == total
        mirror, sizes = np.concatenate([mirror[:total], np.zeros(total)]), sizes[::-1] + 1
        np.testing.assert_array_equal(w.get_value(), mirror)
        np.testing.assert_array_equal(counts.get_value(), sizes)
    counts.set_value([50, 50])
    with pytest.raises(IndexOutOfBounds):
        f()
    np.testing.assert_array_equal(counts.get_value(), [50, 50])
    np.testing.assert_array_equal(w.get_value(), mirror)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_function_of_stages_is_called_like_others(mode: str) -> None:
    x, i = T.dvector("x"), T.lvector("i")
    n = last(i)
    inputs = [x, graphc.In(i, value=np.array([1, 1]), name="counts")]
    f = graphc.function(inputs, {"head": x[:n] + 1, "at": x[n]}, mode, name="both", profile=True)
    found = f([0.0, 1.0, 2.0])
    assert found["head"].tolist() == [1.0, 2.0] and found["at"] == 2.0
    assert f([0, 1], counts=[1])["head"].tolist() == [1.0]
    assert f.profile is not None and f.profile.calls == 2
    assert f.shared == () and "both" in repr(f) and f.text.count("running_sum") == 1
    single = graphc.function([x, i], x[:n] * 2, mode)
    out = np.zeros(2)
    assert single(np.arange(4.0), [2], out=out) is out and out.tolist() == [0.0, 2.0]
    values = np.arange(4.0)
    assert single(values, [2], out=values[2:]).tolist() == values[2:].tolist() == [0.0, 2.0]
    with pytest.raises(ShapeError, match=r"out\[0\].*must have shape \(3,\); got \(2,\)"):
        single(np.arange(4.0), [3], out=out)
    assert single(np.arange(40.0)[::-2], [3]).tolist() == [78.0, 74.0, 70.0]
    nothing = graphc.function([x, i], None, mode, updates=[], on_unused_input="ignore")
    assert nothing(values, [1]) == []


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_mutable_inputs(mode: str) -> None:
    x, i = T.dvector("x"), T.lvector("i")
    f = graphc.function([graphc.In(x, mutable=True), graphc.In(i, mutable=True)], [x * x[last(i)], i + last(i)], mode)
    for size in (3, 20_000):
        values, counts = np.arange(size) + 1.0, np.zeros(size, "int64")
        counts[0] = 2
        product, moved = f(values.copy(), counts.copy())
        np.testing.assert_array_equal(product, values * 3.0)
        np.testing.assert_array_equal(moved, counts + 2)
        same = np.arange(5.0)
        assert graphc.function([graphc.In(x, mutable=True)], x[::-1] * x[T.cast(T.cumsum(x)[1], "int64")], mode)(
            same
        ).tolist() == [4.0, 3.0, 2.0, 1.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_it_can_be_looked_into(mode: str) -> None:
    x, i = T.dvector("x"), T.lvector("i")
    f = graphc.function([x, i], T.cumsum(x[: last(i)])[::-1], mode, name="looked_at")
    assert isinstance(f, Staged)
    assert f.source.count("def sizes(") == 2 and f.source.index("sizes of looked_at: ") < f.source.index(
        '"""looked_at: '
    )
    interpreted = graphc.function([x, i], T.cumsum(x[: last(i)])[::-1], "interpreted", name="looked_at")
    assert interpreted.source.count("def ") == f.source.count("def ")
    (line,) = (line for line in f.explain().splitlines() if line.startswith("2 stages"))
    assert "test_stages.py" in line and f.plan.count("recurrence over") == 2
    assert f.assembly.count("\nkernel:") == 2
    need = f.memory((100,), np.array([3, 4]))
    assert need.outputs == 7 * 8 and need.arena >= (2 + 7) * 8 and need.total == need.arena + need.outputs
    assert f.memory((2**40,), np.array([3, 4])) == need, "nothing was allocated"
    with pytest.raises(ArgumentError, match="sizes follow from the value of i"):
        f.memory((100,), (2,))
    f(np.ones(9), [3])
    f.free()
    assert f(np.ones(9), [3]).tolist() == [3.0, 2.0, 1.0]


def test_it_is_cached_like_others() -> None:
    x, i = T.dvector("x"), T.lvector("i")

    def build() -> graphc.Function:
        return graphc.function([x, i], x[: last(i[: last(i)])] * 3.25, name="cached")

    before = PROCESS.compilations
    build()
    assert PROCESS.compilations == before + 3
    with options.change(cache_require=True):
        assert build()(np.arange(9.0), [1, 2]).tolist() == [0.0, 3.25, 6.5]
    assert PROCESS.compilations == before + 3


@pytest.mark.parametrize("mode", MODES)
def test_a_copy_has_its_own_variables(mode: str) -> None:
    counts = graphc.shared(np.array([1, 2]), "counts")
    f = graphc.function([], T.arange(last(counts)), mode, updates=[(counts, counts + 1)])
    twin = copy.deepcopy(f)
    assert type(twin) is type(f) and len(f()) == 3 and len(f()) == 5
    assert len(twin()) == 3


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_stages_of_one_call_see_one_state(mode: str) -> None:
    """A thread that would change a variable between two stages has to wait."""
    counts = graphc.shared(np.array([3, 0]), "counts")
    change = graphc.function([], updates=[(counts, counts + 1)])
    entered, changed = threading.Event(), threading.Event()

    @graphc.op(infer=lambda kind: kind)
    def dawdle(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        copied = values.copy()
        entered.set()
        changed.wait(0.1)
        return copied

    def changing() -> None:
        entered.wait()
        change()
        changed.set()

    thread = threading.Thread(target=changing)
    read = graphc.function([], [T.ones(last(dawdle(counts))), counts.sum()], mode)
    thread.start()
    ones, total = read()
    thread.join()
    assert len(ones) == total == 3
    np.testing.assert_array_equal(counts.get_value(), [4, 1])


@pytest.mark.slow
def test_under_guard() -> None:
    x, i, j = T.dvector("x"), T.lvector("i"), T.lvector("j")
    with options.change(poison="guard"):
        for name in ("position written", "size by size of a size", "size by temporary"):
            graph = PROGRAMS[name](x, i, j)
            f = graphc.function([x, i, j], graph, on_unused_input="ignore")
            args = (np.arange(9.0), np.array([2, 1]), np.array([1, 1]))
            wanted = graphc.function([x, i, j], graph, "interpreted", on_unused_input="ignore")(*args)
            np.testing.assert_array_equal(f(*args), wanted)
        plain = graphc.function([x], x * 2)
        np.testing.assert_array_equal(copy.deepcopy(plain)(np.ones(2)), [2.0, 2.0])


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_what_no_stage_computes_is_interpreted_with_advice(mode: str) -> None:
    x, i = T.dvector("x"), T.lvector("i")
    with (
        patch.object(stages, "measured_values", lambda outputs: []),
        pytest.warns(RuntimeWarning, match=r"cumsum\(i\) .*test_stages.*by a function of its own.*interpreted mode"),
    ):
        f = graphc.function([x, i], x[last(i)], mode)
    assert f([1.0, 2.0, 3.0], [0, 1, 1]) == 3.0


# Random programs ------------------------------------------------------------------------------------------------------

VECTORS: Sequence[Callable[[Node, Node, Node], Node]] = (
    lambda a, b, n: T.cumsum(a),
    lambda a, b, n: T.concatenate([a, b]),
    lambda a, b, n: a[: n % 6],
    lambda a, b, n: a[n % 3 :],
    lambda a, b, n: T.set_subtensor(a[n % 4], n),
    lambda a, b, n: T.arange(n % 5),
    lambda a, b, n: T.zeros((n % 4,), "int64") + n,
    lambda a, b, n: largest_first(a),
    lambda a, b, n: T.take(a, abs(b) % 3),
    lambda a, b, n: a[::-1] * 2 - n,
    lambda a, b, n: T.inc_subtensor(a[: n % 3], 1),
)
SCALARS: Sequence[Callable[[Node, Node], Node]] = (
    lambda a, n: a.sum(),
    lambda a, n: a[n],
    lambda a, n: T.dot(a, a) % 7,
    lambda a, n: n + 1,
    lambda a, n: a[-1] - n,
    lambda a, n: T.cast(T.cumsum(a * 0.5)[-1], "int64"),
    lambda a, n: a.shape[0] + n,
)
STEPS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)), max_size=5)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, st.lists(st.lists(st.integers(-4, 6), max_size=6), min_size=1, max_size=4))
def test_random_programs(steps: list[tuple[int, int, int, int]], arguments: list[list[int]]) -> None:
    i = T.lvector("i")
    w = graphc.shared(np.array([2, 1]), "w")
    vectors, numbers = [i, w], [last(i), T.dot(w, w)]
    for vector, scalar, one, other in steps:
        a, b = vectors[one % len(vectors)], vectors[other % len(vectors)]
        numbers.append(SCALARS[scalar](a, numbers[other % len(numbers)]))
        vectors.append(VECTORS[vector](a, b, numbers[-1]))
    functions = [
        graphc.function([i], [vectors[-1], numbers[-1]], mode, updates=[(w, vectors[-1])], on_unused_input="ignore")
        for mode in MODES
    ]
    for argument in arguments:
        found = []
        for f in functions:
            w.set_value([2, 1])
            found.append((outcome(f, np.array(argument, "int64")), w.get_value()))
        for result, updated in found[:2]:
            assert_alike(result, found[2][0])
            np.testing.assert_array_equal(updated, found[2][1])
