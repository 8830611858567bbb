"""Loops: a body that is carried out step by step, its states handed on from each step to the next.

In: a number of steps, sequences, the initial values of states, what else the body needs, and the body. Out: a node of
several results: the last states, then for each output of the body what all steps made of it, stacked along a new first
axis.

    args     count, limit where there is one, sequences, initial states, constants
    params   of the body: an element of each sequence, the states, the constants
    results  of the body: the next states, outputs, whether this step is the last where it says so (`until`)
    result   the last states, the stacked outputs, how many steps were taken where the body says so

Step t takes element t of each sequence and makes row t of each output; with `reverse` the steps go from the last
element to the first. Sequences may be longer than the steps. With `limited` there are at most `limit` steps, and the
others, that are not taken, leave rows of zeros, as they do after the one at which the body says so.

A loop may be marked as one that derivatives carry out again, `recomputed`, rather than keep what its steps make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.body import outside, split_guards
from graphc.ir.interpret import Steps, evaluate_sizes, plan_steps, run_steps
from graphc.ir.lowering import Repeat
from graphc.ir.node import (
    FUNCTIONS,
    Array,
    Attributes,
    Body,
    Guard,
    Node,
    Size,
    Type,
    define_op,
    describe,
    lazy_format,
    make,
    tuple_of,
)
from graphc.ir.walk import Graph, as_size_node, node_set
from graphc.ops.shape import label, label_op, label_origin, products_guard, shape_guards
from graphc.startup.record import record, replace

UNKNOWN = 2**62
"""The number of steps of a loop that has none: it goes on until its body says so."""


@record()
class Loop:
    """The operands of a scan by what they are for."""

    repeat: Repeat
    count: Node
    limit: Node | None
    sequences: tuple[Node, ...]
    initial: tuple[Node, ...]
    constants: tuple[Node, ...]
    recomputed: bool = False

    @property
    def body(self) -> Body:
        return self.repeat.body

    @property
    def operands(self) -> tuple[Node, ...]:
        """The operands that stand for the parameters of the body, in their order."""
        return (*self.sequences, *self.initial, *self.constants)

    @property
    def elements(self) -> tuple[Node, ...]:
        """The parameters that stand for elements of sequences."""
        return self.body.params[: len(self.sequences)]

    @property
    def states(self) -> tuple[Node, ...]:
        """The parameters that stand for states."""
        return self.body.params[len(self.sequences) : len(self.sequences) + len(self.initial)]

    @property
    def fixed(self) -> tuple[Node, ...]:
        """The parameters that are the same in every step."""
        return self.body.params[len(self.sequences) + len(self.initial) :]

    @property
    def sizes(self) -> list[Node]:
        """The operands that are sizes: the number of steps, and those of what the body computes."""
        pairs = zip(self.fixed, self.constants, strict=True)
        return [self.count, *(operand for param, operand in pairs if sizes.is_natural(param))]

    @property
    def next_states(self) -> tuple[Node, ...]:
        return self.body.results[: len(self.initial)]

    @property
    def outputs(self) -> tuple[Node, ...]:
        return self.body.results[len(self.initial) : len(self.body.results) - self.repeat.until]


def loop_of(args: Sequence[Node], attrs: Attributes) -> Loop:
    """The operands of a scan's arguments."""
    repeat = Repeat(*(attrs[name] for name in ("body", "sequences", "carries", "reverse", "until", "limited")))
    first = 2 if repeat.limited else 1
    states = first + repeat.sequences
    constants = states + repeat.carries
    parts = tuple(args[first:states]), tuple(args[states:constants]), tuple(args[constants:])
    return Loop(repeat, args[0], args[1] if repeat.limited else None, *parts, attrs.get("recomputed", False))


def make_scan(loop: Loop) -> Node:
    """The node of a loop."""
    repeat = loop.repeat
    args = [loop.count, *([] if loop.limit is None else [loop.limit]), *loop.operands]
    attrs = {
        "body": repeat.body,
        "sequences": len(loop.sequences),
        "carries": len(loop.initial),
        "reverse": repeat.reverse,
        "until": repeat.until,
        "limited": loop.limit is not None,
        **({"recomputed": True} if loop.recomputed else {}),
    }
    return make(SCAN, args, attrs)


def scan_node(
    count: Size,
    body: Body,
    sequences: Sequence[Node],
    initial: Sequence[Node],
    constants: Sequence[Node],
    reverse: bool = False,
    until: bool = False,
    limit: Node | None = None,
    recomputed: bool = False,
) -> Node:
    """The node of a loop over these operands, which the module's docstring explains."""
    repeat = Repeat(body, len(sequences), len(initial), reverse, until, limit is not None)
    return make_scan(
        Loop(repeat, as_size_node(count), limit, tuple(sequences), tuple(initial), tuple(constants), recomputed),
    )


def with_body(loop: Loop, body: Body) -> Loop:
    """A loop over the same operands with another body."""
    return replace(loop, repeat=replace(loop.repeat, body=body))


def depends_on_loop(outputs: Iterable[Node]) -> bool:
    return any(node.op is SCAN for node in node_set(outputs))


def is_recomputed(node: Node) -> bool:
    """Tell whether a node is a loop that derivatives carry out again rather than keep what its steps make."""
    return bool(node.attrs.get("recomputed"))


# --- types ------------------------------------------------------------------------------------------------------------


def _infer(args: Sequence[Node], attrs: Attributes) -> Type:
    loop = loop_of(args, attrs)
    body, operands = loop.body, loop.operands
    if len(operands) != len(body.params):
        raise GraphTypeError(f"scan: {len(operands)} operands for the {len(body.params)} parameters of its body")
    for node in (loop.count, loop.limit):
        if node is not None and (node.type.dtype != "int64" or node.ndim):
            raise GraphTypeError(f"scan: the number of steps is {describe(node)} of type {node.type}")
    for operand, param in zip(operands, body.params, strict=True):
        rank = operand.ndim - (param in loop.elements)
        if operand.type.dtype != param.type.dtype or rank != param.ndim:
            raise GraphTypeError(f"scan: {describe(operand)} of type {operand.type} stands for {param.type}")
    for state, after in zip(loop.states, loop.next_states, strict=True):
        if (state.type.dtype, state.ndim) != (after.type.dtype, after.ndim):
            raise GraphTypeError(
                f"scan: the state {describe(state)} has type {state.type}, after a step it is {describe(after)} "
                f"of type {after.type}"
            )
    if loop.repeat.until and (body.results[-1].type.dtype, body.results[-1].ndim) != ("bool", 0):
        raise GraphTypeError(f"scan: until {describe(body.results[-1])} of type {body.results[-1].type}, not bool[]")
    last = [node.type for node in loop.initial]
    count = sizes.as_size(loop.count)
    rows = [Type(node.type.dtype, (count, *outside_shape(loop, node))) for node in loop.outputs]
    return tuple_of([*last, *rows, *([Type("int64", ())] if loop.repeat.until else [])])


def outside_shape(loop: Loop, node: Node) -> tuple[Size, ...]:
    """The sizes of a node of the body in terms of the operands. Raises GraphTypeError where a step changes one."""
    known = dict(zip(loop.body.params, loop.operands, strict=True))
    varying = {*loop.elements, *loop.states}
    for axis, size in enumerate(node.type.shape):
        if isinstance(size, Node) and not varying.isdisjoint(node_set([size])):
            raise GraphTypeError(
                f"scan: the size of {describe(node)} along axis {axis} changes from step to step; it must be the same "
                "in all steps: fill it up, or compute with where()"
            )
    return tuple(outside(size, known) for size in node.type.shape)


def fitting(
    what: str, operand: Node, shape: Sequence[Size], param: Node, known: Mapping[Node, Node]
) -> Sequence[Guard]:
    """Guards that an operand of these sizes has those of the parameter that it stands for."""
    text = "{}: {} has {{left}} elements along axis {axis}, and must have {{right}}"
    return shape_guards(shape, [outside(size, known) for size in param.type.shape], text, what, label(operand))


def _all_guards(node: Node) -> Iterator[Guard]:
    loop, what = loop_of(node.args, node.attrs), label_op(node)
    count = sizes.as_size(loop.count)
    yield from products_guard((count,), what)
    if not sizes.known_nonnegative(count):
        steps = lazy_format(", {},", label_origin(loop.count)) if isinstance(count, Node) else ""
        message = lazy_format("{}: the number of steps{} is {{right}}, which is negative", what, steps)
        yield Guard(0, "<=", count, message)
    known = dict(zip(loop.body.params, loop.operands, strict=True))
    for sequence, element in zip(loop.sequences, loop.elements, strict=True):
        length = sequence.type.shape[0]
        if not sizes.equal(length, count):
            message = lazy_format("{}: there are {{left}} steps, and {} has {{right}} elements", what, label(sequence))
            yield Guard(count, "<=", length, message)
        yield from fitting(what, sequence, sequence.type.shape[1:], element, known)
    for operand, param in zip((*loop.initial, *loop.constants), (*loop.states, *loop.fixed), strict=True):
        yield from fitting(what, operand, operand.type.shape, param, known)
    for state, after in zip(loop.states, loop.next_states, strict=True):
        shape = [outside(size, known) for size in state.type.shape]
        text = "{}: {} has {{right}} elements along axis {axis}, after a step {{left}}"
        yield from shape_guards(outside_shape(loop, after), shape, text, what, label(state))
    invariant, _ = split_guards(loop.body, (*loop.elements, *loop.states))
    for guard in invariant:
        left, right = outside(guard.left, known), outside(guard.right, known)
        if not (guard.relation != "<" and sizes.equal(left, right)):
            yield replace(guard, left=left, right=right)


# --- NumPy's meaning --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def steps_of(body: Body) -> Steps:
    """The steps by which a body is interpreted."""
    return plan_steps(Graph(body.params, body.results))


def _eval(node: Node, *values: Array) -> Any:
    loop, steps = loop_of(node.args, node.attrs), steps_of(node.attrs["body"])
    first = len(values) - len(loop.operands)
    most = int(values[0]) if loop.limit is None else max(0, min(int(values[0]), int(values[1])))
    sequences = values[first : first + len(loop.sequences)]
    states = [np.array(value) for value in values[first + len(sequences) : first + len(sequences) + len(loop.initial)]]
    fixed = dict(zip(loop.fixed, values[first + len(sequences) + len(states) :], strict=True))
    types = [output.type for output in loop.outputs]
    outputs = [np.zeros((int(values[0]), *evaluate_sizes(type_.shape, fixed)), type_.dtype) for type_ in types]
    taken = 0
    while taken < most:
        row = most - 1 - taken if loop.repeat.reverse else taken
        bound = zip((*loop.elements, *loop.states), (*(s[row] for s in sequences), *states), strict=True)
        results = run_steps(steps, {**{param: np.asarray(value) for param, value in bound}, **fixed})
        states = results[: len(states)]
        for output, value in zip(outputs, results[len(states) :], strict=False):
            output[row] = value
        taken += 1
        if loop.repeat.until and results[-1]:
            break
    return (*states, *outputs, *([np.asarray(taken)] if loop.repeat.until else []))


SCAN = define_op(
    "scan",
    infer=_infer,
    eval=_eval,
    lower=lambda node: loop_of(node.args, node.attrs).repeat,
    guards=lambda node: list(_all_guards(node)),
    cost=1000.0,
    doc="A body that is carried out step by step.",
    vjps=lambda *args: FUNCTIONS["scan_vjps"](*args),  # noqa: PLW0108 - it is defined later
)
