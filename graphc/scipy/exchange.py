"""SciPy's functions, as a traced program calls them: those of `graphc.scipy` in their place.

    from scipy.special import logsumexp
    from scipy.stats import norm

    graphc.jit(lambda x: logsumexp(norm.logpdf(x)))      graphc.scipy's functions of these names

SciPy asks nobody before it makes arrays of its arguments. So while a function is traced, in any thread, the functions
of SciPy's modules that are imported, and the methods of its distributions, have other code (`replace`, `restore`):
whatever name a program has them by, they ask whether a tensor is among the arguments of a traced function. If not, they
do what they do. SciPy's functions of single elements are asked by NumPy's protocol and need no other code; `ufunc` says
what they are here. A function that `graphc.scipy` has not is an error that names it.

In: calls of SciPy's functions. Out: those of the functions of `graphc.scipy`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from inspect import isgeneratorfunction
from types import CodeType, FunctionType
from typing import Any

from graphc.errors import GraphcError, GraphTypeError
from graphc.ir.call_errors import PLACED
from graphc.ir.node import Node, describe, plain
from graphc.ir.source_lines import TRACE, program_line
from graphc.startup.hooks import HOOKS
from graphc.tensor import boundary
from graphc.tensor.creations import SCIPYS
from graphc.tensor.handles import UNKNOWN, known
from graphc.tracing.identity import content_of
from graphc.trees import leaves

CLASSES = "rv_generic rv_continuous rv_discrete".split()
"""The classes of distributions whose methods are exchanged; so are those of distributions of vectors."""

FFT_BACKENDS = ("_basic_backend", "_realtransforms_backend", "_fftlog_backend")
"""The modules of `scipy.fft` whose functions compute where no other backend is set."""

CURVES = "Akima1DInterpolator BSpline CubicHermiteSpline CubicSpline PPoly PchipInterpolator".split()
CURVES += ["RegularGridInterpolator", "interp1d"]
"""The classes of curves whose methods are exchanged."""
ORDERS = {0: "zero", 1: "linear", 2: "quadratic", 3: "cubic"}
"""The kinds of `interp1d` that SciPy computes by splines, by their orders."""

OTHERS = {"integrate.odeint": "integrate.initial_values.scipys_odeint"}
"""Functions of SciPy's whose names `graphc.scipy` has for other signatures, and those that take their calls."""

OF_FFT = "graphc.scipy.fft"
FFTPACK = dict.fromkeys("fft ifft fft2 ifft2 fftn ifftn".split(), 2)
FFTPACK |= {f"{turn}{name}{several}": 4 for name in ("dct", "dst") for turn in ("", "i") for several in ("", "n")}
"""Functions of `scipy.fftpack` that `scipy.fft` has too, and how many arguments, after the array, mean the same."""

Exchange = tuple[FunctionType, CodeType, CodeType]
"""A function, its own code, and the code that it has while a function is traced."""


@cache
def _template(count: int) -> CodeType:
    """The code of a function with so many free variables. It is compiled with them: whoever reads the variables of a
    frame, as a debugger does, relies on the instruction that copies them."""
    names = [f"free_{place}" for place in range(count)]
    held = f"({', '.join(names)},)" if names else "()"
    lines = [
        f"def outer({', '.join(names)}):",
        "    def template(*args, **kwargs):",
        f"        if False: {held}",
        "        call = 'the call'",
        "        return call(args, kwargs)",
        "    return template",
    ]
    space: dict[str, Any] = {}
    exec("\n".join(lines), space)
    code: CodeType = space["outer"](*[None] * count).__code__
    return code.replace(co_filename=_template.__wrapped__.__code__.co_filename)


def _code(function: FunctionType, call: Callable[..., Any]) -> CodeType:
    """The code of `call(args, kwargs)` for a function, which has as many free variables and its name."""
    template = _template(len(function.__code__.co_freevars))
    constants = tuple(call if constant == "the call" else constant for constant in template.co_consts)
    return template.replace(co_consts=constants, co_name=function.__code__.co_name)


def _exchange(function: FunctionType, name: str, home: str, is_method: bool) -> Exchange:
    """`home`: the module of graphc's function of that name. Methods have the name of their law, or of the class that
    they construct."""
    own = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    own.__kwdefaults__ = function.__kwdefaults__

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = args[1:] if is_method else args
        found = leaves((given, kwargs)) if TRACE.depth else []
        is_solver = any(map(_takes_tensors, found))
        if not is_solver and not any(isinstance(leaf, Node) for leaf in found):
            return own(*args, **kwargs)
        is_law = is_method and home == "stats"
        law = getattr(args[0], "name", type(args[0]).__name__.removesuffix("_gen")) if is_law else ""
        title = f"{law}.{name}" if is_law else name
        if not is_solver and known((given, kwargs)) is not UNKNOWN:
            values = boundary.given(given)
            return boundary.computed(own(*args[: len(args) - len(given)], *values, **boundary.given(kwargs)))
        target = _target(home, title, (given, kwargs))
        done = boundary.Call(target, given, kwargs)
        return done.finished(target(*done.args, **done.kwargs))

    return function, function.__code__, _code(function, call)


def _of_curves(theirs: Any) -> Iterator[Exchange]:
    """The methods of SciPy's curves, each once."""
    kinds = dict.fromkeys(kind for name in CURVES for kind in getattr(theirs, name).__mro__ if kind is not object)
    for kind in kinds:
        for name, method in vars(kind).items():
            if isinstance(method, FunctionType) and (name[0] != "_" or name in ("__init__", "__call__")):
                yield _exchange_of_curve(method, name)


def _exchange_of_curve(function: FunctionType, name: str) -> Exchange:
    """A method of one of SciPy's classes of curves: graphc's curve is kept in an object that is made of tensors, and
    takes the calls of its methods; of one that SciPy has made, it is made for a call with tensors."""
    own = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    own.__kwdefaults__ = function.__kwdefaults__

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        curve, given = args[0], args[1:]
        curves = vars(curve).get("_graphc")
        is_known = known((given, kwargs)) is not UNKNOWN
        if TRACE.depth and curves is None and is_known:
            return own(curve, *boundary.given(given), **boundary.given(kwargs))
        if not TRACE.depth or (curves is None and not any(isinstance(each, Node) for each in leaves((given, kwargs)))):
            return own(*args, **kwargs)
        if name == "__init__":
            target = _target("interpolate", type(curve).__name__, (given, kwargs))
        else:
            target = getattr(_curve_of(curve, (given, kwargs)) if curves is None else curves, name)
        done = boundary.Call(target, given, kwargs)
        try:
            made: Any = target(*done.args, **done.kwargs)
        except GraphcError as error:
            if not re.search(PLACED, str(error)):
                error.args = (f"{error} (called at {program_line()})",)
            raise
        if name != "__init__":
            return done.finished(made)
        curve._graphc = made
        if type(curve).__name__ == "interp1d":
            curve.x, curve.y = made.x, made.y  # which programs read
        return None

    return function, function.__code__, _code(function, call)


def _curve_of(curve: Any, given: Any) -> Any:
    """Graphc's curve for one that SciPy has made of arrays."""
    kind = type(curve).__name__
    if hasattr(curve, "c") and hasattr(curve, "x"):
        kind = "PPoly"
    make = _target("interpolate", kind, given)
    if kind == "PPoly":
        return make.of_coefficients(curve.c, curve.x, curve.extrapolate, curve.axis)  # type: ignore[attr-defined]
    if kind == "BSpline":
        return make(curve.t, curve.c, curve.k, curve.extrapolate, curve.axis)
    if kind == "RegularGridInterpolator":
        return make(curve.grid, curve.values, curve.method, curve.bounds_error, curve.fill_value)
    between = ORDERS[curve._spline.k] if curve._kind == "spline" else curve._kind
    return make(curve.x, curve.y, between, curve.axis, True, curve.bounds_error, curve.fill_value, assume_sorted=True)


def _takes_tensors(leaf: Any) -> bool:
    """Tell whether a value is a function that takes a tensor from around it, as that of a solver may."""
    contents = map(content_of, leaf.__closure__ or ()) if isinstance(leaf, FunctionType) else ()
    return any(isinstance(content, Node) and known(content) is UNKNOWN for content in contents)


def _target(home: str, title: str, given: Any) -> Callable[..., Any]:
    """The function of graphc's, or the error that there is none."""
    if home == "fftpack" and title in FFTPACK:
        return _of_fftpack(title)
    try:
        found: Any = import_module("graphc.scipy")
        for part in OTHERS.get(f"{home}.{title}", f"{home}.{title}").split("."):
            found = getattr(found, part)
    except (AttributeError, ModuleNotFoundError) as error:
        own = [leaf for leaf in leaves(given) if isinstance(leaf, Node)]
        told = f"of {describe(plain(own[0]))}, which is symbolic" if own else "with a function of symbolic arrays"
        raise GraphTypeError(f"scipy.{home}.{title} {told}: {error} (called at {program_line()})") from None
    target: Callable[..., Any] = found
    return target


@cache
def _of_fftpack(name: str) -> Callable[..., Any]:
    """The function of `graphc.scipy.fft` for one of `scipy.fftpack`."""

    def call(x: Any, *args: Any, overwrite_x: Any = False, **kwargs: Any) -> Any:
        named, fft = {"s" if key == "shape" else key: each for key, each in kwargs.items()}, import_module(OF_FFT)
        if name[:2] != "id":
            return getattr(fft, name)(x, *args[: FFTPACK[name]], **named)
        kind = args[0] if args else named.pop("type", 2)  # the inverse is another type, and is not divided
        return getattr(fft, name[1:])(x, fft.INVERSE.get(kind, kind), *args[1 : FFTPACK[name]], **named)

    call.__name__ = name
    return call


@cache
def _exchanges(module: str) -> tuple[Exchange, ...]:
    """The functions of a module of SciPy's."""
    return tuple(_found(sys.modules[f"scipy.{module}"], module))


def _found(theirs: Any, module: str) -> Iterator[Exchange]:
    for name in theirs.__all__:
        function = getattr(theirs, name, None)
        if module == "fft" and not isinstance(function, FunctionType):  # it asks backends, and at last SciPy's own
            own = (sys.modules.get(f"scipy.fft.{backend}") for backend in FFT_BACKENDS)
            function = next((getattr(each, name) for each in own if hasattr(each, name)), function)
        if isgeneratorfunction(function):  # it can only have the code of a generator
            continue
        if isinstance(function, FunctionType) and (module != "fftpack" or "fftpack" in function.__module__):
            yield _exchange(function, name, module, False)
        elif module == "spatial" and isinstance(make := getattr(function, "__init__", None), FunctionType):
            yield _exchange(make, name, module, True)
    if module == "interpolate":
        yield from _of_curves(theirs)
    if module != "stats":
        return
    infrastructure: Any = sys.modules["scipy.stats._distn_infrastructure"]
    owners = [getattr(infrastructure, name) for name in CLASSES]
    kinds = {type(getattr(theirs, name, None)) for name in theirs.__all__}
    owners += [kind for kind in kinds if kind.__module__ == "scipy.stats._multivariate"]
    for owner in owners:
        for name, method in vars(owner).items():
            if isinstance(method, FunctionType) and (name[0] != "_" or name == "__call__"):
                yield _exchange(method, name, "stats", True)


def replace() -> None:
    """Give the functions of SciPy's that are imported their other code."""
    for module in SCIPYS:
        if f"scipy.{module}" in sys.modules:
            replace_in(module)


def replace_in(module: str) -> None:
    """Give the functions of one module of SciPy's their other code."""
    for function, _, code in _exchanges(module):
        function.__code__ = code


def restore() -> None:
    """Give them back their own."""
    for module in SCIPYS:
        if f"scipy.{module}" in sys.modules:
            for function, code, _ in _exchanges(module):
                function.__code__ = code


def ufunc(name: str) -> Callable[..., Any] | None:
    """The function of graphc for one of SciPy's of single elements."""
    return getattr(import_module("graphc.scipy.special"), name, None)


HOOKS.scipys = sys.modules[__name__]
