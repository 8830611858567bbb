"""Jitted functions from files, called without the code that traces programs: its import takes longer than the load.

In: a file that tracing/saved_calls.py has written, and its functions. Out: an object whose calls go to native code, for
arguments of exactly the types and forms in the file. For any other call, and for anything else that is asked of it, the
jitted function is made.

    f = graphc.load("f.graphc")
    f(np.ones(7), 3.0)            no graph, no tensor, no tracing
    f([1.0, 2.0], 3.0)            the jitted function converts the list
    f.variants()                  the jitted function lists them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MethodType
from typing import Any

import numpy as np

from graphc.codegen.call.bind import Direct, attach, vectorcall_type
from graphc.codegen.call.recipes import REFUSED, exact_keywords, refused
from graphc.functions.archive import Opened, decoded, telling
from graphc.functions.callables import Function
from graphc.functions.native import Compiled
from graphc.startup.hooks import HOOKS
from graphc.startup.lazy import once
from graphc.trees import leaves, like

NUMBERS = {kind.__name__: kind for kind in (bool, int, float)}
"""The classes of Python's numbers by their names."""


class LoadedCalls(Direct):
    """A jitted function of a file, which is made when anything is asked for but a call of a form that the file has."""

    def __init__(self, opened: Opened, functions: Sequence[Function]) -> None:
        self.__name__, self.__doc__ = opened.header["name"], opened.header["doc"]
        self._made: Any = None
        self._source = opened, functions
        self._entries: list[tuple[Any, Any]] = []
        self._is_attached = False
        for row, function in zip(opened.header["variants"], functions, strict=True):
            self._add(opened.header, row, function)

    def _add(self, header: Mapping[str, Any], row: Mapping[str, Any], function: Function) -> None:
        """Make the native entry points for the calls of a variant, where it has any."""
        args, kwargs, static, given = arguments_of(header, row)
        results, kernel = decoded(row["results"]), function.kernel
        if len(given) != len(kernel.inputs) or len(leaves(results)) != len(kernel.outputs):
            raise ValueError(f"the trees of {row['types']} are not those of its function")
        if not isinstance(function, Compiled) or function.kind is not Compiled or function.wanted or function.foreign:
            return
        names = () if static or row["fixed"] else _names(header["parameters"], len(args), sorted(kwargs))
        call = args, kwargs, static, header["static"][1]
        taken = exact_keywords(call, given, names, results)
        if taken is not None:
            self._entries.append((function.exact_entry(refused, taken), function.exact_entry(self._again, taken)))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._again(*args, **kwargs)

    def _again(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the first variant that takes these arguments, and let the next calls go to it first."""
        for entry, fast in self._entries:
            results = entry(*args, **kwargs)
            if results is not REFUSED:
                if not self._is_attached:
                    self._is_attached = True
                    attach(self, fast.__self__)
                return results
        return self._whole(*args, **kwargs)

    @property
    def _whole(self) -> Any:
        """The jitted function."""
        if self._made is None:
            opened, functions = self._source
            with telling(opened):
                self._made = HOOKS.restored_jitted(opened, functions)
        return self._made

    @property  # type: ignore[misc] # `isinstance` takes it
    def __class__(self) -> Any:
        return type(self._whole)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def __dir__(self) -> list[str]:
        return dir(self._whole)

    def __repr__(self) -> str:
        return repr(self._whole)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._whole.__reduce_ex__(protocol)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)


@once
def _direct() -> Any:
    return vectorcall_type(LoadedCalls)


def restored(opened: Opened, functions: Sequence[Function]) -> Any:
    """Return the jitted function of a file. functions: those of its variants."""
    made = object.__new__(_direct())
    made.__init__(opened, functions)
    return made


def arguments_of(
    header: Mapping[str, Any], row: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any], tuple[int, ...], list[Any]]:
    """Return arguments of the form of a variant, by position and by name, the positions of static ones, and the leaves
    of the others."""
    count = len(row["leaves"]) // 2
    given = [_example(*each) for each in zip(row["leaves"][:count], row["leaves"][count:], strict=True)]
    placed, named = like(decoded(row["arguments"]), given)
    args = list(placed)
    total = len(args) + len(row["static"])
    static = tuple(sorted({number % total for number in header["static"][0] if -total <= number < total}))
    for place, value in zip(static, row["static"], strict=True):
        args.insert(place, value)
    return args, {**named, **dict(row["fixed"])}, static, given


def _example(kind: Any, is_scalar: bool) -> Any:
    """An argument of a kind. is_scalar: a number of NumPy's."""
    if isinstance(kind, str):
        return NUMBERS[kind](0)
    array = np.zeros((0,) * kind[1], kind[0])
    return array[()] if is_scalar else array


def _names(parameters: Sequence[Sequence[Any]], by_position: int, by_name: Sequence[str]) -> tuple[str, ...]:
    """The names of the parameters in the order of leaves, where each may be given by position and by name; else ()."""
    found = parameters[: by_position + len(by_name)]
    names = tuple(name for name, _, _ in found)
    is_free = all(kind == "POSITIONAL_OR_KEYWORD" for _, kind, _ in found)
    return names if is_free and names == (*names[:by_position], *by_name) else ()
