"""The same bits in all modes and on every processor; how exact the numbers are, to the ends of their distributions."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import graphc
import graphc.random as R
import graphc.tensor as T
from graphc.arrays import numerics, portable
from graphc.random.distributions import log1p
from graphc.random.rejection import log_factorial
from tests.support.thorough import some

KEY, P, Q = T.scalar("key", dtype="uint64"), T.vector("p"), T.vector("q")


def draws(kind: str) -> dict[str, Any]:
    """Every distribution with parameters p, from 0 to 1, and q, any that are positive."""
    keys = iter([R.fold_in(KEY, number) for number in range(60)])
    standard = ("uniform", "normal", "exponential", "gumbel", "logistic", "laplace", "cauchy")
    found: dict[str, Any] = {name: getattr(R, name)(next(keys), Q.shape, kind) for name in standard}
    found |= {
        "bernoulli": R.bernoulli(next(keys), P),
        "randint": R.randint(next(keys), Q.shape, -3, 7),
        "lognormal": R.lognormal(next(keys), Q / 20, None, kind),
        "weibull": R.weibull_min(next(keys), Q, 5 * P, dtype=kind),
        "pareto": R.pareto(next(keys), Q, dtype=kind),
        "geometric": R.geometric(next(keys), P),
        "wald": R.wald(next(keys), Q, P, dtype=kind),
        "gamma": R.gamma(next(keys), Q, dtype=kind),
        "loggamma": R.loggamma(next(keys), P, dtype=kind),
        "chisquare": R.chisquare(next(keys), Q, dtype=kind),
        "beta": R.beta(next(keys), P, Q, dtype=kind),
        "dirichlet": R.dirichlet(next(keys), Q.reshape((-1, 5)), dtype=kind),
        "t": R.t(next(keys), Q, dtype=kind),
        "f": R.f(next(keys), Q, 2 * Q, dtype=kind),
        "poisson": R.poisson(next(keys), Q),
        "poisson of many": R.poisson(next(keys), 10 + 50 * Q),
        "binomial": R.binomial(next(keys), 20, P),
        "binomial of many": R.binomial(next(keys), 100_000, P),
        "negative binomial": R.negative_binomial(next(keys), 3 * Q, P),
        "truncated normal": R.truncated_normal(next(keys), P - 1, Q, dtype=kind),
        "tail": R.truncated_normal(next(keys), Q, Q + P, dtype=kind),
        "von Mises": R.vonmises(next(keys), 1.0, Q, dtype=kind),
        "categorical": R.categorical(next(keys), Q.reshape((-1, 5))),
        "permutation": R.permutation(next(keys), 20),
        "choice": R.choice(next(keys), 20, (5,), replace=False, p=P[:20] / 50),
    }
    return found


def arguments(size: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(2)
    return np.uint64(3), rng.uniform(0.001, 0.999, size), np.exp(rng.uniform(-2, 4, size))


@pytest.mark.slow
@pytest.mark.parametrize("kind", some(["float64", "float32"]))
def test_every_distribution_has_the_same_bits_when_compiled(kind: str) -> None:
    found = draws(kind)
    want, got = (graphc.function([KEY, P, Q], list(found.values()), mode) for mode in ("interpreted", "compiled"))
    given = arguments(200)
    for name, expected, value in zip(found, want(*given), got(*given), strict=True):
        assert value.dtype == expected.dtype, name
        np.testing.assert_array_equal(value, expected, err_msg=name)


ON_A_PROCESSOR = """
import sys
import numpy as np
import graphc
import graphc.random as R
import graphc.tensor as T
key, q = T.scalar("key", dtype="uint64"), T.vector("q")
names = ("normal", "exponential", "gumbel", "logistic", "laplace", "cauchy")
drawn = [getattr(R, name)(R.fold_in(key, place), q.shape) for place, name in enumerate(names)]
drawn += [R.normal(key, q.shape, "float32"), R.gamma(key, q), R.poisson(key, 9 * q), R.lognormal(key, q / 9, None)]
want, made = (graphc.function([key, q], drawn, mode) for mode in ("interpreted", "compiled"))
given = np.uint64(9), np.geomspace(0.1, 40.0, 301)
for expected, value in zip(want(*given), made(*given), strict=True):
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x86-64", "nehalem", "haswell"])
def test_the_bits_are_those_of_other_processors(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of two and of four, with fused multiply-add and without; each is compared with NumPy's own."""
    monkeypatch.setenv("GRAPHC_TARGET", target)
    done = subprocess.run([sys.executable, "-c", ON_A_PROCESSOR], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


ENDS = np.array(
    [0, 1, 2**12 - 1, 2**12, 2**40, 2**62, 2**63 - 1, 2**63, 2**63 + 2**12, 2**64 - 2**12, 2**64 - 1], np.uint64
)
"""Words of the least numbers, of those in the middle and of the greatest."""


def words(count: int) -> Any:
    """Random words, those above, and random ones that begin with many zeros or ones."""
    rng = np.random.default_rng(4)
    drawn = rng.integers(0, 2**64, count, np.uint64)
    few = drawn >> rng.integers(0, 53, count).astype(np.uint64)
    return np.concatenate([ENDS, drawn, few, ~few])


def units_of(word: Any) -> Any:
    """The exact argument of the inverse of a distribution function."""
    return [mpmath.mpf((int(each) >> 12) * 2 + 1) / 2**53 for each in word]


INVERSES = {
    "exponential": lambda u: -mpmath.log(u),
    "gumbel": lambda u: -mpmath.log(-mpmath.log(u)),
    "logistic": lambda u: mpmath.log(u / (1 - u)),
    "laplace": lambda u: mpmath.log(2 * u) if u < 0.5 else -mpmath.log(2 * (1 - u)),
    "cauchy": lambda u: mpmath.tan(mpmath.pi * (u - mpmath.mpf(1) / 2)),
}


@pytest.mark.parametrize("name", INVERSES)
def test_numbers_are_inverses_of_distribution_functions(name: str) -> None:
    """Within 2 ulp of their logarithm's argument and 4 of their own, whatever the word: all of the tails."""
    given = words(300)
    found = portable.of_words(getattr(portable, name), given)
    assert np.isfinite(found).all()
    with mpmath.workdps(60):
        exact = [INVERSES[name](u) for u in units_of(given)]
        # a logarithm of what is rounded is wrong by as much as that is, however small it is itself
        lost = {"gumbel": 2.0, "logistic": 2.0}.get(name, 0.0)
        for value, wanted in zip(found, exact, strict=True):
            bound = 4 * np.spacing(abs(float(wanted))) + lost * 2.0**-53
            assert abs(mpmath.mpf(float(value)) - wanted) <= bound, (name, value)


def test_normal_numbers_are_exact_to_the_end() -> None:
    """A radius within 2 ulp times a cosine or sine within 2: together 4, rounded once more; from the greatest radius,
    8.57, to the least."""
    radii, turns = words(150), words(150)[::-1].copy()
    found = portable.of_words(portable.normals, radii, turns)
    with mpmath.workdps(60):
        for place, (u, turn) in enumerate(zip(units_of(radii), turns, strict=True)):
            radius = mpmath.sqrt(-2 * mpmath.log(u))
            angle = 2 * mpmath.pi * (int(turn) >> 12) / mpmath.mpf(2) ** 52
            # quarters of a turn are exact
            exact = [
                radius * part for part in (mpmath.cospi(2 * mpmath.mpf(int(turn) >> 12) / 2**52), mpmath.sin(angle))
            ]
            for numbers, wanted in zip(found, exact, strict=True):
                size = float(abs(wanted))
                assert abs(mpmath.mpf(float(numbers[place])) - wanted) <= 5 * np.spacing(size) + 1e-40, (u, turn)
    assert 8.5 < max(abs(found[0]).max(), abs(found[1]).max()) < 8.58


@pytest.mark.slow
def test_tails_hold_as_many_as_they_should() -> None:
    """Of ten million normal numbers, how many lie beyond each limit, within five standard deviations; and all in all a
    test of fit."""
    count = 10_000_000
    x = graphc.function([], R.normal(R.key(11), (count,)))()
    for limit in (1.0, 2.0, 3.0, 4.0, 4.5, 5.0):
        for beyond in (np.count_nonzero(x > limit), np.count_nonzero(x < -limit)):
            expected = count * stats.norm.sf(limit)
            assert abs(beyond - expected) <= 5 * np.sqrt(expected) + 1, limit
    edges = stats.norm.ppf(np.linspace(0, 1, 1001)[1:-1])
    counts = np.bincount(np.searchsorted(edges, x), minlength=1000)
    assert stats.chi2.sf(((counts - count / 1000) ** 2 / (count / 1000)).sum(), 999) > 1e-4


def test_the_tail_beyond_eight() -> None:
    """Radii of the least units are those of the Rayleigh distribution there: 2**-53 times an odd number is the chance
    of one beyond."""
    least = (np.arange(1, 2000, dtype=np.uint64)) << np.uint64(12)
    radius = np.hypot(*portable.of_words(portable.normals, least, np.full(least.shape, 2**60 + 2**50, np.uint64)))
    np.testing.assert_allclose(np.exp(-(radius**2) / 2), (2.0 * np.arange(1, 2000) + 1) * 2.0**-53, rtol=1e-13)
    assert radius.min() > 7.3 and radius.max() > 8.4


def test_log_factorials() -> None:
    """What Poisson and binomial numbers are accepted by: within the terms that the series leaves out, 2e-13 at 10, and
    four roundings of its greatest term."""
    k = np.concatenate([np.arange(300.0), [1e5, 1e9, 1e15]])
    x = T.vector("x")
    found = graphc.function([x], log_factorial(x), "interpreted")(k)
    with mpmath.workdps(50):
        for n, value in zip(k, found, strict=True):
            most = (n + 10) * np.log(n + 10)
            assert abs(mpmath.loggamma(mpmath.mpf(float(n)) + 1) - float(value)) <= 2e-13 + 4 * 2.0**-53 * most, n


def test_logarithms_near_one() -> None:
    x = np.concatenate([-np.geomspace(1e-300, 0.999, 400), [0.0, -0.5, 1e-17, -1e-17], np.geomspace(1e-20, 1e20, 100)])
    p = T.vector("p")
    np.testing.assert_allclose(graphc.function([p], log1p(p), "interpreted")(x), np.log1p(x), rtol=1e-15)


def test_what_the_interpreter_computes_with() -> None:
    """Numbers and arrays of any rank, and none."""
    place, zero = np.arange(6, dtype=np.uint64), np.uint64(0)
    flat = numerics.DRAWN["normal"](place, zero, zero)
    np.testing.assert_array_equal(numerics.DRAWN["normal"](place.reshape(2, 3), zero, zero), flat.reshape(2, 3))
    assert numerics.DRAWN["normal"](place[2], zero, zero) == flat[2]
    assert numerics.DRAWN["gumbel"](place[:0], zero, zero).shape == (0,)
