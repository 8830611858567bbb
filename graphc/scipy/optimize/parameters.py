"""Parameters in a tree as one vector of floats, with a name for each part; bounds, constraints, results by name.

    p = Packing("minimize", {"w": np.ones((2, 2)), "sigma": 3.0})
    p.names, p.start                        ["sigma", "w"], array([3., 1., 1., 1., 1.])
    p.views(vector)                         [array(3.), an array of shape (2, 2)], which share the vector's memory
    p.tree(vector)                          {"w": array of shape (2, 2), "sigma": np.float64(3.0)}
    p.pairs({"sigma": (0, None)})           (array([0, -inf, ...]), array([inf, ...]))

    LinearConstraint({"a": 1.0, "b": 2.0}, -np.inf, 3.0)                a + 2 b is at most 3
    {"budget": LinearConstraint(...), "area": NonlinearConstraint(...)} constraints with names for messages

    found = minimize(negative_log_likelihood, {"mu": 0.0, "sigma": 1.0})
    found.covariance["mu", "sigma"]         a number, computed when it is asked for

In: what a search begins with; bounds and constraints, these or SciPy's. Out: what SciPy takes of them, `SearchResult`.
A number, and a list or tuple of numbers, is a vector, as SciPy takes it; another tree is given to the program's
functions as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from graphc.arrays.dtypes import Array, is_float
from graphc.errors import GraphTypeError, GraphValueError, ShapeError
from graphc.ir.call_errors import explain_all
from graphc.scipy.named import Result, found_in
from graphc.startup.hooks import nearest
from graphc.startup.record import record
from graphc.trees import leaves, like, outline, paths, up_to

__all__ = ["Bounds", "Covariance", "LinearConstraint", "NonlinearConstraint", "SearchResult"]

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

    def coefficients(self, matrix: Any) -> Any:
        """Return a linear function of the parameters."""
        raise NotImplementedError

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
        try:
            parts = up_to(self.model, tree)
        except ValueError:  # it has another structure
            tree = np.asarray(tree)
            if tree.dtype == object or tree.shape not in ((), (self.size,)):
                told = f"{outline(self.model)}, not {outline(tree)}"
                raise ShapeError(f"{self.by}: {what} must be like x0, {told}") from None
            return np.broadcast_to(tree.astype("float64"), (self.size,))
        found = zip(self.names, self.shapes, parts, strict=True)
        return np.concatenate([self._spread(what, name, shape, part).ravel() for name, shape, part in found])

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


# --- bounds and constraints -------------------------------------------------------------------------------------------


class Bounds:
    """Bounds of parameters, as SciPy's `Bounds`: lb, ub: a number, a vector, or a tree like the parameters. Raises no
    error itself: `minimize` raises ShapeError where they are not like the parameters.

    >>> from graphc.scipy.optimize import minimize
    >>> minimize(lambda p: (p["a"] - 1.0) ** 2, {"a": 3.0}, bounds=Bounds({"a": 2.0}, np.inf)).x
    {'a': np.float64(2.0)}
    """

    def __init__(self, lb: Any = -np.inf, ub: Any = np.inf) -> None:
        self.lb, self.ub = lb, ub


class LinearConstraint:
    """lb <= A x <= ub, as SciPy's `LinearConstraint`. A: a matrix with a column for each element of the parameters; or
    by name, for each parameter an array of its shape, or of such arrays for each row. Parameters that are not named
    count for nothing. keep_feasible: hold it at each step, where the method can. Raises no error for what it is given:
    `minimize` raises ShapeError for another number of columns, GraphValueError for a name that is no parameter."""

    def __init__(self, A: Any, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> None:  # noqa: N803
        self.A, self.lb, self.ub, self.keep_feasible = A, lb, ub, keep_feasible


class NonlinearConstraint:
    """lb <= fun(x) <= ub, as SciPy's `NonlinearConstraint`. fun: a function of the parameters that returns a number, an
    array or a tree of them; its derivatives are those of its graph. An equation has lb = ub. Raises no error for what
    it is given: `minimize` raises TypeError where `fun` cannot be called."""

    def __init__(self, fun: Callable[..., Any], lb: Any, ub: Any, keep_feasible: Any = False) -> None:
        self.fun, self.lb, self.ub, self.keep_feasible = fun, lb, ub, keep_feasible


@record(eq=False)
class Constraint:
    """A constraint, read. matrix: of a linear one. fun: of another."""

    matrix: Any
    fun: Any
    lb: Any
    ub: Any
    keep_feasible: Any

    def to_scipy(self, fun: Any = None, jac: Any = None, hess: Any = None) -> Any:
        """Return SciPy's constraint. fun, jac, hess: functions of the vector, for one that is not linear."""
        more = {"keep_feasible": self.keep_feasible}
        if self.fun is None:
            return found_in("scipy.optimize", "LinearConstraint")(self.matrix, self.lb, self.ub, **more)
        known = more if hess is None else {**more, "hess": hess}
        return found_in("scipy.optimize", "NonlinearConstraint")(fun, self.lb, self.ub, jac, **known)


def read_constraints(parameters: Names, constraints: Any) -> list[Constraint]:
    """Return the constraints: one, several, or several by name. Raises GraphTypeError for what is none."""
    if isinstance(constraints, Mapping) and "fun" not in constraints:
        return [_read(parameters, repr(name), each) for name, each in constraints.items()]
    several = constraints if isinstance(constraints, list | tuple) else [constraints]
    return [_read(parameters, f"number {place}", each) for place, each in enumerate(several)]


def _read(parameters: Names, name: str, given: Any) -> Constraint:
    told = f"{parameters.by}: constraint {name}"
    if isinstance(given, Mapping):
        kind, fun, args = given.get("type"), given.get("fun"), given.get("args", ())
        if kind not in ("eq", "ineq") or not callable(fun):
            raise GraphTypeError(f"{told} must have the type 'eq' or 'ineq' and a function `fun`, not {given!r}")
        whole = fun if not args else lambda x: fun(x, *args)
        return Constraint(None, whole, 0.0, 0.0 if kind == "eq" else np.inf, False)
    if not hasattr(given, "lb") or not (hasattr(given, "A") or hasattr(given, "fun")):
        raise GraphTypeError(
            f"{told} is {given!r}; it must be a LinearConstraint, a NonlinearConstraint or a dict of type and fun"
        )
    keep = getattr(given, "keep_feasible", False)
    if hasattr(given, "A"):
        return Constraint(parameters.coefficients(given.A), None, given.lb, given.ub, keep)
    return Constraint(None, given.fun, given.lb, given.ub, keep)


# --- results ----------------------------------------------------------------------------------------------------------


class Covariance:
    """The covariance of parameters. matrix: in the order of `names`, those of the elements ("sigma", "w[0, 1]").
    `covariance["w"]` is that of a part with itself, `covariance["w", "sigma"]` of two parts: an array of the shape of
    the first and then of the second, a number for two numbers. `covariance[name]` raises GraphValueError for a name
    that no parameter has.

        >>> from graphc.scipy.optimize import minimize
        >>> found = minimize(lambda p: (p["a"] - 1.0) ** 2 + 2.0 * p["b"] ** 2, {"a": 0.0, "b": 1.0})
        >>> found.covariance["a"].round(6), found.covariance["a", "b"].round(6), found.covariance.names
        (np.float64(0.5), np.float64(0.0), ['a', 'b'])
    """

    def __init__(self, matrix: Array, packing: Packing) -> None:
        self.matrix, self.packing = matrix, packing
        self.names = packing.elements()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.array(self.matrix, dtype, copy=copy)

    def __getitem__(self, names: str | tuple[str, str]) -> Any:
        first, second = (names, names) if isinstance(names, str) else names
        rows, columns = (self._place(name) for name in (first, second))
        shapes = self.packing.shapes
        block = self.matrix[self.packing.spans[rows], self.packing.spans[columns]]
        return block.reshape((*shapes[rows], *shapes[columns]))[()]

    def _place(self, name: str) -> int:
        places = self.packing.places("covariance", name)
        if len(places) > 1:
            found = ", ".join(self.packing.names[place] for place in places)
            raise GraphValueError(f"covariance: {name!r} is several parameters: {found}")
        return places[0]

    @property
    def errors(self) -> Any:
        """The standard errors of the parameters, the square roots of the diagonal, in a tree like theirs."""
        return self.packing.tree(np.sqrt(np.diag(self.matrix)))

    @property
    def correlation(self) -> Array:
        """The matrix of correlations; NaN for a parameter without variance."""
        size = np.sqrt(np.diag(self.matrix))
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Array = self.matrix / size / size[:, None]
        return found

    def __repr__(self) -> str:
        return f"covariance of {', '.join(self.names)}:\n{self.matrix}"


class SearchResult(Result):
    """The result of a search. x: the parameters, a tree like the guess. scipy: SciPy's own result, of vectors. Its
    other values are there by their names: `fun`, `success`, `status`, `message`, `nit`, `nfev`. covariance: a
    `Covariance`, computed when it is asked for."""

    def __init__(
        self, values: Mapping[str, Any], messages: Mapping[int, str], spread: Callable[[], Covariance] | None = None
    ) -> None:
        super().__init__(values, messages)
        self.__dict__["spread"] = spread

    @property
    def covariance(self) -> Covariance:
        """The covariance of `x`. Raises GraphValueError where there is none."""
        known = self.__dict__
        if "known" not in known:
            if known["spread"] is None:
                raise GraphValueError("covariance: this result has none, or it was not computed before it was pickled")
            known["known"] = known["spread"]()
        found: Covariance = known["known"]
        return found

    def __reduce__(self) -> Any:
        known = self.__dict__.get("known")
        return restored, (dict(self), self.messages, known)


def restored(values: Mapping[str, Any], messages: Mapping[int, str], known: Covariance | None) -> SearchResult:
    """Return the result that was pickled."""
    return SearchResult(values, messages, None if known is None else lambda: known)


def inverse(what: str, matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix. Raises GraphValueError for another."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise GraphValueError(
            f"covariance: {what} at x is not positive definite: x is no isolated minimum, or the data do not tell all "
            "parameters"
        ) from None
    found: Array = np.linalg.inv(matrix)
    return (found + found.T) / 2


def free_of(x: Array, low_high: tuple[Array, Array] | None) -> Array:
    """Return for each parameter whether no bound holds it."""
    return np.full(x.shape, True) if low_high is None else (x > low_high[0]) & (x < low_high[1])


def over_free(what: str, matrix: Array, free: Array, rows: Array | None = None) -> Array:
    """Return the inverse over the parameters that are free, with zeros for those that a bound holds. rows: the
    derivatives of equations between them; the inverse is then over the directions that change none (Aitchison and
    Silvey 1958, Maximum-likelihood estimation of parameters subject to restraints)."""
    basis = np.eye(len(free))[:, free]
    if rows is not None and rows.size:
        _, sizes, turned = np.linalg.svd(rows @ basis)
        rank = int(np.sum(sizes > 1e-10 * sizes.max(initial=0.0)))
        basis = basis @ turned[rank:].T
    if not basis.shape[1]:
        return np.zeros_like(matrix)
    return basis @ inverse(what, basis.T @ matrix @ basis) @ basis.T


explain_all(globals())
