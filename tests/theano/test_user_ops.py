"""Ops of the user in Theano's form, in every mode: values, shapes, derivatives, what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc.errors import GradientError, GraphTypeError, NullTypeGradError, ShapeError
from graphc.theano.gradient import DisconnectedType, grad_undefined, verify_grad
from graphc.theano.user_ops import Apply, Op

MODES = ["interpreted", "python", "compiled"]
A = np.arange(6.0).reshape(2, 3)
performed: list[str] = []


class Twice(Op):
    """2 * x."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        x = T.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        performed.append(str(self))
        (x,), (z,) = inputs, output_storage
        z[0] = x * 2

    def grad(self, inputs: Any, output_grads: Any) -> Any:
        return [output_grads[0] * 2]


class Shaped(Twice):
    """The same with all that a tutorial gives it."""

    def infer_shape(self, node: Any, input_shapes: Any) -> Any:
        return input_shapes

    def R_op(self, inputs: Any, eval_points: Any) -> Any:  # noqa: N802 - Theano's name
        if eval_points[0] is None:
            return eval_points
        return self.grad(inputs, eval_points)


class Affine(Op):
    """a * x + b."""

    __props__ = ("a", "b")

    def __init__(self, a: float, b: float) -> None:
        self.a, self.b = a, b

    def make_node(self, x: Any) -> Apply:
        return Apply(op=self, inputs=[x], outputs=[T.as_tensor_variable(x).type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = self.a * inputs[0] + self.b

    def infer_shape(self, node: Any, input_shapes: Any) -> Any:
        return input_shapes

    def grad(self, inputs: Any, output_grads: Any) -> Any:
        return [self.a * output_grads[0]]


class SumsAndLast(Op):
    """Three results of two dtypes and several ranks; the sizes of the second follow from values."""

    __props__ = ()

    def make_node(self, x: Any, n: Any) -> Apply:
        return Apply(self, [x, n], [T.dvector(), T.lvector(), T.dscalar("total")])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        performed.append(str(self))
        x, n = inputs
        output_storage[0][0], output_storage[1][0], output_storage[2][0] = x.sum(axis=0), np.arange(n), x.sum()

    def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> Any:  # noqa: N802 - Theano's name
        x, _ = inputs
        rows, _, total = output_grads
        rows, total = (0.0 if isinstance(g.type, DisconnectedType) else g for g in (rows, total))
        return [T.zeros_like(x) + rows + total, grad_undefined(self, 1, inputs[1])]


class Overwriting(Op):
    """Works in place on its input, as destroy_map says."""

    destroy_map = {0: [0]}  # noqa: RUF012
    itypes = (T.dvector,)
    otypes = (T.dvector,)

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        inputs[0][:] += 1
        output_storage[0][0] = inputs[0]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_values_and_derivatives(mode: str) -> None:
    x, n = T.dmatrix("x"), T.lscalar("n")
    rows, places, total = SumsAndLast()(x, n)
    outputs = [
        Twice()(x),
        Shaped()(x),
        theano.grad(Twice()(x).sum() * 1.5, x),
        Affine(4, 5)(x) + Affine(4, 5)(x),
        rows,
        places,
        total,
        theano.grad((rows**2).sum() + total, x),
        theano.grad(total, x),
        theano.grad(theano.grad((Shaped()(x) ** 3).sum(), x).sum(), x),
    ]
    f = theano.function([x, n], outputs, mode=mode)
    double = np.repeat(2 * A.sum(axis=0)[None], 2, axis=0)
    for given in (A, A[:0], A[:, :0]):
        performed.clear()
        found = f(given, 4)
        assert performed.count("SumsAndLast") == 1, "one call performs an op once"
        wanted = [2 * given, 2 * given, np.full(given.shape, 3.0), 8 * given + 10, given.sum(axis=0), np.arange(4)]
        wanted += [given.sum()]
        for value, expected in zip(found, wanted, strict=False):
            np.testing.assert_array_equal(value, expected)
        assert [value.dtype for value in found[4:7]] == ["float64", "int64", "float64"]
    found = f(A, 2)
    np.testing.assert_array_equal(found[7], double + 1)
    np.testing.assert_array_equal(found[8], np.ones((2, 3)))
    np.testing.assert_array_equal(found[9], 48 * A)


@pytest.mark.parametrize("mode", MODES)
def test_forward_products(mode: str) -> None:
    class Odd(Shaped):
        """A derivative that shows which of the two was asked."""

        def R_op(self, inputs: Any, eval_points: Any) -> Any:  # noqa: N802
            return [eval_points[0] * 100]

    x, v = T.dvectors("x", "v")
    y = Odd()(x)
    f = theano.function([x, v], [theano.Rop(Twice()(x) ** 2, x, v), theano.Rop(y, x, v), theano.Lop(y, x, v)], mode)
    found = f([1.0, 2.0], [3.0, 5.0])
    np.testing.assert_array_equal(found, [[24.0, 80.0], [300.0, 500.0], [6.0, 10.0]])


def test_equal_ops_are_one() -> None:
    x = T.dmatrix("x")
    assert Affine(4, 5) == Affine(4, 5) != Affine(4, 6) and hash(Affine(4, 5)) == hash(Affine(4, 5))
    assert str(Affine(4, 5)) == "Affine{a=4, b=5}" and Overwriting() != Overwriting()
    performed.clear()
    f = theano.function([x], [Shaped()(x), Shaped()(x) + 1])
    f(A)
    assert performed == ["Shaped"]
    g = theano.function([x], [Affine(4, 5)(x), Affine(4, 6)(x)])
    np.testing.assert_array_equal(g(A), [4 * A + 5, 4 * A + 6])


@pytest.mark.parametrize("mode", MODES)
def test_an_input_that_is_destroyed_is_a_copy(mode: str) -> None:
    x = T.dvector("x")
    f = theano.function([x], [Overwriting()(x), x * 1], mode=mode)
    given = np.ones(3)
    np.testing.assert_array_equal(f(given), [[2.0] * 3, [1.0] * 3])
    np.testing.assert_array_equal(given, np.ones(3))


def test_code_from_the_cache_calls_the_ops_of_this_program() -> None:
    x = T.dmatrix("x")

    def build() -> Any:
        return theano.function([x], [Affine(2, 1)(x), Affine(3, 1)(x)], name="cached_ops")

    build()
    again = build()
    assert again.built.report.origin == "cache"
    np.testing.assert_array_equal(again(A), [2 * A + 1, 3 * A + 1])


class Wrong(Op):
    """What an op may do wrong."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def infer_shape(self, node: Any, input_shapes: Any) -> Any:
        return input_shapes

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = self.value


@pytest.mark.parametrize("value", [None, np.ones(3), "text", np.ones((2, 3)) * 1j])
def test_a_wrong_result_is_an_error(value: Any) -> None:
    x = T.dmatrix("x")
    with pytest.raises(GraphTypeError, match="op Wrong computed .* where its type is float64"):
        theano.function([x], Wrong(value)(x), mode="interpreted")(A)


def test_what_ops_refuse() -> None:
    x, n = T.dmatrix("x"), T.lscalar("n")
    with pytest.raises(GradientError, match="neither grad nor L_op") as told:
        theano.grad(Wrong(1)(x).sum(), x)
    assert isinstance(told.value, AttributeError)  # PyMC3 takes a step without gradients then
    with pytest.raises(GraphTypeError, match=r"takes float64\[.*\] here, not x"):
        Overwriting()(x)
    with pytest.raises(GraphTypeError, match="neither make_node nor itypes"):
        Op()(x)
    with pytest.raises(GraphTypeError, match="outputs must be variables"):
        Apply(Twice(), [x], [T.dmatrix("y"), None])
    x_n = T.cast(n, "float64") * x

    class Undefined(Twice):
        """No derivative by anything."""

        def grad(self, inputs: Any, output_grads: Any) -> Any:
            return [grad_undefined(self, 0, inputs[0], "for no reason")]

    with pytest.raises(NullTypeGradError, match="Undefined by argument 0.*for no reason"):
        theano.grad(Undefined()(x_n).sum(), x)


def test_connections() -> None:
    class First(Twice):
        """The second input decides nothing but a size."""

        def make_node(self, *inputs: Any) -> Apply:
            return Apply(self, list(inputs), [inputs[0].type()])

        def connection_pattern(self, node: Any) -> Sequence[Sequence[bool]]:
            return [[True], [False]]

        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            output_storage[0][0] = inputs[0] * 2

        def grad(self, inputs: Any, output_grads: Any) -> Any:
            return [output_grads[0] * 2, DisconnectedType()()]

    x, y = T.dvectors("x", "y")
    cost = First()(x, y).sum()
    with pytest.raises(theano.gradient.DisconnectedInputError, match="y"):
        theano.grad(cost, y)
    np.testing.assert_array_equal(theano.grad(cost, x).eval({x: [1.0, 1.0], y: [1.0]}, mode="interpreted"), [2.0, 2.0])


def test_connections_of_results() -> None:
    """A result that the cost does not use leads to nothing, whatever else is differentiated by."""

    class Pair(Twice):
        def make_node(self, *inputs: Any) -> Apply:
            return Apply(self, list(inputs), [each.type() for each in inputs])

        def connection_pattern(self, node: Any) -> Sequence[Sequence[bool]]:
            return [[True, False], [False, True]]

        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            for storage, value in zip(output_storage, inputs, strict=True):
                storage[0] = value * 2

        def grad(self, inputs: Any, output_grads: Any) -> Any:
            return [g if isinstance(g.type, DisconnectedType) else g * 2 for g in output_grads]

    x, y = T.dvectors("x", "y")
    first, second = Pair()(x, y)
    for wrt in (y, [x, y]):
        with pytest.raises(theano.gradient.DisconnectedInputError, match="does not depend on y"):
            theano.grad(first.sum(), wrt)
    for slope in theano.grad(first.sum() + second.sum(), [x, y]):
        np.testing.assert_array_equal(slope.eval({x: [1.0], y: [1.0]}, mode="interpreted"), [2.0])


@pytest.mark.parametrize("op", [Twice(), Shaped(), Affine(3.0, 1.0)])
def test_derivatives_agree_with_differences(op: Op) -> None:
    verify_grad(op, [A / 3], rng=np.random.RandomState(1), mode="interpreted")


class Turned(Op):
    """The transpose and its double, whose sizes `infer_shape` tells in the wrong order."""

    __props__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [T.dmatrix() for _ in range(self.count)])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        for number, storage in enumerate(output_storage):
            storage[0] = inputs[0].T * (number + 1)

    def infer_shape(self, node: Any, input_shapes: Any) -> Any:
        return input_shapes * self.count


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 2])
def test_a_wrong_infer_shape_is_told(mode: str, count: int) -> None:
    x = T.dmatrix("x")
    f = theano.function([x], Turned(count)(x), mode=mode)
    with pytest.raises(ShapeError, match=r"Turned.* computed shape \(3, 2\); its infer_shape said \(2, 3\)"):
        f(np.ones((2, 3)))


Base: Any = T.TensorVariable


class Drawn(Base):  # type: ignore[misc]
    """A variable as PyMC3 makes it: an object of its own class, which Apply defines."""

    def __init__(self, value: Any, name: str) -> None:
        super().__init__(value.type, None, None, name)
        self.distribution = "normal"
        Apply(theano.compile.view_op, inputs=[value], outputs=[self])


def test_a_variable_of_an_own_class_is_what_apply_gives() -> None:
    x = T.dvector("x")
    drawn = Drawn(T.exp(x), "drawn")
    again: Any = drawn
    assert type(again) is Drawn and again.distribution == "normal" and again.name == "drawn"
    assert again.owner.op is theano.compile.view_op and again.owner.inputs[0] is T.exp(x)
    assert again.owner.outputs == [again]
    cost = (again**2).sum()
    f = theano.function([x], [again, cost, *(theano.grad(cost, each) for each in (x, again))])
    value = np.exp([0.5, -1.0, np.inf])
    for made, wanted in zip(f([0.5, -1.0, np.inf]), (value, (value**2).sum(), 2 * value**2, 2 * value), strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-14)
    given = T.dvector("given")
    assert theano.function([given], theano.clone(cost, replace={again: given}))([1.0, 2.0]) == 5.0

    class Halved(theano.Op):
        __props__ = ()

        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            output_storage[0][0] = inputs[0] / 2

    class Own(Base):  # type: ignore[misc]
        pass

    own: Any = Own(T.dvector)
    node = Apply(Halved(), [x], [own])
    assert node.outputs[0] is own and own.owner is node and (own + 1).eval({x: [2.0, 4.0]}).tolist() == [2.0, 3.0]
    with pytest.raises(GraphTypeError, match=r"float64\[.*what Apply computes of float64\[\]"):
        Apply(theano.compile.view_op, [x.sum()], [Own(T.dvector)])


def test_attributes_of_outputs_that_were_given_are_kept() -> None:
    class Counted(Op):
        __props__ = ()

        def make_node(self, x: Any) -> Apply:
            made: Any = x.type()
            made.set_start, made.tag.test_value = (lambda value: value), 3.0
            return Apply(self, [x], [made])

        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            output_storage[0][0] = inputs[0] + 1

    made = Counted()(T.dscalar("x"))
    assert made.set_start(2) == 2 and made.tag.test_value == 3.0
