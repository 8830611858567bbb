"""A plan as a person reads it, for `f.explain()`.

In: a plan. Out: its lines. As an example, of `exp(x).sum()`:

    nest 0: full reduction over [x_0]
      sum: float64[] -> out: a result
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from graphc.arrays.dtypes import is_float
from graphc.codegen.schedule.nodes import call_node, call_of, lowering_of
from graphc.codegen.schedule.plan import Nest, Part, Plan, SharedLoop
from graphc.ir import sizes
from graphc.ir.body import ITEM, items_of, outputs_of
from graphc.ir.lowering import Iota, Scalar, View
from graphc.ir.node import Node, Size, constant_value, describe, describe_size
from graphc.loopir.ir import INDEX, Var
from graphc.loopir.syntax import filled, text_of


def head_lines(plan: Plan, size: Callable[[Size], str]) -> Iterable[str]:
    """The lines of the checks of sizes, and of the temporaries."""
    for guard in plan.sizing.checks:
        yield f"require {size(guard.left)} {guard.relation} {size(guard.right)}"
    for slot in plan.memory.arena:
        extents = (f"{size(plan.sizing.of(sizes.product(shape)))} x {dtype}" for dtype, shape in slot.extents)
        yield f"temporary {slot.buffer.name}: {' or '.join(extents)}"


def bodies_of(plan: Plan, nest: Nest, size: Callable[[Size], str]) -> Iterable[tuple[str, Plan]]:
    """The plans within a nest, each with a name."""
    if nest.number in plan.contents.scans:
        scan = plan.contents.scans[nest.number]
        yield f"each of {size(scan.graph.most)} steps", scan.plan
    if nest.number in plan.contents.branches:
        for name, plans in zip(("then", "else"), plan.contents.branches[nest.number].plans, strict=True):
            yield name, plans[-1]


def lines_of(plan: Plan) -> Iterable[str]:
    """The lines of a plan, sizes under the names they have in the source; of a body without what is checked and laid
    out once."""

    def size(value: Size) -> str:
        return describe_size(value) if isinstance(value, int) else size_text(value, plan.size_names)

    if plan.of == "kernel":
        yield from head_lines(plan, size)
    numbers = {nest.number: count for count, nest in enumerate(plan.nests)}

    def lines(part: Part, pad: str) -> Iterable[str]:
        if isinstance(part, SharedLoop):
            if part.producer is not None:
                yield f"{pad}blocks of {size(part.block)} rows, while they are in cache:"
                pad += "  "
                yield from lines(part.producer, pad)
            yield f"{pad}rows: for each of {size(part.size)} in turn"
            yield from (line for inner in part.body for line in lines(inner, f"{pad}  "))
            return
        by = "" if part.segments is None else f" by segments of {plan.labels(part.segments.args[0])}"
        yield f"{pad}nest {numbers[part.number]}: {part.kind} over [{', '.join(map(size, part.space))}]{by}"
        if part.number in plan.reasons.not_shared:
            other, why = plan.reasons.not_shared[part.number]
            yield f"{pad}  apart from nest {numbers[other]}: {why}"
        if part.kind == "check":
            check = plan.contents.checks[part.number]
            limit = f"must lie within {size(check.size)}: the indices of {plan.labels(check.gather)}"
            yield f"{pad}  {plan.labels(check.index)} {limit}"
        for root in part.roots:
            name = plan.memory.buffers[root].name if root in plan.memory.buffers else ""
            written = plan.reasons.written
            how = f"; {written[name]}" if name in written else over_operand(part, root)
            kind = f"{root.type.dtype}[{', '.join(map(size, plan.sizing.shape(root)))}]"
            where = name or "a local"
            if name and plan.memory.row_depths.get(root):
                where += f"[{', '.join(map(size, plan.sizing.shape(root)[plan.memory.row_depths[root] :]))}]"
            yield f"{pad}  {plan.labels(root)}: {kind} -> {where}: {plan.reasons.materialised[root]}{how}"
        yield from (f"{pad}  {line}" for line in loop_lines(plan, part.number, numbers))
        for name, body in bodies_of(plan, part, size):
            yield f"{pad}  {name}:"
            yield from (f"{pad}    {line}" for line in lines_of(body))

    for part in plan.parts:
        yield from lines(part, "")


def over_operand(nest: Nest, root: Node) -> str:
    """The operand over which a result of a nest is computed, in words; "" where it is over none."""
    call = call_of(root)
    if not nest.in_place:
        return ""
    if call is None or call.overwritten is None:
        return "; over its first operand"
    operand, result = call.overwritten
    return f"; over operand {operand}" if outputs_of(call_node(root))[result] is root else ""


def loop_lines(plan: Plan, nest: int, numbers: Mapping[int, int]) -> Iterable[str]:
    """The lines of a scan: the values that are computed before it, and those that are kept of its steps, for whom."""
    if nest not in plan.contents.scans:
        return
    graph = plan.contents.scans[nest].graph

    def computed(nodes: Iterable[Node]) -> str:
        found: dict[str, None] = {}
        for node in nodes:
            while node.args and isinstance(lowering_of(node), View):
                node = node.args[0]
            is_stored = node.args and node.op is not ITEM and not isinstance(lowering_of(node), Iota)
            if is_stored and (node.ndim or is_float(node.type.dtype)):
                found[describe(node)] = None
        return ", ".join(found)

    loop, results = graph.loop, items_of(graph.node)
    if once := computed(loop.constants):
        yield f"computed once, for no step changes it: {once}"
    if rows := computed(loop.sequences):
        yield f"computed before, for all steps at once: {rows}"
    outputs = results[len(loop.initial) : len(loop.initial) + len(loop.outputs)]
    for item, output in zip(outputs, loop.outputs, strict=True):
        nests = sorted({numbers[number] for number in plan.reasons.readers.get(item, ())})
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
