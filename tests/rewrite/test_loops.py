"""Passes over loops: what they make, and that it computes what the graph as written does, derivatives included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import graphc
import graphc.tensor as T
from graphc.autodiff import grad
from graphc.errors import GraphcError, IndexOutOfBounds
from graphc.ir.body import close, item
from graphc.ir.interpret import interpret
from graphc.ir.node import Array, Node, next_serial, variable
from graphc.ir.verify import verify
from graphc.ir.walk import Graph, nodes_of
from graphc.ops.scan import Loop, loop_of, scan_node
from graphc.options import options
from graphc.rewrite import PIPELINE, rewrite
from graphc.rewrite.loops import LOOPS
from tests.support.counting import assert_linear

CLOSE = ("batch_products", "sum_of_products", "project_rows", "recurrence", "expensive_sums")
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
    after, _ = rewritten(inputs, outputs)
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


RNG = np.random.default_rng(0)


def draw(*shape: int) -> Array:
    return np.asarray(RNG.normal(size=shape) * 0.5)


# --- one pass after the other -----------------------------------------------------------------------------------------


def recurrent(batch: bool = False) -> tuple[list[Any], Any]:
    """The inputs and the rows of a recurrent network."""
    x: Any = T.dtensor3("x") if batch else T.dmatrix("x")
    h0: Any = T.dmatrix("h0") if batch else T.dvector("h0")
    w, u, b = T.dmatrix("w"), T.dmatrix("u"), T.dvector("b")
    rows, _ = graphc.scan(lambda x_t, h: T.tanh(T.dot(x_t, w) + T.dot(h, u) + b), sequences=x, outputs_info=h0)
    return [x, h0, w, u, b], rows


def recurrent_values(steps: int, batch: bool = False) -> list[Array]:
    outer = (2,) if batch else ()
    return [draw(steps, *outer, 3), draw(*outer, 4), draw(3, 4), draw(4, 4), draw(4)]


@pytest.mark.slow
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_recurrent_network_and_its_gradients(steps: int, batch: bool) -> None:
    inputs, rows = recurrent(batch)
    for cost in (rows, rows[-1]):
        check(inputs, with_gradients([cost], inputs), recurrent_values(steps, batch))


@pytest.mark.parametrize("batch", [False, True])
def test_the_gradient_of_a_recurrent_network_is_one_loop_forward_and_one_back(batch: bool) -> None:
    inputs, rows = recurrent(batch)
    after, fired = rewritten(inputs, grad(T.sqr(rows[-1]).sum(), inputs))
    forward, backward = loops(after.outputs)
    assert {"join_loops", "first_row", "batch_products", "sum_of_products", "project_rows"} <= fired
    products = [[node.op.name for node in nodes_of(loop.body.results)].count("matmul") for loop in (forward, backward)]
    vectors = [[node.op.name for node in nodes_of(loop.body.results)].count("gemm") for loop in (forward, backward)]
    assert [a + b for a, b in zip(products, vectors, strict=True)] == [1, 1]  # with the state alone
    assert len(forward.initial) == len(backward.initial) == 1  # nothing is summed step by step
    assert len(backward.sequences) == 1  # nor are zeros stored for the rows that the cost does not take


def test_two_gradients_of_one_loss_share_their_loops() -> None:
    inputs, rows = recurrent()
    cost = T.sqr(rows).sum()
    both = [grad(cost, inputs[2]), grad(cost, inputs[3])]
    after, fired = rewritten(inputs, both)
    assert len(loops(after.outputs)) == 2 and "join_loops" in fired
    check(inputs, both, recurrent_values(4))


def test_operands_that_a_body_does_not_need_go() -> None:
    x, y, c = T.dvector("x"), T.dvector("y"), T.dvector("c")
    rows, _ = graphc.scan(
        lambda a, b, s: T.tanh(s * a) + T.zeros_like(b) + T.zeros_like(c).sum(), [x, y], T.constant(1.0)
    )
    before, after = loops([rows]), loops(rewritten([x, y, c], [rows], RULES_OFF)[0].outputs)
    assert len(before[0].operands) > len(after[0].operands)


def test_operands_that_are_twice_the_same_are_one() -> None:
    x, h = T.dvector("x"), T.dscalar("h")
    rows, _ = graphc.scan(lambda a, b, s: T.tanh(s * a) + b, [x, x], h)
    after, _ = rewritten([x, h], [rows], only("loop_operands"))
    assert len(loops(after.outputs)[0].sequences) == 1
    check([x, h], with_gradients([rows], [x, h]), [draw(4), draw()])


def test_bodies_are_rewritten() -> None:
    x, h = T.dvector("x"), T.dscalar("h")
    rows, _ = graphc.scan(lambda a, s: T.log(1 + T.exp(s)) * a, x, h)
    _, fired = rewritten([x, h], [rows])
    assert "softplus" in fired
    assert "softplus" not in rewritten([x, h], [rows], ["softplus"])[1]
    assert "softplus" not in rewritten([x, h], [rows], ["loop_bodies"])[1]
    check([x, h], [rows], [draw(3), draw()])


def test_sizes_that_become_known_are_numbers_in_the_body() -> None:
    x = T.TensorType("float64", (None, 3))("x")
    h0 = T.zeros((3,))
    rows, _ = graphc.scan(lambda a, s: T.tanh(s + a * T.sum(s)), x, h0)
    (loop,) = loops(rewritten([x], [rows])[0].outputs)
    assert all(param.type.shape in ((), (3,)) for param in loop.body.params)


def test_results_that_nobody_takes_go_with_what_they_need() -> None:
    x, y, h, g = T.dvector("x"), T.dvector("y"), T.dscalar("h"), T.dscalar("g")

    def step(a: Any, b: Any, s: Any, r: Any) -> Any:
        return T.tanh(s + a), T.tanh(r * b), a * s, T.exp(b)

    (first, *_), _ = graphc.scan(step, [x, y], [h, g, None, None])
    after, fired = rewritten([x, y, h, g], [first], only("loop_results"))
    (loop,) = loops(after.outputs)
    assert (len(loop.sequences), len(loop.initial), len(loop.outputs)) == (1, 1, 1)
    assert fired == {"loop_results"}
    check([x, y, h, g], [first], [draw(3), draw(3), draw(), draw()])


def test_a_state_that_until_needs_stays() -> None:
    x, h = T.dvector("x"), T.dscalar("h")

    def step(a: Any, s: Any) -> Any:
        return [s + T.abs_(a), a * 2], graphc.until(s > 1.0)

    (_, doubled), _ = graphc.scan(step, x, [h, None])
    (loop,) = loops(rewritten([x, h], [doubled])[0].outputs)
    assert len(loop.initial) == 1 and loop.repeat.until
    for start in (0.0, 5.0):
        check([x, h], with_gradients([doubled], [x]), [np.ones(6), np.asarray(start)])


def test_the_last_row_of_a_state_is_its_last_value() -> None:
    x, h = T.dmatrix("x"), T.dvector("h")
    rows, _ = graphc.scan(lambda a, s: T.tanh(s * a + s), x, h)
    after, fired = rewritten([x, h], [rows[-1]], only("last_row"))
    (loop,) = loops(after.outputs)
    assert not loop.outputs and fired == {"last_row"}
    assert loops(rewritten([x, h], [rows[-1], rows])[0].outputs)[0].outputs
    assert loops(rewritten([x, h], [rows[-2]])[0].outputs)[0].outputs
    for steps in (1, 4):
        check([x, h], [rows[-1], rows[-1, 0]], [draw(steps, 3), draw(3)])


def test_the_last_row_of_what_is_no_state_becomes_one() -> None:
    x, h = T.dvector("x"), T.dscalar("h")
    (_, other), _ = graphc.scan(lambda a, s: [T.tanh(s + a), s * a], x, [h, None])
    (loop,) = loops(rewritten([x, h], [other[-1]])[0].outputs)
    assert len(loop.initial) == 2 and not loop.outputs
    check([x, h], [other[-1]], [draw(4), draw()])


def test_the_last_row_of_no_steps_is_an_error_as_before() -> None:
    x, h = T.dvector("x"), T.dscalar("h")
    rows, _ = graphc.scan(lambda a, s: T.tanh(s + a), x, h)
    f = graphc.function([x, h], rows[-1], mode="interpreted")
    with pytest.raises(IndexOutOfBounds):
        f(np.zeros(0), 1.0)


def test_the_last_row_of_a_loop_that_ends_by_itself() -> None:
    x, h = T.dvector("x"), T.dscalar("h")
    rows, _ = graphc.scan(lambda a, s: (s + a, graphc.until(s > 1.0)), x, h)
    after, fired = rewritten([x, h], [rows[-1], grad(rows[-1], h)])
    assert "last_row" in fired and not loops(after.outputs)[0].outputs
    for values in ([np.ones(5), np.asarray(0.0)], [np.ones(5), np.asarray(7.0)], [np.zeros(3), np.asarray(0.0)]):
        check([x, h], [rows[-1], *grad(rows[-1], [x, h])], values)


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_of_steps_that_are_not_taken_are_zeros(reverse: bool) -> None:
    x, h, limit = T.dvector("x"), T.dscalar("h"), T.lscalar("limit")
    a, s = variable("float64", ()), variable("float64", ())
    body, fixed = close([a, s], [T.tanh(s + a), T.tanh(s + a), T.exp(a)])
    node = scan_node(x.type.shape[0], body, [x], [h], fixed, reverse=reverse, limit=limit)
    rows: list[Any] = [item(node, 1), item(node, 2)]
    outputs = [item(node, 0), *(row[place] for row in rows for place in (0, -1)), rows[1]]
    for most in (-1, 0, 2, 4, 9):
        check([x, h, limit], outputs, [draw(4), draw(), np.asarray(most)])
        check([x, h, limit], [row[0 if reverse else -1] for row in rows], [draw(4), draw(), np.asarray(most)])


def test_a_loop_that_derivatives_carry_out_again_is_joined_with_its_like_alone() -> None:
    x, h = T.dvector("x"), T.dscalar("h")
    a, s = variable("float64", ()), variable("float64", ())
    bodies = [close([a, s], [T.tanh(s + a), made]) for made in (T.exp(a + s), T.sin(a * s))]
    kept = [scan_node(x.type.shape[0], body, [x], [h], fixed, recomputed=False) for body, fixed in bodies]
    again = [scan_node(x.type.shape[0], body, [x], [h], fixed, recomputed=True) for body, fixed in bodies]
    results = [item(node, place) for node in (*kept, *again) for place in (0, 1)]
    after = check([x, h], results, [draw(4), draw()])
    assert sorted(loop.recomputed for loop in loops(after.outputs)) == [False, True]


def test_other_rows_and_other_beginnings_stay() -> None:
    x, h, r = (T.TensorType("float64", shape)(name) for name, shape in [("x", (None, 2)), ("h", (2,)), ("r", (2,))])
    rows, _ = graphc.scan(lambda a, s: T.tanh(s * a + s), x, h)
    check([x, h], [*grad(rows[-2].sum(), [x, h]), *grad(rows[1].sum(), [x, h])], [draw(4, 2), draw(2)])
    sequence = T.inc_subtensor(T.zeros_like(x)[0], r)
    for begin in (h, T.zeros_like(h)):
        ends, _ = graphc.scan(lambda a, s: T.tanh(s + a), sequence, begin)
        assert ("first_row" in rewritten([x, h, r], [ends[-1]])[1]) == (begin is not h)
        check([x, h, r], [ends[-1]], [draw(4, 2), draw(2), draw(2)])


def test_a_row_for_which_there_is_no_step() -> None:
    x, h, r, count = T.dvector("x"), T.dscalar("h"), T.dscalar("r"), T.lscalar("count")
    sequence = T.inc_subtensor(T.zeros_like(x)[0], r)
    rows, _ = graphc.scan(lambda a, s: T.tanh(s + a), sequence, T.constant(0.0), n_steps=count)
    (node,) = [node for node in nodes_of([rows]) if node.op.name == "scan"]
    for steps in (0, 1, 3):
        check([x, h, r, count], [item(node, 0)], [draw(3), draw(), draw(), np.asarray(steps)])


def test_backwards_the_last_step_makes_the_first_row() -> None:
    """The loop back of a loss on the last state reads no zeros; its own first row is its last value."""
    x, h = T.dmatrix("x"), T.dvector("h")
    rows, _ = graphc.scan(lambda a, s: T.tanh(s * a), x, h)
    gradient = grad(rows[-1].sum(), x)
    after, fired = rewritten([x, h], [gradient[0]])
    assert {"first_row", "last_row"} <= fired
    assert not any(loop.outputs for loop in loops(after.outputs) if loop.repeat.reverse)
    check([x, h], [gradient, gradient[0]], [draw(4, 3), draw(3)])


def test_minus_zero_is_added_as_before() -> None:
    x = T.dvector("x")
    h = T.dscalar("h")
    rows, _ = graphc.scan(lambda a, s: s * a, x, h)
    inverse = 1.0 / grad(rows[-1] * -1.0, h)
    for values in ([np.asarray([0.0, 1.0]), np.asarray(1.0)], [np.asarray([-0.0, 0.0]), np.asarray(1.0)]):
        check([x, h], [inverse], values)


def test_what_no_step_changes_is_computed_outside() -> None:
    x, c, h = T.dvector("x"), T.dvector("c"), T.dscalar("h")
    rows, _ = graphc.scan(lambda a, s: T.tanh(s + a) + T.exp(c).sum(), x, h)
    (loop,) = loops(rewritten([x, c, h], [rows])[0].outputs)
    assert not [node for node in nodes_of(loop.body.results) if node.op.name in ("exp", "sum")]


def test_a_state_that_no_step_changes_is_a_constant() -> None:
    x, h, c = T.dvector("x"), T.dscalar("h"), T.dscalar("c")
    (rows, same), _ = graphc.scan(lambda a, s, r: [T.tanh(s * r + a), r], x, [h, c])
    after, fired = rewritten([x, h, c], [rows, same[-1]])
    assert "constant_states" in fired and len(loops(after.outputs)[0].initial) == 1
    check([x, h, c], with_gradients([rows, same], [x, h, c]), [draw(3), draw(), draw()])


@pytest.mark.slow
def test_products_of_elements_are_one_product() -> None:
    x, w, h = T.dmatrix("x"), T.dmatrix("w"), T.dvector("h")
    z, v = T.dtensor3("z"), T.dvector("v")

    def step(a: Any, b: Any, s: Any) -> Any:
        left = T.dot(T.tanh(a) * v, w) + T.dot(w.T, a)
        return T.tanh(s + left + T.dot(b, w).sum(0) + T.dot(b, v).sum())

    rows, _ = graphc.scan(step, [x, z], h)
    after, fired = rewritten([x, w, h, z, v], [rows], only("batch_products", "loop_operands"))
    (loop,) = loops(after.outputs)
    assert "batch_products" in fired
    assert not [node for node in nodes_of(loop.body.results) if node.op.name == "matmul"]
    for steps in (0, 1, 3):
        values = [draw(steps, 4), draw(4, 4), draw(4), draw(steps, 2, 4), draw(4)]
        check([x, w, h, z, v], with_gradients([rows], [x, w, z, v], twice=steps == 3), values)


@pytest.mark.slow
def test_products_with_a_state_stay() -> None:
    x, w, h = T.dmatrix("x"), T.dmatrix("w"), T.dvector("h")
    rows, _ = graphc.scan(lambda a, s: T.dot(a * s, w), x, h)
    _, fired = rewritten([x, w, h], [rows])
    assert "batch_products" not in fired
    check([x, w, h], with_gradients([rows], [x, w, h]), [draw(3, 2), draw(2, 2), draw(2)])


@pytest.mark.slow
def test_products_of_a_loop_that_may_end_early_stay() -> None:
    x, w, h = T.dmatrix("x"), T.dmatrix("w"), T.dvector("h")
    rows, _ = graphc.scan(lambda a, s: (T.tanh(s + T.dot(a, w)), graphc.until(s.sum() > 0.5)), x, h)
    outputs = with_gradients([rows], [w, x, h])
    _, fired = rewritten([x, w, h], outputs)
    assert not fired & {"batch_products", "sum_of_products"}
    values = [draw(5, 2), draw(2, 2), np.ones(2)]
    values[0][3] = np.inf  # of a step that is not taken
    check([x, w, h], outputs, values)


def test_a_sum_of_products_is_one_product() -> None:
    x, y, z, m = T.dmatrix("x"), T.dmatrix("y"), T.dtensor3("z"), T.dmatrix("m")

    def step(a: Any, b: Any, c: Any, s: Any, r: Any, q: Any) -> Any:
        return s + T.outer(a, b), T.dot(c.T, c) + r, q + T.dot(c, a)

    (outer, square, vector), _ = graphc.scan(step, [x, y, z], [m, T.zeros((2, 2)), T.zeros((3,))])
    ends = [outer[-1], square[-1], vector[-1]]
    after, fired = rewritten([x, y, z, m], ends)
    assert "sum_of_products" in fired and not loops(after.outputs)
    for steps in (1, 4):
        check([x, y, z, m], ends, [draw(steps, 2), draw(steps, 4), draw(steps, 3, 2), draw(2, 4)])


def test_a_sum_of_products_of_what_had_more_axes_of_size_1() -> None:
    column, matrix = T.TensorType("float64", (False, False, True)), T.TensorType("float64", (False, False, False, True))
    x, y, z = column("x"), T.dmatrix("y"), matrix("z")

    def step(a: Any, b: Any, c: Any, s: Any, r: Any, q: Any) -> Any:
        vector, turned = a.dimshuffle(0), c.dimshuffle(1, 0)
        return s + T.outer(vector, b), r + T.outer(b, vector), q + T.dot(turned, c.dimshuffle(0, 1))

    begin = [T.zeros((2, 4)), T.zeros((4, 2)), T.zeros((3, 3))]
    ends = [rows[-1] for rows in graphc.scan(step, [x, y, z], begin)[0]]
    after, fired = rewritten([x, y, z], ends)
    assert "sum_of_products" in fired and not loops(after.outputs)
    for steps in (1, 4):
        check([x, y, z], ends, [draw(steps, 2, 1), draw(steps, 4), draw(steps, 2, 3, 1)])


@pytest.mark.slow
def test_products_of_pieces_whose_sizes_change_stay_in_the_steps() -> None:
    x, w, ends = T.dmatrix("x"), T.dmatrix("w"), T.lvector("ends")
    values = [draw(6, 3), draw(3, 2), np.array([0, 2, 3, 6])]

    def squares(begin: Any, end: Any, total: Any) -> Any:
        piece = T.dot(x[begin:end], w)
        return total + T.dot(piece.T, piece)

    def scores(begin: Any, end: Any, scale: Any) -> Any:
        piece = T.tanh(x[begin:end] * scale)
        return piece.sum(), T.dot(piece, w).sum(axis=0)

    bounds = [ends[:-1], ends[1:]]
    total = graphc.reduce(squares, bounds, T.zeros((2, 2)))[0]
    (scale, score), _ = graphc.scan(scores, bounds, [T.constant(1.0), None])
    alone = graphc.map(lambda begin, end: T.dot(x[begin:end], w).sum(axis=0), bounds)[0]
    for outputs in ([total], [scale, score], [alone]):
        after, fired = rewritten([x, w, ends], outputs)
        assert len(loops(after.outputs)) == 1 and fired.isdisjoint({"sum_of_products", "project_rows"})
        check([x, w, ends], with_gradients(outputs, [x, w]), values)


@pytest.mark.slow
def test_what_a_network_gives_at_each_step_is_one_product() -> None:
    inputs, rows = recurrent()
    v, c = T.dmatrix("v"), T.dvector("c")
    x, h0, w, u, b = inputs

    def step(x_t: Any, h: Any) -> Any:
        after = T.tanh(T.dot(x_t, w) + T.dot(h, u) + b)
        return after, T.nnet.softmax(T.dot(after, v) + c)

    (_, given_), _ = graphc.scan(step, x, [h0, None])
    after, fired = rewritten([*inputs, v, c], [given_])
    assert "project_rows" in fired
    (loop,) = loops(after.outputs)
    assert len(loop.outputs) == 1 and not [node for node in nodes_of(loop.body.results) if node.op.name == "exp"]
    assert "project_rows" in rewritten([*inputs, v, c], [grad(T.sqr(rows).sum(), x)])[1]
    for steps in (0, 1, 4):
        values = [*recurrent_values(steps), draw(4, 3), draw(3)]
        check([*inputs, v, c], with_gradients([given_], [*inputs, v, c], twice=False), values)


@pytest.mark.slow
def test_a_loop_without_states_needs_none() -> None:
    x, y, v = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v")
    rows, _ = graphc.map(lambda a, b: T.dot(a, b) * T.exp(a - a.max()).sum() + T.dot(v, b), [x, y])
    after, fired = rewritten([x, y, v], [rows])
    assert "project_rows" in fired and not loops(after.outputs)
    for steps in (0, 1, 3):
        check([x, y, v], with_gradients([rows], [x, y, v]), [draw(steps, 4), draw(steps, 4), draw(4)])


def test_new_nodes_stand_for_the_line_of_the_loop() -> None:
    start = next_serial()  # bodies that other loops have too are older
    inputs, rows = recurrent()
    x, h = T.dmatrix("x"), T.dvector("h")
    other, _ = graphc.scan(lambda a, s: T.tanh(s * a), T.exp(x) + x, h)
    outputs = [*grad(T.sqr(rows[-1]).sum(), inputs), other]
    after, _ = rewritten([*inputs, x, h], outputs)
    found = [*nodes_of(after.outputs), *(node for loop in loops(after.outputs) for node in nodes_of(loop.body.results))]
    own = {each.where.line for each in nodes_of(outputs) if each.where is not None}
    own |= {
        each.where.line for loop in loops(outputs) for each in nodes_of(loop.body.results) if each.where is not None
    }
    new = [node for node in found if node.args and node.where is not None and node.serial > start]
    made = [node for node in new if node.where is not None and node.where.line not in own]
    assert not made


@pytest.mark.slow
def test_outputs_that_need_what_states_do_not_store_stay() -> None:
    x, h, w = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w")

    def step(a: Any, s: Any, r: Any) -> Any:
        return T.tanh(s * r), T.exp(-T.sqr(r)) * a, T.dot(s * r, w) + T.dot(T.exp(-T.sqr(r)), w)

    (_, _, rows), _ = graphc.scan(step, x, [h, h, None])
    after, fired = rewritten([x, h, w], [rows])
    assert "project_rows" not in fired and len(loops(after.outputs)) == 1
    check([x, h, w], with_gradients([rows], [x, h, w]), [draw(3, 2), draw(2), draw(2, 2)])


@pytest.mark.slow
def test_outputs_of_elements_alone_are_computed_outside() -> None:
    x, c = T.dmatrix("x"), T.dvector("c")
    rows, _ = graphc.map(lambda a: T.exp(a) * c, x)
    after, fired = rewritten([x, c], with_gradients([rows], [x, c]))
    assert "rows_outside" in fired and not loops(after.outputs)
    for steps in (0, 1, 3):
        check([x, c], with_gradients([rows], [x, c]), [draw(steps, 2), draw(2)])


def test_a_running_sum() -> None:
    x, h = T.dmatrix("x"), T.dvector("h")
    rows, _ = graphc.scan(lambda a, s: s + a, x, h)
    after, fired = rewritten([x, h], [rows, *grad(T.sqr(rows).sum(), [x, h])])
    names = [node.op.name for node in nodes_of(after.outputs)]
    assert "recurrence" in fired and "scan" not in names and names.count("running_sum") == 2
    for steps in (0, 1, 4):
        check([x, h], with_gradients([rows], [x, h]), [draw(steps, 2), draw(2)])
    check([x, h], [rows], [np.asarray([[np.inf, 1.0], [-np.inf, np.nan]]), draw(2)])


@pytest.mark.slow
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("initial", [None, "h"])
def test_a_linear_recurrence(backwards: bool, initial: str | None) -> None:
    a, b, h = T.dmatrix("a"), T.dmatrix("b"), T.dvector("h")
    begin = h if initial else T.zeros((2,))
    rows, _ = graphc.scan(lambda f, t, s: t + s * f, [a, b], begin, go_backwards=backwards)
    outputs = with_gradients([T.tanh(rows)], [a, b, *([h] if initial else [])])
    after, fired = rewritten([a, b, h], [rows])
    assert "recurrence" in fired and not loops(after.outputs)
    for steps in (0, 1, 4):
        check([a, b, h], outputs, [draw(steps, 2), draw(steps, 2), draw(2)])


@pytest.mark.slow
@pytest.mark.parametrize("backwards", [False, True])
def test_recurrences_of_infinities_nans_and_zeros(backwards: bool) -> None:
    """NaN, infinities and signs of zeros are those of the steps: of the first too, which takes the initial value."""
    numbers = [2.0, -1.5, 0.0, -0.0, np.inf, -np.inf, np.nan]
    cases = np.array(list(product(numbers, numbers, numbers, numbers, [0.5, -0.0])))
    factors, terms, begins = cases[:, [0, 4]].T, cases[:, [1, 3]].T, cases[:, 2]
    a, b, h = T.dmatrix("a"), T.dmatrix("b"), T.dvector("h")

    def scaled(c: float, late: bool, f: Any, t: Any, s: Any) -> Any:
        return c * (s + t) if late else c * s + t

    steps: list[Callable[..., Any]] = [lambda f, t, s: f * s + t, lambda f, t, s: f * (s + t), lambda f, t, s: s + t]
    steps += [partial(scaled, c, late) for c in (0.5, -2.0, np.inf) for late in (False, True)]
    begin_as = [h, T.zeros_like(h)]
    results = [graphc.scan(step, [a, b], begin, go_backwards=backwards)[0] for step in steps for begin in begin_as]
    results += [graphc.scan(steps[2], [a, b], begin, go_backwards=backwards)[0][-1] for begin in begin_as]
    assert not loops(rewritten([a, b, h], results)[0].outputs)
    want, got = (graphc.function([a, b, h], results, mode)(factors, terms, begins) for mode in ("interpreted", None))
    for right, value in zip(want, got, strict=True):
        np.testing.assert_array_equal(value, right)
        here = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(value[here]), np.signbit(right[here]))


def test_a_recurrence_of_which_only_the_end_is_taken_stays_a_loop() -> None:
    a, h, x = T.dvector("a"), T.dvector("h"), T.dvector("x")
    rows, _ = graphc.scan(lambda c, s: s * x + c, a, h)
    after, _ = rewritten([a, h, x], [rows[-1]])
    assert len(loops(after.outputs)) == 1
    check([a, h, x], with_gradients([rows[-1]], [a, x]), [draw(4), draw(3), draw(3)])


@pytest.mark.slow
def test_loops_over_the_same_steps_are_one() -> None:
    x, y, h = T.dmatrix("x"), T.dmatrix("y"), T.dvector("h")
    first, _ = graphc.scan(lambda a, s: T.tanh(s + a), x, h)
    second, _ = graphc.scan(lambda a, s: T.exp(-T.sqr(s)) * a, y, h, n_steps=x.shape[0])
    after, fired = rewritten([x, y, h], [first, second])
    assert "fuse_loops" in fired and len(loops(after.outputs)) == 1
    outputs = with_gradients([first, second], [x, y, h])
    for steps in (0, 1, 3):
        check([x, y, h], outputs, [draw(steps, 2), draw(steps + 1, 2), draw(2)])


def test_loops_of_which_one_needs_the_other_stay_apart() -> None:
    x, h = T.dmatrix("x"), T.dvector("h")
    first, _ = graphc.scan(lambda a, s: T.tanh(s + a), x, h)
    second, _ = graphc.scan(lambda a, s: T.tanh(s * a), first[::-1] + 1.0, h)
    third, _ = graphc.scan(lambda a, s: T.tanh(s - a), x, h)
    fourth, _ = graphc.scan(lambda a, s: T.exp(-T.sqr(s)) + a, third + second.sum(), h)
    after, _ = rewritten([x, h], [first, second, third, fourth])
    assert len(loops(after.outputs)) == 3  # the third with the first or the second
    check([x, h], with_gradients([first, second, third, fourth], [x, h], twice=False), [draw(3, 2), draw(2)])


def test_loops_are_not_joined_in_a_circle() -> None:
    """Of two pairs that could each be one loop: one of each needs one of the other."""
    x, y, h = T.dmatrix("x"), T.dmatrix("y"), T.dvector("h")
    one, _ = graphc.scan(lambda a, s: T.tanh(s + a), x, h)
    other, _ = graphc.scan(lambda a, s: T.tanh(s + a), y, h)
    after_other, _ = graphc.scan(lambda a, s: T.exp(-s * s) * a, x, other[-1])
    after_one, _ = graphc.scan(lambda a, s: T.exp(-s * s) * a, y, one[-1])
    after, _ = rewritten([x, y, h], [after_one, after_other])
    assert len(loops(after.outputs)) == 3
    check([x, y, h], [after_one, after_other], [draw(3, 2), draw(2, 2), draw(2)])


def test_loops_that_end_at_other_steps_stay_apart() -> None:
    x, h = T.dvector("x"), T.dscalar("h")

    def until(bound: float) -> Any:
        return graphc.scan(lambda a, s: (s + a, graphc.until(s + a > bound)), x, h)[0]

    check([x, h], [until(1.0), until(2.0), until(1.0) * 2], [np.ones(6) * 0.6, np.asarray(0.0)])
    assert len(loops(rewritten([x, h], [until(1.0), until(2.0), until(1.0) * 2])[0].outputs)) == 2


def test_sequences_may_be_longer_than_the_steps() -> None:
    x, w, h = T.dmatrix("x"), T.dmatrix("w"), T.dvector("h")
    count = x.shape[0] - 2
    rows, _ = graphc.scan(lambda a, s: [T.tanh(s + T.dot(a, w)), T.exp(a)], x, [h, None], n_steps=count)
    sums, _ = graphc.scan(lambda a, s: s + a, x, h, n_steps=count)
    _, fired = rewritten([x, w, h], [*rows, sums])
    assert {"batch_products", "rows_outside", "recurrence"} <= fired
    outputs = with_gradients([*rows, sums, sums[-1]], [x, w, h], twice=False)
    check([x, w, h], outputs, [draw(5, 2), draw(2, 2), draw(2)])


@pytest.mark.slow
def test_elementwise_sequences_are_computed_in_the_steps() -> None:
    x, c, h = T.dmatrix("x"), T.dvector("c"), T.dvector("h")
    sequence = (x + 1.0) * T.exp(c)
    rows, _ = graphc.scan(lambda a, s: T.tanh(s * a), sequence, h)
    after, fired = rewritten([x, c, h], [rows])
    (loop,) = loops(after.outputs)
    assert "sink_elementwise" in fired and loop.sequences == (x,)
    assert loops(rewritten([x, c, h], [rows, sequence])[0].outputs)[0].sequences != (x,)  # stored anyway
    for steps in (0, 1, 3):
        check([x, c, h], with_gradients([rows], [x, c, h]), [draw(steps, 2), draw(2), draw(2)])


def test_what_costs_much_stays_outside_where_a_step_has_no_vectors() -> None:
    x, h = T.dvector("x"), T.dscalar("h")
    rows, _ = graphc.scan(lambda a, s: T.abs_(s * a - 1), T.exp(x) + 1, h)
    (loop,) = loops(rewritten([x, h], [rows])[0].outputs)
    assert loop.sequences[0].op.name == "exp"
    check([x, h], [rows], [draw(3), draw()])


@pytest.mark.slow
def test_what_costs_much_moves_outside_where_what_it_is_made_of_is_stored() -> None:
    x, h = T.dvector("x"), T.dscalar("h")

    def step(a: Any, s: Any) -> Any:
        total = T.exp(s * a)
        return s * a / total, T.log(total + 0.5) + T.sqr(a) / total, total

    (states, costs, totals), _ = graphc.scan(step, x, [h, None, None])
    after, fired = rewritten([x, h], [costs.sum(), totals, states])
    (loop,) = loops(after.outputs)
    assert "expensive_rows" in fired and all(node.op.name != "log" for node in nodes_of(loop.body.results))
    assert "expensive_rows" not in rewritten([x, h], [costs.sum(), states])[1]  # another array would be stored for it
    for steps in (0, 1, 4):
        check([x, h], with_gradients([costs, totals, states], [x, h]), [draw(steps), draw()])


@pytest.mark.slow
def test_sums_of_expensive_functions_of_other_states() -> None:
    x, h = T.dvector("x"), T.dscalar("h")

    def step(a: Any, s: Any, total: Any) -> Any:
        s = 0.1 + 0.2 * T.sqr(a) + 0.7 * T.abs(s)
        return s, total + T.log(s) + T.sqr(a) / s

    (variances, totals), _ = graphc.scan(step, x, [h, h])
    after, fired = rewritten([x, h], [totals[-1]])
    (loop,) = loops(after.outputs)
    assert "expensive_sums" in fired and all(node.op.name != "log" for node in nodes_of(loop.body.results))
    alone, _ = graphc.scan(lambda s, total: step(0.5, s, total), None, [h, h], n_steps=x.shape[0])
    assert "expensive_sums" not in rewritten([x, h], [alone[1][-1]])[1]  # memory would grow with the steps
    assert "expensive_sums" not in rewritten([x, h], [totals])[1]
    for steps in (1, 2, 5):
        check([x, h], with_gradients([totals[-1], variances[-1]], [x, h]), [draw(steps), draw()])


@pytest.mark.slow
@pytest.mark.parametrize("backwards", [False, True])
def test_sums_of_what_a_recurrence_goes_through(backwards: bool) -> None:
    x, h, c = T.dvector("x"), T.dscalar("h"), T.dscalar("c")

    def step(a: Any, s: Any, total: Any, other: Any) -> Any:
        s = s * c + a
        return s, total + s * a, other + total

    (_, totals, others), _ = graphc.scan(step, x, [h, h, h], go_backwards=backwards)
    after, fired = rewritten([x, h, c], [totals[-1]])
    assert "recurrence" in fired and not loops(after.outputs)
    assert not loops(rewritten([x, h, c], [others])[0].outputs)
    for steps in (1, 2, 5):
        check([x, h, c], with_gradients([totals[-1], others[-1]], [x, h, c]), [draw(steps), draw(), draw()])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint32"])
@pytest.mark.parametrize("backwards", [False, True])
def test_an_extreme_with_a_step(backwards: bool, dtype: str) -> None:
    x, h = T.vector("x", dtype=dtype), T.scalar("h", dtype=dtype)
    one = np.ones((), dtype)
    least, _ = graphc.scan(lambda a, s: T.minimum(a, s + one), x, h, go_backwards=backwards)
    fewer = np.asarray(-3 if np.iinfo(dtype).min else 3, dtype)
    most, _ = graphc.scan(lambda a, s: T.maximum(s + fewer, a), x, h, go_backwards=backwards)
    after, fired = rewritten([x, h], [least, most])
    assert "recurrence" in fired and not loops(after.outputs)
    ends = np.iinfo(dtype)
    some = np.asarray([5, 3, 4, ends.max, ends.min, ends.max - 1, 9], dtype)  # sums wrap
    for values in (some, some[:1], some[:0]):
        for begin in (4, ends.max, ends.min):
            check([x, h], [least, most], [values, np.asarray(begin, dtype)])


@pytest.mark.slow
def test_loops_within_loops() -> None:
    x, w, u, h = T.dmatrix("x"), T.dmatrix("w"), T.dmatrix("u"), T.dvector("h")

    def step(a: Any, s: Any) -> Any:
        inner, _ = graphc.scan(lambda v, r: T.tanh(r * 0.5 + T.dot(v, u) * a), w, s)
        return inner[-1]

    rows, _ = graphc.scan(step, x, h)
    outputs = [rows[-1], *grad(rows[-1].sum(), [x, w, u, h])]
    after, _ = rewritten([x, w, u, h], outputs)
    forward, backward = loops(after.outputs)
    for loop in (forward, backward):
        (inner,) = loops(loop.body.results)
        assert not [node for node in nodes_of(inner.body.results) if node.op.name == "matmul"]
    for steps in (1, 2):
        values = [draw(steps, 2), draw(3, 4), draw(4, 2), draw(2)]
        check([x, w, u, h], outputs, values)


# --- on and off, and what it costs ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LOOPS if name not in ("loop_bodies",)])
def test_each_pass_can_be_switched_off(name: str) -> None:
    inputs, rows = recurrent()
    x = inputs[0]
    scaled, _ = graphc.scan(lambda a, s: T.tanh(s * T.exp(a)), x[:, 0] + 1.0, T.constant(0.5))
    sums, _ = graphc.scan(lambda a, s: s + a, T.tanh(x), T.zeros((3,)))
    maps, _ = graphc.map(T.exp, x)
    same, _ = graphc.scan(lambda a, s, r: [T.tanh(s * r + a), r], x[:, 1], [T.constant(0.5), T.constant(1.0)])
    other, _ = graphc.scan(lambda a, b, s: T.tanh(s * a - b), [x[:, 2], x[:, 2]], T.constant(0.5))
    costly, _ = graphc.scan(lambda a, s: [T.tanh(s - a), T.log(2.0 + T.tanh(s - a))], x[:, 2], [T.constant(0.25), None])
    counted, _ = graphc.scan(lambda a, n, s: [n + 2, s * 0.5 + a * n], x[:, 1], [T.constant(1), T.constant(0.5)])
    start = [T.constant(0.25), T.constant(0.5)]
    added, _ = graphc.scan(lambda a, s, t: [T.tanh(s + a), t + T.log(3.0 + T.tanh(s + a))], x[:, 2], start)
    outputs = [*grad(T.sqr(rows[-1]).sum(), inputs), scaled, sums, maps, same[0], other[-1], *costly, counted[1]]
    outputs.append(added[1][-1])
    assert name in rewritten(inputs, outputs)[1]
    after, fired = rewritten(inputs, outputs, [name])
    assert name not in fired
    values = recurrent_values(3)
    given_ = dict(zip(inputs, values, strict=True))
    want = interpret(Graph(tuple(inputs), tuple(outputs)), given_)
    for got, value in zip(interpret(after, given_), want, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-9, atol=1e-12)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(GraphcError, match="no rewrite rule or pass fuse_loop$"):
        rewrite(Graph((), ()), excluding=["fuse_loop"])


def test_what_fired_is_told_with_the_line() -> None:
    x, h = T.dvector("x"), T.dscalar("h")
    rows, _ = graphc.scan(lambda a, s: T.tanh(s * a), x, h)
    _, fired = rewrite(Graph((x, h), (rows[-1],)))
    (told,) = [each for each in fired if each.rule == "last_row"]
    assert told.where is not None and told.where.file == __file__


def nested(depth: int) -> Graph:
    """A loop within a loop, and so on."""
    x: Any = T.dvector("x")

    def level(depth: int, begin: Any) -> Any:
        def step(a: Any, s: Any) -> Any:
            return T.tanh(s + a) if depth == 1 else level(depth - 1, s * a)

        return graphc.scan(step, x, begin)[0][-1]

    return Graph((x,), (level(depth, T.constant(0.5)),))


def chained(count: int) -> Graph:
    """Loops of which each needs the one before."""
    x: Any = T.dvector("x")
    rows: Any = x
    for _ in range(count):
        rows, _ = graphc.scan(lambda a, s: T.tanh(s + a), rows, T.constant(0.5))
    return Graph((x,), (rows,))


@pytest.mark.slow
@pytest.mark.parametrize("build", [nested, chained])
def test_loops_cost_as_much_as_there_are(build: Callable[[int], Graph]) -> None:
    def work(count: int) -> Callable[[], object]:
        graph = build(count)
        return lambda: rewrite(graph)

    with options.change(verify=False):  # which looks at each body from every loop around it
        assert_linear(work, 4)


# --- random loops -----------------------------------------------------------------------------------------------------


Step = Callable[..., Any]


@st.composite
def bodies(draw_: Any, taken: int, begin: int, w: Any, u: Any, c: Any) -> tuple[Step, int]:
    """A random body over so many elements and states, and how many outputs it has besides the states."""
    operations: list[Step] = [
        lambda a, b: a + b,
        lambda a, b: a * b,
        lambda a, b: a - b,
        lambda a, b: T.tanh(a),
        lambda a, b: T.exp(-T.sqr(a)),
        lambda a, b: T.dot(a, w),
        lambda a, b: T.dot(u, a),
        lambda a, b: T.dot(T.outer(a, b), c) * 0.1,
        lambda a, b: a * T.sum(b) * 0.1,
    ]
    choices = st.tuples(st.integers(0, 8), st.integers(0, 99), st.integers(0, 99))
    chosen = draw_(st.lists(choices, min_size=1, max_size=5))
    news = draw_(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), min_size=begin, max_size=begin))
    extra = draw_(st.lists(st.integers(0, 99), min_size=not begin, max_size=2))
    inner, ends = draw_(st.integers(0, 5)) == 0, draw_(st.integers(0, 6)) == 0

    def step(*given_: Any) -> Any:
        pool = [*given_, c]
        if inner:
            pool.append(graphc.scan(lambda v, s: s * 0.5 + v * given_[0], w, given_[-1])[0][-1])
        for kind, left, right in chosen:
            pool.append(operations[kind](pool[left % len(pool)], pool[right % len(pool)]))
        made = []
        for state, (kind, other) in zip(given_[taken:], news, strict=True):
            picked = pool[other % len(pool)]
            made.append([pool[-1], state + pool[-1], state * 0.5 + picked, picked][kind])
        made += [pool[place % len(pool)] for place in extra]
        return (made, graphc.until(T.sum(made[0]) > 1.0)) if ends else made

    return step, len(extra)


@st.composite
def programs(draw_: Any) -> tuple[list[Any], list[Any], list[Array]]:
    """Loops over random bodies, some over what others make; their rows, last rows, and gradients."""
    n, steps = 3, draw_(st.sampled_from([0, 1, 2, 4]))
    x, y, h, g, c = T.dmatrix("x"), T.dmatrix("y"), T.dvector("h"), T.dvector("g"), T.dvector("c")
    w, u = T.dmatrix("w"), T.dmatrix("u")
    inputs = [x, y, h, g, c, w, u]
    rng = np.random.default_rng(draw_(st.integers(0, 2**32)))
    shapes = [(steps, n), (steps + draw_(st.sampled_from([0, 0, 1])), n), (n,), (n,), (n,), (n, n), (n, n)]
    values = [np.asarray(rng.normal(size=shape) * 0.5) for shape in shapes]
    if draw_(st.integers(0, 5)) == 0:
        values[draw_(st.integers(0, 6))].flat[:1] = draw_(st.sampled_from([np.nan, np.inf, -np.inf, -0.0]))
    sources, outputs = [x, y], list[Any]()
    for _ in range(draw_(st.integers(1, 3))):
        taken = draw_(st.lists(st.sampled_from(sources), min_size=1, max_size=2))
        taken[0] = draw_(st.sampled_from([taken[0], T.tanh(taken[0]), taken[0] * c]))
        begin = draw_(st.lists(st.sampled_from([h, g, T.zeros_like(h)]), max_size=2))
        step, extra = draw_(bodies(len(taken), len(begin), w, u, c))
        backwards = draw_(st.booleans())
        rows, _ = graphc.scan(step, taken, [*begin, *[None] * extra], go_backwards=backwards, return_list=True)
        for each in rows:
            outputs += draw_(st.sampled_from([[each], [each[-1]], []]))
        outputs = outputs or [rows[0]]
        sources.append(rows[0])
    wrt = [leaf for leaf in inputs if draw_(st.integers(0, 2)) == 0]
    return inputs, with_gradients(outputs, wrt, twice=draw_(st.booleans())) if wrt else outputs, values


@pytest.mark.slow
@settings(max_examples=40)
@given(programs())
def test_random_loops(program: tuple[list[Any], list[Any], list[Array]]) -> None:
    check(*program)
