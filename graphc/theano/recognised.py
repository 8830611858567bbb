"""Ops of Theano that graphc puts together from others, recognised in graphs as programs and rewriting leave them.

In: a node. Out: Theano's op and what it is applied to, for the owner of the node (`owners.owner_of`).
"""

from __future__ import annotations

from typing import Any

from graphc.ir.node import Node
from graphc.ir.walk import reachable
from graphc.theano import opclasses

__all__ = ["recognised"]

AROUND = ("broadcast_to", "dimshuffle", "isfinite", "stop_gradient", "where")
"""Ops around the maximum that scores are shifted by."""


def recognised(node: Node) -> tuple[Any, list[Node]] | None:
    """The op of Theano that a quotient or a difference stands for with its inputs: the softmax over the last axis, and
    its logarithm; None where it stands for itself."""
    first, last = node.args
    if node.op.name == "true_div" and first.op.name == "exp" and _is_total(last, first):
        return opclasses.Softmax(), [_scores(first.args[0])]
    before = _without_axes(last)[-1]
    if node.op.name != "sub" or before.op.name != "log":
        return None
    powers = next((n for n in reachable([before.args[0]], _around_total) if n.op.name == "exp"), None)
    if powers is None or powers.args[0] is not first or not _is_total(before.args[0], powers):
        return None
    return opclasses.LogSoftmax(), [_scores(first)]


def _without_axes(node: Node) -> list[Node]:
    """A node and what it is without the axes that are added to it, one by one."""
    found = [node]
    while found[-1].op.name in ("broadcast_to", "dimshuffle"):
        found.append(found[-1].args[0])
    return found


def _around_total(node: Node) -> tuple[Node, ...]:
    return node.args[:1] if node.op.name in ("broadcast_to", "dimshuffle", "sum") else ()


def _is_total(node: Node, powers: Node) -> bool:
    """Whether a node is the sum of powers over their last axis."""
    total = _without_axes(node)[-1]
    return total.op.name == "sum" and total.args[0] is powers and total.attrs["axes"] == (powers.ndim - 1,)


def _scores(shifted: Node) -> Node:
    """The scores of which the maximum may have been subtracted."""
    if shifted.op.name != "sub":
        return shifted
    scores, shift = shifted.args
    parts = reachable([shift], lambda n: n.args if n.op.name in AROUND else ())
    return scores if any(n.op.name == "supremum" and n.args[0] is scores for n in parts) else shifted
