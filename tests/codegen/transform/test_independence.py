"""Loops whose iterations are independent: what says so is right when it is run, and is noticed where it is wrong."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import graphc
import graphc.tensor as T
from graphc.codegen.transform.independence import mark_independent
from graphc.errors import VerifyError
from graphc.loopir.ir import INDEX, Buffer, Const, Expr, Function, Let, Load, Loop, Stmt, Store, Var, apply, integer
from graphc.loopir.operators import ADD, FLOORDIV, MINIMUM, MOD, MUL
from graphc.loopir.syntax import print_functions
from graphc.loopir.verify import verify_functions
from graphc.loopir.visit import statements
from graphc.startup.record import replace
from tests.support.loop_machine import Fault, run
from tests.support.loop_text import parse_functions
from tests.support.random_loops import random_loops

ITERATION, J, N, M, K, ROW = (Var(name, INDEX) for name in ("i", "j", "n", "m", "k", "row"))
A, B, C, AT = (Buffer(name, INDEX) for name in ("a", "b", "c", "at"))
LENGTH = 400

WRONG = {
    "the element before": """
def kernel(x: float64*, out: float64*, n: int64):
    for i in independent(n):
        out[i + 1] = out[i] + x[i]
""",
    "one element for all": """
def kernel(x: float64*, out: float64*, n: int64):
    for i in independent(n):
        out[0] = x[i]
""",
    "another buffer than the one that is named": """
def kernel(x: float64*, out: float64*, a: float64*, n: int64):
    for i in independent(n, but=[a]):
        a[0] = x[i]
        out[0] = x[i]
""",
    "an outer loop": """
def kernel(x: float64*, out: float64*, n: int64):
    for i in independent(n):
        for j in independent(n):
            out[j] = accumulate(out[j], x[i])
""",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mark_is_noticed(name: str) -> None:
    given = {buffer: np.ones(8) for buffer in ("x", "out", "a")}
    with pytest.raises(Fault, match=r"\[\d\] is touched by two iterations"):
        run(parse_functions(WRONG[name]), "kernel", given, {"n": 3}, {}, (), False)


def test_a_scalar_that_is_carried_is_noticed() -> None:
    """Independent iterations of exact numbers run from the last to the first."""
    text = """
def kernel(x: float64*, out: float64*, n: int64):
    last = 0.0
    for i in independent(n):
        last = last * 0.5 + x[i]
    out[0] = last
"""
    found = []
    for source in (text, text.replace("independent", "range")):
        functions = parse_functions(source)
        found.append(run(functions, "kernel", {"x": [1.0, 2.0, 3.0]}, {"n": 3}, {}, (), True)[1]["out"][0].residue)
    assert found[0] != found[1]


def test_buffers_in_which_iterations_conflict_are_known() -> None:
    loop = Loop(ITERATION, N, (Store(A, integer(0), ITERATION),), conflicts=(B,))
    with pytest.raises(VerifyError, match="there is no buffer b"):
        verify_functions([Function("kernel", (A, N), (loop,), "")])
    verify_functions([Function("kernel", (A, N), (replace(loop, conflicts=(A,)),), "")])


INDICES = st.recursive(
    st.sampled_from([ITERATION, J, J, ROW, N, M, integer(0), integer(1), integer(2), Load(AT, ITERATION)]),
    lambda inner: st.one_of(
        st.builds(apply, st.sampled_from([ADD, ADD, MUL]), inner, inner),
        st.builds(apply, st.just(MOD), inner, st.sampled_from([N, M, integer(3)])),
        st.builds(apply, st.just(FLOORDIV), inner, st.sampled_from([integer(2), integer(3)])),
    ),
    max_leaves=6,
)
BUFFERS = st.sampled_from([A, B, C])


@pytest.mark.slow
@given(
    row=st.sampled_from([apply(MUL, ITERATION, M), apply(MUL, Load(AT, ITERATION), M), apply(ADD, ITERATION, N)]),
    stores=st.lists(st.tuples(BUFFERS, INDICES), min_size=1, max_size=3),
    loads=st.lists(st.tuples(BUFFERS, INDICES), max_size=3),
    inner=st.sampled_from([M, M, K, apply(MINIMUM, M, K), apply(MINIMUM, K, N)]),
)
@settings(max_examples=400, suppress_health_check=list(HealthCheck), deadline=None)
def test_iterations_that_are_said_to_be_independent_are(
    row: Expr, stores: list[tuple[Buffer, Expr]], loads: list[tuple[Buffer, Expr]], inner: Expr
) -> None:
    """Loops over random positions, run for several sizes: the machine tells where two iterations meet."""
    value: Expr = Const("1", INDEX)
    for buffer, index in loads:
        value = apply(ADD, value, Load(buffer, index))
    body: tuple[Stmt, ...] = tuple(Store(buffer, index, value) for buffer, index in stores)
    loops = (Loop(ITERATION, N, (Let(ROW, row), Loop(J, inner, body))),)
    size = Let(K, apply(MUL, M, integer(2)))
    for marked in (
        mark_independent((size, *loops)),
        mark_independent((Loop(Var("again", INDEX), integer(2), (size, *loops)),)),
    ):
        function = Function("kernel", (A, B, C, AT, N, M), marked, "")
        verify_functions([function])
        assert parse_functions(print_functions([function])) == (function,)
        for n, m in product((1, 2, 3), repeat=2):
            cells = {name: np.arange(LENGTH) % 2 for name in "abc"} | {"at": np.array([1, 0, 1])}
            run((function,), "kernel", cells, {"n": n, "m": m}, {}, (), False)


def test_loops_of_random_programs_are_marked() -> None:
    """Of those that write something, not all and not none."""
    found = []
    for seed in range(60):
        marked = mark_independent(random_loops(seed).body)
        loops = [stmt for stmt in statements(marked) if isinstance(stmt, Loop)]
        found += [loop.is_independent for loop in loops if any(isinstance(s, Store) for s in statements(loop.body))]
    assert 0.1 < np.mean(found) < 0.9


def test_the_source_says_so() -> None:
    x = T.dmatrix("x")
    source = graphc.function([x], T.cumsum(x, axis=1), mode="python").source
    assert "for i in independent(begin, end):" in source and "for j in range(x_1):" in source
