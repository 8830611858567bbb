"""Nests as functions of their own: equal ones are one, the kernel that calls them computes what it computed before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import nnet, optim
from graphc.codegen.threads.settings import MOST_CHUNKS
from graphc.codegen.transform.independence import mark_independent
from graphc.codegen.transform.outline import LAUNCHES_IN_KERNEL, Outlined, outline
from graphc.codegen.transform.outline_regions import OUTLINE_ABOVE
from graphc.ir.node import Node
from graphc.loopir.ir import (
    INDEX,
    ZERO,
    Buffer,
    Check,
    Const,
    Expr,
    Invoke,
    Launch,
    Let,
    Load,
    Loop,
    Set,
    Stmt,
    Store,
    Var,
    apply,
)
from graphc.loopir.operators import ACCUMULATE, ADD, CALLS, GE, MUL, SUB, Operator
from graphc.loopir.syntax import Names
from graphc.options import options
from tests.support.bounds import assert_within

Program = tuple[list[Node], list[Node]]
ROW, N, SUM = Var("i", INDEX), Var("n", INDEX), Var("sum", "float64")
NOTHING = Const("0.0", "float64")
STATE = apply(CALLS["float64"], Const("2.0", "float64"))
A, B, C, D = (Buffer(name, "float32" if name == "d" else "float64") for name in "abcd")


@pytest.fixture
def always() -> Iterator[None]:
    with options.change(outline="always"):
        yield


def scale(source: Buffer, target: Buffer, factor: str = "2.0", op: Operator = MUL) -> Loop:
    value = apply(op, Load(source, ROW), Const(factor, source.dtype))
    return Loop(ROW, N, (Store(target, ROW, value),))


def total(source: Buffer, into: Var, start: Expr = NOTHING, step: Operator = ACCUMULATE) -> tuple[Stmt, ...]:
    value = apply(step, into, Load(source, ROW))
    return Set(into, start), Loop(ROW, N, (Set(into, value),))


def outlined(*body: Stmt, policy: str = "always") -> Outlined:
    return outline(mark_independent(body), Names(()), policy)


def outlined_functions(*body: Stmt) -> int:
    return len(outlined(*body).functions)


def test_nests_that_are_equal_but_for_names_are_one_function() -> None:
    assert outlined_functions(scale(A, B), scale(B, C)) == 1
    assert outlined_functions(scale(A, B), scale(A, A)) == 2
    assert outlined_functions(scale(A, B), scale(D, D)) == 2


def test_a_literal_in_which_equal_nests_differ_is_a_parameter() -> None:
    found = outlined(scale(A, B), scale(B, C, factor="3.0"))
    assert len(found.functions) == 1
    assert found.functions[0].params[-1].kind == "float64"
    literals = [stmt.args[-1] for stmt in found.body if isinstance(stmt, Launch)]
    assert literals == [Const("2.0", "float64"), Const("3.0", "float64")]
    power = CALLS["pow"]
    assert outlined_functions(scale(A, B, op=power), scale(B, C, "3.0", power)) == 2


def test_a_long_run_of_scalars_is_cut_into_blocks() -> None:
    steps = [Let(Var("v0", "float64"), Load(A, ZERO))]
    for number in range(400):
        before = Var(f"v{number}", "float64")
        steps.append(Let(Var(f"v{number + 1}", "float64"), apply(MUL, before, before)))
    found = outlined(*steps, Store(B, ZERO, steps[-1].var), policy="auto")
    calls = [stmt.function for stmt in found.body if isinstance(stmt, Invoke)]
    assert len(calls) == 4
    assert len(set(calls)) == 3, "the first loads, the last is shorter, those between are equal"
    assert sum(isinstance(stmt, Let) for function in found.functions for stmt in function.body) < 401


def test_a_scalar_leaves_its_nest_through_the_buffer_of_scalars() -> None:
    other = Var("other", "float64")
    uses = Store(C, ZERO, SUM), Store(D, ZERO, other)
    totals = *total(A, SUM, step=SUB), *total(B, other, step=SUB)
    found = outlined(*totals, *uses)
    assert len(found.functions) == 1
    assert found.scalars == {Buffer("scalars_float64", "float64", is_temporary=True): 2}
    assert [type(stmt) for stmt in found.body] == [Invoke, Let, Invoke, Let, Store, Store]
    assert [param.kind for param in found.functions[0].params] == ["int64", "int64", "float64*", "float64*"]


def test_a_scalar_that_does_not_start_anew_stays_in_the_kernel() -> None:
    first, loop = total(A, SUM)
    again = total(B, SUM)[1]
    assert outlined_functions(first, loop, again) == 0
    assert outlined_functions(*total(A, SUM, Load(B, ZERO))) == 0


def test_equal_checks_are_one_function_and_keep_their_numbers() -> None:
    positive = apply(GE, Load(A, ROW), NOTHING)
    body = [Loop(ROW, N, (Check(positive, code),)) for code in (3, 4)]
    found = outlined(*body)
    assert len(found.functions) == 1
    assert [stmt.code for stmt in found.body if isinstance(stmt, Invoke)] == [3, 4]


def checked(size: Expr) -> Loop:
    """A nest that threads cannot share: its iterations wait for each other."""
    before = Load(B, apply(SUB, ROW, Const("1", INDEX)))
    return Loop(ROW, size, (Store(B, ROW, apply(MUL, before, Load(A, ROW))),))


def test_where_there_are_many_nests_each_computes_its_limits() -> None:
    def limit(number: int, of: Var = N) -> tuple[Var, Let]:
        var = Var(f"limit{number}", INDEX)
        return var, Let(var, apply(MUL, of, apply(ADD, of, Const(str(number), INDEX))))

    body: list[Stmt] = []
    for number in range(OUTLINE_ABOVE + 1):
        var, let = limit(number)
        body += [let, checked(apply(ADD, var, var))]
    found = outlined(*body, policy="auto")
    assert [type(stmt) for stmt in found.body] == [Invoke] * len(found.body)
    assert len(found.functions) == 1 and isinstance(found.functions[0].body[0], Let)
    assert found.functions[0].params[0] is N
    few = outlined(*body[:4], policy="auto")
    assert [type(stmt) for stmt in few.body] == [Let, Loop] * 2

    count = Var("count", INDEX)
    var, let = limit(len(body), count)
    more: list[Stmt] = [Set(count, Const("3", INDEX)), let, Set(count, Const("4", INDEX)), checked(var)]
    kept = outlined(*body, *more, policy="auto").body[-4:]
    assert [type(stmt) for stmt in kept] == [Set, Let, Set, Invoke], "the number has changed since"


def test_a_small_kernel_stays_one_function() -> None:
    assert outlined(*total(A, SUM, step=SUB), policy="auto").functions == ()


def recurrence(into: Var, terms: int) -> tuple[Stmt, ...]:
    """A state that each iteration makes of the one before."""
    value: Expr = into
    for _ in range(terms):
        value = apply(ADD, apply(MUL, value, Load(B, ROW)), Load(A, ROW))
    return Set(into, STATE), Loop(ROW, N, (Set(into, value),))


@pytest.mark.parametrize("policy", ["auto", "always"])
def test_a_large_loop_over_a_state_is_a_function_in_which_the_state_begins(policy: str) -> None:
    found = outlined(*recurrence(SUM, 20), Store(B, ZERO, SUM), policy=policy)
    assert [type(stmt) for stmt in found.body] == [Invoke, Let, Store]
    (function,) = found.functions
    assert isinstance(function.body[0], Set) and function.body[0].var == SUM
    assert len(outlined(*recurrence(SUM, 5), policy=policy).functions) == (policy == "always")


def test_chunks_do_not_each_begin_with_a_state() -> None:
    """What is added to it may be added up in any order, but the state is there once."""
    assert [type(stmt) for stmt in outlined(*total(A, SUM, STATE)).body] == [Invoke, Let]


def test_a_nest_that_threads_may_share_is_launched_and_its_scalars_are_combined_in_order() -> None:
    found = outlined(*total(A, SUM), scale(A, B), policy="auto")
    assert [type(stmt) for stmt in found.body] == [Let, Launch, Set, Loop, Launch]
    assert [len(function.params) for function in found.functions] == [5, 4]
    assert found.scalars == {Buffer("partial_float64", "float64", is_temporary=True): MOST_CHUNKS}
    assert [line.split(":")[0] for line in found.launches] == [function.name for function in found.functions]


def network(layers: int) -> graphc.Function:
    x = T.dmatrix("x")
    hidden, params = x, []
    for number in range(layers):
        weights, bias = np.full((3, 3), 0.1 * (number + 1)), np.zeros(3)
        params += [graphc.shared(weights, name=f"w{number}"), graphc.shared(bias, name=f"b{number}")]
        hidden = nnet.sigmoid(T.dot(hidden, params[-2]) + params[-1])
    cost = T.sqr(hidden).mean()
    return graphc.function([x], cost, updates=optim.momentum(cost, params, 0.1))


@pytest.mark.slow
def test_a_deeper_network_of_equal_layers_needs_no_more_functions() -> None:
    found = []
    for layers in (6, 12):
        call = network(layers)
        found.append(call.source.count("def nest_"))
        blocks = call.source.count("in range(blocks(")  # of rows, which the kernel goes by: one loop each way
        assert blocks <= 2 * layers and call.source.count("for ") - blocks < 40
    assert found[0] == found[1] > 0


def softmax_gradient() -> Program:
    x, y = T.dmatrix("x"), T.lvector("y")
    cost = nnet.categorical_crossentropy(nnet.softmax(x), y).mean()
    return [x, y], [cost, graphc.grad(cost, x)]


def moments() -> Program:
    x, y = T.fmatrix("x"), T.lvector("y")
    return [x, y], [x.mean(axis=0), x.var(), x.argmax(), x.max() > 0.5, y.sum(), x[y]]


@pytest.mark.slow
@pytest.mark.parametrize("build", [softmax_gradient, moments])
@pytest.mark.usefixtures("always")
def test_outlined_kernels_compute_what_the_interpreter_does(build: Callable[[], Program]) -> None:
    inputs, outputs = build()
    calls = [graphc.function(inputs, outputs, mode=mode) for mode in ("python", "compiled")]
    assert "def nest_" in calls[1].source
    rng = np.random.default_rng(0)
    for rows in (1, 5):
        values = rng.normal(size=(rows, 4)).astype(inputs[0].dtype), rng.integers(-rows, rows, rows) % 4 % rows
        for call in calls:
            assert_within(call(*values), outputs, dict(zip(inputs, values, strict=True)))
    for call in calls:
        with pytest.raises(graphc.GraphcError):
            call(values[0], np.full(5, 99))


@pytest.mark.slow
def test_many_launches_are_functions() -> None:
    """Nests that threads may share, more than a kernel launches itself: elementwise, and sums that chunks leave."""
    vectors = [T.dvector(f"x{n}") for n in range(LAUNCHES_IN_KERNEL + 1)]
    outputs = [part for n, x in enumerate(vectors) for part in (T.exp(x) * (n + 1.0), (x * (n + 2.0)).sum(), x.max())]
    rng = np.random.default_rng(0)
    calls = {mode: graphc.function(vectors, outputs, mode) for mode in ("python", "compiled")}
    assert calls["python"].source.count("def launch_") >= 2
    assert "parallel(" not in calls["python"].source.split("def kernel(")[1].split("\ndef ")[0]
    for size in (1, 300, 70_000):
        values = [rng.normal(size=size + n) for n in range(len(vectors))]
        for mode, call in calls.items():
            if mode == "compiled" or size < 1000:
                assert_within(call(*values), outputs, dict(zip(vectors, values, strict=True)))
