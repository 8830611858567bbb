"""Jitted functions as files: all variants run again without their program."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, GraphcError
from graphc.options import options
from graphc.trees import leaves, structure


def saved_and_loaded(function: Any, tmp_path: Path) -> Any:
    """The function as it is loaded, without a cache: its code comes from the file."""
    function.save(tmp_path / "f.graphc")
    with options.change(cache=False):
        before = graphc.compilations()
        loaded = graphc.load(tmp_path / "f.graphc", recompile=False)
        assert graphc.compilations() == before
    return loaded


def assert_same(got: Any, expected: Any) -> None:
    assert structure(got) == structure(expected)
    for new, old in zip(leaves(got), leaves(expected), strict=True):
        assert type(new) is type(old)
        np.testing.assert_array_equal(new, old)


def test_variants_with_guards_trees_keywords_and_numbers(tmp_path: Path) -> None:
    @graphc.jit
    def fitted(parameters: Any, x: Any, scale: float = 2.0, *, shift: Any = None) -> Any:
        """Return a fit."""
        y = x @ parameters["w"] + parameters["b"][0]
        if x.shape[0] > 10:
            y = y - y.mean()
        if shift is not None:
            y = y + shift
        return {"fit": y * scale, "some": (y.sum(), [y.max(), None])}

    parameters = {"w": np.arange(3.0), "b": [0.5]}
    small, large = np.linspace(0, 1, 12).reshape(4, 3), np.linspace(-1, 1, 60).reshape(20, 3)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((parameters, small), {}),
        ((parameters, large), {}),
        ((parameters, small, 3), {}),
        ((parameters, small), {"scale": 0.5, "shift": np.float64(1.5)}),
        ((parameters, small.astype("float32")), {"shift": np.ones(4)}),
    ]
    expected = [fitted(*args, **kwargs) for args, kwargs in calls]
    loaded = saved_and_loaded(fitted, tmp_path)
    for _ in range(2):
        for (args, kwargs), wanted in zip(calls, expected, strict=True):
            assert_same(loaded(*args, **kwargs), wanted)
    assert [repr(each) for each in loaded.variants()] == [repr(each) for each in fitted.variants()]
    assert loaded.__doc__ == "Return a fit." and list(inspect.signature(loaded).parameters) == [
        "parameters", "x", "scale", "shift",
    ]  # fmt: skip
    assert_same(loaded(parameters, np.ones((7, 3))), fitted(parameters, np.ones((7, 3))))
    with pytest.raises(ArgumentError, match="fitted was loaded without its program, and has no variant for these"):
        loaded(parameters, small[0])
    assert_same(saved_and_loaded(loaded, tmp_path)(parameters, small), expected[0])


def test_static_arguments_tuples_gradients_and_numbers_of_numpys(tmp_path: Path) -> None:
    power = graphc.jit(lambda x, n: (x**n, n * x) if n > 1 else (x, x), static_argnames="n")
    vector = np.array([1.0, 2.0])
    expected = [power(vector, 3), power(vector, n=3), power(vector, 1)]
    loaded = saved_and_loaded(power, tmp_path)
    for got, wanted in zip([loaded(vector, 3), loaded(vector, n=3), loaded(vector, 1)], expected, strict=True):
        assert_same(got, wanted)
    with pytest.raises(ArgumentError, match=r"n=3; .*n=1"):
        loaded(vector, 2)
    slope = graphc.grad(lambda x, y: (x * x * y).sum())
    gradient = slope(vector, np.float32(2))
    assert_same(saved_and_loaded(slope, tmp_path)(vector, np.float32(2)), gradient)
    kinds = graphc.jit(lambda x: x + 1 if isinstance(x, np.ndarray) else x - 1)
    results = [kinds(np.float64(1)), kinds(np.array(1.0))]
    of_kinds = saved_and_loaded(kinds, tmp_path)
    for got, each in zip([of_kinds(np.float64(1)), of_kinds(np.array(1.0))], results, strict=True):
        assert_same(got, each)


def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    place = tmp_path / "f.graphc"
    never = graphc.jit(lambda x: x)
    with pytest.raises(GraphcError, match="was not called yet"):
        never.save(place)
    marked = graphc.jit(lambda x, how: x, static_argnums=1)
    marked(np.ones(2), frozenset([1]))
    with pytest.raises(GraphcError, match=r"frozenset\(\{1\}\) is neither a number nor text"):
        marked.save(place)
    keyed = graphc.jit(lambda x: {(1, 2): x})
    keyed(np.ones(2))
    with pytest.raises(GraphcError, match=r"the key \(1, 2\) of a dict"):
        keyed.save(place)
    assert not place.exists()
