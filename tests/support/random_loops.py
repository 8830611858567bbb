"""Random programs of loops, as lowering might write them and worse: for passes that a graph seldom leads into a corner.

In: a seed. Out: a kernel over rows: loops along a row, sums in one piece and in blocks, elements, names and
accumulators between them, and branches around any of these, which read and write a few buffers at places that meet, or
almost. Loops may be left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from graphc.loopir.ir import (
    BLOCK,
    INDEX,
    ONE,
    ZERO,
    Break,
    Buffer,
    Const,
    Expr,
    Function,
    If,
    Let,
    Load,
    Loop,
    Note,
    Set,
    Stmt,
    Store,
    Target,
    Var,
    add,
    apply,
    blocks_of,
    integer,
    iterations_in_block,
    multiply,
)
from graphc.loopir.operators import ACCUMULATE, ADD, CALLS, CASTS, GT, MUL

FLOAT = "float64"
LENGTH = 40
"""Of every buffer: no place lies beyond."""
SUMS = Target(integer(LENGTH), ONE)
X, Y, F = Buffer("x", FLOAT), Buffer("y", FLOAT), Buffer("f", "float32")
A, B = (Buffer(name, FLOAT, is_temporary=True, target=SUMS) for name in "ab")
OUT = Buffer("out", FLOAT, target=SUMS)
READ = (X, Y, A, B, OUT)
WRITTEN = (A, B, OUT)
N, M = Var("n", INDEX), Var("m", INDEX)
NUMBERS = {"n": 3, "m": 4}
PARAMS = (*READ, F, N, M)


@dataclass
class Writer:
    """Writes statements: the names that are known, the places, and the accumulators that have begun."""

    draw: random.Random
    values: list[Var] = field(default_factory=list)
    places: list[Expr] = field(default_factory=lambda: [ZERO, ONE])
    totals: list[Var] = field(default_factory=list)
    count: int = 0

    def name(self, stem: str, dtype: str) -> Var:
        self.count += 1
        return Var(f"{stem}{self.count}", dtype)

    def place(self) -> Expr:
        """Mostly the innermost loop's own element."""
        place = self.places[-1] if self.draw.random() < 0.6 else self.draw.choice(self.places)
        return add(place, ONE) if self.draw.random() < 0.15 else place

    def value(self, depth: int = 2) -> Expr:
        match self.draw.randrange(6 if depth else 2):
            case 0 if self.values or self.totals:
                return self.draw.choice([*self.values[-3:], *self.totals])
            case 0 | 1 | 2:
                return Load(self.draw.choice(READ), self.place())
            case 3:
                value = self.value(depth - 1)
                return apply(ADD, value, value)
            case 4:
                return apply(CALLS["exp"], self.value(depth - 1))
        return apply(self.draw.choice([MUL, ADD]), self.value(depth - 1), self.value(depth - 1))

    def inside(self, places: Sequence[Expr], write: Callable[[], list[Stmt]]) -> tuple[Stmt, ...]:
        """What is written in a loop's body, whose names are forgotten."""
        known = list(self.values), list(self.places), list(self.totals)
        self.places += places
        body = write()
        self.values, self.places, self.totals = known
        return tuple(body)

    def step(self) -> Stmt:
        """One of the statements that may stand anywhere."""
        match self.draw.randrange(9):
            case 0 | 1 | 2:
                return Store(self.draw.choice(WRITTEN), self.place(), self.value())
            case 6 | 7:
                return self.added()
            case 3:
                stmt = Let(self.name("v", FLOAT), self.value())
                self.values.append(stmt.var)
                return stmt
            case 4 if self.totals:
                total = self.draw.choice(self.totals)
                return Set(total, apply(ACCUMULATE, total, self.value()))
            case 8:
                return self.branching(lambda: self.steps(3))
        return Note("a remark")

    def added(self) -> Store:
        """An element is added to another, of rows in float32 maybe."""
        buffer, place = self.draw.choice(WRITTEN), self.place()
        narrow = apply(CASTS[FLOAT], Load(F, self.place()))
        term = narrow if self.draw.random() < 0.5 else self.value(1)
        return Store(buffer, place, apply(ACCUMULATE, Load(buffer, place), term))

    def steps(self, most: int) -> list[Stmt]:
        return [self.step() for _ in range(self.draw.randrange(1, most))]

    def begin(self) -> Set:
        """An accumulator's beginning, maybe of one that there is."""
        total = self.draw.choice(self.totals) if self.totals and self.draw.random() < 0.4 else self.name("t", FLOAT)
        stmt = Set(total, Const("0.0", FLOAT) if self.draw.random() < 0.7 else self.value())
        self.totals.append(total)
        return stmt

    def along(self) -> Stmt:
        """A loop along a row, of one iteration maybe, which may be left."""
        var = self.name("j", INDEX)
        size = ONE if self.draw.random() < 0.1 else M if self.draw.random() < 0.9 else N

        def write() -> list[Stmt]:
            leaving = self.leaving(0.3)
            return self.anywhere(leaving, self.steps(4))

        return Loop(var, size, self.inside([var], write))

    def condition(self) -> Expr:
        return apply(GT, self.value(1), self.value(1))

    def leaving(self, share: float) -> list[Stmt]:
        """A branch that leaves the loop, maybe: it reads what is known where its body begins."""
        if self.draw.random() > share:
            return []
        branches: list[tuple[Stmt, ...]] = [(Break(),), self.inside([], lambda: self.steps(2))]
        self.draw.shuffle(branches)
        return [If(self.condition(), *branches)]

    def anywhere(self, some: list[Stmt], body: list[Stmt]) -> list[Stmt]:
        """Statements at a place among others."""
        place = self.draw.randrange(len(body) + 1)
        return [*body[:place], *some, *body[place:]]

    def branching(self, write: Callable[[], list[Stmt]]) -> If:
        """A branch, or two."""
        condition = self.condition()
        then = self.inside([], write)
        return If(condition, then, self.inside([], write) if self.draw.random() < 0.5 else ())

    def in_blocks(self) -> list[Stmt]:
        """A sum by blocks, and what is done with its elements beside."""
        total = self.begin()
        block, iteration = self.name("block", INDEX), self.name("r", INDEX)
        part = self.name("part", FLOAT)
        place = add(multiply(block, integer(BLOCK)), iteration)

        def write() -> list[Stmt]:
            added = Set(part, apply(ACCUMULATE, part, self.value(1)))
            return [added, *(self.steps(3) if self.draw.random() < 0.3 else [])]

        inner = Loop(iteration, iterations_in_block(M, block), self.inside([place], write))
        whole = Set(total.var, apply(ACCUMULATE, total.var, part))
        return [total, Loop(block, blocks_of(M), (Set(part, Const("0.0", FLOAT)), inner, whole))]

    def row(self) -> list[Stmt]:
        """What an iteration of the outer loop does."""
        body: list[Stmt] = []
        for _ in range(self.draw.randrange(1, 7)):
            match self.draw.randrange(10):
                case 0 | 1 | 2:
                    body.append(self.along())
                case 3 | 4:
                    body += self.in_blocks()
                case 5:
                    body.append(self.begin())
                case 8:
                    body.append(self.branching(lambda: [self.along() for _ in range(self.draw.randrange(1, 4))]))
                case 9:
                    body.append(self.branching(lambda: [*self.in_blocks(), *self.steps(4)]))
                case 6:
                    row = Let(self.name("row", INDEX), self.draw.choice([multiply(self.places[2], M), M]))
                    self.places.append(row.var)
                    body.append(row)
                case _:
                    body.append(self.step())
        return body


def random_loops(seed: int) -> Function:
    """A kernel of one or two loops over rows, with a few statements before them."""
    writer = Writer(random.Random(seed))
    body: list[Stmt] = [writer.begin()] if writer.draw.random() < 0.5 else []

    def rows() -> list[Stmt]:
        before = [writer.step()] if writer.draw.random() < 0.3 else []
        row = writer.name("i", INDEX)

        def write() -> list[Stmt]:
            leaving = writer.leaving(0.2)
            return writer.anywhere(leaving, writer.row())

        return [*before, Loop(row, N, writer.inside([row], write))]

    for _ in range(writer.draw.choice([1, 1, 2])):
        body += [writer.branching(rows)] if writer.draw.random() < 0.2 else rows()
    if writer.totals:
        body.append(Store(OUT, ZERO, writer.totals[-1]))
    return Function("kernel", PARAMS, tuple(body), "")
