"""The plots of the report: bars of ratios, and cost against size.

In: `Results`, where to write. Out: PNG files.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.figures import ratio
from benchmarks.runner import Results
from benchmarks.suite import WORKLOADS

COLOURS = {
    "graphc": "#000000",
    "interpreted": "#999999",
    "numpy": "#56b4e9",
    "numba": "#009e73",
    "jax": "#e69f00",
    "pytensor": "#cc79a7",
    "torch": "#d55e00",
    "torch-compiled": "#a23b00",
}
"""After Okabe and Ito, to be told apart by everyone."""


def draw_ratios(results: Results, path: Path) -> None:
    """A group of bars for each workload: the time of a call, relative to graphc, on a log scale."""
    peers = [peer for peer in COLOURS if peer not in ("graphc", "interpreted")]
    peers = [peer for peer in peers if any(peer in record for record in results.samples.values())]
    names = [name for name in WORKLOADS if any(ratio(results, name, peer, "steady") for peer in peers)]
    drawing = Figure(figsize=(10, 1.5 + 0.13 * len(names) * (len(peers) + 1.5)))
    axes = drawing.subplots()
    height = 1 / (len(peers) + 1.5)
    for number, peer in enumerate(peers):
        found = [(row, ratio(results, name, peer, "steady")) for row, name in enumerate(names)]
        rows = [row + (number - (len(peers) - 1) / 2) * height for row, value in found if value]
        lengths = [value for _, value in found if value]
        axes.barh(rows, [value - 1 for value in lengths], height, left=1, color=COLOURS[peer], label=peer)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.set_xlabel("time of a call / graphc's (right of 1: graphc is ahead)")
    if peers:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(peers), frameon=False)
    save(drawing, path)


def draw_sizes(results: Results, path: Path) -> None:
    """Seconds of a call against the number of elements, both on log scales."""
    drawing = Figure(figsize=(7, 4.5))
    axes = drawing.subplots()
    for peer, times in results.sizes.items():
        sizes = sorted(map(int, times))
        axes.plot(sizes, [times[str(size)] for size in sizes], "o-", color=COLOURS[peer], label=peer, markersize=4)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.set_xlabel("elements (float64)")
    axes.set_ylabel("seconds of a call of exp(-x²) tanh(y) + log1p(y²)")
    if results.sizes:
        axes.legend(frameon=False)
    save(drawing, path)


def save(drawing: Figure, path: Path) -> None:
    with mpl.rc_context({"svg.hashsalt": "graphc"}):
        drawing.savefig(path, dpi=110, bbox_inches="tight")
