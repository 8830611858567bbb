"""Products with derivatives of functions, and checkpoints: values, structure, composition, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax
from graphc.errors import ArgumentError, GradientError, GraphTypeError, GraphValueError
from graphc.functions.callables import Interpreted
from graphc.trees import leaves, structure
from tests.support.thorough import some


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Iterator[str]:
    with graphc.options.change(mode=request.param):
        yield request.param


RNG = np.random.default_rng(5)
X, W, V = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))


def layer(w: Any, x: Any) -> Any:
    return jnp.tanh(jnp.tanh(x @ w) @ w)


def quotient(f: Any, x: Any, v: Any, step: float = 1e-3) -> Any:
    """The derivative of f at x along v, by differences of the fourth order."""
    ends = [np.asarray(f(x + k * step * v)) for k in (-2, -1, 1, 2)]
    return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)


def test_products_are_those_of_jacobians() -> None:
    value, tangent = graphc.jvp(layer, (W, X), (V, np.zeros_like(X)))
    npt.assert_allclose(value, np.tanh(np.tanh(X @ W) @ W), rtol=1e-12)
    npt.assert_allclose(tangent, quotient(lambda w: np.tanh(np.tanh(X @ w) @ w), W, V), rtol=1e-8, atol=1e-10)
    same, push = graphc.linearize(layer, W, X)
    npt.assert_array_equal(same, value)
    npt.assert_allclose(push(V, np.zeros_like(X)), tangent, rtol=1e-12)
    npt.assert_allclose(push(2 * V, X), 2 * tangent + push(np.zeros_like(V), X), rtol=1e-10, atol=1e-12)
    g = RNG.normal(size=value.shape)
    same, pull = graphc.vjp(layer, W, X)
    npt.assert_array_equal(same, value)
    by_w, by_x = pull(g)
    npt.assert_allclose((by_w * V).sum(), (g * tangent).sum(), rtol=1e-10)
    npt.assert_allclose((by_x * X).sum(), (g * push(np.zeros_like(V), X)).sum(), rtol=1e-10)
    npt.assert_allclose(pull(2 * g)[0], 2 * by_w, rtol=1e-12)
    jacobian = graphc.jacrev(layer)(W, X)
    npt.assert_allclose(np.tensordot(jacobian, V, 2), tangent, rtol=1e-10)
    npt.assert_allclose(graphc.vmap(lambda g: graphc.vjp(layer, W, X)[1](g)[0])(np.stack([g, 2 * g]))[1], 2 * by_w)


def test_products_keep_what_the_function_has_computed() -> None:
    """The second part has no tanh: the first has kept their values."""
    for made in (graphc.vjp(layer, W, X)[1], graphc.linearize(layer, W, X)[1]):
        made(*([X] if made.by == "vjp" else [V, X]))
        text = made.apply.functions[0].text
        assert "matmul" in text and "tanh" not in text
    with graphc.options.change(mode="interpreted"):
        _, pull = graphc.vjp(lambda x, y: jnp.exp(x) * y, np.ones((1, 3)), np.ones((2, 3)))  # an axis that broadcasts
        npt.assert_allclose(pull(np.ones((2, 3)))[0], np.full((1, 3), 2 * np.e))


@pytest.mark.parametrize("shape", [(4, 1, 3), (1, 3)])
@pytest.mark.parametrize("f", [np.squeeze, lambda x: np.squeeze(jnp.tanh(x)) * x.sum()])
def test_products_of_axes_that_are_left_out(f: Any, shape: tuple[int, ...]) -> None:
    x, v = RNG.normal(size=(2, *shape))
    value, tangent = graphc.jvp(f, (x,), (v,))
    g = RNG.normal(size=value.shape)
    npt.assert_allclose(tangent, quotient(f, x, v), rtol=1e-7, atol=1e-9)
    npt.assert_allclose(graphc.linearize(f, x)[1](v), tangent)
    npt.assert_allclose((graphc.vjp(f, x)[1](g)[0] * v).sum(), (g * tangent).sum())


def test_products_of_trees() -> None:
    def f(p: Any, n: Any) -> Any:
        return {"y": p["a"] * p["b"][0] * n, "n": n + 1}, p["a"]

    p, t = {"a": X, "b": (W[0], 2.0)}, {"a": np.ones_like(X), "b": (V[0], 1.0)}
    value, tangent, aux = graphc.jvp(f, (p, 3), (t, 0), has_aux=True)
    npt.assert_allclose(value["y"], 3 * X * W[0])
    npt.assert_allclose(tangent["y"], 3 * (W[0] + X * V[0]))
    assert value["n"] == 4 and tangent["n"] == 0.0 and structure(tangent) == structure(value)
    npt.assert_array_equal(aux, X)
    value, pull, aux = graphc.vjp(f, p, 3, has_aux=True)
    by_p, by_n = pull({"y": np.ones_like(X), "n": 0})
    assert structure(by_p) == structure(p) and by_n == 0.0 and by_p["b"][1] == 0.0
    npt.assert_allclose(by_p["b"][0], 3 * X.sum(0))
    npt.assert_array_equal(aux, X)
    _, push, aux = graphc.linearize(f, p, 3, has_aux=True)
    npt.assert_allclose(push(t, 0)["y"], tangent["y"])


def test_products_of_second_derivatives() -> None:
    def loss(w: Any, x: Any) -> Any:
        return (layer(w, x) ** 2).sum()

    found = graphc.hvp(loss, (W, X), (V, np.zeros_like(X)))
    npt.assert_allclose(found, np.tensordot(graphc.hessian(loss)(W, X), V, 2), rtol=1e-9)
    slope = graphc.grad(loss)
    npt.assert_allclose(found, quotient(lambda w: slope(w, X), W, V), rtol=1e-7, atol=1e-9)
    both = graphc.hvp(loss, (W, X), (V, X), argnums=(0, 1))
    assert [each.shape for each in both] == [W.shape, X.shape]
    backwards = graphc.jit(graphc.grad(lambda w: jnp.vdot(graphc.grad(loss)(w, X), V)))(W)
    forwards = graphc.jvp(graphc.grad(lambda w: loss(w, X)), (W,), (V,))[1]
    mixed = graphc.grad(lambda w: graphc.jvp(lambda w: loss(w, X), (w,), (V,))[1])(W)
    for other in (backwards, forwards, mixed):
        npt.assert_allclose(other, found, rtol=1e-10)
    assert graphc.hvp(lambda p: p["a"] ** 2 * p["b"], ({"a": 2.0, "b": 3.0},), ({"a": 1.0, "b": 0.0},))["b"] == 4.0


def test_products_of_tensors_are_graphs() -> None:
    w, x = T.dmatrix("w"), T.dmatrix("x")
    value, tangent = graphc.jvp(layer, (w, x), (w, x))
    _, pull = graphc.vjp(layer, w, x)
    f = graphc.function([w, x], [value, tangent, *pull(value)])
    results = f(W, X)
    npt.assert_allclose(results[1], graphc.jvp(layer, (W, X), (W, X))[1], rtol=1e-12)
    npt.assert_allclose(results[2], graphc.vjp(layer, W, X)[1](results[0])[0], rtol=1e-12)
    inside = graphc.jit(lambda w, x: graphc.linearize(layer, w, x)[1](w, x))
    npt.assert_allclose(inside(W, X), results[1], rtol=1e-12)
    held = graphc.vjp(layer, W, X)[1]  # of arrays, within a function of tensors
    npt.assert_allclose(graphc.jit(lambda g: held(g)[0])(results[0]), results[2], rtol=1e-12)


def test_what_has_changed_is_seen() -> None:
    scale = 2.0

    def f(x: Any) -> Any:
        return scale * x

    assert graphc.jvp(f, (1.0,), (1.0,))[1] == 2.0
    scale = 3.0
    assert graphc.jvp(f, (1.0,), (1.0,))[1] == 3.0 and graphc.vjp(f, 1.0)[1](1.0) == (3.0,)


def test_products_that_do_not_fit() -> None:
    cases = [
        (lambda: graphc.jvp(jnp.sin, (1.0,), (np.ones(3),)), GradientError, r"tangents\[0\] is float64\["),
        (lambda: graphc.jvp(jnp.sin, 1.0, 1.0), GraphTypeError, "primals must be a tuple or a list"),
        (lambda: graphc.jvp(jnp.sin, (1.0,), ()), GradientError, "1 primals and 0 tangents"),
        (lambda: graphc.vjp(lambda x: {"a": x}, 1.0)[1](1.0), GradientError, r"must be like \{'a': \*\}, not \*"),
        (lambda: graphc.vjp(jnp.sin, 1.0)[1](1.0, 2.0), GradientError, "one cotangent is to be given"),
        (graphc.linearize(jnp.sin, 1.0)[1], GradientError, r"must be like \(\*,\), not \(\)"),
        (lambda: graphc.vjp(lambda x: (x, "no"), 1.0), GraphTypeError, r"result\[1\] that it returns is no array"),
        (lambda: graphc.vjp(T.dscalar("x") * 2, T.dscalar("y")), ArgumentError, "argument: 'cotangents'"),
        (lambda: graphc.jvp(T.dscalar("x") * 2, [], [], has_aux=True), GraphTypeError, "has_aux is for derivatives of"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()


def test_a_mode_of_every_derivative() -> None:
    def total(x: Any) -> Any:
        return (x**2).sum()

    for made in (graphc.grad, graphc.value_and_grad, graphc.jacrev, graphc.jacfwd, graphc.hessian, graphc.vmap):
        f = made(total, mode="interpreted")
        f(W)
        assert [*map(type, f.functions)] == [Interpreted]
    with pytest.raises(GraphTypeError, match="mode is for derivatives of functions"):
        graphc.grad(T.dscalar("x"), mode="python")  # type: ignore[call-overload]


# --- checkpoints ------------------------------------------------------------------------------------------------------


def chain(w: Any, x: Any) -> Any:
    h = jnp.tanh(x @ w)
    h = graphc.checkpoint_name(jnp.sin(h), "sine")
    return {"h": h @ w, "total": h.sum()}


POLICIES = {
    "nothing": None,
    "everything": graphc.checkpoint_policies.everything_saveable,
    "dots": graphc.checkpoint_policies.dots_saveable,
    "named": graphc.checkpoint_policies.save_only_these_names("sine"),
    "others": graphc.checkpoint_policies.save_any_names_but_these("sine"),
    "both": graphc.checkpoint_policies.save_from_both_policies(
        graphc.checkpoint_policies.dots_with_no_batch_dims_saveable,
        graphc.checkpoint_policies.save_anything_except_these_names("sine"),
    ),
}


@pytest.mark.parametrize("policy", some(POLICIES))
def test_a_checkpoint_changes_no_value(policy: str) -> None:
    kept = graphc.checkpoint(chain, policy=POLICIES[policy])

    def loss(f: Any) -> Any:
        return lambda w, x: (f(w, f(w, x)["h"])["h"] ** 2).sum() + f(w, x)["total"]

    npt.assert_array_equal(kept(W, X)["h"], graphc.jit(chain)(W, X)["h"])
    own, plain = (graphc.grad(loss(f), argnums=(0, 1)) for f in (kept, chain))
    for one, other in zip(own(W, X), plain(W, X), strict=True):
        npt.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    along = (V, np.zeros_like(X))
    npt.assert_allclose(
        graphc.hvp(loss(kept), (W, X), along), graphc.hvp(loss(chain), (W, X), along), rtol=1e-11, atol=1e-13
    )
    rows = graphc.vmap(graphc.grad(loss(kept)), in_axes=(None, 0))(W, X)
    npt.assert_allclose(rows.sum(0), plain(W, X)[0], rtol=1e-11, atol=1e-13)


def counted(policy: Any) -> int:
    """How often the derivative of a chain computes a sine."""
    f = graphc.checkpoint(lambda x: jnp.sin(jnp.cumsum(jnp.sin(jnp.cumsum(x)))), policy=policy)
    made = graphc.value_and_grad(lambda x: jnp.cumsum(f(x)).sum()).function_for(np.ones(3))
    text: str = made.text
    return text.count(" = sin(")


def test_a_checkpoint_computes_again_what_is_not_kept() -> None:
    assert counted(graphc.checkpoint_policies.everything_saveable) == 2
    assert counted(None) == 3  # the last one is a result, and no derivative needs it


def test_a_checkpoint_within_a_loop_keeps_the_states_alone() -> None:
    def step(w: Any, h: Any, x: Any) -> Any:
        for _ in range(3):
            h = jnp.tanh(h @ w + x)
        return h

    def loss(f: Any) -> Any:
        return lambda w, xs: (lax.scan(lambda h, x: (f(w, h, x), None), jnp.zeros((4, 3)), xs)[0] ** 2).sum()

    xs, sizes = RNG.normal(size=(50, 4, 3)), []
    for f in (step, graphc.checkpoint(step)):
        slope = graphc.grad(loss(f), argnums=(0, 1))
        with graphc.options.change(mode="compiled"):
            sizes.append(slope.function_for(W, xs).memory(W.shape, xs.shape).arena)
    with graphc.options.change(mode="interpreted"):
        pairs = [graphc.grad(loss(f), argnums=(0, 1))(W, xs) for f in (step, graphc.checkpoint(step))]
    for one, other in zip(*pairs, strict=True):
        npt.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert sizes[1] < sizes[0] / 3


def test_checkpoints_of_other_functions() -> None:
    power = graphc.checkpoint(lambda x, n: x**n, static_argnums=1)
    assert graphc.grad(lambda x: power(x, 3))(2.0) == 12.0 and power(2.0, n=3) == 8.0
    jitted = graphc.checkpoint(graphc.jit(lambda x, n: x**n, static_argnames="n"))
    assert graphc.grad(lambda x: jitted(x, n=2))(3.0) == 6.0
    w = np.array(2.0)
    closed = graphc.grad(lambda w: graphc.checkpoint(lambda x: jnp.sin(w * x))(3.0 * w))
    assert closed(w) == pytest.approx(12.0 * np.cos(12.0), rel=1e-13)
    looped = graphc.grad(
        lambda w: lax.scan(lambda c, x: (graphc.checkpoint(lambda x: jnp.sin(c * x))(w * x), None), w, jnp.ones(3))[0]
    )
    by_hand = graphc.grad(lambda w: lax.scan(lambda c, x: (jnp.sin(c * w * x), None), w, jnp.ones(3))[0])
    assert looped(w) == pytest.approx(by_hand(w), rel=1e-12)
    assert graphc.remat is graphc.checkpoint
    with pytest.raises(GraphTypeError, match="policy is a function"):
        graphc.checkpoint(lambda x: x, policy="dots")  # type: ignore[arg-type]
    whole = graphc.checkpoint(lambda x: {"n": x.astype("int64")})(np.ones(2))
    assert [leaf.dtype for leaf in leaves(whole)] == ["int64"]
    with pytest.raises(GraphValueError, match="has no parameter 'm'"):
        graphc.checkpoint(lambda x: x, static_argnames="m")


@pytest.mark.parametrize("function", [np.cumprod, lambda x: np.cumprod(x[::-1], 0)[::-1], np.prod, np.cumsum])
def test_products_of_what_runs_along_an_axis(function: Any) -> None:
    x, along = np.array([-0.5, 0.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, -1.0])
    with graphc.options.change(mode="interpreted"):
        slope = graphc.jvp(function, (x,), (along,))[1]
        rows = graphc.jacrev(function)(x)
    npt.assert_allclose(slope, rows @ along, rtol=1e-14)
