"""Products in the steps of a loop that become one product over all steps, and sums of products.

In: an open loop, and who takes what in the graph around it. Out: whether it was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from graphc.arrays.dtypes import is_float
from graphc.ir.node import Node
from graphc.ir.walk import nodes_since, toposort
from graphc.ops.elementwise import elementwise
from graphc.ops.linalg.products import matmul
from graphc.ops.reduce import reduce_sum
from graphc.ops.scan import is_recomputed
from graphc.ops.shape import dimshuffle, transpose
from graphc.rewrite.rules.engine import is_number
from graphc.rewrite.rules.matrices import turned_of
from graphc.rewrite.scans.open_loops import (
    OpenLoop,
    Surroundings,
    fitted,
    flat,
    held,
    is_batch,
    leave,
    liftable,
    lifted,
    uses_of,
)
from graphc.startup.record import record


def batch_products(loop: OpenLoop, around: Surroundings) -> bool:
    """Products of elements of sequences with a constant matrix as one product for all steps, whose rows are a sequence.

    Elementwise work goes along where it makes an operand; other work of that kind costs no memory in the loop.
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
    """Two nodes of a step whose product it adds to a state: left' @ right, of matrices or vectors; or the products of
    all elements of two vectors (`outer`). `turned`: it is left @ right."""

    left: Node
    right: Node
    outer: bool = False
    turned: bool = False


def sum_products(loop: OpenLoop, around: Surroundings) -> bool:
    """Products that are summed over the steps, as the gradient of a constant is, as one product over all steps.

    Sums of rows that are stored anyway, as the gradient of what is added in every step, are sums of these.
    """
    order = loop.order()
    if not loop.is_whole or any(map(is_recomputed, order)):  # which is there so that not all steps are kept
        return False
    varying, uses = loop.varying(order), uses_of(loop, order)
    able = liftable(loop.elements, order, varying)

    def rows_of(node: Node) -> Node:
        return lifted(loop, [node], varying)[0] if node in able else loop.rows_of(node)

    left: dict[Node, list[Node]] = {}
    found: dict[Node, Node] = {}
    for stand_in, state in loop.last.items():
        terms = _terms(loop, state, uses)
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


def _terms(loop: OpenLoop, state: Node, uses: Mapping[Node, int]) -> list[Node]:
    """What each step adds to a state of floats that is read for nothing else; nothing where it is not so."""
    after = loop.after[state]
    if uses[state] != 1 or uses[after] != 1 or not is_float(state.dtype):
        return []
    after = held(after)
    if after.op.name != "add" or uses[after] != 1:
        return []
    for place in (0, 1):
        if held(after.args[place]) is state:
            break
    else:
        return []
    terms, pending = list[Node](), [after.args[1 - place]]
    while pending:
        node = held(pending.pop())
        if node.op.name == "add" and uses[node] == 1:
            pending += node.args
        else:
            terms.append(node)
    return terms


def _factors(term: Node, varying: set[Node]) -> Factors | None:
    """The factors of a term that is a product of two nodes which change from step to step."""
    found = None
    match term.op.name, [held(arg) for arg in term.args]:
        case "matmul", [a, b] if a.ndim <= 2 and b.ndim == 2 and a.ndim == 1:
            found = Factors(b, a)
        case "matmul", [a, b] if a.ndim == 2 and b.ndim <= 2:
            inner = turned_of(a)
            found = Factors(a, b, turned=True) if inner is None else Factors(held(inner), b)
        case "mul", [a, b]:
            found = _outer(a, b) or _outer(b, a)
    return found if found is not None and found.left in varying and found.right in varying else None


def _outer(a: Node, b: Node) -> Factors | None:
    left, right = _vector(a, (0, "x")), _vector(b, ("x", 0))
    return None if left is None or right is None else Factors(left, right, outer=True)


def _vector(node: Node, order: tuple[int | str, ...]) -> Node | None:
    """The vector that a matrix repeats; it may have more axes of size 1 at its end, which the matrix has not."""
    inner = node.args[0] if node.op.name == "broadcast_to" else node
    if inner.op.name != "dimshuffle" or inner.attrs["order"] != order:
        return None
    (vector,) = inner.args
    return held(vector) if vector.ndim == 1 else vector


def _product(factors: Factors, rows_of: Callable[[Node], Node]) -> Node:
    """The sum of the products of all steps."""
    left, right = rows_of(factors.left), rows_of(factors.right)
    if factors.turned:
        left = dimshuffle(left, (0, 2, 1))
    if factors.outer:
        left, right = dimshuffle(left, (0, 1)), dimshuffle(right, (0, 1))
    else:
        left, right = flat(left), flat(right)
    return matmul(transpose(left), right)


def _row_sum(term: Node, stored: set[Node], rows_of: Callable[[Node], Node]) -> Node | None:
    """The sum over all steps of what is stored, or of its sum over axes."""
    if term in stored:
        return reduce_sum(rows_of(term), (0,))
    if term.op.name == "sum" and held(term.args[0]) in stored:
        return reduce_sum(rows_of(held(term.args[0])), (0, *(axis + 1 for axis in term.attrs["axes"])))
    return None


def plus(initial: Node, terms: Sequence[Node]) -> Node:
    """A value with terms added to it, one after the other."""
    # 0.0 makes 0.0 of sums that are -0.0, as products of matrices never are
    total, *rest = terms if is_number(initial, 0.0) and terms[0].op.name == "matmul" else [initial, *terms]
    for term in rest:
        total = elementwise("add", total, fitted(term, total.type))
    return total


def project_rows(loop: OpenLoop, around: Surroundings) -> bool:
    """Outputs that follow by products with constants from what a step makes, and that no state needs, computed outside
    for all steps at once: as what a network gives at each step, and the gradient of what it is given. Of a loop without
    states also those that follow by sums.

    What they follow from is stored in their place; no more than that.
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
            own = [node for node in tail if node in varying and node not in core and is_batch(node, varying)]
            from_ = [node for node in tail if node in core]
            more = [end for end in from_ if end not in stored]
            if (own or not loop.states) and len(more) <= 1 and all(map(loop.keeps_sizes, more)):
                products[stand_in], ends[stand_in] = own, from_
    while True:  # what the outputs need that stay is not computed twice
        staying = [output for stand_in, output in loop.rows.items() if stand_in not in products]
        needed = set(nodes_since(staying, loop.since))
        kept = {stand_in: own for stand_in, own in products.items() if needed.isdisjoint(own)}
        if len(kept) == len(products):
            break
        products = kept
    found: dict[Node, Node] = {}
    for stand_in in products:
        given = {end: partial(loop.rows_of, end) for end in ends[stand_in]}
        found[stand_in] = lifted(loop, [loop.rows[stand_in]], varying, given)[0]
    leave(loop, found)
    return bool(found)
