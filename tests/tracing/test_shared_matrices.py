"""Products of one matrix with several vectors: calls where the matrix is small, for the sizes of each call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.numpy as jnp
from graphc.tracing import shared_matrices


def misfit(w: Any, x: Any, y: Any) -> Any:
    return jnp.sum((x @ w - y) ** 2)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(shared_matrices, "LARGEST", 8 * 20)
    with graphc.options.change(mode="interpreted"):
        yield


def calls_of(function: Any) -> list[int]:
    return [str(each.function.text).count("gemm(") for each in function.variants()]


def test_sizes_choose_between_calls_and_one_loop() -> None:
    draw = np.random.default_rng(1)
    both = graphc.jit(graphc.value_and_grad(misfit))
    for rows in (4, 5, 6, 40, 4):
        x, y, w = draw.normal(size=(rows, 4)), draw.normal(size=rows), draw.normal(size=4)
        value, slope = both(w, x, y)
        rest = x @ w - y
        np.testing.assert_allclose(value, rest @ rest, rtol=1e-12)
        np.testing.assert_allclose(slope, 2 * x.T @ rest, rtol=1e-12, atol=1e-14)
    assert calls_of(both) == [2, 0]
    assert ["<= 20" in str(each) for each in both.variants()] == [True, False]


def test_one_product_or_a_matrix_that_is_computed_stays() -> None:
    x, w = np.ones((3, 4)), np.ones(4)
    for function in (lambda x, w: x @ w, lambda x, w: (jnp.exp(x) @ w, jnp.exp(x).T @ (jnp.exp(x) @ w))):
        made = graphc.jit(function)
        made(x, w)
        assert calls_of(made) == [0] and not made.variants()[0].guards


def test_static_sizes_ask_nothing() -> None:
    x, w = graphc.tensor.matrix("x", shape=(3, 4)), graphc.tensor.vector("w", shape=(4,))
    z = x @ w
    made = shared_matrices.with_calls([z, x.T @ z])
    assert [each.op.name for each in made] == ["gemm", "gemm"] and made[1].args[2] is made[0]
