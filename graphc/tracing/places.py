"""Places outside of a traced function whose contents Python may change: names, lists and dicts, attributes of objects.

In: a value that the function can reach. Out: its places. What a place holds is read before and after a trace:

    calls, log = 0, []

    def f(x):
        global calls
        calls += 1              the place of the name `calls` holds 0, then 1
        log.append("f")         the place of the list holds [], then ["f"]
        return x

    differing(place, before, after)      {"calls"}; a list differs as a whole, a dict and an object by their keys
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count
from types import CellType, CodeType, FunctionType, GeneratorType, ModuleType
from typing import Any

import numpy as np

from graphc.ir.node import Node
from graphc.startup.record import record

MISSING = object()
"""The content of a place that holds nothing."""
CONTAINERS = list, dict, set, deque, bytearray
ITERATORS: tuple[Any, ...] = count, GeneratorType, type(iter([])), type(iter(())), type(iter(range(0)))
"""Types whose values move on, and cannot be set back."""
LARGEST = 1 << 20
"""The items of the largest container that is compared."""
DEEPEST = 4
"""The containers within each other that are compared."""


@record(eq=False)
class Place:
    """A place outside of a traced function. name: what the program calls it, code: the code that names it. owner, key:
    a dict of globals and a name, or a cell, a container, an object and None."""

    name: str
    code: CodeType | None
    owner: Any
    key: str | None = None

    def read(self) -> Any:
        """Return what the place holds now, as a copy."""
        owner = self.owner
        if self.key is not None:
            return owner.get(self.key, MISSING)
        if isinstance(owner, CellType):
            try:
                return owner.cell_contents
            except ValueError:
                return MISSING
        if isinstance(owner, CONTAINERS):
            return _copied(owner)
        return _state(owner) if isinstance(owner, ITERATORS) else attributes(owner)

    def write(self, value: Any) -> None:
        """Put back what the place held; iterators cannot go back."""
        owner = self.owner
        if self.key is not None:
            _put(owner, self.key, value)
        elif isinstance(owner, CellType):
            if value is MISSING:
                del owner.cell_contents
            else:
                owner.cell_contents = value
        elif isinstance(owner, dict | set):
            owner.clear()
            owner.update(value)
        elif isinstance(owner, list | bytearray):
            owner[:] = value
        elif isinstance(owner, deque):
            owner.clear()
            owner.extend(value)
        elif not isinstance(owner, ITERATORS):
            for key in {*attributes(owner), *value}:
                if key not in value:
                    delattr(owner, key)
                elif value[key] is not getattr(owner, key, MISSING):
                    setattr(owner, key, value[key])

    def named(self, key: Any) -> str:
        """Return the program's name for a key of the place that differs."""
        if key is None or self.key is not None:
            return self.name
        return f"{self.name}[{key!r}]" if isinstance(self.owner, dict) else f"{self.name}.{key}"


def _put(names: dict[str, Any], key: str, value: Any) -> None:
    if value is MISSING:
        names.pop(key, None)
    else:
        names[key] = value


def _copied(owner: Any) -> Any:
    if len(owner) > LARGEST:
        return len(owner)
    return dict(owner) if isinstance(owner, dict) else set(owner) if isinstance(owner, set) else list(owner)


def _state(owner: Any) -> Any:
    """A text or number that changes as an iterator moves on."""
    if isinstance(owner, GeneratorType):
        frame, inner = owner.gi_frame, owner.gi_yieldfrom
        if frame is None:
            return None
        names = {name: id(value) for name, value in frame.f_locals.items()}
        return frame.f_lasti, *names.items(), _state(inner) if isinstance(inner, ITERATORS) else None
    return repr(owner) if isinstance(owner, count) else owner.__length_hint__()


def attributes(owner: Any) -> dict[str, Any]:
    """The attributes of an object; those of a class but methods and what Python keeps."""
    if not isinstance(owner, type):
        found = {name: getattr(owner, name, MISSING) for name in _slots(type(owner))}
        found.update(getattr(owner, "__dict__", {}))
        return {name: value for name, value in found.items() if value is not MISSING}
    return {
        key: value
        for key, value in vars(owner).items()
        if key[:2] != "__" and not callable(value) and not hasattr(type(value), "__get__")
    }


def places_of(name: str, code: CodeType | None, value: Any) -> Iterator[Place]:
    """Yield the places of a value of a program."""
    if isinstance(value, FunctionType):
        for own, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            yield Place(own, value.__code__, cell)
        for each in _within(value.__code__):
            for own in each.co_names:
                yield Place(own, each, value.__globals__, own)
    elif isinstance(value, ModuleType):
        for own in () if code is None else code.co_names:
            yield Place(f"{name}.{own}", code, vars(value), own)
    elif isinstance(value, CONTAINERS + ITERATORS) or _has_attributes(value):
        yield Place(name, code, value)


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _within(part)


def _has_attributes(value: Any) -> bool:
    has_names = type(getattr(value, "__dict__", None)) is dict or any(_slots(type(value)))
    return isinstance(value, type) or has_names


def _slots(kind: type) -> Iterator[str]:
    """Yield the names of the slots of a class."""
    for each in kind.__mro__:
        own = vars(each).get("__slots__", ())
        yield from (own,) if isinstance(own, str) else own


def differing(before: Any, after: Any) -> set[Any]:
    """Return the keys by which a dict differs from its earlier copy; {None} where anything else differs."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return set() if is_alike(before, after) else {None}
    keys = {*before, *after}
    return {key for key in keys if not is_alike(before.get(key, MISSING), after.get(key, MISSING))}


def is_alike(one: Any, other: Any, depth: int = 0) -> bool:
    """True if a program cannot tell two values apart but by their identity, or both are tensors of traces."""
    if one is other or (isinstance(one, Node) and isinstance(other, Node)):
        return True
    if type(one) is not type(other) or depth > DEEPEST:
        return False
    if isinstance(one, np.ndarray):
        return (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(is_alike(*pair, depth + 1) for pair in zip(one, other, strict=True))
    if isinstance(one, dict):
        pairs = [(one[key], other[key]) for key in one.keys() & other.keys()]
        return len(one) == len(pairs) == len(other) and all(is_alike(*pair, depth + 1) for pair in pairs)
    if isinstance(one, FunctionType):
        return bool(one.__code__ is other.__code__)
    if type(getattr(one, "__dict__", None)) is dict:
        return is_alike(vars(one), vars(other), depth + 1)
    try:
        return bool(one == other) or repr(one) == repr(other)
    except Exception:
        return True  # it is the program's comparison that fails


def only_collects(before: Any, after: Any) -> bool:
    """True where nothing but tensors of traces has come: they are told wherever they are used."""
    if isinstance(before, list) and isinstance(after, list):
        new: Sequence[Any] = after[len(before) :]
        return is_alike(before, after[: len(before)]) and all(isinstance(each, Node) for each in new)
    if isinstance(before, dict) and isinstance(after, dict):
        return all(isinstance(after.get(key), Node) for key in differing(before, after))
    return isinstance(after, Node)
