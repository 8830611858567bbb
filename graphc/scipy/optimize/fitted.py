"""SciPy's `least_squares` and `curve_fit`, with Jacobians of the graph.

    least_squares(native, lambda p: p["a"] * x - y, {"a": 1.0})       x, SciPy's result, the covariance from J'J
    curve_fit(native, model, x, y, {"a": 1.0, "b": 0.5})              {"a": ..., "b": ...} and a `Covariance`

In: residuals or a model, a guess, data. Out: what SciPy's algorithm finds. Residuals and Jacobian are one kernel
(`places.py`), the Jacobian in forward mode: a column for each parameter, all in the same loops as the residuals.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any

import numpy as np

from graphc.arrays.dtypes import Array
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, ShapeError
from graphc.scipy.named import found_in
from graphc.scipy.optimize.covariance import Covariance, SearchResult, free_of, over_free
from graphc.scipy.optimize.driven import Progress
from graphc.scipy.optimize.kernels import COLUMNS, KernelRequest
from graphc.scipy.optimize.packing import Packing, arguments
from graphc.scipy.optimize.places import Residuals

__all__ = ["curve_fit", "least_squares", "parameters_of"]


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
        given["callback"] = lambda x: _called(callback, packing.tree(x))
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


def _called(callback: Callable[..., Any], tree: Any) -> None:
    if callback(tree) is True:
        raise StopIteration


# --- curves -----------------------------------------------------------------------------------------------------------


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

    def call(x: Any, *p: Any) -> Array:
        found = np.empty(rows * packing.size)
        kernel(packing.views(np.array(p)), [found])
        return found.reshape(rows, packing.size)

    return call
