"""The gallery: a page for each program of examples/, with its picture and what it printed.

In: the programs, with a docstring that says what they do; docs/gallery/, where `python -m book.gallery [PROGRAM ...]`
keeps the picture and the output of a run. Out: pages of Markdown by their names, and the list of them,
`gallery/programs`.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from book.docstrings import first_sentence, markdown
from book.navigation import ROOT

KEPT = ROOT / "docs" / "gallery"
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
DEADLINE = 600
"""Seconds that a program may take."""


def pages(notebooks: Collection[str] = ()) -> dict[str, str]:
    """Return the pages, by name. notebooks: the programs of which there is one, beside the page."""
    found, rows, names = {}, [], []
    for path in PROGRAMS:
        source = path.read_text("utf-8")
        said = ast.get_docstring(ast.parse(source)) or ""
        title = path.stem.replace("_", " ").capitalize()
        found[f"gallery/{path.stem}"] = (
            f"# {title}\n\n{markdown(said)}\n\n{picture(path.stem)}"
            f"Run it in a checkout: `python examples/{path.name}`.{notebook(path.stem, notebooks)}\n\n"
            f"```python\n{source.rstrip()}\n```\n\n{output(path.stem)}"
        )
        rows.append(f"| [{title}]({path.stem}.md) | {first_sentence(said)} | {picture(path.stem, '{width=220px}')} |")
        names.append(path.stem)
    listed, children = "\n".join(rows), "\n".join(names)
    found["gallery/programs"] = (
        "# Programs\n\nEach is a whole program of less than 80 lines, which the tests run in a short form.\n\n"
        f"| program | subject | picture |\n|---|---|---|\n{listed}\n\n:::{{toctree}}\n:hidden:\n\n{children}\n:::\n"
    )
    return found


def picture(name: str, attributes: str = "") -> str:
    """The link to the picture of a program, or "" for one that draws nothing."""
    if not (KEPT / f"{name}.png").exists():
        return ""
    return f"![picture of {name}](../docs/gallery/{name}.png){attributes}" + ("" if attributes else "\n\n")


def notebook(name: str, notebooks: Collection[str]) -> str:
    """The link to the notebook of a program, "" where there is none."""
    return f" Or download it [as a notebook]({name}.ipynb) that was executed." if name in notebooks else ""


def output(name: str) -> str:
    """What a run of the program printed."""
    text = (KEPT / f"{name}.txt").read_text("utf-8")
    return f"It prints\n\n```text\n{text.rstrip()}\n```\n"


def run(path: Path) -> None:
    """Run a program in an empty folder, and keep its output and its picture."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(path)],
            cwd=folder,
            env=os.environ | {"GRAPHC_PROGRESS": "0"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=DEADLINE,
        )
        KEPT.mkdir(exist_ok=True)
        (KEPT / f"{path.stem}.txt").write_text(done.stdout, "utf-8")
        drawn = Path(folder) / f"{path.stem}.png"
        if drawn.exists():
            (KEPT / drawn.name).write_bytes(drawn.read_bytes())


if __name__ == "__main__":
    for program in PROGRAMS:
        if not sys.argv[1:] or program.stem in sys.argv[1:]:
            run(program)
