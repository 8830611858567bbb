"""Places of neighbours: which indices follow from counting, and what is done with them."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import IndexOutOfBounds
from graphc.ir.facts import is_place_near
from graphc.ir.node import Node

X = T.dvector("x")
N = X.shape[0]
I = T.arange(N)  # noqa: E741


def test_places_that_follow_from_counting() -> None:
    padded = [T.pad(X, 2, mode=mode).args[1] for mode in ("edge", "wrap", "reflect", "symmetric")]
    near = [I, I + 1, T.clip(I - 1, 0, N - 1), (I + 1) % N, T.switch(I < N - 1, I + 1, 0), T.eq(I, 0), *padded]
    far: list[Node] = [(5 * I) % N, (I + 17) % N, I % T.lscalar("m"), I + T.lvector("k"), T.cast(I, "float64"), N + 0]
    assert [is_place_near(each) for each in (*near, *far)] == [True] * len(near) + [False] * len(far)


def test_steps_compute_places_themselves() -> None:
    """Nothing is stored for them; the states are those of the interpreter."""

    def step(u: Node) -> Node:
        return u + 0.1 * (u[T.minimum(I + 1, N - 1)] - 2.0 * u + u[(I - 1) % N])

    states, _ = graphc.scan(step, outputs_info=[X], n_steps=5)
    f = graphc.function([X], states[-1], mode="python")
    assert "x int64" not in f.explain()
    for size in (1, 2, 19):
        value = np.random.default_rng(size).normal(size=size)
        np.testing.assert_array_equal(f(value), graphc.function([X], states[-1], mode="interpreted")(value))


def test_one_index_for_all_is_checked_once() -> None:
    """And not at all where there is no element."""
    rows, at = T.dmatrix("rows"), T.lvector("at")
    for mode in ("interpreted", "python"):
        f = graphc.function([rows, at], rows[3, at], mode=mode)
        np.testing.assert_array_equal(f(np.eye(4), np.array([3, 0])), [1.0, 0.0])
        assert f(np.ones((2, 3)), np.array([], "int64")).shape == (0,)
        with pytest.raises(IndexOutOfBounds, match="index 3 of 3 is out of bounds for axis 0"):
            f(np.ones((3, 3)), np.array([0]))
    assert "| (at_0 == 0)" in f.source
