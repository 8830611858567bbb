"""Powers of a whole number that is known when code is generated: within 1 ulp, and NumPy's at the ends of the range."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import graphc
import graphc.tensor as T

EXPONENTS = [*range(-16, -4), *range(10, 17)]
ENDS = [0.0, 5e-324, 2.3e-308, 1e-154, 1e-20, 1.0, 1e19, 7e25, 1.7e308, np.inf, np.nan]


@pytest.mark.slow
def test_powers_are_within_a_unit_in_the_last_place() -> None:
    x = T.dvector("x")
    f = graphc.function([x], [x**exponent for exponent in EXPONENTS])
    rng = np.random.default_rng(4)
    values = rng.uniform(1, 2, 500) * 2.0 ** rng.integers(-60, 60, 500) * rng.choice([-1, 1], 500)
    for exponent, found in zip(EXPONENTS, f(values), strict=True):
        for value, power in zip(values.tolist(), found.tolist(), strict=True):
            exact = Fraction(value) ** exponent
            if 2.0**-1000 < abs(exact) < 2.0**1000:
                assert abs(Fraction(power) - exact) <= Fraction(float(np.spacing(abs(power)))), (value, exponent)


@pytest.mark.slow
def test_powers_at_the_ends_of_the_range_are_numpys() -> None:
    x = T.dvector("x")
    f = graphc.function([x], [x**exponent for exponent in EXPONENTS])
    values = np.array([*ENDS, *(-each for each in ENDS)])
    with np.errstate(all="ignore"):
        for exponent, found in zip(EXPONENTS, f(values), strict=True):
            want = values**exponent
            np.testing.assert_allclose(found, want, rtol=1e-15, atol=1e-323, err_msg=str(exponent))
            np.testing.assert_array_equal(np.signbit(found[want == 0]), np.signbit(want[want == 0]), str(exponent))
