"""Ops made of graphs and of functions: `OpFromGraph` with every kind of override, `as_op`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc.errors import GradientError, GraphTypeError, GraphValueError, NullTypeGradError
from graphc.theano.compile import as_op
from graphc.theano.gradient import DisconnectedType, NullType

MODE = "interpreted"
X, Y, Z = (T.dscalar(name) for name in "xyz")
AT = (2.0, 3.0, 4.0)


def op(**overrides: Any) -> Any:
    """x + y * z."""
    return theano.OpFromGraph([X, Y, Z], [X + Y * Z], **overrides)


def at(*nodes: Any) -> list[float]:
    f = theano.function([X, Y, Z], list(nodes), mode=MODE, on_unused_input="ignore")
    return [float(value) for value in f(*AT)]


@pytest.mark.parametrize("mode", ["compiled", MODE])
def test_an_op_stands_for_its_graph(mode: str) -> None:
    w = theano.shared(10.0, name="w")
    with_state = theano.OpFromGraph([X, Y], [X * w, X + Y], inline=True, name="both")
    first, second = with_state(Z, Y)
    f = theano.function([X, Y, Z], [op()(X, Y, Z) + op()(Z, Y, X), first, second, theano.grad(first, w)], mode=mode)
    assert [float(value) for value in f(*AT)] == [24.0, 40.0, 7.0, 4.0]
    assert str(with_state) == "both{inline=True}"


def rescaled(inputs: Any, grads: Any) -> Any:
    return inputs[2] * 2 * grads[0]


def all_rescaled(inputs: Any, grads: Any) -> Any:
    return [grads[0] * 10, grads[0] * 20, grads[0] * 30]


def by_outputs(inputs: Any, outputs: Any, grads: Any) -> Any:
    return [outputs[0] * grads[0], inputs[2], inputs[1]]


G = T.dscalar("g")
AS_GRAPH = theano.OpFromGraph([X, Y, Z, G], [Z * 2 * G])
AS_GRAPHS = theano.OpFromGraph([X, Y, Z, G], [G, G * 2, G * 3])


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, [1.0, 4.0, 3.0]),
        ({"grad_overrides": ["default", rescaled, "default"]}, [1.0, 8.0, 3.0]),
        ({"grad_overrides": ["default", AS_GRAPH, DisconnectedType()()]}, [1.0, 8.0, 0.0]),
        ({"grad_overrides": all_rescaled}, [10.0, 20.0, 30.0]),
        ({"grad_overrides": AS_GRAPHS}, [1.0, 2.0, 3.0]),
        ({"lop_overrides": by_outputs}, [14.0, 4.0, 3.0]),
        ({"lop_overrides": [lambda i, o, g: o[0], "default", "default"]}, [14.0, 4.0, 3.0]),
        ({"rop_overrides": lambda i, e: [e[0] * 100]}, [1.0, 4.0, 3.0]),
    ],
)
def test_derivatives_of_the_user(overrides: Any, expected: list[float]) -> None:
    assert at(*theano.grad(op(**overrides)(X, Y, Z), [X, Y, Z])) == expected


def test_forward_products_of_the_user() -> None:
    doubled = op(rop_overrides=lambda inputs, points: [points[0] * 100 + points[1]])
    one = T.constant(1.0) if hasattr(T, "constant") else T.as_tensor(1.0)
    assert at(theano.Rop(doubled(X, Y, Z), [X, Y, Z], [one, one, one])) == [101.0]
    assert at(theano.Rop(op(rop_overrides=["default"])(X, Y, Z), [X, Y], [one, one])) == [5.0]
    assert at(theano.Rop(op(grad_overrides=all_rescaled)(X, Y, Z), [X, Y], [one, one])) == [30.0]
    both = theano.OpFromGraph([X, Y], [X * Y, X + Y], rop_overrides=lambda i, e: [e[0] * i[1], e[0] * 7])
    assert at(*theano.Rop(list(both(X, Y)), X, one)) == [3.0, 7.0]
    product, total = both(X, Y)
    assert at(theano.grad(theano.grad(product**2, X), Y), theano.grad(product + total, Y)) == [24.0, 3.0]


def test_what_is_undefined_or_disconnected() -> None:
    undefined = op(grad_overrides=["default", NullType("a step")(), "default"])(X, Y, Z)
    assert at(theano.grad(undefined, X)) == [1.0]
    with pytest.raises(NullTypeGradError, match="a step"):
        theano.grad(undefined, Y)
    assert isinstance(theano.grad(undefined, Y, null_gradients="return").type, NullType)
    apart = op(grad_overrides=all_rescaled, connection_pattern=[[True], [False], [True]])(X, Y, Z)
    with pytest.raises(theano.gradient.DisconnectedInputError):
        theano.grad(apart, Y)


def test_within_a_loop() -> None:
    rated = theano.OpFromGraph([X], [X * 2], grad_overrides=lambda inputs, grads: [grads[0] * 3])
    results, _ = theano.scan(rated, outputs_info=[X], n_steps=3)
    assert at(results[-1], theano.grad(results[-1], X)) == [16.0, 27.0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: theano.OpFromGraph([X], (X * 2,)), GraphTypeError, "outputs must be a list"),
        (lambda: theano.OpFromGraph([X], [2]), GraphTypeError, "must be variables"),
        (lambda: op(updates={}), GraphValueError, "no updates"),
        (lambda: op(grad_overrides=rescaled, lop_overrides=rescaled), GraphValueError, "not both"),
        (lambda: op(grad_overrides=[1, 2, 3]), GraphTypeError, "an override is"),
        (lambda: op()(X, Y), GraphTypeError, "takes 3 inputs; got 2"),
        (lambda: op()(X, Y, T.dvector("v")), GraphTypeError, r"v .* cannot stand for z"),
        (lambda: theano.grad(op(grad_overrides=rescaled)(X, Y, Z), X), GradientError, "1 results where 3"),
        (lambda: theano.grad(op(grad_overrides=[rescaled])(X, Y, Z), X), GradientError, "1 overrides .* 3"),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("mode", ["compiled", MODE])
def test_functions_become_ops(mode: str) -> None:
    @as_op(itypes=[T.dmatrix, T.dmatrix], otypes=[T.dmatrix], infer_shape=lambda node, s: [(s[0][0], s[1][1])])
    def product(a: Any, b: Any) -> Any:
        return np.dot(a, b)

    @as_op(itypes=T.dmatrix, otypes=[T.dvector, T.lscalar])
    def first_row(a: Any) -> Any:
        """The first row, and how many there are."""
        return a[0], np.int64(len(a))

    x, y = T.dmatrices("x", "y")
    row, count = first_row(x)
    f = theano.function([x, y], [product(x, y), row, count * 2], mode=mode)
    a = np.arange(6.0).reshape(2, 3)
    found = f(a, a.T)
    np.testing.assert_array_equal(found[0], a @ a.T)
    np.testing.assert_array_equal(found[1], a[0])
    assert found[2] == 4 and product.__name__ == "product" and "first row" in (first_row.__doc__ or "")
    with pytest.raises(GraphTypeError, match="takes float64"):
        product(x, T.fmatrix("single"))
    with pytest.raises(GradientError):
        theano.grad(product(x, y).sum(), x)
