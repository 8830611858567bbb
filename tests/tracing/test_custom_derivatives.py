"""Derivatives that the program gives: examples of textbooks, against formulas and differences, alone and composed."""

from __future__ import annotations

import pickle
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
import graphc.tensor as T
from graphc import lax
from graphc.errors import GradientError, GraphTypeError, GraphValueError, NullTypeGradError


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Iterator[str]:
    with graphc.options.change(mode=request.param):
        yield request.param


X = np.array([-1.5, 0.3, 2.0])

# --- textbook examples ------------------------------------------------------------------------------------------------


@graphc.custom_jvp
def log1pexp(x: Any) -> Any:
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_a_derivative_that_does_not_overflow() -> None:
    with np.errstate(over="ignore"):
        assert graphc.grad(log1pexp)(1000.0) == 1.0
    npt.assert_allclose(log1pexp(X), np.log1p(np.exp(X)), rtol=1e-13)
    npt.assert_allclose(graphc.grad(log1pexp)(3.0), logistic(3.0), rtol=1e-13)
    npt.assert_allclose(graphc.vmap(graphc.jit(graphc.grad(log1pexp)))(X), logistic(X), rtol=1e-13)
    slope = logistic(X) * (1 - logistic(X))
    npt.assert_allclose(graphc.vmap(graphc.grad(graphc.grad(log1pexp)))(X), slope, rtol=1e-12)
    npt.assert_allclose(np.diag(graphc.jacfwd(graphc.grad(lambda x: log1pexp(x).sum()))(X)), slope, rtol=1e-12)
    npt.assert_allclose(graphc.jvp(log1pexp, (X,), (2 * np.ones(3),))[1], 2 * logistic(X), rtol=1e-13)


def test_a_derivative_at_the_border_of_the_domain() -> None:
    @graphc.custom_jvp
    def f(x: Any) -> Any:
        return x / (1 + jnp.sqrt(x))

    @f.defjvp
    def slope(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), ((jnp.sqrt(x) + 2) / (2 * (jnp.sqrt(x) + 1) ** 2)) * t

    assert graphc.grad(f)(0.0) == 1.0
    npt.assert_allclose(graphc.grad(f)(4.0), 4 / 18, rtol=1e-14)


@partial(graphc.custom_vjp, nondiff_argnums=(0, 1))
def clip_gradient(low: Any, high: Any, x: Any) -> Any:
    return x


clip_gradient.defvjp(lambda low, high, x: (x, None), lambda low, high, kept, g: (jnp.clip(g, low, high),))


def test_a_clipped_gradient() -> None:
    t = np.linspace(0, 10, 5)
    npt.assert_allclose(graphc.vmap(graphc.grad(jnp.sin))(t), np.cos(t), rtol=1e-14)
    clipped = graphc.grad(lambda x: jnp.sin(clip_gradient(-0.75, 0.75, x)))
    npt.assert_allclose(graphc.vmap(clipped)(t), np.clip(np.cos(t), -0.75, 0.75), rtol=1e-14)
    npt.assert_array_equal(clip_gradient(-1.0, 1.0, X), X)
    low = np.array(-0.1)  # an array is no static value, and has no derivative all the same
    assert graphc.jit(graphc.grad(lambda x, low: clip_gradient(low, 0.1, 5.0 * x)))(1.0, low) == 0.5
    with pytest.raises(NullTypeGradError, match=r"clip_gradient.*nondiff_argnums"):
        graphc.grad(lambda low: clip_gradient(low, 0.1, 2.0 * low))(low)


@partial(graphc.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f: Any, a: Any, guess: Any) -> Any:
    def is_far(carry: Any) -> Any:
        before, x = carry
        return jnp.abs(before - x) > 1e-12

    return lax.while_loop(is_far, lambda carry: (carry[1], f(a, carry[1])), (guess, f(a, guess)))[1]


def fixed_point_fwd(f: Any, a: Any, guess: Any) -> Any:
    found = fixed_point(f, a, guess)
    return found, (a, found)


def fixed_point_bwd(f: Any, kept: Any, g: Any) -> Any:
    a, x = kept
    _, pull_a = graphc.vjp(lambda a: f(a, x), a)
    step = partial(backward_step, f)
    (a_bar,) = pull_a(fixed_point(step, (a, x, g), g))
    return a_bar, jnp.zeros_like(x)


def backward_step(f: Any, packed: Any, u: Any) -> Any:
    a, x, g = packed
    _, pull_x = graphc.vjp(lambda x: f(a, x), x)
    return g + pull_x(u)[0]


fixed_point.defvjp(fixed_point_fwd, fixed_point_bwd)


def newton_sqrt(a: Any) -> Any:
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)


def test_the_derivative_of_a_fixed_point() -> None:
    assert newton_sqrt(2.0) == pytest.approx(np.sqrt(2.0), rel=1e-14)
    assert graphc.grad(newton_sqrt)(2.0) == pytest.approx(0.5 / np.sqrt(2.0), rel=1e-12)
    assert graphc.grad(graphc.grad(newton_sqrt))(2.0) == pytest.approx(-0.25 * 2.0**-1.5, rel=1e-10)
    a = np.array([1.0, 2.0, 9.0])
    npt.assert_allclose(graphc.vmap(graphc.grad(newton_sqrt))(a), 0.5 / np.sqrt(a), rtol=1e-12)


def test_a_derivative_by_each_argument() -> None:
    @graphc.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    f.defjvps(lambda t, value, x, y: jnp.cos(x) * t * y, lambda t, value, x, y: jnp.sin(x) * t)
    slopes = graphc.grad(f, argnums=(0, 1))(2.0, 3.0)
    npt.assert_allclose(slopes, (3 * np.cos(2.0), np.sin(2.0)), rtol=1e-14)
    f.defjvps(lambda t, value, x, y: value * t, None)
    npt.assert_allclose(graphc.grad(f, argnums=(0, 1))(2.0, 3.0), (3 * np.sin(2.0), 0.0), rtol=1e-14)


def test_an_argument_that_is_left_out_has_a_cotangent_too() -> None:
    @graphc.custom_vjp
    def f(x: Any, scale: Any = 2.0) -> Any:
        return x * scale

    f.defvjp(lambda x, scale=2.0: (f(x, scale), (x, scale)), lambda kept, g: (g * kept[1], g * kept[0]))
    calls = [f, lambda x: f(x=x), lambda x: f(x, 2.0), lambda x: f(x, scale=2.0)]
    assert [graphc.grad(call)(3.0) for call in calls] == [2.0] * 4
    assert graphc.grad(f, argnums=1)(3.0, 5.0) == 3.0

    g = graphc.custom_jvp(lambda x, n=3: x**n)
    g.defjvp(lambda primals, tangents: (g(*primals), tangents[0] * 3 * primals[0] ** 2))
    assert graphc.grad(g)(2.0) == graphc.vmap(graphc.grad(g))(np.array([2.0]))[0] == 12.0


Point = namedtuple("Point", ["x", "y"])


def test_trees_of_arguments_and_results() -> None:
    @graphc.custom_vjp
    def f(point: Any, scale: Any) -> Any:
        return {"a": scale * point.x**2, "b": (jnp.cos(point.x), jnp.sin(point.y))}

    def fwd(point: Any, scale: Any) -> Any:
        return f(point, scale), point

    def bwd(point: Any, g: Any) -> Any:
        assert set(g) == {"a", "b"} and isinstance(g["b"], tuple)
        return Point(100 * g["a"] + g["b"][0], 10 * g["b"][1] * point.y), None

    f.defvjp(fwd, bwd)

    def total(point: Any, scale: Any) -> Any:
        values = f(point, scale)
        return values["a"] + 2 * values["b"][0] + 3 * values["b"][1]

    slopes = graphc.grad(total, argnums=(0, 1))(Point(1.0, 2.0), 5.0)
    assert slopes == (Point(102.0, 60.0), 0.0)
    assert graphc.grad(lambda p: f(p, 1.0)["a"])(Point(1.0, 2.0)) == Point(100.0, 0.0)


def test_a_function_as_an_argument() -> None:
    @partial(graphc.custom_jvp, nondiff_argnums=(0,))
    def app(f: Any, x: Any) -> Any:
        return f(x)

    @app.defjvp
    def app_jvp(f: Any, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), 2.0 * t

    assert app(lambda x: x**3, 3.0) == 27.0
    assert graphc.grad(lambda x: app(lambda y: y**3, x))(3.0) == 2.0
    named = graphc.custom_jvp(lambda how, x: x if how == "same" else -x, nondiff_argnames="how")
    named.defjvp(lambda how, primals, tangents: (named(how, *primals), 7.0 * tangents[0]))
    assert named("same", 3.0) == 3.0 and named(how="turned", x=3.0) == -3.0
    assert graphc.grad(lambda x: named("turned", x))(1.0) == 7.0


# --- within loops, branches and batches -------------------------------------------------------------------------------


@graphc.custom_vjp
def tripled(x: Any, y: Any) -> Any:
    """x * y, with three times its derivative."""
    return x * y


tripled.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, g: (3 * g * kept[1], 3 * g * kept[0]))


def test_derivatives_within_loops_and_branches() -> None:
    def looped(x: Any, xs: Any) -> Any:
        return lax.scan(lambda c, e: (tripled(c, e), c), x, xs)[0]

    xs = np.array([1.1, 0.7, 1.3])
    by_x, by_xs = graphc.grad(looped, argnums=(0, 1))(2.0, xs)
    assert by_x == pytest.approx(27 * xs.prod(), rel=1e-14)
    npt.assert_allclose(by_xs, 2 * xs.prod() / xs * [27, 9, 3], rtol=1e-13)
    rows = graphc.vmap(graphc.grad(looped), in_axes=(0, None))(X, xs)
    npt.assert_allclose(rows, np.full(3, 27 * xs.prod()), rtol=1e-14)

    def branched(x: Any) -> Any:
        return lax.cond(x > 0, lambda x: tripled(x, x), lambda x: -x, x)

    npt.assert_allclose([graphc.grad(branched)(x) for x in X], np.where(X > 0, 6 * X, -1.0), rtol=1e-14)
    npt.assert_allclose(graphc.vmap(graphc.grad(branched))(X), np.where(X > 0, 6 * X, -1.0), rtol=1e-14)
    repeated = graphc.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: tripled(c, 1.0), x))
    assert repeated(2.0) == 27.0


def test_batches_of_derivatives() -> None:
    x, y = np.arange(1.0, 4.0), np.array([0.5, 2.0, 4.0])
    pairs = graphc.grad(lambda x, y: graphc.vmap(tripled)(x, y).sum(), argnums=(0, 1))(x, y)
    npt.assert_allclose(pairs, (3 * y, 3 * x), rtol=1e-14)
    shared = graphc.grad(lambda x, y: graphc.vmap(tripled, in_axes=(0, None))(x, y).sum(), argnums=(0, 1))
    npt.assert_allclose(shared(x, 2.0)[0], np.full(3, 6.0), rtol=1e-14)
    npt.assert_allclose(shared(x, 2.0)[1], 3 * x.sum(), rtol=1e-14)
    grid = graphc.vmap(graphc.vmap(graphc.grad(tripled), in_axes=(None, 0)), in_axes=(0, None))(x, y)
    npt.assert_allclose(grid, np.tile(3 * y, (3, 1)), rtol=1e-14)
    both = graphc.grad(
        lambda x, y: graphc.vmap(graphc.vmap(tripled, in_axes=(None, 0)), in_axes=(0, None))(x, y).sum(), argnums=1
    )
    npt.assert_allclose(both(x, y), np.full(3, 3 * x.sum()), rtol=1e-14)
    second = graphc.vmap(graphc.grad(graphc.grad(lambda x: tripled(x, x))))(x)
    npt.assert_allclose(second, np.full(3, 6.0), rtol=1e-14)
    unused = graphc.grad(lambda x: graphc.vmap(lambda e: tripled(2.0, e) * 0.0 + e)(x).sum())
    npt.assert_allclose(unused(x), np.ones(3), rtol=1e-14)


def test_second_derivatives_go_through_what_the_program_gives() -> None:
    @graphc.custom_vjp
    def sine(x: Any) -> Any:
        return jnp.sin(x)

    sine.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda cosine, g: (cosine * g,))
    for made in (
        graphc.hessian(lambda x: sine(x).sum()),
        graphc.jacfwd(graphc.grad(lambda x: sine(x).sum())),
        graphc.jacfwd(graphc.jacfwd(lambda x: sine(x).sum())),
    ):
        npt.assert_allclose(made(X), np.diag(-np.sin(X)), rtol=1e-12, atol=1e-15)
    third = graphc.grad(graphc.grad(graphc.grad(sine)))
    assert third(0.7) == pytest.approx(-np.cos(0.7), rel=1e-12)


def test_tensors_and_theanos_derivatives() -> None:
    x = T.dvector("x")
    value = tripled(x, x * x)
    slope = graphc.function([x], graphc.grad(value.sum(), x))
    npt.assert_allclose(slope(X), 9 * X**2, rtol=1e-13)
    npt.assert_allclose(graphc.function([x], graphc.Rop(value, x, T.ones_like(x)))(X), 9 * X**2, rtol=1e-13)


def test_a_function_with_a_derivative_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(tripled)) is tripled


def test_the_forward_loop_is_carried_out_once() -> None:
    """What `fwd` computes as the function does is one value: the derivative has two loops, the forward and its own."""
    with graphc.options.change(mode="compiled"):
        f = graphc.value_and_grad(newton_sqrt).function_for(2.0)
        loops = [line for line in f.explain().splitlines() if "steps over" in line]
    assert len(loops) == 2


# --- what is refused --------------------------------------------------------------------------------------------------


def given(bwd: Any, fwd: Any = None) -> Any:
    f = graphc.custom_vjp(lambda x, p: x * p["w"])
    f.defvjp(fwd or (lambda x, p: (x * p["w"], None)), bwd)
    return graphc.grad(lambda x, p: f(x, p).sum(), argnums=(0, 1))


def test_derivatives_that_do_not_fit() -> None:
    x, p = np.ones(3), {"w": 2.0}
    cases = [
        (lambda kept, g: g, None, "must return a tuple of 2"),
        (lambda kept, g: (g,), None, "must return a tuple of 2"),
        (lambda kept, g: (g, {"v": 1.0}), None, r"argument 1 what must be like \{'w': \*\}, not \{'v': \*\}"),
        (lambda kept, g: (g.sum(), None), None, r"for x must have the shape of x, float64\["),
        (lambda kept, g: (g, None), lambda x, p: x * p["w"], "must return the value and what"),
        (lambda kept, g: (g, None), lambda x, p: ((x, x), None), r"must be like \*, the result of the function"),
    ]
    for bwd, fwd, message in cases:
        with pytest.raises(GradientError, match=message):
            given(bwd, fwd)(x, p)
    with pytest.raises(GraphTypeError, match="has no derivative yet; give it by defvjp"):
        graphc.custom_vjp(lambda x: x)(1.0)
    with pytest.raises(GraphTypeError, match="has no derivative yet; give it by defjvp"):
        graphc.grad(graphc.custom_jvp(lambda x: x))(1.0)
    with pytest.raises(GraphTypeError, match="a function is to get a derivative, not 3"):
        graphc.custom_jvp(3)  # type: ignore[arg-type]
    with pytest.raises(GraphValueError, match="no parameter 'n'"):
        graphc.custom_vjp(lambda x: x, nondiff_argnames="n")


def test_tangents_that_are_not_linear() -> None:
    def made(slope: Any) -> Any:
        f = graphc.custom_jvp(lambda x: x * 2)
        f.defjvp(lambda primals, tangents: (primals[0] * 2, slope(*primals, *tangents)))
        return graphc.grad(lambda x: f(x).sum())

    npt.assert_array_equal(made(lambda x, t: x * t)(X), X)
    npt.assert_array_equal(made(lambda x, t: 0.0 * x)(X), np.zeros(3))
    with pytest.raises(GradientError, match="is not linear in the tangents"):
        made(lambda x, t: t * t)(X)
    with pytest.raises(GradientError, match="must have the shape of the value"):
        made(lambda x, t: t.sum())(X)


def test_forward_products_need_what_is_linear() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: graphc.jvp(lambda x: clip_gradient(-1.0, 1.0, x), (X,), (X,)),
        lambda: graphc.jacfwd(lambda x: clip_gradient(-1.0, 1.0, x))(X),
        lambda: graphc.hvp(lambda x: (clip_gradient(-1.0, 1.0, x) ** 3).sum(), (X,), (X,)),
    ]
    for call in calls:
        with pytest.raises(GradientError, match="is not linear in the cotangent, as forward products"):
            call()
    npt.assert_allclose(graphc.jvp(lambda x: tripled(x, x), (X,), (X,))[1], 6 * X**2, rtol=1e-13)
    assert graphc.jvp(newton_sqrt, (2.0,), (1.0,))[1] == pytest.approx(0.5 / np.sqrt(2.0), rel=1e-10)


def test_what_a_function_takes_from_around_it() -> None:
    """A constant is none of its arguments, and a tensor has no derivative that anybody has given."""

    def outer(w: Any, x: Any) -> Any:
        @graphc.custom_vjp
        def f(x: Any) -> Any:
            return w * x

        f.defvjp(lambda x: (w * x, None), lambda kept, g: (10 * w * g,))
        return f(x)

    assert graphc.grad(outer, argnums=1)(2.0, 3.0) == 20.0
    with pytest.raises(NullTypeGradError, match="which it takes from around it: make it an argument"):
        graphc.grad(outer)(2.0, 3.0)
    looped = graphc.grad(lambda x: lax.scan(lambda c, w: (outer(w, c), None), x, np.array([2.0, 3.0]))[0])
    assert looped(1.0) == 600.0


def test_value_and_derivative_of_one_call() -> None:
    @graphc.custom_gradient
    def scaled(x: Any, y: Any) -> Any:
        return x * y, lambda g: (10 * g * y, 20 * g)

    assert scaled(2.0, 3.0) == 6.0 and vars(scaled)["__name__"] == "scaled"
    assert graphc.grad(scaled, argnums=(0, 1))(2.0, 3.0) == (30.0, 20.0)
    assert graphc.grad(graphc.grad(scaled), argnums=1)(2.0, 3.0) == 10.0


@pytest.mark.parametrize("by", [graphc.custom_vjp, graphc.custom_jvp])
def test_calls_with_arrays_answer_questions_about_values(by: Any) -> None:
    def size(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    made = by(size)
    if by is graphc.custom_vjp:
        made.defvjp(lambda x: (size(x), None), lambda kept, g: (g,))
    else:
        made.defjvp(lambda primals, tangents: (size(*primals), tangents[0]))
    for x in (X, -X, X):
        npt.assert_array_equal(made(x), size(x))
    with pytest.raises(GraphTypeError, match="no truth value"):
        graphc.vmap(made)(np.ones((2, 3)))
    symbolic = graphc.custom_vjp(lambda x: T.sqr(T.constant(x)) if x > 0 else x)
    symbolic.defvjp(lambda x: (x, None), lambda kept, g: (g,))
    with pytest.raises(GraphTypeError, match="no truth value"):  # its result is a tensor
        symbolic(2.0)
