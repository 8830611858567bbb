"""Random orders, choices, counts of categories, normal vectors, points of balls, orthogonal and Wishart matrices.

    permutation(key, 5)                     0 … 4 in random order
    multivariate_normal(key, mean, cov)     a vector of that covariance

In: keys, items or chances, shapes. Out: nodes, of loops over exchanges or categories.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.control.functional import fori_loop, map, scan
from graphc.errors import GraphValueError, RankError, ShapeError
from graphc.ir import sizes
from graphc.ir.node import Node, Size, constant_value, describe, literal
from graphc.ir.walk import as_size_node
from graphc.ops import shape as layout
from graphc.ops.elementwise import as_node, broadcast_node, broadcast_sizes, cast, elementwise, elementwise as E
from graphc.ops.identity import checked
from graphc.ops.linalg import factor
from graphc.ops.linalg.derivatives import diagonal_matrix, triangle
from graphc.ops.shape import reshape, zeros
from graphc.random.distributions import (
    Shape,
    as_key,
    below,
    blocks,
    exponential,
    float_of,
    fold_in,
    most_likely,
    normal,
    places,
    require,
    sized,
    units,
    words,
)
from graphc.random.rejection import binomial, chisquare, generalized_normal
from graphc.tensor.creation import arange
from graphc.tensor.elementary import copysign, maximum, sqrt
from graphc.tensor.indexing import diagonal, set_subtensor
from graphc.tensor.products import matmul
from graphc.tensor.shaping import as_shape

LEAST = {"float32": 2.0**-64, "float64": 2.0**-600}
"""Factors by which the quotient of an exponential number and the least positive one of the dtype is finite."""


def order(key: Any, count: Node) -> Node:
    """0 … count - 1 in random order, all orders equally likely: Fisher's and Yates's exchanges, from the end on."""
    bits, begun = as_key(key), arange(count)

    def exchange(step: Node, places: Node) -> Node:
        last = count - 1 - step
        other = below(blocks(bits, cast(step, "uint64"))[0], last + 1)
        here, there = places[last], places[other]
        return set_subtensor(set_subtensor(places[last], there)[other], here)

    made: Node = fori_loop(0, count - 1, exchange, begun)
    return made


def permutation(key: Any, x: Any) -> Node:
    """Return the rows of an array in random order, all orders equally likely. A number n stands for 0 … n - 1."""
    array = as_node(x)
    if not array.ndim:
        return order(key, cast(array, "int64"))
    return array[order(key, array.shape[0])]


def orders(key: Any, shape: Shape, count: Any) -> Node:
    """For each element of a shape the numbers 0 … count - 1 in random order, along a last axis."""
    own, _ = sized("permutation", shape)
    number, bits = cast(as_node(count), "int64"), as_key(key)
    if not own:
        return order(bits, number)
    index = reshape(places(own), (sizes.product(own),))
    made = map(lambda each: order(fold_in(bits, each), number), index)
    return reshape(made, (*own, *made.type.shape[1:]))


def shuffled_rows(key: Any, x: Any) -> Node:
    """Each row of a matrix in random order, of a vector its elements."""
    array = as_node(x)
    if array.ndim == 1:
        return permutation(key, array)
    if array.ndim != 2:
        raise RankError(f"shuffle_row_elements: {describe(array)} of type {array.type} is no matrix or vector")
    bits = as_key(key)
    numbers = places((array.type.shape[0],))
    made: Node = map(lambda each: each[0][order(fold_in(bits, each[1]), array.shape[1])], (array, numbers))
    return made


def choice(key: Any, a: Any, shape: Shape = (), replace: bool = True, p: Any = None, dtype: Any = None) -> Node:
    """Draw items of `a`: a vector, or a number that stands for 0 … a - 1. p: their probabilities, equal where None.
    Without `replace` no item comes twice. RankError where `p` is no vector, ShapeError where it is of another length,
    or there are fewer items than are asked for; a call raises GraphValueError where a chance is negative or NaN, where
    none is above 0, or without `replace` fewer are than items are asked for."""
    items = as_node(a)
    if p is not None and as_node(p).ndim != 1:
        raise RankError(f"choice: the chances are a vector, not {describe(as_node(p))} of type {as_node(p).type}")
    if p is not None:
        size = items.type.shape[0] if items.ndim else a
        if isinstance(size, int | np.integer):
            sizes.common(int(size), as_node(p).type.shape[0], "choice: the items and their chances")
    own, _ = sized("choice", shape)
    count = items.shape[0] if items.ndim else cast(items, "int64")
    if replace:
        if p is None:
            chosen = below(words(as_key(key), own), broadcast_node(count, own))
        else:
            chances = as_node(p)
            scores = require(E("portable_log", chances), *_all_chances("choice", chances))
            scores = require(scores, E("greater", chances, 0.0).any(), f"choice: {_none_possible(chances)}")
            chosen = most_likely(key, scores, 0, own)
    else:
        total = as_size_node(sizes.product(own))
        ranked = order(as_key(key), count) if p is None else _ranked(key, as_node(p))
        ranked = _different("choice", ranked, total, None if p is None else as_node(p))
        chosen = reshape(ranked[:total], own)
    if items.ndim:
        return items[chosen]
    return chosen if dtype is None else cast(chosen, np.dtype(dtype).name)


def multinomial(key: Any, n: Any, pvals: Any, shape: Shape = None, dtype: Any = "int64") -> Node:
    """Draw the counts of categories in `n` trials. `pvals` are their probabilities along the last axis: binomial
    numbers of the trials that are left, one category after the other. shape: without the axis of categories; by default
    that of both. A call raises GraphValueError where a chance is negative or NaN, or none is above 0 and there are
    trials."""
    given = as_node(pvals)
    chances = require(given, *_all_chances("multinomial", given))
    real = float_of("multinomial", None, chances)
    rest, categories = chances.type.shape[:-1], chances.type.shape[-1]
    own, (trials, _) = sized("multinomial", shape, n, zeros("bool", rest))
    wide = broadcast_node(cast(chances, real), (*own, categories))
    possible = E("logical_or", E("greater", wide, 0.0).any(axis=-1), E("equal", trials, 0))
    wide = require(wide, possible.all(), f"multinomial: {_none_possible(given)}")
    if isinstance(n, int | np.integer) and n == 1:
        limit = units(as_key(key), own, real) * wide.sum(axis=-1)
        below_it = E(
            "less_equal", wide.cumsum(axis=-1), broadcast_node(limit.dimshuffle(*range(len(own)), "x"), wide.type.shape)
        )
        chosen = E("minimum", cast(below_it, "int64").sum(axis=-1), as_size_node(categories) - 1)
        numbers = broadcast_node(arange(as_size_node(categories)), wide.type.shape)
        return cast(E("equal", numbers, chosen.dimshuffle(*range(len(own)), "x")), np.dtype(dtype).name)
    columns = wide.dimshuffle(len(own), *range(len(own)))
    bits = as_key(key)
    begun = (cast(trials, "int64"), columns.sum(axis=0))

    def step(carry: tuple[Node, Node], given: tuple[Node, Node]) -> tuple[tuple[Node, Node], Node]:
        left, weight = carry
        chance, number = given
        share = E(
            "clip", chance / E("maximum", weight, literal(np.dtype(real).type(np.finfo(real).tiny), real)), 0.0, 1.0
        )
        drawn = binomial(fold_in(bits, number), left, share)
        return (left - drawn, weight - chance), drawn

    _, counts = scan(step, begun, (columns, places((categories,))))
    return cast(counts.dimshuffle(*range(1, counts.ndim), 0), np.dtype(dtype).name)


def without_replacement(key: Any, n: Any, pvals: Any, dtype: Any = "int64") -> Node:
    """`n` different categories for each row of chances: the first in the order of exponential numbers over chances
    (Efraimidis and Spirakis, Information Processing Letters 97, 2006). RankError where the chances are no vector and no
    matrix, ShapeError where there are fewer than `n`; a call raises GraphValueError where a row has fewer above 0, or
    one that is negative or NaN."""
    chances, number = as_node(pvals), cast(as_node(n), "int64")
    if chances.ndim not in (1, 2):
        raise RankError(f"the chances are a vector or a matrix, not {describe(chances)} of type {chances.type}")
    if chances.ndim == 1:
        ranked = _ranked(key, chances)
    else:
        rows = places((chances.type.shape[0],))
        ranked = map(lambda each: _ranked(fold_in(key, each[1]), each[0]), (chances, rows))
    chosen = _different("multinomial_wo_replacement", ranked, number, chances)
    return cast(chosen[..., :number], np.dtype(dtype).name)


def _different(name: str, ranked: Node, number: Node, chances: Node | None) -> Node:
    """Places in random order, of which along the last axis the first `number` can be different: otherwise an error, at
    once where sizes tell, else at the call."""
    count = ranked.type.shape[-1]
    fewer = f"{name}: there are fewer categories than draws without replacement"
    known = constant_value(number)
    if known is not None and isinstance(count, int) and known > count:
        raise ShapeError(f"{fewer}: {known} of {count}")
    ranked = checked(ranked, (cast(E("less_equal", number, as_size_node(count)), "int64"),), fewer, "shape")
    ranked = require(ranked, E("greater_equal", number, 0), f"{name}: the number of draws is negative")
    if chances is None:
        return ranked
    ranked = require(ranked, *_all_chances(name, chances))
    possible = cast(E("greater", chances, 0.0), "int64").sum(axis=-1)
    message = f"{name}: {describe(chances)} has fewer chances above 0 than there are draws without replacement"
    return require(ranked, E("greater_equal", possible, number).all(), message)


def _all_chances(name: str, chances: Node) -> tuple[Node, str]:
    """Tell whether numbers are chances, and the error where they are not."""
    return E("greater_equal", chances, 0.0).all(), f"{name}: {describe(chances)} has a chance that is negative or NaN"


def _none_possible(chances: Node) -> str:
    return f"{describe(chances)} has no chance above 0"


def _ranked(key: Any, chances: Node) -> Node:
    """Categories in random order, those of larger chances rather before others: by exponential numbers over chances,
    the smallest first. Those of no chance come last. The numbers are scaled, so that of the least chance they are
    finite."""
    drawn = exponential(key, chances.type.shape, chances.type.dtype if is_float(chances.type.dtype) else None)
    scaled = drawn * literal(np.dtype(drawn.type.dtype).type(LEAST[drawn.type.dtype]), drawn.type.dtype) / chances
    waits = E("where", E("greater", chances, 0.0), scaled, np.dtype(scaled.type.dtype).type(np.inf))

    def step(waits: Node, _: Node) -> tuple[Node, Node]:
        first = waits.argmin()
        return set_subtensor(waits[first], literal(np.dtype(waits.type.dtype).type(np.inf), waits.type.dtype)), first

    order: Node = scan(step, waits, places((chances.type.shape[0],)))[1]
    return order


# --- multivariate -----------------------------------------------------------------------------------------------------
# Random vectors and matrices of a covariance: normal vectors, Wishart matrices.
#
# In: a key, parameters with axes before as batches, the shape of the batch. Out: nodes, which have derivatives by all
# parameters, through the factors of covariances.


METHODS = ("cholesky", "eigh", "svd")


def _root(cov: Node, method: str) -> Node:
    """A matrix whose product with its transpose is a covariance."""
    if method == "cholesky":
        return factor.cholesky(cov)
    if method == "eigh":
        values, vectors = factor.eigh(cov)
        return vectors * layout.expand(sqrt(maximum(values, 0.0)), (values.ndim - 1,))
    u, s, _ = factor.svd(cov)
    return u * layout.expand(sqrt(s), (s.ndim - 1,))


def _outer(name: str, shape: Shape, *own: tuple[Size, ...]) -> tuple[Size, ...]:
    """The axes before vectors or matrices: those asked for, else those of the parameters."""
    nodes = [layout.zeros("bool", each) for each in own]
    batch = broadcast_sizes(name, nodes)
    if shape is None:
        return tuple(batch)
    wanted = as_shape((shape,) if isinstance(shape, int | np.integer) else shape, name, instead="give ndim=")
    if len(wanted) < len(batch):
        raise ShapeError(f"{name}: the parameters have {len(batch)} axes of a batch, the shape {len(wanted)}")
    return tuple(wanted)


def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Shape = None, dtype: Any = None, method: str = "cholesky"
) -> Node:
    """Draw normal vectors along the last axis: mean + r z, where r r' = cov and z is standard normal.

    mean: (..., n). cov: (..., n, n), symmetric. shape: the axes before the vector, by default those of the parameters.
    method: what r is made by; "cholesky" needs a positive definite covariance and reads its lower triangle, and raises
    LinAlgError for another; "eigh" and "svd" take singular ones. Its derivatives by mean and cov hold z.

        >>> key = graphc.random.key(0)
        >>> graphc.random.multivariate_normal(key, [0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]], (1000,)).shape
        (1000, 2)
    """
    name = "multivariate_normal"
    middle, spread = as_node(mean), as_node(cov)
    if not middle.ndim or spread.ndim < 2:
        raise RankError(
            f"{name}: {describe(middle)} of type {middle.type} and {describe(spread)} of type {spread.type} should be "
            "a vector and a matrix"
        )
    if method not in METHODS:
        raise GraphValueError(f"{name}: method={method!r} must be one of {', '.join(METHODS)}")
    real = float_of(name, dtype, middle, spread)
    middle, spread = cast(middle, real), cast(spread, real)
    count = sizes.common(middle.type.shape[-1], spread.type.shape[-1], name, ", the vectors")
    outer = _outer(name, shape, middle.type.shape[:-1], spread.type.shape[:-2])
    drawn = normal(key, (*outer, count), real)
    root = _root(spread, method)
    if spread.ndim == 2:
        moved = matmul(drawn, layout.transpose(root))
    else:
        moved = matmul(root, layout.expand(drawn, (drawn.ndim,)))
        moved = layout.drop(moved, (moved.ndim - 1,))
    return middle + moved


def orthogonal(key: Any, n: Any, shape: Shape = (), dtype: Any = None, m: Any = None) -> Node:
    """Draw n x m matrices, m = n by default, whose shorter sides are orthonormal, all equally likely: the factor q of
    a matrix of normal numbers, with the signs of r's diagonal (Mezzadri, Notices of the AMS 54, 2007).

        >>> graphc.random.orthogonal(graphc.random.key(0), 3, (5,)).shape
        (5, 3, 3)
    """
    width = n if m is None else m
    long, short = (n, width) if n >= width else (width, n)
    own, _ = sized("orthogonal", shape)
    q, r = factor.qr(normal(key, (*own, long, short), dtype))
    q = q * layout.expand(copysign(1.0, diagonal(r, 0, -2, -1)), (q.ndim - 2,))
    return q if n >= width else layout.transpose(q)


def ball(key: Any, d: Any, p: Any = 2, shape: Shape = (), dtype: Any = None) -> Node:
    """Draw points of the unit ball of the p-norm in d dimensions, all equally likely, along a last axis: generalized
    normal numbers over the p-norm of these and an exponential number (Barthe, Guedon, Mendelson and Naor, Annals of
    Probability 33, 2005).

        >>> graphc.random.ball(graphc.random.key(0), 3, shape=(5,)).shape
        (5, 3)
    """
    own, _ = sized("ball", shape)
    sides = generalized_normal(fold_in(key, 0), p, (*own, d), dtype)
    power = float(p) if isinstance(p, int) else p
    rest = exponential(fold_in(key, 1), own, sides.type.dtype)
    whole = (abs(sides) ** power).sum(axis=-1) + rest
    return sides / layout.expand(whole ** (1.0 / power), (whole.ndim,))


def wishart(key: Any, df: Any, scale: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw Wishart matrices: sums of `df` products x x' of normal vectors x of covariance `scale`, for any real df
    above n - 1 (Bartlett's decomposition, Odell and Feiveson, Journal of the American Statistical Association 61,
    1966).

    df: a number, or one for each matrix. scale: (..., n, n), positive definite. shape: the axes before the matrix, by
    default those of the parameters. Of a smaller df the numbers are NaN.
    """
    name = "wishart"
    degrees, spread = as_node(df), as_node(scale)
    if spread.ndim < 2:
        raise RankError(f"{name}: {describe(spread)} of type {spread.type} is no matrix")
    real = float_of(name, dtype, degrees, spread)
    degrees, spread = cast(degrees, real), cast(spread, real)
    count = spread.type.shape[-1]
    outer = _outer(name, shape, degrees.type.shape, spread.type.shape[:-2])
    freedom = layout.expand(broadcast_node(degrees, outer), (len(outer),)) - cast(layout.iota(count), real)
    enough = freedom > 0
    drawn = chisquare(fold_in(key, 0), elementwise("where", enough, freedom, 1.0), (*outer, count), real)
    lengths = elementwise("where", enough, sqrt(drawn), np.nan)
    beyond = triangle(normal(fold_in(key, 1), (*outer, count, count), real), strict=True)
    half = matmul(factor.cholesky(spread), beyond + diagonal_matrix(lengths))
    return matmul(half, layout.transpose(half))
