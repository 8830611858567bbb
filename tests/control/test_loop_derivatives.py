"""Derivatives of loops against those of the same graph written out: of first and second order, and forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings, strategies as st

import graphc
import graphc.tensor as T
from graphc.errors import DisconnectedInputError
from graphc.ir.node import Node
from graphc.startup.record import record, replace
from graphc.testing import check_gradient

Make = Callable[..., Any]
Body = Callable[..., tuple[list[Node], list[Node]]]


def loop(body: Body, xs: Node, begin: Sequence[Node], others: Sequence[Node], steps: Any, **how: Any) -> list[Node]:
    """The stacked states and outputs of a body that is given an element, the states and the others."""
    count = len(begin)

    def step(x: Any, *rest: Any) -> list[Node]:
        states, outputs = body(x, list(rest[:count]), list(rest[count:]))
        return [*states, *outputs]

    outputs = len(body(xs[0], list(begin), list(others))[1])
    info = [*begin, *([None] * outputs)]
    found: list[Node] = graphc.scan(step, xs, info, list(others), steps, return_list=True, **how)[0]
    return found


def unrolled(body: Body, xs: Node, begin: Sequence[Node], others: Sequence[Node], steps: int) -> list[Node]:
    """The same, written out."""
    states, rows = list(begin), []
    for t in range(steps):
        states, outputs = body(xs[t], states, list(others))
        rows.append([*states, *outputs])
    return [T.stack(column) for column in zip(*rows, strict=True)]


def cost_of(stacked: Sequence[Node]) -> Node:
    """A number that depends on every element, and on none as on another."""
    parts = [
        (T.sin(each) * (1.0 + T.arange(each.size).reshape(each.shape) / 7.0)).sum()
        for each in stacked
        if each.dtype.startswith("float")
    ]
    total: Node = sum(parts[1:], parts[0])
    return total


def derivatives(cost: Node, wrt: Sequence[Node]) -> list[Node]:
    """The value, its gradient, that of the gradient's own sum of squares, and a product with the Hessian."""
    first = graphc.grad(cost, list(wrt), disconnected_inputs="ignore")
    again: Any = sum((T.sqr(each) * 0.5).sum() for each in first)
    second = graphc.grad(again, list(wrt), disconnected_inputs="ignore")
    along = [T.cos(each) for each in wrt]
    return [cost, *first, *second, *graphc.Rop(first, list(wrt), along)]


def agree(
    function: Make,
    inputs: Sequence[Node],
    looped: Sequence[Node],
    written: Sequence[Node],
    values: Sequence[Any],
    tolerance: float = 1e-9,
) -> None:
    """What a loop gives in a mode is what its written-out form gives in the interpreter, which is the specification."""
    found = function(inputs, looped, on_unused_input="ignore")(*values)
    wanted = graphc.function(inputs, written, mode="interpreted", on_unused_input="ignore")(*values)
    for got, right in zip(found, wanted, strict=True):
        npt.assert_allclose(got, right, rtol=tolerance, atol=tolerance)


def check(
    function: Make, body: Body, arrays: Sequence[Any], states: int, steps: int, tolerance: float = 1e-9, **how: Any
) -> None:
    """A loop and its written-out form: values and derivatives by the sequence, the initial states and the others."""
    leaves = [T.tensor("float64", (None,) * np.ndim(array), f"v{n}") for n, array in enumerate(arrays)]
    xs, begin, others = leaves[0], leaves[1 : 1 + states], leaves[1 + states :]
    looped = derivatives(cost_of(loop(body, xs, begin, others, steps, **how)), leaves)
    written = derivatives(cost_of(unrolled(body, xs, begin, others, steps)), leaves)
    agree(function, leaves, looped, written, [np.asarray(array, "float64") for array in arrays], tolerance)


INTERPRETED = partial(graphc.function, mode="interpreted")
RNG = np.random.default_rng(5)


def recurrent(x: Any, states: list[Any], others: list[Any]) -> tuple[list[Node], list[Node]]:
    (h,), (w, b) = states, others
    new = T.tanh(T.dot(h, w) + x + b)
    return [new], [T.exp(new).sum()]


RECURRENT = [RNG.normal(size=size) for size in ((5, 3), (3,), (3, 3), (3,))]


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_recurrent_network(function: Make, steps: int) -> None:
    check(function, recurrent, RECURRENT, 1, steps)


@pytest.mark.slow
def test_in_blocks(function: Make) -> None:
    check(function, recurrent, RECURRENT, 1, 5, checkpoint=2)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["sqrt", 1, 3, 5, 7])
def test_in_blocks_of_other_lengths(checkpoint: Any) -> None:
    """Of as many steps as blocks, of one step, of all, and longer than the loop: a loop of loops, as above."""
    check(INTERPRETED, recurrent, RECURRENT, 1, 5, checkpoint=checkpoint)


def test_zero_steps(function: Make) -> None:
    xs, h, w, b = T.dmatrix(), T.dvector(), T.dmatrix(), T.dvector()
    n = T.iscalar()
    for checkpoint in (None, 2, "sqrt"):
        hs, outs = loop(recurrent, xs, [h], [w, b], n, checkpoint=checkpoint)
        cost = hs.sum() + outs.sum() + T.sqr(h).sum()
        call = function([xs, h, w, b, n], [hs, outs, *graphc.grad(cost, [xs, h, w, b])])
        hs_, outs_, gx, gh, gw, gb = call(*RECURRENT, 0)
        assert hs_.shape == (0, 3) and outs_.shape == (0,)
        npt.assert_array_equal(gh, 2 * RECURRENT[1])
        assert gx.shape == (5, 3) and not gx.any() and not gw.any() and not gb.any()


def two_states(x: Any, states: list[Any], others: list[Any]) -> tuple[list[Node], list[Node]]:
    (a, b), (k,) = states, others
    return [b, T.sin(a) * k + x * b], [a * b, a * b, x]


def test_states_that_change_places_and_outputs_given_twice(function: Make) -> None:
    check(function, two_states, [RNG.normal(size=4), 0.3, -0.5, 1.2], 2, 4)


def untouched(x: Any, states: list[Any], others: list[Any]) -> tuple[list[Node], list[Node]]:
    (a, b), _ = states, others
    return [a, T.cos(b)], [x * a, b]


def test_a_state_that_stays_and_a_constant_that_is_not_used(function: Make) -> None:
    check(function, untouched, [RNG.normal(size=3), 0.3, -0.5, 1.2], 2, 3)


def inner_gradient(x: Any, states: list[Any], others: list[Any]) -> tuple[list[Node], list[Node]]:
    (q, p), (k,) = states, others
    energy = (k * T.sqr(q) + q**4 + x * q).sum()
    p = p - 0.1 * graphc.grad(energy, q)
    return [q + 0.1 * p, p], [energy]


@pytest.mark.slow
def test_grad_within_a_step(function: Make) -> None:
    check(function, inner_gradient, [RNG.normal(size=(4, 2)), *RNG.normal(size=(2, 2)), 0.7], 2, 4)


def nested(x: Any, states: list[Any], others: list[Any]) -> tuple[list[Node], list[Node]]:
    (h,), (w,) = states, others
    inner, _ = graphc.scan(lambda e, s: T.tanh(s * w + e * h), x, T.ones_like(w))
    return [h + inner[-1].sum() * 0.1], [inner.sum(axis=0)]


@pytest.mark.slow
def test_a_loop_within_a_loop(function: Make) -> None:
    def written(x: Any, states: list[Any], others: list[Any]) -> tuple[list[Node], list[Node]]:
        (h,), (w,) = states, others
        s, total = T.ones_like(w), T.zeros_like(w)
        for n in range(3):
            s = T.tanh(s * w + x[n] * h)
            total = total + s
        return [h + s.sum() * 0.1], [total]

    arrays = [RNG.normal(size=(4, 3)), 0.4, RNG.normal(size=2)]
    leaves = [T.dmatrix(), T.dscalar(), T.dvector()]
    for steps in (1, 4):
        looped = derivatives(cost_of(loop(nested, leaves[0], [leaves[1]], [leaves[2]], steps)), leaves)
        plain = derivatives(cost_of(unrolled(written, leaves[0], [leaves[1]], [leaves[2]], steps)), leaves)
        agree(function, leaves, looped, plain, arrays)


def indexing(x: Any, states: list[Any], others: list[Any]) -> tuple[list[Node], list[Node]]:
    (n, h), (table,) = states, others
    return [(n + 2) % 3, T.sin(h + x) * table[n]], [table[n] * h]


def test_an_integer_state_that_indexes(function: Make) -> None:
    xs, h, table = T.dvector("xs"), T.dscalar("h"), T.dvector("table")
    begin = [T.constant(1), h]
    leaves = [xs, h, table]
    looped = derivatives(cost_of(loop(indexing, xs, begin, [table], 4)), leaves)
    written = derivatives(cost_of(unrolled(indexing, xs, begin, [table], 4)), leaves)
    agree(function, leaves, looped, written, [RNG.normal(size=4), 0.2, RNG.normal(size=3)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("checkpoint", "mode"),
    [*((steps, "interpreted") for steps in (None, 2, 3, "sqrt")), (None, "compiled"), (2, "compiled")],
)
def test_until(function: Make, checkpoint: Any) -> None:
    """The loop ends at the step that the condition names; what comes after it has no derivative."""
    x, w, most = T.dvector("x"), T.dscalar("w"), T.dscalar("most")
    begin = T.dscalar("begin")

    def step(x: Any, s: Any, w: Any) -> Any:
        new = s * w + T.sqr(x)
        return new, graphc.until(new > most)

    stacked, _ = graphc.scan(step, x, begin, w, checkpoint=checkpoint)
    leaves = [x, w, begin]
    looped = derivatives(cost_of([stacked]), leaves)
    call = function([*leaves, most], [stacked, *looped])
    values = np.array([0.5, 0.7, 0.9, 0.4, 0.3, 0.2, 0.8])

    def body(x: Any, states: list[Any], others: list[Any]) -> tuple[list[Node], list[Node]]:
        return [states[0] * others[0] + T.sqr(x)], []

    for limit in (0.5, 1.6, 2.5, 100.0):
        s, count = 0.3, 0
        for value in values:
            s, count = s * 1.1 + value**2, count + 1
            if s > limit:
                break
        written = derivatives(cost_of(unrolled(body, x, [begin], [w], count)), leaves)
        rows, *found = call(values, 1.1, 0.3, limit)
        assert len(rows) == count
        wanted = graphc.function(leaves, written, mode="interpreted")(values, 1.1, 0.3)
        for got, expected in zip(found, wanted, strict=True):
            npt.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(
    ("truncate", "mode"), [*((steps, "interpreted") for steps in (0, 1, 2, 4, 6)), (2, "compiled"), (6, "compiled")]
)
def test_truncated(function: Make, truncate: int, ends: bool) -> None:
    """Nothing is passed back to what was before the last steps, as in Theano."""
    x, w, begin = T.dvector("x"), T.dscalar("w"), T.dscalar("begin")
    seen = T.dscalar("seen")

    def step(x: Any, s: Any, w: Any) -> Any:
        new = T.tanh(s * w + x)
        return (new, graphc.until(x > seen)) if ends else new

    stacked, _ = graphc.scan(step, x, begin, w, truncate_gradient=truncate)
    s, rows = begin, []
    for t in range(4):
        fixed = T.disconnected_grad if t < 4 - truncate else lambda v: v
        s = fixed(T.tanh(s * w + x[t]))
        rows.append(s)
    written = T.stack(rows)
    leaves = [x, w, begin]
    values = np.array([0.3, -0.2, 0.5, 0.9, 0.1]) if ends else np.array([0.3, -0.2, 0.5, 0.9])
    looped, plain = (derivatives(cost_of([each]), leaves) for each in (stacked, written))
    agree(function, [*leaves, seen], looped, plain, [values, 0.7, 0.2, 0.8])


def test_taps(function: Make) -> None:
    """Past values of a state and of a sequence, and later elements of a sequence, in any order."""
    u, begin, k = T.dvector("u"), T.dvector("begin"), T.dscalar("k")

    def step(later: Any, before: Any, old: Any, last: Any) -> Any:
        return T.sin(old * k) + last * later - before

    stacked, _ = graphc.scan(step, {"input": u, "taps": [1, -2]}, {"initial": begin, "taps": [-3, -1]})
    rows = [begin[0], begin[1], begin[2]]
    for t in range(2, 6):
        rows.append(step(u[t + 1], u[t - 2], rows[-3], rows[-1]))
    leaves = [u, begin, k]
    looped, plain = (derivatives(cost_of([each]), leaves) for each in (stacked, T.stack(rows[3:])))
    agree(function, leaves, looped, plain, [RNG.normal(size=7), RNG.normal(size=3), 0.8])


def test_shared_variables_that_a_step_updates(function: Make) -> None:
    a, x = graphc.shared(0.5, name="a"), T.dvector("x")
    rows, updates = graphc.scan(lambda x: (x * a, {a: T.sin(a * x)}), x)
    s: Node = a
    written = []
    for t in range(3):
        written.append(x[t] * s)
        s = T.sin(s * x[t])
    leaves = [x, a]
    looped = derivatives(cost_of([rows, updates[a]]), leaves)
    plain = derivatives(cost_of([T.stack(written), s]), leaves)
    agree(function, [x], looped, plain, [RNG.normal(size=3)])


VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda w: w,
    "transposed": lambda w: w.T,
    "product": lambda w: T.exp(w * 0.3),
    "repeated": lambda w: T.ones((2, 2)) * w[0, 0],
}


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_a_value_from_outside(function: Make, view: str) -> None:
    """By what it is computed from and by itself, also where it only shows other values in another order."""
    w, x = T.dmatrix("w"), T.dmatrix("x")
    value = VIEWS[view](w)
    begin = T.zeros((2,))
    rows, _ = graphc.scan(lambda x, h: T.tanh(T.dot(h, value) + x), x, begin)
    named, _ = graphc.scan(lambda x, h, v: T.tanh(T.dot(h, v) + x), x, begin, value)
    h, written = begin, []
    for t in range(3):
        h = T.tanh(T.dot(h, value) + x[t])
        written.append(h)
    leaves = [w, value, x]
    implicit, explicit, plain = (
        derivatives(cost_of([each, value]), leaves) for each in (rows, named, T.stack(written))
    )
    values = [RNG.normal(size=(2, 2)), RNG.normal(size=(3, 2))]
    agree(function, [w, x], implicit, plain, values)
    agree(INTERPRETED, [w, x], explicit, plain, values)


def test_what_is_not_differentiated_within_a_step(function: Make) -> None:
    def body(x: Any, states: list[Any], others: list[Any]) -> tuple[list[Node], list[Node]]:
        (h,), (w,) = states, others
        return [h * T.disconnected_grad(T.exp(w * x)) + w], [graphc.grad(T.sin(h * w) * x, w, consider_constant=[h])]

    check(function, body, [RNG.normal(size=3), 0.3, 0.5], 1, 3)


def test_in_float32(function: Make) -> None:
    x, w = T.fvector("x"), T.fscalar("w")
    rows, _ = graphc.scan(lambda x, s: T.tanh(s * w + x), x, np.float32(0))
    gradient = graphc.grad(rows.sum(), [x, w])
    assert rows.dtype == "float32" and all(each.dtype == "float32" for each in gradient)
    found = function([x, w], gradient)(np.ones(3, "float32"), np.float32(0.5))
    doubles = T.dvector("x"), T.dscalar("w")
    again, _ = graphc.scan(lambda x, s: T.tanh(s * doubles[1] + x), doubles[0], 0.0)
    for got, wanted in zip(
        found, function([*doubles], graphc.grad(again.sum(), [*doubles]))(np.ones(3), 0.5), strict=True
    ):
        npt.assert_allclose(got, wanted, rtol=1e-6)


def test_a_product_with_the_second_derivative(function: Make) -> None:
    x, w, v = T.dvector("x"), T.dvector("w"), T.dvector("v")
    rows, _ = graphc.scan(lambda x, s: T.tanh(s * w + x), x, T.ones_like(w))
    cost = T.sqr(rows[-1]).sum()
    product = graphc.hessian_vector_product(cost, w, v)
    whole = graphc.hessian(cost, w)
    one, other = function([x, w, v], [product, T.dot(whole, v)])(*RNG.normal(size=(3, 3)))
    npt.assert_allclose(one, other, rtol=1e-9)


def test_backwards(function: Make) -> None:
    """With fewer steps than elements, which are then the last ones."""
    x, w = T.dvector("x"), T.dscalar("w")
    rows = graphc.scan(lambda x, s: T.sin(s * w + x), x, w, n_steps=3, go_backwards=True)[0]
    s, written = w, []
    for t in (4, 3, 2):
        s = T.sin(s * w + x[t])
        written.append(s)
    looped, plain = (derivatives(cost_of([each]), [x, w]) for each in (rows, T.stack(written)))
    agree(function, [x, w], looped, plain, [RNG.normal(size=5), 0.4])


@pytest.mark.parametrize("checkpoint", [None, 2])
def test_a_loop_that_ends_by_itself_within_a_loop(function: Make, checkpoint: Any) -> None:
    """Each step takes another number of inner ones: against finite differences."""

    def build(x: Any, w: Any) -> Node:
        def outer(x: Any, s: Any) -> Any:
            inner = graphc.scan(
                lambda i, p: (p * w + x, graphc.until(i + 1 >= 3 * abs(x))), T.arange(6), s, checkpoint=checkpoint
            )[0]
            return T.tanh(inner[-1]) + inner.sum() * 0.1

        rows: Node = graphc.scan(outer, x, 0.5)[0]
        return rows

    check_gradient(build, np.array([0.3, -0.5, 0.9, 1.2]), np.array(0.8), order=2)


# --- random bodies ----------------------------------------------------------------------------------------------------

UNARY: list[Callable[[Any], Any]] = [T.sin, T.tanh, T.sqr, lambda v: v * 0.5, lambda v: T.exp(-T.sqr(v))]
KINDS = ["unary", "add", "mul", "dot", "index", "where", "loop"]


@record()
class Program:
    """A loop over vectors of one size: what a step is given, what it computes, when it ends."""

    taps: tuple[int, ...]
    states: tuple[tuple[int, ...], ...]
    moves: tuple[tuple[str, int, int], ...]
    ends: tuple[int, ...]
    outputs: tuple[int, ...]
    steps: int
    last: int

    def body(self, pool: list[Any]) -> list[Any]:
        """The next states and the outputs, from elements, states and two vectors that are the same in all steps."""
        pool = list(pool)
        for kind, first, second in self.moves:
            pool.append(self.made(kind, second, pool[first % len(pool)], pool[second % len(pool)]))
        return [pool[-1 - n % len(pool)] for n in (*self.ends, *self.outputs)]

    def made(self, kind: str, number: int, a: Any, b: Any) -> Any:
        match kind:
            case "unary":
                return UNARY[number % len(UNARY)](a)
            case "add":
                return (a + b) * 0.5
            case "mul":
                return T.tanh(a * b)
            case "dot":
                return T.tanh(T.dot(a, b)) * a
            case "index":
                return T.set_subtensor(a[0], b[1])
            case "where":
                return T.where(a > b, a, b * 0.5)
            case _:
                return graphc.scan(lambda e, s: T.tanh(s * e + b), a, b * 0.5)[0].sum(axis=0) * 0.3

    def scanned(self, xs: Node, begin: Sequence[Node], others: Sequence[Node], checkpoint: Any) -> list[Node]:
        def step(*given: Any) -> Any:
            results = self.body(list(given[1:]))
            return results if self.last < 0 else (results, graphc.until(T.eq(given[0], self.last)))

        sequences = [T.arange(99), {"input": xs, "taps": list(self.taps)}]
        info = [
            {"initial": initial[-1] if taps == (-1,) else initial, "taps": list(taps)}
            for initial, taps in zip(begin, self.states, strict=True)
        ]
        nones = [None] * len(self.outputs)
        found: list[Node] = graphc.scan(
            step, sequences, [*info, *nones], list(others), self.steps, return_list=True, checkpoint=checkpoint
        )[0]
        return found

    def written(self, xs: Node, begin: Sequence[Node], others: Sequence[Node]) -> list[Node]:
        past = [[initial[n] for n in range(3)] for initial in begin]
        past = [old if taps == (-1,) else old[: -min(taps)] for old, taps in zip(past, self.states, strict=True)]
        rows, count = [], self.steps if self.last < 0 else min(self.steps, self.last + 1)
        for t in range(-min(self.taps), count - min(self.taps)):
            given = [xs[t + tap] for tap in self.taps]
            given += [old[tap] for old, taps in zip(past, self.states, strict=True) for tap in taps]
            results = self.body([*given, *others])
            for old, new in zip(past, results, strict=False):
                old.append(new)
            rows.append(results)
        return [T.stack(column) for column in zip(*rows, strict=True)]


def test_what_a_result_does_not_depend_on_in_any_step() -> None:
    """An error where a derivative by it is asked for, as of what stands outside of loops; several steps, and loops
    within them, lead from one state to another."""
    a, b, c, d, w, x = T.dscalar("a"), T.dscalar("b"), T.dscalar("c"), T.dscalar("d"), T.dscalar("w"), T.dvector("x")

    def step(x: Any, a: Any, b: Any, c: Any, d: Any, w: Any) -> Any:
        inner = graphc.scan(lambda s, t: [s + t, s * w], outputs_info=[b, None], non_sequences=a, n_steps=2)[0]
        return a * x, inner[0][-1], b + T.disconnected_grad(d), a + 1.0, inner[1][-1]

    (first, second, third, fourth, fifth), _ = graphc.scan(step, x, [a, b, c, d, None], non_sequences=w)
    leaves = {"a": a, "b": b, "c": c, "d": d, "w": w, "x": x}
    for result, known in ((first, "ax"), (second, "abx"), (third, "abx"), (fourth, "ax"), (fifth, "abwx")):
        for end in (result[-1], result.sum()):
            for name, leaf in leaves.items():
                if name in known:
                    graphc.grad(end, leaf)
                    continue
                with pytest.raises(DisconnectedInputError, match=f"does not depend on {name}"):
                    graphc.grad(end, [a, leaf])
    given = {a: 2.0, b: 3.0, c: 4.0, d: 5.0, w: 6.0, x: [1.0, 2.0]}
    total = graphc.grad(fifth.sum() + c, [a, b, c], disconnected_inputs="raise")
    assert [each.eval(given, mode="interpreted") for each in total] == [24.0, 12.0, 1.0]
    rows = graphc.Rop([first, fourth], d, T.ones(()))
    assert [each.eval(given, mode="interpreted").tolist() for each in rows] == [[0.0, 0.0], [0.0, 0.0]]
    n = T.lscalar("n")
    last = graphc.for_loop(0, n, lambda _, pair: (pair[1], pair[1]), (a, b))[0]
    slope = graphc.grad(last, a)
    assert [slope.eval({**given, n: steps}, mode="interpreted") for steps in (0, 1)] == [1.0, 0.0]


PLACES = st.integers(0, 99)
PROGRAMS = st.builds(
    Program,
    taps=st.sampled_from([(0,), (0,), (-1, 0), (1, 0), (-2, 1, 0)]).map(lambda taps: taps if 0 in taps else (0,)),
    states=st.lists(st.sampled_from([(-1,), (-1,), (-2, -1), (-2,), (-1, -3)]), min_size=1, max_size=3).map(tuple),
    moves=st.lists(st.tuples(st.sampled_from(KINDS), PLACES, PLACES), min_size=2, max_size=9).map(tuple),
    ends=st.just(()),
    outputs=st.lists(PLACES, max_size=2).map(tuple),
    steps=st.integers(1, 4),
    last=st.integers(-3, 4),
)


@pytest.mark.slow
@settings(max_examples=30)
@given(PROGRAMS, st.data(), st.sampled_from([None, None, 2, "sqrt"]), st.integers(0, 2**32 - 1))
def test_random_bodies(program: Program, data: st.DataObject, checkpoint: Any, seed: int) -> None:
    program = replace(program, ends=tuple(data.draw(PLACES) for _ in program.states))
    rng = np.random.default_rng(seed)
    rows = program.steps + max(program.taps) - min(program.taps)
    arrays = [rng.normal(size=(rows, 2)), *rng.normal(size=(len(program.states), 3, 2)), *rng.normal(size=(2, 2))]
    leaves = [T.tensor("float64", (None,) * np.ndim(array), f"v{n}") for n, array in enumerate(arrays)]
    xs, begin, others = leaves[0], leaves[1:-2], leaves[-2:]
    looped = derivatives(cost_of(program.scanned(xs, begin, others, checkpoint)), leaves)
    written = derivatives(cost_of(program.written(xs, begin, others)), leaves)
    agree(INTERPRETED, leaves, looped, written, arrays, 1e-7)
