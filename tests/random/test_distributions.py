"""Each distribution against SciPy's, for keys that are always the same; shapes, dtypes, modes and derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import graphc
import graphc.random as R
import graphc.tensor as T
from graphc.errors import GraphTypeError, ShapeError
from tests.support.thorough import some, those

N = 20_000
KEY = T.scalar("key", dtype="uint64")
LEAST = 1e-4
"""The chance that a right sample fails, for each case; keys are fixed, so a case that passes passes always."""

Draw = Callable[[Any], Any]

FLOATS: dict[str, tuple[Draw, Any]] = {
    "uniform": (lambda s: R.uniform(KEY, s), stats.uniform()),
    "uniform in float32": (lambda s: R.uniform(KEY, s, "float32", -2.0, 3.0), stats.uniform(-2, 5)),
    "normal": (lambda s: R.normal(KEY, s), stats.norm()),
    "normal in float32": (lambda s: R.normal(KEY, s, "float32"), stats.norm()),
    "exponential": (lambda s: R.exponential(KEY, s), stats.expon()),
    "gumbel": (lambda s: R.gumbel(KEY, s), stats.gumbel_r()),
    "logistic": (lambda s: R.logistic(KEY, s), stats.logistic()),
    "laplace": (lambda s: R.laplace(KEY, s), stats.laplace()),
    "cauchy": (lambda s: R.cauchy(KEY, s), stats.cauchy()),
    "lognormal": (lambda s: R.lognormal(KEY, 0.7, s), stats.lognorm(0.7)),
    "weibull_min": (lambda s: R.weibull_min(KEY, 2.0, 1.5, s), stats.weibull_min(1.5, scale=2)),
    "pareto": (lambda s: R.pareto(KEY, 3.0, s), stats.pareto(3)),
    "wald": (lambda s: R.wald(KEY, 2.0, 1.5, s), stats.invgauss(2 / 1.5, scale=1.5)),
    "rayleigh": (lambda s: R.rayleigh(KEY, 2.0, s), stats.rayleigh(scale=2)),
    "maxwell": (lambda s: R.maxwell(KEY, s), stats.maxwell()),
    "double_sided_maxwell": (lambda s: abs(R.double_sided_maxwell(KEY, 1.0, 2.0, s) - 1.0), stats.maxwell(scale=2)),
    "triangular": (lambda s: R.triangular(KEY, -1.0, 0.0, 3.0, s), stats.triang(0.25, -1, 4)),
    "generalized_normal": (lambda s: R.generalized_normal(KEY, 1.5, s), stats.gennorm(1.5)),
    "ball": (lambda s: (R.ball(KEY, 3, 2, s) ** 2).sum(axis=-1), stats.beta(1.5, 1)),
    "ball of another norm": (lambda s: abs(R.ball(KEY, 2, 1.5, s)[..., 0]) ** 1.5, stats.beta(1 / 1.5, 1 + 1 / 1.5)),
    "orthogonal": (lambda s: R.orthogonal(KEY, 3, s)[..., 0, 1] ** 2, stats.beta(0.5, 1)),
    "gamma of 0.3": (lambda s: R.gamma(KEY, 0.3, s), stats.gamma(0.3)),
    "gamma of 5": (lambda s: R.gamma(KEY, 5.0, s), stats.gamma(5)),
    "gamma of 100": (lambda s: R.gamma(KEY, 100.0, s), stats.gamma(100)),
    "loggamma": (lambda s: R.loggamma(KEY, 0.01, s), stats.loggamma(0.01)),
    "chisquare": (lambda s: R.chisquare(KEY, 3.0, s), stats.chi2(3)),
    "beta": (lambda s: R.beta(KEY, 0.5, 2.0, s), stats.beta(0.5, 2)),
    "t": (lambda s: R.t(KEY, 4.0, s), stats.t(4)),
    "f": (lambda s: R.f(KEY, 4.0, 7.0, s), stats.f(4, 7)),
    "vonmises": (lambda s: R.vonmises(KEY, 0.0, 2.0, s), stats.vonmises(2.0)),
    "vonmises of little": (lambda s: R.vonmises(KEY, 0.0, 0.01, s), stats.vonmises(0.01)),
    "truncated_normal": (lambda s: R.truncated_normal(KEY, -1.0, 2.0, s), stats.truncnorm(-1, 2)),
    "a tail": (lambda s: R.truncated_normal(KEY, 3.0, 9.0, s), stats.truncnorm(3, 9)),
    "the other tail": (lambda s: R.truncated_normal(KEY, -8.0, -2.0, s), stats.truncnorm(-8, -2)),
    "a narrow part": (lambda s: R.truncated_normal(KEY, 1.0, 1.5, s), stats.truncnorm(1, 1.5)),
    "a narrow middle": (lambda s: R.truncated_normal(KEY, -0.1, 0.3, s), stats.truncnorm(-0.1, 0.3)),
    "dirichlet": (lambda s: R.dirichlet(KEY, [1.0, 2.0, 3.0], s)[..., 0], stats.beta(1, 5)),
}

WHOLE: dict[str, tuple[Draw, Any]] = {
    "poisson of 3": (lambda s: R.poisson(KEY, 3.0, s), stats.poisson(3)),
    "poisson of 10": (lambda s: R.poisson(KEY, 10.0, s), stats.poisson(10)),
    "poisson of 50": (lambda s: R.poisson(KEY, 50.0, s), stats.poisson(50)),
    "binomial of few": (lambda s: R.binomial(KEY, 10, 0.3, s), stats.binom(10, 0.3)),
    "binomial of 25": (lambda s: R.binomial(KEY, 25, 0.5, s), stats.binom(25, 0.5)),
    "binomial of many": (lambda s: R.binomial(KEY, 200, 0.4, s), stats.binom(200, 0.4)),
    "binomial, mostly": (lambda s: R.binomial(KEY, 50, 0.9, s), stats.binom(50, 0.9)),
    "geometric": (lambda s: R.geometric(KEY, 0.3, s), stats.geom(0.3)),
    "negative_binomial": (lambda s: R.negative_binomial(KEY, 4.0, 0.3, s), stats.nbinom(4, 0.3)),
    "randint": (lambda s: R.randint(KEY, s, -3, 7), stats.randint(-3, 7)),
    "bernoulli": (lambda s: T.cast(R.bernoulli(KEY, 0.3, s), "int64"), stats.bernoulli(0.3)),
    "rademacher": (lambda s: R.rademacher(KEY, s) // 2 + 1, stats.bernoulli(0.5)),
    "categorical": (
        lambda s: R.categorical(KEY, np.log([0.2, 0.5, 0.3]), shape=s),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3])),
    ),
    "choice": (
        lambda s: R.choice(KEY, 3, s, p=[0.2, 0.5, 0.3]),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3])),
    ),
    "multinomial": (lambda s: R.multinomial(KEY, 9, [0.2, 0.5, 0.3], s)[..., 1], stats.binom(9, 0.5)),
    "one of a kind": (lambda s: R.multinomial(KEY, 1, [0.2, 0.5, 0.3], s)[..., 1], stats.bernoulli(0.5)),
}


def sample(draw: Draw, shape: Any, key: int = 5) -> Any:
    return graphc.function([KEY], draw(shape))(np.uint64(key))


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_distributed_as_they_should(name: str) -> None:
    draw, expected = FLOATS[name]
    for key in (1, 12345):
        assert stats.kstest(sample(draw, (N,), key), expected.cdf).pvalue > LEAST


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_distributed_as_they_should(name: str) -> None:
    draw, expected = WHOLE[name]
    found = sample(draw, (N,))
    values = np.arange(int(expected.ppf(1e-6)), int(expected.ppf(1 - 1e-6)) + 1)
    assert values[0] <= found.min() and found.max() <= values[-1] + 1
    counts = np.array([np.count_nonzero(found == value) for value in values])
    wanted = expected.pmf(values) * N
    often = wanted >= 5
    counts, wanted = (np.append(each[often], N - each[often].sum()) for each in (counts, wanted))
    kept = wanted > 1
    assert stats.chisquare(counts[kept], wanted[kept] * counts[kept].sum() / wanted[kept].sum()).pvalue > LEAST


EXTREMES: dict[str, tuple[str, tuple[float, ...], Any]] = {
    **{f"gamma of {a}": ("gamma", (a,), stats.gamma(a)) for a in (0.05, 0.999, 1.0, 1e6, 1e9)},
    **{f"loggamma of {a}": ("loggamma", (a,), stats.loggamma(a)) for a in (1e-6, 1e4)},
    **{f"beta of {a}, {b}": ("beta", (a, b), stats.beta(a, b)) for a, b in ((1e5, 1.0), (1e5, 1e5), (1.0, 1.0))},
    **{f"t of {a}": ("t", (a,), stats.t(a)) for a in (0.1, 1e6)},
    **{f"f of {a}, {b}": ("f", (a, b), stats.f(a, b)) for a, b in ((0.1, 9.0), (1e5, 1e5))},
    **{f"chisquare of {a}": ("chisquare", (a,), stats.chi2(a)) for a in (0.1, 1e5)},
    "vonmises of 0": ("vonmises", (0.0, 0.0), stats.uniform(-np.pi, 2 * np.pi)),
    **{f"vonmises of {k}": ("vonmises", (0.0, k), stats.norm(scale=k**-0.5)) for k in (1e5, 1e9)},
    **{f"wald of {m}": ("wald", (m, 1.0), stats.invgauss(m)) for m in (1e-3, 1e2)},
    **{f"pareto of {a}": ("pareto", (a,), stats.pareto(a)) for a in (0.05, 100.0)},
    **{f"weibull_min of {a}": ("weibull_min", (1.0, a), stats.weibull_min(a)) for a in (0.1, 50.0)},
    **{f"lognormal of {a}": ("lognormal", (a,), stats.lognorm(a)) for a in (1e-3, 10.0)},
    **{
        f"truncated_normal of {a}, {b}": ("truncated_normal", (a, b), stats.truncnorm(a, b))
        for a, b in ((30.0, 40.0), (5.0, np.inf), (-np.inf, np.inf), (0.0, 1e-8), (-1e-3, 50.0))
    },
    **{f"poisson of {a}": ("poisson", (a,), stats.poisson(a)) for a in (1e-6, 9.99, 1e3, 1e6, 1e9)},
    **{
        f"binomial of {n}, {p}": ("binomial", (n, p), stats.binom(n, p))
        for n, p in ((0, 0.5), (5, 0.0), (5, 1.0), (10**9, 1e-9), (10**6, 1 - 1e-6), (2**31, 0.5), (10**12, 0.25))
    },
    **{f"geometric of {p}": ("geometric", (p,), stats.geom(p)) for p in (1e-6, 1 - 1e-9, 1.0)},
    **{
        f"negative_binomial of {n}, {p}": ("negative_binomial", (n, p), stats.nbinom(n, p))
        for n, p in ((0.01, 0.5), (1e4, 0.999), (5.0, 1e-4))
    },
}
"""Functions with parameters near the ends of what they may be."""


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "key"), those(lambda row: row[1] == 1, itertools.product([False, True], [1, 99])))
def test_extreme_parameters(whole: bool, key: int) -> None:
    """The distribution function of what is drawn is uniform; where it jumps, anywhere between both its values."""
    rows = {name: row for name, row in EXTREMES.items() if hasattr(row[2].dist, "pmf") == whole}
    drawn = graphc.function([KEY], [getattr(R, name)(KEY, *given, (N,)) for name, given, _ in rows.values()])
    rng = np.random.default_rng(0)
    for name, found, (_, _, expected) in zip(rows, drawn(np.uint64(key)), rows.values(), strict=True):
        assert np.isfinite(found).all(), name
        with np.errstate(divide="ignore"):
            above, below = expected.cdf(found), expected.cdf(found - whole)
        place = below + rng.random(N) * (above - below)
        assert stats.kstest(place, "uniform").pvalue > LEAST, name


@pytest.mark.slow
@pytest.mark.parametrize("name", some([*FLOATS, *WHOLE], 4))
def test_the_modes_agree_for_any_shape(name: str) -> None:
    """Symbolic, empty and scalar shapes; the bits are the same, what is computed of them close."""
    draw, _ = {**FLOATS, **WHOLE}[name]
    n = T.lscalar("n")
    outputs = [draw((n, 2)), draw(())]
    want = graphc.function([n, KEY], outputs, mode="interpreted")
    made = graphc.function([n, KEY], outputs)
    for size in (0, 3):
        for found, other in zip(made(size, np.uint64(3)), want(size, np.uint64(3)), strict=True):
            assert found.dtype == other.dtype and found.shape == other.shape
            rtol, atol = (2e-5, 1e-5) if found.dtype == "float32" else (1e-9, 1e-12)
            np.testing.assert_allclose(found, other, rtol=rtol, atol=atol)
    assert made(3, np.uint64(3))[0].shape == (3, 2)


@pytest.mark.slow
def test_parameters_broadcast_and_have_derivatives() -> None:
    scale, place = T.dvector("scale"), T.dvector("place")
    drawn = place[:, None] + scale[:, None] * R.normal(KEY, (3, 4))
    shares = T.grad(drawn.sum(), [scale, place])
    waits = R.exponential(KEY, (3,)) / scale
    f = graphc.function([KEY, scale, place], [drawn, *shares, waits, T.grad(waits.sum(), scale)])
    widths = np.array([1.0, 2.0, 3.0])
    value, by_scale, by_place, waited, slower = f(np.uint64(1), widths, np.zeros(3))
    np.testing.assert_allclose(by_scale, (value / widths[:, None]).sum(axis=1))
    np.testing.assert_array_equal(by_place, [4, 4, 4])
    np.testing.assert_allclose(slower, -waited / widths)
    assert graphc.function([KEY, scale], R.gamma(KEY, scale))(np.uint64(1), widths).shape == (3,)


def test_orders_are_permutations_all_equally_likely() -> None:
    f = graphc.function([KEY], [R.permutation(KEY, 4), R.permutation(KEY, np.arange(6.0).reshape(3, 2))])
    seen: dict[tuple[int, ...], int] = {}
    for key in range(2400):
        numbers, rows = f(np.uint64(key))
        seen[tuple(numbers)] = seen.get(tuple(numbers), 0) + 1
        assert sorted(rows[:, 0]) == [0, 2, 4] and (rows[:, 1] == rows[:, 0] + 1).all()
    assert len(seen) == 24 and stats.chisquare(list(seen.values())).pvalue > LEAST


def test_no_item_comes_twice_without_replacement() -> None:
    items = np.array([3.5, 1.5, 2.5])
    f = graphc.function(
        [KEY], [R.choice(KEY, 5, (3,), replace=False), R.choice(KEY, items, (2,), replace=False, p=[0.0001, 0.5, 0.5])]
    )
    rare = 0
    for key in range(200):
        places, chosen = f(np.uint64(key))
        assert len(set(places)) == 3 and set(places) <= set(range(5)) and len(set(chosen)) == 2
        rare += 3.5 in chosen
    assert rare <= 2
    with pytest.raises(ShapeError):
        graphc.function([KEY], R.choice(KEY, 2, (3,), replace=False))(np.uint64(0))


def test_wrong_parameters_say_so() -> None:
    with pytest.raises(ShapeError, match="more axes than the shape"):
        R.uniform(KEY, (2,), minval=T.dmatrix("low"))
    with pytest.raises(GraphTypeError, match="float32 or float64"):
        R.normal(KEY, (2,), "int64")
    with pytest.raises(GraphTypeError, match="limits are whole numbers"):
        R.randint(KEY, (2,), 0, T.dscalar("high"))


@pytest.mark.slow
def test_vectors_and_matrices_of_a_covariance() -> None:
    cov, mean, n = T.dmatrix("cov"), T.dvector("mean"), T.lscalar("n")
    vectors, one = R.multivariate_normal(KEY, mean, cov, (n,)), R.multivariate_normal(KEY, mean, cov)
    each = R.multivariate_normal(KEY, T.stack([mean, 2 * mean]), T.stack([cov, 4 * cov]))
    matrices = R.wishart(KEY, 5.0, cov, (n,))
    by_cov = T.grad((vectors**2).mean(axis=0).sum() + matrices.mean(axis=0).sum(), cov)
    outputs = [vectors, one, each, matrices, by_cov]
    value, middle = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0])
    made, want = (graphc.function([KEY, cov, mean, n], outputs, mode) for mode in ("compiled", "interpreted"))
    few = [f(np.uint64(4), value, middle, 10) for f in (made, want)]
    for own, other in zip(*few, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-8, atol=1e-10)
    found = made(np.uint64(4), value, middle, 4000)
    np.testing.assert_allclose(found[0].mean(axis=0), middle, atol=0.1)
    np.testing.assert_allclose(np.cov(found[0].T), value, atol=0.15)
    assert found[1].shape == (2,) and found[2].shape == (2, 2)
    np.testing.assert_allclose(found[3].mean(axis=0), 5 * value, atol=0.4)
    # of the lower triangle alone: each variance once, the covariance twice
    np.testing.assert_allclose(found[4], [[6, 0], [10, 6]], atol=0.7)
    with pytest.raises(GraphTypeError, match="no matrix"):
        R.wishart(KEY, 3.0, [1.0])


@pytest.mark.slow
def test_parameters_that_are_none_give_nan_or_less_than_nothing() -> None:
    """And end."""
    p, key, shape = T.dscalar("p"), R.key(1), (2,)
    floats = [R.gamma(key, p, shape), R.vonmises(key, 0.0, p, shape), R.truncated_normal(key, p, 1.0, shape)]
    whole = [R.poisson(key, p, shape), R.binomial(key, 10, p, shape), R.geometric(key, p, shape)]
    whole += [R.negative_binomial(key, 2, p, shape), R.poisson(key, -T.ones((2,)), None)]
    f = graphc.function([p], [*floats, *whole])
    for made in f(np.nan):
        assert np.isnan(made).all() if made.dtype.kind == "f" else (made == -1).all(), made
    found = f(2.0)
    assert np.isnan(found[2]).all() and (found[4] == -1).all() and (found[5] == -1).all() and (found[3] >= 0).all()
    assert (graphc.function([p], R.poisson(key, p, shape), "interpreted")(np.inf) == -1).all()
    of_gamma = [draw(key, p, shape) for draw in (R.gamma, R.loggamma, R.chisquare, R.t)]
    others = [draw(key, p, shape) for draw in (R.pareto, R.lognormal)]
    others += [R.f(key, p, 2.0, shape), R.beta(key, 1.0, p, shape), R.weibull_min(key, 1.0, p, shape)]
    others += [R.weibull_min(key, p, 2.0, shape)]
    g = graphc.function([p], [*of_gamma, *others, R.vonmises(key, 0.0, p, shape)])
    for wrong in (-0.3, -1.0, -2.5, -30.0):
        for made in g(wrong):
            assert np.isnan(made).all(), wrong
