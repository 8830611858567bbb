"""Random programs with random sizes and indices, most of them wrong somewhere: every mode refuses the same calls with
the same message, changes nothing then, and otherwise gives the same results.

A random program is built of indexing, reshapes, joins, products and their gradients, over inputs that few programs can
take; its bounds are numbers, scalar inputs and sizes of other arrays.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import graphc
import graphc.tensor as T
from graphc.errors import GraphcError
from graphc.ir.node import Node
from tests.support.thorough import some

Array = NDArray[Any]
CALLS = 4


class Programs:
    """Random programs over the given leaves."""

    def __init__(self, seed: int, matrices: Sequence[Node], indices: Node, numbers: Sequence[Node]) -> None:
        self.choice = random.Random(seed).choice
        self.matrices = matrices
        self.indices = indices
        self.numbers = numbers

    def size(self) -> Any:
        """A bound or size, which may be wrong."""
        i, n = self.numbers
        first, *_, last = (matrix.shape[0] for matrix in self.matrices)
        return self.choice([i, n, i + n, n - 1, -i, first, last, -1, 0, 1, 2, 3])

    def cut(self) -> slice:
        step = self.choice([None, None, 1, 2, -1, -2, self.numbers[1]])
        return slice(self.choice([None, self.size()]), self.choice([None, self.size()]), step)

    def program(self, depth: int) -> Any:
        """An expression with `depth` operations one within the other."""
        if not depth:
            return self.choice([*self.matrices, T.cast(self.indices, "float64")])
        a, b = self.program(depth - 1), self.program(self.choice(range(depth)))
        makers: list[Callable[[], Any]] = [
            lambda: a + b,
            lambda: a * 2 - b,
            lambda: T.dot(a, b),
            lambda: T.where(a > 0, a, b),
            lambda: a[self.size()],
            lambda: a[..., self.size()],
            lambda: a[self.cut()],
            lambda: a[..., self.cut()],
            lambda: a[self.indices] * 1.5,
            lambda: T.take(a, self.indices),
            lambda: a.reshape((self.size(), self.size())),
            lambda: a.reshape((self.size(), -1)),
            lambda: T.concatenate([a, b]),
            lambda: T.stack([a, b]),
            lambda: T.set_subtensor(a[self.size()], 1.5),
            lambda: T.set_subtensor(a[self.cut()], b),
            lambda: T.inc_subtensor(a[self.indices], 2.0),
            lambda: a.sum(axis=0),
            lambda: a.max(axis=-1),
            lambda: a.T,
            lambda: T.zeros((self.size(), self.size())),
            lambda: T.arange(self.size()) * 1.0,
            lambda: T.eye(self.size(), self.size()),
            lambda: T.nnet.softmax(a),
            lambda: T.outer(a, b),
        ]
        return self.choice(makers)()


def arguments(seed: int) -> list[Any]:
    """Arrays of 0 to 3 rows and columns, indices from -3 to 3, numbers from -4 to 6."""
    pick, rng = random.Random(seed), np.random.default_rng(seed)

    def size() -> int:
        return pick.choice([0, 1, 2, 3])

    x, y = rng.normal(size=(size(), 3)), rng.normal(size=(3, size()))
    indices = np.array([pick.choice([-3, -1, 0, 1, 2, 3]) for _ in range(size())], "int64")
    i, n = pick.choice([-4, -1, 0, 1, 2, 5]), pick.choice([-2, 0, 1, 2, 3, 6])
    return [x, y, np.arange(float(size())), indices, i, n]


def build(seed: int, matrices: Sequence[Node], indices: Node, numbers: Sequence[Node]) -> tuple[list[Node], Node]:
    """A random program with its gradients, and another one; what cannot be built is drawn again."""
    for attempt in range(20):
        programs = Programs(1000 * attempt + seed, matrices, indices, numbers)
        try:
            result, other = programs.program(1 + seed % 3), programs.program(2)
            gradients = graphc.grad((result * 1.5).sum(), list(matrices), disconnected_inputs="ignore")
        except GraphcError:
            continue
        return [result, *gradients], other
    raise AssertionError(f"seed {seed}: no program can be built")


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(60)))
def test_modes_fail_alike(seed: int) -> None:
    x, y, v = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v")
    indices, i, n = T.lvector("indices"), T.lscalar("i"), T.lscalar("n")
    w = graphc.shared(np.arange(3.0), "w")
    outputs, other = build(seed, [x, y, v, w], indices, [i, n])
    modes = ("interpreted", "python", "compiled") if seed % 2 else ("interpreted", "python")
    calls = [
        graphc.function([x, y, v, indices, i, n], outputs, updates=[(w, w + other.sum())], mode=mode,
                        on_unused_input="ignore")
        for mode in modes
    ]  # fmt: skip
    for number in range(CALLS):
        values = arguments(1000 * seed + number)
        outcomes = [outcome(call, values, w) for call in calls]
        for found in outcomes[1:]:
            assert type(found) is type(outcomes[0])
            if isinstance(found, list):
                for got, want in zip(found, outcomes[0], strict=True):
                    assert got.shape == want.shape and got.dtype == want.dtype
                    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
            else:
                assert str(found) == str(outcomes[0])


def outcome(call: Any, values: list[Any], w: Any) -> Any:
    """The results with the new value of `w`, or the error, which has changed nothing."""
    before = np.arange(3.0)
    w.set_value(before)
    try:
        return [*call(*values), w.get_value()]
    except GraphcError as error:
        np.testing.assert_array_equal(w.get_value(), before)
        return error
