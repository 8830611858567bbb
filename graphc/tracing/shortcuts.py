"""Calls of known form: Python functions, written for one variant, that take arguments apart and put results together.

In: the arguments that a variant was traced for, and the tree that the function returned. Out: a function of the
arguments of a call, which gives the result, or `REFUSED` where they are of another form. For `f({"w": w, "b": b}, x)`
that returns `{"loss": …, "slope": […]}`:

    def shortcut(args, kwargs):
        if len(args) != 2 or len(kwargs) != 0:
            return REFUSED
        try:
            v0, v1 = args
            if not (type(v0) is dict and len(v0) == 2):
                return REFUSED
            v2, v3 = v0["b"], v0["w"]
        except KeyError:
            return REFUSED
        r = entry(v2, v3, v1)
        return r if r is REFUSED else {"loss": r[0], "slope": [r[1]]}

The entry point compares the types of leaves, and gives `REFUSED` as well. Trees of dicts, lists, tuples and named
tuples are taken apart; static arguments are compared with those of the trace. For others there is no such function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from graphc.trees import REGISTERED, is_nested, leaves, ordered

REFUSED = object()
"""The result of a shortcut, and of its entry point, where the jitted function must choose a variant."""

Shortcut: TypeAlias = "Callable[[tuple[Any, ...], Mapping[str, Any]], Any]"

COMPARED = frozenset((int, str, bool, type(None)))
"""The types of static values that are compared by value: where two of one type are equal, they are alike. Others must
be the same object."""


class UnknownFormError(Exception):
    """A tree is of a class that shortcuts do not take apart or put together."""


def shortcut(
    args: Sequence[Any], kwargs: Mapping[str, Any], static: Sequence[int], names: Sequence[str], made: Any, entry: Any
) -> Shortcut | None:
    """Return the function for calls of the form of this one; None where trees are of classes that it does not know.

    static, names: positions and names of the static arguments. made: a tree like the results. entry: the entry point,
    a function of the leaves.
    """
    writer = _Writer()
    try:
        writer.take_call(args, kwargs, static, names)
        result = writer.result(made)
    except UnknownFormError:
        return None
    lines = (
        "def shortcut(args, kwargs):",
        f" if len(args) != {len(args)} or len(kwargs) != {len(kwargs)}:",
        "  return REFUSED",
        " try:",
        *(f"  {line}" for line in writer.lines),
        "  pass",
        " except KeyError:",
        "  return REFUSED",
        f" r = entry({', '.join(writer.leaves)})",
        f" return r if r is REFUSED else {result}",
    )
    space = {"REFUSED": REFUSED, "entry": entry, **writer.constants}
    exec("\n".join(lines), space)
    written: Shortcut = space["shortcut"]
    return written


class _Writer:
    """The text of a shortcut. lines: statements that take arguments apart; leaves: the names of the leaves, in order;
    constants: objects that the text names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.constants: dict[str, Any] = {}
        self.count = 0

    def new(self, count: int) -> list[str]:
        """Names for this many values."""
        self.count += count
        return [f"v{number}" for number in range(self.count - count, self.count)]

    def known(self, value: Any) -> str:
        """The name of an object; a string stands for itself."""
        return repr(value) if type(value) is str else self.constant(value)

    def constant(self, value: Any) -> str:
        """The name of an object."""
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def require(self, condition: str) -> None:
        self.lines += [f"if not ({condition}):", " return REFUSED"]

    def take_call(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], static: Sequence[int], names: Sequence[str]
    ) -> None:
        """Take the arguments of a call apart: those by position, then those by name in the order of their names."""
        given = self.new(len(args))
        if given:
            self.lines.append(f"{', '.join(given)}, = args")
        for place, value in enumerate(args):
            (self.compare if place in static else self.take)(given[place], value)
        for name in sorted(kwargs):
            (var,) = self.new(1)
            self.lines.append(f"{var} = kwargs[{name!r}]")
            (self.compare if name in names else self.take)(var, kwargs[name])

    def compare(self, var: str, value: Any) -> None:
        """Compare a static argument with that of the trace."""
        name = self.constant(value)
        alike = f" or (type({var}) is {self.known(type(value))} and {var} == {name})" if type(value) in COMPARED else ""
        self.require(f"{var} is {name}{alike}")

    def take(self, var: str, tree: Any) -> None:
        """Take a tree apart into its leaves."""
        if not is_nested(tree):
            self.leaves.append(var)
            return
        if tree is None:
            self.require(f"{var} is None")
            return
        parts = _parts(tree)
        self.require(f"type({var}) is {self.known(type(tree))} and len({var}) == {len(parts)}")
        names = self.new(len(parts))
        if parts:
            found = (f"{var}[{self.known(key)}]" for key in parts)
            self.lines.append(f"{', '.join(names)}, = {', '.join(found)},")
        for name, part in zip(names, parts.values(), strict=True):
            self.take(name, part)

    def result(self, made: Any) -> str:
        """The expression that puts results together."""
        if not is_nested(made) or (type(made) in (list, tuple) and not any(map(is_nested, made))):
            return "r"  # as the entry point gives it
        count = iter(range(len(leaves(made))))
        return self.put(made, lambda: f"r[{next(count)}]")

    def put(self, tree: Any, leaf: Callable[[], str]) -> str:
        """The expression of a tree. Leaves are asked for in their order, items of a dict are written in its own."""
        if not is_nested(tree):
            return leaf()
        if tree is None:
            return "None"
        parts = {key: self.put(part, leaf) for key, part in _parts(tree).items()}
        if type(tree) is dict:
            return f"{{{', '.join(f'{self.known(key)}: {parts[key]}' for key in tree)}}}"
        inside = "".join(f"{part}, " for part in parts.values())
        if type(tree) is list:
            return f"[{inside}]"
        return f"({inside})" if type(tree) is tuple else f"{self.known(type(tree))}({inside})"


def _parts(tree: Any) -> dict[Any, Any]:
    """The children of a tree by what it is asked for each, in the order of their leaves."""
    kind = type(tree)
    if kind is dict and all(type(key) is str for key in tree):
        return {key: tree[key] for key in ordered(tree)}
    if kind in (list, tuple) or (isinstance(tree, tuple) and hasattr(kind, "_fields") and kind not in REGISTERED):
        return dict(enumerate(tree))
    raise UnknownFormError
