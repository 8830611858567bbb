"""Loops of a body: planned, lowered, rewritten by every pass over loops, and run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.functions.native import Compiled
from graphc.ir.body import close, item
from graphc.ir.node import Node, variable
from graphc.ops.scan import scan_node
from graphc.options import options
from graphc.random.streams import RandomStreams
from tests.support.generated import code
from tests.support.watched import check_passes, check_text, watch

Program = tuple[list[Node], list[Node]]
PROGRAMS: dict[str, Callable[[str], Program]] = {}


def program(make: Callable[[str], Program]) -> Callable[[str], Program]:
    PROGRAMS[make.__name__] = make
    return make


def scanned(*args: Any, **kwargs: Any) -> Any:
    return graphc.scan(*args, **kwargs)[0]


@program
def scalar_state(dtype: str) -> Program:
    x, start = T.vector("x", dtype=dtype), T.scalar("start", dtype=dtype)
    out = scanned(lambda each, state: state * 0.5 + each, sequences=x, outputs_info=start)
    return [x, start], [out, *graphc.grad((out * out).sum(), [x, start])]


@program
def vector_state(dtype: str) -> Program:
    x, w, start = T.matrix("x", dtype=dtype), T.matrix("w", dtype=dtype), T.vector("start", dtype=dtype)
    out = scanned(lambda each, state: T.tanh(T.dot(w, state) + each), sequences=x, outputs_info=start)
    return [x, w, start], [out[-1], *graphc.grad((out * out).sum(), [x, w, start])]


@program
def states_that_change_places(dtype: str) -> Program:
    x, n = T.vector("x", dtype=dtype), T.iscalar("n")
    first, second = scanned(lambda a, b: (b, a + b * 0.5), outputs_info=[x, x * 2], n_steps=n)
    return [x, n], [first, second, graphc.grad(first.sum() + second[-1].sum(), x)]


@program
def a_state_changed_in_place(dtype: str) -> Program:
    x, n = T.vector("x", dtype=dtype), T.iscalar("n")
    out = scanned(lambda i, state: T.set_subtensor(state[i], state.sum() + 1), sequences=T.arange(n), outputs_info=x)
    return [x, n], [out, graphc.grad(out[-1].sum(), x)]


@program
def taps(dtype: str) -> Program:
    x, start = T.vector("x", dtype=dtype), T.matrix("start", dtype=dtype)
    sequence = {"input": x, "taps": [-1, 0, 1]}
    state = {"initial": start, "taps": [-1, -3]}
    out = scanned(lambda a, b, c, p, q: a - 2 * b + c + 0.5 * p - 0.25 * q, sequences=sequence, outputs_info=state)
    return [x, start], [out, *graphc.grad((out * out).sum(), [x, start])]


@program
def backwards(dtype: str) -> Program:
    x = T.matrix("x", dtype=dtype)
    out = scanned(
        lambda each, state: state * 0.9 + each, sequences=x.T, outputs_info=T.zeros_like(x[:, 0]), go_backwards=True
    )
    return [x], [out, graphc.grad((out * out).sum(), x)]


@program
def a_loop_in_a_loop(dtype: str) -> Program:
    x = T.matrix("x", dtype=dtype)

    def row(each: Node, state: Node) -> Any:
        inner = scanned(lambda a, s: s * 0.5 + T.sin(a), sequences=each, outputs_info=state.sum())
        return state * 0.5 + inner[-1]

    out = scanned(row, sequences=x, outputs_info=T.zeros_like(x[0]))
    return [x], [out, graphc.grad((out * out).sum(), x)]


@program
def a_loop_that_ends_by_itself(dtype: str) -> Program:
    x, limit = T.scalar("x", dtype=dtype), T.scalar("limit", dtype=dtype)
    out = scanned(lambda s: (s * 1.5, graphc.until(s * 1.5 > limit)), outputs_info=x, n_steps=30)
    return [x, limit], [out, graphc.grad(out.sum(), x)]


@program
def sums_over_rows_and_columns(dtype: str) -> Program:
    x = T.tensor3("x", dtype=dtype)
    out = scanned(lambda each: [each.sum(axis=0), each.sum(axis=1), T.cumsum(each, axis=0), each.max()], sequences=x)
    return [x], [*out, graphc.grad(sum(each.sum() for each in out), x)]


@program
def products(dtype: str) -> Program:
    x = T.matrix("x", dtype=dtype)
    out = scanned(lambda state: T.dot(state, x), outputs_info=x, n_steps=3)
    return [x], [out[-1], out[0], graphc.grad(out[-1].sum(), x)]


NEED_A_STEP = {"a_state_changed_in_place", "taps", "a_loop_in_a_loop"}
STAGED = {"a_loop_that_ends_by_itself"}
"""How many rows there are is for a first kernel to tell."""
SHAPES = {0: (), 1: (4,), 2: (4, 4), 3: (4, 3, 5)}
EMPTY = {0: (), 1: (0,), 2: (0, 0), 3: (0, 3, 5)}


def values(inputs: Sequence[Node], shapes: dict[int, tuple[int, ...]]) -> list[Any]:
    generator = np.random.default_rng(3)
    drawn = [generator.uniform(-1, 1, shapes[node.ndim]).astype(node.dtype) for node in inputs]
    return [np.asarray(3, node.dtype) if node.dtype == "int32" else v for node, v in zip(inputs, drawn, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_compute_what_the_interpreter_computes(name: str, dtype: str) -> None:
    inputs, outputs = PROGRAMS[name](dtype)
    given = values(inputs, SHAPES)
    tolerance = 200 * float(np.finfo(dtype).eps)
    want = graphc.function(inputs, outputs, mode="interpreted")(*given)
    for mode in ("python", "compiled"):
        got = graphc.function(inputs, outputs, mode=mode)(*given)
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in PROGRAMS if name not in ("a_state_changed_in_place", "taps", "a_loop_in_a_loop")]
)
def test_loops_without_a_step(name: str) -> None:
    inputs, outputs = PROGRAMS[name]("float64")
    outputs = [output for output in outputs if output.ndim and output.op.name == "item"]
    given = [value * 0 if not value.ndim else value for value in values(inputs, EMPTY)]
    results = [graphc.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*given)
               for mode in ("interpreted", "python", "compiled")]  # fmt: skip
    for result in results[1:]:
        for one, other in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in STAGED])
def test_every_pass_keeps_what_steps_compute(name: str) -> None:
    inputs, outputs = PROGRAMS[name]("float64")
    options.verify = True
    found = watch(lambda: graphc.function(inputs, outputs, mode="python"))
    check_text(found)
    small = {0: (), 1: (2,), 2: (2, 2), 3: (2, 2, 3)} if name != "taps" else {1: (3,), 2: (3, 2)}
    check_passes(found, [value // 2 if value.dtype == "int32" else value for value in values(inputs, small)])


def test_an_index_that_a_step_computes_is_checked() -> None:
    x, n = T.vector("x"), T.iscalar("n")
    out = scanned(lambda i: x[i], sequences=T.arange(n))
    for mode in ("interpreted", "python", "compiled"):
        call = graphc.function([x, n], out, mode=mode)
        np.testing.assert_array_equal(call(np.arange(3.0), 3), np.arange(3.0))
        with pytest.raises(IndexError, match=r"index 3.* of bounds for axis 0, whose size is 3"):
            call(np.arange(3.0), 4)


def test_a_state_that_changes_its_size_is_refused() -> None:
    x, w = T.vector("x"), T.matrix("w")
    out = scanned(lambda state: T.dot(w, state), outputs_info=x, n_steps=2)
    for mode in ("interpreted", "python", "compiled"):
        with pytest.raises(ValueError, match="after a step 2"):
            graphc.function([x, w], out, mode=mode)(np.ones(3), np.ones((2, 3)))


def test_scalars_are_carried_in_names_and_vectors_updated_in_place() -> None:
    x = T.vector("x")
    out = scanned(lambda each, state: T.sin(state) + each, sequences=x, outputs_info=T.constant(0.0))
    source = graphc.function([x], out, mode="python").source
    assert "carry = " in source and "for step in range(part" in source
    state = scanned(lambda each, s: T.sin(s) + each, sequences=x, outputs_info=x)
    assert "the state for the next step, in place" in graphc.function([x], state, mode="python").explain()


@pytest.mark.slow
def test_products_of_what_must_be_small_are_written_out() -> None:
    x, w, n = T.matrix("x"), T.matrix("w"), T.iscalar("n")
    out = scanned(lambda state: T.dot(T.dot(w, state), w.T) + np.eye(3), outputs_info=x, n_steps=n)[-1]
    given = np.random.default_rng(0).normal(size=(2, 3, 3))
    results = [graphc.function([x, w, n], out, mode=mode)(*given, 3) for mode in ("interpreted", "python", "compiled")]
    np.testing.assert_allclose(results[1:], [results[0]] * 2, rtol=1e-12)
    assert "gemm" not in code(graphc.function([x, w, n], out, mode="python").source)


def test_threads_share_the_elements_of_steps_that_know_nothing_of_each_other() -> None:
    """Of steps that are few: those of a loop that asks whether its call must end belong to one thread."""
    x = variable("float64", (10_001,), "x")
    alone = graphc.function([x], scanned(T.sin, outputs_info=x, n_steps=20)[-1])
    assert "columns(" in code(alone.source)
    value = np.linspace(-3, 3, 10_001)
    np.testing.assert_array_equal(alone(value), alone(value[::-1].copy())[::-1])
    around = scanned(lambda s: T.sin(s) + s[::-1], outputs_info=x, n_steps=20)[-1]
    assert "columns(" not in code(graphc.function([x], around).source)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "python", "compiled"])
def test_steps_in_blocks_over_parts_of_a_size_that_outer_steps_are_given(mode: str) -> None:
    a, x, n = T.dscalar("a"), T.dvector("x"), T.lscalar("n")
    out = scanned(lambda s: T.concatenate([s[1:], s[:1]]) * a, outputs_info=x, n_steps=n, checkpoint=3)[-1]
    call = graphc.function([a, x, n], [out, graphc.grad(out.sum(), a)], mode=mode)
    for steps in (1, 3, 7):
        value, slope = call(0.5, np.arange(4.0), steps)
        np.testing.assert_allclose(value, np.roll(np.arange(4.0), -steps) * 0.5**steps)
        np.testing.assert_allclose(slope, 6 * steps * 0.5 ** (steps - 1))


def test_a_new_number_of_steps_compiles_nothing() -> None:
    x, n = T.vector("x"), T.iscalar("n")
    out = scanned(lambda state: state * 2, outputs_info=x, n_steps=n)
    call = graphc.function([x, n], out[-1])
    for steps in (1, 2, 5, 1000):
        np.testing.assert_array_equal(call(np.ones(2), steps), np.full(2, 2.0**steps))
    assert len(call.variants.lines()) == len(graphc.function([x, n], out[-1]).variants.lines())  # type: ignore[attr-defined]


def test_a_function_of_the_user_in_a_step_is_found_in_the_cache() -> None:
    x = T.matrix("x")
    out = scanned(doubled, sequences=x)
    results = [graphc.function([x], out, mode=mode)(np.ones((2, 3))) for mode in ("compiled", "compiled", "python")]
    for result in results:
        np.testing.assert_array_equal(result, np.full((2, 3), 2.0))
    assert "cache: " in graphc.function([x], out).explain()


@graphc.op
def doubled(x: Any) -> Any:
    return 2 * x


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_rows_that_no_step_has_written_are_zeros(reverse: bool, limited: bool) -> None:
    x, bound, limit = T.dmatrix("x"), T.dscalar("bound"), T.lscalar("limit")
    row, total = variable("float64", (2,)), variable("float64", ())
    after = total + row.sum()
    body, fixed = close([row, total], [after, row * 2.0, after > bound, after > bound])
    begin, most = T.constant(0.0), limit if limited else None
    node = scan_node(x.type.shape[0], body, [x], [begin], fixed, reverse=reverse, until=True, limit=most)
    results = [item(node, place) for place in range(4)]
    inputs = [x, bound, limit][: 2 + limited]
    compiled, meant = (graphc.function(inputs, results, mode=mode) for mode in ("compiled", "interpreted"))
    for steps in (0, 1, 6):
        for given in ((-1.0, 3), (2.5, 4), (2.5, -1), (1e3, 4), (1e3, 9)):
            values = np.full((steps, 2), 0.5), *given[: 1 + limited]
            for got, wanted in zip(compiled(*values), meant(*values), strict=True):
                np.testing.assert_array_equal(got, wanted)


@pytest.mark.slow
def test_an_index_that_a_step_computes_is_checked_where_it_is_known() -> None:
    """Chances of the item that is drawn of them in the same step, where a size of the state is that of another array by
    a guard; the derivative too, and an index that is out of bounds."""
    x, first, weights = T.dmatrix("x"), T.dvector("first"), T.dmatrix("weights")
    rng = RandomStreams(3)

    def step(row: Any, state: Any) -> Any:
        chances = T.nnet.softmax(T.dot(row, weights) + state).flatten()
        drawn = T.argmax(rng.multinomial(pvals=chances))
        return state + chances[drawn], T.log(chances[drawn])

    (_, scores), updates = graphc.scan(step, sequences=[x], outputs_info=[first, None])
    outputs = [scores, graphc.grad(scores.sum(), weights)]
    given = [np.random.default_rng(0).normal(size=shape) for shape in ((5, 4), (4,), (4, 4))]
    made, want = (
        graphc.function([x, first, weights], outputs, mode=mode, updates=updates)
        for mode in ("compiled", "interpreted")
    )
    assert isinstance(made, Compiled)
    begun = [state.get_value() for state, _ in rng.state_updates]
    found = made(*given)
    for (state, _), value in zip(rng.state_updates, begun, strict=True):
        state.set_value(value)
    for one, other in zip(found, want(*given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    rows, _ = graphc.scan(
        lambda row, state: state + row[4 * T.argmax(T.cumsum(T.dot(row, weights) + state))],
        sequences=[x],
        outputs_info=[first],
    )
    f = graphc.function([x, first, weights], rows)
    assert isinstance(f, Compiled)
    with pytest.raises(IndexError, match="out of bounds for axis 0, whose size is 4"):
        f(np.ones((5, 4)), np.ones(4), np.ones((4, 4)))
