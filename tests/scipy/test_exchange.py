"""SciPy's own functions in traced functions: under any name, they are those of `graphc.scipy`, or are refused."""

# ruff: noqa: PLW0108 - the lambdas are programs
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from inspect import CO_GENERATOR
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.spatial
import scipy.special
import scipy.stats
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import distance
from scipy.special import logsumexp
from scipy.stats import norm

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError, GraphValueError
from graphc.scipy import exchange


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    with graphc.options.change(mode="interpreted"):
        yield


X = np.array([0.5, 1.5, 2.5])
K = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
PLACES = np.array([[0.3, -1.2, 0.7], [1.1, 0.4, -0.6], [-0.8, 0.9, 2.1], [0.2, 1.7, -1.4]])


def written(x: Any) -> Any:
    a = np.zeros(3)
    a[1:] = x[1:]
    a[0] = scipy.special.gamma(x[0])
    return logsumexp(a) + scipy.linalg.norm(a)


def known(x: Any) -> Any:
    a = np.zeros(3)
    a[1] = 2.0
    return x * logsumexp(a)


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (lambda x, y: scipy.special.beta(x, y), (X, 2 * X)),
    (lambda x: scipy.special.exp1(x), (X,)),
    (lambda x: scipy.special.airy(x)[1], (X,)),
    (lambda x: logsumexp(x, b=[1.0, 2.0, 3.0]), (X,)),
    (lambda x: scipy.special.multigammaln(x[2] + 3, 2), (X,)),
    (lambda x: scipy.special.softmax(x), (X,)),
    (lambda x, m, s: norm.logpdf(x, m, s), (X, 0.3, 2.0)),
    (lambda x, m: scipy.stats.gamma(m, scale=2.0).logcdf(x), (X, 1.7)),
    (lambda x: scipy.stats.gamma(1.7).sf(x), (X,)),
    (lambda x: scipy.stats.poisson.logpmf([0, 1, 2], x), (X,)),
    (lambda m: scipy.stats.t.std(m), (4.5,)),
    (lambda c, m: np.stack(scipy.stats.norm.interval(c, m, 2.0)), (0.9, 0.3)),
    (lambda m, k: scipy.stats.multivariate_normal.logpdf(X, m, k), (0 * X, K)),
    (lambda m, k: scipy.stats.multivariate_normal(m, k).logpdf(X), (0 * X, K)),
    (lambda k, x: cho_solve(cho_factor(k, lower=True), x), (K, X)),
    (lambda k: scipy.linalg.expm(k), (0.2 * K,)),
    (lambda k, x: scipy.linalg.solve(k, x, assume_a="pos"), (K, X)),
    (lambda x: scipy.stats.zscore(x), (X,)),
    (lambda x: scipy.integrate.trapezoid(x, dx=0.5), (X,)),
    *(
        (lambda x, y, name=name, weights=weights: distance.cdist(x, y, name, **weights), (K, PLACES))
        for weights in ({}, {"w": [1.0, 2.0, 0.5]})
        for name in (
            "euclidean sqeuclidean cityblock minkowski cosine correlation canberra braycurtis hamming "
            + ("chebyshev seuclidean" if not weights else "")
        ).split()
    ),
    (lambda x, y: distance.cdist(x, y, "minkowski", p=3), (K, PLACES)),
    (lambda x, y: distance.cdist(x, y, distance.cityblock), (K, PLACES)),
    (lambda x, y: distance.cdist(x, y, "mahalanobis", VI=y.T @ y), (K, PLACES)),
    (lambda x: distance.squareform(distance.pdist(x)), (PLACES,)),
    (lambda x: distance.squareform(np.exp(-x) * (1 - np.eye(3)), checks=False), (K,)),
    (lambda x: x * scipy.special.logsumexp(np.ones(3)), (X,)),
    (written, (X,)),
    (known, (X,)),
]


@pytest.mark.slow
def test_they_give_what_they_give_of_arrays() -> None:
    for place, (call, args) in enumerate(CALLS):
        found, wanted = graphc.jit(call)(*args), call(*args)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=str(place))
        slope = graphc.grad(lambda *values, call=call: call(*values).sum())(*args)
        step = 1e-6 * np.ones_like(args[0])
        moved = [np.sum(call(args[0] + sign * step, *args[1:])) for sign in (1, -1)]
        np.testing.assert_allclose(
            np.sum(slope), (moved[0] - moved[1]) / 2e-6, rtol=1e-6, atol=1e-8, err_msg=str(place)
        )
    rows = graphc.vmap(lambda x, m: norm.logpdf(x, m).sum() + logsumexp(x), in_axes=(0, None))(K, 0.5)
    np.testing.assert_allclose(rows, [norm.logpdf(row, 0.5).sum() + logsumexp(row) for row in K])


def test_what_is_not_there_is_named_as_scipys() -> None:
    def refused(call: Callable[[Any], Any], message: str) -> None:
        with pytest.raises(GraphTypeError, match=message):
            graphc.jit(call)(K)

    refused(
        lambda k: scipy.linalg.schur(k),
        r"scipy.linalg.schur of k.*nobody has written its derivative \(called at test_ex",
    )
    refused(lambda k: scipy.special.wofz(k), "scipy.special.wofz of k")
    refused(lambda k: scipy.stats.levy_stable.logpdf(k, 1.0, 0.5), "scipy.stats.levy_stable.logpdf of k")
    refused(lambda k: scipy.stats.gamma.expect(args=(k,)), "scipy.stats.gamma.expect of k.*has no attribute 'expect'")
    refused(lambda k: scipy.stats.wishart.logpdf(k, 3, K), "scipy.stats.wishart.logpdf of k")
    refused(lambda k: scipy.stats.poisson.entropy(k), "poisson.entropy of a tensor: there is no formula")
    refused(lambda k: scipy.ndimage.gaussian_filter(k, 1.0), r"scipy.ndimage.gaussian_filter of k.*\(called at test_ex")
    refused(lambda k: scipy.spatial.KDTree(k), "scipy.spatial.KDTree of k")
    with pytest.raises(GraphTypeError, match="scipy.special.wofz of x"):
        scipy.special.wofz(T.dvector("x"))
    assert scipy.special.exp1(T.dvector("x")).type.dtype == "float64"


def test_they_are_themselves_when_nothing_is_traced() -> None:
    before = logsumexp.__code__
    graphc.jit(lambda x: logsumexp(x))(X)
    assert logsumexp.__code__ is before and scipy.linalg.schur(np.eye(2))[0].shape == (2, 2)
    assert "scipy" in before.co_filename


def test_solvers_of_functions_that_take_tensors_from_around_them() -> None:
    """SciPy's own would be given numbers alone: that a function has a tensor is seen from its closure."""

    def fitted(a: Any) -> Any:
        bounds = [(0.0, 1.0)] * 2
        plain = scipy.optimize.minimize(lambda x: float(((x - 2.0) ** 2).sum()), np.ones(2))
        assert isinstance(plain, scipy.optimize.OptimizeResult), "SciPy's own, of a function of numbers"
        return scipy.optimize.minimize(lambda x: ((x - a) ** 2).sum(), np.zeros(2), bounds=bounds).x

    np.testing.assert_allclose(graphc.jit(fitted)(0.5), 0.5, atol=1e-6)
    with pytest.raises(GraphTypeError, match="optimize.direct with a function of symbolic arrays"):
        graphc.jit(lambda a: scipy.optimize.direct(lambda x: ((x - a) ** 2).sum(), [(0.0, 1.0)]).x)(0.5)


LATE = """
import sys
import numpy as np, scipy, graphc

def f(x):
    from scipy.stats import norm
    return norm.logpdf(scipy.signal.lfilter([1.0, 0.5], [1.0, -0.3], x))

assert not {"scipy.stats", "scipy.signal"} & sys.modules.keys()
x = np.array([0.5, -1.0, 2.0])
got = graphc.jit(f, mode="interpreted")(x)
np.testing.assert_allclose(got, f(x), rtol=1e-12)
"""


def test_modules_that_are_imported_while_a_function_is_traced() -> None:
    """SciPy imports its parts when they are asked for, which may be in the function."""
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_frames_of_exchanged_functions_can_be_looked_at() -> None:
    """A debugger reads the variables of each frame; code without its free variables would end the process there."""
    with pytest.raises(GraphValueError, match="trans=7") as told:
        graphc.jit(lambda w: scipy.linalg.solve_triangular(w, w[0], trans=7))(np.eye(3))
    error: BaseException | None = told.value
    while error is not None:
        frame = error.__traceback__
        while frame is not None:
            assert isinstance(dict(frame.tb_frame.f_locals), dict)
            frame = frame.tb_next
        error = error.__context__


def test_wrong_distances_are_refused() -> None:
    for call, message in (
        (lambda k: distance.cdist(k, k, "dice"), "cdist: the metric 'dice' is none of euclidean, sq"),
        (lambda k: distance.squareform(k + 1), r"squareform: k .* is not symmetric with zeros on its diagonal"),
        (lambda k: distance.squareform(k.ravel()[:4]), r"squareform: the number of distances in k.* is that of no"),
    ):
        with pytest.raises(GraphValueError, match=message):
            graphc.jit(call, mode="interpreted")(K)


def test_a_generator_keeps_its_code() -> None:
    """From Python 3.13 on, other code than a generator's is deprecated for it."""
    codes = [code for module in ("interpolate", "linalg", "special") for _, code, _ in exchange._exchanges(module)]
    assert codes
    assert not any(code.co_flags & CO_GENERATOR for code in codes)
