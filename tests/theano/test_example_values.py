"""Values that tensors have while a graph is built, as Theano 1.0.5's compute_test_value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import graphc as theano
import graphc.tensor as T
from graphc.control.branch import ifelse
from graphc.errors import GraphTypeError, IndexOutOfBounds, ShapeError
from graphc.theano.flags import VALUES, get_debug_values, get_test_value
from graphc.theano.user_ops import Op


@pytest.fixture(autouse=True)
def computed() -> Iterator[None]:
    with theano.change_flags(compute_test_value="raise"):
        yield
    VALUES.clear()


def given(name: str, value: Any) -> Any:
    variable = T.vector(name)
    variable.tag.test_value = np.asarray(value)
    return variable


def test_every_node_has_a_value() -> None:
    a, w = given("a", np.ones(3)), theano.shared(np.arange(3.0), "w")
    y = T.exp(a) * 2 + w
    np.testing.assert_allclose(y.tag.test_value, 2 * np.e + np.arange(3.0))
    np.testing.assert_array_equal(theano.grad((a**2).sum() ** 2, a).tag.test_value, [12.0] * 3)
    assert get_test_value(a.shape[0]) == 3 and y[1:].tag.test_value.shape == (2,)
    assert not y.tag.test_value.flags.writeable
    ((first, second),) = get_debug_values(a, a * 3)
    assert (first.tolist(), second.tolist()) == ([1.0] * 3, [3.0] * 3)
    assert [value.tolist() for value in get_debug_values(a)] == [[1.0] * 3], "one alone is no tuple"
    np.testing.assert_array_equal(get_test_value(w), np.arange(3.0))
    np.testing.assert_array_equal(get_test_value([1, 2]), [1, 2])


def test_errors_come_on_the_line_that_makes_them() -> None:
    a, b = given("a", np.ones(3)), given("b", np.ones(4))
    with pytest.raises(ShapeError, match=r"test_example_values.py"):
        a + b
    with pytest.raises(IndexOutOfBounds):
        a[7]
    with pytest.raises(GraphTypeError, match=r"the test value of m .* must be float64"):
        given("m", np.ones((2, 2))) * 5


def test_what_has_no_value() -> None:
    x, a = T.vector("x"), given("a", np.ones(3))
    for error in (AttributeError, ValueError):
        with pytest.raises(error, match=r"no test value is set for x \(test_example_values.py"):
            x + 1
    with pytest.raises(AttributeError, match="no test value is set for x"):
        get_debug_values(a, x)
    for how in ("off", "ignore", "warn"):
        told = pytest.warns(UserWarning, match="no test value is set for x") if how == "warn" else nullcontext()
        with theano.change_flags(compute_test_value=how), told:
            assert get_debug_values(a, x) == []
            assert len(get_debug_values(a)) == (how != "off")
    with theano.change_flags(compute_test_value="warn"), pytest.warns(UserWarning, match="no test value"):
        x + 2
    with theano.change_flags(compute_test_value="ignore"):
        assert not hasattr((x + 3).tag, "test_value")
        np.testing.assert_array_equal((a + 3).tag.test_value, [4.0] * 3)
    with theano.change_flags(compute_test_value="off"):
        assert not hasattr((a + 4).tag, "test_value")


def test_loops_branches_and_derivatives() -> None:
    a = given("a", [1.0, 2.0])
    states, _ = theano.scan(lambda s: s * 2 + T.tanh(s), outputs_info=[a], n_steps=3)
    gradient = theano.grad(states[-1].sum(), a)
    assert states.tag.test_value.shape == (3, 2) and gradient.tag.test_value.shape == (2,)
    chosen = ifelse(a.sum() > 0, a * 2, a * 3)
    np.testing.assert_array_equal(chosen.tag.test_value, [2.0, 4.0])
    np.testing.assert_array_equal(theano.Rop(a**2, a, a).tag.test_value, [2.0, 8.0])
    np.testing.assert_array_equal(theano.gradient.jacobian(a**2, a).tag.test_value, [[2.0, 0.0], [0.0, 4.0]])


def test_ops_of_the_user() -> None:
    class Twice(Op):
        """2 * x."""

        itypes = (T.dvector,)
        otypes = (T.dvector,)

        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            output_storage[0][0] = 2 * inputs[0]

    a = given("a", [1.0, 2.0])
    y = Twice()(a)
    np.testing.assert_array_equal(y.tag.test_value, [2.0, 4.0])
    assert isinstance(y.owner, theano.Apply) and isinstance(y.owner.op, Twice) and y.owner.inputs == [a]
    assert y.owner.outputs == [y] and y.owner.nout == 1 and str(y.owner) == "Twice(a)"
    with theano.change_flags(compute_test_value="off"):
        f = theano.function([a], y + 1)
        assert any(isinstance(node.op, Twice) for node in f.maker.fgraph.toposort())


def test_values_follow_those_that_are_set() -> None:
    """An expression that is written again is computed again where a value that it needs was set anew."""
    a, b, w = T.dmatrix("a"), T.dmatrix("b"), theano.shared(np.ones((1, 3)))
    a.tag.test_value, b.tag.test_value = np.array([[1.0, 2.0]]), np.array([[1.0], [2.0]])
    product = T.dot(T.dot(a, b), w)
    np.testing.assert_array_equal(product.tag.test_value, [[5.0, 5.0, 5.0]])
    b.tag.test_value = np.ones((3, 1))
    with pytest.raises(ValueError, match="sizes 2 and 3"):
        T.dot(a, b)
    b.tag.test_value = np.array([[10.0], [0.0]])
    w.set_value(np.ones((1, 1)))
    np.testing.assert_array_equal(T.dot(T.dot(a, b), w).tag.test_value, [[10.0]])


def test_a_value_that_is_set_within_a_graph_counts() -> None:
    a = given("a", np.arange(3.0))
    doubled = a * 2
    doubled.tag.test_value = np.array([10.0, 20.0, 30.0])
    np.testing.assert_array_equal((doubled[1:] + 1).tag.test_value, [21.0, 31.0])
    doubled.tag.test_value = np.zeros(3)
    np.testing.assert_array_equal((doubled[1:] + 1).tag.test_value, [1.0, 1.0])
    np.testing.assert_array_equal((a + 1).tag.test_value, [1.0, 2.0, 3.0])


def test_known_results_have_values() -> None:
    x = given("x", [1.0, 2.0])
    scalar = x[0]
    for known, value in ((scalar.shape, []), (T.ones_like(scalar), 1.0), (T.zeros((2, 3)).shape, [2, 3])):
        assert known.tag.test_value.tolist() == value
