"""`python -m benchmarks.growth`: how compile time grows with the program, against JAX, as a picture and a table.

In: arguments, see --help. Out: `growth.png` and the section of benchmarks.md. Each library compiles the four sizes of a
family in a process of its own, with an empty cache, after a first small function; libraries take turns, and the least
time of several rounds counts.

    $ python -m benchmarks.growth --families sums chains --rounds 1
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TypeAlias

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.growth.families import FAMILIES
from benchmarks.libraries import PEERS
from benchmarks.plots import COLOURS, save
from benchmarks.report import duration, times, with_section
from benchmarks.runner import ROOT

Curve: TypeAlias = "dict[int, float]"
"""Seconds of the processor, by size."""

COLUMNS = 4


def run_process(peer: str, name: str, python: str, limit: float) -> Curve:
    """The curve of a family in a process of its own; empty where that took more than three times the limit."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {key: text.format(cache=folder) for key, text in PEERS[peer].environment.items()}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        command = [python, "-m", "benchmarks.growth.measure", peer, name, str(limit)]
        more = {**os.environ, **environment, "GRAPHC_PROGRESS": "0"}
        try:
            done = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True, timeout=3 * limit + 60, env=more, cwd=ROOT
            )
        except subprocess.TimeoutExpired:
            return {}
    return {size: processor for size, _, processor in json.loads(done.stdout.splitlines()[-1])}


def least(curves: Sequence[Curve]) -> Curve:
    """The least seconds of several rounds, for each size that a round has reached."""
    reached = sorted({size for curve in curves for size in curve})
    return {size: min(curve[size] for curve in curves if size in curve) for size in reached}


def draw(results: Mapping[str, Mapping[str, Curve]], path: Path) -> None:
    """A small plot for each family: seconds against size, both on log scales, with what would be linear dotted."""
    rows = ceil(len(results) / COLUMNS)
    drawing = Figure(figsize=(3 * COLUMNS, 2.3 * rows), layout="constrained")
    plots = drawing.subplots(rows, COLUMNS, squeeze=False).flat
    for axes, (name, curves) in zip(plots, results.items(), strict=False):
        for peer, curve in curves.items():
            axes.plot([*curve], [*curve.values()], "o-", color=COLOURS[peer], label=peer, markersize=3)
        if own := curves["graphc"]:
            last = max(own)
            axes.plot([*own], [own[last] * size / last for size in own], ":", color=COLOURS["interpreted"])
        axes.set(xscale="log", yscale="log", title=name.replace("_", " "))
        axes.grid(alpha=0.3)
    for axes in plots:
        axes.set_axis_off()
    for axes in drawing.axes[: len(results)]:
        axes.set_xticks(FAMILIES[[*results][drawing.axes.index(axes)]].sizes)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    drawing.axes[0].legend(frameon=False, fontsize=8)
    drawing.supylabel("seconds of the processor to a first result")
    save(drawing, path)


def section(results: Mapping[str, Mapping[str, Curve]]) -> str:
    """The section of the report."""
    lines = []
    for name, curves in results.items():
        own, other = curves["graphc"], curves["jax"]
        sizes = FAMILIES[name].sizes
        cells = [duration(own[size]) if size in own else "" for size in sizes]
        growth = max((own[large] / own[small] for small, large in pairwise(sizes) if large in own), default=None)
        cells.append("" if growth is None else f"{growth:.2f}")
        cells += [times(other[size] / own[size]) if size in own and size in other else "" for size in sizes]
        lines.append(f"| {name.replace('_', ' ')} | {sizes[0]} | {' | '.join(cells)} |\n")
    return (
        "## Growth\n\nWhat a first call takes of programs of a size n, 2n, 4n and 8n, written by `python -m "
        "benchmarks.growth`; `benchmarks/growth/families.py` has the programs. Seconds are the processor's; the "
        "largest factor is that from one size to twice that; of JAX the ratio to graphc. A blank was not measured, "
        "because half the size took too long.\n\n![Seconds against size](growth.png)\n\n"
        "| family | n | n | 2n | 4n | 8n | largest factor | jax n | 2n | 4n | 8n |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n" + "".join(lines)
    )


def main() -> None:
    made = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    made.add_argument("--families", nargs="+", choices=FAMILIES, default=[*FAMILIES], help="which (all)")
    made.add_argument("--python", default="benchmarks/.venv/bin/python", help="the Python of JAX (of make bench-env)")
    made.add_argument("--rounds", type=int, default=2, help="processes of each (2)")
    made.add_argument("--limit", type=float, default=30.0, help="seconds, after which no larger size is measured (30)")
    made.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the report")
    chosen = made.parse_args()
    results: dict[str, dict[str, Curve]] = {}
    for name in chosen.families:
        curves: dict[str, list[Curve]] = {"graphc": [], "jax": []}
        for _ in range(chosen.rounds):
            for peer, found in curves.items():
                python = sys.executable if peer == "graphc" else chosen.python
                found.append(run_process(peer, name, python, chosen.limit))
        results[name] = {peer: least(found) for peer, found in curves.items()}
        print(name, results[name], flush=True)
    draw(results, chosen.docs / "growth.png")
    page = chosen.docs / "benchmarks.md"
    page.write_text(with_section(page.read_text(encoding="utf-8"), section(results)), encoding="utf-8")
    print(section(results))


if __name__ == "__main__":
    main()
