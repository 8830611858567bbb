"""Branches: of two bodies the one that a condition chooses is carried out, and the other is not.

In: a condition, what the bodies need, and the bodies. Out: a node of several results, those of the body that was
carried out.

    args     condition (a bool scalar), operands
    params   of both bodies: what the operands stand for
    results  of the bodies: as many, of equal dtypes and ranks
    result   those of `then` where the condition holds, else those of `orelse`

Sizes within a body that take more than arithmetic are operands, computed ahead by another such node.

What a body refuses, this node refuses only where that body is carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from graphc.arrays.dtypes import is_float
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.body import ITEM, close_over, item, make_body, needed_of, opened, outside
from graphc.ir.interpret import Steps, plan_steps, run_steps
from graphc.ir.lowering import Branch
from graphc.ir.node import (
    FUNCTIONS,
    OPS,
    Array,
    Attributes,
    Body,
    Guard,
    Node,
    Size,
    Type,
    define_op,
    describe,
    make,
    phrase,
    tuple_of,
)
from graphc.ir.walk import Graph, as_size_node
from graphc.ops.index import subtensor
from graphc.ops.shape import broadcast_to, equality_guard, label, label_op

SIZE_OPS = {"add", "sub", "mul", "floor_div", "minimum", "maximum", "where", "cast", "less", "less_equal", "equal"}
"""What is cheaper to compute than to decide whether it is needed, and refuses nothing."""


WRITTEN, SUNK, AHEAD = "written", "sunk", "ahead"
"""What becomes of a branch: as the program made it, its operands may be needed in one branch only; then they are needed
in both (sinking.py). Or it computes sizes within another branch of its condition."""


def cond_node(
    condition: Node, then: Sequence[Node], orelse: Sequence[Node], at_hand: Collection[Node], state: str = WRITTEN
) -> Node:
    """The node that chooses between results, which are computed within it from the nodes `at_hand`."""
    results = (*then, *orelse)
    body, operands = close_over((), needed_of(at_hand, results), results)
    bodies = {"then": body.results[: len(then)], "orelse": body.results[len(then) :]}
    attrs = {name: make_body(body.params, own) for name, own in bodies.items()}
    return make(COND, (condition, *operands), {**attrs, "state": state})


def sized(node: Node, shape: Sequence[Size]) -> Node:
    """A result of a branch, which has these sizes whichever is taken."""
    if node.op is not ITEM or node.args[0].op is not COND or all(map(sizes.equal, node.type.shape, shape)):
        return node
    whole, place = node.args[0], node.attrs["index"]
    then, orelse = (opened(whole.attrs[name], whole.args[1:]) for name in ("then", "orelse"))
    for side in (then, orelse):
        side[place] = resized(side[place], shape)
    at_hand = {*whole.args, *(size for size in shape if isinstance(size, Node))}
    return item(cond_node(whole.args[0], then, orelse, at_hand), place)


def resized(node: Node, shape: Sequence[Size]) -> Node:
    """A value under other sizes, which are held to be those that it has."""
    if all(map(sizes.equal, node.type.shape, shape)):
        return node
    return subtensor(broadcast_to(node, shape), [0] * node.ndim, shape, [1] * node.ndim)


# --- types ------------------------------------------------------------------------------------------------------------


def _infer(args: Sequence[Node], attrs: Attributes) -> Type:
    condition, operands = args[0], args[1:]
    then, orelse = attrs["then"], attrs["orelse"]
    if (condition.type.dtype, condition.ndim) != ("bool", 0):
        raise GraphTypeError(f"cond: the condition {describe(condition)} has type {condition.type}, not bool[]")
    if then.params != orelse.params or len(then.params) != len(operands):
        raise GraphTypeError(f"cond: {len(operands)} operands, {len(then.params)} and {len(orelse.params)} parameters")
    for operand, param in zip(operands, then.params, strict=True):
        if (operand.type.dtype, operand.ndim) != (param.dtype, param.ndim):
            raise GraphTypeError(f"cond: {describe(operand)} of type {operand.type} stands for {param.type}")
    if len(then.results) != len(orelse.results):
        raise GraphTypeError(f"cond: one body has {len(then.results)} results, the other {len(orelse.results)}")
    return tuple_of([_common(args, attrs, a, b) for a, b in zip(then.results, orelse.results, strict=True)])


def _common(args: Sequence[Node], attrs: Attributes, chosen: Node, other: Node) -> Type:
    """The type of a result, given what the two bodies have for it."""
    if (chosen.type.dtype, chosen.ndim) != (other.type.dtype, other.ndim):
        raise GraphTypeError(
            f"cond: the branches must have the same dtype and rank; one is {describe(chosen)} of type {chosen.type}, "
            f"the other {describe(other)} of type {other.type}"
        )
    pairs = zip(chosen.type.shape, other.type.shape, strict=True)
    return Type(chosen.type.dtype, tuple(_common_size(args, attrs, a, b) for a, b in pairs))


def _common_size(args: Sequence[Node], attrs: Attributes, chosen: Size, other: Size) -> Size:
    """The size that a result has, of the sizes within the bodies. A size that takes more than arithmetic is computed
    only where it is needed, as the results are."""
    condition, operands = args[0], args[1:]
    known = dict(zip(attrs["then"].params, operands, strict=True))
    left, right = outside(chosen, known), outside(other, known)
    if sizes.equal(left, right):
        return left
    then, orelse = as_size_node(left), as_size_node(right)
    if not unpredictable([then, orelse], () if attrs["state"] == WRITTEN else args):
        return make(OPS["where"], (condition, then, orelse))
    return item(cond_node(condition, [then], [orelse], operands), 0)


def unpredictable(sizes_: Iterable[Node], at_hand: Collection[Node] = ()) -> list[Node]:
    """The scalars that sizes are computed from by arithmetic of integers, and which are not at hand."""
    found: dict[Node, None] = {}
    pending, seen = list(sizes_), set[Node]()
    while pending:
        node = pending.pop()
        if node in seen or not node.args or node in at_hand:
            continue
        seen.add(node)
        if node.op.name in SIZE_OPS and not any(is_float(arg.type.dtype) for arg in node.args):
            pending += node.args
        else:
            found[node] = None
    return list(found)


def _guards(node: Node) -> Sequence[Guard]:
    return list(_all_guards(node))


def _all_guards(node: Node) -> Iterator[Guard]:
    params, operands = node.attrs["then"].params, node.args[1:]
    known, what = dict(zip(params, operands, strict=True)), label_op(node)
    for operand, param in zip(operands, params, strict=True):
        for axis, (size, wanted) in enumerate(zip(operand.type.shape, param.type.shape, strict=True)):
            text = "{}: {} has {{left}} elements along axis {}, and must have {{right}}"
            yield from equality_guard(size, outside(wanted, known), phrase(text, what, label(operand), axis))


# --- NumPy's meaning --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _steps_of(body: Body) -> Steps:
    return plan_steps(Graph(body.params, body.results))


def _eval(node: Node, condition: Array, *values: Array) -> Any:
    body: Body = node.attrs["then" if condition else "orelse"]
    return run_steps(_steps_of(body), dict(zip(body.params, values, strict=True)))


def _vjps(node: Node, cotangents: Mapping[int, Node], wanted: Collection[int]) -> Sequence[Node | None]:
    derived: Sequence[Node | None] = FUNCTIONS["cond_vjps"](node, cotangents, wanted)
    return derived


def _lower(node: Node) -> Branch:
    return Branch(node.attrs["then"], node.attrs["orelse"])


COND = define_op(
    "cond",
    _infer,
    _eval,
    _lower,
    guards=_guards,
    cost=100.0,
    doc="Of two bodies the one that a condition chooses.",
    vjps=_vjps,
)
