"""Functions under NumPy's names.

In: one of NumPy's functions. Out: what it gives of tensors, with its signature, whatever it is called with.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from graphc.ir.traced import by_program
from graphc.tensor.boundary import apply_function, apply_ufunc
from graphc.tensor.dispatch import OWN, call_function, call_ufunc, find_target, title, ufunc_target
from graphc.tensor.writers import WRITERS

CALLABLE = (FunctionType, BuiltinFunctionType, type(np.sum))
"""The types of NumPy's functions."""


def target_of(function: Any) -> Callable[..., Any] | None:
    """The function of graphc for one of NumPy's."""
    if not isinstance(function, CALLABLE):
        return None
    if function in WRITERS:
        return WRITERS[function][1]
    own: Callable[..., Any] | None = OWN.get(title(function)) or find_target(function)
    return own


def has_function(function: Any) -> bool:
    """Tell whether graphc has one of NumPy's functions."""
    return target_of(function) is not None


def named(name: str, function: Any) -> Callable[..., Any]:
    """One of NumPy's functions, of tensors."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return call_function(function, args, kwargs)

    if function in WRITERS:

        def call(*args: Any, **kwargs: Any) -> Any:
            return (apply_function if by_program() else call_function)(function, args, kwargs)

        vars(call)["explained"] = True  # it is given what it writes to

    call.__name__ = call.__qualname__ = name
    call.__doc__ = getattr(target_of(function), "__doc__", None) or f"NumPy's {name}."
    vars(call)["__wrapped__"] = function  # which `help` reads the signature from
    return call


class Ufunc:
    """One of NumPy's functions of single elements, of tensors, with its methods."""

    def __init__(self, name: str, ufunc: np.ufunc) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = getattr(ufunc_target(ufunc), "__doc__", None) or f"NumPy's {name}."
        self.ufunc = ufunc

    def __repr__(self) -> str:
        return f"<function {self.__name__} of tensors>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if len(args) > self.ufunc.nin:
            args, kwargs = args[: self.ufunc.nin], {"out": args[self.ufunc.nin :], **kwargs}
        return (apply_ufunc if by_program() else call_ufunc)(self.ufunc, "__call__", args, kwargs)

    def reduce(self, /, *args: Any, **kwargs: Any) -> Any:
        """Reduce as NumPy's `reduce`, along the first axis where no other is given."""
        return (apply_ufunc if by_program() else call_ufunc)(self.ufunc, "reduce", args, kwargs)

    def accumulate(self, /, *args: Any, **kwargs: Any) -> Any:
        """Accumulate as NumPy's `accumulate`."""
        return (apply_ufunc if by_program() else call_ufunc)(self.ufunc, "accumulate", args, kwargs)

    def outer(self, /, *args: Any, **kwargs: Any) -> Any:
        """The function of each element of the first argument with each of the second."""
        return (apply_ufunc if by_program() else call_ufunc)(self.ufunc, "outer", args, kwargs)

    def at(self, /, *args: Any, **kwargs: Any) -> Any:
        """Write to elements as NumPy's `at`: of `add` and `subtract`, in a traced function."""
        return (apply_ufunc if by_program() else call_ufunc)(self.ufunc, "at", args, kwargs)
