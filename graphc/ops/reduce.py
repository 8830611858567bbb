"""Reductions: sum, prod, max, min, supremum, max_or_lowest, min_or_highest, any, all, argmax, argmin over some axes,
which the result has no more.

In: a node and the axes, ascending. Out: op records, and a function for each that makes its node. Arguments of sum and
prod have their accumulator's dtype already (`dtypes.accumulator`), those of any and all are bool.

    reduce_max(A, (0,))      max(A; axes=(0,)), float64[A.1]      guarded: 1 <= A.0, for there is no largest of none
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from graphc.arrays.dtypes import FLOATS, accumulated_in, accumulator, highest, is_float, lowest
from graphc.arrays.numerics import largest, smallest
from graphc.errors import GraphTypeError, ShapeError
from graphc.ir import sizes
from graphc.ir.lowering import Fold
from graphc.ir.node import (
    OPS,
    Array,
    Attributes,
    Guard,
    Index,
    Lowering,
    Node,
    Size,
    Type,
    define_op,
    describe,
    lazy_format,
    literal,
    make,
)
from graphc.ir.types import Argument, Row, Samples, samples
from graphc.ops.elementwise import cast, elementwise, shifted
from graphc.ops.recur import exponents, logarithms, running_prod, steady, times_power
from graphc.ops.shape import broadcast_to, dimshuffle, expand, filled, label, label_op, reshape

Reduction: TypeAlias = Callable[[Node, Sequence[int]], Node]

# --- common to all --------------------------------------------------------------------------------------------------


def reduced_axes(node: Node) -> tuple[int, ...]:
    axes: tuple[int, ...] = node.attrs["axes"]
    return axes


def reduced_sizes(node: Node) -> tuple[Size, ...]:
    """The sizes of the axes that are reduced."""
    return tuple(node.args[0].type.shape[axis] for axis in reduced_axes(node))


def _check(name: str, args: Sequence[Node], attrs: Attributes, is_empty_wrong: bool = False) -> tuple[Size, ...]:
    """The result's sizes; an error where the axes are not axes of the argument, or of no elements."""
    (x,) = args
    axes: tuple[int, ...] = attrs["axes"]
    if list(axes) != sorted(set(axes)) or any(not 0 <= axis < x.ndim for axis in axes):
        raise GraphTypeError(f"{name} of {describe(x)} of type {x.type}: {axes} are not axes of it in ascending order")
    for axis in axes if is_empty_wrong else ():
        if sizes.equal(x.type.shape[axis], 0):
            raise ShapeError(f"{name} of {describe(x)}: zero-size reduction along axis {axis}, which has no identity")
    return tuple(size for axis, size in enumerate(x.type.shape) if axis not in axes)


def _nonempty_guards(node: Node) -> Sequence[Guard]:
    text, what = "{} of {}: zero-size reduction along axis {}, which has no identity", label_op(node)
    pairs = [(axis, node.args[0].type.shape[axis]) for axis in reduced_axes(node)]
    message = partial(lazy_format, text, what, label(node.args[0]))
    return [Guard(1, "<=", size, message(axis)) for axis, size in pairs if not isinstance(size, int)]


def _operands(node: Node, index: Index, reduced: Index) -> Sequence[tuple[int, Index]]:
    outer, inner, axes = iter(index), iter(reduced), reduced_axes(node)
    return [(0, tuple(next(inner) if k in axes else next(outer) for k in range(node.args[0].ndim)))]


def _fold(node: Node, start: str, step: str, dtype: str) -> Lowering:
    term = "_0" if dtype == node.args[0].type.dtype else f"{dtype}(_0)"
    return Fold(reduced_sizes, _operands, term, (start,), (step,), (dtype,), axes=reduced_axes(node))


def restore(node: Node, value: Node) -> Node:
    """`value`, of the sizes of a reduction's result, as an array of the sizes of its argument."""
    return broadcast_to(expand(value, reduced_axes(node)), node.args[0].type.shape)


def reduction(name: str, x: Node, axes: Sequence[int]) -> Node:
    """The reduction `name` of `x` over `axes`, in ascending order."""
    return make(OPS[name], (x,), {"axes": tuple(axes)})


reduce_sum: Reduction = partial(reduction, "sum")
reduce_prod: Reduction = partial(reduction, "prod")
reduce_max: Reduction = partial(reduction, "max")
reduce_min: Reduction = partial(reduction, "min")
reduce_any: Reduction = partial(reduction, "any")
reduce_all: Reduction = partial(reduction, "all")
argmax: Reduction = partial(reduction, "argmax")
argmin: Reduction = partial(reduction, "argmin")


def reduce_each_max(x: Node, axes: Sequence[int]) -> Node:
    """The maximum of `x` over `axes`, with the whole derivative by each element that attains it."""
    return make(OPS["max"], (x,), {"axes": tuple(axes), "each": True})


def _samples(name: str, kind: Any = "float", differentiable: bool = True, empty: bool = True) -> Samples:
    """Samples over some axes, and a few of integers for numbers. empty: no elements have a value."""
    shapes: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
        ("a vector", (5,), (0,)),
        ("columns", (3, 4), (0,)),
        ("rows", (3, 4), (1,)),
        ("the whole", (3, 4), (0, 1)),
        ("the middle", (2, 3, 4), (1,)),
        ("the outer two", (2, 3, 4), (0, 2)),
        ("one element", (3, 1), (1,)),
        ("of no rows", (0, 4), (1,)),
        *((("no elements", (0, 4), (0,)), ("no columns", (3, 0), (1,))) if empty else ()),
    ]

    def rows(kind: Any, count: int | None = None) -> list[Row]:
        cases = ((f"{row} over {axes}", axes, Argument(shape, kind)) for row, shape, axes in shapes[:count])
        return [(text, lambda x, axes=axes: reduction(name, x, axes), argument) for text, axes, argument in cases]

    ints = rows("int", 3) if kind == "float" and name != "supremum" else []
    return samples(*rows(kind), others=ints) if differentiable else samples(others=[*rows(kind), *ints])


# --- sum and prod ---------------------------------------------------------------------------------------------------


def _accumulation_infer(name: str) -> Callable[[Sequence[Node], Attributes], Type]:
    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        shape = _check(name, args, attrs)
        dtype = args[0].type.dtype
        if accumulator(dtype) != dtype:
            raise GraphTypeError(f"{name} of {describe(args[0])}: {dtype} is to be cast to {accumulator(dtype)} first")
        return Type(dtype, shape)

    return infer


def _accumulation_eval(ufunc: np.ufunc) -> Callable[..., Array]:
    def evaluate(node: Node, x: Array) -> Array:
        with np.errstate(all="ignore"):
            wide = ufunc.reduce(x, axis=reduced_axes(node), dtype=accumulated_in(node.type.dtype))
            return np.asarray(wide).astype(x.dtype)

    return evaluate


def _prod_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """cotangent * the product of the other elements, without a division: right where elements are 0, to any order.

    The others are those before and those after, along the reduced axes made one. They are scaled by powers of two, so
    that no part of the product overflows or vanishes where the product of the others does not.
    """
    x, axes = node.args[0], reduced_axes(node)
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    count = sizes.product(reduced_sizes(node))
    moved = dimshuffle(x, (*kept, *axes))
    flat = reshape(moved, (*(x.type.shape[axis] for axis in kept), count))
    axis = len(kept)
    factors, own, _ = steady(flat, axis, False)
    before, after = (running_prod(factors, axis, reverse, "before") for reverse in (False, True))
    whole = exponents(reduce_sum(logarithms(flat), (axis,)))
    power = broadcast_to(expand(whole, (axis,)), flat.type.shape) - own
    others = reshape(times_power(before * after, power), moved.type.shape)
    back = [(*kept, *axes).index(axis) for axis in range(x.ndim)]
    return (restore(node, cotangent) * dimshuffle(others, back),)


define_op(
    "sum",
    infer=_accumulation_infer("sum"),
    eval=_accumulation_eval(np.add),
    lower=lambda node: _fold(node, "0", "accumulate(_0, _1)", accumulated_in(node.type.dtype)),
    vjp=lambda node, cotangent: (restore(node, cotangent),),
    samples=_samples("sum"),
    batch=shifted("axes"),
    doc="The sum over axes; 0 where they are empty. docs/numerics.md bounds its error.",
)
define_op(
    "prod",
    infer=_accumulation_infer("prod"),
    eval=_accumulation_eval(np.multiply),
    lower=lambda node: _fold(node, "1", "accumulate_product(_0, _1)", accumulated_in(node.type.dtype)),
    vjp=_prod_vjp,
    samples=_samples("prod"),
    batch=shifted("axes"),
    doc="The product over axes; 1 where they are empty. float32 is accumulated in float64.",
)


# --- max and min ----------------------------------------------------------------------------------------------------


def _extreme_infer(name: str, result: str | None = None) -> Callable[[Sequence[Node], Attributes], Type]:
    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        return Type(result or args[0].type.dtype, _check(name, args, attrs, is_empty_wrong=True))

    return infer


def _extreme_eval(function: Callable[..., Array], neutral: Callable[[str], str]) -> Callable[..., Array]:
    def evaluate(node: Node, x: Array) -> Array:
        text = neutral(node.type.dtype)
        with np.errstate(all="ignore"):
            return function(x, reduced_axes(node), initial=text == "True" if x.dtype == bool else x.dtype.type(text))

    return evaluate


def _extreme_vjp(node: Node, cotangent: Node) -> Sequence[Node | None]:
    """The cotangent, shared equally among the elements that attain the extreme, or given whole to each."""
    x, axes = node.args[0], reduced_axes(node)
    attained = elementwise("equal", x, restore(node, node))
    if node.attrs.get("each"):
        return (elementwise("where", attained, restore(node, cotangent), literal(0, x.type.dtype)),)
    count = reduce_sum(cast(attained, x.type.dtype), axes)
    share = restore(node, cotangent / count)
    return (elementwise("where", attained, share, filled(literal(0, x.type.dtype), x.type.shape)),)


def _define_extreme(
    name: str, reduce: Any, neutral: Callable[[str], str], accumulate: str, doc: str, empty: bool = False
) -> None:
    guarded: dict[str, Any] = {} if empty else {"guards": _nonempty_guards}
    define_op(
        name,
        infer=(lambda args, attrs: Type(args[0].type.dtype, _check(name, args, attrs)))
        if empty
        else _extreme_infer(name),
        eval=_extreme_eval(reduce, neutral),
        lower=lambda node: _fold(node, neutral(node.type.dtype), accumulate, node.type.dtype),
        vjp=_extreme_vjp,
        samples=_samples(name, empty=empty),
        batch=shifted("axes"),
        doc=doc,
        **guarded,
    )


_define_extreme(
    "max",
    largest,
    lowest,
    "accumulate_maximum(_0, _1)",
    "The maximum over axes, 0.0 of zeros, NaN where one is NaN. Equal maxima share the derivative.",
)
_define_extreme(
    "min",
    smallest,
    highest,
    "accumulate_minimum(_0, _1)",
    "The minimum over axes, -0.0 of zeros, NaN where one is NaN. Equal minima share the derivative.",
)


_define_extreme(
    "max_or_lowest",
    largest,
    lowest,
    "accumulate_maximum(_0, _1)",
    "As max, and the dtype's least number, -inf or False, where there are no elements.",
    empty=True,
)
_define_extreme(
    "min_or_highest",
    smallest,
    highest,
    "accumulate_minimum(_0, _1)",
    "As min, and the dtype's greatest number, inf or True, where there are no elements.",
    empty=True,
)


def _supremum_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    shape = _check("supremum", args, attrs)
    if not is_float(args[0].type.dtype):
        raise GraphTypeError(f"supremum of {describe(args[0])}: {args[0].type.dtype} has no lower bound of its own")
    return Type(args[0].type.dtype, shape)


define_op(
    "supremum",
    infer=_supremum_infer,
    eval=lambda node, x: largest(x, reduced_axes(node), initial=-np.inf),
    lower=lambda node: _fold(node, lowest(node.type.dtype), "accumulate_highest(_0, _1)", node.type.dtype),
    vjp=_extreme_vjp,
    samples=_samples("supremum"),
    batch=shifted("axes"),
    doc="The maximum of floats over axes, either zero of zeros; -inf where they are empty.",
)


# --- any and all ----------------------------------------------------------------------------------------------------


def _logical_infer(name: str) -> Callable[[Sequence[Node], Attributes], Type]:
    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        shape = _check(name, args, attrs)
        if args[0].type.dtype != "bool":
            raise GraphTypeError(f"{name} of {describe(args[0])}: {args[0].type.dtype} is to be cast to bool first")
        return Type("bool", shape)

    return infer


def _logical(name: str, reduced: Callable[..., Any], start: str, step: str, doc: str) -> None:
    define_op(
        name,
        infer=_logical_infer(name),
        eval=lambda node, x: np.asarray(reduced(x, axis=reduced_axes(node))),
        lower=lambda node: _fold(node, start, step, "bool"),
        vjp=lambda node, cotangent: (None,),
        samples=_samples(name, "bool", differentiable=False),
        batch=shifted("axes"),
        doc=doc,
    )


_logical("any", np.any, "False", "logical_or(_0, _1)", "True if any element is true; false where there is none.")
_logical("all", np.all, "True", "logical_and(_0, _1)", "True if all elements are true, or if there is none.")


# --- argmax and argmin ----------------------------------------------------------------------------------------------


def _position_eval(function: Callable[..., Any]) -> Callable[..., Array]:
    def evaluate(node: Node, x: Array) -> Array:
        axes = reduced_axes(node)
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        moved = x.transpose(*kept, *axes)
        count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
        flat = moved.reshape((*(x.shape[axis] for axis in kept), count))
        return np.asarray(function(flat, axis=-1), dtype=np.int64)

    return evaluate


def _position_lower(node: Node, start: str, better: str) -> Lowering:
    """Two accumulators: the position of the best element so far, and that element."""
    dtype = node.args[0].type.dtype
    beats = f"(_2 {better} _1) | ((_2 != _2) & (_1 == _1))" if dtype in FLOATS else f"_2 {better} _1"
    steps = (f"select({beats}, _3, _0)", f"select({beats}, _2, _1)")
    search = f"accumulate_{'highest' if better == '>' else 'lowest'}(_0, _1)"
    starts, dtypes = ("0", start), ("int64", dtype)
    return Fold(reduced_sizes, _operands, "_0", starts, steps, dtypes, axes=reduced_axes(node), search=search)


for _name, _function, _start, _better in (("argmax", np.argmax, lowest, ">"), ("argmin", np.argmin, highest, "<")):
    define_op(
        _name,
        infer=_extreme_infer(_name, "int64"),
        eval=_position_eval(_function),
        lower=lambda node, start=_start, better=_better: _position_lower(node, start(node.args[0].dtype), better),  # type: ignore[misc]
        vjp=lambda node, cotangent: (None,),
        guards=_nonempty_guards,
        samples=_samples(_name, differentiable=False, empty=False),
        batch=shifted("axes"),
        doc="The position of the first extreme element, or of the first NaN, in C order of the reduced axes.",
    )
