"""Functions along axes, with reductions and normalisations among them, in graphc and in NumPy with their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.ir.node import Node
from tests.support.corners import bounded as B
from tests.support.corners.bounded import Axes, Bounded
from tests.support.corners.elements import better
from tests.support.corners.steps import FLOATS, Step


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


def _naive_softmax(x: Bounded, axes: Axes) -> Bounded:
    x = B.floating(x)
    return better(B.div(B.exp(x), B.sum_(B.exp(x), axes, True)), B.softmax(x, axes))


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
    _reduction("logsumexp", B.logsumexp, result="floating"),
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
    _normal("softmax", lambda x, axis: T.softmax(x, axis=axis), B.softmax, result="floating"),
    _normal("log_softmax", lambda x, axis: T.log_softmax(x, axis=axis), B.log_softmax, result="floating"),
    _normal("v - mean", lambda x, axis: x - x.mean(axis=axis, keepdims=True),
            lambda x, axes: B.sub(B.as_double(x), B.mean(x, axes, True)), result="float"),
    _normal("v / max", lambda x, axis: x / x.max(axis=axis, keepdims=True),
            lambda x, axes: B.div(x, B.max_(x, axes, True)), result="float", empty=False),
    _normal("v * prod", lambda x, axis: x * x.prod(axis=axis, keepdims=True),
            lambda x, axes: B.mul(x, B.prod(x, axes, True)), result="wide"),
    _normal("v - logsumexp", lambda x, axis: x - T.logsumexp(x, axis=axis, keepdims=True),
            lambda x, axes: B.sub(B.floating(x), B.logsumexp(x, axes, True)), result="floating"),
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


def suits(what: Along, x: Step, axes: Axes) -> bool:
    """Whether NumPy and graphc have it for this dtype, and it has a value for these sizes."""
    if not what.empty and any(x.sizes[axis] == 0 for axis in axes):
        return False
    return x.dtype != "bool" or what.name in ("sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin")
