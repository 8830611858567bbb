"""Calls of a form that was called before: by native code alone, or by a function written for the form."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc
from graphc import tree as tree_util
from graphc.tracing.shortcuts import REFUSED, shortcut


class Pair(NamedTuple):
    left: Any
    right: Any


def entry(*leaves: Any) -> list[Any]:
    return list(leaves)


def test_a_shortcut_takes_its_form_alone() -> None:
    args: tuple[Any, ...] = ({"w": 1.0, "b": [2.0, (3.0,)]}, 4, Pair(5.0, None), "relu")
    kwargs = {"scale": 6.0, "mode": "same"}
    made = {"b": [0.0, (0.0,)], "a": Pair(0.0, None), "c": [0.0, 0.0]}
    call = shortcut(args, kwargs, (1, 3), ("mode",), made, entry)
    assert call is not None
    # leaves come in the order of sorted keys: 2, 3, 1 of the dict, 5 of the pair, 6 by name
    expected = {"b": [3.0, (1.0,)], "a": Pair(2.0, None), "c": [5.0, 6.0]}
    result = call(args, kwargs)
    assert result == expected
    assert list(result) == ["b", "a", "c"]
    first, *rest = args
    others: list[Any] = [
        ((*args, 1), kwargs),
        (args, {"scale": 6.0}),
        (args, {"scale": 6.0, "kind": "same"}),
        (args, {"scale": 6.0, "mode": "valid"}),
        (({"w": 1.0, "c": first["b"]}, *rest), kwargs),
        (({**first, "c": 1.0}, *rest), kwargs),
        (({"w": 1.0, "b": (2.0, (3.0,))}, *rest), kwargs),
        (({"w": 1.0, "b": [2.0, (3.0, 3.0)]}, *rest), kwargs),
        ((first, True, *rest[1:]), kwargs),
        ((first, 4.0, *rest[1:]), kwargs),
        ((first, 5, *rest[1:]), kwargs),
        ((first, 4, Pair(5.0, 0.0), "relu"), kwargs),
        ((first, 4, (5.0, None), "relu"), kwargs),
    ]
    for other in others:
        assert call(*other) is REFUSED
    assert shortcut(({1: 2.0},), {}, (), (), 0.0, entry) is None


def test_calls_of_every_form_give_what_the_function_gives() -> None:
    """Each form twice, so that the second call goes the short way; forms in turn, so that none is taken for another."""
    a, b = np.arange(3.0), np.arange(3.0, 6.0)

    def plain(x: Any, y: Any = 2.0) -> Any:
        return (x * y, np.sum(x))

    def tree(p: Any, *, n: int = 1) -> Any:
        return {"q": p["w"] * n, "p": [p["b"] + 1, p["w"]]}

    jitted: Any = graphc.jit(plain)
    trees: Any = graphc.jit(tree, static_argnames="n")
    calls: list[tuple[Any, Any, tuple[Any, ...], dict[str, Any]]] = [
        (jitted, plain, (a, b), {}),
        (jitted, plain, (a,), {"y": b}),
        (jitted, plain, (), {"y": b, "x": a}),
        (jitted, plain, (a, 2.5), {}),
        (jitted, plain, (a, 3), {}),
        (jitted, plain, (a, True), {}),
        (jitted, plain, (a, np.float64(1.5)), {}),
        (jitted, plain, (a, np.array(1.5)), {}),
        (jitted, plain, (a,), {}),
        (jitted, plain, (a.astype("float32"), 2.5), {}),
        (jitted, plain, (a[:, None] * b, b), {}),
        (trees, tree, ({"w": a, "b": b},), {"n": 2}),
        (trees, tree, ({"b": b, "w": a},), {"n": 3}),
        (trees, tree, ({"b": b, "w": 2.0},), {}),
    ]
    for _ in range(3):
        for function, model, args, kwargs in calls:
            for _ in range(2):
                got, wanted = function(*args, **kwargs), model(*args, **kwargs)
                assert type(got) is type(wanted)
                pairs = zip(tree_util.leaves(got), graphc.tree.leaves(wanted), strict=True)
                for one, other in pairs:
                    assert type(one) is type(np.asarray(other)[()])
                    assert one.dtype == np.asarray(other).dtype
                    np.testing.assert_allclose(one, other, rtol=1e-6)
    with pytest.raises(TypeError):
        jitted(a, b, z=b)
    with pytest.raises(TypeError):
        jitted(a, x=a)


def test_arguments_by_name_of_a_derivative_are_not_taken_by_position() -> None:
    slope: Any = graphc.grad(lambda x, y: np.sum(x * x * y))
    ones = np.ones(2)
    np.testing.assert_array_equal(slope(ones, 3 * ones), [6.0, 6.0])
    np.testing.assert_array_equal(slope(ones, y=3 * ones), [6.0, 6.0])
    with pytest.raises(graphc.errors.GraphValueError, match="argument"):
        slope(y=ones, x=ones)
