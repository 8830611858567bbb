"""PyMC's models compiled by graphc against PyTensor's log-densities (`make test-bridge`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pymc = pytest.importorskip("pymc", reason="make test-bridge has PyMC")

import pytensor  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402

import graphc.pymc  # noqa: E402
from graphc.errors import ArgumentError  # noqa: E402

MODELS: dict[str, Callable[[np.random.Generator], None]] = {}


def model(build: Callable[[np.random.Generator], None]) -> Callable[[np.random.Generator], None]:
    MODELS[build.__name__] = build
    return build


@model
def eight_schools(rng: np.random.Generator) -> None:
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sigma = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    mu, tau = pymc.Normal("mu", 0, 5), pymc.HalfCauchy("tau", 5)
    theta = pymc.Deterministic("theta", mu + tau * pymc.Normal("z", 0, 1, shape=8))
    pymc.Normal("y", theta, sigma, observed=y)


@model
def radon(rng: np.random.Generator) -> None:
    county, floor = rng.integers(0, 12, 90), rng.integers(0, 2, 90).astype(float)
    a = pymc.Normal("a", pymc.Normal("mu", 0, 10), pymc.HalfCauchy("sd", 5), shape=12)
    pymc.Normal(
        "y", a[county] + pymc.Normal("b", 0, 1) * floor, pymc.HalfNormal("eps", 5), observed=rng.normal(size=90)
    )


@model
def gaussian_process(rng: np.random.Generator) -> None:
    x = np.linspace(0, 10, 20)[:, None]
    kernel = pymc.HalfCauchy("eta", 5) ** 2 * pymc.gp.cov.Matern52(1, pymc.Gamma("ell", 2, 1))
    process = pymc.gp.Marginal(cov_func=kernel)
    process.marginal_likelihood("y", X=x, y=np.sin(x[:, 0]), sigma=pymc.HalfCauchy("sigma", 5))


@model
def mixture(rng: np.random.Generator) -> None:
    weights = pymc.Dirichlet("w", np.ones(3))
    ordered = pymc.distributions.transforms.ordered
    means = pymc.Normal("means", 0, 10, shape=3, transform=ordered, initval=[-2.0, 0.0, 3.0])
    pymc.NormalMixture("y", weights, means, sigma=pymc.HalfNormal("sd", 2, shape=3), observed=rng.normal(size=60))


@model
def correlated(rng: np.random.Generator) -> None:
    sd = pymc.Exponential.dist(1.0)
    factor, _, _ = pymc.LKJCholeskyCov("factor", n=3, eta=2.0, sd_dist=sd, compute_corr=True)
    pymc.MvNormal("y", pymc.Normal("mu", 0, 10, shape=3), chol=factor, observed=rng.normal(size=(30, 3)))


@model
def autoregression(rng: np.random.Generator) -> None:
    first = pymc.Normal.dist(0, 10)
    rho = pymc.Normal("rho", 0, 1, shape=2)
    pymc.AR("y", rho, sigma=pymc.HalfNormal("s", 1), init_dist=first, observed=rng.normal(size=50))


@model
def ordered_regression(rng: np.random.Generator) -> None:
    x = rng.normal(size=80)
    cuts = pymc.Normal("cuts", 0, 2, shape=3, transform=pymc.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0])
    pymc.OrderedLogistic("y", eta=pymc.Normal("b", 0, 1) * x, cutpoints=cuts, observed=rng.integers(0, 4, 80))


@model
def negative_binomial_regression(rng: np.random.Generator) -> None:
    x = rng.normal(size=(60, 2))
    mean = pt.exp(pymc.Normal("a", 0, 1) + x @ pymc.Normal("b", 0, 1, shape=2))
    pymc.NegativeBinomial("y", mu=mean, alpha=pymc.Exponential("alpha", 1), observed=rng.poisson(3, 60))


@model
def zero_inflation(rng: np.random.Generator) -> None:
    psi = pymc.Beta("psi", 2, 2)
    pymc.ZeroInflatedPoisson(
        "y", psi=psi, mu=pymc.Gamma("mu", 2, 1), observed=rng.poisson(2, 50) * rng.integers(0, 2, 50)
    )


@model
def survival(rng: np.random.Generator) -> None:
    alpha, beta = pymc.HalfNormal("alpha", 2), pymc.HalfNormal("beta", 5)
    times = rng.weibull(1.5, 60) + 0.1
    pymc.Censored("y", pymc.Weibull.dist(alpha, beta), lower=None, upper=2.0, observed=np.minimum(times, 2.0))


@model
def truncated(rng: np.random.Generator) -> None:
    mu, sd = pymc.Normal("mu", 0, 1), pymc.HalfNormal("sd", 1)
    pymc.TruncatedNormal("y", mu, sd, lower=0.0, observed=rng.uniform(0.1, 2, 40))


@model
def item_response(rng: np.random.Generator) -> None:
    person, item = np.repeat(np.arange(15), 6), np.tile(np.arange(6), 15)
    ability, difficulty = pymc.Normal("ability", 0, 1, shape=15), pymc.Normal("difficulty", 0, 1, shape=6)
    discrimination = pymc.LogNormal("discrimination", 0, 0.5, shape=6)
    chance = discrimination[item] * (ability[person] - difficulty[item])
    pymc.Bernoulli("y", logit_p=chance, observed=rng.integers(0, 2, 90))


@model
def stochastic_volatility(rng: np.random.Generator) -> None:
    step = pymc.Exponential("step", 10)
    log_sd = pymc.GaussianRandomWalk("h", sigma=step, init_dist=pymc.Normal.dist(0, 1), steps=59)
    pymc.StudentT("y", nu=pymc.Exponential("nu", 0.1), lam=pt.exp(-2 * log_sd), observed=rng.normal(size=60))


@model
def varying_slopes(rng: np.random.Generator) -> None:
    group, x = rng.integers(0, 8, 70), rng.normal(size=70)
    sd = pymc.HalfNormal.dist(1.0)
    factor, _, _ = pymc.LKJCholeskyCov("factor", n=2, eta=2.0, sd_dist=sd, compute_corr=True)
    offsets = pymc.Normal("z", 0, 1, shape=(2, 8))
    slopes = pymc.Deterministic("slopes", pt.dot(factor, offsets).T)
    pymc.Normal("y", slopes[group, 0] + slopes[group, 1] * x, pymc.HalfNormal("eps", 1), observed=rng.normal(size=70))


@model
def hilbert_space_process(rng: np.random.Generator) -> None:
    x = np.linspace(-1, 1, 40)[:, None]
    kernel = pymc.HalfNormal("eta", 1) ** 2 * pymc.gp.cov.ExpQuad(1, ls=pymc.InverseGamma("ell", 3, 1))
    f = pymc.gp.HSGP(m=[12], c=1.5, cov_func=kernel).prior("f", X=x)
    pymc.Normal("y", f, pymc.HalfNormal("eps", 1), observed=rng.normal(size=40))


@model
def epidemic(rng: np.random.Generator) -> None:
    beta, gamma = pymc.LogNormal("beta", -0.5, 0.3), pymc.LogNormal("gamma", -1.5, 0.3)

    def step(s: Any, i: Any, beta: Any, gamma: Any) -> list[Any]:
        infected, recovered = beta * s * i, gamma * i
        return [s - infected, i + infected - recovered]

    states = pytensor.scan(
        step, outputs_info=[pt.constant(0.99), pt.constant(0.01)], non_sequences=[beta, gamma], n_steps=30,
        return_updates=False,
    )  # fmt: skip
    pymc.Poisson("y", 100 * states[1], observed=rng.poisson(8, 30))


@model
def hidden_states(rng: np.random.Generator) -> None:
    stay = pymc.Beta("stay", 5, 2, shape=2)
    means = pymc.Normal("means", np.array([-1.0, 1.0]), 1.0, shape=2)
    y = pt.constant(rng.normal(size=40))
    log_moves = pt.log(pt.stack([pt.stack([stay[0], 1 - stay[0]]), pt.stack([1 - stay[1], stay[1]])]))
    emitted = -0.5 * (y[:, None] - means) ** 2

    def forward(emission: Any, alpha: Any, moves: Any) -> Any:
        return emission + pt.logsumexp(alpha[:, None] + moves, axis=0)

    alphas = pytensor.scan(
        forward, sequences=emitted[1:], outputs_info=emitted[0], non_sequences=log_moves, return_updates=False
    )
    pymc.Potential("y", pt.logsumexp(alphas[-1]))


@pytest.mark.parametrize("name", MODELS)
def test_log_density_and_gradient_are_pytensors(name: str) -> None:
    with pymc.Model() as built:
        MODELS[name](np.random.default_rng(3))
    compiled = graphc.pymc.compile(built)
    rng = np.random.default_rng(5)
    inputs = [built.rvs_to_values[variable] for variable in built.free_RVs]
    density = built.logp()
    with built:
        own = pymc.pytensorf.compile(
            inputs, [density, *pytensor.grad(density, inputs)], mode=Mode("py", optimizer="fast_compile")
        )
    for scale in (0.0, 0.3):
        q = compiled.flat(built.initial_point()) + scale * rng.normal(size=compiled.dimension)
        value, gradient = compiled.logp_dlogp(q)
        given = [
            q[part.start : part.end].reshape(part.shape).astype(variable.dtype)
            for part, variable in zip(compiled.parameters, inputs, strict=True)
        ]
        wanted, *parts = own(*given)
        np.testing.assert_allclose(value, wanted, rtol=1e-10)
        wide = np.concatenate([np.ravel(part) for part in parts])
        np.testing.assert_allclose(gradient, wide, rtol=1e-9, atol=1e-10 * max(1.0, np.abs(wide).max()))


def test_the_functions_of_a_model() -> None:
    with pymc.Model() as built:
        eight_schools(np.random.default_rng(0))
    compiled = graphc.pymc.compile(built)
    q = compiled.flat(built.initial_point()) + 0.1
    value, gradient = compiled.logp_dlogp(q)
    np.testing.assert_allclose(compiled.logp(q), value, rtol=1e-14)
    np.testing.assert_allclose(compiled.dlogp(q), gradient, rtol=1e-12)
    curvature = compiled.d2logp(q)
    step = 1e-6 * np.eye(compiled.dimension)
    near = np.array([(compiled.dlogp(q + row) - compiled.dlogp(q - row)) / 2e-6 for row in step])
    np.testing.assert_allclose(curvature, near, atol=1e-6)
    values = compiled.values()(q)
    np.testing.assert_allclose(values["theta"], values["mu"] + values["tau"] * values["z"])
    assert set(compiled.values(["tau"])(q)) == {"tau"}
    with pytest.raises(ArgumentError, match="no variable 'nothing'"):
        compiled.values(["nothing"])


def test_data_may_change_between_calls() -> None:
    with pymc.Model() as built:
        x = pymc.Data("x", np.arange(3.0))
        pymc.Normal("y", pymc.Normal("b", 0, 1) * x, 1.0, observed=np.ones(3))
    compiled = graphc.pymc.compile(built)
    before = compiled.logp(np.array([0.5]))
    with built:
        pymc.set_data({"x": np.arange(3.0) + 1.0})
    after = compiled.logp(np.array([0.5]))
    assert before != after
    np.testing.assert_allclose(after - before, -0.5 * (0.25 + 0.0 + 0.25) + 0.5 * (1.0 + 0.25 + 0.0), atol=1e-12)


def test_discrete_variables_are_refused_by_name() -> None:
    with pymc.Model() as built:
        pymc.Poisson("n", 3.0)
    with pytest.raises(ArgumentError, match="n: discrete variables"):
        graphc.pymc.compile(built)


@pytest.mark.slow
def test_sampling_takes_the_mode() -> None:
    with pymc.Model():
        eight_schools(np.random.default_rng(0))
        trace = pymc.sample(
            300, tune=300, chains=2, cores=1, progressbar=False, random_seed=1, compile_kwargs={"mode": "GRAPHC"}
        )
    assert abs(float(trace.posterior["mu"].mean()) - 4.4) < 1.5


def test_the_pointer_gives_what_the_function_does_in_four_threads() -> None:
    with pymc.Model() as built:
        pymc.Data("unused", np.arange(3.0))
        x = pymc.Data("x", np.random.default_rng(1).normal(size=30))
        hilbert_space_process(np.random.default_rng(2))
        pymc.Normal("more", pymc.Normal("slope", 0, 1) * x, 1.0, observed=np.ones(30))
    compiled = graphc.pymc.compile(built)
    pointer = compiled.pointer()
    call = pointer.ctypes
    count = compiled.dimension
    points = compiled.flat(built.initial_point()) + np.random.default_rng(0).normal(size=(40, count)) / 2
    wanted = [compiled.logp_dlogp(q) for q in points]
    with built:
        pymc.set_data({"x": np.zeros(30)})  # the pointer has the data that were
    problems: list[int] = []

    def work(first: int) -> None:
        gradient, value = np.zeros(count), np.zeros(1)
        for number in [*range(first, 40, 4)] * 50:
            q = points[number]
            status = call(count, q.ctypes.data, gradient.ctypes.data, value.ctypes.data, None)
            if status or value[0] != wanted[number][0] or not np.array_equal(gradient, wanted[number][1]):
                problems.append(number)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert call(count + 1, points.ctypes.data, points.ctypes.data, points.ctypes.data, None) == -1


def test_a_point_without_density_is_rejected_by_number() -> None:
    with pymc.Model() as built:
        pymc.Potential("p", pt.log(pymc.Normal("x", 0, 1)))
    compiled = graphc.pymc.compile(built)
    call, out, value = compiled.pointer().ctypes, np.zeros(1), np.zeros(1)
    for x, status in ((1.0, 0), (-1.0, 4), (0.0, 3), (np.nan, 3)):
        assert call(1, np.array([x]).ctypes.data, out.ctypes.data, value.ctypes.data, None) in (
            status,
            3 * bool(status),
        )


def nutpie_trace(model: Any, **options: Any) -> Any:
    nutpie = pytest.importorskip("nutpie", reason="make test-bridge has nutpie")
    return nutpie.sample(model, progress_bar=False, seed=3, **options)


def test_nutpie_samples_a_model_of_graphcs() -> None:
    pytest.importorskip("nutpie", reason="make test-bridge has nutpie")
    with pymc.Model(coords={"school": list("abcdefgh"), "pair": [1, 2]}) as built:
        eight_schools(np.random.default_rng(0))
        scale = pymc.Data("scale", 1.0)
        pymc.Deterministic("both", pt.stack([built["mu"], built["tau"] * scale]), dims="pair")
    model = graphc.pymc.nutpie(built)
    assert model.n_dim == 10 and model.shapes["theta"] == (8,) and model.n_expanded == 21
    assert list(model.coords["pair"]) == [1, 2]
    assert list(model.coords["unconstrained_parameter"][:3]) == ["mu", "tau_log__", "z_0"]
    trace = nutpie_trace(model, draws=1500, tune=1000, chains=4, cores=2)
    mean, spread = float(trace.posterior["mu"].mean()), float(trace.posterior["mu"].std())
    assert abs(mean - 4.4) < 0.35 and abs(spread - 3.3) < 0.3  # sampled by PyMC at length
    both = trace.posterior["both"]
    assert both.dims == ("chain", "draw", "pair")
    np.testing.assert_allclose(both.values[..., 0], trace.posterior["mu"].values)
    np.testing.assert_allclose(both.values[..., 1], trace.posterior["tau"].values)
    np.testing.assert_allclose(
        trace.posterior["theta"], trace.posterior["mu"] + trace.posterior["tau"] * trace.posterior["z"]
    )
    changed = nutpie_trace(model.with_data(scale=-2.0), draws=20, tune=20, chains=1)
    np.testing.assert_allclose(changed.posterior["both"].values[..., 1], -2.0 * changed.posterior["tau"].values)
    with pytest.raises(KeyError, match="no data 'scales' in the model; there are scale"):
        model.with_data(scales=1.0)


def test_options_of_nutpies_own_compiler() -> None:
    pytest.importorskip("nutpie", reason="make test-bridge has nutpie")
    with pymc.Model() as built:
        eight_schools(np.random.default_rng(0))
    model = graphc.pymc.nutpie(built, var_names=["theta"], initial_points={"mu": 3.0}, jitter_rvs=set())
    np.testing.assert_allclose(model.initial_point_func(1)[:1], 3.0)
    trace = nutpie_trace(model, draws=20, tune=20, chains=2)
    assert set(trace.posterior) == {"mu", "tau_log__", "z", "theta"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["radon", "correlated", "hidden_states"])
def test_posteriors_are_those_of_pytensors_own_code(name: str) -> None:
    nutpie = pytest.importorskip("nutpie", reason="make test-bridge has nutpie")
    with pymc.Model() as built:
        MODELS[name](np.random.default_rng(3))
    options = {"draws": 1500, "tune": 1000, "chains": 4, "cores": 2}
    mine, own = (nutpie_trace(m, **options) for m in (graphc.pymc.nutpie(built), nutpie.compile_pymc_model(built)))
    assert set(mine.posterior) == set(own.posterior)
    for key in own.posterior:
        means, spread = [t.posterior[key].mean(("chain", "draw")) for t in (mine, own)], own.posterior[key].std()
        assert float(abs(means[0] - means[1]).max()) < 0.15 * float(spread) + 1e-9, key
