"""Functions of tensors, called with arrays and numbers outside of traced functions: `lax.scan`, `random.normal`.

In: a function that builds a graph. Out: `PlainCalls`, which calls it as `jit` would:

    scan = PlainCalls(functional.scan)
    scan(step, 0.0, np.ones(3))                         compiles
    scan(lambda c, x: (c + x, c), 0.0, np.ones(9))      compiles nothing, where that is what `step` says
    scan(lambda c, x: (c + w * x, c), 0.0, np.ones(9))  a graph, where w is a variable

Arrays and numbers are arguments of what is compiled; all else is known while the graph is built. A function among the
arguments is traced once where all that it can reach never changes (identity.py). Another is traced at every call (a
millisecond or two for a small loop), so that the result is never that of former values. Its graph is looked up by its
text, with the arrays of floats in it as further arguments, so that nothing is compiled again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from graphc.arrays.array import OWN
from graphc.errors import GraphcError
from graphc.functions.callables import Function
from graphc.ir.node import Node
from graphc.ir.walk import nodes_of
from graphc.shared import SharedVariable
from graphc.startup.hooks import HOOKS
from graphc.tracing.arguments import NUMBERS, Settings, Static
from graphc.tracing.by_text import ByText, make_room, settings_now
from graphc.tracing.identity import identity
from graphc.tracing.traced import Jitted
from graphc.trees import leaves

STATIC = {"axis", "axes", "checkpoint", "dtype"}
"""Parameters whose values decide the graph, whatever their type; so do those whose default is a bool or text."""


class PlainCalls:
    """Calls of one function of tensors with arrays and numbers.

    kept: the compiled functions, by what decides their graphs besides the types of arguments. functions: the first
    function of the program for each key. graphs: compiled graphs by their texts. exact: what of `kept` takes whole
    numbers as they are, for the function needs them itself: the number of items to take, an axis by another name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        parameters = signature(function).parameters.values()
        self.names = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
        self.static = STATIC | {each.name for each in parameters if type(each.default) in (bool, str)}
        self.kept: dict[Hashable, Jitted[..., Any]] = {}
        self.functions: dict[Hashable, Any] = {}
        self.graphs: dict[Hashable, Function] = {}
        self.exact: set[Hashable] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = [*self.names[: len(args)], *self.names[-1:] * (len(args) - len(self.names)), *kwargs]
        values = [*args, *kwargs.values()]
        if "shape" in names and isinstance(values[place := names.index("shape")], int | np.integer | np.ndarray):
            values[place] = tuple(np.atleast_1d(values[place]).tolist())  # whose numbers are arguments, as of tuples
        static = tuple(map(self.is_static, names, values))
        both = tuple([known or is_whole(value) for known, value in zip(static, values, strict=True)])
        call = len(args), tuple(kwargs), settings_now()
        if static != both and (call, static) not in self.exact:
            try:
                return self.compute(call, static, values)
            except GraphcError:
                self.exact.add((call, static))
        try:
            return self.compute(call, both, values)
        except GraphcError:
            self.exact.discard((call, static))
            self.function(*args, **kwargs)  # which tells what is wrong of the values themselves
            raise

    def is_static(self, name: str, value: Any) -> bool:
        """True for an argument that is known while the graph is built."""
        if name in self.static:
            return True
        if type(value) in ARRAYS or isinstance(value, np.generic):
            return False
        found = leaves(value)
        if name == "shape" and any(type(leaf) is int and leaf < 0 for leaf in found):
            return True  # -1 stands for a size of the parameters
        return bool(found) and not any(map(is_number, found))

    def compute(self, call: tuple[Any, ...], static: tuple[bool, ...], values: Sequence[Any]) -> Any:
        """Call the function, compiled for the values of the static arguments and the types of the others."""
        function, given = self.chosen(call, static, values)
        return function(*given[: call[0]], **dict(zip(call[1], given[call[0] :], strict=True)))

    def chosen(
        self, call: tuple[Any, ...], static: tuple[bool, ...], values: Sequence[Any]
    ) -> tuple[Jitted[..., Any], Sequence[Any]]:
        """Return what is compiled for the values of the static arguments, and the arguments that it is to be given.
        call: the number of arguments by position, the names of the others, the options."""
        count, names, _ = call
        alike = [self.alike(value) if fixed else value for value, fixed in zip(values, static, strict=True)]
        if any(value is CHANGING for value in alike):
            alike = [as_static(value) if fixed else value for value, fixed in zip(values, static, strict=True)]
            function: Jitted[..., Any] = Retraced(self, static_of(count, names, static))
        elif (call, static) in self.kept:
            function = self.kept[call, static]
        else:
            make_room(self.kept)
            known = static_of(count, names, static)
            function = Jitted(self.function, self.function, known, Settings(), self.function.__name__)
            self.kept[call, static] = function
        return function, alike

    def alike(self, value: Any) -> Any:
        """A static argument, with functions that came first in place of those that compute the same; CHANGING where one
        of them may compute something else at another time."""
        if isinstance(value, list | tuple):
            parts = tuple(map(self.alike, value))
            return CHANGING if any(part is CHANGING for part in parts) else parts
        if not callable(value) or isinstance(value, type):
            return value
        key = identity(value)
        if key is None:
            return CHANGING
        make_room(self.functions)
        return self.functions.setdefault(key, value)


CHANGING = object()
"""In place of a function that may compute something else at another time."""


ARRAYS = OWN | NUMBERS
"""The types of most arguments that are none of these functions or settings."""


def static_of(count: int, names: Sequence[str], static: Sequence[bool]) -> Static:
    """The static arguments: `static` tells of `count` arguments by position, then of those by name."""
    numbers = tuple(place for place in range(count) if static[place])
    return Static(numbers, tuple(name for name, fixed in zip(names, static[count:], strict=True) if fixed))


def is_number(value: Any) -> bool:
    """True for a leaf that may be an argument of compiled code."""
    return type(value) in NUMBERS or (hasattr(value, "__array__") and not isinstance(value, type))


def is_whole(value: Any) -> bool:
    """True for an int, and for ints alone in a tuple or list."""
    found = leaves(value)
    return bool(found) and all(type(leaf) is int for leaf in found)


def as_static(value: Any) -> Any:
    """A static argument that can be hashed."""
    return tuple(map(as_static, value)) if isinstance(value, list | tuple) else value


class Retraced(ByText):
    """One call of a function of tensors: its graph is built anew, and its code looked up by the graph's text."""

    def __init__(self, calls: PlainCalls, static: Static) -> None:
        super().__init__(calls.function, calls.function, static, Settings(), calls.function.__name__)
        self.graphs = calls.graphs

    def others(self, results: Sequence[Node], variables: Sequence[Node]) -> list[Node]:
        shared: list[Node] = [node for node in nodes_of(results) if isinstance(node, SharedVariable)]
        return [*super().others(results, variables), *shared]


HOOKS.plain_calls = PlainCalls
