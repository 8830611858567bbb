"""NumPy's module as a traced program sees it: its ufuncs and classes of numbers take what is traced.

    np.exp([x[0], x[1]])            the ufunc of an array of the two
    np.add.reduce([a, b])           its methods too
    np.float64(x.mean())            a number of float64

NumPy asks nobody before it makes an array of a list, or a number. So while a function is traced, `np` is another module
among the names of the program's modules (`creations.replace_names`), but not in a module that compares something by
`is`, which would tell the two apart. In: a name of NumPy's. Out: for a ufunc, an object that is equal to it and has its
class, and calls it; for a class of numbers, a class that is equal to it and has its instances, and makes them; all else
is NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from graphc.ir.node import OPS, Node, make
from graphc.ir.source_lines import NUMPY, OWN_FILES, TRACE
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.questions import Number
from graphc.tensor import boundary
from graphc.tensor.handles import UNKNOWN, known
from graphc.tensor.python_functions import class_for, whole_number
from graphc.trees import leaves

FILE = f"{NUMPY}<ufuncs>"
"""The file of what calls ufuncs: for those who ask who calls, it is NumPy."""
OWN_FILES[FILE] = False


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc or a method of it, with arrays in place of lists that hold tensors."""
    if TRACE.depth:
        args = tuple(map(arrayed, args))
    return function(*args, **kwargs)


_call.__code__ = _call.__code__.replace(co_filename=FILE)


def arrayed(value: Any) -> Any:
    """A list or a tuple that holds tensors as an array, any other value as it is."""
    if type(value) not in (list, tuple) or not any(isinstance(each, Node) for each in leaves(value)):
        return value
    return boundary.owned(as_node(boundary.given(value)), (), True)


class Ufunc:
    """An object in place of a ufunc of NumPy's, equal to it and with its attributes, that calls it."""

    __slots__ = ("of",)

    def __init__(self, of: np.ufunc) -> None:
        self.of = of

    __class__ = property(lambda self: np.ufunc)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self.of, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.of, name)
        if name not in METHODS:
            return found
        return lambda *args, **kwargs: _call(found, args, kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self.of or other is self

    def __hash__(self) -> int:
        return hash(self.of)

    def __repr__(self) -> str:
        return repr(self.of)

    def __reduce__(self) -> Any:
        return self.of.__reduce__()


METHODS = frozenset({"reduce", "accumulate", "outer", "reduceat", "at"})
"""Attributes of ufuncs that are called."""


def _number_class(kind: type[np.generic]) -> type:
    """A class in place of one of NumPy's numbers, which makes a node of a tensor."""

    def make(_: type, *args: Any, **kwargs: Any) -> Any:
        if TRACE.depth and len(args) == 1 and not kwargs:
            (value,) = args
            if type(value) in (list, tuple):
                value = arrayed(value)
            if isinstance(value, Node) and known(value) is UNKNOWN:
                made = converted(value, np.dtype(kind).name)
                if made is not None:
                    return made
        return kind(*args, **kwargs)

    return class_for(kind, make)


def converted(value: Node, dtype: str) -> Any:
    """A tensor as a number of NumPy's, or as an array where it has axes; None where that may be an error of values."""
    node = as_node(boundary.given(value))
    own = node.type.dtype
    if own[0] == "c" and dtype[0] != "c":
        return None
    if node.ndim:
        return boundary.owned(cast(node, dtype), (value,))
    if dtype == "bool":
        made = elementwise("not_equal", node, 0)
    elif own[0] == "f" and dtype == "int64":
        made = whole_number("trunc", cast(node, "float64"), "np.int64")
    elif dtype[0] == "c":
        return cast(node, dtype)
    elif dtype[0] == "f" or np.can_cast(own, dtype):
        made = cast(node, dtype)
    else:
        return None
    return make(OPS["cast"], (made,), {"dtype": dtype}) if made is node or type(made) is Number else made


class Module(ModuleType):
    """A module in place of NumPy's, equal to it and with its names."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return ModuleType
        found = getattr(np, name)
        stand_in = STAND_INS.get(id(found))
        return found if stand_in is None or stand_in[0] is not found else stand_in[1]

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(np, name, value)

    def __eq__(self, other: object) -> bool:
        return other is np or other is self

    def __hash__(self) -> int:
        return hash(np)

    def __dir__(self) -> list[str]:
        return dir(np)

    def __repr__(self) -> str:
        return repr(np)

    def __reduce__(self) -> Any:
        return __import__, ("numpy",)


STAND_INS: dict[int, tuple[Any, Any]] = {
    **{id(each): (each, Ufunc(each)) for each in vars(np).values() if isinstance(each, np.ufunc)},
    **{
        id(kind): (kind, _number_class(kind))
        for kind in (np.bool_, np.int32, np.int64, np.float32, np.float64, np.complex64, np.complex128)
    },
}
"""What is another in the module, by the identity of NumPy's own: that and what stands for it."""
MODULE = Module("numpy")
