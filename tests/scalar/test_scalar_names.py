"""Theano's scalar module: its ops are functions of tensors, its types make scalars, ops of the user are called for each
element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc import scalar
from graphc.errors import GraphTypeError
from graphc.gradient import verify_grad
from graphc.scalar import BinaryScalarOp, UnaryScalarOp, same_out, upcast_out


def test_types_and_ops() -> None:
    x, n = scalar.float64("x"), scalar.int32("n")
    assert (x.dtype, x.ndim, n.dtype, n.name) == ("float64", 0, "int32", "n")
    assert scalar.upcast("int32", "float32") == "float64" and scalar.get_scalar_type("int8")("i").dtype == "int8"
    assert scalar.add is T.add and scalar.basic.sqr is T.sqr and "exp" in dir(scalar)
    assert [each.name for each in scalar.floats("ab")] == ["a", "b"] and scalar.ints("k")[0].dtype == "int64"
    assert scalar.as_scalar(x) is x and len(scalar.all_types) == 11
    assert float(scalar.constant(2.5).eval(mode="interpreted")) == 2.5
    for name in ("nothing", "Composite"):
        with pytest.raises(AttributeError, match=name):
            getattr(scalar, name)
    with pytest.raises(TypeError, match="is no scalar"):
        scalar.as_scalar(T.dvector("v"))


class Xlogx(UnaryScalarOp):
    """x * log(x), 0 at 0."""

    def impl(self, x: Any) -> Any:
        return x * math.log(x) if x else 0.0

    def grad(self, inputs: Any, output_grads: Any) -> Any:
        return [output_grads[0] * (1 + T.log(inputs[0]))]


class Digits(BinaryScalarOp):
    """How many digits a number has to a base."""

    def impl(self, x: Any, base: Any) -> Any:
        return len(np.base_repr(int(x), int(base)))


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_scalar_ops_of_the_user(mode: str) -> None:
    x, n = T.dmatrix("x"), T.lvector("n")
    xlogx = Xlogx(name="xlogx")
    outputs = [xlogx(x), xlogx(n), Digits(upcast_out)(n, 2), theano.grad(xlogx(x).sum(), x), Xlogx()(2.0)]
    f = theano.function([x, n], outputs, mode=mode)
    a, k = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1, 5, 8])
    found = f(a + 1, k)
    np.testing.assert_allclose(found[0], (a + 1) * np.log(a + 1))
    np.testing.assert_allclose(found[1], k * np.log(k))
    np.testing.assert_array_equal(found[2], [1, 3, 4])
    assert [value.dtype for value in found[:3]] == ["float64", "float64", "int64"]
    np.testing.assert_allclose(found[3], 1 + np.log(a + 1))
    assert f(a[:0], k[:0])[0].shape == (0, 2) and str(xlogx) == "xlogx" and Xlogx() == Xlogx()


def test_what_scalar_ops_refuse() -> None:
    with pytest.raises(GraphTypeError, match="takes 1 operands; got 2"):
        Xlogx()(1.0, 2.0)
    assert Xlogx(same_out)(T.fvector("x")).dtype == "float32"
    verify_grad(Xlogx(), [np.array([0.5, 2.0])], rng=np.random.RandomState(0), mode="interpreted")
