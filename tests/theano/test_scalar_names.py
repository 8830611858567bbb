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
from graphc.theano.gradient import verify_grad
from graphc.theano.scalar import BinaryScalarOp, UnaryScalarOp, same_out, upcast_out


def test_types_and_ops() -> None:
    x, n = scalar.float64("x"), scalar.int32("n")
    assert (x.dtype, x.ndim, n.dtype, n.name) == ("float64", 0, "int32", "n")
    assert scalar.upcast("int32", "float32") == "float64" and scalar.get_scalar_type("int8")("i").dtype == "int8"
    assert scalar.add is T.add and scalar.basic.sqr is T.sqr and "exp" in dir(scalar)
    assert [each.name for each in scalar.floats("ab")] == ["a", "b"] and scalar.ints("k")[0].dtype == "int64"
    assert scalar.as_scalar(x) is x and len(scalar.all_types) == 13
    assert float(scalar.constant(2.5).eval(mode="interpreted")) == 2.5
    with pytest.raises(AttributeError, match="nothing"):
        _ = scalar.nothing
    with pytest.raises(TypeError, match="is no scalar"):
        scalar.as_scalar(T.dvector("v"))


def test_rounding_of_arrays() -> None:
    values = np.array([0.5, -1.5, 2.4, 0.49999999999999994, -0.0, np.inf, -np.inf, np.nan, 2.0**52 + 1])
    rounded = scalar.basic.round_half_away_from_zero_vec(values)
    np.testing.assert_array_equal(rounded, T.round_half_away_from_zero(values).eval(mode="interpreted"))
    np.testing.assert_array_equal(rounded[:5], [1.0, -2.0, 2.0, 0.0, 0.0])
    assert rounded[-1] == values[-1] and np.signbit(rounded[4]) and rounded.dtype == values.dtype


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


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_composites(mode: str) -> None:
    """A graph of scalar ops is applied to the elements of operands that broadcast, and differentiated through."""
    a, b = scalar.float64("a"), scalar.float64("b")
    outputs = [a * b + scalar.exp(a), scalar.switch(a > b, 1.0, b), Xlogx(name="xlogx")(a), 2.0]
    several, one = scalar.Composite([a, b], outputs), scalar.Composite([a, b], outputs[:1], name="one")
    x, y, f = T.dmatrix("x"), T.dvector("y"), T.fvector("f")
    made = [*T.Elemwise(several)(x, y), T.Elemwise(one)(x, f), scalar.Composite([a], [one(a, 3)])(y)]
    made += theano.grad(made[0].sum() + made[2].sum(), [x, y])
    p, q, r = np.array([[0.5, 1.0], [2.0, 0.25]]), np.array([1.0, 0.5]), np.array([1.5, 2.5], "float32")
    found = theano.function([x, y, f], made, mode=mode)(p, q, r)
    wide = np.broadcast_to(q, p.shape)
    wanted = [p * q + np.exp(p), np.where(p > q, 1.0, wide), p * np.log(p), np.full((2, 2), 2.0), p * r + np.exp(p)]
    wanted += [q * 3 + np.exp(q), wide + np.exp(p) + 1 + np.log(p), p.sum(axis=0)]
    for number, (got, want) in enumerate(zip(found, wanted, strict=True)):
        np.testing.assert_allclose(got, want, rtol=1e-13, err_msg=str(number))
    assert one == scalar.Composite([b, a], [b * a + scalar.exp(b)]) != several and len({one, several}) == 2
    assert (several.nin, several.nout) == (2, 4) and one.make_node(x, y).outputs == made[:1]


def test_what_is_no_composite() -> None:
    a, n, x = scalar.float64("a"), scalar.int8("n"), T.dvector("x")
    wrong: list[tuple[Any, str]] = [
        (lambda: scalar.Composite([a], [a * n]), "needs n .*not among its inputs"),
        (lambda: scalar.Composite([x], [x]), "an input is a scalar variable, not x"),
        (lambda: scalar.Composite([a * 2], [a]), "an input is a scalar variable, not a"),
        (lambda: scalar.Composite([3], [2.0]), "an input is a scalar variable, not 3"),
        (lambda: scalar.Composite([a], []), "there is no output"),
        (lambda: scalar.Composite([a], [T.stack([a, a]).sum()]), "made by no op of single elements"),
        (lambda: scalar.Composite([a], [a * 2])(x, x), "takes 1 operands, not 2"),
        (lambda: scalar.Composite([n], [n & 2])(x), "bitwise_and is not defined for x .*of dtype float64"),
    ]
    for call, message in wrong:
        with pytest.raises(theano.errors.GraphcError, match=message):
            call()


@pytest.mark.parametrize("kind", ["bool", "int8", "int64", "uint64", "float32", "float64"])
def test_operands_of_composites_may_be_wider_than_their_inputs(kind: str) -> None:
    """What is computed of a wider operand has a dtype that holds what its dtype gives, also where an op converts it; of
    a narrower one what the input's gives. A conversion that was to lose something does."""
    a, b, c = scalar.int8("a"), scalar.int16("b"), scalar.float32("c")
    outputs = [a * 2, a + b, a * c, scalar.exp(c), a > b, scalar.switch(a > 0, a, b), scalar.cast(c, "int16")]
    wide = scalar.Composite([a, b, c], outputs)
    values = [np.array([0, 1, 100]).astype(kind), np.array([1, 100, 0]).astype(kind), np.array([1, 0, 3]).astype(kind)]
    declared = [np.result_type(kind, own.dtype) if np.can_cast(kind, own.dtype) else kind for own in (a, b, c)]
    x, y, z = (value.astype(own) for value, own in zip(values, declared, strict=True))
    wanted = [x * np.int8(2), x + y, x * z, np.exp(z), x > y, np.where(x > 0, x, y), z.astype("int16")]
    operands = [T.vector(dtype=kind) for _ in values]
    made = theano.function(operands, wide(*operands), mode="interpreted")(*values)
    for number, (got, want) in enumerate(zip(made, wanted, strict=True)):
        assert np.can_cast(want.dtype, got.dtype) or number == 3, (number, got.dtype, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=str(number))


def test_ops_of_several_results_in_composites() -> None:
    n = scalar.int32("n")
    half, rest = Halves()(n)
    both = scalar.Composite([n], [half * 10 + rest, rest])
    found = theano.function([x := T.ivector("x")], both(x), mode="interpreted")(np.array([4, 7], "int32"))
    np.testing.assert_array_equal(found, [[20, 31], [False, True]])


def test_dtypes_are_combined_whatever_they_are_given_as() -> None:
    for left, right in (("float64", "int8"), ("int8", "uint8"), ("bool", "float32"), ("int64", "uint64")):
        wanted = np.result_type(left, right).name
        for one, other in ((left, right), (np.dtype(left), np.dtype(right)), (np.dtype(left).type, right)):
            assert scalar.upcast(one, other) == wanted
    assert (
        scalar.upcast(np.ones(2).dtype) == "float64" and scalar.upcast("int8", np.int16, np.dtype("int32")) == "int32"
    )
    with pytest.raises(GraphTypeError, match="float16 is not supported"):
        scalar.upcast("int8", np.dtype("float16"))
    common = scalar.as_common_dtype(scalar.int8("i"), scalar.float32("x"))
    assert [each.dtype for each in common] == ["float32", "float32"]


class Power(scalar.ScalarOp):
    """x**k, of an op that does not call its base's __init__."""

    def __init__(self, k: int) -> None:
        self.k = k

    def impl(self, x: Any) -> Any:
        return x**self.k


class Halves(UnaryScalarOp):
    """The whole half of a number, and whether there is a rest."""

    nout = 2

    def __init__(self) -> None:
        self.output_types_preference = scalar.specific_out(scalar.int32, scalar.bool)

    def impl(self, x: Any) -> Any:
        return x // 2, x % 2 != 0


def test_ops_that_make_themselves() -> None:
    """What such an op was given is part of what it is, and results have the dtypes that it says, whatever it takes."""
    x, n = T.dvector("x"), T.wvector("n")
    whole, rest = Halves()(x)
    f = theano.function([x, n], [Power(2)(x), T.Elemwise(Power(3))(x), Power(2)(n), whole, rest], mode="interpreted")
    got = f([1.0, 2.5, -3.0], np.array([1, 2], "int16"))
    wanted = [[1.0, 6.25, 9.0], [1.0, 15.625, -27.0], [1.0, 4.0], [0, 1, -2], [True, True, True]]
    assert [each.tolist() for each in got] == wanted
    assert [each.dtype.name for each in got] == ["float64", "float64", "float32", "int32", "bool"]
    assert [each.shape for each in f([], np.zeros(0, "int16"))] == [(0,)] * 5
    assert Power(2) == Power(2) != Power(3) and hash(Power(2)) == hash(Power(2)) and str(Power(2)) == "Power{k=2}"

    class Wrong(Power):
        output_types_preference = scalar.specific_out(scalar.int8, scalar.int8)

    with pytest.raises(GraphTypeError, match="has 1 results; its output types are"):
        Wrong(1)(x)


def test_preferences() -> None:
    kinds = {dtype: scalar.get_scalar_type(dtype) for dtype in ("bool", "int8", "int64", "float32", "float64")}

    def of(preference: Any, *dtypes: str) -> list[str]:
        return [kind.dtype for kind in preference(*(kinds[dtype] for dtype in dtypes))]

    assert of(scalar.upcast_out, "bool", "int8") == of(scalar.upcast_out_nobool, "bool", "int8") == ["int8"]
    assert of(scalar.upcast_out_min8, "bool", "bool") == of(scalar.same_out_min8, "bool") == ["int8"]
    assert of(scalar.upgrade_to_float, "int8") == ["float32"] and of(scalar.upgrade_to_float64, "int8") == ["float64"]
    assert of(scalar.int_out, "float32") == ["int64"] and of(scalar.float_out, "int8") == ["float64"]
    assert of(scalar.specific_out(scalar.int8), "float64") == of(scalar.same_out, "int8") == ["int8"]
    assert of(scalar.same_out_float_only, "float32") == ["float32"] == of(scalar.same_out_nobool, "float32")
    for preference in (scalar.upcast_out_nobool, scalar.same_out_nobool, scalar.same_out_float_only):
        with pytest.raises(TypeError):
            of(preference, "bool")
