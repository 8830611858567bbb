"""Passes that replace work in steps by one op over all steps: products, sums of products, recurrences.

In: an open loop and the graph around it. Out: True if the loop was changed:

    dot(x[t], W) in each step                  batch_products     one product dot(X, W), whose rows are a sequence
    G = G + outer(x[t], c[t])                  sum_products       one product dot(X.T, C)
    output dot(h[t], V), V constant            project_rows       dot(H, V), outside
    s = f[t] * s + x[t], s = s + x[t]          as_recurrences     linear_recurrence(f, x), running_sum(x)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from graphc.arrays.dtypes import INTEGERS, accumulator, is_float
from graphc.ir import sizes
from graphc.ir.facts import scalar_constant
from graphc.ir.node import Node, Size, literal
from graphc.ir.walk import as_size_node, nodes_since, toposort
from graphc.ops.elementwise import elementwise
from graphc.ops.linalg.products import matmul
from graphc.ops.recur import EXTREMES, linear_recurrence, running_sum, stepped_extreme
from graphc.ops.reduce import reduce_sum
from graphc.ops.scan import is_recomputed
from graphc.ops.shape import broadcast_to, concatenate, dimshuffle, drop, expand, iota, transpose
from graphc.rewrite.engine import is_number
from graphc.rewrite.matrices import untransposed
from graphc.rewrite.open_loops import (
    LoopContext,
    OpenLoop,
    fitted,
    flat,
    is_batch,
    liftable,
    lifted,
    part_of,
    repeated,
    replace_outputs,
    spread,
    unbroadcast,
    uses_of,
)
from graphc.startup.record import record


def batch_products(loop: OpenLoop, around: LoopContext) -> bool:
    """Products of sequence elements with a constant matrix become one product for all steps, whose rows are a sequence.

    Elementwise ops that compute an operand move along; others cost no memory inside the loop.
    """
    if not loop.is_whole:
        return False
    order = loop.order()
    varying = loop.varying(order)
    able = liftable(loop.elements, order, varying, products=True)
    roots: dict[Node, None] = {}
    seen: set[Node] = set()
    pending = loop.results
    while pending:
        node = pending.pop()
        if node in seen or node not in varying:
            continue
        seen.add(node)
        if node in able and is_batch(node, varying):
            roots[node] = None
        else:
            pending += node.args
    rows = lifted(loop, list(roots), varying)
    loop.replace({root: loop.element_of(row) for root, row in zip(roots, rows, strict=True)})
    return bool(roots)


@record()
class Factors:
    """Two nodes of a step whose product is added to a state: left' @ right of matrices or vectors; left @ right if
    `turned`; the outer product of two vectors if `outer`."""

    left: Node
    right: Node
    outer: bool = False
    turned: bool = False


def sum_products(loop: OpenLoop, around: LoopContext) -> bool:
    """Products summed over the steps, as in the gradient of a constant, become one product over all steps.

    Sums of rows that are stacked anyway, as in the gradient of a bias, become sums over an axis.
    """
    order = loop.order()
    is_again = any(is_recomputed(node) or node.op.name == "computed_after" for node in order)
    if not loop.is_whole or is_again:  # which is there so that not all steps are kept
        return False
    varying, uses = loop.varying(order), uses_of(loop, order)
    able = liftable(loop.elements, order, varying)

    def rows_of(node: Node) -> Node:
        return lifted(loop, [node], varying)[0] if node in able else loop.rows_of(node)

    left: dict[Node, list[Node]] = {}
    found: dict[Node, Node] = {}
    for stand_in, state in loop.last.items():
        terms = terms_of(loop, state, uses)
        factors = [_factors(term, varying) for term in terms]
        pairs = [pair for pair in factors if pair is not None and all(map(loop.keeps_sizes, (pair.left, pair.right)))]
        if terms and len(pairs) == len(terms):
            found[stand_in] = plus(loop.states[state], [_product(pair, rows_of) for pair in pairs])
        elif terms:
            left[stand_in] = terms
    for stand_in, terms in left.items():
        stored = {*loop.rows.values(), *able}
        sums = [_row_sum(term, stored, rows_of) for term in terms]
        totals = [total for total in sums if total is not None]
        if len(totals) == len(terms):
            found[stand_in] = plus(loop.states[loop.last[stand_in]], totals)
    loop.replace_results({stand_in: fitted(total, stand_in.type) for stand_in, total in found.items()})
    return bool(found)


def terms_of(loop: OpenLoop, state: Node, uses: Mapping[Node, int]) -> list[Node]:
    """The terms that each step adds to a float state that is used for nothing else; empty for any other state."""
    after = loop.after[state]
    if uses[state] != 1 or uses[after] != 1 or not is_float(state.type.dtype):
        return []
    terms, pending = list[Node](), [after]
    while pending:
        node = unbroadcast(pending.pop())
        if node.op.name == "add" and uses[node] == 1:
            pending += node.args
        else:
            terms.append(node)
    if state not in terms:
        return []
    terms.remove(state)
    return terms


def _factors(term: Node, varying: set[Node]) -> Factors | None:
    """The factors of a term that is a product of two loop-varying nodes; None otherwise."""
    factors = None
    match term.op.name, [unbroadcast(arg) for arg in term.args]:
        case "matmul", [a, b] if a.ndim <= 2 and b.ndim == 2 and a.ndim == 1:
            factors = Factors(b, a)
        case "matmul", [a, b] if a.ndim == 2 and b.ndim <= 2:
            inner = untransposed(a)
            factors = Factors(a, b, turned=True) if inner is None else Factors(unbroadcast(inner), b)
        case "mul", [a, b]:
            factors = _outer(a, b) or _outer(b, a)
    return factors if factors is not None and factors.left in varying and factors.right in varying else None


def _outer(a: Node, b: Node) -> Factors | None:
    left, right = _vector(a, (0, "x")), _vector(b, ("x", 0))
    return None if left is None or right is None else Factors(left, right, outer=True)


def _vector(node: Node, order: tuple[int | str, ...]) -> Node | None:
    """The vector that a matrix repeats in this order of axes, or None. It may have trailing axes of size 1."""
    inner = node.args[0] if node.op.name == "broadcast_to" else node
    if inner.op.name != "dimshuffle" or inner.attrs["order"] != order:
        return None
    (vector,) = inner.args
    return unbroadcast(vector) if vector.ndim == 1 else vector


def _product(factors: Factors, rows_of: Callable[[Node], Node]) -> Node:
    """The sum of the products of all steps, as one product."""
    left, right = rows_of(factors.left), rows_of(factors.right)
    if factors.turned:
        left = dimshuffle(left, (0, 2, 1))
    if factors.outer:
        left, right = dimshuffle(left, (0, 1)), dimshuffle(right, (0, 1))
    else:
        left, right = flat(left), flat(right)
    return matmul(transpose(left), right)


def _row_sum(term: Node, stored: set[Node], rows_of: Callable[[Node], Node]) -> Node | None:
    """The sum over all steps of a stacked term, or of a reduction of one; None otherwise."""
    if term in stored:
        return reduce_sum(rows_of(term), (0,))
    if term.op.name == "sum" and unbroadcast(term.args[0]) in stored:
        return reduce_sum(rows_of(unbroadcast(term.args[0])), (0, *(axis + 1 for axis in term.attrs["axes"])))
    return None


def plus(initial: Node, terms: Sequence[Node]) -> Node:
    """A value plus terms, from left to right."""
    # adding 0.0 turns -0.0 into 0.0; products of matrices are never -0.0
    total, *rest = terms if is_number(initial, 0.0) and terms[0].op.name == "matmul" else [initial, *terms]
    for term in rest:
        total = elementwise("add", total, fitted(term, total.type))
    return total


def project_rows(loop: OpenLoop, around: LoopContext) -> bool:
    """Outputs that are products of a step's values with constants, and that no state depends on, are computed outside
    for all steps: the output layer of a network, the gradient of its input. For a loop without states, also outputs
    that are reductions.

    At most one other value is stacked in their place.
    """
    if not loop.is_whole:
        return False
    order = loop.order()
    varying = loop.varying(order)
    core = {node for node in nodes_since(loop.after.values(), loop.since) if node in varying}
    able = liftable([*loop.elements, *core], order, varying, products=True)
    stored = {*loop.elements, *loop.rows.values()}
    products: dict[Node, list[Node]] = {}
    ends: dict[Node, list[Node]] = {}
    for stand_in, output in loop.rows.items():
        if output in able and output not in core:
            tail = toposort([output], lambda node: () if node in core or node not in varying else node.args)
            batches = [node for node in tail if node in varying and node not in core and is_batch(node, varying)]
            from_ = [node for node in tail if node in core]
            unstored = [end for end in from_ if end not in stored]
            if (batches or not loop.states) and len(unstored) <= 1 and all(map(loop.keeps_sizes, unstored)):
                products[stand_in], ends[stand_in] = batches, from_
    while True:  # what the outputs need that stay is not computed twice
        staying = [output for stand_in, output in loop.rows.items() if stand_in not in products]
        needed = set(nodes_since(staying, loop.since))
        kept = {stand_in: own for stand_in, own in products.items() if needed.isdisjoint(own)}
        if len(kept) == len(products):
            break
        products = kept
    projected: dict[Node, Node] = {}
    for stand_in in products:
        stacked = {end: partial(loop.rows_of, end) for end in ends[stand_in]}
        projected[stand_in] = lifted(loop, [loop.rows[stand_in]], varying, stacked)[0]
    replace_outputs(loop, projected)
    return bool(projected)


# --- recurrences ------------------------------------------------------------------------------------------------------


def as_recurrences(loop: OpenLoop, around: LoopContext) -> bool:
    """A loop whose states are all running sums or linear recurrences is replaced by these ops. Its outputs, and the
    terms, may be elementwise functions of the states.

    Not if only the last value of a recurrence is used, nor for array recurrences used only in sums: all their rows
    would be stored.
    """
    rows = loop.rows
    if not loop.is_whole or not loop.states:
        return False
    order = loop.order()
    varying = loop.varying(order)
    stacked: dict[Node, Callable[[], Node]] = {}
    recurrences: dict[Node, Recurrence] = {}
    while len(recurrences) < len(loop.states):
        able = liftable([*loop.elements, *stacked], order, varying)
        left = [state for state in loop.states if state not in recurrences]
        new = {state: each for state in left if (each := _recurrence(loop, state, varying, able, stacked)) is not None}
        if not new:
            return False
        recurrences |= new
        for state, each in new.items():
            stacked |= {each.node: each.rows, state: partial(_values_before, loop, state, varying, each, stacked)}
    if not rows and not all(
        _is_added_up(loop, state, each) for state, each in recurrences.items() if each.factor is not None
    ):
        return False
    if not liftable([*loop.elements, *stacked], order, varying).issuperset(rows.values()):
        return False
    values = dict(zip(rows, lifted(loop, list(rows.values()), varying, stacked), strict=True))
    ends = {s: _final_value(loop, state, varying, recurrences[state], stacked) for s, state in loop.last.items()}
    replace_outputs(loop, values | ends)
    return True


def _is_added_up(loop: OpenLoop, state: Node, recurrence: Recurrence) -> bool:
    """True if the values of a scalar state are read by another state."""
    others = [after for other, after in loop.after.items() if other is not state]
    return not state.ndim and not {state, recurrence.node}.isdisjoint(nodes_since(others, loop.since))


@record()
class Recurrence:
    """A node x of a step with x[t] = term[t] + factor[t] * x[t - 1]; if `late`, with factor[t - 1]; without a factor a
    running sum. term and factor have one row for each step. initial: the state's initial value. extreme: the maximum or
    minimum of x[t - 1] + factor and term[t], for integers."""

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
        factor = self.factor if late else self._select_first_step(literal(-0.0, self.factor.type.dtype), self.factor)
        return linear_recurrence(factor, self._terms(), 0, self.reverse, "late" if late else "own")

    def _terms(self) -> Node:
        """The terms; the first one includes the contribution of the initial value. The recurrence itself starts from
        zero, which must not be multiplied by a factor that may be infinite."""
        assert self.factor is not None
        begin = spread(self.count, self.initial)
        if not self.late:
            begin = elementwise("mul", self.factor, begin)
        return self._select_first_step(elementwise("add", begin, self.term), self.term)

    def _select_first_step(self, first: Node, others: Node) -> Node:
        """`first` in the first step, `others` in the following ones."""
        begins = sizes.add(self.count, -1) if self.reverse else 0
        is_first = elementwise("equal", iota(self.count), as_size_node(begins))
        is_first = broadcast_to(expand(is_first, range(1, others.ndim)), others.type.shape)
        return elementwise("where", is_first, first, others)

    def _extremes(self) -> Node:
        """The values in all steps of a recurrence of extremes."""
        assert self.factor is not None
        number = scalar_constant(self.factor)
        assert number is not None
        terms = elementwise("add", self.term, spread(self.count, self.factor))
        return stepped_extreme(terms, self.initial, self.extreme, int(number), self.reverse)


StackedValues: TypeAlias = Mapping[Node, Callable[[], Node]]
"""Functions that return the stacked values of recurrences found so far, and of their states."""


def _recurrence(
    loop: OpenLoop, state: Node, varying: set[Node], able: set[Node], stacked: StackedValues
) -> Recurrence | None:
    """The recurrence that a state is, or None: state + term, factor * state + term or factor * (state + term), where
    term and factor can be lifted."""
    if not is_float(state.type.dtype):
        return _extreme(loop, state, varying, able, stacked)
    if accumulator(state.type.dtype) != state.type.dtype:
        return None

    def fits(node: Node) -> bool:
        return node in able or node not in varying

    def made(node: Node, factor: Node | None, term: Node, late: bool = False) -> Recurrence:
        rows, *factors = lifted(loop, [term] if factor is None else [term, factor], varying, stacked)
        own = factors[0] if factors else None
        return Recurrence(node, loop.states[state], own, rows, late, loop.count, loop.reverse)

    after = loop.after[state]
    for first, other in _pairs(unbroadcast(after), "add"):
        if unbroadcast(first) is state and fits(other):
            return made(after, None, other)
        for second, factor in _pairs(unbroadcast(first), "mul"):
            if unbroadcast(second) is state and fits(factor) and fits(other):
                return made(after, factor, other)
    for first, factor in _pairs(unbroadcast(after), "mul"):
        for second, other in _pairs(unbroadcast(first), "add"):
            if unbroadcast(second) is state and fits(factor) and fits(other):
                return made(first, factor, other, late=True)
    return None


def _extreme(
    loop: OpenLoop, state: Node, varying: set[Node], able: set[Node], stacked: StackedValues
) -> Recurrence | None:
    """The recurrence of an integer state that is the extreme of itself plus a constant and a liftable node, or None."""
    after = loop.after[state]
    for extreme in EXTREMES if state.type.dtype in INTEGERS and not state.ndim else ():
        for first, other in _pairs(unbroadcast(after), extreme):
            for second, step in _pairs(unbroadcast(first), "add"):
                number = scalar_constant(step)
                # the least number has no opposite
                invariant = unbroadcast(second) is state and number is not None and number != np.iinfo(number.dtype).min
                if invariant and (other in able or other not in varying):
                    (rows,) = lifted(loop, [other], varying, stacked)
                    begin = loop.states[state]
                    return Recurrence(after, begin, step, rows, True, loop.count, loop.reverse, extreme)
    return None


def _pairs(node: Node, op: str) -> list[tuple[Node, Node]]:
    """The arguments of a node of this op, in both orders; empty for another op."""
    return [(node.args[0], node.args[1]), (node.args[1], node.args[0])] if node.op.name == op else []


def _all_values(loop: OpenLoop, state: Node, varying: set[Node], recurrence: Recurrence, rows: StackedValues) -> Node:
    """The initial value of a state and its values after each step, in the order of rows."""
    after = lifted(loop, [loop.after[state]], varying, {**rows, recurrence.node: recurrence.rows})[0]
    begin = expand(recurrence.initial, (0,))
    return concatenate((after, begin) if loop.reverse else (begin, after), 0)


def _values_before(
    loop: OpenLoop, state: Node, varying: set[Node], recurrence: Recurrence, rows: StackedValues
) -> Node:
    """The values of a state before each step."""
    if recurrence.factor is not None and not recurrence.late and is_number(recurrence.initial, 0.0):
        return linear_recurrence(recurrence.factor, recurrence.term, 0, loop.reverse, "before")
    return part_of(_all_values(loop, state, varying, recurrence, rows), 1 if loop.reverse else 0, loop.count)


def _final_value(loop: OpenLoop, state: Node, varying: set[Node], recurrence: Recurrence, rows: StackedValues) -> Node:
    """The final value of a state; there may be no steps."""
    if recurrence.factor is None:
        return plus(recurrence.initial, [reduce_sum(recurrence.term, (0,))])
    return drop(
        part_of(_all_values(loop, state, varying, recurrence, rows), 0 if loop.reverse else loop.count, 1), (0,)
    )
