"""The arrays that `graphc.numpy` gives outside of traced functions: NumPy's, with JAX's `.at` and arguments."""

from __future__ import annotations

import copy
import json
import pickle
import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax, nn, random
from graphc.errors import GraphcError, GraphTypeError

OWN, PLAIN = jnp.ndarray, np.ndarray
X = jnp.arange(6.0).reshape(2, 3)
NAMES = {"np": np, "jnp": jnp, "lax": lax, "nn": nn, "random": random, "copy": copy, "pickle": pickle, "X": X}
"""What the texts below may use."""


def kind_of(value: Any) -> Any:
    return type(value) if type(value) in (OWN, PLAIN) else np.generic if isinstance(value, np.generic) else None


MADE = """
jnp.zeros(3)
jnp.asarray(np.ones(2))
jnp.linspace(0, 1, 4)
jnp.stack([X, X])
jnp.linalg.inv(jnp.eye(2))
jnp.linalg.eigh(jnp.eye(2)).eigenvalues
jnp.fft.fft(X)
jnp.split(X, 3, axis=1)[1]
jnp.nonzero(X, size=2)[0]
jnp.take(X, 9, mode="fill", axis=0)
jnp.r_[1:3]
jnp.where(X > 2, X, 0)
jnp.exp(X)
jnp.add.reduce(X)
jnp.sort(X)
lax.cummax(np.ones(3))
lax.scan(lambda c, x: (c, {"x": x}), 0.0, np.ones(3))[1]["x"]
nn.softmax(np.ones(3))
random.normal(random.key(0), (3,))
random.split(random.key(0))
X + 1
1 - X
X[1:]
X[0]
X.T
X.sum(axis=0)
X.astype("float32")
np.exp(X)
np.concatenate([X, X])
X.at[0].set(1)
X.at[0].get()
copy.copy(X)
copy.deepcopy(X)
pickle.loads(pickle.dumps(X))
jnp.asarray(X)
"""


@pytest.mark.parametrize("text", MADE.strip().splitlines())
def test_arrays_are_of_the_class(text: str) -> None:
    assert kind_of(eval(text, NAMES)) is OWN


NUMBERS = (
    "jnp.sum(X) X.sum() X[0,0] X[0]@X[1] X.mean() jnp.allclose(X,X) (X==X).all() np.sum(X) random.normal(random.key(0))"
)


@pytest.mark.parametrize("text", NUMBERS.split())
def test_results_without_axes_are_numbers(text: str) -> None:
    assert kind_of(eval(text, NAMES)) is np.generic


def test_all_else_is_numpys(tmp_path: Path) -> None:
    assert (
        reprlib.repr(X)[:6] == repr(X)[:6]
        and repr(X) == repr(np.asarray(X))
        and str(X) == str(np.asarray(X))
        and f"{X[0, 1]:.1f}" == "1.0"
    )
    assert json.dumps(X.tolist()) and memoryview(X).shape == (2, 3) and np.asarray(X).base is not None
    np.savez(tmp_path / "x.npz", x=X)
    npt.assert_array_equal(np.load(tmp_path / "x.npz")["x"], X)
    assert jnp.asarray(X) is X and np.shares_memory(jnp.asarray(x := np.ones(3)), x) and type(np.asarray(X)) is PLAIN
    out = np.empty(3)
    assert jnp.add(X[0], 1, out=out) is out and jnp.multiply(X[0], 2, out) is out
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    assert type(jnp.add(masked, 1)) is np.ma.MaskedArray and type(masked + X[0, :2]) is np.ma.MaskedArray
    with pytest.warns(PendingDeprecationWarning):
        assert type(np.matrix([[1.0]]) + jnp.ones((1, 1))) is np.matrix
    memory = np.memmap(tmp_path / "m", mode="w+", shape=3)
    assert type(memory[:2]) is np.memmap
    assert isinstance(np.ones(1), graphc.Array) and isinstance(T.dvector(), graphc.Array) and graphc.Array is OWN
    assert not isinstance(1.0, OWN) and jnp.zeros(2).block_until_ready().shape == (2,)
    a = jnp.zeros(3)
    b = a
    b += 1
    b[0] = 5
    assert a is b and a.tolist() == [5, 1, 1]


def test_reductions_without_a_mask() -> None:
    for name in "sum prod mean min max any all std var".split():
        expected = getattr(np.asarray(X), name)()
        assert getattr(X, name)(where=None) == expected == getattr(jnp, name)(X, where=None)
    assert X.sum(where=X > 2) == 12 and X.max(where=X < 2, initial=-1) == 1
    assert np.isnan(X[0].take(7, mode="fill")) and X[0].take(7, mode="clip") == 2
    assert X[0].argsort(descending=True).tolist() == [2, 1, 0] and X.nonzero(size=2)[0].tolist() == [0, 0]
    with pytest.raises(TypeError):
        X.sum(colour=1)


def test_in_place_where_nothing_can_be_written() -> None:
    fixed = x = jnp.broadcast_to(jnp.ones(2), (3, 2))
    x += 1
    assert x.tolist() == [[2, 2]] * 3 and fixed.tolist() == [[1, 1]] * 3
    with pytest.raises(ValueError, match="broadcast"):
        x += np.ones(5)


KEYS: list[Any] = [
    0,
    -1,
    slice(1, None),
    (0, 1),
    ([0, 1, 0], [2, 2, 2]),
    (slice(None), [0, 0]),
    np.array([True, False]),
    ...,
    (None, 1),
]


@pytest.mark.parametrize(
    "dtype", ["float64", "int8", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("bool", "complex128"))]
)
def test_changed_copies_are_those_of_tensors(dtype: str) -> None:
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    before, values = x.copy(), {"bool": True, "int8": 2}.get(dtype, 1.5)
    calls = 0
    for key in KEYS if dtype == "float64" else KEYS[3:6]:
        for name in "set add subtract multiply divide power min max get".split():
            args = () if name == "get" else (values,)
            try:
                expected = getattr(T.constant(np.asarray(x)).at[key], name)(*args).eval(mode="interpreted")
            except (GraphcError, TypeError) as error:
                with pytest.raises(type(error)):
                    getattr(x.at[key], name)(*args)
                continue
            found = getattr(x.at[key], name)(*args)
            assert found.dtype == expected.dtype
            npt.assert_array_equal(found, expected)
            calls += 1
    assert calls > 10
    npt.assert_array_equal(x, before)


def test_modes_of_changed_copies() -> None:
    x = jnp.zeros(3)
    assert x.at[[0, 7]].set(2.0, mode="drop").tolist() == [2, 0, 0]
    assert x.at[7].add(1.0, mode="clip").tolist() == [0, 0, 1]
    assert np.isnan(x.at[7].get(mode="fill")) and x.at[1].apply(lambda v: v + 4).tolist() == [0, 4, 0]
    assert type(x.at[T.iscalar("i")].set(1.0)) is type(T.exp(T.dvector())) and x.at[1].mul(3.0).tolist() == [0, 0, 0]
    cases: list[Callable[[], Any]] = [
        lambda: x.at[3].set(1.0), lambda: x.at[0].set(1j), lambda: x.at[0].set(1.0, mode="no")
    ]  # fmt: skip
    for wrong in cases:
        with pytest.raises((IndexError, TypeError, ValueError)):
            wrong()


def test_tensors_as_indices() -> None:
    rows = jnp.arange(12.0).reshape(4, 3)
    f = graphc.jit(lambda i, j: (rows[i], rows[i, j], rows[i:, 0].sum(), rows[jnp.stack([i, j])], rows[-1].sum()))
    for expected, found in zip((rows[1], rows[1, 2], rows[1:, 0].sum(), rows[[1, 2]], 30), f(1, 2), strict=True):
        npt.assert_array_equal(found, expected)
    assert rows.take.__name__ == "take" and "__getitem__" not in vars(OWN)
    total = lax.fori_loop(0, 4, lambda i, found: found + rows[i], np.zeros(3))
    npt.assert_array_equal(total, rows.sum(0))
    npt.assert_array_equal(graphc.vmap(lambda i: rows[i] * rows.at[i].get())(np.arange(2)), rows[:2] ** 2)
    slope = graphc.grad(lambda w: (rows.at[0].set(w) ** 2).sum())(np.ones(3))
    npt.assert_array_equal(slope, [2, 2, 2])
    plain = np.arange(3.0)
    with pytest.raises(GraphTypeError, match="jnp.asarray"):
        graphc.jit(lambda i: plain[i]).lower(1)
    assert [graphc.jit(lambda i: plain[i])(k) for k in (1, 2)] == [1.0, 2.0]


@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_results_of_jitted_functions(mode: str, tmp_path: Path) -> None:
    f = graphc.jit(lambda x, y: {"sum": x + y, "all": (x * y).sum()}, mode=mode)
    a, b = np.ones(3), jnp.ones(3)
    for _ in range(3):
        for x, y, kind in ((a, a, PLAIN), (a, b, OWN), (b, a, OWN), (b, b, OWN), (a, 2.0, PLAIN), (b, 2.0, OWN)):
            made = f(x, y)
            assert type(made["sum"]) is kind and isinstance(made["all"], np.float64)
    assert type(f(b[::-1], b)["sum"]) is OWN and type(f(jnp.float32(1), a)["sum"]) is PLAIN
    ones = graphc.jit(lambda n: jnp.ones(3) * n, mode=mode)
    kinds = [type(ones(each)) for each in (2, 2.0, 2.0, np.float64(2), jnp.asarray(2.0), a, b)]
    assert kinds == [OWN] * 5 + [PLAIN, OWN]
    assert type(ones(random.key(0))) is OWN and type(ones(b + 1j)) is OWN and type(ones(a + 1j)) is PLAIN
    place = graphc.jit(lambda x: x + 1, donate="x", mode=mode)
    x = jnp.zeros(3)
    assert type(place(x)) is OWN
    given = np.empty(3)
    assert ones(b, out=given) is given and (given == 1).all() and type(ones(a, out=jnp.empty(3))) is OWN
    x = T.dvector("x")
    assert type(graphc.function([x], x * 2, mode=mode)(b)) is PLAIN
    shared = graphc.shared(b)
    shared.set_value(b)
    assert type(shared.get_value(borrow=True)) is PLAIN and type(graphc.grad(lambda x: (x * x).sum())(b)) is OWN
    if mode == "compiled":
        ones.save(tmp_path / "ones.graphc")
        loaded = graphc.load(tmp_path / "ones.graphc")
        assert [type(loaded(each)) for each in (a, b, a, 2.0)] == [PLAIN, OWN, PLAIN, OWN]
