"""Functions of networks against their definitions: losses of scores, blocks, neighbourhoods, larger images, dropout,
the loss of sequences and attention; what they cost in memory, and what they refuse."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import nnet
from graphc.errors import GraphcError, GraphTypeError, IndexOutOfBounds
from graphc.ir.node import variable
from graphc.random.streams import RandomStreams
from graphc.tensor.nnet.losses import ctc
from graphc.tensor.nnet.normalization import scaled_dot_product_attention as attention
from graphc.tensor.nnet.scores import sparse_block_gemv, sparse_block_outer
from graphc.testing import check_gradient

RNG = np.random.default_rng(11)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def both_modes(inputs: Any, rows: Any, values: Any) -> None:
    """Nodes have the values that are wanted, in one interpreted and one compiled function."""
    for mode in ("interpreted", "compiled"):
        found = graphc.function(inputs, [node for node, _ in rows], mode=mode)(*values)
        for number, (result, (_, wanted)) in enumerate(zip(found, rows, strict=True)):
            np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-12, err_msg=f"{mode} {number}")


def test_rectifiers_of_arrays_are_arrays() -> None:
    """As Theano's, which are arithmetic; with the values and the dtypes that tensors have."""
    x = np.array([-3, 0, 2, 5])
    rows = [(nnet.relu, 0), (nnet.relu, 0.5), (nnet.leaky_relu, np.float32(0.1)), (nnet.relu, np.arange(4.0))]
    for dtype in ("float32", "float64", "int64", "int8"):
        values = x.astype(dtype)
        made = [rectify(T.as_tensor(values), alpha) for rectify, alpha in rows] + [nnet.softsign(T.as_tensor(values))]
        wanted = graphc.function([], made, mode="interpreted")()
        found = [rectify(values, alpha) for rectify, alpha in rows] + [nnet.softsign(values)]
        for got, want in zip(found, wanted, strict=True):
            assert isinstance(got, np.ndarray) and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-6)
    assert nnet.relu(-2.0) == 0.0 and np.isnan(nnet.relu(np.array([np.nan, 1.0]))).tolist() == [True, False]
    assert isinstance(nnet.relu(x, T.dscalar("alpha")), graphc.Node)


@pytest.mark.slow
def test_losses_of_scores() -> None:
    x, b, y = T.dmatrix("x"), T.dvector("b"), T.ivector("y")
    scores, bias, classes = RNG.normal(size=(4, 5)), RNG.normal(size=5), np.array([0, 3, 4, 3], "int32")
    p, biased = softmax(scores), softmax(scores + bias)
    loss, with_bias = (-np.log(each[np.arange(4), classes]) for each in (p, biased))
    one_hot = np.eye(5)[classes]
    slope = np.arange(4.0)
    cost = nnet.crossentropy_softmax_1hot_with_bias(x, b, y)[0]
    rows = [
        (nnet.softmax_with_bias(x, b), biased),
        *zip(nnet.crossentropy_softmax_1hot(x, y), (loss, p), strict=True),
        *zip(
            nnet.crossentropy_softmax_argmax_1hot_with_bias(x, b, y),
            (with_bias, biased, biased.argmax(1)),
            strict=True,
        ),
        *zip(nnet.crossentropy_softmax_max_and_argmax_1hot(x, y), (loss, p, p.max(1), p.argmax(1)), strict=True),
        (nnet.crossentropy_softmax_max_and_argmax_1hot_with_bias(x, b, y)[2], biased.max(1)),
        (nnet.crossentropy_softmax_1hot_with_bias_dx(slope, softmax(scores), y), slope[:, None] * (p - one_hot)),
        *zip(T.grad((cost * slope).sum(), [x, b]), ((slope[:, None] * (biased - one_hot)), 0), strict=True),
    ]
    rows[-1] = (rows[-1][0], (slope[:, None] * (biased - one_hot)).sum(0))
    assert rows[5][0].dtype == "int32"
    unneeded = T.ivector("unneeded")  # but taken, as any result of Theano's op has all three of its inputs
    found = nnet.crossentropy_softmax_argmax_1hot_with_bias(x, b, unneeded)[1]
    chances = graphc.function([x, b, unneeded], found, mode="interpreted")(scores, bias, classes)
    np.testing.assert_allclose(chances, biased)
    both_modes([x, b, y], rows, [scores, bias, classes])


def test_activations_of_other_frameworks() -> None:
    x = T.dmatrix("x")
    value = np.array([[-30.0, -1.5, 0.0, 0.4], [2.0, 0.7, -0.2, 9.0]])
    sigmoid, softplus = 1 / (1 + np.exp(-value)), np.logaddexp(0, value)
    rows = [
        (nnet.glu(x), value[:, :2] * sigmoid[:, 2:]),
        (nnet.glu(x, 0), value[:1] * sigmoid[1:]),
        (nnet.hard_tanh(x), np.clip(value, -1, 1)),
        (nnet.log_sigmoid(x), -np.logaddexp(0, -value)),
        (nnet.mish(x), value * np.tanh(softplus)),
        (nnet.squareplus(x), (value + np.sqrt(value**2 + 4)) / 2),
    ]
    both_modes([x], rows, [value])
    for function in (nnet.glu, nnet.log_sigmoid, nnet.mish, nnet.squareplus):
        check_gradient(function, value[:, :2])
    with pytest.raises(GraphcError, match="x"):
        graphc.function([x], nnet.glu(x), mode="interpreted")(value[:, :3])


@pytest.mark.slow
def test_softmax_of_two_levels_and_blocks() -> None:
    x, y = T.dmatrix("x"), T.lmatrix("y")
    features, targets = RNG.normal(size=(3, 4)), np.array([[2], [7], [0]])
    w1, b1, w2, b2 = (RNG.normal(size=size) for size in ((4, 3), 3, (3, 4, 5), (3, 5)))
    first, second = softmax(features @ w1 + b1), softmax(np.einsum("bf,cfo->bco", features, w2) + b2)
    whole = (first[:, :, None] * second).reshape(3, -1)
    weights, blocks = RNG.normal(size=(3, 4, 2, 5)), RNG.normal(size=(2, 2, 2))
    given, wanted, bias = np.array([[0, 2], [1, 1]]), np.array([[3, 0, 1], [2, 2, 0]]), RNG.normal(size=(4, 5))
    product = bias[wanted].copy()
    outer = np.zeros((3, 4, 2, 5))
    for k, i, j in np.ndindex(2, 2, 3):
        product[k, j] += blocks[k, i] @ weights[given[k, i], wanted[k, j]]
        outer[given[k, i], wanted[k, j]] += 0.5 * np.outer(blocks[k, i], product[k, j] * 0 + bias[wanted[k, j]])
    rows = [
        (nnet.h_softmax(x, 3, 14, 3, 5, w1, b1, w2, b2), whole[:, :14]),
        (nnet.h_softmax(x, 3, 14, 3, 5, w1, b1, w2, b2, y), whole[np.arange(3), targets[:, 0]]),
        (nnet.h_softmax(x[:0], 0, 14, 3, 5, w1, b1, w2, b2), whole[:0, :14]),
        (nnet.sparse_block_dot(weights, blocks, given, bias, wanted), product),
        (nnet.sparse_block_dot(weights, blocks[0], given[0], bias, wanted[0]), product[:1]),
        (sparse_block_gemv(bias[wanted], weights, blocks, given, wanted), product),
        (sparse_block_outer(np.zeros((3, 4, 2, 5)), blocks, bias[wanted], given, wanted, 0.5), outer),
    ]
    both_modes([x, y], rows, [features, targets])
    check_gradient(lambda w, h, b: nnet.sparse_block_dot(w, h, given, b, wanted), weights, blocks, bias)


def neighbourhoods(x: Any, widths: Any, strides: Any, mode: str) -> Any:
    border = {"half": [w // 2 for w in widths], "full": [w - 1 for w in widths]}.get(mode, [0, 0])
    pads = [(w // 2,) * 2 for w in widths] if mode == "wrap_centered" else [(b, b) for b in border]
    padded = np.pad(x, ((0, 0), (0, 0), *pads), mode="wrap" if mode == "wrap_centered" else "constant")
    counts = [(n - w) // s + 1 for n, w, s in zip(padded.shape[2:], widths, strides, strict=True)]
    found = []
    for n, c, i, j in np.ndindex(*x.shape[:2], *counts):
        top, left = i * strides[0], j * strides[1]
        found.append(padded[n, c, top : top + widths[0], left : left + widths[1]].ravel())
    return np.array(found)


@pytest.mark.slow
def test_neighbourhoods() -> None:
    """The cases were compared with Theano 1.0.5's numbers."""
    x, w = T.dtensor4("x"), T.dtensor4("w")
    even, odd = np.arange(72.0).reshape(2, 1, 6, 6), np.arange(70.0).reshape(1, 2, 5, 7)
    cases: list[tuple[str, Any, Any, bool]] = [
        ("valid", (2, 3), None, True), ("valid", (2, 2), (1, 2), True), ("ignore_borders", (2, 3), None, False),
        ("ignore_borders", (3, 3), (1, 2), False), ("half", (3, 3), (1, 1), False), ("half", (2, 2), (2, 2), True),
        ("full", (3, 3), (1, 1), False), ("full", (2, 2), (1, 1), True), ("wrap_centered", (3, 3), (1, 1), False),
        ("wrap_centered", (3, 5), (2, 3), False),
    ]  # fmt: skip
    rows = [
        (
            nnet.images2neibs(x if first else w, widths, steps, mode),
            neighbourhoods(even if first else odd, widths, steps or widths, mode),
        )
        for mode, widths, steps, first in cases
    ]
    back, parts = odd.copy(), nnet.images2neibs(w, (2, 2), mode="ignore_borders")
    back[:, :, 4:] = back[:, :, :, 6:] = 0
    rows += [
        (nnet.neibs2images(nnet.images2neibs(x, (3, 2)), (3, 2), x.shape), even),
        (nnet.neibs2images(parts, (2, 2), w.shape, "ignore_borders"), back),
    ]
    both_modes([x, w], rows, [even, odd])
    check_gradient(lambda x: nnet.images2neibs(x, (2, 2), (1, 1), "full") ** 2, RNG.normal(size=(1, 1, 3, 3)))
    f = graphc.function([x], nnet.images2neibs(x, (4, 4)), mode="interpreted")
    with pytest.raises(GraphcError, match="do not fill axis 2"):
        f(even)


def interpolated(x: Any, ratio: int, step: int) -> Any:
    """Theano's construction along the last axis: a triangle around each element, of an axis with its ends repeated,
    every `step`-th of what they add up to."""
    n, edges = x.shape[-1], np.concatenate([x[..., :1], x, x[..., -1:]], -1)
    full = np.zeros((*x.shape[:-1], (n + 1) * ratio + 2 * ratio - 1))
    triangle = np.convolve(np.ones(ratio), np.ones(ratio)) / ratio
    for k in range(n + 2):
        full[..., k * ratio : k * ratio + 2 * ratio - 1] += edges[..., k, None] * triangle
    start = 2 * ratio - (ratio - 1) // 2 - 1
    return full[..., start : start + n * ratio : step]


@pytest.mark.slow
def test_larger_images() -> None:
    x, ratio = T.dtensor4("x"), T.lscalar("ratio")
    image = RNG.normal(size=(2, 1, 2, 3))

    def both(down: tuple[int, int], along: tuple[int, int]) -> Any:
        return np.swapaxes(interpolated(np.swapaxes(interpolated(image, *along), 2, 3), *down), 2, 3)

    rows = [
        *((nnet.bilinear_upsampling(x, number), both((number, 1), (number, 1))) for number in (1, 2, 3, 4)),
        (nnet.abstract_conv.bilinear_upsampling(x, ratio), both((3, 1), (3, 1))),
        (nnet.bilinear_upsampling(x, frac_ratio=(6, 4), use_1D_kernel=False), both((3, 2), (3, 2))),
        (nnet.frac_bilinear_upsampling(x, ((5, 2), (4, 3))), both((5, 2), (4, 3))),
        (nnet.bilinear_kernel_1D(3), [1 / 3, 2 / 3, 1, 2 / 3, 1 / 3]),
        (nnet.bilinear_kernel_2D((1, 2), False), [[1, 2, 1]]),
    ]
    both_modes([x, ratio], rows, [image, 3])
    check_gradient(lambda x: nnet.bilinear_upsampling(x, 2) ** 2, image)


@pytest.mark.slow
def test_dropout_and_embeddings() -> None:
    x, w, table, at = T.fmatrix("x"), T.fmatrix("w"), T.dmatrix("table"), T.lmatrix("at")
    stream = RandomStreams(5)
    dropped = nnet.dropout(x, 0.25, stream)
    images = nnet.dropout(T.ones((5, 200, 2, 2)), 0.5, stream, rescale=False, shared_axes=(2, 3))
    f = graphc.function([x, w], [dropped, T.grad(dropped.sum(), x), images, nnet.drop_connect(x, w, 0.5, stream)])
    ones = np.ones((300, 40), "f")
    first, slope, channels, connected = f(ones, np.ones((40, 400), "f"))
    assert first.dtype == "float32"
    assert set(np.unique(first)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((first == 0).mean() - 0.25) < 0.02
    assert (slope == first).all()
    assert (channels == channels[:, :, :1, :1]).all()
    assert 0.4 < channels.mean() < 0.6
    assert abs(connected.mean() - 40) < 1
    assert (f(ones, np.ones((40, 400), "f"))[0] != first).any()
    rows, indices = RNG.normal(size=(5, 2)), np.array([[0, 3], [3, 4]])
    found = nnet.embedding(at, table)
    g = graphc.function([at, table], [found, T.grad((found**2).sum(), table)])
    value, gradient = g(indices, rows)
    assert (value == rows[indices]).all()
    assert np.allclose(gradient, 2 * rows * np.array([1, 0, 0, 2, 1])[:, None])
    with pytest.raises(IndexOutOfBounds):
        g(indices + 3, rows)


def brute_force(scores: Any, labels: Any, lengths: Any) -> Any:
    """-log of the sum over all paths that read as the labels."""
    losses = []
    for row, (marks, length) in enumerate(zip(labels, lengths, strict=True)):
        wanted = [mark for mark in marks if mark >= 0]
        logs = np.log(softmax(scores[:length, row]))
        total = 0.0
        for path in itertools.product(range(scores.shape[2]), repeat=length):
            if [symbol for symbol, _ in itertools.groupby(path) if symbol] == wanted:
                total += np.exp(sum(logs[time, symbol] for time, symbol in enumerate(path)))
        losses.append(-np.log(total) if total else np.inf)
    return np.array(losses)


@pytest.mark.slow
def test_the_loss_of_sequences() -> None:
    scores, labels, lengths = T.dtensor3("scores"), T.imatrix("labels"), T.ivector("lengths")
    values = RNG.normal(size=(5, 4, 3))
    cost = ctc(scores, labels, lengths)
    cases: list[tuple[Any, Any]] = [
        ([[1, 2, -1], [1, 1, 2], [-1, 2, -1], [-1, -1, -1]], [5, 5, 3, 4]),
        ([[1, 1, 1], [1, 1, 1], [2, 1, 2], [2, -1, -1]], [4, 5, 3, 0]),
    ]
    for mode in ("interpreted", "compiled"):
        f = graphc.function([scores, labels, lengths], [cost, T.grad(cost.sum(), scores)], mode=mode)
        for marks, times in cases:
            found, gradient = f(values, np.array(marks, "int32"), np.array(times, "int32"))
            np.testing.assert_allclose(found, brute_force(values, marks, times), rtol=1e-9)
            assert np.isfinite(gradient).all()
            for row, length in enumerate(times):
                assert not gradient[length:, row].any()
    marks, times = cases[0]
    check_gradient(lambda x: ctc(x, np.array(marks), np.array(times)), values)
    single = ctc(scores.astype("float32"), labels, lengths)
    assert (
        graphc.function([scores, labels, lengths], single, mode="interpreted")(
            50 * values, np.array(marks, "int32"), np.array(times, "int32")
        ).dtype
        == "float32"
    )


def attended(arrays: Any, mask: Any = None, causal: bool = False) -> Any:
    q, k, v = arrays
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(highest), highest, 0))
    total = powers.sum(-1, keepdims=True)
    return powers @ v / np.where(total == 0, 1, total)


@pytest.mark.slow
def test_attention() -> None:
    q, k, v, added = (T.dtensor4(name) for name in ("q", "k", "v", "added"))
    seen = variable("bool", [None, None], "seen")
    arrays: Any = [RNG.normal(size=size) for size in ((2, 3, 70, 5), (2, 3, 33, 5), (2, 3, 33, 4))]
    mask, bias = RNG.random((70, 33)) < 0.5, RNG.normal(size=(2, 3, 70, 33))
    mask[3] = False
    rows = [
        (nnet.scaled_dot_product_attention(q, k, v), attended(arrays)),
        (attention(q, k, v, causal=True), attended(arrays, causal=True)),
        (attention(q, k, v, seen), attended(arrays, mask)),
        (attention(q, k, v, added, True), attended(arrays, bias, True)),
        (attention(q, k, v, seen[:1]), attended(arrays, mask[:1])),
    ]
    both_modes([q, k, v, seen, added], rows[:4], [*arrays, mask, bias])
    small: Any = [RNG.normal(size=size) for size in ((2, 3, 2), (2, 4, 2), (2, 4, 3))]
    check_gradient(attention, *small)
    for size in ((3, 4), (1, 4), (2, 1, 4), (2, 3, 1), (1, 1, 1)):
        check_gradient(lambda q, k, v, m: attention(q, k, v, m, True), *small, RNG.normal(size=size))
    with pytest.raises(GraphTypeError, match="other axes"):
        attention(q, seen, v)


@pytest.mark.slow
def test_memory_of_attention_grows_with_its_length() -> None:
    q, k, v = (T.ftensor3(name) for name in "qkv")
    result, row = attention(q, k, v, causal=True), T.frow("row")
    masked = T.grad(attention(q, k, v, row).sum(), [q, k, v, row])
    for nodes, inputs in ((result, []), (T.grad(result.sum(), [q, k, v]), []), (masked, [row])):
        f = graphc.function([q, k, v, *inputs], nodes)
        sizes = [[(1, length, 16)] * 3 + [(1, length)] * len(inputs) for length in (1024, 4096)]
        one, four = (f.memory(*each).total for each in sizes)
        assert four < 4.2 * one < 2.0e7


def test_gradient_of_crossentropy_of_classes() -> None:
    p, y, g = T.dmatrix("p"), T.lvector("y"), T.dvector("g")
    cost = (nnet.crossentropy_categorical_1hot(p, y) * g).sum()
    found = nnet.crossentropy_categorical_1hot_grad(g, p, y)
    given = np.array([[0.2, 0.8, 0.0], [0.5, 0.25, 0.25]]), np.array([1, 2]), np.array([1.0, 2.0])
    f = graphc.function([p, y, g], [found, graphc.grad(cost, p)], mode="interpreted")
    for result in f(*given):
        np.testing.assert_array_equal(result, [[0, -1.25, 0], [0, 0, -8]])
    with pytest.raises(GraphTypeError, match="a matrix and a vector of integers"):
        nnet.crossentropy_categorical_1hot_grad(g, p, g)


def test_one_hot_rows_of_classes_out_of_range_are_an_error() -> None:
    y = T.ivector("y")
    f = graphc.function([y], nnet.to_one_hot(y, 3), mode="interpreted")
    assert f(np.array([2, -3], "int32")).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert f(np.zeros(0, "int32")).shape == (0, 3)
    for wrong in (3, -4):
        with pytest.raises(IndexOutOfBounds, match=f"index {wrong} of y"):
            f(np.array([wrong], "int32"))
    with pytest.raises(GraphTypeError, match="classes are integers"):
        nnet.to_one_hot(T.dvector(), 3)


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.slow)])
def test_a_class_below_zero_is_an_error(mode: Any) -> None:
    """It means that there is no label. As an index that counts from the end it would mean the last class."""
    x, y = T.dmatrix("x"), T.ivector("labels")
    cost = nnet.categorical_crossentropy(nnet.softmax(x), y)
    f = graphc.function([x, y], [cost, graphc.grad(cost.sum(), x)], mode=mode)
    assert [part.shape for part in f(np.zeros((0, 3)), np.zeros(0, "int32"))] == [(0,), (0, 3)]
    np.testing.assert_allclose(f(np.eye(2), np.array([1, 0], "int32"))[0], np.log(1 + np.e))
    with pytest.raises(IndexOutOfBounds, match="a class of labels .* is below 0"):
        f(np.eye(2), np.array([0, -1], "int32"))
    z = T.TensorType("uint8", (False,))("z")
    assert "checked" not in graphc.function([x, z], nnet.categorical_crossentropy(x, z), mode="interpreted").text
