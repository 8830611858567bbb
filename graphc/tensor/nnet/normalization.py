"""Normalisation: tensors with mean 0 and variance 1 over some axes, and what networks make of that.

In: tensors, scales and shifts. Out: nodes. Mean and variance are made in one pass over memory. The derivative is
written out, so that its sums are made in one pass as well, and it in another:

    y = (x - m) s,  s = 1 / sqrt(v + epsilon)        dx = s (dy - mean(dy) - (x - m) s^2 mean(dy (x - m)))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from graphc.errors import GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe, told
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.windows import Sliding, filled_windows
from graphc.tensor.elementary import add, greater, mul, pow, reciprocal, sqr, sqrt, sub, true_div, where
from graphc.tensor.nnet.activations import in_floats
from graphc.tensor.reductions import mean as mean_of, sum, var
from graphc.tensor.shaping import normalise_axes

__all__ = [
    "group_norm", "instance_norm", "layer_norm", "local_response_normalization", "normalize", "rms_norm", "standardize",
]  # fmt: skip


def _count(x: Node, axes: Sequence[int]) -> Node:
    """How many elements axes have, as a number of the dtype of `x`."""
    return cast(as_size_node(sizes.product(x.type.shape[axis] for axis in axes)), x.type.dtype)


def normalize(x: Any, axes: Any, epsilon: Any = 1e-5, gamma: Any = None, beta: Any = None) -> tuple[Node, Node, Node]:
    """(x - mean) / sqrt(variance + epsilon) over `axes`, times `gamma` plus `beta` where they are given, which
    broadcast
    to x; with the mean and the variance, which keep those axes with size 1.

        >>> y, mean, variance = normalize(T.dtensor4("x"), (0, 2, 3))
    """
    node = in_floats(x)
    found = normalise_axes(axes, node.ndim, told(lambda: f"normalize of {describe(node)} of type {node.type}"))
    over = tuple(sorted(found))
    first = node.ndim
    while first and first - 1 in over:
        first -= 1
    joined = (*(axis for axis in over if axis < first), first) if first < node.ndim else over
    scale, shift = (None if given is None else _spread(node, as_node(given), first) for given in (gamma, beta))
    is_constant = all(
        sizes.equal(each.type.shape[axis], 1) for each in (scale, shift) if each is not None for axis in joined
    )
    within = (scale, shift) if is_constant else (None, None)
    result, mean, variance = _normalized(_with_joined_axes(node, first), joined, epsilon, *within)
    for name, parameter in (("mul", scale), ("add", shift)):
        if parameter is not None and not is_constant:
            result = elementwise(name, result, parameter)
    kept = tuple(1 if axis in over else size for axis, size in enumerate(node.type.shape))
    mean, variance = (layout.reshape(each, kept) for each in (mean, variance))
    return layout.reshape(result, node.type.shape), mean, variance


def _with_joined_axes(x: Node, first: int) -> Node:
    """`x` with its axes from `first` on as one: rows as long as can be."""
    if x.ndim - first < 2:
        return x
    return layout.reshape(x, (*x.type.shape[:first], sizes.product(x.type.shape[first:])))


def _spread(x: Node, parameter: Node, first: int) -> Node:
    """A parameter with the axes of `x`, those from `first` on as one."""
    whole = layout.expand(parameter, range(x.ndim - parameter.ndim)) if parameter.ndim < x.ndim else parameter
    if not all(sizes.equal(size, 1) for size in whole.type.shape[first:]):
        whole = layout.broadcast_to(whole, (*whole.type.shape[:first], *x.type.shape[first:]))
    return _with_joined_axes(whole, first)


def _normalized(x: Node, axes: tuple[int, ...], epsilon: Any, gamma: Node | None, beta: Node | None) -> list[Node]:
    """The result, the mean and the variance; `gamma` and `beta` are constant along the axes."""
    mean, variance = mean_of(x, axes, keepdims=True), var(x, axes, keepdims=True)
    given = {"epsilon": epsilon if isinstance(epsilon, Node) else None, "gamma": gamma, "beta": beta}
    for name in ("gamma", "beta"):
        if (parameter := given[name]) is not None:
            given[name] = layout.broadcast_to(cast(parameter, x.type.dtype), mean.type.shape)
    inverse = reciprocal(sqrt(add(variance, epsilon)))
    result = mul(sub(x, mean), inverse if given["gamma"] is None else mul(inverse, given["gamma"]))
    result = result if given["beta"] is None else add(result, given["beta"])
    names = [name for name, node in given.items() if node is not None]

    def derivative(
        inputs: Sequence[Node], results: Sequence[Node], cotangents: Mapping[int, Node], wanted: Collection[int]
    ) -> list[Node | None]:
        (x, *rest), (_, mean, variance) = inputs, results
        named, count, centred = dict(zip(names, rest, strict=True)), _count(x, axes), sub(x, mean)
        found: dict[str, Node] = {}
        parts: list[Node] = []
        if 0 in cotangents:
            inverse = reciprocal(sqrt(add(variance, named.get("epsilon", epsilon))))
            # Of no elements the variance is NaN, but the sums that it is multiplied by are over none: 0.
            inverse = where(greater(count, 0), inverse, 0)
            scale = mul(inverse, named["gamma"]) if "gamma" in named else inverse
            found["beta"] = sum(cotangents[0], axes, keepdims=True)
            along = sum(mul(cotangents[0], centred), axes, keepdims=True)
            found["gamma"] = mul(along, inverse)
            steep = mul(along, sqr(inverse))
            even = sub(cotangents[0], true_div(found["beta"], count))
            parts.append(mul(sub(even, mul(centred, true_div(steep, count))), scale))
            if "epsilon" in named:
                whole = sum(mul(mul(steep, scale), -0.5))
                found["epsilon"] = cast(whole, named["epsilon"].type.dtype)
        if 1 in cotangents:
            parts.append(layout.broadcast_to(true_div(cotangents[1], count), x.type.shape))
        if 2 in cotangents:
            parts.append(mul(centred, true_div(mul(cotangents[2], 2), count)))
        total = add(*parts) if len(parts) > 1 else parts[0]
        return [total, *(found.get(name) for name in names)]

    nodes = [given[name] for name in names]
    return overridden([result, mean, variance], [x, *(node for node in nodes if node is not None)], derivative)


def standardize(x: Any, axis: Any = -1, epsilon: Any = 1e-5) -> Node:
    """`x` with mean 0 and variance 1 over `axis`: (x - mean) / sqrt(variance + epsilon)."""
    return normalize(x, axis, epsilon)[0]


def layer_norm(x: Any, gamma: Any = None, beta: Any = None, axes: Any = -1, epsilon: Any = 1e-5) -> Node:
    """`standardize` over `axes`, the last one by default, times `gamma` plus `beta`, which broadcast to x
    (Ba et al. 2016)."""
    return normalize(x, axes, epsilon, gamma, beta)[0]


def rms_norm(x: Any, gamma: Any = None, axes: Any = -1, epsilon: Any = 1e-5) -> Node:
    """x / sqrt(mean(x**2) + epsilon) over `axes`, times `gamma` (Zhang & Sennrich 2019)."""
    node = in_floats(x)
    power = mean_of(sqr(node), axes, keepdims=True)
    found = mul(node, reciprocal(sqrt(add(power, epsilon))))
    return found if gamma is None else mul(found, gamma)


def _of_channels(name: str, x: Node, parameter: Any) -> Any:
    """A vector of a number for each channel, along axis 1; anything else as it is."""
    if parameter is None:
        return None
    node = as_node(parameter)
    if node.ndim > 1 and node.ndim != x.ndim:
        raise RankError(f"{name} of {describe(x)} of type {x.type}: {describe(node)} is no vector of its channels")
    return layout.expand(node, [k for k in range(x.ndim) if k != 1]) if node.ndim == 1 else node


def instance_norm(x: Any, gamma: Any = None, beta: Any = None, epsilon: Any = 1e-5) -> Node:
    """Each channel of each image with mean 0 and variance 1, times `gamma` plus `beta`, vectors of a number for each
    channel (Ulyanov et al. 2016). x: (batch, channels, ...)."""
    node = in_floats(x)
    if node.ndim < 3:
        raise RankError(f"instance_norm of {describe(node)} of type {node.type}: it has no axes after channels")
    scale, shift = (_of_channels("instance_norm", node, each) for each in (gamma, beta))
    return normalize(node, tuple(range(2, node.ndim)), epsilon, scale, shift)[0]


def group_norm(x: Any, groups: int, gamma: Any = None, beta: Any = None, epsilon: Any = 1e-5) -> Node:
    """Each of `groups` equal groups of channels of each image with mean 0 and variance 1, times `gamma` plus `beta`,
    vectors of a number for each channel (Wu & He 2018). x: (batch, channels, ...); the number of channels must be a
    multiple of `groups`, which is checked when the function runs where it is not known before."""
    node = in_floats(x)
    if node.ndim < 2:
        raise RankError(f"group_norm of {describe(node)} of type {node.type}: it has no axis of channels")
    batch, channels, *rest = node.type.shape
    each: Size = sizes.floor_divide(channels, groups)
    parts = layout.reshape(node, (batch, groups, each, *rest))
    result = layout.reshape(normalize(parts, tuple(range(2, parts.ndim)), epsilon)[0], node.type.shape)
    scale, shift = (_of_channels("group_norm", node, parameter) for parameter in (gamma, beta))
    scaled = result if scale is None else mul(result, scale)
    return scaled if shift is None else add(scaled, shift)


def local_response_normalization(
    x: Any, alpha: Any = 1e-4, k: Any = 2, beta: Any = 0.75, n: int = 5, axis: int = 1
) -> Node:
    """x / (k + alpha * the sum of the squares in the `n` channels around each, an odd number) ** beta (Krizhevsky et
    al. 2012). Around the first and last channels there are fewer."""
    node = in_floats(x)
    what = told(lambda: f"local_response_normalization of {describe(node)} of type {node.type}")
    if n < 1 or n % 2 == 0:
        raise GraphValueError(f"{what}: n is {n}, not an odd number")
    (place,) = normalise_axes(axis, node.ndim, what)
    last = [a for a in range(node.ndim) if a != place]
    channels = node.type.shape[place]
    near = filled_windows(layout.dimshuffle(sqr(node), (*last, place)), (Sliding(channels, n),), (n // 2,), 0)
    back = [(*last, place).index(a) for a in range(node.ndim)]
    total = layout.dimshuffle(sum(near, -1), back)
    return true_div(node, pow(add(mul(total, alpha), k), beta))
