"""Normalisation against its formulas, derivatives to second order, running statistics, how often memory is gone over,
what is special, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import nnet
from graphc.errors import GraphcError, GraphTypeError
from graphc.ir.node import variable
from graphc.testing import check_gradient
from tests.support.generated import code

SHAPES: list[tuple[tuple[int, ...], Any, tuple[int, ...]]] = [
    ((7, 3), "per-activation", (0,)),
    ((4, 3, 2, 5), "spatial", (0, 2, 3)),
    ((4, 3, 2), (0, 1), (0, 1)),
    ((2, 3, 4), "per-activation", (0,)),
    ((5, 6), (1,), (1,)),
]
"""Sizes, axes as they are given, and those that are meant."""


def normalized(x: Any, axes: tuple[int, ...], epsilon: float = 1e-5) -> Any:
    wide = x.astype("float64")
    return (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + epsilon)


def draw(shape: tuple[int, ...], seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(2.0, 3.0, size=shape)


@pytest.mark.slow
def test_batch_normalization() -> None:
    for dtype, mode in (("float64", "interpreted"), ("float32", "interpreted"), ("float32", "compiled")):
        inputs, nodes, values, expected = [], [], [], []
        for number, (shape, given, axes) in enumerate(SHAPES):
            short = tuple(size for axis, size in enumerate(shape) if axis not in axes)
            wide = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
            layout = wide if number % 2 else short
            x = variable(dtype, [None] * len(shape), "x")
            kind = [size if size == 1 else None for size in layout]
            gamma, beta, mean, var = (variable(dtype, kind, name) for name in "gbmv")
            results = nnet.bn.batch_normalization_train(
                x, gamma, beta, given, running_average_factor=0.3, running_mean=mean, running_var=var
            )
            tested = nnet.batch_normalization_test(x, gamma, beta, mean, var, given)
            arrays = [draw(shape), *(draw(layout, seed) for seed in (1, 2, 3)), draw(layout, 4) ** 2]
            value, (g, b, m, v) = arrays[0], (each.reshape(wide) for each in arrays[1:])
            batch_mean, batch_var = value.mean(axes), value.var(axes)
            count = value.size / batch_mean.size
            expected += [
                normalized(value, axes, 1e-4) * g + b,
                batch_mean.reshape(layout),
                1 / np.sqrt(batch_var.reshape(layout) + 1e-4),
                0.7 * arrays[3] + 0.3 * batch_mean.reshape(layout),
                0.7 * arrays[4] + 0.3 * batch_var.reshape(layout) * count / (count - 1),
                (value - m) / np.sqrt(v + 1e-4) * g + b,
            ]
            inputs += [x, gamma, beta, mean, var]
            nodes += [*results, tested]
            values += [each.astype(dtype) for each in arrays]
        found = graphc.function(inputs, nodes, mode=mode)(*values)
        for result, wanted in zip(found, expected, strict=True):
            assert result.dtype == dtype
            np.testing.assert_allclose(result, wanted, rtol=2e-4 if dtype == "float32" else 1e-9, atol=2e-5)


@pytest.mark.slow
def test_the_other_forms() -> None:
    x, images, g = T.dmatrix("x"), T.dtensor4("images"), T.dvector("g")
    matrix, pictures, gamma = draw((3, 5)), draw((2, 4, 3, 2)), draw((4,), 2)
    square = pictures**2
    padded = np.pad(square, ((0, 0), (1, 1), (0, 0), (0, 0)))
    near = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    column = gamma[:, None, None]
    rows: list[tuple[Any, Any]] = [
        (nnet.layer_norm(x), normalized(matrix, (1,))),
        (nnet.standardize(x, 0), normalized(matrix, (0,))),
        (nnet.layer_norm(images, axes=(1, 2, 3), gamma=x[0, 0], beta=1), 0),
        (nnet.layer_norm(images, images[0], images[1], (1, 2, 3)), 0),
        (nnet.rms_norm(x, 2.0), 2 * matrix / np.sqrt((matrix**2).mean(1, keepdims=True) + 1e-5)),
        (nnet.instance_norm(images, g, g), normalized(pictures, (2, 3)) * column + column),
        (nnet.group_norm(images, 2), normalized(pictures.reshape(2, 2, 2, 3, 2), (2, 3, 4)).reshape(2, 4, 3, 2)),
        (nnet.group_norm(images, 4, g), normalized(pictures, (2, 3)) * column),
        (
            nnet.local_response_normalization(images, 0.5, 1.5, 0.7, 3),
            pictures / (1.5 + 0.5 * near) ** 0.7,
        ),
        (nnet.batch_normalization(x, x[0], x[1], 1.5, 2.0), (matrix - 1.5) / 2 * matrix[0] + matrix[1]),
        (nnet.layer_norm(x[:0]), matrix[:0]),
        (nnet.layer_norm(T.arange(4)), normalized(np.arange(4.0), (0,))),
    ]
    whole = normalized(pictures, (1, 2, 3))
    rows[2] = (rows[2][0], whole * matrix[0, 0] + 1)
    rows[3] = (rows[3][0], whole * pictures[0] + pictures[1])
    for mode in ("interpreted", "compiled"):
        found = graphc.function([x, images, g], [node for node, _ in rows], mode=mode)(matrix, pictures, gamma)
        for result, (_, wanted) in zip(found, rows, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-12)


def test_derivatives_to_second_order() -> None:
    x, images, gamma, beta = draw((5, 3)), draw((2, 4, 3, 2)), draw((3,), 1), draw((3,), 2)

    def trained(x: Any, gamma: Any, beta: Any) -> list[Any]:
        out, mean, invstd, *new = nnet.batch_normalization_train(
            x, gamma, beta, running_mean=T.zeros_like(gamma), running_var=T.ones_like(gamma)
        )
        return [T.sin(out), T.sqr(mean), invstd, *new]

    check_gradient(trained, x, gamma, beta)
    check_gradient(lambda x, e: nnet.normalize(x, (1, 2, 3), e)[0] ** 2, images, np.array(0.7))
    check_gradient(lambda x, g: nnet.layer_norm(x, g, g), x, gamma)
    check_gradient(lambda x: nnet.group_norm(x, 2) ** 2, images)
    check_gradient(lambda x: nnet.local_response_normalization(x, 0.5, 1.0, 0.7, 3), images)


@pytest.mark.slow
def test_how_often_memory_is_gone_over() -> None:
    """Once for mean and variance, once for the result, once for the sums of the derivative, once for itself; and over a
    sixteenth of the rows for what mean and variance are counted from. Of a matrix the result and the sums share a pass,
    and sums have a nest more for the rows that are no block."""
    gamma, beta = T.fvector("gamma"), T.fvector("beta")
    for rank, axes, passes in ((2, "per-activation", 1 + 1 + 2 + 1 + 1), (4, "spatial", 1 + 4)):
        x = variable("float32", [None] * rank, "x")
        y = nnet.batch_normalization_train(x, gamma, beta, axes)[0]
        f = graphc.function([x, gamma, beta], T.grad(T.tanh(y).sum(), [x, gamma, beta]), mode="python")
        nests = [part for part in re.split(r"\ndef ", code(f.source)) if re.search(r"\bx\[", part)]
        assert len(nests) == passes


@pytest.mark.slow
def test_what_is_special() -> None:
    x = T.fmatrix("x")
    far = (1e4 + np.random.default_rng(1).normal(size=(400, 3))).astype("f")
    f = graphc.function([x], nnet.normalize(x, 0), mode="compiled")
    np.testing.assert_allclose(f(far)[0], normalized(far, (0,)), atol=2e-3)
    far[3, 1] = np.nan
    assert np.isnan(f(far)[0]).any(0).tolist() == [False, True, False]


def test_what_cannot_be_is_refused() -> None:
    x, v = T.dmatrix("image"), T.dvector("scale")
    wrongs: list[tuple[Any, str]] = [
        (lambda: nnet.batch_normalization_train(x, x, v), "beta scale .* has 1 axes"),
        (lambda: nnet.batch_normalization_train(x, v, v, "rows"), "neither 'per-activation'"),
        (lambda: nnet.batch_normalization_train(x, v, v, (2,)), "one of its axes"),
        (lambda: nnet.batch_normalization_train(x, v, v, epsilon=1e-8), "at least 1e-05"),
        (lambda: nnet.batch_normalization_train(x, v, v, running_mean=v), "both be given"),
        (lambda: nnet.batch_normalization(x, v, v, v, v, "fast"), "low_mem"),
        (lambda: nnet.instance_norm(x), "no axes after channels"),
        (lambda: nnet.local_response_normalization(x, n=2), "not an odd number"),
    ]
    for wrong, words in wrongs:
        with pytest.raises((GraphTypeError, ValueError), match=words):
            wrong()
    f = graphc.function([x], nnet.group_norm(x, 2), mode="interpreted")
    with pytest.raises(GraphcError, match="image"):
        f(np.zeros((2, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0, 3, 2, 2), (2, 3, 0, 2)])
def test_gradients_of_an_empty_batch(shape: tuple[int, ...]) -> None:
    """Sums over no elements: 0 for parameters, though the mean and the variance are NaN."""
    x, gamma, beta, epsilon = T.tensor4("x"), T.vector("gamma"), T.vector("beta"), T.scalar("epsilon")
    y, mean, _ = T.nnet.bn.batch_normalization_train(x, gamma, beta, "spatial", epsilon)
    gradients = graphc.grad(T.sqr(y).sum(), [x, gamma, beta, epsilon])
    for mode in ("interpreted", "compiled"):
        f = graphc.function([x, gamma, beta, epsilon], [*gradients, mean], mode=mode)
        *found, empty = f(np.zeros(shape), np.ones(3), np.ones(3), 0.1)
        assert np.isnan(empty).all() and found[0].shape == shape
        assert not any(np.any(each) for each in found[1:])
