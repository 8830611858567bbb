"""Histograms whose bins a rule tells, and sets with the places of their elements: as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import GraphTypeError, GraphValueError
from graphc.tensor.statistics import RULES

RNG = np.random.default_rng(3)
NUMBERS = {
    "normal": RNG.normal(size=1000), "skew": RNG.exponential(size=137), "many": RNG.normal(size=20_000),
    "none": np.zeros(0), "one": np.array([3.0]), "two": np.array([1.0, 2.0]), "equal": np.ones(10),
    "nearly equal": np.r_[np.zeros(50), 1.0], "few outliers": np.r_[RNG.normal(size=60), 1e3],
}  # fmt: skip
WHOLE = {
    "counts": RNG.poisson(3, 500), "none": np.zeros(0, "int64"), "one": np.array([5]), "few": np.array([1, 2, 2, 9]),
    "wide": RNG.integers(0, 10**6, 1000),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The number of bins estimated may be suboptimal:RuntimeWarning")
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
@pytest.mark.parametrize("kind", ["float64", "float64 in a range", "float32", "int64"])
def test_rules_for_bins_are_numpys(kind: str, mode: str) -> None:
    dtype, _, has_range = kind.partition(" ")
    how: dict[str, Any] = {"range": (-1.0, 2.0)} if has_range else {}
    x = T.TensorType(dtype, (False,))("x")
    f = graphc.function([x], [part for rule in RULES for part in np.histogram(x, rule, **how)], mode=mode)
    for name, value in (WHOLE if dtype == "int64" else NUMBERS).items():
        given = value.astype(dtype)
        found = iter(f(given))
        for rule in RULES:
            counts, edges = np.histogram(given, rule, **how)
            got, own = next(found), next(found)
            assert got.shape == counts.shape, (name, rule)
            np.testing.assert_allclose(own, edges, rtol=1e-6 if dtype == "float32" else 1e-14, atol=1e-6, err_msg=rule)
            if dtype != "float32":  # whose edges are rounded as they come
                np.testing.assert_array_equal(got, counts, err_msg=f"{name}, {rule}")


def test_rules_that_are_none() -> None:
    x = T.dvector("x")
    with pytest.raises(GraphValueError, match="'odd' is no rule; there are auto, doane"):
        T.histogram(x, "odd")
    with pytest.raises(GraphTypeError, match="for numbers with weights"):
        T.histogram(x, "fd", weights=x)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_sets_with_places(mode: str) -> None:
    x, y = T.dvector("x"), T.dvector("y")
    outputs = [
        *np.intersect1d(x, y, return_indices=True), np.intersect1d(x, y, assume_unique=True),
        np.isin(x, y, assume_unique=True, kind="sort"), np.setdiff1d(x, y, assume_unique=True),
    ]  # fmt: skip
    f = graphc.function([x, y], outputs, mode=mode)
    pairs = [
        (RNG.permutation(9)[:6] * 1.0, RNG.permutation(9)[:5] * 1.0), (np.zeros(0), np.ones(2)),
        (np.ones(1), np.ones(1)), (np.array([np.nan, 1.0]), np.array([1.0, np.nan, 2.0])),
    ]  # fmt: skip
    for a, b in pairs:
        wanted = [
            *np.intersect1d(a, b, return_indices=True), np.intersect1d(a, b), np.isin(a, b),
            np.setdiff1d(a, b, assume_unique=True),
        ]  # fmt: skip
        for found, want in zip(f(a, b), wanted, strict=True):
            np.testing.assert_array_equal(found, want)
    repeated = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
    again = np.intersect1d(repeated, repeated[::-1], return_indices=True)
    for found, want in zip(f(repeated, repeated[::-1])[:3], again, strict=True):
        np.testing.assert_array_equal(found, want)


def test_kinds_of_isin() -> None:
    numbers = T.lvector("numbers")
    f = graphc.function([numbers], T.isin(numbers, [1, 5], kind="table"), mode="interpreted")
    np.testing.assert_array_equal(f([5, 2]), [True, False])
    with pytest.raises(GraphTypeError, match="for whole numbers"):
        T.isin(T.dvector("x"), [1.0], kind="table")
    with pytest.raises(GraphValueError, match="kind='hash' must be"):
        T.isin(numbers, [1], kind="hash")


def test_an_infinite_weight_stays_in_its_bin_and_weights_have_derivatives() -> None:
    x, weights = np.array([0.5, 1.5, 1.7, 2.5, 3.0, 9.0, np.nan]), np.array([1.0, np.inf, 1.0, 2.0, 4.0, 8.0, 16.0])

    def counts(x: Any, weights: Any) -> Any:
        return np.histogram(x, bins=3, range=(0.0, 3.0), weights=weights)[0]

    npt.assert_array_equal(graphc.jit(counts)(x, weights), [1.0, np.inf, 6.0])
    slope = graphc.grad(lambda w: (counts(x, w) * np.array([1.0, 10.0, 100.0])).sum(), mode="interpreted")(weights)
    npt.assert_array_equal(slope, [1.0, 10.0, 10.0, 100.0, 100.0, 0.0, 0.0])
