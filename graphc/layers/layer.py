"""`Layer`, the base class of layers: it makes parameters at the first call.

In: a tensor with static sizes, except that of the batch. Out: a tensor; the layer's named parameters, and the updates
that training makes besides those of the optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.errors import GraphTypeError, ShapeError
from graphc.ir.node import Node, describe
from graphc.layers.initial import Initialiser
from graphc.random.streams import RandomStreams
from graphc.shared import SharedVariable, shared
from graphc.tensor.variables import as_tensor


class Source:
    """The random numbers of a network: `rng` draws initial parameters, `streams` the masks of each call."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.streams = RandomStreams(seed)


class Layer:
    """A part of a network. `layer(x)` is its output for prediction, `layer(x, train=True)` that for training.

    name: the prefix of the parameters' names, by default that of the class. dtype: of the parameters. seed: of initial
    values and random masks. A subclass defines `build(x)`, which makes parameters with `self.param`, and
    `output(x, train)`:

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
        """The parameters that an optimiser updates."""
        self.state: list[SharedVariable] = []
        """Shared variables that training updates without gradients (running averages)."""
        self.updates: dict[SharedVariable, Node] = {}
        """The new values of `state`, in the graph of the last output for training."""
        self.built = False
        self.static = True
        """True: parameters have static sizes, which compiled code is specialised to."""

    def __call__(self, x: Any, train: bool = False) -> Node:
        node = as_tensor(x)
        if not self.built:
            self.build(node)
            self.built = True
        return self.output(node, train)

    def build(self, x: Node) -> None:
        """Make the parameters for inputs like `x`."""

    def output(self, x: Node, train: bool) -> Node:
        """Return the output for `x`, from parameters that `build` has made."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its output is")

    def param(self, what: str, shape: Sequence[Any], initial: Initialiser, moved: bool = True) -> SharedVariable:
        """Make a shared variable named `<layer>.<what>`, and append it to `params`; to `state` where `moved` is False.
        Raises GraphTypeError for a size that is not static."""
        sizes = [size for size in shape if isinstance(size, int | np.integer)]
        if len(sizes) != len(shape):
            raise GraphTypeError(f"{self.name}: {what} needs sizes that are known before there is data, not {shape!r}")
        value = np.asarray(initial([int(size) for size in sizes], self.source.rng), self.dtype)
        variable = shared(value, f"{self.name}.{what}", borrow=True, shape=value.shape if self.static else None)
        (self.params if moved else self.state).append(variable)
        return variable

    def holds(self, part: Layer) -> None:
        """Make a layer a part of this one, which shares its dtype, random numbers and lists of parameters."""
        part.name, part.dtype, part.source, part.static = (
            f"{self.name}.{part.name}",
            self.dtype,
            self.source,
            self.static,
        )
        part.params, part.state, part.updates = self.params, self.state, self.updates

    def features(self, x: Node, axis: int = -1, given: int | None = None) -> int:
        """Return the size of `x` along an axis: the static one, or `given`. Raises GraphTypeError where there is
        neither, ShapeError where they differ."""
        size = x.type.shape[axis] if x.ndim else None
        if given is not None and isinstance(size, int) and size != given:
            raise ShapeError(f"{self.name} takes {given} numbers; {describe(x)} of type {x.type} has {size}")
        if given is None and not isinstance(size, int):
            raise GraphTypeError(
                f"{self.name}: how many numbers {describe(x)} of type {x.type} has is not known; give n_in, or the "
                "input a shape"
            )
        return given if given is not None else int(size)  # type: ignore[arg-type]
