"""A plan as a person reads it.

In: a plan, and the names of sizes in the generated source. Out: its lines, for `explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from graphc.arrays.dtypes import is_float
from graphc.codegen.schedule.plan import Nest, Part, Plan, Rows, call_of, called, lowering_of
from graphc.ir import sizes
from graphc.ir.body import ITEM, items_of, outputs_of
from graphc.ir.lowering import Scalar, View
from graphc.ir.node import Node, Size, constant_value, describe, describe_size
from graphc.loopir.ir import INDEX, Var
from graphc.loopir.syntax import filled
from graphc.loopir.unparse import text_of


def head_lines(plan: Plan, size: Callable[[Size], str]) -> Iterable[str]:
    """What is checked of sizes, and the temporaries, as a person reads them."""
    for guard in plan.sizing.checks:
        yield f"require {size(guard.left)} {guard.relation} {size(guard.right)}"
    for slot in plan.arena:
        extents = (f"{size(plan.sizing.of(sizes.product(shape)))} x {dtype}" for dtype, shape in slot.extents)
        yield f"temporary {slot.buffer.name}: {' or '.join(extents)}"


def bodies_of(plan: Plan, nest: Nest, size: Callable[[Size], str]) -> Iterable[tuple[str, Plan]]:
    """The plans within a nest, and what they are for."""
    if nest.number in plan.loops:
        steps = plan.loops[nest.number]
        yield f"each of {size(steps.graph.most)} steps", steps.plan
    if nest.number in plan.branches:
        for name, plans in zip(("then", "else"), plan.branches[nest.number].plans, strict=True):
            yield name, plans[-1]


def lines_of(plan: Plan, size_names: Mapping[Node, str], is_body: bool) -> Iterable[str]:
    """The plan as a person reads it, sizes under the names they have in the source; of a body without what is
    checked and laid out once."""

    def size(value: Size) -> str:
        return describe_size(value) if isinstance(value, int) else size_text(value, size_names)

    if not is_body:
        yield from head_lines(plan, size)
    numbers = {nest.number: count for count, nest in enumerate(plan.nests)}

    def lines(part: Part, pad: str) -> Iterable[str]:
        if isinstance(part, Rows):
            made = () if part.makes is None else (part.makes,)
            pads = f"{pad}  ", f"{pad}{'  ' * len(made)}"
            yield from (f"{pad}blocks of {size(part.block)} rows, while they are in cache:" for _ in made)
            yield from (line for nest in made for line in lines(nest, pads[0]))
            yield f"{pads[1]}rows: for each of {size(part.size)} in turn"
            yield from (line for inner in part.body for line in lines(inner, f"{pads[1]}  "))
            return
        by = "" if part.segments is None else f" by segments of {plan.labels(part.segments.args[0])}"
        yield f"{pad}nest {numbers[part.number]}: {part.kind} over [{', '.join(map(size, part.space))}]{by}"
        if part.number in plan.apart:
            other, why = plan.apart[part.number]
            yield f"{pad}  apart from nest {numbers[other]}: {why}"
        if part.kind == "check":
            bound = plan.bounds[part.number]
            limit = f"must lie within {size(bound.size)}: the indices of {plan.labels(bound.gather)}"
            yield f"{pad}  {plan.labels(bound.index)} {limit}"
        for root in part.roots:
            place = plan.places[root]
            name = place.buffer.name if place.buffer is not None else ""
            over = over_operand(part, root)
            how = f"; {plan.in_place[name]}" if name in plan.in_place else over
            kind = f"{root.dtype}[{', '.join(map(size, plan.sizing.shape(root)))}]"
            where = name or "a local"
            if name and plan.depths.get(root):
                where += f"[{', '.join(map(size, plan.sizing.shape(root)[plan.depths[root] :]))}]"
            yield f"{pad}  {plan.labels(root)}: {kind} -> {where}: {place.reason}{how}"
        yield from (f"{pad}  {line}" for line in loop_lines(plan, part.number, numbers))
        for name, body in bodies_of(plan, part, size):
            yield f"{pad}  {name}:"
            yield from (f"{pad}    {line}" for line in body.lines)

    for part in plan.parts:
        yield from lines(part, "")


def over_operand(nest: Nest, root: Node) -> str:
    """What a result of a nest is computed over, for the reader of a plan."""
    call = call_of(root)
    if not nest.in_place:
        return ""
    if call is None or call.overwritten is None:
        return "; over its first operand"
    operand, result = call.overwritten
    return f"; over operand {operand}" if outputs_of(called(root))[result] is root else ""


def loop_lines(plan: Plan, nest: int, numbers: Mapping[int, int]) -> Iterable[str]:
    """Of the nest of a loop: what it has of what is computed before it, and what is kept of its steps, for whom."""
    if nest not in plan.loops:
        return
    graph = plan.loops[nest].graph

    def computed(nodes: Iterable[Node]) -> str:
        found: dict[str, None] = {}
        for node in nodes:
            while node.args and isinstance(lowering_of(node), View):
                node = node.args[0]
            if node.args and node.op is not ITEM and (node.ndim or is_float(node.dtype)):
                found[describe(node)] = None
        return ", ".join(found)

    loop, results = graph.loop, items_of(graph.node)
    if once := computed(loop.constants):
        yield f"computed once, for no step changes it: {once}"
    if rows := computed(loop.sequences):
        yield f"computed before, for all steps at once: {rows}"
    outputs = results[len(loop.initial) : len(loop.initial) + len(loop.outputs)]
    for item, output in zip(outputs, loop.outputs, strict=True):
        nests = sorted({numbers[number] for number in plan.readers.get(item, ())})
        users = [f"nest {number}" for number in nests] or ["nobody, a result"]
        what = "the state before it" if output in loop.states else describe(output)
        yield f"of each step {what} is kept for {' and '.join(users)}"
    if not outputs:
        yield "of the steps nothing is kept but the last states"


def size_text(size: Node, names: Mapping[Node, str]) -> str:
    """A size as an expression over the names of size leaves, cut short where it is long."""
    if size in names:
        return names[size]
    value = constant_value(size)
    if value is not None:
        return str(value)
    lowering = lowering_of(size)
    if isinstance(lowering, Scalar) and len(size.args) <= 2 and all(not arg.args for arg in size.args):
        args = tuple(Var(size_text(arg, names), INDEX) for arg in size.args)
        return f"({text_of(filled(lowering.template, args, INDEX))})"
    return size.name or f"<{size.op.name}>"
