"""Trees of arrays under JAX's names: `graphc.tree`, also `graphc.tree_util` and `graphc.flatten_util`.

In: values in dicts, lists, tuples, named tuples, dataclasses and classes that the program registers, nested to any
depth. Out: their leaves, and a `TreeDef`, their structure, from which other leaves make such a tree again.

    leaves, kind = graphc.tree.flatten({"w": 1.0, "b": [2.0, None]})     [2.0, 1.0] and the structure
    graphc.tree.unflatten(kind, [20.0, 10.0])                            {"w": 10.0, "b": [20.0, None]}

The leaves of a dict come in the order of its sorted keys. None has no leaves. `trees.py` has the rules, which
hold for all that takes trees: `jit`, `grad`, `vmap`, `scan`, `function`.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from graphc import trees
from graphc.arrays.dtypes import natural_dtype, promote
from graphc.errors import ArgumentError, GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Complex, Node, Size, describe
from graphc.ir.pairs import is_pair
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.startup.hooks import telling
from graphc.tensor.joining import concatenate
from graphc.tensor.shaping import reshape
from graphc.trees import REGISTERED, Registered, Shield

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "Partial", "SequenceKey", "TreeDef", "all", "broadcast", "flatten",
    "flatten_with_path", "keystr", "leaves", "leaves_with_path",
    "map", "map_with_path", "ravel_pytree", "reduce", "register_dataclass", "register_pytree_node",
    "register_pytree_node_class", "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static",
    "structure", "transpose", "unflatten",
]  # fmt: skip

IsLeaf = Callable[[Any], bool] | None
Class = TypeVar("Class", bound=type[Any])

_MISSING = object()
_NONE: Size = 0


class TreeDef:
    """The structure of a tree, without its leaves. Two structures are equal if their classes, keys and static values
    are equal. A structure can be hashed. It can be pickled if its tree can.

    num_leaves: the number of leaves. unflatten(leaves): a tree with these leaves. It raises GraphValueError for another
    number of leaves.
    """

    def __init__(self, skeleton: Any) -> None:
        self.skeleton = skeleton
        self.form = trees.structure(skeleton)

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return len(trees.leaves(self.skeleton))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return a tree with these leaves. Raises GraphValueError where their number is another."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise GraphValueError(f"unflatten: {self} has {self.num_leaves} leaves, and {len(given)} are given")
        return trees.like(self.skeleton, given)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the parts of a tree that stand where this structure has its leaves. Raises GraphValueError where the
        tree has another structure."""
        return _others(self.skeleton, [tree], "flatten_up_to")[0]

    def children(self) -> list[TreeDef]:
        """Return the structures of the parts."""
        return [TreeDef(part) for part in trees.children(self.skeleton) or ()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeDef) and bool(self.form == other.form)

    def __hash__(self) -> int:
        return hash(self.form)

    def __repr__(self) -> str:
        return f"TreeDef({trees.outline(self.skeleton)})"


class _Leaf:
    """A leaf of structures, of which there is one."""

    def __reduce__(self) -> str:
        return "_LEAF"


_LEAF = _Leaf()


def _parts(tree: Any, is_leaf: IsLeaf) -> tuple[list[Any], Any]:
    """The leaves of a tree, and the tree in which what `is_leaf` says so is a leaf."""
    if trees.has_kind(Complex, trees.structure(tree)):
        whole = trees.shielded(tree, lambda part: is_pair(part) or (is_leaf is not None and is_leaf(part)))
    else:
        whole = trees.shielded(tree, is_leaf)
    return [leaf.tree if isinstance(leaf, Shield) else leaf for leaf in trees.leaves(whole)], whole


# --- leaves and structure ---------------------------------------------------------------------------------------------


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a tree, and its structure. Raises no error: a value that is no tree is a leaf.

    is_leaf: a function of a part of the tree. It returns True for a part that counts as a leaf, even if it has parts of
    its own.

        >>> graphc.tree.flatten({"b": [1, 2], "a": 3})
        ([3, 1, 2], TreeDef({'b': [*, *], 'a': *}))
    """
    found, whole = _parts(tree, is_leaf)
    return found, TreeDef(trees.like(whole, [_LEAF] * len(found)))


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """Return the tree of a structure that has these leaves. Raises GraphValueError where their number is another.

    >>> graphc.tree.unflatten(graphc.tree.structure([0, (0, 0)]), "abc")
    ['a', ('b', 'c')]
    """
    if not isinstance(treedef, TreeDef):
        raise GraphTypeError(f"unflatten: the structure comes first, as `structure(tree)` gives it, not {treedef!r}")
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree. Raises no error: a value that is no tree is its own leaf. is_leaf: as in `flatten`.

    >>> graphc.tree.leaves([1, {"x": (2, None)}])
    [1, 2]
    """
    return _parts(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> TreeDef:
    """Return the structure of a tree. Raises no error: a value that is no tree is a leaf. is_leaf: as in `flatten`.

    >>> graphc.tree.structure([1, 2]) == graphc.tree.structure([3.0, 4.0])
    True
    """
    return flatten(tree, is_leaf)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Return a tree of `f(leaf, ...)` for each leaf of `tree`, with what the other trees have at the same place.

    The other trees have the structure of `tree`, and may go on below its leaves. Raises GraphValueError where one has
    another structure.

        >>> graphc.tree.map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 10, "b": 20})
        {'a': 11, 'b': 22}
    """
    found, whole = _parts(tree, is_leaf)
    return trees.like(whole, [f(*each) for each in zip(found, *_others(whole, rest, "map"), strict=True)])


def _others(whole: Any, rest: Sequence[Any], what: str) -> list[list[Any]]:
    try:
        return [trees.up_to(whole, other) for other in rest]
    except ValueError as error:
        raise GraphValueError(f"{what}: the trees have different structures: {error}") from None


def reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: IsLeaf = None) -> Any:
    """Combine the leaves by `function`, two at a time from the left, beginning with `initializer` if there is one.
    Raises TypeError for a tree without leaves if there is none.

    >>> graphc.tree.reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]})
    6
    """
    first = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *first)


def all(tree: Any, *, is_leaf: IsLeaf = None) -> Any:
    """Return True if every leaf is true, in Python's sense; if some are tensors, a boolean tensor. Raises RankError for
    a tensor with axes, which has no truth value.

    >>> graphc.tree.all({"a": True, "b": [True, False]})
    False
    """
    found = leaves(tree, is_leaf)
    tensors = [each for each in found if isinstance(each, Node)]
    if not tensors:
        return builtins.all(found)
    for each in tensors:
        if each.ndim:
            raise RankError(
                f"tree.all: the truth value of {describe(each)} of type {each.type} is ambiguous; x.all() is a scalar"
            )
    rest = builtins.all(each for each in found if not isinstance(each, Node))
    return functools.reduce(lambda total, each: elementwise("logical_and", total, each), tensors, as_node(rest))


def transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: Any) -> Any:
    """Exchange the two levels of a tree of trees, such as a list of dicts, which becomes a dict of lists.

    outer_treedef, inner_treedef: the structures of the two levels. For None, the inner one is that of the first inner
    tree. Raises GraphValueError for a tree that has another structure.

        >>> rows = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
        >>> graphc.tree.transpose(graphc.tree.structure([0, 0]), graphc.tree.structure({"x": 0, "y": 0}), rows)
        {'x': [1, 3], 'y': [2, 4]}
    """
    (parts,) = _others(outer_treedef.skeleton, [pytree_to_transpose], "transpose")
    inner = structure(parts[0]) if inner_treedef is None and parts else inner_treedef
    if inner is None:
        raise GraphValueError("transpose: the tree has no parts that would tell the inner structure")
    columns = zip(*_others(inner.skeleton, parts, "transpose"), strict=True)
    return inner.unflatten([outer_treedef.unflatten(column) for column in columns])


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Repeat the leaves of `prefix_tree`, so that there is one for each leaf of `full_tree`: a tree of its structure.

        >>> graphc.tree.broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
        {'a': [1, 1], 'b': 2}

    Raises GraphValueError where `prefix_tree` is no beginning of `full_tree`.
    """
    found, whole = _parts(prefix_tree, is_leaf)
    (parts,) = _others(whole, [full_tree], "broadcast")
    filled = [leaf for leaf, part in zip(found, parts, strict=True) for _ in trees.leaves(part)]
    return trees.like(full_tree, filled)


# --- with paths -------------------------------------------------------------------------------------------------------


class _Ending(str):
    """The text of a key that a registered class gives, with the key."""

    __slots__ = ("key",)
    key: Any

    @classmethod
    def of(cls, key: Any) -> _Ending:
        made = cls(key)
        made.key = key
        return made


class Path(tuple[Any, ...]):
    """The keys of the parts in which a leaf lies, the outermost first. As text it is what a program would write after
    the name of the tree."""

    __slots__ = ()

    def __str__(self) -> str:
        return "".join(map(str, self))


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> list[Path]:
    """The path of each leaf."""
    parts = trees.named_children(tree)
    if parts is None:
        return [Path(path)]
    if isinstance(tree, dict):
        keys: list[Any] = [DictKey(key) for key in trees.ordered(tree)]
    else:
        keys = [_key(end) for end in parts]
    return [
        each
        for key, part in zip(keys, parts.values(), strict=True)
        for each in _paths(part, (*path, key) if key != "" else path)
    ]


def _key(end: str) -> Any:
    """The key of a part, from what a program writes to access it."""
    if isinstance(end, _Ending):
        return end.key
    if end[:1] == "." and end[1:].isidentifier():
        return GetAttrKey(end[1:])
    return SequenceKey(int(end[1:-1])) if end[:1] == "[" and end[1:-1].isdecimal() else end


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[Path, Any]]:
    """Return the leaves of a tree, each with its path, a tuple of keys, as in JAX; str(path) is what a program would
    write after the name of the tree. Raises no error: a value that is no tree is a leaf.

    >>> graphc.tree.leaves_with_path({"w": [1, 2]})
    [((DictKey('w'), SequenceKey(0)), 1), ((DictKey('w'), SequenceKey(1)), 2)]
    """
    found, whole = _parts(tree, is_leaf)
    return [*zip(_paths(whole), found, strict=True)]


def flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[Path, Any]], TreeDef]:
    """Return the pairs of `leaves_with_path`, and the structure of the tree. Raises no error."""
    return leaves_with_path(tree, is_leaf), structure(tree, is_leaf)


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Return a path as text. simple: without brackets and dots. separator: what stands between two keys. Raises no
    error.

    >>> ((path, leaf),) = graphc.tree.leaves_with_path({"w": [1]})
    >>> graphc.tree_util.keystr(path), graphc.tree_util.keystr(path, simple=True, separator="/")
    ("['w'][0]", 'w/0')
    """
    return separator.join(str(each.key if simple and isinstance(each, Key) else each) for each in keys)


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Return a tree of `f(path, leaf, ...)` for each leaf, as `map` does. Raises GraphValueError for trees of different
    structures.

    >>> graphc.tree.map_with_path(lambda path, x: f"{path}={x}", {"w": 1})
    {'w': "['w']=1"}
    """
    found, whole = _parts(tree, is_leaf)
    columns = zip(_paths(whole), found, *_others(whole, rest, "map_with_path"), strict=True)
    return trees.like(whole, [f(*each) for each in columns])


# --- classes of the program's -----------------------------------------------------------------------------------------


def register_pytree_node(
    nodetype: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Any]], unflatten_func: Callable[[Any, Any], Any]
) -> None:
    """Make a class one of trees. flatten_func(value): its parts, and what else there is, which can be compared and
    hashed; unflatten_func(rest, parts): the value again, which must not look into the parts. The number of parts must
    follow from the rest. Raises GraphTypeError for what is no class, GraphValueError for one that is one of trees.

        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> graphc.tree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda rest, parts: Pair(*parts))
        >>> graphc.tree.leaves(Pair(1, [2, 3]))
        [1, 2, 3]
    """

    def children(value: Any) -> tuple[dict[str, Any], Any]:
        parts, rest = flatten_func(value)
        return {f"[{place}]": part for place, part in enumerate(parts)}, rest

    _register(nodetype, Registered(children, lambda rest, parts: unflatten_func(rest, tuple(parts))))


def _register(nodetype: type, how: Registered) -> None:
    if not isinstance(nodetype, type):
        raise GraphTypeError(f"a class is to be registered as one of trees, not {nodetype!r}")
    if nodetype in (*REGISTERED, dict, list, tuple, type(None)):
        raise GraphValueError(f"{nodetype.__name__} is a class of trees already")
    REGISTERED[nodetype] = how


def register_pytree_node_class(cls: Class) -> Class:
    """Make a class one of trees by its methods `tree_flatten(self)` and `tree_unflatten(cls, rest, parts)`: a
    decorator. See `register_pytree_node`. Raises AttributeError for a class without these methods, GraphValueError for
    one that is registered already.

        >>> @graphc.tree.register_pytree_node_class
        ... class Point:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        ...     def tree_flatten(self):
        ...         return (self.x, self.y), None
        ...     @classmethod
        ...     def tree_unflatten(cls, rest, parts):
        ...         return cls(*parts)
        >>> graphc.tree.map(lambda x: 10 * x, Point(1, 2)).y
        20
    """
    register_pytree_node(cls, lambda value: value.tree_flatten(), attrgetter("tree_unflatten")(cls))
    return cls


class Key:
    """The key of a part, as text in paths."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and (type(other), other.key) == (type(self), self.key)

    def __hash__(self) -> int:
        return hash((type(self), self.key))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key!r})"


class GetAttrKey(Key):
    """The key of a part that is an attribute, of this name.

    >>> str(graphc.tree.GetAttrKey("slope"))
    '.slope'
    """

    name = property(attrgetter("key"))

    def __init__(self, name: str) -> None:
        super().__init__(name)

    def __str__(self) -> str:
        return f".{self.key}"


class DictKey(Key):
    """The key of a part that has one.

    >>> str(graphc.tree.DictKey("w"))
    "['w']"
    """

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(Key):
    """The key of a part that has a place.

    >>> str(graphc.tree.SequenceKey(0))
    '[0]'
    """

    idx = property(attrgetter("key"))

    def __init__(self, idx: int) -> None:
        super().__init__(idx)

    def __str__(self) -> str:
        return f"[{self.key}]"


class FlattenedIndexKey(Key):
    """The key of a part that has a number among the parts.

    >>> str(graphc.tree.FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make a class one of trees, as `register_pytree_node` does. flatten_with_keys(value): pairs of a key and a part,
    and what else there is. The key stands in paths: a `GetAttrKey` and so on, or a text.
    flatten_func(value): the same without keys; it is not needed. Raises the errors of `register_pytree_node`.

        >>> class Line:
        ...     def __init__(self, slope):
        ...         self.slope = slope
        >>> graphc.tree.register_pytree_with_keys(
        ...     Line, lambda line: ([(".slope", line.slope)], None), lambda rest, parts: Line(*parts)
        ... )
        >>> graphc.tree.leaves_with_path(Line(2.0))
        [(('.slope',), 2.0)]
    """

    def children(value: Any) -> tuple[dict[str, Any], Any]:
        parts, rest = flatten_with_keys(value)
        return {_Ending.of(key): part for key, part in parts}, rest

    _register(nodetype, Registered(children, lambda rest, parts: unflatten_func(rest, tuple(parts))))


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Make a class one of trees by its methods `tree_flatten_with_keys(self)` and `tree_unflatten(cls, rest, parts)`: a
    decorator. See `register_pytree_with_keys`. Raises AttributeError for a class without these methods, GraphValueError
    for one that is registered already."""
    register_pytree_with_keys(cls, lambda value: value.tree_flatten_with_keys(), attrgetter("tree_unflatten")(cls))
    return cls


class Partial(functools.partial):  # type: ignore[type-arg]
    """A `functools.partial` that is a tree: its arguments are parts, the function belongs to the structure. So it can
    be an argument of traced functions, and the carry of loops. Raises TypeError for a first argument that cannot be
    called.

        >>> graphc.tree.leaves(graphc.tree.Partial(max, 1.0, key=2.0))
        [1.0, 2.0]
    """


def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Make a class one of trees by its fields; may be a decorator. data_fields: fields that hold trees; meta_fields:
    fields that are parts of the structure, which can be compared and hashed; drop_fields: others, which the
    constructor gives again. For a dataclass the first two may be left out: meta fields are then those whose metadata
    has `static`. Dataclasses are trees without it. Raises ArgumentError where fields are not told.

        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Layer:
        ...     w: object
        ...     name: str
        >>> _ = graphc.tree.register_dataclass(Layer, data_fields=["w"], meta_fields=["name"])
        >>> graphc.tree.map(lambda x: x + 1, Layer(1, "first"))
        Layer(w=2, name='first')
    """
    if nodetype is None:
        return functools.partial(
            register_dataclass, data_fields=data_fields, meta_fields=meta_fields, drop_fields=drop_fields
        )
    known: dict[str, Any] = getattr(nodetype, "__dataclass_fields__", {})
    if data_fields is None or meta_fields is None:
        if not known:
            raise ArgumentError(
                f"register_dataclass of {nodetype.__name__}, which is no dataclass: give data_fields and meta_fields"
            )
        meta_fields = [name for name in known if known[name].metadata.get("static")]
        data_fields = [name for name in known if name not in (*meta_fields, *drop_fields)]
    named, rest_of = list(data_fields), list(meta_fields)
    missing = [name for name in known if name not in (*named, *rest_of, *drop_fields) and known[name].init]
    if missing:
        raise ArgumentError(
            f"register_dataclass of {nodetype.__name__}: {', '.join(missing)} is in none of data_fields, meta_fields "
            "and drop_fields"
        )

    def children(value: Any) -> tuple[dict[str, Any], Any]:
        return {f".{name}": getattr(value, name) for name in named}, tuple(getattr(value, name) for name in rest_of)

    def restored(rest: Any, parts: list[Any]) -> Any:
        return nodetype(**dict(zip(named, parts, strict=True)), **dict(zip(rest_of, rest, strict=True)))

    _register(nodetype, Registered(children, restored, (tuple(named), tuple(rest_of))))
    return nodetype


def register_static(cls: Class) -> Class:
    """Make a class one of trees without leaves, whose values are parts of the structure: a decorator. Values must be
    comparable and hashable. Raises GraphTypeError for what is no class.

        >>> @graphc.tree.register_static
        ... class Name(str):
        ...     pass
        >>> graphc.tree.leaves([Name("x"), 1])
        [1]
    """
    _register(cls, Registered(lambda value: ({}, value), lambda rest, parts: rest))
    return cls


register_pytree_node(
    Partial,
    lambda value: ((value.args, value.keywords), value.func),
    lambda function, parts: Partial(function, *parts[0], **parts[1]),
)


# --- one vector -------------------------------------------------------------------------------------------------------


def ravel_pytree(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return a vector of all elements of a tree, of the dtype that its leaves promote to, and a function from such a
    vector to a tree of the structure, shapes and dtypes of `tree`. Of arrays it is an array, of tensors a tensor.

        >>> flat, unravel = graphc.tree.ravel_pytree({"w": np.ones((2, 2)), "b": 3.0})
        >>> flat, unravel(2 * flat)["b"]
        (array([3., 1., 1., 1., 1.]), array(6.))

    The function raises GraphValueError for a vector of another size, where it is known.
    """
    found, kind = flatten(tree)
    is_graph = any_tensor(found)
    parts: list[Any] = [as_node(leaf) if is_graph else np.asarray(leaf) for leaf in found]
    dtypes = [part.type.dtype if is_graph else natural_dtype(part, "ravel_pytree") for part in parts]
    shapes = [part.type.shape if is_graph else part.shape for part in parts]
    counts = [sizes.product(shape) for shape in shapes]
    dtype = promote(*dtypes) if dtypes else "float64"
    if not is_graph:
        flat: Any = np.concatenate([np.zeros(0, dtype), *(part.ravel() for part in parts)]).astype(dtype)
    else:
        flat = concatenate([cast(reshape(part, (count,)), dtype) for part, count in zip(parts, counts, strict=True)], 0)

    def unravel(vector: Any) -> Any:
        whole = as_node(vector) if isinstance(vector, Node) or any_tensor(shapes) else np.asarray(vector)
        total = functools.reduce(sizes.add, counts, _NONE)
        own: Any = whole.type.shape if isinstance(whole, Node) else whole.shape
        if len(own) != 1 or (isinstance(own[0], int) and isinstance(total, int) and own[0] != total):
            raise GraphValueError(f"unravel: a vector of {total} elements is needed, not one of the shape {own}")
        begin: Size = 0
        made = []
        for count, shape, kept in zip(counts, shapes, dtypes, strict=True):
            end = sizes.add(begin, count)
            part = whole[begin:end]
            made.append(
                cast(reshape(part, shape), kept) if isinstance(part, Node) else part.reshape(shape).astype(kept)
            )
            begin = end
        return kind.unflatten(made)

    return flat, unravel


def any_tensor(values: Any) -> bool:
    """Return True where a tensor is among the leaves of a tree."""
    return any(isinstance(leaf, Node) for leaf in trees.leaves(values))


explain_all(globals())


__getattr__ = telling(__name__, "reduce_", "static")
