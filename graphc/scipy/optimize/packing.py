"""Parameters in a tree as one vector of floats, with a name for each part.

    p = Packing("minimize", {"w": np.ones((2, 2)), "sigma": 3.0})
    p.names, p.start                        ["sigma", "w"], array([3., 1., 1., 1., 1.])
    p.views(vector)                         [array(3.), an array of shape (2, 2)], which share the vector's memory
    p.tree(vector)                          {"w": array of shape (2, 2), "sigma": np.float64(3.0)}
    p.pairs({"sigma": (0, None)})           (array([0, -inf, ...]), array([inf, ...]))

In: what a search begins with; bounds and coefficients by name. Out: what SciPy takes of them. A number, and a list or
tuple of numbers, is a vector, as SciPy takes it; another tree is given to the program's functions as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from graphc.arrays.dtypes import Array, is_float
from graphc.errors import GraphTypeError, GraphValueError, ShapeError
from graphc.startup.hooks import nearest
from graphc.trees import leaves, like, outline, paths, up_to

KEY = re.compile(r"\['([^']*)'\]")


def is_vector(x0: Any) -> bool:
    """Return True for a number, and for numbers in a list or a tuple without names."""
    if isinstance(x0, list | tuple):
        return not hasattr(x0, "_fields") and bool(x0) and all(np.ndim(each) == 0 and is_number(each) for each in x0)
    return is_number(x0) and np.ndim(x0) == 0


def is_number(value: Any) -> bool:
    """Return True for a number of Python's or NumPy's, or an array."""
    return isinstance(value, int | float | np.generic | np.ndarray)


def arguments(args: Any) -> tuple[Any, ...]:
    """Return further arguments of a function, of which one need not be in a tuple."""
    return tuple(args) if isinstance(args, tuple | list) else (args,)


def names_of_parts(tree: Any, root: str) -> list[str]:
    """Return the names of the leaves of a tree: "layers[0].w"; `root` for a tree that is a leaf."""
    return [KEY.sub(r".\1", path).removeprefix(".") or root for path in paths(tree, "")]


class Names:
    """The names of parameters. by: the function that is called, for messages. names: of each leaf."""

    def __init__(self, by: str, names: list[str]) -> None:
        self.by, self.names = by, names

    def places(self, what: str, name: str) -> list[int]:
        """Return the numbers of the leaves that have a name, or that are within what has it. Raises GraphValueError
        where there is none."""
        starts = f"{name}.", f"{name}["
        found = [place for place, own in enumerate(self.names) if own == name or own.startswith(starts)]
        if not found:
            hint = nearest(name, self.names) or f"there are {', '.join(self.names)}"
            raise GraphValueError(f"{self.by}: {what} names {name!r}, and no parameter has that name: {hint}")
        return found

    def by_name(self, what: str, given: Mapping[Any, Any], within: str = "") -> Iterator[tuple[int, Any]]:
        """Yield the number of a leaf and what is said of it, from names, or names within names."""
        for key, value in given.items():
            name = f"{within}.{key}" if within and isinstance(key, str) else f"{within}[{key}]" if within else str(key)
            places = self.places(what, name)
            if isinstance(value, Mapping):
                yield from self.by_name(what, value, name)
            else:
                yield from ((place, value) for place in places)


class Packing(Names):
    """A tree of parameters as a vector.

    shapes, kinds, spans: of each leaf. size: of the vector. start: the vector of the guess.
    """

    def __init__(self, by: str, x0: Any, root: str = "x") -> None:
        self.model = np.atleast_1d(np.asarray(x0)) if is_vector(x0) else x0
        self.by, self.root = by, root
        parts = [self._array(place, leaf) for place, leaf in enumerate(leaves(self.model))]
        self.shapes = [part.shape for part in parts]
        self.kinds = [part.dtype for part in parts]
        ends = np.cumsum([0, *(part.size for part in parts)]).tolist()
        self.spans = [slice(begin, end) for begin, end in pairwise(ends)]
        self.size = ends[-1]
        if not self.size:
            raise ShapeError(f"{by}: x0 has no element")
        self.start = np.concatenate([part.ravel() for part in parts]).astype("float64")
        if np.isnan(self.start).any():
            found = zip(self.names, self.spans, strict=True)
            name = next(name for name, span in found if np.isnan(self.start[span]).any())
            raise GraphValueError(f"{by}: {name} of x0 is NaN")

    @cached_property
    def names(self) -> list[str]:  # type: ignore[override] # a search without bounds by name needs none
        return names_of_parts(self.model, self.root)

    def _array(self, place: int, leaf: Any) -> Array:
        array = np.asarray(leaf)
        if array.dtype.kind not in "fiub":
            raise GraphTypeError(f"{self.by}: {self.names[place]} of x0 is {leaf!r}, which is no array of real numbers")
        return array if is_float(array.dtype.name) else array.astype("float64")

    def views(self, vector: Array) -> list[Array]:
        """Return the parts of a vector of float64, without copies but for leaves of another dtype."""
        if len(self.shapes) == 1 and len(self.shapes[0]) == 1 and self.kinds[0] == vector.dtype:
            return [vector]
        found = zip(self.spans, self.shapes, self.kinds, strict=True)
        return [vector[span].reshape(shape).astype(kind, copy=False) for span, shape, kind in found]

    def receivers(self, vector: Array) -> list[Array]:
        """Return the parts of a vector, to write into."""
        return [vector[span].reshape(shape) for span, shape in zip(self.spans, self.shapes, strict=True)]

    def given(self, vector: Array) -> Any:
        """Return the tree of a vector, of arrays which share its memory."""
        return like(self.model, self.views(vector))

    def tree(self, vector: Array) -> Any:
        """Return the tree of a vector, of arrays of their own, NumPy's numbers where they have no axes."""
        return like(self.model, [view[()] for view in self.views(np.array(vector, "float64"))])

    def flat(self, what: str, tree: Any) -> Array:
        """Return the vector of a tree of the structure of `x0`, or of a vector. Raises ShapeError for another."""
        parts = self._parts(tree)
        if parts is None:
            tree = np.asarray(tree)
            if tree.dtype == object or tree.shape not in ((), (self.size,)):
                raise ShapeError(f"{self.by}: {what} must be like x0, {outline(self.model)}, not {outline(tree)}")
            return np.broadcast_to(tree.astype("float64"), (self.size,))
        found = zip(self.names, self.shapes, parts, strict=True)
        return np.concatenate([self._spread(what, name, shape, part).ravel() for name, shape, part in found])

    def _parts(self, tree: Any) -> list[Any] | None:
        """Return what stands in a tree in place of the leaves of `x0`; None where it has another structure."""
        try:
            return up_to(self.model, tree)
        except ValueError:
            return None

    def _spread(self, what: str, name: str, shape: tuple[int, ...], value: Any) -> Array:
        try:
            return np.broadcast_to(np.asarray(value, "float64"), shape)
        except (TypeError, ValueError):
            told = f"{value!r}" if np.ndim(value) == 0 else f"an array of shape {np.shape(value)}"
            raise ShapeError(f"{self.by}: {what} of {name} is {told}, and {name} has shape {shape}") from None

    def elements(self) -> list[str]:
        """Return the name of each element of the vector: "sigma", "w[0, 1]"."""
        found = []
        for name, shape in zip(self.names, self.shapes, strict=True):
            places: Iterator[tuple[int, ...]] = iter(np.ndindex(shape))
            found += [f"{name}[{', '.join(map(str, place))}]" if shape else name for place in places]
        return found

    def pairs(self, bounds: Any) -> tuple[Array, Array] | None:
        """Return the lower and the upper bounds of the elements, from `bounds` as `minimize` takes them: pairs by name,
        a pair for each element, or an object with `lb` and `ub`. None without bounds."""
        if bounds is None:
            return None
        if hasattr(bounds, "lb"):
            return self.ends((bounds.lb, bounds.ub))
        if isinstance(bounds, Mapping):
            low, high = np.full(self.size, -np.inf), np.full(self.size, np.inf)
            for place, pair in self.by_name("bounds", bounds):
                span, name, shape = self.spans[place], self.names[place], self.shapes[place]
                first, last = self._pair(name, pair)
                low[span] = self._spread("the lower bound", name, shape, first).ravel()
                high[span] = self._spread("the upper bound", name, shape, last).ravel()
            return self._ordered(low, high)
        if len(bounds) != self.size:
            raise ShapeError(f"{self.by}: bounds has {len(bounds)} pairs, and x0 has {self.size} elements")
        found = [self._pair(name, pair) for name, pair in zip(self.elements(), bounds, strict=True)]
        return self._ordered(np.array([low for low, _ in found]), np.array([high for _, high in found]))

    def _pair(self, name: str, pair: Any) -> tuple[Any, Any]:
        if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise GraphValueError(f"{self.by}: the bounds of {name} must be a pair, (low, high), not {pair!r}")
        low, high = pair
        return -np.inf if low is None else low, np.inf if high is None else high

    def ends(self, bounds: Any) -> tuple[Array, Array] | None:
        """Return the bounds, from `bounds` as `least_squares` takes them: the lower and the upper ones, each a number,
        a vector or like `x0`; or as `pairs` does, by name."""
        if bounds is None or hasattr(bounds, "lb") or isinstance(bounds, Mapping):
            return self.pairs(bounds)
        low, high = self._pair("x0", bounds)
        return self._ordered(self.flat("the lower bounds", low), self.flat("the upper bounds", high))

    def _ordered(self, low: Array, high: Array) -> tuple[Array, Array]:
        low, high = low.astype("float64"), high.astype("float64")
        wrong = np.flatnonzero(~(low <= high))
        if wrong.size:
            name = self.elements()[wrong[0]]
            raise GraphValueError(f"{self.by}: the bounds of {name} are {low[wrong[0]]} and {high[wrong[0]]}")
        return low, high

    def coefficients(self, matrix: Any) -> Array:
        """Return the matrix of a linear function of the parameters: rows of as many elements as there are, or by name
        an array for each row, of the shape of the parameter."""
        if not isinstance(matrix, Mapping):
            found = np.atleast_2d(np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, "float64"))
            if found.shape[1] != self.size:
                raise ShapeError(f"{self.by}: A of a constraint has {found.shape[1]} columns, x0 {self.size} elements")
            return found
        blocks: dict[int, Array] = {}
        for place, value in self.by_name("A of a constraint", matrix):
            shape, array = self.shapes[place], np.asarray(value, "float64")
            rows = array.shape[0] if array.ndim > len(shape) else 1
            whole = (rows, *shape)
            blocks[place] = self._spread("A", self.names[place], whole, array).reshape(rows, -1)
        rows = max(block.shape[0] for block in blocks.values())
        made = np.zeros((rows, self.size))
        for place, block in blocks.items():
            made[:, self.spans[place]] = block
        return made
