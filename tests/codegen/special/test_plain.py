"""Special functions written in the generated language agree with SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.codegen.frontend.language import bind_source
from graphc.codegen.special import FUNCTIONS, PROTOTYPES
from graphc.codegen.special.plain_source import is_plain, plain_source
from graphc.ops.custom import value_of

ROUTINES = [routine for routine in PROTOTYPES if is_plain(routine)]
WITH_ZEROS = ("j0", "j1", "y0", "y1", "jv", "yv", "expi", "betaln", *[f"airy_{k}" for k in range(4)])
COUNTS = ("pdtrik", "bdtrik", "nbdtrik")
ENDS = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 3.0, 1e-10, 700.0]
UNIT = [0.0, 1.0, 0.5, 1e-300, 1e-9, 0.2, 0.90001, 1 - 2.0**-53, 1.5, 2.0, -0.5, -1.0, np.nan]


def operands(name: str, rng: np.random.Generator) -> list[Any]:
    """Ends of the domain and numbers in it."""
    if name in ("erfinv", "erfcinv", "ndtri"):
        return [np.concatenate([UNIT, rng.uniform(-1, 2, 20), 10.0 ** rng.uniform(-300, 0, 20)])]
    if name.startswith("airy"):
        return [
            np.concatenate([[0.0, 1.0, 1e-10, -1e-300, -4.0, -9.5, np.nan, -np.inf, 99.5], rng.uniform(-30, 20, 150)])
        ]
    if name == "betaln":
        ends = [each.ravel() for each in np.meshgrid(*[[*ENDS[:8], -2.0, -1.5, 3.25]] * 2)]
        return [np.concatenate([end, 10.0 ** rng.uniform(-3, 2, 40), rng.uniform(-9, 9, 40)]) for end in ends]
    if name == "ndtri_exp":
        return [-np.concatenate([[0.0, np.inf, -1.0, np.nan], 10.0 ** rng.uniform(-300, 4, 20), rng.uniform(0, 5, 20)])]
    if name in COUNTS:
        below = [rng.uniform(0.3, 1, 6), 10.0 ** rng.uniform(0.3, 3, 6), rng.uniform(0.2, 0.6, 6)]
        return [np.append(one, end) for one, end in zip(below, [0.0, np.nan, 0.5], strict=False)][
            : len(PROTOTYPES[f"gc_special_{name}_f64"]) - 2
        ]
    if name in ("gammaincinv", "gammainccinv", "stdtrit", "betaincinv", "betainccinv"):
        of_beta = name.startswith("beta")
        lead = [10.0 ** rng.uniform(*((-1, 12) if name == "stdtrit" else (-2, 4)), 80) for _ in range(1 + of_beta)]
        shares = np.concatenate(
            [rng.uniform(0, 1, 40), 10.0 ** rng.uniform(-20, 0, 20), 1 - 10.0 ** rng.uniform(-15, 0, 20)]
        )
        axes = [[1.0, -1.0, np.nan, 0.5, 3.0, *[np.inf] * (not of_beta)]] * len(lead)
        grid = [each.ravel() for each in np.meshgrid(*axes, [0.0, 1.0, 0.5, 0.2, 1 - 2.0**-53, np.nan])]
        return [np.concatenate(pair) for pair in zip(grid, [*lead, shares], strict=True)]
    if name in ("betainc", "betaincc"):
        a, b = 10.0 ** rng.uniform(-2, 5, (2, 40))
        ends = [each.ravel() for each in np.meshgrid(ENDS[:8], ENDS[:8], [0.0, 1.0, 0.3, -0.1, 1.1, np.nan])]
        more = [a, b, rng.beta(a, b)]
    elif name in ("jv", "yv"):
        ends = [each.ravel() for each in np.meshgrid([0.0, 0.5, -1.0, 3.0, -2.0, 2.25, np.nan], ENDS[:9])]
        orders = np.concatenate([rng.uniform(-9, 30, 60), rng.integers(-9, 40, 20), 10.0 ** rng.uniform(-3, 2.3, 20)])
        more = [orders, 10.0 ** rng.uniform(-1, 2, 100)]
    elif len(PROTOTYPES[f"gc_special_{name}_f64"]) == 4:
        ends = [each.ravel() for each in np.meshgrid(ENDS, ENDS)]
        first = 10.0 ** rng.uniform(-3, 2.5 if name.startswith("k") else 9, 40)
        more = [first, rng.gamma(first)]
        if name.startswith("k"):
            more = [np.concatenate([one, rng.uniform(0.01, 40, 60)]) for one in more]
    else:
        wide = rng.uniform(-171, 171, 40) if name == "gamma" else 10.0 ** rng.uniform(-12, 2.5, 40)
        near = 1 - 10.0 ** rng.uniform(-15, 0, 10)
        ends, more = [np.array(ENDS)], [np.concatenate([rng.normal(0, 10, 40), wide, near])]
    return [np.concatenate(pair) for pair in zip(ends, more, strict=True)]


@pytest.mark.slow
def test_values_are_those_of_scipy() -> None:
    """To 1e-12, to 1e-305 where SciPy has nothing below; to 1e-8 of Student's distribution of many degrees of freedom,
    for which SciPy has lost digits, and of counts, for which SciPy's search stops early. Near zeros of functions that
    have some, to a few roundings of numbers about 1. What is infinite or NaN agrees."""
    source, _ = plain_source(ROUTINES)
    functions = bind_source(source)
    rng = np.random.default_rng(1)
    names = sorted({FUNCTIONS[routine][0] for routine in ROUTINES})
    assert len(names) == 51
    for name in names:
        given = operands(name, rng)
        made = np.full(len(given[0]), 7.0)
        with np.errstate(all="ignore"):
            functions[f"gc_special_{name}_f64"](len(made), *given, made)
            right = value_of(name, given)
            bound = (1e-8 if name in ("stdtr", *COUNTS) else 1e-12) * abs(right) + (
                2e-15 if name in WITH_ZEROS else 1e-305
            )
            if "inv" in name:  # where it underflows, SciPy's is the least normal number
                bound = np.where(abs(right) < 1e-300, 1e-300, bound)
            agree = (made == right) | (np.isnan(made) & np.isnan(right)) | (abs(made - right) <= bound)
        wrong = [[*(each[at] for each in given), made[at], right[at]] for at in np.flatnonzero(~agree)]
        assert not wrong, (name, *wrong[:9])


def test_routines_of_float32_round_once() -> None:
    source, prototypes = plain_source(["gc_special_exprel_f32"])
    assert [each.name for each in prototypes] == ["gc_plain_exprel", "gc_special_exprel_f32"]
    x, made = np.array([0.25, -3.0], "float32"), np.zeros(2, "float32")
    bind_source(source)["gc_special_exprel_f32"](2, x, made)
    np.testing.assert_array_equal(made, value_of("exprel", [x]).astype("float32"))
