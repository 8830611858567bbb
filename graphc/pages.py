"""The pages of graphc's documentation that are installed with it.

In: nothing. Out: for each page's name its path: {"jit": .../docs/jit.md}. Pages of the code have the names of their
folders: "rooms/cache". A checkout has them beside the package, a wheel in share/doc/graphc of the environment.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from graphc.errors import GraphcError

DISTRIBUTION = "graphc-compiler"
INSTALLED = "share/doc/graphc/docs/"


def pages() -> dict[str, Path]:
    """The names of all pages, in order, and where they are."""
    beside = Path(__file__).parent.parent / "docs"
    if beside.is_dir():
        found = {path.relative_to(beside).as_posix(): path for path in beside.rglob("*.md")}
    else:
        listed = metadata.files(DISTRIBUTION) or []
        texts = [(file.as_posix().partition(INSTALLED)[2], file) for file in listed if file.suffix == ".md"]
        found = {name: Path(str(file.locate())).resolve() for name, file in texts if name}
    return {name.removesuffix(".md"): found[name] for name in sorted(found)}


def page(name: str) -> str:
    """The text of a page, as it is written in Markdown. GraphcError if there is no page of that name.

    name: "jit", "jit.md" or "docs/jit.md": as messages and other pages call it.
    """
    found, wanted = pages(), name.removeprefix("docs/").removesuffix(".md")
    if wanted not in found:
        raise GraphcError(f"no page is called {name!r}; there are {', '.join(found)}")
    return found[wanted].read_text("utf-8")
