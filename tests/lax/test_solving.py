"""Solutions whose derivatives are those of the equation, not of the steps that found them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.numpy as jnp
from graphc import lax
from graphc.errors import GradientError


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Any:
    with graphc.options.change(mode=request.param):
        yield request.param


RNG = np.random.default_rng(2)
A = RNG.normal(size=(3, 3)) / 8 + np.eye(3)
B = RNG.normal(size=3)


def by_steps(matvec: Any, b: Any) -> Any:
    """Richardson's iteration, in a loop that ends when it may: no derivative goes through it."""

    def is_far(x: Any) -> Any:
        return jnp.abs(b - matvec(x)).max() > 1e-14

    return lax.while_loop(is_far, lambda x: x + (b - matvec(x)), b)


def solution(a: Any, b: Any) -> Any:
    return lax.custom_linear_solve(lambda v: a @ v, b, by_steps, by_steps)


def exact(a: Any, b: Any) -> Any:
    return jnp.linalg.solve(a, b)


def test_linear_equations() -> None:
    npt.assert_allclose(graphc.jit(solution)(A, B), np.linalg.solve(A, B), rtol=1e-12)

    def loss(f: Any) -> Any:
        return lambda a, b: (jnp.sin(f(a, b)) * jnp.arange(3.0)).sum()

    for made in (graphc.grad, graphc.jacfwd):
        found, wanted = (made(loss(f), argnums=(0, 1))(A, B) for f in (solution, exact))
        npt.assert_allclose(found[0], wanted[0], rtol=1e-9, atol=1e-11)
        npt.assert_allclose(found[1], wanted[1], rtol=1e-9, atol=1e-11)
    along = (RNG.normal(size=(3, 3)), RNG.normal(size=3))
    pair = [graphc.hvp(loss(f), (A, B), along) for f in (solution, exact)]
    npt.assert_allclose(pair[0], pair[1], rtol=1e-8, atol=1e-10)
    rows = RNG.normal(size=(4, 3))
    each = graphc.vmap(graphc.grad(lambda b: loss(solution)(A, b)))(rows)
    npt.assert_allclose(each, graphc.vmap(graphc.grad(lambda b: loss(exact)(A, b)))(rows), rtol=1e-9, atol=1e-11)


def test_symmetric_equations_and_what_else_a_solver_returns() -> None:
    s = A + A.T

    def solve(matvec: Any, b: Any) -> Any:
        x = jnp.linalg.solve(s, b["x"])
        return {"x": x}, jnp.abs(matvec({"x": x})["x"] - b["x"]).max()

    def f(scale: Any, b: Any) -> Any:
        found, rest = lax.custom_linear_solve(
            lambda v: {"x": scale * (s @ v["x"])}, {"x": b}, solve, symmetric=True, has_aux=True
        )
        return found["x"].sum(), rest

    slope, rest = graphc.grad(f, argnums=1, has_aux=True)(1.0, B)
    npt.assert_allclose(slope, np.linalg.solve(s, np.ones(3)), rtol=1e-11)
    assert rest < 1e-12
    by_scale, _ = graphc.grad(f, has_aux=True)(1.0, B)
    assert by_scale == pytest.approx(-np.linalg.solve(s, B).sum(), rel=1e-10)


def newton(f: Any, x: Any) -> Any:
    return lax.while_loop(lambda x: jnp.abs(f(x)) > 1e-13, lambda x: x - f(x) / graphc.grad(f)(x), x)


def scalar_solve(g: Any, y: Any) -> Any:
    return y / g(1.0)


def test_roots() -> None:
    def cube_root(a: Any, guess: Any = 1.0) -> Any:
        return lax.custom_root(lambda x: x**3 - a, guess, newton, scalar_solve)

    assert graphc.jit(cube_root)(27.0) == pytest.approx(3.0, rel=1e-12)
    assert graphc.grad(cube_root)(27.0) == pytest.approx(1 / 27, rel=1e-10)
    assert graphc.grad(graphc.grad(cube_root))(8.0) == pytest.approx(-2 / 9 * 8 ** (-5 / 3), rel=1e-9)
    assert graphc.jvp(cube_root, (8.0,), (2.0,))[1] == pytest.approx(2 / 12, rel=1e-10)
    assert graphc.grad(cube_root, argnums=1)(8.0, 1.5) == 0.0
    npt.assert_allclose(graphc.vmap(graphc.grad(cube_root))(np.array([1.0, 8.0])), [1 / 3, 1 / 12], rtol=1e-10)

    def system(p: Any) -> Any:
        """The x, y with x + y = p, x y = 1, and how far they are from it."""

        def f(z: Any) -> Any:
            return jnp.stack([z[0] + z[1] - p, z[0] * z[1] - 1.0])

        def solve(f: Any, z: Any) -> Any:
            z = lax.fori_loop(0, 30, lambda i, z: z - jnp.linalg.solve(graphc.jacfwd(f)(z), f(z)), z)
            return z, jnp.abs(f(z)).max()

        def tangent_solve(g: Any, y: Any) -> Any:
            return jnp.linalg.solve(graphc.jacfwd(g)(y), y)

        return lax.custom_root(f, jnp.array([3.0, 0.1]), solve, tangent_solve, has_aux=True)

    (slope, rest) = graphc.jacrev(system, has_aux=True)(3.0)
    root = np.sqrt(5.0)  # x = (p + sqrt(p^2 - 4)) / 2
    npt.assert_allclose(slope, [(1 + 3 / root) / 2, (1 - 3 / root) / 2], rtol=1e-9)
    assert rest < 1e-12


def test_solvers_that_do_not_fit() -> None:
    with pytest.raises(GradientError, match="needs transpose_solve, or symmetric=True"):
        graphc.grad(lambda b: lax.custom_linear_solve(lambda v: A @ v, b, by_steps).sum())(B)
    with pytest.raises(GradientError, match="must return what is like its argument"):
        graphc.jit(lambda b: lax.custom_linear_solve(lambda v: (v, v), b, by_steps))(B)
    with pytest.raises(GradientError, match=r"must return what is like \*, not \(\*, \*\)"):
        graphc.jit(lambda b: lax.custom_linear_solve(lambda v: v, b, lambda m, b: (b, b)))(B)
    with pytest.raises(GradientError, match="must return the solution and what else"):
        graphc.jit(lambda a: lax.custom_root(lambda x: x - a, a, lambda f, x: x, scalar_solve, has_aux=True))(1.0)
    bad = graphc.grad(lambda a: lax.custom_root(lambda x: x - a, a, newton, lambda g, y: y * y / g(1.0)))
    with pytest.raises(GradientError, match="is not linear in the right-hand side"):
        bad(1.0)
