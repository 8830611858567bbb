"""Loops in JAX's form: structures of tensors, a number of steps that is not known, blocks carried out again."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import reduce
from inspect import unwrap
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc import lax
from graphc.errors import GradientError, GraphTypeError, GraphValueError, ShapeError
from graphc.ir.body import bodies_of
from graphc.ir.node import Node
from graphc.ir.walk import Graph, nodes_of
from graphc.rewrite import rewrite

Make = Callable[..., Any]
Point = namedtuple("Point", "q p")


def test_structures(function: Make) -> None:
    x, y = T.dvector("x"), T.dmatrix("y")

    def step(carry: Any, given: Any) -> Any:
        (total, [seen]), point = carry["a"], carry["b"]
        new = {"b": Point(point.q + given["x"], point.p), "a": (total + given["y"][0].sum(), [seen + 1])}
        return new, (given["x"] * total, {"y": given["y"][0]}, None)

    init = {"a": (T.constant(0.0), [0]), "b": Point(1.0, T.constant(2.0))}
    carry, (first, second, nothing) = lax.scan(step, init, {"x": x, "y": (y,)})
    assert list(carry) == ["a", "b"] and isinstance(carry["b"], Point) and nothing is None
    (total, [seen]), point = carry["a"], carry["b"]
    xs, ys = np.arange(1.0, 4.0), np.arange(6.0).reshape(3, 2)
    found = function([x, y], [total, seen, point.q, point.p, first, second["y"]])(xs, ys)
    expected = [15.0, 3, 7.0, 2.0, xs * [0, 1, 6], ys]
    for got, wanted in zip(found, expected, strict=True):
        npt.assert_array_equal(got, wanted)
    assert seen.dtype == "int64"


@pytest.mark.parametrize("checkpoint", [None, 2, "sqrt"])
@pytest.mark.parametrize("reverse", [False, True])
def test_reverse(function: Make, reverse: bool, checkpoint: Any) -> None:
    x = T.dvector("x")
    carry, ys = lax.scan(lambda c, x: (c * 0.5 + x, c * x), 0.0, x, reverse=reverse, checkpoint=checkpoint)
    values = np.array([1.0, 2.0, 3.0, 5.0, 7.0])
    c, rows, order = 0.0, np.zeros(5), range(5)[::-1] if reverse else range(5)
    for t in order:
        rows[t], c = c * values[t], c * 0.5 + values[t]
    last, found, gradient = function([x], [carry, ys, graphc.grad(carry, x)])(values)
    assert float(last) == c
    npt.assert_array_equal(found, rows)
    slopes = np.zeros(5)
    slopes[list(order)] = 0.5 ** np.arange(4.0, -1.0, -1.0)
    npt.assert_array_equal(gradient, slopes)


def test_length(function: Make) -> None:
    n = T.iscalar("n")
    carry, nothing = lax.scan(lambda c, _: (c * 2, None), 1, None, length=n)
    assert nothing is None and int(function([n], carry)(10)) == 1024


def test_map(function: Make) -> None:
    x = T.dmatrix("x")
    total, both = lax.map(lambda row: (row.sum(), {"twice": row * 2}), x)
    sums, twice = function([x], [total, both["twice"]])(np.arange(6.0).reshape(3, 2))
    npt.assert_array_equal(sums, [1, 5, 9])
    npt.assert_array_equal(twice, 2 * np.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (2, 5), (5, 5), (7, 5), (-3, 1)])
def test_for_loop(function: Make, lower: int, upper: int) -> None:
    a, b, x = T.iscalar("a"), T.lscalar("b"), T.dvector("x")
    known = graphc.for_loop(lower, upper, lambda i, c: (c[0] + i, c[1] * x), (0, T.ones_like(x)))
    given = graphc.for_loop(a, b, lambda i, c: (c[0] + i, c[1] * x), (0, T.ones_like(x)))
    values = np.array([1.0, 2.0, 3.0])
    steps = max(upper - lower, 0)
    slopes = steps * values ** max(steps - 1, 0)
    for total, power in (known, given):
        call = function([a, b, x], [total, power, graphc.grad(power.sum(), x)], on_unused_input="ignore")
        found = call(lower, upper, values)
        assert int(found[0]) == sum(range(lower, upper))
        npt.assert_array_equal(found[1], values**steps)
        npt.assert_allclose(found[2], slopes)
    assert unwrap(graphc.for_loop) is unwrap(lax.fori_loop)


def test_while_loop(function: Make) -> None:
    """Newton's method for a square root; the greatest common divisor; and no step at all."""
    a, m, n = T.dscalar("a"), T.lscalar("m"), T.lscalar("n")
    root = graphc.while_loop(lambda x: abs(x * x - a) > 1e-12 * a, lambda x: 0.5 * (x + a / x), a)
    npt.assert_allclose([function([a], root)(value) for value in (2.0, 1e6, 1.0)], [2**0.5, 1e3, 1.0], rtol=1e-12)
    divisor, _ = graphc.while_loop(lambda c: c[1] > 0, lambda c: (c[1], c[0] % c[1]), (m, n))
    assert [int(function([m, n], divisor)(*pair)) for pair in ((12, 18), (7, 0), (0, 7), (1071, 462))] == [6, 7, 7, 21]
    assert unwrap(lax.while_loop) is unwrap(graphc.while_loop)


def test_a_number_that_a_while_loop_begins_with_takes_the_dtype_of_its_steps(function: Make) -> None:
    x = T.dscalar("x")
    total, count = graphc.while_loop(lambda c: c[0] < x, lambda c: (c[0] * 2 + 0.5, c[1] + 1), (0, 0))
    assert total.dtype == "float64" and count.dtype == "int64"
    assert [float(v) for v in function([x], [total, count])(10.0)] == [15.5, 5.0]


def test_the_derivative_of_a_while_loop(function: Make, mode: str) -> None:
    """It is there where it needs nothing of the steps; where it does, an error says what has it."""
    x, w = T.dscalar("x"), T.dscalar("w")
    linear, _ = graphc.while_loop(lambda c: c[1] < 5, lambda c: (c[0] * w, c[1] + 1), (x, 0))
    with pytest.raises(GradientError, match=r"while_loop .*test_functional.py:\d+\): .*known only at the end; .*until"):
        graphc.grad(linear, w)
    assert float(function([x, w], graphc.grad(linear, x))(3.0, 2.0)) == 32.0


UNBOUNDED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "a constant": (
        lambda x, w: graphc.while_loop(lambda c: c[1] < 4, lambda c: (T.sin(c[0]) * w + x, c[1] + 1), (x, 0))[0],
        lambda x, w: reduce(lambda c, _: T.sin(c) * w + x, range(4), x),
    ),
    "no step": (lambda x, w: graphc.while_loop(lambda c: c.sum() > 1e9, lambda c: c * w, x * w), lambda x, w: x * w),
    "two states": (
        lambda x, w: graphc.while_loop(
            lambda c: c[2] < 3, lambda c: (c[1] * c[0], T.exp(-c[0]) + w, c[2] + 1), (x, w * x, 0)
        )[1],
        lambda x, w: reduce(lambda c, _: (c[1] * c[0], T.exp(-c[0]) + w), range(3), (x, w * x))[1],
    ),
    "within another": (
        lambda x, w: graphc.while_loop(
            lambda c: c[1] < 2,
            lambda c: (
                graphc.while_loop(lambda d: d[1] < 3, lambda d: (d[0] * d[0] * w + x, d[1] + 1), (c[0], 0))[0],
                c[1] + 1,
            ),
            (x, 0),
        )[0],
        lambda x, w: reduce(lambda c, _: c * c * w + x, range(6), x),
    ),
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_forward_products_of_a_while_loop(name: str, function: Make) -> None:
    """They are those of its steps written out, to second order, and all columns of a Jacobian."""
    loop, steps = UNBOUNDED[name]
    x, v = T.dvector("x"), T.dvector("v")
    w = T.dscalar("w")
    found: list[Node] = []
    wanted: list[Node] = []
    for build, results in ((loop, found), (steps, wanted)):
        value = build(x, w)
        along = graphc.jvp(value, [x, w], [v, T.cos(w)])
        results += [value, along, graphc.jvp(along, x, v * v), graphc.Rop(value, w, 2.0)]
    given = np.array([0.3, -0.4, 0.5]), 0.7, np.array([1.0, -2.0, 0.5])
    for one, other in zip(function([x, w, v], found)(*given), function([x, w, v], wanted)(*given), strict=True):
        npt.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    columns, others = (
        graphc.jacfwd(lambda a, build=build: build(a, T.constant(0.7)))(given[0]) for build in UNBOUNDED[name]
    )
    npt.assert_allclose(columns, others, rtol=1e-12, atol=1e-14)


def test_forward_products_of_a_while_loop_in_the_steps_of_a_scan(function: Make) -> None:
    x = T.dscalar("x")

    def step(c: Any, e: Any) -> tuple[Any, Any]:
        last = graphc.while_loop(lambda d: d[1] < 3, lambda d: (T.sin(d[0]) + x * e, d[1] + 1), (c, 0))[0]
        return last, last

    total, rows = lax.scan(step, x, T.constant([1.0, 2.0]))
    written = reduce(lambda c, e: T.sin(T.sin(T.sin(c) + x * e) + x * e) + x * e, (1.0, 2.0), x)
    products = [graphc.jvp(total + rows.sum() * 0, x, 1.0), graphc.jvp(written, x, 1.0)]
    found, wanted = function([x], products)(0.4)
    npt.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda x: lax.scan(lambda c, x: (c, x, x), 0.0, x),
            GraphTypeError,
            "must return the next carry and an output",
        ),
        (
            lambda x: lax.scan(lambda c, x: ((c[0],), x), (x, x), x),
            GraphTypeError,
            r"structure that it is given, \(\*, \*\), not \(\*,\)",
        ),
        (
            lambda x: lax.scan(lambda c, x: ({"b": c["a"]}, x), {"a": 0}, x),
            GraphTypeError,
            r"\{'a': \*\}, not \{'b': \*\}",
        ),
        (lambda x: lax.scan(lambda c, x: (c, x), 0.0, x[0]), GraphTypeError, "is a scalar, which has no elements"),
        (lambda x: lax.scan(lambda c, x: (c, None), 0.0), GraphValueError, "give length or xs"),
        (lambda x: lax.scan(lambda c, x: (c, None), 0.0, None, 2.5), GraphTypeError, "length is 2.5 .* not an integer"),
        (
            lambda x: lax.scan(lambda c, x: (c, None), 0.0, (T.zeros(3), T.zeros(4))),
            ShapeError,
            "has 4 elements, and there are 3 steps",
        ),
        (lambda x: graphc.while_loop(lambda c: c > 0, lambda c: c, x), GraphTypeError, "not a scalar"),
        (
            lambda x: graphc.while_loop(lambda c: c > 0, lambda c: c.astype("int32"), T.constant(2**40)),
            None,
            None,
        ),
        (
            lambda x: graphc.while_loop(lambda c: c > 0, lambda c: c + 0.5, T.constant(1)),
            GraphTypeError,
            r"while_loop: a state changes its type .* int64\[\], 1, .* float64\[\], .* \+ 0.5 \(.*py:\d+\); cast",
        ),
        (lambda x: graphc.for_loop(0, x, lambda i, c: c, x), GraphTypeError, "upper is x .* not an integer scalar"),
    ],
)
def test_errors(build: Callable[[Any], Any], error: Any, message: str) -> None:
    if error is None:
        build(T.dvector("x"))
        return
    with pytest.raises(error, match=message):
        build(T.dvector("x"))


def test_sequences_that_differ_in_length(function: Make) -> None:
    x, y = T.dvector("x"), T.dvector("y")
    call = function([x, y], lax.scan(lambda c, e: (c + e[0] * e[1], None), 0.0, (x, y))[0])
    assert float(call([1.0, 2.0], [3.0, 4.0])) == 11.0
    with pytest.raises(ShapeError, match="y .*has 3 elements, and there are 2 steps"):
        call([1.0, 2.0], [3.0, 4.0, 5.0])


# --- branches ---------------------------------------------------------------------------------------------------------


def test_structures_of_branches(function: Make) -> None:
    """Operands and results are structures; keys may come in another order, a Python number takes the other's dtype."""
    c, x, y = T.bscalar("c"), T.dvector("x"), T.fscalar("y")

    def double(given: Any, k: Any) -> Any:
        return {"a": Point(given["x"] * 2, k), "b": [given["y"][0], (None, 1)]}

    def square(given: Any, k: Any) -> Any:
        return {"b": [0.5, (None, k)], "a": Point(T.sqr(given["x"])[:1], k + 1)}

    result = lax.cond(c, double, square, {"x": x, "y": [y]}, 3)
    assert list(result) == ["a", "b"] and isinstance(result["a"], Point) and result["b"][1][0] is None
    assert result["b"][0].dtype == "float32"
    outputs = [*result["a"], result["b"][0], result["b"][1][1]]
    slope = graphc.grad(result["a"].q.sum(), x)
    f = function([c, x, y], [*outputs, slope])
    wanted = {1: [[2.0, 6.0], 3, 1.5, 1, [2.0, 2.0]], 0: [[1.0], 4, 0.5, 3, [2.0, 0.0]]}
    for number, expected in wanted.items():
        for got, value in zip(f(number, [1.0, 3.0], np.float32(1.5)), expected, strict=True):
            npt.assert_array_equal(got, value)


def test_switch(function: Make) -> None:
    k, x, w = T.iscalar("k"), T.dvector("x"), T.dscalar("w")
    branches = [lambda s: (s["v"] * w, s["n"]), lambda s: (T.sin(s["v"]), s["n"] + 1), lambda s: (s["v"] + w, 7)]
    value, number = lax.switch(k, branches, {"v": x, "n": T.constant(4)})
    slopes = graphc.grad(T.sqr(value).sum(), [x, w])
    again = graphc.grad(slopes[0].sum(), x)
    f = function([k, x, w], [value, number, *slopes, again])
    v = np.array([0.5, -2.0])
    for which in (-2, 0, 1, 2, 5):
        place = min(max(which, 0), 2)
        values = [v * 3.0, np.sin(v), v + 3.0][place]
        dx = 2 * values * [np.full(2, 3.0), np.cos(v), np.ones(2)][place]
        dw = [(2 * values * v).sum(), 0.0, 2 * values.sum()][place]
        second = [np.full(2, 18.0), 2 * np.cos(2 * v), np.full(2, 2.0)][place]
        for got, wanted in zip(f(which, v, 3.0), [values, [4, 5, 7][place], dx, dw, second], strict=True):
            npt.assert_allclose(got, wanted, rtol=1e-14)


def test_branches_in_the_steps_of_a_loop(function: Make) -> None:
    """A machine of three states, one of which ends a sum, in the body of a loop; and a loop in a branch."""
    x = T.dvector("x")

    def step(carry: Any, e: Any) -> Any:
        mode, total = carry
        branches = [
            lambda s: (T.where(e > 1, 1, 0), s + e),
            lambda s: (T.where(e < 0, 2, 1), s * e),
            lambda s: (2, lax.cond(e > 0, lambda t: graphc.for_loop(0, 3, lambda i, u: u + e, t), lambda t: t, s)),
        ]
        new, total = lax.switch(mode, branches, total)
        return (new, total), total

    (mode, total), rows = lax.scan(step, (T.constant(0), T.constant(0.0)), x)
    values = np.array([0.5, 1.5, 2.0, -0.5, 3.0, -1.0])
    found = function([x], [mode, rows, graphc.grad(total, x)])(values)
    assert found[0] == 2
    npt.assert_allclose(found[1], [0.5, 2.0, 4.0, -2.0, 7.0, 7.0])
    npt.assert_allclose(found[2], [-1.0, -1.0, -1.0, 4.0, 3.0, 0.0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda x: lax.cond(x[0], lambda: (x, x), lambda: [x, x]),
            r"cond: .* structure; .*returns \(\*, \*\), .* \[\*, \*\]",
        ),
        (lambda x: lax.cond(x[0], lambda v: {"a": v}, lambda v: {"b": v}, x), r"\{'a': \*\}, .*\{'b': \*\}"),
        (
            lambda x: lax.cond(x[0], lambda: x, lambda: x[0]),
            r"cond: .* same dtype and rank; one is .*, x .*float64\[\]",
        ),
        (lambda x: lax.cond(x, lambda: x, lambda: x), r"cond: the condition must be a scalar, not x"),
        (lambda x: lax.switch(0, [lambda: (x, x), lambda: x, lambda: x]), r"switch: .* \(\*, \*\), .* \*"),
        (lambda x: lax.switch(1.5, [lambda: x]), "switch, .*: the index must be an integer, not 1.5"),
        (lambda x: lax.switch(1, []), "switch, .*: there are no branches"),
    ],
)
def test_errors_of_branches(build: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((GraphTypeError, GraphValueError), match=message):
        build(T.dvector("x"))


@pytest.mark.parametrize(
    ("build", "note"),
    [
        (lambda: graphc.for_loop(0, 3, lambda carry: carry, 0.0), "for_loop calls <lambda> .* 2 arguments: i, carry"),
        (
            lambda: graphc.while_loop(lambda: 1, lambda carry: carry, 0.0),
            "while_loop calls <lambda> .* 1 argument: carry",
        ),
        (lambda: lax.scan(lambda carry: carry, 0.0, T.zeros(3)), "scan calls <lambda> .* 2 arguments: carry, x"),
        (lambda: lax.map(lambda a, b: a, T.zeros(3)), "map calls <lambda> .* 1 argument: x"),
        (lambda: lax.cond(True, lambda: 1, lambda x: x, 2.0), "cond calls <lambda> .* 1 argument: operand 0"),
        (lambda: lax.switch(1, [lambda x: x]), "switch calls <lambda> .* no arguments"),
    ],
)
def test_a_function_that_takes_other_arguments(build: Callable[[], Any], note: str) -> None:
    """The error is Python's own; a note says what calls which function, and with what."""
    with pytest.raises(TypeError, match="argument") as raised:
        build()
    assert re.fullmatch(note.replace(".*", r"\(test_functional.py:\d+\) with"), raised.value.__notes__[0])


@pytest.mark.slow
def test_branches_share_memory() -> None:
    """Only one of them runs."""
    c, x = T.bscalar("c"), T.dmatrix("x")

    def branch(number: float) -> Callable[[Any], Any]:
        return lambda v: T.dot(T.tanh(T.dot(T.tanh(T.dot(v + number, v)), v)), v).sum()

    def arena(other: Any) -> int:
        return graphc.function([c, x], lax.cond(c, branch(1.0), other, x)).memory((), (64, 64)).arena

    assert arena(branch(2.0)) == arena(lambda v: 0.0) > 64 * 64 * 8


# --- blocks that are carried out again --------------------------------------------------------------------------------


def stacks(outputs: list[Node]) -> Iterator[tuple[int, int]]:
    """How deep each loop of a graph stands within others, and how many elements each of its stacked results has."""
    pending = [(0, outputs)]
    while pending:
        depth, roots = pending.pop()
        for node in nodes_of(roots):
            if node.op.name == "scan":
                for kind in node.type.parts[node.attrs["carries"] :]:  # type: ignore[attr-defined]
                    yield depth, int(np.prod([size for size in kind.shape if isinstance(size, int)]))
            pending += [(depth + 1, list(body.results)) for body in bodies_of(node).values()]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("checkpoint", "rows"), [(None, 10_000), (100, 100), ("sqrt", 100), (10, 1_000)])
def test_how_many_rows_derivatives_keep(checkpoint: Any, rows: int, order: int) -> None:
    """Without blocks a row for each step; with blocks one for each block, and one for each step of one block."""
    x0, w = T.dscalar("x0"), T.dscalar("w")
    last = lax.scan(lambda c, _: (T.sin(c * w), None), x0, None, 10_000, checkpoint=checkpoint)[0]
    cost = last
    for _ in range(order):
        cost = graphc.grad(cost, w)
    assert max(size for _, size in stacks([cost])) == rows


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_last_row_of_blocks_keeps_no_others(order: int) -> None:
    """`scan(…)[0][-1]` is the last state as `lax.scan` gives it: of what it depends on, and of all derivatives."""
    x0, w = T.dvector("x0"), T.dscalar("w")
    rows = graphc.scan(lambda c: T.sin(c * w), outputs_info=x0, n_steps=10_000, checkpoint="sqrt")[0]
    cost = rows[-1].sum()
    for _ in range(order):
        cost = graphc.grad(cost, w)
    graph, _ = rewrite(Graph((x0, w), (cost,)))
    assert max((size for _, size in stacks(list(graph.outputs))), default=0) == (100 if order else 0)


@pytest.mark.parametrize("ended", [False, True])
def test_the_last_row_of_blocks(function: Make, ended: bool) -> None:
    """Of a number of steps that is not known, to the end and until a step says so; none of no steps."""
    n, x0, y = T.lscalar("n"), T.dvector("x0"), T.dvector("y")

    def step(c: Any) -> Any:
        return (c * x0 + 1.0, graphc.until(c.sum() > 20.0)) if ended else c * x0 + 1.0

    def results(**how: Any) -> list[Any]:
        rows = graphc.scan(step, outputs_info=x0, n_steps=n, **how)[0]
        updated = T.set_subtensor(rows[-1], y)
        return [rows[-1], graphc.grad(rows[-1].sum(), x0), updated.sum(0), graphc.grad(T.sqr(updated).sum(), x0)]

    call = function([n, x0, y], [*results(), *results(checkpoint=3)])
    for count in (1, 3, 8):
        values = call(count, np.array([1.1, 0.9]), np.array([2.0, 3.0]))
        for plain, blocks in zip(values[:4], values[4:], strict=True):
            np.testing.assert_allclose(blocks, plain, rtol=1e-13)
    with pytest.raises(IndexError, match="out of bounds for axis 0"):
        call(0, np.ones(2), np.ones(2))


@pytest.mark.slow
def test_what_is_said_of_a_loop() -> None:
    """What was taken out of it, what all its steps take from one product, and what is kept of them, for whom."""
    x, w, b = T.dmatrix("x"), T.dmatrix("w"), T.dvector("b")
    last, _ = lax.scan(lambda h, e: (T.tanh(T.dot(h, w) + T.dot(e, w) + T.exp(b)), None), b, x)
    said = graphc.function([x, w, b], last).explain()
    assert "computed once, for no step changes it: exp(b)" in said
    assert "computed before, for all steps at once: x @ w" in said
    assert "of the steps nothing is kept but the last states" in said
    said = graphc.function([x, w, b], graphc.grad(last.sum(), w)).explain()
    assert re.search(r"of each step tanh\(.*\) .* is kept for nest \d+", said)
    assert re.search("of each step the state before it is kept for nest", said)


@pytest.mark.slow
def test_the_memory_of_a_derivative() -> None:
    """Of 10,000 steps with a state of 32 numbers: 7.7 MB without blocks, rows for 100 blocks and for 100 steps with."""
    h0, w = T.dvector("h0"), T.dmatrix("w")
    last = lax.scan(lambda h, _: (T.tanh(T.dot(h, w)), None), h0, None, 10_000, checkpoint="sqrt")[0]
    slope = graphc.function([h0, w], graphc.grad(last.sum(), w), mode="compiled")
    assert slope.memory((32,), (32, 32)).arena < 150_000


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [7, "sqrt"])
def test_blocks_of_a_number_of_steps_that_is_not_known(function: Make, checkpoint: Any) -> None:
    n, w = T.iscalar("n"), T.dscalar("w")

    def outputs(**how: Any) -> list[Node]:
        last, ys = lax.scan(lambda c, _: (T.sin(c * w) + w, c), 0.5, None, n, **how)
        return [last, ys, graphc.grad(last + (ys * ys).sum(), w)]

    call = function([n, w], [*outputs(), *outputs(checkpoint=checkpoint)])
    for steps in (0, 1, 6, 7, 8, 49, 50):
        found = call(steps, 0.9)
        for plain, blocks in zip(found[:3], found[3:], strict=True):
            npt.assert_allclose(blocks, plain, rtol=1e-12)


@pytest.mark.parametrize("checkpoint", [0, -1, 2.5, True, "cube"])
def test_a_block_that_cannot_be(checkpoint: Any) -> None:
    with pytest.raises(GraphValueError, match="a number of steps from 1 on, or 'sqrt'"):
        graphc.scan(lambda s: s + 1, None, 0, n_steps=3, checkpoint=checkpoint)


def test_what_is_not_there_says_what_serves() -> None:
    assert {"cond", "fori_loop", "map", "scan", "switch", "while_loop", "dynamic_slice", "expm1"} < {*dir(lax)}
    for name, message in {
        "psum": "no axes of devices",
        "sinn": "dir.lax. lists",
    }.items():
        with pytest.raises(AttributeError, match=f"'graphc.lax' has no attribute '{name}': .*{message}"):
            getattr(lax, name)
