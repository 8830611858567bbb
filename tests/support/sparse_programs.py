"""Random programs of sparse matrices, whose sizes are among what they compute: held to SciPy and NumPy.

In: a number. Out: a program and what is wrong with it in a mode, or "". Numbers are small integers, so that every sum
is exact and nothing depends on an order. Run with a setting of `poison` and numbers, it prints each number before it
runs that program: an access out of bounds ends a process.
"""

from __future__ import annotations

import faulthandler
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

import graphc
import graphc.tensor as T
from graphc import sparse
from graphc.control.branch import ifelse
from graphc.options import options

Make = Callable[..., Any]
"""Computes a value of others, as nodes or as arrays."""


def dense(value: Any) -> Any:
    return value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)


def counted(count: Any) -> Any:
    """The sum of the numbers below a count, step by step."""
    begin = T.zeros((), "int64")
    totals, _ = graphc.scan(lambda number, total: total + number, sequences=T.arange(count), outputs_info=begin)
    return totals


def same(make: Make) -> tuple[Make, Make]:
    return make, make


MAKERS: Sequence[tuple[str, tuple[Make, Make]]] = (
    # Of sparse matrices (s), dense ones (d), vectors (v) and sizes (n); the kind of the result comes first.
    ("sss", same(lambda x, y: x + y)),
    ("sss", same(lambda x, y: x - y)),
    ("sss", (sparse.mul, lambda x, y: (x + 0 * y).multiply(y))),
    ("sss", (lambda x, y: sparse.hstack([x, y]), lambda x, y: scipy.sparse.hstack([x, y]).tocsr())),
    ("sss", (lambda x, y: sparse.vstack([x, y]), lambda x, y: scipy.sparse.vstack([x, y]).tocsr())),
    ("sss", (sparse.true_dot, lambda x, y: (x @ y).tocsr())),
    ("ss", same(lambda x: x.T)),
    ("ss", same(lambda x: x[1:3])),
    ("ss", same(lambda x: x[::-1, 1:])),
    ("ss", (sparse.sqr, lambda x: x.multiply(x))),
    ("ss", same(lambda x: x.tocsc())),
    ("ss", same(lambda x: x.tocsr())),
    ("ssv", (sparse.row_scale, lambda x, v: (scipy.sparse.diags(v) @ x).tocsr())),
    ("ssv", (sparse.col_scale, lambda x, v: (x @ scipy.sparse.diags(v)).tocsr())),
    ("ssn", same(lambda x, n: x[: n // 2])),
    ("ds", (sparse.dense_from_sparse, dense)),
    ("dsd", (sparse.dot, lambda x, y: x @ y)),
    ("dd", same(lambda x: x.T + 1.0)),
    ("dnn", (lambda n, m: T.zeros((n, m + 1)) + n, lambda n, m: np.zeros((n, m + 1)) + n)),
    ("dd", (lambda x: T.concatenate([x, x[:1]]), lambda x: np.concatenate([x, x[:1]]))),
    ("vs", (lambda x: x.sum(0), lambda x: np.asarray(x.sum(0)).reshape(-1))),
    ("vs", (lambda x: x.sum(1), lambda x: np.asarray(x.sum(1)).reshape(-1))),
    ("vsv", (sparse.dot, lambda x, v: x @ v)),
    ("vd", same(lambda x: x.sum(0))),
    ("vn", (lambda n: T.arange(n) * 2.0, lambda n: np.arange(n) * 2.0)),
    ("vv", same(lambda v: v.cumsum() * 1.0)),
    ("vvn", same(lambda v, n: v[: n - 1])),
    ("vv", (lambda v: T.nonzero(v > 1.0)[0] * 1.0, lambda v: np.nonzero(v > 1.0)[0] * 1.0)),
    ("vn", (lambda n: counted(n) * 1.0, lambda n: np.arange(n).cumsum() * 1.0)),
    ("vvn", (
        lambda v, n: ifelse(n > 3, v + n, T.concatenate([v, v])),
        lambda v, n: v + n if n > 3 else np.concatenate([v, v]),
    )),
    ("ns", same(lambda x: x.shape[0])),
    ("ns", same(lambda x: x.shape[1])),
    ("nd", same(lambda x: x.shape[0])),
    ("nv", same(lambda x: x.shape[0])),
    ("nnn", same(lambda n, m: n + m)),
    ("nn", same(lambda n: n + 1)),
    ("nnn", (lambda n, m: T.minimum(n * 2, m), lambda n, m: np.minimum(n * 2, m))),
)  # fmt: skip


MOST = 60
"""Rows or columns of a value, and the largest number."""
CALLS = 2
FOUND = (1053, 1062)
"""Programs that have found a fault."""


@dataclass(frozen=True, slots=True)
class Value:
    """A node, and its arrays in each of the calls."""

    kind: str
    node: Any
    arrays: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """`given`: the inputs; `wanted`: the results."""

    given: list[Value]
    wanted: list[Value]


def _drawn(draw: random.Random, rng: np.random.Generator, number: int) -> Value:
    kind = "ssssdv"[number % 6]
    letters = {"s": draw.choice(["nm", "nm", "nn", "mn"]), "d": "mn", "v": draw.choice("nm")}[kind]
    arrays = []
    for sizes in ({"n": 4, "m": 3}, {"n": 7, "m": draw.choice([1, 5, 7])}):
        shape = tuple(sizes[letter] for letter in letters)
        arrays.append(rng.integers(-2, 4, shape) * (rng.random(shape) < 0.5) * 1.0)
    if kind == "s":
        form = draw.choice(["csr", "csc"])
        return Value(
            kind, sparse.matrix(form, f"x{number}"), tuple(scipy.sparse.csr_matrix(a).asformat(form) for a in arrays)
        )
    return Value(kind, T.tensor("float64", (None,) * arrays[0].ndim, f"x{number}"), tuple(arrays))


def _fits(array: Any) -> bool:
    values = dense(array)
    return max(values.shape, default=0) <= MOST and float(np.abs(values).max(initial=0)) < 1e6


def _grown(draw: random.Random, values: Sequence[Value]) -> Value | None:
    """A value of others; None where they do not fit."""
    kinds, (make, right) = draw.choice(MAKERS)
    operands = []
    for kind in kinds[1:]:
        found = [value for value in values if value.kind == kind]
        if not found:
            return None
        operands.append(draw.choice(found[-4:] if draw.random() < 0.5 else found))
    try:
        arrays = tuple(right(*(each.arrays[call] for each in operands)) for call in range(CALLS))
        if not all(map(_fits, arrays)):
            return None
        return Value(kinds[0], make(*(each.node for each in operands)), arrays)
    except (ValueError, IndexError, graphc.GraphcError):
        return None


def random_program(number: int) -> Program:
    draw, rng = random.Random(f"sparse {number}"), np.random.default_rng(number)
    given = [_drawn(draw, rng, place) for place in range(6)]
    values = list(given)
    for _ in range(draw.randrange(20, 60)):
        grown = _grown(draw, values)
        values += [] if grown is None else [grown]
    made = values[len(given) :]
    sizes = [value for value in made if value.kind == "n"]
    wanted = draw.sample(made, min(len(made), draw.randrange(2, 5)))
    wanted += draw.sample(sizes, min(len(sizes), draw.randrange(1, 4)))
    draw.shuffle(wanted)
    return Program(given, wanted)


def wrong(number: int, mode: str) -> str:
    """How a program differs from SciPy and NumPy; "" where it does not."""
    program = random_program(number)
    inputs = [value.node for value in program.given]
    call = graphc.function(inputs, [value.node for value in program.wanted], mode, on_unused_input="ignore")
    for turn in (*range(CALLS), 0):
        found = call(*(value.arrays[turn] for value in program.given))
        for place, (value, got) in enumerate(zip(program.wanted, found, strict=True)):
            want = dense(value.arrays[turn])
            if not np.array_equal(dense(got), want):
                return f"program {number}, call {turn}, result {place}: {dense(got)!r} instead of {want!r}"
    return ""


if __name__ == "__main__":
    faulthandler.enable()
    with options.change(poison=sys.argv[1]):
        for each in map(int, sys.argv[2:]):
            print("program", each, flush=True)
            problem = wrong(each, "compiled")
            assert not problem, problem
