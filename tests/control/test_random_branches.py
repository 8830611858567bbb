"""Random graphs with branches, in values, loops and derivatives, against a lazy evaluation in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.errors import IndexOutOfBounds, ShapeError
from graphc.ir.node import Node

Thunk: TypeAlias = Callable[[], Any]
Pair: TypeAlias = "tuple[Node, Thunk]"


def once(compute: Thunk) -> Thunk:
    """A computation that is carried out when it is first asked for."""
    known: list[Any] = []

    def ask() -> Any:
        if not known:
            known.append(compute())
        return known[0]

    return ask


class Program:
    """A random graph over vectors and scalars, each value with the thunk that computes it."""

    def __init__(self, seed: int, inputs: list[tuple[Node, np.ndarray[Any, Any]]], differ: bool) -> None:
        self.differ = differ
        self.random = random.Random(seed)
        self.vectors: list[Pair] = [(node, lambda value=value: value) for node, value in inputs if node.ndim]  # type: ignore[misc]
        self.scalars: list[Pair] = [(node, lambda value=value: value) for node, value in inputs if not node.ndim]  # type: ignore[misc]

        for _ in range(self.random.randrange(8, 24)):
            self.random.choice([self.elementwise, self.reduced, self.branch, self.branch, self.cut, self.several])()

    def pick(self, among: list[Pair]) -> Pair:
        """A value, more often one of the last."""
        return among[-1 - min(int(self.random.expovariate(0.4)), len(among) - 1)]

    def elementwise(self) -> None:
        (a, va), (b, vb), (s, vs) = self.pick(self.vectors), self.pick(self.vectors), self.pick(self.scalars)
        which = self.random.randrange(4)

        def added() -> Any:
            if va().shape != vb().shape:
                raise ValueError("sizes differ")
            return np.tanh(va() + vb())

        made: list[Pair] = [
            (T.tanh(a) * 0.75, once(lambda: np.tanh(va()) * 0.75)),
            (T.tanh(a * s), once(lambda: np.tanh(va() * vs()))),
            (T.sin(a) - s, once(lambda: np.sin(va()) - vs())),
            (a, va),
        ]
        pair = made[which]
        if which == 3 and (self.differ or a.type.shape == b.type.shape):
            pair = T.tanh(a + b), once(added)
        self.vectors.append(pair)

    def reduced(self) -> None:
        (a, va), (s, vs) = self.pick(self.vectors), self.pick(self.scalars)
        made: list[Pair] = [
            (T.tanh(a.sum()), once(lambda: np.tanh(va().sum()))),
            (a[0] * s, once(lambda: va()[0] * vs())),
            (T.cos(s), once(lambda: np.cos(vs()))),
        ]
        self.scalars.append(self.random.choice(made))

    def condition(self) -> Pair:
        s, vs = self.pick(self.scalars)
        limit = self.random.choice([-0.5, 0.0, 0.25])
        return T.gt(s, limit), once(lambda: vs() > limit)

    def branch(self) -> None:
        c, vc = self.condition()
        among = self.random.choice([self.vectors, self.scalars])
        (a, va), (b, vb) = self.pick(among), self.pick(among)
        if a is not b:  # else nothing asks for the condition
            among.append((graphc.ifelse(c, a, b), once(lambda: va() if vc() else vb())))

    def several(self) -> None:
        c, vc = self.condition()
        (a, va), (b, vb) = self.pick(self.vectors), self.pick(self.vectors)
        (s, vs), (t, vt) = self.pick(self.scalars), self.pick(self.scalars)
        if a is b or s is t:
            return
        one, two = graphc.ifelse(c, [a, s], [b, t])
        self.vectors.append((one, once(lambda: va() if vc() else vb())))
        self.scalars.append((two, once(lambda: vs() if vc() else vt())))

    def cut(self) -> None:
        """What changes sizes, or refuses short vectors."""
        if not self.differ:
            return self.elementwise()
        a, va = self.pick(self.vectors)

        def place() -> Any:
            return va()[2]

        def front() -> Any:
            return va()[: min(2, len(va()))]

        def joined() -> Any:
            return np.concatenate([va(), va()[:1]])

        if self.random.randrange(3):
            self.vectors.append(self.random.choice([(a[:2], once(front)), (T.concatenate([a, a[:1]]), once(joined))]))
        else:
            self.scalars.append((a[2], once(place)))
        return None


def drawn(seed: int, differ: bool) -> tuple[Program, list[Node], list[Any]]:
    rng = np.random.default_rng(seed)
    x, y = T.dvector("x"), T.dvector("y")
    if not differ:
        x, y = (T.TensorType("float64", shape=(3,))(name) for name in "xy")
    s = T.dscalar("s")
    values = [rng.normal(size=3), rng.normal(size=rng.integers(1, 5) if differ else 3), rng.normal()]
    inputs = list(zip([x, y, s], map(np.asarray, values), strict=True))
    return Program(seed, inputs, differ), [x, y, s], values


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "python"])
@pytest.mark.parametrize("seed", range(24))
def test_values(seed: int, mode: str) -> None:
    program, inputs, values = drawn(seed, True)
    outputs = [program.vectors[-1], program.scalars[-1]]
    f = graphc.function(inputs, [node for node, _ in outputs], mode, on_unused_input="ignore")
    try:
        wanted = [ask() for _, ask in outputs]
    except (ValueError, IndexError):
        with pytest.raises((ShapeError, IndexOutOfBounds)):
            f(*values)
        return
    for got, value in zip(f(*values), wanted, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["interpreted", "python", "compiled"])
@pytest.mark.parametrize("seed", range(8))
def test_derivatives(seed: int, mode: str) -> None:
    program, inputs, values = drawn(seed, False)
    (last, ask), (scalar, ask_scalar) = program.vectors[-1], program.scalars[-1]
    cost = last.sum() * scalar
    slopes = graphc.grad(cost, inputs, disconnected_inputs="ignore")
    f = graphc.function(inputs, [last, scalar, cost, *slopes], mode, on_unused_input="ignore")
    got = f(*values)
    np.testing.assert_allclose(got[0], ask(), rtol=1e-12)
    np.testing.assert_allclose(got[1], ask_scalar(), rtol=1e-12)
    for slope, value in zip(got[3:], values, strict=True):
        for place in np.ndindex(np.shape(value)):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [np.array(other, dtype=float) for other in values]
                moved[next(n for n, other in enumerate(values) if other is value)][place] += step
                ends.append(f(*moved)[2])
            np.testing.assert_allclose(slope[place], (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a size depends on")
@pytest.mark.parametrize("seed", [40, 41, 109])  # 109: a size is a result that nothing else needs
def test_derivatives_where_sizes_differ(seed: int) -> None:
    program, inputs, values = drawn(seed, True)
    values[1] = np.linspace(-1.0, 1.0, 4)
    (last, _), (scalar, _) = program.vectors[-1], program.scalars[-1]
    slopes = graphc.grad(last.sum() * scalar, inputs, disconnected_inputs="ignore")
    outputs = [last, scalar, *slopes]
    one, other = (
        graphc.function(inputs, outputs, mode, on_unused_input="ignore")(*values) for mode in ("interpreted", "python")
    )
    for got, want in zip(other, one, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
