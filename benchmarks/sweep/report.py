"""The distribution of a sweep: how many programs are ahead, by how much, and the worst first.

In: records of `measure.py`. Out: text in Markdown, as it is printed and as `docs/sweep.md` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from benchmarks.sweep.program import Program

Record: TypeAlias = Mapping[str, Any]
FRAMEWORKS = ("jax", "numpy")
PERCENTS = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100)


def best_framework(record: Record) -> float | None:
    """The time of a call of the best framework, in those of graphc."""
    calls = record["call"]
    others = [calls[name] for name in FRAMEWORKS if name in calls]
    return float(min(others) / calls["graphc"]) if others and "graphc" in calls else None


def against_loops(record: Record) -> float | None:
    """graphc's time of a call in those of the loops by hand."""
    calls = record["call"]
    return float(calls["graphc"] / calls["numba"]) if {"graphc", "numba"} <= calls.keys() else None


def against_compile(record: Record) -> float | None:
    """graphc's time to compile in JAX's."""
    seconds = record["compile"]
    return float(seconds["graphc"] / seconds["jax"]) if {"graphc", "jax"} <= seconds.keys() else None


def compile_seconds(record: Record) -> float | None:
    found: float | None = record["compile"].get("graphc")
    return found


@dataclass(frozen=True)
class Measure:
    """A ratio of each program. worse: whether more is worse. bounds: what the share of programs within is told of."""

    title: str
    of: Callable[[Record], float | None]
    more_is_worse: bool
    bounds: tuple[float, ...]
    unit: str = ""

    def ranked(self, records: Sequence[Record]) -> list[tuple[float, Record]]:
        """Values and records, the worst first."""
        values = [(self.of(record), record) for record in records]
        known = [(value, record) for value, record in values if value is not None]
        return sorted(known, key=lambda pair: pair[0], reverse=self.more_is_worse)


MEASURES = (
    Measure("best framework / graphc, time of a call", best_framework, False, (1.0,)),
    Measure("graphc / loops by hand, time of a call", against_loops, True, (1.25, 2.0)),
    Measure("graphc / JAX, time to compile", against_compile, True, (1.0, 2.0)),
    Measure("graphc, time to compile", compile_seconds, True, (10.0,), " s"),
)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def distribution(records: Sequence[Record]) -> str:
    """Percentiles of each ratio, from the worst to the best."""
    rows = []
    for measure in MEASURES:
        values = [value for value, _ in measure.ranked(records)]
        percents = [100 - p for p in PERCENTS] if measure.more_is_worse else PERCENTS
        if values:
            rows.append([measure.title, *(f"{np.percentile(values, p):.3g}{measure.unit}" for p in percents)])
    named = ["worst", *(f"{p} %" for p in PERCENTS[1:-1]), "best"]
    return table(["", *named], rows)


def shares(records: Sequence[Record]) -> str:
    """The share of programs within each bound."""
    rows = []
    for measure in MEASURES:
        values = np.array([value for value, _ in measure.ranked(records)])
        for bound in measure.bounds if len(values) else ():
            good = values <= bound if measure.more_is_worse else values >= bound
            sign = "at most" if measure.more_is_worse else "at least"
            share = f"{100 * good.mean():.1f} %"
            rows.append([measure.title, f"{sign} {bound:g}{measure.unit}", share, str(len(values))])
    return table(["", "bound", "programs within", "of"], rows)


def times(record: Record, what: str) -> str:
    unit = 1e6 if what == "call" else 1.0
    return ", ".join(f"{name} {seconds * unit:.3g}" for name, seconds in record[what].items())


def worst(measure: Measure, records: Sequence[Record], count: int) -> str:
    """The programs that are worst by one ratio."""
    what = "compile" if "compile" in measure.title else "call"
    header = ["program", "ratio", "seconds" if what == "compile" else "microseconds"]
    rows = [
        [Program(**record["program"]).title, f"{value:.2f}", times(record, what)]
        for value, record in measure.ranked(records)[:count]
    ]
    return f"### {measure.title}\n\n" + table(header, rows)


def by_kind(records: Sequence[Record]) -> str:
    """Medians of each kind, the worst against loops by hand first."""
    found = []
    for kind in dict.fromkeys(record["program"]["kind"] for record in records):
        own = [record for record in records if record["program"]["kind"] == kind]
        medians = []
        for measure in MEASURES[:3]:
            values = [value for value, _ in measure.ranked(own)]
            medians.append(float(np.median(values)) if values else None)
        found.append((kind, len(own), medians))
    found.sort(key=lambda row: -(row[2][1] or 0))
    rows = [[kind, str(n), *("-" if x is None else f"{x:.2f}" for x in medians)] for kind, n, medians in found]
    return table(["kind", "programs", *(measure.title for measure in MEASURES[:3])], rows)


def failures(records: Sequence[Record]) -> str:
    """The programs that a library refused, or whose results differ."""
    lines = []
    for record in records:
        title = Program(**record["program"]).title
        lines += [f"- {title}: {name} failed: {text[:300]}" for name, text in record["failed"].items()]
        apart = record.get("difference", {})
        lines += [f"- {title}: {name} differs by {apart[name]:.1e}" for name in record.get("differs", ())]
    return "\n".join(lines) or "None."


def write(records: Sequence[Record], count: int = 10) -> str:
    """The whole report."""
    parts = [
        "## Shares",
        shares(records),
        "## Percentiles",
        distribution(records),
        f"## The {count} worst",
        *(worst(measure, records, count) for measure in MEASURES[:3]),
        "## By kind, medians",
        by_kind(records),
        "## What failed or differs",
        failures(records),
    ]
    return "\n\n".join(parts) + "\n"
