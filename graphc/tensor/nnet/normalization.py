"""Normalisation to mean 0 and variance 1 over some axes, dropout, and embeddings.

In: tensors, scales and shifts. Out: nodes. Mean and variance are made in one pass over memory. The derivative is
written out, so that its sums are made in one pass as well, and it in another:

    y = (x - m) s,  s = 1 / sqrt(v + epsilon)        dx = s (dy - mean(dy) - (x - m) s^2 mean(dy (x - m)))
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.control.functional import scan
from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, Size, describe
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise, in_floats
from graphc.ops.shape import broadcast_to
from graphc.ops.windows import Sliding, filled_windows
from graphc.options import options
from graphc.startup.record import record
from graphc.tensor import elementary as el
from graphc.tensor.indexing import getitem, take
from graphc.tensor.products import dot, matmul
from graphc.tensor.reductions import count as count_of, mean as mean_of, shift_of, sum, var
from graphc.tensor.shaping import addbroadcast, label_operand, normalise_axes, of_rank

__all__ = [
    "batch_normalization", "batch_normalization_test", "batch_normalization_train", "drop_connect", "dropout",
    "embedding", "group_norm", "instance_norm", "layer_norm", "local_response_normalization", "normalize",
    "rms_norm", "scaled_dot_product_attention", "standardize",
]  # fmt: skip


def normalize(x: Any, axes: Any, epsilon: Any = 1e-5, gamma: Any = None, beta: Any = None) -> tuple[Node, Node, Node]:
    """Return (x - mean) / sqrt(variance + epsilon) over `axes`, times `gamma` plus `beta` where they are given; the
    mean; and the variance. Mean and variance keep those axes with size 1. `gamma` and `beta` broadcast to `x`. Raises
    AxisError for an axis that `x` does not have, GraphTypeError for `gamma` or `beta` of more axes than `x`.

        >>> y, mean, variance = normalize(T.dtensor4("x"), (0, 2, 3))
    """
    node = in_floats(x)
    found = normalise_axes(axes, node.ndim, label_operand("normalize", node))
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
    inverse = el.reciprocal(el.sqrt(el.add(variance, epsilon)))
    result = el.mul(el.sub(x, mean), inverse if given["gamma"] is None else el.mul(inverse, given["gamma"]))
    result = result if given["beta"] is None else el.add(result, given["beta"])
    names = [name for name, node in given.items() if node is not None]

    def derivative(
        inputs: Sequence[Node], results: Sequence[Node], cotangents: Mapping[int, Node], wanted: Collection[int]
    ) -> list[Node | None]:
        (x, *rest), (_, mean, variance) = inputs, results
        named, count, centred = (
            dict(zip(names, rest, strict=True)),
            cast(count_of(x, axes), x.type.dtype),
            el.sub(x, mean),
        )
        found: dict[str, Node] = {}
        parts: list[Node] = []
        if 0 in cotangents:
            inverse = el.reciprocal(el.sqrt(el.add(variance, named.get("epsilon", epsilon))))
            # Of no elements the variance is NaN, but the sums that it is multiplied by are over none: 0.
            inverse = el.where(el.greater(count, 0), inverse, 0)
            scale = el.mul(inverse, named["gamma"]) if "gamma" in named else inverse
            found["beta"] = sum(cotangents[0], axes, keepdims=True)
            along = sum(el.mul(cotangents[0], centred), axes, keepdims=True)
            found["gamma"] = el.mul(along, inverse)
            steep = el.mul(along, el.sqr(inverse))
            even = el.sub(cotangents[0], el.true_div(found["beta"], count))
            parts.append(el.mul(el.sub(even, el.mul(centred, el.true_div(steep, count))), scale))
            if "epsilon" in named:
                whole = sum(el.mul(el.mul(steep, scale), -0.5))
                found["epsilon"] = cast(whole, named["epsilon"].type.dtype)
        if 1 in cotangents:
            parts.append(layout.broadcast_to(el.true_div(cotangents[1], count), x.type.shape))
        if 2 in cotangents:
            parts.append(el.mul(centred, el.true_div(el.mul(cotangents[2], 2), count)))
        total = el.add(*parts) if len(parts) > 1 else parts[0]
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
    power = mean_of(el.sqr(node), axes, keepdims=True)
    found = el.mul(node, el.reciprocal(el.sqrt(el.add(power, epsilon))))
    return found if gamma is None else el.mul(found, gamma)


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
    node = of_rank(in_floats(x), "instance_norm of {}: it has no axes after channels", 3)
    scale, shift = (_of_channels("instance_norm", node, each) for each in (gamma, beta))
    return normalize(node, tuple(range(2, node.ndim)), epsilon, scale, shift)[0]


def group_norm(x: Any, groups: int, gamma: Any = None, beta: Any = None, epsilon: Any = 1e-5) -> Node:
    """Each of `groups` equal groups of channels of each image with mean 0 and variance 1, times `gamma` plus `beta`,
    vectors of a number for each channel (Wu & He 2018). x: (batch, channels, ...); the number of channels must be a
    multiple of `groups`, which is checked when the function runs where it is not known before."""
    node = of_rank(in_floats(x), "group_norm of {}: it has no axis of channels", 2)
    batch, channels, *rest = node.type.shape
    each: Size = sizes.floor_divide(channels, groups)
    parts = layout.reshape(node, (batch, groups, each, *rest))
    result = layout.reshape(normalize(parts, tuple(range(2, parts.ndim)), epsilon)[0], node.type.shape)
    scale, shift = (_of_channels("group_norm", node, parameter) for parameter in (gamma, beta))
    scaled = result if scale is None else el.mul(result, scale)
    return scaled if shift is None else el.add(scaled, shift)


def local_response_normalization(
    x: Any, alpha: Any = 1e-4, k: Any = 2, beta: Any = 0.75, n: int = 5, axis: int = 1
) -> Node:
    """x / (k + alpha * the sum of the squares in the `n` channels around each, an odd number) ** beta (Krizhevsky et
    al. 2012). Around the first and last channels there are fewer."""
    node = in_floats(x)
    what = label_operand("local_response_normalization", node)
    if n < 1 or n % 2 == 0:
        raise GraphValueError(f"{what}: n is {n}, not an odd number")
    (place,) = normalise_axes(axis, node.ndim, what)
    last = [a for a in range(node.ndim) if a != place]
    channels = node.type.shape[place]
    near = filled_windows(layout.dimshuffle(el.sqr(node), (*last, place)), (Sliding(channels, n),), (n // 2,), 0)
    back = [(*last, place).index(a) for a in range(node.ndim)]
    total = layout.dimshuffle(sum(near, -1), back)
    return el.true_div(node, el.pow(el.add(el.mul(total, alpha), k), beta))


# --- bn ---------------------------------------------------------------------------------------------------------------
# Batch normalisation, with Theano's names and arguments.
#
# In: tensors, scales and shifts of their layout. Out: nodes. Mean and variance are ordinary reductions: one pass over
# memory makes both, and the gradient's sums are made in another.


LEAST_EPSILON = 1e-5
"""Theano's bound, which is cuDNN's."""


def batch_normalization(inputs: Any, gamma: Any, beta: Any, mean: Any, std: Any, mode: str = "low_mem") -> Node:
    """(inputs - mean) * gamma / std + beta, all of the rank of `inputs`, or broadcast to it from the last axis on.

    mode: Theano's "low_mem" or "high_mem", which are the same here.
    """
    if mode not in ("low_mem", "high_mem"):
        raise ValueError(f"batch_normalization: mode {mode!r} is neither 'low_mem' nor 'high_mem'")
    return el.add(el.mul(el.true_div(el.sub(inputs, mean), std), gamma), beta)


class _Layout:
    """The layout of the parameters of a normalisation: the axes that are normalised over, and whether parameters keep
    these with size 1, or have the other axes alone."""

    def __init__(self, name: str, x: Node, axes: Any, given: Sequence[tuple[str, Node]]) -> None:
        what = label_operand(name, x)
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
    results = [mean, el.reciprocal(el.sqrt(el.add(spread, small)))]
    if old:
        count = cast(count_of(x, parameters.axes), x.type.dtype)
        unbiased = el.mul(spread, el.true_div(count, el.sub(count, 1)))
        rest = el.sub(1, running_average_factor)
        for before, now in zip(old, (mean, unbiased), strict=True):
            new = el.add(el.mul(before, rest), el.mul(now, running_average_factor))
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
    return el.add(el.mul(el.sub(x, centre), el.true_div(scale, el.sqrt(el.add(spread, small)))), shift)


# --- regularization ---------------------------------------------------------------------------------------------------
# Dropout and its kin, over random streams, and embeddings.
#
# In: tensors, and a stream (`graphc.random`'s RandomStreams) that draws. Out: nodes. In a function without updates of
# the stream's own nothing else is needed: each call draws anew.


def dropout(x: Any, rate: Any, stream: Any, rescale: bool = True, shared_axes: Any = ()) -> Node:
    """`x` with each element 0 with probability `rate`, and divided by 1 - rate otherwise (Srivastava et al. 2014).

    stream: a RandomStreams. rescale: whether what is kept is divided. shared_axes: axes along which elements are kept
    or dropped together, such as (2, 3) for whole channels of images. `rate` may be a scalar tensor.

        >>> from graphc.tensor.shared_randomstreams import RandomStreams
        >>> hidden = T.nnet.dropout(T.dmatrix("hidden"), 0.5, RandomStreams(7))
    """
    node = in_floats(x)
    what = label_operand("dropout", node)
    if isinstance(rate, (int, float)) and not 0 <= rate < 1:
        raise GraphValueError(f"{what}: a rate is from 0 to below 1, not {rate}")
    shared = normalise_axes(shared_axes, node.ndim, what) if shared_axes != () else ()
    shape = tuple(1 if axis in shared else size for axis, size in enumerate(node.type.shape))
    kept = elementwise("sub", 1, rate)
    chosen = broadcast_to(elementwise("not_equal", stream.binomial(shape, p=kept, dtype="int8"), 0), node.type.shape)
    return el.where(chosen, el.true_div(node, as_node(kept).astype(node.type.dtype)) if rescale else node, 0)


def drop_connect(x: Any, weights: Any, rate: Any, stream: Any) -> Node:
    """dot(x, weights) with each of the weights dropped with probability `rate` (Wan et al. 2013)."""
    return dot(x, dropout(weights, rate, stream))


def embedding(indices: Any, table: Any) -> Node:
    """The rows of a matrix at integers: of indices (...) and a table (rows, size), an array (..., size). Its gradient
    adds to the rows that were taken. An index outside the table is an error."""
    return take(table, indices, 0)


# --- attention --------------------------------------------------------------------------------------------------------


BLOCK = 64
"""Queries of a block: products of this many rows are as fast as larger ones, and their scores stay in cache for some
thousand keys."""


@record()
class _Attention:
    """The values that all blocks share: how scores are scaled, whether a query sees only keys that are no later, the
    number of queries, and whether the mask (of axes batch, queries, keys, each of which may have one element) is added.
    """

    scale: Any
    causal: bool
    queries: Size
    added: bool

    @property
    def blocks(self) -> Size:
        return sizes.floor_divide(sizes.add(self.queries, BLOCK - 1), BLOCK)

    def begins(self) -> Node:
        return elementwise("mul", layout.iota(self.blocks), BLOCK)

    def cut(self, x: Node) -> Node:
        """An array (batch, queries, n) as blocks (blocks, batch, BLOCK, n): the last query fills the last block."""
        where_from = layout.iota(sizes.multiply(self.blocks, BLOCK))
        last = elementwise("sub", as_size_node(self.queries), 1)
        rows = take(x, elementwise("minimum", where_from, last), 1)
        batch, _, columns = x.type.shape
        return layout.dimshuffle(layout.reshape(rows, (batch, self.blocks, BLOCK, columns)), (1, 0, 2, 3))

    def joined(self, blocks: Node) -> Node:
        """Blocks as one array again."""
        _, batch, _, columns = blocks.type.shape
        turned = layout.dimshuffle(blocks, (1, 0, 2, 3))
        whole = layout.reshape(turned, (batch, sizes.multiply(self.blocks, BLOCK), columns))
        return getitem(whole, (slice(None), slice(None, as_size_node(self.queries))))

    def scores(self, queries: Node, keys: Node, begin: Node, mask: Node | None) -> Node:
        """The scores of a block (batch, BLOCK, keys), -inf where a query does not see a key."""
        found = matmul(el.mul(queries, self.scale), layout.transpose(keys))
        counts: Node | None = None
        if mask is not None:
            found, counts = (el.add(found, mask), None) if self.added else (found, mask)
        if self.causal:
            row = layout.expand(elementwise("add", layout.iota(BLOCK), begin), (0, 2))
            column = layout.expand(layout.iota(keys.type.shape[1]), (0, 1))
            before = el.less_equal(column, row)
            counts = before if counts is None else el.logical_and(counts, before)
        return found if counts is None else el.where(counts, found, -math.inf)

    def sequences(self, mask: Node | None, *arrays: Node) -> tuple[Any, ...]:
        """The sequences of a scan over the blocks: where each begins, arrays, and the mask where it differs by
        query."""
        own = (self.cut(mask),) if mask is not None and not sizes.equal(mask.type.shape[1], 1) else ()
        return (self.begins(), *map(self.cut, arrays), *own)


def scaled_dot_product_attention(
    q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, scale: Any = None
) -> Node:
    """softmax(scale * q @ k.T) @ v for each of a batch, the softmax over keys (Vaswani et al. 2017).

    q: (..., queries, size), k: (..., keys, size), v: (..., keys, n), of one float dtype and equal axes before the last
    two; the result is (..., queries, n). mask: what broadcasts to (..., queries, keys), bools that say which keys a
    query sees, or floats that are added to the scores. causal: query i sees keys 0 to i only. scale: a number, or a
    scalar, 1 / sqrt(size) by default. A query that sees no key gets zeros.

    Memory is what the arguments and the result have, and 64 rows of scores for each of the batch; of derivatives
    likewise. Raises GraphTypeError for ranks that do not fit, ShapeError for sizes.
    """
    queries, keys, values = (in_floats(each) for each in (q, k, v))
    what = label_operand("attention", queries)
    for node in (keys, values):
        if node.ndim != queries.ndim or node.type.dtype != queries.type.dtype or node.ndim < 2:
            raise RankError(f"{what}: {describe(node)} of type {node.type} has other axes, or another dtype")
    outer, size = queries.type.shape[:-2], queries.type.shape[-1]
    batch = sizes.product(outer)
    flat = [layout.reshape(node, (batch, *node.type.shape[-2:])) for node in (queries, keys, values)]
    if scale is None:
        scale = elementwise("reciprocal", elementwise("sqrt", cast(as_size_node(size), queries.type.dtype)))
    given = None if mask is None else as_node(mask)
    if given is not None:
        if given.ndim > queries.ndim or not (is_float(given.type.dtype) or given.type.dtype == "bool"):
            raise GraphTypeError(f"{what}: the mask {describe(given)} of type {given.type} is neither bools nor floats")
        wide = layout.expand(given, range(queries.ndim - given.ndim))
        kept = wide.type.shape[-2:]
        if all(sizes.equal(axis, 1) for axis in wide.type.shape[:-2]):
            given = layout.reshape(wide, (1, *kept))
        else:
            given = layout.reshape(layout.broadcast_to(wide, (*outer, *kept)), (batch, *kept))
        given = cast(given, queries.type.dtype) if is_float(given.type.dtype) else given
    form = _Attention(scale, causal, queries.type.shape[-2], given is not None and is_float(given.type.dtype))
    result = _attend(form, flat[0], flat[1], flat[2], given)
    return layout.reshape(result, (*outer, queries.type.shape[-2], values.type.shape[-1]))


def _attend(form: _Attention, q: Node, k: Node, v: Node, mask: Node | None) -> Node:
    """The result for arrays (batch, …, …)."""

    def step(carry: None, block: Any) -> tuple[None, tuple[Node, Node]]:
        begin, queries, *own = block
        scores = form.scores(queries, k, begin, own[0] if own else mask)
        shift = shift_of(scores, (2,))
        weights = el.exp(el.sub(scores, shift))
        total = sum(weights, 2, keepdims=True)
        safe = el.where(elementwise("equal", total, 0), 1, total)
        return None, (el.true_div(matmul(weights, v), safe), el.add(shift, el.log(safe)))

    _, (blocks, logs) = scan(step, None, form.sequences(mask, q))
    values = [form.joined(blocks), form.joined(logs)]
    floats = [q, k, v, *([mask] if form.added and mask is not None else [])]

    def derivative(
        inputs: Sequence[Node], results: Sequence[Node], given: Mapping[int, Node], wanted: Collection[int]
    ) -> list[Node | None]:
        q, k, v = inputs[:3]
        by_mask = form.added and 3 in wanted
        mask_now = inputs[3] if form.added else mask
        return _derivative(form, (q, k, v, mask_now), results, given, by_mask)[: len(inputs)]

    return overridden(values, floats, derivative)[0]


def _derivative(
    form: _Attention,
    inputs: Sequence[Node | None],
    results: Sequence[Node],
    cotangents: Mapping[int, Node],
    by_mask: bool,
) -> list[Node | None]:
    """The cotangents of queries, keys, values and a mask that was added, block by block."""
    (q, k, v, mask), (result, logs) = inputs, results
    assert q is not None and k is not None and v is not None
    cotangent = cotangents.get(0, layout.zeros(result.type.dtype, result.type.shape))
    even = sum(el.mul(cotangent, result), 2, keepdims=True)
    if 1 in cotangents:  # a derivative of the second order, by the logarithms of the sums
        even = el.sub(even, cotangents[1])

    axes = () if mask is None else tuple(axis for axis in range(3) if sizes.equal(mask.type.shape[axis], 1))
    is_row = by_mask and 1 in axes  # the same for all queries

    def step(carry: tuple[Node, ...], block: Any) -> tuple[tuple[Node, ...], Any]:
        begin, queries, slope, mean, log_total, *own = block
        there = el.less(
            layout.expand(elementwise("add", layout.iota(BLOCK), begin), (0, 2)), as_size_node(form.queries)
        )
        slope, mean = el.where(there, slope, 0), el.where(there, mean, 0)
        scores = form.scores(queries, k, begin, own[0] if own else mask)
        weights = el.exp(el.sub(scores, log_total))
        by_keys, by_values, *by_row = carry
        by_scores = el.mul(weights, el.sub(matmul(slope, layout.transpose(v)), mean))
        by_values = el.add(by_values, matmul(layout.transpose(weights), slope))
        by_keys = el.add(by_keys, matmul(layout.transpose(by_scores), el.mul(queries, form.scale)))
        by_queries = el.mul(matmul(by_scores, k), form.scale)
        by_own = sum(by_scores, axes, keepdims=True) if axes else by_scores
        by_row = [el.add(row, by_own) for row in by_row]
        return (by_keys, by_values, *by_row), (by_queries, by_own) if by_mask and not is_row else by_queries

    nothing = tuple(
        layout.zeros(x.type.dtype, x.type.shape) for x in (k, v, *([mask] if is_row else [])) if x is not None
    )
    (by_keys, by_values, *by_row), stacked = scan(step, nothing, form.sequences(mask, q, cotangent, even, logs))
    if is_row or not by_mask:
        return [form.joined(stacked), by_keys, by_values, by_row[0] if is_row else None]
    return [form.joined(stacked[0]), by_keys, by_values, form.joined(stacked[1])]


explain_all(globals())
