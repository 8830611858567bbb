"""Random programs and pairs of static sizes against NumPy: a fixed share of `make fuzz`, and the oracle itself.

The seed is in the head of the report; `CORNERS_SEED` sets it. A program that fails is run again by
`python -m tests.support.corners --only SEED:NUMBER`.
"""

from __future__ import annotations

import os
from dataclasses import replace

import mpmath
import numpy as np
import pytest

import graphc.tensor as T
from tests.support.corners import bounded as B, pairs_of_sizes
from tests.support.corners.axes import CUMULATIONS, NORMALISERS, REDUCTIONS, Along, along
from tests.support.corners.batches import TOGETHER, Failure, run_pairs, run_random
from tests.support.corners.checks import Setting, Tally, failures, mismatch
from tests.support.corners.programs import Program
from tests.support.corners.shrinking import shrunk
from tests.support.corners.slopes import Case, case
from tests.support.corners.steps import Step, leaf
from tests.support.thorough import some

SEED = os.environ["CORNERS_SEED"]
PROGRAMS, PAIRS = 16, 12


def report(found: list[Failure]) -> str:
    return "\n\n".join(f"{one.name} {one.setting}\n{one.text}\n{one.program}" for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("number", some(range(PROGRAMS)))
def test_random_programs_compute_what_numpy_computes(number: int) -> None:
    tally, found = run_random(SEED, number * TOGETHER, TOGETHER)
    assert not found, report(found)
    assert tally.undecided < tally.elements or not tally.elements


@pytest.mark.slow
@pytest.mark.parametrize("number", some(range(PAIRS)))
def test_functions_along_axes_of_known_sizes_compute_what_numpy_computes(number: int) -> None:
    """A part of all pairs, chosen by the seed."""
    count = sum(1 for _ in pairs_of_sizes.programs()) // pairs_of_sizes.BATCH
    first = sum(SEED.encode()) * 7 + number * 73
    _, found = run_pairs(SEED, first % count * pairs_of_sizes.BATCH, pairs_of_sizes.BATCH)
    assert not found, report(found)


@pytest.mark.slow
def test_all_pairs_are_there() -> None:
    """Each function along each axis for each pair of sizes that it takes, in each place."""
    seen = {(p.values[1].text, p.values[0].sizes) for p in pairs_of_sizes.programs()}
    functions = [*REDUCTIONS, *NORMALISERS, *CUMULATIONS]
    some = sum(100 if what.empty else 90 for what in functions) * 2 * len(pairs_of_sizes.PATTERNS)
    assert len(seen) == some


# The oracle ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("what", [*REDUCTIONS, *NORMALISERS, *CUMULATIONS], ids=lambda what: what.name)
def test_numpy_is_within_the_bounds(what: Along, dtype: str) -> None:
    """And the bounds are no wider than some hundred roundings of the largest number there is."""
    rng = np.random.default_rng(3)
    for shape in ((7, 5), (1, 1), (300, 2)):
        x = B.given(np.asarray(rng.normal(size=shape), dtype))
        with B.evaluating(B.Evaluation()):
            found = along(what, 0, leaf(dtype, shape), (0,)).oracle(x)
        assert not mismatch(found.num, found, Tally())
        if found.is_float and what.name not in ("prod", "cumprod", "v * prod"):
            with np.errstate(all="ignore"):
                assert np.abs(found.num - found.ref).max() <= found.err.max()
                assert found.err.max() <= 32 * shape[0] ** 2 * np.finfo(dtype).eps * max(np.abs(found.ref).max(), 1)


def test_error_function_is_that_of_many_digits() -> None:
    x = np.array([0.0, -0.0, 1e-30, 0.3, -1.0, 2.5, 5.0, 6.6, 9.0, np.inf, -np.inf], B.LONG)
    with mpmath.workdps(30):
        right = [mpmath.erf(mpmath.mpf(float(value))) for value in x]
        for got, want, value in zip(B.erf(x), right, x, strict=True):
            exact = mpmath.erf(mpmath.mpf(float(value)))
            assert abs(mpmath.mpf(float(got)) - exact) <= 2**-52 * abs(want)


def test_what_is_wrong_is_found() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5))
    with B.evaluating(B.Evaluation()):
        want = B.softmax(B.given(x), (1,))
    assert not mismatch(want.num, want, Tally())
    assert mismatch(want.num * (1 + 1e-13), want, Tally())
    assert mismatch(want.num.astype("float32"), want, Tally())
    assert mismatch(want.num.T.copy(), want, Tally())
    wrong = want.num.copy()
    wrong[3, 4] = np.nan
    assert "(3, 4)" in mismatch(wrong, want, Tally())
    moved = B.given(np.array([0.0, -0.0]))
    assert "sign" in mismatch(np.zeros(2), moved, Tally())


def test_what_rounding_decides_is_unknown() -> None:
    x = B.add(B.given(np.array([0.1, 1.0])), B.given(np.array([0.2, 1.0])))
    less = B.compared(np.less, x, B.given(np.array([0.3, 3.0])))
    assert np.isinf(less.err).tolist() == [True, False]
    assert np.isinf(B.rounded(np.floor, B.scaled(x, 10.0)).err).tolist() == [True, True]
    with B.evaluating(B.Evaluation()):
        assert np.isinf(B.sum_(B.given(np.array([1e308, 1e308, -1e308])), (0,)).err)


def wrong_step(wrong: bool) -> Program:
    """tanh(x) * y + x, whose product is a difference in graphc where it is to be wrong."""
    x, y = leaf("float64", (3,)), leaf("float64", (3,))
    graph = T.sub if wrong else T.mul
    return Program((
        x, y,
        Step("tanh(v0)", (0,), T.tanh, lambda v: B.monotone(v, np.tanh), "float64", (3,)),
        Step("v2 * v1", (2, 1), graph, B.mul, "float64", (3,)),
        Step("v3 + v0", (3, 0), T.add, B.add, "float64", (3,)),
    ), (4,), (), 2)  # fmt: skip


def test_a_program_that_fails_is_made_smaller() -> None:
    arrays = [np.array([0.5, 1.0, 2.0]), np.array([3.0, -1.0, 0.25])]
    this: Case = case(wrong_step(True), arrays)
    small, its, text = shrunk(this.program, this, Setting("python"))
    assert text and [step.text for step in small.values if not step.kind] == ["v2 * v1"]
    assert len(its.arrays) == 2 and small.order == 0


def test_wrong_slopes_are_found() -> None:
    """Of a derivative that is held constant."""
    arrays = [np.array([0.5, 1.0, 2.0]), np.array([3.0, -1.0, 0.25])]
    right = wrong_step(False)
    assert failures([right], [[case(right, arrays)]], Setting("python"), Tally()) == [""]
    values = list(right.values)
    values[2] = replace(values[2], graph=lambda v: T.stop_gradient(T.tanh(v)))
    wrong = replace(right, values=tuple(values))
    (text,) = failures([wrong], [[case(wrong, arrays)]], Setting("python"), Tally())
    assert "slope" in text and "second slope" in text
