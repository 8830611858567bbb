"""Pytrees: values in dicts, lists, tuples, named tuples and dataclasses, nested to any depth.

In: a tree. Out: its leaves and its structure; another tree of the same structure:

    flatten({"w": 1.0, "b": [2.0, None]})    leaves [2.0, 1.0] (keys are sorted) and a hashable structure
    like({"w": 1.0, "b": 2.0}, [3.0, 4.0])   {"w": 4.0, "b": 3.0}

A leaf is any other value; None is a tree without leaves. The leaves of a dict come in the sorted order of its keys if
they can be sorted, so that dicts with equal keys have equal structures; `like` keeps the order of keys. A dataclass
field whose metadata has `static` belongs to the structure. A program may register classes of its own (`REGISTERED`;
`graphc.tree` has the functions for it). A class that wraps values of another kind has two methods: `__taken__` turns
such a value into a tree, `__filled__` finishes a tree that got new leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from graphc.startup.record import record

Structure: TypeAlias = "Any"  # nested tuples, which are hashable

_LEAVES = frozenset((np.ndarray, float, int))
"""The most frequent types of leaves, tested first."""
_TEXT = frozenset((str,))
"""The usual type of dict keys."""
LEAF: Structure = "*"
"""The structure of a leaf."""


@record(eq=False)
class Registered:
    """The way to take a value of a class apart.

    children(value): the parts, named by the suffix that a program writes to access each, and what else there is, which
    is compared and hashed. restored(rest, parts): the value again. fields: where the parts and the rest are attributes,
    and the class takes both by name, their names; None for other classes. kind: the class in structures, if it is
    another one.
    """

    children: Callable[[Any], tuple[dict[str, Any], Any]]
    restored: Callable[[Any, list[Any]], Any]
    fields: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    kind: type | None = None


REGISTERED: dict[type, Registered] = {}
"""Classes of trees that the program has registered."""
_USUAL = frozenset((dict, list, tuple, type(None)))
"""The usual types of trees, which cannot be registered."""


def exact_kind(value: Any) -> Hashable:
    """A key that distinguishes values Python considers equal: 1, 1.0 and True, 0.0 and -0.0, alone or in tuples."""
    kind: Any = type(value)
    if kind is int or kind is str:
        return kind
    if kind is float:
        return repr(value)
    if isinstance(value, tuple):
        return (kind, *map(exact_kind, value))
    return (kind, repr(value)) if isinstance(value, np.floating) else kind


def hashable(value: Any) -> Any:
    """A value of a structure, or what stands for one that has no hash: contents of dicts, lists, sets and arrays."""
    try:
        hash(value)
    except TypeError:
        return _contents(value)
    return value


def _contents(value: Any) -> Any:
    if isinstance(value, dict):
        return (type(value), frozenset((k, exact_kind(k), hashable(v), exact_kind(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return (type(value), *[(hashable(item), exact_kind(item)) for item in value])
    if isinstance(value, set):
        return (set, frozenset((item, exact_kind(item)) for item in value))
    if isinstance(value, np.ndarray):
        return (np.ndarray, str(value.dtype), value.shape, value.tobytes())
    return Compared(value)


class Compared:
    """A value without a hash, which is compared by `==`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compared) and type(other.value) is type(self.value) and bool(other.value == self.value)

    def __hash__(self) -> int:
        return hash(type(self.value))


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, in order."""
    return flatten(tree)[0]


def has_kind(kind: type, form: Structure) -> bool:
    """True if a structure has a tree of a class in it."""
    return isinstance(form, tuple) and any(part is kind or has_kind(kind, part) for part in form)


def structure(tree: Any) -> Structure:
    """A tree without its leaves, comparable and hashable."""
    return flatten(tree)[1]


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves and the structure of a tree."""
    found: list[Any] = []
    return found, _flatten(tree, found)


def _flatten(tree: Any, found: list[Any]) -> Structure:
    kind = type(tree)
    if kind in _LEAVES:
        found.append(tree)
        return LEAF
    if kind not in _USUAL and kind in REGISTERED:
        known = REGISTERED[kind]
        named, rest = known.children(tree)
        told = hashable(rest)
        return (known.kind or kind, tuple(named), told, exact_kind(told), *_several(named.values(), found))
    if kind is dict or isinstance(tree, dict):
        keys = ordered(tree)
        told = keys if _TEXT.issuperset(map(type, keys)) else (keys, exact_kind(keys))
        return (kind, told, *_several(map(tree.__getitem__, keys), found))
    if kind is tuple or kind is list or isinstance(tree, (tuple, list)):
        return (kind, *_several(tree, found))
    if tree is None:
        return None
    if _is_dataclass(tree):
        varying, static = fields_of(tree)
        kept = hashable(tuple(getattr(tree, name) for name in static))
        return (kind, kept, exact_kind(kept), *_several([getattr(tree, name) for name in varying], found))
    found.append(tree)
    return LEAF


def _several(trees: Iterable[Any], found: list[Any]) -> list[Structure]:
    parts: list[Structure] = []
    for tree in trees:
        if type(tree) in _LEAVES:
            found.append(tree)
            parts.append(LEAF)
        else:
            parts.append(_flatten(tree, found))
    return parts


def as_list(value: Any) -> list[Any]:
    """The items of a list or tuple; of anything else, itself alone."""
    return list(value) if isinstance(value, list | tuple) else [value]


def ordered(tree: dict[Any, Any]) -> tuple[Any, ...]:
    """The keys of a dict in the order of its leaves."""
    keys = tuple(tree)
    return _sorted_text(keys) if _TEXT.issuperset(map(type, keys)) else _sorted(keys)


def _sorted(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(keys))
    except TypeError:
        return tuple(sorted(keys, key=lambda key: (type(key).__name__, repr(key))))


_sorted_text = lru_cache(maxsize=1024)(_sorted)
"""Cached for strings only: for other keys the cache would confuse 1 and True."""


def _is_dataclass(tree: Any) -> bool:
    return hasattr(type(tree), "__dataclass_fields__")


def fields_of(tree: Any) -> tuple[list[str], list[str]]:
    """The names of a dataclass's fields that hold trees, and of its static fields."""
    varying: list[str] = []
    static: list[str] = []
    for name, field in type(tree).__dataclass_fields__.items():
        if field._field_type.name == "_FIELD":  # neither a ClassVar nor an InitVar
            (static if field.metadata.get("static") else varying).append(name)
    return varying, static


def named_children(tree: Any) -> dict[str, Any] | None:
    """The children of a tree, by the suffix that a program writes to access each; None for a leaf."""
    if tree is None:
        return {}
    if type(tree) in REGISTERED:
        return REGISTERED[type(tree)].children(tree)[0]
    if isinstance(tree, dict):
        return {f"[{key!r}]": tree[key] for key in ordered(tree)}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return {f".{name}": part for name, part in zip(tree._fields, tree, strict=True)}
    if isinstance(tree, tuple | list):
        return {f"[{place}]": part for place, part in enumerate(tree)}
    if _is_dataclass(tree):
        return {f".{name}": getattr(tree, name) for name in fields_of(tree)[0]}
    return None


def like(tree: Any, leaves: Sequence[Any]) -> Any:
    """A tree with the structure of `tree` and these leaves."""
    return _filled(tree, iter(leaves))


def _filled(tree: Any, leaves: Iterator[Any], of_part: Callable[..., Any] | None = None) -> Any:
    """A tree like `tree`, of leaves that are taken in turn. of_part: fills a child; None fills its leaves in turn."""
    fill = of_part or _filled
    if tree is None:
        return None
    if type(tree) in REGISTERED:
        named, rest = REGISTERED[type(tree)].children(tree)
        return REGISTERED[type(tree)].restored(rest, [fill(part, leaves) for part in named.values()])
    if isinstance(tree, dict):
        filled = tree.copy()
        filled.update([(key, fill(tree[key], leaves)) for key in ordered(tree)])
        return filled
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[fill(part, leaves) for part in tree])
    if isinstance(tree, tuple | list):
        return type(tree)([fill(part, leaves) for part in tree])
    if _is_dataclass(tree):
        varying, static = fields_of(tree)
        parts = {name: fill(getattr(tree, name), leaves) for name in varying}
        parts |= {name: getattr(tree, name) for name in static}
        made = object.__new__(type(tree))  # no __post_init__, which may look into values that are not there yet
        for name, part in parts.items():
            object.__setattr__(made, name, part)
        return made.__filled__() if hasattr(made, "__filled__") else made
    return next(leaves)


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """A tree like `tree`: `function` applied to each leaf and to the corresponding leaves of the other trees."""
    return like(tree, [function(*each) for each in zip(leaves(tree), *map(leaves, others), strict=True)])


def up_to(tree: Any, other: Any) -> list[Any]:
    """The subtrees of `other` at the leaves of `tree`. Raises ValueError if the structures differ above the leaves."""
    return reader(tree)(other)


def reader(tree: Any) -> Callable[[Any], list[Any]]:
    """`up_to` for one tree and many others: the tree is analysed once."""
    read = _reader(tree)

    def take(other: Any) -> list[Any]:
        if read is None:
            return [other]
        found: list[Any] = []
        read(other, found)
        return found

    return take


def _reader(tree: Any) -> Callable[[Any, list[Any]], None] | None:
    """A function that appends the subtrees of another tree to a list; None for a leaf."""
    own = named_children(tree)
    if own is None:
        return None
    kind, readers = type(tree), [*map(_reader, own.values())]
    taken = tree.__taken__ if hasattr(tree, "__taken__") else None
    parts_of = _registered_parts(tree) if kind in REGISTERED else _usual_parts(tree, own)

    def read(other: Any, found: list[Any]) -> None:
        parts = parts_of(other if taken is None else taken(other))
        if parts is None or len(parts) != len(readers):
            raise ValueError(f"{outline(tree)} and {outline(other)} differ")
        for each, part in zip(readers, parts, strict=True):
            if each is None:
                found.append(part)
            else:
                each(part, found)

    return read


def _usual_parts(tree: Any, own: dict[str, Any]) -> Callable[[Any], Sequence[Any] | None]:
    """A function that gives the children of another tree; None where that is another one."""
    kind = type(tree)
    fields = None if isinstance(tree, (dict, tuple, list)) or tree is None else fields_of(tree)[0]

    def parts_of(other: Any) -> Sequence[Any] | None:
        if type(other) is not kind:
            return None
        if fields is not None:
            return [getattr(other, name) for name in fields]
        if not isinstance(other, dict):
            return other or ()
        theirs = named_children(other) or {}
        return [*theirs.values()] if own.keys() == theirs.keys() else None

    return parts_of


def _registered_parts(tree: Any) -> Callable[[Any], Sequence[Any] | None]:
    """`_usual_parts` of a tree of a registered class."""
    children_of = REGISTERED[type(tree)].children
    own, rest = children_of(tree)

    def parts_of(other: Any) -> Sequence[Any] | None:
        if REGISTERED.get(type(other)) is not REGISTERED[type(tree)]:
            return None
        theirs, others = children_of(other)
        return [*theirs.values()] if theirs.keys() == own.keys() and others == rest else None

    return parts_of


def spread(prefix: Any, tree: Any) -> list[Any]:
    """The values of `prefix`, a tree that may end above the leaves of `tree`, repeated for each leaf of `tree` below
    them; None counts as a value. Raises ValueError if the structures differ."""
    if prefix is None or named_children(prefix) is None:
        return [prefix] * len(leaves(tree))
    own, theirs = named_children(prefix), named_children(tree)
    if own is None or theirs is None or own.keys() != theirs.keys():
        raise ValueError(f"{outline(prefix)} and {outline(tree)} differ")
    return [said for key, part in theirs.items() for said in spread(own[key], part)]


def children(tree: Any) -> list[Any] | None:
    """The children of a tree, in the order of their leaves; None for a leaf."""
    parts = named_children(tree)
    return None if parts is None else [*parts.values()]


def shielded(tree: Any, is_leaf: Callable[[Any], bool] | None) -> Any:
    """The tree in which what `is_leaf` says so is a `Shield`, a leaf whatever it holds."""
    if is_leaf is None:
        return tree
    if is_leaf(tree):
        return Shield(tree)
    parts = children(tree)
    return tree if not parts else with_children(tree, [shielded(part, is_leaf) for part in parts])


def with_children(tree: Any, parts: Sequence[Any]) -> Any:
    """A tree like `tree`, with other children."""
    return _filled(tree, iter(parts), lambda part, rest: next(rest))


@record(eq=False)
class Shield:
    """A tree that counts as a leaf."""

    tree: Any


def is_nested(tree: Any) -> bool:
    """True if a tree is not a leaf."""
    return named_children(tree) is not None


def paths(tree: Any, name: str) -> list[str]:
    """The expression by which a program accesses each leaf of the tree called `name`."""
    parts = named_children(tree)
    if parts is None:
        return [name]
    return [path for end, part in parts.items() for path in paths(part, name + end)]


def outline(tree: Any) -> str:
    """A tree with `*` for each leaf, for messages."""
    parts = named_children(tree)
    if parts is None or tree is None:
        return "*" if parts is None else "None"
    if "" in parts:
        return outline(parts[""])
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {outline(part)}" for key, part in tree.items()) + "}"
    if type(tree) is list or type(tree) is tuple:
        inside = ", ".join(map(outline, tree))
        return f"[{inside}]" if type(tree) is list else f"({inside}{',' * (len(tree) == 1)})"
    return f"{type(tree).__name__}({', '.join(f'{end[1:]}={outline(part)}' for end, part in parts.items())})"
