"""Recurrent layers over `scan`: (batch, time, n_in) to (batch, time, n_out), or to the last state.

What a step needs of its input is one product for all steps, before the loop; the gates of a step are one product of its
state.
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
    """h' = tanh(x w + h u + b), from h = 0.

    sequences: whether the output has the states after all steps, (batch, time, n_out), or the last, (batch, n_out).
    backwards: steps begin at the end; states stand where their input does.
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
        """The biases at the beginning."""
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
    """Of a step; the first is the output."""

    def step(self, given: Node, state: Node) -> Any:
        """The next states, from what the input gives, and the states before."""
        return tanh(given + dot(state, self.u))

    def part(self, x: Node, gate: int, gates: int = 1) -> Node:
        """What some gates have of numbers for all."""
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
