"""Random bits of arrays, and numbers in the unit interval.

In: a key, a scalar of 64 bits that names a sequence of blocks (ops `philox_low` and `philox_high`). Out: nodes of
which every element is a function of the key and of its own index alone: so the numbers are the same in every mode, on
every machine, for every number of threads, however loops are fused.

The counter of a block is (index, draw): `draw` says what the bits are for. An element whose number needs 64 bits has
one half of a block, so that two neighbours share one (ops `philox`, `philox_normal` and others); where more are needed,
the block is its own, and `index` its place in the array. The last numbers of draws are kept for making keys of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, describe, literal
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.shape import iota, reshape

SPLITTING, FOLDING = 2**64 - 1, 2**64 - 2
"""The draws by which keys are made of keys."""


def word(number: int) -> Node:
    """A constant of 64 bits."""
    return literal(np.uint64(number), "uint64")


def as_key(value: Any) -> Node:
    """A key: a scalar of uint64. GraphTypeError for anything else."""
    node = as_node(value)
    if node.ndim or node.type.dtype != "uint64":
        raise GraphTypeError(
            f"a key is a uint64 scalar, as graphc.random.key(seed) makes it; {describe(node)} has type {node.type}"
        )
    return node


def key(seed: Any) -> Node:
    """The key of a seed, a number or an integer scalar. Keys of different seeds are unrelated."""
    node = as_node(int(seed) % 2**64 if isinstance(seed, int | np.integer) and not isinstance(seed, bool) else seed)
    if node.ndim or is_float(node.type.dtype) or node.type.dtype == "bool":
        raise GraphTypeError(f"a seed is a whole number; {describe(node)} has type {node.type}")
    return elementwise("philox_low", cast(node, "uint64"), word(FOLDING), word(0))


def split(key: Any, num: int | Node = 2) -> Node:
    """`num` new keys of a key, as a vector; the old one should not be used again."""
    return elementwise("philox_low", places((sizes.as_size(as_node(num)),)), word(SPLITTING), as_key(key))


def fold_in(key: Any, data: Any) -> Node:
    """The key of a key and a whole number, the count of a step for instance."""
    return elementwise("philox_low", cast(as_node(data), "uint64"), word(FOLDING), as_key(key))


def places(shape: Sequence[Size]) -> Node:
    """The place of each element in its array."""
    count = cast(iota(sizes.product(shape)), "uint64")
    return count if len(shape) == 1 else reshape(count, tuple(shape))


def words(key: Node, shape: Sequence[Size]) -> Node:
    """64 random bits for each element."""
    return elementwise("philox", places(shape), word(0), key)


def blocks(key: Node, index: Node, draw: int | Node = 0) -> tuple[Node, Node]:
    """The two words of the block of a counter."""
    counter = word(draw) if isinstance(draw, int) else cast(draw, "uint64")
    low, high = (elementwise(name, index, counter, key) for name in ("philox_low", "philox_high"))
    return low, high


def unit(bits: Node, dtype: str, above_zero: bool = False) -> Node:
    """Numbers in [0, 1): multiples of 2**-53, of 2**-24 in float32. Or in (0, 1], of 32 bits in float32, of which small
    ones keep their digits: the logarithm of such a number has its tail."""
    if dtype == "float64":
        count = elementwise("right_shift", bits, word(11))
        whole = elementwise("add", count, word(1)) if above_zero else count
        return elementwise("mul", cast(cast(whole, "int64"), "float64"), literal(2.0**-53, "float64"))
    if above_zero:
        count = elementwise("add", elementwise("right_shift", bits, word(32)), word(1))
        return elementwise("mul", cast(cast(count, "int64"), "float32"), literal(np.float32(2.0**-32), "float32"))
    count = elementwise("right_shift", bits, word(40))
    return elementwise("mul", cast(cast(count, "int64"), "float32"), literal(np.float32(2.0**-24), "float32"))


def units(key: Node, shape: Sequence[Size], dtype: str) -> Node:
    """A number in [0, 1) for each element."""
    if dtype == "float64":
        return elementwise("philox_unit", places(shape), word(0), key)
    return unit(words(key, shape), dtype)


def below(bits: Node, count: Node) -> Node:
    """Whole numbers from 0 to below `count`, of 64 bits each; no number is more likely than another by more than one
    part in 2**64 / count."""
    return cast(elementwise("mod", bits, cast(count, "uint64")), "int64")
