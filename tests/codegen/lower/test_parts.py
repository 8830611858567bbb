"""The parts of a plan may stand in a loop: names are given inside it, and forgotten with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.parts import lower_parts
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.pipeline import program
from graphc.codegen.schedule.plan import Part, Plan
from graphc.codegen.schedule.sizes import Sizing
from graphc.ir.node import Node
from graphc.loops.ir import INDEX, Loop, Var, add, integer, multiply
from graphc.loops.names import Names

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


def twice(lowerer: Lowerer, plan: Plan, parts: Iterable[Part], scope: Scope) -> None:
    inner = lowerer.enter(scope, AGAIN, integer(2))
    lower_parts(lowerer, plan, parts, inner)
    lowerer.leave(inner, scope)
    (loop,) = scope.body
    assert isinstance(loop, Loop) and loop.var == AGAIN


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


def test_what_is_named_in_a_loop_is_forgotten_with_it() -> None:
    lowerer = Lowerer({}, {}, Sizing((), {}), Names(()))
    outer = lowerer.enter(lowerer.top, ITERATION, integer(5))
    row = lowerer.name_once(multiply(ITERATION, integer(3)), "row")
    inner = lowerer.enter(outer, J, integer(5))
    place = lowerer.name_once(add(row, J), "place")
    assert lowerer.scope_of(row) is outer and lowerer.scope_of(place) is inner
    assert lowerer.name_once(add(row, J), "place") is place
    lowerer.leave(inner, outer)
    assert lowerer.name_once(multiply(ITERATION, integer(3)), "row") is row
    lowerer.enter(outer, J, integer(5))
    assert lowerer.name_once(add(row, J), "place") != place
