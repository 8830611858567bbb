"""Bounds and constraints of `minimize`, on trees of parameters and by name.

    Bounds({"a": 0.0, "b": 0.0}, np.inf)                                a and b are positive
    LinearConstraint({"a": 1.0, "b": 2.0}, -np.inf, 3.0)                a + 2 b is at most 3
    NonlinearConstraint(lambda p: p["a"] * p["b"], 1.0, np.inf)         a b is at least 1
    {"budget": LinearConstraint(...), "area": NonlinearConstraint(...)} the same, with names for messages

In: these, SciPy's classes and its dicts of "type" and "fun". Out: SciPy's constraints; the functions and the Jacobians
of nonlinear ones come from the kernel of the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from graphc.errors import GraphTypeError
from graphc.ir.call_errors import explain_all
from graphc.scipy.named import found_in
from graphc.startup.record import record

__all__ = ["Bounds", "LinearConstraint", "NonlinearConstraint"]


class Bounds:
    """Bounds of parameters, as SciPy's `Bounds`: lb, ub: a number, a vector, or a tree like the parameters.

    >>> from graphc.scipy.optimize import minimize
    >>> minimize(lambda p: (p["a"] - 1.0) ** 2, {"a": 3.0}, bounds=Bounds({"a": 2.0}, np.inf)).x
    {'a': np.float64(2.0)}
    """

    def __init__(self, lb: Any = -np.inf, ub: Any = np.inf) -> None:
        self.lb, self.ub = lb, ub


class LinearConstraint:
    """lb <= A x <= ub, as SciPy's `LinearConstraint`. A: a matrix with a column for each element of the parameters; or
    by name, for each parameter an array of its shape, or of such arrays for each row. Parameters that are not named
    count for nothing. keep_feasible: hold it at each step, where the method can."""

    def __init__(self, A: Any, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> None:  # noqa: N803
        self.A, self.lb, self.ub, self.keep_feasible = A, lb, ub, keep_feasible


class NonlinearConstraint:
    """lb <= fun(x) <= ub, as SciPy's `NonlinearConstraint`. fun: a function of the parameters that returns a number, an
    array or a tree of them; its derivatives are those of its graph. An equation has lb = ub."""

    def __init__(self, fun: Callable[..., Any], lb: Any, ub: Any, keep_feasible: Any = False) -> None:
        self.fun, self.lb, self.ub, self.keep_feasible = fun, lb, ub, keep_feasible


class Parameters(Protocol):
    """The parameters that constraints are on: a `Packing`, or `TracedParameters`."""

    by: str

    def coefficients(self, matrix: Any) -> Any:
        """Return a linear function of the parameters."""


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


def read(parameters: Parameters, constraints: Any) -> list[Constraint]:
    """Return the constraints: one, several, or several by name. Raises GraphTypeError for what is none."""
    if isinstance(constraints, Mapping) and "fun" not in constraints:
        return [_read(parameters, repr(name), each) for name, each in constraints.items()]
    several = constraints if isinstance(constraints, list | tuple) else [constraints]
    return [_read(parameters, f"number {place}", each) for place, each in enumerate(several)]


def _read(parameters: Parameters, name: str, given: Any) -> Constraint:
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


explain_all(globals())
