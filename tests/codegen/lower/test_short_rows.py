"""Reductions over rows of a few elements, which run over vectors of rows: each as the interpreter computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.ir.node import Node

RNG = np.random.default_rng(7)


def outputs(x: Node) -> list[Node]:
    """Reductions of each kind, rows made of them, gradients through them."""
    if x.type.dtype == "bool":
        return [x.any(axis=1), x.all(axis=1), x.sum(axis=1), T.argmax(x, axis=1)]
    whole = [x.sum(axis=1), x.max(axis=1), x.min(axis=1), T.argmin(x, axis=1), T.argmax(x, axis=1), x.prod(axis=1)]
    whole += [x.sum(axis=0), x - x.min(axis=1, keepdims=True)]
    if x.type.dtype not in ("float32", "float64"):
        return whole
    norm = T.sqrt((x * x).sum(axis=1, keepdims=True))
    soft = T.nnet.softmax(x)
    cost = T.sum(T.log(T.sum(T.exp(x), axis=1))) + T.sum(soft[:, 0] * norm[:, 0])
    return [
        *whole,
        norm,
        x / norm,
        soft,
        T.log(T.exp(x).sum(axis=1)),
        x.mean(axis=1),
        x.var(axis=1),
        cost,
        T.grad(cost, x),
    ]


def arrays(dtype: str, columns: int) -> list[np.ndarray[Any, Any]]:
    """Rows in several numbers and layouts, special values among them."""
    if dtype == "bool":
        plain = RNG.random((37, columns)) < 0.5
    elif dtype.startswith("float"):
        plain = RNG.normal(size=(37, columns)).astype(dtype)
        plain[3, -1], plain[11, 0], plain[20] = np.nan, np.inf, -np.inf
        plain[30:] = 0.0
    else:
        plain = RNG.integers(-9, 9, (37, columns)).astype(dtype)
    wide = np.repeat(plain, 2, axis=1)[::2, ::2]
    return [plain, plain[:0], plain[:1], plain[5:12], np.asfortranarray(plain), wide, plain[::-1]]


def check(dtype: str, columns: int) -> None:
    x = T.TensorType(dtype, (None, columns))("x")
    made = outputs(x)
    fast = graphc.function([x], made)
    plain = graphc.function([x], made, mode="interpreted")
    unit = float(np.finfo(dtype).eps) if dtype.startswith("float") else 0.0
    for array in arrays(dtype, columns):
        with np.errstate(all="ignore"):
            pairs = zip(fast(array), plain(array), strict=True)
        for place, (got, wanted) in enumerate(pairs):
            # Sums of `columns` terms in any order, and functions of two units, one after the other.
            bound = 64 * columns * unit
            np.testing.assert_allclose(got, wanted, bound, bound, err_msg=f"output {place} of {array.shape}")


@pytest.mark.parametrize(("dtype", "columns"), [("float64", 3), ("bool", 4)])
def test_short_rows(dtype: str, columns: int) -> None:
    check(dtype, columns)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "columns"),
    [("float64", 7), ("float64", 16), ("float32", 8), ("float32", 13), ("int64", 12), ("int32", 5), ("int8", 9)],
)
def test_more_short_rows(dtype: str, columns: int) -> None:
    check(dtype, columns)
