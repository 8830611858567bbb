"""Every function of keys and every method of streams, by a table: forms of parameters and sizes, loops, branches,
modes, derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import graphc
import graphc.random as R
import graphc.tensor as T
from graphc.random.streams import WITHIN_TWO, RandomStreams
from graphc.startup.record import record
from tests.support.thorough import those

KEY = np.uint64(11)
STEPS = 3
COMPILED = {"compiled": ("branch", "loop", "symbolic of scalars"), "python": ("loop",)}
NO_DRAWS = {"key", "split", "fold_in"}
NO_METHODS = {"seed", "set_rstate", "rstate", "inc_rstate", "get_substream_rstates", "updates", "gen"}


def between(low: float, high: float) -> Callable[[tuple[int, ...]], Any]:
    """Values of a shape, evenly from one to another; whole numbers between whole numbers."""
    return lambda shape: (
        np.linspace(low, high, max(int(np.prod(shape)), 1))
        .astype(type(low))[: np.prod(shape, dtype=int)]
        .reshape(shape)
    )


def multiples(event: Any) -> Callable[[tuple[int, ...]], Any]:
    """Vectors or matrices of a shape before theirs: one of them times numbers."""
    value = np.asarray(event)
    return lambda shape: between(0.8, 1.3)(shape).reshape(*shape, *[1] * value.ndim) * value


CHANCES, COVARIANCE = [0.2, 0.5, 0.3], [[2.0, 0.5], [0.5, 1.0]]


@record()
class Row:
    """One function: draw(key or streams, shape, *parameters), how values of a shape are made for each parameter, and
    the distribution function of SciPy's of which a number and the parameters tell the derivatives."""

    draw: Callable[..., Any]
    parameters: tuple[Callable[[tuple[int, ...]], Any], ...] = ()
    scipy: Callable[..., Any] | None = None
    rounds: bool = False
    """Whether numbers depend on sums of libraries, so that modes agree within rounding only."""


CHANCE, POSITIVE, PLACE = between(0.1, 0.9), between(0.5, 3.0), between(-1.0, 1.0)
VECTORS = (multiples([1.0, -1.0]), multiples(COVARIANCE))

KEYS: dict[str, Row] = {
    "bits": Row(R.bits),
    "uniform": Row(
        lambda k, s, a, b: R.uniform(k, s, None, a, b), (PLACE, between(2.0, 3.0)), lambda a, b: stats.uniform(a, b - a)
    ),
    "normal": Row(R.normal),
    "exponential": Row(R.exponential),
    "gumbel": Row(R.gumbel),
    "logistic": Row(R.logistic),
    "laplace": Row(R.laplace),
    "cauchy": Row(R.cauchy),
    "lognormal": Row(lambda k, s, a: R.lognormal(k, a, s), (POSITIVE,), stats.lognorm),
    "weibull_min": Row(
        lambda k, s, a, b: R.weibull_min(k, a, b, s), (POSITIVE, POSITIVE), lambda a, b: stats.weibull_min(b, scale=a)
    ),
    "pareto": Row(lambda k, s, a: R.pareto(k, a, s), (POSITIVE,), stats.pareto),
    "wald": Row(
        lambda k, s, a, b: R.wald(k, a, b, s), (POSITIVE, POSITIVE), lambda a, b: stats.invgauss(a / b, scale=b)
    ),
    "rayleigh": Row(lambda k, s, a: R.rayleigh(k, a, s), (POSITIVE,), lambda a: stats.rayleigh(scale=a)),
    "rademacher": Row(R.rademacher),
    "maxwell": Row(R.maxwell, rounds=True),
    "double_sided_maxwell": Row(lambda k, s, a, b: R.double_sided_maxwell(k, a, b, s), (PLACE, POSITIVE), rounds=True),
    "triangular": Row(
        lambda k, s, a, b, c: R.triangular(k, a, b, c, s), (PLACE, between(1.2, 1.8), between(2.0, 3.0)), rounds=True
    ),
    "generalized_normal": Row(lambda k, s, a: R.generalized_normal(k, a, s), (POSITIVE,), rounds=True),
    "ball": Row(lambda k, s: R.ball(k, 3, 2, s), rounds=True),
    "orthogonal": Row(lambda k, s: R.orthogonal(k, 3, s), rounds=True),
    "gamma": Row(lambda k, s, a: R.gamma(k, a, s), (POSITIVE,), stats.gamma),
    "loggamma": Row(lambda k, s, a: R.loggamma(k, a, s), (POSITIVE,), stats.loggamma),
    "chisquare": Row(lambda k, s, a: R.chisquare(k, a, s), (POSITIVE,), stats.chi2),
    "beta": Row(lambda k, s, a, b: R.beta(k, a, b, s), (POSITIVE, POSITIVE)),
    "t": Row(lambda k, s, a: R.t(k, a, s), (POSITIVE,)),
    "f": Row(lambda k, s, a, b: R.f(k, a, b, s), (POSITIVE, POSITIVE)),
    "vonmises": Row(lambda k, s, a, b: R.vonmises(k, a, b, s), (PLACE, POSITIVE)),
    "truncated_normal": Row(
        lambda k, s, a, b: R.truncated_normal(k, a, b, s), (PLACE, between(1.5, 4.0)), stats.truncnorm
    ),
    "dirichlet": Row(lambda k, s, a: R.dirichlet(k, a, s), (multiples([1.0, 2.0, 3.0]),)),
    "multivariate_normal": Row(lambda k, s, a, b: R.multivariate_normal(k, a, b, s), VECTORS, None, True),
    "wishart": Row(lambda k, s, a, b: R.wishart(k, a, b, s), (between(2.5, 5.0), VECTORS[1]), None, True),
    "poisson": Row(lambda k, s, a: R.poisson(k, a, s), (between(0.5, 30.0),)),
    "binomial": Row(lambda k, s, n, p: R.binomial(k, n, p, s), (between(1, 60), CHANCE)),
    "geometric": Row(lambda k, s, p: R.geometric(k, p, s), (CHANCE,)),
    "negative_binomial": Row(lambda k, s, n, p: R.negative_binomial(k, n, p, s), (POSITIVE, CHANCE)),
    "bernoulli": Row(lambda k, s, p: R.bernoulli(k, p, s), (CHANCE,)),
    "randint": Row(R.randint, (between(-5, 5), between(6, 20))),
    "categorical": Row(lambda k, s, p: R.categorical(k, p, shape=s), (multiples(np.log(CHANCES)),)),
    "multinomial": Row(lambda k, s, n, p: R.multinomial(k, n, p, s), (between(1, 12), multiples(CHANCES))),
    "choice": Row(lambda k, s: R.choice(k, [3.5, 1.5, 2.5], s, p=CHANCES)),
    "permutation": Row(lambda k, s: R.permutation(k, 5)),
}

LOCATED = (PLACE, POSITIVE)


METHODS: dict[str, Row] = {
    "uniform": Row(lambda r, s, a, b: r.uniform(s, a, b), KEYS["uniform"].parameters, KEYS["uniform"].scipy),
    "normal": Row(lambda r, s, a, b: r.normal(s, a, b), LOCATED, stats.norm),
    "truncated_normal": Row(
        lambda r, s, a, b: r.truncated_normal(s, a, b), LOCATED, lambda a, b: stats.truncnorm(-2, 2, a, b / WITHIN_TWO)
    ),
    "exponential": Row(lambda r, s, b: r.exponential(s, b), (POSITIVE,), lambda b: stats.expon(scale=b)),
    "laplace": Row(lambda r, s, a, b: r.laplace(s, a, b), LOCATED, stats.laplace),
    "logistic": Row(lambda r, s, a, b: r.logistic(s, a, b), LOCATED, stats.logistic),
    "gumbel": Row(lambda r, s, a, b: r.gumbel(s, a, b), LOCATED, stats.gumbel_r),
    "cauchy": Row(lambda r, s, a, b: r.cauchy(s, a, b), LOCATED, stats.cauchy),
    "lognormal": Row(lambda r, s, a, b: r.lognormal(s, a, b), LOCATED, lambda a, b: stats.lognorm(b, scale=np.exp(a))),
    "gamma": Row(lambda r, s, a, b: r.gamma(s, a, b), (POSITIVE, POSITIVE), lambda a, b: stats.gamma(a, scale=b)),
    "beta": Row(lambda r, s, a, b: r.beta(s, a, b), (POSITIVE, POSITIVE)),
    "t": Row(lambda r, s, a, b, c: r.t(s, a, b, c), (POSITIVE, *LOCATED)),
    "chisquare": Row(lambda r, s, a: r.chisquare(s, a), (POSITIVE,), stats.chi2),
    "f": Row(lambda r, s, a, b: r.f(s, a, b), (POSITIVE, POSITIVE)),
    "weibull": Row(lambda r, s, a: r.weibull(s, a), (POSITIVE,), stats.weibull_min),
    "pareto": Row(lambda r, s, a, b: r.pareto(s, a, b), (POSITIVE, POSITIVE), lambda a, b: stats.pareto(a, scale=b)),
    "vonmises": Row(lambda r, s, a, b: r.vonmises(s, a, b), (PLACE, POSITIVE)),
    "wald": Row(lambda r, s, a, b: r.wald(s, a, b), (POSITIVE, POSITIVE), KEYS["wald"].scipy),
    "dirichlet": Row(lambda r, s, a: r.dirichlet(s, a), KEYS["dirichlet"].parameters),
    "multivariate_normal": Row(lambda r, s, a, b: r.multivariate_normal(s, a, b), VECTORS, None, True),
    "wishart": Row(lambda r, s, a, b: r.wishart(s, a, b), KEYS["wishart"].parameters, None, True),
    "poisson": Row(lambda r, s, a: r.poisson(s, a), KEYS["poisson"].parameters),
    "binomial": Row(lambda r, s, n, p: r.binomial(s, n, p), KEYS["binomial"].parameters),
    "bernoulli": Row(lambda r, s, p: r.bernoulli(s, p), (CHANCE,)),
    "geometric": Row(lambda r, s, p: r.geometric(s, p), (CHANCE,)),
    "negative_binomial": Row(lambda r, s, n, p: r.negative_binomial(s, n, p), KEYS["negative_binomial"].parameters),
    "randint": Row(lambda r, s, a, b: r.randint(s, a, b), KEYS["randint"].parameters),
    "random_integers": Row(lambda r, s, a, b: r.random_integers(s, a, b), KEYS["randint"].parameters),
    "categorical": Row(lambda r, s, p: r.categorical(s, p), (multiples(CHANCES),)),
    "multinomial": Row(lambda r, s, n, p: r.multinomial(s, n, p), KEYS["multinomial"].parameters),
    "choice": Row(lambda r, s: r.choice(s, [3.5, 1.5, 2.5], True, CHANCES)),
    "permutation": Row(lambda r, s: r.permutation(s, 4)),
    "shuffle": Row(lambda r, s: r.shuffle(np.arange(6.0).reshape(3, 2))),
    "shuffle_row_elements": Row(lambda r, s: r.shuffle_row_elements(np.arange(6.0).reshape(2, 3))),
    "multinomial_wo_replacement": Row(lambda r, s: r.multinomial_wo_replacement(None, 2, np.array([CHANCES] * 2))),
    "choice_wo_replacement": Row(lambda r, s: r.choice_wo_replacement(None, 2, np.array([CHANCES] * 2))),
}
WHOLE = {
    "poisson", "binomial", "geometric", "negative_binomial", "bernoulli", "randint", "random_integers", "categorical",
    "multinomial",
}  # fmt: skip
WITHOUT_SIZE = {"permutation", "shuffle", "shuffle_row_elements", "multinomial_wo_replacement", "choice_wo_replacement"}
BOTH = [*(("keys", name) for name in KEYS), *(("methods", name) for name in METHODS)]


def row_of(kind: str, name: str) -> Row:
    return (KEYS if kind == "keys" else METHODS)[name]


class Keyed(RandomStreams):
    """Streams of a key that is given."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def gen(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return op(self.key, *args, **kwargs)


def source(kind: str, key: Any) -> Any:
    return key if kind == "keys" else Keyed(key)


def test_the_table_is_whole() -> None:
    assert set(KEYS) == set(R.__all__) - NO_DRAWS
    assert set(METHODS) == {name for name in vars(RandomStreams) if name[0] != "_"} - NO_METHODS


SHAPES: dict[str, list[tuple[int, ...]]] = {
    "scalar": [()] * 3,
    "matrix": [(3, 4)] * 3,
    "broadcast": [(3, 1), (4,), ()],
}


def values_of(row: Row, form: str) -> list[Any]:
    return [make(shape) for make, shape in zip(row.parameters, SHAPES[form], strict=False)]


def same(row: Row, found: Any, wanted: Any, name: str) -> None:
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, name
    if row.rounds:
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12, err_msg=name)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def in_a_loop(kind: str, row: Row, key: Any, values: list[Any]) -> Any:
    steps, _ = graphc.scan(
        lambda step, *given: row.draw(source(kind, R.fold_in(key, step)), (3, 4), *given),
        sequences=[T.arange(STEPS)],
        non_sequences=values,
    )
    return steps


def variables(values: list[Any]) -> list[Any]:
    return [T.TensorType(value.dtype.name, [size == 1 for size in value.shape])() for value in map(np.asarray, values)]


OWN = [row for row in BOTH if row[0] == "keys" or row[1] not in KEYS]
"""Methods that are those of a key are left out."""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), those(lambda row: row in OWN[::2], BOTH))
def test_forms_of_parameters_and_sizes(kind: str, name: str) -> None:
    """Of one key, a number depends on its place and its own parameters alone: whatever these are broadcast from, in
    loops and branches, in every mode.

    What is compiled is a part of what is interpreted: a branch is of the matrices and the size of a call, and methods
    that draw by a function of keys are not compiled again. Python mode runs the source that is compiled, so the loop,
    which has another body, is enough.
    """
    row = row_of(kind, name)
    key, n, flag = T.scalar("key", dtype="uint64"), T.lscalar("n"), T.bscalar("flag")
    rng, values = source(kind, key), {form: values_of(row, form) for form in ("scalar", "broadcast", "matrix")}
    scalars, broadcast, matrices = (variables(each) for each in values.values())
    moved, symbolic = row.draw(rng, (3, 4), *broadcast), row.draw(rng, (n, 4), *matrices)
    nodes = {
        "branch": graphc.ifelse(T.eq(flag, 1), symbolic, T.zeros_like(symbolic)),
        "loop": in_a_loop(kind, row, key, broadcast),
        "symbolic of scalars": row.draw(rng, (n, 4), *scalars),
        "symbolic": symbolic,
        "none": row.draw(rng, (0, 4), *scalars),
        "matrix": row.draw(rng, (3, 4), *matrices),
        "scalar": row.draw(rng, (3, 4), *scalars),
        "of a number": row.draw(rng, (), *scalars),
        "broadcast": moved,
        **{f"step {step}": row.draw(source(kind, R.fold_in(key, step)), (3, 4), *broadcast) for step in range(STEPS)},
    }
    if row.parameters:
        nodes["own matrix"] = row.draw(rng, None, *matrices)
        nodes["own broadcast"] = T.zeros_like(moved) + row.draw(rng, None, *broadcast)
    inputs = [key, n, flag, *scalars, *broadcast, *matrices]
    given = [value for each in values.values() for value in each]

    def found(mode: str, names: Iterable[str]) -> dict[str, Any]:
        chosen = {each: nodes[each] for each in names}
        f = graphc.function(inputs, list(chosen.values()), mode=mode, on_unused_input="ignore")
        if "branch" in chosen:
            assert (f(KEY, 3, 0, *given)[0] == 0).all()
        return dict(zip(chosen, f(KEY, 3, 1, *given), strict=True))

    own = found("interpreted", nodes)
    if kind == "keys" or name not in KEYS:
        for mode, names in COMPILED.items():
            for what, number in found(mode, names).items():
                same(row, number, own[what], f"{mode}, {what}")
    same(row, own["symbolic"], own["matrix"], "symbolic")
    same(row, own["branch"], own["matrix"], "branch")
    same(row, own["symbolic of scalars"], own["scalar"], "symbolic of scalars")
    for step in range(STEPS):
        same(row, own["loop"][step], own[f"step {step}"], f"step {step}")
    assert name in WITHOUT_SIZE or own["none"].size == 0
    assert name in WITHOUT_SIZE or own["of a number"].shape == own["matrix"].shape[2:]
    if row.parameters:
        same(row, own["own matrix"], own["matrix"], "own matrix")
    if len(row.parameters) > 1:
        same(row, own["own broadcast"], own["broadcast"], "own broadcast")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [each for each in BOTH if row_of(*each).scipy])
def test_numbers_and_derivatives_by_the_distribution_function(kind: str, name: str) -> None:
    """Of parameters that differ from number to number. The derivatives, to second order, are those of the quantile of
    a chance that stays, along a direction of all parameters."""
    row, count, few, step = row_of(kind, name), 2000, 6, 1e-3
    assert row.scipy is not None
    values = [make((count,)) for make in row.parameters]
    parameters = [T.dvector() for _ in values]
    drawn = row.draw(source(kind, R.key(7)), None, *parameters)
    slope = sum(n * share for n, share in enumerate(T.grad(drawn.sum(), parameters), 1))
    curve = sum(n * share for n, share in enumerate(T.grad(slope.sum(), parameters, disconnected_inputs="ignore"), 1))
    numbers = graphc.function(parameters, drawn)(*values)
    assert stats.kstest(row.scipy(*values).cdf(numbers), "uniform").pvalue > 1e-4
    chosen = [value[:: count // few] for value in values]
    x, first, second = graphc.function(parameters, [drawn, slope, curve])(*chosen)
    place = row.scipy(*chosen).cdf(x)
    above, below = (
        row.scipy(*(value + side * n * step for n, value in enumerate(chosen, 1))).ppf(place) for side in (1, -1)
    )
    np.testing.assert_allclose(first, (above - below) / (2 * step), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(second, (above - 2 * x + below) / step**2, rtol=1e-2, atol=1e-2)


FLOATS = [
    (kind, name)
    for kind, name in BOTH
    if (row := row_of(kind, name)).parameters
    and row.scipy is None
    and name not in WHOLE
    and (kind == "keys" or name not in KEYS)
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), FLOATS)
def test_derivatives_of_other_numbers_are_those_of_the_interpreter(kind: str, name: str) -> None:
    """To second order: what each is right by is tested where it is made."""
    row = row_of(kind, name)
    values = values_of(row, "broadcast")
    parameters = variables(values)
    drawn = row.draw(source(kind, R.key(7)), (3, 4), *parameters)
    first = T.grad((drawn * drawn).sum(), parameters)
    second = T.grad(sum((each * each).sum() for each in first), parameters)
    made, want = (
        graphc.function(parameters, [*first, *second], mode=mode)(*values) for mode in ("compiled", "interpreted")
    )
    for found, wanted in zip(made, want, strict=True):
        assert np.isfinite(wanted).all() and (wanted != 0).any()
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * abs(wanted).max())


@pytest.mark.slow
def test_steps_of_a_loop_draw_as_calls_do() -> None:
    """The streams' own states: what a loop draws in three steps is what three calls draw."""

    def draws(rng: RandomStreams) -> list[Any]:
        return [row.draw(rng, (2,), *(make(()) for make in row.parameters)) for row in METHODS.values()]

    rows, updates = graphc.scan(lambda: draws(RandomStreams(5)), n_steps=STEPS)
    looped = graphc.function([], rows, updates=updates, mode="interpreted")()
    calls = graphc.function([], draws(RandomStreams(5)), mode="interpreted")
    for step in range(STEPS):
        for name, found, wanted in zip(METHODS, looped, calls(), strict=True):
            same(METHODS[name], found[step], wanted, name)
