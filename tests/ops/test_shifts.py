"""Shifts that cancel: derivatives do not go through them, and are those of the formula without a shift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.autodiff import grad, hessian_vector_product, jvp
from graphc.ir.walk import nodes_of
from graphc.testing import check_gradient

Formula = Callable[[Any, Any], Any]


def log_sum_of_two(x: Any, m: Any) -> Any:
    return m + T.log(T.exp(x[0] - m) + T.exp(x[1] - m))


def by_rows(x: Any) -> Any:
    return x.max(axis=1, keepdims=True)


def flat(x: Any) -> Any:
    return x.max(axis=1)


def first(x: Any) -> Any:
    return T.maximum(x[0], x[1])


def soft(x: Any, m: Any) -> Any:
    powers = T.exp(x - m)
    return powers / powers.sum(axis=1, keepdims=True)


CANCEL: dict[str, tuple[Callable[[Any], Any], Formula]] = {
    "of two": (first, log_sum_of_two),
    "of two, the other way round": (first, lambda x, m: T.log(T.exp(x[1] - m) + T.exp(x[0] - m)) + m),
    "and more": (first, lambda x, m: log_sum_of_two(x, m) + T.sin(x[2])),
    "of three": (
        lambda x: T.maximum(first(x), x[2]),
        lambda x, m: m + T.log(T.exp(x[0] - m) + T.exp(x[1] - m) + T.exp(x[2] - m)),
    ),
    "of rows": (flat, lambda x, m: m + T.log(T.exp(x - m[:, None]).sum(axis=1))),
    "of rows, axes kept": (by_rows, lambda x, m: m + T.log(T.exp(x - m).sum(axis=1, keepdims=True))),
    "of all": (lambda x: x.max(), lambda x, m: m + T.log(T.exp(x - m).sum())),
    "of squares": (flat, lambda x, m: m + T.log((T.exp(x - m[:, None]) * T.sqr(x)).sum(axis=1))),
    "softmax": (by_rows, lambda x, m: T.sqr(soft(x, m))),
    "its logarithm": (by_rows, lambda x, m: T.sqr(x - m - T.log(T.exp(x - m).sum(axis=1, keepdims=True)))),
    "by a reciprocal": (by_rows, lambda x, m: T.exp(x - m) * (x / T.exp(x - m).sum(axis=1, keepdims=True))),
    "of negative numbers": (lambda x: (-x).max(), lambda x, m: T.log(T.exp(-x - m).sum()) + m),
    "a sum within another": (
        first,
        lambda x, m: log_sum_of_two([log_sum_of_two(x, m), x[2]], T.maximum(log_sum_of_two(x, m), x[2])),
    ),
}
STAYS: dict[str, tuple[Callable[[Any], Any], Formula]] = {
    "another axis": (flat, lambda x, m: m + T.log(T.exp(x[:, :2] - m).sum(axis=1))),
    "summed along": (flat, lambda x, m: T.log(T.exp(x[:, :2] - m).sum(axis=1))),
    "another number of times": (first, lambda x, m: 2 * m + T.log(T.exp(x[0] - m) + T.exp(x[1] - m))),
    "of one only": (first, lambda x, m: m + T.log(T.exp(x[0] - m) + T.exp(x[1]))),
    "a rectifier": (first, lambda x, m: m * T.exp(m)),
}
X = T.dmatrix("x")
VALUES = np.random.default_rng(3).normal(size=(2, 2)).repeat(2, axis=0)[:3] * [[1.0], [2.0], [3.0]]


def ops_of(node: Any) -> set[str]:
    return {each.op.name for each in nodes_of([node])}


@pytest.mark.parametrize("name", CANCEL)
def test_no_derivative_goes_through_a_shift_that_cancels(name: str) -> None:
    shift, formula = CANCEL[name]
    with_shift, without = (formula(X, each) for each in (shift(X), 0 * shift(X)))
    cost, plain = with_shift.sum(), without.sum()
    slope, vector = grad(cost, X), T.cos(X)
    assert not ops_of(slope) & {"eq", "where", "gt", "kept_connected"}, "the extreme is differentiated"
    found = [
        [slope, hessian_vector_product(cost, X, vector), jvp(with_shift, X, vector)],
        [grad(plain, X), hessian_vector_product(plain, X, vector), jvp(without, X, vector)],
    ]
    both = graphc.function([X], [*found[0], *found[1]], mode="interpreted")(VALUES)
    for left, right in zip(both[:3], both[3:], strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-13)
    # No overflow where the formula without a shift has one.
    large = graphc.function([X], [slope, grad(T.sqr(slope).sum(), X)], mode="interpreted")(VALUES * 300)
    assert np.isfinite(large).all()


@pytest.mark.parametrize("name", STAYS)
def test_others_are_differentiated(name: str) -> None:
    shift, formula = STAYS[name]
    values = np.add(VALUES[:2], [[0.0, 0.3], [0.7, 0.1]])
    check_gradient(lambda x: formula(x, shift(x)).sum(), values)


def test_ties_infinities_and_nan() -> None:
    cost = T.sum(log_sum_of_two(X, first(X)))
    function = graphc.function([X], [cost, grad(cost, X)])
    for pair, slopes in (
        ((1.0, 1.0), (0.5, 0.5)),
        ((-np.inf, 2.0), (0.0, 1.0)),
        ((2.0, -np.inf), (1.0, 0.0)),
        ((800.0, -800.0), (1.0, 0.0)),
        ((-np.inf, -np.inf), (np.nan, np.nan)),
        ((np.inf, 1.0), (np.nan, np.nan)),
        ((np.nan, 1.0), (np.nan, np.nan)),
    ):
        value, slope = function(np.array(pair)[:, None])
        np.testing.assert_array_equal(slope[:, 0], slopes)
        assert np.isnan(value) == np.isnan(slopes[0])


def test_what_is_differentiated_by_stays() -> None:
    """Shifts, and values around them, that are asked for themselves, and paths that only go through a shift."""
    m, other = first(X), T.dvector("other")
    powers = T.exp(X[0] - m) + T.exp(X[1] - m)
    cost = (m + T.log(powers)).sum()
    mixed = T.maximum(X[0], other)
    through = (mixed + T.log(T.exp(X[0] - mixed) + T.exp(X[1] - mixed))).sum()
    outputs = [
        *(grad(cost, m), grad(cost, powers), grad(cost, m, consider_constant=[powers])),
        *(grad(through, other), grad((other * cost).sum(), X, known_grads={cost: 1.0}), grad(cost + m.sum(), m)),
    ]
    found = graphc.function([X, other], outputs, mode="interpreted")(VALUES, np.array([9.0, -9.0]))
    a, b = VALUES[:2]
    p = np.exp(a) / (np.exp(a) + np.exp(b))
    total = np.exp(a - np.maximum(a, b)) + np.exp(b - np.maximum(a, b))
    wanted = [np.zeros(2), 1 / total, np.ones(2), np.zeros(2), [p, 1 - p, np.zeros(2)], np.ones(2)]
    for left, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_in_steps() -> None:
    """A forward recursion of a hidden Markov model, of which no step backward looks for the extreme."""
    scores, moves = T.dmatrix("scores"), T.dmatrix("moves")

    def step(score: Any, before: Any) -> Any:
        joint = before[:, None] + moves
        m = joint.max(axis=0)
        return m + T.log(T.exp(joint - m).sum(axis=0)) + score

    def plain(score: Any, before: Any) -> Any:
        return T.logsumexp(before[:, None] + moves, axis=0) + score

    results = []
    for each in (step, plain):
        rows, _ = graphc.scan(each, sequences=scores[1:], outputs_info=scores[0])
        cost = T.logsumexp(rows[-1])
        results += [cost, *graphc.grad(cost, [scores, moves])]
    rng = np.random.default_rng(0)
    found = graphc.function([scores, moves], results)(rng.normal(size=(5, 3)), rng.normal(size=(3, 3)))
    for left, right in zip(found[:3], found[3:], strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)
