"""Recipes: how native code takes the arguments of a call apart into leaves, and puts the leaves of results together.

In: arguments and a tree like the results. Out: a `Recipe` for each, words that recipes_ir.py reads. It takes arguments
of the same form alone: containers of the same types and keys, in which the static values are the same.

    arguments_recipe(({"w": w, "b": b}, 2), {"n": 1.5}, {1, "n"})       f({"w": w, "b": b}, 2, n=1.5)

        2 by position, 1 by name; 3 inner values, 3 steps; the arguments are the inner values 0, 1 and 2
        DICT of inner value 0 has 2 items: "w" is leaf 1, "b" is leaf 0
        EQUAL of inner value 1: 2
        BITS of inner value 2: 1.5

    results_recipe({"loss": 0.0, "slope": (0.0,)})

        2 leaves, 2 steps
        TUPLE of 1 item: leaf 1
        DICT of 2 items: "loss" is leaf 0, "slope" what step 0 has made

Leaves have the order of `trees.flatten`. A value that is no leaf is inner; word -1 - k stands for inner value k.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.codegen.call.bind import Recipe
from graphc.codegen.call.layout import is_made_plainly
from graphc.trees import REGISTERED, Registered, fields_of, is_nested, leaves, ordered

TUPLE, LIST, DICT, FIELDS, SAME, EQUAL, BITS, NAMED, CALLED, CONSTANT = range(10)
"""The steps. TUPLE (of any class when it is taken apart), LIST, DICT; FIELDS: an object by its attributes. A static
value is compared: SAME, the same object; EQUAL, an equal one of its type; BITS, a float of the same bits. Only results
have NAMED, a named tuple; CALLED, an object that its class makes of the parts; CONSTANT, one that is there already."""
MOST_INNER = 512
"""The inner values that a recipe has at most."""
MOST_FIELDS = 64
"""The arguments of a class that is called, at most."""

EXACT = frozenset((int, str, bytes))
"""The types of static values of which two are alike if they are equal. Their comparison runs no code of the program."""


class UnknownFormError(Exception):
    """There is no recipe for a tree."""


class _Writer:
    """The words of a recipe. steps: those of each step; held: the objects whose addresses are words."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []
        self.held: list[Any] = []
        self.leaves = 0
        self.inner = 0

    def address(self, value: Any) -> int:
        self.held.append(value)
        return id(value)

    def leaf(self) -> int:
        self.leaves += 1
        return self.leaves - 1

    def step(self, *words: int) -> None:
        self.steps.append([*words])

    def recipe(self, *head: int) -> Recipe:
        if max(self.inner, len(self.steps)) > MOST_INNER:
            raise UnknownFormError
        return Recipe(np.array([*head, *(word for step in self.steps for word in step)], np.intp), tuple(self.held))


def arguments_recipe(args: Sequence[Any], kwargs: Mapping[str, Any], static: Collection[int | str]) -> Recipe:
    """Return the recipe for calls of the form of this one. static: the positions and names of static arguments.
    Raises UnknownFormError for a tree of a class that native code does not take apart."""
    writer = _Writer()
    given: dict[int | str, Any] = {**dict(enumerate(args)), **{name: kwargs[name] for name in sorted(kwargs)}}
    places_of = {key: _take(writer, value, key in static) for key, value in given.items()}
    places = [places_of[key] for key in (*range(len(args)), *kwargs)]
    names = [writer.address(sys.intern(name)) for name in kwargs]
    return writer.recipe(len(args), len(kwargs), writer.inner, len(writer.steps), *places, *names)


def _take(writer: _Writer, value: Any, is_static: bool = False) -> int:
    """Write the steps for a value; return the word for its place."""
    if not is_static and not is_nested(value):
        return writer.leaf()
    place, kind = writer.inner, type(value)
    writer.inner += 1
    how, children, static = _compared(value) if is_static else _parts(value)
    number = len(writer.steps)
    writer.step()
    places = {key: _take(writer, child, is_static or key in static) for key, child in children.items()}
    if how >= SAME:
        keys, words = [writer.address(value)], [0]
    elif how == DICT:
        keys, words = [writer.address(key) for key in value], [places[key] for key in value]
    else:
        keys = [writer.address(key) if how == FIELDS else 0 for key in places]
        words = [*places.values()]
    writer.steps[number] = [how, place, writer.address(kind), len(words), *keys, *words]
    return -1 - place


Parts = tuple[int, dict[Any, Any], Collection[Any]]
"""A step; the children of a value by key, in the order of leaves; the keys of those that are static."""


def _compared(value: Any) -> Parts:
    kind = type(value)
    if kind is tuple:
        return TUPLE, dict(enumerate(value)), ()
    return BITS if kind is float else EQUAL if kind in EXACT else SAME, {}, ()


def _parts(tree: Any) -> Parts:
    kind, registered = type(tree), REGISTERED.get(type(tree))
    if tree is None:
        return SAME, {}, ()
    if registered is None and kind is dict:
        return DICT, {key: tree[key] for key in ordered(tree)}, ()
    if registered is None and isinstance(tree, (tuple, list)):
        if kind not in (list, tuple) and not (isinstance(tree, tuple) and hasattr(kind, "_fields")):
            raise UnknownFormError
        return LIST if kind is list else TUPLE, dict(enumerate(tree)), ()
    varying, static = _fields(tree, registered)
    return FIELDS, {name: getattr(tree, name) for name in (*varying, *static)}, static


def _fields(tree: Any, registered: Registered | None) -> tuple[Sequence[str], Sequence[str]]:
    """The names of the fields that hold trees, and of the static ones."""
    if registered is not None:
        if registered.fields is None:
            raise UnknownFormError
        return registered.fields
    if isinstance(tree, dict) or hasattr(tree, "__filled__"):
        raise UnknownFormError
    return fields_of(tree)


def results_recipe(made: Any) -> Recipe:
    """Return the recipe for results in a tree. Raises UnknownFormError as `arguments_recipe` does."""
    writer = _Writer()
    _put(writer, made)
    return writer.recipe(len(leaves(made)), len(writer.steps))


def _put(writer: _Writer, tree: Any) -> int:
    """Write the steps for a tree; return the word for its place."""
    if not is_nested(tree):
        return writer.leaf()
    how, children, static = _parts(tree)
    places = {
        key: _constant(writer, child) if key in static else _put(writer, child) for key, child in children.items()
    }
    if how == SAME:
        return _constant(writer, tree)
    kind, words, keys = type(tree), [*places.values()], [0] * len(places)
    if how == DICT:
        keys, words = [writer.address(key) for key in tree], [places[key] for key in tree]
    elif how == TUPLE and kind is not tuple:
        how = NAMED if _is_plain_tuple(kind) else CALLED
    elif how == FIELDS:
        names = [*places]
        keys = [*map(writer.address, names)]
        if kind in REGISTERED:
            how, keys = CALLED, [writer.address(tuple(names)), *[0] * len(names)][: len(names)]
        elif not is_made_plainly(kind):
            raise UnknownFormError
    if how in (CALLED, FIELDS) and not 0 < len(words) <= MOST_FIELDS:
        raise UnknownFormError
    writer.step(how, writer.address(kind), len(words), *keys, *words)
    return -len(writer.steps)


def _constant(writer: _Writer, value: Any) -> int:
    writer.step(CONSTANT, writer.address(value), 0)
    return -len(writer.steps)


def _is_plain_tuple(kind: Any) -> bool:
    """True for a class whose constructor is that of a named tuple."""
    known = namedtuple("known", [f"f{place}" for place in range(len(kind._fields))])  # type: ignore[misc]
    code, own = getattr(kind.__new__, "__code__", None), known.__new__.__code__
    is_own = code is not None and (code.co_code, code.co_filename) == (own.co_code, own.co_filename)
    return is_own and kind.__init__ is object.__init__
