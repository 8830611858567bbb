"""`graphc.nn`: functions under the names of `jax.nn`, against NumPy's formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
from graphc import nn

X = np.array([[-4.0, -1.0, 0.0, 0.3], [2.0, 3.5, 6.5, -0.2]])
CHOSEN = X > -2


def _softmax(x: Any, axis: Any = -1) -> Any:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


FORMULAS: dict[str, tuple[Callable[..., Any], Any]] = {
    "relu": (nn.relu, np.maximum(X, 0)),
    "leaky_relu": (lambda x: nn.leaky_relu(x, negative_slope=0.2), np.where(X < 0, 0.2 * X, X)),
    "gelu": (nn.gelu, X / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))),
    "hard_sigmoid": (nn.hard_sigmoid, np.clip(X + 3, 0, 6) / 6),
    "hard_swish": (nn.hard_swish, X * np.clip(X + 3, 0, 6) / 6),
    "soft_sign": (nn.soft_sign, X / (1 + abs(X))),
    "swish": (nn.swish, X / (1 + np.exp(-X))),
    "softplus": (nn.softplus, np.log1p(np.exp(X))),
    "sparse_plus": (nn.sparse_plus, np.where(X <= -1, 0, np.where(X >= 1, X, (X + 1) ** 2 / 4))),
    "sparse_sigmoid": (nn.sparse_sigmoid, np.clip((X + 1) / 2, 0, 1)),
    "identity": (nn.identity, X),
    "softmax": (nn.softmax, _softmax(X)),
    "softmax of all": (lambda x: nn.softmax(x, axis=None), _softmax(X.ravel()).reshape(2, 4)),
    "softmax where": (
        lambda x: nn.softmax(x, 0, where=CHOSEN, initial=-np.inf),
        _softmax(np.where(CHOSEN, X, -np.inf), 0),
    ),
    "log_softmax": (nn.log_softmax, np.log(_softmax(X))),
    "logsumexp": (lambda x: nn.logsumexp(x, 1, where=CHOSEN), np.log((np.exp(X) * CHOSEN).sum(1))),
    "logmeanexp": (
        lambda x: nn.logmeanexp(x, 1, where=CHOSEN, keepdims=True),
        np.log((np.exp(X) * CHOSEN).sum(1) / CHOSEN.sum(1))[:, None],
    ),
    "log1mexp": (lambda x: nn.log1mexp(abs(x) + 0.1), np.log(1 - np.exp(-abs(X) - 0.1))),
    "standardize": (lambda x: nn.standardize(x, 0), (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5)),
    "standardize by": (lambda x: nn.standardize(x, mean=1.0, variance=2.0), (X - 1) / np.sqrt(2 + 1e-5)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_functions_of_scores(name: str) -> None:
    function, want = FORMULAS[name]
    for made in (function(X), graphc.jit(function, mode="interpreted")(X)):
        assert made.dtype == want.dtype
        npt.assert_allclose(made, want, rtol=1e-12, atol=1e-12)


def test_one_hot_vectors() -> None:
    places = np.array([[0, 2], [7, -1]])
    want = (places[..., None] == np.arange(3)).astype(float)
    npt.assert_array_equal(nn.one_hot(places, 3), want)
    assert nn.one_hot(places, 3, dtype=np.int32).dtype == np.int32
    npt.assert_array_equal(nn.one_hot(places, 3, axis=0), np.moveaxis(want, -1, 0))
    npt.assert_array_equal(nn.one_hot(places, 3, axis=-2), np.moveaxis(want, -1, -2))
    with pytest.raises(np.exceptions.AxisError):
        nn.softmax(X, axis=2)


def test_slopes_at_zero_are_those_below() -> None:
    slopes = graphc.grad(lambda x: (nn.relu(x) + nn.leaky_relu(x)).sum(), mode="interpreted")(
        np.array([-1.0, 0.0, 1.0])
    )
    npt.assert_allclose(slopes, [0.01, 0.01, 2.0])


DRAWN = {
    "normal": (nn.initializers.normal(0.5), 0.5), "truncated_normal": (nn.initializers.truncated_normal(1.0), 0.8796),
    "glorot_uniform": (nn.initializers.glorot_uniform(), np.sqrt(2 / 70)),
    "he_normal": (nn.initializers.he_normal(), np.sqrt(2 / 30)),
    "lecun_uniform": (nn.initializers.lecun_uniform(), np.sqrt(1 / 30)),
    "fan_out": (nn.initializers.variance_scaling(3.0, "fan_out", "normal"), np.sqrt(3 / 40)),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_initial_values_have_the_deviation_of_their_formula(name: str) -> None:
    draw, deviation = DRAWN[name]
    with graphc.options.change(mode="interpreted"):
        values = draw(graphc.random.key(1), (2, 15, 20), np.float32)
    assert values.dtype == np.float32 and values.shape == (2, 15, 20)
    assert abs(values.mean()) < 0.2 * deviation and values.std() == pytest.approx(deviation, rel=0.1)


def test_orthogonal_initial_values() -> None:
    with graphc.options.change(mode="interpreted"):
        wide = nn.initializers.orthogonal(2.0)(graphc.random.key(0), (3, 5))
        middle = nn.initializers.delta_orthogonal()(graphc.random.key(0), (3, 3, 2, 4))
    npt.assert_allclose(wide @ wide.T, 4 * np.eye(3), atol=1e-12)
    npt.assert_allclose(middle[1, 1] @ middle[1, 1].T, np.eye(2), atol=1e-12)
    assert np.count_nonzero(middle) == 8
    with pytest.raises(ValueError, match="two axes or more"):
        nn.initializers.he_normal()(graphc.random.key(0), (3,))


@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("how", [
    {}, {"scale": 0.3, "bias": True}, {"mask": True, "is_causal": True}, {"local_window_size": (2, 1)},
    {"query_seq_lengths": np.array([3, 5]), "key_value_seq_lengths": np.array([6, 2])},
])  # fmt: skip
def test_attention(how: dict[str, Any], groups: int) -> None:
    rng = np.random.default_rng(groups)
    q, k, v = rng.normal(size=(2, 5, 4, 3)), *rng.normal(size=(2, 2, 6, groups, 3))
    own = {"bias": rng.normal(size=(1, 4, 5, 6)), "mask": rng.random((2, 1, 5, 6)) < 0.8}
    how = {name: own.get(name, each) for name, each in how.items()}
    scores = np.einsum("bthd,bshd->bhts", q, np.repeat(k, 4 // groups, 2)) * how.get("scale", 3**-0.5) + how.get(
        "bias", 0
    )
    time, other = np.arange(5)[:, None], np.arange(6)
    allowed = how.get("mask", True) & np.ones((2, 4, 5, 6), bool)
    if how.get("is_causal"):
        allowed &= other <= time
    if "local_window_size" in how:
        allowed &= (time - 2 <= other) & (other <= time + 1)
    if "query_seq_lengths" in how:
        allowed &= other < how["key_value_seq_lengths"].reshape(2, 1, 1, 1)
    want = np.einsum("bhts,bshd->bthd", _softmax(np.where(allowed, scores, -1e300)), np.repeat(v, 4 // groups, 2))
    if "query_seq_lengths" in how:
        want = want * (np.arange(5)[:, None, None] < how["query_seq_lengths"].reshape(2, 1, 1, 1))
    tensors = {name: how[name] for name in own if name in how}
    static = {name: how[name] for name in how if name not in own}
    npt.assert_allclose(nn.dot_product_attention(q, k, v, **how), want, rtol=1e-10)
    jitted: Any = graphc.jit(lambda t, q, k, v: nn.dot_product_attention(q, k, v, **t, **static), mode="interpreted")
    npt.assert_allclose(jitted(tensors, q, k, v), want, rtol=1e-10)
    if not how:
        npt.assert_allclose(nn.dot_product_attention(q[0], k[0], v[0]), want[0], rtol=1e-10)
