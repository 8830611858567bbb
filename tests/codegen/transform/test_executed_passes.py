"""Every pass of the compiler, by running what it was given and what it made of that, on the same arguments."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.frontend.language import PRELUDE
from graphc.codegen.transform.forwarding import forward_stores
from graphc.codegen.transform.independence import mark_independent
from graphc.codegen.transform.merge_rows import merge_rows
from graphc.codegen.transform.outline import outline
from graphc.codegen.transform.outline_regions import FIXED_NAMES
from graphc.codegen.transform.simplify import STEPS, simplify
from graphc.codegen.transform.sums import narrow_sums
from graphc.ir.node import Node, Op, Sample
from graphc.ir.verify import Step, on_pass
from graphc.ir.walk import Graph
from graphc.loopir.ir import Buffer, Function, Let, Loop, Set
from graphc.loopir.syntax import Names, print_functions
from graphc.loopir.verify import verify_functions
from graphc.loopir.visit import statements
from graphc.options import options
from graphc.rewrite import rewrite
from graphc.startup.record import replace
from tests.support.loop_machine import run
from tests.support.loop_text import parse_functions
from tests.support.op_samples import NAMES, SAMPLES, draw, inputs_for
from tests.support.random_loops import LENGTH, NUMBERS, OUT, READ, WRITTEN, F, random_loops
from tests.support.watched import check_passes, check_text, differs, interpreted, watch
from tests.support.wide_programs import arguments, difference, has_float32, random_program, rounded

PROGRAMS = 20
LOOPS = 100
SIZES = ((3, 4), (1, 1), (5, 2), (0, 3), (2, 0), (1, 7), (17, 3))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_passes_over_random_programs(seed: int) -> None:
    choice = random.Random(seed)
    program = random_program(seed)
    with options.change(outline=choice.choice(["auto", "auto", "always", "never"])):
        found = watch(lambda: program.compile("python"))
    check_text(found)
    for rows, columns in choice.sample(SIZES, 2):
        inputs, shared = arguments(program, rows, columns, seed, special=choice.random() < 0.25)
        for (leaf, _), value in zip(program.shared, shared, strict=True):
            leaf.set_value(value)
        check_passes(found, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_rewriting_passes_over_random_programs(seed: int) -> None:
    """The graph before a pass and after it, interpreted: they differ by roundings at most."""
    rng = np.random.default_rng(seed)
    program = random_program(seed)
    narrow = has_float32(program)
    steps: list[Step] = []
    with on_pass(steps.append):
        rewrite(Graph(tuple(leaf for leaf, _ in program.inputs), tuple(program.outputs)))
    inputs, shared = arguments(program, 3, 4, seed, special=seed % 4 == 0)

    def outcome(graph: Graph, near: bool) -> Any:
        nodes = [node for node, _ in (*program.inputs, *program.shared)]
        values = rounded([*inputs, *shared], narrow, rng) if near else [*inputs, *shared]
        return interpreted(graph, dict(zip(nodes, values, strict=True))), []

    for step in steps:
        assert isinstance(step.before, Graph) and isinstance(step.after, Graph)
        disjoint = [outcome(step.before, near=True) for _ in "ab"]
        found, want = outcome(step.after, near=False), outcome(step.before, near=False)
        assert not difference(found, want, disjoint, narrow), step.name


STATIC: dict[str, Callable[[Node, int], Node]] = {
    "softmax": lambda x, axis: T.softmax(x, axis=axis),
    "log_softmax": lambda x, axis: T.log_softmax(x, axis=axis),
    "its gradient": lambda x, axis: graphc.grad((T.softmax(x, axis=axis) * x).sum(), x),
    "less the mean": lambda x, axis: x - x.mean(axis=axis, keepdims=True),
    "over the largest": lambda x, axis: x / x.max(axis=axis, keepdims=True),
    "running sum": lambda x, axis: T.cumsum(x, axis=axis) - x.sum(axis=axis, keepdims=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(None, 5, 1), (2, 5, 1), (None, 4, None), (1, None, 3), (3, 2), (None, 1), (5, 1)])
@pytest.mark.parametrize("name", STATIC)
def test_passes_over_known_sizes(name: str, shape: tuple[int | None, ...]) -> None:
    """Loops of few iterations that are known are written out, between others."""
    x = T.tensor(random.Random(name).choice(["float32", "float64"]), shape=shape, name="x")
    for axis in range(len(shape)):
        found = watch(lambda axis=axis: graphc.function([x], STATIC[name](x, axis), "python"))  # type: ignore[misc]
        values = np.random.default_rng(axis).normal(size=[size or 3 for size in shape]).astype(x.dtype)
        check_passes(found, [values])


@pytest.mark.slow
@pytest.mark.parametrize(("op", "sample"), SAMPLES, ids=NAMES)
def test_passes_over_every_op(op: Op, sample: Sample) -> None:
    rng = np.random.default_rng(9)
    values = [draw(argument, rng) for argument in sample.args]
    inputs = inputs_for(sample, values)
    found = watch(lambda: graphc.function(inputs, sample.build(*inputs), "python", on_unused_input="ignore"))
    check_text(found)
    check_passes(found, values)


# Random loops --------------------------------------------------------------------------------------------------------


Functions = tuple[Function, ...]


def taken(function: Function) -> set[str]:
    own = {stmt.var.name for stmt in statements(function.body) if isinstance(stmt, Let | Set | Loop)}
    return {*own, *(param.name for param in function.params), *FIXED_NAMES, *PRELUDE}


def forwarded(function: Function) -> Function:
    return replace(function, body=forward_stores(function.body, Names(taken(function)).fresh))


def outlined(function: Function, policy: str) -> tuple[Function, ...]:
    """A kernel whose sums of rows are narrow, in functions; chunks of few rows have copies to add into."""
    names = Names(taken(function))
    narrowed = narrow_sums(function.body, names.fresh)
    found = outline(mark_independent(narrowed.body), names, policy)
    known = (narrowed.changed.get(param, param) if isinstance(param, Buffer) else param for param in function.params)
    params = (*known, *narrowed.narrow, *found.scalars, *found.copies)
    return (*found.functions, replace(function, body=found.body, params=params))


def compare(what: str, before: Functions, after: Functions, left: Sequence[Buffer], exact: bool) -> None:
    """That two forms of a kernel leave the same in these buffers."""
    rng = np.random.default_rng(1)
    given = {b.name: rng.normal(size=LENGTH).astype(b.dtype) for b in (*READ, F)}
    limits = dict.fromkeys(given, LENGTH)
    verify_functions(after)
    assert parse_functions(print_functions(after)) == after
    outcomes = []
    for functions in (before, after):
        code, found = run(functions, "kernel", given, NUMBERS, limits, (), exact)
        outcomes.append((code, {buffer.name: found[buffer.name] for buffer in left}))
    problem = differs(outcomes[1], outcomes[0])
    assert not problem, f"{what}: {problem}\n{print_functions(before)}\nbecomes\n{print_functions(after)}"


@pytest.mark.slow
@pytest.mark.parametrize("seeds", range(0, LOOPS, 10))
def test_passes_over_random_loops(seeds: int) -> None:
    for seed in range(seeds, seeds + 10):
        first = random_loops(seed)
        for name, step in STEPS:
            compare(name, (first,), (replace(first, body=step(first.body)),), WRITTEN, False)
        plain = replace(first, body=simplify(first.body))
        merged = replace(plain, body=merge_rows(plain.body))
        compare("merge_rows", (plain,), (merged,), WRITTEN, False)
        for function in (plain, merged):
            compare("forward_stores", (function,), (forwarded(function),), [OUT], False)
        last = forwarded(merged)
        compare("mark_independent", (last,), (replace(last, body=mark_independent(last.body)),), WRITTEN, True)
        for policy in ("auto", "always"):
            compare(f"outline {policy}", (last,), outlined(last, policy), [OUT], True)
