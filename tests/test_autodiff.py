"""Derivatives: every op against finite differences, and the arguments of grad, vjp and jvp."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.ops.index
import graphc.ops.linalg
import graphc.tensor as T
from graphc.arrays.dtypes import is_float
from graphc.autodiff import Lop, Rop, grad, hessian, hessian_vector_product, jacobian, jvp, value_and_grad, vjp
from graphc.errors import DisconnectedInputError, GradientError, IndexOutOfBounds, ShapeError
from graphc.ir.interpret import interpret
from graphc.ir.node import OPS, Node, Sample, variable
from graphc.ir.walk import Graph, nodes_of
from graphc.ops.custom import custom_op
from graphc.ops.linalg.products import matmul
from graphc.ops.reduce import reduce_sum
from graphc.ops.scalar import cast, elementwise, stop_gradient
from graphc.testing import check_gradient, draw, leaf_like


def has_derivative(sample: Sample) -> bool:
    leaves = [leaf_like(draw(argument, np.random.default_rng(0)), "x") for argument in sample.args]
    floating = any(a.category == "float" and 0 not in a.shape for a in sample.args)
    return sample.differentiable and floating and is_float(sample.build(*leaves).dtype)


SAMPLES = [
    pytest.param(sample, op.name, id=f"{op.name}-{k}")
    for op in tuple(OPS.values())
    for k, sample in enumerate(op.samples)
    if has_derivative(sample)
]


def exp(x: Any) -> Any:
    return elementwise("exp", x)


def total(x: Any) -> Any:
    return reduce_sum(x, range(x.ndim))


def matrix(name: str) -> Any:
    return variable("float64", (None, None), name)


def run(outputs: Any, **values: Any) -> Any:
    """Evaluate nodes; values are given by the names of the leaves."""
    many = isinstance(outputs, list | tuple)
    nodes = tuple(outputs) if many else (outputs,)
    leaves = {n.name: n for n in nodes_of(nodes) if n.op.name == "input"}
    results = interpret(
        Graph((), nodes), {leaves[k]: np.asarray(v, leaves[k].dtype) for k, v in values.items() if k in leaves}
    )
    return results if many else results[0]


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "op"), SAMPLES)
def test_every_op(sample: Sample, op: str) -> None:
    rng = np.random.default_rng(3)
    order = 1 if op == "digamma" else 2
    check_gradient(sample.build, *(draw(argument, rng) for argument in sample.args), order=order, tolerance=3e-6)


def test_float32() -> None:
    check_gradient(lambda x: exp(x) * x, np.asarray([0.3, -0.7], "float32"))


def test_a_wrong_derivative_is_found() -> None:
    wrong = custom_op("wrong_square", lambda x: x * x, vjp=lambda node, g: g * node.args[0])
    with pytest.raises(AssertionError, match="derivative 1"):
        check_gradient(wrong, [1.0, 2.0])


def test_a_wrong_second_derivative_is_found() -> None:
    frozen = custom_op("frozen_square", lambda x: x * x, vjp=lambda node, g: g * stop_gradient(2 * node.args[0]))
    with pytest.raises(AssertionError, match="derivative 2"):
        check_gradient(frozen, [1.0, 2.0])


def test_structure_follows_wrt() -> None:
    x, y = matrix("x"), matrix("y")
    cost = total(x * y)
    assert isinstance(grad(cost, x), Node)
    assert isinstance(grad(cost, [x, y]), list)
    assert isinstance(grad(cost, (x, y)), tuple)
    assert grad(cost, []) == []
    assert value_and_grad(cost, [x, y])[0] is cost


def test_two_uses_add() -> None:
    """TensorSlow gave [[6, 14], [6, 14]]."""
    a = matrix("a")
    g = grad(total(matmul(a, a)), a)
    np.testing.assert_array_equal(run(g, a=[[1, 2], [3, 4]]), [[7, 11], [9, 13]])


def test_intermediate_wrt() -> None:
    x = matrix("x")
    h = exp(x)
    inner, outer = grad(total(h * h), [h, x])
    at = np.asarray([[0.5, 1.0]])
    np.testing.assert_allclose(run(inner, x=at), 2 * np.exp(at))
    np.testing.assert_allclose(run(outer, x=at), 2 * np.exp(2 * at))
    cost = total(x)
    assert float(run(grad(cost, cost))) == 1.0


def test_consider_constant() -> None:
    x = matrix("x")
    h = exp(x)
    g = grad(total(h * x), x, consider_constant=[h])
    np.testing.assert_allclose(run(g, x=[[1.0]]), [[np.e]])
    with pytest.raises(DisconnectedInputError):
        grad(total(h), x, consider_constant=[h])


@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_known_grads_have_the_sizes_of_their_nodes(mode: str) -> None:
    """A derivative that is given may be written with other sizes: they are checked at the call, and nothing else is
    asked of what it comes from."""
    x, given, row = T.dmatrix("x"), T.dmatrix("given"), T.drow("row")
    sums, twice = x.sum(axis=0, keepdims=True), x * 2
    outputs = [grad(None, x, known_grads={sums: given}), vjp(twice, x, row)]
    f = graphc.function([x, given, row], outputs, mode=mode)
    found = f(np.zeros((1, 3)), [[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]])
    assert [each.tolist() for each in found] == [[[1.0, 2.0, 3.0]], [[2.0, 4.0, 6.0]]]
    for axis, shape in enumerate([(2, 3), (1, 2)]):
        with pytest.raises(ShapeError, match=rf"derivative given for x.sum.*has size 2 along axis {axis}, not"):
            f(np.zeros((1, 3)), np.ones(shape), np.ones((1, 3)))
    with pytest.raises(ShapeError):
        f(np.zeros((2, 3)), np.ones((1, 3)), np.ones((1, 3)))
    weights, w = graphc.shared(np.ones((2, 3)), "W"), graphc.shared(np.ones(3), "w")
    hidden = T.tanh(T.dot(x, weights))
    of_hidden = grad(T.dot(hidden, w).sum(), hidden)
    of_hidden_given = graphc.function([x, of_hidden], grad(None, weights, known_grads={hidden: of_hidden}), mode=mode)
    w.set_value(np.ones(1))
    values, cotangent = np.arange(8.0).reshape(4, 2) / 8, np.arange(12.0).reshape(4, 3)
    slope = 1 - np.tanh(values @ np.ones((2, 3))) ** 2
    np.testing.assert_allclose(of_hidden_given(values, cotangent), values.T @ (cotangent * slope), rtol=1e-13)


def test_known_grads() -> None:
    x = matrix("x")
    h = exp(x)
    seed = np.asarray([[2.0, 3.0]])
    g = grad(None, x, known_grads={h: seed})
    np.testing.assert_allclose(run(g, x=[[0.0, 1.0]]), [[2.0, 3.0 * np.e]])
    # a known gradient stands for the whole: what the cost itself would add is left out
    g = grad(total(h * h), x, known_grads={h: seed})
    np.testing.assert_allclose(run(g, x=[[0.0, 1.0]]), [[2.0, 3.0 * np.e]])
    with pytest.raises(GradientError, match="known_grads"):
        grad(None, x)
    with pytest.raises(GradientError, match="must be"):
        grad(None, x, known_grads={h: np.zeros(3)})


@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_given_derivatives_fit_at_the_call(mode: str) -> None:
    """One of sizes that only a call tells, of what has known ones: it fits, or the call says what does not."""
    x, given, cube, row = T.dmatrix("x"), T.dmatrix("given"), T.dtensor3("cube"), T.drow("row")
    total_, spread = x.sum(axis=0, keepdims=True), x.dimshuffle(0, "x", 1)
    derivatives = [
        grad(None, x, known_grads={total_: given}),
        grad(None, x, known_grads={spread: cube}),
        Lop(total_, x, given),
        Rop(row * 2.0, row, given),
    ]
    f = graphc.function([x, given, cube, row], derivatives, mode=mode, on_unused_input="ignore")
    zeros, g, c, r = np.zeros((2, 3)), np.array([[1.0, 2.0, 3.0]]), np.ones((2, 1, 3)), np.ones((1, 3))
    for got, wanted in zip(f(zeros, g, c, r), [np.repeat(g, 2, 0), c[:, 0], np.repeat(g, 2, 0), 2 * g], strict=True):
        np.testing.assert_array_equal(got, wanted)
    for wrong in (np.ones((2, 3)), np.ones((2, 2, 3))):
        with pytest.raises(ShapeError, match=r"the derivative given for x.* \(test_autodiff.py:\d+\) has size 2 along"):
            f(zeros, wrong if wrong.ndim == 2 else g, wrong if wrong.ndim == 3 else c, r)


def test_disconnected() -> None:
    x, z = matrix("x"), matrix("zed")
    cost = total(x)
    with pytest.raises(DisconnectedInputError, match=r"zed \(test_autodiff.py:\d+\)"):
        grad(cost, z)
    with pytest.warns(UserWarning, match="zed") as caught:
        g = grad(cost, z, disconnected_inputs="warn")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        h = grad(cost, [x, z], disconnected_inputs="ignore")[1]
    for zeros in (g, h):
        np.testing.assert_array_equal(run(zeros + 0 * z, zed=np.ones((2, 3))), np.zeros((2, 3)))
    with pytest.raises(GradientError, match="disconnected_inputs"):
        grad(cost, z, disconnected_inputs="maybe")  # type: ignore[arg-type]
    with pytest.raises(DisconnectedInputError):
        grad(total(stop_gradient(x)), x)


def test_what_is_held_constant_needs_no_derivative() -> None:
    x = matrix("x")
    table = custom_op("table", np.rint)
    with pytest.raises(GradientError, match="table"):
        grad(total(x * table(x)), x)
    g = grad(total(x * table(stop_gradient(x))), x)
    np.testing.assert_array_equal(run(g, x=np.full((2, 3), 1.7)), np.full((2, 3), 2.0))


def test_through_integers_is_zero() -> None:
    x = matrix("x")
    g = grad(total(cast(x > 0, "float64")), x)
    np.testing.assert_array_equal(run(g + 0 * x, x=np.ones((2, 3))), np.zeros((2, 3)))


def test_what_has_no_gradient() -> None:
    x = matrix("x")
    with pytest.raises(GradientError, match="scalar"):
        grad(x, x)
    dumb = custom_op("dumb", lambda x: x)
    with pytest.raises(GradientError, match=r"dumb has no derivative.*test_autodiff.py:\d+"):
        grad(total(dumb(x)), x)


def test_bad_derivatives_of_user_ops() -> None:
    x = matrix("x")
    for name, derivative, message in (
        ("too_many", lambda node, g: [g, g], "2 cotangents for 1"),
        ("too_flat", lambda node, g: reduce_sum(g, (0,)), "must be float64"),
    ):
        op = custom_op(name, lambda x: x, vjp=derivative)
        with pytest.raises(GradientError, match=message):
            grad(total(op(x)), x)


def test_vjp_and_jvp_agree() -> None:
    """<u, J v> = <u J, v>, and J v is the difference quotient."""
    rng = np.random.default_rng(1)
    a, x = matrix("a"), variable("float64", (None,), "x")
    y = elementwise("tanh", matmul(a, exp(x))) + total(x)
    u, v, w = rng.standard_normal(3), rng.standard_normal(4), rng.standard_normal((3, 4))
    at = {"a": rng.standard_normal((3, 4)) / 3, "x": rng.standard_normal(4) / 3}
    back_a, back_x = run(vjp(y, [a, x], u), **at)
    forward = run(jvp(y, [a, x], [w, v]), **at)
    np.testing.assert_allclose(u @ forward, np.sum(back_a * w) + back_x @ v)
    h = 1e-6
    quotient = (run(y, a=at["a"] + h * w, x=at["x"] + h * v) - run(y, a=at["a"] - h * w, x=at["x"] - h * v)) / (2 * h)
    np.testing.assert_allclose(forward, quotient, atol=1e-8)
    np.testing.assert_array_equal(run(Rop(y, [a, x], [w, v]), **at), forward)
    np.testing.assert_array_equal(run(Lop(y, [a, x], u), **at)[1], back_x)


def test_forward_products_keep_the_sizes_of_shared_variables() -> None:
    """A variable in whose shape a cotangent was made still owns its sizes, though nothing else is left of it."""
    w, v = graphc.shared(np.arange(3.0), "w"), variable("float64", (None,), "v")
    for written in (graphc.tensor.set_subtensor(w[:2], v), graphc.tensor.inc_subtensor(w[:2], v)):
        np.testing.assert_array_equal(graphc.function([v], Rop(written, v, v))([4.0, 5.0]), [4.0, 5.0, 0.0])


def test_jvp_has_no_extra_leaves() -> None:
    x, t = matrix("x"), matrix("t")
    tangent = jvp([x * x, exp(x)], x, t)
    leaves = {n for n in nodes_of(tangent) if n.op.name == "input"}
    assert leaves == {x, t}
    assert isinstance(tangent, list)


def test_vjp_of_several_outputs() -> None:
    x = matrix("x")
    h = exp(x)
    g = vjp([h, h * h, h], x, [np.ones((1, 1))] * 3)
    np.testing.assert_allclose(run(g, x=[[1.0]]), [[2 * np.e + 2 * np.e**2]])


def test_hessian_vector_product() -> None:
    x = variable("float64", (None,), "x")
    cost = total(x * x * x)
    product = hessian_vector_product(cost, x, np.asarray([1.0, 2.0]))
    np.testing.assert_allclose(run(product, x=[3.0, 4.0]), [18.0, 48.0])


def test_narrower_directions_are_widened() -> None:
    x, v = variable("float64", (None,), "x"), variable("float32", (None,), "v")
    back, forward, known = vjp(exp(x), x, v), jvp(exp(x), x, v), grad(None, x, known_grads={exp(x): v})
    for found in run([back, forward, known], x=[0.0, 1.0], v=[1.0, 2.0]):
        assert found.dtype == "float64"
        np.testing.assert_allclose(found, np.exp([0.0, 1.0]) * [1.0, 2.0])
    with pytest.raises(GradientError, match="must be float32"):
        vjp(exp(v), v, x)


def test_jacobian() -> None:
    x, w = variable("float64", (3,), "x"), variable("float64", (None, 3), "w")
    at, rows = np.asarray([0.0, 1.0, 2.0]), np.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = exp(x) * reduce_sum(w, (0,))
    value, by_x, by_w = run([y, *jacobian(y, (x, w))], x=at, w=rows)
    np.testing.assert_allclose(by_x, np.diag(value))
    np.testing.assert_allclose(by_w, np.exp(at)[:, None, None] * np.eye(3)[:, None, :] * np.ones((3, 2, 3)))
    np.testing.assert_allclose(run(jacobian(total(x * x), x), x=at), 2 * at)
    empty: Any = variable("float64", (0,), "empty")
    assert run(jacobian(empty * 2, empty), empty=[]).shape == (0, 0)


def test_jacobian_takes_the_arguments_of_grad() -> None:
    x, z = variable("float64", (2,), "x"), variable("float64", (2,), "z")
    with pytest.raises(DisconnectedInputError):
        jacobian(x * x, z)
    np.testing.assert_array_equal(
        run(jacobian(x * x, z, disconnected_inputs="ignore"), x=[1, 2], z=[1, 2]), np.zeros((2, 2))
    )
    held = exp(x)
    np.testing.assert_allclose(
        run(jacobian(held * x, x, consider_constant=[held]), x=[1.0, 2.0]), np.diag(np.exp([1, 2]))
    )


def test_jacobian_of_what_it_cannot_stack() -> None:
    x: Any = variable("float64", (2, 2), "x")
    with pytest.raises(GradientError, match="must be a vector"):
        jacobian(x * x, x)


@pytest.mark.parametrize("size", [0, 1, 4, 5, 9])
def test_a_jacobian_by_a_loop_is_the_one_written_out(size: int) -> None:
    """Of sizes that are known, above and below what is written out, and of sizes that are not."""
    rng = np.random.default_rng(size)
    at, rows = rng.normal(size=size), rng.normal(size=(2, size))
    slopes = np.exp(at)[:, None, None] * np.eye(size)[:, None, :] * np.ones((size, 2, size))
    for known in (None, size):
        x, w = variable("float64", (known,), "x"), variable("float64", (None, known), "w")
        y = exp(x) * reduce_sum(w, (0,))
        by_x, by_w = graphc.function([x, w], jacobian(y, [x, w]), mode="interpreted", on_unused_input="ignore")(
            at, rows
        )
        np.testing.assert_allclose(by_x, np.diag(np.exp(at) * rows.sum(0)), rtol=1e-12)
        np.testing.assert_allclose(by_w, slopes, rtol=1e-12)


def test_a_jacobian_does_not_grow_with_its_rows() -> None:
    few, many = variable("float64", (50,), "x"), variable("float64", (5000,), "x")
    assert len(nodes_of([jacobian(exp(few), few)])) == len(nodes_of([jacobian(exp(many), many)])) < 30


def test_a_jacobian_of_a_jacobian() -> None:
    x: Any = variable("float64", (None,), "x")
    third = jacobian(jacobian(grad(total(exp(x) * total(x)), x), x)[0], x)
    at = np.asarray([0.1, -0.2, 0.3])

    def row(v: Any) -> Any:
        """The first row of the second derivative of sum(exp(v)) * sum(v)."""
        e = np.exp(v)
        return np.eye(len(v))[0] * e[0] * v.sum() + e[0] + e

    step = 1e-6
    expected = np.stack([(row(at + step * d) - row(at - step * d)) / (2 * step) for d in np.eye(3)], 1)
    np.testing.assert_allclose(run(third, x=at), expected, rtol=1e-6)


def test_the_hessian_of_a_generalised_linear_model() -> None:
    x, y, beta = T.dmatrix("x"), T.dvector("y"), T.dvector("beta")
    margin = T.dot(x, beta)
    nll = (T.nnet.softplus(margin) - y * margin).sum()
    rng = np.random.default_rng(0)
    data, labels, at = rng.normal(size=(20, 6)), rng.integers(0, 2, 20), rng.normal(size=6)
    found = graphc.function([x, y, beta], hessian(nll, beta), mode="interpreted")(data, labels * 1.0, at)
    p = 1 / (1 + np.exp(-data @ at))
    np.testing.assert_allclose(found, data.T @ (data * (p * (1 - p))[:, None]), rtol=1e-12)


def test_hessian() -> None:
    x, z = variable("float64", (2,), "x"), variable("float64", (2,), "z")
    cost = total(x * x * z) + exp(x[0] * x[1])
    direction, e = np.asarray([0.3, -0.7]), np.exp(2.0)
    outputs = [*hessian(cost, [x, z]), hessian_vector_product(cost, x, direction)]
    by_x, by_z, product = run(outputs, x=[1.0, 2.0], z=[3.0, 4.0])
    np.testing.assert_allclose(by_x, [[6 + 4 * e, e + 2 * e], [e + 2 * e, 8 + e]])
    np.testing.assert_array_equal(by_z, np.zeros((2, 2)))
    np.testing.assert_allclose(product, by_x @ direction)


@pytest.mark.slow
def test_long_chain_and_deep_diamond() -> None:
    x = variable("float64", (), "x")
    y = x
    for _ in range(20_000):
        y = y + 1.0
    assert float(run(grad(y, x), x=0.0)) == 1.0
    y = x
    for _ in range(1_000):
        y = y + y
    gradient = grad(y, x)
    assert len(nodes_of([gradient])) < 3_000
    assert float(run(gradient, x=0.0)) == 2.0**1000


def test_order_of_use_does_not_matter() -> None:
    """TensorSlow: add(x, log(x)) was a KeyError."""
    x = matrix("x")
    for cost in (total(x + elementwise("log", x)), total(elementwise("log", x) + x)):
        np.testing.assert_allclose(run(grad(cost, x), x=[[2.0]]), [[1.5]])


def test_leaf_like_keeps_ones() -> None:
    assert leaf_like(np.ones((1, 3)), "x").broadcastable == (True, False)


DISAGREEING: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a sum": (lambda x, y, a: x + y, (np.ones(3), np.ones(4), np.ones((2, 3)))),
    "a product": (lambda x, y, a: y * x, (np.ones(3), np.ones(4), np.ones((2, 3)))),
    "a slice that is too short": (lambda x, y, a: x[:3] * np.ones(3), (np.ones(2), np.ones(2), np.ones((2, 2)))),
    "a slice that is too long": (lambda x, y, a: y * x[:3], (np.ones(5), np.ones(2), np.ones((2, 2)))),
    "where": (lambda x, y, a: T.where(y > 0, x, 0.0), (np.ones(3), np.ones(4), np.ones((2, 2)))),
    "a matrix times a vector": (lambda x, y, a: T.dot(a, x), (np.ones(4), np.ones(2), np.ones((2, 3)))),
    "an inner product": (lambda x, y, a: T.dot(y, x), (np.ones(4), np.ones(2), np.ones((2, 3)))),
    "rows": (lambda x, y, a: T.exp(a) + x, (np.ones(4), np.ones(2), np.ones((2, 3)))),
    "columns": (lambda x, y, a: a * x[:, None] - y, (np.ones(4), np.ones(3), np.ones((2, 3)))),
    "parts": (lambda x, y, a: T.concatenate([a, x[None]], 0), (np.ones(4), np.ones(2), np.ones((2, 3)))),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
@pytest.mark.parametrize("name", DISAGREEING)
def test_a_derivative_is_refused_for_the_reason_of_its_function(name: str, mode: str) -> None:
    make, values = DISAGREEING[name]
    inputs = T.dvector("x"), T.dvector("y"), T.dmatrix("a")
    cost = make(*inputs).sum()
    messages = []
    for output in (cost, grad(cost, inputs[0])):
        with pytest.raises(ShapeError) as caught:
            graphc.function(inputs, output, mode, on_unused_input="ignore")(*values)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    with pytest.raises((ShapeError, IndexOutOfBounds)):  # of the same sizes, but its last ops have guards of their own
        graphc.function(inputs, jvp(cost, inputs[0], inputs[0]), mode, on_unused_input="ignore")(*values)


@pytest.mark.parametrize("name", DISAGREEING)
def test_the_reason_stays_where_the_graph_is_rebuilt(name: str) -> None:
    make, values = DISAGREEING[name]
    inputs = T.dvector("x"), T.dvector("y"), T.dmatrix("a")
    others = [kind() for kind in (T.dvector, T.dvector, T.dmatrix)]
    gradient = grad(make(*inputs).sum(), inputs[0])
    givens = [(old, 2 * new) for old, new in zip(inputs, others, strict=True)]
    held = {leaf: graphc.shared(value, leaf.name) for leaf, value in zip(inputs, values, strict=True)}
    copied = copy.deepcopy(graphc.function([], gradient, "interpreted", givens=held))
    messages = set()
    for function, given in (
        (graphc.function(inputs, gradient, "interpreted", on_unused_input="ignore"), values),
        (graphc.function(others, gradient, "interpreted", givens=givens, on_unused_input="ignore"), values),
        (copied, ()),
    ):
        with pytest.raises(ShapeError) as caught:
            function(*given)
        messages.add(str(caught.value))
    assert len(messages) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "interpreted", "python"])
def test_what_a_graph_shows_to_be_empty_passes_nothing_on(mode: str) -> None:
    x, a, b = T.dvector("x"), T.lscalar("a"), T.lscalar("b")
    shown = graphc.function([x], grad(T.set_subtensor(x[5:3], T.std(x)).sum(), x), mode)
    np.testing.assert_array_equal(shown(np.ones(1)), [1.0])
    found = graphc.function([x, a, b], grad(T.set_subtensor(x[a:b], T.std(x)).sum(), x), mode)
    np.testing.assert_array_equal(found(np.arange(3.0), 3, 2), np.ones(3))
