"""What programs are made of: for every operation a graph of graphc's beside the same in NumPy with its error.

In: values that there are, of which a `Builder` draws operands. Out: `Step` records. A size is a number where the type
says it, else a word: equal words are equal sizes in every call.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphc.tensor as T
from corners import bounded as B
from corners.bounded import Array, Axes, Bounded
from graphc.ir.node import Node

Size = int | str
FLOATS = ("float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True, slots=True)
class Step:
    """A value: how it is made of the values at `operands`; `exact` where its bits do not depend on how.

    A leaf has no operands, and a kind: "input", "mutable" or "shared".
    """

    text: str
    operands: tuple[int, ...]
    graph: Callable[..., Node]
    oracle: Callable[..., Bounded]
    dtype: str
    sizes: tuple[Size, ...]
    exact: bool = False
    smooth: bool = True
    kind: str = ""

    @property
    def ndim(self) -> int:
        return len(self.sizes)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


def leaf(dtype: str, sizes: tuple[Size, ...], kind: str = "input") -> Step:
    return Step(kind, (), T.copy, lambda x: x, dtype, sizes, True, kind=kind)


@dataclass(frozen=True, slots=True)
class Pair:
    """A function in graphc and in NumPy."""

    name: str
    graph: Callable[..., Node]
    oracle: Callable[..., Bounded]
    smooth: bool = True


def monotone(name: str, function: Callable[[Array], Array], ulps: float = B.ELEMENTARY) -> Pair:
    graph = getattr(T, name)
    return Pair(name, graph, lambda x: B.monotone(x, function, ulps=ulps))


def _relu(x: Bounded) -> Bounded:
    return B.where(B.compared(np.less_equal, x, B.like(0, x)), B.like(0, x), x)


def _below(x: Bounded) -> Bounded:
    return B.where(B.compared(np.greater, x, B.like(0, x)), B.like(0, x), x)


def _elu(x: Bounded) -> Bounded:
    return B.where(B.compared(np.greater, x, B.like(0, x)), x, B.monotone(_below(x), np.expm1))


def _number(value: float, x: Bounded) -> Bounded:
    """A Python number that is none of the dtype: rounded to it, and known to half a place."""
    held = B.like(value, x)
    return Bounded(held.num, np.asarray(value, B.LONG), np.abs(held.ref - B.LONG(value)))


def _gelu(x: Bounded) -> Bounded:
    inner = B.mul(x, _number(0.7071067811865476, x))
    return B.mul(B.scaled(x, 0.5), B.add(B.monotone(inner, B.erf, ulps=16), B.like(1, x)))


def _clip(x: Bounded, low: float, high: float) -> Bounded:
    return B.extreme(np.minimum, B.extreme(np.maximum, x, B.like(low, x)), B.like(high, x))


def _nan_to_num(x: Bounded) -> Bounded:
    info = np.finfo(x.dtype)
    limits = [B.given(np.asarray(limit, x.dtype)) for limit in (info.max, info.min, 0.0)]
    positive = B.compared(np.greater, x, B.like(0, x))
    finite = B.where(B.tested(np.isinf, x), B.where(positive, limits[0], limits[1]), x)
    return B.where(B.tested(np.isnan, x), limits[2], finite)


def _one_plus_square(x: Bounded) -> Bounded:
    return B.add(B.like(1, x), B.sqr(x))


def _better(naive: Bounded, right: Bounded) -> Bounded:
    """Where NumPy overflows on the way to a number, graphc may give that number: a rule of class better knows it."""
    return Bounded(naive.num, right.ref, right.err)


def _naive_softmax(x: Bounded, axes: Axes) -> Bounded:
    x = B.floating(x)
    return _better(B.div(B.exp(x), B.sum_(B.exp(x), axes, True)), B.softmax(x, axes))


def _naive_softplus(x: Bounded) -> Bounded:
    return _better(B.log(B.add(B.like(1, x), B.exp(x))), B.monotone(x, B.softplus, ulps=16))


OF_FLOATS: Sequence[Pair] = (
    monotone("exp", np.exp), monotone("expm1", np.expm1), monotone("exp2", np.exp2),
    monotone("tanh", np.tanh), monotone("sigmoid", B.sigmoid), monotone("softplus", B.softplus, 16),
    monotone("arctan", np.arctan), monotone("cbrt", np.cbrt), monotone("sinh", np.sinh),
    monotone("arcsinh", np.arcsinh),
    monotone("log", np.log), monotone("log1p", np.log1p), monotone("sqrt", np.sqrt, B.BASIC),
    monotone("log2", np.log2), monotone("log10", np.log10), monotone("arctanh", np.arctanh),
    monotone("arcsin", np.arcsin), monotone("arccos", np.arccos),
    monotone("erf", B.erf, 16), monotone("deg2rad", np.deg2rad), monotone("rad2deg", np.rad2deg),
    Pair("sin", T.sin, lambda x: B.lipschitz(x, np.sin)),
    Pair("cos", T.cos, lambda x: B.lipschitz(x, np.cos)),
    Pair("neg", T.neg, B.neg),
    Pair("abs", T.abs, B.absolute),
    Pair("sqr", T.sqr, B.sqr),
    Pair("reciprocal", T.reciprocal, lambda x: B.div(B.like(1, x), x)),
    Pair("relu", T.nnet.relu, _relu),
    Pair("leaky_relu", lambda x: T.nnet.leaky_relu(x, 0.25),
         lambda x: B.where(B.compared(np.greater, x, B.like(0, x)), x, B.scaled(x, 0.25))),
    Pair("elu", T.nnet.elu, _elu),
    Pair("gelu", T.nnet.gelu, _gelu),
    Pair("silu", T.nnet.silu, lambda x: B.mul(x, B.monotone(x, B.sigmoid))),
    Pair("softsign", T.nnet.softsign, lambda x: B.div(x, B.add(B.absolute(x), B.like(1, x)))),
    Pair("clip", lambda x: T.clip(x, -0.5, 0.5), lambda x: _clip(x, -0.5, 0.5)),
    Pair("nan_to_num", T.nan_to_num, _nan_to_num),
    Pair("v * 0.5 + 1", lambda x: x * 0.5 + 1.0, lambda x: B.add(B.scaled(x, 0.5), B.like(1, x))),
    Pair("1 - v", lambda x: 1 - x, lambda x: B.sub(B.like(1, x), x)),
    Pair("v ** 3", lambda x: x ** 3, lambda x: B.mul(x, B.sqr(x))),
    Pair("exp(-sqr)", lambda x: T.exp(-T.sqr(x)), lambda x: B.exp(B.neg(B.sqr(x)))),
    Pair("log1p(sqr)", lambda x: T.log1p(T.sqr(x)), lambda x: B.monotone(B.sqr(x), np.log1p)),
    Pair("sqrt(1 + sqr)", lambda x: T.sqrt(1.0 + T.sqr(x)), lambda x: B.sqrt(_one_plus_square(x))),
    Pair("1 / (1 + exp(-v))", lambda x: 1 / (1 + T.exp(-x)),
         lambda x: B.div(B.like(1, x), B.add(B.like(1, x), B.exp(B.neg(x))))),
    Pair("log(1 + exp(v))", lambda x: T.log(1 + T.exp(x)), _naive_softplus),
    Pair("floor", T.floor, lambda x: B.rounded(np.floor, x)),
    Pair("rint", T.rint, lambda x: B.rounded(np.rint, x)),
    Pair("sign", T.sign, lambda x: B.where(B.compared(np.greater, x, B.like(0, x)), B.like(1, x),
         B.where(B.compared(np.less, x, B.like(0, x)), B.like(-1, x), B.scaled(x, 0)))),
)  # fmt: skip
"""Of one float; floor to sign are decided by comparing."""

OF_TWO: Sequence[Pair] = (
    Pair("add", T.add, B.add),
    Pair("sub", T.sub, B.sub),
    Pair("mul", T.mul, B.mul),
    Pair("true_div", T.true_div, B.div),
    Pair("maximum", T.maximum, lambda a, b: B.extreme(np.maximum, a, b)),
    Pair("minimum", T.minimum, lambda a, b: B.extreme(np.minimum, a, b)),
    Pair("a / (1 + b**2)", lambda a, b: a / (1 + T.sqr(b)), lambda a, b: B.div(a, _one_plus_square(b))),
    Pair("a * 0.5 - b * 2", lambda a, b: a * 0.5 - b * 2.0, lambda a, b: B.sub(B.scaled(a, 0.5), B.scaled(b, 2.0))),
    Pair("where(a < b, a, b + 1)", lambda a, b: T.where(a < b, a, b + 1),
         lambda a, b: B.where(B.compared(np.less, a, b), a, B.add(b, B.like(1, b)))),
    Pair("tanh(a) * b", lambda a, b: T.tanh(a) * b, lambda a, b: B.mul(B.monotone(a, np.tanh), b)),
    Pair("hypot", T.hypot, lambda a, b: _hypot(*B.common(a, b))),
)  # fmt: skip


def _hypot(a: Bounded, b: Bounded) -> Bounded:
    ref = np.hypot(a.ref, b.ref)
    return B.settled(a.dtype, np.hypot(a.num, b.num), ref, B.combined(ref, a.err + b.err, a, b), ulps=B.ELEMENTARY)


def integers(name: str, graph: Callable[..., Node], function: Callable[..., Any]) -> Pair:
    return Pair(name, graph, lambda *args: B.integral(function, *args), smooth=False)


OF_INTEGERS: Sequence[Pair] = (
    integers("neg", T.neg, np.negative),
    integers("abs", T.abs, np.abs),
    integers("v % 5", lambda x: x % 5, lambda x: x % 5),
    integers("v // 3", lambda x: x // 3, lambda x: x // 3),
    integers("v * 2 + 1", lambda x: x * 2 + 1, lambda x: x * 2 + 1),
    integers("v & 6", lambda x: x & 6, lambda x: x & 6),
    integers("sqr", T.sqr, np.square),
    integers("sign", T.sign, np.sign),
    integers("~v", lambda x: ~x, np.invert),
    integers("v << 3", lambda x: x << 3, lambda x: x << 3),
    integers("v >> 2", lambda x: x >> 2, lambda x: x >> 2),
    integers("maximum(v, 1)", lambda x: T.maximum(x, 1), lambda x: np.maximum(x, 1)),
    integers("v ** 3", lambda x: x ** 3, lambda x: x ** 3),
)  # fmt: skip
OF_TWO_INTEGERS: Sequence[Pair] = (
    integers("add", T.add, np.add),
    integers("sub", T.sub, np.subtract),
    integers("mul", T.mul, np.multiply),
    integers("maximum", T.maximum, np.maximum),
    integers("minimum", T.minimum, np.minimum),
    integers("a % b", lambda a, b: a % b, np.mod),
    integers("a // b", lambda a, b: a // b, np.floor_divide),
    integers("a ^ b", lambda a, b: a ^ b, np.bitwise_xor),
    integers("a | b", lambda a, b: a | b, np.bitwise_or),
    integers("where(a < b, a, b)", lambda a, b: T.where(a < b, a, b), lambda a, b: np.where(a < b, a, b)),
)  # fmt: skip


def _comparison(name: str) -> Pair:
    function = getattr(np, name)
    return Pair(name, getattr(T, name), lambda a, b: B.compared(function, a, b), smooth=False)


COMPARISONS = tuple(map(_comparison, ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")))

# Along axes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Along:
    """A function over axes: `keeps` the sizes, or drops the axes; `float_` where its result always is one."""

    name: str
    graph: Callable[..., Node]
    oracle: Callable[..., Bounded]
    keeps: bool = False
    result: str = ""
    one_axis: bool = False
    empty: bool = True
    smooth: bool = True


def _reduction(name: str, oracle: Callable[..., Bounded], **more: Any) -> Along:
    return Along(name, getattr(T, name), oracle, **more)


def _normal(
    name: str, graph: Callable[[Node, Axes], Node], oracle: Callable[[Bounded, Axes], Bounded], **more: Any
) -> Along:
    return Along(name, graph, oracle, keeps=True, **more)


def _standardised(x: Bounded, axes: Axes) -> Bounded:
    x = B.as_double(x)
    deviation = B.sub(x, B.mean(x, axes, True))
    return B.div(deviation, B.sqrt(B.add(B.var(x, axes, True), B.like(0.125, x))))


def _norm(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    return B.root(B.sum_(B.sqr(B.as_double(x)), axes, keepdims))


def _ptp(x: Bounded, axes: Axes, keepdims: bool = False) -> Bounded:
    return B.sub(B.max_(x, axes, keepdims), B.max_(x, axes, keepdims, np.min))


def _reversed_cumsum(x: Bounded, axes: Axes) -> Bounded:
    (axis,) = axes
    return B.cumsum(x.moved(lambda v: np.flip(v, axis)), axis).moved(lambda v: np.flip(v, axis))


REDUCTIONS: Sequence[Along] = (
    _reduction("sum", B.sum_, result="wide"),
    _reduction("prod", B.prod, result="wide"),
    _reduction("mean", B.mean, result="float"),
    _reduction("var", B.var, result="float"),
    _reduction("std", lambda x, axes, keepdims=False: B.root(B.var(x, axes, keepdims)), result="float"),
    _reduction("norm", _norm, result="float"),
    _reduction("logsumexp", B.logsumexp, result="float"),
    _reduction("max", B.max_, empty=False),
    _reduction("min", lambda x, axes, keepdims=False: B.max_(x, axes, keepdims, np.min), empty=False),
    _reduction("ptp", _ptp, empty=False),
    _reduction("argmax", B.position, result="int64", empty=False, smooth=False),
    _reduction("argmin", lambda x, axes, keepdims=False: B.position(x, axes, keepdims, -1), result="int64", empty=False,
               smooth=False),
    _reduction("any", B.truth, result="bool", smooth=False),
    _reduction("all", lambda x, axes, keepdims=False: B.truth(x, axes, keepdims, np.all), result="bool", smooth=False),
)  # fmt: skip
NORMALISERS: Sequence[Along] = (
    _normal("softmax", lambda x, axis: T.softmax(x, axis=axis), B.softmax, result="float"),
    _normal("log_softmax", lambda x, axis: T.log_softmax(x, axis=axis), B.log_softmax, result="float"),
    _normal("v - mean", lambda x, axis: x - x.mean(axis=axis, keepdims=True),
            lambda x, axes: B.sub(B.as_double(x), B.mean(x, axes, True)), result="float"),
    _normal("v / max", lambda x, axis: x / x.max(axis=axis, keepdims=True),
            lambda x, axes: B.div(x, B.max_(x, axes, True)), result="float", empty=False),
    _normal("v * prod", lambda x, axis: x * x.prod(axis=axis, keepdims=True),
            lambda x, axes: B.mul(x, B.prod(x, axes, True)), result="wide"),
    _normal("v - logsumexp", lambda x, axis: x - T.logsumexp(x, axis=axis, keepdims=True),
            lambda x, axes: B.sub(B.as_double(x), B.logsumexp(x, axes, True)), result="float"),
    _normal("standardised", lambda x, axis: (x - x.mean(axis=axis, keepdims=True))
            / T.sqrt(x.var(axis=axis, keepdims=True) + 0.125), _standardised, result="float"),
    _normal("v / norm", lambda x, axis: x / T.sqrt(1.0 + T.sqr(x).sum(axis=axis, keepdims=True)),
            lambda x, axes: B.div(x, B.sqrt(B.add(B.like(1.0, x), B.sum_(B.sqr(x), axes, True)))), result="float"),
    _normal("exp / sum(exp)", lambda x, axis: T.exp(x) / T.exp(x).sum(axis=axis, keepdims=True),
            _naive_softmax, result="floating"),
    _normal("(v - min) * max", lambda x, axis: (x - x.min(axis=axis, keepdims=True)) * x.max(axis=axis, keepdims=True),
            lambda x, axes: B.mul(B.sub(x, B.max_(x, axes, True, np.min)), B.max_(x, axes, True)), empty=False),
    _normal("v == max", lambda x, axis: T.equal(x, x.max(axis=axis, keepdims=True)),
            lambda x, axes: B.compared(np.equal, x, B.max_(x, axes, True)), result="bool", empty=False, smooth=False),
)  # fmt: skip
CUMULATIONS: Sequence[Along] = (
    _normal("cumsum", lambda x, axis: T.cumsum(x, axis=axis[0]), lambda x, axes: B.cumsum(x, axes[0]), result="wide",
            one_axis=True),
    _normal("cumprod", lambda x, axis: T.cumprod(x, axis=axis[0]), lambda x, axes: B.cumprod(x, axes[0]), result="wide",
            one_axis=True),
    _normal("v - cumsum", lambda x, axis: x - T.cumsum(x, axis=axis[0]), lambda x, axes: B.sub(x, B.cumsum(x, axes[0])),
            result="wide", one_axis=True),
    _normal("cumsum / sum", lambda x, axis: T.cumsum(x, axis=axis[0]) / (2.0 + abs(x).sum(axis=axis, keepdims=True)),
            lambda x, axes: B.div(B.as_double(B.cumsum(x, axes[0])),
                                  B.add(B.like(2, B.as_double(x)), B.as_double(B.sum_(B.absolute(x), axes, True)))),
            result="float", one_axis=True),
    _normal("reversed cumsum", lambda x, axis: T.flip(T.cumsum(T.flip(x, axis[0]), axis=axis[0]), axis[0]),
            _reversed_cumsum, result="wide", one_axis=True),
)  # fmt: skip


def along_dtype(what: Along, dtype: str) -> str:
    """The dtype of its result."""
    match what.result:
        case "":
            return dtype
        case "wide":
            return B.wide(dtype)
        case "float":
            return dtype if dtype in FLOATS else "float64"
        case "floating":
            return B.floating(B.given(np.zeros((), dtype))).dtype
        case other:
            return other


def along(what: Along, place: int, x: Step, axes: Axes, keepdims: bool = False) -> Step:
    """The step that applies it to the value `x` at `place`."""
    dtype = along_dtype(what, x.dtype)
    exact = x.exact and (dtype not in FLOATS)
    if what.keeps:
        text = f"{what.name}(v{place}, axes={axes})"
        graph, oracle = (lambda v: what.graph(v, axes)), (lambda v: what.oracle(v, axes))
        return Step(text, (place,), graph, oracle, dtype, x.sizes, exact, what.smooth)
    sizes = tuple(1 if axis in axes else size for axis, size in enumerate(x.sizes) if keepdims or axis not in axes)
    text = f"{what.name}(v{place}, axis={axes}, keepdims={keepdims})"
    return Step(
        text,
        (place,),
        lambda v: what.graph(v, axis=axes, keepdims=keepdims),
        lambda v: what.oracle(v, axes, keepdims),
        dtype,
        sizes,
        exact,
        what.smooth,
    )


# Drawing -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Builder:
    """The values so far, and what is drawn next."""

    draw: random.Random
    steps: list[Step] = field(default_factory=list)

    def pick(self, wanted: Callable[[Step], bool] = lambda step: True) -> int | None:
        """The place of one of the last values, mostly, of those that are wanted."""
        found = [place for place, step in enumerate(self.steps) if wanted(step)]
        if not found:
            return None
        return self.draw.choice(found[-4:] if self.draw.random() < 0.7 else found)

    def grow(self) -> None:
        """One more value; nothing where what was drawn has no operands."""
        step = self.draw.choice(MAKERS)(self)
        if step is not None and step.ndim <= 5:
            self.steps.append(step)

    def one(self) -> Step | None:
        place = self.pick(lambda step: step.dtype != "bool")
        if place is None:
            return None
        x = self.steps[place]
        pair = self.draw.choice(OF_FLOATS if x.is_float else OF_INTEGERS)
        if not x.is_float and x.dtype in UNSIGNED and pair.name == "neg":
            return None
        return Step(f"{pair.name} of v{place}", (place,), pair.graph, pair.oracle, x.dtype, x.sizes,
                    x.exact and (not x.is_float or pair.name in ("neg", "abs")), pair.smooth)  # fmt: skip

    def operands(self, wanted: Callable[[Step], bool]) -> tuple[int, int, tuple[Size, ...]] | None:
        """Two values that broadcast, and the sizes to which."""
        first = self.pick(wanted)
        if first is None:
            return None
        sizes = self.steps[first].sizes
        second = self.pick(lambda step: wanted(step) and broadcast(sizes, step.sizes) is not None)
        if second is None:
            return None
        result = broadcast(sizes, self.steps[second].sizes)
        return None if result is None else (first, second, result)

    def two(self) -> Step | None:
        found = self.operands(lambda step: step.dtype != "bool")
        if found is None:
            return None
        first, second, sizes = found
        a, b = self.steps[first], self.steps[second]
        dtype = np.result_type(a.dtype, b.dtype).name
        if a.is_float or b.is_float:
            pair = self.draw.choice(OF_TWO)
        elif dtype == "float64":  # of int64 and uint64
            return None
        else:
            pair = self.draw.choice(OF_TWO_INTEGERS)
        dtype = pair.oracle(*(B.given(np.ones((), step.dtype)) for step in (a, b))).dtype
        exact = a.exact and b.exact and dtype not in FLOATS
        text = f"{pair.name} of v{first}, v{second}"
        return Step(text, (first, second), pair.graph, pair.oracle, dtype, sizes, exact, pair.smooth)

    def compare(self) -> Step | None:
        found = self.operands(lambda step: True)
        if found is None:
            return None
        first, second, sizes = found
        pair, exact = self.draw.choice(COMPARISONS), self.steps[first].exact and self.steps[second].exact
        text = f"{pair.name} of v{first}, v{second}"
        return Step(text, (first, second), pair.graph, pair.oracle, "bool", sizes, exact, smooth=False)

    def choose(self) -> Step | None:
        c, found = self.pick(lambda step: step.dtype == "bool"), self.operands(lambda step: step.dtype != "bool")
        if c is None or found is None:
            return None
        first, second, sizes = found
        result = broadcast(sizes, self.steps[c].sizes)
        if result is None:
            return None
        a, b = self.steps[first], self.steps[second]
        dtype = np.result_type(a.dtype, b.dtype).name
        exact = self.steps[c].exact and a.exact and b.exact
        return Step(f"where(v{c}, v{first}, v{second})", (c, first, second), T.where, B.where, dtype, result, exact)

    def convert(self) -> Step | None:
        place = self.pick()
        if place is None:
            return None
        x = self.steps[place]
        dtype = self.draw.choice(FLOATS if x.is_float else (*FLOATS, *SIGNED, *UNSIGNED, "bool"))
        exact = x.exact
        return Step(f"cast(v{place}, {dtype})", (place,), lambda v: T.cast(v, dtype), lambda v: B.cast(v, dtype), dtype,
                    x.sizes, exact, smooth=dtype in FLOATS)  # fmt: skip

    def reduce(self) -> Step | None:
        place = self.pick(lambda step: step.ndim > 0)
        if place is None:
            return None
        x = self.steps[place]
        axes = tuple(sorted(self.draw.sample(range(x.ndim), self.draw.randrange(1, x.ndim + 1))))
        what = self.draw.choice(REDUCTIONS)
        if not suits(what, x, axes):
            return None
        return along(what, place, x, axes, self.draw.random() < 0.5)

    def normalise(self) -> Step | None:
        place = self.pick(lambda step: step.ndim > 0 and step.dtype != "bool")
        if place is None:
            return None
        x = self.steps[place]
        what = self.draw.choice([*NORMALISERS, *CUMULATIONS])
        count = 1 if what.one_axis or self.draw.random() < 0.7 else self.draw.randrange(1, x.ndim + 1)
        axes = tuple(sorted(self.draw.sample(range(x.ndim), count)))
        return along(what, place, x, axes) if suits(what, x, axes) else None

    def move(self) -> Step | None:
        place = self.pick(lambda step: step.ndim > 0)
        if place is None:
            return None
        x = self.steps[place]
        move = self.draw.choice(MOVES)(self.draw, x)
        if move is None:
            return None
        text, graph, function, sizes = move
        return Step(f"{text} of v{place}", (place,), graph, lambda v: v.moved(function), x.dtype, sizes, x.exact)

    def join(self) -> Step | None:
        """Two values one after the other, or along a new axis."""
        first = self.pick(lambda step: step.ndim > 0)
        if first is None:
            return None
        a = self.steps[first]
        axis, stacks = self.draw.randrange(a.ndim), self.draw.random() < 0.3

        def fits(step: Step) -> bool:
            return step.ndim == a.ndim and all(
                left == right or (k == axis and not stacks)
                for k, (left, right) in enumerate(zip(a.sizes, step.sizes, strict=True))
            )

        second = self.pick(fits)
        if second is None:
            return None
        b = self.steps[second]
        dtype, exact = np.result_type(a.dtype, b.dtype).name, a.exact and b.exact
        sizes = list(a.sizes)
        if stacks:
            sizes.insert(axis, 2)
        else:
            sizes[axis] = plus(a.sizes[axis], b.sizes[axis])
        graph, function = (T.stack, np.stack) if stacks else (T.concatenate, np.concatenate)

        def oracle(*args: Bounded) -> Bounded:
            alike = B.common(*args)
            num, ref, err = (function([getattr(x, part) for x in alike], axis=axis) for part in ("num", "ref", "err"))
            return Bounded(num, ref, err, exact)

        return Step(f"{graph.__name__}([v{first}, v{second}], axis={axis})", (first, second),
                    lambda *args: graph(list(args), axis=axis), oracle, dtype, tuple(sizes), exact)  # fmt: skip

    def write(self) -> Step | None:
        """A part replaced or increased by a number, or by the part itself doubled or reversed."""
        place = self.pick(lambda step: step.ndim > 0 and step.dtype != "bool")
        if place is None:
            return None
        x = self.steps[place]
        key, increments, way = _key(self.draw, x), self.draw.random() < 0.5, self.draw.randrange(3)
        update = T.inc_subtensor if increments else T.set_subtensor
        at = B.inc_at if increments else B.set_at

        def graph(v: Node) -> Node:
            part = v[key]
            return update(part, (1, part * 2, part[..., ::-1] if part.ndim else part)[way])

        def oracle(v: Bounded) -> Bounded:
            part = v.moved(lambda array: array[key])
            if way == 0:
                new = B.given(np.asarray(1, v.dtype)).moved(lambda one: np.broadcast_to(one, part.num.shape))
            elif way == 1:
                new = B.mul(part, B.given(np.asarray(2, v.dtype)))
            else:
                new = part.moved(lambda array: array[..., ::-1] if array.ndim else array)
            return at(v, key, new)

        what = ("1", "2 * part", "part[..., ::-1]")[way]
        exact = x.exact and (not x.is_float or (way != 1 and not increments))
        return Step(f"{update.__name__}(v{place}[{key}], {what})", (place,), graph, oracle, x.dtype, x.sizes, exact)

    def gather(self) -> Step | None:
        """Rows at integer positions, modulo their number; or increased there."""
        keys = self.pick(lambda step: step.dtype in SIGNED and step.exact and step.ndim in (1, 2))
        place = self.pick(lambda step: step.ndim > 0 and step.dtype != "bool")
        if keys is None or place is None:
            return None
        index, x = self.steps[keys], self.steps[place]
        axis = self.draw.randrange(x.ndim)
        if x.sizes[axis] == 0:
            return None
        scatters = self.draw.random() < 0.4

        def key(v: Any, i: Any) -> Any:
            return (*(slice(None) for _ in range(axis)), i % v.shape[axis])

        if scatters:

            def graph(v: Node, i: Node) -> Node:
                part = v[key(v, T.cast(i, "int64"))]
                return T.inc_subtensor(part, part * 2)

            def oracle(v: Bounded, i: Bounded) -> Bounded:
                where = key(v.num, i.num.astype("int64"))
                part = v.moved(lambda array: array[where])
                return B.inc_at(v, where, B.mul(part, B.given(np.asarray(2, v.dtype))))

            return Step(f"inc_subtensor(v{place}[v{keys} % size at {axis}], 2 * part)", (place, keys), graph, oracle,
                        x.dtype, x.sizes, x.exact and not x.is_float)  # fmt: skip
        sizes = (*x.sizes[:axis], *index.sizes, *x.sizes[axis + 1 :])
        return Step(f"v{place}[v{keys} % size at {axis}]", (place, keys),
                    lambda v, i: v[key(v, T.cast(i, "int64"))],
                    lambda v, i: v.moved(lambda array: array[key(v.num, i.num.astype("int64"))]),
                    x.dtype, sizes, x.exact)  # fmt: skip

    def product(self) -> Step | None:
        """A contraction over axes of equal sizes, by the function that has it."""
        first = self.pick(lambda step: 0 < step.ndim <= 3 and step.dtype != "bool")
        second = self.pick(lambda step: 0 < step.ndim <= 3 and step.dtype != "bool")
        if first is None or second is None:
            return None
        a, b = self.steps[first], self.steps[second]
        dtype = np.result_type(a.dtype, b.dtype).name
        if dtype == "float64" and not (a.is_float or b.is_float):
            return None
        letters, others = "abc"[: a.ndim], list("xyz"[: b.ndim])
        for place, size in enumerate(b.sizes):
            equal = [
                letter for letter, own in zip(letters, a.sizes, strict=True) if own == size and letter not in others
            ]
            if equal and self.draw.random() < 0.7:
                others[place] = self.draw.choice(equal)
        found = dict(zip([*letters, *others], [*a.sizes, *b.sizes], strict=True))
        kept = [
            letter for letter in found if self.draw.random() < (0.3 if letter in letters and letter in others else 0.9)
        ]
        self.draw.shuffle(kept)
        spec = f"{letters},{''.join(others)}->{''.join(kept)}"
        return Step(f"einsum({spec!r}, v{first}, v{second})", (first, second), lambda v, w: T.einsum(spec, v, w),
                    lambda v, w: B.contraction(spec, v, w), dtype, tuple(found[letter] for letter in kept),
                    a.exact and b.exact and dtype not in FLOATS)  # fmt: skip

    def matrix_product(self) -> Step | None:
        """A product of a matrix with a vector, a matrix or itself transposed, scaled and added to."""
        first = self.pick(lambda step: step.ndim == 2 and step.is_float)
        if first is None:
            return None
        a = self.steps[first]
        second = self.pick(lambda step: step.is_float and step.ndim in (1, 2) and step.sizes[0] == a.sizes[1])
        if second is None:
            return Step(f"dot(v{first}, v{first}.T)", (first,), lambda v: T.dot(v, v.T),
                        lambda v: B.contraction("ij,kj->ik", v, v), a.dtype, (a.sizes[0], a.sizes[0]))  # fmt: skip
        b = self.steps[second]
        spec = "ij,jk->ik" if b.ndim == 2 else "ij,j->i"
        factor = self.draw.choice([1.0, 0.5, -2.0])
        return Step(f"dot(v{first}, v{second}) * {factor}", (first, second), lambda v, w: T.dot(v, w) * factor,
                    lambda v, w: B.scaled(B.contraction(spec, v, w), factor), np.result_type(a.dtype, b.dtype).name,
                    (a.sizes[0], *b.sizes[1:]))  # fmt: skip


MAKERS: Sequence[Callable[[Builder], Step | None]] = (
    *(Builder.one,) * 4, *(Builder.two,) * 5, *(Builder.reduce,) * 5, *(Builder.normalise,) * 6, *(Builder.move,) * 5,
    Builder.compare, Builder.choose, Builder.convert, *(Builder.join,) * 2, *(Builder.write,) * 2, Builder.gather,
    Builder.product, Builder.matrix_product,
)  # fmt: skip


def suits(what: Along, x: Step, axes: Axes) -> bool:
    """Whether NumPy and graphc have it for this dtype, and it has a value for these sizes."""
    if not what.empty and any(x.sizes[axis] == 0 for axis in axes):
        return False
    return x.dtype != "bool" or what.name in ("sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin")


# Sizes ---------------------------------------------------------------------------------------------------------------


def broadcast(a: Sequence[Size], b: Sequence[Size]) -> tuple[Size, ...] | None:
    """The sizes to which two tuples of them broadcast; only a 1 that the type says gives way."""
    longer, shorter = (list(a), list(b)) if len(a) >= len(b) else (list(b), list(a))
    shorter = [*(1 for _ in range(len(longer) - len(shorter))), *shorter]
    result: list[Size] = []
    for left, right in zip(longer, shorter, strict=True):
        if left != right and 1 not in (left, right):
            return None
        result.append(right if left == 1 else left)
    return tuple(result)


def plus(a: Size, b: Size) -> Size:
    return a + b if isinstance(a, int) and isinstance(b, int) else f"({a}+{b})"


def times(a: Size, b: Size) -> Size:
    return a * b if isinstance(a, int) and isinstance(b, int) else f"({a}*{b})"


def sliced(size: Size, part: slice) -> Size:
    if isinstance(size, int):
        return len(range(size)[part])
    if part == slice(None) or part == slice(None, None, -1):
        return size
    return f"{size}[{part.start}:{part.stop}:{part.step}]"


# Moves ---------------------------------------------------------------------------------------------------------------

Move = tuple[str, Callable[[Node], Node], Callable[[Array], Array], tuple[Size, ...]]


def _slice(draw: random.Random) -> slice:
    bounds = (None, None, 0, 1, 2, -1, -2, 5)
    return slice(draw.choice(bounds), draw.choice(bounds), draw.choice((None, None, 1, 2, -1, -1, 3, -2)))


def _key(draw: random.Random, x: Step) -> tuple[Any, ...]:
    """Slices, integers and integer arrays for some axes; integers for sizes that are known only."""
    key: list[Any] = []
    arrays = 0
    for size in x.sizes[: draw.randrange(1, x.ndim + 1)]:
        way = draw.random()
        if isinstance(size, int) and size and way < 0.15:
            key.append(draw.randrange(-size, size))
        elif isinstance(size, int) and size and way < 0.25 and not arrays and not any(isinstance(k, int) for k in key):
            key.append(np.array([draw.randrange(-size, size) for _ in range(draw.randrange(4))], "int64"))
            arrays += 1
        else:
            key.append(_slice(draw) if way < 0.8 else slice(None))
    if arrays:
        key = [slice(k, k + 1 or None) if isinstance(k, int) else k for k in key]
    return tuple(key)


def _part(draw: random.Random, x: Step) -> Move | None:
    key = _key(draw, x)
    sizes: list[Size] = []
    for axis, size in enumerate(x.sizes):
        part = key[axis] if axis < len(key) else slice(None)
        if isinstance(part, slice):
            sizes.append(sliced(size, part))
        elif not isinstance(part, int):
            sizes.append(len(part))
    return f"[{key}]", lambda v: v[key], lambda v: v[key], tuple(sizes)


def _transposed(draw: random.Random, x: Step) -> Move | None:
    order = draw.sample(range(x.ndim), x.ndim)
    return (
        f"transpose{order}",
        lambda v: v.transpose(order),
        lambda v: v.transpose(order),
        tuple(x.sizes[k] for k in order),
    )


def _merged(draw: random.Random, x: Step) -> Move | None:
    """Two neighbouring axes as one."""
    if x.ndim < 2:
        return None
    axis = draw.randrange(x.ndim - 1)
    merged = (*x.sizes[:axis], times(x.sizes[axis], x.sizes[axis + 1]), *x.sizes[axis + 2 :])

    def shaped(v: Any) -> tuple[Any, ...]:
        return (*(v.shape[k] for k in range(axis)), v.shape[axis] * v.shape[axis + 1],
                *(v.shape[k] for k in range(axis + 2, x.ndim)))  # fmt: skip

    return f"reshape to {merged}", lambda v: v.reshape(shaped(v)), lambda v: v.reshape(shaped(v)), merged


def _divided(draw: random.Random, x: Step) -> Move | None:
    """An axis as two."""
    axis = draw.randrange(x.ndim)
    size = x.sizes[axis]
    if not isinstance(size, int) or not size:
        return None
    first = draw.choice([k for k in range(1, size + 1) if size % k == 0])

    def shaped(v: Any) -> tuple[Any, ...]:
        return (
            *(v.shape[k] for k in range(axis)),
            first,
            size // first,
            *(v.shape[k] for k in range(axis + 1, x.ndim)),
        )

    sizes = (*x.sizes[:axis], first, size // first, *x.sizes[axis + 1 :])
    return f"reshape to {sizes}", lambda v: v.reshape(shaped(v)), lambda v: v.reshape(shaped(v)), sizes


def _expanded(draw: random.Random, x: Step) -> Move | None:
    axis = draw.randrange(x.ndim + 1)
    sizes = (*x.sizes[:axis], 1, *x.sizes[axis:])
    return f"expand_dims{axis}", lambda v: T.expand_dims(v, axis), lambda v: np.expand_dims(v, axis), sizes


def _squeezed(draw: random.Random, x: Step) -> Move | None:
    ones = [axis for axis, size in enumerate(x.sizes) if size == 1]
    if not ones:
        return None
    axis = draw.choice(ones)
    return (
        f"squeeze{axis}",
        lambda v: T.squeeze(v, axis),
        lambda v: np.squeeze(v, axis),
        (*x.sizes[:axis], *x.sizes[axis + 1 :]),
    )


def _rolled(draw: random.Random, x: Step) -> Move | None:
    axis, shift = draw.randrange(x.ndim), draw.randrange(-3, 4)
    return f"roll{shift, axis}", lambda v: T.roll(v, shift, axis), lambda v: np.roll(v, shift, axis), x.sizes


def _repeated(draw: random.Random, x: Step) -> Move | None:
    axis, count = draw.randrange(x.ndim), draw.randrange(4)
    sizes = (*x.sizes[:axis], times(x.sizes[axis], count), *x.sizes[axis + 1 :])
    return f"repeat{count, axis}", lambda v: T.repeat(v, count, axis), lambda v: np.repeat(v, count, axis), sizes


def _tiled(draw: random.Random, x: Step) -> Move | None:
    counts = tuple(draw.choice((1, 1, 2, 3)) for _ in x.sizes)
    sizes = tuple(times(size, count) if count > 1 else size for size, count in zip(x.sizes, counts, strict=True))
    return f"tile{counts}", lambda v: T.tile(v, counts), lambda v: np.tile(v, counts), sizes


def _padded(draw: random.Random, x: Step) -> Move | None:
    widths = [(draw.randrange(3), draw.randrange(3)) for _ in x.sizes]
    sizes = tuple(plus(size, sum(pair)) for size, pair in zip(x.sizes, widths, strict=True))
    return f"pad{widths}", lambda v: T.pad(v, widths), lambda v: np.pad(v, widths), sizes


def _triangle(draw: random.Random, x: Step) -> Move | None:
    k, name = draw.randrange(-2, 3), draw.choice(["tril", "triu"])
    if x.ndim < 2:
        return None
    return f"{name}{k}", lambda v: getattr(T, name)(v, k), lambda v: getattr(np, name)(v, k), x.sizes


def _diagonal(draw: random.Random, x: Step) -> Move | None:
    if x.ndim < 2 or not (isinstance(x.sizes[0], int) and isinstance(x.sizes[1], int)):
        return None
    k = draw.randrange(-1, 2)
    size = max(min(x.sizes[0] - max(-k, 0), x.sizes[1] - max(k, 0)), 0)
    return f"diagonal{k}", lambda v: T.diagonal(v, k), lambda v: np.diagonal(v, k), (*x.sizes[2:], size)


def _taken(draw: random.Random, x: Step) -> Move | None:
    axis = draw.randrange(x.ndim)
    size = x.sizes[axis]
    if not isinstance(size, int) or not size:
        return None
    places = [draw.randrange(-size, size) for _ in range(draw.randrange(1, 5))]
    sizes = (*x.sizes[:axis], len(places), *x.sizes[axis + 1 :])
    return f"take{places, axis}", lambda v: T.take(v, places, axis), lambda v: np.take(v, places, axis), sizes


def _widened(draw: random.Random, x: Step) -> Move | None:
    """An axis of size 1 broadcast to a few."""
    ones = [axis for axis, size in enumerate(x.sizes) if size == 1]
    if not ones:
        return None
    axis, size = draw.choice(ones), draw.choice([0, 2, 5])
    sizes = (*x.sizes[:axis], size, *x.sizes[axis + 1 :])

    def wide(v: Any) -> tuple[Any, ...]:
        return tuple(size if k == axis else v.shape[k] for k in range(x.ndim))

    return f"broadcast_to {sizes}", lambda v: T.broadcast_to(v, wide(v)), lambda v: np.broadcast_to(v, wide(v)), sizes


def _piece(draw: random.Random, x: Step) -> Move | None:
    """One of the parts of array_split."""
    axis, count = draw.randrange(x.ndim), draw.randrange(1, 4)
    which, size = draw.randrange(count), x.sizes[axis]
    part: Size = len(range(which, size, count)) if isinstance(size, int) else f"{size}/{count}@{which}"
    return (f"array_split{count, axis}[{which}]", lambda v: T.array_split(v, count, axis)[which],
            lambda v: np.array_split(v, count, axis)[which], (*x.sizes[:axis], part, *x.sizes[axis + 1 :]))  # fmt: skip


MOVES: Sequence[Callable[[random.Random, Step], Move | None]] = (
    _part, _part, _part, _transposed, _transposed, _merged, _divided, _expanded, _squeezed, _rolled, _repeated, _tiled,
    _padded, _triangle, _diagonal, _taken, _widened, _piece,
)  # fmt: skip
