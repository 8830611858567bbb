"""The session front end: TensorSlow's behaviour, and freedom from its defects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc.session as ts
from graphc.errors import (
    ArgumentError,
    CycleError,
    GradientError,
    GraphTypeError,
    MissingInputError,
    ShapeError,
    UpdateError,
)
from graphc.ir.node import Array, Type
from graphc.startup.process import PROCESS

MODES = ["compiled", "interpreted", "python"]


@pytest.fixture(autouse=True)
def graph() -> Any:
    """A graph for each test."""
    with ts.Graph().as_default() as graph:
        yield graph


@pytest.fixture(params=MODES)
def session(request: pytest.FixtureRequest) -> ts.Session:
    return ts.Session(request.param)


def numeric_gradient(loss: Any, x: Array, step: float = 1e-6) -> Array:
    """The gradient of a function of one array, by central differences."""
    result = np.empty_like(x)
    for place in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[place] = step
        result[place] = (loss(x + shift) - loss(x - shift)) / (2 * step)
    return result


# --- graphs -----------------------------------------------------------------------------------------------------------


def test_default_graph_lists_what_is_made() -> None:
    graph = ts.Graph().as_default()
    w, x = ts.Variable([1, 1]), ts.placeholder()
    y = ts.multiply(w, x)
    z = ts.add(y, y)
    assert (graph.variables, graph.placeholders, graph.operations) == ([w], [x], [y, z])
    assert ts.get_default_graph() is graph
    ts.train.GradientDescentOptimizer(0.1).minimize(ts.reduce_sum(z))
    assert [type(item).__name__ for item in graph.operations] == ["multiply", "add", "reduce_sum", "Minimization"]
    assert w.consumers == [y]


def test_graph_as_context_gives_back_the_outer_one(graph: ts.Graph) -> None:
    with ts.Graph().as_default() as inner:
        x = ts.placeholder()
        with pytest.raises(RuntimeError, match="inside"), ts.Graph().as_default():
            raise RuntimeError("inside")
        assert ts.get_default_graph() is inner
        with inner.as_default(), inner:
            pass
        assert ts.get_default_graph() is inner
    assert ts.get_default_graph() is graph
    assert inner.placeholders == [x]
    assert not graph.placeholders


def test_operations_know_inputs_and_consumers() -> None:
    w, x = ts.Variable(1.0), ts.placeholder()
    y = ts.multiply(w, x)
    z = ts.add(y, y)
    assert y.input_nodes == [w, x]
    assert w.consumers == x.consumers == [y]
    assert y.consumers == [z, z]
    assert not z.consumers
    assert isinstance(z, ts.add)
    np.testing.assert_array_equal(z.compute(np.array([1, 2]), np.array([3, 4])), [4, 6])


def test_export_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: ts.Graph) -> None:
    monkeypatch.chdir(tmp_path)
    ts.add(ts.Variable(1.0, name="w"), ts.placeholder(name="x"))
    text = graph.export_dot("affine_")
    assert (tmp_path / "affine_1var_1op.dot").read_text() == text
    assert text.splitlines()[1:-1] == [
        'n0 [label="w", shape=box]',
        'n1 [label="x", shape=diamond]',
        'n2 [label="add", shape=ellipse]',
        "n0 -> n2",
        "n1 -> n2",
    ]


# --- running ----------------------------------------------------------------------------------------------------------


def test_affine_transformation_of_integers(session: ts.Session) -> None:
    a, b, x = ts.Variable([[1, 0], [0, -1]]), ts.Variable([1, 1]), ts.placeholder()
    y = ts.matmul(a, x)
    z = ts.add(y, b)
    output = session.run(z, {x: [1, 2]})
    assert output.dtype == np.int64
    assert str(output) == "[ 2 -1]"


def test_perceptron(session: ts.Session) -> None:
    w, b, x = ts.Variable([1, 1]), ts.Variable(0), ts.placeholder()
    p = ts.sigmoid(ts.add(ts.matmul(w, x), b))
    assert session.run(p, {x: [3, 2]}) == pytest.approx(0.993307149076, abs=1e-12)


def test_fetches_of_every_form(session: ts.Session) -> None:
    w, x = ts.Variable([1, 2]), ts.placeholder()
    y = x * w
    result = session.run({"one": y, "more": [w, x, (y, y)]}, {x: [3, 4]})
    assert result["one"].tolist() == [3, 8]
    first, second, third = result["more"]
    assert isinstance(third, tuple)
    assert [first.tolist(), second.tolist(), *(item.tolist() for item in third)] == [[1, 2], [3, 4], [3, 8], [3, 8]]
    assert session.run([]) == []


def test_value_of_a_variable_is_a_copy(session: ts.Session) -> None:
    w = ts.Variable([1.0, 2.0])
    session.run(w)[0] = 7.0
    w.value[0] = 7.0
    assert session.run(w).tolist() == [1.0, 2.0]
    w.value = [3.0, 4.0]
    assert session.run(w + 1).tolist() == [4.0, 5.0]


def test_intermediate_values_can_be_fed(session: ts.Session) -> None:
    x = ts.placeholder()
    y = ts.exp(x)
    z = y * 2
    assert session.run(z, {y: [1, 2]}).tolist() == [2, 4]
    w = ts.Variable([5.0])
    assert session.run([w, w + 1], {w: [1, 2]})[1].tolist() == [2, 3]
    assert w.value.tolist() == [5.0]


OPERATIONS: list[tuple[Any, Any, list[Any]]] = [
    (ts.add, np.add, [[1.0, 2.0], [[3.0], [4.0]]]),
    (ts.subtract, np.subtract, [[1.0, 2.0], 3.0]),
    (ts.multiply, np.multiply, [[[1, 2]], [[3], [4]]]),
    (ts.divide, np.divide, [[1, 2], [3, 4]]),
    (ts.power, np.power, [[1.0, 2.0], 3]),
    (ts.maximum, np.maximum, [[1.0, 5.0], [3.0, 4.0]]),
    (ts.minimum, np.minimum, [[1.0, 5.0], [3.0, 4.0]]),
    (ts.matmul, np.dot, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
    (ts.matmul, np.dot, [[[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0]]),
    (ts.matmul, np.dot, [[1, 2], [3, 4]]),
    (ts.transpose, np.transpose, [[[1, 2, 3]]]),
    (ts.negative, np.negative, [[1, -2]]),
    (ts.absolute, np.abs, [[1, -2]]),
    (ts.square, np.square, [[1.5, -2]]),
    (ts.sqrt, np.sqrt, [[1.5, 2]]),
    (ts.exp, np.exp, [[1, 2]]),
    (ts.log, np.log, [[1.5, 2]]),
    (ts.tanh, np.tanh, [[1.5, 2]]),
    (ts.relu, lambda x: np.maximum(x, 0), [[1.5, -2]]),
    (ts.sigmoid, lambda x: 1 / (1 + np.exp(-np.asarray(x))), [[1.5, -2, 0]]),
    (ts.softmax, lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True), [[[1.0, 2.0], [3.0, 5.0]]]),
    (ts.reduce_sum, np.sum, [[[1, 2], [3, 4]]]),
    (lambda a: ts.reduce_sum(a, axis=1), lambda a: np.sum(a, axis=1), [[[1, 2], [3, 4]]]),
    (lambda a: ts.reduce_sum(a, 0), lambda a: np.sum(a, 0), [[[1, 2], [3, 4]]]),
    (lambda a: ts.reduce_mean(a, axis=0), lambda a: np.mean(a, axis=0), [[[1, 2], [3, 4]]]),
    (lambda a: ts.reduce_max(a, axis=1), lambda a: np.max(a, axis=1), [[[1, 2], [3, 4]]]),
]


@pytest.mark.parametrize(("operation", "meaning", "values"), OPERATIONS)
def test_operations_compute_what_numpy_does(operation: Any, meaning: Any, values: list[Any]) -> None:
    feeds = [ts.placeholder() for _ in values]
    result = ts.Session("interpreted").run(operation(*feeds), dict(zip(feeds, values, strict=True)))
    expected = np.asarray(meaning(*values))
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-14)


def test_operators_mix_elements_and_numbers(session: ts.Session) -> None:
    x = ts.placeholder()
    y = 1 - 2 / (x**2 + 1) * 3 - (-x) + np.ones(2) * x + 2**x
    value = np.array([1.0, 2.0])
    expected = 1 - 2 / (value**2 + 1) * 3 + value + value + 2**value
    np.testing.assert_allclose(session.run(y, {x: value}), expected, rtol=1e-14)
    assert session.run(x @ [3, 4], {x: [1, 2]}) == session.run([3, 4] @ x, {x: [1, 2]}) == 11


# --- types and sizes --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_function_for_each_type_and_none_for_a_size() -> None:
    session = ts.Session("compiled")
    x = ts.placeholder()
    y = ts.reduce_sum(x * 3, axis=0)
    session.run(y, {x: [[1.0, 2.0], [3.0, 4.0]]})
    before = PROCESS.compilations
    for rows in (2, 3, 5, 8):
        assert session.run(y, {x: np.ones((rows, 4))}).tolist() == [3.0 * rows] * 4
    assert (PROCESS.compilations, len(session.functions)) == (before, 1)
    assert session.run(y, {x: [[1, 2], [3, 4]]}).dtype == np.int64
    assert session.run(y, {x: [5.0, 6.0]}) == 33.0
    assert len(session.functions) == 3


def test_placeholder_of_a_type(session: ts.Session) -> None:
    x = ts.placeholder("float32", (None, 2), name="x")
    y = x * 2
    assert session.run(y, {x: [[1, 2]]}).dtype == np.float32
    assert session.run(y, {x: [[1, 2], [3, 4]]}).tolist() == [[2, 4], [6, 8]]
    assert len(session.functions) == 1
    with pytest.raises(ShapeError, match=r"placeholder 'x' .*its shape is \(None, 2\), that of the value \(1, 3\)"):
        session.run(y, {x: [[1, 2, 3]]})
    with pytest.raises(GraphTypeError, match="placeholder 'x' .*cannot become float32"):
        session.run(y, {x: np.array([[1e300, 2]])})


def test_sizes_of_one_broadcast_as_in_numpy(session: ts.Session) -> None:
    x, y = ts.placeholder(), ts.placeholder()
    z = ts.add(x, y)
    for left, right in [((3, 1), (2,)), ((1, 2), (3, 1)), ((3, 2), (1,)), ((3, 2), ())]:
        assert session.run(z, {x: np.ones(left), y: np.ones(right)}).shape == (3, 2)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_missing_placeholder_is_named_with_its_line(session: ts.Session) -> None:
    x, y = ts.placeholder(name="speed"), ts.placeholder()
    with pytest.raises(MissingInputError, match=r"placeholder 'speed' \(test_session.py:\d+\) is needed and not in"):
        session.run(x + y, {y: 1.0})
    assert session.run(y * 2, {y: 1.0}) == 2.0


def test_bad_feeds_and_fetches(session: ts.Session) -> None:
    x = ts.placeholder(name="x")
    y = x + 1
    with pytest.raises(GraphTypeError, match="keys are placeholders"):
        session.run(y, {"x": 1.0})
    with pytest.raises(GraphTypeError, match="cannot be fetched"):
        session.run("y", {x: 1.0})
    with pytest.raises(GraphTypeError, match="placeholder 'x'.*is not an array"):
        session.run(y, {x: "one"})
    with pytest.raises(ArgumentError, match="add takes 2 operands; got 1"):
        ts.add(x)


def test_sizes_that_differ_name_the_operation(session: ts.Session) -> None:
    x, y = ts.placeholder(name="x"), ts.placeholder(name="y")
    total = x + y
    line = total.where.line if total.where else 0
    with pytest.raises(ShapeError, match=rf"add \(test_session.py:{line}\): x .* and y"):
        session.run(total, {x: np.ones(2), y: np.ones(3)})


def test_error_of_translation_notes_the_operation(session: ts.Session) -> None:
    x = ts.placeholder(name="x")
    product = ts.reduce_sum(x, axis=2)
    with pytest.raises(Exception, match="axis") as caught:
        session.run(product, {x: np.ones((2, 2))})
    assert any("reduce_sum (test_session.py:" in note for note in caught.value.__notes__)


def test_cycle_is_an_error(session: ts.Session) -> None:
    x = ts.Variable(1.0)
    first = ts.add(x, x)
    second = ts.add(first, x)
    first.input_nodes[0] = second
    with pytest.raises(CycleError, match="add .* -> add"):
        session.run(second)


# --- gradients --------------------------------------------------------------------------------------------------------

LOSSES: dict[str, Any] = {
    "add of a row": lambda x: ts.add(x, ts.Variable([1.0, 2.0, 3.0])) ** 2,
    "matmul": lambda x: ts.matmul(x, ts.transpose(x)) ** 2,
    "sigmoid": ts.sigmoid,
    "softmax": lambda x: ts.softmax(x) ** 2,
    "log": lambda x: ts.log(ts.square(x) + 1),
    "multiply": lambda x: ts.multiply(x, ts.multiply(x, [2.0, 3.0, 4.0])),
    "reduce_sum of all": lambda x: ts.reduce_sum(x) ** 2,
    "reduce_sum of rows": lambda x: ts.reduce_sum(x, axis=1) ** 2,
    "negative": lambda x: ts.negative(x) ** 3,
    "divide": lambda x: ts.divide(x, ts.exp(x)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_against_finite_differences(name: str) -> None:
    session = ts.Session("interpreted")
    x = ts.placeholder()
    loss = ts.reduce_sum(LOSSES[name](x))
    value = np.random.default_rng(0).normal(size=(2, 3))
    gradient = session.run(ts.train.compute_gradients(loss)[x], {x: value})
    expected = numeric_gradient(lambda v: session.run(loss, {x: v}), value)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_cross_entropy_of_softmax(session: ts.Session) -> None:
    rng = np.random.default_rng(1)
    scores, c = ts.placeholder(), ts.placeholder()
    p = ts.softmax(scores)
    loss = ts.negative(ts.reduce_sum(ts.reduce_sum(ts.multiply(c, ts.log(p)), axis=1)))
    feeds = {scores: rng.normal(size=(4, 2)), c: [[1, 0], [0, 1], [1, 0], [0, 1]]}
    table = ts.train.compute_gradients(loss)
    value, chances, gradient = session.run([loss, p, table[scores]], feeds)
    assert value == pytest.approx(-np.sum(np.array(feeds[c]) * np.log(chances)))
    np.testing.assert_allclose(gradient, chances - np.array(feeds[c]), atol=1e-12)


def test_gradient_by_every_element(session: ts.Session) -> None:
    x, w = ts.placeholder(), ts.Variable([2.0, 3.0])
    product = w * x
    squares = product**2
    loss = ts.reduce_sum(squares)
    table = ts.train.compute_gradients(loss)
    assert set(table) >= {loss, squares, product, w, x}
    values = session.run(table, {x: [1.0, 4.0]})
    assert values[loss] == 1.0
    assert values[squares].tolist() == [1.0, 1.0]
    assert values[product].tolist() == [4.0, 24.0]
    assert values[w].tolist() == [4.0, 96.0]
    assert values[x].tolist() == [8.0, 72.0]


def test_gradient_by_one_of_two_equal_values(session: ts.Session) -> None:
    x = ts.placeholder()
    first, second = x + 1, x + 1
    table = ts.train.compute_gradients(ts.reduce_sum(first * second))
    values = session.run([table[first], table[x]], {x: [1.0, 2.0]})
    assert [value.tolist() for value in values] == [[2.0, 3.0], [4.0, 6.0]]


def test_gradients_can_be_differentiated(session: ts.Session) -> None:
    x = ts.placeholder()
    first = ts.train.compute_gradients(ts.reduce_sum(ts.log(x) * x))[x]
    second = ts.train.compute_gradients(ts.reduce_sum(first))[x]
    np.testing.assert_allclose(session.run(second, {x: [1.0, 4.0]}), [1.0, 0.25])


def test_loss_must_be_a_scalar(session: ts.Session) -> None:
    x = ts.placeholder()
    squares = x**2
    with pytest.raises(GradientError, match=r"a loss must be a scalar; power \(test_session"):
        session.run(ts.train.compute_gradients(squares)[x], {x: [1.0, 2.0]})


# --- TensorSlow's defects ---------------------------------------------------------------------------------------------


def test_gradient_of_a_matrix_times_itself(session: ts.Session) -> None:
    a = ts.Variable([[1, 2], [3, 4]])
    table = ts.train.compute_gradients(ts.reduce_sum(ts.matmul(a, a)))
    assert session.run(table[a]).tolist() == [[7, 11], [9, 13]]


@pytest.mark.parametrize("swapped", [False, True])
def test_gradient_of_add_in_either_order(session: ts.Session, swapped: bool) -> None:
    x = ts.placeholder()
    loss = ts.reduce_sum(ts.add(ts.log(x), x) if swapped else ts.add(x, ts.log(x)))
    assert session.run(ts.train.compute_gradients(loss)[x], {x: [1.0, 4.0]}).tolist() == [2.0, 1.25]


def test_two_losses_share_a_variable(session: ts.Session) -> None:
    w = ts.Variable([1.0, 2.0])
    losses = [ts.reduce_sum(w * w), ts.reduce_sum(w * 3)]
    gradients = [ts.train.compute_gradients(loss)[w] for loss in losses]
    assert [value.tolist() for value in session.run(gradients)] == [[2.0, 4.0], [3.0, 3.0]]


def test_gradient_of_multiply_that_broadcasts_has_the_shape_of_the_variable(session: ts.Session) -> None:
    w, x = ts.Variable([1.0, 2.0]), ts.placeholder()
    table = ts.train.compute_gradients(ts.reduce_sum(ts.multiply(x, w)))
    assert session.run(table[w], {x: [[1, 2], [3, 4], [5, 6]]}).tolist() == [9.0, 12.0]


def test_softmax_of_large_scores(session: ts.Session) -> None:
    x = ts.placeholder()
    assert session.run(ts.softmax(x), {x: [[1000.0, 0.0]]}).tolist() == [[1.0, 0.0]]


def test_deep_diamond(session: ts.Session) -> None:
    x = ts.placeholder()
    y: ts.Element = x
    for _ in range(60):
        y = y + y
    value, gradient = session.run([y, ts.train.compute_gradients(ts.reduce_sum(y))[x]], {x: [1.0, 3.0]})
    assert value.tolist() == [2.0**60, 3 * 2.0**60]
    assert gradient.tolist() == [2.0**60, 2.0**60]


@pytest.mark.slow
def test_long_chain() -> None:
    x = ts.placeholder()
    y: ts.Element = x
    for _ in range(2000):
        y = ts.negative(y) * 1.0
    gradient = ts.train.compute_gradients(ts.reduce_sum(y))[x]
    results = ts.Session("interpreted").run([y, gradient], {x: [1.0, 3.0]})
    assert [result.tolist() for result in results] == [[1.0, 3.0], [1.0, 1.0]]
    assert ts.Session("compiled").run(y, {x: [1.0, 3.0]}).tolist() == [1.0, 3.0]


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_step_of_gradient_descent(session: ts.Session) -> None:
    x, w, b = ts.placeholder(), ts.Variable([1.0, 2.0]), ts.Variable(0.5)
    loss = ts.reduce_sum((ts.matmul(x, w) + b) ** 2)
    step = ts.train.GradientDescentOptimizer(learning_rate=0.01).minimize(loss)
    data = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
    residue = data @ [1.0, 2.0] + 0.5
    before, nothing, old = session.run([loss, step, w], {x: data})
    assert before == pytest.approx(np.sum(residue**2))
    assert nothing is None
    assert old.tolist() == [1.0, 2.0]
    np.testing.assert_allclose(w.value, [1.0, 2.0] - 0.01 * 2 * residue @ data, rtol=1e-13)
    np.testing.assert_allclose(b.value, 0.5 - 0.01 * 2 * residue.sum(), rtol=1e-13)
    assert session.run(step, {x: data}) is None


def test_integer_variable_becomes_float_to_be_moved(session: ts.Session) -> None:
    w = ts.Variable([1, 2])
    assert session.run(w).dtype == np.int64
    step = ts.train.GradientDescentOptimizer(0.25).minimize(ts.reduce_sum(w * w))
    session.run(step)
    assert session.run(w).tolist() == [0.5, 1.0]


def test_learning_rate_can_be_fed_and_variables_chosen(session: ts.Session) -> None:
    rate, v, w = ts.placeholder(), ts.Variable(1.0), ts.Variable(np.float32(2.0))
    fixed = ts.Variable(3.0, trainable=False)
    loss = v * w * fixed
    optimizer = ts.train.GradientDescentOptimizer(rate)
    session.run(optimizer.minimize(loss, [w]), {rate: 0.5})
    assert [session.run(item).item() for item in (v, w, fixed)] == [1.0, 0.5, 3.0]
    session.run(optimizer.minimize(loss), {rate: 0.5})
    assert [session.run(item).item() for item in (v, w, fixed)] == [0.25, -1.0, 3.0]
    assert w.value.dtype == np.float32


def test_minimize_needs_variables(session: ts.Session) -> None:
    x, w = ts.placeholder(), ts.Variable(1.0)
    optimizer = ts.train.GradientDescentOptimizer(0.1)
    with pytest.raises(GradientError, match="depends on no variable"):
        optimizer.minimize(x * 2)
    with pytest.raises(GradientError, match="does not depend on Variable 'w'"):
        optimizer.minimize(x * 2, [ts.Variable(1.0, name="w")])
    steps = [optimizer.minimize(w * 2), optimizer.minimize(w * 3)]
    with pytest.raises(GraphTypeError, match=r"'minimization' \(test_session.py:\d+\) has no value"):
        ts.negative(steps[0])
    with pytest.raises(UpdateError, match="twice"):
        session.run(steps)


@pytest.mark.slow
def test_classes_of_an_xor_are_learnt() -> None:
    rng = np.random.default_rng(0)
    corners = np.array([[0, 1], [1, 0], [0, 0], [1, 1]])
    points = np.repeat(corners, 25, axis=0) + 0.2 * rng.normal(size=(100, 2))
    classes = [[1, 0]] * 50 + [[0, 1]] * 50
    x, c = ts.placeholder(), ts.placeholder()
    hidden = ts.sigmoid(ts.matmul(x, ts.Variable(rng.normal(size=(2, 2)))) + ts.Variable(rng.normal(size=2)))
    p = ts.softmax(ts.matmul(hidden, ts.Variable(rng.normal(size=(2, 2)))) + ts.Variable(rng.normal(size=2)))
    loss = ts.negative(ts.reduce_sum(ts.reduce_sum(ts.multiply(c, ts.log(p)), axis=1)))
    step = ts.train.GradientDescentOptimizer(learning_rate=0.03).minimize(loss)
    session = ts.Session()
    first = session.run(loss, {x: points, c: classes})
    for _ in range(1000):
        session.run(step, {x: points, c: classes})
    assert first > 60
    assert session.run(loss, {x: points, c: classes}) < 25
    grid = [session.run(p, {x: [[i, j]]})[0].argmax() for i in (0.0, 1.0) for j in (0.0, 1.0)]
    assert grid == [1, 0, 0, 1]


# --- operations of the user -------------------------------------------------------------------------------------------


class scaled_cube(ts.Operation):  # noqa: N801 - as TensorSlow names them
    """factor * x**3."""

    def __init__(self, x: ts.Element, factor: float) -> None:
        super().__init__([x])
        self.factor = factor

    def compute(self, x: Array) -> Array:
        return self.factor * x**3


@ts.RegisterGradient("scaled_cube")
def _scaled_cube_gradient(op: Any, grad: Array) -> Array:
    assert op.output.shape == grad.shape
    result: Array = grad * 3 * op.factor * op.inputs[0] ** 2
    return result


class row_sums(ts.Operation):  # noqa: N801
    """A sum over columns, without a gradient."""

    def compute(self, x: Array) -> Any:
        return x.sum(axis=1)


class outer_product(ts.Operation):  # noqa: N801
    """Of two vectors; says what it gives."""

    def infer(self, x: Type, y: Type) -> Type:
        return Type("float64", (x.shape[0], y.shape[0]))

    def compute(self, x: Array, y: Array) -> Any:
        return np.outer(x, y)


@ts.RegisterGradient(outer_product)
def _outer_product_gradient(op: Any, grad: Array) -> list[Array]:
    return [grad @ op.inputs[1], op.inputs[0] @ grad]


def test_operation_of_the_user_with_its_gradient(session: ts.Session) -> None:
    x = ts.placeholder()
    twice, thrice = scaled_cube(x, 2.0), scaled_cube(x, 3.0)
    loss = ts.reduce_sum(twice * thrice)
    table = ts.train.compute_gradients(loss)
    for value in (np.arange(3.0), np.arange(5.0)):
        result, gradient = session.run([twice, table[x]], {x: value})
        np.testing.assert_allclose(result, 2 * value**3)
        np.testing.assert_allclose(gradient, 36 * value**5)
    assert len(session.functions) == 1


def test_operation_of_the_user_in_training(session: ts.Session) -> None:
    w = ts.Variable([1.0, 2.0])
    step = ts.train.GradientDescentOptimizer(0.1).minimize(ts.reduce_sum(scaled_cube(w, 1.0)))
    session.run(step)
    np.testing.assert_allclose(w.value, [0.7, 0.8])


def test_sizes_of_a_users_result_are_traced(session: ts.Session) -> None:
    x = ts.placeholder()
    y = row_sums([x])
    assert session.run(y, {x: np.ones((2, 3))}).tolist() == [3.0, 3.0]
    assert session.run(y, {x: np.ones((4, 3))}).tolist() == [3.0] * 4
    with pytest.raises(GradientError, match=r"row_sums \(test_session.py:\d+\) has no gradient"):
        session.run(ts.train.compute_gradients(ts.reduce_sum(y))[x], {x: np.ones((2, 3))})


def test_type_of_a_users_result_can_be_declared(session: ts.Session) -> None:
    x, y = ts.placeholder(), ts.placeholder()
    table = ts.train.compute_gradients(ts.reduce_sum(outer_product([x, y])))
    for left, right in ((2, 2), (2, 3), (4, 2)):
        values = session.run([table[x], table[y]], {x: np.ones(left), y: np.ones(right)})
        assert [value.tolist() for value in values] == [[right] * left, [left] * right]


def test_registered_gradient_replaces_that_of_an_operation(
    session: ts.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ts, "_gradients", {})
    x = ts.placeholder()
    table = ts.train.compute_gradients(ts.reduce_sum(ts.relu(x)))
    ts.RegisterGradient("relu")(lambda op, grad: grad)
    assert session.run(table[x], {x: [-1.0, 2.0]}).tolist() == [1.0, 1.0]


def test_gradient_of_a_wrong_shape_is_an_error(session: ts.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ts, "_gradients", {"negative": lambda op, grad: grad[:1]})
    x = ts.placeholder()
    gradient = ts.train.compute_gradients(ts.reduce_sum(ts.negative(x)))[x]
    with pytest.raises(
        GradientError, match=r"registered for negative .* has shape \(1,\) for an input of shape \(2,\)"
    ):
        session.run(gradient, {x: [1.0, 2.0]})
