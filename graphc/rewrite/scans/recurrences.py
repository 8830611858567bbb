"""States that running sums and linear recurrences go through: ordinary nodes, which need no loop of their own.

In: an open loop, and who takes what in the graph around it. Out: whether it was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from graphc.arrays.dtypes import INTEGERS, accumulator, is_float
from graphc.ir import sizes
from graphc.ir.node import Node, Size, literal
from graphc.ir.walk import as_size_node, nodes_since
from graphc.ops.elementwise import elementwise
from graphc.ops.recur import EXTREMES, linear_recurrence, running_sum, stepped_extreme
from graphc.ops.reduce import reduce_sum
from graphc.ops.shape import broadcast_to, concatenate, drop, expand, iota
from graphc.rewrite.rules.engine import is_number, scalar_constant
from graphc.rewrite.scans.open_loops import (
    OpenLoop,
    Surroundings,
    held,
    leave,
    liftable,
    lifted,
    part_of,
    repeated,
    spread,
)
from graphc.rewrite.scans.products import plus
from graphc.startup.record import record


def as_recurrences(loop: OpenLoop, around: Surroundings) -> bool:
    """A loop whose states are running sums and linear recurrences as these, which need no loop of their own; its
    outputs, and what is added up, may be elementwise of what states go through.

    Not a recurrence of which only the last value is taken, nor one of arrays for the sake of sums: its rows would be
    stored for that.
    """
    rows = loop.rows
    if not loop.is_whole or not loop.states:
        return False
    order = loop.order()
    varying = loop.varying(order)
    given: dict[Node, Callable[[], Node]] = {}
    found: dict[Node, Recurrence] = {}
    while len(found) < len(loop.states):
        able = liftable([*loop.elements, *given], order, varying)
        left = [state for state in loop.states if state not in found]
        more = {state: each for state in left if (each := _recurrence(loop, state, varying, able, given)) is not None}
        if not more:
            return False
        found |= more
        for state, each in more.items():
            given |= {each.node: each.rows, state: partial(_before, loop, state, varying, each, given)}
    if not rows and not all(
        _is_added_up(loop, state, each) for state, each in found.items() if each.factor is not None
    ):
        return False
    if not liftable([*loop.elements, *given], order, varying).issuperset(rows.values()):
        return False
    made = dict(zip(rows, lifted(loop, list(rows.values()), varying, given), strict=True))
    ends = {s: _end(loop, state, varying, found[state], given) for s, state in loop.last.items()}
    leave(loop, made | ends)
    return True


def _is_added_up(loop: OpenLoop, state: Node, found: Recurrence) -> bool:
    """Whether what a scalar goes through is read by another state."""
    others = [after for other, after in loop.after.items() if other is not state]
    return not state.ndim and not {state, found.node}.isdisjoint(nodes_since(others, loop.since))


@record()
class Recurrence:
    """A node of a step that is a recurrence: x[t] = term[t] + factor[t] * x[t - 1], or where it is `late` the factor of
    the step before; without a factor a running sum. The terms have rows for all steps. `initial`: the state begins so.
    `extreme`: it is that of factor + x[t - 1] and of term[t], integers.
    """

    node: Node
    initial: Node
    factor: Node | None
    term: Node
    late: bool
    count: Size
    reverse: bool
    extreme: str = ""

    def rows(self) -> Node:
        """The values in all steps."""
        if self.extreme:
            return self._extremes()
        if self.factor is None:
            if is_number(self.initial, 0.0):  # a sum with 0.0 is never -0.0
                return running_sum(elementwise("add", self.term, self.initial), 0, self.reverse)
            return elementwise("add", spread(self.count, self.initial), running_sum(self.term, 0, self.reverse))
        if not self.late and is_number(self.initial, 0.0):
            return linear_recurrence(self.factor, self.term, 0, self.reverse)
        late = self.late and repeated(self.factor) is None  # by one factor it is the same to multiply before or after
        factor = self.factor if late else self._in_first(literal(-0.0, self.factor.dtype), self.factor)
        return linear_recurrence(factor, self._terms(), 0, self.reverse, "late" if late else "own")

    def _terms(self) -> Node:
        """The terms, the first of them with what the initial value adds to it. The recurrence itself begins with zero,
        which is not to be multiplied by a factor that may be infinite."""
        assert self.factor is not None
        begin = spread(self.count, self.initial)
        if not self.late:
            begin = elementwise("mul", self.factor, begin)
        return self._in_first(elementwise("add", begin, self.term), self.term)

    def _in_first(self, first: Node, others: Node) -> Node:
        """One value in the first step, and another in those that follow."""
        begins = sizes.add(self.count, -1) if self.reverse else 0
        is_first = elementwise("equal", iota(self.count), as_size_node(begins))
        is_first = broadcast_to(expand(is_first, range(1, others.ndim)), others.type.shape)
        return elementwise("where", is_first, first, others)

    def _extremes(self) -> Node:
        """The values in all steps, where they are extremes."""
        assert self.factor is not None
        number = scalar_constant(self.factor)
        assert number is not None
        terms = elementwise("add", self.term, spread(self.count, self.factor))
        return stepped_extreme(terms, self.initial, self.extreme, int(number), self.reverse)


Given: TypeAlias = Mapping[Node, Callable[[], Node]]
"""What all steps make of nodes that are known to be recurrences, and of their states."""


def _recurrence(loop: OpenLoop, state: Node, varying: set[Node], able: set[Node], given: Given) -> Recurrence | None:
    """The recurrence that a state is, if it is one over what elements of sequences give, and what is given: a sum of
    it, or of its product, with another node, or the product of such a sum."""
    if not is_float(state.dtype):
        return _extreme(loop, state, varying, able, given)
    if accumulator(state.dtype) != state.dtype:
        return None

    def fits(node: Node) -> bool:
        return node in able or node not in varying

    def made(node: Node, factor: Node | None, term: Node, late: bool = False) -> Recurrence:
        rows, *factors = lifted(loop, [term] if factor is None else [term, factor], varying, given)
        own = factors[0] if factors else None
        return Recurrence(node, loop.states[state], own, rows, late, loop.count, loop.reverse)

    after = loop.after[state]
    for first, other in _pairs(held(after), "add"):
        if held(first) is state and fits(other):
            return made(after, None, other)
        for second, factor in _pairs(held(first), "mul"):
            if held(second) is state and fits(factor) and fits(other):
                return made(after, factor, other)
    for first, factor in _pairs(held(after), "mul"):
        for second, other in _pairs(held(first), "add"):
            if held(second) is state and fits(factor) and fits(other):
                return made(first, factor, other, late=True)
    return None


def _extreme(loop: OpenLoop, state: Node, varying: set[Node], able: set[Node], given: Given) -> Recurrence | None:
    """The extreme that a state of integers is of itself, with a number added, and of what is given."""
    after = loop.after[state]
    for extreme in EXTREMES if state.dtype in INTEGERS and not state.ndim else ():
        for first, other in _pairs(held(after), extreme):
            for second, step in _pairs(held(first), "add"):
                number = scalar_constant(step)
                # the least number has no opposite
                invariant = held(second) is state and number is not None and number != np.iinfo(number.dtype).min
                if invariant and (other in able or other not in varying):
                    (rows,) = lifted(loop, [other], varying, given)
                    begin = loop.states[state]
                    return Recurrence(after, begin, step, rows, True, loop.count, loop.reverse, extreme)
    return None


def _pairs(node: Node, op: str) -> list[tuple[Node, Node]]:
    """The arguments of a node of this op, in both orders."""
    return [(node.args[0], node.args[1]), (node.args[1], node.args[0])] if node.op.name == op else []


def _all_values(loop: OpenLoop, state: Node, varying: set[Node], found: Recurrence, given: Given) -> Node:
    """The initial value of a state and those after all steps, in the order of the rows."""
    after = lifted(loop, [loop.after[state]], varying, {**given, found.node: found.rows})[0]
    begin = expand(found.initial, (0,))
    return concatenate((after, begin) if loop.reverse else (begin, after), 0)


def _before(loop: OpenLoop, state: Node, varying: set[Node], found: Recurrence, given: Given) -> Node:
    """The values of a state before all steps."""
    if found.factor is not None and not found.late and is_number(found.initial, 0.0):
        return linear_recurrence(found.factor, found.term, 0, loop.reverse, "before")
    return part_of(_all_values(loop, state, varying, found, given), 1 if loop.reverse else 0, loop.count)


def _end(loop: OpenLoop, state: Node, varying: set[Node], found: Recurrence, given: Given) -> Node:
    """The value of a state after all steps, of which there may be none."""
    if found.factor is None:
        return plus(found.initial, [reduce_sum(found.term, (0,))])
    return drop(part_of(_all_values(loop, state, varying, found, given), 0 if loop.reverse else loop.count, 1), (0,))
