"""Random programs of `scan` against loops in NumPy: values, updates after two calls, derivatives of both orders.

First derivatives are compared along a random direction with those along the imaginary axis, f(x + ihd)/h, which cancel
nothing; second ones with differences of these. How far a result may be off comes from the reference itself: from runs
of it whose every operation is wrong in the last places, and of differences from those over twice the distance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.startup.record import record
from tests.support.random_scans import Program, program_of
from tests.support.scans_built import Built, Run, Values, built, carried_out, draw
from tests.support.thorough import some

ULPS = 4.0
"""Units in the last place that an operation may be wrong by, in any form that a rule gives it (`support/bounds.py`)."""
SAFETY = 30.0
"""Of what noisy runs differ by: they are three, and the compiled program rounds in other places."""
IMAGINARY = 1e-40
DISTANCE = 1e-4
"""Of the ends of differences: of derivatives about one, what is cut is about its square, what rounds eps/DISTANCE."""
MARGIN = 1e-3
"""How far a decision must be from falling the other way."""


@record()
class Along:
    """A direction for every input of floats."""

    name: str
    direction: Any


def values_of(program: Program) -> tuple[Values, float]:
    """Values of the leaves where no decision is close, and the rounding error of their dtypes."""
    rng = np.random.default_rng(program.seed)
    eps = max((np.finfo(leaf.dtype).eps for leaf in program.leaves if leaf.dtype.startswith("float")), default=0.0)
    for _ in range(50):
        values = {leaf.name: draw(leaf, rng) for leaf in program.leaves}
        run = Run()
        carried_out(program, values, run)
        if run.margin > MARGIN:
            break
    return values, float(max(eps, np.finfo(program.dtype).eps))


def along_imaginary(program: Program, values: Values, directions: list[Along], run: Run) -> float:
    moved = dict(values)
    for each in directions:
        moved[each.name] = values[each.name] + IMAGINARY * 1j * each.direction
    return float(np.imag(carried_out(program, moved, run).cost) / IMAGINARY)


def noisy_held(program: Program, values: Values, eps: float, seed: int, plain: Run) -> Run:
    """A noisy run that holds what a noisy run at the same place has held."""
    first = Run(ULPS * eps, seed, plain.decisions)
    carried_out(program, values, first)
    return Run(ULPS * eps, seed, plain.decisions, first.holds)


def slope(program: Program, values: Values, directions: list[Along], eps: float, plain: Run) -> tuple[float, float]:
    """The derivative of the cost along a direction, and how far off it may be."""
    exact = along_imaginary(program, values, directions, Run(decided=plain.decisions, held=plain.holds))
    worst = 0.0
    for seed in range(3):
        run = noisy_held(program, values, eps, seed, plain)
        worst = max(worst, abs(along_imaginary(program, values, directions, run) - exact))
    return exact, SAFETY * worst


def curvature(
    program: Program, values: Values, one: list[Along], two: list[Along], eps: float, plain: Run
) -> tuple[float, float]:
    """The derivative along `two` of that along `one`, and how far off it may be: by what differences cut off, by the
    rounding of what is compared, and by that of their ends."""

    def difference(distance: float, run: Callable[[], Run]) -> float:
        ends = []
        for sign in (1.0, -1.0):
            moved = dict(values)
            for each in two:
                moved[each.name] = np.asarray(values[each.name], float) + sign * distance * each.direction
            ends.append(along_imaginary(program, moved, one, run()))
        return (ends[0] - ends[1]) / (2 * distance)

    found = difference(DISTANCE, lambda: Run(decided=plain.decisions, held=plain.holds))
    far = difference(2 * DISTANCE, lambda: Run(decided=plain.decisions, held=plain.holds))
    worst = 0.0
    for seed in range(3):
        noisy = difference(DISTANCE, lambda seed=seed: noisy_held(program, values, eps, seed, plain))  # type: ignore[misc]
        worst = max(worst, abs(noisy - found))
    ends = slope(program, values, one, float(np.finfo(float).eps), plain)[1]
    return found, abs(far - found) + SAFETY * worst + ends / DISTANCE


def check(seed: int, mode: str, order: int) -> None:
    program = program_of(seed)
    values, eps = values_of(program)
    made = built(program, values)
    rng = np.random.default_rng([seed, 1])
    floats = [leaf for leaf in program.leaves if leaf.dtype.startswith("float")]
    wrt = [made.leaves[leaf.name] for leaf in floats]
    one, two = ([Along(leaf.name, rng.normal(size=leaf.shape)) for leaf in floats] for _ in range(2))
    outputs = [*made.results]
    if order and floats:
        slopes = graphc.grad(made.cost, wrt, disconnected_inputs="ignore")
        outputs += [made.cost, *slopes]
    if order > 1 and floats:
        along = sum((s * each.direction.astype(s.dtype)).sum() for s, each in zip(slopes, one, strict=True))
        outputs += graphc.grad(along, wrt, disconnected_inputs="ignore")
    call = graphc.function(made.inputs, outputs, mode=mode, updates=made.updates, on_unused_input="ignore")
    inputs = [leaf.name for leaf in program.leaves if not leaf.is_shared]
    for _ in range(2):
        plain = Run()
        carried_out(program, values, plain)
        if plain.margin < (MARGIN if eps > 1e-10 else 1e-9):
            break  # a decision may fall either way
        found = call(*(values[name] for name in inputs))
        found = list(found) if isinstance(found, list | tuple) else [found] if found is not None else []
        after = check_values(program, values, eps, plain, made, found)
        rest = found[len(made.results) :]
        if rest:
            slopes_, rest = rest[1 : 1 + len(wrt)], rest[1 + len(wrt) :]
            compare("slope", slopes_, one, eps, slope(program, values, one, eps, plain))
        if rest:
            compare("curvature", rest, two, eps, curvature(program, values, one, two, eps, plain))
        values = {**values, **after}


def compare(what: str, parts: list[Any], directions: list[Along], eps: float, wanted: tuple[float, float]) -> None:
    terms = [np.asarray(part, float) * each.direction for part, each in zip(parts, directions, strict=True)]
    for part, each in zip(parts, directions, strict=True):
        assert np.shape(part) == np.shape(each.direction), what
    got, size = sum(term.sum() for term in terms), sum(np.abs(term).sum() for term in terms)
    assert abs(got - wanted[0]) <= wanted[1] + 32 * eps * size + 1e-300, (what, got, wanted, size)


def check_values(program: Program, values: Values, eps: float, plain: Run, made: Built, found: list[Any]) -> Values:
    """Compare results and shared variables; what the latter have become."""
    runs = [Run(decided=plain.decisions), *(Run(ULPS * eps, seed, plain.decisions) for seed in range(3))]
    wanted, *noisy = [carried_out(program, values, run) for run in runs]
    for place, (got, want) in enumerate(zip(found, wanted.results, strict=False)):
        near(f"result {place}", got, want, [each.results[place] for each in noisy], eps)
    if len(found) > len(wanted.results):
        near("cost", found[len(wanted.results)], wanted.cost, [each.cost for each in noisy], eps)
    after = {}
    for name, want in wanted.after.items():
        got = made.leaves[name].get_value()
        near(name, got, want, [each.after[name] for each in noisy], eps)
        assert got.dtype == values[name].dtype
        after[name] = got
    return after


def near(what: str, got: Any, want: Any, noisy: list[Any], eps: float) -> None:
    assert np.shape(got) == np.shape(want), (what, got, want)
    if np.asarray(want).dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, what)
        return
    worst = max(np.max(np.abs(each - want), initial=0.0) for each in noisy)
    bound = SAFETY * worst + 8 * eps * np.max(np.abs(want), initial=0.0)
    assert np.all(np.abs(got - want) <= bound), (what, got, want, bound)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(40)))
def test_interpreted(seed: int) -> None:
    check(seed, "interpreted", 2)


# Some programs have sizes that only the kernel knows, of steps that a loop within took: these are interpreted.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a size depends on")
@pytest.mark.parametrize(
    ("seed", "mode"),
    some([*((seed, "python") for seed in range(70, 80)), *((seed, "compiled") for seed in range(90, 96))]),
)
def test_generated(seed: int, mode: str) -> None:
    check(seed, mode, seed % 3)
