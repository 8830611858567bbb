"""The reference of functions: a page for each module, or for each subject of a large one, from docstrings and tables.

In: the inventory. Out: pages of Markdown, `reference/graphc.tensor.md` and others, by their names. An entry has the
signature, the docstring, an example with what it prints, errors with calls that raise them, and the names elsewhere.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from book import errors, examples, imports, inventory, peers
from book.docstrings import first_sentence, markdown
from book.inventory import MODULES, OF_OPS, Item
from book.signatures import signature

LARGE = 140
"""The number of entries above which a module has a page for each subject."""
TABLES = (OF_OPS, "variables")
"""Sections of many names that differ in one letter: a table says more than entries."""


def pages() -> dict[str, str]:
    """Return all pages, by name, and the list of them as the page `reference/modules`."""
    found: dict[str, str] = {}
    rows = []
    for home in MODULES:
        items = inventory.items(home)
        own = [item for item in items if item.is_own]
        parts = by_section(own) if len(own) > LARGE else {"": own}
        names = {part: page_name(home, part) for part in parts}
        for part, entries in parts.items():
            found[names[part]] = page(home, part, entries)
        if "" not in parts:
            found[f"reference/{home}"] = overview(home, names, parts)
        elif len(items) > len(own):
            found[f"reference/{home}"] += passed_on(home, items)
        rows.append(f"| [`{home}`]({home}.md) | {len(own)} | {about(home)} |")
    head = "# Modules\n\nThe public modules, with the number of their functions and classes.\n\n"
    head += "| module | names | subject |\n|---|---:|---|\n"
    children = "\n".join(home for home in MODULES)
    found["reference/modules"] = f"{head}{chr(10).join(rows)}\n\n:::{{toctree}}\n:hidden:\n\n{children}\n:::\n"
    return found


def page_name(home: str, part: str) -> str:
    return f"reference/{home}" + (f".{part.replace(' ', '_').replace(chr(39), '')}" if part else "")


def by_section(items: list[Item]) -> dict[str, list[Item]]:
    """Items by section; sections of less than five are one."""
    parts: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda item: item.section):
        parts.setdefault(item.section, []).append(item)
    small = [part for part, entries in parts.items() if len(entries) < 5]
    rest = sorted((item for part in small for item in parts.pop(part)), key=lambda item: item.name.lower())
    return {**parts, **({"others": rest} if rest else {})}


def about(home: str) -> str:
    """The first sentence of a module's docstring."""
    return first_sentence(inspect.getdoc(inventory.module(home)) or "")


def page(home: str, part: str, items: list[Item]) -> str:
    """A page of entries: a table of all, then each."""
    title = f"# {home}" + (f": {part}" if part else "")
    entries = [item for item in items if item.section not in TABLES]
    begin = "\n".join(["Examples begin with:", "", "```python", *imports.beginning(home, entries), "```"])
    lines = [title, "", "" if part else about(home), "", begin, ""]
    if entries:
        lines += [
            "| name | meaning |",
            "|---|---|",
            *(f"| {{py:obj}}`~{item.path}` | {brief(item)} |" for item in entries),
            "",
        ]
    for item in entries:
        lines += [entry(item), ""]
    for section, several in groupby((item for item in items if item.section in TABLES), lambda item: item.section):
        lines += [*([f"## {section.capitalize()}", ""] if entries else []), *table(several), ""]
    return "\n".join(lines)


def overview(home: str, pages: dict[str, str], parts: dict[str, list[Item]]) -> str:
    """The page of a large module: its subjects, with the names of each."""
    rows = []
    for part, page in pages.items():
        links = [
            f"`{item.name}`" if item.section in TABLES else f"{{py:obj}}`~{item.path}`"
            for item in sorted(parts[part], key=lambda item: item.name.lower())
        ]
        rows.append(f"| [{part}]({page.partition('/')[2]}.md) | {' '.join(links)} |")
    children = "\n".join(page.partition("/")[2] for page in pages.values())
    table = "\n".join(["| subject | names |", "|---|---|", *rows])
    return f"# {home}\n\n{about(home)}\n\n{table}\n\n:::{{toctree}}\n:hidden:\n\n{children}\n:::\n"


def passed_on(home: str, items: list[Item]) -> str:
    """The names of a module that are another library's own objects."""
    names = " ".join(f"`{name}`" for item in items if not item.is_own for name in (item.name, *item.aliases))
    return f"\n## Passed on\n\nThese are NumPy's or SciPy's own objects, for programs that use one namespace: {names}\n"


def brief(item: Item) -> str:
    return first_sentence(item.doc).replace("|", "\\|")


def table(items: Iterable[Item]) -> list[str]:
    """Lines of a table: a name and what it is."""
    rows = []
    for item in items:
        names = ", ".join(f"`{name}`" for name in (item.name, *item.aliases))
        rows.append(f"| {names} | {brief(item)} |")
    return ["| name | meaning |", "|---|---|", *rows]


def entry(item: Item) -> str:
    """The entry of a function or class."""
    kind = "class" if item.is_class else "function"
    example = examples.example(item)
    parts = [markdown(item.doc)]
    if example:
        parts.append(f"```python\n{example}\n```")
    parts += raised(item, example or item.doc)
    if item.is_class:
        parts += methods(item)
    if item.aliases:
        parts.append("Also called " + ", ".join(f"`{name}`" for name in item.aliases) + ".")
    if others := peers.elsewhere(item):
        parts.append("Elsewhere: " + ", ".join(f"`{name}`" for name in others) + ".")
    body = "\n\n".join(part for part in parts if part)
    return f"::::{{py:{kind}}} {item.path}{signature(item)}\n\n{body}\n::::"


def raised(item: Item, text: str) -> list[str]:
    """The list of wrong calls with their errors, and of the errors of the function's own that no other line names."""
    found = errors.errors(item, text)
    lines = [f"- `{call}` raises `{kind}`: {code(message)}" for call, kind, message in found]
    named = f"{item.doc}\n{' '.join(lines)}"
    rest = [(kind, message) for kind, message in errors.checked(item) if kind not in named]
    lines += [f"- It raises `{kind}`{f': {code(message)}' if message else ''}." for kind, message in rest]
    return ["Errors:\n\n" + "\n".join(lines)] if lines else []


def code(message: str) -> str:
    """A message on one line, in which nothing is Markdown."""
    line = " ".join(message.split())
    line = line if len(line) < 400 else line[:400] + " …"
    return "`` " + line + " ``"


def methods(item: Item) -> list[str]:
    """The public methods and properties that a class defines, each with its first sentence."""
    rows = []
    for name, value in sorted(vars(item.value).items()):
        inner = value.fget if isinstance(value, property) else value
        doc = inspect.getdoc(inner) if inner is not None else None
        if name[0] != "_" and doc and (callable(inner) or isinstance(value, classmethod | staticmethod)):
            said = first_sentence(doc).replace("|", "\\|")
            rows.append(f"| `{name}{'' if isinstance(value, property) else '()'}` | {said} |")
    return ["\n".join(["| member | meaning |", "|---|---|", *rows])] if rows else []


def names() -> set[str]:
    """The full names that have an entry."""
    found: set[str] = set()
    for home in MODULES:
        found |= {item.path for item in inventory.items(home) if item.is_own and item.section not in TABLES}
    return found


def linked(text: str, known: set[str]) -> str:
    """A document in which public names in code, outside of blocks and links, lead to their entries."""

    def role(found: re.Match[str]) -> str:
        name = found[2].removesuffix("()")
        return f"{{py:obj}}`{found[2]} <{name}>`" if name in known else found[0]

    parts = re.split(r"(^```.*?^```|^#+ .*?$|\[[^\]]*\]\([^)]*\))", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if n % 2 else re.sub(r"(?<!`)(`)(graphc(?:\.\w+)+(?:\(\))?)`(?!`)", role, part)
        for n, part in enumerate(parts)
    )


def gaps(folder: Path) -> str:
    """Return how many entries the pages of a folder have, and how many of them lack an example or an error."""
    pages = [path.read_text("utf-8") for path in folder.glob("graphc*.md")]
    entries = [each for page in pages for each in re.findall(r"^::::{py:.*?^::::$", page, re.DOTALL | re.MULTILINE)]
    bare = sum(">>>" not in each for each in entries)
    silent = sum(not re.search(r"[Rr]aises|Error\b", each) for each in entries)
    return f"{len(entries)} entries of the reference: {bare} without an example, {silent} without an error"
