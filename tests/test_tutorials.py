"""The tutorial pages of Theano's documentation with their documented results: baby steps, more examples, derivatives,
extending. Programs of our own after those pages; only the two lines of imports say graphc."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T

MODES = ["interpreted", "compiled"]
SMALL = [[0, 1], [-1, -2]]


@pytest.fixture(params=MODES, autouse=True)
def mode(request: Any) -> Any:
    with theano.config.change_flags(mode=request.param):
        yield


def close(value: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(value), expected, rtol=1e-7, atol=5e-9)


def test_baby_steps() -> None:
    x, y = T.dscalar("x"), T.dscalar("y")
    z = x + y
    f = theano.function([x, y], z)
    close(f(2, 3), 5.0)
    close(f(16.3, 12.1), 28.4)
    close(z.eval({x: 16.3, y: 12.1}), 28.4)
    a, b = T.dmatrix("a"), T.dmatrix("b")
    f = theano.function([a, b], a + b)
    for wrap in (list, np.array):
        close(f(wrap([[1, 2], [3, 4]]), wrap([[10, 20], [30, 40]])), [[11, 22], [33, 44]])
    v = theano.tensor.vector()
    close(theano.function([v], v + v**10)([0, 1, 2]), [0.0, 2.0, 1026.0])
    u = theano.tensor.vector()
    close(theano.function([v, u], v**2 + u**2 + 2 * v * u)([1, 2], [4, 5]), [25.0, 49.0])


def test_more_examples_logistic_and_several_results() -> None:
    x = T.dmatrix("x")
    logistic = theano.function([x], 1 / (1 + T.exp(-x)))
    same = theano.function([x], (1 + T.tanh(x / 2)) / 2)
    for f in (logistic, same):
        close(f(SMALL), [[0.5, 0.73105858], [0.26894142, 0.11920292]])
    a, b = T.dmatrices("a", "b")
    diff = a - b
    f = theano.function([a, b], [diff, abs(diff), diff**2])
    found = f([[1, 1], [1, 1]], [[0, 1], [2, 3]])
    close(found, [[[1, 0], [-1, -2]], [[1, 0], [1, 2]], [[1, 0], [1, 4]]])


def test_more_examples_defaults() -> None:
    x, y, w = T.dscalars("x", "y", "w")
    f = theano.function([x, theano.In(y, value=1)], x + y)
    assert (f(33), f(33, 2)) == (34.0, 35.0)
    z = (x + y) * w
    f = theano.function([x, theano.In(y, value=1), theano.In(w, value=2, name="w_by_name")], z)
    assert (f(33), f(33, 2), f(33, 0, 1), f(33, w_by_name=1), f(33, w_by_name=1, y=0)) == (68, 70, 33, 34, 33)


def test_more_examples_shared_givens_and_copies() -> None:
    state: Any = theano.shared(0)
    inc = T.iscalar("inc")
    accumulator = theano.function([inc], state, updates=[(state, state + inc)])
    decrementor = theano.function([inc], state, updates=[(state, state - inc)])
    assert (accumulator(1), state.get_value(), accumulator(300), state.get_value()) == (0, 1, 1, 301)
    state.set_value(-1)
    assert (accumulator(3), state.get_value(), decrementor(2), state.get_value()) == (-1, 2, 2, 0)
    foo = T.scalar(dtype=state.dtype)
    skip_shared = theano.function([inc, foo], state * 2 + inc, givens=[(state, foo)])
    assert (skip_shared(1, 3), state.get_value()) == (7, 0)
    assert (accumulator(10), state.get_value()) == (0, 10)
    new_state: Any = theano.shared(0)
    new_accumulator = accumulator.copy(swap={state: new_state})
    assert (new_accumulator(100), new_state.get_value(), state.get_value()) == (0, 100, 10)
    null_accumulator = accumulator.copy(delete_updates=True)
    assert (null_accumulator(9000), state.get_value()) == (10, 10)


@pytest.mark.slow
def test_a_real_example_logistic_regression() -> None:
    rng = np.random.RandomState(0)
    rows, features = 100, 20
    data = rng.randn(rows, features), rng.randint(size=rows, low=0, high=2)
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = theano.shared(rng.randn(features), name="w"), theano.shared(0.0, name="b")
    p_1 = 1 / (1 + T.exp(-T.dot(x, w) - b))
    prediction = p_1 > 0.5
    xent = -y * T.log(p_1) - (1 - y) * T.log(1 - p_1)
    cost = xent.mean() + 0.01 * (w**2).sum()
    gw, gb = T.grad(cost, [w, b])
    train = theano.function(inputs=[x, y], outputs=[prediction, xent], updates=((w, w - 0.1 * gw), (b, b - 0.1 * gb)))
    predict = theano.function(inputs=[x], outputs=prediction)
    errors = [train(*data)[1].mean() for _ in range(500)]
    assert errors[-1] < errors[0] / 2 and (predict(data[0]) == data[1]).mean() > 0.7


@pytest.mark.slow
def test_derivatives() -> None:
    x = T.dscalar("x")
    f = theano.function([x], T.grad(x**2, x))
    close([f(4), f(94.2)], [8.0, 188.4])
    m = T.dmatrix("m")
    dlogistic = theano.function([m], T.grad(T.sum(1 / (1 + T.exp(-m))), m))
    close(dlogistic(SMALL), [[0.25, 0.19661193], [0.19661193, 0.10499359]])
    v = T.dvector("v")
    y = v**2
    rows, updates = theano.scan(lambda i, y, v: T.grad(y[i], v), sequences=T.arange(y.shape[0]), non_sequences=[y, v])
    close(theano.function([v], rows, updates=updates)([4, 4]), [[8, 0], [0, 8]])
    close(theano.function([v], theano.gradient.jacobian(y, v))([4, 4]), [[8, 0], [0, 8]])
    cost = y.sum()
    gy = T.grad(cost, v)
    hessian, updates = theano.scan(
        lambda i, gy, v: T.grad(gy[i], v), sequences=T.arange(gy.shape[0]), non_sequences=[gy, v]
    )
    close(theano.function([v], hessian, updates=updates)([4, 4]), [[2, 0], [0, 2]])
    close(theano.function([v], theano.gradient.hessian(cost, v))([4, 4]), [[2, 0], [0, 2]])


@pytest.mark.slow
def test_derivatives_times_vectors() -> None:
    w, along, x, v = T.dmatrix("W"), T.dmatrix("V"), T.dvector("x"), T.dvector("v")
    y = T.dot(x, w)
    forward = theano.function([w, along, x], T.Rop(y, w, along))
    close(forward([[1, 1], [1, 1]], [[2, 2], [2, 2]], [0, 1]), [2, 2])
    backward = theano.function([v, x], T.Lop(y, w, v))
    close(backward([2, 2], [0, 1]), [[0, 0], [2, 2]])
    gy = T.grad(T.sum(x**2), x)
    by_grad = theano.function([x, v], T.grad(T.sum(gy * v), x))
    by_rop = theano.function([x, v], T.Rop(gy, x, v))
    for f in (by_grad, by_rop):
        close(f([4, 4], [2, 2]), [4, 4])


class DoubleOp1(theano.Op):
    """The page's first op, over any type."""

    __props__ = ()

    def make_node(self, x: Any) -> Any:
        x = theano.tensor.as_tensor_variable(x)
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        x = inputs[0]
        z = output_storage[0]
        z[0] = x * 2

    def infer_shape(self, node: Any, i0_shapes: Any) -> Any:
        return i0_shapes

    def grad(self, inputs: Any, output_grads: Any) -> Any:
        return [output_grads[0] * 2]

    def R_op(self, inputs: Any, eval_points: Any) -> Any:  # noqa: N802 - Theano's name
        if eval_points[0] is None:
            return eval_points
        return self.grad(inputs, eval_points)


class DoubleOp2(theano.Op):
    """Its second, which lists its types."""

    __props__ = ()
    itypes = [theano.tensor.dmatrix]  # noqa: RUF012
    otypes = [theano.tensor.dmatrix]  # noqa: RUF012
    perform = DoubleOp1.perform
    infer_shape = DoubleOp1.infer_shape
    grad = DoubleOp1.grad
    R_op = DoubleOp1.R_op


class AXPBOp(theano.Op):
    """Its op with parameters."""

    __props__ = ("a", "b")

    def __init__(self, a: float, b: float) -> None:
        self.a = a
        self.b = b
        super().__init__()

    def make_node(self, x: Any) -> Any:
        x = theano.tensor.as_tensor_variable(x)
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = self.a * inputs[0] + self.b

    def infer_shape(self, node: Any, i0_shapes: Any) -> Any:
        return i0_shapes

    def grad(self, inputs: Any, output_grads: Any) -> Any:
        return [self.a * output_grads[0]]


@pytest.mark.slow
def test_extending() -> None:
    x = theano.tensor.matrix()
    inp = np.random.RandomState(0).random_sample((5, 4))
    for op in (DoubleOp1(), DoubleOp2()):
        f = theano.function([x], op(x))
        close(f(inp), inp * 2)
        theano.gradient.verify_grad(op, [inp[:2, :2]], rng=np.random.RandomState(1), n_tests=1)
        v = theano.tensor.matrix()
        close(theano.function([x, v], theano.Rop(op(x).sum(axis=0), x, v))(inp, inp), 2 * inp.sum(axis=0))
    mult4plus5op, another, mult2plus3op = AXPBOp(4, 5), AXPBOp(4, 5), AXPBOp(2, 3)
    assert mult4plus5op == another and mult4plus5op != mult2plus3op
    f, g = theano.function([x], mult4plus5op(x)), theano.function([x], mult2plus3op(x))
    close(f(inp), 4 * inp + 5)
    close(g(inp), 2 * inp + 3)


def infer_shape_numpy_dot(node: Any, input_shapes: Any) -> Any:
    ashp, bshp = input_shapes
    return [ashp[:-1] + bshp[-1:]]


@theano.as_op(
    itypes=[theano.tensor.fmatrix, theano.tensor.fmatrix],
    otypes=[theano.tensor.fmatrix],
    infer_shape=infer_shape_numpy_dot,
)
def numpy_dot(a: Any, b: Any) -> Any:
    return np.dot(a, b)


def test_extending_by_a_function() -> None:
    x, y = theano.tensor.fmatrix(), theano.tensor.fmatrix()
    f = theano.function([x, y], numpy_dot(x, y))
    inp1 = np.random.RandomState(0).rand(5, 4).astype("float32")
    inp2 = np.random.RandomState(1).rand(4, 7).astype("float32")
    np.testing.assert_allclose(f(inp1, inp2), np.dot(inp1, inp2), rtol=1e-6)


def test_adding() -> None:
    a, b = T.vectors("ab")
    close(theano.function([a, b], a**2 + b**2 + 2 * a * b)([1, 2], [4, 5]), [25.0, 49.0])
    x, y = T.dscalar("x"), T.dscalar("y")
    assert x.type == T.dscalar and theano.printing.pp(x + y) == "(x + y)"
    assert isinstance((x + y).owner.op, T.Elemwise) and theano.pp(x + y) == "(x + y)"


def test_conditions() -> None:
    a, b = T.scalars("ab")
    x, y = T.matrices("xy")
    z_switch = T.switch(T.lt(a, b), T.mean(x), T.mean(y))
    z_lazy = theano.ifelse(T.lt(a, b), T.mean(x), T.mean(y))
    f = theano.function([a, b, x, y], [z_switch, z_lazy])
    close(f(0.0, 1.0, np.ones((100, 50)), 2 * np.ones((100, 50))), [1.0, 1.0])
    close(f(1.0, 0.0, np.ones((100, 50)), 2 * np.ones((100, 50))), [2.0, 2.0])


def test_loops() -> None:
    k, base = T.iscalar("k"), T.vector("A")
    result, updates = theano.scan(
        lambda prior, base: prior * base, outputs_info=T.ones_like(base), non_sequences=base, n_steps=k
    )
    power = theano.function(inputs=[base, k], outputs=result[-1], updates=updates)
    close(power(range(10), 2), np.arange(10.0) ** 2)
    close(power(range(10), 4), np.arange(10.0) ** 4)
    coefficients, x = T.vector("coefficients"), T.scalar("x")
    components, _ = theano.scan(
        lambda coefficient, power, x: coefficient * x**power,
        outputs_info=None,
        sequences=[coefficients, T.arange(10000)],
        non_sequences=x,
    )
    polynomial = theano.function([coefficients, x], components.sum())
    close(polynomial(np.array([1, 0, 2], np.float32), 3), 19.0)


def test_shape() -> None:
    x, y = T.matrix("x"), T.matrix("y")
    f = theano.function([x], (x**2).shape)
    close(f(np.ones((2, 3))), [2, 3])
    assert "pow" not in f.source and "sqr" not in f.source, "a shape computes no values"
    z = T.join(0, x, y)
    close(theano.function([x, y], z.shape)(np.ones((5, 4)), np.ones((3, 4))), [8, 4])
    with pytest.raises(ValueError, match="axis 1 has sizes 4 and 3"):
        theano.function([x, y], z)(np.ones((5, 4)), np.ones((3, 3)))
    held = T.specify_shape(x, (2, 2))
    close(theano.function([x], (held**2).shape)(np.ones((2, 2))), [2, 2])


class OnlyForward(theano.Op):
    """x ** 3, of which only the R_op is said."""

    __props__ = ()

    def make_node(self, x: Any) -> Any:
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0] ** 3

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        return shapes

    def R_op(self, inputs: Any, eval_points: Any) -> Any:  # noqa: N802 - Theano's name
        return [eval_points[0] * 3 * inputs[0] ** 2]


def test_an_op_that_says_its_r_op_alone() -> None:
    x, v = T.dvector("x"), T.dvector("v")
    y = OnlyForward()(x)
    f = theano.function([x, v], [theano.Rop(y, x, v), theano.grad((y * v).sum(), x)])
    for value in f([1.0, 2.0], [0.5, 3.0]):
        close(value, [1.5, 36.0])
    f.trust_input = True
    assert f.trust_input
