"""What NumPy says of a program: its values, and slopes along a direction.

In: a program and arguments. Out: a `Case`. Slopes of first and second order are difference quotients in long double.
What rounding may do to a slope that is computed: a few eps of the sum of magnitudes over all paths for each step, and
the change of the quotient when every value is off by a rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.corners.bounded import (
    LONG,
    Array,
    Bounded,
    Evaluation,
    add,
    beside,
    cast,
    evaluating,
    given,
    scaled,
    sqr,
    sum_,
)
from tests.support.corners.programs import Program


def evaluated(program: Program, leaves: Sequence[Bounded], evaluation: Evaluation) -> list[Bounded]:
    """All values."""
    given_leaves = iter(leaves)
    with evaluating(evaluation):
        values: list[Bounded] = []
        for step in program.values:
            value = next(given_leaves) if step.kind else step.oracle(*(values[place] for place in step.operands))
            values.append(value)
    return values


def cost_of(program: Program, values: Sequence[Bounded], evaluation: Evaluation) -> Bounded:
    """The sum of the results, and half of that of their squares."""
    with evaluating(evaluation):
        total = given(np.zeros(()))
        for place in program.costs:
            value = cast(values[place], "float64")
            axes = tuple(range(value.num.ndim))
            total = add(total, add(sum_(value, axes), scaled(sum_(sqr(value), axes), 0.5)))
    return total


@dataclass(frozen=True, slots=True)
class Slopes:
    """First and second derivative along a direction, and how far a right one may be off."""

    first: Any
    first_error: Any
    second: Any
    second_error: Any


def slopes(program: Program, arrays: Sequence[Array], directions: Sequence[Array]) -> Slopes | None:
    """By difference quotients; None where the function is not smooth here, or not known well enough."""
    moved = dict(zip(program.variables, directions, strict=True))

    def at(offset: float, error: float, evaluation: Evaluation) -> Bounded:
        leaves = []
        for place, value in zip(program.leaves, arrays, strict=True):
            direction = moved.get(place)
            if direction is None:
                leaves.append(given(value))
            else:
                leaves.append(beside(value, LONG(offset) * direction, LONG(error) * np.abs(direction.astype(LONG))))
        return cost_of(program, evaluated(program, leaves, evaluation), evaluation)

    def differences(step: float, seed: int | None) -> tuple[Any, Any] | None:
        values, decided = [], set()
        for k in (-2, -1, 0, 1, 2):
            noise = None if seed is None else np.random.default_rng(seed)
            evaluation = Evaluation(rounds=False, noise=noise)
            values.append(at(k * step, 0.0, evaluation).ref)
            decided.add(b"|".join(evaluation.decisions))
        if len(decided) > 1 or not np.isfinite(values).all():
            return None
        a, b, c, d, e = values
        step_ = LONG(step)
        return (a - 8 * b + 8 * d - e) / (12 * step_), (-a + 16 * b - 30 * c + 16 * d - e) / (12 * step_ * step_)

    reach = 2.0**-8  # as far as the quotients go: nothing may be decided otherwise within it
    paths = at(0.0, reach, Evaluation(rounds=False)).err / LONG(reach)
    narrow = any(step.dtype == "float32" for step in program.values)
    info = np.finfo("float32" if narrow else "float64")
    if not paths < np.sqrt(LONG(info.max)):  # a part of the gradient may overflow
        return None
    found = [differences(2.0**-9, None), differences(2.0**-10, None), *(differences(2.0**-10, seed) for seed in (1, 2))]
    known = [pair for pair in found if pair is not None]
    if len(known) < len(found):
        return None
    coarse, (first, second), *noisy = known
    first_spread, second_spread = (max(abs(pair[k] - known[1][k]) for pair in noisy) for k in (0, 1))
    eps = LONG(info.eps)
    most = max((value.size for value in arrays), default=1)
    roundings = 8 * len(program.values) + most
    floor = roundings * eps * paths
    return Slopes(
        first,
        floor + 32 * first_spread + 4 * abs(coarse[0] - first) + LONG(1e-13) * paths,
        second,
        floor
        + roundings * eps * abs(second)
        + 64 * second_spread
        + 4 * abs(coarse[1] - second)
        + LONG(1e-9) * (paths + abs(second)),
    )


@dataclass(slots=True)
class Case:
    """A program with arguments and what NumPy says of them; `raises` where NumPy has no answer."""

    program: Program
    arrays: list[Array]
    directions: list[Array]
    values: list[Bounded]
    slopes: Slopes | None
    raises: str = ""
    seed: int = 0
    """Of the directions."""


def case(program: Program, arrays: list[Array], seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    variables = dict(zip(program.leaves, arrays, strict=True))
    directions = [np.asarray(rng.uniform(-1, 1, variables[place].shape)) for place in program.variables]
    try:
        values = evaluated(program, [given(value) for value in arrays], Evaluation())
        # at a pole, or where a value overflows or vanishes, a slope is infinite or NaN
        parts = [part for value in values if value.is_float for part in (value.num, value.ref, value.err)]
        smooth = all(np.isfinite(part).all() for part in parts)
        found = slopes(program, arrays, directions) if program.order and smooth else None
    except (ValueError, IndexError) as error:
        return Case(program, arrays, directions, [], None, f"{type(error).__name__}: {error}", seed)
    return Case(program, arrays, directions, values, found, seed=seed)
