"""What a call needs is told before it; only mutable inputs are written; updates are made in their variables' memory."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import nnet, optim
from graphc.errors import ArgumentError, GraphcError, GraphTypeError, ShapeError
from graphc.ir.node import Node, Op, Sample
from tests.support.op_samples import NAMES, SAMPLES, draw, inputs_for
from tests.support.thorough import those

MODES = ("compiled", "python")


def step(mode: str, rule: str = "sgd", dtype: str = "float32") -> tuple[graphc.Function, list[Any]]:
    """A training step of a small network."""
    rng = np.random.default_rng(0)
    sizes, params = [20, 12, 5], []
    x, y = T.matrix("x", dtype=dtype), T.lvector("y")
    hidden = x
    for k in range(2):
        w = graphc.shared((rng.normal(size=sizes[k : k + 2]) * 0.1).astype(dtype), f"w{k}")
        b = graphc.shared(np.zeros(sizes[k + 1], dtype), f"b{k}")
        params += [w, b]
        hidden = T.dot(hidden, w) + b
        hidden = hidden if k else nnet.relu(hidden)
    loss = nnet.categorical_crossentropy(nnet.softmax(hidden), y).mean()
    return graphc.function([x, y], loss, mode, updates=getattr(optim, rule)(loss, params, 0.1)), params


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_memory_is_told_before_a_call(mode: str) -> None:
    x, y = T.dmatrix("x"), T.dvector("y")
    f = graphc.function([x, y], [T.dot(T.exp(x), T.dot(x.T, x)) + y, y * 2], mode)
    found = f.memory((30, 4), (4,))
    assert found.outputs == 30 * 4 * 8 + 4 * 8
    assert found.arena >= 4 * 4 * 8 and found.total == found.arena + found.outputs
    assert f.memory({"x": (30, 4), "y": [4]}) == found == f.memory(np.zeros((30, 4)), (4,))
    assert f.memory((3000, 4), (4,)).arena > found.arena
    huge = f.memory((2**30, 4), (4,))
    assert huge.outputs == 2**30 * 4 * 8 + 32, "nothing was allocated"
    if mode == "compiled":
        f(np.ones((30, 4)), np.ones(4))
        arena = f.entry.__self__.arena  # type: ignore[attr-defined]
        assert arena[0].nbytes == found.arena
        f.free()
        assert arena == [None]
        f(np.ones((30, 4)), np.ones(4))
        assert arena[0].nbytes == found.arena


@pytest.mark.parametrize("mode", MODES)
def test_wrong_sizes_name_the_variable(mode: str) -> None:
    x, y = T.dmatrix("x"), T.dvector("y")
    f = graphc.function([x, y], T.dot(x, y), mode)
    wrong: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        (((3, 4),), ArgumentError, "y"),
        (((3, 4), (4,), (5,)), ArgumentError, "2 arguments"),
        (((3,), (4,)), GraphTypeError, "x"),
        (((3, -4), (4,)), ArgumentError, "x"),
        (((3, "a"), (4,)), ArgumentError, "x"),
        (((3, 4), (5,)), ShapeError, "y"),
        (({"x": (3, 4), "z": (4,)},), ArgumentError, "z"),
    ]
    for sizes, error, message in wrong:
        with pytest.raises(error, match=message):
            f.memory(*sizes)
    with pytest.raises(GraphcError, match="interpreted"):
        graphc.function([x], x + 1, "interpreted").memory((3, 4))


@pytest.mark.parametrize("mode", MODES)
def test_sizes_that_follow_from_values(mode: str) -> None:
    n = T.lscalar("n")
    f = graphc.function([n], T.zeros((n, 3)), mode)
    assert f.memory(5).outputs == 5 * 3 * 8
    with pytest.raises(ArgumentError, match="value of n"):
        f.memory(())
    with pytest.raises(MemoryError):
        f.memory(2**61)


@pytest.mark.slow
@pytest.mark.parametrize(("op", "sample"), those(lambda row: row[1] is row[0].samples[0], SAMPLES), ids=NAMES)
def test_no_input_is_written_unless_it_is_mutable(op: Op, sample: Sample) -> None:
    """What is made in place the plan decides, which generated source shows; one sample of each op is compiled, too."""
    mode: Any = "compiled" if sample is op.samples[0] else "python"
    rng = np.random.default_rng(5)
    values = [draw(argument, rng) for argument in sample.args]
    inputs = inputs_for(sample, values)
    output = sample.build(*inputs)
    before = [value.copy() for value in values]
    given = [graphc.In(x, borrow=True) for x in inputs]
    want, _ = graphc.function(given, [output, output], mode, on_unused_input="ignore")(*values)
    for value, old in zip(values, before, strict=True):
        np.testing.assert_array_equal(value, old)
    mutable = [graphc.In(x, mutable=True) for x in inputs]
    found = graphc.function(mutable, output, mode, on_unused_input="ignore")(*values)
    np.testing.assert_array_equal(found, want)


@dataclass(frozen=True)
class Written:
    """A result of the mutable matrix x and the vector y, and whether it can be made in the array of x."""

    name: str
    build: Callable[[Node, Node], Node]
    in_place: bool


WRITTEN = (
    Written("elementwise", lambda x, y: T.exp(x) + y, True),
    Written("of another dtype", lambda x, y: T.cast(x, "float32"), False),
    Written("of other sizes", lambda x, y: x[1:] * 2, False),
    Written("in reversed order", lambda x, y: x[::-1] + 0.5, False),
    Written("transposed", lambda x, y: x.T @ (x * y), False),
    Written("after a reduction of it", lambda x, y: x - x.mean(axis=0), True),
    Written("by rows", lambda x, y: T.nnet.softmax(x), True),
    Written("of a part of it set", lambda x, y: T.set_subtensor(x[:, 0], 1.0), True),
    Written("of the other input", lambda x, y: y + T.zeros_like(x), True),
    Written("where indices may fail", lambda x, y: x * y[T.cast(T.sqr(x) * 0, "int64")], True),
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.name)
def test_results_are_made_in_mutable_inputs(case: Written, mode: str) -> None:
    x, y = T.dmatrix("x"), T.dvector("y")
    output = case.build(x, y)
    f: Any = graphc.function([graphc.In(x, mutable=True), y], output, mode, on_unused_input="ignore")
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(3, 4)), rng.normal(size=4)
    want = graphc.function([x, y], output, "interpreted", on_unused_input="ignore")(a, b)
    assert ("in the array of an input" in f.plan) == case.in_place
    given = a.copy()
    found = f(given, b)
    np.testing.assert_allclose(found, want, rtol=1e-12)
    assert (found is given) == case.in_place
    assert f.memory((3, 4), (4,)).outputs == (0 if case.in_place else found.nbytes)
    frozen = a.copy()
    frozen.flags.writeable = False
    for array in (frozen, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2], a.tolist(), a.astype(">f8")):
        np.testing.assert_allclose(f(array, b), want, rtol=1e-12)
    np.testing.assert_array_equal(frozen, a)
    wide = np.concatenate([b, a.ravel()])
    overlapping = wide[4:].reshape(3, 4)
    np.testing.assert_allclose(f(overlapping, wide[2:6]), f(a.copy(), np.array([*b[2:], *a[0, :2]])), rtol=1e-12)
    into, given = np.empty_like(want), a.copy()
    assert f(given, b, out=into) is into
    np.testing.assert_allclose(into, want, rtol=1e-12)
    assert f(np.empty((0, 4)), b, out=None).shape[1:] == want.shape[1:] or case.name == "transposed"


@pytest.mark.parametrize("mode", MODES)
def test_a_default_is_never_written(mode: str) -> None:
    x = T.dvector("x")
    default = np.ones(3)
    f = graphc.function([graphc.In(x, value=default, mutable=True)], x * 2, mode)
    for _ in range(2):
        np.testing.assert_array_equal(f(), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(default, np.ones(3))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_result_takes_the_input_it_is_made_from(mode: str) -> None:
    """Parameters and their gradient step: each new value lies in the array of the old one."""
    params = [T.dmatrix(f"w{n}") for n in range(5)]
    x = T.dmatrix("x")
    cost = sum((T.sqr(T.tanh(x @ w)).sum() for w in params), start=T.sqr(x).sum())
    steps = [w - 0.1 * g for w, g in zip(params, graphc.grad(cost, params), strict=True)]
    given = [graphc.In(w, mutable=True) for w in params]
    f = graphc.function([x, *given], [cost, *reversed(steps)], mode)
    rng = np.random.default_rng(3)
    values = [rng.normal(size=(4, 4)) for _ in range(6)]
    want = graphc.function([x, *params], [cost, *reversed(steps)], "interpreted")(*values)
    arrays = [value.copy() for value in values]
    found = f(*arrays)
    for got, expected in zip(found, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert all(got is own for got, own in zip(found[:0:-1], arrays[1:], strict=True))
    np.testing.assert_array_equal(arrays[0], values[0])


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_fails_leaves_mutable_inputs(mode: str) -> None:
    x, i = T.dvector("x"), T.lvector("i")
    f = graphc.function([graphc.In(x, mutable=True), i], [x * 2, x[i]], mode)
    value = np.arange(3.0)
    with pytest.raises(graphc.GraphcError, match="x"):
        f(value, np.array([0, 3]))
    np.testing.assert_array_equal(value, np.arange(3.0))


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
def test_updates_are_made_in_place(rule: str) -> None:
    f, params = step("compiled", rule)
    slow, others = step("interpreted", rule)
    lines = [line for line in f.explain().splitlines() if "-> w" in line or "-> b" in line]
    assert len(lines) >= 4 and all("in place" in line and "copied" not in line for line in lines), lines
    own = [param.get_value(borrow=True) for param in params]
    rng = np.random.default_rng(1)
    for _ in range(5):
        x, y = rng.normal(size=(8, 20)).astype("float32"), rng.integers(0, 5, 8)
        np.testing.assert_allclose(f(x, y), slow(x, y), rtol=1e-4)
    for param, other, array in zip(params, others, own, strict=True):
        assert param.get_value(borrow=True) is array
        np.testing.assert_allclose(array, other.get_value(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("mode", ["compiled", "python", "interpreted"])
def test_updates_of_variables_that_share_memory(mode: str) -> None:
    buffer = np.arange(6.0)
    first = graphc.shared(buffer[:4], "first", borrow=True)
    second = graphc.shared(buffer[2:], "second", borrow=True)
    x = T.dvector("x")
    f = graphc.function([x], first + second, mode, updates=[(first, second + x), (second, first * 2)])
    a, b, given = first.get_value(), second.get_value(), first.get_value(borrow=True)
    want = a + b
    np.testing.assert_array_equal(f(given), want)
    np.testing.assert_array_equal(first.get_value(), b + a)
    np.testing.assert_array_equal(second.get_value(), a * 2)


@pytest.mark.slow
def test_the_arena_is_there_at_the_next_call() -> None:
    x = T.dmatrix("x")
    f = graphc.function([x], T.dot(T.exp(T.dot(x, x.T)), x).sum())
    value = np.zeros((700, 5))
    assert f.memory(value.shape).arena > 700 * 700 * 8
    for _ in range(3):
        f(value)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    f(value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 100, "of the 957 pages of a new one"


def test_a_function_may_call_itself() -> None:
    depth: list[int] = []
    own: list[Any] = []

    def again(value: Any) -> Any:
        depth.append(len(depth))
        return own[0](value / 2) if len(depth) < 4 else value

    x = T.dvector("x")
    deeper = graphc.op("again", lambda kind: kind)(again)(T.exp(x)[::-1])
    f = graphc.function([x], T.dot(T.outer(T.exp(x), x), deeper) + T.cumsum(deeper))
    own.append(f)
    value = np.array([0.1, 0.2, 0.3])

    def expected(value: Any, level: int) -> Any:
        inner = np.exp(value)[::-1]
        inner = expected(inner / 2, level + 1) if level < 3 else inner
        return np.outer(np.exp(value), value) @ inner + np.cumsum(inner)

    for _ in range(2):
        depth.clear()
        np.testing.assert_allclose(f(value), expected(value, 0), rtol=1e-12)


def test_a_result_in_the_array_of_an_input_waits_for_results_that_read_its_old_elements() -> None:
    """Both are made in one nest, the one that takes the array first."""
    w, x = (T.tensor("float64", shape=(5,), name=name) for name in "wx")
    taker = x + 1.0
    f = graphc.function([graphc.In(w, mutable=True), x], [taker, T.cast(w, "float32") * 2])
    given = np.arange(5.0)
    first, second = f(given, np.zeros(5))
    assert first is given and "nest 1" not in f.explain()
    np.testing.assert_array_equal(first, np.ones(5))
    np.testing.assert_array_equal(second, 2 * np.arange(5))
