"""Loops as Theano's users write them: `scan`, and `map`, `reduce`, `foldl`, `foldr` over it.

In: a function that is called once, with variables that stand for what one step is given. Out: what all steps made,
stacked, and the updates of shared variables that the function asks for. All of them make one node of `ops/scan.py`.

A state of which a step reads more than the last value is as many states of the loop, each of which takes the value of
the next one; shared variables that a step updates are states too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphc.dtypes import can_cast_safely
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.body import item
from graphc.ir.closure import close
from graphc.ir.node import CONSTANT, LEAVES, SHARED, SIZE, Node, Size, describe, variable
from graphc.ir.walk import nodes_of, substitute
from graphc.ops.elementwise import as_node, cast
from graphc.ops.index import subtensor
from graphc.ops.scan import scan_node
from graphc.ops.shape import concatenate
from graphc.startup.record import record
from graphc.tensor.elementary import stop_gradient
from graphc.tensor.indexing import flip

Updates = dict[Node, Node]


class until:  # noqa: N801 - Theano's name
    """What a step returns, after its outputs, to end the loop: the step at which the condition holds is the last."""

    def __init__(self, condition: Any) -> None:
        self.condition = as_node(condition)
        if self.condition.ndim:
            raise GraphTypeError(f"until: the condition must be a scalar, not {self.condition.type}")


@record()
class Source:
    """A sequence of which a step is given the elements at some distances from its own."""

    value: Node
    taps: tuple[int, ...]
    backwards: bool


@record()
class State:
    """What is handed on from step to step: the initial value, and the distances at which a step reads it; of an output
    that no step reads, None and ()."""

    initial: Node | None
    taps: tuple[int, ...]

    @property
    def depth(self) -> int:
        """How many of the last values are handed on."""
        return -min(self.taps) if self.taps else 0


def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    profile: bool = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
) -> tuple[Any, Updates]:
    """`fn` carried out step by step: what it returns, stacked along a new first axis, and updates for `function`.

    fn: called once, with variables: for each sequence its elements at its taps, for each state its last values at its
    taps, then `non_sequences`. It returns outputs (one, or a list), updates of shared variables (a dict, or a list of
    pairs), `until(condition)`, or a tuple of these in this order. What it uses besides its arguments, shared variables
    too, need not be listed.
    sequences: tensors, or dict(input=, taps=[...]) where a step reads others than its own element.
    outputs_info: for each output the initial value of the state that it is, dict(initial=, taps=[-1, -2]) where a step
    reads older values, whose initial value has one row for each; or None where no step reads it.
    n_steps: a number, a scalar, or None: as many as the shortest sequence has elements.
    truncate_gradient: derivatives go back through so many of the last steps only; -1 through all.
    go_backwards: steps take the sequences from their ends. strict: what is used from outside must be in
    `non_sequences`. return_list: the outputs are a list also where there is one. mode, profile, allow_gc: for Theano's
    sake.

    Raises GraphTypeError for a state whose type changes from step to step, which names both types, and where the number
    of steps is not known. Calls raise ShapeError where a sequence is shorter than `n_steps`.

        >>> ks = graphc.scan(lambda prior, a: prior * a, outputs_info=T.ones_like(a), non_sequences=a, n_steps=3)[0]
    """
    taken = [_sequence(entry, go_backwards) for entry in _listed(sequences)]
    states = None if outputs_info is None else [_state(entry, n) for n, entry in enumerate(_listed(outputs_info))]
    others = [as_node(value) for value in _listed(non_sequences)]
    rows, elements = _elements(taken)
    count = _steps(rows, n_steps, taken)
    history = [_history(state) for state in states or ()]
    priors = [_priors(state, rows_) for state, rows_ in zip(states or (), history, strict=True)]
    returned = _returned(fn(*elements, *(prior for group in priors for prior in group), *others))
    if states is None:
        states, history = [State(None, ())] * len(returned.outputs), [[] for _ in returned.outputs]
    if len(states) != len(returned.outputs):
        raise GraphTypeError(
            f"scan: outputs_info has {len(states)} entries, and the step returns {len(returned.outputs)} outputs"
        )
    if strict:
        _check_strict((*returned.outputs, *returned.updates.values()), [*elements, *_flat(history), *others])
    updates = _with_default_updates(returned)
    outputs = [_kept_type(s, rows_, out) for s, rows_, out in zip(states, history, returned.outputs, strict=True)]
    begin = [_rows_of(state) for state in states]
    loop = _Loop(
        [*elements],
        rows,
        [*_flat(history), *(variable(shared.dtype, shared.type.shape, shared.name) for shared in updates)],
        [*_flat(begin), *updates],
        [*(node for rows_, out in zip(history, outputs, strict=True) if rows_ for node in (*rows_[1:], out))],
        [*updates.values()],
        outputs,
        returned.condition,
        name,
    )
    stacked, last = _carry_out(loop, list(updates), count, truncate_gradient)
    news = dict(zip(updates, last, strict=True))
    if return_list:
        return stacked, news
    return (stacked[0] if len(stacked) == 1 else stacked or None), news


# --- what a step is given ---------------------------------------------------------------------------------------------


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _sequence(entry: Any, go_backwards: bool) -> Source:
    given = dict(entry) if isinstance(entry, Mapping) else {"input": entry}
    value = as_node(given.get("input"))
    taps = given.get("taps", [0])
    taps = tuple(taps) if isinstance(taps, Iterable) else (taps,)
    if not value.ndim:
        raise GraphTypeError(f"scan: the sequence {describe(value)} is a scalar, which has no elements")
    return Source(value, taps if given.get("taps") is not None else (0,), given.get("go_backwards", go_backwards))


def _state(entry: Any, number: int) -> State:
    given = dict(entry) if isinstance(entry, Mapping) else {"initial": entry}
    if given.get("initial") is None:
        return State(None, ())
    taps = given.get("taps")
    taps = (-1,) if taps is None else tuple(taps) if isinstance(taps, Iterable) else (taps,)
    if not taps or any(not isinstance(tap, int) or tap >= 0 for tap in taps):
        raise GraphTypeError(f"scan: the taps of output {number} are {taps}; a step reads what others before it made")
    initial = as_node(given["initial"])
    if taps != (-1,) and not initial.ndim:
        raise GraphTypeError(
            f"scan: the initial value of output {number} is the scalar {describe(initial)}; for the taps {taps} it "
            f"needs a first axis of {-min(taps)} values"
        )
    return State(initial, taps)


def _elements(taken: Sequence[Source]) -> tuple[list[Node], list[Node]]:
    """The rows that steps read, one array for each tap, and a variable for an element of each."""
    rows: list[Node] = []
    for sequence in taken:
        first, last = min(0, *sequence.taps), max(0, *sequence.taps)
        length = sequence.value.type.shape[0]
        for tap in sequence.taps:
            part = sequence.value
            if first or last:
                part = _from(part, tap - first, sizes.subtract(length, last - first))
            rows.append(flip(part, 0) if sequence.backwards else part)
    names = [f"{sequence.value.name}[t]" if sequence.value.name else None for sequence in taken for _ in sequence.taps]
    return rows, [variable(row.dtype, row.type.shape[1:], name) for row, name in zip(rows, names, strict=True)]


def _from(value: Node, start: Size, length: Size) -> Node:
    """`length` rows from row `start` on."""
    rest = value.type.shape[1:]
    return subtensor(value, (start, *(0 for _ in rest)), (length, *rest), tuple(1 for _ in value.type.shape))


def _steps(rows: Sequence[Node], n_steps: Any, taken: Sequence[Source]) -> Size:
    """The number of steps."""
    if n_steps is not None:
        count = as_node(n_steps)
        if count.ndim or not count.dtype.startswith(("int", "uint")):
            raise GraphTypeError(f"scan: n_steps must be an integer, not {describe(count)} of type {count.type}")
        return sizes.as_size(count)
    if not rows:
        raise GraphTypeError("scan: the number of steps is not known; give n_steps or a sequence")
    count_: Size = rows[0].type.shape[0]
    for row in rows[1:]:
        count_ = sizes.minimum(count_, row.type.shape[0])
    return count_


def _history(state: State) -> list[Node]:
    """Variables for the last values of a state, the oldest first."""
    return [variable(row.dtype, row.type.shape, row.name) for row in _rows_of(state)]


def _rows_of(state: State) -> list[Node]:
    """The initial values of a state, the oldest first."""
    if state.initial is None:
        return []
    if state.taps == (-1,):
        return [state.initial]
    return [state.initial[row - state.depth] for row in range(state.depth)]


def _priors(state: State, history: Sequence[Node]) -> list[Node]:
    """What a step is given of a state."""
    return [history[state.depth + tap] for tap in state.taps]


def _flat(groups: Iterable[Sequence[Node]]) -> list[Node]:
    return [node for group in groups for node in group]


# --- what a step returns ----------------------------------------------------------------------------------------------


@record()
class Returned:
    """What a step returns, sorted."""

    outputs: list[Node]
    updates: Updates
    condition: Node | None


def _returned(value: Any) -> Returned:
    parts = list(value) if isinstance(value, tuple) and any(_is_special(part) for part in value) else [value]
    condition = None
    if isinstance(parts[-1], until):
        condition = parts.pop().condition
    updates: dict[Node, Node] = {}
    outputs: list[Node] = []
    for part in parts:
        if _is_updates(part):
            pairs = part.items() if isinstance(part, Mapping) else part
            updates |= {shared: _update(shared, new) for shared, new in pairs}
        else:
            outputs += [as_node(each) for each in _listed(part)]
    return Returned(outputs, updates, condition)


def _is_special(part: Any) -> bool:
    return isinstance(part, until | list | tuple) or _is_updates(part)


def _is_updates(part: Any) -> bool:
    if isinstance(part, Mapping):
        return True
    pairs = isinstance(part, list | tuple) and bool(part)
    return pairs and all(isinstance(each, tuple) and len(each) == 2 and _is_shared(each[0]) for each in part)


def _is_shared(value: Any) -> bool:
    return isinstance(value, Node) and value.op is SHARED


def _update(shared: Any, new: Any) -> Node:
    if not _is_shared(shared):
        raise GraphTypeError(f"scan: a step can update shared variables only, not {shared!r}")
    node = as_node(new)
    if node.dtype != shared.dtype and can_cast_safely(node.dtype, shared.dtype):
        node = cast(node, shared.dtype)
    if node.dtype != shared.dtype or node.ndim != shared.ndim:
        raise GraphTypeError(
            f"scan: a step's update of {describe(shared)} must have its type {shared.type}, not {node.type}"
        )
    return node


def _with_default_updates(returned: Returned) -> Updates:
    """The updates, with those that shared variables in the step bring along."""
    updates = dict(returned.updates)
    condition = [returned.condition] if returned.condition is not None else []
    while True:
        nodes = nodes_of([*returned.outputs, *condition, *updates.values()])
        new = {n: d for n in nodes if n.op is SHARED and (d := getattr(n, "default_update", None)) is not None}
        if new.keys() <= updates.keys():
            return updates
        updates |= {shared: _update(shared, value) for shared, value in new.items() if shared not in updates}


def _kept_type(state: State, history: Sequence[Node], output: Node) -> Node:
    """An output, cast to the type of the state that it is where that loses nothing."""
    if not history:
        return output
    before = history[-1]
    if output.dtype != before.dtype and can_cast_safely(output.dtype, before.dtype):
        output = cast(output, before.dtype)
    sizes_ = zip(before.type.shape, output.type.shape, strict=False)
    differ = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in sizes_)
    if output.dtype == before.dtype and output.ndim == before.ndim and not differ:
        return output
    how = f"cast the initial value to {output.dtype}, or what the step returns to {before.dtype}"
    if output.dtype == before.dtype:
        how = "give the initial value the shape that a step returns"
    assert state.initial is not None
    raise GraphTypeError(
        f"scan: a state changes its type from step to step: it begins as {before.type}, {describe(state.initial)}, and "
        f"the step returns {output.type}, {describe(output)}; {how}"
    )


def _check_strict(results: Sequence[Node], given: Sequence[Node]) -> None:
    for node in nodes_of([*results]):
        listed = node in given or node.op in (CONSTANT, SIZE)
        if node.op in LEAVES and not listed:
            raise GraphTypeError(f"scan: the step uses {describe(node)}, which is not in non_sequences (strict=True)")


# --- the loop ---------------------------------------------------------------------------------------------------------


@record()
class _Loop:
    """A loop before it is a node: variables and what they stand for, results."""

    elements: list[Node]
    rows: list[Node]
    states: list[Node]
    initial: list[Node]
    after: list[Node]
    news: list[Node]
    outputs: list[Node]
    condition: Node | None
    name: str | None


def _carry_out(loop: _Loop, shared: Sequence[Node], count: Size, truncate: int) -> tuple[list[Node], list[Node]]:
    """The stacked outputs, and the last values of shared variables that steps update."""
    own = loop.states[len(loop.states) - len(shared) :]
    condition = [] if loop.condition is None else [loop.condition]
    results = [*loop.after, *loop.news, *loop.outputs, *(cast(each, "bool") for each in condition)]
    if shared:
        results = substitute(results, dict(zip(shared, own, strict=True)))
    body, captured = close([*loop.elements, *loop.states], results)
    ended = bool(condition)
    if truncate < 0:
        return _run(loop, body, captured, loop.rows, loop.initial, count, ended, len(shared))
    if ended:
        raise GraphTypeError("scan: truncate_gradient cannot be had with until()")
    before = sizes.maximum(sizes.subtract(count, truncate), 0)
    after = sizes.subtract(count, before)
    fixed = [stop_gradient(each) if each.dtype.startswith("float") else each for each in captured]
    early = [_from(row, 0, before) for row in loop.rows]
    late = [_from(row, before, after) for row in loop.rows]
    first = scan_node(before, body, early, loop.initial, fixed)
    states = len(loop.initial)
    middle = [_stopped(item(first, n)) for n in range(states)]
    ends, last = _run(loop, body, captured, late, middle, after, False, len(shared))
    begins = [_stopped(item(first, states + n)) for n in range(len(ends))]
    return [concatenate(pair, 0) for pair in zip(begins, ends, strict=True)], last


def _stopped(node: Node) -> Node:
    return stop_gradient(node) if node.dtype.startswith("float") else node


def _run(
    loop: _Loop,
    body: Any,
    captured: Sequence[Node],
    rows: Sequence[Node],
    initial: Sequence[Node],
    count: Size,
    ended: bool,
    shared: int,
) -> tuple[list[Node], list[Node]]:
    node = scan_node(count, body, rows, initial, captured, until=ended)
    node.name = loop.name
    states, outputs = len(initial), len(loop.outputs)
    stacked = [item(node, states + n) for n in range(outputs)]
    if ended:
        taken = item(node, states + outputs)
        stacked = [each[:taken] for each in stacked]
    return stacked, [item(node, n) for n in range(states - shared, states)]


def map(
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, Updates]:
    """`fn` of each element of the sequences, stacked; the arguments are those of `scan`."""
    return scan(fn, sequences, None, non_sequences, None, truncate_gradient, go_backwards, mode, name)


def reduce(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, Updates]:
    """What `fn` makes of the last element and the state that the others have left; the arguments are those of
    `scan`."""
    stacked, updates = scan(fn, sequences, outputs_info, non_sequences, None, -1, go_backwards, mode, name)
    last = [each[-1] for each in stacked] if isinstance(stacked, list) else stacked[-1]
    return last, updates


def foldl(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, Updates]:
    """`reduce` from the first element to the last."""
    return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name)


def foldr(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, Updates]:
    """`reduce` from the last element to the first."""
    return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name)


__all__ = ["foldl", "foldr", "map", "reduce", "scan", "until"]
