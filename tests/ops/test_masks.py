"""Derivatives of what a choice guards: finite where Theano's are, and zero where the choice leaves the argument out.

`guarded_gradients.txt` has programs, their arguments, and what Theano 1.0.5 makes of them: the sum, its derivatives
g_i by the arguments x_i, and those of the sum of 0.3 * (i + 1) * g_i * sin(x_i + 1); "refused" where it raises.
"""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.autodiff import grad, jvp
from graphc.ir.node import OPS, Node, Sample
from graphc.ops.elementwise import ROWS
from graphc.options import options
from tests.support.thorough import some

CASES = [
    case.split("\n--\n") for case in Path(__file__).with_name("guarded_gradients.txt").read_text().split("== ")[1:]
]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 800.0, -800.0]


def numbers(text: str) -> Any:
    return np.array(eval(text, {"nan": math.nan, "inf": math.inf}))


def build(program: str) -> tuple[list[Node], list[Any], list[Node]]:
    """The variables of a program, their values, and its sum with two orders of derivatives."""
    values, formula = read(program)
    variables = {name: T.TensorType("float64", (False,) * value.ndim)(name) for name, value in values.items()}
    return list(variables.values()), list(values.values()), derived(formula, variables)


def read(program: str) -> tuple[dict[str, Any], str]:
    """The values of the arguments of a program by name, and its formula."""
    _, *lines = program.split("\n")
    return {name: numbers(text) for name, text in (line.split(" = ") for line in lines[:-1])}, lines[-1]


def derived(formula: str, variables: dict[str, Node]) -> list[Node]:
    """The sum of a formula with two orders of derivatives."""
    nodes = list(variables.values())
    cost = eval(formula, {"T": T, "inf": math.inf, "abs": abs, "np": np, **variables}).sum()
    first = grad(cost, nodes)
    parts = [(0.3 * (i + 1.0) * g * T.sin(x + 1)).sum() for i, (g, x) in enumerate(zip(first, nodes, strict=True))]
    second = grad(sum(parts[1:], parts[0]), nodes, disconnected_inputs="ignore")
    return [cost, *first, *second]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "theano"), CASES, ids=[case[0].split("\n")[0] for case in CASES])
def test_guarded_programs_are_finite_where_theano_is(program: str, theano: str) -> None:
    inputs, values, outputs = build(program)
    check(graphc.function(inputs, outputs, mode="interpreted")(*values), theano)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "theano"), CASES, ids=[case[0].split("\n")[0] for case in CASES])
def test_guarded_programs_are_differentiated_within_jit(program: str, theano: str) -> None:
    """There a node that is asked for its truth value is an error of the program's."""
    values, formula = read(program)
    jitted = graphc.jit(lambda *args: derived(formula, dict(zip(values, args, strict=True))))
    with options.change(mode="interpreted"):
        check(jitted(*values.values()), theano)


def check(results: list[Any], theano: str) -> None:
    if theano.strip() == "refused":
        assert all(np.isfinite(result).all() for result in results)
        return
    for result, expected in zip(results, map(numbers, theano.strip().split("\n")), strict=True):
        known = np.isfinite(expected)
        np.testing.assert_allclose(result[known], expected[known], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("fast_math", some([False, True]))
@pytest.mark.parametrize("start", range(0, len(CASES), 20))
def test_compiled_code_keeps_the_choice_outside(start: int, fast_math: bool) -> None:
    cases = CASES[start : start + 20]
    built = [build(program) for program, _ in cases]
    inputs, values, outputs = ([*chain(*parts)] for parts in zip(*built, strict=True))
    results = graphc.function(inputs, outputs, fast_math=fast_math)(*values)
    for (_, theano), (_, _, own) in zip(cases, built, strict=True):
        mine, results = results[: len(own)], results[len(own) :]
        if not (fast_math and "inf" in theano):
            check(mine, theano)


def guarded(sample: Sample, negate: bool) -> tuple[list[Node], list[Node], Node, list[Node]]:
    """Arguments and condition of a sample's op, and derivatives without and with a choice around it."""
    mask = T.TensorType("bool", (False,))("mask")
    args = [
        T.TensorType({"bool": "bool"}.get(a.category, "float64"), (False,))(f"x{i}") for i, a in enumerate(sample.args)
    ]
    value = sample.build(*args)
    chosen = T.switch(mask, 0, value) if negate else T.switch(mask, value, 0)
    wrt = [arg for arg in args if arg.dtype == "float64"]
    free, held = (grad(2.0 * each.sum(), wrt, disconnected_inputs="ignore") for each in (value, chosen))
    return args, held, mask, free


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, row in sorted(ROWS.items()) if row.partials and any(row.partials)])
@pytest.mark.parametrize("negate", [False, True])
def test_what_a_choice_leaves_out_has_derivative_zero(name: str, negate: bool) -> None:
    sample = next(s for s in OPS[name].samples if s.differentiable)
    args, held, mask, free = guarded(sample, negate)
    f = graphc.function([mask, *args], [*held, *free], mode="interpreted", on_unused_input="ignore")
    rng = np.random.default_rng(0)
    values = [rng.choice(SPECIAL, 200) if a.dtype == "float64" else rng.random(200) < 0.5 for a in args]
    chosen = rng.random(200) < 0.5
    results = f(chosen, *values)
    counts = chosen != negate
    for got, expected in zip(results[: len(held)], results[len(held) :], strict=True):
        np.testing.assert_array_equal(got[counts], expected[counts])
        np.testing.assert_array_equal(got[~counts], 0.0)


@pytest.mark.slow
def test_chains_of_any_depth_are_taken_apart() -> None:
    x = T.vector("x")
    y = T.sqrt(x)
    for _ in range(3000):
        y = y.reshape((x.shape[0], 1)).reshape((x.shape[0],)) + T.switch(x > 0, y, 0)
    g = grad(y.sum(), x)
    np.testing.assert_array_equal(graphc.function([x], g, mode="interpreted")([-1.0, 0.0]), [math.nan, math.inf])


def test_a_scalar_condition_is_one_of_a_sum() -> None:
    """A choice by a scalar is made around the sum that a broadcast becomes, where it is the same for all terms."""
    x, s = T.dvector("x"), T.dscalar("s")
    g = grad(T.switch(s > 0, x * T.log(s), 0).sum(), s)
    f = graphc.function([x, s], g, mode="interpreted")
    assert f([1.0, 2.0], 0.0) == 0.0
    assert f([1.0, 2.0], 2.0) == 1.5


def test_terms_of_two_choices_count_where_either_does() -> None:
    x = T.dvector("x")
    root = T.sqrt(x)
    cost = (T.switch(x > 2, root, 0) + T.switch(x > 1, T.switch(x < 9, root * root, 0), 0)).sum()
    g = graphc.function([x], grad(cost, x), mode="interpreted")
    np.testing.assert_allclose(g([0.0, -1.0, 1.0, 1.5, 4.0, 16.0]), [0.0, 0.0, 0.0, 1.0, 1.25, 0.125])


def test_forward_products_are_masked_as_well() -> None:
    x, t = T.dvector("x"), T.dvector("t")
    f = graphc.function([x, t], jvp(T.switch(x > 0, T.sqrt(x), 0), x, t), mode="interpreted")
    np.testing.assert_array_equal(f([0.0, 4.0], [1.0, 1.0]), [0.0, 0.25])


def test_a_branch_that_is_not_taken_has_derivative_zero() -> None:
    s, x = T.dscalar("s"), T.dvector("x")
    root = T.sqrt(x)
    cost = graphc.ifelse(s > 0, root.sum(), s * 0.0)
    f = graphc.function([s, x], grad(cost, x), mode="interpreted")
    np.testing.assert_array_equal(f(-1.0, [0.0, 4.0]), [0.0, 0.0])
    np.testing.assert_array_equal(f(1.0, [1.0, 4.0]), [0.5, 0.25])


def test_special_functions_and_pieces_of_them_are_masked() -> None:
    x = T.dvector("x")
    for f in (T.gamma, T.digamma, T.erfinv, lambda v: T.gammainc(2.0, v)):
        g = graphc.function([x], grad(T.switch(abs(x) < 0.9, 0, f(x)).sum(), x), mode="interpreted")
        np.testing.assert_array_equal(g([0.0, -0.0]), 0.0)
