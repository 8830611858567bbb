"""Programs of equal steps, as loops leave them that are written out where a graph is made.

In: a number of steps. Out: inputs and results, values for the inputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphc
import graphc.tensor as T
from graphc.ir.node import Node

Inputs = list[Node]
Build = Callable[[int], tuple[Inputs, list[Any]]]


def level(steps: int) -> tuple[Inputs, list[Any]]:
    """The likelihood of a local level, and its gradient."""
    y, p = T.dvector("y"), T.dvector("p")
    noise, error, phi = T.exp(p[0]), T.exp(p[1]), p[2]
    state, spread, total = [T.as_tensor_variable(value) for value in (0.0, 1.0, 0.0)]
    for t in range(steps):
        state, spread = phi * state, phi * phi * spread + noise
        innovation = y[t] - state
        expected = spread + error
        gain = spread / expected
        state, spread = state + gain * innovation, spread * (1 - gain)
        total = total - 0.5 * (T.log(expected) + innovation * innovation / expected)
    return [y, p], [total, graphc.grad(total, p)]


def kalman(steps: int) -> tuple[Inputs, list[Any]]:
    """The same of two states, and theirs."""
    y, p = T.dvector("y"), T.dvector("p")
    move = T.as_tensor_variable(np.array([[0.9, 0.1], [0.2, 0.7]])) * p[0]
    noise = T.as_tensor_variable(np.eye(2)) * T.exp(p[1])
    seen = T.as_tensor_variable(np.array([1.0, 0.5])) * p[2]
    state, spread = T.as_tensor_variable(np.zeros(2)), T.as_tensor_variable(np.eye(2))
    total = T.as_tensor_variable(0.0)
    for t in range(steps):
        state = T.dot(move, state)
        spread = T.dot(T.dot(move, spread), move.T) + noise
        innovation = y[t] - T.dot(seen, state)
        shown = T.dot(spread, seen)
        expected = T.dot(seen, shown) + 0.5
        gain = shown / expected
        state, spread = state + gain * innovation, spread - gain[:, None] * shown[None, :]
        total = total - 0.5 * (T.log(expected) + innovation * innovation / expected)
    return [y, p], [total, graphc.grad(total, p)]


def layers(steps: int) -> tuple[Inputs, list[Any]]:
    """Vectors of a length that is not known, with a factor of its own in each step."""
    x, p = T.fvector("x"), T.fvector("p")
    value: Any = x
    for t in range(steps):
        value = T.tanh(value * p[t] + x * (0.1 * t)) + value.sum()
    return [x, p], [value, graphc.grad(value.sum(), p)]


def known_sizes(steps: int) -> tuple[Inputs, list[Any]]:
    """Vectors too long to be kept beside those of other steps from the beginning."""
    x, p = T.tensor("float64", shape=(100,), name="x"), T.dvector("p")
    value, total = x, T.as_tensor_variable(0.0)
    for t in range(steps):
        value = T.exp(value / (1.0 + T.sqr(value).sum())) - p[t]
        total = total + value.max()
    return [x, p], [total, value]


def counts(steps: int) -> tuple[Inputs, list[Any]]:
    """Integers and conditions."""
    x, n = T.dvector("x"), T.lscalar("n")
    count, last = n, x[0]
    for t in range(steps):
        is_more = x[t] > last
        count = T.switch(is_more, count * 3 - t, count // 2 + 5)
        last = T.switch(is_more, x[t], last + T.cast(count % 7, "float64"))
    return [x, n], [count, last]


def several(steps: int) -> tuple[Inputs, list[Any]]:
    """Values of all steps are results."""
    x, p = T.dvector("x"), T.dscalar("p")
    a, b = p, p * 0.5
    results: list[Any] = []
    for t in range(steps):
        a, b = a * x[t] - b, a + T.sin(b) * x[steps - 1 - t]
        results.append(a * b)
    return [x, p], [T.stack(results), a, *results[-2:]]


PROGRAMS: dict[str, Build] = {each.__name__: each for each in (level, kalman, layers, known_sizes, counts, several)}


def values_for(inputs: Sequence[Node], steps: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    result: list[Any] = []
    for node in inputs:
        known = [size for size in node.type.shape if isinstance(size, int)]
        size = {"y": steps, "p": max(steps, 3), "x": known[0] if known else steps}.get(node.name or "", 0)
        values = rng.normal(size=size if node.ndim else None)
        result.append(
            np.asarray(values * 3).astype(node.dtype) if node.dtype == "int64" else np.asarray(values, node.dtype)
        )
    return result


def bits(value: Any) -> bytes:
    """What makes the value, but for what is in a NaN."""
    return np.where(np.isnan(value), np.nan, value).tobytes() if value.dtype.kind == "f" else value.tobytes()


def random_steps(seed: int, steps: int) -> tuple[Inputs, list[Any]]:
    """Some values that go from step to step, through what is drawn."""
    choice = random.Random(seed)
    x, p = T.dvector("x"), T.tensor("float64", shape=(3,), name="p")
    scalars: list[Any] = [p[0], p[1] * 0.5, T.as_tensor_variable(0.25)]
    arrays: list[Any] = [p, T.tanh(p)]
    plan = [(choice.randrange(7), choice.randrange(3), choice.randrange(3), choice.randrange(2)) for _ in range(4)]
    odd = choice.choice([None, None, steps // 2])
    kept: list[Any] = []
    for t in range(steps):
        for kind, one, other, which in plan if t != odd else plan[1:]:
            match kind:
                case 0:
                    scalars[one] = T.sin(scalars[other]) + x[t]
                case 1:
                    scalars[one] = scalars[one] * x[steps - 1 - t] - scalars[other]
                case 2:
                    scalars[one] = (arrays[which] * scalars[other]).sum() * 0.3
                case 3:
                    arrays[which] = T.tanh(arrays[1 - which] * scalars[one])
                case 4:
                    arrays[which] = arrays[which] - arrays[1 - which].mean() * x[t]
                case 5:
                    scalars[one] = T.switch(x[t] > 0, scalars[other], scalars[one] * 0.5)
                case 6:
                    kept.append(scalars[other] * scalars[one])
    total = sum(kept[::3], scalars[0] + arrays[0].sum() + scalars[1] * arrays[1][2])
    return [x, p], [total, graphc.grad(total, x), graphc.grad(total, p)]
