"""The order of the site's pages.

In: navigation.toml. Out: groups, each with the names of its pages, such as `docs/jit`; all groups as hidden tables of
contents, which Sphinx makes the navigation of.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Group:
    """Pages that serve one need of a reader."""

    title: str
    about: str
    pages: tuple[str, ...]


def read() -> list[Group]:
    """Return the groups in their order."""
    listed = tomllib.loads((ROOT / "book" / "navigation.toml").read_text("utf-8"))["group"]
    return [Group(each["title"], each["about"], tuple(each["pages"])) for each in listed]


def contents(groups: list[Group]) -> str:
    """Return the tables of contents, in MyST's Markdown."""
    tables = [
        ":::{toctree}\n:hidden:\n:caption: " + group.title + "\n\n" + "\n".join(group.pages) + "\n:::"
        for group in groups
    ]
    return "\n\n".join(tables)
