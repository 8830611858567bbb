"""What the four tutorials behind graphc do, and the mistakes of their systems, each as a test through graphc's own API.

C: Minnaar, "Building a basic computational graph engine" (alexminnaar/cgraph). D: Flennerhag, "Deep learning from
scratch" (flennerhag/dlp). K: Koehn, "Neural machine translation", chapter 3 (Theano). What the fourth, TensorSlow, does
is in test_session.py; networks, training reports and preprocessing (D11 to D13) are in tests/layers and tests/train.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc as theano
import graphc.tensor as T
from graphc import layers, optim
from graphc.codegen.call.bind import HAVE_VECTORCALL
from graphc.errors import ArgumentError, CycleError, GraphTypeError
from graphc.functions.callables import MODES
from graphc.ir.node import Node
from graphc.ir.walk import Graph, consumers, nodes_of, toposort
from graphc.layers import initial
from graphc.testing import check_gradient

Array = NDArray[Any]
ALL_MODES = sorted(set(MODES.values()))


@pytest.fixture(params=ALL_MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def close(got: Any, want: Any, rtol: float = 1e-12) -> None:
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


def check_derivatives(build: Callable[..., Any], *arrays: Array, mode: str) -> None:
    """First and second derivatives, computed in `mode`, against finite differences."""

    def run(graph: Graph, values: Mapping[Node, Array]) -> Sequence[Array]:
        call = graphc.function(list(graph.inputs), list(graph.outputs), mode=mode, on_unused_input="ignore")
        results: list[Array] = call(*(values[node] for node in graph.inputs))
        return results

    check_gradient(build, *arrays, run=run)


def run_program(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# K: Koehn's listing -------------------------------------------------------------------------------------------------

K1_HIDDEN = [[0.73105858, 0.11920292]]
K6_PREDICTIONS = [0.18333462, 0.7425526, 0.7425526, 0.33430961]
STEPS = [  # K7, K8, K9
    (K6_PREDICTIONS, 0.06948320612438118),
    ([0.18353091, 0.74260499, 0.74321824, 0.33324929], 0.06923193686092949),
    ([0.1837272, 0.74266493, 0.74387966, 0.33220987], 0.06898451158189756),
]
GRADIENTS = [  # K9, of the first step
    [[-0.02295449, -0.02365122], [-0.01168182, -0.01237856]], [-0.0286678, -0.00067228], [-0.00107755, 0.01789064],
    0.0017086917164515,
]  # fmt: skip
XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])


class Listing:
    """The listing's names."""

    def __init__(self) -> None:
        self.x = T.dmatrix()
        self.W = theano.shared(value=np.array([[3.0, 2.0], [4.0, 3.0]]))
        self.b = theano.shared(value=np.array([-2.0, -4.0]))
        self.h = T.nnet.sigmoid(T.dot(self.x, self.W) + self.b)
        self.W2 = theano.shared(value=np.array([5.0, -5.0]))
        self.b2 = theano.shared(-2.0)
        self.y_pred = T.nnet.sigmoid(T.dot(self.h, self.W2) + self.b2)
        self.y = T.dvector()
        l2 = (self.y - self.y_pred) ** 2
        self.cost = l2.mean()
        self.params = [self.W, self.b, self.W2, self.b2]
        self.gradients = T.grad(self.cost, self.params)


def test_k1_a_hidden_layer_of_a_nested_list(mode: str) -> None:
    net = Listing()
    hidden = theano.function([net.x], net.h, mode=mode)
    close(hidden([[1, 0]]), K1_HIDDEN, 1e-8)
    close(hidden([[1, 0]] * 3), K1_HIDDEN * 3, 1e-8)


def test_k2_a_prediction_by_matrix_and_vector(mode: str) -> None:
    net = Listing()
    assert (net.b2.ndim, net.b2.dtype, net.y_pred.ndim) == (0, "float64", 1)
    close(theano.function([net.x], net.y_pred, mode=mode)([[1, 0]]), [0.7425526], 1e-7)


@pytest.mark.slow
def test_k3_a_list_of_gradients(mode: str) -> None:
    net = Listing()
    assert isinstance(net.gradients, list)
    found = theano.function([net.x, net.y], net.gradients, mode=mode)(*XOR)
    for got, want in zip(found, GRADIENTS, strict=True):
        close(got, want, 5e-9)


@pytest.mark.slow
def test_k4_to_k9_training(mode: str) -> None:
    net = Listing()
    data_x, data_y = XOR
    assert data_x.dtype == data_y.dtype == "int64"  # K5: safely cast
    predict = theano.function([net.x], net.y_pred, mode=mode)
    close(predict(data_x), K6_PREDICTIONS, 1e-7)
    updates = tuple((p, p - 0.1 * g) for p, g in zip(net.params, net.gradients, strict=True))
    train = theano.function(inputs=[net.x, net.y], outputs=[net.y_pred, net.cost], updates=updates, mode=mode)
    for predictions, cost in STEPS:
        found = train(data_x, data_y)
        assert isinstance(found, list)
        close(found[0], predictions, 1e-7)
        assert found[1].shape == () and abs(found[1] - cost) < 1e-16
    assert not np.allclose(predict(data_x), K6_PREDICTIONS, rtol=1e-4)


@pytest.mark.slow
def test_k1_to_k8_as_printed() -> None:
    """The listing itself, nothing but its import lines changed."""
    program = """
        import numpy
        import graphc
        import graphc.tensor as T
        import graphc as theano

        x = T.dmatrix()
        W = theano.shared(value=numpy.array([[3.0,2.0],[4.0,3.0]]))
        b = theano.shared(value=numpy.array([-2.0,-4.0]))
        h = T.nnet.sigmoid(T.dot(x,W)+b)
        h_function = theano.function([x], h)
        W2 = theano.shared(value=numpy.array([5.0,-5.0] ))
        b2 = theano.shared(-2.0)
        y_pred = T.nnet.sigmoid(T.dot(h,W2)+b2)
        predict = theano.function([x], y_pred)
        y = T.dvector()
        l2 = (y-y_pred)**2
        cost = l2.mean()
        gW, gb, gW2, gb2 = T.grad(cost, [W,b,W2,b2])
        train = theano.function(inputs=[x,y],outputs=[y_pred,cost],
            updates=((W, W-0.1*gW), (b, b-0.1*gb),
                     (W2, W2-0.1*gW2), (b2, b2-0.1*gb2)))
        DATA_X = numpy.array([[0,0],[0,1],[1,0],[1,1]])
        DATA_Y = numpy.array([0,1,1,0])
        print(h_function([[1,0]]), predict([[1,0]]), predict(DATA_X))
        print(train(DATA_X,DATA_Y))
        print(train(DATA_X,DATA_Y))
    """
    done = run_program(program)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.replace("\n", " ").split()
        == (
            "[[0.73105858 0.11920292]] [0.7425526] [0.18333462 0.7425526 0.7425526 0.33430961] "
            "[array([0.18333462, 0.7425526 , 0.7425526 , 0.33430961]), array(0.06948321)] "
            "[array([0.18353091, 0.74260499, 0.74321824, 0.33324929]), array(0.06923194)]"
        ).split()
    )


def test_k10_the_figure_with_the_sign_of_the_true_derivative(mode: str) -> None:
    """The figure's numbers are of t - y, the derivative of 1/2 (t - y)^2 by y with its sign turned."""
    net = Listing()
    t = T.dscalar()
    s = T.dot(net.h, net.W2) + net.b2
    y = T.nnet.sigmoid(s)
    error = (0.5 * (t - y) ** 2).sum()
    dy, ds, dw2 = T.grad(error, [y, s, net.W2])
    dh = T.grad(error, net.h)
    call = theano.function([net.x, t], [net.h, s, y, dy, y * (1 - y), ds, dw2, dh], mode=mode)
    h, s_value, y_value, dy_value, slope, ds_value, dw2_value, dh_value = call([[1, 0]], 1)
    close(h, [[0.731, 0.119]], 5e-4)
    close(s_value, [1.06], 5e-3)
    close(y_value, [0.743], 5e-4)
    close(-dy_value, [0.257], 5e-4)
    close(slope, [0.191], 5e-4)
    close(-ds_value, [0.0492], 5e-5)
    close(-dw2_value, [0.0360, 0.00587], 5e-5)
    close(-dh_value, [[0.246, -0.246]], 5e-4)


def test_k11_gradients_of_several_consumers_add(mode: str) -> None:
    x = T.dscalar("x")
    g, h = T.sin(x), T.exp(x)
    f = g * h + g
    call = theano.function([x], [f, T.grad(f, x)], mode=mode)
    value, slope = call(0.3)
    close(value, np.sin(0.3) * np.exp(0.3) + np.sin(0.3))
    close(slope, np.cos(0.3) * np.exp(0.3) + np.sin(0.3) * np.exp(0.3) + np.cos(0.3))
    taken = consumers([f])
    assert {node.op.name for node, _ in taken[x]} == {"sin", "exp"}
    assert [node.op.name for node, _ in taken[g]] == ["mul", "add"]
    assert f.args == (g * h, g) and f.op.name == "add"


@pytest.mark.slow
def test_k12_training_until_it_converges(mode: str) -> None:
    net = Listing()
    updates = [(p, p - 2.0 * g) for p, g in zip(net.params, net.gradients, strict=True)]
    train = theano.function([net.x, net.y], [net.y_pred, net.cost], updates=updates, mode=mode)
    order = np.array([2, 0, 3, 1])
    costs = []
    for _ in range(150):
        for batch in (order[:2], order[2:]):
            _, cost = train(XOR[0][batch], XOR[1][batch])
        costs.append(float(cost))
    assert costs[-1] < 0.05 < costs[0] * 2
    predict = theano.function([net.x], net.y_pred, mode=mode)
    np.testing.assert_array_equal(predict(XOR[0]) > 0.5, XOR[1].astype(bool))


# C: cgraph ----------------------------------------------------------------------------------------------------------


def linear(x: Any, w: Any, b: Any) -> Any:
    return T.dot(x, w) + b


def mean_squared_error(y: Any, guess: Any) -> Any:
    return T.sqr(y - guess).mean()


def binary_cross_entropy(y: Any, guess: Any) -> Any:
    return T.nnet.binary_crossentropy(guess, y).mean()


def test_c1_consumers_of_every_node() -> None:
    x, w, b, y = T.dmatrix("x"), T.dvector("w"), T.dscalar("b"), T.dvector("y")
    product = T.dot(x, w)
    score = product + b
    guess = T.nnet.sigmoid(score)
    cost = mean_squared_error(y, guess)
    taken = consumers([cost])
    assert set(taken) == set(nodes_of([cost]))
    assert taken[x] == [(product, 0)] and taken[w] == [(product, 1)] and taken[product] == [(score, 0)]
    assert taken[score] == [(guess, 0)] and taken[cost] == []
    for node, uses in taken.items():
        assert all(user.args[position] is node for user, position in uses)
        assert len(uses) == sum(other.args.count(node) for other in taken)


def test_c2_another_input_to_the_same_graph(mode: str) -> None:
    x, w = T.dmatrix("x"), graphc.shared(np.array([1.0, -2.0]), "w")
    call = graphc.function([x], T.dot(x, w), mode=mode)
    for batch in (np.eye(2), np.ones((3, 2)), np.zeros((0, 2))):
        close(call(batch), batch @ [1.0, -2.0])


C3: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], Callable[..., Any]]] = {
    "Linear": (linear, [(4, 3), (3, 2), (2,)], lambda x, w, b: x @ w + b),
    "Sigmoid": (T.nnet.sigmoid, [(4, 3)], sigmoid),
    "Add": (lambda x, y: x + y, [(4, 3), (4, 3)], lambda x, y: x + y),
    "MSE": (mean_squared_error, [(5,), (5,)], lambda y, guess: np.mean((y - guess) ** 2)),
    "BinaryCrossEntropy": (
        lambda y, s: binary_cross_entropy(y, T.nnet.sigmoid(s)),
        [(5,), (5,)],
        lambda y, s: -np.mean(y * np.log(sigmoid(s)) + (1 - y) * np.log(1 - sigmoid(s))),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", C3)
def test_c3_values_and_derivatives(name: str, mode: str, rng: np.random.Generator) -> None:
    build, shapes, meaning = C3[name]
    arrays = [rng.uniform(0.1, 0.9, shape) for shape in shapes]
    inputs = [T.tensor("float64", (None,) * array.ndim) for array in arrays]
    close(graphc.function(inputs, build(*inputs), mode=mode)(*arrays), meaning(*arrays))
    check_derivatives(build, *arrays, mode=mode)


def test_c4_order_and_cycles() -> None:
    arrows = {"cost": ["y", "guess"], "guess": ["score"], "score": ["x", "w", "b"], **{leaf: [] for leaf in "xywb"}}
    order = toposort(["cost"], arrows.__getitem__)
    assert set(order) == set(arrows) and order == toposort(["cost"], arrows.__getitem__)
    assert all(order.index(need) < order.index(item) for item, needs in arrows.items() for need in needs)
    with pytest.raises(CycleError, match="cycle: .*score"):
        toposort(["cost"], {**arrows, "w": ["cost"]}.__getitem__)


@pytest.mark.slow
def test_c5_one_call_for_the_loss_and_all_gradients(mode: str, rng: np.random.Generator) -> None:
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = graphc.shared(rng.normal(size=3), "w"), graphc.shared(0.5, "b")
    guess = T.nnet.sigmoid(linear(x, w, b))
    loss, gradients = graphc.value_and_grad(binary_cross_entropy(y, guess), [w, b])
    call = graphc.function([x, y], [loss, *gradients], mode=mode)
    data, labels = rng.normal(size=(6, 3)), np.array([0, 1, 1, 0, 1, 0])
    found, dw, db = call(data, labels)
    p = sigmoid(data @ w.get_value() + 0.5)
    close(found, -np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p)))
    close(dw, data.T @ (p - labels) / 6)
    close(db, np.mean(p - labels))


def test_c6_a_step_moves_the_parameters_in_place(mode: str) -> None:
    x, w = T.dvector("x"), graphc.shared(np.arange(3.0), "w")
    loss = (T.sqr(w) * x).sum()
    step = graphc.function([x], [loss, graphc.grad(loss, w)], updates=optim.sgd(loss, w, 0.01), mode=mode)
    for _ in range(3):
        before = w.get_value()
        found, gradient = step([1.0, 2.0, 3.0])
        close(found, (before**2 * [1, 2, 3]).sum())
        close(w.get_value(), before - 0.01 * gradient)


@pytest.mark.slow
def test_c7_the_regression_network_equals_a_replay(mode: str) -> None:
    """13-10-1, sigmoid, mean squared error, batches of 11 drawn with replacement, learning rate 0.01, 20 epochs."""
    rng = np.random.default_rng(7)
    data = rng.normal(size=(110, 13))
    targets = np.tanh(data @ rng.normal(size=(13, 1))) + 0.1 * rng.normal(size=(110, 1))
    values = [rng.normal(size=(13, 10)), np.zeros(10), rng.normal(size=(10, 1)), np.zeros(1)]
    params = [graphc.shared(value, name) for value, name in zip(values, ("W1", "b1", "W2", "b2"), strict=True)]
    x, y = T.dmatrix("x"), T.dmatrix("y")
    cost = mean_squared_error(y, linear(T.nnet.sigmoid(linear(x, *params[:2])), *params[2:]))
    step = graphc.function([x, y], cost, updates=optim.sgd(cost, params, 1e-2), mode=mode)
    losses = []
    for _ in range(20):
        total = 0.0
        for _ in range(10):
            batch = rng.integers(0, 110, 11)
            want = replay_step(values, data[batch], targets[batch])
            found = step(data[batch], targets[batch])
            close(found, want, 1e-10)
            total += float(found) / 10
        losses.append(total)
    for param, value in zip(params, values, strict=True):
        close(param.get_value(), value, 1e-10)
    assert losses[-1] < losses[0] / 2 and min(losses) == min(losses[-6:])


def replay_step(values: list[Array], x: Array, y: Array) -> float:
    """One step of the network by hand: its loss, before `values` are moved."""
    w1, b1, w2, b2 = values
    hidden = sigmoid(x @ w1 + b1)
    residual = hidden @ w2 + b2 - y
    back = 2 * residual / residual.size
    inner = back @ w2.T * hidden * (1 - hidden)
    for value, gradient in zip(values, (x.T @ inner, inner.sum(0), hidden.T @ back, back.sum(0)), strict=True):
        value -= 1e-2 * gradient
    return float(np.mean(residual**2))


@pytest.mark.slow
def test_c8_one_node_for_two_inputs(mode: str, rng: np.random.Generator) -> None:
    x, b = T.dmatrix("x"), T.dvector("b")
    values = rng.normal(size=(3, 3)), rng.normal(size=3)
    total = linear(x, x, b).sum()
    found, dx, db = graphc.function([x, b], [total, *graphc.grad(total, [x, b])], mode=mode)(*values)
    a, _ = values
    close(found, (a @ a + values[1]).sum())
    close(dx, np.ones((3, 3)) @ a.T + a.T @ np.ones((3, 3)))
    close(db, [3.0] * 3)
    check_derivatives(lambda a: T.dot(a, a) + a, a, mode=mode)


# D: dlp -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_d1_the_sigmoid_surface_and_its_steps(mode: str) -> None:
    x = T.dvector("x")
    w, b, c = graphc.shared([3.0, 1.0], "W"), graphc.shared(0.0, "b"), T.constant(1.0)
    z1 = T.dot(w, x)
    z2 = z1 + b
    z3 = T.exp(-z2)
    z4 = z3 + c
    z5 = 1 / z4
    call = graphc.function([x], [z1, z2, z3, z4, z5], mode=mode)
    for i in np.linspace(-10, 10, 25):
        for j in np.linspace(-10, 10, 25):
            s = 3 * i + j
            for got, want in zip(call([i, j]), (s, s, np.exp(-s), np.exp(-s) + 1, 1 / (1 + np.exp(-s))), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


@pytest.mark.slow
def test_d2_what_is_not_needed_goes_and_buffers_are_used_again() -> None:
    x, w = T.dmatrix("x"), graphc.shared(np.eye(3), "w")
    h = x
    for _ in range(6):
        h = T.tanh(T.dot(h, w))
    T.sin(h) * 3  # nobody asks for it
    same = (h * 1 + 0 * h.shape[0]).sum() / 1
    for mode in ("compiled", "python"):
        call = graphc.function([x], same, mode=mode)
        assert "sin" not in call.source and "sin" not in call.text
        report = call.explain()
        assert report.count("matmul: float64") == 6 and report.count("temporary t") == 2
        close(call(np.ones((2, 3))), np.tanh(np.tanh(np.tanh(np.tanh(np.tanh(np.tanh(np.ones((2, 3)))))))).sum())


@pytest.mark.slow
def test_d3_gradients_of_two_consumers_are_summed(mode: str, rng: np.random.Generator) -> None:
    def build(x: Any) -> Any:
        g, h = T.tanh(x), x * x
        return g * h + T.sqrt(h + 1)

    check_derivatives(build, rng.normal(size=4), mode=mode)


@pytest.mark.slow
def test_d4_a_gradient_needs_its_inputs_and_no_pass_before(mode: str) -> None:
    x, y, w = T.dmatrix("x"), T.dvector("y"), graphc.shared(np.ones(2), "w")
    cost = T.sqr(T.dot(x, w) - y).sum() / 2
    backward = graphc.function([x, y], graphc.grad(cost, w), mode=mode)
    forward = graphc.function([x], T.dot(x, w), mode=mode)
    with pytest.raises(ArgumentError, match="argument x .*missing"):
        backward()
    close(backward(np.eye(2), [0, 3]), [1.0, -2.0])
    close(forward(np.ones((1, 2))), [2.0])
    close(backward(np.eye(2), [0, 3]), [1.0, -2.0])


@pytest.mark.slow
def test_d5_training_and_prediction_from_one_graph(mode: str, rng: np.random.Generator) -> None:
    x, mask, train = T.dmatrix("x"), T.dmatrix("mask"), T.bscalar("train")
    dropped = T.where(T.neq(train, 0), x * mask / 0.5, x)
    w = graphc.shared(np.arange(3.0), "w")
    output = T.dot(dropped, w)
    keep = np.array([[1.0, 0, 1], [0, 0, 1]])
    value = rng.normal(size=(2, 3))
    training = graphc.function([x, mask], output, givens={train: np.int8(1)}, mode=mode)
    predicting = graphc.function([x], output, givens={train: np.int8(0), mask: T.ones_like(x)}, mode=mode)
    both = graphc.function([x, mask, train], output, mode=mode)
    close(training(value, keep), (value * keep * 2) @ np.arange(3))
    close(predicting(value), value @ np.arange(3))
    close(both(value, keep, 1), (value * keep * 2) @ np.arange(3))
    close(both(value, keep, False), value @ np.arange(3))


KEEP = (np.random.default_rng(6).random((4, 3)) < 0.5).astype(float)
D6: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], Callable[..., Any]]] = {
    "MatMul": (T.dot, [(4, 3), (3, 2)], np.dot),
    "MatAdd": (lambda x, b: x + b, [(4, 3), (3,)], lambda x, b: x + b),
    "VecMul": (lambda x, v: x * v, [(4, 3), (3,)], lambda x, v: x * v),
    "Sigmoid": (T.nnet.sigmoid, [(4, 3)], sigmoid),
    "ReLu": (T.nnet.relu, [(4, 3)], lambda x: np.maximum(x, 0)),
    "PReLu": (
        lambda x, alpha: T.where(x > 0, x, alpha * x), [(4, 3), (3,)], lambda x, alpha: np.where(x > 0, x, alpha * x)
    ),
    "SeLu": (
        T.nnet.selu, [(4, 3)],
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(np.minimum(x, 0)) - 1)),
    ),
    "DropOut": (lambda x: x * KEEP / 0.5, [(4, 3)], lambda x: x * KEEP / 0.5),
    "DropConnect": (lambda x, w: T.dot(x, w * KEEP.T / 0.5), [(2, 3), (3, 4)], lambda x, w: x @ (w * KEEP.T / 0.5)),
    "Normalize": (
        lambda x, g, b: (x - x.mean(axis=0)) / T.sqrt(x.var(axis=0) + 1e-5) * g + b, [(4, 3), (3,), (3,)],
        lambda x, g, b: (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * g + b,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", D6)
def test_d6_values_and_derivatives_of_gates(name: str, mode: str, rng: np.random.Generator) -> None:
    build, shapes, meaning = D6[name]
    arrays = [rng.normal(size=shape) for shape in shapes]
    inputs = [T.tensor("float64", (None,) * array.ndim) for array in arrays]
    close(graphc.function(inputs, build(*inputs), mode=mode)(*arrays), meaning(*arrays))
    check_derivatives(build, *arrays, mode=mode)


@pytest.mark.slow
def test_d6_a_learnt_slope(mode: str, rng: np.random.Generator) -> None:
    x, alpha = T.dmatrix("x"), graphc.shared(np.full(3, 0.2), "alpha")
    cost = T.sqr(T.where(x > 0, x, alpha * x) - x).sum()
    step = graphc.function([x], cost, updates=optim.sgd(cost, alpha, 0.02), mode=mode)
    value = rng.normal(size=(8, 3))
    costs = [float(step(value)) for _ in range(200)]
    assert costs[-1] < 1e-3 * costs[0]
    close(alpha.get_value(), np.ones(3), 0.02)


@pytest.mark.slow
def test_d6_normalisation_with_running_moments(mode: str, rng: np.random.Generator) -> None:
    """Batches are normalised by their own moments, which move running ones; predictions use those."""
    x = T.dmatrix("x")
    mean, deviation = graphc.shared(np.zeros(2), "mean"), graphc.shared(np.ones(2), "deviation")
    center, spread = x.mean(axis=0), T.sqrt(x.var(axis=0) + 1e-8)
    updates = [(mean, 0.9 * mean + 0.1 * center), (deviation, 0.9 * deviation + 0.1 * spread)]
    train = graphc.function([x], (x - center) / spread, updates=updates, mode=mode)
    predict = graphc.function([x], (x - mean) / deviation, mode=mode)
    running = np.zeros(2), np.ones(2)
    for _ in range(5):
        batch = rng.normal([1.0, -2.0], [3.0, 0.5], (16, 2))
        close(train(batch), (batch - batch.mean(0)) / np.sqrt(batch.var(0) + 1e-8))
        running = 0.9 * running[0] + 0.1 * batch.mean(0), 0.9 * running[1] + 0.1 * np.sqrt(batch.var(0) + 1e-8)
    close(predict(batch[:3]), (batch[:3] - running[0]) / running[1])


@pytest.mark.slow
def test_d7_convolution_gates(mode: str, rng: np.random.Generator) -> None:
    """Windows of images (batch, rows, columns, channels) with strides and padding, an offset, then rows of numbers."""
    x, w, b = rng.normal(size=(2, 5, 4, 2)), rng.normal(size=(3, 2, 2, 3)), rng.normal(size=3)

    def gates(x: Any, w: Any, b: Any) -> Any:
        return T.flatten(T.nnet.convolution(x, w, (2, 1), (1, 0), channels_last=True) + b, 2)

    padded = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    wanted = np.zeros((2, 3, 3, 3))
    for i in range(3):
        for j in range(3):
            window = padded[:, 2 * i : 2 * i + 3, j : j + 2]
            wanted[:, i, j] = np.einsum("brck,rcko->bo", window, w) + b
    inputs = [T.tensor("float64", (None,) * array.ndim) for array in (x, w, b)]
    close(graphc.function(inputs, gates(*inputs), mode=mode)(x, w, b), wanted.reshape(2, -1))
    check_derivatives(gates, x, w, b, mode=mode)


def test_d10_weights_begin_scaled_by_their_inputs() -> None:
    """float32 of standard deviation 1 / sqrt(inputs of a result), in layers and filters; offsets of 0."""
    dense = layers.Sequential(seed=0).add_fc(400, 300, w=initial.fan_in())
    images = layers.Sequential(seed=0, input_shape=(50, 9, 9)).add_conv(50, 60, 5, w=initial.fan_in())
    for net, shape, count in ((dense, (400, 300), 400), (images, (60, 50, 5, 5), 1250)):
        w, b = (param.get_value() for param in net.params)
        assert w.shape == shape and w.dtype == b.dtype == "float32" and not b.any()
        assert w.std() == pytest.approx(count**-0.5, rel=0.02) and abs(w.mean()) < 4 * (count * w.size) ** -0.5


def norm_cost(p: Any, y: Any) -> Any:
    return ((p - y) ** 2).sum() / (2 * p.shape[0])


def bernoulli_cost(p: Any, y: Any) -> Any:
    return T.log(1 + T.exp((1 - 2 * y) * p)).sum()


def softmax_cost(scores: Any, labels: Any) -> Any:
    return -T.nnet.log_softmax(scores)[T.arange(labels.shape[0]), labels].mean()


def crossentropy_cost(scores: Any, labels: Any) -> Any:
    return T.nnet.categorical_crossentropy(T.nnet.softmax(scores), labels).mean()


@pytest.mark.slow
def test_d8_costs(mode: str, rng: np.random.Generator) -> None:
    p, y = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    bits, labels = rng.integers(0, 2, (5, 2)).astype(float), rng.integers(0, 3, 5)
    scores = rng.normal(size=(5, 3))
    exps = np.exp(scores - scores.max(1, keepdims=True))
    log_likelihood = -np.log(exps[np.arange(5), labels] / exps.sum(1)).mean()
    a, b, k = T.dmatrix("a"), T.dmatrix("b"), T.lvector("k")
    for build, args, values, want in [
        (norm_cost, [a, b], (p, y), ((p - y) ** 2).sum() / 10),
        (bernoulli_cost, [a, b], (p, bits), np.log1p(np.exp((1 - 2 * bits) * p)).sum()),
        (softmax_cost, [a, k], (scores, labels), log_likelihood),
        (crossentropy_cost, [a, k], (scores, labels), log_likelihood),
    ]:
        close(graphc.function(args, build(*args), mode=mode)(*values), want)
        check_derivatives(lambda x, build=build, other=values[1]: build(x, T.constant(other)), values[0], mode=mode)


@pytest.mark.slow
def test_d8_costs_are_stable(mode: str) -> None:
    """Scores of a thousand overflow exp as written; the rewrites of compiled functions take care of that."""
    a, b, k = T.dmatrix("a"), T.dmatrix("b"), T.lvector("k")
    far = np.array([[1000.0, -1000.0], [-1000.0, 1000.0]])
    cost = softmax_cost(a, k)
    loss, slope = graphc.function([a, k], [cost, graphc.grad(cost, a)], mode=mode)(far, [0, 0])
    close(loss, 1000.0)
    close(slope, [[0, 0], [-0.5, 0.5]])
    if mode == "interpreted":
        return  # a node, a NumPy call: what is written is what is computed
    cost = bernoulli_cost(a, b)
    loss, slope = graphc.function([a, b], [cost, graphc.grad(cost, a)], mode=mode)(far, np.ones((2, 2)))
    close(loss, 2000.0)
    close(slope, [[0, -1], [-1, 0]])
    cost = crossentropy_cost(a, k)
    loss, slope = graphc.function([a, k], [cost, graphc.grad(cost, a)], mode=mode)(far, [0, 0])
    close(loss, 1000.0)
    close(slope, [[0, 0], [-0.5, 0.5]])


@pytest.mark.slow
def test_d14_a_small_network_against_numpy(mode: str) -> None:
    """5-4-2-1, rectified, with the cost 1/2n sum (p - y)^2, forward and backward."""
    rng = np.random.default_rng(14)
    sizes = (5, 4, 2, 1)
    weights = [rng.normal(size=shape) for shape in pairwise(sizes)]
    biases = [rng.normal(size=size) for size in sizes[1:]]
    x, y = T.dmatrix("x"), T.dmatrix("y")
    ws, bs = [graphc.shared(w) for w in weights], [graphc.shared(b) for b in biases]
    hidden = x
    for w, b in zip(ws, bs, strict=True):
        hidden = T.nnet.relu(linear(hidden, w, b))
    cost = norm_cost(hidden, y)
    call = graphc.function([x, y], [hidden, cost, *graphc.grad(cost, [*ws, *bs])], mode=mode)
    data, targets = rng.normal(size=(10, 5)), rng.normal(size=(10, 1))
    prediction, loss, *gradients = call(data, targets)
    states = [data]
    for w_value, b_value in zip(weights, biases, strict=True):
        states.append(np.maximum(states[-1] @ w_value + b_value, 0))
    close(prediction, states[-1])
    assert (states[-1] > 0).any() and (states[-1] == 0).any()
    close(loss, ((states[-1] - targets) ** 2).sum() / 20)
    back = (states[-1] - targets) / 10
    for layer in (2, 1, 0):
        back = back * (states[layer + 1] > 0)
        close(gradients[layer], states[layer].T @ back)
        close(gradients[3 + layer], back.sum(0))
        back = back @ weights[layer].T


@pytest.mark.slow
def test_d15_forward_and_backward_are_native_code() -> None:
    x, w = T.dmatrix("x"), graphc.shared(np.ones((3, 2)), "w")
    cost = T.sqr(T.tanh(T.dot(x, w))).sum()
    step = graphc.function([x], cost, updates=optim.sgd(cost, w), mode="compiled")
    assert step.mode == "compiled" and len(step.kernel.results) == 2
    assert type(step).__flags__ & HAVE_VECTORCALL
    value, entered = np.ones((2, 3)), list[str]()
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_name) if event == "call" else None)
    step(value)
    sys.setprofile(None)
    assert entered == []  # no function of Python's
    assert "ret" in step.assembly


# 1e: what goes wrong there and must not here ------------------------------------------------------------------------


def test_dlp_the_rectifier_has_no_slope_below_zero(mode: str) -> None:
    x = T.dvector("x")
    slope = graphc.grad(T.nnet.relu(x).sum(), x)
    close(graphc.function([x], slope, mode=mode)([-2.3, -1e-9, 1e-9, 4.0]), [0.0, 0.0, 1.0, 1.0])


def test_dlp_the_sigmoid_passes_on_what_comes_in(mode: str) -> None:
    x = T.dvector("x")
    cost = (T.nnet.sigmoid(x) * np.array([2.0, -3.0])).sum() ** 2
    value = np.array([0.4, -0.2])
    s = sigmoid(value)
    found = graphc.function([x], graphc.grad(cost, x), mode=mode)(value)
    close(found, 2 * (s * [2, -3]).sum() * np.array([2, -3]) * s * (1 - s))


def test_dlp_the_bernoulli_cost_has_its_sign(mode: str) -> None:
    p, y = T.dvector("p"), T.dvector("y")
    value, bits = np.array([0.3, -0.7, 2.0]), np.array([0.0, 1.0, 1.0])
    slope = graphc.grad(bernoulli_cost(p, y), p)
    sign = 1 - 2 * bits
    close(graphc.function([p, y], slope, mode=mode)(value, bits), sign * sigmoid(sign * value))


def test_dlp_the_slope_of_a_rectifier_is_learnt_right(mode: str, rng: np.random.Generator) -> None:
    x, alpha = T.dmatrix("x"), T.dvector("alpha")
    value = rng.normal(size=(5, 3))
    slope = graphc.grad(T.sqr(T.where(x > 0, x, alpha * x)).sum(), alpha)
    found = graphc.function([x, alpha], slope, mode=mode)(value, np.full(3, 0.3))
    close(found, (2 * 0.3 * np.minimum(value, 0) ** 2).sum(0))


@pytest.mark.slow
def test_dlp_the_moments_of_a_batch_have_gradients(mode: str, rng: np.random.Generator) -> None:
    x = T.dmatrix("x")
    normal = (x - x.mean(axis=0)) / T.sqrt(x.var(axis=0) + 1e-5)
    value, weights = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    found = graphc.function([x], graphc.grad((normal * weights).sum(), x), mode=mode)(value)
    deviation = np.sqrt(value.var(0) + 1e-5)
    hat = (value - value.mean(0)) / deviation
    close(found, (weights - weights.mean(0) - hat * (weights * hat).mean(0)) / deviation, 1e-10)


def test_dlp_a_vector_times_itself(mode: str) -> None:
    v = T.dvector("v")
    value = np.array([1.0, -2.0, 3.0])
    product = T.dot(v, v)
    found, slope = graphc.function([v], [product, graphc.grad(product, v)], mode=mode)(value)
    close(found, 14.0)
    close(slope, 2 * value)


@pytest.mark.slow
def test_dlp_methods_are_compiled_with_this_numba() -> None:
    """What numba gets are functions of pointers and numbers: its own array types and SciPy are not needed."""
    program = """
        import sys
        sys.modules["scipy"] = None
        import numpy as np, graphc, graphc.tensor as T
        graphc.options.cache = False
        graphc.options.compile = "inline"
        x = T.dmatrix("x")
        print(graphc.function([x], T.nnet.sigmoid(T.dot(x, x)).sum())(np.zeros((2, 2))))
    """
    done = run_program(program)
    assert (done.returncode, done.stdout.strip()) == (0, "2.0"), done.stderr


@pytest.mark.slow
def test_cgraph_a_node_is_visited_once() -> None:
    """A diamond of diamonds has 2**1000 paths, and to walk them all would never end."""
    x = T.dscalar("x")
    y = x
    for _ in range(1000):
        y = y * 0.5 + y * 0.5
    slope = graphc.grad(y, x)
    assert len(nodes_of([y])) <= 3002
    found = graphc.function([x], [y, slope], mode="interpreted")(3.0)
    close(found[0], 3.0)
    close(found[1], 1.0)


@pytest.mark.slow
def test_cgraph_the_order_is_the_same_in_every_process() -> None:
    program = """
        import graphc, graphc.tensor as T
        x, y, z = T.dvectors("x", "y", "z")
        w = graphc.shared([1.0, 2.0], "w")
        cost = (T.tanh(x * y + z) * w + T.exp(w - x) / (z + y)).sum()
        call = graphc.function([x, y, z], [cost, *graphc.grad(cost, [w, x])], mode="python")
        print(call.text, call.source)
    """
    found = {run_program(program, PYTHONHASHSEED=seed).stdout for seed in "012"}
    assert len(found) == 1 and "def kernel" in found.pop()


def test_cgraph_the_loss_is_what_is_asked_for(mode: str) -> None:
    """Not whatever comes last in the order: other results may depend on the loss."""
    x = T.dvector("x")
    loss = T.sqr(x).sum()
    after = loss * 100 + x.sum()
    found = graphc.function([x], [after, loss, graphc.grad(loss, x)], mode=mode)([1.0, 2.0])
    close(found[0], 503.0)
    close(found[1], 5.0)
    close(found[2], [2.0, 4.0])


def test_cgraph_add_has_a_derivative(mode: str, rng: np.random.Generator) -> None:
    check_derivatives(lambda x, y: x + y + x, rng.normal(size=3), rng.normal(size=3), mode=mode)


def test_cgraph_the_entropy_has_the_derivative_of_each_input(mode: str) -> None:
    y, p = T.dvector("y"), T.dvector("p")
    cost = T.nnet.binary_crossentropy(p, y).sum()
    values = np.array([0.2, 0.9]), np.array([0.3, 0.6])
    dy, dp = graphc.function([y, p], graphc.grad(cost, [y, p]), mode=mode)(*values)
    close(dy, np.log(1 - values[1]) - np.log(values[1]))
    close(dp, (1 - values[0]) / (1 - values[1]) - values[0] / values[1])


def test_a_variable_is_not_confused_with_its_equal() -> None:
    """Two parameters with one value are two parameters."""
    a, b = graphc.shared(np.ones(2), "a"), graphc.shared(np.ones(2), "b")
    da, db = graphc.grad((a * 2 + b * 3).sum(), [a, b])
    close(da.eval(), [2.0, 2.0])
    close(db.eval(), [3.0, 3.0])
    with pytest.raises(GraphTypeError):
        graphc.shared(a)
