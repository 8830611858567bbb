"""Random programs, run and held to what NumPy says.

In: a number, from which a program follows. Out: what is wrong with what graphc computes, or nothing.

A `Program` is a list of values, leaves first; several are compiled as one function, since a compilation costs more
than a call. Gradients of first and second order along a direction are held to difference quotients in long double. What
rounding may do to them is: a few eps of the sum of magnitudes over all paths for each step, and the change of the
quotient when every value is off by a rounding.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import graphc
import graphc.tensor as T
from corners.bounded import LONG, Array, Bounded, Evaluation, add, beside, evaluating, given, scaled, sqr, sum_
from corners.bounded import cast as bounded_cast
from corners.steps import FLOATS, SIGNED, UNSIGNED, Builder, Size, Step, leaf
from graphc.callables import Compiled
from graphc.errors import GraphcError
from graphc.ir.node import Node
from graphc.options import options

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


@dataclass(frozen=True, slots=True)
class Setting:
    """How a function is compiled and run."""

    mode: str = "compiled"
    outline: str = "auto"
    threads: int | None = None
    chunk: int = 0


def random_setting(draw: random.Random) -> Setting:
    mode = draw.choice(["compiled"] * 6 + ["python"] * 13 + ["interpreted"])
    outline = draw.choice(["auto", "auto", "always", "never"])
    return Setting(mode, outline, draw.choice([None, 1, 2, 3]), draw.choice([0, 0, 1, 20]))


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
    sizes: dict[Size, int] = {letter: draw.choice(RUNTIME[:6] if small else RUNTIME) for letter in "nm"}
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


LAYOUTS: Sequence[Callable[[Array], Array]] = (
    np.asfortranarray,
    lambda a: a[::-1].copy()[::-1],
    lambda a: a[..., ::-1].copy()[..., ::-1],
    lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    lambda a: np.pad(a, 2)[(slice(2, -2),) * a.ndim],
)


def laid_out(draw: random.Random, value: Array) -> Array:
    """The same elements, perhaps in other places of memory; always a copy."""
    return value.copy() if not value.ndim or draw.random() < 0.6 else draw.choice(LAYOUTS)(value)


# What NumPy says -----------------------------------------------------------------------------------------------------


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
            value = bounded_cast(values[place], "float64")
            axes = tuple(range(value.num.ndim))
            total = add(total, add(sum_(value, axes), scaled(sum_(sqr(value), axes), 0.5)))
    return total


def cost_node(program: Program, nodes: Sequence[Node]) -> Node:
    total = T.as_tensor(0.0)
    for place in program.costs:
        value = T.cast(nodes[place], "float64")
        total = total + value.sum() + 0.5 * T.sqr(value).sum()
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

    tiny = 2.0**-30
    paths = at(0.0, tiny, Evaluation(rounds=False)).err / LONG(tiny)
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


# Compiled ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Built:
    """A program as a part of a function: the numbers of its inputs and results there."""

    program: Program
    inputs: list[Any]
    shared: list[Any]
    outputs: list[Node]
    updates: list[tuple[Any, Node]]


def build(program: Program, name: str) -> Built:
    """Nodes for a program. Raises AssertionError where a type is not what NumPy's rules say."""
    inputs: list[Any] = []
    shared: list[Any] = []
    nodes: list[Node] = []
    for place, step in enumerate(program.values):
        if step.kind == "shared":
            nodes.append(graphc.shared(np.zeros((0,) * step.ndim, step.dtype), f"{name}v{place}"))
            shared.append(nodes[-1])
        elif step.kind:
            shape = tuple(size if isinstance(size, int) else None for size in step.sizes)
            nodes.append(T.tensor(step.dtype, shape, f"{name}v{place}"))
            inputs.append(graphc.In(nodes[-1], mutable=step.kind == "mutable"))
        else:
            nodes.append(step.graph(*(nodes[k] for k in step.operands)))
        node = nodes[-1]
        assert (node.dtype, node.ndim) == (step.dtype, step.ndim), (
            f"{step.text}: {node.type}, not {step.dtype} {step.sizes}"
        )
        for size, known in zip(step.sizes, node.type.shape, strict=True):
            assert not isinstance(size, int) or not isinstance(known, int) or size == known, f"{step.text}: {node.type}"
    outputs = [nodes[place] for place in program.outputs]
    if program.order:
        directions = [T.tensor("float64", (None,) * nodes[k].ndim, f"{name}d{k}") for k in program.variables]
        inputs += [graphc.In(direction) for direction in directions]
        cost = cost_node(program, nodes)
        variables = [nodes[k] for k in program.variables]
        for order in range(program.order):
            gradients = graphc.grad(cost, variables, disconnected_inputs="ignore")
            cost = T.as_tensor(0.0)
            for gradient, direction in zip(gradients, directions, strict=True):
                same = T.broadcast_to(direction, gradient.shape) if gradient.ndim else direction
                cost = cost + (T.cast(gradient, "float64") * same).sum()
            outputs += [cost, *(gradients if order == 0 else ())]
    updates = [(nodes[a], nodes[b]) for a, b in program.updates]
    return Built(program, inputs, shared, outputs, updates)


def compile_programs(built: Sequence[Built], setting: Setting) -> graphc.Function:
    """Programs as one function."""
    with options.change(outline=setting.outline, cache=False, compile="inline"):
        call = graphc.function(
            [item for one in built for item in one.inputs],
            [node for one in built for node in one.outputs],
            setting.mode,
            updates=[pair for one in built for pair in one.updates],
            on_unused_input="ignore",
            threads=setting.threads,
        )
    if setting.chunk and isinstance(call, Compiled) and call.library.settings is not None:
        call.library.settings[:] = [setting.threads or 1, 2, setting.chunk, 0, 1]
    return call


# Held together -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """What was looked at: elements, those that rounding decides, and numbers where NumPy has none."""

    programs: int = 0
    elements: int = 0
    undecided: int = 0
    better: int = 0
    slopes: int = 0
    rough: int = 0
    better_of: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Case:
    """A program with arguments and what NumPy says of them; `raises` where NumPy has no answer."""

    program: Program
    arrays: list[Array]
    directions: list[Array]
    values: list[Bounded]
    slopes: Slopes | None
    raises: str = ""


def case(program: Program, arrays: list[Array], seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    variables = dict(zip(program.leaves, arrays, strict=True))
    directions = [np.asarray(rng.uniform(-1, 1, variables[place].shape)) for place in program.variables]
    try:
        values = evaluated(program, [given(value) for value in arrays], Evaluation())
        found = slopes(program, arrays, directions) if program.order else None
    except (ValueError, IndexError) as error:
        return Case(program, arrays, directions, [], None, f"{type(error).__name__}: {error}")
    return Case(program, arrays, directions, values, found)


def mismatch(got: Array, want: Bounded, tally: Tally) -> str:
    """How a result differs from what it may be; "" where it does not."""
    if (got.dtype, got.shape) != (want.num.dtype, want.num.shape):
        return f"{got.dtype}{got.shape} instead of {want.num.dtype}{want.num.shape}"
    with np.errstate(all="ignore"):
        same = (got == want.num) | (np.isnan(got) & np.isnan(want.num))
        wide = got.astype(LONG) if want.is_float else got
        near = (wide == want.ref) | (np.abs(wide - want.ref) <= want.err) if want.is_float else same
        undecided = ~np.isfinite(want.err)
        wrong = ~(same | near | undecided)
        sign = same & (got == 0) & (np.signbit(got) != np.signbit(want.num)) if want.is_float and want.exact else wrong
    tally.elements += got.size
    tally.undecided += int(np.sum(undecided))
    if want.is_float:
        tally.better += int(np.sum(near & ~same & ~undecided & ~np.isfinite(want.num)))
    for what, places in (("", wrong), ("the sign of zero: ", sign)):
        if np.any(places):
            at = tuple(int(k) for k in np.argwhere(places)[0])
            bound = want.err[at]
            return f"{what}at {at} {got[at]!r} instead of {want.num[at]!r} ({want.ref[at]!r} within {bound!r})"
    return ""


def run(
    built: Sequence[Built], cases: Sequence[Case], call: graphc.Function, draw: random.Random, tally: Tally
) -> list[str]:
    """For each program what is wrong with it, "" where nothing is. Raises what the call raises."""
    inputs: list[Array] = []
    for one, this in zip(built, cases, strict=True):
        values = dict(zip(this.program.leaves, this.arrays, strict=True))
        inputs += [laid_out(draw, values[k]) for k in this.program.leaves if this.program.values[k].kind != "shared"]
        inputs += [direction.copy() for direction in this.directions]
        for variable, place in zip(
            one.shared, [k for k in this.program.leaves if this.program.values[k].kind == "shared"], strict=True
        ):
            variable.set_value(values[place])
    before = [value.tobytes() for value in inputs]
    results = iter([np.array(result) for result in call(*inputs)])
    mutable = [item.mutable for one in built for item in one.inputs]
    for value, old, free in zip(inputs, before, mutable, strict=True):
        if not free and value.tobytes() != old:
            return ["an input was written"] * len(built)
    return [
        _judged(one, this, [next(results) for _ in one.outputs], tally) for one, this in zip(built, cases, strict=True)
    ]


def _judged(one: Built, this: Case, results: Sequence[Array], tally: Tally) -> str:
    if this.raises:
        return f"a result where NumPy says {this.raises}"
    program, found = this.program, []
    count = len(program.outputs)
    for place, got in zip(program.outputs, results[:count], strict=True):
        before = tally.better
        found.append((f"v{place}", mismatch(got, this.values[place], tally)))
        if tally.better > before:
            text = re.sub(r"\bv\d+|[(\[].*", "", program.values[place].text).strip()
            tally.better_of[text] = tally.better_of.get(text, 0) + 1
    kept = {a: variable for (a, _), (variable, _) in zip(program.updates, one.updates, strict=True)}
    for a, b in program.updates:
        found.append((f"new v{a}", mismatch(np.asarray(kept[a].get_value()), this.values[b], tally)))
    if program.order:
        tally.slopes += 1
        tally.rough += this.slopes is None
        if this.slopes is not None:
            found += _judged_slopes(program, this, this.slopes, results[count:])
    return "; ".join(f"{name}: {text}" for name, text in found if text)


def _judged_slopes(program: Program, this: Case, right: Slopes, results: Sequence[Array]) -> list[tuple[str, str]]:
    variables = len(program.variables)
    outside = LONG(0)
    for gradient, direction in zip(results[1 : 1 + variables], this.directions, strict=True):
        outside += np.sum(gradient.astype(LONG) * direction)
    pairs = [
        ("slope", LONG(results[0]), right.first, right.first_error),
        ("gradient", outside, right.first, right.first_error),
    ]
    if program.order > 1:
        pairs.append(("second slope", LONG(results[1 + variables]), right.second, right.second_error))
    return [
        (name, "" if abs(got - want) <= error else f"{got!r} instead of {want!r} within {error!r}")
        for name, got, want, error in pairs
    ]


def failures(programs: Sequence[Program], cases: Sequence[Sequence[Case]], setting: Setting, tally: Tally) -> list[str]:
    """For each program what is wrong in any of its cases; one that NumPy refuses must be refused."""
    found = [""] * len(programs)
    try:
        built = [build(program, f"p{number}") for number, program in enumerate(programs)]
        call = compile_programs(built, setting)
    except Exception as error:
        if len(programs) == 1:
            refused = all(one.raises for one in cases[0])
            return ["" if refused and isinstance(error, GraphcError) else f"{type(error).__name__}: {error}"]
        return [failures([p], [c], setting, tally)[0] for p, c in zip(programs, cases, strict=True)]
    tally.programs += len(programs)
    draw = random.Random(1)
    for turn in zip(*cases, strict=True):
        try:
            texts = (
                run(built, turn, call, draw, tally) if len(turn) == 1 or not any(one.raises for one in turn) else None
            )
        except GraphcError as error:
            texts = ["" if turn[0].raises else f"{type(error).__name__}: {error}"] if len(turn) == 1 else None
        if texts is None:  # one is refused: which, each has to say by itself
            texts = [failures([p], [[one]], setting, Tally())[0] for p, one in zip(programs, turn, strict=True)]
        found = [old or new for old, new in zip(found, texts, strict=True)]
    return found


# Shrunk --------------------------------------------------------------------------------------------------------------


def shrunk(program: Program, this: Case, setting: Setting) -> tuple[Program, Case, str]:
    """A smaller program that fails too: fewer results, and values in place of what they were computed from."""

    def fails(candidate: Program, arrays: list[Array]) -> tuple[Case, str] | None:
        try:
            attempt = case(candidate, arrays)
            text = failures([candidate], [[attempt]], setting, Tally())[0]
        except Exception:
            return None
        return (attempt, text) if text else None

    first = fails(program, this.arrays)
    if first is None:
        return program, this, ""
    best, text = first
    for _ in range(40):
        for candidate, arrays in _smaller(program, best):
            outcome = fails(candidate, arrays)
            if outcome is not None:
                program, (best, text) = candidate, outcome
                break
        else:
            break
    return program, best, text


def _smaller(program: Program, this: Case) -> list[tuple[Program, list[Array]]]:
    arrays = dict(zip(program.leaves, this.arrays, strict=True))

    def of(candidate: Program, cut: int | None = None) -> tuple[Program, list[Array]]:
        values = list(candidate.values)
        have = dict(arrays)
        if cut is not None:
            step = values[cut]
            have[cut] = this.values[cut].num
            sizes = tuple(size if isinstance(size, int) else f"s{cut}_{k}" for k, size in enumerate(step.sizes))
            values[cut] = leaf(step.dtype, sizes)
        marked = replace(candidate, values=tuple(values))
        wanted = _needed(marked)
        return pruned(marked), [have[k] for k in sorted(have) if k in wanted and marked.values[k].kind]

    found = []
    if program.updates:
        found.append(of(replace(program, updates=())))
    if program.order:
        found.append(of(replace(program, order=program.order - 1)))
    found += [of(replace(program, outputs=(k,), updates=())) for k in program.outputs if len(program.outputs) > 1]
    if this.values:
        found += [of(replace(program, outputs=(k,), updates=())) for k, step in enumerate(program.values)
                  if not step.kind and program.outputs != (k,) and (step.is_float or not program.order)]  # fmt: skip
        found += [of(program, cut=k) for k in range(len(program.values) - 1, -1, -1)
                  if not program.values[k].kind and k not in program.outputs]  # fmt: skip
    return found


def _needed(program: Program) -> set[int]:
    wanted = {*program.outputs, *(place for pair in program.updates for place in pair)}
    for place in range(len(program.values) - 1, -1, -1):
        if place in wanted:
            wanted |= set(program.values[place].operands)
    return wanted
