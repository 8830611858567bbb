"""Models of the kinds that people build with PyMC: functions that, within a model, make its variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc
import pytensor
import pytensor.tensor as pt

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


@model
def disease_map(rng: np.random.Generator) -> None:
    """Besag, York and Mollie's: neighbours on a ring have like rates."""
    places = np.eye(12, k=1) + np.eye(12, k=-1)
    places[0, -1] = places[-1, 0] = 1
    share, sd = pymc.Beta("share", 0.5, 0.5), pymc.HalfNormal("sd", 1)
    shared, own = pymc.ICAR("shared", W=places.astype(int)), pymc.Normal("own", 0, 1, shape=12)
    rate = pt.exp(pymc.Normal("b", 0, 1) + sd * (pt.sqrt(1 - share) * own + pt.sqrt(share) * shared))
    pymc.Poisson("y", rate, observed=rng.poisson(2, 12))


@model
def splines(rng: np.random.Generator) -> None:
    x, knots = np.linspace(0, 1, 50), np.linspace(0, 1, 8)
    basis = np.maximum(1 - abs(x[:, None] - knots) * 7, 0)
    weights = pymc.Normal("w", 0, pymc.Exponential("tau", 1), size=8)
    pymc.Normal(
        "y", pymc.Normal("a", 0, 1) + pt.dot(basis, weights.T), pymc.HalfNormal("sd", 1), observed=np.cos(9 * x)
    )


@model
def proportional_hazards(rng: np.random.Generator) -> None:
    exposure, group = rng.uniform(0, 1, (30, 5)), rng.integers(0, 2, 30)
    hazard = pymc.Gamma("hazard", 1, 1, shape=5)
    risk = pt.exp(pt.outer(pymc.Normal("b", 0, 2) * group, pt.ones(5))) * hazard
    pymc.Poisson("y", exposure * risk, observed=rng.integers(0, 2, (30, 5)))


@model
def robust_regression(rng: np.random.Generator) -> None:
    x = rng.normal(size=(50, 3))
    mean = pt.dot(x, pymc.Laplace("b", 0, 1, shape=3))
    nu = pymc.Gamma("nu", 2, 0.1)
    pymc.StudentT("y", nu=nu, mu=mean, sigma=pymc.HalfCauchy("sd", 1), observed=rng.standard_t(3, 50))


@model
def softmax_regression(rng: np.random.Generator) -> None:
    x = rng.normal(size=(60, 2))
    scores = x @ pymc.Normal("b", 0, 2, shape=(2, 3)) + pymc.ZeroSumNormal("a", 1, shape=3)
    pymc.Categorical("y", p=pymc.math.softmax(scores, axis=1), observed=rng.integers(0, 3, 60))


@model
def overdispersed_counts(rng: np.random.Generator) -> None:
    mean, spread = pymc.Beta("mean", 2, 2), pymc.HalfNormal("spread", 10)
    pymc.BetaBinomial("y", alpha=mean * spread, beta=(1 - mean) * spread, n=20, observed=rng.binomial(20, 0.3, 40))
    weights = pymc.Dirichlet("weights", np.ones(4))
    pymc.DirichletMultinomial("z", n=30, a=10 * weights, observed=rng.multinomial(30, [0.1, 0.2, 0.3, 0.4], 5))


@model
def hurdles(rng: np.random.Generator) -> None:
    y = rng.poisson(2, 50) * rng.integers(0, 2, 50)
    pymc.HurdlePoisson("y", psi=pymc.Beta("psi", 1, 1), mu=pymc.Exponential("mu", 0.5), observed=y)


@model
def broken_sticks(rng: np.random.Generator) -> None:
    parts = pymc.Beta("parts", 1, pymc.Gamma("alpha", 2, 1), shape=5)
    left = pt.concatenate([[1.0], pt.cumprod(1 - parts)[:-1]])
    weights = pymc.Deterministic("weights", parts * left / pt.sum(parts * left))
    pymc.Mixture("y", weights, pymc.Poisson.dist(pymc.Gamma("mu", 2, 0.5, shape=5)), observed=rng.poisson(4, 60))


@model
def changing_variances(rng: np.random.Generator) -> None:
    omega, alpha, beta = pymc.Exponential("omega", 1), pymc.Beta("alpha", 2, 5), pymc.Beta("beta", 5, 2)
    pymc.GARCH11("y", omega=omega, alpha_1=alpha, beta_1=beta, initial_vol=1.0, observed=rng.normal(size=40))


@model
def latent_process(rng: np.random.Generator) -> None:
    x = np.linspace(0, 3, 15)[:, None]
    kernel = pymc.HalfNormal("eta", 2) ** 2 * pymc.gp.cov.Matern32(1, pymc.InverseGamma("ell", 3, 2))
    process = pymc.gp.Latent(cov_func=kernel)
    pymc.Bernoulli("y", logit_p=process.prior("f", X=x), observed=rng.integers(0, 2, 15))


@model
def ordered_probit(rng: np.random.Generator) -> None:
    ordered = pymc.distributions.transforms.ordered
    cuts = pymc.Normal("cuts", 0, 2, shape=2, transform=ordered, initval=[-1.0, 1.0])
    slope = pymc.Normal("b", 0, 1)
    pymc.OrderedProbit("y", eta=slope * rng.normal(size=40), cutpoints=cuts, observed=rng.integers(0, 3, 40))


@model
def factors_of_a_matrix(rng: np.random.Generator) -> None:
    rows, columns = pymc.Normal("rows", 0, 1, shape=(8, 2)), pymc.Normal("columns", 0, 1, shape=(6, 2))
    y = np.ma.masked_greater(rng.normal(size=(8, 6)), 1.2)
    pymc.Normal("y", rows @ columns.T, pymc.HalfNormal("sd", 1), observed=np.asarray(y.filled(0.0)))


@model
def censored_regression(rng: np.random.Generator) -> None:
    x = rng.normal(size=50)
    line = pymc.Normal.dist(pymc.Normal("a", 0, 1) + pymc.Normal("b", 0, 1) * x, pymc.HalfNormal("sd", 1))
    pymc.Censored("y", line, lower=-1.0, upper=1.0, observed=np.clip(x + rng.normal(size=50), -1, 1))


@model
def level_by_scan(rng: np.random.Generator) -> None:
    """A level that moves, integrated out by Kalman's filter."""
    moves, noise = pymc.HalfNormal("moves", 1), pymc.HalfNormal("noise", 1)

    def step(y: Any, level: Any, variance: Any, moves: Any, noise: Any) -> list[Any]:
        before = variance + moves**2
        total = before + noise**2
        gain = before / total
        density = -0.5 * (pt.log(2 * np.pi * total) + (y - level) ** 2 / total)
        return [level + gain * (y - level), (1 - gain) * before, density]

    _, _, densities = pytensor.scan(
        step, sequences=pt.constant(rng.normal(size=30).cumsum()), outputs_info=[pt.zeros(()), pt.ones(()), None],
        non_sequences=[moves, noise], return_updates=False,
    )  # fmt: skip
    pymc.Potential("y", densities.sum())


@model
def censored_and_truncated_tails(rng: np.random.Generator) -> None:
    waits = pymc.Gamma.dist(pymc.HalfNormal("shape", 2), pymc.HalfNormal("rate", 2))
    pymc.Censored("waits", waits, lower=None, upper=3.0, observed=np.minimum(rng.gamma(2.0, 1.0, 40), 3.0))
    errors = pymc.StudentT.dist(pymc.Gamma("nu", 2, 0.1), mu=pymc.Normal("mu", 0, 1), sigma=1.0)
    pymc.Truncated("errors", errors, lower=-1.0, upper=2.0, observed=rng.uniform(-1, 2, 30))
