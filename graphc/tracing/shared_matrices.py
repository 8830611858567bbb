"""Products of one matrix with several vectors: library calls where the matrix stays in the cache.

    z = x @ w                       x has 50,000 rows of 20, 8 MB
    z, x.T @ (z - y)                two calls, which read x twice from the cache
                                    as it is, of a matrix of 80 MB: one loop over rows, which reads it once

In: the results of a trace, the sizes at hand. Out: the results, with calls for such products. Of a linear model and its
gradient, the loop over rows takes three times as long as the calls where rows are short, and half as long where the
matrix would come from memory twice. The graph does not know its sizes, the trace does: it asks, so that a matrix on the
other side of LARGEST has a variant of its own (variants.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.ir.node import INPUT, Node, literal
from graphc.ir.walk import nodes_of, substitute
from graphc.ops.elementwise import elementwise
from graphc.ops.linalg.products import scaled_matmul
from graphc.ops.questions import answered

LARGEST = 2**23
"""The bytes of a matrix that stays in the last cache of most processors between two reads."""


def with_calls(results: Sequence[Node]) -> list[Node]:
    """Return results in which products of a matrix that has several are calls. Only for the sizes at hand."""
    products: dict[Node, list[Node]] = {}
    for node in nodes_of(results):
        if node.op.name == "matmul" and sum(arg.ndim for arg in node.args) == 3 and is_float(node.type.dtype):
            matrix = next(arg for arg in node.args if arg.ndim == 2)
            base = matrix.args[0] if matrix.op.name == "dimshuffle" else matrix
            if base.op is INPUT and base.ndim == 2:
                products.setdefault(base, []).append(node)
    chosen = {node for base, several in products.items() if len(several) > 1 and is_in_cache(base) for node in several}
    made = list(results)
    for node in reversed(nodes_of(results)):  # so that what a product is made of is still the node that it was
        if node in chosen:
            made = substitute(made, {node: scaled_matmul(literal(1, node.type.dtype), *node.args)})
    return made


def is_in_cache(matrix: Node) -> bool:
    """Tell whether a matrix has a size at which calls pay, for the arguments at hand."""
    rows, columns = matrix.type.shape
    most = LARGEST // np.dtype(matrix.type.dtype).itemsize
    if isinstance(rows, int) and isinstance(columns, int):
        return rows * columns <= most
    extents = [literal(each, "int64") if isinstance(each, int) else each for each in (rows, columns)]
    return bool(answered("less_equal", elementwise("mul", *extents), most))
