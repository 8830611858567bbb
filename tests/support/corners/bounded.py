"""NumPy arrays that know how far a right result may be from them: the oracle of the programs in this package.

In: arrays, and functions of `Bounded` values: arithmetic, elementary functions, reductions, products, choices. Out: a
`Bounded` of three arrays:

    num  what NumPy gives in the promised dtype: it decides about NaN, infinities and whatever is discrete
    ref  the same formula in long double, as good as the real number
    err  by how much a right result may differ from ref; infinite where rounding decides

Nothing is fitted. Each function adds to the errors of its arguments, times its derivative, what its own rounding may
be: a number of units of the dtype's eps times the magnitude that it computes with, and one subnormal. Rewriting stays
within these bounds, since it may only be as exact or more so. Where a partial result can overflow in one order of a
sum or a product and not in another, err is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphc.arrays.dtypes import name_of

Array = NDArray[Any]
LONG = np.longdouble
BASIC, ELEMENTARY = 2, 6
"""Units of eps: of an operation of IEEE 754, that a rewrite may have doubled; of a function promised to 4 ulp."""


@dataclass(slots=True)
class Evaluation:
    """How the arithmetic goes on: with rounding errors, and with noise of their size; what was decided by comparing."""

    rounds: bool = True
    noise: np.random.Generator | None = None
    decisions: list[bytes] = field(default_factory=list)


_now: list[Evaluation] = [Evaluation()]


@contextmanager
def evaluating(evaluation: Evaluation) -> Iterator[Evaluation]:
    """All arithmetic inside is done so."""
    _now.append(evaluation)
    try:
        with np.errstate(all="ignore"):
            yield evaluation
    finally:
        _now.pop()


@dataclass(frozen=True, slots=True)
class Bounded:
    """A value of a dtype; `exact` where it has the same bits however it is computed."""

    num: Array
    ref: Array
    err: Array
    exact: bool = False

    @property
    def dtype(self) -> str:
        return name_of(self.num.dtype)

    @property
    def is_float(self) -> bool:
        return self.num.dtype.kind == "f"

    def moved(self, function: Callable[[Array], Array]) -> Bounded:
        """The elements in other places."""
        num, ref, err = (np.asarray(function(part)) for part in (self.num, self.ref, self.err))
        return Bounded(num, ref, err, self.exact)


def given(value: Array) -> Bounded:
    """An argument."""
    ref = value.astype(LONG) if value.dtype.kind == "f" else value
    return Bounded(value, ref, np.zeros(value.shape, LONG), True)


def beside(value: Array, offset: Array, err: Array) -> Bounded:
    """A float argument moved by a small offset, and known to `err`."""
    ref = value.astype(LONG) + offset
    return Bounded(ref.astype(value.dtype), ref, np.asarray(err, LONG))


def discrete(num: Any, unknown: Any = False, exact: bool = False) -> Bounded:
    """Integers or truth values, unknown where rounding decides."""
    num = np.asarray(num)
    _now[-1].decisions.append(num.tobytes())
    err = np.where(np.broadcast_to(unknown, num.shape), LONG(np.inf), LONG(0))
    return Bounded(num, num, err, exact)


def like(value: float, x: Bounded) -> Bounded:
    """A Python number, which takes the dtype of the other operand if it can; it must be one of float32."""
    return given(np.asarray(value, x.dtype if x.is_float or isinstance(value, int) else "float64"))


def settled(
    dtype: str, num: Array, ref: Array, err: Array, magnitude: Array | None = None, ulps: float = BASIC
) -> Bounded:
    """A computed value: the error of its arguments, and that of its own rounding of `magnitude`."""
    now = _now[-1]
    num = np.asarray(num).astype(dtype)
    ref, err = np.asarray(ref, LONG), np.asarray(err, LONG)
    info = np.finfo(dtype)
    eps, tiny, most = LONG(info.eps), LONG(info.smallest_subnormal), LONG(info.max)
    finite = np.isfinite(ref)
    size = np.abs(ref) if magnitude is None else np.abs(magnitude)
    if now.rounds:
        err = np.where(finite, err + ulps * (eps * np.where(np.isfinite(size), size, 0) + tiny), err)
        over = finite & np.isfinite(num) & (size + err >= most)
        err = np.where(over, np.inf, err)
    elif now.noise is not None:
        ref = ref * (1 + ulps * eps * now.noise.uniform(-1, 1, ref.shape))
    err = np.where(np.isnan(err), np.inf, err)
    return Bounded(num, ref, np.asarray(err, LONG))


def _known(x: Bounded) -> Array:
    return np.asarray(np.isfinite(x.err))


def combined(ref: Array, err: Array, *args: Bounded) -> Array:
    """An error that is 0 where a result is infinite or NaN for certain, and infinite where an argument is unknown."""
    known = np.ones(ref.shape, bool)
    certain = np.ones(ref.shape, bool)
    for x in args:
        known = known & _known(x)
        certain = certain & ((x.err == 0) | ~np.isfinite(x.ref) | (np.abs(x.ref) > 2 * x.err))
    err = np.where(np.isfinite(ref), err, np.where(certain, 0, np.inf))
    return np.asarray(np.where(known, err, np.inf), LONG)


# --- dtypes ----------------------------------------------------------------------------------------------------------


def cast(x: Bounded, dtype: str) -> Bounded:
    """`x` as another dtype; a float becomes an integer only where it is one that the dtype holds."""
    if x.dtype == dtype:
        return x
    num = x.num.astype(dtype)
    if dtype.startswith("float"):
        ref = x.ref.astype(LONG)
        if np.dtype(dtype).itemsize > x.num.dtype.itemsize and (x.is_float or x.num.dtype.itemsize < 4):
            return Bounded(num, ref, x.err, x.exact)
        made = settled(dtype, num, ref, x.err, ulps=1)
        return given(num) if x.exact and _now[-1].rounds else made
    if x.is_float and dtype == "bool":
        unknown = ~_known(x) | ((np.abs(x.ref) <= x.err) & (x.err > 0)) | ((x.num != 0) != (x.ref != 0))
        return discrete(num, unknown, x.exact)
    return discrete(num, ~_known(x), x.exact)


def common(*args: Bounded) -> tuple[Bounded, ...]:
    """All in the dtype that NumPy computes in."""
    dtype = name_of(np.result_type(*(x.num.dtype for x in args)))
    return tuple(cast(x, dtype) for x in args)


def floating(x: Bounded) -> Bounded:
    """As the float dtype of functions like exp; 8-bit and 16-bit integers are float32."""
    return x if x.is_float else cast(x, "float32" if x.num.dtype.itemsize < 4 else "float64")


def as_double(x: Bounded) -> Bounded:
    """Integers as float64."""
    return x if x.is_float else cast(x, "float64")


# --- arithmetic ------------------------------------------------------------------------------------------------------


def integral(function: Callable[..., Any], *args: Bounded) -> Bounded:
    """A function of integers or truth values, which NumPy's answer is."""
    unknown = np.zeros((), bool)
    for x in args:
        unknown = unknown | ~_known(x)
    return discrete(function(*(x.num for x in args)), unknown, all(x.exact for x in args))


def add(a: Bounded, b: Bounded) -> Bounded:
    a, b = common(a, b)
    if not a.is_float:
        return integral(np.add, a, b)
    ref = a.ref + b.ref
    return settled(a.dtype, a.num + b.num, ref, combined(ref, a.err + b.err, a, b))


def sub(a: Bounded, b: Bounded) -> Bounded:
    a, b = common(a, b)
    if not a.is_float:
        return integral(np.subtract, a, b)
    ref = a.ref - b.ref
    return settled(a.dtype, a.num - b.num, ref, combined(ref, a.err + b.err, a, b))


def mul(a: Bounded, b: Bounded) -> Bounded:
    a, b = common(a, b)
    if not a.is_float:
        return integral(np.multiply, a, b)
    ref = a.ref * b.ref
    err = np.abs(a.ref) * b.err + np.abs(b.ref) * a.err + a.err * b.err
    return settled(a.dtype, a.num * b.num, ref, combined(ref, err, a, b))


def div(a: Bounded, b: Bounded) -> Bounded:
    a, b = (as_double(x) for x in common(a, b))
    ref = a.ref / b.ref
    err = (a.err + np.where(b.err == 0, 0, np.abs(ref) * b.err)) / (np.abs(b.ref) - b.err)
    err = np.where((np.abs(b.ref) <= b.err) & (b.err > 0), np.inf, err)
    err = np.where(np.isinf(b.ref), 0, err)
    return settled(a.dtype, a.num / b.num, ref, combined(ref, err, a, b))


def neg(x: Bounded) -> Bounded:
    return Bounded(-x.num, -x.ref, x.err, x.exact) if x.is_float else integral(np.negative, x)


def sqr(x: Bounded) -> Bounded:
    return mul(x, x)


def scaled(x: Bounded, factor: float) -> Bounded:
    return mul(x, like(factor, x))


def monotone(
    x: Bounded,
    function: Callable[[Array], Array],
    exactly: Callable[[Array], Array] | None = None,
    ulps: float = ELEMENTARY,
) -> Bounded:
    """A monotone function of floats; `exactly` is the same in long double."""
    x = floating(x)
    real = function if exactly is None else exactly
    low, ref, high = real(x.ref - x.err), real(x.ref), real(x.ref + x.err)
    err = np.maximum(np.abs(low - ref), np.abs(high - ref))
    same = (low == ref) & (high == ref) | (np.isnan(low) & np.isnan(ref) & np.isnan(high)) | (x.err == 0)
    return settled(x.dtype, function(x.num), ref, np.where(_known(x), np.where(same, 0, err), np.inf), ulps=ulps)


def lipschitz(x: Bounded, function: Callable[[Array], Array], slope: float = 1.0, ulps: float = ELEMENTARY) -> Bounded:
    """A function of floats whose derivative is at most `slope`."""
    x = floating(x)
    ref = function(x.ref)
    return settled(x.dtype, function(x.num), ref, combined(ref, slope * x.err, x), ulps=ulps)


def kinked(x: Bounded, at_zero: Bounded) -> Bounded:
    """A function that has no derivative where `at_zero` is 0: for slopes, unknown there."""
    if _now[-1].rounds:
        return x
    near = np.abs(at_zero.ref) <= at_zero.err
    return Bounded(x.num, x.ref, np.where(near & (at_zero.err > 0), LONG(np.inf), x.err), x.exact)


def absolute(x: Bounded) -> Bounded:
    if x.is_float:
        _decide(x.ref > 0)
        return Bounded(np.abs(x.num), np.abs(x.ref), x.err, x.exact)
    return integral(np.abs, x)


def _decide(truth: Array) -> None:
    _now[-1].decisions.append(np.asarray(truth).tobytes())


def extreme(function: Callable[..., Any], a: Bounded, b: Bounded) -> Bounded:
    """np.maximum, np.minimum and the like."""
    a, b = common(a, b)
    if not a.is_float:
        return integral(function, a, b)
    _decide(a.ref > b.ref)
    _decide(a.ref < b.ref)
    err = np.maximum(np.broadcast_to(a.err, np.broadcast_shapes(a.err.shape, b.err.shape)), b.err)
    return Bounded(function(a.num, b.num), function(a.ref, b.ref), err, False)


def compared(function: Callable[..., Any], a: Bounded, b: Bounded) -> Bounded:
    """np.less and the like, unknown where the two are too close."""
    if a.exact and b.exact:
        return discrete(function(a.num, b.num), ~_known(a) | ~_known(b), True)
    a, b = (as_double(x) for x in common(a, b))
    apart = np.abs(a.ref - b.ref) > a.err + b.err
    sure = _known(a) & _known(b) & (apart | (a.err + b.err == 0) | np.isnan(a.ref) | np.isnan(b.ref) | np.isinf(a.ref))
    num = function(a.num, b.num)
    return discrete(num, ~sure | (num != function(a.ref, b.ref)))


def tested(function: Callable[..., Any], x: Bounded) -> Bounded:
    """np.isnan and the like."""
    num = function(x.num)
    return discrete(num, ~_known(x) | (num != function(x.ref)), x.exact)


def rounded(function: Callable[..., Any], x: Bounded) -> Bounded:
    """np.floor and the like."""
    ref = function(x.ref)
    steady = _known(x) & ((function(x.ref - x.err) == ref) & (function(x.ref + x.err) == ref) | ~np.isfinite(x.ref))
    _decide(ref)
    return Bounded(function(x.num), ref, np.where(steady | (x.err == 0), LONG(0), LONG(np.inf)), x.exact)


def where(c: Bounded, a: Bounded, b: Bounded) -> Bounded:
    c, (a, b) = cast(c, "bool"), common(a, b)
    _decide(c.num)
    num, ref = np.where(c.num, a.num, b.num), np.where(c.num, a.ref, b.ref)
    err = np.where(_known(c), np.where(c.num, a.err, b.err), LONG(np.inf))
    return Bounded(num, ref, err, c.exact and a.exact and b.exact)


# --- reductions ------------------------------------------------------------------------------------------------------

Axes = tuple[int, ...]


def _length(shape: Sequence[int], axes: Axes) -> int:
    return math.prod(shape[axis] for axis in axes)


def _finite(x: Array) -> Array:
    return np.asarray(np.where(np.isfinite(x), np.abs(x), 0), LONG)


def wide(dtype: str) -> str:
    """The dtype of sums of a dtype."""
    kind = np.dtype(dtype).kind
    return dtype if kind == "f" else "uint64" if kind == "u" else "int64"


def _discretely(x: Bounded, function: Callable[..., Any], **options: Any) -> Bounded:
    """A reduction of integers or truth values, unknown where one of them is."""
    return discrete(function(x.num, **options), np.asarray(np.isinf(x.err).any(**options)), x.exact)


def sum_(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    """A sum in any order: as many roundings of the sum of magnitudes as there are terms."""
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if not x.is_float:
        return _discretely(x, lambda v, **more: v.sum(dtype=wide(x.dtype), **more), **options)
    magnitude = np.sum(_finite(x.ref) + np.where(np.isfinite(x.ref), x.err, 0), **options)
    ref = np.sum(x.ref, **options)
    err = np.where(np.isfinite(ref), np.sum(x.err, **options), np.where(np.isinf(x.err).any(**options), np.inf, 0))
    count = max(_length(x.num.shape, axes), 1)
    made = settled(x.dtype, np.sum(x.num, **options), ref, err, magnitude, count + 1)
    return _where_it_may_overflow(made, magnitude)


def _where_it_may_overflow(x: Bounded, magnitude: Array) -> Bounded:
    """Unknown where a partial sum may overflow and another order would not."""
    most = LONG(np.finfo(x.dtype).max)
    return Bounded(x.num, x.ref, np.where(magnitude * (1 + LONG(1e-3)) >= most, LONG(np.inf), x.err))


def prod(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if not x.is_float:
        return _discretely(x, lambda v, **more: v.prod(dtype=wide(x.dtype), **more), **options)
    return _product(
        x, lambda function, v: getattr(np, function)(v, **options), ("prod", "any"), _length(x.num.shape, axes)
    )


def _product(x: Bounded, over: Callable[[str, Array], Array], names: tuple[str, str], count: int) -> Bounded:
    """Products of elements, in one or all lengths; unknown where a part may overflow or become subnormal."""
    product, any_of = names
    size = np.abs(x.ref)
    ref = over(product, x.ref)
    spread = over(product, np.where(np.isfinite(size), size + x.err, 1)) - over(
        product, np.where(np.isfinite(size), size, 1)
    )
    unknown = over(any_of, ~_known(x)) > 0
    err = np.where(unknown, np.inf, np.where(np.isfinite(ref), spread + np.abs(ref) * LONG(1e-17), 0))
    made = settled(x.dtype, over(product, x.num), ref, err, ulps=count + 1)
    info = np.finfo(x.dtype)
    most, least = LONG(info.max), LONG(info.smallest_normal)
    large = over(product, np.where(np.isfinite(size), np.maximum(size + x.err, 1), 1))
    small = over(product, np.where(size > 0, np.minimum(np.maximum(size - x.err, 0), 1), 1))
    unsure = (large >= most / 2) | (small <= least)
    return Bounded(made.num, made.ref, np.where(unsure, LONG(np.inf), made.err))


def cumsum(x: Bounded, axis: int) -> Bounded:
    if not x.is_float:
        unknown = np.logical_or.accumulate(~_known(x), axis=axis)
        return discrete(np.cumsum(x.num, axis=axis, dtype=wide(x.dtype)), unknown, x.exact)
    magnitude = np.cumsum(_finite(x.ref) + np.where(np.isfinite(x.ref), x.err, 0), axis=axis)
    ref = np.cumsum(x.ref, axis=axis)
    unknown = np.logical_or.accumulate(~_known(x), axis=axis)
    err = np.where(unknown, np.inf, np.where(np.isfinite(ref), np.cumsum(np.where(_known(x), x.err, 0), axis=axis), 0))
    made = settled(x.dtype, np.cumsum(x.num, axis=axis), ref, err, magnitude, x.num.shape[axis] + 1)
    return _where_it_may_overflow(made, magnitude)


def cumprod(x: Bounded, axis: int) -> Bounded:
    if not x.is_float:
        unknown = np.logical_or.accumulate(~_known(x), axis=axis)
        return discrete(np.cumprod(x.num, axis=axis, dtype=wide(x.dtype)), unknown, x.exact)

    def over(name: str, v: Array) -> Array:
        return np.asarray(np.cumprod(v, axis=axis) if name == "cumprod" else np.logical_or.accumulate(v, axis=axis))

    return _product(x, over, ("cumprod", "any"), x.num.shape[axis])


def max_(x: Bounded, axes: Axes, keepdims: bool = False, function: Callable[..., Any] = np.max) -> Bounded:
    """np.max or np.min."""
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if not x.is_float:
        return _discretely(x, function, **options)
    _decide(x.ref == function(x.ref, axis=axes, keepdims=True))
    return Bounded(function(x.num, **options), function(x.ref, **options), np.max(x.err, **options), False)


def position(x: Bounded, axes: Axes, keepdims: bool = False, sign: int = 1) -> Bounded:
    """np.argmax (or argmin: sign -1) in C order of several axes; unknown where two are too close."""
    kept = [axis for axis in range(x.num.ndim) if axis not in axes]
    shape = [x.num.shape[axis] for axis in kept]
    num, ref, err = (
        part.transpose(*kept, *axes).reshape(*shape, _length(x.num.shape, axes)) for part in (x.num, x.ref, x.err)
    )
    place = (np.argmax if sign > 0 else np.argmin)(num, axis=-1)
    unknown = np.isinf(err).any(axis=-1)
    if x.is_float and not x.exact:
        value = np.where(np.isnan(ref), np.inf, sign * ref)
        best = np.take_along_axis(value - err, place[..., None], -1)
        unknown = unknown | ((value + err >= best).sum(axis=-1) != 1)
    if keepdims:
        outer = tuple(1 if axis in axes else size for axis, size in enumerate(x.num.shape))
        place, unknown = place.reshape(outer), unknown.reshape(outer)
    return discrete(place.astype("int64"), unknown, x.exact)


def truth(x: Bounded, axes: Axes, keepdims: bool = False, function: Callable[..., Any] = np.any) -> Bounded:
    """np.any or np.all."""
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    x = cast(x, "bool")
    return _discretely(x, function, **options)


# --- composed --------------------------------------------------------------------------------------------------------


def mean(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    x = as_double(x)
    count = np.asarray(_length(x.num.shape, axes), x.dtype)
    return div(sum_(x, axes, keepdims), given(count))


def var(x: Bounded, axes: Axes, keepdims: bool = False, ddof: int = 0) -> Bounded:
    """Squared deviations, which may be taken from any of the elements instead of the mean, and put right afterwards."""
    x = as_double(x)
    count = _length(x.num.shape, axes)
    deviations = sub(x, mean(x, axes, True))
    total = sum_(sqr(deviations), axes, keepdims)
    if _now[-1].rounds and count:
        farthest = 2 * np.max(np.abs(deviations.ref), axis=axes, keepdims=keepdims)
        pivot = settled(x.dtype, total.num, total.ref, total.err, count * farthest**2, 2 * count + 8)
        total = Bounded(pivot.num, pivot.ref, np.where(np.isfinite(total.ref), pivot.err, total.err))
    return div(total, given(np.asarray(max(count - ddof, 0), x.dtype)))


def sqrt(x: Bounded) -> Bounded:
    return monotone(x, np.sqrt, ulps=BASIC)


def root(x: Bounded) -> Bounded:
    """The square root of what is a sum of squares in every evaluation; for slopes, unknown near 0."""
    if not _now[-1].rounds:
        found = sqrt(x)
        return Bounded(found.num, found.ref, np.where(x.ref <= x.err, LONG(np.inf), found.err), found.exact)
    return monotone(x, np.sqrt, lambda v: np.sqrt(np.maximum(v, 0)), ulps=BASIC)


def exp(x: Bounded) -> Bounded:
    return monotone(x, np.exp)


def log(x: Bounded) -> Bounded:
    return monotone(x, np.log)


def _shift(x: Bounded, axes: Axes) -> Bounded:
    top = np.max(x.num, axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    return given(top)


def softmax(x: Bounded, axes: Axes) -> Bounded:
    x = floating(x)
    powers = exp(sub(x, _shift(x, axes)))
    return div(powers, sum_(powers, axes, True))


def log_softmax(x: Bounded, axes: Axes) -> Bounded:
    x = floating(x)
    shifted = sub(x, _shift(x, axes))
    return sub(shifted, log(sum_(exp(shifted), axes, True)))


def logsumexp(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    x = floating(x)
    shift = _shift(x, axes)
    result = add(log(sum_(exp(sub(x, shift)), axes, True)), shift)
    return result if keepdims else result.moved(lambda v: np.squeeze(v, axis=axes))


# --- products --------------------------------------------------------------------------------------------------------


def contraction(spec: str, *args: Bounded) -> Bounded:
    """np.einsum: a sum of products in any order."""
    args = common(*args)
    dtype = args[0].dtype
    num = np.einsum(spec, *(x.num for x in args)).astype(dtype)
    unknown = np.zeros(num.shape, bool)
    for k in range(len(args)):
        masks = [
            (~_known(x)).astype("int64") if k == other else np.ones(x.num.shape, "int64")
            for other, x in enumerate(args)
        ]
        unknown = unknown | (np.einsum(spec, *masks) > 0)
    if not args[0].is_float:
        return discrete(num, unknown, all(x.exact for x in args))
    operands, result = spec.split("->")
    sizes = {
        letter: size
        for word, x in zip(operands.split(","), args, strict=True)
        for letter, size in zip(word, x.num.shape, strict=True)
    }
    count = math.prod(size for letter, size in sizes.items() if letter not in result)
    ref = np.einsum(spec, *(x.ref for x in args))
    plain = np.einsum(spec, *(_finite(x.ref) for x in args))
    magnitude = np.einsum(spec, *(_finite(x.ref) + np.where(_known(x), x.err, 0) for x in args))
    alone = [_alone(operands.split(","), result, k) for k in range(len(args))]
    # infinities times a sum of numbers are not the sum of infinities of two signs
    odd = np.inf if any(alone) else 0.0
    err = np.where(
        unknown, np.inf, np.where(np.isfinite(ref), magnitude - plain + LONG(1e-17) * _error_scale(args, plain), odd)
    )
    made = settled(dtype, num, ref, err, magnitude, count + len(args))
    sums = [np.max(np.sum(_finite(x.ref), axis=axes), initial=0) for x, axes in zip(args, alone, strict=True) if axes]
    return _where_it_may_overflow(made, np.maximum(magnitude, max(sums, default=LONG(0))))


def _alone(words: Sequence[str], result: str, number: int) -> tuple[int, ...]:
    """The axes of an operand that no other one and no result has: they may be summed over first."""
    others = "".join(word for k, word in enumerate(words) if k != number) + result
    return tuple(axis for axis, letter in enumerate(words[number]) if letter not in others)


def _error_scale(args: Sequence[Bounded], magnitude: Array) -> Array:
    """What the difference of two long doubles may have lost: nothing where no argument has an error."""
    return magnitude if any(np.any(x.err > 0) for x in args) else np.zeros_like(magnitude)


# --- updates of parts ------------------------------------------------------------------------------------------------


def set_at(x: Bounded, key: Any, y: Bounded) -> Bounded:
    y = cast(y, x.dtype)
    parts = []
    for whole, part in ((x.num, y.num), (x.ref, y.ref), (x.err, y.err)):
        changed = np.array(whole)
        changed[key] = part
        parts.append(changed)
    return Bounded(parts[0], parts[1], parts[2], x.exact and y.exact)


def inc_at(x: Bounded, key: Any, y: Bounded) -> Bounded:
    y = cast(y, x.dtype)

    def added(whole: Array, part: Array) -> Array:
        changed = np.array(whole)
        np.add.at(changed, key, part)
        return changed

    num = added(x.num, y.num)
    unknown = added((~_known(x)).astype("int64"), (~_known(y)).astype("int64")) > 0
    if not x.is_float:
        return discrete(num, unknown, x.exact and y.exact)
    times = np.max(added(np.zeros(x.num.shape, "int64"), np.ones(y.num.shape, "int64")), initial=0)
    ref, magnitude = added(x.ref, y.ref), added(_finite(x.ref), _finite(y.ref))
    err = np.where(unknown, np.inf, np.where(np.isfinite(ref), added(x.err, y.err), 0))
    made = settled(x.dtype, num, ref, err, magnitude, float(times) + 1)
    return _where_it_may_overflow(made, magnitude)


# --- functions that NumPy lacks ---------------------------------------------------------------------------------------


def sigmoid(x: Array) -> Array:
    decay = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, decay) / (1 + decay), x.dtype)


def softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(np.zeros_like(x), x))


def erf(x: Array) -> Array:
    """Kummer's series, whose terms are all positive (DLMF 7.6.2), in long double."""
    size = np.minimum(np.abs(x.astype(LONG)), 6.7)
    term, total = size, size
    for k in range(1, 160):
        term = term * 2 * size * size / (2 * k + 1)
        total = total + term
    series = 2 / np.sqrt(4 * np.arctan(LONG(1))) * np.exp(-size * size) * total
    return np.asarray(np.where(np.isnan(x), np.nan, np.copysign(np.minimum(series, 1), x))).astype(x.dtype)
