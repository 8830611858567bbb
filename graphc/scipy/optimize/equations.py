"""Common parts of the solvers of `optimize`: functions of a vector, and derivatives of their solutions.

    f = of_vector("root", fun, args)        a function from a vector to a node, which calls the program's
    solved(f, x, success)                   x, with the derivatives of f(x) = 0 (implicit function theorem)

A loop finds the solution, and nothing of it is kept. The derivative solves one linear system with the Jacobian at the
solution, of any order. Where the loop has not succeeded, there is no solution to differentiate: derivatives are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.arrays.dtypes import is_float
from graphc.autodiff import jacobian, pulled_back
from graphc.control.loop import title
from graphc.errors import GraphTypeError, RankError
from graphc.ir.node import Node, variable
from graphc.ir.walk import substitute
from graphc.lax.solving import custom_root
from graphc.ops.at_hand import answered
from graphc.ops.elementwise import as_node, cast
from graphc.options import options
from graphc.scipy.optimize.packing import is_vector
from graphc.tensor.elementary import stop_gradient
from graphc.tracing.programs import nodes_in, run
from graphc.tracing.shared_matrices import with_calls
from graphc.tree import ravel_pytree
from graphc.trees import map_leaves, outline

Function = Callable[[Node], Node]


def as_float(value: Any) -> Node:
    """Return a value as a tensor of floats."""
    node = as_node(value)
    return node if is_float(node.type.dtype) else cast(node, options.floatX)


def packed(x0: Any) -> tuple[Node, Function]:
    """Return what a search begins with as a vector, and a function from such a vector to what is like `x0`. A number,
    and a list or tuple of numbers, is a vector."""
    if isinstance(x0, Node) or hasattr(x0, "__array__") or is_vector(x0) or isinstance(x0, list):
        node = as_float(x0)
        shape = tuple(node.shape[axis] for axis in range(node.ndim))
        if node.ndim < 2:
            return T.flatten(node) if not node.ndim else node, lambda vector: vector
        return T.flatten(node), lambda vector: T.reshape(vector, shape, ndim=len(shape))
    vector, restored = ravel_pytree(map_leaves(as_float, x0))
    return as_node(vector), restored


def has_one_element(node: Node) -> bool:
    """Return True for a vector of one element, by its type or by the arguments of the call that is traced."""
    size = node.type.shape[0]
    return size == 1 if isinstance(size, int) else bool(answered("equal", size, 1))


def number(by: str, fun: Any, made: Any) -> Node:
    """Return what an objective returned as a number. Raises RankError where it is none."""
    node = as_node(list(made) if isinstance(made, tuple) else made)
    if node.ndim == 1 and has_one_element(node):
        node = node[0]
    if node.ndim:
        raise RankError(f"{by}: {title(fun)} must return a number, not an array of type {node.type}")
    return node


def vector(by: str, fun: Any, made: Any) -> Node:
    """Return all that a function returned as a vector of floats: an array, or a tree of arrays and numbers."""
    nodes = nodes_in(fun, made)
    if not nodes:
        raise GraphTypeError(f"{by}: {title(fun)} returns no array, but {outline(made)}")
    if len(nodes) > 1 and not any(node.ndim for node in nodes):
        stacked: Node = T.stack(nodes)
        return stacked
    flat = [node if node.ndim == 1 else T.flatten(node) for node in nodes]
    joined: Node = flat[0] if len(flat) == 1 else T.concatenate(flat)
    return joined


def called(by: str, fun: Callable[..., Any], args: Sequence[Any], rank: int, restored: Any = None) -> Function:
    """Return a function of one tensor that calls the program's, which must return a number, what can be a vector, or
    a matrix, by `rank`. restored: makes the argument of the program's of the tensor. Raises RankError for another."""

    def call(x: Node) -> Node:
        made = run(by, fun, [x if restored is None else restored(x), *args])
        if rank == 0:
            node = number(by, fun, made)
        elif rank == 1:
            node = vector(by, fun, made)
        else:
            node = as_node(list(made) if isinstance(made, tuple) else made)
        if node.ndim != rank:
            raise RankError(f"{by}: {title(fun)} must return a matrix, not an array of type {node.type}")
        return cast(node, x.type.dtype)

    return call


def slope(f: Function, x: Node) -> Node:
    """Return the Jacobian of a function of a vector."""
    own = stand_in(x)
    found: Node = substitute([jacobian(f(own), own, disconnected_inputs="ignore")], {own: x})[0]
    return found


def stand_in(x: Node) -> Node:
    """Return a variable of the type of a node. A derivative by the node itself would count what else depends on it."""
    return variable(x.type.dtype, x.type.shape)


def with_gradient(f: Function) -> Callable[[Node], tuple[Node, Node]]:
    """Return a function that gives the value of `f` and its gradient."""

    def call(x: Node) -> tuple[Node, Node]:
        own = stand_in(x)
        value = f(own)
        made = with_calls([value, *pulled_back({value: T.ones_like(value)}, [own])])
        found: list[Node] = substitute(made, {own: x})
        return found[0], found[1]

    return call


def solved(equation: Function, x: Node, success: Node) -> Node:
    """Return `x`, a vector or a number, with the derivatives of `equation(x) = 0`, where it has been found."""
    found = stop_gradient(x)
    trust = T.switch(success, 1.0, np.nan)

    def trusted(x: Node) -> Node:
        return equation(x) * cast(trust, x.type.dtype)

    def tangent(linear: Function, right: Node) -> Any:
        if not right.ndim:
            return right / linear(T.ones_like(right))
        return T.linalg.solve(slope(linear, T.zeros_like(right)), right)

    made: Node = custom_root(trusted, found, lambda f, guess: guess, tangent)
    return made
