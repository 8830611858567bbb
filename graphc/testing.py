"""Checks for authors of ops: derivatives against finite differences, and arguments drawn from samples.

In: functions of nodes, arrays. Out: nothing, or an AssertionError that tells the difference.

    check_gradient(T.exp, np.ones(3))      None: the derivatives of exp, up to the second, are right
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.autodiff import vjp
from graphc.ir.interpret import interpret
from graphc.ir.node import Argument, Array, Node, literal, variable
from graphc.ir.walk import Graph
from graphc.ops.elementwise import elementwise
from graphc.ops.reduce import reduce_sum

STEP = {"float64": 1e-3, "float32": 5e-2}
"""Steps of the five-point difference quotient: near eps ** (1/5), where truncation and rounding balance."""


def check_gradient(
    function: Callable[..., Any],
    *arrays: Any,
    order: int = 2,
    tolerance: float | None = None,
    seed: int = 0,
    run: Callable[[Graph, Mapping[Node, Array]], Sequence[Array]] = interpret,
) -> None:
    """Check the derivatives of `function` at `arrays` up to `order` against finite differences.

    `function` takes one node for each array and gives a floating node, or a list of them. Derivatives are taken with
    respect to the floating arrays, in one random direction of unit length; the derivative in that direction is checked
    in another one, and so on. The difference quotient is the central one of five points, whose error is of fourth
    order (Abramowitz & Stegun 25.3.6). `run` evaluates a graph. Raises AssertionError with both numbers.
    """
    rng = np.random.default_rng(seed)
    values = [np.asarray(array) for array in arrays]
    inputs = [leaf_like(value, f"x{k}") for k, value in enumerate(values)]
    outputs = function(*inputs)
    cost = _weighted(
        list(outputs) if isinstance(outputs, list | tuple) else [outputs],
        rng,
        dict(zip(inputs, values, strict=True)),
        run,
    )
    places = [k for k, value in enumerate(values) if is_float(value.dtype.name) and value.size]
    if not places:
        raise AssertionError("check_gradient: there is no floating argument")
    for level in range(1, order + 1):
        directions = [_direction(values[k], rng) for k in places]
        gradients = vjp(cost, [inputs[k] for k in places], literal(1, cost.type.dtype), "ignore")
        slope = _inner(gradients, directions)
        _compare(Graph(tuple(inputs), (cost, slope)), values, places, directions, tolerance, level, run)
        cost = slope


def leaf_like(value: Array, name: str) -> Node:
    """Return a variable for a value. Sizes of 1 are static, so that they broadcast; others are unknown."""
    return variable(value.dtype.name, [1 if size == 1 else None for size in value.shape], name)


def draw(argument: Argument, rng: np.random.Generator, dtype: str = "float64") -> Array:
    """Return a random array for an argument of a sample; `dtype` is that of the kind "float"."""
    match argument.category:
        case "float":
            return np.asarray(rng.uniform(argument.low, argument.high, argument.shape), dtype)
        case "bool":
            return np.asarray(rng.random(argument.shape) < 0.5)
        case _:
            return np.asarray(rng.integers(int(argument.low), int(argument.high) + 1, argument.shape), "int64")


def _weighted(outputs: list[Node], rng: np.random.Generator, values: Mapping[Node, Array], run: Any) -> Node:
    """Return a scalar that depends on every element of every output."""
    results = run(Graph(tuple(values), tuple(outputs)), values)
    weights = [rng.uniform(0.5, 1.5, result.shape) for result in results]
    return _inner(outputs, [np.asarray(w, node.type.dtype) for w, node in zip(weights, outputs, strict=True)])


def _inner(nodes: Sequence[Node], arrays: Sequence[Array]) -> Node:
    """Return the inner product of nodes with constant arrays."""
    products = [elementwise("mul", node, array) for node, array in zip(nodes, arrays, strict=True)]
    terms = [reduce_sum(product, range(product.ndim)) for product in products]
    total = terms[0]
    for term in terms[1:]:
        total = elementwise("add", total, term)
    return total


def _direction(value: Array, rng: np.random.Generator) -> Array:
    direction = rng.standard_normal(value.shape)
    return np.asarray(direction / max(float(np.linalg.norm(direction)), 1e-3), value.dtype)


def _compare(
    graph: Graph,
    values: Sequence[Array],
    places: Sequence[int],
    directions: Sequence[Array],
    tolerance: float | None,
    level: int,
    run: Any,
) -> None:
    cost, slope = graph.outputs
    step = min(STEP[values[k].dtype.name] for k in places)

    def at(distance: float) -> float:
        moved = list(values)
        for k, direction in zip(places, directions, strict=True):
            moved[k] = np.asarray(values[k] + distance * direction, values[k].dtype)
        (result,) = run(Graph(graph.inputs, (cost,)), dict(zip(graph.inputs, moved, strict=True)))
        return float(result)

    expected = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
    (found,) = run(Graph(graph.inputs, (slope,)), dict(zip(graph.inputs, values, strict=True)))
    allowed = tolerance or (1e-6 if step == STEP["float64"] else 1e-2)
    if not abs(float(found) - expected) <= allowed * max(1.0, abs(expected)):
        raise AssertionError(
            f"derivative {level}: the graph gives {float(found):.12g}, finite differences {expected:.12g}"
        )
