"""The verifier of plans refuses plans that are wrong; every other test shows that it takes those that are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.pipeline import program
from graphc.codegen.schedule import fusion
from graphc.codegen.schedule.plan import Nest, Part, Plan, SharedLoop
from graphc.codegen.schedule.scheduler import schedule
from graphc.codegen.schedule.verify import verify_plan
from graphc.errors import VerifyError
from graphc.ir.node import Node
from graphc.options import options
from graphc.startup.record import replace


@pytest.fixture(scope="module")
def plans() -> Iterator[dict[str, Plan]]:
    """Good plans, by what they are of."""
    found: list[Plan] = []

    def remembered(*args: Any) -> Plan:
        found.append(schedule(*args))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch, options.change(cache=False):
        patch.setattr(program, "schedule", remembered)
        patch.setattr(fusion, "BLOCK_BYTES", 256)
        patch.setattr(fusion, "SHORT_ROW", 1)
        made = {}
        for name, (inputs, outputs, updates) in graphs().items():
            graphc.function(inputs, outputs, mode="python", updates=updates)
            made[name] = found[-1]
        yield made


def graphs() -> dict[str, tuple[list[Any], list[Any], list[Any]]]:
    x, w, v, i = T.dmatrix("x"), T.dmatrix("w"), T.dvector("v"), T.lvector("i")
    state = graphc.shared(np.zeros(3), name="state")
    inner, last = T.dot(x, w), T.tanh(T.dot(T.tanh(T.dot(x, w)), w))
    return {
        "products": ([x, w], [T.dot(last, w), inner.sum()], []),
        "rows": ([x], [graphc.nnet.softmax(x), T.exp(x).sum(0)], []),
        "update": ([v], [(state * v).sum()], [(state, state + v)]),
        "deferred": ([v], [], [(state, state[::-1] + v)]),
        "gather": ([v, i], [v[i]], [(state, state + 1.0)]),
        "writes": ([v], [T.inc_subtensor(T.cumsum(v)[1:], v[0]), v.sum()], []),
        "scan": ([v], [graphc.scan(lambda a, b: a * b, sequences=v, outputs_info=v[0])[0].sum() * v], []),
        "blocks": ([x, w], [T.tanh(T.dot(x, w))], []),
    }


def test_good_plans_are_taken(plans: dict[str, Plan]) -> None:
    for plan in plans.values():
        verify_plan(plan)


def memory(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, memory=replace(plan.memory, **changes))


def reasons(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, reasons=replace(plan.reasons, **changes))


def backwards(plan: Plan) -> Plan:
    return replace(plan, parts=plan.parts[::-1])


def nests(plan: Plan, change: Callable[[Nest], Nest]) -> Plan:
    """A plan with all nests changed."""

    def changed(part: Part) -> Part:
        return change(part) if isinstance(part, Nest) else replace(part, body=tuple(map(changed, part.body)))

    return replace(plan, parts=tuple(map(changed, plan.parts)))


def temporaries(plan: Plan) -> list[Node]:
    """The values that lie in the arena, in the order in which they are stored."""
    arena = {slot.buffer for slot in plan.memory.arena}
    return [root for nest in plan.nests for root in nest.roots if plan.memory.buffers.get(root) in arena]


def in_one_buffer(plan: Plan) -> Plan:
    buffers = plan.memory.buffers
    first, then = temporaries(plan)[:2]
    return memory(plan, buffers={**buffers, then: buffers[first]})


def as_rows(plan: Plan) -> Plan:
    first = temporaries(plan)[0]
    return memory(plan, row_depths={**plan.memory.row_depths, first: 1})


def in_a_buffer_less(plan: Plan) -> Plan:
    first = temporaries(plan)[0]
    return memory(plan, buffers={node: b for node, b in plan.memory.buffers.items() if node is not first})


def in_a_short_slot(plan: Plan) -> Plan:
    return memory(plan, arena=tuple(replace(slot, extents=(("float64", (1,)),)) for slot in plan.memory.arena))


def over_a_workspace(plan: Plan) -> Plan:
    spaces = plan.memory.workspaces
    used = {node: tuple(plan.memory.buffers[temporaries(plan)[0]] for _ in found) for node, found in spaces.items()}
    return memory(plan, workspaces=used)


def shared_by_another_size(plan: Plan) -> Plan:
    return replace(plan, parts=tuple(replace(p, size=7) if isinstance(p, SharedLoop) else p for p in plan.parts))


def stored_twice(plan: Plan) -> Plan:
    again = replace(plan.nests[-1], number=99)
    return replace(plan, parts=(*plan.parts, again))


def updated_too_soon(plan: Plan) -> Plan:
    """The value that is computed elsewhere is computed in the buffer of the state, and not copied."""
    (first,) = temporaries(plan)
    (copy,) = plan.memory.buffers.keys() - {first}
    parts = tuple(part for part in plan.parts if not isinstance(part, Nest) or copy not in part.roots)
    why = {node: reason for node, reason in plan.reasons.materialised.items() if node is not copy}
    return reasons(memory(replace(plan, parts=parts), buffers={first: plan.memory.buffers[copy]}), materialised=why)


def in_place_of_another(plan: Plan) -> Plan:
    return nests(plan, lambda nest: replace(nest, in_place=True) if nest.kind == "writes" else nest)


def without_blocks(plan: Plan) -> Plan:
    (loop,) = (part for part in plan.parts if isinstance(part, SharedLoop))
    assert loop.producer is not None
    return replace(plan, parts=(loop.producer, replace(loop, producer=None)))


def unchecked(plan: Plan) -> Plan:
    return replace(plan, parts=tuple(p for p in plan.parts if isinstance(p, SharedLoop) or p.kind != "check"))


def checked_last(plan: Plan) -> Plan:
    ends = sorted(plan.parts, key=lambda part: isinstance(part, Nest) and part.kind == "check")
    return replace(plan, parts=tuple(ends))


BROKEN: dict[str, tuple[str, Callable[[Plan], Plan], str]] = {
    "products backwards": ("products", backwards, "before it is stored"),
    "two in one buffer": ("products", in_one_buffer, "live at the same time"),
    "no buffer": ("products", in_a_buffer_less, "has no buffer"),
    "a slot too short": ("products", in_a_short_slot, "has no room"),
    "a row of a matrix": ("products", as_rows, "whose memory is one row"),
    "a nest twice": ("products", stored_twice, "two nests store"),
    "one number twice": ("products", lambda p: nests(p, lambda n: replace(n, number=0)), "one number"),
    "rows of another size": ("rows", shared_by_another_size, "does not go over its size"),
    "no sizes": ("rows", lambda p: replace(p, size_names={}), "which no argument has"),
    "no leaves": ("rows", lambda p: memory(p, leaves={}), "which lies nowhere"),
    "an update first": ("update", backwards, "reads the old value of state"),
    "an update that is not deferred": ("deferred", updated_too_soon, "reads the old value of state"),
    "an index that is not checked": ("gather", unchecked, "nothing has checked"),
    "a check behind an update": ("gather", checked_last, "nothing has checked|may fail"),
    "checks of nothing": ("gather", lambda p: replace(p, contents=replace(p.contents, checks={})), "carries out"),
    "writes over nothing": ("writes", in_place_of_another, "in place, which is not there"),
    "a scan behind its reader": ("scan", backwards, "before it is stored|before it is complete"),
    "blocks without their loop": ("blocks", without_blocks, "live at the same time|one block"),
    "no reason": ("products", lambda p: reasons(p, materialised={}), "without a reason"),
    "a reason of no nest": ("products", lambda p: reasons(p, not_shared={0: (99, "why")}), "does not stand behind"),
    "a reason of no buffer": ("update", lambda p: reasons(p, written={}), "other buffers"),
    "a buffer of no value": ("update", lambda p: replace(p, parts=p.parts[:0]), "no nest stores it"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_plans_are_refused(name: str, plans: dict[str, Plan]) -> None:
    of, change, message = BROKEN[name]
    with pytest.raises(VerifyError, match=message):
        verify_plan(change(plans[of]))


def test_plans_are_verified_as_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """In tests, and wherever the option `verify` is on: bodies of scans too."""
    seen: list[str] = []
    monkeypatch.setattr("graphc.codegen.schedule.verify.verify_plan", lambda plan: seen.append(plan.of))
    v = T.dvector("v")
    outputs = graphc.scan(lambda a, b: a * b, sequences=v, outputs_info=v[0])[0]
    for verify in (True, False):
        with options.change(cache=False, verify=verify):
            graphc.function([v], outputs + verify, mode="python")
    assert seen == ["step", "kernel"]
