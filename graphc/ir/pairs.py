"""Complex tensors in trees, where each has one leaf: its parts (ops/pairs.py).

    extra_axes({"x": x, "z": z})      [0, 1]: the leaf of a complex z has an axis behind those of z
    with_pairs({"c": 1j})             {"c": a complex tensor}

In: trees of values and tensors. Out: trees, or what is known of their leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.arrays.dtypes import COMPLEX, NUMPY_DTYPES
from graphc.ir.node import Complex, Node, literal
from graphc.startup.hooks import HOOKS
from graphc.trees import REGISTERED, Registered, Shield, children, flatten, has_kind, leaves, like, shielded, structure


def _children(x: Node) -> tuple[dict[str, Any], Any]:
    keyed: tuple[dict[str, Any], Any] = HOOKS.pairs.children(x)
    return keyed


def _restored(rest: Any, parts: list[Any]) -> Any:
    return HOOKS.pairs.restored(rest, parts)


OF_PAIRS = REGISTERED[Complex] = Registered(_children, _restored, kind=Complex)


def is_python_number(x: Node) -> bool:
    """True for a tensor that stands for a complex number of Python's, which has no dtype of its own."""
    return type(x) is Complex and "_is_number" in x.__dict__


def is_pair(part: Any) -> bool:
    """True for a complex tensor of a tree."""
    return REGISTERED.get(type(part)) is OF_PAIRS


def leaves_of(tree: Any) -> list[Any]:
    """The leaves of a tree as a program sees them: a complex tensor is one."""
    parts, form = flatten(tree)
    if not has_kind(Complex, form):
        return parts
    return [leaf.tree if isinstance(leaf, Shield) else leaf for leaf in leaves(shielded(tree, is_pair))]


def tree_of(tree: Any, values: Sequence[Any]) -> Any:
    """A tree like `tree` with other leaves in place of those of `leaves_of`."""
    return like(shielded(tree, is_pair) if has_kind(Complex, structure(tree)) else tree, values)


def conjugated(tree: Any) -> Any:
    """A tree in which each complex tensor is its conjugate."""
    return HOOKS.pairs.conjugated(tree) if has_kind(Complex, structure(tree)) else tree


def with_pairs(tree: Any) -> Any:
    """A tree with complex tensors in place of complex numbers and arrays."""
    values = leaves(tree)
    is_complex = [type(leaf) is complex or getattr(leaf, "dtype", None) in _DTYPES for leaf in values]
    if not any(is_complex):
        return tree
    return like(tree, [literal(leaf) if told else leaf for leaf, told in zip(values, is_complex, strict=True)])


_DTYPES = frozenset(NUMPY_DTYPES[name] for name in COMPLEX)


def extra_axes(tree: Any) -> list[int]:
    """For each leaf of a tree 1 if it has an axis behind those of a program: the parts of complex numbers."""
    if has_kind(Complex, structure(tree)):
        known = is_pair(tree)
        parts = [tree] if known else children(tree)
        return [1] if known else [0] if parts is None else [each for part in parts for each in extra_axes(part)]
    return [0] * len(leaves(tree))
