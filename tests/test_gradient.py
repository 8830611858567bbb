"""Derivatives under Theano's names, with Theano 1.0.5's results."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc.errors import GradientError, GraphTypeError
from graphc.theano.gradient import (
    DisconnectedInputError,
    DisconnectedType,
    GradientMismatch,
    NullType,
    NullTypeGradError,
    consider_constant,
    disconnected_grad,
    grad_clip,
    grad_scale,
    grad_undefined,
    numeric_grad,
    subgraph_grad,
    undefined_grad,
    verify_grad,
    zero_grad,
)

X, Y, N, NS = T.dscalar("x"), T.dscalar("y"), T.iscalar("n"), T.ivector("ns")


def at(nodes: Any) -> Any:
    f = theano.function([X, Y, N, NS], nodes, mode="interpreted", on_unused_input="ignore")
    return f(3.0, 5.0, 3, [3, 4])


def old_constant(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return consider_constant(x)


DERIVATIVES: list[tuple[Any, Any, Any]] = [
    (zero_grad(X) ** 2, X, 0.0),
    (zero_grad(X) ** 2 + X, X, 1.0),
    (old_constant(X) ** 2 + X, X, 1.0),
    (disconnected_grad(X) ** 2 + X, X, 1.0),
    (grad_scale(T.sin(X), -1.0), X, -np.cos(3.0)),
    (grad_scale(X**2, Y), X, 30.0),
    (grad_clip(X, -1, 1) ** 2, X, 1.0),
    (grad_clip(X, -1, 10) ** 2, X, 6.0),
    # integers: as the real numbers that they are cast to, zero through what only integers have
    (N * 1.5, N, 1.5),
    ((N + 1) * 1.5, N, 0.0),
    (T.exp(N), N, np.exp(3.0)),
    (T.sum(NS), NS, [0.0, 0.0]),
    (T.cast(X, "int32"), X, 0.0),
    (N, N, 1.0),
    (X > 2, X, 0.0),
    ((NS * np.array([1.5, 2.5])).sum(), NS, [1.5, 2.5]),
    (NS[0] * 1.5, NS, [0.0, 0.0]),
]


def test_derivatives() -> None:
    found = at([theano.grad(cost, wrt) for cost, wrt, _ in DERIVATIVES])
    for (_, _, expected), value in zip(DERIVATIVES, found, strict=True):
        np.testing.assert_allclose(value, expected)
        assert value.dtype == "float64"
    values = at([cost for cost, _, _ in DERIVATIVES[:8]])
    np.testing.assert_allclose(values, [9, 12, 12, 12, np.sin(3), 9, 9, 9])


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_identities_cost_nothing(mode: str) -> None:
    x = T.fvector("x")
    y = grad_clip(grad_scale(zero_grad(undefined_grad(x)), 2.0), -1.0, 1.0)
    f = theano.function([x], [y * 2, theano.grad((grad_clip(grad_scale(x, -4.0), -1, 1) ** 2).sum(), x)], mode=mode)
    assert f.source.count("0.25") == 0 and "copy" not in f.source
    np.testing.assert_array_equal(f(np.array([1, -2], "float32")), [[2, -4], [-4, 4]])


def test_disconnected() -> None:
    for cost in (disconnected_grad(X) ** 2, Y * 2):
        with pytest.raises(DisconnectedInputError, match="does not depend on x"):
            theano.grad(cost, X)
    options: Any = {"disconnected_inputs": "ignore"}
    assert theano.grad(X**2, [X, Y], return_disconnected="None", **options)[1] is None
    absent = theano.grad(X**2, [X, Y], return_disconnected="Disconnected", **options)[1]
    assert isinstance(absent.type, DisconnectedType) and str(absent) == "<DisconnectedType>"
    assert at(theano.grad(X**2, Y, **options)) == 0.0
    with pytest.raises(GradientError, match="return_disconnected='no'"):
        theano.grad(X**2, X, return_disconnected="no")
    assert at(theano.Rop([Y * 2, X * Y], [X], [X]))[0] == 0.0
    with pytest.raises(DisconnectedInputError):
        theano.Rop(disconnected_grad(X) * 2, X, X)
    assert theano.Rop(disconnected_grad(X) * 2, X, X, "ignore", "None") is None
    assert at(theano.Rop(disconnected_grad(X) * 2, X, X, disconnected_outputs="ignore")) == 0.0
    assert at(theano.Lop(X * Y, [X, Y], theano.tensor.as_tensor(1.0), consider_constant=[X * 1]))[0] == 5.0


def test_undefined() -> None:
    cost = undefined_grad(X) ** 2 + Y
    assert at(theano.grad(cost, Y)) == 1.0
    for wrt in (X, [Y, X]):
        with pytest.raises(NullTypeGradError, match="undefined_grad by argument 0, x .*undefined"):
            theano.grad(cost, wrt)
    null = theano.grad(cost * X, X, null_gradients="return")
    assert isinstance(null.type, NullType) and null.name is None
    assert str(NullType("not defined")()) == "<NullType>"
    assert "by argument 2" in grad_undefined("op", 2, X, "why").type.why_null  # type: ignore[union-attr]


def test_names() -> None:
    cost = X**3
    cost.name = "cost"
    assert theano.grad(cost, X).name == "(dcost/dx)"
    assert theano.grad(cost * 2, X).name is None
    other = X**4
    other.name = "other"
    assert theano.grad(other, X, add_names=False).name is None


def test_parts_of_a_graph() -> None:
    x, t = T.dvector("x"), T.dvector("t")
    w1, w2 = theano.shared(np.full((3, 4), 0.1), "w1"), theano.shared(np.full((4, 2), 0.2), "w2")
    a1 = T.tanh(T.dot(x, w1))
    a2 = T.tanh(T.dot(a1, w2))
    cost2 = T.sqr(a2 - t).sum() + T.sqr(w2.sum())
    cost1 = T.sqr(w1.sum())
    (g2,), (g_a1,) = subgraph_grad(wrt=[w2], end=[a1], cost=cost2)
    found = subgraph_grad(wrt=[w1], end=[x], start={a1: g_a1}, cost=cost1, details=True)
    (g1,), (g_x,), from_start, from_cost = found
    whole = theano.grad(cost2 + cost1, [w2, w1, x])
    f = theano.function([x, t], [g2, g1, g_x, *whole], mode="interpreted")
    values = f([1.0, 2.0, 3.0], [0.5, -0.5])
    for own, expected in zip(values[:3], values[3:], strict=True):
        np.testing.assert_allclose(own, expected)
    assert len(from_start) == len(from_cost) == 2
    first, none = theano.grad(a1.sum(), [a1, w1], consider_constant=[a1], disconnected_inputs="ignore")
    assert [each.eval({x: [1.0, 2.0, 3.0]}, mode="interpreted").sum() for each in (first, none)] == [4.0, 0.0]
    with pytest.raises(GradientError, match="cost or start"):
        subgraph_grad([w1], [x])


def test_verification() -> None:
    rng = np.random.RandomState(3)
    verify_grad(lambda a, b: T.tanh(T.dot(a, b)), [rng.rand(2, 3), rng.rand(3, 2)], rng=rng, mode="interpreted")
    verify_grad(T.exp, [rng.rand(3).astype("float32")], rng=rng, mode="interpreted")
    verify_grad(lambda a: a * 2, [rng.rand(0, 2)], rng=rng, mode="interpreted", n_tests=1)
    assert import_module("graphc.tensor").verify_grad is verify_grad  # Theano has it there too
    wrong = theano.OpFromGraph([X], [X**2], grad_overrides=lambda inputs, grads: [grads[0]])
    with pytest.raises(verify_grad.E_grad, match="the graph gives .*, differences") as caught:
        verify_grad(wrong, [np.array(3.0)], rng=rng, mode="interpreted")
    assert caught.type is GradientMismatch and issubclass(caught.type, AssertionError)
    assert caught.value.arg == caught.value.err_pos == 0 and caught.value.abs_err > caught.value.abs_tol
    nan = theano.OpFromGraph([X], [X**2], grad_overrides=lambda inputs, grads: [grads[0] * np.nan])
    with pytest.raises(GradientMismatch):
        verify_grad(nan, [np.array(3.0)], rng=rng, mode="interpreted")
    for bad, message in (([1], "must be floating"), ([1.0], "needs rng")):
        with pytest.raises(GraphTypeError, match=message):
            verify_grad(lambda a: a, bad)
    numeric = numeric_grad(lambda a, b: (a * b).sum(), [np.ones(2), np.arange(2.0)])
    np.testing.assert_allclose(numeric.gf, [[0, 1], [1, 1]], atol=1e-6)
    assert numeric.max_err([np.array([0.0, 1.0]), np.array([1.0, 2.0])], 1e-4, 1e-4)[:2] == (1, 1)


def test_sums_of_float32_are_checked_in_float64() -> None:
    """A sum of hundreds of float32 numbers moves by less than its own precision for a step."""
    points = [1 + np.random.RandomState(1234).random_sample(shape).astype("float32") for shape in ((10, 20), (20,))]
    verify_grad(lambda x, v: (x - 1.5) / v + 2, points, rng=np.random.RandomState(0), mode="interpreted")
    with pytest.raises(GradientMismatch):
        verify_grad(
            lambda x, v: grad_scale(x, 0.5) / v,
            points,
            rng=np.random.RandomState(0),
            mode="interpreted",
        )


def test_a_cost_of_a_wrong_rank() -> None:
    x = T.dvector("x")
    for error in (TypeError, ValueError):
        with pytest.raises(error, match="must be a floating scalar"):
            theano.grad(T.argmax(T.dmatrix("m"), axis=1), x)
    other = T.dscalar("other")
    zero = theano.grad(x.sum(), other, disconnected_inputs="ignore")
    assert theano.function([x, other], zero, mode="interpreted")([1.0], 2.0) == 0, "what was asked for is used"
