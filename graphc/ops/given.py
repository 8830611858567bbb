"""What of the operands of loops and branches are sizes of what these compute.

In: a node with bodies. Out: operands. Memory is laid out before a kernel runs, so they must be known before.
"""

from __future__ import annotations

from functools import lru_cache

from graphc.dtypes import is_float
from graphc.ir.body import bodies_of
from graphc.ir.node import Body, Node, Scalar
from graphc.ir.walk import nodes_of, type_sizes
from graphc.ops.scan import SCAN, loop_of


def given_sizes(node: Node) -> list[Node]:
    """The operands of a loop or a branch from which sizes within it are computed."""
    if node.op is SCAN:
        loop = loop_of(node.args, node.attrs)
        sizes = size_params(loop.body)
        given = zip(loop.fixed, loop.constants, strict=True)
        return list(dict.fromkeys([loop.count, *(operand for param, operand in given if param in sizes)]))
    found: list[Node] = []
    for body in bodies_of(node).values():
        operands = node.args[len(node.args) - len(body.params) :]
        sizes = size_params(body)
        found += [operand for operand, param in zip(operands, body.params, strict=True) if param in sizes]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1024)
def size_params(body: Body) -> frozenset[Node]:
    """The parameters of a body from which sizes within it are computed."""
    sizes: list[Node] = []
    for node in (*body.params, *nodes_of(body.results)):
        sizes += given_sizes(node) if node.is_tuple else type_sizes(node)
    return frozenset(nodes_of(sizes)).intersection(body.params)


def is_counted(node: Node) -> bool:
    """Whether a scalar is computed from others in integers."""
    return not is_float(node.dtype) and isinstance(node.op.lower(node), Scalar)
