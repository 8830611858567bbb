"""`graphc.numpy`: what NumPy gives of the same words, with NumPy's keywords; which names are there."""

from __future__ import annotations

import copy
import inspect
import pickle
from functools import partial
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc.ir.node import Node

EXPRESSIONS = """
np.exp(x) + np.sqrt(abs(x))
np.sum(x, axis=0, keepdims=True)
np.sum(a=x, axis=(0, 1))
np.mean(x, 1, dtype="float32")
np.std(x, axis=-1, ddof=1)
np.max(x, axis=0, initial=1.0)
np.cumsum(x, axis=1)
np.where(x > 0, x, np.zeros((2, 3)))
np.clip(x, a_min=0.0, a_max=0.5)
np.concatenate((x, x), axis=1)
np.stack([x, 2 * x], axis=-1)
np.split(x, 3, axis=1)[2]
np.arange(2, 8, 2)
np.linspace(0, 1, num=4, endpoint=False)
np.zeros(3, dtype=np.int32)
np.ones((2, 2))
np.full((2,), 3.0)
np.eye(2, 3)
np.ones_like(x)
np.array([x[0, 0], 1.0])
np.array([1, 2], dtype="float32", ndmin=2)
np.asarray(x)
np.reshape(x, (3, 2))
np.transpose(x, (1, 0))
np.moveaxis(x, 0, 1)
np.squeeze(x[:, None])
np.tile(x, (2, 1))
np.repeat(x, 2, axis=0)
np.roll(x, 1, axis=1)
np.dot(x, x.T)
np.einsum("ij,kj->ik", x, x)
np.tensordot(x, x, axes=([1], [1]))
np.outer(x[0], x[1])
np.linalg.norm(x, axis=1)
np.add.reduce(x)
np.multiply.accumulate(x, axis=1)
np.subtract.outer(x[0], x[1])
np.equal(x, x)
np.not_equal(x, 0)
np.maximum(x, 0)
np.argmax(x, axis=1)
np.take(x, [0, 2], axis=1)
np.diff(x)
np.minimum(np.inf, np.pi)
np.float32(2.5) * x
np.result_type(x, "float32")
np.ndim(x)
""".strip().splitlines()


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("traced", [True, False])
def test_what_numpy_gives(expression: str, traced: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3))
    wanted: Any = eval(expression, {"np": np, "x": x})
    if traced and not expression.startswith(("np.result", "np.ndim")):
        found = graphc.jit(lambda x: eval(expression, {"np": jnp, "x": x}), mode="interpreted")(x)
    else:
        found = eval(expression, {"np": jnp, "x": T.constant(x)})
        found = found.eval(mode="interpreted") if isinstance(found, Node) else found
    if isinstance(wanted, np.ndarray | np.generic):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        npt.assert_allclose(found, np.asarray(wanted), rtol=1e-6)
    else:
        assert found == wanted


def test_names() -> None:
    names = set(jnp.__all__)
    assert {"exp", "sum", "pi", "newaxis", "float32", "ndarray", "linalg", "vectorize", "asarray"} <= names
    assert all(hasattr(np, name) for name in names - {*jnp.OLD}) and dir(jnp) == jnp.__all__
    assert graphc.numpy is jnp and jnp.sum.__doc__ and "sum over" in jnp.sum.__doc__
    assert (
        all(isinstance(item, jnp.ndarray) for item in (np.ones(1), T.dvector())) and type(jnp.ndarray(2)) is jnp.ndarray
    )
    assert not isinstance([1.0], jnp.ndarray)
    assert list(inspect.signature(jnp.sum).parameters)[:3] == ["a", "axis", "dtype"]
    for module in (jnp, jnp.linalg, jnp.fft):
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            getattr(module, "nonsense")  # noqa: B009 - type checkers know that it is not there
    for theirs, ours in ((np, jnp), (np.linalg, jnp.linalg), (np.fft, jnp.fft)):
        assert not [name for name in theirs.__all__ if name[:2] != "__" and not hasattr(ours, name)]
    assert all(hasattr(jnp, name) for name in jnp.OLD) and jnp.trapz([1.0, 3.0]) == 2


def test_functions_of_elements_are_pickled_by_name() -> None:
    names = [name for name in jnp.__all__ if isinstance(getattr(np, name, None), np.ufunc)]
    assert len(names) > 90
    for name in names:
        function = getattr(jnp, name)
        assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function


def test_a_program() -> None:
    def loss(params: Any, x: Any, y: Any) -> Any:
        hidden = jnp.tanh(x @ params["w"] + params["b"])
        return jnp.mean((hidden.sum(axis=1) - y) ** 2)

    params = {"w": np.ones((3, 2)), "b": np.zeros(2)}
    x, y = np.arange(12.0).reshape(4, 3), np.ones(4)
    with graphc.options.change(mode="interpreted"):
        value, slopes = graphc.value_and_grad(loss)(params, x, y)
        by_numpy = graphc.grad(lambda p: np.mean((np.tanh(x @ p["w"] + p["b"]).sum(axis=1) - y) ** 2))(params)
    npt.assert_allclose(value, np.mean((np.tanh(x @ params["w"] + params["b"]).sum(axis=1) - y) ** 2))
    npt.assert_allclose(slopes["w"], by_numpy["w"])


def test_none_is_no_mask() -> None:
    for f in (jnp.sum, jnp.mean, jnp.max):
        assert f(np.array([1.0, 2.0]), where=None) == f(np.array([1.0, 2.0]))


j: Any = jnp  # type checkers know NumPy's arguments
SIZED: dict[str, Any] = {
    "nonzero": lambda mask, row, n: j.nonzero(mask, size=n, fill_value=-1),
    "two axes": lambda mask, row, n: j.nonzero(mask[:, None] & mask, size=n, fill_value=(-1, -2)),
    "argwhere": lambda mask, row, n: j.argwhere(mask[:, None] & mask, size=n),
    "where": lambda mask, row, n: (j.where(mask, size=n), j.flatnonzero(mask, size=n)),
    "unique": lambda mask, row, n: j.unique(row, True, True, True, size=n),
    "unique filled": lambda mask, row, n: (
        j.unique(row, size=n, fill_value=-5.0),
        j.union1d(mask, row, size=n),
    ),
    "repeat": lambda mask, row, n: j.repeat(row[:5], 2 * mask[::-1], total_repeat_length=n),
    "repeat all": lambda mask, row, n: j.repeat(row[:, None], 2, 0, total_repeat_length=n),
    "bincount": lambda mask, row, n: (
        j.bincount(3 * mask, length=n),
        j.bincount(3 * mask, 0.5 * mask, length=n),
    ),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_size_makes_the_shape_of_a_selection_known(name: str) -> None:
    mask, row = np.array([0, 1, 0, 1, 1], bool), np.array([3.0, 1.0, np.nan, 3.0, np.nan, 2.0])
    for n in (2, 8):
        traced = graphc.jit(partial(SIZED[name], n=n), mode="interpreted")
        for values in (row, row[::-1].copy()):
            pairs = zip(
                *(graphc.tree.leaves(f(mask, values)) for f in (partial(SIZED[name], n=n), traced)), strict=True
            )
            for plain, made in pairs:
                npt.assert_array_equal(made, plain)
                assert made.dtype == plain.dtype


def test_selections_of_a_size_are_batched() -> None:
    with graphc.options.change(mode="interpreted"):
        places = graphc.vmap(lambda row: j.nonzero(row, size=2, fill_value=9)[0])(np.array([[0, 1, 1], [0, 0, 1]]))
        values = graphc.vmap(lambda row: j.unique(row, size=2))(np.array([[2, 1, 2], [3, 3, 3]]))
    npt.assert_array_equal(places, [[1, 2], [2, 9]])
    npt.assert_array_equal(values, [[1, 2], [3, 3]])


@pytest.mark.parametrize("expression", [
    "jnp.sum(x, where=None)", "jnp.mean(x, where=None)", "jnp.sum(x, axis=[0, 1])", "jnp.max(x, [0, 1])",
    "jnp.expand_dims(x, range(2)).shape", "jnp.clip(x, 1)", "jnp.clip(x, max=1)", "jnp.clip(x, a_min=1)",
    "jnp.clip(x, 1, max=2)", "jnp.matmul(x, x.T, precision='highest')",
    "jnp.dot(x, x.T, preferred_element_type=np.float32)", "jnp.matmul(x, x.T, preferred_element_type=np.float32)",
    "jnp.sort(x, 0, descending=True)", "jnp.argsort(x, axis=None, descending=True)",
    "jnp.take(x.astype(int), (x * 2).astype(int), 1, mode='fill')", "jnp.take(x, [7, 0], fill_value=3)",
    "jnp.take_along_axis(x, (x * 2).astype(int) - 4, 1, mode='fill', fill_value=7)",
    "jnp.searchsorted(x[0], x, method='sort')", "jnp.isin(x, x[:, 1], method='compare_all')",
    "jnp.polyval(x[0], x, unroll=4)", "jnp.linalg.slogdet(x[:, 1:], method='lu')[1]",
    "jnp.linalg.eigh(x[:, 1:] + 4 * np.eye(2), symmetrize_input=True)[0]",
    "jnp.linalg.cholesky(x[:, 1:] + 4 * np.eye(2), symmetrize_input=True)",
    "jnp.interp(x, x[0] / 2 + 0.25, x[1], left='extrapolate', right='extrapolate')",
    "jnp.interp(x, x[0] / 2 + 0.25, x[1], left='extrapolate', right=9.0)",
    "jnp.fill_diagonal(x, 7.0, inplace=False)", "jnp.put_along_axis(x, x.astype(int)[:, :1], 7.0, 1, inplace=False)",
])  # fmt: skip
def test_arguments_of_jaxs_functions(expression: str) -> None:
    """They mean the same of arrays and of tensors; `where=None` is no mask, as NumPy would have it."""
    f = eval(f"lambda x: {expression}", {"jnp": jnp, "np": np})
    x = np.array([[0.0, 1.0, 2.0], [1.0, 2.5, 3.0]])
    want = np.asarray(f(x))
    got = np.asarray(graphc.jit(f, mode="interpreted")(x))
    npt.assert_allclose(got, want)
    assert got.dtype == want.dtype and np.any(want)
    assert x[0, 0] == 0.0


def test_values_out_of_bounds_and_the_greatest_first() -> None:
    x, index = np.array([1.0, np.nan, 3.0, 1.0]), np.array([0, -5, 4, -1])
    for run in (lambda f: f, partial(graphc.jit, mode="interpreted")):
        npt.assert_array_equal(run(lambda x: j.sort(x, descending=True))(x), [np.nan, 3, 1, 1])
        npt.assert_array_equal(run(lambda x: j.argsort(x, descending=True))(x), [1, 2, 0, 3])
        for dtype, absent in (
            ("float32", np.nan),
            ("complex64", np.nan),
            ("int8", -128),
            ("uint64", 2**64 - 1),
            ("bool", True),
        ):
            found = run(lambda x, i: j.take(x, i, mode="fill"))(np.zeros(4, dtype), index)
            npt.assert_array_equal(found, np.array([0, absent, absent, 0], dtype))
            assert found.dtype == dtype
            along = run(lambda x, i: j.take_along_axis(x, i, 0, mode="fill"))(np.zeros(4, dtype), index)
            npt.assert_array_equal(along, found)
            assert along.dtype == dtype
    slopes = graphc.grad(lambda x: j.take(x, index, fill_value=0).sum())(x)
    npt.assert_array_equal(slopes, [1, 0, 0, 1])


@pytest.mark.parametrize("expression", [
    "jnp.zeros_like(like)", "jnp.ones_like(like, int)", "jnp.full_like(like, 7)", "jnp.full_like(like, fill_value=7.5)",
    "jnp.zeros_like(like, dtype=bool, shape=(4,))", "jnp.empty_like(like) * 0",
])  # fmt: skip
def test_arrays_like_what_has_a_shape_and_a_dtype_alone(expression: str) -> None:
    def f(like: Any) -> Any:
        return eval(expression, {"jnp": jnp, "like": like})

    want, like = f(np.ones((2, 3), np.float32)), graphc.ShapeDtypeStruct((2, 3), np.float32)
    for made in (f(like), graphc.jit(lambda: f(like), mode="interpreted")()):
        assert made.dtype == want.dtype
        npt.assert_array_equal(made, want)


def test_methods_of_numbers_ask_for_a_size() -> None:
    f = graphc.jit(lambda x: x * x.shape[0].bit_length(), mode="interpreted")
    for n in (3, 4):
        npt.assert_array_equal(f(np.ones(n)), n.bit_length() * np.ones(n))
