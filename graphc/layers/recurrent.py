"""Recurrent layers over `scan`: from (batch, time, n_in) to (batch, time, n_out), or to the last state.

The input's part of all gates is one product for all steps, before the loop; the state's part is one product a step.
"""

from __future__ import annotations

from typing import Any

from graphc.control.scan import scan
from graphc.errors import RankError
from graphc.ir.node import Node, describe
from graphc.layers import initial
from graphc.layers.initial import Initialiser
from graphc.layers.layer import Layer
from graphc.ops.shape import zeros
from graphc.tensor.elementary import sigmoid, tanh
from graphc.tensor.products import dot


class Recurrent(Layer):
    """A simple recurrent layer: h' = tanh(x w + h u + b), from h = 0.

    n_out: the size of the state. sequences: True returns the states of all steps, (batch, time, n_out), False the last
    one, (batch, n_out). backwards: go from the last step to the first; each state stands at the place of its input.
    n_in: the size of the input, where it is not static. w, u: initialisers. Raises RankError for an input that is not
    of rank 3.
    """

    gates = 1

    def __init__(
        self,
        n_out: int,
        sequences: bool = False,
        backwards: bool = False,
        n_in: int | None = None,
        w: Initialiser | None = None,
        u: Initialiser | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.n_out, self.n_in, self.sequences, self.backwards = n_out, n_in, sequences, backwards
        self.initial_w, self.initial_u = w or initial.glorot_uniform(), u or initial.orthogonal()

    def build(self, x: Node) -> None:
        if x.ndim != 3:
            raise RankError(f"{self.name} takes (batch, time, numbers), not {describe(x)} of type {x.type}")
        n_in, wide = self.features(x, given=self.n_in), self.gates * self.n_out
        self.w = self.param("w", (n_in, wide), self.initial_w)
        self.u = self.param("u", (self.n_out, wide), self.initial_u)
        self.b = self.param("b", (wide,), self.initial_b)

    def initial_b(self, shape: Any, rng: Any) -> Any:
        """The initialiser of the biases."""
        return initial.zeros(shape, rng)

    def output(self, x: Node, train: bool) -> Node:
        given = dot(x, self.w) + self.b
        begin = [zeros(x.type.dtype, (given.type.shape[0], self.n_out)) for _ in range(self.states)]
        results, _ = scan(self.step, given.dimshuffle(1, 0, 2), begin, go_backwards=self.backwards, return_list=True)
        states: Node = results[0]
        if not self.sequences:
            return states[-1]
        return (states[::-1] if self.backwards else states).dimshuffle(1, 0, 2)

    states = 1
    """The number of states of a step; the first is the output."""

    def step(self, given: Node, state: Node) -> Any:
        """Return the next states. given: x w + b of this step."""
        return tanh(given + dot(state, self.u))

    def part(self, x: Node, gate: int, gates: int = 1) -> Node:
        """Return the columns of `gates` gates, from number `gate` on."""
        found: Node = x[:, gate * self.n_out : (gate + gates) * self.n_out]
        return found


class GRU(Recurrent):
    """A gated recurrent unit: z, r = sigmoid(x w + h u + b); h' = z h + (1 - z) tanh(x w + r (h u) + b). Cho et al.,
    2014, with the product before the gate, as cuDNN has it."""

    gates = 3

    def step(self, given: Node, state: Node) -> Any:
        kept = dot(state, self.u)
        gates = sigmoid(self.part(given, 0, 2) + self.part(kept, 0, 2))
        update, reset = self.part(gates, 0), self.part(gates, 1)
        return update * state + (1 - update) * tanh(self.part(given, 2) + reset * self.part(kept, 2))


class LSTM(Recurrent):
    """Long short-term memory: i, f, o = sigmoid(x w + h u + b); c' = f c + i tanh(x w + h u + b); h' = o tanh(c').
    Hochreiter and Schmidhuber, 1997, with Gers' forget gate, whose bias begins at `forget`."""

    gates = 4
    states = 2

    def __init__(self, n_out: int, sequences: bool = False, forget: float = 1.0, **common: Any) -> None:
        super().__init__(n_out, sequences, **common)
        self.forget = forget

    def initial_b(self, shape: Any, rng: Any) -> Any:
        """Zeros, but for the forget gate."""
        values = initial.zeros(shape, rng)
        values[self.n_out : 2 * self.n_out] = self.forget
        return values

    def step(self, given: Node, state: Node, cell: Node) -> Any:  # type: ignore[override]
        scores = given + dot(state, self.u)
        into, keep, out = (self.part(sigmoid(self.part(scores, 0, 3)), gate) for gate in range(3))
        cell = keep * cell + into * tanh(self.part(scores, 3))
        return [out * tanh(cell), cell]
