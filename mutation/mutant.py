"""What a breakage is.

In: a place in the sources by its text, and what stands there instead. Out: sources that are wrong in that one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """In `file`, below graphc/, the one occurrence of `old` becomes `new`: `what` is wrong then.

    `excuse` says why no test can notice, where that is so.
    """

    what: str
    file: str
    old: str
    new: str
    excuse: str = ""

    def broken(self, text: str) -> str:
        """The text of the file with the breakage. Raises ValueError where `old` does not stand there exactly once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.what}: {self.file} has {text.count(self.old)} times {self.old!r}")
        return text.replace(self.old, self.new)

    def apply(self, root: Path) -> None:
        """Break the tree at `root`."""
        path = root / "graphc" / self.file
        path.write_text(self.broken(path.read_text("utf-8")), "utf-8")


@dataclass(frozen=True, slots=True)
class Area:
    """Mutants of one part of the compiler, and the test files in which one would look for it first."""

    name: str
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]
