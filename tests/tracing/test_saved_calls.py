"""Jitted functions as files: all variants run again without their program."""

from __future__ import annotations

import copy
import inspect
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, GraphcError
from graphc.functions.archive import FIRST, aligned
from graphc.options import options
from graphc.startup.versions import digest_of
from graphc.tracing.traced import Jitted
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


def test_answers_to_questions_are_saved(tmp_path: Path) -> None:
    @graphc.jit
    def asked(x: Any, flag: bool) -> Any:
        if x.sum() > 0:
            return {"up": x * 2}
        return {"down": -x if flag else x - 1}

    calls = [(np.ones(3), True), (-np.ones(3), True), (-np.ones(3), False)]
    expected = [asked(*each) for each in calls]
    for loaded in (again := saved_and_loaded(asked, tmp_path), saved_and_loaded(again, tmp_path)):
        for each, wanted in zip(calls, expected, strict=True):
            assert_same(loaded(*each), wanted)
        assert_same(loaded(-np.ones(5), False), {"down": np.full(5, -2.0)})
    with pytest.raises(ArgumentError, match=r"where x\.sum\(\) > 0 is False .* and flag"):
        loaded(np.ones((2, 2)), True)


def test_values_from_outside_are_those_of_now(tmp_path: Path) -> None:
    scale = 2.0
    scaled = graphc.jit(lambda x: x * scale)
    scaled(np.ones(3))
    scale = 3.0
    with pytest.raises(GraphcError, match="scale.* has changed since its last call"):
        scaled.save(tmp_path / "f.graphc")
    scaled(np.ones(3))
    assert_same(saved_and_loaded(scaled, tmp_path)(np.ones(2)), np.full(2, 3.0))


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


def trees(tmp_path: Path) -> tuple[Path, Any]:
    """A file of a function with two variants, and the function."""

    def computed(p: Any, n: int, *, s: float = 1.0) -> Any:
        return {"u": p["w"] * n + s, "v": [p["b"].sum()]}

    function = graphc.jit(computed, static_argnums=1)
    function({"w": np.ones(3), "b": np.ones(2)}, 3, s=2.0)
    function({"w": np.ones((2, 3)), "b": np.ones(2)}, 3)
    function.save(tmp_path / "g.graphc")
    return tmp_path / "g.graphc", function


@pytest.mark.slow
def test_a_call_in_another_process_imports_nothing_that_traces(tmp_path: Path) -> None:
    place, _ = trees(tmp_path)
    code = f"""
        import sys
        import numpy as np, graphc
        f = graphc.load({str(place)!r}, recompile=False)
        for _ in range(2):
            assert f({{"b": np.ones(4), "w": np.ones(3)}}, 3, s=2.0)["u"].tolist() == [5.0] * 3
            assert f({{"w": np.ones((1, 3)), "b": np.ones(2)}}, 3)["v"] == [2.0]
        rooms = ("autodiff", "control", "ir.parse", "ir.text", "ops", "tensor", "tracing", "rewrite")
        assert f.__name__ == "computed" and callable(f)
        assert not {{"numba", "llvmlite", *(f"graphc.{{name}}" for name in rooms)}} & set(sys.modules)
        assert len(f.variants()) == 2 and graphc.compilations() == 0
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=False, timeout=300, env={**os.environ, "GRAPHC_CACHE": "off"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_what_is_loaded_is_a_jitted_function(tmp_path: Path) -> None:
    place, function = trees(tmp_path)
    loaded = graphc.load(place)
    tree = {"w": np.arange(3.0), "b": np.ones(2)}
    assert isinstance(loaded, Jitted) and {loaded: 1}[loaded] == 1 and "variants" in dir(loaded)
    assert repr(loaded).startswith("<compiled on call: computed")
    for _ in range(3):
        assert_same(loaded(tree, 3, s=2.0), function(tree, 3, s=2.0))
        assert_same(loaded({**tree, "w": np.ones((2, 3))}, 3), function({**tree, "w": np.ones((2, 3))}, 3))
        assert_same(
            loaded({**tree, "w": np.arange(6.0)[::2]}, 3, s=2.0), function({**tree, "w": tree["w"] * 2}, 3, s=2.0)
        )
    out = {"u": np.empty(3), "v": [None]}
    assert loaded(tree, 3, s=2.0, out=out)["u"] is out["u"] and out["u"].tolist() == [2, 5, 8]
    with pytest.raises(ArgumentError, match="loaded without its program"):
        loaded(tree, 4, s=2.0)
    with pytest.raises(ArgumentError, match="loaded without its program"):
        graphc.grad(loaded)(tree, 3, s=2.0)
    holder: Any = type("Holder", (), {"method": loaded})
    assert holder().method.__func__ is loaded and holder.method is loaded
    assert copy.copy({"f": loaded})["f"] is loaded
    assert loaded.function_for(tree, 3, s=2.0) is loaded.functions[0]


def changed_header(place: Path, change: Callable[[Any], None]) -> None:
    """Write a file again with another header and its right digest."""
    content = place.read_bytes()
    first, _, _ = content.partition(b"\n")
    length = int(first.split()[-1])
    header = json.loads(content[len(first) + 1 :][:length])
    blobs = content[aligned(len(first) + 1 + length) :]
    change(header)
    head = json.dumps(header).encode()
    whole = b"%s%s %d\n" % (FIRST, digest_of(head).encode(), len(head)) + head
    place.write_bytes(whole.ljust(aligned(len(whole)), b"\0") + blobs)


def put(name: str, value: Any, header: Any) -> None:
    header["variants"][0][name] = value


def test_headers_of_another_form_are_errors(tmp_path: Path) -> None:
    place, _ = trees(tmp_path)
    whole, tree = place.read_bytes(), {"w": np.arange(3.0), "b": np.ones(2)}
    changed_header(place, lambda header: None)
    expected = graphc.load(place)(tree, 3, s=2.0)
    rows = ("types", "arguments", "leaves", "static", "fixed", "results", "guards", "ones", "function")
    refused = 0
    for name in rows:
        for value in (None, 7, [], [["leaf"]], ["dict", ["u", ["leaf"]]]):
            place.write_bytes(whole)
            changed_header(place, partial(put, name, value))
            try:
                loaded = graphc.load(place)
                assert_same(loaded(tree, 3, s=2.0), expected)
                loaded.variants()
            except GraphcError:
                refused += 1
    assert refused >= 30, refused
