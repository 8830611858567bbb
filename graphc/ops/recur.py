"""Recurrences along one axis: running sums, products and extremes, and linear recurrences, all of linear work.

In: arguments of equal sizes, an axis, a direction and a form. Out: op records, and a function for each that makes its
node, of the arguments' sizes. Arguments of running sums and products have their accumulator's dtype already
(`dtypes.accumulator`). With `reverse` the elements are taken from the last to the first.

The linear recurrence is h[i] = a[i] * h[i - 1] + b[i] with h[-1] = 0. Its forms, besides "own", which is h itself:

    before   the element before: h[i - 1]
    late     h[i] = a[i - 1] * h[i - 1] + b[i], as the derivative of "own" wants it, with h[0] = b[0]

These three are closed under differentiation: the derivative of one is another in the other direction.

The stepped extreme, h[i] = minimum(h[i - 1] + step, x[i] - step) of integers, is what a row of a dynamic program is, as
of an edit distance. It is given x with the step added, which vectors do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from graphc.arrays import numerics
from graphc.arrays.dtypes import INTEGERS, accumulated_in, accumulator, highest, is_float, lowest
from graphc.errors import GraphTypeError
from graphc.ir.lowering import Recur
from graphc.ir.node import OPS, Array, Attributes, Guard, Lowering, Node, Type, define_op, describe, literal, make
from graphc.ir.types import Argument, Row, Samples, samples
from graphc.ops.custom import DIRECTION
from graphc.ops.elementwise import cast, elementwise, shifted
from graphc.ops.shape import filled, label, label_op, shape_guards, zeros

FORMS = ("own", "before", "late")
EXTREMES = ("minimum", "maximum")
NONE = -(2**40)
"""The exponent of 0, below that of any product."""


def running_sum(x: Node, axis: int, reverse: bool = False) -> Node:
    """The sums of the elements of `x` up to each one along `axis`."""
    return make(OPS["running_sum"], (x,), {"axis": axis, "reverse": reverse})


def running_prod(x: Node, axis: int, reverse: bool = False, form: str = "own") -> Node:
    """The products of the elements of `x` up to each one along `axis`; before each one in the form "before"."""
    return make(OPS["running_prod"], (x,), {"axis": axis, "reverse": reverse, "form": form})


def running_extreme(x: Node, extreme: str, axis: int, reverse: bool = False, form: str = "own") -> Node:
    """The largest or smallest of the elements of `x` up to each one along `axis`, by `extreme` of `EXTREMES`; before
    each one in the form "before", where the first is what no element exceeds."""
    return make(OPS["running_extreme"], (x,), {"extreme": extreme, "axis": axis, "reverse": reverse, "form": form})


def linear_recurrence(a: Node, b: Node, axis: int, reverse: bool = False, form: str = "own") -> Node:
    """h[i] = a[i] * h[i - 1] + b[i] along `axis`, in a form of `FORMS`."""
    return make(OPS["linear_recurrence"], (a, b), {"axis": axis, "reverse": reverse, "form": form})


def stepped_extreme(x: Node, begin: Node, extreme: str, step: int, reverse: bool = False) -> Node:
    """h[i] = extreme(h[i - 1] + step, x[i] - step) of integers, from h = begin, a scalar; `extreme` is one of
    `EXTREMES`."""
    attrs = {"extreme": extreme, "step": step, "axis": 0, "reverse": reverse}
    return make(OPS["stepped_extreme"], (x, begin), attrs)


def _check(name: str, args: Sequence[Node], attrs: Attributes) -> None:
    x, axis = args[0], attrs["axis"]
    if not 0 <= axis < x.ndim:
        raise GraphTypeError(f"{name} of {describe(x)} of type {x.type}: {axis} is not an axis of it")
    if name == "running_extreme":
        if x.type.dtype == "bool":
            raise GraphTypeError(f"running_extreme of {describe(x)}: bool is to be cast to int8 first")
    elif accumulator(x.type.dtype) != x.type.dtype:
        dtype = x.type.dtype
        raise GraphTypeError(f"{name} of {describe(x)}: {dtype} is to be cast to {accumulator(dtype)} first")


def _infer(name: str) -> Callable[[Sequence[Node], Attributes], Type]:
    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        _check(name, args, attrs)
        return args[0].type

    return infer


def _recurrence_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    a, b = args
    _check("linear_recurrence", args, attrs)
    if a.type.dtype != b.type.dtype or a.ndim != b.ndim:
        raise GraphTypeError(f"linear_recurrence of {describe(a)} and {describe(b)}: {a.type} and {b.type} differ")
    return a.type


def _recurrence_guards(node: Node) -> Sequence[Guard]:
    (a, b), text = node.args, "{}: {} has {{left}} elements along axis {axis}, {} has {{right}}"
    return shape_guards(a.type.shape, b.type.shape, text, label_op(node), label(a), label(b))


def _stepped_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    x, begin = args
    if x.ndim != 1 or begin.ndim or x.type.dtype not in INTEGERS or begin.type.dtype != x.type.dtype:
        wanted = "a vector of integers and a scalar of its dtype"
        raise GraphTypeError(f"stepped_extreme of {describe(x)} and {describe(begin)} takes {wanted}")
    return x.type


# --- NumPy's meaning ------------------------------------------------------------------------------------------------


def _ahead(node: Node, x: Array) -> Array:
    """`x` with the axis first, in the order in which its elements are taken."""
    turned = np.moveaxis(x, node.attrs["axis"], 0)
    return turned[::-1] if node.attrs["reverse"] else turned


def _accumulate(ufunc: np.ufunc) -> Callable[..., Array]:
    def evaluate(node: Node, x: Array) -> Array:
        with np.errstate(all="ignore"):
            result = np.empty(x.shape, x.dtype)
            iterations = ufunc.accumulate(_ahead(node, x), axis=0, dtype=accumulated_in(node.type.dtype))
            if _is_before(node):
                iterations = np.concatenate([np.full_like(iterations[:1], ufunc.identity), iterations[:-1]])
            _ahead(node, result)[...] = iterations
            return result

    return evaluate


def _neutral(node: Node) -> str:
    """The literal that gives way to every element."""
    return (lowest if node.attrs["extreme"] == "maximum" else highest)(node.type.dtype)


def _extreme_eval(node: Node, x: Array) -> Array:
    result, extreme = np.empty_like(x), getattr(numerics, node.attrs["extreme"])
    iterations = _ahead(node, result)
    carry = np.full(iterations.shape[1:], x.dtype.type(_neutral(node)))
    for iteration, element in enumerate(_ahead(node, x)):
        following = extreme(carry, element)
        iterations[iteration] = carry if _is_before(node) else following
        carry = following
    return result


def _recurrence_eval(node: Node, a: Array, b: Array) -> Array:
    result, form = np.empty(b.shape, b.dtype), node.attrs["form"]
    iterations = _ahead(node, result)
    carry = np.full(iterations.shape[1:], -0.0 if form == "late" else 0.0, accumulated_in(node.type.dtype))
    with np.errstate(all="ignore"):
        for iteration, (factor, term) in enumerate(zip(_ahead(node, a), _ahead(node, b), strict=True)):
            following = carry + term if form == "late" else factor * carry + term
            iterations[iteration] = carry if form == "before" else following
            carry = factor * following if form == "late" else following
    return result


def _stepped_eval(node: Node, x: Array, begin: Array) -> Array:
    result, extreme = np.empty_like(x), getattr(np, node.attrs["extreme"])
    iterations, carry = _ahead(node, result), begin
    step = np.asarray(node.attrs["step"]).astype(x.dtype)
    with np.errstate(all="ignore"):
        for iteration, term in enumerate(_ahead(node, x) - step):
            iterations[iteration] = carry = extreme(carry + step, term)
    return result


# --- lowering -------------------------------------------------------------------------------------------------------


def _is_before(node: Node) -> bool:
    return bool(node.attrs.get("form") == "before")


def _recur(node: Node, start: str, value: str, carry: str) -> Recur:
    return Recur(node.attrs["axis"], start, value, carry, accumulated_in(node.type.dtype), node.attrs["reverse"])


def _extreme_lower(node: Node) -> Lowering:
    extreme, before = node.attrs["extreme"], _is_before(node)
    value, carry = ("_0", f"{extreme}(_0, _2)") if before else (f"{extreme}(_0, _1)", "_1")
    return Recur(node.attrs["axis"], _neutral(node), value, carry, node.type.dtype, node.attrs["reverse"])


def _recurrence_lower(node: Node) -> Lowering:
    late = "-0.0" if is_float(node.type.dtype) else "0", "_0 + _2", "_2 * _1"
    after, before = ("0", "multiply_add(_1, _0, _2)", "_1"), ("0", "_0", "multiply_add(_2, _0, _3)")
    return _recur(node, *{"own": after, "before": before, "late": late}[node.attrs["form"]])


def _stepped_lower(node: Node) -> Lowering:
    """The carry is what the next element is compared with: so an iteration waits for the one before as long as it takes
    to compare and to choose; the step is added to both meanwhile."""
    number, compare = node.attrs["step"], "<" if node.attrs["extreme"] == "minimum" else ">"
    size = f"{node.type.dtype}({abs(number)})"
    step, back = (f"+ {size}", f"- {size}") if number >= 0 else (f"- {size}", f"+ {size}")
    value = f"select(_1 {back} {compare} _0, _1, _0 {step}) {back}"
    return Recur(0, f"_0 {step}", value, f"_1 {step}", node.type.dtype, node.attrs["reverse"], materialises=True)


# --- derivatives ----------------------------------------------------------------------------------------------------


def _prod_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """Return the cotangent of x for y[k], the product of x[j] for j up to k, or before k: the product of what comes
    before an element, times a recurrence over what comes after it,

        v[i] = g[i] + x[i + 1] * v[i + 1]   or, before k,   the v[i + 1] of v[i] = g[i] + x[i] * v[i + 1]

    No division: it is right where elements are 0. Factors are scaled so that products stay near 1, and v[i] by the
    power of two of the largest g[k] * y[k] from there on: no part overflows or vanishes where the result does not.
    """
    (x,), axis, reverse, form = node.args, node.attrs["axis"], node.attrs["reverse"], node.attrs["form"]
    factors, own, upto = steady(x, axis, reverse)
    scale = upto - own if form == "before" else upto
    if DIRECTION.is_transposed:  # the cotangent becomes zero, and only what multiplies it is left
        largest = scale
    else:
        is_zero = elementwise("equal", cotangent, 0)
        largest = elementwise("where", is_zero, NONE, scale + exponents(logarithms(cotangent)))
    later = elementwise("maximum", running_extreme(largest, "maximum", axis, not reverse, "before"), NONE)
    most = elementwise("maximum", largest, later)
    terms = times_power(cotangent, scale - most)
    if form == "before":
        step, kept = later - most, later
    else:
        none = zeros(largest.type.dtype, largest.type.shape)
        last = linear_recurrence(none, largest, axis, reverse, "before")
        step, kept = most - elementwise("maximum", last, most), most
    after = linear_recurrence(
        times_power(factors, step), terms, axis, not reverse, "before" if form == "before" else "late"
    )
    before = running_prod(factors, axis, reverse, "before")
    return (times_power(before * after, kept - own),)


def _extreme_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """Each element gives what comes after it the share that the extreme of two gives the first of them: equal ones
    share evenly."""
    (x,), axis, reverse, form = node.args, node.attrs["axis"], node.attrs["reverse"], node.attrs["form"]
    before = running_extreme(x, node.attrs["extreme"], axis, reverse, "before")
    both = elementwise(node.attrs["extreme"], before, x)
    shares = both.op.vjp
    assert shares is not None
    kept, taken = shares(both, filled(literal(1, x.type.dtype), x.type.shape))
    assert kept is not None and taken is not None
    later = linear_recurrence(kept, cotangent, axis, not reverse, "before" if form == "before" else "late")
    return (taken * later,)


def _recurrence_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    (a, b), axis, reverse, form = node.args, node.attrs["axis"], node.attrs["reverse"], node.attrs["form"]

    def back(form: str) -> Node:
        return linear_recurrence(a, cotangent, axis, not reverse, form)

    of_b = back({"own": "late", "before": "before", "late": "own"}[form])
    if form == "own":
        return (of_b * linear_recurrence(a, b, axis, reverse, "before"), of_b)
    return (back("before") * node, of_b)


# --- the records ----------------------------------------------------------------------------------------------------


def _samples(
    build: Callable[..., Node], count: int, *forms: Sequence[Any], others: Sequence[Sequence[Any]] = ()
) -> Samples:
    """Samples of build(*arrays, axis, reverse, *form) in these forms. others: those that are not differentiated."""

    def rows(forms: Sequence[Sequence[Any]]) -> Iterator[Row]:
        shapes: list[tuple[str, tuple[int, ...], int]] = [
            ("a vector", (5,), 0),
            ("down columns", (3, 4), 0),
            ("along rows", (3, 4), 1),
            ("the middle", (2, 3, 4), 1),
            ("one element", (3, 1), 1),
            ("of no rows", (0, 4), 1),
            ("no elements", (3, 0), 1),
            ("no columns", (4, 0), 0),
        ]
        for form, (name, shape, axis), reverse in product(forms, shapes, (False, True)):
            settings = axis, reverse, *form
            yield f"{name}{', reversed' if reverse else ''}", partial(_applied, build, settings), *[shape] * count

    return samples(*rows(forms), others=list(rows(others)))


def _applied(build: Callable[..., Node], settings: Sequence[Any], *arrays: Node) -> Node:
    return build(*arrays, *settings)


define_op(
    "running_sum",
    infer=_infer("running_sum"),
    eval=_accumulate(np.add),
    lower=lambda node: _recur(node, "-0.0" if is_float(node.type.dtype) else "0", "_0 + _1", "_1"),
    vjp=lambda node, cotangent: (running_sum(cotangent, node.attrs["axis"], not node.attrs["reverse"]),),
    samples=_samples(running_sum, 1, ()),
    batch=shifted("axis"),
    doc="The sums of the elements up to each one along an axis. float32 is accumulated in float64.",
)
define_op(
    "running_prod",
    infer=_infer("running_prod"),
    eval=_accumulate(np.multiply),
    lower=lambda node: _recur(node, "1", *(("_0", "_0 * _2") if _is_before(node) else ("_0 * _1", "_1"))),
    vjp=_prod_vjp,
    samples=_samples(running_prod, 1, ("own",), ("before",)),
    batch=shifted("axis"),
    doc="The products of the elements up to each one along an axis. float32 is accumulated in float64.",
)
define_op(
    "running_extreme",
    infer=_infer("running_extreme"),
    eval=_extreme_eval,
    lower=_extreme_lower,
    vjp=_extreme_vjp,
    samples=_samples(
        lambda x, axis, reverse, extreme, form: running_extreme(x, extreme, axis, reverse, form),
        1,
        *((extreme, "own") for extreme in EXTREMES),
        others=[(extreme, "before") for extreme in EXTREMES],  # the first element is infinite
    ),
    batch=shifted("axis"),
    doc="The largest or smallest of the elements up to each one along an axis.",
)
define_op(
    "stepped_extreme",
    infer=_stepped_infer,
    eval=_stepped_eval,
    lower=_stepped_lower,
    cost=2.0,
    samples=samples(
        *(
            (
                f"{extreme} of {count}{', reversed' if reverse else ''}",
                partial(stepped_extreme, extreme=extreme, step=step, reverse=reverse),
                Argument((count,), "int"),
                Argument((), "int"),
            )
            for extreme, step in zip(EXTREMES, (1, -3), strict=True)
            for count, reverse in ((5, False), (9, True), (0, False))
        )
    ),
    doc="h[i] = minimum(h[i - 1] + step, x[i] - step) of a vector of integers, or the maximum, from a scalar.",
)
define_op(
    "linear_recurrence",
    infer=_recurrence_infer,
    eval=_recurrence_eval,
    lower=_recurrence_lower,
    vjp=_recurrence_vjp,
    guards=_recurrence_guards,
    cost=2.0,
    samples=_samples(linear_recurrence, 2, *((form,) for form in FORMS)),
    batch=shifted("axis"),
    doc="h[i] = a[i] * h[i - 1] + b[i] along an axis, from h = 0. float32 is carried in float64. Compiled "
    "code rounds an element once where the processor can multiply and add at once.",
)


# --- scaled -----------------------------------------------------------------------------------------------------------
# Factors scaled by powers of two, so that no product of the first few of them overflows or vanishes.
#
# In: nodes of floats. Out: nodes of their sizes. Exponents are int64 nodes, through which no derivative goes: a scale
# is a constant of its place, and scaling by it is exact but for subnormal results.


FRACTION = 20
"""Bits after the point of a logarithm to base 2: the scale of a product of 10**8 factors is right to 2**50."""
MOST = {"float32": 300, "float64": 2200}
"""Powers of two beyond which every product with a number is 0 or infinite."""


def times_power(x: Node, power: Node) -> Node:
    """x * 2**power for integers `power`. In three steps: 2**power may be no number where the result is one. Beyond
    `MOST` every result is 0 or infinite, and a third of it is the exponent of a number, as it must be: 0 times an
    infinity is none."""
    most = MOST[x.type.dtype]
    bounded = elementwise("clip", cast(power, "int64"), -most, most)
    third = elementwise("floor_div", bounded, 3)
    scale = elementwise("exp2", cast(third, x.type.dtype))
    last = elementwise("exp2", cast(bounded - third * 2, x.type.dtype))
    return x * scale * scale * last


def logarithms(x: Node) -> Node:
    """The logarithms of magnitudes to base 2, in units of 2**-FRACTION; 0 of what is 0 or no number."""
    known = elementwise("logical_and", elementwise("isfinite", x), elementwise("not_equal", x, 0))
    size = elementwise("where", known, elementwise("abs", x), 1)
    return cast(elementwise("rint", elementwise("log2", size) * 2.0**FRACTION), "int64")


def exponents(logs: Node) -> Node:
    """Logarithms in units of 2**-FRACTION, rounded down to whole ones."""
    return elementwise("right_shift", logs, FRACTION)


def steady(x: Node, axis: int, reverse: bool) -> tuple[Node, Node, Node]:
    """Factors whose products up to each place along an axis are between 1/2 and 2, the exponents of the powers of two
    that each is divided by, and those of the product up to each place."""
    logs = logarithms(x)
    upto = make(OPS["running_sum"], (logs,), {"axis": axis, "reverse": reverse})
    whole = exponents(upto)
    shifts = whole - exponents(upto - logs)
    return times_power(x, -shifts), shifts, whole
