"""Functions of trees under JAX's names, and classes of trees that a program registers, in all that takes trees."""

from __future__ import annotations

import pickle
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import flatten_util, lax, tree, tree_util
from graphc.errors import ArgumentError, GraphTypeError, GraphValueError

Point = namedtuple("Point", "x y")


@pytest.fixture(autouse=True)
def interpreted() -> Any:
    with graphc.options.change(mode="interpreted"):
        yield


@tree.register_pytree_node_class
class Affine:
    """A class with methods, as JAX's documentation has them."""

    def __init__(self, w: Any, b: Any, name: str = "affine") -> None:
        self.w, self.b, self.name = w, b, name

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b

    def tree_flatten(self) -> Any:
        return (self.w, self.b), self.name

    @classmethod
    def tree_unflatten(cls, rest: Any, parts: Any) -> Any:
        return cls(parts[0], parts[1], rest)


class Range:
    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high


tree.register_pytree_node(Range, lambda r: ((r.low, r.high), None), lambda rest, parts: Range(*parts))


@tree.register_dataclass
@dataclass
class Step:
    rate: Any
    rule: str = field(metadata={"static": True})


class Plain:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


tree.register_dataclass(Plain, ["a"], ["b"])


@tree.register_static
class Unit(str):
    """A part of the structure."""

    __slots__ = ()


TREE = {"b": [1, (2, None)], "a": Point(3, 4)}


def test_leaves_and_structure() -> None:
    found, kind = tree.flatten(TREE)
    assert found == [3, 4, 1, 2] == tree.leaves(TREE) and kind == tree.structure(TREE)
    assert kind.num_leaves == 4 and repr(kind) == "TreeDef({'b': [*, (*, None)], 'a': Point(x=*, y=*)})"
    assert tree.unflatten(kind, found) == TREE and kind.unflatten(iter("abcd"))["b"] == ["c", ("d", None)]
    assert pickle.loads(pickle.dumps(kind)) == kind and hash(kind) == hash(tree.structure(TREE))
    assert [part.num_leaves for part in kind.children()] == [2, 2]
    assert kind != tree.structure([1]) and kind != 3
    with pytest.raises(GraphValueError, match="has 4 leaves, and 1 are given"):
        kind.unflatten([1])
    with pytest.raises(GraphTypeError, match="the structure comes first"):
        tree.unflatten([1], kind)  # type: ignore[arg-type]


def test_functions_of_leaves() -> None:
    assert tree.map(lambda x: 10 * x, TREE) == {"b": [10, (20, None)], "a": Point(30, 40)}
    assert tree.map(lambda x, y: (x, y), [1, 2], ["a", {"c": 3}]) == [(1, "a"), (2, {"c": 3})]
    assert tree.reduce(lambda a, b: a + b, TREE) == 10 and tree.reduce(lambda a, b: [*a, b], TREE, [])[0] == 3
    assert tree.all([1, {"x": True}]) and not tree.all([1, 0]) and tree.all([])
    assert tree.broadcast({"a": 1, "b": 2}, {"a": [0, (0, 0)], "b": 0}) == {"a": [1, (1, 1)], "b": 2}
    rows = {"p": [1, 2], "q": [3, 4]}
    turned = tree.transpose(tree.structure({"p": 0, "q": 0}), tree.structure([0, 0]), rows)
    assert turned == [{"p": 1, "q": 3}, {"p": 2, "q": 4}]
    assert tree.transpose(tree.structure({"p": 0, "q": 0}), None, rows) == turned
    calls: list[Callable[[], Any]] = [
        lambda: tree.map(lambda x, y: x, [1], [1, 2]),
        lambda: tree.broadcast([1], {"a": 1}),
        lambda: tree.transpose(tree.structure([0]), tree.structure([0]), rows),
    ]
    for call in calls:
        with pytest.raises(GraphValueError, match="the trees have different structures"):
            call()


def test_what_counts_as_a_leaf() -> None:
    def is_leaf(x: Any) -> bool:
        return isinstance(x, tuple)

    assert tree.leaves(TREE, is_leaf=is_leaf) == [Point(3, 4), 1, (2, None)]
    assert tree.map(len, {"a": (1, 2), "b": [(3,)]}, is_leaf=is_leaf) == {"a": 2, "b": [1]}
    kind = tree.structure(TREE, is_leaf=is_leaf)
    assert kind.unflatten([5, 6, 7]) == {"b": [6, 7], "a": 5}
    assert tree.leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    assert tree.map(lambda x: 0 if x is None else x, [None, 1], is_leaf=lambda x: x is None) == [0, 1]
    assert tree.reduce(lambda a, b: a + b, [(1, 2), (3,)], is_leaf=is_leaf) == (1, 2, 3)


def test_paths() -> None:
    pairs, kind = tree.flatten_with_path({"w": [1, Point(2, 3)], "r": Range(4, Step(5, "sgd"))})
    assert pairs[0][0] == (tree_util.DictKey("r"), tree_util.SequenceKey(0))
    assert pairs[-1][0] == (tree_util.DictKey("w"), tree_util.SequenceKey(1), tree_util.GetAttrKey("y"))
    assert {str(path): leaf for path, leaf in pairs} == {
        "['w'][0]": 1,
        "['w'][1].x": 2,
        "['w'][1].y": 3,
        "['r'][0]": 4,
        "['r'][1].rate": 5,
    }
    assert kind.num_leaves == 5
    assert [graphc.tree_util.keystr(path) for path, _ in tree.leaves_with_path({"w": [1]})] == ["['w'][0]"]
    assert tree_util.keystr(pairs[-1][0], simple=True, separator="/") == "w/1/y"
    assert pickle.loads(pickle.dumps(pairs)) == pairs
    assert tree.map_with_path(lambda path, x, y: f"{path}{x}{y}", [1, 2], [3, 4]) == ["[0]13", "[1]24"]


def test_the_names_of_other_modules() -> None:
    assert tree_util.tree_map is tree.map and tree_util.tree_leaves is tree.leaves
    assert flatten_util.ravel_pytree is tree.ravel_pytree
    assert graphc.tree is tree and graphc.tree_util is tree_util


# --- registered classes -----------------------------------------------------------------------------------------------


def test_registered_classes() -> None:
    twin = tree.map(lambda x: 2 * x, Affine(1, (2, 3), "first"))
    assert type(twin) is Affine and (twin.w, twin.b, twin.name) == (2, (4, 6), "first")
    assert tree.structure(Affine(1, 2, "a")) != tree.structure(Affine(1, 2, "b"))
    assert tree.leaves([Range(1, [2]), Step(3, "x"), Plain(4, "y"), Unit("m")]) == [1, 2, 3, 4]
    made = tree.unflatten(tree.structure([Step(0, "adam"), Plain(0, 7), Unit("m")]), [1, 2])
    assert made[0] == Step(1, "adam") and (made[1].a, made[1].b) == (2, 7) and made[2] == "m"
    assert tree.map(lambda x, y: x + y, Range(1, 2), Range(3, 4)).high == 6
    with pytest.raises(GraphValueError, match="the trees have different structures"):
        tree.map(lambda x, y: x, Affine(1, 2, "a"), Affine(1, 2, "b"))
    with pytest.raises(GraphValueError, match="Range is a class of trees already"):
        tree.register_static(Range)
    with pytest.raises(GraphValueError, match="dict is a class of trees already"):
        tree.register_static(dict)
    with pytest.raises(GraphTypeError, match="a class is to be registered"):
        tree.register_static(3)  # type: ignore[type-var]
    with pytest.raises(ArgumentError, match="which is no dataclass: give data_fields"):
        tree.register_dataclass(Unit)
    with pytest.raises(ArgumentError, match="rule is in none of data_fields"):
        tree.register_dataclass(Step, ["rate"], [])


def test_registered_classes_in_functions() -> None:
    rng = np.random.default_rng(0)
    x, model = rng.normal(size=(5, 3)), Affine(rng.normal(size=(3, 2)), np.ones(2))

    def loss(model: Any, x: Any) -> Any:
        return (model(x) ** 2).sum()

    slope = graphc.grad(loss)(model, x)
    assert type(slope) is Affine and slope.name == "affine"
    npt.assert_allclose(slope.w, 2 * x.T @ model(x), rtol=1e-12)
    npt.assert_allclose(slope.b, 2 * model(x).sum(0), rtol=1e-12)
    step = graphc.jit(lambda model, g: tree.map(lambda p, d: p - 0.1 * d, model, g))
    npt.assert_allclose(step(model, slope).b, model.b - 0.1 * slope.b)
    each = graphc.vmap(graphc.grad(loss), in_axes=(None, 0))(model, x)
    npt.assert_allclose(each.w.sum(0), slope.w, rtol=1e-12)
    parts = graphc.vmap(lambda model, x: model(x), in_axes=(Affine(None, 0), None))(model, x)
    assert parts.shape == (2, 5, 2)
    last, _ = lax.scan(
        lambda c, e: (Range(c.low + e, c.high * e), None), Range(jnp.array(0.0), jnp.array(1.0)), x[:, 0]
    )
    found = graphc.function([], [last.low, last.high])()
    npt.assert_allclose(found, [x[:, 0].sum(), x[:, 0].prod()], rtol=1e-12)
    chosen = graphc.jit(lambda p: lax.cond(p.low > 0, lambda p: p, lambda p: Range(-p.low, p.high), p))
    assert chosen(Range(-2.0, 3.0)).low == 2.0
    kinds = graphc.jit(lambda s: s.rate * (2 if s.rule == "twice" else 1))
    assert kinds(Step(3.0, "once")) == 3.0 and kinds(Step(3.0, "twice")) == 6.0 and len(kinds.functions) == 2


# --- one vector -------------------------------------------------------------------------------------------------------


def test_one_vector_of_all_elements() -> None:
    p: dict[str, Any] = {"w": np.arange(6.0).reshape(2, 3), "n": np.array([1, 2], "int32"), "b": 7.0}
    flat, unravel = tree.ravel_pytree(p)
    npt.assert_array_equal(flat, [7, 1, 2, 0, 1, 2, 3, 4, 5])
    again = unravel(flat + 1)
    assert again["n"].dtype == "int32" and again["w"].shape == (2, 3) and again["b"] == 8.0
    empty, back = tree.ravel_pytree({})
    assert empty.shape == (0,) and back(empty) == {}
    with pytest.raises(GraphValueError, match="a vector of 9 elements is needed"):
        unravel(flat[1:])

    def loss(vector: Any) -> Any:
        q = unravel(vector)
        return (q["w"] ** 2).sum() + q["b"]

    npt.assert_array_equal(graphc.grad(loss)(flat), [1, 0, 0, 0, 2, 4, 6, 8, 10])

    def doubled(p: Any) -> Any:
        vector, unravel = tree.ravel_pytree(p)
        return unravel(2 * vector)

    npt.assert_array_equal(graphc.jit(doubled)(p)["w"], 2 * p["w"])
    assert graphc.jit(doubled)(p)["n"].dtype == "int32"
    x = T.dmatrix("x")
    vector, unravel = tree.ravel_pytree([x, x[0]])
    npt.assert_array_equal(graphc.function([x], unravel(vector + 1.0)[1])(p["w"]), [1, 2, 3])


class Named:
    """A class of trees whose structure has a dict, which has no hash."""

    def __init__(self, value: Any, told: dict[str, Any]) -> None:
        self.value, self.told = value, told


tree.register_pytree_with_keys(
    Named, lambda value: ([(".value", value.value)], value.told), lambda told, parts: Named(parts[0], told)
)


def test_structures_with_what_has_no_hash_are_compared() -> None:
    rests: list[Any] = [1, True, [1, 2], np.ones(2), np.zeros(2), {2}]
    kinds = [{"a": rest} for rest in rests]
    forms = [tree.structure(Named(1.0, told)) for told in kinds]
    assert all((left == right) == (left is right) for left in forms for right in forms)
    assert tree.structure(Named(2.0, {"a": np.ones(2)})) == forms[3] and len({*forms}) == len(kinds)
    assert tree.leaves_with_path(Named(1.0, {})) == [((".value",), 1.0)]
    assert forms[0].flatten_up_to(Named([3.0], {"a": 1})) == [[3.0]]
    scaled = graphc.jit(lambda x: Named(x.value * x.told["by"], x.told))
    for by in (2, 3, 2):
        assert scaled(Named(np.ones(2), {"by": by})).value[0] == by
    assert len(scaled.functions) == 2


def test_keys_of_parts_are_text_in_paths() -> None:
    for key, text in (
        (tree_util.GetAttrKey("a"), ".a"), (tree_util.DictKey("a"), "['a']"), (tree_util.SequenceKey(2), "[2]"),
        (tree_util.FlattenedIndexKey(1), "[<flat index 1>]"),
    ):  # fmt: skip

        class Keyed:
            def tree_flatten_with_keys(self) -> Any:
                return [(type(key)(key.key), 1.0)], None  # noqa: B023 - called before the next key

            @classmethod
            def tree_unflatten(cls, rest: Any, parts: Any) -> Any:
                return cls()

        assert tree.leaves([key, 2.0]) == [key, 2.0] and {key: 1}[type(key)(key.key)] == 1
        ((path, _),) = tree.leaves_with_path(tree_util.register_pytree_with_keys_class(Keyed)())
        assert path == (key,) and str(path) == text


def test_a_partial_is_a_tree() -> None:
    move = tree_util.Partial(lambda by, x, *, scale: scale * (x + by), np.ones(2), scale=2.0)
    assert len(tree.leaves(move)) == 2
    npt.assert_array_equal(graphc.jit(lambda f, x: f(x))(move, np.ones(2)), [4.0, 4.0])
    npt.assert_array_equal(tree.map(lambda leaf: 2 * leaf, move)(np.ones(2)), [12.0, 12.0])
