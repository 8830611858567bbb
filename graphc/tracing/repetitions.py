"""Loops of a traced program as nodes: the states of a loop are found by tracing its body.

    while hi - lo > 1e-9:                 states: lo, hi, which the body binds
        middle = (lo + hi) / 2            middle is none: each step binds it before it is read
        if middle**3 > 2:
            hi = middle
        else:
            lo = middle

In: the test and the body of a loop as functions, the names that the body binds. Out: a loop of `control`, and how it
ended. Arrays from outside to which the body writes are states as well. What cannot be a state, as a name that is None
before the loop, is an error; the function is traced again then, without this loop as a node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.control.branch import choose
from graphc.control.functional import traced_step
from graphc.control.loop import Returned as StepResults, State, make_loop
from graphc.errors import GraphTypeError
from graphc.ir.node import Node, Size, constant_value, literal, next_serial
from graphc.ir.pairs import with_pairs
from graphc.ir.source_lines import TRACE
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.identity import EFFECTS, Frame, again, attached, checked
from graphc.ops.questions import asked_equal
from graphc.ops.scan import UNKNOWN as MANY
from graphc.startup.record import record
from graphc.tensor import boundary
from graphc.tensor.handles import Handle, Region, Storage, relate
from graphc.tensor.python_functions import number
from graphc.tracing.blocks import (
    UNBOUND,
    Open,
    Returned,
    as_program_has,
    bind,
    cells_of,
    check_containers,
    code_of,
    containers,
    contents,
    described,
    is_alike,
    is_python_number,
    nothing_like,
    origins_of,
    parts,
    plain_content,
    side_of,
    signal,
    storages_of,
    truth_node,
    value_of,
    write,
)
from graphc.trees import leaves, structure

PASSES = 24
"""The most times that the body of a loop is traced until its states are known."""


class Again(Exception):
    """Something was learned of the states of a loop: its body is traced again."""


@record()
class Elements:
    """What a `for` loop goes over. plain: the same for Python. length: the number of elements. at: gives one of them;
    None where only Python can."""

    plain: Callable[[], Any]
    length: Size | None
    at: Callable[[Node], Any] | None


def elements_of(value: Any) -> Elements:
    """A value that a `for` loop goes over."""
    if isinstance(value, Elements):
        return value
    if isinstance(value, range):
        return Elements(lambda: value, len(value), lambda place: counted(value.start, value.step, place))
    if isinstance(value, Node) and value.ndim:
        return Elements(
            lambda: (boundary.item(value, place) for place in range(len(value))),
            boundary.given(value).type.shape[0],
            lambda place: boundary.item(value, place),
        )
    return Elements(lambda: value, None, None)


def counted(start: Any, step: Any, place: Node) -> Any:
    """Element `place` of a range."""
    made = place if step == 1 else elementwise("mul", place, step)
    return number(elementwise("add", made, as_node(boundary.given(start), "int64")))


class Repetition:
    """A loop that becomes a node. before: what its names held. carried: the names whose values a step reads. written:
    the arrays outside that steps write. temporary: names that are bound in each step, and used after the loop."""

    def __init__(
        self,
        functions: Sequence[Callable[..., Any]],
        names: Sequence[str],
        first: Sequence[str],
        used: Sequence[str],
    ) -> None:
        self.cells = cells_of(functions, names)
        self.before = {key: contents(cell) for key, cell in self.cells.items()}
        self.containers = containers(functions)
        self.carried = [key for key, value in self.before.items() if value is not UNBOUND and key not in first]
        self.fixed: list[str] = []
        for key in self.carried:
            if parts(self.before[key]) is None:
                self.fixed.append(key)
        self.carried = [key for key in self.carried if key not in self.fixed]
        self.temporary = [
            key for key in self.cells if key in used and key not in self.carried and key not in self.fixed
        ]
        self.written: list[Storage] = []
        self.stale: set[Storage] = set()
        self.in_place: set[str] = set()
        self.aliases: set[tuple[str, Any]] = set()
        self.note_aliases(self.before)
        self.examples: dict[str, Any] = {}
        self.returned: Any = UNBOUND
        self.origins: set[Storage] = set()
        self.effects: Sequence[Node] = ()
        self.has_effects = False
        self.numbers: dict[Any, list[bool]] = {
            key: [is_python_number(leaf) for leaf in parts(self.before[key]) or ()] for key in self.carried
        }
        self.begin: dict[Any, Any] = {}

    # --- states ---

    def keys(self) -> list[Any]:
        """The states: names, arrays, and what is returned."""
        more = ["value"] if self.returned is not UNBOUND else []
        kept = [("kept", key) for key in self.temporary if key in self.examples]
        return [*(("name", key) for key in self.carried), *(("array", each) for each in self.written), *kept,
                *((each, None) for each in more)]  # fmt: skip

    def initial(self, key: Any) -> Any:
        """The value of a state before the loop."""
        what, of = key
        if what == "name":
            return self.before[of]
        if what == "array":
            return of.value()
        example = self.returned if what == "value" else self.examples[of]
        before = UNBOUND if what == "value" else self.before[of]
        if before is not UNBOUND and is_alike(before, example):
            return before
        return nothing_like(example)

    def flags(self, key: Any, value: Any) -> list[bool]:
        """For each leaf of a state True if it is a Python number."""
        if key not in self.numbers:
            self.numbers[key] = [is_python_number(leaf) for leaf in parts(value) or ()]
        return self.numbers[key]

    def states(self) -> list[State]:
        """The states of the loop."""
        self.begin = {key: with_pairs(boundary.given(self.initial(key))) for key in self.keys()}
        made = list[State]()
        for key, value in self.begin.items():
            flags = self.flags(key, value)
            for leaf, flag in zip(leaves(value), flags, strict=True):
                made.append(State(as_node(leaf), (-1,), flag))
        return made

    # --- a step ---

    def step(
        self,
        variables: Sequence[Node],
        run: Callable[[], Any],
        more: Callable[[Any], Sequence[Node]],
        anchor: Node | None,
    ) -> list[Node]:
        """Trace a step. run: goes through the body, and returns how that ended. more: further results, after it.
        anchor: a variable of the step. Returns the next states and these."""
        nodes = iter(variables)
        with TRACE, Frame(anchor) as effects:
            region = Region.enter(self.stale)
            try:
                own = dict[str, Any]()
                for key, initial in self.begin.items():
                    taken = [next(nodes) for _ in leaves(initial)]
                    value = as_program_has(initial, taken, self.numbers[key])
                    if key[0] == "name":
                        own[key[1]] = value
                        bind(self.cells[key[1]], value)
                    elif key[0] == "array":
                        region.replace(key[1], plain_content(value))
                for key, cell in self.cells.items():
                    if key not in own and key not in self.fixed:
                        bind(cell, UNBOUND)
                self.relate(own)
                status = run()
                check_containers(self.containers)
                made = self.after(status, own, region)
                results = [*made, *more(status)]
            finally:
                region.take_back()
                for key, cell in self.cells.items():
                    bind(cell, self.before[key])
        self.effects = effects
        if effects and not self.has_effects:
            self.has_effects = True
            raise Again
        return results

    def after(self, status: Any, own: Mapping[str, Any], region: Region) -> list[Node]:
        """The states after a step. Raises Again if there are more than were known."""
        for key in self.fixed:
            if contents(self.cells[key]) is not self.before[key]:
                raise GraphTypeError(f"{key} is {described(self.before[key])} before it, and changes")
        value = value_of(status)
        if self.learn(value, own, region):
            raise Again
        if any(each in self.written for key in self.carried for each in storages_of(self.before[key])):
            raise GraphTypeError("an array is written to under two names")
        made = list[Node]()
        for state, initial in self.begin.items():
            made += self.next_state(state, initial, self.now(state, value))
        return made

    def next_state(self, state: Any, initial: Any, now: Any) -> list[Node]:
        """The leaves of a state after a step. Raises Again where a number of Python's has become one of NumPy's."""
        name = "an array" if state[0] == "array" else state[1] or "what it returns"
        if now is UNBOUND:
            raise GraphTypeError(f"{name} is not bound in each step")
        values = parts(now)
        if values is None or structure(with_pairs(boundary.given(now))) != structure(initial):
            raise GraphTypeError(f"{name} is {described(initial)} before it, and {described(now)} after a step")
        flags = [a and is_python_number(leaf) for a, leaf in zip(self.numbers[state], values, strict=True)]
        if flags != self.numbers[state]:
            self.numbers[state] = flags
            raise Again
        nodes = [as_node(leaf) for leaf in values]
        for node, before in zip(nodes, map(as_node, leaves(initial)), strict=True):
            pairs = zip(node.type.shape, before.type.shape, strict=True) if node.ndim == before.ndim else [(0, 1)]
            if not all(asked_equal(*pair) for pair in pairs):
                raise GraphTypeError(f"{name} may change its shape from step to step")
        return nodes

    def learn(self, value: Any, own: Mapping[str, Any], region: Region) -> bool:
        """Note what a step has done that was not known: arrays that it writes, and names that it binds. value: what it
        returns; own: what the names held at its begin."""
        new = [each for each in region.written() if each not in self.written]
        self.written += new
        learned = bool(new)
        if value is not UNBOUND and self.returned is UNBOUND:
            self.returned = boundary.given(value)
            learned = True
        self.origins |= origins_of(value, region)
        for key in self.temporary:
            now = contents(self.cells[key])
            if key not in self.examples and now is not UNBOUND and parts(now) is not None:
                self.examples[key] = boundary.given(now)
                learned = True
        for key, handle in own.items():
            learned |= self.note_writes(key, handle)
        learned |= self.note_aliases({key: contents(cell) for key, cell in self.cells.items()}, region)
        return learned

    def now(self, state: Any, returned: Any) -> Any:
        """The value of a state after a step."""
        what, of = state
        if what == "array":
            return of.value()
        if what == "value":
            return nothing_like(self.returned) if returned is UNBOUND else returned
        return contents(self.cells[of])

    def note_writes(self, key: str, handle: Any) -> bool:
        """Note that a step writes to the array that a name holds at its begin. Returns True if that is new."""
        before = self.before[key]
        changed = False
        for own, outer in zip(leaves(handle), leaves(before), strict=False):
            if not (isinstance(own, Handle) and own.storage.version):
                continue
            if not isinstance(outer, Handle):
                raise GraphTypeError(f"{key} is written to, and is not an array that the function has made")
            outer.storage.check_written("x[key] = value", outer.node)
            if own is handle and contents(self.cells[key]) is handle:
                if key not in self.in_place:
                    self.in_place.add(key)
                    changed = True
            elif outer.storage not in self.stale:
                changed = True
            if outer.storage not in self.stale:
                self.stale.add(outer.storage)
                changed = True
        return changed

    def note_aliases(self, values: Mapping[str, Any], level: Any = None) -> bool:
        """Note names that hold the same array, and those that hold one from outside of `level`. True if one is new."""
        count, seen = len(self.aliases), dict[Storage, str]()
        for key in (*self.carried, *self.temporary):
            value = values.get(key, UNBOUND)
            for storage in storages_of(value):
                for each in storage.relatives or (storage,):
                    other = seen.setdefault(each, key)
                    if other != key:
                        self.aliases.add((other, key))
            if level is not None:
                self.aliases |= {(key, each) for each in origins_of(value, level)}
        return len(self.aliases) > count

    def relate(self, values: Mapping[str, Any]) -> None:
        """Let a write to an array of a name forbid to read those that may be the same one."""
        for key, other in self.aliases:
            first = storages_of(values.get(key, UNBOUND))
            second = [other] if isinstance(other, Storage) else storages_of(values.get(other, UNBOUND))
            for one in first:
                for two in second:
                    relate((one, two))

    # --- the whole loop ---

    def finish(self, last: Sequence[Node], ran: Node | None) -> Any:
        """Bind the names to the last states. ran: whether there was a step; None if there always is. Returns the value
        that the program returns in the loop."""
        nodes = iter(last)
        value: Any = UNBOUND
        for state, initial in self.begin.items():
            taken = [next(nodes) for _ in leaves(initial)]
            what, of = state
            if what == "kept" and ran is not None and not is_alike(self.before[of], self.examples[of]):
                message = f"{of} is not bound: the loop had no step"
                taken = [checked(each, [cast(ran, "int64")], message, "value") for each in taken]
            made = as_program_has(initial, taken, self.numbers[state])
            if what == "value":
                value = made
                relate((*storages_of(made), *self.origins))
            elif what == "array":
                write(of, made)
            elif what == "name" and of in self.in_place and isinstance(self.before[of], Handle):
                self.before[of].write(plain_content(made), "x[key] = value")
            else:
                bind(self.cells[of], made)
                if ran is not None and self.before[of] is not UNBOUND:  # without a step it is the array from before
                    relate((*storages_of(made), *storages_of(self.before[of])))
        for key, cell in self.cells.items():
            if key not in self.carried and key not in self.fixed and key not in self.examples:
                bind(cell, UNBOUND)
        self.relate({key: contents(cell) for key, cell in self.cells.items()})
        kept = {leaf.storage for key in self.in_place for leaf in leaves(self.before[key]) if isinstance(leaf, Handle)}
        for storage in self.stale - kept:
            storage.stale = (
                "holds what an array held before a loop that is compiled, which writes to it under another name: make "
                "a copy, by x.copy(), before the loop"
            )
        return value


def repeated(
    repetition: Repetition,
    run: Callable[[Any], Any],
    test: Callable[[], Any] | None,
    elements: Elements | None,
) -> Any:
    """Make a loop a node. run: goes through the body, of an element. test: the condition of a `while` loop. Returns the
    status."""
    on: Any = None
    if test is not None:
        side = side_of(lambda: Returned(truth_node(test())), {})
        (on,) = attached([side.values[None]], side.effects)
    signal_of_loop = signal()
    length = MANY if elements is None else elements.length
    assert length is not None
    for _ in range(PASSES):
        since = next_serial()
        counter = [State(literal(0, "int64"), (-1,))] if elements is not None else []
        try:
            states = repetition.states()
            code = [State(literal(0, "int64"), (-1,))] if repetition.returned is not UNBOUND else []
            signals = [State(signal_of_loop, (-1,))] if repetition.has_effects else []

            def call(
                past: list[list[Node]], counter: Any = counter, code: Any = code, signals: Any = signals
            ) -> StepResults:
                values = [each for group in past for each in group]
                place = values[0] if counter else None
                own = values[len(counter) : len(values) - len(code) - len(signals)]

                def body() -> Any:
                    return run(None if elements is None or elements.at is None else elements.at(place))  # type: ignore[arg-type]

                def more(status: Any) -> Sequence[Node]:
                    left = code_of(status)
                    over = literal(left != 0) if isinstance(left, int) else elementwise("not_equal", left, 0)
                    if test is not None:
                        over = elementwise("logical_not", goes_on(over, test))
                    is_never = constant_value(over) is not None and not constant_value(over)
                    return [*([as_node(left, "int64")] if code else []), *([] if is_never else [cast(over, "bool")])]

                results = repetition.step(own, body, more, next(iter(values), None))
                after, rest = results[: len(own)], results[len(own) :]
                codes, over = rest[: len(code)], rest[len(code) :]
                counted_on = [elementwise("add", place, 1)] if counter else []
                after_effects = again(values[-1:], repetition.effects) if signals else []
                return StepResults([*counted_on, *after, *codes, *after_effects], {}, over[0] if over else None, "loop")

            step, initial = traced_step([], [*counter, *states, *code, *signals], call, since)
        except Again:
            continue
        if step.condition is None and elements is None:
            raise GraphTypeError("it never ends")
        limit = None
        if on is not None:
            limit = elementwise("where", on, literal(MANY, "int64"), literal(0, "int64"))
        done = make_loop(step, length, [], initial, limit=limit, name="loop")
        last = done.last[len(counter) : len(done.last) - len(code) - len(signals)]
        ran: Node | None = on
        if elements is not None:
            ran = None if isinstance(length, int) and length > 0 else elementwise("greater", length, 0)
        elif constant_value(on) is not None and constant_value(on):
            ran = None
        EFFECTS.frames[-1].found.extend(done.last[len(done.last) - len(signals) :])
        value = repetition.finish(last, ran)
        return None if value is UNBOUND else Open(done.last[-1 - len(signals)], value)
    raise GraphTypeError("its states do not settle")


def goes_on(over: Node, test: Callable[[], Any]) -> Node:
    """True if a `while` loop has not ended and its test holds, which is asked only then."""
    known = constant_value(over)
    if known is not None and known:
        return literal(False)
    holds = truth_node(test())
    if known is not None:
        return holds
    (made,) = choose("while", over, [literal(False)], [holds])
    return made
