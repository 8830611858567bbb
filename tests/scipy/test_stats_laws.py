"""Distributions of `graphc.scipy.stats`: SciPy's values of every method, derivatives in all parameters."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.stats

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError, NullTypeGradError
from tests.support.numeric_slopes import numeric_slope

stats: Any = importlib.import_module("graphc.scipy.stats")

SHAPES = """
norm | t 3.5 | chi2 3.5 | chi 2.5 | f 3.5 6.5 | gamma 2.5 | invgamma 3.5 | beta 2.5 1.5 | expon | lognorm 0.7 |
loguniform 0.5 3 | uniform | laplace | logistic | cauchy | halfnorm | halfcauchy | pareto 3.5 | lomax 3.5 |
powerlaw 1.7 | weibull_min 1.7 | weibull_max 1.7 | gumbel_r | gumbel_l | genextreme 0.3 | genextreme -0.2 |
genextreme 0 | genpareto 0.2 | genpareto -0.3 | genpareto 0 | truncnorm -0.5 1.5 | truncnorm 1 3 | truncnorm -4
-2 | triang 0.3 | rayleigh | maxwell | nakagami 1.5 | skewnorm 1.5 | vonmises 1.5 | levy | invgauss 1.3 |
gennorm 1.5 | gennorm 0.7 | wrapcauchy 0.3 |
poisson 2.5 | binom 7 0.4 | bernoulli 0.3 | nbinom 3 0.4 | geom 0.3 | hypergeom 20 7 12 | betabinom 6 2.5 1.5 |
randint 2 9
"""
CASES = [(name, [float(x) for x in shapes]) for name, *shapes in (text.split() for text in SHAPES.split("|"))]
METHODS = "logpdf pdf logpmf pmf cdf sf logcdf logsf ppf isf mean var std entropy median".split()
WHOLE = {"n", "M", "N", "low", "high"}
"""Parameters that SciPy takes as whole numbers."""
ABSENT = {
    "skewnorm": "entropy", "vonmises": "var std", "invgauss": "entropy", "hypergeom": "entropy", "poisson": "entropy",
    "wrapcauchy": "mean var std", "betabinom": "entropy", "binom": "entropy", "nbinom": "entropy",
}  # fmt: skip
"""Methods for which there is no formula."""


def points(law: Any, shapes: list[float]) -> Any:
    """Five quantiles, and places outside of the support."""
    theirs = getattr(scipy.stats, law.name)
    loc, scale = (1, {}) if law.discrete else (0.3, {"scale": 1.7})
    inside = theirs.ppf([0.02, 0.2, 0.5, 0.9, 0.995], *shapes, loc, **scale)
    fraction = 2.0 if law.name == "hypergeom" else 2.5  # at which SciPy's sums of these give NaN
    return np.concatenate([inside, [-50.0, 60.0, np.nan, fraction]])


def case(name: str, shapes: list[float]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """The inputs, their values, outputs, and what is wanted of them with bounds. Derivatives are those of the sum of
    all methods."""
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    law, place = ours.law, [1.0] if ours.law.discrete else [0.3, 1.7]
    values = points(law, shapes)
    chances = np.array([0.0, 0.03, 0.4, 0.51, 0.93, 1.0, -0.5])
    args = [T.dscalar(f"p{k}") for k in range(len(shapes) + len(place))]
    given = [*shapes, *place]
    x, q = T.dvector("x"), T.dvector("q")
    outputs, wanted, costs, slopes = [], [], list[Any](), list[Any]()
    fixed = WHOLE | {"loc"} if law.discrete else set()
    moved = [k for k, each in enumerate([*law.shapes.split(), "loc", "scale"][: len(args)]) if each not in fixed]
    absent = ABSENT.get(name, "").split()
    for method in METHODS:
        if ("pdf" if law.discrete else "pmf") in method:
            assert not hasattr(ours, method)
            continue
        first, at = ([q], [chances]) if method in ("ppf", "isf") else ([x], [values])
        if method in ("mean", "var", "std", "entropy", "median"):
            first, at = [], []
        if method in absent:
            with pytest.raises(
                GraphcError, match=rf"{name}\.(log)?{method.removeprefix('log')[:3]}|{name}\.(ppf|cdf|sf|var)"
            ):
                getattr(ours, method)(*first, *args)
            continue
        found = getattr(ours, method)(*first, *args)
        with np.errstate(all="ignore"):
            expected = getattr(theirs, method)(*at, *given)
        label = f"{name}{shapes}.{method}"
        outputs.append(found)
        units = 1e-9 if label == "levy[].entropy" else 1e-11  # which SciPy integrates
        wanted.append((label, expected, units * np.abs(expected) + 1e-13))
        if method in ("ppf", "isf", "median") and law.discrete:
            continue
        if method in ("pdf", "pmf", "std", "median"):
            continue
        weights = np.array([0.0, *np.ones(4), 0.0, 0.0]) if first == [q] else np.r_[np.ones(5), np.zeros(4)]
        weights = weights if first else np.ones(())

        def total(*values: Any, method: str = method, at: Any = at, weights: Any = weights) -> Any:
            with np.errstate(all="ignore"):
                made = np.asarray(getattr(theirs, method)(*at, *map(float, values)))
            return np.where(weights > 0, made, 0.0).sum()

        if name == "betabinom" and method in ("cdf", "sf", "logcdf", "logsf"):
            with pytest.raises(NullTypeGradError, match="betabinom"):
                graphc.grad(found.sum(), args[1])
            continue
        found_slopes = [numeric_slope(total, given, k, step=1e-3, units=2e4) for k in moved]
        if np.isfinite(found_slopes).all():
            costs.append((found if not first else T.where(weights > 0, found, 0.0)).sum())
            slopes.append(np.array(found_slopes))
    made = graphc.grad(sum(costs[1:], costs[0]), [args[k] for k in moved], disconnected_inputs="ignore")
    for k, each, (slope, bound) in zip(moved, made, sum(slopes[1:], slopes[0]), strict=True):
        outputs.append(each)
        wanted.append((f"{name}{shapes} by {k}", slope, bound))
    return [x, q, *args], [values, chances, *given], outputs, wanted


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::scipy.integrate.IntegrationWarning")
def test_every_method_has_scipys_values_and_derivatives_in_all_parameters() -> None:
    inputs, given, outputs, wanted = (list[Any]() for _ in range(4))
    for name, shapes in CASES:
        for whole, part in zip((inputs, given, outputs, wanted), case(name, shapes), strict=True):
            whole += part
    values = graphc.function(inputs, outputs, mode="interpreted", on_unused_input="ignore")(*given)
    wrong = []
    for found, (label, value, bound) in zip(values, wanted, strict=True):
        same = (np.asarray(found) == value) | (np.isnan(found) & np.isnan(value))
        if not np.all(same | (np.abs(found - value) <= bound)):
            wrong.append(f"{label}: {found} for {value}, within {bound}")
    assert not wrong, "\n".join(wrong)


def test_the_density_at_infinity_is_nothing() -> None:
    x = T.dvector("x")
    laws = [
        stats.rayleigh(),
        stats.genextreme(0.3),
        stats.genpareto(0.2),
        stats.genpareto(-0.3),
        stats.norm(),
        stats.poisson(2),
    ]
    found = graphc.function(
        [x], [(law.logpmf if law.dist.law.discrete else law.logpdf)(x) for law in laws], mode="interpreted"
    )
    assert all((each == -np.inf).all() for each in found([np.inf, -np.inf]))


@pytest.mark.slow
def test_nothing_outside_of_the_support_reaches_a_derivative() -> None:
    inputs, given, outputs, labels = (list[Any]() for _ in range(4))
    for name, shapes in CASES:
        ours, place = getattr(stats, name), [1.0] if getattr(stats, name).law.discrete else [0.3, 1.7]
        args = [T.dscalar("p") for _ in (*shapes, *place)]
        x, q = T.dvector("x"), T.dvector("q")
        inputs += [x, q, *args]
        given += [np.array([-50.0, 60.0]), np.array([0.0, 1.0, -1.0, 2.0]), *shapes, *place]
        for method in ("logpmf" if ours.law.discrete else "logpdf", "cdf", "sf", "ppf"):
            found = getattr(ours, method)(q if method == "ppf" else x, *args)
            held = T.where(T.isfinite(found), found, 0.0).sum()
            made = graphc.grad(held, args, disconnected_inputs="ignore", null_gradients="return")
            outputs += [each for each in made if isinstance(each, graphc.Node)]
            labels += [f"{name}.{method}" for each in made if isinstance(each, graphc.Node)]
    values = graphc.function(inputs, outputs, mode="interpreted", on_unused_input="ignore")(*given)
    assert not [label for label, value in zip(labels, values, strict=True) if not np.isfinite(value).all()]


def test_every_distribution_is_in_the_table() -> None:
    named = {name for name, _ in CASES} | {"reciprocal", "dirichlet", "multinomial", "multivariate_normal"}
    assert named == set(stats.DISTRIBUTIONS)


def test_distributions_of_vectors() -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=(3, 3))
    cov, mean, x = a @ a.T + np.eye(3), rng.normal(size=3), rng.normal(size=(4, 3))
    alpha, chances = np.array([1.5, 2.5, 0.7]), np.array([0.2, 0.5, 0.3])
    at, counts = rng.dirichlet(alpha, 4).T, np.array([[1, 2, 3], [6, 0, 0], [1, 1, 1], [-1, 4, 3]])
    normal, calls = "multivariate_normal", dict[str, tuple[str, str, Any, Any]]()
    for place, (name, method, fixed, free) in enumerate(
        (
            (normal, "logpdf", (x,), (mean, cov)),
            (normal, "pdf", (x[0],), (mean, cov)),
            (normal, "logpdf", (x,), (mean, np.diag(cov).copy())),
            (normal, "logpdf", (x,), (mean, np.array(1.7))),
            (normal, "entropy", (mean,), (cov,)),
            ("dirichlet", "logpdf", (at,), (alpha,)),
            ("dirichlet", "pdf", (at[:2, 0],), (alpha,)),
            ("dirichlet", "mean", (), (alpha,)),
            ("dirichlet", "var", (), (alpha,)),
            ("dirichlet", "cov", (), (alpha,)),
            ("dirichlet", "entropy", (), (alpha,)),
            ("multinomial", "logpmf", (counts, 6), (chances,)),
            ("multinomial", "pmf", (counts, 6), (chances,)),
            ("multinomial", "cov", (6,), (chances,)),
        )
    ):
        calls[f"{name}.{method} {place}"] = (name, method, fixed, free)

    def slopes(name: str, method: str, fixed: Any, free: Any) -> Any:
        args = [T.tensor("float64", value.shape, name="p") for value in free]
        found = getattr(getattr(stats, name), method)(*fixed, *args)
        held = T.where(found > -1e300, found, 0.0)
        return graphc.function(args, [found, *graphc.grad(held.sum(), args)], mode="interpreted")(*free)

    for label, (name, method, fixed, free) in calls.items():
        theirs = getattr(getattr(scipy.stats, name), method)
        found, *derivatives = slopes(name, method, fixed, free)
        np.testing.assert_allclose(found, theirs(*fixed, *free), rtol=1e-11, err_msg=label)
        for k, derivative in enumerate(derivatives):
            way = rng.normal(size=free[k].shape)
            way = way + way.T if way.ndim == 2 else way - way.mean() * (name == "multinomial")

            def moved(
                shift: Any, k: int = k, way: Any = way, theirs: Any = theirs, fixed: Any = fixed, free: Any = free
            ) -> Any:
                made = theirs(*fixed, *free[:k], free[k] + shift * way, *free[k + 1 :])
                return np.where(made > -1e300, made, 0.0).sum()

            slope, bound = numeric_slope(moved, [0.0], 0, units=1e4)
            assert abs((derivative * way).sum() - slope) <= bound + 1e-9, (label, k, (derivative * way).sum(), slope)


@pytest.mark.slow
def test_frozen_distributions_random_numbers_and_wrong_calls() -> None:
    x, mu, key = np.array([0.5, 2.0]), T.dscalar("mu"), graphc.random.key(3)
    with graphc.options.change(mode="interpreted"):
        slope = graphc.grad(lambda m: stats.norm(m, 2.0).logpdf(x).sum())
        np.testing.assert_allclose(slope(1.0), (x - 1.0).sum() / 4)
        drawn = stats.gamma.rvs(2.5, scale=2.0, size=(1000,), random_state=key)
        assert drawn.shape == (1000,) and abs(drawn.mean() - 5.0) < 6 * np.sqrt(10 / 1000)
        assert stats.poisson.rvs(3.0, size=5, random_state=key).dtype == "int64"
        assert graphc.grad(lambda m: stats.norm.rvs(m, size=(4,), random_state=key).sum())(0.0) == 4.0
        rows = stats.multivariate_normal.rvs(np.zeros(2), np.eye(2), size=(3,), random_state=key)
        assert rows.shape == (3, 2)
    assert stats.norm(1.0).cdf(1.0) == 0.5 and type(stats.norm.logpdf(0.0)) is np.float64
    assert stats.norm.rvs(size=3, random_state=1).tolist() == scipy.stats.norm.rvs(size=3, random_state=1).tolist()
    with pytest.raises(GraphcError, match="norm.logpdf: there is no parameter 'sigma'; it takes loc, scale"):
        stats.norm.logpdf(mu, sigma=2.0)
    with pytest.raises(GraphcError, match="gamma.cdf: the parameter 'a' is missing"):
        stats.gamma.cdf(mu)
    with pytest.raises(GraphcError, match="random_state must be a key"):
        stats.norm.rvs(mu)
    with pytest.raises(AttributeError, match="whole numbers: it has pmf and logpmf"):
        stats.poisson.logpdf  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'levy_stable': graphc has the distributions"):
        stats.levy_stable  # noqa: B018
