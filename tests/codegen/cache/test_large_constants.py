"""Large constants: no text is made of their elements, no copy beside the one that the graph keeps, and the cache knows
them by digests."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as gnp
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.ir.expression import LONGEST, label
from graphc.ir.node import literal
from graphc.ir.text import graph_key_text, graph_of, print_graph
from graphc.ir.types import LARGE_BYTES
from graphc.options import options

ROWS = 400_000
DATA = np.random.default_rng(5).normal(size=(ROWS, 3))
FLAT = np.sort(DATA.ravel())
FALLING = -FLAT
LABELS = np.random.default_rng(6).integers(0, 3, size=3 * ROWS)
KILOBYTES = 2**10


def scan(x: Any) -> Any:
    rows = T.as_tensor_variable(DATA)
    return graphc.scan(lambda row, state: state + (row * x).sum(), rows, T.as_tensor_variable(0.0))[0][-1]


USES: dict[str, Callable[[Any], Any]] = {
    "matmul": lambda x: (DATA @ x).sum(),
    "add": lambda x: (DATA + x).sum(),
    "tensordot": lambda x: gnp.tensordot(DATA, x, axes=1).sum(),
    "reshape": lambda x: gnp.asarray(DATA).reshape((3, ROWS)).sum(axis=1) @ x,
    "norm": lambda x: gnp.linalg.norm(DATA - x),
    "interp": lambda x: gnp.interp(x, FLAT, FALLING).sum(),
    "convolve": lambda x: gnp.convolve(FLAT, x).sum(),
    "gather": lambda x: x[LABELS].sum(),
    "scan": scan,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", USES)
def test_a_large_constant_is_copied_once(name: str, tmp_path: Path) -> None:
    x = T.dvector("x")
    with options.change(cache=True, cache_dir=tmp_path, mode="compiled"):
        graphc.function([x], (x * DATA[:3, 0]).sum())  # what all compilations need
        tracemalloc.start()
        function = graphc.function([x], USES[name](x))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < (1.6 + (name == "interp")) * DATA.nbytes, "one copy of each constant"
        assert sum(file.stat().st_size for file in tmp_path.rglob("*")) < 1000 * KILOBYTES
    given = np.array([0.3, -0.2, 0.7])
    inside = graphc.function([x], USES[name](x), mode="interpreted") if name != "scan" else None
    want = inside(given) if inside else (DATA @ given).sum()
    np.testing.assert_allclose(function(given), want, rtol=1e-7, atol=1e-6)


def test_no_message_is_made_of_elements() -> None:
    x = T.dvector("x")
    for made in (
        literal(DATA),
        literal(FLAT),
        x[LABELS],
        x[LABELS[:5000].tolist()],
        T.dot(DATA, x),
        literal(DATA) + 1.0,
    ):
        tracemalloc.start()
        text = label(made)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(text) <= 3 * LONGEST and peak < 64 * KILOBYTES, text
    assert label(literal(np.arange(3.0))) == "[0.0, 1.0, 2.0]"
    assert label(literal(np.arange(100.0))) == "<constant float64[100]>"
    with pytest.raises(GraphcError) as caught:
        T.dot(literal(DATA), T.tensor("float64", shape=(5,), name="y"))
    assert len(str(caught.value)) < 1000


def test_the_key_tells_large_constants_apart_by_digests() -> None:
    count = LARGE_BYTES // 8 + 1
    one, other = np.zeros(count), np.zeros(count)
    other[-1] = -0.0
    texts = {graph_key_text(graph_of((literal(value),))) for value in (one, other, one.reshape(1, -1), one[:-1])}
    assert len(texts) == 4
    assert sorted(len(text) < KILOBYTES for text in texts) == [False, True, True, True]
    assert literal(one) is literal(one.copy()) is not literal(other)
    graph = graph_of((literal(other),))
    (back,) = graphc.parse_graph(print_graph(graph)).outputs
    assert back is graph.outputs[0], "what is printed for a reader has all bits"


@pytest.mark.slow
def test_an_entry_is_loaded_with_the_constants_of_the_graph(tmp_path: Path) -> None:
    x = T.dvector("x")
    turned = T.as_tensor_variable(DATA[:9000]).T  # a constant that rewriting may make another of
    outputs = [T.dot(DATA, x).sum(), T.dot(turned, turned.T), (T.as_tensor_variable(FLAT) * 2.0)[:4] + x[0]]
    with options.change(cache=True, cache_dir=tmp_path, mode="compiled"):
        results = []
        for count in (1, 2):
            function: Any = graphc.function([x], outputs)
            assert function.built.report.origin == ("compiled", "cache")[count - 1]
            results.append(function(np.ones(3)))
            del function
    for got, again in zip(*results, strict=True):
        np.testing.assert_array_equal(got, again)
    np.testing.assert_allclose(results[0][0], DATA.sum(), rtol=1e-9)
    np.testing.assert_allclose(results[0][1], DATA[:9000].T @ DATA[:9000], rtol=1e-9)
    np.testing.assert_array_equal(results[0][2], FLAT[:4] * 2.0 + 1.0)
