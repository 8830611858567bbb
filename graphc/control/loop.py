"""From a traced step to a scan node: types of states, then the whole loop, truncated, or in checkpointed blocks.

In: initial values (possibly Python numbers) and a function that traces the step:

    scan(lambda x, h: 0.5 * h + x, sequences=x, outputs_info=h0)

    states     [State(h0, taps=(-1,))]       what is carried from step to step
    settle     traces the step on fresh variables until the types of states are a fixpoint: `Returned`
    as_step    Step(elements=[x[t]], states=[h[t-1]], after=[0.5 * h[t-1] + x[t]], outputs=[the same])
    make_loop  closes the step into a body and makes the scan node: `Outcome`

Out: the last states, the outputs stacked along a new first axis, and the trip count if the step decides it; or an error
that says what the step should return instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

from graphc.arrays.dtypes import accumulator, can_cast_safely, is_float
from graphc.errors import GraphTypeError, GraphValueError, ShapeError, plural
from graphc.ir import sizes
from graphc.ir.body import close, item
from graphc.ir.node import OPS, SIZE, Node, Size, TupleType, describe, literal, make, variable
from graphc.ir.source_lines import PACKAGE, TRACE, written
from graphc.ir.walk import as_size_node, nodes_since, store_step_tags, substitute
from graphc.ops.branch import resized, sized
from graphc.ops.elementwise import cast, cast_safely, elementwise
from graphc.ops.identity import checked
from graphc.ops.index import subtensor
from graphc.ops.reduce import reduce_sum
from graphc.ops.scan import scan_node
from graphc.ops.shape import concatenate, filled, iota, reshape, zeros
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record, replace
from graphc.tensor.elementary import stop_gradient

Updates = dict[Node, Node]


@record()
class State:
    """A value carried from step to step: its initial value, and the taps (distances) at which a step reads it. An
    output that no step reads has None and ()."""

    initial: Node | None
    taps: tuple[int, ...]
    weak: bool = False
    """True if the initial value is a Python number, which has no dtype of its own."""

    @property
    def depth(self) -> int:
        """The number of previous values that are carried."""
        return -min(self.taps) if self.taps else 0


@record()
class Returned:
    """The result of a step, sorted by kind."""

    outputs: list[Node]
    updates: Updates
    condition: Node | None
    by: str
    """The name of the user's function (`scan`, `while_loop`), for messages."""


def settle(
    states: Sequence[State], call: Callable[[list[list[Node]]], Returned]
) -> tuple[list[State], list[list[Node]], Returned]:
    """Return the states, variables for their previous values, and what the step returns for these. A state that starts
    as a Python number takes the dtype that the step returns; the step is traced again until no dtype changes."""
    states = list(states)
    while True:
        past = [previous_values(state) for state in states]
        returned = call(past)
        settled = [_settled(*pair) for pair in zip(states, returned.outputs, strict=False)]
        if settled == states[: len(settled)]:
            return states, past, returned
        states = settled


def _settled(state: State, output: Node) -> State:
    if not state.weak or state.initial is None or can_cast_safely(output.type.dtype, state.initial.type.dtype):
        return state
    if not can_cast_safely(state.initial.type.dtype, output.type.dtype) and not is_float(output.type.dtype):
        return state
    return replace(state, initial=cast(state.initial, output.type.dtype))


def _kept_type(by: str, state: State, history: Sequence[Node], output: Node) -> Node:
    """An output cast losslessly to the type of its state. Raises GraphTypeError if a state changes its type."""
    if state.initial is None:
        return output
    before = history[-1]
    output = cast_safely(output, before.type.dtype)
    if output.type.dtype == before.type.dtype and not sizes.shapes_differ(before.type.shape, output.type.shape):
        return sized(output, before.type.shape)
    how = "give the initial value the shape that a step returns, as with T.zeros"
    if output.type.dtype != before.type.dtype:
        wanted, actual = output.type.dtype, before.type.dtype
        how = f"cast the initial value with .astype({wanted!r}), or what is returned with .astype({actual!r})"
    raise GraphTypeError(
        f"{by}: a state changes its type from step to step: it begins as {before.type}, {describe(state.initial)}, and "
        f"the step returns {output.type}, {describe(output)}; {how}"
    )


def as_step(
    elements: Sequence[Node],
    states: Sequence[State],
    history: Sequence[Sequence[Node]],
    returned: Returned,
    since: int,
    kept: Sequence[Node] = (),
) -> tuple[Step, list[Node]]:
    """The step and the initial values of its states. Shared variables that it updates become states."""
    shared_states = {shared: variable(shared.type.dtype, shared.type.shape, shared.name) for shared in returned.updates}
    outputs = [_kept_type(returned.by, *each) for each in zip(states, history, returned.outputs, strict=True)]
    after = [node for past, output in zip(history, outputs, strict=True) if past for node in (*past[1:], output)]
    condition = [] if returned.condition is None else [cast(returned.condition, "bool")]
    results = [*after, *returned.updates.values(), *outputs, *condition]
    if shared_states:
        results = substitute(results, shared_states)
    end = len(after) + len(shared_states)
    step = Step(
        elements,
        [*flat(history), *shared_states.values()],
        results[:end],
        results[end : end + len(outputs)],
        results[-1] if condition else None,
        since,
        kept,
    )
    return step, [*flat(rows_of(state) for state in states), *shared_states]


def previous_values(state: State) -> list[Node]:
    """Variables for the previous values of a state, oldest first."""
    name = None if state.initial is None else state.initial.name
    rows = enumerate(rows_of(state), -state.depth)
    return [variable(row.type.dtype, row.type.shape, at(name, tap)) for tap, row in rows]


def rows_of(state: State) -> list[Node]:
    """The initial values of a state, oldest first."""
    if state.initial is None:
        return []
    if state.taps == (-1,):
        return [state.initial]
    return [state.initial[row] for row in range(state.depth)]


def flat(groups: Iterable[Sequence[Node]]) -> list[Node]:
    return [node for group in groups for node in group]


def title(fn: Any) -> str:
    """The name of a step for messages, with its line, unless it is graphc's own."""
    name, code = getattr(fn, "__name__", type(fn).__name__), getattr(fn, "__code__", None)
    if not code or code.co_filename.startswith(PACKAGE):
        return name
    return f"{name} ({written(code.co_filename, code.co_firstlineno)})"


def called(by: str, fn: Callable[..., Any], arguments: Sequence[Any], names: Sequence[str]) -> Any:
    """Call a user's function. If its signature does not fit, the TypeError gets a note that lists the arguments and the
    caller."""
    try:
        with TRACE.watch(fn):
            if TRACE.depth:
                HOOKS.creations.replace_in(fn)
            return fn(*arguments)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is None:  # the call, and nothing within it
            count = plural(len(arguments), "argument", "arguments")
            error.add_note(f"{by} {title(fn)} with {count}{': ' * bool(names)}{', '.join(names)}")
        raise


def at(name: str | None, tap: int) -> str | None:
    """The display name of an element or previous value: `x[t]`, `h[t-1]`."""
    return name and (f"{name}[t{tap:+d}]" if tap else f"{name}[t]")


# --- from a step to a scan node ---------------------------------------------------------------------------------------


Checkpoint: TypeAlias = "int | Literal['sqrt'] | None"


@record()
class Step:
    """One step of a loop, as a graph. elements, states: variables. after: the next states. outputs: the values to
    stack. condition: a bool that ends the loop after this step. since: no node that belongs to the step has a lower
    serial number. kept: nodes that stay outside, for the program may ask for derivatives with respect to them."""

    elements: Sequence[Node]
    states: Sequence[Node]
    after: Sequence[Node]
    outputs: Sequence[Node]
    condition: Node | None
    since: int
    kept: Sequence[Node] = ()

    @property
    def variables(self) -> list[Node]:
        return [*self.elements, *self.states]

    @property
    def results(self) -> list[Node]:
        return [*self.after, *self.outputs, *([] if self.condition is None else [self.condition])]


@record()
class Outcome:
    """The results of a loop: the last states, the stacked outputs, and the trip count (`taken`) if the step decides
    it."""

    last: list[Node]
    stacked: list[Node]
    taken: Node | None


def make_loop(
    step: Step,
    count: Size,
    rows: Sequence[Node],
    initial: Sequence[Node],
    truncate: int = -1,
    checkpoint: Checkpoint = None,
    reverse: bool = False,
    limit: Node | None = None,
    name: str | None = None,
) -> Outcome:
    """Run a step `count` times, at most `limit` times if given. truncate: differentiate only the last steps; -1 for
    all. checkpoint: steps for each block, see `_in_blocks`. Raises ShapeError if a sequence is known to be too
    short."""
    if isinstance(count, int) and count < 0:
        raise ShapeError(f"scan: the number of steps is {count}, which is negative")
    for row in rows:
        length = row.type.shape[0]
        if isinstance(count, int) and isinstance(length, int) and length < count:
            raise ShapeError(f"scan: there are {count} steps, and {describe(row)} has {length} elements")
    step = _with_invariant_sizes(step, rows, initial)
    if truncate >= 0:
        return _truncated(step, count, rows, initial, truncate, checkpoint, name)
    if checkpoint is not None:
        return _in_blocks(step, count, rows, initial, _block_size(checkpoint, count), name)
    body, captured = close(step.variables, step.results, step.since, step.kept)
    ended = step.condition is not None
    node = scan_node(count, body, rows, initial, captured, reverse=reverse, until=ended, limit=limit)
    store_step_tags(node, step.results, body)
    if name is not None:
        node.name = name
    return _outcome(node, len(initial), ended)


def _with_invariant_sizes(step: Step, rows: Sequence[Node], initial: Sequence[Node]) -> Step:
    """The step with loop-invariant sizes in its results. A size that depends on the step is replaced: in a state by the
    size of its initial value, in an output by the size in the first step. Each step checks that the sizes agree."""
    results = list(dict.fromkeys([*step.after, *step.outputs]))
    varying = {result: varying_sizes for result in results if (varying_sizes := _varying_sizes(step, result))}
    if not varying:
        return step
    begin = dict(zip(step.states, initial, strict=True))
    begin |= {element: _first_row(row) for element, row in zip(step.elements, rows, strict=True)}
    kept = {after: state.type.shape for state, after in zip(step.states, step.after, strict=True)}
    done = {result: result for result in results}
    for result, varying_sizes in varying.items():
        if result not in kept:
            firsts = dict(zip(varying_sizes, map(sizes.as_size, substitute(varying_sizes, begin)), strict=True))
            kept[result] = tuple(
                firsts.get(size, size) if isinstance(size, Node) else size for size in result.type.shape
            )
        done[result] = _checked_sizes(result, kept[result])
    after, outputs = ([done[result] for result in own] for own in (step.after, step.outputs))
    return replace(step, after=after, outputs=outputs)


def _varying_sizes(step: Step, result: Node) -> list[Node]:
    """The loop-varying sizes of a result."""
    computed = [size for size in result.type.shape if isinstance(size, Node) and size.op is not SIZE]
    return [size for size in computed if not set(step.variables).isdisjoint(nodes_since([size], step.since))]


def _checked_sizes(result: Node, shape: Sequence[Size]) -> Node:
    """A result under loop-invariant sizes. Raises ShapeError at run time if its own sizes differ."""
    for axis, (actual, wanted) in enumerate(zip(result.type.shape, shape, strict=True)):
        if not sizes.equal(actual, wanted):
            message = (
                f"scan: the size of {describe(result)} along axis {axis} changes from step to step; it must be the "
                "same in all steps: fill it up, or compute with where()"
            )
            same = make(OPS["equal"], (as_size_node(actual), as_size_node(wanted)))
            result = checked(result, [cast(same, "int64")], message, "shape")
    return resized(result, shape)


def _first_row(rows: Node) -> Node:
    """The first row of an array, or zeros if it is empty."""
    first = rows_from(rows, 0, sizes.minimum(rows.type.shape[0], 1))
    return cast(reduce_sum(cast(first, accumulator(rows.type.dtype)), (0,)), rows.type.dtype)


def _outcome(node: Node, states: int, ended: bool) -> Outcome:
    assert isinstance(node.type, TupleType)
    parts = [item(node, place) for place in range(len(node.type.parts))]
    end = len(parts) - ended
    return Outcome(parts[:states], parts[states:end], parts[-1] if ended else None)


def rows_from(value: Node, start: Size, length: Size) -> Node:
    """`length` rows, starting at row `start`."""
    rest = value.type.shape[1:]
    return subtensor(value, (start, *(0 for _ in rest)), (length, *rest), tuple(1 for _ in value.type.shape))


def until_end(outcome: Outcome) -> list[Node]:
    """The stacked outputs, without the rows of steps that were not executed."""
    if outcome.taken is None:
        return outcome.stacked
    return [rows_from(each, 0, outcome.taken) for each in outcome.stacked]


# --- truncated derivatives --------------------------------------------------------------------------------------------


def _truncated(
    step: Step,
    count: Size,
    rows: Sequence[Node],
    initial: Sequence[Node],
    truncate: int,
    checkpoint: Checkpoint,
    name: str | None,
) -> Outcome:
    """The loop in two parts: the first is not differentiated, the second has the last `truncate` steps. If the step
    decides the trip count, a separate loop without derivative finds it first."""
    taken = None
    if step.condition is not None:
        taken = _without_derivative(make_loop(step, count, rows, initial).taken)
        step = replace(step, condition=None)
    steps = count if taken is None else sizes.as_size(taken)
    before = sizes.maximum(sizes.subtract(steps, truncate), 0)
    if before == 0:
        return replace(make_loop(step, steps, rows, initial, checkpoint=checkpoint, name=name), taken=taken)
    after = sizes.subtract(steps, before)
    first = make_loop(step, before, [rows_from(row, 0, before) for row in rows], initial)
    whole = make(OPS["equal"], (as_size_node(before), literal(0, "int64")))
    middle = [
        elementwise("where", whole, begin, _without_derivative(node)) if is_float(node.type.dtype) else node
        for begin, node in zip(initial, first.last, strict=True)
    ]
    last = make_loop(
        step, after, [rows_from(row, before, after) for row in rows], middle, checkpoint=checkpoint, name=name
    )
    pairs = zip(first.stacked, last.stacked, strict=True)
    return Outcome(last.last, [concatenate([_without_derivative(early), late], 0) for early, late in pairs], taken)


def _without_derivative(node: Node | None) -> Node:
    """A node without derivative."""
    assert node is not None
    return stop_gradient(node) if is_float(node.type.dtype) else node


# --- checkpointing in blocks ------------------------------------------------------------------------------------------


def _block_size(checkpoint: Checkpoint, count: Size) -> Size:
    """The number of steps in a block. Raises GraphValueError for an invalid `checkpoint`."""
    if checkpoint == "sqrt":
        if isinstance(count, int):
            return max(1, math.isqrt(max(count - 1, 0)) + 1)
        root = elementwise("ceil", elementwise("sqrt", cast(count, "float64")))
        return sizes.maximum(cast(root, "int64"), 1)
    if not isinstance(checkpoint, int) or isinstance(checkpoint, bool) or checkpoint < 1:
        raise GraphValueError(f"checkpoint={checkpoint!r}: it is a number of steps from 1 on, or 'sqrt'")
    return checkpoint


def _in_blocks(
    step: Step, count: Size, rows: Sequence[Node], initial: Sequence[Node], size: Size, name: str | None
) -> Outcome:
    """Checkpointing: an outer loop over blocks whose body is a `recomputed` loop over the steps of a block. Derivatives
    keep one row for each block and, for one block at a time, one row for each step.

    The last block is padded with steps that are not executed. If the step decides when to stop, its condition becomes a
    state of the inner loop and ends the outer one.
    """
    number = sizes.floor_divide(sizes.add(count, sizes.subtract(size, 1)), size)
    whole = isinstance(count, int) and isinstance(size, int) and count % size == 0
    ended = step.condition is not None
    if ended:
        step, initial = _with_condition(step), [*initial, literal(False)]
    body, captured = close(step.variables, step.results, step.since, step.kept)
    blocks = [_blocks(row, count, number, size) for row in rows]
    if not whole:
        blocks.append(_limits(count, number, size))
    elements = [
        variable(block.type.dtype, block.type.shape[1:], row.name) for block, row in zip(blocks, rows, strict=False)
    ]
    limit = None if whole else variable("int64", ())
    states = [variable(node.type.dtype, node.type.shape, node.name) for node in initial]
    block = scan_node(size, body, elements, states, captured, until=ended, limit=limit, recomputed=True)
    store_step_tags(block, step.results, body)
    inner = _outcome(block, len(initial), ended)
    outer = Step(
        elements if limit is None else [*elements, limit],
        states,
        inner.last,
        [*inner.stacked, *([] if inner.taken is None else [inner.taken])],
        inner.last[-1] if ended else None,
        step.since,
        step.kept,
    )
    loop = make_loop(outer, number, blocks, initial, name=name)
    taken = None
    if ended:
        steps = reduce_sum(loop.stacked.pop(), (0,))
        taken = make(
            OPS["minimum"], (steps, as_size_node(count))
        )  # it always holds, and gives sizes of outputs an upper bound
        loop.last.pop()
    stacked = [
        rows_from(reshape(each, (sizes.multiply(number, size), *each.type.shape[2:])), 0, count)
        for each in loop.stacked
    ]
    return Outcome(loop.last, stacked, taken)


def _with_condition(step: Step) -> Step:
    """The step with its condition as an additional last state."""
    assert step.condition is not None
    return replace(step, states=[*step.states, variable("bool", ())], after=[*step.after, step.condition])


def _blocks(row: Node, count: Size, number: Size, size: Size) -> Node:
    """The elements that `count` steps read, reshaped to blocks; the last block is padded with zeros."""
    used = row if sizes.equal(row.type.shape[0], count) else rows_from(row, 0, count)
    rest, total = row.type.shape[1:], sizes.multiply(number, size)
    missing = sizes.subtract(total, count)
    if missing != 0:
        used = concatenate([used, zeros(row.type.dtype, (missing, *rest))], 0)
    return reshape(used, (number, size, *rest))


def _limits(count: Size, number: Size, size: Size) -> Node:
    """For each block, the number of steps to execute."""

    def everywhere(value: Size) -> Node:
        return filled(as_size_node(value), (number,))

    begin = make(OPS["mul"], (iota(number), everywhere(size)))
    return make(OPS["minimum"], (make(OPS["sub"], (everywhere(count), begin)), everywhere(size)))
