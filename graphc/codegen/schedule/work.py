"""How much work a step of a loop is, so that long loops are left in time when a call is interrupted.

In: the results of a step. Out: a size: an addition in a loop over elements is 1, a tenth of a nanosecond. It is an
estimate: what is computed again is counted once, what is fused is not known yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphc.codegen.schedule.plan import PRODUCTS, call_kind, lowering_of
from graphc.ir import sizes
from graphc.ir.closure import outside
from graphc.ir.node import Call, Fold, Node, Part, Size, View
from graphc.ir.walk import as_size_node, nodes_of
from graphc.ops.linalg import as_product
from graphc.ops.scan import loop_of

STEP = 20
"""Of a step that does nothing."""
SCALAR = 10
"""Of an op on one element, where elements come one after the other, over what it is in a vector."""
OF_A_USER = 10**6
"""Of a function of the user."""


def work_of(results: Sequence[Node], known: Mapping[Node, Node] = {}) -> Size:
    """The work of a step with these results, `known` being what parameters in its sizes stand for."""
    parts: dict[Size, int] = {1: STEP}
    for node in nodes_of(results):
        if node.is_tuple:
            loop = loop_of(node.args, node.attrs)
            pairs = zip(loop.body.params, loop.operands, strict=True)
            counts = {param: outside(sizes.as_size(size), known) for param, size in pairs if may_be_size(param, size)}
            inside = work_of(loop.body.results, {param: as_size_node(size) for param, size in counts.items()})
            elements, cost = sizes.multiply(outside(sizes.as_size(loop.count), known), inside), 1
        else:
            elements, cost = _elements(node, known)
        if isinstance(elements, int):
            elements, cost = 1, elements * cost
        parts[elements] = parts.get(elements, 0) + cost
    total: Size = 0
    for elements, cost in parts.items():
        total = sizes.add(total, sizes.multiply(elements, cost))
    return total


def may_be_size(param: Node, operand: Node) -> bool:
    """Whether a size in a body may be computed from this parameter."""
    return param.dtype == "int64" and not param.ndim and not operand.ndim


def _elements(node: Node, known: Mapping[Node, Node]) -> tuple[Size, int]:
    """How many elements a node computes, and the work of each."""
    lowering, shape = lowering_of(node), node.type.shape
    cost = round(node.op.cost)
    if isinstance(lowering, View | Part | None):
        cost = 0
    elif isinstance(lowering, Fold):
        shape = (*shape, *lowering.sizes(node))
    elif call_kind(node) in PRODUCTS:
        shape = (*shape, as_product(node.args).a.type.shape[-1])
        cost = 1
    elif isinstance(lowering, Call):
        cost = OF_A_USER
    return sizes.product(outside(size, known) for size in shape), cost if shape else cost * SCALAR
