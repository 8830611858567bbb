"""The examples in docstrings do what they say: each is run in the interpreted mode, and prints what stands below it."""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.numpy
import graphc.tensor
from graphc.ops.elementwise import ROWS
from graphc.tensor import elementary

PACKAGE = Path(graphc.__file__ or "").parent
ROOMS = ("control", "distributed", "lax", "numpy", "ops", "random", "scipy", "sparse", "tensor", "tracing", "train")
FILES = (
    *("autodiff.py", "options.py", "optimizers.py", "tree.py"),
    *(f"functions/{name}.py" for name in ("background", "convention", "debug_modes", "function", "loaded")),
)
NAMES = {"graphc": graphc, "T": graphc.tensor, "np": np, "jnp": graphc.numpy, "lax": graphc.lax}
"""What examples may use without an import, besides what their module has."""


def examples(path: Path) -> Iterator[doctest.DocTest]:
    """The examples of one module, for each docstring that has any."""
    home = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text, name = ast.get_docstring(node) or "", getattr(node, "name", path.stem)
            if ">>>" in text:
                names = {**vars(import_module(home.removesuffix(".__init__"))), **NAMES}
                yield doctest.DocTestParser().get_doctest(text, names, name, str(path), node.body[0].lineno - 1)


FOUND = {
    str(path.relative_to(PACKAGE)): found
    for path in [*(PACKAGE / file for file in FILES), *(p for r in ROOMS for p in sorted((PACKAGE / r).rglob("*.py")))]
    if (found := list(examples(path)))
}


@pytest.mark.parametrize("module", FOUND)
def test_examples_print_what_stands_below_them(module: str) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    with graphc.options.change(mode="interpreted"):
        for each in FOUND[module]:
            runner.run(each, out=said.append)
    assert "".join(said) == ""


def test_examples_of_the_table_print_what_stands_below_them() -> None:
    """The docstrings that are made of rows of scalar ops."""
    said: list[str] = []
    runner = doctest.DocTestRunner()
    rows = [name for name in elementary.__all__ if name in ROWS and name not in ("add", "mul")]
    with graphc.options.change(mode="interpreted"):
        for name in rows:
            text = inspect.getdoc(getattr(graphc.tensor, name)) or ""
            runner.run(doctest.DocTestParser().get_doctest(text, dict(NAMES), name, "", 0), out=said.append)
    assert "".join(said) == ""
    assert runner.tries >= len(rows) > 70
