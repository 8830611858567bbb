"""Functions of samples of `graphc.scipy.stats`: SciPy's values, and derivatives against differences of these."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import graphc
import graphc.tensor as T
from graphc.errors import GraphValueError
from tests.support.numeric_slopes import numeric_slope

stats: Any = importlib.import_module("graphc.scipy.stats")

RNG = np.random.default_rng(11)
X = RNG.gamma(2.0, size=(5, 4)) + 0.3
Y = RNG.normal(size=(5, 4))
WHOLE = RNG.integers(0, 4, size=(5, 4)).astype("float64")

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "boxcox_llf": lambda s, x: s.boxcox_llf(0.3, x),
    "chisquare": lambda s, x: tuple(s.chisquare(abs(x) + 1, ddof=1)),
    "chisquare 2": lambda s, x: tuple(s.chisquare(x**2 + 1, (x**2 + 1)[::-1], axis=None)),
    "circmean": lambda s, x: s.circmean(x, axis=1),
    "circstd": lambda s, x: s.circstd(x, high=3.0, axis=0),
    "circvar": lambda s, x: s.circvar(x),
    "entropy": lambda s, x: s.entropy(x, base=2),
    "entropy 2": lambda s, x: s.entropy(x, X[::-1], axis=1),
    "f_oneway": lambda s, x: tuple(s.f_oneway(x, Y, X[::-1])),
    "gmean": lambda s, x: s.gmean(x, axis=None),
    "gmean 2": lambda s, x: s.gmean(x, axis=1, weights=X),
    "gstd": lambda s, x: s.gstd(x),
    "gzscore": lambda s, x: s.gzscore(x, ddof=1),
    "hmean": lambda s, x: s.hmean(x, axis=1, keepdims=True),
    "iqr": lambda s, x: s.iqr(x, axis=0),
    "kstat": lambda s, x: s.kstat(x, 3, axis=0),
    "kstat 4": lambda s, x: s.kstat(x, 4, axis=0),
    "kurtosis": lambda s, x: s.kurtosis(x, bias=False),
    "kurtosis 2": lambda s, x: s.kurtosis(x, axis=None, fisher=False),
    "linregress": lambda s, x: tuple(s.linregress(x[:, 0], Y[:, 0])),
    "median_abs_deviation": lambda s, x: s.median_abs_deviation(x, scale="normal"),
    "moment": lambda s, x: s.moment(x, 3, axis=1),
    "moment 2": lambda s, x: s.moment(x, 2, center=0.5),
    "pearsonr": lambda s, x: tuple(s.pearsonr(x[:, 0], Y[:, 0])),
    "pmean": lambda s, x: s.pmean(x, 3),
    "rankdata": lambda s, x: s.rankdata(WHOLE + 0 * x, axis=0),
    "rankdata 2": lambda s, x: s.rankdata(WHOLE + 0 * x, "dense", axis=1),
    "rankdata 3": lambda s, x: s.rankdata(WHOLE + 0 * x, "max"),
    "sem": lambda s, x: s.sem(x, axis=1),
    "skew": lambda s, x: s.skew(x, bias=False),
    "spearmanr": lambda s, x: tuple(s.spearmanr(x[:, 0], Y[:, 0])),
    "tmean": lambda s, x: s.tmean(x),
    "tstd": lambda s, x: s.tstd(x, axis=1),
    "ttest_1samp": lambda s, x: tuple(s.ttest_1samp(x, 0.1, alternative="less")),
    "ttest_ind": lambda s, x: tuple(s.ttest_ind(x, Y)),
    "ttest_ind 2": lambda s, x: tuple(s.ttest_ind(x, Y, axis=None, equal_var=False, alternative="greater")),
    "ttest_rel": lambda s, x: tuple(s.ttest_rel(x, Y, keepdims=True)),
    "tvar": lambda s, x: s.tvar(x),
    "variation": lambda s, x: s.variation(x, axis=None),
    "zmap": lambda s, x: s.zmap(Y, x),
    "zscore": lambda s, x: s.zscore(x, axis=1),
}


def test_every_name_has_a_case() -> None:
    names = {*stats.__all__} - {*stats.DISTRIBUTIONS}
    assert {name.split()[0] for name in CASES} == names


@pytest.mark.slow
def test_values_and_derivatives() -> None:
    x, s = T.tensor("float64", X.shape, name="x"), T.dscalar("s")
    way = RNG.normal(size=X.shape)
    wrong, outputs, wanted = [], [], []
    for name, call in CASES.items():
        expected = call(scipy.stats, X)
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = call(stats, x + s * way)
        found = found if isinstance(found, tuple) else (found,)
        weights = [np.cos(np.arange(np.size(each), dtype="float64")).reshape(np.shape(each)) for each in expected]
        for each, value in zip(found, expected, strict=True):
            outputs.append(each)
            wanted.append((name, value, 1e-12 * np.abs(value) + 1e-14))
        cost: Any = sum((each * w).sum() for each, w in zip(found, weights, strict=True))

        def moved(shift: Any, call: Any = call, weights: Any = weights) -> Any:
            made = call(scipy.stats, X + shift * way)
            made = made if isinstance(made, tuple) else (made,)
            return sum((np.asarray(each) * w).sum() for each, w in zip(made, weights, strict=True))

        slope, bound = numeric_slope(moved, [0.0], 0, units=1e3)
        outputs.append(graphc.grad(cost, s, disconnected_inputs="ignore"))
        wanted.append((f"{name}'s derivative", slope, bound))
    values = graphc.function([x, s], outputs, mode="interpreted")(X, 0.0)
    for found, (label, value, bound) in zip(values, wanted, strict=True):
        if np.shape(found) != np.shape(value) or not np.all(np.abs(found - value) <= bound):
            wrong.append(f"{label}: {found} for {value}, within {bound}")
    assert not wrong, "\n".join(wrong)


def test_what_is_not_supported_is_named() -> None:
    x = T.dvector("x")
    with pytest.raises(GraphValueError, match="skew of a tensor: nan_policy='omit' is not supported"):
        stats.skew(x, nan_policy="omit")
    with pytest.raises(GraphValueError, match="rankdata of a tensor: method='ordinal' is none of"):
        stats.rankdata(x, "ordinal")
    assert stats.zscore(np.arange(3.0)).tolist() == scipy.stats.zscore(np.arange(3.0)).tolist()
