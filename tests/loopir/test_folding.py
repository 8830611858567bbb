"""The constructors of the loop IR fold what they are given: the value is that of the operation all the same."""

from __future__ import annotations

import operator
import random

import pytest

from graphc.loopir import ir
from graphc.loopir.ir import INDEX, Apply, Const, Expr, Var

NUMBERS = {"i": 23, "n": 5, "m": 7}
FOLDED = {
    "+": (ir.add, operator.add),
    "*": (ir.multiply, operator.mul),
    "//": (ir.quotient, operator.floordiv),
    "%": (ir.remainder, operator.mod),
}


def value(expr: Expr) -> int:
    """What an expression of these operators is, its names having `NUMBERS`."""
    match expr:
        case Var(name):
            return NUMBERS[name]
        case Const(text):
            return int(text)
        case Apply(op, (left, right)):
            return int(FOLDED[op.name][1](value(left), value(right)))
    raise AssertionError(expr)


def grown(rng: random.Random, depth: int) -> tuple[Expr, int]:
    """A random expression and its value. Divisors are positive, as sizes are."""
    if not depth or rng.random() < 0.2:
        leaves: list[Expr] = [*(Var(name, INDEX) for name in NUMBERS), *map(ir.integer, (0, 1, 2, 3))]
        leaf = rng.choice(leaves)
        return leaf, value(leaf)
    symbol = rng.choice(list(FOLDED))
    fold, plain = FOLDED[symbol]
    (left, a), (right, b) = grown(rng, depth - 1), grown(rng, 0 if symbol in ("//", "%") else depth - 1)
    if symbol in ("//", "%") and b < 1:
        right, b = ir.integer(4), 4
    return fold(left, right), plain(a, b)


@pytest.mark.parametrize("seed", range(20))
def test_folding_keeps_the_value(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        expr, expected = grown(rng, 4)
        assert value(expr) == expected, expr


def test_a_quotient_and_its_remainder_are_joined_only_of_the_same_division() -> None:
    i, n, m = (Var(name, INDEX) for name in "inm")
    whole = ir.multiply(ir.quotient(i, n), n)
    assert ir.add(whole, ir.remainder(i, n)) == i
    for other in (ir.remainder(i, m), ir.remainder(m, n)):
        assert ir.add(whole, other) != i and value(ir.add(whole, other)) == value(whole) + value(other)
    scaled = ir.multiply(ir.quotient(i, n), m)
    assert value(ir.add(scaled, ir.remainder(i, n))) == value(scaled) + value(ir.remainder(i, n))
