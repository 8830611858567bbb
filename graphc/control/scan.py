"""Theano's `scan`, with `map`, `reduce`, `foldl` and `foldr`, and the updates that it returns.

In: a function, traced once with variables in place of elements and previous values. Out: the outputs of all steps,
stacked, and updates of shared variables:

    h, updates = scan(lambda x, h: 0.5 * h + x, sequences=x, outputs_info=h0)       h[t] = 0.5 * h[t-1] + x[t]

All of them make one node of `ops/scan.py`. A state with taps beyond -1 becomes a chain of states, each of which takes
the value of the next; shared variables that a step updates are states, too.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphc.arrays.dtypes import INTEGERS
from graphc.control.loop import (
    Checkpoint,
    Outcome,
    Returned,
    State,
    Step,
    as_step,
    at,
    called,
    flat,
    make_loop,
    rows_from,
    settle,
    title,
    until_end,
)
from graphc.errors import GraphTypeError, GraphValueError, MissingInputError, RankError, UpdateError, plural
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import SHARED, Node, Size, describe, next_serial, variable
from graphc.ir.walk import dependents, mention, node_set, nodes_of, nodes_since, reachable, substitute
from graphc.ops.elementwise import as_node, cast_safely, is_number
from graphc.startup.record import record, replace
from graphc.tensor.indexing import flip, keep_last_row


class OrderedUpdates(OrderedDict[Any, Any]):
    """New values of shared variables, in order; two may be added if they agree. Raises UpdateError for a key that is
    not a shared variable, and for two values of one variable.

        >>> w, b = graphc.shared(1.0, "w"), graphc.shared(2.0, "b")
        >>> updates = OrderedUpdates([(w, w - 0.1)])
        >>> updates += OrderedUpdates({b: b - 0.2})
        >>> list(updates) == [w, b]
        True
    """

    def __setitem__(self, key: Any, value: Any) -> None:
        if not (isinstance(key, Node) and key.op is SHARED):
            shown = describe(key) if isinstance(key, Node) else repr(key)
            raise UpdateError(f"the keys of updates are shared variables; got {shown}")
        super().__setitem__(key, value)

    def update(self, other: Any = (), /, **others: Any) -> None:
        """Add the pairs of a mapping or a list."""
        for key, value in [*(other.items() if isinstance(other, Mapping) else other), *others.items()]:
            if key in self and self[key] is not value:
                raise UpdateError(f"{describe(key)} has two new values")
            self[key] = value

    def __add__(self, other: Any) -> OrderedUpdates:
        updates = OrderedUpdates()
        updates.update(self)
        updates.update(other)
        return updates

    def __radd__(self, other: Any) -> OrderedUpdates:
        updates = OrderedUpdates()
        updates.update(other)
        updates.update(self)
        return updates

    def __iadd__(self, other: Any) -> OrderedUpdates:
        self.update(other)
        return self


# --- scan -------------------------------------------------------------------------------------------------------------


class until:  # noqa: N801 - Theano's name
    """A condition that ends a scan. A step returns it after its outputs; the first step at which it holds is the last.

    condition: a scalar; any number except zero is true. The outputs of `scan` then have a row for each step that was
    made, the last one included. Raises RankError for a condition that is no scalar.

        >>> graphc.scan(lambda p: (2 * p, until(p > 3)), outputs_info=1.0, n_steps=10)[0].eval()
        array([2., 4., 8.])
    """

    def __init__(self, condition: Any) -> None:
        self.condition = as_node(condition)
        if self.condition.ndim:
            raise RankError(f"until: the condition must be a scalar, not {self.condition.type}")


@record()
class Source:
    """A sequence, and the taps (offsets from the step's own index) at which a step reads it."""

    value: Node
    taps: tuple[int, ...]
    backwards: bool


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
    checkpoint: Checkpoint = None,
) -> tuple[Any, OrderedUpdates]:
    """Return the outputs of the steps, stacked along a new first axis, and the updates of shared variables.

    fn: called once, and again if a Python number among the initial values must take another dtype. Its arguments are
    variables: for each sequence the elements at its taps, for each state the previous values at its taps, then
    `non_sequences`. It returns outputs (one, or a list), updates of shared variables (a dict, or a list of pairs),
    `until(condition)`, or a tuple of these in this order. Other tensors that it uses, shared variables included, need
    not be listed.
    sequences: tensors, or dict(input=, taps=[...], go_backwards=) if a step reads other elements than its own.
    outputs_info: for each output the initial value of its state; dict(initial=, taps=[-1, -2]) if a step reads older
    values, where `initial` has one row for each, oldest first; or None if no step reads it. A Python number takes the
    dtype that the step gives it.
    n_steps: a number, a scalar, or None for the length of the shortest sequence.
    truncate_gradient: the number of last steps that are differentiated; -1 for all.
    go_backwards: read the sequences from their ends. strict: shared variables that a step uses must be in
    `non_sequences`; other variables are found. return_list: return the outputs as a list even if there is only one.
    mode, profile, allow_gc: accepted for Theano's sake and ignored.
    checkpoint: keep the states of every n-th step for derivatives ("sqrt": n is the square root of `n_steps`) and
    recompute the steps between: memory for time.

    Raises GraphTypeError for a state whose type changes (the message names both types) and for an unknown trip count;
    MissingInputError for a shared variable used against `strict`. Calls raise ShapeError if a sequence is shorter than
    `n_steps`.

        >>> graphc.scan(lambda power: 2 * power, outputs_info=1.0, n_steps=3)[0].eval()
        array([2., 4., 8.])
    """
    since = next_serial()
    taken = [_sequence(entry, go_backwards) for entry in _listed(sequences)]
    states = [_state(entry, number) for number, entry in enumerate(_listed(outputs_info))]
    fixed = [as_node(value) for value in _listed(non_sequences)]
    drawn = _drawing(fixed)
    rows, elements = _elements(taken)
    count = _steps(rows, n_steps)
    if not callable(fn):
        raise GraphTypeError(f"scan: the step is a function, not {fn!r}")
    _check_truncation(truncate_gradient)
    settled, past, returned = settle(states, partial(_call_step, fn, elements, states, fixed, drawn, strict))
    if not states:
        settled, past = [State(None, ())] * len(returned.outputs), [[] for _ in returned.outputs]
    returned, hoisted = _hoisted(returned, fixed)
    step, initial = as_step(elements, settled, past, returned, since, fixed)
    used = set(nodes_since(step.results, since))
    mention(value for value in fixed if value not in used)
    done = make_loop(step, count, rows, initial, truncate_gradient, checkpoint, name=name)
    updates = dict(zip(returned.updates, done.last[len(done.last) - len(returned.updates) :], strict=True))
    stacked = until_end(done)
    if checkpoint is not None:
        _keep_last_rows(stacked, step, done)
    if hoisted:
        stacked = substitute(stacked, hoisted)
        updates = dict(zip(updates, substitute([*updates.values()], hoisted), strict=True))
    if return_list:
        return stacked, OrderedUpdates(updates)
    return (stacked[0] if len(stacked) == 1 else stacked or None), OrderedUpdates(updates)


# --- arguments of a step ----------------------------------------------------------------------------------------------


def _call_step(
    fn: Callable[..., Any],
    elements: list[Node],
    states: list[State],
    fixed: list[Node],
    drawn: set[Node],
    strict: bool,
    past: list[list[Node]],
) -> Returned:
    """The outputs and updates of the user's step, called with elements of sequences and previous values of states."""
    pairs = zip(states, past, strict=True)
    priors = [history[state.depth + tap] for state, history in pairs for tap in state.taps]
    _name(fn, [*elements, *priors])
    operands = [*elements, *priors, *fixed]
    names = [node.name or str(node.type) for node in operands]
    returned = _returned(fn, called("scan calls the step", fn, operands, names))
    if states and len(states) != len(returned.outputs):
        raise GraphValueError(
            f"scan: outputs_info has {plural(len(states), 'entry', 'entries')}, and the step {title(fn)} returns "
            f"{plural(len(returned.outputs), 'output', 'outputs')}; there is one entry for each output, None for "
            "one that no step reads"
        )
    if strict:
        _check_strict(returned, [*elements, *flat(past), *fixed])
    return _with_default_updates(returned, drawn)


def _keep_last_rows(stacked: list[Node], step: Step, done: Outcome) -> None:
    """Let the last rows of outputs that are states be read from the loop's last values: blocks have rows of their own,
    and a derivative would keep all of them for the last one."""
    for each, output in zip(stacked, step.outputs, strict=True):
        last = next((last for last, after in zip(done.last, step.after, strict=False) if after is output), None)
        if last is not None:
            keep_last_row(each, last)


def _check_truncation(steps: object) -> None:
    """Raises GraphTypeError where `truncate_gradient` is neither a number of steps nor -1."""
    if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < -1:
        raise GraphTypeError(f"scan: truncate_gradient is a number of steps, or -1 for all, not {steps!r}")


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _drawing(fixed: Sequence[Node]) -> set[Node]:
    """The random states that values of `non_sequences` are drawn from. Such values are the same in all steps,
    derivatives included, so their states must not advance; a step that draws by itself draws anew each time."""
    return {node for node in node_set(fixed) if node.op is SHARED and getattr(node, "default_update", None) is not None}


def _hoisted(returned: Returned, fixed: Sequence[Node]) -> tuple[Returned, dict[Node, Node]]:
    """The result of a step, with variables in place of `non_sequences` that depend on shared variables the step
    updates: they are evaluated once, before the loop. Also maps each variable to its value."""
    if not returned.updates:
        return returned, {}
    changing = dependents(nodes_of(fixed), returned.updates)
    stand_ins = {
        value: variable(value.type.dtype, value.type.shape, value.name)
        for value in fixed
        if value in changing and value not in returned.updates
    }
    if not stand_ins:
        return returned, {}
    condition = None if returned.condition is None else substitute([returned.condition], stand_ins)[0]
    updates = dict(zip(returned.updates, substitute([*returned.updates.values()], stand_ins), strict=True))
    changed = replace(returned, outputs=substitute(returned.outputs, stand_ins), updates=updates, condition=condition)
    return changed, {stand_in: value for value, stand_in in stand_ins.items()}


def _sequence(entry: Any, go_backwards: bool) -> Source:
    options = dict(entry) if isinstance(entry, Mapping) else {"input": entry}
    _check_keys("a sequence", options, ("input", "taps", "go_backwards"))
    value = as_node(options.get("input"))
    taps = _as_taps(options.get("taps"), 0)
    if not value.ndim:
        raise RankError(
            f"scan: the sequence {describe(value)} is a scalar, which has no elements; what is the same in all steps "
            "goes to non_sequences"
        )
    return Source(value, taps, bool(options.get("go_backwards", go_backwards)))


def _state(entry: Any, number: int) -> State:
    options = dict(entry) if isinstance(entry, Mapping) else {"initial": entry}
    _check_keys(f"entry {number} of outputs_info", options, ("initial", "taps"))
    value = options.get("initial")
    if value is None:
        if options.get("taps") is not None:
            raise GraphValueError(f"scan: output {number} has the taps {options['taps']}, and no initial value")
        return State(None, ())
    taps = _as_taps(options.get("taps"), -1)
    if any(tap >= 0 for tap in taps) or len({*taps}) < len(taps):
        raise GraphValueError(
            f"scan: the taps of output {number} are {list(taps)}; a step reads what others before it made, each once: "
            "they are negative and differ"
        )
    initial = as_node(value)
    if taps != (-1,) and not initial.ndim:
        raise RankError(
            f"scan: the initial value of output {number} is the scalar {describe(initial)}; for the taps {list(taps)} "
            f"it needs a first axis of {-min(taps)} values, the oldest first"
        )
    return State(initial, taps, is_number(value))


def _as_taps(option: Any, default: int) -> tuple[int, ...]:
    taps = tuple(option) if isinstance(option, Iterable) else (default if option is None else option,)
    if not taps or any(isinstance(tap, bool) or not isinstance(tap, int | np.integer) for tap in taps):
        raise GraphValueError(f"scan: taps={option!r}; taps are whole numbers, at least one")
    return tuple(int(tap) for tap in taps)


def _check_keys(what: str, entry: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in entry:
        if key not in known:
            raise GraphValueError(f"scan: {what} has the key {key!r}; there are {', '.join(known)}")


def _elements(taken: Sequence[Source]) -> tuple[list[Node], list[Node]]:
    """The sequences shifted by each tap, and a variable for an element of each."""
    rows: list[Node] = []
    for sequence in taken:
        first, last = min(0, *sequence.taps), max(0, *sequence.taps)
        length = sequence.value.type.shape[0]
        for tap in sequence.taps:
            part = sequence.value
            if first or last:
                part = rows_from(part, tap - first, sizes.subtract(length, last - first))
                part = _named(part, sequence.value, f"[{tap - first}:]")
            rows.append(_named(flip(part, 0), part, "[::-1]") if sequence.backwards else part)
    names = [at(sequence.value.name, tap) for sequence in taken for tap in sequence.taps]
    return rows, [variable(row.type.dtype, row.type.shape[1:], name) for row, name in zip(rows, names, strict=True)]


def _named(part: Node, whole: Node, key: str) -> Node:
    """A part of a sequence, with a display name for messages."""
    if part.name is None and whole.name is not None:
        part.name = whole.name + key
    return part


def _steps(rows: Sequence[Node], n_steps: Any) -> Size:
    """The trip count: `n_steps`, or the length of the shortest sequence."""
    if n_steps is not None:
        whole = isinstance(n_steps, float) and n_steps.is_integer()
        count = as_node(int(n_steps) if whole else n_steps)
        if count.ndim or count.type.dtype not in INTEGERS:
            raise GraphTypeError(f"scan: n_steps must be an integer, not {describe(count)} of type {count.type}")
        return sizes.as_size(count)
    if not rows:
        raise GraphValueError("scan: the number of steps is not known; give n_steps or a sequence")
    shortest: Size = rows[0].type.shape[0]
    for row in rows[1:]:
        shortest = sizes.minimum(shortest, row.type.shape[0])
    return shortest


# --- results of a step ------------------------------------------------------------------------------------------------


def _name(fn: Callable[..., Any], nodes: Sequence[Node]) -> None:
    """Name unnamed variables after the step's parameters, for messages and the generated source."""
    code = getattr(fn, "__code__", None)
    if code is not None:
        for node, name in zip(nodes, code.co_varnames[inspect.ismethod(fn) : code.co_argcount], strict=False):
            node.name = node.name or name


def _returned(fn: Callable[..., Any], value: Any) -> Returned:
    several = isinstance(value, list | tuple) and not _is_updates(value)
    several = several and any(isinstance(part, until | list | tuple) or _is_updates(part) for part in value)
    parts = list(value) if several else [value]
    condition = parts.pop().condition if isinstance(parts[-1], until) else None
    updates: dict[Node, Node] = {}
    outputs: list[Node] = []
    for part in parts:
        if _is_updates(part):
            pairs = part.items() if isinstance(part, Mapping) else part
            updates |= {shared: _update(shared, new) for shared, new in pairs}
        else:
            outputs += [_output(fn, each) for each in _listed(part)]
    if not (outputs or updates):
        raise GraphTypeError(f"scan: the step {title(fn)} returns no output and no updates: {value!r}")
    return Returned(outputs, updates, condition, "scan")


def _output(fn: Callable[..., Any], value: Any) -> Node:
    if isinstance(value, until):
        raise GraphValueError(f"scan: the step {title(fn)} returns until() before the end; it must come last")
    try:
        return as_node(value)
    except GraphTypeError as error:
        raise GraphTypeError(
            f"scan: the step {title(fn)} returns {value!r}, which is no tensor; it returns outputs, then updates of "
            "shared variables where there are any, then until() where it has one"
        ) from error


def _is_updates(part: Any) -> bool:
    if isinstance(part, Mapping):
        return True
    pairs = isinstance(part, list | tuple) and bool(part)
    return pairs and all(isinstance(each, list | tuple) and len(each) == 2 and _is_shared(each[0]) for each in part)


def _is_shared(value: Any) -> bool:
    return isinstance(value, Node) and value.op is SHARED


def _update(shared: Any, new: Any) -> Node:
    if not _is_shared(shared):
        raise GraphTypeError(f"scan: a step can update shared variables only, not {shared!r}")
    node = as_node(new)
    node = cast_safely(node, shared.dtype)
    if node.type.dtype != shared.dtype or node.ndim != shared.ndim:
        raise GraphTypeError(
            f"scan: a step's update of {describe(shared)} must have its type {shared.type}, not {node.type}"
        )
    return node


def _with_default_updates(returned: Returned, drawn: Collection[Node]) -> Returned:
    """The result of a step, plus the default updates of shared variables in it, except those in `drawn`."""
    updates = dict(returned.updates)
    condition = [returned.condition] if returned.condition is not None else []
    while True:
        nodes = nodes_of([*returned.outputs, *condition, *updates.values()])
        shared = [node for node in nodes if node.op is SHARED and node not in drawn]
        new = {node: d for node in shared if (d := getattr(node, "default_update", None)) is not None}
        if new.keys() <= updates.keys():
            return replace(returned, updates=updates)
        updates |= {node: _update(node, value) for node, value in new.items() if node not in updates}


def _check_strict(returned: Returned, allowed: Sequence[Node]) -> None:
    """Raise MissingInputError if a step uses a shared variable that is not an argument. Those with a default update, as
    the states that random numbers are drawn from, need not be one."""
    condition = [] if returned.condition is None else [returned.condition]
    results = [*returned.outputs, *returned.updates.values(), *condition]
    known = {*allowed, *returned.updates}
    for node in reachable(results, lambda node: () if node in known else node.args):
        if node not in known and node.op is SHARED and getattr(node, "default_update", None) is None:
            raise MissingInputError(
                f"scan: the step uses {describe(node)}, which is shared and not in non_sequences (strict=True)"
            )


# --- Theano's other names for it --------------------------------------------------------------------------------------


def map(
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, OrderedUpdates]:
    """Apply `fn` to each element of the sequences. Return the stacked results, and the updates of shared variables.

    fn: a function of an element of each sequence, and of `non_sequences`. sequences: tensors, whose first axis is that
    of the elements. Each result has this axis first, then the axes that `fn` returned. Other arguments and errors are
    those of `scan`.

        >>> map(lambda x: x**2, T.constant([1.0, 2.0, 3.0]))[0].eval()
        array([1., 4., 9.])
    """
    return scan(fn, sequences, None, non_sequences, None, truncate_gradient, go_backwards, mode, name)


def reduce(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, OrderedUpdates]:
    """Fold `fn` over the sequences. Return the last output, and the updates of shared variables.

    fn: a function of an element of each sequence, of the last output, and of `non_sequences`; it returns the next
    output, of the same shape. outputs_info: the output before the first element. go_backwards: begin at the
    last element. Other arguments and errors are those of `scan`.

        >>> reduce(lambda x, total: total + x, T.constant([1.0, 2.0, 3.0]), T.constant(0.0))[0].eval()
        array(6.)
    """
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
) -> tuple[Any, OrderedUpdates]:
    """Fold `fn` over the sequences from the first element to the last. Arguments, results and errors are of `reduce`.

    >>> foldl(lambda x, total: 2 * total + x, T.constant([1.0, 2.0, 3.0]), T.constant(0.0))[0].eval()
    array(11.)
    """
    return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name)


def foldr(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, OrderedUpdates]:
    """Fold `fn` over the sequences from the last element to the first. Arguments, results and errors are of `reduce`.

    >>> foldr(lambda x, total: 2 * total + x, T.constant([1.0, 2.0, 3.0]), T.constant(0.0))[0].eval()
    array(17.)
    """
    return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name)


__all__ = ["OrderedUpdates", "foldl", "foldr", "map", "reduce", "scan", "until"]


explain_all(globals())
