"""Dropout and its kin, over random streams, and embeddings.

In: tensors, and a stream (`graphc.random`'s RandomStreams) that draws. Out: nodes. In a function without updates of
the stream's own nothing else is needed: each call draws anew.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphValueError
from graphc.ir.node import Node, describe, told
from graphc.ops.elementwise import as_node, elementwise
from graphc.ops.shape import broadcast_to
from graphc.tensor.elementary import true_div, where
from graphc.tensor.indexing import take
from graphc.tensor.nnet.activations import in_floats
from graphc.tensor.products import dot
from graphc.tensor.shaping import normalise_axes

__all__ = ["drop_connect", "dropout", "embedding"]


def dropout(x: Any, rate: Any, stream: Any, rescale: bool = True, shared_axes: Any = ()) -> Node:
    """`x` with each element 0 with probability `rate`, and divided by 1 - rate otherwise (Srivastava et al. 2014).

    stream: a RandomStreams. rescale: whether what is kept is divided. shared_axes: axes along which elements are kept
    or dropped together, such as (2, 3) for whole channels of images. `rate` may be a scalar tensor.

        >>> from graphc.tensor.shared_randomstreams import RandomStreams
        >>> hidden = T.nnet.dropout(T.dmatrix("hidden"), 0.5, RandomStreams(7))
    """
    node = in_floats(x)
    what = told(lambda: f"dropout of {describe(node)} of type {node.type}")
    if isinstance(rate, (int, float)) and not 0 <= rate < 1:
        raise GraphValueError(f"{what}: a rate is from 0 to below 1, not {rate}")
    shared = normalise_axes(shared_axes, node.ndim, what) if shared_axes != () else ()
    shape = tuple(1 if axis in shared else size for axis, size in enumerate(node.type.shape))
    kept = elementwise("sub", 1, rate)
    chosen = broadcast_to(elementwise("not_equal", stream.binomial(shape, p=kept, dtype="int8"), 0), node.type.shape)
    return where(chosen, true_div(node, as_node(kept).astype(node.type.dtype)) if rescale else node, 0)


def drop_connect(x: Any, weights: Any, rate: Any, stream: Any) -> Node:
    """dot(x, weights) with each of the weights dropped with probability `rate` (Wan et al. 2013)."""
    return dot(x, dropout(weights, rate, stream))


def embedding(indices: Any, table: Any) -> Node:
    """The rows of a matrix at integers: of indices (...) and a table (rows, size), an array (..., size). Its gradient
    adds to the rows that were taken. An index outside the table is an error."""
    return take(table, indices, 0)
