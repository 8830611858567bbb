"""Structures of tensors, as JAX's functions take and return them: tuples, lists and dicts, at any depth.

In: a structure, whose leaves are what is none of these; None has no leaves. Out: its leaves in order, the same
structure of other leaves, or how it looks, for messages. Dicts are alike that have the same keys, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def leaves_of(tree: Any) -> list[Any]:
    """The tensors of a structure, in its order."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in leaves_of(part)]
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves_of(part)]
    return [tree]


def like(tree: Any, leaves: Iterable[Any]) -> Any:
    """`leaves` in the structure of `tree`."""
    return _filled(tree, iter(leaves))


def _filled(tree: Any, leaves: Iterator[Any]) -> Any:
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: _filled(part, leaves) for key, part in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_filled(part, leaves) for part in tree))
    if isinstance(tree, tuple | list):
        return type(tree)([_filled(part, leaves) for part in tree])
    return next(leaves)


def ordered(tree: Any, other: Any) -> list[Any] | None:
    """The leaves of `other` in the order of those of `tree`; None where it has another structure."""
    return list(_ordered(tree, other)) if _alike(tree, other) else None


def _alike(tree: Any, other: Any) -> bool:
    if isinstance(tree, dict):
        same = isinstance(other, dict) and tree.keys() == other.keys()
        return same and all(_alike(part, other[key]) for key, part in tree.items())
    if isinstance(tree, tuple | list):
        same = type(tree) is type(other) and len(tree) == len(other)
        return same and all(_alike(*pair) for pair in zip(tree, other, strict=True))
    return (other is None) if tree is None else not (other is None or isinstance(other, dict | tuple | list))


def _ordered(tree: Any, other: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        for key, part in tree.items():
            yield from _ordered(part, other[key])
    elif isinstance(tree, tuple | list):
        for pair in zip(tree, other, strict=True):
            yield from _ordered(*pair)
    elif tree is not None:
        yield other


def outline(tree: Any) -> str:
    """A structure without its tensors."""
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {outline(part)}" for key, part in tree.items()) + "}"
    if isinstance(tree, tuple | list):
        inside = ", ".join(outline(part) for part in tree)
        return f"[{inside}]" if isinstance(tree, list) else f"({inside}{',' * (len(tree) == 1)})"
    return "None" if tree is None else "*"
