"""A dozen models of the kinds that people differentiate: the same text on NumPy and under `grad`, compared.

Each model is a function of a module (NumPy, or `graphc.numpy`), parameters and data. Its gradient is compared with
differences of NumPy's values in a random direction; products of its second derivatives with differences of gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
import scipy.optimize

import graphc
import graphc.numpy as jnp
from graphc import lax, tree
from tests.support.thorough import some

RNG = np.random.default_rng(8)


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.slow)], autouse=True)
def each_mode(request: Any) -> Iterator[str]:
    with graphc.options.change(mode=request.param):
        yield request.param


def logsumexp(m: Any, x: Any, axis: int) -> Any:
    most = m.max(x, axis=axis, keepdims=True)
    return m.squeeze(most, axis) + m.log(m.sum(m.exp(x - most), axis=axis))


def sigmoid(m: Any, x: Any) -> Any:
    return 0.5 * (m.tanh(x / 2) + 1)


# --- models -----------------------------------------------------------------------------------------------------------

X = RNG.normal(size=(6, 3))
LABELS = np.array([0, 1, 1, 0, 1, 0])
NOISE = RNG.normal(size=(5, 4))


def logistic_regression(m: Any, w: Any) -> Any:
    p = sigmoid(m, X @ w)
    return -m.sum(m.log(p * LABELS + (1 - p) * (1 - LABELS)))


def perceptron(m: Any, layers: Any) -> Any:
    h = X
    for w, b in layers[:-1]:
        h = m.tanh(h @ w + b)
    w, b = layers[-1]
    scores = h @ w + b
    scores = scores - logsumexp(m, scores, 1)[:, None]
    return -m.mean(scores[np.arange(6), LABELS]) + 0.1 * sum(m.sum(w**2) for w, _ in layers)


def recurrent(m: Any, p: Any) -> Any:
    h, loss = m.zeros(4), 0.0
    for t in range(5):
        h = m.tanh(p["in"] @ X[t] + p["rec"] @ h + p["b"])
        loss = loss + (h[0] - X[t + 1, 0]) ** 2
    return loss


def lstm(m: Any, p: Any) -> Any:
    h, c = m.zeros(2), m.zeros(2)
    for t in range(4):
        z = m.concatenate([h, X[t]])
        forget, put, out = (sigmoid(m, p[name] @ z) for name in ("forget", "put", "out"))
        c = forget * c + put * m.tanh(p["change"] @ z)
        h = out * m.tanh(c)
    return m.sum(h**2) + m.sum(c)


def mixture(m: Any, p: Any) -> Any:
    """The log-likelihood of a mixture of two Gaussians in three dimensions."""
    parts = []
    for k in range(2):
        chol = m.tril(p["chol"][k], -1) + m.diag(m.exp(m.diagonal(p["chol"][k])))
        z = m.linalg.solve(chol, (X - p["mean"][k]).T)
        parts.append(p["log_weight"][k] - 0.5 * m.sum(z**2, axis=0) - m.sum(m.diagonal(p["chol"][k])))
    logs = p["log_weight"] - logsumexp(m, p["log_weight"], 0)
    return m.sum(logsumexp(m, m.stack(parts), 0)) + m.sum(logs)


def gaussian_process(m: Any, p: Any) -> Any:
    """The log of the marginal likelihood of data under a squared exponential kernel."""
    scale, noise = m.exp(p["log_scale"]), m.exp(p["log_noise"])
    apart = (X[:, None, :] - X[None, :, :]) / scale
    k = m.exp(p["log_size"]) * m.exp(-0.5 * m.sum(apart**2, axis=-1)) + noise * np.eye(6)
    y = X[:, 0] - p["mean"]
    _, logdet = m.linalg.slogdet(k)
    return -0.5 * (y @ m.linalg.solve(k, y)) - 0.5 * logdet


def variational(m: Any, p: Any) -> Any:
    """The lower bound of a banana-shaped posterior, with draws that are moved by mean and deviation."""
    z = p["mean"] + m.exp(p["log_std"]) * NOISE
    density = -0.5 * z[:, 0] ** 2 - 0.5 * ((z[:, 1] - z[:, 0] ** 2) / 0.5) ** 2 - 0.5 * m.sum(z[:, 2:] ** 2, axis=1)
    return m.mean(density) + m.sum(p["log_std"])


def rosenbrock(m: Any, x: Any) -> Any:
    return m.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def orbit(m: Any, start: Any) -> Any:
    """The end of an orbit after steps of Runge and Kutta."""

    def slope(s: Any) -> Any:
        r = m.sqrt(s[0] ** 2 + s[1] ** 2)
        return m.stack([s[2], s[3], -s[0] / r**3, -s[1] / r**3])

    s, dt = start, 0.1
    for _ in range(6):
        a = slope(s)
        b = slope(s + dt / 2 * a)
        c = slope(s + dt / 2 * b)
        s = s + dt / 6 * (a + 2 * b + 2 * c + slope(s + dt * c))
    return m.sum(s[:2] ** 2)


def fluid(m: Any, field: Any) -> Any:
    """Smoke in a periodic box, spread and carried by a flow whose divergence is taken away by Jacobi's iteration."""
    u, v, smoke = field["u"], field["v"], field["smoke"]
    for _ in range(2):
        div = m.roll(u, -1, 0) - m.roll(u, 1, 0) + m.roll(v, -1, 1) - m.roll(v, 1, 1)
        p = m.zeros((5, 5))
        for _ in range(3):
            p = (-div + m.roll(p, 1, 0) + m.roll(p, -1, 0) + m.roll(p, 1, 1) + m.roll(p, -1, 1)) / 4
        u, v = u - (m.roll(p, -1, 0) - m.roll(p, 1, 0)) / 2, v - (m.roll(p, -1, 1) - m.roll(p, 1, 1)) / 2
        smoke = smoke - 0.1 * (u * (m.roll(smoke, -1, 0) - smoke) + v * (m.roll(smoke, -1, 1) - smoke))
    return m.sum((smoke - 0.5) ** 2)


def attention(m: Any, p: Any) -> Any:
    q, k, v = (X @ p[name] for name in "qkv")
    scores = q @ k.T / m.sqrt(3.0)
    weights = m.exp(scores - m.max(scores, axis=1, keepdims=True))
    weights = m.where(np.tri(6, dtype=bool), weights, 0.0)
    return m.sum((weights / m.sum(weights, axis=1, keepdims=True) @ v) ** 2)


def spectrum(m: Any, a: Any) -> Any:
    """A function of the eigenvalues of a symmetric matrix, and of its first eigenvector, whatever its sign."""
    values, vectors = m.linalg.eigh(a + a.T)
    return m.sum(m.sin(values)) + m.abs(vectors[:, 0]) @ np.arange(1.0, 5.0)


def draws(*shape: int) -> Any:
    return RNG.normal(size=shape) / 2


MODELS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "logistic regression": (logistic_regression, draws(3)),
    "perceptron": (perceptron, [(draws(3, 4), draws(4)), (draws(4, 2), draws(2))]),
    "recurrent": (recurrent, {"in": draws(4, 3), "rec": draws(4, 4), "b": draws(4)}),
    "lstm": (lstm, {name: draws(2, 5) for name in ("forget", "put", "out", "change")}),
    "mixture": (mixture, {"log_weight": draws(2), "mean": draws(2, 3), "chol": draws(2, 3, 3)}),
    "gaussian process": (gaussian_process, {"log_scale": draws(3), "log_noise": -1.0, "log_size": 0.2, "mean": 0.1}),
    "variational": (variational, {"mean": draws(4), "log_std": draws(4)}),
    "rosenbrock": (rosenbrock, draws(5)),
    "orbit": (orbit, np.array([1.0, 0.1, -0.1, 0.9])),
    "fluid": (fluid, {"u": draws(5, 5), "v": draws(5, 5), "smoke": draws(5, 5)}),
    "attention": (attention, {name: draws(3, 3) for name in "qkv"}),
    "spectrum": (spectrum, draws(4, 4) + np.diag(np.arange(4.0))),
}


@pytest.mark.parametrize("name", some(MODELS))
def test_the_gradient_is_that_of_differences(name: str) -> None:
    model, params = MODELS[name]

    def loss(params: Any) -> Any:
        return model(jnp, params)

    value, slopes = graphc.value_and_grad(loss)(params)
    assert float(value) == pytest.approx(float(model(np, params)), rel=1e-11)
    direction = tree.map(lambda p: RNG.normal(size=np.shape(p)), params)

    def moved(step: float) -> Any:
        return tree.map(lambda p, d: p + step * d, params, direction)

    def quotient(f: Callable[[Any], Any], step: float) -> Any:
        ends = [f(moved(k * step)) for k in (-2, -1, 1, 2)]
        return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)

    along = tree.reduce(lambda a, b: a + b, tree.map(lambda g, d: np.sum(g * d), slopes, direction))
    wanted = quotient(lambda p: float(model(np, p)), 1e-3)
    assert along == pytest.approx(wanted, rel=1e-6, abs=1e-8)
    assert float(graphc.jvp(loss, (params,), (direction,))[1]) == pytest.approx(float(along), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("name", some(["logistic regression", "mixture", "attention", "rosenbrock"]))
def test_products_of_second_derivatives(name: str) -> None:
    model, params = MODELS[name]
    flat, unravel = tree.ravel_pytree(params)
    slope = graphc.grad(lambda flat: model(jnp, unravel(flat)))
    direction = RNG.normal(size=flat.shape)
    found = graphc.hvp(lambda flat: model(jnp, unravel(flat)), (flat,), (direction,))
    ends = [slope(flat + k * 1e-3 * direction) for k in (-2, -1, 1, 2)]
    npt.assert_allclose(found, (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / 12e-3, rtol=1e-6, atol=1e-6)
    npt.assert_allclose(
        graphc.hessian(lambda flat: model(jnp, unravel(flat)))(flat) @ direction, found, rtol=1e-9, atol=1e-9
    )


def test_an_optimiser_of_scipys_with_products_of_the_hessian() -> None:
    def f(x: Any) -> Any:
        return rosenbrock(jnp, x)

    value, slope = graphc.jit(f), graphc.grad(f)
    product = graphc.jit(lambda x, v: graphc.hvp(f, (x,), (v,)))
    found = scipy.optimize.minimize(
        lambda x: float(value(x)), np.zeros(4), jac=slope, hessp=product, method="Newton-CG", options={"xtol": 1e-10}
    )
    npt.assert_allclose(found.x, np.ones(4), rtol=1e-6)


def test_derivatives_of_every_order() -> None:
    """tanh, as it is written by hand, differentiated five times, for many elements at once."""

    def tanh(x: Any) -> Any:
        return (1.0 - jnp.exp(-2 * x)) / (1.0 + jnp.exp(-2 * x))

    x = np.linspace(-2, 2, 5)
    t = np.tanh(x)
    wanted = [t, 1 - t**2, -2 * t * (1 - t**2), (1 - t**2) * (6 * t**2 - 2), (1 - t**2) * (16 * t - 24 * t**3)]
    f = tanh
    for order, expected in enumerate(wanted):
        npt.assert_allclose(graphc.vmap(f)(x), expected, rtol=1e-9, atol=1e-11, err_msg=str(order))
        f = graphc.grad(f)


def test_hamiltonian_steps_keep_the_energy() -> None:
    def energy(q: Any) -> Any:
        return -variational(jnp, {"mean": q, "log_std": jnp.zeros(4)})

    @graphc.jit
    def leapfrog(q: Any, p: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            q, p = state
            p = p - 0.01 * graphc.grad(energy)(q)
            q = q + 0.02 * p
            return q, p - 0.01 * graphc.grad(energy)(q)

        return lax.fori_loop(0, 25, step, (q, p))

    q, p = np.full(4, 0.1), np.array([0.3, -0.2, 0.1, 0.4])
    value = graphc.jit(lambda q, p: energy(q) + (p**2).sum() / 2)
    assert float(value(*leapfrog(q, p))) == pytest.approx(float(value(q, p)), rel=2e-3)
    back = leapfrog(*[z * sign for z, sign in zip(leapfrog(q, p), (1, -1), strict=True)])
    npt.assert_allclose(back[0], q, atol=1e-10)
