"""Every function along an axis, over all pairs of static sizes 0 to 9: programs of one step.

In: nothing. Out: the list of them, the same every time. The two axes stand alone, before one or two axes of 1, or after
one whose size only a call tells. Twenty neighbours in the list differ in their sizes alone, so that no loop of one is
shared with another's where they are compiled as one function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.support.corners.axes import CUMULATIONS, NORMALISERS, REDUCTIONS, Along, along, suits
from tests.support.corners.programs import Program
from tests.support.corners.steps import Size, leaf

PAIRS = [(a, b) for a in range(10) for b in range(10)]
BATCH = 20


@dataclass(frozen=True, slots=True)
class Pattern:
    """Axes around the two of a pair."""

    before: tuple[Size, ...]
    after: tuple[Size, ...]


PATTERNS: Sequence[Pattern] = (
    Pattern((), ()), Pattern((), (1,)), Pattern((), (1, 1)), Pattern(("n",), ()), Pattern(("n",), (1,)),
)  # fmt: skip
DTYPES = ("float64", "float32", "float64", "int16")


def programs() -> Iterator[Program]:
    """All of them, in batches of `BATCH` that stand one after the other."""
    functions: list[Along] = [*REDUCTIONS, *NORMALISERS, *CUMULATIONS]
    for number, what in enumerate(functions):
        for turn, pattern in enumerate(PATTERNS):
            for axis in (0, 1):
                for place, (a, b) in enumerate(PAIRS):
                    batch = place // BATCH
                    dtype = DTYPES[(number + turn + axis + batch) % len(DTYPES)]
                    x = leaf(dtype, (*pattern.before, a, b, *pattern.after))
                    axes = (len(pattern.before) + axis,)
                    order = int(what.smooth and dtype != "int16" and (number + turn + batch) % 3 == 0)
                    if suits(what, x, axes):
                        yield Program((x, along(what, 0, x, axes)), (1,), (), order)
