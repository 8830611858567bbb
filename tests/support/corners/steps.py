"""A value of a program, and its sizes.

In: operands. Out: `Step` records: a graph of graphc's beside the same in NumPy with its error. A size is a number where
the type says it, else a word: equal words are equal sizes in every call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import graphc.tensor as T
from graphc.ir.node import Node
from tests.support.corners.bounded import Bounded

Size = int | str
FLOATS = ("float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True, slots=True)
class Step:
    """A value: how it is made of the values at `operands`; `exact` where its bits do not depend on how.

    A leaf has no operands, and a kind: "input", "mutable" or "shared".
    """

    text: str
    operands: tuple[int, ...]
    graph: Callable[..., Node]
    oracle: Callable[..., Bounded]
    dtype: str
    sizes: tuple[Size, ...]
    exact: bool = False
    smooth: bool = True
    kind: str = ""

    @property
    def ndim(self) -> int:
        return len(self.sizes)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


def leaf(dtype: str, sizes: tuple[Size, ...], kind: str = "input") -> Step:
    return Step(kind, (), T.copy, lambda x: x, dtype, sizes, True, kind=kind)


def broadcast(a: Sequence[Size], b: Sequence[Size]) -> tuple[Size, ...] | None:
    """The sizes to which two tuples of them broadcast; only a 1 that the type says gives way."""
    longer, shorter = (list(a), list(b)) if len(a) >= len(b) else (list(b), list(a))
    shorter = [*(1 for _ in range(len(longer) - len(shorter))), *shorter]
    result: list[Size] = []
    for left, right in zip(longer, shorter, strict=True):
        if left != right and 1 not in (left, right):
            return None
        result.append(right if left == 1 else left)
    return tuple(result)


def plus(a: Size, b: Size) -> Size:
    return a + b if isinstance(a, int) and isinstance(b, int) else f"({a}+{b})"


def times(a: Size, b: Size) -> Size:
    return a * b if isinstance(a, int) and isinstance(b, int) else f"({a}*{b})"


def sliced(size: Size, part: slice) -> Size:
    if isinstance(size, int):
        return len(range(size)[part])
    if part == slice(None) or part == slice(None, None, -1):
        return size
    return f"{size}[{part.start}:{part.stop}:{part.step}]"


def count_at_most(sizes: Sequence[Size], letters: Mapping[str, int]) -> int:
    """How many elements an array of these sizes has at most, for such sizes as only a call tells."""
    total = 1
    for size in sizes:
        if isinstance(size, str):
            whole = re.sub(r"\[[^\]]*\]|/\d+@\d+", "", size)  # the size of what is cut, for that of a part
            size = int(eval(whole, {}, dict(letters)))  # a sum or product of sizes, written by `plus` and `times`
        total *= size
    return total
