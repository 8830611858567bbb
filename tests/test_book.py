"""The site without Sphinx: every page is in the navigation, and every link between pages leads to a heading."""

from __future__ import annotations

import ast
import base64
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from platform import machine

import pytest

import graphc
from book import (
    errors,
    examples,
    gallery,
    glossary,
    imports,
    inventory,
    machine_code,
    navigation,
    notebooks,
    pages,
    peers,
    reference,
    settings,
)
from book.docstrings import first_sentence, markdown
from book.navigation import ROOT
from book.signatures import signature
from graphc.options import OPTIONS, PREFIX

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


def test_pages_are_staged_and_old_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "pages", lambda: {"reference/modules": "# Modules"})  # it runs every example
    (tmp_path / "gone.md").write_text("a page that is no more")
    pages.stage(tmp_path)
    assert not (tmp_path / "gone.md").exists()
    home = (tmp_path / "index.md").read_text("utf-8")
    assert home.startswith("# graphc") and all(f":caption: {group.title}" in home for group in navigation.read())
    assert "](../index.md)" in (tmp_path / "docs" / "source.md").read_text("utf-8")
    listed = [page for group in navigation.read() for page in group.pages]
    assert [page for page in listed if not (tmp_path / f"{page}.md").exists()] == []
    before = (tmp_path / "docs" / "jit.md").stat().st_mtime_ns
    pages.stage(tmp_path)
    assert (tmp_path / "docs" / "jit.md").stat().st_mtime_ns == before


def test_the_first_use_of_a_term_leads_to_the_glossary() -> None:
    assert {*glossary.OWN} | {*glossary.FIELD} == {*glossary.sections()} and not {*glossary.OWN} & {*glossary.FIELD}
    page = "# A nest\n\n`nest` and [nest](x.md): two nests, one nest.\n"
    found = glossary.linked("docs/rooms/a.md", page)
    assert found == page.replace("two nests", "two [nests](../glossary.md#inside-the-compiler)")
    tea = "How warm is the room?"
    assert glossary.linked("docs/tutorial/a.md", tea) == tea != glossary.linked("docs/rooms/a.md", tea)
    assert glossary.linked("README.md", page) == page == glossary.linked("docs/glossary.md", page)


def test_every_term_that_a_page_introduces_is_in_the_glossary() -> None:
    assert glossary.undefined("A *nests*, *closed* or `*code*` **bold** *sprocket*.") == {"sprocket"}
    names = [path for path in pages.sources() if path.suffix == ".md" and path.name != "CHANGELOG.md"]
    found = {path.name: glossary.undefined(path.read_text("utf-8")) for path in names}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_gallery_has_every_program() -> None:
    programs = {path.stem for path in (ROOT / "examples").glob("*.py")}
    found = gallery.pages(["heat"])
    assert "(heat.ipynb)" in found["gallery/heat"] and "ipynb" not in found["gallery/digits"]
    assert {f"gallery/{name}" for name in [*programs, "programs"]} == set(found)
    pictures = {path.stem for path in gallery.KEPT.glob("*.png")}
    assert {name for name in programs if f"{name}.png" in (ROOT / "examples" / f"{name}.py").read_text()} == pictures
    assert all(f"../docs/gallery/{name}.png" in found[f"gallery/{name}"] for name in pictures)


def test_a_program_is_cut_into_cells() -> None:
    for path in gallery.PROGRAMS:
        source = path.read_text("utf-8")
        cells = notebooks.cells_of(source)
        kept = [ast.unparse(node) for cell in cells for node in ast.parse(cell).body]
        assert kept == [text for node in ast.parse(source).body[1:] if "mpl.use(" not in (text := ast.unparse(node))]
        assert sum("plt.subplots(" in cell for cell in cells) <= 1 and len(cells) > 1


@pytest.mark.slow
def test_a_notebook_is_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebooks.write(["mandelbrot"], tmp_path)
    made = json.loads((tmp_path / "mandelbrot.ipynb").read_text("utf-8"))
    outputs = [output for cell in made["cells"] if cell["cell_type"] == "code" for output in cell["outputs"]]
    assert "stays bounded, as in Python" in outputs[0]["text"]
    assert base64.b64decode(outputs[1]["data"]["image/png"]).startswith(b"\x89PNG")
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"]) and made["nbformat"] == 4
    capsys.readouterr()
    notebooks.write(["mandelbrot"], tmp_path)
    assert capsys.readouterr().out == ""  # it is up to date


@pytest.mark.slow
@pytest.mark.skipif(machine() != "x86_64", reason="one picture is of code for such a processor")
def test_the_pictures_of_the_compiler_are_of_the_compiler_as_it_is() -> None:
    # In a process of its own: a node that another program made before would have the line of that program.
    code = "import json; from book import machine_code; print(json.dumps(machine_code.drawn()))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    drawn: dict[str, str] = json.loads(done.stdout)
    for name, text in drawn.items():
        path = machine_code.FOLDER / name
        if os.environ.get("GRAPHC_UPDATE"):
            path.write_text(text, "utf-8")
        assert path.read_text("utf-8") == text, f"{name}: run python -m book.machine_code"
    shown = re.findall(r"how_it_works/(\w+\.svg)", (ROOT / "docs" / "how_it_works.md").read_text("utf-8"))
    assert shown == sorted(drawn) == sorted(path.name for path in machine_code.FOLDER.glob("*.svg"))


# --- the reference ----------------------------------------------------------------------------------------------------

HOMES = sorted(path.stem for path in examples.FOLDER.glob("*.txt"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_examples_of_the_reference_print_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for home in HOMES:
        found = {name: shown(text, home, capsys) for name, text in examples.written(home).items()}
        wrong += [
            f"{home}.{name}: {found[name]}"
            for name, text in examples.written(home).items()
            if not examples.agree(text, found[name])
        ]
        if os.environ.get("GRAPHC_UPDATE"):
            content = "\n\n".join(f"{name}\n{text}" for name, text in found.items())
            (examples.FOLDER / f"{home}.txt").write_text(f"{content}\n", "utf-8")
    assert wrong == [] or os.environ.get("GRAPHC_UPDATE")


def shown(text: str, home: str, capsys: pytest.CaptureFixture[str]) -> str:
    """An example with what it returns and prints."""
    found = examples.run(text, imports.scope(home))
    printed = capsys.readouterr().out.rstrip()
    return f"{found}\n{printed}" if printed else found


@pytest.mark.parametrize("home", [*inventory.MODULES])
def test_every_public_name_is_described_and_has_an_example(home: str) -> None:
    items = [item for item in inventory.items(home) if item.is_own]
    assert [item.name for item in items if not item.doc] == []
    missing = [
        item.name for item in items if needs_example(item) and ">>>" not in item.doc and not examples.example(item)
    ]
    assert missing == []
    imports.beginning(home, [item for item in items if needs_example(item)])  # raises for a name that nobody defines


def needs_example(item: inventory.Item) -> bool:
    """False for what a table lists, for classes of errors, and for dtypes."""
    is_error = item.is_class and issubclass(item.value, BaseException)
    return item.section not in reference.TABLES and not is_error and item.name not in ("ndarray", "isnat")


@pytest.mark.parametrize("home", HOMES)
def test_no_example_is_of_a_name_that_is_gone(home: str) -> None:
    known = {name for item in inventory.items(home) for name in (item.name, *item.aliases)}
    assert not set(examples.written(home)) - known


def test_an_entry_has_signature_example_errors_and_names_elsewhere() -> None:
    item = next(item for item in inventory.items("graphc.tensor") if item.name == "cumsum")
    entry = reference.entry(item)
    assert entry.startswith("::::{py:function} graphc.tensor.cumsum(x, axis=None, dtype=None)\n")
    assert ">>> T.cumsum(T.constant([1, 2, 3])).eval()\narray([1, 3, 6])" in entry
    assert "raises `AxisError`" in entry and "raises `GraphTypeError`" in entry
    assert "`numpy.cumsum`, `jax.numpy.cumsum`, `theano.tensor.cumsum`" in entry


def test_an_entry_names_the_errors_that_its_function_raises() -> None:
    items = {item.name: item for item in inventory.items("graphc.tensor")}
    assert ("GraphValueError", "where: give both x and y, or neither") in errors.checked(items["where"])
    line = "- It raises `RankError`: `` vecmat of …: it takes vectors and matrices ``."
    assert line in reference.raised(items["vecmat"], "")[0]
    assert errors.checked(items["exp"]) == []  # a wrong number of operands needs no words


def test_signatures_are_those_that_a_reader_writes() -> None:
    items = {
        item.path: item
        for home in ("graphc.scipy.special", "graphc.scipy.stats", "graphc.cache", "graphc.lax")
        for item in inventory.items(home)
    }
    assert signature(items["graphc.scipy.special.jv"]) == "(v, z)"
    assert signature(items["graphc.lax.acos"]) == "(x)"
    assert signature(items["graphc.scipy.stats.betabinom"]) == "(n, a, b, loc=0)"
    assert signature(items["graphc.cache.Summary"]) == "(key, size, used, folder, metadata, target='native')"


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("home", [*inventory.MODULES])
def test_every_example_runs_after_the_lines_that_its_page_begins_with(home: str) -> None:
    for item in (item for item in inventory.items(home) if item.is_own and needs_example(item)):
        names = {"folder": Path(imports.WRITTEN.name)}
        exec("\n".join(line for line in imports.beginning(home, [item]) if "folder" not in line), names)
        text = examples.example(item) or item.doc
        with graphc.options.change(mode="interpreted"):
            for each in examples.parsed(text):
                if not each.exc_msg:
                    exec(compile(each.source, item.path, "single"), names)


def test_sparse_functions_have_their_names_in_theano() -> None:
    items = {item.name: item for item in inventory.items("graphc.sparse")}
    assert peers.elsewhere(items["structured_dot"]) == ["theano.sparse.structured_dot"]
    assert set(peers.SPARSE.split()) <= {name for item in items.values() for name in (item.name, *item.aliases)}


def test_numbers_of_an_output_may_differ_in_rounding_alone() -> None:
    assert examples.agree("array([1.5, 2e-17])", "array([ 1.50000001, -1e-17])")
    assert not examples.agree("array([1.5, 2.0])", "array([1.5, 2.1])")
    assert not examples.agree("array([1.5])", "array([1.5, 2.1])")


def test_docstrings_become_markdown() -> None:
    assert markdown("a*b of `a*b`.\n\n    >>> 1\n    1\n\nThe [end].") == (
        "a\\*b of `a*b`.\n\n```python\n>>> 1\n1\n```\n\nThe \\[end\\]."
    )
    assert (
        first_sentence("The sum of `x`, e.g.\nof rows. More follows.\n\nAnd more.") == "The sum of `x`, e.g. of rows."
    )


def test_public_names_in_documents_lead_to_their_entries() -> None:
    text = "`graphc.jit` and `graphc.jit()`, `graphc.none`\n```python\n`graphc.jit`\n```\n[`graphc.jit`](x.md)"
    found = reference.linked(text, {"graphc.jit"})
    assert found.count("{py:obj}") == 2 and found.endswith(
        "`graphc.none`\n```python\n`graphc.jit`\n```\n[`graphc.jit`](x.md)"
    )


def test_pages_of_settings_have_every_option_command_and_error() -> None:
    found = settings.pages()
    assert all(f"`{PREFIX}{name.upper()}`" in found["reference/options"] for name in OPTIONS)
    assert (
        found["reference/command_line"].count("usage: ") > 12
        and "## graphc cache prune" in found["reference/command_line"]
    )
    assert found["reference/errors"].count("\n| `") > 25 and '"graphc 3"' in found["reference/files"]
