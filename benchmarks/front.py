"""README's figures and its picture, from the report that the last run wrote.

In: `docs/benchmarks.md`. Out: the table below `<!-- figures -->` of `README.md`, and `docs/front.svg`: a program, the
loops that graphc makes of it, and the time of a call of every program of the report. `make bench` ends with it;
`python -m benchmarks.front` does it alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import FuncFormatter

import graphc
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
PROGRAM = """x = T.dvector("x")
y = T.dvector("y")
loss = T.log(1 + T.exp(-x * y)).mean()
slope = graphc.grad(loss, x)
f = graphc.function([x, y], [loss, slope])
"""
WRITTEN = re.compile(r"(<!-- figures -->\n\n).*?\n(?=\n[^|])", re.DOTALL)
"""README's part that is written here: from its mark to the end of its table."""


def cells(report: str, title: str) -> list[list[str]]:
    """The rows of the table below a title of the report, the first of which is its head."""
    _, found, below = report.partition(f"## {title}\n")
    assert found, f"the report has no table {title!r}"
    table = below.partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|") and not line.startswith("|---")]
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


def ratios(report: str) -> dict[str, list[float]]:
    """The times of a call of each peer, relative to graphc's, of all programs that it has."""
    head, *rows = cells(report, "Time of a call")
    columns = {peer: head.index(peer) for peer in PEERS if peer in head}
    found: dict[str, list[float]] = {}
    for peer, column in columns.items():
        texts = [row[column].strip("*") for row in rows]
        found[peer] = [float(text) for text in texts if text != "-"]
    return {peer: values for peer, values in found.items() if values}


def loops_of_program() -> str:
    """The loops of the source that graphc generates for PROGRAM."""
    names: dict[str, Any] = {"graphc": graphc, "T": graphc.tensor}
    with graphc.options.change(mode="python"):
        exec(compile(PROGRAM, "loss.py", "exec"), names)
    found: str = names["f"].source.partition("\ndef sizes(")[0]
    return "\n".join(line for line in found.splitlines() if '"""' not in line)


def draw_front(report: str) -> Figure:
    """The picture: a program, its loops, and the times of a call."""
    drawing = Figure(figsize=(12.6, 5.8), facecolor="white")
    left = drawing.add_axes((0.015, 0.02, 0.50, 0.96))
    left.set_axis_off()
    left.set_xlim(0, 1)
    left.set_ylim(0, 1)
    _panel(left, 0.73, 0.26, "what you write", PROGRAM, "#f2f6fa")
    _panel(left, 0.01, 0.64, "the loops that graphc makes of it", loops_of_program(), "#f7f4ee")
    left.annotate(
        "", xy=(0.2, 0.66), xytext=(0.2, 0.725), arrowprops={"arrowstyle": "-|>", "color": "#444444", "lw": 2}
    )
    left.text(0.23, 0.69, "differentiated, made stable, fused, compiled once, kept on disk", fontsize=9.5, va="center")
    _draw_ratios(drawing.add_axes((0.615, 0.13, 0.368, 0.73)), ratios(report))
    return drawing


def _panel(axes: Any, bottom: float, height: float, title: str, code: str, colour: str) -> None:
    box = FancyBboxPatch(
        (0.01, bottom), 0.98, height, boxstyle="round,pad=0,rounding_size=0.02", fc=colour, ec="#c8c8c8", lw=1
    )
    axes.add_patch(box)
    axes.text(0.03, bottom + height - 0.035, title, fontsize=11, fontweight="bold", va="top")
    axes.text(0.03, bottom + height - 0.1, code, fontsize=8.2, family="DejaVu Sans Mono", va="top", linespacing=1.35)


def _draw_ratios(axes: Any, found: dict[str, list[float]]) -> None:
    """A row for each peer: a dot for each program, a bar at the geometric mean."""
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
    axes.set_yticks(range(len(found)), [NAMES[peer] for peer in found])
    axes.set_ylim(len(found) - 0.4, -0.75)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    count = max(map(len, found.values()))
    axes.set_title(f"time of a call / graphc's, {count} programs", fontsize=11, fontweight="bold", loc="left", pad=14)
    axes.set_xlabel("a dot is a program, a bar the geometric mean; left of 1 graphc is slower", fontsize=9)


def write_front(folder: Path = ROOT) -> None:
    """Bring README's table and the picture up to date."""
    report = (folder / "docs" / "benchmarks.md").read_text("utf-8")
    readme = folder / "README.md"
    readme.write_text(with_table(readme.read_text("utf-8"), report), "utf-8")
    with mpl.rc_context({"svg.hashsalt": "graphc"}):
        draw_front(report).savefig(folder / "docs" / "front.svg", metadata={"Date": None})


if __name__ == "__main__":
    write_front()
