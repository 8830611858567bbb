"""Examples of public functions: those of docstrings, and for the others a line in `book/examples/MODULE.txt`.

    roll
    >>> T.roll([1, 2, 3], 1).eval()
    array([3, 1, 2])

In: names and the files. Out: for each name its example, as Python's prompt shows it. `run` runs one, in the interpreted
mode. `GRAPHC_UPDATE=1 pytest tests/test_book.py` writes the outputs anew; a name without an example is added by hand.
"""

from __future__ import annotations

import doctest
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import graphc
from book.inventory import Item

FOLDER = Path(__file__).parent / "examples"
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@cache
def written(home: str) -> dict[str, str]:
    """The examples of a module's file, by names."""
    path = FOLDER / f"{home}.txt"
    text = path.read_text("utf-8").rstrip() if path.exists() else ""
    return dict(re.findall(r"^(\w+)\n(>>> .*?)(?=\n\n\w+\n>>> |\Z)", text, re.DOTALL | re.MULTILINE))


def example(item: Item) -> str:
    """The example of an item; empty where its docstring has one, or where there is none."""
    return "" if ">>>" in item.doc else written(item.home).get(item.name, "")


def parsed(text: str) -> list[doctest.Example]:
    """The statements of an example, with what each prints."""
    return doctest.DocTestParser().get_examples(text)


def run(text: str, names: dict[str, Any]) -> str:
    """Run an example, and return it with what each line prints."""
    lines: list[str] = []
    with graphc.options.change(mode="interpreted"):
        for each in parsed(text):
            source = each.source.rstrip("\n")
            lines.append("\n".join(f"{'... ' if n else '>>> '}{line}" for n, line in enumerate(source.split("\n"))))
            try:
                code = compile(source, "<example>", "eval")
            except SyntaxError:
                exec(compile(source, "<example>", "exec"), names)
                continue
            found = eval(code, names)
            lines += [] if found is None else [repr(found)]
    return "\n".join(lines)


def agree(text: str, found: str) -> bool:
    """True if two outputs differ in rounding alone: routines of LAPACK give other last digits on other processors."""
    numbers = [[float(number) for number in NUMBER.findall(each)] for each in (text, found)]
    rest = ["".join(NUMBER.sub("", each).split()) for each in (text, found)]
    if rest[0] != rest[1] or len(numbers[0]) != len(numbers[1]):
        return False
    return bool(np.allclose(numbers[0], numbers[1], rtol=1e-6, atol=1e-12))
