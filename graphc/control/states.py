"""What is handed on from step to step, and how its type settles.

In: initial values, which may be Python numbers, and what a step returns. Out: a step (`loop.Step`) with the initial
values of its states, or an error that says what a step should return instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphc.arrays.dtypes import can_cast_safely, is_float
from graphc.control.loop import Step
from graphc.errors import GraphTypeError
from graphc.ir.node import Node, describe, variable
from graphc.ir.walk import substitute
from graphc.ops.branch import sized
from graphc.ops.elementwise import cast
from graphc.startup.record import record, replace

Updates = dict[Node, Node]


@record()
class State:
    """What is handed on from step to step: the initial value, and the distances at which a step reads it; of an output
    that no step reads, None and ()."""

    initial: Node | None
    taps: tuple[int, ...]
    weak: bool = False
    """Whether it begins as a Python number, which has no dtype of its own."""

    @property
    def depth(self) -> int:
        """How many of the last values are handed on."""
        return -min(self.taps) if self.taps else 0


@record()
class Returned:
    """What a step returns, sorted."""

    outputs: list[Node]
    updates: Updates
    condition: Node | None
    by: str
    """The name of the function that carries the step out, for messages."""


def settle(
    states: Sequence[State], call: Callable[[list[list[Node]]], Returned]
) -> tuple[list[State], list[list[Node]], Returned]:
    """States, variables for their last values, and what a step returns that is called with these: again, where a state
    that begins as a Python number has another dtype after a step, which it then begins with."""
    states = list(states)
    while True:
        past = [past_of(state) for state in states]
        returned = call(past)
        settled = [_settled(*pair) for pair in zip(states, returned.outputs, strict=False)]
        if settled == states[: len(settled)]:
            return states, past, returned
        states = settled


def _settled(state: State, output: Node) -> State:
    if not state.weak or state.initial is None or can_cast_safely(output.dtype, state.initial.dtype):
        return state
    if not can_cast_safely(state.initial.dtype, output.dtype) and not is_float(output.dtype):
        return state
    return replace(state, initial=cast(state.initial, output.dtype))


def _kept_type(by: str, state: State, history: Sequence[Node], output: Node) -> Node:
    """An output, cast to the type of the state that it is where that loses nothing."""
    if state.initial is None:
        return output
    before = history[-1]
    if output.dtype != before.dtype and can_cast_safely(output.dtype, before.dtype):
        output = cast(output, before.dtype)
    differ = any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(before.type.shape, output.type.shape, strict=False)
    )
    if output.dtype == before.dtype and output.ndim == before.ndim and not differ:
        return sized(output, before.type.shape)
    how = "give the initial value the shape that a step returns, as with T.zeros"
    if output.dtype != before.dtype:
        how = (
            f"cast the initial value with .astype({output.dtype!r}), or what is returned with .astype({before.dtype!r})"
        )
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
) -> tuple[Step, list[Node]]:
    """The step, to which shared variables that it updates are states as others, and the initial values of states."""
    own = {shared: variable(shared.dtype, shared.type.shape, shared.name) for shared in returned.updates}
    outputs = [_kept_type(returned.by, *each) for each in zip(states, history, returned.outputs, strict=True)]
    after = [node for past, output in zip(history, outputs, strict=True) if past for node in (*past[1:], output)]
    condition = [] if returned.condition is None else [cast(returned.condition, "bool")]
    results = [*after, *returned.updates.values(), *outputs, *condition]
    if own:
        results = substitute(results, own)
    end = len(after) + len(own)
    made = Step(
        elements,
        [*flat(history), *own.values()],
        results[:end],
        results[end : end + len(outputs)],
        results[-1] if condition else None,
        since,
    )
    return made, [*flat(rows_of(state) for state in states), *own]


def past_of(state: State) -> list[Node]:
    """Variables for the last values of a state, the oldest first."""
    name = None if state.initial is None else state.initial.name
    rows = enumerate(rows_of(state), -state.depth)
    return [variable(row.dtype, row.type.shape, at(name, tap)) for tap, row in rows]


def rows_of(state: State) -> list[Node]:
    """The initial values of a state, the oldest first."""
    if state.initial is None:
        return []
    if state.taps == (-1,):
        return [state.initial]
    return [state.initial[row] for row in range(state.depth)]


def flat(groups: Iterable[Sequence[Node]]) -> list[Node]:
    return [node for group in groups for node in group]


def title(fn: Any) -> str:
    """A step, for messages."""
    name, code = getattr(fn, "__name__", type(fn).__name__), getattr(fn, "__code__", None)
    return f"{name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code else name


def called(by: str, fn: Callable[..., Any], given: Sequence[Any], names: Sequence[str]) -> Any:
    """What a function of the user's returns. Where it takes other arguments, the error says which it is given, by name,
    and by whom."""
    try:
        return fn(*given)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is None:  # the call, and nothing within it
            count = counted(len(given), "argument", "arguments")
            error.add_note(f"{by} {title(fn)} with {count}{': ' * bool(names)}{', '.join(names)}")
        raise


def counted(count: int, one: str, several: str) -> str:
    """So many of something, in words."""
    return f"{count or 'no'} {one if count == 1 else several}"


def at(name: str | None, tap: int) -> str | None:
    """The name of what a step is given of a sequence or state."""
    return name and (f"{name}[t{tap:+d}]" if tap else f"{name}[t]")
