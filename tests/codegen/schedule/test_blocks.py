"""Products and convolutions whose rows are read a block at a time: the same numbers as in one piece, for every way in
which they are read."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.schedule import fusion
from graphc.tensor import nnet
from graphc.tensor.signal.pool import pool_2d


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, and no entry of the cache that knows others."""
    monkeypatch.setattr(fusion, "BLOCK_BYTES", 2048)
    monkeypatch.setattr(fusion, "OVERHEAD_RATIO", 0)
    monkeypatch.setattr(fusion, "SHORT_ROW", 1)
    monkeypatch.setattr(graphc.options, "cache", False)


def compare(f: Any, g: Any, *args: Any) -> None:
    """The compiled and the interpreted function on the same arguments; both add up as many numbers as a row has."""
    for got, want in zip(f(*args), g(*args), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4 if got.dtype == "float32" else 1e-11, atol=1e-4)


def numbers(seed: int, *shapes: int | tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


def both(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, Any]:
    return graphc.function(inputs, outputs), graphc.function(inputs, outputs, mode="interpreted")


@pytest.mark.slow
def test_convolutions_that_are_read_in_blocks(small_blocks: None) -> None:
    x, w, b = T.ftensor4("x"), T.ftensor4("w"), T.fvector("b")
    z = nnet.convolution(x, w, padding="same") + b.dimshuffle("x", 0, "x", "x")
    last = nnet.convolution(x.dimshuffle(0, 2, 3, 1), w.dimshuffle(2, 3, 1, 0), channels_last=True, stride=2)
    outputs = [
        nnet.relu(z),
        pool_2d(nnet.relu(nnet.convolution(x, w) + b.dimshuffle("x", 0, "x", "x")), (2, 2), ignore_border=True),
        T.tanh(last + b),
        nnet.softmax(nnet.convolution(x, w, dilation=2).flatten(2)),
        T.tanh(nnet.convolution(x, w, stride=3)).sum(0),
        *graphc.grad(nnet.relu(z).sum() + (last**2).sum(), [x, w, b]),
    ]
    f, g = both([x, w, b], outputs)
    assert str(f.explain()).count("while they are in cache") >= 3
    for images in (0, 1, 2, 7):
        compare(f, g, *numbers(images, (images, 3, 9, 11), (5, 3, 3, 3), 5))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_products_that_are_read_in_blocks(small_blocks: None, dtype: str) -> None:
    x, w, b = T.matrix("x", dtype=dtype), T.matrix("w", dtype=dtype), T.vector("b", dtype=dtype)
    z = T.dot(x, w)
    outputs = [
        T.maximum(z + b, 0),
        T.dot(x[::-1] + 1, w).T * 2,
        (T.dot(x, w[:, ::-1]) + b).max(axis=1),
        T.dot(w.T, x.T + 2) + 1,
        T.dot(x, x.T) - 1,
        T.dot(x + 3, w)[1:] - T.dot(x + 3, w)[:-1],
    ]
    f, g = both([x, w, b], outputs)
    assert str(f.explain()).count("while they are in cache") >= 3
    for rows, summed, columns in ((1, 1, 1), (2, 0, 5), (9, 4, 300), (400, 3, 2), (33, 40, 50)):
        x_, w_, b_ = numbers(rows, (rows, summed), (summed, columns), columns)
        compare(f, g, (4 * x_).astype(dtype), (4 * w_).astype(dtype), (4 * b_).astype(dtype))


@pytest.mark.slow
def test_loops_within_a_row_of_a_block(small_blocks: None) -> None:
    """The rows of a product and those of a sum within them: a loop in one over a block."""
    x, w, v = T.dmatrix("x"), T.dmatrix("w"), T.dvector("v")
    loop = graphc.map(lambda e: nnet.softmax(T.outer(e, v)).sum(axis=0) + T.dot(e, w), x)[0]
    f, g = both([x, w, v], [loop, *graphc.grad(T.sin(loop).sum(), [x, w, v])])
    rng = np.random.default_rng(0)
    for rows, size in ((0, 1), (1, 1), (5, 3), (40, 3), (70, 20)):
        compare(f, g, rng.normal(size=(rows, size)), rng.normal(size=(size, size)), rng.normal(size=size))


@pytest.mark.slow
def test_a_result_that_others_read_too_is_kept(small_blocks: None) -> None:
    x, w = T.fmatrix("x"), T.fmatrix("w")
    z = T.dot(x, w)
    f, g = both([x, w], [T.exp(z * 0.1), z])
    assert "while they are in cache" not in str(f.explain())
    compare(f, g, *numbers(0, (70, 20), (20, 40)))
    f, g = both([x, w], [nnet.relu(z), T.dot(z.T, z)])
    compare(f, g, *numbers(1, (70, 20), (20, 40)))


def test_updates_of_what_is_multiplied(small_blocks: None) -> None:
    w = graphc.shared(np.eye(40, dtype="float32"), name="w")
    x = T.fmatrix("x")
    y = T.tanh(T.dot(x, w))
    start = w.get_value()
    found = []
    for mode in ("compiled", "interpreted"):
        w.set_value(start)
        f = graphc.function([x], y, updates=[(w, T.dot(w, w) + y)], mode=mode)
        (x_,) = numbers(2, (40, 40))
        found.append((f(x_), f(x_), w.get_value()))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_static_sizes_have_static_blocks(small_blocks: None) -> None:
    x, w = T.tensor("float32", shape=(64, 24), name="x"), T.tensor("float32", shape=(24, 32), name="w")
    f, g = both([x, w], [nnet.relu(T.dot(x, w)) * 2])
    assert "blocks of 16 rows" in str(f.explain())
    compare(f, g, *numbers(3, (64, 24), (24, 32)))
