"""The programs of examples/ as notebooks that were executed: `python -m book.notebooks [PROGRAM ...]`.

In: examples/heat.py. Out: build/notebooks/heat.ipynb, the same program in cells, with what each printed and drew.
`make docs` writes those whose program, or whose graphc, has changed, and puts them into the site. Jupyter is not
needed: the format is JSON (https://nbformat.readthedocs.io, version 4.5), and a cell is run by `exec`.

    a docstring                         the first cell, text
    imports                             one cell
    statements without a line between   one cell; all that draws is one
"""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import io
import json
import linecache
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from book.gallery import DEADLINE, PROGRAMS
from book.navigation import ROOT
from graphc.startup.versions import VERSION

SHORT = {"char_rnn": ["3"], "convolutional_digits": ["2"], "past_memory": ["20"], "variational_autoencoder": ["2"]}
"""Arguments for a short run."""
FOLDER = ROOT / "build" / "notebooks"
NEEDED = ("docs", "examples", "README.md", "CONTRIBUTING.md")
"""Files of a checkout that programs may read."""
Notebook = dict[str, Any]


def cells_of(source: str) -> list[str]:
    """The code of a program in cells, without its docstring and without the choice of a drawing library's backend."""
    lines = source.splitlines()
    body = ast.parse(source).body
    body = body[1:] if ast.get_docstring(ast.parse(source)) else body
    cells: list[str] = []
    end = body[0].lineno - 1
    draws = imports = False
    for node in body:
        text = "\n".join(lines[end : node.end_lineno])
        end = node.end_lineno or end
        if "mpl.use(" in text:
            continue
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        goes_on = draws or (is_import and imports) or not text.startswith("\n")
        if cells and goes_on:
            cells[-1] += f"\n{text}"
        else:
            cells.append(text)
        draws = (draws or "plt." in text) and not isinstance(node, ast.FunctionDef | ast.ClassDef) and not is_import
        imports = is_import
    return [cell.strip("\n") for cell in cells]


def settings(name: str, source: str) -> str:
    """The cell that stands for the command line and for the program's place in a checkout."""
    arguments = [f"{name}.py", *SHORT.get(name, [])]
    said = "a short run; without the number it is longer" if name in SHORT else "no arguments"
    lines = ["import sys", "", f"sys.argv = {json.dumps(arguments)}  # {said}"]
    if "__file__" in source:
        lines.append(f'__file__ = "examples/{name}.py"  # run the notebook in the folder of a checkout')
    return "\n".join(lines)


def notebook(name: str, source: str) -> Notebook:
    """A program as a notebook without outputs."""
    said = ast.get_docstring(ast.parse(source)) or ""
    title = name.replace("_", " ").capitalize()
    texts = [settings(name, source), *cells_of(source)]
    cells: list[Notebook] = [
        {"cell_type": "markdown", "id": "about", "metadata": {}, "source": f"# {title}\n\n{said}"},
        *(
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": text,
            }
            for number, text in enumerate(texts, 1)
        ),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, "graphc": {"made_of": digest(source)}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def digest(source: str) -> str:
    """What decides the outputs of a notebook: the program, and graphc's version and sources."""
    found = hashlib.sha256(f"{VERSION}\n{source}\n{Path(__file__).read_text('utf-8')}".encode())
    for path in sorted((ROOT / "graphc").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def execute(made: Notebook) -> None:
    """Run the cells of a notebook in this process, and put their outputs into it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cell for cell in made["cells"] if cell["cell_type"] == "code"):
        place = f"<cell {number + 1}>"
        text = cell["source"]
        linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)  # messages quote lines
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(text, place, "exec"), names)
        cell["execution_count"] = number + 1
        if printed.getvalue():
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
        cell["outputs"] += [
            {"output_type": "display_data", "metadata": {}, "data": {"image/png": picture}} for picture in drawn()
        ]


def drawn() -> Iterable[str]:
    """The figures that a cell left open, which it closes, as Jupyter does."""
    if plt := sys.modules.get("matplotlib.pyplot"):
        for number in plt.get_fignums():
            file = io.BytesIO()
            plt.figure(number).savefig(file, format="png", dpi=80)
            yield base64.b64encode(file.getvalue()).decode()
        plt.close("all")


def write(names: Iterable[str], folder: Path = FOLDER) -> None:
    """Write the notebooks of these programs, each in a process of its own; those that are up to date stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        source = (ROOT / "examples" / f"{name}.py").read_text("utf-8")
        target = folder / f"{name}.ipynb"
        if target.exists() and json.loads(target.read_text("utf-8"))["metadata"]["graphc"]["made_of"] == digest(source):
            continue
        with tempfile.TemporaryDirectory() as place:
            for each in NEEDED:
                (Path(place) / each).symlink_to(ROOT / each)
            try:
                subprocess.run(
                    [sys.executable, "-m", "book.notebooks", "--run", name, str(target.resolve())],
                    cwd=place,
                    env=os.environ | {"GRAPHC_PROGRESS": "0", "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)},
                    stderr=subprocess.PIPE,
                    check=True,
                    timeout=DEADLINE,
                )
            except subprocess.TimeoutExpired:
                sys.exit(f"examples/{name}.py, as a notebook, took more than {DEADLINE} s; those before it are written")
            except subprocess.CalledProcessError as error:
                sys.exit(f"examples/{name}.py failed as a notebook:\n{error.stderr.decode(errors='replace')}")
        print(target.relative_to(ROOT) if target.is_relative_to(ROOT) else target)


def run(name: str, target: Path) -> None:
    """Execute one notebook here, and write it."""
    made = notebook(name, (ROOT / "examples" / f"{name}.py").read_text("utf-8"))
    execute(made)
    target.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2], Path(sys.argv[3]))
    else:
        write(sys.argv[1:] or [path.stem for path in PROGRAMS])
