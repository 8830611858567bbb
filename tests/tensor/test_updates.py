"""`x.at[key]`: changed copies, against NumPy's assignments and `ufunc.at`, in all modes; derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, IndexOutOfBounds, ShapeError


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Any:
    with graphc.options.change(mode=request.param):
        yield request.param


RNG = np.random.default_rng(3)
X = RNG.uniform(0.5, 2.0, size=(4, 5))
ROWS, COLUMNS = np.array([0, 3, 0, -1]), np.array([1, -1, 1, 2])
MASK = X > 1.2
KEYS: dict[str, Any] = {
    "a slice": np.s_[1:3],
    "steps": np.s_[::-2, 1:],
    "an integer": 2,
    "two integers": np.s_[-1, 0],
    "ellipsis": np.s_[..., 1],
    "a new axis": np.s_[None, 1],
    "rows": ROWS,
    "pairs": (ROWS, COLUMNS),
    "columns": np.s_[:, COLUMNS],
    "apart": np.s_[ROWS, None, COLUMNS],
    "a list": [0, 2],
    "a mask": MASK,
    "nothing": np.zeros(0, int),
}
UFUNCS: dict[str, np.ufunc] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def test_updates_are_those_of_numpy() -> None:
    """All keys, all updates, of one value for each selected element: in one function."""
    x, places = T.dmatrix("x"), T.lvector("places")
    made, wanted = [], []
    for key in KEYS.values():
        values = RNG.uniform(0.5, 1.5, size=X[key].shape)
        keys = [key, places] if key is ROWS else [key]
        for own in keys:
            made.append(x.at[own].set(values))
            expected = X.copy()
            expected[key] = values
            wanted.append(expected)
            for name, ufunc in UFUNCS.items():
                made.append(getattr(x.at[own], name)(values))
                expected = X.copy()
                ufunc.at(expected, key, values)
                wanted.append(expected)
            made.append(x.at[own].apply(jnp.sqrt))
            expected = X.copy()
            np.sqrt.at(expected, key)
            wanted.append(expected)
            made.append(x.at[own].get())
            wanted.append(X[key])
    for found, expected in zip(graphc.function([x, places], made)(X, ROWS), wanted, strict=True):
        npt.assert_allclose(found, expected, rtol=1e-14)


def test_values_broadcast_and_keep_the_dtype() -> None:
    n, x = T.ivector("n"), T.fmatrix("x")
    made = [
        n.at[1].multiply(3), n.at[[0, 0]].add(2), n.at[:2].set([7, 8]), n.at[::2].max(np.int64(5)),
        x.at[:, 0].set(np.arange(2.0)), x.at[0].power(2), x.at[[1, 1]].mul(0.5), x.at[0].div(2), x.at[:].min(0.0),
    ]  # fmt: skip
    a, b = np.array([1, 2, 3], "int32"), np.ones((2, 3), "float32")
    found = graphc.function([n, x], made)(a, b)
    assert [each.dtype.name for each in found] == ["int32"] * 4 + ["float32"] * 5
    npt.assert_array_equal(found[0], [1, 6, 3])
    npt.assert_array_equal(found[1], [5, 2, 3])
    npt.assert_array_equal(found[2], [7, 8, 3])
    npt.assert_array_equal(found[3], [5, 2, 5])
    npt.assert_array_equal(found[4][:, 0], [0, 1])
    npt.assert_array_equal(found[6], [[1, 1, 1], [0.25, 0.25, 0.25]])


def test_modes() -> None:
    x, i = T.dvector("x"), T.lvector("i")
    a, far = np.array([1.0, 2.0, 3.0]), np.array([1, 7, -1, -4, 1])
    v = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    made = {
        "fill": x.at[i].get(mode="fill"),
        "told": x.at[i].get(mode="drop", fill_value=0),
        "clip": x.at[i].get(mode="clip"),
        "set": x.at[i].set(v, mode="drop"),
        "set clip": x.at[i].set(v, mode="clip"),
        "add": x.at[i].add(v, mode="drop"),
        "add clip": x.at[i].add(1.0, mode="clip"),
        "mul": x.at[i].multiply(v, mode="fill"),
        "mul clip": x.at[i].multiply(2.0, mode="clip"),
        "once": x.at[i[1:4]].max(v[1:4], mode="drop", unique_indices=True),
        "a scalar": x.at[i[1]].set(9.0, mode="drop"),
        "ints": T.cast(x, "int8").at[i].get(mode="fill"),
        "promised": x.at[i[:1]].add(1.0, mode="promise_in_bounds", indices_are_sorted=True),
    }
    found = graphc.function([x, i], made)(a, far)
    wanted = {
        "fill": [2, np.nan, 3, np.nan, 2],
        "told": [2, 0, 3, 0, 2],
        "clip": [2, 3, 3, 1, 2],
        "set": [1, 50, 30],
        "set clip": [40, 50, 30],
        "add": [1, 62, 33],
        "add clip": [2, 4, 5],
        "mul": [1, 1000, 90],
        "mul clip": [2, 8, 12],
        "once": [1, 2, 30],
        "a scalar": [1, 2, 3],
        "ints": [2, -128, 3, -128, 2],
        "promised": [1, 3, 3],
    }
    assert found.keys() == wanted.keys()
    for name, expected in wanted.items():
        npt.assert_array_equal(found[name], expected, err_msg=name)
    m = T.dmatrix("m")
    rows = graphc.function(
        [m],
        [
            m.at[[5, 1]].get(mode="fill"),
            m.at[:, [9, 0]].get(mode="fill", fill_value=0),
            m.at[[3, 0], 1:3].set(0.0, mode="drop"),
            m.at[[0, 9], None, [1, 1]].get(mode="fill"),
        ],
    )(X)
    npt.assert_array_equal(rows[0], np.stack([np.full(5, np.nan), X[1]]))
    npt.assert_array_equal(rows[1], np.stack([np.zeros(4), X[:, 0]], axis=1))
    expected = X.copy()
    expected[[3, 0], 1:3] = 0.0
    npt.assert_array_equal(rows[2], expected)
    npt.assert_array_equal(rows[3], [[X[0, 1]], [np.nan]])


def test_derivatives_of_updates() -> None:
    v = RNG.uniform(0.5, 1.5, size=4)

    def f(x: Any, v: Any) -> Any:
        x = x.at[ROWS].multiply(v[:, None]).at[1:, 0].divide(v[:3]).at[0].power(1.5)
        x = x.at[ROWS, COLUMNS].max(v).at[[1, 9]].add(v[0], mode="drop").at[-1].apply(jnp.sin)
        return (x.at[[0, 4]].get(mode="fill", fill_value=0.5) ** 2).sum() + (x**3).sum()

    slopes = graphc.grad(f, argnums=(0, 1))(X, v)
    value = graphc.jit(f)
    for place, slope in enumerate(slopes):
        direction = RNG.normal(size=slope.shape)
        ends = []
        for step in (-2e-3, -1e-3, 1e-3, 2e-3):
            moved = [X, v]
            moved[place] = moved[place] + step * direction
            ends.append(float(value(*moved)))
        quotient = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / 12e-3
        npt.assert_allclose((slope * direction).sum(), quotient, rtol=1e-7)


def test_updates_in_functions_of_arrays() -> None:
    f = graphc.jit(lambda x, i: x.at[i].multiply(2.0))
    npt.assert_array_equal(f(np.ones(3), np.array([0, 0, 2])), [4, 1, 2])
    npt.assert_array_equal(f(np.ones(2), np.array([1])), [1, 2])
    rows = graphc.vmap(lambda x, i, v: x.at[i].add(v), in_axes=(None, 0, 0))(
        np.zeros(3), np.array([1, 2]), v := np.ones(2)
    )
    npt.assert_array_equal(rows, [[0, 1, 0], [0, 0, 1]])
    rows = graphc.vmap(lambda x, i: x.at[i].max(v[0], mode="drop"))(np.zeros((2, 3)), np.array([[1, 1], [2, 5]]))
    npt.assert_array_equal(rows, [[0, 1, 0], [0, 0, 1]])


def test_updates_that_do_not_fit() -> None:
    x, n = T.dvector("x"), T.lvector("n")
    cases: list[tuple[Any, type[GraphcError], str]] = [
        (lambda: n.at[0].set(1.5), GraphTypeError, r"at\[...\].set: .* does not fit into n"),
        (lambda: n.at[[0, 0]].multiply(0.5), GraphTypeError, r"at\[...\].multiply: .* does not fit into n"),
        (lambda: x.at[0].set(1.0, mode="wrap"), GraphValueError, "mode is one of"),
        (lambda: x.at[0].set(1.0, sorted=True), GraphValueError, "does not take sorted"),
        (lambda: x.at[0, 0].get(mode="fill"), IndexOutOfBounds, "2 indices for 1 axes"),
        (lambda: x.at[x > 0, 0].get(mode="clip"), IndexOutOfBounds, "2 indices for 1 axes"),
        (lambda: T.zeros(3).at[:2].set(np.ones(3)), ShapeError, "differ"),
        (lambda: T.zeros((2, 2)).at[T.zeros(2) > 0, 1].get(mode="clip"), GraphTypeError, "it is no index"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
    with pytest.raises(IndexOutOfBounds):
        graphc.function([x, n], x.at[n].set(1.0))(np.ones(2), [5])
    assert repr(x.at).startswith("<the parts of x") and repr(x.at[0]).startswith("<a part of x")
