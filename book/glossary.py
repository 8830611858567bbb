"""Links from the pages to the glossary: the first use of one of graphc's own terms on a page leads to its meaning.

In: a page of docs/ in Markdown. Out: the same, in which the first "nest" that is no code, heading or link is a link:

    "A nest computes a sum."   ->   "A [nest](glossary.md#inside-the-compiler) computes a sum."
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePosixPath

from book.navigation import ROOT

GLOSSARY = "docs/glossary.md"
OWN = (
    "room", "stage", "hole", "plan", "nest", "arena", "kernel", "entry point", "entry of the cache", "guard", "variant",
    "traced value", "static argument", "plain function", "weak number", "shared variable", "op that calls back",
    "size leaf", "handle", "relatives", "recipe", "fold", "full reduction", "column reduction", "bundle",
)  # fmt: skip
"""Terms that graphc uses in a sense of its own."""
FIELD = (
    "array", "tensor", "variable", "symbolic", "op", "node", "graph", "rank", "size", "shape", "static", "tree", "leaf",
    "NumPy's own", "mode", "interpreter", "to trace", "to ask", "transformation", "tangent", "cotangent", "rule",
    "pass", "to open", "to close", "to fuse", "to materialise", "to lower", "entry", "key", "target", "cold", "warm",
    "status", "shard", "client", "worker",
)  # fmt: skip
"""Terms of the field, and words that a reader knows: a link at the first use on each page would be in the way."""
COMMON = ("room", "stage", "plan", "kernel", "handle", "relatives", "recipe", "fold")
"""Those that have another sense on pages for users, such as the kernel of a convolution: they are linked on the pages
about the compiler."""
COMPILER = re.compile(r"docs/(rooms/(?!convolution)|design|source|cache|inside|how_it_works|decisions|first_day)")
APART = re.compile(r"^```.*?^```|^#.*?$|^<!--.*?-->$|!?\[[^\]]*\]\([^)]*\)|`+[^`]*`+", re.DOTALL | re.MULTILINE)
"""Parts of a page in which no link can stand."""


@cache
def sections() -> dict[str, str]:
    """The anchor of the section that defines each term."""
    found: dict[str, str] = {}
    anchor = ""
    for line in (ROOT / GLOSSARY).read_text("utf-8").splitlines():
        if line.startswith("## "):
            anchor = line[3:].lower().replace(" ", "-")
        for term in re.findall(r"\*([^*]+)\*", line.partition(" | ")[0]) if line.startswith("| *") else ():
            found.setdefault(term, anchor)
    return found


EMPHASIS = {"are", "one element", "values", "first", "again", "nutpie", "updates"}
"""Words in italics that are no terms."""


def undefined(text: str) -> set[str]:
    """The words of a page in italics, of one to three small words, that are in no form a term of the glossary."""
    words = re.findall(r"(?<![*\w])\*([a-z][a-z -]*[a-z])\*(?![*\w])", APART.sub("", text))
    return {word for word in words if word.count(" ") < 3 and not forms(word) & {*sections()}} - EMPHASIS


def forms(word: str) -> set[str]:
    """A word as it is, as the name of several things, and as a verb: `asks` is a form of `to ask`."""
    stems = {word, word.removesuffix("s"), word.removesuffix("d"), word.removesuffix("ed")}
    return stems | {f"to {stem}" for stem in stems}


def linked(name: str, text: str) -> str:
    """Return a page, `docs/rooms/call.md` for instance, with its links to the glossary."""
    if not name.startswith("docs/") or name == GLOSSARY:
        return text
    home = "../" * (len(PurePosixPath(name).parts) - 2) + "glossary.md"
    for term in OWN if COMPILER.match(name) else (term for term in OWN if term not in COMMON):
        text = _link_first(text, term, f"{home}#{sections()[term]}")
    return text


def _link_first(text: str, term: str, target: str) -> str:
    """A page in which the first use of a term is a link."""
    words = rf"{term.replace(' ', chr(92) + 's')}s?"
    if re.search(rf"\[\*?{words}\*?\]\([^)]*glossary\.md", text, re.IGNORECASE):
        return text  # the page has the link already
    pattern = re.compile(rf"\b{words}\b", re.IGNORECASE)
    start = 0
    for part in [*APART.finditer(text), None]:
        end = part.start() if part else len(text)
        if found := pattern.search(text, start, end):
            return f"{text[: found.start()]}[{found[0]}]({target}){text[found.end() :]}"
        start = part.end() if part else end
    return text
