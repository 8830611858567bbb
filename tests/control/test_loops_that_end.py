"""Random programs of loops that end by themselves within the steps of others: derivatives of first and second order
against differences, and the compiled program against the interpreted one.

Sizes of what a step computes depend there on how many steps a loop within it took, which is known in the midst of the
kernel only; memory is laid out for the most that it can be.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt
import pytest

import graphc
import graphc.tensor as T
from graphc.ir.node import Node

ENDS: dict[str, Callable[[Any], Any]] = {
    "last": lambda o: o[-1],
    "first": lambda o: o[0],
    "sum": lambda o: o.sum(axis=0) * 0.3,
    "mean": lambda o: o.mean(axis=0),
    "squares": lambda o: T.sqr(o).sum(axis=0) * 0.3,
    "count": lambda o: o[0] * T.cast(o.shape[0], "float64"),
    "middle": lambda o: o[o.shape[0] // 2],
    "running": lambda o: T.cumsum(o, axis=0)[-1] * 0.2,
    "reversed": lambda o: o[::-1][0],
}
"""What becomes of the rows of a loop."""


class Program:
    """A loop whose steps have loops that end by themselves, whose steps may have others."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.x, self.u = T.dvector("x"), T.dvector("u")
        self.w, self.n = T.dscalar("w"), T.lscalar("n")
        begin = self.u[:2] if self.random.random() < 0.4 else self.w
        blocks: Any = self.random.choice([None, None, 2, "sqrt"])
        rows = graphc.scan(self.outer, self.x, begin, checkpoint=blocks)[0]
        self.cost = T.sin(rows).sum()
        self.wrt = [self.x, self.w, self.u]

    def outer(self, e: Node, s: Node) -> Node:
        result = self.ending(1, e, s)
        if self.random.random() < 0.4:
            result = result * 0.5 + self.ending(1, e, result)
        return T.tanh(result)

    def ending(self, depth: int, e: Node, s: Node) -> Any:
        """A value of the shape of `s`, from a loop that ends by itself."""
        choose = self.random.choice
        over = {"numbers": T.arange(5), "x": self.x, "u": self.u, "nothing": None}[
            choose(["numbers", "x", "u", "nothing"])
        ]
        formula, ends, limit = self.random.randrange(4), self.random.randrange(4), choose([0.3, 0.8, 1.5])
        deeper, two = depth < 2 and self.random.random() < 0.4, self.random.random() < 0.3

        def step(*given: Any) -> Any:
            element = self.w if over is None else T.cast(given[0], "float64")
            z, *others = given[over is not None :]
            formulas: list[Callable[[], Any]] = [
                lambda: T.tanh(z * self.w + element * 0.3 + e * 0.2),
                lambda: T.sin(z + e) * self.w,
                lambda: z * 0.9 + T.sqr(e) * 0.1 + element * 0.1,
                lambda: T.exp(-T.sqr(z)) * self.w + element * 0.2,
            ]
            new = formulas[formula]()
            if deeper:
                new = new + 0.3 * self.ending(depth + 1, element, z)
            length = T.sum(T.sqr(new))
            until = graphc.until([length > limit, length < limit, T.sum(new) < 0.1, abs(T.sum(e)) > limit][ends])
            return [new, *(other * 0.5 + new * z for other in others)], until

        count = choose([4, self.n]) if over is None else choose([None, None, 3])
        begin = [s * 1.0, s * 0.5] if two else [s * 1.0]
        blocks: Any = choose([None, None, None, 2, "sqrt"])
        rows = graphc.scan(step, over, begin, n_steps=count, checkpoint=blocks, return_list=True)[0]
        if self.random.random() < 0.2:
            return graphc.scan(lambda v, p: T.tanh(v + p * self.w), rows[-1], s)[0][-1]
        return ENDS[choose([*ENDS])](rows[-1])


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "mode"), [*((n, "interpreted") for n in range(7)), (0, "compiled")])
def test_derivatives(seed: int, mode: str) -> None:
    program = Program(seed)
    slopes = graphc.grad(program.cost, program.wrt, disconnected_inputs="ignore")
    lengths: Any = sum(T.sqr(slope).sum() for slope in slopes)
    outputs = [program.cost, *slopes, lengths, *graphc.grad(lengths, program.wrt, disconnected_inputs="ignore")]
    inputs = [*program.wrt, program.n]
    specification = graphc.function(inputs, outputs, mode="interpreted", on_unused_input="ignore")
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=4), np.array(0.7), rng.normal(size=3)]
    wanted = specification(*values, 3)
    if mode == "compiled":
        found = graphc.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*values, 3)
        for got, value in zip(found, wanted, strict=True):
            npt.assert_allclose(got, value, rtol=1e-8, atol=1e-10)
        return
    along = [rng.normal(size=value.shape) for value in values]
    ends = [specification(*(v + step * d for v, d in zip(values, along, strict=True)), 3) for step in (1e-6, -1e-6)]
    for of, first in ((0, 1), (4, 5)):
        numeric = (ends[0][of] - ends[1][of]) / 2e-6
        slope = sum((part * d).sum() for part, d in zip(wanted[first : first + 3], along, strict=True))
        npt.assert_allclose(slope, numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_loop_of_which_the_last_row_is_taken_runs_once_and_keeps_no_rows() -> None:
    """How many steps it takes is then no size, whatever else is computed from that row."""
    begin, n = T.dvector("begin"), T.lscalar("n")
    rows, _ = graphc.scan(
        lambda s: (0.5 * s + 0.1 * s * s, graphc.until(s.sum() < 1e-3)), outputs_info=begin, n_steps=n
    )
    last, state = rows[-1], graphc.shared(np.ones(3), "state")
    f, specified = (graphc.function([begin, n], 2 * last, mode=mode) for mode in ("compiled", "interpreted"))
    update = graphc.function([n], [], updates={state: graphc.clone(last, {begin: state})})
    assert f.source.count("range(") == 1 and f.memory((3,), 10**6).total < 1000
    for steps in (1, 2, 50):
        values = np.full(3, 0.7), steps
        npt.assert_allclose(f(*values), specified(*values), rtol=1e-13)
    calls: list[tuple[Any, tuple[Any, ...]]] = [(f, (np.ones(3), 0)), (specified, (np.ones(3), 0)), (update, (0,))]
    for function, arguments in calls:
        with pytest.raises(graphc.errors.IndexOutOfBounds, match="index -1 is out of bounds for axis 0"):
            function(*arguments)
    update(1)
    npt.assert_allclose(state.get_value(), np.full(3, 0.6))
