"""Matrices of up to four rows, whose factorisations are written out: against the interpreter, alone and in batches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import tensor as T
from graphc.codegen.lower.calls import COLUMNS, LARGEST
from graphc.ir.node import Node
from graphc.ops.linalg.factor import cholesky, lu, triangular_solve
from graphc.ops.linalg.routine import LinAlgError
from tests.support.thorough import those

FLAGS = [(lower, transposed, unit) for lower in (True, False) for transposed in (True, False) for unit in (True, False)]


def drawn(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(size=shape)


def everything(x: Node, right: Node) -> list[Node]:
    """Of any matrices; rows are such that the positive ones are far from singular."""
    count = x.type.shape[-1]
    assert isinstance(count, int)
    positive = T.matmul(x, T.swapaxes(x, -1, -2)) + count * T.eye(count, dtype=x.dtype)
    return [
        cholesky(positive),
        cholesky(positive - 9 * count * T.eye(count, dtype=x.dtype), "nan"),
        *(triangular_solve(positive, right, *each) for each in FLAGS),
        *lu(x),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "dtype"),
    those(
        lambda row: row[1] == "float64" or row[0] in (1, LARGEST),
        itertools.product(range(1, LARGEST + 1), ["float64", "float32"]),
    ),
)
def test_every_size(count: int, dtype: str) -> None:
    shapes = (count, count), (count, 2), (None, count, count), (None, count, 3)
    x, right, many, rights = (
        T.TensorType(dtype, shape=shape)(name) for name, shape in zip("xrms", shapes, strict=True)
    )
    outputs = [*everything(x, right), *everything(many, rights)]
    compiled, python, interpreted = (
        graphc.function([x, right, many, rights], outputs, mode) for mode in ("compiled", "python", "interpreted")
    )
    assert "gc_lapack" not in compiled.source
    for batch in (0, 1, 37):
        given = [drawn(*(batch if size is None else size for size in shape)).astype(dtype) for shape in shapes]
        given[0] = given[0].round()  # pivots that are equal, and zeros
        wanted = interpreted(*given)
        for mode in (compiled, python):
            for found, want in zip(mode(*given), wanted, strict=True):
                # A few operations for each row of matrices with conditions below 100.
                bound = float(1000 * count * np.finfo(dtype).eps)
                np.testing.assert_allclose(found, want, rtol=bound, atol=bound)
                assert found.dtype == want.dtype


@pytest.mark.slow
def test_pivots_are_those_of_any_size() -> None:
    """Where there are zeros, NaN, infinities and columns that are equal."""
    x, several = T.dmatrix("x"), T.TensorType("float64", shape=(None, 3, 3))("several")
    written, called = (graphc.function([each], [*lu(each)]) for each in (several, x))
    values = np.random.default_rng(5).choice([0.0, -0.0, 1.0, -1.0, 2.0, np.nan, np.inf], size=(300, 3, 3))
    packed, order, pivots = written(values)
    for place, value in enumerate(values):
        want = called(value)
        np.testing.assert_array_equal(packed[place], want[0])
        assert order[place].tolist() == want[1].tolist() and pivots[place].tolist() == want[2].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "python", "interpreted"])
def test_failures(mode: Any) -> None:
    one, many = (T.TensorType("float64", shape=shape)("a") for shape in ((2, 2), (None, 2, 2)))
    good = np.array([[2.0, 1.0], [1.0, 2.0]])
    for x in (one, many):
        f = graphc.function([x], cholesky(x), mode)
        g = graphc.function([x], T.linalg.solve(x, T.ones((2, 1))), mode)
        for value in (np.zeros((2, 2)), np.array([[1.0, 2.0], [2.0, 1.0]])):
            given = value if x is one else np.stack([good, value, good])
            with pytest.raises(LinAlgError, match="not positive definite.*cholesky of a"):
                f(given)
        with pytest.raises(LinAlgError, match="Singular matrix"):
            g(np.zeros((2, 2)) if x is one else np.stack([good, good * 0]))
        np.testing.assert_allclose(
            g(good if x is one else good[None]), np.full(g(good if x is one else good[None]).shape, 1 / 3)
        )


@pytest.mark.slow
def test_a_filter_and_its_derivatives() -> None:
    """Two observed of three states, in a loop: gradients to second order agree with the interpreter's."""
    a, h, ys = (
        T.TensorType("float64", shape=shape)(name)
        for name, shape in zip("ahy", ((3, 3), (2, 3), (None, 2)), strict=True)
    )

    def step(y: Node, m: Node, p: Node, total: Node) -> list[Node]:
        m, p = T.dot(a, m), T.dot(T.dot(a, p), a.T) + 0.1 * T.eye(3)
        innovation, s = y - T.dot(h, m), T.dot(T.dot(h, p), h.T) + T.eye(2)
        gain = T.linalg.solve(s, T.dot(h, p)).T
        total += T.linalg.slogdet(s)[1] + T.dot(innovation, T.linalg.solve(s, innovation))
        return [m + T.dot(gain, innovation), p - T.dot(T.dot(gain, h), p), total]

    start = [T.zeros((3,)), T.eye(3), T.constant(0.0)]
    states, _ = graphc.scan(step, sequences=ys, outputs_info=start)
    likelihood = states[2][-1]
    slope = graphc.grad(likelihood, a)
    outputs = [likelihood, slope, *graphc.grad((slope * slope).sum(), [a, h])]
    given = np.eye(3) * 0.9 + drawn(3, 3) * 0.1, drawn(2, 3), drawn(6, 2)
    compiled, interpreted = (graphc.function([a, h, ys], outputs, mode) for mode in ("compiled", "interpreted"))
    assert "gc_lapack" not in compiled.source
    for found, want in zip(compiled(*given), interpreted(*given), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)


def test_larger_ones_are_called() -> None:
    for rows, columns in ((LARGEST + 1, 1), (2, COLUMNS + 1)):
        a, b = (T.TensorType("float64", shape=shape)("x") for shape in ((rows, rows), (rows, columns)))
        assert "gc_lapack_triangular_solve" in graphc.function([a, b], triangular_solve(a, b), "python").source
