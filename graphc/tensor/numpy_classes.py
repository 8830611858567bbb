"""NumPy's objects that take arrays without asking them, as a traced program uses them.

    np.c_[np.ones(len(x)), x]                 columns, some of which are tensors
    np.vectorize(lambda a, b: a * b)(x, y)    the function once, for all elements
    for place, value in np.ndenumerate(x)     numbers of the graph

In: methods of NumPy's classes, which `creations.replace` puts others in place of while a function is traced, wherever
the program has the object from. Out: what NumPy's own give where no tensor is among their arguments, or all that they
hold is known; else nodes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError
from graphc.ir.node import Node
from graphc.ir.source_lines import NUMPY, OWN_FILES, PACKAGE, TRACE, is_pythons, program_line
from graphc.ops.elementwise import as_node, cast
from graphc.ops.identity import EFFECTS
from graphc.ops.questions import Number
from graphc.startup.hooks import HOOKS
from graphc.tensor import boundary
from graphc.tensor.calculus import full
from graphc.tensor.creation import arange, linspace
from graphc.tensor.handles import UNKNOWN, known
from graphc.tensor.joining import concatenate
from graphc.tensor.python_functions import of_tensors
from graphc.tensor.selecting import mgrid, ogrid
from graphc.tensor.shaping import broadcast_arrays, flatten, reshape
from graphc.trees import leaves, like

Maker: Any = type(np.r_).__mro__[1]
"""The class of np.r_ and np.c_."""

GridMaker: Any = type(np.mgrid).__mro__[1]
"""The class of np.mgrid and np.ogrid."""


def _has_tensors(value: Any) -> bool:
    parts = [value.start, value.stop, value.step] if isinstance(value, slice) else None
    if parts is None and type(value) in (tuple, list):
        parts = value
    return isinstance(value, Node) if parts is None else any(map(_has_tensors, parts))


# --- np.r_ and np.c_ ------------------------------------------------------------------------------------------------


def join(maker: Any, key: Any) -> Any:
    """`np.r_[key]` and `np.c_[key]`, by NumPy's rules for axes."""
    if not (TRACE.depth and _has_tensors(key)):
        return JOIN(maker, key)
    if known(key) is not UNKNOWN:
        return boundary.computed(JOIN(maker, boundary.given(key)))
    items = list(boundary.given(key if isinstance(key, tuple) else (key,)))
    axis, ndmin, trans = maker.axis, maker.ndmin, maker.trans1d
    while items and isinstance(items[0], str):
        axis, ndmin, trans = _directive(items.pop(0), axis, ndmin, trans)
    arrays = [_spread(item, ndmin, trans) for item in items]
    kinds = [_weight(item, array) for item, array in zip(items, arrays, strict=True)]
    dtype = str(np.result_type(*kinds))
    return boundary.owned(concatenate([cast(array, dtype) for array in arrays], axis), (), True)


def _directive(text: str, *before: int) -> tuple[int, ...]:
    """The axis, the number of axes and the place of the new ones, of a text as "0,2"."""
    try:
        return (*map(int, text.split(",")), *before[text.count(",") + 1 :])
    except ValueError:
        raise GraphTypeError(
            f"np.r_[{text!r}, …] makes a matrix of NumPy's, which a traced function has not; np.r_['0,2', …] makes an "
            f"array of two axes (at {program_line()})"
        ) from None


def _weight(item: Any, array: Node) -> Any:
    """The weight of an item in the common dtype: a number of Python's has a kind alone."""
    if type(item) is Number:
        return {"f": 0.0, "b": np.dtype("bool")}.get(np.dtype(item.type.dtype).kind, 0)
    return item if isinstance(item, (bool, int, float)) else np.dtype(array.type.dtype)


def _spread(item: Any, ndmin: int, trans: int) -> Node:
    """An item of the key as an array of `ndmin` axes or more."""
    if isinstance(item, slice):
        start, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
        count = isinstance(step, complex) and int(abs(step))
        node = as_node(linspace(start, item.stop, count) if count else arange(start, item.stop, step))
    else:
        node = as_node(item)
    new = ndmin - node.ndim
    if new <= 0:
        return node
    is_number = not node.ndim
    node = node[(None,) * new]
    if trans == -1 or (is_number and np.isscalar(item)):
        return node
    place, axes = trans + (new + 1 if trans < 0 else 0), [*range(ndmin)]
    return node.transpose(axes[:place] + axes[new:] + axes[place:new])


# --- np.mgrid and np.ogrid --------------------------------------------------------------------------------------------


def spread(maker: Any, key: Any) -> Any:
    """`np.mgrid[key]` and `np.ogrid[key]`: coordinates of a grid."""
    if not (TRACE.depth and _has_tensors(key)):
        return SPREAD(maker, key)
    if known(key) is not UNKNOWN:
        return boundary.computed(SPREAD(maker, boundary.given(key)))
    return boundary.owned((ogrid if maker.sparse else mgrid)[boundary.given(key)], (), True)


# --- functions of single elements -----------------------------------------------------------------------------------


def call_vectorized(self: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of what `np.vectorize` made: the function is traced once, for all elements."""
    if not (TRACE.depth and _has_tensors([*args, *kwargs.values()])):
        return VECTORIZED(self, *args, **kwargs)
    if kwargs or self.signature is not None or self.excluded:
        mapped = HOOKS.of_functions.vectorize(
            self.pyfunc, otypes=self.otypes or None, excluded=self.excluded, signature=self.signature
        )
        return boundary.owned(mapped(*args, **kwargs), (), True)
    given = boundary.given(args)
    values = known(tuple(args))
    if values is not UNKNOWN:
        rows = np.broadcast_arrays(*values)
        made = [self.pyfunc(*each) for each in zip(*(row.flat for row in rows), strict=True)]
        if not any(isinstance(each, Node) for each in made):
            return boundary.computed(VECTORIZED(self, *given))
        return boundary.owned(as_node(boundary.given(made)).reshape(rows[0].shape), (), True)
    arrays: Sequence[Node] = broadcast_arrays(*map(as_node, given))
    if self.otypes:  # then NumPy gives the function numbers of Python's
        arrays = [cast(each, {"f": "float64", "b": "bool"}.get(np.dtype(each.dtype).kind, "int64")) for each in arrays]
    shape, flat = arrays[0].type.shape, [flatten(each) for each in arrays]
    function = of_tensors(self.pyfunc)
    if function is not None:
        made = function(*(cast(each, "float64") for each in flat))
    else:
        made = HOOKS.of_functions.vmap(self.pyfunc)(*flat) if arrays[0].ndim else self.pyfunc(*arrays)
    results = [reshape(as_node(boundary.given(each)), shape) for each in leaves(made)]
    if self.otypes:
        results = [cast(each, str(np.dtype(kind))) for each, kind in zip(results, self.otypes, strict=True)]
    return boundary.owned(like(made, results), (), True)


# --- np.ndenumerate -------------------------------------------------------------------------------------------------


class Places:
    """The elements of a tensor in C order; `coords` are those of the next one."""

    def __init__(self, node: Node) -> None:
        self.node, self.places = node, np.ndindex(*map(int, node.shape))
        self.coords: Sequence[int] = ()
        self.step()

    def step(self) -> None:
        self.following = next(self.places, None)
        self.coords = () if self.following is None else self.following

    def __iter__(self) -> Iterator[Node]:
        return self

    def __next__(self) -> Node:
        if self.following is None:
            raise StopIteration
        found = self.node[self.following]
        self.step()
        return found


def enumerate_places(self: Any, arr: Any) -> None:
    """`np.ndenumerate(arr)`."""
    if TRACE.depth and isinstance(arr, Node):
        self.iter = Places(arr)
    else:
        ENUMERATE(self, arr)


# --- np.errstate ----------------------------------------------------------------------------------------------------


def enter_errstate(self: Any) -> Any:
    """`with np.errstate(...)`; compiled code raises no FloatingPointError, and calls nothing."""
    file = sys._getframe(1).f_code.co_filename
    if TRACE.depth and not (is_pythons(file) or file.startswith(PACKAGE) or f"{os.sep}scipy{os.sep}" in file):
        for name in ("all", "divide", "over", "under", "invalid"):
            if (how := getattr(self, f"_{name}", None)) in ("raise", "call"):
                raise GraphTypeError(
                    f"np.errstate({name}={how!r}): a traced function raises no FloatingPointError where it computes; "
                    f"np.where(np.isfinite(x), x, other) chooses by the result (at {program_line()})"
                )
    return ENTER_ERRSTATE(self)


ENTER_ERRSTATE = np.errstate.__enter__
JOIN, VECTORIZED, ENUMERATE = Maker.__getitem__, np.vectorize.__call__, np.ndenumerate.__init__
SPREAD: Any = GridMaker.__getitem__
OF_CLASSES: tuple[tuple[Any, str, Any, Any], ...] = (
    (Maker, "__getitem__", JOIN, join),
    (GridMaker, "__getitem__", SPREAD, spread),
    (np.vectorize, "__call__", VECTORIZED, call_vectorized),
    (np.ndenumerate, "__init__", ENUMERATE, enumerate_places),
    (np.errstate, "__enter__", ENTER_ERRSTATE, enter_errstate),
)
"""Methods of NumPy's classes: the class, the name, NumPy's own, and what takes its place while a function is traced."""


# --- polynomials ------------------------------------------------------------------------------------------------------


POLYNOMIALS = f"{NUMPY}polynomial{os.sep}"
"""The modules of NumPy's polynomials."""
FIT_FILE = f"{POLYNOMIALS}<fit>"
"""The file of the function in place of `_fit`: what it calls asks who called, and it is NumPy."""
OWN_FILES[FIT_FILE] = False


def _is_open(value: Any) -> bool:
    """True for a tensor of a traced program whose elements are not known."""
    return bool(TRACE.depth) and isinstance(value, Node) and known(value) is UNKNOWN


def _kept(coefficients: Node, place: int) -> Any:
    """The coefficients, where the one of the highest power, at that place, is not 0."""
    if len(coefficients) < 2:
        return coefficients
    made = full(as_node(boundary.given(coefficients)), place, f" (at {program_line()})")
    if EFFECTS.frames:  # results that need the number of coefficients alone are checked too
        EFFECTS.frames[-1].found.append(made[place])
    return boundary.owned(made, (), True)


def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """`np.trim_zeros`, as `np.poly1d` calls it."""
    return _kept(filt, 0) if _is_open(filt) and trim == "f" else TRIM_ZEROS(filt, trim, axis)


def _trimseq(own: Callable[..., Any]) -> Callable[..., Any]:
    """`trimseq`, as the functions of `np.polynomial` call it."""
    return lambda seq: _kept(seq, -1) if _is_open(seq) else own(seq)


def _fit(own: Callable[..., Any]) -> Callable[..., Any]:
    """`_fit`, of which the fits of `np.polynomial` are made; NumPy's asks for the rank of the matrix, to warn of it."""

    def fit(
        vander: Callable[..., Any], x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None
    ) -> Any:
        if full or np.ndim(deg) or not any(map(_is_open, (x, y, w))):
            return own(vander, x, y, deg, rcond, full, w)
        columns, values = vander(x + 0.0, deg), np.asarray(y) + 0.0
        if w is not None:
            columns, values = columns * np.asarray(w)[:, None], (values.T * w).T
        norms = np.sqrt(np.square(columns).sum(0))
        norms = np.where(norms == 0, 1, norms)
        return (np.linalg.lstsq(columns / norms, values, rcond)[0].T / norms).T

    fit.__code__ = fit.__code__.replace(co_filename=FIT_FILE)
    return fit


def _make_poly1d(self: Any, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
    """`np.poly1d(c_or_r)`, also of a list of tensors."""
    if TRACE.depth and isinstance(c_or_r, (list, tuple)) and any(isinstance(each, Node) for each in c_or_r):
        c_or_r = boundary.owned(as_node(boundary.given(c_or_r)), (), True)
    MAKE_POLY1D(self, c_or_r, r, variable)


def _of_coefficients(own: Callable[..., Any]) -> Callable[..., Any]:
    """One of NumPy's functions that make arrays of `np.poly1d`, which gives the coefficients that are tensors."""

    def of_polynomials(*args: Any, **kwargs: Any) -> Any:
        given = [each.coeffs if isinstance(each, np.poly1d) else each for each in args]
        alone = len(given) == 1 and isinstance(given[0], Node)
        return given[0] if alone else own(*given, **kwargs)

    return of_polynomials


class _Numeric:
    """NumPy's functions of arrays, as `np.polyder` and kin look them up."""

    def __getattr__(self, name: str) -> Any:
        own = getattr(NUMERIC, name)
        return _of_coefficients(own) if name in ("asarray", "asanyarray", "convolve") else own


IMPL: Any = sys.modules["numpy.lib._polynomial_impl"]
"""The module in which `np.poly1d` and `np.polyder` look up the names of functions."""
TRIM_ZEROS, MAKE_POLY1D, NUMERIC = IMPL.trim_zeros, np.poly1d.__init__, IMPL.NX
OF_POLY1D: tuple[tuple[Any, str, Any, Any], ...] = (
    (IMPL, "trim_zeros", TRIM_ZEROS, _trim_zeros),
    (IMPL, "NX", NUMERIC, _Numeric()),
    (IMPL, "atleast_1d", IMPL.atleast_1d, _of_coefficients(IMPL.atleast_1d)),
    (np.poly1d, "__init__", MAKE_POLY1D, _make_poly1d),
)
"""The replacements for `np.poly1d`: the place, the name, NumPy's own, and what takes its place."""


def of_polynomials(module: Any) -> list[tuple[Any, str, Any, Any]]:
    """The replacements in `numpy.polynomial.polyutils`, in the same form."""
    return [
        (module, "trimseq", module.trimseq, _trimseq(module.trimseq)),
        (module, "_fit", module._fit, _fit(module._fit)),
    ]
