"""Rewrites: every rule is held to its class of truth, fires where it should, and can be switched off."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from graphc.arrays.dtypes import is_float
from graphc.autodiff import grad
from graphc.codegen.schedule.nodes import all_nodes, size_up
from graphc.errors import GraphcError, ShapeError
from graphc.functions.function import function as compiled
from graphc.ir.facts import scalar_constant
from graphc.ir.interpret import interpret
from graphc.ir.node import OPS, Array, Node, Sample, literal, variable
from graphc.ir.walk import Graph
from graphc.ops.linalg.products import matmul
from graphc.ops.reduce import reduce_max, reduce_sum
from graphc.ops.scalar import cast, elementwise, stop_gradient
from graphc.ops.shape import broadcast_to, dimshuffle, expand, filled, transpose
from graphc.rewrite import PIPELINE, RULES, rewrite, tell_of
from graphc.rewrite.engine import MOST_TOLD, Rule, Transformation, Visit, apply_in_turn, hole, rule
from graphc.tensor import addbroadcast, nnet
from graphc.testing import draw, leaf_like
from tests.support.counting import assert_linear
from tests.support.rule_samples import MATRICES, RULE_SAMPLES
from tests.support.rule_values import PAIRS, TRANSFORMATIONS, exact_value, instances, names, run

CANCELLING = ("sigmoid_poles", "softmax_gradient")
"""Rules between differences of large terms, whose errors are small beside the terms only."""
EXPONENTS = ("logaddexp_gradient",)
"""Rules that round an exponent, which is a relative error in proportion to it."""
FACTORISED = 64
"""Units in the last place between two ways to solve a small system."""
LIMITS = ("xlogx",)
"""Rules that give a limit where the original is NaN."""

ULPS = 4


# --- values -----------------------------------------------------------------------------------------------------------


def special_values(dtype: str) -> Array:
    """The corners of a dtype, and some numbers between them."""
    if dtype == "bool":
        return np.asarray([False, True])
    if not is_float(dtype):
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        return np.asarray([low, high, 0, 1, 2, 3, 7, high - 1], dtype)
    info = np.finfo(dtype)
    positive: list[float] = [
        0.0,
        float(info.smallest_subnormal),
        float(info.tiny),
        1e-30,
        1e-9,
        0.3,
        0.5,
        1.0,
        1.7,
        20.0,
        40.0,
        90.0,
        720.0,
        float(info.max),
        np.inf,
    ]
    with np.errstate(over="ignore"):
        return np.asarray([np.nan, *positive, *(-p for p in positive)]).astype(dtype)


def grid(leaves: Sequence[Node], limit: int | None = None) -> dict[Node, Array]:
    """Combinations of special values for leaves of rank 1, with a few at random: all of them, or `limit`."""
    rng = np.random.default_rng(0)
    columns = []
    for leaf in leaves:
        special = special_values(leaf.dtype)
        more = rng.uniform(-3, 3, 5).astype(leaf.dtype) if is_float(leaf.dtype) else special[:0]
        columns.append(np.concatenate([special, more]))
    combined = np.stack([column.ravel() for column in np.meshgrid(*(np.arange(len(c)) for c in columns))])
    chosen = combined if limit is None or limit > combined.shape[1] else rng.permutation(combined.T)[:limit].T
    return {leaf: column[index] for leaf, column, index in zip(leaves, columns, chosen, strict=True)}


def rows(leaves: Sequence[Node], seed: int = 0) -> dict[Node, Array]:
    """Rows of ordinary, large, small and special values for leaves of rank 2, one value a row for leaves of rank 1."""
    rng = np.random.default_rng(seed)
    values: dict[Node, Array] = {}
    for leaf in leaves:
        shape = (9, 4)[: leaf.ndim]
        value = rng.uniform(-3, 3, shape)
        if leaf.name == "x":
            value[1] *= 500
            value[2] += 1000
            value[3] -= 1000
            value[4] = -np.inf
            value[5, 1] = np.inf
            value[6, 2] = np.nan
            value[7, 1:] = -np.inf
            value[8] = 0
        values[leaf] = value.astype(leaf.dtype)
    return values


# --- signs of zero ----------------------------------------------------------------------------------------------------

_ZEROS = (Path(__file__).parents[2] / "docs" / "numerics.md").read_text().partition("may change the sign of a zero")[2]
OTHER_SIGNS = set(re.findall(r"`(\w+)`", _ZEROS.partition("\n\n")[0])) - {"exact"}
"""The rules that may give a zero the other sign, as the document lists them."""


def test_the_rules_that_may_change_the_sign_of_a_zero_are_not_exact() -> None:
    assert OTHER_SIGNS
    assert all(RULES[name].truth in ("close", "better") for name in OTHER_SIGNS)


# --- the classes of truth ---------------------------------------------------------------------------------------------


def same_bits(before: Array, after: Array) -> Array:
    same = before == after
    if before.dtype.kind == "f":
        same &= np.signbit(before) == np.signbit(after)
        same |= np.isnan(before) & np.isnan(after)
    return np.asarray(same)


def ulps(dtype: Any, value: Array) -> Array:
    """The distance to the next number of the dtype."""
    limit = np.finfo(dtype).max
    with np.errstate(all="ignore"):
        return np.asarray(np.spacing(np.minimum(np.abs(value), limit).astype(dtype)), "float64")


def is_close(before: Array, after: Array, count: int = ULPS, scale: Array | None = None) -> Array:
    """The same infinities and NaN, and elsewhere within some units in the last place (of `scale`, for sums)."""
    if before.dtype.kind != "f":
        return np.asarray(before == after)
    with np.errstate(all="ignore"):
        near = np.abs(before.astype("float64") - after) <= count * ulps(
            before.dtype, before if scale is None else scale
        )
    return np.asarray(same_bits(before, after) | near)


def is_better(before: Array, after: Array, truth: Array, slack: float, count: Any = ULPS) -> Array:
    """As near to the truth as before, or within `count` units in the last place of it or of `slack`.

    Where mathematics has no answer, a number must stay the number it is.
    """
    dtype = before.dtype
    good = np.empty(before.shape, bool)
    unit = mpmath.mpf(float(np.finfo(dtype).smallest_subnormal))
    limit = mpmath.mpf(float(np.finfo(dtype).max))
    counts = np.broadcast_to(count, before.shape)
    for place in np.ndindex(before.shape):
        old, new, exact = before[place], after[place], truth[place]
        if mpmath.isnan(exact) or same_bits(old, new):
            good[place] = np.isnan(old) or bool(is_close(np.asarray(old), np.asarray(new)))
        elif abs(exact) > limit:
            good[place] = np.isinf(new) or abs(new) >= limit / 2
        else:
            error, former = (abs(mpmath.mpf(float(v)) - exact) if np.isfinite(v) else mpmath.inf for v in (new, old))
            spacing = max(unit, mpmath.ldexp(max(abs(exact), slack), -np.finfo(dtype).nmant))
            good[place] = error <= max(former, float(counts[place]) * spacing)
    return good


def hold_to(item: Any, before: Node, after: Node, values: Mapping[Node, Array]) -> None:
    """Assert that replacing `before` by `after` is as true as the rule says."""
    leaves = tuple(values)
    old, new = run(Graph(leaves, (before,)), values), run(Graph(leaves, (after,)), values)
    if item.truth == "exact":
        good = same_bits(old, new)
    elif item.truth == "close":
        scale = old if isinstance(item, Rule) or not old.size else np.full_like(old, np.abs(old).max())
        good = is_close(old, new, FACTORISED if item.name in MATRICES else ULPS, scale)
    elif item.truth == "better":
        good = same_bits(old, new)
        if old.dtype.kind == "f":
            slack = max(abs(float(v)) for v in old.ravel() if np.isfinite(v)) if item.name in CANCELLING else 0.0
            exact = exact_value(before, values)
            largest = np.max([np.abs(v) for v in values.values()], axis=0) if item.name in EXPONENTS else 0.0
            good = is_better(old, new, exact, slack, ULPS + np.nan_to_num(largest)) & (np.isnan(old) | ~np.isnan(new))
            good &= _stays_undefined(old, new, exact, values) | (item.name in LIMITS)
    else:
        good = np.isclose(old, new, rtol=1e-5 if old.dtype == np.float32 else 1e-12)
    if item.truth != "real" and item.name not in OTHER_SIGNS:
        good &= (new != 0) | (old != 0) | same_bits(old, new)
    if not good.all():
        bad = np.argwhere(~good)[:5]
        shown = [
            f"{[str(v[tuple(p)]) if v.shape == old.shape else v.tolist() for v in values.values()]}: "
            f"{old[tuple(p)]!s} became {new[tuple(p)]!s}"
            for p in bad
        ]
        raise AssertionError(f"{item.name} is not {item.truth}:\n" + "\n".join(shown))


def _stays_undefined(old: Array, new: Array, exact: Array, values: Mapping[Node, Array]) -> Array:
    """Whether NaN is NaN still where infinities have no part in it: a rule may not hide what went wrong before it."""
    infinite = np.zeros(old.shape, bool)
    for value in values.values():
        has = np.isinf(value) if value.ndim < 2 else np.isinf(value).any(axis=1)
        infinite |= has.reshape(has.shape + (1,) * (old.ndim - has.ndim))
    undefined = np.asarray(np.frompyfunc(mpmath.isnan, 1, 1)(exact), bool) & np.isnan(old) & ~infinite
    return np.asarray(~undefined | np.isnan(new))


def moderate(leaves: Sequence[Node]) -> dict[Node, Array]:
    """Positive numbers that no function of a rule overflows on, for what is true of real numbers."""
    rng = np.random.default_rng(5)
    shape = (9, 4)
    return {
        leaf: np.asarray(
            rng.random(shape[: leaf.ndim]) < 0.5 if leaf.dtype == "bool" else rng.uniform(0.3, 3, shape[: leaf.ndim]),
            leaf.dtype,
        )
        for leaf in leaves
    }


@pytest.mark.slow
@pytest.mark.parametrize("item", PAIRS, ids=names(PAIRS))
def test_rule_is_as_true_as_it_says(item: Rule) -> None:
    dtypes = [d for d in ("float64", "float32", "int64", "int8", "uint8", "bool") if d in item.dtypes]
    for dtype in dtypes:
        before, after, leaves = instances(item, dtype)
        assert before is not after
        if item.truth == "real":
            hold_to(item, before, after, moderate(leaves))
        elif any(leaf.ndim == 2 for leaf in leaves):
            hold_to(item, before, after, rows(leaves))
        else:
            hold_to(item, before, after, grid(leaves, 300 if item.truth == "better" else None))


@pytest.mark.parametrize("item", PAIRS, ids=names(PAIRS))
def test_rule_fires_and_makes_its_replacement(item: Rule) -> None:
    before, after, leaves = instances(item, item.dtypes[-1])
    graph, fired = apply_in_turn(Graph(tuple(leaves), (before,)), [("rules", [item])])
    assert [f.rule for f in fired] == [item.name]
    assert graph.outputs == (after,)


@pytest.mark.slow
@pytest.mark.parametrize("item", TRANSFORMATIONS, ids=names(TRANSFORMATIONS))
def test_transformation_is_as_true_as_it_says(item: Transformation) -> None:
    for seed, sample in enumerate(RULE_SAMPLES[item.name]):
        rng = np.random.default_rng(seed)
        for dtype in ("float64", "float32"):
            arrays = [draw(argument, rng, dtype) for argument in sample.args]
            leaves = [leaf_like(array, f"x{k}") for k, array in enumerate(arrays)]
            before = sample.build(*leaves)
            graph, fired = apply_in_turn(Graph(tuple(leaves), (before,)), [("rules", [item])])
            assert {f.rule for f in fired} == {item.name}
            hold_to(item, before, graph.outputs[0], dict(zip(leaves, arrays, strict=True)))
            keeps_signs = item.truth != "real" and item.name not in OTHER_SIGNS
            for zeros in ((-0.0,), (0.0,), (0.0, -0.0)) if keeps_signs else ():
                values = [np.asarray(rng.choice(zeros, a.shape), a.dtype) if a.dtype.kind == "f" else a for a in arrays]
                hold_to(item, before, graph.outputs[0], dict(zip(leaves, values, strict=True)))
            if item.truth in ("exact", "better") and len(arrays) == 1 and arrays[0].ndim:
                special = special_values(arrays[0].dtype.name)
                values = [
                    np.resize(special, a.shape) if a.size < 4 else np.asarray(rng.choice(special, a.shape))
                    for a in arrays
                ]
                hold_to(item, before, graph.outputs[0], dict(zip(leaves, values, strict=True)))


def test_a_pattern_matches_its_own_attributes_alone() -> None:
    a = hole("a", rank=3)
    item = rule("turned", exp(dimshuffle(a, (1, 0, 2))), dimshuffle(exp(a), (1, 0, 2)), "exact")
    cube = variable("float64", (2, 2, 2), "cube")
    for order in permutations(range(3)):
        _, fired = apply_in_turn(Graph((cube,), (exp(dimshuffle(cube, order)),)), [("rules", [item])])
        assert bool(fired) == (order == (1, 0, 2))


def test_names_are_unique() -> None:
    found: dict[str, Any] = {}
    for step in PIPELINE:
        for item in step.rules:
            assert found.setdefault(item.name, item) is item
        assert step.name not in RULES


def test_a_false_rule_is_found_out() -> None:
    x: Any = hole("x")
    wrong = (
        rule("exact?", x + 0.0, x, "exact"),  # -0.0 + 0.0 is 0.0
        rule("close?", elementwise("exp", x) / elementwise("exp", x), 1, "close"),
        rule("better?", elementwise("expm1", x), elementwise("exp", x) - 1, "better"),
        rule("better??", elementwise("sqr", elementwise("sqrt", x)), x, "better"),
        rule("real?", x + 1, x + 1.001, "real"),
    )
    for item in wrong:
        before, after, leaves = instances(item, "float64")
        with pytest.raises(AssertionError, match="is not"):
            hold_to(item, before, after, moderate(leaves) if item.truth == "real" else grid(leaves))


# --- what fires -------------------------------------------------------------------------------------------------------


def function(name: str) -> Callable[..., Any]:
    return lambda *operands: elementwise(name, *operands)


exp, log, sigmoid, softplus, tanh, sqrt = map(function, ("exp", "log", "sigmoid", "softplus", "tanh", "sqrt"))


def total(x: Any) -> Any:
    return reduce_sum(x, range(x.ndim))


def over_rows(x: Any, reduced: Any) -> Any:
    """A value of each row beside every element of the row."""
    return broadcast_to(expand(reduced, (1,)), x.type.shape)


def softmax(x: Any) -> Any:
    e = exp(x)
    return e / over_rows(e, reduce_sum(e, (1,)))


def shifted_softmax(x: Any) -> Any:
    return softmax(x - over_rows(x, reduce_max(x, (1,))))


def formula(node: Node) -> str:
    """A graph as a formula: broadcasts are left out, transposes are marked by a quote."""
    number = scalar_constant(node)
    if number is not None:
        return f"{float(number):g}"
    parts = [formula(arg) for arg in node.args]
    if node.name or not parts:
        return node.name or f"{node.op.name}"
    order = node.attrs.get("order", ())
    if node.op.name in ("broadcast_to", "dimshuffle"):
        return parts[0] + ("'" if order == (1, 0) else "")
    if node.op.name == "cast":
        return parts[0]
    return f"{node.op.name}({', '.join(parts)})"


x: Any = variable("float64", (None, None), "x")
y: Any = variable("float64", (None, None), "y")
w: Any = variable("float64", (None, None), "w")
v: Any = variable("float64", (None,), "v")
s: Any = variable("float64", (), "s")
n: Any = variable("int64", (None,), "n")

BEFORE_AND_AFTER: list[tuple[Any, str, str]] = [
    # what is built, what it becomes, one of the rules
    (stop_gradient(x) * 1, "x", "stop_gradient"),
    (x + exp(literal(0.0)) * 2, "add(x, 2)", "fold_constants"),
    (-(-x * 1), "x", "twice"),
    (x - -y, "add(x, y)", "sub_neg"),
    (x**2 + x**3, "add(sqr(x), mul(sqr(x), x))", "pow_two"),
    (x / 4, "mul(0.25, x)", "div_power_of_two"),
    (x / 3, "true_div(x, 3)", ""),
    (x + 0, "add(x, 0)", ""),
    (n + 0 * n, "n", "zero"),
    (2 * (3 * x), "mul(6, x)", "join_factors"),
    (2 * x + 3 * x, "mul(5, x)", "collect"),
    (log(1 + x), "log1p(x)", "log1p"),
    (log(x + 1.0), "log1p(x)", "log1p"),
    (exp(x) - 1, "expm1(x)", "expm1"),
    (log(1 + exp(2 * x)), "softplus(mul(2, x))", "softplus"),
    (1 / (1 + exp(-x)), "sigmoid(x)", "sigmoid"),
    (1 / (1 + exp(-2 * x)), "sigmoid(mul(2, x))", "sigmoid_of_minus"),
    (log(sigmoid(x)), "neg(softplus(neg(x)))", "log_sigmoid"),
    (log(1 - sigmoid(x)), "neg(softplus(x))", "log_sigmoid"),
    (log(exp(x)), "x", "inverse"),
    (log(softmax(x)), "sub(sub(x, BOUND), log(sum(exp(sub(x, BOUND)))))", "softmax"),
    (log(shifted_softmax(x)), "sub(sub(x, max(x)), log(sum(exp(sub(x, max(x))))))", "log_softmax"),
    (nnet.softmax(x), "true_div(exp(sub(x, BOUND)), sum(exp(sub(x, BOUND))))", "expansion_last"),
    (log(nnet.softmax(x)), "sub(sub(x, BOUND), log(sum(exp(sub(x, BOUND)))))", "log_softmax_bound"),
    (log(reduce_sum(exp(x), (1,))), "add(BOUND, log(sum(exp(sub(x, BOUND)))))", "logsumexp"),
    (transpose(transpose(x)), "x", "dimshuffle_twice"),
    (total(over_rows(x, filled(literal(1.0), x.type.shape[:1]))), "mul(size, size)", "sum_of_broadcast"),
    (reduce_sum(reduce_sum(x, (1,)), (0,)), "sum(x)", "reduce_twice"),
    (transpose(matmul(transpose(x), y)), "matmul(y', x)", "transpose_of_product"),
    (w - 0.1 * matmul(x, y), "gemm(w, -0.1, x, y, 1)", "gemm"),
    (0.9 * w - s * matmul(transpose(x), y), "gemm(w, neg(s), x', y, 0.9)", "gemm"),
    (matmul(x, y) + matmul(w, y), "gemm(matmul(w, y), 1, x, y, 1)", "gemm"),
    (tanh(matmul(x, y) + v), "tanh(add(matmul(x, y), v))", ""),
    (matmul(x, y) + tanh(w), "add(matmul(x, y), tanh(w))", ""),
]
BOUND = "where(isfinite(supremum(x)), supremum(x), 0)"


@pytest.mark.parametrize(
    ("before", "after", "name"), BEFORE_AND_AFTER, ids=[formula(b) for b, _, _ in BEFORE_AND_AFTER]
)
def test_before_and_after(before: Node, after: str, name: str) -> None:
    graph, fired = rewrite(Graph((), (before,)))
    assert formula(graph.outputs[0]) == after.replace("BOUND", BOUND)
    if name:
        assert name in {f.rule for f in fired}
    again, more = rewrite(graph)
    assert again == graph
    assert not more


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for _, _, name in BEFORE_AND_AFTER if name])
def test_a_rule_can_be_excluded(name: str) -> None:
    for before, _, _ in BEFORE_AND_AFTER:
        _, fired = rewrite(Graph((), (before,)), excluding=(name,))
        assert name not in {f.rule for f in fired}


def test_a_pass_can_be_excluded() -> None:
    graph, fired = rewrite(Graph((), (log(1 + x),)), excluding=[step.name for step in PIPELINE])
    assert not fired
    assert graph.outputs == (log(1 + x),)
    with pytest.raises(GraphcError, match="no_such_rule"):
        rewrite(graph, excluding=["no_such_rule"])


def test_fast_math() -> None:
    for before, after in (
        (x - x, "0"),
        (x + 0.0, "x"),
        (x * 0, "0"),
        (sqrt(x) * sqrt(x), "x"),
        (exp(log(x)), "x"),
        (matmul(matmul(x, y), v), "gemm(1, x, gemm(1, y, v))"),
        (matmul(2.5 * x, y), "gemm(2.5, x, y)"),
    ):
        assert formula(rewrite(Graph((), (before,)))[0].outputs[0]) != after
        assert formula(rewrite(Graph((), (before,)), fast_math=True)[0].outputs[0]) == after


def test_names_and_lines_are_kept() -> None:
    loss = log(1 + tanh(x))
    loss.name = "loss"
    graph, fired = rewrite(Graph((x,), (loss,)))
    assert graph.outputs[0].name == "loss"
    assert graph.outputs[0].where == loss.where
    assert str(fired[0]) == f"log1p: loss ({loss.where})"
    x_line = x.where
    rewrite(Graph((x,), (x * 1,)))
    assert x.where is x_line


def test_explain_names_the_line_once() -> None:
    step = compiled([s], log(1 + s))
    (line,) = [line for line in step.explain().splitlines() if line.startswith("  log1p:")]
    assert line.count(__file__.rpartition("/")[2]) == 1


def test_uses() -> None:
    product = matmul(x, y)
    taken = Visit.of([product, w + product, tanh(w)]).uses
    assert (taken[product], taken[w], taken[x]) == (2, 2, 1)
    graph, fired = rewrite(Graph((x, y, w), (w + product, product)))
    assert not fired
    assert graph.outputs[1] is product


def test_nodes_that_become_one_are_taken_together() -> None:
    product = matmul(x, y)
    graph, fired = rewrite(Graph((x, y, w), (w + product * 1, w - 1 * product)))
    assert "gemm" not in {f.rule for f in fired}
    assert [formula(output) for output in graph.outputs] == ["add(w, matmul(x, y))", "sub(w, matmul(x, y))"]


def test_complement_of_a_sigmoid_that_is_needed_anyway() -> None:
    assert formula(rewrite(Graph((), (1 - sigmoid(x),)))[0].outputs[0]) == "sigmoid(neg(x))"
    value = sigmoid(x)
    graph, fired = rewrite(Graph((x, y), (value, y * (value * (1 - value)))))
    assert not fired
    graph, fired = rewrite(Graph((x,), (grad(total(sigmoid(x)), x),)))
    assert formula(graph.outputs[0]) == "mul(sigmoid(x), sub(1, sigmoid(x)))"


def test_products_with_other_uses_stay() -> None:
    product = matmul(x, y)
    _, fired = rewrite(Graph((x, y, w), (w + product, tanh(product))))
    assert "gemm" not in {f.rule for f in fired}
    product = matmul(transpose(x), y)
    _, fired = rewrite(Graph((x, y), (transpose(product), tanh(product))))
    assert not fired


def test_static_sizes_decide_the_order_of_products() -> None:
    a, b, c = (variable("float64", shape, "abc"[k]) for k, shape in enumerate(((50, 2), (2, 50), (50, 3))))
    graph, _ = rewrite(Graph((), (matmul(matmul(a, b), c),)), fast_math=True)
    assert formula(graph.outputs[0]) == "matmul(a, matmul(b, c))"
    graph, _ = rewrite(Graph((), (matmul(transpose(c), matmul(transpose(b), transpose(a))),)), fast_math=True)
    assert formula(graph.outputs[0]) == "matmul(matmul(c', b'), a')"


# --- gradients of what overflows --------------------------------------------------------------------------------------


def test_gradient_of_naive_softmax_crossentropy() -> None:
    at = np.asarray([[1000.0, 0.0, -1000.0], [0.1, 0.2, 0.3]])
    target = np.asarray([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    shifted = np.exp(at - at.max(axis=1, keepdims=True))
    expected = shifted / shifted.sum(axis=1, keepdims=True) - target
    for build in (softmax, shifted_softmax):
        cost = -total(y * log(build(x)))
        gradient = grad(cost, x, consider_constant=[reduce_max(x, (1,))])
        graph, fired = rewrite(Graph((x, y), (cost, gradient)))
        value, found = interpret(graph, {x: at, y: target})
        np.testing.assert_allclose(value, 1000 + np.log(np.exp([0.0, 0.1, 0.2]).sum()))
        np.testing.assert_allclose(found, expected, atol=1e-15)
        assert {f.rule for f in fired} & {"log_softmax_gradient", "log_softmax_bound_gradient"}


def test_gradient_of_naive_sigmoid_crossentropy() -> None:
    at, target = np.asarray([[900.0, -900.0, 0.5]]), np.asarray([[0.0, 1.0, 0.25]])
    cost = -total(y * log(sigmoid(x)) + (1 - y) * log(1 - sigmoid(x)))
    graph, _ = rewrite(Graph((x, y), (cost, grad(cost, x))))
    value, found = interpret(graph, {x: at, y: target})
    assert np.isclose(value, 1800 + np.log1p(np.exp(0.5)) - 0.25 * 0.5)
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-np.clip(at, -700, 700))) - target, atol=1e-15)


def test_gradient_of_naive_logsumexp() -> None:
    at = np.asarray([[1000.0, 999.0], [-1000.0, -1000.0]])
    cost = total(log(reduce_sum(exp(x), (1,))))
    graph, _ = rewrite(Graph((x,), (grad(cost, x),)))
    share = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(run(graph, {x: at}), [[share, 1 - share], [0.5, 0.5]])


def crossentropy(probability: Any) -> Any:
    return -(0.25 * log(probability) + 0.75 * log(1 - probability))


def expit(z: Any) -> Any:
    return np.exp(-np.logaddexp(0.0, -z))


LARGE = (1000.0, -1000.0, 40.0, -40.0, 88.0, 0.3, 0.0)
SCALAR_GRADIENTS: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("log(1 + exp(x))", lambda z: log(1 + exp(z)), expit),
    ("log1p(exp(x))", lambda z: elementwise("log1p", exp(z)), expit),
    ("log(1 + exp(-x))", lambda z: log(1 + exp(-z)), lambda z: -expit(-z)),
    ("log(exp(x) + exp(-2x))", lambda z: log(exp(z) + exp(-2 * z)), lambda z: expit(3 * z) - 2 * expit(-3 * z)),
    ("1 / (1 + exp(-x))", lambda z: 1 / (1 + exp(-z)), lambda z: expit(z) * expit(-z)),
    ("1 / (1 + exp(x))", lambda z: 1 / (1 + exp(z)), lambda z: -expit(z) * expit(-z)),
    ("exp(x) / (1 + exp(x))", lambda z: exp(z) / (1 + exp(z)), lambda z: expit(z) * expit(-z)),
    ("log(sigmoid(x))", lambda z: log(sigmoid(z)), lambda z: expit(-z)),
    ("log(1 - sigmoid(x))", lambda z: log(1 - sigmoid(z)), lambda z: -expit(z)),
    ("log(1 / (1 + exp(-x)))", lambda z: log(1 / (1 + exp(-z))), lambda z: expit(-z)),
    ("log(1 - 1 / (1 + exp(x)))", lambda z: log(1 - 1 / (1 + exp(z))), lambda z: expit(-z)),
    ("crossentropy", lambda z: crossentropy(sigmoid(z)), lambda z: expit(z) - 0.25),
    ("written crossentropy", lambda z: crossentropy(1 / (1 + exp(-z))), lambda z: expit(z) - 0.25),
    ("of minus", lambda z: crossentropy(1 / (1 + exp(2 * z))), lambda z: 2 * (0.25 - expit(-2 * z))),
    (
        "penalised",
        lambda z: crossentropy(sigmoid(z)) + sigmoid(z),
        lambda z: expit(z) - 0.25 + expit(z) * expit(-z),
    ),
    ("nnet", lambda z: nnet.binary_crossentropy(1 / (1 + exp(-z)), 0.25), lambda z: expit(z) - 0.25),
]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("build", "expected"), [row[1:] for row in SCALAR_GRADIENTS], ids=[r[0] for r in SCALAR_GRADIENTS]
)
def test_gradient_of_what_overflows(build: Callable[[Any], Any], expected: Callable[[Any], Any], dtype: str) -> None:
    """Of a scalar, of a sum, of a mean, and weighted: the cotangent is 1, filled with 1, a quotient, any array."""
    z, one, g = variable(dtype, (None,), "z"), variable(dtype, (), "one"), variable(dtype, (None,), "g")
    at = np.asarray(LARGE, dtype)
    weights = np.linspace(-1, 2, at.size).astype(dtype)
    exact = expected(at.astype("float64"))
    count = cast(z.size, dtype)
    outputs = [grad(cost, z) for cost in (total(build(z)), total(build(z)) / count, total(g * build(z)))]
    graph, _ = rewrite(Graph((z, g), (*outputs, *(build(z),))))
    *found, value = interpret(graph, {z: at, g: weights})
    assert np.isfinite(value).all()
    tolerance: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-7} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-15}
    for gradient, scale in zip(found, (1, 1 / at.size, weights), strict=True):
        np.testing.assert_allclose(gradient, scale * exact, **tolerance)
    graph, _ = rewrite(Graph((one,), (grad(build(one), one),)))
    np.testing.assert_allclose([run(graph, {one: value}) for value in at], exact, **tolerance)


ROW_GRADIENTS: list[tuple[str, Callable[[Any], Any], Callable[[Array, Array], Array]]] = [
    # the cost of rows x, weighted by y; its gradient from the softmax p and the weights
    ("logsumexp", lambda z: log(reduce_sum(exp(z), (1,))), lambda p, q: p),
    ("softmax", lambda z: y * softmax(z), lambda p, q: p * (q - (p * q).sum(1, keepdims=True))),
    ("squared", lambda z: softmax(z) ** 2, lambda p, q: 2 * p * (p - (p * p).sum(1, keepdims=True))),
    ("log softmax", lambda z: y * log(softmax(z)), lambda p, q: q - p * q.sum(1, keepdims=True)),
]


@pytest.mark.parametrize(("build", "expected"), [row[1:] for row in ROW_GRADIENTS], ids=[r[0] for r in ROW_GRADIENTS])
def test_gradient_of_rows_that_overflow(build: Callable[[Any], Any], expected: Callable[[Array, Array], Array]) -> None:
    at = np.asarray([[1000.0, 999.0, -1000.0], [-1000.0, -1000.0, -1001.0], [0.3, 0.1, -0.2]])
    weights = np.asarray([[1.0, 2.0, 3.0], [0.5, -1.0, 0.0], [0.0, 1.0, 0.0]])
    shifted = np.exp(at - at.max(axis=1, keepdims=True))
    graph, _ = rewrite(Graph((x, y), (grad(total(build(x)), x),)))
    exact = expected(shifted / shifted.sum(axis=1, keepdims=True), weights)
    np.testing.assert_allclose(run(graph, {x: at, y: weights}), exact, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0)])
@pytest.mark.parametrize("build", [lambda z: log(reduce_sum(exp(z), (1,))), softmax, lambda z: log(softmax(z))])
def test_rows_of_nothing(build: Callable[[Any], Any], shape: tuple[int, int]) -> None:
    """A sum over nothing is 0, of which the logarithm is -inf: subtracting the maximum first must not change that."""
    before = Graph((x,), (build(x), grad(total(build(x)), x)))
    after, fired = rewrite(before)
    assert {f.rule for f in fired} & {"logsumexp", "softmax"}
    values = {x: np.zeros(shape)}
    for old, new in zip(interpret(before, values), interpret(after, values), strict=True):
        np.testing.assert_array_equal(old, new)
    for mode in ("compiled", "python"):
        np.testing.assert_array_equal(compiled([x], build(x), mode=mode)(values[x]), run(before, values))


@pytest.mark.parametrize("mode", ["compiled", "python", "interpreted"])
def test_a_broadcast_that_asserts_a_size_stays(mode: Any) -> None:
    build = addbroadcast(x[:1], 0) + filled(literal(0.0), (2, 4))
    add_zeros = compiled([x], build, mode=mode)
    at = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(add_zeros(at), np.stack([at[0], at[0]]))
    with pytest.raises(ShapeError, match="0, not 1"):
        add_zeros(at[:0])


# --- every op ---------------------------------------------------------------------------------------------------------

SAMPLES = [
    pytest.param(sample, id=f"{op.name}-{k}") for op in tuple(OPS.values()) for k, sample in enumerate(op.samples)
]


@pytest.mark.slow
@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_op_and_its_derivative(sample: Sample, fast_math: bool) -> None:
    """Rewriting an op, doubled and squared, and its gradient changes no value."""
    rng = np.random.default_rng(3)
    arrays = [draw(argument, rng) for argument in sample.args]
    leaves = [leaf_like(array, f"x{k}") for k, array in enumerate(arrays)]
    result: Any = sample.build(*leaves)
    outputs: list[Any] = [result]
    places = [leaf for leaf in leaves if is_float(leaf.dtype)]
    if sample.differentiable and is_float(result.dtype) and places:
        cost = total((2 * result + result) ** 2)
        outputs += [cost, *grad(cost, places, disconnected_inputs="ignore")]
    values = dict(zip(leaves, arrays, strict=True))
    before = Graph(tuple(leaves), tuple(outputs))
    after, _ = rewrite(before, fast_math)
    for old, new in zip(interpret(before, values), interpret(after, values), strict=True):
        assert (old.dtype, old.shape) == (new.dtype, new.shape)
        np.testing.assert_allclose(new, old, rtol=1e-11, atol=1e-12)


# --- size -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_work_of_a_node_does_not_grow_with_the_graph() -> None:
    def rewriting(length: int) -> Callable[[], object]:
        leaf = variable("float64", ())
        long: Any = leaf
        for k in range(length):
            long = tanh(long) if k % 3 else long * 1 - -leaf
        return lambda: rewrite(Graph((leaf,), (long,)))

    assert_linear(rewriting, 1_000)


@pytest.mark.slow
def test_long_chain() -> None:
    long: Any = s
    for k in range(20_000):
        long = tanh(long) if k % 3 else long * 1 - -s
    graph, fired = rewrite(Graph((s,), (long,)))
    assert Counter(each.rule for each in fired) == {"identity": 6667, "sub_neg": 6667, "equal_steps": 1}
    np.testing.assert_allclose(run(graph, {s: np.asarray(0.5)}), run(Graph((s,), (long,)), {s: np.asarray(0.5)}))


def test_deep_diamond() -> None:
    deep: Any = x
    for _ in range(1_000):
        deep = (deep - -deep) * 0.5
    graph, _ = rewrite(Graph((x,), (deep,)))
    np.testing.assert_array_equal(run(graph, {x: np.ones((1, 1))}), [[1.0]])


def test_rules_that_undo_each_other_are_reported() -> None:
    a: Any = hole("a")
    there, back = rule("there", exp(a), tanh(a), "real"), rule("back", tanh(a), exp(a), "real")
    with pytest.raises(GraphcError, match="there"):
        apply_in_turn(Graph((x,), (exp(x),)), [("rules", [there, back])])


def test_texts_are_written_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thousands of applications and guards hardly any is ever read; of many rules' lines only a number is told."""

    def refuse(node: Node) -> str:
        raise AssertionError("nobody reads this")

    x, w = variable("float64", (None, 3), "x"), variable("float64", (3, 3), "w")
    result = x
    for _ in range(150):
        result = transpose(transpose(matmul(result, w)))
    result = reduce_sum(result[3], (0,))
    with monkeypatch.context() as patch:
        patch.setattr("graphc.ir.expression.label", refuse)
        graph, fired = rewrite(Graph((x, w), (result,)))
        size_up(all_nodes([result]), all_nodes(graph.outputs))
    lines = tell_of([*fired, *fired])
    assert len(lines) < 2 * len(fired) and lines[0].startswith(str(fired[0])) and fired[0].rule in lines[0]
    rest = [line for line in lines if line.endswith(" times more")]
    assert sum(int(line.split()[1]) for line in rest) == 2 * len(fired) - MOST_TOLD
    told = [re.search(r", (\d+) times$", line) for line in lines[: len(lines) - len(rest)]]
    assert sum(int(count[1]) if count else 1 for count in told) == MOST_TOLD and any(told)
