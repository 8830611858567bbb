"""Normalisation: of each feature over the batch, or of each example over its features."""

from __future__ import annotations

from typing import Any

from graphc.ir.node import Node
from graphc.layers import initial
from graphc.layers.layer import Layer
from graphc.ops.shape import expand
from graphc.tensor.elementary import sqr, sqrt
from graphc.tensor.reductions import mean


class BatchNorm(Layer):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, of each feature along `axis`, over all other axes.

    In training mean and variance are those of the batch, and their running averages, which new data is normalised by,
    move by `momentum` of the way to them (the variance to that of a sample: n / (n - 1) times the batch's). Ioffe and
    Szegedy, ICML 2015.
    """

    def __init__(
        self, axis: int = 1, epsilon: float = 1e-5, momentum: float = 0.1, n_in: int | None = None, **common: Any
    ) -> None:
        super().__init__(**common)
        self.axis, self.epsilon, self.momentum, self.n_in = axis, epsilon, momentum, n_in

    def build(self, x: Node) -> None:
        shape = (self.features(x, self.axis, self.n_in),)
        self.gamma = self.param("gamma", shape, initial.constant(1))
        self.beta = self.param("beta", shape, initial.zeros)
        self.mean = self.param("mean", shape, initial.zeros, moved=False)
        self.variance = self.param("variance", shape, initial.constant(1), moved=False)

    def output(self, x: Node, train: bool) -> Node:
        others = tuple(axis for axis in range(x.ndim) if axis != self.axis % x.ndim)
        centre: Node = self.mean
        variance: Node = self.variance
        if train:
            centre = mean(x, others)
            variance = mean(sqr(x - expand(centre, others)), others)
            count = (x.size // centre.size).astype(x.dtype)
            sample = variance * (count / (count - 1).clip(1, count))
            self.updates = {
                self.mean: self.mean + self.momentum * (centre - self.mean),
                self.variance: self.variance + self.momentum * (sample - self.variance),
            }
        scale = self.gamma / sqrt(variance + self.epsilon)
        return (x - expand(centre, others)) * expand(scale, others) + expand(self.beta, others)


class LayerNorm(Layer):
    """The same of each example, over its last axis: as in training, so with new data. Ba et al., 2016."""

    def __init__(self, epsilon: float = 1e-5, **common: Any) -> None:
        super().__init__(**common)
        self.epsilon = epsilon

    def build(self, x: Node) -> None:
        shape = (self.features(x),)
        self.gamma = self.param("gamma", shape, initial.constant(1))
        self.beta = self.param("beta", shape, initial.zeros)

    def output(self, x: Node, train: bool) -> Node:
        centred = x - mean(x, -1, keepdims=True)
        return centred / sqrt(mean(sqr(centred), -1, keepdims=True) + self.epsilon) * self.gamma + self.beta
