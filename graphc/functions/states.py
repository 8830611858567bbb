"""States of functions, access to kept values by variable or name, copies and pickles.

In: a `Function`, or the arguments of `function` with inputs that are states (`In(update=...)`). Out: `Values`,
`Containers`, copies, a `Stateful`.

    n = T.iscalar("n")
    f = graphc.function([graphc.In(n, value=0, update=n + 1)], n)
    f(), f(), f["n"]     0, 1, array(2, dtype=int32)
    f(10), f.value[n]    10, array(11, dtype=int32)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import as_array
from graphc.codegen.call.locks import Lock
from graphc.codegen.pipeline.build import look_up
from graphc.codegen.pipeline.kernel import shared_of
from graphc.errors import ArgumentError, GraphTypeError, GraphValueError, RankError
from graphc.functions.callables import Function
from graphc.functions.convention import REQUIRED, Convention, In, convert, label, name_positions
from graphc.functions.factory import make_function, packed, restored
from graphc.functions.native import Compiled
from graphc.functions.wrappers import Wrapper
from graphc.ir.node import Array, Node, describe
from graphc.ir.walk import substitute
from graphc.shared import Container, SharedVariable, deep_copy, keep, kept_in, own_variable, variable_of
from graphc.startup.hooks import HOOKS
from graphc.startup.record import replace
from graphc.trees import as_list

# Values by variable or name -------------------------------------------------------------------------------------------


class Values:
    """The values of a function's states and shared variables, by variable, name, or position of an input."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __getitem__(self, key: Any) -> Any:
        found = self.find(key)
        if isinstance(found, SharedVariable):
            return found.get_value()
        value = self.function.default_of(found)
        return None if value is REQUIRED else value

    def __setitem__(self, key: Any, value: Any) -> None:
        found = self.find(key)
        if isinstance(found, SharedVariable):
            found.set_value(value)
            return
        function = self.function
        item = function.call.inputs[found]
        if item.value is REQUIRED:
            what = f"argument {label(item)} of {function.label} is given at each call"
            raise ArgumentError(f"{what}; In(variable, value=...) gives it a default, which can be set")
        function.wait_with({**function.waiting, found: convert(value, item).copy()})

    def __contains__(self, key: Any) -> bool:
        try:
            self.find(key)
        except ArgumentError:
            return False
        return True

    def find(self, key: Any) -> SharedVariable | int:
        """Return the shared variable that holds the value of `key`, or the position of an input that is no state.
        Raises ArgumentError where there is none, or several."""
        inputs, states = self.function.call.inputs, states_of(self.function)
        if isinstance(key, int) and 0 <= key < len(inputs):
            return states.get(key, key)
        entries: list[tuple[Any, str | None, SharedVariable | int]] = [
            (item.variable, item.name or item.variable.name, states.get(place, place))
            for place, item in enumerate(inputs)
        ]
        own = [leaf for leaf in self.function.shared if leaf not in states.values()]
        entries += [(leaf, leaf.name, leaf) for leaf in own]
        found = [item for node, name, item in entries if _same(node, key) or (isinstance(key, str) and name == key)]
        if len(found) == 1:
            return found[0]
        what = "has several inputs or variables" if found else "has no input and no shared variable"
        known = ", ".join(name or describe(node) for node, name, _ in entries)
        shown = describe(key) if isinstance(key, Node) else repr(key)
        raise ArgumentError(f"{self.function.label} {what} called {shown}; it has {known or 'none'}")


def _same(variable: Any, other: Any) -> bool:
    """True for one variable, and for two shared variables over one value."""
    both = isinstance(variable, SharedVariable) and isinstance(other, SharedVariable)
    return variable is other or (both and variable.cell is other.cell)


class Containers(Values):
    """The containers of a function's values, by variable, name or position of an input."""

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ArgumentError(f"containers of {self.function.label} cannot be replaced; set f.value[...]")

    def __getitem__(self, key: Any) -> Container:
        found = self.find(key)
        return found.container if isinstance(found, SharedVariable) else Default(self.function, found)


class Default(Container):
    """The container of an input that is no state: it holds the value that the next call takes where it leaves the input
    out, or None where each call must give it."""

    def __init__(self, function: Function, place: int) -> None:
        value = function.default_of(place)
        super().__init__([None if value is REQUIRED else np.array(value)], Lock())
        self.function, self.place = function, place

    def shared(self) -> Container:
        """Return the container for sharing with another function: both take the value from it, and a call of this
        function resets it to the default. Raises ArgumentError where there is no value."""
        function = _flat(self.function)
        item = function.call.inputs[self.place]
        if item.value is REQUIRED:
            what = f"argument {label(item)} of {function.label} is given at each call"
            raise ArgumentError(f"{what}, and its container holds no value that another function could share")
        kept = function.waiting.kept if isinstance(function.waiting, Waiting) else {}
        if self.place not in kept:
            self.storage[0] = convert(function.default_of(self.place), item).copy()
            default = convert(item.value, item).copy()
            function.waiting = Waiting(function.waiting, {**kept, self.place: (self, default)})
            function.wait_with(dict(function.waiting))
        return function.waiting.kept[self.place][0]

    @property
    def value(self) -> Any:
        return self.function.value[self.place]

    @value.setter
    def value(self, new: Any) -> None:
        self.function.value[self.place] = new

    data = value


class Waiting(Mapping[int, Any]):
    """`Function.waiting` where other functions share some of the values. kept: {position: (container, default)} of
    these; `own` has the others."""

    def __init__(self, values: Mapping[int, Any], kept: Mapping[int, tuple[Default, Array]]) -> None:
        self.own = {place: value for place, value in values.items() if place not in kept}
        self.kept = dict(kept)

    def refilled(self, values: Mapping[int, Any]) -> Waiting:
        """Return the mapping with other values, and write them, or the defaults, to the shared containers."""
        for place, (container, default) in self.kept.items():
            keep(container, values.get(place, default))
        return Waiting(values, self.kept)

    def __getitem__(self, place: int) -> Any:
        return kept_in(self.kept[place][0]) if place in self.kept else self.own[place]

    def __iter__(self) -> Iterator[int]:
        return iter({**self.own, **self.kept})

    def __len__(self) -> int:
        return len(self.own) + len(self.kept)


def states_of(function: Function) -> dict[int, SharedVariable]:
    """Return {position of a state among the inputs: the shared variable that holds its value}."""
    flat = _flat(function)
    return flat.states if isinstance(flat, Stateful) else {}


def _flat(function: Function) -> Any:
    """The function of leaves behind a function of trees; any other function itself."""
    return function.whole if isinstance(function, Wrapper) and not isinstance(function, Stateful) else function


# States ---------------------------------------------------------------------------------------------------------------


def make_stateful(
    function: Callable[..., Function], records: Sequence[In], updates: Any = None, givens: Any = None, **rest: Any
) -> Function:
    """Return the function of inputs some of which are states: shared variables with an update inside."""
    outputs = rest.get("outputs")
    roots = outputs.values() if isinstance(outputs, Mapping) else as_list(outputs)
    records = [replace(r, value=r.value.shared()) if isinstance(r.value, Default) else r for r in records]
    known = {id(leaf.cell): leaf for leaf in variables_of([node for node in roots if isinstance(node, Node)])}
    states: dict[int, SharedVariable] = {}
    for place, item in enumerate(records):
        if item.is_state:
            if isinstance(item.variable, SharedVariable):
                what = f"{describe(item.variable)} is shared and cannot be an input"
                raise GraphTypeError(f"{what}; updates=[...] of the function says what it becomes")
            leaf = _variable_of(item)
            states[place] = known.setdefault(id(leaf.cell), leaf)  # a value has one variable in a function
    replaced = {records[place].variable: leaf for place, leaf in states.items()}
    news = [(leaf, records[place].update) for place, leaf in states.items() if records[place].update is not None]
    given = list(givens.items()) if isinstance(givens, Mapping) else list(givens or ())
    more = list(updates.items()) if isinstance(updates, Mapping) else list(updates or ())
    plain = [item for place, item in enumerate(records) if place not in states]
    inner = function(plain, updates=[*more, *news], givens=[*given, *replaced.items()], **rest)
    return Stateful(inner, tuple(records), states)


def variables_of(roots: Sequence[Node]) -> list[SharedVariable]:
    """The shared variables among the ancestors of `roots`."""
    return [leaf for leaf in shared_of(roots, ()) if isinstance(leaf, SharedVariable)]


def _variable_of(record: In) -> SharedVariable:
    """The shared variable for a state: over the container that is its default, or new with its value."""
    node, value = record.variable, record.value
    sizes = tuple(size if isinstance(size, int) else None for size in node.type.shape)
    if isinstance(value, SharedVariable):
        value = value.container
    if isinstance(value, Container):
        return variable_of(value, sizes, node.name)
    if value is REQUIRED:
        value = np.zeros([0 if size is None else size for size in sizes], node.dtype)
    array = as_array(
        value,
        node.dtype,
        f"the value of {describe(node)}",
        allow_downcast=record.allow_downcast,
        allowed_by="allow it with In(…, allow_downcast=True)",
    )
    if array.ndim != node.ndim:
        raise RankError(f"the value of {describe(node)} must have {node.ndim} axes; it has {array.ndim}")
    return own_variable(array.copy(), sizes, node.name, record.strict, record.allow_downcast)


class Stateful(Wrapper):
    """A function with states: it runs `whole`, in which they are shared variables."""

    def __init__(self, inner: Function, records: tuple[In, ...], states: dict[int, SharedVariable]) -> None:
        call = Convention(records, name_positions(records), inner.call.keys)
        super().__init__(inner.kernel, call, profile=False)
        self.whole, self.states, self.mode = inner, states, inner.mode
        self.profile, self.foreign = inner.profile, inner.foreign
        self.name = inner.name
        kept = [
            replace(item, value=self) if place in states and item.value is not REQUIRED else item
            for place, item in enumerate(records)
        ]
        self.ordered = replace(call, inputs=tuple(kept))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        out = {name: kwargs.pop(name) for name in ("out",) if name in kwargs and name not in self.call.positions}
        values: list[Any] = []
        for place, value in enumerate(self.all_in_order(args, kwargs)):
            if place not in self.states:
                values.append(value)
            elif value is not REQUIRED:
                self.states[place].set_value(value)
        return self.whole(*values, **out)

    def all_in_order(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return one value for each input; REQUIRED for a state that the call does not give."""
        records = self.call.inputs
        given = self.take_arguments(args, kwargs, self.ordered)
        for place in self.states:
            if given[place] is self:
                given[place] = REQUIRED
            elif is_implicit(records[place]):
                raise ArgumentError(f"{self.label}: {label(records[place])} is implicit and cannot be given")
        return given

    def default_of(self, place: int) -> Any:
        return self.waiting.get(place, self.ordered.inputs[place].value)

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        return self.whole.run_values(values, given)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Stateful, (self.whole, self.call.inputs, self.states)

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        whole = self.whole.__deepcopy__(memo)
        records = (
            replace(item, value=deep_copy(item.value, memo)) if hasattr(item.value, "storage") else item
            for item in self.call.inputs
        )
        return Stateful(whole, tuple(records), {place: memo[id(leaf)] for place, leaf in self.states.items()})


def is_implicit(record: In) -> bool:
    """True where a call must not give the state: by default one in a container, for other functions have it too."""
    return hasattr(record.value, "storage") if record.implicit is None else record.implicit


# Copies ---------------------------------------------------------------------------------------------------------------


def copy_function(
    function: Function,
    swap: Mapping[SharedVariable, SharedVariable],
    delete_updates: bool,
    name: str | None,
    profile: Any,
) -> Function:
    """The implementation of `Function.copy`."""
    held = {leaf: old for old in swap for leaf in function.shared if _same(leaf, old)}
    _check_swap(function, swap, set(held.values()))
    swap = {leaf: swap[old] for leaf, old in held.items()}
    shown = name or f"{function.name} copy"
    if isinstance(function, Stateful):
        fresh = dict(function.states)  # one in a container stays, others begin with the initial value
        for place in fresh:
            if not hasattr(function.call.inputs[place].value, "storage"):
                fresh[place] = _variable_of(function.call.inputs[place])
        own = {leaf: fresh[place] for place, leaf in function.states.items()}
        inner = copy_function(function.whole, {**own, **swap}, delete_updates, shown, profile)
        states = {place: swap.get(leaf, leaf) for place, leaf in fresh.items()}
        return Stateful(inner, function.call.inputs, states)
    kernel = function.kernel
    pairs = () if delete_updates else kernel.updates
    leaves: dict[Node, Node] = dict(swap.items())
    results = substitute([*kernel.outputs, *(new for _, new in pairs)], leaves)
    outputs = tuple(results[: len(kernel.outputs)])
    updates = tuple(
        (leaves.get(leaf, leaf), new) for (leaf, _), new in zip(pairs, results[len(outputs) :], strict=True)
    )
    shared = shared_of(outputs, updates) if delete_updates else tuple(leaves.get(leaf, leaf) for leaf in kernel.shared)
    copied = replace(kernel, outputs=outputs, updates=updates, shared=shared)
    profiled = function.profile is not None if profile is None else bool(profile)
    if isinstance(function, Compiled) and not delete_updates:
        kind: Any = function.kind
        made: Function = kind(copied, function.call, profiled, look_up(copied, function.key))
    else:
        made = make_function(function.kind, copied, function.call, profiled)
    made.name, made.trust_input = shown, function.trust_input
    return made


def deep_copied(function: Function, memo: dict[int, Any]) -> Function:
    """Return the same function over deep copies of its shared variables; `memo` as in `__deepcopy__`."""
    swap = {leaf: deep_copy(leaf, memo) for leaf in function.shared}
    return copy_function(function, swap, False, function.name, None)


def reduced(function: Function) -> tuple[Any, ...]:
    """Return the pickle of a function, as `__reduce_ex__` does: `restored` and its arguments."""
    mode = getattr(function, "checks", function.mode)
    profiled = function.profile is not None
    return restored, (mode, packed(function.kernel), function.call, profiled, function.name, function.trust_input)


def _check_swap(function: Function, swap: Mapping[SharedVariable, SharedVariable], held: Collection[Node]) -> None:
    for old, new in swap.items():
        if old not in held:
            raise GraphValueError(f"copy of {function.label}: it has no shared variable {describe(old)}")
        if not isinstance(new, SharedVariable) or (old.type.dtype, old.sizes) != (new.type.dtype, new.sizes):
            what = f"{describe(new)} of type {new.type}" if isinstance(new, Node) else repr(new)
            raise GraphTypeError(f"copy of {function.label}: {what} cannot stand for {describe(old)} of {old.type}")


__all__ = ["Containers", "Stateful", "Values", "copy_function", "make_stateful", "states_of"]

HOOKS.states = sys.modules[__name__]
