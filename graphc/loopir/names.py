"""Names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

NOT_IDENTIFIER = re.compile(r"\W+")
LONGEST_NAME = 60


class Names:
    """Identifiers that are free: what is asked for, or that with a number."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.counts: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        stem = identifier(wanted)
        name, count = stem, self.counts.get(stem, 1)
        while name in self.taken:
            count += 1
            name = f"{stem}_{count}" if stem[-1].isdigit() else f"{stem}{count}"
        self.counts[stem] = count
        self.taken.add(name)
        return name

    def copy(self) -> Names:
        """The same names, of which more may be taken without a trace here."""
        other = Names(self.taken)
        other.counts.update(self.counts)
        return other


def identifier(wanted: str) -> str:
    """A Python identifier that reads like `wanted`, in the form in which Python compares identifiers (NFKC)."""
    stem = NOT_IDENTIFIER.sub("_", unicodedata.normalize("NFKC", wanted))[:LONGEST_NAME].strip("_")
    if not stem or not f"v{stem}".isidentifier():
        return "value"
    return stem if stem.isidentifier() else f"v{stem}"
