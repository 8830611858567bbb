"""SciPy's `minimize`, `root`, searches of one number, `least_squares` and `curve_fit`, with derivatives of the graph.

    minimize(native, lambda p: (p["a"] - 1.0) ** 2, {"a": 0.0}, method="trust-exact")

In: a function of arrays or of a tree of them, a guess. Out: what SciPy's algorithm finds, as a tree (`parameters.py`).
The algorithm is SciPy's own, and it is given the derivatives that it takes, from one kernel for the value, the gradient
and the constraints (`kernels.py`); products with the second derivatives, and these themselves, are kernels that are
compiled when the algorithm first asks for them. native: the function of tensors of the same name, for a function that
takes tensors from around it, whose result is a graph.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import Parameter, signature
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np

from graphc.arrays.dtypes import Array
from graphc.control.loop import title
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, ShapeError
from graphc.ir.node import Node
from graphc.scipy.named import found_in
from graphc.scipy.optimize.kernels import (
    COLUMNS,
    CURVATURES,
    HESSIANS,
    OBJECTIVES,
    KernelRequest,
    Objective,
    Residuals,
    weighed,
)
from graphc.scipy.optimize.parameters import (
    Constraint,
    Covariance,
    Packing,
    SearchResult,
    arguments,
    free_of,
    over_free,
    read_constraints,
)

VALUES = ("nelder-mead", "powell", "cobyla", "cobyqa")
"""Methods that take no derivative."""
PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
"""Methods that take products with the second derivatives."""
MATRICES = ("dogleg", "trust-exact")
"""Methods that take the second derivatives."""
HOLDS = 1e-6
"""The relative distance from its limit at which a constraint counts as an equation."""
UNSTOPPED = ("tnc", "cobyla", "cobyqa")
"""Methods of which SciPy lets no callback end the search."""
EQUAL_SIGNS = 2
"""The status of a search of one number between ends that have equal signs (roots.py)."""


class SearchError(GraphcError, RuntimeError):
    """A search that ended without a root."""


def minimize(
    native: Callable[..., Any], fun: Callable[..., Any], x0: Any, args: Any = (), method: Any = None, jac: Any = None,
    hess: Any = None, hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None,
    callback: Any = None, options: Any = None, progress: bool = False,
) -> Any:  # fmt: skip
    """Return what SciPy's `minimize` finds."""
    packing = Packing("minimize", x0)
    low_high = packing.pairs(bounds)
    known = [] if constraints is None else read_constraints(packing, constraints)
    if method is None:
        method = "SLSQP" if known else "BFGS" if low_high is None else "L-BFGS-B"
    kind = method.lower() if isinstance(method, str) else "newton-cg"
    if jac is not None and jac is not True and not callable(jac):
        raise GraphTypeError(f"minimize: jac={jac!r}: it is a function or True; without it, the derivative is exact")
    line = Progress("minimize", (options or {}).get("maxiter")) if progress else None
    curved = tuple(each.fun for each in known if each.fun is not None)
    what = KernelRequest("minimize", fun, jac, curved, int(kind not in VALUES))
    kernel = OBJECTIVES(what, packing.given(packing.start), *arguments(args))
    if kernel is None:
        return native(fun, x0, args, method, jac, hess, hessp, bounds, constraints, tol, callback, options, progress)
    objective = Objective(packing, kernel, what.order)
    second = SecondDerivatives(packing, what, arguments(args))
    given: dict[str, Any] = {} if kind in VALUES else {"jac": objective.slope, **second.given(kind, hess, hessp)}
    if low_high is not None:
        given["bounds"] = found_in("scipy.optimize", "Bounds")(*low_high)
    if known:
        given["constraints"] = _constraints(objective, known, second if kind == "trust-constr" else None)
    watch = None if line is None else lambda: line.step(objective.number)
    given["callback"] = _callback(packing, callback, watch, kind not in UNSTOPPED)
    theirs = found_in("scipy.optimize", "minimize")(
        objective.value, packing.start, method=method, tol=tol, options=options, **given
    )
    if line is not None:
        line.end()
    return SearchResult(_values(packing, theirs), {}, lambda: second.covariance(theirs.x, low_high, known))


def _values(packing: Packing, theirs: Any) -> dict[str, Any]:
    """Return the values of SciPy's result, with trees in place of vectors of parameters, and itself."""
    values = dict(theirs)
    for name in ("x", "jac", "grad"):
        if name in values and np.shape(values[name]) == (packing.size,):
            values[name] = packing.tree(values[name])
    return {**values, "scipy": theirs}


def _callback(packing: Packing, callback: Any, watch: Callable[[], None] | None, stops: bool) -> Any:
    """Return what SciPy calls at each step. stops: True from the program's callback ends the search."""
    if callback is None and watch is None:
        return None

    def call(x: Array, *state: Any) -> None:
        if watch is not None:
            watch()
        if callback is not None and callback(packing.tree(x)) is True and stops:
            raise StopIteration

    def call_with_result(intermediate_result: Any) -> None:
        if watch is not None:
            watch()
        known = intermediate_result if isinstance(intermediate_result, dict) else {"x": intermediate_result}
        found = SearchResult({**known, "x": packing.tree(known["x"])}, {})
        if callback(intermediate_result=found) is True and stops:
            raise StopIteration

    is_named = callback is not None and [*_parameters_of(callback)] == ["intermediate_result"]
    return call_with_result if is_named else call


def _parameters_of(callback: Any) -> Any:
    try:
        return signature(callback).parameters
    except (TypeError, ValueError):  # of a function in C
        return ()


def _constraints(objective: Objective, known: list[Constraint], second: SecondDerivatives | None) -> list[Any]:
    made, places = [], count()
    for each in known:
        if each.fun is None:
            made.append(each.to_scipy())
            continue
        place, hess = next(places), None if second is None else second.constraint(each.fun)
        slope: Any = objective.jacobian(place) if objective.order else "2-point"
        made.append(each.to_scipy(objective.constraint(place), slope, hess))
    return made


class SecondDerivatives:
    """The second derivatives of an objective and of constraints, compiled when they are first asked for."""

    def __init__(self, packing: Packing, what: KernelRequest, args: tuple[Any, ...]) -> None:
        self.packing, self.args = packing, args
        self.what = what._replace(constraints=(), order=1)
        self.product: Any = None
        self.matrix: Any = None

    def given(self, kind: str, hess: Any, hessp: Any) -> dict[str, Any]:
        """Return what a method takes. hess, hessp: the program's own, or SciPy's strategies."""
        if callable(hessp):
            return {"hessp": self._own_products(hessp)} if kind in PRODUCTS else {}
        if callable(hess):
            return {"hess": self._own(hess)} if kind in (*PRODUCTS, *MATRICES) else {}
        if hess is not None:
            return {"hess": hess}
        if kind in PRODUCTS:
            return {"hessp": self.times}
        return {"hess": self.hessian} if kind in MATRICES else {}

    def _own(self, hess: Callable[..., Any]) -> Callable[[Array], Array]:
        """Return a matrix that the program computes."""
        packing, size = self.packing, self.packing.size
        kernel = COLUMNS(KernelRequest("minimize", hess, order=0), packing.given(packing.start), *self.args)
        if kernel.first[0].size != size * size:
            raise ShapeError(f"minimize: {title(hess)} must return a matrix of {size} by {size}")
        return lambda x: kernel.array(packing.views(x), size, size)

    def _own_products(self, hessp: Callable[..., Any]) -> Callable[[Array, Array], Array]:
        """Return a product that the program computes."""
        packing, start = self.packing, self.packing.given(self.packing.start)
        kernel = COLUMNS(KernelRequest("minimize", hessp, order=0), start, start, *self.args, trees=2)
        return lambda x, along: kernel.array([*packing.views(x), *packing.views(along)], packing.size)

    def times(self, x: Array, along: Array) -> Array:
        """Return the product of the second derivatives of the objective with a vector."""
        packing = self.packing
        if self.product is None:
            self.product = CURVATURES(self.what, packing.given(x), packing.given(along), *self.args, trees=2)
        found = np.empty(packing.size)
        self.product([*packing.views(x), *packing.views(np.ascontiguousarray(along))], packing.receivers(found))
        return found

    def hessian(self, x: Array) -> Array:
        """Return the second derivatives of the objective."""
        packing = self.packing
        if self.matrix is None:
            self.matrix = HESSIANS(self.what, packing.given(x), *self.args)
        found = np.empty((packing.size, packing.size))
        self.matrix(packing.views(x), [found[span] for span in packing.spans])
        return found

    def constraint(self, fun: Callable[..., Any]) -> Callable[[Array, Array], Any]:
        """Return the second derivatives of a constraint, weighed by multipliers, as a linear operator."""
        packing = self.packing
        known: list[Any] = []
        what = KernelRequest("minimize", weighed("minimize", fun))

        def call(x: Array, weight: Array) -> Any:
            x, weight = x.copy(), np.array(weight, "float64")

            def times(along: Array) -> Array:
                along = np.ascontiguousarray(along.ravel(), "float64")
                if not known:
                    known.append(CURVATURES(what, packing.given(x), packing.given(along), weight, trees=3))
                found = np.empty(packing.size)
                known[0]([*packing.views(x), *packing.views(along), weight], packing.receivers(found))
                return found

            size = packing.size
            return found_in("scipy.sparse.linalg", "LinearOperator")((size, size), matvec=times, dtype="float64")

        return call

    def covariance(self, x: Array, low_high: Any, known: list[Constraint]) -> Covariance:
        """Return the inverse of the second derivatives. With constraints these are of the function and the multipliers
        times the constraints, in the directions in which the constraints that hold as equations do not change."""
        free, matrix, rows = free_of(x, low_high), self.hessian(x), None
        if known:
            parts = [self._held(x, each) for each in known]
            rows = np.concatenate([jacobian[held] for jacobian, held in parts])
            given = self.packing.given(x)
            slope = np.concatenate([np.ravel(each) for each in OBJECTIVES(self.what, given, *self.args).first[1:]])
            by = iter(np.linalg.lstsq(rows[:, free].T, -slope[free], rcond=None)[0])
            for each, (_, held) in zip(known, parts, strict=True):
                weight = np.array([next(by) if holds else 0.0 for holds in held])
                if each.fun is not None and held.any():
                    what = KernelRequest("minimize", weighed("minimize", each.fun))
                    matrix = matrix + np.concatenate(HESSIANS(what, given, weight).first)
        return Covariance(over_free("the Hessian", matrix, free, rows), self.packing)

    def _held(self, x: Array, each: Constraint) -> tuple[Array, Array]:
        """Return the Jacobian of a constraint, and which of its rows hold as equations."""
        if each.fun is None:
            value, jacobian = each.matrix @ x, each.matrix
        else:
            value, *columns = COLUMNS(KernelRequest("minimize", each.fun), self.packing.given(x)).first
            jacobian = np.concatenate(columns).T
        ends = [np.broadcast_to(np.asarray(end, "float64"), value.shape) for end in (each.lb, each.ub)]
        return jacobian, np.any([abs(value - end) <= HOLDS * (1 + abs(end)) for end in ends], axis=0)


# --- equations --------------------------------------------------------------------------------------------------------


def root(
    native: Callable[..., Any], fun: Callable[..., Any], x0: Any, args: Any = (), method: str = "hybr", jac: Any = None,
    tol: Any = None, callback: Any = None, options: Any = None, progress: bool = False,
) -> Any:  # fmt: skip
    """Return what SciPy's `root` finds."""
    packing = Packing("root", x0)
    if callback is not None and method in ("hybr", "lm"):
        raise GraphValueError(f"root: method {method!r} has no callback: graphc.debug.callback in fun is called")
    what = KernelRequest("root", fun, jac if callable(jac) else None, order=0)
    start = packing.given(packing.start)
    kernel = COLUMNS(what, start, *arguments(args))
    if kernel is None:
        return native(fun, x0, args, method, jac, tol, callback, options, progress)
    line = Progress("root", None) if progress else None
    values = Residuals(packing, kernel, 0, line.step if line else None)
    if values.size != packing.size:
        raise ShapeError(f"root: {title(fun)} returns {values.size} values, and x0 has {packing.size} elements")
    slopes: list[Residuals] = []

    def jacobian(x: Array) -> Array:
        if not slopes:
            both = COLUMNS(what._replace(order=1), packing.given(packing.start), *arguments(args))
            slopes.append(Residuals(packing, both, 1))
        return slopes[0].jacobian(x)

    given: dict[str, Any] = {"jac": jacobian} if method in ("hybr", "lm") else {}
    if callback is not None:
        given["callback"] = lambda x, f: callback(packing.tree(x), f)
    theirs = found_in("scipy.optimize", "root")(
        values.value, packing.start, method=method, tol=tol, options=options, **given
    )
    if line is not None:
        line.end()
    return SearchResult({**theirs, "x": packing.tree(theirs.x), "scipy": theirs}, {})


# --- one number -------------------------------------------------------------------------------------------------------


def of_number(by: str, fun: Callable[..., Any], args: tuple[Any, ...], at: Any, order: int) -> Any:
    """Return a function of a number for SciPy: its value, with the derivative where `order` is 1; None where its
    results are a graph."""
    kernel = OBJECTIVES(KernelRequest(by, fun, order=order), np.float64(at), *args)
    if kernel is None:
        return None
    value, slope = np.empty(()), np.empty(())
    out = (value, slope) if order else (value,)

    def call(x: Any) -> Any:
        kernel([np.float64(x)], out)
        return (float(value), float(slope)) if order else float(value)

    return call


def minimize_scalar(
    native: Callable[..., Any], loop: Callable[..., Any], fun: Callable[..., Any], bracket: Any = None,
    bounds: Any = None, args: Any = (), method: str | None = None, tol: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """Return what SciPy's `minimize_scalar` finds; between bounds, what the native loop does, which is SciPy's. loop:
    `native`, compiled."""
    given = fun, bracket, bounds, args, method, tol, options
    if bracket is None and bounds is not None and method in (None, "bounded"):
        return loop(*given)
    at = bounds[0] if bounds is not None else bracket[0] if bracket is not None else 0.0
    call = of_number("minimize_scalar", fun, arguments(args), at, 0)
    if call is None:
        return native(*given)
    known = {} if method is None else {"method": method}
    theirs = found_in("scipy.optimize", "minimize_scalar")(
        call, bracket=bracket, bounds=bounds, tol=tol, options=options, **known
    )
    return SearchResult({**theirs, "scipy": theirs}, {})


def root_scalar(
    native: Callable[..., Any], loop: Callable[..., Any], f: Callable[..., Any], args: Any = (),
    method: str | None = None, bracket: Any = None, fprime: Any = None, fprime2: Any = None, x0: Any = None,
    x1: Any = None, xtol: Any = None, rtol: Any = None, maxiter: Any = None,
) -> Any:  # fmt: skip
    """Return what SciPy's `root_scalar` finds; by a method that is here as a native loop, which is SciPy's, what that
    finds. loop: `native`, compiled."""
    given = f, args, method, bracket, fprime, fprime2, x0, x1, xtol, rtol, maxiter
    if method not in ("ridder", "brenth", "toms748", "halley"):
        return bracketing(loop(*given))
    at = x0 if bracket is None else bracket[0]
    if at is None:
        raise GraphValueError(f"root_scalar: method={method!r} needs {'x0' if method == 'halley' else 'a bracket'}")
    call = of_number("root_scalar", f, arguments(args), at, 0)
    if call is None:
        return native(*given)
    more: dict[str, Any] = {"bracket": bracket}
    if method == "halley":
        first, second = _slopes_of_number(f, arguments(args), at)
        more = {"x0": x0, "fprime": first, "fprime2": second}
    theirs = found_in("scipy.optimize", "root_scalar")(
        call, method=method, xtol=xtol, rtol=rtol, maxiter=maxiter, **more
    )
    return SearchResult({**vars(theirs), **theirs, "scipy": theirs}, {})


def bracketing(found: Any) -> Any:
    """Return the result of a search of one number. Raises ValueError where the ends of its bracket have equal signs."""
    if not isinstance(found.status, Node) and found.status == EQUAL_SIGNS:
        raise GraphValueError("f(a) and f(b) must be numbers of different signs")
    return found


def root_of_number(native: Callable[..., Any], loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function from the arguments of SciPy's `brentq`, `bisect` or `newton` to the root. loop: `native`,
    compiled. Raises ValueError where the ends of a bracket have equal signs, RuntimeError where no root was found and
    `disp` is true, as SciPy does."""
    bound, first = signature(native).bind, [*signature(native).parameters].index("full_output")

    def search(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= first and kwargs.keys().isdisjoint(("disp", "full_output")):
            root = loop(*args, **kwargs)
            if isinstance(root, Node) or not np.isnan(root):
                return root
        given = bound(*args, **kwargs)
        told, full = (given.arguments.pop(name, is_set) for name, is_set in (("disp", True), ("full_output", False)))
        root, found = loop(*given.args, **given.kwargs, full_output=True)
        bracketing(found)
        if told and not isinstance(found.status, Node) and found.status:
            raise SearchError(f"{native.__name__} failed to converge after {found.iterations} iterations, at {root}")
        return (root, found) if full else root

    return search


def _slopes_of_number(f: Any, args: tuple[Any, ...], at: Any) -> tuple[Any, Any]:
    """Return the first and the second derivative of a function of a number."""
    both = of_number("root_scalar", f, args, at, 1)
    bend = HESSIANS(KernelRequest("root_scalar", f), np.float64(at), *args)
    value = np.empty((1, 1))

    def second(x: Any) -> float:
        bend([np.float64(x)], [value])
        return float(value[0, 0])

    return lambda x: both(x)[1], second


# --- progress ---------------------------------------------------------------------------------------------------------
# The progress of a search, as one line of text on stderr that is written over.
#
#     minimize: step 12, value 3.41274, 0.4 s
#     minimize: [#####               ] 50 of 200, value 3.41274, 1.2 s
#
# In: a call for each step. Out: text, at most ten times a second, and at the end.

WIDTH, SECONDS = 20, 0.1


class Progress:
    """The line of one search. by: its name. most: the steps after which it ends, where they are known."""

    def __init__(self, by: str, most: int | None) -> None:
        self.by, self.most = by, most
        self.count, self.longest = 0, 0
        self.value: Any = None
        self.begin = self.last = perf_counter()

    def step(self, value: Any) -> None:
        """Count a step."""
        self.count, self.value = self.count + 1, value
        if perf_counter() - self.last >= SECONDS:
            self.last = perf_counter()
            self._write("")

    def end(self) -> None:
        """Write the line a last time, and end it."""
        self._write("\n")

    def _write(self, end: str) -> None:
        place = f"step {self.count}"
        if self.most:
            done = min(WIDTH, WIDTH * self.count // self.most)
            place = f"[{'#' * done}{' ' * (WIDTH - done)}] {self.count} of {self.most}"
        value = "" if self.value is None else f", value {float(self.value):.6g}"
        line = f"{self.by}: {place}{value}, {perf_counter() - self.begin:.1f} s"
        self.longest = max(self.longest, len(line))
        sys.stderr.write(f"\r{line:<{self.longest}}{end}")
        sys.stderr.flush()


# --- least squares ----------------------------------------------------------------------------------------------------


def least_squares(
    native: Callable[..., Any], fun: Callable[..., Any], x0: Any, jac: Any = "2-point", bounds: Any = None,
    method: str | None = None, ftol: Any = 1e-8, xtol: Any = 1e-8, gtol: Any = 1e-8, loss: Any = "linear",
    max_nfev: Any = None, args: Any = (), *, callback: Any = None, progress: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Return what SciPy's `least_squares` finds."""
    packing = Packing("least_squares", x0)
    what = KernelRequest("least_squares", fun, jac if callable(jac) else None)
    kernel = COLUMNS(what, packing.given(packing.start), *arguments(args))
    if kernel is None:
        return native(fun, x0, jac, bounds, method, ftol, xtol, gtol, loss, max_nfev, args, **options)
    line = Progress("least_squares", max_nfev) if progress else None
    residuals = Residuals(packing, kernel, 1, line.step if line else None)
    low_high = packing.ends(bounds)
    given = dict(options)
    if "x_scale" in options and not isinstance(options["x_scale"], str):
        given["x_scale"] = packing.flat("x_scale", options["x_scale"])
    if low_high is not None:
        given["bounds"] = low_high
    if method is None:
        free = low_high is None and loss == "linear" and callback is None
        method = "lm" if free and residuals.size >= packing.size else "trf"
    if callback is not None:
        if method == "lm":
            raise GraphValueError('least_squares: method="lm" has no callback, which "trf" and "dogbox" have')
        given["callback"] = _callback(packing, callback, None, True)
    theirs = found_in("scipy.optimize", "least_squares")(
        residuals.value, packing.start, jac=residuals.jacobian, method=method, ftol=ftol, xtol=xtol, gtol=gtol,
        loss=loss, max_nfev=max_nfev, **given,
    )  # fmt: skip
    if line is not None:
        line.end()

    def spread() -> Covariance:
        free = free_of(theirs.x, low_high)
        rest = max(residuals.size - int(free.sum()), 1)
        square = theirs.jac.T @ theirs.jac
        return Covariance(over_free("J'J", square, free) * (2 * theirs.cost / rest), packing)

    return SearchResult({**theirs, "x": packing.tree(theirs.x), "scipy": theirs}, {}, spread)


def parameters_of(f: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters after the data. Raises GraphValueError where they are not known."""
    found = [*signature(f).parameters.values()]
    if any(each.kind is Parameter.VAR_POSITIONAL for each in found) or len(found) < 2:
        raise GraphValueError("curve_fit: the number of parameters is not known from the function: give p0")
    return [each.name for each in found[1:]]


@lru_cache(maxsize=256)
def _named(names: tuple[str, ...]) -> Any:
    """The class of named tuples of parameters, one for all fits of them, so that their kernels are shared."""
    return namedtuple("Parameters", names, rename=True)


def _guess(f: Callable[..., Any], p0: Any) -> Any:
    """Return the parameters as a tree with their names."""
    if isinstance(p0, Mapping):
        return p0
    try:
        names = parameters_of(f)
    except GraphValueError:
        if p0 is None:
            raise
        names = []
    values = np.ones(len(names)) if p0 is None else np.atleast_1d(np.asarray(p0))
    if values.ndim != 1:
        raise ShapeError(f"curve_fit: p0 is an array of shape {values.shape}; it must be a vector, or a dict by name")
    if len(names) < len(values):
        names = [f"p{place}" for place in range(len(values))]
    return _named(tuple(names[: len(values)]))(*values)


def curve_fit(
    native: Callable[..., Any], f: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
    absolute_sigma: bool = False, check_finite: bool = True, bounds: Any = None, method: str | None = None,
    jac: Any = None, *, full_output: bool = False, ftol: Any = 1e-8, xtol: Any = 1e-8, gtol: Any = 1e-8,
    maxfev: Any = None, progress: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Return what SciPy's `curve_fit` finds."""
    packing = Packing("curve_fit", _guess(f, p0))
    data = np.asarray(xdata, "float64") if isinstance(xdata, list | tuple | np.ndarray) else xdata
    names = isinstance(p0, Mapping)
    start = packing.given(packing.start)
    kernel = COLUMNS(KernelRequest("curve_fit", _model(f, names)), start, data)
    if kernel is None:
        return native(f, xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds, method, jac)
    line = Progress("curve_fit", None) if progress else None
    values = Residuals(packing, kernel, 1, line.step if line else None)
    if values.size != np.size(ydata):
        raise ShapeError(f"curve_fit: the model returns {values.size} values, and ydata has {np.size(ydata)}")
    given: dict[str, Any] = {**options, "method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol}
    given["jac"] = (lambda x, *p: values.jacobian(np.array(p))) if jac is None else _own(jac, packing, data, names)
    low_high = packing.ends(bounds)
    if low_high is not None:
        given["bounds"] = low_high
    if maxfev is not None:
        given["maxfev" if low_high is None and method in (None, "lm") else "max_nfev"] = maxfev
    found = found_in("scipy.optimize", "curve_fit")(
        lambda x, *p: values.value(np.array(p)), data, np.ravel(ydata), packing.start, sigma, absolute_sigma,
        check_finite, full_output=full_output, **given,
    )  # fmt: skip
    if line is not None:
        line.end()
    if not names:
        return found
    return packing.tree(found[0]), Covariance(found[1], packing), *found[2:]


def _model(f: Callable[..., Any], names: bool) -> Callable[..., Any]:
    """Return a model as a function of the tree of its parameters and the data."""
    return (lambda p, x: f(x, **p)) if names else (lambda p, x: f(x, *p))


def _own(jac: Any, packing: Packing, data: Any, names: bool) -> Callable[..., Array]:
    """Return the Jacobian that the program computes."""
    if not callable(jac):
        raise GraphTypeError(f"curve_fit: jac={jac!r}: it is a function; without it, the derivative is exact")
    kernel = COLUMNS(KernelRequest("curve_fit", _model(jac, names), order=0), packing.given(packing.start), data)
    if kernel is None:
        raise GraphcError("curve_fit: jac takes tensors from around it, and the model does not")
    rows = kernel.first[0].size // packing.size
    return lambda x, *p: kernel.array(packing.views(np.array(p)), rows, packing.size)
