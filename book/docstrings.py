r"""Docstrings as Markdown.

In: a docstring, plain text with indented code and examples. Out: Markdown for MyST: code is fenced, and what Markdown
would take for a mark of its own is escaped.

    "The sum.\n\n    >>> 1 + 1\n    2"   ->   "The sum.\n\n```python\n>>> 1 + 1\n2\n```"
"""

from __future__ import annotations

import ast
import re
import textwrap
from contextlib import suppress
from itertools import groupby


def markdown(text: str) -> str:
    """Return a docstring in Markdown."""
    text = re.sub(
        r"^>>>.*?(?=\n\n|\Z)", lambda found: textwrap.indent(found[0], "    "), text, flags=re.DOTALL | re.MULTILINE
    )
    parts = []
    for is_code, lines in groupby(_joined(text.splitlines()), lambda line: line.startswith("    ")):
        block = "\n".join(lines)
        parts.append(_fenced(textwrap.dedent(block)) if is_code else _escaped(block))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip()


def _joined(lines: list[str]) -> list[str]:
    """The lines, in which an empty line between two of code is one of code."""
    after = ""
    found = []
    for line in reversed(lines):
        found.append("    " if not line.strip() and after.startswith("    ") else line)
        after = found[-1]
    return found[::-1]


def _fenced(code: str) -> str:
    return f"\n```{_language(code)}\n{code.strip(chr(10))}\n```\n" if code.strip() else ""


def _language(code: str) -> str:
    """The name by which a block is coloured."""
    with suppress(SyntaxError):
        ast.parse(code)
        return "python"
    return "python" if ">>>" in code else "text"


def _escaped(text: str) -> str:
    """Text in which `*`, `_` and `<` outside of code stand for themselves."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts)


LONGEST = 150
"""Characters above which the first clause stands for the first sentence."""


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, on one line; of a long one the first clause. A new sentence begins with a
    capital letter, with code, with a sign, or with the name of a parameter and a colon."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    found = re.match(r"(.+?(?<!\([A-Z])\.)(?= [A-Z`-]| \w+(?:, \w+)*: |$)", paragraph)
    sentence = found[1] if found else paragraph
    clause = re.match(r"(?:`[^`]*`|[^`;:])+(?=[;:] )", sentence)
    return _escaped(f"{clause[0]}." if len(sentence) > LONGEST and clause else sentence)
