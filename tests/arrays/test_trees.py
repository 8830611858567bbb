"""Trees: what is a leaf, in which order leaves come, what is alike; loops, branches and functions of trees."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc import lax, trees
from graphc.errors import ArgumentError, GraphTypeError

Point = namedtuple("Point", "q p")


@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any = None
    kind: str = field(default="dense", metadata={"static": True})
    count: ClassVar[int] = 0

    def __post_init__(self) -> None:
        assert self.w is not None


TREES: list[tuple[Any, list[str]]] = [
    (1, ["t"]),
    (None, []),
    ((), []),
    ([1, (2, [3])], ["t[0]", "t[1][0]", "t[1][1][0]"]),
    ({"b": 1, "a": {"c": 2}}, ["t['a']['c']", "t['b']"]),
    ({"b": 1, 3: 2, None: 4}, ["t[None]", "t[3]", "t['b']"]),
    (OrderedDict(z=1, y=2), ["t['y']", "t['z']"]),
    (defaultdict(int, z=1), ["t['z']"]),
    (Point(1, Point(2, None)), ["t.q", "t.p.q"]),
    (Layer(1, [2]), ["t.w", "t.b[0]"]),
]


@pytest.mark.parametrize(("tree", "paths"), TREES)
def test_trees(tree: Any, paths: list[str]) -> None:
    found = trees.leaves(tree)
    assert trees.paths(tree, "t") == paths and len(found) == len(paths)
    twin = trees.like(tree, [leaf * 10 for leaf in found])
    assert type(twin) is type(tree) and trees.leaves(twin) == [leaf * 10 for leaf in found]
    assert trees.structure(twin) == trees.structure(tree) and hash(trees.structure(tree)) is not None
    assert trees.outline(tree).count("*") == len(paths) and trees.up_to(tree, twin) == trees.leaves(twin)
    assert trees.like(tree, found) == tree
    if isinstance(tree, dict):
        assert list(twin) == list(tree)


def test_what_is_alike() -> None:
    alike = [({"a": 1, "b": 2}, {"b": 3, "a": 4}), (Layer(1), Layer(2)), ([1], [np.ones(3)])]
    assert all(trees.structure(one) == trees.structure(other) for one, other in alike)
    differ = [({"a": 1}, {"b": 1}), ([1], (1,)), ((1, 2), Point(1, 2)), (1, None), (Layer(1), Layer(1, kind="conv"))]
    assert not any(trees.structure(one) == trees.structure(other) for one, other in differ)


def test_up_to() -> None:
    assert trees.up_to({"a": 0, "b": (0,)}, {"b": ([1, 2],), "a": (3,)}) == [(3,), [1, 2]]
    for tree, other in ((None, 1), ((0, 0), (1,)), ({"a": 0}, [1]), ([0], 1)):
        with pytest.raises(ValueError, match="differ"):
            trees.up_to(tree, other)


@pytest.mark.slow
def test_functions_of_trees() -> None:
    x, w, b = T.dvector("x"), T.dmatrix("w"), T.dscalar()
    cost = T.dot(w, x).sum() + b
    slopes = Layer(*graphc.grad(cost, [w, b]))
    given = {"w": np.arange(6.0).reshape(2, 3), "b": 1.0}
    for mode in ("interpreted", "compiled"):
        f = graphc.function([{"w": w, "b": b}, x], {"c": cost, "g": slopes, "n": None, "t": (x, [2 * x])}, mode=mode)
        found = f(given, x=[1, 2, 3])
        assert list(found) == ["c", "g", "n", "t"] and found["n"] is None and found["g"].kind == "dense"
        assert found["c"] == given["w"].dot([1, 2, 3]).sum() + 1 and found["g"].b == 1  # type: ignore[attr-defined]
        npt.assert_array_equal(found["g"].w, [[1, 2, 3]] * 2)
        npt.assert_array_equal(found["t"][1][0], [2, 4, 6])
    out = {"c": np.empty(()), "g": Layer(np.empty((2, 3)), np.empty(())), "n": None, "t": (np.empty(3), [np.empty(3)])}
    assert f(given, np.ones(3), out=out)["g"].w is out["g"].w  # type: ignore[attr-defined]
    assert f.mode == "compiled" and "kernel" in f.source and len(f.shared) == 0
    for args, named, words in (
        (({"w": 1.0}, [1.0]), {}, "argument 0 must be {'w': [*], 'b': [*]}"),
        ((given,), {}, "x is missing"),
        ((given, [1.0], 3), {}, "takes 2 arguments; got 3"),
        ((given, [1.0]), {"x": 1}, "x is given twice"),
        ((given,), {"z": 1}, "no one input called 'z'"),
    ):
        with pytest.raises(ArgumentError, match=words.replace("{", r"\{").replace("[*]", r"\*")):
            f(*args, **named)


def test_inputs_by_name_and_defaults() -> None:
    x, y = T.dvectors("x", "y")
    scale = T.dscalar("scale")
    f = graphc.function({"p": (x, [y]), "s": graphc.In(scale, value=2.0)}, [(x + y) * scale], mode="interpreted")
    npt.assert_array_equal(f(([1.0], [[2.0]]))[0], [6.0])
    npt.assert_array_equal(f(s=1.0, p=([1.0], [[2.0]]))[0], [3.0])
    with pytest.raises(GraphTypeError, match=r"p\[1\] is 3"):
        graphc.function({"p": (x, 3)}, x)


def test_branches_of_trees() -> None:
    c, x = T.iscalar("c"), T.dvector("x")
    made = lax.cond(c, lambda t: {"a": t["x"], "b": (1.0, 2)}, lambda t: {"b": (2.0, 3), "a": 2 * t["x"]}, {"x": x})
    chosen = lax.switch(c, [Layer, lambda x: Layer(x + 1), lambda x: Layer(x * 3)], x)
    f = graphc.function([c, x], (made, chosen), mode="interpreted")
    for holds, first, second in ((0, 2.0, 1.0), (1, 1.0, 2.0), (2, 1.0, 3.0)):
        found, layer = f(holds, [1.0])
        assert list(found) == ["a", "b"] and found["a"] == first and found["b"][1] == (2 if holds else 3)
        assert isinstance(layer, Layer) and layer.w == second
    with pytest.raises(GraphTypeError, match="same structure"):
        lax.cond(c, lambda: (x, x), lambda: [x])


def test_loops_of_dataclasses() -> None:
    x = T.dvector("x")
    last, rows = lax.scan(lambda c, each: (Layer(c.w + each, c.b), Layer(each)), Layer(0.0, {"k": 1}), x)
    f = graphc.function([x], (last, rows), mode="interpreted")
    found, seen = f([1.0, 2.0])
    assert found.w == 3.0 and found.b["k"] == 1 and seen.b is None
    npt.assert_array_equal(seen.w, [1, 2])
