"""Rules over the whole range of a dtype, subnormal to largest: what is finite stays finite and apart from 0, and what
is infinite becomes a number by those rules only that say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import graphc
from graphc.arrays.dtypes import FLOATS, is_float
from graphc.ir.interpret import interpret
from graphc.ir.node import Array, Node, Sample, literal, make, variable
from graphc.ir.walk import Graph, nodes_of
from graphc.ops.elementwise import elementwise
from graphc.ops.index import inc_gather
from graphc.ops.linalg.products import matmul
from graphc.ops.reduce import reduce_prod, reduce_sum
from graphc.ops.shape import filled, transpose, zeros
from graphc.rewrite import RULES
from graphc.rewrite.engine import Rule, Transformation, apply_in_turn, hole, rule
from graphc.rewrite.matrices import FACTORS, MATRICES, SHARED
from graphc.testing import draw, leaf_like
from tests.support.rule_samples import RULE_SAMPLES
from tests.support.rule_values import PAIRS, TRANSFORMATIONS, exact_value, instances, names, run

REAL_LINE = [item for item in PAIRS if item.truth != "real" and set(FLOATS) & set(item.dtypes)]
OF_MATRICES = (*MATRICES, *SHARED, *FACTORS)
"""Solutions are as near as their matrix is well conditioned, which hardly one of numbers of all magnitudes is."""
KINDS = [item for item in TRANSFORMATIONS if item.truth != "real" and item not in OF_MATRICES]
CLOSE_ULPS = 4


def corners(dtype: str) -> Array:
    """Numbers of all magnitudes, both signs, zeros, infinities and NaN, and where exponentials end."""
    info = np.finfo(dtype)
    small, large = int(info.minexp - info.nmant), int(info.maxexp)
    scales = np.linspace(small, large - 1, 13).round().astype(int)
    ends = [1.0, 1.5, 17.0, 40.0, 87.0, 88.8, 103.9, 104.1, 709.7, 709.9, 710.3, 744.9, 745.2]
    numbers = [info.tiny, info.smallest_subnormal * 3, info.max, info.max / 2, info.max * 0.75, 1 - info.epsneg]
    with np.errstate(all="ignore"):
        positive = np.concatenate([np.ldexp(1.25, scales), ends, np.asarray(numbers, "float64"), [0, np.inf]])
        return np.concatenate([positive, -positive, [np.nan]]).astype(dtype)


def combined(leaves: Sequence[Node], limit: int = 20_000) -> dict[Node, Array]:
    """All combinations of corners, or `limit` of them, for leaves of rank 1."""
    rng = np.random.default_rng(0)
    columns = [np.asarray([False, True]) if leaf.dtype == "bool" else corners(leaf.dtype) for leaf in leaves]
    count = int(np.prod([len(column) for column in columns]))
    chosen = np.arange(count) if count <= limit else rng.choice(count, limit, replace=False)
    places = np.unravel_index(chosen, [len(column) for column in columns])
    return {leaf: column[place] for leaf, column, place in zip(leaves, columns, places, strict=True)}


def rows_of_corners(leaves: Sequence[Node]) -> dict[Node, Array]:
    """Rows of four corners each, near one another in some of them, for leaves of rank 2; one a row for rank 1."""
    rng = np.random.default_rng(1)
    values = {}
    for leaf in leaves:
        choice = corners(leaf.dtype)
        rows = rng.choice(choice, (600, 4))
        rows[:200] = rng.choice(choice, (200, 1))
        rows[100:200] *= np.asarray([1, 0.5, 0.25, 1], leaf.dtype)
        values[leaf] = rows if leaf.ndim == 2 else rows[:, 0]
    return values


def finite_arguments(values: Mapping[Node, Array], like: Array) -> Array:
    """Where no argument is infinite or NaN: by elements or rows where results have those of the arguments."""
    good = np.ones(like.shape, bool)
    for value in values.values():
        finite = np.isfinite(value)
        if value.ndim <= like.ndim and value.shape == like.shape[: value.ndim]:
            good &= finite.reshape(value.shape + (1,) * (like.ndim - value.ndim))
        elif value.ndim == like.ndim + 1 and value.shape[:-1] == like.shape:
            good &= finite.all(axis=-1)
        else:
            good &= finite.all()
        if value.ndim == 2 and value.shape == like.shape:
            good &= finite.all(axis=-1, keepdims=True)
    return good


def check_range(item: Any, before: Node, values: Mapping[Node, Array], old: Array, new: Array) -> bool:
    """Assert the contract of the rule on these results, and say whether it made a number of what was none."""
    finite, smallest = np.isfinite(old), np.finfo(old.dtype).smallest_subnormal
    lost = finite & ~np.isfinite(new)
    vanished = finite & (old != 0) & (new == 0)
    if item.truth == "close":
        vanished &= np.abs(old) > CLOSE_ULPS * smallest
    if item.truth == "better" and (lost | vanished).any():
        rows = np.unique(np.argwhere(lost | vanished)[:, 0])
        truth = exact_value(before, {leaf: value[rows] for leaf, value in values.items()})
        for row, exact in zip(rows, truth, strict=True):
            known = ~np.asarray(np.frompyfunc(mpmath.isnan, 1, 1)(exact), bool)
            lost[row] &= ~known | (abs(exact) <= float(np.finfo(old.dtype).max))
            vanished[row] &= ~known | (abs(exact) >= float(smallest))
    mended = np.isfinite(new) & (np.isinf(old) | (np.isnan(old) & finite_arguments(values, old)))
    bad = lost | vanished | (mended if not item.mends else np.zeros_like(lost))
    shown = [
        f"{[str(v[tuple(p)[: v.ndim]]) for v in values.values() if v.ndim]}: {old[tuple(p)]} became {new[tuple(p)]}"
        for p in np.argwhere(bad)[:5]
    ]
    assert not shown, f"{item.name} ({item.truth}) over the range:\n" + "\n".join(shown)
    return bool(mended.any())


def mends_pair(item: Rule) -> bool:
    mended = False
    for dtype in FLOATS:
        before, after, leaves = instances(item, dtype)
        in_rows = any(leaf.ndim == 2 for leaf in leaves)
        values = rows_of_corners(leaves) if in_rows else combined(leaves)
        old, new = (run(Graph(tuple(leaves), (side,)), values) for side in (before, after))
        if is_float(old.dtype.name):
            mended |= check_range(item, before, values, old, new)
    return mended


@pytest.mark.slow
@pytest.mark.parametrize("item", REAL_LINE, ids=names(REAL_LINE))
def test_rule_holds_over_the_range(item: Rule) -> None:
    assert mends_pair(item) == bool(item.mends)


# --- transformations --------------------------------------------------------------------------------------------------

MODES = ("corners", "anywhere", "anywhere, positive", "one scale each", "one scale each, positive")
ROUNDS = 12


def over_the_range(arrays: Sequence[Array], mode: str, rng: np.random.Generator) -> list[Array]:
    """Arrays of the same shapes and dtypes whose floats lie anywhere in the range."""
    found = []
    for array in arrays:
        if array.dtype.kind != "f":
            found.append(array)
            continue
        info = np.finfo(array.dtype)
        if mode == "corners":
            found.append(np.asarray(rng.choice(corners(array.dtype.name), array.shape)))
            continue
        low, high = int(info.minexp - info.nmant), int(info.maxexp)
        exponents = rng.integers(low, high, () if mode.startswith("one") else array.shape)
        numbers = np.ldexp(rng.uniform(1, 2, array.shape), exponents)
        signs = 1.0 if mode.endswith("positive") else rng.choice([-1.0, 1.0], array.shape)
        with np.errstate(over="ignore"):
            found.append(np.asarray(np.clip(signs * numbers, info.min, info.max), array.dtype))
    return found


def magnitude(output: Node, values: Mapping[Node, Array]) -> Array:
    """What the output would be if nothing cancelled: the sum of the magnitudes of its terms, in its own arithmetic."""
    absolute = {leaf: np.abs(value) for leaf, value in values.items()}
    moved: dict[Node, Node] = {}
    for node in nodes_of([output]):
        args = [moved[arg] for arg in node.args]
        if node.op.name == "constant":
            moved[node] = literal(np.abs(node.attrs["value"].value), node.dtype)
        elif node.op.name == "neg":
            moved[node] = args[0]
        elif node.op.name == "sub":
            moved[node] = elementwise("add", *args)
        elif node.op.name == "pow":
            moved[node] = elementwise("pow", args[0], node.args[1])
        else:
            moved[node] = make(node.op, args, node.attrs) if args else node
    return run(Graph(tuple(values), (moved[output],)), absolute)


def check_sums(item: Transformation, before: Node, values: Mapping[Node, Array], old: Array, new: Array) -> None:
    """Assert that sums of other terms, or in another order, are as near as the magnitudes of the terms allow."""
    info, most = np.finfo(old.dtype), magnitude(before, values)
    held = np.isfinite(most)
    count = 16 + 4 * max(value.size for value in values.values())
    with np.errstate(all="ignore"):
        bound = count * (info.eps * most + info.smallest_subnormal)
        near = np.abs(new.astype("longdouble") - old) <= bound
    bad = held & ~near
    assert not bad.any(), f"{item.name}: {old[bad][:3]} became {new[bad][:3]} for {list(values.values())}"


def graphs(item: Transformation, sample: Sample, dtype: str) -> tuple[Node, Node, list[Node], list[Array]]:
    """A sample before and after, its variables, and arrays of their shapes."""
    arrays = [draw(argument, np.random.default_rng(0), dtype) for argument in sample.args]
    leaves = [leaf_like(array, f"x{k}") for k, array in enumerate(arrays)]
    before = sample.build(*leaves)
    graph, fired = apply_in_turn(Graph(tuple(leaves), (before,)), [("rules", [item])])
    assert fired
    return before, graph.outputs[0], leaves, arrays


@pytest.mark.slow
@pytest.mark.parametrize("item", KINDS, ids=names(KINDS))
def test_transformation_holds_over_the_range(item: Transformation) -> None:
    check_transformation(item, RULE_SAMPLES[item.name])


def check_transformation(item: Transformation, samples: Sequence[Sample]) -> None:
    mended = False
    for number, sample in enumerate(samples):
        for dtype in FLOATS:
            before, after, leaves, arrays = graphs(item, sample, dtype)
            if not is_float(before.dtype):
                continue
            rng = np.random.default_rng(number)
            for mode in MODES * ROUNDS:
                values = dict(zip(leaves, over_the_range(arrays, mode, rng), strict=True))
                old, new = (run(Graph(tuple(leaves), (side,)), values) for side in (before, after))
                if item.truth == "close":
                    check_sums(item, before, values, old, new)
                    if mode.endswith("positive"):
                        assert not (np.isinf(old) & np.isfinite(new)).any()
                else:
                    mended |= check_range(item, before, values, old, new)
    assert mended == bool(item.mends)


# --- what the tests above would find ----------------------------------------------------------------------------------


def test_rules_that_hold_in_the_middle_of_the_range_only_are_found_out() -> None:
    x = hole("x")
    size = elementwise("abs", x)
    for wrong in (
        rule("overflows", size, 1e-30 * (1e30 * size), "better"),
        rule("vanishes", size, 1e30 * (1e-30 * size), "close"),
        rule("mends", x * 2.0 * 0.5, x, "better"),
    ):
        with pytest.raises(AssertionError, match="over the range"):
            mends_pair(wrong)
    moved = RULES["number_times_operand"]
    assert isinstance(moved, Transformation)
    arguments = RULE_SAMPLES[moved.name][0].args
    close = Transformation(moved.name, moved.ops, moved.apply, "close")
    with pytest.raises(AssertionError, match="number_times_operand"):
        check_transformation(close, [Sample("", lambda a, b: matmul(1e-30 * transpose(a), b), arguments)])


def matrices(dtype: str) -> list[Any]:
    return [variable(dtype, (None, None), name) for name in "ABC"]


def scale_of(dtype: str) -> float:
    """A number whose square is beyond the dtype."""
    return 1e200 if dtype == "float64" else 1e25


def scaled_programs(dtype: str) -> Iterator[tuple[str, list[Node], Node, list[float]]]:
    """Products and scatters with factors, and the scales of their operands; the results are in range as NumPy does it,
    or overflow, and would not, or would, in another grouping."""
    (a, b, c), big = matrices(dtype), scale_of(dtype)
    v, few = variable(dtype, (None,), "v"), variable("int64", (None,), "i")
    small = 1 / big
    yield "operand down", [a, b], matmul(small * a, b), [big, big]
    yield "operand up", [a, b], matmul(big * a, b), [small, small]
    yield "right operand down", [a, b], matmul(a, small * b), [big, big]
    yield "transposed", [a, b], matmul(small * transpose(a), b), [big, big]
    yield "vector", [a, v], matmul(a, small * v), [big, big]
    yield "product up", [a, v], big * matmul(a, v), [small, big]
    yield "product by columns up", [a, v], big * matmul(transpose(a), v), [small, big]
    yield "product down", [a, b], small * matmul(a, b), [big, big]
    yield "up and up", [a, b], big * (big * matmul(a, b)), [small, small]
    yield "down and down", [a, b], small * (small * matmul(a, b)), [big, 1.0]
    yield "added", [a, b, c], c - big * (big * matmul(a, b)), [small, small, 1.0]
    yield "chain", [a, b, v], matmul(matmul(a, b), v), [small, big, big]
    yield "square", [v], matmul(v * small, v), [big]
    yield "of a number", [v], matmul(v, filled(literal(small, dtype), v.type.shape)), [big]
    yield "up and down", [v], v * big * small, [big]
    yield "products of products", [a], reduce_prod(reduce_prod(a, (1,)), (0,)), [big]
    rows = inc_gather(zeros(dtype, v.type.shape), v * 1, (few,), 0)
    yield "scatter", [v, few], v + big * (big * rows), [small * small]
    yield "division", [a, b], matmul(a, b) / (1e308 if dtype == "float64" else 1e38), [big, 1.0]
    yield "sum", [v], reduce_sum(small * v, (0,)), [float(np.finfo(dtype).max) / 1.5]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "python"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_scaled_products_are_in_range_where_numpy_is(dtype: str, mode: Any) -> None:
    """Every element is the interpreter's of the graph as it is written: what is infinite, 0 and NaN there is here."""
    for name, leaves, output, scales in scaled_programs(dtype):
        values: list[Array] = []
        for leaf, scale in zip(leaves, [*scales, 1.0], strict=False):
            shape = (5, 5)[: leaf.ndim]
            rng = np.random.default_rng(len(values))
            value = rng.integers(0, 5, shape) if leaf.dtype == "int64" else rng.uniform(0.5, 1, shape) * scale
            values.append(np.asarray(value, leaf.dtype))
        (expected,) = interpret(Graph(tuple(leaves), (output,)), dict(zip(leaves, values, strict=True)))
        found = graphc.function(leaves, output, mode=mode)(*values)
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-13, err_msg=name)
        assert ((np.asarray(found) == 0) == (expected == 0)).all(), name


# --- the list ---------------------------------------------------------------------------------------------------------

DOCUMENT = Path(__file__).parents[2] / "docs" / "numerics.md"


def mending_table() -> list[str]:
    """The rows of the document's list, as the rules have it."""
    return [f"| `{item.name}` | {item.mends} |" for item in RULES.values() if item.mends]


def test_what_an_excluded_rule_does_is_not_done_by_another() -> None:
    """The example of the README: the number that `softplus` makes of an infinity."""
    x = variable("float64", (), "x")
    softplus = elementwise("log", 1 + elementwise("exp", x))
    assert np.isfinite(graphc.function([x], softplus)(1000.0))
    with graphc.options.change(excluding="softplus"):
        assert np.isinf(graphc.function([x], softplus)(1000.0))


def test_the_document_lists_what_mends() -> None:
    listed = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    assert listed == mending_table()
    assert all(item.truth == "better" for item in RULES.values() if item.mends)
