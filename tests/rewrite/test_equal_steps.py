"""Equal steps of a graph become loops: the bits are those of the steps written out, and what is made of them does not
grow with their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.ir.interpret import interpret
from graphc.ir.node import Node
from graphc.ir.walk import Graph, nodes_of
from graphc.ops.scan import SCAN
from graphc.options import options
from graphc.rewrite import rewrite
from tests.support.unrolled_programs import PROGRAMS, Build, Inputs, bits, random_steps, values_for
from tests.support.watched import check_passes, watch


def numbers(steps: int) -> tuple[Inputs, list[Any]]:
    """Numbers of each step's own, rows and columns of matrices, the last element first, values of several steps ago."""
    x, y, p = T.tensor("float64", shape=(None, 3), name="x"), T.dmatrix("y"), T.dscalar("p")
    values = [p, p * 2.0, p * 3.0]
    rng = np.random.default_rng(0)
    for t in range(steps):
        taken = x[t].sum() + y[1, steps - 1 - t] * rng.normal() + x[t, 2]
        values.append(T.tanh(values[-1] * 0.5 - values[-3] * t + taken))
    return [x, y, p], [values[-1], T.stack(values), values[steps // 2]]


def regions(steps: int) -> tuple[Inputs, list[Any]]:
    """Elements of an array of unknown size, set, and its gradient, which is written element by element."""
    x, p = T.dvector("x"), T.dscalar("p")
    value, kept = p, x * 0.0
    for t in range(steps):
        value = T.sin(value + x[t] * p)
        kept = T.inc_subtensor(kept[2 * t], value)
    return [x, p], [kept, value, *graphc.grad(value + (kept * kept).sum(), [x, p])]


def matrices(steps: int) -> tuple[Inputs, list[Any]]:
    """Arrays that are handed on, and all of them a result; two runs, of which one reads the other backwards."""
    x, a = T.dvector("x"), T.tensor("float64", shape=(3, 3), name="a")
    state: Any = T.as_tensor_variable(np.ones(3))
    states = []
    for t in range(steps):
        state = T.tanh(T.dot(a, state) + x[t])
        states.append(state)
    back = state * 0.5
    for t in reversed(range(steps)):
        back = T.cos(back) * states[t] - back[::-1]
    return [x, a], [T.stack(states), back, T.concatenate(states), states[3]]


def observed(steps: int) -> tuple[Inputs, list[Any]]:
    """Rows of a width that is not known, of which something short is made."""
    x, p = T.dmatrix("x"), T.tensor("float64", shape=(2,), name="p")
    state: Any = p
    total: Any = p[0]
    for t in range(steps):
        error = x[t] - state
        state = state + T.tanh(error) * p
        total = total + error[0] * error[1]
    return [x, p], [total, state, graphc.grad(total, p)]


def cut(steps: int) -> tuple[Inputs, list[Any]]:
    """A filter whose parameters are cut out of a vector of unknown size: slices have so many elements at most."""
    y, p = T.dvector("y"), T.dvector("p")
    move, noise, seen = T.tanh(p[:4]).reshape((2, 2)) * 0.5, T.diag(T.exp(-(p[4:6] ** 2))), p[7:9]
    state: Any = T.zeros(2)
    spread: Any = T.eye(2)
    total: Any = T.as_tensor_variable(0.0)
    for t in range(steps):
        state, spread = move @ state, move @ spread @ move.T + noise
        expected = seen @ spread @ seen + T.exp(p[6])
        gain, innovation = spread @ seen / expected, y[t] - seen @ state
        total = total - 0.5 * (T.log(expected) + innovation**2 / expected)
        state, spread = state + gain * innovation, spread - T.outer(gain, seen @ spread)
    return [y, p], [total, graphc.grad(total, p)]


def singles(steps: int) -> tuple[Inputs, list[Any]]:
    """float32 and integers; a step in the middle is another."""
    x, n = T.fvector("x"), T.iscalar("n")
    value, count = x[0], n
    for t in range(steps):
        value = T.exp(-value) * x[t] if t != steps // 2 else value * value
        count = T.switch(value > 0.3, count * 3 + t, count // 2)
    return [x, n], [value, count]


def of_several_sizes(steps: int) -> tuple[Inputs, list[Any]]:
    """What is added has another size in each of three steps, which are one of the loop."""
    p = T.dscalar("p")
    rng = np.random.default_rng(0)
    kept: Any = p * T.ones((6,))
    for t in range(steps + 64):
        rows = rng.integers(0, 6, 2 + t % 3)
        kept = T.inc_subtensor(kept[rows], rng.normal(size=len(rows)))
    return [p], [kept]


OTHERS: dict[str, Build] = {
    each.__name__: each for each in (numbers, regions, matrices, observed, cut, singles, of_several_sizes)
}
ROLLED = {**PROGRAMS, **OTHERS}
WRITTEN_OUT = {"layers"}
"""Steps over arrays of a size that is not known, whose loops they may share."""
LARGE = {"cut", "kalman", "layers"}
"""Steps that take long to compile where they are written out."""


def values(inputs: list[Node], steps: int, seed: int) -> list[Any]:
    if {node.name for node in inputs} <= {"y", "p", "x", "n"} and all(node.ndim < 2 for node in inputs):
        return values_for(inputs, 2 * steps, seed)
    rng = np.random.default_rng(seed)
    shapes = [[size if isinstance(size, int) else steps + 3 for size in node.type.shape] for node in inputs]
    if len(inputs) == 2 and len(shapes[0]) == 2:
        shapes[0][1] = 2
    return [np.asarray(rng.normal(size=shape)) for shape in shapes]


def loops_in(results: list[Any]) -> list[Node]:
    after, _ = rewrite(Graph((), tuple(results)))
    return [node for node in nodes_of(after.outputs) if node.op is SCAN]


@pytest.mark.slow
@pytest.mark.parametrize("name", ROLLED)
def test_bits_are_those_of_steps_written_out(name: str) -> None:
    steps = 20 if name in LARGE else 40
    inputs, results = ROLLED[name](steps)
    assert bool(loops_in(results)) == (name not in WRITTEN_OUT)
    rolled = graphc.function(inputs, results)
    with options.change(excluding="equal_steps"):
        plain = graphc.function(inputs, results)
    for seed in range(2):
        given = values(inputs, steps, seed)
        with np.errstate(all="ignore"):
            for got, want in zip(rolled(*given), plain(*given), strict=True):
                assert bits(np.asarray(got)) == bits(np.asarray(want))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROLLED)
def test_every_pass_over_equal_steps(name: str) -> None:
    steps = 11
    inputs, results = ROLLED[name](steps)
    found = watch(lambda: graphc.function(inputs, results, "python"))
    check_passes(found, values(inputs, steps, 0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(14))
def test_random_steps(seed: int) -> None:
    steps = 24
    inputs, results = random_steps(seed, steps)
    rng = np.random.default_rng(seed)
    given = dict(zip(inputs, [rng.normal(size=steps), rng.normal(size=3)], strict=True))
    graph = Graph(tuple(inputs), tuple(results))
    written, _ = rewrite(graph, excluding=["equal_steps"])
    rolled, _ = rewrite(graph)
    for got, want in zip(evaluated(rolled, given), evaluated(written, given), strict=True):
        assert bits(got) == bits(want)


def evaluated(graph: Graph, given: dict[Node, Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        return [np.asarray(value) for value in interpret(graph, given)]


@pytest.mark.slow
@pytest.mark.parametrize("build", [PROGRAMS["level"], PROGRAMS["kalman"], numbers, regions, matrices, cut])
def test_what_is_made_of_equal_steps_does_not_grow_with_their_number(build: Callable[[int], Any]) -> None:
    small, large = (len(nodes_of(rewrite(Graph((), tuple(build(steps)[1])))[0].outputs)) for steps in (40, 80))
    assert large <= small + 5


def test_few_steps_stay_as_they_are() -> None:
    _, results = PROGRAMS["kalman"](6)
    assert not loops_in(results)


def test_powers_by_numbers_stay_as_they_are() -> None:
    """Machine code of a power by a number may be another than that of one by a variable."""
    x = T.dscalar("x")
    value: Any = x
    for t in range(30):
        value = T.tanh(value) + T.exp(x * value) * value ** (t + 2.5)
    assert not loops_in([value])


@pytest.mark.slow
def test_an_index_out_of_bounds_is_told_of_by_the_line_that_takes_it() -> None:
    inputs, results = PROGRAMS["level"](40)
    call = graphc.function(inputs, results, mode="python")
    with pytest.raises(IndexError, match="index 20 is out of bounds for axis 0, whose size is 20"):
        call(np.ones(20), np.ones(3))
