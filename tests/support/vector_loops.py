"""Loops at random for the vectoriser, and whether the loops it writes compute what the plain ones do.

In: a seed and a target. Out: nothing, or an AssertionError that shows the loop. Each seed draws one loop of each kind:
elementwise with masks, gathers and elementary functions; reductions; rows; and such as must stay as they are, with
branches, strides, conflicts. They are compiled twice, as ever and with the vectoriser off, and run for trip counts from
0 to 70. Stored elements and reductions that have no order agree to the bit. A sum or a product of floats is taken in
another order: it lies within the bound of any order (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).

`python -m tests.support.vector_loops --programs 5000 --seed 7` runs more of them, 15 for a seed.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import random
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from graphc.arrays.dtypes import DISCRETE, DTYPES, FLOATS, INTEGERS, NUMBERS
from graphc.codegen.frontend import lowering
from graphc.codegen.link.elf import link
from graphc.codegen.link.image import load
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.vecmath import table as outofline
from graphc.codegen.vectorize import vectorizer, widen
from graphc.options import options
from tests.support.compiled_source import compile_source

Array = NDArray[Any]
MOST = 70
"""The largest trip count."""
LONGEST_ROW = 17
ROOM = LONGEST_ROW * MOST + 16
"""Elements of each buffer: more than any loop touches, so that a store beyond its end is seen."""
ROWS = 3
POINTERS = ("a", "b", "c", "w", "out", "out1", "sums", "terms")
"""Buffers of a loop, besides `at`, places to gather from, and `count`, integers."""
FUNCTIONS = ("exp", "log1p", "tanh", "sin", "cos", "sqrt", "fabs", "floor", "erfc")
BEGIN = 0.25


@dataclass
class Drawn:
    """A loop: the dtype it computes in, that of each buffer, its lines. `term`: what its sum or product of floats, in
    `sums[0]`, adds up, where it has one."""

    kind: str
    dtype: str
    dtypes: dict[str, str]
    lines: list[str]
    term: str = ""
    setup: list[str] = field(default_factory=list)

    def prototype(self, name: str) -> Prototype:
        pointers = (*(f"{dtype}*" for dtype in self.dtypes.values()), "int64*", "int64*")
        return Prototype(name, (*pointers, "int64", "int64"))

    def source(self, name: str) -> str:
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def {name}({', '.join(self.dtypes)}, at, count, n, m):\n{body}    return 0\n"

    def source_of_terms(self, name: str) -> str:
        """A function that stores each term."""
        loop = ["for i in range(n):", *(f"    {line}" for line in self.setup), f"    terms[i] = {self.term}"]
        body = "".join(f"    {line}\n" for line in loop)
        return f"def {name}({', '.join(self.dtypes)}, at, count, n, m):\n{body}    return 0\n"


class Drawer:
    """One loop of a kind at random."""

    def __init__(self, kind: str, draw: random.Random) -> None:
        self.draw = draw
        self.dtype = draw.choice(OF_KIND.get(kind, DTYPES))
        narrow = DISCRETE if self.dtype in DISCRETE else DTYPES
        own = dict.fromkeys(POINTERS, self.dtype)
        self.drawn = Drawn(kind, self.dtype, own | {name: draw.choice(narrow) for name in "ab"}, [])
        self.names: list[str] = []
        self.lines: list[str] = []

    def cast(self, value: str, dtype: str = "") -> str:
        name = dtype or self.dtype
        return f"{'bool_' if name == 'bool' else name}({value})"

    def literal(self) -> str:
        match self.dtype:
            case "bool":
                return self.draw.choice(["True", "False"])
            case "float32" | "float64":
                return self.cast(self.draw.choice(["0.5", "-3.0", "-0.0", "inf", "1e-3"]))
        return self.cast(self.draw.choice(["1", "3", "7", "100"]))

    def element(self) -> str:
        """An element at the index, beside it, at one place, or gathered; the index itself."""
        places = ["i", "i", "i + m", "m + i", "i + m * 2", "m", "0", "at[i]", "at[i] + m", "at[m + i]"]
        return self.cast(f"{self.draw.choice('abab')}[{self.draw.choice(places)}]")

    def value(self) -> str:
        terms = [self.element(), self.element(), self.literal(), *self.names[-3:], *self.names[-2:]]
        return self.draw.choice([*terms, self.cast("i")] if self.dtype != "bool" else terms)

    def condition(self) -> str:
        if self.dtype == "bool":
            return self.value()
        return f"({self.value()} {self.draw.choice(['<', '<=', '==', '!=', '>'])} {self.value()})"

    def expression(self) -> str:
        one, two, three = self.value(), self.value(), self.value()
        choices = [f"select({self.condition()}, {two}, {three})"]
        if self.dtype in NUMBERS:
            choices += [f"{one} {sign} {two}" for sign in "+-*"]
            choices += [f"{name}({one}, {two})" for name in ("minimum", "maximum")]
        if self.dtype in DISCRETE:
            choices += [f"({one} {sign} {two})" for sign in "&|^"]
        if self.dtype in FLOATS:
            choices += [f"{one} / {two}", f"{self.draw.choice(FUNCTIONS)}({one})"] * 2
            choices += [f"select(isnan({one}), {two}, {three})", f"select(isfinite({one}), {two}, {three})"]
        return self.draw.choice(choices)

    def names_given(self, count: int) -> None:
        """Statements that give names to values."""
        for _ in range(count):
            name = f"v{len(self.names)}"
            self.lines.append(f"{name} = {self.expression()}")
            self.names.append(name)

    def over(self) -> str:
        return self.draw.choice(["independent(n)", "independent(n)", "independent(1, n)", "independent(n - n // 3)"])

    def finish(self, before: list[str], head: str, after: list[str], depth: int = 1) -> Drawn:
        self.drawn.lines = [*before, head, *("    " * depth + line for line in self.lines), *after]
        return self.drawn

    # kinds

    def map(self) -> Drawn:
        self.names_given(self.draw.randrange(1, 8))
        self.lines.append(f"out[i + m] = {self.names[-1]}")
        if self.draw.random() < 0.5:
            self.lines.append(f"out1[i] = select({self.condition()}, {self.expression()}, out1[i])")
        return self.finish([], f"for i in {self.over()}:", [])

    def masks(self) -> Drawn:
        """Conditions within conditions, written as selections."""
        self.names_given(3)
        chosen = self.value()
        for _ in range(4):
            chosen = f"select({self.condition()}, {chosen}, select({self.condition()}, {self.value()}, {self.value()}))"
        self.lines += [f"v = {chosen}", "out[i] = v"]
        return self.finish([], f"for i in {self.over()}:", [])

    def calls(self) -> Drawn:
        """Elementary functions enough to be called out of line; sine and cosine of one number."""
        x = self.element()
        self.lines += [f"v0 = sin({x}) + cos({x})", f"v1 = tanh(v0) * exp({self.element()})"]
        self.names += ["v0", "v1"]
        self.names_given(self.draw.randrange(1, 3))
        self.lines.append(f"out[i] = {self.names[-1]} + v1")
        return self.finish([], f"for i in {self.over()}:", [])

    def total(self) -> Drawn:
        """A sum; beside it, maybe, a store."""
        self.names_given(self.draw.randrange(0, 4))
        self.drawn.term = self.expression()
        self.drawn.setup = list(self.lines)
        if self.draw.random() < 0.4:
            self.lines.append(f"out[i] = {self.value()}")
        self.lines.append(f"s = accumulate(s, {self.drawn.term})")
        before = [f"s = {self.cast(str(BEGIN) if self.dtype in FLOATS else '3')}"]
        return self.finish(before, "for i in independent(n):", ["sums[0] = s"])

    def product(self) -> Drawn:
        self.drawn.term = "w[i]" if self.dtype in FLOATS else self.element()
        self.lines.append(f"p = accumulate_product(p, {self.drawn.term})")
        before = [f"p = {self.cast(str(BEGIN) if self.dtype in FLOATS else '3')}"]
        return self.finish(before, "for i in independent(n):", ["sums[0] = p"])

    def extremes(self) -> Drawn:
        """The least and the largest, NaN and infinities among them, of several values."""
        self.names_given(self.draw.randrange(0, 3))
        words = ("accumulate_minimum", "accumulate_maximum", "accumulate_lowest", "accumulate_highest")
        words = words if self.dtype in FLOATS else ("minimum", "maximum", "fmin", "fmax")
        before = [f"s{number} = {self.cast('c[m]')}" for number in range(4)]
        self.lines += [f"s{number} = {word}(s{number}, {self.expression()})" for number, word in enumerate(words)]
        return self.finish(
            before, f"for i in {self.over()}:", [f"sums[{number + 1}] = s{number}" for number in range(4)]
        )

    def logic(self) -> Drawn:
        self.names_given(self.draw.randrange(0, 3))
        before = [f"s{number} = c[{number}]" for number in range(3)]
        self.lines += [f"s{number} = s{number} {sign} {self.expression()}" for number, sign in enumerate("&|^")]
        return self.finish(
            before, f"for i in {self.over()}:", [f"sums[{number + 1}] = s{number}" for number in range(3)]
        )

    def several(self) -> Drawn:
        """Reductions of several dtypes beside a store."""
        self.names_given(self.draw.randrange(1, 4))
        self.lines += [
            f"hits = hits + int64({self.condition()})",
            f"most = accumulate_maximum(most, float64({self.value()}))",
        ]
        if self.draw.random() < 0.5:
            self.lines.append(f"out1[i + 1] = {self.names[-1]}")
        self.lines.append(f"bits = bits ^ int8({self.condition()})")
        after = ["count[0] = hits", "count[1] = int64(most == most)", "count[2] = int64(bits)"]
        return self.finish(["hits = int64(m)", "most = -inf", "bits = int8(1)"], f"for i in {self.over()}:", after)

    def place(self) -> Drawn:
        """The first place of the largest: it stays as it is, for each iteration waits for the one before."""
        self.lines += [
            f"v = {self.element()}",
            "hit = v > best",
            "at_best = select(hit, i, at_best)",
            "best = select(hit, v, best)",
        ]
        after = ["sums[1] = best", "count[0] = at_best"]
        return self.finish([f"best = {self.cast('c[0]')}", "at_best = int64(-1)"], f"for i in {self.over()}:", after)

    def branches(self) -> Drawn:
        """Statements under conditions within conditions: LLVM's."""
        self.names_given(2)
        known = list(self.names)
        for depth in range(2):
            self.lines.append("    " * depth + f"if {self.condition()}:")
        self.lines += [f"        out[i] = {self.expression()}", "    else:", f"        out1[i] = {self.expression()}"]
        self.names = known
        return self.finish([], f"for i in {self.over()}:", [])

    def strides(self) -> Drawn:
        """Elements backwards and by steps, read or written: most are LLVM's."""
        place = self.draw.choice(["n - 1 - i", "2 * i", "i * 2 + 1", "n - i"])
        self.names_given(1)
        value = self.cast(f"a[{place}]")
        if self.draw.random() < 0.5:
            self.lines.append(f"out[i] = select({self.condition()}, {value}, v0)")
        else:
            self.lines.append(f"out[{place}] = v0")
        return self.finish([], f"for i in {self.over()}:", [])

    def conflicts(self) -> Drawn:
        """Iterations that meet in an element, over a mere range: into places that repeat, or one after the other."""
        place = self.draw.choice(["at[i]", "i + 1", "0"])
        before = {"at[i]": "out[at[i]]", "i + 1": "out[i]", "0": "out[0]"}[place]
        sign = "+" if self.dtype in NUMBERS else "^"
        self.lines.append(f"out[{place}] = {before} {sign} {self.element()}")
        return self.finish([], "for i in range(n):", [])

    def rows(self) -> Drawn:
        """Rows one after the other, short ones too, with a reduction of each."""
        self.lines += [f"v = {self.expression()}", "out[j * n + i] = v"]
        self.lines.append("s = s + i * j")
        self.lines = [line.replace("[i]", "[j * m + i]") for line in self.lines]
        head = f"for j in independent({ROWS}):\n        s = int64(0)\n        for i in independent(n):"
        return self.finish([], head, ["    count[j] = s"], depth=2)

    def columns(self) -> Drawn:
        """Short rows: some of their columns are read, one or all or some are written, in place maybe."""
        width, begin = self.draw.randrange(2, LONGEST_ROW + 1), self.draw.choice(["", " + m", " + 1"])
        self.drawn.dtypes["a"] = self.drawn.dtypes["out"] = self.draw.choice([self.dtype, self.drawn.dtypes["a"]])
        read, written = self.draw.choice(["a", "b", "out"]), self.draw.choice(["all", "all", "some", "none"])
        taken = self.draw.sample(range(width), self.draw.randrange(1, width + 1))
        for number, column in enumerate(taken):
            place = f"i * {width} + {column}{begin}" if self.draw.random() < 0.5 else f"{column} + {width} * i{begin}"
            self.lines.append(f"v{number} = {self.cast(f'{read}[{place}]')}")
            self.names.append(f"v{number}")
        to = self.drawn.dtypes["out"]
        stored = {"all": range(width), "some": taken, "none": ()}[written]
        for column in stored:
            value = self.cast(self.draw.choice([*self.names, self.expression()]), to)
            self.lines.append(f"out[i * {width} + {column}{begin}] = {value}")
        if written == "none":
            self.lines.append(f"out1[i] = {self.expression()}")
        self.lines.append(f"hits = hits + int64({self.condition()})")
        return self.finish(["hits = int64(m)"], f"for i in {self.over()}:", ["count[0] = hits"])

    def moves(self) -> Drawn:
        """Memory copied or cleared: zeros of all dtypes, a negative one."""
        zero = {"bool": "False"}.get(
            self.dtype, self.cast(self.draw.choice(["0", "0", "-0.0"] if self.dtype in FLOATS else ["0"]))
        )
        value = self.draw.choice(["c[i + m]", zero])
        self.lines.append(f"out[i + m] = {value}")
        return self.finish([], f"for i in {self.over()}:", [])


OF_KIND: dict[str, tuple[str, ...]] = {
    "calls": FLOATS, "total": NUMBERS, "product": NUMBERS, "extremes": NUMBERS, "logic": DISCRETE, "place": NUMBERS,
}  # fmt: skip
"""The dtypes of kinds that have not all."""
KINDS: tuple[Callable[[Drawer], Drawn], ...] = (
    Drawer.map, Drawer.masks, Drawer.calls, Drawer.total, Drawer.product, Drawer.extremes, Drawer.logic, Drawer.several,
    Drawer.place, Drawer.branches, Drawer.strides, Drawer.conflicts, Drawer.rows, Drawer.moves,
    Drawer.columns,
)  # fmt: skip


def draw_loops(seed: int) -> list[Drawn]:
    """A loop of each kind."""
    return [kind(Drawer(kind.__name__, random.Random(f"{seed} {kind.__name__}"))) for kind in KINDS]


# --- what they compute ------------------------------------------------------------------------------------------------


def numbers(dtype: str, rng: np.random.Generator) -> Array:
    """Elements of all magnitudes, special ones among them, and many that are alike."""
    if dtype == "bool":
        return rng.random(ROOM) < 0.5
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        drawn = rng.integers(limits.min, limits.max, ROOM, dtype, endpoint=True)
        return np.where(rng.random(ROOM) < 0.5, drawn, drawn % 5).astype(dtype)
    drawn = rng.normal(size=ROOM) * 10.0 ** rng.integers(-2, 2, ROOM)
    special = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], ROOM)
    drawn = np.where(rng.random(ROOM) < rng.choice([0.0, 0.02]), special, drawn)
    return np.where(rng.random(ROOM) < 0.2, np.rint(drawn), drawn).astype(dtype)


def arguments(loop: Drawn, seed: int) -> dict[str, Array]:
    """Contents of the buffers of a loop."""
    rng = np.random.default_rng([seed, len(loop.kind)])
    found = {name: numbers(dtype, rng) for name, dtype in loop.dtypes.items()}
    if loop.dtype in FLOATS:
        found["w"] = rng.uniform(0.8, 1.25, ROOM).astype(loop.dtype)
    found["at"] = rng.integers(0, MOST, ROOM)
    found["count"] = np.zeros(ROOM, np.int64)
    return found


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays are equal to the bit; NaN is NaN."""
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    bits = f"u{one.itemsize}"
    return bool(np.all((one.view(bits) == other.view(bits)) | (np.isnan(one) & np.isnan(other))))


def is_reordered_well(loop: Drawn, got: Any, terms: Array) -> bool:
    """Whether a sum or a product of floats lies within the error bound of any order."""
    with np.errstate(all="ignore"):
        unit = np.finfo(loop.dtype).eps / 2
        exact = [BEGIN, *terms.astype(float)]
        steps = (len(exact) + 2) * unit
        gamma = steps / (1 - steps)
        if loop.kind == "product":
            wanted = math.prod(exact)
            return bool(abs(float(got) - wanted) <= gamma * abs(wanted))
        size = float(np.sum(np.abs(exact)))
        if not math.isfinite(size):
            return same_bits(np.array([float(got)]), np.array([float(np.sum(exact))]))
        if size > float(np.finfo(loop.dtype).max) / 4:
            return True
        return bool(abs(float(got) - math.fsum(exact)) <= gamma * size)


class Compiled:
    """The functions of a source as machine code."""

    def __init__(self, source: str, functions: list[Prototype], scalar: bool) -> None:
        with mock.patch.object(lowering, "vectorize", return_value=True) if scalar else nullcontext():
            binary = compile_source(source, functions)
        names = [function.name for function in functions]
        self.code = load(link([binary], names), {}, names)

    def call(self, name: str, arrays: dict[str, Array], *sizes: int) -> None:
        values = [*(array.ctypes.data for array in arrays.values()), *sizes]
        ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(values))(self.code.addresses[name])(*values)


def check_loops(seed: int, trip_counts: range = range(MOST + 1)) -> None:
    """Compare the loops of a seed with their scalar forms, for the target that the options name."""
    loops = draw_loops(seed)
    functions = [loop.prototype(loop.kind) for loop in loops]
    source = "".join(loop.source(loop.kind) for loop in loops)
    summed = [loop for loop in loops if loop.term]
    of_terms = "".join(loop.source_of_terms(f"{loop.kind}_terms") for loop in summed)
    with options.change(compile="inline"):
        written = Compiled(source, functions, scalar=False)
        more = [loop.prototype(f"{loop.kind}_terms") for loop in summed]
        plain = Compiled(source + of_terms, [*functions, *more], scalar=True)
    for loop in loops:
        given = arguments(loop, seed)
        for n in trip_counts:
            m = n % 5
            got, wanted = ({name: array.copy() for name, array in given.items()} for _ in range(2))
            written.call(loop.kind, got, n, m)
            plain.call(loop.kind, wanted, n, m)
            if loop.term and loop.dtype in FLOATS:
                plain.call(f"{loop.kind}_terms", wanted, n, m)
                assert is_reordered_well(loop, got["sums"][0], wanted["terms"][:n]), describe(loop, "sums", n)
                got["sums"][0], got["terms"] = wanted["sums"][0], wanted["terms"]
            for name, array in got.items():
                assert same_bits(array, wanted[name]), describe(loop, name, n)


def describe(loop: Drawn, name: str, n: int) -> str:
    return f"{name} of {n} iterations, {loop.dtypes}, target {options.target}\n{loop.source(loop.kind)}"


def on_processor(masks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write loops as for vectors of 64 bytes, with masks or without; LLVM makes of it what this machine has."""
    for module in (vectorizer, widen, outofline):
        for name, answer in (("has_avx512", masks), ("has_fma", True), ("usual_width", 512)):
            monkeypatch.setattr(module, name, lambda answer=answer: answer, raising=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="loops")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen, _ = parser.parse_known_args()
    print(f"loops over vectors: --seed {chosen.seed}", flush=True)
    for seed in range(chosen.seed, chosen.seed + -(-chosen.programs // len(KINDS))):
        check_loops(seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
