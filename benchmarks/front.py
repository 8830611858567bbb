"""README's figures and its picture, from the report that the last run wrote.

In: `docs/benchmarks.md`. Out: the table below `<!-- figures -->` of `README.md`, and `docs/front.svg`: the time to a
first result with an empty and with a full cache, and the time of a call, of every program of the report. `make bench`
ends with it; `python -m benchmarks.front` does it alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.plots import COLOURS
from benchmarks.runner import ROOT

FIGURES = (
    (
        "best framework / graphc, geometric mean",
        "the fastest of JAX, PyTensor and PyTorch, a call, geometric mean of all programs",
        "graphc",
    ),
    ("best framework / graphc, least of all workloads", "the same, where graphc is least ahead", "graphc"),
    (
        "graphc / numba by hand, largest",
        "graphc, a call, in the program where it is furthest behind",
        "loops by hand for numba",
    ),
    ("three vectors in, one out / np.add", "graphc, a call with three small vectors", "a call of `np.add`"),
    (
        "warm start of the XOR step / the same in NumPy alone",
        "graphc, a new process up to its first training step",
        "the same in NumPy",
    ),
    (
        "cold start of the XOR step / the same in NumPy alone",
        "the same where nothing has been compiled yet",
        "the same in NumPy",
    ),
    (
        "peak memory of the MLP step / PyTorch eager's",
        "graphc, memory of a training step of a 784-256-128-10 network",
        "PyTorch",
    ),
)
"""For each row of README: a part of the titles of the report's targets, of which the largest value counts; what is
measured, and what it is compared with."""
PEERS = ("numpy", "pytensor", "jax", "torch", "torch-compiled")
NAMES = {"numpy": "NumPy", "pytensor": "PyTensor", "jax": "JAX", "torch": "PyTorch", "torch-compiled": "torch.compile"}
PANELS = (
    ("Empty cache", "first result, nothing compiled yet"),
    ("Warm cache", "first result of a later process"),
    ("Time of a call", "a call"),
)
"""For each panel of the picture: the title of a table of the report, and the title of the panel."""
WRITTEN = re.compile(r"(<!-- figures -->\n\n).*?\n(?=\n[^|])", re.DOTALL)
"""README's part that is written here: from its mark to the end of its table."""


def cells(report: str, title: str) -> list[list[str]]:
    """The rows of the table below a title of the report, the first of which is its head."""
    found = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", report, re.MULTILINE | re.DOTALL)
    assert found, f"the report has no table {title!r}"
    lines = [line for line in found[1].splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def front_table(report: str) -> str:
    """README's table: the machine, when it was measured, and a row for each of FIGURES."""
    measured = {row[0]: row[1] for row in cells(report, "Targets")}
    machine = re.search(r"(?m)^## Machine and versions\n\n- (.+)$", report)
    assert machine, "the report names no machine"
    largest = {
        text: max((value for title, value in measured.items() if text in title), key=float) for text, *_ in FIGURES
    }
    rows = [f"| {what} | {other} | {largest[text]} |" for text, what, other in FIGURES]
    return "\n".join([f"On {machine[1]}:", "", "| measured | compared with | times |", "|---|---|---:|", *rows])


def with_table(readme: str, report: str) -> str:
    """README with the figures of the report."""
    assert WRITTEN.search(readme), "README has no figures to bring up to date"
    return WRITTEN.sub(lambda found: found[1] + front_table(report) + "\n", readme)


def ratios(report: str, title: str) -> dict[str, list[float]]:
    """The times of each peer in a table of the report, relative to graphc's: a number for each program that it has."""
    head, *rows = cells(report, title)
    columns = {peer: head.index(peer) for peer in PEERS if peer in head}
    found: dict[str, list[float]] = {}
    for peer, column in columns.items():
        texts = [row[column].strip("*") for row in rows]
        found[peer] = [float(text) for text in texts if text != "-"]
    return {peer: values for peer, values in found.items() if values}


def draw_front(report: str) -> Figure:
    """The picture: a panel for each of PANELS."""
    drawing = Figure(figsize=(12.6, 3.6), facecolor="white")
    for number, (axes, (table, title)) in enumerate(zip(drawing.subplots(1, len(PANELS)), PANELS, strict=True)):
        _draw_ratios(axes, title, ratios(report, table), named=number == 0)
    count = max(map(len, ratios(report, PANELS[-1][0]).values()))
    text = "times relative to graphc's: right of 1 graphc is faster; a dot is one of"
    drawing.supxlabel(f"{text} {count} programs, a bar is the geometric mean", fontsize=9)
    drawing.tight_layout(rect=(0, 0.02, 1, 1))
    return drawing


def _draw_ratios(axes: Any, title: str, found: dict[str, list[float]], *, named: bool) -> None:
    """A row for each peer, with its name or without: a dot for each program, a bar at the geometric mean."""
    jitter = np.random.default_rng(1)
    for row, (peer, values) in enumerate(found.items()):
        heights = row + jitter.uniform(-0.22, 0.22, len(values))
        axes.scatter(values, heights, s=26, color=COLOURS[peer], alpha=0.65, linewidths=0)
        mean = float(np.exp(np.mean(np.log(values))))
        axes.plot([mean, mean], [row - 0.36, row + 0.36], color="black", linewidth=2.5)
        axes.text(mean, row - 0.4, f"{mean:.1f}", ha="center", va="bottom", fontsize=9, fontweight="bold")
    axes.axvline(1, color="#444444", linewidth=1.2)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_yticks(range(len(found)), [NAMES[peer] if named else "" for peer in found])
    axes.set_ylim(len(found) - 0.4, -0.75)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, fontsize=10.5, fontweight="bold", loc="left", pad=12)


def write_front(folder: Path = ROOT) -> None:
    """Bring README's table and the picture up to date."""
    report = (folder / "docs" / "benchmarks.md").read_text("utf-8")
    readme = folder / "README.md"
    readme.write_text(with_table(readme.read_text("utf-8"), report), "utf-8")
    with mpl.rc_context({"svg.hashsalt": "graphc"}):
        draw_front(report).savefig(folder / "docs" / "front.svg", metadata={"Date": None})


if __name__ == "__main__":
    write_front()
