"""Random programs with loops and choices that depend on values: what a traced function compiles to loops of its own.

    program(7)      the text of `def program(x, y, s, k)`, the same for every call with this seed

Loops end after a bounded number of steps. Programs read and write arrays by element, slice and view, swap and alias
names, break, continue and return, and call a helper that chooses and loops itself.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

HELPERS = """
import numpy as np

def clipped(v, top):
    if v > top:
        return top
    if v < -top:
        return -top
    return v

def halvings(v):
    count = 0
    while abs(v) > 0.5 and count < 20:
        v = v / 2
        count += 1
    return count
"""


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters = 0
        self.arrays = ["a", "b"]
        self.floats = ["s", "t"]
        self.ints = ["k", "m"]

    def choice(self, *options: Any) -> Any:
        return self.random.choice(options)

    def number(self) -> str:
        kinds = [
            "{f}",
            "{f}",
            "{a}[{i}]",
            "{a}[{i}]",
            "{a}.sum()",
            "{c}",
            "{a}.max()",
            "clipped({f}, 1.5)",
            "float({k})",
        ]
        form = self.choice(*kinds)
        return form.format(
            f=self.choice(*self.floats),
            a=self.choice(*self.arrays),
            i=self.index(),
            c=self.choice("0.5", "1.25", "-0.75"),
            k=self.choice(*self.ints),
        )

    def index(self) -> str:
        return self.choice(
            "0", "-1", *(f"{each} % n" for each in self.ints), *(f"({each} + 1) % n" for each in self.ints)
        )

    def value(self) -> str:
        form = self.choice("{0}", "{0} * 0.5", "{0} + {1}", "{0} - {1}", "np.sin({0})", "{0} if {2} else {1}")
        return form.format(self.number(), self.number(), self.condition(0))

    def condition(self, depth: int = 1) -> str:
        whole = self.choice(*self.ints)
        kinds = [
            f"{self.number()} > {self.number()}", f"{self.choice(*self.floats)} < 0.75", f"{whole} % 2 == 0",
            f"{whole} < n", f"-1 < {self.choice(*self.floats)} < 1.5", f"np.isfinite({self.choice(*self.floats)})",
        ]  # fmt: skip
        if depth:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            kinds += [f"({left} and {right})", f"({left} or {right})", f"not ({left})"]
        return self.choice(*kinds)

    def write(self, text: str, indent: int) -> None:
        self.lines.append("    " * indent + text)

    def simple(self, indent: int) -> None:
        array, other = self.choice(*self.arrays), self.choice(*self.arrays)
        single, whole = self.choice(*self.floats), self.choice(*self.ints)
        form = self.choice(
            f"{single} = {self.value()}", f"{single} = {self.value()}", f"{single} += {self.number()} * 0.25",
            f"{whole} += 1", f"{whole} = ({whole} * 3 + 1) % 7", f"{array}[{self.index()}] = {self.value()}",
            f"{array}[{self.index()}] += {self.number()}", f"{array}[1:] = {other}[:-1] * 0.5",
            f"{array} += {single}", f"{array} = {other} * 0.5 + {single}", f"{array} = {other}.copy()",
            f"{array}, {other} = {other}, {array}", f"view = {array}[1:]; view[:] = {single}",
            f"{whole} = halvings({single})", f"{array} = {other}", f"last = {single}",
            f"{array}[{self.index()}], {array}[{self.index()}] = {array}[-1], {array}[0]",
        )  # fmt: skip
        self.write(form, indent)

    def block(self, indent: int, depth: int, in_loop: bool) -> None:
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if depth and kind < 0.25:
                self.write(f"if {self.condition()}:", indent)
                self.block(indent + 1, depth - 1, in_loop)
                if self.random.random() < 0.5:
                    self.write("else:", indent)
                    self.block(indent + 1, depth - 1, in_loop)
            elif depth and kind < 0.5:
                self.loop(indent, depth)
            elif kind < 0.52:
                self.write(
                    self.choice(f"assert not ({self.condition()}), 'told'", f"if {self.condition()}: raise ValueError"),
                    indent,
                )
            elif in_loop and kind < 0.6:
                self.write(f"if {self.condition()}:", indent)
                self.simple(indent + 1)
                self.write(self.choice("break", "continue", "return s, t, k, m, a, b, last"), indent + 1)
            else:
                self.simple(indent)

    def loop(self, indent: int, depth: int) -> None:
        self.counters += 1
        counter = f"c{self.counters}"
        if self.random.random() < 0.5:
            over = self.choice(
                "range(n)", "range(1, n)", "range(5)", "range(k % 5)", "range(n - 1, -1, -1)", "enumerate(a)", "b"
            )
            target = f"{counter}, t" if over == "enumerate(a)" else "s" if over == "b" else counter
            self.write(f"for {target} in {over}:", indent)
            inside = over not in ("b",)
            if inside:
                self.ints.append(counter)
            self.block(indent + 1, depth - 1, True)
            if inside:
                self.ints.remove(counter)
        else:
            self.write(f"{counter} = 0", indent)
            self.write(f"while {counter} < {self.choice('6', 'n')} and {self.condition()}:", indent)
            self.write(f"{counter} += 1", indent + 1)
            self.block(indent + 1, depth - 1, True)


def program(seed: int) -> str:
    """The text of a program."""
    writer = Writer(seed)
    writer.write("def program(x, y, s, k):", 0)
    for line in ("a = x.copy()", "b = y * 1.0", "n = len(a)", "t = s * 0.5", "m = 1", "last = 0.0"):
        writer.write(line, 1)
    writer.loop(1, 2)
    writer.block(1, 2, False)
    writer.write("return s, t, k, m, a, b, last", 1)
    return HELPERS + "\n" + "\n".join(writer.lines) + "\n"


def function_of(seed: int) -> Callable[..., Any]:
    """The function of a program, whose source Python finds."""
    text, name = program(seed), f"<loop program {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    scope: dict[str, Any] = {"__name__": "loop_program"}
    exec(compile(text, name, "exec"), scope)
    made: Callable[..., Any] = scope["program"]
    return made


def arguments(seed: int, size: int) -> Sequence[Any]:
    """Arguments for a program."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=size), rng.normal(size=size), float(rng.normal()), int(rng.integers(0, 9))
