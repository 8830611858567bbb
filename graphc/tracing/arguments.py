"""Arguments of traced functions: static values, types of the others, variables in their place.

In: a function and the arguments of a call. Out: `Parts`, the static values apart; the type of each other leaf; a
variable for each.

    kinds_of([np.ones(3), 2.0])                     ((dtype("float64"), 1), float)
    names_of(lambda a, b: 0, [{"w": 1.0}, 2], {})   ["a['w']", "b"]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, signature
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from graphc.arrays.array import OWN, ndarray
from graphc.arrays.dtypes import COMPLEX, natural_dtype
from graphc.control.loop import title
from graphc.errors import ArgumentError, GraphTypeError, GraphValueError
from graphc.ir.at_once import public
from graphc.ir.node import Node, Scalar, variable
from graphc.ir.source_lines import GIVEN, TRACE, TRACED
from graphc.ir.walk import type_sizes
from graphc.ops.questions import Number
from graphc.options import options
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record
from graphc.tensor import boundary
from graphc.trees import exact_kind, flatten, leaves as leaves_of, map_leaves, paths

NUMBERS = frozenset((float, int, bool))
"""The types of Python numbers, which have a kind but no dtype of their own."""


@record(eq=False)
class Static:
    """Arguments of a function that are chosen, by positions and names; mostly the static ones, whose values are known
    while it is traced."""

    numbers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, function: Callable[..., Any], numbers: Any, names: Any, by: str = "static") -> Static:
        """Return the arguments that `static_argnums` and `static_argnames`, or those of `by`, choose. Each is known by
        position and by name where the signature tells both. Raises GraphValueError for a name that is no parameter."""
        own_numbers = listed(numbers, int, f"{by}_argnums")
        own_names = listed(names, str, f"{by}_argnames")
        if not own_numbers and not own_names:
            return cls()
        known = parameters_of(function)
        own_numbers = [number + len(known) if number < 0 and known else number for number in own_numbers]
        own_names += [known[number] for number in own_numbers if 0 <= number < len(known)]
        for name in own_names:
            if name in known:
                own_numbers.append(known.index(name))
            elif not takes_keyword(function, name):
                raise GraphValueError(f"{title(function)} has no parameter {name!r}, which {by}_argnames lists")
        return cls(tuple(dict.fromkeys(own_numbers)), tuple(dict.fromkeys(own_names)))

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)

    def places(self, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the positions of the static arguments among `count`, and those of the others."""
        return _places(self.numbers, count)

    def split(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Parts:
        """Split the arguments of a call into static ones and others."""
        own, others = self.places(len(args))
        fixed = () if not kwargs else tuple([(name, kwargs[name]) for name in self.names if name in kwargs])
        named = kwargs if not fixed else {name: value for name, value in kwargs.items() if name not in self.names}
        return Parts(tuple([args[place] for place in own]), fixed, tuple([args[place] for place in others]), named)


class Argument(NamedTuple):
    """An argument of a call: the name of its parameter, its position or None, its value."""

    name: str
    place: int | None
    value: Any


class Unchanged(NamedTuple):
    """The arguments that a transform gives on as they are: `grad` those that it does not differentiate by, `vmap` those
    without an axis of elements. Where Python needs their values they become static. places: a function of the number of
    arguments by position; by_name: arguments by name are given on, too.
    """

    places: Callable[[int], Collection[int]] = lambda count: ()
    by_name: bool = False

    def among(
        self, function: Callable[..., Any], static: Static, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[Argument]:
        """The arguments of a call that are given on and are not static."""
        places = sorted(self.places(len(args)))
        if not places and not self.by_name:
            return []
        known, (fixed, _) = parameters_of(function), static.places(len(args))
        names = [known[place] if place < len(known) else f"argument {place}" for place in range(len(args))]
        found = [Argument(names[place], place, args[place]) for place in places if place not in fixed]
        named = kwargs.items() if self.by_name else ()
        return found + [Argument(name, None, value) for name, value in named if name not in static.names]


NOTHING_UNCHANGED = Unchanged()


def is_no_array(value: Any) -> bool:
    """True for a value with a leaf that is neither an array nor a number (text, a function), if all can be hashed."""
    try:
        hash(tuple(leaves_of(value)))
    except TypeError:
        return False
    return any(type(leaf) not in NUMBERS and not hasattr(type(leaf), "__array__") for leaf in leaves_of(value))


class Parts(NamedTuple):
    """The arguments of a call. values, fixed: static ones by position and by name; left, named: the others."""

    values: tuple[Any, ...]
    fixed: tuple[tuple[str, Any], ...]
    left: tuple[Any, ...]
    named: Mapping[str, Any]

    def key(self, function: Any) -> Hashable:
        """Return a hashable key of the static values; keys are equal where types and values are. Raises GraphTypeError
        for a value that cannot be hashed."""
        values, fixed = self.values, self.fixed
        key: Any = (len(self.left), values, exact_kind(values))
        if fixed:
            key = (*key, fixed, exact_kind(fixed))
        try:
            hash(key)
        except TypeError:  # a dict or a list may change: its contents are the key
            whole = [flatten(each) for each in (*values, *fixed)]
            for leaf in (leaf for found, _ in whole for leaf in found):
                _check_hashable(leaf, function.title)
            key = (len(self.left), *((*found, exact_kind((*found,)), shape) for found, shape in whole))
        found: Hashable = key
        return found

    def kept(self) -> Parts:
        """The same, whatever the program does with dicts and lists among the static values."""
        values, fixed = (map_leaves(lambda leaf: leaf, each) for each in (self.values, self.fixed))
        return self._replace(values=values, fixed=fixed)

    def is_fixed(self) -> bool:
        """True where no static value can change."""
        try:
            hash((self.values, self.fixed))
        except TypeError:
            return False
        return True


def _check_hashable(value: Any, what: str) -> None:
    try:
        hash(value)
    except TypeError:
        raise GraphTypeError(
            f"{what}: a static argument is {value!r} of type {type(value).__name__}, which cannot be hashed; give a "
            "tuple or an object that can be"
        ) from None


@lru_cache(maxsize=256)
def _places(numbers: tuple[int, ...], count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    own = sorted({number % count for number in numbers if -count <= number < count})
    return tuple(own), tuple(place for place in range(count) if place not in own)


def listed(given: Any, kind: type, what: str) -> list[Any]:
    items = [] if given is None else [given] if isinstance(given, kind) else list(given)
    for item in items:
        if not isinstance(item, kind):
            raise ArgumentError(f"{what} must be {kind.__name__} or several; got {item!r}")
    return items


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters that can be given by position; [] where the function has no signature."""
    try:
        found = signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]


def keywords_in_order(function: Callable[..., Any], parts: Parts) -> tuple[str, ...]:
    """Return the names of the parameters that the arguments are given for, in the order of leaves, where each may be
    given by position and by name; else ()."""
    try:
        found = [*signature(function).parameters.values()][: len(parts.left) + len(parts.named)]
    except (TypeError, ValueError):
        return ()
    names = tuple([each.name for each in found])
    wanted = (*names[: len(parts.left)], *sorted(parts.named))
    return names if names == wanted and all(p.kind is Parameter.POSITIONAL_OR_KEYWORD for p in found) else ()


def takes_keyword(function: Callable[..., Any], name: str) -> bool:
    """True where a function takes an argument of this name, or has no signature that would tell."""
    try:
        found = signature(function).parameters
    except (TypeError, ValueError):
        return True
    return name in found or any(p.kind is Parameter.VAR_KEYWORD for p in found.values())


def names_of(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], static: Sequence[int] = ()
) -> list[str]:
    """Return a name for each leaf of the arguments, by the parameter and the path in it. static: positions of the
    parameters that `args` leaves out."""
    known, count = parameters_of(function), len(args) + len(static)
    places = [place for place in range(count) if place not in static]
    named = [known[place] if place < len(known) else f"argument {place}" for place in places]
    pairs = [*zip(named, args, strict=True), *((name, kwargs[name]) for name in sorted(kwargs))]
    return [path for name, value in pairs for path in paths(value, name)]


_typed = attrgetter("dtype", "ndim")
_ARRAYS = OWN


def kinds_of(leaves: Sequence[Any], by_class: bool = False) -> tuple[Any, ...]:
    """Return the type of each leaf as a key: (dtype, rank) of an array, the class of a Python number or other value.
    by_class: tell arrays without axes from numbers of NumPy's."""
    if by_class:
        return *kinds_of(leaves), *(isinstance(leaf, np.generic) for leaf in leaves)
    if _ARRAYS.issuperset(map(type, leaves)):
        return tuple(map(_typed, leaves))
    return tuple(
        [kind if (kind := type(leaf)) in NUMBERS or not hasattr(leaf, "dtype") else _typed(leaf) for leaf in leaves]
    )


def with_parts(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], static: Static | None = None
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The arguments, in which trees of their parts stand for complex arrays (ops/pairs.py); static ones stay."""
    if not any(
        getattr(leaf, "dtype", None) in _COMPLEX or type(leaf) is complex for leaf in leaves_of((args, dict(kwargs)))
    ):
        return args, kwargs
    static = static or Static()
    fixed, _ = static.places(len(args))
    named = {name: each if name in static.names else HOOKS.pairs.taken(each) for name, each in kwargs.items()}
    return tuple([each if place in fixed else HOOKS.pairs.taken(each) for place, each in enumerate(args)]), named


_COMPLEX = frozenset(dtype for name in COMPLEX for dtype in (np.dtype(name), np.dtype(name).newbyteorder()))


def variables_for(what: str, leaves: Sequence[Any], names: Sequence[str], ones: Sequence[Iterable[int]]) -> list[Node]:
    """Return a variable for each leaf of the arguments of `what`. Its sizes are unknown, but 1 along the axes in
    `ones`.

    Raises GraphTypeError, with its name, for a leaf that is no array and no number.
    """
    made = []
    for leaf, name, axes in zip(leaves, names, ones, strict=True):
        node = _variable(what, leaf, name, axes)
        TRACED[node] = f"{name}, an argument of {what}"
        if " (" not in what:  # a function of graphc's own (`title`)
            GIVEN.add(node)
        made.append(node)
    return made


def _variable(what: str, leaf: Any, name: str, ones: Iterable[int]) -> Node:
    kind = type(leaf)
    if kind in NUMBERS:
        dtype = "bool" if kind is bool else "int64" if kind is int else options.floatX
        number = variable(dtype, (), name)
        number.__class__ = Number
        return number
    if not hasattr(kind, "__array__"):
        root = name.split("[", maxsplit=1)[0].split(".", maxsplit=1)[0]
        if name == "self":
            raise GraphTypeError(
                f"{what}: self is {leaf!r} of type {kind.__name__}, no array of numbers. A method is compiled for its "
                "object: self.f = graphc.jit(self.f) in __init__; static_argnames='self' reads attributes once for "
                "each object; graphc.tree.register_dataclass makes arguments of its arrays"
            )
        if kind in (np.random.Generator, np.random.RandomState):
            raise GraphTypeError(
                f"{what}: {name} is NumPy's generator of random numbers, whose state compiled code cannot change: give "
                "the function a key, graphc.random.key(0), and draw with graphc.random.uniform(key, shape) and others, "
                "or draw before the call, and give the numbers (docs/howto/random.md)"
            )
        raise GraphTypeError(
            f"{what}: {name} is {leaf!r} of type {kind.__name__}, no array of numbers; arguments are arrays, numbers, "
            f"or dicts, tuples, lists and dataclasses of them; another is static: static_argnames={root!r}"
        )
    dtype = natural_dtype(leaf, f"{what}: {name}")
    known: list[int | None] = [1 if axis in ones else None for axis in range(np.ndim(leaf))]
    if hasattr(leaf, "of_complex"):
        known[-1] = 2
    node = variable(dtype, known, name)
    for size in type_sizes(node):
        size.__class__ = Number  # as the sizes of NumPy's arrays are Python numbers
    return node if node.ndim else as_given(node, np.ndarray if isinstance(leaf, np.ndarray) else np.dtype(dtype).type)


def as_given(node: Node, kind: type) -> Node:
    """A variable without axes, which stands for an array or for a number of NumPy's."""
    node.__dict__["_given"] = kind
    if kind is not np.ndarray:
        node.__class__ = Scalar
        TRACE.scalars.append(node)
    return node


def sizes_of(variables: Sequence[Node], leaves: Sequence[Any]) -> dict[Node, int]:
    """Return the sizes of variables that are not static, as they are in the arguments."""
    pairs = zip(variables, leaves, strict=True)
    sizes = [pair for node, leaf in pairs for pair in zip(node.type.shape, np.shape(leaf), strict=True)]
    return {size: actual for size, actual in sizes if isinstance(size, Node)}


@record(eq=False)
class Settings:
    """Options of compilation: `mode` and `threads` as for `function`; donated: the arguments whose arrays may be
    overwritten; max_variants: for arguments of the same types, without a warning; profile: as for
    `function`; short_axes: whether the short axes of a first call are fixed (variants.py)."""

    mode: str | None = None
    threads: int | str | None = None
    donated: Static = Static()
    max_variants: int = 16
    profile: bool | None = None
    short_axes: bool = False


def settings_for(mode: str | None, threads: int | str | None) -> Settings | None:
    """Return the settings of a function that is given a mode or a number of threads; None where it is given neither."""
    return None if mode is None and threads is None else Settings(mode, threads)


def axes_of_one(leaves: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    """Return for each leaf the axes of one element."""
    return tuple(tuple(axis for axis, size in enumerate(np.shape(leaf)) if size == 1) for leaf in leaves)


def like_arguments(results: Any, given: Any) -> Any:
    """The results with `graphc.numpy`'s class for arrays, if an argument is of that class or none has axes, as the
    native entry points have it."""
    kinds = {type(leaf) for leaf in leaves_of(given) if isinstance(leaf, np.ndarray) and leaf.ndim}
    return public(results) if ndarray in kinds or not kinds else results


def writable(leaf: Any, written: Collection[int]) -> Any:
    """A leaf of the arguments; as an array that the program may write to where it, or its parts, are `written`."""
    return boundary.owned(leaf) if any(id(part) in written for part in leaves_of(leaf)) else leaf
