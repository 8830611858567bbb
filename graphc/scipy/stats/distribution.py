"""Distributions of one variable: a record of formulas for each, and SciPy's methods of all; those of vectors.

    expon = Law("expon", "", 0.0, inf, logpdf=lambda x: -x, cdf=lambda x: -expm1(-x), ppf=lambda q: -log1p(-q), …)
    Distribution(expon).logpdf(x, loc=1.0, scale=2.0)      -(x - 1) / 2 - log(2), -inf below 1

In: a `Law` in its standard form, with formulas of the variable and the shape parameters. Out: an object with the
methods of SciPy's distribution of that name: of arrays these are SciPy's own, of tensors they are computed here. What
has no formula here is an error that names the distribution and the method.

Generic numerics, once for all: what lies outside of the support, and parameters that are not allowed, in SciPy's way
(0, -inf, 1, NaN), by values inside in their place, so that derivatives are none of theirs; densities by their
logarithms; the upper tail by its own formula, by symmetry, or as 1 less the lower one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.errors import ArgumentError, GraphTypeError, GraphValueError
from graphc.functions.function import function as compile_function
from graphc.ir.at_once import is_plain
from graphc.ir.call_errors import explained_class
from graphc.ir.node import Node
from graphc.ir.source_lines import by_program
from graphc.ops.elementwise import as_node, cast, in_floats, is_number
from graphc.random import distributions as random, rejection, vectors
from graphc.scipy.named import found_in
from graphc.scipy.special.addressed import python_row
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record
from graphc.tensor import elementary as el
from graphc.tensor.creation import eye, zeros
from graphc.tensor.indexing import diagonal
from graphc.tensor.joining import concatenate
from graphc.tensor.linalg.factors import cholesky, solve_triangular
from graphc.tensor.products import diag

Formula = Callable[..., Any]


@record(eq=False)
class Law:
    """A distribution in its standard form. shapes: the names of its parameters. low, high: the ends of the support,
    numbers or formulas of the parameters. logpdf, cdf and the other formulas take the variable, or a probability, and
    the parameters; mean, var and entropy the parameters alone. valid: the condition of the parameters, by default that
    each is above 0. symmetric: True about 0. open: True if the density is 0 at the ends of the support. discrete: True
    for whole numbers, whose `logpdf` is the logarithm of the probability."""

    name: str
    shapes: str
    low: Any
    high: Any
    logpdf: Formula
    cdf: Formula | None = None
    sf: Formula | None = None
    logcdf: Formula | None = None
    logsf: Formula | None = None
    ppf: Formula | None = None
    isf: Formula | None = None
    mean: Any = None
    var: Any = None
    entropy: Any = None
    valid: Formula | None = None
    symmetric: bool = False
    open: bool = False
    discrete: bool = False


def by_scipy(name: str, method: str, *slopes: Formula) -> Callable[..., Node]:
    """A method of SciPy's distribution in its standard form, which Python computes. slopes: derivatives by the
    variable and each parameter, of the value and these; `unknown` for one that has no formula."""

    def compute(*arrays: Any) -> Any:
        return getattr(found_in("scipy.stats", name), method)(*arrays)

    return python_row(f"{name}_{method}", f"{method} of {name}.", compute, *slopes)


class CallParameters:
    """The parameters of a call: shapes, loc and scale as tensors, and the ends of the support."""

    def __init__(self, law: Law, method: str, args: Sequence[Any], kwds: Mapping[str, Any]) -> None:
        names = [*law.shapes.split(), "loc", *([] if law.discrete else ["scale"])]
        if len(args) > len(names):
            raise ArgumentError(f"{law.name}.{method}: it takes the parameters {', '.join(names)}, not {len(args)}")
        values = dict(zip(names, args, strict=False)) | dict(kwds)
        unknown = next((name for name in values if name not in names), None)
        missing = next((name for name in law.shapes.split() if name not in values), None)
        if unknown is not None or missing is not None:
            why = (
                f"there is no parameter {unknown!r}" if unknown is not None else f"the parameter {missing!r} is missing"
            )
            raise ArgumentError(f"{law.name}.{method}: {why}; it takes {', '.join(names)}")
        self.law = law
        self.shapes = [floats(values[name]) for name in law.shapes.split()]
        self.loc, self.scale = floats(values.get("loc", 0.0)), floats(values.get("scale", 1.0))
        self.low, self.high = (end(*self.shapes) if callable(end) else end for end in (law.low, law.high))

    @property
    def is_valid(self) -> Any:
        """The condition under which there is such a distribution."""
        valid: Any = self.scale > 0
        if self.law.valid is not None:
            return valid & self.law.valid(*self.shapes)
        for shape in self.shapes:
            valid = valid & (shape > 0)
        return valid

    def checked(self, value: Any) -> Node:
        """A result, NaN where there is no such distribution."""
        return el.where(self.is_valid, value, math.nan)


def floats(x: Any) -> Node:
    """A tensor of floats; Python's numbers keep having no dtype."""
    node = as_node(x)
    if is_number(node):
        return node if is_float(node.type.dtype) else as_node(float(x)) if isinstance(x, int) else cast(node, "float64")
    return in_floats(node)


def _method(doc: str) -> Callable[[Formula], Any]:
    """A method that SciPy computes of arrays."""

    def decorate(compute: Formula) -> Any:
        name = compute.__name__

        def method(self: Any, *args: Any, **kwds: Any) -> Any:
            if is_plain(args, kwds):
                return getattr(found_in("scipy.stats", self.law.name), name)(*args, **kwds)
            return compute(self, *args, **kwds)

        method.__name__, method.__qualname__, method.__doc__ = name, f"Distribution.{name}", doc
        return method

    return decorate


class Distribution:
    """A distribution under SciPy's name; called with parameters it gives one that has them ("frozen").

    Methods raise TypeError for a parameter that is missing or that the distribution does not have, and GraphTypeError
    for a function of a tensor that has no formula.
    """

    def __init__(self, law: Law) -> None:
        self.law, self.name, self.shapes = law, law.name, law.shapes.replace(" ", ", ") or None

    def __repr__(self) -> str:
        return f"<distribution {self.name}>"

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with these parameters."""
        return Frozen(self, args, kwds)

    freeze = __call__

    def _formula(self, name: str) -> Formula:
        formula: Formula | None = getattr(self.law, name)
        if formula is None:
            raise GraphTypeError(f"{self.name}.{name} of a tensor: there is no formula for it")
        return formula

    def _inside(self, parameters: CallParameters, x: Any) -> tuple[Node, Any, Any]:
        """The standard variable, whether it is below the support, and whether inside."""
        y = floats(x) - parameters.loc if self.law.discrete else (floats(x) - parameters.loc) / parameters.scale
        return y, y < parameters.low, (y >= parameters.low) & (y <= parameters.high)

    def _has_density(self, parameters: CallParameters, y: Node) -> Any:
        """The condition that y is inside of the support and finite: the density at infinity is 0."""
        low, high = parameters.low, parameters.high
        ends = [isinstance(end, float) and math.isinf(end) for end in (low, high)]
        inside: Any = (y > low if ends[0] or self.law.open else y >= low) & (
            y < high if ends[1] or self.law.open else y <= high
        )
        if callable(self.law.low) or callable(self.law.high):
            inside = inside & (el.abs(y) < math.inf)
        return inside & el.equal(el.floor(y), y) if self.law.discrete else inside

    def _held(self, parameters: CallParameters, y: Node, inside: Any) -> Node:
        """The variable, with a number inside of the support where it is outside: derivatives are none of its own."""
        low, high = parameters.low, parameters.high
        within: Any = 0.0
        if not (isinstance(low, float) and math.isinf(low)):
            within = low + 1.0
            if not (isinstance(high, float) and math.isinf(high)):
                within = el.where(el.isinf(as_node(high)), low + 1.0, 0.5 * (low + high))
                within = el.where(el.isinf(as_node(low)), high - 1.0, within)
        elif not (isinstance(high, float) and math.isinf(high)):
            within = high - 1.0
        return el.where(inside, y, within)

    def _log_density(self, x: Any, parameters: CallParameters) -> Node:
        y, _, _ = self._inside(parameters, x)
        inside = self._has_density(parameters, y)
        value = self.law.logpdf(self._held(parameters, y, inside), *parameters.shapes)
        value = value if self.law.discrete else value - el.log(parameters.scale)
        return parameters.checked(el.where(el.isnan(y), math.nan, el.where(inside, value, -math.inf)))

    def _tail(self, name: str, x: Any, parameters: CallParameters) -> Node:
        """cdf, sf or the logarithm of one."""
        y, below, _ = self._inside(parameters, x)
        if self.law.discrete:
            y = el.floor(y)
        else:
            below = y <= parameters.low
        above = y >= parameters.high
        inside = el.logical_not(below | above)
        value = self._tail_formula(name)(self._held(parameters, y, inside), *parameters.shapes)
        first, last = (0.0, 1.0) if name in ("cdf", "logcdf") else (1.0, 0.0)
        if name.startswith("log"):
            first, last = (0.0 if end else -math.inf for end in (first, last))
        value = el.where(below, first, el.where(above, last, value))
        return parameters.checked(el.where(el.isnan(y), math.nan, value))

    def _tail_formula(self, name: str) -> Formula:
        law = self.law
        known: Formula | None = getattr(law, name)
        if known is not None:
            return known
        if name.startswith("log"):
            if name == "logsf" and law.symmetric and law.logcdf is not None:
                logcdf = law.logcdf
                return lambda y, *shapes: logcdf(-y, *shapes)
            plain = self._tail_formula(name[3:])
            return lambda y, *shapes: el.log(plain(y, *shapes))
        if name == "sf" and law.symmetric:
            cdf = self._formula("cdf")
            return lambda y, *shapes: cdf(-y, *shapes)
        exact: Formula | None = getattr(law, f"log{name}")
        if exact is not None:
            return lambda y, *shapes: el.exp(exact(y, *shapes))
        other = getattr(law, "sf" if name == "cdf" else "cdf") or self._formula(name)
        return lambda y, *shapes: 1 - other(y, *shapes)

    def _quantile(self, name: str, q: Any, parameters: CallParameters) -> Node:
        """ppf or isf."""
        law, q = self.law, floats(q)
        formula: Formula | None = getattr(law, name)
        if formula is None:
            ppf = self._formula("ppf")
            mirrored = law.symmetric
            formula = (lambda q, *s: -ppf(q, *s)) if mirrored else (lambda q, *s: ppf(1 - q, *s))
        inside = (q > 0) & (q < 1)
        value = formula(el.where(inside, q, 0.5), *parameters.shapes)
        first = parameters.low - 1 if law.discrete else parameters.low
        ends = (first, parameters.high) if name == "ppf" else (parameters.high, first)
        value = el.where(el.equal(q, 0), ends[0], el.where(el.equal(q, 1), ends[1], value))
        value = el.where((q >= 0) & (q <= 1), value, math.nan)
        return parameters.checked(value + parameters.loc if law.discrete else value * parameters.scale + parameters.loc)

    def _moment(self, name: str, parameters: CallParameters) -> Any:
        formula = self._formula(name)
        return formula(*parameters.shapes) if callable(formula) else formula


def _of_variable(name: str, doc: str, compute: Formula) -> None:
    def method(self: Distribution, x: Any, *args: Any, **kwds: Any) -> Any:
        return compute(self, x, CallParameters(self.law, name, args, kwds))

    method.__name__ = name
    setattr(Distribution, name, _method(doc)(method))


def _of_parameters(name: str, doc: str, compute: Formula) -> None:
    def method(self: Distribution, *args: Any, **kwds: Any) -> Any:
        return compute(self, CallParameters(self.law, name, args, kwds))

    method.__name__ = name
    setattr(Distribution, name, _method(doc)(method))


def _mean(self: Distribution, parameters: CallParameters) -> Node:
    return parameters.checked(_scaled(self._moment("mean", parameters), parameters))


def _var(self: Distribution, parameters: CallParameters) -> Node:
    value = self._moment("var", parameters)
    return parameters.checked(value if parameters.law.discrete else parameters.scale * parameters.scale * value)


def _entropy(self: Distribution, parameters: CallParameters) -> Node:
    value = self._moment("entropy", parameters)
    return parameters.checked(value if parameters.law.discrete else value + el.log(parameters.scale))


def _scaled(value: Any, parameters: CallParameters) -> Node:
    return as_node(parameters.loc + (value if parameters.law.discrete else parameters.scale * value))


def _interval(self: Distribution, confidence: Any, parameters: CallParameters) -> tuple[Node, Node]:
    rest = 0.5 * (1 - floats(confidence))
    return self._quantile("ppf", rest, parameters), self._quantile("ppf", 1 - rest, parameters)


def _support(self: Distribution, parameters: CallParameters) -> tuple[Node, Node]:
    return _scaled(parameters.low, parameters), _scaled(parameters.high, parameters)


for _name, _doc, _compute in (
    ("logpdf", "The logarithm of the density at x; -inf outside of the support.", Distribution._log_density),
    ("pdf", "The density at x.", lambda self, x, given: el.exp(self._log_density(x, given))),
    ("cdf", "The probability of at most x.", lambda self, x, given: self._tail("cdf", x, given)),
    ("sf", "The probability of more than x.", lambda self, x, given: self._tail("sf", x, given)),
    ("logcdf", "The logarithm of cdf.", lambda self, x, given: self._tail("logcdf", x, given)),
    ("logsf", "The logarithm of sf.", lambda self, x, given: self._tail("logsf", x, given)),
    ("ppf", "The x whose cdf is q.", lambda self, q, given: self._quantile("ppf", q, given)),
    ("isf", "The x whose sf is q.", lambda self, q, given: self._quantile("isf", q, given)),
    ("interval", "The ends of the interval about the median that has this probability.", _interval),
):
    _of_variable(_name, _doc, _compute)
for _name, _doc, _moment in (
    ("mean", "The mean.", _mean),
    ("var", "The variance.", _var),
    ("std", "The root of the variance.", lambda self, given: el.sqrt(_var(self, given))),
    ("entropy", "The entropy, of the density or of the probabilities.", _entropy),
    ("median", "The x whose cdf is 1/2.", lambda self, given: self._quantile("ppf", 0.5, given)),
    ("support", "The ends of the support.", _support),
):
    _of_parameters(_name, _doc, _moment)


def rvs(self: Distribution, *args: Any, size: Any = None, random_state: Any = None, **kwds: Any) -> Any:
    """Random numbers of a key of `graphc.random` in the place of `random_state`, with derivatives by the parameters:
    quantiles of uniform numbers. size: the shape, by default that of the parameters. Without a key SciPy's own draw.

    Raises GraphValueError for tensors without a key.
    """
    is_key = isinstance(random_state, Node | np.uint64)
    if not is_key and is_plain(args, kwds):
        return found_in("scipy.stats", self.name).rvs(
            *args, size=1 if size is None else size, random_state=random_state, **kwds
        )
    if not is_key:
        raise GraphValueError(f"{self.name}.rvs of a tensor: random_state must be a key, as graphc.random.key(0)")
    parameters = CallParameters(self.law, "rvs", args, kwds)
    shape: Any = size if isinstance(size, tuple | list | type(None)) else (size,)
    if shape is None:
        filled = parameters.loc + parameters.scale + sum(parameters.shapes, as_node(0.0))
        shape = tuple(filled.shape[axis] for axis in range(filled.ndim))
    number = random.uniform(random_state, tuple(shape), "float64") + 2.0**-54
    drawn = self._quantile("ppf", number, parameters)
    if self.law.discrete:
        drawn = cast(drawn, "int64")
    if is_plain((random_state, *args), kwds):
        return compile_function([], drawn, mode="interpreted")()[()]
    return drawn


Distribution.rvs = rvs  # type: ignore[attr-defined]


class Frozen:
    """A distribution with its parameters, which its methods leave out."""

    def __init__(self, dist: Any, args: Sequence[Any], kwds: Mapping[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, tuple(args), dict(kwds)

    def __repr__(self) -> str:
        return f"<distribution {self.dist.name} with parameters>"

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_":
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        method = getattr(self.dist, name)

        def call(*args: Any, **kwds: Any) -> Any:
            if not by_program():
                return method(*args, *self.args, **self.kwds, **kwds)
            done = HOOKS.handles.Call(call, args, kwds)
            return done.finished(method(*done.args, *self.args, **self.kwds, **done.kwargs))

        call.__name__ = name
        return call


class Discrete(Distribution):
    """A distribution of whole numbers under SciPy's name; called with parameters it gives one that has them ("frozen").

    It has `pmf` and `logpmf`; `pdf` and `logpdf` raise AttributeError. Methods raise TypeError for a parameter that is
    missing or that the distribution does not have.
    """

    def __getattribute__(self, name: str) -> Any:
        if name in ("pdf", "logpdf"):
            raise AttributeError(f"{self.name} is a distribution of whole numbers: it has pmf and logpmf")
        return super().__getattribute__(name)


for _name, _doc, _compute in (
    ("logpmf", "The logarithm of pmf.", Distribution._log_density),
    ("pmf", "The probability of x, 0 of fractions.", lambda self, x, given: el.exp(self._log_density(x, given))),
):
    _of_variable(_name, _doc, _compute)
    setattr(Discrete, _name, vars(Distribution)[_name])
    delattr(Distribution, _name)

explained_class(Distribution)
explained_class(Discrete)


# --- distributions of vectors -----------------------------------------------------------------------------------------
# The last axis is the vector (of `dirichlet` the first one, as in SciPy). A covariance that is not positive definite is
# numpy.linalg.LinAlgError.


class Vectors:
    """A distribution of vectors under SciPy's name; called with parameters it gives one that has them ("frozen").

    Methods raise TypeError for a parameter that is missing, and GraphValueError for a function of a tensor that has no
    formula.
    """

    def __init__(self, name: str, formulas: dict[str, Any]) -> None:
        self.name, self.formulas = name, formulas

    def __repr__(self) -> str:
        return f"<distribution {self.name}>"

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with these parameters."""
        return Frozen(self, args, kwds)

    def _call(self, method: str, args: Any, kwds: Any) -> Any:
        if is_plain(args, kwds):
            return getattr(found_in("scipy.stats", self.name), method)(*args, **kwds)
        formula = self.formulas.get(method)
        if formula is None:
            raise GraphValueError(f"{self.name}.{method} of a tensor: there is no formula for it")
        return formula(*args, **kwds)

    def rvs(self, *args: Any, size: Any = (), random_state: Any = None, **kwds: Any) -> Any:
        """Random vectors of a key of `graphc.random` in the place of `random_state`; else SciPy's own draw."""
        if not isinstance(random_state, Node | np.uint64):
            if is_plain(args, kwds):
                size = 1 if size == () else size
                return found_in("scipy.stats", self.name).rvs(*args, size=size, random_state=random_state, **kwds)
            raise GraphValueError(f"{self.name}.rvs of a tensor: random_state must be a key, as graphc.random.key(0)")
        shape = tuple(size) if isinstance(size, tuple | list) else (size,)
        drawn = self.formulas["rvs"](random_state, shape, *args, **kwds)
        if is_plain((random_state, *args), kwds):
            return compile_function([], drawn, mode="interpreted")()
        return drawn


def _of_vectors(name: str, doc: str) -> None:
    def method(self: Vectors, *args: Any, **kwds: Any) -> Any:
        return self._call(name, args, kwds)

    method.__name__, method.__qualname__, method.__doc__ = name, f"Vectors.{name}", doc
    setattr(Vectors, name, method)


for _name, _doc in (
    ("logpdf", "The logarithm of the density, of x and the parameters."),
    ("pdf", "The density, of x and the parameters."),
    ("logpmf", "The logarithm of the probability of x, which the parameters follow."),
    ("pmf", "The probability of x, which the parameters follow."),
    ("cdf", "The distribution function; of arrays alone."),
    ("mean", "The mean, of the parameters."),
    ("var", "The variances, of the parameters."),
    ("cov", "The covariance, of the parameters."),
    ("entropy", "The entropy, of the parameters."),
):
    _of_vectors(_name, _doc)

# --- normal -----------------------------------------------------------------------------------------------------------


def _normal_of(mean: Any, cov: Any, x: Any = None) -> tuple[Node, Node]:
    """Mean and lower factor of the covariance, which SciPy takes as a number or as its diagonal too."""
    cov = floats(cov)
    mean = None if mean is None else floats(mean)
    if cov.ndim == 2:
        size = cov.shape[0]
    elif cov.ndim == 1:
        size, cov = cov.shape[0], diag(cov)
    else:
        known = mean if mean is not None and mean.ndim else None if x is None or not x.ndim else x
        size = 1 if known is None else known.shape[known.ndim - 1]
        cov = cov * eye(size, dtype=cov.type.dtype)
    mean = zeros((size,), cov.type.dtype) if mean is None else mean if mean.ndim else mean[None]
    return mean, cholesky(cov)


def _log_normal(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Node:
    if allow_singular:
        raise GraphValueError("multivariate_normal of a tensor: allow_singular=True is not supported")
    x = floats(x)
    mean, factor = _normal_of(mean, cov, x)
    rest = x - mean if x.ndim else x[None] - mean
    if mean.type.shape == (1,) and x.ndim == 1:  # as many points of one dimension
        rest = rest[:, None]
    size = factor.shape[0]
    flat = rest.reshape((-1, size))
    scaled = solve_triangular(factor, flat.T, lower=True)
    squares = (scaled * scaled).sum(0).reshape([rest.shape[axis] for axis in range(rest.ndim - 1)])
    return -0.5 * (squares + size * math.log(2 * math.pi)) - el.log(diagonal(factor)).sum()


def _normal_entropy(mean: Any = None, cov: Any = 1) -> Any:
    _, factor = _normal_of(mean, cov)
    return 0.5 * factor.shape[0] * (math.log(2 * math.pi) + 1) + el.log(diagonal(factor)).sum()


def _drawn_normal(key: Any, shape: Any, mean: Any = None, cov: Any = 1) -> Node:
    mean, factor = _normal_of(mean, cov)
    return vectors.multivariate_normal(key, mean, factor @ factor.T, shape)


multivariate_normal = Vectors(
    "multivariate_normal",
    {
        "logpdf": _log_normal,
        "pdf": lambda *args, **kwds: el.exp(_log_normal(*args, **kwds)),
        "entropy": _normal_entropy,
        "rvs": _drawn_normal,
    },
)

# --- Dirichlet --------------------------------------------------------------------------------------------------------


def _log_beta(alpha: Node) -> Node:
    return el.gammaln(alpha).sum() - el.gammaln(alpha.sum())


def _log_dirichlet(x: Any, alpha: Any) -> Node:
    """x may lack its last element, which makes the sum 1."""
    x, alpha = floats(x), floats(alpha)
    size, wanted = x.type.shape[0], alpha.type.shape[0]
    if isinstance(size, int) and size + 1 == wanted:
        x = concatenate([x, 1 - x.sum(0, keepdims=True)], 0)
    powers = (alpha - 1).reshape([alpha.shape[0], *[1] * (x.ndim - 1)])
    return el.xlogy(powers, x).sum(0) - _log_beta(alpha)


def _dirichlet_var(alpha: Any) -> Any:
    alpha = floats(alpha)
    total = alpha.sum()
    return alpha * (total - alpha) / (total * total * (total + 1))


def _dirichlet_entropy(alpha: Any) -> Any:
    alpha = floats(alpha)
    total, count = alpha.sum(), alpha.shape[0]
    return _log_beta(alpha) + (total - count) * el.digamma(total) - ((alpha - 1) * el.digamma(alpha)).sum()


def _dirichlet_cov(alpha: Any) -> Any:
    mean = floats(alpha) / floats(alpha).sum()
    return (diag(mean) - mean[:, None] * mean) / (floats(alpha).sum() + 1)


dirichlet = Vectors(
    "dirichlet",
    {
        "logpdf": _log_dirichlet,
        "pdf": lambda *args, **kwds: el.exp(_log_dirichlet(*args, **kwds)),
        "mean": lambda alpha: floats(alpha) / floats(alpha).sum(),
        "var": _dirichlet_var,
        "cov": _dirichlet_cov,
        "entropy": _dirichlet_entropy,
        "rvs": lambda key, shape, alpha: rejection.dirichlet(key, alpha, shape),
    },
)

# --- multinomial ------------------------------------------------------------------------------------------------------


def _log_multinomial(x: Any, n: Any, p: Any) -> Node:
    x, n, p = floats(x), floats(n), floats(p)
    valid = el.equal(x.sum(-1), n) & ((x >= 0) & el.equal(el.floor(x), x)).all(-1)
    counts = el.maximum(x, 0)
    value = el.gammaln(n + 1) + (el.xlogy(counts, p) - el.gammaln(counts + 1)).sum(-1)
    return el.where(valid, value, -math.inf)


def _multinomial_cov(n: Any, p: Any) -> Any:
    p = floats(p)
    return as_node(n) * (diag(p) - p[:, None] * p)


multinomial = Vectors(
    "multinomial",
    {
        "logpmf": _log_multinomial,
        "pmf": lambda *args: el.exp(_log_multinomial(*args)),
        "mean": lambda n, p: as_node(n) * floats(p),
        "cov": _multinomial_cov,
        "rvs": lambda key, shape, n, p: vectors.multinomial(key, n, p, shape),
    },
)

explained_class(Vectors)
