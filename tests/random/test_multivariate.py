"""Normal vectors and Wishart matrices: their moments, shapes, modes, derivatives, misuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import graphc
import graphc.random as R
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.tensor.shared_randomstreams import RandomStreams

MEAN = np.array([1.0, 2.0, 3.0])
COV = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.7]])
KEY = R.key(3)


def values(*nodes: Any) -> list[Any]:
    return list(graphc.function([], list(nodes))())


@pytest.mark.slow
def test_moments() -> None:
    count = 40_000
    vectors, matrices, small = values(
        R.multivariate_normal(KEY, MEAN, COV, (count,)),
        R.wishart(KEY, 7.5, COV, (count,)),
        R.wishart(KEY, 3.0, [[2.0]], (count,)),
    )
    np.testing.assert_allclose(vectors.mean(0), MEAN, atol=5 * np.sqrt(2 / count))
    np.testing.assert_allclose(np.cov(vectors.T), COV, atol=5 * 3 / np.sqrt(count))
    lengths = np.einsum("ki,ij,kj->k", vectors - MEAN, np.linalg.inv(COV), vectors - MEAN)
    assert stats.kstest(lengths, stats.chi2(3).cdf).pvalue > 1e-4
    np.testing.assert_allclose(matrices.mean(0), 7.5 * COV, rtol=0.05, atol=0.1)
    spread = 7.5 * (COV**2 + np.outer(np.diag(COV), np.diag(COV)))
    np.testing.assert_allclose(matrices.var(0), spread, rtol=0.08)
    assert stats.kstest(small[:, 0, 0] / 2, stats.chi2(3).cdf).pvalue > 1e-4
    assert (np.linalg.eigvalsh(matrices[:100]) > 0).all()


@pytest.mark.slow
def test_shapes_dtypes_and_singular_covariances() -> None:
    two = np.stack([COV, 2 * COV]).astype("float32")
    singular = np.outer(MEAN, MEAN)
    found = values(
        R.multivariate_normal(KEY, MEAN.astype("float32"), two),
        R.multivariate_normal(KEY, np.zeros((4, 1, 3)), two, dtype="float64"),
        R.wishart(KEY, [4.0, 5.0], COV),
        R.multivariate_normal(KEY, np.zeros(3), singular, (5,), method="eigh"),
        R.multivariate_normal(KEY, np.zeros(3), singular, (5,), method="svd"),
        R.wishart(KEY, 1.5, COV),
    )
    assert [each.shape for each in found] == [(2, 3), (4, 2, 3), (2, 3, 3), (5, 3), (5, 3), (3, 3)]
    assert [each.dtype.name for each in found] == ["float32", *["float64"] * 5]
    for on_a_line in found[3:5]:
        np.testing.assert_allclose(on_a_line / on_a_line[:, :1], np.tile(MEAN, (5, 1)), rtol=1e-5)
    assert np.isnan(found[5]).any()


@pytest.mark.slow
def test_streams_and_modes_give_the_same() -> None:
    results = []
    for mode in ("compiled", "interpreted"):
        streams = RandomStreams(5)
        draws = [streams.multivariate_normal((2, 2), MEAN, COV), streams.wishart((2,), 5.0, COV)]
        f = graphc.function([], draws, mode=mode)
        results.append((f(), f()))
    (first, second), (again, _) = results
    for one, other, next_one in zip(first, again, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
        assert not np.allclose(one, next_one)
    assert first[0].shape == (2, 2, 3)
    assert first[1].shape == (2, 3, 3)


def test_derivatives_hold_what_was_drawn() -> None:
    mean, cov = T.dvector("mean"), T.dmatrix("cov")
    cost = (R.multivariate_normal(KEY, mean, cov, (4,)) ** 2).sum() + R.wishart(KEY, 6.0, cov).sum()
    f = graphc.function([mean, cov], [cost, *graphc.grad(cost, [mean, cov])], mode="interpreted")
    _, by_mean, by_cov = f(MEAN, COV)
    way, step = np.tril(np.random.default_rng(0).normal(size=(3, 3))), 1e-5
    expected = (f(MEAN, COV + step * way)[0] - f(MEAN, COV - step * way)[0]) / (2 * step)
    np.testing.assert_allclose((by_cov * way).sum(), expected, rtol=1e-7)
    expected = (f(MEAN + step, COV)[0] - f(MEAN - step, COV)[0]) / (2 * step)
    np.testing.assert_allclose(by_mean.sum(), expected, rtol=1e-7)


def test_misuse_is_told_of() -> None:
    wrongs: list[Callable[[], Any]] = [
        lambda: R.multivariate_normal(KEY, 1.0, COV),
        lambda: R.multivariate_normal(KEY, MEAN, COV, method="odd"),
        lambda: R.multivariate_normal(KEY, np.ones((2, 3)), COV, ()),
        lambda: R.multivariate_normal(KEY, np.ones(2), COV),
        lambda: R.wishart(KEY, 3.0, MEAN),
    ]
    for wrong in wrongs:
        with pytest.raises(GraphcError, match=r"multivariate_normal|wishart"):
            wrong()
    cov = T.dmatrix("cov")
    f = graphc.function([cov], R.multivariate_normal(KEY, MEAN, cov), mode="interpreted")
    with pytest.raises(np.linalg.LinAlgError, match="cov"):
        f(-COV)
