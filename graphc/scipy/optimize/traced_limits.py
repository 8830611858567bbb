"""Bounds and constraints of `minimize` as tensors, for parameters that are tensors.

    x = TracedParameters("minimize", {"a": a, "w": w})     x.vector of all elements, x.restored(vector) the tree
    x.pairs({"a": (0.0, top)})                             the lower and the upper bounds, vectors of tensors
    x.limits(LinearConstraint({"w": 1.0}, -np.inf, 3.0))   Limits: a function c of the vector, low <= c(x) <= high

In: what `minimize` takes (constraints.py), with numbers, arrays or tensors. Out: vectors of tensors, so that minima
have derivatives by bounds too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphc.tensor as T
from graphc.errors import GraphValueError, ShapeError
from graphc.ir.node import Node
from graphc.ops.elementwise import cast
from graphc.scipy.optimize import constraints as known
from graphc.scipy.optimize.equations import Function, as_float, packed, vector
from graphc.scipy.optimize.packing import Names, is_vector, names_of_parts
from graphc.tracing.programs import run
from graphc.trees import leaves, outline, up_to

__all__ = ["Limits", "TracedParameters"]


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
        return [self._limits(each) for each in known.read(self, constraints)]

    def _limits(self, given: known.Constraint) -> Limits:
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
