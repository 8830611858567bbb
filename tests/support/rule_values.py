"""Both sides of a rewrite rule, and what they are worth in high precision.

In: a rule, a dtype, values of its variables. Out: graphs before and after; values to 2,600 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from graphc.ir.interpret import interpret
from graphc.ir.lowering import Scalar
from graphc.ir.node import CONSTANT, INPUT, SIZE, Array, Node, constant_value, variable
from graphc.ir.walk import Graph, nodes_of
from graphc.rewrite import RULES
from graphc.rewrite.engine import Match, Rule, Transformation, instantiate

PAIRS = [item for item in RULES.values() if isinstance(item, Rule)]
TRANSFORMATIONS = [item for item in RULES.values() if isinstance(item, Transformation)]


def names(rules: Sequence[Any]) -> list[str]:
    return [item.name for item in rules]


mpmath.mp.prec = 2600  # as many bits as 1 + 5e-324 needs, twice

_ORACLE: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "true_div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "sqr": lambda x: x * x,
    "abs": abs,
    "pow": lambda x, y: x**y,
    "where": lambda c, x, y: x if c else y,
    "equal": lambda x, y: x == y,
    "isfinite": mpmath.isfinite,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log(1 + mpmath.exp(x)),
    "logaddexp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    "expm1": lambda x: mpmath.exp(x) - 1,
    "xlogy": lambda x, y: x * mpmath.log(y) if x else mpmath.mpf(0),
    "deg2rad": lambda x: x * mpmath.pi / 180,
    "rad2deg": lambda x: x * 180 / mpmath.pi,
    **{name: getattr(mpmath, name) for name in ("exp", "cosh", "sinh", "tanh", "erf", "erfc")},
    **{name: getattr(mpmath, other) for name, other in (("arcsinh", "asinh"), ("arctanh", "atanh"))},
}


def _real(function: Callable[[Any], Any], low: float) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        if x < low:
            raise ValueError("not a real number")
        return function(x)

    return apply


_ORACLE |= {
    "log": _real(lambda x: mpmath.log(x) if x else -mpmath.inf, 0),
    "log1p": _real(lambda x: mpmath.log(1 + x) if x != -1 else -mpmath.inf, -1),
    "sqrt": _real(mpmath.sqrt, 0),
}


def exact_value(output: Node, values: Mapping[Node, Array]) -> Array:
    """The output in high precision, element by element; NaN where mathematics has no number for it."""
    known: dict[Any, Any] = {}
    for leaf, value in values.items():
        known[leaf] = _precise(value)
        known |= zip(leaf.type.shape, value.shape, strict=True)
    for node in nodes_of([output]):
        if node.op in (INPUT, SIZE):
            continue
        if node.op is CONSTANT:
            known[node] = _precise(constant_value(node))
        elif isinstance(node.op.lower(node), Scalar):
            known[node] = _each(_guarded(node.op.name), *(known[a] for a in node.args))
        elif node.op.name in ("sum", "max", "supremum"):
            fold = np.add if node.op.name == "sum" else np.maximum
            known[node] = np.asarray(fold.reduce(known[node.args[0]], axis=node.attrs["axes"]), object)
        else:
            known[node] = node.op.eval(node, *(known[a] for a in node.args))
    return np.asarray(known[output])


def _each(function: Callable[..., Any], *arrays: Any) -> Array:
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def _precise(array: Any) -> Array:
    result = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        result[place] = bool(array[place]) if array.dtype == bool else mpmath.mpf(float(array[place]))
    return result


def _guarded(name: str) -> Callable[..., Any]:
    def apply(*args: Any) -> Any:
        if any(isinstance(a, mpmath.mpf) and mpmath.isnan(a) for a in args):
            return mpmath.nan
        try:
            return _ORACLE[name](*args)
        except (ValueError, ZeroDivisionError, OverflowError, MemoryError):
            return mpmath.nan

    return apply


def run(graph: Graph, values: Mapping[Node, Array]) -> Array:
    return interpret(graph, values)[0]


def instances(item: Rule, dtype: str) -> tuple[Node, Node, list[Node]]:
    """Both sides of a rule over variables: of rank 1, or of rank 2 reduced over axis 1."""
    holes = [node for node in nodes_of([item.pattern]) if node.op is INPUT]
    in_rows = any(node.op.name in ("sum", "max", "supremum") for node in nodes_of([item.pattern]))
    found = {}
    for h in holes:
        kind = "bool" if h.dtype == "bool" else dtype
        found[h] = variable(kind, (None,) * (1 + (h.ndim if in_rows else 0)), h.name)
    wide = next((n for h, n in found.items() if h.ndim and h.name == "x"), None)
    match = Match(found, (1,), wide.type.shape) if wide is not None else Match(found)
    before = instantiate(item.pattern, match, next(iter(found.values())))
    return before, instantiate(item.replacement, match, before), list(found.values())
