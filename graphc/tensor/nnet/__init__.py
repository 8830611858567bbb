"""Functions of neural networks: Theano's nnet, and the activations that came after it.

In: tensors of scores, probabilities and classes. Out: nodes. `softmax` and `logsoftmax` take a vector for a row, as
Theano's do; those of `graphc.tensor` keep its rank, as SciPy's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir.node import Node
from graphc.ops.elementwise import as_node
from graphc.ops.shape import expand
from graphc.startup.lazy import lazily
from graphc.tensor.creation import one_hot as one_hot
from graphc.tensor.elementary import sigmoid as sigmoid
from graphc.tensor.elementary import softplus as softplus
from graphc.tensor.nnet import losses
from graphc.tensor.nnet.activations import *  # noqa: F403 - it says in its __all__ what it offers
from graphc.tensor.nnet.losses import *  # noqa: F403 - the same
from graphc.tensor.reductions import logsumexp as logsumexp


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


logsoftmax = log_softmax
softmax_graph = softmax_op = softmax
logsoftmax_op = log_softmax

_PATHS = {"nnet": "", "sigm": ""}
"""Theano's paths of the same functions, which are imported when they are asked for."""
_INTERNAL = "Any Node TYPE_CHECKING activations annotations as_node expand lazily losses"
__all__ = [name for name in globals() if name[0] != "_" and name not in _INTERNAL.split()]

if not TYPE_CHECKING:  # which know the names
    __getattr__ = lazily("graphc.tensor.nnet", _PATHS)


def __dir__() -> list[str]:
    return __all__
