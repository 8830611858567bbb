"""Variants: what a traced function was compiled to for arguments of the same types, each for the sizes of its guards.

In: the shapes of a call's arguments. Out: the variant whose guards hold; or None, and the caller traces the function
anew, which is told here: in the log "graphc.recompiles", and in one warning where there are many.

    f = graphc.jit(lambda x: x[:100] if x.shape[0] > 100 else x)
    f(np.ones(200)), f(np.ones(3)), f(np.ones(300))       two variants
    f.variants()     [float64[x.0] where x.shape[0] > 100 (p.py:1), float64[x.0] where x.shape[0] <= 100 (p.py:1)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from operator import itemgetter
from typing import Any

import numpy as np

from graphc.codegen.call.recipes import Call, Outside, exact_keywords, refused
from graphc.errors import ArgumentError
from graphc.functions.callables import Function
from graphc.functions.native import Compiled
from graphc.ir.node import Complex, Node
from graphc.ir.pairs import extra_axes
from graphc.ir.source_lines import warn_user
from graphc.options import options
from graphc.startup.hooks import HOOKS
from graphc.startup.record import record, replace
from graphc.tracing.arguments import NUMBERS, Parts, parameters_of
from graphc.tracing.guards import Guards, Shapes
from graphc.tracing.short_axes import Axes
from graphc.trees import LEAF, has_kind, leaves, like, structure, up_to

Rebuild = Callable[[Any], Any]

LOG = "graphc.recompiles"
"""The name of the log."""


@record(eq=False)
class Form:
    """The form of the arguments of a variant. arguments: (by position, by name) without the static ones, a tree whose
    leaves are numbers. kinds: what each leaf is (`kinds_of`, by class). static: the static arguments by position;
    fixed: those by name, with it."""

    arguments: Any
    kinds: tuple[Any, ...]
    static: tuple[Any, ...]
    fixed: tuple[tuple[str, Any], ...]


def form_of(parts: Parts, kinds: tuple[Any, ...]) -> Form:
    """Return the form of arguments."""
    given = parts.left, dict(parts.named)
    return Form(like(given, range(len(leaves(given)))), kinds, parts.values, parts.fixed)


class Variant:
    """A compiled function for arguments of some types and sizes.

    types: those of the arguments, as text. function: None where there are no arrays among the results. call: takes the
    leaves of the arguments. made: the tree of results that the function returned. has_axes: all results have. rebuild:
    makes such a tree of what `call` gives (`finishing`). asked: what must hold of sizes; holds: tells it of shapes.
    watched: values from outside that must not have changed. ones: for each leaf, the axes of static size 1. shortcut: a
    native entry point for calls of exactly these types and this form (codegen/call/recipes.py), which gives `REFUSED`
    for others. fast: the same, but it leaves other calls to the jitted function. Both are None where the form has no
    recipe. form: of its arguments. short: the axes whose sizes are fixed although nothing asked (short_axes.py);
    example: arguments that it was traced for, without their elements. is_late: True while other processes compile the
    function, after which the two are made.
    """

    __slots__ = (
        "asked", "call", "example", "fast", "form", "function", "has_axes", "holds", "is_late", "made", "ones",
        "rebuild", "short", "shortcut", "types", "watched",
    )  # fmt: skip

    def __init__(
        self,
        types: str,
        function: Function | None,
        call: Callable[..., Any],
        made: Any,
        results: Sequence[Node],
        asked: Guards,
        ones: Sequence[Sequence[int]],
        watched: Sequence[Outside] = (),
    ) -> None:
        self.watched = watched
        self.types = types
        self.function = function
        self.call = call
        self.made = made
        self.has_axes = all(node.ndim for node in results)
        self.rebuild = None if function is None else finishing(made, results)
        self.asked = asked
        self.holds = asked.test()
        self.ones = ones
        self.example: Sequence[Any] = ()
        self.fast: Callable[..., Any] | None = None
        self.form: Form | None = None
        self.is_late = False
        self.short: Axes = frozenset()
        self.shortcut: Callable[..., Any] | None = None

    @property
    def guards(self) -> list[str]:
        """The conditions on sizes, each with the line that asked: "x.shape[0] > 100 (model.py:1)"."""
        return [str(each) for each in self.asked.conditions]

    def changed(self) -> str | None:
        """The name of a value from outside that has changed since the trace; None without one."""
        return next((found for each in self.watched if (found := each.difference()) is not None), None)

    def __repr__(self) -> str:
        return f"{self.types} where {' and '.join(self.guards)}" if self.guards else self.types

    def run(self, given: Sequence[Any], out: Any = None) -> Any:
        """Call with the leaves of the arguments. out: arrays for the results, in a tree like theirs, None for what is
        to be new. Raises ArgumentError for another tree, and as calls with `out=` do."""
        if out is None:
            results = self.call(*given)
            return results if self.rebuild is None else self.rebuild(results)
        single = structure(self.made) == LEAF
        try:
            arrays = [out] if single else up_to(self.made, out)
        except ValueError as error:
            raise ArgumentError(f"out= must be like the results: {error}") from None
        results = self.call(*given, out=out if single else tuple(arrays))
        made = [results] if single else results
        return like(self.made, [new[()] if old is None else old for old, new in zip(arrays, made, strict=True)])

    def make_fast(
        self,
        call: Call,
        leaves: Sequence[Any],
        names: Sequence[str],
        again: Callable[[tuple[Any, ...], Any], Any],
        has_out: bool,
    ) -> None:
        """Make the native entry points for calls like this one, where the function has any.

        leaves: those of the arguments. names: of the parameters that the leaves are given for, () where these may not
        be given by name. `again(args, kwargs)` takes the calls that the entry point refuses, and those of sizes for
        which another variant may be right. has_out: `out` is a parameter of the function.
        """
        function = self.function
        if function is not None and not function.is_ready:
            self.is_late = True
            function.when_ready(lambda whole: self.become(whole, call, leaves, names, again, has_out))
            return
        if not isinstance(function, Compiled) or function.kind is not Compiled or function.profile is not None:
            return
        if function.wanted or function.foreign or not all(map(is_taken_exactly, leaves)):
            return
        taken = exact_keywords(call, leaves, names, self.made, self.watched)
        if taken is None:
            return
        if not has_out and self.has_axes and taken.arguments is None and taken.results is None:
            taken = replace(taken, out=True)
        self.fast = function.exact_entry(lambda *args, **kwargs: again(args, kwargs), taken)
        self.shortcut = function.exact_entry(refused, taken)

    def make_slow(self) -> None:
        """Let all calls be dispatched."""
        self.fast, self.shortcut, self.is_late = None, None, False

    def become(self, whole: Function, *how: Any) -> None:
        """Run the code that other processes have compiled. how: the arguments of `make_fast`."""
        self.function = self.call = whole
        if self.is_late:
            self.is_late = False
            self.make_fast(*how)


def is_taken_exactly(leaf: Any) -> bool:
    """True for an array, and for a number of Python's or NumPy's."""
    return type(leaf) is np.ndarray or type(leaf) in NUMBERS or isinstance(leaf, np.generic)


def finishing(made: Any, results: Sequence[Node]) -> Rebuild | None:
    """Return a function from what a compiled function gives, one array where `made` is a leaf and else a list, to a
    tree like `made`; None where there is nothing to do. Those of `results` that have no axes are arrays, and become
    NumPy's scalars."""
    known = structure(made)
    if has_kind(Complex, known):
        return _with_complex(made)
    places = [place for place, node in enumerate(results) if not node.ndim]
    if known == LEAF:
        return itemgetter(()) if places else None
    kind, *parts = known
    whole: Rebuild = partial(like, made)
    if kind in (tuple, list) and all(part == LEAF for part in parts):
        whole = kind
    elif kind is dict and all(part == LEAF and type(key) is str for key, part in zip(made, parts[1:], strict=True)):
        whole = partial(_filled, dict.fromkeys(made), parts[0])
    if not places:
        return whole

    def rebuild(arrays: list[Any]) -> Any:
        for place in places:
            arrays[place] = arrays[place][()]
        return whole(arrays)

    return rebuild


def _with_complex(made: Any) -> Rebuild:
    """`finishing` of a tree with complex tensors in it."""

    def rebuild(arrays: Any) -> Any:
        given = arrays if isinstance(arrays, list) else [arrays]
        pairs = [array.view(HOOKS.pairs.Pairs) if extra else array for array, extra in zip(given, extras, strict=True)]
        return like(made, [array if array.ndim else array[()] for array in pairs])

    extras = extra_axes(made)
    return rebuild


def _filled(empty: dict[str, None], keys: Sequence[str], arrays: Sequence[Any]) -> dict[str, Any]:
    """A dict with the keys of another one in its order, and arrays in the order of `keys`."""
    return {**empty, **dict(zip(keys, arrays, strict=True))}


def shapes_of(leaves: Sequence[Any]) -> Shapes:
    """The shapes of arrays and numbers."""
    return [
        leaf.shape if type(leaf) is np.ndarray else () if type(leaf) in NUMBERS else np.shape(leaf) for leaf in leaves
    ]


def choose(variants: Sequence[Variant], leaves: Sequence[Any]) -> Variant | None:
    """The first variant whose guards hold for these arguments, and for which nothing outside has changed."""
    shapes: Shapes | None = None
    for variant in variants:
        if variant.changed() is not None:
            continue
        if variant.holds is None:
            return variant
        if shapes is None:
            shapes = shapes_of(leaves)
        if variant.holds(shapes):
            return variant
    return None


def tell_of_retrace(title: str, variants: Sequence[Variant], leaves: Sequence[Any], most: int) -> None:
    """Log which guard of each variant these arguments do not meet. Where there are `most` variants already, warn once,
    with the guard that failed most often."""
    shapes = shapes_of(leaves)
    failing = [found for each in variants if (found := each.asked.failing(shapes)) is not None]
    for condition in failing:
        log_retrace(title, leaves, f"{condition} does not hold")
    changed = [name for each in variants if (name := each.changed()) is not None]
    for name in dict.fromkeys(changed):
        log_retrace(title, leaves, f"{name} has changed")
    if len(variants) == most and len(changed) > len(failing):
        warn_user(
            f"{title} is compiled for the {most + 1}th time for arguments of the same types, since {changed[-1]}, "
            "which it takes from outside, has changed; an argument may change without a compilation",
            RuntimeWarning,
        )
        return
    if len(variants) == most and failing:
        ((often, count),) = Counter(str(each.where) for each in failing).most_common(1)
        example = next(each for each in failing if str(each.where) == often)
        warn_user(
            f"{title} is compiled for the {most + 1}th time for arguments of the same types, since it asks for sizes, "
            f"{count} times at {often}: {example.holds}; ask for less, or jit(max_variants=…) allows more",
            RuntimeWarning,
        )


def tell_of_values(title: str, names: Sequence[str], asked_at: str, count: int, most: int) -> None:
    """Warn, once, where arguments of the same types are compiled for more than `most` values of static ones: `names`,
    which Python asked for at the line `asked_at`, where it did."""
    if count != most + 1:
        return
    why = f", since Python asks for it at {asked_at}" if asked_at else ""
    what = ", ".join(names) or "a static argument"
    warn_user(
        f"{title} is compiled for more than {most} values of {what}, which is static{why}; a loop of "
        "graphc.lax and arrays in place of numbers compile once",
        RuntimeWarning,
    )


def log_retrace(title: str, leaves: Sequence[Any], why: str) -> None:
    """Log that a function is traced anew for these arguments."""
    logging = import_module("logging")
    log = logging.getLogger(LOG)
    if "recompiles" in options.log and not log.handlers:
        log.addHandler(logging.StreamHandler())
        log.setLevel(logging.INFO)
    given = ", ".join(map(str, shapes_of(leaves)))
    log.info("%s is traced anew for arguments of shapes %s: %s", title, given, why)


def types_of(function: Any, variables: Sequence[Node], parts: Parts, static: Sequence[int]) -> str:
    """The types of arguments as text, and the values of those that are static."""
    known = parameters_of(function)
    names = [known[place] if place < len(known) else f"argument {place}" for place in static]
    fixed = [f"{name}={value!r}" for name, value in (*zip(names, parts.values, strict=True), *parts.fixed)]
    return ", ".join([*(f"{node.name}: {node.type}" for node in variables), *fixed])
