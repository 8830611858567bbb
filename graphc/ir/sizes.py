"""Arithmetic of sizes: numbers where they are known, int64 scalar nodes where they are not.

In: sizes. Out: sizes, constant-folded and normalised, so that equal expressions are mostly the same node:

    add(add(n, 2), -2)  ->  n          minimum(n, add(n, 1))  ->  n          subtract(n, n)  ->  0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import cast

from graphc.errors import ShapeError
from graphc.ir.node import OPS, PARAM, SIZE, Node, Size, constant_value, describe_size, make
from graphc.ir.walk import as_size_node


def as_size(node: Node) -> Size:
    """A scalar integer node as a size: a number if it is constant."""
    value = constant_value(node)
    if value is not None:
        return int(value)
    if node.type.dtype == "int64":
        return node
    return make(OPS["cast"], (node,), {"dtype": "int64"})


def _apply(op: str, left: Size, right: Size) -> Node:
    return make(OPS[op], (as_size_node(left), as_size_node(right)))


def _ordered(left: Size, right: Size) -> tuple[Size, Size]:
    """The operands of a commutative op in canonical order: older nodes first, numbers last."""
    if isinstance(left, int) or (isinstance(right, Node) and right.serial < left.serial):
        return right, left
    return left, right


def add(left: Size, right: Size) -> Size:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    left, right = _ordered(left, right)
    if isinstance(right, int):
        node = cast(Node, left)
        if right == 0:
            return node
        if node.op is OPS["add"] and (inner := constant_value(node.args[1])) is not None:
            return add(as_size(node.args[0]), int(inner) + right)
    return _apply("add", left, right)


def total(parts: Iterable[Size]) -> Size:
    """The sum of sizes."""
    start: Size = 0
    return reduce(add, parts, start)


def shapes_differ(left: Sequence[Size], right: Sequence[Size]) -> bool:
    """True if two shapes differ in rank, or in a size that both know."""
    pairs = zip(left, right, strict=False)
    return len(left) != len(right) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def subtract(left: Size, right: Size) -> Size:
    if isinstance(right, int):
        return add(left, -right)
    terms, number = difference(left, right)
    if not terms:
        return number
    if list(terms.values()) == [1]:
        (node,) = terms
        return add(node, number)
    return _apply("sub", left, right)


def difference(left: Size, right: Size) -> tuple[dict[Node, int], int]:
    """left - right as a linear form: a factor for each node that is not a sum itself, and a constant."""
    terms: Counter[Node] = Counter()
    number = 0
    pending = [(left, 1), (right, -1)]
    while pending:
        size, sign = pending.pop()
        value = size if isinstance(size, int) else constant_value(size)
        if value is not None:
            number += sign * int(value)
        elif isinstance(size, Node) and size.type.dtype == "int64" and size.op.name in ("add", "sub"):
            first, second = size.args
            pending += ((first, sign), (second, sign if size.op.name == "add" else -sign))
        elif isinstance(size, Node):
            terms[size] += sign
    return {node: factor for node, factor in terms.items() if factor}, number


def known_at_least(left: Size, right: Size) -> bool:
    """True if left >= right holds in every run."""
    if isinstance(left, int) and isinstance(right, int):
        return left >= right
    if _is_multiple_within(right, left):
        return True
    terms, number = difference(left, right)
    return number >= 0 and all(factor > 0 and known_nonnegative(node) for node, factor in terms.items())


def _is_multiple_within(size: Size, whole: Size) -> bool:
    """True if a size is `whole // k * k` for a number k above 0, as programs write that cut to a multiple."""
    if isinstance(size, int) or size.op.name != "mul":
        return False
    for one, other in (size.args, size.args[::-1]):
        number = constant_value(other)
        if number is not None and number > 0 and one.op.name == "floor_div":
            dividend, divisor = map(as_size, one.args)
            if equal(divisor, int(number)) and equal(dividend, whole):
                return True
    return False


def is_natural(node: Node) -> bool:
    """True if a node is a body's parameter that stands for a size, hence is not negative."""
    return node.op is PARAM and bool(node.attrs["natural"])


def known_nonnegative(size: Size) -> bool:
    """True if a size is at least 0 in every run."""
    pending, seen = [size], set[Size]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        number = current if isinstance(current, int) else constant_value(current)
        if number is not None:
            if number < 0:
                return False
        elif isinstance(current, Node) and current.op is not SIZE and not is_natural(current):
            name = current.op.name
            values = map(constant_value, current.args if name == "maximum" else ())
            if any(value is not None and int(value) >= 0 for value in values):
                continue
            if name == "sum" and (mask := current.args[0]).op.name == "cast" and mask.args[0].type.dtype == "bool":
                continue  # the number of true elements of a mask
            if name not in ("add", "mul", "minimum", "maximum", "floor_div", "where"):
                return False
            pending.extend(current.args[1:] if name == "where" else current.args)
    return True


DEEPEST = 8
"""The nesting of sums and extremes that `known_most` looks through."""


def known_most(size: Size, deepest: int = DEEPEST) -> int | None:
    """An upper bound of a size, valid in every run, such as 2 of the slice `x[3:5]`; None if none is found."""
    number = size if isinstance(size, int) else constant_value(size)
    if number is not None:
        return int(number)
    assert isinstance(size, Node)
    if size.type.dtype != "int64" or size.op.name not in ("minimum", "maximum", "add", "sub") or not deepest:
        return None
    first, second = size.args
    if size.op.name == "sub":
        less = constant_value(second)
        most = None if less is None else known_most(first, deepest - 1)
        return None if less is None or most is None else most - int(less)
    bounds = [most for each in (first, second) if (most := known_most(each, deepest - 1)) is not None]
    if size.op.name == "minimum":
        return min(bounds, default=None)
    if len(bounds) < 2:
        return None
    return max(bounds) if size.op.name == "maximum" else sum(bounds)


def multiply(left: Size, right: Size) -> Size:
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    left, right = _ordered(left, right)
    if right == 1:
        return left
    if right == 0:
        return 0
    return _apply("mul", left, right)


def floor_divide(left: Size, right: Size) -> Size:
    """left // right, for right other than 0."""
    if isinstance(left, int) and isinstance(right, int) and right:
        return left // right
    if right == 1:
        return left
    return _apply("floor_div", left, right)


def minimum(left: Size, right: Size) -> Size:
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right)
    for one, other in ((left, right), (right, left)):
        if known_at_least(one, other):
            return other
    return _apply("minimum", *_ordered(left, right))


def maximum(left: Size, right: Size) -> Size:
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    for one, other in ((left, right), (right, left)):
        if known_at_least(one, other):
            return one
    return _apply("maximum", *_ordered(left, right))


def product(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for size in sizes:
        result = multiply(result, size)
    return result


def equal(left: Size, right: Size) -> bool:
    """True if the two sizes are known to be equal in every run."""
    return left == right if isinstance(left, int) and isinstance(right, int) else left is right


def common(left: Size, right: Size, described: str, part: str = "") -> Size:
    """The common size of two that must agree. Raises ShapeError if they are known to differ.

    Numbers win over nodes. `described` and `part` name in the message what must agree. Sizes that are not known are
    compared by a guard at run time.
    """
    if isinstance(left, int) and isinstance(right, int) and left != right:
        raise ShapeError(f"{described}{part}: sizes {describe_size(left)} and {describe_size(right)} differ")
    return right if isinstance(right, int) else left
