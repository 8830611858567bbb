"""Recipes: how native code takes the arguments of a call apart into leaves, and puts the leaves of results together.

In: arguments and a tree like the results. Out: a `Recipe` for each, words that recipes_ir.py reads. It takes arguments
of the same form alone: containers of the same types and keys, in which the static values are the same.

    arguments_recipe(({"w": w, "b": b}, 2), {"n": 1.5}, {1, "n"})       f({"w": w, "b": b}, 2, n=1.5)

        2 by position, 1 by name; 3 inner values, 3 steps; the arguments are the inner values 0, 1 and 2
        DICT of inner value 0 has 2 items: "w" is leaf 1, "b" is leaf 0
        EQUAL of inner value 1: 2
        BITS of inner value 2: 1.5

    arguments_recipe((x,), {}, (), [Outside("rate", scope, "rate", Known(0.1, BITS))])     f(x), where rate is still 0.1

        1 by position, 0 by name; 1 inner value, 2 steps; the argument is leaf 0
        LOOKED_UP in the dict of globals: "rate" is inner value 0
        BITS of inner value 0: 0.1

    results_recipe({"loss": 0.0, "slope": (0.0,)})

        2 leaves, 2 steps
        TUPLE of 1 item: leaf 1
        DICT of 2 items: leaf 0 where "loss" has its value, what step 0 has made where "slope" has

Leaves have the order of `trees.flatten`. A value that is no leaf is inner; word -1 - k stands for inner value k.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from types import FunctionType, MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from graphc.arrays.array import OWN
from graphc.codegen.call.bind import ABSENT, Keywords, Recipe
from graphc.codegen.call.layout import TUPLE_ITEMS, entries_of, is_made_plainly, slots_of
from graphc.ir.pairs import is_pair, is_python_number
from graphc.startup.record import record, replace
from graphc.trees import REGISTERED, Registered, fields_of, is_nested, leaves, ordered

TUPLE, LIST, DICT, FIELDS, SAME, EQUAL, BITS, NAMED, SLOTS, CALLED, BEGUN, CONSTANT, LOOKED_UP, PAIRED = range(14)
"""The steps. TUPLE (of any class when it is taken apart), LIST, DICT; FIELDS: an object by its attributes. A static
value is compared: SAME, the same object; EQUAL, an equal one of its type; BITS, a float of the same bits. Only results
have NAMED, a named tuple; SLOTS, an object whose attributes all have slots; CALLED, one that its class makes of the
parts; BEGUN, one that `__init__` makes of them; CONSTANT, one that is there already. LOOKED_UP: a value from outside of
the arguments, of a key in a dict, or an object itself. PAIRED: a complex array or number, whose leaf is an array of
floats over the same memory, with a last axis of two. The parts of a TUPLE, LIST, DICT, NAMED and SLOTS are stored at
offsets, a DICT's in a copy of a dict with other values."""
MOST_INNER = 512
"""The inner values that a recipe has at most."""
MOST_FIELDS = 64
"""The arguments of a class that is called, at most."""

EXACT = frozenset((int, str, bytes))
"""The types of static values of which two are alike if they are equal. Their comparison runs no code of the program."""


@record(eq=False)
class Known:
    """A value and how another one is compared with it: SAME, EQUAL, BITS, or by parts, each under its key: TUPLE, LIST,
    DICT, FIELDS (of the same object)."""

    value: Any
    how: int
    parts: Mapping[Any, Known] = MappingProxyType({})

    def difference(self, other: Any, name: str) -> str | None:
        """Name the part in which another value differs, as a program writes it; None for alike. name: of the value."""
        value, how, parts = self.value, self.how, self.parts
        if type(other) is not type(value) or (how in (SAME, FIELDS) and other is not value):
            return name
        if how >= SAME:
            alike = how == SAME or (other == value if how == EQUAL else repr(other) == repr(value))
            return None if alike else name
        if how == FIELDS:
            differences = (part.difference(getattr(other, key, ABSENT), f"{name}.{key}") for key, part in parts.items())
        elif len(other) != len(parts) or (how == DICT and other.keys() != parts.keys()):
            return name
        else:
            differences = (part.difference(other[key], f"{name}[{key!r}]") for key, part in parts.items())
        return next((each for each in differences if each is not None), None)


@record(eq=False)
class Outside:
    """A value that is known although no argument leads to it. name: what the program calls it. owner, key: a dict and a
    key in it, or the value itself and None."""

    name: str
    owner: Any
    key: str | None
    known: Known

    def difference(self) -> str | None:
        """Name the part that differs now, as a program writes it; None while the value is alike."""
        value = self.owner if self.key is None else self.owner.get(self.key, ABSENT)
        return self.known.difference(value, self.name)


class UnknownFormError(Exception):
    """There is no recipe for a tree."""


REFUSED = object()
"""The result of an entry point that gives calls back which it does not take."""


def refused(*args: Any, **kwargs: Any) -> object:
    """Called where such an entry point does not take arguments, or a check of sizes fails."""
    return REFUSED


Call: TypeAlias = "tuple[Sequence[Any], Mapping[str, Any], Sequence[int], Sequence[str]]"
"""The arguments of a call, by position and by name, and which of both are static."""


def exact_keywords(
    call: Call, leaves: Sequence[Any], names: Sequence[str], result: Any, outside: Sequence[Outside] = ()
) -> Keywords | None:
    """Return how native code takes calls of the form of this one, and gives results in a tree like `result`; None where
    it does not. leaves: those of the arguments. names: of the parameters that they are given for, () where these may
    not be given by name. outside: what else must hold; arguments must then come as they do in this call."""
    args, kwargs, static, static_names = call
    numbers = tuple(None if type(leaf) in OWN else type(leaf) for leaf in leaves)
    axes = any(np.ndim(np.asarray(leaf)) > hasattr(leaf, "of_complex") for leaf in leaves)
    taken = Keywords(numbers=numbers, tuples=type(result) is tuple, own=not axes)
    plain = not static and not static_names and not any(map(is_nested, (*args, *kwargs.values())))
    try:
        if plain and (names or not kwargs) and not outside:
            taken = replace(taken, names=tuple(names))
        else:
            taken = replace(taken, arguments=arguments_recipe(args, kwargs, {*static, *static_names}, outside))
        if is_nested(result) and (type(result) not in (list, tuple) or any(map(is_nested, result))):
            taken = replace(taken, results=results_recipe(result))
    except UnknownFormError:
        return None
    return taken


class _Writer:
    """The words of a recipe. steps: those of each step; held: the objects whose addresses are words. scalars: as of
    `results_recipe`."""

    def __init__(self, scalars: bool = True) -> None:
        self.scalars = scalars
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


def arguments_recipe(
    args: Sequence[Any], kwargs: Mapping[str, Any], static: Collection[int | str], outside: Sequence[Outside] = ()
) -> Recipe:
    """Return the recipe for calls of the form of this one. static: the positions and names of static arguments.
    outside: values that are compared besides.
    Raises UnknownFormError for a tree of a class that native code does not take apart."""
    writer = _Writer()
    values: dict[int | str, Any] = {**dict(enumerate(args)), **{name: kwargs[name] for name in sorted(kwargs)}}
    places_of = {key: _take(writer, value, key in static) for key, value in values.items()}
    places = [places_of[key] for key in (*range(len(args)), *kwargs)]
    names = [writer.address(sys.intern(name)) for name in kwargs]
    for each in outside:
        key = 0 if each.key is None else writer.address(sys.intern(each.key))
        place = writer.inner
        writer.inner += 1
        writer.step(LOOKED_UP, 0, writer.address(each.owner), 1, key, -1 - place)
        _compare(writer, place, each.known)
    return writer.recipe(len(args), len(kwargs), writer.inner, len(writer.steps), *places, *names)


def _take(writer: _Writer, value: Any, is_static: bool = False) -> int:
    """Write the steps for a value; return the word for its place."""
    if not is_static and not is_nested(value):
        return writer.leaf()
    place, class_ = writer.inner, type(value)
    writer.inner += 1
    if not is_static and is_pair(value):
        kind = complex if is_python_number(value) else np.ndarray
        writer.step(PAIRED, place, writer.address(kind), 1, 0, writer.leaf())
        return -1 - place
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
    writer.steps[number] = [how, place, writer.address(class_), len(words), *keys, *words]
    return -1 - place


def _compare(writer: _Writer, place: int, known: Known) -> None:
    """Write the steps that compare an inner value."""
    class_ = writer.address(type(known.value))
    if known.how >= SAME:
        writer.step(known.how, place, class_, 1, writer.address(known.value), 0)
        return
    if known.how == FIELDS:
        writer.step(SAME, place, class_, 1, writer.address(known.value), 0)
    parts = [*known.parts.items()]
    first = writer.inner
    writer.inner += len(parts)
    keys = [writer.address(key) if known.how in (DICT, FIELDS) else 0 for key, _ in parts]
    writer.step(known.how, place, class_, len(parts), *keys, *(-1 - first - k for k in range(len(parts))))
    for k, (_, part) in enumerate(parts):
        _compare(writer, first + k, part)


Parts = tuple[int, dict[Any, Any], Collection[Any]]
"""A step; the children of a value by key, in the order of leaves; the keys of those that are static."""


def _compared(value: Any) -> Parts:
    class_ = type(value)
    if class_ is tuple:
        return TUPLE, dict(enumerate(value)), ()
    return BITS if class_ is float else EQUAL if class_ in EXACT else SAME, {}, ()


def _parts(tree: Any) -> Parts:
    class_, registered = type(tree), REGISTERED.get(type(tree))
    if tree is None:
        return SAME, {}, ()
    if registered is None and class_ is dict:
        return DICT, {key: tree[key] for key in ordered(tree)}, ()
    if registered is None and isinstance(tree, (tuple, list)):
        if class_ not in (list, tuple) and not (isinstance(tree, tuple) and hasattr(class_, "_fields")):
            raise UnknownFormError
        return LIST if class_ is list else TUPLE, dict(enumerate(tree)), ()
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


def results_recipe(tree: Any, scalars: bool = True) -> Recipe:
    """Return the recipe for results in a tree. scalars: complex results without axes are NumPy's scalars, else arrays.
    Raises UnknownFormError as `arguments_recipe` does."""
    writer = _Writer(scalars)
    _put(writer, tree)
    return writer.recipe(len(leaves(tree)), len(writer.steps))


def _put(writer: _Writer, tree: Any) -> int:
    """Write the steps for a tree; return the word for its place."""
    if not is_nested(tree):
        return writer.leaf()
    if is_pair(tree):
        return _put_step(writer, PAIRED, writer.scalars, [0], [writer.leaf()])
    how, children, static = _parts(tree)
    places = {
        key: _constant(writer, child) if key in static else _put(writer, child) for key, child in children.items()
    }
    if how == SAME:
        return _constant(writer, tree)
    class_, words = type(tree), [*places.values()]
    if how == DICT:
        return _put_dict(writer, {key: places[key] for key in tree})
    if how == FIELDS:
        return _put_object(writer, class_, places)
    if how == TUPLE and class_ is not tuple and not _is_plain_tuple(class_):
        return _put_call(writer, CALLED, class_, [0] * len(words), words)
    first = 0 if how == LIST else TUPLE_ITEMS
    offsets = [first + 8 * place for place in range(len(words))]
    return _put_step(writer, how if class_ in (list, tuple) else NAMED, writer.address(class_), offsets, words)


def _put_dict(writer: _Writer, places: Mapping[Any, int]) -> int:
    # A list in place of each container: the garbage collector tracks dicts that have some, and their copies.
    model = {key: object() if place >= 0 else [] for key, place in places.items()}
    offsets = entries_of(model)
    if offsets is None:
        raise UnknownFormError
    return _put_step(writer, DICT, writer.address(model), offsets, [*places.values()])


def _put_object(writer: _Writer, class_: Any, places: Mapping[str, int]) -> int:
    names = [*places]
    if class_ in REGISTERED:
        if not _only_assigns(class_, names):
            is_begun = is_made_plainly(class_) and type(class_).__call__ is type.__call__
            how = BEGUN if is_begun and type(class_.__init__) is FunctionType else CALLED
            keys = [writer.address(tuple(names)), *[0] * len(names)][: len(names)]
            return _put_call(writer, how, class_, keys, [*places.values()])
        names = [*class_.__dataclass_fields__]
    elif not is_made_plainly(class_):
        raise UnknownFormError
    offsets = slots_of(class_, names)
    keys = [*map(writer.address, names)] if offsets is None else offsets
    words = [places[name] for name in names]
    return _put_step(writer, FIELDS if offsets is None else SLOTS, writer.address(class_), keys, words)


def _put_call(writer: _Writer, how: int, class_: Any, keys: Sequence[int], words: Sequence[int]) -> int:
    if not 0 < len(words) <= MOST_FIELDS:
        raise UnknownFormError
    return _put_step(writer, how, writer.address(class_), keys, words)


def _put_step(writer: _Writer, how: int, first: int, keys: Sequence[int], words: Sequence[int]) -> int:
    writer.step(how, first, len(words), *keys, *words)
    return -len(writer.steps)


def _constant(writer: _Writer, value: Any) -> int:
    return _put_step(writer, CONSTANT, writer.address(value), (), ())


def _only_assigns(class_: Any, names: Sequence[str]) -> bool:
    """True for a dataclass whose constructor is the one that Python has generated, and only assigns these fields."""
    params, fields = vars(class_).get("__dataclass_params__"), vars(class_).get("__dataclass_fields__", {})
    if (
        params is None
        or {*fields} != {*names}
        or not is_made_plainly(class_)
        or type(class_).__call__ is not type.__call__
    ):
        return False
    if not params.frozen and class_.__setattr__ is not object.__setattr__:
        return False
    dataclasses = import_module("dataclasses")
    known = dataclasses.make_dataclass(
        "known",
        [
            (
                name,
                object,
                dataclasses.field(default=each.default, default_factory=each.default_factory, kw_only=each.kw_only),
            )
            for name, each in fields.items()
        ],
        frozen=params.frozen,
    )
    known_code, code = known.__init__.__code__, getattr(class_.__init__, "__code__", None)
    alike = "co_code", "co_names", "co_consts", "co_varnames", "co_freevars", "co_filename"
    return all(getattr(code, each, None) == getattr(known_code, each) for each in alike)


def _is_plain_tuple(class_: Any) -> bool:
    """True for a class whose constructor is that of a named tuple."""
    known = namedtuple("known", [f"f{place}" for place in range(len(class_._fields))])  # type: ignore[misc]
    code, known_code = getattr(class_.__new__, "__code__", None), known.__new__.__code__
    is_own = code is not None and (code.co_code, code.co_filename) == (known_code.co_code, known_code.co_filename)
    return is_own and class_.__init__ is object.__init__
