"""The site without Sphinx: every page is in the navigation, and every link between pages leads to a heading."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from book import navigation, pages
from book.navigation import ROOT

WRITTEN = ("reference/", "gallery/")
"""Pages that are made by the build."""


def test_every_page_stands_in_the_navigation_once() -> None:
    listed = Counter(page for group in navigation.read() for page in group.pages)
    assert max(listed.values()) == 1
    kept = {page for page in listed if not page.startswith(WRITTEN)}
    found = {str(path.relative_to(ROOT))[:-3] for path in pages.sources() if path.suffix == ".md"}
    assert kept == found - {"README"}


def slugs(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_anchor_of_a_link_is_a_heading() -> None:
    broken = []
    for document in (path for path in pages.sources() if path.suffix == ".md"):
        for file, anchor in re.findall(r"\]\(((?!https?:)[^)#]*)#([^)]+)\)", document.read_text("utf-8")):
            target = document.parent / file if file else document
            if target.suffix == ".md" and anchor not in slugs(target):
                broken.append(f"{document.name}: {file}#{anchor}")
    assert broken == []


def test_pages_are_staged_and_old_ones_go(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("a page that is no more")
    pages.stage(tmp_path)
    assert not (tmp_path / "gone.md").exists()
    home = (tmp_path / "index.md").read_text("utf-8")
    assert home.startswith("# graphc") and all(f":caption: {group.title}" in home for group in navigation.read())
    assert "](../index.md)" in (tmp_path / "docs" / "source.md").read_text("utf-8")
    before = (tmp_path / "docs" / "jit.md").stat().st_mtime_ns
    pages.stage(tmp_path)
    assert (tmp_path / "docs" / "jit.md").stat().st_mtime_ns == before
