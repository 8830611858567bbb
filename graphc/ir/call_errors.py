"""Errors of wrong calls: which arguments the function takes, the nearest name, the tensor and the user line.

In: a public function or class. Out: the same one as users call it, wrapped so that a wrong call raises ArgumentError:

    T.sum(x, axes=0)  ->  ArgumentError: sum of x (p.py:3), called at p.py:4: there is no argument 'axes'; is 'axis'
                          meant?

graphc's own code calls the functions unwrapped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import FunctionType, MappingProxyType, TracebackType
from typing import Any

from graphc.errors import ArgumentError, GraphcError, GraphValueError
from graphc.ir.source_lines import PACKAGE, by_program, user_line
from graphc.startup.hooks import HOOKS, nearest

EMPTY: Mapping[str, Any] = MappingProxyType({})


def explained(item: Any, home: str) -> Any:
    """`item`, a function or class of the public module `home`, with wrong calls raising ArgumentError. A function is
    wrapped; a class is changed in place (constructor, `__call__`, public methods); anything else is returned as it
    is."""
    if isinstance(item, FunctionType):
        return item if hasattr(item, "explained") else _explained(item, home)
    if isinstance(item, type) and item.__module__.startswith("graphc.") and not issubclass(item, BaseException):
        explained_class(item)
    return item


def explained_class(item: type) -> None:
    """Make wrong calls of a graphc class, and of its public methods, raise ArgumentError."""
    for base in item.__mro__:
        is_public = base.__module__.startswith("graphc.") and "__explained__" not in vars(base)
        if is_public and base.__name__ not in UNTOUCHED:
            for name, method in list(vars(base).items()):
                if isinstance(method, FunctionType) and (name[0] != "_" or name in ("__init__", "__call__")):
                    setattr(base, name, _explained(method, method.__module__))
            type.__setattr__(base, "__explained__", True)


UNTOUCHED = ("Node", "Graph", "Function", "Interpreted", "Jitted", "Direct", "Interface")
"""Classes that are left alone: programs do not construct them, and their methods are hot or explain themselves."""


def explain_all(namespace: dict[str, Any]) -> None:
    """Wrap, in place, the functions and classes that a module offers (`__all__`, or all it defines): users import it by
    its path. `dir` of the module lists them."""
    home = namespace["__name__"]
    defined = [name for name, item in namespace.items() if name[0] != "_" and getattr(item, "__module__", "") == home]
    offered = namespace.get("__all__", defined)
    namespace.setdefault("__dir__", lambda: [*offered])
    for name in offered:
        item = namespace.get(name)  # what is found later is explained by who finds it
        if isinstance(item, FunctionType | type):
            namespace[name] = explained(item, home)


@cache
def _explained(function: FunctionType, home: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        traced = None
        if by_program():
            traced = HOOKS.handles.Call(function, args, kwargs)
            args, kwargs = traced.args, traced.kwargs
        try:
            result = function(*args, **kwargs)
            return result if traced is None else traced.finished(result)
        except GraphcError as error:
            add_call(error, _callee_name(function, args), args, kwargs)
            raise
        except (TypeError, AttributeError, ValueError) as error:
            if type(error) not in PLAIN or not (trace := error.__traceback__):
                raise
            begins = (f"{function.__name__}()", f"{function.__qualname__}()")
            if trace.tb_next is None and (renamed := _renamed_keywords(function, args, kwargs)) is not None:
                result = call(*args, **renamed)
                return result if traced is None else traced.finished(result)
            known = trace.tb_next is None or "takes" in vars(function) or str(error).startswith(begins)
            if known or (_is_within(trace) and _names_argument(str(error), args, kwargs)):
                wrong = GraphValueError if type(error) is ValueError else ArgumentError
                raise wrong(_message(function, args, kwargs, str(error))) from (None if known else error)
            raise

    written = vars(function).get("documentation")  # of a row of a table, when a program asks for it
    call.__name__, call.__qualname__ = function.__name__, function.__qualname__
    call.__doc__ = written() if written else function.__doc__
    call.__module__ = home or function.__module__  # where a pickle looks for it
    call.__annotations__, call.__dict__ = function.__annotations__, {**vars(function), "explained": True}
    vars(call).update(__wrapped__=function, __signature__=Parameters(function))
    return call


WORDS = {
    "M": "m", "N": "n", "X": "x", "a": "x", "a_max": "max", "a_min": "min", "c": "x", "input": "x", "l": "a", "m": "x",
    "model": "x", "orig_string": "mode", "orig_v": "v", "params": "inputs", "pyfunc": "fun", "r": "b", "right": "b",
    "t": "x", "tensor_list": "arrays", "v": "x", "x": "a", "x_pos": "position", "y": "b x",
}  # fmt: skip
"""Parameter names of Theano and NumPy, with graphc's names for them. Used if the function has no parameter of the
former name."""

OF_MEMORY = {"casting", "copy", "order", "subok"}
"""Parameters of NumPy's methods that say how an array lies in memory, or is cast; a tensor has the same values."""


def _renamed_keywords(function: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The keywords of a call under graphc's parameter names, without those of NumPy's that say nothing about values;
    None if nothing changes or a name is unknown."""
    free = list(import_module("inspect").signature(function).parameters)[len(args) :]
    renamed: dict[str, Any] = {}
    for key, value in kwargs.items():
        if key not in free and (key in OF_MEMORY or (key == "out" and value is None)):
            continue
        ours = [key] if key in free else [name for name in WORDS.get(key, "").split() if name in free]
        if not ours or ours[0] in renamed:
            return None
        renamed[ours[0]] = value
    return None if renamed.keys() == kwargs.keys() else renamed


class Parameters:
    """The `inspect.Signature` of a function, read on demand: importing `inspect` is slow."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return import_module("inspect").Signature

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("inspect").signature(self.function), name)

    def __str__(self) -> str:
        return str(import_module("inspect").signature(self.function))

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return bool(import_module("inspect").signature(self.function) == other)

    __hash__ = object.__hash__


def add_call(error: GraphcError, name: str, args: Sequence[Any], kwargs: Mapping[str, Any] = EMPTY) -> None:
    """Add to an error that names no user line: the function called, its tensor, and the line of the call. Call it only
    from functions that users call directly."""
    said, caller = str(error), sys._getframe(2).f_code.co_filename
    if len(error.args) == 1 and not re.search(PLACED, said) and not caller.startswith(PACKAGE):
        error.args = (f"{_message_head(name, args, kwargs)}: {re.sub(INNER, '', said)}",)


PLACED = r"(:|, line )\d+\)|, called at "
INNER = r"^[a-z_0-9]+(: |\(\) )"
"""The name of an inner function at the start of a message; the name of the function the user called replaces it."""

PLAIN = (TypeError, AttributeError, ValueError)
"""The errors that Python itself raises for an argument of an unexpected type."""


def _is_within(trace: TracebackType) -> bool:
    """True if every frame of the traceback belongs to graphc or an installed package: no user code raised it."""
    step: TracebackType | None = trace
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not file.startswith(PACKAGE) and f"{file!r}".find("site-packages") < 0:
            return False
        step = step.tb_next
    return True


def _names_argument(said: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """True if Python's message names the type or value of an argument. Other errors are defects of graphc."""
    return any(
        isinstance(each, PYTHONS) and (f"'{type(each).__name__}'" in said or f": {each!r}" in said)
        for each in _flat((*args, *kwargs.values()))
    )


PYTHONS = (int, float, complex, str, bytes, list, tuple, dict, set, type(None), FunctionType, type)


def _flat(values: Any) -> Iterator[Any]:
    """The arguments, and the elements of lists and tuples among them."""
    for value in values:
        yield value
        if isinstance(value, list | tuple):
            yield from value


def _message(function: FunctionType, args: tuple[Any, ...], kwargs: Mapping[str, Any], said: str) -> str:
    """The message of an ArgumentError, from Python's own message `said`."""
    name, (parameters, shown) = _callee_name(function, args), _takes(function, args)
    head = _message_head(name, args, kwargs)
    takes = f"it is called as {name}{shown}"
    unknown = None if parameters is None else next((key for key in kwargs if key not in parameters), None)
    if unknown is None or parameters is None:
        problem = said.removeprefix(f"{name}() ").removeprefix(f"{function.__qualname__}() ")
        return f"{head}: {problem}; {takes}"
    return f"{head}: there is no argument {unknown!r}; {nearest(unknown, parameters) or takes}"


def _message_head(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The start of a message: the function, the first tensor with a short text, and the user line of the call."""
    tensors = (arg.facts()[0] for arg in _flat((*args, *kwargs.values())) if hasattr(arg, "facts"))
    short = next((each for each in tensors if len(each) < LONG), None)
    where = user_line()
    return f"{name}{f' of {short}' if short else ''}{f', called at {where}' if where else ''}"


LONG = 60
"""A tensor whose text is longer than this is not named in a message."""


def _callee_name(function: FunctionType, args: Sequence[Any]) -> str:
    """The name of the callee as the user knows it: the class for `__init__`, the object for `__call__`."""
    if args and function.__name__ in ("__init__", "__call__"):
        return str(getattr(args[0], "__name__", None) or type(args[0]).__name__)
    return function.__name__


def _takes(function: FunctionType, args: Sequence[Any]) -> tuple[list[str] | None, str]:
    """The parameter names of a function (None if it takes any keyword) and its signature as text."""
    if "takes" in vars(function):  # of a record
        fields, defaults = vars(function)["takes"]
        shown = [f"{name}={defaults[name]!r}" if name in defaults else name for name in fields]
        return list(fields), f"({', '.join(shown)})"
    inspect = import_module("inspect")
    classes = type(args[0]).__mro__ if function.__name__ == "__init__" and args else ()
    inits = [vars(class_)["__init__"] for class_ in classes if isinstance(vars(class_).get("__init__"), FunctionType)]
    signature, empty = inspect.signature(inits[0] if inits else function), inspect.Parameter.empty
    plain = [each.replace(annotation=empty) for each in signature.parameters.values() if each.name != "self"]
    named = [each.name for each in plain if each.kind not in (each.VAR_POSITIONAL, each.POSITIONAL_ONLY)]
    written = str(signature.replace(parameters=plain, return_annotation=empty))
    is_open = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(function).parameters.values())
    inherited = (name for init in inits[1:] for name in inspect.signature(init).parameters)
    return None if is_open else [*named, *(name for name in inherited if name not in ("self", "args"))], written
