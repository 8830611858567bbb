"""Theano's documented examples of loops, with the results that its documentation gives or that follow from its text.

They are those of its pages on scan, on loops and on derivatives. Random streams are not there yet, so the Gibbs chain
takes its random numbers from a sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt

import graphc as theano
import graphc.tensor as T

Make = Callable[..., Any]


def test_a_power(function: Make) -> None:
    k, a = T.iscalar("k"), T.vector("A")
    result, updates = theano.scan(
        fn=lambda prior, factor: prior * factor, outputs_info=T.ones_like(a), non_sequences=a, n_steps=k
    )
    power = function(inputs=[a, k], outputs=result[-1], updates=updates)
    npt.assert_array_equal(power(range(10), 2), [0, 1, 4, 9, 16, 25, 36, 49, 64, 81])
    npt.assert_array_equal(power(range(10), 4), [0, 1, 16, 81, 256, 625, 1296, 2401, 4096, 6561])


def test_a_polynomial(function: Make) -> None:
    coefficients, x = T.vector("coefficients"), T.scalar("x")
    components, _ = theano.scan(
        fn=lambda coefficient, power, free: coefficient * (free**power),
        outputs_info=None,
        sequences=[coefficients, T.arange(10000)],
        non_sequences=x,
    )
    polynomial = function(inputs=[coefficients, x], outputs=components.sum())
    assert polynomial(np.asarray([1, 0, 2], "float32"), 3) == 19.0


def test_a_polynomial_summed_by_the_loop(function: Make) -> None:
    coefficients, x = T.vector("coefficients"), T.scalar("x")
    sums, _ = theano.scan(
        fn=lambda coefficient, power, so_far, free: so_far + coefficient * (free**power),
        outputs_info=T.as_tensor_variable(np.asarray(0, "float64")),
        sequences=[coefficients, T.arange(10000)],
        non_sequences=x,
    )
    assert function([coefficients, x], sums[-1])([1.0, 0.0, 2.0], 3.0) == 19.0


def test_a_sum_of_numbers(function: Make) -> None:
    up_to = T.iscalar("up_to")
    numbers = T.arange(up_to)

    def accumulate(number: Any, so_far: Any) -> Any:
        return so_far + number

    begin = T.as_tensor_variable(np.asarray(0, numbers.dtype))
    result, _ = theano.scan(fn=accumulate, outputs_info=begin, sequences=numbers)
    npt.assert_array_equal(function([up_to], result)(15), [n * (n + 1) // 2 for n in range(15)])


def test_values_set_at_positions(function: Make) -> None:
    location, values, model = T.imatrix("location"), T.vector("values"), T.matrix("model")

    def place(where: Any, value: Any, like: Any) -> Any:
        return T.set_subtensor(T.zeros_like(like)[where[0], where[1]], value)

    result, _ = theano.scan(fn=place, outputs_info=None, sequences=[location, values], non_sequences=model)
    call = function(inputs=[location, values, model], outputs=result)
    at, given = np.asarray([[1, 1], [2, 3]], "int32"), np.asarray([42, 50], "float32")
    expected = np.zeros((2, 5, 5))
    expected[0, 1, 1], expected[1, 2, 3] = 42, 50
    npt.assert_array_equal(call(at, given, np.zeros((5, 5), "float32")), expected)


def test_a_recurrent_network_with_taps(function: Make) -> None:
    rng = np.random.default_rng(0)
    w, w_in, w_late, w_back = (T.matrix(n) for n in ("W", "W_in_1", "W_in_2", "W_feedback"))
    w_out = T.matrix("W_out")
    u, x0, y0 = T.matrix("u"), T.matrix("x0"), T.vector("y0")

    def step(u_tm4: Any, u_t: Any, x_tm3: Any, x_tm1: Any, y_tm1: Any, *weights: Any) -> list[Any]:
        w, w_in, w_late, w_back, w_out = weights
        x_t = T.tanh(T.dot(x_tm1, w) + T.dot(u_t, w_in) + T.dot(u_tm4, w_late) + T.dot(y_tm1, w_back))
        return [x_t, T.dot(x_tm3, w_out)]

    weights = [w, w_in, w_late, w_back, w_out]
    (xs, ys), updates = theano.scan(
        fn=step,
        sequences={"input": u, "taps": [-4, -0]},
        outputs_info=[{"initial": x0, "taps": [-3, -1]}, y0],
        non_sequences=weights,
    )
    assert not updates
    shapes = [(3, 3), (2, 3), (2, 3), (1, 3), (3, 1)]
    given = [rng.normal(size=shape) for shape in shapes]
    us, x, y = rng.normal(size=(9, 2)), list(rng.normal(size=(3, 3))), rng.normal(size=1)
    found = function([u, x0, y0, *weights], [xs, ys])(us, np.array(x), y, *given)
    expected: list[list[Any]] = [[], []]
    for t in range(4, 9):
        old = x[-3]
        x.append(np.tanh(x[-1] @ given[0] + us[t] @ given[1] + us[t - 4] @ given[2] + y @ given[3]))
        y = old @ given[4]
        expected[0].append(x[-1])
        expected[1].append(y)
    for got, wanted in zip(found, expected, strict=True):
        npt.assert_allclose(got, wanted, rtol=1e-12)


def test_shared_variables_that_are_not_named(function: Make) -> None:
    rng = np.random.default_rng(1)
    values, above, below = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=4)
    w, bhid, bvis = theano.shared(values), theano.shared(above), theano.shared(below)
    noise, sample = T.dmatrix("noise"), T.dvector("sample")

    def step(random: Any, visible: Any) -> Any:
        hidden = random[:3] < T.nnet.sigmoid(T.dot(visible, w) + bhid)
        return T.cast(random[3:] < T.nnet.sigmoid(T.dot(hidden, w.T) + bvis), "float64")

    chain, updates = theano.scan(step, sequences=noise, outputs_info=sample, n_steps=10)
    gibbs = function([sample, noise], chain[-1], updates=updates)
    random, visible = rng.uniform(size=(10, 7)), np.ones(4)
    found = gibbs(visible, random)
    for row in random:
        hidden = row[:3] < 1 / (1 + np.exp(-(visible @ values + above)))
        visible = (row[3:] < 1 / (1 + np.exp(-(hidden @ values.T + below)))).astype(float)
    npt.assert_array_equal(found, visible)


def test_updates(function: Make) -> None:
    a = theano.shared(1)
    values, updates = theano.scan(lambda: {a: a + 1}, n_steps=10)
    assert values is None
    call = function([], [a + 1, updates[a] + 1], updates=updates)
    assert [int(value) for value in call()] == [2, 12]
    assert a.get_value() == 11
    assert [int(value) for value in call()] == [12, 22]
    assert a.get_value() == 21


def test_updates_that_are_not_asked_for(function: Make) -> None:
    a = theano.shared(1)
    _, updates = theano.scan(lambda: {a: a + 1}, n_steps=10)
    call = function([], [a + 1, updates[a] + 1])
    for _ in range(2):
        assert [int(value) for value in call()] == [2, 12]
    assert a.get_value() == 1


def test_a_loop_that_ends_by_a_condition(function: Make) -> None:
    def power_of_two(previous: Any, most: Any) -> Any:
        return previous * 2, theano.scan_module.until(previous * 2 > most)

    most = T.scalar()
    values, _ = theano.scan(power_of_two, outputs_info=T.constant(1.0), non_sequences=most, n_steps=1024)
    npt.assert_array_equal(function([most], values)(45), [2, 4, 8, 16, 32, 64])


def test_the_tanh_of_a_batch(function: Make) -> None:
    """The tutorial for machine learning: tanh(x(t) W + b) of each element."""
    x, w, b = T.matrix("X"), T.matrix("W"), T.vector("b_sym")
    results, _ = theano.scan(lambda v: T.tanh(T.dot(v, w) + b), sequences=x)
    ones = np.eye(2, dtype="float64")
    found = function(inputs=[x, w, b], outputs=results)(ones, ones, np.ones(2))
    npt.assert_allclose(found, np.tanh(ones.dot(ones) + np.ones(2)))


def test_a_sequence_backwards_and_one_forwards(function: Make) -> None:
    """x(t) = tanh(x(t-1) W + y(t) U + p(T-t) V)."""
    x, w, y, u, p, v = T.vector("X"), T.matrix("W"), T.matrix("Y"), T.matrix("U"), T.matrix("P"), T.matrix("V")
    results, _ = theano.scan(
        lambda y, p, x_tm1: T.tanh(T.dot(x_tm1, w) + T.dot(y, u) + T.dot(p, v)),
        sequences=[y, p[::-1]],
        outputs_info=[x],
    )
    rng = np.random.default_rng(2)
    given = [rng.normal(size=size) for size in ((2,), (2, 2), (5, 2), (2, 2), (5, 2), (2, 2))]
    found = function([x, w, y, u, p, v], results)(*given)
    state, rows = given[0], []
    for t in range(5):
        state = np.tanh(state @ given[1] + given[2][t] @ given[3] + given[4][4 - t] @ given[5])
        rows.append(state)
    npt.assert_allclose(found, rows)


def test_norms_of_rows_and_a_trace(function: Make) -> None:
    x = T.matrix("X")
    lines, _ = theano.scan(lambda row: T.sqrt((row**2).sum()), sequences=[x])
    npt.assert_allclose(function([x], lines)(np.diag(np.arange(1.0, 6.0))), [1, 2, 3, 4, 5])
    trace, _ = theano.scan(
        lambda i, j, so_far: T.cast(x[i, j] + so_far, "float64"),
        sequences=[T.arange(x.shape[0]), T.arange(x.shape[1])],
        outputs_info=np.asarray(0.0, dtype="float64"),
    )
    assert function([x], trace[-1])(np.eye(5)) == 5.0


def test_two_steps_back(function: Make) -> None:
    """x(t) = x(t-2) U + x(t-1) V + tanh(x(t-1) W + b)."""
    x, w, b, u, v = T.matrix("X"), T.matrix("W"), T.vector("b"), T.matrix("U"), T.matrix("V")
    results, _ = theano.scan(
        lambda old, last: T.dot(old, u) + T.dot(last, v) + T.tanh(T.dot(last, w) + b),
        outputs_info=[{"initial": x, "taps": [-2, -1]}],
        n_steps=10,
    )
    rng = np.random.default_rng(3)
    given = [0.5 * rng.normal(size=size) for size in ((2, 2), (2, 2), (2,), (2, 2), (2, 2))]
    found = function([x, w, b, u, v], results)(*given)
    rows = list(given[0])
    for _ in range(10):
        rows.append(rows[-2] @ given[3] + rows[-1] @ given[4] + np.tanh(rows[-1] @ given[1] + given[2]))
    npt.assert_allclose(found, rows[2:])


def test_the_jacobian_by_a_loop(function: Make) -> None:
    """The derivative of tanh(v A), row by row: the indices are the sequence, and `grad` is called in the step."""
    v, a = T.vector(), T.matrix()
    y = T.tanh(T.dot(v, a))
    results, _ = theano.scan(lambda i: T.grad(y[i], v), sequences=[T.arange(y.shape[0])])
    x = np.eye(5)[0]
    w = np.eye(5, 3)
    w[2] = np.ones(3)
    expected = ((1 - np.tanh(x.dot(w)) ** 2) * w).T
    npt.assert_allclose(function([v, a], results, allow_input_downcast=True)(x, w), expected)


def test_a_count_that_is_shared(function: Make) -> None:
    k, steps = theano.shared(0), T.iscalar("n_sym")
    _, updates = theano.scan(lambda: [(k, k + 1)], n_steps=steps)
    call = function([steps], [], updates=updates)
    call(3)
    assert k.get_value() == 3


def test_derivatives_through_the_power(function: Make) -> None:
    """The exercise of the tutorial with its derivative: d(a**k)/da = k a**(k-1)."""
    a, k = T.dvector("A"), T.iscalar("k")
    result, _ = theano.scan(lambda prior, factor: prior * factor, None, T.ones_like(a), a, k)
    slope = T.grad(result[-1].sum(), a)
    npt.assert_allclose(function([a, k], slope)([1.0, 2.0, 3.0], 4), 4 * np.array([1.0, 8.0, 27.0]))


def test_the_hessian_by_a_loop(function: Make) -> None:
    """The tutorial on gradients: the rows of the second derivative of (x**2).sum()."""
    x = T.dvector("x")
    gradient = T.grad((x**2).sum(), x)
    rows, updates = theano.scan(
        lambda i, gradient, x: T.grad(gradient[i], x),
        sequences=T.arange(gradient.shape[0]),
        non_sequences=[gradient, x],
    )
    npt.assert_array_equal(function([x], rows, updates=updates)([4, 4]), [[2, 0], [0, 2]])
