"""The names of HIPS autograd: derivatives as it gives them, and its optimisers."""

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
from graphc import autograd as ag

X = np.array([0.3, -1.2, 2.0])


def cubes(x: Any, a: Any = 1.0) -> Any:
    return (a * x**3).sum()


def test_first_derivatives() -> None:
    npt.assert_allclose(ag.grad(cubes)(X, 2.0), 6 * X**2)
    npt.assert_allclose(ag.grad(cubes, 1)(X, 2.0), (X**3).sum())
    npt.assert_allclose(ag.grad_named(cubes, "a")(X, 2.0), (X**3).sum())
    npt.assert_allclose(ag.elementwise_grad(np.sin)(X), np.cos(X))
    npt.assert_allclose(ag.deriv(np.sin)(X), np.cos(X))
    npt.assert_allclose(ag.jacobian(lambda x: x**2)(X), np.diag(2 * X))
    value, slope = ag.value_and_grad(cubes)(X, 2.0)
    npt.assert_allclose(value, cubes(X, 2.0))
    npt.assert_allclose(slope, 6 * X**2)
    slope, aux = ag.grad_and_aux(lambda x: (cubes(x), x + 1))(X)
    npt.assert_allclose(slope, 3 * X**2)
    npt.assert_allclose(aux, X + 1)


def test_derivatives_of_derivatives() -> None:
    npt.assert_allclose(ag.elementwise_grad(ag.elementwise_grad(np.tanh))(X), -2 * np.tanh(X) / np.cosh(X) ** 2)
    npt.assert_allclose(ag.hessian(cubes)(X), np.diag(6 * X))
    for product in (ag.hessian_vector_product, ag.hessian_tensor_product):
        npt.assert_allclose(product(cubes)(X, 2.0, X), 12 * X * X)


def test_products() -> None:
    pull, value = ag.make_vjp(lambda a, x: a * x**2, 1)(2.0, X)
    npt.assert_allclose(value, 2 * X**2)
    npt.assert_allclose(pull(X), 4 * X * X)
    value, tangent = ag.make_jvp(lambda a, x: a * x**2, 1)(2.0, X)(X)
    npt.assert_allclose(value, 2 * X**2)
    npt.assert_allclose(tangent, 4 * X * X)
    product, slope = ag.make_hvp(cubes)(X)
    npt.assert_allclose(slope, 3 * X**2)
    npt.assert_allclose(product(X), 6 * X * X)
    npt.assert_allclose(ag.vector_jacobian_product(lambda x: x**2)(X, X), 2 * X * X)


def test_products_of_several_arguments_and_of_named_ones() -> None:
    def scaled(a: Any, x: Any, power: Any = 1) -> Any:
        return a * x**power

    pull, value = ag.make_vjp(scaled, [1, 0])(2.0, X, power=3)
    npt.assert_allclose(value, 2 * X**3)
    by_x, by_a = pull(X)
    npt.assert_allclose(by_x, 6 * X**3)
    npt.assert_allclose(by_a, (X**4).sum())
    npt.assert_allclose(ag.make_jvp(scaled, (0, 1))(2.0, X, power=3)((1.0, X))[1], 7 * X**3)
    npt.assert_allclose(ag.deriv(scaled, 1)(2.0, X, power=3), 6 * X**2)
    npt.assert_allclose(ag.hessian_vector_product(cubes)(X, X, a=2.0), 12 * X * X)
    npt.assert_allclose(ag.tensor_jacobian_product(lambda x, k: k * np.outer(x, X))(X, X, k=2.0), 2 * X[:, None] * X)
    npt.assert_allclose(ag.make_ggnvp(lambda k, x: k * x**2, f_argnum=1)(3.0, X)(X), 36 * X**3)
    weighed = ag.make_ggnvp(lambda x: x**2, lambda y: (y**3).sum())
    npt.assert_allclose(weighed(X)(X), 24 * X**5)
    npt.assert_allclose(ag.holomorphic_grad(lambda z: np.sum(z**3))(X + 1j), 3 * (X + 1j) ** 2)


def test_dicts_and_flat_vectors() -> None:
    slopes = ag.multigrad_dict(cubes)(X, a=2.0)
    npt.assert_allclose(slopes["x"], 6 * X**2)
    npt.assert_allclose(slopes["a"], (X**3).sum())
    vector, restore = ag.flatten({"a": X, "b": (1.0, X)})
    assert vector.shape == (7,)
    npt.assert_allclose(restore(vector)["b"][1], X)


@pytest.mark.parametrize(("optimise", "size"), [(ag.sgd, 0.3), (ag.rmsprop, 0.05), (ag.adam, 0.1)])
def test_optimisers(optimise: Any, size: float) -> None:
    slope, seen = ag.grad(lambda p, i: ((p["w"] - X) ** 2).sum() + p["b"] ** 2), list[int]()
    start = {"w": np.zeros(3), "b": 1.0}
    found = optimise(slope, start, lambda p, i, g: seen.append(i), num_iters=300, step_size=size)
    npt.assert_allclose(found["w"], X, atol=0.05)
    assert abs(found["b"]) < 0.05 and seen == [*range(300)]


def test_fixed_points() -> None:
    """The derivative is that of the exact solution, of any order."""

    def step(a: Any) -> Any:
        return lambda x: x - 0.05 * (x**2 - a)

    def root(a: Any) -> Any:
        return ag.fixed_point(step, a, 10.0, lambda x, y: abs(x - y), 1e-13)

    npt.assert_allclose(root(2.0), 2**0.5, rtol=1e-11)
    npt.assert_allclose(ag.grad(root)(2.0), 0.5 * 2**-0.5, rtol=1e-10)
    npt.assert_allclose(ag.grad(ag.grad(root))(2.0), -0.25 * 2**-1.5, rtol=1e-10)

    matrix = np.array([[0.2, 0.1], [-0.3, 0.4]])
    found = ag.jacobian(
        lambda a: ag.fixed_point(
            lambda a: lambda x: matrix @ x + a, a, np.zeros(2), lambda x, y: abs(x - y).max(), 1e-14
        )
    )(np.ones(2))
    npt.assert_allclose(found, np.linalg.inv(np.eye(2) - matrix), rtol=1e-12)


def test_derivatives_of_your_own() -> None:
    @ag.primitive
    def scaled(a: Any, x: Any) -> Any:
        return a * x

    ag.defvjp(scaled, lambda value, a, x: lambda g: a * x * g, argnums=(1,))  # not the derivative, so that it is seen
    assert ag.grad(scaled, 1)(2.0, 3.0) == 6.0
    assert ag.grad(scaled)(2.0, 3.0) == 0.0
    assert getattr(scaled, "__name__", "") == "scaled"


def test_a_derivative_in_forward_mode() -> None:
    @ag.primitive
    def shifted(x: Any, y: Any, axis: int, by: Any = 1) -> Any:
        return np.roll(x, by, axis) * y

    ag.defjvp(shifted, "same", lambda t, value, x, y, axis, by=1: 5 * t * np.roll(x, by, axis))  # five, to be seen
    square = np.stack([X, X**2])
    rolled = np.roll(square, 2, 1)
    slopes = ag.grad(lambda x, y: (square * shifted(x, y, 1, by=2)).sum(), (0, 1))(square, rolled)
    npt.assert_allclose(slopes[0], np.roll(square * rolled, -2, 1))
    npt.assert_allclose(slopes[1], 5 * square * rolled)
    npt.assert_array_equal(shifted(square, 2.0, 0), np.roll(square, 1, 0) * 2)
    ag.defvjp(shifted, None, lambda value, x, y, axis, by=1: lambda g: 7 * g, argnums=(0, 1))
    npt.assert_allclose(ag.grad(lambda y: shifted(square, y, 1).sum())(rolled), np.full((2, 3), 7.0))
    npt.assert_allclose(ag.grad(lambda x: shifted(x, rolled, 1).sum())(square), np.zeros((2, 3)))


def test_checks_of_derivatives() -> None:
    ag.check_grads(lambda x: np.sin(x) * x.sum(), order=2)(X)

    @ag.primitive
    def wrong(x: Any) -> Any:
        return x**2

    ag.defvjp(wrong, lambda value, x: lambda g: 3 * x * g)
    with pytest.raises(AssertionError):
        ag.check_grads(wrong, modes=["rev"], order=1)(X)


def test_functions_of_vectors() -> None:
    squares, restore, vector = ag.flatten_func(lambda p, k: {"a": k * p["a"] ** 2}, {"a": X})
    npt.assert_allclose(squares(vector, 2.0), 2 * X**2)
    npt.assert_allclose(restore(vector)["a"], X)


def _convolved(a: Any, b: Any, mode: str) -> Any:
    """The products of all pairs of elements, added up at the sums of their places."""
    whole = np.zeros([n + m - 1 for n, m in zip(a.shape, b.shape, strict=True)])
    for places in np.ndindex(b.shape):
        whole[tuple(slice(k, k + n) for k, n in zip(places, a.shape, strict=True))] += a * b[places]
    cuts = {
        "full": lambda n, m: slice(None),
        "same": lambda n, m: slice((m - 1) // 2, (m - 1) // 2 + n),
        "valid": lambda n, m: slice(min(n, m) - 1, max(n, m)),
    }
    return whole[tuple(cuts[mode](n, m) for n, m in zip(a.shape, b.shape, strict=True))]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [((5,), (3,)), ((3,), (5,)), ((4, 5), (2, 3))])
def test_convolutions_along_chosen_axes(mode: str, sizes: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=size) for size in sizes)
    if mode != "same" or a.size > b.size:
        npt.assert_allclose(ag.convolve(a, b, mode=mode), _convolved(a, b, mode))
    images, kernels = (rng.normal(size=(2, 3, *size)) for size in sizes)
    axes = [range(2, images.ndim)] * 2
    found = ag.convolve(images, kernels, axes=axes, dot_axes=([1], [1]), mode=mode)
    for i, j in np.ndindex(2, 2):
        whole = sum(ag.convolve(x, y, mode=mode) for x, y in zip(images[i], kernels[j], strict=True))
        npt.assert_allclose(found[i, j], whole)
    with graphc.options.change(mode="interpreted"):
        slopes = ag.grad(lambda x: (ag.convolve(x, b, mode=mode) ** 2).sum())(a)
    step = rng.normal(size=a.shape)
    values = [(ag.convolve(a + h * step, b, mode=mode) ** 2).sum() for h in (1e-6, -1e-6)]
    npt.assert_allclose((values[0] - values[1]) / 2e-6, (slopes * step).sum(), rtol=1e-5, atol=1e-8)


def test_names_of_tracers_say_what_stands_for_them() -> None:
    with pytest.raises(AttributeError, match=r"'trace': graphc.make_graph\(f\)\(x\) gives the graph as text"):
        ag.trace  # noqa: B018
    with pytest.raises(AttributeError, match=r"'Box': .*register_pytree_node takes classes that hold arrays"):
        ag.Box  # noqa: B018
    with pytest.raises(ValueError, match="'full', 'same' or 'valid', not 'half'"):
        ag.convolve(X, X, mode="half")
