"""The parts of a plan may stand in a loop or a branch: names are given inside it, and forgotten with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.lower.elements import Lowerer
from graphc.codegen.lower.parts import lower_parts
from graphc.codegen.lower.scopes import Scope, Scopes
from graphc.codegen.pipeline import program
from graphc.codegen.schedule.plan import Part, Plan
from graphc.codegen.transform.outline_regions import OUTLINE_ABOVE
from graphc.ir.node import Node
from graphc.loopir.ir import INDEX, ZERO, Break, Buffer, Const, If, Let, Load, Loop, Var, add, apply, integer, multiply
from graphc.loopir.operators import GT
from graphc.loopir.syntax import Names
from graphc.options import options
from tests.support.watched import check_passes, check_text, watch

Array = NDArray[Any]
ITERATION, J = Var("i", INDEX), Var("j", INDEX)
AGAIN = Var("again", INDEX)
PROGRAMS: dict[str, Callable[[Node], Node]] = {
    "elements": lambda x: T.exp(x.T) + x,
    "a scalar of all elements": lambda x: x / (1.0 + x.sum()) + x.max(),
    "rows": graphc.nnet.softmax,
    "columns": lambda x: (x - x.mean(axis=0)).var(axis=0),
    "a product": lambda x: T.dot(x, x) + T.dot(x, x.T)[0],
    "a recurrence": lambda x: T.cumsum(x, axis=0) + T.cumsum(x, axis=1)[::-1],
    "writes": lambda x: T.inc_subtensor(T.zeros_like(x)[T.argmax(x, axis=1)], x),
    "an extreme": lambda x: x[T.argmax(x.sum(axis=1))] * T.argmin(x),
}


def twice(lowerer: Lowerer, plan: Plan, parts: Sequence[Part], scope: Scope) -> None:
    inner = lowerer.scopes.enter(scope, AGAIN, integer(2))
    lower_parts(lowerer, plan, parts, inner)
    lowerer.scopes.leave(inner, scope)
    (loop,) = scope.body
    assert isinstance(loop, Loop) and loop.var == AGAIN


def either(lowerer: Lowerer, plan: Plan, parts: Sequence[Part], scope: Scope) -> None:
    """In both branches, and in the second in a loop that is left after its first iteration."""
    first = Load(next(iter(plan.memory.leaves.values())), ZERO)
    with lowerer.scopes.branch(scope) as then:
        lower_parts(lowerer, plan, parts, then)
    with lowerer.scopes.branch(scope) as orelse:
        inner = lowerer.scopes.enter(orelse, AGAIN, integer(3))
        lower_parts(lowerer, plan, parts, inner)
        with lowerer.scopes.branch(inner) as leave:
            leave.body.append(Break())
        inner.body.append(If(apply(GT, Const("1.0", "float64"), first), tuple(leave.body)))
        lowerer.scopes.leave(inner, orelse)
    scope.body.append(If(apply(GT, first, Const("0.0", "float64")), tuple(then.body), tuple(orelse.body)))
    assert len(scope.body) == 1, "all that is computed stands in the branches"


def branches(value: Array) -> Iterable[Array]:
    """An argument for each way."""
    for first in (-0.5, 0.5):
        value[0, 0] = first
        yield value


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_is_carried_out_in_a_branch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = T.dmatrix("x")
    interpreted = graphc.function([x], PROGRAMS[name](x), mode="interpreted")
    monkeypatch.setattr(program, "lower_parts", either)
    for mode in ("python", "compiled"):
        call = graphc.function([x], PROGRAMS[name](x), mode=mode, name=f"either_{name}")
        assert "else:" in call.source and "break" in call.source
        for size in (5, 1):
            for value in branches(np.random.default_rng(0).normal(size=(size, size))):
                np.testing.assert_allclose(call(value), interpreted(value))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["auto", "always", "never"])
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"an extreme"}))
def test_a_plan_in_a_branch_goes_through_the_passes(name: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "lower_parts", either)
    x = T.dmatrix("x")
    with options.change(outline=policy):
        found = watch(lambda: graphc.function([x], PROGRAMS[name](x), mode="python"))
    check_text(found)
    for value in branches(np.random.default_rng(0).normal(size=(5, 5))):
        check_passes(found, [value])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"a product"}))
def test_nests_in_a_branch_are_shared_by_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = T.dmatrix("x")
    interpreted = graphc.function([x], PROGRAMS[name](x), mode="interpreted")
    monkeypatch.setattr(program, "lower_parts", either)
    call = graphc.function([x], PROGRAMS[name](x), threads=2)
    then = call.source.split("    if x[0] > 0.0:")[1].split("    else:")[0]
    assert "        parallel" in then or "        launch_" in then
    for value in branches(np.random.default_rng(0).normal(size=(700, 700))):
        np.testing.assert_allclose(call(value), interpreted(value), rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_is_carried_out_in_a_loop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "lower_parts", twice)
    x = T.dmatrix("x")
    value: Array = np.random.default_rng(0).normal(size=(5, 5))
    for mode in ("python", "compiled"):
        call = graphc.function([x], PROGRAMS[name](x), mode=mode)
        assert "again in range" in call.source
        np.testing.assert_allclose(call(value), graphc.function([x], PROGRAMS[name](x), mode="interpreted")(value))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["auto", "always", "never"])
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"an extreme"}))  # that is two programs, one after the other
def test_a_plan_in_a_loop_goes_through_the_passes(name: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its nests are functions, called and launched within the loop: what stands between the passes is run."""
    monkeypatch.setattr(program, "lower_parts", twice)
    x = T.dmatrix("x")
    with options.change(outline=policy):
        found = watch(lambda: graphc.function([x], PROGRAMS[name](x), mode="python"))
    check_text(found)
    check_passes(found, [np.random.default_rng(0).normal(size=(5, 5))])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a scalar of all elements", "columns", "a recurrence"])
def test_nests_in_a_loop_are_shared_by_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are many, or are functions anyhow."""
    monkeypatch.setattr(program, "lower_parts", twice)
    x = T.dmatrix("x")
    value: Array = np.random.default_rng(0).normal(size=(700, 700))
    with options.change(outline="always"):
        call = graphc.function([x], PROGRAMS[name](x), threads=2)
    inside = call.source.split("for again in range(2):")[1].splitlines()
    assert sum(line.startswith(("        parallel(", "        launch_")) for line in inside) >= 2
    want = graphc.function([x], PROGRAMS[name](x), mode="interpreted")(value)
    np.testing.assert_allclose(call(value), want, rtol=1e-8, atol=1e-8)


def test_many_nests_in_a_loop_are_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "lower_parts", twice)
    vectors = [T.dvector(f"x{number}") for number in range(OUTLINE_ABOVE + 1)]
    outputs = [T.exp(x) * number for number, x in enumerate(vectors)]
    for count in (OUTLINE_ABOVE, OUTLINE_ABOVE + 1):
        source = graphc.function(vectors[:count], outputs[:count], mode="python").source
        assert ("def launch_" in source) == (count > OUTLINE_ABOVE)


def test_what_is_named_in_a_loop_is_forgotten_with_it() -> None:
    scopes = Scopes(Names(()))
    outer = scopes.enter(scopes.top, ITERATION, integer(5))
    row = scopes.name_once(multiply(ITERATION, integer(3)), "row")
    inner = scopes.enter(outer, J, integer(5))
    place = scopes.name_once(add(row, J), "place")
    assert scopes.scope_of(row) is outer and scopes.scope_of(place) is inner
    assert scopes.name_once(add(row, J), "place") is place
    scopes.leave(inner, outer)
    assert scopes.name_once(multiply(ITERATION, integer(3)), "row") is row
    scopes.enter(outer, J, integer(5))
    assert scopes.name_once(add(row, J), "place") != place


def test_what_is_named_in_a_branch_stands_in_it_and_is_forgotten_with_it() -> None:
    """Though it could be computed outside: it may not be there."""
    scopes = Scopes(Names(()))
    outer = scopes.enter(scopes.top, ITERATION, integer(5))
    known = scopes.name_once(multiply(ITERATION, integer(3)), "known")
    element = Load(Buffer("x", "float64"), ZERO)
    with scopes.branch(outer) as branch:
        assert scopes.name_once(multiply(ITERATION, integer(3)), "known") is known
        first = scopes.bind(element, "first")
        place = scopes.name_once(multiply(ITERATION, integer(7)), "place")
        assert scopes.scope_of(first) is scopes.scope_of(place) is scopes.scope_of(ITERATION) is branch
        assert scopes.depth(branch) == 0
        inner = scopes.enter(branch, J, integer(5))
        again = scopes.bind(element, "again")
        deep = scopes.name_once(add(known, J), "deep")
        with scopes.branch(inner) as deeper:
            scopes.bind(element, "deeper")
            assert scopes.name_once(add(known, J), "deep") is deep
            assert scopes.name_once(multiply(ITERATION, integer(7)), "place") is place
        inner.body.append(If(apply(GT, deep, ZERO), tuple(deeper.body)))
        scopes.leave(inner, branch)
    assert scopes.base is scopes.top and len(outer.body) == 1 and not scopes.top.body
    *names, loop = branch.body
    assert [stmt.var for stmt in names if isinstance(stmt, Let)] == [first, place, again]
    assert isinstance(loop, Loop) and len(loop.body) == 2 and len(deeper.body) == 1
    assert scopes.name_once(multiply(ITERATION, integer(7)), "place") != place
    assert scopes.scope_of(ITERATION) is outer
