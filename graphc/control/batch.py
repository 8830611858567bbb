"""Vectorisation over a batch (vmap): a graph of one element becomes a graph of all elements, with a leading batch axis.

In: results, and for some of their variables a batched value. Out: the same results, batched:

    y = dot(W, x)       x: float64[n]   ->   X: float64[batch, n] gives dot(X, W.T): float64[batch, m]

Each op has a batching rule (`Op.batch`). An op without one, or whose rule declines, runs in a loop over the elements.
So everything can be batched unless sizes differ between elements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from graphc.errors import GraphTypeError
from graphc.ir.body import ITEM, close, item, outputs_of
from graphc.ir.node import Batch, Node, Op, Size, TupleType, Type, describe, make, next_serial, variable
from graphc.ir.walk import nodes_since, renamed, type_sizes
from graphc.ops.branch import COND, cond_node
from graphc.ops.custom import Absent
from graphc.ops.derivative import is_overriding, overridden, rule_of_override
from graphc.ops.elementwise import repeated
from graphc.ops.reduce import reduce_sum
from graphc.ops.scan import SCAN, Loop, loop_of, scan_node
from graphc.ops.shape import dimshuffle
from graphc.startup.record import record

Value: TypeAlias = "tuple[Node, bool]"
"""A value, and True if its first axis is the batch axis."""


def batched(results: Sequence[Node], replaced: Mapping[Node, Value], size: Size) -> list[Value]:
    """`results` over batched values: the nodes in `replaced` are replaced. The flag of each result tells if it has the
    batch axis; without it the value is the same for all elements.

    Raises GraphTypeError if a size differs between elements.
    """
    done: dict[Node, Value] = dict(replaced)
    several: dict[Node, Sequence[Value]] = {}
    for node in nodes_since(results, min((leaf.serial for leaf in replaced), default=0)):
        if node in done:
            continue
        if node.op is ITEM and node.args[0] in several:
            done[node] = several[node.args[0]][node.attrs["index"]]
            continue
        values = [done.get(arg, (arg, False)) for arg in node.args]
        args, flags = [value for value, _ in values], [has for _, has in values]
        if not any(flags):
            same = all(one is other for one, other in zip(args, node.args, strict=True))
            done[node] = node if same else renamed(make(node.op, args, node.attrs), node), False
            continue
        _check_sizes(node, done)
        rule = overridden_batch if is_overriding(node) else RULES.get(node.op, node.op.batch)
        result = None if rule is None else rule(node, args, flags, size)
        if result is None:
            result = looped(node, args, flags, size)
        if isinstance(result, Node):
            done[node] = renamed(result, node), True
        elif isinstance(node.type, TupleType):
            several[node] = result
        else:
            ((value, has),) = result
            done[node] = renamed(value, node), has
    return [done.get(node, (node, False)) for node in results]


def _check_sizes(node: Node, done: Mapping[Node, Value]) -> None:
    """Raise GraphTypeError if a size of a node depends on the element."""
    kinds: Sequence[Type] = node.type.parts if isinstance(node.type, TupleType) else (node.type,)
    for type in kinds:
        for axis, size in enumerate(type.shape):
            if isinstance(size, Node) and done.get(size, (size, False))[1]:
                raise GraphTypeError(
                    f"vmap: the size of {describe(node)} along axis {axis} is another for each element: it depends on "
                    f"{describe(size)}; it must be the same for all: fill it up, or compute with where()"
                )


def looped(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> list[Value]:
    """The results of a node, by a scan over the elements of the batch."""
    since = next_serial()
    rows = [arg for arg, has in zip(args, flags, strict=True) if has]
    elements = [variable(row.type.dtype, row.type.shape[1:], row.name) for row in rows]
    left = iter(elements)
    element = make(node.op, [next(left) if has else arg for arg, has in zip(args, flags, strict=True)], node.attrs)
    results = outputs_of(element)
    body, captured = close(elements, results, since)
    loop = scan_node(size, body, rows, (), captured)
    return [(item(loop, place), True) for place in range(len(results))]


def all_batched(values: Sequence[Value], size: Size) -> list[Node]:
    """The values, each with the batch axis: those without it are repeated."""
    return repeated([value for value, _ in values], [has for _, has in values], size)


# --- loops ------------------------------------------------------------------------------------------------------------


@record()
class BatchedStep:
    """One step of a scan over batched values. variables: the elements of sequences, then the states. rows: the
    sequences, with the step axis first. initial: the initial states. results: the batched results of the body. since:
    the serial number before the step was built."""

    variables: Sequence[Node]
    rows: Sequence[Node]
    initial: Sequence[Node]
    results: Sequence[Value]
    since: int


def scan_batch(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> list[Value] | None:
    """The batching rule of scan: one scan whose steps handle the whole batch. None if the number of steps may differ
    between elements."""
    loop = loop_of(args, node.attrs)
    first = len(args) - len(loop.operands)
    if any(flags[:first]):
        return None
    has_axis = list(flags[first:])
    begin, end = len(loop.sequences), len(loop.sequences) + len(loop.initial)
    while True:  # fixpoint: a state that is not batched initially may become so after a step
        step = _step(loop, has_axis, size)
        after = [has or before for (_, has), before in zip(step.results, has_axis[begin:end], strict=False)]
        if after == has_axis[begin:end]:
            break
        has_axis[begin:end] = after
    repeat = loop.repeat
    if repeat.until and step.results[-1][1]:
        return None
    states = [value for value, _ in step.results[: len(after)]]
    pairs = zip(step.results[: len(after)], after, strict=True)
    states = [value if has or not wanted else repeated([value], [False], size)[0] for (value, has), wanted in pairs]
    outputs = step.results[len(after) :]
    body, captured = close(step.variables, [*states, *(value for value, _ in outputs)], step.since)
    scan = scan_node(
        loop.count,
        body,
        step.rows,
        step.initial,
        captured,
        reverse=repeat.reverse,
        until=repeat.until,
        limit=loop.limit,
        recomputed=loop.recomputed,
    )
    scan = renamed(scan, node)
    items = [item(scan, place) for place in range(len(step.results))]
    stacked = zip(items[len(after) :], outputs, strict=True)
    return [
        *zip(items[: len(after)], after, strict=True),
        *((_exchanged(value) if has else value, has) for value, (_, has) in stacked),
    ]


def _step(loop: Loop, flags: Sequence[bool], size: Size) -> BatchedStep:
    """A step in which the parameters marked in `flags` are batched."""
    since, params = next_serial(), loop.body.params
    begin, end = len(loop.sequences), len(loop.sequences) + len(loop.initial)
    rows = [_exchanged(row) if has else row for row, has in zip(loop.sequences, flags, strict=False)]
    starts = zip(loop.initial, flags[begin:end], strict=True)
    initial = [
        start if not has or start.ndim > param.ndim else repeated([start], [False], size)[0]
        for (start, has), param in zip(starts, loop.states, strict=True)
    ]
    elements = [variable(row.type.dtype, row.type.shape[1:], row.name) for row in rows]
    states = [variable(start.type.dtype, start.type.shape, start.name) for start in initial]
    values = zip((*elements, *states, *loop.constants), flags, strict=True)
    results = batched(loop.body.results, dict(zip(params, values, strict=True)), size)
    return BatchedStep((*elements, *states), rows, initial, results, since)


def _exchanged(x: Node) -> Node:
    """`x` with its first two axes, batch and step, exchanged."""
    return dimshuffle(x, (1, 0, *range(2, x.ndim)))


# --- branches ---------------------------------------------------------------------------------------------------------


def cond_batch(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> list[Value] | None:
    """The batching rule of cond: one branch for the whole batch. None if the condition differs between elements."""
    condition, *operands = args
    if flags[0]:
        return None
    sides = []
    for name in ("then", "orelse"):
        body = node.attrs[name]
        batched_params = dict(zip(body.params, zip(operands, flags[1:], strict=True), strict=True))
        sides.append(batched(body.results, batched_params, size))
    both = [any(has for _, has in pair) for pair in zip(*sides, strict=True)]
    then, orelse = (
        [all_batched([value], size)[0] if wanted else value[0] for value, wanted in zip(side, both, strict=True)]
        for side in sides
    )
    at_hand = {*operands, *(each for operand in operands for each in type_sizes(operand))}
    if isinstance(size, Node):
        at_hand.add(size)
    cond = renamed(cond_node(condition, then, orelse, at_hand), node)
    return [(item(cond, place), has) for place, has in enumerate(both)]


# --- derivatives of the user's ----------------------------------------------------------------------------------------


def overridden_batch(node: Node, args: Sequence[Node], flags: Sequence[bool], size: Size) -> list[Value]:
    """The batching rule of values whose derivatives the user gives: these are asked for one element, and batched. An
    input that is the same for all elements gets the sum of their cotangents."""
    rule, count = rule_of_override(node), node.attrs["values"]
    values = all_batched([*zip(args[:count], flags[:count], strict=True)], size)
    shared = [not has for has in flags[count:]]

    def of_all(
        inputs: Sequence[Node], results: Sequence[Node], cotangents: Mapping[int, Node], wanted: Collection[int]
    ) -> list[Node | Absent | None]:
        rows: dict[Node, Value] = {}

        def element(row: Node) -> Node:
            leaf = variable(row.type.dtype, row.type.shape[1:], row.name)
            rows[leaf] = row, True
            return leaf

        operands = [each if same else element(each) for each, same in zip(inputs, shared, strict=True)]
        along = {place: element(each) for place, each in cotangents.items()}
        parts: list[Any] = list(rule(operands, [*map(element, results)], along, wanted))
        places = [place for place, part in enumerate(parts) if isinstance(part, Node)]
        whole = all_batched(batched([parts[place] for place in places], rows, size), size)
        for place, part in zip(places, whole, strict=True):
            parts[place] = reduce_sum(part, (0,)) if shared[place] else part
        return parts

    results_of_all = overridden(values, args[count:], of_all, node.attrs.get("connected"))
    return [(each, True) for each in results_of_all]


RULES: dict[Op, Batch] = {SCAN: scan_batch, COND: cond_batch}
"""The rules of ops with bodies, which are batched in turn: these stand here, and not in the records of the ops."""
