"""Products of some blocks of vectors with some blocks of a matrix, with Theano's names and layouts.

In: blocks and which of them are wanted. Out: nodes. Blocks are gathered where they are read.
"""

from __future__ import annotations

from typing import Any

from graphc.errors import GraphTypeError, RankError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node
from graphc.tensor.elementary import add, mul
from graphc.tensor.indexing import getitem, inc_subtensor, take
from graphc.tensor.reductions import sum

__all__ = ["sparse_block_dot", "sparse_block_gemv", "sparse_block_outer"]

ALL = slice(None)


def sparse_block_gemv(o: Any, W: Any, h: Any, inputIdx: Any, outputIdx: Any) -> Node:  # noqa: N803 - Theano's names
    """o[b, j] + the sum over i of h[b, i] @ W[inputIdx[b, i], outputIdx[b, j]].

    o: (batch, blocks wanted, size of a result), W: (blocks in, blocks out, size of a block, size of a result), h:
    (batch, blocks given, size of a block), inputIdx: (batch, blocks given), outputIdx: (batch, blocks wanted).
    """
    weights, blocks, given, wanted = as_node(W), as_node(h), as_node(inputIdx), as_node(outputIdx)
    for node, rank in ((weights, 4), (blocks, 3), (given, 2), (wanted, 2)):
        if node.ndim != rank:
            raise RankError(f"sparse_block_gemv: {describe(node)} of type {node.type} should have {rank} axes")
    chosen = getitem(weights, (getitem(given, (ALL, ALL, None)), getitem(wanted, (ALL, None))))
    factors = getitem(blocks, (ALL, ALL, None, ALL, None))
    return add(o, sum(mul(factors, chosen), (1, 3)))


def sparse_block_outer(o: Any, x: Any, y: Any, xIdx: Any, yIdx: Any, alpha: Any = None) -> Node:  # noqa: N803
    """`o` with the outer products of x[b, i] and y[b, j] added at its blocks (xIdx[b, i], yIdx[b, j]), times `alpha`.

    o: (blocks, blocks, size, size), x: (batch, blocks, size), y: (batch, blocks, size), xIdx, yIdx: (batch, blocks).
    """
    left, right, rows, columns = as_node(x), as_node(y), as_node(xIdx), as_node(yIdx)
    products = mul(getitem(left, (ALL, ALL, None, ALL, None)), getitem(right, (ALL, None, ALL, None)))
    products = products if alpha is None else mul(products, alpha)
    at = (getitem(rows, (ALL, ALL, None)), getitem(columns, (ALL, None)))
    return inc_subtensor(getitem(as_node(o), at), products)


def sparse_block_dot(W: Any, h: Any, inputIdx: Any, b: Any, outputIdx: Any) -> Node:  # noqa: N803
    """The blocks `outputIdx` of the product of a matrix of blocks and of vectors of which only some blocks are not 0.

    W: (blocks in, blocks out, size in, size out), h: (batch, blocks given, size in) or without batch, inputIdx: (batch,
    blocks given), b: (blocks out, size out), outputIdx: (batch, blocks wanted). Returns (batch, blocks wanted, size
    out): b of each, plus the sum of its products.
    """
    blocks, given, wanted = as_node(h), as_node(inputIdx), as_node(outputIdx)
    if given.ndim != blocks.ndim - 1 or wanted.ndim != given.ndim:
        raise GraphTypeError(
            f"sparse_block_dot: {describe(given)} or {describe(wanted)} is no index of {describe(blocks)}"
        )
    if blocks.ndim == 2:
        blocks, given, wanted = (getitem(each, (None,)) for each in (blocks, given, wanted))
    return sparse_block_gemv(take(as_node(b), wanted, 0), W, blocks, given, wanted)


explain_all(globals())
