"""Batch normalisation, with Theano's names and arguments.

In: tensors, scales and shifts of their layout. Out: nodes. Mean and variance are ordinary reductions: one pass over
memory makes both, and the gradient's sums are made in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.errors import RankError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe, told
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, cast
from graphc.options import options
from graphc.tensor.elementary import add, mul, reciprocal, sqrt, sub, true_div
from graphc.tensor.nnet.activations import in_floats
from graphc.tensor.nnet.normalization import normalize
from graphc.tensor.shaping import addbroadcast

__all__ = ["batch_normalization", "batch_normalization_test", "batch_normalization_train"]

LEAST_EPSILON = 1e-5
"""Theano's bound, which is cuDNN's."""


def batch_normalization(inputs: Any, gamma: Any, beta: Any, mean: Any, std: Any, mode: str = "low_mem") -> Node:
    """(inputs - mean) * gamma / std + beta, all of the rank of `inputs`, or broadcast to it from the last axis on.

    mode: Theano's "low_mem" or "high_mem", which are the same here.
    """
    if mode not in ("low_mem", "high_mem"):
        raise ValueError(f"batch_normalization: mode {mode!r} is neither 'low_mem' nor 'high_mem'")
    return add(mul(true_div(sub(inputs, mean), std), gamma), beta)


class _Layout:
    """How the parameters of a normalisation lie: the axes that are normalised over, and whether parameters keep these
    with size 1, or have the other axes alone."""

    def __init__(self, name: str, x: Node, axes: Any, given: Sequence[tuple[str, Node]]) -> None:
        what = told(lambda: f"{name} of {describe(x)} of type {x.type}")
        self.axes = _axes(axes, x.ndim, what)
        self.kept = tuple(axis for axis in range(x.ndim) if axis not in self.axes)
        self.rank = x.ndim if given[0][1].ndim == x.ndim else len(self.kept)
        self.is_short = self.rank != x.ndim
        for word, node in given:
            if node.ndim != self.rank:
                raise RankError(
                    f"{what}: {word} {describe(node)} has {node.ndim} axes: {given[0][0]} and it should have {x.ndim}, "
                    f"as the tensor, or {len(self.kept)}, those that are not normalised over"
                )

    def spread(self, node: Node) -> Node:
        """A parameter with all axes."""
        return layout.expand(node, self.axes) if self.is_short else addbroadcast(node, *self.axes)

    def short(self, node: Node) -> Node:
        """A statistic, which has all axes, in the layout of parameters."""
        return layout.drop(node, self.axes) if self.is_short else node


def _axes(axes: Any, rank: int, what: str) -> tuple[int, ...]:
    if isinstance(axes, str):
        if axes not in ("per-activation", "spatial"):
            raise ValueError(f"{what}: axes {axes!r} are neither 'per-activation', 'spatial' nor a tuple of numbers")
        found: tuple[int, ...] = (0,) if axes == "per-activation" else (0, *range(2, rank))
    else:
        found = tuple(sorted({int(axis) for axis in axes}))
    if not found or found[0] < 0 or found[-1] >= rank:
        raise ValueError(f"{what}: axes {axes} should be at least one of its axes")
    return found


def _epsilon(epsilon: Any, what: str) -> Any:
    if not isinstance(epsilon, Node) and np.dtype(options.floatX).type(epsilon) < LEAST_EPSILON:
        raise ValueError(f"{what}: epsilon should be at least {LEAST_EPSILON}, not {epsilon}")
    return epsilon


def batch_normalization_train(
    inputs: Any,
    gamma: Any,
    beta: Any,
    axes: Any = "per-activation",
    epsilon: Any = 1e-4,
    running_average_factor: Any = 0.1,
    running_mean: Any = None,
    running_var: Any = None,
) -> tuple[Node, ...]:
    """`inputs` normalised by their own mean and variance over `axes`, scaled by `gamma` and shifted by `beta`.

    axes: "per-activation" (the first), "spatial" (all but the second), or a tuple. gamma and beta have the sizes of
    the other axes, with or without axes of size 1 for those that are normalised over. Returns the result, the mean and
    1 / sqrt(variance + epsilon), in the layout of gamma; with `running_mean` and `running_var` also their new values,
    `running_average_factor` of the batch's (variance of m elements times m / (m - 1)) and the rest of the old ones.

        >>> x, gamma, beta = T.dtensor4("x"), T.dtensor4("gamma"), T.dtensor4("beta")
        >>> y, mean, invstd = T.nnet.bn.batch_normalization_train(x, gamma, beta, "spatial")

    Raises GraphTypeError for parameters of another rank, ValueError for axes that are none, an epsilon below 1e-5, or
    one running statistic alone.
    """
    x, given = in_floats(inputs), [("gamma", as_node(gamma)), ("beta", as_node(beta))]
    if (running_mean is None) != (running_var is None):
        raise ValueError("batch_normalization_train: running_mean and running_var should both be given, or neither")
    if running_mean is not None:
        given += [("running_mean", as_node(running_mean)), ("running_var", as_node(running_var))]
    parameters = _Layout("batch_normalization_train", x, axes, given)
    small = _epsilon(epsilon, "batch_normalization_train")
    scale, shift, *old = (parameters.spread(node) for _, node in given)
    result, mean, spread = normalize(x, parameters.axes, small, scale, shift)
    results = [mean, reciprocal(sqrt(add(spread, small)))]
    if old:
        count = cast(as_size_node(sizes.product(x.type.shape[axis] for axis in parameters.axes)), x.type.dtype)
        unbiased = mul(spread, true_div(count, sub(count, 1)))
        rest = sub(1, running_average_factor)
        for before, now in zip(old, (mean, unbiased), strict=True):
            new = add(mul(before, rest), mul(now, running_average_factor))
            results.append(cast(new, before.type.dtype))
    return (result, *map(parameters.short, results))


def batch_normalization_test(
    inputs: Any, gamma: Any, beta: Any, mean: Any, var: Any, axes: Any = "per-activation", epsilon: Any = 1e-4
) -> Node:
    """`inputs` normalised by a given mean and variance: (inputs - mean) * gamma / sqrt(var + epsilon) + beta.

    The arguments are as those of `batch_normalization_train`, mean and var in the layout of gamma.
    """
    x = in_floats(inputs)
    given = [("gamma", as_node(gamma)), ("beta", as_node(beta)), ("mean", as_node(mean)), ("var", as_node(var))]
    parameters = _Layout("batch_normalization_test", x, axes, given)
    small = _epsilon(epsilon, "batch_normalization_test")
    scale, shift, centre, spread = (parameters.spread(node) for _, node in given)
    return add(mul(sub(x, centre), true_div(scale, sqrt(add(spread, small)))), shift)


explain_all(globals())
