"""What layers have in common: parameters that are made when the first input is seen.

In: a tensor whose sizes, but for that of the batch, are known. Out: a tensor; the layer's parameters, what they are
called, and the updates that training makes besides those of an optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError, ShapeError
from graphc.ir.node import Node, describe
from graphc.layers.initial import Initialiser
from graphc.ops.elementwise import as_node
from graphc.random.streams import RandomStreams
from graphc.shared import SharedVariable, shared


class Source:
    """Where a network's random numbers come from: those that parameters begin with, and those of each call."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.streams = RandomStreams(seed)


class Layer:
    """A part of a network. `layer(x)` is its output for new data, `layer(x, train=True)` that for training.

    To write one, define `build(x)`, which makes parameters with `self.param`, and `output(x, train)`:

        class Scale(Layer):
            def build(self, x):
                self.factor = self.param("factor", x.type.shape[-1:], initial.constant(1))

            def output(self, x, train):
                return x * self.factor
    """

    def __init__(self, name: str | None = None, dtype: str = "float32", seed: int = 0) -> None:
        self.name = name or type(self).__name__.lower()
        self.dtype = dtype
        self.source = Source(seed)
        self.params: list[SharedVariable] = []
        """What an optimiser moves."""
        self.state: list[SharedVariable] = []
        """What training changes otherwise."""
        self.updates: dict[SharedVariable, Node] = {}
        """How, from the last output for training."""
        self.built = False
        self.static = True
        """Whether code is compiled for the sizes of the parameters, or for any."""

    def __call__(self, x: Any, train: bool = False) -> Node:
        node = as_node(x)
        if not self.built:
            self.build(node)
            self.built = True
        return self.output(node, train)

    def build(self, x: Node) -> None:
        """Make the parameters for inputs like `x`."""

    def output(self, x: Node, train: bool) -> Node:
        """The output, of parameters that are there."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its output is")

    def param(self, what: str, shape: Sequence[Any], initial: Initialiser, moved: bool = True) -> SharedVariable:
        """A shared variable of static sizes, called after the layer; among `params`, or among `state` if not `moved`.
        Raises GraphTypeError where a size is not known."""
        sizes = [size for size in shape if isinstance(size, int | np.integer)]
        if len(sizes) != len(shape):
            raise GraphTypeError(f"{self.name}: {what} needs sizes that are known before there is data, not {shape!r}")
        value = np.asarray(initial([int(size) for size in sizes], self.source.rng), self.dtype)
        variable = shared(value, f"{self.name}.{what}", borrow=True, shape=value.shape if self.static else None)
        (self.params if moved else self.state).append(variable)
        return variable

    def holds(self, part: Layer) -> None:
        """Make a layer part of this one: its parameters are among this one's, of the same dtype and seed."""
        part.name, part.dtype, part.source, part.static = (
            f"{self.name}.{part.name}",
            self.dtype,
            self.source,
            self.static,
        )
        part.params, part.state, part.updates = self.params, self.state, self.updates

    def features(self, x: Node, axis: int = -1, given: int | None = None) -> int:
        """How many numbers there are along an axis, which must be known, or is given. Raises GraphTypeError."""
        size = x.type.shape[axis] if x.ndim else None
        if given is not None and isinstance(size, int) and size != given:
            raise ShapeError(f"{self.name} takes {given} numbers; {describe(x)} of type {x.type} has {size}")
        if given is None and not isinstance(size, int):
            raise GraphTypeError(
                f"{self.name}: how many numbers {describe(x)} of type {x.type} has is not known; give n_in, or the "
                "input a shape"
            )
        return given if given is not None else int(size)  # type: ignore[arg-type]
