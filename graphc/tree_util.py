"""Functions of trees under the names of `jax.tree_util`: those of `graphc.tree`, as `tree_map` and so on."""

from collections.abc import Callable, Iterable
from typing import Any

from graphc.startup.hooks import telling
from graphc.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    SequenceKey,
    TreeDef as PyTreeDef,
    all as tree_all,
    broadcast as tree_broadcast,
    flatten as tree_flatten,
    flatten_with_path as tree_flatten_with_path,
    keystr,
    leaves as tree_leaves,
    leaves_with_path as tree_leaves_with_path,
    map as tree_map,
    map_with_path as tree_map_with_path,
    reduce as tree_reduce,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    structure as tree_structure,
    transpose as tree_transpose,
    unflatten as tree_unflatten,
)

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]  # fmt: skip


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Tell whether no part of an iterable is a tree of others.

    >>> all_leaves([1.0, 2.0]), all_leaves([1.0, (2.0,)])
    (True, False)
    """
    return all(treedef_is_leaf(tree_structure(each, is_leaf)) for each in iterable)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Tell whether a structure is that of a single leaf.

    >>> treedef_is_leaf(tree_structure(1.0)), treedef_is_leaf(tree_structure((1.0,)))
    (True, False)
    """
    return treedef == tree_structure(0.0)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the parts.

    >>> treedef_children(tree_structure((1.0, [2.0])))
    [TreeDef(*), TreeDef([*])]
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose parts have these structures.

    >>> treedef_tuple([tree_structure(1.0), tree_structure([2.0])])
    TreeDef((*, [*]))
    """
    return tree_structure(tuple(each.unflatten([0.0] * each.num_leaves) for each in treedefs))


__getattr__ = telling(__name__, "flatten_one", "tree_reduce_")
