"""Random programs, and arguments for them.

In: a name, from which all follows. Out: a `Program`, a list of values, leaves first; arrays for its leaves.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.support.corners.bounded import Array
from tests.support.corners.builder import LARGEST, Builder
from tests.support.corners.steps import FLOATS, SIGNED, UNSIGNED, Size, Step, count_at_most, leaf

SIZES: Sequence[Size] = ("n", "n", "m", 0, 1, 1, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9)
LARGE: Sequence[Size] = (16, 17, 33, 255, 256, 257)
RUNTIME = (0, 1, 1, 2, 3, 4, 5, 7, 17, 40)
VALUES = ("ordinary", "ordinary", "special", "wide")


@dataclass(frozen=True, slots=True)
class Program:
    """Values, leaves among them, of which some are results and some new values of shared variables."""

    values: tuple[Step, ...]
    outputs: tuple[int, ...]
    updates: tuple[tuple[int, int], ...] = ()
    order: int = 0
    """Of the derivatives of a cost, which is made of the outputs."""

    @property
    def leaves(self) -> list[int]:
        return [place for place, step in enumerate(self.values) if step.kind]

    @property
    def variables(self) -> list[int]:
        """The leaves that the cost is differentiated by."""
        return [place for place in self.leaves if self.values[place].is_float] if self.order else []

    @property
    def costs(self) -> list[int]:
        return [place for place in self.outputs if self.values[place].is_float]

    def __str__(self) -> str:
        lines = [f"v{place} = {step.text}: {step.dtype}{list(step.sizes)}" for place, step in enumerate(self.values)]
        return "\n".join([*lines, f"outputs {self.outputs} updates {self.updates} derivatives {self.order}"])


def random_program(name: str) -> Program:
    """The program of this name."""
    draw = random.Random(name)
    axes = [draw.choice(LARGE if draw.random() < 0.05 else SIZES) for _ in range(draw.randrange(1, 4))]
    narrow = draw.random() < 0.4
    mixed = draw.random() < 0.25
    builder = Builder(draw)
    for number in range(draw.randrange(1, 4)):
        rank = min(draw.choice([0, 1, 2, 2, 2, 3, 3, 4]), 4)
        sizes = tuple(draw.choice([*axes, *axes, 1]) for _ in range(rank))
        if sum(isinstance(size, int) and size > 9 for size in sizes) > 1:
            sizes = tuple(size if isinstance(size, str) or size < 10 else 3 for size in sizes)
        if count_at_most(sizes, dict.fromkeys("nm", 2)) > LARGEST:
            sizes = sizes[:2]
        dtype = "float32" if narrow != (mixed and draw.random() < 0.5) else "float64"
        if number and draw.random() < 0.35:
            dtype = draw.choice((*SIGNED, *SIGNED, *UNSIGNED, "bool"))
        builder.steps.append(leaf(dtype, sizes, draw.choice(["input"] * 6 + ["mutable"])))
    shared = None
    if draw.random() < 0.2:
        shared = len(builder.steps)
        sizes = tuple(draw.choice(["n", "m"]) for _ in range(draw.randrange(3)))
        builder.steps.append(leaf("float32" if narrow else "float64", sizes, "shared"))
    leaves = len(builder.steps)
    for _ in range(draw.choice([1, 1, 2, 2, 3, 3, 4, 5, 9])):
        builder.grow()
    made = list(range(leaves, len(builder.steps))) or [0]
    outputs = {made[-1], *(draw.choice(made) for _ in range(draw.randrange(2)))}
    if draw.random() < 0.05:
        outputs.add(draw.randrange(leaves))
    updates = []
    if shared is not None:
        wanted = builder.steps[shared]
        same = [k for k in made if builder.steps[k].sizes == wanted.sizes and builder.steps[k].dtype == wanted.dtype]
        if same:
            updates.append((shared, draw.choice(same)))
    order = draw.choice([0, 0, 0, 0, 0, 1, 1, 2])
    program = Program(tuple(builder.steps), tuple(sorted(outputs)), tuple(updates), order)
    return pruned(program if program.costs and program.variables else replace(program, order=0))


def pruned(program: Program) -> Program:
    """Without what no result needs."""
    wanted = {*program.outputs, *(place for pair in program.updates for place in pair)}
    for place in range(len(program.values) - 1, -1, -1):
        if place in wanted:
            wanted |= set(program.values[place].operands)
    kept = sorted(wanted)
    new = {old: place for place, old in enumerate(kept)}
    values = tuple(
        replace(program.values[old], operands=tuple(new[k] for k in program.values[old].operands)) for old in kept
    )
    updates = tuple((new[a], new[b]) for a, b in program.updates)
    return Program(values, tuple(new[k] for k in program.outputs), updates, program.order)


# Arguments -----------------------------------------------------------------------------------------------------------


def arguments(program: Program, name: str) -> list[Array]:
    """Arrays for the leaves, in order, from a name."""
    draw = random.Random(name)
    rng = np.random.default_rng(draw.getrandbits(60))
    small = draw.random() < 0.6
    sizes = {letter: draw.choice(RUNTIME[:6] if small else RUNTIME) for letter in "nm"}
    while max(count_at_most(step.sizes, sizes) for step in program.values) > LARGEST:
        sizes = {letter: (size + 1) // 2 for letter, size in sizes.items()}
    kind = "ordinary" if program.order else draw.choice(VALUES)
    arrays = []
    for place in program.leaves:
        step = program.values[place]
        shape = tuple(size if isinstance(size, int) else sizes[size] for size in step.sizes)
        arrays.append(random_array(rng, step.dtype, shape, kind))
    return arrays


def random_array(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], kind: str) -> Array:
    """Ordinary numbers, some infinities, NaN and zeros among them, or magnitudes of the whole range."""
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype not in FLOATS:
        info = np.iinfo(dtype)
        low, high = (int(info.min), int(info.max)) if kind != "ordinary" else (max(int(info.min), -5), 6)
        return np.asarray(rng.integers(low, high, shape, dtype=dtype, endpoint=True))
    values = np.asarray(rng.normal(size=shape), dtype)
    if kind == "wide":
        info_of = np.finfo(dtype)
        powers = rng.integers(info_of.minexp - info_of.nmant, info_of.maxexp, shape)
        values = np.asarray(np.ldexp(rng.uniform(1, 2, shape) * rng.choice([-1, 1], shape), powers)).astype(dtype)
    if kind != "ordinary" and values.size:
        info_of = np.finfo(dtype)
        specials = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, info_of.max, -info_of.max, info_of.smallest_subnormal,
                             info_of.smallest_normal, 1, -1], dtype)  # fmt: skip
        spots = rng.integers(0, values.size, 1 + values.size // 8)
        values.reshape(-1)[spots] = rng.choice(specials, spots.size)
    return values
