"""The softmax of Theano's nnet, which takes a vector for a row.

In: scores. Out: nodes of at least two axes where no axis is named.
"""

from __future__ import annotations

from typing import Any

from graphc.ir.node import Node
from graphc.ops.elementwise import as_node
from graphc.ops.shape import expand
from graphc.tensor.nnet import losses

__all__ = ["log_softmax", "logsoftmax", "logsoftmax_op", "softmax", "softmax_graph", "softmax_op"]


def _row(x: Any, axis: Any) -> tuple[Node, Any]:
    """A vector of which no axis is named as a row."""
    node = as_node(x)
    if axis is not None:
        return node, axis
    return (expand(node, (0,)) if node.ndim == 1 else node), -1


def softmax(x: Any, axis: Any = None) -> Node:
    """exp(x) / sum(exp(x)) over `axis`, the last one by default, without overflow; a vector gives a row (Theano's)."""
    return losses.softmax(*_row(x, axis))


def log_softmax(x: Any, axis: Any = None) -> Node:
    """log(softmax(x)) over `axis`, the last one by default; a vector gives a row (Theano's)."""
    return losses.log_softmax(*_row(x, axis))


logsoftmax = logsoftmax_op = log_softmax
softmax_graph = softmax_op = softmax
