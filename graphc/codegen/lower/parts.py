"""The parts of a plan, one after the other, each by what carries it out.

In: a plan, the parts of it that belong in a scope, and the `Lowerer` that writes the kernel. Out: statements at the end
of that scope, under remarks for the reader of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from graphc.codegen.lower.branches import lower_branch
from graphc.codegen.lower.calls import lower_call
from graphc.codegen.lower.fused import lower_rows
from graphc.codegen.lower.lowerer import Lowerer
from graphc.codegen.lower.nests import lower_nest
from graphc.codegen.lower.recurrences import lower_recur
from graphc.codegen.lower.reductions import lower_column_reduction
from graphc.codegen.lower.scopes import Scope
from graphc.codegen.lower.segments import lower_segments
from graphc.codegen.lower.steps import lower_steps
from graphc.codegen.schedule.plan import Nest, Part, Plan, Rows, nests_of
from graphc.loopir.ir import Note


def lower_parts(lowerer: Lowerer, plan: Plan, parts: Sequence[Part], scope: Scope) -> None:
    """Parts that are carried out in every iteration of the loop of a scope: what they compute is named inside it."""
    base, lowerer.base = lowerer.base, scope
    before, lowerer.pending = (
        lowerer.pending,
        {root for part in parts for nest in nests_of(part) for root in nest.roots},
    )
    for part in parts:
        if isinstance(part, Rows):
            lower_rows(lowerer, part, partial(remarks, plan), scope)
        else:
            scope.body.extend(remarks(plan, part))
            lower_part(lowerer, plan, part, scope)
        lowerer.finish(scope)
    lowerer.base, lowerer.pending = base, before


def lower_part(lowerer: Lowerer, plan: Plan, nest: Nest, scope: Scope) -> None:
    """A nest that shares no loop."""
    match nest.kind:
        case "call":
            lower_call(lowerer, nest, scope)
        case "recurrence":
            lower_recur(lowerer, nest, scope)
        case "segments":
            lower_segments(lowerer, nest, scope)
        case "column reduction":
            lower_column_reduction(lowerer, nest, scope)
        case "steps" | "branch":
            lower_bodies = lower_steps if nest.kind == "steps" else lower_branch
            lower_bodies(lowerer, nest, plan, scope, lambda inner, body: lower_parts(lowerer, inner, inner.parts, body))
        case _:
            lower_nest(lowerer, nest, plan, scope)
    lowerer.stored(nest.roots)


def remarks(plan: Plan, nest: Nest) -> list[Note]:
    """What a nest is for, for the reader of the source: the user's lines that it computes."""
    if nest.kind == "check":
        bound = plan.bounds[nest.number]
        text = f"indices must lie within their axis: {plan.labels.line(bound.gather)}"
        return [Note(text, f"check_{plan.labels(bound.gather)}")]
    if nest.kind == "guard":
        return []
    return [Note(plan.labels.origin(nest.roots), plan.labels.joined(nest.roots))]
