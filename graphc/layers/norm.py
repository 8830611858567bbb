"""Normalisation: of each feature over the batch, or of each example over its features. Thin over `tensor.nnet`."""

from __future__ import annotations

from typing import Any

from graphc.errors import ArgumentError
from graphc.ir.node import Node
from graphc.layers import initial
from graphc.layers.layer import Layer
from graphc.ops.shape import drop, expand
from graphc.tensor.nnet import bn, normalization


class _Norm(Layer):
    """A scale, `gamma`, and a shift, `beta`, of each feature along `axis`."""

    def __init__(self, axis: int, epsilon: float, n_in: int | None, common: dict[str, Any]) -> None:
        super().__init__(**common)
        self.axis, self.epsilon, self.n_in = axis, epsilon, n_in

    def build(self, x: Node) -> None:
        self.shape = (self.features(x, self.axis, self.n_in),)
        self.gamma = self.param("gamma", self.shape, initial.constant(1))
        self.beta = self.param("beta", self.shape, initial.zeros)


class BatchNorm(_Norm):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, of each feature along `axis`, over all other axes.

    In training mean and variance are those of the batch, and their running averages, which new data is normalised by,
    move by `momentum` of the way to them (the variance to that of a sample: n / (n - 1) times the batch's). Ioffe and
    Szegedy, ICML 2015.
    """

    def __init__(
        self, axis: int = 1, epsilon: float = 1e-5, momentum: float = 0.1, n_in: int | None = None, **common: Any
    ) -> None:
        super().__init__(axis, epsilon, n_in, common)
        self.momentum = momentum

    def build(self, x: Node) -> None:
        super().build(x)
        self.mean = self.param("mean", self.shape, initial.zeros, moved=False)
        self.variance = self.param("variance", self.shape, initial.constant(1), moved=False)

    def output(self, x: Node, train: bool) -> Node:
        others = [axis for axis in range(x.ndim) if axis != self.axis % x.ndim]
        scales = self.gamma, self.beta
        if not train:
            return bn.batch_normalization_test(x, *scales, self.mean, self.variance, others, self.epsilon)
        result, *found = normalization.normalize(x, others, self.epsilon, *(expand(each, others) for each in scales))
        mean, variance = (drop(each, others) for each in found)
        count = (x.size // self.mean.size).astype(x.dtype)
        sample = variance * (count / (count - 1).clip(1, count))  # of one example it stays 0
        self.updates = {
            self.mean: self.mean + self.momentum * (mean - self.mean),
            self.variance: self.variance + self.momentum * (sample - self.variance),
        }
        return result


class LayerNorm(_Norm):
    """The same of each example, over its last axis: as in training, so with new data. Ba et al., 2016."""

    def __init__(self, epsilon: float = 1e-5, **common: Any) -> None:
        super().__init__(-1, epsilon, None, common)

    def output(self, x: Node, train: bool) -> Node:
        return normalization.layer_norm(x, self.gamma, self.beta, epsilon=self.epsilon)


class InstanceNorm(_Norm):
    """The same of each channel of each image, (batch, channels, …). Ulyanov et al., 2016."""

    def __init__(self, epsilon: float = 1e-5, n_in: int | None = None, **common: Any) -> None:
        super().__init__(1, epsilon, n_in, common)

    def output(self, x: Node, train: bool) -> Node:
        return normalization.instance_norm(x, self.gamma, self.beta, self.epsilon)


class GroupNorm(_Norm):
    """The same of each of `groups` equal groups of channels of each image, (batch, channels, …). Wu and He, 2018."""

    def __init__(self, groups: int, epsilon: float = 1e-5, n_in: int | None = None, **common: Any) -> None:
        super().__init__(1, epsilon, n_in, common)
        self.groups = groups

    def build(self, x: Node) -> None:
        super().build(x)
        if self.groups < 1 or self.shape[0] % self.groups:
            raise ArgumentError(f"{self.name}: {self.shape[0]} channels are no multiple of {self.groups} groups")

    def output(self, x: Node, train: bool) -> Node:
        return normalization.group_norm(x, self.groups, self.gamma, self.beta, self.epsilon)
