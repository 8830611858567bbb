"""Nests that are split for their size: what is stored then, and that the results are the same wherever they are cut."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.schedule import materialize, placement
from graphc.codegen.schedule.drafts import Drafts
from graphc.ir.node import Node
from graphc.ir.walk import reachable
from graphc.options import options
from tests.support.bounds import assert_within
from tests.support.generated import code
from tests.support.thorough import some


def program(seed: int, x: Node, y: Node) -> list[Node]:
    """A random program of elementwise operations and totals over vectors of one length, with its gradients."""
    rng = np.random.default_rng(seed)
    values = [x, y, x * y]
    for _ in range(45):
        first, second = (values[-1 - int(rng.exponential(3.0)) % len(values)] for _ in range(2))
        made = (
            lambda a, b: T.tanh(a) * 0.9 + b * 0.1,
            lambda a, b: a / (1.5 + T.sqr(b)),
            lambda a, b: T.exp(-T.sqr(a)) + T.log1p(T.sqr(b)),
            lambda a, b: a - 0.25 * b,
            lambda a, b: T.maximum(a, b) * 0.5,
            lambda a, b: a * (b / (1.0 + T.sqr(b).sum())),
        )[rng.integers(6)](first, second)
        values.append(made)
    cost = values[-1].sum() + T.sqr(values[-3]).mean()
    return [cost, values[-5], *graphc.grad(cost, [x, y])]


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(6)))
@pytest.mark.parametrize(("ops", "cost"), [(3, 20.0), (9, 60.0), (30, 60.0), (30, 1e9), (160, 60.0)])
def test_results_do_not_depend_on_where_nests_are_cut(
    seed: int, ops: int, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (placement, materialize):
        monkeypatch.setattr(module, "NEST_OPS", ops)
    monkeypatch.setattr(materialize, "MOST_OPS", 2 * ops)
    monkeypatch.setattr(placement, "NEST_COST", cost)
    x, y = T.dvector("x"), T.dvector("y")
    outputs = program(seed, x, y)
    with options.change(cache=False):
        call = graphc.function([x, y], outputs, mode="compiled" if ops == 9 and seed < 2 else "python")
        for length in (0, 1, 37):
            values = np.random.default_rng(length).normal(size=(2, length))
            assert_within(call(*values), outputs, {x: values[0], y: values[1]})


def chain(blocks: int) -> str:
    """The source of a chain of equal blocks, summed, with its gradient."""
    x = T.dvector("x")
    value = x
    for _ in range(blocks):
        value = 0.9 * value + 0.2 * T.tanh(value)
        value = value + 0.1 * T.exp(-(value * value))
        value = value - 0.1 * T.log1p(value * value)
    cost = value.sum()
    return code(graphc.function([x], [cost, graphc.grad(cost, x)], mode="python").source)


def loops_over_elements(source: str) -> Sequence[str]:
    return re.findall(r"^    for \w+ in independent\(begin, end\):\n(?:        .*\n)*", source, re.MULTILINE)


@pytest.mark.slow
def test_equal_blocks_of_a_chain_are_one_function_and_store_what_is_not_an_op_away() -> None:
    few, many = chain(20), chain(40)
    for source in (few, many):
        assert source.count("tanh(") <= 4 and source.count("log1p(") <= 4
    signature = re.search(r"^def kernel\((.*?)\):$", many, re.MULTILINE | re.DOTALL)
    assert signature is not None
    temporaries = [name for name in re.split(r",\s+", signature[1]) if re.fullmatch(r"t\d+", name)]
    assert len(temporaries) <= 4 * 40 + 2  # a tangent, an exponential and two sums of each block


@pytest.mark.slow
def test_a_nest_ends_where_one_value_is_all_that_both_parts_need() -> None:
    """The way back through the chain: each part hands one slope to the next."""
    backward = [text for text in loops_over_elements(chain(40)) if "tanh(" not in text and "accumulate" not in text]
    assert len(backward) >= 2
    stores = [len(re.findall(r"^        \w+\[i\] = ", text, re.MULTILINE)) for text in backward]
    assert sum(stores) <= len(backward) + 1


@pytest.mark.slow
def test_column_reductions_share_a_nest_where_they_reduce_the_same_axes() -> None:
    x = T.tensor("float64", shape=(40, 40, 40), name="x")
    outputs = [x.sum(0), x.max(0), x.sum(1), x.max(1)]
    lines = graphc.function([x], outputs).explain().splitlines()
    found = [" ".join(line.split()) for line in lines if re.search(r"nest \d+:|out\d?: a result", line)]
    sums = [re.search(r"(out\d?):", line)[1] if "out" in line else "nest" for line in found]  # type: ignore[index]
    assert sums == ["nest", "out", "out1", "nest", "out2", "out3"], lines


@pytest.mark.slow
def test_only_an_update_that_a_later_check_needs_is_copied_at_the_end() -> None:
    """The check reads the new value, so it comes after what makes it, and must leave the old value where it fails."""
    kept, moved = graphc.shared(np.zeros(3), name="kept"), graphc.shared(np.arange(3), name="moved")
    x = T.dvector("x")
    f = graphc.function([x], x[moved + 1], updates=[(kept, kept + 1.0), (moved, moved + 1)])
    ends = dict(re.findall(r" -> (\w+): a result; (.*)$", f.explain(), re.MULTILINE))
    assert ends == {"kept": "in place", "moved": "copied at the end"}
    with pytest.raises(graphc.GraphcError):
        f(np.ones(3))
    np.testing.assert_array_equal(moved.get_value(), [0, 1, 2])
    np.testing.assert_array_equal(kept.get_value(), 0.0)
    np.testing.assert_array_equal(f(np.arange(4.0)), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(moved.get_value(), [1, 2, 3])


@pytest.mark.slow
def test_a_value_that_others_need_keeps_out_of_the_nest_of_an_update() -> None:
    """`out` needs it, and reads the old value of `state`: in the update's nest it would come too late."""
    state, x = graphc.shared(np.arange(3.0), name="state"), T.dvector("x")
    shift = T.tanh(x)
    f = graphc.function([x], shift[:, None] * state[None, :], updates=[(state, state - shift)])
    assert re.search(r"-> state: a result; in place$", f.explain(), re.MULTILINE)


@pytest.mark.parametrize("seed", range(20))
def test_what_comes_later_is_known_whatever_the_order_in_which_it_is_told(seed: int) -> None:
    rng = random.Random(seed)
    drafts = Drafts()
    numbers = [drafts.new("loops", ()).number for _ in range(12)]
    edges = [(first, then) for first in numbers for then in numbers if first < then and rng.random() < 0.2]
    rng.shuffle(edges)
    for first, then in edges:
        drafts.depend(first, then)
    for start in numbers:
        later = reachable([start], lambda number: [then for first, then in edges if first == number])
        assert {number for number in numbers if drafts.is_later(number, start)} == {*later} - {start}
