"""Calls that a function does not take: one error that says what it takes, the argument that is near, and the tensor.

In: a public function. Out: the function as users call it; what graphc calls itself are the functions as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from graphc.errors import ArgumentError
from graphc.ir.where import user_line
from graphc.startup.lazy import nearest


def explained(item: Any, home: str) -> Any:
    """A function, of the public module `home`, whose wrong calls raise ArgumentError; another object is itself."""
    return _explained(item, home) if isinstance(item, FunctionType) and not hasattr(item, "explained") else item


@cache
def _explained(function: FunctionType, home: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # it was raised within
                raise
            message = _message(function, args, kwargs, str(error))
        raise ArgumentError(message)

    call.__name__, call.__qualname__, call.__doc__ = function.__name__, function.__name__, function.__doc__
    call.__module__ = home or function.__module__  # where a pickle looks for it
    call.__annotations__, call.__dict__ = function.__annotations__, {**vars(function), "explained": True}
    vars(call)["__wrapped__"] = function
    return call


def _message(function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], said: str) -> str:
    """What is wrong with a call, from what Python says of it."""
    told = [arg.told()[0] for arg in (*args, *kwargs.values()) if hasattr(arg, "told")]
    signature = import_module("inspect").signature(function)
    empty = import_module("inspect").Parameter.empty
    plain = [each.replace(annotation=empty) for each in signature.parameters.values()]
    shown = signature.replace(parameters=plain, return_annotation=empty)
    name, where = function.__name__, user_line()
    head = f"{name}{f' of {told[0]}' if told else ''}{f', called at {where}' if where else ''}"
    takes = f"it is called as {name}{shown}"
    unknown = next((key for key in kwargs if f"'{key}'" in said), None) if "unexpected keyword" in said else None
    if unknown is None:
        problem = said.removeprefix(f"{name}() ").removeprefix(f"{function.__qualname__}() ")
        return f"{head}: {problem}; {takes}"
    return f"{head}: there is no argument {unknown!r}; {nearest(unknown, list(signature.parameters)) or takes}"
