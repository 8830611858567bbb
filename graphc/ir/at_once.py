"""Functions that compute at once where no argument is a tensor, and build the graph where one is.

    jnp.sum(np.ones(3))                    np.float64(3.0), by NumPy itself
    graphc.random.normal(key, (3,))        an array, by a function that is compiled for the types of the arguments
    jnp.sum(x)                             a tensor, where x is one
    jit(lambda x: x + jnp.zeros(3))        jnp.zeros(3) is a tensor: the program is being traced

In: a function that builds a graph, and what computes the same of arrays. Out: one function that does either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from graphc.arrays.array import ndarray
from graphc.ir.node import Node
from graphc.ir.source_lines import TRACE
from graphc.startup.hooks import HOOKS
from graphc.trees import is_nested, leaves, map_leaves

P = ParamSpec("P")
R = TypeVar("R")

PLAIN = frozenset((np.ndarray, ndarray, int, float, bool, str, type(None)))
"""The types of most arguments, which hold no tensors."""


def is_plain(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """True where a call outside of traced functions has no tensor among its arguments, at any depth of trees."""
    if TRACE.depth:
        return False
    if PLAIN.issuperset(map(type, args)) and not kwargs:
        return True
    return not any(isinstance(leaf, Node) for leaf in leaves((tuple(args), dict(kwargs))))


def public(result: Any) -> Any:
    """Give the arrays in a result that was computed outside of traces `graphc.numpy`'s class."""
    if type(result) is np.ndarray:
        return result.view(ndarray)
    if (isinstance(result, dict) and type(result) is not dict) or (
        isinstance(result, tuple) and getattr(result, "__dict__", None)
    ):
        return result  # results of SciPy's kind, which have attributes besides
    return map_leaves(_own, result) if is_nested(result) else result


def _own(leaf: Any) -> Any:
    return leaf.view(ndarray) if type(leaf) is np.ndarray else leaf


def at_once(function: Callable[P, R], plain: Callable[..., Any] | None = None) -> Callable[P, R]:
    """Return a function that calls `function` where an argument is a tensor or a program is traced, else `plain`, which
    computes the same of arrays. Without `plain`, `function` is compiled once for the types of its arguments."""
    compute = plain

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        nonlocal compute
        if not is_plain(args, kwargs):
            return function(*args, **kwargs)
        if compute is None:
            compute = HOOKS.plain_calls(function)
        result = compute(*args, **kwargs)
        return result if "out" in kwargs else public(result)

    return call


def all_at_once(namespace: dict[str, Any]) -> None:
    """Let the functions that a module offers (`__all__`) compute at once, by the attribute `of_arrays` of a function
    where it has one. It comes before `explain_all`, which has to see the line of the program, and takes functions out
    that are explained already."""
    for name in namespace["__all__"]:
        function = namespace[name]
        if isinstance(function, FunctionType):
            plain = vars(function)["__wrapped__"] if "explained" in vars(function) else function
            namespace[name] = at_once(plain, vars(plain).get("of_arrays"))
