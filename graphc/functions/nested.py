"""Functions of trees: arguments and results within dicts, tuples, lists and dataclasses.

In: trees of variables and of what is computed from them. Out: a `Function` that takes trees of values of the same
structure and returns results in that of its outputs. It calls a function of all the leaves, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.arrays.trees import leaves, like, outline, paths, reader, up_to
from graphc.errors import ArgumentError, GraphTypeError
from graphc.functions.callables import Function
from graphc.functions.convention import REQUIRED, In, Out
from graphc.functions.wrapped import Wrapped
from graphc.ir.node import Array, Node
from graphc.startup.record import replace


def nested_function(function: Callable[..., Function], inputs: Any, outputs: Any, given: Mapping[str, Any]) -> Function:
    """What `function(inputs, outputs, **given)` makes of trees."""
    named = isinstance(inputs, Mapping)
    items: list[Any] = list(inputs.values()) if named else [inputs] if isinstance(inputs, Node | In) else list(inputs)
    names = list(inputs) if named else [_name(item) for item in items]
    trees = [item.variable if _says_more(item) else item for item in items]
    outputs = _without_records(outputs)
    records = []
    for place, (item, tree, name) in enumerate(zip(items, trees, names, strict=True)):
        whole = name or f"argument {place}"
        known = _records(item) if _says_more(item) else leaves(tree)
        for leaf, path in zip(known, paths(tree, whole), strict=True):
            if not isinstance(leaf, Node | In):
                raise GraphTypeError(f"inputs must be variables; {path} is {leaf!r}")
            record = leaf if isinstance(leaf, In) else In(leaf)
            records.append(record if record.name or record.variable.name else replace(record, name=path))
    return Nested(function(records, leaves(outputs), **given), trees, names, outputs)


def _says_more(item: Any) -> bool:
    """Whether an input is the record of a tree."""
    return isinstance(item, In) and not isinstance(item.variable, Node)


def _records(item: In) -> list[In]:
    """The record of a tree as those of its leaves."""
    parts = leaves(item.variable)
    values = parts if item.value is REQUIRED else up_to(item.variable, item.value)
    updates = [None] * len(parts) if item.update is None else up_to(item.variable, item.update)
    return [
        replace(item, variable=leaf, name=None, value=item.value if item.value is REQUIRED else value, update=update)
        for leaf, value, update in zip(parts, values, updates, strict=True)
    ]


def _without_records(outputs: Any) -> Any:
    """Outputs without what is said of them besides."""
    if isinstance(outputs, Out):
        return outputs.variable
    if isinstance(outputs, Mapping):
        return {key: _without_records(value) for key, value in outputs.items()}
    return type(outputs)(map(_without_records, outputs)) if type(outputs) in (list, tuple) else outputs


def _name(item: Any) -> str | None:
    """What calls may call an input: a name that it has, as sparse matrices do."""
    name = (item.name or item.variable.name) if isinstance(item, In) else getattr(item, "name", None)
    return name if isinstance(name, str) else None


class Nested(Wrapped):
    """Calls `whole`, a function of leaves, with those of trees."""

    def __init__(self, whole: Function, trees: Sequence[Any], names: Sequence[str | None], outputs: Any) -> None:
        super().__init__(whole.kernel, whole.call, False)
        self.whole, self.trees, self.names, self.form = whole, trees, names, outputs
        self.readers = [*map(reader, trees)]
        self.mode, self.name, self.profile, self.foreign = whole.mode, whole.name, whole.profile, whole.foreign

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Nested, (self.whole, self.trees, self.names, self.form)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        named = {}
        if "out" in kwargs and "out" not in self.names:
            out = kwargs.pop("out")
            named["out"] = tuple(self.up_to(self.form, reader(self.form), out, "out")) if out is not None else None
        return like(self.form, self.whole(*self.flat(args, kwargs), **named))

    def wait_with(self, values: Mapping[int, Array]) -> None:
        self.whole.wait_with(values)

    def default_of(self, place: int) -> Any:
        return self.whole.default_of(place)

    def copy(self, *args: Any, **kwargs: Any) -> Nested:
        """`Function.copy`, of trees."""
        return Nested(self.whole.copy(*args, **kwargs), self.trees, self.names, self.form)

    def flat(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The value of each leaf of the inputs."""
        if len(args) > len(self.trees):
            raise ArgumentError(f"{self.label} takes {len(self.trees)} arguments; got {len(args)}")
        given = dict(enumerate(args))
        for name, value in kwargs.items():
            if self.names.count(name) != 1:
                known = ", ".join(filter(None, self.names)) or "given by position"
                raise ArgumentError(f"{self.label} has no one input called {name!r}; its inputs are {known}")
            if self.names.index(name) in given:
                raise ArgumentError(f"{self.label}: argument {name} is given twice")
            given[self.names.index(name)] = value
        values: list[Any] = []
        for place, tree in enumerate(self.trees):
            what = self.names[place] or f"argument {place}"
            if place in given:
                values += self.up_to(tree, self.readers[place], given[place], what)
                continue
            defaults = [self.default_of(len(values) + number) for number in range(len(leaves(tree)))]
            if any(value is REQUIRED for value in defaults):
                raise ArgumentError(f"{self.label}: {what} is missing")
            values += defaults
        return values

    def up_to(self, tree: Any, read: Callable[[Any], list[Any]], value: Any, what: str) -> list[Any]:
        """What a value has for the leaves of a tree, as its reader finds."""
        try:
            return read(value)
        except ValueError:
            wanted = f"must be {outline(tree)}, with values for the asterisks"
            raise ArgumentError(f"{self.label}: {what} {wanted}; got {outline(value)}") from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        return Nested(self.whole.__deepcopy__(memo), self.trees, self.names, self.form)

    def run_values(self, values: Sequence[Any], given: list[Array | None]) -> list[Array]:
        return self.whole.run_values(values, given)
