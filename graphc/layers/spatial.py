"""Layers over images, sequences and volumes: convolution and pooling.

In: (batch, channels, …), or with `channels_last` (batch, …, channels). Out: the same, of other sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.errors import GraphValueError, RankError
from graphc.ir.node import Node, describe
from graphc.layers import initial
from graphc.layers.dense import Function, activation_layer, initial_of
from graphc.layers.initial import Initialiser
from graphc.layers.layer import Layer
from graphc.ops.shape import expand
from graphc.tensor.nnet.sliding import convolution
from graphc.tensor.signal.pool import global_pool, pool


def _several(value: int | Sequence[int], rank: int, what: str) -> tuple[int, ...]:
    """Return one number for each of `rank` axes."""
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) != rank:
        raise GraphValueError(f"{what} {value!r}: there are {rank} axes")
    return numbers


class Conv(Layer):
    """Convolution: activation(cross-correlation of x with filters + b), over as many axes as `size` has numbers.

    n_out: the number of filters. size: of a filter; one number means 2 axes. border: "valid", "same" (results of size
    ceil(n / stride)), "full", "half", or paddings. groups: the number of parts into which channels and filters are
    divided; as many as channels is a depthwise convolution. n_in: the number of channels, where it is not static.
    Filters are (n_out, channels of a group, …) in either layout. Raises RankError and GraphValueError for an input that
    does not fit.

        Conv(16, 3, "relu", border="same")      (batch, 8, 32, 32) to (batch, 16, 32, 32)
    """

    def __init__(
        self,
        n_out: int,
        size: int | Sequence[int] = 3,
        activation: str | Function | None = None,
        border: Any = "valid",
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        n_in: int | None = None,
        channels_last: bool = False,
        w: Initialiser | None = None,
        bias: Initialiser | None = initial.zeros,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.rank = 2 if isinstance(size, int) else len(size)
        self.size = _several(size, self.rank, "size")
        self.stride, self.dilation = (_several(each, self.rank, "stride or dilation") for each in (stride, dilation))
        self.n_out, self.n_in, self.border, self.groups = n_out, n_in, border, groups
        self.channels_last = channels_last
        self.activation = activation_layer(activation or "linear", -1 if channels_last else 1)
        self.initial_w, self.initial_b = w or initial_of(activation), bias

    def build(self, x: Node) -> None:
        if x.ndim != self.rank + 2:
            raise RankError(f"{self.name} takes {self.rank + 2} axes; {describe(x)} of type {x.type} has {x.ndim}")
        n_in = self.features(x, -1 if self.channels_last else 1, self.n_in)
        if n_in % self.groups or self.n_out % self.groups:
            raise GraphValueError(f"{self.name}: {self.groups} groups of {n_in} channels and {self.n_out} results")
        self.w = self.param("w", (self.n_out, n_in // self.groups, *self.size), self.initial_w)
        self.b = None if self.initial_b is None else self.param("b", (self.n_out,), self.initial_b)
        self.holds(self.activation)

    def output(self, x: Node, train: bool) -> Node:
        # With channels last a kernel is (axes..., channels, results).
        w = self.w.dimshuffle(*range(2, 2 + self.rank), 1, 0) if self.channels_last else self.w
        how = self.stride, self.border, self.dilation, self.groups
        found = convolution(x, w, *how, channels_last=self.channels_last)
        if self.b is not None:
            found = found + (self.b if self.channels_last else expand(self.b, range(1, 1 + self.rank)))
        return self.activation(found)


class Pool(Layer):
    """Pooling: the maximum of each window; mode="average" takes the mean, "sum" the sum.

    size: of a window, over as many axes as it has numbers; one number means 2 axes; None pools all of each channel, to
    (batch, channels). stride: `size` where None. ignore_border: leave out windows that reach beyond the border. Raises
    RankError for an input of another rank.
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = 2,
        stride: int | Sequence[int] | None = None,
        mode: str = "max",
        ignore_border: bool = True,
        channels_last: bool = False,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.size = size if size is None else _several(size, 2 if isinstance(size, int) else len(size), "size")
        self.stride, self.mode = stride, {"average": "average_exc_pad"}.get(mode, mode)
        self.ignore_border, self.channels_last = ignore_border, channels_last

    def output(self, x: Node, train: bool) -> Node:
        rank = x.ndim - 2
        if self.size is not None and len(self.size) != rank:
            raise RankError(f"{self.name} takes {len(self.size) + 2} axes; {describe(x)} has {x.ndim}")
        if self.channels_last:
            x = x.dimshuffle(0, x.ndim - 1, *range(1, x.ndim - 1))
        if self.size is None:
            return global_pool(x, self.mode, rank).flatten(2)
        stride = None if self.stride is None else _several(self.stride, rank, "stride")
        found = pool(x, self.size, self.ignore_border, stride, None, self.mode)
        return found.dimshuffle(0, *range(2, x.ndim), 1) if self.channels_last else found
