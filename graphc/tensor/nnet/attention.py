"""Attention without the matrix of all scores: memory grows as the number of queries and keys do, not as their product.

In: queries, keys, values. Out: a node. A scan goes over blocks of queries: their scores, softmax and result are made
while they are in cache. The derivative goes over the blocks again, and makes the scores anew.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from graphc.arrays.dtypes import is_float
from graphc.control.functional import scan
from graphc.errors import GraphTypeError, RankError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe, lazy_text
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise, in_floats
from graphc.startup.record import record
from graphc.tensor.elementary import add, exp, less, less_equal, log, logical_and, mul, sub, true_div, where
from graphc.tensor.indexing import getitem, take
from graphc.tensor.products import matmul
from graphc.tensor.reductions import shift_of, sum

__all__ = ["scaled_dot_product_attention"]

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
        found = matmul(mul(queries, self.scale), layout.transpose(keys))
        counts: Node | None = None
        if mask is not None:
            found, counts = (add(found, mask), None) if self.added else (found, mask)
        if self.causal:
            row = layout.expand(elementwise("add", layout.iota(BLOCK), begin), (0, 2))
            column = layout.expand(layout.iota(keys.type.shape[1]), (0, 1))
            before = less_equal(column, row)
            counts = before if counts is None else logical_and(counts, before)
        return found if counts is None else where(counts, found, -math.inf)

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
    what = lazy_text(lambda: f"attention of {describe(queries)} of type {queries.type}")
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
        weights = exp(sub(scores, shift))
        total = sum(weights, 2, keepdims=True)
        safe = where(elementwise("equal", total, 0), 1, total)
        return None, (true_div(matmul(weights, v), safe), add(shift, log(safe)))

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
    even = sum(mul(cotangent, result), 2, keepdims=True)
    if 1 in cotangents:  # a derivative of the second order, by the logarithms of the sums
        even = sub(even, cotangents[1])

    axes = () if mask is None else tuple(axis for axis in range(3) if sizes.equal(mask.type.shape[axis], 1))
    is_row = by_mask and 1 in axes  # the same for all queries

    def step(carry: tuple[Node, ...], block: Any) -> tuple[tuple[Node, ...], Any]:
        begin, queries, slope, mean, log_total, *own = block
        there = less(layout.expand(elementwise("add", layout.iota(BLOCK), begin), (0, 2)), as_size_node(form.queries))
        slope, mean = where(there, slope, 0), where(there, mean, 0)
        scores = form.scores(queries, k, begin, own[0] if own else mask)
        weights = exp(sub(scores, log_total))
        by_keys, by_values, *by_row = carry
        by_scores = mul(weights, sub(matmul(slope, layout.transpose(v)), mean))
        by_values = add(by_values, matmul(layout.transpose(weights), slope))
        by_keys = add(by_keys, matmul(layout.transpose(by_scores), mul(queries, form.scale)))
        by_queries = mul(matmul(by_scores, k), form.scale)
        by_own = sum(by_scores, axes, keepdims=True) if axes else by_scores
        by_row = [add(row, by_own) for row in by_row]
        return (by_keys, by_values, *by_row), (by_queries, by_own) if by_mask and not is_row else by_queries

    nothing = tuple(
        layout.zeros(x.type.dtype, x.type.shape) for x in (k, v, *([mask] if is_row else [])) if x is not None
    )
    (by_keys, by_values, *by_row), stacked = scan(step, nothing, form.sequences(mask, q, cotangent, even, logs))
    if is_row or not by_mask:
        return [form.joined(stacked), by_keys, by_values, by_row[0] if is_row else None]
    return [form.joined(stacked[0]), by_keys, by_values, form.joined(stacked[1])]
