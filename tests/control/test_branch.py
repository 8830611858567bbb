"""Lazy branches: values, laziness, derivatives, in graphs and in the steps of loops."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.autodiff import grad, hessian_vector_product, jvp
from graphc.control.branch import ifelse
from graphc.errors import GraphTypeError, GraphValueError, IndexOutOfBounds, ShapeError
from graphc.ir.node import Node
from graphc.ir.text import print_graph
from graphc.ir.verify import verify
from graphc.ir.walk import Graph
from graphc.ops.branch import sink_into_branches
from graphc.ops.custom import custom_op

MODES = ["interpreted", "python", "compiled"]


@pytest.fixture(params=MODES)
def function(request: pytest.FixtureRequest) -> Callable[..., Any]:
    def make(inputs: Any, outputs: Any, **kwargs: Any) -> Any:
        return graphc.function(inputs, outputs, request.param, **kwargs)

    return make


def as_node(value: Any) -> Node:
    """For the type checker."""
    assert isinstance(value, Node)
    return value


def counted(name: str) -> tuple[Callable[..., Node], list[int]]:
    """A function of a tensor that doubles it, and the list that each computation lengthens."""
    calls: list[int] = []

    def compute(x: Any) -> Any:
        calls.append(1)
        return 2 * x

    return custom_op(name, compute, vjp=lambda node, g: 2 * g), calls


# --- Theano's documented examples -------------------------------------------------------------------------------------


def test_the_example_of_theanos_documentation(function: Any) -> None:
    a, b = T.scalars("a", "b")
    x, y = T.matrices("x", "y")
    z_switch = T.switch(T.lt(a, b), T.mean(x), T.mean(y))
    z_lazy = graphc.ifelse(T.lt(a, b), T.mean(x), T.mean(y))
    f_switch = function([a, b, x, y], z_switch)
    f_lazyifelse = function([a, b, x, y], z_lazy)
    big_mat1, big_mat2 = np.ones((100, 10)), np.full((10, 100), 3.0)
    for val1, val2 in ((0.0, 1.0), (1.0, 0.0)):
        wanted = f_switch(val1, val2, big_mat1, big_mat2)
        assert f_lazyifelse(val1, val2, big_mat1, big_mat2) == wanted == (1.0 if val1 < val2 else 3.0)


def test_it_is_imported_as_theanos() -> None:
    assert unwrap(graphc.ifelse) is unwrap(ifelse)


def test_several_results(function: Any) -> None:
    c = T.iscalar("c")
    x, y = T.dvectors("x", "y")
    for kind in (list, tuple):
        results = graphc.ifelse(c, kind([x, 2 * y]), kind([y, 3 * x]))
        assert type(results) is kind
        f = function([c, x, y], list(results))
        for number in (0, 1, -2):
            one, two = f(number, [1.0, 2.0], [3.0, 4.0, 5.0])
            np.testing.assert_array_equal(one, [1.0, 2.0] if number else [3.0, 4.0, 5.0])
            np.testing.assert_array_equal(two, [6.0, 8.0, 10.0] if number else [3.0, 6.0])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0), (2, 3)])
def test_dtypes_and_shapes(function: Any, dtype: str, shape: tuple[int, ...]) -> None:
    c = T.bscalar("c")
    x, y = (T.tensor(dtype, (None,) * len(shape), name) for name in "xy")
    f = function([c, x, y], graphc.ifelse(c, x, y))
    rng = np.random.default_rng(0)
    a, b = (np.asarray(rng.integers(0, 2, shape)).astype(dtype) for _ in range(2))
    for holds in (0, 1):
        result = f(holds, a, b)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, a if holds else b)


def test_sizes_that_differ(function: Any) -> None:
    c, x, y = T.bscalar("c"), T.dvector("x"), T.dmatrix("y")
    z = graphc.ifelse(c, x, y.flatten())
    f = function([c, x, y], [z * 2, z.shape[0], T.concatenate([z, x])])
    a, b = np.arange(3.0), np.arange(6.0).reshape(2, 3)
    for holds, value in ((1, a), (0, b.ravel())):
        doubled, size, joined = f(holds, a, b)
        np.testing.assert_array_equal(doubled, value * 2)
        assert size == value.size
        np.testing.assert_array_equal(joined, np.concatenate([value, a]))


def test_nan_in_the_condition_holds(function: Any) -> None:
    c = T.dscalar("c")
    f = function([c], graphc.ifelse(c, 1.0, 2.0))
    assert [f(v) for v in (np.nan, 0.0, -0.0, np.inf)] == [1.0, 2.0, 2.0, 1.0]


def test_numbers_take_the_dtype_of_the_other_branch(function: Any) -> None:
    c, x, k = T.bscalar("c"), T.fscalar("x"), T.bscalar("k")
    assert graphc.ifelse(c, x, 1).dtype == graphc.ifelse(c, 0.5, x).dtype == "float32"
    assert graphc.ifelse(c, k, 1).dtype == "int8"
    assert function([c, x], graphc.ifelse(c, x, 0.5))(0, 3.0) == 0.5


def test_one_clear_error_for_branches_that_do_not_match() -> None:
    c, x, v, k = T.bscalar("c"), T.dscalar("x"), T.dvector("v"), T.iscalar("k")
    with pytest.raises(GraphTypeError, match=r"one is float64\[\], x.*the other float64\[v.0\], v"):
        graphc.ifelse(c, x, v)
    with pytest.raises(GraphTypeError, match=r"float64.*int32.*cast one, as with .astype\('float64'\)"):
        graphc.ifelse(c, x, k)
    with pytest.raises(GraphTypeError, match=r"int32.*float64"):
        graphc.ifelse(c, k, 0.5)
    with pytest.raises(GraphValueError, match=r"one has a list of 1, the other one value"):
        graphc.ifelse(c, [x], x)
    with pytest.raises(GraphValueError, match=r"a tuple of 1, the other a tuple of 2"):
        graphc.ifelse(c, (x,), (x, x))
    with pytest.raises(GraphTypeError, match="must be a scalar"):
        graphc.ifelse(v, x, x)


def test_a_known_condition_gives_the_branch_with_its_own_name(function: Any) -> None:
    x, y = T.dvector("x"), T.dvector("y")
    f = function([x, y], [ifelse(True, x, y, name="chosen"), ifelse(T.constant(0), x, y)])
    assert (x.name, y.name) == ("x", "y")
    assert [value.tolist() for value in f(y=[2.0], x=[1.0])] == [[1], [2]]
    assert ifelse(T.gt(x[0], 0), x, y, name="chosen").name == "chosen"


def test_updates(function: Any) -> None:
    c, s, t = T.bscalar("c"), graphc.shared(np.zeros(3)), graphc.shared(0.0)
    one, two = graphc.ifelse(c, [s + 1, t], [s, t - 1])
    f = function([c], s.sum(), updates=[(s, one), (t, two)])
    assert [float(f(v)) for v in (1, 1, 0, 1)] == [0.0, 3.0, 6.0, 6.0]
    np.testing.assert_array_equal(s.get_value(), [3.0, 3.0, 3.0])
    assert t.get_value() == -1.0


# --- only the branch that is taken ------------------------------------------------------------------------------------


def test_only_the_branch_that_is_taken_is_computed(function: Any) -> None:
    (one, ones), (two, twos) = counted("lazy_one"), counted("lazy_two")
    c, x, y = T.bscalar("c"), T.dvector("x"), T.dvector("y")
    f = function([c, x, y], graphc.ifelse(c, T.exp(one(x)).sum(), one(two(y)).sum()))
    assert f(1, [0.0], [1.0]) == 1.0
    assert (len(ones), len(twos)) == (1, 0)
    assert f(0, [0.0], [1.0]) == 4.0
    assert (len(ones), len(twos)) == (2, 1)


def test_what_both_branches_or_others_need_is_computed_once(function: Any) -> None:
    one, ones = counted("lazy_shared")
    c, x = T.bscalar("c"), T.dvector("x")
    f = function([c, x], graphc.ifelse(c, T.exp(one(x)), one(x) + 1))
    f(1, [0.0])
    assert len(ones) == 1
    f = function([c, x], [graphc.ifelse(c, T.exp(one(x)), x), one(x)])
    f(0, [0.0])
    assert len(ones) == 2


def test_several_branches_that_need_one_value(function: Any) -> None:
    one, ones = counted("lazy_several")
    c, d, x = T.bscalar("c"), T.bscalar("d"), T.dvector("x")
    h = one(x)
    f = function([c, d, x], [graphc.ifelse(c, h, x), graphc.ifelse(d, h + 1, x)])
    f(0, 0, [1.0])
    assert not ones
    first, second = f(0, 1, [1.0])
    assert (first, second) == (1.0, 3.0)
    assert ones


@pytest.mark.slow
def test_guards_hold_only_where_the_branch_is_taken(function: Any) -> None:
    c, x, y, k = T.bscalar("c"), T.dvector("x"), T.dvector("y"), T.lscalar("k")
    f = function([c, x, y], graphc.ifelse(c, x + y, x))
    np.testing.assert_array_equal(f(0, [1.0, 2.0], [1.0]), [1.0, 2.0])
    np.testing.assert_array_equal(f(1, [1.0, 2.0], [1.0, 1.0]), [2.0, 3.0])
    with pytest.raises(ShapeError, match=r"x.*y|y.*x"):
        f(1, [1.0, 2.0], [1.0])
    f = function([c, x, k], graphc.ifelse(c, x[k], T.constant(-1.0)))
    assert f(0, [1.0, 2.0], 7) == -1.0
    assert f(1, [1.0, 2.0], 1) == 2.0
    with pytest.raises(IndexOutOfBounds, match="7"):
        f(1, [1.0, 2.0], 7)
    i = T.lvector("i")
    f = function([c, x, i], graphc.ifelse(c, x[i].sum(), x.sum()))
    assert f(0, [1.0, 2.0], [0, 9]) == 3.0
    assert f(1, [1.0, 2.0], [0, 1, 1]) == 5.0
    with pytest.raises(IndexOutOfBounds, match="9"):
        f(1, [1.0, 2.0], [0, 9])


def test_a_size_of_one_branch_is_not_looked_for_in_the_other(function: Any) -> None:
    c, x, n = T.bscalar("c"), T.dvector("x"), T.lvector("n")
    z = graphc.ifelse(c, x[: n[2]], x)
    f = function([c, x, n], [z * 2, z.sum() + x[0]])
    doubled, total = f(1, [1.0, 2.0, 3.0], [0, 0, 2])
    np.testing.assert_array_equal(doubled, [2.0, 4.0])
    assert total == 4.0
    np.testing.assert_array_equal(f(0, [1.0, 2.0, 3.0], [0])[0], [2.0, 4.0, 6.0])
    with pytest.raises(IndexOutOfBounds):
        f(1, [1.0, 2.0, 3.0], [0])


def test_nested(function: Any) -> None:
    (one, ones), (two, twos) = counted("lazy_outer"), counted("lazy_inner")
    a, b, x = T.dscalar("a"), T.dscalar("b"), T.dvector("x")
    shared = one(x)
    inner = graphc.ifelse(b > 0, two(shared).sum(), shared.sum() + 1)
    f = function([a, b, x], graphc.ifelse(a > 0, inner, x.sum()))
    assert f(-1.0, 1.0, [1.0, 2.0]) == 3.0
    assert not ones and not twos
    assert f(1.0, -1.0, [1.0, 2.0]) == 7.0
    assert (len(ones), len(twos)) == (1, 0)
    assert f(1.0, 1.0, [1.0, 2.0]) == 12.0
    assert (len(ones), len(twos)) == (2, 1)


@pytest.mark.slow
def test_a_long_chain_of_branches_stays_small(function: Any) -> None:
    x = start = T.dscalar("x")
    for _ in range(60):
        x = graphc.ifelse(x > 1, x / 2, graphc.ifelse(x > 0.5, x + 1, 3 * x + 0.25))
    f = function([start], x)
    assert len(f.text) < 200_000
    value = 0.3
    for _ in range(60):
        value = value / 2 if value > 1 else value + 1 if value > 0.5 else 3 * value + 0.25
    assert f(0.3) == value


@pytest.mark.slow
def test_a_ladder_of_branches(function: Any) -> None:
    x, result = T.dscalar("x"), T.constant(-1.0)
    for number in range(40):
        result = graphc.ifelse(T.eq(x, number), T.exp(x) * number, result)
    f = function([x], result)
    assert f(7.0) == np.exp(7.0) * 7
    assert f(99.0) == -1.0


def test_a_sunk_graph_is_sound_and_sinks_no_further() -> None:
    c, x, y = T.bscalar("c"), T.dmatrix("x"), T.dvector("y")
    inner = graphc.ifelse(c > 3, T.dot(x, y).sum(), T.exp(y).sum())
    z = graphc.ifelse(c > 1, inner * 2, inner + T.log(x).sum())
    gradients = grad(z, [x, y])
    once = sink_into_branches([z, *gradients])
    verify(Graph((c, x, y), tuple(once)))
    assert print_graph(Graph((c, x, y), tuple(sink_into_branches(once)))) == print_graph(Graph((c, x, y), tuple(once)))
    assert all(one is two for one, two in zip(once, sink_into_branches(once), strict=True))


def test_the_text_reads_back(function: Any) -> None:
    c, x = T.bscalar("c"), T.dvector("x")
    f = function([c, x], graphc.ifelse(c, T.exp(x).sum(), x.sum()))
    assert print_graph(graphc.parse_graph(f.text)) == f.text


# --- JAX's form -------------------------------------------------------------------------------------------------------


def test_cond(function: Any) -> None:
    c, x = T.bscalar("c"), T.dvector("x")
    f = function([c, x], graphc.cond(c, lambda v, k: v * k, lambda v, k: v + k, x, 3.0))
    np.testing.assert_array_equal(f(1, [1.0, 2.0]), [3.0, 6.0])
    np.testing.assert_array_equal(f(0, [1.0, 2.0]), [4.0, 5.0])


def test_switch_case(function: Any) -> None:
    k, x = T.iscalar("k"), T.dscalar("x")
    branches = [lambda v: v + 1, lambda v: v * 2, T.sqr, lambda v: -v, T.exp]
    f = function([k, x], graphc.switch_case(k, branches, x))
    for number, wanted in zip((-3, 0, 1, 2, 3, 4, 9), (4, 4, 6, 9, -3, np.exp(3), np.exp(3)), strict=True):
        assert f(number, 3.0) == wanted
    with pytest.raises(GraphTypeError, match="must be an integer"):
        graphc.switch_case(x, branches, x)
    with pytest.raises(GraphValueError, match="no branches"):
        graphc.switch_case(k, [], x)


# --- derivatives ------------------------------------------------------------------------------------------------------


def both(c: Node, x: Node, w: Node) -> tuple[Node, Node]:
    """A cost through branches, and the same through where()."""
    h = T.tanh(T.dot(w, x))
    one, two = T.exp(h).sum() * x[0], (h * x.sum()).sum() + T.sqr(w).sum()
    return graphc.ifelse(c, one, two), T.where(c, one, two)


@pytest.mark.slow
def test_derivatives_to_second_order(function: Any) -> None:
    c, x, w, v = T.bscalar("c"), T.dvector("x"), T.dmatrix("w"), T.dvector("v")
    results = []
    for cost in both(T.neq(c, 0), x, w):
        gx, gw = grad(cost, [x, w])
        second = grad(T.sqr(gw).sum() + (gx * v).sum(), [x, w])
        results.append([cost, gx, gw, *second, hessian_vector_product(cost, x, v), jvp(cost, x, v)])
    lazy, eager = (function([c, x, w, v], result) for result in results)
    rng = np.random.default_rng(1)
    values = rng.normal(size=3), rng.normal(size=(4, 3)), rng.normal(size=3)
    for holds in (0, 1):
        for got, wanted in zip(lazy(holds, *values), eager(holds, *values), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


def test_the_derivative_is_lazy_too(function: Any) -> None:
    (one, ones), (two, twos) = counted("lazy_derived"), counted("lazy_derived_too")
    c, x = T.bscalar("c"), T.dvector("x")
    f = function([c, x], grad(graphc.ifelse(c, T.exp(one(x)).sum(), T.sqr(two(x)).sum()), x))
    np.testing.assert_allclose(f(1, [0.5]), 2 * np.exp(1.0))
    assert not twos
    np.testing.assert_allclose(f(0, [0.5]), 4.0)
    assert len(ones) == 1


def test_the_branch_that_is_not_taken_makes_no_nan(function: Any) -> None:
    x = T.dvector("x")
    cost = graphc.ifelse(x[0] > 0, T.log(x).sum(), (x * 0.5).sum())
    f = function([x], [cost, grad(cost, x), grad(grad(cost, x)[0], x)])
    for got, wanted in zip(f([0.0, 0.0]), (0.0, [0.5, 0.5], [0.0, 0.0]), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_derivative_by_a_value_within_the_graph(function: Any) -> None:
    c, x = T.bscalar("c"), T.dvector("x")
    h = T.exp(x)
    cost = graphc.ifelse(c, T.sqr(h).sum(), x.sum())
    f = function([c, x], grad(cost, [h, x]))
    np.testing.assert_allclose(f(1, [0.5])[0], 2 * np.exp([0.5]))
    np.testing.assert_allclose(f(1, [0.5])[1], 2 * np.exp([1.0]))
    np.testing.assert_array_equal(f(0, [0.5]), [[0.0], [1.0]])


@pytest.mark.slow
def test_derivative_of_several_results_of_which_one_is_an_integer(function: Any) -> None:
    c, x = T.bscalar("c"), T.dvector("x")
    a, k, b = graphc.ifelse(c, [x * 2, T.argmax(x), x.sum()], [T.sqr(x), T.argmin(x), x[0]])
    f = function([c, x], [k, grad(a.sum() * b + x[k], x)])
    value = np.array([1.0, 3.0, 2.0])
    k_, g = f(1, value)
    assert k_ == 1
    np.testing.assert_allclose(g, 2 * 6 + 2 * 6 + np.array([0, 1.0, 0]))
    k_, g = f(0, value)
    np.testing.assert_allclose(g, 2 * value * 1.0 + np.array([14.0 + 1, 0, 0]))


@pytest.mark.slow
def test_a_condition_within_a_step_that_one_branch_alone_needs(function: Any) -> None:
    """It moves into that branch, and what the derivative keeps of each step is computed there too."""
    c, x, begin = T.dvector("c"), T.dvector("x"), T.constant(np.full(2, 0.5))

    def step(x: Any, h: Any) -> Any:
        return T.sin(ifelse(x > 0.3, begin, T.where(c * 2 > -0.7, begin + h, h)))

    cost = graphc.scan(step, x, begin)[0].sum()
    first = grad(cost, c, disconnected_inputs="ignore"), grad(cost, begin)
    values, s, slope = np.array([0.0, 0.0]), np.full(2, 0.5), np.ones(2)
    total = np.zeros(2)
    for _ in range(2):  # of what comes of begin in a step, and of the state
        slope = np.cos(0.5 + s) * (1 + slope)
        s = np.sin(0.5 + s)
        total = total + slope
    got = function([c, x], first)(np.ones(2), values)
    np.testing.assert_allclose(got[0], 0)
    np.testing.assert_allclose(got[1], total, rtol=1e-12)


def test_a_size_that_a_condition_from_outside_chooses(function: Any) -> None:
    """Sizes that types do not tell to be equal: of the work of such a loop nothing is known before it runs."""
    c, begin = T.dscalar("c"), T.dvector("begin")
    rows, _ = graphc.scan(lambda h: T.sin(ifelse(c > 0.3, h, np.ones(2))), None, begin, n_steps=2)
    f = function([c, begin], rows)
    np.testing.assert_allclose(f(0.0, np.zeros(2)), np.full((2, 2), np.sin(1.0)))
    np.testing.assert_allclose(f(1.0, np.ones(2)), np.sin(np.array([1.0, np.sin(1.0)]))[:, None] * np.ones(2))


@pytest.mark.slow
def test_second_derivatives_of_a_size_that_a_step_chooses(function: Any) -> None:
    """What has such a size is not kept."""
    x, begin = T.dvector("x"), T.dvector("begin")
    two = T.constant(np.full(2, 0.5))
    rows, _ = graphc.scan(lambda x, h: two + T.sin(ifelse(x > 0.3, two, h)), x, begin)
    (product,) = graphc.Rop(grad(T.sqr(rows).sum(), [begin]), [begin], [T.ones_like(begin)])
    s = np.array([0.2, 0.4])
    # One step: the cost is (0.5 + sin s)**2.
    wanted = 2 * np.cos(s) ** 2 - 2 * (0.5 + np.sin(s)) * np.sin(s)
    np.testing.assert_allclose(function([x, begin], product)(np.zeros(1), s), wanted, rtol=1e-12)
    second = grad(grad(T.sqr(rows).sum(), begin).sum(), begin)
    np.testing.assert_allclose(function([x, begin], second)(np.zeros(1), s), wanted, rtol=1e-12)


@pytest.mark.slow
def test_a_step_that_chooses_among_values_of_which_no_type_tells_the_size(function: Any) -> None:
    """They must be of one size, as what is computed from them and stacked is; where they are not, it is said."""
    x, h0, w = T.dvector("x"), T.dvector("h0"), T.dmatrix("w")
    first = T.tanh(ifelse(T.gt(x[0], 0), h0, T.dot(h0, w)))  # outside of a loop sizes may differ

    def step(x: Any, h: Any) -> Any:
        new = T.tanh(ifelse(x > 0, h * x, T.dot(h, w)))
        return new, T.sin(ifelse(x > 0.5, w.sum(axis=0), ifelse(w.sum() > 0, h, w[0])))

    rows, others = graphc.scan(step, x, [h0, None])[0]
    f = function([x, h0, w], [rows, others, grad(rows.sum(), h0)])
    values, state = np.array([0.3, -1.0, 0.7]), np.array([0.5, -0.2])
    matrix = np.array([[0.6, 0.1], [-0.4, 0.9]])

    def states(h: Any) -> list[Any]:
        found = []
        for value in values:
            h = np.tanh(h * value if value > 0 else h @ matrix)
            found.append(h)
        return found

    wanted = states(state)
    inner = [state, wanted[0], matrix.sum(axis=0)]
    got = f(values, state, matrix)
    np.testing.assert_allclose(got[0], wanted, rtol=1e-12)
    np.testing.assert_allclose(got[1], np.sin(inner), rtol=1e-12)
    moved = [np.sum(states(state + 1e-30j * unit)).imag / 1e-30 for unit in np.eye(2)]
    np.testing.assert_allclose(got[2], moved, rtol=1e-12)
    with pytest.raises(ShapeError):
        f(values, state, np.ones((2, 3)))
    assert function([x, h0, w], first)(-values, state, np.ones((2, 3))).shape == (3,)


@pytest.mark.slow
def test_the_cotangent_of_an_element_beside_what_a_step_chooses(function: Any) -> None:
    """It has the size of the element, though another that must be equal is known in the step only."""
    x, c, begin = T.dmatrix("x"), T.dvector("c"), T.dscalar("begin")

    def step(x: Any, h: Any) -> Any:
        return h + T.sin(T.where(ifelse(h > 0, x, c) > 0.45, x * x, c)).sum()

    cost = graphc.scan(step, x, begin)[0][-1]
    rows, others = np.array([[0.5, 0.1], [0.2, 0.7]]), np.array([0.6, 0.3])
    got = function([x, c, begin], grad(cost, [x, c]))(rows, others, 1.0)
    chosen = rows > 0.45
    np.testing.assert_allclose(got[0], np.where(chosen, 2 * rows * np.cos(rows**2), 0), rtol=1e-12)
    np.testing.assert_allclose(got[1], np.where(chosen, 0, np.cos(others)).sum(axis=0), rtol=1e-12)


def test_derivative_where_sizes_differ(function: Any) -> None:
    c, x, y = T.bscalar("c"), T.dvector("x"), T.dvector("y")
    z = graphc.ifelse(c, T.exp(x), y * 2)
    f = function([c, x, y], grad(T.sqr(z).sum(), [x, y]))
    gx, gy = f(1, [0.5, 1.0], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(gx, 2 * np.exp([1.0, 2.0]))
    np.testing.assert_array_equal(gy, [0.0, 0.0, 0.0])
    gx, gy = f(0, [0.5, 1.0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(gx, [0.0, 0.0])
    np.testing.assert_array_equal(gy, [8.0, 16.0, 24.0])


# --- loops ------------------------------------------------------------------------------------------------------------


def test_a_branch_in_every_step(function: Any) -> None:
    (one, ones), (two, twos) = counted("lazy_step_one"), counted("lazy_step_two")
    x, s0 = T.dvector("x"), T.dscalar("s0")
    states, _ = graphc.scan(lambda e, s: graphc.ifelse(e > 0, one(s) + e, two(s) * e), [x], [s0])
    f = function([x, s0], states)
    value, wanted = 0.5, []
    for e in (1.0, -1.0, 2.0, 3.0, 0.0):
        value = 2 * value + e if e > 0 else 2 * value * e
        wanted.append(value)
    np.testing.assert_array_equal(f([1.0, -1.0, 2.0, 3.0, 0.0], 0.5), wanted)
    assert (len(ones), len(twos)) == (3, 2)
    assert f(np.zeros(0), 0.5).shape == (0,)


@pytest.mark.slow
def test_derivatives_through_a_branch_in_every_step(function: Any) -> None:
    x, s0, w = T.dvector("x"), T.dvector("s0"), T.dmatrix("w")

    def cost(choose: Any) -> Node:
        def step(e: Node, s: Node) -> Node:
            return as_node(choose(e > 0, T.tanh(T.dot(w, s)) * e, s - 0.1 * T.sqr(s) * w.sum()))

        states, _ = graphc.scan(step, [x], [s0])
        return T.sqr(states).sum()

    results = []
    for choose in (graphc.ifelse, T.where):
        first = grad(cost(choose), [x, s0, w])
        results.append([*first, *grad(sum((T.sqr(g).sum() for g in first), T.constant(0.0)), [x, s0, w])])
    lazy, eager = (function([x, s0, w], result) for result in results)
    rng = np.random.default_rng(2)
    values = rng.normal(size=5), rng.normal(size=3), rng.normal(size=(3, 3))
    for got, wanted in zip(lazy(*values), eager(*values), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def test_a_loop_within_a_branch(function: Any) -> None:
    one, ones = counted("lazy_loop")
    c, x, n = T.bscalar("c"), T.dscalar("x"), T.lscalar("n")
    states, _ = graphc.scan(lambda s: one(s) + x, outputs_info=[x], n_steps=n)
    cost = graphc.ifelse(c, states[-1], x)
    f = function([c, x, n], [cost, grad(cost, x)])
    assert f(0, 1.0, 3) == [1.0, 1.0]
    assert not ones
    assert f(1, 1.0, 3) == [15.0, 15.0]
    assert f(0, 1.0, 0) == [1.0, 1.0]  # of no states there is no last one
    with pytest.raises(IndexOutOfBounds):
        f(1, 1.0, 0)


@pytest.mark.slow
def test_a_loop_in_a_branch_in_a_loop(function: Any) -> None:
    x, k = T.dvector("x"), T.lscalar("k")

    def step(e: Node, s: Node) -> Node:
        powers, _ = graphc.scan(lambda p: p * e, outputs_info=[s], n_steps=k)
        return as_node(graphc.ifelse(e > 1, powers[-1], s + e))

    states, _ = graphc.scan(step, [x], [T.constant(1.0)])
    f = function([x, k], [states, grad(states.sum(), x)])
    value = np.array([0.5, 2.0, -1.0, 3.0])
    got, slope = f(value, 2)
    np.testing.assert_allclose(got, [1.5, 6.0, 5.0, 45.0])
    for place in range(4):
        up, down = value.copy(), value.copy()
        up[place] += 1e-6
        down[place] -= 1e-6
        np.testing.assert_allclose(slope[place], (f(up, 2)[0].sum() - f(down, 2)[0].sum()) / 2e-6, rtol=1e-6)


def test_a_size_that_a_branch_chooses_in_a_loop_in_a_loop(function: Any) -> None:
    n, a, x, y = T.lscalar("n"), T.dscalar("a"), T.dvector("x"), T.dvector("y")

    def step(state: Any) -> Any:
        return T.tanh(graphc.scan(lambda s: s + ifelse(a > 0, x * state, y).sum(), None, state, n_steps=n)[0][-1])

    call = function([a, x, y, n], graphc.scan(step, None, T.constant(0.5), n_steps=n)[0][-1])
    for sign, args in ((1, np.array([0.5, 0.25])), (-1, np.array([0.1]))):
        state = 0.5
        for _ in range(3):
            state = np.tanh(state + 3 * (args * (state if sign > 0 else 1)).sum())
        np.testing.assert_allclose(call(sign, [0.5, 0.25], [0.1], 3), state, rtol=1e-14)


@pytest.mark.slow
def test_a_state_whose_size_a_branch_chooses(function: Any) -> None:
    """It keeps its size, however it is made of what the branch gives; another one is an error where it comes."""
    m, b, y = T.dvector("m"), T.dvector("b"), T.dvector("y")
    rows, _ = graphc.scan(lambda yt, m: T.tanh(ifelse(yt > 0, m, b)), y, m)
    call = function([y, m, b], [rows, *grad(rows.sum(), [m, b])])
    got, by_m, by_b = call([1.0, -1.0, 1.0], [0.5, 0.25], [0.0, 0.3])
    expected = [np.tanh([0.5, 0.25]), np.tanh([0.0, 0.3]), np.tanh(np.tanh([0.0, 0.3]))]
    np.testing.assert_allclose(got, expected, rtol=1e-14)
    np.testing.assert_allclose(by_m, 1 - got[0] ** 2, rtol=1e-14)
    np.testing.assert_allclose(by_b, (1 - got[1] ** 2) * (1 + 1 - got[2] ** 2), rtol=1e-14)
    call([1.0, 1.0], [0.5, 0.25], [0.0, 0.3, 0.4])
    with pytest.raises(ShapeError, match=r"the size of tanh.* changes from step to step"):
        call([1.0, -1.0], [0.5, 0.25], [0.0, 0.3, 0.4])


@pytest.mark.slow
def test_a_result_that_only_another_branch_needs(function: Any) -> None:
    c, d, x = T.bscalar("c"), T.bscalar("d"), T.dvector("x")
    one, two = graphc.ifelse(c, [x, T.exp(x)], [2 * x, T.log(x)])
    f = function([c, d, x], one + graphc.ifelse(d, two, x))
    for holds in (0, 1):
        first, second = ([1.0], np.exp([1.0])) if holds else ([2.0], [0.0])
        np.testing.assert_allclose(f(holds, 1, [1.0]), np.add(first, second))
        np.testing.assert_allclose(f(holds, 0, [1.0]), np.add(first, 1.0))
    states, _ = graphc.scan(lambda s, t: [s + 1, t * 2], outputs_info=[x, x], n_steps=3)
    f = function([d, x], states[0][-1] + graphc.ifelse(d, states[1][-1], x))
    np.testing.assert_array_equal(f(1, [1.0]), [12.0])
    np.testing.assert_array_equal(f(0, [1.0]), [5.0])


def test_branches_of_one_condition_are_joined(function: Any) -> None:
    one, ones = counted("lazy_joined")
    c, x, y = T.bscalar("c"), T.dvector("x"), T.dvector("y")
    h = one(x)
    z = graphc.ifelse(c, h, y)
    f = function([c, x, y], [z, graphc.ifelse(c, h + 1, x), graphc.ifelse(c, z * 2, x)])
    assert [value[0] for value in f(0, [1.0], [3.0])] == [3.0, 1.0, 1.0]
    assert not ones
    assert [value[0] for value in f(1, [1.0], [3.0])] == [2.0, 3.0, 4.0]
    assert len(ones) == 1
    assert f.text.count(" = cond(") == 2


def test_results_that_nobody_needs_go(function: Any) -> None:
    one, ones = counted("lazy_unused")
    c, x = T.bscalar("c"), T.dvector("x")
    first, _ = graphc.ifelse(c, [x, one(x)], [x + 1, one(x)])
    f = function([c, x], first)
    f(1, [1.0])
    assert not ones


@pytest.mark.slow
def test_updates_in_place(function: Any) -> None:
    c, i, x = T.bscalar("c"), T.lvector("i"), T.dvector("x")
    s, t, n = (graphc.shared(np.arange(3.0), name="s"), graphc.shared(1.0, name="t"), graphc.shared(2, name="n"))
    new = [s[::-1] + x[i].sum() * t, t + s[0] + n, n + 1]
    chosen = graphc.ifelse(c, new, [s, t, n])
    f = function([c, i, x], [s.sum(), t + n], updates=list(zip((s, t, n), chosen, strict=True)))
    wanted_s, wanted_t, wanted_n = np.arange(3.0), 1.0, 2
    for holds in (1, 0, 1, 1):
        total, other = f(holds, [0, 1, 1], [0.5, 1.5])
        assert (total, other) == (wanted_s.sum(), wanted_t + wanted_n)
        if holds:
            wanted_s, wanted_t, wanted_n = (
                wanted_s[::-1] + 3.5 * wanted_t,
                wanted_t + wanted_s[0] + wanted_n,
                wanted_n + 1,
            )
        np.testing.assert_array_equal(s.get_value(), wanted_s)
        assert [t.get_value(), n.get_value()] == [wanted_t, wanted_n]
    with pytest.raises(IndexOutOfBounds):
        f(1, [0, 1, 2], [0.5, 1.5])
    np.testing.assert_array_equal(s.get_value(), wanted_s)
    assert [t.get_value(), n.get_value()] == [wanted_t, wanted_n]


@pytest.mark.slow
def test_a_call_that_fails_in_a_branch_leaves_shared_variables_alone(function: Any) -> None:
    c, i, x = T.bscalar("c"), T.lvector("i"), T.dvector("x")
    s, t = graphc.shared(np.zeros(2), name="s"), graphc.shared(np.zeros(2), name="t")
    states, _ = graphc.scan(lambda k, v: v + x[k], [i], [s])
    f = function([c, i, x], graphc.ifelse(c, x[i].sum(), x.sum()), updates=[(s, s + 1), (t, states[-1])])
    with pytest.raises(IndexOutOfBounds):
        f(1, [0, 1, 9], [1.0, 2.0])
    assert not s.get_value().any() and not t.get_value().any()


def test_only_what_changes_is_written() -> None:
    c, s = T.bscalar("c"), graphc.shared(np.zeros(5), name="s")
    f = graphc.function([c], [], updates=[(s, graphc.ifelse(c, s, T.sqrt(s) + 1))], mode="python")
    assert "else:" not in f.source
    assert "temporary" not in f.explain()
    f(1)
    assert not s.get_value().any()
    f(0)
    np.testing.assert_array_equal(s.get_value(), np.ones(5))


def test_views_of_a_variable_that_its_own_branch_updates(function: Any) -> None:
    c, s = T.bscalar("c"), graphc.shared(np.arange(6.0).reshape(2, 3), name="s")
    flat = s.reshape((6,))
    new = graphc.ifelse(c, s + flat[::-1].reshape((2, 3)) + T.outer(s[:, 0], s[0]), s.T.reshape((2, 3)))
    f = function([c], flat.sum(), updates=[(s, new)])
    wanted = np.arange(6.0).reshape(2, 3)
    for holds in (1, 0, 0, 1):
        f(holds)
        if holds:
            wanted = wanted + wanted.ravel()[::-1].reshape(2, 3) + np.outer(wanted[:, 0], wanted[0])
        else:
            wanted = wanted.T.reshape(2, 3)
        np.testing.assert_array_equal(s.get_value(), wanted)


def test_a_profile_of_a_function_without_loops() -> None:
    c, x = T.bscalar("c"), T.dvector("x")
    f = graphc.function([c, x], graphc.ifelse(c, T.exp(x), T.sin(x)), profile=True)
    f(1, [1.0])
    assert f.profile is not None and f.profile.calls == 1
