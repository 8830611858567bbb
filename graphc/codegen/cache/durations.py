"""Compile times of graphs: a record in the cache's folder, and the forecast that it gives for another graph.

In: the work of a graph, which is the number of its nodes, and the seconds that compiling it took. Out: the seconds that
a graph of some work will take, from those of similar work; None where too few are known.

    note(1200, 3.1)        after a compilation: a line "1200 3.1" in the file `durations`
    expected(1500)         3.9, where three graphs of about as many nodes took 2.6 ms a node
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from graphc.codegen.cache import files
from graphc.options import options

DURATIONS = "durations"
"""The file: for each compilation a line with its work and its seconds, the latest last."""
MOST_BYTES = 4096
"""The size from which the older half of its lines is dropped."""
FEWEST, SIMILAR = 3, 4.0
"""The number of compilations that a forecast needs; the factor by which their work may differ from that of the graph.
The seconds of a node differ less between graphs of similar size than between small and large ones."""

Durations = Iterable[tuple[int, float]]


def note(work: int, seconds: float) -> None:
    """Add a compilation to the record. Does nothing where the folder cannot be written."""
    place = f"{options.cache_dir}{os.sep}{DURATIONS}"
    if options.cache and files.is_trusted(options.cache_dir):
        with suppress(OSError):
            if files.append(place, b"%d %.3f\n" % (work, seconds)) > MOST_BYTES:
                lines = files.read(place, files.own()).splitlines(keepends=True)
                files.replace(place, b"".join(lines[len(lines) // 2 :]))


def expected(work: int) -> float | None:
    """Return the seconds that a graph of `work` nodes is likely to take, from those compiled earlier."""
    found: list[tuple[int, float]] = []
    with suppress(OSError, files.Damaged, ValueError):
        if options.cache:
            content = files.read(f"{options.cache_dir}{os.sep}{DURATIONS}", files.readable())
            found = [(int(nodes), float(seconds)) for nodes, seconds in map(bytes.split, content.splitlines())]
    return forecast(work, found)


def forecast(work: int, known: Durations) -> float | None:
    """Return the seconds for `work` at the mean pace of similar graphs; None where there are fewer than FEWEST."""
    near = [(nodes, seconds) for nodes, seconds in known if work / SIMILAR <= nodes <= work * SIMILAR and seconds > 0]
    if len(near) < FEWEST:
        return None
    return work * sum(seconds for _, seconds in near) / sum(nodes for nodes, _ in near)
