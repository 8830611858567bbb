"""Whole programs with values that are taken from where they were computed, and temporaries that nothing reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from tests.support.bounds import assert_within


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_not_kept(dtype: str) -> None:
    """Deviations are kept for the second pass over a row; what is made of them there is used at once."""
    x = T.matrix("x", dtype=dtype)
    disjoint = x - x.mean(axis=1, keepdims=True)
    normal = disjoint / T.sqrt(T.sqr(disjoint).mean(axis=1, keepdims=True))
    outputs = [T.exp(normal), (normal * x).sum(axis=1), T.sqr(normal).sum(axis=1)]
    f = graphc.function([x], outputs)
    rng = np.random.default_rng(2)
    for shape in ((1, 1), (3, 255), (40, 300), (0, 5), (4, 0)):
        value = rng.normal(size=shape).astype(dtype)
        with np.errstate(all="ignore"):
            assert_within(f(value), outputs, {x: value})


@pytest.mark.slow
def test_distances_between_points_write_one_row_for_their_exponentials() -> None:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    energy = T.exp(-0.5 * ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)).sum()
    f = graphc.function([x, y], [energy, graphc.grad(energy, x)])
    assert f.source.count(" exp(") == 1
    after = f.source[f.source.index(" exp(") :]
    assert after[: after.index("for j in")].count("] = ") == 1


@pytest.mark.slow
def test_steps_of_a_few_elements_write_nothing_but_what_is_kept() -> None:
    """Products within a step pass what they make on by name, each place of it by itself."""
    x, moves = T.dvector("x"), T.dtensor3("moves")
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])

    def step(move: Any, state: Any) -> Any:
        turned = T.dot(turn, T.specify_shape(state, (2,)))
        return T.dot(T.specify_shape(move, (2, 2)), turned * turned[0]) + turned

    last = graphc.scan(step, sequences=moves, outputs_info=x)[0][-1]
    outputs = [last, graphc.grad(last.sum(), moves)]
    f, specified = (graphc.function([x, moves], outputs, mode) for mode in ("compiled", "interpreted"))
    forward = f.source[f.source.index("for step") :].partition("\n\n")[0]
    assert "_2[0] = " not in forward, forward
    for steps in (1, 2, 7):
        values = np.array([0.5, -0.25]), np.random.default_rng(steps).normal(size=(steps, 2, 2))
        for found, wanted in zip(f(*values), specified(*values), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
