"""The errors of a function: found by wrong calls, which are made while the reference is written.

In: an example of a function, `T.cumsum([1, 2]).eval()`. Out: calls that differ from it in one argument, with the class
and the message of the error that each raises:

    T.cumsum([1, 2], axis=7)   AxisError: cumsum of … : axis 7 is out of bounds for array of dimension 1

Wrong calls that the tests hold (tests/misuses.txt) come first. `checked` finds the other errors of a function in its
source: each `raise` of its own body, with the message.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import graphc
from book.examples import parsed as parse_example
from book.imports import scope
from book.inventory import MODULES, Item, defined_in
from book.navigation import ROOT
from book.signatures import operands

CAUGHT = (TypeError, ValueError, IndexError, ArithmeticError, LookupError, RuntimeError, graphc.GraphcError)


class Wrong(NamedTuple):
    """A wrong call and its error."""

    call: str
    kind: str
    message: str


def checked(item: Item) -> list[tuple[str, str]]:
    """The errors that the body of a function raises itself, or the constructor of a class: (class, message), with `…`
    in a message for what a call fills in."""
    value = item.value.__init__ if item.is_class else item.value
    inner = inspect.unwrap(value) if callable(value) and not operands(value) else None
    if not inspect.isfunction(inner) or not inner.__module__.startswith("graphc"):
        return []
    if inner.__code__.co_name not in ("__init__", inner.__name__) or not Path(inner.__code__.co_filename).exists():
        return []  # a lambda in a table, an initialiser without source
    body = ast.parse(textwrap.dedent(inspect.getsource(inner))).body[0]
    found: dict[str, str] = {}
    for node in own_statements(body):
        if isinstance(node, ast.Raise) and isinstance(made := node.exc, ast.Call) and made.args:
            kind = ast.unparse(made.func).rpartition(".")[2]
            if hasattr(graphc.errors, kind) or hasattr(builtins, kind):
                found.setdefault(kind, said(made.args[0]))
    return [*found.items()]


def own_statements(node: ast.AST) -> Iterator[ast.AST]:
    """What a function consists of, without the functions that it defines."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            yield child
            yield from own_statements(child)


def said(message: ast.expr) -> str:
    """The text of a message in a source; empty where it is made elsewhere."""
    if isinstance(message, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in message.values)
        return text.removeprefix("…: ")
    return str(message.value) if isinstance(message, ast.Constant) else ""


@cache
def known() -> dict[str, list[Wrong]]:
    """The wrong calls of tests/misuses.txt, by the name of the function or method that is called."""
    found: dict[str, list[Wrong]] = {}
    for line in (ROOT / "tests" / "misuses.txt").read_text("utf-8").splitlines():
        call, _, error = line.partition("  ->  ")
        kind, _, message = error.partition(": ")
        if kind.isidentifier() and isinstance(node := parsed(call), ast.Call):
            found.setdefault(called(node), []).append(Wrong(call, kind, plain(message)))
    return found


def parsed(call: str) -> ast.expr | None:
    """The expression of a call, or None."""
    try:
        return ast.parse(call, mode="eval").body
    except SyntaxError:
        return None


def called(node: ast.Call) -> str:
    """The last name of what is called: `roll` of `T.roll(x)`."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def plain(message: str) -> str:
    """A message without lines of files, which every program has others of."""
    message = re.sub(r",? ?called at <[^>]*>:\d+|,? ?called at [\w./]+\.py:\d+", "", message)
    return re.sub(r" \((?:line|<[^>]*>:\d+|[\w./]+\.py:\d+)\)", "", message)


def errors(item: Item, text: str) -> list[Wrong]:
    """One wrong call for each class of error that is known of a function; text: an example, or a docstring with one."""
    listed = known().get(item.name, []) if item.home.startswith("graphc.tensor") else []
    first: dict[str, Wrong] = {}
    made = without_fields(item) if item.is_class else tried(item, text, mutated) or tried(item, text, rarely_wrong)
    for wrong in [*listed, *made]:
        first.setdefault(wrong.kind, wrong)
    return [*first.values()][:4]


def without_fields(item: Item) -> list[Wrong]:
    """The call of a class without arguments, where it needs some."""
    call = f"{MODULES[item.home]}.{item.name}()"
    error = raised(call, scope(item.home))
    return [Wrong(call, type(error).__name__, plain(str(error)))] if isinstance(error, TypeError) else []


Mutation = Callable[[Item, ast.Call], Iterator[ast.Call]]


def tried(item: Item, text: str, mutation: Mutation) -> list[Wrong]:
    """The wrong calls that follow from an example; none where it cannot be run by itself."""
    sources = [each.source for each in parse_example(text)] or [""]
    while len(sources) > 1 and not calls_of(item, sources[-1]):
        sources.pop()  # what looks at a result
    *before, last = sources
    names = {**vars(import_module(defined_in(item.value))), **scope(item.home)}
    try:
        with graphc.options.change(mode="interpreted"), chdir(names["folder"]):  # a text may be a file's name
            exec("".join(before), names)
            return [*probed(item, last.strip(), names, mutation)]
    except Exception:  # examples of what is printed or raised, for instance
        return []


def probed(item: Item, example: str, names: dict[str, Any], mutation: Mutation) -> Iterator[Wrong]:
    """The calls of an example with one argument made wrong, that raise an error."""
    if calls := calls_of(item, example):
        for made in mutation(item, calls[0]):
            call = ast.unparse(made)
            if (error := raised(call, names)) is not None:
                yield Wrong(call, type(error).__name__, plain(str(error)))


def calls_of(item: Item, example: str) -> list[ast.Call]:
    """The calls of an item in one expression of an example."""
    node = parsed(example)
    names = {item.name, *item.aliases, getattr(item.value, "__name__", "")}
    return [each for each in ast.walk(node) if isinstance(each, ast.Call) and called(each) in names] if node else []


def mutated(item: Item, call: ast.Call) -> Iterator[ast.Call]:
    """The call with one argument made wrong: its first a text, a size that differs, an axis and a dtype that are not
    there."""
    if call.args:
        made = copy.deepcopy(call)
        made.args[0] = ast.Constant("text")
        yield made
    if len(call.args) > 1 and isinstance(call.args[1], ast.List):
        made = copy.deepcopy(call)
        made.args[1] = ast.parse("[1.0, 2.0, 3.0, 4.0, 5.0]", mode="eval").body
        yield made
    try:
        parameters = [*inspect.signature(item.value).parameters]
    except (TypeError, ValueError):
        parameters = []
    for name, value in (("axis", 7), ("dtype", "number")):
        if name in parameters and len(call.args) <= parameters.index(name):
            made = copy.deepcopy(call)
            made.keywords = [each for each in made.keywords if each.arg != name]
            made.keywords.append(ast.keyword(name, ast.Constant(value)))
            yield made


def rarely_wrong(item: Item, call: ast.Call) -> Iterator[ast.Call]:
    """The call with another mistake, for a function that takes texts as arrays: rows of different lengths, which are
    no array."""
    if call.args:
        made = copy.deepcopy(call)
        made.args[0] = ast.parse("[[1.0, 2.0], [3.0]]", mode="eval").body
        yield made


def raised(call: str, names: dict[str, Any]) -> Exception | None:
    """The error of a call and of the values of its result, or None."""
    with graphc.options.change(mode="interpreted"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = eval(call, names)
            if isinstance(found, graphc.Node):
                found.eval()
        except CAUGHT as error:
            return error
    return None
