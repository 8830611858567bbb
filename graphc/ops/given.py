"""What of the operands of loops and branches are sizes of what these compute.

In: a node with bodies. Out: operands. Memory is laid out before a kernel runs, so they must be known before. Of a size
that changes from step to step, what bounds it must be (`bounds_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from graphc.arrays.dtypes import is_float
from graphc.ir.body import ITEM, bodies_of, items_of
from graphc.ir.lowering import Scalar
from graphc.ir.node import Body, Node
from graphc.ir.signs import BROADCASTS
from graphc.ir.walk import dependents, nodes_of, reachable, type_sizes
from graphc.ops.scan import SCAN, loop_of

SAME = (*BROADCASTS, "reshape", "subtensor")
"""Ops whose elements are elements of their first argument."""
BOUNDED = ("iota", "add", "sub", "minimum", "maximum", "mul", "sqr", "floor_div")
"""Integer ops that are bounded where all their arguments are."""


def given_sizes(node: Node) -> list[Node]:
    """The operands of a loop or a branch from which sizes within it are computed."""
    if node.op is SCAN:
        loop = loop_of(node.args, node.attrs)
        sizes = size_params(loop.body, len(loop.sequences) + len(loop.initial))
        given = zip(loop.fixed, loop.constants, strict=True)
        return list(dict.fromkeys([loop.count, *(operand for param, operand in given if param in sizes)]))
    found: list[Node] = []
    for body in bodies_of(node).values():
        operands = node.args[len(node.args) - len(body.params) :]
        sizes = size_params(body)
        found += [operand for operand, param in zip(operands, body.params, strict=True) if param in sizes]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1024)
def size_params(body: Body, varying: int = 0) -> frozenset[Node]:
    """The scalar parameters of a body from which sizes within it are computed, or what bounds those that depend on its
    first `varying` parameters."""
    sizes: list[Node] = []
    for node in (*body.params, *nodes_of(body.results)):
        sizes += given_sizes(node) if node.is_tuple else type_sizes(node)
    changing = dependents(nodes_of(sizes), body.params[:varying])
    needed = reachable(sizes, lambda node: bounds_of(node) if node in changing else node.args)
    return frozenset(node for node in needed if not node.ndim).intersection(body.params)


def bounds_of(node: Node) -> Sequence[Node]:
    """The operands that bound an integer; () where it has no bounds."""
    name = node.op.name
    if node.is_tuple or is_float(node.type.dtype):
        return ()
    if node.op is ITEM:
        (whole,) = node.args
        if not bodies_of(whole):
            return ()
        return [whole.args[0]] if is_taken(node) else [operand for _, operand in bounding_operands(node)]
    if name in SAME or name == "cast":
        return node.args[:1]
    return node.args[1:] if name in ("where", "mod") else node.args if name in BOUNDED else ()


def is_taken(node: Node) -> bool:
    """Whether a result of a loop or branch is how many steps it took."""
    (whole,) = node.args
    return whole.op is SCAN and whole.attrs["until"] and node.attrs["index"] == len(items_of(whole)) - 1


def results_of(node: Node) -> list[Node]:
    """What a result of a loop or branch is within bodies: any of these, or 0 where a step was not taken; nothing for a
    state."""
    (whole,), place = node.args, node.attrs["index"]
    if whole.op is SCAN:
        return [whole.attrs["body"].results[place]] if place >= whole.attrs["carries"] else []
    return [body.results[place] for body in bodies_of(whole).values()]


def bounding_operands(node: Node) -> list[tuple[Node, Node]]:
    """The parameters that bound a result of a loop or branch within its bodies, with the operands that they stand
    for; not the states, which may be anything."""
    (whole,) = node.args
    params = next(iter(bodies_of(whole).values())).params
    pairs = list(zip(params, whole.args[len(whole.args) - len(params) :], strict=True))
    if whole.op is SCAN:
        first = whole.attrs["sequences"]
        del pairs[first : first + whole.attrs["carries"]]
    needed = set(reachable(results_of(node), bounds_of))
    return [pair for pair in pairs if pair[0] in needed]


def is_counted(node: Node) -> bool:
    """Whether a scalar is computed from others in integers."""
    return not is_float(node.type.dtype) and isinstance(node.op.lower(node), Scalar)
