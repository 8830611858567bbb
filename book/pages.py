"""The pages of the site, as Sphinx reads them: a folder that has the repository's documents at their own places.

In: README.md, CONTRIBUTING.md, CHANGELOG.md, docs/, and what the other modules write. Out: a folder in which relative
links lead where they lead in the repository. Links to sources become links to copies of them.
"""

from __future__ import annotations

from pathlib import Path

from book import gallery, glossary, navigation, reference, settings
from book.navigation import ROOT

TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md")


def stage(folder: Path, notebooks: Path | None = None) -> Path:
    """Write all pages below `folder`, and return it. notebooks: the folder of the gallery's notebooks.

    Files that are as before keep their times: Sphinx reads them no second time.
    """
    written = {str(path.relative_to(ROOT)): path.read_bytes() for path in sources()}
    known = reference.names()
    written = {
        name: glossary.linked(name, reference.linked(text.decode(), known)).encode() if name.endswith(".md") else text
        for name, text in written.items()
    }
    executed = {path.stem: path.read_bytes() for path in notebooks.glob("*.ipynb")} if notebooks else {}
    written |= {f"gallery/{name}.ipynb": content for name, content in executed.items()}
    made = {**reference.pages(), **settings.pages(), **gallery.pages(executed)}
    written.update((f"{name}.md", text.encode()) for name, text in made.items())
    groups = navigation.read()
    home = written.pop("README.md").decode()
    written = {name: as_home(text) if name.endswith(".md") else text for name, text in written.items()}
    written["index.md"] = f"{home}\n{navigation.contents(groups)}\n".encode()
    for name, content in written.items():
        put(folder / name, content)
    for path in [*folder.rglob("*")]:
        if path.is_file() and str(path.relative_to(folder)) not in written:
            path.unlink()
    return folder


def sources() -> list[Path]:
    """The files of the repository that the site shows."""
    files = [ROOT / name for name in (*TOP, "LICENSE")]
    return files + [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".svg", ".png")]


def as_home(text: bytes) -> bytes:
    """A page with its links to README, which is the first page of the site, changed to that one's name."""
    return text.replace(b"README.md)", b"index.md)")


def put(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
