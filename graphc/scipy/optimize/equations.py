"""Common parts of the native solvers: functions of a vector, derivatives of their solutions, bounds and constraints.

    f = called("root", fun, args, 1)                       calls the program's function with a tensor, for a vector
    solved(f, x, success)                                  x, with the derivatives of f(x) = 0 (implicit functions)
    x = TracedParameters("minimize", {"a": a, "w": w})     x.vector of all elements, x.restored(vector) the tree
    x.pairs({"a": (0.0, top)})                             the lower and the upper bounds, vectors of tensors
    x.limits(LinearConstraint({"w": 1.0}, -np.inf, 3.0))   Limits: a function c of the vector, low <= c(x) <= high

A loop finds the solution, and nothing of it is kept. The derivative solves one linear system with the Jacobian at the
solution, of any order. Where the loop has not succeeded, there is no solution to differentiate: derivatives are NaN.
Bounds and constraints are vectors of tensors, so that minima have derivatives by these too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphc.tensor as T
from graphc.arrays.dtypes import is_float
from graphc.autodiff import jacobian, pulled_back
from graphc.control.loop import title
from graphc.errors import GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir.node import Node, variable
from graphc.ir.walk import substitute
from graphc.lax.solving import custom_root
from graphc.ops.elementwise import as_node, cast
from graphc.ops.questions import answered
from graphc.options import options
from graphc.scipy.optimize.parameters import Constraint, Names, is_vector, names_of_parts, read_constraints
from graphc.tensor.elementary import stop_gradient
from graphc.tracing.programs import nodes_in, run
from graphc.tracing.shared_matrices import with_calls
from graphc.tree import ravel_pytree
from graphc.trees import leaves, map_leaves, outline, up_to

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


def number(by: str, fun: Any, made: Any) -> Node:
    """Return what an objective returned as a number. Raises RankError where it is none."""
    node = as_node(list(made) if isinstance(made, tuple) else made)
    size = node.type.shape[0] if node.ndim == 1 else 0
    is_one = size == 1 if isinstance(size, int) else answered("equal", size, 1)  # in the call that is traced
    node = node[0] if is_one else node
    if node.ndim:
        raise RankError(f"{by}: {title(fun)} must return a number, not an array of type {node.type}")
    return node


def scalar(by: str, name: str, value: Any) -> Node:
    """Return an argument that is a number as a tensor. Raises RankError for another."""
    node = as_float(value)
    if node.ndim:
        raise RankError(f"{by}: {name} is a number, not an array of type {node.type}: graphc.vmap takes many")
    return node


def vector(by: str, fun: Any, made: Any) -> Node:
    """Return all that a function returned as a vector of floats: an array, or a tree of arrays and numbers."""
    nodes = nodes_in(fun, made)
    if not nodes:
        raise GraphTypeError(f"{by}: {title(fun)} returns no array, but {outline(made)}")
    if len(nodes) > 1 and not any(node.ndim for node in nodes):
        return T.stack(nodes)
    flat = [node if node.ndim == 1 else T.flatten(node) for node in nodes]
    return flat[0] if len(flat) == 1 else T.concatenate(flat)


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
    return substitute([jacobian(f(own), own, disconnected_inputs="ignore")], {own: x})[0]


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


def clipped(x: Node, low: Node, high: Node) -> Node:
    """Return `x` within its bounds."""
    return T.minimum(T.maximum(x, low), high)


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


# --- bounds and constraints of tensors --------------------------------------------------------------------------------


PLAIN = (int, float, list, np.generic, np.ndarray)
"""Types of bounds that NumPy can compare."""


class Limits(NamedTuple):
    """A constraint: low <= value(x) <= high, vectors."""

    value: Function
    low: Node
    high: Node


class TracedParameters(Names):
    """Parameters of tensors as one vector. vector: the guess. restored: returns the tree of such a vector. model: the
    guess as a tree. parts: its leaves."""

    def __init__(self, by: str, x0: Any) -> None:
        self.vector, self.restored = packed(x0)
        one = isinstance(x0, Node | list) or hasattr(x0, "__array__") or is_vector(x0)
        self.model = self.vector if one and np.ndim(x0) < 2 else x0
        super().__init__(by, names_of_parts(self.model, "x"))
        self.parts = [as_float(leaf) for leaf in leaves(self.model)]

    # --- bounds -------------------------------------------------------------------------------------------------------

    def pairs(self, bounds: Any) -> tuple[Node, Node]:
        """Return the lower and the upper bounds of the elements; infinite ones without bounds."""
        low: list[Any] = [-np.inf] * len(self.parts)
        high: list[Any] = [np.inf] * len(self.parts)
        if hasattr(bounds, "lb"):
            return self._like("the lower bounds", bounds.lb), self._like("the upper bounds", bounds.ub)
        if isinstance(bounds, Mapping):
            for place, pair in self.by_name("bounds", bounds):
                low[place], high[place] = self._pair(self.names[place], pair)
        elif bounds is not None:
            if len(self.parts) > 1 or self.parts[0].ndim > 1:
                raise GraphValueError(f"{self.by}: bounds in a list are of a vector; give {{name: (low, high)}}")
            size = self.parts[0].type.shape[0] if self.parts[0].ndim else 1
            if isinstance(size, int) and size != len(bounds):
                raise ShapeError(f"{self.by}: bounds has {len(bounds)} pairs, and x0 has {size} elements")
            found = [self._pair(f"x[{place}]", pair) for place, pair in enumerate(bounds)]
            low[0], high[0] = (T.stack([as_float(each) for each in ends]) for ends in zip(*found, strict=True))
        return self._joined("the lower bound", low), self._joined("the upper bound", high)

    def ends(self, bounds: Any) -> tuple[Node, Node] | None:
        """Return the bounds, from `bounds` as `least_squares` takes them: the lower and the upper ones, each a number,
        a vector or like `x0`; or as `pairs` does, by name, or for each element in a list. None without bounds."""
        if bounds is None:
            return None
        if isinstance(bounds, Mapping | list) or hasattr(bounds, "lb"):
            return self.pairs(bounds)
        low, high = self._pair("x0", bounds)
        return self._like("the lower bounds", low), self._like("the upper bounds", high)

    def _pair(self, name: str, pair: Any) -> tuple[Any, Any]:
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise GraphValueError(f"{self.by}: the bounds of {name} must be a pair, (low, high), not {pair!r}")
        low, high = (-np.inf if pair[0] is None else pair[0]), (np.inf if pair[1] is None else pair[1])
        known = all(isinstance(leaf, int | float | np.generic | np.ndarray) for leaf in leaves((low, high)))
        plain = isinstance(low, PLAIN) and isinstance(high, PLAIN)
        if known and plain and not np.all(np.less_equal(low, high)):
            raise GraphValueError(f"{self.by}: the bounds of {name} are {low} and {high}")
        return low, high

    def _like(self, what: str, tree: Any) -> Node:
        """Return the vector of what is a number, a vector or a tree like the parameters."""
        if len(self.parts) > 1 and not isinstance(tree, Node | np.ndarray | float | int):
            try:
                return self._joined(what, up_to(self.model, tree))
            except ValueError:
                raise ShapeError(
                    f"{self.by}: {what} must be like x0, {outline(self.model)}, not {outline(tree)}"
                ) from None
        node = as_float(tree)
        return self._joined(what, [node] * len(self.parts)) if len(self.parts) == 1 or not node.ndim else node

    def _joined(self, what: str, values: Sequence[Any]) -> Node:
        made = []
        for name, part, value in zip(self.names, self.parts, values, strict=True):
            node = cast(as_float(value), self.vector.type.dtype)
            if node.ndim > max(part.ndim, 1):
                raise ShapeError(f"{self.by}: {what} of {name} has {node.ndim} axes, and {name} has {part.ndim}")
            flat = T.flatten(part) if part.ndim != 1 else part
            if node.ndim:
                made.append(T.flatten(T.zeros_like(part) + node))
            else:
                made.append(T.zeros_like(flat) + node)
        return made[0] if len(made) == 1 else T.concatenate(made)

    # --- constraints --------------------------------------------------------------------------------------------------

    def limits(self, constraints: Any) -> list[Limits]:
        """Return the constraints: one, several, or several by name."""
        return [self._limits(each) for each in read_constraints(self, constraints)]

    def _limits(self, given: Constraint) -> Limits:
        def value(x: Node) -> Node:
            if given.fun is None:
                found = given.matrix(x)
            else:
                found = vector(self.by, given.fun, run(self.by, given.fun, [self.restored(x)]))
            return cast(found, self.vector.type.dtype)

        zero = T.zeros_like(value(self.vector))
        return Limits(value, *(zero + cast(as_float(end), zero.type.dtype) for end in (given.lb, given.ub)))

    def coefficients(self, matrix: Any) -> Callable[[Node], Node]:
        """Return the linear function of the vector, from rows of as many elements as there are, or by name an array
        for each row, of the shape of the parameter."""
        if not isinstance(matrix, Mapping):
            whole = as_float(matrix)
            return lambda x: T.dot(whole if whole.ndim == 2 else whole[None, :], x)
        blocks = [(place, as_float(value)) for place, value in self.by_name("A of a constraint", matrix)]

        def call(x: Node) -> Node:
            parts = [as_float(leaf) for leaf in leaves(self.restored(x))]
            made: Node | None = None
            for place, block in blocks:
                part, count = parts[place], parts[place].ndim
                rows = block if block.ndim > count else block[None]
                own = T.sum(rows * part[None], axis=tuple(range(1, 1 + count))) if count else rows * part
                made = own if made is None else made + own
            assert made is not None
            return made

        return call
