"""Functions that are found by a text (functions/factory.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.functions.factory import find_code, load_code, store_code
from graphc.ir.node import Node
from graphc.options import options


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path) -> Any:
    with options.change(cache_dir=str(tmp_path)):
        yield


def graph_of(x: Node, y: Node) -> list[Node]:
    return [T.sum(T.exp(x) * y[0]), T.dot(x, x) - y]


def test_a_function_is_found_by_its_text_and_its_graph_made_when_it_is_looked_at() -> None:
    x, y = T.dvectors("x", "y")
    written = graphc.function([x, y], graph_of(x, y), name="two")
    assert find_code("two of x and y") is None
    store_code("two of x and y", written, ["plain", 3])
    found = find_code("two of x and y")
    assert found is not None and (found.name, found.note) == ("two", ["plain", 3])
    made: list[int] = []

    def make() -> list[Node]:
        made.append(1)
        return graph_of(a, b)

    a, b = T.dvectors("x", "y")
    again = load_code(found, [a, b], make, "list", None)
    values = np.array([0.5, 1.5, np.nan]), np.array([2.0, 3.0])
    for mine, own in zip(again(*values), written(*values), strict=True):
        np.testing.assert_array_equal(mine, own)
    np.testing.assert_array_equal(again(y=values[1], x=values[0].tolist())[1], written(*values)[1])
    assert not made and again.name == "two"
    with pytest.raises(graphc.errors.IndexOutOfBounds):
        again(values[0], np.zeros(0))
    assert made == [1]
    assert again.text == written.text and "def kernel" in again.source
    assert made == [1]


def test_what_is_kept_counts_for_the_same_options_alone() -> None:
    x = T.dvector("x")
    store_code("exp", graphc.function([x], T.exp(x)), None)
    assert find_code("exp") is not None and find_code("exp ") is None
    for changes in (
        {"fast_math": True},
        {"cache": False},
        {"mode": "interpreted"},
        {"excluding": "logaddexp_of_zero"},
        {"floatX": "float32"},
    ):
        with options.change(**changes):
            assert find_code("exp") is None, changes


def test_a_function_of_shared_variables_or_of_another_mode_is_not_kept() -> None:
    x, total = T.dscalar("x"), graphc.shared(0.0)
    for number, made in enumerate(
        [
            graphc.function([x], x + total),
            graphc.function([x], x, mode="interpreted"),
            graphc.function([x], x, mode="python"),
        ]
    ):
        store_code(f"number {number}", made, None)
        assert find_code(f"number {number}") is None
