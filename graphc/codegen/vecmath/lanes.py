"""Vectors that are parts of longer ones.

In: an llvmlite builder, values. Out: those of other lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llvmlite import ir

LANE = ir.IntType(32)


def lanes_from(first: int, count: int) -> ir.Constant:
    """`count` lanes of a vector, in order."""
    return lanes_at(range(first, first + count))


def lanes_at(places: Iterable[int]) -> ir.Constant:
    """Lanes of a vector, for those of another one."""
    made = [LANE(place) for place in places]
    return ir.Constant(ir.VectorType(LANE, len(made)), made)


def vector_of(type: ir.Type, lanes: int) -> ir.Type:
    """The vector type, or for one lane the type itself."""
    return type if lanes == 1 else ir.VectorType(type, lanes)


def join_vectors(builder: ir.IRBuilder, vectors: Sequence[ir.Value]) -> ir.Value:
    """One vector of the lanes of several."""
    while len(vectors) > 1:
        whole = lanes_from(0, 2 * vectors[0].type.count)
        vectors = [builder.shuffle_vector(*pair, whole) for pair in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def call_in_parts(
    builder: ir.IRBuilder, function: ir.Function, arguments: Sequence[ir.Value], fixed: Sequence[ir.Value] = ()
) -> ir.Value:
    """A function of vectors for longer ones, called for some of their numbers after the other; `fixed`: what it takes
    besides each time."""
    lanes, at_once = arguments[0].type.count, function.args[0].type.count
    results = []
    for first in range(0, lanes, at_once):
        some = lanes_from(first, at_once)
        parts = [builder.shuffle_vector(given, given, some) for given in arguments]
        results.append(builder.call(function, [*parts, *fixed]))
    if not isinstance(results[0].type, ir.LiteralStructType):
        return join_vectors(builder, results)
    places = range(len(results[0].type.elements))
    return as_struct(
        builder, [join_vectors(builder, [builder.extract_value(e, place) for e in results]) for place in places]
    )


def as_struct(builder: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """Several values as one."""
    whole: ir.Value = ir.Constant(ir.LiteralStructType([value.type for value in values]), ir.Undefined)
    for place, value in enumerate(values):
        whole = builder.insert_value(whole, value, place)
    return whole
