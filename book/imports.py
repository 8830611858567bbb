"""The lines that the examples of a page begin with: imports of all names that they use and do not define.

In: items of a module. Out: lines of Python, after which each example of the page runs by itself:

    a page of optimisers, whose examples say `optimizers.sgd` and `graphc.grad`  ->  import graphc
                                                                                     from graphc import optimizers
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from book import examples
from book.inventory import MODULES, Item, items

KNOWN = {
    "np": "import numpy as np",
    "graphc": "import graphc",
    "T": "import graphc.tensor as T",
    "jnp": "import graphc.numpy as jnp",
    "ts": "import graphc.session as ts",
    "da": "import dask.array as da",
    "dd": "import dask.dataframe as dd",
    "pd": "import pandas as pd",
    "Path": "from pathlib import Path",
}
"""Imports by the names that they bind; the modules of graphc that examples call by their last name come to them."""
KNOWN |= {
    alias: f"from {home.rpartition('.')[0]} import {alias}"
    for home, alias in MODULES.items()
    if "." not in alias and alias not in KNOWN
}
DEFINED = {
    "x": 'x = T.dvector("x")',
    "w": 'w = graphc.shared(np.ones(2), name="w")',
    "folder": 'folder = Path(".")',
}
"""Variables that examples share."""
NEEDED = {"x": ["T"], "w": ["graphc", "np"], "folder": ["Path"]}


def beginning(home: str, entries: Iterable[Item]) -> list[str]:
    """The lines for the examples of a page. Raises NameError for a name that no line gives."""
    wanted: dict[str, set[str]] = {}
    names = {MODULES[home].partition(".")[0]}
    for item in entries:
        names |= free(item)
    names |= {needed for name in names & {*DEFINED} for needed in NEEDED[name]}
    lines = [line for name, line in KNOWN.items() if name in names]
    for name in sorted(names - {*KNOWN} - {*DEFINED}):
        wanted.setdefault(module_of(name, home), set()).add(name)
    lines += [f"from {module} import {', '.join(sorted(found))}" for module, found in sorted(wanted.items())]
    return lines + [line for name, line in DEFINED.items() if name in names]


@cache
def _of_module(home: str) -> tuple[str, ...]:
    """The lines for all examples of a module."""
    return tuple(beginning(home, [item for item in items(home) if item.is_own]))


WRITTEN = TemporaryDirectory()


def scope(home: str) -> dict[str, Any]:
    """The names that the lines give, anew for each call; `folder` is one that goes with the process."""
    names: dict[str, Any] = {"np": np}
    exec("\n".join(_of_module(home)), names)
    return {**names, "folder": Path(WRITTEN.name)}


def module_of(name: str, home: str) -> str:
    """The public module that offers a name: the page's own, or the first that has it."""
    for module in (home, *MODULES):
        if any(name in (item.name, *item.aliases) for item in items(module)):
            return module
    raise NameError(f"an example of {home} uses {name}, which it does not define and no public module has")


def free(item: Item) -> set[str]:
    """The names that the example of an item uses and does not define."""
    read: set[str] = set()
    bound: set[str] = set()
    for each in examples.parsed(examples.example(item) or item.doc):
        for name, is_bound in names_in(ast.parse(each.source)):
            (bound if is_bound else read).add(name)
    python = {*vars(builtins)} - {item.name, *item.aliases}
    return read - bound - python


def names_in(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names of a program, each with True where it is given a value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, not isinstance(node.ctx, ast.Load)
        elif isinstance(node, ast.arg):
            yield node.arg, True
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
            yield node.name or "", True
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0], True
