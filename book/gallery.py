"""The gallery: a page for each program of examples/.

In: the programs, with a docstring that says what they do. Out: pages of Markdown with the source, by their names, and
the list of them, `gallery/programs`.
"""

from __future__ import annotations

import ast

from book.docstrings import first_sentence, markdown
from book.navigation import ROOT


def pages() -> dict[str, str]:
    """Return the pages, by name."""
    found, rows, names = {}, [], []
    for path in sorted((ROOT / "examples").glob("*.py")):
        source = path.read_text("utf-8")
        said = ast.get_docstring(ast.parse(source)) or ""
        title = path.stem.replace("_", " ").capitalize()
        found[f"gallery/{path.stem}"] = (
            f"# {title}\n\n{markdown(said)}\n\nRun it in a checkout: `python examples/{path.name}`.\n\n"
            f"```python\n{source.rstrip()}\n```\n"
        )
        rows.append(f"| [{title}]({path.stem}.md) | {first_sentence(said)} |")
        names.append(path.stem)
    listed, children = "\n".join(rows), "\n".join(names)
    found["gallery/programs"] = (
        "# Programs\n\nEach is a whole program of less than 80 lines, which the tests run in a short form.\n\n"
        f"| program | |\n|---|---|\n{listed}\n\n:::{{toctree}}\n:hidden:\n\n{children}\n:::\n"
    )
    return found
