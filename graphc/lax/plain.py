"""Functions of arrays under JAX's names, of plain arrays: node by node, in NumPy.

    cummax = interpreted(arrays.cummax)
    cummax(np.array([1, 3, 2]))         array([1, 3, 3])

In: a function that builds a graph of its arguments. Out: one that computes the graph's values. Nothing is compiled: a
single function of this kind is called too seldom to pay for it; within `jit` it is a part of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from graphc.functions.function import function as compile_function
from graphc.ir.node import INPUT, SHARED, Node
from graphc.ir.walk import node_set
from graphc.trees import leaves, map_leaves


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with values in place of tensors in its results; where these depend on variables, which
    functions among the arguments may use, as it is. Results without axes are NumPy's scalars."""

    @wraps(function)
    def compute(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        nodes = [leaf for leaf in leaves(made) if isinstance(leaf, Node)]
        if not nodes or any(node.op in (INPUT, SHARED) for node in node_set(nodes)):
            return made
        values = iter(compile_function([], nodes, mode="interpreted")())
        return map_leaves(lambda leaf: next(values)[()] if isinstance(leaf, Node) else leaf, made)

    return compute
