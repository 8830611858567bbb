"""`make bench-bridge`: graphc and PyTensor's numba under PyMC, side by side.

In: the Python that has both (`--python`, of `make bridge-env`). Out: `benchmarks/bridge.json`, the table in
docs/pymc.md and its picture. Each figure is of a process of its own; the two take turns. The first round has empty
caches, later ones what it left.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
BACKENDS = ("graphc", "pytensor")
MODELS = ("eight schools", "radon", "gaussian process", "mixture", "correlated (LKJ)", "AR(2)")
SAMPLED = ("eight schools", "radon")
BEGIN, END = "<!-- measured -->\n", "<!-- end of measured -->\n"
Figures = dict[str, dict[str, Any]]


def measure(python: str, what: str, backend: str, model: str, caches: str) -> dict[str, Any]:
    """What a process says of itself; `failed` where it ends badly."""
    own = {
        "GRAPHC_CACHE_DIR": f"{caches}/graphc",
        "PYTENSOR_FLAGS": f"base_compiledir={caches}/pytensor",
        "NUMBA_CACHE_DIR": f"{caches}/numba",
        "PYTHONPATH": str(ROOT),
        "GRAPHC_PROGRESS": "0",
    }
    command = [python, "-m", "benchmarks.bridge.measure", what, backend, model]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().rpartition("\n")[2]}
    found: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found


def jobs(models: Sequence[str]) -> Iterator[tuple[str, str]]:
    for model in models:
        yield "density", model
        if model in SAMPLED:
            yield "sample", model


def run(python: str, models: Sequence[str], warms: int, figures: Figures, file: Path) -> None:
    """Measure, and keep the file up to date."""
    for what, model in jobs(models):
        with tempfile.TemporaryDirectory() as caches:
            for number in range(warms + 1 if what == "density" else 1):
                for backend in BACKENDS:
                    found = measure(python, what, backend, model, f"{caches}/{backend}")
                    key = f"{what} {'warm' if number else 'cold'} {backend}"
                    kept = figures.setdefault(model, {})
                    best = kept.get(key, {})
                    merged = {name: min(value, best.get(name, value)) for name, value in found.items()}
                    kept[key] = merged if number > 1 else found
                    print(model, key, found, flush=True)
                    file.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def figure(figures: Figures, model: str, key: str, name: str) -> float:
    return float(figures.get(model, {}).get(key, {}).get(name, math.nan))


def pair(figures: Figures, model: str, key: str, name: str) -> tuple[float, float]:
    """graphc's and PyTensor's."""
    mine, own = (figure(figures, model, f"{key} {backend}", name) for backend in BACKENDS)
    return mine, own


def seconds(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.2f} s" if value >= 0.01 else f"{value * 1e6:.1f} µs"


COLUMNS = (("first, empty cache", "density cold", "first"), ("first, full cache", "density warm", "first"),
           ("a call", "density warm", "call"), ("nutpie, empty cache", "sample cold", "sample"))  # fmt: skip


def table(figures: Figures) -> str:
    """graphc / PyTensor, and the ratio, for each model."""
    head = ["model", *(title for title, _, _ in COLUMNS)]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * len(COLUMNS)]
    for model in MODELS:
        cells = [model]
        for _, key, name in COLUMNS:
            mine, own = pair(figures, model, key, name)
            known = not (math.isnan(mine) or math.isnan(own))
            cells.append(f"{seconds(mine)} / {seconds(own)} = {own / mine:.1f}" if known else "-")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def picture(figures: Figures) -> str:
    """Bars of the seconds to a first log-density and of nutpie, graphc above PyTensor, on a logarithmic axis."""
    rows = [(model, pair(figures, model, "density cold", "first")) for model in MODELS]
    rows += [(f"{model}, nutpie", pair(figures, model, "sample cold", "sample")) for model in SAMPLED]
    rows = [(name, both) for name, both in rows if not any(map(math.isnan, both))]
    left, width, height, top = 190, 500, 46, 54
    low, high = 0.1, 10 ** math.ceil(math.log10(max((max(both) for _, both in rows), default=1.0)))

    def at(value: float) -> float:
        return left + width * math.log10(max(value, low) / low) / math.log10(high / low)

    bottom = top + height * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{bottom + 40}"',
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{left + width + 90}" height="{bottom + 40}" fill="white"/>',
        f'<rect x="{left}" y="14" width="14" height="14" fill="#1b6ca8"/><text x="{left + 20}" y="26">graphc</text>',
        f'<rect x="{left + 100}" y="14" width="14" height="14" fill="#c9c9c9"/>',
        f'<text x="{left + 120}" y="26">PyTensor (numba)</text>',
    ]
    for power in range(-1, round(math.log10(high)) + 1):
        x = at(10.0**power)
        parts.append(f'<line x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{bottom}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{10.0**power:g} s</text>')
    for number, (name, both) in enumerate(rows):
        y = top + height * number
        parts.append(f'<text x="{left - 10}" y="{y + 22}" text-anchor="end">{name}</text>')
        for place, (value, colour) in enumerate(zip(both, ("#1b6ca8", "#c9c9c9"), strict=True)):
            top_of_bar = y + 17 * place
            parts.append(
                f'<rect x="{left}" y="{top_of_bar}" width="{at(value) - left:.1f}" height="15" fill="{colour}"/>'
            )
            parts.append(
                f'<text x="{at(value) + 5:.1f}" y="{top_of_bar + 12}">{value:.{0 if value >= 10 else 1}f} s</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def write(figures: Figures, docs: Path) -> None:
    """The table in docs/pymc.md, and the picture."""
    (docs / "pymc.svg").write_text(picture(figures), encoding="utf-8")
    page = docs / "pymc.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}{table(figures)}{END}{after}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bridge", description=__doc__)
    parser.add_argument("models", nargs="*", help=f"all where none is named: {', '.join(MODELS)}")
    parser.add_argument("--python", default=".venv-pymc/bin/python", help="of make bridge-env")
    parser.add_argument("--warms", type=int, default=3, help="rounds with full caches (3)")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "bridge.json", help="file to extend")
    parser.add_argument("--report", action="store_true", help="measure nothing, write table and picture")
    parsed = parser.parse_args(arguments)
    unknown = set(parsed.models) - set(MODELS)
    if unknown:
        raise SystemExit(f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    figures: Figures = json.loads(parsed.results.read_text(encoding="utf-8")) if parsed.results.exists() else {}
    if not parsed.report:
        run(parsed.python, parsed.models or MODELS, parsed.warms, figures, parsed.results)
    write(figures, ROOT / "docs")


if __name__ == "__main__":
    main()
