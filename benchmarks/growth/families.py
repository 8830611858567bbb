"""Families of programs that grow: what compiling one takes should be in proportion to its size.

In: a library with JAX's names (graphc's, or JAX itself) and a size. Out: a function of arrays and its arguments, not
yet compiled. A size counts what the family repeats: parameters, layers, steps. Each repeated piece has numbers of its
own, so that no two are the same value.

    >>> function, arguments = FAMILIES["sums"].build(library, 50)
    >>> library.jit(function)(*arguments)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Program: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Family:
    """build: the program of a size. small: a size for tests, which count work at this size and at twice it.
    sizes: those whose growth is drawn."""

    build: Callable[[Any, int], Program]
    small: int
    sizes: Sequence[int]


FAMILIES: dict[str, Family] = {}


def family(small: int, first: int) -> Callable[[Callable[[Any, int], Program]], Callable[[Any, int], Program]]:
    """Register a function as a family under its name; its growth is drawn of `first`, 2, 4 and 8 times that."""

    def register(build: Callable[[Any, int], Program]) -> Callable[[Any, int], Program]:
        FAMILIES[build.__name__] = Family(build, small, [first, 2 * first, 4 * first, 8 * first])
        return build

    return register


def numbers(count: int) -> list[float]:
    return [0.1 + 0.8 * k / count for k in range(count)]


def gradient(library: Any, cost: Callable[..., Any], *arguments: Any) -> Program:
    """The value of a cost and its derivatives by the first argument."""
    return library.value_and_grad(cost), arguments


# --- many values ------------------------------------------------------------------------------------------------------


@family(24, 100)
def scalars(library: Any, n: int) -> Program:
    """Parameters that are numbers, a few operations for each, and all derivatives."""

    def cost(p: list[Any]) -> Any:
        return sum(0.5 * p[k] ** 2 + library.numpy.sin(p[k]) * p[k - 1] for k in range(n))

    return gradient(library, cost, numbers(n))


@family(8, 40)
def sums(library: Any, n: int) -> Program:
    """A sum over the same data for each of many parameters, and all derivatives."""

    def cost(p: list[Any], data: Any) -> Any:
        return sum(((data - library.numpy.sin(p[k]) * p[k - 1]) ** 2).sum() for k in range(n))

    return gradient(library, cost, numbers(n), np.linspace(-1.0, 2.0, 20))


@family(16, 100)
def outputs(library: Any, n: int) -> Program:
    """As many results as the size says, each a sum."""
    return lambda v: [library.numpy.exp(v * (k / n)).sum() for k in range(n)], (np.linspace(0.0, 1.0, 100),)


@family(48, 250)
def trees(library: Any, n: int) -> Program:
    """Vectors that are joined in pairs, and the pairs again."""

    def joined(x: Any) -> Any:
        parts = [library.numpy.tanh(x * value) for value in numbers(n)]
        while len(parts) > 1:
            pairs = [left * right + 0.5 for left, right in zip(parts[::2], parts[1::2], strict=False)]
            parts = pairs + parts[2 * len(pairs) :]
        return parts[0]

    return joined, (np.linspace(0.0, 1.0, 50),)


@family(20, 1250)
def chains(library: Any, n: int) -> Program:
    """Elementwise operations one after the other."""

    def last(x: Any) -> Any:
        for k in range(n):
            x = (library.numpy.tanh(x), x * 1.01 + 0.1 * k, library.numpy.sin(x))[k % 3]
        return x

    return last, (np.linspace(0.0, 1.0, 50),)


@family(8, 50)
def slices(library: Any, n: int) -> Program:
    """One vector of parameters that is cut into many, of two lengths."""

    def cost(p: Any) -> Any:
        total, start = 0.0, 0
        for k in range(n):
            stop = start + 3 + k % 2
            total = total + (library.numpy.tanh(p[start:stop]) * (1.0 + k)).sum()
            start = stop
        return total

    return gradient(library, cost, np.linspace(0.0, 1.0, 4 * n))


@family(12, 50)
def concatenations(library: Any, n: int) -> Program:
    """Vectors that are joined to one."""

    def cost(x: Any) -> Any:
        joined = library.numpy.concatenate([library.numpy.sin(x * value) for value in numbers(n)])
        return (joined * joined).sum()

    return gradient(library, cost, np.linspace(0.0, 1.0, 20))


@family(24, 250)
def casts(library: Any, n: int) -> Program:
    """Values that change their dtype."""

    def last(x: Any) -> Any:
        for k in range(n):
            x = (x * (1.0 + k)).astype(("float32", "int32", "float64")[k % 3]) % 7
        return x

    return last, (np.linspace(0.0, 1.0, 50),)


@family(6, 25)
def gathers(library: Any, n: int) -> Program:
    """Tables that are looked up in, and their derivatives."""

    def cost(tables: list[Any], places: Any) -> Any:
        return sum((table[(places + k) % 10] ** 2).sum() for k, table in enumerate(tables))

    return gradient(library, cost, [np.full((10, 4), value) for value in numbers(n)], np.arange(15) % 10)


@family(4, 10)
def draws(library: Any, n: int) -> Program:
    """Random numbers of many keys."""

    def total(key: Any, x: Any) -> Any:
        for k in range(n):
            x = library.numpy.tanh(x + library.random.normal(library.random.fold_in(key, k), (50,)))
        return x

    return total, (library.random.key(3), np.zeros(50))


@family(4, 10)
def factorisations(library: Any, n: int) -> Program:
    """Systems that are solved one after the other, and the derivatives of their right side."""

    def cost(b: Any, a: Any) -> Any:
        for k in range(n):
            b = library.numpy.tanh(library.numpy.linalg.solve(a + k * library.numpy.eye(20), b))
        return b.sum()

    return gradient(library, cost, np.ones(20), 20 * np.eye(20) + 0.1)


# --- control ----------------------------------------------------------------------------------------------------------


@family(4, 10)
def loops(library: Any, n: int) -> Program:
    """Loops beside each other, of which each has numbers of its own."""

    def cost(x: Any) -> Any:
        total = 0.0
        for k in range(n):
            last, _ = library.lax.scan(lambda s, one, k=k: (library.numpy.sin(s) * one + 0.1 * k, None), 0.5, x)
            total = total + last
        return total

    return gradient(library, cost, np.linspace(0.0, 1.0, 30))


@family(3, 8)
def loops_inside(library: Any, n: int) -> Program:
    """Loops inside a step of a loop."""

    def step(state: Any, row: Any) -> Any:
        for k in range(n):
            state, _ = library.lax.scan(lambda s, one, k=k: (library.numpy.sin(s) * one + 0.1 * k, None), state, row)
        return state, None

    def cost(x: Any) -> Any:
        return library.lax.scan(step, 0.5, x)[0]

    return gradient(library, cost, np.linspace(0.0, 1.0, 60).reshape(6, 10))


@family(4, 20)
def branches(library: Any, n: int) -> Program:
    """Branches one after the other."""

    def cost(x: Any) -> Any:
        for k in range(n):
            x = library.lax.cond(x.sum() > k, lambda v, k=k: library.numpy.tanh(v) + k, lambda v: v * 1.5, x)
        return x.sum()

    return gradient(library, cost, np.linspace(0.0, 1.0, 30))


# --- unrolled loops ---------------------------------------------------------------------------------------------------


@family(16, 100)
def steps_of_numbers(library: Any, n: int) -> Program:
    """A recurrence of vectors, written as Python's loop."""

    def cost(x: Any) -> Any:
        for i in range(n):
            x = library.numpy.sin(x) * x + i
        return x.sum()

    return gradient(library, cost, np.linspace(0.0, 1.0, 10))


@family(6, 40)
def steps_of_a_net(library: Any, n: int) -> Program:
    """A recurrent net with one matrix for all steps."""

    def cost(w: Any, h: Any, x: Any) -> Any:
        for i in range(n):
            h = library.numpy.tanh(w @ h + x[i])
        return (h * h).sum()

    return gradient(library, cost, 0.3 * np.eye(10), np.zeros(10), np.linspace(0.0, 1.0, 10 * n).reshape(n, 10))


@family(3, 15)
def steps_of_a_filter(library: Any, n: int) -> Program:
    """Kalman's filter over matrices."""
    jnp = library.numpy

    def cost(move: Any, seen: Any, noise: Any, y: Any) -> Any:
        m, spread, total = jnp.zeros(4), jnp.eye(4), 0.0
        for t in range(n):
            m, spread = move @ m, move @ spread @ move.T + noise
            shown = spread @ seen
            expected, innovation = seen @ shown + 0.5, y[t] - seen @ m
            gain = shown / expected
            m, spread = m + gain * innovation, spread - jnp.outer(gain, shown)
            total = total + jnp.log(expected) + innovation**2 / expected
        return total

    move = 0.9 * np.eye(4) + 0.02
    return gradient(library, cost, move, np.ones(4), 0.1 * np.eye(4), np.linspace(0.0, 1.0, n))


@family(16, 100)
def steps_that_are_stacked(library: Any, n: int) -> Program:
    """A path whose points are kept in a list."""

    def path(x: Any, v: Any) -> Any:
        points = []
        for k in range(n):
            v = v - 0.01 * library.numpy.sin(x) + 0.001 * k
            x = x + 0.1 * v
            points.append(x)
        return library.numpy.stack(points)

    return path, (np.linspace(0.0, 1.0, 10), np.zeros(10))


# --- models -----------------------------------------------------------------------------------------------------------


@family(8, 15)
def layers(library: Any, n: int) -> Program:
    """A step of gradient descent of a network, whose parameters are all replaced."""

    def cost(parameters: Any, x: Any) -> Any:
        for w, b in parameters:
            x = library.numpy.tanh(x @ w + b)
        return (x**2).mean()

    def step(parameters: Any, x: Any) -> Any:
        slopes = library.grad(cost)(parameters, x)
        return [(w - 0.1 * gw, b - 0.1 * gb) for (w, b), (gw, gb) in zip(parameters, slopes, strict=True)]

    made = [(value * np.eye(20), np.full(20, value)) for value in numbers(n)]
    return step, (made, np.ones((8, 20)))


@family(6, 25)
def updates(library: Any, n: int) -> Program:
    """Adam's step of many vectors."""

    def step(state: Any, x: Any) -> Any:
        new = []
        for k, (p, m, v) in enumerate(state):
            slope = p - x * k
            m, v = 0.9 * m + 0.1 * slope, 0.99 * v + 0.01 * slope**2
            new.append((p - 0.01 * m / (library.numpy.sqrt(v) + 1e-8), m, v))
        return new

    return step, ([(np.full(9, value), np.zeros(9), np.zeros(9)) for value in numbers(n)], np.ones(9))


@family(8, 25)
def jitted_inside(library: Any, n: int) -> Program:
    """A compiled function that calls another, with arguments of three shapes."""
    inner = library.jit(lambda x, s: library.numpy.tanh(x * s) / (1.0 + (x * x).sum()))

    def outer(x: Any, y: Any, s: Any) -> Any:
        for k in range(n):
            x, y, s = inner(x, 0.1 * k), inner(y, s), inner(s, 1.0)
        return x, y, s

    return outer, (np.ones(20), np.ones((4, 5)), 0.5)


@family(8, 20)
def models(library: Any, n: int) -> Program:
    """A hierarchical model: groups with a name each, of different numbers of observations, all derivatives."""
    jnp = library.numpy

    def cost(p: Any, data: Any) -> Any:
        mean, scale = p["mean"], jnp.exp(p["log_scale"])
        total = 0.5 * mean**2 + p["log_scale"] ** 2
        for k in range(n):
            own, noise = p[f"group{k}"], jnp.exp(p[f"log_noise{k}"])
            total = total + 0.5 * ((own - mean) / scale) ** 2 + jnp.log(scale) + 0.5 * p[f"log_noise{k}"] ** 2
            total = total + 0.5 * (((data[k] - own) / noise) ** 2).sum() + len(data[k]) * jnp.log(noise)
        return total

    names = [f"{kind}{k}" for k in range(n) for kind in ("group", "log_noise")]
    parameters = {"mean": 0.1, "log_scale": 0.2, **dict(zip(names, numbers(2 * n), strict=True))}
    return gradient(library, cost, parameters, [np.linspace(0.0, 1.0, 10 + k % 5) for k in range(n)])
