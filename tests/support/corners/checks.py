"""Programs compiled and held to what NumPy says.

In: programs with their cases, and a `Setting`. Out: for each what is wrong, or nothing. Several are compiled as one
function, since a compilation costs more than a call.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.functions.native import Compiled
from graphc.ir.node import Node
from graphc.options import options
from tests.support.corners.bounded import LONG, Array, Bounded
from tests.support.corners.programs import Program
from tests.support.corners.slopes import Case, Slopes


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


def cost_node(program: Program, nodes: Sequence[Node]) -> Node:
    total = T.as_tensor(0.0)
    for place in program.costs:
        value = T.cast(nodes[place], "float64")
        total = total + value.sum() + 0.5 * T.sqr(value).sum()
    return total


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
