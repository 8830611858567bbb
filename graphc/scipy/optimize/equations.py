"""What the solvers of `optimize` have in common: functions of a vector, and derivatives of their solutions.

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
from graphc.errors import RankError
from graphc.ir.node import Node, variable
from graphc.ir.walk import substitute
from graphc.lax.solving import custom_root
from graphc.ops.elementwise import as_node, cast
from graphc.options import options
from graphc.tensor.elementary import stop_gradient
from graphc.tracing.programs import run

Function = Callable[[Node], Node]


def as_float(value: Any) -> Node:
    """Return a value as a tensor of floats."""
    node = as_node(value)
    return node if is_float(node.type.dtype) else cast(node, options.floatX)


def as_vector(x0: Any) -> Node:
    """Return what a search begins with as a vector, as SciPy flattens it."""
    node = as_float(x0)
    return node if node.ndim == 1 else T.flatten(node)


def arguments(args: Any) -> tuple[Any, ...]:
    """Return further arguments of a function, of which one need not be in a tuple."""
    return tuple(args) if isinstance(args, tuple | list) else (args,)


def called(by: str, fun: Callable[..., Any], args: Sequence[Any], rank: int) -> Function:
    """Return a function of one tensor that calls the program's, which must return an array of `rank` axes. Raises
    RankError where it returns another."""

    def call(x: Node) -> Node:
        made = run(by, fun, [x, *args])
        node = as_node(list(made) if isinstance(made, tuple) else made)
        if rank == 0 and node.ndim == 1 and node.type.shape[0] == 1:
            node = node[0]
        if node.ndim != rank:
            what = "a number" if rank == 0 else "a vector"
            raise RankError(f"{by}: {title(fun)} must return {what}, not an array of type {node.type}")
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
        found: list[Node] = substitute([value, *pulled_back({value: T.ones_like(value)}, [own])], {own: x})
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
