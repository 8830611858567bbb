"""The pictures of docs/how_it_works.md, drawn from what the compiler makes of the program there.

In: `followed.follow()`. Out: twelve SVG files in docs/how_it_works/, written by `python -m book.machine_code`, which
`make docs` calls; tests/test_book.py compares them with what the compiler makes now.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from platform import machine

from book.followed import Followed, follow
from book.navigation import ROOT
from book.pictures_of_calls import call, entry, files, threads
from book.pictures_of_code import loops, source, vectors
from book.pictures_of_graphs import fusion, gradient, graph, memory, rewrites

FOLDER = ROOT / "docs" / "how_it_works"
PICTURES: tuple[Callable[[Followed], str], ...] = (
    graph, gradient, rewrites, fusion, memory, loops, source, vectors, entry, files, call, threads,
)  # fmt: skip


def drawn() -> dict[str, str]:
    """Return the files, by name."""
    followed = follow()
    return {f"{n:02}_{picture.__name__}.svg": picture(followed) for n, picture in enumerate(PICTURES, 1)}


def main() -> int:
    """Write the files that differ."""
    if machine() != "x86_64":  # the picture of vectors is of such a processor
        return 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawn().items():
        path = FOLDER / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
